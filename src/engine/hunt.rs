//! The hunt: finds claims whose daemon is dead or whose lease has lapsed, ends what is left of their processes, and puts
//! the work back.
//!
//! It acts on a node's claims only under that node's clean-up lock, after seeing that its life lock is free; every
//! write compares the fence, so nothing is put back twice.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use tokio::task::JoinSet;

use super::changes::complete::{Holder, Recorded, ending_sentence};
use super::changes::{nodes, settle};
use super::core::Engine;
use super::live::marks_of;
use crate::domain::slots::claim::{ProcessRef, Sighting};
use crate::domain::slots::crash::{self, CrashVerdict, Seen};
use crate::domain::slots::entry::reason;
use crate::os::proc::ProcessIdentity;
use crate::store::rows::{LiveAttempt, RunningRow};
use crate::store::tables::{NODES, SLOT_RUNNING, TASK_CLAIMS};
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{NodeName, StepRef};
use crate::words::time::Millis;
use crate::worker::command::Stop;
use crate::worker::process::{StrangerEnd, end_stranger};

/// A claim that somebody holds, as a row says.
#[derive(Debug, Clone)]
pub struct Found {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The row.
    pub live: LiveAttempt,
    /// The lease's row, for a pooled step.
    pub lease: Option<RunningRow>,
    /// When its daemon was last seen, for a step without a slot pool.
    pub last_seen: Option<Millis>,
}

/// The loop.
#[derive(Debug)]
pub struct Hunter {
    engine: Engine,
    /// Leases under clocks that cannot be read here.
    sightings: BTreeMap<u64, Sighting>,
    /// Processes that did not end, reported once.
    stuck: BTreeSet<u64>,
}

impl Hunter {
    /// For the store of this engine.
    pub fn new(engine: Engine) -> Hunter {
        Hunter {
            engine,
            sightings: BTreeMap::new(),
            stuck: BTreeSet::new(),
        }
    }

    /// Looks once a second until the daemon stops.
    pub async fn run(mut self) {
        let mut seen = self.engine.now().boot;
        while !self.engine.is_stopping() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limits::PASS_PERIOD_MS)) => {}
                () = self.engine.until_stopping() => {}
            }
            if seen.until(self.engine.now().boot) >= limits::LAST_SEEN_PERIOD_MS {
                seen = self.engine.now().boot;
                self.say_alive().await;
            }
            if let Err(error) = self.look().await {
                tracing::debug!(cause = %error, "the hunt could not look");
            }
        }
    }

    /// Settles what this daemon's own name left before its start. Nothing of it may be claimed before that.
    pub async fn settle_own(&mut self) -> Result<usize, StoreError> {
        let node = self.engine.node.clone();
        // Another daemon that cleans up right now saw this name's lock free: what is claimed before it has looked at the
        // claims, it would take for left over.
        let lock = loop {
            if let Some(lock) = self.engine.directory.lock_clean_up(&node)? {
                break lock;
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        };
        let mut left = self.found().await?;
        left.retain(|found| {
            found.live.claim.node == node && self.engine.live.get(found.live.claim.fence).is_none()
        });
        let settled = self.settle_all(left).await;
        drop(lock);
        settled
    }

    /// Settles the claims of dead daemons; their processes end side by side. The number put back.
    async fn settle_all(&mut self, left: Vec<Found>) -> Result<usize, StoreError> {
        let mut ends = JoinSet::new();
        let mut settled = 0;
        for found in left {
            match self.verdict(&found) {
                CrashVerdict::EndThenPutBack => {
                    ends.spawn(end_of(found));
                }
                verdict @ (CrashVerdict::PutBack | CrashVerdict::WaitForLease) => {
                    settled += usize::from(self.settle_unseen(&found, verdict).await?);
                }
            }
        }
        while let Some(ended) = ends.join_next().await {
            match ended {
                Ok((found, end)) => settled += usize::from(self.after_end(&found, end).await?),
                Err(error) => tracing::error!(cause = %error, "the end of a process ended in a defect"),
            }
        }
        Ok(settled)
    }

    /// Writes `last seen`, which only informs.
    async fn say_alive(&self) {
        let node = self.engine.node.clone();
        let written = self
            .engine
            .store
            .change("last seen", move |tx| nodes::still_here(tx, &node))
            .await;
        if let Err(error) = written {
            tracing::debug!(cause = %error, "last seen could not be written");
        }
    }

    async fn found(&self) -> Result<Vec<Found>, StoreError> {
        self.engine.read(found_in).await
    }

    /// One look at the claims of dead nodes and at lapsed leases.
    pub async fn look(&mut self) -> Result<(), StoreError> {
        let found = self.found().await?;
        let fences: BTreeSet<u64> = found.iter().map(|found| found.live.claim.fence).collect();
        self.sightings.retain(|fence, _| fences.contains(fence));
        self.stuck.retain(|fence| fences.contains(fence));
        let mine = self.engine.node.clone();
        let strangers: BTreeSet<NodeName> = found
            .iter()
            .map(|found| found.live.claim.node.clone())
            .filter(|node| *node != mine)
            .collect();
        for node in strangers {
            self.clean_after(&node).await?;
        }
        for found in &found {
            // A claim of this name that no task here looks after is left over from a change whose answer was lost.
            if found.live.claim.node == mine
                && let Some(ending) = &found.live.ending
            {
                // Usually known already; a change whose answer was lost is caught up with here.
                let sentence = ending_sentence(ending.cause, &ending.by);
                self.engine
                    .live
                    .stop(found.live.claim.fence, &Stop::Requested(sentence));
            }
            let orphan =
                found.live.claim.node == mine && self.engine.live.get(found.live.claim.fence).is_none();
            if orphan && (self.is_elsewhere(found) || self.is_still_orphan(found).await?) {
                self.settle_all(vec![found.clone()]).await?;
            } else if !self.runs_here(found) && self.has_lapsed(found) && self.end_lapsed(found).await? {
                self.put_back(found, reason::LEASE_LAPSED, false).await?;
            }
        }
        Ok(())
    }

    /// The owner lives and does not renew: it is stopped, or cut off from the store. Where its process can be seen it is ended
    /// before the work is put back, so that no two copies of it live on one machine; the lease is over, and so is patience.
    /// False if the claim has been renewed meanwhile.
    async fn end_lapsed(&mut self, found: &Found) -> Result<bool, StoreError> {
        if self.is_elsewhere(found) || found.live.claim.process.is_none() {
            return Ok(true);
        }
        let fence = found.live.claim.fence;
        let again = self.found().await?;
        let again = again.into_iter().find(|again| again.live.claim.fence == fence);
        let Some(again) = again.filter(|again| self.has_lapsed(again)) else {
            return Ok(false);
        };
        let (again, end) = end_within(again, Duration::ZERO).await;
        if let StrangerEnd::WillNotEnd { pids } = end {
            self.report_stuck(&again, &pids);
        }
        Ok(true)
    }

    /// True while this very daemon looks after the claim's process. Such a claim is put back by its own task once the group
    /// has ended, however late that is: never are two copies alive because the owner was in a hurry with itself.
    fn runs_here(&self, found: &Found) -> bool {
        let handle = self.engine.live.get(found.live.claim.fence);
        handle.is_some_and(|live| live.lease.is_none_or(|lease| lease.renewing))
    }

    /// The claim's commit and the start of its task are two moments: look twice before calling it left over.
    async fn is_still_orphan(&self, found: &Found) -> Result<bool, StoreError> {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let fence = found.live.claim.fence;
        if self.engine.live.get(fence).is_some() {
            return Ok(false);
        }
        Ok(self
            .found()
            .await?
            .iter()
            .any(|again| again.live.claim.fence == fence))
    }

    async fn clean_after(&mut self, node: &NodeName) -> Result<(), StoreError> {
        let Some(_lock) = self.engine.directory.lock_clean_up(node)? else {
            return Ok(());
        };
        if !self.engine.directory.is_node_free(node) {
            return Ok(());
        }
        let mut left = self.found().await?;
        left.retain(|found| found.live.claim.node == *node);
        self.settle_all(left).await.map(|_| ())
    }

    fn has_lapsed(&mut self, found: &Found) -> bool {
        let now = self.engine.now();
        let Some(row) = &found.lease else { return false };
        if row.lease.clock == self.engine.place.clock {
            return row.lease.has_lapsed(&self.engine.place.clock, now);
        }
        let before = self.sightings.get(&row.fence).copied();
        let sighting = Sighting::look(before, row.fence, row.lease.renewals, now.boot);
        self.sightings.insert(row.fence, sighting);
        sighting.has_lapsed(now.boot)
    }

    /// True when its process cannot be seen from here: it is not a claim that a task of this daemon has just made.
    fn is_elsewhere(&self, found: &Found) -> bool {
        !crash::can_see(&found.live.claim.place, &self.engine.place)
    }

    /// Without a lease, a dead daemon's claim whose process cannot be seen from here ends when the daemon has not been seen
    /// for as long as a lease would have held.
    fn is_over_unseen(&mut self, found: &Found) -> bool {
        if found.lease.is_some() {
            return self.has_lapsed(found);
        }
        let (fence, now) = (found.live.claim.fence, self.engine.now().boot);
        // A wall clock of another machine says nothing about time, only whether it moves. What moves under this daemon's own
        // name is this daemon's doing: it has the name's lock, so the holder of the claim is gone.
        let others = found
            .last_seen
            .filter(|_| found.live.claim.node != self.engine.node);
        let seen = others.map_or(0, |at| at.0.unsigned_abs());
        let before = self.sightings.get(&fence).copied();
        let sighting = Sighting::look(before, fence, seen, now);
        self.sightings.insert(fence, sighting);
        sighting.has_lapsed(now)
    }

    fn verdict(&self, found: &Found) -> CrashVerdict {
        let claim = &found.live.claim;
        crash::judge(&claim.place, &self.engine.place, || match claim.process {
            None => Seen::NoneStored,
            // Whether anything is left is found out by the end itself, which signals nobody in vain.
            Some(_) => Seen::Alive,
        })
    }

    /// A claim whose process is gone for certain, or cannot be seen from here; true if it was put back.
    async fn settle_unseen(&mut self, found: &Found, verdict: CrashVerdict) -> Result<bool, StoreError> {
        match verdict {
            CrashVerdict::PutBack => {
                Self::report(found, "finding its process gone");
                self.put_back(found, reason::DAEMON_DIED, true).await
            }
            CrashVerdict::WaitForLease if self.is_over_unseen(found) => {
                // No daemon died with what came out of a backup.
                let died = !found.live.claim.place.is_of_a_backup();
                self.put_back(found, reason::LEASE_LAPSED, died).await
            }
            CrashVerdict::WaitForLease | CrashVerdict::EndThenPutBack => Ok(false),
        }
    }

    /// Acts on what became of the process; true if the claim was put back.
    pub(super) async fn after_end(&mut self, found: &Found, end: StrangerEnd) -> Result<bool, StoreError> {
        let done = match end {
            StrangerEnd::Gone => "ending its process",
            StrangerEnd::WasGone => "finding its process gone",
            StrangerEnd::PidReused => "finding its process number in other hands",
            StrangerEnd::WillNotEnd { pids } => {
                self.report_stuck(found, &pids);
                if self.is_over_unseen(found) {
                    return self.put_back(found, reason::LEASE_LAPSED, true).await;
                }
                return Ok(false);
            }
        };
        Self::report(found, done);
        self.put_back(found, reason::DAEMON_DIED, true).await
    }

    fn report(found: &Found, done: &str) {
        let node = &found.live.claim.node;
        match &found.live.entry {
            Some(entry) => tracing::warn!(
                slot_pool = %entry.slot_pool, run_id = %found.run, fence = found.live.claim.fence,
                "pool {}: entry {} of dead node {node} re-admitted after {done}", entry.slot_pool, entry.id
            ),
            None => tracing::warn!(
                run_id = %found.run, fence = found.live.claim.fence,
                "Job {}: run of dead node {node} starts again after {done}", found.live.job
            ),
        }
    }

    fn report_stuck(&mut self, found: &Found, pids: &[u32]) {
        if !self.stuck.insert(found.live.claim.fence) {
            return;
        }
        let shown: Vec<String> = pids.iter().map(u32::to_string).collect();
        let shown = shown.join(", ");
        match &found.live.entry {
            Some(entry) => {
                tracing::error!(
                    "pool {}: process {shown} of entry {} does not end",
                    entry.slot_pool,
                    entry.id
                );
            }
            None => tracing::error!(
                "Job {}: process {shown} of run {} does not end",
                found.live.job,
                found.run
            ),
        }
    }

    async fn put_back(&self, found: &Found, why: &'static str, died: bool) -> Result<bool, StoreError> {
        let holder = Holder {
            run: found.run,
            step: found.step.clone(),
            fence: found.live.claim.fence,
        };
        let changed = self
            .engine
            .store
            .change("settle", move |tx| settle::settle(tx, &holder, why, died))
            .await;
        match changed {
            Ok(Recorded::Done(_)) => {
                if let Some(entry) = &found.live.entry {
                    self.engine
                        .metrics
                        .count_readmitted(entry.slot_pool.as_str(), why);
                }
                self.engine.wake.notify_one();
                Ok(true)
            }
            Ok(Recorded::Stale) => Ok(false),
            Err(error) => {
                tracing::warn!(cause = %error, run_id = %found.run, "what a dead daemon left could not be settled yet");
                Ok(false)
            }
        }
    }
}

/// Ends what is left of a claim's process.
async fn end_of(found: Found) -> (Found, StrangerEnd) {
    let patience = found.live.kill_timeout_ms.min(limits::STRANGER_KILL_MS);
    end_within(found, Duration::from_millis(patience)).await
}

/// The same with so much time between SIGTERM and SIGKILL.
async fn end_within(found: Found, patience: Duration) -> (Found, StrangerEnd) {
    let Some(process) = found.live.claim.process else {
        return (found, StrangerEnd::WasGone);
    };
    let marks = marks_of(
        found.live.entry.as_ref().map(|entry| entry.id),
        found.live.claim.fence,
    );
    let end = end_stranger(&identity_of(process), &marks, patience).await;
    (found, end)
}

fn identity_of(process: ProcessRef) -> ProcessIdentity {
    ProcessIdentity {
        pid: process.pid,
        start_ticks: process.start_ticks,
        group: process.group,
    }
}

/// All claims with their leases.
pub fn found_in(rows: &mut impl Rows) -> Result<Vec<Found>, StoreError> {
    let mut found = Vec::new();
    for (run, step, live) in runs::live(rows)? {
        // A remote worker outlives the daemon over which it claims: `bridge` puts such claims back.
        if live.claim.process.is_none() && rows.has(&TASK_CLAIMS, &(TenantId::DEFAULT, live.claim.fence))? {
            continue;
        }
        let mut last_seen = None;
        let lease = match &live.entry {
            None => {
                let node = rows.get(&NODES, &(live.claim.node.clone(),));
                last_seen = node.ok().flatten().map(|node| node.last_seen);
                None
            }
            Some(entry) => {
                let key = (TenantId::DEFAULT, entry.slot_pool.clone(), entry.seq);
                match rows.get(&SLOT_RUNNING, &key) {
                    Ok(row) => row,
                    // Its slot pool cannot be read: nothing of it is touched before a repair, the others go on.
                    Err(error) if error.is_row_fault() => continue,
                    Err(error) => return Err(error),
                }
            }
        };
        found.push(Found {
            run,
            step,
            live,
            lease,
            last_seen,
        });
    }
    Ok(found)
}
