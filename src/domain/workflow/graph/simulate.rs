//! A dry run: the real tick over a run that nobody keeps. What the coordinator does itself is really computed; what others
//! would do is assumed; nothing is waited for.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde::Serialize;
use serde_json::Value;

use super::build::Graph;
use super::key::{Key, ValueName};
use super::memory::Memory;
use super::state::WaitsFor;
use super::tick::{AttemptEnd, Changes, Fact, StepError};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

/// What is assumed of others.
#[derive(Debug, Clone, Default)]
pub struct Assumed {
    /// Outputs by the name of a step, or of one instance of it (`fetch#3`); null for all others.
    pub outputs: BTreeMap<String, Value>,
    /// Steps, or instances, that fail.
    pub failing: BTreeSet<String>,
}

/// How a dry run goes.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Simulation {
    /// The state in which the run would end.
    pub state: &'static str,
    /// Why, if not well.
    pub reason: Option<String>,
    /// What the run would give.
    pub output: Value,
    /// What it would wait for by itself, in milliseconds: timers alone.
    pub waited_ms: u64,
    /// The steps, in the order in which they would end.
    pub steps: Vec<SimulatedStep>,
    /// There are so many steps that the rest is left out.
    pub cut: bool,
}

/// A step of a dry run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SimulatedStep {
    /// Its name; with its branches behind `#`.
    #[serde(rename = "ref")]
    pub name: String,
    /// Its type on the wire.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The state in which it would end.
    pub state: &'static str,
    /// Its output is assumed: somebody else would make it.
    pub assumed: bool,
    /// Its output.
    pub output: Value,
    /// Why it would not succeed.
    pub reason: Option<String>,
}

/// A run in memory.
struct Stage<'a> {
    graph: &'a Graph,
    assumed: &'a Assumed,
    rows: Memory,
    now: Millis,
    begun: Millis,
    /// What somebody else would do, in the order in which it could be done.
    wanted: VecDeque<StepRef>,
    timers: BTreeSet<(Millis, StepRef)>,
    ended: Vec<SimulatedStep>,
    /// Runs and fences are told apart by their numbers.
    number: u64,
}

/// Runs a graph with this input and nobody but the coordinator.
pub fn simulate(graph: &Graph, name: &JobName, input: Value, assumed: &Assumed, now: Millis) -> Simulation {
    let run = Run {
        id: RunId([0; 16]),
        definition: name.clone(),
        version: 0,
        trigger: Trigger::Manual {
            principal: String::new(),
        },
        node: None,
        created_at: now,
        record_version: 0,
        state: RunState::Pending,
        graph: Some(Box::default()),
    };
    let mut stage = Stage {
        graph,
        assumed,
        rows: Memory::new(run, input),
        now,
        begun: now,
        wanted: VecDeque::new(),
        timers: BTreeSet::new(),
        ended: Vec::new(),
        number: 0,
    };
    stage.tell(&Fact::Begun);
    let mut cut = false;
    while !stage.rows.run.state.is_terminal() {
        if stage.ended.len() > limits::SIMULATED_STEPS_MAX || stage.number > limits::SIMULATED_DEEDS_MAX {
            cut = true;
            break;
        }
        if !stage.go_on() {
            break;
        }
    }
    stage.ended.truncate(limits::SIMULATED_STEPS_MAX);
    Simulation {
        state: stage.rows.run.state.word(),
        reason: stage.rows.run.state.reason().map(str::to_owned),
        output: stage.value(&ValueName::Result),
        waited_ms: stage.now.since(stage.begun),
        steps: stage.ended,
        cut,
    }
}

impl Stage<'_> {
    fn value(&self, name: &ValueName) -> Value {
        self.rows
            .values
            .get(name)
            .map(|value| (**value).clone())
            .unwrap_or_default()
    }

    fn tell(&mut self, fact: &Fact) {
        let number = &mut self.number;
        let mut fresh = || {
            *number += 1;
            let mut id = [0; 16];
            id[8..].copy_from_slice(&number.to_be_bytes());
            RunId(id)
        };
        let facts = std::slice::from_ref(fact);
        let changes = self.rows.tick(self.graph, facts, self.now, &mut fresh);
        self.apply(changes);
    }

    fn apply(&mut self, changes: Changes) {
        self.rows.apply(&changes);
        // One tick ends many steps; its history has their order.
        let mut order = BTreeMap::new();
        for (place, transition) in changes.history.into_iter().enumerate() {
            order.extend(transition.step.map(|step| (step, place)));
        }
        let mut steps = changes.steps;
        steps.sort_by_key(|(_, step)| order.get(&step.step).copied());
        for (_, step) in steps {
            let name = step.step.clone();
            match &step.phase {
                StepPhase::Ready { .. } | StepPhase::Queued { .. } => self.wanted.push_back(name),
                StepPhase::Waiting { on, .. } => match on {
                    WaitsFor::Timer { due } | WaitsFor::Poke { due } => {
                        self.timers.insert((*due, name));
                    }
                    WaitsFor::Checkpoint | WaitsFor::Approval | WaitsFor::Child { .. } => {
                        self.wanted.push_back(name);
                    }
                    // A dry run gives the whole answer at once.
                    WaitsFor::Branches(_) | WaitsFor::Work { .. } => {}
                },
                StepPhase::Retrying { due, .. } => {
                    self.timers.insert((*due, name));
                }
                StepPhase::Running { .. } | StepPhase::Held { .. } => {}
                StepPhase::Succeeded { .. }
                | StepPhase::Failed { .. }
                | StepPhase::Skipped { .. }
                | StepPhase::Cancelled { .. }
                | StepPhase::UpstreamFailed { .. } => self.ended.extend(self.simulated(&step)),
            }
        }
    }

    fn simulated(&self, step: &StepState) -> Option<SimulatedStep> {
        let key = Key::of_name(self.graph, &step.step)?;
        let kind = &self.graph.node(key.node).doc.kind;
        let is_by_others = kind.is_by_others();
        Some(SimulatedStep {
            name: step.step.to_string(),
            kind: kind.word(),
            state: step.phase.word(),
            assumed: is_by_others && matches!(step.phase, StepPhase::Succeeded { .. }),
            output: self.value(&ValueName::Output(step.step.clone())),
            reason: step.phase.reason().map(str::to_owned),
        })
    }

    /// Does what is next; false if nothing is.
    fn go_on(&mut self) -> bool {
        self.number += 1;
        if let Some(name) = self.wanted.pop_front() {
            if let Some(fact) = self
                .rows
                .steps
                .get(&name)
                .cloned()
                .and_then(|step| self.deed(&step))
            {
                self.tell(&fact);
            }
            return true;
        }
        let Some((due, step)) = self.timers.pop_first() else {
            return false;
        };
        self.now = self.now.max(due);
        self.tell(&Fact::Due { step });
        true
    }

    /// What somebody else would do for a step.
    fn deed(&mut self, step: &StepState) -> Option<Fact> {
        let name = step.step.clone();
        let given = self.assumed_of(&name);
        let end = given.map(|value| Some(Arc::new(value)));
        if matches!(step.phase, StepPhase::Ready { .. } | StepPhase::Queued { .. }) {
            return Some(self.attempt(step, end));
        }
        let StepPhase::Waiting { on, .. } = &step.phase else {
            return None;
        };
        match on {
            WaitsFor::Child { run } => Some(Fact::Child {
                step: name,
                run: *run,
                end,
            }),
            WaitsFor::Checkpoint => match end {
                Ok(value) => Some(Fact::Resume {
                    step: name,
                    value: value.unwrap_or_default(),
                    by: "dry run".to_owned(),
                }),
                // Nobody resumes it: it ends by its timer, if it has one.
                Err(_) => {
                    let timer = step.graph.as_ref().and_then(|graph| graph.timer);
                    self.timers.extend(timer.map(|timer| (timer, name)));
                    None
                }
            },
            WaitsFor::Approval => Some(Fact::Decide {
                step: name,
                approve: end.is_ok(),
                note: String::new(),
                by: "dry run".to_owned(),
            }),
            WaitsFor::Timer { .. }
            | WaitsFor::Poke { .. }
            | WaitsFor::Branches(_)
            | WaitsFor::Work { .. } => None,
        }
    }

    /// An execution of a step by nobody.
    fn attempt(&mut self, step: &StepState, end: Result<Option<Arc<Value>>, StepError>) -> Fact {
        let fence = self.number;
        let phase = StepPhase::Running {
            fence,
            started_at: self.now,
            entry: None,
        };
        let running = StepState {
            phase,
            ..step.clone()
        };
        self.rows.steps.insert(step.step.clone(), running);
        let end = match end {
            Ok(output) => AttemptEnd::Succeeded(output),
            Err(error) => AttemptEnd::Failed(error),
        };
        Fact::Attempt {
            step: step.step.clone(),
            fence,
            end,
        }
    }

    /// The output of a step as it is assumed; the instance is asked before the step.
    fn assumed_of(&self, name: &StepRef) -> Result<Value, StepError> {
        let step = name
            .split_instance()
            .map_or_else(|| name.clone(), |(step, _)| step);
        let names = [name.as_str(), step.as_str()];
        if names.iter().any(|name| self.assumed.failing.contains(*name)) {
            return Err(StepError::new("assumed", "assumed to fail").for_good());
        }
        let found = names.iter().find_map(|name| self.assumed.outputs.get(*name));
        Ok(found.cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::domain::workflow::graph::read::read;
    use crate::domain::workflow::graph::read::tests::{everything, hello};

    fn run(document: &Value, input: Value, outputs: &[(&str, Value)], failing: &[&str]) -> Simulation {
        let document = read(document).good().unwrap();
        let assumed = Assumed {
            outputs: outputs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect(),
            failing: failing.iter().map(|name| (*name).to_owned()).collect(),
        };
        let name = JobName::new("w").unwrap();
        simulate(
            &Graph::build(document).unwrap(),
            &name,
            input,
            &assumed,
            Millis(0),
        )
    }

    fn lines(simulation: &Simulation) -> Vec<String> {
        let line = |step: &SimulatedStep| {
            let mark = if step.assumed { "?" } else { "" };
            format!("{} {}{mark} {}", step.name, step.state, step.output)
        };
        simulation.steps.iter().map(line).collect()
    }

    #[test]
    fn hello_world_does_not_really_wait() {
        let found = run(&hello(), json!({}), &[], &[]);
        assert_eq!(
            (found.state, found.waited_ms, found.cut),
            ("succeeded", 2_000, false)
        );
        assert_eq!(lines(&found)[0], "greet succeeded {\"message\":\"hello\"}");
        assert_eq!(found.steps[1].name, "pause");
    }

    #[test]
    fn what_others_do_is_assumed_and_what_is_computed_is_computed() {
        let input = json!({"list": [1, 2], "customer": "c", "go": true, "end": true, "a": "A"});
        let outputs = [
            ("fetch", json!({"ok": true})),
            ("note", json!(10)),
            ("note#1", json!(5)),
        ];
        let found = run(&everything(), input.clone(), &outputs, &["ping"]);
        let lines = lines(&found);
        let has = |line: &str| assert!(lines.iter().any(|found| found == line), "{line}: {lines:#?}");
        has("list succeeded [1,3]");
        has("note#0 succeeded? 10");
        has("note#1 succeeded? 5");
        has("which succeeded \"run\"");
        has("ask skipped null");
        has("ping failed null");
        has("text succeeded {\"a\":\"x A y run_00000000000000000000000000\"}");
        let bad = run(&everything(), input.clone(), &outputs, &["hold"]);
        assert_eq!(bad.state, "failed", "the step that fails the run is reached");
        let good = run(&everything(), input, &outputs, &[]);
        assert_eq!(
            (good.state, good.reason.clone()),
            ("succeeded", None),
            "{good:#?}"
        );
    }

    #[test]
    fn a_large_dry_run_is_cut() {
        let document = json!({"family_slug": "a", "steps": [{"ref": "s", "type": "STEP_TYPE_SCATTER", "args": {"items": "input",
            "body": {"ref": "t", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}}}}]});
        let input: Vec<usize> = (0..limits::SIMULATED_STEPS_MAX + 5).collect();
        let found = run(&document, json!(input), &[], &[]);
        assert!(found.cut);
        assert_eq!(found.steps.len(), limits::SIMULATED_STEPS_MAX);
    }
}
