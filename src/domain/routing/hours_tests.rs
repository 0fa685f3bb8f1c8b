//! Schedules on the wall clock: gaps, folds, midnight, exceptions, odd zones; and against a scan of every minute.

use super::hours::{closed, is_open, opens_at};
use super::objects::{Exception, Hours, Window};
use crate::words::time::Micros;

const MINUTE_US: i64 = 60_000_000;
const ALL_DAYS: u8 = 0b111_1111;
const WORK_DAYS: u8 = 0b001_1111;

fn at(text: &str) -> Micros {
    Micros::parse(text).unwrap()
}

fn hours(zone: &str, days: u8, start: &str, end: &str) -> Hours {
    let minute = |text: &str| {
        let (hours, minutes) = text.split_once(':').unwrap();
        hours.parse::<u16>().unwrap() * 60 + minutes.parse::<u16>().unwrap()
    };
    Hours {
        timezone: Some(zone.to_owned()),
        windows: vec![Window {
            days,
            start: minute(start),
            end: minute(end),
        }],
        exceptions: vec![],
    }
}

/// Minutes from one instant to another at which it is open.
fn open_minutes(hours: &Hours, from: &str, until: &str) -> usize {
    let (from, until) = (at(from).0, at(until).0);
    let minutes = (from..until).step_by(usize::try_from(MINUTE_US).unwrap());
    minutes
        .filter(|minute| is_open(Some(hours), "UTC", Micros(*minute)))
        .count()
}

#[test]
fn test_24_windows_of_new_york_on_days_of_23_and_25_hours() {
    let work = hours("America/New_York", ALL_DAYS, "09:00", "17:00");
    assert_eq!(
        open_minutes(&work, "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
        8 * 60
    );
    assert_eq!(
        open_minutes(&work, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        8 * 60
    );
    let gap = hours("America/New_York", ALL_DAYS, "02:30", "03:00");
    assert_eq!(
        open_minutes(&gap, "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
        0
    );
    let fold = hours("America/New_York", ALL_DAYS, "01:00", "02:00");
    assert_eq!(
        open_minutes(&fold, "2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"),
        2 * 60
    );
    for pass in ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"] {
        assert!(is_open(Some(&fold), "UTC", at(pass)), "{pass}");
    }
}

#[test]
fn test_24_hours_of_new_york_are_right_on_both_sides_of_a_change() {
    let nine = hours("America/New_York", ALL_DAYS, "09:00", "10:00");
    assert!(is_open(Some(&nine), "UTC", at("2024-03-09T14:30:00Z")));
    assert!(!is_open(Some(&nine), "UTC", at("2024-03-10T14:30:00Z")));
    assert!(is_open(Some(&nine), "UTC", at("2024-03-10T13:30:00Z")));
}

#[test]
fn test_56_a_window_over_midnight_belongs_to_the_day_it_begins_on() {
    // Friday evenings only.
    let night = hours("Europe/Berlin", 0b001_0000, "22:00", "06:00");
    let check = |text: &str, open: bool| assert_eq!(is_open(Some(&night), "UTC", at(text)), open, "{text}");
    check("2026-01-09T20:59:59Z", false);
    check("2026-01-09T21:00:00Z", true);
    check("2026-01-10T04:59:59Z", true);
    check("2026-01-10T05:00:00Z", false);
    check("2026-01-09T03:00:00Z", false);
    check("2026-01-10T22:00:00Z", false);
    assert_eq!(
        opens_at(&night, "UTC", at("2026-01-10T06:00:00Z")),
        Some(at("2026-01-16T21:00:00Z"))
    );
}

#[test]
fn test_56_an_exception_replaces_the_day() {
    let mut work = hours("America/New_York", WORK_DAYS, "09:00", "17:00");
    work.exceptions = vec![
        Exception {
            date: (2026, 12, 25),
            windows: vec![],
        },
        Exception {
            date: (2026, 12, 24),
            windows: vec![(9 * 60, 12 * 60)],
        },
        Exception {
            date: (2026, 12, 27),
            windows: vec![(600, 660)],
        },
    ];
    assert_eq!(
        open_minutes(&work, "2026-12-24T05:00:00Z", "2026-12-25T05:00:00Z"),
        3 * 60
    );
    assert_eq!(
        open_minutes(&work, "2026-12-25T05:00:00Z", "2026-12-26T05:00:00Z"),
        0
    );
    // A Sunday with windows of its own.
    assert_eq!(
        opens_at(&work, "UTC", at("2026-12-24T17:00:00Z")),
        Some(at("2026-12-27T15:00:00Z"))
    );
}

#[test]
fn test_56_zones_with_odd_offsets() {
    let kathmandu = hours("Asia/Kathmandu", ALL_DAYS, "09:00", "09:15");
    assert_eq!(
        opens_at(&kathmandu, "UTC", at("2026-05-01T00:00:00Z")),
        Some(at("2026-05-01T03:15:00Z"))
    );
    let india = hours("Asia/Kolkata", ALL_DAYS, "00:00", "00:30");
    assert!(is_open(Some(&india), "UTC", at("2026-05-01T18:45:00Z")));
    // Its clock is changed by half an hour.
    let lord_howe = hours("Australia/Lord_Howe", ALL_DAYS, "01:30", "02:00");
    assert_eq!(
        open_minutes(&lord_howe, "2026-04-04T12:00:00Z", "2026-04-05T12:00:00Z"),
        60
    );
    let recipient_zone = Hours {
        timezone: None,
        ..kathmandu
    };
    assert!(is_open(
        Some(&recipient_zone),
        "Asia/Kathmandu",
        at("2026-05-01T03:20:00Z")
    ));
    assert!(!is_open(Some(&recipient_zone), "UTC", at("2026-05-01T03:20:00Z")));
}

#[test]
fn no_schedule_is_always_open_and_one_without_windows_never() {
    let never = Hours {
        timezone: None,
        windows: vec![],
        exceptions: vec![],
    };
    let now = at("2026-05-01T03:20:00Z");
    assert!(is_open(None, "UTC", now) && closed(None, "UTC", now).is_none());
    let said = closed(Some(&never), "America/Chicago", now).unwrap();
    assert_eq!(
        (said.zone.as_str(), said.local.as_str(), said.opens_at),
        ("America/Chicago", "Thu 22:20", None)
    );
}

/// Field case: shifts of London around the end of summer time.
#[test]
fn case_r_london_opens_by_its_own_clock() {
    let shift = hours("Europe/London", WORK_DAYS, "08:30", "17:30");
    assert!(is_open(Some(&shift), "UTC", at("2026-10-23T07:45:00Z")));
    let monday = at("2026-10-26T07:45:00Z");
    assert!(!is_open(Some(&shift), "UTC", monday));
    assert_eq!(opens_at(&shift, "UTC", monday), Some(at("2026-10-26T08:30:00Z")));
}

#[test]
fn opening_instants_are_looked_for_400_days_ahead() {
    let mut once = hours("UTC", 0, "09:00", "10:00");
    once.exceptions = vec![Exception {
        date: (2027, 2, 1),
        windows: vec![(540, 600)],
    }];
    assert_eq!(
        opens_at(&once, "UTC", at("2026-01-01T00:00:00Z")),
        Some(at("2027-02-01T09:00:00Z"))
    );
    assert_eq!(opens_at(&once, "UTC", at("2025-12-01T00:00:00Z")), None);
    assert_eq!(opens_at(&once, "UTC", at("2027-02-01T09:00:00Z")), None);
}

/// Every opening of a year, found by looking at each minute.
fn scan(hours: &Hours, from: Micros, minutes: i64) -> Vec<Micros> {
    let mut openings = Vec::new();
    let mut before = is_open(Some(hours), "UTC", from);
    for minute in 1..=minutes {
        let now = Micros(from.0 + minute * MINUTE_US);
        let open = is_open(Some(hours), "UTC", now);
        if open && !before {
            openings.push(now);
        }
        before = open;
    }
    openings
}

#[test]
fn test_56_opens_at_agrees_with_a_scan_of_every_minute_of_a_year() {
    let from = at("2026-01-01T00:00:00Z");
    let year = 365 * 24 * 60;
    for (zone, days, start, end) in [
        ("America/New_York", WORK_DAYS, "09:00", "17:00"),
        ("America/New_York", ALL_DAYS, "02:30", "03:30"),
        ("Australia/Lord_Howe", ALL_DAYS, "01:45", "02:15"),
        ("Asia/Kathmandu", 0b101_0000, "22:30", "05:45"),
        ("America/Havana", ALL_DAYS, "23:30", "00:30"),
        ("Africa/Casablanca", 0b100_0001, "02:15", "24:00"),
    ] {
        let mut one = hours(zone, days, start, end);
        one.exceptions = vec![
            Exception {
                date: (2026, 3, 8),
                windows: vec![(150, 200), (1_380, 60)],
            },
            Exception {
                date: (2026, 11, 1),
                windows: vec![],
            },
        ];
        let openings = scan(&one, from, year);
        assert!(openings.len() > 40, "{zone}: {}", openings.len());
        let mut place = from;
        for expected in &openings {
            // Just before it, and from the opening before it.
            for after in [place, Micros(expected.0 - 1)] {
                if is_open(Some(&one), "UTC", after) && after == place && place != from {
                    // From within a window the next opening may be another window that begins in it.
                    continue;
                }
                assert_eq!(
                    opens_at(&one, "UTC", after),
                    Some(*expected),
                    "{zone} after {after}"
                );
            }
            place = *expected;
        }
    }
}
