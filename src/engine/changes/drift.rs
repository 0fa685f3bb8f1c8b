//! Drift: where a daemon's own configuration is not the one that was published last. The last load wins; a daemon that still
//! runs with another one leaves alone what it would do differently, says so, and goes on with everything else.

use std::collections::BTreeMap;

use crate::domain::workflow::definition::{Definition, Policy, ScheduleText};
use crate::engine::book::{Book, BookJob};
use crate::store::rows::{DefinitionRecord, PublishedJob, PublishedSlotPool};
use crate::store::tables::{DEFINITIONS, META, PUBLISHED_BY, PUBLISHED_JOBS, PUBLISHED_SLOT_POOLS};
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::names::{JobName, SlotPoolName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// Counts the loads that changed what is published.
pub const PUBLISHED: &str = "published";

/// The key of [`PUBLISHED_BY`] for a job.
pub fn job_key(name: &JobName) -> (TenantId, String) {
    (TENANT, format!("job {name}"))
}

/// The key of [`PUBLISHED_BY`] for a slot pool.
pub fn slot_pool_key(name: &SlotPoolName) -> (TenantId, String) {
    (TENANT, format!("pool {name}"))
}

/// Whose load said something else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Other {
    /// The daemon's name; `another` when nobody knows any more.
    pub node: String,
    /// When it was loaded.
    pub at: Option<Millis>,
}

/// Everything in which a daemon's configuration differs from the published one, and by whose load.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Drift {
    /// Slot pools with other slots or another longest queue.
    pub slot_pools: BTreeMap<SlotPoolName, Other>,
    /// Jobs that would run, or be fired, in another way.
    pub jobs: BTreeMap<JobName, Other>,
}

impl Drift {
    /// True when nothing differs.
    pub fn is_empty(&self) -> bool {
        self.slot_pools.is_empty() && self.jobs.is_empty()
    }
}

/// How many loads have changed what is published.
pub fn loads(rows: &mut impl Rows) -> Result<u64, StoreError> {
    let counted = rows.get(&META, &(PUBLISHED.to_owned(),))?;
    Ok(counted.map_or(0, |number| number.0))
}

/// Who said something last, unless that was this very daemon: what it has just loaded itself is about to be in force.
fn other(rows: &mut impl Rows, book: &Book, key: &(TenantId, String)) -> Result<Option<Other>, StoreError> {
    let Some(by) = rows.get(&PUBLISHED_BY, key)? else {
        return Ok(Some(Other {
            node: "another".to_owned(),
            at: None,
        }));
    };
    Ok((by.node != book.node).then(|| Other {
        node: by.node.to_string(),
        at: Some(by.at),
    }))
}

/// Compares a whole book with what is published.
pub fn find(rows: &mut impl Rows, book: &Book) -> Result<Drift, StoreError> {
    let mut drift = Drift::default();
    for name in book.slot_pools.keys() {
        if let Some(by) = slot_pool(rows, book, name)? {
            drift.slot_pools.insert(name.clone(), by);
        }
    }
    let mut published: BTreeMap<JobName, PublishedJob> = BTreeMap::new();
    for each in rows.scan_each(&PUBLISHED_JOBS, &(TENANT,), None, usize::MAX)? {
        if let Ok(((_, name), row)) = each.row {
            published.insert(name, row);
        }
    }
    let mut differing = Vec::new();
    for (name, own) in &book.jobs {
        if !fires_alike(rows, own, published.remove(name).as_ref())? {
            differing.push(name.clone());
        }
    }
    // What is left is published and unknown here.
    differing.extend(published.into_keys());
    for name in differing {
        if let Some(by) = other(rows, book, &job_key(&name))? {
            drift.jobs.insert(name, by);
        }
    }
    Ok(drift)
}

/// The daemon whose load has given the slot pool other numbers than `book` has; `None` if there is none.
pub fn slot_pool(
    rows: &mut impl Rows,
    book: &Book,
    name: &SlotPoolName,
) -> Result<Option<Other>, StoreError> {
    let Some(own) = book.slot_pools.get(name) else {
        return Ok(None);
    };
    let published: Option<PublishedSlotPool> = rows.get(&PUBLISHED_SLOT_POOLS, &(TENANT, name.clone()))?;
    if published.is_some_and(|row| (row.slots, row.max_queued) == (own.slots, own.max_queued)) {
        return Ok(None);
    }
    other(rows, book, &slot_pool_key(name))
}

/// What decides whether and when a run begins by itself, besides the digest.
fn firing(definition: &Definition) -> (bool, &Option<ScheduleText>, &Policy) {
    (definition.enabled, &definition.schedule, &definition.policy)
}

fn fires_alike(
    rows: &mut impl Rows,
    own: &BookJob,
    published: Option<&PublishedJob>,
) -> Result<bool, StoreError> {
    let Some(published) = published else {
        return Ok(false);
    };
    if published.content == own.content {
        return Ok(true);
    }
    if published.digest != own.digest {
        return Ok(false);
    }
    let other = definition_of(rows, own, published)?;
    Ok(other.is_some_and(|other| firing(&other) == firing(&own.definition)))
}

fn definition_of(
    rows: &mut impl Rows,
    own: &BookJob,
    published: &PublishedJob,
) -> Result<Option<Definition>, StoreError> {
    let key = (TENANT, own.definition.name.clone(), published.version);
    let record: Option<DefinitionRecord> = rows.get(&DEFINITIONS, &key)?;
    Ok(record.and_then(|record| record.json.read().ok()))
}

/// True when this daemon may fire the job for all: it would run, and be fired, as the configuration says that was loaded
/// last.
pub fn may_fire(rows: &mut impl Rows, book: &Book, own: &BookJob) -> Result<bool, StoreError> {
    let name = &own.definition.name;
    let published = rows.get(&PUBLISHED_JOBS, &(TENANT, name.clone()))?;
    if fires_alike(rows, own, published.as_ref())? {
        return Ok(true);
    }
    Ok(other(rows, book, &job_key(name))?.is_none())
}

/// True when this daemon may say whether the job is late: its limits and its schedule are the published ones, or the job
/// is nobody's any more.
pub fn may_judge(rows: &mut impl Rows, book: &Book, name: &JobName) -> Result<bool, StoreError> {
    let published: Option<PublishedJob> = rows.get(&PUBLISHED_JOBS, &(TENANT, name.clone()))?;
    let limits = |definition: &Definition| (definition.enabled, definition.schedule.clone(), definition.sla);
    let same = match (book.jobs.get(name), published) {
        (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some(own), Some(published)) => {
            published.content == own.content
                || definition_of(rows, own, &published)?
                    .is_some_and(|other| limits(&other) == limits(&own.definition))
        }
    };
    Ok(same || other(rows, book, &job_key(name))?.is_none())
}

/// The daemon whose load has given the job another digest than `own` has, or has disabled it: an entry of this one would be
/// cancelled at once.
pub fn job(rows: &mut impl Rows, book: &Book, own: &BookJob) -> Result<Option<Other>, StoreError> {
    let name = &own.definition.name;
    let published: Option<PublishedJob> = rows.get(&PUBLISHED_JOBS, &(TENANT, name.clone()))?;
    if published.is_some_and(|published| published.digest == own.digest && published.enabled) {
        return Ok(None);
    }
    other(rows, book, &job_key(name))
}
