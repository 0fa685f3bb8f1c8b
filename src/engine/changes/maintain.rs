//! Maintenance of slot pools: waiting entries past their deadline (T3) and history beyond its length (T18).
//!
//! It is part of every enqueue and of the pass, a bounded number of rows at a time. Lapsed leases (T12) are in `settle`.

use crate::domain::slots::entry::{EntryEvent, EntryState};
use crate::engine::changes::advance;
use crate::store::tables::{SLOT_CLOSED, SLOT_DUE};
use crate::store::{Abort, Rows, StoreError, Tx, entries};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::SlotPoolName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What a daemon sees of its machine, as far as changes ask for it: how maintenance is done this time, and whether runs may
/// begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The wall clock jumped: nothing expires now.
    pub expiry_held: bool,
    /// The disk has too little room: no new run begins.
    pub no_room: bool,
}

impl Rules {
    /// The usual.
    pub fn plain() -> Rules {
        Rules {
            expiry_held: false,
            no_room: false,
        }
    }
}

/// True when [`maintain`] would do something.
pub fn is_due(rows: &mut impl Rows, now: Millis, rules: Rules) -> Result<bool, StoreError> {
    if rules.expiry_held {
        return Ok(false);
    }
    Ok(!due(rows, now, 1)?.is_empty())
}

/// Entries past their deadline, as far as their rows can be read; the head of a queue is judged by itself anyway.
fn due(rows: &mut impl Rows, now: Millis, limit: usize) -> Result<Vec<u64>, StoreError> {
    let found = rows.scan_each(&SLOT_DUE, &(TENANT,), None, limits::MAINTENANCE_ROWS_MAX)?;
    let readable = found.into_iter().filter_map(|row| row.row.ok());
    let overdue = readable.take_while(|((_, at, _), _)| *at <= now);
    Ok(overdue.map(|(_, row)| row.seq).take(limit).collect())
}

/// Expires what is overdue; the number of entries that ended. An unreadable entry is left as it is.
pub fn maintain(tx: &mut Tx<'_>, rules: &Rules) -> Result<usize, Abort> {
    if rules.expiry_held {
        return Ok(0);
    }
    let now = tx.now().wall;
    let mut ended = 0;
    for seq in due(tx, now, limits::MAINTENANCE_ROWS_MAX)? {
        let Ok(Some(entry)) = entries::by_seq(tx, seq) else {
            continue;
        };
        if !matches!(entry.state, EntryState::Queued { .. }) {
            continue;
        }
        match advance::withdraw(tx, &entry, &EntryEvent::Expire, false) {
            Ok(closed) => {
                debug_assert!(closed.state.closed_at().is_some());
                ended += 1;
            }
            // Rows of its slot pool cannot be read, and nothing was written: the others go on.
            Err(Abort(error)) if error.is_row_fault() => {}
            Err(abort) => return Err(abort),
        }
    }
    Ok(ended)
}

/// Removes closed entries beyond the newest kept; the number removed.
pub fn trim(tx: &mut Tx<'_>, slot_pool: &SlotPoolName) -> Result<usize, Abort> {
    let most = limits::CLOSED_KEPT_MAX + limits::MAINTENANCE_ROWS_MAX;
    let closed = tx.scan_each(&SLOT_CLOSED, &(TENANT, slot_pool.clone()), None, most)?;
    let beyond = closed.len().saturating_sub(limits::CLOSED_KEPT_MAX);
    let mut removed = 0;
    for (_, row) in closed.into_iter().take(beyond).filter_map(|row| row.row.ok()) {
        if let Ok(Some(entry)) = entries::by_seq(tx, row.seq)
            && !entries::is_unseen(tx, &entry)?
        {
            entries::forget(tx, &entry)?;
            removed += 1;
        }
    }
    Ok(removed)
}
