//! `GET /api/calendar`: the due moments of all jobs by hours of a clock, for a page that shows a week.
//!
//! It says what schedules name, not what became of it. A job that is due each second is one line in each hour: the
//! moments of an hour are counted without visiting them.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::param::{Kind, Param};
use super::runs::Data;
use super::{input, upcoming, why};
use crate::domain::schedule::{Schedule, ZoneClock};
use crate::engine::book::Book;
use crate::store::{Rows, StoreError};
use crate::words::names::JobName;
use crate::words::time::Millis;

const DAYS_DEFAULT: usize = 7;
const DAYS_MAX: usize = 31;
/// Jobs that are shown in an hour.
const SHOWN_MAX: usize = 20;
/// Hours of all jobs that are looked at for one answer: a thousand hourly jobs in four days.
const LOOKED_AT_MAX: usize = 100_000;
/// No offset of a zone in use is finer, and no change of one happens in between.
const QUARTER_MS: i64 = 15 * 60_000;

/// What can be asked.
pub(super) const QUERY: [Param; 3] = [
    Param::query(
        "from",
        Kind::Text,
        "The first hour: an instant, or a local time on that clock; the beginning of today.",
    ),
    Param::query("days", Kind::Integer, "Days of that clock, 1 to 31 (7)."),
    Param::query("timezone", Kind::Zone, "The clock that hours are of (UTC)."),
];

/// The due moments of some days.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CalendarView {
    timezone: String,
    from: String,
    /// Not part of it any more.
    to: String,
    /// Hours in which something is due, in order. An hour that comes twice is two of them.
    hours: Vec<HourView>,
    /// Jobs that were left out because there is too much to count; ask for fewer days.
    left_out: usize,
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CalendarHour)]
struct HourView {
    /// On the clock that was asked for: `2026-03-08`.
    day: String,
    hour: u32,
    from: String,
    /// Due moments.
    total: u64,
    /// Jobs that they are of.
    jobs: usize,
    /// The first 20 jobs.
    fires: Vec<DueView>,
}

/// A job that is due in an hour.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CalendarFire)]
struct DueView {
    job: String,
    /// The first moment.
    at: String,
    /// How often.
    count: u64,
}

/// An hour of a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ClockHour {
    day: String,
    hour: u32,
    /// Of the clock from UTC: tells the two passes of an hour that comes twice apart.
    offset: String,
    from: Millis,
    to: Millis,
}

/// What is due in an hour.
#[derive(Debug, Default)]
struct Due<'b> {
    total: u64,
    jobs: Vec<(Millis, &'b JobName, u64)>,
}

/// The page.
pub(super) async fn show(State(app): State<App>, uri: Uri) -> Result<Json<Data<CalendarView>>, Problem> {
    let pairs = input::query(&uri, &QUERY)?;
    let days = input::number(&pairs, "days", 1, DAYS_MAX)?.unwrap_or(DAYS_DEFAULT);
    let zone = input::last(&pairs, "timezone").unwrap_or("UTC");
    let clock = ZoneClock::named(zone)
        .ok_or_else(|| Problem::unreadable(format!("`timezone`: unknown time zone '{zone}'")))?;
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let from = match input::last(&pairs, "from") {
        None => beginning_of_day(&clock, now),
        Some(text) => why::read(&clock, "from", text, now)
            .map(|moment| Millis(moment.at_ms))
            .map_err(Problem::unreadable)?,
    };
    let hours = hours(&clock, from, days);
    let (Some(first), Some(last)) = (hours.first(), hours.last()) else {
        return Err(Problem::unreadable("`from` is outside of the years 1 to 9998"));
    };
    let (from, to) = (first.from.to_string(), last.to.to_string());
    let read = move |tx: &mut crate::store::ReadTx| look(tx, &book, &hours, now);
    let (hours, left_out) = app.engine.read(read).await?;
    let data = CalendarView {
        timezone: clock.name().to_owned(),
        from,
        to,
        hours,
        left_out,
    };
    Ok(Json(Data { data }))
}

fn quarter_of(at: Millis) -> Millis {
    Millis(at.0.div_euclid(QUARTER_MS) * QUARTER_MS)
}

/// The day and hour of an instant, and the offset there.
fn parts_of(clock: &ZoneClock, at: Millis) -> Option<(String, u32, String)> {
    let local = clock.local_time(at.0)?;
    let day = local.get(..10)?.to_owned();
    Some((day, local.get(11..13)?.parse().ok()?, local.get(19..)?.to_owned()))
}

/// The first quarter of an hour of today.
fn beginning_of_day(clock: &ZoneClock, now: Millis) -> Millis {
    let day_of = |at: Millis| parts_of(clock, at).map(|(day, _, _)| day);
    let mut from = quarter_of(now);
    let today = day_of(from);
    while today.is_some() && day_of(Millis(from.0 - QUARTER_MS)) == today {
        from = Millis(from.0 - QUARTER_MS);
    }
    from
}

/// The hours of so many days from an instant on; those of its own day that are left count as one.
fn hours(clock: &ZoneClock, from: Millis, days: usize) -> Vec<ClockHour> {
    let mut hours: Vec<ClockHour> = Vec::new();
    let mut seen = 0;
    let mut at = quarter_of(from);
    while let Some((day, hour, offset)) = parts_of(clock, at) {
        let to = Millis(at.0 + QUARTER_MS);
        match hours.last_mut() {
            Some(last) if (&last.day, last.hour, &last.offset) == (&day, hour, &offset) => last.to = to,
            last => {
                seen += usize::from(last.is_none_or(|last| last.day != day));
                if seen > days {
                    break;
                }
                hours.push(ClockHour {
                    day,
                    hour,
                    offset,
                    from: at,
                    to,
                });
            }
        }
        at = to;
    }
    hours
}

fn look(
    rows: &mut impl Rows,
    book: &Book,
    hours: &[ClockHour],
    now: Millis,
) -> Result<(Vec<HourView>, usize), StoreError> {
    let paused = upcoming::paused(rows, now)?;
    let mut due: Vec<Due<'_>> = hours.iter().map(|_| Due::default()).collect();
    let (mut looked_at, mut left_out) = (0, 0);
    for (name, job) in book.jobs.iter().filter(|(_, job)| job.definition.enabled) {
        let Some(schedule) = &job.schedule else { continue };
        let held_until = paused
            .get(name)
            .map(|pause| pause.until.unwrap_or(Millis(i64::MAX)));
        if looked_at >= LOOKED_AT_MAX {
            left_out += 1;
            continue;
        }
        for (place, at, count) in due_in(schedule, hours, held_until.filter(|until| *until > now)) {
            looked_at += 1;
            due[place].total += count;
            due[place].jobs.push((at, name, count));
        }
    }
    let busy = hours.iter().zip(due).filter(|(_, due)| due.total > 0);
    Ok((busy.map(|(hour, due)| view(hour, due)).collect(), left_out))
}

fn view(hour: &ClockHour, mut due: Due<'_>) -> HourView {
    due.jobs.sort_unstable();
    let shown = due.jobs.iter().take(SHOWN_MAX).map(|(at, name, count)| DueView {
        job: name.to_string(),
        at: at.to_string(),
        count: *count,
    });
    HourView {
        day: hour.day.clone(),
        hour: hour.hour,
        from: hour.from.to_string(),
        total: due.total,
        fires: shown.collect(),
        jobs: due.jobs.len(),
    }
}

/// The hours in which a schedule is due: the place of each, its first moment there, how many there are. What is due
/// before `held_until` does not fire.
fn due_in(schedule: &Schedule, hours: &[ClockHour], held_until: Option<Millis>) -> Vec<(usize, Millis, u64)> {
    let mut found = Vec::new();
    let Some(first) = hours.first() else { return found };
    let from = held_until.map_or(first.from, |until| until.max(first.from));
    let mut next = schedule.next_after(from.0.saturating_sub(1));
    while let Some(at) = next.map(Millis) {
        let place = hours.partition_point(|hour| hour.to <= at);
        let Some(hour) = hours.get(place) else { break };
        let count = schedule.count(at.0 - 1, hour.to.0 - 1);
        found.push((place, at, count));
        next = schedule.next_after(hour.to.0 - 1);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::schedule::ParseOptions;

    fn at(text: &str) -> Millis {
        crate::words::time::parse_instant(text).unwrap()
    }

    fn clock(name: &str) -> ZoneClock {
        ZoneClock::named(name).unwrap()
    }

    #[test]
    fn days_have_the_hours_of_their_clock() {
        let london = clock("Europe/London");
        let begin = beginning_of_day(&london, at("2026-03-29T13:07:00Z"));
        assert_eq!(begin, at("2026-03-29T00:00:00Z"));
        assert_eq!(hours(&london, begin, 1).len(), 23, "the hour that is left out");
        let autumn = hours(&london, at("2026-10-24T23:00:00Z"), 1);
        assert_eq!(autumn.len(), 25, "the hour that comes twice");
        assert_eq!((autumn[1].hour, autumn[2].hour, autumn[3].hour), (1, 1, 2));
        let adelaide = hours(&clock("Australia/Adelaide"), at("2026-06-01T00:10:00Z"), 2);
        assert_eq!(
            (adelaide[0].hour, adelaide[0].to),
            (9, at("2026-06-01T00:30:00Z"))
        );
        assert_eq!(hours(&ZoneClock::utc(), at("2026-06-01T22:00:00Z"), 2).len(), 26);
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, ..ProptestConfig::default() })]

        /// Against walking all moments one by one.
        #[test]
        fn each_hour_counts_what_is_due_in_it(
            expression in prop_oneof![
                Just("*/7 * * * *"), Just("30 2 * * *"), Just("0 1-3 * * 0"), Just("@every 37s"), Just("59 23 28-31 * *"),
                Just("*/20 1 * 3,10 *"),
            ],
            zone in prop_oneof![Just("UTC"), Just("Europe/London"), Just("America/New_York"), Just("Australia/Lord_Howe")],
            day in 0_i64..366,
            held in proptest::option::of(0_i64..100_000_000),
        ) {
            let options = ParseOptions { timezone: Some(zone), ..ParseOptions::default() };
            let schedule = Schedule::parse(expression, options).unwrap();
            let from = Millis(at("2026-01-01T00:00:00Z").0 + day * 86_400_000);
            let hours = hours(&clock(zone), from, 2);
            let held = held.map(|ms| Millis(from.0 + ms));
            let first = held.map_or(from, |held| held.max(from));
            let end = hours.last().unwrap().to;
            let mut expected = vec![0_u64; hours.len()];
            for instant in schedule.instants(first.0 - 1, end.0 - 1, usize::MAX) {
                let place = hours.iter().position(|hour| hour.from.0 <= instant && instant < hour.to.0).unwrap();
                expected[place] += 1;
            }
            let mut found = vec![0_u64; hours.len()];
            for (place, at, count) in due_in(&schedule, &hours, held) {
                prop_assert!(hours[place].from <= at && at < hours[place].to && at >= first);
                found[place] += count;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
