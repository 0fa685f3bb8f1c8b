//! The only writer of offers and of the ledger of claims: each write brings places, timers and counts along.

use super::error::StoreError;
use super::live_rows::TimerKind;
use super::routing_live::{count, move_timers};
use super::rows::Present;
use super::table::Rows;
use super::tables::{CLAIM_QUEUES, CLAIMS, OFFER_ORDER, OFFERS, OFFERS_OF_POOL, WORK_ITEMS};
use super::tx::Tx;
use crate::domain::routing::offer::{Offer, OfferState};
use crate::words::ids::{AssignmentId, ClaimQueueId, RecipientId, RecipientPoolId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// True while it may be claimed.
pub fn is_open(offer: &Offer) -> bool {
    matches!(offer.state, OfferState::Open)
}

/// The instants that an offer waits for.
pub fn timers_of(offer: &Offer) -> Vec<(Micros, TimerKind)> {
    if !is_open(offer) {
        return Vec::new();
    }
    let ends = (offer.ends_at, TimerKind::OfferEnds);
    let breach = offer.sla_due_at.map(|at| (at, TimerKind::OfferSla));
    std::iter::once(ends).chain(breach).collect()
}

/// Where an open offer stands in its queue.
pub fn order_key(tenant: TenantId, offer: &Offer) -> (TenantId, ClaimQueueId, u8, Micros, WaitingId) {
    (
        tenant,
        offer.claim_queue,
        offer.priority,
        offer.offered_at,
        offer.id,
    )
}

/// One offer.
pub fn offer(rows: &mut impl Rows, tenant: TenantId, id: WaitingId) -> Result<Option<Offer>, StoreError> {
    rows.get(&OFFERS, &(tenant, id))
}

/// False when its queue was removed. What a recipient pool offers without one stands under the pool's own id.
pub fn has_queue(rows: &mut impl Rows, tenant: TenantId, offer: &Offer) -> Result<bool, StoreError> {
    if offer.claim_queue.0 == offer.recipient_pool.0 {
        return Ok(true);
    }
    rows.has(&CLAIM_QUEUES, &(tenant, offer.claim_queue))
}

/// Writes an offer as it is after an event.
pub fn put(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: Option<&Offer>,
    after: &Offer,
) -> Result<(), StoreError> {
    tx.put(&OFFERS, &(tenant, after.id), after)?;
    let was_open = before.is_some_and(is_open);
    let pool_key = (tenant, after.recipient_pool, after.id);
    let work_key = (tenant, after.work, after.id);
    match (was_open, is_open(after)) {
        (false, true) => {
            tx.put(&OFFER_ORDER, &order_key(tenant, after), &Present {})?;
            tx.put(&OFFERS_OF_POOL, &pool_key, &Present {})?;
            tx.put(&WORK_ITEMS, &work_key, &Present {})?;
            count(tx, tenant, after.recipient_pool, |counts| counts.offered += 1)?;
        }
        (true, false) => {
            tx.remove(&OFFER_ORDER, &order_key(tenant, after))?;
            tx.remove(&OFFERS_OF_POOL, &pool_key)?;
            tx.remove(&WORK_ITEMS, &work_key)?;
            count(tx, tenant, after.recipient_pool, |counts| {
                counts.offered = counts.offered.saturating_sub(1);
            })?;
        }
        (true, true) | (false, false) => {}
    }
    let old = before.map(timers_of).unwrap_or_default();
    move_timers(
        tx,
        tenant,
        (after.id.0, after.recipient_pool),
        &old,
        &timers_of(after),
    )
}

/// Removes an offer that is not open.
pub(super) fn forget(tx: &mut Tx<'_>, tenant: TenantId, offer: &Offer) -> Result<(), StoreError> {
    debug_assert!(!is_open(offer), "an open offer is somebody's work");
    tx.remove(&OFFERS, &(tenant, offer.id))?;
    Ok(())
}

/// Open offers of a claim queue, in its order, behind a place.
pub fn in_order(
    rows: &mut impl Rows,
    tenant: TenantId,
    queue: ClaimQueueId,
    behind: Option<(u8, Micros, WaitingId)>,
    limit: usize,
) -> Result<Vec<(u8, Micros, WaitingId)>, StoreError> {
    let after = behind.map(|(priority, at, id)| (tenant, queue, priority, at, id));
    let found = rows.scan(&OFFER_ORDER, &(tenant, queue), after.as_ref(), limit)?;
    Ok(found
        .into_iter()
        .map(|((_, _, priority, at, id), Present {})| (priority, at, id))
        .collect())
}

/// Open offers of a recipient pool.
pub fn of_pool(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    limit: usize,
) -> Result<Vec<WaitingId>, StoreError> {
    let found = rows.scan(&OFFERS_OF_POOL, &(tenant, recipient_pool), None, limit)?;
    Ok(found.into_iter().map(|((_, _, id), Present {})| id).collect())
}

/// Instants of the newest claims of a recipient through a recipient pool, oldest first.
pub fn claims(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    recipient: RecipientId,
) -> Result<Vec<Micros>, StoreError> {
    let prefix = (tenant, recipient_pool, recipient);
    let found = rows.scan_back(&CLAIMS, &prefix, None, limits::CLAIMS_COUNTED_MAX)?;
    let mut instants: Vec<Micros> = found
        .into_iter()
        .map(|((_, _, _, at, _), Present {})| at)
        .collect();
    instants.reverse();
    Ok(instants)
}

/// Notes a claim, and forgets those of the recipient that no period counts any more.
pub fn note_claim(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    (recipient_pool, recipient): (RecipientPoolId, RecipientId),
    (at, assignment): (Micros, AssignmentId),
    counted_from: Micros,
) -> Result<(), StoreError> {
    let prefix = (tenant, recipient_pool, recipient);
    let old = tx.scan(&CLAIMS, &prefix, None, limits::MAINTENANCE_ROWS_MAX)?;
    for (key, Present {}) in old
        .into_iter()
        .take_while(|((_, _, _, at, _), _)| *at <= counted_from)
    {
        tx.remove(&CLAIMS, &key)?;
    }
    tx.put(
        &CLAIMS,
        &(tenant, recipient_pool, recipient, at, assignment),
        &Present {},
    )
}
