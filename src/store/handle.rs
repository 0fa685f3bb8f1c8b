//! [`Store`]: the face of this folder. Reads take a snapshot; changes go to the writer.

use std::collections::BTreeMap;
use std::io::Read;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use redb::{Database, ReadableDatabase};
use tokio::sync::{oneshot, watch};

use super::disk::{self, Disk};
use super::error::{ChangeError, StoreError};
use super::feed::Counted;
use super::migrate;
use super::rows::Number;
use super::table::Rows;
use super::tables::META;
use super::tx::{Abort, ReadTx, Tx};
use super::writer::{self, Queue, Request, TypedJob};
use crate::os::failpoint::Faults;
use crate::words::limits;
use crate::words::time::Clock;

/// How a store is opened.
#[derive(Debug, Clone)]
pub struct StoreOptions {
    /// The folder that holds `ductor.redb`.
    pub directory: PathBuf,
    /// Bytes of pages kept in memory.
    pub cache_bytes: usize,
    /// An operation's time from the call until it must have begun.
    pub operation: Duration,
    /// The further time for a commit that has begun.
    pub commit_grace: Duration,
    /// Make the file if it is not there. Never done again after the first opening.
    pub create: bool,
    /// Faults that a test has planned.
    pub faults: Faults,
    /// A simulated disk in place of the file.
    #[doc(hidden)]
    pub disk: Option<Arc<dyn Disk>>,
}

impl StoreOptions {
    /// The product's times, with a cache of 16 MiB.
    pub fn in_directory(directory: &Path) -> StoreOptions {
        StoreOptions {
            directory: directory.to_path_buf(),
            cache_bytes: 16 << 20,
            operation: Duration::from_millis(limits::OPERATION_MS),
            commit_grace: Duration::from_millis(limits::COMMIT_GRACE_MS),
            create: true,
            faults: Faults::default(),
            disk: None,
        }
    }
}

/// Upper bounds of the classes in which commits are counted by their time; a further class is for longer ones.
pub const COMMIT_BOUNDS_MS: [u64; 9] = [1, 2, 5, 10, 25, 100, 500, 2_000, 10_000];

/// Numbers that metrics show.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StoreStats {
    /// Commits since the start.
    pub commits: u64,
    /// Changes in them.
    pub changes: u64,
    /// Milliseconds spent in commits.
    pub commit_ms: u64,
    /// Commits by their time, in the classes of [`COMMIT_BOUNDS_MS`].
    pub commits_by_time: [u64; COMMIT_BOUNDS_MS.len() + 1],
    /// Faults of the file.
    pub faults: u64,
    /// Requests that wait for the writer.
    pub waiting: u64,
    /// Bytes of the file.
    pub file_bytes: u64,
}

/// What the writer thread and the callers share.
pub(super) struct Shared {
    options: StoreOptions,
    database: RwLock<Option<Arc<Database>>>,
    pub(super) queue: Queue,
    pub(super) clock: Arc<dyn Clock>,
    sequence: watch::Sender<u64>,
    commits: AtomicU64,
    changes: AtomicU64,
    commit_ms: AtomicU64,
    commits_by_time: [AtomicU64; COMMIT_BOUNDS_MS.len() + 1],
    faults: AtomicU64,
    ends: Mutex<BTreeMap<Counted, u64>>,
    /// Device and inode of the open file.
    place: Mutex<Option<(u64, u64)>>,
}

/// Files up to this size are repaired in a few milliseconds after a kill, so nothing is written ahead for it.
const SMALL_FILE_BYTES: u64 = 16 << 20;
/// Beyond this every commit carries what a repair needs.
const LARGE_FILE_BYTES: u64 = 256 << 20;

impl Shared {
    pub(super) fn fail(&self, point: &str) -> Result<(), StoreError> {
        Ok(self.options.faults.check(point)?)
    }

    fn path(&self) -> PathBuf {
        self.options.directory.join("ductor.redb")
    }

    fn place(&self) -> Option<(u64, u64)> {
        *self.place.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is written into a file that nobody can find any more is lost: refuse it.
    fn check_place(&self) -> Result<(), StoreError> {
        if place_of(&self.path()) == self.place() {
            Ok(())
        } else {
            Err(StoreError::Moved)
        }
    }

    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let held = self.database.read().unwrap_or_else(PoisonError::into_inner);
        held.clone().ok_or(StoreError::NotOpen)
    }

    pub(super) fn begin_write(&self) -> Result<redb::WriteTransaction, StoreError> {
        self.fail("store.begin")?;
        self.check_place()?;
        Ok(self.database()?.begin_write()?)
    }

    pub(super) fn close_handle(&self) {
        self.database
            .write()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
    }

    /// Opens the file and brings it to the current format.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        self.fail("store.open")?;
        let path = self.path();
        let opened_before = self.place().is_some();
        let mut builder = Database::builder();
        builder.set_cache_size(self.options.cache_bytes);
        let database = if let Some(disk) = &self.options.disk {
            disk::open(disk, &mut builder)?
        } else if self.options.create && !opened_before {
            clear_unfinished(&path)?;
            builder.create(&path)?
        } else {
            // redb would make a new database of an empty file: what is gone is never replaced in silence.
            if std::fs::metadata(&path).map_or(0, |data| data.len()) == 0 {
                return Err(StoreError::Missing);
            }
            builder.open(&path)?
        };
        migrate::bring_up(&database, self.clock.now())?;
        *self.place.lock().unwrap_or_else(PoisonError::into_inner) = place_of(&path);
        *self.database.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(database));
        Ok(())
    }

    pub(super) fn read_once<T>(
        &self,
        read: impl FnOnce(&mut ReadTx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.fail("store.read")?;
        let transaction = self.database()?.begin_read()?;
        read(&mut ReadTx::new(transaction))
    }

    fn file_bytes(&self) -> u64 {
        if let Some(disk) = &self.options.disk {
            return disk.said_bytes();
        }
        std::fs::metadata(self.path()).map_or(0, |data| data.len())
    }

    pub(super) fn is_large(&self) -> bool {
        self.file_bytes() > LARGE_FILE_BYTES
    }

    pub(super) fn wants_quick_repair(&self) -> bool {
        let bytes = self.file_bytes();
        bytes > SMALL_FILE_BYTES && bytes <= LARGE_FILE_BYTES
    }

    /// After a pause in the work: one small commit after which a kill needs no long repair.
    pub(super) fn commit_for_quick_repair(&self) {
        let Ok(mut transaction) = self.begin_write() else {
            return;
        };
        transaction.set_quick_repair(true);
        if let Err(error) = transaction.commit() {
            tracing::warn!(cause = %error, "the idle commit failed");
        }
    }

    pub(super) fn committed(&self, sequence: u64, changes: usize, took_ms: u64) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.changes.fetch_add(changes as u64, Ordering::Relaxed);
        self.commit_ms.fetch_add(took_ms, Ordering::Relaxed);
        let class = COMMIT_BOUNDS_MS.partition_point(|bound| *bound < took_ms);
        self.commits_by_time[class].fetch_add(1, Ordering::Relaxed);
        self.sequence.send_replace(sequence);
    }

    pub(super) fn count_ends(&self, ends: Vec<Counted>) {
        let mut counts = self.ends.lock().unwrap_or_else(PoisonError::into_inner);
        for end in ends {
            *counts.entry(end).or_default() += 1;
        }
    }

    pub(super) fn count_fault(&self, _error: &StoreError) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }
}

/// A first start that was cut short leaves a file that redb neither reads nor replaces: nothing was ever in it.
fn clear_unfinished(path: &Path) -> std::io::Result<()> {
    let Ok(mut file) = std::fs::File::options().read(true).write(true).open(path) else {
        return Ok(());
    };
    let mut beginning = Vec::new();
    file.by_ref().take(disk::BEGINNING).read_to_end(&mut beginning)?;
    if !beginning.is_empty() && disk::is_unfinished(&beginning) {
        tracing::warn!(path = %path.display(), "the store file was never finished; it is made anew");
        file.set_len(0)?;
    }
    Ok(())
}

fn place_of(path: &Path) -> Option<(u64, u64)> {
    std::fs::metadata(path).ok().map(|data| (data.dev(), data.ino()))
}

/// The open store. Clones share it; the last one dropped ends the writer.
#[derive(Clone)]
pub struct Store {
    shared: Arc<Shared>,
    writer: Arc<WriterThread>,
}

impl std::fmt::Debug for Store {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Store")
            .field("directory", &self.shared.options.directory)
            .finish_non_exhaustive()
    }
}

struct WriterThread {
    shared: Arc<Shared>,
    thread: Mutex<Option<std::thread::JoinHandle<()>>>,
}

impl WriterThread {
    /// Lets the writer finish what waits; a writer that hangs in the disk is left behind after `patience`.
    fn stop(&self, patience: Duration) -> bool {
        self.shared.queue.close();
        let handle = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        let Some(handle) = handle else { return true };
        let (done, ended) = std::sync::mpsc::channel();
        let watcher = std::thread::Builder::new()
            .name("store-stop".to_owned())
            .spawn(move || {
                drop(handle.join());
                done.send(()).ok();
            });
        watcher.is_ok() && ended.recv_timeout(patience).is_ok()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(10));
        self.shared.close_handle();
    }
}

impl Store {
    /// Opens, or makes, the file and starts the writer.
    pub fn open(options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        let shared = Arc::new(Shared {
            options,
            database: RwLock::new(None),
            queue: Queue::default(),
            clock,
            sequence: watch::Sender::new(0),
            commits: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            commit_ms: AtomicU64::new(0),
            commits_by_time: Default::default(),
            faults: AtomicU64::new(0),
            ends: Mutex::default(),
            place: Mutex::default(),
        });
        shared.reopen()?;
        let stored = shared.read_once(|tx| tx.get(&META, &("sequence".to_owned(),)))?;
        shared
            .sequence
            .send_replace(stored.map_or(0, |number: Number| number.0));
        let for_writer = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("store-writer".to_owned())
            .spawn(move || writer::run(&for_writer))?;
        let writer = Arc::new(WriterThread {
            shared: Arc::clone(&shared),
            thread: Mutex::new(Some(thread)),
        });
        Ok(Store { shared, writer })
    }

    /// Runs `read` on a snapshot. It waits for no writer. Call it from a blocking context; it may touch the disk.
    pub fn read<T>(
        &self,
        mut read: impl FnMut(&mut ReadTx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        match self.shared.read_once(&mut read) {
            Err(StoreError::NotOpen) => self.shared.read_once(&mut read),
            other => other,
        }
    }

    /// Hands `change` to the writer and waits for its commit.
    ///
    /// The change is re-runnable and pure over the transaction: no I/O, no clock but `tx.now()`, ids from outside.
    /// A refusal is an answer and has written nothing. The answer comes within the operation's time, or within the
    /// further commit time if it was taken.
    pub async fn change<T, F>(&self, name: &'static str, change: F) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        let (reply, mut answer) = oneshot::channel();
        let job = TypedJob {
            name,
            change,
            answer: None,
            reply: Some(reply),
        };
        let request = Request::new(Box::new(job));
        self.shared.queue.push(&request)?;
        let dropped = |_| ChangeError::Panicked(name);
        if let Ok(result) = tokio::time::timeout(self.shared.options.operation, &mut answer).await {
            return result.map_err(dropped)?;
        }
        if request.withdraw() {
            return Err(ChangeError::Withdrawn);
        }
        match tokio::time::timeout(self.shared.options.commit_grace, answer).await {
            Ok(result) => result.map_err(dropped)?,
            Err(_) => Err(ChangeError::Unknown),
        }
    }

    /// [`Store::change`] for a thread outside the runtime, without a time limit.
    pub fn change_blocking<T, F>(&self, name: &'static str, change: F) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        let (reply, answer) = oneshot::channel();
        let job = TypedJob {
            name,
            change,
            answer: None,
            reply: Some(reply),
        };
        self.shared.queue.push(&Request::new(Box::new(job)))?;
        answer.blocking_recv().map_err(|_| ChangeError::Panicked(name))?
    }

    /// The number of the newest commit; changes with each one.
    pub fn watch_sequence(&self) -> watch::Receiver<u64> {
        self.shared.sequence.subscribe()
    }

    /// Numbers for metrics.
    pub fn stats(&self) -> StoreStats {
        StoreStats {
            commits: self.shared.commits.load(Ordering::Relaxed),
            changes: self.shared.changes.load(Ordering::Relaxed),
            commit_ms: self.shared.commit_ms.load(Ordering::Relaxed),
            commits_by_time: std::array::from_fn(|class| {
                self.shared.commits_by_time[class].load(Ordering::Relaxed)
            }),
            faults: self.shared.faults.load(Ordering::Relaxed),
            waiting: self.shared.queue.len() as u64,
            file_bytes: self.shared.file_bytes(),
        }
    }

    /// What has ended since this daemon started, counted by what its own commits wrote.
    pub fn ends(&self) -> BTreeMap<Counted, u64> {
        self.shared
            .ends
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// The faults planned for this store.
    pub fn faults(&self) -> &Faults {
        &self.shared.options.faults
    }

    /// The folder of the file.
    pub fn directory(&self) -> &Path {
        &self.shared.options.directory
    }

    /// Finishes what waits and closes the file; false if the disk did not let it within `patience`.
    pub fn close(&self, patience: Duration) -> bool {
        let ended = self.writer.stop(patience);
        if ended {
            self.shared.close_handle();
        }
        ended
    }
}
