//! One case for each answer; the sentences are product text and stand here whole.

use super::why::{Answer, Life, Question, Seen, SeenFire, SeenRun, why};
use crate::domain::schedule::{ParseOptions, Schedule, ZoneClock};
use crate::domain::slots::admission::Pause;
use crate::words::names::NodeName;
use crate::words::time::{Millis, parse_instant};

fn at(text: &str) -> Millis {
    parse_instant(text).unwrap_or_else(|| panic!("{text}"))
}

/// What may differ from the plain case: a daily job at 08:00 UTC, loaded on the 1st, asked about on the 29th at 09:35:30 by
/// a daemon that started at 09:35.
#[derive(Clone)]
struct Case {
    expression: Option<&'static str>,
    zone: &'static str,
    asked: &'static str,
    now: &'static str,
    enabled: bool,
    on_missed: &'static str,
    known_since: &'static str,
    replaced_at: Option<&'static str>,
    seen: Vec<Seen>,
    oldest: Option<&'static str>,
    pause: Option<Pause>,
    life: (&'static str, &'static str),
}

fn plain() -> Case {
    Case {
        expression: Some("0 8 * * *"),
        zone: "UTC",
        asked: "08:00",
        now: "2026-11-29T09:35:30Z",
        enabled: true,
        on_missed: "skip",
        known_since: "2026-11-01T00:00:00Z",
        replaced_at: None,
        seen: Vec::new(),
        oldest: None,
        pause: None,
        life: ("2026-11-29T09:35:00Z", "2026-11-29T09:35:20Z"),
    }
}

fn answer(case: &Case) -> Answer {
    let options = ParseOptions {
        timezone: Some(case.zone),
        ..ParseOptions::default()
    };
    let schedule = case
        .expression
        .map(|text| Schedule::parse(text, options).unwrap());
    let now = at(case.now);
    let clock = schedule.as_ref().map_or_else(ZoneClock::utc, Schedule::clock);
    let moment = clock
        .read(case.asked, now.0)
        .unwrap_or_else(|| panic!("{}", case.asked));
    let life = Life {
        node: NodeName::new("n-a").unwrap(),
        started_at: at(case.life.0),
        last_seen: at(case.life.1),
    };
    why(&Question {
        job: "report",
        moment: &moment,
        now,
        schedule: schedule.as_ref(),
        replaced_at: case.replaced_at.map(at),
        enabled: case.enabled,
        on_missed: case.on_missed,
        known_since: Some(at(case.known_since)),
        seen: &case.seen,
        oldest: case.oldest.map(at),
        pause: case.pause.as_ref(),
        lives: &[life],
    })
}

#[track_caller]
fn check(case: &Case, code: &str, sentence: &str) -> Answer {
    let answer = answer(case);
    assert_eq!((answer.code.as_str(), answer.sentence.as_str()), (code, sentence));
    answer
}

fn ran(state: Option<&'static str>, reason: Option<&str>, caught_up: bool) -> Vec<Seen> {
    vec![Seen {
        node: String::new(),
        fire: SeenFire::Run(SeenRun {
            id: "run_1".to_owned(),
            state,
            reason: reason.map(str::to_owned),
            caught_up,
        }),
    }]
}

fn skipped(code: &str, recorded: &str) -> Vec<Seen> {
    vec![Seen {
        node: String::new(),
        fire: SeenFire::Skipped {
            code: code.to_owned(),
            at: at(recorded),
        },
    }]
}

const FIRE: &str = "The fire of 2026-11-29 08:00 UTC";

#[test]
fn a_moment_that_became_a_run_names_it_and_its_end() {
    let with = |seen: Vec<Seen>| Case { seen, ..plain() };
    let table = [
        (
            ran(Some("succeeded"), None, false),
            "ran",
            "became run run_1, which succeeded.",
        ),
        (
            ran(Some("failed"), Some("exit code 3"), false),
            "ran",
            "became run run_1, which ended as failed: exit code 3.",
        ),
        (
            ran(Some("running"), None, false),
            "ran",
            "became run run_1, which still runs.",
        ),
        (
            ran(Some("pending"), None, false),
            "ran",
            "became run run_1, which still waits; ductor run why run_1 says for what.",
        ),
        (
            ran(None, None, false),
            "ran",
            "became run run_1, which is no longer kept.",
        ),
        (
            ran(Some("succeeded"), None, true),
            "caught_up",
            "was missed and made up for later: run run_1, which succeeded.",
        ),
        (
            ran(Some("skipped"), Some("queue timeout"), false),
            "queue_timeout",
            "became run run_1, which never started: it waited for slots longer than its queueTimeout.",
        ),
        (
            ran(Some("skipped"), Some("cancelled by operator"), false),
            "cancelled",
            "became run run_1, which never started: it was cancelled while it waited.",
        ),
    ];
    for (seen, code, sentence) in table {
        check(&with(seen), code, &format!("{FIRE} {sentence}"));
    }
}

#[test]
fn every_skip_reason_has_its_sentence() {
    let table = [
        ("pool_full", "the queue of its pool was full"),
        ("pool_draining", "its pool was draining before a capacity change"),
        ("pool_unavailable", "the state of its pool was unavailable"),
        ("pool_locks", "pool state requires reliable exclusive locks"),
        ("pool_unknown", "its pool is not configured"),
        ("job_paused", "the job was paused"),
        (
            "still_running",
            "another instance was still running, and its concurrencyPolicy is Forbid",
        ),
        (
            "last_not_successful",
            "the run before it had not succeeded, and onlyIfLastSucceeded is set",
        ),
        (
            "queue_timeout",
            "it waited for slots longer than its queueTimeout",
        ),
        ("cancelled", "it was cancelled while it waited"),
    ];
    for (code, text) in table {
        let case = Case {
            seen: skipped(code, "2026-11-29T08:00:00Z"),
            ..plain()
        };
        check(&case, code, &format!("{FIRE} was skipped: {text}."));
    }
}

/// Stopped at 07:50, started at 09:35, asked for 08:00.
#[test]
fn m3_a_missed_fire_says_why_and_what_on_missed_does() {
    let seen = skipped("missed", "2026-11-29T09:35:01Z");
    let noticed = "no daemon is known to have run then (noticed 2026-11-29 09:35:01 UTC)";
    for (on_missed, rest) in [
        ("skip", "Its onMissed is skip, so nothing makes up for it."),
        (
            "run-once",
            "Its onMissed is run-once, so only the newest of those missed together runs.",
        ),
        (
            "run-all",
            "Its onMissed is run-all, but it was older than the newest 100 or than startingDeadlineSeconds allows.",
        ),
    ] {
        let case = Case {
            seen: seen.clone(),
            on_missed,
            ..plain()
        };
        let answer = check(&case, "missed", &format!("{FIRE} was missed: {noticed}. {rest}"));
        assert_eq!(answer.after, Some(at("2026-11-30T08:00:00Z")));
    }
    let held_up = Case {
        seen,
        life: ("2026-11-29T07:00:00Z", "2026-11-29T09:35:20Z"),
        ..plain()
    };
    assert!(
        answer(&held_up)
            .sentence
            .contains("noticed too late: the machine slept")
    );
    let made_up = Case {
        seen: ran(Some("running"), None, true),
        on_missed: "run-once",
        ..plain()
    };
    check(
        &made_up,
        "caught_up",
        &format!("{FIRE} was missed and made up for later: run run_1, which still runs."),
    );
}

#[test]
fn a_time_that_is_none_of_the_schedule_names_the_nearest() {
    let case = Case {
        asked: "08:15",
        ..plain()
    };
    let answer = check(
        &case,
        "not_due",
        "2026-11-29 08:15 UTC is no time of this schedule, which fires at 08:00; the nearest are 2026-11-29 08:00 UTC and \
         2026-11-30 08:00 UTC.",
    );
    assert_eq!(
        (answer.before, answer.after),
        (Some(at("2026-11-29T08:00:00Z")), Some(at("2026-11-30T08:00:00Z")))
    );
}

#[test]
fn what_was_never_due_is_told_apart() {
    check(
        &Case {
            asked: "2026-10-30 08:00",
            ..plain()
        },
        "before_known",
        "Nothing is known of 2026-10-30 08:00 UTC: job 'report' was loaded for the first time at 2026-11-01 00:00 UTC.",
    );
    check(
        &Case {
            expression: None,
            ..plain()
        },
        "manual_only",
        "Job 'report' has no schedule: it runs only when somebody starts it.",
    );
    check(
        &Case {
            enabled: false,
            ..plain()
        },
        "disabled",
        "Job 'report' is disabled (enabled: false): it neither fires nor starts.",
    );
    check(
        &Case {
            expression: Some("@reboot"),
            ..plain()
        },
        "reboot_only",
        "Job 'report' fires once after each boot (@reboot), and at no time of day.",
    );
}

#[test]
fn the_future_and_this_very_moment() {
    let tomorrow = Case {
        asked: "2026-11-30 08:00",
        ..plain()
    };
    let fire = "The fire of 2026-11-30 08:00 UTC is still to come";
    check(&tomorrow, "future", &format!("{fire}."));
    let pause = Pause {
        until: Some(at("2026-12-01T00:00:00Z")),
        by: "local".to_owned(),
        note: "disk".to_owned(),
    };
    let paused = Case {
        pause: Some(pause.clone()),
        ..tomorrow
    };
    check(
        &paused,
        "future",
        &format!("{fire} and will be skipped: the job is paused until 2026-12-01 00:00 UTC by local (disk)."),
    );
    let after_it = Case {
        asked: "2026-12-01 08:00",
        ..paused
    };
    assert!(answer(&after_it).sentence.ends_with("is still to come."));
    check(
        &Case {
            now: "2026-11-29T08:00:03Z",
            ..plain()
        },
        "due_now",
        &format!("{FIRE} is due just now and not recorded yet; ask again in a moment."),
    );
}

#[test]
fn a_moment_without_a_row_is_explained_by_the_lives_of_daemons() {
    check(
        &plain(),
        "no_daemon",
        "Nothing is recorded of the fire of 2026-11-29 08:00 UTC: no daemon is known to have run then (one has run since \
         2026-11-29 09:35 UTC).",
    );
    let pause = Pause {
        until: None,
        by: "local".to_owned(),
        note: String::new(),
    };
    let paused = Case {
        pause: Some(pause),
        ..plain()
    };
    assert!(answer(&paused).sentence.ends_with(
        "Now the job is paused without an end by local, and what was due in a pause is not made up for."
    ));
    let lived = Case {
        life: ("2026-11-01T00:00:00Z", "2026-11-29T09:35:20Z"),
        ..plain()
    };
    assert_eq!(answer(&lived).code, "not_recorded");
    let old = Case {
        asked: "2026-11-02 08:00",
        oldest: Some("2026-11-10T08:00:00Z"),
        ..lived
    };
    check(
        &old,
        "no_longer_kept",
        "What became of 2026-11-02 08:00 UTC is no longer kept; the oldest record of this job is of 2026-11-10 08:00 UTC.",
    );
}

#[test]
fn the_clocks_are_told_where_they_turn() {
    let new_york = |expression: &'static str, asked: &'static str| Case {
        expression: Some(expression),
        zone: "America/New_York",
        asked,
        now: "2026-12-01T00:00:00Z",
        known_since: "2026-01-01T00:00:00Z",
        ..plain()
    };
    let fixed = Case {
        seen: ran(Some("succeeded"), None, false),
        ..new_york("30 2 * * *", "2026-03-08 02:30")
    };
    let answer_of_gap = check(
        &fixed,
        "ran",
        "The fire of 2026-03-08 03:00 -04:00 (America/New_York) became run run_1, which succeeded.",
    );
    assert_eq!(
        answer_of_gap.remarks,
        [
            "On 2026-03-08 the clocks in America/New_York go from 02:00 to 03:00. A fixed time in between fires once, at \
          03:00."
        ]
    );
    check(
        &new_york("*/30 * * * *", "2026-03-08 02:30"),
        "dst_gap",
        "There was no 2026-03-08 02:30 in America/New_York, and a schedule of intervals has no fire for times that the \
         clocks leave out; the nearest are 2026-03-08 01:30 -05:00 and 2026-03-08 03:30 -04:00.",
    );
    check(
        &new_york("0 8 * * *", "2026-03-08 02:30"),
        "not_due",
        "There was no 2026-03-08 02:30 in America/New_York, and it is no time of this schedule either; the nearest are \
         2026-03-07 08:00 -05:00 and 2026-03-08 08:00 -04:00.",
    );
    check(
        &new_york("30 1 * * *", "2026-11-01T01:30:00-05:00"),
        "dst_fold",
        "2026-11-01 01:30 -05:00 (America/New_York) is the second time that the clocks showed this; a fixed time fires the \
         first time, 2026-11-01 01:30 -04:00.",
    );
    let remark = |case: Case| answer(&case).remarks.join("");
    assert_eq!(
        remark(new_york("30 1 * * *", "2026-11-01 01:30")),
        "The clocks in America/New_York show this time twice; this is the first, and a fixed time fires the first time only."
    );
    assert_eq!(
        remark(new_york("*/30 * * * *", "2026-11-01 01:30")),
        "The clocks in America/New_York show this time twice; this is the first, and for the second ask for \
         2026-11-01T01:30:00-05:00."
    );
}

#[test]
fn a_schedule_that_was_replaced_is_named() {
    let case = Case {
        seen: ran(Some("succeeded"), None, false),
        replaced_at: Some("2026-11-29T09:00:00Z"),
        ..plain()
    };
    assert_eq!(
        answer(&case).remarks,
        ["The schedule in force then was `0 8 * * *`; it was replaced at 2026-11-29 09:00 UTC."]
    );
}

#[test]
fn a_fire_of_every_node_has_a_sentence_for_each() {
    let one = |node: &str| Seen {
        node: node.to_owned(),
        ..skipped("still_running", "2026-11-29T08:00:00Z").remove(0)
    };
    let case = Case {
        seen: vec![one("n-a"), one("n-b")],
        ..plain()
    };
    let answer = answer(&case);
    assert!(
        answer.sentence.contains("08:00 UTC on node n-a was skipped")
            && answer.sentence.contains("on node n-b was skipped"),
        "{}",
        answer.sentence
    );
}
