//! `/jobs`: what each job is, when it fires next, what it does now; and ending all its instances.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;
use utoipa::openapi::schema::{ArrayBuilder, ObjectBuilder, OneOfBuilder, Schema, Type};

use super::app::App;
use super::error::Problem;
use super::input;
use super::once::{self, Once};
use super::pauses::PauseView;
use super::version;
use crate::domain::workflow::definition::{CommandLine, ConcurrencyPolicy};
use crate::domain::workflow::run::Run;
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::cancel::JobStopped;
use crate::engine::changes::{head, late};
use crate::engine::desk;
use crate::store::rows::BreachRow;
use crate::store::tables::{JOB_RUNS, RUNS};
use crate::store::{Rows, StoreError, entries, runs};
use crate::words::ids::TenantId;
use crate::words::names::{JobName, SlotPoolName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Due moments that are shown of each job.
const NEXT_MAX: usize = 5;

/// A job that the configuration knows.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub(super) name: JobName,
    pub(super) job: BookJob,
}

impl Known {
    /// Where it gets its slots.
    pub(super) fn slot_pool(&self) -> Option<&SlotPoolName> {
        self.job.definition.job_demand().map(|demand| &demand.slot_pool)
    }
}

/// The job of that name.
pub(super) fn find(book: &Book, name: &str) -> Result<Known, Problem> {
    let known = JobName::new(name).ok().and_then(|name| {
        let job = book.jobs.get(&name)?.clone();
        Some(Known { name, job })
    });
    known.ok_or_else(|| not_found(name))
}

pub(super) fn not_found(name: &str) -> Problem {
    Problem::not_found(format!("job '{name}' not found"))
}

/// A job on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct JobView {
    #[schema(value_type = String)]
    name: JobName,
    enabled: bool,
    /// A text for the shell, or a list of program and arguments.
    /// Nothing for a dag, whose tasks have one each.
    #[schema(schema_with = command_shape)]
    command: Option<CommandLine>,
    concurrency_policy: &'static str,
    schedule: Option<ScheduleView>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pool: Option<DemandView>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    queue_unavailable: bool,
    paused: Option<PauseView>,
    running: usize,
    last_run: Option<LastRun>,
    /// Limits of its `sla` that are passed now.
    late: Vec<LateView>,
}

/// A passed limit.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LateView {
    check: &'static str,
    since: String,
    reason: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    run_id: Option<String>,
}

impl LateView {
    fn of(row: &BreachRow) -> LateView {
        LateView {
            check: row.breach.check.word(),
            since: row.breach.since().to_string(),
            reason: row.breach.reason.clone(),
            run_id: row.breach.run.map(|run| run.to_string()),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobSchedule)]
struct ScheduleView {
    text: String,
    timezone: String,
    description: String,
    next: Vec<String>,
}

fn command_shape() -> Schema {
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let list = ArrayBuilder::new().items(text());
    OneOfBuilder::new().item(text()).item(list).build().into()
}

/// What the job asks of its slot pool, and how many of its own entries wait there.
#[derive(Debug, Serialize, ToSchema)]
struct DemandView {
    #[schema(value_type = String)]
    name: SlotPoolName,
    slots: u32,
    priority: i32,
    queued: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct LastRun {
    id: String,
    state: &'static str,
    started_at: Option<String>,
    ended_at: Option<String>,
    reason: Option<String>,
}

/// Waiting entries by job; `Err` for a slot pool that cannot be read.
type Queues = BTreeMap<SlotPoolName, Result<BTreeMap<JobName, usize>, ()>>;

/// All jobs.
pub(super) async fn list(State(app): State<App>) -> Result<Json<Vec<JobView>>, Problem> {
    let book = app.engine.book();
    let jobs = book.jobs.iter().filter(|(_, job)| !job.definition.is_graph());
    let names: Vec<JobName> = jobs.map(|(name, _)| name.clone()).collect();
    read(&app, names).await.map(Json).map_err(Problem::with_sentence)
}

/// One job.
pub(super) async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let seen = one(&app, &name).await.map_err(Problem::with_sentence)?;
    Ok(version::tagged(&headers, &seen.version, seen.view))
}

/// A job as one snapshot has it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) view: JobView,
    pub(super) version: String,
}

/// One job by its name.
pub(super) async fn one(app: &App, name: &str) -> Result<Seen, Problem> {
    let known = find(&app.engine.book(), name)?.name;
    let for_read = app.clone();
    let seen = app.engine.read(move |tx| look(tx, &for_read, &known)).await?;
    seen.ok_or_else(|| not_found(name))
}

/// What `rows` say about one job; `None` if the configuration does not know it.
pub(super) fn look(rows: &mut impl Rows, app: &App, name: &JobName) -> Result<Option<Seen>, StoreError> {
    let book = app.engine.book();
    let Some(job) = book.jobs.get(name) else {
        return Ok(None);
    };
    let now = app.engine.now().wall;
    let pause = head::job_pause(rows, name, now)?;
    let pause = serde_json::to_string(&pause).expect("a pause is plain data");
    let enabled = job.definition.enabled.to_string();
    let version = version::of_parts(&["job", &job.digest, &enabled, &pause]);
    let mut views = views(rows, app, std::slice::from_ref(name))?;
    Ok(views.pop().map(|view| Seen { view, version }))
}

async fn read(app: &App, names: Vec<JobName>) -> Result<Vec<JobView>, Problem> {
    let for_read = app.clone();
    Ok(app.engine.read(move |tx| views(tx, &for_read, &names)).await?)
}

/// The views of those jobs that the configuration knows.
pub(super) fn views(rows: &mut impl Rows, app: &App, names: &[JobName]) -> Result<Vec<JobView>, StoreError> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let mut queues = Queues::new();
    for name in app.unreadable.now().into_keys() {
        queues.insert(name, Err(()));
    }
    let mut running: BTreeMap<JobName, usize> = BTreeMap::new();
    for (_, _, live) in runs::live(rows)? {
        *running.entry(live.job).or_default() += 1;
    }
    let mut views = Vec::with_capacity(names.len());
    for name in names {
        if let Some(job) = book.jobs.get(name) {
            let running = running.get(name).copied().unwrap_or_default();
            views.push(view(rows, (name, job), running, &mut queues, now)?);
        }
    }
    Ok(views)
}

fn view(
    rows: &mut impl Rows,
    (name, job): (&JobName, &BookJob),
    running: usize,
    queues: &mut Queues,
    now: Millis,
) -> Result<JobView, StoreError> {
    let (pool, queue_unavailable) = demand(rows, name, job, queues)?;
    Ok(JobView {
        name: name.clone(),
        enabled: job.definition.enabled,
        command: job.definition.job_step().map(|step| step.command.command.clone()),
        concurrency_policy: policy_word(job.definition.concurrency),
        schedule: schedule(job, now),
        pool,
        queue_unavailable,
        paused: head::job_pause(rows, name, now)?.map(|pause| PauseView::of(&pause)),
        running,
        last_run: last_run(rows, name)?,
        late: late::stored(rows, name)?.iter().map(LateView::of).collect(),
    })
}

/// As the configuration file writes it.
fn policy_word(policy: ConcurrencyPolicy) -> &'static str {
    match policy {
        ConcurrencyPolicy::Allow => "Allow",
        ConcurrencyPolicy::Forbid => "Forbid",
        ConcurrencyPolicy::Replace => "Replace",
    }
}

fn schedule(job: &BookJob, now: Millis) -> Option<ScheduleView> {
    let schedule = job.schedule.as_ref()?;
    let mut next = Vec::new();
    let mut after = now.0;
    while job.definition.enabled && next.len() < NEXT_MAX {
        let Some(instant) = schedule.next_after(after) else {
            break;
        };
        next.push(Millis(instant).to_string());
        after = instant;
    }
    Some(ScheduleView {
        text: schedule.text().to_owned(),
        timezone: schedule.timezone().to_owned(),
        description: schedule.describe(),
        next,
    })
}

fn demand(
    rows: &mut impl Rows,
    name: &JobName,
    job: &BookJob,
    queues: &mut Queues,
) -> Result<(Option<DemandView>, bool), StoreError> {
    let Some(demand) = job.definition.job_demand() else {
        return Ok((None, false));
    };
    let pool = &demand.slot_pool;
    if !queues.contains_key(pool) {
        let queue = match waiting_by_job(rows, pool) {
            Ok(queue) => Ok(queue),
            Err(error) if error.is_row_fault() => Err(()),
            Err(error) => return Err(error),
        };
        queues.insert(pool.clone(), queue);
    }
    let Some(Ok(by_job)) = queues.get(pool) else {
        return Ok((None, true));
    };
    let own = by_job.get(name).copied().unwrap_or_default();
    Ok((
        Some(DemandView {
            name: pool.clone(),
            slots: demand.slots,
            priority: demand.priority,
            queued: own,
        }),
        false,
    ))
}

fn waiting_by_job(rows: &mut impl Rows, pool: &SlotPoolName) -> Result<BTreeMap<JobName, usize>, StoreError> {
    head::slot_pool(rows, pool)?;
    let mut by_job = BTreeMap::new();
    for (_, row) in entries::waiting(rows, pool, usize::MAX)? {
        *by_job.entry(row.job).or_default() += 1;
    }
    Ok(by_job)
}

/// The newest run that can be read.
fn last_run(rows: &mut impl Rows, job: &JobName) -> Result<Option<LastRun>, StoreError> {
    let newest = rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, 1)?;
    let Some(((_, _, id), _)) = newest.into_iter().next() else {
        return Ok(None);
    };
    let run: Option<Run> = match rows.get(&RUNS, &(TENANT, id)) {
        Ok(run) => run,
        Err(error) if error.is_row_fault() => None,
        Err(error) => return Err(error),
    };
    Ok(run.map(|run| LastRun {
        id: run.id.to_string(),
        state: run.state.word(),
        started_at: run.state.started_at().map(|at| at.to_string()),
        ended_at: run.state.ended_at().map(|at| at.to_string()),
        reason: run.state.reason().map(str::to_owned),
    }))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Cancelled {
    cancelled: String,
    instances: usize,
}

/// Ends every instance of a job. One that left the configuration may still have some.
pub(super) async fn cancel(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    end(&app, name, once, &body).await.map_err(Problem::with_sentence)
}

async fn end(app: &App, name: String, once: Once, body: &[u8]) -> Result<Response, Problem> {
    input::no_fields(body)?;
    let job = JobName::new(&name).map_err(|_| not_found(&name))?;
    let is_known = app.engine.book().jobs.contains_key(&job);
    let (cancelled, by) = (name.clone(), once.principal());
    let asked = once.ask(move |_, stopped: &JobStopped| {
        Ok((stopped.instances > 0).then(|| {
            once::ok(&Cancelled {
                cancelled: cancelled.clone(),
                instances: stopped.instances,
            })
        }))
    });
    let told = desk::stop_job(&app.engine, job, by, asked).await?;
    once::respond(told, |_| {
        if is_known {
            Problem::forbidden_by_state(format!("job '{name}' is not running"))
        } else {
            not_found(&name)
        }
    })
}
