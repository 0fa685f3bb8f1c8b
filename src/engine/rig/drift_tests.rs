//! Several daemons with different configurations: the last load wins, and whoever differs leaves alone what it would do in
//! another way.

use super::jobs::{job, name, slot_pool, slot_pool_name, slot_pool_of};
use super::stage::{BEGIN, Daemon, Rig, TENANT, queued};
use crate::domain::slots::admission::SlotRefusal;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::OnMissed;
use crate::engine::changes::start::Started;
use crate::engine::changes::{catch_up, drift};
use crate::engine::others::Others;
use crate::engine::schedules::Scheduler;
use crate::store::Rows;
use crate::store::rows::Fire;
use crate::store::tables::{FIRES, OWED};
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Millis;

/// Two daemons, the second with other numbers for the slot pool `p` than it has itself published last.
fn with_another_load() -> (Rig, Daemon) {
    let rig = Rig::new(&[slot_pool("p", 4)], &[job("a").on("p"), job("free")]);
    let other = rig.daemon("n-b");
    other.edit_book(|book| {
        let (name, slots) = slot_pool_of("p", 2, 50);
        book.slot_pools.insert(name, slots);
    });
    (rig, other)
}

#[test]
fn another_daemons_load_refuses_the_enqueues_of_this_one() {
    let (rig, other) = with_another_load();
    let (_, held) = queued(&rig.start("a"));
    let claimed = rig.claim();
    assert_eq!(claimed.run.id, held);
    other.publish(&[job("a").on("p"), job("free")]);
    let refusal = SlotRefusal::Differs {
        slot_pool: "p".to_owned(),
        node: "n-b".to_owned(),
    };
    assert_eq!(refusal.to_string(), "pool p: configuration differs from node n-b");
    assert_eq!(rig.start("a"), Started::Refused(refusal));
    // Its own work goes on: renewed, completed, and the capacity is switched by those who agree.
    assert!(rig.renew(&[super::stage::renewal(&claimed)])[0].is_some());
    rig.pass();
    let state =
        |daemon: &Daemon| daemon.read(|tx| crate::engine::changes::head::slot_pool(tx, &slot_pool_name("p")));
    assert_eq!(state(&rig).unwrap().draining_to, None, "not by this one");
    other.pass();
    assert_eq!(state(&rig).unwrap().draining_to, Some(2));
    rig.complete(&claimed, Outcome::Succeeded);
    rig.pass();
    assert_eq!(state(&rig).unwrap().stored_slots, 4, "not by this one");
    other.pass();
    assert_eq!(state(&rig).unwrap().stored_slots, 2);
    queued(&other.start("a"));
    // A load that agrees ends it.
    let theirs = other.engine.book().slot_pools.clone();
    rig.edit_book(|book| book.slot_pools = theirs);
    queued(&rig.start("a"));
}

#[test]
fn what_differs_is_found_with_the_load_that_said_it() {
    let (rig, other) = with_another_load();
    let found = |daemon: &Daemon| {
        let book = daemon.engine.book();
        daemon.read(|tx| drift::find(tx, &book))
    };
    let loads = |daemon: &Daemon| daemon.read(drift::loads);
    assert!(found(&rig).is_empty());
    let before = loads(&rig);
    other.publish(&[job("a").on("p").command("new"), job("more")]);
    assert_eq!(loads(&rig), before + 1);
    assert!(found(&other).is_empty());
    let drift = found(&rig);
    assert_eq!(drift.slot_pools[&slot_pool_name("p")].node, "n-b");
    let jobs: Vec<String> = drift.jobs.keys().map(ToString::to_string).collect();
    assert_eq!(jobs, ["a", "free", "more"], "changed, removed, new");
    assert!(drift.jobs.values().all(|other| other.node == "n-b"));
    // The same again is no load.
    other.publish(&[job("a").on("p").command("new"), job("more")]);
    assert_eq!(loads(&rig), before + 1);
}

#[test]
fn a_manual_start_of_a_job_that_another_load_has_changed_is_refused() {
    let rig = Rig::new(&[slot_pool("p", 4)], &[job("a").on("p"), job("free")]);
    let other = rig.daemon("n-b");
    other.publish(&[job("a").on("p").command("new"), job("free").command("new")]);
    let Started::Refused(refusal) = rig.start("a") else {
        panic!("its entry would be cancelled at once");
    };
    assert_eq!(
        refusal.to_string(),
        "job 'a': configuration differs from node n-b"
    );
    // Without a slot pool nothing is cancelled: it runs what its own daemon shows.
    assert!(matches!(rig.start("free"), Started::Ready { .. }));
    queued(&other.start("a"));
}

pub(super) fn fire_of(rig: &Rig, job: &str, instant: Millis) -> Option<Fire> {
    rig.read(|tx| tx.get(&FIRES, &(TENANT, name(job), instant, String::new())))
}

#[test]
fn a_fire_is_left_to_the_daemons_with_the_last_configuration() {
    let (rig, other) = with_another_load();
    other.publish(&[job("a").on("p"), job("free").command("new")]);
    assert_eq!(rig.fire("a", BEGIN), Started::LeftToOthers);
    assert_eq!(rig.fire("free", BEGIN), Started::LeftToOthers);
    assert_eq!(fire_of(&rig, "a", BEGIN), None, "it is still free for the others");
    let (_, run) = queued(&other.fire("a", BEGIN));
    assert_eq!(fire_of(&rig, "a", BEGIN), Some(Fire::Run(run)));
    // One that the policy alone concerns is not a difference: `sla` and reports change nothing of when it runs.
    let mut plan = job("free").command("new");
    plan.0.sla.max_runtime_ms = Some(1_000);
    rig.edit_book(|book| {
        book.jobs.insert(name("free"), super::jobs::book_job(&plan.0, 1));
    });
    assert!(matches!(rig.fire("free", BEGIN), Started::Ready { .. }));
}

#[test]
fn what_was_left_to_others_and_nobody_fired_is_missed() {
    let each_minute = |on_missed| {
        job("a")
            .schedule("* * * * *")
            .with(move |policy| policy.on_missed = on_missed)
    };
    let rig = Rig::new(&[], &[each_minute(OnMissed::Skip)]);
    let other = rig.daemon("n-b");
    let mut scheduler = Scheduler::new(rig.engine.clone());
    let tick = |scheduler: &mut Scheduler| rig.wait(scheduler.tick(rig.engine.now()));
    tick(&mut scheduler);
    other.publish(&[each_minute(OnMissed::Skip).command("new")]);
    rig.clock().advance(60_000);
    tick(&mut scheduler);
    let instant = BEGIN.plus(60_000);
    assert_eq!(fire_of(&rig, "a", instant), None);
    rig.clock().advance(limits::FIRE_LATE_MS);
    tick(&mut scheduler);
    assert_eq!(fire_of(&rig, "a", instant), None, "another may still be at it");
    rig.clock().advance(1);
    tick(&mut scheduler);
    assert!(matches!(
        fire_of(&rig, "a", instant),
        Some(Fire::Skipped { reason, .. }) if reason == "missed"
    ));
    // One that another daemon has fired stays its run.
    rig.clock().advance(49_999);
    tick(&mut scheduler);
    let second = BEGIN.plus(120_000);
    let started = other.fire("a", second);
    rig.clock().advance(limits::FIRE_LATE_MS + 1);
    tick(&mut scheduler);
    let Started::Ready { run } = started else {
        panic!("{started:?}");
    };
    assert_eq!(fire_of(&rig, "a", second), Some(Fire::Run(run)));
}

#[test]
fn debts_are_paid_once_and_only_by_those_who_agree() {
    let plan = |text: &str| {
        job("a")
            .schedule("* * * * *")
            .command(text)
            .with(|policy| policy.on_missed = OnMissed::RunAll)
    };
    let rig = Rig::new(&[], &[plan("old")]);
    let other = rig.daemon("n-b");
    other.publish(&[plan("new")]);
    let key = (TENANT, name("a"), BEGIN, String::new());
    let (book, theirs) = (rig.engine.book(), other.engine.book());
    let owed = rig.change(move |tx| {
        // The mark of its schedule, then two minutes later what was missed.
        let until = |ms| catch_up::Until::now(Millis(BEGIN.0 - ms));
        catch_up::detect(tx, &theirs, &name("a"), until(60_000))?;
        catch_up::detect(tx, &theirs, &name("a"), until(0))
    });
    assert_eq!(owed.owed, 1);
    let begin = |book: &std::sync::Arc<crate::engine::book::Book>, number: u64| {
        let (book, key) = (std::sync::Arc::clone(book), key.clone());
        rig.change(move |tx| {
            catch_up::begin(
                tx,
                &book,
                &key,
                super::stage::run_id(number),
                &super::stage::plain(),
            )
        })
    };
    assert_eq!(begin(&book, 90), catch_up::Turn::NotNow);
    let theirs = other.engine.book();
    assert!(matches!(begin(&theirs, 91), catch_up::Turn::Begun(_)));
    let third = rig.daemon("n-c");
    third.engine.shelf.replace(crate::engine::book::Book {
        node: NodeName::new("n-c").unwrap(),
        ..(*theirs).clone()
    });
    assert_eq!(begin(&third.engine.book(), 92), catch_up::Turn::NotNow);
    let row = rig.read(|tx| tx.get(&OWED, &key)).unwrap();
    assert_eq!(row.run, Some(super::stage::run_id(91)));
}

#[test]
fn another_daemons_load_is_noticed_and_forgotten() {
    let (rig, other) = with_another_load();
    let mut others = Others::new(rig.engine.clone());
    let mut compare = || rig.wait(others.compare()).unwrap();
    compare();
    assert!(rig.engine.drift.now().is_empty());
    other.publish(&[job("a").on("p"), job("free")]);
    compare();
    let drift = rig.engine.drift.now();
    assert_eq!(drift.slot_pools[&slot_pool_name("p")].node, "n-b");
    assert!(drift.jobs.is_empty());
    let theirs = other.engine.book().slot_pools.clone();
    rig.edit_book(|book| book.slot_pools = theirs);
    compare();
    assert!(rig.engine.drift.now().is_empty());
}
