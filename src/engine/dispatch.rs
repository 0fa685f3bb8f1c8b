//! The pass: once a second, and whenever something moved, it claims what may start and sends it off.
//!
//! A process waits behind its gate before its claim is written, so that a claim and its identity are one commit. What a
//! pass did not need waits warm for the next.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::changes::claim::{self, Pass, Passed};
use super::changes::maintain::Rules;
use super::core::Engine;
use super::runner;
use super::warm::process_of;
use crate::domain::slots::admission::CapacityStep;
use crate::store::StoreError;
use crate::words::limits;
use crate::words::names::SlotPoolName;
use crate::words::time::{BootMillis, Now};

/// The loop of passes.
#[derive(Debug)]
pub struct Dispatcher {
    engine: Engine,
    unreadable: BTreeMap<SlotPoolName, String>,
    broken: Unreadable,
    /// Since when something waits that was left to the others.
    left_since: Option<BootMillis>,
}

/// When a pass follows another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Next {
    AtOnce,
    /// When the others have had the time to claim what was left to them.
    AfterOthers,
    Later,
}

/// Slot pools that cannot be read, as the faces show them.
#[derive(Debug, Clone, Default)]
pub struct Unreadable {
    names: Arc<Mutex<BTreeMap<SlotPoolName, String>>>,
}

impl Unreadable {
    /// The names and causes now.
    pub fn now(&self) -> BTreeMap<SlotPoolName, String> {
        self.names.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Dispatcher {
    /// A dispatcher that has not passed yet.
    pub fn new(engine: Engine) -> Dispatcher {
        Dispatcher {
            engine,
            unreadable: BTreeMap::new(),
            broken: Unreadable::default(),
            left_since: None,
        }
    }

    /// What the faces may look at.
    pub fn unreadable(&self) -> Unreadable {
        self.broken.clone()
    }

    /// Passes until the daemon stops.
    pub async fn run(mut self) {
        let period = Duration::from_millis(limits::PASS_PERIOD_MS);
        while !self.engine.is_stopping() {
            let next = match self.pass_once().await {
                Ok(next) => next,
                Err(error) => {
                    tracing::warn!(cause = %error, "this pass could not be done");
                    Next::Later
                }
            };
            let pause = match next {
                Next::AtOnce => continue,
                Next::Later => period,
                Next::AfterOthers => Duration::from_millis(limits::YIELD_MS),
            };
            let wake = Arc::clone(&self.engine.wake);
            tokio::select! {
                () = wake.notified() => self.engine.warm.refill(),
                () = tokio::time::sleep(pause) => if next == Next::Later { self.cool() },
            }
        }
    }

    /// Idle for a whole period: one warm process less, but one always waits.
    fn cool(&mut self) {
        if self.engine.live.is_empty() {
            self.engine.warm.cool();
        }
    }

    /// To how many others this pass leaves what would take it over its share. They have had their time when something was
    /// left long enough.
    fn leave_to(&self, now: Now) -> u32 {
        let is_over = |since: BootMillis| since.until(now.boot) >= limits::YIELD_MS;
        match self.left_since {
            Some(since) if is_over(since) => 0,
            Some(_) | None => self.engine.peers.working(),
        }
    }

    /// One pass; when the next should follow.
    async fn pass_once(&mut self) -> Result<Next, String> {
        let book = self.engine.book();
        let now = self.engine.now();
        let rules = self.judge_clock(now);
        let for_look = Arc::clone(&book);
        let look = self
            .engine
            .read(move |tx| claim::look(tx, &for_look, now.wall, rules))
            .await;
        let look = look.map_err(|error| error.to_string())?;
        self.engine.metrics.passed();
        self.engine.pulse.dispatcher_turns(now);
        self.report_unreadable(&look.unreadable);
        if look.claims == 0 && !look.work {
            self.left_since = None;
            return Ok(Next::Later);
        }
        let mut shims = self.engine.warm.take(look.claims);
        if shims.is_empty() && !look.work {
            return Ok(Next::Later);
        }
        let place = self.engine.place.clone();
        let processes = shims.iter().map(process_of).collect();
        let pass = Pass {
            place,
            processes,
            rules,
            leave_to: self.leave_to(now),
            turns: self.engine.turns.clone(),
            shelf: self.engine.graphs.clone(),
        };
        let changed = self
            .engine
            .store
            .change("pass", move |tx| claim::pass(tx, &book, &pass))
            .await;
        let passed = match changed {
            Ok(passed) => passed,
            Err(error) => {
                // Nothing runs without its claim: these processes end by themselves. A claim that was written all the
                // same has no process then, and is put back by the hunt.
                drop(shims);
                return Err(error.to_string());
            }
        };
        let next = if passed.more && !passed.claimed.is_empty() {
            Next::AtOnce
        } else if passed.left {
            Next::AfterOthers
        } else {
            Next::Later
        };
        self.left_since = match (passed.left, self.left_since) {
            (false, _) => None,
            (true, Some(since)) if passed.claimed.is_empty() => Some(since),
            (true, _) => Some(now.boot),
        };
        self.report(&passed);
        runner::act(&self.engine, passed, &mut shims);
        self.engine.warm.give_back(shims);
        Ok(next)
    }

    /// A wall clock that ran ahead of the boot clock holds expiry back for one pass.
    pub(super) fn judge_clock(&self, now: Now) -> Rules {
        let jump = self.engine.clock_watch.pass(now);
        if let Some(ahead) = jump {
            tracing::warn!("clock moved by {} s; holding back expiry", ahead / 1_000);
        }
        Rules {
            expiry_held: jump.is_some(),
            no_room: self.engine.disk.lack().is_some(),
        }
    }

    fn report(&mut self, passed: &Passed) {
        self.report_unreadable(&passed.unreadable);
        for (name, step) in &passed.capacity {
            self.report_capacity(name, *step);
        }
    }

    fn report_capacity(&self, name: &SlotPoolName, step: CapacityStep) {
        let configured = self
            .engine
            .book()
            .slot_pools
            .get(name)
            .map_or(0, |slots| slots.slots);
        match step {
            CapacityStep::Keep | CapacityStep::Forget => {}
            CapacityStep::Drain => {
                tracing::info!(slot_pool = %name, "pool {name}: draining to {configured} slots");
            }
            CapacityStep::Adopt => {
                tracing::info!(slot_pool = %name, "pool {name}: capacity is now {configured}");
            }
        }
    }

    /// Logs each cause once, and when it ends.
    fn report_unreadable(&mut self, unreadable: &[(SlotPoolName, StoreError)]) {
        let now: BTreeMap<SlotPoolName, String> = unreadable
            .iter()
            .map(|(name, error)| (name.clone(), error.to_string()))
            .collect();
        for (name, cause) in &now {
            if self.unreadable.get(name) != Some(cause) {
                tracing::error!(slot_pool = %name, "pool {name} cannot be read: {cause}");
            }
        }
        for name in self.unreadable.keys().filter(|name| !now.contains_key(*name)) {
            tracing::info!(slot_pool = %name, "pool {name} can be read again");
        }
        if now != self.unreadable {
            *self.broken.names.lock().unwrap_or_else(PoisonError::into_inner) = now.clone();
            self.unreadable = now;
        }
    }
}
