//! What is refused, where it points and with which words.

use super::schedule_in;
use crate::domain::schedule::{ParseOptions, Schedule, ScheduleError};

fn refused(text: &str, options: ParseOptions<'_>) -> ScheduleError {
    match Schedule::parse(text, options) {
        Ok(schedule) => panic!("accepted: {schedule:?}"),
        Err(error) => error,
    }
}

/// Text, field, column, length, message.
const REFUSED_FIELDS: &[(&str, &str, usize, usize, &str)] = &[
    (
        "60 * * * *",
        "minute",
        0,
        2,
        "minute: 60 is out of range 0-59; the full one is 0",
    ),
    (
        "0 24 * * *",
        "hour",
        2,
        2,
        "hour: 24 is out of range 0-23; midnight is 0",
    ),
    (
        "0 0 0 * *",
        "day-of-month",
        4,
        1,
        "day-of-month: 0 is out of range 1-31; the first day is 1, the last is L",
    ),
    (
        "0 0 * 13 *",
        "month",
        6,
        2,
        "month: 13 is out of range 1-12 or jan-dec",
    ),
    (
        "0 0 * * 8",
        "day-of-week",
        8,
        1,
        "day-of-week: 8 is out of range 0-7 (0 and 7 are Sunday) or sun-sat",
    ),
    (
        "*/0 * * * *",
        "minute",
        2,
        1,
        "minute: the step 0 stands still; the smallest is 1",
    ),
    (
        "*/ * * * *",
        "minute",
        2,
        0,
        "minute: a number is missing after '/', as in */5",
    ),
    (
        "30-10 * * * *",
        "minute",
        0,
        5,
        "minute: the range 30-10 runs backwards; write 30-59,0-10 to wrap",
    ),
    (
        "0 0 1 nov-feb *",
        "month",
        6,
        7,
        "month: the range nov-feb runs backwards; write 11-12,1-2 to wrap",
    ),
    (
        "*15 * * * *",
        "minute",
        0,
        3,
        "minute: '*15' lacks a slash; write */15",
    ),
    (
        "-*/15 * * * *",
        "minute",
        0,
        5,
        "minute: a leading '-' has no meaning here; remove it",
    ),
    (
        "10~40 3 * * *",
        "minute",
        0,
        5,
        "minute: '~' is not supported; H(10-40) gives the job its own fixed number",
    ),
    (
        "0,15, 1 * * *",
        "minute",
        5,
        0,
        "minute: an item of the list is empty; remove the extra comma",
    ),
    (
        "? * * * *",
        "minute",
        0,
        1,
        "minute: '?' is only for the day fields; write *",
    ),
    (
        "0 0 ?,3 * *",
        "day-of-month",
        4,
        1,
        "day-of-month: '?' stands alone; use * in lists and before a step",
    ),
    (
        "0 +3 * * *",
        "hour",
        2,
        2,
        "hour: a '+' may only stand before the whole day-of-week field",
    ),
    (
        "0 0 * * +",
        "day-of-week",
        9,
        0,
        "day-of-week: a day is missing after '+', as in +fri",
    ),
    (
        "0 0 * * mon,tues",
        "day-of-week",
        12,
        4,
        "day-of-week: 'tues' is not understood; write 0-7 (0 and 7 are Sunday) or sun-sat",
    ),
    (
        "0 0 * * 1-",
        "day-of-week",
        10,
        0,
        "day-of-week: a value is missing; write 0-7 (0 and 7 are Sunday) or sun-sat",
    ),
    (
        "0 0 * * L",
        "day-of-week",
        8,
        1,
        "day-of-week: L alone is for day-of-month; write 5L for the last Friday, 6 for Saturdays",
    ),
    (
        "0 0 * * 5#6",
        "day-of-week",
        10,
        1,
        "day-of-week: '#6' is not understood; write #1 to #5, as in 5#3",
    ),
    (
        "0 0 L-31 * *",
        "day-of-month",
        4,
        4,
        "day-of-month: 'L-31' is not understood; write L, L-1 to L-30, or LW",
    ),
    (
        "0 0 32W * *",
        "day-of-month",
        4,
        2,
        "day-of-month: 32 is out of range 1-31",
    ),
    (
        "0 0 W * *",
        "day-of-month",
        4,
        1,
        "day-of-month: a day is missing before W, as in 15W; LW is the last weekday",
    ),
    (
        "H(5) * * * *",
        "minute",
        2,
        1,
        "minute: H( ) needs a range, as in H(0-29)",
    ),
    (
        "Hx * * * *",
        "minute",
        0,
        2,
        "minute: 'Hx' is not understood; write H, H(a-b), H/n or H(a-b)/n",
    ),
    (
        "H(0-60) * * * *",
        "minute",
        4,
        2,
        "minute: 60 is out of range 0-59; the full one is 0",
    ),
    (
        "\u{fc} * * * *",
        "minute",
        0,
        1,
        "minute: '\u{fc}' is not understood; write 0-59",
    ),
    (
        "0 \u{fc}\u{fc},7 * * *",
        "hour",
        2,
        2,
        "hour: '\u{fc}\u{fc}' is not understood; write 0-23",
    ),
    (
        "*/5 * * *",
        "day-of-week",
        9,
        0,
        "day-of-week: 4 fields are too few; write five",
    ),
    (
        "*",
        "hour",
        1,
        0,
        "hour, day-of-month, month, day-of-week: 1 field is too few; write five",
    ),
    (
        "* * * * * *",
        "second",
        0,
        11,
        "6 fields need seconds: true (ductor has no year field)",
    ),
];

#[test]
fn refusals_point_at_the_wrong_part() {
    let plain = ParseOptions::default();
    for (text, field, column, length, message) in REFUSED_FIELDS.iter().copied() {
        let error = refused(text, plain);
        assert_eq!(error.message, message, "{text}");
        assert_eq!(
            (error.field, error.column, error.length),
            (Some(field), column, length),
            "{text}"
        );
    }
}

/// Text, column, length, message.
const REFUSED_TEXTS: &[(&str, usize, usize, &str)] = &[
    (
        "",
        0,
        0,
        "the schedule is empty; write five fields, as in 30 2 * * *",
    ),
    (
        " \t ",
        0,
        0,
        "the schedule is empty; write five fields, as in 30 2 * * *",
    ),
    (
        "0 0 0 1 1 ? 2026",
        10,
        6,
        "7 fields are too many (ductor has no year field); write five, or six with seconds: true",
    ),
    ("@dayly", 0, 6, "'@dayly' is not known; did you mean @daily?"),
    (" @Daily", 1, 6, "'@Daily' is not known; did you mean @daily?"),
    (
        "@daily@hourly",
        0,
        13,
        "'@daily@hourly' is not known; there are @yearly, @monthly, @weekly, @daily, @hourly, @every and @reboot",
    ),
    ("@daily 5", 7, 1, "nothing may follow @daily"),
    (
        "@every",
        6,
        0,
        "@every: a length is missing; write it as in @every 15m",
    ),
    (
        "@every 90",
        7,
        2,
        "@every: '90' ends without a unit; write 90s, 90m, 90h or 90d",
    ),
    (
        "@every 1h 30m",
        10,
        3,
        "@every: one length only, without blanks, as in 1h30m",
    ),
    (
        "@every 1.5h",
        7,
        4,
        "@every: '1.5h' has '.'; write whole numbers with s, m, h or d, as in 1h30m",
    ),
    (
        "@every 30m1h",
        7,
        5,
        "@every: '30m1h' is out of order; write d, h, m, s once each, as in 1h30m",
    ),
    ("@every m", 7, 1, "@every: a number is missing before 'm' in 'm'"),
    ("@every 0s", 7, 2, "@every: '0s' is too short; the shortest is 1s"),
    (
        "@every 367d",
        7,
        4,
        "@every: '367d' is too long; the longest is 366d",
    ),
    (
        "@every 99999999999999999999d",
        7,
        21,
        "@every: '99999999999999999999d' is too long; the longest is 366d",
    ),
];

#[test]
fn refusals_of_the_whole_text() {
    let plain = ParseOptions::default();
    for (text, column, length, message) in REFUSED_TEXTS.iter().copied() {
        let error = refused(text, plain);
        assert_eq!(error.message, message, "{text}");
        assert_eq!(
            (error.field, error.column, error.length),
            (None, column, length),
            "{text}"
        );
    }
    let seconds = ParseOptions {
        seconds: true,
        ..plain
    };
    assert_eq!(
        refused("0 0 0 1 1 ? 2026", seconds).message,
        "7 fields are too many (ductor has no year field); write six"
    );
    assert_eq!(refused("60 * * * * *", seconds).field, Some("second"));
    let long = "1,".repeat(600);
    assert_eq!(
        refused(&long, plain).message,
        "the schedule has 1200 characters; at most 1024 are allowed"
    );
}

#[test]
fn an_unknown_zone_is_named() {
    for text in ["0 0 * * *", "@every 5m", "@reboot"] {
        let options = ParseOptions {
            timezone: Some("Europe/Londn"),
            ..ParseOptions::default()
        };
        let error = refused(text, options);
        assert_eq!(error.message, "unknown time zone 'Europe/Londn'");
        assert_eq!(error.field, Some("timezone"));
    }
    for zone in ["", "Local", "../etc/passwd", "Etc/Unknown", "+02:00"] {
        let options = ParseOptions {
            timezone: Some(zone),
            ..ParseOptions::default()
        };
        assert!(Schedule::parse("0 0 * * *", options).is_err(), "{zone}");
    }
    assert_eq!(schedule_in("UTC", "@daily").timezone(), "UTC");
    assert_eq!(
        Schedule::parse("@daily", ParseOptions::default())
            .unwrap()
            .timezone(),
        "UTC"
    );
}
