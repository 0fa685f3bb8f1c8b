//! A run under test: moved by the tick, and compared with the model after each fact.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Value, json};

use super::build::Graph;
use super::key::{Key, ValueName};
use super::kinds::StepKind;
use super::memory::Memory;
use super::model::{Happened, Is, Model, answer_word, replay};
use super::model_plan::{Does, Plan, Step};
use super::read::read;
use super::state::WaitsFor;
use super::tick::{AttemptEnd, Changes, Fact, StepError};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::domain::workflow::tick::{Fact as ClaimFact, fold};
use crate::words::ids::{RunId, WorkId};
use crate::words::names::{JobName, StepRef};
use crate::words::time::Millis;

const BEGIN: i64 = 1_000_000;

/// One thing that is tried: what, with which of the steps that fit, and how it goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Try {
    pub(super) what: u8,
    pub(super) which: u16,
    pub(super) how: u8,
}

/// What is stored of a run, with what it has told.
#[derive(Debug, Clone)]
pub(super) struct Rows {
    pub(super) kept: Memory,
    history: Vec<String>,
    children: u8,
}

impl std::ops::Deref for Rows {
    type Target = Memory;

    fn deref(&self) -> &Memory {
        &self.kept
    }
}

impl Rows {
    fn tick(&self, graph: &Graph, facts: &[Fact], now: i64) -> (Changes, u8) {
        let mut children = self.children;
        let mut fresh = || {
            children += 1;
            RunId([children; 16])
        };
        let changes = self.kept.tick(graph, facts, Millis(now), &mut fresh);
        (changes, children)
    }

    fn apply(&mut self, changes: Changes, children: u8) {
        self.children = children;
        for (before, step) in &changes.steps {
            assert_eq!(before.as_ref(), self.steps.get(&step.step), "it was what it was");
            let ended = before.as_ref().is_some_and(|before| before.phase.is_terminal());
            assert!(
                !ended || before.as_ref().is_some_and(|before| before.phase == step.phase),
                "{} has ended and is written again",
                step.step
            );
        }
        self.kept.apply(&changes);
        let lines = changes.history.into_iter();
        self.history
            .extend(lines.map(|line| format!("{:?} {} {}", line.step, line.what, line.detail)));
    }

    fn without_version(&self) -> String {
        let mut run = Run {
            record_version: 0,
            ..self.run.clone()
        };
        run.graph.as_mut().unwrap().history.compacted_to = 0;
        format!(
            "{run:#?}\n{:#?}\n{:#?}\n{:#?}",
            self.steps, self.values, self.history
        )
    }
}

/// A run under test beside the log from which the model works.
pub(super) struct Trial<'p> {
    plan: &'p Plan,
    graph: Graph,
    pub(super) rows: Rows,
    log: Vec<(i64, Happened)>,
    now: i64,
    number: u64,
    deadline: Option<i64>,
}

impl<'p> Trial<'p> {
    pub(super) fn new(plan: &'p Plan, timeout: Option<u64>) -> Trial<'p> {
        let document = plan.document(timeout);
        let reading = read(&document);
        assert!(
            reading.findings.is_empty(),
            "{:#?}\n{document:#}",
            reading.findings
        );
        let graph = Graph::build(reading.document.unwrap()).unwrap();
        let deadline = timeout.map(|limit| BEGIN + i64::try_from(limit).unwrap() * 1_000);
        let mut run = Run {
            id: RunId([200; 16]),
            definition: JobName::new("w").unwrap(),
            version: 1,
            trigger: Trigger::Manual {
                principal: "me".to_owned(),
            },
            node: None,
            created_at: Millis(BEGIN),
            record_version: 0,
            state: RunState::Pending,
            graph: Some(Box::default()),
        };
        run.graph.as_mut().unwrap().deadline = deadline.map(Millis);
        let rows = Rows {
            kept: Memory::new(run, json!({})),
            history: Vec::new(),
            children: 0,
        };
        let mut trial = Trial {
            plan,
            graph,
            rows,
            log: Vec::new(),
            now: BEGIN,
            number: 0,
            deadline,
        };
        trial.tell(&[Fact::Begun]);
        trial
    }

    pub(super) fn node_of(&self, step: &StepRef) -> &StepKind {
        let key = Key::of_name(&self.graph, step).unwrap();
        &self.graph.node(key.node).doc.kind
    }

    fn planned(&self, step: &StepRef) -> Step {
        let mut plan = self.plan;
        let (name, _) = step.split_instance().unwrap();
        let mut found = None;
        for place in name.as_str().split('s').skip(1) {
            let step = &plan.steps[place.parse::<usize>().unwrap()];
            if let Does::Scatter { body, .. } = &step.does {
                plan = body;
            }
            found = Some(step.clone());
        }
        found.unwrap()
    }

    /// Facts in one tick: twice the same, and the same as one by one. What is ready is taken by its slot pool if it has one.
    fn tell(&mut self, facts: &[Fact]) {
        let (changes, children) = self.rows.tick(&self.graph, facts, self.now);
        assert_eq!(
            changes,
            self.rows.tick(&self.graph, facts, self.now).0,
            "the same again"
        );
        let mut one_by_one = self.rows.clone();
        for fact in facts {
            let (changes, children) = one_by_one.tick(&self.graph, std::slice::from_ref(fact), self.now);
            one_by_one.apply(changes, children);
        }
        let answers: Vec<&str> = changes.answers.iter().map(answer_word).collect();
        let dispatch = changes.dispatch.clone();
        self.rows.apply(changes, children);
        if facts.len() > 1 {
            assert_eq!(
                self.rows.without_version(),
                one_by_one.without_version(),
                "{facts:#?}"
            );
        }
        for fact in facts {
            self.log.push((self.now, Happened::Fact(fact.clone())));
        }
        let model = replay(self.plan, self.deadline, &self.log);
        assert_eq!(answers.last(), Some(&model.answer), "{facts:#?}");
        if facts.len() == 1 {
            let is_ready = |step: &StepRef| matches!(self.rows.steps[step].phase, StepPhase::Ready { .. });
            let ready = dispatch.iter().filter(|(step, _)| is_ready(step));
            let ready: BTreeSet<String> = ready.map(|(step, _)| step.to_string()).collect();
            assert_eq!(ready, model.ready, "what is to be executed now, after {facts:#?}");
        }
        self.compare(&model);
        drop(model);
        for (step, _) in dispatch {
            self.enter(&step);
        }
        self.invariants();
    }

    fn enter(&mut self, step: &StepRef) {
        if !self.planned(step).pooled || !matches!(self.rows.steps[step].phase, StepPhase::Ready { .. }) {
            return;
        }
        self.number += 1;
        let entry = self.number;
        let state = self.rows.kept.steps.get_mut(step).unwrap();
        state.phase = StepPhase::Queued {
            entry,
            since: Millis(self.now),
        };
        let step = step.to_string();
        self.log.push((self.now, Happened::Entered { step, entry }));
    }

    fn compare(&self, model: &Model<'_>) {
        let expected: BTreeMap<String, String> = { model.by_name().into_iter() }
            .map(|(name, one)| {
                let is_held = one.is == Is::Held;
                (
                    name,
                    format!("{} attempt {} held {is_held}", one.is.word(), one.attempt),
                )
            })
            .collect();
        let found: BTreeMap<String, String> = { self.rows.steps.values() }
            .map(|step| {
                let is_held = matches!(step.phase, StepPhase::Held { .. });
                let text = format!("{} attempt {} held {is_held}", step.phase.word(), step.attempt);
                (step.step.to_string(), text)
            })
            .collect();
        assert_eq!(found, expected, "steps\n{:#?}", self.log);
        assert_eq!(self.rows.run.state.word(), model.state, "run\n{:#?}", self.log);
        for (name, one) in model.by_name() {
            let step = StepRef::new(&name).unwrap();
            let error = self.rows.values.get(&ValueName::Error(step.clone()));
            assert_eq!(error.is_some(), one.error.is_some(), "error of {name}");
            if let (Some(error), Some(code)) = (error, one.error.as_deref().filter(|code| *code != "?")) {
                assert_eq!(error["code"], code, "error of {name}");
            }
            let output = self.rows.values.get(&ValueName::Output(step.clone()));
            let output = output.map(|output| plain(self.node_of(&step), output));
            assert_eq!(output, one.output, "output of {name}");
        }
        if model.has_ended() && model.state == "succeeded" {
            // Outputs inside are compared one by one above; here it is which they are.
            let result = self.rows.values.get(&ValueName::Result).unwrap();
            let shape = |value: &Value| {
                value
                    .as_object()
                    .map(|object| object.keys().cloned().collect::<Vec<_>>())
            };
            let expected = model.result.as_ref().unwrap();
            if let (Some(found), Some(expected)) = (shape(result), shape(expected))
                && expected.iter().all(|name| name.starts_with('s'))
            {
                assert_eq!(found, expected, "result");
            }
        }
    }

    /// A run has ended, or says what it waits for.
    fn invariants(&self) {
        let open: Vec<&StepState> = { self.rows.steps.values() }
            .filter(|step| !step.phase.is_terminal())
            .collect();
        if self.rows.run.state.is_terminal() {
            assert!(open.is_empty(), "the run has ended and these have not: {open:#?}");
        } else {
            let is_paused = matches!(self.rows.run.state, RunState::Paused { .. });
            assert!(
                !open.is_empty() || is_paused,
                "the run waits for nothing\n{:#?}",
                self.log
            );
            let waits = |step: &&StepState| {
                !matches!(
                    step.phase,
                    StepPhase::Waiting {
                        on: WaitsFor::Branches(_),
                        ..
                    }
                )
            };
            assert!(
                open.iter().any(waits) || is_paused,
                "branches wait for nothing\n{:#?}",
                self.log
            );
        }
        for step in self.rows.steps.values() {
            let most = self.planned(&step.step).attempts;
            assert!(step.attempt <= most, "{} has attempt {}", step.step, step.attempt);
            let timer = step.graph.as_ref().and_then(|graph| graph.timer);
            assert!(
                timer.is_none() || !step.phase.is_terminal(),
                "{} has ended and a timer",
                step.step
            );
        }
    }

    fn having(&self, fits: impl Fn(&StepPhase) -> bool) -> Vec<StepRef> {
        let fitting = self.rows.steps.values().filter(|step| fits(&step.phase));
        fitting.map(|step| step.step.clone()).collect()
    }

    pub(super) fn claim(&mut self, which: u16) -> Option<()> {
        let ready = self.having(|phase| matches!(phase, StepPhase::Ready { .. } | StepPhase::Queued { .. }));
        let step = pick(&ready, which)?;
        self.number += 1;
        let fence = self.number;
        let state = &self.rows.steps[&step];
        let claimed = fold(
            &self.rows.run,
            state,
            &ClaimFact::Claimed { fence },
            Millis(self.now),
        )
        .unwrap();
        self.rows.kept.run = claimed.run;
        self.rows.kept.steps.insert(step.clone(), claimed.step);
        let step = step.to_string();
        self.log.push((self.now, Happened::Claimed { step, fence }));
        Some(())
    }

    fn ended(&self, which: u16, how: u8) -> Option<Fact> {
        let running = self.having(|phase| matches!(phase, StepPhase::Running { .. }));
        let step = pick(&running, which)?;
        let StepPhase::Running { fence, .. } = self.rows.steps[&step].phase else {
            return None;
        };
        let is_sensor = matches!(self.node_of(&step), StepKind::Sensor(_));
        let is_route = matches!(self.node_of(&step), StepKind::Route(_));
        let fail = |code: &str| AttemptEnd::Failed(StepError::new(code, "it broke"));
        let end = match how % 20 {
            0..=13 if is_route => AttemptEnd::Routed(WorkId([how; 16])),
            0..=8 => AttemptEnd::Succeeded(Some(Arc::new(json!(how)))),
            9 => AttemptEnd::Succeeded(None),
            10..=13 if is_sensor => AttemptEnd::NotMet,
            10..=14 => fail("boom"),
            15 => fail("fatal"),
            16 => AttemptEnd::Failed(StepError::new("final", "it broke").for_good()),
            17 => AttemptEnd::Failed(StepError {
                retry_after_ms: Some(3_000),
                ..StepError::new("later", "not now")
            }),
            18 => AttemptEnd::NotMet,
            _ => AttemptEnd::Cancelled("somebody stopped it".to_owned()),
        };
        Some(Fact::Attempt { step, fence, end })
    }

    fn child_ended(&self, which: u16, how: u8) -> Option<Fact> {
        let waiting = self.having(|phase| {
            matches!(
                phase,
                StepPhase::Waiting {
                    on: WaitsFor::Child { .. },
                    ..
                }
            )
        });
        let step = pick(&waiting, which)?;
        let StepPhase::Waiting {
            on: WaitsFor::Child { run },
            ..
        } = self.rows.steps[&step].phase
        else {
            return None;
        };
        let end = match how % 4 {
            0 => Err(StepError::new("child.failed", "it failed")),
            1 => Ok(None),
            _ => Ok(Some(Arc::new(json!(how)))),
        };
        let run = if how % 9 == 8 { RunId([222; 16]) } else { run };
        Some(Fact::Child { step, run, end })
    }

    /// The work of a step that waits for it, or has not told yet that it does; or of an attempt before.
    fn work_over(&self, which: u16, how: u8) -> Option<Fact> {
        let routes = |step: &StepRef| matches!(self.node_of(step), StepKind::Route(_));
        let mut all =
            self.having(|phase| matches!(phase, StepPhase::Running { .. } | StepPhase::Waiting { .. }));
        all.retain(routes);
        let step = pick(&all, which)?;
        let attempt = self.rows.steps[&step].attempt - u32::from(how % 9 == 8);
        let end = match how % 4 {
            0 => Err(StepError::new("route.dropped", "nobody has done it")),
            _ => Ok(Arc::new(json!(how))),
        };
        Some(Fact::WorkOver { step, attempt, end })
    }

    fn timer_of(&self, step: &StepRef) -> Option<i64> {
        let graph = self.rows.steps[step].graph.as_ref()?;
        graph.timer.map(|timer| timer.0)
    }

    /// The next timer, at its time.
    fn next_timer(&mut self) -> Option<Fact> {
        let timers = self
            .rows
            .steps
            .keys()
            .filter_map(|step| Some((self.timer_of(step)?, step.clone())));
        let (at, step) = timers.min()?;
        self.now = self.now.max(at);
        Some(Fact::Due { step })
    }

    fn fact(&mut self, one: Try) -> Option<Fact> {
        let (which, how) = (one.which, one.how);
        let by = || "me".to_owned();
        let all: Vec<StepRef> = self.rows.steps.keys().cloned().collect();
        match one.what {
            0..=49 => self.ended(which, how),
            50..=61 => self.next_timer(),
            62..=65 => pick(&all, which).map(|step| Fact::Due { step }),
            66..=67 => self.child_ended(which, how),
            68..=69 => self.work_over(which, how),
            70..=73 => {
                let waiting = self.having(|phase| matches!(phase, StepPhase::Waiting { .. }));
                let step = pick(&waiting, which)?;
                let value = Arc::new(json!(how));
                Some(Fact::Resume {
                    step,
                    value,
                    by: by(),
                })
            }
            74..=78 => {
                let waiting = self.having(|phase| matches!(phase, StepPhase::Waiting { .. }));
                let step = pick(&waiting, which)?;
                Some(Fact::Decide {
                    step,
                    approve: how % 2 == 0,
                    note: String::new(),
                    by: by(),
                })
            }
            79..=84 => Some(Fact::Pause {
                by: by(),
                reason: String::new(),
            }),
            85..=90 => Some(Fact::Unpause { by: by() }),
            91 => Some(Fact::Cancel { by: by() }),
            92..=93 => Some(Fact::Deadline),
            94..=96 => {
                let queued = self.having(|phase| matches!(phase, StepPhase::Queued { .. }));
                let step = pick(&queued, which)?;
                let StepPhase::Queued { entry, .. } = self.rows.steps[&step].phase else {
                    return None;
                };
                let entry = if how % 5 == 4 { entry + 1 } else { entry };
                Some(Fact::EntryClosed {
                    step,
                    entry,
                    reason: "withdrawn".to_owned(),
                })
            }
            _ => pick(&all, which).map(|step| Fact::Attempt {
                step,
                fence: 9_999_999,
                end: AttemptEnd::Succeeded(None),
            }),
        }
    }

    pub(super) fn happen(&mut self, one: Try) {
        // Most of all, steps are claimed.
        let ready = self.having(|phase| matches!(phase, StepPhase::Ready { .. } | StepPhase::Queued { .. }));
        if !one.how.is_multiple_of(3) && !ready.is_empty() && one.what < 90 {
            self.claim(one.which);
        }
        if one.how.is_multiple_of(7) {
            self.now += i64::from(one.how % 4) * 700;
        }
        if let Some(fact) = self.fact(one) {
            self.tell(&[fact]);
        }
    }

    /// Several facts that were true at one moment arrive together.
    pub(super) fn happen_together(&mut self, all: &[Try]) {
        let facts: Vec<Fact> = all.iter().filter_map(|one| self.fact(*one)).collect();
        if !facts.is_empty() {
            self.tell(&facts);
        }
    }

    /// Everybody does what is theirs until the run has ended.
    pub(super) fn drain(&mut self) {
        for round in 0..2_000u16 {
            if self.rows.run.state.is_terminal() {
                return;
            }
            let by = "me".to_owned();
            if matches!(self.rows.run.state, RunState::Paused { .. }) {
                self.tell(&[Fact::Unpause { by }]);
            } else if self.claim(round).is_some() {
            } else if let Some(fact) = self
                .ended(round, 0)
                .or_else(|| self.child_ended(0, 2))
                .or_else(|| self.work_over(0, 1))
            {
                self.tell(&[fact]);
            } else {
                self.answer_or_wait();
            }
        }
        panic!("it does not end\n{:#?}", self.log);
    }

    fn answer_or_wait(&mut self) {
        let by = "me".to_owned();
        let checkpoints = self.having(|phase| {
            matches!(
                phase,
                StepPhase::Waiting {
                    on: WaitsFor::Checkpoint,
                    ..
                }
            )
        });
        let approvals = self.having(|phase| {
            matches!(
                phase,
                StepPhase::Waiting {
                    on: WaitsFor::Approval,
                    ..
                }
            )
        });
        let fact = if let Some(step) = pick(&checkpoints, 0) {
            let value = Arc::new(json!(1));
            Some(Fact::Resume { step, value, by })
        } else if let Some(step) = pick(&approvals, 0) {
            Some(Fact::Decide {
                step,
                approve: true,
                note: String::new(),
                by,
            })
        } else {
            self.next_timer()
        };
        let fact =
            fact.unwrap_or_else(|| panic!("nobody can do anything\n{:#?}\n{:#?}", self.rows.steps, self.log));
        self.tell(&[fact]);
    }
}

/// An output as the model has it: times, people and sentences are left out.
#[expect(
    clippy::wildcard_enum_match_arm,
    reason = "the outputs of all others are compared as they are"
)]
fn plain(kind: &StepKind, output: &Value) -> Value {
    match kind {
        StepKind::Wait(_) => json!("due"),
        StepKind::Approval(_) => json!("decided"),
        StepKind::Subworkflow(sub) if !sub.wait => json!("child"),
        StepKind::Gather(_) => due(output),
        _ => output.clone(),
    }
}

/// Of a branch whose last step is a wait, a decision, a gather or another run.
fn due(output: &Value) -> Value {
    if output.get("due").is_some() {
        return json!("due");
    }
    if output.get("decision").is_some() {
        return json!("decided");
    }
    if output.get("run").is_some() {
        return json!("child");
    }
    if output.get("failed").is_some() {
        let failed = output["failed"].as_array().unwrap().iter();
        let failed: Vec<Value> = failed
            .map(|branch| json!([branch["index"], !branch["error"].is_null()]))
            .collect();
        return json!({"results": output["results"].as_array().unwrap().iter().map(due).collect::<Vec<_>>(), "failed": failed});
    }
    output.clone()
}

fn pick(among: &[StepRef], which: u16) -> Option<StepRef> {
    let place = usize::from(which).checked_rem(among.len())?;
    Some(among[place].clone())
}
