//! What people tell a run: kept in the order of arrival, whatever the run does at that moment.

use crate::domain::workflow::graph::state::WaitsFor;
use crate::domain::workflow::run::{Run, RunState, StepPhase};
use crate::store::graph_rows::StoredFact;
use crate::store::{Abort, Tx, graphs, runs};
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// Whether it was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Signalled {
    /// Yes.
    Kept,
    /// There is no such run, or it is none of a graph.
    NotFound,
    /// The run or the step does not take it; why.
    Refused(String),
}

/// Keeps a fact for a run, if it takes it as it stands now.
pub fn signal(tx: &mut Tx<'_>, id: RunId, fact: &StoredFact) -> Result<Signalled, Abort> {
    let Some(run) = runs::by_id(tx, id)?.filter(|run| run.graph.is_some()) else {
        return Ok(Signalled::NotFound);
    };
    if run.state.is_terminal() {
        return Ok(Signalled::Refused(format!(
            "the run has ended: {}",
            run.state.word()
        )));
    }
    let refused = match fact {
        StoredFact::Resume { step, .. } => not_waiting(tx, id, step, &WaitsFor::Checkpoint)?,
        StoredFact::Decide { step, .. } => not_waiting(tx, id, step, &WaitsFor::Approval)?,
        StoredFact::Pause { .. } if run.state == RunState::Pending => {
            Some("the run has not begun: nothing of it can be held; it can be cancelled".to_owned())
        }
        StoredFact::Pause { .. } if will_be_held(tx, &run)? => Some("the run is paused already".to_owned()),
        StoredFact::Unpause { .. } if !will_be_held(tx, &run)? => Some("the run is not paused".to_owned()),
        StoredFact::Pause { .. }
        | StoredFact::Unpause { .. }
        | StoredFact::Cancel { .. }
        | StoredFact::EntryClosed { .. }
        | StoredFact::AttemptEnded { .. }
        | StoredFact::Child { .. }
        | StoredFact::WorkOver { .. }
        | StoredFact::Begin => None,
    };
    if let Some(why) = refused {
        return Ok(Signalled::Refused(why));
    }
    graphs::append_fact(tx, &run, fact)?;
    Ok(Signalled::Kept)
}

/// True when the run is held once what was said to it before is folded.
fn will_be_held(tx: &mut Tx<'_>, run: &Run) -> Result<bool, Abort> {
    let mut held = matches!(run.state, RunState::Paused { .. });
    for (_, fact) in graphs::facts_of(tx, run.id)? {
        if let StoredFact::Pause { .. } = fact {
            held = true;
        } else if let StoredFact::Unpause { .. } = fact {
            held = false;
        }
    }
    Ok(held)
}

/// Why the step does not take an answer: it does not wait for one, or has one already.
fn not_waiting(
    tx: &mut Tx<'_>,
    id: RunId,
    step: &StepRef,
    wanted: &WaitsFor,
) -> Result<Option<String>, Abort> {
    let Some(state) = runs::step(tx, id, step)? else {
        return Ok(Some(format!("the run has not reached step {step}")));
    };
    let waits = matches!(&state.phase, StepPhase::Waiting { on, .. } if on == wanted);
    if !waits {
        let word = state.phase.word();
        return Ok(Some(format!(
            "step {step} is {word} and waits for no such answer"
        )));
    }
    let answered = graphs::facts_of(tx, id)?.into_iter().any(|(_, fact)| match fact {
        StoredFact::Resume { step: other, .. } | StoredFact::Decide { step: other, .. } => other == *step,
        StoredFact::EntryClosed { .. }
        | StoredFact::AttemptEnded { .. }
        | StoredFact::Child { .. }
        | StoredFact::WorkOver { .. }
        | StoredFact::Cancel { .. }
        | StoredFact::Pause { .. }
        | StoredFact::Unpause { .. }
        | StoredFact::Begin => false,
    });
    Ok(answered.then(|| format!("step {step} has an answer already")))
}
