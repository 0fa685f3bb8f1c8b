//! Publishing what a configuration load says: versions of definitions, digests, capacities. An unchanged load writes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::workflow::definition::Definition;
use crate::engine::book::BookSlots;
use crate::engine::changes::{catch_up, drift, report};
use crate::store::rows::{DefinitionRecord, PublishedBy, PublishedJob, PublishedSlotPool};
use crate::store::tables::{DEFINITIONS, PUBLISHED_BY, PUBLISHED_JOBS, PUBLISHED_SLOT_POOLS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::TenantId;
use crate::words::names::{JobName, NodeName, SlotPoolName};

const TENANT: TenantId = TenantId::DEFAULT;

/// Publishes what a load of this daemon says; the version of each definition.
pub fn publish(
    tx: &mut Tx<'_>,
    node: &NodeName,
    definitions: &[Definition],
    slot_pools: &BTreeMap<SlotPoolName, BookSlots>,
) -> Result<BTreeMap<JobName, u32>, Abort> {
    let by = PublishedBy {
        node: node.clone(),
        at: tx.now().wall,
    };
    let mut versions = BTreeMap::new();
    let mut changed = false;
    for definition in definitions {
        if !definition.enabled || definition.schedule.is_none() {
            // What is not fired now owes nothing, also when it is fired again one day.
            catch_up::forget(tx, &definition.name)?;
        }
        let (version, is_new) = publish_one(tx, definition)?;
        if is_new {
            tx.put(&PUBLISHED_BY, &drift::job_key(&definition.name), &by)?;
            changed = true;
        }
        versions.insert(definition.name.clone(), version);
        report::publish(tx, definition)?;
    }
    let known: BTreeSet<&JobName> = definitions.iter().map(|definition| &definition.name).collect();
    for ((_, name), _) in tx.scan(&PUBLISHED_JOBS, &(TENANT,), None, usize::MAX)? {
        if !known.contains(&name) {
            tx.remove(&PUBLISHED_JOBS, &(TENANT, name.clone()))?;
            report::unpublish(tx, &name)?;
            catch_up::forget(tx, &name)?;
            tx.put(&PUBLISHED_BY, &drift::job_key(&name), &by)?;
            tx.tell("config.job.removed", &name, 0, None);
            changed = true;
        }
    }
    changed |= slot_pools_of(tx, &by, slot_pools)?;
    if changed {
        tx.next_number(drift::PUBLISHED)?;
    }
    Ok(versions)
}

/// True if anything of the slot pools is new.
fn slot_pools_of(
    tx: &mut Tx<'_>,
    by: &PublishedBy,
    slot_pools: &BTreeMap<SlotPoolName, BookSlots>,
) -> Result<bool, StoreError> {
    let mut changed = false;
    for (name, configured) in slot_pools {
        let key = (TENANT, name.clone());
        let row = PublishedSlotPool {
            slots: configured.slots,
            max_queued: configured.max_queued,
        };
        if tx.get(&PUBLISHED_SLOT_POOLS, &key)?.as_ref() != Some(&row) {
            tx.put(&PUBLISHED_SLOT_POOLS, &key, &row)?;
            tx.put(&PUBLISHED_BY, &drift::slot_pool_key(name), by)?;
            tx.tell("config.pool.published", name, 0, None);
            changed = true;
        }
    }
    for ((_, name), _) in tx.scan(&PUBLISHED_SLOT_POOLS, &(TENANT,), None, usize::MAX)? {
        if !slot_pools.contains_key(&name) {
            tx.remove(&PUBLISHED_SLOT_POOLS, &(TENANT, name.clone()))?;
            tx.put(&PUBLISHED_BY, &drift::slot_pool_key(&name), by)?;
            tx.tell("config.pool.removed", &name, 0, None);
            changed = true;
        }
    }
    Ok(changed)
}

/// The version of the definition, and whether it is published only now.
fn publish_one(tx: &mut Tx<'_>, definition: &Definition) -> Result<(u32, bool), Abort> {
    let (json, content) = definition.stored();
    let key = (TENANT, definition.name.clone());
    let published = tx.get(&PUBLISHED_JOBS, &key)?;
    if let Some(published) = published.filter(|published: &PublishedJob| published.content == content) {
        return Ok((published.version, false));
    }
    let newest = tx.scan_back(&DEFINITIONS, &key, None, 1)?;
    let version = newest.first().map_or(1, |((_, _, version), _)| version + 1);
    let digest = definition.digest();
    let record = DefinitionRecord {
        digest: digest.clone(),
        published_at: tx.now().wall,
        json,
    };
    tx.put(&DEFINITIONS, &(TENANT, definition.name.clone(), version), &record)?;
    let slot_pool = definition.job_demand().map(|demand| demand.slot_pool.clone());
    let row = PublishedJob {
        version,
        digest,
        enabled: definition.enabled,
        slot_pool,
        content,
    };
    tx.put(&PUBLISHED_JOBS, &key, &row)?;
    tx.tell("config.job.published", &definition.name, u64::from(version), None);
    Ok((version, true))
}
