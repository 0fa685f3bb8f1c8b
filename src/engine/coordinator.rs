//! The coordinator: the only writer of what a run of a graph is. It takes everything that happened to all runs at once, and has
//! it moved (`moving`) on threads that may block.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::core::Engine;
use super::moving::{self, Bundle};
use crate::domain::workflow::graph::tick::Fact;
use crate::store::tables::{FACTS, TIMERS};
use crate::store::{ReadTx, Rows, StoreError};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The loop.
#[derive(Debug)]
pub struct Coordinator {
    engine: Engine,
    /// Groups of runs that may be under way.
    seats: Arc<Semaphore>,
}

/// What the tables say is to be done.
#[derive(Debug, Default)]
struct Found {
    facts: Vec<RunId>,
    timers: Vec<(RunId, Fact)>,
    next: Option<Millis>,
}

impl Coordinator {
    /// A loop over this engine.
    pub fn new(engine: Engine) -> Coordinator {
        let seats = Arc::new(Semaphore::new(limits::TICK_GROUPS));
        Coordinator { engine, seats }
    }

    /// Works until it is aborted: whoever stops the daemon does that when nothing runs and every mailbox is empty.
    pub async fn run(self) {
        let mut next = None;
        let mut looked_at = Millis(i64::MIN);
        loop {
            let now = self.engine.now().wall;
            let is_due = next.is_some_and(|next| next <= now);
            let is_old = now.since(looked_at) >= limits::PASS_PERIOD_MS;
            if self.engine.mailboxes.take_look() || is_due || is_old {
                looked_at = now;
                match self.look(now).await {
                    Ok(soonest) => next = soonest,
                    Err(error) => {
                        tracing::debug!(cause = %error, "runs wait for the store");
                        next = None;
                    }
                }
            }
            // While as many groups as may be are under way, what happens to other runs waits, and is one group afterwards.
            while let Ok(seat) = Arc::clone(&self.seats).try_acquire_owned() {
                let runs = self.engine.mailboxes.take_runs(limits::TICK_GROUP_RUNS);
                if runs.is_empty() {
                    break;
                }
                tokio::spawn(work(self.engine.clone(), runs, seat));
            }
            let now = self.engine.now().wall;
            let ms = next.map_or(limits::PASS_PERIOD_MS, |at| at.since(now).max(1));
            let wait = Duration::from_millis(ms.min(limits::PASS_PERIOD_MS));
            tokio::select! {
                () = self.engine.mailboxes.arrived() => {}
                () = tokio::time::sleep(wait) => {}
            }
        }
    }

    /// Looks for stored facts and due timers; when the next timer is due.
    async fn look(&self, now: Millis) -> Result<Option<Millis>, StoreError> {
        if self.engine.is_stopping() {
            return Ok(None);
        }
        let found = self.engine.read(move |tx| find(tx, now)).await?;
        for run in found.facts {
            self.engine.mailboxes.due(run, Vec::new());
        }
        for (run, timer) in found.timers {
            self.engine.mailboxes.due(run, vec![timer]);
        }
        Ok(found.next)
    }
}

fn find(tx: &mut ReadTx, now: Millis) -> Result<Found, StoreError> {
    let mut found = Found::default();
    for row in tx.scan_each(&FACTS, &(TENANT,), None, limits::RUNS_DUE_MAX)? {
        if let Ok(((_, run, _), _)) = row.row
            && found.facts.last() != Some(&run)
        {
            found.facts.push(run);
        }
    }
    for row in tx.scan_each(&TIMERS, &(TENANT,), None, limits::RUNS_DUE_MAX)? {
        let Ok(((_, at, run, step), _)) = row.row else {
            continue;
        };
        if at > now {
            found.next = Some(at);
            break;
        }
        let fact = match StepRef::new(&step) {
            Some(step) => Fact::Due { step },
            None => Fact::Deadline,
        };
        found.timers.push((run, fact));
        found.next = Some(at);
    }
    Ok(found)
}

/// Folds everything that was posted to these runs, in one change.
async fn work(engine: Engine, runs: Vec<RunId>, seat: OwnedSemaphorePermit) {
    let bundle = |run: &RunId| {
        let (letters, timers) = engine.mailboxes.take(*run);
        Bundle {
            run: *run,
            letters,
            timers,
        }
    };
    let bundles = runs.iter().map(bundle).collect();
    let done = moving::step(&engine, bundles, None).await;
    drop(seat);
    moving::take_back(&engine, runs, done.stepped);
}
