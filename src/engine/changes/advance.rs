//! Moving a run: loads it with its step, folds one fact, writes both.

use crate::domain::slots::entry::{EntryEvent, SlotEntry};
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::domain::workflow::tick::{self, Fact};
use crate::engine::changes::{catch_up, report};
use crate::store::rows::ReadyStep;
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
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
    if entry.kind.is_of_graph() {
        // What becomes of the step is decided by the coordinator of its run.
        entries::replace(tx, entry, &closed, None)?;
        return Ok(closed);
    }
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
    if let Some(both) = both.filter(|(_, step)| matches!(step.phase, StepPhase::Queued { .. })) {
        let fact = if cancelled {
            Fact::Cancelled(reason)
        } else {
            Fact::Withdrawn(reason)
        };
        advance(tx, &both, &fact, None)?;
    }
    Ok(closed)
}
