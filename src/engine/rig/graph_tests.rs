//! Runs of graphs over the real store: what is held stands still, what is put back while a run is held stays there, rows
//! that belong to no run are found, and stored facts replayed give the rows that are stored.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde_json::{Value, json};

use super::graph_stage::{broken, done};
use super::jobs::slot_pool;
use super::stage::{Rig, TENANT};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, Taken, View, tick};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState};
use crate::domain::workflow::tick as claims;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::fold::Posted;
use crate::engine::changes::signal::Signalled;
use crate::store::graph_rows::StoredFact;
use crate::store::tables as all;
use crate::store::{Rows, runs};
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

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

/// A run in memory, moved by the facts alone.
struct Replayed {
    run: Run,
    steps: BTreeMap<StepRef, StepState>,
    values: BTreeMap<ValueName, Arc<Value>>,
}

impl View for &Replayed {
    type Error = Infallible;

    fn step(&mut self, name: &StepRef) -> Result<Option<StepState>, Infallible> {
        Ok(self.steps.get(name).cloned())
    }

    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, Infallible> {
        Ok(self.values.get(name).cloned())
    }

    fn open_steps(&mut self) -> Result<Vec<StepState>, Infallible> {
        let open = self.steps.values().filter(|step| !step.phase.is_terminal());
        Ok(open.cloned().collect())
    }
}

enum Noted {
    Facts(Vec<Fact>),
    Claim(Box<Claimed>),
}

impl Replayed {
    fn fold(&mut self, rig: &Rig, noted: &Noted, now: Millis) {
        match noted {
            Noted::Claim(claimed) => {
                let fact = claims::Fact::Claimed {
                    fence: claimed.claim.fence,
                };
                let ticked = claims::fold(&self.run, &self.steps[&claimed.step], &fact, now).unwrap();
                self.run = ticked.run;
                self.steps.insert(claimed.step.clone(), ticked.step);
            }
            Noted::Facts(facts) => {
                let name = JobName::new("w").unwrap();
                let graph = rig.read(|tx| rig.engine.graphs.get(tx, &name, 1)).unwrap();
                let changes = tick(&graph, &self.run, facts, now, &mut &*self, &mut RunId::fresh);
                let changes = match changes {
                    Ok(changes) => changes,
                    Err(never) => match never {},
                };
                self.run = changes.run;
                for (_, step) in changes.steps {
                    self.steps.insert(step.step.clone(), step);
                }
                self.values.extend(changes.values);
            }
        }
    }
}

/// The place in a line is given by the change that puts a step there, not by its tick.
fn placeless(mut step: StepState) -> StepState {
    if let Some(graph) = step.graph.as_mut() {
        (graph.line, graph.home) = (None, None);
    }
    step
}

#[test]
#[expect(clippy::too_many_lines, reason = "one run from its begin to its replay")]
fn replayed_facts_give_the_rows_that_are_stored() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&json!({"family_slug": "w", "steps": [retrying("a", 3),
        {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "input", "max_parallel": 3, "tolerated_failures": 1,
            "body": {"steps": [retrying("one", 2), command("two")], "edges": [edge("one", "two")]}}},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}},
        {"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}}],
      "edges": [edge("a", "each"), edge("each", "all"), edge("all", "nap")]}));
    let input = json!([1, 2, 3, 4, 5]);
    let begin = rig.wall();
    let (run, mut claimed) = rig.begin_graph("w", input.clone(), 5);
    let mut log = vec![(begin, Noted::Facts(vec![Fact::Begun]))];
    log.extend(
        claimed
            .iter()
            .map(|claimed| (begin, Noted::Claim(Box::new(claimed.clone())))),
    );
    for turn in 0..200usize {
        if rig.run_word(run) != "running" {
            break;
        }
        rig.clock().advance(300);
        let mut posted = rig.timers_due(run);
        // Some fail, some come together, some wait for the next turn.
        let count = claimed.len().min(turn % 3);
        let ends: Vec<_> = claimed
            .drain(..count)
            .enumerate()
            .map(|(place, claimed)| {
                let end = if (turn + place) % 4 == 3 {
                    broken()
                } else {
                    done(json!(turn))
                };
                (claimed, end)
            })
            .collect();
        let of_steps = rig.posted(&ends);
        (posted.facts, posted.claims) = (of_steps.facts, of_steps.claims);
        let facts: Vec<Fact> = posted.facts.iter().chain(&posted.timers).cloned().collect();
        if facts.is_empty() {
            continue;
        }
        let now = rig.wall();
        let stepped = rig.fold_graph(run, &posted, 5);
        log.push((now, Noted::Facts(facts)));
        log.extend(
            stepped
                .claimed
                .iter()
                .map(|claimed| (now, Noted::Claim(Box::new(claimed.clone())))),
        );
        claimed.extend(stepped.claimed);
    }
    assert!(matches!(rig.run_word(run), "succeeded" | "failed"));
    let stored = rig.read(|tx| runs::by_id(tx, run)).unwrap();
    let mut replayed = Replayed {
        run: Run {
            record_version: 0,
            state: RunState::Pending,
            graph: Some(Box::default()),
            ..stored.clone()
        },
        steps: BTreeMap::new(),
        values: BTreeMap::from([(ValueName::Input, Arc::new(input))]),
    };
    for (now, noted) in &log {
        replayed.fold(&rig, noted, *now);
    }
    assert_eq!(replayed.run, stored);
    let steps = rig.read(|tx| tx.scan(&all::STEPS, &(TENANT, run), None, usize::MAX));
    let steps: BTreeMap<StepRef, StepState> = steps
        .into_iter()
        .map(|((_, _, name), step)| (name, placeless(step)))
        .collect();
    let found = replayed.steps.iter();
    let found: BTreeMap<StepRef, StepState> = found
        .map(|(name, step)| (name.clone(), placeless(step.clone())))
        .collect();
    assert_eq!(found, steps);
    let blobs = rig.engine.store.blobs();
    for (name, value) in &replayed.values {
        let kept = rig.read(|tx| crate::engine::changes::fold::value_of(tx, &blobs, run, name));
        assert_eq!(kept.as_ref(), Some(value), "{name}");
    }
}
