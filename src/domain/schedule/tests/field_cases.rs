//! Cases that people met in public (`field/cases.md`), by their ids, and the catch-up helper of 10.3.

use super::{at, fires, schedule_in};
use crate::domain::schedule::{DayMatch, Missed, ParseOptions, Schedule};

#[test]
fn c3_both_day_fields() {
    let (from, to) = ("2025-12-31T23:59:59Z", "2026-12-31T23:59:59Z");
    assert_eq!(fires(&schedule_in("UTC", "0 0 13 * 5"), from, to).len(), 61);
    let imported = ParseOptions {
        day_match: Some(DayMatch::And),
        ..ParseOptions::default()
    };
    let both = Schedule::parse("0 0 13 * 5", imported).unwrap();
    assert_eq!(
        fires(&both, from, to),
        [
            "2026-02-13T00:00:00+00:00",
            "2026-03-13T00:00:00+00:00",
            "2026-11-13T00:00:00+00:00"
        ]
    );
}

#[test]
fn c5_a_frequent_job() {
    let day = ("2026-10-24T23:59:59+01:00", "2026-10-25T23:59:59+00:00");
    let frequent = fires(&schedule_in("Europe/London", "*/15 * * * *"), day.0, day.1);
    assert_eq!(frequent.len(), 100);
    assert_eq!(
        frequent[4..12],
        [
            "2026-10-25T01:00:00+01:00",
            "2026-10-25T01:15:00+01:00",
            "2026-10-25T01:30:00+01:00",
            "2026-10-25T01:45:00+01:00",
            "2026-10-25T01:00:00+00:00",
            "2026-10-25T01:15:00+00:00",
            "2026-10-25T01:30:00+00:00",
            "2026-10-25T01:45:00+00:00",
        ]
    );
    let once = fires(&schedule_in("Europe/London", "30 1 * * *"), day.0, day.1);
    assert_eq!(once, ["2026-10-25T01:30:00+01:00"]);
}

#[test]
fn c9_forms() {
    let parse = |text: &str| Schedule::parse(text, ParseOptions::default());
    for (text, field, column, hint) in [
        ("*15 * * * *", "minute", 0, "*/15"),
        ("0 0 * * * *", "second", 0, "seconds: true"),
        ("0 30 2 * * ?", "second", 0, "seconds: true"),
        ("60 * * * *", "minute", 0, "0-59"),
    ] {
        let error = parse(text).unwrap_err();
        assert_eq!((error.field, error.column), (Some(field), column), "{text}");
        assert!(error.message.contains(hint), "{text}: {error}");
    }
    let weekend = fires(
        &parse("0 8 * * sat-sun").unwrap(),
        "2026-03-02T00:00:00Z",
        "2026-03-08T23:59:59Z",
    );
    assert_eq!(
        weekend,
        ["2026-03-07T08:00:00+00:00", "2026-03-08T08:00:00+00:00"]
    );
}

#[test]
fn m1_down_for_two_hours() {
    let schedule = schedule_in("UTC", "* * * * *");
    let (mark, now) = (at("2026-03-02T08:29:00Z"), at("2026-03-02T10:20:59Z"));
    let missed = schedule.missed(mark, now, 100);
    assert_eq!((missed.newest.len(), missed.older), (100, 11));
    assert_eq!(missed.newest.first(), Some(&at("2026-03-02T08:41:00Z")));
    assert_eq!(missed.newest.last(), Some(&at("2026-03-02T10:20:00Z")));
    assert_eq!(
        schedule.missed(mark, now, 1),
        Missed {
            newest: vec![at("2026-03-02T10:20:00Z")],
            older: 110
        }
    );
    assert_eq!(
        schedule.missed(mark, now, 0),
        Missed {
            newest: vec![],
            older: 111
        }
    );
    assert_eq!(schedule.missed(mark, now, 500).older, 0);
    assert_eq!(schedule.missed(mark, now, 500).newest.len(), 111);
}

#[test]
fn m3_restarted_ninety_minutes_late() {
    let schedule = schedule_in("UTC", "0 8 * * *");
    let (mark, now) = (at("2026-03-01T08:00:00Z"), at("2026-03-02T09:35:00Z"));
    let only = Missed {
        newest: vec![at("2026-03-02T08:00:00Z")],
        older: 0,
    };
    assert_eq!(schedule.missed(mark, now, 100), only);
    assert_eq!(schedule.next_after(now), Some(at("2026-03-03T08:00:00Z")));
}

/// The end of the window belongs to it, its beginning does not.
#[test]
fn missed_moments_end_where_the_caller_says() {
    let schedule = schedule_in("UTC", "0 8 * * *");
    let mark = at("2026-03-01T08:00:00Z");
    for (now, count) in [
        ("2026-03-01T08:00:00Z", 0),
        ("2026-03-02T07:59:59.999Z", 0),
        ("2026-03-02T08:00:00Z", 1),
    ] {
        assert_eq!(schedule.missed(mark, at(now), 9).newest.len(), count, "{now}");
    }
    assert_eq!(
        schedule.missed(at("2026-03-03T00:00:00Z"), at("2026-03-02T09:00:00Z"), 9),
        Missed::default()
    );
}

#[test]
fn a_long_outage_of_a_frequent_job_is_counted_not_walked() {
    let schedule = super::schedule_with_seconds("America/New_York", "* * * * * *");
    let (mark, now) = (at("2020-01-01T00:00:00Z"), at("2025-12-31T23:59:59Z"));
    let missed = schedule.missed(mark, now, 100);
    let total = u64::try_from((at("2025-12-31T23:59:59Z") - mark) / 1_000).unwrap();
    assert_eq!((missed.newest.len(), missed.older), (100, total - 100));
    assert_eq!(missed.newest.last(), Some(&at("2025-12-31T23:59:59Z")));
}
