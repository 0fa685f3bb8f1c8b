//! API keys and the sessions that are begun with them.

use crate::store::access::{self, ApiKey, KeyUse, Revoked, Session};
use crate::store::keys::DigestKey;
use crate::store::tables::{API_KEYS, KEY_USES, SESSIONS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::{KeyId, TenantId};
use crate::words::limits;
use crate::words::time::Millis;

/// What became of a new key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Created {
    /// It is there.
    Done,
    /// Another valid key of the tenant has the name.
    NameTaken,
    /// With the first key open mode ends: it must be one of the tenant `default`, for `admin` and without an end.
    FirstIsNoAdmin,
    /// The tenant has as many as it may.
    Full,
}

/// Makes a key.
pub fn create(tx: &mut Tx<'_>, tenant: TenantId, id: KeyId, key: &ApiKey) -> Result<Created, Abort> {
    let now = tx.now().wall;
    let is_first = tx.scan(&API_KEYS, &(), None, 1)?.is_empty();
    if is_first && !(tenant == TenantId::DEFAULT && is_lasting_admin(key, now)) {
        return Ok(Created::FirstIsNoAdmin);
    }
    let others = tx.scan(&API_KEYS, &(tenant,), None, limits::KEYS_MAX)?;
    if others
        .iter()
        .any(|(_, other)| other.name == key.name && other.is_valid(now))
    {
        return Ok(Created::NameTaken);
    }
    if others.len() >= limits::KEYS_MAX {
        return Ok(Created::Full);
    }
    tx.put(&API_KEYS, &(tenant, id), key)?;
    access::changed(tx)?;
    tx.tell("key.created", id, 0, None);
    Ok(Created::Done)
}

/// A key that can always make the next one.
fn is_lasting_admin(key: &ApiKey, now: Millis) -> bool {
    key.scopes.is_admin() && key.is_valid(now) && key.expires_at.is_none()
}

/// What became of the end of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ended {
    /// It opens nothing any more; with the key as it is now. It may have been so before.
    Done(ApiKey),
    /// There is none.
    NotFound,
    /// Nobody could make another one.
    LastAdmin,
}

/// Ends a key, and the sessions that were begun with it.
pub fn revoke(tx: &mut Tx<'_>, tenant: TenantId, id: KeyId, by: &str) -> Result<Ended, Abort> {
    let now = tx.now().wall;
    let Some(key) = tx.get(&API_KEYS, &(tenant, id))? else {
        return Ok(Ended::NotFound);
    };
    if key.revoked.is_some() {
        return Ok(Ended::Done(key));
    }
    if tenant == TenantId::DEFAULT && is_lasting_admin(&key, now) {
        let all = tx.scan(&API_KEYS, &(tenant,), None, usize::MAX)?;
        let mut others = all.iter().filter(|((_, other), _)| *other != id);
        if !others.any(|(_, other)| is_lasting_admin(other, now)) {
            return Ok(Ended::LastAdmin);
        }
    }
    let key = ApiKey {
        revoked: Some(Revoked {
            at: now,
            by: by.to_owned(),
        }),
        ..key
    };
    tx.put(&API_KEYS, &(tenant, id), &key)?;
    for (place, session) in tx.scan(&SESSIONS, &(tenant,), None, usize::MAX)? {
        if session.key == id {
            tx.remove(&SESSIONS, &place)?;
        }
    }
    access::changed(tx)?;
    tx.tell("key.revoked", id, 0, None);
    Ok(Ended::Done(key))
}

/// Writes when keys were used last.
pub fn note_uses(tx: &mut Tx<'_>, uses: &[(TenantId, KeyId, Millis)]) -> Result<(), Abort> {
    for (tenant, id, at) in uses {
        let known = tx.get(&KEY_USES, &(*tenant, *id))?;
        if known.is_none_or(|known| known.at < *at) {
            tx.put(&KEY_USES, &(*tenant, *id), &KeyUse { at: *at })?;
        }
    }
    Ok(())
}

/// Begins a session; of too many with one key the oldest ends. Sessions whose time is over go with it.
pub fn begin_session(tx: &mut Tx<'_>, tenant: TenantId, session: &Session) -> Result<(), Abort> {
    let now = tx.now().wall;
    let mut own: Vec<(Millis, (TenantId, DigestKey))> = Vec::new();
    for (place, other) in tx.scan(&SESSIONS, &(tenant,), None, usize::MAX)? {
        if other.ends_at <= now {
            tx.remove(&SESSIONS, &place)?;
        } else if other.key == session.key {
            own.push((other.begun_at, place));
        }
    }
    own.sort_unstable_by_key(|(begun_at, _)| *begun_at);
    let over = (own.len() + 1).saturating_sub(limits::SESSIONS_PER_KEY_MAX);
    for (_, place) in own.into_iter().take(over) {
        tx.remove(&SESSIONS, &place)?;
    }
    tx.put(&SESSIONS, &(tenant, session_key(&session.hash)), session)?;
    Ok(access::changed(tx)?)
}

/// Ends a session; false if there is none.
pub fn end_session(tx: &mut Tx<'_>, tenant: TenantId, hash: &[u8; 32]) -> Result<bool, Abort> {
    let existed = tx.remove(&SESSIONS, &(tenant, session_key(hash)))?;
    if existed {
        access::changed(tx)?;
    }
    Ok(existed)
}

/// Where a session stands: the first half of its hash.
pub fn session_key(hash: &[u8; 32]) -> DigestKey {
    let mut half = [0; 16];
    half.copy_from_slice(&hash[..16]);
    DigestKey(half)
}

/// When each key of a tenant was used last.
pub fn uses(rows: &mut impl Rows, tenant: TenantId) -> Result<Vec<(KeyId, Millis)>, StoreError> {
    let rows = rows.scan(&KEY_USES, &(tenant,), None, usize::MAX)?;
    Ok(rows.into_iter().map(|((_, id), used)| (id, used.at)).collect())
}
