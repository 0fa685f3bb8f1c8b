//! `Idempotency-Key` and `If-Match`: a change that is sent twice happens once, and one that rests on an old version not at
//! all.
//!
//! The front looks the key up before the handler runs, holds it while it does, and keeps the answer afterwards. A handler
//! whose effect is one transaction takes [`Once`] and has its answer kept in that transaction, so that not even a crash
//! comes between the two; for every other handler the front keeps it after the fact.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::App;
use super::caller::Caller;
use super::error::{FieldFault, Problem};
use super::input;
use super::param::{Kind, Param};
use super::version::Expected;
use crate::engine::changes::audit::By;
use crate::engine::changes::remember::{Answer, Asked, Ticket, Told, Version};
use crate::engine::desk;
use crate::store::{StoreError, Tx};
use crate::words::ids::digest_of_parts;
use crate::words::limits;
use crate::words::payload::JsonText;

/// The keys of requests that are being answered. Clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct InFlight {
    keys: Arc<Mutex<BTreeSet<[u8; 16]>>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
struct Held {
    flight: InFlight,
    key: [u8; 16],
}

impl InFlight {
    fn hold(&self, key: [u8; 16]) -> Option<Held> {
        let mut keys = self.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.insert(key).then(|| Held {
            flight: self.clone(),
            key,
        })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut keys = self.flight.keys.lock().unwrap_or_else(PoisonError::into_inner);
        keys.remove(&self.key);
    }
}

/// A request that goes on to its handler.
#[derive(Debug)]
pub(super) struct Passage {
    held: Option<(Held, Ticket)>,
}

/// What the front does with a request.
#[derive(Debug)]
pub(super) enum Gate {
    /// It goes on.
    Open(Passage),
    /// It was answered before.
    Closed(Response),
    /// It was answered before; the guard of its route gives that out, if the token of now may ask for it too.
    Guarded,
}

/// The answer of before, on its way to the guard.
#[derive(Debug, Clone)]
pub(super) struct Replay(Arc<Mutex<Option<Response>>>);

impl Replay {
    pub(super) fn take(&self) -> Option<Response> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// Looks the key of a request up. Only requests that change something have one.
pub(super) async fn look_up(app: &App, parts: &mut Parts, body: &[u8]) -> Result<Gate, Problem> {
    let open = |held| Ok(Gate::Open(Passage { held }));
    if parts.method.is_safe() || parts.method == Method::OPTIONS {
        return open(None);
    }
    let Some(key) = input::idempotency_key(&parts.headers)? else {
        return open(None);
    };
    let Some(caller) = parts.extensions.get::<Caller>() else {
        return open(None);
    };
    let (tenant, by_token) = (caller.tenant.0.to_string(), caller.token.is_some());
    let ticket = Ticket {
        tenant: caller.tenant,
        key: digest_of_parts(&["idempotency", &tenant, &caller.mark(), &key]),
        request: digest_of(parts, body),
    };
    let in_flight = || {
        let detail = "a request with this Idempotency-Key is being answered; try again when it is done";
        Problem::new(StatusCode::CONFLICT, detail)
            .code("ABORTED")
            .header(axum::http::header::RETRY_AFTER, "1")
    };
    let held = app.in_flight.hold(ticket.key).ok_or_else(in_flight)?;
    match desk::said_before(&app.engine, ticket).await? {
        Some(Told::Before(answer)) => {
            let answer = replayed(&answer);
            // What a key may do never changes; two tokens of one subject may say different things.
            if !by_token {
                return Ok(Gate::Closed(answer));
            }
            parts
                .extensions
                .insert(Replay(Arc::new(Mutex::new(Some(answer)))));
            Ok(Gate::Guarded)
        }
        Some(Told::KeyReused) => Err(key_reused()),
        Some(Told::Now((), _) | Told::Moved(_)) | None => {
            parts.extensions.insert(ticket);
            open(Some((held, ticket)))
        }
    }
}

/// Method, path and body; the order of the fields of the body and its white space do not count.
fn digest_of(parts: &Parts, body: &[u8]) -> [u8; 16] {
    let path = parts
        .uri
        .path_and_query()
        .map_or("", |path_and_query| path_and_query.as_str());
    let canonical = match serde_json::from_slice::<Value>(body) {
        Ok(value) => value.to_string(),
        Err(_) if body.is_empty() => "{}".to_owned(),
        // Such a body is refused, and refusals are not kept.
        Err(_) => String::new(),
    };
    digest_of_parts(&[parts.method.as_str(), path, &canonical])
}

/// Keeps an accepted answer, and that it was asked for, unless the handler had both kept with its effect.
pub(super) async fn keep(app: &App, passage: Passage, mut response: Response) -> Response {
    let by = response.extensions_mut().remove::<By>();
    let marks = response.extensions();
    let is_kept = marks.get::<Kept>().is_some() || marks.get::<Harmless>().is_some();
    if is_kept || !response.status().is_success() {
        return response;
    }
    let location = response.headers().get(header::LOCATION);
    let location = location.and_then(|value| value.to_str().ok()).map(str::to_owned);
    let by = by.map(|by| (by, location.clone()));
    let Some((_held, ticket)) = passage.held else {
        if by.is_some() {
            note(app, None, by).await;
        }
        return response;
    };
    if response.body().size_hint().lower() > limits::REMEMBERED_BYTES_MAX as u64 {
        tracing::warn!("an answer is too long to be kept under its Idempotency-Key");
        note(app, None, by).await;
        return response;
    }
    let (parts, body) = response.into_parts();
    let Ok(bytes) = to_bytes(body, limits::REMEMBERED_BYTES_MAX).await else {
        return Problem::new(StatusCode::INTERNAL_SERVER_ERROR, "the answer could not be kept")
            .into_response();
    };
    let text = std::str::from_utf8(&bytes)
        .ok()
        .and_then(|text| JsonText::parse(text).ok());
    let kept = text.map(|body| {
        let answer = Answer {
            status: parts.status.as_u16(),
            location,
            body,
        };
        (ticket, answer)
    });
    note(app, kept, by).await;
    Response::from_parts(parts, Body::from(bytes))
}

async fn note(app: &App, kept: Option<(Ticket, Answer)>, by: Option<(By, Option<String>)>) {
    if kept.is_none() && by.is_none() {
        return;
    }
    if let Err(error) = desk::keep_answer(&app.engine, kept, by).await {
        tracing::warn!(cause = %error, "an accepted change could not be kept under its Idempotency-Key or in the audit");
    }
}

/// Marks an answer that its handler had kept.
#[derive(Debug, Clone, Copy)]
struct Kept;

/// Marks the answer to a request that changed nothing, whatever its method: there is nothing to remember.
#[derive(Debug, Clone, Copy)]
pub(super) struct Harmless;

/// The field that [`Once::expecting`] reads.
pub(super) const FIELDS: [Param; 1] = [Param::query(
    "expected_version",
    Kind::Integer,
    "The version that the caller believes in, as `If-Match` says it; 0 expects nothing.",
)];

/// The key and the expected version of a request, for a handler whose effect is one transaction.
#[derive(Debug, Clone)]
pub(super) struct Once {
    ticket: Option<Ticket>,
    by: Option<By>,
    principal: Arc<str>,
    expected: Option<Expected>,
}

impl<S: Sync> FromRequestParts<S> for Once {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Once, Problem> {
        let caller = Caller::from_request_parts(parts, state).await?;
        Ok(Once {
            principal: caller.principal,
            ticket: parts.extensions.get::<Ticket>().copied(),
            by: parts.extensions.get::<By>().cloned(),
            expected: Expected::of(&parts.headers),
        })
    }
}

impl Once {
    /// Who asks.
    pub(super) fn principal(&self) -> String {
        self.principal.to_string()
    }

    /// What the request is remembered by.
    pub(super) fn ticket(&self) -> Option<Ticket> {
        self.ticket
    }

    /// The answer is not kept: there is a secret in it.
    pub(super) fn unkept(mut self) -> Once {
        self.ticket = None;
        self
    }

    /// Takes `expected_version` of the body, the other way to say `If-Match`; 0 expects nothing.
    pub(super) fn expecting(self, body: &[u8]) -> Result<Once, Problem> {
        let (fields, faults) = input::object(body, &FIELDS)?;
        self.expecting_among(&fields, faults)
    }

    /// The same where the body has other fields too, whose faults are known by now.
    pub(super) fn expecting_among(
        mut self,
        fields: &Map<String, Value>,
        mut faults: Vec<FieldFault>,
    ) -> Result<Once, Problem> {
        let number = fields.get("expected_version").map(Value::as_u64);
        if number == Some(None) {
            faults.push(input::fault(
                "expected_version",
                "type",
                "must be a whole number, 0 to expect nothing",
            ));
        }
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        let Some(number) = number.flatten().filter(|number| *number > 0) else {
            return Ok(self);
        };
        let number = number.to_string();
        if self
            .expected
            .as_ref()
            .is_some_and(|expected| !expected.is_met_by(&number))
        {
            return Err(Problem::unreadable(
                "`If-Match` and `expected_version` name different versions",
            ));
        }
        self.expected = Some(Expected::version(&number));
        Ok(self)
    }

    /// A wish whose accepted outcome is answered by what `reply` makes of it.
    pub(super) fn ask<T>(
        self,
        reply: impl FnMut(&mut Tx<'_>, &T) -> Result<Option<Answer>, StoreError> + Send + 'static,
    ) -> Asked<T> {
        Asked::new(self.ticket, reply).by(self.by)
    }

    /// The same for a thing that has versions: `version` says the one in force, `None` if there is no such thing.
    pub(super) fn ask_at<T>(
        self,
        mut version: impl FnMut(&mut Tx<'_>) -> Result<Option<String>, StoreError> + Send + 'static,
        reply: impl FnMut(&mut Tx<'_>, &T) -> Result<Option<Answer>, StoreError> + Send + 'static,
    ) -> Asked<T> {
        let asked = Asked::new(self.ticket, reply).by(self.by);
        asked.guarded(move |tx| {
            let current = version(tx)?;
            let is_met = match (&self.expected, &current) {
                (Some(expected), Some(current)) => expected.is_met_by(current),
                (None, _) | (_, None) => true,
            };
            Ok(Version { current, is_met })
        })
    }
}

/// An accepted answer with status 200.
pub(super) fn ok<T: Serialize>(body: &T) -> Answer {
    accepted(StatusCode::OK, None, body)
}

/// An accepted answer.
pub(super) fn accepted<T: Serialize>(status: StatusCode, location: Option<String>, body: &T) -> Answer {
    Answer {
        status: status.as_u16(),
        location,
        body: JsonText::of(body).expect("an answer is plain data"),
    }
}

/// The answer for the wire; `refuse` says why an outcome is none.
pub(super) fn respond<T>(told: Told<T>, refuse: impl FnOnce(T) -> Problem) -> Result<Response, Problem> {
    match told {
        Told::Now(_, Some(answer)) => {
            let mut response = plain(&answer);
            response.extensions_mut().insert(Kept);
            Ok(response)
        }
        Told::Now(outcome, None) => Err(refuse(outcome)),
        Told::Before(answer) => Ok(replayed(&answer)),
        Told::KeyReused => Err(key_reused()),
        Told::Moved(current) => Err(Problem::new(
            StatusCode::PRECONDITION_FAILED,
            format!("the version in force is {current}"),
        )
        .member("current_version", number_or_text(&current))),
    }
}

/// Versions of runs are numbers; others are made of digests.
fn number_or_text(version: &str) -> Value {
    version
        .parse::<u64>()
        .map_or_else(|_| Value::from(version), Value::from)
}

fn replayed(before: &Answer) -> Response {
    let mut response = plain(before);
    response
        .headers_mut()
        .insert("idempotency-replayed", HeaderValue::from_static("true"));
    response.extensions_mut().insert(Kept);
    response
}

fn plain(answer: &Answer) -> Response {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::OK);
    let json = [(header::CONTENT_TYPE, "application/json")];
    let mut response = (status, json, answer.body.as_str().to_owned()).into_response();
    if let Some(Ok(location)) = answer.location.as_deref().map(HeaderValue::from_str) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    response
}

fn key_reused() -> Problem {
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "Idempotency-Key was used for another request",
    )
}
