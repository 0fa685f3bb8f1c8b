//! The ring: all tenants, keys and sessions in memory, as the store has them now.
//!
//! Every request asks for it. It is read anew when the store has moved on and its own number with it, so that a key that was
//! made or revoked by any daemon of the state directory counts from the next request on.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use super::core::Engine;
use crate::store::access::{self, ApiKey, Session};
use crate::store::keys::DigestKey;
use crate::store::tables::{API_KEYS, SESSIONS};
use crate::store::{ReadTx, Rows, Store, StoreError};
use crate::words::ids::{KeyId, TenantId};
use crate::words::time::Millis;

/// Tenants, keys and sessions at one time.
#[derive(Debug, Default)]
pub struct Ring {
    number: u64,
    tenants: BTreeMap<TenantId, Arc<str>>,
    keys: BTreeMap<KeyId, (TenantId, ApiKey)>,
    sessions: BTreeMap<[u8; 16], Session>,
}

impl Ring {
    /// As the store has them.
    pub fn read(tx: &mut impl Rows) -> Result<Ring, StoreError> {
        let keys = tx.scan(&API_KEYS, &(), None, usize::MAX)?;
        let sessions = tx.scan(&SESSIONS, &(), None, usize::MAX)?;
        let tenants = access::tenants(tx)?.into_iter();
        Ok(Ring {
            number: access::changes(tx)?,
            tenants: tenants.map(|(id, name)| (id, Arc::from(name))).collect(),
            keys: keys
                .into_iter()
                .map(|((tenant, id), key)| (id, (tenant, key)))
                .collect(),
            sessions: sessions
                .into_iter()
                .map(|((_, DigestKey(digest)), session)| (digest, session))
                .collect(),
        })
    }

    /// True while there are no keys: whoever reaches the daemon may do everything. A key that has ended was one.
    pub fn is_open(&self) -> bool {
        self.keys.is_empty()
    }

    /// A key with its tenant.
    pub fn key(&self, id: KeyId) -> Option<(TenantId, &ApiKey)> {
        self.keys.get(&id).map(|(tenant, key)| (*tenant, key))
    }

    /// The session whose hash begins like this.
    pub fn session(&self, digest: [u8; 16]) -> Option<&Session> {
        self.sessions.get(&digest)
    }

    /// The name of a tenant.
    pub fn tenant_name(&self, id: TenantId) -> Option<Arc<str>> {
        self.tenants.get(&id).cloned()
    }

    /// The tenant of a name.
    pub fn tenant(&self, name: &str) -> Option<TenantId> {
        let mut all = self.tenants.iter();
        all.find(|(_, known)| &***known == name).map(|(id, _)| *id)
    }

    /// All tenants, in the order in which they were made.
    pub fn tenants(&self) -> impl Iterator<Item = (TenantId, &str)> {
        self.tenants.iter().map(|(id, name)| (*id, &**name))
    }

    /// How many keys of a tenant open something at this time.
    pub fn valid_keys(&self, tenant: TenantId, now: Millis) -> usize {
        let of_tenant = self.keys.values().filter(|(of, _)| *of == tenant);
        of_tenant.filter(|(_, key)| key.is_valid(now)).count()
    }
}

/// The ring in force. Clones share it.
#[derive(Debug, Clone)]
pub struct Keyring {
    known: Arc<Mutex<Known>>,
    sequence: watch::Receiver<u64>,
}

/// A ring, and up to which commit it is known to hold.
#[derive(Debug, Default)]
struct Known {
    sequence: Option<u64>,
    ring: Arc<Ring>,
}

impl Keyring {
    /// With the ring as it is now. It touches the disk: for the start only.
    pub fn new(store: &Store) -> Keyring {
        let sequence = store.watch_sequence();
        let before = *sequence.borrow();
        let known = match store.read(Ring::read) {
            Ok(ring) => Known {
                sequence: Some(before),
                ring: Arc::new(ring),
            },
            // The first request reads it, or is told that it cannot.
            Err(error) => {
                tracing::warn!(cause = %error, "the keys could not be read");
                Known::default()
            }
        };
        Keyring {
            known: Arc::new(Mutex::new(known)),
            sequence,
        }
    }

    /// The ring as it is now.
    pub async fn current(&self, engine: &Engine) -> Result<Arc<Ring>, StoreError> {
        // Read before the store is: what is committed in between is looked at again by the next request.
        let sequence = *self.sequence.borrow();
        let (held, number) = {
            let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
            if known.sequence == Some(sequence) {
                return Ok(Arc::clone(&known.ring));
            }
            (Arc::clone(&known.ring), known.sequence.map(|_| known.ring.number))
        };
        let read = move |tx: &mut ReadTx| {
            if number == Some(access::changes(tx)?) {
                return Ok(None);
            }
            Ring::read(tx).map(Some)
        };
        let ring = match engine.read(read).await {
            Ok(ring) => ring.map_or(held, Arc::new),
            // Who could call a moment ago still sees what is told without the store, and that it cannot be read.
            Err(error) if number.is_some() => {
                tracing::debug!(cause = %error, "the keys could not be read; those of before are used");
                return Ok(held);
            }
            Err(error) => return Err(error),
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        // Another request may have seen more meanwhile.
        if known.sequence.is_none_or(|other| other <= sequence) && known.ring.number <= ring.number {
            *known = Known {
                sequence: Some(sequence),
                ring: Arc::clone(&ring),
            };
        }
        Ok(ring)
    }
}
