//! The pass: visits every queue and every ready step, and claims what may start, each for a process that waits already.
//!
//! [`look`] asks a snapshot how many processes are wanted and whether there is anything to write at all; [`pass`] does it.

use std::collections::BTreeSet;

use crate::domain::slots::admission::{self, BlockedBy, HeadVerdict};
use crate::domain::slots::claim::{Claim, Lease, Place, ProcessRef};
use crate::domain::slots::entry::{EntryEvent, SlotEntry, reason};
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::domain::workflow::run::{Run, StepState};
use crate::domain::workflow::tick::Fact;
use crate::engine::book::Book;
use crate::engine::changes::tasks::Turns;
use crate::engine::changes::{advance, cancel, drift, head, maintain, nodes, ready, refused, start};
use crate::engine::graphs::GraphShelf;
use crate::store::keys::Key;
use crate::store::rows::{DefinitionRecord, Ending, EndingCause, LiveAttempt, LiveEntry, ReadyStep};
use crate::store::tables::{DEFINITIONS, LIVE_ATTEMPTS, SLOT_CLOSED, SLOT_WAITING_COUNT};
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName, StepRef};
use crate::words::payload::JsonText;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What a snapshot says about the next pass.
#[derive(Debug, Clone, Default)]
pub struct Look {
    /// Processes that could be put to work.
    pub claims: usize,
    /// There is something to write besides claims.
    pub work: bool,
    /// Slot pools that cannot be read, and why.
    pub unreadable: Vec<(SlotPoolName, StoreError)>,
}

/// Who passes, and what it brings.
#[derive(Debug, Clone)]
pub struct Pass {
    /// Where this daemon runs.
    pub place: Place,
    /// Processes that wait behind their gates.
    pub processes: Vec<ProcessRef>,
    /// From SIGTERM to SIGKILL of each job is read from its definition; this rule is about expiry.
    pub rules: maintain::Rules,
    /// To so many other daemons it leaves what would take it over its share of a slot pool; 0: it takes all it can.
    pub leave_to: u32,
    /// Whose turn it is.
    pub turns: Turns,
    /// Compiled definitions.
    pub shelf: GraphShelf,
}

/// One claim that a pass has made.
#[derive(Debug, Clone)]
pub struct Claimed {
    /// The run, now running.
    pub run: Run,
    /// The step.
    pub step: StepRef,
    /// The attempt number.
    pub number: u32,
    /// The claim.
    pub claim: Claim,
    /// The entry and the lease, for a pooled step.
    pub slots: Option<(SlotEntry, Lease)>,
    /// The definition that the run has pinned.
    pub definition: JsonText,
    /// When it began to wait.
    pub since: Millis,
}

/// What a pass has done.
#[derive(Debug, Clone, Default)]
pub struct Passed {
    /// The claims.
    pub claimed: Vec<Claimed>,
    /// Fences of earlier instances that make way.
    pub replaced: Vec<u64>,
    /// Drains that began or ended, for the log.
    pub capacity: Vec<(SlotPoolName, admission::CapacityStep)>,
    /// Slot pools that cannot be read.
    pub unreadable: Vec<(SlotPoolName, StoreError)>,
    /// It stopped at a limit: pass again at once.
    pub more: bool,
    /// It left something to the others: pass again when they had the time to take it.
    pub left: bool,
}

/// What could not be read: each slot pool once, with its first cause.
fn note(unreadable: &mut Vec<(SlotPoolName, StoreError)>, name: &SlotPoolName, error: StoreError) {
    if unreadable.iter().all(|(noted, _)| noted != name) {
        unreadable.push((name.clone(), error));
    }
}

/// Slot pools in which something waits, configured or not. C1: none while the locks that prove daemons alive cannot be
/// trusted.
fn claimable_slot_pools(
    rows: &mut impl Rows,
    book: &Book,
    unreadable: &mut Vec<(SlotPoolName, StoreError)>,
) -> Result<BTreeSet<SlotPoolName>, StoreError> {
    let mut names = BTreeSet::new();
    if !book.locks_trusted {
        return Ok(names);
    }
    for each in rows.scan_each(&SLOT_WAITING_COUNT, &(TENANT,), None, usize::MAX)? {
        match each.row {
            Ok(((_, name), count)) => {
                if count.0 > 0 {
                    names.insert(name);
                }
            }
            Err(error) => {
                if let Some((_, name)) = <(TenantId, SlotPoolName)>::decode(&each.key) {
                    note(unreadable, &name, error);
                }
            }
        }
    }
    Ok(names)
}

/// Asks a snapshot what a pass would do.
pub fn look(
    rows: &mut impl Rows,
    book: &Book,
    now: Millis,
    rules: maintain::Rules,
) -> Result<Look, StoreError> {
    let mut look = Look {
        work: maintain::is_due(rows, now, rules)?,
        ..Look::default()
    };
    for name in claimable_slot_pools(rows, book, &mut look.unreadable)? {
        match look_at(rows, book, &name, now, rules) {
            Ok((claims, work)) => {
                look.claims += claims;
                look.work |= work;
            }
            Err(error) if error.is_row_fault() => note(&mut look.unreadable, &name, error),
            Err(error) => return Err(error),
        }
    }
    for name in book.slot_pools.keys() {
        match has_upkeep(rows, book, name).and_then(|work| Ok(work || refused::has_room(rows, book, name)?)) {
            Ok(work) => look.work |= work,
            Err(error) if error.is_row_fault() => note(&mut look.unreadable, name, error),
            Err(error) => return Err(error),
        }
    }
    look.claims += ready::count(rows, book, limits::CLAIMS_PER_CHANGE_MAX)?;
    look.claims = look.claims.min(limits::CLAIMS_PER_CHANGE_MAX);
    if nodes::drain_of(rows, &book.node)?.is_some() {
        look.claims = 0;
    }
    Ok(look)
}

/// True when a pass would move the capacity of the slot pool, or trim its history.
fn has_upkeep(rows: &mut impl Rows, book: &Book, name: &SlotPoolName) -> Result<bool, StoreError> {
    let closed_max = limits::CLOSED_KEPT_MAX + 1;
    let closed = rows.raw_scan(SLOT_CLOSED.index(), &closed_prefix(name), None, false, closed_max)?;
    let too_long = closed.len() >= closed_max;
    let (Some(configured), Some(state)) = (book.slot_pools.get(name), head::slot_pool(rows, name)?) else {
        return Ok(too_long);
    };
    let busy = head::is_busy(rows, name)?;
    let step = admission::capacity_step(&state, configured.slots, busy, book.raise_immediately);
    let moves = step != admission::CapacityStep::Keep && drift::slot_pool(rows, book, name)?.is_none();
    Ok(too_long || moves)
}

fn closed_prefix(name: &SlotPoolName) -> Vec<u8> {
    (TENANT, name.clone()).encode()
}

fn look_at(
    rows: &mut impl Rows,
    book: &Book,
    name: &SlotPoolName,
    now: Millis,
    rules: maintain::Rules,
) -> Result<(usize, bool), StoreError> {
    let mut claims = 0;
    let mut taken = 0;
    let mut exclusive: BTreeSet<JobName> = BTreeSet::new();
    for (_, row) in entries::waiting(rows, name, limits::CLAIMS_PER_CHANGE_MAX)? {
        let Some(entry) = entries::by_seq(rows, row.seq)? else {
            continue;
        };
        let mut view = head::view(rows, book, &entry, now, rules.expiry_held)?;
        view.free = view.free.saturating_sub(taken);
        view.live_instance |= exclusive.contains(&entry.job);
        match admission::head(&view) {
            HeadVerdict::Claim => {
                claims += 1;
                taken += entry.slots;
                if policy_of(book, &entry.job) != ConcurrencyPolicy::Allow {
                    exclusive.insert(entry.job.clone());
                }
            }
            HeadVerdict::Expire | HeadVerdict::Withdraw | HeadVerdict::Supersede => {
                return Ok((claims, true));
            }
            HeadVerdict::Wait(BlockedBy::Forbid)
                if policy_of(book, &entry.job) == ConcurrencyPolicy::Replace =>
            {
                return Ok((claims, has_unended(rows, &entry.job, entry.run)?));
            }
            HeadVerdict::Wait(_) => break,
        }
    }
    Ok((claims, false))
}

pub(super) fn policy_of(book: &Book, job: &JobName) -> ConcurrencyPolicy {
    book.jobs
        .get(job)
        .map_or(ConcurrencyPolicy::Allow, |job| job.definition.concurrency)
}

fn has_unended(rows: &mut impl Rows, job: &JobName, except: RunId) -> Result<bool, StoreError> {
    Ok(runs::live_of(rows, job)?
        .iter()
        .any(|(run, _, live)| *run != except && live.ending.is_none()))
}

/// Visits every queue and every ready step.
pub fn pass(tx: &mut Tx<'_>, book: &Book, pass: &Pass) -> Result<Passed, Abort> {
    let mut done = Passed::default();
    let mut free: Vec<ProcessRef> = pass.processes.iter().rev().copied().collect();
    let is_drained = nodes::drain_of(tx, &book.node)?.is_some();
    if is_drained {
        free.clear();
    }
    let expired = maintain::maintain(tx, &pass.rules)?;
    done.more = expired == limits::MAINTENANCE_ROWS_MAX;
    for name in book.slot_pools.keys() {
        match start::step_capacity(tx, book, name) {
            Ok(admission::CapacityStep::Keep) => {}
            Ok(step) => done.capacity.push((name.clone(), step)),
            Err(error) if error.is_row_fault() => note(&mut done.unreadable, name, error),
            Err(error) => return Err(error.into()),
        }
    }
    let mut names = claimable_slot_pools(tx, book, &mut done.unreadable)?;
    for name in book.slot_pools.keys() {
        match refused::has_room(tx, book, name) {
            Ok(true) => drop(names.insert(name.clone())),
            Ok(false) => {}
            Err(error) if error.is_row_fault() => note(&mut done.unreadable, name, error),
            Err(error) => return Err(error.into()),
        }
    }
    for name in names {
        match serve(tx, book, pass, &name, &mut free, &mut done) {
            Ok(()) => {}
            Err(Abort(error)) if error.is_row_fault() => note(&mut done.unreadable, &name, error),
            Err(abort) => return Err(abort),
        }
    }
    for name in book.slot_pools.keys() {
        done.more |= maintain::trim(tx, name)? == limits::MAINTENANCE_ROWS_MAX;
    }
    if !is_drained {
        ready::claim(tx, book, pass, &mut free, &mut done)?;
    }
    Ok(done)
}

/// The part of a pass that fits into another change: one queue, or the ready steps. A row that cannot be read stops it
/// and nothing else; the next whole pass reports it.
pub fn quick_pass(
    tx: &mut Tx<'_>,
    book: &Book,
    pass: &Pass,
    slot_pool: Option<&SlotPoolName>,
) -> Result<Passed, Abort> {
    let mut done = Passed::default();
    if nodes::drain_of(tx, &book.node)?.is_some() {
        return Ok(done);
    }
    let mut free: Vec<ProcessRef> = pass.processes.iter().rev().copied().collect();
    let served = match slot_pool {
        Some(name) if book.locks_trusted => serve(tx, book, pass, name, &mut free, &mut done),
        Some(_) => Ok(()),
        None => ready::claim(tx, book, pass, &mut free, &mut done),
    };
    match served {
        Err(Abort(error)) if !error.is_row_fault() => Err(Abort(error)),
        Ok(()) | Err(_) => Ok(done),
    }
}

/// Claims, expires or withdraws heads of one queue until the head must wait. Reads of a head come before its writes,
/// so that a damaged row stops the queue without a half-done claim.
fn serve(
    tx: &mut Tx<'_>,
    book: &Book,
    pass: &Pass,
    name: &SlotPoolName,
    free: &mut Vec<ProcessRef>,
    done: &mut Passed,
) -> Result<(), Abort> {
    for _ in 0..limits::MAINTENANCE_ROWS_MAX {
        refused::let_in(tx, book, &pass.shelf, pass.rules, name)?;
        let Some((_, row)) = entries::waiting(tx, name, 1)?.into_iter().next() else {
            return Ok(());
        };
        let Some(entry) = entries::by_seq(tx, row.seq)? else {
            return Ok(());
        };
        let view = head::view(tx, book, &entry, tx.now().wall, pass.rules.expiry_held)?;
        match admission::head(&view) {
            HeadVerdict::Expire => {
                advance::withdraw(tx, &entry, &EntryEvent::Expire, false)?;
            }
            HeadVerdict::Withdraw => {
                advance::withdraw(tx, &entry, &EntryEvent::Withdraw(reason::DEFINITION_GONE), false)?;
            }
            HeadVerdict::Supersede => {
                let why = if entry.kind.is_of_graph() {
                    reason::NOT_WAITING
                } else {
                    reason::RETRY_SUPERSEDED
                };
                advance::withdraw(tx, &entry, &EntryEvent::Withdraw(why), false)?;
            }
            HeadVerdict::Wait(BlockedBy::Forbid)
                if policy_of(book, &entry.job) == ConcurrencyPolicy::Replace =>
            {
                done.replaced.extend(replace_earlier(tx, &entry.job, entry.run)?);
                return Ok(());
            }
            HeadVerdict::Wait(_) => return Ok(()),
            HeadVerdict::Claim if is_left_to_others(tx, book, pass, &entry)? => {
                done.left = true;
                return Ok(());
            }
            HeadVerdict::Claim => {
                let Some(process) = free.pop() else {
                    done.more = true;
                    return Ok(());
                };
                let claimed = claim_entry(tx, book, pass, &entry, process)?;
                done.claimed.push(claimed);
            }
        }
    }
    done.more = true;
    Ok(())
}

/// True for an entry that others may claim too and with which this daemon would hold more than its share of the slots. What
/// ends here could otherwise always begin here again, and the others would have nothing.
fn is_left_to_others(
    rows: &mut impl Rows,
    book: &Book,
    pass: &Pass,
    entry: &SlotEntry,
) -> Result<bool, StoreError> {
    if pass.leave_to == 0 || entry.node.is_some() {
        return Ok(false);
    }
    let running = entries::running(rows, &entry.slot_pool)?;
    let own = running.iter().filter(|(_, row)| row.node == book.node);
    let held: u32 = own.map(|(_, row)| row.slots).sum();
    let state = head::slot_pool(rows, &entry.slot_pool)?;
    let stored = head::stored_slots(state.as_ref(), book, &entry.slot_pool);
    Ok(held > 0 && held + entry.slots > stored.div_ceil(pass.leave_to + 1))
}

fn definition_of(tx: &mut Tx<'_>, run: &Run) -> Result<JsonText, StoreError> {
    let key = (TENANT, run.definition.clone(), run.version);
    let record: Option<DefinitionRecord> = tx.get(&DEFINITIONS, &key)?;
    record
        .map(|record| record.json)
        .ok_or_else(|| StoreError::Unreadable {
            table: "definitions",
            key: format!("{} version {}", run.definition, run.version),
            cause: "it is missing".to_owned(),
        })
}

fn kill_timeout_of(book: &Book, job: &JobName, step: &StepState) -> u64 {
    let of_graph = step.graph.as_ref().map(|graph| graph.kill_timeout_ms);
    let of_job = || {
        let step = book.jobs.get(job)?.definition.job_step()?;
        Some(step.command.kill_timeout_ms)
    };
    of_graph.or_else(of_job).unwrap_or(30_000)
}

fn claim_entry(
    tx: &mut Tx<'_>,
    book: &Book,
    pass: &Pass,
    entry: &SlotEntry,
    process: ProcessRef,
) -> Result<Claimed, Abort> {
    let both = advance::load(tx, entry.run, &entry.step)?;
    let definition = definition_of(tx, &both.0)?;
    let now = tx.now();
    let claim = Claim {
        node: book.node.clone(),
        fence: tx.next_number("next_fence")?,
        place: pass.place.clone(),
        process: Some(process),
        claimed_at: now.wall,
    };
    let lease = Lease::begin(&pass.place.clock, now);
    let held = match entry.next(&EntryEvent::Claim(claim.clone()), now.wall) {
        Ok(held) => held,
        Err(refusal) => panic!("entry {}: {refusal}", entry.id),
    };
    entries::replace(tx, entry, &held, Some(&lease))?;
    let live = LiveAttempt {
        job: entry.job.clone(),
        number: entry.attempt,
        claim: claim.clone(),
        entry: Some(LiveEntry {
            seq: entry.seq,
            id: entry.id,
            slot_pool: entry.slot_pool.clone(),
        }),
        kill_timeout_ms: kill_timeout_of(book, &entry.job, &both.1),
        ending: None,
    };
    tx.put(&LIVE_ATTEMPTS, &(TENANT, entry.run, entry.step.clone()), &live)?;
    let (run, _) = advance::advance(tx, &both, &Fact::Claimed { fence: claim.fence }, None)?;
    Ok(Claimed {
        run,
        step: entry.step.clone(),
        number: entry.attempt,
        claim,
        slots: Some((held, lease)),
        definition,
        since: entry.queued_at,
    })
}

/// Asks every earlier live instance of the job to make way; the fences that were asked now.
pub(super) fn replace_earlier(tx: &mut Tx<'_>, job: &JobName, except: RunId) -> Result<Vec<u64>, StoreError> {
    let mut fences = Vec::new();
    let at = tx.now().wall;
    for (run, step, live) in runs::live_of(tx, job)? {
        if run == except || live.ending.is_some() {
            continue;
        }
        fences.push(live.claim.fence);
        tx.tell(cancel::ENDING, run, live.claim.fence, None);
        let ending = Some(Ending {
            cause: EndingCause::Replaced,
            at,
            by: "concurrencyPolicy".to_owned(),
        });
        tx.put(
            &LIVE_ATTEMPTS,
            &(TENANT, run, step),
            &LiveAttempt { ending, ..live },
        )?;
    }
    Ok(fences)
}

pub(super) fn claim_ready_step(
    tx: &mut Tx<'_>,
    book: &Book,
    pass: &Pass,
    run: RunId,
    step: &StepRef,
    row: &ReadyStep,
    process: ProcessRef,
) -> Result<Claimed, Abort> {
    let both = advance::load(tx, run, step)?;
    let definition = definition_of(tx, &both.0)?;
    let number = both.1.attempt;
    let claim = Claim {
        node: book.node.clone(),
        fence: tx.next_number("next_fence")?,
        place: pass.place.clone(),
        process: Some(process),
        claimed_at: tx.now().wall,
    };
    let live = LiveAttempt {
        job: row.job.clone(),
        number,
        claim: claim.clone(),
        entry: None,
        kill_timeout_ms: kill_timeout_of(book, &row.job, &both.1),
        ending: None,
    };
    tx.put(&LIVE_ATTEMPTS, &(TENANT, run, step.clone()), &live)?;
    let since = both.0.created_at;
    let (run, _) = advance::advance(tx, &both, &Fact::Claimed { fence: claim.fence }, None)?;
    Ok(Claimed {
        run,
        step: step.clone(),
        number,
        claim,
        slots: None,
        definition,
        since,
    })
}
