//! Waiting entries whose definition was changed, disabled, removed or moved to another slot pool (T5). A head is judged so at
//! each pass anyway; after a load all of them are, so that nobody waits behind what will never run.

use std::collections::BTreeMap;

use crate::domain::slots::entry::{EntryEvent, EntryState, SlotEntry, reason};
use crate::engine::changes::{advance, head};
use crate::store::rows::PublishedJob;
use crate::store::tables::{PUBLISHED_JOBS, PUBLISHED_SLOT_POOLS, SLOT_WAITING};
use crate::store::{Abort, Rows, StoreError, Tx, entries};
use crate::words::ids::TenantId;
use crate::words::names::JobName;

const TENANT: TenantId = TenantId::DEFAULT;

/// All of them, by seq. Rows that cannot be read are left to the pass, which reports them.
pub fn find(rows: &mut impl Rows) -> Result<Vec<u64>, StoreError> {
    let mut published: BTreeMap<JobName, Option<PublishedJob>> = BTreeMap::new();
    let mut found = Vec::new();
    for each in rows.scan_each(&SLOT_WAITING, &(TENANT,), None, usize::MAX)? {
        let Ok((_, row)) = each.row else { continue };
        if !published.contains_key(&row.job) {
            let current = rows.get(&PUBLISHED_JOBS, &(TENANT, row.job.clone()))?;
            published.insert(row.job.clone(), current);
        }
        let current = published.get(&row.job).and_then(Option::as_ref);
        let Ok(Some(entry)) = entries::by_seq(rows, row.seq) else {
            continue;
        };
        if !head::is_current(current, &entry) || has_no_slot_pool(rows, &entry)? {
            found.push(row.seq);
        }
    }
    Ok(found)
}

/// True for an entry of a graph's step whose slot pool no load has published: it would wait for ever.
fn has_no_slot_pool(rows: &mut impl Rows, entry: &SlotEntry) -> Result<bool, StoreError> {
    if !entry.kind.is_of_graph() {
        return Ok(false);
    }
    Ok(!rows.has(&PUBLISHED_SLOT_POOLS, &(TENANT, entry.slot_pool.clone()))?)
}

/// Withdraws those that still wait and are still outdated; how many.
pub fn withdraw(tx: &mut Tx<'_>, seqs: &[u64]) -> Result<usize, Abort> {
    let mut ended = 0;
    for seq in seqs {
        let Ok(Some(entry)) = entries::by_seq(tx, *seq) else {
            continue;
        };
        let published = tx.get(&PUBLISHED_JOBS, &(TENANT, entry.job.clone()))?;
        let waits = matches!(entry.state, EntryState::Queued { .. });
        let is_current = head::is_current(published.as_ref(), &entry) && !has_no_slot_pool(tx, &entry)?;
        if !waits || is_current {
            continue;
        }
        match advance::withdraw(tx, &entry, &EntryEvent::Withdraw(reason::DEFINITION_GONE), false) {
            Ok(_) => ended += 1,
            // Rows of its slot pool cannot be read, and nothing was written: the others go on.
            Err(Abort(error)) if error.is_row_fault() => {}
            Err(abort) => return Err(abort),
        }
    }
    Ok(ended)
}
