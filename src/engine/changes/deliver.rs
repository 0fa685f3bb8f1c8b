//! Deliveries of reports: which are due, what became of a try, and the end of old ones.

use crate::domain::report::{Delivery, Effect, EffectState};
use crate::store::rows::EffectDueRow;
use crate::store::tables::{EFFECT_DECIDED, EFFECT_DUE, RUNS};
use crate::store::{Abort, Rows, StoreError, Tx, effects};
use crate::words::ids::TenantId;
use crate::words::limits;
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

/// Writes what became of a try; the effect as it is now, or `None` if it is gone or was decided before.
pub fn settle(tx: &mut Tx<'_>, seq: u64, delivery: &Delivery) -> Result<Option<Effect>, Abort> {
    let Some(effect) = effects::by_seq(tx, seq)? else {
        return Ok(None);
    };
    if !matches!(effect.state, EffectState::Waiting { .. }) {
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
