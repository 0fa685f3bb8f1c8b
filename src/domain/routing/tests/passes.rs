//! From the work to a winner: the choice of the recipient pool, redirects, drops, claims, and what is explained.

use serde_json::json;

use super::rig::{NOW, Rig, action, pool_id, recipient_id, recipient_pool, required, rule, work};
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::objects::{ActionKind, Explain, RecipientState, RoutingMode, Status, TraitOp};
use crate::domain::routing::pass::Passed;
use crate::domain::routing::pass::{Ends, Refusal, Stopped, eligible_now, route};
use crate::domain::routing::reason::{Note, Reason};
use crate::words::ids::{ClaimQueueId, RuleId};

/// The rules that could not be evaluated.
fn failed(passed: &Passed) -> Vec<RuleId> {
    passed.rule_errors.iter().map(|(id, _)| *id).collect()
}

/// What a strategy lacks is said where it is missed, not only that it lacks something.
#[test]
fn a_strategy_that_lacks_something_says_what() {
    let rig = Rig::new("sticky", &["a"]);
    let decision = rig.look().decision;
    assert_eq!(decision.outcome, Outcome::Error);
    // Nobody was looked at: as many are told of as were considered.
    let explanation = &decision.explanation;
    assert_eq!((explanation.considered(), explanation.candidates.len()), (0, 0));
    assert_eq!(decision.notes[0].code(), "strategy.unusable");
    let said = &decision.summary;
    assert!(
        said.contains("cannot be used: /config/strategy_options/sticky/key: "),
        "{said}"
    );
}

#[test]
fn the_first_true_rule_selects_and_what_does_not_route_is_skipped() {
    let mut rig = Rig::new("", &["a"]);
    rig.request.recipient_pool = None;
    assert_eq!(rig.look().decision.outcome, Outcome::NoRuleMatched);
    rig.world.default_recipient_pool = Some(pool_id(1));
    assert_eq!(rig.winner(&rig.look()), "a");

    let mut second = recipient_pool(2);
    second.status = Status::Paused;
    rig.add_pool(second);
    let select = |to| action(ActionKind::SelectPool, Some(to));
    let mut vip = rule("vip", None, "work.attributes.tier == \"vip\"", select(2));
    vip.priority = 10;
    let mut all = rule("all", None, "work.kind == \"ticket\"", select(1));
    all.priority = 20;
    rig.tenant_rules(vec![all, vip.clone()]);
    rig.request.work = work(&json!({"tier": "std"}));
    let passed = rig.look();
    let lines = &passed.decision.explanation.rules;
    assert_eq!((lines[0].rule.as_str(), lines[0].result), ("vip", false));
    assert_eq!(
        lines[0].because,
        "work.attributes.tier == \"vip\" is false (tier = \"std\")"
    );
    assert_eq!(
        (lines[1].target.as_deref(), lines[1].result),
        (Some("pool-1"), true)
    );

    rig.request.work = work(&json!({"tier": "vip"}));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    assert!(passed.decision.explanation.rules[0].skipped);
    assert_eq!(
        passed.decision.notes,
        [Note::Skipped {
            recipient_pool: "pool-2".to_owned()
        }]
    );

    rig.tenant_rules(vec![vip]);
    assert_eq!(rig.look().decision.outcome, Outcome::PoolUnroutable);
    let mut drop = rule("spam", None, "true", action(ActionKind::Drop, None));
    drop.priority = 0;
    rig.tenant_rules(vec![drop]);
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Dropped);
    assert_eq!(passed.ends, Ends::Over);
    assert!(
        passed.decision.summary.contains("spam"),
        "{}",
        passed.decision.summary
    );
}

#[test]
fn test_50_a_rule_that_fails_is_told_and_does_not_match() {
    let mut rig = Rig::new("", &["a", "b"]);
    rig.request.recipient_pool = None;
    let broken = rule(
        "broken",
        None,
        "work.attributes.n / work.attributes.zero == 1",
        action(ActionKind::SelectPool, Some(9)),
    );
    let all = rule("whole", None, "true", action(ActionKind::SelectPool, Some(1)));
    rig.tenant_rules(vec![broken.clone(), all]);
    rig.request.work = work(&json!({"n": 1, "zero": 0}));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    assert_eq!(failed(&passed), [broken.id]);
    let line = &passed.decision.explanation.rules[0];
    assert!(
        !line.result && line.error.as_deref().is_some_and(|error| error.contains("zero")),
        "{line:?}"
    );

    // A filter that fails rejects that candidate alone.
    let filter = rule(
        "senior",
        Some(1),
        "recipient.attributes.level >= 2",
        action(ActionKind::Filter, None),
    );
    rig.attach(vec![filter.clone()]);
    rig.member("b", |recipient, _| {
        drop(recipient.attributes.insert("level".to_owned(), json!(3)));
    });
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "b");
    let verdict = passed.decision.explanation.verdict(recipient_id(1)).unwrap();
    assert!(matches!(&verdict.reason, Some(Reason::RuleError { rule, .. }) if rule == "senior"));
    assert_eq!(failed(&passed), [broken.id, filter.id]);
    assert!(passed.rule_errors.iter().all(|(_, error)| !error.is_empty()));
}

#[test]
fn rules_of_the_recipient_pool_filter_boost_redirect_and_drop() {
    let mut rig = Rig::new("weighted_random", &["a", "b"]);
    rig.add_pool(recipient_pool(2));
    let moved = super::rig::candidate(9, "z");
    rig.world.candidates.insert(pool_id(2), vec![moved].into());
    let mut boost = rule(
        "boost",
        Some(1),
        "recipient.name == \"b\"",
        action(ActionKind::Boost, None),
    );
    boost.action.boost = -1.0;
    let redirect = rule(
        "redirect",
        Some(1),
        "work.attributes.away",
        action(ActionKind::Redirect, Some(2)),
    );
    let drop = rule(
        "drop",
        Some(1),
        "work.attributes.spam",
        action(ActionKind::Drop, None),
    );
    rig.attach(vec![boost, redirect, drop]);
    rig.request.work = work(&json!({"away": false, "spam": false}));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    let verdict = passed.decision.explanation.verdict(recipient_id(2)).unwrap();
    assert_eq!(verdict.reason, Some(Reason::WeightZero));
    rig.request.work = work(&json!({"away": true, "spam": false}));
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "z");
    assert_eq!(passed.trail, [pool_id(1)]);
    rig.request.work = work(&json!({"away": false, "spam": true}));
    assert_eq!(rig.look().decision.outcome, Outcome::Dropped);
}

/// The recipient pool of the example.
fn example() -> Rig {
    let mut rig = Rig::new(
        "",
        &["Jordan Reyes", "Kim Osei", "Lee Park", "Mo Adler", "Oz Levin"],
    );
    for name in ["Jordan Reyes", "Kim Osei", "Mo Adler", "Oz Levin"] {
        rig.member(name, |recipient, _| {
            drop(
                recipient
                    .attributes
                    .insert("language".to_owned(), json!(["en", "es"])),
            );
        });
    }
    rig.member("Lee Park", |recipient, _| {
        drop(recipient.attributes.insert("language".to_owned(), json!(["en"])));
    });
    rig.member("Jordan Reyes", |recipient, live| {
        recipient.weight_micro = 2_000_000;
        (recipient.max_concurrent, live.current) = (5, 2);
        live.last_assigned_at = Some(crate::words::time::Micros(NOW.0 - 90_500_000));
    });
    rig.member("Mo Adler", |recipient, live| {
        (recipient.max_concurrent, live.current) = (5, 5);
    });
    rig.member("Oz Levin", |_, live| live.state = RecipientState::Offline);
    rig.world.traits = std::sync::Arc::new(vec![required("language", TraitOp::Contains)]);
    rig.configure(1, |known| known.config.default_timeout_us = 30_000_000);
    rig.request.work = work(&json!({"language": "es"}));
    rig
}

/// The decision of the specification, member for member.
#[test]
fn a_decision_on_the_wire_has_the_shape_of_the_specification() {
    let rig = example();
    let passed = rig.look();
    let wire = passed.decision.to_json(Explain::First);
    assert_eq!(wire["outcome"], "assigned");
    assert_eq!(
        wire["summary"],
        "Jordan Reyes: next in weighted turn among 2 of 5 eligible; language \"es\" required."
            .replace('"', "")
    );
    let explanation = &wire["explanation"];
    assert_eq!(explanation["stages"][0]["kind"], "gate");
    assert_eq!(explanation["stages"][0]["out"], 2);
    assert_eq!(
        explanation["stages"][1]["strategy"],
        "smooth_weighted_round_robin@1"
    );
    assert_eq!(
        explanation["stages"][1]["state"]["after"],
        json!({"Jordan Reyes": -1_000_000, "Kim Osei": 1_000_000})
    );
    let candidates = explanation["candidates"].as_array().unwrap();
    assert_eq!(
        candidates[0]["numbers"],
        json!({"w_micro": 2_000_000, "cur": 2_000_000, "utilization": "2/5", "idle_ms": 90_500})
    );
    assert_eq!(
        candidates[1]["reason"],
        json!({"code": "lost.turn", "current": 1_000_000, "winner_current": 2_000_000})
    );
    assert_eq!(
        candidates[2]["reason"],
        json!({"code": "trait.mismatch", "trait": "language", "want": "es", "have": ["en"]})
    );
    assert_eq!(
        candidates[3]["reason"],
        json!({"code": "capacity.concurrent", "current": 5, "max": 5})
    );
    assert_eq!(candidates[4]["reason"]["code"], "state.offline");
    assert_eq!(
        explanation["histogram"],
        json!({"lost.turn": 1, "trait.mismatch": 1, "capacity.concurrent": 1, "state.offline": 1})
    );
    assert_eq!(explanation["nearest_miss"]["recipient"], "Kim Osei");
    assert_eq!(
        explanation["nearest_miss"]["would_win_if"],
        "one more pick: its turn is next"
    );
    assert_eq!(wire["randomness"]["used"], false);
    assert_eq!(wire["randomness"]["propensity"], 1.0);
    assert_eq!(passed.decision.winners[0].deadline_at, Some(NOW.plus(30_000_000)));
}

#[test]
fn a_large_recipient_pool_keeps_winners_runners_up_and_samples() {
    let names: Vec<String> = (0..300).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut rig = Rig::new("", &names);
    for name in &names[..40] {
        rig.member(name, |_, live| live.state = RecipientState::Offline);
    }
    let passed = rig.look();
    let wire = passed.decision.to_json(Explain::First);
    let kept = wire["explanation"]["candidates"].as_array().unwrap();
    let count = |code: &str| kept.iter().filter(|one| one["reason"]["code"] == code).count();
    assert_eq!(kept.iter().filter(|one| one["verdict"] == "won").count(), 1);
    assert_eq!(count("state.offline"), 20);
    assert_eq!(count("lost.turn"), 25);
    assert_eq!(
        wire["explanation"]["histogram"],
        json!({"state.offline": 40, "lost.turn": 259})
    );
    assert_eq!(wire["explanation"]["left_out"], 300 - 46);
    let whole = passed.decision.to_json(Explain::All);
    assert_eq!(whole["explanation"]["candidates"].as_array().unwrap().len(), 300);
    let winners = passed.decision.to_json(Explain::Winners);
    assert_eq!(winners["explanation"]["candidates"].as_array().unwrap().len(), 1);
}

#[test]
fn work_in_the_mode_claim_is_offered_to_whoever_is_eligible_then() {
    let mut rig = Rig::new("", &["a", "b"]);
    let queue = ClaimQueueId([7; 16]);
    rig.configure(1, |known| {
        known.config.routing_mode = RoutingMode::Claim;
        known.config.claim_queue = Some(queue);
    });
    rig.member("b", |_, live| live.state = RecipientState::Offline);
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::QueuedForClaim);
    let Ends::Offered(offered) = &passed.ends else {
        panic!("{:?}", passed.ends)
    };
    assert_eq!((offered.claim_queue, &offered.to), (Some(queue), &None));
    let eligible = eligible_now(&rig.request, rig.now, pool_id(1), &rig.world).unwrap();
    assert_eq!(eligible[0], (recipient_id(1), None));
    assert!(matches!(eligible[1].1, Some(Reason::StateOffline { .. })));
}

#[test]
fn test_38_manual_assignment_meets_the_same_checks() {
    let mut rig = Rig::new("", &["a", "b"]);
    rig.request.recipient = Some(recipient_id(2));
    assert_eq!(rig.winner(&rig.look()), "b");
    rig.member("b", |recipient, live| {
        (recipient.max_concurrent, live.current) = (1, 1);
    });
    let refused = route(&rig.request, rig.now, super::rig::decision_id(1), &rig.world);
    assert!(matches!(
        refused.unwrap_err(),
        Stopped::Refused(Refusal::AtCapacity(Reason::CapacityConcurrent {
            current: 1,
            max: 1
        }))
    ));
    rig.request.force = true;
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "b");
    assert_eq!(passed.decision.outcome, Outcome::AssignedOverCapacity);
    assert!(passed.decision.winners[0].over_capacity);
    rig.member("b", |_, live| live.state = RecipientState::Offline);
    let refused = route(&rig.request, rig.now, super::rig::decision_id(1), &rig.world);
    assert!(matches!(
        refused.unwrap_err(),
        Stopped::Refused(Refusal::NotEligible(Reason::StateOffline { .. }))
    ));
    rig.request.recipient = Some(recipient_id(7));
    let refused = route(&rig.request, rig.now, super::rig::decision_id(1), &rig.world);
    assert!(matches!(
        refused.unwrap_err(),
        Stopped::Refused(Refusal::NotMember)
    ));
}

#[test]
fn work_that_cannot_be_used_is_refused_with_its_places() {
    let mut rig = Rig::new("", &["a"]);
    rig.request.work.units = 0;
    rig.request.work.priority = 10;
    rig.request.work.tags = vec!["t".to_owned(); 65];
    rig.request
        .work
        .attributes
        .insert("long".to_owned(), json!(vec![1; 257]));
    let Err(Stopped::Invalid(faults)) = route(&rig.request, rig.now, super::rig::decision_id(1), &rig.world)
    else {
        panic!("it was accepted")
    };
    let pointers: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
    assert_eq!(
        pointers,
        ["priority", "units", "tags", "attributes/long"].map(|field| format!("/{}/{field}", "work"))
    );

    let mut rig = Rig::new("", &["a"]);
    rig.request.strategy = Some("roundrobin".to_owned());
    let Err(Stopped::Invalid(faults)) = route(&rig.request, rig.now, super::rig::decision_id(1), &rig.world)
    else {
        panic!("it was accepted")
    };
    assert_eq!(
        (faults[0].pointer.as_str(), faults[0].code),
        ("/strategy", "strategy.unknown")
    );
    assert!(faults[0].detail.contains("round_robin"), "{}", faults[0].detail);
}
