//! Leases, fences and completions: who may still write what about a claim.

use std::time::Duration;

use proptest::prelude::*;
use tokio::sync::watch;

use super::jobs::{job, slot_pool};
use super::stage::{Daemon, Rig, by_hand, holder, queued, renewal};
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::complete::{Recorded, put_back};
use crate::engine::changes::start::{self, Start};
use crate::engine::leases::LeaseKeeper;
use crate::engine::live::{HeldLease, LiveHandle};
use crate::store::Rows;
use crate::store::tables::{ATTEMPTS, META, SLOT_RUNNING};
use crate::words::limits;
use crate::worker::command::Stop;

/// Puts a claim among the executions of its daemon; how it is asked to stop comes back.
pub(super) fn hold(daemon: &Daemon, claimed: &Claimed) -> watch::Receiver<Option<Stop>> {
    let (stop, stops) = watch::channel(None);
    let (entry, lease) = claimed.slots.as_ref().unwrap();
    let lease = HeldLease {
        renewal: renewal(claimed),
        entry: entry.id,
        until: lease.until,
        renewing: true,
        lost: false,
    };
    let handle = LiveHandle {
        run: claimed.run.id,
        step: claimed.step.clone(),
        job: claimed.run.definition.clone(),
        number: claimed.number,
        claimed_at: claimed.claim.claimed_at,
        stop,
        log_size: watch::channel(0).1,
        lease: Some(lease),
    };
    daemon.engine.live.add(claimed.claim.fence, handle);
    stops
}

#[test]
fn renewal_touches_only_its_rows() {
    let rig = Rig::new(&[slot_pool("p", 4)], &[job("a").on("p")]);
    for _ in 0..4 {
        rig.start("a");
    }
    let claims = rig.pass().claimed;
    let wishes: Vec<Start> = (0..1_000).map(|_| rig.wish("a", by_hand())).collect();
    let book = rig.engine.book();
    rig.change(move |tx| {
        for wish in &wishes {
            start::start(tx, &book, wish)?;
        }
        Ok(())
    });
    rig.clock().advance(5_000);
    let renewals: Vec<_> = claims.iter().map(renewal).collect();
    let node = rig.engine.node.clone();
    let before = rig.everything();
    let commits = rig.engine.store.stats().commits;
    let (leases, rows) = rig.counted(move |tx| crate::engine::changes::renew::renew(tx, &node, &renewals));
    assert_eq!((leases.iter().flatten().count(), rows), (4, 4));
    assert_eq!(rig.engine.store.stats().commits, commits + 1);
    let after = rig.everything();
    let changed = after.iter().filter(|row| !before.contains(row));
    let tables: Vec<usize> = changed.map(|(table, _, _)| *table).collect();
    assert_eq!(
        tables,
        [vec![META.index(); 2], vec![SLOT_RUNNING.index(); 4]].concat(),
        "and the sequence, and that it has landed"
    );
}

#[test]
fn renewal_moves_the_end_and_counts() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.start("a");
    let claimed = rig.claim();
    let begun = claimed.slots.as_ref().unwrap().1.clone();
    rig.clock().advance(5_000);
    let lease = rig.renew(&[renewal(&claimed)]).remove(0).unwrap();
    assert_eq!((begun.until.until(lease.until), lease.renewals), (5_000, 1));
}

#[test]
fn other_owner_kills_at_once() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start_unbound("a");
    let claimed = rig.claim();
    let stops = hold(&rig, &claimed);
    let keeper = LeaseKeeper::new(rig.engine.clone());
    rig.wait(keeper.renew_once()).unwrap();
    assert_eq!(*stops.borrow(), None);
    // The lease lapses, another daemon puts it back and claims it.
    rig.clock().advance(36_000);
    let other = rig.daemon("n-b");
    other.settle(&claimed, reason::LEASE_LAPSED, false);
    let second = other.claim();
    assert!(second.claim.fence > claimed.claim.fence);
    let rows = rig.everything();
    rig.wait(keeper.renew_once()).unwrap();
    assert_eq!(
        *stops.borrow(),
        Some(Stop::LeaseLost {
            kill_within_ms: limits::LOST_KILL_MAX_MS
        })
    );
    // The runner then puts back what it no longer holds.
    let (holder, attempt) = (holder(&claimed), rig.attempt(&claimed, Outcome::Lost));
    let late = rig.change(move |tx| put_back(tx, &holder, reason::DAEMON_STOPPED, false, Some(&attempt)));
    assert_eq!(late, Recorded::Stale);
    assert_eq!(rig.everything(), rows, "the entry is untouched");
    assert_eq!(rig.entry_words(&started), "running");
    let lost = rig.read(|tx| tx.scan(&ATTEMPTS, &(), None, 10));
    assert_eq!(lost.len(), 1);
    assert_eq!(
        (lost[0].0.4, lost[0].1.outcome),
        (claimed.claim.fence, Outcome::Lost)
    );
}

#[test]
fn a_lease_that_cannot_be_kept_is_given_up_before_its_end() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.start("a");
    let claimed = rig.claim();
    let stops = hold(&rig, &claimed);
    let keeper = LeaseKeeper::new(rig.engine.clone());
    rig.engine
        .store
        .faults()
        .plan("renew.before", crate::os::failpoint::Fault::Error, 1);
    rig.clock().advance(24_999);
    assert!(rig.wait(keeper.renew_once()).is_err());
    keeper.judge_all();
    assert_eq!(*stops.borrow(), None, "one failed renewal hurts nobody");
    rig.clock().advance(1);
    keeper.judge_all();
    assert_eq!(
        *stops.borrow(),
        Some(Stop::LeaseLost {
            kill_within_ms: 4_000
        })
    );
    rig.wait(keeper.renew_once()).unwrap();
    assert_eq!(rig.entry(claimed.slots.unwrap().0.id).state.word(), "running");
}

#[test]
fn completion_after_lapse() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start("a");
    let claimed = rig.claim();
    rig.clock().advance(30_000);
    rig.settle(&claimed, reason::LEASE_LAPSED, false);
    let rows = rig.everything();
    assert_eq!(rig.complete(&claimed, Outcome::Succeeded), Recorded::Stale);
    assert_eq!(rig.everything(), rows);
    assert_eq!(rig.entry_words(&started), "queued: lease lapsed");
    let again = rig.claim();
    assert_eq!((again.number, again.run.id), (1, queued(&started).1));
    rig.complete(&again, Outcome::Succeeded);
    assert_eq!(rig.run_words(again.run.id), "succeeded");
}

#[test]
fn a_completion_before_the_lapse_counts() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start("a");
    let claimed = rig.claim();
    rig.clock().advance(29_999);
    rig.complete(&claimed, Outcome::Succeeded);
    assert_eq!(rig.settle(&claimed, reason::LEASE_LAPSED, false), Recorded::Stale);
    assert_eq!(rig.entry_words(&started), "finished");
}

/// One way in which a claim may come to its end.
#[derive(Debug, Clone, Copy)]
enum End {
    Complete,
    LeaseLapsed,
    DaemonDied,
    Interrupted,
    Restart,
}

fn ends() -> impl Strategy<Value = Vec<End>> {
    let one = prop_oneof![
        Just(End::Complete),
        Just(End::LeaseLapsed),
        Just(End::DaemonDied),
        Just(End::Interrupted),
        Just(End::Restart)
    ];
    proptest::collection::vec(one, 1..12)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..ProptestConfig::default() })]

    #[test]
    fn fence_monotonic(ends in ends()) {
        let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b")]);
        let mut daemon = rig.daemon("n-b");
        let mut newest = 0;
        for end in ends {
            if rig.waiting("p") == 0 && rig.used("p") == 0 {
                rig.start_unbound("a");
            }
            rig.start_unbound("b");
            let claims = daemon.pass().claimed;
            for claimed in &claims {
                prop_assert!(claimed.claim.fence > newest, "{} after {newest}", claimed.claim.fence);
                newest = claimed.claim.fence;
            }
            for claimed in &claims {
                match end {
                    End::Complete => drop(daemon.complete(claimed, Outcome::Failed)),
                    End::LeaseLapsed => drop(rig.settle(claimed, reason::LEASE_LAPSED, false)),
                    End::DaemonDied => drop(rig.settle(claimed, reason::DAEMON_DIED, true)),
                    End::Interrupted => drop(daemon.put_back(claimed, reason::LAUNCH_INTERRUPTED)),
                    End::Restart => {
                        daemon.die();
                        daemon = rig.daemon("n-b");
                        rig.settle(claimed, reason::DAEMON_DIED, true);
                    }
                }
            }
        }
    }

    #[test]
    fn late_fence_rejected(words in proptest::collection::vec(0..4u8, 1..6), ended in proptest::bool::ANY) {
        let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
        rig.start("a");
        let old = rig.claim();
        rig.settle(&old, reason::LEASE_LAPSED, false);
        let new = rig.claim();
        if ended {
            rig.complete(&new, Outcome::Succeeded);
        }
        let rows = rig.everything();
        for word in words {
            let answer = match word {
                0 => rig.complete(&old, Outcome::Succeeded),
                1 => rig.put_back(&old, reason::LAUNCH_INTERRUPTED),
                2 => rig.settle(&old, reason::DAEMON_DIED, true),
                _ => {
                    prop_assert_eq!(rig.renew(&[renewal(&old)]), [None]);
                    continue;
                }
            };
            prop_assert_eq!(answer, Recorded::Stale);
        }
        prop_assert_eq!(rig.everything(), rows);
    }
}

#[test]
fn claim_too_old_at_gate() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p").command("touch never")]);
    let started = rig.start("a");
    let mut passed = rig.pass();
    let claimed = passed.claimed.remove(0);
    rig.clock().advance(26_000);
    let shim = rig
        .wait(async { crate::worker::process::Shim::spawn(std::path::Path::new("/bin/cat")) })
        .unwrap();
    rig.wait(async {
        crate::engine::runner::spawn(&rig.engine, claimed, shim);
        until_idle(&rig).await;
    });
    assert_eq!(rig.entry_words(&started), "queued: launch interrupted");
    assert_eq!(rig.raw(&ATTEMPTS), [], "nothing has run");
    assert_eq!(rig.used("p"), 0);
    assert_eq!(rig.claim().number, 1);
}

/// A completion that cannot be written at first is kept and written; the lease only runs on meanwhile.
#[cfg(debug_assertions)]
#[test]
fn completion_kept_and_written() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    let started = rig.start("a");
    let claimed = rig.claim();
    let (fence, run, step) = (claimed.claim.fence, claimed.run.id, claimed.step.clone());
    let until = claimed.slots.as_ref().unwrap().1.until;
    let faults = rig.engine.store.faults();
    faults.plan("complete.before", crate::os::failpoint::Fault::Error, 2);
    let program = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/engine/rig/stand_in.sh");
    let keeper = LeaseKeeper::new(rig.engine.clone());
    rig.wait(async {
        let shim = crate::worker::process::Shim::spawn(&program).unwrap();
        crate::engine::runner::spawn(&rig.engine, claimed, shim);
        // After the first failure nobody renews any more.
        let given_up = async {
            while rig.engine.live.leases().iter().any(|(_, lease)| lease.renewing) {
                tokio::task::yield_now().await;
            }
        };
        tokio::time::timeout(Duration::from_secs(30), given_up)
            .await
            .unwrap();
        rig.clock().advance(29_000);
        let commits = rig.engine.store.stats().commits;
        keeper.renew_once().await.unwrap();
        keeper.judge_all();
        let held = rig.engine.live.leases().remove(0).1;
        assert_eq!((held.renewing, held.lost, held.until), (false, false, until));
        assert_eq!(rig.engine.store.stats().commits, commits, "no renewal");
        until_idle(&rig).await;
    });
    assert!(
        faults.check("complete.before").is_ok(),
        "both faults have happened"
    );
    assert_eq!(rig.entry_words(&started), "finished");
    assert_eq!(rig.run_words(run), "succeeded");
    assert_eq!(rig.raw(&ATTEMPTS).len(), 1);
    let log = crate::store::logs::path_of(&rig.engine.directory.logs(), run, &step, 1, fence);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "o ran\n", "once");
    assert_eq!(rig.used("p"), 0);
}

/// Until the daemon's executions have ended; each end is an event, no sleep orders anything.
async fn until_idle(daemon: &Daemon) {
    let ended = async {
        loop {
            let changed = daemon.engine.live.changed();
            if daemon.engine.live.is_empty() {
                return;
            }
            changed.await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), ended)
        .await
        .unwrap();
}
