//! The check of definitions of the API: each header against its draft and its versions.

use std::collections::BTreeMap;

use super::check::{Findings, every};
use super::error::StoreError;
use super::tables::{DEFINITIONS, WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, WORKFLOWS};
use super::tx::ReadTx;
use crate::words::names::JobName;

/// What the rows of one definition say, the unreadable ones aside: those are told of elsewhere.
#[derive(Debug, Default)]
struct Rows {
    header: bool,
    drafts: usize,
    /// Versions, and whether new runs of them begin.
    versions: BTreeMap<u32, bool>,
}

pub(super) fn check(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut found: BTreeMap<JobName, Rows> = BTreeMap::new();
    every(tx, &WORKFLOW_DRAFTS, |(_, name), _| {
        found.entry(name).or_default().drafts += 1;
    })?;
    let mut frozen = Vec::new();
    every(tx, &WORKFLOW_VERSIONS, |(tenant, name, version), row| {
        let versions = &mut found.entry(name.clone()).or_default().versions;
        versions.insert(version, row.deprecated.is_none());
        frozen.push((tenant, name, version));
    })?;
    let mut said = Vec::new();
    every(tx, &WORKFLOWS, |(_, name), record| {
        let rows = found.entry(name.clone()).or_default();
        rows.header = true;
        let newest = rows.versions.keys().next_back().copied().unwrap_or(0);
        let good = { rows.versions.iter().rev() }.find(|(_, begins)| **begins);
        let current = good.map_or(0, |(version, _)| *version);
        if (record.newest, record.current) != (newest, current) {
            said.push(format!(
                "workflow {name} says version {} and {} for new runs; its versions say {newest} and {current}",
                record.newest, record.current
            ));
        }
        if usize::from(record.draft.is_some()) != rows.drafts {
            said.push(format!("workflow {name} and its draft do not agree"));
        }
    })?;
    findings.extend(said);
    let orphans = found.iter().filter(|(_, rows)| !rows.header);
    findings.extend(orphans.map(|(name, _)| format!("workflow {name} has rows and no header")));
    for key in frozen {
        use super::table::Rows as _;
        if !tx.has(&DEFINITIONS, &key)? {
            findings.push(format!(
                "workflow {} has no definition of version {}",
                key.1, key.2
            ));
        }
    }
    Ok(())
}
