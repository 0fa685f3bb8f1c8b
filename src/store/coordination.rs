//! The state directory: its folders, its format number, and the locks by which daemons prove that they live.
//!
//! A lock belongs to the open file and dies with its process; lock files are never deleted, and the inode is compared
//! after locking. Whether exclusive locks exclude at all on this file system is tried at every start.

use std::fs::{File, OpenOptions};
use std::io::{Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::error::StoreError;
use super::migrate::FORMAT;
use crate::os;
use crate::words::names::NodeName;

/// The file of the store.
pub const STORE_NAME: &str = "ductor.redb";
/// The same while a restore makes it: nobody may begin an empty store beside it.
pub const UNFINISHED_NAME: &str = "ductor.redb.restoring";
const FOLDERS: [&str; 5] = ["", "nodes", "logs", "blobs", "probes"];

fn format_in(root: &Path) -> std::io::Result<Option<u32>> {
    match std::fs::read_to_string(root.join("format")) {
        Ok(text) => match text.trim().parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(std::io::Error::other("its file `format` does not hold a number")),
        },
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// The folders of a state directory.
#[derive(Debug, Clone)]
pub struct StateDirectory {
    root: PathBuf,
}

/// Why a state directory cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum DirectoryError {
    /// It cannot be made or written.
    #[error("state directory {path} cannot be used: {cause}; mend that, or choose another with --state-dir")]
    Unusable {
        /// The directory as given.
        path: String,
        /// Why.
        cause: String,
    },
    /// A newer ductor wrote it.
    #[error(
        "state directory {path} has format {found}; this ductor reads up to {FORMAT}: use the newer version"
    )]
    TooNew {
        /// The directory.
        path: String,
        /// Its number.
        found: u32,
    },
    /// A restore was cut off.
    #[error("a restore into {path} did not finish; empty that directory and restore again")]
    Unfinished {
        /// The directory.
        path: String,
    },
    /// It stands on a network file system and the configuration does not say that this is wanted.
    #[error(
        "state directory {path} is on a network file system ({kind}); set `state.network: true` if its locks are reliable"
    )]
    Network {
        /// The directory.
        path: String,
        /// The kind of file system.
        kind: String,
    },
}

impl StateDirectory {
    /// Makes the folders and checks the format number.
    pub fn prepare(root: &Path, network_allowed: bool) -> Result<StateDirectory, DirectoryError> {
        let path = root.display().to_string();
        let unusable = |cause: std::io::Error| DirectoryError::Unusable {
            path: path.clone(),
            cause: cause.to_string(),
        };
        // What a newer ductor wrote is left as it is, down to the last file.
        let format = format_in(root).map_err(unusable)?;
        if let Some(found) = format.filter(|found| *found > FORMAT) {
            return Err(DirectoryError::TooNew { path, found });
        }
        if root.join(UNFINISHED_NAME).exists() {
            return Err(DirectoryError::Unfinished { path });
        }
        for folder in FOLDERS {
            std::fs::create_dir_all(root.join(folder)).map_err(unusable)?;
        }
        // A read-only file system, or one without space, shows here and not in the middle of the work.
        let probe = root.join("probes").join("writable");
        std::fs::write(&probe, "").map_err(unusable)?;
        let root = root.canonicalize().map_err(unusable)?;
        if let Ok(system) = os::disk::FileSystem::of(&root)
            && system.is_network_fs()
            && !network_allowed
        {
            return Err(DirectoryError::Network {
                path,
                kind: system.type_name(),
            });
        }
        Ok(StateDirectory { root })
    }

    /// The directory of files that exist already; makes nothing.
    pub fn existing(root: &Path) -> Option<StateDirectory> {
        root.join(STORE_NAME).exists().then(|| StateDirectory {
            root: root.to_path_buf(),
        })
    }

    /// Where everything transactional is.
    pub fn store_file(&self) -> PathBuf {
        self.root.join(STORE_NAME)
    }

    /// The number in the file `format`; `None` before a daemon has finished making the directory.
    pub fn format(&self) -> std::io::Result<Option<u32>> {
        format_in(&self.root)
    }

    /// True when the store was written by an older ductor and is brought up by the next start.
    pub fn is_older(&self) -> bool {
        matches!(self.format(), Ok(Some(found)) if found < FORMAT)
    }

    /// True when a daemon has finished making this state directory before.
    pub fn was_used(&self) -> bool {
        self.root.join("format").exists()
    }

    /// The names of daemons that live here, with the pids that they wrote.
    pub fn holders(&self) -> Vec<(String, Option<u32>)> {
        let Ok(entries) = std::fs::read_dir(self.root.join("nodes")) else {
            return Vec::new();
        };
        let names = entries.flatten().filter_map(|entry| {
            let name = NodeName::new(entry.file_name().to_str()?.strip_suffix(".lock")?).ok()?;
            let free = matches!(self.try_lock_node(&name), Ok(Some(_)));
            (!free).then(|| (name.to_string(), self.holder_of(&name)))
        });
        names.collect()
    }

    /// Writes the format number: the last act of making, or migrating, a state directory.
    pub fn write_format(&self) -> Result<(), StoreError> {
        if format_in(&self.root)? == Some(FORMAT) {
            return Ok(());
        }
        let path = self.root.join("format.new");
        let mut file = File::create(&path)?;
        file.write_all(format!("{FORMAT}\n").as_bytes())?;
        file.sync_all()?;
        std::fs::rename(&path, self.root.join("format"))?;
        File::open(&self.root)?.sync_all()?;
        Ok(())
    }

    /// The root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// Where attempt logs lie.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    fn node_lock(&self, name: &NodeName) -> PathBuf {
        self.root.join("nodes").join(format!("{name}.lock"))
    }

    /// Tries to become the daemon of that name.
    pub fn try_lock_node(&self, name: &NodeName) -> std::io::Result<Option<HeldLock>> {
        HeldLock::try_take(&self.node_lock(name))
    }

    /// Tries for as long as `patience`; a daemon that is just ending may still hold the name.
    pub fn lock_node(&self, name: &NodeName, patience: Duration) -> std::io::Result<Option<HeldLock>> {
        HeldLock::take_within(&self.node_lock(name), patience)
    }

    /// True when no daemon of that name lives. A name that was never used is free.
    pub fn is_node_free(&self, name: &NodeName) -> bool {
        self.node_lock(name).exists() && matches!(self.try_lock_node(name), Ok(Some(_)))
    }

    /// The lock under which one daemon cleans up after the dead one of that name.
    pub fn lock_clean_up(&self, name: &NodeName) -> std::io::Result<Option<HeldLock>> {
        HeldLock::try_take(&self.root.join("nodes").join(format!("{name}.clean")))
    }

    /// The pid that the holder of a node lock wrote into it.
    pub fn holder_of(&self, name: &NodeName) -> Option<u32> {
        std::fs::read_to_string(self.node_lock(name))
            .ok()?
            .lines()
            .next()?
            .trim()
            .parse()
            .ok()
    }

    /// The lock by which everybody who has the store open keeps a migration out. A daemon that finds an older format is the
    /// one that migrates: it has the lock alone, and shares it when that is done.
    pub fn lock_format(&self) -> std::io::Result<Option<HeldLock>> {
        if self.is_older() {
            self.take_format_lock()
        } else {
            self.share_format_lock()
        }
    }

    /// The same lock for somebody who migrates nothing.
    pub fn share_format_lock(&self) -> std::io::Result<Option<HeldLock>> {
        HeldLock::try_share(&self.root.join("format.lock"))
    }

    /// The same lock alone: nobody has the store open.
    pub fn take_format_lock(&self) -> std::io::Result<Option<HeldLock>> {
        HeldLock::try_take(&self.root.join("format.lock"))
    }

    /// Makes the lock file of a daemon that lived elsewhere, so that the name is known here and free.
    pub fn know_node(&self, name: &NodeName) -> std::io::Result<()> {
        HeldLock::open(&self.node_lock(name)).map(drop)
    }

    /// Tries that exclusive locks exclude: twice in this process, on two open files, and from a child that runs `program`
    /// with [`PROBE_WORD`].
    pub fn locks_are_trustworthy(&self, faults: &os::failpoint::Faults, program: Option<&Path>) -> bool {
        let path = self
            .root
            .join("probes")
            .join(format!("{}.lock", os::proc::own_pid()));
        let first = HeldLock::try_take(&path);
        let second = HeldLock::try_take(&path);
        let excludes = matches!((&first, &second), (Ok(Some(_)), Ok(None)));
        let excludes = excludes && program.is_none_or(|program| child_is_refused(program, &path));
        drop((first, second));
        let again = matches!(HeldLock::try_take(&path), Ok(Some(_)));
        drop(std::fs::remove_file(&path));
        excludes && again && faults.check("lock.probe").is_ok()
    }
}

/// The first argument of a child that tries a lock for its parent.
pub const PROBE_WORD: &str = "__probe_lock";
/// The exit code of a child that was refused the lock, as it should be.
const REFUSED: i32 = 42;

fn child_is_refused(program: &Path, lock: &Path) -> bool {
    let child = std::process::Command::new(program)
        .arg(PROBE_WORD)
        .arg(lock)
        .status();
    child.is_ok_and(|status| status.code() == Some(REFUSED))
}

/// The whole life of such a child; its exit code.
pub fn probe_as_child(lock: &Path) -> i32 {
    match HeldLock::try_take(lock) {
        Ok(None) => REFUSED,
        Ok(Some(_)) | Err(_) => 1,
    }
}

/// True when a daemon that lives in this state directory says that it shares its store with nobody.
pub fn is_kept_alone(root: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(root.join("nodes")) else {
        return false;
    };
    entries.flatten().any(|entry| {
        let path = entry.path();
        path.extension().is_some_and(|end| end == "lock")
            && std::fs::read_to_string(&path).is_ok_and(|text| text.lines().nth(1) == Some("exclusive"))
            && matches!(HeldLock::try_take(&path), Ok(None))
    })
}

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct HeldLock {
    file: File,
}

impl HeldLock {
    fn open(path: &Path) -> std::io::Result<File> {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
    }

    pub(super) fn try_take(path: &Path) -> std::io::Result<Option<HeldLock>> {
        let file = HeldLock::open(path)?;
        HeldLock::settle(path, file, fs4::FileExt::try_lock)
    }

    fn try_share(path: &Path) -> std::io::Result<Option<HeldLock>> {
        let file = HeldLock::open(path)?;
        HeldLock::settle(path, file, fs4::FileExt::try_lock_shared)
    }

    /// Shares it, after whoever has it alone let it go.
    pub(super) fn wait_to_share(path: &Path) -> std::io::Result<HeldLock> {
        loop {
            let file = HeldLock::open(path)?;
            fs4::FileExt::lock_shared(&file)?;
            if is_at(path, &file) {
                return Ok(HeldLock { file });
            }
        }
    }

    fn settle(
        path: &Path,
        file: File,
        lock: fn(&File) -> Result<(), fs4::TryLockError>,
    ) -> std::io::Result<Option<HeldLock>> {
        match lock(&file) {
            Ok(()) => {
                let same = is_at(path, &file);
                Ok(same.then_some(HeldLock { file }))
            }
            Err(fs4::TryLockError::WouldBlock) => Ok(None),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    pub(super) fn take_within(path: &Path, patience: Duration) -> std::io::Result<Option<HeldLock>> {
        let end = os::clock::boottime_ms() + u64::try_from(patience.as_millis()).unwrap_or(u64::MAX / 2);
        loop {
            if let Some(lock) = HeldLock::try_take(path)? {
                return Ok(Some(lock));
            }
            if os::clock::boottime_ms() >= end {
                return Ok(None);
            }
            #[expect(
                clippy::disallowed_methods,
                reason = "a lock of another process has no wake-up; start-up only"
            )]
            std::thread::sleep(Duration::from_millis(25));
        }
    }

    /// Lets others share a lock that was held alone.
    pub fn share(&self) -> std::io::Result<()> {
        match fs4::FileExt::try_lock_shared(&self.file) {
            Ok(()) => Ok(()),
            Err(fs4::TryLockError::WouldBlock) => Err(std::io::ErrorKind::WouldBlock.into()),
            Err(fs4::TryLockError::Error(error)) => Err(error),
        }
    }

    /// Writes who holds it into the lock file, for messages: the pid, and the mode of its store.
    pub fn write_holder(&mut self, pid: u32, mode: &str) -> std::io::Result<()> {
        self.file.set_len(0)?;
        self.file.seek(SeekFrom::Start(0))?;
        self.file.write_all(format!("{pid}\n{mode}\n").as_bytes())
    }
}

/// True when the open file is the one at that place.
fn is_at(path: &Path, file: &File) -> bool {
    std::fs::metadata(path).is_ok_and(|now| {
        file.metadata()
            .is_ok_and(|mine| (now.dev(), now.ino()) == (mine.dev(), mine.ino()))
    })
}

/// A lock that is taken and let go often: it waits for its turn, however long that is.
#[derive(Debug)]
pub(super) struct Turnstile {
    file: File,
}

impl Turnstile {
    pub(super) fn at(path: &Path) -> std::io::Result<Turnstile> {
        Ok(Turnstile {
            file: HeldLock::open(path)?,
        })
    }

    /// Waits for the turn, does `act` in it, and lets the next one in.
    pub(super) fn pass<T>(&self, act: impl FnOnce() -> T) -> std::io::Result<T> {
        fs4::FileExt::lock(&self.file)?;
        let result = act();
        fs4::FileExt::unlock(&self.file)?;
        Ok(result)
    }
}

impl Drop for HeldLock {
    fn drop(&mut self) {
        drop(fs4::FileExt::unlock(&self.file));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_name_has_one_holder_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::prepare(folder.path(), false).unwrap();
        let name = NodeName::new("a").unwrap();
        assert!(
            !directory.is_node_free(&name),
            "a name that nobody used proves nothing"
        );
        let mut held = directory.try_lock_node(&name).unwrap().unwrap();
        held.write_holder(42, "auto").unwrap();
        assert!(directory.try_lock_node(&name).unwrap().is_none());
        assert!(!directory.is_node_free(&name));
        assert_eq!(directory.holder_of(&name), Some(42));
        drop(held);
        assert!(directory.is_node_free(&name));
    }

    #[test]
    fn a_newer_format_is_refused_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let directory = StateDirectory::prepare(folder.path(), false).unwrap();
        directory.write_format().unwrap();
        assert!(directory.locks_are_trustworthy(&os::failpoint::Faults::default(), None));
        std::fs::write(folder.path().join("format"), "99\n").unwrap();
        let error = StateDirectory::prepare(folder.path(), false)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains(&format!("has format 99; this ductor reads up to {FORMAT}")),
            "{error}"
        );
    }
}
