//! The executions of this daemon: how to end each, how to follow its log, and until when its lease holds.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

use super::changes::renew::Renewal;
use crate::words::ids::{EntryId, RunId};
use crate::words::names::{JobName, SlotPoolName, StepRef};
use crate::words::time::{BootMillis, Millis};
use crate::worker::command::Stop;

/// The environment entries that only the processes of one claim have.
pub fn marks_of(entry: Option<EntryId>, fence: u64) -> Vec<(String, String)> {
    let mut marks = vec![("DUCTOR_FENCE".to_owned(), fence.to_string())];
    marks.extend(entry.map(|id| ("DUCTOR_ENTRY_ID".to_owned(), id.to_string())));
    marks
}

/// One execution.
#[derive(Debug, Clone)]
pub struct LiveHandle {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The job.
    pub job: JobName,
    /// The attempt number.
    pub number: u32,
    /// When it was claimed.
    pub claimed_at: Millis,
    /// Ends it.
    pub stop: watch::Sender<Option<Stop>>,
    /// The size of its log.
    pub log_size: watch::Receiver<u64>,
    /// Its lease, for a pooled step.
    pub lease: Option<HeldLease>,
}

/// The lease of an execution.
#[derive(Debug, Clone)]
pub struct HeldLease {
    /// What to renew.
    pub renewal: Renewal,
    /// The entry's id, for messages.
    pub entry: EntryId,
    /// The end, on the boot clock.
    pub until: BootMillis,
    /// False when the command has ended and its completion cannot be written: the lease must run out then.
    pub renewing: bool,
    /// It was given up.
    pub lost: bool,
}

/// Early requests kept: the moment between a claim's commit and its task is short.
const EARLY_MAX: usize = 1_024;

/// All executions of this daemon, by fence.
#[derive(Debug, Clone, Default)]
pub struct LiveTable {
    inner: Arc<Mutex<BTreeMap<u64, LiveHandle>>>,
    /// Requests to end an execution whose claim is written and whose task is not here yet; the newest few.
    early: Arc<Mutex<BTreeMap<u64, Stop>>>,
    changed: Arc<Notify>,
}

impl LiveTable {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u64, LiveHandle>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn early(&self) -> MutexGuard<'_, BTreeMap<u64, Stop>> {
        self.early.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an execution; a request to end it that came before is passed on.
    pub fn add(&self, fence: u64, handle: LiveHandle) {
        self.lock().insert(fence, handle);
        let early = self.early().remove(&fence);
        if let Some(stop) = early {
            self.stop(fence, &stop);
        }
        self.changed.notify_waiters();
    }

    /// Takes an execution off: it has ended and that is recorded.
    pub fn remove(&self, fence: u64) {
        self.lock().remove(&fence);
        self.changed.notify_waiters();
    }

    /// Asks an execution to end; false if this daemon has none of that fence (yet).
    pub fn stop(&self, fence: u64, stop: &Stop) -> bool {
        let table = self.lock();
        let Some(handle) = table.get(&fence) else {
            let mut early = self.early();
            early.insert(fence, stop.clone());
            if early.len() > EARLY_MAX {
                early.pop_first();
            }
            return false;
        };
        // A lost lease overrides a polite request, nothing overrides a lost lease.
        handle.stop.send_if_modified(|current| match (&current, stop) {
            (None, _) | (Some(Stop::Requested(_) | Stop::DaemonStopped), Stop::LeaseLost { .. }) => {
                *current = Some(stop.clone());
                true
            }
            (Some(_), _) => false,
        });
        true
    }

    /// Asks all executions to end.
    pub fn stop_all(&self, stop: &Stop) {
        let fences: Vec<u64> = self.lock().keys().copied().collect();
        for fence in fences {
            self.stop(fence, stop);
        }
    }

    /// The handle of a fence.
    pub fn get(&self, fence: u64) -> Option<LiveHandle> {
        self.lock().get(&fence).cloned()
    }

    /// The handle of an attempt of a run.
    pub fn of_attempt(&self, run: RunId, step: &StepRef, number: u32) -> Option<(u64, LiveHandle)> {
        let table = self.lock();
        let found = table
            .iter()
            .find(|(_, live)| live.run == run && live.step == *step && live.number == number);
        found.map(|(fence, live)| (*fence, live.clone()))
    }

    /// Fences of all executions.
    pub fn fences(&self) -> Vec<u64> {
        self.lock().keys().copied().collect()
    }

    /// Names of what runs, for messages.
    pub fn jobs(&self) -> Vec<String> {
        self.lock().values().map(|live| live.job.to_string()).collect()
    }

    /// How many executions there are.
    pub fn len(&self) -> usize {
        self.lock().len()
    }

    /// True when nothing runs.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// The leases that this daemon holds.
    pub fn leases(&self) -> Vec<(u64, HeldLease)> {
        self.lock()
            .iter()
            .filter_map(|(fence, live)| live.lease.clone().map(|lease| (*fence, lease)))
            .collect()
    }

    /// Changes a lease.
    pub fn update_lease(&self, fence: u64, update: impl FnOnce(&mut HeldLease)) {
        if let Some(lease) = self.lock().get_mut(&fence).and_then(|live| live.lease.as_mut()) {
            update(lease);
        }
    }

    /// Slots pools with held leases and the least time that is left in any of them.
    pub fn soonest_end(&self, slot_pool: &SlotPoolName) -> Option<BootMillis> {
        let table = self.lock();
        let leases = table.values().filter_map(|live| live.lease.as_ref());
        leases
            .filter(|lease| lease.renewal.slot_pool == *slot_pool)
            .map(|lease| lease.until)
            .min()
    }

    /// Resolves when an execution is added or removed after this call.
    pub fn changed(&self) -> tokio::sync::futures::Notified<'_> {
        self.changed.notified()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stop_that_comes_before_its_execution_is_not_lost() {
        let table = LiveTable::default();
        let stop = Stop::Requested("cancelled by local".to_owned());
        assert!(!table.stop(7, &stop));
        let (sender, receiver) = watch::channel(None);
        let handle = LiveHandle {
            run: RunId([1; 16]),
            step: StepRef::main(),
            job: JobName::new("j").unwrap(),
            number: 1,
            claimed_at: Millis(1),
            stop: sender,
            log_size: watch::channel(0).1,
            lease: None,
        };
        table.add(7, handle);
        assert_eq!(*receiver.borrow(), Some(stop));
    }
}
