//! The store: one redb file in the state directory that holds everything transactional.
//!
//! Nothing outside this folder names redb or bincode. A caller reads inside [`Store::read`] (a snapshot that waits for
//! nobody) and writes by handing the one writer thread a re-runnable change ([`Store::change`]): many changes share one
//! commit, nobody is answered before it, and a caller that gives up in time is sure that nothing happened.
//!
//! * `table`, `keys`, `codec`: typed rows over bytes; `tables`: every table on one page.
//! * `entries`, `runs`, `effects`: the only writers of rows that have index rows; `removal`: how runs go.
//! * `writer`: group commit, withdrawal, the reopen loop. `opening`: alone or together with other daemons; `peers`, `ear`:
//!   how they wake each other. `coordination`: the state directory and its locks.
//! * `routing_live`, `waiting_work`, `offers`, `decisions`, `memory`, `shadows`: the same for live routing.
//! * `check`: recomputes every index; `audit`: with all checksums, and what became of the runs. `migrate`: numbered format
//!   steps. `logs`: attempt logs beside the file.
//! * `blobs`: payloads too large for a row, as files named by their hash; `blob_names`: which of them rows name;
//!   `blob_copies`: the same inside a backup.
//! * `access`: rows of tenants, keys, sessions and the audit; `hash_key`: what keys are hashed under, beside the store.
//! * `backup`: a snapshot as a file of its own; `restore`: a state directory from it.

pub mod access;
pub mod audit;
pub mod backup;
#[cfg(test)]
mod backup_tests;
mod blob_copies;
pub mod blob_names;
pub mod blobs;
#[cfg(test)]
mod blobs_tests;
pub mod check;
mod check_history;
mod check_keys;
mod check_objects;
pub mod check_routing;
mod check_steps;
mod check_workflows;
pub mod codec;
pub mod coordination;
pub mod decisions;
#[doc(hidden)]
pub mod disk;
mod ear;
pub mod effects;
pub mod entries;
mod error;
mod feed;
#[cfg(test)]
mod format_tests;
#[cfg(test)]
mod golden;
#[cfg(test)]
mod golden_access;
#[cfg(test)]
mod golden_backups;
#[cfg(test)]
mod golden_daemons;
#[cfg(test)]
mod golden_fires;
#[cfg(test)]
mod golden_graphs;
#[cfg(test)]
mod golden_objects;
#[cfg(test)]
mod golden_reports;
#[cfg(test)]
mod golden_routing;
#[cfg(test)]
mod golden_workflows;
pub mod graph_rows;
pub mod graphs;
mod handle;
pub mod hash_key;
pub mod key_limits;
pub mod keys;
pub mod live_rows;
pub mod logs;
pub mod memory;
pub mod migrate;
pub mod offers;
mod old;
mod opening;
mod peers;
pub mod removal;
pub mod restore;
pub mod routing_live;
pub mod routing_objects;
pub mod routing_rows;
pub mod rows;
pub mod run_walk;
pub mod runs;
pub mod scribe;
#[cfg(test)]
mod scribe_tests;
pub mod shadows;
#[cfg(test)]
mod sharing_tests;
mod stats;
pub mod table;
pub mod tables;
mod tx;
pub mod waiting_work;
mod writer;

pub use error::{ChangeError, StoreError};
pub use feed::{Counted, FeedItem, FeedRow};
pub use handle::{Store, StoreOptions};
pub use opening::{Sharing, StoreMode};
pub use stats::{COMMIT_BOUNDS_MS, StoreStats};
pub use table::Rows;
pub use tx::{Abort, ReadTx, Tx};
