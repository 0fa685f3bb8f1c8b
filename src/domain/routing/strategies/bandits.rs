//! Strategies that learn from the value of what was done.

use super::contract::{Chances, Eligible, Fate, Round, Selection, Use};
use super::draws;
use super::load::highest;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::{numbers, seed};
use crate::words::chance::Chance;

fn means(eligible: &[Eligible]) -> Vec<f64> {
    eligible
        .iter()
        .map(|one| one.candidate.learned.mean().unwrap_or(0.0))
        .collect()
}

/// The best mean value; now and then any.
pub(super) fn epsilon_greedy(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let epsilon = used.params.number("epsilon");
    let mut selection = highest(eligible, &means(eligible));
    let Some(best) = selection.winners().next() else {
        return selection;
    };
    let count = eligible.len();
    let mut chances = vec![epsilon / numbers::real(count as u64); count];
    chances[best] += 1.0 - epsilon;
    let mut chance = draws::chance(used, round);
    if seed::next_unit(&mut chance) < epsilon {
        let at = usize::try_from(seed::below(&mut chance, count as u64)).unwrap_or(0);
        if at != best {
            selection.fates[best] = Fate::Not(Reason::LostSample);
            selection.fates[at] = Fate::Won;
            selection.runners_up.retain(|one| *one != at);
        }
    }
    selection.drew = true;
    selection.chances = Chances::Known(chances);
    selection
}

/// The best mean value it may have; those without any first.
pub(super) fn ucb1(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let c = used.params.number("c");
    let tries: f64 = eligible.iter().map(|one| one.candidate.learned.n).sum();
    let bounds: Vec<f64> = eligible
        .iter()
        .map(|one| {
            let learned = &one.candidate.learned;
            learned
                .mean()
                .map_or(f64::INFINITY, |mean| upper_bound(mean, learned.n, tries, c))
        })
        .collect();
    highest(eligible, &bounds)
}

/// How good something may be that was tried `n` times out of `tries`.
pub fn upper_bound(mean: f64, n: f64, tries: f64, c: f64) -> f64 {
    mean + (c * tries.ln().max(0.0) / n).sqrt()
}

/// The best of a draw from what is known of each.
pub(super) fn thompson(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let half_life_us = used.params.length_us("half_life");
    let base = seed::seed(round.decision, used.info.key);
    let draw = |one: &Eligible| {
        let (successes, n) = one.candidate.learned.faded(round.now, half_life_us);
        // Each draws from a sequence of its own: who else is there does not change it.
        let mut chance = Chance::new(base ^ seed::hash(&one.id().to_string(), used.info.key));
        beta(&mut chance, 1.0 + successes, 1.0 + (n - successes).max(0.0))
    };
    let mut selection = highest(eligible, &eligible.iter().map(draw).collect::<Vec<_>>());
    selection.drew = true;
    selection.chances = Chances::Unknown;
    selection
}

/// A draw from the beta distribution.
fn beta(chance: &mut Chance, alpha: f64, beta: f64) -> f64 {
    let (left, right) = (gamma(chance, alpha), gamma(chance, beta));
    left / (left + right)
}

/// A draw from the gamma distribution of a shape from 1 up (Marsaglia and Tsang).
fn gamma(chance: &mut Chance, shape: f64) -> f64 {
    let d = shape - 1.0 / 3.0;
    let c = 1.0 / (9.0 * d).sqrt();
    loop {
        let normal = normal(chance);
        let cube = (1.0 + c * normal).powi(3);
        if cube <= 0.0 {
            continue;
        }
        let unit = seed::next_unit(chance);
        if unit.ln() < 0.5 * normal * normal + d - d * cube + d * cube.ln() {
            return d * cube;
        }
    }
}

/// A draw from the normal distribution (Box and Muller).
fn normal(chance: &mut Chance) -> f64 {
    let (radius, angle) = (seed::next_unit(chance), seed::next_unit(chance));
    (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_24_upper_confidence_bounds() {
        let bounds = [(0.5, 10.0), (0.6, 15.0), (0.2, 5.0)].map(|(mean, n)| upper_bound(mean, n, 30.0, 2.0));
        for (bound, published) in bounds.iter().zip([1.324_766, 1.273_419, 1.366_396]) {
            assert!((bound - published).abs() < 5e-7, "{bound} is not {published}");
        }
    }

    #[test]
    fn draws_of_beta_have_its_mean_and_variance() {
        let mut chance = Chance::new(7);
        let draws: Vec<f64> = (0..40_000).map(|_| beta(&mut chance, 3.0, 2.0)).collect();
        let mean = draws.iter().sum::<f64>() / 40_000.0;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / 40_000.0;
        assert!(
            (mean - 0.6).abs() < 0.005 && (variance - 0.04).abs() < 0.001,
            "{mean} {variance}"
        );
    }
}
