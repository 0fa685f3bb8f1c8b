//! `POST /api/runs/{run}:pin` and `:unpin`: a run that retention leaves alone, with its logs.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::runs::{self, Data};
use super::{input, run_again};
use crate::engine::changes::pin::Pinned;
use crate::engine::desk;
use crate::store::rows::Pin;
use crate::words::limits;

/// The fields of a pin.
pub(super) const FIELDS: [Param; 2] = [
    Param::query("reason", Kind::Text, "Why, for people."),
    once::FIELDS[0],
];

/// The answer to a pin.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PinnedRun {
    id: String,
    /// It is kept, with its logs, until somebody says otherwise.
    pinned: bool,
    record_version: u64,
}

/// Why a run is kept.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct PinView {
    by: String,
    since: String,
    reason: String,
}

impl PinView {
    pub(super) fn of(pin: &Pin) -> PinView {
        PinView {
            by: pin.by.clone(),
            since: pin.at.to_string(),
            reason: pin.reason.clone(),
        }
    }
}

/// Keeps a run.
pub(super) async fn pin(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &FIELDS)?;
    let reason = reason_of(&fields).unwrap_or_else(|detail| {
        faults.push(input::fault("reason", "type", &detail));
        String::new()
    });
    let once = once.expecting_among(&fields, faults)?;
    let by = once.principal();
    set(&app, &text, Some((by, reason)), once).await
}

/// Keeps it no longer than others.
pub(super) async fn unpin(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let once = once.expecting(&body)?;
    set(&app, &text, None, once).await
}

fn reason_of(fields: &Map<String, Value>) -> Result<String, String> {
    match fields.get("reason") {
        None | Some(Value::Null) => Ok(String::new()),
        Some(Value::String(text)) if text.chars().count() <= limits::NOTE_CHARS_MAX => Ok(text.clone()),
        Some(_) => Err(format!(
            "must be a text of up to {} characters",
            limits::NOTE_CHARS_MAX
        )),
    }
}

async fn set(
    app: &App,
    text: &str,
    wanted: Option<(String, String)>,
    once: Once,
) -> Result<Response, Problem> {
    let id = runs::id_of(text)?;
    let pinned = wanted.is_some();
    let asked = once.ask_at(
        move |tx| run_again::version_of(tx, id),
        move |_, now: &Pinned| {
            let Pinned::Now(record_version) = now else {
                return Ok(None);
            };
            let data = PinnedRun {
                id: id.to_string(),
                pinned,
                record_version: *record_version,
            };
            Ok(Some(once::ok(&Data { data })))
        },
    );
    let told = desk::pin_run(&app.engine, id, wanted, asked).await?;
    once::respond(told, |_| runs::not_found(text))
}
