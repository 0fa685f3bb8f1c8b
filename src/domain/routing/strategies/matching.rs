//! Strategies of likeness: skills and places.

use super::contract::{Eligible, Fate, Round, Selection, Use};
use super::load::{highest, lowest};
use crate::domain::routing::reason::Reason;
use crate::domain::routing::{distance, measure};

/// The best score over the preferred traits that the work wants.
pub(super) fn skill_match(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let weights: Vec<(&str, f64)> = used.params.numbers("traits").collect();
    let min = used.params.number("min_score");
    let scores: Vec<f64> = eligible
        .iter()
        .map(|one| measure::skill(one, round, &weights) + one.boost)
        .collect();
    let kept: Vec<usize> = (0..eligible.len()).filter(|at| scores[*at] >= min).collect();
    some(&kept, eligible, |some, kept| {
        highest(some, &kept.iter().map(|at| scores[*at]).collect::<Vec<_>>())
    })
    .spread(&kept, eligible.len(), |at| Reason::ScoreBelowMin {
        score: scores[at],
        min,
    })
}

/// The shortest way over the Earth.
pub(super) fn nearest(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let max_meters = used.params.number("max_radius");
    let away = |one: &Eligible| match (&round.work.location, &one.candidate.recipient.location) {
        (Some(from), Some(to)) => Some(distance::between(from, to)),
        _ => None,
    };
    let meters: Vec<Option<f64>> = eligible.iter().map(away).collect();
    let inside = |at: &usize| meters[*at].is_some_and(|meters| max_meters <= 0.0 || meters <= max_meters);
    let kept: Vec<usize> = (0..eligible.len()).filter(inside).collect();
    some(&kept, eligible, |some, kept| {
        lowest(
            some,
            &kept.iter().filter_map(|at| meters[*at]).collect::<Vec<_>>(),
        )
    })
    .spread(&kept, eligible.len(), |at| match meters[at] {
        None => Reason::DistanceUnknown,
        Some(meters) => Reason::DistanceOutside { meters, max_meters },
    })
}

/// A choice among some of them; nobody among none.
pub(super) fn some(
    kept: &[usize],
    eligible: &[Eligible],
    select: impl FnOnce(&[Eligible], &[usize]) -> Selection,
) -> Selection {
    let some: Vec<Eligible> = kept.iter().map(|at| eligible[*at]).collect();
    if some.is_empty() {
        return Selection::of(Vec::<Fate>::new());
    }
    select(&some, kept)
}
