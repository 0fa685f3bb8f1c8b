//! What ended lately: the bars of the last day, and how the newest run of each job ended.
//!
//! No table is in the order of ends, so the newest runs are read once, and from then on only what the feed says has
//! ended. Reading a page again costs what has changed since. Everything here can be thrown away at any time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::workflow::attempt::is_timeout;
use crate::domain::workflow::run::{Run, RunState};
use crate::store::keys::Key;
use crate::store::rows::Number;
use crate::store::tables::{CHANGES, JOB_RUNS, META, RUNS};
use crate::store::{FeedItem, Rows, StoreError, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Milliseconds of a bar.
pub(super) const HOUR_MS: i64 = 3_600_000;
/// Bars that are shown.
pub(super) const HOURS: i64 = 24;
/// Newest runs of a job among which the one that ended last is looked for; skipped and cancelled ones decide nothing.
const NEWEST_MAX: usize = 20;

/// How many runs ended in an hour, by how.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Bar {
    pub(super) succeeded: u32,
    pub(super) failed: u32,
    pub(super) timed_out: u32,
    pub(super) cancelled: u32,
    pub(super) skipped: u32,
}

impl Bar {
    fn count(&mut self, state: &RunState) {
        let place = match state {
            RunState::Pending | RunState::Running { .. } | RunState::Paused { .. } => return,
            RunState::Succeeded { .. } => &mut self.succeeded,
            RunState::Failed { reason, .. } if is_timeout(reason) => &mut self.timed_out,
            RunState::TimedOut { .. } => &mut self.timed_out,
            RunState::Failed { .. } => &mut self.failed,
            RunState::Cancelled { .. } => &mut self.cancelled,
            RunState::Skipped { .. } => &mut self.skipped,
        };
        *place += 1;
    }
}

/// The run of a job that succeeded or failed last.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Newest {
    pub(super) run: RunId,
    pub(super) ended_at: Millis,
    /// Why it failed; `None` for a success.
    pub(super) failure: Option<String>,
}

impl Newest {
    fn of(run: &Run) -> Option<Newest> {
        let (ended_at, failure) = match &run.state {
            RunState::Succeeded { ended_at, .. } => (*ended_at, None),
            RunState::Failed { ended_at, reason, .. } | RunState::TimedOut { ended_at, reason, .. } => {
                (*ended_at, Some(reason.clone()))
            }
            RunState::Pending
            | RunState::Running { .. }
            | RunState::Paused { .. }
            | RunState::Cancelled { .. }
            | RunState::Skipped { .. } => return None,
        };
        Some(Newest {
            run: run.id,
            ended_at,
            failure,
        })
    }

    fn is_older_than(&self, other: &Newest) -> bool {
        (self.ended_at, self.run) < (other.ended_at, other.run)
    }
}

/// What is known up to one commit.
#[derive(Debug, Clone)]
struct Known {
    sequence: u64,
    /// By the hour since the epoch.
    bars: BTreeMap<i64, Bar>,
    /// Runs that began before may be missing from the bars.
    counted_from: Option<Millis>,
    /// `None` for a job that was looked at and has no run that succeeded or failed.
    newest: BTreeMap<JobName, Option<Newest>>,
}

impl Known {
    fn note(&mut self, run: &Run) {
        let Some(ended_at) = run.state.ended_at() else {
            return;
        };
        self.bars.entry(hour_of(ended_at)).or_default().count(&run.state);
        let Some(newest) = Newest::of(run) else { return };
        let known = self.newest.entry(run.definition.clone()).or_default();
        if known.as_ref().is_none_or(|known| known.is_older_than(&newest)) {
            *known = Some(newest);
        }
    }
}

/// The hour of an instant, counted from the epoch.
pub(super) fn hour_of(at: Millis) -> i64 {
    at.0.div_euclid(HOUR_MS)
}

/// What one look found.
#[derive(Debug)]
pub(super) struct Seen {
    /// The last bars, oldest first, each with the hour it begins with.
    pub(super) hours: Vec<(Millis, Bar)>,
    /// Only runs that began since then are counted.
    pub(super) counted_from: Option<Millis>,
    /// How each of the jobs that were asked for ended last.
    pub(super) newest: BTreeMap<JobName, Newest>,
}

/// What is known of past ends; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Endings {
    known: Arc<Mutex<Option<Known>>>,
}

impl Endings {
    /// What a snapshot says; `kept` is how many ended runs of a job are kept.
    pub(super) fn look<'a>(
        &self,
        rows: &mut impl Rows,
        jobs: impl Iterator<Item = &'a JobName>,
        (now, kept): (Millis, u32),
    ) -> Result<Seen, StoreError> {
        let mut place = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // What cannot be brought along is not kept either.
        let mut known = match place.take() {
            Some(known) => brought_along(rows, known)?,
            None => None,
        };
        if known.is_none() {
            known = Some(read_anew(rows, now, kept)?);
        }
        let known = place.insert(known.expect("just read"));
        let first = hour_of(now) - HOURS + 1;
        known.bars.retain(|hour, _| *hour >= first);
        let mut newest = BTreeMap::new();
        for job in jobs {
            newest.extend(newest_of(rows, known, job)?.map(|newest| (job.clone(), newest)));
        }
        Ok(Seen {
            hours: (first..first + HOURS)
                .map(|hour| {
                    let bar = known.bars.get(&hour).copied().unwrap_or_default();
                    (Millis(hour * HOUR_MS), bar)
                })
                .collect(),
            counted_from: known.counted_from.filter(|from| from.0 > first * HOUR_MS),
            newest,
        })
    }
}

/// The number of the newest commit in a snapshot.
fn newest_commit(rows: &mut impl Rows) -> Result<u64, StoreError> {
    let number = rows.get(&META, &("sequence".to_owned(),))?;
    Ok(number.map_or(0, |Number(sequence)| sequence))
}

/// What is known, with everything that ended since; `None` if the feed does not reach back that far.
fn brought_along(rows: &mut impl Rows, mut known: Known) -> Result<Option<Known>, StoreError> {
    let newest = newest_commit(rows)?;
    // Another reader may have had a newer snapshot.
    if newest <= known.sequence {
        return Ok(Some(known));
    }
    let oldest = rows.scan(&CHANGES, &(), None, 1)?;
    let oldest = oldest.first().map_or(newest, |((sequence,), _)| *sequence);
    if known.sequence + 1 < oldest || newest - known.sequence > limits::HOURS_COMMITS_MAX {
        return Ok(None);
    }
    let most = usize::try_from(newest - known.sequence).unwrap_or(usize::MAX);
    let after = (known.sequence,);
    for each in rows.scan_each(&CHANGES, &(), Some(&after.encode()), most)? {
        let Ok((_, row)) = each.row else { return Ok(None) };
        for run in row.items.iter().filter_map(ended_run) {
            if let Some(run) = readable(rows, run)? {
                known.note(&run);
            }
        }
    }
    known.sequence = newest;
    Ok(Some(known))
}

/// The run that a change has brought to its end.
fn ended_run(item: &FeedItem) -> Option<RunId> {
    let is_end = matches!(
        item.detail.as_deref(),
        Some("succeeded" | "failed" | "cancelled" | "skipped")
    );
    if item.topic == "run.changed" && is_end {
        item.id.parse().ok()
    } else {
        None
    }
}

/// A run, unless it is gone or cannot be read.
pub(super) fn readable(rows: &mut impl Rows, id: RunId) -> Result<Option<Run>, StoreError> {
    match runs::by_id(rows, id) {
        Err(error) if error.is_row_fault() => Ok(None),
        other => other,
    }
}

/// Everything from the newest runs.
fn read_anew(rows: &mut impl Rows, now: Millis, kept: u32) -> Result<Known, StoreError> {
    let mut known = Known {
        sequence: newest_commit(rows)?,
        bars: BTreeMap::new(),
        counted_from: None,
        newest: BTreeMap::new(),
    };
    // Of each job: how many ended runs were met, and when the oldest of them began.
    let mut of_job: BTreeMap<JobName, (u32, Millis)> = BTreeMap::new();
    let mut before: Option<Vec<u8>> = None;
    let mut scanned = 0;
    while scanned < limits::HOURS_RUNS_MAX {
        let page = rows.scan_each_back(&RUNS, &(TENANT,), before.as_deref(), limits::PAGE_MAX)?;
        let is_last = page.len() < limits::PAGE_MAX;
        scanned += page.len();
        for each in page {
            before = Some(each.key);
            let Ok((_, run)) = each.row else { continue };
            if scanned >= limits::HOURS_RUNS_MAX {
                known.counted_from = Some(run.created_at);
            }
            if run.state.is_terminal() {
                let (count, oldest) = of_job
                    .entry(run.definition.clone())
                    .or_insert((0, run.created_at));
                *count += 1;
                *oldest = run.created_at;
            }
            known.note(&run);
        }
        if is_last {
            known.counted_from = None;
            break;
        }
    }
    // Of a job with as many ended runs as are kept, older ones may be gone.
    let trimmed = of_job.into_values().filter(|(count, _)| *count >= kept);
    known.counted_from = known.counted_from.max(trimmed.map(|(_, oldest)| oldest).max());
    let first = hour_of(now) - HOURS + 1;
    known.bars.retain(|hour, _| *hour >= first);
    Ok(known)
}

/// The run of a job that decided last. A run that was removed since decides nothing.
fn newest_of(rows: &mut impl Rows, known: &mut Known, job: &JobName) -> Result<Option<Newest>, StoreError> {
    if let Some(newest) = known.newest.get(job) {
        let is_kept = match newest {
            Some(newest) if newest.failure.is_some() => rows.has(&RUNS, &(TENANT, newest.run))?,
            Some(_) | None => true,
        };
        if is_kept {
            return Ok(newest.clone());
        }
    }
    let mut found: Option<Newest> = None;
    for ((_, _, id), _) in rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, NEWEST_MAX)? {
        let Some(run) = readable(rows, id)? else { continue };
        let Some(newest) = Newest::of(&run) else { continue };
        if found.as_ref().is_none_or(|found| found.is_older_than(&newest)) {
            found = Some(newest);
        }
    }
    known.newest.insert(job.clone(), found.clone());
    Ok(found)
}
