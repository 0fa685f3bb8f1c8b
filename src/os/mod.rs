//! What only the operating system can tell or do: clocks, process identity, signals, pidfds, limits, disks.
//!
//! The only home of rustix; nothing above names it. Everything here is Linux (5.4 or newer: `pidfd_open` is 5.3,
//! `waitid` on a pidfd is 5.4). Functions are small, blocking and cheap unless they say otherwise; no policy lives here:
//! *when* to signal and *how long* to wait is decided in `worker/process`.

pub mod children;
pub mod clock;
pub mod disk;
pub mod failpoint;
pub mod fd;
pub mod host;
pub mod pidfd;
pub mod proc;
pub mod rlimits;
pub mod signal;
pub mod supervisor;
pub mod terminal;
pub mod user;
pub mod zone;
