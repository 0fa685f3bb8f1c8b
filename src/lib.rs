//! ductor: takes units of work and clears them, on one machine, from one binary.
//!
//! Floors, from the bottom: `words` and `os`; `expr`; `domain` and `config`; `store`; `engine`, `worker` and `daemon`; `http`
//! and `cli`. Imports go strictly down; `ARCHITECTURE.md` walks through a job from due to recorded.

pub mod cli;
pub mod config;
pub mod daemon;
pub mod dashboard;
pub mod domain;
pub mod engine;
pub mod expr;
pub mod http;
pub mod os;
pub mod store;
pub mod words;
pub mod worker;
