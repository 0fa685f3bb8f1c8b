//! The tick of a graph: facts in, changes out. Pure: the same run, facts and time give the same changes.
//!
//! The rows of a run are read through a [`View`], only those that matter, so that a tick costs what changes and not what
//! exists. What is to be written comes back as [`Changes`] and is applied in one change of the store.

use std::sync::Arc;

use serde_json::Value;

use super::build::Graph;
use super::history::{Compaction, Transition};
use super::key::{NodeId, ValueName};
use super::moves::Moving;
use crate::domain::workflow::run::{Run, StepState};
use crate::words::ids::{RunId, WorkId};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// What is stored of a run.
pub trait View {
    /// Why it cannot be read.
    type Error;

    /// A step that was reached.
    fn step(&mut self, name: &StepRef) -> Result<Option<StepState>, Self::Error>;

    /// A value.
    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, Self::Error>;

    /// All steps that were reached and have not ended, or whose end was not followed ([`StepState::is_open`]). Asked only when a
    /// run ends early, or is held or let go.
    fn open_steps(&mut self) -> Result<Vec<StepState>, Self::Error>;
}

/// Why a step failed.
#[derive(Debug, Clone, PartialEq)]
pub struct StepError {
    /// Stable, for programs.
    pub code: String,
    /// For people.
    pub message: String,
    /// False: no other attempt, whatever the policy says.
    pub retryable: bool,
    /// The other side asked for so much patience.
    pub retry_after_ms: Option<u64>,
}

impl StepError {
    /// One after which another attempt may follow.
    pub fn new(code: impl Into<String>, message: impl Into<String>) -> StepError {
        StepError {
            code: code.into(),
            message: message.into(),
            retryable: true,
            retry_after_ms: None,
        }
    }

    /// The same, for good.
    #[must_use]
    pub fn for_good(self) -> StepError {
        StepError {
            retryable: false,
            ..self
        }
    }

    /// As expressions and people see it.
    pub fn as_value(&self) -> Value {
        serde_json::json!({"code": self.code, "message": self.message})
    }
}

/// How an execution of a step ended.
#[derive(Debug, Clone, PartialEq)]
pub enum AttemptEnd {
    /// Well; with what it made.
    Succeeded(Option<Arc<Value>>),
    /// Not well.
    Failed(StepError),
    /// On request.
    Cancelled(String),
    /// A sensor was not met yet.
    NotMet,
    /// Work was routed, and the step waits until it is done.
    Routed(WorkId),
}

/// Something that happened to a run.
#[derive(Debug, Clone, PartialEq)]
pub enum Fact {
    /// It begins.
    Begun,
    /// It begins with what another run has done already; these steps are written as they are.
    BegunWith(Vec<StepState>),
    /// An execution of a step ended.
    Attempt {
        /// The step.
        step: StepRef,
        /// The fence of its claim.
        fence: u64,
        /// How.
        end: AttemptEnd,
    },
    /// The slot entry of a waiting step was closed by somebody else.
    EntryClosed {
        /// The step.
        step: StepRef,
        /// The entry.
        entry: u64,
        /// Why.
        reason: String,
    },
    /// A step is to be looked at: its timer.
    Due {
        /// The step.
        step: StepRef,
    },
    /// The time of the whole run is over.
    Deadline,
    /// A run that a step waits for has ended.
    Child {
        /// The step.
        step: StepRef,
        /// The run.
        run: RunId,
        /// Its output, or why there is none.
        end: Result<Option<Arc<Value>>, StepError>,
    },
    /// The work that a step has routed is over.
    WorkOver {
        /// The step.
        step: StepRef,
        /// The attempt that has routed it.
        attempt: u32,
        /// The decision and what was made, or why nothing was.
        end: Result<Arc<Value>, StepError>,
    },
    /// Somebody resumes a checkpoint.
    Resume {
        /// The step.
        step: StepRef,
        /// With what.
        value: Arc<Value>,
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

/// Whether a fact was taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Taken {
    /// Yes.
    Yes,
    /// It is too late: what it speaks of has another owner or has ended.
    Stale,
    /// The run's state forbids it; why.
    Refused(String),
}

/// A run of another definition that is to begin.
#[derive(Debug, Clone, PartialEq)]
pub struct NewChild {
    /// For which step.
    pub step: StepRef,
    /// Its input.
    pub input: Arc<Value>,
    /// Its id.
    pub run: RunId,
}

/// What a tick has decided.
#[derive(Debug, Clone, PartialEq)]
pub struct Changes {
    /// The header as it is now.
    pub run: Run,
    /// Steps as they were and as they are.
    pub steps: Vec<(Option<StepState>, StepState)>,
    /// Values that begin to exist.
    pub values: Vec<(ValueName, Arc<Value>)>,
    /// Steps that may be executed now.
    pub dispatch: Vec<(StepRef, NodeId)>,
    /// Runs that begin.
    pub children: Vec<NewChild>,
    /// Runs that nobody waits for any more.
    pub orphans: Vec<RunId>,
    /// Executions that are to be ended, and what for.
    pub stop: Vec<StepRef>,
    /// Slot entries that are not wanted any more: by step.
    pub retire: Vec<(StepRef, u64)>,
    /// What happened, for people.
    pub history: Vec<Transition>,
    /// Whether the history is compacted with it.
    pub compaction: Option<Compaction>,
    /// An answer for each fact.
    pub answers: Vec<Taken>,
}

impl Changes {
    /// Nothing but the run itself.
    pub fn none(run: Run) -> Changes {
        Changes {
            run,
            steps: Vec::new(),
            values: Vec::new(),
            dispatch: Vec::new(),
            children: Vec::new(),
            orphans: Vec::new(),
            stop: Vec::new(),
            retire: Vec::new(),
            history: Vec::new(),
            compaction: None,
            answers: Vec::new(),
        }
    }
}

/// Ids and chance come from outside: [`tick`] asks for the id of each run that begins.
pub type FreshRun<'a> = &'a mut dyn FnMut() -> RunId;

/// Folds `facts` into `run`.
pub fn tick<V: View>(
    graph: &Graph,
    run: &Run,
    facts: &[Fact],
    now: Millis,
    view: &mut V,
    fresh: FreshRun<'_>,
) -> Result<Changes, V::Error> {
    let mut moving = Moving::new(graph, run, now, view, fresh);
    let mut answers = Vec::with_capacity(facts.len());
    for fact in facts {
        answers.push(moving.fold(fact)?);
        moving.settle()?;
        moving.end_if_history_is_full()?;
        // After each, not once for all: what comes after the end finds it ended, however facts are grouped.
        moving.finish_if_done()?;
    }
    Ok(moving.into_changes(answers))
}
