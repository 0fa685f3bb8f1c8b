//! The loop of shadow campaigns: what they would have decided is found after the commit of a decision, over a snapshot, so that
//! nobody waits for it. What is to be looked at stands in rows: a stop loses nothing.

use std::time::Duration;

use super::changes::routing::shadows;
use super::core::Engine;
use super::deciding::RouterError;
use crate::words::limits;

/// After a turn that found nothing, many commits in a row are looked at together.
const BREATH: Duration = Duration::from_millis(limits::FOREIGN_WAKE_MS);
/// A turn that the store could not take is tried again.
const PAUSE: Duration = Duration::from_secs(1);

/// The loop.
#[derive(Debug)]
pub struct Shadows {
    engine: Engine,
}

impl Shadows {
    /// A loop over this engine.
    pub fn new(engine: Engine) -> Shadows {
        Shadows { engine }
    }

    /// Works until the daemon stops.
    pub async fn run(self) {
        let mut sequence = self.engine.store.watch_sequence();
        while !self.engine.is_stopping() {
            sequence.mark_unchanged();
            match self.turn().await {
                Ok(true) => continue,
                Ok(false) => {}
                Err(error) => {
                    tracing::debug!(cause = %error, "shadow campaigns wait for the store");
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            }
            tokio::select! {
                moved = sequence.changed() => {
                    if moved.is_err() {
                        return;
                    }
                    tokio::time::sleep(BREATH).await;
                }
                () = self.engine.until_stopping() => {}
            }
        }
    }

    /// Looks at some of what is pending; false if nothing was.
    async fn turn(&self) -> Result<bool, RouterError> {
        let looked = self.engine.read(shadows::look).await?;
        if looked.is_empty() {
            return Ok(false);
        }
        let change = self
            .engine
            .store
            .change("shadows", move |tx| shadows::commit(tx, &looked));
        change.await?;
        Ok(true)
    }

    /// Everything that is pending, for tests.
    #[cfg(test)]
    pub(super) async fn settle(&self) -> Result<(), RouterError> {
        while self.turn().await? {}
        Ok(())
    }
}
