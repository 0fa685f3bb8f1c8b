//! Retention: what has ended goes after a while, in slices that never hold the writer for long.

use std::time::Duration;

use tokio::sync::watch;

use super::changes::retire::{self, Keep};
use super::core::Engine;
use crate::store::{logs, runs};

/// How often it looks when there is nothing to do.
const PERIOD: Duration = Duration::from_secs(60);
/// Between two slices.
const BREATH: Duration = Duration::from_millis(50);

/// The loop.
#[derive(Debug)]
pub struct Retention {
    engine: Engine,
    keep: watch::Receiver<Keep>,
}

impl Retention {
    /// With these limits, which may change while it works.
    pub fn new(engine: Engine, keep: watch::Receiver<Keep>) -> Retention {
        Retention { engine, keep }
    }

    /// Works until the daemon stops.
    pub async fn run(self) {
        self.remove_orphan_logs().await;
        while !self.engine.is_stopping() {
            match self.slice().await {
                Ok(true) => tokio::time::sleep(BREATH).await,
                Ok(false) => tokio::time::sleep(PERIOD).await,
                Err(error) => {
                    tracing::warn!(cause = %error, "retention could not work");
                    tokio::time::sleep(PERIOD).await;
                }
            }
        }
    }

    /// One slice; true if there is more.
    pub async fn slice(&self) -> Result<bool, String> {
        let (keep, now) = (*self.keep.borrow(), self.engine.now().wall);
        let due = self
            .engine
            .read(move |tx| retire::due(tx, keep, now))
            .await
            .map_err(|error| error.to_string())?;
        let mut more = due.len() >= retire::SLICE;
        if !due.is_empty() {
            let gone = self
                .engine
                .store
                .change("retire", move |tx| retire::retire(tx, &due))
                .await;
            let gone = gone.map_err(|error| error.to_string())?;
            let folder = self.engine.directory.logs();
            let removed = tokio::task::spawn_blocking(move || {
                gone.iter().try_for_each(|run| logs::forget(&folder, *run))
            });
            removed
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
        }
        let swept = self
            .engine
            .store
            .change("sweep", move |tx| retire::sweep(tx, keep))
            .await;
        more |= swept.map_err(|error| error.to_string())?;
        Ok(more)
    }

    /// Logs whose run is gone: a daemon died between the two removals.
    async fn remove_orphan_logs(&self) {
        let folder = self.engine.directory.logs();
        let store = self.engine.store.clone();
        let removed = tokio::task::spawn_blocking(move || {
            for run in logs::runs_with_logs(&folder)? {
                if store.read(|tx| Ok(runs::by_id(tx, run).is_ok_and(|run| run.is_none())))? {
                    logs::forget(&folder, run)?;
                }
            }
            Ok::<(), crate::store::StoreError>(())
        });
        if let Ok(Err(error)) = removed.await {
            tracing::warn!(cause = %error, "old logs could not be looked through");
        }
    }
}
