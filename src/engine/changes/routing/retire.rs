//! Decisions that are old enough go, with their assignments, snapshots and work.

use crate::store::keys::Key;
use crate::store::tables::DECISIONS;
use crate::store::{Abort, Rows, StoreError, Tx, decisions};
use crate::words::ids::{DecisionId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

/// Old decisions of all tenants, the oldest of each first: those made before `oldest_kept`.
pub fn old(
    rows: &mut impl Rows,
    oldest_kept: Micros,
    behind: Option<(TenantId, DecisionId)>,
) -> Result<Vec<(TenantId, DecisionId)>, StoreError> {
    let mut found = Vec::new();
    let mut behind = behind;
    while found.len() < limits::DECISIONS_RETIRED_MAX {
        let page = rows.scan_each(
            &DECISIONS,
            &(),
            behind.map(|key| key.encode()).as_deref(),
            limits::DECISIONS_RETIRED_MAX - found.len(),
        )?;
        let Some(last) = page.last() else { break };
        let Some(last) = <(TenantId, DecisionId) as Key>::decode(&last.key) else {
            break;
        };
        let mut is_over = None;
        for each in page {
            let Ok((key, row)) = each.row else { continue };
            if row.at < oldest_kept {
                found.push(key);
            } else {
                // Ids rise with time: the rest of this tenant is younger.
                is_over = Some((key.0, DecisionId([u8::MAX; 16])));
                break;
            }
        }
        behind = Some(is_over.unwrap_or(last));
    }
    Ok(found)
}

/// Removes these decisions; what is under way stays. How many went.
pub fn forget(tx: &mut Tx<'_>, old: &[(TenantId, DecisionId)]) -> Result<usize, Abort> {
    let mut gone = 0;
    for (tenant, id) in old {
        if let Some(row) = decisions::decision(tx, *tenant, *id)? {
            gone += usize::from(decisions::forget(tx, *tenant, *id, &row)?);
        }
    }
    Ok(gone)
}
