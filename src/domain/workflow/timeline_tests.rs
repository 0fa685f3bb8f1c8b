//! Lives of runs as people read them, and what is true of the segments of any life.

use std::collections::BTreeMap;

use proptest::prelude::*;

use super::attempt::{Attempt, Outcome};
use super::definition::Retry;
use super::run::Trigger;
use super::timeline::{History, Past, SegmentKind, Standing, length, timeline};
use crate::words::names::{NodeName, SlotPoolName};
use crate::words::time::Millis;

fn attempt(outcome: Outcome, started: i64, ended: i64, reason: Option<&str>) -> Attempt {
    Attempt {
        outcome,
        exit_code: None,
        reason: reason.map(str::to_owned),
        node: NodeName::new("n-a").unwrap(),
        pid: None,
        started_at: Millis(started),
        ended_at: Millis(ended),
        log_bytes: 0,
    }
}

fn failed(number: u32, started: i64, ended: i64) -> Past {
    Past {
        number,
        attempt: attempt(Outcome::Failed, started, ended, Some("exit code 1")),
    }
}

fn fresh(standing: Standing) -> History {
    History {
        created_at: Millis(1_000),
        trigger: Trigger::Schedule { instant: Millis(990) },
        slot_pool: None,
        attempt: 1,
        past: Vec::new(),
        omitted: 0,
        queued_at: BTreeMap::new(),
        retry: None,
        standing,
    }
}

fn ended(at: i64, text: &str) -> Standing {
    Standing::Ended {
        at: Millis(at),
        text: text.to_owned(),
    }
}

/// One line for each segment.
fn told(history: &History, now: i64) -> Vec<String> {
    let line = timeline(history, Millis(now));
    let each = line.segments.iter().map(|segment| {
        let to = segment.to.map_or("…".to_owned(), |to| to.0.to_string());
        format!(
            "{} {} {}-{to} {}",
            segment.kind.word(),
            segment.attempt,
            segment.from.0,
            segment.text
        )
    });
    each.collect()
}

fn marked(history: &History) -> Vec<String> {
    let line = timeline(history, Millis(0));
    let each = line
        .marks
        .iter()
        .map(|mark| format!("{} {} {}", mark.at.0, mark.kind.word(), mark.text));
    each.collect()
}

#[test]
fn a_success() {
    let mut history = fresh(ended(5_004, "succeeded"));
    history.past = vec![Past {
        number: 1,
        attempt: attempt(Outcome::Succeeded, 1_020, 5_000, None),
    }];
    assert_eq!(
        told(&history, 9_000),
        [
            "queued 1 1000-1020 waited for a process",
            "running 1 1020-5004 attempt 1 succeeded"
        ]
    );
    assert_eq!(
        marked(&history),
        [
            "990 scheduled was due",
            "1000 created fired",
            "5004 ended succeeded"
        ]
    );
}

#[test]
fn a_retry_that_waits_and_one_that_runs() {
    let retry = Retry {
        retries_max: Some(3),
        initial_delay_ms: 30_000,
        ..Retry::default()
    };
    let mut history = fresh(Standing::BackOff {
        due: Millis(31_500),
        refused: None,
    });
    history.attempt = 2;
    history.past = vec![failed(1, 1_000, 1_500)];
    history.retry = Some(retry);
    assert_eq!(
        told(&history, 9_000),
        [
            "running 1 1000-1500 attempt 1 failed: exit code 1",
            "backoff 2 1500-… waits 30 s before attempt 2"
        ]
    );
    assert_eq!(marked(&history)[2], "31500 retry_due attempt 2 is due");
    history.standing = Standing::Running {
        since: Millis(40_000),
        node: NodeName::new("n-a").unwrap(),
        limit_ms: Some(90_000),
    };
    let slots = |history: &mut History, at| {
        history.slot_pool = Some(SlotPoolName::new("p").unwrap());
        history.queued_at = BTreeMap::from([(2, Millis(at))]);
    };
    assert_eq!(
        told(&history, 50_000)[1..],
        [
            "backoff 2 1500-31500 waited 30 s before attempt 2",
            "queued 2 31500-40000 waited for a process",
            "running 2 40000-… attempt 2 runs"
        ]
    );
    assert_eq!(marked(&history)[2], "130000 deadline is ended after 90 s");
    slots(&mut history, 36_000);
    assert_eq!(
        told(&history, 50_000)[1..3],
        [
            "backoff 2 1500-36000 waited 30 s before attempt 2, and longer for its admission",
            "queued 2 36000-40000 waited in slot pool p"
        ]
    );
    history.queued_at.clear();
    history.retry = None;
    assert_eq!(
        told(&history, 50_000)[1],
        "backoff 2 1500-40000 waited before attempt 2; how long for slots is not recorded"
    );
}

#[test]
fn what_never_started_and_what_was_lost() {
    let history = fresh(ended(4_000, "skipped: queue timeout"));
    assert_eq!(
        told(&history, 9_000),
        ["queued 1 1000-4000 skipped: queue timeout"]
    );
    let history = fresh(ended(1_000, "cancelled"));
    assert_eq!(told(&history, 9_000), ["queued 1 1000-1000 cancelled"]);
    let mut history = fresh(Standing::Queued {
        since: Millis(3_000),
        text: "Needs 2 slot(s); 1 available".to_owned(),
        until: Some(Millis(90_000)),
    });
    history.past = vec![Past {
        number: 1,
        attempt: attempt(Outcome::Lost, 1_500, 2_500, Some("daemon stopped")),
    }];
    assert_eq!(
        told(&history, 9_000),
        [
            "queued 1 1000-1500 waited for a process",
            "running 1 1500-2500 attempt 1 lost: daemon stopped",
            "queued 1 2500-3000 waited for a process again: daemon stopped",
            "queued 1 3000-… Needs 2 slot(s); 1 available"
        ]
    );
    assert_eq!(marked(&history)[2], "90000 deadline does not wait any longer");
    history.past = vec![failed(1, 1_000, 1_500)];
    history.attempt = 2;
    history.standing = ended(2_000, "failed: retry superseded");
    assert_eq!(
        told(&history, 9_000)[1],
        "backoff 2 1500-2000 waited for attempt 2: failed: retry superseded"
    );
}

#[test]
fn lengths_for_people() {
    let cases = [
        (0, "0 ms"),
        (1_500, "1.5 s"),
        (30_000, "30 s"),
        (30_004, "30 s"),
        (119_000, "119 s"),
        (120_000, "2 min"),
        (150_000, "2 min 30 s"),
        (7_200_000, "2 h"),
        (7_260_000, "2 h 1 min"),
    ];
    for (ms, text) in cases {
        assert_eq!(length(ms), text);
    }
}

fn any_standing() -> impl Strategy<Value = Standing> {
    let at = -2_000_i64..40_000;
    prop_oneof![
        at.clone().prop_map(|at| ended(at, "failed: exit code 1")),
        (at.clone(), proptest::option::of(at.clone())).prop_map(|(since, until)| Standing::Queued {
            since: Millis(since),
            text: "Waiting for admission".to_owned(),
            until: until.map(Millis),
        }),
        (at.clone(), any::<bool>()).prop_map(|(due, refused)| Standing::BackOff {
            due: Millis(due),
            refused: refused.then(|| "pool queue is full".to_owned()),
        }),
        (at, proptest::option::of(0_u64..9_000)).prop_map(|(since, limit_ms)| Standing::Running {
            since: Millis(since),
            node: NodeName::new("n-a").unwrap(),
            limit_ms,
        }),
    ]
}

fn any_past() -> impl Strategy<Value = Past> {
    let outcome = prop_oneof![
        Just(Outcome::Failed),
        Just(Outcome::Lost),
        Just(Outcome::TimedOut),
        Just(Outcome::Cancelled),
        Just(Outcome::Succeeded)
    ];
    (1_u32..6, outcome, -2_000_i64..40_000, -2_000_i64..40_000).prop_map(|(number, outcome, from, to)| Past {
        number,
        attempt: attempt(outcome, from, to, None),
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of any life, also one whose clock went back and forth.
    #[test]
    fn segments_are_in_order_and_leave_no_gap(
        past in proptest::collection::vec(any_past(), 0..6),
        omitted in 0_u32..3,
        next in 1_u32..7,
        queued_at in proptest::collection::btree_map(1_u32..7, (-2_000_i64..40_000).prop_map(Millis), 0..4),
        has_retry in any::<bool>(),
        standing in any_standing(),
        now in -2_000_i64..40_000,
    ) {
        let history = History {
            attempt: next,
            omitted: if past.is_empty() { 0 } else { omitted },
            past,
            queued_at,
            retry: has_retry.then(Retry::default),
            ..fresh(standing)
        };
        let line = timeline(&history, Millis(now));
        prop_assert!(line.from <= line.to);
        prop_assert_eq!(line.segments.first().unwrap().from, line.from);
        let has_ended = matches!(history.standing, Standing::Ended { .. });
        let last = line.segments.last().unwrap();
        prop_assert_eq!(last.to, has_ended.then_some(line.to));
        prop_assert!(last.from <= line.to);
        for pair in line.segments.windows(2) {
            prop_assert_eq!(pair[0].to, Some(pair[1].from));
            prop_assert!(pair[0].from <= pair[1].from);
        }
        let ran = line.segments.iter().filter(|segment| segment.outcome.is_some()).count();
        prop_assert_eq!(ran, history.past.len(), "each attempt is told");
        for segment in &line.segments {
            let is_ran = segment.kind == SegmentKind::Running;
            prop_assert_eq!(is_ran, segment.node.is_some());
            prop_assert!(is_ran || segment.to != Some(segment.from) || line.segments.len() == 1, "{:?}", segment);
            prop_assert!(!segment.text.is_empty());
        }
        prop_assert!(line.marks.windows(2).all(|pair| pair[0].at <= pair[1].at));
    }
}
