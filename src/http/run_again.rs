//! Once more: `POST /api/runs/{run}:retry` takes the next attempt of a run now, `:rerun` starts its job as a new run.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::run_start::{self, Again};
use super::runs::{self, Data};
use super::start::{self, Wish};
use super::{input, jobs};
use crate::engine::changes::remember::Answer;
use crate::engine::changes::retry::Hastened;
use crate::engine::changes::start::Started;
use crate::engine::desk;
use crate::store::runs::by_id;
use crate::store::{Rows, StoreError};
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// The answer to a retry.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RetriedRun {
    id: String,
    /// `retrying`: its attempt begins as soon as it may.
    state: &'static str,
    /// The attempt that follows.
    attempt: u32,
}

/// The fields of a retry.
pub(super) const RETRY: [Param; 2] = [
    Param::query(
        "from",
        Kind::Text,
        "The step of a workflow's run from which it is tried again; what failed unless given.",
    ),
    once::FIELDS[0],
];

fn from_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> Option<StepRef> {
    let value = fields.get("from").filter(|value| !value.is_null())?;
    let step = value.as_str().and_then(StepRef::new);
    if step.is_none() {
        faults.push(input::fault("from", "type", "must be the name of a step"));
    }
    step
}

/// Takes the next attempt now; the ended run of a workflow is tried again as a new run that takes over what was done.
pub(super) async fn retry(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = runs::id_of(&text)?;
    let (fields, mut faults) = input::object(&body, &RETRY)?;
    let from = from_of(&fields, &mut faults);
    let once = once.expecting_among(&fields, faults)?;
    let found = app.engine.read(move |tx| by_id(tx, id)).await?;
    if let Some(run) = found.filter(|run| run.graph.is_some()) {
        return run_start::again(&app, &run, Again::From(from), |name| {
            once.ask_at(
                move |tx| version_of(tx, id),
                move |_, begun| Ok(run_start::answer(&name, begun, false)),
            )
        })
        .await;
    }
    let asked = once.ask_at(
        move |tx| version_of(tx, id),
        move |_, hastened: &Hastened| Ok(retry_answer(id, hastened)),
    );
    let told = desk::retry_run(&app.engine, id, asked).await?;
    once::respond(told, |hastened| {
        refused_retry(&hastened).unwrap_or_else(|| runs::not_found(&text))
    })
}

fn retry_answer(id: RunId, hastened: &Hastened) -> Option<Answer> {
    let Hastened::Now { attempt } = hastened else {
        return None;
    };
    let data = RetriedRun {
        id: id.to_string(),
        state: "retrying",
        attempt: *attempt,
    };
    Some(once::ok(&Data { data }))
}

/// Why a run gets no attempt now; `None` if there is no such run.
fn refused_retry(hastened: &Hastened) -> Option<Problem> {
    Some(match hastened {
        Hastened::AlreadyEnded(state) => Problem::forbidden_by_state(format!(
            "the run has ended: {state}; a rerun starts its job as a new run"
        ))
        .member("state", state.as_str()),
        Hastened::NotWaiting { phase, attempt } => {
            Problem::forbidden_by_state(not_waiting(phase, *attempt)).member("state", *phase)
        }
        Hastened::Now { .. } | Hastened::NotFound => return None,
    })
}

/// What a run does that does not wait for its next attempt.
pub(super) fn not_waiting(phase: &str, attempt: u32) -> String {
    match phase {
        "running" => format!("attempt {attempt} runs already"),
        "queued" => format!("attempt {attempt} waits for its slots already"),
        _ => format!("attempt {attempt} is {phase}: it does not wait for its time"),
    }
}

pub(super) fn version_of(rows: &mut impl Rows, id: RunId) -> Result<Option<String>, StoreError> {
    Ok(by_id(rows, id)?.map(|run| run.record_version.to_string()))
}

/// The fields of a rerun.
pub(super) const RERUN: [Param; 2] = [start::FIELDS[0], once::FIELDS[0]];

/// The answer to a rerun.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RerunRun {
    /// The new run.
    id: String,
    job: String,
    /// The run that it repeats.
    rerun_of: String,
    /// Where it waits, for a pooled job.
    pool: Option<String>,
    queue_id: Option<String>,
}

/// Starts the job of a run once more, as it is configured now.
pub(super) async fn rerun(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let id = runs::id_of(&text)?;
    let (fields, mut faults) = input::object(&body, &RERUN)?;
    let retries = start::retries_of(&fields, &mut faults);
    let once = once.expecting_among(&fields, faults)?;
    let found = app.engine.read(move |tx| by_id(tx, id)).await?;
    let run = found.ok_or_else(|| runs::not_found(&text))?;
    if run.graph.is_some() {
        return run_start::again(&app, &run, Again::Whole, |name| {
            once.ask_at(
                move |tx| version_of(tx, id),
                move |_, begun| Ok(run_start::answer(&name, begun, false)),
            )
        })
        .await;
    }
    let known = jobs::find(&app.engine.book(), run.definition.as_str()).map_err(|_| {
        Problem::forbidden_by_state(format!("job '{}' is not configured any more", run.definition))
    })?;
    let name = known.name.to_string();
    let slot_pool = known.slot_pool().map(ToString::to_string);
    let asked = once.ask_at(
        move |tx| version_of(tx, id),
        move |_, started: &Started| Ok(rerun_answer((id, &name, slot_pool.as_deref()), started)),
    );
    let wish = Wish {
        known,
        retries,
        rerun_of: Some(id),
    };
    start::hand_in(&app, wish, asked).await
}

fn rerun_answer((of, job, pool): (RunId, &str, Option<&str>), started: &Started) -> Option<Answer> {
    let (status, run, entry) = match started {
        Started::Queued { entry, run } => (StatusCode::ACCEPTED, run, Some(entry)),
        Started::Ready { run } => (StatusCode::CREATED, run, None),
        Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::TooLate
        | Started::LeftToOthers
        | Started::NodeDrained(_)
        | Started::NoRoom
        | Started::Refused(_)
        | Started::StillRunning => return None,
    };
    let data = RerunRun {
        id: run.to_string(),
        job: job.to_owned(),
        rerun_of: of.to_string(),
        pool: pool.filter(|_| entry.is_some()).map(str::to_owned),
        queue_id: entry.map(ToString::to_string),
    };
    let location = format!("/api/runs/{run}");
    Some(once::accepted(status, Some(location), &Data { data }))
}
