//! Publishing what a configuration load says: versions of definitions, digests, capacities. An unchanged load writes
//! nothing.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::workflow::definition::Definition;
use crate::engine::book::BookSlots;
use crate::engine::changes::{catch_up, report};
use crate::store::rows::{DefinitionRecord, PublishedJob, PublishedSlotPool};
use crate::store::tables::{DEFINITIONS, PUBLISHED_JOBS, PUBLISHED_SLOT_POOLS};
use crate::store::{Abort, Rows, Tx};
use crate::words::ids::{self, TenantId};
use crate::words::names::{JobName, SlotPoolName};
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// Publishes; the version of each definition.
pub fn publish(
    tx: &mut Tx<'_>,
    definitions: &[Definition],
    slot_pools: &BTreeMap<SlotPoolName, BookSlots>,
) -> Result<BTreeMap<JobName, u32>, Abort> {
    let mut versions = BTreeMap::new();
    for definition in definitions {
        if !definition.enabled || definition.schedule.is_none() {
            // What is not fired now owes nothing, also when it is fired again one day.
            catch_up::forget(tx, &definition.name)?;
        }
        versions.insert(definition.name.clone(), publish_one(tx, definition)?);
        report::publish(tx, definition)?;
    }
    let known: BTreeSet<&JobName> = definitions.iter().map(|definition| &definition.name).collect();
    for ((_, name), _) in tx.scan(&PUBLISHED_JOBS, &(TENANT,), None, usize::MAX)? {
        if !known.contains(&name) {
            tx.remove(&PUBLISHED_JOBS, &(TENANT, name.clone()))?;
            report::unpublish(tx, &name)?;
            catch_up::forget(tx, &name)?;
            tx.tell("config.job.removed", &name, 0, None);
        }
    }
    for (name, configured) in slot_pools {
        let row = PublishedSlotPool {
            slots: configured.slots,
            max_queued: configured.max_queued,
        };
        if tx.get(&PUBLISHED_SLOT_POOLS, &(TENANT, name.clone()))?.as_ref() != Some(&row) {
            tx.put(&PUBLISHED_SLOT_POOLS, &(TENANT, name.clone()), &row)?;
        }
    }
    for ((_, name), _) in tx.scan(&PUBLISHED_SLOT_POOLS, &(TENANT,), None, usize::MAX)? {
        if !slot_pools.contains_key(&name) {
            tx.remove(&PUBLISHED_SLOT_POOLS, &(TENANT, name))?;
        }
    }
    Ok(versions)
}

fn publish_one(tx: &mut Tx<'_>, definition: &Definition) -> Result<u32, Abort> {
    let json = JsonText::of(definition).expect("a definition is plain data");
    let content = ids::sha256_hex(json.as_str().as_bytes());
    let key = (TENANT, definition.name.clone());
    let published = tx.get(&PUBLISHED_JOBS, &key)?;
    if let Some(published) = published.filter(|published: &PublishedJob| published.content == content) {
        return Ok(published.version);
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
    let slot_pool = definition
        .main_step()
        .slots
        .as_ref()
        .map(|demand| demand.slot_pool.clone());
    let row = PublishedJob {
        version,
        digest,
        enabled: definition.enabled,
        slot_pool,
        content,
    };
    tx.put(&PUBLISHED_JOBS, &key, &row)?;
    tx.tell("config.job.published", &definition.name, u64::from(version), None);
    Ok(version)
}
