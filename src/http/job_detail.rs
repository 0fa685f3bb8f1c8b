//! A job as a page shows it: beside what it is, when it fired and fires, how its newest runs ended, and, for one job,
//! what the configuration says of it.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::endings;
use super::error::Problem;
use super::job_list::snake_case;
use super::jobs::{self, JobView};
use super::runs::Data;
use super::{fires, upcoming, version};
use crate::config::Config;
use crate::domain::report::ReportKind;
use crate::domain::schedule::{LintLevel, Schedule, lints};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::definition::{Definition, FailsWhen, Retry, Step};
use crate::domain::workflow::run::{Run, RunState};
use crate::store::tables::JOB_RUNS;
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Ended runs that are shown.
const RECENT_MAX: usize = 20;
/// Runs among which those are looked for: some have not ended.
const RECENT_RUNS_MAX: usize = 40;

/// A job in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListedJobView {
    #[serde(flatten)]
    job: JobView,
    #[serde(flatten)]
    times: Times,
    /// The newest ended runs, newest first, at most 20; only if they are asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    recent: Option<Vec<RecentRun>>,
    /// Successes among those of them that succeeded or failed, from 0 to 1.
    success_rate: Option<f64>,
}

/// When it fired and fires by itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobTimes)]
struct Times {
    /// The newest due moment of which something is recorded.
    last_fire: Option<String>,
    /// `run`, `caught_up`, `skipped` or `unreadable`.
    last_fire_outcome: Option<&'static str>,
    /// Absent while it is disabled or paused without an end.
    next_fire: Option<String>,
}

/// An ended run.
#[derive(Debug, Serialize, ToSchema)]
struct RecentRun {
    id: String,
    state: &'static str,
    ended_at: String,
    /// From its first start; absent if it never started.
    duration_ms: Option<u64>,
}

impl RecentRun {
    fn of(run: &Run) -> Option<RecentRun> {
        let ended_at = run.state.ended_at()?;
        Some(RecentRun {
            id: run.id.to_string(),
            state: run.state.word(),
            ended_at: ended_at.to_string(),
            duration_ms: run.state.started_at().map(|started| ended_at.since(started)),
        })
    }
}

/// One job.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct JobDetailView {
    #[serde(flatten)]
    listed: ListedJobView,
    version: u32,
    policy: PolicyView,
    /// What may surprise about its schedule, as `ductor check` says it.
    lints: Vec<LintView>,
}

#[derive(Debug, Serialize, ToSchema)]
struct LintView {
    code: &'static str,
    /// `note`, `warning` or `error`.
    level: &'static str,
    message: String,
}

/// What the configuration says of a job. Values of variables are never part of it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobPolicy)]
struct PolicyView {
    retries: RetriesView,
    /// `skip`, `run-once` or `run-all`.
    on_missed: &'static str,
    starting_deadline_ms: Option<u64>,
    only_if_last_succeeded: bool,
    /// Every daemon fires it, not one of them.
    every_node: bool,
    execution_timeout_ms: Option<u64>,
    kill_timeout_ms: u64,
    /// How long it may wait in its slot pool.
    queue_timeout_ms: Option<u64>,
    /// Lines of each stream that are kept for reports.
    save_limit: u32,
    sla: SlaView,
    /// The keys of `failsWhen` that hold.
    fails_when: Vec<&'static str>,
    /// A second command must agree before a run is a success.
    verify: bool,
    working_dir: Option<String>,
    user: Option<String>,
    group: Option<String>,
    shell: String,
    env_file: Option<String>,
    /// Names only.
    environment: Vec<String>,
    /// Names only.
    secrets: Vec<String>,
    /// The keys under which it reports, like `onFailure`.
    reports: Vec<&'static str>,
    /// The file and line that defines it.
    origin: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobRetries)]
struct RetriesView {
    /// Attempts after the first; absent for without end.
    max: Option<u32>,
    initial_delay_ms: u64,
    maximum_delay_ms: u64,
    multiplier: f64,
}

impl RetriesView {
    fn of(retry: Retry) -> RetriesView {
        RetriesView {
            max: retry.retries_max,
            initial_delay_ms: retry.initial_delay_ms,
            maximum_delay_ms: retry.maximum_delay_ms,
            multiplier: retry.multiplier,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = JobSla)]
#[expect(
    clippy::struct_field_names,
    reason = "each is a key of the file with its unit"
)]
struct SlaView {
    max_time_since_success_ms: Option<u64>,
    late_after_ms: Option<u64>,
    max_runtime_ms: Option<u64>,
}

impl PolicyView {
    fn of(definition: &Definition, step: &Step, config: &Config) -> PolicyView {
        let (policy, sla) = (&definition.policy, definition.sla);
        let command = &step.command;
        let of_job = config
            .jobs
            .iter()
            .find(|job| job.name == definition.name.as_str());
        PolicyView {
            retries: RetriesView::of(policy.retry),
            on_missed: policy.on_missed.word(),
            starting_deadline_ms: policy.starting_deadline_ms,
            only_if_last_succeeded: policy.only_if_last_succeeded,
            every_node: policy.every_node,
            execution_timeout_ms: command.execution_timeout_ms,
            kill_timeout_ms: command.kill_timeout_ms,
            queue_timeout_ms: step.slots.as_ref().map(|demand| demand.queue_timeout_ms),
            save_limit: command.save_limit,
            sla: SlaView {
                max_time_since_success_ms: sla.max_time_since_success_ms,
                late_after_ms: sla.late_after_ms,
                max_runtime_ms: sla.max_runtime_ms,
            },
            fails_when: fails_when(command.fails_when),
            verify: command.verify.is_some(),
            working_dir: command.working_directory.clone(),
            user: command.user.clone(),
            group: command.group.clone(),
            shell: command.shell.clone(),
            env_file: command.env_file.clone(),
            environment: command.environment.iter().map(|(name, _)| name.clone()).collect(),
            secrets: command.secrets.iter().map(|secret| secret.name.clone()).collect(),
            reports: definition.reports.kinds().map(ReportKind::key).collect(),
            origin: of_job.map(|job| {
                let name = std::path::Path::new(&*job.at.file).file_name();
                let name = name.map(|name| name.to_string_lossy().into_owned());
                format!("{}:{}", name.unwrap_or_default(), job.at.line)
            }),
        }
    }
}

/// The words of the configuration.
fn fails_when(rules: FailsWhen) -> Vec<&'static str> {
    let words = [
        ("nonzeroReturn", rules.nonzero_return),
        ("producesStdout", rules.produces_stdout),
        ("producesStderr", rules.produces_stderr),
        ("always", rules.always),
    ];
    words
        .into_iter()
        .filter(|(_, holds)| *holds)
        .map(|(word, _)| word)
        .collect()
}

/// Those jobs for a page, in their order.
pub(super) fn listed(
    rows: &mut impl Rows,
    app: &App,
    names: &[JobName],
    (paused, recent): (&BTreeMap<JobName, Pause>, bool),
) -> Result<Vec<ListedJobView>, StoreError> {
    let views = jobs::views(rows, app, names)?;
    let mut listed = Vec::with_capacity(views.len());
    for (name, job) in names.iter().zip(views) {
        listed.push(one(rows, app, (name, job), (paused, recent))?);
    }
    Ok(listed)
}

fn one(
    rows: &mut impl Rows,
    app: &App,
    (name, job): (&JobName, JobView),
    (paused, recent): (&BTreeMap<JobName, Pause>, bool),
) -> Result<ListedJobView, StoreError> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let known = book.jobs.get(name);
    let clock = fires::clock_of(known.and_then(|known| known.schedule.as_deref()));
    let newest = fires::newest(rows, name, &clock)?;
    let next = known.and_then(|known| upcoming::next_of(known, paused.get(name), now));
    let ended = if recent {
        recent_of(rows, name)?
    } else {
        Vec::new()
    };
    Ok(ListedJobView {
        job,
        times: Times {
            last_fire: newest.as_ref().map(|(at, _)| at.to_string()),
            last_fire_outcome: newest.map(|(_, fire)| fire.outcome()),
            next_fire: next.map(|at| at.to_string()),
        },
        success_rate: success_rate(&ended),
        recent: recent.then(|| ended.iter().filter_map(RecentRun::of).collect()),
    })
}

/// The newest ended runs, newest first.
fn recent_of(rows: &mut impl Rows, job: &JobName) -> Result<Vec<Run>, StoreError> {
    let mut found = Vec::with_capacity(RECENT_MAX);
    for ((_, _, id), _) in rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, RECENT_RUNS_MAX)? {
        let run = endings::readable(rows, id)?;
        found.extend(run.filter(|run| run.state.is_terminal()));
        if found.len() == RECENT_MAX {
            break;
        }
    }
    Ok(found)
}

/// Cancelled and skipped runs say nothing about it.
fn success_rate(runs: &[Run]) -> Option<f64> {
    let count = |is: fn(&RunState) -> bool| {
        let found = runs.iter().filter(|run| is(&run.state)).count();
        u32::try_from(found).map_or(f64::INFINITY, f64::from)
    };
    let good = count(|state| matches!(state, RunState::Succeeded { .. }));
    let bad = count(|state| matches!(state, RunState::Failed { .. }));
    (good + bad > 0.0).then(|| good / (good + bad))
}

fn lints_of(schedule: &Schedule, now: Millis) -> Vec<LintView> {
    let found = lints(schedule, now.0, None).into_iter();
    found
        .map(|lint| LintView {
            code: lint.code.as_str(),
            level: match lint.level {
                LintLevel::Note => "note",
                LintLevel::Warning => "warning",
                LintLevel::Error => "error",
            },
            message: lint.message,
        })
        .collect()
}

/// One job.
pub(super) async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let known = jobs::find(&app.engine.book(), &name)?;
    let Some(step) = known.job.definition.job_step() else {
        return Err(Problem::not_found(format!("job '{name}' not found: it is a dag")));
    };
    let (for_read, config) = (app.clone(), app.config());
    let job = known.name.clone();
    let read = app.engine.read(move |tx| {
        let Some(seen) = jobs::look(tx, &for_read, &job)? else {
            return Ok(None);
        };
        let now = for_read.engine.now().wall;
        let paused = upcoming::paused(tx, now)?;
        let listed = one(tx, &for_read, (&job, seen.view), (&paused, true))?;
        Ok(Some((seen.version, listed)))
    });
    let (tag, listed) = read.await?.ok_or_else(|| jobs::not_found(&name))?;
    let schedule = known
        .job
        .schedule
        .as_deref()
        .filter(|_| known.job.definition.enabled);
    let now = app.engine.now().wall;
    let view = JobDetailView {
        listed,
        version: known.job.version,
        policy: PolicyView::of(&known.job.definition, step, &config),
        lints: schedule
            .map(|schedule| lints_of(schedule, now))
            .unwrap_or_default(),
    };
    let data = snake_case(&view);
    Ok(version::tagged(&headers, &tag, Data { data }))
}
