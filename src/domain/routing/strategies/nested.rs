//! Strategies around another one: tiers, and weights that fall with the room that is left.

use super::contract::{Eligible, Fate, Round, Selection, Use};
use super::dispatch;
use super::ladder::lost_by_score;
use super::load::falling;
use crate::domain::routing::candidate::Candidate;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::{capacity, numbers};
use std::cmp::Ordering;

/// The tier of a member: the lower the earlier; who has none comes last.
fn tier(used: &Use, member: &Candidate, round: &Round) -> Result<f64, String> {
    match used.params.program("tier") {
        Some(program) => round.sight.number(program, Some(member)),
        None => {
            let attribute = member.recipient.attributes.get(used.params.text("tier"));
            Ok(attribute
                .and_then(serde_json::Value::as_f64)
                .unwrap_or(f64::INFINITY))
        }
    }
}

/// The lowest tier with an eligible member; inside it the inner strategy. When a tier's time is over, it is passed.
pub(super) fn priority(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let tiers: Vec<Result<f64, String>> = eligible
        .iter()
        .map(|one| tier(used, one.candidate, round))
        .collect();
    let passed = passed_tiers(used, round);
    let open = |at: &usize| {
        tiers[*at]
            .as_ref()
            .is_ok_and(|tier| falling(*tier, passed) != Ordering::Greater)
    };
    let lowest = (0..eligible.len())
        .filter(open)
        .filter_map(|at| tiers[at].as_ref().ok().copied())
        .min_by(f64::total_cmp);
    let in_it = |at: &usize| open(at) && tiers[*at].as_ref().is_ok_and(|tier| Some(*tier) == lowest);
    let kept: Vec<usize> = (0..eligible.len()).filter(in_it).collect();
    let inner: Vec<Eligible> = kept.iter().map(|at| eligible[*at]).collect();
    let selection = if inner.is_empty() {
        Selection::of(Vec::new())
    } else {
        dispatch::inner(used, &inner, round)
    };
    selection.spread(&kept, eligible.len(), |at| match &tiers[at] {
        Ok(tier) => lost_by_score(*tier, lowest.unwrap_or(*tier)),
        Err(error) => Reason::RuleError {
            rule: "tier".to_owned(),
            error: error.clone(),
        },
    })
}

/// The first tier whose time is not over, among all members: each has `tier_timeout` from when the work came here.
fn passed_tiers(used: &Use, round: &Round) -> f64 {
    let timeout = used.params.length_us("tier_timeout");
    let over = round.now.since(round.hop_since).checked_div(timeout).unwrap_or(0);
    if over == 0 {
        return f64::NEG_INFINITY;
    }
    let mut tiers: Vec<f64> = round
        .members
        .iter()
        .filter_map(|member| tier(used, member, round).ok())
        .collect();
    tiers.sort_by(f64::total_cmp);
    tiers.dedup();
    let last = tiers.len().saturating_sub(1);
    let at = usize::try_from(over).unwrap_or(last).min(last);
    tiers.get(at).copied().unwrap_or(f64::NEG_INFINITY)
}

/// Weights fall with the room that is left, down to a floor.
pub(super) fn capacity_aware(used: &Use, eligible: &[Eligible], round: &Round) -> Selection {
    let floor = i128::from(numbers::micro(used.params.number("floor")));
    let fallen = |one: &Eligible| -> i64 {
        let max = i128::from(one.candidate.recipient.max_concurrent.max(1));
        let room = i128::from(capacity::available(one.candidate, round.now)) * 1_000_000 / max;
        let weight = i128::from(one.weight) * room.max(floor) / 1_000_000;
        i64::try_from(weight).unwrap_or(i64::MAX)
    };
    let changed: Vec<Eligible> = eligible
        .iter()
        .map(|one| Eligible {
            weight: fallen(one),
            ..*one
        })
        .collect();
    let kept: Vec<usize> = (0..changed.len()).filter(|at| changed[*at].weight > 0).collect();
    let some: Vec<Eligible> = kept.iter().map(|at| changed[*at]).collect();
    if some.is_empty() {
        return Selection::of(vec![Fate::Not(Reason::WeightZero); eligible.len()]);
    }
    dispatch::inner(used, &some, round).spread(&kept, eligible.len(), |_| Reason::WeightZero)
}
