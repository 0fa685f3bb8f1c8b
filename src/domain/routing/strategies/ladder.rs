//! What tells equals apart: the lower utilization, the longer idle time, the smaller id. Never the order of a list.

use std::cmp::Ordering;

use super::contract::{Eligible, Fate, Selection};
use crate::domain::routing::explanation::RUNNERS_UP_MAX;
use crate::domain::routing::numbers;
use crate::domain::routing::reason::{Reason, Rung};

/// The better one first, and the rung that says so.
pub fn ladder(left: &Eligible, right: &Eligible) -> (Ordering, Rung) {
    let share = |one: &Eligible| numbers::utilization(&one.candidate.recipient, &one.candidate.live);
    let used = numbers::compare_shares(share(left), share(right));
    if used != Ordering::Equal {
        return (used, Rung::Utilization);
    }
    // `None` was never assigned, and comes first.
    let idle = left
        .candidate
        .live
        .last_assigned_at
        .cmp(&right.candidate.live.last_assigned_at);
    if idle != Ordering::Equal {
        return (idle, Rung::Idle);
    }
    (left.id().cmp(&right.id()), Rung::Id)
}

/// The first `most` by `compare`, best first, in one walk: linear while `most` is small.
pub fn leaders(count: usize, most: usize, compare: impl Fn(usize, usize) -> Ordering) -> Vec<usize> {
    let mut best: Vec<usize> = Vec::with_capacity(most + 1);
    for at in 0..count {
        if best.len() == most
            && best
                .last()
                .is_none_or(|last| compare(at, *last) != Ordering::Less)
        {
            continue;
        }
        let place = best.partition_point(|known| compare(*known, at) != Ordering::Greater);
        best.insert(place, at);
        best.truncate(most);
    }
    best
}

/// The one with the best number wins; equals are told apart by the ladder. `compare` puts the better one first, `score` is
/// what the explanation shows.
pub fn best_of(
    eligible: &[Eligible],
    compare: impl Fn(usize, usize) -> Ordering,
    score: impl Fn(usize) -> f64,
) -> Selection {
    let whole = |left: usize, right: usize| {
        compare(left, right).then_with(|| ladder(&eligible[left], &eligible[right]).0)
    };
    let mut first = leaders(eligible.len(), RUNNERS_UP_MAX + 1, whole);
    let scores: Vec<f64> = (0..eligible.len()).map(score).collect();
    if first.is_empty() {
        return Selection::of(Vec::new());
    }
    let winner = first.remove(0);
    let fate = |at: usize| {
        if at == winner {
            return Fate::Won;
        }
        Fate::Not(if compare(winner, at).is_eq() {
            Reason::LostTie {
                on: ladder(&eligible[winner], &eligible[at]).1,
            }
        } else {
            lost_by_score(scores[at], scores[winner])
        })
    };
    let mut selection = Selection::of((0..eligible.len()).map(fate).collect());
    selection.runners_up = first;
    selection.scores = scores;
    selection
}

/// Another one's number was better.
pub fn lost_by_score(score: f64, winner: f64) -> Reason {
    Reason::LostScore {
        score,
        winner,
        margin: (winner - score).abs(),
    }
}

/// Who comes first when nothing but the ladder counts.
pub fn by_ladder(eligible: &[Eligible]) -> Selection {
    best_of(eligible, |_, _| Ordering::Equal, |_| 0.0)
}
