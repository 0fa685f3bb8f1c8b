//! A schedule: windows of the usual week, and days with others.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::fields::Fields;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::hours::is_zone;
use crate::domain::routing::objects::{Exception, Hours, Window};
use crate::words::limits;

const DAYS: [&str; 7] = ["mon", "tue", "wed", "thu", "fri", "sat", "sun"];
const DAY_END: u16 = 1_440;

/// Reads the fields of a schedule.
pub(super) fn read(mut fields: Fields<'_>) -> Hours {
    let timezone = zone(&mut fields, "timezone");
    let mut items = fields.list("windows", limits::WINDOWS_MAX).unwrap_or_default();
    let mut windows = Vec::new();
    for (index, item) in items.iter_mut().enumerate() {
        windows.extend(window(&mut fields, &format!("windows/{index}"), item));
    }
    let mut seen = BTreeSet::new();
    let mut exceptions = Vec::new();
    let days = fields
        .list("exceptions", limits::EXCEPTIONS_MAX)
        .unwrap_or_default();
    for (index, item) in days.iter().enumerate() {
        exceptions.extend(exception(&mut fields, index, item, &mut seen));
    }
    Hours {
        timezone,
        windows,
        exceptions,
    }
}

/// The name of a time zone.
pub(super) fn zone(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let name = fields.text(key, limits::ROUTING_NAME_CHARS_MAX)?;
    if is_zone(&name) {
        return Some(name);
    }
    let detail = format!("`{name}` is no time zone of the IANA data; write a name like Europe/London");
    fields.fault(key, "timezone.unknown", detail);
    None
}

/// A fault below a place that is no single key.
fn below(fields: &mut Fields<'_>, place: &str, code: &'static str, detail: impl Into<String>) {
    let mut at = fields.pointer("");
    at.truncate(at.len() - 1);
    fields.push(Fault::new(format!("{at}/{place}"), code, detail));
}

fn window(fields: &mut Fields<'_>, place: &str, item: &Value) -> Option<Window> {
    let Some(map) = item.as_object() else {
        below(
            fields,
            place,
            "field.type",
            "must be an object with days, start and end",
        );
        return None;
    };
    refuse_unknown(fields, place, map, &["days", "start", "end"]);
    let days = days_of(fields, place, map.get("days"));
    let (start, end) = times(fields, place, map)?;
    Some(Window {
        days: days?,
        start,
        end,
    })
}

fn refuse_unknown(fields: &mut Fields<'_>, place: &str, map: &Map<String, Value>, known: &[&str]) {
    for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
        let detail = format!("unknown field; there are {}", known.join(", "));
        below(
            fields,
            &format!("{place}/{}", super::fields::escaped(name)),
            "field.unknown",
            detail,
        );
    }
}

/// The days of a window as bits; without any it is of every day.
fn days_of(fields: &mut Fields<'_>, place: &str, days: Option<&Value>) -> Option<u8> {
    let Some(days) = days.filter(|days| !days.is_null()) else {
        return Some(0b111_1111);
    };
    let Some(days) = days.as_array().filter(|days| !days.is_empty()) else {
        below(
            fields,
            &format!("{place}/days"),
            "schedule.days",
            "must be a list of days, mon to sun",
        );
        return None;
    };
    let mut bits = 0_u8;
    for (index, day) in days.iter().enumerate() {
        let Some(bit) = DAYS.iter().position(|word| day.as_str() == Some(word)) else {
            let detail = format!("must be one of {}", DAYS.join(", "));
            below(fields, &format!("{place}/days/{index}"), "schedule.days", detail);
            return None;
        };
        bits |= 1 << bit;
    }
    Some(bits)
}

fn times(fields: &mut Fields<'_>, place: &str, map: &Map<String, Value>) -> Option<(u16, u16)> {
    let mut one = |key: &str, last: u16| {
        let found = map.get(key).and_then(Value::as_str).and_then(minute);
        let found = found.filter(|minute| *minute <= last);
        if found.is_none() {
            let most = if last == DAY_END { "24:00" } else { "23:59" };
            let detail = format!("must be a time of day, 00:00 to {most}");
            below(fields, &format!("{place}/{key}"), "schedule.time", detail);
        }
        found
    };
    let (start, end) = (one("start", DAY_END - 1), one("end", DAY_END));
    let (start, end) = (start?, end?);
    if start == end {
        let detail = "start and end are the same; write 00:00 to 24:00 for a whole day";
        below(fields, &format!("{place}/start"), "schedule.empty_window", detail);
        return None;
    }
    Some((start, end))
}

/// The minute of `HH:MM`.
fn minute(text: &str) -> Option<u16> {
    let (hours, minutes) = text.split_once(':')?;
    let two = |digits: &str| {
        let fits = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
        if fits { digits.parse::<u16>().ok() } else { None }
    };
    let (hours, minutes) = (two(hours)?, two(minutes)?);
    let is_time = (hours < 24 && minutes < 60) || (hours == 24 && minutes == 0);
    is_time.then_some(hours * 60 + minutes)
}

fn exception(
    fields: &mut Fields<'_>,
    index: usize,
    item: &Value,
    seen: &mut BTreeSet<(i16, i8, i8)>,
) -> Option<Exception> {
    let place = format!("exceptions/{index}");
    let Some(map) = item.as_object() else {
        below(fields, &place, "field.type", "must be an object with a date");
        return None;
    };
    refuse_unknown(fields, &place, map, &["date", "closed", "windows"]);
    let date = map.get("date").and_then(Value::as_str).and_then(date);
    let Some(date) = date else {
        below(
            fields,
            &format!("{place}/date"),
            "schedule.date",
            "must be a date like 2026-12-25",
        );
        return None;
    };
    if !seen.insert(date) {
        below(
            fields,
            &format!("{place}/date"),
            "schedule.date_twice",
            "this day stands in the list before",
        );
        return None;
    }
    let closed = map.get("closed").filter(|closed| !closed.is_null());
    let is_closed = closed.is_some_and(|closed| *closed == Value::Bool(true));
    if closed.is_some_and(|closed| !closed.is_boolean()) {
        below(
            fields,
            &format!("{place}/closed"),
            "field.type",
            "must be true or false",
        );
    }
    let listed = map.get("windows").filter(|windows| !windows.is_null());
    let Some(listed) = listed else {
        if !is_closed {
            let detail = "needs `closed: true` or windows";
            below(fields, &place, "schedule.exception", detail);
        }
        let windows = Vec::new();
        return Some(Exception { date, windows });
    };
    if is_closed && listed.as_array().is_some_and(|listed| !listed.is_empty()) {
        let detail = "is closed and has windows: it can be one of both";
        below(fields, &place, "schedule.exception", detail);
    }
    let windows = windows_of_day(fields, &place, listed)?;
    Some(Exception { date, windows })
}

/// The windows of a day that is no usual one.
fn windows_of_day(fields: &mut Fields<'_>, place: &str, listed: &Value) -> Option<Vec<(u16, u16)>> {
    let Some(listed) = listed
        .as_array()
        .filter(|listed| listed.len() <= limits::WINDOWS_MAX)
    else {
        let detail = format!("must be a list of at most {} windows", limits::WINDOWS_MAX);
        below(fields, &format!("{place}/windows"), "field.type", detail);
        return None;
    };
    let mut windows = Vec::new();
    for (number, item) in listed.iter().enumerate() {
        let inside = format!("{place}/windows/{number}");
        match item.as_object() {
            None => below(
                fields,
                &inside,
                "field.type",
                "must be an object with start and end",
            ),
            Some(map) => {
                refuse_unknown(fields, &inside, map, &["start", "end"]);
                windows.extend(times(fields, &inside, map));
            }
        }
    }
    Some(windows)
}

fn date(text: &str) -> Option<(i16, i8, i8)> {
    let date: jiff::civil::Date = text.parse().ok()?;
    (date.to_string() == text).then(|| (date.year(), date.month(), date.day()))
}
