//! The scheduler over a real store: what is due, what was missed, and what runs once for each boot.

use super::jobs::{JobPlan, job, name, slot_pool, slot_pool_of};
use super::stage::{BEGIN, Daemon, Rig, TENANT, place_of};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::{ConcurrencyPolicy, OnMissed};
use crate::engine::changes::pause;
use crate::engine::follow_ups::FollowUps;
use crate::engine::schedules::Scheduler;
use crate::store::Rows;
use crate::store::rows::Fire;
use crate::store::tables::{FIRES, OWED};
use crate::words::time::Clock;

const MINUTE: u64 = 60_000;

/// Seconds after the beginning, the node, and what became of it.
fn fires(rig: &Rig, job: &str) -> Vec<String> {
    let rows = rig.read(|tx| tx.scan(&FIRES, &(TENANT, name(job)), None, 10_000));
    rows.into_iter()
        .map(|((_, _, at, node), fire)| {
            let word = match fire {
                Fire::Run(_) => "run".to_owned(),
                Fire::CaughtUp(_) => "caught up".to_owned(),
                Fire::Skipped { reason, .. } => reason,
                Fire::Withdrawn { reason, .. } => format!("withdrawn: {reason}"),
            };
            format!("{}{node} {word}", at.since(BEGIN) / 1_000)
        })
        .collect()
}

fn owed(rig: &Rig) -> usize {
    rig.read(|tx| tx.scan(&OWED, &(TENANT,), None, 10_000)).len()
}

fn tick(daemon: &Daemon, scheduler: &mut Scheduler) {
    daemon.wait(scheduler.tick(daemon.clock().now()));
}

/// A daemon's scheduler that has looked at the store once.
fn begun(daemon: &Daemon) -> Scheduler {
    let mut scheduler = Scheduler::new(daemon.engine.clone());
    tick(daemon, &mut scheduler);
    scheduler
}

fn follow_up(rig: &Rig) {
    rig.wait(FollowUps::new(rig.engine.clone()).tick()).unwrap();
}

fn each_minute(on_missed: OnMissed) -> JobPlan {
    job("a")
        .schedule("* * * * *")
        .with(|policy| policy.on_missed = on_missed)
}

#[test]
fn next_fire_strictly_future() {
    let rig = Rig::new(&[], &[each_minute(OnMissed::Skip)]);
    rig.clock().advance(1_000);
    let mut scheduler = begun(&rig);
    assert_eq!(scheduler.next_of(&name("a")), Some(BEGIN.plus(MINUTE)));
    assert!(
        fires(&rig, "a").is_empty(),
        "what was due a second ago is not fired"
    );
    rig.clock().advance(30_000);
    rig.publish(&[each_minute(OnMissed::Skip).command("other")]);
    tick(&rig, &mut scheduler);
    assert_eq!(
        scheduler.next_of(&name("a")),
        Some(BEGIN.plus(MINUTE)),
        "a reload keeps it"
    );
    rig.publish(&[job("a").schedule("*/5 * * * *")]);
    tick(&rig, &mut scheduler);
    assert_eq!(scheduler.next_of(&name("a")), Some(BEGIN.plus(5 * MINUTE)));
    rig.clock().advance(5 * MINUTE - 31_000);
    tick(&rig, &mut scheduler);
    assert_eq!(fires(&rig, "a"), ["300 run"]);
    rig.publish(&[]);
    tick(&rig, &mut scheduler);
    assert_eq!(scheduler.next_of(&name("a")), None);
}

/// Down for three instants, under each policy.
#[test]
fn missed_policy() {
    for (on_missed, expected) in [
        (
            OnMissed::Skip,
            ["60 missed", "120 missed", "180 missed"].as_slice(),
        ),
        (OnMissed::RunOnce, &["60 missed", "120 missed", "180 caught up"]),
        (
            OnMissed::RunAll,
            &["60 caught up", "120 caught up", "180 caught up"],
        ),
    ] {
        let rig = Rig::new(&[], &[each_minute(on_missed)]);
        drop(begun(&rig));
        rig.clock().advance(3 * MINUTE + 30_000);
        let mut scheduler = begun(&rig);
        for _ in 0..3 {
            follow_up(&rig);
            for claimed in rig.pass().claimed {
                assert_eq!(claimed.run.trigger.word(), "catchup");
                rig.complete(&claimed, Outcome::Succeeded);
            }
        }
        assert_eq!(fires(&rig, "a"), expected, "{on_missed:?}");
        assert_eq!(owed(&rig), 0);
        rig.clock().advance(30_000);
        tick(&rig, &mut scheduler);
        assert_eq!(
            fires(&rig, "a").last().unwrap(),
            "240 run",
            "it goes on by itself"
        );
    }
}

#[test]
fn a_clock_that_jumps_two_days_starts_no_storm() {
    for (on_missed, owed_after) in [
        (OnMissed::Skip, 0),
        (OnMissed::RunOnce, 1),
        (OnMissed::RunAll, 100),
    ] {
        let rig = Rig::new(&[], &[each_minute(on_missed)]);
        let mut scheduler = begun(&rig);
        rig.clock().step_wall(2 * 24 * 3_600_000 + 5_000);
        tick(&rig, &mut scheduler);
        assert_eq!(owed(&rig), owed_after);
        let rows = fires(&rig, "a");
        let runs = rows.iter().filter(|row| row.ends_with(" run")).count();
        assert_eq!(runs, 1, "the one that is five seconds late: {rows:?}");
        follow_up(&rig);
        let begun = usize::from(owed_after > 0);
        assert_eq!(rig.pass().claimed.len(), 1 + begun, "one after the other");
    }
}

#[test]
fn m1_down_for_two_hours_a_job_each_minute() {
    let rig = Rig::new(&[], &[each_minute(OnMissed::RunAll)]);
    let mut scheduler = begun(&rig);
    rig.clock().advance(MINUTE);
    tick(&rig, &mut scheduler);
    rig.clock().advance(111 * MINUTE + 59_000);
    drop(begun(&rig));
    assert_eq!(owed(&rig), 100);
    let rows = fires(&rig, "a");
    let missed = rows.iter().filter(|row| row.ends_with("missed")).count();
    assert_eq!((rows.len(), missed), (12, 11), "{rows:?}");
}

#[test]
fn m3_restarted_ninety_minutes_late() {
    for (on_missed, word) in [(OnMissed::Skip, "missed"), (OnMissed::RunOnce, "caught up")] {
        // The rig begins at 18:00; the job is due at 18:10, and nothing of it was ever recorded.
        let plan = job("a")
            .schedule("10 18 * * *")
            .with(|policy| policy.on_missed = on_missed);
        let rig = Rig::new(&[], &[plan]);
        drop(begun(&rig));
        rig.clock().advance(95 * MINUTE);
        let scheduler = begun(&rig);
        follow_up(&rig);
        assert_eq!(fires(&rig, "a"), [format!("600 {word}")]);
        let tomorrow = BEGIN.plus(24 * 60 * MINUTE + 10 * MINUTE);
        assert_eq!(scheduler.next_of(&name("a")), Some(tomorrow));
    }
}

#[test]
fn a_job_that_was_never_seen_has_missed_nothing() {
    let rig = Rig::new(&[], &[job("other")]);
    drop(begun(&rig));
    rig.clock().advance(10 * MINUTE);
    rig.publish(&[each_minute(OnMissed::RunAll)]);
    let mut scheduler = begun(&rig);
    assert_eq!(owed(&rig), 0);
    // Nor has one whose schedule is another one now.
    rig.clock().advance(30_000);
    rig.publish(&[job("a")
        .schedule("@hourly")
        .with(|policy| policy.on_missed = OnMissed::RunAll)]);
    rig.clock().advance(10 * MINUTE);
    drop(begun(&rig));
    rig.publish(&[each_minute(OnMissed::RunAll)]);
    tick(&rig, &mut scheduler);
    assert_eq!((owed(&rig), fires(&rig, "a")), (0, Vec::new()));
}

#[test]
fn what_was_due_while_the_job_was_disabled_owes_nothing() {
    let rig = Rig::new(&[], &[each_minute(OnMissed::RunAll)]);
    let mut scheduler = begun(&rig);
    rig.clock().advance(MINUTE);
    tick(&rig, &mut scheduler);
    let mut disabled = each_minute(OnMissed::RunAll);
    disabled.0.enabled = false;
    for off in [disabled, job("a")] {
        rig.publish(&[off]);
        rig.clock().advance(60 * MINUTE);
        tick(&rig, &mut scheduler);
        rig.publish(&[each_minute(OnMissed::RunAll)]);
        tick(&rig, &mut scheduler);
        assert_eq!((owed(&rig), fires(&rig, "a")), (0, vec!["60 run".to_owned()]));
    }
}

#[test]
fn what_was_due_while_the_job_was_paused_owes_nothing() {
    let rig = Rig::new(&[], &[each_minute(OnMissed::RunAll)]);
    drop(begun(&rig));
    let pause = Pause {
        until: Some(BEGIN.plus(90_000)),
        by: "me".to_owned(),
        note: String::new(),
    };
    rig.change(move |tx| pause::job(tx, &name("a"), Some(&pause)));
    rig.clock().advance(3 * MINUTE + 30_000);
    drop(begun(&rig));
    assert_eq!(fires(&rig, "a"), ["60 job_paused"]);
    assert_eq!(owed(&rig), 2);
}

#[test]
fn missed_moments_run_one_after_the_other_and_go_on_after_a_restart() {
    let rig = Rig::new(&[slot_pool("p", 5)], &[each_minute(OnMissed::RunAll).on("p")]);
    drop(begun(&rig));
    rig.clock().advance(3 * MINUTE + 30_000);
    drop(begun(&rig));
    follow_up(&rig);
    follow_up(&rig);
    let first = rig.claim();
    assert!(rig.pass().claimed.is_empty(), "the next waits for the one before");
    // A restart in between finds nothing twice.
    drop(begun(&rig));
    rig.complete(&first, Outcome::Failed);
    follow_up(&rig);
    let second = rig.claim();
    let (entry, _) = second.slots.clone().unwrap();
    assert_eq!(entry.kind.word(), "catchup");
    assert_eq!(second.run.trigger.scheduled_at(), Some(BEGIN.plus(2 * MINUTE)));
    rig.complete(&second, Outcome::Succeeded);
    follow_up(&rig);
    let third = rig.claim();
    rig.complete(&third, Outcome::Succeeded);
    follow_up(&rig);
    assert_eq!(owed(&rig), 0);
    assert_eq!(
        fires(&rig, "a"),
        ["60 caught up", "120 caught up", "180 caught up"]
    );
}

#[test]
fn a_catch_up_that_waited_too_long_is_tried_again_after_thirty_seconds() {
    let plan = each_minute(OnMissed::RunOnce).on("p").queue_timeout_ms(5_000);
    let rig = Rig::new(&[slot_pool("p", 1)], &[plan, job("b").on("p")]);
    drop(begun(&rig));
    rig.start("b");
    let blocker = rig.claim();
    rig.clock().advance(MINUTE + 30_000);
    drop(begun(&rig));
    follow_up(&rig);
    rig.clock().advance(5_000);
    rig.pass();
    assert_eq!(fires(&rig, "a"), ["60 withdrawn: queue_timeout"]);
    assert_eq!(owed(&rig), 1);
    rig.clock().advance(29_000);
    follow_up(&rig);
    assert_eq!(rig.waiting("p"), 0);
    rig.clock().advance(1_000);
    follow_up(&rig);
    assert_eq!(
        (rig.waiting("p"), fires(&rig, "a")),
        (1, vec!["60 caught up".to_owned()])
    );
    rig.complete(&blocker, Outcome::Succeeded);
    let caught_up = rig.claim();
    rig.complete(&caught_up, Outcome::Succeeded);
    assert_eq!(owed(&rig), 0);
}

#[test]
fn a_catch_up_that_cannot_enter_waits_and_says_why() {
    let plan = each_minute(OnMissed::RunOnce).on("p");
    let rig = Rig::new(&[slot_pool_of("p", 1, 1)], &[plan, job("b").on("p")]);
    drop(begun(&rig));
    rig.start("b");
    rig.clock().advance(MINUTE + 1_000);
    drop(begun(&rig));
    follow_up(&rig);
    let rows = rig.read(|tx| tx.scan(&OWED, &(TENANT,), None, 10));
    assert_eq!(rows[0].1.refused.as_deref(), Some("pool queue is full"));
    assert_eq!(rows[0].1.not_before, rig.wall().plus(30_000));
    assert!(fires(&rig, "a").is_empty(), "it is still owed");
}

#[test]
fn an_owed_moment_older_than_its_deadline_is_skipped() {
    let plan = each_minute(OnMissed::RunAll)
        .policy(ConcurrencyPolicy::Forbid)
        .with(|policy| policy.starting_deadline_ms = Some(100_000));
    let rig = Rig::new(&[], &[plan]);
    drop(begun(&rig));
    rig.clock().advance(3 * MINUTE);
    drop(begun(&rig));
    assert_eq!((fires(&rig, "a"), owed(&rig)), (vec!["60 missed".to_owned()], 2));
    follow_up(&rig);
    let second = rig.claim();
    rig.clock().advance(MINUTE);
    rig.complete(&second, Outcome::Succeeded);
    rig.clock().advance(MINUTE);
    follow_up(&rig);
    assert_eq!(fires(&rig, "a")[2], "180 missed");
    assert_eq!(owed(&rig), 0);
}

#[test]
fn a_removed_job_owes_nothing_any_more() {
    let rig = Rig::new(&[], &[each_minute(OnMissed::RunAll)]);
    drop(begun(&rig));
    rig.clock().advance(2 * MINUTE);
    drop(begun(&rig));
    assert_eq!(owed(&rig), 2);
    rig.publish(&[job("other")]);
    assert_eq!(
        (fires(&rig, "a"), owed(&rig)),
        (vec!["60 missed".to_owned(), "120 missed".to_owned()], 0)
    );
}

#[test]
fn reboot_once_per_boot() {
    let rig = Rig::new(&[], &[job("a").schedule("@reboot")]);
    rig.clock().advance(5_000);
    drop(begun(&rig));
    assert_eq!(fires(&rig, "a").len(), 1);
    let claimed = rig.claim();
    assert_eq!(claimed.run.trigger.word(), "boot");
    rig.complete(&claimed, Outcome::Succeeded);
    rig.clock().advance(60_000);
    drop(begun(&rig));
    assert_eq!(fires(&rig, "a").len(), 1, "a restart of the daemon is no boot");
    let after_boot = rig.daemon_at("n-b", place_of("h", "other boot", 1));
    rig.clock().advance(1);
    drop(begun(&after_boot));
    rig.clock().step_wall(1);
    drop(begun(&after_boot));
    assert_eq!(rig.pass().claimed.len(), 1, "once for the new boot");
}

#[test]
fn every_node_fires_for_itself() {
    let plan = job("a")
        .schedule("* * * * *")
        .with(|policy| policy.every_node = true);
    let rig = Rig::new(&[], &[plan]);
    let other = rig.daemon("n-b");
    let (mut mine, mut theirs) = (begun(&rig), begun(&other));
    rig.clock().advance(MINUTE);
    tick(&rig, &mut mine);
    tick(&other, &mut theirs);
    tick(&other, &mut theirs);
    assert_eq!(fires(&rig, "a"), ["60n-a run", "60n-b run"]);
    let (first, second) = (rig.pass().claimed, other.pass().claimed);
    assert_eq!((first.len(), second.len()), (1, 1));
    assert_eq!(second[0].run.node, Some(other.engine.node.clone()));
    // Only the other daemon was down: only its moments were missed.
    rig.clock().advance(MINUTE);
    tick(&rig, &mut mine);
    rig.clock().advance(30_000);
    drop(begun(&other));
    assert_eq!(fires(&rig, "a")[2..], ["120n-a run", "120n-b missed"]);
}

#[test]
fn a_fire_after_a_failure_is_skipped_when_the_job_asks_for_it() {
    let plan = job("a").with(|policy| policy.only_if_last_succeeded = true);
    let rig = Rig::new(&[], &[plan]);
    rig.fire("a", BEGIN);
    let claimed = rig.claim();
    rig.complete(&claimed, Outcome::Failed);
    rig.clock().advance(MINUTE);
    rig.fire("a", BEGIN.plus(MINUTE));
    assert_eq!(fires(&rig, "a"), ["0 run", "60 last_not_successful"]);
    rig.start("a");
    let by_hand = rig.claim();
    rig.clock().advance(MINUTE);
    rig.complete(&by_hand, Outcome::Succeeded);
    rig.fire("a", BEGIN.plus(2 * MINUTE));
    assert_eq!(fires(&rig, "a")[2], "120 run");
}

#[test]
fn a_fire_beyond_its_starting_deadline_is_skipped() {
    let plan = job("a")
        .schedule("* * * * *")
        .with(|policy| policy.starting_deadline_ms = Some(2_000));
    let rig = Rig::new(&[], &[plan]);
    let mut scheduler = begun(&rig);
    rig.clock().advance(MINUTE + 3_000);
    tick(&rig, &mut scheduler);
    assert_eq!(fires(&rig, "a"), ["60 missed"]);
    rig.clock().advance(MINUTE - 2_000);
    tick(&rig, &mut scheduler);
    assert_eq!(fires(&rig, "a")[1], "120 run");
}

#[test]
fn what_a_queue_timed_out_is_a_skipped_fire() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p").queue_timeout_ms(5_000)]);
    rig.start("a");
    let blocker = rig.claim();
    rig.fire("a", BEGIN);
    rig.clock().advance(5_000);
    rig.pass();
    assert_eq!(fires(&rig, "a"), ["0 withdrawn: queue_timeout"]);
    rig.complete(&blocker, Outcome::Succeeded);
    assert_eq!(rig.told("job.fire.skipped"), 1);
}
