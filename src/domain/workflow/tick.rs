//! The tick: folds what happened to the step of a run into the step and the run.
//!
//! A job has one step, so a fact about the step decides the run. One change of the store carries both.

use super::graph::state::GraphStep;
use super::run::{NoTransition, Run, RunEvent, StepPhase, StepState};
use crate::words::time::Millis;

/// What happened to a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fact {
    /// A daemon has claimed it: its process is about to start.
    Claimed {
        /// The claim's fence.
        fence: u64,
    },
    /// Its attempt was lost or never began; it waits again.
    PutBack,
    /// Its attempt failed, and another one follows.
    Retry {
        /// When.
        due: Millis,
        /// Why it failed.
        reason: String,
    },
    /// Somebody does not want to wait for the time of its next attempt: it is now.
    Hastened,
    /// The time of its next attempt has come: it waits for slots under this entry, or starts at once.
    Again {
        /// The slot entry, for a pooled step.
        entry: Option<u64>,
    },
    /// The time of its next attempt has come, and it could not enter.
    Refused {
        /// When it is looked at again.
        due: Millis,
        /// Why.
        why: String,
    },
    /// Its attempt succeeded.
    Succeeded,
    /// Its attempt failed.
    Failed(String),
    /// Its attempt, or its wait, was ended on request.
    Cancelled(String),
    /// It will not start (any more).
    Withdrawn(String),
}

/// The step and the run after one fact.
#[derive(Debug, Clone, PartialEq)]
pub struct Ticked {
    /// The step.
    pub step: StepState,
    /// The run.
    pub run: Run,
}

/// Folds `fact` into `step` and `run`.
pub fn fold(run: &Run, step: &StepState, fact: &Fact, now: Millis) -> Result<Ticked, NoTransition> {
    let phase = next_phase(&step.phase, fact, now, run.state.started_at().is_some())?;
    let event = match fact {
        Fact::Claimed { .. } => Some(RunEvent::Started),
        Fact::PutBack | Fact::Retry { .. } | Fact::Hastened | Fact::Again { .. } | Fact::Refused { .. } => {
            None
        }
        Fact::Succeeded => Some(RunEvent::Succeeded),
        Fact::Failed(reason) => Some(RunEvent::Failed(reason.clone())),
        Fact::Cancelled(reason) => Some(RunEvent::Cancelled(reason.clone())),
        Fact::Withdrawn(reason) => Some(RunEvent::Withdrawn(reason.clone())),
    };
    let mut next_run = run.clone();
    // The run of a graph is moved by its tick; a fact about one of its steps is only noted here.
    if let Some(event) = event.filter(|_| run.graph.is_none()) {
        next_run.state = run.state.next(&event, now)?;
    }
    next_run.record_version += 1;
    let mut next_step = StepState {
        phase,
        ..step.clone()
    };
    if let Fact::Retry { .. } = fact {
        next_step.attempt += 1;
        next_step.deaths = 0;
    }
    if let Some(graph) = next_step.graph.as_mut() {
        of_graph(graph, &next_step.phase, now);
    }
    Ok(Ticked {
        step: next_step,
        run: next_run,
    })
}

/// The timer and the line of a graph's step whose claim begins or is given back.
fn of_graph(graph: &mut GraphStep, phase: &StepPhase, now: Millis) {
    // Given back, it stands where it stood. What waits for slots is in the queue of its slot pool.
    let waits = matches!(phase, StepPhase::Ready { .. });
    graph.line = graph.home.clone().filter(|_| waits);
    let attempt = graph
        .attempt_ms
        .filter(|_| matches!(phase, StepPhase::Running { .. }));
    let attempt_at = attempt.map(|limit| now.plus(limit));
    // It waits for a start anew. A place in the queue of a slot pool has its own limit besides.
    if matches!(phase, StepPhase::Ready { .. } | StepPhase::Queued { .. }) {
        graph.queued_since = Some(now);
    }
    let queue = graph
        .queue_ms
        .filter(|_| !matches!(phase, StepPhase::Running { .. }) && !phase.is_terminal());
    let queue_at = queue.map(|limit| now.plus(limit));
    graph.timer = [attempt_at, queue_at, graph.total_at].into_iter().flatten().min();
}

fn next_phase(
    phase: &StepPhase,
    fact: &Fact,
    now: Millis,
    has_started: bool,
) -> Result<StepPhase, NoTransition> {
    let next = match phase {
        StepPhase::Ready { .. } => while_waiting(None, fact, now, has_started),
        StepPhase::Queued { entry, .. } => while_waiting(Some(*entry), fact, now, has_started),
        StepPhase::Retrying { due, reason, refused } => {
            while_retrying((*due, reason, refused.as_deref()), fact, now)
        }
        StepPhase::Running { entry, .. } => while_running(*entry, fact, now),
        StepPhase::Succeeded { .. }
        | StepPhase::Failed { .. }
        | StepPhase::Skipped { .. }
        | StepPhase::Cancelled { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::Held { .. }
        | StepPhase::UpstreamFailed { .. } => None,
    };
    next.ok_or_else(|| NoTransition {
        what: "step",
        state: phase.word(),
        event: format!("{fact:?}"),
    })
}

fn failed(reason: &str, now: Millis) -> StepPhase {
    StepPhase::Failed {
        ended_at: now,
        reason: reason.to_owned(),
    }
}

fn cancelled(reason: &str, now: Millis) -> StepPhase {
    StepPhase::Cancelled {
        ended_at: now,
        reason: reason.to_owned(),
    }
}

/// It waits, for slots or for nothing but a process.
fn waiting(entry: Option<u64>, now: Millis) -> StepPhase {
    match entry {
        Some(entry) => StepPhase::Queued { entry, since: now },
        None => StepPhase::Ready { since: now },
    }
}

fn while_waiting(entry: Option<u64>, fact: &Fact, now: Millis, has_started: bool) -> Option<StepPhase> {
    match fact {
        Fact::Claimed { fence } => Some(StepPhase::Running {
            fence: *fence,
            started_at: now,
            entry,
        }),
        Fact::Withdrawn(reason) if !has_started => Some(StepPhase::Skipped {
            ended_at: now,
            reason: reason.clone(),
        }),
        Fact::Withdrawn(reason) | Fact::Failed(reason) => Some(failed(reason, now)),
        Fact::Cancelled(reason) => Some(cancelled(reason, now)),
        Fact::PutBack
        | Fact::Succeeded
        | Fact::Retry { .. }
        | Fact::Hastened
        | Fact::Again { .. }
        | Fact::Refused { .. } => None,
    }
}

fn while_retrying(
    (due, last, refused): (Millis, &str, Option<&str>),
    fact: &Fact,
    now: Millis,
) -> Option<StepPhase> {
    match fact {
        Fact::Hastened => Some(StepPhase::Retrying {
            due: due.min(now),
            reason: last.to_owned(),
            refused: refused.map(str::to_owned),
        }),
        Fact::Again { entry } => Some(waiting(*entry, now)),
        Fact::Refused { due, why } => Some(StepPhase::Retrying {
            due: *due,
            reason: last.to_owned(),
            refused: Some(why.clone()),
        }),
        Fact::Failed(reason) | Fact::Withdrawn(reason) => Some(failed(reason, now)),
        Fact::Cancelled(reason) => Some(cancelled(reason, now)),
        Fact::Claimed { .. } | Fact::PutBack | Fact::Succeeded | Fact::Retry { .. } => None,
    }
}

fn while_running(entry: Option<u64>, fact: &Fact, now: Millis) -> Option<StepPhase> {
    match fact {
        Fact::PutBack => Some(waiting(entry, now)),
        Fact::Succeeded => Some(StepPhase::Succeeded { ended_at: now }),
        Fact::Failed(reason) | Fact::Withdrawn(reason) => Some(failed(reason, now)),
        Fact::Cancelled(reason) => Some(cancelled(reason, now)),
        Fact::Retry { due, reason } => Some(StepPhase::Retrying {
            due: *due,
            reason: reason.clone(),
            refused: None,
        }),
        Fact::Claimed { .. } | Fact::Hastened | Fact::Again { .. } | Fact::Refused { .. } => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::run::{RunState, Trigger};
    use crate::words::ids::RunId;
    use crate::words::names::{JobName, StepRef};

    fn fresh() -> (Run, StepState) {
        let run = Run {
            id: RunId([1; 16]),
            definition: JobName::new("a").unwrap(),
            version: 1,
            graph: None,
            trigger: Trigger::Schedule { instant: Millis(1) },
            node: None,
            created_at: Millis(1),
            record_version: 1,
            state: RunState::Pending,
        };
        let phase = StepPhase::Queued {
            entry: 4,
            since: Millis(1),
        };
        (
            run,
            StepState {
                step: StepRef::main(),
                attempt: 1,
                deaths: 0,
                phase,
                graph: None,
            },
        )
    }

    fn folded(facts: &[Fact]) -> Result<(String, String), NoTransition> {
        let (mut run, mut step) = fresh();
        for (number, fact) in facts.iter().enumerate() {
            let next = fold(&run, &step, fact, Millis(i64::try_from(number).unwrap() + 2))?;
            assert_eq!(next.run.record_version, run.record_version + 1);
            run = next.run;
            step = next.step;
        }
        Ok((step.phase.word().to_owned(), run.state.word().to_owned()))
    }

    #[test]
    fn facts_lead_to_the_states_of_the_vocabulary() {
        let words = |step: &str, run: &str| Ok((step.to_owned(), run.to_owned()));
        let claimed = || Fact::Claimed { fence: 7 };
        let why = || "why".to_owned();
        assert_eq!(
            folded(&[claimed(), Fact::Succeeded]),
            words("succeeded", "succeeded")
        );
        assert_eq!(
            folded(&[claimed(), Fact::Failed(why())]),
            words("failed", "failed")
        );
        assert_eq!(folded(&[claimed(), Fact::PutBack]), words("queued", "running"));
        assert_eq!(
            folded(&[claimed(), Fact::PutBack, claimed(), Fact::Succeeded]),
            words("succeeded", "succeeded")
        );
        assert_eq!(folded(&[Fact::Withdrawn(why())]), words("skipped", "skipped"));
        assert_eq!(
            folded(&[claimed(), Fact::PutBack, Fact::Withdrawn(why())]),
            words("failed", "failed")
        );
        assert_eq!(folded(&[Fact::Cancelled(why())]), words("cancelled", "cancelled"));
        let retry = || Fact::Retry {
            due: Millis(99),
            reason: why(),
        };
        let refused = || Fact::Refused {
            due: Millis(199),
            why: "pool queue is full".to_owned(),
        };
        let again = || Fact::Again { entry: Some(5) };
        assert_eq!(folded(&[claimed(), retry()]), words("retrying", "running"));
        assert_eq!(
            folded(&[claimed(), retry(), refused(), again()]),
            words("queued", "running")
        );
        assert_eq!(
            folded(&[claimed(), retry(), Fact::Again { entry: None }]),
            words("ready", "running")
        );
        assert_eq!(
            folded(&[claimed(), retry(), again(), claimed(), Fact::Succeeded]),
            words("succeeded", "succeeded")
        );
        assert_eq!(
            folded(&[claimed(), retry(), Fact::Withdrawn(why())]),
            words("failed", "failed")
        );
        assert_eq!(
            folded(&[claimed(), retry(), Fact::Cancelled(why())]),
            words("cancelled", "cancelled")
        );
        let (hastened, again_at_once) = (|| Fact::Hastened, || Fact::Again { entry: None });
        assert_eq!(
            folded(&[claimed(), retry(), hastened(), again_at_once()]),
            words("ready", "running")
        );
        assert!(
            folded(&[hastened()]).is_err() && folded(&[claimed(), hastened()]).is_err(),
            "only who waits for a time can be hastened"
        );
        assert!(folded(&[claimed(), retry(), claimed()]).is_err());
        assert!(folded(&[retry()]).is_err(), "nothing has failed yet");
        assert!(folded(&[Fact::Succeeded]).is_err());
        assert!(folded(&[claimed(), Fact::Succeeded, Fact::Succeeded]).is_err());
    }
}
