//! The end of an attempt: its row, the run's and the entry's next state, and the release of its slots in one change.
//!
//! Everything here is compare-and-set on the fence: a late word of an old owner changes nothing.

use crate::domain::report::Tails;
use crate::domain::slots::claim::Claim;
use crate::domain::slots::entry::{EntryEvent, SlotEntry, reason};
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::graph::history::{Retention, Transition};
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::domain::workflow::tick::Fact;
use crate::engine::changes::{advance, report, retry};
use crate::store::rows::{EndingCause, LiveAttempt, ReadyStep};
use crate::store::tables::{ATTEMPTS, LIVE_ATTEMPTS, TASK_CLAIMS};
use crate::store::{Abort, Rows, StoreError, Tx, entries, graphs};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// A claim, named by what only its holder knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The claim's fence.
    pub fence: u64,
}

/// What became of a word about a claim.
#[derive(Debug, Clone, PartialEq)]
pub enum Recorded {
    /// It was written; the run as it is now, and the entry's slots are free.
    Done(Box<Run>),
    /// The claim has another owner, or has ended: nothing was written.
    Stale,
}

/// The live row, if `holder` still holds it.
pub fn held(rows: &mut impl Rows, holder: &Holder) -> Result<Option<LiveAttempt>, StoreError> {
    let live = rows.get(&LIVE_ATTEMPTS, &(TENANT, holder.run, holder.step.clone()))?;
    Ok(live.filter(|live| live.claim.fence == holder.fence))
}

/// Records an attempt that has ended for good: succeeded, failed, cancelled or timed out.
///
/// `tails`: the end of what it printed, for reports.
pub fn complete(
    tx: &mut Tx<'_>,
    holder: &Holder,
    attempt: &Attempt,
    tails: &Tails,
) -> Result<Recorded, Abort> {
    let Some(live) = held(tx, holder)? else {
        return Ok(Recorded::Stale);
    };
    let why = || {
        attempt
            .reason
            .clone()
            .unwrap_or_else(|| attempt.outcome.word().to_owned())
    };
    let (fact, entry_reason) = match attempt.outcome {
        Outcome::Succeeded => (Fact::Succeeded, None),
        Outcome::Failed => (failure(tx, holder, why())?, launch_reason(attempt)),
        Outcome::TimedOut => (failure(tx, holder, why())?, None),
        Outcome::Cancelled => (Fact::Cancelled(why()), Some(reason::RUN_CANCELLED)),
        Outcome::Lost => unreachable!("a lost attempt is put back, not completed"),
    };
    let recorded = close(
        tx,
        holder,
        &live,
        Some(attempt),
        &EntryEvent::Finish(entry_reason),
        &fact,
    )?;
    if let Recorded::Done(run) = &recorded {
        report::attempt_ended(tx, run, live.number, attempt, tails)?;
    }
    Ok(recorded)
}

/// A failed attempt ends the run, or another one follows.
fn failure(tx: &mut Tx<'_>, holder: &Holder, why: String) -> Result<Fact, StoreError> {
    let (run, step) = advance::load(tx, holder.run, &holder.step)?;
    retry::after_failure(tx, &run, &step, why)
}

fn launch_reason(attempt: &Attempt) -> Option<&'static str> {
    attempt
        .reason
        .as_deref()
        .filter(|why| why.starts_with(reason::LAUNCH_FAILED))
        .map(|_| reason::LAUNCH_FAILED)
}

/// Ends the claim, the step and the run. Without an attempt when no process had begun.
pub fn close(
    tx: &mut Tx<'_>,
    holder: &Holder,
    live: &LiveAttempt,
    attempt: Option<&Attempt>,
    event: &EntryEvent,
    fact: &Fact,
) -> Result<Recorded, Abort> {
    let both = advance::load(tx, holder.run, &holder.step)?;
    let entry = entry_of(tx, live)?;
    end_live(tx, holder, live, attempt)?;
    if let Some(entry) = entry {
        move_entry(tx, &entry, event)?;
    }
    if *fact == Fact::Succeeded {
        retry::succeeded(tx, &both.0)?;
    }
    let (run, _) = advance::advance(tx, &both, fact, None)?;
    Ok(Recorded::Done(Box::new(run)))
}

/// Puts the step back to wait again at its old place (T9, T10, T12, T13). With an attempt when a process had run.
pub fn put_back(
    tx: &mut Tx<'_>,
    holder: &Holder,
    why: &'static str,
    died: bool,
    lost: Option<&Attempt>,
) -> Result<Recorded, Abort> {
    let Some(live) = held(tx, holder)? else {
        return Ok(Recorded::Stale);
    };
    if let Some(ending) = &live.ending {
        // Somebody had asked for its end: it is not run again, whether a process had begun or not.
        let sentence = ending_sentence(ending.cause, &ending.by);
        let ended = lost.map(|attempt| Attempt {
            outcome: Outcome::Cancelled,
            reason: Some(sentence.clone()),
            ..attempt.clone()
        });
        let event = EntryEvent::Finish(Some(reason::RUN_CANCELLED));
        return close(
            tx,
            holder,
            &live,
            ended.as_ref(),
            &event,
            &Fact::Cancelled(sentence),
        );
    }
    let mut both = advance::load(tx, holder.run, &holder.step)?;
    let entry = entry_of(tx, &live)?;
    end_live(tx, holder, &live, lost)?;
    both.1.deaths += u32::from(died);
    let ready = ReadyStep {
        job: live.job.clone(),
        node: both.0.node.clone(),
    };
    if let Some(entry) = &entry {
        if why == reason::LEASE_LAPSED {
            tx.tell(
                "pool.lease.lost",
                entry.id,
                holder.fence,
                Some(live.claim.node.as_str()),
            );
        }
        move_entry(tx, entry, &EntryEvent::PutBack { why, died })?;
    }
    let said = lost.and_then(|_| line_of_loss(&mut both.0, &holder.step, why));
    let (run, step) = advance::advance(tx, &both, &Fact::PutBack, Some(&ready))?;
    graphs::put_history(tx, &run, said.into_iter().collect(), None)?;
    hold_back(tx, &run, &step)?;
    Ok(Recorded::Done(Box::new(run)))
}

/// What the history of a graph's run says of an execution that was lost; counted in the run's header.
fn line_of_loss(run: &mut Run, step: &StepRef, why: &str) -> Option<Transition> {
    let counts = &mut run.graph.as_mut()?.history;
    let line = Transition {
        seq: counts.appended + 1,
        class: Retention::of_step(step, false),
        step: Some(step.clone()),
        what: Outcome::Lost.word().to_owned(),
        detail: why.to_owned(),
    };
    counts.append(&line);
    Some(line)
}

/// Nothing begins in a run that somebody holds: a step that was put back stands still until the run is let go.
fn hold_back(tx: &mut Tx<'_>, run: &Run, step: &StepState) -> Result<(), StoreError> {
    if run.graph.as_ref().is_none_or(|header| header.hold.is_none()) {
        return Ok(());
    }
    if let StepPhase::Queued { entry, .. } = step.phase
        && let Some(entry) = entries::by_seq(tx, entry)?
    {
        move_entry(tx, &entry, &EntryEvent::Withdraw(reason::NOT_WAITING))?;
    }
    let since = tx.now().wall;
    let mut held = StepState {
        phase: StepPhase::Held { since },
        ..step.clone()
    };
    if let Some(graph) = held.graph.as_mut() {
        graph.line = None;
        graph.timer = graph.total_at;
    }
    graphs::put_step(tx, run, Some(step), &held)
}

/// The sentence of an end on request.
pub fn ending_sentence(cause: EndingCause, by: &str) -> String {
    match cause {
        EndingCause::Cancelled => format!("cancelled by {by}"),
        EndingCause::Replaced => "replaced by a newer instance".to_owned(),
    }
}

/// Ends the claim alone: its row, its attempt and its slots. What it means for the step is somebody else's matter.
pub fn release(
    tx: &mut Tx<'_>,
    holder: &Holder,
    live: &LiveAttempt,
    attempt: Option<&Attempt>,
) -> Result<(), StoreError> {
    let entry = entry_of(tx, live)?;
    end_live(tx, holder, live, attempt)?;
    match entry {
        Some(entry) => move_entry(tx, &entry, &EntryEvent::Finish(None)),
        None => Ok(()),
    }
}

fn entry_of(tx: &mut Tx<'_>, live: &LiveAttempt) -> Result<Option<SlotEntry>, StoreError> {
    let Some(place) = &live.entry else { return Ok(None) };
    let entry = entries::by_seq(tx, place.seq)?;
    let held = entry.filter(|entry| entry.is_held_by(live.claim.fence));
    assert!(held.is_some(), "the entry of a live attempt is held by its fence");
    Ok(held)
}

fn move_entry(tx: &mut Tx<'_>, entry: &SlotEntry, event: &EntryEvent) -> Result<(), StoreError> {
    match entry.next(event, tx.now().wall) {
        Ok(next) => entries::replace(tx, entry, &next, None),
        Err(refusal) => panic!("entry {}: {refusal}", entry.id),
    }
}

/// Removes the live row, and writes the attempt if there was one.
fn end_live(
    tx: &mut Tx<'_>,
    holder: &Holder,
    live: &LiveAttempt,
    attempt: Option<&Attempt>,
) -> Result<(), StoreError> {
    if let Some(attempt) = attempt {
        let key = (TENANT, holder.run, holder.step.clone(), live.number, holder.fence);
        assert!(!tx.has(&ATTEMPTS, &key)?, "an attempt is written once");
        tx.put(&ATTEMPTS, &key, attempt)?;
    }
    tx.remove(&LIVE_ATTEMPTS, &(TENANT, holder.run, holder.step.clone()))?;
    if live.claim.process.is_none() {
        tx.remove(&TASK_CLAIMS, &(TENANT, holder.fence))?;
    }
    Ok(())
}

/// The attempt of a process that nobody watches any more.
pub fn lost_attempt(claim: &Claim, why: &str, ended_at: crate::words::time::Millis) -> Attempt {
    Attempt {
        outcome: Outcome::Lost,
        exit_code: None,
        reason: Some(why.to_owned()),
        node: claim.node.clone(),
        pid: claim.process.map(|process| process.pid),
        started_at: claim.claimed_at,
        ended_at,
        log_bytes: 0,
    }
}
