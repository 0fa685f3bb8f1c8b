//! Stored bytes are a promise: what each record looks like in the file, for every variant it has. A line of the table
//! changes only together with a new version of its record, and then the old line stays, to be read by the new code.

use super::codec::{self, Record};
use super::feed::FeedRow;
use super::rows::{
    Boot, ClosedRow, DeadStep, DefinitionRecord, DueRow, Ending, EndingCause, Fire, LiveAttempt, LiveEntry,
    NodeRecord, Number, Owed, Pin, PoisonedRun, Present, PublishedJob, PublishedSlotPool, ReadyStep,
    Remembered, RunningRow, ScheduleMark, UnseenRow, WaitingRow,
};
use super::{
    golden_access, golden_backups, golden_daemons, golden_fires, golden_graphs, golden_objects,
    golden_reports, golden_routing, golden_workflows,
};
use crate::domain::slots::admission::{Pause, SlotPoolState};
use crate::domain::slots::claim::{Claim, Lease};
use crate::domain::slots::entry::tests::{claim, entry};
use crate::domain::slots::entry::{EntryKind, EntryState, SlotEntry};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::run::{RetryRight, Run, RunState, StepPhase, StepState, Trigger};
use crate::words::ids::{EntryId, RunId, hex};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::{BootMillis, Millis};

/// Record, what of it, version, bytes.
const GOLDEN: &str = include_str!("golden.txt");

pub(super) struct Sample {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    version: u8,
    pub(super) bytes: Vec<u8>,
}

/// Encodes a record and sees that it comes back.
pub(super) fn sample<R: Record + PartialEq + std::fmt::Debug>(what: &'static str, record: &R) -> Sample {
    let bytes = codec::encode(record);
    assert_eq!(codec::decode::<R>(&bytes).as_ref(), Ok(record), "{}", R::NAME);
    assert_eq!(bytes[0], R::VERSION);
    Sample {
        name: R::NAME,
        what,
        version: R::VERSION,
        bytes,
    }
}

pub(super) fn job() -> JobName {
    JobName::new("nightly").unwrap()
}

fn slot_pool() -> SlotPoolName {
    SlotPoolName::new("db").unwrap()
}

fn node() -> NodeName {
    NodeName::new("n-1").unwrap()
}

pub(super) fn why() -> String {
    "why".to_owned()
}

fn run_samples(out: &mut Vec<Sample>) {
    let run = |trigger: Trigger, state: RunState| Run {
        graph: None,
        id: RunId([1; 16]),
        definition: job(),
        version: 3,
        trigger,
        node: Some(node()),
        created_at: Millis(1_000),
        record_version: 2,
        state,
    };
    let due = || Trigger::Schedule { instant: Millis(999) };
    let (started_at, ended_at) = (Millis(2_000), Millis(-3_000));
    let by_hand = Trigger::Manual {
        principal: "me".to_owned(),
    };
    out.push(sample(
        "pending",
        &Run {
            node: None,
            ..run(by_hand, RunState::Pending)
        },
    ));
    let once_more = Trigger::Rerun {
        principal: "me".to_owned(),
        of: RunId([2; 16]),
    };
    out.push(sample("rerun", &run(once_more, RunState::Pending)));
    out.push(sample("running", &run(due(), RunState::Running { started_at })));
    out.push(sample(
        "succeeded",
        &run(due(), RunState::Succeeded { started_at, ended_at }),
    ));
    let failed = RunState::Failed {
        started_at: Some(started_at),
        ended_at,
        reason: why(),
    };
    out.push(sample("failed", &run(due(), failed)));
    out.push(sample(
        "cancelled",
        &run(
            due(),
            RunState::Cancelled {
                started_at: None,
                ended_at,
                reason: why(),
            },
        ),
    ));
    out.push(sample(
        "skipped",
        &run(
            due(),
            RunState::Skipped {
                ended_at,
                reason: why(),
            },
        ),
    ));
}

fn step_samples(out: &mut Vec<Sample>) {
    let (started_at, ended_at) = (Millis(2_000), Millis(-3_000));
    let step = |phase: StepPhase| StepState {
        graph: None,
        step: StepRef::main(),
        attempt: 1,
        deaths: 4,
        phase,
    };
    let since = Millis(70_000);
    out.push(sample("ready", &step(StepPhase::Ready { since })));
    out.push(sample("queued", &step(StepPhase::Queued { entry: 300, since })));
    out.push(sample(
        "running",
        &step(StepPhase::Running {
            fence: 70_000,
            started_at,
            entry: Some(300),
        }),
    ));
    out.push(sample(
        "retrying",
        &step(StepPhase::Retrying {
            due: ended_at,
            reason: why(),
            refused: None,
        }),
    ));
    out.push(sample("succeeded", &step(StepPhase::Succeeded { ended_at })));
    out.push(sample(
        "failed",
        &step(StepPhase::Failed {
            ended_at,
            reason: why(),
        }),
    ));
    out.push(sample(
        "skipped",
        &step(StepPhase::Skipped {
            ended_at,
            reason: why(),
        }),
    ));
    out.push(sample(
        "cancelled",
        &step(StepPhase::Cancelled {
            ended_at,
            reason: why(),
        }),
    ));
}

fn attempt_samples(out: &mut Vec<Sample>) {
    let (started_at, ended_at) = (Millis(2_000), Millis(-3_000));
    let attempt = |outcome: Outcome, exit_code: Option<i32>| Attempt {
        outcome,
        exit_code,
        reason: exit_code.map(|_| why()),
        node: node(),
        pid: exit_code.map(|_| 70_000),
        started_at,
        ended_at,
        log_bytes: 1 << 40,
    };
    out.push(sample("succeeded", &attempt(Outcome::Succeeded, Some(0))));
    out.push(sample("failed", &attempt(Outcome::Failed, Some(127))));
    out.push(sample("cancelled", &attempt(Outcome::Cancelled, Some(-15))));
    out.push(sample("timed out", &attempt(Outcome::TimedOut, Some(-100))));
    out.push(sample("lost", &attempt(Outcome::Lost, None)));
}

fn entry_samples(out: &mut Vec<Sample>) {
    let state = |state: EntryState| SlotEntry { state, ..entry(7) };
    let at = Millis(90);
    let fired = SlotEntry {
        kind: EntryKind::Scheduled,
        node: Some(node()),
        priority: -5,
        ..entry(7)
    };
    out.push(sample("queued", &fired));
    out.push(sample(
        "queued again",
        &state(EntryState::Queued { reason: Some(why()) }),
    ));
    out.push(sample("running", &state(EntryState::Running { claim: claim(9) })));
    let bare = Claim {
        process: None,
        ..claim(9)
    };
    out.push(sample(
        "finished",
        &state(EntryState::Finished {
            at,
            reason: Some(why()),
            claim: bare,
        }),
    ));
    out.push(sample(
        "expired",
        &state(EntryState::Expired { at, reason: why() }),
    ));
    out.push(sample(
        "cancelled",
        &state(EntryState::Cancelled { at, reason: why() }),
    ));
}

fn slot_pool_samples(out: &mut Vec<Sample>) {
    let at = Millis(90);
    let pause = Pause {
        until: Some(at),
        by: "me".to_owned(),
        note: "note".to_owned(),
    };
    out.push(sample(
        "draining",
        &SlotPoolState {
            stored_slots: 4,
            paused: None,
            draining_to: Some(2),
        },
    ));
    out.push(sample(
        "paused",
        &SlotPoolState {
            stored_slots: 4,
            paused: Some(pause.clone()),
            draining_to: None,
        },
    ));
    out.push(sample("open end", &Pause { until: None, ..pause }));
}

fn index_samples(out: &mut Vec<Sample>) {
    let waiting = WaitingRow {
        seq: 7,
        slots: 2,
        node: None,
        job: job(),
    };
    out.push(sample("unbound", &waiting));
    out.push(sample(
        "bound",
        &WaitingRow {
            node: Some(node()),
            ..waiting
        },
    ));
    let lease = Lease {
        clock: claim(9).place.clock,
        until: BootMillis(70_000),
        until_wall: Millis(80_000),
        renewals: 3,
    };
    out.push(sample(
        "held",
        &RunningRow {
            slots: 2,
            node: node(),
            fence: 9,
            lease,
        },
    ));
    out.push(sample(
        "any",
        &DueRow {
            seq: 7,
            slot_pool: slot_pool(),
        },
    ));
    out.push(sample("any", &ClosedRow { seq: 7 }));
    out.push(sample(
        "any",
        &UnseenRow {
            seq: 7,
            run: entry(7).run,
            step: entry(7).step,
        },
    ));
    let task = SlotEntry {
        kind: EntryKind::Task,
        ..entry(7)
    };
    out.push(sample("queued task", &task));
    let poke = SlotEntry {
        kind: EntryKind::Poke,
        ..entry(7)
    };
    out.push(sample("queued poke", &poke));
}

fn other_samples(out: &mut Vec<Sample>) {
    let at = Millis(90);
    out.push(sample("small", &Number(250)));
    out.push(sample("large", &Number(u64::MAX)));
    out.push(sample("any", &Present));
    let record = NodeRecord {
        generated: true,
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        pid_namespace: 4_026_531_836,
        pid: 70_000,
        start_ticks: 5,
        started_at: at,
        last_seen: at,
    };
    out.push(sample("any", &record));
    let json = JsonText::parse("{\"name\":\"nightly\"}").unwrap();
    out.push(sample(
        "any",
        &DefinitionRecord {
            digest: "d".to_owned(),
            published_at: at,
            json,
        },
    ));
    let published = PublishedJob {
        version: 3,
        digest: "d".to_owned(),
        enabled: true,
        slot_pool: Some(slot_pool()),
        content: "c".to_owned(),
    };
    out.push(sample("pooled", &published));
    out.push(sample(
        "disabled",
        &PublishedJob {
            enabled: false,
            slot_pool: None,
            ..published
        },
    ));
    out.push(sample(
        "any",
        &PublishedSlotPool {
            slots: 4,
            max_queued: 1_000,
        },
    ));
}

fn live_samples(out: &mut Vec<Sample>) {
    let at = Millis(90);
    let live = LiveAttempt {
        job: job(),
        number: 1,
        claim: claim(9),
        entry: Some(LiveEntry {
            seq: 7,
            id: EntryId([7; 16]),
            slot_pool: slot_pool(),
        }),
        kill_timeout_ms: 30_000,
        ending: None,
    };
    let ending = |cause: EndingCause| {
        Some(Ending {
            cause,
            at,
            by: "me".to_owned(),
        })
    };
    out.push(sample("pooled", &live));
    out.push(sample(
        "cancelled",
        &LiveAttempt {
            ending: ending(EndingCause::Cancelled),
            ..live.clone()
        },
    ));
    out.push(sample(
        "replaced",
        &LiveAttempt {
            entry: None,
            ending: ending(EndingCause::Replaced),
            ..live
        },
    ));
    out.push(sample(
        "bound",
        &ReadyStep {
            job: job(),
            node: Some(node()),
        },
    ));
}

pub(super) fn samples() -> Vec<Sample> {
    let mut out = Vec::new();
    run_samples(&mut out);
    step_samples(&mut out);
    attempt_samples(&mut out);
    entry_samples(&mut out);
    slot_pool_samples(&mut out);
    index_samples(&mut out);
    other_samples(&mut out);
    live_samples(&mut out);
    golden_fires::samples(&mut out);
    for add in [
        golden_reports::samples,
        golden_backups::samples,
        golden_daemons::samples,
    ] {
        add(&mut out);
    }
    golden_workflows::samples(&mut out);
    golden_access::samples(&mut out);
    golden_graphs::samples(&mut out);
    golden_objects::samples(&mut out);
    golden_routing::samples(&mut out);
    out
}

fn golden_lines() -> impl Iterator<Item = &'static str> {
    let others = [
        golden_reports::GOLDEN,
        golden_backups::GOLDEN,
        golden_daemons::GOLDEN,
        golden_workflows::GOLDEN,
        golden_access::GOLDEN,
        golden_graphs::GOLDEN,
        golden_objects::GOLDEN,
        golden_routing::GOLDEN,
    ];
    let others = others.into_iter().flat_map(str::lines);
    GOLDEN.lines().chain(others)
}

#[test]
fn golden_bytes() {
    let written: Vec<String> = samples().iter().map(Sample::line).collect();
    let golden: Vec<&str> = golden_lines().collect();
    assert_eq!(
        written,
        golden,
        "the lines of this build:\n{}\n",
        written.join("\n")
    );
}

impl Sample {
    fn line(&self) -> String {
        format!(
            "{} | {} | {} | {}",
            self.name,
            self.what,
            self.version,
            hex(&self.bytes)
        )
    }
}

/// A record that nobody added to the table would have no promise.
#[test]
fn every_record_has_golden_bytes() {
    let text = include_str!("rows.rs");
    let list = text
        .split("record! {\n")
        .nth(1)
        .unwrap()
        .split("\n}")
        .next()
        .unwrap();
    let names: Vec<&str> = list.lines().filter_map(|line| line.split('"').nth(1)).collect();
    assert!(names.len() >= 22, "{names:?}");
    for name in names {
        let has_line = golden_lines().any(|line| line.split(" | ").next() == Some(name));
        assert!(has_line, "{name} has no golden bytes");
    }
}

macro_rules! decode_each {
    ($bytes:expr, $($record:ty),*) => {
        $(drop(codec::decode::<$record>($bytes));)*
    };
}

/// What the reader of each record makes of these bytes is a value or a sentence.
fn decode_all(bytes: &[u8]) {
    decode_each!(
        bytes,
        Run,
        StepState,
        Attempt,
        SlotEntry,
        SlotPoolState,
        Pause,
        Number,
        Present,
        NodeRecord,
        DefinitionRecord,
        PublishedJob,
        PublishedSlotPool,
        LiveAttempt,
        ReadyStep,
        Fire,
        WaitingRow,
        RunningRow,
        DueRow,
        ClosedRow,
        UnseenRow,
        PoisonedRun,
        Pin,
        DeadStep,
        Remembered,
        FeedRow,
        RetryRight,
        ScheduleMark,
        Owed,
        Boot
    );
    golden_reports::decode_all(bytes);
    golden_backups::decode_all(bytes);
    golden_daemons::decode_all(bytes);
    golden_graphs::decode_all(bytes);
    golden_workflows::decode_all(bytes);
    golden_objects::decode_all(bytes);
    golden_access::decode_all(bytes);
    golden_routing::decode_all(bytes);
}

proptest::proptest! {
    #[test]
    fn random_bytes_never_panic(mut bytes in proptest::collection::vec(proptest::num::u8::ANY, 0..300), current: bool) {
        if let Some(version) = bytes.first_mut().filter(|_| current) {
            *version = 1;
        }
        decode_all(&bytes);
    }

    #[test]
    fn damaged_records_never_panic(which: proptest::sample::Index, place: proptest::sample::Index, byte: u8, cut: bool) {
        let all = samples();
        let mut bytes = which.get(&all).bytes.clone();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        if cut {
            bytes.truncate(place);
        }
        decode_all(&bytes);
    }
}
