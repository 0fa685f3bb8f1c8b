//! What became of the due moments of a job, newest first: `/jobs/{job}/fires` and `/api/schedules/{job}/fires`.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Serialize;

use super::app::App;
use super::error::Problem;
use super::{input, jobs};
use crate::domain::fires::{Seen, SeenFire, SeenRun, skip_text, skipped_run_code};
use crate::domain::schedule::{Schedule, ZoneClock};
use crate::domain::workflow::run::{Run, RunState};
use crate::store::keys::Key;
use crate::store::rows::Fire;
use crate::store::tables::{FIRES, JOB_RUNS, RUNS};
use crate::store::{Rows, StoreError};
use crate::words::ids::{self, TenantId, digest_of_parts};
use crate::words::limits;
use crate::words::names::{JobName, NodeName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Rows looked at for one answer: a filter that matches nothing must not walk the whole table.
const SCANNED_MAX: usize = 5_000;
const OUTCOMES: [&str; 3] = ["run", "caught_up", "skipped"];
/// What a fire is called whose row cannot be read.
const UNREADABLE: &str = "unreadable";

type FireKey = (TenantId, JobName, Millis, String);

/// A due moment on the wire. The names are single words, so both spellings of the API are the same.
#[derive(Debug, Serialize)]
pub(super) struct FireView {
    instant: String,
    local: String,
    timezone: String,
    /// `run`, `caught_up`, `skipped`, or `unreadable`.
    outcome: &'static str,
    /// The daemon that fired for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    run: Option<FireRun>,
    skipped: Option<SkipView>,
}

/// The run that a moment became.
#[derive(Debug, Clone, Serialize)]
pub(super) struct FireRun {
    id: String,
    /// Absent when the run is no longer kept.
    state: Option<&'static str>,
    reason: Option<String>,
}

#[derive(Debug, Serialize)]
struct SkipView {
    code: String,
    text: String,
}

impl FireRun {
    pub(super) fn of(run: &SeenRun) -> FireRun {
        FireRun {
            id: run.id.clone(),
            state: run.state,
            reason: run.reason.clone(),
        }
    }
}

impl FireView {
    fn new(clock: &ZoneClock, at: Millis, seen: Option<&Seen>) -> FireView {
        let (outcome, run, code) = match seen.map(|seen| &seen.fire) {
            None => (UNREADABLE, None, None),
            Some(SeenFire::Skipped { code, .. }) => ("skipped", None, Some(code.clone())),
            Some(SeenFire::Owed { .. }) => ("owed", None, None),
            Some(SeenFire::Run(run)) => match run.state {
                Some("skipped") => {
                    let reason = run.reason.as_deref().unwrap_or_default();
                    ("skipped", Some(run), Some(skipped_run_code(reason).to_owned()))
                }
                Some(_) | None if run.caught_up => ("caught_up", Some(run), None),
                Some(_) | None => ("run", Some(run), None),
            },
        };
        FireView {
            instant: at.to_string(),
            local: clock.local_time(at.0).unwrap_or_else(|| at.to_string()),
            timezone: clock.name().to_owned(),
            outcome,
            node: seen.map(|seen| seen.node.clone()).filter(|node| !node.is_empty()),
            run: run.map(FireRun::of),
            skipped: code.map(|code| SkipView {
                text: skip_text(&code),
                code,
            }),
        }
    }
}

/// The clock on which the times of a job are told: that of its schedule, or UTC.
pub(super) fn clock_of(schedule: Option<&Schedule>) -> ZoneClock {
    schedule.map_or_else(ZoneClock::utc, Schedule::clock)
}

/// What a row says, with the state of its run.
pub(super) fn seen_of(rows: &mut impl Rows, node: &str, fire: Fire) -> Result<Seen, StoreError> {
    let caught_up = matches!(fire, Fire::CaughtUp(_));
    let fire = match fire {
        Fire::Skipped { reason, at } => SeenFire::Skipped { code: reason, at },
        Fire::Run(id) | Fire::CaughtUp(id) | Fire::Withdrawn { run: id, .. } => {
            let (state, run) = match rows.get(&RUNS, &(TENANT, id)) {
                Ok(run) => (run.as_ref().map(|run: &Run| run.state.word()), run),
                Err(error) if error.is_row_fault() => (Some(UNREADABLE), None),
                Err(error) => return Err(error),
            };
            SeenFire::Run(SeenRun {
                id: id.to_string(),
                state,
                reason: run.as_ref().and_then(|run| run.state.reason()).map(str::to_owned),
                caught_up: caught_up || run.is_some_and(|run| run.trigger.word() == "catchup"),
            })
        }
    };
    Ok(Seen {
        node: node.to_owned(),
        fire,
    })
}

/// The newest fire of a job.
pub(super) fn newest(
    rows: &mut impl Rows,
    job: &JobName,
    clock: &ZoneClock,
) -> Result<Option<(Millis, FireView)>, StoreError> {
    let found = rows.scan_each_back(&FIRES, &(TENANT, job.clone()), None, 1)?;
    let Some(each) = found.into_iter().next() else {
        return Ok(None);
    };
    let Some((_, _, at, node)) = FireKey::decode(&each.key) else {
        return Ok(None);
    };
    let seen = match each.row {
        Ok((_, fire)) => Some(seen_of(rows, &node, fire)?),
        Err(_) => None,
    };
    Ok(Some((at, FireView::new(clock, at, seen.as_ref()))))
}

/// What is asked for.
#[derive(Debug, Clone)]
struct Wanted {
    job: JobName,
    clock: ZoneClock,
    outcomes: Vec<String>,
    size: usize,
    before: Option<Vec<u8>>,
}

impl Wanted {
    fn read(app: &App, name: &str, pairs: &[(String, String)], size: usize) -> Result<Wanted, Problem> {
        let known = jobs::find(&app.engine.book(), name)?;
        let mut outcomes: Vec<String> = pairs
            .iter()
            .filter(|(key, _)| key == "outcome")
            .map(|(_, value)| value.clone())
            .collect();
        outcomes.sort_unstable();
        outcomes.dedup();
        if outcomes
            .iter()
            .any(|outcome| !OUTCOMES.contains(&outcome.as_str()))
        {
            let all = OUTCOMES.join(", ");
            return Err(Problem::unreadable(format!("`outcome` must be one of {all}")));
        }
        let mut wanted = Wanted {
            clock: clock_of(known.job.schedule.as_deref()),
            job: known.name,
            outcomes,
            size,
            before: None,
        };
        if let Some(cursor) = input::last(pairs, "cursor") {
            wanted.before = Some(wanted.place(cursor)?);
        }
        Ok(wanted)
    }

    fn digest(&self) -> String {
        let mut parts = vec!["fires", self.job.as_str()];
        parts.extend(self.outcomes.iter().map(String::as_str));
        ids::hex(&digest_of_parts(&parts)[..4])
    }

    /// Behind the fire of this key. The moment and the node are the whole place: the job stands in the path.
    fn cursor(&self, (_, _, at, node): &FireKey) -> String {
        format!("{:016x}{}{node}", at.0, self.digest())
    }

    fn place(&self, cursor: &str) -> Result<Vec<u8>, Problem> {
        let bad = || Problem::unreadable("`cursor` is not one of this list");
        let (at, rest) = cursor.split_at_checked(16).ok_or_else(bad)?;
        let (digest, node) = rest.split_at_checked(8).ok_or_else(bad)?;
        if digest != self.digest() {
            return Err(Problem::unreadable("`cursor` belongs to another filter"));
        }
        let at = u64::from_str_radix(at, 16).map_err(|_| bad())?;
        if !node.is_empty() && NodeName::new(node).is_err() {
            return Err(bad());
        }
        Ok((
            TENANT,
            self.job.clone(),
            Millis(at.cast_signed()),
            node.to_owned(),
        )
            .encode())
    }

    fn matches(&self, view: &FireView) -> bool {
        self.outcomes.is_empty() || self.outcomes.iter().any(|outcome| outcome == view.outcome)
    }
}

/// Some fires, and where the next page begins.
struct Page {
    fires: Vec<FireView>,
    next: Option<FireKey>,
}

fn page(rows: &mut impl Rows, wanted: &Wanted) -> Result<Page, StoreError> {
    let mut fires = Vec::new();
    let mut before = wanted.before.clone();
    let mut last: Option<FireKey> = None;
    let mut scanned = 0;
    loop {
        let chunk = rows.scan_each_back(
            &FIRES,
            &(TENANT, wanted.job.clone()),
            before.as_deref(),
            wanted.size + 1,
        )?;
        let is_last = chunk.len() <= wanted.size;
        for each in chunk {
            if fires.len() == wanted.size || scanned == SCANNED_MAX {
                return Ok(Page { fires, next: last });
            }
            scanned += 1;
            let key = FireKey::decode(&each.key);
            before = Some(each.key);
            let Some(key) = key else { continue };
            let seen = match each.row {
                Ok((_, fire)) => Some(seen_of(rows, &key.3, fire)?),
                Err(_) => None,
            };
            let view = FireView::new(&wanted.clock, key.2, seen.as_ref());
            if wanted.matches(&view) {
                fires.push(view);
            }
            last = Some(key);
        }
        if is_last {
            return Ok(Page { fires, next: None });
        }
    }
}

/// The list beside the jobs: plain, at most `limit`.
pub(super) async fn of_job(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<Vec<FireView>>, Problem> {
    let work = async {
        let pairs = input::query(&uri, &["limit", "outcome"])?;
        let size = input::number(&pairs, "limit", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT);
        let wanted = Wanted::read(&app, &name, &pairs, size)?;
        let found = app.engine.read(move |tx| page(tx, &wanted)).await?;
        Ok(Json(found.fires))
    };
    work.await.map_err(Problem::with_sentence)
}

#[derive(Debug, Serialize)]
pub(super) struct FirePage {
    data: Vec<FireView>,
    pagination: Pagination,
}

#[derive(Debug, Serialize)]
struct Pagination {
    #[serde(skip_serializing_if = "Option::is_none")]
    next_cursor: Option<String>,
}

/// The list under `/api`, by pages.
pub(super) async fn of_schedule(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<FirePage>, Problem> {
    let known = ["outcome", "pagination.page_size", "pagination.cursor"];
    let mut pairs = input::query(&uri, &known)?;
    for (name, _) in &mut pairs {
        if let Some(short) = name.strip_prefix("pagination.") {
            *name = short.to_owned();
        }
    }
    let size = input::number(&pairs, "page_size", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT);
    let wanted = Wanted::read(&app, &name, &pairs, size)?;
    let for_read = wanted.clone();
    let found = app.engine.read(move |tx| page(tx, &for_read)).await?;
    Ok(Json(FirePage {
        data: found.fires,
        pagination: Pagination {
            next_cursor: found.next.map(|key| wanted.cursor(&key)),
        },
    }))
}

/// How long the newest ended runs of a job took, in milliseconds.
pub(super) fn durations(rows: &mut impl Rows, job: &JobName, count: usize) -> Result<Vec<u64>, StoreError> {
    let newest = rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, count)?;
    let mut found = Vec::with_capacity(newest.len());
    for ((_, _, id), _) in newest {
        let run: Option<Run> = match rows.get(&RUNS, &(TENANT, id)) {
            Ok(run) => run,
            Err(error) if error.is_row_fault() => None,
            Err(error) => return Err(error),
        };
        let state = run.map(|run| run.state);
        let took = state.as_ref().and_then(took);
        found.extend(took);
    }
    Ok(found)
}

fn took(state: &RunState) -> Option<u64> {
    Some(state.ended_at()?.since(state.started_at()?))
}
