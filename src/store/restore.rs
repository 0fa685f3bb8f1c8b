//! A state directory from a backup: checked as a whole, and safe beside the daemon that the backup was made of.
//!
//! That daemon may be alive on this machine, with the processes that the backup names. So no claim comes along as it was:
//! each is said to live where nobody can look, without a process, and is put back when its lease is seen to have lapsed.

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};

use redb::{Database, ReadOnlyDatabase, ReadTransaction, ReadableDatabase};

use super::backup;
use super::blob_copies::{self, CopiedBlobs};
use super::blob_names;
use super::blobs::{BlobError, Blobs};
use super::check::{self, Checked};
use super::coordination::{DirectoryError, HeldLock, STORE_NAME, StateDirectory, UNFINISHED_NAME};
use super::error::StoreError;
use super::migrate::{self, FORMAT};
use super::rows::{LiveAttempt, Number};
use super::table::Rows;
use super::tables::{
    LIVE_ATTEMPTS, META, NODES, READY_STEPS, SLOT_ENTRIES, SLOT_RUNNING, SLOT_WAITING, TASK_CLAIMS,
};
use super::tx::{ReadTx, Tx};
use crate::domain::slots::claim::{ClockId, Place};
use crate::domain::slots::entry::EntryState;
use crate::os::failpoint::Faults;
use crate::words::ids::{EntryId, TenantId};
use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::Now;

/// Claims rewritten at once.
const PAGE: usize = 500;

/// What a backup holds.
#[derive(Debug, Clone)]
pub struct Verified {
    /// Bytes of the file.
    pub bytes: u64,
    /// Its BLAKE3 in hex digits.
    pub blake3: String,
    /// The format that it was written in.
    pub format: u32,
    /// Payloads that are too large for a row.
    pub blobs: u64,
    /// Rows of all tables, and what the check of the store and of the blobs found.
    pub checked: Checked,
}

/// What was restored.
#[derive(Debug, Clone)]
pub struct Restored {
    /// The backup.
    pub backup: Verified,
    /// Executions that were going on in it.
    pub interrupted: u64,
    /// Daemons that it knows.
    pub nodes: Vec<NodeName>,
    /// What waits for one daemon and no other, by its name.
    pub bound: BTreeMap<String, u64>,
}

/// Why nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// There is no such file, or it cannot be read.
    #[error("{path} cannot be read: {cause}")]
    Unreadable {
        /// As it was given.
        path: String,
        /// Why.
        cause: StoreError,
    },
    /// It is something else.
    #[error("{0} is no backup of ductor")]
    NoBackup(String),
    /// A newer ductor made it.
    #[error("{path} has format {found}; this ductor reads up to {FORMAT}: use the newer version")]
    TooNew {
        /// As it was given.
        path: String,
        /// Its number.
        found: u32,
    },
    /// A daemon lives there.
    #[error("{path} is in use by a daemon{holder}; name an empty or a new directory")]
    Held {
        /// As it was given.
        path: String,
        /// Its name and pid in words.
        holder: String,
    },
    /// Something is there.
    #[error("{path} is not empty; name an empty or a new directory")]
    NotEmpty {
        /// As it was given.
        path: String,
    },
    /// It cannot be used.
    #[error(transparent)]
    Directory(#[from] DirectoryError),
    /// It cannot be written.
    #[error("{path} cannot be written: {cause}; nothing is left of the restore")]
    Unwritten {
        /// As it was given.
        path: String,
        /// Why.
        cause: StoreError,
    },
    /// The check found something.
    #[error("the backup is damaged ({} found); nothing was restored", .0.len())]
    Damaged(Vec<String>),
}

impl RestoreError {
    /// True when the target stands in the way.
    pub fn is_conflict(&self) -> bool {
        matches!(self, RestoreError::Held { .. } | RestoreError::NotEmpty { .. })
    }
}

/// Checks a backup and changes nothing. One that must be repaired or brought up is looked at through a copy in `scratch`.
pub fn verify(file: &Path, scratch: &Path, now: Now) -> Result<Verified, RestoreError> {
    let unreadable = |cause| unreadable(file, cause);
    let peeked = peek(file)?;
    let (bytes, blake3) = backup::sync_and_hash(file).map_err(|error| unreadable(error.into()))?;
    let (format, (checked, blobs)) = match peeked {
        Some((database, FORMAT)) => (FORMAT, check_all(&database).map_err(unreadable)?),
        Some(_) | None => {
            let copy = Scratch(scratch.join(format!(".{}.verify", EntryId::random())));
            copy_of(file, &copy.0).map_err(unreadable)?;
            let (database, format) = brought_up(&copy.0, file, now)?;
            (format, check_all(&database).map_err(unreadable)?)
        }
    };
    Ok(Verified {
        bytes,
        blake3,
        format,
        blobs,
        checked,
    })
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

fn unreadable(file: &Path, cause: StoreError) -> RestoreError {
    RestoreError::Unreadable {
        path: file.display().to_string(),
        cause,
    }
}

/// Looks at a backup without a change to it: its format, or `None` when it was not closed in order.
fn peek(file: &Path) -> Result<Option<(ReadOnlyDatabase, u32)>, RestoreError> {
    let unreadable = |cause| unreadable(file, cause);
    let no_backup = || RestoreError::NoBackup(file.display().to_string());
    let metadata = std::fs::metadata(file).map_err(|error| unreadable(error.into()))?;
    if !metadata.is_file() || !backup::is_store(file).map_err(|error| unreadable(error.into()))? {
        return Err(no_backup());
    }
    let Some(database) = backup::open_as_it_is(file).map_err(unreadable)? else {
        return Ok(None);
    };
    let snapshot = database.begin_read().map_err(|error| unreadable(error.into()))?;
    let format = known_format(&snapshot, file)?;
    drop(snapshot);
    Ok(Some((database, format)))
}

/// The format of a store that this binary can read.
fn known_format(snapshot: &ReadTransaction, file: &Path) -> Result<u32, RestoreError> {
    let path = file.display().to_string();
    match migrate::format_of(snapshot) {
        Ok(Some(found)) if found > FORMAT => Err(RestoreError::TooNew { path, found }),
        Ok(Some(found)) => Ok(found),
        Ok(None) => Err(RestoreError::NoBackup(path)),
        Err(error) => Err(unreadable(file, error)),
    }
}

/// Opens a copy of `file`, repairs it if need be, and brings it to the current format; with the format that it had.
fn brought_up(copy: &Path, file: &Path, now: Now) -> Result<(Database, u32), RestoreError> {
    let unreadable = |cause| unreadable(file, cause);
    let database = backup::open_to_change(copy).map_err(unreadable)?;
    let snapshot = database.begin_read().map_err(|error| unreadable(error.into()))?;
    let format = known_format(&snapshot, file)?;
    drop(snapshot);
    if format < FORMAT {
        migrate::raise(&database, now).map_err(unreadable)?;
    }
    Ok((database, format))
}

/// Checks the rows and the copies of blobs, and counts both.
fn check_all(database: &impl ReadableDatabase) -> Result<(Checked, u64), StoreError> {
    let CopiedBlobs { names, mut findings } = blob_copies::check_in(&database.begin_read()?)?;
    let mut tx = ReadTx::new(database.begin_read()?);
    let mut all = check::check(&mut tx)?;
    all.append(&mut findings);
    let mut unnamed = names.clone();
    for named in blob_names::all(&mut tx)?.into_keys() {
        if !names.contains(&named) {
            all.push(BlobError::Missing(named).to_string());
        }
        unnamed.remove(&named);
    }
    let checked = Checked {
        findings: all,
        rows: tx.count_rows()?,
        unnamed_blobs: unnamed.len() as u64,
        unread_blobs: 0,
    };
    Ok((checked, names.len() as u64))
}

/// Copies the bytes, for the copy to be changed.
fn copy_of(from: &Path, to: &Path) -> Result<(), StoreError> {
    let mut target = File::create_new(to)?;
    std::io::copy(&mut File::open(from)?, &mut target)?;
    target.sync_all()?;
    Ok(())
}

/// Makes a state directory of a backup. With `damaged` also of one in which the check finds something.
pub fn restore(file: &Path, into: &Path, damaged: bool, now: Now) -> Result<Restored, RestoreError> {
    drop(peek(file)?);
    let made = Made::begin(into)?;
    let path = into.display().to_string();
    let unwritten = |cause| RestoreError::Unwritten {
        path: path.clone(),
        cause,
    };
    // Whoever starts a daemon here meanwhile is told to wait. The network is the business of the daemon's own start.
    let directory = StateDirectory::prepare(into, true)?;
    let _lock: HeldLock = match directory.take_format_lock() {
        Ok(Some(lock)) => lock,
        Ok(None) => return Err(held(&directory, path)),
        Err(error) => return Err(unwritten(error.into())),
    };
    let hashed = backup::sync_and_hash(file);
    let (bytes, blake3) = hashed.map_err(|error| unreadable(file, error.into()))?;
    let unfinished = directory.root().join(UNFINISHED_NAME);
    copy_of(file, &unfinished).map_err(&unwritten)?;
    let (database, format) = brought_up(&unfinished, file, now)?;
    let Settled {
        interrupted,
        nodes,
        bound,
        checked,
        blobs,
    } = settle_in(database, directory.root(), now).map_err(&unwritten)?;
    if !damaged && !checked.findings.is_empty() {
        return Err(RestoreError::Damaged(checked.findings));
    }
    let finish = || -> Result<(), StoreError> {
        File::open(&unfinished)?.sync_all()?;
        for node in &nodes {
            directory.know_node(node)?;
        }
        std::fs::rename(&unfinished, directory.root().join(STORE_NAME))?;
        File::open(directory.root())?.sync_all()?;
        directory.write_format()
    };
    finish().map_err(&unwritten)?;
    made.keep();
    Ok(Restored {
        backup: Verified {
            bytes,
            blake3,
            format,
            blobs,
            checked,
        },
        interrupted,
        nodes,
        bound,
    })
}

fn held(directory: &StateDirectory, path: String) -> RestoreError {
    let holders = directory.holders();
    let holder = match holders.first() {
        None => String::new(),
        Some((name, None)) => format!(", node {name}"),
        Some((name, Some(pid))) => format!(", node {name} (pid {pid})"),
    };
    RestoreError::Held { path, holder }
}

/// A directory that was empty, or was not there; it is so again unless the restore succeeds.
struct Made {
    root: PathBuf,
    is_new: bool,
    kept: bool,
}

impl Made {
    fn begin(into: &Path) -> Result<Made, RestoreError> {
        let path = into.display().to_string();
        let unwritten = |error: std::io::Error| RestoreError::Unwritten {
            path: path.clone(),
            cause: error.into(),
        };
        let is_new = match std::fs::read_dir(into) {
            Ok(mut entries) => match entries.next() {
                None => false,
                Some(_) => return Err(in_the_way(into, path)),
            },
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => true,
            Err(error) => return Err(unwritten(error)),
        };
        if is_new {
            std::fs::create_dir_all(into).map_err(unwritten)?;
        }
        Ok(Made {
            root: into.to_path_buf(),
            is_new,
            kept: false,
        })
    }

    fn keep(mut self) {
        self.kept = true;
    }
}

fn in_the_way(into: &Path, path: String) -> RestoreError {
    if into.join(UNFINISHED_NAME).exists() {
        return DirectoryError::Unfinished { path }.into();
    }
    match StateDirectory::existing(into) {
        Some(directory) if !directory.holders().is_empty() => held(&directory, path),
        Some(_) | None => RestoreError::NotEmpty { path },
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if self.is_new {
            drop(std::fs::remove_dir_all(&self.root));
            return;
        }
        for entry in std::fs::read_dir(&self.root).into_iter().flatten().flatten() {
            let path = entry.path();
            drop(std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path)));
        }
    }
}

/// What became of a copy.
struct Settled {
    interrupted: u64,
    nodes: Vec<NodeName>,
    bound: BTreeMap<String, u64>,
    checked: Checked,
    blobs: u64,
}

/// Takes the teeth out of the claims of the copy, checks it, and makes files of its blobs.
fn settle_in(mut database: Database, root: &Path, now: Now) -> Result<Settled, StoreError> {
    let transaction = database.begin_write()?;
    let mut tx = Tx::new(&transaction, now);
    let interrupted = neutralise(&mut tx)?;
    for counter in ["next_fence", "sequence"] {
        let key = (counter.to_owned(),);
        let stands = tx.get(&META, &key)?.map_or(0, |number: Number| number.0);
        tx.put(&META, &key, &Number(stands + limits::RESTORE_LEAP))?;
    }
    let nodes = tx.scan_each(&NODES, &(), None, usize::MAX)?;
    let nodes = { nodes.into_iter() }.filter_map(|each| each.row.ok().map(|((name,), _)| name));
    let nodes = nodes.collect();
    let bound = bound_work(&mut tx)?;
    drop(tx);
    transaction.commit()?;
    let (checked, blobs) = check_all(&database)?;
    blob_copies::take_out(&mut database, &Blobs::of_state(root, Faults::default()))?;
    database.close()?;
    Ok(Settled {
        interrupted,
        nodes,
        bound,
        checked,
        blobs,
    })
}

/// Work that waits for the daemon of one name.
fn bound_work(tx: &mut Tx<'_>) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut bound = BTreeMap::new();
    let waiting = tx.scan_each(&SLOT_WAITING, &(), None, usize::MAX)?;
    let ready = tx.scan_each(&READY_STEPS, &(), None, usize::MAX)?;
    let waiting = { waiting.into_iter() }.filter_map(|each| each.row.ok()?.1.node);
    let ready = { ready.into_iter() }.filter_map(|each| each.row.ok()?.1.node);
    for node in waiting.chain(ready) {
        *bound.entry(node.to_string()).or_default() += 1;
    }
    Ok(bound)
}

/// Rewrites every claim. A row that cannot be read stays: no daemon can read it either, so none acts on it.
fn neutralise(tx: &mut Tx<'_>) -> Result<u64, StoreError> {
    let mut after: Option<Vec<u8>> = None;
    let mut count = 0;
    loop {
        let page = tx.scan_each(&LIVE_ATTEMPTS, &(), after.as_deref(), PAGE)?;
        let Some(last) = page.last() else { return Ok(count) };
        after = Some(last.key.clone());
        for each in page {
            let Ok((key, mut live)) = each.row else { continue };
            live.claim.place = Place::of_a_backup();
            live.claim.process = None;
            neutralise_entry(tx, &live)?;
            neutralise_task(tx, live.claim.fence)?;
            tx.put(&LIVE_ATTEMPTS, &key, &live)?;
            count += 1;
        }
    }
}

/// The claim of a remote worker: its worker may still answer, to this store or to the original.
fn neutralise_task(tx: &mut Tx<'_>, fence: u64) -> Result<(), StoreError> {
    let key = (TenantId::DEFAULT, fence);
    match tx.get(&TASK_CLAIMS, &key) {
        Ok(Some(mut claim)) => {
            claim.clock = ClockId::of_a_backup();
            tx.put(&TASK_CLAIMS, &key, &claim)
        }
        Ok(None) => Ok(()),
        Err(error) if error.is_row_fault() => Ok(()),
        Err(error) => Err(error),
    }
}

/// The lease of a claim, and its entry, which has the claim too. Neither moves in an index.
fn neutralise_entry(tx: &mut Tx<'_>, live: &LiveAttempt) -> Result<(), StoreError> {
    let Some(named) = &live.entry else { return Ok(()) };
    let skip_unreadable = |error: StoreError| {
        if error.is_row_fault() {
            Ok(None)
        } else {
            Err(error)
        }
    };
    let key = (TenantId::DEFAULT, named.slot_pool.clone(), named.seq);
    if let Some(mut row) = tx.get(&SLOT_RUNNING, &key).or_else(skip_unreadable)? {
        row.lease.clock = ClockId::of_a_backup();
        tx.put(&SLOT_RUNNING, &key, &row)?;
    }
    let key = (TenantId::DEFAULT, named.seq);
    let skip_unreadable = |error: StoreError| {
        if error.is_row_fault() {
            Ok(None)
        } else {
            Err(error)
        }
    };
    if let Some(mut entry) = tx.get(&SLOT_ENTRIES, &key).or_else(skip_unreadable)?
        && let EntryState::Running { claim } = &mut entry.state
    {
        *claim = live.claim.clone();
        tx.put(&SLOT_ENTRIES, &key, &entry)?;
    }
    Ok(())
}
