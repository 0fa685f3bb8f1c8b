//! Strategies of prices. Amounts are whole numbers, in micros of their currency; who has not bid left at the gate.

use std::cmp::Ordering;

use super::contract::{Eligible, Round, Selection, Use};
use super::ladder::best_of;
use super::load::{highest, lowest};
use super::matching::some;
use crate::domain::routing::candidate::Bid;
use crate::domain::routing::numbers;
use crate::domain::routing::reason::Reason;

fn bid<'c>(one: &Eligible<'c>) -> Option<&'c Bid> {
    one.candidate.bid.as_ref()
}

fn effective(one: &Eligible) -> i64 {
    bid(one).map_or(i64::MIN, |bid| bid.effective)
}

/// The highest effective bid from the reserve up; the earlier of equals.
fn auction(used: &Use, eligible: &[Eligible]) -> (Vec<usize>, Selection) {
    let reserve = used.params.whole("reserve");
    let kept: Vec<usize> = (0..eligible.len())
        .filter(|at| effective(&eligible[*at]) >= reserve)
        .collect();
    let selection = some(&kept, eligible, |some, _| {
        let at = |one: &Eligible| bid(one).map(|bid| bid.at);
        let order = |left: usize, right: usize| -> Ordering {
            let (left, right) = (&some[left], &some[right]);
            effective(right)
                .cmp(&effective(left))
                .then(at(left).cmp(&at(right)))
        };
        best_of(some, order, |at| numbers::real_signed(effective(&some[at])))
    });
    (kept, selection)
}

fn below_reserve(used: &Use, eligible: &[Eligible], at: usize) -> Reason {
    Reason::BidBelowReserve {
        bid: effective(&eligible[at]),
        reserve: used.params.whole("reserve"),
    }
}

/// The highest bid, which is paid.
pub(super) fn highest_bid(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let (kept, mut selection) = auction(used, eligible);
    let winner = selection.winners().next();
    selection.price = winner
        .and_then(|at| bid(&eligible[kept[at]]))
        .map(|bid| bid.amount);
    selection.spread(&kept, eligible.len(), |at| below_reserve(used, eligible, at))
}

/// The highest bid, which pays the second one and the increment, at least the reserve and at most itself.
pub(super) fn second_price(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let (kept, mut selection) = auction(used, eligible);
    let winner = selection.winners().next().map(|at| kept[at]);
    if let Some(winner) = winner
        && let Some(own) = bid(&eligible[winner])
    {
        let others = (0..eligible.len())
            .filter(|at| *at != winner)
            .map(|at| effective(&eligible[at]));
        let second = others
            .max()
            .map(|second| second.saturating_add(used.params.whole("increment")));
        let reserve = used.params.whole("reserve");
        selection.price = Some(second.unwrap_or(reserve).max(reserve).min(own.amount));
    }
    selection.spread(&kept, eligible.len(), |at| below_reserve(used, eligible, at))
}

/// The lowest ask, or the best of price, quality and reliability by weights.
pub(super) fn lowest_cost(used: &Use, eligible: &[Eligible], _round: &Round) -> Selection {
    let floor = used.params.number("quality_floor");
    let quality = |one: &Eligible| bid(one).map_or(0.0, |bid| numbers::real_signed(bid.quality_micro) / 1e6);
    let kept: Vec<usize> = (0..eligible.len())
        .filter(|at| quality(&eligible[*at]) >= floor)
        .collect();
    let mut selection = some(&kept, eligible, |some, _| {
        let asks: Vec<f64> = some
            .iter()
            .map(|one| bid(one).map_or(f64::MAX, |bid| numbers::real_signed(bid.amount)))
            .collect();
        let weights: Vec<(&str, f64)> = used.params.numbers("weights").collect();
        if weights.is_empty() {
            return lowest(some, &asks);
        }
        let weight = |name: &str| {
            weights
                .iter()
                .find(|(key, _)| *key == name)
                .map_or(0.0, |(_, weight)| *weight)
        };
        let (low, high) = asks.iter().fold((f64::MAX, f64::MIN), |(low, high), ask| {
            (low.min(*ask), high.max(*ask))
        });
        let worth = |(one, ask): (&Eligible, &f64)| {
            let dear = if high > low {
                (ask - low) / (high - low)
            } else {
                0.0
            };
            let sla = bid(one).map_or(0.0, |bid| numbers::real_signed(bid.sla_micro) / 1e6);
            weight("price") * (1.0 - dear) + weight("quality") * quality(one) + weight("sla") * sla
        };
        highest(some, &some.iter().zip(&asks).map(worth).collect::<Vec<_>>())
    });
    let winner = selection.winners().next();
    selection.price = winner
        .and_then(|at| bid(&eligible[kept[at]]))
        .map(|bid| bid.amount);
    selection.spread(&kept, eligible.len(), |at| Reason::ScoreBelowMin {
        score: quality(&eligible[at]),
        min: floor,
    })
}
