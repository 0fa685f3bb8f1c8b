//! `GET /api/runs`: runs by pages, newest first. A cursor is a place in a key range, bound to the filter it came from.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;

use super::app::App;
use super::error::Problem;
use super::input;
use super::runs::RunView;
use crate::domain::workflow::run::Run;
use crate::store::keys::Key;
use crate::store::tables::{JOB_RUNS, RUNS};
use crate::store::{Rows, StoreError};
use crate::words::ids::{self, EntryId, RunId, TenantId, digest_of_parts};
use crate::words::limits;
use crate::words::names::JobName;

const TENANT: TenantId = TenantId::DEFAULT;
/// Rows looked at for one page: a filter that matches nothing must not walk the whole table.
const SCANNED_MAX: usize = 5_000;
const STATES: &[&str] = &[
    "pending",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
];

#[derive(Debug, Serialize)]
pub(super) struct RunPage {
    data: Vec<Listed>,
    pagination: Pagination,
}

#[derive(Debug, Serialize)]
struct Pagination {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// A run that cannot be read is listed as such and hides no other.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Listed {
    Run(RunView),
    Unreadable { id: String, state: &'static str },
}

#[derive(Debug, Clone, Default)]
struct Filter {
    job: Option<JobName>,
    states: Vec<String>,
}

impl Filter {
    fn of(pairs: &[(String, String)]) -> Result<Filter, Problem> {
        let job = input::last(pairs, "job").map(JobName::new).transpose();
        let job = job.map_err(|error| Problem::unreadable(format!("`job`: {error}")))?;
        let mut states: Vec<String> = pairs
            .iter()
            .filter(|(name, _)| name == "state")
            .map(|(_, value)| value.clone())
            .collect();
        states.sort_unstable();
        states.dedup();
        match states.iter().find(|state| !STATES.contains(&state.as_str())) {
            Some(_) => Err(Problem::unreadable(format!(
                "`state` must be one of {}",
                STATES.join(", ")
            ))),
            None => Ok(Filter { job, states }),
        }
    }

    fn digest(&self) -> [u8; 16] {
        let mut parts = vec!["runs", self.job.as_ref().map_or("", JobName::as_str)];
        parts.extend(self.states.iter().map(String::as_str));
        digest_of_parts(&parts)
    }

    fn cursor(&self, last: RunId) -> String {
        ids::hex(&last.0) + &ids::hex(&self.digest()[..4])
    }

    fn place(&self, cursor: &str) -> Result<RunId, Problem> {
        let (id, digest) = cursor.split_at_checked(32).unwrap_or_default();
        let id = id
            .parse::<EntryId>()
            .map_err(|_| Problem::unreadable("`cursor` is not one of this list"))?;
        if digest != ids::hex(&self.digest()[..4]) {
            return Err(Problem::unreadable("`cursor` belongs to another filter"));
        }
        Ok(RunId(id.0))
    }

    fn matches(&self, run: &Run) -> bool {
        let job = self.job.as_ref().is_none_or(|job| *job == run.definition);
        job && (self.states.is_empty() || self.states.iter().any(|state| state == run.state.word()))
    }
}

/// Runs by pages.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<RunPage>, Problem> {
    let known = [
        "job",
        "state",
        "page_size",
        "cursor",
        "pagination.page_size",
        "pagination.cursor",
    ];
    let mut pairs = input::query(&uri, &known)?;
    for (name, _) in &mut pairs {
        if let Some(short) = name.strip_prefix("pagination.") {
            *name = short.to_owned();
        }
    }
    let filter = Filter::of(&pairs)?;
    let size = input::number(&pairs, "page_size", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT);
    let before = input::last(&pairs, "cursor")
        .map(|cursor| filter.place(cursor))
        .transpose()?;
    Ok(Json(
        app.engine.read(move |tx| page(tx, &filter, before, size)).await?,
    ))
}

fn page(
    rows: &mut impl Rows,
    filter: &Filter,
    mut before: Option<RunId>,
    size: usize,
) -> Result<RunPage, StoreError> {
    let mut data = Vec::new();
    let mut scanned = 0;
    loop {
        let chunk = chunk(rows, filter.job.as_ref(), before, size + 1)?;
        let is_last = chunk.len() <= size;
        for (id, run) in chunk {
            if data.len() == size || scanned == SCANNED_MAX {
                let next_cursor = before.map(|last| filter.cursor(last));
                return Ok(RunPage {
                    data,
                    pagination: Pagination { next_cursor },
                });
            }
            scanned += 1;
            before = Some(id);
            match run {
                Some(run) if filter.matches(&run) => data.push(Listed::Run(RunView::of(&run))),
                None if filter.states.is_empty() => {
                    data.push(Listed::Unreadable {
                        id: id.to_string(),
                        state: "unreadable",
                    });
                }
                Some(_) | None => {}
            }
        }
        if is_last {
            return Ok(RunPage {
                data,
                pagination: Pagination { next_cursor: None },
            });
        }
    }
}

/// The next runs in the order of the list; `None` for one that cannot be read.
fn chunk(
    rows: &mut impl Rows,
    job: Option<&JobName>,
    before: Option<RunId>,
    limit: usize,
) -> Result<Vec<(RunId, Option<Run>)>, StoreError> {
    let Some(job) = job else {
        let before = before.map(|id| (TENANT, id).encode());
        let found = rows.scan_each_back(&RUNS, &(TENANT,), before.as_deref(), limit)?;
        let listed = found.into_iter().filter_map(|each| match each.row {
            Ok(((_, id), run)) => Some((id, Some(run))),
            Err(_) => <(TenantId, RunId)>::decode(&each.key).map(|(_, id)| (id, None)),
        });
        return Ok(listed.collect());
    };
    let before = before.map(|id| (TENANT, job.clone(), id));
    let found = rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), before.as_ref(), limit)?;
    let mut listed = Vec::with_capacity(found.len());
    for ((_, _, id), _) in found {
        match rows.get(&RUNS, &(TENANT, id)) {
            Ok(run) => listed.push((id, run)),
            Err(error) if error.is_row_fault() => listed.push((id, None)),
            Err(error) => return Err(error),
        }
    }
    Ok(listed)
}
