//! Bids, loads, likeness, time: strategies by a number.

use std::sync::Arc;

use serde_json::json;

use super::rig::{NOW, Rig, decision_id, pool_id, recipient_id, work};
use crate::domain::routing::candidate::Bid;
use crate::domain::routing::objects::{Location, RecipientState, Trait, TraitOp, TraitType};
use crate::domain::routing::reason::{Reason, Rung};
use crate::words::time::Micros;

fn bid(amount: i64, effective: i64, at: i64) -> Bid {
    Bid {
        amount,
        effective,
        at: Micros(at),
        expires_at: None,
        quality_micro: 1_000_000,
        sla_micro: 0,
        wallet: None,
    }
}

fn auction(strategy: &str, bids: &[Bid]) -> Rig {
    let names = ["a", "b", "c"];
    let mut rig = Rig::new(strategy, &names[..bids.len()]);
    let members = rig.world.candidates.get_mut(&pool_id(1)).unwrap();
    for (member, bid) in members.iter_mut().zip(bids) {
        member.bid = Some(bid.clone());
    }
    rig
}

#[test]
fn value_24_auctions() {
    let rig = auction("highest_bid", &[bid(100, 90, 1), bid(95, 95, 2)]);
    let passed = rig.look();
    assert_eq!(
        (rig.winner(&passed).as_str(), passed.decision.cost_micros),
        ("b", 95)
    );
    let passed = auction("highest_bid", &[bid(100, 90, 1)]).look();
    assert_eq!(passed.decision.cost_micros, 100);
    for (reserve, pays) in [(8, 8), (0, 7)] {
        let mut rig = auction("second_price", &[bid(10, 10, 1), bid(7, 7, 1), bid(5, 5, 1)]);
        rig.options("second_price", &json!({"reserve": reserve}));
        let passed = rig.look();
        assert_eq!(
            (rig.winner(&passed).as_str(), passed.decision.cost_micros),
            ("a", pays)
        );
    }
    let mut rig = auction("second_price", &[bid(10, 10, 1), bid(9, 9, 1)]);
    rig.options("second_price", &json!({"increment": 5}));
    assert_eq!(rig.look().decision.cost_micros, 10);
    // The earlier of equal bids wins; what is below the reserve leaves.
    let mut rig = auction("highest_bid", &[bid(9, 9, 2), bid(9, 9, 1), bid(3, 3, 0)]);
    rig.options("highest_bid", &json!({"reserve": 4}));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "b");
    let verdict = passed.decision.explanation.verdict(recipient_id(3)).unwrap();
    assert_eq!(
        verdict.reason,
        Some(Reason::BidBelowReserve { bid: 3, reserve: 4 })
    );
    // Nobody has bid: they leave at the gate.
    let passed = Rig::new("second_price", &["a"]).look();
    assert_eq!(passed.zero_match, [(pool_id(1), "bid.none")]);
}

#[test]
fn the_lowest_cost_from_a_floor_of_quality_up() {
    let mut cheap = bid(10, 10, 1);
    cheap.quality_micro = 200_000;
    let mut rig = auction("lowest_cost", &[cheap, bid(20, 20, 1), bid(30, 30, 1)]);
    assert_eq!(rig.winner(&rig.look()), "a");
    rig.options("lowest_cost", &json!({"quality_floor": 0.5}));
    assert_eq!(rig.winner(&rig.look()), "b");
    rig.options("lowest_cost", &json!({"weights": {"price": 0.1, "quality": 1}}));
    assert_eq!(rig.winner(&rig.look()), "b");
}

/// Value of section 12: A 1 of 2 used, B 8 of 10.
#[test]
fn value_24_most_available_is_not_least_utilized() {
    for (strategy, winner) in [("most_available", "B"), ("least_utilized", "A")] {
        let mut rig = Rig::new(strategy, &["A", "B"]);
        rig.member("A", |recipient, live| {
            (recipient.max_concurrent, live.current) = (2, 1);
        });
        rig.member("B", |recipient, live| {
            (recipient.max_concurrent, live.current) = (10, 8);
        });
        assert_eq!(rig.winner(&rig.look()), winner, "{strategy}");
    }
}

#[test]
fn equals_are_told_apart_by_the_ladder() {
    let mut rig = Rig::new("least_loaded", &["a", "b", "c", "d"]);
    rig.member("a", |recipient, live| {
        (recipient.max_concurrent, live.current) = (4, 1);
    });
    rig.member("b", |recipient, live| {
        (recipient.max_concurrent, live.current) = (5, 1);
        live.last_assigned_at = Some(Micros(NOW.0 - 10));
    });
    rig.member("c", |recipient, live| {
        (recipient.max_concurrent, live.current) = (5, 1);
        live.last_assigned_at = Some(Micros(NOW.0 - 20));
    });
    rig.member("d", |recipient, live| {
        (recipient.max_concurrent, live.current) = (5, 1);
        live.last_assigned_at = Some(Micros(NOW.0 - 20));
    });
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "c");
    let on = |number| match &passed
        .decision
        .explanation
        .verdict(recipient_id(number))
        .unwrap()
        .reason
    {
        Some(Reason::LostTie { on }) => *on,
        other => panic!("{other:?}"),
    };
    assert_eq!((on(1), on(2), on(4)), (Rung::Utilization, Rung::Idle, Rung::Id));
}

#[test]
fn nearest_by_the_way_over_the_earth() {
    let mut rig = Rig::new("nearest", &["near", "far", "nowhere"]);
    let place = |latitude, longitude| Some(Location { latitude, longitude });
    rig.request.work.location = place(33.94, -118.40);
    rig.member("near", |recipient, _| recipient.location = place(34.0, -118.0));
    rig.member("far", |recipient, _| recipient.location = place(36.12, -86.67));
    assert_eq!(rig.winner(&rig.look()), "near");
    rig.options("nearest", &json!({"max_radius": 100_000}));
    let passed = rig.look();
    let code = |number| {
        passed
            .decision
            .explanation
            .verdict(recipient_id(number))
            .unwrap()
            .reason
            .as_ref()
            .unwrap()
            .code()
    };
    assert_eq!((code(2), code(3)), ("distance.outside", "distance.unknown"));
}

#[test]
fn skills_are_matched_by_weight() {
    let mut rig = Rig::new("skill_match", &["a", "b"]);
    let preferred = |key: &str, op| Trait {
        key: key.to_owned(),
        kind: TraitType::Int,
        op,
        required: false,
        relax_after_us: 0,
    };
    rig.world.traits = Arc::new(vec![
        preferred("billing", TraitOp::Gte),
        preferred("spanish", TraitOp::Gte),
    ]);
    rig.request.work = work(&json!({"billing": 4, "spanish": 4}));
    rig.member("a", |recipient, _| {
        drop(recipient.attributes.insert("billing".to_owned(), json!(4)));
    });
    rig.member("b", |recipient, _| {
        recipient.attributes.insert("billing".to_owned(), json!(1));
        recipient.attributes.insert("spanish".to_owned(), json!(8));
    });
    // a: (1 + 0) / 2; b: (0.25 + 1) / 2.
    assert_eq!(rig.winner(&rig.look()), "b");
    rig.options("skill_match", &json!({"traits": {"billing": 3, "spanish": 1}}));
    // a: 3 / 4; b: (0.75 + 1) / 4.
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    let verdict = passed.decision.explanation.verdict(recipient_id(2)).unwrap();
    assert_eq!(verdict.numbers.as_ref().unwrap().score, Some(0.437_5));
    rig.options("skill_match", &json!({"min_score": 0.9}));
    assert_eq!(rig.look().zero_match, [(pool_id(1), "score.below_min")]);
}

#[test]
fn test_27_tiers_fall_member_by_member_and_by_time() {
    let mut rig = Rig::new("priority", &["a", "b", "c", "d"]);
    for (name, tier) in [("a", 1), ("b", 1), ("c", 2), ("d", 3)] {
        rig.member(name, |recipient, _| {
            drop(recipient.attributes.insert("tier".to_owned(), json!(tier)));
        });
    }
    rig.options(
        "priority",
        &json!({"inner": "least_loaded", "tier_timeout": "60s"}),
    );
    // Each rejects: the next member, then the next tier; nobody twice.
    let mut order = Vec::new();
    for number in 0..5 {
        let passed = rig.look();
        order.push(rig.winner(&passed));
        if let Some(winner) = passed.decision.winners.first() {
            rig.world
                .tried
                .push((winner.recipient, decision_id(100 + number)));
        }
    }
    assert_eq!(order.join(" "), "a b c d -");
    // The time of the first tier is over: its members are passed, though they are free.
    rig.world.tried.clear();
    (rig.request.waiting_since, rig.request.hop_since) = (Some(NOW), Some(NOW));
    for (seconds, winner) in [(59, "a"), (60, "c"), (120, "d"), (3_000, "d")] {
        rig.now = NOW.plus(seconds * 1_000_000);
        assert_eq!(rig.winner(&rig.look()), winner, "{seconds}");
    }
    rig.member("c", |_, live| live.state = RecipientState::Offline);
    rig.now = NOW.plus(60_000_000);
    assert_eq!(rig.winner(&rig.look()), "d");
}

#[test]
fn deadlines_paces_and_broadcasts() {
    let mut rig = Rig::new("sla_deadline", &["a", "b"]);
    rig.request.work.deadline_at = Some(NOW.plus(60_000_000));
    rig.member("a", |_, live| live.current = 2);
    rig.member("b", |_, live| live.current = 5);
    for member in rig.world.candidates.get_mut(&pool_id(1)).unwrap() {
        member.learned.ewma_us = Some(20_000_000.0);
    }
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    let verdict = passed.decision.explanation.verdict(recipient_id(2)).unwrap();
    assert_eq!(
        verdict.reason,
        Some(Reason::SlaCannotMeet { headroom_ms: -40_000 })
    );

    let mut rig = Rig::new("quota_pacing", &["a", "b"]);
    rig.options("quota_pacing", &json!({"quota": 24, "window": "24h"}));
    let start = crate::domain::routing::strategies::pacing::window_start(NOW, 86_400_000_000);
    rig.now = start.plus(12 * 3_600_000_000);
    let members = rig.world.candidates.get_mut(&pool_id(1)).unwrap();
    (members[0].learned.delivered, members[0].learned.delivered_since) = (14, Some(start));
    (members[1].learned.delivered, members[1].learned.delivered_since) = (11, Some(start));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "b");
    let verdict = passed.decision.explanation.verdict(recipient_id(1)).unwrap();
    assert_eq!(
        verdict.reason,
        Some(Reason::PacingAhead {
            delivered: 14,
            target: 12.0
        })
    );

    let mut rig = Rig::new("broadcast", &["a", "b", "c"]);
    assert_eq!(rig.look().decision.winners.len(), 3);
    rig.options("broadcast", &json!({"min": 4}));
    assert_eq!(rig.look().decision.winners.len(), 0);
    let rig = Rig::new("shark_tank", &["a", "b"]);
    let crate::domain::routing::pass::Ends::Offered(offered) = rig.look().ends else {
        panic!("it is offered")
    };
    assert_eq!(offered.to, Some(vec![recipient_id(1), recipient_id(2)]));
    assert_eq!(offered.expires_at, NOW.plus(60_000_000));
}
