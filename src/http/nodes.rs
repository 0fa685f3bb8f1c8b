//! `/api/nodes`: the daemons that have used this state directory, and which of them begin nothing more.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::input;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::engine::changes::nodes;
use crate::engine::core::Engine;
use crate::engine::desk;
use crate::store::rows::{NodeDrain, NodeRecord};
use crate::store::tables::{NODES, READY_STEPS, SLOT_WAITING};
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::NodeName;

/// The fields of a drain.
pub(super) const FIELDS: [Param; 1] = [Param::query("note", Kind::Text, "Why, at most 500 characters.")];

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NodeView {
    #[schema(value_type = String)]
    name: NodeName,
    /// `live`; `draining` and `drained` when it begins nothing more and still has work or has none; `gone` when nobody holds
    /// its lock.
    state: &'static str,
    own: bool,
    generated: bool,
    /// The machine.
    host: String,
    pid: u32,
    /// Attempts that it holds.
    running: usize,
    /// Slot entries and steps that wait for it alone.
    waiting: usize,
    /// Who told it to begin nothing more; null if nobody did.
    drain: Option<DrainView>,
    started_at: String,
    last_seen: String,
}

/// A drain on the wire.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = NodeDrainView)]
struct DrainView {
    since: String,
    by: String,
    note: String,
}

impl DrainView {
    fn of(row: &NodeDrain) -> DrainView {
        DrainView {
            since: row.since.to_string(),
            by: row.by.clone(),
            note: row.note.clone(),
        }
    }
}

/// What daemons hold, and what waits for each.
#[derive(Debug, Default)]
struct Work {
    running: BTreeMap<NodeName, usize>,
    waiting: BTreeMap<NodeName, usize>,
}

fn work(rows: &mut impl Rows) -> Result<Work, StoreError> {
    let mut work = Work::default();
    for (_, _, live) in runs::live(rows)? {
        *work.running.entry(live.claim.node).or_default() += 1;
    }
    let tenant = (TenantId::DEFAULT,);
    let entries = rows.scan_each(&SLOT_WAITING, &tenant, None, usize::MAX)?;
    let entries = entries.into_iter().filter_map(|each| each.row.ok()?.1.node);
    for node in entries {
        *work.waiting.entry(node).or_default() += 1;
    }
    let steps = rows.scan_each(&READY_STEPS, &tenant, None, usize::MAX)?;
    let steps = steps.into_iter().filter_map(|each| each.row.ok()?.1.node);
    for node in steps {
        *work.waiting.entry(node).or_default() += 1;
    }
    Ok(work)
}

/// Daemons by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<NodeView>>, Problem> {
    let pairs = paging::query(&uri, &[])?;
    let paging = Paging::of(&pairs, "nodes", &[], true)?;
    let engine = app.engine.clone();
    let page = app.engine.read(move |tx| {
        let nodes = all(tx)?;
        let (names, more) = paging::of_names(nodes.keys(), &paging);
        let work = work(tx)?;
        let mut data = Vec::with_capacity(names.len());
        for name in &names {
            data.push(view(tx, &engine, name, &nodes[*name], &work)?);
        }
        let last = names.last().filter(|_| more);
        Ok(paging.page(data, last.map(|name| name.as_str().as_bytes())))
    });
    Ok(Json(page.await?))
}

/// Tells a daemon to begin nothing more; what it runs goes on.
pub(super) async fn drain(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &FIELDS)?;
    let note = match fields.get("note") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(note)) if note.chars().count() <= limits::NOTE_CHARS_MAX => note.clone(),
        Some(_) => {
            let detail = format!("must be a text of at most {} characters", limits::NOTE_CHARS_MAX);
            faults.push(input::fault("note", "out_of_range", &detail));
            String::new()
        }
    };
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    set(&app, &name, Some(note), once).await
}

/// Lets a daemon begin work again.
pub(super) async fn undrain(
    State(app): State<App>,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    set(&app, &name, None, once).await
}

async fn set(app: &App, text: &str, note: Option<String>, once: Once) -> Result<Response, Problem> {
    let missing = || Problem::not_found(format!("node '{text}' not found"));
    let name = NodeName::new(text).map_err(|_| missing())?;
    let (engine, shown) = (app.engine.clone(), name.clone());
    let by = once.principal();
    let asked = once.ask(move |tx, found: &bool| {
        if !found {
            return Ok(None);
        }
        let work = work(tx)?;
        let Some(record) = tx.get(&NODES, &(shown.clone(),))? else {
            return Ok(None);
        };
        let data = view(tx, &engine, &shown, &record, &work)?;
        Ok(Some(once::ok(&Data { data })))
    });
    let told = desk::drain_node(&app.engine, name, note.map(|note| (by, note)), asked);
    once::respond(told.await?, |_| missing())
}

/// The nodes that the store knows.
pub(super) fn all(rows: &mut impl Rows) -> Result<BTreeMap<NodeName, NodeRecord>, StoreError> {
    let found = rows.scan_each(&NODES, &(), None, usize::MAX)?;
    Ok(found
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|((name,), record)| (name, record))
        .collect())
}

/// A free lock is what proves a daemon dead; this one holds its own.
pub(super) fn is_live(engine: &Engine, name: &NodeName) -> bool {
    *name == engine.node || !engine.directory.is_node_free(name)
}

/// The word for where a daemon stands.
pub(super) fn state_of(engine: &Engine, name: &NodeName, is_drained: bool, is_busy: bool) -> &'static str {
    match (is_live(engine, name), is_drained, is_busy) {
        (false, _, _) => "gone",
        (true, false, _) => "live",
        (true, true, true) => "draining",
        (true, true, false) => "drained",
    }
}

fn view(
    rows: &mut impl Rows,
    engine: &Engine,
    name: &NodeName,
    record: &NodeRecord,
    work: &Work,
) -> Result<NodeView, StoreError> {
    let drain = nodes::drain_of(rows, name)?;
    let running = work.running.get(name).copied().unwrap_or_default();
    Ok(NodeView {
        name: name.clone(),
        state: state_of(engine, name, drain.is_some(), running > 0),
        own: *name == engine.node,
        generated: record.generated,
        host: record.host.clone(),
        pid: record.pid,
        running,
        waiting: work.waiting.get(name).copied().unwrap_or_default(),
        drain: drain.as_ref().map(DrainView::of),
        started_at: record.started_at.to_string(),
        last_seen: record.last_seen.to_string(),
    })
}
