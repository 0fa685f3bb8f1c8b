//! Dead daemons: whose claims are put back at once, whose wait for their lease, whose are given up.

use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::jobs::{job, slot_pool};
use super::stage::{Daemon, Rig, place_of, queued};
use crate::domain::slots::claim::ProcessRef;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::claim::{Claimed, Pass, pass};
use crate::engine::changes::complete::Recorded;
use crate::engine::changes::tasks::Turns;
use crate::engine::hunt::{Hunter, found_in};
use crate::engine::live::marks_of;
use crate::os::proc;
use crate::store::Rows;
use crate::store::tables::{ATTEMPTS, DEAD_STEPS, POISONED_RUNS};
use crate::words::ids::RunId;
use crate::worker::process::StrangerEnd;

fn look(daemon: &Daemon) {
    daemon.wait(Hunter::new(daemon.engine.clone()).look()).unwrap();
}

fn lost(daemon: &Daemon) -> Vec<(u32, u64, Option<String>)> {
    let rows = daemon.read(|tx| tx.scan(&ATTEMPTS, &(), None, 100));
    rows.into_iter()
        .filter(|(_, attempt)| attempt.outcome == Outcome::Lost)
        .map(|((_, _, _, number, fence), attempt)| (number, fence, attempt.reason))
        .collect()
}

#[test]
fn a_dead_daemons_claim_is_put_back_when_its_process_is_gone() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b")]);
    let mut other = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    rig.start_unbound("b");
    let claims = other.pass().claimed;
    look(&rig);
    assert_eq!(rig.used("p"), 1, "its lock is held, so it lives");
    other.die();
    look(&rig);
    assert_eq!(rig.entry_words(&started), "queued: daemon died");
    let daemon_died = || Some(reason::DAEMON_DIED.to_owned());
    let expected: Vec<_> = claims
        .iter()
        .map(|claimed| (1, claimed.claim.fence, daemon_died()))
        .collect();
    assert_eq!(lost(&rig), expected);
    assert_eq!(rig.pass().claimed.len(), 2);
}

#[test]
fn p3_a_slot_held_by_nobody() {
    // The daemon is gone and nobody restarts it: the slots come back without it.
    let rig = Rig::new(
        &[slot_pool("p", 2)],
        &[job("wide").on("p").slots(2), job("a").on("p")],
    );
    let mut other = rig.daemon("n-b");
    rig.start_unbound("wide");
    other.claim();
    rig.start("a");
    assert!(rig.pass().claimed.is_empty());
    other.die();
    look(&rig);
    assert_eq!(rig.used("p"), 0);
    assert_eq!(super::stage::jobs_of(&rig.pass().claimed), ["wide"]);
}

/// The only real processes that these tests hand to a hunter: children of the test, each a group of its own. A hunter ends
/// what a claim names, so a claim of a test names one of these or a number that no machine has.
///
/// A process group of its own with the marks of a claim, as a daemon would have left it.
pub(super) struct LeftOver {
    child: Child,
    pub(super) process: ProcessRef,
}

impl LeftOver {
    pub(super) fn new(fence: u64) -> LeftOver {
        let mut command = Command::new("/bin/sleep");
        command
            .arg("300")
            .env_clear()
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        for (name, value) in marks_of(None, fence) {
            command.env(name, value);
        }
        let child = command.spawn().unwrap();
        let identity = proc::identity_of(child.id()).unwrap();
        let process = ProcessRef {
            pid: identity.pid,
            start_ticks: identity.start_ticks,
            group: identity.group,
        };
        LeftOver { child, process }
    }

    pub(super) fn lives(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }
}

impl Drop for LeftOver {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

pub(super) fn claim_with(daemon: &Daemon, process: ProcessRef) -> Claimed {
    let is_our_child = proc::stat_of(process.pid)
        .unwrap()
        .is_some_and(|stat| stat.parent == proc::own_pid());
    assert!(
        is_our_child && process.group == process.pid,
        "a hunter may signal it, so it must be ours"
    );
    let given = Pass {
        place: daemon.engine.place.clone(),
        processes: vec![process],
        rules: super::stage::plain(),
        leave_to: 0,
        turns: Turns::default(),
        shelf: crate::engine::graphs::GraphShelf::default(),
    };
    let book = daemon.engine.book();
    daemon.change(move |tx| pass(tx, &book, &given)).claimed.remove(0)
}

#[test]
fn the_process_of_a_dead_daemon_is_ended_before_its_work_runs_again() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut other = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    let mut left = LeftOver::new(1);
    claim_with(&other, left.process);
    other.die();
    look(&rig);
    assert!(!left.lives());
    assert_eq!(rig.entry_words(&started), "queued: daemon died");
}

#[test]
fn pid_reused() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut other = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    let mut stranger = LeftOver::new(999);
    let older = ProcessRef {
        start_ticks: stranger.process.start_ticks - 1,
        ..stranger.process
    };
    claim_with(&other, older);
    other.die();
    look(&rig);
    assert!(stranger.lives(), "a number alone is never signalled");
    assert_eq!(rig.entry_words(&started), "queued: daemon died");
}

#[test]
fn process_will_not_end() {
    // What the end of a process reports is invented here: no test may signal a process that is not its own.
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut other = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    other.claim();
    other.die();
    let found = rig.read(found_in).remove(0);
    let mut hunter = Hunter::new(rig.engine.clone());
    let mut after = |end| rig.wait(hunter.after_end(&found, end)).unwrap();
    let stuck = || StrangerEnd::WillNotEnd {
        pids: vec![100_000_001],
    };
    rig.clock().advance(29_999);
    assert!(!after(stuck()));
    assert_eq!(rig.entry_words(&started), "running", "not before the lease end");
    rig.clock().advance(1);
    assert!(after(stuck()));
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
}

#[test]
fn a_stopped_owner_keeps_no_second_copy_alive() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    // It lives: its lock is held. It renews nothing.
    let owner = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    let mut left = LeftOver::new(1);
    claim_with(&owner, left.process);
    rig.clock().advance(29_999);
    look(&rig);
    assert!(left.lives() && rig.entry_words(&started) == "running");
    rig.clock().advance(1);
    look(&rig);
    assert!(!left.lives(), "ended before the work runs again");
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
}

#[test]
fn reboot_readmits() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut before = rig.daemon_at("n-b", place_of("h", "older", 7));
    let started = rig.start_unbound("a");
    let mut innocent = LeftOver::new(1);
    claim_with(&before, innocent.process);
    before.die();
    look(&rig);
    assert_eq!(rig.entry_words(&started), "queued: daemon died");
    assert!(innocent.lives(), "a number of another boot is never signalled");
}

#[test]
fn unseen_process_waits_lease() {
    for place in [place_of("other", "b", 1), place_of("h", "b", 2)] {
        let same_clock = place.clock == super::stage::place().clock;
        let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
        let mut other = rig.daemon_at("n-b", place);
        let started = rig.start_unbound("a");
        let mut innocent = LeftOver::new(1);
        claim_with(&other, innocent.process);
        other.die();
        let mut hunter = Hunter::new(rig.engine.clone());
        rig.clock().advance(29_999);
        rig.wait(hunter.look()).unwrap();
        assert_eq!(rig.entry_words(&started), "running");
        assert!(same_clock);
        rig.clock().advance(1);
        rig.wait(hunter.look()).unwrap();
        assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
        assert!(innocent.lives());
    }
}

#[test]
fn a_lease_under_another_clock_lapses_when_it_has_not_moved() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut other = rig.daemon_at("n-b", place_of("other", "other", 1));
    let started = rig.start_unbound("a");
    let claimed = other.claim();
    let mut hunter = Hunter::new(rig.engine.clone());
    rig.clock().advance(600_000);
    rig.wait(hunter.look()).unwrap();
    assert_eq!(rig.entry_words(&started), "running", "seen for the first time");
    rig.clock().advance(29_999);
    assert!(other.renew(&[super::stage::renewal(&claimed)])[0].is_some());
    rig.wait(hunter.look()).unwrap();
    rig.clock().advance(29_999);
    rig.wait(hunter.look()).unwrap();
    assert_eq!(rig.entry_words(&started), "running", "it moved");
    other.die();
    rig.clock().advance(1);
    rig.wait(hunter.look()).unwrap();
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
}

#[test]
fn crash_limit() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start_unbound("a");
    let run = queued(&started).1;
    for death in 1..=5 {
        let mut other = rig.daemon("n-b");
        assert_eq!(other.claim().number, 1, "death {death}");
        other.die();
        look(&rig);
    }
    assert_eq!(
        rig.entry_words(&started),
        format!("cancelled: {}", reason::CRASH_LIMIT)
    );
    assert_eq!(rig.run_words(run), format!("failed: {}", reason::CRASH_LIMIT));
    assert_eq!(rig.entry(queued(&started).0).readmitted, 4);
    let poisoned = rig.read(|tx| tx.scan(&POISONED_RUNS, &(), None, 10));
    assert_eq!(poisoned.iter().map(|((_, id), _)| *id).collect::<Vec<_>>(), [run]);
    assert_eq!(rig.told("run.poisoned"), 1);
    assert_eq!(dead_steps(&rig), [(run, "main".to_owned(), 5)]);
    assert_eq!(lost(&rig).len(), 5);
    assert!(
        rig.pass_with(1, super::stage::plain()).claimed.is_empty(),
        "not a sixth time"
    );
}

/// The dead letters that are steps: run, step, deaths.
fn dead_steps(rig: &Rig) -> Vec<(RunId, String, u32)> {
    let rows = rig.read(|tx| tx.scan(&DEAD_STEPS, &(), None, 10));
    let each = rows.into_iter();
    each.map(|((_, run, step), row)| (run, step.to_string(), row.deaths))
        .collect()
}

#[test]
fn a_poison_step_stands_in_the_dead_letters_once() {
    let mut rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("free")]);
    for name in ["a", "free"] {
        rig.start_unbound(name);
    }
    let mut third = rig.daemon("n-c");
    for _ in 1..=5 {
        let mut other = rig.daemon("n-b");
        let claimed = other.pass_with(2, super::stage::plain()).claimed;
        assert_eq!(
            claimed.iter().map(|claimed| claimed.number).collect::<Vec<_>>(),
            [1, 1]
        );
        other.die();
        // Two daemons look after what the dead one left, one after the other and more than once.
        for daemon in [&*rig, &third, &*rig] {
            rig.wait(Hunter::new(daemon.engine.clone()).look()).unwrap();
        }
    }
    let listed = dead_steps(&rig);
    assert_eq!(listed.len(), 2, "{listed:?}");
    // Who comes after a restart finds it so, and adds nothing.
    third.die();
    rig.die_first();
    let after = rig.daemon("n-d");
    rig.wait(Hunter::new(after.engine.clone()).settle_own()).unwrap();
    rig.wait(Hunter::new(after.engine.clone()).look()).unwrap();
    assert_eq!(dead_steps(&rig), listed);
    assert_eq!(rig.told("run.poisoned"), 2);
}

#[test]
fn lapses_and_clean_stops_poison_nothing() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start("a");
    for _ in 0..6 {
        let claimed = rig.claim();
        rig.settle(&claimed, reason::LEASE_LAPSED, false);
        let claimed = rig.claim();
        rig.put_back(&claimed, reason::LAUNCH_INTERRUPTED);
    }
    assert_eq!(rig.entry_words(&started), "queued: launch interrupted");
    assert_eq!(rig.entry(queued(&started).0).readmitted, 0);
}

#[test]
fn orphan_hunt_excludes_restart() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut before = rig.daemon("n-b");
    let started = rig.start_unbound("a");
    let claimed = before.claim();
    before.die();
    let after = rig.daemon("n-b");
    // n-a is cleaning up after n-b right now, and n-b comes back: it must not begin before that is over.
    let cleaning = rig.engine.directory.lock_clean_up(&after.engine.node).unwrap();
    assert!(cleaning.is_some());
    let mut hunter = Hunter::new(after.engine.clone());
    let early =
        after.wait(async { tokio::time::timeout(Duration::from_millis(300), hunter.settle_own()).await });
    assert!(early.is_err(), "it waits for the clean-up lock");
    assert_eq!(
        rig.settle(&claimed, reason::DAEMON_DIED, true),
        rig_done(&rig, queued(&started).1)
    );
    drop(cleaning);
    let settled =
        after.wait(async { tokio::time::timeout(Duration::from_secs(30), hunter.settle_own()).await });
    assert_eq!(settled.unwrap().unwrap(), 0, "the other one did it");
    assert_eq!(rig.entry(queued(&started).0).readmitted, 1, "once");
    // And the other way round: n-b has begun, so the hunt of n-a leaves its claims alone.
    let again = after.claim();
    look(&rig);
    assert_eq!(rig.entry_words(&started), "running");
    assert!(matches!(
        after.complete(&again, Outcome::Succeeded),
        Recorded::Done(_)
    ));
}

fn rig_done(rig: &Rig, run: crate::words::ids::RunId) -> Recorded {
    Recorded::Done(Box::new(rig.run(run).0))
}

#[test]
fn a_restarted_daemon_settles_its_own_claims() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let mut before = rig.daemon("n-b");
    let started = before.start("a");
    before.claim();
    before.die();
    let after = rig.daemon("n-b");
    let settled = after.wait(Hunter::new(after.engine.clone()).settle_own());
    assert_eq!(settled.unwrap(), 1);
    assert_eq!(after.entry_words(&started), "queued: daemon died");
    assert_eq!(after.claim().number, 1);
}

/// A daemon that stood still longer than its lease must not begin a second copy while its own first one is still ending.
#[test]
fn an_owner_ends_its_own_process_before_it_lets_go() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start("a");
    let claimed = rig.claim();
    let _stops = super::lease_tests::hold(&rig, &claimed);
    let mut hunter = Hunter::new(rig.engine.clone());
    rig.clock().advance(36_000);
    rig.wait(hunter.look()).unwrap();
    assert_eq!(
        rig.entry_words(&started),
        "running",
        "its task still looks after it"
    );
    // The group is gone; only the completion is missing now, and the lease is over.
    let fence = claimed.claim.fence;
    rig.engine
        .live
        .update_lease(fence, |lease| lease.renewing = false);
    rig.wait(hunter.look()).unwrap();
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
}
