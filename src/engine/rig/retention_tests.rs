//! Retention of logs and of runs: what is too old or too much goes, oldest first, and never of a run that lives.

use tokio::sync::watch;

use serde_json::json;

use super::graph_stage::done;
use super::jobs::job;
use super::stage::{Rig, TENANT};
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::retire::{self, Keep, KeepLogs};
use crate::engine::retention::Retention;
use crate::store::rows::WorkflowRecord;
use crate::store::tables::WORKFLOWS;
use crate::store::{logs, runs as stored_runs};
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

fn keep(logs: KeepLogs) -> Keep {
    Keep {
        runs: 100,
        age_ms: u64::MAX,
        logs,
        audit: retire::KeepAudit::NO_LIMIT,
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

/// What a definition says itself, as its newest version says it.
#[test]
fn a_workflow_keeps_what_it_says_itself_and_never_less_than_what_lives() {
    let rig = Rig::new(&[], &[]);
    let document = |retention: &serde_json::Value| {
        json!({"family_slug": "w", "retention": retention,
            "steps": [{"ref": "a", "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}}]})
    };
    let name = JobName::new("w").unwrap();
    let header = |newest: u32| WorkflowRecord {
        record_version: 1,
        title: String::new(),
        newest,
        current: newest,
        draft: None,
        created_at: Millis(1),
        updated_at: Millis(1),
    };
    let publish = |retention: &serde_json::Value| {
        let (record, name) = (header(rig.publish_graph(&document(retention))), name.clone());
        rig.change(move |tx| Ok(tx.put(&WORKFLOWS, &(TENANT, name.clone()), &record)?));
    };
    publish(&json!({"runs": 2}));
    let begin = || {
        rig.clock().advance(1_000);
        rig.begin_graph("w", json!({}), 1)
    };
    // More of them live than one slice has.
    let living: Vec<RunId> = (0..retire::SLICE + 10).map(|_| begin().0).collect();
    let ended: Vec<RunId> = (0..4)
        .map(|_| {
            let (run, claimed) = begin();
            rig.end_steps(&[(claimed[0].clone(), done(json!(1)))], 0);
            run
        })
        .collect();
    let there = |runs: &[RunId]| {
        let found = rig.read(|tx| {
            let each = runs.iter().map(|run| stored_runs::by_id(tx, *run));
            each.collect::<Result<Vec<_>, _>>()
        });
        found.into_iter().flatten().count()
    };
    let (_limits, watched) = watch::channel(keep(KeepLogs::NO_LIMIT));
    let mut retention = Retention::new(rig.engine.clone(), watched);
    rig.wait(retention.slice()).unwrap();
    assert_eq!(
        (there(&ended[..2]), there(&ended[2..])),
        (0, 2),
        "the two newest stay"
    );
    // The newest version says something else, also of what was there before.
    publish(&json!({"age": "1h"}));
    rig.wait(retention.slice()).unwrap();
    assert_eq!(there(&ended), 2);
    rig.clock().advance(3_700_000);
    rig.wait(retention.slice()).unwrap();
    assert_eq!((there(&ended), there(&living)), (0, living.len()));
    let name = name.clone();
    assert!(rig.change(move |tx| Ok(tx.remove(&WORKFLOWS, &(TENANT, name.clone()))?)));
}
