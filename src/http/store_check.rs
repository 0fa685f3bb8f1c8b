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
}

/// Checks every row and recomputes every index.
pub(super) async fn run(State(app): State<App>) -> Result<Json<Data<CheckView>>, Problem> {
    let checked = app.engine.read(|tx| Ok((check::check(tx)?, tx.count_rows()?)));
    let (mut findings, rows) = checked.await?;
    let clean = findings.is_empty();
    findings.truncate(FINDINGS_MAX);
    let data = CheckView {
        clean,
        findings,
        rows,
    };
    Ok(Json(Data { data }))
}
