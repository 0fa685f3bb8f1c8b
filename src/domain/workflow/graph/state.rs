//! What runs and steps of graphs carry besides what those of jobs do.

use serde::{Deserialize, Serialize};

use super::document::Tier;
use super::history::HistoryCounts;
use super::key_limit::KeyPlace;
use crate::words::ids::{RunId, WorkId};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// What the run of a graph carries in its header, so that a tick need not look at every step.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct GraphHeader {
    /// Steps outside of scatters that have ended.
    pub ended: u32,
    /// Why the run will fail when everything has ended: its first failure.
    pub failure: Option<String>,
    /// It ends before everything has run.
    pub ending: Option<EarlyEnd>,
    /// Somebody holds it.
    pub hold: Option<Hold>,
    /// It is ended as timed out then.
    pub deadline: Option<Millis>,
    /// The run and the step that wait for it.
    pub parent: Option<(RunId, StepRef)>,
    /// How many parents are above it.
    pub depth: u8,
    /// Its tier when work waits.
    pub tier: Tier,
    /// Its share inside the tier.
    pub fairness_key: String,
    /// For filters.
    pub labels: Vec<(String, String)>,
    /// How long its history is.
    pub history: HistoryCounts,
    /// Its place among the runs of its key, if its definition limits them.
    pub key_place: Option<KeyPlace>,
}

/// A run that ends before everything has run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlyEnd {
    /// As what.
    pub how: EarlyEndKind,
    /// Why.
    pub reason: String,
}

/// As what a run ends early.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EarlyEndKind {
    /// Somebody cancelled it.
    Cancelled,
    /// A step ends it as failed.
    Failed,
    /// A step ends it as succeeded.
    Succeeded,
    /// Its time is over.
    TimedOut,
}

/// Somebody holds a run: what runs goes on, nothing else begins.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hold {
    /// Who.
    pub by: String,
    /// Why.
    pub reason: String,
    /// Since when.
    pub since: Millis,
    /// How many steps have ended meanwhile whose successors were not looked at. Their own rows say which.
    pub unfollowed: u32,
}

/// What the step of a graph carries besides its phase.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphStep {
    /// When it was reached.
    pub reached_at: Millis,
    /// When it is looked at again, if nothing happens before. Its row in the index of timers says the same.
    pub timer: Option<Millis>,
    /// Since when it waits for a start of its attempt: the queue timeout counts from here.
    pub queued_since: Option<Millis>,
    /// Why it could not enter the queue of its slot pool the last time.
    pub refused: Option<String>,
    /// When its total time is over.
    pub total_at: Option<Millis>,
    /// The longest attempt, where the worker does not keep that time itself.
    pub attempt_ms: Option<u64>,
    /// The first poke of a sensor.
    pub first_poke: Option<Millis>,
    /// Pokes of a sensor so far.
    pub pokes: u32,
    /// From SIGTERM to SIGKILL of its process.
    pub kill_timeout_ms: u64,
    /// In which line it stands while it is ready; when its slot pool has refused it, in the line before that.
    pub line: Option<Line>,
    /// The line to which it goes back when its claim is given back.
    pub home: Option<Line>,
    /// What its process is ended for, when its own time is over.
    pub over: Option<String>,
    /// How long it may wait for a start of its attempt.
    pub queue_ms: Option<u64>,
    /// It has ended while somebody held the run, as the so-manieth, and its successors were not looked at.
    pub unfollowed: Option<u32>,
}

/// Where a ready step waits for somebody who executes it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Line {
    /// Among the steps that need a process and no slots.
    Processes,
    /// In a queue of tasks.
    Tasks(TaskPlace),
}

/// The place of a task in its queue.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskPlace {
    /// The queue.
    pub queue: String,
    /// The tier of its run.
    pub tier: Tier,
    /// Its share inside the tier.
    pub partition: String,
    /// Its number: who came first.
    pub number: u64,
}

impl GraphStep {
    /// Of a step that is reached now.
    pub fn reached(now: Millis) -> GraphStep {
        GraphStep {
            reached_at: now,
            timer: None,
            queued_since: None,
            refused: None,
            total_at: None,
            attempt_ms: None,
            first_poke: None,
            pokes: 0,
            kill_timeout_ms: 0,
            line: None,
            home: None,
            over: None,
            queue_ms: None,
            unfollowed: None,
        }
    }
}

/// The branches of a scatter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Branches {
    /// Items.
    pub total: u32,
    /// Branches that have begun.
    pub begun: u32,
    /// Branches that have succeeded.
    pub succeeded: u32,
    /// Branches that have failed.
    pub failed: u32,
}

impl Branches {
    /// Branches that have begun and have not ended.
    pub fn open(&self) -> u32 {
        self.begun - self.succeeded - self.failed
    }
}

/// What a step waits for that is neither slots nor a process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitsFor {
    /// An instant.
    Timer {
        /// It.
        due: Millis,
    },
    /// Somebody who resumes it.
    Checkpoint,
    /// Somebody who decides.
    Approval,
    /// Another run.
    Child {
        /// It.
        run: RunId,
    },
    /// Its branches.
    Branches(Branches),
    /// The next poke of a sensor.
    Poke {
        /// When.
        due: Millis,
    },
    /// Whoever got its work.
    Work {
        /// It.
        work: WorkId,
    },
}
