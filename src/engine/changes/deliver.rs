//! Deliveries of reports: which are due, whose each is, what became of a try, and the end of old ones.
//!
//! A delivery belongs to the daemon that took it, until it is settled, that daemon is dead, or its time is over. Somebody
//! who took too long may still deliver: at least once is what is promised.

use crate::domain::report::{Delivery, Effect, EffectState};
use crate::domain::slots::claim::ClockId;
use crate::store::rows::{Delivering, EffectDueRow};
use crate::store::tables::{EFFECT_DECIDED, EFFECT_DUE, RUNS};
use crate::store::{Abort, Rows, StoreError, Tx, effects};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What a look at the deliveries finds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Due {
    /// What is due, the longest due first, with its `seq`.
    pub now: Vec<(u64, EffectDueRow)>,
    /// When the next one is that is not due yet.
    pub next: Option<Millis>,
}

/// What is due at `now`.
pub fn due(rows: &mut impl Rows, now: Millis) -> Result<Due, StoreError> {
    let mut due = Due::default();
    // What waits is bounded, and a receiver that hangs must not hide the others behind it.
    for each in rows.scan_each(&EFFECT_DUE, &(TENANT,), None, usize::MAX)? {
        let Ok(((_, at, seq), row)) = each.row else {
            continue;
        };
        if at > now {
            due.next = Some(at);
            break;
        }
        due.now.push((seq, row));
    }
    Ok(due)
}

/// A wish to deliver one report.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taking {
    /// The report.
    pub seq: u64,
    /// The fence under which it was somebody's when this daemon judged that it may have it; `None`: it was nobody's.
    pub seen: Option<u64>,
    /// For how long it is to be this daemon's.
    pub hold_ms: u64,
}

/// Takes deliveries; the fence of each, or `None` for one that is decided, put off, or somebody else's by now.
pub fn take(
    tx: &mut Tx<'_>,
    node: &NodeName,
    clock: &ClockId,
    wishes: &[Taking],
) -> Result<Vec<Option<u64>>, Abort> {
    let mut fences = Vec::with_capacity(wishes.len());
    for wish in wishes {
        let now = tx.now();
        let effect = effects::by_seq(tx, wish.seq)?;
        let is_due = effect.is_some_and(
            |effect| matches!(effect.state, EffectState::Waiting { due_at, .. } if due_at <= now.wall),
        );
        let held = effects::delivering(tx, wish.seq)?.map(|row| row.fence);
        if !is_due || held != wish.seen {
            fences.push(None);
            continue;
        }
        let fence = tx.next_number("next_fence")?;
        let row = Delivering {
            node: node.clone(),
            fence,
            clock: clock.clone(),
            since: now.boot,
            hold_ms: wish.hold_ms,
        };
        effects::deliver_by(tx, wish.seq, &row)?;
        fences.push(Some(fence));
    }
    Ok(fences)
}

/// Writes what became of a try; the effect as it is now, or `None` if it is gone, was decided before, or is somebody
/// else's by now. What was delivered is delivered, whoever else is at it.
pub fn settle(tx: &mut Tx<'_>, seq: u64, fence: u64, delivery: &Delivery) -> Result<Option<Effect>, Abort> {
    let Some(effect) = effects::by_seq(tx, seq)? else {
        return Ok(None);
    };
    if !matches!(effect.state, EffectState::Waiting { .. }) {
        return Ok(None);
    }
    let is_holder = effects::delivering(tx, seq)?.is_some_and(|row| row.fence == fence);
    if !is_holder && *delivery != Delivery::Done {
        return Ok(None);
    }
    let after = effect.after(delivery, tx.now().wall);
    let shown_with = match effect.run {
        Some(run) => tx.has(&RUNS, &(TENANT, run))?,
        None => false,
    };
    match &after.state {
        // Nobody could look at it.
        EffectState::Delivered { .. } if !shown_with => effects::forget(tx, &effect)?,
        EffectState::Delivered { .. } | EffectState::Waiting { .. } => effects::replace(tx, &effect, &after)?,
        EffectState::Dead { reason, .. } => {
            effects::replace(tx, &effect, &after)?;
            tx.tell("report.dead", &effect.job, 0, Some(reason));
        }
    }
    Ok(Some(after))
}

/// Removes reports that were decided before `oldest_kept`, a slice at a time; true if there may be more.
pub fn sweep(tx: &mut Tx<'_>, oldest_kept: Millis) -> Result<bool, Abort> {
    let rows = tx.scan(&EFFECT_DECIDED, &(TENANT,), None, limits::MAINTENANCE_ROWS_MAX)?;
    let mut removed = 0;
    for ((_, _, seq), _) in rows.into_iter().take_while(|((_, at, _), _)| *at < oldest_kept) {
        if let Some(effect) = effects::by_seq(tx, seq)? {
            effects::forget(tx, &effect)?;
        }
        removed += 1;
    }
    Ok(removed == limits::MAINTENANCE_ROWS_MAX)
}
