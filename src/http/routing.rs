//! What the routes of declared objects share: bodies, answers, refusals, views.

use std::str::FromStr;

use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::{input, version};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::print::View;
use crate::engine::changes::declared::{Done, Outcome, Refusal, Wisher};
use crate::engine::changes::remember::Answer;
use crate::engine::routing_objects::declare;
use crate::store::{Abort, StoreError, Tx};

/// How much of an object is shown.
pub(super) const VIEW: Param = Param::query(
    "view",
    Kind::OneOf(&["set", "effective"]),
    "`set` (unless given): the fields that were set; `effective`: with the defaults of all others.",
);
/// The version that a change rests on.
pub(super) const EXPECTED: Param = Param::query(
    "expected_version",
    Kind::Integer,
    "The version that the caller believes in, as `If-Match` says it; 0 expects nothing.",
);

/// Who wants something.
pub(super) fn wisher(app: &App, caller: &Caller) -> Wisher {
    Wisher {
        tenant: caller.tenant,
        principal: caller.principal.to_string(),
        egress: app.engine.book().egress.clone(),
    }
}

/// The fields of a body; they are judged by the reader of the object.
pub(super) fn fields(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::unreadable("the body is not UTF-8"))?;
    if text.trim().is_empty() {
        return Ok(Map::new());
    }
    let value: Value = serde_json::from_str(text)
        .map_err(|error| Problem::unreadable(format!("the body is not JSON: {error}")))?;
    match value {
        Value::Object(fields) => Ok(fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            let fault = Fault::new("", "field.type", "the body must be an object");
            Err(Problem::faulty(vec![fault]))
        }
    }
}

/// The fields of a body without `expected_version`, which goes to the guard.
pub(super) fn guarded_fields(once: Once, body: &[u8]) -> Result<(Once, Map<String, Value>), Problem> {
    let mut fields = fields(body)?;
    let once = once.expecting_among(&fields, Vec::new())?;
    fields.remove("expected_version");
    Ok((once, fields))
}

/// The version that a query expects, for changes without a body.
pub(super) fn guarded_query(once: Once, pairs: &[(String, String)]) -> Result<Once, Problem> {
    let Some(number) = input::number(pairs, "expected_version", 0, u64::MAX)? else {
        return Ok(once);
    };
    let fields = Map::from_iter([("expected_version".to_owned(), Value::from(number))]);
    once.expecting_among(&fields, Vec::new())
}

/// An id of the path: what is no id names nothing.
pub(super) fn id_of<T: FromStr>(kind: &'static str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| missing(kind, text))
}

/// There is no such object.
pub(super) fn missing(kind: &'static str, id: &str) -> Problem {
    let shown: String = id.chars().take(64).collect();
    let (code, word) = match kind {
        "pool" => ("pool.not_found", "pool"),
        "recipient" => ("recipient.not_found", "recipient"),
        "rule" => ("rule.not_found", "rule"),
        "trait" => ("trait.not_found", "trait"),
        "shadow_campaign" => ("shadow_campaign.not_found", "shadow campaign"),
        _ => ("claim_queue.not_found", "claim queue"),
    };
    let detail = format!("there is no {word} `{shown}`");
    Problem::not_found(detail.clone()).with_faults(vec![Fault::new("", code, detail)])
}

/// How much of an object a query asks for.
pub(super) fn view_of(pairs: &[(String, String)]) -> Result<View, Problem> {
    match input::last(pairs, "view") {
        None | Some("set") => Ok(View::Set),
        Some("effective") => Ok(View::Effective),
        Some(_) => Err(Problem::unreadable("`view` must be `set` or `effective`")),
    }
}

/// An answer with what may be meant otherwise.
#[derive(Serialize)]
struct Said<'d> {
    data: &'d Value,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    warnings: Vec<Value>,
}

/// A fault as the wire has it: its parameters stand beside it.
pub(super) fn fault_view(fault: &Fault) -> Value {
    let mut view = fault.members.clone();
    view.insert("pointer".to_owned(), Value::from(fault.pointer.as_str()));
    view.insert("code".to_owned(), Value::from(fault.code));
    view.insert("detail".to_owned(), Value::from(fault.detail.as_str()));
    Value::from(view)
}

/// The accepted answer; `place` is where a created object is found.
pub(super) fn reply(outcome: &Outcome, place: Option<&str>) -> Option<Answer> {
    let Outcome::Done(Done { id, shown, warnings }) = outcome else {
        return None;
    };
    let body = Said {
        data: shown,
        warnings: warnings.iter().map(fault_view).collect(),
    };
    Some(match place {
        Some(place) => once::accepted(StatusCode::CREATED, Some(format!("{place}/{id}")), &body),
        None => once::ok(&body),
    })
}

/// Why nothing was written.
pub(super) fn refuse(outcome: Outcome) -> Problem {
    let refusal = match outcome {
        Outcome::Refused(refusal) => refusal,
        Outcome::Done(_) => unreachable!("what is done has an answer"),
    };
    match refusal {
        Refusal::Invalid(faults) => Problem::faulty(faults),
        Refusal::Missing(kind, id) => missing(kind, &id),
        Refusal::Full(detail) => Problem::forbidden_by_state(detail).code("RESOURCE_EXHAUSTED"),
        Refusal::Conflict(fault) => {
            let class = if fault.code.ends_with("_taken") {
                "ALREADY_EXISTS"
            } else {
                "FAILED_PRECONDITION"
            };
            Problem::forbidden_by_state(fault.detail.clone())
                .code(class)
                .with_faults(vec![fault])
        }
    }
}

/// Creates an object; `place` is the path of its kind.
pub(super) async fn create<F>(
    app: &App,
    once: Once,
    name: &'static str,
    place: &'static str,
    change: F,
) -> Result<Response, Problem>
where
    F: FnMut(&mut Tx<'_>) -> Result<Outcome, Abort> + Send + 'static,
{
    let asked = once.ask(move |_, outcome: &Outcome| Ok(reply(outcome, Some(place))));
    once::respond(declare(&app.engine, name, asked, change).await?, refuse)
}

/// Changes an object that has a version.
pub(super) async fn change<G, F>(
    app: &App,
    once: Once,
    name: &'static str,
    mut version_of: G,
    change: F,
) -> Result<Response, Problem>
where
    G: FnMut(&mut Tx<'_>) -> Result<Option<u64>, StoreError> + Send + 'static,
    F: FnMut(&mut Tx<'_>) -> Result<Outcome, Abort> + Send + 'static,
{
    let asked = once.ask_at(
        move |tx| Ok(version_of(tx)?.map(|version| version.to_string())),
        |_, outcome: &Outcome| Ok(reply(outcome, None)),
    );
    once::respond(declare(&app.engine, name, asked, change).await?, refuse)
}

/// One object with its tag, and with what may be meant otherwise or goes wrong with it.
pub(super) fn show_warned(headers: &axum::http::HeaderMap, shown: &Value, warnings: &[Fault]) -> Response {
    let number = shown["record_version"].as_u64().unwrap_or(0);
    let view = Said {
        data: shown,
        warnings: warnings.iter().map(fault_view).collect(),
    };
    version::tagged(headers, &number.to_string(), view)
}

/// One object with its tag.
pub(super) fn show(headers: &axum::http::HeaderMap, shown: Value) -> Response {
    let number = shown["record_version"].as_u64().unwrap_or(0);
    let view = super::runs::Data { data: shown };
    version::tagged(headers, &number.to_string(), view)
}
