//! The model of a run: what the specification says, written as plainly as possible. It knows no tick: it holds a log of what
//! happened, and works everything out from the beginning each time, by looking at every step.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde_json::{Value, json};

use super::model_plan::{Does, Joins, Plan, Step, Tri, When, name};
use super::tick::{AttemptEnd, Fact, Taken};
use crate::words::ids::RunId;

/// One execution of a step: the branches around it (scatter and item), and its place.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct At {
    path: Vec<(usize, u32)>,
    step: usize,
}

impl At {
    fn name(&self) -> String {
        let mut prefix = String::new();
        let mut branches = String::new();
        for (scatter, branch) in &self.path {
            prefix = name(&prefix, *scatter);
            branches.push_str(&format!("#{branch}"));
        }
        name(&prefix, self.step) + &branches
    }

    fn around(&self) -> Option<(At, u32)> {
        let ((scatter, branch), path) = self.path.split_last()?;
        let at = At {
            path: path.to_vec(),
            step: *scatter,
        };
        Some((at, *branch))
    }

    fn beside(&self, step: usize) -> At {
        At {
            path: self.path.clone(),
            step,
        }
    }

    fn inside(&self, branch: u32, step: usize) -> At {
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
            Is::Timer(_) | Is::Poke(_) | Is::Checkpoint | Is::Approval | Is::Child(_) => "waiting",
            Is::Retrying(_) => "retrying",
            Is::Succeeded => "succeeded",
            Is::Failed => "failed",
            Is::Skipped => "skipped",
            Is::Cancelled => "cancelled",
            Is::Upstream => "upstream_failed",
        }
    }

    fn has_ended(&self) -> bool {
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
    since: i64,
    queued_since: i64,
    total_at: Option<i64>,
    first_poke: Option<i64>,
    over: bool,
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
    plan: &'p Plan,
    deadline: Option<i64>,
    now: i64,
    pub(super) steps: BTreeMap<At, One>,
    pub(super) state: &'static str,
    pub(super) result: Option<Value>,
    ending: Option<&'static str>,
    paused: bool,
    to_follow: VecDeque<At>,
    counted: BTreeSet<(At, u32)>,
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

    fn scope(&self, path: &[(usize, u32)]) -> &Plan {
        let mut plan = self.plan;
        for (scatter, _) in path {
            if let Does::Scatter { body, .. } = &plan.steps[*scatter].does {
                plan = body;
            }
        }
        plan
    }

    fn step(&self, at: &At) -> Step {
        self.scope(&at.path).steps[at.step].clone()
    }

    fn find(&self, wanted: &str) -> Option<At> {
        self.steps.keys().find(|at| at.name() == wanted).cloned()
    }

    fn one(&mut self, at: &At) -> &mut One {
        self.steps.get_mut(at).unwrap()
    }

    fn is(&self, at: &At) -> Option<Is> {
        self.steps.get(at).map(|one| one.is.clone())
    }

    fn open(&self) -> Vec<At> {
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
            Fact::Child { step, run, end } => {
                let at = self.find(step.as_str());
                let Some(at) = at.filter(|at| self.is(at) == Some(Is::Child(*run))) else {
                    return "stale";
                };
                match end {
                    Ok(output) => self.succeed(&at, output.as_ref().map(|output| (**output).clone())),
                    Err(error) => self.fail(&at, &error.code),
                }
                "yes"
            }
            Fact::Resume { step, value, .. } => {
                let at = self.find(step.as_str());
                let Some(at) = at.filter(|at| self.is(at) == Some(Is::Checkpoint)) else {
                    return "refused";
                };
                self.succeed(&at, Some((**value).clone()));
                "yes"
            }
            Fact::Decide { step, approve, .. } => {
                let at = self.find(step.as_str());
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
            match self.one(&at).is {
                Is::Held => self.make_ready(&at),
                Is::Retrying(due) | Is::Poke(due) if due <= now => self.make_ready(&at),
                _ => {}
            }
        }
        "yes"
    }

    fn begin_roots(&mut self, path: &[(usize, u32)]) {
        let plan = self.scope(path);
        let is_root = |step: &usize| plan.edges.iter().all(|edge| edge.1 != *step);
        let roots: Vec<usize> = (0..plan.steps.len()).filter(is_root).collect();
        for step in roots {
            self.reach(&At {
                path: path.to_vec(),
                step,
            });
        }
    }

    /// A scatter around it has no time left.
    fn around_is_over(&self, at: &At) -> bool {
        let mut inner = at.clone();
        while let Some((scatter, _)) = inner.around() {
            let one = &self.steps[&scatter];
            if one.over || one.is.has_ended() {
                return true;
            }
            inner = scatter;
        }
        false
    }

    fn new_one(&mut self, at: &At, total: Option<u64>) {
        let now = self.now;
        let one = One {
            is: Is::Held,
            attempt: 1,
            output: None,
            error: None,
            since: now,
            queued_since: now,
            total_at: total.map(|total| now + ms(total)),
            first_poke: None,
            over: false,
        };
        self.steps.insert(at.clone(), one);
    }

    fn reach(&mut self, at: &At) {
        let step = self.step(at);
        self.new_one(at, step.total);
        if self.around_is_over(at) {
            return self.end(at, Is::Cancelled);
        }
        match step.when {
            None | Some(Tri::True) => {}
            Some(Tri::False) => return self.end(at, Is::Skipped),
            Some(Tri::Fault) => return self.fail(at, "?"),
        }
        match step.does {
            Does::Task | Does::Command | Does::Sensor => self.make_ready(at),
            Does::Number(number) => self.succeed(at, Some(json!({"v": number}))),
            Does::Fault | Does::Succeed(false) => self.fail(at, "?"),
            Does::Succeed(true) => self.succeed(at, Some(json!(42))),
            Does::Fail => self.fail(at, "stop"),
            Does::Switch { cases, default } => {
                let chosen = { cases.iter() }.find(|case| case.0).map(|case| case.1);
                match chosen.or(default) {
                    Some(target) => {
                        let chosen = at.beside(target).name();
                        let chosen = chosen.split('#').next().unwrap_or_default().to_owned();
                        self.succeed(at, Some(json!(chosen)));
                    }
                    None => self.fail(at, "switch.no_case"),
                }
            }
            Does::Wait(0) => self.succeed(at, Some(json!("due"))),
            Does::Wait(limit) => self.become_now(at, Is::Timer(self.now + ms(limit))),
            Does::Checkpoint(_) => self.become_now(at, Is::Checkpoint),
            Does::Approval { .. } => self.become_now(at, Is::Approval),
            Does::Child { waits } => {
                self.children += 1;
                if waits {
                    self.become_now(at, Is::Child(RunId([self.children; 16])));
                } else {
                    self.succeed(at, Some(json!("child")));
                }
            }
            Does::Gather(from) => {
                let output = self.gathered(&at.beside(from));
                self.succeed(at, Some(output));
            }
            Does::Scatter { items: None, .. } => self.fail(at, "?"),
            Does::Scatter { items: Some(0), .. } => self.succeed(at, Some(json!(0))),
            Does::Scatter { .. } => {
                self.become_now(at, Is::Branches);
                self.begin_branches(at);
            }
        }
    }

    fn become_now(&mut self, at: &At, is: Is) {
        let now = self.now;
        let one = self.one(at);
        (one.is, one.since) = (is, now);
    }

    fn make_ready(&mut self, at: &At) {
        let (now, paused) = (self.now, self.paused);
        let one = self.one(at);
        one.queued_since = now;
        one.is = if paused { Is::Held } else { Is::Ready };
        if !paused {
            self.ready.insert(at.name());
        }
    }

    fn gathered(&self, scatter: &At) -> Value {
        let Does::Scatter { items, body, .. } = self.step(scatter).does else {
            unreachable!("a gather has its scatter")
        };
        // What was skipped, or failed before it had a list, has no branches.
        let has_list = self.steps.get(scatter).is_some_and(|one| one.is != Is::Skipped);
        let began = self.steps.keys().any(|at| {
            at.path.starts_with(&scatter.path) && at.around().is_some_and(|around| around.0 == *scatter)
        });
        let items = items.filter(|_| has_list && began).unwrap_or(0);
        let (mut results, mut failed) = (Vec::new(), Vec::new());
        for branch in 0..items {
            let last = self.steps.get(&scatter.inside(branch, body.steps.len() - 1));
            match last.filter(|one| one.is == Is::Succeeded) {
                Some(one) => results.push(one.output.clone().unwrap_or_default()),
                None => {
                    let ones = (0..body.steps.len())
                        .filter_map(|step| self.steps.get(&scatter.inside(branch, step)));
                    let has_error = ones.into_iter().any(|one| one.error.is_some());
                    failed.push(json!([branch, has_error]));
                }
            }
        }
        json!({"results": results, "failed": failed})
    }

    fn begun(&self, scatter: &At) -> u32 {
        let inside = { self.steps.keys() }
            .filter_map(At::around)
            .filter(|(around, _)| around == scatter);
        inside.map(|(_, branch)| branch + 1).max().unwrap_or(0)
    }

    fn begin_branches(&mut self, scatter: &At) {
        let Does::Scatter { items, parallel, .. } = self.step(scatter).does else {
            return;
        };
        if self.one(scatter).over {
            return;
        }
        let begun = self.begun(scatter);
        let ended = u32::try_from(self.counted.iter().filter(|(at, _)| at == scatter).count()).unwrap();
        let room = parallel.unwrap_or(u32::MAX).saturating_sub(begun - ended);
        let to = items.unwrap_or(0).min(begun.saturating_add(room));
        for branch in begun..to {
            let mut path = scatter.path.clone();
            path.push((scatter.step, branch));
            self.begin_roots(&path);
        }
    }

    fn end(&mut self, at: &At, is: Is) {
        self.become_now(at, is);
        self.to_follow.push_back(at.clone());
    }

    fn succeed(&mut self, at: &At, output: Option<Value>) {
        if output.is_some() {
            self.one(at).output = output;
        }
        self.end(at, Is::Succeeded);
    }

    fn fail(&mut self, at: &At, code: &str) {
        self.one(at).error = Some(code.to_owned());
        self.end(at, Is::Failed);
    }

    /// True when the run, or a branch, is the worse for it.
    fn spoils(&self, at: &At) -> bool {
        match self.is(at) {
            Some(Is::Failed) => !self.step(at).goes_on,
            Some(Is::Upstream | Is::Cancelled) => true,
            _ => false,
        }
    }

    fn settle(&mut self) {
        while let Some(at) = (!self.paused).then(|| self.to_follow.pop_front()).flatten() {
            if self.ending.is_none() {
                self.follow(&at);
            }
        }
        if self.ending.is_some() {
            self.to_follow.clear();
        }
    }

    fn follow(&mut self, at: &At) {
        match (self.step(at).does, self.is(at)) {
            (Does::Succeed(_), Some(Is::Succeeded)) => {
                self.result = self.one(at).output.clone();
                return self.end_early("succeeded");
            }
            (Does::Fail, Some(Is::Failed)) => return self.end_early("failed"),
            _ => {}
        }
        let edges = self.scope(&at.path).edges.clone();
        for (_, target, _) in edges.iter().filter(|edge| edge.0 == at.step) {
            let target = at.beside(*target);
            if self.steps.contains_key(&target) {
                continue;
            }
            match self.join(&target, &edges) {
                None => {}
                Some("run") => self.reach(&target),
                Some(verdict) => {
                    self.new_one(&target, None);
                    match verdict {
                        "skip" => self.end(&target, Is::Skipped),
                        "upstream" => self.end(&target, Is::Upstream),
                        _ => self.fail(&target, "?"),
                    }
                }
            }
        }
        self.count(at);
    }

    /// What the incoming edges say together; `None`: not yet.
    fn join(&self, target: &At, edges: &[(usize, usize, When)]) -> Option<&'static str> {
        let mut says = Vec::new();
        for (from, _, when) in edges.iter().filter(|edge| edge.1 == target.step) {
            let said = self.edge(&target.beside(*from), target, *when);
            if said == "fault" {
                return Some("fault");
            }
            says.push(said);
        }
        let (taken, waits) = (says.contains(&"taken"), says.contains(&"not yet"));
        let failed = says.contains(&"failed");
        let join = self.step(target).join;
        if join == Joins::AnySuccess && taken {
            return Some("run");
        }
        if waits {
            return None;
        }
        let runs = match join {
            Joins::AllSuccess => says.iter().all(|said| *said == "taken"),
            Joins::AllDone => true,
            Joins::AnySuccess => false,
            Joins::NoneFailed => taken && !failed,
        };
        Some(match (runs, failed) {
            (true, _) => "run",
            (false, true) => "upstream",
            (false, false) => "skip",
        })
    }

    fn edge(&self, from: &At, to: &At, when: When) -> &'static str {
        let Some(is) = self.is(from).filter(Is::has_ended) else {
            return "not yet";
        };
        let good = is == Is::Succeeded || (is == Is::Failed && self.step(from).goes_on);
        if let (true, Does::Switch { cases, default }) = (good, self.step(from).does) {
            let is_choice = cases.iter().any(|case| case.1 == to.step) || default == Some(to.step);
            let name = to.name();
            let own = name.split('#').next();
            let chosen = self.steps[from].output.as_ref().and_then(Value::as_str);
            if is_choice && own != chosen {
                return "not taken";
            }
        }
        let bad = matches!(is, Is::Failed | Is::Upstream | Is::Cancelled);
        match when {
            When::Always | When::Condition(Tri::True) | When::Success if good => "taken",
            When::Always => "taken",
            When::Failure => {
                if is == Is::Failed {
                    "taken"
                } else {
                    "not taken"
                }
            }
            When::Condition(Tri::Fault) if good => "fault",
            When::Condition(Tri::False) if good => "not taken",
            When::Success | When::Condition(_) if bad => "failed",
            When::Success | When::Condition(_) => "not taken",
        }
    }

    /// A branch has ended when all its steps have, a scatter when all its branches have.
    fn count(&mut self, at: &At) {
        let Some((scatter, branch)) = at.around() else {
            return;
        };
        let Does::Scatter {
            items,
            tolerated,
            body,
            ..
        } = self.step(&scatter).does
        else {
            return;
        };
        let ends = |at: At| self.is(&at).is_some_and(|is| is.has_ended());
        if !(0..body.steps.len()).all(|step| ends(scatter.inside(branch, step))) {
            return;
        }
        if !self.counted.insert((scatter.clone(), branch)) || self.is(&scatter) != Some(Is::Branches) {
            return;
        }
        let counted: Vec<u32> = self
            .counted
            .iter()
            .filter(|(at, _)| *at == scatter)
            .map(|(_, branch)| *branch)
            .collect();
        let over = self.one(&scatter).over;
        let total = items.unwrap_or(0);
        let wanted = if over { self.begun(&scatter) } else { total };
        if counted.len() < wanted as usize {
            return self.begin_branches(&scatter);
        }
        let spoilt =
            |branch: &&u32| (0..body.steps.len()).any(|step| self.spoils(&scatter.inside(**branch, step)));
        let failed = counted.iter().filter(spoilt).count();
        if over {
            self.fail(&scatter, "timeout.total");
        } else if failed > tolerated as usize {
            self.fail(&scatter, "scatter.failed");
        } else {
            self.succeed(&scatter, Some(json!(total)));
        }
    }

    fn attempt(&mut self, step: &str, fence: u64, end: &AttemptEnd) -> &'static str {
        let at = self.find(step);
        let Some(at) = at.filter(|at| self.is(at) == Some(Is::Running(fence))) else {
            return "stale";
        };
        let over = self.one(&at).over;
        match end {
            AttemptEnd::Succeeded(output) => {
                self.succeed(&at, output.as_ref().map(|output| (**output).clone()))
            }
            _ if over => self.fail(&at, "timeout.total"),
            AttemptEnd::Failed(error) => {
                let after = error.retry_after_ms.unwrap_or(0);
                self.attempt_failed(&at, &error.code, error.retryable, i64::try_from(after).unwrap());
            }
            AttemptEnd::Cancelled(_) => self.end(&at, Is::Cancelled),
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
            match one.is {
                Is::Running(_) if step.does != Does::Task => {
                    self.one(at).over = true;
                    self.one(at).total_at = None;
                }
                Is::Branches => self.end_branches(at),
                _ => self.fail(at, "timeout.total"),
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
            (Is::Ready | Is::Queued(_), _) if passed(step.queue, one.queued_since) => {
                self.attempt_failed(at, "timeout.queue", true, 0);
            }
            (Is::Running(_), Does::Task) if passed(step.attempt, one.since) => {
                self.attempt_failed(at, "timeout.attempt", true, 0);
            }
            _ => {}
        }
    }

    fn end_branches(&mut self, scatter: &At) {
        self.one(scatter).over = true;
        self.one(scatter).total_at = None;
        let mut path = scatter.path.clone();
        path.push((scatter.step, 0));
        let depth = scatter.path.len();
        for at in self.open() {
            let is_inside = at.path.len() > depth
                && at.path[..depth] == scatter.path[..]
                && at.path[depth].0 == scatter.step;
            match self.is(&at) {
                Some(Is::Running(_)) => {}
                Some(Is::Branches) if is_inside => {
                    self.one(&at).over = true;
                    self.one(&at).total_at = None;
                }
                _ if is_inside => self.end(&at, Is::Cancelled),
                _ => {}
            }
        }
    }

    fn end_early(&mut self, how: &'static str) {
        self.ending = Some(how);
        for at in self.open() {
            if !matches!(self.one(&at).is, Is::Running(_)) {
                self.end(&at, Is::Cancelled);
            }
        }
        self.ready.clear();
    }

    fn finish(&mut self) {
        if self.has_ended() {
            return;
        }
        if let Some(how) = self.ending {
            if self.open().is_empty() {
                self.state = how;
            }
            return;
        }
        let top: Vec<At> = (0..self.plan.steps.len())
            .map(|step| At {
                path: Vec::new(),
                step,
            })
            .collect();
        if !top.iter().all(|at| self.is(at).is_some_and(|is| is.has_ended())) {
            return;
        }
        if top.iter().any(|at| self.spoils(at)) {
            self.state = "failed";
            return;
        }
        self.state = "succeeded";
        let last = top
            .iter()
            .filter(|at| self.plan.edges.iter().all(|edge| edge.0 != at.step));
        let outputs: BTreeMap<String, Value> = last
            .map(|at| (at.name(), self.steps[at].output.clone().unwrap_or_default()))
            .collect();
        self.result = Some(match outputs.len() {
            1 => outputs.into_values().next().unwrap_or_default(),
            _ => json!(outputs),
        });
    }
}

fn ms(seconds: u64) -> i64 {
    i64::try_from(seconds).unwrap() * 1_000
}
