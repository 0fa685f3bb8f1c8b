//! From a step that has ended to the steps that follow: edges, joins, and what a step does when it is reached.

use std::sync::Arc;

use serde_json::{Value, json};

use super::build::{Node, Work};
use super::document::{EdgeKind, Join, OnError};
use super::key::{Key, NodeId, ValueName};
use super::kinds::StepKind;
use super::moves::Moving;
use super::state::{GraphStep, WaitsFor};
use super::template::as_text;
use super::tick::{NewChild, StepError, View};
use super::tries::SCATTER_OVER;
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::expr::Fault;
use crate::words::limits;

/// What the incoming edges of a step say together.
enum Joined {
    /// Not all have ended.
    Wait,
    Run,
    Skip(String),
    UpstreamFailed(String),
    Fault(Fault),
}

/// What one incoming edge says.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Says {
    NotYet,
    Taken,
    NotTaken,
    /// Not taken, because its source failed.
    Failed,
}

impl<V: View> Moving<'_, V> {
    /// Looks at what follows a step that has ended.
    pub(super) fn follow(&mut self, key: &Key) -> Result<(), V::Error> {
        let graph = self.graph;
        if self.ends_run(key)? {
            return self.end_by_step(key);
        }
        for target in &graph.node(key.node).next {
            let next = Key {
                node: *target,
                path: key.path.clone(),
            };
            if self.step_of(&next)?.is_some() {
                continue;
            }
            match self.join(&next)? {
                Joined::Wait => {}
                Joined::Run => self.reach(&next)?,
                Joined::Skip(reason) => {
                    let state = self.fresh_step(&next);
                    let ended_at = self.now;
                    self.end(&next, state, StepPhase::Skipped { ended_at, reason })?;
                }
                Joined::UpstreamFailed(reason) => {
                    let state = self.fresh_step(&next);
                    let ended_at = self.now;
                    self.end(&next, state, StepPhase::UpstreamFailed { ended_at, reason })?;
                }
                Joined::Fault(fault) => {
                    let state = self.fresh_step(&next);
                    self.fail(&next, state, &error_of(&fault))?;
                }
            }
        }
        self.count_branch(key)
    }

    /// True for a step of type succeed or fail that did what it is for. One whose expression failed is a failed step like
    /// any other.
    fn ends_run(&mut self, key: &Key) -> Result<bool, V::Error> {
        let succeeds = matches!(self.graph.node(key.node).work, Work::Succeed(_));
        let fails = matches!(self.graph.node(key.node).work, Work::Fail(..));
        if !succeeds && !fails {
            return Ok(false);
        }
        let state = self.step_of(key)?;
        Ok(state.is_some_and(|state| {
            succeeds && matches!(state.phase, StepPhase::Succeeded { .. })
                || fails && matches!(state.phase, StepPhase::Failed { .. })
        }))
    }

    fn fresh_step(&self, key: &Key) -> StepState {
        StepState {
            step: key.name(self.graph),
            attempt: 1,
            deaths: 0,
            phase: StepPhase::Held { since: self.now },
            graph: Some(GraphStep::reached(self.now)),
        }
    }

    fn join(&mut self, key: &Key) -> Result<Joined, V::Error> {
        let graph = self.graph;
        let node = graph.node(key.node);
        let mut says = Vec::with_capacity(node.incoming.len());
        let mut culprit = None;
        for (place, edge) in node.incoming.iter().enumerate() {
            let said = match self.edge_says(key, place)? {
                Ok(said) => said,
                Err(fault) => return Ok(Joined::Fault(fault)),
            };
            if said == Says::Failed && culprit.is_none() {
                culprit = Some(graph.node(edge.from).doc.name.clone());
            }
            says.push(said);
        }
        let any = |wanted: Says| says.contains(&wanted);
        let all_ended = !any(Says::NotYet);
        let not_taken = |culprit: Option<_>| match culprit {
            Some(step) => Joined::UpstreamFailed(format!("step {step} before it failed")),
            None => Joined::Skip("no edge to it was taken".to_owned()),
        };
        Ok(match node.doc.join {
            Join::AnySuccess if any(Says::Taken) => Joined::Run,
            _ if !all_ended => Joined::Wait,
            Join::AllSuccess if says.iter().all(|said| *said == Says::Taken) => Joined::Run,
            Join::AllDone => Joined::Run,
            Join::NoneFailed if culprit.is_none() && any(Says::Taken) => Joined::Run,
            Join::AllSuccess | Join::AnySuccess | Join::NoneFailed => not_taken(culprit),
        })
    }

    fn edge_says(&mut self, key: &Key, place: usize) -> Result<Result<Says, Fault>, V::Error> {
        let graph = self.graph;
        let edge = &graph.node(key.node).incoming[place];
        let source = Key {
            node: edge.from,
            path: key.path.clone(),
        };
        let Some(state) = self.step_of(&source)? else {
            return Ok(Ok(Says::NotYet));
        };
        if !state.phase.is_terminal() {
            return Ok(Ok(Says::NotYet));
        }
        let failed = matches!(state.phase, StepPhase::Failed { .. });
        let goes_on = graph.node(edge.from).doc.on_error == OnError::Continue;
        let succeeded = matches!(state.phase, StepPhase::Succeeded { .. }) || failed && goes_on;
        let bad = matches!(
            state.phase,
            StepPhase::Failed { .. } | StepPhase::UpstreamFailed { .. } | StepPhase::Cancelled { .. }
        );
        if succeeded && !self.switch_allows(edge.from, &source, key.node)? {
            return Ok(Ok(Says::NotTaken));
        }
        let said = match edge.kind {
            EdgeKind::Success if succeeded => Says::Taken,
            EdgeKind::Failure if failed => Says::Taken,
            EdgeKind::Always => Says::Taken,
            EdgeKind::Condition if succeeded => {
                let Some(condition) = &edge.condition else {
                    return Ok(Ok(Says::Taken));
                };
                let scope = self.scope([condition], key)?;
                match condition.evaluate_bool(&scope) {
                    Ok(true) => Says::Taken,
                    Ok(false) => Says::NotTaken,
                    Err(fault) => return Ok(Err(fault)),
                }
            }
            EdgeKind::Success | EdgeKind::Condition if bad => Says::Failed,
            EdgeKind::Success | EdgeKind::Failure | EdgeKind::Condition => Says::NotTaken,
        };
        Ok(Ok(said))
    }

    /// A switch takes its edges to the steps of its cases only if they were chosen.
    fn switch_allows(&mut self, from: NodeId, source: &Key, target: NodeId) -> Result<bool, V::Error> {
        let graph = self.graph;
        let Work::Switch(cases, default) = &graph.node(from).work else {
            return Ok(true);
        };
        let is_choice = cases.iter().any(|(_, choice)| *choice == target) || *default == Some(target);
        if !is_choice {
            return Ok(true);
        }
        let chosen = self.value(&ValueName::Output(source.name(graph)))?;
        let chosen = chosen.as_deref().and_then(Value::as_str);
        Ok(chosen == Some(graph.node(target).doc.name.as_str()))
    }

    /// A step is reached: its condition decides whether it begins.
    pub(super) fn reach(&mut self, key: &Key) -> Result<(), V::Error> {
        let graph = self.graph;
        let node = graph.node(key.node);
        let mut state = self.fresh_step(key);
        if self.around_is_over(key)? {
            let phase = StepPhase::Cancelled {
                ended_at: self.now,
                reason: SCATTER_OVER.to_owned(),
            };
            return self.end(key, state, phase);
        }
        if let Some(graph_step) = state.graph.as_mut() {
            graph_step.total_at = node.doc.timeouts.total.map(|total| self.now.plus(total.0));
            // The runner of a process keeps its time itself.
            let is_process = matches!(node.doc.kind, StepKind::Command(_) | StepKind::Sensor(_));
            let attempt = node.doc.timeouts.attempt.filter(|_| !is_process);
            graph_step.attempt_ms = attempt.map(|limit| limit.0);
            graph_step.queue_ms = node.doc.timeouts.queue.map(|limit| limit.0);
            graph_step.kill_timeout_ms = node
                .doc
                .kind
                .command()
                .map_or(0, |command| command.kill_timeout_ms);
        }
        if let Some(when) = &node.when {
            let scope = self.scope([when], key)?;
            match when.evaluate_bool(&scope) {
                Ok(true) => {}
                Ok(false) => {
                    let phase = StepPhase::Skipped {
                        ended_at: self.now,
                        reason: "its condition is false".to_owned(),
                    };
                    return self.end(key, state, phase);
                }
                Err(fault) => return self.fail(key, state, &error_of(&fault)),
            }
        }
        self.start(key, state, node)
    }

    fn start(&mut self, key: &Key, state: StepState, node: &Node) -> Result<(), V::Error> {
        match &node.work {
            Work::Command | Work::Sensor | Work::Http(_) | Work::Task(_) | Work::Route(_) => {
                self.make_ready(key, state)
            }
            Work::WaitFor(ms) => {
                let due = self.now.plus(*ms);
                self.wait(key, state, WaitsFor::Timer { due })
            }
            Work::WaitUntil(until) => {
                let scope = self.scope([until], key)?;
                match until.evaluate_instant(&scope) {
                    Ok(due) => self.wait(key, state, WaitsFor::Timer { due }),
                    Err(fault) => self.fail(key, state, &error_of(&fault)),
                }
            }
            Work::Checkpoint => self.wait(key, state, WaitsFor::Checkpoint),
            Work::Approval => self.wait(key, state, WaitsFor::Approval),
            Work::Scatter(_) => self.scatter(key, state),
            Work::Subworkflow(input) => self.begin_child(key, state, input.as_ref()),
            Work::Project(_)
            | Work::Filter(..)
            | Work::Map(..)
            | Work::Merge(_)
            | Work::Reduce(_)
            | Work::Assert(_)
            | Work::Template(_)
            | Work::Switch(..)
            | Work::Gather(_)
            | Work::Fail(..)
            | Work::Succeed(_) => match self.compute(key, &node.work)? {
                Ok(output) => self.succeed(key, state, Some(Arc::new(output))),
                Err(error) => self.fail(key, state, &error),
            },
        }
    }

    pub(super) fn wait(&mut self, key: &Key, state: StepState, on: WaitsFor) -> Result<(), V::Error> {
        if let WaitsFor::Timer { due } = on
            && due <= self.now
        {
            return self.succeed(key, state, Some(Arc::new(json!({"due": due.to_string()}))));
        }
        let since = self.now;
        let phase = StepPhase::Waiting { since, on };
        self.put(key, StepState { phase, ..state })
    }

    /// The step may be executed: by whoever has the means, as soon as somebody has.
    pub(super) fn make_ready(&mut self, key: &Key, mut state: StepState) -> Result<(), V::Error> {
        let since = self.now;
        if let Some(graph) = state.graph.as_mut() {
            graph.queued_since = Some(since);
        }
        if self.is_held() {
            let phase = StepPhase::Held { since };
            return self.put(key, StepState { phase, ..state });
        }
        if let Some(error) = self.prepare_for_others(key, &state)? {
            return self.fail(key, state, &error);
        }
        self.dispatch.push((state.step.clone(), key.node));
        let phase = StepPhase::Ready { since };
        self.put(key, StepState { phase, ..state })
    }

    /// What somebody who executes the step will ask for is computed now, so that nobody computes it while others wait.
    fn prepare_for_others(&mut self, key: &Key, state: &StepState) -> Result<Option<StepError>, V::Error> {
        let graph = self.graph;
        let node = graph.node(key.node);
        if let Work::Task(Some(program)) = &node.work {
            let scope = self.scope([program], key)?;
            match program.evaluate(&scope) {
                Ok(input) => self.keep(ValueName::TaskInput(state.step.clone()), Arc::new(input)),
                Err(fault) => return Ok(Some(error_of(&fault))),
            }
        }
        if let Some(program) = &node.idempotency_key {
            let scope = self.scope([program], key)?;
            let once = match program.evaluate(&scope) {
                Ok(once) => once,
                Err(fault) => return Ok(Some(error_of(&fault))),
            };
            let once = as_text(&once);
            if once.is_empty() || once.len() > limits::IDEMPOTENCY_KEY_BYTES_MAX {
                let text = format!(
                    "`idempotency_key` must be a text of 1 to {} bytes",
                    limits::IDEMPOTENCY_KEY_BYTES_MAX
                );
                return Ok(Some(StepError::new("task.idempotency_key", text).for_good()));
            }
            self.keep(
                ValueName::OnceKey(state.step.clone()),
                Arc::new(Value::String(once)),
            );
        }
        Ok(None)
    }

    fn begin_child(
        &mut self,
        key: &Key,
        state: StepState,
        input: Option<&crate::expr::Program>,
    ) -> Result<(), V::Error> {
        let input = match input {
            None => Value::Null,
            Some(program) => {
                let scope = self.scope([program], key)?;
                match program.evaluate(&scope) {
                    Ok(input) => input,
                    Err(fault) => return self.fail(key, state, &error_of(&fault)),
                }
            }
        };
        let run = (self.fresh)();
        self.children.push(NewChild {
            step: state.step.clone(),
            input: Arc::new(input),
            run,
        });
        let kind = &self.graph.node(key.node).doc.kind;
        if !matches!(kind, StepKind::Subworkflow(sub) if !sub.wait) {
            return self.wait(key, state, WaitsFor::Child { run });
        }
        self.succeed(key, state, Some(Arc::new(json!({"run": run.to_string()}))))
    }

    pub(super) fn reach_if_new(&mut self, key: &Key) -> Result<(), V::Error> {
        if self.step_of(key)?.is_some() {
            return Ok(());
        }
        self.reach(key)
    }
}

/// A fault of an expression, as the error of a step: the same expression over the same values fails again.
pub(super) fn error_of(fault: &Fault) -> StepError {
    StepError::new(fault.code, fault.message.clone()).for_good()
}
