//! `GET /api/routing/bundles`: the files that the daemon keeps in force, and how it stands with each.

use axum::Json;
use axum::extract::State;
use serde_json::{Value, json};

use super::app::App;
use super::bundles::change_view;
use super::caller::Caller;
use super::runs::Data;
use crate::config::Fault;
use crate::daemon::{BundleStanding, BundleState};

fn fault_view(fault: &Fault) -> Value {
    let mut view = json!({"code": fault.code, "detail": fault.message, "file": &*fault.at.file});
    if fault.at.line > 0 {
        view["line"] = Value::from(fault.at.line);
        view["column"] = Value::from(fault.at.column);
    }
    view
}

fn view_of(standing: &BundleStanding, node: &str) -> Value {
    let other = standing
        .other
        .as_ref()
        .map(|load| json!({"node": load.node, "at": load.at.to_string(), "digest": load.digest}));
    json!({
        "path": standing.path,
        "name": standing.name,
        "status": standing.state.word(),
        "since": standing.since.to_string(),
        "applied_at": standing.applied_at.map(|at| at.to_string()),
        "digest": standing.digest,
        "enforce": standing.enforce,
        "errors": standing.faults.iter().map(fault_view).collect::<Vec<Value>>(),
        "differing": standing.differing,
        "changes": standing.changes.iter().map(change_view).collect::<Vec<Value>>(),
        "newer": other,
        "node": node,
    })
}

/// The files that cannot be applied.
pub(super) fn failing(app: &App) -> Vec<String> {
    let all = app.reloader.bundles().standing();
    let failed = all.iter().filter(|one| one.state == BundleState::Failed);
    failed.map(|one| one.path.clone()).collect()
}

/// What whoever looks after the daemon should know of them.
pub(super) fn complaint(app: &App) -> Option<String> {
    let all = failing(app);
    let path = all.first()?;
    let others = match all.len() {
        1 => String::new(),
        2 => " and another one".to_owned(),
        more => format!(" and {} others", more - 1),
    };
    Some(format!(
        "The bundle {path}{others} cannot be applied; `ductor bundle status` says why."
    ))
}

/// Those of the caller's tenant, in the order of the configuration, as the daemon that answers sees them.
pub(super) async fn list(State(app): State<App>, caller: Caller) -> Json<Data<Vec<Value>>> {
    let all = app.reloader.bundles().standing();
    let own = all.iter().filter(|one| *one.tenant == *caller.tenant_name);
    let node = app.engine.node.as_str();
    let data = own.map(|one| view_of(one, node)).collect();
    Json(Data { data })
}
