//! Definitions of the API: drafts, frozen versions, deprecation.
//!
//! A draft is what somebody posted, good or not. Publishing freezes it into the next version; a version never changes.
//! Whether a draft may be published is judged before, on a snapshot: the change sees that the draft is still that one.

use crate::domain::workflow::definition::Definition;
use crate::store::rows::{DefinitionRecord, Deprecation, WorkflowDraft, WorkflowRecord, WorkflowVersion};
use crate::store::tables::{DEFINITIONS, PUBLISHED_JOBS, WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::payload::JsonText;

const TENANT: TenantId = TenantId::DEFAULT;

/// What somebody posted.
#[derive(Debug, Clone)]
pub struct Posted {
    /// The name.
    pub slug: JobName,
    /// For lists.
    pub title: String,
    /// The document as it was posted.
    pub json: JsonText,
    /// SHA-256 over its canonical text.
    pub sha256: String,
    /// Who.
    pub by: String,
}

/// What became of a draft.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Saved {
    /// There was no definition of that name.
    Created(WorkflowRecord),
    /// There was one, or the same draft already.
    Updated(WorkflowRecord),
    /// It was to be new, and the name is taken.
    Exists,
    /// A job of the configuration has the name.
    OfConfiguration,
    /// There are too many definitions.
    Full,
}

/// Saves a draft. With `create` the name must be new.
pub fn save(tx: &mut Tx<'_>, posted: &Posted, create: bool) -> Result<Saved, Abort> {
    let key = (TENANT, posted.slug.clone());
    if tx.has(&PUBLISHED_JOBS, &key)? {
        return Ok(Saved::OfConfiguration);
    }
    let now = tx.now().wall;
    let found = tx.get(&WORKFLOWS, &key)?;
    if found.is_none()
        && tx.scan(&WORKFLOWS, &(TENANT,), None, limits::FAMILIES_MAX)?.len() >= limits::FAMILIES_MAX
    {
        return Ok(Saved::Full);
    }
    let Some(before) = found else {
        let record = WorkflowRecord {
            record_version: 1,
            title: posted.title.clone(),
            newest: 0,
            current: 0,
            draft: Some(posted.sha256.clone()),
            created_at: now,
            updated_at: now,
        };
        put_draft(tx, posted)?;
        put(tx, &posted.slug, &record, "workflow.created")?;
        return Ok(Saved::Created(record));
    };
    if create {
        return Ok(Saved::Exists);
    }
    let newest = tx.get(&WORKFLOW_VERSIONS, &(TENANT, posted.slug.clone(), before.newest))?;
    let is_published = newest.is_some_and(|newest: WorkflowVersion| newest.sha256 == posted.sha256);
    let draft = (!is_published).then(|| posted.sha256.clone());
    if draft == before.draft {
        return Ok(Saved::Updated(before));
    }
    if is_published {
        tx.remove(&WORKFLOW_DRAFTS, &key)?;
    } else {
        put_draft(tx, posted)?;
    }
    let record = WorkflowRecord {
        record_version: before.record_version + 1,
        title: posted.title.clone(),
        draft,
        updated_at: now,
        ..before
    };
    put(tx, &posted.slug, &record, "workflow.changed")?;
    Ok(Saved::Updated(record))
}

/// The only writer of the header row.
fn put(tx: &mut Tx<'_>, slug: &JobName, record: &WorkflowRecord, topic: &str) -> Result<(), StoreError> {
    tx.put(&WORKFLOWS, &(TENANT, slug.clone()), record)?;
    tx.tell(topic, slug, record.record_version, None);
    Ok(())
}

fn put_draft(tx: &mut Tx<'_>, posted: &Posted) -> Result<(), StoreError> {
    let draft = WorkflowDraft {
        json: posted.json.clone(),
        by: posted.by.clone(),
        at: tx.now().wall,
    };
    tx.put(&WORKFLOW_DRAFTS, &(TENANT, posted.slug.clone()), &draft)
}

/// A draft that may be published.
#[derive(Debug, Clone)]
pub struct Publication {
    /// The draft.
    pub posted: Posted,
    /// What it means.
    pub definition: Definition,
}

/// What became of a publication.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Published {
    /// It is this version.
    Version {
        /// The number.
        version: u32,
        /// SHA-256 of the document.
        sha256: String,
        /// The same content was published before.
        already: bool,
        /// The header now.
        record: WorkflowRecord,
    },
    /// There is no definition of that name.
    Missing,
    /// The draft is another one by now.
    OtherDraft,
    /// A job of the configuration has the name.
    OfConfiguration,
    /// There are too many versions.
    Full,
}

/// Freezes a draft; without one, answers the newest version.
pub fn publish(
    tx: &mut Tx<'_>,
    slug: &JobName,
    publication: Option<&Publication>,
) -> Result<Published, Abort> {
    let key = (TENANT, slug.clone());
    let Some(before) = tx.get(&WORKFLOWS, &key)? else {
        return Ok(Published::Missing);
    };
    if tx.has(&PUBLISHED_JOBS, &key)? {
        return Ok(Published::OfConfiguration);
    }
    if before.draft.as_ref() != publication.map(|publication| &publication.posted.sha256) {
        return Ok(Published::OtherDraft);
    }
    let Some(Publication { posted, definition }) = publication else {
        let newest = tx.get(&WORKFLOW_VERSIONS, &(TENANT, slug.clone(), before.newest))?;
        return Ok(match newest {
            Some(newest) => Published::Version {
                version: before.newest,
                sha256: newest.sha256,
                already: true,
                record: before,
            },
            None => Published::Missing,
        });
    };
    let newest = tx.scan_back(&DEFINITIONS, &key, None, 1)?;
    let version = newest.first().map_or(1, |((_, _, version), _)| version + 1);
    if version > limits::VERSIONS_MAX {
        return Ok(Published::Full);
    }
    let (published_at, at) = (tx.now().wall, (TENANT, slug.clone(), version));
    let (json, _) = definition.stored();
    let digest = definition.digest();
    tx.put(
        &DEFINITIONS,
        &at,
        &DefinitionRecord {
            digest,
            published_at,
            json,
        },
    )?;
    tx.put(
        &WORKFLOW_VERSIONS,
        &at,
        &WorkflowVersion {
            sha256: posted.sha256.clone(),
            posted: posted.json.clone(),
            by: posted.by.clone(),
            published_at,
            deprecated: None,
        },
    )?;
    tx.remove(&WORKFLOW_DRAFTS, &key)?;
    let record = WorkflowRecord {
        record_version: before.record_version + 1,
        newest: version,
        current: version,
        draft: None,
        updated_at: published_at,
        ..before
    };
    put(tx, slug, &record, "workflow.published")?;
    Ok(Published::Version {
        version,
        sha256: posted.sha256.clone(),
        already: false,
        record,
    })
}

/// What became of a deprecation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Deprecated {
    /// No new runs of that version begin; also when that was so before.
    Done(WorkflowRecord, WorkflowVersion),
    /// There is no definition of that name.
    Missing,
    /// It has no such version.
    NoVersion,
}

/// Deprecates a version: what runs goes on, nothing new begins.
pub fn deprecate(tx: &mut Tx<'_>, slug: &JobName, version: u32, by: &str) -> Result<Deprecated, Abort> {
    let Some(before) = tx.get(&WORKFLOWS, &(TENANT, slug.clone()))? else {
        return Ok(Deprecated::Missing);
    };
    let at = (TENANT, slug.clone(), version);
    let Some(found) = tx.get(&WORKFLOW_VERSIONS, &at)? else {
        return Ok(Deprecated::NoVersion);
    };
    if found.deprecated.is_some() {
        return Ok(Deprecated::Done(before, found));
    }
    let row = WorkflowVersion {
        deprecated: Some(Deprecation {
            at: tx.now().wall,
            by: by.to_owned(),
        }),
        ..found
    };
    tx.put(&WORKFLOW_VERSIONS, &at, &row)?;
    let record = WorkflowRecord {
        record_version: before.record_version + 1,
        current: if before.current == version {
            newest_good(tx, slug)?
        } else {
            before.current
        },
        updated_at: tx.now().wall,
        ..before
    };
    put(tx, slug, &record, "workflow.deprecated")?;
    Ok(Deprecated::Done(record, row))
}

/// The newest version that is not deprecated; 0 if there is none.
fn newest_good(tx: &mut Tx<'_>, slug: &JobName) -> Result<u32, StoreError> {
    let mut before = None;
    loop {
        // One at a time: a version may be half a megabyte.
        let found = tx.scan_back(&WORKFLOW_VERSIONS, &(TENANT, slug.clone()), before.as_ref(), 1)?;
        match found.into_iter().next() {
            None => return Ok(0),
            Some(((_, _, version), row)) if row.deprecated.is_none() => return Ok(version),
            Some((key, _)) => before = Some(key),
        }
    }
}

/// Why no new run of a definition begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoStart {
    /// There is no definition of that name, or nothing of it is published.
    Missing,
    /// It has no such version.
    NoVersion(u32),
    /// That version is deprecated.
    Deprecated(u32),
    /// All its versions are.
    AllDeprecated,
}

impl NoStart {
    /// For people.
    pub fn sentence(self, name: &JobName) -> String {
        match self {
            NoStart::Missing => format!("there is no published workflow '{name}'"),
            NoStart::NoVersion(version) => format!("workflow '{name}' has no version {version}"),
            NoStart::Deprecated(version) => {
                format!("version {version} of workflow '{name}' is deprecated: no new runs of it begin")
            }
            NoStart::AllDeprecated => {
                format!("all versions of workflow '{name}' are deprecated: publish another")
            }
        }
    }
}

/// Which version a new run has: the one that is asked for, else the newest that is not deprecated. Of what the configuration
/// publishes it is the newest.
pub fn version_of_new_run(
    rows: &mut impl Rows,
    name: &JobName,
    wanted: Option<u32>,
) -> Result<Result<u32, NoStart>, StoreError> {
    let record = rows.get(&WORKFLOWS, &(TENANT, name.clone()))?;
    let Some(version) = wanted else {
        let newest = match record {
            Some(record) if record.newest > 0 && record.current == 0 => {
                return Ok(Err(NoStart::AllDeprecated));
            }
            Some(record) => Some(record.current).filter(|current| *current > 0),
            None => {
                let newest = rows.scan_back(&DEFINITIONS, &(TENANT, name.clone()), None, 1)?;
                newest.first().map(|((_, _, version), _)| *version)
            }
        };
        return Ok(newest.ok_or(NoStart::Missing));
    };
    let key = (TENANT, name.clone(), version);
    if record.is_none() {
        let is_there = rows.has(&DEFINITIONS, &key)?;
        return Ok(if is_there {
            Ok(version)
        } else {
            Err(NoStart::NoVersion(version))
        });
    }
    Ok(match rows.get(&WORKFLOW_VERSIONS, &key)? {
        None => Err(NoStart::NoVersion(version)),
        Some(row) if row.deprecated.is_some() => Err(NoStart::Deprecated(version)),
        Some(_) => Ok(version),
    })
}
