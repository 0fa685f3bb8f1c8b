//! What a definition may refer to outside of itself.

use std::collections::{BTreeMap, BTreeSet};

use super::levels::levels;
use crate::domain::workflow::graph::document::Document;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::words::names::SlotPoolName;

/// What there is besides the document.
#[derive(Debug, Clone, Default)]
pub struct World {
    /// Slot pools with their slots.
    pub slot_pools: BTreeMap<SlotPoolName, u32>,
    /// Definitions that can be reached from the document, by name.
    pub families: BTreeMap<String, Family>,
    /// Names of definitions that might have been meant.
    pub names: BTreeSet<String>,
}

/// A definition with its versions, as far as somebody refers to them.
#[derive(Debug, Clone, Default)]
pub struct Family {
    /// The version that is begun when none is named; `None` if nothing is published, or nothing that may begin.
    pub newest: Option<u32>,
    /// Versions.
    pub versions: BTreeMap<u32, Version>,
}

/// A version of a definition.
#[derive(Debug, Clone, Default)]
pub struct Version {
    /// No new runs of it begin.
    pub deprecated: bool,
    /// The definitions that it calls.
    pub calls: Vec<Call>,
}

/// A sub-workflow: the name of its definition, and its version if one is named.
pub type Call = (String, Option<u32>);

/// The definitions that a document calls, bodies included, each once.
pub fn calls(document: &Document) -> Vec<Call> {
    let mut found = BTreeSet::new();
    for level in levels(document) {
        for step in level.steps {
            if let StepKind::Subworkflow(call) = &step.kind {
                found.insert((call.family_slug.clone(), call.version));
            }
        }
    }
    found.into_iter().collect()
}
