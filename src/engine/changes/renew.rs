//! Renewal: all claims of a daemon in one change, one row each.

use crate::domain::slots::claim::Lease;
use crate::store::tables::SLOT_RUNNING;
use crate::store::{Abort, Rows, Tx, entries};
use crate::words::ids::TenantId;
use crate::words::names::{NodeName, SlotPoolName};

const TENANT: TenantId = TenantId::DEFAULT;

/// A lease to renew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renewal {
    /// Where its row stands.
    pub slot_pool: SlotPoolName,
    /// Its entry.
    pub seq: u64,
    /// The fence that must still hold it.
    pub fence: u64,
}

/// The new lease of each renewal, in order; `None` = somebody else holds it, or nobody.
pub fn renew(tx: &mut Tx<'_>, node: &NodeName, renewals: &[Renewal]) -> Result<Vec<Option<Lease>>, Abort> {
    let now = tx.now();
    let mut leases = Vec::with_capacity(renewals.len());
    for renewal in renewals {
        let row = tx.get(&SLOT_RUNNING, &(TENANT, renewal.slot_pool.clone(), renewal.seq))?;
        let mine = row.filter(|row| row.node == *node && row.fence == renewal.fence);
        let Some(row) = mine else {
            leases.push(None);
            continue;
        };
        let lease = row.lease.renewed(now);
        entries::put_lease(tx, &renewal.slot_pool, renewal.seq, &row, lease.clone())?;
        leases.push(Some(lease));
    }
    Ok(leases)
}
