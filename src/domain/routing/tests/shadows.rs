//! Shadow campaigns: what a contender would have said, and the numbers of its report.

use std::collections::BTreeMap;

use super::rig::{Rig, recipient_id};
use crate::domain::routing::shadow::{Contender, Tally, opinion, wilson95};

fn contender(strategy: &str) -> Contender {
    Contender {
        strategy: Some(strategy.to_owned()),
        strategy_options: BTreeMap::new(),
        pipeline: None,
    }
}

#[test]
fn value_24_wilson() {
    let check = |k, n, low: f64, high: f64| {
        let (found_low, found_high) = wilson95(k, n).unwrap();
        assert!(
            (found_low - low).abs() < 5e-7 && (found_high - high).abs() < 5e-7,
            "{found_low} {found_high}"
        );
    };
    check(87, 100, 0.790_196, 0.922_428);
    check(0, 10, 0.0, 0.277_533);
    assert_eq!(wilson95(0, 0), None);
}

/// Test 53, its pure part: a campaign has its own memory, and production that never draws gives no value.
#[test]
fn test_53_a_campaign_writes_nothing_but_its_own_memory() {
    let mut rig = Rig::new("round_robin", &["a", "b", "c"]);
    let plain = Rig::new("round_robin", &["a", "b", "c"]).winners(30);
    let mut tally = Tally::default();
    let (mut memory, mut winners) = (BTreeMap::new(), Vec::new());
    for _ in 0..30 {
        let request = rig.request.clone();
        let passed = rig.route();
        winners.push(rig.winner(&passed));
        let said = opinion(
            &contender("smooth_weighted_round_robin"),
            &request,
            &passed.read,
            &memory,
            &passed.decision,
            true,
        )
        .unwrap();
        assert!(said.agrees);
        for (id, stage, state) in said.states.clone() {
            memory.insert((id, stage), state);
        }
        tally.add(&said, Some(passed.decision.winners[0].recipient), 40);
        tally.valued(said.agrees, said.chance, said.production_chance, 1.0);
        for member in rig.world.candidates.values_mut().flatten() {
            member.live.current = 0;
        }
    }
    assert_eq!(winners.join(" "), plain);
    let report = tally.report(&BTreeMap::from([(recipient_id(1), "a".to_owned())]), true);
    assert_eq!(report["agreement"]["k"], 30);
    assert_eq!(
        (&report["value"], &report["value_reason"]),
        (&serde_json::Value::Null, &"no_overlap".into())
    );
    assert_eq!(report["total_variation"], 0.0);
    assert_eq!(report["micros"], serde_json::json!({"p50": 63, "p99": 63}));
}

#[test]
fn values_are_weighed_where_production_drew() {
    let mut rig = Rig::new("random", &["a", "b"]);
    let mut tally = Tally::default();
    let memory = BTreeMap::new();
    for number in 0..600 {
        rig.next = number;
        let passed = rig.look();
        let said = opinion(
            &contender("round_robin"),
            &rig.request,
            &passed.read,
            &memory,
            &passed.decision,
            false,
        )
        .unwrap();
        // The contender has no memory here and always chooses a, whose work is worth 1; that of b is worth 0.
        assert_eq!(said.winner, Some(recipient_id(1)));
        let produced = passed.decision.winners[0].recipient;
        let value = if produced == recipient_id(1) { 1.0 } else { 0.0 };
        tally.add(&said, Some(produced), 10);
        tally.valued(said.agrees, said.chance, said.production_chance, value);
    }
    let report = tally.report(&BTreeMap::new(), false);
    let value = &report["value"];
    assert_eq!(
        (value["snips"].as_f64(), value["direct"]["mean"].as_f64()),
        (Some(1.0), Some(1.0))
    );
    assert!((value["ips"].as_f64().unwrap() - 1.0).abs() < 0.1, "{value}");
    assert!((value["ess"].as_f64().unwrap() - 300.0).abs() < 40.0, "{value}");
    assert_eq!(report["value"]["direct"]["label"], "selection_biased");
    assert_eq!(report["rank_of_production_winner"].as_object().unwrap().len(), 2);
}

#[test]
fn a_campaign_that_fails_or_is_slow_stops_itself() {
    let mut rig = Rig::new("random", &["a", "b"]);
    let passed = rig.route();
    let said = opinion(
        &contender("random"),
        &rig.request,
        &passed.read,
        &BTreeMap::new(),
        &passed.decision,
        false,
    )
    .unwrap();
    assert!(said.agrees && said.chance == Some(0.5));
    let mut tally = Tally::default();
    for _ in 0..990 {
        tally.add(&said, said.winner, 100);
    }
    assert_eq!(tally.stop_reason(1_000), None);
    for _ in 0..10 {
        tally.failed(100);
    }
    assert!(
        tally
            .stop_reason(1_000)
            .is_some_and(|why| why.contains("10 of 1000"))
    );
    let mut slow = Tally::default();
    for number in 0..1_000 {
        slow.add(&said, said.winner, if number % 50 == 0 { 5_000 } else { 100 });
    }
    assert!(slow.stop_reason(1_000).is_some() && slow.stop_reason(10_000).is_none());
    assert!(
        opinion(
            &contender("nobody"),
            &rig.request,
            &passed.read,
            &BTreeMap::new(),
            &passed.decision,
            false
        )
        .is_err()
    );
}
