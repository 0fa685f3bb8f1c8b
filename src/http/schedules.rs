//! `/api/schedules`: all schedules with their last and next fire, what one will do, and what an expression would do.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderValue, Uri, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::calendar::{self, Event};
use super::error::{FieldFault, Problem};
use super::fires::{self, FireView};
use super::once::Harmless;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::pauses::PauseView;
use super::runs::Data;
use super::why::{self, MomentView};
use super::{input, jobs};
use crate::domain::fires::overdue;
use crate::domain::schedule::{DayMatch, ParseOptions, Preview, Schedule, ScheduleError, ZoneClock, preview};
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::{head, late};
use crate::store::tables::DEFINITIONS;
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Fires that are shown unless a number is asked for.
const NEXT_DEFAULT: usize = 5;
/// Runs whose length says whether two fires are likely to overlap.
const DURATIONS_MAX: usize = 50;
/// Events of each job in the calendar unless a number is asked for.
const EVENTS_DEFAULT: usize = 20;
/// Events of the whole calendar.
const EVENTS_MAX: usize = 5_000;

/// A schedule in the list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ScheduleView {
    #[schema(value_type = String)]
    name: JobName,
    expression: String,
    description: String,
    timezone: String,
    enabled: bool,
    paused: Option<PauseView>,
    next: Option<MomentView>,
    last: Option<FireView>,
    /// It owes a fire, or has passed a limit of its `sla`.
    overdue: bool,
    /// The moment of which nothing is known although it should be.
    overdue_since: Option<MomentView>,
    /// The limits that it has passed, in words.
    late: Vec<String>,
}

/// The filters of the list.
pub(super) const FILTERS: [Param; 1] = [Param::query(
    "overdue",
    Kind::Flag,
    "Schedules that owe a fire or are late by their `sla`, or those that are not.",
)];

/// Jobs that have a schedule, by name.
pub(super) async fn list(State(app): State<App>, uri: Uri) -> Result<Json<Page<ScheduleView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let only = input::flag(&pairs, "overdue")?;
    let filter = only.map(|only| ("overdue", only.to_string()));
    let paging = Paging::of(&pairs, "schedules", filter.as_slice(), true)?;
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let read = move |tx: &mut crate::store::ReadTx| {
        let mut data: Vec<ScheduleView> = Vec::new();
        let mut more = false;
        for name in paging::all_after(book.jobs.keys(), &paging) {
            let job = &book.jobs[name];
            let Some(schedule) = &job.schedule else { continue };
            let view = view(tx, name, job, schedule, now)?;
            if only.is_some_and(|only| only != view.overdue) {
                continue;
            }
            if data.len() == paging.size {
                more = true;
                break;
            }
            data.push(view);
        }
        let last = data.last().filter(|_| more).map(|view| view.name.to_string());
        Ok(paging.page(data, last.as_deref().map(str::as_bytes)))
    };
    Ok(Json(app.engine.read(read).await?))
}

fn view(
    rows: &mut impl Rows,
    name: &JobName,
    job: &BookJob,
    schedule: &Schedule,
    now: Millis,
) -> Result<ScheduleView, StoreError> {
    let clock = schedule.clock();
    let enabled = job.definition.enabled;
    let paused = head::job_pause(rows, name, now)?;
    let newest = fires::newest(rows, name, &clock)?;
    let loaded = rows.get(&DEFINITIONS, &(TENANT, name.clone(), job.version))?;
    let since = loaded.map(|record| record.published_at);
    let owed = if enabled && paused.is_none() {
        overdue(schedule, since, newest.as_ref().map(|(at, _)| *at), now)
    } else {
        None
    };
    let next = schedule.next_after(now.0).filter(|_| enabled);
    let breaches = late::stored(rows, name)?;
    Ok(ScheduleView {
        name: name.clone(),
        expression: schedule.text().to_owned(),
        description: schedule.describe(),
        timezone: clock.name().to_owned(),
        enabled,
        paused: paused.map(|pause| PauseView::of(&pause)),
        next: next.map(|at| MomentView::of(&clock, Millis(at))),
        last: newest.map(|(_, view)| view),
        overdue: owed.is_some() || !breaches.is_empty(),
        overdue_since: owed.map(|at| MomentView::of(&clock, at)),
        late: breaches.into_iter().map(|row| row.breach.reason).collect(),
    })
}

/// What can be asked of the next fires.
pub(super) const NEXT: [Param; 3] = [
    Param::query("count", Kind::Integer, "Fires shown, 1 to 500 (5)."),
    Param::query("second_timezone", Kind::Zone, "The second clock (UTC)."),
    Param::query(
        "from",
        Kind::Text,
        "The first moment that is looked at, instead of now.",
    ),
];

/// The next fires of a job, as a preview of its expression would show them.
pub(super) async fn next(
    State(app): State<App>,
    Path(name): Path<String>,
    uri: Uri,
) -> Result<Json<Data<Preview>>, Problem> {
    let known = jobs::find(&app.engine.book(), &name)?;
    let pairs = input::query(&uri, &NEXT)?;
    let count = input::number(&pairs, "count", 1, limits::PAGE_MAX)?.unwrap_or(NEXT_DEFAULT);
    let second = input::last(&pairs, "second_timezone").unwrap_or("UTC");
    let second = ZoneClock::named(second)
        .ok_or_else(|| Problem::unreadable(format!("`second_timezone`: unknown time zone '{second}'")))?;
    let Some(schedule) = known.job.schedule.clone() else {
        let sentence = format!("job '{name}' has no schedule: it runs only when somebody starts it");
        return Err(Problem::not_found(sentence));
    };
    let now = app.engine.now().wall;
    let from = match input::last(&pairs, "from") {
        None => now,
        Some(text) => why::read(&schedule.clock(), "from", text, now)
            .map(|moment| Millis(moment.at_ms))
            .map_err(Problem::unreadable)?,
    };
    let p90 = match known.job.definition.concurrency {
        ConcurrencyPolicy::Allow => {
            let job = known.name.clone();
            let durations = app
                .engine
                .read(move |tx| fires::durations(tx, &job, DURATIONS_MAX));
            p90(durations.await?)
        }
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => None,
    };
    let config = app.reloader.config();
    let of_job = config.jobs.iter().find(|job| job.name == name);
    let data = Preview {
        timezone_from: of_job.and_then(|job| job.timezone_from.clone()),
        ..preview(&schedule, &second, from.0, count, p90)
    };
    Ok(Json(Data { data }))
}

/// Nine of ten are not longer.
fn p90(mut lengths: Vec<u64>) -> Option<u64> {
    lengths.sort_unstable();
    let rank = (lengths.len() * 9).div_ceil(10);
    lengths.get(rank.checked_sub(1)?).copied()
}

/// The fields of a preview.
pub(super) const PREVIEW: [Param; 8] = [
    Param::query("expression", Kind::Text, "The schedule, as `30 2 * * *`.").needed(),
    Param::query("timezone", Kind::Zone, "Its clock (UTC)."),
    Param::query(
        "second_timezone",
        Kind::Zone,
        "The second clock that the fires are shown on (UTC).",
    ),
    Param::query("seconds", Kind::Flag, "The first field is that of the seconds."),
    Param::query(
        "day_match",
        Kind::OneOf(&["or", "and"]),
        "Whether a day must match one or both of the day fields.",
    ),
    Param::query("count", Kind::Integer, "Fires shown, 1 to 500 (5)."),
    Param::query(
        "from",
        Kind::Text,
        "The first moment that is looked at, instead of now.",
    ),
    Param::query("name", Kind::Text, "The job whose name `H` is spread by."),
];

/// What an expression would do. Changes nothing; a POST because an expression is no path.
pub(super) async fn preview_expression(
    State(app): State<App>,
    body: Bytes,
) -> Result<(Extension<Harmless>, Json<Data<Preview>>), Problem> {
    let (fields, faults) = input::object(&body, &PREVIEW)?;
    let mut reading = Reading { fields, faults };
    let expression = reading.text("expression");
    if expression.is_none() && !reading.is_at_fault("expression") {
        reading.fault(
            "expression",
            "required",
            "is missing; write five fields, as in 30 2 * * *",
        );
    }
    let timezone = reading.text("timezone");
    let second = reading
        .text("second_timezone")
        .unwrap_or_else(|| "UTC".to_owned());
    let second = ZoneClock::named(&second).unwrap_or_else(|| {
        reading.fault(
            "second_timezone",
            "unknown",
            &format!("unknown time zone '{second}'"),
        );
        ZoneClock::utc()
    });
    let seconds = reading.truth("seconds");
    let day_match = reading.day_match();
    let count = reading.count();
    let name = reading.text("name").unwrap_or_default();
    let from = reading.text("from");
    let options = ParseOptions {
        seconds,
        day_match,
        timezone: timezone.as_deref(),
        job_name: &name,
    };
    let parsed = expression.map(|text| Schedule::parse(&text, options));
    let schedule = match parsed {
        Some(Ok(schedule)) => schedule,
        Some(Err(error)) => return Err(reading.refuse(&error)),
        None => return Err(Problem::invalid(reading.faults)),
    };
    let now = app.engine.now().wall;
    let from = from.map_or(Ok(now.0), |text| {
        why::read(&schedule.clock(), "from", &text, now).map(|moment| moment.at_ms)
    });
    let from = from.unwrap_or_else(|detail| {
        reading.fault("from", "type", &detail);
        now.0
    });
    if !reading.faults.is_empty() {
        return Err(Problem::invalid(reading.faults));
    }
    let data = preview(&schedule, &second, from, count, None);
    Ok((Extension(Harmless), Json(Data { data })))
}

/// The fields of a body, and what is wrong with them.
struct Reading {
    fields: Map<String, Value>,
    faults: Vec<FieldFault>,
}

impl Reading {
    fn fault(&mut self, field: &str, code: &'static str, detail: &str) {
        self.faults.push(input::fault(field, code, detail));
    }

    fn is_at_fault(&self, field: &str) -> bool {
        self.faults
            .iter()
            .any(|fault| fault.pointer == format!("/{field}"))
    }

    fn given(&self, field: &str) -> Option<Value> {
        self.fields.get(field).filter(|value| !value.is_null()).cloned()
    }

    fn text(&mut self, field: &str) -> Option<String> {
        match self.given(field)? {
            Value::String(text) => Some(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                self.fault(field, "type", "must be a text");
                None
            }
        }
    }

    fn truth(&mut self, field: &str) -> bool {
        match self.given(field) {
            None => false,
            Some(Value::Bool(truth)) => truth,
            Some(_) => {
                self.fault(field, "type", "must be true or false");
                false
            }
        }
    }

    fn day_match(&mut self) -> Option<DayMatch> {
        match self.text("day_match")?.as_str() {
            "or" => Some(DayMatch::Or),
            "and" => Some(DayMatch::And),
            _ => {
                self.fault("day_match", "unknown", "must be or or and");
                None
            }
        }
    }

    fn count(&mut self) -> usize {
        let Some(given) = self.given("count") else {
            return NEXT_DEFAULT;
        };
        let number = given.as_u64().and_then(|number| usize::try_from(number).ok());
        number
            .filter(|number| (1..=limits::PAGE_MAX).contains(number))
            .unwrap_or_else(|| {
                let detail = format!("must be a whole number from 1 to {}", limits::PAGE_MAX);
                self.fault("count", "out_of_range", &detail);
                NEXT_DEFAULT
            })
    }

    /// A refused expression, with the place in its text.
    fn refuse(mut self, error: &ScheduleError) -> Problem {
        let field = if error.field == Some("timezone") {
            "timezone"
        } else {
            "expression"
        };
        self.fault(field, "schedule", &error.message);
        Problem::invalid(self.faults)
            .member("column", error.column)
            .member("length", error.length)
    }
}

/// What can be asked of the calendar.
pub(super) const ICS: [Param; 2] = [
    Param::filter("job", Kind::Text, "Fires of this job."),
    Param::query("count", Kind::Integer, "Fires of each job, 1 to 500 (20)."),
];

/// The next fires of all jobs as a calendar.
pub(super) async fn ics(State(app): State<App>, uri: Uri) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &ICS)?;
    let count = input::number(&pairs, "count", 1, limits::PAGE_MAX)?.unwrap_or(EVENTS_DEFAULT);
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let named: Vec<&str> = pairs
        .iter()
        .filter(|(key, _)| key == "job")
        .map(|(_, value)| value.as_str())
        .collect();
    for name in &named {
        jobs::find(&book, name)?;
    }
    let text = calendar::write(&events(&book, &named, now, count), now);
    let mut response = text.into_response();
    response.headers_mut().insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("text/calendar; charset=utf-8"),
    );
    Ok(response)
}

fn events(book: &Arc<Book>, named: &[&str], now: Millis, count: usize) -> Vec<Event> {
    let wanted = |name: &JobName| named.is_empty() || named.contains(&name.as_str());
    let mut events: Vec<Event> = Vec::new();
    for (name, job) in book.jobs.iter().filter(|(name, _)| wanted(name)) {
        let Some(schedule) = job.schedule.as_ref().filter(|_| job.definition.enabled) else {
            continue;
        };
        let description = format!(
            "{} ({}, {})",
            schedule.describe(),
            schedule.text(),
            schedule.timezone()
        );
        let fires = schedule.instants(now.0, i64::MAX, count).into_iter();
        events.extend(fires.map(|at| Event {
            job: name.to_string(),
            at: Millis(at),
            description: description.clone(),
        }));
    }
    events.sort_by(|left, right| (left.at, &left.job).cmp(&(right.at, &right.job)));
    events.truncate(EVENTS_MAX);
    events
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nine_of_ten_are_not_longer() {
        assert_eq!(p90(Vec::new()), None);
        assert_eq!(p90(vec![7]), Some(7));
        assert_eq!(p90((1..=10).rev().collect()), Some(9));
        assert_eq!(p90((1..=50).collect()), Some(45));
    }
}
