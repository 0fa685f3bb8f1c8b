//! A restored store beside the daemon that its backup was made of: no process of that daemon is touched, no work is lost.

use std::path::{Path, PathBuf};

use super::crash_tests::{LeftOver, claim_with};
use super::jobs::{job, slot_pool};
use super::stage::{Daemon, Rig, queued};
use crate::domain::workflow::attempt::Outcome;
use crate::engine::hunt::Hunter;
use crate::store::restore::{self, Restored};
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS, META, NODES};
use crate::store::{Rows, backup, check};
use crate::words::limits;

struct Restore {
    _folder: tempfile::TempDir,
    into: PathBuf,
    restored: Restored,
}

fn backed_up_and_restored(rig: &Rig) -> Restore {
    let folder = tempfile::tempdir().unwrap();
    let (file, into) = (folder.path().join("backup"), folder.path().join("state"));
    backup::write(&rig.engine.store, &file).unwrap();
    let restored = restore::restore(&file, &into, false, rig.engine.now()).unwrap();
    Restore {
        _folder: folder,
        into,
        restored,
    }
}

/// The daemon writes about itself at its start.
fn introduce(daemon: &Daemon) {
    use crate::store::rows::NodeRecord;
    let (node, now) = (daemon.engine.node.clone(), daemon.wall());
    let place = daemon.engine.place.clone();
    daemon.change(move |tx| {
        let record = NodeRecord {
            generated: false,
            host: place.host.clone(),
            boot_id: place.boot_id.clone(),
            pid_namespace: place.pid_namespace,
            pid: 1,
            start_ticks: 1,
            started_at: now,
            last_seen: now,
        };
        tx.put(&NODES, &(node.clone(),), &record)?;
        Ok(())
    });
}

fn look(daemon: &Daemon, hunter: &mut Hunter) {
    introduce(daemon);
    daemon.wait(hunter.look()).unwrap();
}

fn live(daemon: &Daemon) -> usize {
    daemon.read(|tx| tx.scan(&LIVE_ATTEMPTS, &(), None, 10)).len()
}

fn lost(daemon: &Daemon) -> Vec<Option<String>> {
    let rows = daemon.read(|tx| tx.scan(&ATTEMPTS, &(), None, 100));
    let lost = rows
        .into_iter()
        .filter(|(_, attempt)| attempt.outcome == Outcome::Lost);
    lost.map(|(_, attempt)| attempt.reason).collect()
}

#[test]
fn a_restored_store_signals_nobody_and_loses_nothing() {
    // By the daemon of the old name, as on the same machine, and by one of another name.
    for node in ["n-b", "n-c"] {
        let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p"), job("b")]);
        let original = rig.daemon("n-b");
        introduce(&original);
        let started = rig.start_unbound("a");
        let mut of_pool = LeftOver::new(1);
        claim_with(&original, of_pool.process);
        rig.start_unbound("b");
        let mut alone = LeftOver::new(2);
        let last = claim_with(&original, alone.process).claim.fence;
        let Restore {
            _folder,
            into,
            restored,
        } = backed_up_and_restored(&rig);
        assert_eq!(restored.interrupted, 2);
        assert!(into.join("nodes/n-b.lock").exists());

        let daemon = rig.restored_into(&into, node);
        let mut hunter = Hunter::new(daemon.engine.clone());
        introduce(&daemon);
        assert_eq!(daemon.wait(hunter.settle_own()).unwrap(), 0);
        look(&daemon, &mut hunter);
        rig.clock().advance(limits::LEASE_MS - 1);
        look(&daemon, &mut hunter);
        assert_eq!(
            (live(&daemon), daemon.used("p")),
            (2, 1),
            "{node}: not before a whole lease"
        );
        rig.clock().advance(1);
        look(&daemon, &mut hunter);
        assert_eq!(live(&daemon), 0, "{node}");
        assert_eq!(daemon.entry_words(&started), "queued: lease lapsed");
        assert_eq!(
            daemon.entry(queued(&started).0).readmitted,
            0,
            "no daemon died with it"
        );
        assert_eq!(lost(&daemon), vec![Some("lease lapsed".to_owned()); 2]);
        assert!(
            of_pool.lives() && alone.lives(),
            "{node}: they are the original daemon's"
        );
        assert_eq!(daemon.read(check::check), check::Findings::new());

        // Both run again, under fences that the original never gives out.
        let again = daemon.pass().claimed;
        assert_eq!(super::stage::jobs_of(&again), ["a", "b"]);
        assert!(
            again
                .iter()
                .all(|claimed| claimed.claim.fence > last + limits::RESTORE_LEAP / 2)
        );
        // And the original has not noticed anything.
        assert_eq!(live(&original), 2);
        assert_eq!(rig.used("p"), 1);
    }
}

#[test]
fn what_was_cancelled_while_it_ran_stays_cancelled() {
    let rig = Rig::new(&[], &[job("b")]);
    let original = rig.daemon("n-b");
    rig.start_unbound("b");
    let mut process = LeftOver::new(1);
    let claimed = claim_with(&original, process.process);
    let run = claimed.run.id;
    rig.change(move |tx| {
        let key = tx.scan(&LIVE_ATTEMPTS, &(), None, 1)?.remove(0);
        let ending = crate::store::rows::Ending {
            cause: crate::store::rows::EndingCause::Cancelled,
            at: tx.now().wall,
            by: "local".to_owned(),
        };
        let live = crate::store::rows::LiveAttempt {
            ending: Some(ending),
            ..key.1
        };
        tx.put(&LIVE_ATTEMPTS, &key.0, &live)?;
        Ok(())
    });
    let Restore { _folder, into, .. } = backed_up_and_restored(&rig);
    let daemon = rig.restored_into(&into, "n-b");
    let mut hunter = Hunter::new(daemon.engine.clone());
    look(&daemon, &mut hunter);
    rig.clock().advance(limits::LEASE_MS);
    look(&daemon, &mut hunter);
    assert_eq!(live(&daemon), 0);
    assert!(
        daemon.run_words(run).starts_with("cancelled"),
        "{}",
        daemon.run_words(run)
    );
    assert!(process.lives());
}

fn number(daemon: &Daemon, counter: &str) -> u64 {
    let key = (counter.to_owned(),);
    daemon.read(|tx| tx.get(&META, &key)).unwrap().0
}

#[test]
fn numbers_that_were_given_out_are_not_given_again() {
    let rig = Rig::new(&[slot_pool("p", 1)], &[job("a").on("p")]);
    rig.start("a");
    rig.claim();
    let Restore { _folder, into, .. } = backed_up_and_restored(&rig);
    let daemon = rig.restored_into(&into, "n-b");
    for counter in ["next_fence", "sequence"] {
        let leap = number(&daemon, counter) - number(&rig, counter);
        assert_eq!(leap, limits::RESTORE_LEAP, "{counter}");
    }
    assert!(Path::exists(&into.join("format")));
}
