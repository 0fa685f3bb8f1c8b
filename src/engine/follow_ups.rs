//! Follow-ups: runs and attempts that begin because of something earlier: retries whose time has come, and missed
//! moments that are caught up on, one after the other.

use std::sync::Arc;
use std::time::Duration;

use super::changes::catch_up::{self, OwedKey, Turn};
use super::changes::maintain::Rules;
use super::changes::retry::{self, Due, Resumed};
use super::changes::start::Started;
use super::core::Engine;
use super::metrics::JobOutcome;
use crate::engine::book::Book;
use crate::store::{ChangeError, StoreError};
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

/// The loop.
#[derive(Debug)]
pub struct FollowUps {
    engine: Engine,
}

impl FollowUps {
    /// A loop over this engine.
    pub fn new(engine: Engine) -> FollowUps {
        FollowUps { engine }
    }

    /// Works until the daemon stops.
    pub async fn run(self) {
        while !self.engine.is_stopping() {
            let soonest = match self.tick().await {
                Ok(soonest) => soonest,
                Err(error) => {
                    tracing::debug!(cause = %error, "retries and catch-up wait for the store");
                    None
                }
            };
            let now = self.engine.now().wall;
            let ms = soonest.map_or(limits::PASS_PERIOD_MS, |at| at.since(now).max(1));
            let wait = Duration::from_millis(ms.min(limits::PASS_PERIOD_MS));
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.engine.wake_follow_ups.notified() => {}
                () = self.engine.until_stopping() => {}
            }
        }
    }

    /// Does what is due; when the next retry is, if one waits.
    pub async fn tick(&self) -> Result<Option<Millis>, FollowUpError> {
        self.settle_deferred().await?;
        let soonest = self.resume_due().await?;
        self.catch_up().await?;
        Ok(soonest)
    }

    fn rules(&self) -> Rules {
        self.engine.rules()
    }

    /// The retry check applies what could not be settled before it looks at anything.
    async fn settle_deferred(&self) -> Result<(), FollowUpError> {
        let deferred = self.engine.deferred.waiting();
        if deferred.is_empty() {
            return Ok(());
        }
        let settled = deferred.clone();
        let change = self.engine.store.change("deferred settlements", move |tx| {
            retry::settle_deferred(tx, &deferred)
        });
        change.await?;
        self.engine.deferred.applied(&settled);
        Ok(())
    }

    async fn resume_due(&self) -> Result<Option<Millis>, FollowUpError> {
        loop {
            let now = self.engine.now().wall;
            let book = self.engine.book();
            let found = self
                .engine
                .read(move |tx| retry::due(tx, &book, now, limits::RETRIES_PER_CHANGE_MAX))
                .await?;
            let (due, later): (Vec<Due>, Vec<Due>) = found.into_iter().partition(|(at, _, _)| *at <= now);
            let full = due.len() == limits::RETRIES_PER_CHANGE_MAX;
            if !due.is_empty() && !self.resume(due).await? {
                return Ok(None);
            }
            if !full {
                return Ok(later.first().map(|(at, _, _)| *at));
            }
        }
    }

    /// Brings these steps back; false if none of them moved.
    async fn resume(&self, due: Vec<Due>) -> Result<bool, FollowUpError> {
        let (book, rules) = (self.engine.book(), self.rules());
        let change = self.engine.store.change("retries", move |tx| {
            let mut resumed = Vec::with_capacity(due.len());
            for (_, run, step) in &due {
                resumed.push(retry::resume(tx, &book, (*run, step), rules)?);
            }
            Ok(resumed)
        });
        let mut moved = false;
        for resumed in change.await? {
            moved |= resumed != Resumed::NotOurs;
            match resumed {
                Resumed::Again { .. } => self.engine.wake.notify_one(),
                Resumed::Refused {
                    job,
                    retry,
                    why,
                    first: true,
                } => {
                    tracing::info!(job = %job, "Job {job} retry #{retry} waiting for pool admission: {why}");
                }
                Resumed::Refused { first: false, .. } | Resumed::NotOurs => {}
                Resumed::Ended { job, why } => {
                    tracing::info!(job = %job, "Job {job}: no further attempt: {why}");
                }
            }
        }
        Ok(moved)
    }

    async fn catch_up(&self) -> Result<(), FollowUpError> {
        let book = self.engine.book();
        let now = self.engine.now().wall;
        let for_read = Arc::clone(&book);
        let owed = self
            .engine
            .read(move |tx| catch_up::oldest(tx, &for_read))
            .await?;
        for (key, row) in owed {
            if row.run.is_none() && row.not_before <= now {
                self.begin(&book, key).await?;
            }
        }
        Ok(())
    }

    async fn begin(&self, book: &Arc<Book>, key: OwedKey) -> Result<(), FollowUpError> {
        let (book, rules, run) = (Arc::clone(book), self.rules(), RunId::fresh());
        let (name, instant) = (key.1.clone(), key.2);
        let change = self.engine.store.change("catch-up", move |tx| {
            catch_up::begin(tx, &book, &key, run, &rules)
        });
        match change.await? {
            Turn::Begun(Started::Queued { .. } | Started::Ready { .. }) => {
                self.count(&name, "caught_up");
                self.engine.metrics.count_started(name.as_str(), "catchup");
                self.engine.wake.notify_one();
            }
            Turn::Refused(why) => {
                tracing::debug!(job = %name, "Job {name}: catch-up of {instant} waits: {why}");
            }
            Turn::TooLate => self.count(&name, "skipped"),
            Turn::Begun(_) | Turn::NotNow => {}
        }
        Ok(())
    }

    fn count(&self, name: &JobName, outcome: &str) {
        let label = JobOutcome {
            job: self.engine.metrics.job_name(name.as_str()),
            outcome: outcome.to_owned(),
        };
        self.engine.metrics.fires.get_or_create(&label).inc();
    }
}

/// The store did not answer; everything is tried again.
#[derive(Debug, thiserror::Error)]
pub enum FollowUpError {
    /// A read.
    #[error(transparent)]
    Read(#[from] StoreError),
    /// A change.
    #[error(transparent)]
    Change(#[from] ChangeError),
}
