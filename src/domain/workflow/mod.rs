//! Runs of definitions: what a definition is, which states a run and its steps have, and the tick that moves them.
//!
//! A job is a definition with exactly one command step; nothing about it has a second path.

pub mod attempt;
pub mod bulk;
pub mod definition;
pub mod filter;
pub mod graph;
pub mod http_args;
pub mod run;
pub mod step_lines;
pub mod tick;
pub mod timeline;

#[cfg(test)]
mod timeline_tests;
