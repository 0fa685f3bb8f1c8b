//! Runs of graphs over the real store: what is held stands still, what is put back while a run is held stays there, and
//! rows that belong to no run are found.

use serde_json::{Value, json};

use super::graph_stage::{broken, done};
use super::jobs::slot_pool;
use super::stage::{Rig, TENANT};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::graph::tick::{AttemptEnd, Taken};
use crate::domain::workflow::run::StepPhase;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::fold::Posted;
use crate::engine::changes::signal::Signalled;
use crate::store::Rows;
use crate::store::graph_rows::StoredFact;
use crate::store::tables as all;
use crate::words::names::StepRef;

fn command(name: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}})
}

fn pooled(name: &str) -> Value {
    let mut step = command(name);
    step["slots"] = json!({"pool": "p"});
    step
}

fn edge(from: &str, to: &str) -> Value {
    json!({"source_ref": from, "target_ref": to})
}

fn retrying(name: &str, attempts: u32) -> Value {
    let mut step = command(name);
    step["retry"] = json!({"max_attempts": attempts, "initial_interval": "100ms", "jitter": 0.0});
    step
}

fn pause() -> StoredFact {
    StoredFact::Pause {
        by: "me".to_owned(),
        reason: String::new(),
    }
}

fn unpause() -> StoredFact {
    StoredFact::Unpause { by: "me".to_owned() }
}

fn nothing() -> Posted {
    Posted::default()
}

#[test]
fn what_is_put_back_while_its_run_is_held_stands_still() {
    for step in [command("a"), pooled("a")] {
        let rig = Rig::new(&[slot_pool("p", 1)], &[]);
        rig.publish_graph(&json!({"family_slug": "w", "steps": [step]}));
        let (run, _) = rig.begin_graph("w", json!({}), 0);
        let claimed = rig.claim();
        assert_eq!(rig.tell_run(run, pause()), Signalled::Kept);
        rig.fold_graph(run, &nothing(), 0);
        rig.put_back(&claimed, reason::DAEMON_STOPPED);
        assert!(matches!(rig.phase_of(run, "a"), StepPhase::Held { .. }));
        assert_eq!(rig.look().claims, 0, "nothing begins while it is held");
        assert_eq!(rig.tell_run(run, unpause()), Signalled::Kept);
        rig.fold_graph(run, &nothing(), 0);
        let again = rig.claim();
        assert_eq!(
            (again.number, again.step.as_str()),
            (1, "a"),
            "with the same number"
        );
        rig.end_steps(&[(again, done(json!(1)))], 0);
        assert_eq!(rig.run_word(run), "succeeded");
    }
}

#[test]
fn a_timer_that_passes_while_its_run_is_held_is_not_looked_at_again_and_again() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&json!({"family_slug": "w", "steps": [retrying("a", 2)]}));
    let (run, claimed) = rig.begin_graph("w", json!({}), 1);
    rig.end_steps(&[(claimed[0].clone(), broken())], 0);
    rig.tell_run(run, pause());
    rig.fold_graph(run, &nothing(), 0);
    rig.clock().advance(1_000);
    assert_eq!(rig.timers_due(run).timers.len(), 1);
    rig.fold_graph(run, &rig.timers_due(run), 1);
    assert_eq!(rig.timers_due(run).timers, [], "it waits for people now");
    rig.tell_run(run, unpause());
    let mut stepped = rig.fold_graph(run, &nothing(), 1);
    let again = stepped.claimed.remove(0);
    assert_eq!(again.number, 2);
    rig.end_steps(&[(again, done(json!(1)))], 0);
    assert_eq!(rig.run_word(run), "succeeded");
}

#[test]
fn an_attempt_that_fails_while_its_run_is_cancelled_is_the_last() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&json!({"family_slug": "w", "steps": [retrying("a", 9)]}));
    let (run, claimed) = rig.begin_graph("w", json!({}), 1);
    rig.tell_run(run, StoredFact::Cancel { by: "me".to_owned() });
    rig.fold_graph(run, &nothing(), 0);
    assert_eq!(rig.run_word(run), "running", "its process runs");
    rig.end_steps(&[(claimed[0].clone(), broken())], 1);
    assert_eq!(
        (rig.step_word(run, "a"), rig.run_word(run)),
        ("failed", "cancelled")
    );
}

#[test]
fn pause_and_completion_in_either_order_lose_nothing() {
    for pause_first in [true, false] {
        let rig = Rig::new(&[], &[]);
        rig.publish_graph(
            &json!({"family_slug": "w", "steps": [command("a"), command("b")], "edges": [edge("a", "b")]}),
        );
        let (run, claimed) = rig.begin_graph("w", json!({}), 1);
        let ends = [(claimed[0].clone(), done(json!(1)))];
        if pause_first {
            // Both are folded in one tick, the stored word first.
            rig.tell_run(run, pause());
            let stepped = rig.end_steps(&ends, 1);
            assert_eq!((stepped.answers, stepped.claimed.len()), (vec![Taken::Yes], 0));
        } else {
            rig.end_steps(&ends, 0);
            rig.tell_run(run, pause());
            rig.fold_graph(run, &nothing(), 1);
        }
        assert_eq!(
            (rig.run_word(run), rig.step_word(run, "a")),
            ("paused", "succeeded")
        );
        assert_eq!(rig.look().claims, 0);
        rig.tell_run(run, unpause());
        let mut stepped = rig.fold_graph(run, &nothing(), 1);
        let claimed = stepped.claimed.remove(0);
        rig.end_steps(&[(claimed, done(json!(2)))], 0);
        assert_eq!(rig.run_word(run), "succeeded");
    }
}

/// Cancelled where its step is ready, queued, running, retrying, waiting or held.
#[test]
fn a_run_is_cancelled_in_every_state_of_a_step() {
    let wait = json!({"ref": "a", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}});
    let ask = json!({"ref": "a", "type": "STEP_TYPE_APPROVAL", "args": {}});
    let states = [
        ("ready", command("a")),
        ("queued", pooled("a")),
        ("running", command("a")),
        ("retrying", retrying("a", 2)),
        ("waiting", wait),
        ("waiting", ask),
        ("held", command("a")),
    ];
    for (state, step) in states {
        let rig = Rig::new(&[slot_pool("p", 1)], &[]);
        rig.publish_graph(
            &json!({"family_slug": "w", "steps": [step, command("b")], "edges": [edge("a", "b")]}),
        );
        let wanted = usize::from(matches!(state, "running" | "retrying"));
        let (run, claimed) = rig.begin_graph("w", json!({}), wanted);
        match state {
            "retrying" => drop(rig.end_steps(&[(claimed[0].clone(), broken())], 0)),
            "held" => {
                rig.tell_run(run, pause());
                rig.fold_graph(run, &nothing(), 0);
            }
            _ => {}
        }
        if state != "held" {
            assert_eq!(rig.step_word(run, "a"), state);
        }
        rig.tell_run(run, StoredFact::Cancel { by: "me".to_owned() });
        rig.fold_graph(run, &nothing(), 1);
        if state == "running" {
            let end = AttemptEnd::Cancelled("cancelled by me".to_owned());
            rig.end_steps(&[(claimed[0].clone(), end)], 1);
        }
        assert_eq!(
            (rig.run_word(run), rig.step_word(run, "a")),
            ("cancelled", "cancelled"),
            "{state}"
        );
        assert_eq!(rig.step_word(run, "b"), "pending");
        assert_eq!(rig.look().claims, 0, "{state}");
    }
}

#[test]
fn a_step_that_kills_its_daemons_is_listed_once_and_fails_its_run() {
    for step in [retrying("a", 3), pooled("a")] {
        let rig = Rig::new(&[slot_pool("p", 1)], &[]);
        rig.publish_graph(
            &json!({"family_slug": "w", "steps": [step, command("b")], "edges": [edge("a", "b")]}),
        );
        let (run, _) = rig.begin_graph("w", json!({}), 0);
        for death in 1..=5 {
            let claimed = rig.claim();
            assert_eq!(claimed.number, 1, "death {death} costs no attempt");
            rig.settle(&claimed, reason::DAEMON_DIED, true);
            // Whoever looks now, before the run has heard of it, finds nothing wrong.
            rig.assert_clean();
        }
        rig.fold_graph(run, &nothing(), 1);
        assert_eq!((rig.step_word(run, "a"), rig.run_word(run)), ("failed", "failed"));
        let listed = rig.read(|tx| tx.scan(&all::POISONED_RUNS, &(TENANT,), None, usize::MAX));
        assert_eq!(listed.len(), 1);
        let dead = rig.read(|tx| tx.scan(&all::DEAD_STEPS, &(TENANT,), None, usize::MAX));
        assert_eq!(dead.len(), 1, "once, whoever else looks");
        assert_eq!((dead[0].0.1, dead[0].1.deaths), (run, 5));
        assert_eq!(rig.look().claims, 0);
    }
}

/// Field case W5: each of four parallel steps that fail has its own attempts and no others.
#[test]
fn w5_parallel_failures_have_twelve_attempts() {
    let rig = Rig::new(&[], &[]);
    let steps: Vec<Value> = ["a", "b", "c", "d"]
        .iter()
        .map(|name| retrying(name, 3))
        .collect();
    rig.publish_graph(&json!({"family_slug": "w", "steps": steps}));
    for turn in 0..100usize {
        let (run, mut claimed) = rig.begin_graph("w", json!({}), 4);
        for _ in 0..3 {
            assert_eq!(claimed.len(), 4);
            // The order differs, and so does how many come together.
            claimed.rotate_left(turn % 4);
            let ends: Vec<(Claimed, AttemptEnd)> =
                claimed.drain(..).map(|claimed| (claimed, broken())).collect();
            for group in ends.chunks(1 + turn % 3) {
                rig.end_steps(group, 0);
            }
            rig.clock().advance(1_000);
            claimed = rig.fold_graph_if(run, &rig.timers_due(run), 4);
        }
        assert_eq!(rig.run_word(run), "failed");
        let attempts = rig.read(|tx| tx.scan(&all::ATTEMPTS, &(TENANT, run), None, usize::MAX));
        assert_eq!(attempts.len(), 12, "turn {turn}");
    }
}

/// Field case W1: a run ends under the version with which it began.
#[test]
fn w1_a_version_published_meanwhile_changes_nothing() {
    let rig = Rig::new(&[], &[]);
    let to = |last: &str| json!({"family_slug": "w", "steps": [command("a"), command(last)], "edges": [edge("a", last)]});
    assert_eq!(rig.publish_graph(&to("b")), 1);
    let (first, one) = rig.begin_graph("w", json!({}), 1);
    assert_eq!(rig.publish_graph(&to("c")), 2);
    let (second, other) = rig.begin_graph("w", json!({}), 1);
    for (run, claimed, last, never) in [(first, one, "b", "c"), (second, other, "c", "b")] {
        let ends: Vec<_> = claimed
            .into_iter()
            .map(|claimed| (claimed, done(json!(1))))
            .collect();
        let then = rig.end_steps(&ends, 1).claimed;
        assert_eq!(then[0].step.as_str(), last);
        rig.end_steps(&[(then[0].clone(), done(json!(2)))], 0);
        assert_eq!(
            (rig.run_word(run), rig.step_word(run, never)),
            ("succeeded", "pending")
        );
    }
}

#[test]
fn rows_of_no_run_are_found() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&json!({"family_slug": "w", "steps": [command("a")]}));
    let (run, _) = rig.begin_graph("w", json!({}), 0);
    rig.tell_run(run, pause());
    rig.assert_clean();
    rig.plan_damage();
    rig.change(move |tx| {
        tx.remove(&all::RUNS, &(TENANT, run))?;
        tx.remove(&all::STEPS, &(TENANT, run, StepRef::new("a").unwrap()))?;
        Ok(())
    });
    let findings = rig.findings();
    for what in ["values", "history", "facts"] {
        let found = findings
            .iter()
            .any(|finding| finding.starts_with(what) && finding.ends_with("and no run"));
        assert!(found, "{what}: {findings:?}");
    }
}
