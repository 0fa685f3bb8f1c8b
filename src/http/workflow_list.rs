//! `GET /api/workflows`: the definitions of the API and the dags of the configuration by name, with their newest runs if asked.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::workflows::{TENANT, WorkflowView};
use super::{dags, endings, input};
use crate::domain::workflow::run::Run;
use crate::engine::book::Book;
use crate::store::tables::{JOB_RUNS, WORKFLOWS};
use crate::store::{Rows, StoreError};
use crate::words::names::JobName;

/// Runs that are shown of each.
const RECENT_MAX: usize = 20;
/// What can be told of each beside what it is.
const INCLUDED: [&str; 1] = ["recent"];

/// What is told of each workflow.
pub(super) const FILTERS: [Param; 1] = [Param::query(
    "include",
    Kind::OneOf(&INCLUDED),
    "`recent`: the newest 20 runs of each workflow.",
)];

/// One of the newest runs of a workflow.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct WorkflowRun {
    id: String,
    state: &'static str,
    created_at: String,
    /// Absent as long as it has not begun.
    started_at: Option<String>,
    /// Absent as long as it has not ended.
    ended_at: Option<String>,
    /// From its start to its end.
    duration_ms: Option<u64>,
    /// Why it ended so.
    reason: Option<String>,
}

impl WorkflowRun {
    fn of(run: &Run) -> WorkflowRun {
        let (started, ended) = (run.state.started_at(), run.state.ended_at());
        WorkflowRun {
            id: run.id.to_string(),
            state: run.state.word(),
            created_at: run.created_at.to_string(),
            started_at: started.map(|at| at.to_string()),
            ended_at: ended.map(|at| at.to_string()),
            duration_ms: started.zip(ended).map(|(started, ended)| ended.since(started)),
            reason: run.state.reason().map(str::to_owned),
        }
    }
}

/// Definitions by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<WorkflowView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let recent = match input::last(&pairs, "include") {
        None => false,
        Some("recent") => true,
        Some(_) => return Err(Problem::unreadable("`include` must be `recent`")),
    };
    let paging = Paging::of(&pairs, "workflows", &[], true)?;
    let book = app.engine.book();
    let page = app.engine.read(move |tx| page(tx, &book, &paging, recent));
    Ok(Json(page.await?))
}

fn page(
    rows: &mut impl Rows,
    book: &Book,
    paging: &Paging,
    recent: bool,
) -> Result<Page<WorkflowView>, StoreError> {
    let place = paging
        .after
        .as_deref()
        .and_then(|name| std::str::from_utf8(name).ok());
    let place = place.and_then(|name| Some((TENANT, JobName::new(name).ok()?)));
    let scan = if paging.ascending {
        Rows::scan
    } else {
        Rows::scan_back
    };
    let found = scan(rows, &WORKFLOWS, &(TENANT,), place.as_ref(), paging.size + 1)?;
    let mut views: BTreeMap<JobName, WorkflowView> = BTreeMap::new();
    for ((_, name), record) in found {
        let view = WorkflowView::of(&name, &record);
        views.insert(name, view);
    }
    for dag in dags::on_page(book, paging) {
        // A name that the API had first stays its own.
        if let Entry::Vacant(free) = views.entry(dag.name.clone()) {
            free.insert(dag.view(rows)?);
        }
    }
    let more = views.len() > paging.size;
    let mut ordered: Vec<(JobName, WorkflowView)> = views.into_iter().collect();
    if !paging.ascending {
        ordered.reverse();
    }
    ordered.truncate(paging.size);
    let last = ordered.last().filter(|_| more);
    let last = last.map(|(name, _)| name.as_str().as_bytes().to_vec());
    let mut data = Vec::with_capacity(ordered.len());
    for (name, view) in ordered {
        let recent = if recent {
            Some(recent_of(rows, &name)?)
        } else {
            None
        };
        data.push(WorkflowView { recent, ..view });
    }
    Ok(paging.page(data, last.as_deref()))
}

/// Its newest runs, newest first; one that cannot be read is passed over.
fn recent_of(rows: &mut impl Rows, name: &JobName) -> Result<Vec<WorkflowRun>, StoreError> {
    let mut found = Vec::with_capacity(RECENT_MAX);
    for ((_, _, id), _) in rows.scan_back(&JOB_RUNS, &(TENANT, name.clone()), None, RECENT_MAX)? {
        found.extend(endings::readable(rows, id)?.as_ref().map(WorkflowRun::of));
    }
    Ok(found)
}
