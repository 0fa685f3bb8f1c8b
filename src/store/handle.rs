//! [`Store`]: the face of this folder. Reads take a snapshot; changes go to the writer.

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use redb::{Database, ReadableDatabase};
use tokio::sync::{oneshot, watch};

use super::blobs::Blobs;
use super::coordination::Turnstile;
use super::disk::Disk;
use super::ear;
use super::error::{ChangeError, StoreError};
use super::feed::Counted;
use super::opening::{Opened, Sharing, StoreMode, close_within};
use super::peers::{Peers, Word};
use super::rows::Number;
use super::scribe::Scribe;
use super::stats::{COMMIT_BOUNDS_MS, StoreStats};
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
    /// How the file is shared.
    pub mode: StoreMode,
    /// How long an opening waits until other daemons let this one in.
    pub joining: Duration,
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
            mode: StoreMode::Auto,
            joining: Duration::from_millis(limits::JOINING_MS),
            create: true,
            faults: Faults::default(),
            disk: None,
        }
    }
}

/// The file as it is now.
enum Handle {
    Open(Arc<Database>, Sharing),
    /// Closed for an instant, to be opened again: wait.
    HandingOver,
    /// Closed by a fault, or for good.
    Closed,
}

/// What the writer thread and the callers share.
pub(super) struct Shared {
    options: StoreOptions,
    handle: Mutex<Handle>,
    opened: Condvar,
    /// How the file was open last.
    sharing: Mutex<Option<Sharing>>,
    /// When the reads that wait for their snapshot began to.
    beginning: Mutex<Vec<(u64, u64)>>,
    turnstile: Mutex<Option<Turnstile>>,
    /// Since when the writer waits for its turn; 0 while it does not.
    turn_since: AtomicU64,
    /// The life lock of this daemon, and its device and inode.
    life_lock: Mutex<Option<(PathBuf, (u64, u64))>>,
    pub(super) peers: Peers,
    /// Under which name the commits of this process are known.
    name: Mutex<String>,
    pub(super) queue: Queue,
    pub(super) scribe: Scribe,
    pub(super) clock: Arc<dyn Clock>,
    sequence: watch::Sender<u64>,
    foreign: watch::Sender<u64>,
    commits: AtomicU64,
    changes: AtomicU64,
    commit_ms: AtomicU64,
    commits_by_time: [AtomicU64; COMMIT_BOUNDS_MS.len() + 1],
    faults: AtomicU64,
    ends: Mutex<BTreeMap<Counted, u64>>,
    /// Device and inode of the open file.
    place: Mutex<Option<(u64, u64)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Files up to this size are repaired in a few milliseconds after a kill, so nothing is written ahead for it.
const SMALL_FILE_BYTES: u64 = 16 << 20;
/// Beyond this every commit carries what a repair needs.
const LARGE_FILE_BYTES: u64 = 256 << 20;

impl Shared {
    fn new(options: StoreOptions, clock: Arc<dyn Clock>) -> Shared {
        Shared {
            peers: Peers::of(&options.directory),
            options,
            handle: Mutex::new(Handle::Closed),
            opened: Condvar::new(),
            sharing: Mutex::default(),
            beginning: Mutex::default(),
            turnstile: Mutex::default(),
            turn_since: AtomicU64::new(0),
            life_lock: Mutex::default(),
            name: Mutex::default(),
            queue: Queue::default(),
            scribe: Scribe::default(),
            clock,
            sequence: watch::Sender::new(0),
            foreign: watch::Sender::new(0),
            commits: AtomicU64::new(0),
            changes: AtomicU64::new(0),
            commit_ms: AtomicU64::new(0),
            commits_by_time: Default::default(),
            faults: AtomicU64::new(0),
            ends: Mutex::default(),
            place: Mutex::default(),
        }
    }

    pub(super) fn fail(&self, point: &str) -> Result<(), StoreError> {
        Ok(self.options.faults.check(point)?)
    }

    pub(super) fn options(&self) -> &StoreOptions {
        &self.options
    }

    pub(super) fn path(&self) -> PathBuf {
        self.options.directory.join("ductor.redb")
    }

    pub(super) fn place(&self) -> Option<(u64, u64)> {
        *lock(&self.place)
    }

    /// What is written into a file that nobody can find any more is lost: refuse it. So is the work of a daemon whose life
    /// lock nobody can find: others take it for dead. A file that was never open here has no place to be at.
    pub(super) fn check_place(&self) -> Result<(), StoreError> {
        if self
            .place()
            .is_some_and(|place| place_of(&self.path()) != Some(place))
        {
            return Err(StoreError::Moved);
        }
        match &*lock(&self.life_lock) {
            Some((path, place)) if place_of(path) != Some(*place) => Err(StoreError::LifeLockGone),
            Some(_) | None => Ok(()),
        }
    }

    /// Milliseconds for which the writer has been waiting for its turn among the daemons.
    fn turn_wait_ms(&self) -> u64 {
        match self.turn_since.load(Ordering::Relaxed) {
            0 => 0,
            since => crate::os::clock::boottime_ms().saturating_sub(since),
        }
    }

    /// How the file is open, or was open last.
    pub(super) fn sharing(&self) -> Option<Sharing> {
        *lock(&self.sharing)
    }

    fn database(&self) -> Result<Arc<Database>, StoreError> {
        let mut handle = lock(&self.handle);
        loop {
            match &*handle {
                Handle::Open(database, _) => return Ok(Arc::clone(database)),
                Handle::Closed => return Err(StoreError::NotOpen),
                Handle::HandingOver => {
                    let patience = self.options.operation;
                    let waited = self.opened.wait_timeout(handle, patience);
                    let (next, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
                    handle = next;
                    if timed_out.timed_out() {
                        return Err(StoreError::NotOpen);
                    }
                }
            }
        }
    }

    /// Waits for the turn among all daemons; this may take as long as another one is stopped.
    pub(super) fn begin_write(&self) -> Result<redb::WriteTransaction, StoreError> {
        self.fail("store.begin")?;
        self.check_place()?;
        let database = self.database()?;
        if self.sharing() != Some(Sharing::Together) {
            return Ok(database.begin_write()?);
        }
        let mut turnstile = lock(&self.turnstile);
        let gate = match turnstile.take() {
            Some(gate) => gate,
            None => Turnstile::at(&self.options.directory.join("gate.lock"))?,
        };
        // Held from "I want to write" until the transaction has begun: who comes first is served first.
        self.turn_since
            .store(crate::os::clock::boottime_ms(), Ordering::Relaxed);
        let begun = gate.pass(|| database.begin_write());
        self.turn_since.store(0, Ordering::Relaxed);
        *turnstile = Some(gate);
        Ok(begun??)
    }

    pub(super) fn close_handle(&self) {
        let before = std::mem::replace(&mut *lock(&self.handle), Handle::Closed);
        self.opened.notify_all();
        if let Handle::Open(database, _) = before {
            close_within(database, self.options.operation);
        }
    }

    /// Takes the file away from the readers for a hand-over; `None` if there is nothing to hand over.
    pub(super) fn begin_hand_over(&self) -> Option<Arc<Database>> {
        let mut handle = lock(&self.handle);
        match std::mem::replace(&mut *handle, Handle::HandingOver) {
            Handle::Open(database, Sharing::Alone) => Some(database),
            other @ (Handle::Open(..) | Handle::HandingOver | Handle::Closed) => {
                *handle = other;
                None
            }
        }
    }

    pub(super) fn hand_over_failed(&self, error: &StoreError) {
        tracing::error!(cause = %error, "the store could not be opened again to share it");
        self.count_fault(error);
        *lock(&self.sharing) = Some(Sharing::Together);
        *lock(&self.handle) = Handle::Closed;
        self.opened.notify_all();
    }

    pub(super) fn opened(&self, opened: Opened) {
        *lock(&self.place) = place_of(&self.path());
        *lock(&self.sharing) = Some(opened.sharing);
        *lock(&self.handle) = Handle::Open(Arc::new(opened.database), opened.sharing);
        self.opened.notify_all();
    }

    /// Opens the file after a fault.
    pub(super) fn reopen(&self) -> Result<(), StoreError> {
        let opened = self.open_file(Duration::ZERO, self.sharing())?;
        self.opened(opened);
        Ok(())
    }

    pub(super) fn read_once<T>(
        &self,
        read: impl FnOnce(&mut ReadTx) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.fail("store.read")?;
        let transaction = self.begin_read()?;
        read(&mut ReadTx::new(transaction))
    }

    /// A snapshot. A peer that is stopped in the middle of its commit holds it up: then one thread waits, and who comes
    /// after the time of an operation is told at once.
    fn begin_read(&self) -> Result<redb::ReadTransaction, StoreError> {
        let database = self.database()?;
        if self.sharing() != Some(Sharing::Together) {
            return Ok(database.begin_read()?);
        }
        let now = crate::os::clock::boottime_ms();
        let patience = u64::try_from(self.options.operation.as_millis()).unwrap_or(u64::MAX);
        let number = {
            let mut beginning = lock(&self.beginning);
            if beginning
                .iter()
                .any(|(_, since)| now.saturating_sub(*since) > patience)
            {
                return Err(StoreError::Held);
            }
            let number = beginning.last().map_or(0, |(number, _)| number + 1);
            beginning.push((number, now));
            number
        };
        let begun = database.begin_read();
        lock(&self.beginning).retain(|(other, _)| *other != number);
        Ok(begun?)
    }

    /// A number of `meta`; 0 if it was never written.
    pub(super) fn sequence_of(&self, name: &str) -> Result<u64, StoreError> {
        let key = (name.to_owned(),);
        self.read_once(|tx| Ok(tx.get(&META, &key)?.map_or(0, |number: Number| number.0)))
    }

    fn file_bytes(&self) -> u64 {
        if let Some(disk) = &self.options.disk {
            return disk.said_bytes();
        }
        std::fs::metadata(self.path()).map_or(0, |data| data.len())
    }

    fn is_alone(&self) -> bool {
        self.sharing() == Some(Sharing::Alone)
    }

    /// A shared file always carries it.
    pub(super) fn is_large(&self) -> bool {
        self.is_alone() && self.file_bytes() > LARGE_FILE_BYTES
    }

    pub(super) fn wants_quick_repair(&self) -> bool {
        let bytes = self.file_bytes();
        self.is_alone() && bytes > SMALL_FILE_BYTES && bytes <= LARGE_FILE_BYTES
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

    /// The row that says which commit of this process landed last. Others write the sequence number too.
    pub(super) fn landed_key(&self) -> String {
        format!("landed {}", lock(&self.name))
    }

    pub(super) fn committed(&self, sequence: u64, changes: usize, took_ms: u64, told: bool) {
        self.commits.fetch_add(1, Ordering::Relaxed);
        self.changes.fetch_add(changes as u64, Ordering::Relaxed);
        self.commit_ms.fetch_add(took_ms, Ordering::Relaxed);
        let class = COMMIT_BOUNDS_MS.partition_point(|bound| *bound < took_ms);
        self.commits_by_time[class].fetch_add(1, Ordering::Relaxed);
        self.reached(sequence, 1);
        if told && !self.is_alone() {
            self.peers.tell(Word::Committed);
        }
    }

    /// The store is at `sequence` now, and the newest `own` commits of that are ours; the others are those of other daemons.
    pub(super) fn reached(&self, sequence: u64, own: u64) {
        let mut foreign = 0;
        self.sequence.send_if_modified(|known| {
            foreign = sequence.saturating_sub(*known).saturating_sub(own);
            let moved = sequence > *known;
            *known = sequence.max(*known);
            moved
        });
        if foreign > 0 {
            self.foreign.send_modify(|seen| *seen += foreign);
        }
    }

    pub(super) fn count_ends(&self, ends: Vec<Counted>) {
        let mut counts = lock(&self.ends);
        for end in ends {
            *counts.entry(end).or_default() += 1;
        }
    }

    pub(super) fn count_fault(&self, _error: &StoreError) {
        self.faults.fetch_add(1, Ordering::Relaxed);
    }
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
    /// Lets the writer finish what waits, and closes the file. A writer that hangs in the disk, or behind a peer that is
    /// stopped, is left behind after `patience`.
    fn stop(&self, patience: Duration) -> bool {
        self.shared.queue.close();
        let handle = lock(&self.thread).take();
        let Some(handle) = handle else { return true };
        let (done, ended) = std::sync::mpsc::channel();
        let shared = Arc::clone(&self.shared);
        let watcher = std::thread::Builder::new()
            .name("store-stop".to_owned())
            .spawn(move || {
                drop(handle.join());
                shared.close_handle();
                done.send(()).ok();
            });
        watcher.is_ok() && ended.recv_timeout(patience).is_ok()
    }
}

impl Drop for WriterThread {
    fn drop(&mut self) {
        self.stop(Duration::from_secs(10));
    }
}

impl Store {
    /// Opens, or makes, the file and starts the writer.
    pub fn open(options: StoreOptions, clock: Arc<dyn Clock>) -> Result<Store, StoreError> {
        let shared = Arc::new(Shared::new(options, clock));
        let opened = shared.open_file_within()?;
        shared.opened(opened);
        let stored = shared.sequence_of("sequence")?;
        shared.sequence.send_replace(stored);
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
        // A request that is dropped without an answer went down with its batch.
        let dropped = |_| ChangeError::Unknown;
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
        answer.blocking_recv().map_err(|_| ChangeError::Unknown)?
    }

    /// From now on the commits of this process are known as those of daemon `name`: it learns at once what other daemons
    /// commit, and lets them in when they want. Its life lock is held.
    pub fn listen(&self, name: &str) -> Result<(), StoreError> {
        name.clone_into(&mut lock(&self.shared.name));
        let life_lock = self.directory().join("nodes").join(format!("{name}.lock"));
        *lock(&self.shared.life_lock) = place_of(&life_lock).map(|place| (life_lock, place));
        ear::listen(&self.shared, name)
    }

    /// How the file is open now.
    pub fn sharing(&self) -> Sharing {
        self.shared.sharing().unwrap_or(Sharing::Alone)
    }

    /// Milliseconds for which nothing can be written, because another daemon has its turn and does not end it.
    pub fn turn_wait_ms(&self) -> u64 {
        self.shared.turn_wait_ms()
    }

    /// Grows when other daemons have committed something.
    pub fn watch_foreign(&self) -> watch::Receiver<u64> {
        self.shared.foreign.subscribe()
    }

    /// The number of the newest commit, of this daemon or another; changes with each one.
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
            mode: self.sharing().word(),
        }
    }

    /// What has ended since this daemon started, counted by what its own commits wrote.
    pub fn ends(&self) -> BTreeMap<Counted, u64> {
        lock(&self.shared.ends).clone()
    }

    /// The faults planned for this store.
    pub fn faults(&self) -> &Faults {
        &self.shared.options.faults
    }

    /// The blob area beside the file.
    pub fn blobs(&self) -> Blobs {
        Blobs::of_state(self.directory(), self.shared.options.faults.clone())
    }

    /// The folder of the file.
    pub fn directory(&self) -> &Path {
        &self.shared.options.directory
    }

    /// Finishes what waits and closes the file; false if the disk did not let it within `patience`.
    pub fn close(&self, patience: Duration) -> bool {
        self.writer.stop(patience)
    }
}
