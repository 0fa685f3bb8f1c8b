//! What a command has used: CPU time, and the most memory.
//!
//! CPU time is read from the leader after its end and before it is reaped: its own, and that of the descendants that were
//! waited for, as the kernel adds them up. The kernel keeps a process's highest memory only while it lives, so that is
//! looked at now and then; what a command takes in its last moments can be missed.

use std::convert::Infallible;
use std::time::Duration;

use crate::os::proc;

/// The first look at a command's memory, and the longest pause between two; it doubles in between.
const LOOK_FIRST: Duration = Duration::from_millis(50);
const LOOK_LONGEST: Duration = Duration::from_secs(5);
/// Processes of one command that are looked at: a fork bomb must not make the daemon busy.
const PROCESSES_MAX: usize = 64;

/// What a command has used.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    /// CPU time in milliseconds.
    pub cpu_ms: u64,
    /// The most resident memory of one of its processes; `None` if it ended before the first look.
    pub memory_peak_bytes: Option<u64>,
}

/// CPU time of a process and of its descendants that were waited for; 0 if it is gone.
pub(super) fn cpu_ms_of(pid: u32) -> u64 {
    let stat = proc::stat_of(pid).ok().flatten();
    stat.map_or(0, |stat| stat.cpu_ticks * proc::TICK_MS)
}

/// Keeps the most memory that a process and its descendants were seen to take. Never ends by itself.
pub async fn watch_memory(pid: u32, peak: &mut Option<u64>) -> Infallible {
    let mut pause = LOOK_FIRST;
    loop {
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LOOK_LONGEST);
        *peak = (*peak).max(proc::tree_peak_bytes(pid, PROCESSES_MAX));
    }
}
