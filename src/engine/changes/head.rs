//! What is known about the head of a queue. Works on any rows, so that the look before a pass, the claim itself and the
//! answer to "why does it wait" are one calculation.

use crate::domain::slots::admission::{self, BlockedBy, HeadVerdict, HeadView, Pause, SlotPoolState};
use crate::domain::slots::entry::{EntryKind, SlotEntry};
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::domain::workflow::run::StepPhase;
use crate::engine::book::Book;
use crate::engine::changes::retry;
use crate::store::rows::{Number, PublishedJob};
use crate::store::tables::{BLOCKED_HEADS, JOB_PAUSES, PUBLISHED_JOBS, SLOT_POOLS};
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, NodeName, SlotPoolName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The stored state of a slot pool; `None` if nothing ever entered it.
pub fn slot_pool(rows: &mut impl Rows, name: &SlotPoolName) -> Result<Option<SlotPoolState>, StoreError> {
    rows.get(&SLOT_POOLS, &(TENANT, name.clone()))
}

/// The capacity that admission uses: stored, or configured where nothing is stored yet.
pub fn stored_slots(state: Option<&SlotPoolState>, book: &Book, name: &SlotPoolName) -> u32 {
    match (state, book.slot_pools.get(name)) {
        (Some(state), _) => state.stored_slots,
        (None, Some(configured)) => configured.slots,
        (None, None) => 0,
    }
}

/// True when something waits or runs in the slot pool.
pub fn is_busy(rows: &mut impl Rows, name: &SlotPoolName) -> Result<bool, StoreError> {
    Ok(entries::waiting_count(rows, name)? > 0 || !entries::running(rows, name)?.is_empty())
}

/// The pause of a job that holds now.
pub fn job_pause(rows: &mut impl Rows, job: &JobName, now: Millis) -> Result<Option<Pause>, StoreError> {
    Ok(job_pause_row(rows, job)?.filter(|pause| pause.holds_at(now)))
}

/// The pause of a job that was set last, also when its time is over: until then the job was paused.
pub fn job_pause_row(rows: &mut impl Rows, job: &JobName) -> Result<Option<Pause>, StoreError> {
    rows.get(&JOB_PAUSES, &(TENANT, job.clone()))
}

/// True when another run of the job holds a claim, in any daemon.
pub fn has_live_instance(rows: &mut impl Rows, job: &JobName, except: RunId) -> Result<bool, StoreError> {
    Ok(runs::live_of(rows, job)?.iter().any(|(run, _, _)| *run != except))
}

/// Judges the definition of `entry` against the published one. The run of a graph has pinned its version.
pub(super) fn is_current(published: Option<&PublishedJob>, entry: &SlotEntry) -> bool {
    entry.kind.is_of_graph()
        || published.is_some_and(|published| {
            published.enabled
                && published.digest == entry.digest
                && published.slot_pool.as_ref() == Some(&entry.slot_pool)
        })
}

/// C6 for an entry of a graph's step: the run goes on, and its step waits for exactly this entry.
fn is_wanted(rows: &mut impl Rows, entry: &SlotEntry) -> Result<bool, StoreError> {
    let run = runs::by_id(rows, entry.run)?;
    if run.is_none_or(|run| run.state.is_terminal()) {
        return Ok(false);
    }
    let step = runs::step(rows, entry.run, &entry.step)?;
    Ok(step.is_some_and(|step| {
        step.attempt == entry.attempt
            && matches!(step.phase, StepPhase::Queued { entry: own, .. } if own == entry.seq)
    }))
}

/// The first entry of a queue, if it waits for this daemon's kind of reason: it is bound to another node.
pub fn bound_elsewhere(
    rows: &mut impl Rows,
    book: &Book,
    name: &SlotPoolName,
    now: Millis,
) -> Result<Option<SlotEntry>, StoreError> {
    let first = entries::waiting(rows, name, 1)?.into_iter().next();
    let is_bound = |node: &NodeName| *node != book.node;
    let Some((_, row)) = first.filter(|(_, row)| row.node.as_ref().is_some_and(is_bound)) else {
        return Ok(None);
    };
    let Some(entry) = entries::by_seq(rows, row.seq)? else {
        return Ok(None);
    };
    let view = view(rows, book, &entry, now, false)?;
    Ok((admission::head(&view) == HeadVerdict::Wait(BlockedBy::Node)).then_some(entry))
}

/// True when that was told of this entry.
pub fn is_told(rows: &mut impl Rows, name: &SlotPoolName, seq: u64) -> Result<bool, StoreError> {
    Ok(rows.get(&BLOCKED_HEADS, &(TENANT, name.clone()))? == Some(Number(seq)))
}

/// Tells once that this entry, the head of its queue, waits for a node that is dead; true if it was told now.
pub fn tell_blocked(tx: &mut Tx<'_>, book: &Book, name: &SlotPoolName, seq: u64) -> Result<bool, Abort> {
    let now = tx.now().wall;
    let head = bound_elsewhere(tx, book, name, now)?.filter(|entry| entry.seq == seq);
    let Some((entry, node)) = head.and_then(|entry| Some((entry.id, entry.node?))) else {
        return Ok(false);
    };
    let key = (TENANT, name.clone());
    if is_told(tx, name, seq)? {
        return Ok(false);
    }
    tx.put(&BLOCKED_HEADS, &key, &Number(seq))?;
    let detail = format!("entry {entry} waits for node {node}, which is gone");
    tx.tell("pool.head.blocked", name, 0, Some(&detail));
    Ok(true)
}

/// The view of the entry as the head of its queue.
pub fn view(
    rows: &mut impl Rows,
    book: &Book,
    entry: &SlotEntry,
    now: Millis,
    expiry_held: bool,
) -> Result<HeadView, StoreError> {
    let state = slot_pool(rows, &entry.slot_pool)?;
    let used = entries::used_slots(rows, &entry.slot_pool)?;
    let published = rows.get(&PUBLISHED_JOBS, &(TENANT, entry.job.clone()))?;
    let own = book.jobs.get(&entry.job);
    let policy = own.map_or(ConcurrencyPolicy::Allow, |job| job.definition.concurrency);
    let of_graph = entry.kind.is_of_graph();
    let exclusive = match policy {
        ConcurrencyPolicy::Allow => false,
        ConcurrencyPolicy::Forbid | ConcurrencyPolicy::Replace => !of_graph,
    };
    Ok(HeadView {
        pool_paused: state
            .as_ref()
            .and_then(|state| state.paused.as_ref())
            .is_some_and(|pause| pause.holds_at(now)),
        overdue: !expiry_held && entry.expires_at <= now,
        // A run of a graph has pinned its version: what was published later changes nothing for it.
        definition_current: of_graph || is_current(published.as_ref(), entry),
        retry_current: if of_graph {
            is_wanted(rows, entry)?
        } else {
            retry::may_be_claimed(rows, entry.kind, entry.run)?
        },
        node_fits: entry.node.as_ref().is_none_or(|node| *node == book.node),
        own_definition_published: of_graph
            || own.map(|job| job.digest.as_str())
                == published.as_ref().map(|published| published.digest.as_str()),
        job_paused: !of_graph
            && entry.kind != EntryKind::Manual
            && job_pause(rows, &entry.job, now)?.is_some(),
        live_instance: exclusive && has_live_instance(rows, &entry.job, entry.run)?,
        slots: entry.slots,
        free: stored_slots(state.as_ref(), book, &entry.slot_pool).saturating_sub(used),
    })
}
