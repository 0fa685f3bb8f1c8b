//! What was compiled of the declared objects of each tenant, as long as none of them changes: the number of their newest change
//! is read in the same transaction as everything else, so that a stale copy is never used.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use super::rivalry::Rivalry;
use crate::domain::routing::known::Known;
use crate::domain::routing::objects::{Recipient, Trait};
use crate::domain::routing::ready::{Prepared, ReadyRule};
use crate::domain::routing::snapshot::Declared;
use crate::store::{Rows, StoreError, routing_live, routing_objects};
use crate::words::ids::{RecipientPoolId, TenantId};

/// Tenants whose objects are kept; beyond it all are read anew.
const TENANTS_MAX: usize = 256;
/// Declared halves that are kept for a tenant: one for each set of recipient pools that passes have entered.
const DECLARED_MAX: usize = 8;

/// The copies of all tenants. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Shelf {
    /// Whether looks ahead hold.
    pub rivalry: Rivalry,
    tenants: Arc<Mutex<BTreeMap<TenantId, Arc<OfTenant>>>>,
}

/// The copies of one tenant, at one revision.
#[derive(Debug, Default)]
pub struct OfTenant {
    revision: u64,
    kept: Mutex<Kept>,
}

#[derive(Debug, Default)]
struct Kept {
    rules: Option<Arc<Vec<ReadyRule>>>,
    traits: Option<Arc<Vec<Trait>>>,
    recipient_pools: BTreeMap<RecipientPoolId, Option<Arc<Prepared>>>,
    members: BTreeMap<RecipientPoolId, Arc<Vec<Arc<Recipient>>>>,
    /// Declared halves of snapshots, the newest last.
    declared: Vec<Arc<Declared>>,
}

impl Shelf {
    /// The copies that are good in this transaction.
    pub fn of(&self, rows: &mut impl Rows, tenant: TenantId) -> Result<Arc<OfTenant>, StoreError> {
        let revision = routing_live::revision(rows, tenant)?;
        if routing_live::is_revised_here(rows, tenant) {
            // It may still be rolled back, and its number come again for another change: nothing of it is kept.
            return Ok(Arc::new(OfTenant {
                revision,
                kept: Mutex::default(),
            }));
        }
        let mut tenants = self.tenants.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = tenants.get(&tenant).filter(|known| known.revision == revision) {
            return Ok(Arc::clone(known));
        }
        let fresh = Arc::new(OfTenant {
            revision,
            kept: Mutex::default(),
        });
        // A reader of an older snapshot must not take the newer copies away.
        if tenants.get(&tenant).is_none_or(|known| known.revision < revision) {
            if tenants.len() >= TENANTS_MAX {
                tenants.clear();
            }
            tenants.insert(tenant, Arc::clone(&fresh));
        }
        Ok(fresh)
    }
}

impl OfTenant {
    /// The number of the newest change that these copies know.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    fn kept<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(&mut self.kept.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The rules of the tenant.
    pub fn rules(&self, rows: &mut impl Rows, tenant: TenantId) -> Result<Arc<Vec<ReadyRule>>, StoreError> {
        if let Some(known) = self.kept(|kept| kept.rules.clone()) {
            return Ok(known);
        }
        let ready = Arc::new(ReadyRule::all(routing_objects::rules_of_tenant(rows, tenant)?));
        self.kept(|kept| kept.rules = Some(Arc::clone(&ready)));
        Ok(ready)
    }

    /// The traits of the tenant.
    pub fn traits(&self, rows: &mut impl Rows, tenant: TenantId) -> Result<Arc<Vec<Trait>>, StoreError> {
        if let Some(known) = self.kept(|kept| kept.traits.clone()) {
            return Ok(known);
        }
        let all = Arc::new(routing_objects::traits(rows, tenant)?);
        self.kept(|kept| kept.traits = Some(Arc::clone(&all)));
        Ok(all)
    }

    /// A recipient pool with its rules and its pipeline.
    pub fn recipient_pool(
        &self,
        rows: &mut impl Rows,
        tenant: TenantId,
        id: RecipientPoolId,
    ) -> Result<Option<Arc<Prepared>>, StoreError> {
        if let Some(known) = self.kept(|kept| kept.recipient_pools.get(&id).cloned()) {
            return Ok(known);
        }
        let found = routing_objects::recipient_pool(rows, tenant, id)?;
        let prepared = match found {
            Some(found) => {
                let rules = routing_objects::rules_of(rows, tenant, id)?;
                Some(Arc::new(Prepared::new(found, rules)))
            }
            None => None,
        };
        self.kept(|kept| kept.recipient_pools.insert(id, prepared.clone()));
        Ok(prepared)
    }

    /// The declared half of what a pass has read.
    pub fn declared(&self, read: &Known) -> Arc<Declared> {
        let known = self.kept(|kept| kept.declared.iter().find(|half| half.is_of(read)).cloned());
        known.unwrap_or_else(|| {
            let fresh = Arc::new(Declared::of(read));
            self.kept(|kept| {
                if kept.declared.len() >= DECLARED_MAX {
                    kept.declared.remove(0);
                }
                kept.declared.push(Arc::clone(&fresh));
            });
            fresh
        })
    }

    /// The members of a recipient pool, by id.
    pub fn members(
        &self,
        rows: &mut impl Rows,
        tenant: TenantId,
        id: RecipientPoolId,
    ) -> Result<Arc<Vec<Arc<Recipient>>>, StoreError> {
        if let Some(known) = self.kept(|kept| kept.members.get(&id).cloned()) {
            return Ok(known);
        }
        let mut members = Vec::new();
        for member in routing_objects::members(rows, tenant, id)? {
            members.extend(routing_objects::recipient(rows, tenant, member)?.map(Arc::new));
        }
        let members = Arc::new(members);
        self.kept(|kept| kept.members.insert(id, Arc::clone(&members)));
        Ok(members)
    }
}
