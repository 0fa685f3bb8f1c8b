//! What becomes of assignments: accepted, renewed, completed, returned, rejected, expired, released. Whatever ends one gives its
//! place back, and puts the work where it is routed anew, in the same commit.

use super::{steps, waiting};
use crate::domain::routing::assignment::{Assignment, EndKind, Lineage, Refusal};
use crate::domain::routing::candidate::Forgetting;
use crate::domain::routing::objects::RecipientPool;
use crate::domain::routing::pipeline::{self, Options, Pipeline};
use crate::store::routing_live::{self, Lookup};
use crate::store::tables::LEARNED;
use crate::store::{Abort, Rows, StoreError, Tx, routing_objects, shadows};
use crate::words::ids::{AssignmentId, RecipientId, TenantId};
use crate::words::time::Micros;

/// Who says what no person said.
pub const DUCTOR: &str = "ductor";

/// What somebody does with an assignment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Act {
    /// They work on it.
    Accept,
    /// They are alive.
    Renew,
    /// It is done.
    Complete {
        /// What it was worth: 0 to 1, in millionths.
        value_micro: Option<u32>,
        /// JSON text.
        result: Option<String>,
    },
    /// They give it back.
    Return {
        /// Why.
        reason: String,
        /// Somebody else is to have it.
        reroute: bool,
    },
    /// They refuse it.
    Reject {
        /// Why.
        reason: String,
    },
}

/// What became of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Acted {
    /// The assignment as it is now.
    Done(Box<Assignment>),
    /// There is none of that id.
    NotFound,
    /// It does not apply.
    Refused(Refusal),
}

/// Somebody does something with an assignment.
pub fn act(tx: &mut Tx<'_>, tenant: TenantId, id: AssignmentId, act: &Act, by: &str) -> Result<Acted, Abort> {
    let now = Micros::from(tx.now().wall);
    let Some(before) = routing_live::assignment(tx, tenant, id)? else {
        return Ok(Acted::NotFound);
    };
    let (after, reroute) = match act {
        Act::Accept => (before.accept(now), false),
        Act::Renew => (before.renew(now), false),
        Act::Complete { value_micro, result } => {
            (before.complete(now, by, *value_micro, result.clone()), false)
        }
        Act::Return { reason, reroute } => (before.give_back(now, by, reason), *reroute),
        Act::Reject { reason } => (before.reject(now, by, reason), true),
    };
    match after {
        Ok(after) => {
            move_on(tx, tenant, &before, &after, reroute)?;
            let is_over = after.end.is_some() && !reroute;
            if is_over && !is_held_by_others(tx, tenant, &after)? {
                steps::over(tx, tenant, after.work)?;
            }
            Ok(Acted::Done(Box::new(after)))
        }
        Err(refusal) => Ok(Acted::Refused(refusal)),
    }
}

/// Writes what became of an assignment and what follows from it.
pub(super) fn move_on(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: &Assignment,
    after: &Assignment,
    reroute: bool,
) -> Result<(), StoreError> {
    routing_live::replace(tx, tenant, before, after)?;
    tx.tell("routing.assignment", after.id, 0, Some(after.state.word()));
    let Some(end) = after.end.as_ref().filter(|_| before.state.is_live()) else {
        return Ok(());
    };
    if end.kind == EndKind::Completed {
        learn(tx, tenant, after, end.at)?;
        if after.value_micro.is_some() {
            shadows::pend_value(tx, tenant, after.decision)?;
        }
        steps::over(tx, tenant, after.work)?;
    }
    if reroute && !is_held_by_others(tx, tenant, after)? {
        waiting::again(tx, tenant, after, after.lineage.after(after), "given back")?;
    }
    freed(tx, tenant, after.recipient, "capacity freed")
}

/// Work that was given to several comes back only when nobody has it any more.
fn is_held_by_others(
    rows: &mut impl Rows,
    tenant: TenantId,
    assignment: &Assignment,
) -> Result<bool, StoreError> {
    let of_decision = routing_live::by(
        rows,
        tenant,
        (Lookup::Decision, assignment.decision.0),
        usize::MAX,
    )?;
    for id in of_decision.into_iter().filter(|id| *id != assignment.id) {
        if routing_live::assignment(rows, tenant, id)?.is_some_and(|other| other.state.is_live()) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A recipient may have room, or be there: what waits in its recipient pools is gone through.
pub fn freed(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId, why: &str) -> Result<(), StoreError> {
    let Some(recipient) = routing_objects::recipient(tx, tenant, recipient)? else {
        return Ok(());
    };
    for recipient_pool in recipient.members_of {
        routing_live::stir(tx, tenant, recipient_pool, why)?;
    }
    Ok(())
}

/// What a completion teaches of its recipient.
fn learn(tx: &mut Tx<'_>, tenant: TenantId, done: &Assignment, now: Micros) -> Result<(), StoreError> {
    let key = (tenant, done.recipient_pool, done.recipient);
    let recipient_pool = routing_objects::recipient_pool(tx, tenant, done.recipient_pool)?;
    let forgetting = recipient_pool.as_ref().map(forgetting).unwrap_or_default();
    let mut learned = tx.get(&LEARNED, &key)?.unwrap_or_default();
    let value = done.value_micro.map(|value| f64::from(value) / 1_000_000.0);
    learned.ended(now, now.since(done.created_at), value, forgetting);
    tx.put(&LEARNED, &key, &learned)
}

/// How fast a recipient pool forgets what it has learned: as its own strategy says.
fn forgetting(recipient_pool: &RecipientPool) -> Forgetting {
    let strategy = recipient_pool.strategy.as_deref();
    let pipeline = pipeline::effective(&recipient_pool.config, strategy, None, &Options::new());
    pipeline.as_ref().map(Pipeline::forgetting).unwrap_or_default()
}

/// Ends everything that a recipient has, because it goes: the work is routed anew. How many there were.
pub fn release(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId) -> Result<usize, StoreError> {
    let now = Micros::from(tx.now().wall);
    let held = routing_live::by(tx, tenant, (Lookup::LiveOfRecipient, recipient.0), usize::MAX)?;
    for id in &held {
        let Some(before) = routing_live::assignment(tx, tenant, *id)? else {
            continue;
        };
        if let Ok(after) = before.expire(now, EndKind::Released, DUCTOR, "the recipient was removed") {
            move_on(tx, tenant, &before, &after, true)?;
        }
    }
    Ok(held.len())
}

/// Whether a recipient has assignments that take a place.
pub fn has_open(rows: &mut impl Rows, tenant: TenantId, recipient: RecipientId) -> Result<bool, StoreError> {
    let lookup = (Lookup::LiveOfRecipient, recipient.0);
    Ok(!routing_live::by(rows, tenant, lookup, 1)?.is_empty())
}

/// A clock has run out.
pub(super) fn expire(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: &Assignment,
    (kind, reason): (EndKind, &str),
    lineage: Option<Lineage>,
) -> Result<(), StoreError> {
    let now = Micros::from(tx.now().wall);
    let Ok(after) = before.expire(now, kind, DUCTOR, reason) else {
        return Ok(());
    };
    move_on(tx, tenant, before, &after, false)?;
    if is_held_by_others(tx, tenant, &after)? {
        return Ok(());
    }
    match lineage {
        Some(lineage) => waiting::again(tx, tenant, &after, lineage, reason),
        None => steps::over(tx, tenant, after.work),
    }
}
