//! `ductor torture`, the real binary on real daemons: a bounded share of the long run, and that it finds what is wrong.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]

#[path = "../support/mod.rs"]
mod support;

mod rounds;
mod wrongs;
