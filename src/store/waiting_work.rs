//! The only writer of work that waits: each write brings its place in the queue, its timers and the counts along.

use super::error::StoreError;
use super::live_rows::TimerKind;
use super::routing_live::{count, move_timers};
use super::rows::Present;
use super::table::Rows;
use super::tables::{ROUTING_WAITING, WAITING_ORDER, WORK_ITEMS};
use super::tx::Tx;
use crate::domain::routing::waiting::{Place, WaitKind, Waiting};
use crate::words::ids::{RecipientPoolId, TenantId, WaitingId, WorkId};
use crate::words::limits;
use crate::words::time::Micros;

/// Priorities of work, each a lane of a queue.
pub const LANES: u8 = 10;

/// The instants that an item waits for.
pub fn timers_of(item: &Waiting) -> Vec<(Micros, TimerKind)> {
    let ends_at = match item.kind {
        WaitKind::Again | WaitKind::Queued => item.expires_at,
        WaitKind::Catchall { due_at, .. } => due_at.min(item.expires_at),
    };
    [
        (Some(ends_at), TimerKind::WaitEnds),
        (item.wake_at, TimerKind::Wake),
        (item.sla_due_at, TimerKind::QueueSla),
    ]
    .into_iter()
    .filter_map(|(at, kind)| Some((at?, kind)))
    .collect()
}

/// Where an item stands in its queue.
pub fn order_key(tenant: TenantId, item: &Waiting) -> (TenantId, RecipientPoolId, u8, Micros, WaitingId) {
    (
        tenant,
        item.recipient_pool,
        item.priority,
        item.enqueued_at,
        item.id,
    )
}

/// One item.
pub fn item(rows: &mut impl Rows, tenant: TenantId, id: WaitingId) -> Result<Option<Waiting>, StoreError> {
    rows.get(&ROUTING_WAITING, &(tenant, id))
}

/// An item comes to its queue.
pub fn enqueue(tx: &mut Tx<'_>, tenant: TenantId, item: &Waiting) -> Result<(), StoreError> {
    tx.put(&ROUTING_WAITING, &(tenant, item.id), item)?;
    tx.put(&WAITING_ORDER, &order_key(tenant, item), &Present {})?;
    tx.put(&WORK_ITEMS, &(tenant, item.work, item.id), &Present {})?;
    move_timers(
        tx,
        tenant,
        (item.id.0, item.recipient_pool),
        &[],
        &timers_of(item),
    )?;
    count(tx, tenant, item.recipient_pool, |counts| {
        counts.waiting += 1;
        counts.again += again(item);
    })
}

/// 1 for what came back.
fn again(item: &Waiting) -> u64 {
    u64::from(item.kind == WaitKind::Again)
}

/// The same item, with the same place, after another look at it.
pub fn replace(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: &Waiting,
    after: &Waiting,
) -> Result<(), StoreError> {
    debug_assert_eq!(
        order_key(tenant, before),
        order_key(tenant, after),
        "an item keeps its place"
    );
    tx.put(&ROUTING_WAITING, &(tenant, after.id), after)?;
    if again(before) != again(after) {
        count(tx, tenant, after.recipient_pool, |counts| {
            counts.again = (counts.again + again(after)).saturating_sub(again(before));
        })?;
    }
    let whose = (after.id.0, after.recipient_pool);
    move_timers(tx, tenant, whose, &timers_of(before), &timers_of(after))
}

/// An item leaves its queue.
pub fn leave(tx: &mut Tx<'_>, tenant: TenantId, item: &Waiting) -> Result<(), StoreError> {
    tx.remove(&ROUTING_WAITING, &(tenant, item.id))?;
    tx.remove(&WAITING_ORDER, &order_key(tenant, item))?;
    tx.remove(&WORK_ITEMS, &(tenant, item.work, item.id))?;
    move_timers(
        tx,
        tenant,
        (item.id.0, item.recipient_pool),
        &timers_of(item),
        &[],
    )?;
    count(tx, tenant, item.recipient_pool, |counts| {
        counts.waiting = counts.waiting.saturating_sub(1);
        counts.again = counts.again.saturating_sub(again(item));
    })
}

/// Where work waits in a queue, or is offered.
pub fn items_of(rows: &mut impl Rows, tenant: TenantId, work: WorkId) -> Result<Vec<WaitingId>, StoreError> {
    // The same id may be sent with several pieces of work, and a person does not look at more than these.
    let found = rows.scan(&WORK_ITEMS, &(tenant, work), None, limits::PAGE_MAX)?;
    Ok(found.into_iter().map(|((_, _, id), Present {})| id).collect())
}

/// The next items of one lane behind a place, oldest first.
pub fn lane(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    (priority, behind): (u8, Option<Place>),
    limit: usize,
) -> Result<Vec<Place>, StoreError> {
    let after = behind.map(|(priority, at, id)| (tenant, recipient_pool, priority, at, id));
    let prefix = (tenant, recipient_pool, priority);
    let found = rows.scan(&WAITING_ORDER, &prefix, after.as_ref(), limit)?;
    Ok(found
        .into_iter()
        .map(|((_, _, priority, at, id), Present {})| (priority, at, id))
        .collect())
}

/// Since when the oldest item of a queue waits.
pub fn oldest(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
) -> Result<Option<Micros>, StoreError> {
    let mut oldest = None;
    for priority in 0..LANES {
        let head = lane(rows, tenant, recipient_pool, (priority, None), 1)?;
        let at = head.first().map(|(_, at, _)| *at);
        oldest = match (oldest, at) {
            (Some(a), Some(b)) => Some(Micros::min(a, b)),
            (one, other) => one.or(other),
        };
    }
    Ok(oldest)
}
