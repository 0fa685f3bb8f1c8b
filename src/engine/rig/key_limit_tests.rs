//! Runs of one key: how many at once, who is next, and that nothing is lost whatever ends when.

use std::collections::VecDeque;

use serde_json::{Value, json};

use super::graph_stage::done;
use super::stage::Rig;
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::graph::tick::AttemptEnd;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::fold::Posted;
use crate::engine::changes::signal::Signalled;
use crate::store::graph_rows::StoredFact;
use crate::store::key_limits;
use crate::words::chance::Chance;
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};

fn document(concurrency: &Value) -> Value {
    json!({"family_slug": "w", "concurrency": concurrency,
        "steps": [{"ref": "a", "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}}]})
}

fn rig_with(concurrency: &Value) -> Rig {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&document(concurrency));
    rig
}

fn begin(rig: &Rig, key: &str) -> (RunId, Vec<Claimed>) {
    rig.clock().advance(1);
    rig.begin_graph("w", json!({"k": key}), 1)
}

/// All that is stored is folded; what was claimed.
fn fold(rig: &Rig, run: RunId) -> Vec<Claimed> {
    rig.fold_graph(run, &Posted::default(), 1).claimed
}

fn end(rig: &Rig, claimed: &[Claimed]) {
    let end: AttemptEnd = done(json!(1));
    rig.end_steps(&[(claimed[0].clone(), end)], 0);
}

fn cancel(rig: &Rig, run: RunId) {
    rig.tell_run(run, StoredFact::Cancel { by: "me".to_owned() });
    fold(rig, run);
}

fn counts(rig: &Rig, key: &str) -> (u32, u32) {
    let name = JobName::new("w").unwrap();
    let count = rig.read(|tx| key_limits::count(tx, &name, key));
    (count.holding, count.waiting)
}

#[test]
fn one_more_run_of_a_key_waits_its_turn() {
    let mut rig = rig_with(&json!({"key": "input.k", "limit": 1}));
    let (first, claimed) = begin(&rig, "x");
    let (second, none) = begin(&rig, "x");
    let (third, _) = begin(&rig, "x");
    let (other, _) = begin(&rig, "y");
    assert_eq!((none.len(), rig.run_word(second)), (0, "pending"));
    assert_eq!(rig.run_word(other), "running", "another key is another limit");
    assert_eq!(
        rig.run_reason(third),
        format!("Only 1 run of key `x` at once: waits for {first}; 1 run is ahead.")
    );
    assert_eq!((counts(&rig, "x"), counts(&rig, "y")), ((1, 2), (1, 0)));
    rig.assert_clean();
    // Nobody has been told when the daemon dies: who is next stands in the commit that ended the first.
    end(&rig, &claimed);
    assert_eq!(counts(&rig, "x"), (1, 1));
    rig.die_first();
    let again = rig.daemon("b");
    assert_eq!(again.run_word(second), "pending");
    let claimed = again.fold_graph(second, &Posted::default(), 1).claimed;
    assert_eq!((again.run_word(second), claimed.len()), ("running", 1));
    assert_eq!(again.run_word(third), "pending");
    again.end_steps(&[(claimed[0].clone(), done(json!(1)))], 0);
    let claimed = again.fold_graph(third, &Posted::default(), 1).claimed;
    again.end_steps(&[(claimed[0].clone(), done(json!(1)))], 0);
    assert_eq!(again.run_word(third), "succeeded");
}

#[test]
fn a_run_that_waits_its_turn_is_cancelled_and_never_paused() {
    let rig = rig_with(&json!({"limit": 1}));
    let (_, claimed) = begin(&rig, "x");
    let (second, _) = begin(&rig, "y");
    let (third, _) = begin(&rig, "z");
    let pause = StoredFact::Pause {
        by: "me".to_owned(),
        reason: String::new(),
    };
    let Signalled::Refused(why) = rig.tell_run(second, pause) else {
        panic!("it was held");
    };
    assert!(why.contains("has not begun"), "{why}");
    cancel(&rig, second);
    assert_eq!(
        (rig.run_word(second), rig.run_reason(second).as_str()),
        ("cancelled", "cancelled by me")
    );
    end(&rig, &claimed);
    let claimed = fold(&rig, third);
    assert_eq!(rig.run_word(third), "running");
    // One that is cancelled between its turn and its first tick gives the place on.
    let (fourth, _) = begin(&rig, "x");
    let (fifth, _) = begin(&rig, "x");
    end(&rig, &claimed);
    cancel(&rig, fourth);
    assert_eq!(rig.run_word(fourth), "cancelled");
    fold(&rig, fifth);
    assert_eq!(rig.run_word(fifth), "running");
}

#[test]
fn a_skipped_run_names_key_and_holder() {
    let rig = rig_with(&json!({"key": "input.k", "limit": 1, "on_limit": "skip"}));
    let (first, claimed) = begin(&rig, "x");
    let (second, _) = begin(&rig, "x");
    assert_eq!(
        (rig.run_word(second), rig.run_reason(second)),
        (
            "skipped",
            format!("only 1 run of key `x` at once: held by {first}")
        )
    );
    end(&rig, &claimed);
    let (third, _) = begin(&rig, "x");
    assert_eq!(rig.run_word(third), "running");
    rig.assert_clean();
}

#[test]
fn a_newer_run_takes_the_place_of_the_oldest() {
    let rig = rig_with(&json!({"limit": 1, "on_limit": "replace"}));
    let (first, claimed) = begin(&rig, "x");
    let (second, _) = begin(&rig, "x");
    let (third, _) = begin(&rig, "x");
    // The second has done nothing: it ends at once; the first when its process has.
    assert_eq!(
        (rig.run_word(second), rig.run_reason(second)),
        (
            "cancelled",
            format!("cancelled by {third}, which takes its place")
        )
    );
    fold(&rig, first);
    assert_eq!((rig.run_word(first), rig.run_word(third)), ("running", "pending"));
    let stopped = AttemptEnd::Cancelled("ended".to_owned());
    rig.end_steps(&[(claimed[0].clone(), stopped)], 0);
    assert_eq!(
        rig.run_reason(first),
        format!("cancelled by {second}, which takes its place")
    );
    fold(&rig, third);
    assert_eq!(rig.run_word(third), "running");
    rig.assert_clean();
}

#[test]
fn a_child_that_would_wait_for_its_parent_fails_and_says_so() {
    let rig = rig_with(&json!({"key": "input.k", "limit": 1}));
    let (parent, _) = begin(&rig, "x");
    let below = || GraphHeader {
        parent: Some((parent, StepRef::new("a").unwrap())),
        depth: 1,
        ..GraphHeader::default()
    };
    let (child, _) = rig.begin_graph_with("w", json!({"k": "x"}), below(), 0);
    assert_eq!(
        (rig.run_word(child), rig.run_reason(child)),
        (
            "failed",
            format!("only 1 run of key `x` at once: it would wait for {parent}, which waits for it")
        )
    );
    let (elsewhere, _) = rig.begin_graph_with("w", json!({"k": "y"}), below(), 0);
    assert_eq!(rig.run_word(elsewhere), "running");
    rig.assert_clean();
}

#[test]
fn the_time_of_a_run_counts_from_its_turn() {
    let rig = Rig::new(&[], &[]);
    let mut limited = document(&json!({"limit": 1}));
    limited["run_timeout"] = json!("10s");
    rig.publish_graph(&limited);
    let (_, claimed) = begin(&rig, "x");
    let (second, _) = begin(&rig, "x");
    rig.clock().advance(60_000);
    assert!(rig.timers_due(second).timers.is_empty());
    end(&rig, &claimed);
    fold(&rig, second);
    assert!(rig.timers_due(second).timers.is_empty());
    rig.clock().advance(10_000);
    assert_eq!(rig.timers_due(second).timers.len(), 1);
}

/// What a random history of one key must come to: a list of holders, and a line behind it.
#[derive(Default)]
struct Line {
    holds: Vec<(RunId, Option<Claimed>)>,
    waits: VecDeque<RunId>,
}

#[test]
fn random_histories_of_a_key_keep_limit_and_order() {
    for seed in 0..12 {
        let mut chance = Chance::new(seed);
        let limit = 1 + usize::try_from(chance.below(3)).unwrap();
        let rig = rig_with(&json!({"key": "input.k", "limit": limit}));
        let mut line = Line::default();
        for _ in 0..60 {
            match chance.below(5) {
                0 | 1 => {
                    let (run, claimed) = begin(&rig, "x");
                    if line.holds.len() < limit && line.waits.is_empty() {
                        line.holds.push((run, claimed.into_iter().next()));
                    } else {
                        line.waits.push_back(run);
                    }
                }
                2 | 3 => {
                    if !line.holds.is_empty() {
                        let place = usize::try_from(chance.below(line.holds.len() as u64)).unwrap();
                        let (run, claimed) = line.holds.remove(place);
                        let claimed = claimed.unwrap_or_else(|| fold(&rig, run).remove(0));
                        rig.end_steps(&[(claimed, done(json!(1)))], 0);
                        assert_eq!(rig.run_word(run), "succeeded", "seed {seed}");
                    }
                }
                _ => {
                    if !line.waits.is_empty() {
                        let place = usize::try_from(chance.below(line.waits.len() as u64)).unwrap();
                        let run = line.waits.remove(place).unwrap();
                        cancel(&rig, run);
                        assert_eq!(rig.run_word(run), "cancelled", "seed {seed}");
                    }
                }
            }
            while line.holds.len() < limit
                && let Some(next) = line.waits.pop_front()
            {
                line.holds.push((next, None));
            }
            let waiting = u32::try_from(line.waits.len()).unwrap();
            let holding = u32::try_from(line.holds.len()).unwrap();
            assert_eq!(counts(&rig, "x"), (holding, waiting), "seed {seed}");
            for run in &line.waits {
                assert_eq!(rig.run_word(*run), "pending", "seed {seed}");
            }
        }
        rig.assert_clean();
    }
}
