//! The only writer of the rows of graphs' runs: steps with their timers and lines, values, facts, history.

use super::error::StoreError;
use super::graph_rows::{HistoryRow, OpenCheckpoint, StoredFact, StoredValue, TaskRow};
use super::keys::Key;
use super::rows::{Present, ReadyStep};
use super::runs::TENANT;
use super::table::Rows;
use super::tables::{CHECKPOINTS, FACTS, HISTORY, READY_STEPS, RUNS, STEPS, TASKS, TIMERS, VALUES};
use super::tx::Tx;
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::history::{Compaction, Dropped, Transition};
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::state::{Line, TaskPlace, WaitsFor};
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::words::ids::{RunId, TenantId};
use crate::words::time::Millis;

/// What the feed is told when a fact is stored.
pub const FACT: &str = "run.fact";

/// The key of a task.
pub type TaskKey = (TenantId, String, u8, String, u64);

/// Where a task stands.
pub fn task_key(place: &TaskPlace) -> TaskKey {
    (
        TENANT,
        place.queue.clone(),
        place.tier as u8,
        place.partition.clone(),
        place.number,
    )
}

/// True for a step that waits for somebody.
pub fn is_open_checkpoint(step: &StepState) -> bool {
    matches!(
        step.phase,
        StepPhase::Waiting {
            on: WaitsFor::Checkpoint | WaitsFor::Approval,
            ..
        }
    )
}

/// When a run that has not ended is ended as timed out.
pub fn deadline_of(run: &Run) -> Option<Millis> {
    let header = run.graph.as_ref().filter(|_| !run.state.is_terminal())?;
    header.deadline.filter(|_| header.ending.is_none())
}

/// Writes a step over `before`, with its timer, its place in a line and its checkpoint.
pub fn put_step(
    tx: &mut Tx<'_>,
    run: &Run,
    before: Option<&StepState>,
    step: &StepState,
) -> Result<(), StoreError> {
    tx.put(&STEPS, &(TENANT, run.id, step.step.clone()), step)?;
    let timer = |step: &StepState| step.graph.as_ref().and_then(|graph| graph.timer);
    move_timer(
        tx,
        run.id,
        step.step.as_str(),
        before.and_then(timer),
        timer(step),
    )?;
    let line = |step: &StepState| step.graph.as_ref().and_then(|graph| graph.line.clone());
    let (old, new) = (before.and_then(line), line(step));
    if old != new {
        leave_line(tx, run, step, old.as_ref())?;
        enter_line(tx, run, step, new.as_ref())?;
    }
    let (was, is) = (before.is_some_and(is_open_checkpoint), is_open_checkpoint(step));
    let key = (TENANT, run.id, step.step.clone());
    if was && !is {
        tx.remove(&CHECKPOINTS, &key)?;
    }
    if let (true, StepPhase::Waiting { since, on }) = (is, &step.phase) {
        let row = OpenCheckpoint {
            approval: *on == WaitsFor::Approval,
            since: *since,
        };
        tx.put(&CHECKPOINTS, &key, &row)?;
        if !was {
            tx.tell(
                "run.checkpoint",
                run.id,
                run.record_version,
                Some(step.step.as_str()),
            );
        }
    }
    Ok(())
}

fn leave_line(tx: &mut Tx<'_>, run: &Run, step: &StepState, line: Option<&Line>) -> Result<(), StoreError> {
    match line {
        Some(Line::Processes) => drop(tx.remove(&READY_STEPS, &(TENANT, run.id, step.step.clone()))?),
        Some(Line::Tasks(place)) => drop(tx.remove(&TASKS, &task_key(place))?),
        None => {}
    }
    Ok(())
}

fn enter_line(tx: &mut Tx<'_>, run: &Run, step: &StepState, line: Option<&Line>) -> Result<(), StoreError> {
    match line {
        Some(Line::Processes) => {
            let row = ReadyStep {
                job: run.definition.clone(),
                node: run.node.clone(),
            };
            tx.put(&READY_STEPS, &(TENANT, run.id, step.step.clone()), &row)
        }
        Some(Line::Tasks(place)) => {
            let row = TaskRow {
                run: run.id,
                step: step.step.clone(),
            };
            tx.put(&TASKS, &task_key(place), &row)
        }
        None => Ok(()),
    }
}

fn move_timer(
    tx: &mut Tx<'_>,
    run: RunId,
    step: &str,
    before: Option<Millis>,
    after: Option<Millis>,
) -> Result<(), StoreError> {
    if before == after {
        return Ok(());
    }
    if let Some(at) = before {
        tx.remove(&TIMERS, &(TENANT, at, run, step.to_owned()))?;
    }
    if let Some(at) = after {
        tx.put(&TIMERS, &(TENANT, at, run, step.to_owned()), &Present)?;
    }
    Ok(())
}

/// Brings the timer of a run's own deadline along.
pub fn put_deadline(tx: &mut Tx<'_>, before: Option<&Run>, after: &Run) -> Result<(), StoreError> {
    move_timer(tx, after.id, "", before.and_then(deadline_of), deadline_of(after))
}

/// Writes a value.
pub fn put_value(tx: &mut Tx<'_>, run: RunId, name: &ValueName, value: Payload) -> Result<(), StoreError> {
    tx.put(&VALUES, &(TENANT, run, name.to_string()), &StoredValue(value))
}

/// A value.
pub fn value(rows: &mut impl Rows, run: RunId, name: &ValueName) -> Result<Option<Payload>, StoreError> {
    let row = rows.get(&VALUES, &(TENANT, run, name.to_string()))?;
    Ok(row.map(|row| row.0))
}

/// Writes what a tick did, and compacts what was written since the last time, if that is due.
pub fn put_history(
    tx: &mut Tx<'_>,
    run: &Run,
    mut items: Vec<Transition>,
    compaction: Option<Compaction>,
) -> Result<(), StoreError> {
    if let Some(compaction) = compaction {
        let mut dropped = Dropped::default();
        compact_rows(tx, run.id, compaction.after, &mut dropped)?;
        dropped.take_from(&mut items);
        items.push(dropped.line(compaction.seq));
    }
    if items.is_empty() {
        return Ok(());
    }
    let at = tx.now().wall;
    tx.put(
        &HISTORY,
        &(TENANT, run.id, run.record_version),
        &HistoryRow { at, items },
    )
}

/// Takes the compactable lines out of the rows of versions after `after`. A row that cannot be read stays: it is told by the
/// check, and must not hold its run up.
fn compact_rows(tx: &mut Tx<'_>, run: RunId, after: u64, dropped: &mut Dropped) -> Result<(), StoreError> {
    let after = (TENANT, run, after).encode();
    for row in tx.scan_each(&HISTORY, &(TENANT, run), Some(&after), usize::MAX)? {
        let Ok((key, mut row)) = row.row else { continue };
        if !dropped.take_from(&mut row.items) {
            continue;
        }
        if row.items.is_empty() {
            tx.remove(&HISTORY, &key)?;
        } else {
            tx.put(&HISTORY, &key, &row)?;
        }
    }
    Ok(())
}

/// Keeps a fact until it is folded. The run's version moves, so that no tick that does not know it is applied.
pub fn append_fact(tx: &mut Tx<'_>, run: &Run, fact: &StoredFact) -> Result<(), StoreError> {
    let number = tx.next_number("next_fact")?;
    tx.put(&FACTS, &(TENANT, run.id, number), fact)?;
    let mut next = run.clone();
    next.record_version += 1;
    tx.put(&RUNS, &(TENANT, run.id), &next)?;
    tx.tell(FACT, run.id, next.record_version, None);
    Ok(())
}

/// The facts of a run that are not folded yet, in order.
pub fn facts_of(rows: &mut impl Rows, run: RunId) -> Result<Vec<(u64, StoredFact)>, StoreError> {
    let found = rows.scan(&FACTS, &(TENANT, run), None, usize::MAX)?;
    Ok(found
        .into_iter()
        .map(|((_, _, number), fact)| (number, fact))
        .collect())
}
