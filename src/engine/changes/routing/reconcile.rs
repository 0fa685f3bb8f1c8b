//! The numbers of recipients, computed anew from their assignments.

use crate::store::check_routing::{self, Differing};
use crate::store::tables::RECIPIENT_LIVE;
use crate::store::{Abort, Rows, StoreError, Tx, routing_live};
use crate::words::ids::{RecipientId, TenantId};

/// What a look has found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Looked {
    /// Recipients whose numbers were computed.
    pub recipients: usize,
    /// Those whose numbers differ.
    pub differing: Vec<Differing>,
}

/// Looks at all recipients of a tenant.
pub fn look(rows: &mut impl Rows, tenant: TenantId) -> Result<Looked, StoreError> {
    let mut looked = Looked::default();
    for ((_, recipient), live) in rows.scan(&RECIPIENT_LIVE, &(tenant,), None, usize::MAX)? {
        looked.recipients += 1;
        let found = check_routing::recount(rows, tenant, recipient, &live)?;
        looked.differing.extend(found);
    }
    Ok(looked)
}

/// Puts right what differs: computed once more, by whoever has the only right to write. Those that did differ.
pub fn repair(tx: &mut Tx<'_>, tenant: TenantId, whose: &[RecipientId]) -> Result<Vec<Differing>, Abort> {
    let mut repaired = Vec::new();
    for recipient in whose {
        let Some(mut live) = routing_live::live(tx, tenant, *recipient)? else {
            continue;
        };
        let Some(differing) = check_routing::recount(tx, tenant, *recipient, &live)? else {
            continue;
        };
        live.current = differing.real.current;
        live.units = differing.real.units;
        live.daily_count = differing.real.daily_count;
        routing_live::put_live(tx, tenant, *recipient, &live)?;
        super::assignments::freed(tx, tenant, *recipient, "its numbers were put right")?;
        repaired.push(differing);
    }
    Ok(repaired)
}
