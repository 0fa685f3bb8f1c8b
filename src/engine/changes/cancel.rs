//! Ends on request: a waiting entry, a run, or all instances of a job.

use crate::domain::slots::entry::{EntryEvent, EntryState, reason};
use crate::domain::workflow::run::StepPhase;
use crate::domain::workflow::tick::Fact;
use crate::engine::changes::advance;
use crate::store::graph_rows::StoredFact;
use crate::store::rows::{Ending, EndingCause, LiveAttempt};
use crate::store::tables::{LIVE_ATTEMPTS, SLOT_POOLS, STEPS};
use crate::store::{Abort, Rows, Tx, entries, graphs, runs};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName};

const TENANT: TenantId = TenantId::DEFAULT;

/// The answer to the cancel of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryCancelled {
    /// It is cancelled now, or was before.
    Cancelled,
    /// It does not wait.
    NotWaiting,
    /// There is none.
    NotFound,
}

/// Cancels an entry that waits (T4).
pub fn entry(tx: &mut Tx<'_>, slot_pool: &SlotPoolName, id: EntryId) -> Result<EntryCancelled, Abort> {
    // The slot pool's own row must be readable: a damaged one is never worked around.
    tx.get(&SLOT_POOLS, &(TENANT, slot_pool.clone()))?;
    let found = entries::by_id(tx, id)?.filter(|entry| entry.slot_pool == *slot_pool);
    let Some(entry) = found else {
        return Ok(EntryCancelled::NotFound);
    };
    match &entry.state {
        EntryState::Queued { .. } => {
            advance::withdraw(tx, &entry, &EntryEvent::Withdraw(reason::BY_OPERATOR), false)?;
            Ok(EntryCancelled::Cancelled)
        }
        EntryState::Cancelled { .. } => Ok(EntryCancelled::Cancelled),
        EntryState::Running { .. } | EntryState::Finished { .. } | EntryState::Expired { .. } => {
            Ok(EntryCancelled::NotWaiting)
        }
    }
}

/// The topic of the feed by which the daemon of an execution learns that it is to end; its version is the fence.
pub const ENDING: &str = "run.ending";

/// The answer to the cancel of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunCancelled {
    /// It had not started: it has ended now.
    Ended,
    /// Its process is being ended; these fences are held by some daemon.
    Ending(Vec<u64>),
    /// It had ended before.
    AlreadyEnded(String),
    /// There is none.
    NotFound,
}

/// Cancels a run: one that waits ends at once, a live one is marked and its daemon ends the process.
pub fn run(tx: &mut Tx<'_>, id: RunId, by: &str) -> Result<RunCancelled, Abort> {
    let Some(header) = runs::by_id(tx, id)? else {
        return Ok(RunCancelled::NotFound);
    };
    if header.state.is_terminal() {
        return Ok(RunCancelled::AlreadyEnded(header.state.word().to_owned()));
    }
    if header.graph.is_some() {
        let by = by.to_owned();
        graphs::append_fact(tx, &header, &StoredFact::Cancel { by })?;
        return Ok(RunCancelled::Ending(Vec::new()));
    }
    let mut fences = Vec::new();
    for ((_, _, step), state) in tx.scan(&STEPS, &(TENANT, id), None, limits::PAGE_MAX)? {
        match &state.phase {
            StepPhase::Running { .. } => {
                fences.extend(mark(tx, id, &step, by)?);
            }
            StepPhase::Queued { entry, .. } => {
                if let Some(entry) = entries::by_seq(tx, *entry)? {
                    advance::withdraw(tx, &entry, &EntryEvent::Withdraw(reason::BY_OPERATOR), true)?;
                }
            }
            StepPhase::Ready { .. }
            | StepPhase::Retrying { .. }
            | StepPhase::Waiting { .. }
            | StepPhase::Held { .. } => {
                let both = advance::load(tx, id, &step)?;
                advance::advance(tx, &both, &Fact::Cancelled(format!("cancelled by {by}")), None)?;
            }
            StepPhase::Succeeded { .. }
            | StepPhase::Failed { .. }
            | StepPhase::Skipped { .. }
            | StepPhase::UpstreamFailed { .. }
            | StepPhase::Cancelled { .. } => {}
        }
    }
    Ok(if fences.is_empty() {
        RunCancelled::Ended
    } else {
        RunCancelled::Ending(fences)
    })
}

fn mark(
    tx: &mut Tx<'_>,
    run: RunId,
    step: &crate::words::names::StepRef,
    by: &str,
) -> Result<Option<u64>, Abort> {
    let key = (TENANT, run, step.clone());
    let Some(live) = tx.get(&LIVE_ATTEMPTS, &key)? else {
        return Ok(None);
    };
    let fence = live.claim.fence;
    if live.ending.is_none() {
        let ending = Some(Ending {
            cause: EndingCause::Cancelled,
            at: tx.now().wall,
            by: by.to_owned(),
        });
        tx.put(&LIVE_ATTEMPTS, &key, &LiveAttempt { ending, ..live })?;
        tx.tell(ENDING, run, fence, None);
    }
    Ok(Some(fence))
}

/// What the stop of a job met.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobStopped {
    /// Runs that ended or are being ended.
    pub instances: usize,
    /// Fences of live ones.
    pub fences: Vec<u64>,
}

/// Ends all instances of a job: waiting entries by T4, live ones by their daemons.
pub fn job(tx: &mut Tx<'_>, name: &JobName, by: &str) -> Result<JobStopped, Abort> {
    let mut stopped = JobStopped::default();
    for id in runs::active_of(tx, name, limits::SLOTS_MAX as usize * 2)? {
        if let Some(header) = runs::by_id(tx, id)?.filter(|run| run.graph.is_some()) {
            let by = by.to_owned();
            graphs::append_fact(tx, &header, &StoredFact::Cancel { by })?;
            stopped.instances += 1;
            continue;
        }
        for ((_, _, step), state) in tx.scan(&STEPS, &(TENANT, id), None, limits::PAGE_MAX)? {
            match &state.phase {
                StepPhase::Running { .. } => stopped.fences.extend(mark(tx, id, &step, by)?),
                StepPhase::Queued { entry, .. } => {
                    if let Some(entry) = entries::by_seq(tx, *entry)? {
                        advance::withdraw(tx, &entry, &EntryEvent::Withdraw(reason::BY_OPERATOR), false)?;
                    }
                }
                StepPhase::Ready { .. }
                | StepPhase::Retrying { .. }
                | StepPhase::Waiting { .. }
                | StepPhase::Held { .. } => {
                    let both = advance::load(tx, id, &step)?;
                    advance::advance(tx, &both, &Fact::Cancelled(format!("cancelled by {by}")), None)?;
                }
                StepPhase::Succeeded { .. }
                | StepPhase::Failed { .. }
                | StepPhase::Skipped { .. }
                | StepPhase::UpstreamFailed { .. }
                | StepPhase::Cancelled { .. } => {}
            }
        }
        stopped.instances += 1;
    }
    Ok(stopped)
}
