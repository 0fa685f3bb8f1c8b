//! `GET /api/store/check`: the store's own check, on a snapshot, while the daemon works.

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::runs::Data;
use crate::store::check;

/// Findings shown; a store that is this bad needs no longer list.
const FINDINGS_MAX: usize = 100;

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = StoreCheck)]
pub(super) struct CheckView {
    clean: bool,
    findings: Vec<String>,
    rows: u64,
    /// Files of large values that no row names any more: no damage, they are removed after an hour.
    unnamed_blobs: u64,
    /// Files of large values of which only the sizes were compared, because there are too many to read while you wait.
    unread_blobs: u64,
}

/// Checks every row, recomputes every index, and compares the files of large values with the rows that name them.
pub(super) async fn run(State(app): State<App>) -> Result<Json<Data<CheckView>>, Problem> {
    let blobs = app.engine.store.blobs();
    let checked = app
        .engine
        .read(move |tx| check::check_working(tx, &blobs))
        .await?;
    let clean = checked.findings.is_empty();
    let mut findings = checked.findings;
    findings.truncate(FINDINGS_MAX);
    let data = CheckView {
        clean,
        findings,
        rows: checked.rows,
        unnamed_blobs: checked.unnamed_blobs,
        unread_blobs: checked.unread_blobs,
    };
    Ok(Json(Data { data }))
}
