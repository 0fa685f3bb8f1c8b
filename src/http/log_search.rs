//! `GET …/log/search`: where a text stands in the log of an attempt, forwards or backwards from a byte.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::input;
use super::logs::{self, LogPath};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::words::limits;
use crate::worker::log_search::{self, Direction, Found, Match, Search};
use crate::worker::process::{Stream, Tag};

/// What can be asked of a search.
pub(super) const QUERY: [Param; 6] = [
    Param::query("q", Kind::Text, "The text, 1 to 256 bytes without a line end.").needed(),
    Param::query(
        "direction",
        Kind::OneOf(&["next", "previous"]),
        "`next` for matches that begin at `from` or behind it, `previous` for those before it, the last one first.",
    ),
    Param::query(
        "from",
        Kind::Integer,
        "A byte of the log as `offset` counts them; its begin, or for `previous` its end, unless given.",
    ),
    Param::query(
        "case",
        Kind::OneOf(&["ignore", "exact"]),
        "`ignore` takes A to Z for a to z, and is meant unless the other is given.",
    ),
    Param::query("limit", Kind::Integer, "Matches at most, 1 to 500 (50)."),
    logs::FENCE,
];

/// What was found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct LogSearch {
    /// In the order of the direction.
    matches: Vec<LogMatch>,
    /// The `from` with which the search goes on; also when it is done and the log grows.
    searched_to: u64,
    /// Nothing is left that way as the log is now; else its limit or 64 MiB were reached.
    done: bool,
    /// Bytes of the log now.
    size: u64,
}

#[derive(Debug, Serialize, ToSchema)]
struct LogMatch {
    /// The first byte of the match.
    offset: u64,
    /// The first byte of its record: what `offset` of the log takes.
    line_offset: u64,
    /// `stdout`, `stderr` or `remark`; null where a daemon died while it wrote the record.
    stream: Option<&'static str>,
    /// The line without its tag; of a long one a part with the match, at most 500 letters.
    line: String,
}

impl LogMatch {
    fn of(found: Match) -> LogMatch {
        LogMatch {
            offset: found.offset,
            line_offset: found.line_offset,
            stream: found.tag.map(|tag| match tag {
                Tag::Line(Stream::Stdout) | Tag::Piece(Stream::Stdout) => "stdout",
                Tag::Line(Stream::Stderr) | Tag::Piece(Stream::Stderr) => "stderr",
                Tag::Remark => "remark",
            }),
            line: found.line,
        }
    }
}

/// Looks through a log, on a thread that may block.
pub(super) async fn search(
    State(app): State<App>,
    path: LogPath,
    uri: Uri,
) -> Result<Json<Data<LogSearch>>, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let wish = wish_of(&pairs)?;
    let log = logs::find(&app, path, &pairs).await?;
    let file = log.file(&app);
    let looked = tokio::task::spawn_blocking(move || log_search::search(&file, &wish)).await;
    let found: Found = match looked {
        Ok(Ok(found)) => found,
        Ok(Err(error)) => {
            tracing::warn!(cause = %error, "a log could not be read");
            let sentence = "the log cannot be read right now";
            return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, sentence));
        }
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let data = LogSearch {
        matches: found.matches.into_iter().map(LogMatch::of).collect(),
        searched_to: found.searched_to,
        done: found.done,
        size: found.size,
    };
    Ok(Json(Data { data }))
}

fn wish_of(pairs: &[(String, String)]) -> Result<Search, Problem> {
    let max = limits::LOG_SEARCH_TEXT_MAX;
    let text = input::last(pairs, "q").unwrap_or_default();
    if !(1..=max).contains(&text.len()) || text.contains('\n') {
        let detail = format!("`q` must have 1 to {max} bytes without a line end");
        return Err(Problem::unreadable(detail));
    }
    let direction = match input::last(pairs, "direction") {
        None | Some("next") => Direction::Next,
        Some("previous") => Direction::Previous,
        Some(_) => return Err(Problem::unreadable("`direction` must be `next` or `previous`")),
    };
    let exact = match input::last(pairs, "case") {
        None | Some("ignore") => false,
        Some("exact") => true,
        Some(_) => return Err(Problem::unreadable("`case` must be `ignore` or `exact`")),
    };
    Ok(Search {
        text: text.as_bytes().to_vec(),
        exact,
        direction,
        from: input::number(pairs, "from", 0, u64::MAX)?,
        limit: input::number(pairs, "limit", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT),
        budget: limits::LOG_SEARCH_BYTES_MAX,
    })
}
