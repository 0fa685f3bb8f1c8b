//! What the daemon sends out: requests to addresses of the configuration, and the commands of reports.
//!
//! A receiver is never trusted to behave: every delivery has a time limit, an answer is read to a limit, a redirect is
//! not followed. The addresses of reports come from the operator, so loopback and private networks are allowed; those of
//! workflows pass the egress guard (`guard` decides, `guarded` sends). Values of secrets are read for one delivery; no
//! error text shows them, or the address.

mod alert;
mod client;
pub mod guard;
pub mod guarded;
mod letter;
mod shell;
mod signature;
pub mod target;

pub use alert::{Alert, BadAddress, judge_alert_address, post_alert, sign_alert};
pub use client::Outbound;
pub(super) use letter::needles;
pub use letter::{Letter, Method};
pub use shell::{ShellJob, run_shell};
