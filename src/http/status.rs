//! `GET /api/status`: the state of the daemon on one page, with a sentence that says whether all is well.

use std::collections::BTreeSet;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, VERSION};
use super::config::ConfigurationView;
use super::error::Problem;
use super::runs::Data;
use super::{dead_letters, health, kept_bundles, nodes};
use crate::domain::disk::Lack;
use crate::domain::report::ReportTarget;
use crate::domain::workflow::run::RunState;
use crate::engine::book::Book;
use crate::engine::changes::drift::{Drift, Other};
use crate::engine::changes::{head, late};
use crate::store::rows::{BreachRow, NodeRecord};
use crate::store::tables::{DEAD_STEPS, NODE_DRAINS, READY_STEPS, RUNS, TASKS};
use crate::store::{Rows, StoreError, StoreStats, effects, entries, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::{JobName, NodeName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
const DAY_MS: u64 = 24 * 3_600_000;
/// Runs looked at for failures of the last day; beyond it the count is a lower bound.
const SCANNED_MAX: usize = 5_000;
const NEXT_FIRES_MAX: usize = 10;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StatusView {
    version: &'static str,
    node: String,
    started_at: String,
    uptime_seconds: u64,
    /// The last part of its path only.
    state_directory: String,
    verdict: String,
    ready: bool,
    draining: bool,
    counts: Counts,
    /// Steps with which daemons died, until somebody has looked after their dead letters.
    poisoned_runs: Vec<PoisonedView>,
    late_jobs: Vec<LateJob>,
    /// Reports and steps that were given up, until somebody has looked after them.
    dead_letters: u64,
    pools: Vec<PoolSummary>,
    nodes: Vec<NodeSummary>,
    next_fires: Vec<FireView>,
    configuration: ConfigurationView,
    /// Where this daemon's configuration is not the one that was loaded last.
    drift: DriftView,
    /// Files of bundles that the configuration names and that cannot be applied.
    failing_bundles: Vec<String>,
    store: StoreView,
    disk: DiskView,
    retention: RetentionView,
}

/// The room on the file system of the state directory.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DiskRoom)]
#[allow(
    clippy::struct_field_names,
    reason = "names on the wire, which end in their unit"
)]
struct DiskView {
    /// Absent until it was looked at.
    free_bytes: Option<u64>,
    total_bytes: Option<u64>,
    /// With less free the daemon is not ready, and no new run begins.
    low_bytes: u64,
    /// `bytes` or `files`: there is so little left of them that no new run begins.
    lack: Option<&'static str>,
    /// Of all logs; counted now and then, absent until then and when they are too many to count.
    logs_bytes: Option<u64>,
}

impl DiskView {
    fn of(app: &App) -> DiskView {
        let space = app.health.space();
        DiskView {
            free_bytes: space.map(|space| space.free_bytes),
            total_bytes: space.map(|space| space.total_bytes),
            low_bytes: app.config().state.low_disk_bytes,
            lack: app.engine.disk.lack().map(|lack| match lack {
                Lack::Bytes => "bytes",
                Lack::Files => "files",
            }),
            logs_bytes: app.engine.metrics.logs_bytes(),
        }
    }
}

/// How long what has ended is kept.
#[derive(Debug, Serialize, ToSchema)]
struct RetentionView {
    /// Ended runs of each job.
    runs: u32,
    age_ms: u64,
    logs_age_ms: u64,
    /// Of all logs; absent without a limit.
    logs_bytes_max: Option<u64>,
}

impl RetentionView {
    fn of(app: &App) -> RetentionView {
        let config = app.config();
        let (kept, logs) = (&config.retention, &config.retention.logs);
        RetentionView {
            runs: kept.runs,
            age_ms: kept.age_ms,
            logs_age_ms: logs.age_ms,
            logs_bytes_max: logs.bytes,
        }
    }
}

/// What another daemon has loaded in another way. This one neither fires nor claims such jobs for all, and takes nothing
/// into such slot pools.
#[derive(Debug, Serialize, ToSchema)]
struct DriftView {
    pools: Vec<DriftItem>,
    jobs: Vec<DriftItem>,
}

/// A slot pool or a job.
#[derive(Debug, Serialize, ToSchema)]
struct DriftItem {
    name: String,
    /// Whose load it was.
    node: String,
    /// When.
    at: Option<String>,
}

impl DriftView {
    fn of(drift: &Drift) -> DriftView {
        let item = |name: String, other: &Other| DriftItem {
            name,
            node: other.node.clone(),
            at: other.at.map(|at| at.to_string()),
        };
        let pools = drift.slot_pools.iter();
        let jobs = drift.jobs.iter();
        DriftView {
            pools: pools.map(|(name, other)| item(name.to_string(), other)).collect(),
            jobs: jobs.map(|(name, other)| item(name.to_string(), other)).collect(),
        }
    }

    /// One sentence, if there is anything to say.
    fn complaint(&self) -> Option<String> {
        let first = self.pools.first().or(self.jobs.first())?;
        let count = |number: usize, thing: &str| match number {
            0 => None,
            1 => Some(format!("1 {thing}")),
            _ => Some(format!("{number} {thing}s")),
        };
        let parts = [count(self.pools.len(), "pool"), count(self.jobs.len(), "job")];
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        Some(format!(
            "Of {} the configuration differs from node {}, which loaded last: reload one of the two.",
            parts.join(" and "),
            first.node
        ))
    }
}

#[derive(Debug, Serialize, ToSchema)]
struct NodeSummary {
    name: String,
    /// `live`; `draining` and `drained` when it begins nothing more and still has work or has none; `gone` when nobody holds
    /// its lock.
    state: &'static str,
    last_seen: String,
}

#[derive(Debug, Clone, Copy, Default, Serialize, ToSchema)]
struct Counts {
    running: usize,
    waiting: u64,
    failed_last_24h: usize,
    /// The scan hit its limit: there may be more.
    failed_is_lower_bound: bool,
}

#[derive(Debug, Serialize, ToSchema)]
struct PoisonedView {
    run_id: String,
    job: String,
    step: String,
    at: String,
}

/// A job and the first of its passed limits.
#[derive(Debug, Serialize, ToSchema)]
struct LateJob {
    job: String,
    since: String,
    reason: String,
}

/// `slots` and what follows are absent when the slot pool cannot be read.
#[derive(Debug, Serialize, ToSchema)]
struct PoolSummary {
    name: String,
    readable: bool,
    #[serde(flatten)]
    #[schema(value_type = PoolNumbers)]
    numbers: Option<PoolNumbers>,
}

#[derive(Debug, Serialize, ToSchema)]
struct PoolNumbers {
    #[schema(required = false)]
    slots: u32,
    #[schema(required = false)]
    used: u32,
    #[schema(required = false)]
    queued: u64,
    #[schema(required = false)]
    paused: bool,
    #[schema(required = false)]
    draining: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NextFire)]
struct FireView {
    job: String,
    at: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct StoreView {
    /// `exclusive` while this daemon alone has the file, `shared` once another one has joined.
    mode: &'static str,
    commits: u64,
    changes: u64,
    commit_ms: u64,
    faults: u64,
    waiting: u64,
    file_bytes: u64,
}

impl From<StoreStats> for StoreView {
    fn from(stats: StoreStats) -> StoreView {
        StoreView {
            mode: stats.mode,
            commits: stats.commits,
            changes: stats.changes,
            commit_ms: stats.commit_ms,
            faults: stats.faults,
            waiting: stats.waiting,
            file_bytes: stats.file_bytes,
        }
    }
}

/// What one snapshot says.
#[derive(Debug)]
struct Seen {
    counts: Counts,
    poisoned: Vec<PoisonedView>,
    late: Vec<LateJob>,
    dead_letters: u64,
    pools: Vec<PoolSummary>,
    nodes: Vec<(NodeName, NodeRecord)>,
    /// Those that begin nothing more, and those that have work.
    drained: BTreeSet<NodeName>,
    busy: BTreeSet<NodeName>,
}

/// The page.
pub(super) async fn show(State(app): State<App>) -> Result<Json<Data<StatusView>>, Problem> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let for_read = book.clone();
    let seen = app.engine.read(move |tx| look(tx, &for_read, now)).await?;
    let checks = health::checks(&app);
    let root = app.engine.directory.root().file_name();
    let configuration = ConfigurationView::of(&app);
    let drift = DriftView::of(&app.engine.drift.now());
    let nodes = seen.nodes.iter().map(|(name, record)| NodeSummary {
        name: name.to_string(),
        state: {
            let (is_drained, is_busy) = (seen.drained.contains(name), seen.busy.contains(name));
            nodes::state_of(&app.engine, name, is_drained, is_busy)
        },
        last_seen: record.last_seen.to_string(),
    });
    let data = StatusView {
        nodes: nodes.collect(),
        version: VERSION,
        node: app.engine.node.to_string(),
        started_at: app.started_at.to_string(),
        uptime_seconds: now.since(app.started_at) / 1_000,
        state_directory: root
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default(),
        verdict: verdict(
            &checks,
            &seen,
            configuration
                .complaint()
                .or(drift.complaint())
                .or_else(|| kept_bundles::complaint(&app)),
        ),
        ready: checks.iter().all(|check| check.ok),
        draining: app.engine.is_stopping(),
        counts: seen.counts,
        poisoned_runs: seen.poisoned,
        late_jobs: seen.late,
        dead_letters: seen.dead_letters,
        pools: seen.pools,
        next_fires: next_fires(&book, now),
        configuration,
        drift,
        failing_bundles: kept_bundles::failing(&app),
        store: app.engine.store.stats().into(),
        disk: DiskView::of(&app),
        retention: RetentionView::of(&app),
    };
    Ok(Json(Data { data }))
}

/// The verdict alone. A store that does not answer has one too.
pub(super) async fn verdict_now(app: &App) -> String {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    match app.engine.read(move |tx| look(tx, &book, now)).await {
        Ok(seen) => verdict(
            &health::checks(app),
            &seen,
            ConfigurationView::of(app)
                .complaint()
                .or(DriftView::of(&app.engine.drift.now()).complaint())
                .or_else(|| kept_bundles::complaint(app)),
        ),
        Err(_) => "Not ready: the store does not answer.".to_owned(),
    }
}

fn look(rows: &mut impl Rows, book: &Book, now: Millis) -> Result<Seen, StoreError> {
    let mut pools = Vec::with_capacity(book.slot_pools.len());
    let mut waiting = 0;
    for table in [READY_STEPS.index(), TASKS.index()] {
        waiting += rows.raw_scan(table, &[], None, false, usize::MAX)?.len() as u64;
    }
    for name in book.slot_pools.keys() {
        let numbers = match pool_numbers(rows, book, name, now) {
            Ok(numbers) => Some(numbers),
            Err(error) if error.is_row_fault() => None,
            Err(error) => return Err(error),
        };
        waiting += numbers.as_ref().map_or(0, |numbers| numbers.queued);
        pools.push(PoolSummary {
            name: name.to_string(),
            readable: numbers.is_some(),
            numbers,
        });
    }
    let (failed_last_24h, failed_is_lower_bound) = failed_since(rows, now)?;
    let live = runs::live(rows)?;
    let running = live.len();
    let poisoned = rows.scan_each_back(&DEAD_STEPS, &(TENANT,), None, limits::PAGE_DEFAULT)?;
    let poisoned = poisoned
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|((_, run, step), row)| PoisonedView {
            run_id: run.to_string(),
            job: row.job.to_string(),
            step: step.to_string(),
            at: row.at.to_string(),
        });
    let counts = Counts {
        running,
        waiting,
        failed_last_24h,
        failed_is_lower_bound,
    };
    let mut dead_letters = 0;
    for target in ReportTarget::ALL {
        dead_letters += effects::dead_count(rows, target)?;
    }
    dead_letters += dead_letters::count_steps(rows)?;
    let late = late::all_stored(rows)?;
    let drained = rows.scan_each(&NODE_DRAINS, &(), None, usize::MAX)?;
    Ok(Seen {
        late: late.iter().filter_map(late_job).collect(),
        dead_letters,
        counts,
        poisoned: poisoned.collect(),
        pools,
        nodes: nodes::all(rows)?.into_iter().collect(),
        drained: drained
            .into_iter()
            .filter_map(|each| Some(each.row.ok()?.0.0))
            .collect(),
        busy: live.into_iter().map(|(_, _, live)| live.claim.node).collect(),
    })
}

fn late_job((job, breaches): (&JobName, &Vec<BreachRow>)) -> Option<LateJob> {
    let first = breaches.iter().min_by_key(|row| row.breach.since())?;
    Some(LateJob {
        job: job.to_string(),
        since: first.breach.since().to_string(),
        reason: first.breach.reason.clone(),
    })
}

fn pool_numbers(
    rows: &mut impl Rows,
    book: &Book,
    name: &crate::words::names::SlotPoolName,
    now: Millis,
) -> Result<PoolNumbers, StoreError> {
    let state = head::slot_pool(rows, name)?;
    let slots = head::stored_slots(state.as_ref(), book, name);
    let paused = state
        .as_ref()
        .and_then(|state| state.paused.as_ref())
        .is_some_and(|pause| pause.holds_at(now));
    Ok(PoolNumbers {
        slots,
        used: entries::used_slots(rows, name)?,
        queued: entries::waiting_count(rows, name)?,
        paused,
        draining: book
            .slot_pools
            .get(name)
            .is_some_and(|configured| configured.slots != slots),
    })
}

/// Newest first, until a run began more than a day ago.
fn failed_since(rows: &mut impl Rows, now: Millis) -> Result<(usize, bool), StoreError> {
    let mut before: Option<Vec<u8>> = None;
    let (mut failed, mut scanned) = (0, 0);
    while scanned < SCANNED_MAX {
        let page = rows.scan_each_back(&RUNS, &(TENANT,), before.as_deref(), limits::PAGE_MAX)?;
        let is_last = page.len() < limits::PAGE_MAX;
        for each in page {
            scanned += 1;
            let Ok((_, run)) = each.row else { continue };
            if now.since(run.created_at) > DAY_MS {
                return Ok((failed, false));
            }
            failed += usize::from(matches!(run.state, RunState::Failed { .. }));
            before = Some(each.key);
        }
        if is_last {
            return Ok((failed, false));
        }
    }
    Ok((failed, true))
}

fn next_fires(book: &Book, now: Millis) -> Vec<FireView> {
    let enabled = book.jobs.iter().filter(|(_, job)| job.definition.enabled);
    let mut fires: Vec<(i64, &str)> = enabled
        .filter_map(|(name, job)| Some((job.schedule.as_ref()?.next_after(now.0)?, name.as_str())))
        .collect();
    fires.sort_unstable();
    fires.truncate(NEXT_FIRES_MAX);
    fires
        .into_iter()
        .map(|(at, job)| FireView {
            job: job.to_owned(),
            at: Millis(at).to_string(),
        })
        .collect()
}

fn verdict(checks: &[health::Check], seen: &Seen, complaint: Option<String>) -> String {
    let bad: Vec<&str> = checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name)
        .collect();
    let unreadable: Vec<&str> = seen
        .pools
        .iter()
        .filter(|pool| !pool.readable)
        .map(|pool| pool.name.as_str())
        .collect();
    let counts = seen.counts;
    if bad == ["drain"] {
        return format!("Draining: {} still running, nothing new starts.", counts.running);
    }
    if let [only] = bad[..]
        && let Some(check) = checks
            .iter()
            .find(|check| check.name == "store" && only == "store")
    {
        return format!("Not ready: the store {}", check.detail);
    }
    if let (["disk"], Some(check)) = (&bad[..], checks.iter().find(|check| check.name == "disk")) {
        return format!("No room for new runs: {}.", check.detail);
    }
    if !bad.is_empty() {
        return format!("Not ready: {}.", bad.join(", "));
    }
    if !unreadable.is_empty() {
        return format!("Slot pools that cannot be read: {}.", unreadable.join(", "));
    }
    if let Some(complaint) = complaint {
        return complaint;
    }
    if !seen.poisoned.is_empty() {
        return format!(
            "{} steps were given up because daemons died with them: see the dead letters.",
            seen.poisoned.len()
        );
    }
    match seen.late.as_slice() {
        [] => {}
        [one] => return format!("Job {} is late: {}.", one.job, one.reason),
        [first, ..] => return format!("{} jobs are late: {} and others.", seen.late.len(), first.job),
    }
    let work = format!("{} running, {} waiting", counts.running, counts.waiting);
    match counts.failed_last_24h {
        0 => format!("All is well: {work}, no failed run in 24 hours."),
        1 => format!("1 run failed in the last 24 hours; {work}."),
        failed => format!("{failed} runs failed in the last 24 hours; {work}."),
    }
}
