//! Logs of attempts by byte range, as they lie in the file: records of a tag, a space and a line (`worker/process/record`).

use std::path::PathBuf;

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use futures_util::stream;

use super::app::App;
use super::error::Problem;
use super::param::{Kind, Param};
use super::{input, runs};
use crate::store::runs::by_id;
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS};
use crate::store::{Rows, StoreError, logs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;
use crate::worker::log_text::LogText;

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

impl Log {
    /// Where it lies.
    pub(super) fn file(&self, app: &App) -> PathBuf {
        let folder = app.engine.directory.logs();
        logs::path_of(&folder, self.run, &self.step, self.number, self.fence)
    }

    /// What it is called once it is downloaded.
    fn name(&self, job: &str) -> String {
        let safe = |letter: char| {
            if letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_' | '.') {
                letter
            } else {
                '_'
            }
        };
        let job: String = job.chars().map(safe).collect();
        let step = self.step.as_str();
        let step: String = if self.step == StepRef::main() {
            String::new()
        } else {
            step.chars().map(safe).chain(['-']).collect()
        };
        format!("{job}-{}-{step}attempt-{}.log", self.run, self.number)
    }
}

/// True while the claim of a log is held: more may come.
pub(super) async fn is_live(app: &App, log: &Log) -> Result<bool, StoreError> {
    let (key, fence) = ((TENANT, log.run, log.step.clone()), log.fence);
    let live = app.engine.read(move |tx| tx.get(&LIVE_ATTEMPTS, &key));
    Ok(live.await?.is_some_and(|live| live.claim.fence == fence))
}

/// A piece of a log.
pub(super) async fn piece(app: &App, log: &Log, offset: i64, limit: u64) -> Result<logs::LogPiece, Problem> {
    let path = log.file(app);
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
pub(super) const QUERY: [Param; 4] = [
    Param::query(
        "offset",
        Kind::Integer,
        "Where to begin; a negative one counts from the end.",
    ),
    Param::query("limit", Kind::Integer, "Bytes at most, up to 1 MiB."),
    Param::query(
        "download",
        Kind::OneOf(&["text", "raw"]),
        "The whole log as a file, however long: `text` as the command printed it, `raw` as its records lie.",
    ),
    FENCE,
];

/// Which of several logs of one attempt.
pub(super) const FENCE: Param = Param::query(
    "fence",
    Kind::Integer,
    "The log of this claim of the attempt, not of its newest.",
);

/// Raw bytes of a log, or the whole of it as a file.
pub(super) async fn read(State(app): State<App>, path: LogPath, uri: Uri) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    match input::last(&pairs, "download") {
        None => read_piece(&app, path, &pairs).await,
        Some("text") => download(&app, path, &pairs, Some(LogText::default())).await,
        Some("raw") => download(&app, path, &pairs, None).await,
        Some(_) => Err(Problem::unreadable("`download` must be `text` or `raw`")),
    }
}

async fn read_piece(app: &App, path: LogPath, pairs: &[(String, String)]) -> Result<Response, Problem> {
    let offset = input::number(pairs, "offset", i64::MIN, i64::MAX)?.unwrap_or(0);
    let limit = input::number(pairs, "limit", 1, u64::MAX)?.unwrap_or(limits::LOG_CHUNK_MAX);
    let log = find(app, path, pairs).await?;
    // Asked before the bytes are read, so that "done" never hides a line that came in between.
    let live = is_live(app, &log).await?;
    let piece = piece(app, &log, offset, limit.min(limits::LOG_CHUNK_MAX)).await?;
    let name = format!("{}-{}-{}.log", log.run, log.number, log.fence);
    let mut response = piece.bytes.into_response();
    let headers = response.headers_mut();
    describe(headers, &name, (piece.size, live));
    headers.insert("x-log-start", HeaderValue::from(piece.start));
    Ok(response)
}

fn describe(headers: &mut HeaderMap, name: &str, (size, live): (u64, bool)) {
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/plain; charset=utf-8"),
    );
    let name = HeaderValue::from_str(&format!("attachment; filename=\"{name}\""));
    headers.extend(name.map(|name| (header::CONTENT_DISPOSITION, name)));
    headers.insert("x-log-size", HeaderValue::from(size));
    headers.insert(
        "x-log-done",
        HeaderValue::from_static(if live { "false" } else { "true" }),
    );
}

/// The whole log, read while it is sent: as long as it was when it was asked for.
async fn download(
    app: &App,
    path: LogPath,
    pairs: &[(String, String)],
    text: Option<LogText>,
) -> Result<Response, Problem> {
    let log = find(app, path, pairs).await?;
    let live = is_live(app, &log).await?;
    let run = log.run;
    let header = app.engine.read(move |tx| by_id(tx, run)).await?;
    let job = header.map_or_else(|| "log".to_owned(), |run| run.definition.to_string());
    let size = piece(app, &log, 0, 0).await?.size;
    let raw_length = text.is_none().then_some(size);
    let name = log.name(&job);
    let sending = Sending {
        app: app.clone(),
        log,
        at: 0,
        end: size,
        text,
    };
    let body = Body::from_stream(stream::unfold(Some(sending), Sending::next));
    let mut response = Response::new(body);
    let headers = response.headers_mut();
    describe(headers, &name, (size, live));
    headers.insert("x-log-start", HeaderValue::from(0));
    headers.extend(raw_length.map(|length| (header::CONTENT_LENGTH, HeaderValue::from(length))));
    Ok(response)
}

/// A log on its way.
struct Sending {
    app: App,
    log: Log,
    at: u64,
    end: u64,
    text: Option<LogText>,
}

type Sent = Result<Vec<u8>, std::io::Error>;

impl Sending {
    async fn next(state: Option<Sending>) -> Option<(Sent, Option<Sending>)> {
        let mut sending = state?;
        if sending.at == sending.end {
            let rest = sending.text.as_mut().map(LogText::finish).unwrap_or_default();
            return (!rest.is_empty()).then_some((Ok(rest), None));
        }
        let left = sending.end - sending.at;
        let offset = i64::try_from(sending.at).ok()?;
        let read = piece(
            &sending.app,
            &sending.log,
            offset,
            left.min(limits::LOG_CHUNK_MAX),
        )
        .await;
        // A file that became shorter must not look whole: the connection breaks off.
        let bytes = match read {
            Ok(piece) if !piece.bytes.is_empty() => piece.bytes,
            Ok(_) | Err(_) => {
                let error = std::io::Error::other("the log cannot be read any more");
                return Some((Err(error), None));
            }
        };
        sending.at += bytes.len() as u64;
        let bytes = match &mut sending.text {
            None => bytes,
            Some(text) => text.feed(&bytes),
        };
        Some((Ok(bytes), Some(sending)))
    }
}
