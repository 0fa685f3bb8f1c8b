//! `:dry_run`: how a run of a workflow would go. Nothing is kept, nothing is executed, nothing is waited for.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::input;
use super::once::Harmless;
use super::param::{Kind, Param};
use super::runs::Data;
use super::workflows::{TENANT, document_of, named, not_found};
use crate::domain::workflow::graph::build::Graph;
use crate::domain::workflow::graph::check::{check_input, levels};
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::finding::below;
use crate::domain::workflow::graph::simulate::{Assumed, SimulatedStep, Simulation, simulate};
use crate::engine::definitions;
use crate::store::tables::{WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{Rows, StoreError};
use crate::words::names::JobName;
use crate::words::payload::JsonText;

const INPUT: Param = Param::query("input", Kind::Any, "The input of the run; null unless given.");
const ASSUME: Param = Param::query(
    "assume",
    Kind::Any,
    "Outputs of what others do, by the name of a step or of one branch (`fetch#3`); null unless given.",
);
const FAIL: Param = Param::query(
    "fail",
    Kind::Any,
    "Names of steps or branches that are assumed to fail.",
);

/// The fields of a dry run of what is stored.
pub(super) const FIELDS: [Param; 4] = [
    INPUT,
    ASSUME,
    FAIL,
    Param::query(
        "version",
        Kind::Any,
        "The number of a version; without it the draft if there is one, else the newest.",
    ),
];

/// The fields of a dry run of a document that is not kept.
pub(super) const POSTED_FIELDS: [Param; 4] = [
    Param::query("document", Kind::Any, "The document.").needed(),
    INPUT,
    ASSUME,
    FAIL,
];

/// How a run would go.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DryRun {
    /// The state in which it would end; `running` if it would wait for ever.
    state: &'static str,
    reason: Option<String>,
    output: Value,
    /// What it would wait for by timers alone, in milliseconds.
    waited_ms: u64,
    /// In the order in which they would end.
    steps: Vec<DryStep>,
    /// There are so many steps that the rest is left out.
    cut: bool,
}

/// A step of a dry run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DryStep {
    /// Its name; with its branch behind `#`.
    r#ref: String,
    r#type: &'static str,
    state: &'static str,
    /// Its output is assumed: somebody else would make it.
    assumed: bool,
    output: Value,
    reason: Option<String>,
}

impl DryRun {
    fn of(found: Simulation) -> DryRun {
        let step = |step: SimulatedStep| DryStep {
            r#ref: step.name,
            r#type: step.kind,
            state: step.state,
            assumed: step.assumed,
            output: step.output,
            reason: step.reason,
        };
        DryRun {
            state: found.state,
            reason: found.reason,
            output: found.output,
            waited_ms: found.waited_ms,
            steps: found.steps.into_iter().map(step).collect(),
            cut: found.cut,
        }
    }
}

/// A dry run of a draft or version.
pub(super) async fn of_stored(
    State(app): State<App>,
    Path(slug): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &FIELDS)?;
    let assumed = assumed(&fields, &mut faults);
    let version = fields.get("version").filter(|value| !value.is_null());
    let number = version
        .and_then(Value::as_u64)
        .and_then(|number| u32::try_from(number).ok());
    if version.is_some() && number.is_none() {
        faults.push(input::fault("version", "type", "must be the number of a version"));
    }
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let name = named(&slug)?;
    let wanted = name.clone();
    let found = app.engine.read(move |tx| stored(tx, &wanted, number)).await?;
    let text = found.ok_or_else(|| match number {
        Some(number) => Problem::not_found(format!("workflow '{name}' has no version {number}")),
        None => not_found(&slug),
    })?;
    let document: Value = text.read().expect("checked when it was stored");
    go(&app, document, "", (fields, assumed)).await
}

fn stored(
    rows: &mut impl Rows,
    name: &JobName,
    version: Option<u32>,
) -> Result<Option<JsonText>, StoreError> {
    if let Some(version) = version {
        let row = rows.get(&WORKFLOW_VERSIONS, &(TENANT, name.clone(), version))?;
        return Ok(row.map(|row| row.posted));
    }
    match rows.get(&WORKFLOWS, &(TENANT, name.clone()))? {
        Some(record) => document_of(rows, name, &record),
        None => Ok(None),
    }
}

/// A dry run of a document that is not kept.
pub(super) async fn of_posted(State(app): State<App>, body: Bytes) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &POSTED_FIELDS)?;
    let assumed = assumed(&fields, &mut faults);
    let Some(document) = fields.get("document").cloned() else {
        faults.push(input::fault("document", "required", "say which document"));
        return Err(Problem::invalid(faults));
    };
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    go(&app, document, "/document", (fields, assumed)).await
}

/// What is assumed of others.
fn assumed(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> Assumed {
    let mut assumed = Assumed::default();
    match fields.get("assume") {
        None | Some(Value::Null) => {}
        Some(Value::Object(outputs)) => {
            let outputs = outputs
                .iter()
                .map(|(name, output)| (name.clone(), output.clone()));
            assumed.outputs = outputs.collect::<BTreeMap<_, _>>();
        }
        Some(_) => faults.push(input::fault(
            "assume",
            "type",
            "must be an object: outputs by the names of steps",
        )),
    }
    match fields.get("fail") {
        None | Some(Value::Null) => {}
        Some(Value::Array(names)) if names.iter().all(Value::is_string) => {
            let names = names.iter().filter_map(Value::as_str).map(str::to_owned);
            assumed.failing = names.collect::<BTreeSet<_>>();
        }
        Some(_) => faults.push(input::fault("fail", "type", "must be a list of names of steps")),
    }
    assumed
}

async fn go(
    app: &App,
    document: Value,
    at: &str,
    (mut fields, assumed): (Map<String, Value>, Assumed),
) -> Result<Response, Problem> {
    let judged = definitions::judge_posted(&app.engine, Arc::new(document)).await?;
    let Some(document) = judged.document else {
        let faults = judged.findings.into_iter().map(|finding| FieldFault {
            pointer: format!("{at}{}", finding.pointer),
            code: finding.code,
            detail: finding.message,
        });
        return Err(
            Problem::invalid(faults.collect()).saying("the document has no good form, so it cannot run")
        );
    };
    check_names(&document, &assumed)?;
    let input = fields.remove("input").unwrap_or_default();
    let wrong = check_input(&document, &input)
        .into_iter()
        .map(|finding| FieldFault {
            pointer: format!("/input{}", finding.pointer),
            code: finding.code,
            detail: finding.message,
        });
    let wrong: Vec<FieldFault> = wrong.collect();
    if !wrong.is_empty() {
        return Err(Problem::invalid(wrong));
    }
    let now = app.engine.now().wall;
    let running = tokio::task::spawn_blocking(move || {
        let name = JobName::new(&document.family_slug).expect("judged before");
        let graph = Graph::build(document).map_err(|error| error.to_string())?;
        Ok(simulate(&graph, &name, input, &assumed, now))
    });
    let found: Result<Simulation, String> = match running.await {
        Ok(found) => found,
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let found = found.map_err(Problem::forbidden_by_state)?;
    let data = DryRun::of(found);
    Ok((Extension(Harmless), Json(Data { data })).into_response())
}

/// A name that is no step would be passed over.
fn check_names(document: &Document, assumed: &Assumed) -> Result<(), Problem> {
    let levels = levels(document);
    let steps = levels.iter().flat_map(|level| level.steps);
    let known: BTreeSet<&str> = steps.map(|step| step.name.as_str()).collect();
    let is_known = |name: &str| known.contains(name.split('#').next().unwrap_or_default());
    let fault = |pointer: String, name: &str| FieldFault {
        pointer,
        code: "workflow.unknown_step",
        detail: format!("there is no step `{name}`"),
    };
    let outputs = assumed.outputs.keys().filter(|name| !is_known(name));
    let outputs = outputs.map(|name| fault(below("/assume", name), name));
    let failing = assumed.failing.iter().filter(|name| !is_known(name));
    let failing = failing.map(|name| fault("/fail".to_owned(), name));
    let faults: Vec<FieldFault> = outputs.chain(failing).collect();
    if faults.is_empty() {
        Ok(())
    } else {
        Err(Problem::invalid(faults))
    }
}
