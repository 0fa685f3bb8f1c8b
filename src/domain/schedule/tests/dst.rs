//! Gap and fold: 11.3 to 11.5, odd zones, and the 2026 changes of New York and London.

use super::{at, fires, schedule_in, schedule_with_seconds, shown};
use crate::domain::schedule::Schedule;

const NEW_YORK: &str = "America/New_York";
const LONDON: &str = "Europe/London";

/// `expected` is written as `MM-DDTHH:MM+HH:MM`, of the year of `from`.
fn check(schedule: &Schedule, from: &str, to: &str, expected: &[&str]) {
    let found: Vec<String> = fires(schedule, from, to)
        .into_iter()
        .map(|text| format!("{}{}", &text[5..16], &text[19..]))
        .collect();
    assert_eq!(found, expected, "{} in {}", schedule.text(), schedule.timezone());
}

#[test]
fn dst_gap_and_fold_table() {
    let gap_day = ("2026-03-08T00:00:00-05:00", "2026-03-08T04:59:59-04:00");
    for (text, expected) in [
        ("30 2 * * *", vec!["03-08T03:00-04:00"]),
        ("0,30 2 * * *", vec!["03-08T03:00-04:00"]),
        ("30 2,3 * * *", vec!["03-08T03:00-04:00", "03-08T03:30-04:00"]),
        ("0 2,3 * * *", vec!["03-08T03:00-04:00"]),
        ("30 */2 * * *", vec!["03-08T00:30-05:00", "03-08T04:30-04:00"]),
        ("*/30 2 * * *", vec![]),
        ("0 3 * * *", vec!["03-08T03:00-04:00"]),
        ("59 1 * * *", vec!["03-08T01:59-05:00"]),
        ("15 2 8 3 *", vec!["03-08T03:00-04:00"]),
        ("15 2 9 3 *", vec![]),
        ("15 2 * * mon", vec![]),
    ] {
        check(&schedule_in(NEW_YORK, text), gap_day.0, gap_day.1, &expected);
    }
    let fold_day = ("2026-11-01T00:59:59-04:00", "2026-11-01T02:59:59-05:00");
    for (text, expected) in [
        ("30 1 * * *", vec!["11-01T01:30-04:00"]),
        ("0 1,2 * * *", vec!["11-01T01:00-04:00", "11-01T02:00-05:00"]),
        (
            "*/30 * * * *",
            vec![
                "11-01T01:00-04:00",
                "11-01T01:30-04:00",
                "11-01T01:00-05:00",
                "11-01T01:30-05:00",
                "11-01T02:00-05:00",
                "11-01T02:30-05:00",
            ],
        ),
        (
            "15 * * * *",
            vec!["11-01T01:15-04:00", "11-01T01:15-05:00", "11-01T02:15-05:00"],
        ),
        (
            "*/30 1 1 11 *",
            vec![
                "11-01T01:00-04:00",
                "11-01T01:30-04:00",
                "11-01T01:00-05:00",
                "11-01T01:30-05:00",
            ],
        ),
    ] {
        check(&schedule_in(NEW_YORK, text), fold_day.0, fold_day.1, &expected);
    }
}

#[test]
fn half_an_hour_at_lord_howe() {
    let zone = "Australia/Lord_Howe";
    let spring = ("2026-10-04T01:30:00+10:30", "2026-10-04T03:30:00+11:00");
    for (text, expected) in [
        ("15 2 * * *", vec!["10-04T02:30+11:00"]),
        ("0,45 2 * * *", vec!["10-04T02:30+11:00", "10-04T02:45+11:00"]),
        ("15,30 2 * * *", vec!["10-04T02:30+11:00"]),
        (
            "*/15 * * * *",
            vec![
                "10-04T01:45+10:30",
                "10-04T02:30+11:00",
                "10-04T02:45+11:00",
                "10-04T03:00+11:00",
                "10-04T03:15+11:00",
                "10-04T03:30+11:00",
            ],
        ),
    ] {
        check(&schedule_in(zone, text), spring.0, spring.1, &expected);
    }
    let autumn = ("2026-04-05T01:00:00+11:00", "2026-04-05T02:30:00+10:30");
    for (text, expected) in [
        ("45 1 * * *", vec!["04-05T01:45+11:00"]),
        ("15,45 1 * * *", vec!["04-05T01:15+11:00", "04-05T01:45+11:00"]),
        (
            "*/15 1 * * *",
            vec![
                "04-05T01:15+11:00",
                "04-05T01:30+11:00",
                "04-05T01:45+11:00",
                "04-05T01:30+10:30",
                "04-05T01:45+10:30",
            ],
        ),
    ] {
        check(&schedule_in(zone, text), autumn.0, autumn.1, &expected);
    }
}

/// 30 December 2011 did not exist in Samoa: from the 29th, 24:00 at -10:00, to the 31st at +14:00.
#[test]
fn the_lost_day_of_apia() {
    let span = ("2011-12-29T00:00:00-10:00", "2011-12-31T23:59:59+14:00");
    for (text, expected) in [
        (
            "0 12 * * *",
            vec!["12-29T12:00-10:00", "12-31T00:00+14:00", "12-31T12:00+14:00"],
        ),
        ("0 12 30 * *", vec!["12-31T00:00+14:00"]),
        ("0 0 * * *", vec!["12-31T00:00+14:00"]),
        ("0 9 * * fri", vec!["12-31T00:00+14:00"]),
        (
            "0 */12 * * *",
            vec!["12-29T12:00-10:00", "12-31T00:00+14:00", "12-31T12:00+14:00"],
        ),
        ("0 */12 30 * *", vec![]),
    ] {
        check(&schedule_in("Pacific/Apia", text), span.0, span.1, &expected);
    }
}

#[test]
fn a_gap_at_midnight_keeps_its_date() {
    // Havana goes from 00:00 to 01:00 on Sunday, 8 March 2026.
    let span = ("2026-03-07T12:00:00-05:00", "2026-03-08T12:00:00-04:00");
    for (text, expected) in [
        ("0 0 * * *", vec!["03-08T01:00-04:00"]),
        ("30 0 8 3 *", vec!["03-08T01:00-04:00"]),
        ("30 0 * * sat", vec![]),
        ("@daily", vec!["03-08T01:00-04:00"]),
        (
            "@hourly",
            vec![
                "03-07T13:00-05:00",
                "03-07T14:00-05:00",
                "03-07T15:00-05:00",
                "03-07T16:00-05:00",
                "03-07T17:00-05:00",
                "03-07T18:00-05:00",
                "03-07T19:00-05:00",
                "03-07T20:00-05:00",
                "03-07T21:00-05:00",
                "03-07T22:00-05:00",
                "03-07T23:00-05:00",
                "03-08T01:00-04:00",
                "03-08T02:00-04:00",
                "03-08T03:00-04:00",
                "03-08T04:00-04:00",
                "03-08T05:00-04:00",
                "03-08T06:00-04:00",
                "03-08T07:00-04:00",
                "03-08T08:00-04:00",
                "03-08T09:00-04:00",
                "03-08T10:00-04:00",
                "03-08T11:00-04:00",
                "03-08T12:00-04:00",
            ],
        ),
    ] {
        check(&schedule_in("America/Havana", text), span.0, span.1, &expected);
    }
}

#[test]
fn london_in_spring_and_autumn() {
    let spring = ("2026-03-29T00:00:00+00:00", "2026-03-29T03:00:00+01:00");
    let autumn = ("2026-10-25T00:30:00+01:00", "2026-10-25T02:00:00+00:00");
    for (text, in_spring, in_autumn) in [
        ("30 1 * * *", vec!["03-29T02:00+01:00"], vec!["10-25T01:30+01:00"]),
        ("0 1 * * *", vec!["03-29T02:00+01:00"], vec!["10-25T01:00+01:00"]),
        ("30 2 * * *", vec!["03-29T02:30+01:00"], vec![]),
        (
            "0 * * * *",
            vec!["03-29T02:00+01:00", "03-29T03:00+01:00"],
            vec!["10-25T01:00+01:00", "10-25T01:00+00:00", "10-25T02:00+00:00"],
        ),
        (
            "*/40 * * * *",
            vec![
                "03-29T00:40+00:00",
                "03-29T02:00+01:00",
                "03-29T02:40+01:00",
                "03-29T03:00+01:00",
            ],
            vec![
                "10-25T00:40+01:00",
                "10-25T01:00+01:00",
                "10-25T01:40+01:00",
                "10-25T01:00+00:00",
                "10-25T01:40+00:00",
                "10-25T02:00+00:00",
            ],
        ),
        (
            "@every 45m",
            vec!["03-29T00:45+00:00", "03-29T02:30+01:00"],
            vec!["10-25T01:00+01:00", "10-25T01:45+01:00", "10-25T01:30+00:00"],
        ),
    ] {
        let schedule = schedule_in(LONDON, text);
        check(&schedule, spring.0, spring.1, &in_spring);
        check(&schedule, autumn.0, autumn.1, &in_autumn);
    }
}

/// Zone, schedule, from, and the next fires.
const SECONDS: &[(&str, &str, &str, &[&str])] = &[
    (
        NEW_YORK,
        "*/20 59 1 * * *",
        "2026-03-08T01:59:10-05:00",
        &[
            "2026-03-08T01:59:20-05:00",
            "2026-03-08T01:59:40-05:00",
            "2026-03-09T01:59:00-04:00",
        ],
    ),
    (
        NEW_YORK,
        "59 59 1,2 * * *",
        "2026-03-08T01:59:58-05:00",
        &[
            "2026-03-08T01:59:59-05:00",
            "2026-03-08T03:00:00-04:00",
            "2026-03-09T01:59:59-04:00",
        ],
    ),
    (
        NEW_YORK,
        "59 59 1 * * *",
        "2026-11-01T01:59:58-04:00",
        &["2026-11-01T01:59:59-04:00", "2026-11-02T01:59:59-05:00"],
    ),
    (
        NEW_YORK,
        "*/30 59 1 * * *",
        "2026-11-01T01:59:00-04:00",
        &[
            "2026-11-01T01:59:30-04:00",
            "2026-11-01T01:59:00-05:00",
            "2026-11-01T01:59:30-05:00",
        ],
    ),
    (
        LONDON,
        "* * * * * *",
        "2026-03-29T00:59:58+00:00",
        &[
            "2026-03-29T00:59:59+00:00",
            "2026-03-29T02:00:00+01:00",
            "2026-03-29T02:00:01+01:00",
        ],
    ),
    (
        LONDON,
        "30 0 1 * * *",
        "2026-03-29T00:00:00+00:00",
        &["2026-03-29T02:00:00+01:00", "2026-03-30T01:00:30+01:00"],
    ),
    (
        LONDON,
        "* * * * * *",
        "2026-10-25T01:59:58+01:00",
        &["2026-10-25T01:59:59+01:00", "2026-10-25T01:00:00+00:00"],
    ),
    (
        LONDON,
        "7 30 1 * * *",
        "2026-10-25T00:00:00+01:00",
        &["2026-10-25T01:30:07+01:00", "2026-10-26T01:30:07+00:00"],
    ),
];

#[test]
fn seconds_across_the_changes() {
    for (zone, text, from, expected) in SECONDS.iter().copied() {
        let schedule = schedule_with_seconds(zone, text);
        let found: Vec<String> = schedule
            .instants(at(from), i64::MAX, expected.len())
            .into_iter()
            .map(|instant| shown(zone, instant))
            .collect();
        assert_eq!(found, expected, "{text} in {zone}");
    }
}

/// `@every` counts from the epoch and does not know the zone.
#[test]
fn every_is_a_multiple_of_its_length() {
    for (text, from, expected) in [
        (
            "@every 90s",
            "2026-03-08T06:58:00Z",
            ["2026-03-08T06:58:30Z", "2026-03-08T07:00:00Z"],
        ),
        (
            "@every 90s",
            "2026-11-01T05:59:15.5Z",
            ["2026-11-01T06:00:00Z", "2026-11-01T06:01:30Z"],
        ),
        (
            "@every 1h30m",
            "2026-03-08T06:00:00Z",
            ["2026-03-08T07:30:00Z", "2026-03-08T09:00:00Z"],
        ),
        (
            "@every 7h",
            "1970-01-01T00:00:00Z",
            ["1970-01-01T07:00:00Z", "1970-01-01T14:00:00Z"],
        ),
        (
            "@every 366d",
            "1970-01-01T00:00:00Z",
            ["1971-01-02T00:00:00Z", "1972-01-03T00:00:00Z"],
        ),
        (
            "@every 1d",
            "1969-12-31T12:00:00Z",
            ["1970-01-01T00:00:00Z", "1970-01-02T00:00:00Z"],
        ),
    ] {
        for zone in [NEW_YORK, LONDON, "UTC"] {
            let found = schedule_in(zone, text).instants(at(from), i64::MAX, 2);
            assert_eq!(found, expected.map(at), "{text} in {zone}");
        }
    }
}

#[test]
fn published_values_of_new_york() {
    for line in include_str!("data/new_york.txt")
        .lines()
        .filter(|line| !line.starts_with('#'))
    {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let [text, kind, rule, spring, autumn] = cells[..] else {
            panic!("{line}")
        };
        let schedule = schedule_in(NEW_YORK, text);
        assert_eq!(schedule.is_interval(), kind == "interval", "{text}");
        assert_eq!(schedule.is_fixed_time(), kind == "fixed", "{text}");
        assert_eq!(
            format!("{:?}", schedule.day_rule().unwrap()).to_lowercase(),
            rule,
            "{text}"
        );
        for (from, expected) in [
            ("2026-03-07T12:00:00-05:00", spring),
            ("2026-10-31T12:00:00-04:00", autumn),
        ] {
            let found: Vec<String> = schedule
                .instants(at(from), i64::MAX, 5)
                .into_iter()
                .map(|instant| shown(NEW_YORK, instant))
                .collect();
            assert_eq!(found.join(" "), expected, "{text} after {from}");
        }
    }
}
