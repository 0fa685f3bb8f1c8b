//! `GET /api/overview`: what fails, what runs, what waits and for what, what comes next, and how the last day went.
//!
//! One snapshot and no writer. Every list has a bound and tells its total.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::endings::{self, Bar, Endings};
use super::error::Problem;
use super::failing::{self, FailingView};
use super::runs::Data;
use super::upcoming;
use super::waits::{self, WaitsView};
use crate::domain::workflow::run::RunState;
use crate::engine::book::Book;
use crate::store::rows::{LiveAttempt, Number};
use crate::store::tables::{JOB_RUNS, META, RUNS};
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Running attempts that are shown.
const RUNNING_MAX: usize = 10;
/// Fires that are shown.
const NEXT_FIRES_MAX: usize = 10;
/// Successful runs whose median is what a run of the job typically takes.
const TYPICAL_MAX: usize = 11;
/// With fewer nothing is typical.
const TYPICAL_MIN: usize = 3;
/// Runs among which those are looked for.
const TYPICAL_RUNS_MAX: usize = 30;

/// The home page.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct OverviewView {
    /// The clock of the daemon.
    now: String,
    /// No run was ever made.
    first_steps: bool,
    failing: FailingView,
    running: RunningView,
    waiting: WaitsView,
    /// Of jobs that are enabled and not paused, soonest first.
    next_fires: Vec<NextFireView>,
    /// 24 hours of UTC, oldest first; the last one is not over.
    hours: Vec<HourView>,
    /// When not all runs were counted: only those that began since then were, and all of these.
    hours_counted_from: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunningNow)]
struct RunningView {
    total: usize,
    /// The longest-running first, at most 10.
    runs: Vec<RunningRun>,
}

#[derive(Debug, Serialize, ToSchema)]
struct RunningRun {
    id: String,
    job: String,
    /// Of this attempt.
    started_at: String,
    attempt: u32,
    node: String,
    pool: Option<String>,
    /// The median of the newest successful runs, at most 11; absent if there are fewer than 3.
    typical_ms: Option<u64>,
    /// Somebody has asked for its end.
    ending: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = UpcomingFire)]
struct NextFireView {
    job: String,
    at: String,
    description: String,
    timezone: String,
}

/// Runs that ended in an hour.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = EndedInHour)]
struct HourView {
    from: String,
    succeeded: u32,
    failed: u32,
    timed_out: u32,
    cancelled: u32,
    skipped: u32,
}

impl HourView {
    fn of((from, bar): (Millis, Bar)) -> HourView {
        HourView {
            from: from.to_string(),
            succeeded: bar.succeeded,
            failed: bar.failed,
            timed_out: bar.timed_out,
            cancelled: bar.cancelled,
            skipped: bar.skipped,
        }
    }
}

/// The page.
pub(super) async fn show(State(app): State<App>) -> Result<Json<Data<OverviewView>>, Problem> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let kept = app.config().retention.runs;
    let endings = app.endings.clone();
    let read = move |tx: &mut crate::store::ReadTx| look(tx, &book, &endings, (now, kept));
    let data = app.engine.read(read).await?;
    Ok(Json(Data { data }))
}

fn look(
    rows: &mut impl Rows,
    book: &Book,
    endings: &Endings,
    (now, kept): (Millis, u32),
) -> Result<OverviewView, StoreError> {
    let ended = endings.look(rows, book.jobs.keys(), (now, kept))?;
    let live = runs::live(rows)?;
    Ok(OverviewView {
        now: now.to_string(),
        first_steps: nothing_ever_ran(rows)?,
        failing: failing::look(rows, book, &ended.newest, &live)?,
        running: running(rows, live)?,
        waiting: waits::look(rows, book, now)?,
        next_fires: next_fires(rows, book, now)?,
        hours: ended.hours.into_iter().map(HourView::of).collect(),
        hours_counted_from: ended.counted_from.map(|from| from.to_string()),
    })
}

/// Runs may be gone by their age; the counter of claims stays.
fn nothing_ever_ran(rows: &mut impl Rows) -> Result<bool, StoreError> {
    let claims = rows.get(&META, &("next_fence".to_owned(),))?;
    let has_runs = !rows.raw_scan(RUNS.index(), &[], None, false, 1)?.is_empty();
    Ok(!has_runs && claims.is_none_or(|Number(next)| next == 0))
}

fn running(
    rows: &mut impl Rows,
    mut live: Vec<(RunId, StepRef, LiveAttempt)>,
) -> Result<RunningView, StoreError> {
    let total = live.len();
    live.sort_by_key(|(run, _, row)| (row.claim.claimed_at, *run));
    live.truncate(RUNNING_MAX);
    let mut shown = Vec::with_capacity(live.len());
    for (run, _, row) in live {
        shown.push(RunningRun {
            id: run.to_string(),
            typical_ms: typical_ms(rows, &row.job)?,
            job: row.job.to_string(),
            started_at: row.claim.claimed_at.to_string(),
            attempt: row.number,
            node: row.claim.node.to_string(),
            pool: row.entry.map(|entry| entry.slot_pool.to_string()),
            ending: row.ending.is_some(),
        });
    }
    Ok(RunningView { total, runs: shown })
}

/// What a run of the job typically takes.
fn typical_ms(rows: &mut impl Rows, job: &JobName) -> Result<Option<u64>, StoreError> {
    let mut took = Vec::with_capacity(TYPICAL_MAX);
    for ((_, _, id), _) in rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, TYPICAL_RUNS_MAX)? {
        let state = endings::readable(rows, id)?.map(|run| run.state);
        if let Some(RunState::Succeeded { started_at, ended_at }) = state {
            took.push(ended_at.since(started_at));
        }
        if took.len() == TYPICAL_MAX {
            break;
        }
    }
    Ok(median(took))
}

/// The middle one, the lower of two; `None` of too few.
fn median(mut took: Vec<u64>) -> Option<u64> {
    if took.len() < TYPICAL_MIN {
        return None;
    }
    took.sort_unstable();
    took.get((took.len() - 1) / 2).copied()
}

fn next_fires(rows: &mut impl Rows, book: &Book, now: Millis) -> Result<Vec<NextFireView>, StoreError> {
    let paused = upcoming::paused(rows, now)?;
    let mut fires: Vec<(i64, &JobName)> = Vec::new();
    for (name, job) in &book.jobs {
        let next = upcoming::next_of(job, paused.get(name), now);
        fires.extend(next.map(|at| (at.0, name)));
    }
    fires.sort_unstable();
    fires.truncate(NEXT_FIRES_MAX);
    let view = |(at, name): (i64, &JobName)| {
        let schedule = book.jobs[name].schedule.as_ref()?;
        Some(NextFireView {
            job: name.to_string(),
            at: Millis(at).to_string(),
            description: schedule.describe(),
            timezone: schedule.timezone().to_owned(),
        })
    };
    Ok(fires.into_iter().filter_map(view).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_one_of_them() {
        assert_eq!(median(vec![5, 1]), None);
        assert_eq!(median(vec![9, 1, 5]), Some(5));
        assert_eq!(median(vec![9, 1, 5, 7]), Some(5));
    }
}
