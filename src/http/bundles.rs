//! `/api/routing/bundle`: all that is declared for routing as one document; what such a document would change; and applying it.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Harmless, Once};
use super::param::{Kind, Param};
use super::routing::{self, fault_view};
use crate::config;
use crate::domain::routing::bundle::{self, Action, Change, Document};
use crate::domain::routing::fault::Fault;
use crate::engine::bundles::{self as desk, Applied};
use crate::engine::changes::bundles::{No, Planned, Wish, counts};
use crate::engine::changes::remember::{Answer, Told};
use crate::store::{StoreError, Tx};

/// Times that an application is planned anew because something else was declared in between.
const TRIES: usize = 5;
/// What a document is called that nobody has applied as one.
const NAMELESS: &str = "exported";

/// The fields of the body.
pub(super) const FIELDS: [Param; 5] = [
    Param::query(
        "bundle",
        Kind::Any,
        "The document: an object, or its YAML in a text.",
    )
    .needed(),
    Param::query(
        "expect_digest",
        Kind::Text,
        "Only if what is declared still has this digest.",
    ),
    Param::query(
        "prune",
        Kind::Flag,
        "Objects that this bundle once applied and no longer has go.",
    ),
    Param::query(
        "drain_to",
        Kind::Text,
        "The pool where the waiting work of pools that go waits then.",
    ),
    Param::query(
        "dry_run",
        Kind::Flag,
        "Says what would change, and changes nothing.",
    ),
];

/// What is declared, as a document.
pub(super) async fn export(State(app): State<App>, caller: Caller) -> Result<Json<Value>, Problem> {
    let found = desk::topology(&app.engine, caller.tenant)
        .await?
        .map_err(refuse)?;
    let document = found.document(found.owner().unwrap_or(NAMELESS));
    let data = json!({"digest": found.digest(), "yaml": bundle::yaml(&document), "bundle": document});
    Ok(Json(json!({"data": data})))
}

/// What a document would change.
pub(super) async fn diff(State(app): State<App>, caller: Caller, body: Bytes) -> Result<Response, Problem> {
    let (document, wish) = read(&body)?;
    let tenancy = app.engine.tenancy(caller.tenant).await?;
    let looked = desk::look(&app.engine, tenancy, document, wish).await?;
    Ok(harmless(&shown(&looked.map_err(refuse)?)))
}

/// Applies a document: all of it, or nothing.
pub(super) async fn apply(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (document, wish) = read(&body)?;
    for _ in 0..TRIES {
        let tenancy = app.engine.tenancy(caller.tenant).await?;
        let looked = desk::look(&app.engine, tenancy, document.clone(), wish.clone());
        let planned = looked.await?.map_err(refuse)?;
        let failing = failing_tests(&planned);
        if !failing.is_empty() {
            return Err(Problem::faulty(failing));
        }
        if let Some(first) = planned.conflicts.first() {
            return Err(refuse(No::Conflict(first.clone())));
        }
        if wish.dry_run {
            return Ok(harmless(&applied(&planned)));
        }
        let asked = once.clone().ask(reply);
        let (by, name) = (routing::wisher(&caller), document.name.clone());
        let told = desk::apply(&app.engine, by, name, planned, asked).await?;
        if matches!(told, Told::Now(Err(No::Stale), None)) {
            continue;
        }
        return once::respond(told, |applied| match applied {
            Err(no) => refuse(no),
            Ok(_) => unreachable!("what is applied has an answer"),
        });
    }
    Err(refuse(No::Stale))
}

#[expect(clippy::unnecessary_wraps, reason = "the shape of every reply")]
fn reply(_: &mut Tx<'_>, done: &Applied) -> Result<Option<Answer>, StoreError> {
    let planned = done.as_ref().ok();
    Ok(planned.map(|planned| once::ok(&json!({"data": applied(planned)}))))
}

fn harmless(data: &Value) -> Response {
    let mut response = Json(json!({"data": data})).into_response();
    response.extensions_mut().insert(Harmless);
    response
}

fn failing_tests(planned: &Planned) -> Vec<Fault> {
    let all = planned.tests.iter().enumerate();
    all.filter(|(_, test)| !test.ok)
        .map(|(index, test)| {
            let detail = format!("{}: {}", test.name, test.detail);
            Fault::new(format!("/bundle/tests/{index}"), "bundle.test_failed", detail)
        })
        .collect()
}

/// The diff as it is answered.
fn shown(planned: &Planned) -> Value {
    let plan = &planned.plan;
    let change = |one: &Change| {
        let fields: Vec<Value> = one
            .fields
            .iter()
            .map(|(pointer, from, to)| json!({"pointer": pointer, "from": from, "to": to}))
            .collect();
        json!({"kind": one.kind, "name": one.name, "action": one.action.word(), "fields": fields})
    };
    let news = plan.changes.iter().filter(|one| one.action != Action::Noop);
    let warnings = plan.warnings.iter().chain(&planned.conflicts);
    json!({
        "digest_current": plan.digest_current, "digest_after": plan.digest_after, "counts": counts(plan),
        "changes": news.map(change).collect::<Vec<Value>>(),
        "warnings": warnings.map(fault_view).collect::<Vec<Value>>(),
        "tests": planned.tests.iter().map(Value::from).collect::<Vec<Value>>(),
    })
}

fn applied(planned: &Planned) -> Value {
    let mut answer = shown(planned);
    answer["digest"] = Value::from(planned.plan.digest_after.as_str());
    answer
}

fn refuse(no: No) -> Problem {
    match no {
        No::Invalid(faults) => Problem::faulty(faults.into_iter().map(in_body).collect()),
        No::Conflict(fault) => Problem::forbidden_by_state(fault.detail.clone())
            .code("FAILED_PRECONDITION")
            .with_faults(vec![fault]),
        No::Moved(current) => {
            let detail = format!("something was declared since: the digest is {current}");
            let fault = Fault::new("/expect_digest", "bundle.digest_conflict", detail.clone());
            Problem::new(StatusCode::PRECONDITION_FAILED, detail)
                .with_faults(vec![fault])
                .member("digest_current", current)
        }
        No::Full(detail) => Problem::forbidden_by_state(detail).code("RESOURCE_EXHAUSTED"),
        No::Stale => {
            let detail = "others declare objects all the time; try again";
            Problem::forbidden_by_state(detail).code("ABORTED")
        }
    }
}

/// The place of a fault of the document in the body.
fn in_body(fault: Fault) -> Fault {
    if fault.pointer == "/drain_to" {
        return fault;
    }
    let pointer = format!("/bundle{}", fault.pointer);
    Fault { pointer, ..fault }
}

fn read(body: &[u8]) -> Result<(Document, Wish), Problem> {
    let fields = routing::fields(body)?;
    let mut faults: Vec<Fault> = Vec::new();
    for key in fields
        .keys()
        .filter(|key| FIELDS.iter().all(|field| field.name != key.as_str()))
    {
        let pointer = format!("/{}", super::input::escaped(key));
        faults.push(Fault::new(pointer, "field.unknown", "unknown field"));
    }
    let wish = Wish {
        expect_digest: text(&fields, "expect_digest", &mut faults),
        prune: truth(&fields, "prune", &mut faults),
        drain_to: text(&fields, "drain_to", &mut faults),
        dry_run: truth(&fields, "dry_run", &mut faults),
    };
    let document = match fields.get("bundle") {
        Some(Value::String(text)) => read_yaml(text).and_then(|value| read_document(&value)),
        Some(value) => read_document(value),
        None => {
            let detail = "the document, as an object or as YAML in a text";
            Err(vec![Fault::new("/bundle", "field.required", detail)])
        }
    };
    match document {
        Ok(document) if faults.is_empty() => Ok((document, wish)),
        Ok(_) => Err(Problem::faulty(faults)),
        Err(wrong) => {
            faults.extend(wrong);
            Err(Problem::faulty(faults))
        }
    }
}

fn read_document(value: &Value) -> Result<Document, Vec<Fault>> {
    Document::read(value).map_err(|faults| faults.into_iter().map(in_body).collect())
}

fn read_yaml(text: &str) -> Result<Value, Vec<Fault>> {
    let read = config::read_plain("bundle", text);
    read.map(|document| document.value).map_err(|fault| {
        let (line, column) = (fault.at.line, fault.at.column);
        let detail = format!("line {line}, column {column}: {}", fault.message);
        let fault = Fault::new("/bundle", "bundle.syntax", detail);
        vec![fault.member("line", line).member("column", column)]
    })
}

fn text(fields: &Map<String, Value>, name: &str, faults: &mut Vec<Fault>) -> Option<String> {
    match fields.get(name) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            faults.push(Fault::new(format!("/{name}"), "field.type", "must be a text"));
            None
        }
    }
}

fn truth(fields: &Map<String, Value>, name: &str, faults: &mut Vec<Fault>) -> bool {
    match fields.get(name) {
        None | Some(Value::Null) => false,
        Some(Value::Bool(truth)) => *truth,
        Some(_) => {
            let detail = "must be true or false";
            faults.push(Fault::new(format!("/{name}"), "field.type", detail));
            false
        }
    }
}
