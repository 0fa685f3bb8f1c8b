//! `GET /api/stream`: what each commit changed, as server-sent events from the change feed.
//!
//! The id of an event is `sequence.index`: its commit, and its place in it. A client that comes back with it misses nothing,
//! unless that place is no longer kept or too far behind: then one `resync` says that everything must be loaded anew. A
//! stream reads the feed itself, at the speed of its client, so that nothing queues up for a slow one.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use serde::Serialize;
use tokio::sync::watch;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::param::{Kind, Param};
use super::tail::Seat;
use super::{input, paging};
use crate::store::rows::Number;
use crate::store::tables::{CHANGES, META};
use crate::store::{FeedRow, Rows, StoreError};

/// Commits that are read at one time.
const COMMITS_MAX: usize = 64;
/// Commits that a client may be behind: beyond that, loading anew is cheaper for both.
const BEHIND_MAX: u64 = 10_000;
const KEEP_ALIVE: Duration = Duration::from_secs(15);
const RETRY: Duration = Duration::from_secs(2);
/// How long a store that cannot be read is waited for.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is looked whether somebody whose key ends by itself is still let in.
const LOOK: Duration = Duration::from_secs(1);

/// The topics of a request, and the heads of the feed's own topics that belong to them.
const TOPICS: [(&str, &[&str]); 7] = [
    ("runs", &["run.", "report."]),
    ("slots", &["pool."]),
    ("jobs", &["job."]),
    ("nodes", &["node."]),
    ("config", &["config."]),
    ("workflows", &["workflow."]),
    ("routing", &[ROUTING]),
];

/// The head of all topics about things that each tenant has of its own.
const ROUTING: &str = "routing.";

/// What can be asked of the stream.
pub(super) const QUERY: [Param; 2] = [
    Param::filter(
        "topics",
        Kind::Text,
        "Some of `runs`, `slots`, `jobs`, `nodes`, `config`, `workflows`, `routing`, with commas between them; all unless given.",
    ),
    Param::query(
        "after",
        Kind::Text,
        "The id of the last event that is known; `Last-Event-ID` wins. Without both, only what is new is sent.",
    ),
];

/// A place in the feed: the commit, and the item in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    sequence: u64,
    index: usize,
}

impl Place {
    /// Behind everything of a commit.
    fn behind(sequence: u64) -> Place {
        Place {
            sequence,
            index: usize::MAX,
        }
    }

    fn read(text: &str) -> Result<Place, Problem> {
        let place = text.split_once('.').and_then(|(sequence, index)| {
            Some(Place {
                sequence: sequence.parse().ok()?,
                index: index.parse().ok()?,
            })
        });
        place.ok_or_else(|| {
            Problem::unreadable("the place in the stream must be `sequence.index`, as in an event's id")
        })
    }
}

/// What an event tells. Never a payload.
#[derive(Debug, Serialize)]
struct Told<'r> {
    topic: &'r str,
    id: &'r str,
    version: u64,
    detail: Option<&'r str>,
    at: String,
}

/// Whose topics begin like this.
fn heads_of(names: &[String]) -> Result<Vec<&'static str>, Problem> {
    let mut heads = Vec::new();
    for name in names.iter().flat_map(|value| value.split(',')).map(str::trim) {
        let known = TOPICS.iter().find(|(topic, _)| *topic == name);
        let (_, of_topic) = known.ok_or_else(|| {
            let all = TOPICS.map(|(topic, _)| topic).join(", ");
            Problem::unreadable(format!("`topics` must be some of {all}"))
        })?;
        heads.extend_from_slice(of_topic);
    }
    if names.is_empty() {
        heads.extend(TOPICS.iter().flat_map(|(_, heads)| *heads));
    }
    Ok(heads)
}

struct Follower {
    app: App,
    caller: Caller,
    heads: Vec<&'static str>,
    after: Place,
    commits: watch::Receiver<u64>,
    waiting: VecDeque<Event>,
    ended: bool,
    _seat: Seat,
}

/// Follows the feed until the client goes or the daemon stops.
pub(super) async fn follow(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let heads = heads_of(&paging::values(&pairs, "topics"))?;
    let resumed = match headers.get("last-event-id") {
        Some(value) => Some(value.to_str().unwrap_or_default()),
        None => input::last(&pairs, "after"),
    };
    let resumed = resumed.map(Place::read).transpose()?;
    let seat = Seat::take(&app.streams)?;
    // Before the newest number is read, so that no commit falls between the two.
    let commits = app.engine.store.watch_sequence();
    let newest = app.engine.read(newest).await?;
    let follower = Follower {
        app,
        caller,
        heads,
        after: resumed.unwrap_or(Place::behind(newest)),
        commits,
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

/// The number of the newest commit.
fn newest(rows: &mut impl Rows) -> Result<u64, StoreError> {
    let number = rows.get(&META, &("sequence".to_owned(),))?;
    Ok(number.map_or(0, |Number(sequence)| sequence))
}

/// What one snapshot has behind a place.
enum Look {
    /// These commits, and whether there are more.
    Commits(Vec<(u64, FeedRow)>, bool),
    /// The place is not kept; the newest commit is this one.
    Gone(u64),
}

fn look(rows: &mut impl Rows, after: Place) -> Result<Look, StoreError> {
    let newest = newest(rows)?;
    let oldest = rows.scan(&CHANGES, &(), None, 1)?;
    let oldest = oldest.first().map_or(newest, |((sequence,), _)| *sequence);
    // A commit that changed nothing of interest has no row, so the one before the oldest row may be the place itself.
    let is_kept = after.sequence.saturating_add(1) >= oldest && after.sequence <= newest;
    if !is_kept || newest - after.sequence > BEHIND_MAX {
        return Ok(Look::Gone(newest));
    }
    // The commit of the place itself may have further items.
    let from = after.sequence.checked_sub(1).map(|before| (before,));
    let found = rows.scan_each(
        &CHANGES,
        &(),
        from.map(|key| crate::store::keys::Key::encode(&key)).as_deref(),
        COMMITS_MAX,
    )?;
    let more = found.len() == COMMITS_MAX;
    let readable = found.into_iter().filter_map(|each| each.row.ok());
    Ok(Look::Commits(
        readable.map(|((sequence,), row)| (sequence, row)).collect(),
        more,
    ))
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
            // Asked before the feed is read: what was committed before the end is still sent.
            let stopping = self.app.stop.is_cancelled();
            // From here on each commit ends the wait: the one that takes the key away may come at any moment.
            self.commits.mark_unchanged();
            // Who is not let in any more hears nothing of what came after that.
            let is_known = self.caller.is_still_known(&self.app).await;
            let more = is_known && self.look().await;
            if more || !self.waiting.is_empty() {
                continue;
            }
            if stopping || !is_known {
                self.ended = true;
                self.waiting.push_back(Event::default().event("bye").data("{}"));
                continue;
            }
            self.wait().await;
        }
    }

    /// Queues what is new; true if there may be more at once.
    async fn look(&mut self) -> bool {
        let after = self.after;
        match self.app.engine.read(move |tx| look(tx, after)).await {
            Ok(Look::Commits(commits, more)) => {
                let is_shared = self.is_shared().await;
                for (sequence, row) in &commits {
                    self.queue(*sequence, row, is_shared);
                }
                more
            }
            Ok(Look::Gone(newest)) => {
                self.after = Place::behind(newest);
                let event = Event::default().event("resync").id(format!("{newest}.0"));
                self.waiting.push_back(event.data("{}"));
                false
            }
            Err(error) => {
                tracing::debug!(cause = %error, "a stream could not read the feed");
                tokio::time::sleep(PAUSE).await;
                false
            }
        }
    }

    /// True when there are several tenants. The feed does not say whose a change of routing is: then nothing but its kind is told.
    async fn is_shared(&self) -> bool {
        let ring = self.app.keyring.current(&self.app.engine).await;
        ring.is_ok_and(|ring| ring.tenants().count() > 1)
    }

    fn queue(&mut self, sequence: u64, row: &FeedRow, is_shared: bool) {
        for (index, item) in row.items.iter().enumerate() {
            let place = Place { sequence, index };
            if place <= self.after || !self.heads.iter().any(|head| item.topic.starts_with(head)) {
                continue;
            }
            let is_veiled = is_shared && item.topic.starts_with(ROUTING);
            let told = Told {
                topic: &item.topic,
                id: if is_veiled { "" } else { &item.id },
                version: if is_veiled { 0 } else { item.version },
                detail: item.detail.as_deref().filter(|_| !is_veiled),
                at: row.at.to_string(),
            };
            let event = Event::default().id(format!("{sequence}.{index}"));
            self.waiting.extend(event.json_data(told));
        }
        self.after = self.after.max(Place::behind(sequence));
    }

    async fn wait(&mut self) {
        let stop = self.app.stop.clone();
        let end = async {
            if !self.caller.has_an_end(&self.app).await {
                std::future::pending::<()>().await;
            }
            tokio::time::sleep(LOOK).await;
        };
        tokio::select! {
            () = stop.cancelled() => {}
            () = end => {}
            changed = self.commits.changed() => {
                // The sender lives as long as the store.
                changed.ok();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        assert_eq!(
            Place::read("12.3").unwrap(),
            Place {
                sequence: 12,
                index: 3
            }
        );
        for bad in ["", "12", "12.", ".3", "a.b", "-1.0", "1.2.3"] {
            assert!(Place::read(bad).is_err(), "{bad}");
        }
        assert!(
            Place::behind(12)
                > Place {
                    sequence: 12,
                    index: 3
                }
        );
    }

    #[test]
    fn topics_are_named_once_or_many_times() {
        let of = |names: &[&str]| heads_of(&names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        assert_eq!(of(&["runs,nodes"]).unwrap(), ["run.", "report.", "node."]);
        assert_eq!(of(&["slots", "jobs"]).unwrap(), ["pool.", "job."]);
        assert_eq!(of(&[]).unwrap().len(), 8);
        assert!(of(&["keys"]).is_err() && of(&[""]).is_err());
    }
}
