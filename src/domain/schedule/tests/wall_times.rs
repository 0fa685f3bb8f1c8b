//! Times read on the wall clock of a zone, and fires looked for backwards.

use super::{at, schedule_in, schedule_with_seconds, shown};
use crate::domain::schedule::{Turn, ZoneClock};

const NEW_YORK: &str = "America/New_York";

fn read(zone: &str, text: &str, now: &str) -> Option<String> {
    let clock = ZoneClock::named(zone).unwrap();
    let moment = clock.read(text, at(now))?;
    let turn = match &moment.turn {
        Turn::Plain => String::new(),
        Turn::Gap { from, to, .. } => format!(" gap {from} {to}"),
        Turn::Fold { second_ms } => format!(" fold {}", shown(zone, *second_ms)),
    };
    Some(format!("{}{turn}", shown(zone, moment.at_ms)))
}

#[test]
fn times_are_read_in_the_zone_of_the_schedule() {
    let now = "2026-03-10T12:00:00Z";
    for (text, expected) in [
        ("2026-03-08T07:00:00.9Z", "2026-03-08T03:00:00-04:00"),
        ("2026-03-08T02:30:00-05:00", "2026-03-08T03:30:00-04:00"),
        ("2026-03-08 03:00", "2026-03-08T03:00:00-04:00"),
        (" 2026-03-08T03:00:05 ", "2026-03-08T03:00:05-04:00"),
        ("2026-03-08 02:30", "2026-03-08T03:00:00-04:00 gap 02:00 03:00"),
        (
            "2025-11-02 01:30",
            "2025-11-02T01:30:00-04:00 fold 2025-11-02T01:30:00-05:00",
        ),
        // Now it is 08:00 there.
        ("08:00", "2026-03-10T08:00:00-04:00"),
        ("08:01", "2026-03-09T08:01:00-04:00"),
        ("07:59:30", "2026-03-10T07:59:30-04:00"),
    ] {
        assert_eq!(read(NEW_YORK, text, now).as_deref(), Some(expected), "{text}");
    }
    for text in ["", "soon", "8", "25:00", "2026-02-30 08:00", "yesterday"] {
        assert_eq!(read(NEW_YORK, text, now), None, "{text}");
    }
    assert_eq!(
        read("Australia/Lord_Howe", "2026-10-04 02:10", now).as_deref(),
        Some("2026-10-04T02:30:00+11:00 gap 02:00 02:30")
    );
}

#[test]
fn a_fire_is_found_backwards_as_forwards() {
    let check = |zone: &str, text: &str, from: &str, to: &str| {
        let schedule = schedule_in(zone, text);
        let found = schedule.instants(at(from), at(to), 10_000);
        assert!(found.len() > 2, "{text}");
        for pair in found.windows(2) {
            assert_eq!(schedule.last_before(pair[1]), Some(pair[0]), "{text}");
            assert_eq!(schedule.last_before(pair[0] + 1), Some(pair[0]), "{text}");
            assert!(
                schedule.is_due(pair[0]) && !schedule.is_due(pair[0] + 1_000),
                "{text}"
            );
        }
    };
    let spring = ("2026-03-07T00:00:00Z", "2026-03-10T00:00:00Z");
    let autumn = ("2026-10-31T00:00:00Z", "2026-11-03T00:00:00Z");
    for text in [
        "30 2 * * *",
        "*/30 * * * *",
        "30 1 * * *",
        "@every 7h",
        "0,30 2,3 * * *",
    ] {
        check(NEW_YORK, text, spring.0, spring.1);
        check(NEW_YORK, text, autumn.0, autumn.1);
    }
    check(
        "UTC",
        "0 0 29 2 *",
        "2000-01-01T00:00:00Z",
        "2040-01-01T00:00:00Z",
    );
    let seconds = schedule_with_seconds("UTC", "* * * * * *");
    assert_eq!(seconds.last_before(5_000), Some(4_000));
    assert_eq!(schedule_in("UTC", "@reboot").last_before(5_000), None);
    assert_eq!(schedule_in("UTC", "0 0 30 2 *").last_before(5_000), None);
}

#[test]
fn the_second_pass_of_a_fold_knows_the_first() {
    let schedule = schedule_in(NEW_YORK, "30 1 * * *");
    let (first, second) = (at("2026-11-01T01:30:00-04:00"), at("2026-11-01T01:30:00-05:00"));
    assert_eq!(schedule.first_pass_of(second), Some(first));
    assert_eq!(schedule.first_pass_of(first), None);
    assert_eq!(schedule.first_pass_of(second + 60_000), None);
    assert_eq!(schedule.first_pass_of(second + 86_400_000), None);
}

#[test]
fn instants_are_shown_with_their_offset() {
    let clock = ZoneClock::named(NEW_YORK).unwrap();
    assert_eq!(clock.shown(at("2026-03-08T07:00:00Z")), "2026-03-08 03:00 -04:00");
    assert_eq!(
        clock.shown(at("2026-03-08T07:00:05Z")),
        "2026-03-08 03:00:05 -04:00"
    );
    assert_eq!(ZoneClock::utc().shown(0), "1970-01-01 00:00 UTC");
    assert_eq!(ZoneClock::named("Europe/Nowhere"), None);
}
