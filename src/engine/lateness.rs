//! Late jobs: every 15 s the store is asked which limits are passed, and what differs from before is written and told.

use std::time::Duration;

use super::changes::late::{self, Noted};
use super::core::Engine;
use crate::words::limits;

/// The loop.
#[derive(Debug)]
pub struct Lateness {
    engine: Engine,
}

impl Lateness {
    /// Judges by the book in force.
    pub fn new(engine: Engine) -> Lateness {
        Lateness { engine }
    }

    /// Judges until the daemon stops. A start is given a period first, in which missed fires are caught up with.
    pub async fn run(self) {
        loop {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limits::LATENESS_PERIOD_MS)) => {}
                () = self.engine.until_stopping() => return,
            }
            if let Err(error) = self.tick().await {
                tracing::warn!(cause = %error, "late jobs could not be looked for");
            }
        }
    }

    /// One judgement; what it has written.
    pub async fn tick(&self) -> Result<Vec<Noted>, String> {
        let (book, now) = (self.engine.book(), self.engine.now().wall);
        let differing = self.engine.read(move |tx| late::differing(tx, &book, now)).await;
        let differing = differing.map_err(|error| error.to_string())?;
        if differing.is_empty() {
            return Ok(Vec::new());
        }
        let book = self.engine.book();
        let noted = self
            .engine
            .store
            .change("late jobs", move |tx| late::note(tx, &book, &differing))
            .await
            .map_err(|error| error.to_string())?;
        for Noted { job, began, ended } in &noted {
            for reason in began {
                tracing::warn!(job = %job, "Job {job} is late: {reason}");
            }
            for check in ended {
                tracing::info!(job = %job, "Job {job} is in time again: {check}");
            }
        }
        self.engine.report_wake.notify_one();
        Ok(noted)
    }
}
