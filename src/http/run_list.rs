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
use super::runs::{self, RunView, Waiting};
use crate::domain::workflow::run::Run;
use crate::engine::book::Book;
use crate::store::keys::Key;
use crate::store::tables::{JOB_RUNS, RUNS};
use crate::store::{ReadTx, Rows, StoreError};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::JobName;
use crate::words::time::Millis;

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

/// The filters of this list.
pub(super) const FILTERS: [Param; 2] = [
    Param::filter("job", Kind::Text, "Runs of this job."),
    Param::filter("state", Kind::OneOf(STATES), "Runs in this state."),
];

/// A run that cannot be read is listed as such and hides no other.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum Listed {
    Run(Box<ListedRun>),
    Unreadable { id: String, state: &'static str },
}

/// A run, and why it waits.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ListedRun {
    #[serde(flatten)]
    run: RunView,
    waiting_reason: Option<Waiting>,
}

#[derive(Debug, Clone)]
struct Filter {
    jobs: Vec<JobName>,
    states: Vec<String>,
    paging: Paging,
}

impl Filter {
    fn of(pairs: &[(String, String)]) -> Result<Filter, Problem> {
        let (names, states) = (paging::values(pairs, "job"), paging::values(pairs, "state"));
        let jobs = names
            .iter()
            .map(|name| JobName::new(name))
            .collect::<Result<_, _>>();
        let jobs = jobs.map_err(|error| Problem::unreadable(format!("`job`: {error}")))?;
        if states.iter().any(|state| !STATES.contains(&state.as_str())) {
            let words = STATES.join(", ");
            return Err(Problem::unreadable(format!("`state` must be one of {words}")));
        }
        let filter = names.into_iter().map(|name| ("job", name));
        let filter: Vec<_> = filter
            .chain(states.iter().map(|state| ("state", state.clone())))
            .collect();
        Ok(Filter {
            jobs,
            paging: Paging::of(pairs, "runs", &filter, false)?,
            states,
        })
    }

    fn matches(&self, run: &Run) -> bool {
        let job = self.jobs.is_empty() || self.jobs.contains(&run.definition);
        job && (self.states.is_empty() || self.states.iter().any(|state| state == run.state.word()))
    }
}

/// Runs by pages.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<Listed>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let filter = Filter::of(&pairs)?;
    let after = match &filter.paging.after {
        None => None,
        Some(key) => {
            let id = <[u8; 16]>::try_from(key.as_slice());
            Some(RunId(id.map_err(|_| {
                Problem::unreadable("`pagination.cursor` is not one of this list")
            })?))
        }
    };
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let read = move |tx: &mut ReadTx| page(tx, (&book, now), &filter, after);
    Ok(Json(app.engine.read(read).await?))
}

fn page(
    rows: &mut impl Rows,
    (book, now): (&Book, Millis),
    filter: &Filter,
    mut after: Option<RunId>,
) -> Result<Page<Listed>, StoreError> {
    let paging = &filter.paging;
    let mut data = Vec::new();
    let mut scanned = 0;
    loop {
        let chunk = chunk(rows, filter, after)?;
        let is_last = chunk.len() <= paging.size;
        for (id, run) in chunk {
            if data.len() == paging.size || scanned == SCANNED_MAX {
                return Ok(paging.page(data, after.as_ref().map(|last| &last.0[..])));
            }
            scanned += 1;
            after = Some(id);
            match run {
                Some(run) if filter.matches(&run) => data.push(Listed::Run(Box::new(ListedRun {
                    run: RunView::of(&run),
                    // One damaged row does not hide the list.
                    waiting_reason: runs::waiting_of(rows, book, &run, now).unwrap_or_default(),
                }))),
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
            return Ok(paging.page(data, None));
        }
    }
}

/// The next runs in the order of the list; `None` for one that cannot be read. Runs of one job are read through its own
/// index, of several out of all.
fn chunk(
    rows: &mut impl Rows,
    filter: &Filter,
    after: Option<RunId>,
) -> Result<Vec<(RunId, Option<Run>)>, StoreError> {
    let (limit, ascending) = (filter.paging.size + 1, filter.paging.ascending);
    let [job] = filter.jobs.as_slice() else {
        let after = after.map(|id| (TENANT, id).encode());
        let found = if ascending {
            rows.scan_each(&RUNS, &(TENANT,), after.as_deref(), limit)?
        } else {
            rows.scan_each_back(&RUNS, &(TENANT,), after.as_deref(), limit)?
        };
        let listed = found.into_iter().filter_map(|each| match each.row {
            Ok(((_, id), run)) => Some((id, Some(run))),
            Err(_) => <(TenantId, RunId)>::decode(&each.key).map(|(_, id)| (id, None)),
        });
        return Ok(listed.collect());
    };
    let after = after.map(|id| (TENANT, job.clone(), id));
    let prefix = (TENANT, job.clone());
    let found = if ascending {
        rows.scan(&JOB_RUNS, &prefix, after.as_ref(), limit)?
    } else {
        rows.scan_back(&JOB_RUNS, &prefix, after.as_ref(), limit)?
    };
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
