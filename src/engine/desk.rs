//! The desk: what the faces ask for, one function each. It hands changes to the store and wakes who must act.

use std::sync::Arc;

use super::book::BookJob;
use super::changes::audit::{self, By};
use super::changes::cancel::{self, EntryCancelled, JobStopped, RunCancelled};
use super::changes::claim::Passed;
use super::changes::dead::{self, Done, Letter};
use super::changes::nodes;
use super::changes::pause;
use super::changes::pin::{self, Pinned};
use super::changes::remember::{self, Answer, Asked, Ticket, Told};
use super::changes::retry::{self, Hastened};
use super::changes::start::{self, Start, Started};
use super::core::Engine;
use super::runner::{self, Quick};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::run::Trigger;
use crate::store::{ChangeError, StoreError};
use crate::words::ids::{EntryId, RunId};
use crate::words::names::{JobName, NodeName, SlotPoolName};
use crate::worker::command::Stop;

/// A start by hand.
#[derive(Debug, Clone)]
pub struct ManualStart {
    /// The job.
    pub name: JobName,
    /// As the book has it.
    pub job: BookJob,
    /// Who asks.
    pub principal: String,
    /// The run that will be made.
    pub run: RunId,
    /// The entry that will be made.
    pub entry: EntryId,
    /// Failed attempts are followed by others, by the job's own rules.
    pub retries: bool,
    /// The run that this one repeats.
    pub rerun_of: Option<RunId>,
}

impl ManualStart {
    fn trigger(&self) -> Trigger {
        let principal = self.principal.clone();
        match self.rerun_of {
            None => Trigger::Manual { principal },
            Some(of) => Trigger::Rerun { principal, of },
        }
    }
}

/// Starts a job.
pub async fn start_job(
    engine: &Engine,
    wish: ManualStart,
    mut asked: Asked<Started>,
) -> Result<Told<Started>, ChangeError> {
    let book = engine.book();
    let slot_pool = wish
        .job
        .definition
        .job_demand()
        .map(|demand| demand.slot_pool.to_string());
    let name = wish.name.clone();
    let start = Start {
        trigger: wish.trigger(),
        name: wish.name,
        job: wish.job,
        node: Some(engine.node.clone()),
        run: wish.run,
        entry: wish.entry,
        retries: wish.retries,
        boot: None,
        rules: engine.rules(),
    };
    let demand = start.job.definition.job_demand();
    let (mut shims, quick) = Quick::prepare(engine, demand.map(|demand| demand.slot_pool.clone()), 1);
    let for_change = Arc::clone(&book);
    let changed = engine.store.change("start", move |tx| {
        let told = asked.once(tx, |tx| start::start(tx, &for_change, &start))?;
        let passed = match &told {
            Told::Now(Started::Queued { .. } | Started::Ready { .. }, _) => quick.claim(tx)?,
            Told::Now(_, _) | Told::Before(_) | Told::KeyReused | Told::Moved(_) => Passed::default(),
        };
        Ok((told, passed))
    });
    let (told, passed) = changed.await?;
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    match &told {
        Told::Now(Started::Queued { .. } | Started::Ready { .. }, _) => {
            engine.metrics.count_started(name.as_str(), "manual");
            engine.wake.notify_one();
        }
        Told::Now(Started::Refused(refusal), _) => {
            engine
                .metrics
                .count_refusal(slot_pool.as_deref().unwrap_or_default(), refusal.skip_word());
        }
        Told::Now(_, _) | Told::Before(_) | Told::KeyReused | Told::Moved(_) => {}
    }
    Ok(told)
}

/// Cancels a waiting entry.
pub async fn cancel_entry(
    engine: &Engine,
    slot_pool: SlotPoolName,
    id: EntryId,
    mut asked: Asked<EntryCancelled>,
) -> Result<Told<EntryCancelled>, ChangeError> {
    let cancelled = engine
        .store
        .change("cancel entry", move |tx| {
            asked.once(tx, |tx| cancel::entry(tx, &slot_pool, id))
        })
        .await?;
    engine.wake.notify_one();
    Ok(cancelled)
}

/// Cancels a run.
pub async fn cancel_run(
    engine: &Engine,
    id: RunId,
    by: String,
    mut asked: Asked<RunCancelled>,
) -> Result<Told<RunCancelled>, ChangeError> {
    let sentence = format!("cancelled by {by}");
    let cancelled = engine
        .store
        .change("cancel run", move |tx| {
            asked.once(tx, |tx| cancel::run(tx, id, &by))
        })
        .await?;
    if let Told::Now(RunCancelled::Ending(fences), _) = &cancelled {
        for fence in fences {
            engine.live.stop(*fence, &Stop::Requested(sentence.clone()));
        }
    }
    engine.wake.notify_one();
    // That of a graph learns it by a letter.
    engine.mailboxes.look();
    Ok(cancelled)
}

/// Gives a run that waits for its next attempt this attempt now.
pub async fn retry_run(
    engine: &Engine,
    id: RunId,
    mut asked: Asked<Hastened>,
) -> Result<Told<Hastened>, ChangeError> {
    let told = engine
        .store
        .change("retry run", move |tx| asked.once(tx, |tx| retry::hasten(tx, id)))
        .await?;
    engine.wake_follow_ups.notify_one();
    Ok(told)
}

/// Keeps a run, by whom and why, or does so no longer.
pub async fn pin_run(
    engine: &Engine,
    id: RunId,
    wanted: Option<(String, String)>,
    mut asked: Asked<Pinned>,
) -> Result<Told<Pinned>, ChangeError> {
    let pinned = engine.store.change("pin run", move |tx| {
        let wanted = wanted.as_ref().map(|(by, reason)| (by.as_str(), reason.as_str()));
        asked.once(tx, |tx| pin::pin(tx, id, wanted))
    });
    pinned.await
}

/// Takes a dead letter out of the list.
pub async fn discard_letter(
    engine: &Engine,
    letter: Letter,
    mut asked: Asked<Done>,
) -> Result<Told<Done>, ChangeError> {
    let discarded = engine.store.change("discard letter", move |tx| {
        asked.once(tx, |tx| dead::discard(tx, &letter))
    });
    discarded.await
}

/// Has a dead report delivered anew.
pub async fn redeliver(engine: &Engine, seq: u64, mut asked: Asked<Done>) -> Result<Told<Done>, ChangeError> {
    let told = engine
        .store
        .change("redeliver", move |tx| {
            asked.once(tx, |tx| dead::redeliver(tx, seq))
        })
        .await?;
    engine.report_wake.notify_one();
    Ok(told)
}

/// Stops all instances of a job.
pub async fn stop_job(
    engine: &Engine,
    name: JobName,
    by: String,
    mut asked: Asked<JobStopped>,
) -> Result<Told<JobStopped>, ChangeError> {
    let sentence = format!("cancelled by {by}");
    let stopped = engine
        .store
        .change("stop job", move |tx| {
            asked.once(tx, |tx| cancel::job(tx, &name, &by))
        })
        .await?;
    if let Told::Now(stopped, _) = &stopped {
        for fence in &stopped.fences {
            engine.live.stop(*fence, &Stop::Requested(sentence.clone()));
        }
    }
    engine.wake.notify_one();
    Ok(stopped)
}

/// Ends what waits for another attempt of a job; the number of runs that ended.
pub async fn cancel_retries(
    engine: &Engine,
    name: JobName,
    mut asked: Asked<usize>,
) -> Result<Told<usize>, ChangeError> {
    let cancelled = engine
        .store
        .change("cancel retries", move |tx| {
            asked.once(tx, |tx| retry::cancel(tx, &name))
        })
        .await?;
    engine.wake.notify_one();
    Ok(cancelled)
}

/// Sets or lifts the pause of a job.
pub async fn pause_job(
    engine: &Engine,
    name: JobName,
    pause: Option<Pause>,
    mut asked: Asked<()>,
) -> Result<Told<()>, ChangeError> {
    let told = engine
        .store
        .change("pause job", move |tx| {
            asked.once(tx, |tx| pause::job(tx, &name, pause.as_ref()))
        })
        .await?;
    engine.wake.notify_one();
    Ok(told)
}

/// Sets or lifts the pause of a slot pool.
pub async fn pause_slot_pool(
    engine: &Engine,
    name: SlotPoolName,
    pause: Option<Pause>,
    mut asked: Asked<()>,
) -> Result<Told<()>, ChangeError> {
    let book = engine.book();
    let told = engine
        .store
        .change("pause pool", move |tx| {
            asked.once(tx, |tx| pause::slot_pool(tx, &book, &name, pause.as_ref()))
        })
        .await?;
    engine.wake.notify_one();
    Ok(told)
}

/// Tells a daemon to begin nothing more, or that it may again; false if there is none of that name.
pub async fn drain_node(
    engine: &Engine,
    name: NodeName,
    wanted: Option<(String, String)>,
    mut asked: Asked<bool>,
) -> Result<Told<bool>, ChangeError> {
    let told = engine
        .store
        .change("drain node", move |tx| {
            let wanted = wanted.as_ref().map(|(by, note)| (by.as_str(), note.as_str()));
            asked.once(tx, |tx| nodes::set_drain(tx, &name, wanted))
        })
        .await?;
    engine.wake.notify_one();
    Ok(told)
}

/// What was said to a request before, if anything was.
pub async fn said_before(engine: &Engine, ticket: Ticket) -> Result<Option<Told<()>>, StoreError> {
    engine.read(move |tx| remember::before(tx, ticket)).await
}

/// Keeps what there is to keep of a request whose effect is no transaction of the store: its answer, and that it was asked for.
pub async fn keep_answer(
    engine: &Engine,
    kept: Option<(Ticket, Answer)>,
    by: Option<(By, Option<String>)>,
) -> Result<(), ChangeError> {
    engine
        .store
        .change("remember", move |tx| {
            if let Some((ticket, answer)) = &kept {
                remember::keep(tx, *ticket, answer)?;
            }
            if let Some((by, thing)) = &by {
                audit::write(tx, by, thing.as_deref(), None, None)?;
            }
            Ok(())
        })
        .await
}
