//! Fires, capacity, pauses and published definitions: what becomes of work when the world around it changes.

use super::jobs::{JobPlan, job, name, slot_pool, slot_pool_name, slot_pool_of};
use super::stage::{BEGIN, Rig, TENANT, by_hand, jobs_of, plain, queued};
use crate::domain::report::Tails;
use crate::domain::slots::admission::{Pause, SlotRefusal};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::{ConcurrencyPolicy, ScheduleText};
use crate::engine::changes::pause;
use crate::engine::changes::start::{Started, skip};
use crate::engine::dispatch::Dispatcher;
use crate::store::Rows;
use crate::store::rows::Fire;
use crate::store::tables::FIRES;
use crate::words::time::Clock;

fn set_slots(rig: &Rig, slots: u32) {
    rig.edit_book(|book| book.slot_pools.get_mut(&slot_pool_name("p")).unwrap().slots = slots);
    rig.publish_book();
}

#[test]
fn cut_and_raise_drain() {
    for (before, after) in [(4, 2), (3, 4)] {
        let rig = Rig::new(&[slot_pool("p", before)], &[job("a").on("p")]);
        for _ in 0..=before {
            rig.start("a");
        }
        let mut claims = rig.pass().claimed;
        assert_eq!(claims.len(), before as usize);
        set_slots(&rig, after);
        assert_eq!(rig.start("a"), Started::Refused(SlotRefusal::Draining));
        assert!(rig.look().work);
        rig.pass();
        assert_eq!(rig.told("pool.drain.started"), 1);
        rig.complete(&claims.remove(0), Outcome::Succeeded);
        // The entry that waited keeps its admission, at the old number.
        claims.extend(rig.pass().claimed);
        assert_eq!(rig.used("p"), before);
        while claims.len() > 1 {
            rig.complete(&claims.remove(0), Outcome::Succeeded);
            assert_eq!(rig.start("a"), Started::Refused(SlotRefusal::Draining));
        }
        rig.complete(&claims.remove(0), Outcome::Succeeded);
        queued(&rig.start("a"));
        for _ in 0..after {
            rig.start("a");
        }
        assert_eq!(
            rig.pass().claimed.len(),
            after as usize,
            "the first start after the last end adopts it"
        );
        assert_eq!(rig.told("pool.drain.started"), 1);
        assert_eq!(rig.told("pool.drain.ended"), 1, "told also when a start ends it");
    }
}

#[test]
fn a_pass_adopts_the_number_when_nothing_is_left() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.start("a");
    let claimed = rig.claim();
    set_slots(&rig, 2);
    rig.pass();
    rig.complete(&claimed, Outcome::Succeeded);
    assert!(rig.look().work);
    rig.pass();
    assert!(
        rig.snapshot().contains("slot pool p: 2 slots, draining to None"),
        "{}",
        rig.snapshot()
    );
    assert_eq!(rig.told("pool.drain.ended"), 1);
    assert!(!rig.look().work);
}

#[test]
fn raise_immediate() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[job("a").on("p")]);
    rig.edit_book(|book| book.raise_immediately = true);
    for _ in 0..2 {
        rig.start("a");
    }
    let claims = rig.pass().claimed;
    set_slots(&rig, 4);
    for _ in 0..3 {
        queued(&rig.start("a"));
    }
    assert_eq!(rig.pass().claimed.len(), 2);
    assert_eq!(rig.used("p"), 4);
    set_slots(&rig, 1);
    assert_eq!(
        rig.start("a"),
        Started::Refused(SlotRefusal::Draining),
        "a cut still drains"
    );
    rig.complete(&claims[0], Outcome::Succeeded);
    assert_eq!(rig.pass().claimed.len(), 1, "at the old number");
}

#[test]
fn a_paused_slot_pool_takes_entries_and_lets_deadlines_run() {
    let rig = Rig::new(
        &[slot_pool("p", 1)],
        &[job("a").on("p"), job("hasty").on("p").queue_timeout_ms(5_000)],
    );
    let pause = Pause {
        until: None,
        by: "me".to_owned(),
        note: "repair".to_owned(),
    };
    let set = |pause: Option<Pause>| {
        let book = rig.engine.book();
        rig.change(move |tx| pause::slot_pool(tx, &book, &slot_pool_name("p"), pause.as_ref()));
    };
    set(Some(pause));
    let hasty = rig.start("hasty");
    rig.start("a");
    assert_eq!(rig.look().claims, 0);
    assert!(rig.daemon("n-b").pass_with(1, plain()).claimed.is_empty());
    assert!(rig.pass_with(1, plain()).claimed.is_empty());
    assert_eq!(rig.blocked_by("p"), Some("pool_paused"));
    rig.clock().advance(5_000);
    rig.pass();
    assert_eq!(rig.entry_words(&hasty), "expired: queue timeout");
    set(None);
    assert_eq!(jobs_of(&rig.pass().claimed), ["a"]);
}

fn fire_rows(rig: &Rig, job: &str) -> Vec<(u64, String)> {
    let rows = rig.read(|tx| tx.scan(&FIRES, &(TENANT, name(job)), None, 100));
    let word = |fire: Fire| match fire {
        Fire::Run(_) => "run".to_owned(),
        Fire::CaughtUp(_) => "caught up".to_owned(),
        Fire::Skipped { reason, .. } | Fire::Withdrawn { reason, .. } => reason,
    };
    rows.into_iter()
        .map(|((_, _, instant, _), fire)| (instant.since(BEGIN), word(fire)))
        .collect()
}

#[test]
fn manual_races_fire() {
    let plans = [
        job("pooled").on("p").policy(ConcurrencyPolicy::Forbid),
        job("bare").policy(ConcurrencyPolicy::Forbid),
    ];
    let rig = Rig::new(&[slot_pool("p", 5)], &plans);
    let instant = rig.wall();
    queued(&rig.start("pooled"));
    queued(&rig.fire("pooled", instant));
    let first = rig.claim();
    assert_eq!(rig.blocked_by("p"), Some("forbid"));
    assert!(rig.pass_with(1, plain()).claimed.is_empty());
    rig.complete(&first, Outcome::Succeeded);
    assert_eq!(
        rig.claim().run.trigger.word(),
        "schedule",
        "it runs right after, no fire is lost"
    );

    assert!(matches!(rig.start("bare"), Started::Ready { .. }));
    assert_eq!(rig.fire("bare", instant), Started::StillRunning);
    assert_eq!(fire_rows(&rig, "bare"), [(0, "still_running".to_owned())]);
    assert_eq!(rig.start("bare"), Started::StillRunning);
    let bare = rig.claim();
    rig.complete(&bare, Outcome::Failed);
    assert!(matches!(rig.start("bare"), Started::Ready { .. }));
}

#[test]
fn a_moment_fires_once() {
    let rig = Rig::new(&[slot_pool("p", 5)], &[job("a").on("p")]);
    let other = rig.daemon("n-b");
    queued(&rig.fire("a", BEGIN));
    assert_eq!(other.fire("a", BEGIN), Started::AlreadyFired);
    assert_eq!(rig.waiting("p"), 1);
    // A late skipped row never replaces the run.
    assert!(!rig.change(|tx| Ok(skip(tx, &name("a"), BEGIN, "", "pool_unavailable")?)));
    assert_eq!(fire_rows(&rig, "a"), [(0, "run".to_owned())]);
}

#[test]
fn refused_fire_recorded() {
    let plans = [
        job("a").on("p"),
        job("lost").on("gone"),
        job("b").on("q"),
        job("c"),
    ];
    let rig = Rig::new(&[slot_pool_of("p", 1, 1), slot_pool("q", 1)], &plans);
    let at = |seconds: u64| BEGIN.plus(seconds * 1_000);
    rig.start("a");
    let refused = |answer: Started, sentence: &str| {
        let Started::Refused(refusal) = answer else {
            panic!("{answer:?}");
        };
        assert_eq!(refusal.to_string(), sentence);
    };
    refused(rig.fire("a", at(1)), "pool queue is full");
    rig.claim();
    set_slots(&rig, 2);
    refused(rig.fire("a", at(2)), "pool is draining before a capacity change");
    rig.edit_book(|book| book.locks_trusted = false);
    refused(
        rig.fire("a", at(3)),
        "pool state requires reliable exclusive locks",
    );
    refused(rig.fire("lost", at(3)), "unknown pool 'gone'");
    rig.edit_book(|book| book.locks_trusted = true);
    queued(&rig.fire("b", at(1)));
    assert!(matches!(rig.fire("c", at(1)), Started::Ready { .. }));
    let rows: Vec<(u64, String)> = [
        (1_000, "pool_full"),
        (2_000, "pool_draining"),
        (3_000, "pool_locks"),
    ]
    .map(|(at, word)| (at, word.to_owned()))
    .to_vec();
    assert_eq!(fire_rows(&rig, "a"), rows);
    assert_eq!(fire_rows(&rig, "lost"), [(3_000, "pool_unknown".to_owned())]);
    let told: Vec<(String, Option<String>)> = rig
        .feed()
        .into_iter()
        .filter(|item| item.topic == "job.fire.skipped")
        .map(|item| (item.id, item.detail))
        .collect();
    let one = |job: &str, word: &str| (job.to_owned(), Some(word.to_owned()));
    assert_eq!(
        told,
        [
            one("a", "pool_full"),
            one("a", "pool_draining"),
            one("a", "pool_locks"),
            one("lost", "pool_unknown")
        ]
    );
    // The same moment again is the same answer: nothing is told twice.
    assert_eq!(rig.fire("a", at(1)), Started::AlreadyFired);
    assert_eq!(rig.told("job.fire.skipped"), 4);
}

#[test]
fn a_paused_job_skips_its_fires_and_takes_manual_starts() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let pause = Pause {
        until: None,
        by: "me".to_owned(),
        note: String::new(),
    };
    rig.change(move |tx| pause::job(tx, &name("a"), Some(&pause)));
    assert_eq!(rig.fire("a", BEGIN), Started::Paused);
    assert_eq!(fire_rows(&rig, "a"), [(0, "job_paused".to_owned())]);
    queued(&rig.start("a"));
    assert_eq!(rig.claim().run.trigger, by_hand());
}

#[test]
fn locks_untrusted() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("bare")]);
    let waits = rig.start("a");
    rig.edit_book(|book| book.locks_trusted = false);
    let Started::Refused(refusal) = rig.start("a") else {
        panic!("{}", rig.snapshot());
    };
    assert_eq!(
        refusal.to_string(),
        "pool state requires reliable exclusive locks"
    );
    assert!(matches!(rig.start("bare"), Started::Ready { .. }));
    assert_eq!(rig.look().claims, 1, "for the unpooled one");
    assert_eq!(jobs_of(&rig.pass_with(2, plain()).claimed), ["bare"]);
    assert_eq!(rig.entry_words(&waits), "queued");
}

#[test]
fn clock_forward_jump() {
    let plans = [
        job("a").on("p"),
        job("waits").on("p").queue_timeout_ms(60_000),
        job("q").on("q"),
    ];
    let rig = Rig::new(&[slot_pool("p", 1), slot_pool("q", 1)], &plans);
    let runs = rig.start("a");
    rig.claim();
    let waits = rig.start("waits");
    let dispatcher = Dispatcher::new(rig.engine.clone());
    assert_eq!(dispatcher.judge_clock(rig.clock().now()), plain());
    rig.clock().advance(1_000);
    rig.clock().step_wall(3_600_000);
    let early = rig.wish("q", by_hand());
    assert!(
        early.rules.expiry_held,
        "a start that comes before the pass sees the jump too"
    );
    let held = dispatcher.judge_clock(rig.clock().now());
    assert!(held.expiry_held);
    rig.pass_with(0, held);
    assert_eq!(rig.entry_words(&waits), "queued");
    let mut hunter = crate::engine::hunt::Hunter::new(rig.daemon("n-b").engine.clone());
    rig.wait(hunter.look()).unwrap();
    assert_eq!(rig.entry_words(&runs), "running", "leases know no wall clock");
    // A start in the same second expires nothing either.
    queued(&rig.start("q"));
    assert_eq!(
        rig.entry_words(&waits),
        "queued",
        "an enqueue does not judge the clock, so it must not expire"
    );
    // The next pass agrees with the clock: it is really that late.
    rig.clock().advance(1_000);
    let rules = dispatcher.judge_clock(rig.clock().now());
    rig.pass_with(0, rules);
    assert_eq!(rig.entry_words(&waits), "expired: queue timeout");
}

fn published(rig: &Rig, plans: &[JobPlan]) {
    rig.publish(plans);
    rig.pass_with(0, plain());
}

#[test]
fn definition_change_cancels_waiting() {
    let plan = || job("a").on("p");
    let mut disabled = plan();
    disabled.0.enabled = false;
    let gone = format!("cancelled: {}", reason::DEFINITION_GONE);
    for (what, next) in [
        ("changed", vec![plan().command("false")]),
        ("disabled", vec![disabled]),
        ("removed", vec![job("other").on("p")]),
        ("moved", vec![job("a").on("q")]),
        ("no longer pooled", vec![job("a")]),
    ] {
        let rig = Rig::new(&[slot_pool("p", 1), slot_pool("q", 1)], &[plan()]);
        let started = rig.start("a");
        published(&rig, &next);
        assert_eq!(rig.entry_words(&started), gone, "{what}");
        let run = format!("skipped: {}", reason::DEFINITION_GONE);
        assert_eq!(rig.run_words(queued(&started).1), run, "{what}");
    }
    let rig = Rig::new(&[slot_pool("p", 1)], &[plan()]);
    let started = rig.start("a");
    let mut watched = plan();
    watched.0.sla.max_runtime_ms = Some(60_000);
    published(&rig, &[watched]);
    assert_eq!(rig.entry_words(&started), "queued", "a changed sla alone");
}

#[test]
fn a_change_of_texts_cancels_nothing() {
    let plan = || job("a").on("p");
    let mut saved = plan();
    saved.0.steps[0].command.save_limit = 7;
    let mut scheduled = plan();
    let text = "0 3 * * *".to_owned();
    scheduled.0.schedule = Some(ScheduleText {
        text,
        seconds: false,
        day_match: None,
        timezone: None,
    });
    for next in [saved, scheduled] {
        let rig = Rig::new(&[slot_pool("p", 1)], &[plan()]);
        let started = rig.start("a");
        published(&rig, &[next]);
        assert_eq!(rig.entry_words(&started), "queued");
        assert_eq!(
            rig.claim().run.version,
            1,
            "it pinned the version it was accepted with"
        );
    }
}

#[test]
fn an_unchanged_load_writes_nothing() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b")]);
    let before = rig.everything();
    rig.publish(&[job("a").on("p"), job("b")]);
    assert_eq!(rig.everything(), before);
}

#[test]
fn drift_does_not_cancel() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[job("a").on("p")]);
    let old = rig.daemon("n-b");
    rig.publish(&[job("a").on("p").command("new")]);
    let started = rig.start_unbound("a");
    assert!(old.pass_with(1, plain()).claimed.is_empty());
    assert_eq!(old.blocked_by("p"), Some("drift"));
    assert_eq!(old.entry_words(&started), "queued");
    assert_eq!(rig.pass().claimed.len(), 1);
}

#[test]
fn spawn_failure_with_replace() {
    let rig = Rig::new(
        &[slot_pool("p", 1)],
        &[job("a").on("p").policy(ConcurrencyPolicy::Replace)],
    );
    let started = rig.start("a");
    let claimed = rig.claim();
    rig.start("a");
    rig.pass();
    let why = format!("{}: no such file", reason::LAUNCH_FAILED);
    let mut attempt = rig.attempt(&claimed, Outcome::Failed);
    attempt.exit_code = Some(127);
    attempt.reason = Some(why.clone());
    let holder = super::stage::holder(&claimed);
    rig.change(move |tx| {
        crate::engine::changes::complete::complete(tx, &holder, &attempt, &Tails::default())
    });
    assert_eq!(
        rig.entry_words(&started),
        format!("finished: {}", reason::LAUNCH_FAILED)
    );
    assert_eq!(rig.run_words(queued(&started).1), format!("failed: {why}"));
    assert_eq!(rig.used("p"), 0);
    assert_eq!(rig.pass().claimed.len(), 1);
}

#[test]
fn a_cancel_between_claim_and_gate_is_not_forgotten() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("bare")]);
    let started = rig.start("a");
    rig.start("bare");
    let claims = rig.pass().claimed;
    for claimed in &claims {
        let run = claimed.run.id;
        rig.change(move |tx| crate::engine::changes::cancel::run(tx, run, "me"));
        rig.put_back(claimed, reason::LAUNCH_INTERRUPTED);
        assert_eq!(rig.run_words(run), "cancelled: cancelled by me");
    }
    assert_eq!(
        rig.entry_words(&started),
        format!("finished: {}", reason::RUN_CANCELLED)
    );
    assert!(rig.pass_with(2, plain()).claimed.is_empty(), "it does not run");
}
