//! What recipients do now.

use super::error::StoreError;
use super::rows::Number;
use super::table::Rows;
use super::tables::{META, RECIPIENT_LIVE};
use super::tx::Tx;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::words::ids::{RecipientId, TenantId};
use crate::words::time::Micros;

/// The counter of assignments.
const COUNTER: &str = "next_assignment";

/// What a recipient does now; none for one that is not there.
pub fn live(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient: RecipientId,
) -> Result<Option<Live>, StoreError> {
    rows.get(&RECIPIENT_LIVE, &(tenant, recipient))
}

/// A recipient is there or not; true if that is news. The first word about it makes its row.
pub fn set_state(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient: RecipientId,
    state: RecipientState,
) -> Result<bool, StoreError> {
    let now = Micros::from(tx.now().wall);
    let after = match live(tx, tenant, recipient)? {
        Some(before) if before.state == state => return Ok(false),
        Some(before) => Live {
            state,
            state_since: now,
            ..before
        },
        None => Live::new(state, now),
    };
    tx.put(&RECIPIENT_LIVE, &(tenant, recipient), &after)?;
    Ok(true)
}

/// Nothing that a recipient has up to now counts any more.
pub fn reset_capacity(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId) -> Result<(), StoreError> {
    let newest = tx.get(&META, &(COUNTER.to_owned(),))?;
    let Some(before) = live(tx, tenant, recipient)? else {
        return Ok(());
    };
    let after = Live {
        current: 0,
        units: 0,
        daily_count: 0,
        daily_reset_at: None,
        capacity_epoch: newest.map_or(0, |number: Number| number.0),
        ..before
    };
    tx.put(&RECIPIENT_LIVE, &(tenant, recipient), &after)
}

/// A recipient is gone: so is what it did.
pub fn forget(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId) -> Result<(), StoreError> {
    tx.remove(&RECIPIENT_LIVE, &(tenant, recipient))?;
    Ok(())
}
