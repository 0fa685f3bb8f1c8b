//! The only writer of the rows that say which runs of a definition and key hold a place, and which wait for one. They follow
//! from the headers of the runs.

use super::error::StoreError;
use super::graph_rows::{KeyHolder, KeyWaiter};
use super::runs::TENANT;
use super::table::Rows;
use super::tables::{KEY_COUNTS, KEY_HOLDERS, KEY_WAITERS};
use super::tx::Tx;
use crate::domain::workflow::graph::key_limit::{KeyCount, KeyPlace, KeyStand};
use crate::domain::workflow::run::Run;
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::JobName;

/// The place of a run that has not ended among those of its key.
pub fn place_of(run: &Run) -> Option<&KeyPlace> {
    let header = run.graph.as_deref().filter(|_| !run.state.is_terminal());
    header.and_then(|header| header.key_place.as_ref())
}

/// Brings the rows along.
pub fn put(tx: &mut Tx<'_>, before: Option<&Run>, after: &Run) -> Result<(), StoreError> {
    let (old, new) = (before.and_then(place_of), place_of(after));
    if old == new {
        return Ok(());
    }
    if let Some(old) = old {
        remove(tx, after, old)?;
    }
    if let Some(new) = new {
        insert(tx, after, new)?;
    }
    Ok(())
}

fn remove(tx: &mut Tx<'_>, run: &Run, place: &KeyPlace) -> Result<(), StoreError> {
    let (job, key) = (run.definition.clone(), place.key.clone());
    match place.stand {
        KeyStand::Holds | KeyStand::Leaves => {
            tx.remove(&KEY_HOLDERS, &(TENANT, job, key, run.id))?;
        }
        KeyStand::Waits { number, .. } => {
            tx.remove(&KEY_WAITERS, &(TENANT, job, key, number))?;
        }
    }
    let count = count(tx, &run.definition, &place.key)?.without(place.stand);
    put_count(tx, run, place, count)
}

fn insert(tx: &mut Tx<'_>, run: &Run, place: &KeyPlace) -> Result<(), StoreError> {
    let (job, key) = (run.definition.clone(), place.key.clone());
    match place.stand {
        KeyStand::Holds | KeyStand::Leaves => {
            let leaves = place.stand == KeyStand::Leaves;
            tx.put(&KEY_HOLDERS, &(TENANT, job, key, run.id), &KeyHolder { leaves })?;
        }
        KeyStand::Waits {
            number, replaceable, ..
        } => {
            let row = KeyWaiter {
                run: run.id,
                limit: place.limit,
                replaceable,
            };
            tx.put(&KEY_WAITERS, &(TENANT, job, key, number), &row)?;
        }
    }
    let count = count(tx, &run.definition, &place.key)?.with(place.stand);
    put_count(tx, run, place, count)
}

fn put_count(tx: &mut Tx<'_>, run: &Run, place: &KeyPlace, count: KeyCount) -> Result<(), StoreError> {
    let key = (TENANT, run.definition.clone(), place.key.clone());
    if count.is_empty() {
        tx.remove(&KEY_COUNTS, &key)?;
        return Ok(());
    }
    tx.put(&KEY_COUNTS, &key, &count)
}

/// The runs of a key, counted.
pub fn count(rows: &mut impl Rows, job: &JobName, key: &str) -> Result<KeyCount, StoreError> {
    let count = rows.get(&KEY_COUNTS, &(TENANT, job.clone(), key.to_owned()))?;
    Ok(count.unwrap_or_default())
}

/// The runs that hold a place of a key, oldest first.
pub fn holders(
    rows: &mut impl Rows,
    job: &JobName,
    key: &str,
    limit: usize,
) -> Result<Vec<(RunId, KeyHolder)>, StoreError> {
    let found = rows.scan(&KEY_HOLDERS, &(TENANT, job.clone(), key.to_owned()), None, limit)?;
    Ok(found
        .into_iter()
        .map(|((_, _, _, run), row)| (run, row))
        .collect())
}

/// The runs that wait for a place of a key, the next one first.
pub fn waiters(
    rows: &mut impl Rows,
    job: &JobName,
    key: &str,
    limit: usize,
) -> Result<Vec<(u64, KeyWaiter)>, StoreError> {
    let found = rows.scan(&KEY_WAITERS, &(TENANT, job.clone(), key.to_owned()), None, limit)?;
    Ok(found
        .into_iter()
        .map(|((_, _, _, number), row)| (number, row))
        .collect())
}

/// How many runs wait for a place of a key longer than this one, as far as they are counted.
pub fn ahead(rows: &mut impl Rows, job: &JobName, key: &str, number: u64) -> Result<u64, StoreError> {
    let all = waiters(rows, job, key, limits::KEY_WALK_MAX)?;
    Ok(all.iter().take_while(|(other, _)| *other < number).count() as u64)
}
