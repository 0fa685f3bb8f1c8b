//! `GET /api/runs`: runs by pages, newest first.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::RunView;
use super::waiting::{self, Waiting};
use crate::domain::workflow::filter::{KEYS, RunFilter, STATES, TRIGGERS, time_before};
use crate::domain::workflow::run::Run;
use crate::engine::book::Book;
use crate::store::run_walk::{Met, RunWalk};
use crate::store::{ReadTx, Rows, StoreError};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::time::Millis;

/// The filters of this list.
pub(super) const FILTERS: [Param; 8] = [
    Param::filter("job", Kind::Text, "Runs of this job."),
    Param::filter("state", Kind::OneOf(&STATES), "Runs in this state."),
    Param::filter("trigger", Kind::OneOf(&TRIGGERS), "Runs that were begun by this."),
    Param::filter(
        "pool",
        Kind::Text,
        "Runs whose definition takes its slots from this slot pool.",
    ),
    Param::query(
        "since",
        Kind::Moment,
        "Runs created then or later: an RFC 3339 instant, or a length before now like `1h`.",
    ),
    Param::query("until", Kind::Moment, "Runs created before that."),
    Param::filter(
        "q",
        Kind::Text,
        "Runs whose job has this in its name, or whose id begins so; of a text like `run_01kb7` only ids are looked at.",
    ),
    Param::query(
        "where",
        Kind::Filter,
        "The same as one text, like `state:failed job:export since:1h`.",
    ),
];

/// A run that cannot be read is listed as such and hides no other.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Listed {
    Run(Box<ListedRun>),
    Unreadable { id: String, state: &'static str },
}

/// A run, and what a row of a list needs beside it.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListedRun {
    #[serde(flatten)]
    run: RunView,
    /// The number of its newest attempt, or of the one that it waits for.
    attempt: u32,
    /// From its first start to its end; null until it has ended, and when it never started.
    duration_ms: Option<u64>,
    /// The due moment it stands for; null for a start by hand.
    scheduled_at: Option<String>,
    /// The slot pool of its definition.
    pool: Option<String>,
    waiting_reason: Option<Waiting>,
}

/// Which runs are asked for, and which page of them.
#[derive(Debug, Clone)]
struct Asked {
    filter: RunFilter,
    paging: Paging,
}

impl Asked {
    fn of(pairs: &[(String, String)], now: Millis) -> Result<Asked, Problem> {
        let time = |text: &str| time_before(text, now);
        let mut filter = RunFilter::default();
        // A cursor belongs to what was written: an hour ago is another instant on the next page.
        let mut written: Vec<(&str, String)> = Vec::new();
        for key in KEYS.into_iter().chain(["where"]) {
            for value in paging::values(pairs, key) {
                let added = if key == "where" {
                    filter.read_more(&value, &time)
                } else {
                    filter.add(key, &value, &time)
                };
                added.map_err(|error| Problem::unreadable(format!("`{key}`: {error}")))?;
                written.push((key, value));
            }
        }
        Ok(Asked {
            filter,
            paging: Paging::of(pairs, "runs", &written, false)?,
        })
    }
}

/// Runs by pages.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<Listed>>, Problem> {
    let now = app.engine.now().wall;
    let pairs = paging::query(&uri, &FILTERS)?;
    let asked = Asked::of(&pairs, now)?;
    let after = match &asked.paging.after {
        None => None,
        Some(key) => {
            let id = <[u8; 16]>::try_from(key.as_slice());
            Some(RunId(id.map_err(|_| {
                Problem::unreadable("`pagination.cursor` is not one of this list")
            })?))
        }
    };
    let book = app.engine.book();
    let read = move |tx: &mut ReadTx| page(tx, (&book, now), &asked, after);
    Ok(Json(app.engine.read(read).await?))
}

fn page(
    rows: &mut impl Rows,
    (book, now): (&Book, Millis),
    asked: &Asked,
    after: Option<RunId>,
) -> Result<Page<Listed>, StoreError> {
    let paging = &asked.paging;
    let mut walk = RunWalk::begin(rows, &asked.filter, paging.ascending, after)?;
    let mut data = Vec::new();
    let mut last: Option<(RunId, Option<Millis>)> = None;
    for scanned in 0.. {
        if scanned == limits::PAGE_SCAN_MAX {
            let (id, at) = last.expect("rows were looked at");
            let mut page = paging.page(data, Some(&id.0));
            page.pagination.scanned_to = at.map(|at| at.to_string());
            return Ok(page);
        }
        let Some((id, met)) = walk.next(rows)? else { break };
        if data.len() == paging.size && !matches!(met, Met::Other { .. }) {
            return Ok(paging.page(data, last.as_ref().map(|(id, _)| &id.0[..])));
        }
        let at = match met {
            Met::Wanted(run) => {
                data.push(listed(rows, &mut walk, &run, (book, now))?);
                Some(run.created_at)
            }
            Met::Other { at, .. } => Some(at),
            Met::Unreadable => {
                // Whether it would be wanted nobody knows, unless all of its job are.
                if asks_only_for_jobs(&asked.filter) {
                    data.push(Listed::Unreadable {
                        id: id.to_string(),
                        state: "unreadable",
                    });
                }
                last.and_then(|(_, at)| at)
            }
        };
        last = Some((id, at));
    }
    Ok(paging.page(data, None))
}

fn asks_only_for_jobs(filter: &RunFilter) -> bool {
    let others = RunFilter {
        jobs: std::collections::BTreeSet::new(),
        ..filter.clone()
    };
    others.is_empty()
}

fn listed(
    rows: &mut impl Rows,
    walk: &mut RunWalk,
    run: &Run,
    (book, now): (&Book, Millis),
) -> Result<Listed, StoreError> {
    // One damaged row does not hide the list.
    let (attempt, waiting_reason) = match waiting::standing_of(rows, book, run, now) {
        Err(error) if !error.is_row_fault() => return Err(error),
        standing => standing.unwrap_or((1, None)),
    };
    let ends = run.state.started_at().zip(run.state.ended_at());
    Ok(Listed::Run(Box::new(ListedRun {
        run: RunView::of(run),
        attempt,
        duration_ms: ends.map(|(started, ended)| ended.since(started)),
        scheduled_at: run.trigger.scheduled_at().map(|at| at.to_string()),
        pool: walk.slot_pool_of(rows, run)?.map(|name| name.to_string()),
        waiting_reason,
    })))
}
