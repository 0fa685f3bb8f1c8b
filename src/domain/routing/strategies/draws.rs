//! Strategies that draw: uniformly, by weight, and the better of some that were drawn.

use std::cmp::Ordering;
use std::collections::BTreeSet;

use super::contract::{Chances, Eligible, Fate, Round, Selection, Use};
use super::ladder::{ladder, leaders, lost_by_score};
use super::load::{falling, lowest};
use crate::domain::routing::explanation::RUNNERS_UP_MAX;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::{numbers, seed};
use crate::words::chance::Chance;

/// Up to here the chance of each candidate is worked out where that takes an order of all.
const CHANCES_MAX: usize = 1_024;

pub(super) fn chance(used: &Use, round: &Round) -> Chance {
    Chance::new(seed::seed(round.decision, used.info.key))
}

/// One of so many.
fn draw(chance: &mut Chance, count: usize) -> usize {
    usize::try_from(seed::below(chance, count as u64)).unwrap_or(0)
}

/// Any of them.
pub(super) fn random(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let count = eligible.len();
    let winner = draw(&mut chance(used, round), count);
    drawn(count, winner, vec![1.0 / numbers::real(count as u64); count])
}

/// Any of them, by weight.
pub(super) fn weighted_random(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let weights: Vec<u64> = eligible.iter().map(|one| one.weight.unsigned_abs()).collect();
    let total = weights
        .iter()
        .fold(0_u64, |sum, weight| sum.saturating_add(*weight));
    let at = seed::below(&mut chance(used, round), total);
    let mut sum = 0_u64;
    let winner = weights.iter().position(|weight| {
        sum = sum.saturating_add(*weight);
        at < sum
    });
    let chances = weights
        .iter()
        .map(|weight| numbers::real(*weight) / numbers::real(total))
        .collect();
    drawn(eligible.len(), winner.unwrap_or(0), chances)
}

/// One was drawn.
pub(super) fn drawn(count: usize, winner: usize, chances: Vec<f64>) -> Selection {
    let fate = |at| {
        if at == winner {
            Fate::Won
        } else {
            Fate::Not(Reason::LostSample)
        }
    };
    let mut selection = Selection::of((0..count).map(fate).collect());
    selection.drew = true;
    selection.chances = Chances::Known(chances);
    selection
}

/// Draws some and takes the least loaded of them.
pub(super) fn power_of_two(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let load: Vec<f64> = eligible
        .iter()
        .map(|one| f64::from(one.candidate.live.current))
        .collect();
    best_of_drawn(used, eligible, round, &load)
}

/// Draws some (0 for all) and takes the one whose work is done first.
pub(super) fn peak_ewma(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let initial = numbers::real(used.params.length_us("initial"));
    let cost = |one: &Eligible| {
        let each = one.candidate.learned.ewma_us.unwrap_or(initial);
        let open = f64::from(one.candidate.live.current) + 1.0;
        each * open / (numbers::real_signed(one.weight) / 1e6)
    };
    let costs: Vec<f64> = eligible.iter().map(cost).collect();
    if used.params.count("choices") == 0 {
        return lowest(eligible, &costs);
    }
    best_of_drawn(used, eligible, round, &costs)
}

/// The lowest number of `choices` that were drawn.
fn best_of_drawn(used: &Use, eligible: &[Eligible], round: &Round, numbers: &[f64]) -> Selection {
    let count = eligible.len();
    let choices = usize::try_from(used.params.count("choices"))
        .unwrap_or(1)
        .clamp(1, count);
    if choices == count {
        return lowest(eligible, numbers);
    }
    let sample = distinct(&mut chance(used, round), count, choices);
    let compare = |left: usize, right: usize| {
        falling(numbers[right], numbers[left]).then_with(|| ladder(&eligible[left], &eligible[right]).0)
    };
    let sampled: Vec<usize> = sample.iter().copied().collect();
    let order = leaders(sampled.len(), RUNNERS_UP_MAX + 1, |left, right| {
        compare(sampled[left], sampled[right])
    });
    let mut order = order.into_iter().map(|at| sampled[at]);
    let Some(winner) = order.next() else {
        return Selection::of(Vec::new());
    };
    let runners_up = order.collect();
    let fate = |at: usize| {
        if at == winner {
            Fate::Won
        } else if !sample.contains(&at) {
            Fate::Not(Reason::LostSample)
        } else if falling(numbers[at], numbers[winner]) == Ordering::Equal {
            let on = ladder(&eligible[winner], &eligible[at]).1;
            Fate::Not(Reason::LostTie { on })
        } else {
            Fate::Not(lost_by_score(numbers[at], numbers[winner]))
        }
    };
    let mut selection = Selection::of((0..count).map(fate).collect());
    selection.runners_up = runners_up;
    selection.scores = numbers.to_vec();
    selection.drew = true;
    selection.chances = chances_of_best(count, choices, compare);
    selection
}

/// How likely each is to be the best of `choices` drawn: that it is drawn, and nobody better with it.
fn chances_of_best(count: usize, choices: usize, compare: impl Fn(usize, usize) -> Ordering) -> Chances {
    if count > CHANCES_MAX {
        return Chances::Unknown;
    }
    let mut order: Vec<usize> = (0..count).collect();
    order.sort_by(|left, right| compare(*left, *right));
    let n = numbers::real(count as u64);
    let mut chances = vec![0.0; count];
    for (rank, at) in order.into_iter().enumerate() {
        let behind = numbers::real((count - 1 - rank) as u64);
        let mut chance = numbers::real(choices as u64) / n;
        for other in 0..choices - 1 {
            let other = numbers::real(other as u64);
            chance *= (behind - other).max(0.0) / (n - 1.0 - other);
        }
        chances[at] = chance;
    }
    Chances::Known(chances)
}

/// So many different ones, each set equally likely (Floyd).
fn distinct(chance: &mut Chance, count: usize, choices: usize) -> BTreeSet<usize> {
    let mut chosen = BTreeSet::new();
    for last in count - choices..count {
        let at = draw(chance, last + 1);
        if !chosen.insert(at) {
            chosen.insert(last);
        }
    }
    chosen
}
