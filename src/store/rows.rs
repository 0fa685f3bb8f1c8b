//! The records that are no domain objects: index rows, published configuration, nodes, live attempts.

use serde::{Deserialize, Serialize};

use super::codec::Record;
use super::graph_rows::{
    HistoryRow, KeyHolder, KeyWaiter, OpenCheckpoint, StoredFact, StoredValue, TaskClaim, TaskRow,
};
use super::old;
use crate::domain::lateness::Breach;
use crate::domain::report::{Effect, ReportTarget, ReportWishes};
use crate::domain::slots::admission::{Pause, SlotPoolState};
use crate::domain::slots::claim::{Claim, ClockId, Lease};
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::attempt::Attempt;
use crate::domain::workflow::graph::key_limit::KeyCount;
use crate::domain::workflow::run::{RetryRight, Run, StepState};
use crate::words::ids::{EntryId, RunId};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::{BootMillis, Millis, Now};

macro_rules! record {
    ($($type:ty, $name:literal, $version:literal;)*) => {
        $(impl Record for $type {
            const NAME: &'static str = $name;
            const VERSION: u8 = $version;
        })*
    };
}

record! {
    Attempt, "attempt", 1;
    SlotEntry, "slot entry", 1;
    SlotPoolState, "slot pool", 1;
    Pause, "pause", 1;
    Number, "number", 1;
    Present, "mark", 1;
    NodeRecord, "node", 1;
    DefinitionRecord, "definition", 1;
    PublishedJob, "published job", 1;
    PublishedSlotPool, "published slot pool", 1;
    LiveAttempt, "live attempt", 1;
    ReadyStep, "ready step", 1;
    Fire, "fire", 1;
    WaitingRow, "waiting row", 1;
    RunningRow, "running row", 1;
    DueRow, "due row", 1;
    ClosedRow, "closed row", 1;
    UnseenRow, "unseen row", 1;
    PoisonedRun, "poisoned run", 1;
    Pin, "pin", 1;
    DeadStep, "dead step", 1;
    Remembered, "remembered answer", 1;
    super::feed::FeedRow, "change", 1;
    RetryRight, "retry right", 1;
    ScheduleMark, "schedule mark", 1;
    Owed, "owed run", 1;
    Boot, "boot", 1;
    ReportWishes, "published reports", 1;
    JobMark, "job mark", 1;
    Effect, "effect", 1;
    EffectDueRow, "effect due row", 1;
    BreachRow, "breach", 1;
    BackupRow, "backup", 1;
    Delivering, "delivering", 1;
    NodeDrain, "node drain", 1;
    PublishedBy, "published by", 1;
    StoredValue, "value", 1;
    StoredFact, "fact", 1;
    HistoryRow, "history", 1;
    OpenCheckpoint, "open checkpoint", 1;
    TaskRow, "task", 1;
    TaskClaim, "task claim", 1;
    KeyCount, "key count", 1;
    KeyHolder, "key holder", 1;
    KeyWaiter, "key waiter", 1;
    WorkflowRecord, "workflow", 1;
    WorkflowDraft, "workflow draft", 1;
    WorkflowVersion, "workflow version", 1;
}

impl Record for Run {
    const NAME: &'static str = "run";
    const VERSION: u8 = 2;

    /// Version 1 had no part of a graph at its end.
    fn decode(version: u8, body: &[u8]) -> Result<Run, String> {
        old::without_last_option::<Run>(version, body)
    }
}

impl Record for StepState {
    const NAME: &'static str = "step";
    const VERSION: u8 = 2;

    /// Version 1 had no part of a graph at its end.
    fn decode(version: u8, body: &[u8]) -> Result<StepState, String> {
        old::without_last_option::<StepState>(version, body)
    }
}

/// A counter of the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Number(pub u64);

/// A row whose key says everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Present;

/// A daemon's last word about itself. A free lock is what proves it dead; `last_seen` only informs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeRecord {
    /// True when ductor made the name.
    pub generated: bool,
    /// The machine.
    pub host: String,
    /// Its boot.
    pub boot_id: String,
    /// Its process-number space.
    pub pid_namespace: u64,
    /// The daemon's process.
    pub pid: u32,
    /// Its start, in kernel ticks.
    pub start_ticks: u64,
    /// When it started.
    pub started_at: Millis,
    /// When it wrote this.
    pub last_seen: Millis,
}

/// One frozen version of a definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DefinitionRecord {
    /// Changes when what would run changes.
    pub digest: String,
    /// When it was published.
    pub published_at: Millis,
    /// The definition, readable.
    pub json: JsonText,
}

/// What the last configuration load said about a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedJob {
    /// The newest version.
    pub version: u32,
    /// Its digest.
    pub digest: String,
    /// Whether it may start.
    pub enabled: bool,
    /// Its slot pool.
    pub slot_pool: Option<SlotPoolName>,
    /// The SHA-256 of the whole JSON, so that an unchanged load writes nothing.
    pub content: String,
}

/// What the last configuration load said about a slot pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedSlotPool {
    /// Configured slots.
    pub slots: u32,
    /// The longest queue.
    pub max_queued: u32,
}

/// A started, or about to be started, execution; pooled or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveAttempt {
    /// The job.
    pub job: JobName,
    /// The attempt number.
    pub number: u32,
    /// By which right, and where.
    pub claim: Claim,
    /// The slot entry, for a pooled step.
    pub entry: Option<LiveEntry>,
    /// From SIGTERM to SIGKILL.
    pub kill_timeout_ms: u64,
    /// Somebody wants it ended.
    pub ending: Option<Ending>,
}

/// The slot entry of a live attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveEntry {
    /// Its row.
    pub seq: u64,
    /// Its id.
    pub id: EntryId,
    /// Its slot pool.
    pub slot_pool: SlotPoolName,
}

/// A request to end an execution; it survives a crash of the daemon that should carry it out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ending {
    /// What for.
    pub cause: EndingCause,
    /// When it was asked.
    pub at: Millis,
    /// Who.
    pub by: String,
}

/// Why an execution is ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum EndingCause {
    /// An operator cancelled the run or stopped the job.
    Cancelled,
    /// A newer instance replaces it.
    Replaced,
}

/// A step without a slot pool that may start at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReadyStep {
    /// The job.
    pub job: JobName,
    /// The only daemon that may claim it.
    pub node: Option<NodeName>,
}

/// What became of one due moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Fire {
    /// It became a run.
    Run(RunId),
    /// It did not.
    Skipped {
        /// The stable word, like `pool_full`.
        reason: String,
        /// When that was recorded.
        at: Millis,
    },
    /// Nobody could fire it in time; it became this run afterwards.
    CaughtUp(RunId),
    /// It became a run that ended before anything started.
    Withdrawn {
        /// The stable word: `queue_timeout` or `cancelled`.
        reason: String,
        /// When that was recorded.
        at: Millis,
        /// The run.
        run: RunId,
    },
}

/// From where missed moments of a job are counted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleMark {
    /// Everything up to here has a row, is owed, or was before the job.
    pub at: Millis,
    /// The schedule of which that is true; another one has missed nothing yet.
    pub schedule: String,
}

/// A missed moment that will still run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Owed {
    /// The run that stands for it now.
    pub run: Option<RunId>,
    /// It is not tried before.
    pub not_before: Millis,
    /// Why it could not begin the last time.
    pub refused: Option<String>,
}

/// A boot of a machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Boot {
    /// The machine.
    pub host: String,
    /// The boot.
    pub boot_id: String,
    /// What ran for it.
    pub digest: String,
}

/// An entry in the order of its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitingRow {
    /// The entry.
    pub seq: u64,
    /// Its slots.
    pub slots: u32,
    /// Its node.
    pub node: Option<NodeName>,
    /// Its job.
    pub job: JobName,
}

/// An entry that holds slots. The lease stands here and nowhere else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunningRow {
    /// Its slots.
    pub slots: u32,
    /// Its holder.
    pub node: NodeName,
    /// Its fence.
    pub fence: u64,
    /// Its deadline.
    pub lease: Lease,
}

/// A waiting entry in the order of its deadline.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DueRow {
    /// The entry.
    pub seq: u64,
    /// Its slot pool.
    pub slot_pool: SlotPoolName,
}

/// A closed entry in the order of its close.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClosedRow {
    /// The entry.
    pub seq: u64,
}

/// A closed entry of a graph's step that its coordinator has not looked at.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnseenRow {
    /// The entry.
    pub seq: u64,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
}

/// A run that took too many daemons with it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoisonedRun {
    /// The job.
    pub job: JobName,
    /// The step.
    pub step: StepRef,
    /// When.
    pub at: Millis,
}

/// Why a run is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// Since when.
    pub at: Millis,
    /// Who said so.
    pub by: String,
    /// Why, for people.
    pub reason: String,
}

/// A step that took too many daemons with it, until somebody looks after it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeadStep {
    /// The job or definition.
    pub job: JobName,
    /// When it was given up.
    pub at: Millis,
    /// Daemons that died with it.
    pub deaths: u32,
}

/// The answer to a request that carried an idempotency key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remembered {
    /// Digest of (principal, key): the key of the row that points here.
    pub key: [u8; 16],
    /// Digest of method, path and body.
    pub request: [u8; 16],
    /// When.
    pub at: Millis,
    /// The status.
    pub status: u16,
    /// The `Location` header.
    pub location: Option<String>,
    /// The body.
    pub body: JsonText,
}

/// What outlives the runs of a configured job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobMark {
    /// When a configuration named the job first, or again.
    pub known_since: Millis,
    /// The end of its newest success since then.
    pub last_success: Option<Millis>,
}

/// A report that is owed, in the order of its next try.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EffectDueRow {
    /// Its job.
    pub job: JobName,
    /// How it is delivered.
    pub target: ReportTarget,
}

/// A limit that is passed now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BreachRow {
    /// What was passed.
    pub breach: Breach,
    /// When that was noticed, and told.
    pub noticed_at: Millis,
}

/// A backup that ended, well or not.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupRow {
    /// Where it was to be, as the daemon sees it.
    pub path: String,
    /// Who asked for it.
    pub by: String,
    /// When it ended.
    pub ended_at: Millis,
    /// What became of it.
    pub result: BackupResult,
}

/// What became of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackupResult {
    /// It is there.
    Done {
        /// Its size.
        bytes: u64,
        /// Its BLAKE3 in hex digits.
        blake3: String,
        /// Rows of all tables.
        rows: u64,
    },
    /// Nothing is there.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A report that a daemon delivers now, so that another one does not: a small lease that nobody renews.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivering {
    /// Who.
    pub node: NodeName,
    /// From the counter of all claims: what is written about the delivery is compared with it.
    pub fence: u64,
    /// The clock of `since`.
    pub clock: ClockId,
    /// When it was taken, on that clock.
    pub since: BootMillis,
    /// For how long it is nobody else's.
    pub hold_ms: u64,
}

impl Delivering {
    /// True when its time is over by its own clock; `None` when that clock cannot be read here.
    pub fn is_over(&self, clock: &ClockId, now: Now) -> Option<bool> {
        (self.clock == *clock).then(|| self.since.until(now.boot) >= self.hold_ms)
    }
}

/// An operator has told a daemon to begin nothing more. The row holds over restarts.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeDrain {
    /// Since when.
    pub since: Millis,
    /// Who.
    pub by: String,
    /// Why.
    pub note: String,
}

/// Whose load said something last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishedBy {
    /// The daemon.
    pub node: NodeName,
    /// When.
    pub at: Millis,
}

/// A definition of the API: what is published of it, and whether a draft waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowRecord {
    /// Moves with each change.
    pub record_version: u64,
    /// For lists.
    pub title: String,
    /// The newest version; 0 before the first.
    pub newest: u32,
    /// The version that begins when none is asked for: the newest that is not deprecated; 0 if there is none.
    pub current: u32,
    /// SHA-256 of the draft, if there is one.
    pub draft: Option<String>,
    /// When it was made.
    pub created_at: Millis,
    /// When it was changed last.
    pub updated_at: Millis,
}

/// What was posted and is not published.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowDraft {
    /// As it was posted.
    pub json: JsonText,
    /// Who.
    pub by: String,
    /// When.
    pub at: Millis,
}

/// One frozen version of a definition of the API, as it was posted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkflowVersion {
    /// SHA-256 over the canonical text of the document.
    pub sha256: String,
    /// As it was posted.
    pub posted: JsonText,
    /// Who published it.
    pub by: String,
    /// When.
    pub published_at: Millis,
    /// Since when no new runs of it begin.
    pub deprecated: Option<Deprecation>,
}

/// Who ended the use of a version.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Deprecation {
    /// When.
    pub at: Millis,
    /// Who.
    pub by: String,
}
