//! `POST /api/runs:cancel_matching` and `:retry_matching`: all runs that a filter matches. Asked with `preview`, the answer
//! says how many that are and changes nothing; without it, that number must come along and still be true.

use std::collections::BTreeMap;

use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::input;
use super::once::{Harmless, Once};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::workflow::bulk::{BulkWish, Deed, Matched};
use crate::domain::workflow::filter::{BadFilter, KEYS, RunFilter, time_before};
use crate::engine::bulk::{self, Survey, Wisher};
use crate::engine::changes::matching::{self, Begun, Done};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::time::Millis;

/// The fields of both.
pub(super) const FIELDS: [Param; 3] = [
    Param::query(
        "filter",
        Kind::Matching,
        "Which runs: an object of the filters of `GET /api/runs` (several values as a list), or one text like `where`.",
    )
    .needed(),
    Param::query(
        "preview",
        Kind::Flag,
        "True to be told what would be done, false to do it.",
    )
    .needed(),
    Param::query(
        "expected_count",
        Kind::Integer,
        "How many runs the caller believes to match: the `count` of the preview. If it is another number, nothing is done.",
    ),
];

/// What would be done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BulkPreview {
    /// How many runs match.
    count: usize,
    /// So many match, or so many were looked at, that nothing is done with such a filter.
    truncated: bool,
    /// The newest of them.
    sample: Vec<BulkSample>,
    /// How many runs would be cancelled.
    cancel: usize,
    /// How many would get their next attempt now.
    retry: usize,
    /// How many jobs would start as a new run.
    rerun: usize,
    /// How many runs of workflows would be tried again where they failed, each as a new run.
    retry_failed: usize,
    /// How many are left alone because another run stands for them: no job starts twice, and no run is tried again that a
    /// newer one has tried again already.
    collapsed: usize,
}

#[derive(Debug, Serialize, ToSchema)]
struct BulkSample {
    id: String,
    job: String,
    state: &'static str,
    /// `cancel`, `retry`, `rerun`, `retry_failed` or `collapsed`.
    action: &'static str,
}

/// What was done.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BulkDone {
    matched: usize,
    /// Runs that have ended or are being ended.
    cancelled: usize,
    /// Of these, runs whose process is being ended.
    ending: usize,
    /// Runs whose next attempt begins now.
    retried: usize,
    /// New runs of jobs.
    rerun: usize,
    /// New runs that try again what failed in others.
    retried_failed: usize,
    /// Runs for which another run stands.
    collapsed: usize,
    /// The first of the new runs.
    begun: Vec<BulkBegun>,
    refused_count: usize,
    /// The first of the runs that had moved on or whose job could not start.
    refused: Vec<BulkRefused>,
}

#[derive(Debug, Serialize, ToSchema)]
struct BulkBegun {
    id: String,
    job: String,
    rerun_of: String,
}

#[derive(Debug, Serialize, ToSchema)]
struct BulkRefused {
    id: String,
    reason: String,
}

/// One of the two.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(super) enum BulkAnswer {
    Preview(BulkPreview),
    Done(BulkDone),
}

/// Cancels all that match.
pub(super) async fn cancel(State(app): State<App>, once: Once, body: Bytes) -> Result<Response, Problem> {
    answer(&app, BulkWish::Cancel, &once, &body).await
}

/// Tries all that match again.
pub(super) async fn retry(State(app): State<App>, once: Once, body: Bytes) -> Result<Response, Problem> {
    answer(&app, BulkWish::Retry, &once, &body).await
}

async fn answer(app: &App, wish: BulkWish, once: &Once, body: &[u8]) -> Result<Response, Problem> {
    let asked = Asked::of(body, wish, app.engine.now().wall)?;
    let survey = bulk::survey(&app.engine, wish, &asked.filter).await?;
    let Some(expected) = asked.expected else {
        let data = BulkAnswer::Preview(preview_of(&survey));
        return Ok((Extension(Harmless), Json(Data { data })).into_response());
    };
    check(&survey, expected)?;
    if wish == BulkWish::Retry && app.engine.is_stopping() {
        return Err(Problem::new(
            axum::http::StatusCode::SERVICE_UNAVAILABLE,
            "ductor is stopping and starts nothing; try again when it is back",
        ));
    }
    let wisher = Wisher {
        principal: once.principal(),
        ticket: once.ticket(),
    };
    let done = bulk::act(&app.engine, &survey.matched, &asked.filter, &wisher).await?;
    let data = BulkAnswer::Done(done_of(&survey.matched, &done));
    Ok(Json(Data { data }).into_response())
}

/// Nothing is done with a number of runs that nobody has seen.
fn check(survey: &Survey, expected: u64) -> Result<(), Problem> {
    let count = survey.matched.len();
    if survey.truncated {
        let max = limits::BULK_RUNS_MAX;
        let detail = format!(
            "more than {max} runs match, or too many must be looked at; narrow the filter, by `since` for one"
        );
        return Err(Problem::forbidden_by_state(detail).member("current_count", count));
    }
    if u64::try_from(count).is_ok_and(|count| count == expected) {
        return Ok(());
    }
    let runs = if count == 1 { "run matches" } else { "runs match" };
    let detail = format!("{count} {runs} now, not {expected}; nothing was done, look at the preview again");
    Err(Problem::forbidden_by_state(detail).member("current_count", count))
}

fn preview_of(survey: &Survey) -> BulkPreview {
    let matched = &survey.matched;
    let sample = matched.iter().take(limits::BULK_SAMPLE_MAX);
    BulkPreview {
        count: matched.len(),
        truncated: survey.truncated,
        sample: sample
            .map(|run| BulkSample {
                id: run.id.to_string(),
                job: run.job.to_string(),
                state: run.state,
                action: run.deed.word(),
            })
            .collect(),
        cancel: matching::count(matched, Deed::Cancel),
        retry: matching::count(matched, Deed::Retry),
        rerun: matching::count(matched, Deed::Rerun),
        retry_failed: matching::count(matched, Deed::Again),
        collapsed: matching::count(matched, Deed::Collapsed),
    }
}

fn done_of(matched: &[Matched], done: &Done) -> BulkDone {
    let jobs: BTreeMap<RunId, &Matched> = matched.iter().map(|run| (run.id, run)).collect();
    let begun = |begun: &Begun| BulkBegun {
        id: begun.run.to_string(),
        job: jobs
            .get(&begun.of)
            .map(|run| run.job.to_string())
            .unwrap_or_default(),
        rerun_of: begun.of.to_string(),
    };
    let refused = done.refused.iter().take(limits::BULK_LISTED_MAX);
    BulkDone {
        matched: matched.len(),
        cancelled: done.cancelled,
        ending: done.fences.len(),
        retried: done.retried,
        rerun: done.begun.len() - done.again,
        retried_failed: done.again,
        collapsed: matching::count(matched, Deed::Collapsed),
        begun: done
            .begun
            .iter()
            .take(limits::BULK_LISTED_MAX)
            .map(begun)
            .collect(),
        refused_count: done.refused.len(),
        refused: refused
            .map(|(id, reason)| BulkRefused {
                id: id.to_string(),
                reason: reason.clone(),
            })
            .collect(),
    }
}

/// What is asked for; without a number it is a preview.
#[derive(Debug)]
struct Asked {
    filter: RunFilter,
    expected: Option<u64>,
}

impl Asked {
    fn of(body: &[u8], wish: BulkWish, now: Millis) -> Result<Asked, Problem> {
        let (fields, mut faults) = input::object(body, &FIELDS)?;
        let missing = |name: &str| input::fault(name, "required", "is needed");
        let filter = match fields.get("filter") {
            None => Err(vec![missing("filter")]),
            Some(value) => filter_of(value, now),
        };
        let filter = filter.and_then(|filter| {
            let narrowed = wish.narrowed(filter);
            narrowed.map_err(|error| vec![bad("/filter/state", &error.0)])
        });
        let preview = match fields.get("preview") {
            None => Err(missing("preview")),
            Some(Value::Bool(preview)) => Ok(*preview),
            Some(_) => Err(input::fault("preview", "type", "must be true or false")),
        };
        let count = match fields.get("expected_count") {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(count) => Ok(Some(count)),
                None => Err(input::fault("expected_count", "type", "must be a whole number")),
            },
        };
        let expected = match (preview, count) {
            (Ok(true), Ok(_)) => Ok(None),
            (Ok(false), Ok(Some(count))) => Ok(Some(count)),
            (Ok(false), Ok(None)) => Err(vec![input::fault(
                "expected_count",
                "required",
                "is needed to act: the `count` that a preview has shown",
            )]),
            (preview, count) => Err(preview.err().into_iter().chain(count.err()).collect()),
        };
        match (filter, expected) {
            (Ok(filter), Ok(expected)) if faults.is_empty() => Ok(Asked { filter, expected }),
            (filter, expected) => {
                faults.extend(filter.err().into_iter().flatten());
                faults.extend(expected.err().into_iter().flatten());
                Err(Problem::invalid(faults))
            }
        }
    }
}

fn bad(pointer: &str, detail: &str) -> FieldFault {
    FieldFault {
        pointer: pointer.to_owned(),
        code: "value",
        detail: detail.to_owned(),
    }
}

/// A filter as an object, or as the text of `where`.
fn filter_of(value: &Value, now: Millis) -> Result<RunFilter, Vec<FieldFault>> {
    let time = |text: &str| time_before(text, now);
    let of_object = |terms: &Map<String, Value>| {
        let (mut filter, mut faults) = (RunFilter::default(), Vec::new());
        for (key, value) in terms {
            let values = value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice);
            for value in values {
                let added = match value.as_str() {
                    Some(text) if key == "where" => filter.read_more(text, &time),
                    Some(text) => filter.add(key, text, &time),
                    None if KEYS.contains(&key.as_str()) => {
                        Err(BadFilter("must be a text or a list of texts".to_owned()))
                    }
                    None => filter.add(key, "", &time),
                };
                faults.extend(
                    added
                        .err()
                        .map(|error| bad(&format!("/filter/{}", input::escaped(key)), &error.0)),
                );
            }
        }
        if faults.is_empty() {
            Ok(filter)
        } else {
            Err(faults)
        }
    };
    match value {
        Value::Object(terms) => of_object(terms),
        Value::String(text) => RunFilter::read(text, &time).map_err(|error| vec![bad("/filter", &error.0)]),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => Err(vec![input::fault(
            "filter",
            "type",
            "must be an object or a text",
        )]),
    }
}
