//! Tests that need a process to themselves: what they look at, other tests of their binary would move.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]

#[path = "../process/workshop.rs"]
#[allow(dead_code, reason = "shared with the tests of processes")]
mod workshop;

mod memory;
mod orphans;
