//! Logs of attempts by byte range, as they lie in the file: records of a tag, a space and a line (`worker/process/record`).

use axum::extract::{Path, State};
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::error::Problem;
use super::param::{Kind, Param};
use super::{input, runs};
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS};
use crate::store::{Rows, StoreError, logs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// One log: an attempt may have several, one for each claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Log {
    pub(super) run: RunId,
    pub(super) step: StepRef,
    pub(super) number: u32,
    pub(super) fence: u64,
}

/// The path of a log: run, step, attempt.
pub(super) type LogPath = Path<(String, String, String)>;

/// The log that a path and `?fence=` name; the newest one of the attempt unless one is given.
pub(super) async fn find(app: &App, path: LogPath, pairs: &[(String, String)]) -> Result<Log, Problem> {
    let Path((run_text, step_text, number_text)) = path;
    let run = runs::id_of(&run_text)?;
    let missing = || Problem::not_found("this run has no such attempt");
    let step = StepRef::new(&step_text).ok_or_else(missing)?;
    let number: u32 = number_text.parse().map_err(|_| missing())?;
    let wanted = input::number(pairs, "fence", 0, u64::MAX)?;
    let for_read = step.clone();
    let fence = app
        .engine
        .read(move |tx| newest_fence(tx, run, &for_read, number, wanted))
        .await?;
    fence
        .map(|fence| Log {
            run,
            step,
            number,
            fence,
        })
        .ok_or_else(missing)
}

fn newest_fence(
    rows: &mut impl Rows,
    run: RunId,
    step: &StepRef,
    number: u32,
    wanted: Option<u64>,
) -> Result<Option<u64>, StoreError> {
    let ended = rows.scan_each(
        &ATTEMPTS,
        &(TENANT, run, step.clone(), number),
        None,
        limits::PAGE_MAX,
    )?;
    let ended = ended.into_iter().filter_map(|each| Some(each.row.ok()?.0.4));
    let live = rows.get(&LIVE_ATTEMPTS, &(TENANT, run, step.clone()))?;
    let live = live
        .filter(|live| live.number == number)
        .map(|live| live.claim.fence);
    Ok(ended
        .chain(live)
        .filter(|fence| wanted.is_none_or(|wanted| wanted == *fence))
        .max())
}

/// True while the claim of a log is held: more may come.
pub(super) async fn is_live(app: &App, log: &Log) -> Result<bool, StoreError> {
    let (key, fence) = ((TENANT, log.run, log.step.clone()), log.fence);
    let live = app.engine.read(move |tx| tx.get(&LIVE_ATTEMPTS, &key));
    Ok(live.await?.is_some_and(|live| live.claim.fence == fence))
}

/// A piece of a log.
pub(super) async fn piece(app: &App, log: &Log, offset: i64, limit: u64) -> Result<logs::LogPiece, Problem> {
    let folder = app.engine.directory.logs();
    let path = logs::path_of(&folder, log.run, &log.step, log.number, log.fence);
    let read = tokio::task::spawn_blocking(move || logs::read(&path, offset, limit)).await;
    let failed = |error: StoreError| {
        tracing::warn!(cause = %error, "a log could not be read");
        Problem::new(
            axum::http::StatusCode::SERVICE_UNAVAILABLE,
            "the log cannot be read right now",
        )
    };
    match read {
        Ok(read) => read.map_err(failed),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// What can be asked of a log.
pub(super) const QUERY: [Param; 3] = [
    Param::query(
        "offset",
        Kind::Integer,
        "Where to begin; a negative one counts from the end.",
    ),
    Param::query("limit", Kind::Integer, "Bytes at most, up to 1 MiB."),
    Param::query(
        "fence",
        Kind::Integer,
        "The log of this claim of the attempt, not of its newest.",
    ),
];

/// Raw bytes of a log.
pub(super) async fn read(State(app): State<App>, path: LogPath, uri: Uri) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let offset = input::number(&pairs, "offset", i64::MIN, i64::MAX)?.unwrap_or(0);
    let limit = input::number(&pairs, "limit", 1, u64::MAX)?.unwrap_or(limits::LOG_CHUNK_MAX);
    let log = find(&app, path, &pairs).await?;
    // Asked before the bytes are read, so that "done" never hides a line that came in between.
    let live = is_live(&app, &log).await?;
    let piece = piece(&app, &log, offset, limit.min(limits::LOG_CHUNK_MAX)).await?;
    let name = format!(
        "attachment; filename=\"{}-{}-{}.log\"",
        log.run, log.number, log.fence
    );
    let mut response = piece.bytes.into_response();
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    headers.extend(HeaderValue::from_str(&name).map(|name| (header::CONTENT_DISPOSITION, name)));
    headers.insert("x-log-start", HeaderValue::from(piece.start));
    headers.insert("x-log-size", HeaderValue::from(piece.size));
    headers.insert(
        "x-log-done",
        HeaderValue::from_static(if live { "false" } else { "true" }),
    );
    Ok(response)
}
