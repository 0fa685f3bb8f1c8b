//! A backup: one redb file of its own with every row of one snapshot, copied as bytes.
//!
//! Rows that cannot be decoded are copied as they are: what a newer or a repaired ductor can read is not lost by a backup.
//! The copy is written under a temporary name beside its target, synced, and given its name only then; a file that is
//! there already is never written over. The blobs of the state directory are in it too, in a table of their own
//! (`blob_copies`). Attempt logs lie beside the store and are no part of it.

use std::fs::{File, OpenOptions};
use std::io::Read;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use redb::{
    Database, DatabaseError, ReadOnlyDatabase, ReadTransaction, ReadableDatabase, ReadableTable,
    TableDefinition, TableHandle,
};

use super::blob_copies::{self, BLOBS_NAME, CopyFault};
use super::blobs::Blobs;
use super::coordination::{HeldLock, StateDirectory};
use super::error::StoreError;
use super::handle::Store;
use super::migrate::{self, FORMAT};
use crate::os::failpoint::Faults;
use crate::words::ids::EntryId;

/// Bytes of pages that a copy keeps in memory, and that are hashed at once.
const CACHE_BYTES: usize = 8 << 20;
/// Only its owner reads a backup: it holds commands and their variables.
const MODE: u32 = 0o600;

/// A finished backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Backup {
    /// Where it is.
    pub path: PathBuf,
    /// Its size.
    pub bytes: u64,
    /// The BLAKE3 of the file, in hex digits.
    pub blake3: String,
    /// Rows of all tables.
    pub rows: u64,
    /// Payloads that are too large for a row.
    pub blobs: u64,
    /// The format of the store.
    pub format: u32,
}

/// Why there is no backup. Nothing is left of it.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BackupError {
    /// Something has that name.
    #[error("{0} is there already and is not written over; name another file")]
    Exists(String),
    /// The name is no place for a file.
    #[error("{path} cannot be made: {cause}")]
    Target {
        /// As it was given.
        path: String,
        /// Why, and what to do.
        cause: &'static str,
    },
    /// A copy inside the state directory is lost with it.
    #[error("{0} is inside the state directory and would be lost with it; name a place outside")]
    Inside(String),
    /// The directory is being changed as a whole.
    #[error("the state directory is being migrated, compacted or restored; try again when that is done")]
    Busy,
    /// There is nothing to back up.
    #[error("there is no store in {0} yet; `ductor serve` makes it")]
    NoStore(String),
    /// The store cannot be read.
    #[error("the store cannot be read: {0}")]
    Unreadable(StoreError),
    /// The copy cannot be written.
    #[error("{path} cannot be written: {cause}; nothing is left of it")]
    Unwritten {
        /// As it was given.
        path: String,
        /// Why.
        cause: StoreError,
    },
}

impl BackupError {
    /// True when a name or a state stands in the way and not the disk.
    pub fn is_conflict(&self) -> bool {
        match self {
            BackupError::Exists(_) | BackupError::Inside(_) | BackupError::Busy => true,
            BackupError::Target { .. }
            | BackupError::NoStore(_)
            | BackupError::Unreadable(_)
            | BackupError::Unwritten { .. } => false,
        }
    }
}

/// Checks a target before anything is read.
pub fn check_target(to: &Path, state: &Path) -> Result<(), BackupError> {
    let shown = to.display().to_string();
    let cannot = |cause| BackupError::Target {
        path: shown.clone(),
        cause,
    };
    if to.file_name().is_none() {
        return Err(cannot("that is no name of a file"));
    }
    let folder = folder_of(to);
    let real = match folder.canonicalize() {
        Ok(real) if real.is_dir() => real,
        Ok(_) => return Err(cannot("its folder is no folder")),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(cannot("its folder does not exist; make it first"));
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            return Err(cannot("its folder may not be entered"));
        }
        Err(_) => return Err(cannot("its folder cannot be reached")),
    };
    if state.canonicalize().is_ok_and(|state| real.starts_with(state)) {
        return Err(BackupError::Inside(shown));
    }
    if to.symlink_metadata().is_ok() {
        return Err(BackupError::Exists(shown));
    }
    Ok(())
}

/// The folder of a file; a bare name stands in the working directory.
fn folder_of(file: &Path) -> &Path {
    match file.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        Some(_) | None => Path::new("."),
    }
}

/// Copies a snapshot of an open store, while others write.
pub fn write(store: &Store, to: &Path) -> Result<Backup, BackupError> {
    check_target(to, store.directory())?;
    let blobs = Blobs::of_state(store.directory(), Faults::default());
    // Nothing that the snapshot names may be swept before it is copied.
    let _kept = kept(&blobs)?;
    // A store that is opened anew meanwhile ends the snapshot; the second try has another one.
    let tried = store.read(|tx| match write_snapshot(tx.snapshot(), &blobs, to) {
        Err(BackupError::Unreadable(StoreError::NotOpen)) => Err(StoreError::NotOpen),
        other => Ok(other),
    });
    tried.unwrap_or_else(|error| Err(BackupError::Unreadable(error)))
}

/// Copies the store of a directory that no daemon has open. What a kill left is repaired first, as by a start.
pub fn write_from_files(state: &Path, to: &Path) -> Result<Backup, BackupError> {
    let Some(directory) = StateDirectory::existing(state) else {
        return Err(BackupError::NoStore(state.display().to_string()));
    };
    check_target(to, state)?;
    let unreadable = |error: std::io::Error| BackupError::Unreadable(error.into());
    let _lock = directory
        .share_format_lock()
        .map_err(unreadable)?
        .ok_or(BackupError::Busy)?;
    let source = Source::open(&directory.store_file()).map_err(BackupError::Unreadable)?;
    let blobs = Blobs::of_state(state, Faults::default());
    let _kept = kept(&blobs)?;
    write_snapshot(&source.snapshot().map_err(BackupError::Unreadable)?, &blobs, to)
}

fn kept(blobs: &Blobs) -> Result<Option<HeldLock>, BackupError> {
    { blobs.keep_all() }.map_err(|error| BackupError::Unreadable(error.into()))
}

/// True when a file begins as every store does.
pub(super) fn is_store(path: &Path) -> std::io::Result<bool> {
    const MAGIC: &[u8] = b"redb\x1A\x0A\xA9\x0D\x0A";
    let mut head = Vec::new();
    File::open(path)?
        .take(MAGIC.len() as u64)
        .read_to_end(&mut head)?;
    Ok(head == MAGIC)
}

/// Opens a file that was closed in order, without a change to it; `None` when it must be repaired first.
pub(super) fn open_as_it_is(path: &Path) -> Result<Option<ReadOnlyDatabase>, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    match builder.open_read_only(path) {
        Ok(database) => Ok(Some(database)),
        Err(DatabaseError::RepairAborted) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

/// Opens a file to change it, with a small cache.
pub(super) fn open_to_change(path: &Path) -> Result<Database, StoreError> {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    Ok(builder.open(path)?)
}

/// A store file that is only read.
pub(super) enum Source {
    /// It was closed in order.
    Clean(ReadOnlyDatabase),
    /// It had to be repaired.
    Repaired(Database),
}

impl Source {
    /// Opens a file without a change to it, if it was closed in order.
    pub(super) fn open(path: &Path) -> Result<Source, StoreError> {
        if std::fs::metadata(path)?.len() == 0 {
            return Err(StoreError::Missing);
        }
        Ok(match open_as_it_is(path)? {
            Some(database) => Source::Clean(database),
            None => Source::Repaired(open_to_change(path)?),
        })
    }

    pub(super) fn snapshot(&self) -> Result<ReadTransaction, StoreError> {
        Ok(match self {
            Source::Clean(database) => database.begin_read()?,
            Source::Repaired(database) => database.begin_read()?,
        })
    }
}

/// A file under a temporary name, removed unless it was given its own.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

pub(super) fn write_snapshot(
    snapshot: &ReadTransaction,
    blobs: &Blobs,
    to: &Path,
) -> Result<Backup, BackupError> {
    let shown = to.display().to_string();
    let format = match migrate::format_of(snapshot).map_err(BackupError::Unreadable)? {
        Some(found) if found > FORMAT => {
            return Err(BackupError::Unreadable(StoreError::TooNew {
                found,
                known: FORMAT,
            }));
        }
        found => found.unwrap_or(0),
    };
    let written = |error: StoreError| BackupError::Unwritten {
        path: shown.clone(),
        cause: error,
    };
    let name = to.file_name().unwrap_or_default().to_string_lossy();
    let partial = Partial(folder_of(to).join(format!(".{name}.{}.partial", EntryId::random())));
    let made = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(MODE)
        .open(&partial.0);
    made.map_err(|error| written(error.into()))?;
    let Copied { rows, blobs } = copy_all(snapshot, blobs, &partial.0, &shown)?;
    let (bytes, blake3) = sync_and_hash(&partial.0).map_err(|error| written(error.into()))?;
    match publish(&partial.0, to) {
        Ok(()) => Ok(Backup {
            path: to.to_path_buf(),
            bytes,
            blake3,
            rows,
            blobs,
            format,
        }),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Err(BackupError::Exists(shown)),
        Err(error) => Err(written(error.into())),
    }
}

struct Copied {
    rows: u64,
    blobs: u64,
}

fn copy_all(
    snapshot: &ReadTransaction,
    blobs: &Blobs,
    to: &Path,
    shown: &str,
) -> Result<Copied, BackupError> {
    fn unread(error: impl Into<StoreError>) -> BackupError {
        BackupError::Unreadable(error.into())
    }
    let unwritten = |error: StoreError| BackupError::Unwritten {
        path: shown.to_owned(),
        cause: error,
    };
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    let target = builder.create(to).map_err(|error| unwritten(error.into()))?;
    let transaction = target.begin_write().map_err(|error| unwritten(error.into()))?;
    let mut rows = 0;
    for handle in snapshot.list_tables().map_err(unread)? {
        // Somebody may have made a store of a backup by hand; the files of the directory are what counts.
        if handle.name() == BLOBS_NAME {
            continue;
        }
        let definition: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new(handle.name());
        let from = snapshot.open_table(definition).map_err(unread)?;
        let made = transaction.open_table(definition);
        let mut table = made.map_err(|error| unwritten(error.into()))?;
        for row in from.iter().map_err(unread)? {
            let (key, value) = row.map_err(unread)?;
            let inserted = table.insert(key.value(), value.value());
            inserted.map_err(|error| unwritten(error.into()))?;
            rows += 1;
        }
    }
    let blobs = blob_copies::put_in(blobs, &transaction).map_err(|fault| match fault {
        CopyFault::Unread(cause) => unread(cause),
        CopyFault::Unwritten(cause) => unwritten(cause),
    })?;
    transaction.commit().map_err(|error| unwritten(error.into()))?;
    target.close().map_err(|error| unwritten(error.into()))?;
    Ok(Copied { rows, blobs })
}

/// Size and hash of a file whose bytes are on the disk.
pub(super) fn sync_and_hash(path: &Path) -> std::io::Result<(u64, String)> {
    let mut file = File::open(path)?;
    file.sync_all()?;
    let mut hash = blake3::Hasher::new();
    let mut buffer = vec![0; 256 << 10];
    let mut bytes = 0;
    loop {
        let read = file.read(&mut buffer)?;
        if read == 0 {
            return Ok((bytes, hash.finalize().to_hex().to_string()));
        }
        hash.update(&buffer[..read]);
        bytes += read as u64;
    }
}

/// Gives the finished file its name, unless something has it. A second link fails where a rename would replace.
fn publish(partial: &Path, to: &Path) -> std::io::Result<()> {
    match std::fs::hard_link(partial, to) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Err(error),
        // A file system without links.
        Err(_) if to.symlink_metadata().is_ok() => return Err(std::io::ErrorKind::AlreadyExists.into()),
        Err(_) => std::fs::rename(partial, to)?,
    }
    File::open(folder_of(to))?.sync_all()
}
