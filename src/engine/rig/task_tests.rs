//! Tasks of graphs in slot pools: what others decide about them counts until their run has taken it in.

use serde_json::json;

use super::jobs::{JobPlan, name, slot_pool_of};
use super::stage::{Rig, by_hand};
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::definition::tests::sample;
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::tick::Fact;
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::engine::changes::fold::{self, Desk, Posted};
use crate::engine::changes::graph::{self, Applied};
use crate::engine::changes::maintain::Rules;
use crate::engine::changes::start::Started;
use crate::store::{entries, runs};
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
    match rig.begin_run(&rig.wish(job, by_hand())).unwrap() {
        Started::Ready { run } => run,
        other => panic!("{other:?}"),
    }
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
    tick(&rig, first, Vec::new());
    assert!(matches!(step(&rig, first).phase, StepPhase::Failed { .. }));
    assert_eq!(unseen(&rig), 0);
    let due = Fact::Due {
        step: StepRef::new("t").unwrap(),
    };
    tick(&rig, second, vec![due]);
    let admitted = step(&rig, second);
    assert!(matches!(admitted.phase, StepPhase::Queued { .. }), "{admitted:?}");
    assert_eq!(admitted.attempt, 1);
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
