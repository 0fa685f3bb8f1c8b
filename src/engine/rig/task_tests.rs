//! Tasks of graphs in slot pools: what others decide about them counts until their run has taken it in.

use serde_json::json;

use super::graph_stage::{broken, done};
use super::jobs::{JobPlan, name, slot_pool_of};
use super::stage::{Rig, TENANT, by_hand};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::definition::tests::sample;
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact};
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::engine::changes::fold::{self, Desk, Posted};
use crate::engine::changes::graph::{self, Applied};
use crate::engine::changes::maintain::Rules;
use crate::engine::changes::start::Started;
use crate::store::tables::TIMERS;
use crate::store::{Rows, entries, runs};
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// A graph of one task that waits in `p` for a second at most.
fn plan(text: &str) -> JobPlan {
    let command = sample("any", None).steps[0].command.clone();
    let document: Document = serde_json::from_value(json!({
        "family_slug": text,
        "steps": [{
            "ref": "t", "type": "STEP_TYPE_COMMAND", "args": command,
            "slots": {"pool": "p", "slots": 1, "priority": 0, "queue_timeout_ms": 1_000},
        }],
    }))
    .unwrap();
    JobPlan(Definition::of_graph(name(text), document))
}

fn begin(rig: &Rig, job: &str) -> RunId {
    let begun = rig.begin_run(&rig.wish(job, by_hand())).unwrap();
    let Started::Ready { run } = begun else {
        panic!("{begun:?}");
    };
    run
}

fn step(rig: &Rig, run: RunId) -> StepState {
    let task = StepRef::new("t").unwrap();
    rig.read(|tx| runs::step(tx, run, &task)).unwrap()
}

/// A tick of the run, as its coordinator makes it.
fn tick(rig: &Rig, run: RunId, timers: Vec<Fact>) {
    let posted = Posted {
        timers,
        ..Posted::default()
    };
    let blobs = rig.engine.store.blobs();
    let folded = rig.read(|tx| {
        let desk = Desk {
            shelf: &rig.engine.graphs,
            blobs: &blobs,
            now: rig.wall(),
            rules: Rules::plain(),
        };
        fold::fold(tx, &desk, run, &posted)
    });
    let (moved, _) = folded.unwrap();
    let book = rig.engine.book();
    let applied = rig.change(move |tx| graph::apply(tx, &book, &moved));
    assert!(matches!(applied, Applied::Done(_)));
}

fn unseen(rig: &Rig) -> usize {
    rig.read(|tx| entries::unseen(tx, 10)).len()
}

#[test]
fn unseen_task_entries_count() {
    let plans = [plan("first"), plan("second")];
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &plans);
    let first = begin(&rig, "first");
    assert!(matches!(step(&rig, first).phase, StepPhase::Queued { .. }));
    rig.clock().advance(2_000);
    rig.pass_with(0, Rules::plain());
    assert_eq!((rig.waiting("p"), unseen(&rig)), (0, 1));
    // Nothing waits, and yet the one place is taken.
    let second = begin(&rig, "second");
    let refused = step(&rig, second);
    assert!(matches!(refused.phase, StepPhase::Ready { .. }), "{refused:?}");
    let told = refused.graph.and_then(|graph| graph.refused);
    assert_eq!(told.as_deref(), Some("pool queue is full"));
    // Nobody asks again: the only timer is its own limit.
    let timers = rig.read(|tx| tx.scan(&TIMERS, &(TENANT,), None, usize::MAX));
    assert_eq!(timers.len(), 1);
    assert_eq!(timers[0].0.1, rig.wall().plus(1_000));
    assert!(!rig.look().work);
    tick(&rig, first, Vec::new());
    assert!(matches!(step(&rig, first).phase, StepPhase::Failed { .. }));
    assert_eq!(unseen(&rig), 0);
    // What has told of the room lets it in.
    assert!(rig.look().work);
    rig.pass_with(0, Rules::plain());
    let admitted = step(&rig, second);
    assert!(matches!(admitted.phase, StepPhase::Queued { .. }), "{admitted:?}");
    assert_eq!(admitted.attempt, 1);
    assert_eq!(admitted.graph.and_then(|graph| graph.refused), None);
}

/// The claim that makes room in the queue lets in who stands before it, in the same change and by priority.
#[test]
fn a_claim_lets_in_who_was_refused() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[]);
    let step_of = |name: &str, priority: i32| json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}, "slots": {"pool": "p", "priority": priority}});
    rig.publish_graph(&json!({"family_slug": "w", "steps": [step_of("a", 9), step_of("b", 0), step_of("c", 0), step_of("d", 5)]}));
    let (run, _) = rig.begin_graph("w", json!({}), 0);
    let words = || ["a", "b", "c", "d"].map(|step| rig.step_word(run, step));
    assert_eq!(words(), ["queued", "ready", "ready", "ready"]);
    let mut order = Vec::new();
    let before = rig.commits();
    let mut claimed = rig.pass_with(1, Rules::plain()).claimed;
    while let Some(one) = claimed.pop() {
        order.push(one.step.to_string());
        // There is always somebody in the queue while anybody is left.
        let waits = words().iter().filter(|word| **word == "queued").count();
        assert_eq!(waits, usize::from(order.len() < 4), "{:?}", words());
        rig.fold_graph(run, &rig.posted(&[(one, done(json!(1)))]), 0);
        claimed = rig.pass_with(1, Rules::plain()).claimed;
    }
    assert_eq!(order, ["a", "d", "b", "c"]);
    assert_eq!(rig.run_word(run), "succeeded");
    // A claim and an end for each; nothing else is written, and the last pass finds nothing.
    assert_eq!(rig.commits() - before, 8);
    rig.assert_clean();
}

/// T7, of a sensor: its time is over while its poke waits for slots.
#[test]
fn a_sensor_that_times_out_in_the_queue_retires_its_entry() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[]);
    let sensor = json!({"ref": "s", "type": "STEP_TYPE_SENSOR", "args": {"command": "true", "poke_interval": "1s", "poke_timeout": "9s"},
        "slots": {"pool": "p"}, "timeouts": {"total": "3s"}});
    rig.publish_graph(&json!({"family_slug": "w", "steps": [sensor]}));
    let (run, _) = rig.begin_graph("w", json!({}), 0);
    assert_eq!((rig.step_word(run, "s"), rig.waiting("p")), ("queued", 1));
    rig.clock().advance(3_000);
    rig.fold_graph(run, &rig.timers_due(run), 0);
    assert_eq!((rig.step_word(run, "s"), rig.run_word(run)), ("failed", "failed"));
    assert_eq!((rig.waiting("p"), unseen(&rig)), (0, 0));
    rig.assert_clean();
}

/// Whoever waits for a time, for people or for branches has no slots, and neither has who is tried again later.
#[test]
fn waiting_and_backing_off_steps_hold_no_slots() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 10)], &[]);
    let pooled = |name: &str, kind: &str, args: serde_json::Value| {
        json!({"ref": name, "type": kind, "args": args, "slots": {"pool": "p"},
            "retry": {"max_attempts": 2, "initial_interval": "10s"}})
    };
    let failing = pooled("failing", "STEP_TYPE_COMMAND", json!({"command": "false"}));
    let sensor = pooled(
        "sensor",
        "STEP_TYPE_SENSOR",
        json!({"command": "false", "poke_interval": "10s", "poke_timeout": "1h"}),
    );
    let good = pooled("good", "STEP_TYPE_COMMAND", json!({"command": "true"}));
    rig.publish_graph(&json!({"family_slug": "w", "steps": [failing, sensor, good,
        {"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}}, {"ref": "ok", "type": "STEP_TYPE_APPROVAL"}]}));
    let (run, _) = rig.begin_graph("w", json!({}), 0);
    for _ in 0..3 {
        let claimed = rig.claim();
        assert_eq!(rig.used("p"), 1);
        let end = match claimed.step.as_str() {
            "failing" => broken(),
            "sensor" => AttemptEnd::NotMet,
            _ => done(json!(1)),
        };
        rig.fold_graph(run, &rig.posted(&[(claimed, end)]), 0);
        assert_eq!(rig.used("p"), 0);
    }
    let words = ["failing", "sensor", "good", "nap", "ok"].map(|step| rig.step_word(run, step));
    assert_eq!(words, ["retrying", "waiting", "succeeded", "waiting", "waiting"]);
    assert_eq!((rig.waiting("p"), rig.look().claims), (0, 0));
}

/// A step that was put back waits for a start anew, and no longer than it may.
#[test]
fn a_queue_timeout_holds_after_a_put_back() {
    let rig = Rig::new(&[], &[]);
    let step = json!({"ref": "a", "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}, "timeouts": {"queue": "5s"}});
    rig.publish_graph(&json!({"family_slug": "w", "steps": [step]}));
    let (run, _) = rig.begin_graph("w", json!({}), 0);
    rig.clock().advance(4_000);
    let claimed = rig.claim();
    assert!(rig.timers_due(run).timers.is_empty());
    rig.clock().advance(60_000);
    assert!(
        rig.timers_due(run).timers.is_empty(),
        "while it runs that limit rests"
    );
    rig.put_back(&claimed, reason::DAEMON_STOPPED);
    assert_eq!(rig.step_word(run, "a"), "ready");
    rig.clock().advance(4_999);
    assert!(rig.timers_due(run).timers.is_empty());
    rig.clock().advance(1);
    rig.fold_graph(run, &rig.timers_due(run), 0);
    assert_eq!((rig.step_word(run, "a"), rig.run_word(run)), ("failed", "failed"));
    rig.assert_clean();
}

/// Also when the coordinator ends the step itself between the close and its sight of it.
#[test]
fn an_entry_that_its_run_gives_up_is_seen_with_that() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[plan("only")]);
    let run = begin(&rig, "only");
    rig.clock().advance(2_000);
    rig.pass_with(0, Rules::plain());
    assert_eq!(unseen(&rig), 1);
    let cancel = Fact::Cancel {
        by: "somebody".to_owned(),
    };
    tick(&rig, run, vec![cancel]);
    assert_eq!(unseen(&rig), 0);
}
