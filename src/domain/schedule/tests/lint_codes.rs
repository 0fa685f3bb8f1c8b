//! One schedule per lint code, and its neighbours that have no finding.

use super::{at, schedule_in, schedule_with_seconds};
use crate::domain::schedule::{DayMatch, LintLevel, ParseOptions, Schedule, lints};

/// The findings as `code: message`, for now = 2026-01-01.
fn found(schedule: &Schedule, p90_ms: Option<u64>) -> Vec<String> {
    lints(schedule, at("2026-01-01T00:00:00Z"), p90_ms)
        .into_iter()
        .map(|lint| format!("{}: {}", lint.code, lint.message))
        .collect()
}

/// Zone, schedule, and all its findings.
const FINDINGS: &[(&str, &str, &[&str])] = &[
    (
        "UTC",
        "0 0 30 2 *",
        &["never-fires: '0 0 30 2 *' names no instant in the next 30 years"],
    ),
    (
        "UTC",
        "0 0 29 2 *",
        &["leap-day-only: 29 February comes in leap years only"],
    ),
    (
        "America/New_York",
        "30 2 * * *",
        &["dst-skipped: 2026-03-08 in America/New_York: 02:30 does not exist, moved to 03:00"],
    ),
    (
        "America/New_York",
        "*/20 2 * * *",
        &["dst-skipped: 2026-03-08 in America/New_York: 02:00 and 2 more do not exist, not run"],
    ),
    (
        "America/New_York",
        "30 */2 * * *",
        &["dst-skipped: 2026-03-08 in America/New_York: 02:30 does not exist, not run"],
    ),
    (
        "America/New_York",
        "*/30 * * * *",
        &[
            "dst-doubled: 2026-11-01 in America/New_York: the time from 01:00 to 02:00 comes \
                 twice, and 2 local fires with it",
        ],
    ),
    ("America/New_York", "30 1 * * *", &[]),
    ("America/New_York", "0 3 * * *", &[]),
    (
        "UTC",
        "*/7 * * * *",
        &["uneven-step: minute: a step of 7 does not divide 60, so the last step is shorter"],
    ),
    (
        "UTC",
        "*/90 * * * *",
        &["uneven-step: minute: a step of 90 leaves one value of the field"],
    ),
    ("UTC", "*/15 */6 * */3 *", &[]),
    (
        "UTC",
        "0 0 31 * *",
        &[
            "skipped-months: no such day-of-month in Feb, Apr, Jun, Sep, Nov; L is the last day of \
                 each month",
        ],
    ),
    (
        "UTC",
        "0 0 29 * *",
        &[
            "skipped-months: no such day-of-month in Feb (but for leap years); L is the last day of \
                 each month",
        ],
    ),
    ("UTC", "0 0 31 1,3,5 *", &[]),
    ("UTC", "0 0 L * *", &[]),
    ("UTC", "0 0 28-31 * *", &[]),
    (
        "UTC",
        "0 0 13 * 5",
        &[
            "day-or: day-of-month and day-of-week are both set, so either is enough; say dayMatch: \
                 or, or dayMatch: and (a + before day-of-week) for both",
        ],
    ),
    ("UTC", "0 0 13 * +5", &[]),
    ("UTC", "0 0 * * 5", &[]),
    ("UTC", "@daily", &[]),
    ("America/New_York", "@every 7m", &[]),
    ("UTC", "@reboot", &[]),
];

#[test]
fn lint_codes() {
    for (zone, text, expected) in FINDINGS.iter().copied() {
        assert_eq!(
            found(&schedule_in(zone, text), None),
            expected,
            "{text} in {zone}"
        );
    }
}

#[test]
fn the_choice_of_a_day_match_silences_day_or() {
    for choice in [DayMatch::Or, DayMatch::And] {
        let options = ParseOptions {
            day_match: Some(choice),
            ..ParseOptions::default()
        };
        let schedule = Schedule::parse("0 0 13 * 5", options).unwrap();
        assert_eq!(found(&schedule, None), Vec::<String>::new());
    }
}

#[test]
fn hashed_slot_shows_the_number() {
    let options = ParseOptions {
        job_name: "nightly-dump",
        ..ParseOptions::default()
    };
    let schedule = Schedule::parse("H H(0-5) * * *", options).unwrap();
    let texts = found(&schedule, None);
    assert_eq!(texts.len(), 2, "{texts:?}");
    assert!(
        texts[0].starts_with("hashed-slot: minute: H stands for "),
        "{texts:?}"
    );
    assert!(
        texts[1].starts_with("hashed-slot: hour: H(0-5) stands for "),
        "{texts:?}"
    );
}

#[test]
fn overlap_is_told_from_the_shortest_distance() {
    let each_minute = schedule_in("UTC", "* * * * *");
    assert_eq!(found(&each_minute, Some(60_000)), Vec::<String>::new());
    assert_eq!(
        found(&each_minute, Some(61_500)),
        [
            "overlap-likely: fires come 1m apart, and one run in ten takes longer than 61.5 s; runs \
             will overlap (concurrencyPolicy: Allow)"
        ]
    );
    assert_eq!(found(&schedule_in("UTC", "@every 90s"), Some(90_001)).len(), 1);
    assert_eq!(found(&schedule_in("UTC", "0,1 3 * * *"), Some(60_001)).len(), 1);
    assert_eq!(found(&schedule_in("UTC", "@reboot"), Some(60_001)).len(), 0);
    assert_eq!(
        found(&schedule_with_seconds("UTC", "*/30 * * * * *"), Some(30_001)).len(),
        1
    );
}

#[test]
fn levels_follow_the_table() {
    let now = at("2026-01-01T00:00:00Z");
    for (zone, text, level) in [
        ("UTC", "0 0 30 2 *", LintLevel::Error),
        ("America/New_York", "30 2 * * *", LintLevel::Warning),
        ("America/New_York", "*/30 * * * *", LintLevel::Note),
        ("UTC", "H 0 * * *", LintLevel::Note),
        ("UTC", "*/7 * * * *", LintLevel::Warning),
    ] {
        let found = lints(&schedule_in(zone, text), now, None);
        assert_eq!(
            found.iter().map(|lint| lint.level).collect::<Vec<_>>(),
            [level],
            "{text}"
        );
    }
}

/// A gap of a whole day: the date asked for and the date it moves to differ.
#[test]
fn a_lost_day_is_told_with_both_dates() {
    let schedule = schedule_in("Pacific/Apia", "0 12 30 12 *");
    let found = lints(&schedule, at("2011-06-01T00:00:00Z"), None);
    assert_eq!(
        found.iter().map(|lint| lint.message.as_str()).collect::<Vec<_>>(),
        ["2011-12-30 in Pacific/Apia: 12:00 does not exist, moved to 00:00 on 2011-12-31"]
    );
}

/// 29 February is a Monday in 2072 and then not before 2112.
#[test]
fn a_very_rare_day_is_told_with_its_date() {
    let schedule = schedule_in("UTC", "0 0 29 2 +mon");
    let now = at("2072-03-01T00:00:00Z");
    assert_eq!(schedule.next_after(now), Some(at("2112-02-29T00:00:00Z")));
    let texts: Vec<String> = lints(&schedule, now, None)
        .into_iter()
        .map(|lint| lint.message)
        .collect();
    assert_eq!(
        texts[0],
        "'0 0 29 2 +mon' names no instant in the next 30 years; the first is 2112-02-29"
    );
}
