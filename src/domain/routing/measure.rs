//! Numbers of a candidate that pipelines score and sort by.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use super::duration;
use serde_json::Value;

use super::capacity;
use super::distance;
use super::numbers;
use super::pipeline::By;
use super::sight;
use super::strategies::contract::{Eligible, Round};
use super::wants;

/// The number; `None` where there is none, an error where an expression fails.
pub(super) fn measure(by: &By, one: &Eligible, round: &Round) -> Result<Option<f64>, String> {
    let candidate = one.candidate;
    let (recipient, live) = (&candidate.recipient, &candidate.live);
    Ok(match by {
        By::Utilization => {
            let (used, limit) = numbers::utilization(recipient, live);
            Some(numbers::real(used) / numbers::real(limit))
        }
        By::Available => Some(f64::from(capacity::available(candidate, round.now))),
        By::Idle => Some(sight::idle_us(candidate, round.now).map_or(f64::MAX, numbers::real)),
        By::Weight => Some(numbers::real_signed(one.weight)),
        By::Distance => match (&round.work.location, &recipient.location) {
            (Some(from), Some(to)) => Some(distance::between(from, to)),
            _ => None,
        },
        By::SlaHeadroom => round
            .work
            .deadline_at
            .map(|deadline| headroom_us(one, round, deadline.0)),
        By::Bid => candidate
            .bid
            .as_ref()
            .map(|bid| numbers::real_signed(bid.effective)),
        By::Ask => candidate.bid.as_ref().map(|bid| numbers::real_signed(bid.amount)),
        By::DailyHeadroom => Some(match recipient.daily_limit {
            0 => f64::MAX,
            limit => f64::from(limit.saturating_sub(capacity::daily_count(candidate, round.now))),
        }),
        By::Skill => Some(skill(one, round, &[])),
        By::Score => Some(one.score),
        By::Attribute(key) => recipient.attributes.get(key).and_then(number_of),
        By::Cel(program) => Some(round.sight.number(program, Some(candidate))?),
    })
}

fn number_of(value: &Value) -> Option<f64> {
    value
        .as_f64()
        .or_else(|| value.as_bool().map(|truth| f64::from(u8::from(truth))))
}

/// Microseconds to spare before a deadline: open assignments, and this one, take as long as its work takes.
pub(super) fn headroom_us(one: &Eligible, round: &Round, deadline: i64) -> f64 {
    let declared = one.candidate.recipient.attributes.get("declared_eta");
    let declared_us = declared.and_then(|eta| match eta {
        Value::String(text) => duration::read(text).map(numbers::real),
        other => other.as_f64().map(|seconds| seconds * 1e6),
    });
    let each = one.candidate.learned.ewma_us.or(declared_us).unwrap_or(0.0);
    let eta = f64::from(one.candidate.live.current) * each;
    numbers::real_signed(deadline.saturating_sub(round.now.0)) - eta
}

/// How well it matches the preferred traits that the work wants: 1 is all of them. `weights` names some, else all preferred
/// ones of the tenant count alike.
pub(super) fn skill(one: &Eligible, round: &Round, weights: &[(&str, f64)]) -> f64 {
    let (mut total, mut reached) = (0.0, 0.0);
    let preferred = round.traits.iter().filter(|known| match weights {
        [] => !known.required,
        some => some.iter().any(|(key, _)| *key == known.key),
    });
    for known in preferred {
        let Some(want) = round
            .work
            .attributes
            .get(&known.key)
            .filter(|want| !want.is_null())
        else {
            continue;
        };
        let weight = weights
            .iter()
            .find(|(key, _)| *key == known.key)
            .map_or(1.0, |(_, weight)| *weight);
        total += weight;
        let Some(have) = one.candidate.recipient.attributes.get(&known.key) else {
            continue;
        };
        reached += weight
            * match (have.as_f64(), want.as_f64()) {
                (Some(have), Some(want)) if want > 0.0 => (have / want).clamp(0.0, 1.0),
                _ => f64::from(u8::from(wants::fits(known.op, have, want))),
            };
    }
    if total > 0.0 { reached / total } else { 1.0 }
}
