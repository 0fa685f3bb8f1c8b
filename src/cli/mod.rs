//! The command line: one file per command. A thin client of the HTTP API, save for what works without a daemon.

mod args;
mod configuration;
mod exit;
mod run;
mod serve;

pub use run::run;
