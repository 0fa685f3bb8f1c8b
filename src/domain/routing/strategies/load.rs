//! Strategies of load: who has the least to do, or the most room.

use std::cmp::Ordering;

use super::contract::{Eligible, Round, Selection, Use};
use super::ladder::{best_of, by_ladder};
use crate::domain::routing::{capacity, numbers};
use crate::words::time::Micros;

/// The fewest open assignments, or units of them.
pub(super) fn least_loaded(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let by_units = used.params.text("unit") == "cost";
    let load = |at: usize| {
        let live = &eligible[at].candidate.live;
        if by_units {
            live.units
        } else {
            u64::from(live.current)
        }
    };
    best_of(
        eligible,
        |left, right| load(left).cmp(&load(right)),
        |at| numbers::real(load(at)),
    )
}

/// The most room.
pub(super) fn most_available(_used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let room: Vec<u32> = eligible
        .iter()
        .map(|one| capacity::available(one.candidate, round.now))
        .collect();
    best_of(
        eligible,
        |left, right| room[right].cmp(&room[left]),
        |at| f64::from(room[at]),
    )
}

/// The smallest share of its capacity used, compared without fractions.
pub(super) fn least_utilized(_used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let share = |at: usize| {
        let candidate = eligible[at].candidate;
        numbers::utilization(&candidate.recipient, &candidate.live)
    };
    best_of(
        eligible,
        |left, right| numbers::compare_shares(share(left), share(right)),
        |at| {
            let (used, limit) = share(at);
            numbers::real(used) / numbers::real(limit)
        },
    )
}

/// The highest weight / (current + 1)^bias.
pub(super) fn weighted_least_request(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let bias = used.params.number("bias");
    let standing = |one: &Eligible| {
        let open = f64::from(one.candidate.live.current) + 1.0;
        numbers::real_signed(one.weight) / 1e6 / open.powf(bias)
    };
    highest(eligible, &eligible.iter().map(standing).collect::<Vec<_>>())
}

/// The one that waits longest for work.
pub(super) fn longest_idle(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let finished = used.params.text("basis") == "finished";
    let since = |at: usize| -> Option<Micros> {
        let live = &eligible[at].candidate.live;
        if finished {
            live.last_finished_at
        } else {
            live.last_assigned_at
        }
    };
    // `None` never had work, and comes first.
    let idle_ms = |at: usize| {
        since(at).map_or(f64::INFINITY, |since| {
            numbers::real(round.now.since(since) / 1_000)
        })
    };
    best_of(eligible, |left, right| since(left).cmp(&since(right)), idle_ms)
}

/// The highest of these numbers.
pub(super) fn highest(eligible: &[Eligible], numbers: &[f64]) -> Selection {
    best_of(
        eligible,
        |left, right| falling(numbers[left], numbers[right]),
        |at| numbers[at],
    )
}

/// The lowest of these numbers.
pub(super) fn lowest(eligible: &[Eligible], numbers: &[f64]) -> Selection {
    best_of(
        eligible,
        |left, right| falling(numbers[right], numbers[left]),
        |at| numbers[at],
    )
}

/// The larger one first; -0 is 0.
pub(super) fn falling(left: f64, right: f64) -> Ordering {
    (right + 0.0).total_cmp(&(left + 0.0))
}

/// Nothing but the ladder.
pub(super) fn plain(_used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    by_ladder(eligible)
}
