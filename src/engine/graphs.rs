//! Compiled definitions, kept while they are used: a definition is parsed once, not at each tick.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::build::Graph;
use crate::store::rows::DefinitionRecord;
use crate::store::tables::DEFINITIONS;
use crate::store::{Rows, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;

const TENANT: TenantId = TenantId::DEFAULT;

type Versions = HashMap<(JobName, u32), Arc<Graph>>;

/// The compiled definitions. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct GraphShelf {
    inner: Arc<Mutex<Versions>>,
}

impl GraphShelf {
    /// The graph of a version, compiled now or before; `None` if there is no such version or it is a job's.
    pub fn get(
        &self,
        rows: &mut impl Rows,
        name: &JobName,
        version: u32,
    ) -> Result<Option<Arc<Graph>>, StoreError> {
        let key = (name.clone(), version);
        let known = self
            .inner
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&key)
            .cloned();
        if known.is_some() {
            return Ok(known);
        }
        let record: Option<DefinitionRecord> = rows.get(&DEFINITIONS, &(TENANT, name.clone(), version))?;
        let Some(record) = record else { return Ok(None) };
        let damaged = |cause: String| StoreError::Unreadable {
            table: "definitions",
            key: format!("{name} version {version}"),
            cause,
        };
        let definition: Definition = record.json.read().map_err(|error| damaged(error.to_string()))?;
        let Some(document) = definition.graph else {
            return Ok(None);
        };
        let graph = Arc::new(Graph::build(*document).map_err(|error| damaged(error.to_string()))?);
        let mut versions = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if versions.len() >= limits::GRAPHS_KEPT_MAX {
            versions.clear();
        }
        versions.insert(key, Arc::clone(&graph));
        Ok(Some(graph))
    }
}
