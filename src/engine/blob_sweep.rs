//! The sweep of blobs: what no row names any more goes, an hour after it was put there last.
//!
//! A round lists what is old, walks the rows to see what of it is named, and removes what was without a name in the round
//! before too. Between the two the boot clock has moved by a quarter of an hour, so a wall clock that jumps makes no blob old
//! whose commit is still on its way. Each daemon sweeps; whoever comes second finds less.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::core::Engine;
use crate::domain::payload::Sha256Name;
use crate::store::StoreError;
use crate::store::blob_names::{self, Place};
use crate::store::blobs::{Blobs, Swept};
use crate::words::limits;
use crate::words::time::{BootMillis, Now};

/// Between two looks at the clock.
const LOOK: Duration = Duration::from_secs(60);

/// The loop, with what it remembers from round to round.
#[derive(Debug, Default)]
pub struct BlobSweep {
    /// When a round ended last.
    ended_at: Option<BootMillis>,
    /// Old blobs that had no name then.
    unnamed: BTreeSet<Sha256Name>,
}

impl BlobSweep {
    /// Works until the daemon stops.
    pub async fn run(mut self, engine: Engine) {
        while !engine.is_stopping() {
            if let Err(error) = self.round(&engine).await {
                tracing::warn!(cause = %error, "values that no run has any more could not be looked for");
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// A round, if it is time for one: what it removed.
    pub async fn round(&mut self, engine: &Engine) -> Result<Option<Swept>, String> {
        let now = engine.now();
        let is_early = |at: &BootMillis| at.until(now.boot) < limits::BLOB_SWEEP_PERIOD_MS;
        if self.ended_at.as_ref().is_some_and(is_early) {
            return Ok(None);
        }
        let before = std::mem::take(&mut self.unnamed);
        let mut swept = Swept::default();
        let mut from = Some(0);
        while let Some(first) = from {
            let (old, next) = old_ones(engine, first, now).await?;
            let unnamed = without_name(engine, old).await?;
            let (last, mut going) = (next.map_or(u8::MAX, |next| next - 1), unnamed.clone());
            going.retain(|name| before.contains(name));
            let removed = remove(engine, (first, last), going, now).await?;
            let left = unnamed.into_iter().filter(|name| !removed.blobs.contains(name));
            self.unnamed.extend(left);
            swept.bytes += removed.bytes;
            swept.unfinished += removed.unfinished;
            swept.blobs.extend(removed.blobs);
            from = next;
        }
        self.ended_at = Some(now.boot);
        if !swept.blobs.is_empty() || swept.unfinished > 0 {
            tracing::info!(
                blobs = swept.blobs.len(),
                bytes = swept.bytes,
                unfinished = swept.unfinished,
                "values that no run has any more were removed"
            );
            engine.metrics.blob_bytes_swept.inc_by(swept.bytes);
        }
        Ok(Some(swept))
    }
}

/// Works on the blob area on a thread that may block.
async fn at_files<T: Send + 'static>(
    engine: &Engine,
    work: impl FnOnce(&Blobs) -> Result<T, StoreError> + Send + 'static,
) -> Result<T, String> {
    let blobs = engine.store.blobs();
    match tokio::task::spawn_blocking(move || work(&blobs)).await {
        Ok(result) => result.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    }
}

async fn old_ones(
    engine: &Engine,
    first: u8,
    now: Now,
) -> Result<(BTreeSet<Sha256Name>, Option<u8>), String> {
    let max = limits::BLOBS_SWEPT_TOGETHER_MAX;
    at_files(engine, move |blobs| blobs.old_ones(first, age(), now.wall, max)).await
}

fn age() -> Duration {
    Duration::from_millis(limits::BLOB_SWEEP_AGE_MS)
}

/// Those of `old` that no row names. A row that cannot be read may name any of them: then none is.
async fn without_name(
    engine: &Engine,
    mut old: BTreeSet<Sha256Name>,
) -> Result<BTreeSet<Sha256Name>, String> {
    let mut place = Some(Place::START);
    while let (Some(here), false) = (place.take(), old.is_empty()) {
        let page = engine.read(move |tx| blob_names::page(tx, &here)).await;
        let (names, next) = page.map_err(|error| error.to_string())?;
        if names.unreadable > 0 {
            tracing::warn!("a value of a run cannot be read; no file of a large value is removed");
            return Ok(BTreeSet::new());
        }
        for (name, _) in names.found {
            old.remove(&name);
        }
        place = next;
    }
    Ok(old)
}

/// Removes these blobs of some folders, and what was left unfinished there, a few at a time: whoever puts a blob waits
/// meanwhile.
async fn remove(
    engine: &Engine,
    (first, last): (u8, u8),
    going: BTreeSet<Sha256Name>,
    now: Now,
) -> Result<Swept, String> {
    let mut by_folder: BTreeMap<u8, BTreeSet<Sha256Name>> = BTreeMap::new();
    for name in going {
        by_folder.entry(name.0[0]).or_default().insert(name);
    }
    at_files(engine, move |blobs| {
        let mut swept = Swept::default();
        for folder in first..=last {
            let going = by_folder.remove(&folder).unwrap_or_default();
            loop {
                let is_named = |name: Sha256Name| Ok(!going.contains(&name));
                let some = blobs.sweep(folder, is_named, age(), now.wall, limits::BLOBS_PER_SWEEP_MAX)?;
                let count = some.blobs.len() + usize::try_from(some.unfinished).unwrap_or(0);
                swept.bytes += some.bytes;
                swept.unfinished += some.unfinished;
                swept.blobs.extend(some.blobs);
                if count < limits::BLOBS_PER_SWEEP_MAX {
                    break;
                }
            }
        }
        Ok(swept)
    })
    .await
}
