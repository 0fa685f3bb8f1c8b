//! Work that comes to a queue without a pass, or leaves it without one.

use super::steps;
use crate::domain::routing::assignment::{Assignment, Lineage};
use crate::domain::routing::offer::Offer;
use crate::domain::routing::sla;
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::store::routing_live;
use crate::store::{Abort, Rows, StoreError, Tx, offers, routing_objects, waiting_work};
use crate::words::ids::{ClaimQueueId, RecipientPoolId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// How long work waits where its recipient pool is gone.
const TTL_US_DEFAULT: u64 = 3_600 * 1_000_000;

/// Work that an assignment gave back is routed anew: it stands in the queue of the recipient pool where its passes begin, from
/// where it is taken at once.
pub(super) fn again(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    ended: &Assignment,
    lineage: Lineage,
    why: &str,
) -> Result<(), StoreError> {
    let recipient_pool = lineage.entry.unwrap_or(ended.recipient_pool);
    let item = Waiting {
        id: WaitingId::fresh(),
        work: ended.work,
        recipient_pool,
        priority: ended.priority,
        enqueued_at: ended.created_at,
        expires_at: Micros(0),
        kind: WaitKind::Again,
        decision: ended.decision,
        hop_since: Micros::from(tx.now().wall),
        trail: lineage.trail.clone(),
        wake_at: None,
        sla_due_at: None,
        histogram: Vec::new(),
        lineage,
        record_version: 0,
    };
    anew(tx, tenant, item, why)
}

/// The same for what has waited, or was offered, elsewhere.
pub(super) fn anew(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    mut item: Waiting,
    why: &str,
) -> Result<(), StoreError> {
    let now = Micros::from(tx.now().wall);
    let recipient_pool = routing_objects::recipient_pool(tx, tenant, item.recipient_pool)?;
    let config = recipient_pool.as_ref().map(|found| &found.config);
    item.expires_at = now.plus(config.map_or(TTL_US_DEFAULT, |config| config.queue_ttl_us));
    let sla = config.and_then(|config| config.sla.as_ref());
    item.sla_due_at = item.sla_due_at.or_else(|| sla::queue_due(sla, now));
    waiting_work::enqueue(tx, tenant, &item)?;
    tx.tell("routing.waiting", item.id, 0, Some(why));
    routing_live::stir(tx, tenant, item.recipient_pool, why)?;
    Ok(())
}

/// The next items of a queue in its stored order, of all lanes.
pub fn items(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    behind: Option<(u8, Micros, WaitingId)>,
    limit: usize,
) -> Result<Vec<Waiting>, StoreError> {
    let mut found = Vec::new();
    let first_lane = behind.map_or(0, |(priority, _, _)| priority);
    for priority in first_lane..waiting_work::LANES {
        let behind = behind.filter(|(lane, _, _)| *lane == priority);
        let places = waiting_work::lane(
            rows,
            tenant,
            recipient_pool,
            (priority, behind),
            limit - found.len(),
        )?;
        for (_, _, id) in places {
            found.extend(waiting_work::item(rows, tenant, id)?);
        }
        if found.len() >= limit {
            break;
        }
    }
    Ok(found)
}

/// An operator takes work out of its queue; the item as it was.
pub fn cancel(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    id: WaitingId,
) -> Result<Option<Waiting>, Abort> {
    let Some(item) = waiting_work::item(tx, tenant, id)?.filter(|item| item.recipient_pool == recipient_pool)
    else {
        return Ok(None);
    };
    waiting_work::leave(tx, tenant, &item)?;
    tx.tell("routing.waiting", id, item.record_version, Some("cancelled"));
    steps::over(tx, tenant, item.work)?;
    Ok(Some(item))
}

/// A recipient pool goes: what waits in it, or is offered by it, is routed by the rules of the tenant. How much that was.
pub fn reroute_all(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
) -> Result<usize, StoreError> {
    let mut moved = 0;
    for item in items(tx, tenant, recipient_pool, None, usize::MAX)? {
        let after = Waiting {
            kind: WaitKind::Again,
            lineage: Lineage {
                entry: None,
                ..item.lineage.clone()
            },
            record_version: item.record_version + 1,
            ..item.clone()
        };
        waiting_work::replace(tx, tenant, &item, &after)?;
        moved += 1;
    }
    for id in offers::of_pool(tx, tenant, recipient_pool, usize::MAX)? {
        if let Some(offer) = offers::offer(tx, tenant, id)? {
            let now = Micros::from(tx.now().wall);
            offers::put(
                tx,
                tenant,
                Some(&offer),
                &offer.closed(now, "its pool was removed"),
            )?;
            let lineage = Lineage {
                entry: None,
                ..offer.lineage.clone()
            };
            anew(tx, tenant, of_offer(&offer, lineage, now), "its pool was removed")?;
            moved += 1;
        }
    }
    routing_live::stir(tx, tenant, recipient_pool, "its pool was removed")?;
    Ok(moved)
}

/// An offer as work that is routed anew.
pub(super) fn of_offer(offer: &Offer, lineage: Lineage, now: Micros) -> Waiting {
    Waiting {
        id: WaitingId::fresh(),
        work: offer.work,
        recipient_pool: lineage.entry.unwrap_or(offer.recipient_pool),
        priority: offer.priority,
        enqueued_at: offer.offered_at,
        expires_at: now,
        kind: WaitKind::Again,
        decision: offer.decision,
        hop_since: now,
        trail: lineage.trail.clone(),
        wake_at: None,
        sla_due_at: None,
        histogram: Vec::new(),
        lineage,
        record_version: 0,
    }
}

/// What waits in a recipient pool that goes, waits in another one from now on. How much that was.
pub fn drain_to(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    from: RecipientPoolId,
    to: RecipientPoolId,
) -> Result<usize, StoreError> {
    let all = items(tx, tenant, from, None, usize::MAX)?;
    for item in &all {
        waiting_work::leave(tx, tenant, item)?;
        let moved = Waiting {
            id: WaitingId::fresh(),
            recipient_pool: to,
            kind: WaitKind::Again,
            trail: Vec::new(),
            wake_at: None,
            sla_due_at: None,
            histogram: Vec::new(),
            lineage: Lineage {
                entry: Some(to),
                ..item.lineage.clone()
            },
            record_version: 0,
            ..item.clone()
        };
        anew(tx, tenant, moved, "its pool was removed")?;
    }
    Ok(all.len())
}

/// What is offered in a claim queue that goes, waits in a recipient pool from now on. How much that was.
pub fn drain_offers_to(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    queue: ClaimQueueId,
    to: RecipientPoolId,
) -> Result<usize, StoreError> {
    let now = Micros::from(tx.now().wall);
    let all = offers::in_order(tx, tenant, queue, None, usize::MAX)?;
    for (_, _, id) in &all {
        let Some(offer) = offers::offer(tx, tenant, *id)? else {
            continue;
        };
        let after = offer.closed(now, "its claim queue was removed");
        offers::put(tx, tenant, Some(&offer), &after)?;
        tx.tell("routing.offer", after.id, after.record_version, Some("closed"));
        let lineage = Lineage {
            entry: Some(to),
            trail: Vec::new(),
            ..offer.lineage.clone()
        };
        anew(
            tx,
            tenant,
            of_offer(&offer, lineage, now),
            "its claim queue was removed",
        )?;
    }
    Ok(all.len())
}

/// Rows of work that one page of a list shows at most.
pub const PAGE_MAX: usize = limits::PAGE_MAX;
