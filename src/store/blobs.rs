//! The blob area: payloads that are too large for a row, one file each, named by the hash of its bytes:
//! `blobs/ab/<sha256>`.
//!
//! A blob is on the disk before the commit that names it, and is never changed. Nothing counts who names one: a sweep
//! removes what no row names. So that it never takes a blob whose commit is still on its way, every `put` makes the file
//! new or renews its time, and a sweep looks only at files that are old; the two keep each other out by a lock for the
//! instant in which one of them acts. Two daemons may put, read and sweep at the same time.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

use sha2::{Digest, Sha256};

use super::check::Findings;
use super::coordination::HeldLock;
use super::error::StoreError;
use crate::domain::payload::{self, Payload, Sha256Name, TooLarge};
use crate::os;
use crate::os::failpoint::Faults;
use crate::words::ids::{self, EntryId};
use crate::words::limits;
use crate::words::payload::JsonText;
use crate::words::time::Millis;

/// Only its owner reads a blob.
const MODE: u32 = 0o600;
/// Bytes that are hashed at once.
const BUFFER_BYTES: usize = 256 << 10;
/// How the name of a file that is not finished begins.
const PARTIAL: &str = ".partial-";

/// Why a payload cannot be kept or read.
#[derive(Debug, Clone, thiserror::Error)]
pub enum BlobError {
    /// It is larger than any may be.
    #[error(transparent)]
    TooLarge(#[from] TooLarge),
    /// It is no JSON document.
    #[error("the payload is not JSON: {0}")]
    NotJson(String),
    /// A row names it and it is not there.
    #[error("blob {0} is missing from the state directory")]
    Missing(Sha256Name),
    /// Its bytes are not those that its name says.
    #[error("blob {sha256} is damaged: {cause}")]
    Damaged {
        /// Its name.
        sha256: Sha256Name,
        /// What differs.
        cause: String,
    },
    /// The disk refused.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BlobError {
    /// A short word for it that does not change.
    pub fn code(&self) -> &'static str {
        match self {
            BlobError::TooLarge(_) => TooLarge::CODE,
            BlobError::NotJson(_) => "payload.not_json",
            BlobError::Missing(_) => "payload.missing",
            BlobError::Damaged { .. } => "payload.damaged",
            BlobError::Store(_) => "store.unavailable",
        }
    }
}

impl From<std::io::Error> for BlobError {
    fn from(error: std::io::Error) -> BlobError {
        BlobError::Store(error.into())
    }
}

/// What a sweep took away.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Swept {
    /// The blobs.
    pub blobs: Vec<Sha256Name>,
    /// Their bytes.
    pub bytes: u64,
    /// Files that a kill or a full disk had left unfinished.
    pub unfinished: u64,
}

/// What a check of the blob area found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct BlobsChecked {
    /// What differs.
    pub findings: Findings,
    /// Blobs that no row names: a sweep takes them when they are old.
    pub unnamed: u64,
    /// Blobs whose bytes were not read.
    pub unread: u64,
}

/// A file of the blob area.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) sha256: Sha256Name,
    pub(super) path: PathBuf,
}

/// The blob area of one state directory. Its methods wait for the disk: call them from a blocking context.
#[derive(Debug, Clone)]
pub struct Blobs {
    folder: PathBuf,
    faults: Faults,
}

impl Blobs {
    /// The blob area of the state directory `root`.
    pub fn of_state(root: &Path, faults: Faults) -> Blobs {
        Blobs {
            folder: root.join("blobs"),
            faults,
        }
    }

    /// Keeps a text that should be JSON: what the row says afterwards. A large one is on the disk when this returns.
    pub fn put(&self, text: &str) -> Result<Payload, BlobError> {
        payload::check_bytes(text.len() as u64)?;
        let json = JsonText::parse(text).map_err(|error| BlobError::NotJson(error.to_string()))?;
        self.put_json(json)
    }

    /// Keeps a document.
    pub fn put_json(&self, json: JsonText) -> Result<Payload, BlobError> {
        let bytes = json.as_str().len() as u64;
        payload::check_bytes(bytes)?;
        if bytes <= limits::PAYLOAD_INLINE_BYTES_MAX {
            return Ok(Payload::Inline(json));
        }
        let content = json.as_str().as_bytes();
        let sha256 = name_of(content);
        self.keep(sha256, content)?;
        Ok(Payload::Blob { sha256, bytes })
    }

    /// The document of a payload; a blob is compared with its name.
    pub fn read(&self, payload: &Payload) -> Result<JsonText, BlobError> {
        let (sha256, bytes) = match payload {
            Payload::Inline(text) => return Ok(text.clone()),
            Payload::Blob { sha256, bytes } => (*sha256, *bytes),
        };
        let damaged = |cause: String| BlobError::Damaged { sha256, cause };
        self.faults.check("blobs.read")?;
        let file = match File::open(self.path_of(sha256)) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                return Err(BlobError::Missing(sha256));
            }
            Err(error) => return Err(error.into()),
        };
        let has = file.metadata()?.len();
        if has != bytes {
            return Err(damaged(format!("it has {has} bytes, not {bytes}")));
        }
        // It was never larger when it was put, so a row that says so is damaged too.
        payload::check_bytes(bytes)?;
        let mut content = Vec::with_capacity(usize::try_from(bytes).unwrap_or(0));
        file.take(bytes).read_to_end(&mut content)?;
        if name_of(&content) != sha256 {
            return Err(damaged("its bytes have another hash".to_owned()));
        }
        let text = String::from_utf8(content).map_err(|_| damaged("it is not text".to_owned()))?;
        JsonText::parse(&text).map_err(|error| damaged(format!("it is not JSON: {error}")))
    }

    /// The folder of the blobs whose names begin with this byte.
    fn folder_of(&self, first: u8) -> PathBuf {
        self.folder.join(ids::hex(&[first]))
    }

    fn path_of(&self, sha256: Sha256Name) -> PathBuf {
        self.folder_of(sha256.0[0]).join(sha256.to_string())
    }

    fn lock_file(&self) -> PathBuf {
        self.folder.join(".lock")
    }

    /// Keeps sweeps away while the result is held. Where nobody ever put anything nothing is written: there is nothing to
    /// sweep either, and what is put from now on is too young.
    pub fn keep_all(&self) -> std::io::Result<Option<HeldLock>> {
        if self.lock_file().exists() {
            self.share_lock().map(Some)
        } else {
            Ok(None)
        }
    }

    fn share_lock(&self) -> std::io::Result<HeldLock> {
        std::fs::create_dir_all(&self.folder)?;
        HeldLock::wait_to_share(&self.lock_file())
    }

    /// Has the blob made unless it is there. Also one that is there is only then safe to be named when its folder was
    /// synced: another thread may have given it its name this instant.
    fn keep(&self, sha256: Sha256Name, content: &[u8]) -> Result<(), StoreError> {
        let is_there = {
            let _kept = self.share_lock()?;
            renewed(&self.path_of(sha256), content.len() as u64)?
        };
        if is_there {
            return self.sync_folder(sha256);
        }
        self.make(sha256, |file| Ok(file.write_all(content)?))
    }

    /// Makes the file of a blob, whole or not at all.
    pub(super) fn make(
        &self,
        sha256: Sha256Name,
        write: impl FnOnce(&mut File) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let folder = self.folder_of(sha256.0[0]);
        self.make_folder(&folder)?;
        let partial = Partial(folder.join(format!("{PARTIAL}{}", EntryId::random())));
        self.faults.check("blobs.write")?;
        let mut options = OpenOptions::new();
        let mut file = options.write(true).create_new(true).mode(MODE).open(&partial.0)?;
        write(&mut file)?;
        self.faults.check("blobs.sync")?;
        file.sync_all()?;
        {
            let _kept = self.share_lock()?;
            self.faults.check("blobs.rename")?;
            std::fs::rename(&partial.0, self.path_of(sha256))?;
        }
        self.sync_folder(sha256)
    }

    fn sync_folder(&self, sha256: Sha256Name) -> Result<(), StoreError> {
        self.faults.check("blobs.folder")?;
        Ok(File::open(self.folder_of(sha256.0[0]))?.sync_all()?)
    }

    fn make_folder(&self, folder: &Path) -> std::io::Result<()> {
        match std::fs::create_dir(folder) {
            Ok(()) => File::open(&self.folder)?.sync_all(),
            // Who made it may not have synced it yet.
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                File::open(&self.folder)?.sync_all()
            }
            Err(error) => Err(error),
        }
    }

    /// Removes blobs that no row names, and unfinished files, of the folder `first` (all blobs lie in 256 of them), at most
    /// `max` of both: only what is older than `older_than`.
    ///
    /// `is_named` may answer from a snapshot if it is younger than half of `older_than`, and `older_than` must be longer
    /// than twice the time from a `put` to its commit. While a backup is made nothing is removed.
    pub fn sweep(
        &self,
        first: u8,
        mut is_named: impl FnMut(Sha256Name) -> Result<bool, StoreError>,
        older_than: Duration,
        now: Millis,
        max: usize,
    ) -> Result<Swept, StoreError> {
        let age_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        let is_old = |path: &Path| modified_at(path).map(|at| now.since(at) > age_ms);
        let mut going = Vec::new();
        for entry in entries_of(&self.folder_of(first))? {
            if going.len() >= max {
                break;
            }
            let name = entry.file_name();
            let Some(name) = name.to_str() else { continue };
            let sha256 = sha256_of(name);
            if (sha256.is_none() && !name.starts_with(PARTIAL)) || !is_old(&entry.path())? {
                continue;
            }
            match sha256 {
                Some(sha256) if is_named(sha256)? => {}
                sha256 => going.push((sha256, entry.path())),
            }
        }
        let mut swept = Swept::default();
        let patience = Duration::from_millis(limits::BLOB_SWEEP_WAIT_MS);
        if going.is_empty() {
            return Ok(swept);
        }
        let Some(_alone) = HeldLock::take_within(&self.lock_file(), patience)? else {
            return Ok(swept);
        };
        for (sha256, path) in going {
            // Somebody may have put it again since.
            if !is_old(&path)? {
                continue;
            }
            let bytes = std::fs::metadata(&path).map_or(0, |data| data.len());
            match std::fs::remove_file(&path) {
                Ok(()) => {}
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            }
            match sha256 {
                Some(sha256) => {
                    swept.blobs.push(sha256);
                    swept.bytes += bytes;
                }
                None => swept.unfinished += 1,
            }
        }
        Ok(swept)
    }

    /// All blobs, in the order of their names.
    pub(super) fn all(&self) -> Result<Vec<Found>, StoreError> {
        let mut found = Vec::new();
        for first in 0..=u8::MAX {
            for entry in entries_of(&self.folder_of(first))? {
                if let Some(sha256) = entry.file_name().to_str().and_then(sha256_of) {
                    found.push(Found {
                        sha256,
                        path: entry.path(),
                    });
                }
            }
        }
        found.sort_by_key(|each| each.sha256);
        Ok(found)
    }

    /// Compares `named` (names and sizes that rows have) with what is there, and every blob with its name, as far as all of
    /// them together have at most `read_max` bytes; the others are only looked at. No sweep works meanwhile.
    pub fn check(
        &self,
        named: &BTreeMap<Sha256Name, u64>,
        read_max: u64,
    ) -> Result<BlobsChecked, StoreError> {
        let _kept = self.keep_all()?;
        let mut checked = BlobsChecked::default();
        let mut left = read_max;
        for each in self.all()? {
            checked.unnamed += u64::from(!named.contains_key(&each.sha256));
            let file = match File::open(&each.path) {
                Ok(file) => file,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
                Err(error) => return Err(error.into()),
            };
            let bytes = file.metadata()?.len();
            if bytes > left {
                checked.unread += 1;
                continue;
            }
            left -= bytes;
            if hash_of(file)? != each.sha256 {
                let cause = "its bytes have another hash".to_owned();
                let sha256 = each.sha256;
                let finding = BlobError::Damaged { sha256, cause }.to_string();
                checked.findings.push(finding);
            }
        }
        for (sha256, bytes) in named {
            match std::fs::metadata(self.path_of(*sha256)) {
                Ok(data) if data.len() == *bytes => {}
                Ok(data) => checked.findings.push(format!(
                    "blob {sha256} has {} bytes, a row says {bytes}",
                    data.len()
                )),
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    checked.findings.push(BlobError::Missing(*sha256).to_string());
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(checked)
    }

    /// Blobs that are older than `older_than`, from the folder `first` on, at most `max`; and the folder from which to go on,
    /// if there may be more.
    pub fn old_ones(
        &self,
        first: u8,
        older_than: Duration,
        now: Millis,
        max: usize,
    ) -> Result<(BTreeSet<Sha256Name>, Option<u8>), StoreError> {
        let age_ms = u64::try_from(older_than.as_millis()).unwrap_or(u64::MAX);
        let mut old = BTreeSet::new();
        for folder in first..=u8::MAX {
            if folder > first && old.len() >= max {
                return Ok((old, Some(folder)));
            }
            for entry in entries_of(&self.folder_of(folder))? {
                let Some(sha256) = entry.file_name().to_str().and_then(sha256_of) else {
                    continue;
                };
                if now.since(modified_at(&entry.path())?) > age_ms {
                    old.insert(sha256);
                }
            }
        }
        Ok((old, None))
    }

    /// Makes a blob young again before another row names it. One that is gone is an error.
    pub fn renew(&self, payload: &Payload) -> Result<(), BlobError> {
        let Payload::Blob { sha256, bytes } = payload else {
            return Ok(());
        };
        let _kept = self.share_lock()?;
        if renewed(&self.path_of(*sha256), *bytes)? {
            Ok(())
        } else {
            Err(BlobError::Missing(*sha256))
        }
    }
}

/// A file under a temporary name, removed unless it was given its own.
struct Partial(PathBuf);

impl Drop for Partial {
    fn drop(&mut self) {
        drop(std::fs::remove_file(&self.0));
    }
}

/// True when the blob is there whole; it is as good as new then. One of another size is damage, and is replaced.
fn renewed(path: &Path, bytes: u64) -> std::io::Result<bool> {
    let file = match OpenOptions::new().read(true).write(true).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(false),
        Err(error) => return Err(error),
    };
    if file.metadata()?.len() != bytes {
        return Ok(false);
    }
    os::disk::touch(&file)?;
    Ok(true)
}

fn modified_at(path: &Path) -> std::io::Result<Millis> {
    let modified = match std::fs::metadata(path) {
        Ok(data) => data.modified()?,
        // It is gone already: as young as can be.
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Millis(i64::MAX)),
        Err(error) => return Err(error),
    };
    let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(Millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX)))
}

/// The files of a folder that may not be there.
fn entries_of(folder: &Path) -> std::io::Result<Vec<std::fs::DirEntry>> {
    match std::fs::read_dir(folder) {
        Ok(entries) => entries.collect(),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Vec::new()),
        Err(error) => Err(error),
    }
}

/// The name that a file name says, if it is one of a blob.
fn sha256_of(name: &str) -> Option<Sha256Name> {
    let bytes: [u8; 32] = ids::of_hex(name)?.try_into().ok()?;
    (ids::hex(&bytes) == name).then_some(Sha256Name(bytes))
}

fn name_of(content: &[u8]) -> Sha256Name {
    Sha256Name(Sha256::digest(content).into())
}

/// The name that these bytes should have.
pub(super) fn hash_of(mut from: impl Read) -> std::io::Result<Sha256Name> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; BUFFER_BYTES];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(Sha256Name(hash.finalize().into())),
            read => hash.update(&buffer[..read]),
        }
    }
}
