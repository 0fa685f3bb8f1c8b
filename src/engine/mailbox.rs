//! The mailboxes of runs: what happened to a run is posted here and folded into it by the coordinator, all at once. And the
//! seats of those who wait for steps: the change that makes a step ready claims it for who has waited longest.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use tokio::sync::{Notify, oneshot, watch};

use super::changes::graph::EndedClaim;
use super::changes::tasks::{self, ClaimedTask};
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::tick::{Fact, Taken};
use crate::domain::workflow::run::Run;
use crate::store::{ReadTx, StoreError};
use crate::words::ids::RunId;

/// Something that happened to a run.
#[derive(Debug)]
pub struct Letter {
    /// What.
    pub fact: Fact,
    /// The claim that has ended, if it says so.
    pub claim: Option<EndedClaim>,
    /// Told when it is written.
    pub reply: Option<oneshot::Sender<Taken>>,
}

/// All mailboxes of a daemon. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Mailboxes {
    inner: Arc<Mutex<Inner>>,
    arrived: Arc<Notify>,
    /// Wakes who waits for tasks.
    pub tasks: Arc<Notify>,
    /// Wakes who sends requests.
    pub requests: Arc<Notify>,
    /// Who waits for the end of a run.
    pub ends: Ends,
}

/// How a run has ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The run, ended.
    pub run: Run,
    /// What it has made.
    pub result: Option<Payload>,
}

/// What is said to who waits for the end of a run.
#[derive(Debug, Clone, PartialEq)]
enum Word {
    /// Another daemon has written something: it may have ended. How often that was.
    Look(u64),
    /// It has ended here.
    Ended(Arc<Ended>),
}

/// Who waits for the end of a run: each is woken by that end alone, and told it. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Ends {
    inner: Arc<Mutex<HashMap<RunId, watch::Sender<Word>>>>,
}

/// Somebody who waits for the end of a run, until it is dropped.
#[derive(Debug)]
pub struct AwaitedEnd {
    ends: Ends,
    run: RunId,
    told: watch::Receiver<Word>,
}

impl Ends {
    fn lock(&self) -> MutexGuard<'_, HashMap<RunId, watch::Sender<Word>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait: before the run begins, or with a look at it afterwards.
    pub fn expect(&self, run: RunId) -> AwaitedEnd {
        let mut all = self.lock();
        let word = all
            .entry(run)
            .or_insert_with(|| watch::Sender::new(Word::Look(0)));
        AwaitedEnd {
            ends: self.clone(),
            run,
            told: word.subscribe(),
        }
    }

    /// True if somebody waits for the end of this run.
    pub fn is_awaited(&self, run: RunId) -> bool {
        self.lock().contains_key(&run)
    }

    /// A run has ended.
    pub fn ended(&self, ended: Ended) {
        if let Some(word) = self.lock().get(&ended.run.id) {
            word.send_replace(Word::Ended(Arc::new(ended)));
        }
    }

    /// Runs may have ended elsewhere: everybody is to look.
    pub fn look(&self) {
        for word in self.lock().values() {
            word.send_if_modified(|word| {
                let Word::Look(times) = word else { return false };
                *times += 1;
                true
            });
        }
    }
}

impl AwaitedEnd {
    /// The run.
    pub fn run(&self) -> RunId {
        self.run
    }

    /// The end, once it is known; `None` when somebody has to look.
    pub async fn told(&mut self) -> Option<Arc<Ended>> {
        if let Word::Ended(ended) = &*self.told.borrow() {
            return Some(Arc::clone(ended));
        }
        // The sender stays in the table as long as this waits.
        self.told.changed().await.ok();
        match &*self.told.borrow_and_update() {
            Word::Ended(ended) => Some(Arc::clone(ended)),
            Word::Look(_) => None,
        }
    }
}

impl Drop for AwaitedEnd {
    fn drop(&mut self) {
        let mut all = self.ends.lock();
        // This one is still counted.
        if all.get(&self.run).is_some_and(|word| word.receiver_count() <= 1) {
            all.remove(&self.run);
        }
    }
}

#[derive(Debug, Default)]
struct Inner {
    letters: HashMap<RunId, Vec<Letter>>,
    /// Runs whose stored facts or timers are to be looked at.
    due: BTreeMap<RunId, Vec<Fact>>,
    /// Runs that somebody works on.
    busy: BTreeSet<RunId>,
    /// Facts may have been stored: the table is to be looked at.
    look: bool,
}

impl Mailboxes {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Posts a letter.
    pub fn post(&self, run: RunId, letter: Letter) {
        self.lock().letters.entry(run).or_default().push(letter);
        self.arrived.notify_one();
    }

    /// Posts a fact and gives what tells that it is written.
    pub fn tell(&self, run: RunId, fact: Fact, claim: Option<EndedClaim>) -> oneshot::Receiver<Taken> {
        let (reply, told) = oneshot::channel();
        let letter = Letter {
            fact,
            claim,
            reply: Some(reply),
        };
        self.post(run, letter);
        told
    }

    /// Facts may have been stored.
    pub fn look(&self) {
        self.lock().look = true;
        self.arrived.notify_one();
    }

    /// True once after [`Mailboxes::look`].
    pub fn take_look(&self) -> bool {
        std::mem::take(&mut self.lock().look)
    }

    /// A run is to be looked at, and these timers of it are due.
    pub fn due(&self, run: RunId, timers: Vec<Fact>) {
        let mut inner = self.lock();
        let due = inner.due.entry(run).or_default();
        for fact in timers {
            if !due.contains(&fact) {
                due.push(fact);
            }
        }
    }

    /// Runs that have something to fold and that nobody works on, so many at most; they are worked on from now.
    pub fn take_runs(&self, most: usize) -> Vec<RunId> {
        let mut inner = self.lock();
        let wanted: BTreeSet<RunId> = inner.letters.keys().chain(inner.due.keys()).copied().collect();
        let free: Vec<RunId> = wanted.difference(&inner.busy).copied().take(most).collect();
        inner.busy.extend(free.iter().copied());
        free
    }

    /// Begins to work on a run, unless somebody does already.
    pub fn begin(&self, run: RunId) -> bool {
        self.lock().busy.insert(run)
    }

    /// Everything that was posted to a run.
    pub fn take(&self, run: RunId) -> (Vec<Letter>, Vec<Fact>) {
        let mut inner = self.lock();
        (
            inner.letters.remove(&run).unwrap_or_default(),
            inner.due.remove(&run).unwrap_or_default(),
        )
    }

    /// Puts letters back in front: they could not be written.
    pub fn put_back(&self, run: RunId, mut letters: Vec<Letter>) {
        let mut inner = self.lock();
        let newer = inner.letters.remove(&run).unwrap_or_default();
        letters.extend(newer);
        if !letters.is_empty() {
            inner.letters.insert(run, letters);
        }
    }

    /// Nobody works on the run any more.
    pub fn done(&self, run: RunId) {
        self.lock().busy.remove(&run);
        self.arrived.notify_one();
    }

    /// True when nothing waits and nobody works.
    pub fn is_idle(&self) -> bool {
        let inner = self.lock();
        inner.letters.is_empty() && inner.busy.is_empty()
    }

    /// Resolves when something was posted since the last time.
    pub async fn arrived(&self) {
        self.arrived.notified().await;
    }
}

/// What somebody who executes steps asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The queue.
    pub queue: String,
    /// What a remote worker calls itself; none for this program.
    pub worker: Option<String>,
    /// So many steps at most.
    pub max: usize,
}

/// One who waits.
#[derive(Debug)]
pub struct Waiter {
    number: u64,
    /// For what.
    pub ask: Ask,
    /// Where it gets its claims.
    pub reply: oneshot::Sender<Vec<ClaimedTask>>,
}

/// Those who wait for steps at this daemon, and what the tokens of remote ones are signed with. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct WaitingWorkers {
    inner: Arc<Mutex<(u64, Vec<Waiter>)>>,
    /// Read once: it never changes.
    key: Arc<OnceLock<[u64; 2]>>,
}

impl WaitingWorkers {
    /// What tokens are signed with, if a task was ever claimed.
    pub fn key(&self, tx: &mut ReadTx) -> Result<Option<[u64; 2]>, StoreError> {
        if let Some(key) = self.key.get() {
            return Ok(Some(*key));
        }
        let key = tasks::known_key(tx)?;
        Ok(key.map(|key| *self.key.get_or_init(|| key)))
    }

    fn lock(&self) -> MutexGuard<'_, (u64, Vec<Waiter>)> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// True when nobody waits.
    pub fn is_empty(&self) -> bool {
        self.lock().1.is_empty()
    }

    /// Sits down, until the seat is dropped.
    pub fn sit(&self, ask: Ask) -> (Seat, oneshot::Receiver<Vec<ClaimedTask>>) {
        let (reply, told) = oneshot::channel();
        let mut inner = self.lock();
        inner.0 += 1;
        let number = inner.0;
        inner.1.push(Waiter { number, ask, reply });
        let workers = self.clone();
        (Seat { workers, number }, told)
    }

    /// Who has waited longest for each of these queues, for so many steps.
    pub fn take(&self, queues: &BTreeMap<String, usize>) -> Vec<Waiter> {
        let mut inner = self.lock();
        inner.1.retain(|waiter| !waiter.reply.is_closed());
        let mut taken = Vec::new();
        for (queue, count) in queues {
            let mut left = *count;
            while left > 0
                && let Some(place) = inner.1.iter().position(|waiter| waiter.ask.queue == *queue)
            {
                let waiter = inner.1.remove(place);
                left = left.saturating_sub(waiter.ask.max.max(1));
                taken.push(waiter);
            }
        }
        taken
    }

    /// These wait on.
    pub fn put_back(&self, waiters: Vec<Waiter>) {
        let mut inner = self.lock();
        inner.1.extend(waiters);
        inner.1.sort_by_key(|waiter| waiter.number);
    }
}

/// The seat of one who waits.
#[derive(Debug)]
pub struct Seat {
    workers: WaitingWorkers,
    number: u64,
}

impl Seat {
    /// True if it was still waited; otherwise somebody is about to answer.
    pub fn leave(&self) -> bool {
        let mut inner = self.workers.lock();
        let before = inner.1.len();
        inner.1.retain(|waiter| waiter.number != self.number);
        inner.1.len() < before
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave();
    }
}
