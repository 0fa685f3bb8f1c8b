//! Branches over a run that is kept in maps: how many are open at once, what a retry does again, whose time is over, what each
//! reads, and what ends while a run is held.

use serde_json::{Value, json};

use super::again;
use super::key::ValueName;
use super::read::read;
use super::tests::{World, edge, fan, task};
use super::tick::{AttemptEnd, Fact};
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// Begins a run of what somebody has posted.
fn posted(document: &Value, input: Value) -> World {
    let reading = read(document);
    assert!(reading.findings.is_empty(), "{:#?}", reading.findings);
    World::begun(serde_json::to_value(reading.document.unwrap()).unwrap(), input)
}

/// W7 of the field's cases, in small: only what failed is done again.
#[test]
fn w7_a_failed_branch_alone_is_tried_again() {
    let mut first = World::begun(fan(&json!({})), json!({"list": [0, 1, 2]}));
    first.broken("one#1");
    first.done("one#0", json!(0));
    first.done("one#2", json!(2));
    assert_eq!(first.rows.run.state.word(), "failed");
    let steps: Vec<StepState> = first.rows.steps.values().cloned().collect();
    let done = again::taken_over(&first.graph, &steps, None, Millis(9_000)).unwrap();
    let mut second = World::new(fan(&json!({})), json!({"list": [0, 1, 2]}));
    second.rows.values.extend(first.rows.values.clone());
    second
        .rows
        .values
        .remove(&ValueName::Error(StepRef::new("one#1").unwrap()));
    let changes = second.tell(&[Fact::BegunWith(done)]);
    assert_eq!(changes.dispatch.len(), 1);
    second.done("one#1", json!(1));
    assert_eq!(second.rows.run.state.word(), "succeeded");
    assert_eq!(second.result(), json!({"results": [0, 1, 2], "failed": []}));
}

/// A retry begins no more branches at once than the scatter allows, whatever it has taken over.
#[test]
fn a_retry_holds_max_parallel() {
    let body = json!({"steps": [task("one"), task("two")], "edges": [edge("one", "two")]});
    let document = || {
        json!({"family_slug": "w", "steps": [
            {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "input", "max_parallel": 2, "body": body}},
            {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "each"}}],
          "edges": [edge("each", "all")]})
    };
    let items = json!([0, 1, 2, 3, 4, 5, 6, 7]);
    let mut first = World::begun(document(), items.clone());
    // Of 0, 3 and 6 the second step fails, of 2, 4 and 5 the first, and the others succeed.
    for branch in 0..8 {
        if [2, 4, 5].contains(&branch) {
            first.broken(&format!("one#{branch}"));
            continue;
        }
        first.done(&format!("one#{branch}"), json!(branch));
        if branch % 3 == 0 {
            first.broken(&format!("two#{branch}"));
        } else {
            first.done(&format!("two#{branch}"), json!(branch));
        }
    }
    assert_eq!(first.word("each"), "failed");
    let steps: Vec<StepState> = first.rows.steps.values().cloned().collect();
    let done = again::taken_over(&first.graph, &steps, None, Millis(9_000)).unwrap();
    let mut second = World::new(document(), items);
    let kept = first.rows.values.clone().into_iter();
    second
        .rows
        .values
        .extend(kept.filter(|(name, _)| !matches!(name, ValueName::Error(_) | ValueName::Result)));
    second.tell(&[Fact::BegunWith(done)]);
    let mut worked = Vec::new();
    while second.rows.run.state.word() == "running" {
        let ready = second
            .rows
            .steps
            .values()
            .filter(|step| matches!(step.phase, StepPhase::Ready { .. }));
        let ready: Vec<String> = ready.map(|step| step.step.to_string()).collect();
        assert!((1..=2).contains(&ready.len()), "{ready:?}");
        second.done(&ready[0], json!(9));
        worked.push(ready[0].clone());
    }
    assert_eq!(
        second.rows.run.state.word(),
        "succeeded",
        "{:?}",
        second.rows.run.state
    );
    worked.sort();
    let wanted = [
        "one#2", "one#4", "one#5", "two#0", "two#2", "two#3", "two#4", "two#5", "two#6",
    ];
    assert_eq!(worked, wanted);
    assert_eq!(
        second.result(),
        json!({"results": [9, 1, 9, 9, 9, 9, 9, 7], "failed": []})
    );
}

/// What is inside of a body has its own total time, and a scatter inside of one too.
#[test]
fn total_times_hold_inside_of_bodies() {
    let inner = json!({"ref": "leaf", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}, "timeouts": {"total": "5s"},
        "retry": {"max_attempts": 9, "initial_interval": "1s"}, "on_error": "continue"});
    let nested = json!({"ref": "in", "type": "STEP_TYPE_SCATTER", "timeouts": {"total": "3s"}, "on_error": "continue",
        "args": {"items": "[1, 2, 3]", "max_parallel": 2, "body": {"ref": "deep", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}}}});
    let mut world = posted(
        &json!({"family_slug": "w", "steps": [{"ref": "out", "type": "STEP_TYPE_SCATTER",
            "args": {"items": "input", "max_parallel": 1, "body": {"steps": [inner, nested], "edges": []}}}]}),
        json!([0, 1]),
    );
    for branch in 0..2 {
        let begun = world.now;
        let at = |step: &str| StepRef::new(&format!("{step}#{branch}")).unwrap();
        let timer = |world: &World, step: &str| world.rows.steps[&at(step)].graph.as_ref().unwrap().timer;
        assert_eq!(timer(&world, "in"), Some(begun.plus(3_000)));
        assert_eq!(timer(&world, "leaf"), Some(begun.plus(5_000)));
        world.done(&format!("deep#{branch}#0"), json!(1));
        world.broken(&format!("leaf#{branch}"));
        world.now = begun.plus(3_000);
        world.tell(&[Fact::Due { step: at("in") }]);
        assert_eq!(world.word(&format!("in#{branch}")), "failed");
        assert_eq!(world.word(&format!("deep#{branch}#1")), "cancelled");
        world.tell(&[Fact::Due { step: at("leaf") }]);
        assert_eq!(world.word(&format!("leaf#{branch}")), "ready");
        world.now = begun.plus(5_000);
        world.tell(&[Fact::Due { step: at("leaf") }]);
        assert_eq!(world.word(&format!("leaf#{branch}")), "failed");
        let error = &world.rows.values[&ValueName::Error(at("leaf"))];
        assert_eq!(error["code"], "timeout.total");
    }
    assert_eq!(world.word("out"), "succeeded");
}

/// The header of a held run does not grow with what ends meanwhile, and the order of the ends is kept.
#[test]
fn what_ends_while_a_run_is_held_is_followed_in_order_and_its_header_stays_small() {
    let steps = |letter: char| (0..50).map(move |number| format!("{letter}{number}"));
    let all: Vec<Value> = steps('a').chain(steps('b')).map(|name| task(&name)).collect();
    let edges: Vec<Value> = steps('a').zip(steps('b')).map(|(a, b)| edge(&a, &b)).collect();
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": all, "edges": edges}),
        json!(null),
    );
    let fences: Vec<(String, u64)> = steps('a')
        .map(|name| (name.clone(), world.claim(&name)))
        .collect();
    let by = || "me".to_owned();
    world.tell(&[Fact::Pause {
        by: by(),
        reason: String::new(),
    }]);
    let size = |world: &World| format!("{:?}", world.rows.run.graph).len();
    let before = size(&world);
    for (name, fence) in fences.iter().rev() {
        let step = StepRef::new(name).unwrap();
        let end = AttemptEnd::Succeeded(None);
        let changes = world.tell(&[Fact::Attempt {
            step,
            fence: *fence,
            end,
        }]);
        assert_eq!(changes.steps.len(), 1);
    }
    assert!(size(&world) < before + 8, "{before} {}", size(&world));
    assert_eq!(world.word("b0"), "pending");
    let changes = world.tell(&[Fact::Unpause { by: by() }]);
    let ready: Vec<&str> = changes.dispatch.iter().map(|(step, _)| step.as_str()).collect();
    let wanted: Vec<String> = steps('b').rev().collect();
    assert_eq!(ready, wanted);
    assert!(
        world
            .rows
            .steps
            .values()
            .all(|step| step.graph.as_ref().unwrap().unfollowed.is_none())
    );
}

/// A branch reads the page of its own item, and not the list.
#[test]
fn a_branch_reads_its_own_page() {
    let items: Vec<Value> = (0..5_000)
        .map(|number| json!(format!("item {number} {}", "x".repeat(100))))
        .collect();
    let body = json!({"ref": "one", "type": "STEP_TYPE_TASK", "args": {"queue": "q", "input": "item"}});
    let mut world = posted(
        &json!({"family_slug": "w", "steps": [{"ref": "each", "type": "STEP_TYPE_SCATTER",
            "args": {"items": "input", "max_parallel": 3, "body": body}}]}),
        json!(items),
    );
    world.rows.values.remove(&ValueName::Input);
    for branch in 0..300 {
        let name = StepRef::new(&format!("one#{branch}")).unwrap();
        let input = &world.rows.values[&ValueName::TaskInput(name.clone())];
        assert!(input.as_str().unwrap().starts_with(&format!("item {branch} ")));
        // Whatever is not on the page of the next branch may be missing.
        if branch == 200 {
            let each = StepRef::new("each").unwrap();
            world
                .rows
                .values
                .retain(|name, _| !matches!(name, ValueName::ItemPage(_, page) if *page > 4));
            assert!(world.rows.values.contains_key(&ValueName::ItemPage(each, 2)));
        }
        world.done(name.as_str(), json!(0));
    }
}
