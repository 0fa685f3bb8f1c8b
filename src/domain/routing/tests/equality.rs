//! What must never change a decision: the order of candidates, the way through the gate, a replay.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::chance::{random, strategies};
use super::rig::{Rig, candidate, pool_id, recipient_id};
use crate::domain::routing::canonical;
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::objects::{Explain, PipelineMode};
use crate::domain::routing::pass::Passed;
use crate::domain::routing::reason::CODES;
use crate::domain::routing::snapshot::{Recalled, Snapshot, Unreadable, differences, recall, take};
use crate::domain::routing::strategies::CATALOGUE;
use crate::words::chance::Chance;

fn essence(passed: &Passed) -> String {
    let decision = passed.decision.essence(Explain::All, false);
    let (states, bound) = (&passed.states, &passed.bound);
    format!(
        "{} {:?} {states:?} {bound:?}",
        Value::Object(decision),
        passed.ends
    )
}

fn recalled(kept: &Snapshot) -> Result<Recalled, Unreadable> {
    recall(kept.text.as_str(), Some(kept.declared.text.as_str()))
}

/// Every strategy in turn, so many random worlds in all.
fn worlds(seed: u64, count: usize, mut check: impl FnMut(&mut Chance, &str, Rig)) {
    let mut chance = Chance::new(seed);
    let strategies = strategies();
    for strategy in strategies.iter().cycle().take(count) {
        let rig = random(&mut chance, strategy);
        check(&mut chance, strategy, rig);
    }
}

#[test]
fn test_20_shuffled_candidates_give_the_identical_decision() {
    worlds(20, 2_000, |chance, strategy, mut rig| {
        let first = essence(&rig.look());
        for members in rig.world.candidates.values_mut() {
            for at in (1..members.len()).rev() {
                let other = usize::try_from(chance.below(at as u64 + 1)).unwrap();
                members.swap(at, other);
            }
        }
        assert_eq!(essence(&rig.look()), first, "{strategy}");
    });
}

#[test]
fn test_54_linear_and_dag_decide_alike() {
    let mut outcomes = BTreeSet::new();
    worlds(54, 10_000, |_, strategy, mut rig| {
        rig.world.pipeline_mode = PipelineMode::Linear;
        let linear = rig.look();
        outcomes.insert(linear.decision.outcome);
        rig.world.pipeline_mode = PipelineMode::Dag;
        assert_eq!(essence(&rig.look()), essence(&linear), "{strategy}");
    });
    // The worlds are of every kind.
    for outcome in [
        Outcome::Assigned,
        Outcome::AssignedOverCapacity,
        Outcome::Broadcast,
        Outcome::Offered,
        Outcome::Queued,
        Outcome::QueuedForClaim,
        Outcome::Overflowed,
        Outcome::DeferredCatchall,
        Outcome::Dropped,
        Outcome::NoRuleMatched,
        Outcome::Duplicate,
    ] {
        assert!(
            outcomes.contains(&outcome),
            "{outcome:?} never happened: {outcomes:?}"
        );
    }
}

#[test]
fn the_mode_shadow_commits_linear_and_finds_no_difference() {
    worlds(55, 500, |_, strategy, mut rig| {
        rig.world.pipeline_mode = PipelineMode::Linear;
        let linear = essence(&rig.look());
        rig.world.pipeline_mode = PipelineMode::Shadow;
        let shadow = rig.look();
        assert_eq!(shadow.decision.mode_diff, None, "{strategy}");
        assert_eq!(essence(&shadow), linear, "{strategy}");
    });
}

#[test]
fn test_29_random_decisions_replay_byte_identically() {
    worlds(29, 10_000, |_, strategy, rig| {
        let passed = rig.look();
        let kept = take(&rig.request, rig.now, passed.decision.id, &passed.read, None);
        let recalled = recalled(&kept).expect("it is readable");
        let again = recalled.replay().expect("it is admitted");
        assert_eq!(essence(&again), essence(&passed), "{strategy}");
        let stored = passed.decision.to_json(Explain::First);
        assert_eq!(
            differences(&stored, &again.decision.to_json(Explain::First)),
            [],
            "{strategy}"
        );
        let second = take(
            &recalled.request,
            recalled.now,
            recalled.decision,
            &again.read,
            None,
        );
        assert_eq!(
            (&second.text, &second.digest),
            (&kept.text, &kept.digest),
            "{strategy}"
        );
        assert_eq!(second.declared.text, kept.declared.text, "{strategy}");
        assert!(kept.declared.is_of(&passed.read) && !kept.declared.is_of(&recalled.read));
        // What is declared stands in the half that decisions share, and there only.
        assert!(!kept.text.as_str().contains("never read"));
    });
}

/// Snapshots that were kept before what is declared was shared: everything in one text, with the names of what moves.
#[test]
fn snapshots_of_the_first_form_replay() {
    worlds(292, 500, |_, strategy, rig| {
        let passed = rig.look();
        let kept = take(&rig.request, rig.now, passed.decision.id, &passed.read, None);
        let mut whole: Value = kept.text.read().expect("it is JSON");
        let mut half: Value = kept.declared.text.read().expect("it is JSON");
        for (id, members) in &passed.read.candidates {
            for (member, known) in half["members"][id.to_string()]
                .as_array_mut()
                .expect("members")
                .iter_mut()
                .zip(members)
            {
                member["live"] = json!(known.live);
                member["learned"] = json!(known.learned);
                if let Some(bid) = &known.bid {
                    member["bid"] = json!(bid);
                }
            }
        }
        let fields = whole.as_object_mut().expect("an object");
        fields.remove("declared");
        fields.extend(half.as_object().cloned().expect("an object"));
        fields.insert("version".to_owned(), json!(1));
        let first = recall(&whole.to_string(), None).expect("it is readable");
        let second = recalled(&kept).expect("it is readable");
        assert_eq!(
            (&first.read, &first.request),
            (&second.read, &second.request),
            "{strategy}"
        );
        assert_eq!(
            essence(&first.replay().expect("it is admitted")),
            essence(&passed),
            "{strategy}"
        );
    });
}

/// What is written at once is the same text as what goes by way of a value of JSON.
#[test]
fn texts_are_canonical_however_they_are_made() {
    worlds(291, 1_000, |_, strategy, rig| {
        let passed = rig.look();
        let kept = take(&rig.request, rig.now, passed.decision.id, &passed.read, None);
        for kept in [&kept.text, &kept.declared.text] {
            let read: Value = kept.read().expect("it is JSON");
            assert_eq!(canonical::text(&read), kept.as_str(), "{strategy}");
        }
        for explain in [Explain::Winners, Explain::First, Explain::All] {
            let more = json!({"a": 1, "z": null, "explain": 2, "item_id": "i"});
            let more = more.as_object().cloned().expect("an object");
            let wire =
                serde_json::to_string(&passed.decision.wire(explain, more.clone())).expect("plain data");
            let mut value = passed.decision.to_json(explain);
            value.as_object_mut().expect("an object").extend(more);
            assert_eq!(wire, value.to_string(), "{strategy}");
        }
    });
}

/// Members of one name are told apart by their ids; one whose name looks like that is no second member of the JSON.
#[test]
fn labels_of_a_turn_are_unique() {
    let mut rig = Rig::new("smooth_weighted_round_robin", &["X"]);
    let twin = format!("X ({})", recipient_id(1));
    let members = [candidate(1, "X"), candidate(2, "X"), candidate(3, &twin)];
    rig.world.candidates.insert(pool_id(1), members.to_vec().into());
    let decision = rig.look().decision;
    let told =
        serde_json::to_string(&decision.wire(Explain::All, serde_json::Map::new())).expect("plain data");
    let value: Value = serde_json::from_str(&told).expect("it is JSON");
    assert_eq!(canonical::text(&value), told);
}

#[test]
fn a_replay_with_another_pipeline_tells_what_would_have_been() {
    let mut rig = Rig::new("least_loaded", &["a", "b"]);
    rig.member("a", |_, live| live.current = 1);
    let passed = rig.look();
    let kept = take(&rig.request, rig.now, passed.decision.id, &passed.read, None);
    let mut recalled = recalled(&kept).unwrap();
    recalled.request.pipeline = Some(json!({"stages": [{"pick": {"strategy": "round_robin"}}]}));
    let other = recalled.replay().unwrap();
    assert_eq!(
        (rig.winner(&passed), rig.winner(&other)),
        ("b".to_owned(), "a".to_owned())
    );
    let found = differences(
        &passed.decision.to_json(Explain::First),
        &other.decision.to_json(Explain::First),
    );
    assert!(
        found
            .iter()
            .any(|(pointer, ..)| pointer == "/winners/0/recipient_id"),
        "{found:?}"
    );
    // A decision of another version of the program says so.
    let mut older = passed.decision.to_json(Explain::First);
    older["config"]["engine"] = json!("ductor 0.0.1");
    assert_eq!(recalled.engine, passed.decision.digests.engine);
    assert_ne!(older["config"]["engine"], json!(recalled.engine));
    let (text, half) = (kept.text.as_str(), Some(kept.declared.text.as_str()));
    assert!(recall("{}", None).is_err() && recall(text, None).is_err() && recall(text, half).is_ok());
    assert!(recall(&text.replace("\"version\":2", "\"version\":3"), half).is_err());
    // The other half of another decision.
    let less = half.map(|half| half.replacen("\"members\":{", "\"members\":{\"x\":[],", 1));
    assert!(recall(text, less.as_deref()).is_err());
}

/// What another pipeline looks at is there, even where the one that decided did not look.
#[test]
fn a_replay_with_another_strategy_knows_all_that_is_declared() {
    let mut rig = Rig::new("round_robin", &["a", "b"]);
    for (name, tier) in [("a", 2), ("b", 1)] {
        rig.member(name, |recipient, _| {
            recipient.attributes.insert("tier".to_owned(), json!(tier));
        });
    }
    let passed = rig.look();
    let kept = take(&rig.request, rig.now, passed.decision.id, &passed.read, None);
    let mut recalled = recalled(&kept).unwrap();
    recalled.request.strategy = Some("priority".to_owned());
    let other = recalled.replay().unwrap();
    assert_eq!(
        (rig.winner(&passed), rig.winner(&other)),
        ("a".to_owned(), "b".to_owned())
    );
}

#[test]
fn invariants_of_explanations_hold_in_random_worlds() {
    let mut seen = BTreeSet::new();
    worlds(11, 4_000, |_, strategy, rig| {
        let decision = rig.look().decision;
        let explanation = &decision.explanation;
        assert_eq!(
            explanation.candidates.len(),
            explanation.considered(),
            "{strategy}"
        );
        let won: Vec<_> = explanation
            .candidates
            .iter()
            .filter(|one| one.reason.is_none())
            .collect();
        assert_eq!(won.len(), decision.winners.len(), "{strategy}");
        for verdict in won {
            assert!(
                decision
                    .winners
                    .iter()
                    .any(|winner| winner.recipient == verdict.recipient.id)
            );
        }
        let histogram = explanation.histogram();
        let sum: usize = histogram.values().sum();
        assert_eq!(
            sum,
            explanation.considered() - decision.winners.len(),
            "{strategy}"
        );
        for code in histogram.keys() {
            assert!(CODES.contains(code), "{code}");
        }
        seen.extend(histogram.keys().copied());
        assert!(
            decision.summary.ends_with('.') && decision.summary.len() < 400,
            "{}",
            decision.summary
        );
        if decision.outcome == Outcome::Assigned {
            assert!(
                decision
                    .randomness
                    .propensity
                    .is_none_or(|p| p > 0.0 && p <= 1.0 + 1e-12),
                "{strategy}"
            );
        }
    });
    let missing: Vec<_> = CODES.iter().filter(|code| !seen.contains(*code)).collect();
    // Claims and budgets are the engine's; the rest needs a world made for it.
    let made_elsewhere = [
        "status.disabled",
        "excluded",
        "cooldown",
        "claim.budget",
        "lost.tie",
    ];
    assert!(
        missing.iter().all(|code| made_elsewhere.contains(code)),
        "{missing:?}"
    );
}

#[test]
fn test_21_equal_load_spreads() {
    let names: Vec<String> = (0..10).map(|number| format!("m{number}")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    for info in CATALOGUE {
        let by_load = [
            "round_robin",
            "weighted_round_robin",
            "smooth_weighted_round_robin",
            "least_loaded",
            "most_available",
            "least_utilized",
            "weighted_least_request",
            "longest_idle",
            "priority",
            "capacity_aware",
            "fair",
            "availability_fallback",
            "sla_deadline",
            "skill_match",
        ];
        if !by_load.contains(&info.key) {
            continue;
        }
        let mut rig = Rig::new(info.key, &names);
        for _ in 0..10 {
            rig.route();
            rig.now = rig.now.plus(1_000);
        }
        for member in &rig.world.candidates[&pool_id(1)] {
            assert_eq!(member.live.current, 1, "{}: {}", info.key, member.recipient.name);
        }
    }
}
