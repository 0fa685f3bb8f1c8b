//! Remote workers that are not heard of: their tasks are put back, by whichever daemon sees it first.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::changes::complete::{self, Holder, Recorded};
use super::changes::graph::EndedClaim;
use super::changes::{settle, tasks};
use super::core::Engine;
use crate::domain::slots::claim::Sighting;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError, Taken};
use crate::store::StoreError;
use crate::store::graph_rows::TaskClaim;
use crate::words::limits;

/// The loop that puts back what the workers that are not heard of have claimed.
#[derive(Debug)]
pub struct Listener {
    engine: Engine,
    /// Claims under clocks that cannot be read here.
    sightings: BTreeMap<u64, Sighting>,
}

impl Listener {
    /// For the store of this engine.
    pub fn new(engine: Engine) -> Listener {
        Listener {
            engine,
            sightings: BTreeMap::new(),
        }
    }

    /// Looks once a second until the daemon stops.
    pub async fn run(mut self) {
        while !self.engine.is_stopping() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limits::PASS_PERIOD_MS)) => {}
                () = self.engine.until_stopping() => {}
            }
            if let Err(error) = self.look().await {
                tracing::debug!(cause = %error, "the claims of workers could not be looked at");
            }
        }
    }

    /// One look; how many claims were ended.
    pub async fn look(&mut self) -> Result<usize, StoreError> {
        let claims = self.engine.read(tasks::claims).await?;
        let fences: BTreeSet<u64> = claims.iter().map(|(fence, _)| *fence).collect();
        self.sightings.retain(|fence, _| fences.contains(fence));
        let mut ended = 0;
        for (fence, claim) in claims {
            if self.is_over(fence, &claim) {
                ended += usize::from(self.end(fence, &claim).await);
            }
        }
        Ok(ended)
    }

    fn is_over(&mut self, fence: u64, claim: &TaskClaim) -> bool {
        let now = self.engine.now();
        if let Some(over) = claim.is_over(&self.engine.place.clock, now) {
            return over;
        }
        let before = self.sightings.get(&fence).copied();
        let sighting = Sighting::look(before, fence, claim.renewals, now.boot);
        self.sightings.insert(fence, sighting);
        sighting.since.until(now.boot) >= claim.hold_ms.saturating_add(claim.hold_ms / 2)
    }

    /// A worker that promised signs of life has failed; the task of another is put back and counted like a death.
    async fn end(&self, fence: u64, claim: &TaskClaim) -> bool {
        let holder = Holder {
            run: claim.run,
            step: claim.step.clone(),
            fence,
        };
        let silent = format!("worker {} was not heard of in time", claim.worker);
        tracing::warn!(run_id = %claim.run, step = %claim.step, fence, "{silent}");
        if claim.strict {
            return self.fail(&holder, claim, silent).await;
        }
        let for_change = holder.clone();
        let settled = self.engine.store.change("task silent", move |tx| {
            settle::settle(tx, &for_change, reason::WORKER_SILENT, true)
        });
        match settled.await {
            Ok(Recorded::Done(_)) => {
                self.engine.mailboxes.look();
                self.engine.mailboxes.tasks.notify_waiters();
                true
            }
            Ok(Recorded::Stale) => false,
            Err(error) => {
                tracing::warn!(cause = %error, run_id = %claim.run, "the task of a silent worker could not be put back yet");
                false
            }
        }
    }

    async fn fail(&self, holder: &Holder, claim: &TaskClaim, silent: String) -> bool {
        let for_read = holder.clone();
        let live = self.engine.read(move |tx| complete::held(tx, &for_read)).await;
        let Ok(Some(live)) = live else { return false };
        let attempt = Attempt {
            outcome: Outcome::TimedOut,
            ..complete::lost_attempt(&live.claim, &silent, self.engine.now().wall)
        };
        let end = match &live.ending {
            Some(ending) => AttemptEnd::Cancelled(complete::ending_sentence(ending.cause, &ending.by)),
            None => AttemptEnd::Failed(StepError::new("timeout.heartbeat", silent)),
        };
        let fact = Fact::Attempt {
            step: holder.step.clone(),
            fence: holder.fence,
            end,
        };
        let ended = EndedClaim {
            holder: holder.clone(),
            attempt: Some(attempt),
        };
        self.engine.mailboxes.tell(claim.run, fact, Some(ended)).await == Ok(Taken::Yes)
    }
}
