//! `/livez`, `/readyz`, `/healthz`, `/version`: answered from the last result of a check that runs once a second.
//!
//! They never wait on the store: a store that hangs shows as a result that grows old.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::{App, VERSION};
use super::error::Problem;
use super::param::{Kind, Param};
use super::{head, input};
use crate::domain::disk::{self, Lack, Room};
use crate::store::migrate::FORMAT;
use crate::store::tables::META;
use crate::store::{Rows, StoreError};
use crate::words::limits;
use crate::words::time::BootMillis;

/// A result older than this is a failure of the check itself.
const STALE_MS: u64 = 5_000;
/// The loops pass once a second, and a change may take ten: beyond this they hang.
const PASS_LOST_MS: u64 = 30_000;

/// What the last check found.
#[derive(Debug, Clone, Copy)]
struct Report {
    at: BootMillis,
    store: bool,
    /// For so long nothing could be written, because another daemon has its turn.
    turn_wait_ms: u64,
    space: Option<Room>,
    passes: u64,
    passes_moved: BootMillis,
}

impl Report {
    /// Whoever wants to write has been refused by now.
    fn is_held(&self) -> bool {
        self.turn_wait_ms >= limits::OPERATION_MS
    }
}

/// The last results; clones share them.
#[derive(Debug, Clone, Default)]
pub(super) struct Health {
    last: Arc<Mutex<Option<Report>>>,
}

impl Health {
    fn last(&self) -> Option<Report> {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn put(&self, report: Report) {
        *self.last.lock().unwrap_or_else(PoisonError::into_inner) = Some(report);
    }

    /// Free bytes of the state directory's file system.
    pub(super) fn free_bytes(&self) -> Option<u64> {
        self.space().map(|space| space.free_bytes)
    }

    /// The room that was found last.
    pub(super) fn space(&self) -> Option<Room> {
        self.last().and_then(|report| report.space)
    }
}

/// Checks once a second until the daemon ends.
pub(super) async fn watch(app: App) {
    loop {
        check(&app).await;
        tokio::time::sleep(Duration::from_millis(limits::PASS_PERIOD_MS)).await;
    }
}

/// One check. The store may hang: then this does, and the last result grows old.
pub(super) async fn check(app: &App) {
    let for_read = app.clone();
    let read = app.engine.read(move |tx| {
        tx.get(&META, &("sequence".to_owned(),))?;
        note_heads(tx, &for_read);
        Ok(())
    });
    let store = read.await.is_ok();
    let turn_wait_ms = app.engine.store.turn_wait_ms();
    let (disk, root) = (app.engine.disk.clone(), app.engine.directory.root().to_path_buf());
    let low = app.config().state.low_disk_bytes;
    let looked = tokio::task::spawn_blocking(move || {
        disk.look(&root, low);
        disk.room()
    });
    let space = looked.await;
    let (now, passes) = (app.engine.now().boot, app.engine.metrics.passes());
    let before = app.health.last();
    let passes_moved = before
        .filter(|before| before.passes == passes)
        .map_or(now, |before| before.passes_moved);
    app.health.put(Report {
        at: now,
        store,
        turn_wait_ms,
        space: space.ok().flatten(),
        passes,
        passes_moved,
    });
}

/// Remembers since when each head is blocked. A slot pool that cannot be read is told elsewhere.
fn note_heads(rows: &mut impl Rows, app: &App) {
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    for pool in book.slot_pools.keys() {
        let judged: Result<_, StoreError> = head::of(rows, &book, pool, now);
        if let Ok(head) = judged {
            app.heads.note(pool, head.as_ref(), now);
        }
    }
}

/// One line of `/readyz?verbose`.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = ReadinessCheck)]
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) ok: bool,
    pub(super) detail: String,
    age_ms: u64,
}

/// Whether there is room for new runs, and how much.
fn disk_check(app: &App) -> (bool, String) {
    let low = app.config().state.low_disk_bytes;
    match app.health.free_bytes() {
        None => (false, "free space is not known".to_owned()),
        Some(free) => match app.engine.disk.lack() {
            None => (true, format!("{free} bytes free")),
            Some(Lack::Bytes) => (false, {
                let enough = disk::enough_bytes(low);
                format!("{free} bytes free: no new run begins with less than {enough}")
            }),
            Some(Lack::Files) => (
                false,
                format!("{free} bytes free, but hardly any files (inodes): no new run begins"),
            ),
        },
    }
}

/// What `/readyz` looks at.
pub(super) fn checks(app: &App) -> Vec<Check> {
    let now = app.engine.now().boot;
    let last = app.health.last();
    let age_ms = last.map_or(0, |last| last.at.until(now));
    let check = |name, ok: bool, detail: &str, age_ms| Check {
        name,
        ok,
        detail: detail.to_owned(),
        age_ms,
    };
    let fresh = last.filter(|_| age_ms <= STALE_MS);
    let store = match (last, fresh) {
        (None, _) => "not checked yet",
        (Some(_), None) => "does not answer",
        (Some(_), Some(report)) if report.is_held() => {
            "cannot be written: another daemon has its turn and does not end it; is one stopped?"
        }
        (Some(_), Some(report)) if report.store => "can be read",
        (Some(_), Some(_)) => "cannot be read",
    };
    let disk = disk_check(app);
    let trusted = app.engine.book().locks_trusted;
    let draining = app.engine.is_stopping();
    let passing = is_passing(app, last, now);
    // A rejected reload is told everywhere, and is no reason to take a working daemon out of service.
    let standing = app.reloader.standing();
    let configuration = match &standing.rejected {
        None => format!("in force since {}", standing.since),
        Some(rejected) => format!(
            "in force since {}; a reload was rejected at {}",
            standing.since, rejected.at
        ),
    };
    vec![
        check(
            "store",
            fresh.is_some_and(|report| report.store && !report.is_held()),
            store,
            age_ms,
        ),
        check("disk", disk.0, &disk.1, age_ms),
        check(
            "locks",
            trusted,
            if trusted { "exclude" } else { "cannot be trusted" },
            0,
        ),
        check(
            "scheduler",
            passing,
            if passing { "passes" } else { "does not pass" },
            age_ms,
        ),
        check("configuration", true, &configuration, 0),
        check(
            "drain",
            !draining,
            if draining { "draining" } else { "not draining" },
            0,
        ),
    ]
}

/// Nothing has been checked yet.
pub(super) fn is_starting(app: &App) -> bool {
    app.health.last().is_none()
}

/// The store answers and the loops turn. At the very start nothing is known yet, which is no sign of death.
pub(super) fn is_alive(app: &App) -> bool {
    let (last, now) = (app.health.last(), app.engine.now().boot);
    let store = last.is_none_or(|last| last.store && last.at.until(now) <= STALE_MS);
    store && is_passing(app, last, now)
}

/// While it drains, the loops have ended on purpose.
fn is_passing(app: &App, last: Option<Report>, now: BootMillis) -> bool {
    app.engine.is_stopping() || last.is_none_or(|last| last.passes_moved.until(now) <= PASS_LOST_MS)
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Standing {
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    checks: Option<Vec<Check>>,
}

/// 200 while the loops turn.
pub(super) async fn live(State(app): State<App>) -> Result<Response, Problem> {
    if is_passing(&app, app.health.last(), app.engine.now().boot) {
        return Ok(Json(Standing {
            status: "live",
            checks: None,
        })
        .into_response());
    }
    Err(Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        "the scheduler does not pass any more",
    ))
}

/// What can be asked of readiness.
pub(super) const QUERY: [Param; 1] = [Param::query(
    "verbose",
    Kind::Text,
    "Lists each check with its age.",
)];

/// 200 when work can be accepted and done.
pub(super) async fn ready(State(app): State<App>, uri: Uri) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let verbose = input::last(&pairs, "verbose").is_some_and(|value| value != "false");
    let checks = checks(&app);
    let bad: Vec<&str> = checks
        .iter()
        .filter(|check| !check.ok)
        .map(|check| check.name)
        .collect();
    if bad.is_empty() {
        let checks = verbose.then_some(checks);
        return Ok(Json(Standing {
            status: "ready",
            checks,
        })
        .into_response());
    }
    let problem = Problem::new(
        StatusCode::SERVICE_UNAVAILABLE,
        format!("not ready: {}", bad.join(", ")),
    );
    let shown = if verbose {
        serde_json::to_value(&checks).ok()
    } else {
        None
    };
    Err(match shown {
        Some(checks) => problem.member("checks", checks),
        None => problem,
    })
}

#[derive(Debug, Serialize, ToSchema)]
pub(super) struct Identity {
    name: &'static str,
    version: &'static str,
    commit: &'static str,
    /// Of the state directory.
    schema: u32,
}

/// The commit, if the build was told.
pub(super) fn commit() -> &'static str {
    option_env!("DUCTOR_COMMIT").unwrap_or("unknown")
}

/// What this is.
pub(super) async fn version() -> Json<Identity> {
    Json(Identity {
        name: "ductor",
        version: VERSION,
        commit: commit(),
        schema: FORMAT,
    })
}
