//! The feed: one row per commit that says what it changed, so that a page or a script can follow.

use serde::{Deserialize, Serialize};

use crate::words::time::Millis;

/// One thing that a commit changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedItem {
    /// What happened, like `pool.entry.queued` or `run.changed`.
    pub topic: String,
    /// To what: a run, an entry, a job, a slot pool.
    pub id: String,
    /// The version of that thing after the commit; 0 where it has none.
    pub version: u64,
    /// A reason or detail; never a payload.
    pub detail: Option<String>,
}

/// What one commit changed. Its key is the store's sequence number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FeedRow {
    /// When.
    pub at: Millis,
    /// In order.
    pub items: Vec<FeedItem>,
}

/// One thing that a commit brought to its end: what counters are made of. It is counted when the commit has landed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counted {
    /// A slot entry closed.
    EntryClosed {
        /// Its slot pool.
        slot_pool: String,
        /// The word of its state.
        state: &'static str,
    },
    /// A run ended.
    RunEnded {
        /// Its definition.
        workflow: String,
        /// The word of its state.
        state: &'static str,
    },
}
