//! Another try from a step on: what a new run takes over from one that has ended.

use std::collections::BTreeSet;

use super::build::Graph;
use super::key::Key;
use super::state::{Branches, GraphStep, WaitsFor};
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// Why a run cannot be tried again from a step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotAgain {
    /// The definition has no such step, or the run no such branch.
    #[error("the run has not reached a step {0}")]
    Unknown(StepRef),
    /// Everything has succeeded.
    #[error("nothing has failed; name the step from which it is to be tried again")]
    NothingFailed,
}

/// The steps that a new run takes over: all that have succeeded or were skipped, but what failed, `from`, and what follows
/// them. A scatter of which only some branches are done again is taken over as one that waits for these.
pub fn taken_over(
    graph: &Graph,
    steps: &[StepState],
    from: Option<&StepRef>,
    now: Millis,
) -> Result<Vec<StepState>, NotAgain> {
    let mut again = Again {
        graph,
        redone: BTreeSet::new(),
        reopened: BTreeSet::new(),
    };
    if let Some(from) = from {
        let key = Key::of_name(graph, from).filter(|_| steps.iter().any(|step| step.step == *from));
        again.redo(&key.ok_or_else(|| NotAgain::Unknown(from.clone()))?);
    }
    let mut known = Vec::with_capacity(steps.len());
    for step in steps {
        let Some(key) = Key::of_name(graph, &step.step) else {
            continue;
        };
        let is_done = matches!(
            step.phase,
            StepPhase::Succeeded { .. } | StepPhase::Skipped { .. }
        ) || matches!(step.phase, StepPhase::Failed { .. })
            && !graph.node(key.node).fails_run();
        let is_scatter = graph.node(key.node).as_scatter().is_some();
        let by_branches = || is_scatter && has_failed_branch(graph, steps, &key);
        if !is_done && !by_branches() {
            again.redo(&key);
        }
        known.push((key, step));
    }
    if again.redone.is_empty() {
        return Err(NotAgain::NothingFailed);
    }
    let taken = known
        .into_iter()
        .filter_map(|(key, step)| again.take(&key, step, now));
    Ok(taken.collect())
}

/// True for a scatter that failed because of its branches: the branches are done again, not all of it.
fn has_failed_branch(graph: &Graph, steps: &[StepState], scatter: &Key) -> bool {
    steps.iter().any(|step| {
        let key = Key::of_name(graph, &step.step);
        let around = key.and_then(|key| Some((key.node, key.around(graph)?.0)));
        around.is_some_and(|(node, around)| {
            around == *scatter && graph.node(node).fails_run_by(&step.phase).is_some()
        })
    })
}

struct Again<'g> {
    graph: &'g Graph,
    redone: BTreeSet<Key>,
    reopened: BTreeSet<Key>,
}

impl Again<'_> {
    /// The step is done again, and all that follows it, out of the scatters around it too.
    fn redo(&mut self, key: &Key) {
        let mut waiting = vec![key.clone()];
        while let Some(key) = waiting.pop() {
            if !self.redone.insert(key.clone()) {
                continue;
            }
            waiting.extend(self.after(&key));
            let mut inner = key;
            while let Some((scatter, _)) = inner.around(self.graph) {
                waiting.extend(self.after(&scatter));
                self.reopened.insert(scatter.clone());
                inner = scatter;
            }
        }
    }

    fn after(&self, key: &Key) -> Vec<Key> {
        let next = &self.graph.node(key.node).next;
        next.iter()
            .map(|node| Key {
                node: *node,
                path: key.path.clone(),
            })
            .collect()
    }

    fn is_redone(&self, key: &Key) -> bool {
        let mut key = key.clone();
        loop {
            if self.redone.contains(&key) {
                return true;
            }
            match key.around(self.graph) {
                Some((scatter, _)) => key = scatter,
                None => return false,
            }
        }
    }

    fn take(&self, key: &Key, step: &StepState, now: Millis) -> Option<StepState> {
        if self.is_redone(key) {
            return None;
        }
        let mut taken = StepState {
            graph: Some(GraphStep::reached(now)),
            deaths: 0,
            ..step.clone()
        };
        if self.reopened.contains(key) {
            taken.phase = StepPhase::Waiting {
                since: now,
                on: WaitsFor::Branches(Branches::default()),
            };
        }
        Some(taken)
    }
}
