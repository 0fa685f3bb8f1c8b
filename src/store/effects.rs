//! The only writer of reports: each write brings all index rows of the effect along, and the counts.

use super::error::StoreError;
use super::rows::{Delivering, EffectDueRow, Number, Present};
use super::table::Rows;
use super::tables::{
    DELIVERING, EFFECT_COUNTS, EFFECT_DECIDED, EFFECT_DUE, EFFECTS, ROUTING_ALERTS, RUN_EFFECTS,
};
use super::tx::Tx;
use crate::domain::report::{Effect, EffectState, ReportTarget};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// The tenant of jobs.
pub const TENANT: TenantId = TenantId::DEFAULT;

/// Where an effect stands in the indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EffectIndex {
    /// In `effect_due`.
    Due(Millis),
    /// In `effect_decided`.
    Decided(Millis),
}

/// The index row that `effect` has, besides that of its run.
pub fn index_of(effect: &Effect) -> EffectIndex {
    match &effect.state {
        EffectState::Waiting { due_at, .. } => EffectIndex::Due(*due_at),
        EffectState::Delivered { at, .. } | EffectState::Dead { at, .. } => EffectIndex::Decided(*at),
    }
}

/// The row of `effect_due` for an effect that waits.
pub fn due_row(effect: &Effect) -> EffectDueRow {
    EffectDueRow {
        job: effect.job.clone(),
        target: effect.target,
    }
}

/// Under which word an effect is counted, if it is.
pub fn counted_as(effect: &Effect) -> Option<String> {
    match &effect.state {
        EffectState::Waiting { .. } => Some(count_word("waiting", effect.target)),
        EffectState::Dead { .. } => Some(count_word("dead", effect.target)),
        EffectState::Delivered { .. } => None,
    }
}

fn count_word(state: &str, target: ReportTarget) -> String {
    format!("{state} {}", target.word())
}

/// Reports that wait for receivers of this kind; of one job, or of all.
pub fn waiting_count(
    rows: &mut impl Rows,
    target: ReportTarget,
    job: Option<&JobName>,
) -> Result<u64, StoreError> {
    count(
        rows,
        &count_word("waiting", target),
        job.map_or("", JobName::as_str),
    )
}

/// True for a dead letter.
pub fn is_dead(effect: &Effect) -> bool {
    matches!(effect.state, EffectState::Dead { .. })
}

/// Dead letters of this kind.
pub fn dead_count(rows: &mut impl Rows, target: ReportTarget) -> Result<u64, StoreError> {
    count(rows, &count_word("dead", target), "")
}

fn count(rows: &mut impl Rows, word: &str, job: &str) -> Result<u64, StoreError> {
    let found = rows.get(&EFFECT_COUNTS, &(TENANT, word.to_owned(), job.to_owned()))?;
    Ok(found.map_or(0, |number| number.0))
}

/// Writes an effect that begins to exist; its `seq` is given here. Beyond its limits it is given up at once, and beyond
/// the limit of its run the oldest decided one goes.
pub fn insert(tx: &mut Tx<'_>, effect: Effect) -> Result<Effect, StoreError> {
    let mut effect = Effect {
        seq: tx.next_number("next_effect")?,
        ..effect
    };
    let limits = [
        (None, limits::EFFECTS_MAX, "reports wait"),
        (
            Some(&effect.job),
            limits::EFFECTS_OF_JOB_MAX,
            "reports of this job wait",
        ),
    ];
    let mut full = None;
    for (job, most, what) in limits {
        if waiting_count(tx, effect.target, job)? >= most {
            full = Some(format!("{most} {what} already"));
        }
    }
    if let Some(reason) = full {
        effect = effect.dead_at_birth(reason);
    }
    if let Some(run) = effect.run {
        make_room(tx, run)?;
    }
    put(tx, &effect)?;
    Ok(effect)
}

fn make_room(tx: &mut Tx<'_>, run: RunId) -> Result<(), StoreError> {
    let of_run = of_run(tx, run, limits::EFFECTS_OF_RUN_MAX)?;
    if of_run.len() < limits::EFFECTS_OF_RUN_MAX {
        return Ok(());
    }
    let oldest = of_run.iter().find(|effect| effect.decided_at().is_some());
    oldest.map_or(Ok(()), |oldest| forget(tx, oldest))
}

/// The reports of a run that can be read, oldest first.
pub fn of_run(rows: &mut impl Rows, run: RunId, limit: usize) -> Result<Vec<Effect>, StoreError> {
    let mut found = Vec::new();
    for ((_, _, seq), _) in rows.scan(&RUN_EFFECTS, &(TENANT, run), None, limit)? {
        match by_seq(rows, seq) {
            Ok(effect) => found.extend(effect),
            Err(error) if error.is_row_fault() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

/// One effect.
pub fn by_seq(rows: &mut impl Rows, seq: u64) -> Result<Option<Effect>, StoreError> {
    rows.get(&EFFECTS, &(TENANT, seq))
}

/// Replaces `before` by `after`.
pub fn replace(tx: &mut Tx<'_>, before: &Effect, after: &Effect) -> Result<(), StoreError> {
    assert_eq!(before.seq, after.seq, "an effect keeps its place in the table");
    leave(tx, before)?;
    put(tx, after)
}

/// Removes an effect.
pub fn forget(tx: &mut Tx<'_>, effect: &Effect) -> Result<(), StoreError> {
    leave(tx, effect)?;
    tx.remove(&EFFECTS, &(TENANT, effect.seq))?;
    tx.remove(&ROUTING_ALERTS, &(TENANT, effect.seq))?;
    if let Some(run) = effect.run {
        tx.remove(&RUN_EFFECTS, &(TENANT, run, effect.seq))?;
    }
    Ok(())
}

/// Removes the decided reports of a run that goes. What is owed stays: it stands on its own.
pub fn forget_decided(tx: &mut Tx<'_>, run: RunId) -> Result<(), StoreError> {
    for effect in of_run(tx, run, usize::MAX)? {
        if effect.decided_at().is_some() {
            forget(tx, &effect)?;
        }
    }
    Ok(())
}

/// Who delivers it now, if somebody does.
pub fn delivering(rows: &mut impl Rows, seq: u64) -> Result<Option<Delivering>, StoreError> {
    rows.get(&DELIVERING, &(TENANT, seq))
}

/// Makes the delivery of a waiting effect somebody's, until it is replaced or forgotten.
pub fn deliver_by(tx: &mut Tx<'_>, seq: u64, row: &Delivering) -> Result<(), StoreError> {
    tx.put(&DELIVERING, &(TENANT, seq), row)
}

fn put(tx: &mut Tx<'_>, effect: &Effect) -> Result<(), StoreError> {
    tx.put(&EFFECTS, &(TENANT, effect.seq), effect)?;
    match index_of(effect) {
        EffectIndex::Due(at) => tx.put(&EFFECT_DUE, &(TENANT, at, effect.seq), &due_row(effect))?,
        EffectIndex::Decided(at) => tx.put(&EFFECT_DECIDED, &(TENANT, at, effect.seq), &Present)?,
    }
    if let Some(run) = effect.run {
        tx.put(&RUN_EFFECTS, &(TENANT, run, effect.seq), &Present)?;
    }
    recount(tx, effect, true)
}

fn leave(tx: &mut Tx<'_>, effect: &Effect) -> Result<(), StoreError> {
    match index_of(effect) {
        EffectIndex::Due(at) => tx.remove(&EFFECT_DUE, &(TENANT, at, effect.seq))?,
        EffectIndex::Decided(at) => tx.remove(&EFFECT_DECIDED, &(TENANT, at, effect.seq))?,
    };
    tx.remove(&DELIVERING, &(TENANT, effect.seq))?;
    recount(tx, effect, false)
}

fn recount(tx: &mut Tx<'_>, effect: &Effect, more: bool) -> Result<(), StoreError> {
    let Some(word) = counted_as(effect) else {
        return Ok(());
    };
    for job in ["", effect.job.as_str()] {
        let key = (TENANT, word.clone(), job.to_owned());
        let before = tx.get(&EFFECT_COUNTS, &key)?.map_or(0, |number: Number| number.0);
        let after = if more {
            before + 1
        } else {
            before.saturating_sub(1)
        };
        if after == 0 {
            tx.remove(&EFFECT_COUNTS, &key)?;
        } else {
            tx.put(&EFFECT_COUNTS, &key, &Number(after))?;
        }
    }
    Ok(())
}
