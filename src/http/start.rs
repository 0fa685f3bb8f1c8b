//! `POST /jobs/{job}/start`: a start by hand, at most once for each idempotency key.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::input;
use super::jobs::{self, Known};
use super::once::{self, Once};
use super::param::{Kind, Param};
use crate::domain::disk;
use crate::domain::slots::admission::SlotRefusal;
use crate::engine::changes::remember::{Answer, Asked};
use crate::engine::changes::start::Started;
use crate::engine::desk::{self, ManualStart};
use crate::words::ids::{EntryId, RunId};

/// The answer to a start that waits for slots.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartQueued {
    /// The job.
    queued: String,
    /// Its slot entry.
    queue_id: String,
    /// The slot pool.
    pool: String,
    run_id: String,
}

/// The answer to a start without a slot pool.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct StartedNow {
    /// The job.
    started: String,
    run_id: String,
}

/// The fields of a start.
pub(super) const FIELDS: [Param; 1] = [Param::query(
    "retries",
    Kind::Flag,
    "Failed attempts are followed by others, by the job's own rules; false unless given.",
)];

/// Starts a job.
pub(super) async fn start(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    begin(&app, &name, once, &body)
        .await
        .map_err(Problem::with_sentence)
}

async fn begin(app: &App, name: &str, once: Once, body: &[u8]) -> Result<Response, Problem> {
    let known = jobs::find(&app.engine.book(), name)?;
    let retries = wants_retries(body)?;
    let for_answer = known.clone();
    let asked = once.ask(move |_, started: &Started| Ok(answer(&for_answer, started)));
    let wish = Wish {
        known,
        retries,
        rerun_of: None,
    };
    hand_in(app, wish, asked).await
}

/// A start by hand, as a face wants it.
#[derive(Debug)]
pub(super) struct Wish {
    pub(super) known: Known,
    pub(super) retries: bool,
    pub(super) rerun_of: Option<RunId>,
}

/// Starts, or says why not.
pub(super) async fn hand_in(app: &App, wish: Wish, asked: Asked<Started>) -> Result<Response, Problem> {
    let name = wish.known.name.clone();
    if app.engine.is_stopping() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ductor is stopping and starts nothing; try again when it is back",
        ));
    }
    if !wish.known.job.definition.enabled {
        return Err(Problem::forbidden_by_state(format!("job '{name}' is disabled")));
    }
    let wish = ManualStart {
        name: wish.known.name,
        job: wish.known.job,
        principal: asked.who().to_owned(),
        run: RunId::fresh(),
        entry: EntryId::random(),
        retries: wish.retries,
        rerun_of: wish.rerun_of,
    };
    let told = desk::start_job(&app.engine, wish, asked).await?;
    once::respond(told, |started| match &started {
        Started::Refused(refusal) => refused(refusal),
        Started::NoRoom => no_room(),
        Started::StillRunning | Started::NodeDrained(_) => {
            Problem::forbidden_by_state(started.refusal(&name).unwrap_or_default())
        }
        Started::Queued { .. } | Started::Ready { .. } => unreachable!("an accepted start has an answer"),
        Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::TooLate
        | Started::LeftToOthers => unreachable!("a start by hand has no due moment"),
    })
}

/// The disk has too little room for a new run.
pub(super) fn no_room() -> Problem {
    Problem::new(StatusCode::SERVICE_UNAVAILABLE, disk::NO_ROOM)
}

fn wants_retries(body: &[u8]) -> Result<bool, Problem> {
    let (fields, mut faults) = input::object(body, &FIELDS)?;
    let wanted = retries_of(&fields, &mut faults);
    if faults.is_empty() {
        Ok(wanted)
    } else {
        Err(Problem::invalid(faults))
    }
}

/// The field `retries`.
pub(super) fn retries_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> bool {
    match fields.get("retries") {
        None => false,
        Some(Value::Bool(wanted)) => *wanted,
        Some(_) => {
            faults.push(input::fault("retries", "type", "must be true or false"));
            false
        }
    }
}

/// The answer of an accepted start.
fn answer(known: &Known, started: &Started) -> Option<Answer> {
    let name = known.name.to_string();
    match (started, known.slot_pool()) {
        (Started::Queued { entry, run }, Some(pool)) => {
            let location = format!("/pools/{}/queue/{entry}", input::segment(pool.as_str()));
            let body = StartQueued {
                queued: name,
                queue_id: entry.to_string(),
                pool: pool.to_string(),
                run_id: run.to_string(),
            };
            Some(once::accepted(StatusCode::ACCEPTED, Some(location), &body))
        }
        (Started::Ready { run }, _) => Some(once::ok(&StartedNow {
            started: name,
            run_id: run.to_string(),
        })),
        (
            Started::Queued { .. }
            | Started::AlreadyFired
            | Started::Paused
            | Started::LastFailed
            | Started::TooLate
            | Started::Refused(_)
            | Started::LeftToOthers
            | Started::NodeDrained(_)
            | Started::NoRoom
            | Started::StillRunning,
            _,
        ) => None,
    }
}

fn refused(refusal: &SlotRefusal) -> Problem {
    let problem = Problem::forbidden_by_state(refusal.to_string());
    match refusal {
        SlotRefusal::Full => problem.code("RESOURCE_EXHAUSTED"),
        SlotRefusal::Unknown(_)
        | SlotRefusal::Locks
        | SlotRefusal::Draining
        | SlotRefusal::Differs { .. }
        | SlotRefusal::JobDiffers { .. } => problem,
    }
}
