//! Runs that go in slices: the largest never hold the writer for long, a crash between two slices leaves a store in which
//! the check finds nothing, and what is pinned or lives stays, however much of it there is.

use serde_json::{Value, json};
use tokio::sync::watch;

use super::jobs::job;
use super::stage::{BEGIN, Rig, TENANT};
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::pin::{self, Pinned};
use crate::engine::changes::retire::{self, Keep, KeepLogs, OwnRules, Published, Retired};
use crate::engine::retention::Retention;
use crate::store::tables::{FIRES, REMOVALS, RUNS, STEPS, VALUES};
use crate::store::{Rows, logs, removal, runs};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, StepRef};

fn keep(runs: u32, age_ms: u64) -> Keep {
    Keep {
        runs,
        age_ms,
        logs: KeepLogs::NO_LIMIT,
        audit: retire::KeepAudit::NO_LIMIT,
    }
}

fn fan(rig: &Rig, size: u32) -> RunId {
    let body = json!({"ref": "one", "type": "STEP_TYPE_DATAFLOW",
        "args": {"operation": "project", "project": {"x": "item"}}});
    rig.publish_graph(&json!({"family_slug": "fan", "steps": [
        {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "input", "body": body}},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}],
      "edges": [{"source_ref": "each", "target_ref": "all"}]}));
    let input: Vec<Value> = (0..size).map(Value::from).collect();
    let (run, _) = rig.begin_graph("fan", Value::from(input), 0);
    assert_eq!(rig.run_word(run), "succeeded");
    run
}

/// Rows that the run has in the largest tables.
fn rows_of(rig: &Rig, run: RunId) -> usize {
    rig.read(|tx| {
        let steps = tx.scan_each(&STEPS, &(TENANT, run), None, usize::MAX)?.len();
        Ok(steps + tx.scan_each(&VALUES, &(TENANT, run), None, usize::MAX)?.len())
    })
}

#[test]
fn a_run_of_ten_thousand_branches_goes_in_slices_and_a_crash_between_them_leaves_a_clean_store() {
    let rig = Rig::new(&[], &[]);
    let run = fan(&rig, 10_000);
    let rows = rows_of(&rig, run);
    assert!(rows > 20_000, "{rows}");
    let due = vec![(JobName::new("fan").unwrap(), run)];
    let slice = |due: Vec<(JobName, RunId)>| -> (Retired, u64) {
        rig.change(move |tx| {
            let before = tx.rows_written();
            let retired = retire::retire(tx, &due)?;
            Ok((retired, tx.rows_written() - before))
        })
    };
    let (first, written) = slice(due);
    assert_eq!((first.gone, first.more), (vec![run], true));
    let most = limits::RETIRED_ROWS_MAX as u64 + 8;
    assert!(written <= most, "{written}");
    // There is no such run any more, and what is left of it is no orphan.
    assert_eq!(rig.read(|tx| runs::by_id(tx, run)), None);
    rig.assert_clean();
    let mut slices = 1;
    loop {
        // Whoever goes on was not there when it began: it is all in the store.
        let (retired, written) = slice(Vec::new());
        slices += 1;
        assert!(retired.gone.is_empty() && written <= most, "{written}");
        if slices % 7 == 0 {
            rig.assert_clean();
        }
        if !retired.more {
            break;
        }
    }
    assert!(
        slices >= rows / limits::RETIRED_ROWS_MAX,
        "{slices} slices for {rows} rows"
    );
    assert_eq!(rows_of(&rig, run), 0);
    assert!(rig.read(|tx| tx.scan(&REMOVALS, &(), None, 9)).is_empty());
    assert!(!rig.read(removal::is_under_way));
}

#[test]
fn the_loop_of_retention_takes_large_and_small_runs_and_two_daemons_share_them() {
    let rig = Rig::new(&[], &[job("a")]);
    let large = fan(&rig, 800);
    for _ in 0..120 {
        rig.start("a");
        let claimed = rig.claim();
        rig.complete(&claimed, Outcome::Succeeded);
    }
    rig.clock().advance(10_000_000);
    let other = rig.daemon("n-b");
    let (_limits, watched) = watch::channel(keep(100, 1_000));
    let mut loops = [
        Retention::new(rig.engine.clone(), watched.clone()),
        Retention::new(other.engine.clone(), watched),
    ];
    let mut slices = 0;
    while loops.iter_mut().any(|each| rig.wait(each.slice()).unwrap()) {
        slices += 1;
        assert!(slices < 100);
    }
    assert!(rig.read(|tx| tx.scan(&RUNS, &(), None, 9)).is_empty());
    assert_eq!(rows_of(&rig, large), 0);
}

#[test]
fn pinned_runs_and_their_logs_stay_and_hide_none_behind_them() {
    let rig = Rig::new(&[], &[job("a")]);
    let mut all = Vec::new();
    for _ in 0..130 {
        rig.clock().advance(10);
        rig.start("a");
        let claimed = rig.claim();
        let run = claimed.run.id;
        let path = logs::path_of(&rig.engine.directory.logs(), run, &StepRef::main(), 1, 1);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, [b'x'; 100]).unwrap();
        rig.complete(&claimed, Outcome::Succeeded);
        all.push(run);
    }
    // More than a slice of them, and the oldest: a search that gives up at the first slice would never pass them.
    for run in all[..120].iter().copied() {
        let pinned = rig.change(move |tx| pin::pin(tx, run, Some(("me", "audit"))));
        assert!(matches!(pinned, Pinned::Now(_)));
    }
    rig.clock().advance(10_000_000);
    let strict = Keep {
        logs: KeepLogs {
            age_ms: 10,
            bytes: Some(50),
        },
        ..keep(5, 1_000)
    };
    let (_limits, watched) = watch::channel(strict);
    let mut retention = Retention::new(rig.engine.clone(), watched);
    while rig.wait(retention.slice()).unwrap() {}
    rig.wait(retention.trim_logs()).unwrap();
    let left = rig.read(|tx| tx.scan(&RUNS, &(), None, usize::MAX));
    assert_eq!(
        left.iter().map(|((_, run), _)| *run).collect::<Vec<_>>(),
        all[..120]
    );
    let mut kept = logs::runs_with_logs(&rig.engine.directory.logs()).unwrap();
    kept.sort_unstable();
    assert_eq!(kept, all[..120]);
    // Unpinned it goes like any other.
    let run = all[7];
    rig.change(move |tx| pin::pin(tx, run, None));
    while rig.wait(retention.slice()).unwrap() {}
    assert_eq!(rig.read(|tx| tx.scan(&RUNS, &(), None, usize::MAX)).len(), 119);
    assert!(
        !logs::runs_with_logs(&rig.engine.directory.logs())
            .unwrap()
            .contains(&run)
    );
}

#[test]
fn a_pin_moves_the_version_once_and_keeps_its_first_word() {
    let rig = Rig::new(&[], &[job("a")]);
    rig.start("a");
    let run = rig.claim().run.id;
    let version = |rig: &Rig| rig.read(|tx| runs::by_id(tx, run)).unwrap().record_version;
    let before = version(&rig);
    for (word, moves) in [
        (Some(("me", "why")), 1),
        (Some(("you", "no")), 1),
        (None, 2),
        (None, 2),
    ] {
        let pinned = rig.change(move |tx| pin::pin(tx, run, word));
        assert_eq!(pinned, Pinned::Now(before + moves));
        assert_eq!(version(&rig), before + moves);
    }
    let unknown = rig.change(|tx| pin::pin(tx, RunId([9; 16]), None));
    assert_eq!(unknown, Pinned::NotFound);
}

#[test]
fn a_search_that_is_cut_goes_on_where_it_was() {
    let rig = Rig::new(&[], &[job("a"), job("b")]);
    for name in ["a", "b"] {
        for _ in 0..70 {
            rig.start(name);
            let claimed = rig.claim();
            rig.complete(&claimed, Outcome::Succeeded);
        }
    }
    let now = BEGIN.plus(100_000_000);
    let mut place = None;
    let mut found = Vec::new();
    let mut slices = 0;
    loop {
        let mut next = place.clone();
        let slice = rig.read(|tx| {
            next.clone_from(&place);
            retire::due(
                tx,
                keep(10, u64::MAX),
                &OwnRules::new(),
                &mut Published::default(),
                now,
                &mut next,
            )
        });
        assert!(slice.len() <= retire::SLICE);
        found.extend(slice);
        place = next;
        slices += 1;
        if place.is_none() {
            break;
        }
    }
    assert_eq!(found.len(), 120, "sixty of each are beyond their number");
    found.sort_unstable();
    found.dedup();
    assert_eq!(found.len(), 120, "none twice");
    assert!(slices >= 3);
}

#[test]
fn old_fires_are_looked_for_outside_of_the_writer_a_slice_at_a_time() {
    let rig = Rig::new(&[], &[job("a"), job("b")]);
    for minute in 0..400u64 {
        let name = if minute % 2 == 0 { "a" } else { "b" };
        rig.change(move |tx| {
            let name = JobName::new(name).unwrap();
            Ok(crate::engine::changes::start::skip(
                tx,
                &name,
                BEGIN.plus(minute * 60_000),
                "",
                "missed",
            )?)
        });
    }
    let now = BEGIN.plus(100_000_000);
    let mut turns = 0;
    loop {
        let fires = rig.read(|tx| retire::old_fires(tx, keep(10, 1_000), now));
        assert!(fires.len() <= limits::MAINTENANCE_ROWS_MAX);
        let more = rig.change(move |tx| retire::sweep(tx, keep(10, 1_000), &fires));
        turns += 1;
        if !more {
            break;
        }
    }
    assert_eq!(turns, 2);
    let left = rig.read(|tx| tx.scan(&FIRES, &(TENANT,), None, usize::MAX));
    assert_eq!(left.len(), 2, "the newest of each job marks where it has come to");
}
