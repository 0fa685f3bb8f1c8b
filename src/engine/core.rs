//! What every loop of the engine stands on: the store, the book, the clock, and what this daemon runs now.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot, watch};

use super::book::{Book, BookShelf};
use super::changes::drift::Drift;
use super::changes::graph::Ready;
use super::changes::maintain::Rules;
use super::changes::routing::shelf::Shelf;
use super::changes::routing::world::Tenancy;
use super::changes::tasks::Turns;
use super::disk::DiskWatch;
use super::graphs::GraphShelf;
use super::live::LiveTable;
use super::mailbox::{Mailboxes, WaitingWorkers};
use super::metrics::Metrics;
use super::warm::WarmShims;
use crate::domain::slots::claim::Place;
use crate::store::coordination::StateDirectory;
use crate::store::{ChangeError, ReadTx, Store, StoreError};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::{JobName, NodeName};
use crate::words::time::{BootMillis, Clock, Millis, Now};

/// The parts that all loops share. Clones share them too.
#[derive(Debug, Clone)]
pub struct Engine {
    /// Everything durable.
    pub store: Store,
    /// What the configuration says.
    pub shelf: BookShelf,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// This daemon's name.
    pub node: NodeName,
    /// Where it runs.
    pub place: Place,
    /// The state directory.
    pub directory: Arc<StateDirectory>,
    /// Executions of this daemon.
    pub live: LiveTable,
    /// Counters.
    pub metrics: Arc<Metrics>,
    /// Whether the wall clock may be believed about deadlines.
    pub clock_watch: ClockWatch,
    /// Wakes the pass.
    pub wake: Arc<Notify>,
    /// Wakes the delivery of reports.
    pub report_wake: Arc<Notify>,
    /// When each loop last turned.
    pub pulse: Arc<Pulse>,
    /// Wakes the loop of retries and catch-up.
    pub wake_follow_ups: Arc<Notify>,
    /// Settlements of retries that could not be written.
    pub deferred: DeferredSettlements,
    /// The cap of one attempt's log.
    pub log_bytes_max: u64,
    /// Processes that wait in advance.
    pub warm: WarmShims,
    /// How many other daemons work here.
    pub peers: Peers,
    /// Where the configuration of this daemon is not the one that was loaded last.
    pub drift: Drifted,
    /// What happened to runs of graphs.
    pub mailboxes: Mailboxes,
    /// Compiled definitions.
    pub graphs: GraphShelf,
    /// Whose turn it is in the queues of tasks.
    pub turns: Turns,
    /// Workers that wait for a task.
    pub waiting_workers: WaitingWorkers,
    /// The room on the disk.
    pub disk: DiskWatch,
    /// What was compiled of the declared objects of routing.
    pub routing: Shelf,
    stopping: Arc<watch::Sender<bool>>,
}

/// The parts from which an [`Engine`] is made.
#[derive(Debug)]
pub struct EngineParts {
    /// Everything durable.
    pub store: Store,
    /// What the configuration says.
    pub book: Book,
    /// The clocks.
    pub clock: Arc<dyn Clock>,
    /// Where the daemon runs.
    pub place: Place,
    /// The state directory.
    pub directory: StateDirectory,
    /// The cap of one attempt's log.
    pub log_bytes_max: u64,
    /// Where a shim's program is.
    pub program: PathBuf,
}

impl Engine {
    /// Puts the parts together; starts nothing.
    pub fn new(parts: EngineParts) -> Engine {
        Engine {
            node: parts.book.node.clone(),
            store: parts.store,
            shelf: BookShelf::new(parts.book),
            clock: parts.clock,
            place: parts.place,
            directory: Arc::new(parts.directory),
            live: LiveTable::default(),
            metrics: Arc::new(Metrics::new()),
            clock_watch: ClockWatch::default(),
            wake: Arc::new(Notify::new()),
            report_wake: Arc::new(Notify::new()),
            pulse: Arc::default(),
            wake_follow_ups: Arc::new(Notify::new()),
            deferred: DeferredSettlements::default(),
            log_bytes_max: parts.log_bytes_max,
            warm: WarmShims::new(parts.program),
            peers: Peers::default(),
            drift: Drifted::default(),
            mailboxes: Mailboxes::default(),
            graphs: GraphShelf::default(),
            turns: Turns::default(),
            waiting_workers: WaitingWorkers::default(),
            disk: DiskWatch::default(),
            routing: Shelf::default(),
            stopping: Arc::new(watch::Sender::new(false)),
        }
    }

    /// True while another daemon of this state directory lives.
    pub fn others_live(&self) -> bool {
        let own = self.node.as_str();
        let holders = self.directory.holders();
        holders.iter().any(|(name, _)| name != own)
    }

    /// Both clocks now.
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// What this daemon sees of its machine now, as changes ask for it.
    pub fn rules(&self) -> Rules {
        Rules {
            expiry_held: self.clock_watch.holds_expiry(self.now()),
            no_room: self.disk.lack().is_some(),
        }
    }

    /// The book in force.
    pub fn book(&self) -> Arc<Book> {
        self.shelf.current()
    }

    /// Reads a snapshot on a thread that may block.
    pub async fn read<T, F>(&self, read: F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: FnMut(&mut ReadTx) -> Result<T, StoreError> + Send + 'static,
    {
        let store = self.store.clone();
        let (begins, begun) = oneshot::channel();
        let (mut read, mut begins) = (read, Some(begins));
        let reading = tokio::task::spawn_blocking(move || {
            store.read(|tx| {
                if let Some(begins) = begins.take() {
                    begins.send(()).ok();
                }
                read(tx)
            })
        });
        // A peer that is stopped in the middle of its commit holds up a snapshot; what reads then may take its time.
        let patience = Duration::from_millis(limits::OPERATION_MS);
        if tokio::time::timeout(patience, begun).await.is_err() {
            return Err(StoreError::Held);
        }
        match reading.await {
            Ok(result) => result,
            Err(panic) => std::panic::resume_unwind(panic.into_panic()),
        }
    }

    /// What passes of a tenant need to know of it.
    pub async fn tenancy(&self, tenant: TenantId) -> Result<Tenancy, StoreError> {
        let mode = self.book().pipeline_mode;
        self.read(move |tx| Tenancy::of(tx, tenant, mode)).await
    }

    /// Wakes whoever executes what a commit has made ready; remote workers and requests are met by the commit itself.
    pub fn rouse(&self, ready: &Ready) {
        if ready.processes > 0 {
            self.wake.notify_one();
        }
    }

    /// No new claims and no new fires from now on.
    pub fn begin_stopping(&self) {
        self.stopping.send_replace(true);
        self.wake.notify_one();
    }

    /// True once [`Engine::begin_stopping`] was called.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.borrow()
    }

    /// Resolves once [`Engine::begin_stopping`] was called.
    pub async fn until_stopping(&self) {
        // The sender is in this very struct, so it cannot go first.
        self.stopping
            .subscribe()
            .wait_for(|stopping| *stopping)
            .await
            .ok();
    }
}

/// How many other daemons live and are not drained, as the last look around has found.
#[derive(Debug, Clone, Default)]
pub struct Peers {
    working: Arc<AtomicU32>,
}

impl Peers {
    /// The number.
    pub fn working(&self) -> u32 {
        self.working.load(Ordering::Relaxed)
    }

    /// Another look has found so many.
    pub fn found(&self, number: u32) {
        self.working.store(number, Ordering::Relaxed);
    }
}

/// What was last found out about the drift of this daemon; the faces show it.
#[derive(Debug, Clone, Default)]
pub struct Drifted {
    inner: Arc<Mutex<Arc<Drift>>>,
}

impl Drifted {
    /// What differs now.
    pub fn now(&self) -> Arc<Drift> {
        Arc::clone(&self.inner.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Something else differs now; what differed before.
    pub fn note(&self, drift: Drift) -> Arc<Drift> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut inner, Arc::new(drift))
    }
}

/// A settlement that the store could not take, with the generation that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deferred {
    /// The job.
    pub job: JobName,
    /// The node of its scope.
    pub node: String,
    /// The moment that should have settled it.
    pub instant: Millis,
    /// The generation at that time; `None` if that could not be read either, and the newest fire decides.
    pub generation: Option<u64>,
}

/// Settlements that wait for the store. Whoever reaches it first applies them; one that comes too late does nothing.
#[derive(Debug, Clone, Default)]
pub struct DeferredSettlements {
    inner: Arc<Mutex<Vec<Deferred>>>,
}

impl DeferredSettlements {
    fn lock(&self) -> MutexGuard<'_, Vec<Deferred>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds one; the same scope once.
    pub fn push(&self, deferred: Deferred) {
        let mut waiting = self.lock();
        let same = |other: &Deferred| other.job == deferred.job && other.node == deferred.node;
        if !waiting.iter().any(same) {
            waiting.push(deferred);
        }
    }

    /// A copy of what waits.
    pub fn waiting(&self) -> Vec<Deferred> {
        self.lock().clone()
    }

    /// Forgets those that were applied.
    pub fn applied(&self, applied: &[Deferred]) {
        self.lock().retain(|waiting| !applied.contains(waiting));
    }
}

/// Holds expiry back when the wall clock runs ahead of the boot clock, until the next pass agrees (section 4.4). Passes move
/// it on; everything else that would expire entries only asks.
#[derive(Debug, Clone, Default)]
pub struct ClockWatch {
    inner: Arc<Mutex<Watched>>,
}

#[derive(Debug, Default)]
struct Watched {
    last_pass: Option<Now>,
    held: bool,
}

impl Watched {
    /// Milliseconds that the wall clock has gained since the last pass.
    fn ahead_ms(&self, now: Now) -> u64 {
        self.last_pass.map_or(0, |last| {
            let boot = last.boot.until(now.boot);
            now.wall.since(last.wall).saturating_sub(boot)
        })
    }
}

impl ClockWatch {
    fn lock(&self) -> MutexGuard<'_, Watched> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A pass begins: the milliseconds of a jump since the last one, if expiry is held back for it.
    pub fn pass(&self, now: Now) -> Option<u64> {
        let mut watched = self.lock();
        let ahead = watched.ahead_ms(now);
        watched.last_pass = Some(now);
        watched.held = ahead > limits::CLOCK_JUMP_MS;
        watched.held.then_some(ahead)
    }

    /// True when nothing may expire now.
    pub fn holds_expiry(&self, now: Now) -> bool {
        let watched = self.lock();
        watched.held || watched.ahead_ms(now) > limits::CLOCK_JUMP_MS
    }
}

/// When the loops that a daemon cannot be without last turned, on the boot clock.
#[derive(Debug, Default)]
pub struct Pulse {
    scheduler: AtomicU64,
    dispatcher: AtomicU64,
}

impl Pulse {
    /// The scheduler turns.
    pub fn scheduler_turns(&self, now: Now) {
        self.scheduler.store(now.boot.0, Ordering::Relaxed);
    }

    /// The dispatcher turns.
    pub fn dispatcher_turns(&self, now: Now) {
        self.dispatcher.store(now.boot.0, Ordering::Relaxed);
    }

    /// The first loop that has not turned for too long.
    pub fn lost(&self, now: Now) -> Option<&'static str> {
        let is_lost = |turned: &AtomicU64| {
            BootMillis(turned.load(Ordering::Relaxed)).until(now.boot) > limits::PULSE_LOST_MS
        };
        match (is_lost(&self.scheduler), is_lost(&self.dispatcher)) {
            (true, _) => Some("the scheduler does not answer"),
            (_, true) => Some("the dispatcher does not answer"),
            (false, false) => None,
        }
    }
}

/// True when the operation surely changed nothing.
pub fn is_surely_undone(error: &ChangeError) -> bool {
    match error {
        ChangeError::Withdrawn | ChangeError::Failed(_) | ChangeError::Panicked(_) => true,
        ChangeError::Unknown => false,
    }
}
