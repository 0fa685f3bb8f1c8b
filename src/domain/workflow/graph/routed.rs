//! The work of a step that routes, with its fields computed.

use serde_json::{Map, Value};

use super::build::{Graph, Work};
use super::key::Key;
use super::kinds::{RouteWait, StepKind};
use super::moves::Moving;
use super::reach::error_of;
use super::tick::{StepError, View};
use crate::domain::workflow::run::Run;
use crate::words::ids::{RunId, WorkId, digest_of_parts};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// Work that is to be routed.
#[derive(Debug, Clone, PartialEq)]
pub struct Wanted {
    /// Its fields.
    pub work: Map<String, Value>,
    /// The id or the name of a recipient pool.
    pub recipient_pool: Option<String>,
    /// In place of the recipient pool's strategy.
    pub strategy: Option<String>,
    /// The step goes on when the work is done.
    pub waits: bool,
}

/// True for a step that routes.
pub fn is_route(graph: &Graph, step: &StepRef) -> bool {
    Key::of_name(graph, step).is_some_and(|key| matches!(graph.node(key.node).work, Work::Route(_)))
}

/// What a step routes, or why it cannot.
pub fn wanted_of<V: View>(
    graph: &Graph,
    run: &Run,
    step: &StepRef,
    now: Millis,
    view: &mut V,
) -> Result<Result<Wanted, StepError>, V::Error> {
    let nothing = || StepError::new("route.invalid", "the definition routes nothing here").for_good();
    let Some(key) = Key::of_name(graph, step) else {
        return Ok(Err(nothing()));
    };
    let node = graph.node(key.node);
    let (Work::Route(fields), StepKind::Route(doc)) = (&node.work, &node.doc.kind) else {
        return Ok(Err(nothing()));
    };
    let mut never = || RunId([0; 16]);
    let mut moving = Moving::new(graph, run, now, view, &mut never);
    let programs: Vec<_> = fields.iter().map(|(_, program)| program).collect();
    let scope = moving.scope(programs, &key)?;
    let mut work = Map::new();
    for (name, program) in fields {
        match program.evaluate(&scope) {
            Ok(value) => {
                work.insert(name.clone(), value);
            }
            Err(fault) => return Ok(Err(error_of(&fault))),
        }
    }
    Ok(Ok(Wanted {
        work,
        recipient_pool: doc.recipient_pool.clone(),
        strategy: doc.strategy.clone(),
        waits: doc.wait == RouteWait::Completion,
    }))
}

/// The id of the work of an attempt: the same however often it is routed. It has the time of its run, and the form of all ids.
pub fn work_id(run: RunId, step: &StepRef, attempt: u32) -> WorkId {
    let parts = ["route", &run.to_string(), step.as_str(), &attempt.to_string()];
    let mut id = digest_of_parts(&parts);
    id[..6].copy_from_slice(&run.0[..6]);
    id[6] = 0x70 | (id[6] & 0x0f);
    id[8] = 0x80 | (id[8] & 0x3f);
    WorkId(id)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::super::tests::{World, edge, task};
    use super::super::tick::{AttemptEnd, Fact};
    use super::*;

    #[test]
    fn each_attempt_has_work_of_its_own() {
        let run = RunId::fresh();
        let step = |name| StepRef::new(name).unwrap();
        let first = work_id(run, &step("a"), 1);
        assert_eq!(first, work_id(run, &step("a"), 1));
        for other in [
            work_id(run, &step("a"), 2),
            work_id(run, &step("b"), 1),
            work_id(RunId::fresh(), &step("a"), 1),
        ] {
            assert_ne!(first, other);
        }
        // It can be asked for like every other id.
        assert_eq!(first.to_string().parse(), Ok(first));
    }

    fn world() -> World {
        let route = json!({"ref": "r", "type": "STEP_TYPE_ROUTE",
            "args": {"work": {"kind": "'t'"}, "wait": "completion", "timeout": "1m"}});
        World::begun(
            json!({"family_slug": "w", "steps": [route, task("b")], "edges": [edge("r", "b")]}),
            json!({}),
        )
    }

    fn over(attempt: u32, end: Result<Value, StepError>) -> Fact {
        Fact::WorkOver {
            step: StepRef::new("r").unwrap(),
            attempt,
            end: end.map(Arc::new),
        }
    }

    #[test]
    fn a_step_goes_on_when_its_work_is_done() {
        let mut world = world();
        world.work("r", AttemptEnd::Routed(WorkId([1; 16])));
        assert_eq!((world.word("r"), world.word("b")), ("waiting", "pending"));
        // What an attempt before has routed does not count.
        world.tell(&[over(0, Ok(json!({"value": 1})))]);
        assert_eq!(world.word("r"), "waiting");
        world.tell(&[over(1, Ok(json!({"value": 1})))]);
        assert_eq!((world.word("r"), world.word("b")), ("succeeded", "ready"));
    }

    #[test]
    fn work_may_be_done_before_its_step_waits() {
        let mut world = world();
        let fence = world.claim("r");
        let changes = world.tell(&[over(1, Ok(json!({})))]);
        assert_eq!(world.word("r"), "succeeded");
        assert_eq!(changes.stop.len(), 1);
        world.tell(&[Fact::Attempt {
            step: StepRef::new("r").unwrap(),
            fence,
            end: AttemptEnd::Routed(WorkId([1; 16])),
        }]);
        assert_eq!(world.word("r"), "succeeded", "it came too late");
    }

    #[test]
    fn work_that_nobody_does_fails_its_step() {
        let mut dropped = world();
        dropped.work("r", AttemptEnd::Routed(WorkId([1; 16])));
        dropped.tell(&[over(1, Err(StepError::new("route.dropped", "nobody")))]);
        assert_eq!(dropped.word("r"), "failed");
        let mut late = world();
        late.work("r", AttemptEnd::Routed(WorkId([1; 16])));
        late.now = Millis(late.now.0 + 60_000);
        late.tell(&[Fact::Due {
            step: StepRef::new("r").unwrap(),
        }]);
        assert_eq!(late.word("r"), "failed");
    }
}
