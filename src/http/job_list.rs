//! `/api/jobs`: the jobs by pages, in the field names of everything under `/api`.
//!
//! The endpoints without a prefix keep the names that were fixed for them, so a job has two spellings and one view.

use std::collections::{BTreeMap, BTreeSet};

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use serde_json::{Map, Value};

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::{failing, input, job_detail, upcoming};
use crate::domain::slots::admission::Pause;
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::late;
use crate::store::{Rows, StoreError, runs};
use crate::words::names::JobName;

/// What can be told of each job beside what it is.
const INCLUDED: [&str; 1] = ["recent"];
const STATES: [&str; 5] = ["failing", "running", "paused", "late", "disabled"];

/// The filters of this list, and what is told of each job.
pub(super) const FILTERS: [Param; 6] = [
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
    Param::filter(
        "state",
        Kind::OneOf(&STATES),
        "Jobs of which this is true; a job can be in several states.",
    ),
    Param::query("q", Kind::Text, "Jobs whose name contains this, in any case."),
    Param::query(
        "include",
        Kind::OneOf(&INCLUDED),
        "`recent`: the newest 20 ended runs of each job.",
    ),
];

/// Which jobs are listed.
#[derive(Debug)]
struct Filter {
    pools: Vec<String>,
    enabled: Option<bool>,
    paused: Option<bool>,
    states: Vec<String>,
    /// In small letters.
    part: Option<String>,
}

impl Filter {
    fn of(pairs: &[(String, String)]) -> Result<Filter, Problem> {
        let states = paging::values(pairs, "state");
        if states.iter().any(|state| !STATES.contains(&state.as_str())) {
            let words = STATES.join(", ");
            return Err(Problem::unreadable(format!("`state` must be one of {words}")));
        }
        Ok(Filter {
            pools: paging::values(pairs, "pool"),
            enabled: input::flag(pairs, "enabled")?,
            paused: input::flag(pairs, "paused")?,
            states,
            part: input::last(pairs, "q").map(str::to_lowercase),
        })
    }

    /// Each filter as name and value: a cursor belongs to all of them.
    fn parts(&self) -> Vec<(&'static str, String)> {
        let pools = self.pools.iter().map(|name| ("pool", name.clone()));
        let states = self.states.iter().map(|state| ("state", state.clone()));
        let flags = [("enabled", self.enabled), ("paused", self.paused)];
        let flags = flags
            .into_iter()
            .filter_map(|(name, flag)| Some((name, flag?.to_string())));
        let part = self.part.iter().map(|part| ("q", part.clone()));
        pools.chain(states).chain(flags).chain(part).collect()
    }

    fn wants(&self, state: &str) -> bool {
        self.states.iter().any(|wanted| wanted == state)
    }
}

/// Jobs by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let filter = Filter::of(&pairs)?;
    let recent = match input::last(&pairs, "include") {
        None => false,
        Some("recent") => true,
        Some(_) => return Err(Problem::unreadable("`include` must be `recent`")),
    };
    let paging = Paging::of(&pairs, "jobs", &filter.parts(), true)?;
    let for_read = app.clone();
    let page = app
        .engine
        .read(move |tx| page(tx, &for_read, &filter, (&paging, recent)))
        .await?;
    Ok(Json(page))
}

fn page(
    rows: &mut impl Rows,
    app: &App,
    filter: &Filter,
    (paging, recent): (&Paging, bool),
) -> Result<Page<Value>, StoreError> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let paused = upcoming::paused(rows, now)?;
    let in_state = in_state(rows, app, &book, filter, &paused)?;
    let is_named = |name: &JobName, job: &BookJob| {
        let slots = job.definition.job_demand();
        let of_pool = filter.pools.is_empty()
            || slots.is_some_and(|demand| filter.pools.iter().any(|pool| pool == demand.slot_pool.as_str()));
        let part = filter.part.as_deref();
        of_pool
            && !job.definition.is_graph()
            && filter
                .enabled
                .is_none_or(|wanted| wanted == job.definition.enabled)
            && filter
                .paused
                .is_none_or(|wanted| wanted == paused.contains_key(name))
            && in_state.as_ref().is_none_or(|named| named.contains(name))
            && part.is_none_or(|part| name.as_str().to_lowercase().contains(part))
    };
    let named = book.jobs.iter().filter(|(name, job)| is_named(name, job));
    let named: Vec<&JobName> = named.map(|(name, _)| name).collect();
    let (shown, more) = paging::of_names(named.into_iter(), paging);
    let last = shown.last().filter(|_| more).map(|name| name.as_str().as_bytes());
    let wanted: Vec<JobName> = shown.iter().map(|name| (*name).clone()).collect();
    let views = job_detail::listed(rows, app, &wanted, (&paused, recent))?;
    Ok(paging.page(views.iter().map(snake_case).collect(), last))
}

/// The jobs that are in one of the wanted states; `None` if no state is wanted.
fn in_state(
    rows: &mut impl Rows,
    app: &App,
    book: &Book,
    filter: &Filter,
    paused: &BTreeMap<JobName, Pause>,
) -> Result<Option<BTreeSet<JobName>>, StoreError> {
    if filter.states.is_empty() {
        return Ok(None);
    }
    let mut named = BTreeSet::new();
    if filter.wants("disabled") {
        let disabled = book.jobs.iter().filter(|(_, job)| !job.definition.enabled);
        named.extend(disabled.map(|(name, _)| name.clone()));
    }
    if filter.wants("paused") {
        named.extend(paused.keys().cloned());
    }
    if filter.wants("late") {
        named.extend(late::all_stored(rows)?.into_keys());
    }
    if !filter.wants("running") && !filter.wants("failing") {
        return Ok(Some(named));
    }
    let live = runs::live(rows)?;
    if filter.wants("failing") {
        let (now, kept) = (app.engine.now().wall, app.config().retention.runs);
        let ended = app.endings.look(rows, book.jobs.keys(), (now, kept))?;
        named.extend(failing::faults(rows, book, &ended.newest, &live)?.into_keys());
    }
    if filter.wants("running") {
        named.extend(live.into_iter().map(|(_, _, row)| row.job));
    }
    Ok(Some(named))
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
