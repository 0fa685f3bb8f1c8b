//! `GET /metrics`: OpenMetrics text. Counters live in the engine; gauges are computed from one snapshot at each scrape, so
//! that they cannot differ from the tables.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use prometheus_client::encoding::text::encode;
use prometheus_client::encoding::{EncodeLabelSet, EncodeMetric, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};

use super::app::{App, VERSION};
use super::error::Problem;
use super::routing_metrics::{self, PoolSeen};
use super::{dead_letters, health, nodes};
use crate::domain::report::ReportTarget;
use crate::engine::backups;
use crate::engine::book::Book;
use crate::engine::changes::{head, late};
use crate::engine::metrics::{
    JobLabel, Metrics, ReasonLabel, ResultLabel, SlotPoolLabel, SlotPoolStateLabel, WorkflowOutcome,
    in_seconds,
};
use crate::os;
use crate::store::tables::{ACTIVE_RUNS, JOB_MARKS, SLOT_WAITING};
use crate::store::{COMMIT_BOUNDS_MS, Counted, Rows, StoreError, StoreStats, effects, entries, runs};
use crate::words::ids::TenantId;
use crate::words::names::SlotPoolName;
use crate::words::time::Millis;

const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TENANT: TenantId = TenantId::DEFAULT;

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Build {
    version: &'static str,
    commit: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct CheckLabel {
    check: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabel {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct KindLabel {
    kind: &'static str,
}

/// Commits by their time, as the store counts them.
#[derive(Debug)]
struct Commits(StoreStats);

impl EncodeMetric for Commits {
    fn encode(&self, mut encoder: MetricEncoder<'_>) -> Result<(), std::fmt::Error> {
        let bounds = COMMIT_BOUNDS_MS
            .iter()
            .map(|bound| in_seconds(*bound))
            .chain([f64::MAX]);
        let classes: Vec<(f64, u64)> = bounds.zip(self.0.commits_by_time).collect();
        encoder.encode_histogram::<NoLabelSet>(in_seconds(self.0.commit_ms), self.0.commits, &classes, None)
    }

    fn metric_type(&self) -> MetricType {
        MetricType::Histogram
    }
}

type Seconds = Gauge<f64, AtomicU64>;

/// What a snapshot says, by name.
#[derive(Debug, Default)]
struct Seen {
    nodes: BTreeMap<&'static str, usize>,
    jobs_running: BTreeMap<String, usize>,
    active: usize,
    slot_pools: Vec<(SlotPoolName, SlotNumbers)>,
    /// Newest success of each job in seconds.
    successes: BTreeMap<String, i64>,
    /// Jobs with limits, and whether one is passed.
    overdue: BTreeMap<String, bool>,
    last_backup: Option<Millis>,
    /// By kind: reports that wait, and dead letters.
    effects: Vec<(&'static str, u64, u64)>,
    /// Dead letters that are steps.
    dead_steps: u64,
    recipient_pools: Vec<PoolSeen>,
}

#[derive(Debug, Default)]
struct SlotNumbers {
    configured: u32,
    stored: u32,
    used: u32,
    queued: u64,
    paused: bool,
    oldest_wait_ms: u64,
}

/// The scrape. A store that cannot be read takes its own rows away and nothing else.
pub(super) async fn scrape(State(app): State<App>) -> Result<Response, Problem> {
    let (book, now, for_read) = (app.engine.book(), app.engine.now().wall, app.clone());
    let seen = app
        .engine
        .read(move |tx| look(tx, &for_read, &book, now))
        .await
        .ok();
    let mut registry = Registry::default();
    register_process(&mut registry, &app);
    register_requests(&mut registry, &app.engine.metrics);
    register_counters(&mut registry, &app.engine.metrics);
    register_slot_counters(&mut registry, &app.engine.metrics);
    register_ends(&mut registry, &app.engine.store.ends(), &app.engine.metrics);
    routing_metrics::register_counters(&mut registry, &app.engine.metrics.routing);
    if let Some(seen) = seen {
        routing_metrics::register_pools(&mut registry, &app.engine.metrics.routing, &seen.recipient_pools);
        register_work(&mut registry, &app.engine.metrics, &seen);
        register_slots(&mut registry, &app.engine.metrics, &seen);
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|_| {
        Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "the metrics cannot be written",
        )
    })?;
    Ok(([(header::CONTENT_TYPE, CONTENT_TYPE)], text).into_response())
}

fn look(rows: &mut impl Rows, app: &App, book: &Book, now: Millis) -> Result<Seen, StoreError> {
    let mut seen = Seen::default();
    for (name, _) in nodes::all(rows)? {
        let state = if nodes::is_live(&app.engine, &name) {
            "live"
        } else {
            "gone"
        };
        *seen.nodes.entry(state).or_default() += 1;
    }
    for (_, _, live) in runs::live(rows)? {
        *seen.jobs_running.entry(live.job.to_string()).or_default() += 1;
    }
    seen.active = rows
        .raw_scan(ACTIVE_RUNS.index(), &[], None, false, usize::MAX)?
        .len();
    look_at_jobs(rows, book, &mut seen)?;
    seen.last_backup = backups::last_success(rows)?;
    for target in ReportTarget::ALL {
        let waiting = effects::waiting_count(rows, target, None)?;
        let dead = effects::dead_count(rows, target)?;
        seen.effects.push((target.word(), waiting, dead));
    }
    seen.dead_steps = dead_letters::count_steps(rows)?;
    seen.recipient_pools = routing_metrics::look(rows)?;
    for name in book.slot_pools.keys() {
        match slot_numbers(rows, book, name, now) {
            Ok(numbers) => seen.slot_pools.push((name.clone(), numbers)),
            Err(error) if error.is_row_fault() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(seen)
}

fn look_at_jobs(rows: &mut impl Rows, book: &Book, seen: &mut Seen) -> Result<(), StoreError> {
    let late = late::all_stored(rows)?;
    for each in rows.scan_each(&JOB_MARKS, &(TENANT,), None, usize::MAX)? {
        let Ok(((_, job), mark)) = each.row else { continue };
        if let Some(at) = mark.last_success {
            seen.successes.insert(job.to_string(), at.0.div_euclid(1_000));
        }
    }
    for (name, job) in &book.jobs {
        if !job.definition.sla.is_empty() {
            seen.overdue.insert(name.to_string(), late.contains_key(name));
        }
    }
    Ok(())
}

fn slot_numbers(
    rows: &mut impl Rows,
    book: &Book,
    name: &SlotPoolName,
    now: Millis,
) -> Result<SlotNumbers, StoreError> {
    let state = head::slot_pool(rows, name)?;
    let waiting = rows.scan(&SLOT_WAITING, &(TENANT, name.clone()), None, usize::MAX)?;
    let oldest = waiting.iter().map(|((_, _, _, at, _), _)| *at).min();
    Ok(SlotNumbers {
        configured: book.slot_pools.get(name).map_or(0, |configured| configured.slots),
        stored: head::stored_slots(state.as_ref(), book, name),
        used: entries::used_slots(rows, name)?,
        queued: waiting.len() as u64,
        paused: state
            .and_then(|state| state.paused)
            .is_some_and(|pause| pause.holds_at(now)),
        oldest_wait_ms: oldest.map_or(0, |oldest| now.since(oldest)),
    })
}

/// A gauge with one value.
fn gauge(registry: &mut Registry, name: &str, help: &str, value: u64) {
    let gauge: Gauge = Gauge::default();
    gauge.set(value.try_into().unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}

fn register_process(registry: &mut Registry, app: &App) {
    let build = Family::<Build, Gauge>::default();
    build
        .get_or_create(&Build {
            version: VERSION,
            commit: health::commit(),
        })
        .set(1);
    registry.register("ductor_build_info", "Always 1", build);
    let start: Seconds = Gauge::default();
    start.set(in_seconds(app.started_at.since(Millis(0))));
    registry.register("ductor_start_time_seconds", "Process start", start);
    let ready = Family::<CheckLabel, Gauge>::default();
    for check in health::checks(app) {
        ready
            .get_or_create(&CheckLabel { check: check.name })
            .set(i64::from(check.ok));
    }
    registry.register("ductor_ready", "1 good", ready);
    gauge(
        registry,
        "ductor_draining",
        "1 while draining",
        u64::from(app.engine.is_stopping()),
    );
    let rejected = app.reloader.standing().rejected.is_some();
    gauge(
        registry,
        "ductor_config_reload_failed",
        "1 after a rejected reload",
        u64::from(rejected),
    );
    let streams = app.streams.load(Ordering::Relaxed) as u64;
    gauge(registry, "ductor_stream_clients", "Event streams", streams);
    let stats = app.engine.store.stats();
    gauge(
        registry,
        "ductor_store_file_bytes",
        "Bytes of the store file",
        stats.file_bytes,
    );
    row(
        registry,
        "ductor_blob_bytes_swept",
        "Bytes of large values that were removed because no run has them any more",
        &app.engine.metrics.blob_bytes_swept,
    );
    registry.register(
        "ductor_store_commit_seconds",
        "Commits with their sync to disk",
        Commits(stats),
    );
    let errors = Family::<KindLabel, Counter>::default();
    errors
        .get_or_create(&KindLabel { kind: "file" })
        .inc_by(stats.faults);
    registry.register("ductor_store_errors", "Faults of the store file", errors);
    register_machine(registry, app);
}

/// What the machine has left, and what the daemon takes of it.
fn register_machine(registry: &mut Registry, app: &App) {
    if let Some(free) = app.health.free_bytes() {
        gauge(
            registry,
            "ductor_state_disk_free_bytes",
            "Free bytes under the state directory",
            free,
        );
    }
    if let Ok(resident) = os::proc::own_rss_bytes() {
        gauge(
            registry,
            "ductor_process_resident_bytes",
            "Resident memory of the daemon",
            resident,
        );
    }
}

/// A counter or histogram of the engine. The library appends `_total` to counters by itself.
fn row<M: Metric + Clone>(registry: &mut Registry, name: &str, help: &str, metric: &M) {
    registry.register(name, help, metric.clone());
}

fn register_requests(to: &mut Registry, metrics: &Metrics) {
    for reason in ["host", "origin", "body"] {
        let label = ReasonLabel {
            reason: reason.to_owned(),
        };
        drop(metrics.http_rejected.get_or_create(&label));
    }
    for result in ["applied", "rejected", "failed"] {
        let label = ResultLabel {
            result: result.to_owned(),
        };
        drop(metrics.config_reloads.get_or_create(&label));
    }
    let m = metrics;
    row(
        to,
        "ductor_config_reloads",
        "Reloads of the configuration",
        &m.config_reloads,
    );
    row(
        to,
        "ductor_http_requests",
        "Requests by route pattern",
        &m.http_requests,
    );
    row(
        to,
        "ductor_http_request_seconds",
        "Time to the answer",
        &m.http_request_seconds,
    );
    row(
        to,
        "ductor_http_rejected",
        "Turned away before routing",
        &m.http_rejected,
    );
}

/// Ends are counted by the transactions that wrote them.
fn register_ends(to: &mut Registry, ends: &BTreeMap<Counted, u64>, m: &Metrics) {
    let runs: Family<WorkflowOutcome, Counter> = Family::default();
    let entries: Family<SlotPoolStateLabel, Counter> = Family::default();
    for (end, count) in ends {
        match end {
            Counted::RunEnded { workflow, state } => {
                let label = WorkflowOutcome {
                    workflow: m.job_name(workflow),
                    outcome: (*state).to_owned(),
                };
                runs.get_or_create(&label).inc_by(*count);
            }
            Counted::EntryClosed { slot_pool, state } => {
                let label = SlotPoolStateLabel {
                    slot_pool: m.slot_pool_name(slot_pool),
                    state: (*state).to_owned(),
                };
                entries.get_or_create(&label).inc_by(*count);
            }
        }
    }
    row(to, "ductor_runs_finished", "Runs that ended", &runs);
    row(to, "ductor_slot_entries_ended", "Entries that closed", &entries);
}

fn register_counters(to: &mut Registry, m: &Metrics) {
    row(
        to,
        "ductor_runs_started",
        "Runs that began to exist",
        &m.runs_started,
    );
    row(to, "ductor_run_seconds", "Start to end of a run", &m.run_seconds);
    row(to, "ductor_attempts", "Attempts that ended", &m.attempts);
    row(
        to,
        "ductor_step_wait_seconds",
        "Runnable to started",
        &m.step_wait_seconds,
    );
    row(
        to,
        "ductor_job_cpu_seconds",
        "CPU of ended commands",
        &m.job_cpu_seconds,
    );
    row(
        to,
        "ductor_job_memory_peak_bytes",
        "The most memory of one process of the last run, as far as it was seen",
        &m.job_memory_peak_bytes,
    );
    row(
        to,
        "ductor_effects_delivered",
        "Tries to tell the outside something",
        &m.deliveries,
    );
    row(to, "ductor_fires", "Due moments by what became of them", &m.fires);
    row(
        to,
        "ductor_fire_lag_seconds",
        "Due to recorded",
        &m.fire_lag_seconds,
    );
}

fn register_slot_counters(to: &mut Registry, m: &Metrics) {
    row(
        to,
        "ductor_slot_wait_seconds",
        "Enqueue to admission",
        &m.slot_wait_seconds,
    );
    row(
        to,
        "ductor_slot_held_seconds",
        "Slot seconds used",
        &m.slot_held_seconds,
    );
    row(to, "ductor_slot_refusals", "Refused enqueues", &m.slot_refusals);
    row(to, "ductor_claims_lapsed", "Leases lost", &m.claims_lapsed);
    row(
        to,
        "ductor_lease_renewals",
        "Renewals of leases",
        &m.lease_renewals,
    );
    row(
        to,
        "ductor_slot_readmitted",
        "Entries put back after a death or a lost lease",
        &m.slot_readmitted,
    );
    row(
        to,
        "ductor_slot_renewal_failures",
        "Renewals that failed",
        &m.slot_renewal_failures,
    );
}

fn register_work(registry: &mut Registry, metrics: &Metrics, seen: &Seen) {
    if let Some(at) = seen.last_backup {
        let backup: Seconds = Gauge::default();
        backup.set(in_seconds(at.since(Millis(0))));
        let name = "ductor_backup_last_success_timestamp_seconds";
        registry.register(name, "End of the newest backup that worked", backup);
    }
    let nodes = Family::<StateLabel, Gauge>::default();
    for state in ["live", "gone"] {
        let count = seen.nodes.get(state).copied().unwrap_or_default();
        nodes.get_or_create(&StateLabel { state }).set(wide(count as u64));
    }
    registry.register("ductor_nodes", "Daemons seen in this state directory", nodes);
    let running: usize = seen.jobs_running.values().sum();
    let active = Family::<StateLabel, Gauge>::default();
    active
        .get_or_create(&StateLabel { state: "running" })
        .set(wide(running as u64));
    let pending = seen.active.saturating_sub(running) as u64;
    active
        .get_or_create(&StateLabel { state: "pending" })
        .set(wide(pending));
    registry.register("ductor_runs_active", "Runs that have not ended", active);
    let jobs = Family::<JobLabel, Gauge>::default();
    for (job, count) in &seen.jobs_running {
        jobs.get_or_create(&JobLabel {
            job: metrics.job_name(job),
        })
        .inc_by(wide(*count as u64));
    }
    registry.register("ductor_jobs_running", "Attempts of a job that run now", jobs);
    register_told(registry, metrics, seen);
}

/// What people are told of, or want to be told of.
fn register_told(registry: &mut Registry, metrics: &Metrics, seen: &Seen) {
    let label = |job: &String| JobLabel {
        job: metrics.job_name(job),
    };
    let successes = Family::<JobLabel, Gauge>::default();
    for (job, at) in &seen.successes {
        // Jobs beyond the limit of labels share one: it shows the newest.
        let gauge = successes.get_or_create(&label(job));
        gauge.set(gauge.get().max(*at));
    }
    registry.register(
        "ductor_job_last_success_timestamp_seconds",
        "Last success of a job",
        successes,
    );
    let overdue = Family::<JobLabel, Gauge>::default();
    for (job, is_late) in &seen.overdue {
        let gauge = overdue.get_or_create(&label(job));
        gauge.set(gauge.get().max(i64::from(*is_late)));
    }
    registry.register("ductor_schedule_overdue", "1 while late", overdue);
    let (waiting, dead) = (
        Family::<KindLabel, Gauge>::default(),
        Family::<KindLabel, Gauge>::default(),
    );
    for (kind, waiting_count, dead_count) in &seen.effects {
        waiting
            .get_or_create(&KindLabel { kind })
            .set(wide(*waiting_count));
        dead.get_or_create(&KindLabel { kind }).set(wide(*dead_count));
    }
    dead.get_or_create(&KindLabel { kind: "step" })
        .set(wide(seen.dead_steps));
    registry.register("ductor_effects_pending", "Reports that wait", waiting);
    registry.register(
        "ductor_dead_letters",
        "Reports and steps that were given up",
        dead,
    );
}

fn register_slots(registry: &mut Registry, metrics: &Metrics, seen: &Seen) {
    let mut rows = |name: &str, help: &str, value: &dyn Fn(&SlotNumbers) -> u64| {
        let family = Family::<SlotPoolLabel, Gauge>::default();
        for (slot_pool, numbers) in &seen.slot_pools {
            let label = SlotPoolLabel {
                slot_pool: metrics.slot_pool_name(slot_pool.as_str()),
            };
            family.get_or_create(&label).inc_by(wide(value(numbers)));
        }
        registry.register(name, help, family);
    };
    rows("ductor_slots_configured", "Slots as configured", &|pool| {
        u64::from(pool.configured)
    });
    rows(
        "ductor_slots_stored",
        "Slots in force; differs during a drain",
        &|pool| u64::from(pool.stored),
    );
    rows("ductor_slots_used", "Slots held by claims", &|pool| {
        u64::from(pool.used)
    });
    rows("ductor_slot_entries_queued", "Entries that wait", &|pool| {
        pool.queued
    });
    rows("ductor_slot_paused", "1 while paused", &|pool| {
        u64::from(pool.paused)
    });
    let oldest = Family::<SlotPoolLabel, Seconds>::default();
    for (slot_pool, numbers) in &seen.slot_pools {
        let label = SlotPoolLabel {
            slot_pool: metrics.slot_pool_name(slot_pool.as_str()),
        };
        oldest
            .get_or_create(&label)
            .set(in_seconds(numbers.oldest_wait_ms));
    }
    registry.register(
        "ductor_slot_oldest_wait_seconds",
        "Wait of the oldest queued entry",
        oldest,
    );
}

fn wide(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}
