//! Slot entries of graphs' steps: how a step asks for slots, how its coordinator takes a request back, and how it learns
//! what others have decided about one.
//!
//! The run is not touched here: only its coordinator writes it. What others close (an operator, the deadline, a slot pool
//! that is gone) stays in `slot_unseen` until the coordinator has folded it into the run, and counts against the longest
//! queue as if it waited.

use crate::domain::slots::entry::{EntryEvent, EntryKind, EntryState, SlotEntry, reason};
use crate::domain::workflow::definition::SlotDemand;
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::engine::book::Book;
use crate::engine::changes::maintain;
use crate::engine::changes::start::{self, Entered, Entering};
use crate::store::rows::UnseenRow;
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{EntryId, RunId};
use crate::words::names::StepRef;

/// The id of a request: repeated, it is the same one.
pub fn id_of(run: RunId, step: &StepRef, attempt: u32, poke: Option<u32>) -> EntryId {
    let (run, attempt) = (run.to_string(), attempt.to_string());
    match poke {
        None => EntryId::of_parts(&["task", &run, step.as_str(), &attempt]),
        Some(poke) => EntryId::of_parts(&["poke", &run, step.as_str(), &attempt, &poke.to_string()]),
    }
}

/// Asks for the slots of a step's next execution; `poke` is its number for a sensor. An admitted entry is written already.
pub fn enter(
    tx: &mut Tx<'_>,
    book: &Book,
    (run, step): (&Run, &StepState),
    poke: Option<u32>,
    demand: &SlotDemand,
    rules: &maintain::Rules,
) -> Result<Entered, Abort> {
    let wish = Entering {
        job: run.definition.clone(),
        run: run.id,
        step: step.step.clone(),
        attempt: step.attempt,
        kind: if poke.is_some() {
            EntryKind::Poke
        } else {
            EntryKind::Task
        },
        id: id_of(run.id, &step.step, step.attempt, poke),
        node: run.node.clone(),
        // The version is pinned by the run: nothing is compared with what is published.
        digest: String::new(),
    };
    let entered = start::enter(tx, book, &wish, demand, rules)?;
    if let Entered::Admitted(entry) = &entered {
        entries::insert(tx, entry)?;
    }
    Ok(entered)
}

/// T7: the step waits no more. Also what somebody else has closed meanwhile is done with. True if the entry waited.
pub fn retire(tx: &mut Tx<'_>, seq: u64) -> Result<bool, Abort> {
    let Some(entry) = entries::by_seq(tx, seq)? else {
        return Ok(false);
    };
    if !matches!(entry.state, EntryState::Queued { .. }) {
        entries::observe(tx, &entry)?;
        return Ok(false);
    }
    match entry.next(&EntryEvent::Withdraw(reason::TASK_GONE), tx.now().wall) {
        Ok(closed) => entries::replace(tx, &entry, &closed, None)?,
        Err(refusal) => panic!("entry {}: {refusal}", entry.id),
    }
    Ok(true)
}

/// The coordinator has folded the close of an entry into its run. True if nobody had before.
pub fn observe(tx: &mut Tx<'_>, seq: u64) -> Result<bool, StoreError> {
    match entries::by_seq(tx, seq)? {
        Some(entry) => entries::observe(tx, &entry),
        None => Ok(false),
    }
}

/// A decision about an entry that its coordinator has to fold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// Which entry, and of which step.
    pub row: UnseenRow,
    /// Why it was closed.
    pub reason: String,
}

/// Decisions that nobody has folded yet.
pub fn undelivered(rows: &mut impl Rows, most: usize) -> Result<Vec<Decided>, StoreError> {
    let mut found = Vec::new();
    for row in entries::unseen(rows, most)? {
        let entry = match entries::by_seq(rows, row.seq) {
            Err(error) if error.is_row_fault() => None,
            other => other?,
        };
        let reason = entry.and_then(|entry| entry.state.reason().map(str::to_owned));
        found.push(Decided {
            row,
            reason: reason.unwrap_or_else(|| "its entry cannot be read".to_owned()),
        });
    }
    Ok(found)
}

/// C6: the run goes on, and its step waits for exactly this entry.
pub(super) fn is_wanted(rows: &mut impl Rows, entry: &SlotEntry) -> Result<bool, StoreError> {
    let Some(run) = runs::by_id(rows, entry.run)? else {
        return Ok(false);
    };
    if run.state.is_terminal() {
        return Ok(false);
    }
    let step = runs::step(rows, entry.run, &entry.step)?;
    Ok(step.is_some_and(|step| {
        step.attempt == entry.attempt
            && matches!(step.phase, StepPhase::Queued { entry: own, .. } if own == entry.seq)
    }))
}
