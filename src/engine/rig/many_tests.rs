//! Several daemons over one store: what one of them does for all, what each leaves to the others, and what a dead one leaves.

use tokio::sync::watch;

use super::drift_tests::fire_of;
use super::jobs::{job, name, slot_pool};
use super::stage::{BEGIN, Daemon, Rig, TENANT, by_hand, place_of, queued};
use crate::domain::report::{Delivery, Effect, EffectState, sample_effect};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::engine::blocked::BlockedHeads;
use crate::engine::changes::claim::{self, Claimed};
use crate::engine::changes::start::{Start, Started};
use crate::engine::changes::tasks::Turns;
use crate::engine::changes::{cancel, deliver, nodes, retry};
use crate::engine::effects::Courier;
use crate::engine::hunt::Hunter;
use crate::engine::lateness::Lateness;
use crate::engine::live::LiveHandle;
use crate::engine::others::Others;
use crate::engine::schedules::Scheduler;
use crate::store::rows::Fire;
use crate::store::tables::FIRES;
use crate::store::{Rows, effects};
use crate::words::limits;
use crate::words::names::NodeName;
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

#[test]
fn what_would_be_over_its_share_is_left_to_the_others() {
    let rig = Rig::new(&[slot_pool("p", 4)], &[job("a").on("p")]);
    for _ in 0..4 {
        rig.start_unbound("a");
    }
    let claims = |leave_to: u32| {
        let pass = claim::Pass {
            place: rig.engine.place.clone(),
            processes: (0..8).map(|_| rig.process()).collect(),
            rules: super::stage::plain(),
            leave_to,
            turns: Turns::default(),
            shelf: crate::engine::graphs::GraphShelf::default(),
        };
        let book = rig.engine.book();
        rig.change(move |tx| claim::pass(tx, &book, &pass))
    };
    let first = claims(1);
    assert_eq!((first.claimed.len(), first.left), (2, true), "its half");
    let again = claims(1);
    assert_eq!((again.claimed.len(), again.left), (0, true));
    // What only this daemon may claim is nobody else's share.
    rig.complete(&first.claimed[0], Outcome::Succeeded);
    let rest = claims(0);
    assert_eq!((rest.claimed.len(), rest.left), (2, false), "nobody has taken it");
    rig.start("a");
    let own = claims(1);
    assert_eq!((own.claimed.len(), own.left), (1, false));
}
