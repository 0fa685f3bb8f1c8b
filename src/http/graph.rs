//! The picture of a workflow, and of a run as it stands: `GET /api/workflows/{family_slug}/graph`, `/api/runs/{run}/graph`.
//!
//! Places come from the definition alone, so a run's picture is that of its version; only states and counts are its own.

use std::collections::BTreeMap;

use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Json;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::dags;
use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use super::runs::{self, Data};
use super::workflows::{TENANT, named, not_found};
use crate::domain::layout::{self, Drawing, Known, Line, Node, Placed, Stands};
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::document::{Document, EdgeDoc};
use crate::domain::workflow::graph::key::ValueName;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::read::read;
use crate::domain::workflow::run::{Run, StepState};
use crate::engine::changes::fold::value_of;
use crate::store::blobs::Blobs;
use crate::store::rows::{DefinitionRecord, WorkflowRecord};
use crate::store::tables::{DEFINITIONS, STEPS, WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{Rows, StoreError, runs as store_runs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, StepRef};

/// A graph with the places of its steps.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = GraphPicture)]
pub(super) struct GraphView {
    /// Boxes; one that others stand inside of comes before them.
    nodes: Vec<GraphNode>,
    edges: Vec<GraphEdge>,
    width: i64,
    height: i64,
}

/// A step as a box. Places are in abstract pixels from the top left corner.
#[derive(Debug, Serialize, ToSchema)]
struct GraphNode {
    #[serde(rename = "ref")]
    step: String,
    title: String,
    #[serde(rename = "type")]
    kind: &'static str,
    x: i64,
    y: i64,
    width: i64,
    height: i64,
    /// The scatter inside of whose box it stands.
    parent: Option<String>,
    /// Steps of its body that are not drawn, because there are too many.
    folded: usize,
    /// Only of a run; null for a step that an ended run did not reach.
    state: Option<&'static str>,
    /// Of a scatter, and of the steps in its body.
    branches: Option<GraphBranches>,
}

/// What became of branches; the rest has not begun, or was skipped.
#[derive(Debug, Serialize, ToSchema)]
struct GraphBranches {
    total: u32,
    succeeded: u32,
    failed: u32,
    running: u32,
}

/// An edge as a line from left to right.
#[derive(Debug, Serialize, ToSchema)]
struct GraphEdge {
    source_ref: String,
    target_ref: String,
    #[serde(rename = "type")]
    kind: String,
    /// Pairs of x and y, each further right than the one before.
    points: Vec<[i64; 2]>,
    /// Only of a run; null as long as it is open, and inside of scatters.
    taken: Option<bool>,
}

/// Which graph of a workflow.
pub(super) const QUERY: [Param; 1] = [Param::query(
    "version",
    Kind::Version,
    "A version, or `draft`; the draft if there is one, else the newest version, unless given.",
)];

fn undrawable(why: &layout::Undrawable) -> Problem {
    Problem::new(StatusCode::CONFLICT, format!("this graph cannot be drawn: {why}"))
}

fn view(document: &Document, drawing: &Drawing, stands: Option<&Stands<'_>>) -> GraphView {
    let docs: BTreeMap<&str, _> = layout::steps_of(document)
        .into_iter()
        .map(|step| (step.name.as_str(), step))
        .collect();
    let node = |placed: &Placed| {
        let doc = docs.get(placed.key.as_str());
        let stand = stands
            .map(|stands| stands.of_step(&placed.key))
            .unwrap_or_default();
        GraphNode {
            title: doc
                .map_or(placed.key.as_str(), |doc| layout::title_of(doc))
                .to_owned(),
            kind: doc.map_or("STEP_TYPE_COMMAND", |doc| doc.kind.word()),
            state: stand.state,
            branches: stand.branches.map(|counts| GraphBranches {
                total: counts.total,
                succeeded: counts.succeeded,
                failed: counts.failed,
                running: counts.running,
            }),
            ..GraphNode::of(placed)
        }
    };
    let edges: BTreeMap<(&str, &str, &str), &EdgeDoc> = document
        .edges
        .iter()
        .map(|edge| {
            (
                (
                    edge.source_ref.as_str(),
                    edge.target_ref.as_str(),
                    edge.kind.word(),
                ),
                edge,
            )
        })
        .collect();
    let edge = |line: &Line| GraphEdge {
        taken: stands.and_then(|stands| {
            let edge = edges.get(&(line.from.as_str(), line.to.as_str(), line.kind.as_str()))?;
            stands.taken(edge)
        }),
        ..GraphEdge::of(line)
    };
    GraphView {
        nodes: drawing.nodes.iter().map(node).collect(),
        edges: drawing.lines.iter().map(edge).collect(),
        width: drawing.width,
        height: drawing.height,
    }
}

impl GraphNode {
    fn of(placed: &Placed) -> GraphNode {
        GraphNode {
            step: placed.key.clone(),
            title: String::new(),
            kind: "STEP_TYPE_COMMAND",
            x: placed.x,
            y: placed.y,
            width: placed.width,
            height: placed.height,
            parent: placed.parent.clone(),
            folded: placed.folded,
            state: None,
            branches: None,
        }
    }
}

impl GraphEdge {
    fn of(line: &Line) -> GraphEdge {
        GraphEdge {
            source_ref: line.from.clone(),
            target_ref: line.to.clone(),
            kind: line.kind.clone(),
            points: line.points.iter().map(|point| [point.x, point.y]).collect(),
            taken: None,
        }
    }
}

/// Drawing takes up to some tens of milliseconds for the largest graphs: not on a thread that serves others.
async fn drawn(
    make: impl FnOnce() -> Result<GraphView, layout::Undrawable> + Send + 'static,
) -> Result<Json<Data<GraphView>>, Problem> {
    let drawing = tokio::task::spawn_blocking(make).await;
    let data = drawing
        .map_err(|_| Problem::unavailable())?
        .map_err(|why| undrawable(&why))?;
    Ok(Json(Data { data }))
}

/// The graph of a workflow.
pub(super) async fn of_workflow(
    State(app): State<App>,
    Path(slug): Path<String>,
    uri: Uri,
) -> Result<Json<Data<GraphView>>, Problem> {
    let name = named(&slug)?;
    let pairs = input::query(&uri, &QUERY)?;
    let wanted = match input::last(&pairs, "version") {
        None => Wanted::Newest,
        Some("draft") => Wanted::Draft,
        Some(text) => text
            .parse()
            .map(Wanted::Version)
            .map_err(|_| Problem::unreadable("`version` must be a version number, or `draft`"))?,
    };
    let for_read = name.clone();
    let dag = dags::of(&app.engine.book(), &name);
    let found = app.engine.read(move |tx| {
        if let Some(posted) = document_of(tx, &for_read, wanted)? {
            // A draft may be wrong in parts; what can be read of it is drawn.
            let document = read(&posted).document;
            return Ok(Some(document.unwrap_or_else(|| empty(&for_read))));
        }
        let number = match (&dag, wanted) {
            (Some(dag), Wanted::Newest) => dag.version(),
            (Some(_), Wanted::Version(number)) => number,
            (None, _) | (Some(_), Wanted::Draft) => return Ok(None),
        };
        Ok(dags::version(tx, &for_read, number)?.map(|version| version.document))
    });
    let document = found.await?.ok_or_else(|| match wanted {
        Wanted::Newest => not_found(&slug),
        Wanted::Draft => Problem::not_found(format!("workflow '{name}' has no draft")),
        Wanted::Version(number) => Problem::not_found(format!("workflow '{name}' has no version {number}")),
    })?;
    drawn(move || {
        let mut graph = layout::graph_of(&document);
        graph.drop_loose_edges();
        let drawing = layout::draw(&graph)?;
        Ok(view(&document, &drawing, None))
    })
    .await
}

fn empty(name: &JobName) -> Document {
    serde_json::from_value(serde_json::json!({"family_slug": name.as_str(), "steps": []}))
        .expect("a document without steps")
}

#[derive(Debug, Clone, Copy)]
enum Wanted {
    Newest,
    Draft,
    Version(u32),
}

fn document_of(rows: &mut impl Rows, name: &JobName, wanted: Wanted) -> Result<Option<Value>, StoreError> {
    let record: Option<WorkflowRecord> = rows.get(&WORKFLOWS, &(TENANT, name.clone()))?;
    let Some(record) = record else { return Ok(None) };
    let version = match wanted {
        Wanted::Draft => None,
        Wanted::Newest => record.draft.is_none().then_some(record.newest),
        Wanted::Version(number) => Some(number),
    };
    let text = match version {
        None => rows
            .get(&WORKFLOW_DRAFTS, &(TENANT, name.clone()))?
            .map(|draft| draft.json),
        Some(number) => rows
            .get(&WORKFLOW_VERSIONS, &(TENANT, name.clone(), number))?
            .map(|row| row.posted),
    };
    Ok(text.and_then(|text| text.read().ok()))
}

/// A run with what its picture is made of.
struct Found {
    run: Run,
    document: Option<Document>,
    steps: Vec<StepState>,
    is_whole: bool,
    outputs: BTreeMap<String, Value>,
}

/// The graph of a run as it stands.
pub(super) async fn of_run(
    State(app): State<App>,
    Path(text): Path<String>,
) -> Result<Json<Data<GraphView>>, Problem> {
    let id = runs::id_of(&text)?;
    let blobs = app.engine.store.blobs();
    let found = app.engine.read(move |tx| found(tx, &blobs, id)).await?;
    let found = found.ok_or_else(|| runs::not_found(&text))?;
    drawn(move || picture(&found)).await
}

fn picture(found: &Found) -> Result<GraphView, layout::Undrawable> {
    let Some(document) = &found.document else {
        return of_job(found);
    };
    let known = Known {
        steps: &found.steps,
        is_whole: found.is_whole,
        has_ended: found.run.state.is_terminal(),
        outputs: &found.outputs,
    };
    let drawing = layout::draw(&layout::graph_of(document))?;
    Ok(view(document, &drawing, Some(&Stands::of(document, &known))))
}

/// A job is a graph of its one step.
fn of_job(found: &Found) -> Result<GraphView, layout::Undrawable> {
    let step = StepRef::main();
    let graph = layout::Graph {
        nodes: vec![Node::step(step.as_str())],
        edges: Vec::new(),
    };
    let drawing = layout::draw(&graph)?;
    let state = found.steps.iter().find(|state| state.step == step);
    let node = |placed: &Placed| GraphNode {
        title: found.run.definition.to_string(),
        state: state.map(|state| state.phase.word()),
        ..GraphNode::of(placed)
    };
    Ok(GraphView {
        nodes: drawing.nodes.iter().map(node).collect(),
        edges: Vec::new(),
        width: drawing.width,
        height: drawing.height,
    })
}

fn found(rows: &mut impl Rows, blobs: &Blobs, id: RunId) -> Result<Option<Found>, StoreError> {
    let Some(run) = store_runs::by_id(rows, id)? else {
        return Ok(None);
    };
    let key = (TENANT, run.definition.clone(), run.version);
    let record: Option<DefinitionRecord> = rows.get(&DEFINITIONS, &key)?;
    let definition: Option<Definition> = record.and_then(|record| record.json.read().ok());
    let document = definition
        .and_then(|definition| definition.graph)
        .map(|graph| *graph);
    let mut steps: Vec<StepState> = rows
        .scan(&STEPS, &(TENANT, id), None, limits::GRAPH_STEPS_READ_MAX + 1)?
        .into_iter()
        .map(|(_, state)| state)
        .collect();
    let is_whole = steps.len() <= limits::GRAPH_STEPS_READ_MAX;
    let mut outputs = BTreeMap::new();
    if let Some(document) = &document {
        if !is_whole {
            steps = outer_steps(rows, id, document)?;
        }
        for step in &document.steps {
            // Of the others it may be large, and says nothing here.
            if matches!(step.kind, StepKind::Switch(_) | StepKind::Scatter(_))
                && let Some(value) = value_of(rows, blobs, id, &ValueName::Output(step.name.clone()))?
            {
                outputs.insert(step.name.to_string(), (*value).clone());
            }
        }
    }
    Ok(Some(Found {
        run,
        document,
        steps,
        is_whole,
        outputs,
    }))
}

/// The steps outside of scatters, each by its name.
fn outer_steps(rows: &mut impl Rows, id: RunId, document: &Document) -> Result<Vec<StepState>, StoreError> {
    let mut steps = Vec::with_capacity(document.steps.len());
    for step in &document.steps {
        steps.extend(store_runs::step(rows, id, &step.name)?);
    }
    Ok(steps)
}
