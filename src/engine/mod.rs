//! The engines: loops that load, decide, save and act. They talk through the store and the feed, not to each other.
//!
//! Shared seams: `core` (what every loop stands on), `book` (what the configuration says), `live` (what this daemon
//! runs), `warm` (processes that wait in advance), `disk` (is there room), `metrics`, and `changes/` (every transaction). Loops: `dispatch` (the
//! pass), `runner` (one claim from gate to record), `leases`, `hunt` (what dead daemons left), `schedules`, `retention`,
//! `blob_sweep` (large values that nobody has), `effects` (reports to the outside), `lateness`, `heartbeat`, `others` (what other daemons commit and load), `blocked`
//! (queues that wait for a dead one), `bridge` and `silence` (remote workers), `http_steps` (requests of workflows, and what they have decided), `coordinator` (what
//! happens to runs; `moving`, a seam, is their ticks). `desk` takes what the faces ask for, `bulk` what they ask for all runs that match,
//! `definitions` what they ask of workflows, `backups` copies the store, `access` knows who may call. `router`
//! decides (`deciding`, a seam) who gets work, and tries again what waits; `rule_trials` tries a rule on invented work,
//! `bundles` compares and applies documents of all that is declared,
//! `shadows` says what campaigns would have decided.

pub mod access;
pub mod backups;
pub mod blob_sweep;
pub mod blocked;
pub mod book;
pub mod bridge;
pub mod bulk;
pub mod bundles;
pub mod changes;
pub mod coordinator;
pub mod core;
mod deciding;
pub mod definitions;
pub mod desk;
pub mod disk;
pub mod dispatch;
pub mod effects;
pub mod follow_ups;
pub mod graphs;
pub mod heartbeat;
pub mod http_steps;
pub mod hunt;
pub mod lateness;
pub mod leases;
pub mod live;
pub mod mailbox;
pub mod metrics;
pub mod moving;
pub mod never_true;
pub mod others;
pub mod retention;
#[cfg(test)]
mod rig;
pub mod router;
pub mod routing_objects;
pub mod rule_trials;
pub mod runner;
pub mod runs;
pub mod schedules;
pub mod shadows;
pub mod silence;
pub mod warm;
