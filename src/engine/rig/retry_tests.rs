//! Retries: further attempts of one run, what ends them, and what happens to them when the store is away.

use super::jobs::{JobPlan, job, name, slot_pool, slot_pool_of};
use super::stage::{BEGIN, Rig, TENANT, by_hand, plain, queued};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::domain::workflow::run::Trigger;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::start::{Start, Started};
use crate::engine::changes::{cancel, retry};
use crate::engine::follow_ups::FollowUps;
use crate::engine::schedules::Scheduler;
use crate::os::failpoint::Fault;
use crate::store::Rows;
use crate::store::tables::{ATTEMPTS, RETRY_RIGHTS};
use crate::words::ids::RunId;
use crate::words::time::{Clock, Millis};

fn later(ms: u64) -> Millis {
    BEGIN.plus(ms)
}

/// Brings back what is due, as the loop does.
fn follow_up(rig: &Rig) -> Option<Millis> {
    rig.wait(FollowUps::new(rig.engine.clone()).tick()).unwrap()
}

fn run_of(started: &Started) -> RunId {
    if let Started::Queued { run, .. } | Started::Ready { run } = started {
        return *run;
    }
    panic!("{started:?} is no run")
}

fn step_words(rig: &Rig, run: RunId) -> String {
    let (header, step) = rig.run(run);
    format!("{} {} {}", header.state.word(), step.phase.word(), step.attempt)
}

fn attempts_of(rig: &Rig, run: RunId) -> Vec<u32> {
    let rows = rig.read(|tx| tx.scan(&ATTEMPTS, &(TENANT, run), None, 100));
    rows.into_iter().map(|((_, _, _, number, _), _)| number).collect()
}

fn fail(rig: &Rig) -> Claimed {
    let claimed = rig.claim();
    rig.complete(&claimed, Outcome::Failed);
    claimed
}

fn retried(most: u32) -> JobPlan {
    job("a").on("p").retries(most)
}

#[test]
fn a_failed_attempt_is_followed_by_others_until_they_are_used_up() {
    for pooled in [true, false] {
        let plan = if pooled { retried(2) } else { job("a").retries(2) };
        let rig = Rig::new(&[slot_pool("p", 1)], &[plan]);
        let run = run_of(&rig.fire("a", BEGIN));
        fail(&rig);
        assert_eq!(step_words(&rig, run), "running retrying 2");
        assert_eq!(rig.used("p"), 0, "a step in back-off holds no slots");
        assert_eq!(follow_up(&rig), Some(later(1_000)), "its time has not come");
        rig.clock().advance(1_000);
        assert_eq!(follow_up(&rig), None);
        assert_eq!(fail(&rig).number, 2);
        assert_eq!(follow_up(&rig), Some(later(3_000)), "twice as long");
        rig.clock().advance(2_000);
        follow_up(&rig);
        assert_eq!(fail(&rig).number, 3);
        assert_eq!(step_words(&rig, run), "failed failed 3");
        assert_eq!(attempts_of(&rig, run), [1, 2, 3]);
        assert!(rig.read(|tx| tx.get(&RETRY_RIGHTS, &(TENANT, run))).is_none());
    }
}

#[test]
fn a_retry_that_succeeds_makes_the_run_a_success() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(1)]);
    let run = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.clock().advance(1_000);
    follow_up(&rig);
    let again = rig.claim();
    let (entry, _) = again.slots.clone().unwrap();
    assert_eq!((entry.kind.word(), entry.attempt), ("retry", 2));
    rig.complete(&again, Outcome::Succeeded);
    assert_eq!(step_words(&rig, run), "succeeded succeeded 2");
}

#[test]
fn retry_waits_without_attempt() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[retried(1), job("b").on("p")]);
    let run = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.start("b");
    let blocker = rig.claim();
    let waits = rig.start("b");
    rig.clock().advance(1_000);
    follow_up(&rig);
    assert_eq!(step_words(&rig, run), "running retrying 2", "the number stays");
    let (_, step) = rig.run(run);
    assert!(
        format!("{:?}", step.phase).contains("pool queue is full"),
        "{step:?}"
    );
    rig.complete(&blocker, Outcome::Succeeded);
    let claimed = rig.claim();
    assert_eq!(Some(claimed.run.id), Some(queued(&waits).1));
    assert_eq!(follow_up(&rig), Some(later(2_000)), "a second later, not at once");
    rig.clock().advance(1_000);
    follow_up(&rig);
    assert_eq!(step_words(&rig, run), "running queued 2");
    rig.complete(&claimed, Outcome::Succeeded);
    assert_eq!(rig.claim().number, 2, "as the same attempt");
}

#[test]
fn fire_supersedes_retry() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(5)]);
    let in_back_off = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    let second = run_of(&rig.fire("a", later(60_000)));
    assert_eq!(rig.run_words(in_back_off), "failed: retry superseded");
    fail(&rig);
    rig.clock().advance(1_000);
    follow_up(&rig);
    assert_eq!(step_words(&rig, second), "running queued 2");
    let third = rig.fire("a", later(120_000));
    assert_eq!(rig.run_words(second), "failed: retry superseded");
    assert_eq!(rig.waiting("p"), 1, "the queued retry left in the same change");
    assert_eq!(rig.entry_words(&third), "queued");
    assert_eq!(attempts_of(&rig, second), [1]);
}

#[test]
fn a_run_older_than_a_fire_fails_without_another_attempt() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[retried(5)]);
    let old = run_of(&rig.fire("a", BEGIN));
    let claimed = rig.claim();
    rig.fire("a", later(60_000));
    rig.complete(&claimed, Outcome::Failed);
    assert_eq!(step_words(&rig, old), "failed failed 1");
}

#[test]
fn a_full_pool_drops_the_fire_and_settles_all_the_same() {
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[retried(5), job("b").on("p")]);
    let old = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.start("b");
    let Started::Refused(_) = rig.fire("a", later(60_000)) else {
        panic!("{}", rig.snapshot());
    };
    assert_eq!(rig.run_words(old), "failed: retry superseded");
}

#[test]
fn a_success_settles_what_waits() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(5)]);
    let run = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.start("a");
    let by_hand = rig.claim();
    rig.complete(&by_hand, Outcome::Succeeded);
    assert_eq!(rig.run_words(run), "failed: retry succeeded");
}

#[test]
fn an_older_success_leaves_the_newer_retry_alone() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[retried(5)]);
    rig.fire("a", BEGIN);
    let old = rig.claim();
    let new = run_of(&rig.fire("a", later(60_000)));
    fail(&rig);
    rig.complete(&old, Outcome::Succeeded);
    assert_eq!(step_words(&rig, new), "running retrying 2");
}

#[test]
fn retries_cancel_ends_what_waits_and_what_would_follow() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[retried(5)]);
    let waits = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    let wish = Start {
        retries: true,
        ..rig.wish("a", by_hand())
    };
    let own = run_of(&rig.begin_run(&wish).unwrap());
    let claimed = rig.claim();
    let ended = rig.change(|tx| retry::cancel(tx, &name("a")));
    assert_eq!(ended, 1);
    assert_eq!(rig.run_words(waits), "failed: retry cancelled");
    rig.complete(&claimed, Outcome::Failed);
    assert_eq!(step_words(&rig, own), "failed failed 1");
    assert_eq!(rig.change(|tx| retry::cancel(tx, &name("a"))), 0);
}

#[test]
fn a_start_by_hand_has_retries_only_when_it_asks() {
    let rig = Rig::new(&[slot_pool("p", 2)], &[retried(5)]);
    let plain_start = run_of(&rig.start("a"));
    fail(&rig);
    assert_eq!(step_words(&rig, plain_start), "failed failed 1");
    let wish = Start {
        retries: true,
        ..rig.wish("a", by_hand())
    };
    let own = run_of(&rig.begin_run(&wish).unwrap());
    fail(&rig);
    rig.fire("a", later(60_000));
    assert_eq!(
        step_words(&rig, own),
        "running retrying 2",
        "no fire settles them"
    );
    rig.clock().advance(1_000);
    follow_up(&rig);
    assert_eq!(step_words(&rig, own), "running queued 2");
}

#[test]
fn a_cancelled_run_in_back_off_is_cancelled() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(5)]);
    let run = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.change(move |tx| cancel::run(tx, run, "me"));
    assert_eq!(rig.run_words(run), "cancelled: cancelled by me");
    rig.clock().advance(60_000);
    assert_eq!(follow_up(&rig), None);
}

#[test]
fn a_changed_job_and_a_passed_deadline_end_retries() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(5)]);
    let run = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    rig.publish(&[retried(5).command("other")]);
    rig.clock().advance(1_000);
    follow_up(&rig);
    let gone = format!("failed: {}", reason::DEFINITION_GONE);
    assert_eq!(rig.run_words(run), gone);

    let hasty = retried(5).with(|policy| policy.starting_deadline_ms = Some(2_000));
    let rig = Rig::new(&[slot_pool("p", 1)], &[hasty]);
    let run = run_of(&rig.fire("a", BEGIN));
    rig.clock().advance(1_500);
    fail(&rig);
    rig.clock().advance(1_000);
    follow_up(&rig);
    let late = format!("failed: {}", reason::DEADLINE_PASSED);
    assert_eq!(rig.run_words(run), late);
}

#[test]
fn an_unpooled_forbid_job_in_back_off_lets_the_next_fire_go() {
    let plan = job("a").policy(ConcurrencyPolicy::Forbid).retries(5);
    let rig = Rig::new(&[], &[plan]);
    let old = run_of(&rig.fire("a", BEGIN));
    fail(&rig);
    let Started::Ready { .. } = rig.fire("a", later(60_000)) else {
        panic!("{}", rig.snapshot());
    };
    assert_eq!(rig.run_words(old), "failed: retry superseded");
}

#[test]
fn daemon_deaths_count_for_each_attempt_anew() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[retried(5)]);
    let run = run_of(&rig.fire("a", BEGIN));
    let claimed = rig.claim();
    rig.settle(&claimed, reason::DAEMON_DIED, true);
    assert_eq!(rig.run(run).1.deaths, 1);
    fail(&rig);
    assert_eq!(rig.run(run).1.deaths, 0);
}

/// The store is down when the newer moment is due; its settlement comes with the next reach of the store.
#[test]
fn settlement_deferred_applies() {
    for moved in [false, true] {
        let plan = retried(5).schedule("* * * * *");
        let rig = Rig::new(&[slot_pool("p", 1)], &[plan]);
        let mut scheduler = Scheduler::new(rig.engine.clone());
        rig.wait(scheduler.tick(rig.clock().now()));
        let old = run_of(&rig.fire("a", BEGIN));
        fail(&rig);
        rig.clock().advance(60_000);
        rig.engine
            .store
            .faults()
            .plan("store.begin", Fault::Error, u32::MAX);
        rig.wait(scheduler.tick(rig.clock().now()));
        assert_eq!(rig.engine.deferred.waiting().len(), 1);
        rig.engine.store.faults().clear("store.begin");
        if moved {
            let newer = run_of(&rig.fire("a", later(61_000)));
            fail(&rig);
            follow_up(&rig);
            assert_eq!(
                step_words(&rig, newer),
                "running retrying 2",
                "its generation is newer"
            );
        } else {
            follow_up(&rig);
            assert_eq!(rig.run_words(old), "failed: retry superseded");
        }
        assert!(rig.engine.deferred.waiting().is_empty());
    }
}

#[test]
fn another_daemons_retry_waits_for_it() {
    let plan = job("a")
        .on("p")
        .retries(5)
        .with(|policy| policy.every_node = true);
    let rig = Rig::new(&[slot_pool("p", 2)], &[plan]);
    let other = rig.daemon("n-b");
    let wish = Start {
        node: Some(other.engine.node.clone()),
        ..other.wish("a", Trigger::Schedule { instant: BEGIN })
    };
    let run = run_of(&other.begin_run(&wish).unwrap());
    let claimed = other.claim();
    other.complete(&claimed, Outcome::Failed);
    rig.clock().advance(1_000);
    assert_eq!(follow_up(&rig), None, "it is due and not ours");
    assert_eq!(step_words(&rig, run), "running retrying 2");
    rig.wait(FollowUps::new(other.engine.clone()).tick()).unwrap();
    assert_eq!(step_words(&rig, run), "running queued 2");
    assert!(rig.pass_with(1, plain()).claimed.is_empty());
    assert_eq!(other.claim().number, 2);
}
