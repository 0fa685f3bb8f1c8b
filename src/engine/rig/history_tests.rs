//! Histories on the rig: what compaction leaves, what a full one does to its run, and that a long run costs at its end what
//! it cost at its beginning.

use serde_json::{Value, json};

use super::graph_stage::{Stepped, broken, done};
use super::stage::{Rig, TENANT};
use crate::domain::workflow::graph::history::{COMPACTED, HistoryCounts, Retention, Transition};
use crate::domain::workflow::graph::tick::AttemptEnd;
use crate::domain::workflow::run::RunState;
use crate::engine::changes::claim::Claimed;
use crate::store::graph_rows::StoredFact;
use crate::store::tables::{HISTORY, LIVE_ATTEMPTS, STEPS};
use crate::store::{Rows, runs};
use crate::words::ids::RunId;
use crate::words::limits;

fn command(name: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}})
}

fn edge(from: &str, to: &str) -> Value {
    json!({"source_ref": from, "target_ref": to})
}

fn fan(body: &Value, parallel: u32) -> Value {
    json!({"family_slug": "fan", "steps": [
        {"ref": "each", "type": "STEP_TYPE_SCATTER",
         "args": {"items": "input", "body": body, "max_parallel": parallel, "tolerated_failures": "100%"}},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}],
      "edges": [edge("each", "all")]})
}

fn counts(rig: &Rig, run: RunId) -> HistoryCounts {
    let run = rig.read(|tx| runs::by_id(tx, run)).unwrap();
    run.graph.unwrap().history
}

/// The lines that are stored, in order.
fn lines(rig: &Rig, run: RunId) -> Vec<Transition> {
    let rows = rig.read(|tx| tx.scan(&HISTORY, &(TENANT, run), None, usize::MAX));
    rows.into_iter().flat_map(|(_, row)| row.items).collect()
}

/// The run stands before a tick that makes its history this long.
fn lengthen(rig: &Rig, id: RunId, lengthen: impl Fn(&mut HistoryCounts) + Send + 'static) {
    rig.change(move |tx| {
        let before = runs::by_id(tx, id)?.unwrap();
        let mut after = before.clone();
        lengthen(&mut after.graph.as_mut().unwrap().history);
        Ok(runs::replace(tx, &before, &after)?)
    });
}

fn all(claimed: Vec<Claimed>, end: &AttemptEnd) -> Vec<(Claimed, AttemptEnd)> {
    claimed
        .into_iter()
        .map(|claimed| (claimed, end.clone()))
        .collect()
}

#[test]
fn lines_are_numbered_and_have_a_class() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&json!({"family_slug": "w", "steps": [command("a")]}));
    let (run, claimed) = rig.begin_graph("w", json!({}), 1);
    rig.end_steps(&all(claimed, &done(json!(1))), 0);
    let found: Vec<(u64, Retention, String)> = lines(&rig, run)
        .into_iter()
        .map(|line| (line.seq, line.class, line.what))
        .collect();
    let line = |seq, class, what: &str| (seq, class, what.to_owned());
    assert_eq!(
        found,
        [
            line(1, Retention::Pinned, "running"),
            line(2, Retention::Compactable, "ready"),
            line(3, Retention::Standard, "succeeded"),
            line(4, Retention::Pinned, "succeeded"),
        ]
    );
    let counts = counts(&rig, run);
    assert_eq!((counts.appended, counts.kept, counts.compactable), (4, 4, 1));
    assert!(!counts.should_continue_as_new());
}

/// Rows and bytes of the completions of `size` branches, ten in each commit, in `windows` of equal length.
fn windows(rig: &Rig, size: u32, windows: u32) -> Vec<(u64, usize)> {
    rig.publish_graph(&fan(&command("one"), 20));
    let (run, mut held) = rig.begin_graph("fan", json!((0..size).collect::<Vec<u32>>()), 20);
    let mut found = Vec::new();
    for _ in 0..windows {
        let (mut rows, mut bytes) = (0, 0);
        for _ in 0..size / windows / 10 {
            let batch: Vec<Claimed> = held.drain(..10).collect();
            let Stepped {
                claimed,
                rows: some,
                bytes: more,
                ..
            } = rig.end_steps(&all(batch, &done(json!(7))), 10);
            held.extend(claimed);
            rows += some;
            bytes += more;
            let counts = counts(rig, run);
            assert!(counts.compactable < limits::HISTORY_COMPACTED_AT);
            assert!(counts.kept < limits::HISTORY_COMPACTED_AT + 200, "{counts:?}");
        }
        found.push((rows, bytes));
    }
    assert_eq!(rig.run_word(run), "succeeded");
    let compacted = lines(rig, run).into_iter().filter(|line| line.what == COMPACTED);
    assert!(
        compacted.count() >= usize::try_from(size).unwrap() * 2 / 2_000,
        "each 2,000 lines leave one"
    );
    found
}

#[test]
fn d3_a_long_run_costs_at_its_end_what_it_cost_at_its_beginning() {
    let rig = Rig::new(&[], &[]);
    let found = windows(&rig, 12_000, 4);
    let (first, last) = (found[0], found[3]);
    let is_flat = |first: usize, last: usize| last * 10 <= first * 12;
    assert!(
        is_flat(
            usize::try_from(first.0).unwrap(),
            usize::try_from(last.0).unwrap()
        ),
        "{found:?}"
    );
    assert!(is_flat(first.1, last.1), "{found:?}");
}

#[test]
fn ten_thousand_computed_branches_stay_short() {
    let rig = Rig::new(&[], &[]);
    let body = json!({"ref": "one", "type": "STEP_TYPE_DATAFLOW",
        "args": {"operation": "project", "project": {"x": "item"}}});
    rig.publish_graph(&fan(&body, 1_000));
    let (run, _) = rig.begin_graph("fan", json!((0..10_000).collect::<Vec<u32>>()), 0);
    assert_eq!(rig.run_word(run), "succeeded");
    let (counts, lines) = (counts(&rig, run), lines(&rig, run));
    assert!(
        counts.appended > 10_000 && counts.should_continue_as_new(),
        "{counts:?}"
    );
    assert!(lines.len() < 20, "{lines:#?}");
    assert!(lines.iter().any(|line| line.what == COMPACTED));
}

#[test]
fn a_run_that_ends_with_many_lines_leaves_one_for_those_that_go() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&fan(&command("one"), 1_000));
    for (size, is_short) in [(20, true), (200, false)] {
        let (run, claimed) = rig.begin_graph("fan", json!((0..size).collect::<Vec<u32>>()), 200);
        assert!(lines(&rig, run).iter().all(|line| line.what != COMPACTED));
        rig.end_steps(&all(claimed, &broken()), 0);
        let lines = lines(&rig, run);
        assert_eq!(
            lines.iter().any(|line| line.what == COMPACTED),
            !is_short,
            "{lines:#?}"
        );
        assert_eq!(lines.len() < 12, !is_short);
        // How each top-level step ended, and the run, is still there.
        let ended = |line: &&Transition| line.class != Retention::Compactable && line.what == "succeeded";
        assert_eq!(lines.iter().filter(ended).count(), 3);
    }
}

/// A run with two commands that run, and one that waits for them.
fn three(rig: &Rig) -> (RunId, Vec<Claimed>) {
    rig.publish_graph(
        &json!({"family_slug": "w", "steps": [command("a"), command("b"), command("c")],
        "edges": [edge("a", "c"), edge("b", "c")]}),
    );
    rig.begin_graph("w", json!({}), 2)
}

#[test]
fn a_full_history_fails_its_run_and_leaves_nothing_open() {
    type Fill = fn(&mut HistoryCounts);
    let fills: [Fill; 2] = [
        |counts| counts.kept = limits::HISTORY_LINES_MAX - 1 + counts.compactable,
        |counts| counts.kept_bytes = limits::HISTORY_BYTES_MAX - 1 + counts.compactable_bytes,
    ];
    for fill in fills {
        let rig = Rig::new(&[], &[]);
        rig.plan_damage();
        let (run, mut claimed) = three(&rig);
        lengthen(&rig, run, fill);
        let last = claimed.pop().unwrap();
        rig.end_steps(&all(claimed, &done(json!(1))), 0);
        assert_eq!(rig.run_word(run), "running", "what runs is asked to end first");
        let key = (TENANT, run, last.step.clone());
        let live = rig.read(|tx| tx.get(&LIVE_ATTEMPTS, &key)).unwrap();
        assert!(live.ending.is_some());
        assert_eq!(rig.step_word(run, "c"), "pending", "nothing new begins");
        rig.end_steps(&[(last, AttemptEnd::Cancelled("ended".to_owned()))], 0);
        let ended = rig.read(|tx| runs::by_id(tx, run)).unwrap();
        let RunState::Failed { reason, .. } = &ended.state else {
            panic!("{:?}", ended.state);
        };
        assert!(
            reason.starts_with("run.history_limit: its history has 50000 lines or 64 MiB"),
            "{reason}"
        );
        let open = rig.read(|tx| tx.scan(&STEPS, &(TENANT, run), None, 9));
        assert!(open.iter().all(|(_, step)| step.phase.is_terminal()), "{open:#?}");
        assert!(rig.read(|tx| tx.scan(&LIVE_ATTEMPTS, &(), None, 9)).is_empty());
    }
}

#[test]
fn what_can_be_compacted_never_fills_a_history() {
    let rig = Rig::new(&[], &[]);
    rig.plan_damage();
    let (run, claimed) = three(&rig);
    lengthen(&rig, run, |counts| {
        counts.kept = limits::HISTORY_LINES_MAX + 5;
        counts.compactable = limits::HISTORY_COMPACTED_AT - 1;
    });
    // Before the run would fail, what can be compacted is, though it is less than it takes otherwise.
    let step = rig.end_steps(&all(claimed, &done(json!(1))), 1);
    rig.end_steps(&all(step.claimed, &done(json!(1))), 0);
    assert_eq!(rig.run_word(run), "succeeded");
}

#[test]
fn a_long_history_flags_its_run_and_stays_flagged() {
    let rig = Rig::new(&[], &[]);
    let (run, claimed) = three(&rig);
    lengthen(&rig, run, |counts| {
        counts.appended = limits::HISTORY_LINES_LONG - 2;
    });
    assert!(!counts(&rig, run).should_continue_as_new());
    rig.tell_run(
        run,
        StoredFact::Pause {
            by: "me".to_owned(),
            reason: String::new(),
        },
    );
    rig.end_steps(&all(claimed, &done(json!(1))), 0);
    let counts = counts(&rig, run);
    assert!(counts.should_continue_as_new() && counts.kept < 20, "{counts:?}");
}
