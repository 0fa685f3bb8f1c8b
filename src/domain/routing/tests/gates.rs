//! The gate: order of the checks, busy policies, traits, flow, duplicates.

use std::sync::Arc;

use serde_json::json;

use super::rig::{NOW, Rig, action, decision_id, pool_id, recipient_id, required, rule, work};
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::objects::{
    ActionKind, BusyPolicy, Dedup, Explain, FlowControl, Hours, OnDuplicate, OnLimit, RecipientState, Status,
    TraitOp,
};
use crate::domain::routing::pass::{Ends, Flow};
use crate::domain::routing::reason::{Note, Reason};
use crate::words::time::Micros;

/// One member that fails every check.
fn hopeless() -> Rig {
    let mut rig = Rig::new("highest_bid", &["a"]);
    rig.member("a", |recipient, live| {
        recipient.status = Status::Paused;
        live.state = RecipientState::Offline;
        live.cooldown_until = Some(NOW.plus(1));
        (recipient.max_concurrent, live.current) = (3, 3);
        recipient.schedule = Some(Hours {
            timezone: None,
            windows: Vec::new(),
            exceptions: Vec::new(),
        });
    });
    rig.world.traits = Arc::new(vec![required("language", TraitOp::Contains)]);
    rig.request.work = work(&json!({"language": "es"}));
    rig.attach(vec![rule(
        "never",
        Some(1),
        "false",
        action(ActionKind::Filter, None),
    )]);
    rig.configure(1, |known| {
        known.config.flow_control = Some(FlowControl {
            rate: None,
            concurrency: 1,
            on_limit: OnLimit::Queue,
        });
    });
    rig.world.flows.insert(
        pool_id(1),
        Flow {
            open: 1,
            recent: 0,
            oldest: None,
        },
    );
    rig
}

#[test]
fn test_19_the_first_failing_check_is_the_reason_and_all_are_told_when_asked() {
    let order = [
        "status.paused",
        "state.offline",
        "cooldown",
        "capacity.concurrent",
        "schedule.closed",
        "trait.missing",
        "rule.false",
        "flow.limited",
        "bid.none",
    ];
    let rig = hopeless();
    let verdict = &rig.look().decision.explanation.candidates[0];
    assert_eq!(
        (verdict.reason.as_ref().unwrap().code(), verdict.also.len()),
        (order[0], 0)
    );
    let mut rig = hopeless();
    rig.request.explain = Some(Explain::All);
    let verdict = &rig.look().decision.explanation.candidates[0];
    let all: Vec<&str> = verdict
        .reason
        .iter()
        .chain(&verdict.also)
        .map(Reason::code)
        .collect();
    assert_eq!(all, order);
    // As each is mended, the next one is the reason.
    let mut rig = hopeless();
    for code in order {
        let verdict = rig.look().decision.explanation.candidates[0].clone();
        assert_eq!(verdict.reason.as_ref().unwrap().code(), code);
        match code {
            "rule.false" => rig.attach(Vec::new()),
            "flow.limited" => rig.world.flows.clear(),
            _ => rig.member("a", |recipient, live| match code {
                "status.paused" => recipient.status = Status::Active,
                "state.offline" => live.state = RecipientState::Available,
                "cooldown" => live.cooldown_until = Some(NOW),
                "capacity.concurrent" => live.current = 2,
                "schedule.closed" => recipient.schedule = None,
                "trait.missing" => drop(recipient.attributes.insert("language".to_owned(), json!(["es"]))),
                _ => {}
            }),
        }
        if code == "rule.false" {
            rig.configure(1, |known| {
                known.config.flow_control = Some(FlowControl {
                    rate: None,
                    concurrency: 1,
                    on_limit: OnLimit::Queue,
                });
            });
        }
    }
}

#[test]
fn test_18_busy_members_under_the_three_policies() {
    let mut rig = Rig::new("", &["a", "b"]);
    rig.member("a", |_, live| live.state = RecipientState::Busy);
    let winner = |rig: &mut Rig, policy| {
        rig.configure(1, |known| known.config.busy_policy = policy);
        let passed = rig.look();
        let reason = passed
            .decision
            .explanation
            .verdict(recipient_id(1))
            .unwrap()
            .reason
            .clone();
        (rig.winner(&passed), reason.map(|reason| reason.code()))
    };
    assert_eq!(
        winner(&mut rig, BusyPolicy::Exclude),
        ("b".to_owned(), Some("state.busy"))
    );
    assert_eq!(
        winner(&mut rig, BusyPolicy::LastResort),
        ("b".to_owned(), Some("state.busy"))
    );
    assert_eq!(winner(&mut rig, BusyPolicy::Include), ("a".to_owned(), None));
    rig.member("b", |_, live| live.state = RecipientState::Offline);
    assert_eq!(
        winner(&mut rig, BusyPolicy::Exclude),
        ("-".to_owned(), Some("state.busy"))
    );
    assert_eq!(winner(&mut rig, BusyPolicy::LastResort), ("a".to_owned(), None));
}

#[test]
fn test_37_a_trait_that_nobody_has_is_named() {
    let mut rig = Rig::new("", &["a", "b", "c"]);
    rig.world.traits = Arc::new(vec![required("language", TraitOp::Contains)]);
    for name in ["a", "b", "c"] {
        rig.member(name, |recipient, _| {
            drop(recipient.attributes.insert("language".to_owned(), json!(["en"])));
        });
    }
    rig.request.work = work(&json!({"language": ["en", "es"]}));
    let passed = rig.look();
    assert_eq!(passed.zero_match, [(pool_id(1), "trait.mismatch")]);
    assert_eq!(passed.decision.outcome, Outcome::Queued);
    assert!(
        passed.decision.summary.contains("trait.mismatch for 3"),
        "{}",
        passed.decision.summary
    );
    rig.member("c", |_, live| live.state = RecipientState::Offline);
    assert_eq!(rig.look().zero_match, []);
}

#[test]
fn test_40_who_had_it_before_does_not_get_it_again() {
    let mut rig = Rig::new("", &["a", "b"]);
    rig.world.tried = vec![(recipient_id(1), decision_id(77))];
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "b");
    let verdict = passed.decision.explanation.verdict(recipient_id(1)).unwrap();
    assert_eq!(
        verdict.reason,
        Some(Reason::TriedBefore {
            decision: decision_id(77)
        })
    );
    rig.world.candidates.get_mut(&pool_id(1)).unwrap().pop();
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Queued);
    assert!(matches!(passed.ends, Ends::Waits(_)));
    let mut rig = Rig::new("", &["a", "b"]);
    rig.request.exclude.insert(recipient_id(1));
    assert_eq!(rig.winner(&rig.look()), "b");
}

#[test]
fn required_traits_relax_after_a_wait_and_say_when() {
    let mut rig = Rig::new("", &["a"]);
    let mut wanted = required("language", TraitOp::Contains);
    wanted.relax_after_us = 45_000_000;
    rig.world.traits = Arc::new(vec![wanted]);
    rig.request.work = work(&json!({"language": "es"}));
    let passed = rig.look();
    let Ends::Waits(waits) = &passed.ends else {
        panic!()
    };
    assert_eq!(waits.retry_at, Some(NOW.plus(45_000_000)));
    rig.request.waiting_since = Some(NOW);
    rig.now = NOW.plus(45_000_000);
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "a");
    assert_eq!(
        passed.decision.notes,
        [Note::TraitRelaxed {
            key: "language".to_owned(),
            after_us: 45_000_000
        }]
    );
}

#[test]
fn the_same_work_twice_ends_as_a_duplicate() {
    let mut rig = Rig::new("", &["a"]);
    let dedup = |on_duplicate| {
        Some(Dedup {
            key: "work.attributes.phone".to_owned(),
            window_us: 1_000,
            on_duplicate,
        })
    };
    rig.configure(1, |known| known.config.dedup = dedup(OnDuplicate::ReturnExisting));
    rig.request.work = work(&json!({"phone": "555"}));
    let first = rig.look();
    assert_eq!(first.remember, Some((pool_id(1), "555".to_owned(), 1_000)));
    rig.world
        .seen
        .insert((pool_id(1), "555".to_owned()), (decision_id(9), NOW));
    rig.now = NOW.plus(999);
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Duplicate);
    assert_eq!(
        (passed.decision.existing, &passed.ends, &passed.remember),
        (Some(decision_id(9)), &Ends::Over, &None)
    );
    assert_eq!(
        passed.decision.explanation.histogram(),
        [("dedup.recent", 1)].into()
    );
    rig.configure(1, |known| known.config.dedup = dedup(OnDuplicate::Reject));
    assert_eq!(rig.look().decision.existing, None);
    rig.now = NOW.plus(1_000);
    assert_eq!(rig.winner(&rig.look()), "a");
}

#[test]
fn what_flows_too_fast_waits_or_falls_back() {
    let mut rig = Rig::new("", &["a"]);
    let limited = |on_limit| {
        Some(FlowControl {
            rate: Some((2, 60_000_000)),
            concurrency: 0,
            on_limit,
        })
    };
    rig.configure(1, |known| {
        known.config.flow_control = limited(OnLimit::Queue);
        known.config.fallback = crate::domain::routing::objects::FallbackKind::Drop;
    });
    let flow = Flow {
        open: 0,
        recent: 2,
        oldest: Some(Micros(NOW.0 - 20_000_000)),
    };
    rig.world.flows.insert(pool_id(1), flow);
    let passed = rig.look();
    let Ends::Waits(waits) = &passed.ends else {
        panic!()
    };
    assert_eq!(waits.retry_at, Some(NOW.plus(40_000_000)));
    rig.configure(1, |known| known.config.flow_control = limited(OnLimit::Fallback));
    assert_eq!(rig.look().decision.outcome, Outcome::Dropped);
}
