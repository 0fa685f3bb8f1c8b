//! The only writer of run headers and their two indexes, and of the steps below them.

use super::error::StoreError;
use super::feed::Counted;
use super::rows::{JobMark, Present};
use super::table::Rows;
use super::tables::{
    ACTIVE_RUNS, JOB_MARKS, JOB_RUNS, LIVE_ATTEMPTS, READY_STEPS, RETRY_DUE, RETRY_RIGHTS, RETRYING, RUNS,
    STEPS,
};
use super::tx::Tx;
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState};
use crate::store::rows::ReadyStep;
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

/// The tenant of jobs.
pub const TENANT: TenantId = TenantId::DEFAULT;

/// Writes a run that begins to exist, with its one step.
pub fn insert(
    tx: &mut Tx<'_>,
    run: &Run,
    step: &StepState,
    ready: Option<&ReadyStep>,
) -> Result<(), StoreError> {
    debug_assert!(!run.state.is_terminal(), "a run begins alive");
    tx.put(&RUNS, &(TENANT, run.id), run)?;
    tx.put(&ACTIVE_RUNS, &(TENANT, run.definition.clone(), run.id), &Present)?;
    tx.put(&JOB_RUNS, &(TENANT, run.definition.clone(), run.id), &Present)?;
    put_step(tx, run, None, step, ready)?;
    tx.tell("run.changed", run.id, run.record_version, Some(run.state.word()));
    Ok(())
}

/// Writes the run of a graph that begins to exist; its steps are written one by one.
pub fn insert_graph(tx: &mut Tx<'_>, run: &Run) -> Result<(), StoreError> {
    tx.put(&RUNS, &(TENANT, run.id), run)?;
    if !run.state.is_terminal() {
        tx.put(&ACTIVE_RUNS, &(TENANT, run.definition.clone(), run.id), &Present)?;
    }
    tx.put(&JOB_RUNS, &(TENANT, run.definition.clone(), run.id), &Present)?;
    super::graphs::put_deadline(tx, None, run)?;
    super::key_limits::put(tx, None, run)?;
    if run.state.is_terminal() {
        count_end(tx, run)?;
    }
    tx.tell("run.changed", run.id, run.record_version, Some(run.state.word()));
    Ok(())
}

/// Replaces `before` by `after`.
pub fn replace(tx: &mut Tx<'_>, before: &Run, after: &Run) -> Result<(), StoreError> {
    assert_eq!(before.id, after.id, "a run keeps its id");
    tx.put(&RUNS, &(TENANT, after.id), after)?;
    if after.state.is_terminal() && !before.state.is_terminal() {
        tx.remove(&ACTIVE_RUNS, &(TENANT, after.definition.clone(), after.id))?;
        count_end(tx, after)?;
        tx.remove(&RETRY_RIGHTS, &(TENANT, after.id))?;
    }
    if after.graph.is_some() {
        super::graphs::put_deadline(tx, Some(before), after)?;
        super::key_limits::put(tx, Some(before), after)?;
    }
    tx.tell(
        "run.changed",
        after.id,
        after.record_version,
        Some(after.state.word()),
    );
    Ok(())
}

fn count_end(tx: &mut Tx<'_>, run: &Run) -> Result<(), StoreError> {
    tx.count(Counted::RunEnded {
        workflow: run.definition.to_string(),
        state: run.state.word(),
    });
    if let RunState::Succeeded { ended_at, .. } = run.state {
        note_success(tx, &run.definition, ended_at)?;
    }
    Ok(())
}

/// The newest success outlives its run, to the second: more than one a second costs no row. A job that left the
/// configuration has no mark to write.
fn note_success(tx: &mut Tx<'_>, job: &JobName, ended_at: Millis) -> Result<(), StoreError> {
    let key = (TENANT, job.clone());
    let Some(mark) = tx.get(&JOB_MARKS, &key)? else {
        return Ok(());
    };
    let second = |at: Millis| at.0.div_euclid(1_000);
    if mark
        .last_success
        .is_some_and(|noted| second(noted) >= second(ended_at))
    {
        return Ok(());
    }
    let last_success = Some(ended_at);
    tx.put(&JOB_MARKS, &key, &JobMark { last_success, ..mark })
}

/// Where a step that is tried again stands in the indexes: whether it waits, and when its back-off ends.
///
/// A first attempt stands in neither, whatever its phase; nor does the step of a graph, which has a timer.
pub fn retry_index_of(step: &StepState) -> (bool, Option<Millis>) {
    if step.graph.is_some() {
        return (false, None);
    }
    match &step.phase {
        StepPhase::Retrying { due, .. } => (true, Some(*due)),
        StepPhase::Ready { .. } | StepPhase::Queued { .. } => (step.attempt > 1, None),
        StepPhase::Running { .. }
        | StepPhase::Succeeded { .. }
        | StepPhase::Failed { .. }
        | StepPhase::Skipped { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::UpstreamFailed { .. }
        | StepPhase::Held { .. }
        | StepPhase::Cancelled { .. } => (false, None),
    }
}

/// Brings the two indexes of retries along. Only steps beyond their first attempt can stand there.
fn put_retry_index(
    tx: &mut Tx<'_>,
    run: &Run,
    before: Option<&StepState>,
    step: &StepState,
) -> Result<(), StoreError> {
    if step.attempt == 1 {
        return Ok(());
    }
    let (waits, due) = retry_index_of(step);
    let key = (TENANT, run.definition.clone(), run.id, step.step.clone());
    if waits {
        tx.put(&RETRYING, &key, &Present)?;
    } else {
        tx.remove(&RETRYING, &key)?;
    }
    let due_before = before.and_then(|before| retry_index_of(before).1);
    if due_before != due {
        if let Some(at) = due_before {
            tx.remove(&RETRY_DUE, &(TENANT, at, run.id, step.step.clone()))?;
        }
        if let Some(at) = due {
            tx.put(&RETRY_DUE, &(TENANT, at, run.id, step.step.clone()), &Present)?;
        }
    }
    Ok(())
}

/// Writes a step over `before`, its row in `ready_steps` exactly while it is ready, and its rows among the retries.
pub fn put_step(
    tx: &mut Tx<'_>,
    run: &Run,
    before: Option<&StepState>,
    step: &StepState,
    ready: Option<&ReadyStep>,
) -> Result<(), StoreError> {
    if step.graph.is_some() {
        return super::graphs::put_step(tx, run, before, step);
    }
    let key = (TENANT, run.id, step.step.clone());
    tx.put(&STEPS, &key, step)?;
    put_retry_index(tx, run, before, step)?;
    match (&step.phase, ready) {
        (StepPhase::Ready { .. }, Some(row)) => tx.put(&READY_STEPS, &key, row)?,
        (StepPhase::Ready { .. }, None) => unreachable!("a ready step comes with its row"),
        (_, _) => {
            tx.remove(&READY_STEPS, &key)?;
        }
    }
    Ok(())
}

/// The header of a run.
pub fn by_id(rows: &mut impl Rows, id: RunId) -> Result<Option<Run>, StoreError> {
    rows.get(&RUNS, &(TENANT, id))
}

/// The step of a run.
pub fn step(rows: &mut impl Rows, id: RunId, step: &StepRef) -> Result<Option<StepState>, StoreError> {
    rows.get(&STEPS, &(TENANT, id, step.clone()))
}

/// The executions of a job that hold a claim now, as (run, step, row).
pub fn live_of(
    rows: &mut impl Rows,
    job: &JobName,
) -> Result<Vec<(RunId, StepRef, super::rows::LiveAttempt)>, StoreError> {
    Ok(live(rows)?
        .into_iter()
        .filter(|(_, _, row)| row.job == *job)
        .collect())
}

/// All executions that hold a claim now.
pub fn live(rows: &mut impl Rows) -> Result<Vec<(RunId, StepRef, super::rows::LiveAttempt)>, StoreError> {
    let found = rows.scan_each(&LIVE_ATTEMPTS, &(TENANT,), None, usize::MAX)?;
    let readable = found.into_iter().filter_map(|row| row.row.ok());
    Ok(readable.map(|((_, run, step), row)| (run, step, row)).collect())
}

/// The newest success or failure of a job by its end, among its newest runs: true for a success.
pub fn last_outcome(rows: &mut impl Rows, job: &JobName) -> Result<Option<bool>, StoreError> {
    let mut newest: Option<(Millis, bool)> = None;
    for ((_, _, id), _) in
        rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, limits::OUTCOME_RUNS_MAX)?
    {
        let Some(run) = by_id(rows, id)? else { continue };
        let ended = match run.state {
            RunState::Succeeded { ended_at, .. } => (ended_at, true),
            RunState::Failed { ended_at, .. } | RunState::TimedOut { ended_at, .. } => (ended_at, false),
            RunState::Pending
            | RunState::Running { .. }
            | RunState::Paused { .. }
            | RunState::Cancelled { .. }
            | RunState::Skipped { .. } => continue,
        };
        if newest.is_none_or(|(at, _)| at < ended.0) {
            newest = Some(ended);
        }
    }
    Ok(newest.map(|(_, succeeded)| succeeded))
}

/// The runs of a job that have not ended, oldest first.
pub fn active_of(rows: &mut impl Rows, job: &JobName, limit: usize) -> Result<Vec<RunId>, StoreError> {
    let found = rows.scan(&ACTIVE_RUNS, &(TENANT, job.clone()), None, limit)?;
    Ok(found.into_iter().map(|((_, _, run), _)| run).collect())
}
