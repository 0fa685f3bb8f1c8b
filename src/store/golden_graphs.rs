//! The promise of `golden`, for the records of graphs' runs, and for those that older binaries wrote in another shape.

use super::codec;
use super::golden::{Sample, sample};
use super::graph_rows::{
    HistoryRow, KeyHolder, KeyWaiter, OpenCheckpoint, StoredFact, StoredValue, TaskClaim, TaskRow,
};
use super::rows::UnseenRow;
use crate::domain::payload::{Payload, Sha256Name};
use crate::domain::slots::claim::ClockId;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::history::{HistoryCounts, Retention, Transition};
use crate::domain::workflow::graph::key_limit::{KeyCount, KeyPlace, KeyStand};
use crate::domain::workflow::graph::state::{
    Branches, EarlyEnd, EarlyEndKind, GraphHeader, GraphStep, Hold, Line, TaskPlace, WaitsFor,
};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::words::ids::{RunId, WorkId};
use crate::words::names::{JobName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::{BootMillis, Millis};

/// Record, what of it, version, bytes.
pub(super) const GOLDEN: &str = include_str!("golden_graphs.txt");
/// The same of versions that are only read.
const OLD: &str = include_str!("golden_v1.txt");

fn step_ref(name: &str) -> StepRef {
    StepRef::new(name).unwrap()
}

fn header() -> GraphHeader {
    GraphHeader {
        ended: 3,
        failure: Some("why".to_owned()),
        ending: Some(EarlyEnd {
            how: EarlyEndKind::TimedOut,
            reason: "why".to_owned(),
        }),
        hold: Some(Hold {
            by: "me".to_owned(),
            reason: "why".to_owned(),
            since: Millis(1_000),
            unfollowed: 3,
        }),
        deadline: Some(Millis(9_000)),
        parent: Some((RunId([3; 16]), step_ref("p"))),
        depth: 2,
        tier: Tier::Background,
        fairness_key: "k".to_owned(),
        labels: vec![("n".to_owned(), "v".to_owned())],
        history: HistoryCounts {
            appended: 9,
            appended_bytes: 900,
            kept: 7,
            kept_bytes: 700,
            compactable: 3,
            compactable_bytes: 300,
            compacted_to: 5,
        },
        key_place: Some(key_place()),
    }
}

fn key_place() -> KeyPlace {
    KeyPlace {
        key: "acme".to_owned(),
        limit: 300,
        stand: KeyStand::Waits {
            number: 70_000,
            since: Millis(1_000),
            replaceable: true,
        },
    }
}

fn runs(out: &mut Vec<Sample>) {
    let run = |trigger: Trigger, state: RunState| Run {
        id: RunId([1; 16]),
        definition: JobName::new("w").unwrap(),
        version: 3,
        trigger,
        node: None,
        created_at: Millis(1_000),
        record_version: 2,
        state,
        graph: Some(Box::new(header())),
    };
    let child = Trigger::Child {
        parent: RunId([2; 16]),
        step: step_ref("s"),
    };
    let again = Trigger::RetryFrom {
        principal: "me".to_owned(),
        of: RunId([2; 16]),
        step: Some(step_ref("s")),
    };
    let started_at = Millis(2_000);
    out.push(sample(
        "paused graph",
        &run(child, RunState::Paused { started_at }),
    ));
    let timed_out = RunState::TimedOut {
        started_at,
        ended_at: Millis(3_000),
        reason: "why".to_owned(),
    };
    out.push(sample("timed out graph", &run(again, timed_out)));
}

fn steps(out: &mut Vec<Sample>) {
    let place = TaskPlace {
        queue: "q".to_owned(),
        tier: Tier::Interactive,
        partition: "k".to_owned(),
        number: 300,
    };
    let step = |phase: StepPhase| StepState {
        step: step_ref("a#1"),
        attempt: 1,
        deaths: 0,
        phase,
        graph: Some(GraphStep {
            timer: Some(Millis(5_000)),
            queued_since: Some(Millis(1_000)),
            refused: Some("why".to_owned()),
            total_at: Some(Millis(9_000)),
            attempt_ms: Some(300),
            first_poke: Some(Millis(1_000)),
            pokes: 2,
            kill_timeout_ms: 500,
            line: Some(Line::Processes),
            home: Some(Line::Tasks(place.clone())),
            over: Some("why".to_owned()),
            queue_ms: Some(700),
            unfollowed: Some(2),
            ..GraphStep::reached(Millis(1_000))
        }),
    };
    let since = Millis(1_000);
    let due = Millis(2_000);
    let branches = Branches {
        total: 300,
        begun: 20,
        succeeded: 10,
        failed: 1,
    };
    for (what, on) in [
        ("timer", WaitsFor::Timer { due }),
        ("checkpoint", WaitsFor::Checkpoint),
        ("approval", WaitsFor::Approval),
        ("child", WaitsFor::Child { run: RunId([2; 16]) }),
        ("branches", WaitsFor::Branches(branches)),
        ("poke", WaitsFor::Poke { due }),
        (
            "work",
            WaitsFor::Work {
                work: WorkId([3; 16]),
            },
        ),
    ] {
        out.push(sample(what, &step(StepPhase::Waiting { since, on })));
    }
    let upstream = StepPhase::UpstreamFailed {
        ended_at: since,
        reason: "why".to_owned(),
    };
    out.push(sample("upstream failed", &step(upstream)));
    out.push(sample("held", &step(StepPhase::Held { since })));
}

fn facts(out: &mut Vec<Sample>) {
    let (step, by) = (step_ref("s"), "me".to_owned());
    let reason = "why".to_owned();
    let value = Payload::Inline(JsonText::parse("{\"a\":1}").unwrap());
    for (what, fact) in [
        (
            "entry closed",
            StoredFact::EntryClosed {
                step: step.clone(),
                entry: 300,
                reason: reason.clone(),
            },
        ),
        (
            "attempt ended",
            StoredFact::AttemptEnded {
                step: step.clone(),
                fence: 300,
                cancelled: true,
                reason: reason.clone(),
            },
        ),
        (
            "child",
            StoredFact::Child {
                step: step.clone(),
                run: RunId([2; 16]),
            },
        ),
        (
            "resume",
            StoredFact::Resume {
                step: step.clone(),
                value,
                by: by.clone(),
            },
        ),
        (
            "decide",
            StoredFact::Decide {
                step,
                approve: true,
                note: "n".to_owned(),
                by: by.clone(),
            },
        ),
        ("cancel", StoredFact::Cancel { by: by.clone() }),
        (
            "pause",
            StoredFact::Pause {
                by: by.clone(),
                reason,
            },
        ),
        ("unpause", StoredFact::Unpause { by }),
        ("begin", StoredFact::Begin),
        (
            "work over",
            StoredFact::WorkOver {
                step: step_ref("s"),
                attempt: 2,
                work: WorkId([3; 16]),
            },
        ),
    ] {
        out.push(sample(what, &fact));
    }
}

pub(super) fn samples(out: &mut Vec<Sample>) {
    runs(out);
    steps(out);
    let inline = Payload::Inline(JsonText::parse("[1]").unwrap());
    out.push(sample("inline", &StoredValue(inline)));
    let blob = Payload::Blob {
        sha256: Sha256Name([7; 32]),
        bytes: 70_000,
    };
    out.push(sample("blob", &StoredValue(blob)));
    facts(out);
    claims(out);
    keys(out);
    let item = Transition {
        seq: 4,
        class: Retention::Standard,
        step: Some(step_ref("s")),
        what: "succeeded".to_owned(),
        detail: "d".to_owned(),
    };
    out.push(sample(
        "any",
        &HistoryRow {
            at: Millis(1_000),
            items: vec![item],
        },
    ));
    out.push(sample(
        "any",
        &OpenCheckpoint {
            approval: true,
            since: Millis(1_000),
        },
    ));
    out.push(sample(
        "any",
        &UnseenRow {
            seq: 300,
            run: RunId([1; 16]),
            step: step_ref("s"),
        },
    ));
    out.push(sample(
        "any",
        &TaskRow {
            run: RunId([1; 16]),
            step: step_ref("s"),
        },
    ));
}

fn claims(out: &mut Vec<Sample>) {
    out.push(sample(
        "any",
        &TaskClaim {
            run: RunId([1; 16]),
            step: step_ref("s"),
            queue: "q".to_owned(),
            worker: "w".to_owned(),
            hold_ms: 30_000,
            strict: true,
            clock: ClockId("b:1".to_owned()),
            until: BootMillis(300),
            until_wall: Millis(1_000),
            renewals: 2,
        },
    ));
}

fn keys(out: &mut Vec<Sample>) {
    let count = KeyCount {
        holding: 300,
        leaving: 1,
        waiting: 70_000,
    };
    out.push(sample("any", &count));
    out.push(sample("any", &KeyHolder { leaves: true }));
    let waiter = KeyWaiter {
        run: RunId([1; 16]),
        limit: 300,
        replaceable: true,
    };
    out.push(sample("any", &waiter));
}

/// What the reader of each record makes of these bytes is a value or a sentence.
pub(super) fn decode_all(bytes: &[u8]) {
    drop(codec::decode::<StoredValue>(bytes));
    drop(codec::decode::<StoredFact>(bytes));
    drop(codec::decode::<HistoryRow>(bytes));
    drop(codec::decode::<OpenCheckpoint>(bytes));
    drop(codec::decode::<TaskRow>(bytes));
    drop(codec::decode::<TaskClaim>(bytes));
    drop(codec::decode::<KeyCount>(bytes));
    drop(codec::decode::<KeyHolder>(bytes));
    drop(codec::decode::<KeyWaiter>(bytes));
    drop(codec::decode::<UnseenRow>(bytes));
}

/// A run and a step of version 1 are read as the same without a part of a graph.
#[test]
fn old_versions_are_read() {
    let current = include_str!("golden.txt");
    for line in OLD.lines() {
        let parts: Vec<&str> = line.split(" | ").collect();
        let [name, what, "1", bytes] = parts.as_slice() else {
            panic!("{line}");
        };
        let bytes = crate::words::ids::of_hex(bytes).unwrap();
        let again = match *name {
            "run" => codec::encode(&codec::decode::<Run>(&bytes).unwrap()),
            "step" => codec::encode(&codec::decode::<StepState>(&bytes).unwrap()),
            other => panic!("{other}"),
        };
        let wanted = format!("{name} | {what} | 2 | {}", crate::words::ids::hex(&again));
        assert!(current.lines().any(|line| line == wanted), "{wanted}");
    }
    assert!(OLD.lines().count() > 10);
}
