//! A run and its steps: which states there are, and which event leads from one to the next.

use serde::{Deserialize, Serialize};

use super::graph::state::{GraphHeader, GraphStep, WaitsFor};
use crate::words::ids::RunId;
use crate::words::names::{JobName, NodeName, StepRef};
use crate::words::time::Millis;

/// The header of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The definition it executes.
    pub definition: JobName,
    /// The version it pinned when it began to exist.
    pub version: u32,
    /// What began it.
    pub trigger: Trigger,
    /// The daemon it is bound to; `None` = any.
    pub node: Option<NodeName>,
    /// When its fire or start was accepted.
    pub created_at: Millis,
    /// Counts its changes.
    pub record_version: u64,
    /// Where it stands.
    pub state: RunState,
    /// What the run of a graph carries besides; none for a job.
    pub graph: Option<Box<GraphHeader>>,
}

/// Whether a failed attempt of a run is followed by another one, and what ends that.
///
/// A scope is (job, node, or "" where any daemon fires); each newer fire, success or cancellation moves its generation on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RetryRight {
    /// No attempt follows.
    No,
    /// As long as its scope still has this generation.
    Scoped {
        /// The generation of the scope when the run began.
        generation: u64,
    },
    /// A start by hand that asked for them: no fire ends them.
    Own,
}

/// What began a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Trigger {
    /// A due moment of its schedule.
    Schedule {
        /// That moment.
        instant: Millis,
    },
    /// Somebody asked for it.
    Manual {
        /// Who.
        principal: String,
    },
    /// A due moment that nobody could fire in time.
    CatchUp {
        /// That moment.
        instant: Millis,
    },
    /// The machine has booted.
    Boot {
        /// When.
        instant: Millis,
    },
    /// Somebody asked for it once more.
    Rerun {
        /// Who.
        principal: String,
        /// The run that it repeats.
        of: RunId,
    },
    /// A step of another run.
    Child {
        /// That run.
        parent: RunId,
        /// The step.
        step: StepRef,
    },
    /// Somebody asked for another try from a step on: what was done before it is taken over.
    RetryFrom {
        /// Who.
        principal: String,
        /// The run that it repeats.
        of: RunId,
        /// The step; what failed without one.
        step: Option<StepRef>,
    },
}

impl Trigger {
    /// The moment the run stands for: the due instant, or `None` for a manual start.
    pub fn scheduled_at(&self) -> Option<Millis> {
        match self {
            Trigger::Schedule { instant } | Trigger::CatchUp { instant } | Trigger::Boot { instant } => {
                Some(*instant)
            }
            Trigger::Manual { .. }
            | Trigger::Rerun { .. }
            | Trigger::Child { .. }
            | Trigger::RetryFrom { .. } => None,
        }
    }

    /// The run that this one repeats.
    pub fn rerun_of(&self) -> Option<RunId> {
        match self {
            Trigger::Rerun { of, .. } | Trigger::RetryFrom { of, .. } => Some(*of),
            Trigger::Schedule { .. }
            | Trigger::Manual { .. }
            | Trigger::CatchUp { .. }
            | Trigger::Child { .. }
            | Trigger::Boot { .. } => None,
        }
    }

    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            Trigger::Schedule { .. } => "schedule",
            Trigger::Manual { .. } | Trigger::Rerun { .. } | Trigger::RetryFrom { .. } => "manual",
            Trigger::Child { .. } => "run",
            Trigger::CatchUp { .. } => "catchup",
            Trigger::Boot { .. } => "boot",
        }
    }
}

/// Where a run stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunState {
    /// Accepted; nothing has started. Exits: running, skipped, cancelled, failed.
    Pending,
    /// A step has started once. Exits: succeeded, failed, cancelled.
    Running {
        /// When the first attempt started.
        started_at: Millis,
    },
    /// Every step succeeded. No exit.
    Succeeded {
        /// When the first attempt started.
        started_at: Millis,
        /// When it ended.
        ended_at: Millis,
    },
    /// A step failed. No exit.
    Failed {
        /// When the first attempt started, if one did.
        started_at: Option<Millis>,
        /// When it ended.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// Somebody ended it. No exit.
    Cancelled {
        /// When the first attempt started, if one did.
        started_at: Option<Millis>,
        /// When it ended.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// It never started. No exit.
    Skipped {
        /// When that was certain.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// Somebody holds it. Exits: running, and every end.
    Paused {
        /// When it began.
        started_at: Millis,
    },
    /// Its time was over. No exit.
    TimedOut {
        /// When it began.
        started_at: Millis,
        /// When it ended.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
}

/// What happens to a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunEvent {
    /// An attempt is about to start.
    Started,
    /// Its last step succeeded.
    Succeeded,
    /// A step failed for good.
    Failed(String),
    /// Its step's attempts were ended on request.
    Cancelled(String),
    /// Its step will never start (queue timeout, cancelled entry, changed definition).
    Withdrawn(String),
    /// Its time is over.
    TimedOut(String),
    /// Somebody holds it.
    Paused,
    /// Nobody holds it any more.
    Resumed,
}

/// A pair of state and event that has no next state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{what} is {state} and cannot take {event}")]
pub struct NoTransition {
    /// A run or a step.
    pub what: &'static str,
    /// Its state's word.
    pub state: &'static str,
    /// The event.
    pub event: String,
}

impl RunState {
    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            RunState::Pending => "pending",
            RunState::Running { .. } => "running",
            RunState::Succeeded { .. } => "succeeded",
            RunState::Failed { .. } => "failed",
            RunState::Cancelled { .. } => "cancelled",
            RunState::Skipped { .. } => "skipped",
            RunState::Paused { .. } => "paused",
            RunState::TimedOut { .. } => "timed_out",
        }
    }

    /// True when nothing can change any more.
    pub fn is_terminal(&self) -> bool {
        !matches!(
            self,
            RunState::Pending | RunState::Running { .. } | RunState::Paused { .. }
        )
    }

    /// When the first attempt started.
    pub fn started_at(&self) -> Option<Millis> {
        match self {
            RunState::Pending | RunState::Skipped { .. } => None,
            RunState::Running { started_at }
            | RunState::Paused { started_at }
            | RunState::TimedOut { started_at, .. }
            | RunState::Succeeded { started_at, .. } => Some(*started_at),
            RunState::Failed { started_at, .. } | RunState::Cancelled { started_at, .. } => *started_at,
        }
    }

    /// When it ended.
    pub fn ended_at(&self) -> Option<Millis> {
        match self {
            RunState::Pending | RunState::Running { .. } | RunState::Paused { .. } => None,
            RunState::Succeeded { ended_at, .. }
            | RunState::TimedOut { ended_at, .. }
            | RunState::Failed { ended_at, .. }
            | RunState::Cancelled { ended_at, .. }
            | RunState::Skipped { ended_at, .. } => Some(*ended_at),
        }
    }

    /// Why it ended as it did.
    pub fn reason(&self) -> Option<&str> {
        match self {
            RunState::Pending
            | RunState::Running { .. }
            | RunState::Paused { .. }
            | RunState::Succeeded { .. } => None,
            RunState::Failed { reason, .. }
            | RunState::TimedOut { reason, .. }
            | RunState::Cancelled { reason, .. }
            | RunState::Skipped { reason, .. } => Some(reason),
        }
    }

    /// The next state, or the refusal of a pair that must not happen.
    pub fn next(&self, event: &RunEvent, now: Millis) -> Result<RunState, NoTransition> {
        let next = match self {
            RunState::Pending => before_start(event, now),
            RunState::Running { started_at } => after_start(*started_at, false, event, now),
            RunState::Paused { started_at } => after_start(*started_at, true, event, now),
            RunState::Succeeded { .. }
            | RunState::Failed { .. }
            | RunState::Cancelled { .. }
            | RunState::Skipped { .. }
            | RunState::TimedOut { .. } => None,
        };
        next.ok_or_else(|| NoTransition {
            what: "run",
            state: self.word(),
            event: format!("{event:?}"),
        })
    }
}

fn before_start(event: &RunEvent, now: Millis) -> Option<RunState> {
    match event {
        RunEvent::Started => Some(RunState::Running { started_at: now }),
        RunEvent::Failed(reason) => Some(RunState::Failed {
            started_at: None,
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::Cancelled(reason) => Some(RunState::Cancelled {
            started_at: None,
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::Withdrawn(reason) => Some(RunState::Skipped {
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::Succeeded | RunEvent::TimedOut(_) | RunEvent::Paused | RunEvent::Resumed => None,
    }
}

fn after_start(started_at: Millis, paused: bool, event: &RunEvent, now: Millis) -> Option<RunState> {
    match event {
        RunEvent::Started if paused => Some(RunState::Paused { started_at }),
        RunEvent::Started => Some(RunState::Running { started_at }),
        RunEvent::Succeeded => Some(RunState::Succeeded {
            started_at,
            ended_at: now,
        }),
        RunEvent::Failed(reason) | RunEvent::Withdrawn(reason) => Some(RunState::Failed {
            started_at: Some(started_at),
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::Cancelled(reason) => Some(RunState::Cancelled {
            started_at: Some(started_at),
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::TimedOut(reason) => Some(RunState::TimedOut {
            started_at,
            ended_at: now,
            reason: reason.clone(),
        }),
        RunEvent::Paused => (!paused).then_some(RunState::Paused { started_at }),
        RunEvent::Resumed => paused.then_some(RunState::Running { started_at }),
    }
}

/// A step inside a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepState {
    /// Its name in the definition.
    pub step: StepRef,
    /// The number of the attempt that runs or would be next; 1 is the first.
    pub attempt: u32,
    /// How many daemons have died with it.
    pub deaths: u32,
    /// Where it stands.
    pub phase: StepPhase,
    /// What the step of a graph carries besides; none for a job's.
    pub graph: Option<GraphStep>,
}

impl StepState {
    /// True for a step that has not ended, and for one of a graph whose end was not followed because somebody held the run.
    pub fn is_open(&self) -> bool {
        let unfollowed = self.graph.as_ref().and_then(|graph| graph.unfollowed);
        !self.phase.is_terminal() || unfollowed.is_some()
    }
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum StepPhase {
    /// It may start at once. Exits: running, cancelled, failed.
    Ready {
        /// Since when.
        since: Millis,
    },
    /// It waits for slots. Exits: running, skipped, cancelled, failed.
    Queued {
        /// The slot entry.
        entry: u64,
        /// Since when.
        since: Millis,
    },
    /// An attempt runs. Exits: succeeded, failed, cancelled; retrying after a failure; ready or queued when the attempt
    /// was lost.
    Running {
        /// The claim's fence.
        fence: u64,
        /// When the attempt was claimed.
        started_at: Millis,
        /// The slot entry, for a pooled step.
        entry: Option<u64>,
    },
    /// The last attempt succeeded.
    Succeeded {
        /// When.
        ended_at: Millis,
    },
    /// The last attempt failed, or it will never start after one was lost.
    Failed {
        /// When.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// It never started.
    Skipped {
        /// When that was certain.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// Somebody ended it.
    Cancelled {
        /// When.
        ended_at: Millis,
        /// Why.
        reason: String,
    },
    /// Its last attempt failed and the next one waits for its time. Exits: ready, queued, failed, cancelled.
    Retrying {
        /// When it will be looked at.
        due: Millis,
        /// Why the last attempt failed.
        reason: String,
        /// Why the slot pool has not taken it yet, if it was asked.
        refused: Option<String>,
    },
    /// It waits for something that takes no slots. Exits: succeeded, failed, skipped, cancelled, ready, queued.
    Waiting {
        /// Since when.
        since: Millis,
        /// For what.
        on: WaitsFor,
    },
    /// A step before it failed.
    UpstreamFailed {
        /// When that was certain.
        ended_at: Millis,
        /// Which.
        reason: String,
    },
    /// It may start, but its run is held. Exits: ready, queued, cancelled.
    Held {
        /// Since when.
        since: Millis,
    },
}

impl StepPhase {
    /// All words on the wire.
    pub const WORDS: [&'static str; 10] = [
        "ready",
        "queued",
        "running",
        "waiting",
        "retrying",
        "succeeded",
        "failed",
        "skipped",
        "cancelled",
        "upstream_failed",
    ];

    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            StepPhase::Ready { .. } | StepPhase::Held { .. } => "ready",
            StepPhase::Queued { .. } => "queued",
            StepPhase::Retrying { .. } => "retrying",
            StepPhase::Running { .. }
            | StepPhase::Waiting {
                on: WaitsFor::Branches(_),
                ..
            } => "running",
            StepPhase::Succeeded { .. } => "succeeded",
            StepPhase::Failed { .. } => "failed",
            StepPhase::Skipped { .. } => "skipped",
            StepPhase::Cancelled { .. } => "cancelled",
            StepPhase::Waiting { .. } => "waiting",
            StepPhase::UpstreamFailed { .. } => "upstream_failed",
        }
    }

    /// When it ended.
    pub fn ended_at(&self) -> Option<Millis> {
        match self {
            StepPhase::Succeeded { ended_at }
            | StepPhase::Failed { ended_at, .. }
            | StepPhase::Skipped { ended_at, .. }
            | StepPhase::UpstreamFailed { ended_at, .. }
            | StepPhase::Cancelled { ended_at, .. } => Some(*ended_at),
            StepPhase::Ready { .. }
            | StepPhase::Queued { .. }
            | StepPhase::Running { .. }
            | StepPhase::Retrying { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Held { .. } => None,
        }
    }

    /// True when nothing can change any more.
    pub fn is_terminal(&self) -> bool {
        self.ended_at().is_some()
    }

    /// Why it ended as it did, or why it is tried again.
    pub fn reason(&self) -> Option<&str> {
        match self {
            StepPhase::Ready { .. }
            | StepPhase::Queued { .. }
            | StepPhase::Running { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Held { .. }
            | StepPhase::Succeeded { .. } => None,
            StepPhase::Retrying { reason, .. }
            | StepPhase::UpstreamFailed { reason, .. }
            | StepPhase::Failed { reason, .. }
            | StepPhase::Skipped { reason, .. }
            | StepPhase::Cancelled { reason, .. } => Some(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pair_of_state_and_event_is_decided() {
        let at = Millis(9);
        let running = RunState::Running {
            started_at: Millis(3),
        };
        let reason = || "x".to_owned();
        let check = |state: &RunState, event: RunEvent, word: Option<&str>| {
            let next = state.next(&event, at);
            assert_eq!(
                next.as_ref().ok().map(RunState::word),
                word,
                "{state:?} {event:?}"
            );
        };
        check(&RunState::Pending, RunEvent::Started, Some("running"));
        check(&RunState::Pending, RunEvent::Succeeded, None);
        check(&RunState::Pending, RunEvent::Failed(reason()), Some("failed"));
        check(
            &RunState::Pending,
            RunEvent::Cancelled(reason()),
            Some("cancelled"),
        );
        check(&RunState::Pending, RunEvent::Withdrawn(reason()), Some("skipped"));
        check(&running, RunEvent::Started, Some("running"));
        check(&running, RunEvent::Succeeded, Some("succeeded"));
        check(&running, RunEvent::Failed(reason()), Some("failed"));
        check(&running, RunEvent::Cancelled(reason()), Some("cancelled"));
        check(&running, RunEvent::Withdrawn(reason()), Some("failed"));
        let ended = RunState::Skipped {
            ended_at: at,
            reason: reason(),
        };
        for event in [
            RunEvent::Started,
            RunEvent::Succeeded,
            RunEvent::Withdrawn(reason()),
        ] {
            check(&ended, event, None);
        }
        assert_eq!(
            running.next(&RunEvent::Started, at).unwrap().started_at(),
            Some(Millis(3))
        );
    }
}
