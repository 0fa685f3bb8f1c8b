//! Reports that a change owes: written in the transaction of their cause, delivered after it by `engine/effects.rs`.
//!
//! Which reports a job asks for is a row that publishing writes. Cancelled, replaced and skipped runs owe nothing.

use crate::domain::lateness::Breach;
use crate::domain::report::{Effect, EffectState, Facts, LateFacts, ReportKind, ReportTarget, Tails};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::run::{Run, RunState};
use crate::store::rows::JobMark;
use crate::store::tables::{ATTEMPTS, JOB_MARKS, PUBLISHED_REPORTS};
use crate::store::{Abort, Rows, StoreError, Tx, effects};
use crate::words::ids::{EffectId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// Brings the rows beside a published definition up to date: what it asks for, and since when it is known.
pub fn publish(tx: &mut Tx<'_>, definition: &Definition) -> Result<(), StoreError> {
    let key = (TENANT, definition.name.clone());
    let wishes = Some(&definition.reports).filter(|wishes| !wishes.is_empty());
    match (wishes, tx.get(&PUBLISHED_REPORTS, &key)?) {
        (Some(wishes), published) if published.as_ref() != Some(wishes) => {
            tx.put(&PUBLISHED_REPORTS, &key, wishes)?;
        }
        (None, Some(_)) => {
            tx.remove(&PUBLISHED_REPORTS, &key)?;
        }
        (Some(_) | None, _) => {}
    }
    if !tx.has(&JOB_MARKS, &key)? {
        let mark = JobMark {
            known_since: tx.now().wall,
            last_success: None,
        };
        tx.put(&JOB_MARKS, &key, &mark)?;
    }
    Ok(())
}

/// True while the configuration that was loaded last asks for such a report.
pub fn is_wanted(rows: &mut impl Rows, effect: &Effect) -> Result<bool, StoreError> {
    let wishes = rows.get(&PUBLISHED_REPORTS, &(TENANT, effect.job.clone()))?;
    Ok(wishes.is_some_and(|wishes| wishes.of(effect.kind).any(|target| target == effect.target)))
}

/// The job has left the configuration.
pub fn unpublish(tx: &mut Tx<'_>, job: &JobName) -> Result<(), StoreError> {
    tx.remove(&PUBLISHED_REPORTS, &(TENANT, job.clone()))?;
    tx.remove(&JOB_MARKS, &(TENANT, job.clone()))?;
    Ok(())
}

/// An attempt has ended by itself; `run` is as it is after that.
pub fn attempt_ended(
    tx: &mut Tx<'_>,
    run: &Run,
    number: u32,
    attempt: &Attempt,
    tails: &Tails,
) -> Result<(), StoreError> {
    let facts = Facts {
        attempt: Some(number),
        outcome: Some(attempt.outcome),
        reason: attempt.reason.clone(),
        exit_code: attempt.exit_code,
        started_at: Some(attempt.started_at),
        ended_at: Some(attempt.ended_at),
        scheduled_at: run.trigger.scheduled_at(),
        node: Some(attempt.node.clone()),
        tails: tails.clone(),
        late: None,
    };
    match attempt.outcome {
        Outcome::Failed | Outcome::TimedOut => owe(tx, ReportKind::Failure, run, &facts)?,
        Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost => {}
    }
    if let Some(kind) = kind_of_end(&run.state) {
        owe(tx, kind, run, &of_run(run, facts))?;
    }
    Ok(())
}

/// A run whose step will not start any more has failed if it had begun. Who cancelled it knows, and a job that has
/// recovered meanwhile is nobody's trouble.
pub fn withdrawn(tx: &mut Tx<'_>, run: &Run, why: &str) -> Result<(), StoreError> {
    if [
        reason::BY_OPERATOR,
        reason::RETRY_CANCELLED,
        reason::RETRY_SUCCEEDED,
    ]
    .contains(&why)
    {
        return Ok(());
    }
    ended_alone(tx, run)
}

/// A run has ended without an attempt that ended with it: its daemons died, or its next attempt cannot start.
pub fn ended_alone(tx: &mut Tx<'_>, run: &Run) -> Result<(), StoreError> {
    let Some(kind) = kind_of_end(&run.state) else {
        return Ok(());
    };
    let why = run.state.reason().map(str::to_owned);
    let last = last_failure(tx, run.id)?;
    let facts = match last.clone() {
        Some((number, attempt)) => Facts {
            attempt: Some(number),
            outcome: Some(attempt.outcome),
            reason: joined(attempt.reason, why),
            exit_code: attempt.exit_code,
            node: Some(attempt.node),
            ..Facts::default()
        },
        None => Facts {
            reason: why,
            ..Facts::default()
        },
    };
    let facts = of_run(
        run,
        Facts {
            scheduled_at: run.trigger.scheduled_at(),
            ..facts
        },
    );
    if kind == ReportKind::PermanentFailure && last.is_none() {
        // Who asked to be told of failures has not been told of this one.
        owe(tx, ReportKind::Failure, run, &facts)?;
    }
    owe(tx, kind, run, &facts)
}

/// An attempt of a task has failed, also when another one follows. A poke of a sensor that was not met is no attempt.
pub fn task_failed(
    tx: &mut Tx<'_>,
    run: &Run,
    step: &StepRef,
    number: u32,
    attempt: &Attempt,
) -> Result<(), StoreError> {
    if !matches!(attempt.outcome, Outcome::Failed | Outcome::TimedOut) {
        return Ok(());
    }
    let why = attempt.reason.as_deref().unwrap_or(attempt.outcome.word());
    let facts = Facts {
        attempt: Some(number),
        outcome: Some(attempt.outcome),
        reason: Some(format!("task '{step}': {why}")),
        exit_code: attempt.exit_code,
        started_at: Some(attempt.started_at),
        ended_at: Some(attempt.ended_at),
        scheduled_at: run.trigger.scheduled_at(),
        node: Some(attempt.node.clone()),
        ..Facts::default()
    };
    let cause = [run.id.to_string(), step.to_string(), number.to_string()];
    insert_each(
        tx,
        ReportKind::Failure,
        &run.definition,
        Some(run.id),
        &facts,
        &cause,
    )
}

/// The run of a dag has ended.
pub fn graph_ended(tx: &mut Tx<'_>, run: &Run) -> Result<(), StoreError> {
    let Some(kind) = kind_of_end(&run.state) else {
        return Ok(());
    };
    if !tx.has(&PUBLISHED_REPORTS, &(TENANT, run.definition.clone()))? {
        return Ok(());
    }
    let (outcome, last) = match &run.state {
        RunState::Succeeded { .. } => (Outcome::Succeeded, None),
        RunState::TimedOut { .. } => (Outcome::TimedOut, last_failure(tx, run.id)?),
        RunState::Failed { .. }
        | RunState::Pending
        | RunState::Running { .. }
        | RunState::Paused { .. }
        | RunState::Cancelled { .. }
        | RunState::Skipped { .. } => (Outcome::Failed, last_failure(tx, run.id)?),
    };
    let last = last.map(|(_, attempt)| attempt);
    let no_attempt = last.is_none();
    let facts = Facts {
        outcome: Some(outcome),
        reason: run.state.reason().map(str::to_owned),
        exit_code: last.as_ref().and_then(|attempt| attempt.exit_code),
        scheduled_at: run.trigger.scheduled_at(),
        node: last.map(|attempt| attempt.node).or_else(|| run.node.clone()),
        ..Facts::default()
    };
    let facts = of_run(run, facts);
    if kind == ReportKind::PermanentFailure && no_attempt {
        // Who asked to be told of failures has not been told of this one.
        owe(tx, ReportKind::Failure, run, &facts)?;
    }
    owe(tx, kind, run, &facts)
}

/// `exit code 3 (retry superseded)`.
fn joined(of_attempt: Option<String>, of_run: Option<String>) -> Option<String> {
    match (of_attempt, of_run) {
        (Some(of_attempt), Some(of_run)) => Some(format!("{of_attempt} ({of_run})")),
        (one, None) | (None, one) => one,
    }
}

fn kind_of_end(state: &RunState) -> Option<ReportKind> {
    match state {
        RunState::Succeeded { .. } => Some(ReportKind::Success),
        RunState::Failed { .. } | RunState::TimedOut { .. } => Some(ReportKind::PermanentFailure),
        RunState::Pending
        | RunState::Running { .. }
        | RunState::Paused { .. }
        | RunState::Cancelled { .. }
        | RunState::Skipped { .. } => None,
    }
}

/// The times of the run instead of those of its last attempt.
fn of_run(run: &Run, facts: Facts) -> Facts {
    Facts {
        started_at: run.state.started_at(),
        ended_at: run.state.ended_at(),
        ..facts
    }
}

/// The newest attempt of a run that failed by itself, with its number.
fn last_failure(rows: &mut impl Rows, run: RunId) -> Result<Option<(u32, Attempt)>, StoreError> {
    let newest = rows.scan_each_back(&ATTEMPTS, &(TENANT, run), None, limits::PAGE_MAX)?;
    let is_failure = |attempt: &Attempt| matches!(attempt.outcome, Outcome::Failed | Outcome::TimedOut);
    Ok(newest
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|((_, _, _, number, _), attempt)| (number, attempt))
        .find(|(_, attempt)| is_failure(attempt)))
}

/// A limit of the job is passed.
pub fn late(tx: &mut Tx<'_>, job: &JobName, breach: &Breach, mark: &JobMark) -> Result<(), Abort> {
    let now = tx.now().wall;
    let facts = Facts {
        reason: Some(breach.reason.clone()),
        started_at: breach.run.map(|_| breach.counted_from),
        late: Some(LateFacts {
            check: breach.check,
            limit_ms: breach.limit_ms,
            observed_ms: now.since(breach.counted_from),
            last_success: mark.last_success,
        }),
        ..Facts::default()
    };
    let cause = [
        breach.check.word().to_owned(),
        breach.run.map(|run| run.to_string()).unwrap_or_default(),
        breach.counted_from.to_string(),
        now.to_string(),
    ];
    insert_each(tx, ReportKind::Late, job, breach.run, &facts, &cause)?;
    Ok(())
}

fn owe(tx: &mut Tx<'_>, kind: ReportKind, run: &Run, facts: &Facts) -> Result<(), StoreError> {
    let attempt = facts.attempt.map(|number| number.to_string()).unwrap_or_default();
    let cause = [run.id.to_string(), attempt];
    insert_each(tx, kind, &run.definition, Some(run.id), facts, &cause)
}

/// One effect for each target that the job asks for.
fn insert_each(
    tx: &mut Tx<'_>,
    kind: ReportKind,
    job: &JobName,
    run: Option<RunId>,
    facts: &Facts,
    cause: &[String],
) -> Result<(), StoreError> {
    let Some(wishes) = tx.get(&PUBLISHED_REPORTS, &(TENANT, job.clone()))? else {
        return Ok(());
    };
    let created_at = tx.now().wall;
    for target in wishes.of(kind) {
        let effect = Effect {
            seq: 0,
            id: id_of(kind, target, job, cause),
            kind,
            target,
            job: job.clone(),
            run,
            created_at,
            facts: facts.clone(),
            state: waiting_from(created_at),
        };
        let effect = effects::insert(tx, effect)?;
        if let EffectState::Dead { reason, .. } = &effect.state {
            tx.tell("report.dead", job, 0, Some(reason));
        }
    }
    Ok(())
}

fn id_of(kind: ReportKind, target: ReportTarget, job: &JobName, cause: &[String]) -> EffectId {
    let mut parts = vec!["report", kind.key(), target.word(), job.as_str()];
    parts.extend(cause.iter().map(String::as_str));
    EffectId::of_parts(&parts)
}

fn waiting_from(due_at: Millis) -> EffectState {
    EffectState::Waiting {
        due_at,
        tries: 0,
        last_error: None,
    }
}
