//! `…/log/tail`: a log as it grows, as server-sent events. The id of an event is the offset behind its text, so that a
//! client that comes back with `Last-Event-ID` neither loses nor repeats a byte.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::watch;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::input;
use super::logs::{self, Log, LogPath};
use super::param::{Kind, Param};
use crate::words::limits;

/// Bytes of one event.
const PIECE_MAX: u64 = 64 << 10;
/// How often a log of another daemon, or the end of an attempt, is looked for.
const LOOK: Duration = Duration::from_millis(500);
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);

#[derive(Debug, Serialize)]
struct Piece {
    offset: u64,
    text: String,
}

/// An open stream, counted until it is dropped.
pub(super) struct Seat(Arc<AtomicUsize>);

impl Seat {
    pub(super) fn take(taken: &Arc<AtomicUsize>) -> Result<Seat, Problem> {
        let seat = Seat(Arc::clone(taken));
        // The seat exists first: a refusal gives it back by dropping it.
        if taken.fetch_add(1, Ordering::SeqCst) < limits::STREAMS_MAX {
            return Ok(seat);
        }
        let status = StatusCode::TOO_MANY_REQUESTS;
        Err(Problem::new(
            status,
            format!("{} streams are open already", limits::STREAMS_MAX),
        ))
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

struct Follower {
    app: App,
    caller: Caller,
    log: Log,
    at: u64,
    size: Option<watch::Receiver<u64>>,
    waiting: VecDeque<Event>,
    ended: bool,
    _seat: Seat,
}

/// What can be asked of a tail.
pub(super) const QUERY: [Param; 2] = [
    Param::query(
        "offset",
        Kind::Integer,
        "Where to begin; a negative one counts from the end. `Last-Event-ID` wins.",
    ),
    logs::FENCE,
];

/// Follows a log until its attempt has ended and everything is sent.
pub(super) async fn follow(
    State(app): State<App>,
    caller: Caller,
    path: LogPath,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let asked = input::number(&pairs, "offset", i64::MIN, i64::MAX)?.unwrap_or(0);
    let resumed = match headers
        .get("last-event-id")
        .map(|value| value.to_str().map(str::parse::<u64>))
    {
        None => None,
        Some(Ok(Ok(offset))) => Some(offset),
        Some(_) => return Err(Problem::unreadable("`Last-Event-ID` must be a byte offset")),
    };
    let log = logs::find(&app, path, &pairs).await?;
    let offset = resumed.map_or(asked, |offset| i64::try_from(offset).unwrap_or(i64::MAX));
    let at = logs::piece(&app, &log, offset, 0).await?.start;
    let seat = Seat::take(&app.streams)?;
    let size = app.engine.live.get(log.fence).map(|live| live.log_size);
    let follower = Follower {
        app,
        caller,
        log,
        at,
        size,
        waiting: VecDeque::new(),
        ended: false,
        _seat: seat,
    };
    let first = stream::once(async { Ok(Event::default().retry(RETRY).comment("ductor")) });
    let rest = stream::unfold(follower, Follower::next);
    let events = futures_util::StreamExt::chain(first, rest);
    Ok(Sse::new(events)
        .keep_alive(KeepAlive::new().interval(KEEP_ALIVE))
        .into_response())
}

impl Follower {
    async fn next(mut self) -> Option<(Result<Event, Infallible>, Follower)> {
        loop {
            if let Some(event) = self.waiting.pop_front() {
                return Some((Ok(event), self));
            }
            if self.ended {
                return None;
            }
            if self.app.stop.is_cancelled() || !self.caller.is_still_known(&self.app).await {
                self.finish("bye");
                continue;
            }
            if !self.look().await {
                self.wait().await;
            }
        }
    }

    fn finish(&mut self, word: &str) {
        self.ended = true;
        self.waiting.push_back(Event::default().event(word).data("{}"));
    }

    /// Queues what is new; false if nothing is.
    async fn look(&mut self) -> bool {
        // Asked before the bytes are read: an end that was seen is an end of everything.
        let live = logs::is_live(&self.app, &self.log).await;
        let Ok(offset) = i64::try_from(self.at) else {
            return false;
        };
        let Ok(piece) = logs::piece(&self.app, &self.log, offset, PIECE_MAX).await else {
            return false;
        };
        let is_rest = piece.start + piece.bytes.len() as u64 == piece.size;
        let over = matches!(live, Ok(false)) && is_rest;
        let whole = if over {
            piece.bytes.len()
        } else {
            whole_letters(&piece.bytes)
        };
        if whole > 0 {
            let text = String::from_utf8_lossy(&piece.bytes[..whole]).into_owned();
            let event = Event::default().id((self.at + whole as u64).to_string());
            if let Ok(event) = event.json_data(Piece {
                offset: self.at,
                text,
            }) {
                self.waiting.push_back(event);
            }
            self.at += whole as u64;
        }
        if over {
            self.finish("end");
        }
        whole > 0 || over
    }

    async fn wait(&mut self) {
        let stop = self.app.stop.clone();
        let grown = async {
            let Some(size) = &mut self.size else {
                return std::future::pending().await;
            };
            if size.changed().await.is_err() {
                // The file is whole; the record of its end is looked for.
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = grown => {}
            () = tokio::time::sleep(LOOK) => {}
        }
    }
}

/// Up to the last line end, or else up to the last whole letter: a letter of several bytes is never cut.
fn whole_letters(bytes: &[u8]) -> usize {
    if let Some(place) = bytes.iter().rposition(|byte| *byte == b'\n') {
        return place + 1;
    }
    let tail = bytes.len().saturating_sub(3);
    let begun = (tail..bytes.len()).rev().find(|place| bytes[*place] >= 0xc0);
    let wanted = |first: u8| match first {
        0xf0.. => 4,
        0xe0.. => 3,
        _ => 2,
    };
    match begun {
        Some(place) if bytes.len() - place < wanted(bytes[place]) => place,
        Some(_) | None => bytes.len(),
    }
}

#[cfg(test)]
mod tests {
    use super::whole_letters;

    #[test]
    fn no_letter_is_cut() {
        let check = |bytes: &[u8], whole: usize| assert_eq!(whole_letters(bytes), whole, "{bytes:?}");
        check(b"", 0);
        check(b"abc", 3);
        check(b"ab\ncd", 3);
        check("a\u{e9}".as_bytes(), 3);
        check(&"a\u{e9}".as_bytes()[..2], 1);
        check(&"\u{1f600}".as_bytes()[..3], 0);
        check("\u{1f600}".as_bytes(), 4);
        check(&[0x80, 0x80, 0x80, 0x80], 4);
    }
}
