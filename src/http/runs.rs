//! `/api/runs/{run}`: a run with its steps, its attempts, and what it waits for; and its cancel.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::HeaderMap;
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::once::{self, Once};
use super::run_pins::PinView;
use super::version;
use super::waiting::{self, Asked, Waiting};
use crate::domain::report::{Effect, EffectState};
use crate::domain::workflow::attempt::Attempt;
use crate::domain::workflow::run::{Run, StepPhase, StepState, Trigger};
use crate::engine::changes::cancel::RunCancelled;
use crate::engine::changes::remember::Answer;
use crate::engine::desk;
use crate::store::rows::{Ending, EndingCause, LiveAttempt};
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS, PINS, POISONED_RUNS, SLOT_RUNNING, STEPS, TASK_CLAIMS};
use crate::store::{Rows, StoreError, effects, entries, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// The body of every success under `/api`.
#[derive(Debug, Serialize)]
pub(super) struct Data<T> {
    pub(super) data: T,
}

/// The header of a run on the wire.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunView {
    id: String,
    job: String,
    version: u32,
    state: &'static str,
    reason: Option<String>,
    trigger: TriggerView,
    /// The run that this one repeats.
    rerun_of: Option<String>,
    node: Option<String>,
    created_at: String,
    started_at: Option<String>,
    ended_at: Option<String>,
    record_version: u64,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum TriggerView {
    Schedule {
        scheduled_at: String,
    },
    Manual {
        principal: String,
    },
    #[serde(rename = "catchup")]
    CatchUp {
        scheduled_at: String,
    },
    Boot {
        scheduled_at: String,
    },
    Run {
        parent: String,
        step: String,
    },
}

impl RunView {
    pub(super) fn of(run: &Run) -> RunView {
        RunView {
            id: run.id.to_string(),
            job: run.definition.to_string(),
            version: run.version,
            state: run.state.word(),
            reason: run.state.reason().map(str::to_owned),
            rerun_of: run.trigger.rerun_of().map(|of| of.to_string()),
            trigger: match &run.trigger {
                Trigger::Schedule { instant } => TriggerView::Schedule {
                    scheduled_at: instant.to_string(),
                },
                Trigger::Manual { principal }
                | Trigger::Rerun { principal, .. }
                | Trigger::RetryFrom { principal, .. } => TriggerView::Manual {
                    principal: principal.clone(),
                },
                Trigger::Child { parent, step } => TriggerView::Run {
                    parent: parent.to_string(),
                    step: step.to_string(),
                },
                Trigger::CatchUp { instant } => TriggerView::CatchUp {
                    scheduled_at: instant.to_string(),
                },
                Trigger::Boot { instant } => TriggerView::Boot {
                    scheduled_at: instant.to_string(),
                },
            },
            node: run.node.as_ref().map(ToString::to_string),
            created_at: run.created_at.to_string(),
            started_at: run.state.started_at().map(|at| at.to_string()),
            ended_at: run.state.ended_at().map(|at| at.to_string()),
            record_version: run.record_version,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunDetail {
    #[serde(flatten)]
    run: RunView,
    poisoned: bool,
    /// Why it is kept when others are removed; null if it is not.
    pinned: Option<PinView>,
    /// Its history is so long that it should end and go on as another run.
    should_continue_as_new: bool,
    waiting_reason: Option<Waiting>,
    /// The first 500 by name.
    steps: Vec<StepView>,
    /// There are more; `GET /api/runs/{run}/steps` has all of them by pages.
    more_steps: bool,
    /// Who was told of it, or shall be, oldest first.
    reports: Vec<ReportView>,
}

/// One report of the run.
#[derive(Debug, Serialize, ToSchema)]
struct ReportView {
    id: String,
    /// The key that asked for it, like `onFailure`.
    on: &'static str,
    /// `webhook` or `shell`.
    target: &'static str,
    attempt: Option<u32>,
    /// `waiting`, `delivered` or `dead`.
    state: &'static str,
    tries: u32,
    created_at: String,
    /// When it was delivered or given up.
    at: Option<String>,
    next_try_at: Option<String>,
    /// Why the last try failed.
    reason: Option<String>,
}

impl ReportView {
    fn of(effect: &Effect) -> ReportView {
        let (tries, next_try_at, reason) = match &effect.state {
            EffectState::Waiting {
                due_at,
                tries,
                last_error,
            } => (*tries, Some(due_at.to_string()), last_error.clone()),
            EffectState::Delivered { tries, .. } => (*tries, None, None),
            EffectState::Dead { tries, reason, .. } => (*tries, None, Some(reason.clone())),
        };
        ReportView {
            id: effect.id.to_string(),
            on: effect.kind.key(),
            target: effect.target.word(),
            attempt: effect.facts.attempt,
            state: effect.state.word(),
            tries,
            created_at: effect.created_at.to_string(),
            at: effect.decided_at().map(|at| at.to_string()),
            next_try_at,
            reason,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepView {
    #[serde(rename = "ref")]
    step: String,
    state: &'static str,
    reason: Option<String>,
    attempt: u32,
    deaths: u32,
    /// When the next attempt of a failed step is due.
    retry_at: Option<String>,
    /// Why it does not go on right now; null while it runs and when it has ended.
    waiting_reason: Option<Waiting>,
    queue_id: Option<String>,
    live: Option<LiveView>,
    attempts: Vec<AttemptView>,
}

#[derive(Debug, Serialize, ToSchema)]
struct AttemptView {
    number: u32,
    fence: u64,
    outcome: &'static str,
    exit_code: Option<i32>,
    reason: Option<String>,
    node: String,
    pid: Option<u32>,
    started_at: String,
    ended_at: String,
    log_bytes: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct LiveView {
    number: u32,
    fence: u64,
    node: String,
    /// The remote worker that has it.
    worker: Option<String>,
    pid: Option<u32>,
    claimed_at: String,
    lease_until: Option<String>,
    ending: Option<EndingView>,
}

#[derive(Debug, Serialize, ToSchema)]
struct EndingView {
    cause: &'static str,
    at: String,
    by: String,
}

impl EndingView {
    fn of(ending: &Ending) -> EndingView {
        let cause = match ending.cause {
            EndingCause::Cancelled => "cancelled",
            EndingCause::Replaced => "replaced",
        };
        EndingView {
            cause,
            at: ending.at.to_string(),
            by: ending.by.clone(),
        }
    }
}

impl AttemptView {
    fn of(number: u32, fence: u64, attempt: &Attempt) -> AttemptView {
        AttemptView {
            number,
            fence,
            outcome: attempt.outcome.word(),
            exit_code: attempt.exit_code,
            reason: attempt.reason.clone(),
            node: attempt.node.to_string(),
            pid: attempt.pid,
            started_at: attempt.started_at.to_string(),
            ended_at: attempt.ended_at.to_string(),
            log_bytes: attempt.log_bytes,
        }
    }
}

/// The id of a run in a path.
pub(super) fn id_of(text: &str) -> Result<RunId, Problem> {
    text.parse().map_err(|_| not_found(text))
}

pub(super) fn not_found(text: &str) -> Problem {
    let shown: String = text.chars().take(64).collect();
    Problem::not_found(format!("run '{shown}' not found"))
}

/// One run. Its version describes it whole once it has ended and everybody is told; before that, its place in a queue, the
/// lease of its claim and the tries of its reports move without a new one, so it is always shown.
pub(super) async fn show(
    State(app): State<App>,
    Path(text): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let id = id_of(&text)?;
    let (book, now, of) = (app.engine.book(), app.engine.now().wall, app.clone());
    let found = app.engine.read(move |tx| {
        let Some(run) = runs::by_id(tx, id)? else {
            return Ok(None);
        };
        let asked = waiting::asked(tx, &of, &book, &run, now)?;
        detail(tx, &asked).map(Some)
    });
    let found = found.await?;
    let (record_version, rests, data) = found.ok_or_else(|| not_found(&text))?;
    let view = Data { data };
    Ok(if rests {
        version::with_version(&headers, record_version, view)
    } else {
        version::moving(record_version, view)
    })
}

/// The version of a run, whether it describes it whole, and all that is shown of it.
fn detail(rows: &mut impl Rows, asked: &Asked<'_>) -> Result<(u64, bool, RunDetail), StoreError> {
    let run = asked.run;
    let id = run.id;
    let mut steps = Vec::new();
    let mut waiting_reason = waiting::of_run(rows, asked)?;
    let mut found = rows.scan(&STEPS, &(TENANT, id), None, limits::PAGE_MAX + 1)?;
    let more_steps = found.len() > limits::PAGE_MAX;
    found.truncate(limits::PAGE_MAX);
    for ((_, _, name), state) in found {
        let waits = waiting::of_step(rows, asked, &state)?;
        let step = step_view(rows, id, &name, &state, waits)?;
        if waiting_reason.is_none() {
            waiting_reason.clone_from(&step.waiting_reason);
        }
        steps.push(step);
    }
    let reports = effects::of_run(rows, id, limits::EFFECTS_OF_RUN_MAX)?;
    let poisoned = rows.has(&POISONED_RUNS, &(TENANT, id))?;
    let pin = rows.get(&PINS, &(TENANT, id))?;
    let header = run.graph.as_ref();
    let detail = RunDetail {
        run: RunView::of(run),
        poisoned,
        pinned: pin.as_ref().map(PinView::of),
        should_continue_as_new: header.is_some_and(|header| header.history.should_continue_as_new()),
        waiting_reason,
        steps,
        more_steps,
        reports: reports.iter().map(ReportView::of).collect(),
    };
    let told = reports
        .iter()
        .all(|report| !matches!(report.state, EffectState::Waiting { .. }));
    let rests = run.state.is_terminal() && told;
    Ok((run.record_version, rests, detail))
}

pub(super) fn step_view(
    rows: &mut impl Rows,
    run: RunId,
    name: &StepRef,
    state: &StepState,
    waiting_reason: Option<Waiting>,
) -> Result<StepView, StoreError> {
    let ended = rows.scan(&ATTEMPTS, &(TENANT, run, name.clone()), None, limits::PAGE_MAX)?;
    let live = rows.get(&LIVE_ATTEMPTS, &(TENANT, run, name.clone()))?;
    let queue_id = match &state.phase {
        StepPhase::Queued { entry, .. }
        | StepPhase::Running {
            entry: Some(entry), ..
        } => entries::by_seq(rows, *entry)?.map(|entry| entry.id.to_string()),
        StepPhase::Running { entry: None, .. }
        | StepPhase::Ready { .. }
        | StepPhase::Retrying { .. }
        | StepPhase::Succeeded { .. }
        | StepPhase::Failed { .. }
        | StepPhase::Skipped { .. }
        | StepPhase::Waiting { .. }
        | StepPhase::UpstreamFailed { .. }
        | StepPhase::Held { .. }
        | StepPhase::Cancelled { .. } => None,
    };
    Ok(StepView {
        step: name.to_string(),
        state: state.phase.word(),
        reason: state.phase.reason().map(str::to_owned),
        attempt: state.attempt,
        deaths: state.deaths,
        retry_at: match &state.phase {
            StepPhase::Retrying { due, .. } => Some(due.to_string()),
            StepPhase::Ready { .. }
            | StepPhase::Queued { .. }
            | StepPhase::Running { .. }
            | StepPhase::Succeeded { .. }
            | StepPhase::Failed { .. }
            | StepPhase::Skipped { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::UpstreamFailed { .. }
            | StepPhase::Held { .. }
            | StepPhase::Cancelled { .. } => None,
        },
        waiting_reason,
        queue_id,
        live: live.as_ref().map(|live| live_view(rows, live)).transpose()?,
        attempts: ended
            .iter()
            .map(|((_, _, _, number, fence), row)| AttemptView::of(*number, *fence, row))
            .collect(),
    })
}

fn live_view(rows: &mut impl Rows, live: &LiveAttempt) -> Result<LiveView, StoreError> {
    let lease = match &live.entry {
        Some(entry) => rows.get(&SLOT_RUNNING, &(TENANT, entry.slot_pool.clone(), entry.seq))?,
        None => None,
    };
    let remote = rows.get(&TASK_CLAIMS, &(TENANT, live.claim.fence))?;
    Ok(LiveView {
        number: live.number,
        fence: live.claim.fence,
        node: live.claim.node.to_string(),
        worker: remote.map(|claim| claim.worker),
        pid: live.claim.process.map(|process| process.pid),
        claimed_at: live.claim.claimed_at.to_string(),
        lease_until: lease.map(|row| row.lease.until_wall.to_string()),
        ending: live.ending.as_ref().map(EndingView::of),
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CancelledRun {
    id: String,
    /// `cancelled`, or `ending` while its process is being ended.
    state: &'static str,
}

/// Cancels a run.
pub(super) async fn cancel(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = id_of(&text)?;
    let once = once.expecting(&body)?;
    let by = once.principal();
    let asked = once.ask_at(
        move |tx| Ok(runs::by_id(tx, id)?.map(|run| run.record_version.to_string())),
        move |_, outcome: &RunCancelled| Ok(cancel_answer(id, outcome)),
    );
    let told = desk::cancel_run(&app.engine, id, by, asked).await?;
    once::respond(told, |outcome| match outcome {
        RunCancelled::AlreadyEnded(state) => {
            Problem::forbidden_by_state(format!("the run has ended: {state}")).member("state", state)
        }
        RunCancelled::NotFound => not_found(&text),
        RunCancelled::Ended | RunCancelled::Ending(_) => unreachable!("a cancelled run has an answer"),
    })
}

fn cancel_answer(id: RunId, outcome: &RunCancelled) -> Option<Answer> {
    let state = match outcome {
        RunCancelled::Ended => "cancelled",
        RunCancelled::Ending(_) => "ending",
        RunCancelled::AlreadyEnded(_) | RunCancelled::NotFound => return None,
    };
    let data = CancelledRun {
        id: id.to_string(),
        state,
    };
    Some(once::ok(&Data { data }))
}
