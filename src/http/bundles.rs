//! `/api/routing/bundle`: all that is declared for routing as one document; what such a document would change; and applying it.

use std::sync::Arc;

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
use crate::config::{self, PlainDocument};
use crate::domain::routing::bundle::{self, Action, Change, Document};
use crate::domain::routing::fault::Fault;
use crate::engine::bundles::{self as desk, Applied};
use crate::engine::changes::bundles::{No, Planned, Wish, counts};
use crate::engine::changes::remember::{Answer, Told};
use crate::store::{StoreError, Tx};
use crate::words::limits;

/// Times that an application is planned anew because something else was declared in between.
const TRIES: usize = 5;
/// Where requests with documents go.
pub(super) const HEAD: &str = "/api/routing/bundle:";
/// What faults call the text of a body.
const NAME: &str = "bundle";
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
    let asking = read(body).await?;
    let tenancy = app.engine.tenancy(caller.tenant).await?;
    let looked = desk::look(&app.engine, tenancy, asking.document.clone(), asking.wish.clone());
    let planned = looked.await?.map_err(|no| asking.refuse(no))?;
    Ok(harmless(&shown(&planned)))
}

/// Applies a document: all of it, or nothing.
pub(super) async fn apply(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let asking = read(body).await?;
    let Asking { document, wish, .. } = &asking;
    for _ in 0..TRIES {
        let tenancy = app.engine.tenancy(caller.tenant).await?;
        let looked = desk::look(&app.engine, tenancy, document.clone(), wish.clone());
        let planned = looked.await?.map_err(|no| asking.refuse(no))?;
        let failing = bundle::failing(&planned.tests);
        if !failing.is_empty() {
            return Err(asking.refuse(No::Invalid(failing)));
        }
        if let Some(first) = planned.conflicts.first() {
            return Err(refuse(No::Conflict(first.clone())));
        }
        if wish.dry_run {
            return Ok(harmless(&applied(&planned)));
        }
        let asked = once.clone().ask(reply);
        let (by, name) = (routing::wisher(&app, &caller), document.name.clone());
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

/// One object and what differs in it.
pub(super) fn change_view(change: &Change) -> Value {
    let fields: Vec<Value> = change
        .fields
        .iter()
        .map(|(pointer, from, to)| json!({"pointer": pointer, "from": from, "to": to}))
        .collect();
    json!({"kind": change.kind, "name": change.name, "action": change.action.word(), "fields": fields})
}

/// The diff as it is answered.
fn shown(planned: &Planned) -> Value {
    let plan = &planned.plan;
    let news = plan.changes.iter().filter(|one| one.action != Action::Noop);
    let warnings = plan.warnings.iter().chain(&planned.conflicts);
    json!({
        "digest_current": plan.digest_current, "digest_after": plan.digest_after, "counts": counts(plan),
        "changes": news.map(change_view).collect::<Vec<Value>>(),
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

/// What is asked for.
#[derive(Debug, Clone)]
struct Asking {
    document: Document,
    wish: Wish,
    /// The document as it was written, if it was YAML.
    text: Option<Arc<str>>,
}

impl Asking {
    /// Faults with the places of the text, where there is one.
    fn refuse(&self, no: No) -> Problem {
        let No::Invalid(faults) = no else {
            return refuse(no);
        };
        let places = self
            .text
            .as_ref()
            .and_then(|text| config::read_bundle(NAME, text).ok());
        let placed = faults.into_iter().map(|fault| match &places {
            Some(places) => placed(places, fault),
            None => in_body(fault),
        });
        Problem::faulty(placed.collect())
    }
}

/// The fault of a document with its line and column.
fn placed(places: &PlainDocument, fault: Fault) -> Fault {
    let at = places.place(&fault.pointer).filter(|at| at.line > 0).cloned();
    let is_of_document = fault.pointer != "/drain_to";
    let fault = in_body(fault);
    match at {
        Some(at) if is_of_document => fault.member("line", at.line).member("column", at.column),
        Some(_) | None => fault,
    }
}

/// Reads a body, which may be long.
async fn read(body: Bytes) -> Result<Asking, Problem> {
    match tokio::task::spawn_blocking(move || read_now(&body)).await {
        Ok(read) => read,
        Err(defect) => std::panic::resume_unwind(defect.into_panic()),
    }
}

fn read_now(body: &[u8]) -> Result<Asking, Problem> {
    let fields = strict_fields(body)?;
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
    let mut written = None;
    let document = match fields.get("bundle") {
        Some(Value::String(text)) => {
            written = Some(Arc::from(text.as_str()));
            read_yaml(text)
        }
        Some(value) => read_object(value),
        None => {
            let detail = "the document, as an object or as YAML in a text";
            Err(vec![Fault::new("/bundle", "field.required", detail)])
        }
    };
    match document {
        Ok(document) if faults.is_empty() => Ok(Asking {
            document,
            wish,
            text: written,
        }),
        Ok(_) => Err(Problem::faulty(faults)),
        Err(wrong) => {
            faults.extend(wrong);
            Err(Problem::faulty(faults))
        }
    }
}

/// The fields of a body in which no key stands twice.
fn strict_fields(body: &[u8]) -> Result<Map<String, Value>, Problem> {
    let text = std::str::from_utf8(body).map_err(|_| Problem::unreadable("the body is not UTF-8"))?;
    match config::strict_json(text) {
        Err(wrong) if wrong.is_twice => {
            let (line, column) = (wrong.line, wrong.column);
            let detail = format!("line {line}, column {column}: {}", wrong.why);
            let fault = Fault::new("", "bundle.syntax", detail);
            let fault = fault.member("line", line).member("column", column);
            Err(Problem::faulty(vec![fault]))
        }
        Ok(Value::Object(fields)) => Ok(fields),
        Ok(_) | Err(_) => routing::fields(body),
    }
}

fn read_object(value: &Value) -> Result<Document, Vec<Fault>> {
    if !is_short(value) {
        let detail = format!("a document may have at most {} bytes", limits::BUNDLE_BYTES_MAX);
        return Err(vec![Fault::new("/bundle", "bundle.too_large", detail)]);
    }
    Document::read(value).map_err(|faults| faults.into_iter().map(in_body).collect())
}

/// Written out, it is no longer than a text may be.
fn is_short(value: &Value) -> bool {
    let mut counted = Counted(0);
    serde_json::to_writer(&mut counted, value).is_ok()
}

/// Counts what is written, up to the longest document.
struct Counted(usize);

impl std::io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 += bytes.len();
        if self.0 > limits::BUNDLE_BYTES_MAX {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

fn read_yaml(text: &str) -> Result<Document, Vec<Fault>> {
    let read = config::read_bundle(NAME, text).map_err(|fault| {
        if fault.at.line == 0 {
            return vec![Fault::new("/bundle", "bundle.too_large", fault.message)];
        }
        let (line, column) = (fault.at.line, fault.at.column);
        let detail = format!("line {line}, column {column}: {}", fault.message);
        let fault = Fault::new("/bundle", "bundle.syntax", detail);
        vec![fault.member("line", line).member("column", column)]
    })?;
    let document = Document::read(&read.value);
    document.map_err(|faults| faults.into_iter().map(|fault| placed(&read, fault)).collect())
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
