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

/// How maintenance is done this time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rules {
    /// The wall clock jumped: nothing expires now.
    pub expiry_held: bool,
}

impl Rules {
    /// The usual.
    pub fn plain() -> Rules {
        Rules { expiry_held: false }
    }
}

/// True when [`maintain`] would do something.
pub fn is_due(rows: &mut impl Rows, now: Millis, rules: Rules) -> Result<bool, StoreError> {
    if rules.expiry_held {
        return Ok(false);
    }
    let first = rows.scan(&SLOT_DUE, &(TENANT,), None, 1)?;
    Ok(first.first().is_some_and(|((_, at, _), _)| *at <= now))
}

/// Expires what is overdue; the number of entries that ended. An unreadable entry is left as it is.
pub fn maintain(tx: &mut Tx<'_>, rules: &Rules) -> Result<usize, Abort> {
    if rules.expiry_held {
        return Ok(0);
    }
    let now = tx.now().wall;
    let due = tx.scan(&SLOT_DUE, &(TENANT,), None, limits::MAINTENANCE_ROWS_MAX)?;
    let mut ended = 0;
    for (_, row) in due.iter().take_while(|((_, at, _), _)| *at <= now) {
        let Ok(Some(entry)) = entries::by_seq(tx, row.seq) else {
            continue;
        };
        if matches!(entry.state, EntryState::Queued { .. }) {
            let closed = advance::withdraw(tx, &entry, &EntryEvent::Expire, false)?;
            debug_assert!(closed.state.closed_at().is_some());
            ended += 1;
        }
    }
    Ok(ended)
}

/// Removes closed entries beyond the newest kept; the number removed.
pub fn trim(tx: &mut Tx<'_>, slot_pool: &SlotPoolName) -> Result<usize, Abort> {
    let most = limits::CLOSED_KEPT_MAX + limits::MAINTENANCE_ROWS_MAX;
    let closed = tx.scan(&SLOT_CLOSED, &(TENANT, slot_pool.clone()), None, most)?;
    let beyond = closed.len().saturating_sub(limits::CLOSED_KEPT_MAX);
    let mut removed = 0;
    for (_, row) in closed.into_iter().take(beyond) {
        if let Ok(Some(entry)) = entries::by_seq(tx, row.seq) {
            entries::forget(tx, &entry)?;
            removed += 1;
        }
    }
    Ok(removed)
}
