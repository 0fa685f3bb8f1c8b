//! Definitions of the API as the faces ask for them: judged on a snapshot, saved and published by changes.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::book::Book;
use super::changes::remember::{Asked, Told};
use super::changes::workflows::{self, Deprecated, Posted, Publication, Published, Saved};
use super::core::Engine;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::check::{Call, Family, Version, World, calls};
use crate::domain::workflow::graph::finding::Finding;
use crate::domain::workflow::graph::judge::{Judged, judge};
use crate::domain::workflow::graph::read::read;
use crate::store::rows::WorkflowRecord;
use crate::store::tables::{DEFINITIONS, WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{ChangeError, Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;

const TENANT: TenantId = TenantId::DEFAULT;

/// Says what a posted document is, against the slot pools and definitions that there are now.
pub async fn judge_posted(engine: &Engine, posted: Arc<Value>) -> Result<Judged, StoreError> {
    let (book, document) = (engine.book(), Arc::clone(&posted));
    let world = engine.read(move |tx| world(tx, &book, &document)).await?;
    // Many expressions take their time; no snapshot is held for them.
    let judging = tokio::task::spawn_blocking(move || judge(&posted, &world));
    match judging.await {
        Ok(judged) => Ok(judged),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    }
}

/// What a document can refer to.
pub fn world(rows: &mut impl Rows, book: &Book, posted: &Value) -> Result<World, StoreError> {
    let slot_pools = book
        .slot_pools
        .iter()
        .map(|(name, slots)| (name.clone(), slots.slots));
    let mut world = World {
        slot_pools: slot_pools.collect(),
        ..World::default()
    };
    let mut wanted: Vec<Call> = read(posted).document.as_ref().map(calls).unwrap_or_default();
    if wanted.is_empty() {
        return Ok(world);
    }
    for ((_, name), _) in rows.scan(&WORKFLOWS, &(TENANT,), None, limits::FAMILIES_MAX)? {
        world.names.insert(name.to_string());
    }
    let mut seen = BTreeSet::new();
    // Deeper than it may go nobody needs to look.
    for _ in 0..=limits::SUBWORKFLOW_DEPTH_MAX {
        let mut next = Vec::new();
        for call in std::mem::take(&mut wanted) {
            if seen.len() < limits::SUBWORKFLOW_FAMILIES_MAX && seen.insert(call.clone()) {
                next.extend(add_call(rows, &mut world.families, &call)?);
            }
        }
        wanted = next;
    }
    Ok(world)
}

/// Adds what is called, and says what that calls.
fn add_call(
    rows: &mut impl Rows,
    families: &mut BTreeMap<String, Family>,
    (slug, version): &Call,
) -> Result<Vec<Call>, StoreError> {
    let Ok(name) = JobName::new(slug) else {
        return Ok(Vec::new());
    };
    let Some(record) = rows.get(&WORKFLOWS, &(TENANT, name.clone()))? else {
        return Ok(Vec::new());
    };
    let family = families.entry(slug.clone()).or_default();
    family.newest = (record.current > 0).then_some(record.current);
    let Some(version) = version.or(family.newest) else {
        return Ok(Vec::new());
    };
    let key = (TENANT, name, version);
    let Some(row) = rows.get(&WORKFLOW_VERSIONS, &key)? else {
        return Ok(Vec::new());
    };
    let stored = rows.get(&DEFINITIONS, &key)?;
    let stored = stored.and_then(|stored| stored.json.read::<Definition>().ok());
    let called = stored.and_then(|definition| definition.graph.map(|graph| calls(&graph)));
    let called = called.unwrap_or_default();
    let found = Version {
        deprecated: row.deprecated.is_some(),
        calls: called.clone(),
    };
    family.versions.insert(version, found);
    Ok(called)
}

/// Saves a draft.
pub async fn save(
    engine: &Engine,
    posted: Posted,
    create: bool,
    mut asked: Asked<Saved>,
) -> Result<Told<Saved>, ChangeError> {
    let change = engine.store.change("save workflow", move |tx| {
        asked.once(tx, |tx| workflows::save(tx, &posted, create))
    });
    change.await
}

/// What became of a wish to publish.
#[derive(Debug)]
pub enum Publishing {
    /// The draft is not good.
    Refused(Vec<Finding>),
    /// It was judged by the store.
    Told(Told<Published>),
}

/// Why nothing can be said of a wish.
#[derive(Debug)]
pub enum Trouble {
    /// The store cannot be read.
    Read(StoreError),
    /// The change did not come to its end.
    Change(ChangeError),
}

/// Drafts that are overtaken while one is judged, before the wish is given up.
const OVERTAKEN_MAX: usize = 5;

/// Publishes the draft of a definition, if it is good.
pub async fn publish(
    engine: &Engine,
    slug: &JobName,
    by: &str,
    ask: impl Fn() -> Asked<Published>,
) -> Result<Publishing, Trouble> {
    let mut told = None;
    for _ in 0..OVERTAKEN_MAX {
        let draft = draft_of(engine, slug, by).await.map_err(Trouble::Read)?;
        let publication = match draft {
            None => None,
            Some((posted, document)) => {
                let judged = judge_posted(engine, document).await.map_err(Trouble::Read)?;
                let Some(document) = judged.document else {
                    return Ok(Publishing::Refused(judged.findings));
                };
                let definition = Definition::of_graph(slug.clone(), document);
                Some(Publication { posted, definition })
            }
        };
        let (mut asked, slug) = (ask(), slug.clone());
        let change = engine.store.change("publish workflow", move |tx| {
            asked.once(tx, |tx| workflows::publish(tx, &slug, publication.as_ref()))
        });
        let found = change.await.map_err(Trouble::Change)?;
        let is_overtaken = matches!(found, Told::Now(Published::OtherDraft, _));
        told = Some(found);
        if !is_overtaken {
            break;
        }
    }
    Ok(Publishing::Told(told.expect("one turn at least")))
}

/// The draft of a definition, if it has one.
async fn draft_of(
    engine: &Engine,
    slug: &JobName,
    by: &str,
) -> Result<Option<(Posted, Arc<Value>)>, StoreError> {
    let key = (TENANT, slug.clone());
    let read = engine.read(move |tx| Ok((tx.get(&WORKFLOWS, &key)?, tx.get(&WORKFLOW_DRAFTS, &key)?)));
    let (record, draft) = read.await?;
    let (
        Some(WorkflowRecord {
            title,
            draft: Some(sha256),
            ..
        }),
        Some(draft),
    ) = (record, draft)
    else {
        return Ok(None);
    };
    let document: Value = draft.json.read().expect("checked when it was stored");
    let posted = Posted {
        slug: slug.clone(),
        title,
        json: draft.json,
        sha256,
        by: by.to_owned(),
    };
    Ok(Some((posted, Arc::new(document))))
}

/// Deprecates a version.
pub async fn deprecate(
    engine: &Engine,
    slug: JobName,
    version: u32,
    by: String,
    mut asked: Asked<Deprecated>,
) -> Result<Told<Deprecated>, ChangeError> {
    let change = engine.store.change("deprecate workflow", move |tx| {
        asked.once(tx, |tx| workflows::deprecate(tx, &slug, version, &by))
    });
    change.await
}
