//! Jobs that fail now, grouped by cause: those whose newest run failed, and those whose run failed and is tried again.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::endings::{self, Newest};
use crate::domain::cause::cause_of;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::run::{RunState, StepPhase, StepState};
use crate::engine::book::Book;
use crate::store::rows::LiveAttempt;
use crate::store::tables::{ATTEMPTS, JOB_MARKS, JOB_RUNS, RETRYING, STEPS};
use crate::store::{Rows, StoreError};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Groups that are shown.
const GROUPS_MAX: usize = 20;
/// Jobs of a group that are named.
const NAMED_MAX: usize = 10;
/// Waiting retries that are looked at: each job has a few at most.
const RETRIES_MAX: usize = 20_000;
/// Attempts of a run among which its failures are looked for.
const ATTEMPTS_MAX: usize = 20;
/// Runs since the newest success that are looked at for the beginning of a streak.
const STREAK_MAX: usize = 50;
/// Characters of a reason that is shown whole.
const EXAMPLE_CHARS_MAX: usize = 500;

/// What fails now.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FailingView {
    /// Failing jobs.
    total: usize,
    /// Different causes.
    causes: usize,
    /// The newest 20.
    groups: Vec<FailingGroup>,
}

/// Jobs that fail of the same cause.
#[derive(Debug, Serialize, ToSchema)]
struct FailingGroup {
    /// The reason, with `#` and `*` for what differs from one failure to the next.
    cause: String,
    /// The newest reason as it is.
    example: String,
    /// Jobs in the group.
    count: usize,
    /// The newest failures first, at most 10.
    jobs: Vec<FailingJob>,
    /// When the oldest unbroken row of failures among them began.
    since: String,
    last_at: String,
    /// One of them is tried again.
    retrying: bool,
    /// When the next of those attempts is due; absent while it waits for slots or runs.
    retry_at: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
struct FailingJob {
    name: String,
    /// The run that failed last.
    run: String,
    last_at: String,
    retrying: bool,
    retry_at: Option<String>,
}

/// A job that fails.
#[derive(Debug)]
pub(super) struct Fault {
    job: JobName,
    run: RunId,
    reason: String,
    at: Millis,
    /// The first failure of a run that is tried again.
    began: Millis,
    again: Option<Again>,
}

/// Another attempt comes.
#[derive(Debug, Clone, Copy)]
struct Again {
    /// `None` once it waits for slots or runs.
    due: Option<Millis>,
}

/// What fails, grouped by cause.
pub(super) fn look(
    rows: &mut impl Rows,
    book: &Book,
    newest: &BTreeMap<JobName, Newest>,
    live: &[(RunId, StepRef, LiveAttempt)],
) -> Result<FailingView, StoreError> {
    let faults = faults(rows, book, newest, live)?;
    grouped(rows, faults)
}

/// The failing ones of the jobs of the configuration.
pub(super) fn faults(
    rows: &mut impl Rows,
    book: &Book,
    newest: &BTreeMap<JobName, Newest>,
    live: &[(RunId, StepRef, LiveAttempt)],
) -> Result<BTreeMap<JobName, Fault>, StoreError> {
    let mut faults: BTreeMap<JobName, Fault> = BTreeMap::new();
    for (job, newest) in newest {
        if let Some(reason) = &newest.failure {
            faults.insert(job.clone(), ended(rows, job, newest, reason)?);
        }
    }
    let retrying = rows.scan_each(&RETRYING, &(TENANT,), None, RETRIES_MAX)?;
    let waiting = retrying.into_iter().filter_map(|each| each.row.ok());
    let waiting = waiting.map(|((_, job, run, step), _)| (job, run, step));
    let running = live.iter().filter(|(_, _, row)| row.number > 1);
    let running = running.map(|(run, step, row)| (row.job.clone(), *run, step.clone()));
    // Of each job the newest one says how it is.
    let mut newest_open: BTreeMap<JobName, (RunId, StepRef)> = BTreeMap::new();
    for (job, run, step) in waiting.chain(running) {
        if newest_open.get(&job).is_none_or(|(other, _)| *other < run) {
            newest_open.insert(job, (run, step));
        }
    }
    for (job, (run, step)) in newest_open {
        let is_newer = faults.get(&job).is_none_or(|fault| fault.run < run);
        if !is_newer || !book.jobs.contains_key(&job) {
            continue;
        }
        if let Some(fault) = tried_again(rows, job, run, &step)?
            && newest
                .get(&fault.job)
                .is_none_or(|newest| newest.failure.is_some() || newest.ended_at < fault.at)
        {
            faults.insert(fault.job.clone(), fault);
        }
    }
    Ok(faults)
}

/// A run that failed for good. One whose retry was taken from it failed because its last attempt did.
fn ended(rows: &mut impl Rows, job: &JobName, newest: &Newest, reason: &str) -> Result<Fault, StoreError> {
    let mut reason = reason.to_owned();
    let withdrawn = [
        reason::RETRY_SUPERSEDED,
        reason::RETRY_SUCCEEDED,
        reason::RETRY_CANCELLED,
        reason::DEADLINE_PASSED,
        reason::QUEUE_TIMEOUT,
    ];
    if withdrawn.contains(&reason.as_str()) {
        let failures = failures(rows, newest.run, None)?;
        if let Some((_, why)) = failures.first() {
            reason.clone_from(why);
        }
    }
    Ok(Fault {
        job: job.clone(),
        run: newest.run,
        reason,
        at: newest.ended_at,
        began: newest.ended_at,
        again: None,
    })
}

/// A run that goes on after a failed attempt; `None` if none of its attempts has failed.
fn tried_again(
    rows: &mut impl Rows,
    job: JobName,
    run: RunId,
    step: &StepRef,
) -> Result<Option<Fault>, StoreError> {
    let failures = failures(rows, run, Some(step))?;
    let (Some((at, reason)), Some((began, _))) = (failures.first(), failures.last()) else {
        return Ok(None);
    };
    let state: Option<StepState> = match rows.get(&STEPS, &(TENANT, run, step.clone())) {
        Err(error) if error.is_row_fault() => None,
        other => other?,
    };
    let due = match state.map(|state| state.phase) {
        Some(StepPhase::Retrying { due, .. }) => Some(due),
        Some(_) | None => None,
    };
    Ok(Some(Fault {
        job,
        run,
        reason: reason.clone(),
        at: *at,
        began: *began,
        again: Some(Again { due }),
    }))
}

/// The failed attempts of a run with their reasons, newest first.
fn failures(
    rows: &mut impl Rows,
    run: RunId,
    step: Option<&StepRef>,
) -> Result<Vec<(Millis, String)>, StoreError> {
    let found = match step {
        Some(step) => rows.scan_each_back(&ATTEMPTS, &(TENANT, run, step.clone()), None, ATTEMPTS_MAX)?,
        None => rows.scan_each_back(&ATTEMPTS, &(TENANT, run), None, ATTEMPTS_MAX)?,
    };
    let attempts = found.into_iter().filter_map(|each| each.row.ok());
    Ok(attempts.filter_map(|(_, attempt)| failure_of(attempt)).collect())
}

fn failure_of(attempt: Attempt) -> Option<(Millis, String)> {
    match attempt.outcome {
        Outcome::Failed | Outcome::TimedOut => {
            let word = attempt.outcome.word().to_owned();
            Some((attempt.ended_at, attempt.reason.unwrap_or(word)))
        }
        Outcome::Succeeded | Outcome::Cancelled | Outcome::Lost => None,
    }
}

fn grouped(rows: &mut impl Rows, faults: BTreeMap<JobName, Fault>) -> Result<FailingView, StoreError> {
    let total = faults.len();
    let mut by_cause: BTreeMap<String, Vec<Fault>> = BTreeMap::new();
    for fault in faults.into_values() {
        by_cause.entry(cause_of(&fault.reason)).or_default().push(fault);
    }
    let causes = by_cause.len();
    let mut groups: Vec<(String, Vec<Fault>)> = by_cause.into_iter().collect();
    for (_, faults) in &mut groups {
        faults.sort_by_key(|fault| std::cmp::Reverse(fault.at));
    }
    groups.sort_by_key(|(_, faults)| std::cmp::Reverse(faults.first().map(|fault| fault.at)));
    groups.truncate(GROUPS_MAX);
    let mut shown = Vec::with_capacity(groups.len());
    for (cause, faults) in groups {
        shown.push(group(rows, cause, &faults)?);
    }
    Ok(FailingView {
        total,
        causes,
        groups: shown,
    })
}

/// `faults` are those of one cause, newest first.
fn group(rows: &mut impl Rows, cause: String, faults: &[Fault]) -> Result<FailingGroup, StoreError> {
    let (mut since, mut last) = (Millis(i64::MAX), Millis(i64::MIN));
    for fault in faults {
        since = since.min(streak_since(rows, &fault.job)?.map_or(fault.began, |at| at.min(fault.began)));
        last = last.max(fault.at);
    }
    let example = faults.first().map_or("", |fault| fault.reason.as_str());
    let next = faults.iter().filter_map(|fault| fault.again?.due).min();
    let jobs = faults.iter().take(NAMED_MAX).map(|fault| FailingJob {
        name: fault.job.to_string(),
        run: fault.run.to_string(),
        last_at: fault.at.to_string(),
        retrying: fault.again.is_some(),
        retry_at: fault.again.and_then(|again| again.due).map(|due| due.to_string()),
    });
    Ok(FailingGroup {
        cause,
        example: example.chars().take(EXAMPLE_CHARS_MAX).collect(),
        count: faults.len(),
        jobs: jobs.collect(),
        since: since.to_string(),
        last_at: last.to_string(),
        retrying: faults.iter().any(|fault| fault.again.is_some()),
        retry_at: next.map(|due| due.to_string()),
    })
}

/// The end of the first failed run after the newest success, of the runs that are kept.
fn streak_since(rows: &mut impl Rows, job: &JobName) -> Result<Option<Millis>, StoreError> {
    let mark = rows.get(&JOB_MARKS, &(TENANT, job.clone()));
    let success = match mark {
        Err(error) if error.is_row_fault() => None,
        other => other?.and_then(|mark| mark.last_success),
    };
    let after = success.map(|at| (TENANT, job.clone(), RunId::first_at(at)));
    let mut since = None;
    for ((_, _, id), _) in rows.scan(&JOB_RUNS, &(TENANT, job.clone()), after.as_ref(), STREAK_MAX)? {
        match endings::readable(rows, id)?.map(|run| run.state) {
            Some(RunState::Succeeded { .. }) => since = None,
            Some(RunState::Failed { ended_at, .. }) => since = since.or(Some(ended_at)),
            Some(_) | None => {}
        }
    }
    Ok(since)
}
