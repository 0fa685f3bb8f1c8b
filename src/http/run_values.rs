//! What the steps of a graph's run have made: `GET /api/runs/{run}/steps/{step}`, its values, and the run's history.

use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use super::runs::{self, Data};
use super::waiting;
use crate::domain::workflow::graph::history::Transition;
use crate::domain::workflow::graph::key::ValueName;
use crate::engine::changes::fold::value_of;
use crate::store::tables::HISTORY;
use crate::store::{Rows, StoreError, runs as store_runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// One step with what it has made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct StepDetail {
    #[serde(flatten)]
    step: runs::StepView,
    /// What it has made; null if it made nothing (yet).
    output: Value,
    /// `{code, message}` of its failure.
    error: Value,
}

/// The values of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct RunValues {
    input: Value,
    output: Value,
}

/// What one moment has changed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HistoryView {
    /// The version of the run that it led to.
    record_version: u64,
    at: String,
    items: Vec<HistoryItem>,
}

/// One line of a run's history.
#[derive(Debug, Serialize, ToSchema)]
struct HistoryItem {
    /// Its number in the run; some are missing where lines were compacted.
    seq: u64,
    /// `pinned`, `standard`, or `compactable`: it may be compacted.
    class: &'static str,
    /// The step; the run itself without one.
    step: Option<String>,
    /// The state that it has from here, what somebody did, or `compacted`: what such lines said is counted in the detail.
    what: String,
    detail: String,
}

/// Where a history goes on.
pub(super) const HISTORY_QUERY: [Param; 2] = [
    Param::query(
        "after",
        Kind::Integer,
        "Only what led to a later version of the run.",
    ),
    Param::query("limit", Kind::Integer, "So many moments, at most 500."),
];

async fn value(app: &App, run: RunId, name: ValueName) -> Result<Option<Value>, StoreError> {
    let blobs = app.engine.store.blobs();
    let found = app
        .engine
        .read(move |tx| value_of(tx, &blobs, run, &name))
        .await?;
    Ok(found.map(|value| (*value).clone()))
}

/// The output of a run.
pub(super) async fn result(app: &App, run: RunId) -> Result<Option<Value>, StoreError> {
    value(app, run, ValueName::Result).await
}

/// One step.
pub(super) async fn step(
    State(app): State<App>,
    Path((text, step)): Path<(String, String)>,
) -> Result<Response, Problem> {
    let id = runs::id_of(&text)?;
    let missing = || {
        let shown: String = step.chars().take(64).collect();
        Problem::not_found(format!("run '{id}' has not reached a step '{shown}'"))
    };
    let name = StepRef::new(&step).ok_or_else(missing)?;
    let for_read = name.clone();
    let (book, now, of) = (app.engine.book(), app.engine.now().wall, app.clone());
    let found = app
        .engine
        .read(move |tx| {
            let Some(state) = store_runs::step(tx, id, &for_read)? else {
                return Ok(None);
            };
            let Some(run) = store_runs::by_id(tx, id)? else {
                return Ok(None);
            };
            let asked = waiting::asked(tx, &of, &book, &run, now)?;
            let waits = waiting::of_step(tx, &asked, &state)?;
            runs::step_view(tx, id, &for_read, &state, waits).map(Some)
        })
        .await?;
    let view = found.ok_or_else(missing)?;
    let output = value(&app, id, ValueName::Output(name.clone())).await?;
    let error = value(&app, id, ValueName::Error(name)).await?;
    let data = StepDetail {
        step: view,
        output: output.unwrap_or_default(),
        error: error.unwrap_or_default(),
    };
    Ok(Json(Data { data }).into_response())
}

/// Input and output of a run.
pub(super) async fn values(State(app): State<App>, Path(text): Path<String>) -> Result<Response, Problem> {
    let id = runs::id_of(&text)?;
    let known = app.engine.read(move |tx| store_runs::by_id(tx, id)).await?;
    known.ok_or_else(|| runs::not_found(&text))?;
    let data = RunValues {
        input: value(&app, id, ValueName::Input).await?.unwrap_or_default(),
        output: value(&app, id, ValueName::Result).await?.unwrap_or_default(),
    };
    Ok(Json(Data { data }).into_response())
}

/// The history of a run, oldest first.
pub(super) async fn history(
    State(app): State<App>,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let id = runs::id_of(&text)?;
    let pairs = input::query(&uri, &HISTORY_QUERY)?;
    let after = input::number(&pairs, "after", 0, u64::MAX)?;
    let limit = input::number(&pairs, "limit", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_MAX);
    let rows = app
        .engine
        .read(move |tx| {
            let key = after.map(|after| (TENANT, id, after));
            tx.scan(&HISTORY, &(TENANT, id), key.as_ref(), limit)
        })
        .await?;
    let line = |item: Transition| HistoryItem {
        seq: item.seq,
        class: item.class.word(),
        step: item.step.map(|step| step.to_string()),
        what: item.what,
        detail: item.detail,
    };
    let data: Vec<HistoryView> = rows
        .into_iter()
        .map(|((_, _, record_version), row)| HistoryView {
            record_version,
            at: row.at.to_string(),
            items: row.items.into_iter().map(line).collect(),
        })
        .collect();
    Ok(Json(json!({"data": data, "pagination": {}})).into_response())
}
