//! The records of runs of graphs that are no domain objects.

use serde::{Deserialize, Serialize};

use crate::domain::payload::Payload;
use crate::domain::slots::claim::ClockId;
use crate::domain::workflow::graph::history::Transition;
use crate::words::ids::{RunId, WorkId};
use crate::words::names::StepRef;
use crate::words::time::{BootMillis, Millis, Now};

/// A value of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredValue(pub Payload);

/// Something that happened to a run and waits to be folded into it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StoredFact {
    /// The slot entry of a step was closed.
    EntryClosed {
        /// The step.
        step: StepRef,
        /// The entry.
        entry: u64,
        /// Why.
        reason: String,
    },
    /// An execution was ended by somebody other than its worker.
    AttemptEnded {
        /// The step.
        step: StepRef,
        /// Its fence.
        fence: u64,
        /// Ended on request; it failed otherwise.
        cancelled: bool,
        /// Why.
        reason: String,
    },
    /// A run that a step waits for has ended.
    Child {
        /// The step.
        step: StepRef,
        /// The run.
        run: RunId,
    },
    /// Somebody resumes a checkpoint.
    Resume {
        /// The step.
        step: StepRef,
        /// With what.
        value: Payload,
        /// Who.
        by: String,
    },
    /// Somebody decides an approval.
    Decide {
        /// The step.
        step: StepRef,
        /// Yes or no.
        approve: bool,
        /// Why.
        note: String,
        /// Who.
        by: String,
    },
    /// Somebody ends the run.
    Cancel {
        /// Who.
        by: String,
    },
    /// Somebody holds the run.
    Pause {
        /// Who.
        by: String,
        /// Why.
        reason: String,
    },
    /// Somebody lets it go on.
    Unpause {
        /// Who.
        by: String,
    },
    /// It has waited for others of its key, and its turn has come.
    Begin,
    /// The work that a step has routed is over.
    WorkOver {
        /// The step.
        step: StepRef,
        /// The attempt that has routed it.
        attempt: u32,
        /// The work.
        work: WorkId,
    },
}

/// A run that has a place among those of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyHolder {
    /// It was told to end because of a newer one.
    pub leaves: bool,
}

/// A run that waits for a place among those of its key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyWaiter {
    /// The run.
    pub run: RunId,
    /// How many runs its version allows.
    pub limit: u32,
    /// A newer run may take its turn.
    pub replaceable: bool,
}

/// What one tick did, for people.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryRow {
    /// When.
    pub at: Millis,
    /// In order.
    pub items: Vec<Transition>,
}

/// A step that waits for somebody.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OpenCheckpoint {
    /// A decision is asked for, not a value.
    pub approval: bool,
    /// Since when.
    pub since: Millis,
}

/// A step that waits for a worker.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskRow {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
}

/// A claim of a remote worker. It outlives the daemon over which it was made: any daemon takes its completion, and any puts
/// it back when its time is over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskClaim {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The queue.
    pub queue: String,
    /// What the worker calls itself.
    pub worker: String,
    /// Between two signs of life.
    pub hold_ms: u64,
    /// A worker that is not heard of has failed; otherwise its task is put back.
    pub strict: bool,
    /// The clock of `until`.
    pub clock: ClockId,
    /// It must be heard of before this.
    pub until: BootMillis,
    /// The same for people.
    pub until_wall: Millis,
    /// How often it was renewed.
    pub renewals: u64,
}

impl TaskClaim {
    /// True when its time is over by its own clock; `None` when that clock cannot be read here.
    pub fn is_over(&self, clock: &ClockId, now: Now) -> Option<bool> {
        (self.clock == *clock).then(|| self.until <= now.boot)
    }

    /// The claim after a sign of life; `None` if it has time enough as it is.
    ///
    /// Each renewal is for half as long again as the worker must be heard of, so that not each sign of life is a commit, and
    /// after each there is at least the whole time.
    pub fn renewed(&self, clock: &ClockId, now: Now) -> Option<TaskClaim> {
        let left = if self.clock == *clock {
            now.boot.until(self.until)
        } else {
            0
        };
        (left < self.hold_ms).then(|| {
            let ms = self.hold_ms.saturating_add(self.hold_ms / 2);
            TaskClaim {
                clock: clock.clone(),
                until: now.boot.plus(ms),
                until_wall: now.wall.plus(ms),
                renewals: self.renewals + 1,
                ..self.clone()
            }
        })
    }
}
