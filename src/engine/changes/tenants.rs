//! Tenants.

use crate::store::access::{self, TenantRow};
use crate::store::tables::TENANTS;
use crate::store::{Abort, Tx};
use crate::words::ids::TenantId;
use crate::words::limits;

/// What became of a new tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there, under this number.
    Done(TenantId),
    /// Another one has the name.
    NameTaken,
    /// There are as many as there may be.
    Full,
}

/// Makes a tenant. Its number is never given again.
pub fn create(tx: &mut Tx<'_>, row: &TenantRow) -> Result<Created, Abort> {
    let known = access::tenants(tx)?;
    if known.iter().any(|(_, name)| *name == row.name) {
        return Ok(Created::NameTaken);
    }
    if known.len() >= limits::TENANTS_MAX {
        return Ok(Created::Full);
    }
    let number = tx.next_number("next_tenant")?;
    let id = TenantId(u32::try_from(number).unwrap_or(u32::MAX));
    tx.put(&TENANTS, &(id,), row)?;
    access::changed(tx)?;
    Ok(Created::Done(id))
}
