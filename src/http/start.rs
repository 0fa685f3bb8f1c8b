//! `POST /jobs/{job}/start`: a start by hand, at most once for each idempotency key.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::{App, PRINCIPAL};
use super::error::Problem;
use super::input;
use super::jobs::{self, Known};
use crate::domain::slots::admission::SlotRefusal;
use crate::engine::changes::start::Started;
use crate::engine::desk::{self, ManualStart};
use crate::store::Rows;
use crate::store::keys::DigestKey;
use crate::store::rows::{Number, Remembered};
use crate::store::tables::{REMEMBERED, REMEMBERED_KEYS};
use crate::words::ids::{EntryId, RunId, TenantId, digest_of_parts};
use crate::words::payload::JsonText;

/// The answer to an accepted start.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Accepted<'a> {
    Queued {
        queued: &'a str,
        #[serde(rename = "queueId")]
        queue_id: String,
        pool: &'a str,
        #[serde(rename = "runId")]
        run_id: String,
    },
    Started {
        started: &'a str,
        #[serde(rename = "runId")]
        run_id: String,
    },
}

/// Starts a job.
pub(super) async fn start(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    begin(&app, &name, &headers, &body)
        .await
        .map_err(Problem::with_sentence)
}

async fn begin(app: &App, name: &str, headers: &HeaderMap, body: &[u8]) -> Result<Response, Problem> {
    let known = jobs::find(&app.engine.book(), name)?;
    if app.engine.is_stopping() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ductor is stopping and starts nothing; try again when it is back",
        ));
    }
    let key = input::idempotency_key(headers)?;
    let fields = checked_fields(body)?;
    let retries = fields.get("retries") == Some(&Value::Bool(true));
    let ticket = key.map(|key| Ticket::new(&known, &key, fields));
    if !known.job.definition.enabled {
        return match ticket {
            Some(ticket) => replay_only(app, &ticket, &known).await,
            None => Err(disabled(&known)),
        };
    }
    let run = RunId::fresh();
    let entry = EntryId::random();
    let remember = ticket.map(|ticket| ticket.remember(app, &known, entry, run));
    let wish = ManualStart {
        name: known.name.clone(),
        job: known.job.clone(),
        principal: PRINCIPAL.to_owned(),
        run,
        entry,
        remember,
        retries,
    };
    match desk::start_job(&app.engine, wish).await? {
        Started::Queued { entry, run } => Ok(accepted(&known, Some(entry), run)),
        Started::Ready { run } => Ok(accepted(&known, None, run)),
        Started::Repeated(before) => Ok(replayed(&before)),
        Started::KeyReused => Err(key_reused()),
        Started::Refused(refusal) => Err(refused(&refusal)),
        Started::StillRunning => {
            let sentence = format!("job '{name}' is still running and its concurrencyPolicy is Forbid");
            Err(Problem::forbidden_by_state(sentence))
        }
        Started::AlreadyFired | Started::Paused | Started::LastFailed | Started::TooLate => {
            unreachable!("a start by hand has no due moment")
        }
    }
}

fn checked_fields(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let (fields, mut faults) = input::object(body, &["retries"])?;
    match fields.get("retries") {
        None | Some(Value::Bool(_)) => {}
        Some(_) => faults.push(input::fault("retries", "type", "must be true or false")),
    }
    if faults.is_empty() {
        Ok(fields)
    } else {
        Err(Problem::invalid(faults))
    }
}

/// A request that carries an idempotency key.
struct Ticket {
    key: [u8; 16],
    request: [u8; 16],
}

impl Ticket {
    fn new(known: &Known, key: &str, fields: Map<String, Value>) -> Ticket {
        let name = known.name.as_str();
        let path = format!("/jobs/{name}/start");
        Ticket {
            key: digest_of_parts(&["idempotency", PRINCIPAL, key]),
            request: digest_of_parts(&["POST", &path, &Value::Object(fields).to_string()]),
        }
    }

    fn remember(self, app: &App, known: &Known, entry: EntryId, run: RunId) -> Remembered {
        let (status, location, body) = answer(known, known.slot_pool().map(|_| entry), run);
        Remembered {
            key: self.key,
            request: self.request,
            at: app.engine.now().wall,
            status: status.as_u16(),
            location,
            body,
        }
    }
}

/// A disabled job starts no more, but a start from before is still answered as it was.
async fn replay_only(app: &App, ticket: &Ticket, known: &Known) -> Result<Response, Problem> {
    let key = ticket.key;
    let found = app.engine.read(move |tx| {
        let tenant = TenantId::DEFAULT;
        let Some(Number(seq)) = tx.get(&REMEMBERED_KEYS, &(tenant, DigestKey(key)))? else {
            return Ok(None);
        };
        tx.get(&REMEMBERED, &(tenant, seq))
    });
    match found.await? {
        Some(before) if before.request == ticket.request => Ok(replayed(&before)),
        Some(_) => Err(key_reused()),
        None => Err(disabled(known)),
    }
}

fn answer(known: &Known, entry: Option<EntryId>, run: RunId) -> (StatusCode, Option<String>, JsonText) {
    let (name, run_id) = (known.name.as_str(), run.to_string());
    let (status, location, body) = match (known.slot_pool(), entry) {
        (Some(pool), Some(entry)) => {
            let location = format!("/pools/{}/queue/{entry}", input::segment(pool.as_str()));
            let body = Accepted::Queued {
                queued: name,
                queue_id: entry.to_string(),
                pool: pool.as_str(),
                run_id,
            };
            (StatusCode::ACCEPTED, Some(location), JsonText::of(&body))
        }
        (_, _) => (
            StatusCode::OK,
            None,
            JsonText::of(&Accepted::Started {
                started: name,
                run_id,
            }),
        ),
    };
    (status, location, body.expect("an answer is plain data"))
}

fn accepted(known: &Known, entry: Option<EntryId>, run: RunId) -> Response {
    let (status, location, body) = answer(known, entry, run);
    respond(status, location.as_deref(), &body)
}

fn replayed(before: &Remembered) -> Response {
    let status = StatusCode::from_u16(before.status).unwrap_or(StatusCode::OK);
    let mut response = respond(status, before.location.as_deref(), &before.body);
    response
        .headers_mut()
        .insert("idempotency-replayed", HeaderValue::from_static("true"));
    response
}

fn respond(status: StatusCode, location: Option<&str>, body: &JsonText) -> Response {
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, json, body.as_str().to_owned()).into_response();
    if let Some(Ok(location)) = location.map(HeaderValue::from_str) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn disabled(known: &Known) -> Problem {
    Problem::forbidden_by_state(format!("job '{}' is disabled", known.name))
}

fn key_reused() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Idempotency-Key was used for another request",
    )
}

fn refused(refusal: &SlotRefusal) -> Problem {
    let problem = Problem::forbidden_by_state(refusal.to_string());
    match refusal {
        SlotRefusal::Full => problem.code("RESOURCE_EXHAUSTED"),
        SlotRefusal::Unknown(_) | SlotRefusal::Locks | SlotRefusal::Draining => problem,
    }
}
