//! A tick's outcome, written: the run, its steps and values, what may be executed now, and runs that begin with it.
//!
//! Everything was decided before, from a snapshot. A run that has moved since is not touched: its tick is computed again.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::domain::payload::Payload;
use crate::domain::slots::entry::{EntryEvent, EntryKind, reason};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::build::{Graph, Node};
use crate::domain::workflow::graph::history::Transition;
use crate::domain::workflow::graph::key::{Key, ValueName};
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::lines;
use crate::domain::workflow::graph::tick::Changes;
use crate::domain::workflow::graph::timers;
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState};
use crate::engine::book::Book;
use crate::engine::changes::complete::{self, Holder};
use crate::engine::changes::key_limit::{self, Gate};
use crate::engine::changes::start::{self, Entered, Entering};
use crate::engine::changes::{cancel, catch_up, maintain, refused, report};
use crate::store::graph_rows::StoredFact;
use crate::store::rows::{Ending, EndingCause, LiveAttempt};
use crate::store::tables::{FACTS, LIVE_ATTEMPTS};
use crate::store::{Abort, Rows, StoreError, Tx, entries, graphs, runs};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::{SlotPoolName, StepRef};

const TENANT: TenantId = TenantId::DEFAULT;

/// A claim that has ended, with the attempt that it was; a poke of a sensor that was not met is none.
#[derive(Debug, Clone, PartialEq)]
pub struct EndedClaim {
    /// The claim.
    pub holder: Holder,
    /// The attempt.
    pub attempt: Option<Attempt>,
}

/// A tick's outcome.
#[derive(Debug, Clone)]
pub struct Moved {
    /// What the run was when the tick was computed.
    pub version: u64,
    /// The definition that it has pinned.
    pub graph: Arc<Graph>,
    /// What was decided.
    pub changes: Changes,
    /// The values of the changes, as rows keep them.
    pub values: Vec<(ValueName, Payload)>,
    /// Claims that have ended.
    pub claims: Vec<EndedClaim>,
    /// Stored facts that are folded in.
    pub folded: Vec<u64>,
    /// Runs that begin with it.
    pub children: Vec<Begin>,
    /// Whether what is overdue in slot pools may expire with it.
    pub rules: maintain::Rules,
}

/// A run that begins.
#[derive(Debug, Clone)]
pub struct Begin {
    /// What it must pass before, if its definition limits its runs.
    pub gate: Option<Gate>,
    /// Its definition.
    pub graph: Arc<Graph>,
    /// Its first tick.
    pub changes: Changes,
    /// Its values.
    pub values: Vec<(ValueName, Payload)>,
    /// Runs that begin with it.
    pub children: Vec<Begin>,
    /// Whether what is overdue in slot pools may expire with it.
    pub rules: maintain::Rules,
}

/// What ticks make ready, by who executes it.
#[derive(Debug, Default)]
pub struct Ready {
    /// So much needs a process.
    pub processes: usize,
    /// A slot pool that something of it waits for.
    pub slot_pool: Option<SlotPoolName>,
    /// So much is sent by this program itself.
    pub requests: usize,
    /// Queues of remote workers in which something stands, and how much.
    pub queues: BTreeMap<String, usize>,
}

impl Ready {
    /// What a tick makes ready, and the runs that begin with it.
    pub fn of(graph: &Graph, changes: &Changes, children: &[Begin]) -> Ready {
        let mut ready = Ready::default();
        ready.add(graph, changes, children);
        ready
    }

    /// One more tick.
    pub fn add(&mut self, graph: &Graph, changes: &Changes, children: &[Begin]) {
        for (_, node) in &changes.dispatch {
            let doc = &graph.node(*node).doc;
            if let Some(slots) = &doc.slots {
                self.slot_pool.get_or_insert_with(|| slots.slot_pool.clone());
            }
            if let StepKind::Task(task) = &doc.kind {
                *self.queues.entry(task.queue.clone()).or_default() += 1;
            } else if doc.kind.command().is_some() || doc.slots.is_some() {
                self.processes += 1;
            } else {
                self.requests += 1;
            }
        }
        for child in children {
            self.add(&child.graph, &child.changes, &child.children);
        }
    }

    /// True when nothing is.
    pub fn is_nothing(&self) -> bool {
        self.processes == 0 && self.requests == 0 && self.queues.is_empty()
    }

    /// The queues in which somebody may sit and wait for it, and how much stands there.
    pub fn sought(&self) -> BTreeMap<String, usize> {
        let mut queues = self.queues.clone();
        if self.requests > 0 {
            queues.insert(lines::INTERNAL_QUEUE.to_owned(), self.requests);
        }
        queues
    }
}

/// True when a timer may be nearer after a tick than the one that is waited for.
pub fn is_timed(changes: &Changes, children: &[Begin]) -> bool {
    let timer = |step: &StepState| step.graph.as_ref().is_some_and(|graph| graph.timer.is_some());
    // It may have waited for its turn before: then it is not its first version.
    let is_begin = |item: &Transition| item.step.is_none() && item.what == "running";
    let begins = changes.history.iter().any(is_begin);
    let limited = changes
        .run
        .graph
        .as_ref()
        .is_some_and(|header| header.deadline.is_some());
    (begins && limited)
        || changes.steps.iter().any(|(_, after)| timer(after))
        || children
            .iter()
            .any(|child| is_timed(&child.changes, &child.children))
}

/// What became of a tick.
#[derive(Debug, Clone, PartialEq)]
pub enum Applied {
    /// It is written; fences of executions that are to be ended.
    Done(Vec<u64>),
    /// The run has moved meanwhile: nothing was written.
    Moved,
}

/// Writes a tick.
pub fn apply(tx: &mut Tx<'_>, book: &Book, moved: &Moved) -> Result<Applied, Abort> {
    let after = &moved.changes.run;
    let before = runs::by_id(tx, after.id)?;
    let Some(before) = before.filter(|before| before.record_version == moved.version) else {
        return Ok(Applied::Moved);
    };
    for number in &moved.folded {
        let key = (TENANT, after.id, *number);
        if let Some(StoredFact::EntryClosed { entry, .. }) = tx.get(&FACTS, &key)? {
            observe(tx, entry)?;
        }
        tx.remove(&FACTS, &key)?;
    }
    for claim in &moved.claims {
        if let Some(live) = complete::held(tx, &claim.holder)? {
            complete::release(tx, &claim.holder, &live, claim.attempt.as_ref())?;
            if let Some(attempt) = &claim.attempt {
                report::task_failed(tx, after, &claim.holder.step, live.number, attempt)?;
            }
        }
    }
    for (step, entry) in &moved.changes.retire {
        retire(tx, step, *entry)?;
    }
    let fences = end_attempts(tx, &moved.changes)?;
    write(tx, book, &moved.graph, &moved.changes, &moved.values, moved.rules)?;
    runs::replace(tx, &before, after)?;
    if after.state.is_terminal() {
        catch_up::run_ended(tx, after)?;
        report::graph_ended(tx, after)?;
    }
    follow_runs(tx, book, &moved.changes, &moved.children)?;
    // What a limit has kept waiting begins with the end of another, and what one commit leaves with the next.
    if after.state.is_terminal() || before.state == RunState::Pending {
        key_limit::advance(tx, after)?;
    }
    Ok(Applied::Done(fences))
}

/// Writes a run that begins, and those that begin with it; or one that does not begin yet, or never will. As it is written.
pub fn begin(tx: &mut Tx<'_>, book: &Book, wish: &Begin) -> Result<Run, Abort> {
    if let Some(gate) = &wish.gate
        && let Some(other) = key_limit::pass(tx, gate)?
    {
        follow_runs(tx, book, &Changes::none(other.clone()), &[])?;
        return Ok(other);
    }
    let run = &wish.changes.run;
    runs::insert_graph(tx, run)?;
    write(tx, book, &wish.graph, &wish.changes, &wish.values, wish.rules)?;
    report::graph_ended(tx, run)?;
    follow_runs(tx, book, &wish.changes, &wish.children)?;
    Ok(run.clone())
}

/// What a tick means for other runs: children begin, orphans end, a parent hears of the end.
fn follow_runs(tx: &mut Tx<'_>, book: &Book, changes: &Changes, children: &[Begin]) -> Result<(), Abort> {
    for child in children {
        begin(tx, book, child)?;
    }
    for orphan in &changes.orphans {
        if let Some(run) = runs::by_id(tx, *orphan)?.filter(|run| !run.state.is_terminal()) {
            let by = format!("run {}", changes.run.id);
            graphs::append_fact(tx, &run, &StoredFact::Cancel { by })?;
        }
    }
    key_limit::tell_parent(tx, &changes.run)
}

fn write(
    tx: &mut Tx<'_>,
    book: &Book,
    graph: &Graph,
    changes: &Changes,
    values: &[(ValueName, Payload)],
    rules: maintain::Rules,
) -> Result<(), Abort> {
    let run = &changes.run;
    for (name, value) in values {
        graphs::put_value(tx, run.id, name, value.clone())?;
    }
    for (before, after) in &changes.steps {
        let dispatched = changes.dispatch.iter().any(|(step, _)| *step == after.step);
        let after = if dispatched && matches!(after.phase, StepPhase::Ready { .. }) {
            dispatch(tx, book, graph, run, after, rules)?
        } else {
            lines::stand_aside(after)
        };
        graphs::put_step(tx, run, before.as_ref(), &after)?;
    }
    graphs::put_history(tx, run, changes.history.clone(), changes.compaction)?;
    Ok(())
}

/// Puts a ready step where it will be found: into the queue of its slot pool or into a line.
fn dispatch(
    tx: &mut Tx<'_>,
    book: &Book,
    graph: &Graph,
    run: &Run,
    step: &StepState,
    rules: maintain::Rules,
) -> Result<StepState, Abort> {
    let Some(key) = Key::of_name(graph, &step.step) else {
        return Ok(step.clone());
    };
    let doc = &graph.node(key.node).doc;
    if doc.slots.is_some() {
        return enqueue(tx, book, (run, step), graph.node(key.node), rules);
    }
    let line = lines::line_of(run, graph.node(key.node), || tx.next_number("next_task"))?;
    Ok(lines::stand_in(step, line))
}

/// Into the queue of its slot pool, or into the line before it.
pub(super) fn enqueue(
    tx: &mut Tx<'_>,
    book: &Book,
    (run, step): (&Run, &StepState),
    node: &Node,
    rules: maintain::Rules,
) -> Result<StepState, Abort> {
    let mut next = step.clone();
    let Some(demand) = &node.doc.slots else {
        return Ok(next);
    };
    let kind = if matches!(node.doc.kind, StepKind::Sensor(_)) {
        EntryKind::Poke
    } else {
        EntryKind::Task
    };
    let entering = Entering {
        job: run.definition.clone(),
        run: run.id,
        step: step.step.clone(),
        attempt: step.attempt,
        kind,
        id: EntryId::of_parts(&[
            "task",
            &run.id.to_string(),
            step.step.as_str(),
            &step.attempt.to_string(),
            &run.record_version.to_string(),
        ]),
        node: run.node.clone(),
        digest: String::new(),
    };
    let entry = match start::enter(tx, book, &entering, demand, &rules)? {
        Entered::Admitted(entry) => {
            entries::insert(tx, &entry)?;
            entry
        }
        Entered::Existing(entry) => entry,
        Entered::Refused(refusal) => {
            if let Some(graph) = next.graph.as_mut() {
                graph.refused = Some(refusal.to_string());
                if graph.line.is_none() {
                    graph.line = Some(refused::line_of(tx, demand)?);
                }
            }
            timers::set(&mut next, node);
            return Ok(next);
        }
    };
    next.phase = StepPhase::Queued {
        entry: entry.seq,
        since: entry.queued_at,
    };
    if let Some(graph) = next.graph.as_mut() {
        graph.refused = None;
        graph.line = None;
    }
    timers::set(&mut next, node);
    Ok(next)
}

/// What became of an entry is folded into its run: it counts no more.
fn observe(tx: &mut Tx<'_>, seq: u64) -> Result<(), StoreError> {
    if let Some(entry) = entries::by_seq(tx, seq)? {
        entries::observe(tx, &entry)?;
    }
    Ok(())
}

/// T7: an entry that its step does not want any more.
fn retire(tx: &mut Tx<'_>, step: &StepRef, seq: u64) -> Result<(), Abort> {
    let Some(entry) = entries::by_seq(tx, seq)? else {
        return Ok(());
    };
    if entry.step != *step {
        return Ok(());
    }
    // Somebody else may have closed it meanwhile: then that is seen with this.
    entries::observe(tx, &entry)?;
    let event = EntryEvent::Withdraw(reason::NOT_WAITING);
    if let Ok(closed) = entry.next(&event, tx.now().wall) {
        entries::replace(tx, &entry, &closed, None)?;
    }
    Ok(())
}

/// Executions that are not wanted any more: one whose step has moved on ends now, another is asked to end.
fn end_attempts(tx: &mut Tx<'_>, changes: &Changes) -> Result<Vec<u64>, Abort> {
    let mut fences = Vec::new();
    let run = changes.run.id;
    for step in &changes.stop {
        let key = (TENANT, run, step.clone());
        let Some(live) = tx.get(&LIVE_ATTEMPTS, &key)? else {
            continue;
        };
        fences.push(live.claim.fence);
        let after = changes.steps.iter().find(|(_, after)| after.step == *step);
        let runs_on = after.is_none_or(|(_, after)| matches!(after.phase, StepPhase::Running { .. }));
        if runs_on {
            ask_to_end(tx, changes, step, live)?;
        } else {
            give_up(tx, run, step, &live)?;
        }
    }
    Ok(fences)
}

fn ask_to_end(
    tx: &mut Tx<'_>,
    changes: &Changes,
    step: &StepRef,
    live: LiveAttempt,
) -> Result<(), StoreError> {
    let run = &changes.run;
    tx.tell(cancel::ENDING, run.id, live.claim.fence, None);
    if live.ending.is_some() {
        return Ok(());
    }
    let early = run.graph.as_ref().and_then(|header| header.ending.as_ref());
    let by = early.map_or_else(|| "its time limit".to_owned(), |early| early.reason.clone());
    let ending = Some(Ending {
        cause: EndingCause::Cancelled,
        at: tx.now().wall,
        by,
    });
    tx.put(
        &LIVE_ATTEMPTS,
        &(TENANT, run.id, step.clone()),
        &LiveAttempt { ending, ..live },
    )
}

fn give_up(tx: &mut Tx<'_>, run: RunId, step: &StepRef, live: &LiveAttempt) -> Result<(), StoreError> {
    let holder = Holder {
        run,
        step: step.clone(),
        fence: live.claim.fence,
    };
    let attempt = Attempt {
        outcome: Outcome::TimedOut,
        ..complete::lost_attempt(&live.claim, "it took too long", tx.now().wall)
    };
    complete::release(tx, &holder, live, Some(&attempt))
}
