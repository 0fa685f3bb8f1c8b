//! Stored bytes are a promise: what each record looks like in the file, for every variant it has. A line of the table
//! changes only together with a new version of its record, and then the old line stays, to be read by the new code.

use super::codec::{self, Record};
use super::feed::{FeedItem, FeedRow};
use super::golden_reports;
use super::rows::{
    ClosedRow, DefinitionRecord, DueRow, Ending, EndingCause, Fire, LiveAttempt, LiveEntry, NodeRecord,
    Number, PoisonedRun, Present, PublishedJob, PublishedSlotPool, ReadyStep, Remembered, RunningRow,
    WaitingRow,
};
use crate::domain::slots::admission::{Pause, SlotPoolState};
use crate::domain::slots::claim::{Claim, Lease};
use crate::domain::slots::entry::tests::{claim, entry};
use crate::domain::slots::entry::{EntryKind, EntryState, SlotEntry};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::words::ids::{EntryId, RunId, hex};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::{BootMillis, Millis};

/// Record, what of it, version, bytes.
const GOLDEN: &str = "\
run | pending | 1 | 0101010101010101010101010101010101076e696768746c790301026d6500fbd0070200
run | running | 1 | 0101010101010101010101010101010101076e696768746c790300fbce0701036e2d31fbd0070201fba00f
run | succeeded | 1 | 0101010101010101010101010101010101076e696768746c790300fbce0701036e2d31fbd0070202fba00ffb6f17
run | failed | 1 | 0101010101010101010101010101010101076e696768746c790300fbce0701036e2d31fbd007020301fba00ffb6f1703776879
run | cancelled | 1 | 0101010101010101010101010101010101076e696768746c790300fbce0701036e2d31fbd007020400fb6f1703776879
run | skipped | 1 | 0101010101010101010101010101010101076e696768746c790300fbce0701036e2d31fbd0070205fb6f1703776879
step | ready | 1 | 01046d61696e010400fce0220200
step | queued | 1 | 01046d61696e010401fb2c01fce0220200
step | running | 1 | 01046d61696e010402fc70110100fba00f01fb2c01
step | succeeded | 1 | 01046d61696e010403fb6f17
step | failed | 1 | 01046d61696e010404fb6f1703776879
step | skipped | 1 | 01046d61696e010405fb6f1703776879
step | cancelled | 1 | 01046d61696e010406fb6f1703776879
attempt | succeeded | 1 | 010001000103776879036e2d3101fc70110100fba00ffb6f17fd0000000000010000
attempt | failed | 1 | 010101fbfe000103776879036e2d3101fc70110100fba00ffb6f17fd0000000000010000
attempt | cancelled | 1 | 0102011d0103776879036e2d3101fc70110100fba00ffb6f17fd0000000000010000
attempt | timed out | 1 | 010301c70103776879036e2d3101fc70110100fba00ffb6f17fd0000000000010000
attempt | lost | 1 | 01040000036e2d3100fba00ffb6f17fd0000000000010000
slot entry | queued | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0100010902c801036e2d310164000000
slot entry | queued again | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0101010002c800016400000103776879
slot entry | running | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0101010002c80001640001036e2d3109016801620103623a31010a050a0a
slot entry | finished | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0101010002c80001640002b40103776879036e2d3109016801620103623a31000a
slot entry | expired | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0101010002c80001640003b403776879
slot entry | cancelled | 1 | 0107070707070707070707070707070707070170016a07070707070707070707070707070707046d61696e0101010002c80001640004b403776879
slot pool | draining | 1 | 0104000102
slot pool | paused | 1 | 01040101b4026d65046e6f746500
pause | open end | 1 | 0100026d65046e6f7465
waiting row | unbound | 1 | 01070200076e696768746c79
waiting row | bound | 1 | 01070201036e2d31076e696768746c79
running row | held | 1 | 0102036e2d310903623a31fc70110100fc0071020003
due row | any | 1 | 0107026462
closed row | any | 1 | 0107
number | small | 1 | 01fa
number | large | 1 | 01fdffffffffffffffff
mark | any | 1 | 01
node | any | 1 | 010101680162fcfcffffeffc7011010005b4b4
definition | any | 1 | 010164b4127b226e616d65223a226e696768746c79227d
published job | pooled | 1 | 0103016401010264620163
published job | disabled | 1 | 0103016400000163
published slot pool | any | 1 | 0104fbe803
live attempt | pooled | 1 | 01076e696768746c7901036e2d3109016801620103623a31010a050a0a010707070707070707070707070707070707026462fb307500
live attempt | cancelled | 1 | 01076e696768746c7901036e2d3109016801620103623a31010a050a0a010707070707070707070707070707070707026462fb30750100b4026d65
live attempt | replaced | 1 | 01076e696768746c7901036e2d3109016801620103623a31010a050a0a00fb30750101b4026d65
ready step | bound | 1 | 01076e696768746c7901036e2d31
fire | run | 1 | 010001010101010101010101010101010101
fire | skipped | 1 | 010109706f6f6c5f66756c6cb4
poisoned run | any | 1 | 01076e696768746c79046d61696eb4
remembered answer | any | 1 | 010101010101010101010101010101010102020202020202020202020202020202b4ca01022f78127b226e616d65223a226e696768746c79227d
change | any | 1 | 01b40101740169020103776879
";

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

fn job() -> JobName {
    JobName::new("nightly").unwrap()
}

fn slot_pool() -> SlotPoolName {
    SlotPoolName::new("db").unwrap()
}

fn node() -> NodeName {
    NodeName::new("n-1").unwrap()
}

fn why() -> String {
    "why".to_owned()
}

fn run_samples(out: &mut Vec<Sample>) {
    let run = |trigger: Trigger, state: RunState| Run {
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

fn fire_samples(out: &mut Vec<Sample>) {
    let at = Millis(90);
    let json = JsonText::parse("{\"name\":\"nightly\"}").unwrap();
    out.push(sample("run", &Fire::Run(RunId([1; 16]))));
    out.push(sample(
        "skipped",
        &Fire::Skipped {
            reason: "pool_full".to_owned(),
            at,
        },
    ));
    out.push(sample(
        "any",
        &PoisonedRun {
            job: job(),
            step: StepRef::main(),
            at,
        },
    ));
    let answer = Remembered {
        key: [1; 16],
        request: [2; 16],
        at,
        status: 202,
        location: Some("/x".to_owned()),
        body: json,
    };
    out.push(sample("any", &answer));
    let item = FeedItem {
        topic: "t".to_owned(),
        id: "i".to_owned(),
        version: 2,
        detail: Some(why()),
    };
    out.push(sample(
        "any",
        &FeedRow {
            at,
            items: vec![item],
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
    fire_samples(&mut out);
    golden_reports::samples(&mut out);
    out
}

fn golden_lines() -> impl Iterator<Item = &'static str> {
    GOLDEN.lines().chain(golden_reports::GOLDEN.lines())
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
        PoisonedRun,
        Remembered,
        FeedRow
    );
    golden_reports::decode_all(bytes);
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
