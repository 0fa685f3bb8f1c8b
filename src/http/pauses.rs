//! Pauses of jobs and slot pools, and their end. Both are idempotent.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::input;
use super::jobs;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::slots::{self, Shown};
use crate::domain::slots::admission::Pause;
use crate::engine::desk;
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName};
use crate::words::time::{Millis, parse_instant};

/// A job's pause ends by itself after an hour unless the request says otherwise.
const JOB_PAUSE_MS: u64 = 3_600_000;

/// The fields of a pause.
pub(super) const FIELDS: [Param; 3] = [
    Param::query(
        "durationSeconds",
        Kind::Integer,
        "How long, 1 to 2592000 seconds; a job without an end is paused for 3600.",
    ),
    Param::query("until", Kind::Instant, "The end, instead of `durationSeconds`."),
    Param::query("note", Kind::Text, "Why, at most 500 characters."),
];

/// A pause on the wire.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct PauseView {
    /// When it ends by itself; null: not before somebody lifts it.
    until: Option<String>,
    /// Why, in the words of whoever paused it.
    note: String,
    /// Who paused it.
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
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        let known = jobs::find(&app.engine.book(), &name)?;
        let pause = wanted(&body, once.principal(), app.engine.now().wall, Some(JOB_PAUSE_MS))?;
        hold_job(&app, known.name, Some(pause), once).await
    };
    work.await.map_err(Problem::with_sentence)
}

/// Lets a job go on.
pub(super) async fn resume_job(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        let known = jobs::find(&app.engine.book(), &name)?;
        input::no_fields(&body)?;
        hold_job(&app, known.name, None, once).await
    };
    work.await.map_err(Problem::with_sentence)
}

async fn hold_job(app: &App, name: JobName, pause: Option<Pause>, once: Once) -> Result<Response, Problem> {
    let (for_version, for_reply) = (app.clone(), app.clone());
    let (versioned, shown, missing) = (name.clone(), name.clone(), name.clone());
    let asked = once.ask_at(
        move |tx| Ok(jobs::look(tx, &for_version, &versioned)?.map(|seen| seen.version)),
        move |tx, ()| Ok(jobs::look(tx, &for_reply, &shown)?.map(|seen| once::ok(&seen.view))),
    );
    let told = desk::pause_job(&app.engine, name, pause, asked).await?;
    once::respond(told, |()| jobs::not_found(missing.as_str()))
}

/// Stops claims of a slot pool; not enqueues, not running work, not deadlines.
pub(super) async fn pause_pool(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        let pool = slots::find(&app.engine.book(), &name)?;
        let pause = wanted(&body, once.principal(), app.engine.now().wall, None)?;
        hold_pool(&app, pool, Some(pause), once).await
    };
    work.await.map_err(Problem::with_sentence)
}

/// Lets a slot pool go on.
pub(super) async fn resume_pool(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        let pool = slots::find(&app.engine.book(), &name)?;
        input::no_fields(&body)?;
        hold_pool(&app, pool, None, once).await
    };
    work.await.map_err(Problem::with_sentence)
}

/// The answer is the slot pool without its entries: it is kept for a day.
async fn hold_pool(
    app: &App,
    pool: SlotPoolName,
    pause: Option<Pause>,
    once: Once,
) -> Result<Response, Problem> {
    if app.unreadable.now().contains_key(&pool) {
        return Err(Problem::unavailable());
    }
    let (for_version, for_reply) = (app.clone(), app.clone());
    let (versioned, shown) = (pool.clone(), pool.clone());
    let asked = once.ask_at(
        move |tx| {
            Ok(Some(
                slots::look(tx, &for_version, &versioned, Shown::None)?.version,
            ))
        },
        move |tx, ()| {
            let seen = slots::look(tx, &for_reply, &shown, Shown::None)?;
            Ok(Some(once::ok(&seen.view)))
        },
    );
    let told = desk::pause_slot_pool(&app.engine, pool, pause, asked).await?;
    once::respond(told, |()| Problem::unavailable())
}

fn wanted(body: &[u8], by: String, now: Millis, default_ms: Option<u64>) -> Result<Pause, Problem> {
    let (fields, mut faults) = input::object(body, &FIELDS)?;
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
        Ok(Pause { until, by, note })
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
