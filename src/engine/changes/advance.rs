//! Moving a run: loads it with its step, folds one fact, writes both.

use crate::domain::slots::entry::{EntryEvent, SlotEntry};
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::domain::workflow::tick::{self, Fact};
use crate::engine::changes::{catch_up, report};
use crate::store::graph_rows::StoredFact;
use crate::store::rows::ReadyStep;
use crate::store::{Abort, Rows, StoreError, Tx, entries, graphs, runs};
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// Loads a run with its step; an error when either is missing, for rows that point to them exist.
pub fn load(rows: &mut impl Rows, id: RunId, step: &StepRef) -> Result<(Run, StepState), StoreError> {
    let missing = |what: &str| StoreError::Unreadable {
        table: "runs",
        key: id.to_string(),
        cause: format!("its {what} is missing"),
    };
    let run = runs::by_id(rows, id)?.ok_or_else(|| missing("header"))?;
    let state = runs::step(rows, id, step)?.ok_or_else(|| missing("step"))?;
    Ok((run, state))
}

/// Folds `fact` into the run and writes it. `ready` is needed when the step becomes ready.
pub fn advance(
    tx: &mut Tx<'_>,
    (run, step): &(Run, StepState),
    fact: &Fact,
    ready: Option<&ReadyStep>,
) -> Result<(Run, StepState), Abort> {
    if run.graph.is_some()
        && let Some(stored) = fact_of_graph(step, fact)
    {
        graphs::append_fact(tx, run, &stored)?;
        return Ok((run.clone(), step.clone()));
    }
    let ticked = match tick::fold(run, step, fact, tx.now().wall) {
        Ok(ticked) => ticked,
        Err(refusal) => panic!("run {}: {refusal}", run.id),
    };
    runs::put_step(tx, &ticked.run, Some(step), &ticked.step, ready)?;
    runs::replace(tx, run, &ticked.run)?;
    if ticked.run.state.is_terminal() {
        catch_up::run_ended(tx, &ticked.run)?;
    }
    if let Fact::Withdrawn(why) = fact {
        report::withdrawn(tx, &ticked.run, why)?;
    }
    Ok((ticked.run, ticked.step))
}

/// What ends a step of a graph is kept for its run, whose next tick decides what it means.
fn fact_of_graph(step: &StepState, fact: &Fact) -> Option<StoredFact> {
    let (reason, cancelled) = match fact {
        Fact::Failed(reason) | Fact::Withdrawn(reason) => (reason, false),
        Fact::Cancelled(reason) => (reason, true),
        Fact::Claimed { .. }
        | Fact::PutBack
        | Fact::Retry { .. }
        | Fact::Hastened
        | Fact::Again { .. }
        | Fact::Refused { .. }
        | Fact::Succeeded => return None,
    };
    if let StepPhase::Running { fence, .. } = step.phase {
        return Some(StoredFact::AttemptEnded {
            step: step.step.clone(),
            fence,
            cancelled,
            reason: reason.clone(),
        });
    }
    let StepPhase::Queued { entry, .. } = step.phase else {
        return None;
    };
    Some(StoredFact::EntryClosed {
        step: step.step.clone(),
        entry,
        reason: reason.clone(),
    })
}

/// Ends an entry that waits, and with it the run's step: skipped if nothing ever started, failed otherwise.
///
/// A row that cannot be read is met before anything is written, so a caller may go on after its error.
pub fn withdraw(
    tx: &mut Tx<'_>,
    entry: &SlotEntry,
    event: &EntryEvent,
    cancelled: bool,
) -> Result<SlotEntry, Abort> {
    let closed = match entry.next(event, tx.now().wall) {
        Ok(closed) => closed,
        Err(refusal) => panic!("entry {}: {refusal}", entry.id),
    };
    let reason = closed.state.reason().unwrap_or("ended").to_owned();
    let both = match load(tx, entry.run, &entry.step) {
        Ok(both) => Some(both),
        Err(error) if error.is_row_fault() => {
            // The entry must leave the queue all the same, or it blocks its slot pool for ever.
            tracing::error!(run_id = %entry.run, cause = %error, "this run cannot be read; only its entry ends");
            None
        }
        Err(error) => return Err(error.into()),
    };
    entries::replace(tx, entry, &closed, None)?;
    let waits =
        |step: &StepState| matches!(step.phase, StepPhase::Queued { entry: own, .. } if own == entry.seq);
    let both = both.filter(|(_, step)| waits(step));
    if both.is_none() {
        // Nobody is told of it, and nobody will look at it.
        entries::observe(tx, &closed)?;
    }
    if let Some(both) = both {
        let fact = if cancelled {
            Fact::Cancelled(reason)
        } else {
            Fact::Withdrawn(reason)
        };
        advance(tx, &both, &fact, None)?;
    }
    Ok(closed)
}
