//! Queues whose head is bound to a dead node: after a minute that is told once, over all daemons and restarts. The entry is
//! nobody else's, so everything behind it waits for the node's return, the entry's deadline, or an operator.

use std::collections::BTreeMap;
use std::time::Duration;

use super::changes::head;
use super::core::Engine;
use crate::store::{ReadTx, StoreError};
use crate::words::limits;
use crate::words::names::SlotPoolName;
use crate::words::time::BootMillis;

/// Since when each head is blocked so, as far as this daemon has seen it.
#[derive(Debug)]
pub struct BlockedHeads {
    engine: Engine,
    since: BTreeMap<SlotPoolName, (u64, BootMillis)>,
}

impl BlockedHeads {
    /// Of the queues of this engine.
    pub fn new(engine: Engine) -> BlockedHeads {
        BlockedHeads {
            engine,
            since: BTreeMap::new(),
        }
    }

    /// Looks once a second until the daemon stops.
    pub async fn run(mut self) {
        while !self.engine.is_stopping() {
            tokio::select! {
                () = tokio::time::sleep(Duration::from_millis(limits::PASS_PERIOD_MS)) => {}
                () = self.engine.until_stopping() => return,
            }
            if let Err(error) = self.look().await {
                tracing::debug!(cause = %error, "blocked queues could not be looked for");
            }
        }
    }

    /// One look.
    pub async fn look(&mut self) -> Result<(), StoreError> {
        let engine = self.engine.clone();
        let blocked = self.engine.read(move |tx| blocked_in(tx, &engine)).await?;
        let now = self.engine.now().boot;
        let before = std::mem::take(&mut self.since);
        for (name, seq) in blocked {
            let since = match before.get(&name) {
                Some((same, since)) if *same == seq => *since,
                Some(_) | None => now,
            };
            self.since.insert(name.clone(), (seq, since));
            if since.until(now) >= limits::HEAD_BLOCKED_MS {
                self.tell(name, seq).await;
            }
        }
        Ok(())
    }

    async fn tell(&self, name: SlotPoolName, seq: u64) {
        let (book, of) = (self.engine.book(), name.clone());
        let told = self
            .engine
            .store
            .change("blocked head", move |tx| head::tell_blocked(tx, &book, &of, seq));
        match told.await {
            Ok(true) => tracing::warn!(
                slot_pool = %name,
                "pool {name}: its queue waits for a node that is gone; start that node, or cancel its entry"
            ),
            Ok(false) => {}
            Err(error) => tracing::debug!(cause = %error, "a blocked queue could not be told of"),
        }
    }
}

/// Queues whose head is bound to a node that is dead and has not been told of.
fn blocked_in(tx: &mut ReadTx, engine: &Engine) -> Result<Vec<(SlotPoolName, u64)>, StoreError> {
    let (book, now) = (engine.book(), engine.now().wall);
    let mut blocked = Vec::new();
    for name in book.slot_pools.keys() {
        let entry = match head::bound_elsewhere(tx, &book, name, now) {
            Ok(entry) => entry,
            Err(error) if error.is_row_fault() => continue,
            Err(error) => return Err(error),
        };
        let Some((seq, node)) = entry.and_then(|entry| Some((entry.seq, entry.node?))) else {
            continue;
        };
        if engine.directory.is_node_free(&node) && !head::is_told(tx, name, seq)? {
            blocked.push((name.clone(), seq));
        }
    }
    Ok(blocked)
}
