//! What is done with many runs at a time, each judged anew in the change that does it: a run that has moved on since it was
//! found is left alone, and says why.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::domain::workflow::bulk::{BulkWish, Deed, Matched};
use crate::domain::workflow::filter::RunFilter;
use crate::domain::workflow::run::{Run, RunState, StepPhase};
use crate::engine::book::Book;
use crate::engine::changes::cancel::{self, RunCancelled};
use crate::engine::changes::graph::{self, Begin};
use crate::engine::changes::remember::{self, Answer, Ticket, Told};
use crate::engine::changes::retry::{self, Hastened};
use crate::engine::changes::start::{self, Start, Started};
use crate::store::run_walk::{Met, RunWalk, SlotPoolsOf};
use crate::store::tables::STEPS;
use crate::store::{Abort, Rows, StoreError, Tx, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// What was found among some rows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Found {
    /// What matches, newest first.
    pub matched: Vec<Matched>,
    /// The last row that was looked at, if there may be more.
    pub more_after: Option<RunId>,
    /// How many were.
    pub scanned: usize,
}

/// Looks at up to `limit` runs behind `after`, newest first.
///
/// `repeated` collects the runs that a newer one repeats: of a graph, such a run is tried again already.
pub fn find(
    rows: &mut impl Rows,
    wish: BulkWish,
    filter: &RunFilter,
    (after, limit): (Option<RunId>, usize),
    repeated: &mut BTreeSet<RunId>,
) -> Result<Found, StoreError> {
    let mut walk = RunWalk::begin(rows, filter, false, after)?;
    let mut found = Found::default();
    while let Some((id, met)) = walk.next(rows)? {
        found.scanned += 1;
        match met {
            Met::Wanted(run) => {
                repeated.extend(run.trigger.rerun_of());
                let rests = wish == BulkWish::Retry && rests(rows, &run)?;
                let deed = match wish.deed(&run, rests) {
                    Some(Deed::Again) if repeated.contains(&id) => Some(Deed::Collapsed),
                    deed => deed,
                };
                found.matched.extend(deed.map(|deed| Matched {
                    id,
                    job: run.definition.clone(),
                    state: run.state.word(),
                    deed,
                }));
            }
            Met::Other { repeats, .. } => repeated.extend(repeats),
            Met::Unreadable => {}
        }
        if found.scanned == limit {
            found.more_after = Some(id);
            break;
        }
    }
    Ok(found)
}

/// True while the run waits for its next attempt.
fn rests(rows: &mut impl Rows, run: &Run) -> Result<bool, StoreError> {
    if !matches!(run.state, RunState::Running { .. }) || run.graph.is_some() {
        return Ok(false);
    }
    let steps = match rows.scan(&STEPS, &(TENANT, run.id), None, limits::PAGE_MAX) {
        Ok(steps) => steps,
        Err(error) if error.is_row_fault() => return Ok(false),
        Err(error) => return Err(error),
    };
    Ok(steps
        .iter()
        .any(|(_, step)| matches!(step.phase, StepPhase::Retrying { .. })))
}

/// What became of some of them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Done {
    /// Runs that were cancelled, or are being ended.
    pub cancelled: usize,
    /// Fences of those that are being ended.
    pub fences: Vec<u64>,
    /// Runs whose next attempt begins now.
    pub retried: usize,
    /// New runs, each with the one that it repeats.
    pub begun: Vec<Begun>,
    /// How many of them take over what another has done.
    pub again: usize,
    /// Runs that were left alone, and why.
    pub refused: Vec<(RunId, String)>,
}

impl Done {
    /// Adds what became of others.
    pub fn add(&mut self, other: Done) {
        self.cancelled += other.cancelled;
        self.fences.extend(other.fences);
        self.retried += other.retried;
        self.begun.extend(other.begun);
        self.again += other.again;
        self.refused.extend(other.refused);
    }
}

/// A new run that repeats another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Begun {
    /// The new one.
    pub run: RunId,
    /// The other one.
    pub of: RunId,
}

/// One run and what shall happen to it.
#[derive(Debug, Clone)]
pub enum Task {
    /// It ends.
    Cancel(RunId),
    /// Its next attempt begins now.
    Retry(RunId),
    /// Its job starts anew, if it still can.
    Rerun {
        /// The run.
        of: RunId,
        /// The start, or why there can be none.
        start: Result<Box<Start>, String>,
        /// Under which the start is remembered: under the same one it happens once.
        ticket: Option<Ticket>,
    },
    /// A new run takes over what it has done and tries the rest, if that can be.
    Again {
        /// The run.
        of: RunId,
        /// The new run, or why there can be none.
        begin: Result<Arc<Begin>, String>,
        /// As for a rerun.
        ticket: Option<Ticket>,
    },
}

impl Task {
    /// The run that it is about.
    pub fn run(&self) -> RunId {
        match self {
            Task::Cancel(id) | Task::Retry(id) | Task::Rerun { of: id, .. } | Task::Again { of: id, .. } => {
                *id
            }
        }
    }

    /// The run that would begin, and its job.
    pub fn job(&self) -> Option<(RunId, String)> {
        match self {
            Task::Rerun { start: Ok(start), .. } => Some((start.run, start.name.to_string())),
            Task::Again { begin: Ok(begin), .. } => {
                let run = &begin.changes.run;
                Some((run.id, run.definition.to_string()))
            }
            Task::Rerun { start: Err(_), .. }
            | Task::Again { begin: Err(_), .. }
            | Task::Cancel(_)
            | Task::Retry(_) => None,
        }
    }

    /// How many rows it writes, more or less.
    pub fn weight(&self) -> usize {
        match self {
            Task::Again { begin: Ok(begin), .. } => begin.changes.steps.len() + begin.values.len(),
            Task::Again { begin: Err(_), .. } | Task::Cancel(_) | Task::Retry(_) | Task::Rerun { .. } => 1,
        }
    }
}

/// Does some of them.
pub fn act(
    tx: &mut Tx<'_>,
    book: &Book,
    (filter, by): (&RunFilter, &str),
    tasks: &[Task],
) -> Result<Done, Abort> {
    let mut done = Done::default();
    let mut slot_pools = SlotPoolsOf::default();
    for task in tasks {
        let id = task.run();
        if let Some(why) = moved_on(tx, &mut slot_pools, filter, id)? {
            done.refused.push((id, why));
            continue;
        }
        let refused = match task {
            Task::Cancel(id) => match cancel::run(tx, *id, by)? {
                RunCancelled::Ended => {
                    done.cancelled += 1;
                    None
                }
                RunCancelled::Ending(fences) => {
                    done.cancelled += 1;
                    done.fences.extend(fences);
                    None
                }
                RunCancelled::AlreadyEnded(state) => Some(format!("it has ended: {state}")),
                RunCancelled::NotFound => Some(GONE.to_owned()),
            },
            Task::Retry(id) => match retry::hasten(tx, *id)? {
                Hastened::Now { .. } => {
                    done.retried += 1;
                    None
                }
                Hastened::NotWaiting { phase, attempt } => Some(format!("attempt {attempt} is {phase}")),
                Hastened::AlreadyEnded(state) => Some(format!("it has ended: {state}")),
                Hastened::NotFound => Some(GONE.to_owned()),
            },
            Task::Rerun { of, start, ticket } => match once(tx, *ticket, |tx| rerun(tx, book, *of, start))? {
                Ok(run) => {
                    done.begun.push(Begun { run, of: *of });
                    None
                }
                Err(why) => Some(why),
            },
            Task::Again { of, begin, ticket } => match once(tx, *ticket, |tx| again(tx, book, begin))? {
                Ok(run) => {
                    done.begun.push(Begun { run, of: *of });
                    done.again += 1;
                    None
                }
                Err(why) => Some(why),
            },
        };
        done.refused.extend(refused.map(|why| (id, why)));
    }
    Ok(done)
}

const GONE: &str = "it is not there any more";

/// Why a run that was found does not match any more.
fn moved_on(
    rows: &mut impl Rows,
    slot_pools: &mut SlotPoolsOf,
    filter: &RunFilter,
    id: RunId,
) -> Result<Option<String>, StoreError> {
    let run = match runs::by_id(rows, id) {
        Ok(Some(run)) => run,
        Ok(None) => return Ok(Some(GONE.to_owned())),
        // Nothing of it has been written yet, so the others may go on.
        Err(error) if error.is_row_fault() => return Ok(Some("it cannot be read".to_owned())),
        Err(error) => return Err(error),
    };
    let slot_pool = slot_pools.of(rows, &run)?;
    if filter.matches(&run, slot_pool.as_ref()) {
        return Ok(None);
    }
    let verb = if run.state.is_terminal() {
        "has ended:"
    } else {
        "is now"
    };
    Ok(Some(format!("it {verb} {}", run.state.word())))
}

/// Begins a run once under a ticket, also when it is asked for again after a crash.
fn once(
    tx: &mut Tx<'_>,
    ticket: Option<Ticket>,
    make: impl FnOnce(&mut Tx<'_>) -> Result<Result<RunId, String>, Abort>,
) -> Result<Result<RunId, String>, Abort> {
    if let Some(ticket) = ticket
        && let Some(Told::Before(answer)) = remember::before::<()>(tx, ticket)?
        && let Ok(run) = answer.body.read::<RunId>()
    {
        return Ok(Ok(run));
    }
    let begun = make(tx)?;
    if let (Some(ticket), Ok(run)) = (ticket, &begun) {
        let body = JsonText::of(run).expect("an id is plain data");
        let answer = Answer {
            status: 201,
            location: None,
            body,
        };
        remember::keep(tx, ticket, &answer)?;
    }
    Ok(begun)
}

fn rerun(
    tx: &mut Tx<'_>,
    book: &Book,
    of: RunId,
    start: &Result<Box<Start>, String>,
) -> Result<Result<RunId, String>, Abort> {
    let start = match start {
        Ok(start) => start,
        Err(why) => return Ok(Err(why.clone())),
    };
    let started = start::start(tx, book, start)?;
    if let Started::Queued { run, .. } | Started::Ready { run } = started {
        return Ok(Ok(run));
    }
    let why = started.refusal(&start.name);
    Ok(Err(why.unwrap_or_else(|| format!("{of} was not repeated"))))
}

fn again(
    tx: &mut Tx<'_>,
    book: &Book,
    begin: &Result<Arc<Begin>, String>,
) -> Result<Result<RunId, String>, Abort> {
    match begin {
        Ok(begin) => {
            graph::begin(tx, book, begin)?;
            Ok(Ok(begin.changes.run.id))
        }
        Err(why) => Ok(Err(why.clone())),
    }
}

/// How many of each deed there are.
pub fn count(matched: &[Matched], deed: Deed) -> usize {
    matched.iter().filter(|run| run.deed == deed).count()
}
