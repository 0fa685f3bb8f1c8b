//! The other half of the model: what follows what, and what a step does when it is reached.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::model::{At, Is, Model, One, ms};
use super::model_plan::{Does, Joins, Tri, When};
use crate::words::ids::RunId;

impl Model<'_> {
    pub(super) fn begin_roots(&mut self, path: &[(usize, u32)]) {
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
    pub(super) fn around_is_over(&self, at: &At) -> bool {
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
            Does::Task | Does::Command | Does::Sensor | Does::Route(_) => self.make_ready(at),
            Does::Number(number) => self.succeed(at, Some(json!({"v": number}))),
            Does::Fault | Does::Succeed(false) | Does::Scatter { items: None, .. } => self.fail(at, "?"),
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
            Does::Scatter { items: Some(0), .. } => self.succeed(at, Some(json!(0))),
            Does::Scatter { .. } => {
                self.become_now(at, Is::Branches);
                self.begin_branches(at);
            }
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

    /// True when the run, or a branch, is the worse for it.
    pub(super) fn spoils(&self, at: &At) -> bool {
        match self.is(at) {
            Some(Is::Failed) => !self.step(at).goes_on,
            Some(Is::Upstream | Is::Cancelled) => true,
            _ => false,
        }
    }

    pub(super) fn settle(&mut self) {
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

    pub(super) fn end_branches(&mut self, scatter: &At) {
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

    pub(super) fn finish(&mut self) {
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
