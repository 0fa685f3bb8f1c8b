//! What people and programs see of the command line: every help text, every `--json` document, every exit code, as
//! snapshots of the real binary; and what became of fires.
//!
//! A new command changes the first of them by itself: `INSTA_UPDATE=always cargo test --test faces` writes it, and a person
//! reads it. Ids, times and numbers that differ from run to run stand as `[run]`, `[time]`, `[number]`.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod fires;
mod help;
mod redacted;
