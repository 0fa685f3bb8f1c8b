//! The only writer of slot entries: each write brings all index rows of the entry along.
//!
//! What index rows an entry has is one pure function, [`index_of`]; the check recomputes them with the same one.

use super::error::StoreError;
use super::feed::Counted;
use super::keys::HighFirst;
use super::rows::{ClosedRow, DueRow, Number, RunningRow, UnseenRow, WaitingRow};
use super::table::Rows;
use super::tables::{
    SLOT_CLOSED, SLOT_DUE, SLOT_ENTRIES, SLOT_ENTRY_IDS, SLOT_RUNNING, SLOT_UNSEEN, SLOT_WAITING,
    SLOT_WAITING_COUNT,
};
use super::tx::Tx;
use crate::domain::slots::claim::Lease;
use crate::domain::slots::entry::{EntryState, SlotEntry};
use crate::words::ids::{EntryId, TenantId};
use crate::words::names::SlotPoolName;
use crate::words::time::Millis;

/// The tenant of configured slot pools.
pub const TENANT: TenantId = TenantId::DEFAULT;

type WaitingKey = (TenantId, SlotPoolName, HighFirst, Millis, EntryId);

/// Where an entry stands in the indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryIndex {
    /// In `slot_waiting` and `slot_due`.
    Waiting,
    /// In `slot_running`.
    Running,
    /// In `slot_closed`.
    Closed(Millis),
}

/// The index rows that `entry` has, besides its id.
pub fn index_of(entry: &SlotEntry) -> EntryIndex {
    match &entry.state {
        EntryState::Queued { .. } => EntryIndex::Waiting,
        EntryState::Running { .. } => EntryIndex::Running,
        EntryState::Finished { at, .. }
        | EntryState::Expired { at, .. }
        | EntryState::Cancelled { at, .. } => EntryIndex::Closed(*at),
    }
}

/// The key of a waiting entry: priority, then time, then id.
pub fn waiting_key(entry: &SlotEntry) -> WaitingKey {
    (
        TENANT,
        entry.slot_pool.clone(),
        HighFirst(entry.priority),
        entry.queued_at,
        entry.id,
    )
}

fn due_key(entry: &SlotEntry) -> (TenantId, Millis, EntryId) {
    (TENANT, entry.expires_at, entry.id)
}

/// Writes a new entry that waits.
pub fn insert(tx: &mut Tx<'_>, entry: &SlotEntry) -> Result<(), StoreError> {
    debug_assert_eq!(index_of(entry), EntryIndex::Waiting);
    tx.put(&SLOT_ENTRIES, &(TENANT, entry.seq), entry)?;
    tx.put(&SLOT_ENTRY_IDS, &(TENANT, entry.id), &Number(entry.seq))?;
    enter_waiting(tx, entry)?;
    tx.tell("pool.entry.queued", entry.id, 0, None);
    Ok(())
}

/// Replaces `before` by `after`. A `lease` is given exactly when `after` begins to hold slots.
pub fn replace(
    tx: &mut Tx<'_>,
    before: &SlotEntry,
    after: &SlotEntry,
    lease: Option<&Lease>,
) -> Result<(), StoreError> {
    assert_eq!(before.seq, after.seq, "an entry keeps its place in the table");
    match index_of(before) {
        EntryIndex::Waiting => leave_waiting(tx, before)?,
        EntryIndex::Running => {
            tx.remove(&SLOT_RUNNING, &(TENANT, before.slot_pool.clone(), before.seq))?;
        }
        EntryIndex::Closed(_) => unreachable!("the state machine has no exit from a closed entry"),
    }
    tx.put(&SLOT_ENTRIES, &(TENANT, after.seq), after)?;
    match index_of(after) {
        EntryIndex::Waiting => enter_waiting(tx, after)?,
        EntryIndex::Running => enter_running(tx, after, lease)?,
        EntryIndex::Closed(at) => {
            let key = (TENANT, after.slot_pool.clone(), at, after.id);
            tx.put(&SLOT_CLOSED, &key, &ClosedRow { seq: after.seq })?;
            if after.awaits_sight() {
                let row = UnseenRow {
                    seq: after.seq,
                    run: after.run,
                    step: after.step.clone(),
                };
                tx.put(&SLOT_UNSEEN, &unseen_key(after), &row)?;
            }
        }
    }
    let topic = match &after.state {
        EntryState::Queued { .. } => "pool.entry.requeued",
        EntryState::Running { .. } => "pool.entry.claimed",
        EntryState::Finished { .. } => "pool.entry.finished",
        EntryState::Expired { .. } => "pool.entry.expired",
        EntryState::Cancelled { .. } => "pool.entry.cancelled",
    };
    tx.tell(topic, after.id, 0, after.state.reason());
    if after.state.closed_at().is_some() {
        let slot_pool = after.slot_pool.to_string();
        tx.count(Counted::EntryClosed {
            slot_pool,
            state: after.state.word(),
        });
    }
    Ok(())
}

/// The key of an entry whose close nobody has looked at.
pub fn unseen_key(entry: &SlotEntry) -> (TenantId, SlotPoolName, EntryId) {
    (TENANT, entry.slot_pool.clone(), entry.id)
}

/// The coordinator has looked at the close of an entry: its place in the queue is free. True if nobody had before.
pub fn observe(tx: &mut Tx<'_>, entry: &SlotEntry) -> Result<bool, StoreError> {
    let key = unseen_key(entry);
    let is_unseen = tx.has(&SLOT_UNSEEN, &key)?;
    if is_unseen {
        tx.remove(&SLOT_UNSEEN, &key)?;
    }
    Ok(is_unseen)
}

/// True while nobody has looked at the close of the entry.
pub fn is_unseen(rows: &mut impl Rows, entry: &SlotEntry) -> Result<bool, StoreError> {
    rows.has(&SLOT_UNSEEN, &unseen_key(entry))
}

/// Closed entries of a slot pool that nobody has looked at, counted up to `most`.
pub fn unseen_count(rows: &mut impl Rows, slot_pool: &SlotPoolName, most: usize) -> Result<u64, StoreError> {
    let found = rows.scan_each(&SLOT_UNSEEN, &(TENANT, slot_pool.clone()), None, most)?;
    Ok(found.len() as u64)
}

/// Closed entries of all slot pools that nobody has looked at.
pub fn unseen(rows: &mut impl Rows, most: usize) -> Result<Vec<UnseenRow>, StoreError> {
    let found = rows.scan_each(&SLOT_UNSEEN, &(TENANT,), None, most)?;
    Ok(found
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|(_, row)| row)
        .collect())
}

fn enter_running(tx: &mut Tx<'_>, entry: &SlotEntry, lease: Option<&Lease>) -> Result<(), StoreError> {
    let claim = entry.state.claim().expect("a running entry has a claim");
    let lease = lease.expect("a claim begins with a lease");
    let row = RunningRow {
        slots: entry.slots,
        node: claim.node.clone(),
        fence: claim.fence,
        lease: lease.clone(),
    };
    tx.put(&SLOT_RUNNING, &(TENANT, entry.slot_pool.clone(), entry.seq), &row)
}

fn enter_waiting(tx: &mut Tx<'_>, entry: &SlotEntry) -> Result<(), StoreError> {
    let row = WaitingRow {
        seq: entry.seq,
        slots: entry.slots,
        node: entry.node.clone(),
        job: entry.job.clone(),
    };
    tx.put(&SLOT_WAITING, &waiting_key(entry), &row)?;
    tx.put(
        &SLOT_DUE,
        &due_key(entry),
        &DueRow {
            seq: entry.seq,
            slot_pool: entry.slot_pool.clone(),
        },
    )?;
    let count = waiting_count(tx, &entry.slot_pool)? + 1;
    tx.put(
        &SLOT_WAITING_COUNT,
        &(TENANT, entry.slot_pool.clone()),
        &Number(count),
    )
}

/// Reads before it writes: a count that cannot be read has changed nothing.
fn leave_waiting(tx: &mut Tx<'_>, entry: &SlotEntry) -> Result<(), StoreError> {
    let count = waiting_count(tx, &entry.slot_pool)?.saturating_sub(1);
    tx.remove(&SLOT_WAITING, &waiting_key(entry))?;
    tx.remove(&SLOT_DUE, &due_key(entry))?;
    tx.put(
        &SLOT_WAITING_COUNT,
        &(TENANT, entry.slot_pool.clone()),
        &Number(count),
    )
}

/// Renews the lease of a held entry. The one row that a renewal writes.
pub fn put_lease(
    tx: &mut Tx<'_>,
    slot_pool: &SlotPoolName,
    seq: u64,
    row: &RunningRow,
    lease: Lease,
) -> Result<(), StoreError> {
    tx.put(
        &SLOT_RUNNING,
        &(TENANT, slot_pool.clone(), seq),
        &RunningRow { lease, ..row.clone() },
    )
}

/// Removes a closed entry for good (T18).
pub fn forget(tx: &mut Tx<'_>, entry: &SlotEntry) -> Result<(), StoreError> {
    let EntryIndex::Closed(at) = index_of(entry) else {
        unreachable!("only closed entries are forgotten");
    };
    tx.remove(&SLOT_ENTRIES, &(TENANT, entry.seq))?;
    tx.remove(&SLOT_ENTRY_IDS, &(TENANT, entry.id))?;
    tx.remove(&SLOT_CLOSED, &(TENANT, entry.slot_pool.clone(), at, entry.id))?;
    observe(tx, entry)?;
    Ok(())
}

/// How many entries wait in the slot pool.
pub fn waiting_count(rows: &mut impl Rows, slot_pool: &SlotPoolName) -> Result<u64, StoreError> {
    Ok(rows
        .get(&SLOT_WAITING_COUNT, &(TENANT, slot_pool.clone()))?
        .map_or(0, |number| number.0))
}

/// The entry of a seq.
pub fn by_seq(rows: &mut impl Rows, seq: u64) -> Result<Option<SlotEntry>, StoreError> {
    rows.get(&SLOT_ENTRIES, &(TENANT, seq))
}

/// The entry of an id.
pub fn by_id(rows: &mut impl Rows, id: EntryId) -> Result<Option<SlotEntry>, StoreError> {
    match rows.get(&SLOT_ENTRY_IDS, &(TENANT, id))? {
        Some(Number(seq)) => by_seq(rows, seq),
        None => Ok(None),
    }
}

/// The rows of a slot pool that hold slots. At most its capacity, since each holds one or more.
pub fn running(rows: &mut impl Rows, slot_pool: &SlotPoolName) -> Result<Vec<(u64, RunningRow)>, StoreError> {
    let limit = crate::words::limits::SLOTS_MAX as usize;
    let found = rows.scan(&SLOT_RUNNING, &(TENANT, slot_pool.clone()), None, limit)?;
    Ok(found.into_iter().map(|((_, _, seq), row)| (seq, row)).collect())
}

/// Slots in use: derived, never stored.
pub fn used_slots(rows: &mut impl Rows, slot_pool: &SlotPoolName) -> Result<u32, StoreError> {
    Ok(running(rows, slot_pool)?.iter().map(|(_, row)| row.slots).sum())
}

/// The waiting entries of a slot pool in the order of admission.
pub fn waiting(
    rows: &mut impl Rows,
    slot_pool: &SlotPoolName,
    limit: usize,
) -> Result<Vec<(WaitingKey, WaitingRow)>, StoreError> {
    rows.scan(&SLOT_WAITING, &(TENANT, slot_pool.clone()), None, limit)
}
