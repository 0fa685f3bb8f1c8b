//! `/api/dead_letters`: what was given up, one list of both kinds. Steps with which daemons died come first, then reports
//! that could not be delivered, each newest first. A letter is tried again, or put away.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::run_start::{self, Again};
use super::runs::Data;
use super::start::{self, Wish};
use super::{input, jobs};
use crate::domain::report::{Effect, EffectState};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::run::Run;
use crate::engine::changes::dead::{self, Done, Letter};
use crate::engine::changes::start::Started;
use crate::engine::desk;
use crate::engine::runs::Begun;
use crate::store::keys::Key;
use crate::store::rows::DeadStep;
use crate::store::runs::by_id;
use crate::store::tables::{DEAD_STEPS, EFFECT_DECIDED};
use crate::store::{Rows, StoreError, effects};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
const KINDS: [&str; 2] = ["step", "report"];
/// How the id of a report begins; its number follows.
const REPORT: &str = "report-";
/// How the id of a step begins; its run and its name follow. A colon would be read as a verb.
const STEP: &str = "step-";

/// The filters of the list.
pub(super) const FILTERS: [Param; 2] = [
    Param::filter("kind", Kind::OneOf(&KINDS), "Only letters of this kind."),
    Param::filter("job", Kind::Text, "Only letters of this job or workflow."),
];

/// Something that was given up.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(super) struct LetterView {
    id: String,
    /// `step`: daemons died with it. `report`: nobody could be told.
    kind: &'static str,
    job: String,
    /// The run; absent for reports about no run.
    run: Option<String>,
    /// Of a step.
    step: Option<String>,
    /// When it was given up.
    at: String,
    reason: String,
    /// Daemons that died with a step, or tries to deliver a report.
    tries: u32,
    /// The key that asked for a report, like `onFailure`.
    on: Option<&'static str>,
    /// `webhook` or `shell`, of a report.
    target: Option<&'static str>,
}

/// The answer to a letter that is tried again or put away.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HandledLetter {
    id: String,
    /// `discarded`; `waiting`: the report is delivered anew; `begun`: a new run tries the step again.
    state: &'static str,
    /// The new run.
    run: Option<String>,
}

impl LetterView {
    fn of_step(run: RunId, step: &StepRef, row: &DeadStep) -> LetterView {
        LetterView {
            id: format!("{STEP}{run}-{step}"),
            kind: "step",
            job: row.job.to_string(),
            run: Some(run.to_string()),
            step: Some(step.to_string()),
            at: row.at.to_string(),
            reason: reason::CRASH_LIMIT.to_owned(),
            tries: row.deaths,
            on: None,
            target: None,
        }
    }

    fn of_report(effect: &Effect) -> Option<LetterView> {
        let EffectState::Dead { at, tries, reason } = &effect.state else {
            return None;
        };
        Some(LetterView {
            id: format!("{REPORT}{}", effect.seq),
            kind: "report",
            job: effect.job.to_string(),
            run: effect.run.map(|run| run.to_string()),
            step: None,
            at: at.to_string(),
            reason: reason.clone(),
            tries: *tries,
            on: Some(effect.kind.key()),
            target: Some(effect.target.word()),
        })
    }
}

/// What is looked for.
#[derive(Debug, Clone)]
struct Asked {
    kinds: Vec<String>,
    jobs: Vec<String>,
    paging: Paging,
}

impl Asked {
    fn wants(&self, kind: &str) -> bool {
        self.kinds.is_empty() || self.kinds.iter().any(|wanted| wanted == kind)
    }

    fn matches(&self, letter: &LetterView) -> bool {
        self.jobs.is_empty() || self.jobs.contains(&letter.job)
    }
}

/// The letters of a page, and behind which key there are more.
#[derive(Debug, Default)]
struct Found {
    letters: Vec<LetterView>,
    more_after: Option<Vec<u8>>,
    looked_at: usize,
}

impl Found {
    /// True when this row is not looked at any more.
    fn is_full(&mut self, paging: &Paging, last: Option<&Vec<u8>>) -> bool {
        let is_full = self.letters.len() >= paging.size || self.looked_at >= limits::PAGE_SCAN_MAX;
        if is_full {
            self.more_after = last.cloned();
        }
        self.looked_at += 1;
        is_full
    }
}

/// A key of the cursor: the table, and the place in it.
fn mark(table: u8, key: &[u8]) -> Vec<u8> {
    [&[table], key].concat()
}

/// The tables of the list, by the mark of a cursor: steps, then reports; oldest first it is the other way about.
const TABLES: [(u8, &str); 2] = [(0, "step"), (1, "report")];

fn find(rows: &mut impl Rows, asked: &Asked) -> Result<Found, StoreError> {
    let mut found = Found::default();
    let paging = &asked.paging;
    let after = paging.after.as_deref().and_then(<[u8]>::split_first);
    let mut last = paging.after.clone();
    let mut tables = TABLES;
    if paging.ascending {
        tables.reverse();
    }
    let begun_at = after.and_then(|(mark, _)| tables.iter().position(|(table, _)| table == mark));
    for (place, (table, kind)) in tables.iter().enumerate() {
        if !asked.wants(kind) || begun_at.is_some_and(|begun_at| place < begun_at) {
            continue;
        }
        let from = after.filter(|(mark, _)| *mark == table).map(|(_, key)| key);
        for key in keys_of(rows, *table, from, paging.ascending)? {
            if found.is_full(paging, last.as_ref()) {
                return Ok(found);
            }
            last = Some(mark(*table, &key));
            let letter = read(rows, *table, &key)?;
            found
                .letters
                .extend(letter.filter(|letter| asked.matches(letter)));
        }
    }
    Ok(found)
}

/// The keys of a table, one more than are looked at.
fn keys_of(
    rows: &mut impl Rows,
    table: u8,
    from: Option<&[u8]>,
    ascending: bool,
) -> Result<Vec<Vec<u8>>, StoreError> {
    let index = if table == 0 {
        DEAD_STEPS.index()
    } else {
        EFFECT_DECIDED.index()
    };
    let prefix = (TENANT,).encode();
    let found = rows.raw_scan(index, &prefix, from, !ascending, limits::PAGE_SCAN_MAX + 1)?;
    Ok(found.into_iter().map(|(key, _)| key).collect())
}

/// The letter under a key; `None` for what is none, or cannot be read.
fn read(rows: &mut impl Rows, table: u8, key: &[u8]) -> Result<Option<LetterView>, StoreError> {
    let read = if table == 0 {
        let key: Option<(TenantId, RunId, StepRef)> = Key::decode(key);
        key.map(|(_, run, step)| view_of(rows, &Letter::Step(run, step)))
    } else {
        let key: Option<(TenantId, Millis, u64)> = Key::decode(key);
        key.map(|(_, _, seq)| view_of(rows, &Letter::Report(seq)))
    };
    match read {
        Some(Err(error)) if error.is_row_fault() => Ok(None),
        Some(read) => read,
        None => Ok(None),
    }
}

/// The list.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<LetterView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let (kinds, jobs) = (paging::values(&pairs, "kind"), paging::values(&pairs, "job"));
    if let Some(other) = kinds.iter().find(|kind| !KINDS.contains(&kind.as_str())) {
        let shown: String = other.chars().take(64).collect();
        let detail = format!("`kind` must be `step` or `report`, not `{shown}`");
        return Err(Problem::unreadable(detail));
    }
    let written: Vec<(&str, String)> = kinds
        .iter()
        .map(|kind| ("kind", kind.clone()))
        .chain(jobs.iter().map(|job| ("job", job.clone())))
        .collect();
    let paging = Paging::of(&pairs, "dead_letters", &written, false)?;
    let asked = Asked { kinds, jobs, paging };
    let for_read = asked.clone();
    let found = app.engine.read(move |tx| find(tx, &for_read)).await?;
    Ok(Json(
        asked.paging.page(found.letters, found.more_after.as_deref()),
    ))
}

fn not_found(text: &str) -> Problem {
    let shown: String = text.chars().take(128).collect();
    Problem::not_found(format!(
        "there is no dead letter '{shown}'; it may have been tried again or put away"
    ))
}

fn letter_of(text: &str) -> Result<Letter, Problem> {
    if let Some(seq) = text.strip_prefix(REPORT) {
        let seq = seq.parse().map_err(|_| not_found(text))?;
        return Ok(Letter::Report(seq));
    }
    let place = text.strip_prefix(STEP).and_then(|rest| rest.split_once('-'));
    let place = place.and_then(|(run, step)| Some((run.parse().ok()?, StepRef::new(step)?)));
    let (run, step) = place.ok_or_else(|| not_found(text))?;
    Ok(Letter::Step(run, step))
}

fn view_of(rows: &mut impl Rows, letter: &Letter) -> Result<Option<LetterView>, StoreError> {
    Ok(match letter {
        Letter::Report(seq) => {
            let effect = effects::by_seq(rows, *seq)?;
            effect.as_ref().and_then(LetterView::of_report)
        }
        Letter::Step(run, step) => {
            let row = rows.get(&DEAD_STEPS, &(TENANT, *run, step.clone()))?;
            row.map(|row| LetterView::of_step(*run, step, &row))
        }
    })
}

/// One letter.
pub(super) async fn show(
    State(app): State<App>,
    Path(text): Path<String>,
) -> Result<Json<Data<LetterView>>, Problem> {
    let letter = letter_of(&text)?;
    let found = app.engine.read(move |tx| view_of(tx, &letter)).await?;
    let data = found.ok_or_else(|| not_found(&text))?;
    Ok(Json(Data { data }))
}

fn handled(id: &str, state: &'static str, run: Option<RunId>) -> Data<HandledLetter> {
    Data {
        data: HandledLetter {
            id: id.to_owned(),
            state,
            run: run.map(|run| run.to_string()),
        },
    }
}

/// Puts a letter away.
pub(super) async fn discard(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let letter = letter_of(&text)?;
    let id = text.clone();
    let asked = once.ask(move |_, done: &Done| {
        let answer = once::ok(&handled(&id, "discarded", None));
        Ok((*done == Done::Yes).then_some(answer))
    });
    let told = desk::discard_letter(&app.engine, letter, asked).await?;
    once::respond(told, |_| not_found(&text))
}

/// Tries it again: a report is delivered anew, a step by a new run.
pub(super) async fn retry(
    State(app): State<App>,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    match letter_of(&text)? {
        Letter::Report(seq) => redeliver(&app, &text, seq, once).await,
        letter @ Letter::Step(run, _) => {
            let for_read = letter.clone();
            let found = app
                .engine
                .read(move |tx| Ok((view_of(tx, &for_read)?, by_id(tx, run)?)))
                .await?;
            let (Some(_), Some(run)) = found else {
                return Err(not_found(&text));
            };
            run_again(&app, text, &run, once).await
        }
    }
}

async fn redeliver(app: &App, text: &str, seq: u64, once: Once) -> Result<Response, Problem> {
    let id = text.to_owned();
    let asked = once.ask(move |_, done: &Done| {
        let answer = once::accepted(StatusCode::ACCEPTED, None, &handled(&id, "waiting", None));
        Ok((*done == Done::Yes).then_some(answer))
    });
    let told = desk::redeliver(&app.engine, seq, asked).await?;
    once::respond(told, |_| not_found(text))
}

/// The run of a workflow takes over what is good; a job starts anew. The letters of the run go in the same commit.
async fn run_again(app: &App, id: String, run: &Run, once: Once) -> Result<Response, Problem> {
    let of = run.id;
    let created = move |tx: &mut crate::store::Tx<'_>, begun: RunId| {
        dead::tried_again(tx, of)?;
        let location = Some(format!("/api/runs/{begun}"));
        let body = handled(&id, "begun", Some(begun));
        Ok::<_, StoreError>(once::accepted(StatusCode::CREATED, location, &body))
    };
    if run.graph.is_some() {
        return run_start::again(app, run, Again::From(None), |_| {
            once.ask(move |tx, begun: &Begun| match begun {
                Begun::Run { id, .. } => created(tx, *id).map(Some),
                Begun::NotFound | Begun::BadInput(_) | Begun::Refused(_) | Begun::NoRoom => Ok(None),
            })
        })
        .await;
    }
    let known = jobs::find(&app.engine.book(), run.definition.as_str()).map_err(|_| {
        Problem::forbidden_by_state(format!("job '{}' is not configured any more", run.definition))
    })?;
    let wish = Wish {
        known,
        retries: false,
        rerun_of: Some(of),
    };
    let asked = once.ask(move |tx, started: &Started| match started {
        Started::Queued { run, .. } | Started::Ready { run } => created(tx, *run).map(Some),
        Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::TooLate
        | Started::Refused(_)
        | Started::StillRunning
        | Started::LeftToOthers
        | Started::NodeDrained(_)
        | Started::NoRoom => Ok(None),
    });
    start::hand_in(app, wish, asked).await
}

/// How many there are: steps, for who counts them beside the reports.
pub(super) fn count_steps(rows: &mut impl Rows) -> Result<u64, StoreError> {
    let steps = rows.raw_scan(
        DEAD_STEPS.index(),
        &(TENANT,).encode(),
        None,
        false,
        limits::PAGE_SCAN_MAX,
    )?;
    Ok(steps.len() as u64)
}
