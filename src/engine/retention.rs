//! Retention: what has ended goes after a while, in slices that never hold the writer for long.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tokio::sync::watch;

use super::changes::retire::{self, Keep, KeepLogs, Place, Published};
use super::changes::routing::retire as decisions;
use super::core::Engine;
use crate::store::tables::PINS;
use crate::store::{Rows, Store, StoreError, logs, removal, runs};
use crate::words::ids::{DecisionId, TenantId};
use crate::words::limits;
use crate::words::time::Millis;

/// How often it looks when there is nothing to do.
const PERIOD: Duration = Duration::from_secs(60);
/// Between two slices.
const BREATH: Duration = Duration::from_millis(50);

/// Looks between two counts of the logs where nothing else counts them.
const LOOKS_PER_COUNT: u32 = 10;

/// Bytes of all logs; `None` if they are those of too many runs.
fn count(folder: &Path) -> Result<Option<u64>, StoreError> {
    let runs_with_logs = logs::runs_with_logs(folder)?;
    if runs_with_logs.len() > limits::LOGS_COUNTED_MAX {
        return Ok(None);
    }
    // A run may be retired meanwhile.
    let sizes = runs_with_logs
        .into_iter()
        .map(|run| logs::bytes_of(folder, run).unwrap_or(0));
    Ok(Some(sizes.sum()))
}

/// The ids of runs rise with time, so their order is the order of age. The bytes that are left.
fn trim(folder: &Path, store: &Store, keep: KeepLogs, now: Millis) -> Result<u64, StoreError> {
    let mut runs_with_logs = logs::runs_with_logs(folder)?;
    runs_with_logs.sort_unstable();
    let mut sized = Vec::with_capacity(runs_with_logs.len());
    for run in runs_with_logs {
        // Retiring a run removes its folder too.
        sized.push((run, logs::bytes_of(folder, run).unwrap_or(0)));
    }
    let mut total: u64 = sized.iter().map(|(_, bytes)| bytes).sum();
    for (run, bytes) in sized {
        let (header, is_pinned) = store.read(|tx| {
            let is_pinned = tx.has(&PINS, &(TenantId::DEFAULT, run))?;
            Ok((runs::by_id(tx, run)?, is_pinned))
        })?;
        let ended_at = header.and_then(|run| run.state.ended_at());
        let Some(ended_at) = ended_at.filter(|_| !is_pinned) else {
            continue;
        };
        let is_old = now.since(ended_at) > keep.age_ms;
        if is_old || keep.bytes.is_some_and(|most| total > most) {
            logs::forget(folder, run)?;
            total -= bytes;
        }
    }
    Ok(total)
}

/// The loop.
#[derive(Debug)]
pub struct Retention {
    engine: Engine,
    keep: watch::Receiver<Keep>,
    place: Place,
    published: Arc<Mutex<Published>>,
    /// How far old decisions of routing were looked through.
    decisions: Option<(TenantId, DecisionId)>,
}

impl Retention {
    /// With these limits, which may change while it works.
    pub fn new(engine: Engine, keep: watch::Receiver<Keep>) -> Retention {
        Retention {
            engine,
            keep,
            place: None,
            published: Arc::default(),
            decisions: None,
        }
    }

    /// Works until the daemon stops.
    pub async fn run(mut self) {
        self.remove_orphan_logs().await;
        let mut looks = 0_u32;
        while !self.engine.is_stopping() {
            let worked = match self.slice().await {
                Ok(true) => {
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
                Ok(false) => self.trim_logs().await,
                Err(error) => Err(error),
            };
            if !self.trims() && looks.is_multiple_of(LOOKS_PER_COUNT) {
                self.count_logs().await;
            }
            looks = looks.wrapping_add(1);
            if let Err(error) = worked {
                tracing::warn!(cause = %error, "retention could not work");
            }
            // Lowered limits act on what is there already, and at once.
            tokio::select! {
                () = tokio::time::sleep(PERIOD) => {}
                Ok(()) = self.keep.changed() => {}
            }
        }
    }

    /// Removes logs of ended runs that are too old, and the oldest ones while all logs together are too large.
    pub async fn trim_logs(&self) -> Result<(), String> {
        if !self.trims() {
            return Ok(());
        }
        let (keep, now) = (*self.keep.borrow(), self.engine.now().wall);
        let (folder, store) = (self.engine.directory.logs(), self.engine.store.clone());
        let trimmed = tokio::task::spawn_blocking(move || trim(&folder, &store, keep.logs, now));
        match trimmed.await {
            Ok(Ok(left)) => {
                self.engine.metrics.note_logs_bytes(Some(left));
                Ok(())
            }
            Ok(Err(error)) => Err(error.to_string()),
            Err(error) => Err(error.to_string()),
        }
    }

    /// Logs have limits of their own.
    fn trims(&self) -> bool {
        let keep = *self.keep.borrow();
        keep.logs.bytes.is_some() || keep.logs.age_ms < keep.age_ms
    }

    /// Counts what logs take, for people only: a folder that cannot be read is told where something depends on it.
    pub async fn count_logs(&self) {
        let folder = self.engine.directory.logs();
        let counted = tokio::task::spawn_blocking(move || count(&folder)).await;
        let bytes = counted.ok().and_then(Result::ok).flatten();
        self.engine.metrics.note_logs_bytes(bytes);
    }

    /// One slice; true if there is more.
    pub async fn slice(&mut self) -> Result<bool, String> {
        let (keep, now) = (*self.keep.borrow(), self.engine.now().wall);
        let own = retire::own_rules(&self.engine.book());
        let published = Arc::clone(&self.published);
        let mut place = self.place.clone();
        let looked = self.engine.read(move |tx| {
            let mut known = published.lock().unwrap_or_else(PoisonError::into_inner);
            let due = retire::due(tx, keep, &own, &mut known, now, &mut place)?;
            let fires = retire::old_fires(tx, keep, now)?;
            let is_under_way = removal::is_under_way(tx)?;
            Ok((due, place.clone(), fires, is_under_way))
        });
        let (due, place, fires, is_under_way) = looked.await.map_err(|error| error.to_string())?;
        let mut more = place.is_some();
        if !due.is_empty() || is_under_way {
            let retired = self
                .engine
                .store
                .change("retire", move |tx| retire::retire(tx, &due))
                .await;
            let retired = retired.map_err(|error| error.to_string())?;
            more |= retired.more;
            let folder = self.engine.directory.logs();
            let removed = tokio::task::spawn_blocking(move || {
                let mut gone = retired.gone.iter();
                gone.try_for_each(|run| logs::forget(&folder, *run))
            });
            removed
                .await
                .map_err(|error| error.to_string())?
                .map_err(|error| error.to_string())?;
            if retired.more {
                // Runs that did not fit this slice are found again.
                return Ok(true);
            }
        }
        self.place = place;
        let swept = self
            .engine
            .store
            .change("sweep", move |tx| retire::sweep(tx, keep, &fires))
            .await;
        more |= swept.map_err(|error| error.to_string())?;
        more |= self.retire_decisions(now).await?;
        Ok(more)
    }

    /// Old decisions of routing, a slice at a time; true if there may be more.
    async fn retire_decisions(&mut self, now: Millis) -> Result<bool, String> {
        let oldest_kept = Millis(now.0.saturating_sub_unsigned(limits::DECISION_AGE_MS)).into();
        let behind = self.decisions;
        let old = self
            .engine
            .read(move |tx| decisions::old(tx, oldest_kept, behind))
            .await
            .map_err(|error| error.to_string())?;
        self.decisions = old.last().copied();
        if old.is_empty() {
            return Ok(false);
        }
        let change = self
            .engine
            .store
            .change("retire decisions", move |tx| decisions::forget(tx, &old));
        change.await.map_err(|error| error.to_string())?;
        Ok(true)
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
