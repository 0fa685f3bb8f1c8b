//! `GET /api/nodes`: the daemons that have used this state directory.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use crate::engine::core::Engine;
use crate::store::rows::NodeRecord;
use crate::store::tables::NODES;
use crate::store::{Rows, StoreError, runs};
use crate::words::names::NodeName;

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NodeView {
    #[schema(value_type = String)]
    name: NodeName,
    /// `live`, or `gone` when nobody holds its lock.
    state: &'static str,
    own: bool,
    generated: bool,
    /// The machine.
    host: String,
    pid: u32,
    /// Attempts that it holds.
    running: usize,
    started_at: String,
    last_seen: String,
}

/// Daemons by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<NodeView>>, Problem> {
    let pairs = paging::query(&uri, &[])?;
    let paging = Paging::of(&pairs, "nodes", &[], true)?;
    let engine = app.engine.clone();
    let page = app.engine.read(move |tx| {
        let nodes = all(tx)?;
        let (names, more) = paging::of_names(nodes.keys(), &paging);
        let mut running: BTreeMap<NodeName, usize> = BTreeMap::new();
        for (_, _, live) in runs::live(tx)? {
            *running.entry(live.claim.node).or_default() += 1;
        }
        let held = |name: &NodeName| running.get(name).copied().unwrap_or_default();
        let data = names
            .iter()
            .map(|name| view(&engine, name, &nodes[*name], held(name)));
        let data = data.collect();
        let last = names.last().filter(|_| more);
        Ok(paging.page(data, last.map(|name| name.as_str().as_bytes())))
    });
    Ok(Json(page.await?))
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

fn view(engine: &Engine, name: &NodeName, record: &NodeRecord, running: usize) -> NodeView {
    NodeView {
        name: name.clone(),
        state: if is_live(engine, name) { "live" } else { "gone" },
        own: *name == engine.node,
        generated: record.generated,
        host: record.host.clone(),
        pid: record.pid,
        running,
        started_at: record.started_at.to_string(),
        last_seen: record.last_seen.to_string(),
    }
}
