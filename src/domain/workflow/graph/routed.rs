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
}
