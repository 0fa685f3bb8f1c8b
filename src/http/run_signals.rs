//! What people tell the run of a graph: to pause and to go on, and answers to its checkpoints and approvals.

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::input;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::runs::{self, Data};
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::document::StepDoc;
use crate::domain::workflow::graph::key::Key;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::engine::changes::signal::Signalled;
use crate::engine::runs as desk;
use crate::store::graph_rows::StoredFact;
use crate::store::tables::CHECKPOINTS;
use crate::store::{Rows, runs as store_runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// The fields of a pause.
pub(super) const PAUSE: [Param; 1] = [Param::query("reason", Kind::Text, "Why, for people.")];
/// The fields of a decision.
pub(super) const DECIDE: [Param; 1] = [Param::query("note", Kind::Text, "Why, for people.")];
/// The fields of an answer to a checkpoint.
pub(super) const RESUME: [Param; 1] = [Param::query(
    "value",
    Kind::Any,
    "What the step gives on; null unless given.",
)];

/// The answer to what was told.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Told {
    id: String,
    /// `accepted`: it is kept, and the run takes it a moment later.
    state: &'static str,
}

/// A step that waits for somebody.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CheckpointView {
    /// `RUN:STEP`.
    id: String,
    run: String,
    workflow: String,
    step: String,
    /// Its title, where it has one.
    title: Option<String>,
    /// JSON Schema of the answer, where the definition has one.
    schema: Option<Value>,
    /// Scopes of those who may decide; anybody who may approve, without any.
    approvers: Vec<String>,
    /// `approval` or `checkpoint`.
    kind: &'static str,
    since: String,
    /// It fails then, unless somebody answers.
    until: Option<String>,
}

fn note_of(body: &[u8], fields: &'static [Param], name: &str) -> Result<String, Problem> {
    let (fields, mut faults) = input::object(body, fields)?;
    let note = match fields.get(name) {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) if text.chars().count() <= limits::NOTE_CHARS_MAX => text.clone(),
        Some(_) => {
            let detail = format!("must be a text of up to {} characters", limits::NOTE_CHARS_MAX);
            faults.push(FieldFault {
                pointer: format!("/{name}"),
                code: "type",
                detail,
            });
            String::new()
        }
    };
    if faults.is_empty() {
        Ok(note)
    } else {
        Err(Problem::invalid(faults))
    }
}

async fn tell(app: &App, text: &str, fact: StoredFact, once: Once) -> Result<Response, Problem> {
    let id = runs::id_of(text)?;
    let shown = id.to_string();
    let asked = once.ask(move |_, signalled: &Signalled| {
        let data = Told {
            id: shown.clone(),
            state: "accepted",
        };
        let kept = *signalled == Signalled::Kept;
        Ok(kept.then(|| once::accepted(StatusCode::ACCEPTED, None, &Data { data })))
    });
    let told = desk::tell(&app.engine, id, fact, asked).await?;
    once::respond(told, |signalled| match signalled {
        Signalled::Refused(why) => Problem::forbidden_by_state(why),
        Signalled::NotFound | Signalled::Kept => runs::not_found(text),
    })
}

/// Holds a run.
pub(super) async fn pause(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let reason = note_of(&body, &PAUSE, "reason")?;
    let by = once.principal();
    tell(&app, &text, StoredFact::Pause { by, reason }, once).await
}

/// Lets a run go on.
pub(super) async fn resume(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let by = once.principal();
    tell(&app, &text, StoredFact::Unpause { by }, once).await
}

/// The run and the step of a checkpoint's id.
fn place_of(id: &str) -> Result<(String, StepRef), Problem> {
    let shown: String = id.chars().take(96).collect();
    let missing = || Problem::not_found(format!("checkpoint '{shown}' not found; an id is RUN:STEP"));
    let (run, step) = id.split_once(':').ok_or_else(missing)?;
    let step = StepRef::new(step).ok_or_else(missing)?;
    Ok((run.to_owned(), step))
}

async fn decide(app: &App, id: &str, approve: bool, once: Once, body: &[u8]) -> Result<Response, Problem> {
    let note = note_of(body, &DECIDE, "note")?;
    let (run, step) = place_of(id)?;
    let fact = StoredFact::Decide {
        step,
        approve,
        note,
        by: once.principal(),
    };
    tell(app, &run, fact, once).await
}

/// Approves.
pub(super) async fn approve(
    State(app): State<App>,
    Path(id): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    decide(&app, &id, true, once, &body).await
}

/// Rejects.
pub(super) async fn reject(
    State(app): State<App>,
    Path(id): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    decide(&app, &id, false, once, &body).await
}

/// Resumes a checkpoint with a value.
pub(super) async fn answer(
    State(app): State<App>,
    Path(id): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (mut fields, faults) = input::object(&body, &RESUME)?;
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let value = fields.remove("value").unwrap_or(Value::Null);
    let (run, step) = place_of(&id)?;
    // What its definition does not take is refused before anything of it is kept.
    let of = runs::id_of(&run)?;
    let issues = desk::faults_of_answer(&app.engine, of, step.clone(), value.clone()).await?;
    if !issues.is_empty() {
        return Err(input::against_schema("/value", &issues));
    }
    let value = payload(&app, &value).await?;
    let fact = StoredFact::Resume {
        step,
        value,
        by: once.principal(),
    };
    tell(&app, &run, fact, once).await
}

async fn payload(app: &App, value: &Value) -> Result<Payload, Problem> {
    let json = JsonText::of(value).map_err(|error| Problem::unreadable(error.to_string()))?;
    let blobs = app.engine.store.blobs();
    let put = tokio::task::spawn_blocking(move || blobs.put_json(json)).await;
    match put {
        Ok(Ok(payload)) => Ok(payload),
        Ok(Err(error)) => Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, error.to_string())),
        Err(_) => Err(Problem::unavailable()),
    }
}

/// Everything that waits for somebody.
pub(super) async fn list(State(app): State<App>) -> Result<Response, Problem> {
    let shelf = app.engine.graphs.clone();
    let open = app.engine.read(move |tx| {
        let mut open = Vec::new();
        for ((_, run, step), row) in tx.scan(&CHECKPOINTS, &(TENANT,), None, limits::PAGE_MAX)? {
            let header = store_runs::by_id(tx, run)?;
            let graph = match &header {
                // What cannot be read says less, and hides no other.
                Some(run) => shelf.get(tx, &run.definition, run.version).unwrap_or(None),
                None => None,
            };
            let until = store_runs::step(tx, run, &step)?.and_then(|state| state.graph?.timer);
            let doc = graph.as_deref().and_then(|graph| {
                let key = Key::of_name(graph, &step)?;
                Some(&graph.node(key.node).doc)
            });
            open.push(CheckpointView {
                id: format!("{run}:{step}"),
                run: run.to_string(),
                workflow: header.map(|run| run.definition.to_string()).unwrap_or_default(),
                step: step.to_string(),
                title: doc.map(|doc| doc.title.clone()).filter(|title| !title.is_empty()),
                schema: doc.and_then(schema_of),
                approvers: doc.map(approvers_of).unwrap_or_default(),
                kind: if row.approval { "approval" } else { "checkpoint" },
                since: row.since.to_string(),
                until: until.map(|until| until.to_string()),
            });
        }
        Ok(open)
    });
    let data = open.await?;
    Ok(Json(json!({"data": data, "pagination": {}})).into_response())
}

fn schema_of(doc: &StepDoc) -> Option<Value> {
    if let StepKind::Checkpoint(checkpoint) = &doc.kind {
        checkpoint.schema.clone()
    } else {
        None
    }
}

fn approvers_of(doc: &StepDoc) -> Vec<String> {
    if let StepKind::Approval(approval) = &doc.kind {
        approval.approvers.clone()
    } else {
        Vec::new()
    }
}
