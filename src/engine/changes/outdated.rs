//! Waiting entries whose definition was changed, disabled, removed or moved to another slot pool (T5). A head is judged so at
//! each pass anyway; after a load all of them are, so that nobody waits behind what will never run.

use std::collections::BTreeMap;

use crate::domain::slots::entry::{EntryEvent, EntryState, reason};
use crate::engine::changes::{advance, head};
use crate::store::rows::PublishedJob;
use crate::store::tables::{PUBLISHED_JOBS, SLOT_WAITING};
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
        if !head::is_current(current, &entry) {
            found.push(row.seq);
        }
    }
    Ok(found)
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
        if !waits || head::is_current(published.as_ref(), &entry) {
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
