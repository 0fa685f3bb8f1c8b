//! Runs that go, in slices: the header goes first, with everything by which a run is found, and from then on there is no such
//! run. What belonged to it follows bit by bit, so that a run of ten thousand steps never holds the writer for long; a row
//! among the removals says that it is not an orphan.

use super::error::StoreError;
use super::keys::Key;
use super::rows::Present;
use super::runs::TENANT;
use super::table::Rows;
use super::tables::{
    ACTIVE_RUNS, ATTEMPTS, DEAD_STEPS, FACTS, HISTORY, JOB_RUNS, PINS, POISONED_RUNS, REMOVALS, RUNS, STEPS,
    VALUES,
};
use super::tx::Tx;
use crate::words::ids::RunId;
use crate::words::names::JobName;

/// Takes an ended run away, and as many of its rows as `budget` has; false if it lives, is pinned, or is unknown.
pub fn begin(tx: &mut Tx<'_>, job: &JobName, id: RunId, budget: &mut usize) -> Result<bool, StoreError> {
    if tx.has(&ACTIVE_RUNS, &(TENANT, job.clone(), id))? || tx.has(&PINS, &(TENANT, id))? {
        return Ok(false);
    }
    super::effects::forget_decided(tx, id)?;
    tx.remove(&RUNS, &(TENANT, id))?;
    tx.remove(&POISONED_RUNS, &(TENANT, id))?;
    let existed = tx.remove(&JOB_RUNS, &(TENANT, job.clone(), id))?;
    *budget = budget.saturating_sub(4);
    if existed && !clear(tx, id, budget)? {
        tx.put(&REMOVALS, &(TENANT, id), &Present)?;
    }
    Ok(existed)
}

/// True while rows of runs that went are left.
pub fn is_under_way(rows: &mut impl Rows) -> Result<bool, StoreError> {
    Ok(!rows
        .raw_scan(REMOVALS.index, &(TENANT,).encode(), None, false, 1)?
        .is_empty())
}

/// Goes on where earlier slices ended; false if the budget was not enough for all of it.
pub fn go_on(tx: &mut Tx<'_>, budget: &mut usize) -> Result<bool, StoreError> {
    loop {
        let next = tx.scan(&REMOVALS, &(TENANT,), None, 1)?;
        let Some(((_, id), _)) = next.into_iter().next() else {
            return Ok(true);
        };
        if !clear(tx, id, budget)? {
            return Ok(false);
        }
        tx.remove(&REMOVALS, &(TENANT, id))?;
    }
}

/// Removes rows of a run that went, readable or not; true when none is left.
fn clear(tx: &mut Tx<'_>, id: RunId, budget: &mut usize) -> Result<bool, StoreError> {
    let prefix = (TENANT, id).encode();
    // Facts first: the coordinator looks at every run that has one.
    let tables = [
        FACTS.index,
        DEAD_STEPS.index,
        STEPS.index,
        ATTEMPTS.index,
        VALUES.index,
        HISTORY.index,
    ];
    for table in tables {
        let rows = tx.raw_scan(table, &prefix, None, false, *budget + 1)?;
        for (key, _) in rows.iter().take(*budget) {
            tx.remove_key(table, key)?;
        }
        if rows.len() > *budget {
            *budget = 0;
            return Ok(false);
        }
        *budget -= rows.len();
    }
    Ok(true)
}
