//! What a run costs: commits, rows and bytes, counted and not timed.

use serde_json::{Value, json};

use super::graph_stage::{Stepped, broken, done};
use super::stage::Rig;
use crate::domain::workflow::graph::tick::{AttemptEnd, Taken};
use crate::engine::changes::claim::Claimed;

fn command(name: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": "true"}})
}

fn edge(from: &str, to: &str) -> Value {
    json!({"source_ref": from, "target_ref": to})
}

fn well(claimed: Vec<Claimed>) -> Vec<(Claimed, AttemptEnd)> {
    let each = claimed.into_iter().enumerate();
    each.map(|(number, claimed)| (claimed, done(json!(number))))
        .collect()
}

fn fan(parallel: Option<u32>) -> Value {
    let mut scatter = json!({"items": "input", "body": command("one")});
    if let Some(parallel) = parallel {
        scatter["max_parallel"] = json!(parallel);
    }
    json!({"family_slug": "fan", "steps": [
        command("first"),
        {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": scatter},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}],
      "edges": [edge("first", "each"), edge("each", "all")]})
}

#[test]
fn a1_one_three_step_run_costs_four_commits() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(
        &json!({"family_slug": "chain", "steps": [command("a"), command("b"), command("c")],
        "edges": [edge("a", "b"), edge("b", "c")]}),
    );
    let before = rig.commits();
    let (run, mut claimed) = rig.begin_graph("chain", json!({}), 1);
    for step in ["a", "b", "c"] {
        assert_eq!(
            claimed.len(),
            1,
            "{step} is claimed in the commit that made it ready"
        );
        assert_eq!(claimed[0].step.as_str(), step);
        claimed = rig.end_steps(&well(claimed), 1).claimed;
    }
    assert_eq!((rig.run_word(run), rig.commits() - before), ("succeeded", 4));

    let project = |name: &str| json!({"ref": name, "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"x": "1"}}});
    rig.publish_graph(
        &json!({"family_slug": "pure", "steps": [project("a"), project("b"), project("c")],
        "edges": [edge("a", "b"), edge("b", "c")]}),
    );
    let before = rig.commits();
    let (run, _) = rig.begin_graph("pure", json!({}), 0);
    assert_eq!((rig.run_word(run), rig.commits() - before), ("succeeded", 1));
}

#[test]
fn a3_fan_out_of_100_commits() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&fan(None));
    let input = json!((0..100).collect::<Vec<u32>>());

    // In the engine: everything that is ready is claimed at once, and all results are in the mailbox at once.
    let before = rig.commits();
    let (run, first) = rig.begin_graph("fan", input.clone(), 1);
    let branches = rig.end_steps(&well(first), 100).claimed;
    assert_eq!(branches.len(), 100);
    let last = rig.end_steps(&well(branches), 0);
    assert!(last.answers.iter().all(|answer| *answer == Taken::Yes));
    assert_eq!((rig.run_word(run), rig.commits() - before), ("succeeded", 3));
    assert_eq!(
        rig.result_of(run).unwrap()["results"].as_array().unwrap().len(),
        100
    );

    // A worker that takes ten at a time and brings ten results with the request for the next ten.
    let before = rig.commits();
    let (run, first) = rig.begin_graph("fan", input, 1);
    let mut claimed = rig.end_steps(&well(first), 10).claimed;
    while !claimed.is_empty() {
        claimed = rig.end_steps(&well(claimed), 10).claimed;
    }
    let commits = rig.commits() - before;
    assert_eq!(rig.run_word(run), "succeeded");
    assert!(commits <= 12, "{commits} commits");
}

/// Rows and bytes of single completions of a fan-out of `size`, after `skipped` others.
fn costs(size: u32, parallel: Option<u32>, skipped: usize) -> Vec<Stepped> {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&fan(parallel));
    let (_, first) = rig.begin_graph("fan", json!((0..size).collect::<Vec<u32>>()), 1);
    let mut held = rig.end_steps(&well(first), 1_000).claimed;
    let mut left = skipped;
    while left > 0 {
        let batch: Vec<Claimed> = held.drain(..left.min(held.len())).collect();
        left -= batch.len();
        held.extend(rig.end_steps(&well(batch), 1_000).claimed);
    }
    let mut found = Vec::new();
    for _ in 0..4 {
        let mut stepped = rig.end_steps(&well(vec![held.remove(0)]), 1);
        held.append(&mut stepped.claimed);
        found.push(stepped);
    }
    found
}

fn assert_flat(what: &str, found: &[(u32, Vec<Stepped>)]) {
    let table: Vec<(u32, u64, usize)> = { found.iter() }
        .flat_map(|(size, all)| all.iter().map(|one| (*size, one.rows, one.bytes)))
        .collect();
    let flat = |least: f64, most: f64| most <= 1.2 * least;
    let rows = table.iter().map(|row| f64::from(u32::try_from(row.1).unwrap()));
    let bytes = table.iter().map(|row| f64::from(u32::try_from(row.2).unwrap()));
    let ends = |all: Vec<f64>| {
        let least = all.iter().copied().fold(f64::INFINITY, f64::min);
        (least, all.iter().copied().fold(0.0, f64::max))
    };
    let (rows, bytes) = (ends(rows.collect()), ends(bytes.collect()));
    assert!(flat(rows.0, rows.1), "{what}: rows are not flat: {table:?}");
    assert!(flat(bytes.0, bytes.1), "{what}: bytes are not flat: {table:?}");
}

#[test]
fn a4_rows_and_bytes_per_completion_are_flat() {
    // Each completion begins the next branch.
    let narrow = [10, 100, 1_000, 10_000].map(|size| (size, costs(size, Some(4), 2)));
    assert_flat("four at once", &narrow);
    // All branches have begun.
    let wide = [(10, 2), (100, 50), (1_000, 500), (10_000, 9_900)];
    let wide = wide.map(|(size, skipped)| (size, costs(size, None, skipped)));
    assert_flat("all at once", &wide);
}

#[test]
fn failures_cost_what_successes_cost() {
    let rig = Rig::new(&[], &[]);
    rig.publish_graph(&fan(None));
    let (_, first) = rig.begin_graph("fan", json!((0..100).collect::<Vec<u32>>()), 1);
    let mut held = rig.end_steps(&well(first), 100).claimed;
    let mut costs = Vec::new();
    for _ in 0..5 {
        let failed = rig.end_steps(&[(held.remove(0), broken())], 0);
        costs.push((failed.rows, failed.bytes));
    }
    costs.dedup_by(|one, other| one.0 == other.0 && one.1.abs_diff(other.1) < 8);
    assert_eq!(costs.len(), 1, "{costs:?}");
}
