//! Real processes through the real binary: launch, groups, output, orphans, memory.

#![allow(
    clippy::unwrap_used,
    reason = "tests; the lint's own exception does not see their helpers"
)]
#![allow(
    clippy::disallowed_methods,
    reason = "these tests bound how long real processes take"
)]

mod files;
mod group;
mod launch;
mod output;
mod workshop;
