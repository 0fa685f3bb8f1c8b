//! The desk: what the faces ask for, one function each. It hands changes to the store and wakes who must act.

use std::sync::Arc;

use super::book::BookJob;
use super::changes::cancel::{self, EntryCancelled, JobStopped, RunCancelled};
use super::changes::claim::Passed;
use super::changes::maintain::Rules;
use super::changes::pause;
use super::changes::start::{self, Start, Started};
use super::core::Engine;
use super::runner::{self, Quick};
use crate::domain::slots::admission::Pause;
use crate::domain::workflow::run::Trigger;
use crate::store::ChangeError;
use crate::store::rows::Remembered;
use crate::words::ids::{EntryId, RunId};
use crate::words::names::{JobName, SlotPoolName};
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
    /// What to remember under an idempotency key.
    pub remember: Option<Remembered>,
    /// Failed attempts are followed by others, by the job's own rules.
    pub retries: bool,
}

/// Starts a job.
pub async fn start_job(engine: &Engine, wish: ManualStart) -> Result<Started, ChangeError> {
    let book = engine.book();
    let slot_pool = wish
        .job
        .definition
        .main_step()
        .slots
        .as_ref()
        .map(|demand| demand.slot_pool.to_string());
    let name = wish.name.clone();
    let start = Start {
        name: wish.name,
        job: wish.job,
        trigger: Trigger::Manual {
            principal: wish.principal,
        },
        node: Some(engine.node.clone()),
        run: wish.run,
        entry: wish.entry,
        retries: wish.retries,
        boot: None,
        remember: wish.remember,
        rules: Rules {
            expiry_held: engine.clock_watch.holds_expiry(engine.now()),
        },
    };
    let demand = start.job.definition.main_step().slots.as_ref();
    let (mut shims, quick) = Quick::prepare(engine, demand.map(|demand| demand.slot_pool.clone()));
    let for_change = Arc::clone(&book);
    let changed = engine.store.change("start", move |tx| {
        let started = start::start(tx, &for_change, &start)?;
        let passed = match &started {
            Started::Queued { .. } | Started::Ready { .. } => quick.claim(tx)?,
            Started::Repeated(_)
            | Started::KeyReused
            | Started::AlreadyFired
            | Started::Paused
            | Started::LastFailed
            | Started::TooLate
            | Started::Refused(_)
            | Started::StillRunning => Passed::default(),
        };
        Ok((started, passed))
    });
    let (started, passed) = changed.await?;
    runner::act(engine, passed, &mut shims);
    engine.warm.give_back(shims);
    match &started {
        Started::Queued { .. } | Started::Ready { .. } => {
            engine.metrics.count_started(name.as_str(), "manual");
            engine.wake.notify_one();
        }
        Started::Refused(refusal) => {
            engine
                .metrics
                .count_refusal(slot_pool.as_deref().unwrap_or_default(), refusal.skip_word());
        }
        Started::Repeated(_)
        | Started::KeyReused
        | Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::TooLate
        | Started::StillRunning => {}
    }
    Ok(started)
}

/// Cancels a waiting entry.
pub async fn cancel_entry(
    engine: &Engine,
    slot_pool: SlotPoolName,
    id: EntryId,
) -> Result<EntryCancelled, ChangeError> {
    let cancelled = engine
        .store
        .change("cancel entry", move |tx| cancel::entry(tx, &slot_pool, id))
        .await?;
    engine.wake.notify_one();
    Ok(cancelled)
}

/// Cancels a run.
pub async fn cancel_run(engine: &Engine, id: RunId, by: String) -> Result<RunCancelled, ChangeError> {
    let sentence = format!("cancelled by {by}");
    let cancelled = engine
        .store
        .change("cancel run", move |tx| cancel::run(tx, id, &by))
        .await?;
    if let RunCancelled::Ending(fences) = &cancelled {
        for fence in fences {
            engine.live.stop(*fence, &Stop::Requested(sentence.clone()));
        }
    }
    engine.wake.notify_one();
    Ok(cancelled)
}

/// Stops all instances of a job.
pub async fn stop_job(engine: &Engine, name: JobName, by: String) -> Result<JobStopped, ChangeError> {
    let sentence = format!("cancelled by {by}");
    let stopped = engine
        .store
        .change("stop job", move |tx| cancel::job(tx, &name, &by))
        .await?;
    for fence in &stopped.fences {
        engine.live.stop(*fence, &Stop::Requested(sentence.clone()));
    }
    engine.wake.notify_one();
    Ok(stopped)
}

/// Sets or lifts the pause of a job.
pub async fn pause_job(engine: &Engine, name: JobName, pause: Option<Pause>) -> Result<(), ChangeError> {
    engine
        .store
        .change("pause job", move |tx| pause::job(tx, &name, pause.as_ref()))
        .await?;
    engine.wake.notify_one();
    Ok(())
}

/// Sets or lifts the pause of a slot pool.
pub async fn pause_slot_pool(
    engine: &Engine,
    name: SlotPoolName,
    pause: Option<Pause>,
) -> Result<(), ChangeError> {
    let book = engine.book();
    engine
        .store
        .change("pause pool", move |tx| {
            pause::slot_pool(tx, &book, &name, pause.as_ref())
        })
        .await?;
    engine.wake.notify_one();
    Ok(())
}
