//! Processes that wait in advance, so that a claim and its identity are part of the commit that made the claim possible.
//!
//! A process that was named in a change whose outcome is unknown is never used again: it is dropped, ends by itself, and
//! the claim, if it was written, is put back by the hunt.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::slots::claim::ProcessRef;
use crate::words::limits;
use crate::worker::process::Shim;

/// The shelf of waiting processes. Clones share it.
#[derive(Debug, Clone)]
pub struct WarmShims {
    program: PathBuf,
    shelf: Arc<Mutex<Vec<Shim>>>,
}

impl WarmShims {
    /// An empty shelf for processes of `program`.
    pub fn new(program: PathBuf) -> WarmShims {
        WarmShims {
            program,
            shelf: Arc::default(),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Shim>> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Up to `count` processes that wait already.
    pub fn take_waiting(&self, count: usize) -> Vec<Shim> {
        let mut waiting = self.lock();
        let mut taken = Vec::with_capacity(count);
        while taken.len() < count {
            let Some(shim) = waiting.pop() else { break };
            if shim.is_waiting() {
                taken.push(shim);
            }
        }
        taken
    }

    /// `count` processes; those that do not wait already are made, as far as that goes.
    pub fn take(&self, count: usize) -> Vec<Shim> {
        let mut taken = self.take_waiting(count);
        while taken.len() < count {
            match Shim::spawn(&self.program) {
                Ok(shim) => taken.push(shim),
                Err(error) => {
                    tracing::error!(cause = %error, "no process can be made; work waits");
                    break;
                }
            }
        }
        taken
    }

    /// Takes back what was not used.
    pub fn give_back(&self, shims: Vec<Shim>) {
        let mut waiting = self.lock();
        waiting.extend(shims);
        waiting.truncate(limits::WARM_SHIMS_MAX);
    }

    /// Fills the shelf for the next start.
    pub fn refill(&self) {
        let missing = limits::WARM_SHIMS_MAX.saturating_sub(self.lock().len());
        for _ in 0..missing {
            // One that cannot be made now is made, or reported, when it is needed.
            let Ok(shim) = Shim::spawn(&self.program) else {
                return;
            };
            self.give_back(vec![shim]);
        }
    }

    /// One process less, until one is left; none is left without one.
    pub fn cool(&self) {
        let waiting = self.lock().len();
        if waiting > 1 {
            self.lock().pop();
            return;
        }
        let mut one = self.take_waiting(1);
        if one.is_empty() {
            // One that cannot be made now is made, or reported, when it is needed.
            one.extend(Shim::spawn(&self.program).ok());
        }
        self.give_back(one);
    }
}

/// The identity of a waiting process, as a claim stores it.
pub fn process_of(shim: &Shim) -> ProcessRef {
    let identity = shim.identity();
    ProcessRef {
        pid: identity.pid,
        start_ticks: identity.start_ticks,
        group: identity.group,
    }
}
