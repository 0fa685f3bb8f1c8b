//! The records of runs of graphs that are no domain objects.

use serde::{Deserialize, Serialize};

use crate::domain::payload::Payload;
use crate::domain::workflow::graph::tick::Transition;
use crate::words::ids::RunId;
use crate::words::names::StepRef;
use crate::words::time::Millis;

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
