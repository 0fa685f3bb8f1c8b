//! The one thread that writes: it takes what waits, runs it in one transaction, commits once, and answers all.
//!
//! A request is pending until the writer takes it; until then its caller may withdraw it and is sure that it was not
//! applied. A change that aborts or panics rolls its batch back, and the batch is run again one change at a time, so
//! that a bad one hurts nobody else. A fault of the file closes the handle, and the reopen loop brings it back; whether
//! the failed commit had landed after all is read from the sequence number then.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tokio::sync::oneshot;

use super::error::{ChangeError, StoreError};
use super::feed::FeedRow;
use super::handle::Shared;
use super::tables::CHANGES;
use super::tx::{Abort, Tx};
use crate::words::limits;

const PENDING: u8 = 0;
const TAKEN: u8 = 1;
const WITHDRAWN: u8 = 2;

/// What the writer does with a change.
pub(super) trait Job: Send {
    /// Runs it inside the transaction, keeping its answer; may be called again after a rollback.
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Abort>;
    /// Sends the kept answer, or the failure.
    fn finish(&mut self, failure: Option<ChangeError>);
    /// The name for logs.
    fn name(&self) -> &'static str;
}

/// A change with the place where its answer goes.
pub(super) struct TypedJob<T, F> {
    pub(super) name: &'static str,
    pub(super) change: F,
    pub(super) answer: Option<T>,
    pub(super) reply: Option<oneshot::Sender<Result<T, ChangeError>>>,
}

impl<T, F> Job for TypedJob<T, F>
where
    T: Send,
    F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send,
{
    fn run(&mut self, tx: &mut Tx<'_>) -> Result<(), Abort> {
        self.answer = Some((self.change)(tx)?);
        Ok(())
    }

    fn finish(&mut self, failure: Option<ChangeError>) {
        let Some(reply) = self.reply.take() else { return };
        let result = match (failure, self.answer.take()) {
            (Some(failure), _) => Err(failure),
            (None, Some(answer)) => Ok(answer),
            (None, None) => Err(ChangeError::Panicked(self.name)),
        };
        // A caller that has gone away needs no answer.
        drop(reply.send(result));
    }

    fn name(&self) -> &'static str {
        self.name
    }
}

/// A queued change.
pub(super) struct Request {
    state: AtomicU8,
    job: Mutex<Option<Box<dyn Job>>>,
}

impl Request {
    pub(super) fn new(job: Box<dyn Job>) -> Arc<Request> {
        Arc::new(Request {
            state: AtomicU8::new(PENDING),
            job: Mutex::new(Some(job)),
        })
    }

    /// True if the writer had not taken it and now never will.
    pub(super) fn withdraw(&self) -> bool {
        self.state
            .compare_exchange(PENDING, WITHDRAWN, Ordering::AcqRel, Ordering::Acquire)
            .is_ok()
    }

    fn take(&self) -> Option<Box<dyn Job>> {
        self.state
            .compare_exchange(PENDING, TAKEN, Ordering::AcqRel, Ordering::Acquire)
            .ok()?;
        lock(&self.job).take()
    }
}

/// What waits for the writer.
#[derive(Default)]
pub(super) struct Queue {
    inner: Mutex<QueueState>,
    arrived: Condvar,
}

#[derive(Default)]
struct QueueState {
    waiting: VecDeque<Arc<Request>>,
    hand_over: bool,
    closed: bool,
}

impl Queue {
    /// Appends a request; refused when the queue is at its limit or closed.
    pub(super) fn push(&self, request: &Arc<Request>) -> Result<(), StoreError> {
        let mut state = lock(&self.inner);
        if state.closed {
            return Err(StoreError::NotOpen);
        }
        if state.waiting.len() >= limits::WRITER_QUEUE_MAX {
            return Err(StoreError::Overloaded(state.waiting.len()));
        }
        state.waiting.push_back(Arc::clone(request));
        drop(state);
        self.arrived.notify_one();
        Ok(())
    }

    /// No more requests; what waits is still done.
    pub(super) fn close(&self) {
        lock(&self.inner).closed = true;
        self.arrived.notify_all();
    }

    /// Another daemon wants in: the writer lets it when its batch is done.
    pub(super) fn ask_hand_over(&self) {
        lock(&self.inner).hand_over = true;
        self.arrived.notify_one();
    }

    /// Requests that wait now.
    pub(super) fn len(&self) -> usize {
        lock(&self.inner).waiting.len()
    }

    pub(super) fn is_closed(&self) -> bool {
        lock(&self.inner).closed
    }

    /// Waits for work. `Wait::Idle` after `patience` without any.
    fn wait(&self, patience: Option<Duration>) -> Wait {
        let mut state = lock(&self.inner);
        loop {
            if std::mem::take(&mut state.hand_over) {
                return Wait::HandOver;
            }
            if !state.waiting.is_empty() {
                return Wait::Work;
            }
            if state.closed {
                return Wait::Closed;
            }
            match patience {
                None => {
                    let woken = self.arrived.wait(state);
                    state = woken.unwrap_or_else(std::sync::PoisonError::into_inner);
                }
                Some(patience) => {
                    let (next, timed_out) = self
                        .arrived
                        .wait_timeout(state, patience)
                        .unwrap_or_else(std::sync::PoisonError::into_inner);
                    state = next;
                    if timed_out.timed_out() && state.waiting.is_empty() && !state.closed && !state.hand_over
                    {
                        return Wait::Idle;
                    }
                }
            }
        }
    }

    fn take_next(&self) -> Option<Box<dyn Job>> {
        loop {
            let request = lock(&self.inner).waiting.pop_front()?;
            if let Some(job) = request.take() {
                return Some(job);
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Wait {
    Work,
    HandOver,
    Idle,
    Closed,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// The writer's loop; returns when the queue is closed and empty.
pub(super) fn run(shared: &Shared) {
    let mut quick_repair_due = false;
    loop {
        let patience = quick_repair_due.then_some(Duration::from_millis(200));
        match shared.queue.wait(patience) {
            Wait::Closed => return,
            Wait::HandOver => {
                quick_repair_due = false;
                if !shared.hand_over() {
                    // An error says that the store was closed meanwhile, which the next turn sees.
                    drop(reopen_until_it_works(shared));
                }
            }
            Wait::Idle => {
                quick_repair_due = false;
                shared.commit_for_quick_repair();
            }
            Wait::Work => {
                let done = catch_unwind(AssertUnwindSafe(|| write_batch(shared)));
                quick_repair_due =
                    done.unwrap_or_else(|_| after_panic(shared)) && shared.wants_quick_repair();
            }
        }
    }
}

/// A panic outside of any change: in redb over a damaged page, say. Its callers learn that the outcome is unknown; the file is
/// opened anew, and the thread goes on.
fn after_panic(shared: &Shared) -> bool {
    tracing::error!("the writer panicked; reopening the store");
    shared.close_handle();
    drop(reopen_until_it_works(shared));
    false
}

/// Does one batch; true if something was committed.
fn write_batch(shared: &Shared) -> bool {
    let mut taken: Vec<Box<dyn Job>> = Vec::new();
    match attempt(shared, &mut taken, true) {
        Attempt::Done { committed } => committed,
        Attempt::BadChange => {
            let mut committed = false;
            for job in taken {
                committed |= write_alone(shared, job);
            }
            committed
        }
        Attempt::StoreFault(error, sequence) => {
            settle_fault(shared, taken, &error, sequence);
            false
        }
    }
}

fn write_alone(shared: &Shared, job: Box<dyn Job>) -> bool {
    let mut alone = vec![job];
    match attempt(shared, &mut alone, false) {
        Attempt::Done { committed } => committed,
        Attempt::BadChange => false,
        Attempt::StoreFault(error, sequence) => {
            settle_fault(shared, alone, &error, sequence);
            false
        }
    }
}

enum Attempt {
    /// Everything in the batch was answered.
    Done { committed: bool },
    /// A change aborted or panicked; alone in its batch it was answered, otherwise nobody was.
    BadChange,
    /// The file failed. The number is the sequence that a landed commit would show.
    StoreFault(StoreError, Option<u64>),
}

/// One transaction: takes requests (or runs those given), commits, answers.
fn attempt(shared: &Shared, taken: &mut Vec<Box<dyn Job>>, take_more: bool) -> Attempt {
    let transaction = match shared.begin_write() {
        Ok(transaction) => transaction,
        Err(error) => return Attempt::StoreFault(error, None),
    };
    // The turn may have been long in coming; nothing is taken yet.
    let now = shared.clock.now();
    let mut tx = Tx::new(&transaction, now).with(&shared.scribe);
    let outcome = run_changes(shared, &mut tx, taken, take_more);
    if let Err(bad) = outcome {
        drop(tx);
        drop(transaction.abort());
        let fault = match &bad {
            ChangeError::Failed(error) if !error.is_row_fault() => Some(error.clone()),
            ChangeError::Failed(_)
            | ChangeError::Panicked(_)
            | ChangeError::Withdrawn
            | ChangeError::Unknown => None,
        };
        if let Some(error) = fault {
            return Attempt::StoreFault(error, None);
        }
        if taken.len() == 1 {
            taken[0].finish(Some(bad));
            taken.clear();
        }
        return Attempt::BadChange;
    }
    if !tx.is_dirty() {
        drop(tx);
        drop(transaction.abort());
        finish_all(taken, None);
        return Attempt::Done { committed: false };
    }
    let (sequence, told) = match write_feed(&mut tx, &shared.landed_key()) {
        Ok(written) => written,
        Err(error) => return Attempt::StoreFault(error, None),
    };
    let counted = tx.take_counted();
    drop(tx);
    let commit = Commit {
        sequence,
        changes: taken.len(),
        told,
    };
    match shared.commit(transaction, &commit) {
        Ok(()) => {
            shared.count_ends(counted);
            finish_all(taken, None);
            Attempt::Done { committed: true }
        }
        Err(error) => Attempt::StoreFault(error, Some(sequence)),
    }
}

fn run_changes(
    shared: &Shared,
    tx: &mut Tx<'_>,
    taken: &mut Vec<Box<dyn Job>>,
    take_more: bool,
) -> Result<(), ChangeError> {
    for job in taken.iter_mut() {
        run_one(tx, job.as_mut())?;
    }
    while take_more && taken.len() < limits::BATCH_CHANGES_MAX && tx.bytes_written() < limits::BATCH_BYTES_MAX
    {
        let Some(job) = shared.queue.take_next() else {
            break;
        };
        taken.push(job);
        if let Some(job) = taken.last_mut() {
            run_one(tx, job.as_mut())?;
        }
    }
    settle(tx)
}

/// The rows that were made beside.
fn settle(tx: &mut Tx<'_>) -> Result<(), ChangeError> {
    match catch_unwind(AssertUnwindSafe(|| tx.settle())) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(error)) => Err(ChangeError::Failed(error)),
        Err(_) => {
            tracing::error!("rows that were made beside a change panicked; it was rolled back");
            Err(ChangeError::Panicked("late rows"))
        }
    }
}

fn run_one(tx: &mut Tx<'_>, job: &mut dyn Job) -> Result<(), ChangeError> {
    match catch_unwind(AssertUnwindSafe(|| job.run(tx))) {
        Ok(Ok(())) => Ok(()),
        Ok(Err(Abort(error))) => Err(ChangeError::Failed(error)),
        Err(_) => {
            tracing::error!(change = job.name(), "a change panicked; it was rolled back");
            Err(ChangeError::Panicked(job.name()))
        }
    }
}

/// Writes the commit's numbers and what it tells; its sequence, and whether it tells anything.
fn write_feed(tx: &mut Tx<'_>, landed_key: &str) -> Result<(u64, bool), StoreError> {
    let sequence = tx.next_number("sequence")?;
    tx.write_number(landed_key, sequence)?;
    let items = tx.take_feed();
    let told = !items.is_empty();
    if told {
        let row = FeedRow {
            at: tx.now().wall,
            items,
        };
        tx.put(&CHANGES, &(sequence,), &row)?;
    }
    Ok((sequence, told))
}

/// What a commit is, beside its rows.
struct Commit {
    sequence: u64,
    changes: usize,
    /// Whether it has something in the feed, so that others want to know.
    told: bool,
}

fn finish_all(taken: &mut Vec<Box<dyn Job>>, failure: Option<&ChangeError>) {
    for mut job in taken.drain(..) {
        job.finish(failure.cloned());
    }
}

/// Reopens the file, then tells the callers of the failed batch whether their commit had landed.
fn settle_fault(shared: &Shared, mut taken: Vec<Box<dyn Job>>, error: &StoreError, sequence: Option<u64>) {
    tracing::error!(cause = %error, "the store failed; reopening it");
    shared.count_fault(error);
    shared.close_handle();
    if sequence.is_none() {
        // Nothing was committed: say so at once.
        finish_all(&mut taken, Some(&ChangeError::Failed(error.clone())));
    }
    if let Err(error) = reopen_until_it_works(shared) {
        finish_all(&mut taken, Some(&ChangeError::Unknown));
        fail_the_rest(shared, &error);
        return;
    }
    let Some(sequence) = sequence else { return };
    let stored = shared.sequence_of(&shared.landed_key());
    let failure = match stored {
        Ok(stored) if stored >= sequence => None,
        Ok(_) => Some(ChangeError::Failed(error.clone())),
        Err(_) => Some(ChangeError::Unknown),
    };
    finish_all(&mut taken, failure.as_ref());
}

/// Tries until the file is open again; an error if the store was closed meanwhile.
fn reopen_until_it_works(shared: &Shared) -> Result<(), StoreError> {
    let mut pause = Duration::from_millis(20);
    while let Err(error) = shared.reopen() {
        if shared.queue.is_closed() {
            return Err(error);
        }
        tracing::warn!(cause = %error, "the store cannot be reopened yet");
        shared.nap(pause);
        pause = (pause * 2).min(Duration::from_millis(500));
    }
    tracing::info!("the store is open again");
    Ok(())
}

/// At exit with a broken file: nobody waits for ever.
fn fail_the_rest(shared: &Shared, error: &StoreError) {
    while let Some(mut job) = shared.queue.take_next() {
        job.finish(Some(ChangeError::Failed(error.clone())));
    }
}

impl Shared {
    pub(super) fn nap(&self, time: Duration) {
        // The queue's own condition variable: a close ends the nap.
        let state = lock(&self.queue.inner);
        if !state.closed {
            drop(self.queue.arrived.wait_timeout(state, time));
        }
    }

    fn commit(&self, transaction: redb::WriteTransaction, commit: &Commit) -> Result<(), StoreError> {
        self.fail("store.commit")?;
        let mut transaction = transaction;
        transaction.set_quick_repair(self.is_large());
        let before = self.clock.now().boot;
        transaction.commit()?;
        let after = self.clock.now().boot;
        self.committed(commit.sequence, commit.changes, before.until(after), commit.told);
        self.fail("store.committed")?;
        Ok(())
    }
}
