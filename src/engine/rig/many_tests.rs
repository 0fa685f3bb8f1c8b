//! Several daemons over one store: what one of them does for all, what each leaves to the others, and what a dead one leaves.

use super::jobs::{job, name, slot_pool, slot_pool_name, slot_pool_of};
use super::stage::{BEGIN, Daemon, Rig, TENANT, by_hand, place_of, queued};
use tokio::sync::watch;

use crate::domain::report::{Delivery, Effect, EffectState, sample_effect};
use crate::domain::slots::admission::SlotRefusal;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::{ConcurrencyPolicy, OnMissed};
use crate::engine::blocked::BlockedHeads;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::start::{Start, Started};
use crate::engine::changes::{cancel, catch_up, deliver, drift, nodes, retry};
use crate::engine::effects::Courier;
use crate::engine::hunt::Hunter;
use crate::engine::lateness::Lateness;
use crate::engine::live::LiveHandle;
use crate::engine::others::Others;
use crate::engine::schedules::Scheduler;
use crate::store::rows::Fire;
use crate::store::tables::{FIRES, OWED};
use crate::store::{Rows, effects};
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Millis;
use crate::worker::command::Stop;

fn owe_report(rig: &Rig) -> u64 {
    let effect = Effect {
        run: None,
        created_at: rig.wall(),
        state: EffectState::Waiting {
            due_at: rig.wall(),
            tries: 0,
            last_error: None,
        },
        ..sample_effect(1)
    };
    rig.change(move |tx| Ok(effects::insert(tx, effect.clone())?)).seq
}

fn takes(daemon: &Daemon, courier: &mut Courier) -> Vec<(u64, u64)> {
    daemon.wait(courier.take_due())
}

fn courier(daemon: &Daemon) -> Courier {
    Courier::new(daemon.engine.clone())
}

#[test]
fn a_report_is_delivered_by_one_daemon() {
    let rig = Rig::new(&[], &[job("a")]);
    let mut other = rig.daemon("n-b");
    let seq = owe_report(&rig);
    let (mut here, mut there) = (courier(&rig), courier(&other));
    let taken = takes(&other, &mut there);
    assert_eq!(taken.len(), 1);
    assert_eq!(takes(&rig, &mut here), [], "it is the other's");
    // Its daemon is dead: at once.
    other.die();
    let again = takes(&rig, &mut here);
    assert_eq!(again.len(), 1);
    assert!(again[0].1 > taken[0].1, "a younger fence");
    // What the dead one would still say is only believed if it is good news.
    let old = taken[0].1;
    let failed = Delivery::Failed("no".to_owned());
    assert_eq!(rig.change(move |tx| deliver::settle(tx, seq, old, &failed)), None);
    let after = rig.change(move |tx| deliver::settle(tx, seq, old, &Delivery::Done));
    assert_eq!(after.unwrap().state.word(), "delivered");
    let new = again[0].1;
    assert_eq!(
        rig.change(move |tx| deliver::settle(tx, seq, new, &Delivery::Done)),
        None
    );
}

#[test]
fn a_delivery_that_takes_too_long_is_taken_over() {
    let rig = Rig::new(&[], &[job("a")]);
    let slow = rig.daemon("n-b");
    owe_report(&rig);
    assert_eq!(takes(&slow, &mut courier(&slow)).len(), 1);
    let mut here = courier(&rig);
    rig.clock().advance(limits::DELIVERY_SLACK_MS - 1);
    assert_eq!(takes(&rig, &mut here), []);
    rig.clock().advance(1);
    assert_eq!(takes(&rig, &mut here).len(), 1);
    // Under a clock that cannot be read here, it is the observer's own time that counts.
    let far = rig.daemon_at("n-c", place_of("h2", "b2", 1));
    let mut there = courier(&far);
    assert_eq!(takes(&far, &mut there), []);
    rig.clock().advance(limits::DELIVERY_SLACK_MS - 1);
    assert_eq!(takes(&far, &mut there), []);
    rig.clock().advance(1);
    assert_eq!(takes(&far, &mut there).len(), 1);
}

#[test]
fn what_a_restarted_daemon_had_taken_is_its_own() {
    let rig = Rig::new(&[], &[job("a")]);
    let mut other = rig.daemon("n-b");
    let seq = owe_report(&rig);
    let first = takes(&other, &mut courier(&other));
    other.die();
    let again = rig.daemon("n-b");
    let second = takes(&again, &mut courier(&again));
    assert_eq!(second[0].0, seq);
    assert!(second[0].1 > first[0].1);
}

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

fn fire_of(rig: &Rig, job: &str, instant: Millis) -> Option<Fire> {
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
fn a_daemon_that_starts_takes_no_moment_from_one_that_lives() {
    let each_minute = job("a").schedule("* * * * *");
    let rig = Rig::new(&[], std::slice::from_ref(&each_minute));
    let mut first = Scheduler::new(rig.engine.clone());
    rig.wait(first.tick(rig.engine.now()));
    rig.clock().advance(60_000);
    // The other starts a moment after an instant that the first is about to fire.
    let other = rig.daemon("n-b");
    let mut second = Scheduler::new(other.engine.clone());
    rig.wait(second.tick(rig.engine.now()));
    let instant = BEGIN.plus(60_000);
    assert_eq!(fire_of(&rig, "a", instant), None);
    rig.wait(first.tick(rig.engine.now()));
    assert!(matches!(fire_of(&rig, "a", instant), Some(Fire::Run(_))));
    rig.clock().advance(limits::FIRE_LATE_MS + 1);
    rig.wait(second.tick(rig.engine.now()));
    assert!(matches!(fire_of(&rig, "a", instant), Some(Fire::Run(_))));
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
fn what_a_dead_node_left_hides_no_step_of_a_living_one() {
    let rig = Rig::new(&[], &[job("a")]);
    let mut other = rig.daemon("n-b");
    for _ in 0..=limits::MAINTENANCE_ROWS_MAX {
        other.start("a");
    }
    other.die();
    let Started::Ready { run } = rig.start("a") else {
        panic!("it starts at once");
    };
    assert_eq!(rig.claim().run.id, run);
}

#[test]
fn retries_of_a_dead_node_hide_none_of_a_living_one() {
    let rig = Rig::new(&[], &[job("a").retries(3)]);
    let mut other = rig.daemon("n-b");
    let fail_one = |daemon: &Daemon| {
        let wish = Start {
            retries: true,
            ..daemon.wish("a", by_hand())
        };
        daemon.begin_run(&wish).unwrap();
        let claimed = daemon.claim();
        daemon.complete(&claimed, Outcome::Failed);
        claimed.run.id
    };
    for _ in 0..=limits::RETRIES_PER_CHANGE_MAX {
        fail_one(&other);
    }
    other.die();
    let own = fail_one(&rig);
    rig.clock().advance(5_000);
    let (book, now) = (rig.engine.book(), rig.wall());
    let due = rig.read(|tx| retry::due(tx, &book, now, limits::RETRIES_PER_CHANGE_MAX));
    let runs: Vec<_> = due.iter().map(|(_, run, _)| *run).collect();
    assert_eq!(runs, [own]);
}

#[test]
fn kill9_manual_entry_stays() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b")]);
    let mut other = rig.daemon("n-b");
    let pooled = other.start("a");
    other.start("b");
    let claims = other.pass().claimed;
    assert_eq!(claims.len(), 2);
    other.die();
    rig.wait(Hunter::new(rig.engine.clone()).look()).unwrap();
    assert_eq!(rig.entry_words(&pooled), "queued: daemon died");
    assert_eq!(rig.blocked_by("p"), Some("node"));
    assert!(rig.pass().claimed.is_empty(), "both are bound to the dead one");
    let back = rig.daemon("n-b");
    let again = back.pass().claimed;
    assert_eq!(again.len(), 2);
    assert!(again.iter().all(|claimed| claimed.number == 1));
    assert!(
        again
            .iter()
            .all(|claimed| claims.iter().all(|old| old.claim.fence < claimed.claim.fence))
    );
}

#[test]
fn a_bound_entry_of_a_dead_node_expires_by_its_deadline() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p").queue_timeout_ms(60_000)]);
    let mut other = rig.daemon("n-b");
    let started = other.start("a");
    other.die();
    rig.clock().advance(60_000);
    rig.pass();
    assert_eq!(rig.entry_words(&started), "expired: queue timeout");
}

#[test]
fn an_unpooled_step_of_another_machine_is_over_when_its_daemon_is_unseen() {
    let rig = Rig::new(&[], &[job("a")]);
    let far = place_of("h2", "b2", 1);
    let mut other = rig.daemon_at("n-b", far);
    rig.start_unbound("a");
    assert_eq!(other.pass().claimed.len(), 1);
    let mut hunter = Hunter::new(rig.engine.clone());
    let mut look = || rig.wait(hunter.look()).unwrap();
    rig.clock().advance(limits::LEASE_MS);
    look();
    look();
    assert!(rig.pass().claimed.is_empty(), "its lock is held, so it lives");
    other.die();
    look();
    rig.clock().advance(limits::LEASE_MS - 1);
    look();
    assert!(rig.pass().claimed.is_empty());
    rig.clock().advance(1);
    look();
    assert_eq!(rig.pass().claimed.len(), 1);
}

#[test]
fn a_drained_node_begins_nothing_and_ends_what_it_has() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[job("a").on("p"), job("free")]);
    let other = rig.daemon("n-b");
    let record = crate::store::rows::NodeRecord {
        generated: false,
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        pid_namespace: 1,
        pid: 1,
        start_ticks: 1,
        started_at: BEGIN,
        last_seen: BEGIN,
    };
    let own = rig.engine.node.clone();
    let introduced = own.clone();
    rig.change(move |tx| nodes::introduce(tx, &introduced, &record));
    rig.start("a");
    let claimed = rig.claim();
    rig.start_unbound("a");
    rig.start_unbound("free");
    let (drained, nobody) = (own.clone(), NodeName::new("nobody").unwrap());
    assert!(rig.change(move |tx| nodes::set_drain(tx, &drained, Some(("me", "disk")))));
    assert!(!rig.change(move |tx| nodes::set_drain(tx, &nobody, Some(("me", "")))));
    assert_eq!(rig.look().claims, 0);
    assert!(rig.pass_with(4, super::stage::plain()).claimed.is_empty());
    assert_eq!(rig.start("free"), Started::NodeDrained(own.clone()));
    let every_node = Start {
        node: Some(own.clone()),
        ..rig.wish(
            "free",
            crate::domain::workflow::run::Trigger::Schedule { instant: BEGIN },
        )
    };
    assert_eq!(
        rig.begin_run(&every_node).unwrap(),
        Started::NodeDrained(own.clone())
    );
    let key = (TENANT, name("free"), BEGIN, own.to_string());
    let row = rig.read(|tx| tx.get(&FIRES, &key));
    assert!(matches!(row, Some(Fire::Skipped { reason, .. }) if reason == "node_drained"));
    rig.complete(&claimed, Outcome::Succeeded);
    assert_eq!(other.pass().claimed.len(), 2, "the others go on");
    assert!(rig.change(move |tx| nodes::set_drain(tx, &own, None)));
    rig.start("free");
    assert_eq!(rig.pass().claimed.len(), 1);
    assert_eq!((rig.told("node.drained"), rig.told("node.undrained")), (1, 1));
}

/// A live execution of a daemon as its table has it; the other end of its stop.
fn lives_in(daemon: &Daemon, claimed: &Claimed) -> watch::Receiver<Option<Stop>> {
    let (stop, stops) = watch::channel(None);
    let handle = LiveHandle {
        run: claimed.run.id,
        step: claimed.step.clone(),
        job: claimed.run.definition.clone(),
        number: claimed.number,
        claimed_at: claimed.claim.claimed_at,
        stop,
        log_size: watch::channel(0).1,
        lease: None,
    };
    daemon.engine.live.add(claimed.claim.fence, handle);
    stops
}

fn stop_of(stops: &watch::Receiver<Option<Stop>>) -> Option<String> {
    match stops.borrow().clone() {
        None => None,
        Some(Stop::Requested(why)) => Some(why),
        Some(other) => panic!("{other:?}"),
    }
}

#[test]
fn what_another_daemon_wants_ended_is_ended_at_its_commit() {
    let replacing = job("r").policy(ConcurrencyPolicy::Replace);
    let rig = Rig::new(&[], &[job("a"), replacing]);
    let other = rig.daemon("n-b");
    let mut others = Others::new(other.engine.clone());
    rig.start_unbound("a");
    let claimed = other.claim();
    let stops = lives_in(&other, &claimed);
    rig.wait(others.hear_all());
    assert_eq!(stop_of(&stops), None);
    let id = claimed.run.id;
    rig.change(move |tx| cancel::run(tx, id, "me"));
    rig.wait(others.hear_all());
    assert_eq!(stop_of(&stops).as_deref(), Some("cancelled by me"));
    // Replace: a newer instance of one daemon ends the one of another first.
    rig.start_unbound("r");
    let earlier = other.claim();
    let stops = lives_in(&other, &earlier);
    rig.start_unbound("r");
    assert!(rig.pass_with(1, super::stage::plain()).claimed.is_empty());
    rig.wait(others.hear_all());
    assert_eq!(stop_of(&stops).as_deref(), Some("replaced by a newer instance"));
    other.complete(&earlier, Outcome::Cancelled);
    assert_eq!(rig.claim().run.definition, name("r"));
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

#[test]
fn a_queue_that_waits_for_a_dead_node_is_told_of_once() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut other = rig.daemon("n-b");
    let started = other.start("a");
    let mut blocked = BlockedHeads::new(rig.engine.clone());
    let mut look = || rig.wait(blocked.look()).unwrap();
    look();
    rig.clock().advance(limits::HEAD_BLOCKED_MS);
    look();
    assert_eq!(rig.told("pool.head.blocked"), 0, "its node lives");
    other.die();
    look();
    rig.clock().advance(limits::HEAD_BLOCKED_MS - 1);
    look();
    assert_eq!(rig.told("pool.head.blocked"), 0);
    rig.clock().advance(1);
    look();
    look();
    let mut again = BlockedHeads::new(rig.engine.clone());
    rig.wait(again.look()).unwrap();
    rig.clock().advance(limits::HEAD_BLOCKED_MS);
    rig.wait(again.look()).unwrap();
    assert_eq!(rig.told("pool.head.blocked"), 1);
    let item = rig
        .feed()
        .into_iter()
        .find(|item| item.topic == "pool.head.blocked");
    let (id, _) = queued(&started);
    assert_eq!(
        item.unwrap().detail.unwrap(),
        format!("entry {id} waits for node n-b, which is gone")
    );
}

#[test]
fn a_lost_lease_is_an_event() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let other = rig.daemon_at("n-b", place_of("h2", "b2", 1));
    rig.start_unbound("a");
    let claimed = other.claim();
    rig.settle(&claimed, reason::LEASE_LAPSED, false);
    let item = rig
        .feed()
        .into_iter()
        .find(|item| item.topic == "pool.lease.lost");
    let item = item.unwrap();
    assert_eq!(item.version, claimed.claim.fence);
    assert_eq!(item.detail.as_deref(), Some("n-b"));
}

#[test]
fn late_and_never_ran_alert_over_two_daemons() {
    let mut plan = job("a");
    plan.0.sla.max_time_since_success_ms = Some(60_000);
    let rig = Rig::new(&[], std::slice::from_ref(&plan));
    let other = rig.daemon("n-b");
    let told = || rig.told("job.late");
    let tick = |daemon: &Daemon| daemon.wait(Lateness::new(daemon.engine.clone()).tick()).unwrap();
    rig.clock().advance(60_001);
    tick(&rig);
    tick(&other);
    assert_eq!(told(), 1, "one alert of one breach");
    // Another limit was loaded elsewhere: this daemon neither ends the breach nor begins one.
    plan.0.sla.max_time_since_success_ms = Some(600_000);
    other.publish(std::slice::from_ref(&plan));
    assert_eq!(tick(&rig), []);
    assert_eq!(tick(&other).len(), 1, "it is over by the limit that holds now");
    assert_eq!(
        tick(&rig),
        [],
        "the old limit is passed, and is nobody's any more"
    );
    assert_eq!(told(), 1);
}
