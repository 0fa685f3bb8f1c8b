//! The audit: a row for each change that somebody asked for, in the transaction of the change itself.

use crate::store::access::{self, AuditRow};
use crate::store::tables::AUDIT;
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::{KeyId, TenantId};
use crate::words::limits;
use crate::words::time::Millis;

/// Who asks for a change, and for which one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct By {
    /// Whose things are changed.
    pub tenant: TenantId,
    /// The principal.
    pub who: String,
    /// Its key, if it is one.
    pub key: Option<KeyId>,
    /// The request, as the log knows it.
    pub request: String,
    /// The operation, as the API's document calls it.
    pub what: String,
    /// The path of the thing.
    pub thing: String,
}

/// Writes that `by` has changed `thing` (its own, unless another is named) from one version to another.
pub fn write(
    tx: &mut Tx<'_>,
    by: &By,
    thing: Option<&str>,
    before: Option<&str>,
    after: Option<&str>,
) -> Result<(), StoreError> {
    let short = |text: &str| {
        text.chars()
            .take(limits::AUDIT_TEXT_CHARS_MAX)
            .collect::<String>()
    };
    let row = AuditRow {
        at: tx.now().wall,
        who: by.who.clone(),
        key: by.key,
        request: by.request.clone(),
        what: by.what.clone(),
        thing: short(thing.unwrap_or(&by.thing)),
        before: before.map(short),
        after: after.map(short),
    };
    let number = tx.next_number("next_audit")?;
    tx.put(&AUDIT, &(by.tenant, number), &row)
}

/// Removes a slice of the rows of each tenant that are older than `oldest_kept`, or are more than `count`; true if there may be
/// more of them.
pub fn sweep(tx: &mut Tx<'_>, oldest_kept: Millis, count: u64) -> Result<bool, Abort> {
    let mut more = false;
    for (tenant, _) in access::tenants(tx)? {
        let newest = tx.scan_back(&AUDIT, &(tenant,), None, 1)?;
        let newest = newest.first().map_or(0, |((_, number), _)| *number);
        let rows = tx.scan(&AUDIT, &(tenant,), None, limits::MAINTENANCE_ROWS_MAX)?;
        let goes = |number: u64, at: Millis| at < oldest_kept || newest.saturating_sub(number) >= count;
        let mut removed = 0;
        for (key, _) in rows.iter().take_while(|((_, number), row)| goes(*number, row.at)) {
            tx.remove(&AUDIT, key)?;
            removed += 1;
        }
        more |= removed == limits::MAINTENANCE_ROWS_MAX;
    }
    Ok(more)
}
