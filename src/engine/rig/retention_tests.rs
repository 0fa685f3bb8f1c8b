//! Retention of logs: what is too old or too much goes, oldest first, and never of a run that lives.

use tokio::sync::watch;

use super::jobs::job;
use super::stage::Rig;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::retire::{Keep, KeepLogs};
use crate::engine::retention::Retention;
use crate::store::logs;
use crate::words::ids::RunId;
use crate::words::names::StepRef;

fn keep(logs: KeepLogs) -> Keep {
    Keep {
        runs: 100,
        age_ms: u64::MAX,
        logs,
    }
}

/// A run that has written a log of 1,000 bytes.
fn logged(rig: &Rig, ends: bool) -> RunId {
    rig.clock().advance(1_000);
    rig.start("a");
    let claimed = rig.claim();
    let run = claimed.run.id;
    let path = logs::path_of(&rig.engine.directory.logs(), run, &StepRef::main(), 1, 1);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, [b'x'; 1_000]).unwrap();
    if ends {
        rig.complete(&claimed, Outcome::Succeeded);
    }
    run
}

fn kept(rig: &Rig) -> Vec<RunId> {
    let mut runs = logs::runs_with_logs(&rig.engine.directory.logs()).unwrap();
    runs.sort_unstable();
    runs
}

#[test]
fn o5_logs_are_bounded_by_bytes_and_a_lowered_limit_acts_on_old_ones() {
    let rig = Rig::new(&[], &[job("a")]);
    let lives = logged(&rig, false);
    let ended: Vec<RunId> = (0..4).map(|_| logged(&rig, true)).collect();
    let bytes = |bytes| KeepLogs {
        bytes: Some(bytes),
        ..KeepLogs::NO_LIMIT
    };
    let (limits, watched) = watch::channel(keep(bytes(5_000)));
    let retention = Retention::new(rig.engine.clone(), watched);
    assert_eq!(rig.engine.metrics.logs_bytes(), None, "not counted yet");
    rig.wait(retention.trim_logs()).unwrap();
    assert_eq!(kept(&rig).len(), 5, "within the limit");
    let counted = rig.engine.metrics.logs_bytes();
    rig.wait(retention.count_logs());
    assert_eq!(counted, rig.engine.metrics.logs_bytes());
    assert!(
        counted.is_some_and(|bytes| (3_001..=5_000).contains(&bytes)),
        "{counted:?}"
    );
    limits.send_replace(keep(bytes(3_000)));
    rig.wait(retention.trim_logs()).unwrap();
    assert_eq!(
        kept(&rig),
        [lives, ended[2], ended[3]],
        "the oldest that have ended went"
    );
    assert_eq!(rig.run_words(ended[0]), "succeeded", "their runs stay");
    limits.send_replace(keep(bytes(0)));
    rig.wait(retention.trim_logs()).unwrap();
    assert_eq!(kept(&rig), [lives]);
}

#[test]
fn logs_older_than_their_age_go_before_their_runs() {
    let rig = Rig::new(&[], &[job("a")]);
    logged(&rig, true);
    rig.clock().advance(60_000);
    let young = logged(&rig, true);
    let limits = keep(KeepLogs {
        age_ms: 30_000,
        bytes: None,
    });
    let (_limits, watched) = watch::channel(limits);
    let retention = Retention::new(rig.engine.clone(), watched);
    rig.wait(retention.trim_logs()).unwrap();
    assert_eq!(kept(&rig), [young]);
}
