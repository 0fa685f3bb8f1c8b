//! `/api/backups`: a copy of the store while it works, and what became of those before.

use std::path::PathBuf;
use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use super::runs::Data;
use crate::engine::backups::{self, BackupNews, NotBegun};
use crate::store::rows::BackupResult;

/// The fields of a backup.
pub(super) const FIELDS: [Param; 1] = [Param::query(
    "path",
    Kind::Text,
    "The file to make, absolute, as the daemon sees it. Nothing may be there yet.",
)
.needed()];

/// A longer one goes on after the answer.
const WAIT: Duration = Duration::from_secs(10);

/// A backup.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Backup)]
pub(super) struct BackupView {
    id: String,
    /// `running`, `done` or `failed`.
    state: &'static str,
    path: String,
    bytes: Option<u64>,
    /// Of the file, in hex digits.
    blake3: Option<String>,
    /// Of all tables.
    rows: Option<u64>,
    /// Why there is none.
    reason: Option<String>,
    /// The daemon that made it.
    node: String,
    by: String,
    began_at: String,
    ended_at: Option<String>,
}

impl From<BackupNews> for BackupView {
    fn from(news: BackupNews) -> BackupView {
        let mut view = BackupView {
            id: format!("{}-{}", news.began_at.0, news.node),
            state: "running",
            path: news.path,
            bytes: None,
            blake3: None,
            rows: None,
            reason: None,
            node: news.node.to_string(),
            by: news.by,
            began_at: news.began_at.to_string(),
            ended_at: None,
        };
        match news.end {
            None => {}
            Some((at, BackupResult::Done { bytes, blake3, rows })) => {
                view.state = "done";
                view.ended_at = Some(at.to_string());
                (view.bytes, view.blake3, view.rows) = (Some(bytes), Some(blake3), Some(rows));
            }
            Some((at, BackupResult::Failed { reason })) => {
                view.state = "failed";
                view.ended_at = Some(at.to_string());
                view.reason = Some(reason);
            }
        }
        view
    }
}

/// The newest backups.
pub(super) async fn list(State(app): State<App>) -> Result<Json<Data<Vec<BackupView>>>, Problem> {
    let known = app.backups.clone();
    let found = app.engine.read(move |tx| backups::all(tx, &known)).await?;
    let data = found.into_iter().map(BackupView::from).collect();
    Ok(Json(Data { data }))
}

/// Makes one. 201 when it is done, 202 when it goes on after the answer.
pub(super) async fn make(State(app): State<App>, caller: Caller, body: Bytes) -> Result<Response, Problem> {
    let path = path_of(&body)?;
    let begun = backups::begin(&app.engine, &app.backups, path, &caller.principal).await;
    let mut news = begun.map_err(refusal)?;
    let ended = news.wait_for(|news| news.end.is_some());
    let is_done = tokio::time::timeout(WAIT, ended).await.is_ok();
    let news = news.borrow().clone();
    if let Some((_, BackupResult::Failed { reason })) = &news.end {
        return Err(Problem::forbidden_by_state(reason.as_str()).code("BACKUP_FAILED"));
    }
    let status = if is_done {
        StatusCode::CREATED
    } else {
        StatusCode::ACCEPTED
    };
    let data = BackupView::from(news);
    let location = [(header::LOCATION, "/api/backups")];
    Ok((status, location, Json(Data { data })).into_response())
}

fn path_of(body: &[u8]) -> Result<PathBuf, Problem> {
    let (fields, mut faults) = input::object(body, &FIELDS)?;
    let path = match fields.get("path") {
        Some(Value::String(text)) if text.starts_with('/') && !text.contains('\0') => PathBuf::from(text),
        Some(Value::String(_)) => {
            let detail = "must be an absolute path: the daemon has a working directory of its own";
            faults.push(input::fault("path", "value", detail));
            PathBuf::new()
        }
        Some(_) => {
            faults.push(input::fault("path", "type", "must be a text"));
            PathBuf::new()
        }
        None => {
            faults.push(input::fault("path", "required", "is needed"));
            PathBuf::new()
        }
    };
    if faults.is_empty() {
        Ok(path)
    } else {
        Err(Problem::invalid(faults))
    }
}

fn refusal(refused: NotBegun) -> Problem {
    match refused {
        NotBegun::Running(path) => Problem::forbidden_by_state(format!(
            "a backup to {path} is being made; try again when it is done"
        )),
        NotBegun::Target(error) if error.is_conflict() => Problem::forbidden_by_state(error.to_string()),
        NotBegun::Target(error) => Problem::forbidden_by_state(error.to_string()).code("BACKUP_FAILED"),
    }
}
