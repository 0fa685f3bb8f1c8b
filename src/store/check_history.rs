//! The check of histories: what a run's header counts is what its rows have.

use std::collections::BTreeMap;

use super::check::{Findings, every};
use super::error::StoreError;
use super::tables::{HISTORY, RUNS};
use super::tx::ReadTx;
use crate::domain::workflow::graph::history::Retention;
use crate::words::ids::RunId;

/// Lines that are kept, and those of them that may be compacted.
type Lines = (u64, u64);

pub(super) fn check(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut counted: BTreeMap<RunId, Lines> = BTreeMap::new();
    let unreadable = every(tx, &HISTORY, |(_, run, _), row| {
        let lines = counted.entry(run).or_default();
        lines.0 += row.items.len() as u64;
        let goes = row
            .items
            .iter()
            .filter(|line| line.class == Retention::Compactable);
        lines.1 += goes.count() as u64;
    })?;
    if !unreadable.is_empty() {
        // Their lines are not counted; the rows themselves are reported already.
        return Ok(());
    }
    every(tx, &RUNS, |(_, id), run| {
        let Some(header) = run.graph else { return };
        let said = (header.history.kept, header.history.compactable);
        let real = counted.get(&id).copied().unwrap_or_default();
        if said != real {
            findings.push(format!(
                "history: {id} says {} lines, {} of them compactable, and has {} and {}",
                said.0, said.1, real.0, real.1
            ));
        }
    })?;
    Ok(())
}
