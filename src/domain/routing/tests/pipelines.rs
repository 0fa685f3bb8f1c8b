//! Pipelines as people write them: what they decide, and their faults with places.

use serde_json::{Value, json};

use super::rig::{NOW, Rig, pool_id, recipient_id, recipient_pool, required, work};
use crate::domain::routing::candidate::Members;
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::TraitOp;
use crate::domain::routing::pass::Ends;
use crate::domain::routing::pipeline::{Options, Target, read};
use crate::domain::routing::reason::Reason;
use crate::domain::routing::recipes::{RECIPES, find};
use crate::domain::routing::strategies::check_options;

fn faults(document: &Value) -> Vec<(String, &'static str)> {
    let none = Options::new();
    match read("/p", "own", document, &none, &none) {
        Ok(_) => Vec::new(),
        Err(faults) => faults
            .into_iter()
            .map(|fault| (fault.pointer, fault.code))
            .collect(),
    }
}

#[test]
fn faults_of_pipelines_have_their_place_and_code() {
    let pick = json!({"pick": {"strategy": "random"}});
    let check = |document: Value, expected: &[(&str, &str)]| {
        let found = faults(&document);
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|(pointer, code)| (pointer.as_str(), *code))
            .collect();
        assert_eq!(found, expected, "{document}");
    };
    check(json!({"stages": [pick]}), &[]);
    check(json!({"stages": []}), &[("/p/stages", "pipeline.no_pick")]);
    check(
        json!({"stages": [{"sort": {"by": ["idle"]}}]}),
        &[("/p/stages", "pipeline.no_pick")],
    );
    check(
        json!({"stages": [pick, pick]}),
        &[("/p/stages/1", "pipeline.two_picks")],
    );
    check(
        json!({"stages": [pick, {"score": {"by": "idle"}}]}),
        &[("/p/stages/1", "pipeline.after_pick")],
    );
    check(
        json!({"stages": vec![pick.clone(); 17]}),
        &[("/p/stages", "pipeline.too_long")],
    );
    check(
        json!({"stages": [{"shuffle": {}}, pick]}),
        &[("/p/stages/0/shuffle", "pipeline.unknown_stage")],
    );
    check(
        json!({"stages": [{"filter": {"cel": "recipient.x ="}}, pick]}),
        &[("/p/stages/0/filter/cel", "rule.syntax")],
    );
    check(
        json!({"stages": [{"filter": {"cel": "candidate.x == 1"}}, pick]}),
        &[("/p/stages/0/filter/cel", "rule.unknown_reference")],
    );
    // Two faults are two entries.
    check(
        json!({"stages": [{"score": {"by": "height", "weight": -1}}, {"pick": {"strategy": "randum", "x": 1}}]}),
        &[
            ("/p/stages/0/score/by", "field.range"),
            ("/p/stages/1/pick/x", "field.unknown"),
            ("/p/stages/1/pick/strategy", "strategy.unknown"),
        ],
    );
    check(
        json!({"stages": [pick], "fallback": [{"recipe": "nobody@1"}, {"overflow": "tier3"}, {"queue": {"ttl": "soon"}}]}),
        &[
            ("/p/fallback/0/recipe", "recipe.unknown"),
            ("/p/fallback/1/overflow", "pipeline.target_missing"),
            ("/p/fallback/2/queue/ttl", "field.range"),
        ],
    );
    let none = Options::new();
    let good = json!({"stages": [pick], "fallback": [{"overflow": "pool:tier3"}]});
    let made = read("/p", "own", &good, &none, &none).unwrap();
    assert_eq!(made.targets(), [&Target::Name("tier3".to_owned())]);
}

#[test]
fn faults_of_options_have_their_place_and_code() {
    let check = |strategy: &str, options: Value, expected: &[(&str, &str)]| {
        let found: Vec<Fault> = check_options("/o", strategy, options.as_object().unwrap());
        let found: Vec<(&str, &str)> = found
            .iter()
            .map(|fault| (fault.pointer.as_str(), fault.code))
            .collect();
        assert_eq!(found, expected, "{strategy} {options}");
    };
    check("random", json!({"seed": 1}), &[("/o/seed", "option.unknown")]);
    check("peak_ewma", json!({"tau": "1m", "choices": 3}), &[]);
    check(
        "peak_ewma",
        json!({"choices": 2.5, "initial": 1, "tau": "0s"}),
        &[
            ("/o/choices", "option.type"),
            ("/o/initial", "option.type"),
            ("/o/tau", "option.range"),
        ],
    );
    check(
        "least_loaded",
        json!({"unit": "weight"}),
        &[("/o/unit", "option.range")],
    );
    check(
        "sticky",
        json!({"key": "recipient.name", "inner": "stikcy"}),
        &[
            ("/o/inner", "strategy.unknown"),
            ("/o/key", "rule.unknown_reference"),
        ],
    );
    check(
        "sticky",
        json!({"inner": "sticky"}),
        &[("/o/inner", "option.range")],
    );
    check(
        "percentage_split",
        json!({"shares": {"a": 9_999}}),
        &[("/o/shares", "option.range")],
    );
    check(
        "percentage_split",
        json!({"shares": {"a": 5_000, "b": 5_000}}),
        &[],
    );
    check(
        "availability_fallback",
        json!({"steps": ["available", "asleep"]}),
        &[("/o/steps", "option.range")],
    );
    check("nobody", json!({}), &[("/o", "strategy.unknown")]);
    check("priority", json!({"tier": "level"}), &[]);
    check("priority", json!({"tier": "recipient.attributes.level * 2"}), &[]);
}

/// The example of the specification.
fn careful() -> Rig {
    let mut rig = Rig::new("pipeline:careful", &["a", "b", "c", "d"]);
    let document = json!({ "stages": [
        {"filter": {"trait": "language", "has": "work.attributes.language", "for": "45s", "then": "relax"}},
        {"filter": {"cel": "recipient.attributes.seniority >= 2.0"}},
        {"score": {"by": "sla_headroom", "weight": 3}},
        {"score": {"by": "utilization", "order": "asc", "weight": 2}},
        {"score": {"cel": "has(recipient.attributes.vip) && recipient.attributes.vip ? 1.0 : 0.0", "weight": 1}},
        {"sort": {"by": ["score desc", "idle desc"]}},
        {"pick": {"strategy": "smooth_weighted_round_robin", "among": "top", "within": 0.05}}],
        "fallback": [{"recipe": "sla_rescue@1"}, {"overflow": "pool:tier3"}, {"queue": {"ttl": "1h"}}]});
    rig.configure(1, |known| {
        drop(
            known
                .config
                .strategy_pipelines
                .insert("careful".to_owned(), document),
        );
    });
    let mut language = required("language", TraitOp::Contains);
    language.required = false;
    rig.world.traits = std::sync::Arc::new(vec![language]);
    rig.request.work = work(&json!({"language": "es"}));
    for name in ["a", "b", "c", "d"] {
        rig.member(name, |recipient, _| {
            recipient
                .attributes
                .insert("language".to_owned(), json!(["es", "en"]));
            recipient.attributes.insert("seniority".to_owned(), json!(2.5));
        });
    }
    rig
}

#[test]
fn a_written_pipeline_filters_scores_and_picks_in_its_band() {
    let mut rig = careful();
    rig.member("a", |recipient, _| {
        drop(recipient.attributes.insert("seniority".to_owned(), json!(1.0)));
    });
    rig.member("b", |recipient, _| {
        drop(recipient.attributes.insert("language".to_owned(), json!(["en"])));
    });
    rig.member("c", |_, live| live.current = 5);
    let passed = rig.look();
    assert_eq!(rig.winner(&passed), "d");
    let verdict = |number| passed.decision.explanation.verdict(recipient_id(number)).unwrap();
    assert!(
        matches!(&verdict(1).reason, Some(Reason::RuleFalse { rule, because })
        if rule == "stage 2" && because == "recipient.attributes.seniority >= 2.0 is false (seniority = 1.0)")
    );
    assert!(matches!(&verdict(2).reason, Some(Reason::TraitMismatch { .. })));
    // Nobody has a deadline, so that headroom is known of nobody: 0 for all; d is the least utilized: 2 of 6.
    let Some(Reason::LostScore { score, winner, .. }) = &verdict(3).reason else {
        panic!("{:?}", verdict(3))
    };
    assert!(
        (score - 1.0 / 6.0).abs() < 1e-12 && (winner - 0.5).abs() < 1e-12,
        "{score} {winner}"
    );
    let kinds: Vec<&str> = passed
        .decision
        .explanation
        .stages
        .iter()
        .map(|line| line.kind)
        .collect();
    assert_eq!(
        kinds,
        [
            "gate", "filter", "filter", "score", "score", "score", "sort", "pick"
        ]
    );
}

#[test]
fn test_41_a_filter_relaxes_by_the_time_in_the_hop() {
    let mut rig = careful();
    for name in ["a", "b", "c", "d"] {
        rig.member(name, |recipient, live| {
            recipient.attributes.insert("language".to_owned(), json!(["en"]));
            // The rescue finds nobody either: everybody would be late.
            live.current = 1;
        });
    }
    rig.configure(1, |known| {
        let document = json!({"stages": [
            {"filter": {"trait": "language", "for": "45s", "then": "relax"}},
            {"pick": {"strategy": "least_loaded"}}], "fallback": [{"queue": {"ttl": "1h"}}]});
        known
            .config
            .strategy_pipelines
            .insert("careful".to_owned(), document);
    });
    let passed = rig.look();
    let Ends::Waits(waits) = &passed.ends else {
        panic!("{:?}", passed.ends)
    };
    assert_eq!(
        (waits.retry_at, waits.expires_at),
        (Some(NOW.plus(45_000_000)), NOW.plus(3_600_000_000))
    );
    (rig.request.waiting_since, rig.request.hop_since) = (Some(NOW), Some(NOW));
    rig.now = NOW.plus(44_999_999);
    assert_eq!(rig.look().decision.outcome, Outcome::Queued);
    rig.now = NOW.plus(45_000_000);
    assert_eq!(rig.look().decision.outcome, Outcome::Assigned);
    // A second hop begins anew.
    let mut second = rig.world.recipient_pools[&pool_id(1)]
        .as_ref()
        .unwrap()
        .recipient_pool
        .clone();
    second.id = pool_id(2);
    second.name = "pool-2".to_owned();
    rig.add_pool(second);
    let members = rig.world.candidates[&pool_id(1)].clone();
    rig.world.candidates.insert(pool_id(2), members);
    let mut first = recipient_pool(1);
    first.config.fallback = crate::domain::routing::objects::FallbackKind::Overflow;
    first.config.overflow = Some(pool_id(2));
    rig.add_pool(first);
    rig.world.candidates.insert(pool_id(1), Members::default());
    assert_eq!(rig.look().decision.outcome, Outcome::Overflowed);
}

#[test]
fn the_fallback_of_a_pipeline_goes_step_by_step() {
    let mut rig = careful();
    for name in ["a", "b", "c", "d"] {
        rig.member(name, |recipient, _| {
            drop(recipient.attributes.insert("seniority".to_owned(), json!(1.0)));
        });
    }
    // The rescue takes whoever is left after the gate.
    let passed = rig.look();
    assert_eq!(
        (rig.winner(&passed).as_str(), passed.decision.outcome),
        ("a", Outcome::Assigned)
    );
    rig.world.candidates.insert(pool_id(1), Members::default());
    let mut third = recipient_pool(3);
    third.name = "tier3".to_owned();
    rig.add_pool(third);
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Overflowed);
    assert!(matches!(&passed.ends, Ends::Waits(waits) if waits.recipient_pool == pool_id(3)));
    rig.world.names.remove("tier3");
    let passed = rig.look();
    assert_eq!(passed.decision.outcome, Outcome::Queued);
    assert_eq!(passed.decision.notes.len(), 1);
}

#[test]
fn recipes_are_pipelines() {
    let none = Options::new();
    for recipe in RECIPES {
        let made = recipe
            .pipeline("/r", &none, &none)
            .unwrap_or_else(|faults| panic!("{recipe:?}: {faults:?}"));
        assert_eq!(made.name, recipe.pinned());
        assert_eq!(find(&recipe.pinned()), Some(recipe));
    }
    assert_eq!(find("even@2"), None);
    // Test 12 of recipes: even is smooth weighted turns.
    let mut rig = Rig::new("even", &["a", "b", "c"]);
    rig.weights(&[5, 1, 1]);
    assert_eq!(rig.winners(7), "a a b a c a a");
    let mut rig = Rig::new("call_center@1", &["a", "b"]);
    rig.member("a", |_, live| live.last_assigned_at = Some(NOW));
    assert_eq!(rig.winner(&rig.look()), "b");
}
