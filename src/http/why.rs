//! Why a job did or did not run at a time: loads what is known from one snapshot, and lets `domain::fires` answer.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use serde::Serialize;

use super::app::App;
use super::error::Problem;
use super::fires::{self, FireRun};
use super::jobs::{self, Known};
use super::runs::Data;
use super::{input, nodes};
use crate::daemon;
use crate::domain::fires::{Answer, Life, Question, Seen, SeenFire, why};
use crate::domain::schedule::{MOMENT_FORMS, Moment, Schedule, ZoneClock};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::definition::Definition;
use crate::engine::changes::head;
use crate::store::tables::{DEFINITIONS, FIRES, OWED};
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The answer on the wire. The names are single words, so both spellings of the API are the same.
#[derive(Debug, Serialize)]
pub(super) struct WhyView {
    job: String,
    /// As it was asked.
    asked: String,
    instant: String,
    local: String,
    timezone: String,
    code: String,
    sentence: String,
    remarks: Vec<String>,
    run: Option<FireRun>,
    before: Option<MomentView>,
    after: Option<MomentView>,
}

/// A moment of a schedule on two clocks.
#[derive(Debug, Serialize)]
pub(super) struct MomentView {
    instant: String,
    local: String,
}

impl MomentView {
    pub(super) fn of(clock: &ZoneClock, at: Millis) -> MomentView {
        MomentView {
            instant: at.to_string(),
            local: clock.local_time(at.0).unwrap_or_else(|| at.to_string()),
        }
    }
}

/// What one snapshot knows about a time of a job.
struct Facts {
    schedule: Option<std::sync::Arc<Schedule>>,
    enabled: bool,
    replaced_at: Option<Millis>,
    known_since: Option<Millis>,
    seen: Vec<Seen>,
    oldest: Option<Millis>,
    pause: Option<Pause>,
    lives: Vec<Life>,
}

/// Beside the jobs: plain.
pub(super) async fn of_job(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<WhyView>, Problem> {
    answer(&app, &name, &uri)
        .await
        .map(Json)
        .map_err(Problem::with_sentence)
}

/// Under `/api`.
pub(super) async fn of_schedule(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<Data<WhyView>>, Problem> {
    let data = answer(&app, &name, &uri).await?;
    Ok(Json(Data { data }))
}

async fn answer(app: &App, name: &str, uri: &Uri) -> Result<WhyView, Problem> {
    let known = jobs::find(&app.engine.book(), name)?;
    let pairs = input::query(uri, &["at"])?;
    let asked = input::last(&pairs, "at").ok_or_else(|| {
        Problem::unreadable(format!(
            "`at` is missing: the time that is asked about; {MOMENT_FORMS}"
        ))
    })?;
    let now = app.engine.now().wall;
    let clock = fires::clock_of(known.job.schedule.as_deref());
    let moment = read(&clock, "at", asked, now).map_err(Problem::unreadable)?;
    let facts = {
        let (app_again, moment, known) = (app.clone(), moment.clone(), known.clone());
        let reading = app
            .engine
            .read(move |tx| facts(tx, &app_again, &known, Millis(moment.at_ms), now));
        reading.await?
    };
    let given = why(&Question {
        job: name,
        moment: &moment,
        now,
        schedule: facts.schedule.as_deref(),
        replaced_at: facts.replaced_at,
        enabled: facts.enabled,
        on_missed: known.job.definition.policy.on_missed.word(),
        known_since: facts.known_since,
        seen: &facts.seen,
        oldest: facts.oldest,
        pause: facts.pause.as_ref(),
        lives: &facts.lives,
    });
    Ok(view(name, asked, &moment, &facts, given))
}

/// Reads a time of a request; the error names the parameter and the forms.
pub(super) fn read(clock: &ZoneClock, parameter: &str, asked: &str, now: Millis) -> Result<Moment, String> {
    // A plus sign that was not encoded arrives as a blank.
    let mended = asked
        .rsplit_once(' ')
        .filter(|(head, offset)| head.contains('T') && offset.len() == 5)
        .map(|(head, offset)| format!("{head}+{offset}"));
    let text = mended.as_deref().unwrap_or(asked);
    clock.read(text, now.0).ok_or_else(|| {
        let shown: String = asked.chars().take(64).collect();
        format!("`{parameter}`: `{shown}` is no time; {MOMENT_FORMS}")
    })
}

fn facts(
    rows: &mut impl Rows,
    app: &App,
    known: &Known,
    at: Millis,
    now: Millis,
) -> Result<Facts, StoreError> {
    let mut facts = in_force(rows, known, at)?;
    for ((_, _, _, node), fire) in
        rows.scan(&FIRES, &(TENANT, known.name.clone(), at), None, limits::PAGE_MAX)?
    {
        facts.seen.push(fires::seen_of(rows, &node, fire)?);
    }
    let owed = rows.scan(
        &OWED,
        &(TENANT, known.name.clone()),
        None,
        limits::MAINTENANCE_ROWS_MAX,
    )?;
    for (place, ((_, _, instant, node), row)) in owed.into_iter().enumerate() {
        if instant == at && row.run.is_none() {
            let fire = SeenFire::Owed {
                ahead: place,
                refused: row.refused,
            };
            facts.seen = vec![Seen { node, fire }];
        }
    }
    let oldest = rows.scan(&FIRES, &(TENANT, known.name.clone()), None, 1)?;
    facts.oldest = oldest.first().map(|((_, _, at, _), _)| *at);
    facts.pause = head::job_pause(rows, &known.name, now)?;
    facts.lives = nodes::all(rows)?
        .into_iter()
        .map(|(node, record)| Life {
            started_at: record.started_at,
            // What lives has not been seen for the last time.
            last_seen: if nodes::is_live(&app.engine, &node) {
                now
            } else {
                record.last_seen
            },
            node,
        })
        .collect();
    Ok(facts)
}

/// The definition that was in force at `at`, and when its schedule was replaced.
fn in_force(rows: &mut impl Rows, known: &Known, at: Millis) -> Result<Facts, StoreError> {
    let key = (TENANT, known.name.clone());
    let first = rows.scan(&DEFINITIONS, &key, None, 1)?;
    let current = &known.job.definition;
    let mut facts = Facts {
        schedule: known.job.schedule.clone(),
        enabled: current.enabled,
        replaced_at: None,
        known_since: first.first().map(|(_, record)| record.published_at),
        seen: Vec::new(),
        oldest: None,
        pause: None,
        lives: Vec::new(),
    };
    let mut later: Option<(Millis, Definition)> = None;
    for (_, record) in rows.scan_back(&DEFINITIONS, &key, None, limits::PAGE_MAX)? {
        let Ok(definition) = serde_json::from_str::<Definition>(record.json.as_str()) else {
            break;
        };
        if record.published_at <= at {
            if let Some((replaced_at, next)) = later {
                facts.schedule = daemon::schedule_of(&definition);
                facts.enabled = definition.enabled;
                facts.replaced_at = (next.schedule != definition.schedule).then_some(replaced_at);
            }
            break;
        }
        later = Some((record.published_at, definition));
    }
    Ok(facts)
}

fn view(name: &str, asked: &str, moment: &Moment, facts: &Facts, answer: Answer) -> WhyView {
    let clock = fires::clock_of(facts.schedule.as_deref());
    let at = Millis(moment.at_ms);
    let run = facts.seen.iter().find_map(|seen| match &seen.fire {
        SeenFire::Run(run) => Some(FireRun::of(run)),
        SeenFire::Skipped { .. } | SeenFire::Owed { .. } => None,
    });
    let MomentView { instant, local } = MomentView::of(&clock, at);
    WhyView {
        job: name.to_owned(),
        asked: asked.to_owned(),
        instant,
        local,
        timezone: clock.name().to_owned(),
        code: answer.code,
        sentence: answer.sentence,
        remarks: answer.remarks,
        run,
        before: answer.before.map(|at| MomentView::of(&clock, at)),
        after: answer.after.map(|at| MomentView::of(&clock, at)),
    }
}
