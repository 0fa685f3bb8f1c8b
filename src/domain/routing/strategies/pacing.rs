//! Strategies of time: quotas over a window, and deadlines.

use super::contract::{Eligible, Round, Selection, Use};
use super::load::highest;
use super::matching::some;
use crate::domain::routing::candidate::Candidate;
use crate::domain::routing::opening;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::{measure, numbers};
use crate::words::time::Micros;

/// Looks at whether windows are open in a pacing window: as many as a day has minutes.
const LOOKS: u64 = 1_440;

/// Where the pacing window began that holds `now`: windows follow each other from the epoch.
pub fn window_start(now: Micros, window_us: u64) -> Micros {
    let window = i64::try_from(window_us).unwrap_or(i64::MAX).max(1);
    Micros(now.0 - now.0.rem_euclid(window))
}

/// Which share of its open time in the window has passed for a member.
fn passed(member: &Candidate, start: Micros, window_us: u64, now: Micros) -> f64 {
    if member.recipient.schedule.is_none() {
        return numbers::real(now.since(start)) / numbers::real(window_us.max(1));
    }
    let step = (window_us / LOOKS).max(60_000_000);
    let (mut open, mut before) = (0_u64, 0_u64);
    let mut at = start;
    while at < start.plus(window_us) {
        if opening::is_open(&member.recipient, at) {
            open += 1;
            before += u64::from(at < now);
        }
        at = at.plus(step);
    }
    if open == 0 {
        1.0
    } else {
        numbers::real(before) / numbers::real(open)
    }
}

/// Whoever is furthest behind its quota; who is ahead by more than the slack leaves.
pub(super) fn quota_pacing(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let quota = numbers::real(used.params.count("quota"));
    let window_us = used.params.length_us("window");
    let slack = used.params.number("slack");
    let start = window_start(round.now, window_us);
    let pace = |one: &Eligible| {
        let delivered = one.candidate.learned.delivered_in(start);
        (
            delivered,
            quota * passed(one.candidate, start, window_us, round.now),
        )
    };
    let paces: Vec<(u64, f64)> = eligible.iter().map(pace).collect();
    let in_time = |at: &usize| {
        let (delivered, target) = paces[*at];
        numbers::real(delivered) <= target * (1.0 + slack)
    };
    let kept: Vec<usize> = (0..eligible.len()).filter(in_time).collect();
    some(&kept, eligible, |some, kept| {
        let behind = |at: &usize| (paces[*at].1 - numbers::real(paces[*at].0)) / quota;
        highest(some, &kept.iter().map(behind).collect::<Vec<_>>())
    })
    .spread(&kept, eligible.len(), |at| Reason::PacingAhead {
        delivered: paces[at].0,
        target: paces[at].1,
    })
}

/// The most time to spare before the deadline; who would be late leaves, unless a breach is allowed.
pub(super) fn sla_deadline(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let allowed = used.params.truth("allow_breach");
    let headroom = |one: &Eligible| match round.work.deadline_at {
        Some(deadline) => measure::headroom_us(one, round, deadline.0),
        None => f64::INFINITY,
    };
    let all: Vec<f64> = eligible.iter().map(headroom).collect();
    let kept: Vec<usize> = (0..eligible.len())
        .filter(|at| allowed || all[*at] >= 0.0)
        .collect();
    some(&kept, eligible, |some, kept| {
        highest(some, &kept.iter().map(|at| all[*at]).collect::<Vec<_>>())
    })
    .spread(&kept, eligible.len(), |at| Reason::SlaCannotMeet {
        headroom_ms: numbers::micro(all[at] / 1e9),
    })
}
