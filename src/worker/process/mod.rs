//! Commands as processes: start, watch, end, and read what they print.
//!
//! A command begins its life as a **shim** ([`Shim`]): this very binary as `ductor __exec`, waiting in its own process group
//! for one launch message. Its identity (pid, start time, group) is final before the command begins, so a claim can store it
//! first; [`Shim::launch`] then turns it into the command ([`Running`]). A shim that never gets a message has run nothing
//! and exits 125.
//!
//! The group is ended *before* the leader is reaped: a zombie leader keeps the number of its group from being reused, so a
//! signal to the group can hit no stranger. A group is gone when no member is left in a state other than Z or X. What a
//! dead daemon left behind is ended by [`end_stranger`], which never trusts a number alone.
//!
//! Output goes through [`pump`], which cuts both streams into tagged records (`record.rs` has the format) for an
//! [`OutputSink`]: the log file, the saved lines, or both as a pair. Not here: what to run, timeouts, verdicts, retries.

mod group;
mod launch;
mod leader;
mod pump;
mod record;
mod running;
mod saved;
mod split;
mod stranger;
mod usage;
mod waiting;

pub use group::GroupEnd;
pub use launch::{LAUNCH_MESSAGE_MAX, LaunchFailure, LaunchSpec, Program};
pub(super) use launch::{Refused, read_message};
pub use pump::{NoFilter, Output, OutputFilter, OutputSink, PumpReport, close_after, pump};
pub use record::{Record, Stream, Tag, records};
pub use running::{Exit, Running};
pub use saved::SavedLines;
pub use split::{PIECE_MAX, Splitter};
pub use stranger::{StrangerEnd, end_stranger};
pub use usage::{Usage, watch_memory};
pub use waiting::{Shim, own_exe};
