//! Looking at a process group until it is gone.

use std::time::Duration;

use tokio::time::Instant;

use crate::os::proc::{self, ProcessIdentity};

/// How long the members of a killed group may take to vanish. KILL works at once except in a state D (dead disk or
/// network mount), where no time is long enough.
pub(super) const KILL_PATIENCE: Duration = Duration::from_secs(5);

/// Longest kill timeout that is honoured: an instant plus any duration would overflow.
const KILL_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 3600);

/// First and longest pause between two looks at /proc; it doubles in between.
const LOOK_FIRST: Duration = Duration::from_millis(5);
const LOOK_LONGEST: Duration = Duration::from_millis(50);

/// What became of a group that was to end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupEnd {
    /// No member is left in a state other than Z or X.
    Gone,
    /// Killed, and still there after 5 s. `pids` is empty when /proc could not be read.
    WillNotEnd { pids: Vec<u32> },
}

/// The end of a kill timeout that began at `start`.
pub(super) fn grace_end(start: Instant, kill_timeout: Duration) -> Instant {
    start + kill_timeout.min(KILL_TIMEOUT_MAX)
}

/// The living members of a group; `None` when /proc cannot be read, which is no proof of anything.
pub(super) async fn members(group: u32) -> Option<Vec<ProcessIdentity>> {
    tokio::task::spawn_blocking(move || proc::group_members(group).ok())
        .await
        .ok()
        .flatten()
}

pub(super) fn pids(members: Option<&Vec<ProcessIdentity>>) -> Vec<u32> {
    members.into_iter().flatten().map(|member| member.pid).collect()
}

/// Pauses that grow from 5 to 50 ms and end at a deadline.
pub(super) struct Looks {
    next: Duration,
    until: Instant,
}

impl Looks {
    pub(super) fn until(until: Instant) -> Self {
        Self {
            next: LOOK_FIRST,
            until,
        }
    }

    /// Sleeps; false, at once, when the deadline has passed.
    pub(super) async fn again(&mut self) -> bool {
        let now = Instant::now();
        if now >= self.until {
            return false;
        }
        tokio::time::sleep_until(self.until.min(now + self.next)).await;
        self.next = LOOK_LONGEST.min(self.next * 2);
        true
    }

    pub(super) fn left(&self) -> Duration {
        self.until.saturating_duration_since(Instant::now())
    }
}
