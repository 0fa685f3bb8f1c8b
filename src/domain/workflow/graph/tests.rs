//! The tick over a run that is kept in maps: what follows what, and what a run says at its end.

use std::sync::Arc;

use serde_json::{Value, json};

use super::again;
use super::build::Graph;
use super::key::ValueName;
use super::memory::Memory;
use super::tick::{AttemptEnd, Changes, Fact, StepError, Taken};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

/// A run in memory.
pub(super) struct World {
    pub(super) graph: Graph,
    pub(super) rows: Memory,
    pub(super) now: Millis,
    fence: u64,
}

impl World {
    pub(super) fn new(document: Value, input: Value) -> World {
        let document = serde_json::from_value(document).unwrap();
        let run = Run {
            id: RunId([1; 16]),
            definition: JobName::new("w").unwrap(),
            version: 1,
            trigger: Trigger::Manual {
                principal: "me".to_owned(),
            },
            node: None,
            created_at: Millis(1_000),
            record_version: 0,
            state: RunState::Pending,
            graph: Some(Box::default()),
        };
        World {
            graph: Graph::build(document).unwrap(),
            rows: Memory::new(run, input),
            now: Millis(1_000),
            fence: 0,
        }
    }

    pub(super) fn tell(&mut self, facts: &[Fact]) -> Changes {
        let mut number = 1;
        let mut fresh = || {
            number += 1;
            RunId([number; 16])
        };
        let changes = self.rows.tick(&self.graph, facts, self.now, &mut fresh);
        self.rows.apply(&changes);
        changes
    }

    pub(super) fn begun(document: Value, input: Value) -> World {
        let mut world = World::new(document, input);
        world.tell(&[Fact::Begun]);
        world
    }

    /// A worker claims a step that is ready.
    pub(super) fn claim(&mut self, step: &str) -> u64 {
        self.fence += 1;
        let name = StepRef::new(step).unwrap();
        let state = self.rows.steps.get_mut(&name).unwrap();
        assert!(
            matches!(state.phase, StepPhase::Ready { .. }),
            "{step} is {}",
            state.phase.word()
        );
        state.phase = StepPhase::Running {
            fence: self.fence,
            started_at: self.now,
            entry: None,
        };
        self.fence
    }

    /// A worker claims a step and ends it.
    pub(super) fn work(&mut self, step: &str, end: AttemptEnd) -> Changes {
        let fence = self.claim(step);
        self.tell(&[Fact::Attempt {
            step: StepRef::new(step).unwrap(),
            fence,
            end,
        }])
    }

    pub(super) fn done(&mut self, step: &str, output: Value) -> Changes {
        self.work(step, AttemptEnd::Succeeded(Some(Arc::new(output))))
    }

    pub(super) fn broken(&mut self, step: &str) -> Changes {
        self.work(step, AttemptEnd::Failed(StepError::new("boom", "it broke")))
    }

    pub(super) fn word(&self, step: &str) -> &'static str {
        let name = StepRef::new(step).unwrap();
        self.rows
            .steps
            .get(&name)
            .map_or("pending", |step| step.phase.word())
    }

    pub(super) fn result(&self) -> Value {
        (*self.rows.values[&ValueName::Result]).clone()
    }
}

pub(super) fn task(name: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_TASK", "args": {"queue": "q"}})
}

pub(super) fn edge(from: &str, to: &str) -> Value {
    json!({"source_ref": from, "target_ref": to})
}

#[test]
fn hello_world_waits_and_ends() {
    let mut world = World::begun(
        json!({"family_slug": "hello-world", "title": "Hello World", "steps": [
            {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
             "args": {"operation": "project", "project": {"message": "\"hello\""}}},
            {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}}],
          "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}]}),
        json!({}),
    );
    assert_eq!(world.word("greet"), "succeeded");
    assert_eq!(world.word("pause"), "waiting");
    let due = Fact::Due {
        step: StepRef::new("pause").unwrap(),
    };
    world.now = Millis(2_999);
    world.tell(std::slice::from_ref(&due));
    assert_eq!(world.word("pause"), "waiting", "it is early");
    world.now = Millis(3_000);
    world.tell(&[due]);
    assert_eq!(world.rows.run.state.word(), "succeeded");
    assert_eq!(world.result()["due"], "1970-01-01T00:00:03.000Z");
}

#[test]
fn failures_take_failure_edges_and_fail_the_run_at_its_end() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [task("a"), task("b"), task("after"), task("handler"), task("always")],
          "edges": [edge("a", "after"),
            {"source_ref": "a", "target_ref": "handler", "type": "EDGE_TYPE_FAILURE"},
            {"source_ref": "after", "target_ref": "always", "type": "EDGE_TYPE_ALWAYS"}]}),
        json!({}),
    );
    world.broken("a");
    assert_eq!(world.word("after"), "upstream_failed");
    assert_eq!(world.rows.run.state.word(), "running", "others go on");
    world.done("handler", json!(1));
    world.done("always", json!(1));
    world.done("b", json!(1));
    assert_eq!(world.rows.run.state.word(), "failed");
    assert_eq!(world.rows.run.state.reason(), Some("step a: it broke"));
}

#[test]
fn joins_wait_for_what_they_say() {
    let document = |join: &str| {
        let mut joined = task("j");
        joined["join"] = json!(join);
        json!({"family_slug": "w", "steps": [task("a"), task("b"), joined], "edges": [edge("a", "j"), edge("b", "j")]})
    };
    for (join, a_fails, after_one, after_both) in [
        ("all_success", false, "pending", "ready"),
        ("all_success", true, "pending", "upstream_failed"),
        ("all_done", true, "pending", "ready"),
        ("any_success", false, "ready", "ready"),
        ("any_success", true, "pending", "ready"),
        ("none_failed", false, "pending", "ready"),
        ("none_failed", true, "pending", "upstream_failed"),
    ] {
        let mut world = World::begun(document(join), json!({}));
        if a_fails {
            world.broken("a");
        } else {
            world.done("a", json!(1));
        }
        assert_eq!(world.word("j"), after_one, "{join} {a_fails}");
        world.done("b", json!(1));
        assert_eq!(world.word("j"), after_both, "{join} {a_fails}");
    }
}

#[test]
fn a_switch_skips_what_it_does_not_choose() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [
            {"ref": "s", "type": "STEP_TYPE_SWITCH", "args": {"cases": [{"when": "input.n > 5", "ref": "big"}], "default": "small"}},
            task("big"), task("small"), task("deep"), {"ref": "end", "join": "none_failed", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}}],
          "edges": [edge("s", "big"), edge("s", "small"), edge("big", "deep"), edge("deep", "end"), edge("small", "end")]}),
        json!({"n": 3}),
    );
    assert_eq!((world.word("big"), world.word("deep")), ("skipped", "skipped"));
    world.done("small", json!("s"));
    world.done("end", json!("e"));
    assert_eq!(world.rows.run.state.word(), "succeeded");
    assert_eq!(world.result(), json!("e"));
}

pub(super) fn fan(extra: &Value) -> Value {
    let mut args = json!({"items": "input.list", "body": {"steps": [task("one")]}});
    args.as_object_mut()
        .unwrap()
        .extend(extra.as_object().unwrap().clone());
    json!({"family_slug": "w", "steps": [
        {"ref": "fan", "type": "STEP_TYPE_SCATTER", "args": args},
        {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "fan"}}],
      "edges": [edge("fan", "all")]})
}

#[test]
fn a_scatter_does_its_body_for_each_item() {
    let mut world = World::begun(fan(&json!({"max_parallel": 2})), json!({"list": ["x", "y", "z"]}));
    assert_eq!(
        (world.word("one#0"), world.word("one#1"), world.word("one#2")),
        ("ready", "ready", "pending")
    );
    world.done("one#1", json!("Y"));
    assert_eq!(world.word("one#2"), "ready");
    world.done("one#2", json!("Z"));
    world.done("one#0", json!("X"));
    assert_eq!(world.rows.run.state.word(), "succeeded");
    assert_eq!(world.result(), json!({"results": ["X", "Y", "Z"], "failed": []}));
    let empty = World::begun(fan(&json!({})), json!({"list": []}));
    assert_eq!(empty.rows.run.state.word(), "succeeded");
}

#[test]
fn failed_branches_are_tolerated_up_to_the_limit() {
    for (tolerated, state) in [(0, "failed"), (1, "succeeded")] {
        let mut world = World::begun(
            fan(&json!({"tolerated_failures": tolerated})),
            json!({"list": [0, 1, 2]}),
        );
        world.broken("one#1");
        world.done("one#0", json!(0));
        world.done("one#2", json!(2));
        assert_eq!(world.rows.run.state.word(), state);
        if tolerated == 1 {
            let failed = json!([{"index": 1, "error": {"code": "boom", "message": "it broke"}}]);
            assert_eq!(world.result(), json!({"results": [0, 2], "failed": failed}));
        }
    }
}

#[test]
fn retries_follow_the_policy() {
    let mut step = task("a");
    step["retry"] = json!({"max_attempts": 3, "initial_interval": "1s", "coefficient": 2.0, "max_interval": "1m",
        "jitter": 0.0, "non_retryable": ["fatal"], "retry_if": "error.message != 'no'"});
    let document = json!({"family_slug": "w", "steps": [step]});
    let due = Fact::Due {
        step: StepRef::new("a").unwrap(),
    };
    let mut world = World::begun(document.clone(), json!({}));
    world.broken("a");
    assert_eq!(world.word("a"), "retrying");
    world.now = Millis(2_000);
    world.tell(std::slice::from_ref(&due));
    world.broken("a");
    world.now = Millis(3_999);
    world.tell(std::slice::from_ref(&due));
    assert_eq!(world.word("a"), "retrying", "two seconds the second time");
    world.now = Millis(4_000);
    world.tell(&[due]);
    world.broken("a");
    assert_eq!(
        (world.word("a"), world.rows.run.state.word()),
        ("failed", "failed")
    );
    for (code, message) in [("fatal", "x"), ("boom", "no")] {
        let mut world = World::begun(document.clone(), json!({}));
        world.work("a", AttemptEnd::Failed(StepError::new(code, message)));
        assert_eq!(world.word("a"), "failed", "{code} {message}");
    }
}

#[test]
fn a_cancelled_run_ends_when_nothing_runs_any_more() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [task("a"), task("b"),
            {"ref": "w", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}}]}),
        json!({}),
    );
    let fence = world.claim("a");
    let changes = world.tell(&[Fact::Cancel { by: "me".to_owned() }]);
    assert_eq!(changes.stop, [StepRef::new("a").unwrap()]);
    assert_eq!((world.word("b"), world.word("w")), ("cancelled", "cancelled"));
    assert_eq!(world.rows.run.state.word(), "running");
    world.tell(&[Fact::Attempt {
        step: StepRef::new("a").unwrap(),
        fence,
        end: AttemptEnd::Cancelled("cancelled by me".to_owned()),
    }]);
    assert_eq!(world.rows.run.state.word(), "cancelled");
}

#[test]
fn a_paused_run_goes_on_where_it_was() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [task("a"), task("b"), task("c")], "edges": [edge("a", "c")]}),
        json!({}),
    );
    let fence = world.claim("a");
    world.tell(&[Fact::Pause {
        by: "me".to_owned(),
        reason: String::new(),
    }]);
    assert_eq!(world.rows.run.state.word(), "paused");
    let changes = world.tell(&[Fact::Attempt {
        step: StepRef::new("a").unwrap(),
        fence,
        end: AttemptEnd::Succeeded(None),
    }]);
    assert!(changes.dispatch.is_empty(), "nothing new starts");
    let changes = world.tell(&[Fact::Unpause { by: "me".to_owned() }]);
    assert_eq!(changes.dispatch.len(), 2, "b was held, c follows a");
    world.done("b", json!(1));
    world.done("c", json!(1));
    assert_eq!(world.rows.run.state.word(), "succeeded");
}

#[test]
fn approvals_and_checkpoints_wait_for_people() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [
            {"ref": "ask", "type": "STEP_TYPE_APPROVAL", "args": {"on_reject": "skip"}},
            {"ref": "form", "type": "STEP_TYPE_CHECKPOINT", "args": {"timeout": "1m"}}]}),
        json!({}),
    );
    let ask = StepRef::new("ask").unwrap();
    let decide = |step: &StepRef| Fact::Decide {
        step: step.clone(),
        approve: false,
        note: "no".to_owned(),
        by: "me".to_owned(),
    };
    let changes = world.tell(&[decide(&ask), decide(&ask)]);
    assert_eq!(changes.answers[0], Taken::Yes);
    assert!(matches!(&changes.answers[1], Taken::Refused(why) if why.contains("skipped")));
    world.now = Millis(61_000);
    world.tell(&[Fact::Due {
        step: StepRef::new("form").unwrap(),
    }]);
    assert_eq!(world.word("form"), "failed");
    assert_eq!(world.rows.run.state.word(), "failed");
}

#[test]
fn steps_that_end_the_run_end_it() {
    let mut world = World::begun(
        json!({"family_slug": "w", "steps": [task("a"), task("slow"),
            {"ref": "stop", "type": "STEP_TYPE_SUCCEED", "args": {"output": "steps.a.output.x + 1"}}], "edges": [edge("a", "stop")]}),
        json!({}),
    );
    world.done("a", json!({"x": 1}));
    assert_eq!(world.word("slow"), "cancelled");
    assert_eq!(
        (world.rows.run.state.word(), world.result()),
        ("succeeded", json!(2))
    );
    let failed = World::begun(
        json!({"family_slug": "w", "steps": [{"ref": "stop", "type": "STEP_TYPE_FAIL",
            "args": {"code": "bad", "message": "not {{ input.n }}"}}]}),
        json!({"n": 7}),
    );
    assert_eq!(failed.rows.run.state.reason(), Some("step stop: not 7"));
}

#[test]
fn an_expression_that_fails_fails_its_step() {
    let world = World::begun(
        json!({"family_slug": "w", "steps": [{"ref": "a", "type": "STEP_TYPE_DATAFLOW",
            "args": {"operation": "project", "project": {"x": "input.missing.deep"}}}]}),
        json!({}),
    );
    assert_eq!(
        (world.word("a"), world.rows.run.state.word()),
        ("failed", "failed")
    );
}

#[test]
fn a_run_is_tried_again_from_a_step_on() {
    let document = || {
        json!({"family_slug": "w", "steps": [task("a"), task("b"), task("c"), task("d")],
          "edges": [edge("a", "b"), edge("b", "c"), edge("a", "d")]})
    };
    let mut first = World::begun(document(), json!({}));
    for step in ["a", "b", "d", "c"] {
        first.done(step, json!(step));
    }
    let steps: Vec<StepState> = first.rows.steps.values().cloned().collect();
    let from = |name: &str| {
        again::taken_over(
            &first.graph,
            &steps,
            Some(&StepRef::new(name).unwrap()),
            Millis(9_000),
        )
    };
    let done = from("b").unwrap();
    let names: Vec<&str> = done.iter().map(|step| step.step.as_str()).collect();
    assert_eq!(names, ["a", "d"]);
    assert!(from("nope").is_err());
    assert_eq!(
        again::taken_over(&first.graph, &steps, None, Millis(9_000)),
        Err(again::NotAgain::NothingFailed)
    );
    let mut second = World::new(document(), json!({}));
    second.rows.values.extend(first.rows.values.clone());
    second.tell(&[Fact::BegunWith(done)]);
    assert_eq!((second.word("b"), second.word("d")), ("ready", "succeeded"));
    second.done("b", json!(1));
    second.done("c", json!(1));
    assert_eq!(second.rows.run.state.word(), "succeeded");
}
