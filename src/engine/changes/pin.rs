//! Runs that are kept until somebody says otherwise: neither they nor their logs are removed by retention.

use crate::store::rows::Pin;
use crate::store::tables::PINS;
use crate::store::{Abort, Rows, Tx, runs};
use crate::words::ids::{RunId, TenantId};

const TENANT: TenantId = TenantId::DEFAULT;

/// What became of a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pinned {
    /// It is so now, or was before; the version of the run.
    Now(u64),
    /// There is no such run.
    NotFound,
}

/// Keeps a run, or does so no longer. A second pin keeps the first one's date and word.
pub fn pin(tx: &mut Tx<'_>, id: RunId, wanted: Option<(&str, &str)>) -> Result<Pinned, Abort> {
    let Some(run) = runs::by_id(tx, id)? else {
        return Ok(Pinned::NotFound);
    };
    let key = (TENANT, id);
    if tx.has(&PINS, &key)? == wanted.is_some() {
        return Ok(Pinned::Now(run.record_version));
    }
    match wanted {
        Some((by, reason)) => {
            let pin = Pin {
                at: tx.now().wall,
                by: by.to_owned(),
                reason: reason.to_owned(),
            };
            tx.put(&PINS, &key, &pin)?;
        }
        None => drop(tx.remove(&PINS, &key)?),
    }
    // What is shown of the run has changed, so its version moves.
    let mut after = run.clone();
    after.record_version += 1;
    runs::replace(tx, &run, &after)?;
    Ok(Pinned::Now(after.record_version))
}
