//! Pauses of jobs and slot pools, and their end. Both are idempotent.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::{App, PRINCIPAL};
use super::error::{FieldFault, Problem};
use super::input;
use super::jobs::{self, JobView};
use super::slots::{self, PoolView};
use crate::domain::slots::admission::Pause;
use crate::engine::desk;
use crate::words::limits;
use crate::words::time::{Millis, parse_instant};

/// A job's pause ends by itself after an hour unless the request says otherwise.
const JOB_PAUSE_MS: u64 = 3_600_000;

/// A pause on the wire.
#[derive(Debug, Clone, Serialize)]
pub(super) struct PauseView {
    until: Option<String>,
    note: String,
    by: String,
}

impl PauseView {
    pub(super) fn of(pause: &Pause) -> PauseView {
        PauseView {
            until: pause.until.map(|at| at.to_string()),
            note: pause.note.clone(),
            by: pause.by.clone(),
        }
    }
}

/// Holds a job: it does not fire, and its waiting fires are not admitted.
pub(super) async fn pause_job(
    State(app): State<App>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<JobView>, Problem> {
    let work = async {
        let known = jobs::find(&app.engine.book(), &name)?;
        let pause = wanted(&body, app.engine.now().wall, Some(JOB_PAUSE_MS))?;
        desk::pause_job(&app.engine, known.name, Some(pause)).await?;
        jobs::one(&app, &name).await
    };
    work.await.map(Json).map_err(Problem::with_sentence)
}

/// Lets a job go on.
pub(super) async fn resume_job(
    State(app): State<App>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<JobView>, Problem> {
    let work = async {
        let known = jobs::find(&app.engine.book(), &name)?;
        no_fields(&body)?;
        desk::pause_job(&app.engine, known.name, None).await?;
        jobs::one(&app, &name).await
    };
    work.await.map(Json).map_err(Problem::with_sentence)
}

/// Stops claims of a slot pool; not enqueues, not running work, not deadlines.
pub(super) async fn pause_pool(
    State(app): State<App>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<PoolView>, Problem> {
    let work = async {
        let pool = slots::find(&app.engine.book(), &name)?;
        let pause = wanted(&body, app.engine.now().wall, None)?;
        desk::pause_slot_pool(&app.engine, pool.clone(), Some(pause)).await?;
        slots::one(&app, pool, limits::QUEUED_SHOWN_DEFAULT).await
    };
    work.await.map(Json).map_err(Problem::with_sentence)
}

/// Lets a slot pool go on.
pub(super) async fn resume_pool(
    State(app): State<App>,
    Path(name): Path<String>,
    body: Bytes,
) -> Result<Json<PoolView>, Problem> {
    let work = async {
        let pool = slots::find(&app.engine.book(), &name)?;
        no_fields(&body)?;
        desk::pause_slot_pool(&app.engine, pool.clone(), None).await?;
        slots::one(&app, pool, limits::QUEUED_SHOWN_DEFAULT).await
    };
    work.await.map(Json).map_err(Problem::with_sentence)
}

fn no_fields(body: &[u8]) -> Result<(), Problem> {
    let (_, faults) = input::object(body, &[])?;
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(faults))
    }
}

fn wanted(body: &[u8], now: Millis, default_ms: Option<u64>) -> Result<Pause, Problem> {
    let (fields, mut faults) = input::object(body, &["durationSeconds", "until", "note"])?;
    let until = end_of(&fields, now, default_ms, &mut faults);
    let note = match fields.get("note") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(note)) if note.chars().count() <= limits::NOTE_CHARS_MAX => note.clone(),
        Some(_) => {
            let detail = format!("must be a text of at most {} characters", limits::NOTE_CHARS_MAX);
            faults.push(input::fault("note", "out_of_range", &detail));
            String::new()
        }
    };
    if faults.is_empty() {
        Ok(Pause {
            until,
            by: PRINCIPAL.to_owned(),
            note,
        })
    } else {
        Err(Problem::invalid(faults))
    }
}

fn end_of(
    fields: &Map<String, Value>,
    now: Millis,
    default_ms: Option<u64>,
    faults: &mut Vec<FieldFault>,
) -> Option<Millis> {
    let given = |name: &str| fields.get(name).filter(|value| !value.is_null());
    match (given("durationSeconds"), given("until")) {
        (None, None) => default_ms.map(|ms| now.plus(ms)),
        (Some(_), Some(_)) => {
            faults.push(input::fault(
                "until",
                "conflict",
                "give either `durationSeconds` or `until`",
            ));
            None
        }
        (Some(seconds), None) => {
            let seconds = seconds
                .as_u64()
                .filter(|seconds| (1..=limits::PAUSE_SECONDS_MAX).contains(seconds));
            if seconds.is_none() {
                let detail = format!("must be a whole number from 1 to {}", limits::PAUSE_SECONDS_MAX);
                faults.push(input::fault("durationSeconds", "out_of_range", &detail));
            }
            seconds.map(|seconds| now.plus(seconds * 1_000))
        }
        (None, Some(until)) => {
            let until = until
                .as_str()
                .and_then(parse_instant)
                .filter(|until| *until > now);
            if until.is_none() {
                faults.push(input::fault(
                    "until",
                    "out_of_range",
                    "must be an RFC 3339 instant in the future",
                ));
            }
            until
        }
    }
}
