//! The dags of the configuration among the workflows: they are shown, drawn and started there like any other, and changed in
//! their file only.

use serde_json::value::{RawValue, to_raw_value};

use super::app::App;
use super::error::Problem;
use super::paging::{self, Paging};
use super::workflows::{Source, TENANT, WorkflowView};
use crate::domain::workflow::definition::{Definition, ScheduleText};
use crate::domain::workflow::graph::document::Document;
use crate::engine::book::{Book, BookJob};
use crate::store::rows::DefinitionRecord;
use crate::store::tables::DEFINITIONS;
use crate::store::{Rows, StoreError};
use crate::words::ids::sha256_hex;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// A dag of the configuration in force, with the version of its definition that is.
#[derive(Debug, Clone)]
pub(super) struct Dag {
    pub(super) name: JobName,
    job: BookJob,
}

/// The dag of that name.
pub(super) fn of(book: &Book, name: &JobName) -> Option<Dag> {
    let job = book.jobs.get(name).filter(|job| job.definition.is_graph())?;
    Some(Dag {
        name: name.clone(),
        job: job.clone(),
    })
}

/// Those that may stand on a page of all workflows, one more than it holds.
pub(super) fn on_page(book: &Book, paging: &Paging) -> Vec<Dag> {
    let dags = book.jobs.iter().filter(|(_, job)| job.definition.is_graph());
    let behind = paging::all_after(dags.map(|(name, _)| name), paging);
    behind
        .into_iter()
        .take(paging.size + 1)
        .filter_map(|name| of(book, name))
        .collect()
}

impl Dag {
    /// As it stands in lists.
    pub(super) fn view(&self, rows: &mut impl Rows) -> Result<WorkflowView, StoreError> {
        let key = (TENANT, self.name.clone(), self.job.version);
        let record: Option<DefinitionRecord> = rows.get(&DEFINITIONS, &key)?;
        let published_at = record.map_or(Millis(0), |record| record.published_at);
        let definition = &self.job.definition;
        let title = definition.graph.as_ref().map(|graph| graph.title.clone());
        Ok(WorkflowView {
            family_slug: self.name.to_string(),
            title: title.unwrap_or_else(|| self.name.to_string()),
            source: Source::Configuration,
            newest_version: Some(self.job.version),
            current_version: definition.enabled.then_some(self.job.version),
            draft: false,
            sha256: Some(self.job.content.clone()),
            schedule: definition.schedule.as_ref().map(schedule_words),
            created_at: published_at.to_string(),
            updated_at: published_at.to_string(),
            record_version: u64::from(self.job.version),
            recent: None,
        })
    }

    /// What it says, as a document of the API would say it.
    pub(super) fn document(&self) -> Option<Box<RawValue>> {
        let graph = self.job.definition.graph.as_deref();
        graph.and_then(|graph| to_raw_value(graph).ok())
    }

    /// Its number.
    pub(super) fn version(&self) -> u32 {
        self.job.version
    }
}

fn schedule_words(schedule: &ScheduleText) -> String {
    match &schedule.timezone {
        Some(zone) => format!("{} ({zone})", schedule.text),
        None => format!("{} (UTC)", schedule.text),
    }
}

/// A version that some configuration has said.
pub(super) struct DagVersion {
    pub(super) number: u32,
    /// Of all that the configuration says of it, as it is stored.
    pub(super) sha256: String,
    pub(super) published_at: Millis,
    pub(super) document: Document,
}

impl DagVersion {
    fn of(number: u32, record: &DefinitionRecord) -> Option<DagVersion> {
        let definition: Definition = record.json.read().ok()?;
        Some(DagVersion {
            number,
            sha256: sha256_hex(record.json.as_str().as_bytes()),
            published_at: record.published_at,
            document: *definition.graph?,
        })
    }
}

/// One version of a dag.
pub(super) fn version(
    rows: &mut impl Rows,
    name: &JobName,
    number: u32,
) -> Result<Option<DagVersion>, StoreError> {
    let record = rows.get(&DEFINITIONS, &(TENANT, name.clone(), number))?;
    Ok(record.and_then(|record: DefinitionRecord| DagVersion::of(number, &record)))
}

/// Its versions for a page, one more than it holds; what was a job of the same name is passed over.
pub(super) fn versions(
    rows: &mut impl Rows,
    name: &JobName,
    paging: &Paging,
    after: Option<u32>,
) -> Result<Vec<DagVersion>, StoreError> {
    let prefix = (TENANT, name.clone());
    let mut place = after.map(|number| (TENANT, name.clone(), number));
    let mut found = Vec::new();
    while found.len() <= paging.size {
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let Some((key, record)) = scan(rows, &DEFINITIONS, &prefix, place.as_ref(), 1)?.pop() else {
            break;
        };
        found.extend(DagVersion::of(key.2, &record));
        place = Some(key);
    }
    Ok(found)
}

/// A change that only the file can bring.
pub(super) fn refuse_change(app: &App, name: &JobName) -> Result<(), Problem> {
    match of(&app.engine.book(), name) {
        Some(_) => Err(Problem::forbidden_by_state(format!(
            "'{name}' is a dag of the configuration: change its file and reload"
        ))),
        None => Ok(()),
    }
}
