//! The forms of section 11: what they mean.

use super::{at, schedule_in, schedule_with_seconds, shown};
use crate::domain::schedule::{DayMatch, DayRule, ParseOptions, Schedule, looks_like_field};

/// The fires of 2026 in UTC as `MM-DD`, for schedules that fire at most once a day.
fn days_of_2026(schedule: &Schedule) -> String {
    let (from, to) = (at("2025-12-31T23:59:59Z"), at("2026-12-31T23:59:59Z"));
    let days = schedule.instants(from, to, 400);
    assert_eq!(schedule.count(from, to), u64::try_from(days.len()).unwrap());
    let days: Vec<String> = days
        .into_iter()
        .map(|day| shown("UTC", day)[5..10].to_owned())
        .collect();
    days.join(" ")
}

#[test]
fn dom_dow_or_and_plus() {
    let with = |text: &str, day_match| {
        Schedule::parse(
            text,
            ParseOptions {
                day_match,
                ..ParseOptions::default()
            },
        )
        .unwrap()
    };
    let (year_start, year_end) = (at("2025-12-31T23:59:59Z"), at("2026-12-31T23:59:59Z"));
    for (text, day_match, rule, count) in [
        ("0 0 13 * 5", None, DayRule::Or, 61),
        ("0 0 13 * 5", Some(DayMatch::Or), DayRule::Or, 61),
        ("0 0 13 * 5", Some(DayMatch::And), DayRule::And, 3),
        ("0 0 13 * +5", None, DayRule::And, 3),
        ("0 0 13 * +5", Some(DayMatch::Or), DayRule::And, 3),
        ("0 0 13 * +*", None, DayRule::And, 12),
        ("0 0 * * 5", None, DayRule::And, 52),
        ("0 0 ? * 5", None, DayRule::And, 52),
        ("0 0 13 * ?", None, DayRule::And, 12),
        ("0 0 ? * ?", None, DayRule::And, 365),
        ("0 0 1-31 * 5", None, DayRule::Or, 365),
        ("0 0 13 * */7", None, DayRule::And, 2),
        ("0 0 13,* * 5", None, DayRule::Or, 365),
        ("0 0 *,13 * 5", None, DayRule::And, 52),
    ] {
        let schedule = with(text, day_match);
        assert_eq!(schedule.day_rule(), Some(rule), "{text}");
        assert_eq!(schedule.count(year_start, year_end), count, "{text}");
    }
    assert_eq!(days_of_2026(&with("0 0 13 * +5", None)), "02-13 03-13 11-13");
    let odd_wednesdays = days_of_2026(&with("0 0 */2 * wed", None));
    assert!(
        odd_wednesdays.starts_with("01-07 01-21 02-11 02-25 03-11 03-25 04-01"),
        "{odd_wednesdays}"
    );
}

/// Schedules that fire at most once a day, and their days of 2026, computed apart from this program.
const DAY_FORMS: &[(&str, &str)] = &[
    (
        "0 0 L * *",
        "01-31 02-28 03-31 04-30 05-31 06-30 07-31 08-31 09-30 10-31 11-30 12-31",
    ),
    (
        "0 0 l-3 * *",
        "01-28 02-25 03-28 04-27 05-28 06-27 07-28 08-28 09-27 10-28 11-27 12-28",
    ),
    ("0 0 L-30 * *", "01-01 03-01 05-01 07-01 08-01 10-01 12-01"),
    (
        "0 0 LW * *",
        "01-30 02-27 03-31 04-30 05-29 06-30 07-31 08-31 09-30 10-30 11-30 12-31",
    ),
    (
        "0 0 1W * *",
        "01-01 02-02 03-02 04-01 05-01 06-01 07-01 08-03 09-01 10-01 11-02 12-01",
    ),
    (
        "0 0 15w * *",
        "01-15 02-16 03-16 04-15 05-15 06-15 07-15 08-14 09-15 10-15 11-16 12-15",
    ),
    ("0 0 31W * *", "01-30 03-31 05-29 07-31 08-31 10-30 12-31"),
    (
        "0 0 * * 5L",
        "01-30 02-27 03-27 04-24 05-29 06-26 07-31 08-28 09-25 10-30 11-27 12-25",
    ),
    (
        "0 0 * * friL",
        "01-30 02-27 03-27 04-24 05-29 06-26 07-31 08-28 09-25 10-30 11-27 12-25",
    ),
    (
        "0 0 * * 5#3",
        "01-16 02-20 03-20 04-17 05-15 06-19 07-17 08-21 09-18 10-16 11-20 12-18",
    ),
    ("0 0 * * FRI#5", "01-30 05-29 07-31 10-30"),
    ("0 0 * 2 7#1,7L", "02-01 02-22"),
    ("0 0 1,L 2 *", "02-01 02-28"),
    (
        "0 0 * 1 sat-sun",
        "01-03 01-04 01-10 01-11 01-17 01-18 01-24 01-25 01-31",
    ),
    (
        "0 0 * 1 6-0",
        "01-03 01-04 01-10 01-11 01-17 01-18 01-24 01-25 01-31",
    ),
    (
        "0 0 * 1 6-7",
        "01-03 01-04 01-10 01-11 01-17 01-18 01-24 01-25 01-31",
    ),
    ("0 0 * 1 7", "01-04 01-11 01-18 01-25"),
    ("0 0 * 1 7-1", "01-04 01-05 01-11 01-12 01-18 01-19 01-25 01-26"),
    (
        "0 0 * 1 fri-mon/2",
        "01-02 01-04 01-09 01-11 01-16 01-18 01-23 01-25 01-30",
    ),
    ("0 0 1-10/4 jan,MAR *", "01-01 01-05 01-09 03-01 03-05 03-09"),
    ("0 0 25/3 2 *", "02-25 02-28"),
    ("0 0 1 10/1 *", "10-01 11-01 12-01"),
    (
        "@monthly",
        "01-01 02-01 03-01 04-01 05-01 06-01 07-01 08-01 09-01 10-01 11-01 12-01",
    ),
    ("@yearly", "01-01"),
    ("@annually", "01-01"),
    ("  0\t0  4   7 *  ", "07-04"),
];

#[test]
fn field_forms() {
    for (text, expected) in DAY_FORMS.iter().copied() {
        assert_eq!(days_of_2026(&schedule_in("UTC", text)), expected, "{text}");
    }
    for (text, per_year) in [
        ("@weekly", 52),
        ("@daily", 365),
        ("@midnight", 365),
        ("@hourly", 8_760),
    ] {
        let (from, to) = (at("2025-12-31T23:59:59Z"), at("2026-12-31T23:59:59Z"));
        assert_eq!(schedule_in("UTC", text).count(from, to), per_year, "{text}");
    }
}

fn times_of_a_day(schedule: &Schedule) -> Vec<String> {
    let day = (at("2026-05-31T23:59:59Z"), at("2026-06-01T23:59:59Z"));
    let fires = schedule.instants(day.0, day.1, 100);
    fires
        .into_iter()
        .map(|fire| shown("UTC", fire)[11..19].to_owned())
        .collect()
}

#[test]
fn seconds_and_steps() {
    for (text, expected) in [
        ("*/20 59 23 * * *", vec!["23:59:00", "23:59:20", "23:59:40"]),
        ("50/5 0 12 * * ?", vec!["12:00:50", "12:00:55"]),
        ("59 59 23 1 6 *", vec!["23:59:59"]),
        (
            "0 */30 8-9 * * *",
            vec!["08:00:00", "08:30:00", "09:00:00", "09:30:00"],
        ),
        (
            "5-55/25,7 8 * * *",
            vec!["08:05:00", "08:07:00", "08:30:00", "08:55:00"],
        ),
        ("08,38 23 * * *", vec!["23:08:00", "23:38:00"]),
        ("0 20/2 * * *", vec!["20:00:00", "22:00:00"]),
    ] {
        assert_eq!(
            times_of_a_day(&schedule_with_seconds("UTC", text)),
            expected,
            "{text}"
        );
    }
}

/// SHA-256 values worked out with another program.
#[test]
fn hashed_numbers_are_golden() {
    let named = |job_name, text: &str| {
        let options = ParseOptions {
            job_name,
            seconds: true,
            ..ParseOptions::default()
        };
        Schedule::parse(text, options).unwrap()
    };
    for (job_name, text, expected) in [
        ("nightly-dump", "H H * * *", vec!["13:58:00"]),
        ("nightly-dump", "H H H * * *", vec!["13:58:39"]),
        (
            "nightly-dump",
            "H/15 0 * * *",
            vec!["00:13:00", "00:28:00", "00:43:00", "00:58:00"],
        ),
        ("nightly-dump", "H(0-29) 0 * * *", vec!["00:28:00"]),
        ("nightly-dump", "H(30-59) 0 * * *", vec!["00:58:00"]),
        (
            "nightly-dump",
            "H(0-29)/10 0 * * *",
            vec!["00:08:00", "00:18:00", "00:28:00"],
        ),
        ("nightly-dump", "h,5 0 * * *", vec!["00:05:00", "00:58:00"]),
        ("a", "H H H * * *", vec!["22:57:11"]),
        ("b\u{fc}ro", "H H H * * *", vec!["03:35:26"]),
    ] {
        assert_eq!(
            times_of_a_day(&named(job_name, text)),
            expected,
            "{job_name}: {text}"
        );
    }
    let days: Vec<String> = ["0 0 H * *", "0 0 H(1-28) * *", "0 0 1 H *"]
        .iter()
        .map(|text| days_of_2026(&named("nightly-dump", text)))
        .collect();
    assert!(days[0].starts_with("01-27 02-27 "), "{days:?}");
    assert!(days[1].starts_with("01-01 02-01 "), "{days:?}");
    assert_eq!(days[2], "05-01");
    assert!(
        days_of_2026(&named("a", "0 0 * * H")).starts_with("01-07 01-14 "),
        "Wednesdays"
    );
    assert!(
        !named("a", "H H * * *").is_interval(),
        "a plain H is one fixed time"
    );
    assert!(named("a", "H/15 3 * * *").is_interval());
    assert!(named("a", "0 H(0-12)/6 * * *").is_interval());
}

#[test]
fn which_schedules_are_intervals() {
    for (text, interval) in [
        ("0 3 * * *", false),
        ("5/10 3 * * *", false),
        ("0-59 3 * * *", false),
        ("0 0-23 * * *", false),
        ("*/10 3 * * *", true),
        ("0 * * * *", true),
        ("1,* 3 * * *", true),
        ("@daily", false),
        ("@hourly", true),
        ("@every 1d", true),
        ("@reboot", false),
    ] {
        let schedule = schedule_in("UTC", text);
        assert_eq!(schedule.is_interval(), interval, "{text}");
        assert_eq!(schedule.is_fixed_time(), !interval && text != "@reboot", "{text}");
    }
    assert!(schedule_with_seconds("UTC", "* 0 3 * * *").is_interval());
    assert!(!schedule_with_seconds("UTC", "0,30 0 3 * * *").is_interval());
}

#[test]
fn local_times_show_their_offset() {
    for (zone, instant, expected) in [
        (
            "America/New_York",
            "2026-11-01T05:30:00Z",
            "2026-11-01T01:30:00-04:00",
        ),
        (
            "America/New_York",
            "2026-11-01T06:30:00Z",
            "2026-11-01T01:30:00-05:00",
        ),
        (
            "America/St_Johns",
            "2026-01-01T00:00:07.9Z",
            "2025-12-31T20:30:07-03:30",
        ),
        (
            "Asia/Kathmandu",
            "2026-02-28T23:59:59Z",
            "2026-03-01T05:44:59+05:45",
        ),
        ("UTC", "1969-12-31T23:59:59.5Z", "1969-12-31T23:59:59+00:00"),
    ] {
        let schedule = schedule_in(zone, "@every 1h");
        assert_eq!(schedule.local_time(at(instant)).as_deref(), Some(expected));
        assert_eq!(schedule.local_time(at(instant)), Some(shown(zone, at(instant))));
    }
    assert_eq!(schedule_in("UTC", "@daily").local_time(i64::MAX), None);
}

#[test]
fn reboot_has_no_instants() {
    let schedule = schedule_in("America/New_York", "@reboot");
    assert!(schedule.is_reboot());
    assert_eq!(schedule.next_after(0), None);
    assert_eq!(schedule.count(0, i64::MAX), 0);
    assert_eq!(schedule.day_rule(), None);
}

#[test]
fn rare_days_are_found_and_impossible_ones_end() {
    for (text, from, expected) in [
        ("0 0 29 2 *", "2026-01-01T00:00:00Z", Some("2028-02-29T00:00:00Z")),
        ("0 0 29 2 *", "2096-03-01T00:00:00Z", Some("2104-02-29T00:00:00Z")),
        (
            "0 0 * 2 5#5",
            "2026-01-01T00:00:00Z",
            Some("2036-02-29T00:00:00Z"),
        ),
        ("0 0 30 2 *", "2026-01-01T00:00:00Z", None),
        ("0 0 31 4,6,9,11 *", "2026-01-01T00:00:00Z", None),
        ("0 0 L-30 2 *", "2026-01-01T00:00:00Z", None),
        ("0 0 1 * +1#2", "2026-01-01T00:00:00Z", None),
    ] {
        let next = schedule_in("America/New_York", text).next_after(at(from));
        let utc = schedule_in("UTC", text).next_after(at(from));
        assert_eq!(utc, expected.map(at), "{text}");
        assert_eq!(next.is_some(), expected.is_some(), "{text}");
    }
}

#[test]
fn no_instant_is_too_far() {
    for text in ["* * * * *", "0 0 29 2 *", "@every 1s", "@every 366d", "@reboot"] {
        let schedule = schedule_in("Europe/London", text);
        for instant in [i64::MIN, -1, 0, 253_402_300_799_999, i64::MAX - 1, i64::MAX] {
            let next = schedule.next_after(instant);
            assert!(
                next.is_none_or(|next| next > instant || instant > 253_000_000_000_000),
                "{text}"
            );
            let _ = schedule.missed(i64::MIN, instant, 3);
            let _ = schedule.missed(instant, i64::MAX, 3);
        }
    }
}

#[test]
fn words_that_look_like_a_field() {
    for (word, expected) in [
        ("*", true),
        ("?", true),
        ("*/5", true),
        ("mon-fri", true),
        ("+5", true),
        ("LW", true),
        ("root", false),
        ("/bin/true", false),
        ("x", false),
        ("env", false),
        ("[", false),
    ] {
        assert_eq!(looks_like_field(word), expected, "{word}");
    }
}
