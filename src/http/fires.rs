//! What became of the due moments of a job, newest first: `/jobs/{job}/fires` and `/api/schedules/{job}/fires`.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::{input, jobs};
use crate::domain::fires::{Seen, SeenFire, SeenRun, skip_text, skipped_run_code};
use crate::domain::schedule::{Schedule, ZoneClock};
use crate::domain::workflow::run::{Run, RunState};
use crate::store::keys::Key;
use crate::store::rows::{Fire, Owed};
use crate::store::tables::{FIRES, JOB_RUNS, OWED, RUNS};
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Rows looked at for one answer: a filter that matches nothing must not walk the whole table.
const SCANNED_MAX: usize = 5_000;
const OUTCOMES: &[&str] = &["run", "caught_up", "owed", "skipped"];

/// The filters of both lists.
pub(super) const FILTERS: [Param; 1] = [Param::filter(
    "outcome",
    Kind::OneOf(OUTCOMES),
    "Moments of which this became.",
)];
/// What can be asked of the plain list.
pub(super) const QUERY: [Param; 2] = [
    Param::query("limit", Kind::Integer, "Moments at most, 1 to 500 (50)."),
    FILTERS[0],
];
/// What a fire is called whose row cannot be read.
const UNREADABLE: &str = "unreadable";

type FireKey = (TenantId, JobName, Millis, String);

/// A due moment on the wire. The names are single words, so both spellings of the API are the same.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct FireView {
    instant: String,
    local: String,
    timezone: String,
    /// `run`, `caught_up`, `owed` (missed and still to run), `skipped`, or `unreadable`.
    outcome: &'static str,
    /// The daemon that fired for itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<String>,
    run: Option<FireRun>,
    skipped: Option<SkipView>,
}

/// The run that a moment became.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct FireRun {
    id: String,
    /// Absent when the run is no longer kept.
    state: Option<&'static str>,
    reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
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
    /// `run`, `caught_up`, `owed`, `skipped` or `unreadable`.
    pub(super) fn outcome(&self) -> &'static str {
        self.outcome
    }

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
    paging: Paging,
}

impl Wanted {
    fn read(app: &App, name: &str, pairs: &[(String, String)]) -> Result<Wanted, Problem> {
        let known = jobs::find(&app.engine.book(), name)?;
        let outcomes = paging::values(pairs, "outcome");
        if outcomes
            .iter()
            .any(|outcome| !OUTCOMES.contains(&outcome.as_str()))
        {
            let all = OUTCOMES.join(", ");
            return Err(Problem::unreadable(format!("`outcome` must be one of {all}")));
        }
        let filter = outcomes.iter().map(|outcome| ("outcome", outcome.clone()));
        let filter: Vec<_> = [("job", known.name.to_string())]
            .into_iter()
            .chain(filter)
            .collect();
        let mut paging = Paging::of(pairs, "fires", &filter, false)?;
        // Only the moment and the node come from outside: the job stands in the path.
        if let Some(place) = paging.after.take() {
            paging.after = Some(whole_key(&known.name, &place)?);
        }
        Ok(Wanted {
            clock: clock_of(known.job.schedule.as_deref()),
            job: known.name,
            outcomes,
            paging,
        })
    }

    fn matches(&self, view: &FireView) -> bool {
        self.outcomes.is_empty() || self.outcomes.iter().any(|outcome| outcome == view.outcome)
    }
}

fn whole_key(job: &JobName, place: &[u8]) -> Result<Vec<u8>, Problem> {
    let (at, node) = <(Millis, String)>::decode(place)
        .ok_or_else(|| Problem::unreadable("`pagination.cursor` is not one of this list"))?;
    Ok((TENANT, job.clone(), at, node).encode())
}

/// What stands in the store about a moment.
enum Recorded {
    Fire(Fire),
    /// It was missed, and its run has not begun.
    Owed(Owed),
    Unreadable,
}

/// Fires and owed moments in the order of their keys, which are alike. A moment that has a fire row is not owed as well,
/// or its run ended before it started: then the row is the newer word.
fn moments(
    rows: &mut impl Rows,
    prefix: &(TenantId, JobName),
    ascending: bool,
    after: Option<&[u8]>,
    limit: usize,
) -> Result<Vec<(Vec<u8>, Recorded)>, StoreError> {
    let (fires, owed) = if ascending {
        let fires = rows.scan_each(&FIRES, prefix, after, limit)?;
        (fires, rows.scan_each(&OWED, prefix, after, limit)?)
    } else {
        let fires = rows.scan_each_back(&FIRES, prefix, after, limit)?;
        (fires, rows.scan_each_back(&OWED, prefix, after, limit)?)
    };
    let mut found: BTreeMap<Vec<u8>, Recorded> = BTreeMap::new();
    for each in owed {
        match each.row {
            Ok((_, row)) if row.run.is_some() => {}
            Ok((_, row)) => drop(found.insert(each.key, Recorded::Owed(row))),
            Err(_) => drop(found.insert(each.key, Recorded::Unreadable)),
        }
    }
    for each in fires {
        let recorded = each
            .row
            .map_or(Recorded::Unreadable, |(_, fire)| Recorded::Fire(fire));
        found.insert(each.key, recorded);
    }
    let mut ordered: Vec<(Vec<u8>, Recorded)> = found.into_iter().collect();
    if !ascending {
        ordered.reverse();
    }
    ordered.truncate(limit);
    Ok(ordered)
}

fn page(rows: &mut impl Rows, wanted: &Wanted) -> Result<Page<FireView>, StoreError> {
    let (paging, prefix) = (&wanted.paging, (TENANT, wanted.job.clone()));
    let mut fires = Vec::new();
    let mut after = paging.after.clone();
    let mut last: Option<Vec<u8>> = None;
    let mut scanned = 0;
    loop {
        let limit = paging.size + 1;
        let chunk = moments(rows, &prefix, paging.ascending, after.as_deref(), limit)?;
        let is_last = chunk.len() < limit;
        for (key, moment) in chunk {
            if fires.len() == paging.size || scanned == SCANNED_MAX {
                return Ok(paging.page(fires, last.as_deref()));
            }
            scanned += 1;
            let decoded = FireKey::decode(&key);
            after = Some(key);
            let Some((_, _, at, node)) = decoded else { continue };
            let seen = match moment {
                Recorded::Fire(fire) => Some(seen_of(rows, &node, fire)?),
                Recorded::Owed(row) => {
                    let fire = SeenFire::Owed {
                        ahead: 0,
                        refused: row.refused,
                    };
                    let node = node.clone();
                    Some(Seen { node, fire })
                }
                Recorded::Unreadable => None,
            };
            let view = FireView::new(&wanted.clock, at, seen.as_ref());
            if wanted.matches(&view) {
                fires.push(view);
            }
            last = Some((at, node).encode());
        }
        if is_last {
            return Ok(paging.page(fires, None));
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
        let pairs = input::query(&uri, &QUERY)?;
        let mut wanted = Wanted::read(&app, &name, &pairs)?;
        if let Some(limit) = input::number(&pairs, "limit", 1, limits::PAGE_MAX)? {
            wanted.paging.size = limit;
        }
        let found = app.engine.read(move |tx| page(tx, &wanted)).await?;
        Ok(Json(found.data))
    };
    work.await.map_err(Problem::with_sentence)
}

/// The list under `/api`, by pages.
pub(super) async fn of_schedule(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<Page<FireView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let wanted = Wanted::read(&app, &name, &pairs)?;
    Ok(Json(app.engine.read(move |tx| page(tx, &wanted)).await?))
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
