//! `/api/jobs`: the jobs by pages, in the field names of everything under `/api`.
//!
//! The endpoints without a prefix keep the names that were fixed for them, so a job has two spellings and one view.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use super::{input, jobs, version};
use crate::engine::changes::head;
use crate::store::{Rows, StoreError};
use crate::words::names::JobName;

/// The filters of this list.
pub(super) const FILTERS: [Param; 3] = [
    Param::filter(
        "pool",
        Kind::Text,
        "Jobs that get their slots from this slot pool.",
    ),
    Param::query(
        "enabled",
        Kind::Flag,
        "Jobs that may start, or those that may not.",
    ),
    Param::query("paused", Kind::Flag, "Jobs that are held, or those that are not."),
];

/// Which jobs are listed.
#[derive(Debug)]
struct Filter {
    pools: Vec<String>,
    enabled: Option<bool>,
    paused: Option<bool>,
}

/// Jobs by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let filter = Filter {
        pools: paging::values(&pairs, "pool"),
        enabled: input::flag(&pairs, "enabled")?,
        paused: input::flag(&pairs, "paused")?,
    };
    let parts = filter.pools.iter().map(|name| ("pool", name.clone()));
    let flags = [("enabled", filter.enabled), ("paused", filter.paused)];
    let flags = flags
        .into_iter()
        .filter_map(|(name, flag)| Some((name, flag?.to_string())));
    let parts: Vec<_> = parts.chain(flags).collect();
    let paging = Paging::of(&pairs, "jobs", &parts, true)?;
    let for_read = app.clone();
    let page = app
        .engine
        .read(move |tx| page(tx, &for_read, &filter, &paging))
        .await?;
    Ok(Json(page))
}

fn page(
    rows: &mut impl Rows,
    app: &App,
    filter: &Filter,
    paging: &Paging,
) -> Result<Page<Value>, StoreError> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let mut named: Vec<&JobName> = Vec::new();
    for (name, job) in &book.jobs {
        let slots = job.definition.main_step().slots.as_ref();
        let of_pool = filter.pools.is_empty()
            || slots.is_some_and(|demand| filter.pools.iter().any(|pool| pool == demand.slot_pool.as_str()));
        let enabled = filter
            .enabled
            .is_none_or(|wanted| wanted == job.definition.enabled);
        let paused = match filter.paused {
            None => true,
            Some(wanted) => wanted == head::job_pause(rows, name, now)?.is_some(),
        };
        if of_pool && enabled && paused {
            named.push(name);
        }
    }
    let (shown, more) = paging::of_names(named.into_iter(), paging);
    let last = shown.last().filter(|_| more).map(|name| name.as_str().as_bytes());
    let wanted: Vec<JobName> = shown.iter().map(|name| (*name).clone()).collect();
    let views = jobs::views(rows, app, &wanted)?;
    Ok(paging.page(views.iter().map(snake_case).collect(), last))
}

/// One job.
pub(super) async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let seen = jobs::one(&app, &name).await?;
    let data = snake_case(&seen.view);
    Ok(version::tagged(&headers, &seen.version, Data { data }))
}

/// A view whose field names are in snake case.
pub(super) fn snake_case<T: Serialize>(view: &T) -> Value {
    renamed(serde_json::to_value(view).expect("a view is plain data"))
}

fn renamed(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(name, value)| (snake(&name), renamed(value)));
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(renamed).collect()),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value,
    }
}

/// `lastRun` as `last_run`.
pub(super) fn snake(name: &str) -> String {
    let mut out = String::with_capacity(name.len() + 4);
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            out.push('_');
        }
        out.push(letter.to_ascii_lowercase());
    }
    out
}
