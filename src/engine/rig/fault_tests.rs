//! Faults: a disk that stalls or is full, rows that cannot be read, daemons that never meet their answer.

use std::time::Duration;

use super::jobs::{job, slot_pool, slot_pool_name};
use super::stage::{Rig, by_hand, jobs_of, queued};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::remember::{Answer, Asked, Ticket, Told};
use crate::engine::changes::start::{self, Start, Started};
use crate::engine::desk::{ManualStart, start_job};
use crate::engine::hunt::Hunter;
use crate::os::failpoint::Fault;
use crate::store::table::Table;
use crate::store::tables::{
    FIRES, LIVE_ATTEMPTS, READY_STEPS, RUNS, SLOT_CLOSED, SLOT_DUE, SLOT_ENTRIES, SLOT_POOLS, SLOT_RUNNING,
    SLOT_WAITING, SLOT_WAITING_COUNT,
};
use crate::store::{ChangeError, Rows, StoreError};
use crate::words::ids::{EntryId, RunId};
use crate::words::payload::JsonText;

const NOT_A_RECORD: &[u8] = &[250, 1, 2, 3];

/// Overwrites the first row of a table with bytes that no version ever wrote.
fn damage<K: crate::store::keys::Key + Send + 'static, R: crate::store::codec::Record>(
    rig: &Rig,
    table: &'static Table<K, R>,
    which: usize,
) {
    rig.plan_damage();
    let key = rig.raw(table)[which].0.clone();
    rig.change(move |tx| {
        let key = K::decode(&key).unwrap();
        Ok(tx.damage(table, &key, NOT_A_RECORD)?)
    });
}

fn quick(operation_ms: u64, grace_ms: u64) -> Rig {
    Rig::with_times(
        &[slot_pool("p", 1)],
        &[job("a").on("p")],
        Duration::from_millis(operation_ms),
        Duration::from_millis(grace_ms),
    )
}

fn manual(rig: &Rig, wish: &Start) -> ManualStart {
    ManualStart {
        name: wish.name.clone(),
        job: rig.engine.book().jobs[&wish.name].clone(),
        principal: "tester".to_owned(),
        run: wish.run,
        entry: wish.entry,
        retries: false,
        rerun_of: None,
    }
}

const TICKET: Ticket = Ticket {
    tenant: crate::words::ids::TenantId::DEFAULT,
    key: [1; 16],
    request: [7; 16],
};

fn asked(ticket: Ticket) -> Asked<Started> {
    let answer = Answer {
        status: 202,
        location: None,
        body: JsonText::parse("{}").unwrap(),
    };
    Asked::new(Some(ticket), move |_, started| {
        Ok(matches!(started, Started::Queued { .. }).then(|| answer.clone()))
    })
}

#[test]
fn taken_operation_answers_with_its_result() {
    let rig = quick(100, 20_000);
    let wish = rig.wish("a", by_hand());
    // The commit stalls beyond the deadline, and lands.
    rig.engine
        .store
        .faults()
        .plan("store.commit", Fault::Stall(Duration::from_millis(400)), 1);
    let answer = rig
        .wait(start_job(&rig.engine, manual(&rig, &wish), Asked::plain()))
        .unwrap();
    let started = Started::Queued {
        entry: wish.entry,
        run: wish.run,
    };
    assert_eq!(answer, Told::Now(started, None));
    assert_eq!(rig.waiting("p"), 1);
}

#[test]
fn an_answer_that_does_not_come_is_unknown_and_may_be_asked_again() {
    let rig = quick(50, 100);
    let wish = rig.wish("a", by_hand());
    rig.engine
        .store
        .faults()
        .plan("store.commit", Fault::Stall(Duration::from_millis(800)), 1);
    let answer = rig.wait(start_job(&rig.engine, manual(&rig, &wish), asked(TICKET)));
    assert!(matches!(answer, Err(ChangeError::Unknown)), "{answer:?}");
    // The same key, when the disk is back: the first answer, no second run. (The blocking call has no time limit.)
    let again = |ticket: Ticket| {
        let (book, mut asked) = (rig.engine.book(), asked(ticket));
        let wish = Start {
            run: RunId([9; 16]),
            entry: EntryId([9; 16]),
            ..wish.clone()
        };
        rig.change(move |tx| asked.once(tx, |tx| start::start(tx, &book, &wish)))
    };
    let told = again(TICKET);
    assert!(
        matches!(&told, Told::Before(answer) if answer.status == 202),
        "{told:?}"
    );
    assert_eq!(rig.waiting("p"), 1);
    let other = Ticket {
        request: [8; 16],
        ..TICKET
    };
    assert_eq!(again(other), Told::KeyReused);
}

#[test]
fn an_operation_withdrawn_in_time_never_happens() {
    let rig = quick(100, 100);
    let (first, second) = (rig.wish("a", by_hand()), rig.wish("a", by_hand()));
    rig.engine
        .store
        .faults()
        .plan("store.commit", Fault::Stall(Duration::from_millis(600)), 1);
    let answers = rig.wait(async {
        let early = start_job(&rig.engine, manual(&rig, &first), Asked::plain());
        let late = async {
            // The writer has taken the first one when it stalls in its commit.
            while rig.engine.store.stats().waiting > 0 {
                tokio::task::yield_now().await;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
            start_job(&rig.engine, manual(&rig, &second), Asked::plain()).await
        };
        tokio::join!(early, late)
    });
    assert!(matches!(answers.1, Err(ChangeError::Withdrawn)), "{answers:?}");
    // A later change sees the queue without it.
    rig.change(|tx| Ok(tx.rows_written()));
    assert_eq!(rig.waiting("p"), 1);
    assert!(rig.read(|tx| crate::store::runs::by_id(tx, second.run)).is_none());
}

#[test]
fn full_disk() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.start("a");
    let claimed = rig.claim();
    let before = rig.everything();
    rig.engine.store.faults().plan("store.commit", Fault::NoSpace, 1);
    let failed = rig.begin_run(&rig.wish("a", by_hand()));
    assert!(
        matches!(failed, Err(ChangeError::Failed(StoreError::NoSpace))),
        "{failed:?}"
    );
    assert_eq!(rig.everything(), before);
    assert_eq!(rig.engine.store.stats().faults, 1);
    rig.assert_clean();
    // No restart: what runs finishes, what comes is taken.
    rig.complete(&claimed, Outcome::Succeeded);
    queued(&rig.start("a"));
    rig.claim();
}

#[test]
fn a_commit_that_lands_and_then_fails_is_a_success() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.engine.store.faults().plan("store.committed", Fault::Error, 1);
    queued(&rig.begin_run(&rig.wish("a", by_hand())).unwrap());
    assert_eq!(rig.waiting("p"), 1);
}

#[test]
fn a_change_that_panics_hurts_nobody_else() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let wish = rig.wish("a", by_hand());
    let (bad, good) = rig.wait(async {
        let book = rig.engine.book();
        let bad = rig
            .engine
            .store
            .change("bad", |_| -> Result<(), crate::store::Abort> {
                panic!("a planned defect")
            });
        let good = rig
            .engine
            .store
            .change("good", move |tx| start::start(tx, &book, &wish));
        tokio::join!(bad, good)
    });
    assert!(matches!(bad, Err(ChangeError::Panicked("bad"))), "{bad:?}");
    queued(&good.unwrap());
}

#[test]
fn one_damaged_run_does_not_stop_start() {
    let plans = [job("a").on("p"), job("b").on("p"), job("c"), job("d")];
    let rig = Rig::new(&[slot_pool("p", 5)], &plans);
    rig.start_unbound("a");
    let mut other = rig.daemon("n-b");
    other.claim();
    rig.start("c");
    rig.start("d");
    damage(&rig, &RUNS, 0);
    damage(&rig, &RUNS, 1);
    // Another pooled run enters and leaves, an unpooled one too, and the damaged ones stay where they are.
    rig.start("b");
    assert_eq!(
        jobs_of(&rig.pass_with(3, super::stage::plain()).claimed),
        ["b", "d"]
    );
    other.die();
    let mut hunter = Hunter::new(rig.engine.clone());
    rig.wait(hunter.look()).unwrap();
    rig.wait(hunter.settle_own()).unwrap();
    let raw = rig.raw(&RUNS);
    assert_eq!(
        raw.iter().filter(|(_, value)| value == NOT_A_RECORD).count(),
        2,
        "never overwritten"
    );
    assert_eq!(
        rig.findings()
            .iter()
            .filter(|finding| finding.contains("runs"))
            .count(),
        2
    );
}

#[test]
fn a_damaged_run_does_not_stop_expiry() {
    let plans = [
        job("a").on("p").queue_timeout_ms(1_000),
        job("b").on("q"),
        job("c").on("q").queue_timeout_ms(1_000),
    ];
    let rig = Rig::new(&[slot_pool("p", 1), slot_pool("q", 1)], &plans);
    let first = rig.start("a");
    rig.start("b");
    let late = rig.start("c");
    damage(&rig, &RUNS, 0);
    rig.clock().advance(2_000);
    queued(&rig.start("b"));
    // The entry leaves the queue, or the slot pool would be blocked for ever; the run stays as it is, for a repair.
    let expired = format!("expired: {}", reason::QUEUE_TIMEOUT);
    assert_eq!(rig.entry_words(&first), expired);
    assert_eq!(rig.raw(&RUNS)[0].1, NOT_A_RECORD);
    assert_eq!(rig.entry_words(&late), expired);
    rig.look();
    assert_eq!(jobs_of(&rig.pass().claimed), ["b"]);
}

/// Rows of slot pool `p` that may be damaged, and whether a start into it is refused for it.
#[test]
fn pool_unreadable_fails_closed() {
    type Damage = (&'static str, fn(&Rig), bool);
    let cases: [Damage; 6] = [
        ("slot_pools", |rig| damage(rig, &SLOT_POOLS, 0), true),
        ("slot_entries", |rig| damage(rig, &SLOT_ENTRIES, 1), false),
        ("slot_waiting", |rig| damage(rig, &SLOT_WAITING, 0), true),
        (
            "slot_waiting_count",
            |rig| damage(rig, &SLOT_WAITING_COUNT, 0),
            true,
        ),
        ("slot_running", |rig| damage(rig, &SLOT_RUNNING, 0), false),
        ("slot_due", |rig| damage(rig, &SLOT_DUE, 0), false),
    ];
    for (table, spoil, refuses) in cases {
        let plans = [job("a").on("p"), job("b").on("q"), job("bare")];
        let rig = Rig::new(&[slot_pool("p", 2), slot_pool("q", 1)], &plans);
        rig.start("a");
        rig.claim();
        rig.start("a");
        rig.start("b");
        rig.start("bare");
        spoil(&rig);
        let broken = rig.everything();
        let bytes = broken
            .iter()
            .filter(|(_, _, value)| value == NOT_A_RECORD)
            .count();
        assert_eq!(bytes, 1, "{table}");
        for _ in 0..if refuses { 3 } else { 0 } {
            let refused = rig.begin_run(&rig.wish("a", by_hand()));
            let is_row = matches!(&refused, Err(ChangeError::Failed(error)) if error.is_row_fault());
            assert!(is_row, "{table}: {refused:?}");
        }
        let book = rig.engine.book();
        let (now, rules) = (rig.wall(), super::stage::plain());
        let look = rig
            .engine
            .store
            .read(|tx| crate::engine::changes::claim::look(tx, &book, now, rules));
        let look = look.unwrap_or_else(|error| panic!("{table}: {error}"));
        assert!(look.claims >= 2, "{table}: {look:?}");
        let passed = rig.pass_with(4, rules);
        let jobs = jobs_of(&passed.claimed);
        let others: Vec<&String> = jobs.iter().filter(|job| *job != "a").collect();
        assert_eq!(others, ["b", "bare"], "{table}");
        if table != "slot_due" {
            assert!(!jobs.contains(&"a".to_owned()), "{table}: fails closed");
            let names: Vec<String> = passed
                .unreadable
                .iter()
                .map(|(name, _)| name.to_string())
                .collect();
            assert_eq!(names, ["p"], "{table}");
        }
        // An index row whose key is whole leaves with its entry; everything else stays for a repair.
        let kept = usize::from(table != "slot_due");
        let raw = rig.everything();
        let spoiled = raw.iter().filter(|(_, _, value)| value == NOT_A_RECORD);
        assert_eq!(spoiled.count(), kept, "{table}: bytes unchanged");
        rig.wait(Hunter::new(rig.engine.clone()).look()).unwrap();
    }
}

#[test]
fn a_damaged_row_elsewhere_stops_no_pass() {
    type Damage = (&'static str, fn(&Rig));
    let cases: [Damage; 4] = [
        ("ready_steps", |rig| damage(rig, &READY_STEPS, 0)),
        ("slot_closed", |rig| damage(rig, &SLOT_CLOSED, 0)),
        ("live_attempts", |rig| damage(rig, &LIVE_ATTEMPTS, 0)),
        ("fires", |rig| damage(rig, &FIRES, 0)),
    ];
    for (table, spoil) in cases {
        let rig = Rig::new(
            &[slot_pool("p", 2), slot_pool("q", 1)],
            &[job("a").on("p"), job("b").on("q"), job("bare")],
        );
        rig.fire("a", super::stage::BEGIN);
        let ended = rig.claim();
        rig.complete(&ended, Outcome::Succeeded);
        rig.start("a");
        rig.claim();
        rig.start("bare");
        rig.start("bare");
        rig.start("b");
        spoil(&rig);
        let book = rig.engine.book();
        let (now, rules) = (rig.wall(), super::stage::plain());
        let look = rig
            .engine
            .store
            .read(|tx| crate::engine::changes::claim::look(tx, &book, now, rules));
        look.unwrap_or_else(|error| panic!("{table}: {error}"));
        let jobs = jobs_of(&rig.pass_with(4, rules).claimed);
        let expected: &[&str] = if table == "ready_steps" {
            &["b", "bare"]
        } else {
            &["b", "bare", "bare"]
        };
        assert_eq!(jobs, expected, "{table}");
        rig.wait(Hunter::new(rig.engine.clone()).look()).unwrap();
    }
}

#[test]
fn an_entry_that_cannot_be_read_blocks_its_own_queue_only() {
    let rig = Rig::new(
        &[slot_pool("p", 1), slot_pool("q", 1)],
        &[job("a").on("p"), job("b").on("q")],
    );
    rig.start("a");
    rig.start("b");
    damage(&rig, &SLOT_ENTRIES, 0);
    let passed = rig.pass();
    assert_eq!(jobs_of(&passed.claimed), ["b"]);
    assert_eq!(passed.unreadable.len(), 1);
    assert_eq!(passed.unreadable[0].0, slot_pool_name("p"));
    assert_eq!(
        rig.read(|tx| tx.raw_get(SLOT_ENTRIES.index(), &rig.raw(&SLOT_ENTRIES)[0].0))
            .unwrap(),
        NOT_A_RECORD
    );
}
