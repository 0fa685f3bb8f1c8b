//! The instants of live routing: which are due, and what each does. Whoever comes first fires one; for everybody else its owner
//! no longer waits for it.

use super::assignments::{self, DUCTOR};
use super::{alerts, closing, waiting};
use crate::domain::routing::assignment::{Assignment, EndKind, Lineage};
use crate::domain::routing::objects::Sla;
use crate::domain::routing::offer::Offer;
use crate::domain::routing::pass::Cause;
use crate::domain::routing::sla::{Breached, SlaKind};
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::store::keys::DigestKey;
use crate::store::live_rows::{TimerKind, TimerRow};
use crate::store::tables::ROUTING_TIMERS;
use crate::store::{
    Abort, Rows, StoreError, Tx, memory, offers, routing_live, routing_objects, waiting_work,
};
use crate::words::ids::{AssignmentId, RecipientPoolId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// One timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timer {
    /// Whose.
    pub tenant: TenantId,
    /// When.
    pub at: Micros,
    /// What for.
    pub kind: TimerKind,
    /// Whose it is: an assignment, an item, an offer, a digest.
    pub of: [u8; 16],
    /// In which recipient pool.
    pub recipient_pool: RecipientPoolId,
}

/// What a look at the timers finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// Those whose time has come, oldest first for each tenant.
    pub now: Vec<Timer>,
    /// When the next one is that is not due yet.
    pub next: Option<Micros>,
}

/// The timers of all tenants.
pub fn due(rows: &mut impl Rows, now: Micros) -> Result<Due, StoreError> {
    let mut due = Due::default();
    let mut behind = None;
    while let Some(((tenant, ..), _)) = rows
        .scan(&ROUTING_TIMERS, &(), behind.as_ref(), 1)?
        .into_iter()
        .next()
    {
        let most = limits::ROUTING_ITEMS_PER_CHANGE_MAX.saturating_sub(due.now.len()) + 1;
        for ((_, at, kind, of), row) in rows.scan(&ROUTING_TIMERS, &(tenant,), None, most)? {
            if at > now || due.now.len() >= limits::ROUTING_ITEMS_PER_CHANGE_MAX {
                due.next = Some(due.next.map_or(at, |next| next.min(at)));
                break;
            }
            due.now.extend(read(tenant, (at, kind, of), row));
        }
        behind = Some((tenant, Micros(i64::MAX), u8::MAX, DigestKey([u8::MAX; 16])));
    }
    Ok(due)
}

fn read(tenant: TenantId, (at, kind, of): (Micros, u8, DigestKey), row: TimerRow) -> Option<Timer> {
    Some(Timer {
        tenant,
        at,
        kind: TimerKind::of(kind)?,
        of: of.0,
        recipient_pool: row.recipient_pool,
    })
}

/// Fires these timers; how many had an owner that still waited for them.
pub fn fire(tx: &mut Tx<'_>, timers: &[Timer]) -> Result<usize, Abort> {
    let mut fired = 0;
    for timer in timers {
        let key = (timer.tenant, timer.at, timer.kind.number(), DigestKey(timer.of));
        if tx.has(&ROUTING_TIMERS, &key)? {
            fire_one(tx, timer)?;
            fired += 1;
        }
    }
    Ok(fired)
}

fn fire_one(tx: &mut Tx<'_>, timer: &Timer) -> Result<(), StoreError> {
    let tenant = timer.tenant;
    match timer.kind {
        TimerKind::Deadline | TimerKind::Response | TimerKind::Neglect => {
            let found = routing_live::assignment(tx, tenant, AssignmentId(timer.of))?;
            match found {
                Some(assignment) => of_assignment(tx, timer, &assignment),
                None => Ok(()),
            }
        }
        TimerKind::WaitEnds | TimerKind::Wake | TimerKind::QueueSla => {
            let found = waiting_work::item(tx, tenant, WaitingId(timer.of))?;
            match found {
                Some(item) => of_item(tx, timer, &item),
                None => Ok(()),
            }
        }
        TimerKind::OfferEnds | TimerKind::OfferSla => {
            let found = offers::offer(tx, tenant, WaitingId(timer.of))?;
            match found {
                Some(offer) => of_offer(tx, timer, &offer),
                None => Ok(()),
            }
        }
        TimerKind::Forget => memory::put_seen(tx, tenant, (timer.recipient_pool, DigestKey(timer.of)), None),
        TimerKind::ForgetHolder => {
            memory::put_holder(tx, tenant, (timer.recipient_pool, DigestKey(timer.of)), None)
        }
    }
}

fn sla_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
) -> Result<Option<Sla>, StoreError> {
    let found = routing_objects::recipient_pool(rows, tenant, recipient_pool)?;
    Ok(found.and_then(|found| found.config.sla))
}

/// The recipient pools that a hop from where an item waits may not enter again.
fn entered(item: &Waiting) -> Vec<RecipientPoolId> {
    let mut trail = item.trail.clone();
    trail.push(item.recipient_pool);
    trail
}

/// What goes on in the recipient pool of an escalation.
fn escalated(lineage: &Lineage, to: RecipientPoolId, trail: &[RecipientPoolId]) -> Lineage {
    Lineage {
        entry: Some(to),
        cause: Cause::Escalation,
        trail: trail.to_vec(),
        ..lineage.clone()
    }
}

fn of_assignment(tx: &mut Tx<'_>, timer: &Timer, assignment: &Assignment) -> Result<(), StoreError> {
    let (tenant, now) = (timer.tenant, Micros::from(tx.now().wall));
    match timer.kind {
        TimerKind::Response => {
            let sla = sla_of(tx, tenant, assignment.recipient_pool)?;
            let breached = Breached {
                kind: SlaKind::Response,
                due_at: timer.at,
                seen_at: now,
                work: assignment.work,
                recipient_pool: assignment.recipient_pool,
                decision: assignment.decision,
            };
            alerts::breached(tx, tenant, &breached, sla.as_ref())?;
            match sla.and_then(|sla| sla.escalation) {
                Some(to) => {
                    let lineage = escalated(&assignment.lineage.after(assignment), to, &assignment.trail);
                    let why = (EndKind::Escalated, "no response in time");
                    assignments::expire(tx, tenant, assignment, why, Some(lineage))
                }
                None => {
                    let after = Assignment {
                        response_due_at: None,
                        ..assignment.clone()
                    };
                    routing_live::replace(tx, tenant, assignment, &after)
                }
            }
        }
        TimerKind::Neglect => {
            let lineage = assignment.lineage.after(assignment);
            let offer = match assignment.claimed {
                Some(claimed) => offers::offer(tx, tenant, claimed.offer)?,
                None => None,
            };
            let why = (EndKind::Neglected, "claimed, and no response in time");
            match offer {
                // The queue has gone meanwhile: nobody would find it there.
                Some(offer) if !offers::has_queue(tx, tenant, &offer)? => {
                    offers::put(
                        tx,
                        tenant,
                        Some(&offer),
                        &offer.closed(now, "its claim queue was removed"),
                    )?;
                    assignments::expire(tx, tenant, assignment, why, Some(lineage))
                }
                Some(offer) => {
                    assignments::expire(tx, tenant, assignment, why, None)?;
                    let after = offer.neglected(lineage);
                    offers::put(tx, tenant, Some(&offer), &after)?;
                    tx.tell("routing.offer", after.id, after.record_version, Some("neglected"));
                    Ok(())
                }
                None => assignments::expire(tx, tenant, assignment, why, Some(lineage)),
            }
        }
        TimerKind::Deadline
        | TimerKind::WaitEnds
        | TimerKind::Wake
        | TimerKind::QueueSla
        | TimerKind::OfferEnds
        | TimerKind::OfferSla
        | TimerKind::Forget
        | TimerKind::ForgetHolder => {
            let why = (EndKind::Deadline, "its deadline has passed");
            let lineage = assignment.lineage.after(assignment);
            assignments::expire(tx, tenant, assignment, why, Some(lineage))
        }
    }
}

fn of_item(tx: &mut Tx<'_>, timer: &Timer, item: &Waiting) -> Result<(), StoreError> {
    let (tenant, now) = (timer.tenant, Micros::from(tx.now().wall));
    let next = |change: fn(&mut Waiting)| {
        let mut after = item.clone();
        after.record_version += 1;
        change(&mut after);
        after
    };
    match timer.kind {
        TimerKind::Wake => {
            waiting_work::replace(tx, tenant, item, &next(|after| after.wake_at = None))?;
            routing_live::stir(tx, tenant, item.recipient_pool, "time has passed").map(drop)
        }
        TimerKind::QueueSla => {
            let sla = sla_of(tx, tenant, item.recipient_pool)?;
            let breached = Breached {
                kind: SlaKind::Queue,
                due_at: timer.at,
                seen_at: now,
                work: item.work,
                recipient_pool: item.recipient_pool,
                decision: item.decision,
            };
            alerts::breached(tx, tenant, &breached, sla.as_ref())?;
            match sla.and_then(|sla| sla.escalation) {
                Some(to) => {
                    waiting_work::leave(tx, tenant, item)?;
                    let moved = Waiting {
                        recipient_pool: to,
                        kind: WaitKind::Again,
                        hop_since: now,
                        sla_due_at: None,
                        wake_at: None,
                        lineage: escalated(&item.lineage, to, &entered(item)),
                        record_version: item.record_version + 1,
                        ..item.clone()
                    };
                    waiting::anew(tx, tenant, moved, "escalated")
                }
                None => waiting_work::replace(tx, tenant, item, &next(|after| after.sla_due_at = None)),
            }
        }
        TimerKind::WaitEnds
        | TimerKind::Deadline
        | TimerKind::Response
        | TimerKind::Neglect
        | TimerKind::OfferEnds
        | TimerKind::OfferSla
        | TimerKind::Forget
        | TimerKind::ForgetHolder => match item.kind {
            WaitKind::Catchall { due_at, to } if due_at <= now && now < item.expires_at => {
                let mut after = next(|_| ());
                after.kind = WaitKind::Again;
                after.lineage.entry = Some(to);
                after.lineage.cause = Cause::Catchall;
                after.lineage.trail = entered(item);
                waiting_work::replace(tx, tenant, item, &after)?;
                routing_live::stir(tx, tenant, item.recipient_pool, "the catchall is due").map(drop)
            }
            WaitKind::Again | WaitKind::Queued | WaitKind::Catchall { .. } => {
                waiting_work::leave(tx, tenant, item)?;
                closing::expired(tx, tenant, item)
            }
        },
    }
}

fn of_offer(tx: &mut Tx<'_>, timer: &Timer, offer: &Offer) -> Result<(), StoreError> {
    let (tenant, now) = (timer.tenant, Micros::from(tx.now().wall));
    if timer.kind == TimerKind::OfferSla {
        let sla = sla_of(tx, tenant, offer.recipient_pool)?;
        let breached = Breached {
            kind: SlaKind::Queue,
            due_at: timer.at,
            seen_at: now,
            work: offer.work,
            recipient_pool: offer.recipient_pool,
            decision: offer.decision,
        };
        alerts::breached(tx, tenant, &breached, sla.as_ref())?;
        return match sla.and_then(|sla| sla.escalation) {
            Some(to) => {
                offers::put(tx, tenant, Some(offer), &offer.closed(now, "escalated"))?;
                let lineage = escalated(&offer.lineage, to, &offer.trail);
                waiting::anew(tx, tenant, waiting::of_offer(offer, lineage, now), "escalated")
            }
            None => {
                let after = Offer {
                    sla_due_at: None,
                    record_version: offer.record_version + 1,
                    ..offer.clone()
                };
                offers::put(tx, tenant, Some(offer), &after)
            }
        };
    }
    offers::put(tx, tenant, Some(offer), &offer.closed(now, "its time has passed"))?;
    tx.tell(
        "routing.offer",
        offer.id,
        offer.record_version + 1,
        Some("closed"),
    );
    closing::offer_over(tx, tenant, offer)
}

/// Who says what a clock said.
pub const BY: &str = DUCTOR;
