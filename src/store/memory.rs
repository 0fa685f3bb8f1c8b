//! What routing remembers for a while: who has the key of a sticky stage, which work was seen. Each has a timer that forgets it.

use super::error::StoreError;
use super::keys::DigestKey;
use super::live_rows::{SeenRow, TimerKind};
use super::routing_live::move_timers;
use super::table::Rows;
use super::tables::{SEEN_WORK, STICKY_HOLDERS};
use super::tx::Tx;
use crate::domain::routing::state::Holder;
use crate::words::ids::{RecipientPoolId, TenantId, digest_of_parts};

/// Under what work is known again.
pub fn seen_key(recipient_pool: RecipientPoolId, key: &str) -> DigestKey {
    DigestKey(digest_of_parts(&["seen", &recipient_pool.to_string(), key]))
}

/// Under what the holder of a key stands.
pub fn holder_key(recipient_pool: RecipientPoolId, stage: &str, key: &str) -> DigestKey {
    DigestKey(digest_of_parts(&[
        "sticky",
        &recipient_pool.to_string(),
        stage,
        key,
    ]))
}

/// The work that was seen under a key.
pub fn seen(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    key: &str,
) -> Result<Option<SeenRow>, StoreError> {
    rows.get(
        &SEEN_WORK,
        &(tenant, recipient_pool, seen_key(recipient_pool, key)),
    )
}

/// Who has a key.
pub fn holder(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    (stage, key): (&str, &str),
) -> Result<Option<Holder>, StoreError> {
    let digest = holder_key(recipient_pool, stage, key);
    rows.get(&STICKY_HOLDERS, &(tenant, recipient_pool, digest))
}

/// Remembers work; nothing for what is forgotten.
pub fn put_seen(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    (recipient_pool, digest): (RecipientPoolId, DigestKey),
    row: Option<&SeenRow>,
) -> Result<(), StoreError> {
    let key = (tenant, recipient_pool, digest);
    let before = tx.get(&SEEN_WORK, &key)?;
    match row {
        Some(row) => tx.put(&SEEN_WORK, &key, row)?,
        None => {
            tx.remove(&SEEN_WORK, &key)?;
        }
    }
    let timer = |row: &SeenRow| vec![(row.expires_at, TimerKind::Forget)];
    let (old, new) = (
        before.as_ref().map(timer).unwrap_or_default(),
        row.map(timer).unwrap_or_default(),
    );
    move_timers(tx, tenant, (digest.0, recipient_pool), &old, &new)
}

/// Remembers who has a key; nothing for what is forgotten.
pub fn put_holder(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    (recipient_pool, digest): (RecipientPoolId, DigestKey),
    row: Option<&Holder>,
) -> Result<(), StoreError> {
    let key = (tenant, recipient_pool, digest);
    let before = tx.get(&STICKY_HOLDERS, &key)?;
    match row {
        Some(row) => tx.put(&STICKY_HOLDERS, &key, row)?,
        None => {
            tx.remove(&STICKY_HOLDERS, &key)?;
        }
    }
    let timer = |row: &Holder| vec![(row.expires_at, TimerKind::ForgetHolder)];
    let (old, new) = (
        before.as_ref().map(timer).unwrap_or_default(),
        row.map(timer).unwrap_or_default(),
    );
    move_timers(tx, tenant, (digest.0, recipient_pool), &old, &new)
}
