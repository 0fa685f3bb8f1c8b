//! Tests of the module as a whole. Values come from section 11, from the field cases, from published
//! tables and from a slow model; none were copied from the code's own answers.

mod dialect;
mod dst;
mod field_cases;
mod lint_codes;
mod model;
mod refusals;
mod wall_times;
mod wording;

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

use super::{ParseOptions, Schedule};

pub(super) fn schedule_in(zone: &str, text: &str) -> Schedule {
    let options = ParseOptions {
        timezone: Some(zone),
        ..ParseOptions::default()
    };
    Schedule::parse(text, options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

pub(super) fn schedule_with_seconds(zone: &str, text: &str) -> Schedule {
    let options = ParseOptions {
        timezone: Some(zone),
        seconds: true,
        ..ParseOptions::default()
    };
    Schedule::parse(text, options).unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// UTC milliseconds of a text with an offset.
pub(super) fn at(text: &str) -> i64 {
    text.parse::<Timestamp>()
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .as_millisecond()
}

/// The zone of the data in the binary. The machine's own data is not asked: it may be older.
pub(super) fn zone_named(name: &str) -> TimeZone {
    TimeZoneDatabase::bundled().get(name).unwrap()
}

/// An instant as local time with its offset: `2026-03-08T03:00:00-04:00`.
pub(super) fn shown(zone: &str, instant_ms: i64) -> String {
    let instant = Timestamp::from_millisecond(instant_ms).unwrap();
    instant
        .to_zoned_datetime(zone_named(zone))
        .strftime("%Y-%m-%dT%H:%M:%S%:z")
        .to_string()
}

/// The fires in `(from, to]`, shown.
pub(super) fn fires(schedule: &Schedule, from: &str, to: &str) -> Vec<String> {
    let found = schedule.instants(at(from), at(to), 10_000);
    assert_eq!(
        schedule.count(at(from), at(to)),
        u64::try_from(found.len()).unwrap(),
        "count"
    );
    found
        .into_iter()
        .map(|instant| shown(schedule.timezone(), instant))
        .collect()
}
