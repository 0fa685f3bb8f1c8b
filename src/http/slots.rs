//! `/pools`: capacity, queue and history of each slot pool, from a snapshot that waits for no writer.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::head::{self, Blocked, Head};
use super::input;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::pauses::PauseView;
use super::version;
use crate::domain::slots::admission::BEHIND;
use crate::domain::slots::claim::Claim;
use crate::domain::slots::entry::{EntryState, SlotEntry};
use crate::engine::book::Book;
use crate::engine::changes::cancel::EntryCancelled;
use crate::engine::changes::drift;
use crate::engine::changes::head as admission_head;
use crate::engine::desk;
use crate::store::rows::RunningRow;
use crate::store::tables::{SLOT_CLOSED, SLOT_RUNNING};
use crate::store::{Rows, StoreError, entries};
use crate::words::ids::{EntryId, TenantId};
use crate::words::limits;
use crate::words::names::SlotPoolName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
const ENTRY_NOT_FOUND: &str = "queue entry not found";

/// The configured slot pool of that name.
pub(super) fn find(book: &Book, name: &str) -> Result<SlotPoolName, Problem> {
    let known = SlotPoolName::new(name)
        .ok()
        .filter(|name| book.slot_pools.contains_key(name));
    known.ok_or_else(|| Problem::not_found(format!("pool '{name}' not found")))
}

/// A slot pool on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PoolView {
    #[schema(value_type = String)]
    name: SlotPoolName,
    slots: u32,
    configured_slots: u32,
    max_queued: u32,
    used: u32,
    queued: u64,
    /// Not all queued entries are shown.
    truncated: bool,
    paused: Option<PauseView>,
    draining: bool,
    /// The daemon whose load has given it other numbers than this daemon's configuration: this one takes nothing into it.
    differs_from: Option<String>,
    blocked_by: Option<Blocked>,
    #[serde(skip_serializing_if = "Option::is_none")]
    entries: Option<Vec<EntryView>>,
}

/// An entry on the wire. Secrets of its owner and payloads are never part of it.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct EntryView {
    id: String,
    /// The job; `DAG.TASK` for a task.
    job: String,
    run_id: String,
    /// Only for a task.
    #[serde(skip_serializing_if = "Option::is_none")]
    dag: Option<String>,
    /// Only for a task: with its number, like `load#3`, if it is expanded.
    #[serde(skip_serializing_if = "Option::is_none")]
    task: Option<String>,
    attempt: u32,
    kind: &'static str,
    state: &'static str,
    slots: u32,
    priority: i32,
    #[serde(skip_serializing_if = "Option::is_none")]
    position: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<String>,
    queued_at: String,
    expires_at: String,
    finished_at: Option<String>,
    reason: Option<String>,
    node: Option<String>,
    readmitted: u32,
    claim: Option<ClaimView>,
}

#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
struct ClaimView {
    node: String,
    fence: u64,
    claimed_at: String,
    lease_until: Option<String>,
    pid: Option<u32>,
}

impl ClaimView {
    fn of(claim: &Claim, row: Option<&RunningRow>) -> ClaimView {
        ClaimView {
            node: claim.node.to_string(),
            fence: claim.fence,
            claimed_at: claim.claimed_at.to_string(),
            lease_until: row.map(|row| row.lease.until_wall.to_string()),
            pid: claim.process.map(|process| process.pid),
        }
    }
}

impl EntryView {
    fn of(entry: &SlotEntry, row: Option<&RunningRow>) -> EntryView {
        let of_graph = entry.kind.is_of_graph();
        EntryView {
            id: entry.id.to_string(),
            job: if of_graph {
                format!("{}.{}", entry.job, entry.step)
            } else {
                entry.job.to_string()
            },
            run_id: entry.run.to_string(),
            dag: of_graph.then(|| entry.job.to_string()),
            task: of_graph.then(|| entry.step.to_string()),
            attempt: entry.attempt,
            kind: entry.kind.word(),
            state: entry.state.word(),
            slots: entry.slots,
            priority: entry.priority,
            position: None,
            waiting_reason: None,
            queued_at: entry.queued_at.to_string(),
            expires_at: entry.expires_at.to_string(),
            finished_at: entry.state.closed_at().map(|at| at.to_string()),
            reason: entry.state.reason().map(str::to_owned),
            node: entry.node.as_ref().map(ToString::to_string),
            readmitted: entry.readmitted,
            claim: entry.state.claim().map(|claim| ClaimView::of(claim, row)),
        }
    }

    fn waiting(entry: &SlotEntry, place: usize, head: Option<&Head>) -> EntryView {
        let reason = head
            .filter(|head| head.id == entry.id)
            .map_or(BEHIND, |head| head.sentence.as_str());
        EntryView {
            position: Some(place + 1),
            waiting_reason: Some(reason.to_owned()),
            ..EntryView::of(entry, None)
        }
    }
}

/// What can be asked of a slot pool's view.
pub(super) const QUERY: [Param; 2] = [
    Param::query(
        "entries",
        Kind::OneOf(&["all", "none"]),
        "`none` leaves the entries out.",
    ),
    Param::query(
        "limit",
        Kind::Integer,
        "Queued entries shown, 1 to 10000 (200); `queued` always counts all.",
    ),
];

/// Which entries are shown.
#[derive(Debug, Clone, Copy)]
pub(super) enum Shown {
    None,
    Queued(usize),
}

impl Shown {
    fn of(uri: &Uri) -> Result<Shown, Problem> {
        let pairs = input::query(uri, &QUERY)?;
        let limit = input::number(&pairs, "limit", 1, limits::SLOTS_MAX as usize)?;
        match input::last(&pairs, "entries") {
            Some("none") => Ok(Shown::None),
            None | Some("all") => Ok(Shown::Queued(limit.unwrap_or(limits::QUEUED_SHOWN_DEFAULT))),
            Some(_) => Err(Problem::unreadable("`entries` must be `none` or `all`")),
        }
    }
}

/// All slot pools; 503 as soon as one cannot be read.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Vec<PoolView>>, Problem> {
    let names: Vec<SlotPoolName> = app.engine.book().slot_pools.keys().cloned().collect();
    let work = async { read(&app, names, Shown::of(&uri)?).await };
    work.await.map(Json).map_err(Problem::with_sentence)
}

/// One slot pool.
pub(super) async fn show(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let work = async {
        let pool = find(&app.engine.book(), &name)?;
        let shown = Shown::of(&uri)?;
        if app.unreadable.now().contains_key(&pool) {
            return Err(Problem::unavailable());
        }
        let for_read = app.clone();
        let seen = app
            .engine
            .read(move |tx| look(tx, &for_read, &pool, shown))
            .await?;
        Ok(version::tagged(&headers, &seen.version, seen.view))
    };
    work.await.map_err(Problem::with_sentence)
}

/// A slot pool as one snapshot has it.
#[derive(Debug)]
pub(super) struct Seen {
    pub(super) view: PoolView,
    pub(super) version: String,
}

/// What `rows` say about one slot pool.
pub(super) fn look(
    rows: &mut impl Rows,
    app: &App,
    name: &SlotPoolName,
    shown: Shown,
) -> Result<Seen, StoreError> {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let view = view(rows, app, &book, name, shown, now)?;
    let pause = serde_json::to_string(&view.paused).expect("a pause is plain data");
    let numbers = format!("{} {} {}", view.slots, view.configured_slots, view.max_queued);
    let version = version::of_parts(&["pool", &numbers, &pause]);
    Ok(Seen { view, version })
}

async fn read(app: &App, names: Vec<SlotPoolName>, shown: Shown) -> Result<Vec<PoolView>, Problem> {
    let unreadable = app.unreadable.now();
    if names.iter().any(|name| unreadable.contains_key(name)) {
        return Err(Problem::unavailable());
    }
    let engine = app.engine.clone();
    let app = app.clone();
    let views = engine.read(move |tx| {
        let (book, now) = (app.engine.book(), app.engine.now().wall);
        names
            .iter()
            .map(|name| view(tx, &app, &book, name, shown, now))
            .collect()
    });
    Ok(views.await?)
}

fn view(
    rows: &mut impl Rows,
    app: &App,
    book: &Book,
    name: &SlotPoolName,
    shown: Shown,
    now: Millis,
) -> Result<PoolView, StoreError> {
    let state = admission_head::slot_pool(rows, name)?;
    let configured = book.slot_pools.get(name).copied();
    let slots = admission_head::stored_slots(state.as_ref(), book, name);
    let configured_slots = configured.map_or(0, |configured| configured.slots);
    let queued = entries::waiting_count(rows, name)?;
    let head = head::of(rows, book, name, now)?;
    let (list, queued_shown) = match shown {
        Shown::None => (None, 0),
        Shown::Queued(limit) => {
            let (list, count) = all_entries(rows, name, head.as_ref(), limit)?;
            (Some(list), count)
        }
    };
    let pause = state
        .as_ref()
        .and_then(|state| state.paused.as_ref())
        .filter(|pause| pause.holds_at(now));
    Ok(PoolView {
        name: name.clone(),
        slots,
        configured_slots,
        max_queued: configured.map_or(0, |configured| configured.max_queued),
        used: entries::used_slots(rows, name)?,
        queued,
        truncated: queued > queued_shown as u64,
        paused: pause.map(PauseView::of),
        draining: slots != configured_slots,
        differs_from: drift::slot_pool(rows, book, name)?.map(|other| other.node),
        blocked_by: app.heads.note(name, head.as_ref(), now),
        entries: list,
    })
}

/// Running by claim time, queued by position, then the newest closed ones; and how many of them are queued.
fn all_entries(
    rows: &mut impl Rows,
    name: &SlotPoolName,
    head: Option<&Head>,
    limit: usize,
) -> Result<(Vec<EntryView>, usize), StoreError> {
    let mut running = Vec::new();
    for (seq, row) in entries::running(rows, name)? {
        if let Some(entry) = entries::by_seq(rows, seq)? {
            running.push((
                entry.state.claim().map(|claim| claim.claimed_at),
                EntryView::of(&entry, Some(&row)),
            ));
        }
    }
    running.sort_by_key(|(at, _)| *at);
    let mut list: Vec<EntryView> = running.into_iter().map(|(_, view)| view).collect();
    let waiting = entries::waiting(rows, name, limit)?;
    let queued = waiting.len();
    for (place, (_, row)) in waiting.into_iter().enumerate() {
        if let Some(entry) = entries::by_seq(rows, row.seq)? {
            list.push(EntryView::waiting(&entry, place, head));
        }
    }
    let closed = rows.scan_back(
        &SLOT_CLOSED,
        &(TENANT, name.clone()),
        None,
        limits::CLOSED_KEPT_MAX,
    )?;
    for (_, row) in closed {
        if let Some(entry) = entries::by_seq(rows, row.seq)? {
            list.push(EntryView::of(&entry, None));
        }
    }
    Ok((list, queued))
}

/// One entry, whatever its state.
pub(super) async fn show_entry(
    State(app): State<App>,
    Path((name, key)): Path<(String, String)>,
) -> Result<Json<EntryView>, Problem> {
    let work = async {
        let pool = find(&app.engine.book(), &name)?;
        if app.unreadable.now().contains_key(&pool) {
            return Err(Problem::unavailable());
        }
        let id: EntryId = key.parse().map_err(|_| Problem::not_found(ENTRY_NOT_FOUND))?;
        let (book, now) = (app.engine.book(), app.engine.now().wall);
        let found = app
            .engine
            .read(move |tx| entry_view(tx, &book, &pool, id, now))
            .await?;
        found.ok_or_else(|| Problem::not_found(ENTRY_NOT_FOUND))
    };
    work.await.map(Json).map_err(Problem::with_sentence)
}

fn entry_view(
    rows: &mut impl Rows,
    book: &Book,
    pool: &SlotPoolName,
    id: EntryId,
    now: Millis,
) -> Result<Option<EntryView>, StoreError> {
    admission_head::slot_pool(rows, pool)?;
    let Some(entry) = entries::by_id(rows, id)?.filter(|entry| entry.slot_pool == *pool) else {
        return Ok(None);
    };
    match &entry.state {
        EntryState::Queued { .. } => {
            let head = head::of(rows, book, pool, now)?;
            let place = place_of(rows, &entry)?;
            Ok(Some(EntryView::waiting(&entry, place, head.as_ref())))
        }
        EntryState::Running { .. } => {
            let row = rows.get(&SLOT_RUNNING, &(TENANT, pool.clone(), entry.seq))?;
            Ok(Some(EntryView::of(&entry, row.as_ref())))
        }
        EntryState::Finished { .. } | EntryState::Expired { .. } | EntryState::Cancelled { .. } => {
            Ok(Some(EntryView::of(&entry, None)))
        }
    }
}

/// How many entries stand before a waiting one.
pub(super) fn place_of(rows: &mut impl Rows, entry: &SlotEntry) -> Result<usize, StoreError> {
    let waiting = entries::waiting(rows, &entry.slot_pool, usize::MAX)?;
    Ok(waiting
        .iter()
        .position(|(_, row)| row.seq == entry.seq)
        .unwrap_or(waiting.len()))
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CancelledEntry {
    id: String,
    state: &'static str,
}

/// Cancels an entry that waits; a cancelled one stays cancelled.
pub(super) async fn cancel_entry(
    State(app): State<App>,
    Path((name, key)): Path<(String, String)>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let work = async {
        input::no_fields(&body)?;
        let missing = || Problem::forbidden_by_state(ENTRY_NOT_FOUND);
        let pool = SlotPoolName::new(&name).map_err(|_| missing())?;
        let id: EntryId = key.parse().map_err(|_| missing())?;
        let asked = once.ask(move |_, outcome| {
            Ok(match outcome {
                EntryCancelled::Cancelled => Some(once::ok(&CancelledEntry {
                    id: key.clone(),
                    state: "cancelled",
                })),
                EntryCancelled::NotWaiting | EntryCancelled::NotFound => None,
            })
        });
        let told = desk::cancel_entry(&app.engine, pool, id, asked).await?;
        once::respond(told, |outcome| match outcome {
            EntryCancelled::NotWaiting => {
                Problem::forbidden_by_state("only waiting entries can be cancelled")
            }
            EntryCancelled::NotFound => missing(),
            EntryCancelled::Cancelled => unreachable!("a cancelled entry has an answer"),
        })
    };
    work.await.map_err(Problem::with_sentence)
}
