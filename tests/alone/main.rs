//! Tests that need a process to themselves: what they look at, other tests of their binary would move.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests bound how long real processes take"
)]

#[path = "../process/workshop.rs"]
mod workshop;

mod memory;
mod orphans;
