//! Queues: who enters, in which order they leave, and what stays of them.

use super::jobs::{job, name, slot_pool, slot_pool_of};
use super::stage::{Rig, by_hand, jobs_of, plain, queued, run_id};
use crate::domain::report::{ReportKind, ReportTarget};
use crate::domain::slots::admission::{Pause, SlotRefusal};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::engine::changes::pause;
use crate::engine::changes::start::{self, Start, Started};
use crate::store::Rows;
use crate::store::tables::{EFFECTS, SLOT_CLOSED};
use crate::words::ids::EntryId;

#[test]
fn order_priority_time_id() {
    let plans = [
        job("low").on("p"),
        job("high").on("p").priority(5),
        job("low too").on("p"),
    ];
    let rig = Rig::new(&[slot_pool("p", 10)], &plans);
    rig.start("low");
    rig.clock().advance(1);
    // Equal priority and time: the smaller id goes first, whoever came first.
    let first = rig.wish("low", by_hand());
    let second = rig.wish("low too", by_hand());
    let swapped = (
        Start {
            entry: second.entry,
            ..first.clone()
        },
        Start {
            entry: first.entry,
            ..second
        },
    );
    rig.begin_run(&swapped.0).unwrap();
    rig.begin_run(&swapped.1).unwrap();
    rig.clock().advance(1);
    rig.start("high");
    assert_eq!(jobs_of(&rig.pass().claimed), ["high", "low", "low too", "low"]);
}

#[test]
fn a_clock_that_steps_back_lets_nobody_overtake() {
    let rig = Rig::new(&[slot_pool("p", 10)], &[job("a").on("p"), job("b").on("p")]);
    rig.start("a");
    rig.clock().step_wall(-600_000);
    rig.start("b");
    assert_eq!(jobs_of(&rig.pass().claimed), ["a", "b"]);
}

/// Also the one that was running when the clock stepped back, and is put back afterwards.
#[test]
fn a_clock_that_steps_back_lets_nobody_overtake_one_that_is_put_back() {
    let plans = [
        job("a").on("p"),
        job("b").on("p"),
        job("first").on("p").priority(9),
    ];
    let rig = Rig::new(&[slot_pool("p", 2)], &plans);
    rig.start("a");
    let claimed = rig.claim();
    rig.clock().step_wall(-600_000);
    // One of another priority runs too: it says nothing about the order in this one.
    rig.start("first");
    let first = rig.claim();
    rig.start("b");
    rig.put_back(&claimed, reason::LAUNCH_INTERRUPTED);
    rig.complete(&first, Outcome::Succeeded);
    assert_eq!(jobs_of(&rig.pass().claimed), ["a", "b"]);
}

#[test]
fn head_waits_for_all_slots() {
    let plans = [
        job("one").on("p"),
        job("wide").on("p").slots(3).priority(1),
        job("slim").on("p"),
    ];
    let rig = Rig::new(&[slot_pool("p", 3)], &plans);
    rig.start("one");
    let one = rig.claim();
    rig.start("wide");
    rig.start("slim");
    assert_eq!(rig.look().claims, 0);
    assert!(rig.pass_with(2, plain()).claimed.is_empty());
    assert_eq!(rig.used("p"), 1);
    rig.complete(&one, Outcome::Succeeded);
    assert_eq!(jobs_of(&rig.pass().claimed), ["wide"]);
}

#[test]
fn ineligible_head_blocks() {
    let plans = [job("held").on("p").priority(1), job("free").on("p")];
    let rig = Rig::new(&[slot_pool("p", 5)], &plans);
    let instant = rig.wall();
    let held = rig.fire("held", instant);
    rig.start("free");
    let forever = Pause {
        until: None,
        by: "me".to_owned(),
        note: String::new(),
    };
    let lifted = forever.clone();
    rig.change(move |tx| pause::job(tx, &name("held"), Some(&forever)));
    assert!(rig.pass_with(3, plain()).claimed.is_empty());
    assert_eq!(rig.blocked_by("p"), Some("job_paused"));
    assert_eq!(rig.waiting("p"), 2);
    // A pause that has run out ends by itself.
    let until = rig.wall().plus(1_000);
    rig.change(move |tx| {
        pause::job(
            tx,
            &name("held"),
            Some(&Pause {
                until: Some(until),
                ..lifted.clone()
            }),
        )
    });
    rig.clock().advance(1_000);
    let passed = rig.pass();
    assert_eq!(jobs_of(&passed.claimed), ["held", "free"]);
    for claimed in &passed.claimed {
        rig.complete(claimed, Outcome::Succeeded);
    }
    assert_eq!(rig.entry_words(&held), "finished");

    let other = rig.daemon("n-b");
    other.start("held");
    rig.start("free");
    assert!(rig.pass_with(3, plain()).claimed.is_empty());
    assert_eq!(rig.blocked_by("p"), Some("node"));
    assert_eq!(jobs_of(&other.pass().claimed), ["held"]);
}

#[test]
fn pools_are_independent() {
    let plans = [
        job("narrow").on("a"),
        job("wide").on("a").slots(2).priority(1),
        job("b").on("b"),
    ];
    let rig = Rig::new(&[slot_pool("a", 2), slot_pool("b", 1)], &plans);
    rig.start("narrow");
    rig.claim();
    let wishes: Vec<Start> = (0..1_000)
        .map(|at| rig.wish(if at == 0 { "wide" } else { "narrow" }, by_hand()))
        .collect();
    let book = rig.engine.book();
    rig.change(move |tx| {
        for wish in &wishes {
            start::start(tx, &book, wish)?;
        }
        Ok(())
    });
    rig.start("b");
    let passed = rig.pass();
    assert_eq!(jobs_of(&passed.claimed), ["b"]);
    assert_eq!(rig.waiting("a"), 1_000);
}

#[test]
fn queue_full_counts_waiting_only() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[job("a").on("p")]);
    rig.start("a");
    rig.claim();
    queued(&rig.start("a"));
    let before = rig.everything();
    assert_eq!(rig.start("a"), Started::Refused(SlotRefusal::Full));
    assert_eq!(rig.everything(), before, "a refusal writes nothing");
}

#[test]
fn enqueue_same_id_returns_entry() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[job("a").on("p")]);
    let wish = rig.wish("a", by_hand());
    let first = rig.begin_run(&wish).unwrap();
    let again = Start {
        run: run_id(99),
        ..wish
    };
    assert_eq!(rig.start("a"), Started::Refused(SlotRefusal::Full));
    assert_eq!(rig.begin_run(&again).unwrap(), first);
    assert_eq!(rig.waiting("p"), 1);
    // E4 comes before E6: without locks that can be trusted nobody is told that his entry is safe.
    rig.edit_book(|book| book.locks_trusted = false);
    assert_eq!(
        rig.begin_run(&again).unwrap(),
        Started::Refused(SlotRefusal::Locks)
    );
}

#[test]
fn queue_deadline_without_traffic() {
    let rig = Rig::new(
        &[slot_pool("p", 1)],
        &[job("hog").on("p"), job("a").on("p").queue_timeout_ms(10_000)],
    );
    rig.start("hog");
    rig.claim();
    let waits = rig.start("a");
    rig.clock().advance(9_999);
    assert!(!rig.look().work);
    rig.pass();
    assert_eq!(rig.entry_words(&waits), "queued");
    rig.clock().advance(1);
    assert!(rig.look().work, "the look before a pass sees the deadline");
    rig.pass();
    assert_eq!(
        rig.entry_words(&waits),
        format!("expired: {}", reason::QUEUE_TIMEOUT)
    );
    assert_eq!(
        rig.run_words(queued(&waits).1),
        format!("skipped: {}", reason::QUEUE_TIMEOUT)
    );
    assert_eq!(rig.told("pool.entry.expired"), 1);
}

#[test]
fn deadline_bounds_readmission() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p").queue_timeout_ms(10_000)]);
    let started = rig.start("a");
    let claimed = rig.claim();
    rig.clock().advance(31_000);
    rig.settle(&claimed, reason::LEASE_LAPSED, false);
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
    assert!(rig.pass().claimed.is_empty());
    assert_eq!(
        rig.entry_words(&started),
        format!("expired: {}", reason::QUEUE_TIMEOUT)
    );
    assert_eq!(
        rig.run_words(queued(&started).1),
        "failed: queue timeout",
        "an attempt was lost, so it is no skip"
    );
}

#[test]
fn closed_history_trim() {
    let rig = Rig::new(&[slot_pool("p", 5)], &[job("a").on("p")]);
    let mut ended = Vec::new();
    for _ in 0..150 {
        rig.clock().advance(10);
        ended.push(queued(&rig.start("a")).0);
        let claimed = rig.claim();
        rig.complete(&claimed, Outcome::Succeeded);
    }
    rig.pass();
    let kept = rig.read(|tx| tx.scan(&SLOT_CLOSED, &(), None, usize::MAX));
    let kept: Vec<EntryId> = kept.into_iter().map(|((_, _, _, id), _)| id).collect();
    assert_eq!(kept, ended[50..]);
    assert!(!rig.look().work, "nothing is left to trim");
}

#[test]
fn replace_in_pool() {
    let mut plan = job("a").on("p").policy(ConcurrencyPolicy::Replace);
    plan.0.reports.add(ReportKind::Failure, ReportTarget::Webhook);
    let rig = Rig::new(&[slot_pool("p", 2)], &[plan]);
    let old = rig.start("a");
    let first = rig.claim();
    rig.start("a");
    assert!(rig.look().work);
    let passed = rig.pass();
    assert_eq!(
        (passed.replaced, passed.claimed.len()),
        (vec![first.claim.fence], 0)
    );
    assert!(!rig.look().work, "it was asked once, that is enough");
    assert_eq!(rig.blocked_by("p"), Some("forbid"));
    // Its process was ended: the daemon records that as cancelled.
    rig.complete(&first, Outcome::Cancelled);
    assert_eq!(rig.run_words(queued(&old).1).split(':').next(), Some("cancelled"));
    let second = rig.claim();
    assert_eq!(rig.used("p"), 1);
    assert_eq!(rig.raw(&EFFECTS), [], "a replaced run owes no failure report");
    rig.complete(&second, Outcome::Failed);
    assert_eq!(rig.raw(&EFFECTS).len(), 1, "a failed one does");
}

#[test]
fn replace_without_slot_pool() {
    let rig = Rig::new(&[], &[job("a").policy(ConcurrencyPolicy::Replace)]);
    rig.start("a");
    let first = rig.claim();
    rig.start("a");
    let passed = rig.pass();
    assert_eq!(
        (passed.replaced, passed.claimed.len()),
        (vec![first.claim.fence], 0)
    );
    assert_eq!(
        rig.pass().replaced,
        Vec::<u64>::new(),
        "it was asked once, that is enough"
    );
    rig.complete(&first, Outcome::Cancelled);
    assert_eq!(rig.pass().claimed.len(), 1);
}

#[test]
fn p1_open_slots_below_zero() {
    // A cut below what is in use: nothing overflows, nothing is claimed, the number of used slots is the truth.
    let rig = Rig::new(&[slot_pool("p", 4)], &[job("a").on("p")]);
    let claims: Vec<_> = (0..4).map(|_| rig.start("a")).map(|_| rig.claim()).collect();
    rig.start("a");
    rig.edit_book(|book| book.slot_pools.values_mut().for_each(|slots| slots.slots = 1));
    rig.publish_book();
    rig.pass();
    assert_eq!(rig.used("p"), 4);
    rig.complete(&claims[0], Outcome::Succeeded);
    rig.complete(&claims[0], Outcome::Succeeded);
    assert_eq!(rig.used("p"), 3, "a completion counts once");
    assert_eq!(
        jobs_of(&rig.pass().claimed),
        ["a"],
        "the old number holds until the drain is over"
    );
    assert_eq!(rig.used("p"), 4);
}

#[test]
fn p7_low_priority_starves_silently() {
    let rig = Rig::new(
        &[slot_pool("p", 1)],
        &[
            job("low").on("p").priority(-1).queue_timeout_ms(60_000),
            job("high").on("p"),
        ],
    );
    let low = rig.start("low");
    for _ in 0..59 {
        rig.start("high");
        let claimed = rig.claim();
        rig.clock().advance(1_000);
        rig.complete(&claimed, Outcome::Succeeded);
    }
    assert_eq!(rig.entry_words(&low), "queued");
    rig.start("high");
    rig.clock().advance(1_000);
    rig.pass();
    // It is said in three places: the entry, the run and the feed.
    assert_eq!(rig.entry_words(&low), "expired: queue timeout");
    assert_eq!(rig.run_words(queued(&low).1), "skipped: queue timeout");
    let item = rig
        .feed()
        .into_iter()
        .find(|item| item.topic == "pool.entry.expired")
        .unwrap();
    assert_eq!(
        (item.id, item.detail.as_deref()),
        (queued(&low).0.to_string(), Some("queue timeout"))
    );
}
