//! Late jobs: what the store has seen of each, which limits are passed, and the rows that make one alert of one breach.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::lateness::{self, Breach, Fate, Seen};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::run::{Run, RunState};
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::{drift, head, report};
use crate::store::rows::{BreachRow, Fire, JobMark};
use crate::store::tables::{BREACHES, DEFINITIONS, FIRES, JOB_MARKS, JOB_RUNS, OWED};
use crate::store::{Abort, Rows, StoreError, Tx, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// Reasons of a skipped fire that are no lateness: somebody wanted it so.
const WANTED: [&str; 4] = ["job_paused", "still_running", "last_not_successful", "cancelled"];

/// What became of one job's limits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Noted {
    /// The job.
    pub job: JobName,
    /// Limits that were passed, in words.
    pub began: Vec<String>,
    /// Limits that hold again.
    pub ended: Vec<String>,
}

/// The breaches of a job that are written now, oldest key first.
pub fn stored(rows: &mut impl Rows, job: &JobName) -> Result<Vec<BreachRow>, StoreError> {
    let found = rows.scan_each(&BREACHES, &(TENANT, job.clone()), None, limits::PAGE_MAX)?;
    Ok(found
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|(_, row)| row)
        .collect())
}

/// The breaches of all jobs.
pub fn all_stored(rows: &mut impl Rows) -> Result<BTreeMap<JobName, Vec<BreachRow>>, StoreError> {
    let mut found: BTreeMap<JobName, Vec<BreachRow>> = BTreeMap::new();
    for each in rows.scan_each(&BREACHES, &(TENANT,), None, usize::MAX)? {
        if let Ok(((_, job, _), row)) = each.row {
            found.entry(job).or_default().push(row);
        }
    }
    Ok(found)
}

fn key_of(breach: &Breach) -> String {
    match breach.run {
        Some(run) => format!("{} {run}", breach.check.word()),
        None => breach.check.word().to_owned(),
    }
}

/// Jobs whose written breaches differ from what a judge says now. Read from a snapshot; [`note`] looks again.
pub fn differing(rows: &mut impl Rows, book: &Book, now: Millis) -> Result<Vec<JobName>, StoreError> {
    let mut stored_of: BTreeMap<JobName, BTreeSet<String>> = BTreeMap::new();
    for each in rows.scan_each(&BREACHES, &(TENANT,), None, usize::MAX)? {
        if let Ok(((_, job, key), _)) = each.row {
            stored_of.entry(job).or_default().insert(key);
        }
    }
    let with_limits = book.jobs.iter().filter(|(_, job)| !job.definition.sla.is_empty());
    let mut names: BTreeSet<JobName> = with_limits.map(|(name, _)| name.clone()).collect();
    names.extend(stored_of.keys().cloned());
    let mut found = Vec::new();
    for name in names {
        let stored = stored_of.remove(&name).unwrap_or_default();
        match judged(rows, book, &name, now) {
            Ok(Some((breaches, _))) => {
                let keys: BTreeSet<String> = breaches.iter().map(key_of).collect();
                if keys != stored {
                    found.push(name);
                }
            }
            Ok(None) => {}
            // One job whose rows cannot be read hides no other.
            Err(error) if error.is_row_fault() => {
                tracing::warn!(job = %name, cause = %error, "whether this job is late cannot be read");
            }
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// Judges these jobs again and writes what differs: a breach begins with its report, or ends.
pub fn note(tx: &mut Tx<'_>, book: &Book, jobs: &[JobName]) -> Result<Vec<Noted>, Abort> {
    let mut all = Vec::new();
    for job in jobs {
        let Some((breaches, mark)) = judged(tx, book, job, tx.now().wall)? else {
            continue;
        };
        let mut noted = Noted {
            job: job.clone(),
            began: Vec::new(),
            ended: Vec::new(),
        };
        let keys: BTreeSet<String> = breaches.iter().map(key_of).collect();
        for ((_, _, key), _) in tx.scan(&BREACHES, &(TENANT, job.clone()), None, usize::MAX)? {
            if !keys.contains(&key) {
                tx.remove(&BREACHES, &(TENANT, job.clone(), key.clone()))?;
                noted.ended.push(key);
            }
        }
        for breach in breaches {
            let key = (TENANT, job.clone(), key_of(&breach));
            if tx.has(&BREACHES, &key)? {
                continue;
            }
            let noticed_at = tx.now().wall;
            tx.tell("job.late", job, 0, Some(&breach.reason));
            report::late(tx, job, &breach, &mark)?;
            noted.began.push(breach.reason.clone());
            tx.put(&BREACHES, &key, &BreachRow { breach, noticed_at })?;
        }
        all.push(noted);
    }
    Ok(all)
}

/// The limits of a job that are passed at `now`. `None`: nobody judges it now, and what is written stays.
fn judged(
    rows: &mut impl Rows,
    book: &Book,
    name: &JobName,
    now: Millis,
) -> Result<Option<(Vec<Breach>, JobMark)>, StoreError> {
    if !drift::may_judge(rows, book, name)? {
        return Ok(None);
    }
    let key = (TENANT, name.clone());
    let (Some(job), Some(mark)) = (book.jobs.get(name), rows.get(&JOB_MARKS, &key)?) else {
        // It left the configuration: its limits are gone with it.
        let mark = JobMark {
            known_since: now,
            last_success: None,
        };
        return Ok(Some((Vec::new(), mark)));
    };
    if job.definition.sla.is_empty() || !job.definition.enabled {
        return Ok(Some((Vec::new(), mark)));
    }
    if head::job_pause(rows, name, now)?.is_some() {
        return Ok(None);
    }
    let seen = seen(rows, name, job, mark, now)?;
    Ok(Some((lateness::judge(&job.definition.sla, &seen, now), mark)))
}

fn seen(
    rows: &mut impl Rows,
    name: &JobName,
    job: &BookJob,
    mark: JobMark,
    now: Millis,
) -> Result<Seen, StoreError> {
    let sla = &job.definition.sla;
    let due = match sla.late_after_ms {
        Some(limit_ms) => due_fire(rows, name, job, mark, (now, limit_ms))?,
        None => None,
    };
    let mut running = Vec::new();
    if sla.max_runtime_ms.is_some() {
        for id in runs::active_of(rows, name, limits::PAGE_MAX)? {
            let run = runs::by_id(rows, id)?;
            running.extend(run.and_then(|run| Some((id, run.state.started_at()?))));
        }
    }
    Ok(Seen {
        known_since: mark.known_since,
        last_success: mark.last_success,
        due,
        running,
    })
}

/// The newest due moment that should have started by now. Moments before the job became known, or got its present
/// definition, are nobody's.
fn due_fire(
    rows: &mut impl Rows,
    name: &JobName,
    job: &BookJob,
    mark: JobMark,
    (now, limit_ms): (Millis, u64),
) -> Result<Option<(Millis, Fate)>, StoreError> {
    let Some(schedule) = &job.schedule else {
        return Ok(None);
    };
    let published = rows.get(&DEFINITIONS, &(TENANT, name.clone(), job.version))?;
    let since = published.map_or(mark.known_since, |record| {
        record.published_at.max(mark.known_since)
    });
    let until = now.0.saturating_sub_unsigned(limit_ms);
    let Some(due) = schedule.last_in(since.0, until) else {
        return Ok(None);
    };
    let due = Millis(due);
    Ok(Some((due, fate_of(rows, name, due)?)))
}

fn fate_of(rows: &mut impl Rows, name: &JobName, due: Millis) -> Result<Fate, StoreError> {
    let fires = rows.scan(&FIRES, &(TENANT, name.clone(), due), None, limits::PAGE_MAX)?;
    let owed = rows.scan(&OWED, &(TENANT, name.clone(), due), None, 1)?;
    let mut fate = if owed.is_empty() {
        Fate::Unknown
    } else {
        Fate::Waits
    };
    for (_, fire) in fires {
        match fire {
            Fire::Run(id) | Fire::CaughtUp(id) => match runs::by_id(rows, id)? {
                Some(run) if has_begun(&run) => return Ok(Fate::Started),
                Some(run) => fate = of_pending(&run),
                // Its run was ended and cleared away.
                None => return Ok(Fate::Started),
            },
            Fire::Skipped { reason, .. } | Fire::Withdrawn { reason, .. } => {
                if WANTED.contains(&reason.as_str()) {
                    return Ok(Fate::Excused);
                }
                fate = Fate::Skipped(reason);
            }
        }
    }
    if fate != Fate::Waits && started_since(rows, name, due)? {
        return Ok(Fate::Started);
    }
    Ok(fate)
}

fn has_begun(run: &Run) -> bool {
    run.state.started_at().is_some()
}

/// What a run says that has not started.
fn of_pending(run: &Run) -> Fate {
    match &run.state {
        RunState::Skipped { reason, .. } if reason == reason::BY_OPERATOR => Fate::Excused,
        RunState::Skipped { reason, .. }
        | RunState::Failed { reason, .. }
        | RunState::TimedOut { reason, .. } => Fate::Skipped(reason.clone()),
        RunState::Cancelled { .. } => Fate::Excused,
        RunState::Pending
        | RunState::Running { .. }
        | RunState::Paused { .. }
        | RunState::Succeeded { .. } => Fate::Waits,
    }
}

/// Some run of the job has begun since that moment: by hand, by catch-up, by a later fire.
fn started_since(rows: &mut impl Rows, name: &JobName, since: Millis) -> Result<bool, StoreError> {
    let newest = rows.scan_back(
        &JOB_RUNS,
        &(TENANT, name.clone()),
        None,
        limits::LATENESS_RUNS_MAX,
    )?;
    for ((_, _, id), _) in newest {
        let run = runs::by_id(rows, id)?;
        if run
            .and_then(|run| run.state.started_at())
            .is_some_and(|at| at >= since)
        {
            return Ok(true);
        }
    }
    Ok(false)
}
