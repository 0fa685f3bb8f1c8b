//! The model of a run: what the specification says, written as plainly as possible. It knows no tick: it holds a log of what
//! happened, and works everything out from the beginning each time, by looking at every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Value, json};

use super::model_plan::{Does, Plan, Step, name};
use super::tick::{AttemptEnd, Fact, StepError, Taken};
use crate::words::ids::RunId;

/// One execution of a step: the branches around it (scatter and item), and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    pub(super) path: Vec<(usize, u32)>,
    pub(super) step: usize,
}

impl At {
    pub(super) fn name(&self) -> String {
        let mut prefix = String::new();
        let mut branches = String::new();
        for (scatter, branch) in &self.path {
            prefix = name(&prefix, *scatter);
            branches.push_str(&format!("#{branch}"));
        }
        name(&prefix, self.step) + &branches
    }

    pub(super) fn around(&self) -> Option<(At, u32)> {
        let ((scatter, branch), path) = self.path.split_last()?;
        let at = At {
            path: path.to_vec(),
            step: *scatter,
        };
        Some((at, *branch))
    }

    pub(super) fn beside(&self, step: usize) -> At {
        At {
            path: self.path.clone(),
            step,
        }
    }

    pub(super) fn inside(&self, branch: u32, step: usize) -> At {
        let mut path = self.path.clone();
        path.push((self.step, branch));
        At { path, step }
    }
}

/// Where a step stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Is {
    Ready,
    Held,
    Queued(u64),
    Running(u64),
    Timer(i64),
    Poke(i64),
    Checkpoint,
    Approval,
    Child(RunId),
    Work,
    Branches,
    Retrying(i64),
    Succeeded,
    Failed,
    Skipped,
    Cancelled,
    Upstream,
}

impl Is {
    pub(super) fn word(&self) -> &'static str {
        match self {
            Is::Ready | Is::Held => "ready",
            Is::Queued(_) => "queued",
            Is::Running(_) | Is::Branches => "running",
            Is::Timer(_) | Is::Poke(_) | Is::Checkpoint | Is::Approval | Is::Child(_) | Is::Work => "waiting",
            Is::Retrying(_) => "retrying",
            Is::Succeeded => "succeeded",
            Is::Failed => "failed",
            Is::Skipped => "skipped",
            Is::Cancelled => "cancelled",
            Is::Upstream => "upstream_failed",
        }
    }

    pub(super) fn has_ended(&self) -> bool {
        matches!(
            self,
            Is::Succeeded | Is::Failed | Is::Skipped | Is::Cancelled | Is::Upstream
        )
    }
}

/// A step that was reached.
#[derive(Debug, Clone)]
pub(super) struct One {
    pub(super) is: Is,
    pub(super) attempt: u32,
    pub(super) output: Option<Value>,
    /// The code of its error; `?` where an expression failed.
    pub(super) error: Option<String>,
    /// Since when it is what it is.
    pub(super) since: i64,
    pub(super) queued_since: i64,
    pub(super) total_at: Option<i64>,
    pub(super) first_poke: Option<i64>,
    pub(super) over: bool,
}

/// Something that happened.
#[derive(Debug, Clone)]
pub(super) enum Happened {
    Fact(Fact),
    /// A worker took it.
    Claimed {
        step: String,
        fence: u64,
    },
    /// Its slot pool has it in its queue.
    Entered {
        step: String,
        entry: u64,
    },
}

/// The run, worked out.
#[derive(Debug)]
pub(super) struct Model<'p> {
    pub(super) plan: &'p Plan,
    pub(super) deadline: Option<i64>,
    pub(super) now: i64,
    pub(super) steps: BTreeMap<At, One>,
    pub(super) state: &'static str,
    pub(super) result: Option<Value>,
    pub(super) ending: Option<&'static str>,
    pub(super) paused: bool,
    pub(super) to_follow: VecDeque<At>,
    pub(super) counted: BTreeSet<(At, u32)>,
    pub(super) children: u8,
    /// What became ready with the last fact.
    pub(super) ready: BTreeSet<String>,
    /// The answer to the last fact: `yes`, `stale` or `refused`.
    pub(super) answer: &'static str,
}

/// The word for an answer.
pub(super) fn answer_word(taken: &Taken) -> &'static str {
    match taken {
        Taken::Yes => "yes",
        Taken::Stale => "stale",
        Taken::Refused(_) => "refused",
    }
}

/// Works out everything that has happened.
pub(super) fn replay<'p>(plan: &'p Plan, deadline: Option<i64>, log: &[(i64, Happened)]) -> Model<'p> {
    let mut model = Model {
        plan,
        deadline,
        now: 0,
        steps: BTreeMap::new(),
        state: "pending",
        result: None,
        ending: None,
        paused: false,
        to_follow: VecDeque::new(),
        counted: BTreeSet::new(),
        children: 0,
        ready: BTreeSet::new(),
        answer: "yes",
    };
    for (at, happened) in log {
        model.now = *at;
        model.happen(happened);
    }
    model
}

impl Model<'_> {
    /// By name, in order.
    pub(super) fn by_name(&self) -> BTreeMap<String, &One> {
        self.steps.iter().map(|(at, one)| (at.name(), one)).collect()
    }

    pub(super) fn has_ended(&self) -> bool {
        !matches!(self.state, "pending" | "running" | "paused")
    }

    pub(super) fn scope(&self, path: &[(usize, u32)]) -> &Plan {
        let mut plan = self.plan;
        for (scatter, _) in path {
            if let Does::Scatter { body, .. } = &plan.steps[*scatter].does {
                plan = body;
            }
        }
        plan
    }

    pub(super) fn step(&self, at: &At) -> Step {
        self.scope(&at.path).steps[at.step].clone()
    }

    fn find(&self, wanted: &str) -> Option<At> {
        self.steps.keys().find(|at| at.name() == wanted).cloned()
    }

    pub(super) fn one(&mut self, at: &At) -> &mut One {
        self.steps.get_mut(at).unwrap()
    }

    pub(super) fn is(&self, at: &At) -> Option<Is> {
        self.steps.get(at).map(|one| one.is.clone())
    }

    pub(super) fn open(&self) -> Vec<At> {
        let open = self.steps.iter().filter(|(_, one)| !one.is.has_ended());
        open.map(|(at, _)| at.clone()).collect()
    }

    fn happen(&mut self, happened: &Happened) {
        match happened {
            Happened::Claimed { step, fence } => {
                let (now, at) = (self.now, self.find(step).unwrap());
                let one = self.one(&at);
                (one.is, one.since) = (Is::Running(*fence), now);
            }
            Happened::Entered { step, entry } => {
                let at = self.find(step).unwrap();
                self.one(&at).is = Is::Queued(*entry);
            }
            Happened::Fact(fact) => {
                self.ready.clear();
                self.answer = self.fact(fact);
                self.settle();
                self.finish();
            }
        }
    }

    fn fact(&mut self, fact: &Fact) -> &'static str {
        if self.has_ended() {
            let by_people = matches!(
                fact,
                Fact::Resume { .. }
                    | Fact::Decide { .. }
                    | Fact::Cancel { .. }
                    | Fact::Pause { .. }
                    | Fact::Unpause { .. }
            );
            return if by_people { "refused" } else { "stale" };
        }
        match fact {
            Fact::Begun => {
                self.state = "running";
                self.begin_roots(&[]);
                "yes"
            }
            Fact::BegunWith(_) => unreachable!("not in this test"),
            Fact::Attempt { step, fence, end } => self.attempt(step.as_str(), *fence, end),
            Fact::EntryClosed { step, entry, .. } => {
                let Some(at) = self.find(step.as_str()) else {
                    return "stale";
                };
                if self.is(&at) != Some(Is::Queued(*entry)) {
                    return "stale";
                }
                self.attempt_failed(&at, "slots.withdrawn", true, 0);
                "yes"
            }
            Fact::Due { step } => match self.find(step.as_str()) {
                Some(at) if !self.one(&at).is.has_ended() => {
                    self.due(&at);
                    "yes"
                }
                _ => "stale",
            },
            Fact::Deadline => {
                if self.deadline.is_none_or(|at| at > self.now) || self.ending.is_some() {
                    return "stale";
                }
                self.end_early("timed_out");
                "yes"
            }
            Fact::Child { step, run, end } => self.child(step.as_str(), *run, end),
            Fact::WorkOver { step, attempt, end } => self.work_over(step.as_str(), *attempt, end),
            Fact::Resume { step, value, .. } => {
                let at = self.find(step.as_str());
                let Some(at) = at.filter(|at| self.is(at) == Some(Is::Checkpoint)) else {
                    return "refused";
                };
                self.succeed(&at, Some((**value).clone()));
                "yes"
            }
            Fact::Decide { step, approve, .. } => self.decide(step.as_str(), *approve),
            Fact::Cancel { .. } => {
                if self.ending.is_none() {
                    self.end_early("cancelled");
                }
                "yes"
            }
            Fact::Pause { .. } => self.pause(),
            Fact::Unpause { .. } => self.unpause(),
        }
    }

    fn child(&mut self, step: &str, run: RunId, end: &Result<Option<Arc<Value>>, StepError>) -> &'static str {
        let at = self.find(step);
        let Some(at) = at.filter(|at| self.is(at) == Some(Is::Child(run))) else {
            return "stale";
        };
        match end {
            Ok(output) => self.succeed(&at, output.as_ref().map(|output| (**output).clone())),
            Err(error) => self.fail(&at, &error.code),
        }
        "yes"
    }

    fn work_over(&mut self, step: &str, attempt: u32, end: &Result<Arc<Value>, StepError>) -> &'static str {
        let at = self.find(step);
        let awaits = |at: &At| matches!(self.is(at), Some(Is::Running(_) | Is::Work));
        let Some(at) = at.filter(awaits).filter(|at| self.steps[at].attempt == attempt) else {
            return "stale";
        };
        match end {
            Ok(output) => self.succeed(&at, Some((**output).clone())),
            Err(error) => self.attempt_failed(&at, &error.code, error.retryable, 0),
        }
        "yes"
    }

    fn decide(&mut self, step: &str, approve: bool) -> &'static str {
        let at = self.find(step);
        let Some(at) = at.filter(|at| self.is(at) == Some(Is::Approval)) else {
            return "refused";
        };
        let skips = matches!(self.step(&at).does, Does::Approval { skips: true, .. });
        self.one(&at).output = Some(json!("decided"));
        match (approve, skips) {
            (true, _) => self.end(&at, Is::Succeeded),
            (false, true) => self.end(&at, Is::Skipped),
            (false, false) => self.fail(&at, "approval.rejected"),
        }
        "yes"
    }

    fn pause(&mut self) -> &'static str {
        if self.ending.is_some() {
            return "refused";
        }
        self.paused = true;
        self.state = "paused";
        for at in self.open() {
            let one = self.one(&at);
            if matches!(one.is, Is::Ready | Is::Queued(_)) {
                one.is = Is::Held;
            }
        }
        "yes"
    }

    fn unpause(&mut self) -> &'static str {
        if !self.paused {
            return "refused";
        }
        self.paused = false;
        self.state = "running";
        for at in self.open() {
            let now = self.now;
            let is = self.one(&at).is.clone();
            let is_due = matches!(is, Is::Retrying(due) | Is::Poke(due) if due <= now);
            if is_due || is == Is::Held {
                self.make_ready(&at);
            }
        }
        "yes"
    }

    pub(super) fn become_now(&mut self, at: &At, is: Is) {
        let now = self.now;
        let one = self.one(at);
        (one.is, one.since) = (is, now);
    }

    pub(super) fn make_ready(&mut self, at: &At) {
        let (now, paused) = (self.now, self.paused);
        let one = self.one(at);
        one.queued_since = now;
        one.is = if paused { Is::Held } else { Is::Ready };
        if !paused {
            self.ready.insert(at.name());
        }
    }

    pub(super) fn end(&mut self, at: &At, is: Is) {
        self.become_now(at, is);
        self.to_follow.push_back(at.clone());
    }

    pub(super) fn succeed(&mut self, at: &At, output: Option<Value>) {
        if output.is_some() {
            self.one(at).output = output;
        }
        self.end(at, Is::Succeeded);
    }

    pub(super) fn fail(&mut self, at: &At, code: &str) {
        self.one(at).error = Some(code.to_owned());
        self.end(at, Is::Failed);
    }

    fn attempt(&mut self, step: &str, fence: u64, end: &AttemptEnd) -> &'static str {
        let at = self.find(step);
        let Some(at) = at.filter(|at| self.is(at) == Some(Is::Running(fence))) else {
            return "stale";
        };
        let over = self.one(&at).over;
        match end {
            AttemptEnd::Succeeded(output) => {
                self.succeed(&at, output.as_ref().map(|output| (**output).clone()));
            }
            _ if over => self.fail(&at, "timeout.total"),
            AttemptEnd::Failed(error) => {
                let after = error.retry_after_ms.unwrap_or(0);
                self.attempt_failed(&at, &error.code, error.retryable, i64::try_from(after).unwrap());
            }
            AttemptEnd::Cancelled(_) => self.end(&at, Is::Cancelled),
            AttemptEnd::Routed(_) if self.ending.is_some() || self.around_is_over(&at) => {
                self.end(&at, Is::Cancelled);
            }
            AttemptEnd::Routed(_) => self.become_now(&at, Is::Work),
            AttemptEnd::NotMet if self.step(&at).does != Does::Sensor => {
                self.attempt_failed(&at, "sensor.not_met", true, 0);
            }
            AttemptEnd::NotMet if self.ending.is_some() || self.around_is_over(&at) => {
                self.end(&at, Is::Cancelled);
            }
            AttemptEnd::NotMet => {
                let now = self.now;
                let first = *self.one(&at).first_poke.get_or_insert(now);
                if now + 2_000 > first + 5_000 {
                    self.one(&at).first_poke = None;
                    self.attempt_failed(&at, "sensor.timeout", true, 0);
                } else {
                    self.become_now(&at, Is::Poke(now + 2_000));
                }
            }
        }
        "yes"
    }

    fn attempt_failed(&mut self, at: &At, code: &str, retryable: bool, after: i64) {
        let step = self.step(at);
        let attempt = self.one(at).attempt;
        let again = step.is_executed() && retryable && code != "fatal" && attempt < step.attempts;
        if !again || self.ending.is_some() || self.around_is_over(at) {
            return self.fail(at, code);
        }
        self.one(at).attempt += 1;
        let delay = ms(step.interval).max(after);
        if delay == 0 {
            self.make_ready(at);
        } else {
            self.become_now(at, Is::Retrying(self.now + delay));
        }
    }

    fn due(&mut self, at: &At) {
        let (now, step) = (self.now, self.step(at));
        let one = self.one(at).clone();
        if one.total_at.is_some_and(|total| total <= now) {
            if matches!(one.is, Is::Running(_)) && !matches!(step.does, Does::Task | Does::Route(_)) {
                self.one(at).over = true;
                self.one(at).total_at = None;
            } else if one.is == Is::Branches {
                self.end_branches(at);
            } else {
                self.fail(at, "timeout.total");
            }
            return;
        }
        let passed = |limit: Option<u64>, since: i64| limit.is_some_and(|limit| since + ms(limit) <= now);
        match (&one.is, &step.does) {
            (Is::Timer(due), _) if *due <= now => self.succeed(at, Some(json!("due"))),
            (Is::Poke(due) | Is::Retrying(due), _) if *due <= now => self.make_ready(at),
            (Is::Checkpoint, Does::Checkpoint(limit)) if passed(*limit, one.since) => {
                self.fail(at, "checkpoint.timeout");
            }
            (Is::Approval, Does::Approval { patience, .. }) if passed(*patience, one.since) => {
                self.fail(at, "approval.timeout");
            }
            (Is::Work, Does::Route(limit)) if passed(*limit, one.since) => {
                self.attempt_failed(at, "route.timeout", true, 0);
            }
            (Is::Ready | Is::Queued(_), _) if passed(step.queue, one.queued_since) => {
                self.attempt_failed(at, "timeout.queue", true, 0);
            }
            (Is::Running(_), Does::Task) if passed(step.attempt, one.since) => {
                self.attempt_failed(at, "timeout.attempt", true, 0);
            }
            _ => {}
        }
    }

    pub(super) fn end_early(&mut self, how: &'static str) {
        self.ending = Some(how);
        for at in self.open() {
            if !matches!(self.one(&at).is, Is::Running(_)) {
                self.end(&at, Is::Cancelled);
            }
        }
        self.ready.clear();
    }
}

pub(super) fn ms(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap() * 1_000
}
