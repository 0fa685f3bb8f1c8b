//! The black-box harness: the real binary, real HTTP, kill and restart. A test file says `mod support;`.
//!
//! ```ignore
//! let daemon = Daemon::start("jobs: []\n");
//! daemon.wait_log("listening");
//! let answer = daemon.get("/healthz");
//! assert_eq!(answer.status, 200, "{answer:?}");
//! daemon.kill9();
//! let daemon = daemon.restart();
//! ```
//!
//! Each daemon has a temporary folder with its config file and its state directory, listens on a port of the kernel's choice,
//! sees no `DUCTOR_*` variable but those the test sets, and is ended when its value is dropped; after a clean end the store is
//! checked. Nothing here sleeps but [`wait_until`], which polls with a deadline.

#![allow(
    dead_code,
    unused_imports,
    reason = "each test binary uses its own part of the harness"
)]

mod cli;
mod daemon;
mod http;
mod output;
mod place;
mod receiver;
mod stream;
mod wait;

pub(crate) use cli::{Answered, ductor, ductor_with_input};
pub(crate) use daemon::{Builder, Daemon, Refused, check_store_with_doctor};
pub(crate) use http::{Client, Response};
pub(crate) use output::Output;
pub(crate) use place::Place;
pub(crate) use receiver::{Answer, Received, Receiver};
pub(crate) use stream::{Event, EventStream};
pub(crate) use wait::{PATIENCE, wait_until};
