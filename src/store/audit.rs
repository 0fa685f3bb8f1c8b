//! The audit: the whole check of a stopped store, and what its runs have come to, so that an outside record can be held
//! against it. Every byte that belongs to the store is read and its checksum compared, which a daemon never takes time for.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use super::blob_names;
use super::blobs::Blobs;
use super::check::{self, Checked, Findings};
use super::error::StoreError;
use super::table::Rows;
use super::tables::{ATTEMPTS, NAMES, RUNS};
use super::tx::ReadTx;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::run::RunState;
use crate::os::failpoint::Faults;
use crate::words::ids::RunId;

/// What stood in the files.
#[derive(Debug, Clone)]
pub struct Audited {
    /// What differs, and how many rows there are.
    pub checked: Checked,
    /// All runs.
    pub runs: BTreeMap<RunId, AuditedRun>,
    /// Stands for the content of all rows: equal for equal content.
    pub content: u64,
}

/// A run, as far as an audit is concerned.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedRun {
    /// Its job.
    pub job: String,
    /// Where it stands.
    pub state: RunState,
    /// Executions that have ended.
    pub executions: u32,
    /// Those of them that nobody saw end: the daemon died, or lost its claim.
    pub lost: u32,
}

/// Rows read at once.
const PAGE: usize = 1_000;

/// Reads the files of a stopped daemon. Damage of the file is an error that says so, never a panic.
pub fn audit_files(directory: &Path) -> Result<Audited, StoreError> {
    let (_database, mut tx) = check::open_stopped(directory)?;
    let mut checked = Checked {
        findings: check::check(&mut tx)?,
        rows: tx.count_rows()?,
        unnamed_blobs: 0,
        unread_blobs: 0,
    };
    let named = blob_names::all(&mut tx)?;
    let blobs = Blobs::of_state(directory, Faults::default()).check(&named, u64::MAX)?;
    checked.findings.extend(blobs.findings);
    checked.unnamed_blobs = blobs.unnamed;
    let runs = runs_of(&mut tx, &mut checked.findings)?;
    let content = content_of(&mut tx)?;
    Ok(Audited {
        checked,
        runs,
        content,
    })
}

fn runs_of(tx: &mut ReadTx, findings: &mut Findings) -> Result<BTreeMap<RunId, AuditedRun>, StoreError> {
    let mut runs = BTreeMap::new();
    let unreadable = check::every(tx, &RUNS, |(_, id), run| {
        let audited = AuditedRun {
            job: run.definition.to_string(),
            state: run.state,
            executions: 0,
            lost: 0,
        };
        runs.insert(id, audited);
    })?;
    // The check has told of them; a run that is only missing here would look lost.
    findings.extend(unreadable);
    check::every(tx, &ATTEMPTS, |(_, id, _, _, _), attempt| {
        if let Some(run) = runs.get_mut(&id) {
            run.executions += 1;
            run.lost += u32::from(attempt.outcome == Outcome::Lost);
        }
    })?;
    Ok(runs)
}

fn content_of(tx: &mut ReadTx) -> Result<u64, StoreError> {
    let mut content = DefaultHasher::new();
    for table in 0..NAMES.len() {
        let mut after: Option<Vec<u8>> = None;
        loop {
            let page = tx.raw_scan(table, &[], after.as_deref(), false, PAGE)?;
            let Some((last, _)) = page.last() else { break };
            after = Some(last.clone());
            (table, &page).hash(&mut content);
        }
    }
    Ok(content.finish())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::store::tables::META;
    use crate::store::{Store, StoreOptions};
    use crate::words::time::SystemClock;

    fn made() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(StoreOptions::in_directory(folder.path()), Arc::new(SystemClock)).unwrap();
        for name in 0..400 {
            let key = (format!("audited-{name}"),);
            store
                .change_blocking("fill", move |tx| {
                    tx.put(&META, &key, &crate::store::rows::Number(7))?;
                    Ok(())
                })
                .unwrap();
        }
        assert!(store.close(Duration::from_secs(5)));
        folder
    }

    #[test]
    fn a_store_is_audited_and_the_same_twice() {
        let folder = made();
        let first = audit_files(folder.path()).unwrap();
        assert_eq!(first.checked.findings, Findings::new());
        assert!(first.runs.is_empty() && first.checked.rows > 400);
        assert_eq!(audit_files(folder.path()).unwrap().content, first.content);
    }

    #[test]
    fn a_flipped_byte_never_changes_what_is_read_unnoticed() {
        let folder = made();
        let file = folder.path().join("ductor.redb");
        let content = audit_files(folder.path()).unwrap().content;
        let good = std::fs::read(&file).unwrap();
        let mut told = 0;
        for step in 0..60 {
            let mut bad = good.clone();
            let at = (good.len() / 60) * step + step * 7 % 50;
            bad[at] ^= 0x20;
            std::fs::write(&file, &bad).unwrap();
            match audit_files(folder.path()) {
                Ok(audited) if audited.checked.findings.is_empty() => {
                    assert_eq!(
                        audited.content, content,
                        "byte {at} changed an answer and nobody said so"
                    );
                }
                Ok(_) | Err(_) => told += 1,
            }
        }
        assert!(told > 0, "no byte of the samples belonged to the store");
    }
}
