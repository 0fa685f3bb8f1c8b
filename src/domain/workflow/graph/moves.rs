//! A tick under way: what was read, what was decided so far, and which facts lead where.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::build::{Graph, Work};
use super::history::{Retention, Transition};
use super::key::{Key, NodeId, ValueName};
use super::state::{EarlyEnd, EarlyEndKind, GraphHeader, Hold, WaitsFor};
use super::tick::{AttemptEnd, Changes, Fact, FreshRun, NewChild, StepError, Taken, View};
use crate::domain::workflow::run::{Run, RunEvent, RunState, StepPhase, StepState};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// A tick under way.
pub(super) struct Moving<'a, V: View> {
    pub(super) graph: &'a Graph,
    pub(super) run: Run,
    pub(super) now: Millis,
    view: &'a mut V,
    pub(super) fresh: FreshRun<'a>,
    steps: BTreeMap<StepRef, (Option<StepState>, StepState)>,
    /// The steps that were open before this tick, once somebody has asked: reading them takes a look at every step.
    open_before: Option<Vec<StepState>>,
    values: BTreeMap<ValueName, Arc<Value>>,
    /// The page of items that was read last: the branches of a tick stand side by side.
    page: Option<(ValueName, Option<Arc<Value>>)>,
    /// Steps that have ended and whose successors are to be looked at.
    pub(super) ended: VecDeque<Key>,
    /// Branches that were counted in this tick.
    pub(super) counted: BTreeSet<Key>,
    pub(super) dispatch: Vec<(StepRef, NodeId)>,
    pub(super) children: Vec<NewChild>,
    pub(super) orphans: Vec<RunId>,
    pub(super) stop: Vec<StepRef>,
    pub(super) retire: Vec<(StepRef, u64)>,
    history: Vec<Transition>,
}

impl<'a, V: View> Moving<'a, V> {
    pub(super) fn new(
        graph: &'a Graph,
        run: &Run,
        now: Millis,
        view: &'a mut V,
        fresh: FreshRun<'a>,
    ) -> Moving<'a, V> {
        let mut run = run.clone();
        run.record_version += 1;
        Moving {
            graph,
            run,
            now,
            view,
            fresh,
            steps: BTreeMap::new(),
            open_before: None,
            values: BTreeMap::new(),
            page: None,
            ended: VecDeque::new(),
            counted: BTreeSet::new(),
            dispatch: Vec::new(),
            children: Vec::new(),
            orphans: Vec::new(),
            stop: Vec::new(),
            retire: Vec::new(),
            history: Vec::new(),
        }
    }

    pub(super) fn into_changes(mut self, answers: Vec<Taken>) -> Changes {
        let (version, has_ended) = (self.run.record_version, self.run.state.is_terminal());
        let compaction = self.header().history.compact(version, has_ended);
        let changed = |(before, after): &(Option<StepState>, StepState)| before.as_ref() != Some(after);
        Changes {
            run: self.run,
            steps: self.steps.into_values().filter(changed).collect(),
            values: self.values.into_iter().collect(),
            dispatch: self.dispatch,
            children: self.children,
            orphans: self.orphans,
            stop: self.stop,
            retire: self.retire,
            history: self.history,
            compaction,
            answers,
        }
    }

    pub(super) fn header(&mut self) -> &mut GraphHeader {
        self.run.graph.get_or_insert_default()
    }

    pub(super) fn ending(&self) -> Option<&EarlyEnd> {
        self.run.graph.as_ref()?.ending.as_ref()
    }

    pub(super) fn hold(&mut self) -> Option<&mut Hold> {
        self.run.graph.as_mut()?.hold.as_mut()
    }

    /// The step as this tick has it now.
    pub(super) fn step_of(&mut self, key: &Key) -> Result<Option<StepState>, V::Error> {
        self.step_named(&key.name(self.graph))
    }

    fn step_named(&mut self, name: &StepRef) -> Result<Option<StepState>, V::Error> {
        match self.steps.get(name) {
            Some((_, now)) => Ok(Some(now.clone())),
            None => self.view.step(name),
        }
    }

    pub(super) fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, V::Error> {
        match self.values.get(name) {
            Some(value) => Ok(Some(Arc::clone(value))),
            None => self.view.value(name),
        }
    }

    pub(super) fn page(&mut self, name: ValueName) -> Result<Option<Arc<Value>>, V::Error> {
        if let Some((known, page)) = &self.page
            && *known == name
        {
            return Ok(page.clone());
        }
        let page = self.value(&name)?;
        self.page = Some((name, page.clone()));
        Ok(page)
    }

    pub(super) fn keep(&mut self, name: ValueName, value: Arc<Value>) {
        self.values.insert(name, value);
    }

    /// Notes what the run does as a whole, or what somebody did.
    pub(super) fn note(&mut self, step: Option<&StepRef>, what: &str, detail: &str) {
        self.append(step, Retention::Pinned, what, detail);
    }

    fn append(&mut self, step: Option<&StepRef>, class: Retention, what: &str, detail: &str) {
        let line = self.header().history.line(step, class, what, detail);
        self.history.push(line);
    }

    /// A run whose history is full ends as failed: what runs is asked to end, all else ends now.
    pub(super) fn end_if_history_is_full(&mut self) -> Result<(), V::Error> {
        let goes_on = !self.run.state.is_terminal() && self.ending().is_none();
        if goes_on && self.header().history.is_full() {
            let reason = format!(
                "run.history_limit: its history has {} lines or {} MiB that cannot be compacted",
                limits::HISTORY_LINES_MAX,
                limits::HISTORY_BYTES_MAX >> 20
            );
            self.end_early(EarlyEndKind::Failed, &reason)?;
        }
        Ok(())
    }

    /// Writes a step over what it was; its timer follows from its phase.
    pub(super) fn put(&mut self, key: &Key, mut state: StepState) -> Result<(), V::Error> {
        let node = self.graph.node(key.node);
        super::timers::set(&mut state, node);
        let before = match self.steps.remove(&state.step) {
            Some((before, last)) => {
                if last.phase.word() != state.phase.word() {
                    self.note_phase(&state);
                }
                before
            }
            None => {
                let before = self.view.step(&state.step)?;
                if before.as_ref().map(|before| before.phase.word()) != Some(state.phase.word()) {
                    self.note_phase(&state);
                }
                before
            }
        };
        self.steps.insert(state.step.clone(), (before, state));
        Ok(())
    }

    fn note_phase(&mut self, state: &StepState) {
        let detail = state.phase.reason().unwrap_or_default().to_owned();
        let class = Retention::of_step(&state.step, state.phase.is_terminal());
        self.append(Some(&state.step), class, state.phase.word(), &detail);
    }

    /// Ends a step.
    pub(super) fn end(&mut self, key: &Key, state: StepState, phase: StepPhase) -> Result<(), V::Error> {
        if let StepPhase::Queued { entry, .. } = state.phase {
            self.retire.push((state.step.clone(), entry));
        }
        if key.path.is_empty() {
            let failure = self.graph.node(key.node).fails_run_by(&phase);
            // What is cancelled because the run ends early does not fail it.
            let failure = failure.filter(|_| self.ending().is_none());
            let failure = failure.map(|reason| format!("step {}: {reason}", state.step));
            let header = self.header();
            header.ended += 1;
            if header.failure.is_none() {
                header.failure = failure;
            }
        }
        self.put(key, StepState { phase, ..state })?;
        self.ended.push_back(key.clone());
        Ok(())
    }

    pub(super) fn succeed(
        &mut self,
        key: &Key,
        state: StepState,
        output: Option<Arc<Value>>,
    ) -> Result<(), V::Error> {
        if let Some(output) = output {
            self.keep(ValueName::Output(state.step.clone()), output);
        }
        let ended_at = self.now;
        self.end(key, state, StepPhase::Succeeded { ended_at })
    }

    pub(super) fn fail(&mut self, key: &Key, state: StepState, error: &StepError) -> Result<(), V::Error> {
        self.keep(ValueName::Error(state.step.clone()), Arc::new(error.as_value()));
        let phase = StepPhase::Failed {
            ended_at: self.now,
            reason: error.message.clone(),
        };
        self.end(key, state, phase)
    }

    /// Follows every step that has ended; while somebody holds the run they are only noted.
    pub(super) fn settle(&mut self) -> Result<(), V::Error> {
        while let Some(key) = self.ended.pop_front() {
            if self.ending().is_some() {
                continue;
            }
            let name = key.name(self.graph);
            if self.hold().is_some() {
                self.leave_unfollowed(&name)?;
                continue;
            }
            self.follow(&key)?;
        }
        Ok(())
    }

    /// Notes in its own row that a step has ended while somebody held the run: the header stays as small as it is.
    fn leave_unfollowed(&mut self, name: &StepRef) -> Result<(), V::Error> {
        let Some(hold) = self.hold() else { return Ok(()) };
        let number = hold.unfollowed;
        hold.unfollowed += 1;
        let (before, mut state) = match self.steps.remove(name) {
            Some(both) => both,
            None => match self.view.step(name)? {
                Some(state) => (Some(state.clone()), state),
                None => return Ok(()),
            },
        };
        if let Some(graph) = state.graph.as_mut() {
            graph.unfollowed = Some(number);
        }
        self.steps.insert(name.clone(), (before, state));
        Ok(())
    }

    /// The steps that have ended while somebody held the run, in that order. They are noted no more.
    pub(super) fn take_unfollowed(&mut self) -> Result<Vec<Key>, V::Error> {
        let mut found = BTreeMap::new();
        for state in self.open_rows()? {
            let number = state.graph.as_ref().and_then(|graph| graph.unfollowed);
            if let (Some(number), Some(key)) = (number, Key::of_name(self.graph, &state.step)) {
                found.insert(number, key.clone());
                let mut state = state;
                if let Some(graph) = state.graph.as_mut() {
                    graph.unfollowed = None;
                }
                self.put(&key, state)?;
            }
        }
        Ok(found.into_values().collect())
    }

    /// Folds one fact.
    pub(super) fn fold(&mut self, fact: &Fact) -> Result<Taken, V::Error> {
        if self.run.state.is_terminal() {
            let asked = matches!(
                fact,
                Fact::Cancel { .. }
                    | Fact::Pause { .. }
                    | Fact::Unpause { .. }
                    | Fact::Resume { .. }
                    | Fact::Decide { .. }
            );
            let word = self.run.state.word();
            return Ok(if asked {
                Taken::Refused(format!("the run has ended: {word}"))
            } else {
                Taken::Stale
            });
        }
        match fact {
            Fact::Begun | Fact::BegunWith(_) if self.run.state != RunState::Pending => Ok(Taken::Stale),
            Fact::Begun => self.begin(&[]),
            Fact::BegunWith(done) => self.begin(done),
            Fact::Attempt { step, fence, end } => self.attempt(step, *fence, end),
            Fact::EntryClosed { step, entry, reason } => self.entry_closed(step, *entry, reason),
            Fact::Due { step } => self.due(step),
            Fact::Deadline => self.deadline(),
            Fact::Child { step, run, end } => self.child(step, *run, end),
            Fact::WorkOver { step, attempt, end } => self.work_over(step, *attempt, end),
            Fact::Resume { step, value, by } => self.resume(step, value, by),
            Fact::Decide {
                step,
                approve,
                note,
                by,
            } => self.decide(step, *approve, note, by),
            Fact::Cancel { by } => self.cancel(by),
            Fact::Pause { by, reason } => self.pause(by, reason),
            Fact::Unpause { by } => self.unpause(by),
        }
    }

    fn begin(&mut self, done: &[StepState]) -> Result<Taken, V::Error> {
        self.note(None, "running", "");
        // The time of a run that has waited for its turn counts from here.
        let limit = self.graph.document.run_timeout;
        let at = limit.map(|limit| self.now.plus(limit.0));
        let header = self.header();
        header.deadline = header.deadline.or(at);
        if let Ok(state) = self.run.state.next(&RunEvent::Started, self.now) {
            self.run.state = state;
        }
        let mut reopened = Vec::new();
        let mut ended = Vec::new();
        for state in done {
            let Some(key) = Key::of_name(self.graph, &state.step) else {
                continue;
            };
            if state.phase.is_terminal() {
                ended.push((key, state));
            } else {
                self.reopen(&key, state.clone())?;
                reopened.push(key);
            }
        }
        let is_in = |graph: &Graph, key: &Key| reopened.iter().any(|scatter| key.is_in(graph, scatter));
        for (key, state) in ended {
            if is_in(self.graph, &key) {
                // It is followed when the turn of its branch comes.
                self.put(&key, state.clone())?;
                continue;
            }
            let fresh = StepState {
                phase: StepPhase::Held { since: self.now },
                ..state.clone()
            };
            self.end(&key, fresh, state.phase.clone())?;
        }
        self.settle()?;
        for root in self.graph.roots().to_vec() {
            self.reach_if_new(&Key::top(root))?;
        }
        for scatter in &reopened {
            if !is_in(self.graph, scatter) {
                self.begin_branches(scatter)?;
            }
        }
        Ok(Taken::Yes)
    }

    fn attempt(&mut self, step: &StepRef, fence: u64, end: &AttemptEnd) -> Result<Taken, V::Error> {
        let Some((key, state)) = self.instance(step)? else {
            return Ok(Taken::Stale);
        };
        if !matches!(state.phase, StepPhase::Running { fence: held, .. } if held == fence) {
            return Ok(Taken::Stale);
        }
        let over = state.graph.as_ref().and_then(|graph| graph.over.clone());
        if let (Some(why), false) = (over, matches!(end, AttemptEnd::Succeeded(_))) {
            self.fail(&key, state, &StepError::new("timeout.total", why))?;
            return Ok(Taken::Yes);
        }
        match end {
            AttemptEnd::Succeeded(output) => self.succeed(&key, state, output.clone())?,
            AttemptEnd::Failed(error) => self.attempt_failed(&key, state, error)?,
            AttemptEnd::Cancelled(reason) => {
                let phase = StepPhase::Cancelled {
                    ended_at: self.now,
                    reason: reason.clone(),
                };
                self.end(&key, state, phase)?;
            }
            AttemptEnd::NotMet => self.not_met(&key, state)?,
            AttemptEnd::Routed(work) => self.routed(&key, state, *work)?,
        }
        Ok(Taken::Yes)
    }

    pub(super) fn instance(&mut self, step: &StepRef) -> Result<Option<(Key, StepState)>, V::Error> {
        let Some(key) = Key::of_name(self.graph, step) else {
            return Ok(None);
        };
        Ok(self.step_named(step)?.map(|state| (key, state)))
    }

    fn entry_closed(&mut self, step: &StepRef, entry: u64, reason: &str) -> Result<Taken, V::Error> {
        let Some((key, mut state)) = self.instance(step)? else {
            return Ok(Taken::Stale);
        };
        if !matches!(state.phase, StepPhase::Queued { entry: own, .. } if own == entry) {
            return Ok(Taken::Stale);
        }
        // It is closed already: nothing is left to retire.
        state.phase = StepPhase::Ready { since: self.now };
        self.attempt_failed(&key, state, &StepError::new("slots.withdrawn", reason))?;
        Ok(Taken::Yes)
    }

    fn child(
        &mut self,
        step: &StepRef,
        run: RunId,
        end: &Result<Option<Arc<Value>>, StepError>,
    ) -> Result<Taken, V::Error> {
        let Some((key, state)) = self.instance(step)? else {
            return Ok(Taken::Stale);
        };
        let awaited = matches!(&state.phase, StepPhase::Waiting { on: WaitsFor::Child { run: awaited }, .. } if *awaited == run);
        if !awaited {
            return Ok(Taken::Stale);
        }
        match end {
            Ok(output) => self.succeed(&key, state, output.clone())?,
            Err(error) => self.fail(&key, state, error)?,
        }
        Ok(Taken::Yes)
    }

    /// All steps that have not ended, as this tick has them now.
    pub(super) fn open_now(&mut self) -> Result<Vec<StepState>, V::Error> {
        let open = self.open_rows()?.into_iter();
        Ok(open.filter(|state| !state.phase.is_terminal()).collect())
    }

    /// All steps that have not ended, or whose end was not followed.
    fn open_rows(&mut self) -> Result<Vec<StepState>, V::Error> {
        let mut open: BTreeMap<StepRef, StepState> = BTreeMap::new();
        for state in self.open_before()? {
            open.insert(state.step.clone(), state.clone());
        }
        for (name, (_, state)) in &self.steps {
            open.insert(name.clone(), state.clone());
        }
        Ok(open.into_values().filter(StepState::is_open).collect())
    }

    fn open_before(&mut self) -> Result<&[StepState], V::Error> {
        let open = match self.open_before.take() {
            Some(open) => open,
            None => self.view.open_steps()?,
        };
        Ok(self.open_before.insert(open))
    }

    /// True while a step has not ended.
    fn has_open(&mut self) -> Result<bool, V::Error> {
        let is_open = |state: &StepState| !state.phase.is_terminal();
        if self.steps.values().any(|(_, state)| is_open(state)) {
            return Ok(true);
        }
        self.open_before()?;
        let before = self.open_before.iter().flatten();
        Ok(before
            .into_iter()
            .any(|state| is_open(state) && !self.steps.contains_key(&state.step)))
    }

    pub(super) fn stop_attempt(&mut self, step: &StepRef) {
        self.stop.push(step.clone());
    }

    pub(super) fn take_back(&mut self, step: &StepRef, entry: u64) {
        self.retire.push((step.clone(), entry));
    }

    pub(super) fn leave_child(&mut self, run: RunId) {
        self.orphans.push(run);
    }

    /// True while somebody holds the run.
    pub(super) fn is_held(&mut self) -> bool {
        self.hold().is_some()
    }

    /// The run ends when all its steps have, or when it ends early and nothing runs any more.
    pub(super) fn finish_if_done(&mut self) -> Result<(), V::Error> {
        if self.run.state.is_terminal() {
            return Ok(());
        }
        let early = self.ending().cloned();
        let event = match early {
            Some(early) => {
                if self.has_open()? {
                    return Ok(());
                }
                match early.how {
                    EarlyEndKind::Cancelled => RunEvent::Cancelled(early.reason),
                    EarlyEndKind::Failed => RunEvent::Failed(early.reason),
                    EarlyEndKind::Succeeded => RunEvent::Succeeded,
                    EarlyEndKind::TimedOut => RunEvent::TimedOut(early.reason),
                }
            }
            None if self.header().ended < self.graph.top_level() => return Ok(()),
            None => match self.header().failure.clone() {
                Some(reason) => RunEvent::Failed(reason),
                None => RunEvent::Succeeded,
            },
        };
        if event == RunEvent::Succeeded && self.value(&ValueName::Result)?.is_none() {
            let output = self.output()?;
            self.keep(ValueName::Result, Arc::new(output));
        }
        if let Ok(state) = self.run.state.next(&event, self.now) {
            let reason = state.reason().unwrap_or_default().to_owned();
            self.note(None, state.word(), &reason);
            self.run.state = state;
        }
        self.header().hold = None;
        self.dispatch.clear();
        Ok(())
    }

    /// What a run has made: the output of its last step, or of its last steps by name.
    fn output(&mut self) -> Result<Value, V::Error> {
        let nodes = self.graph.nodes();
        let is_last = |id: &NodeId| nodes[*id].next.is_empty() && nodes[*id].scatter.is_none();
        let last: Vec<NodeId> = (0..nodes.len()).filter(is_last).collect();
        let mut outputs = Map::new();
        for id in &last {
            let name = nodes[*id].doc.name.clone();
            let output = self.value(&ValueName::Output(name.clone()))?;
            let output = output.map_or(Value::Null, |output| (*output).clone());
            if last.len() == 1 {
                return Ok(output);
            }
            outputs.insert(name.to_string(), output);
        }
        Ok(Value::Object(outputs))
    }

    /// Ends the run with what a step of type succeed or fail says.
    pub(super) fn end_by_step(&mut self, key: &Key) -> Result<(), V::Error> {
        let name = key.name(self.graph);
        if let Work::Succeed(_) = &self.graph.node(key.node).work {
            let output = self.value(&ValueName::Output(name.clone()))?;
            self.keep(ValueName::Result, output.unwrap_or_default());
            return self.end_early(EarlyEndKind::Succeeded, &format!("step {name} ends the run"));
        }
        let error = self.value(&ValueName::Error(name.clone()))?;
        let message = error.as_ref().and_then(|error| error["message"].as_str());
        let reason = format!("step {name}: {}", message.unwrap_or("it ends the run"));
        self.end_early(EarlyEndKind::Failed, &reason)
    }
}
