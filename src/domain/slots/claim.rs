//! A claim: the right of one daemon to execute one entry, and everything needed to judge it after a crash.

use serde::{Deserialize, Serialize};

use crate::words::limits;
use crate::words::names::NodeName;
use crate::words::time::{BootMillis, Millis, Now};

/// Which clock a boot instant was read from: boot id and time-namespace inode.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockId(pub String);

/// Where a daemon runs, as far as processes and clocks are concerned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The machine.
    pub host: String,
    /// The boot of that machine.
    pub boot_id: String,
    /// The process-number space.
    pub pid_namespace: u64,
    /// The clock of leases.
    pub clock: ClockId,
}

/// The host and the clock of what came with a backup: no machine has them.
const RESTORED: &str = "a backup";

impl Place {
    /// Where a claim of a restored store is said to live. No daemon sees processes there, whatever its own place is, so none
    /// is signalled: the original daemon may be alive on this very machine.
    pub fn of_a_backup() -> Place {
        Place {
            host: RESTORED.to_owned(),
            boot_id: RESTORED.to_owned(),
            pid_namespace: 0,
            clock: ClockId::of_a_backup(),
        }
    }

    /// True for such a place.
    pub fn is_of_a_backup(&self) -> bool {
        self.host == RESTORED
    }
}

impl ClockId {
    /// The clock of leases of a restored store: nobody reads it, so each observer waits a whole lease.
    pub fn of_a_backup() -> ClockId {
        ClockId(RESTORED.to_owned())
    }
}

/// A process, told apart from a later one with the same number by its start time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessRef {
    /// Its number.
    pub pid: u32,
    /// Kernel ticks from boot to its start.
    pub start_ticks: u64,
    /// Its group.
    pub group: u32,
}

/// The right of one daemon to execute one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claim {
    /// Who.
    pub node: NodeName,
    /// Strictly rising over all claims of the store.
    pub fence: u64,
    /// Where.
    pub place: Place,
    /// The process, waiting behind its gate or running; `None` = none was made.
    pub process: Option<ProcessRef>,
    /// When.
    pub claimed_at: Millis,
}

/// The renewable deadline of a claim.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    /// The clock of `until`.
    pub clock: ClockId,
    /// The end, on that clock.
    pub until: BootMillis,
    /// The same instant for people.
    pub until_wall: Millis,
    /// Counts the renewals.
    pub renewals: u64,
}

impl Lease {
    /// A first lease that begins at `now`.
    pub fn begin(clock: &ClockId, now: Now) -> Lease {
        Lease {
            clock: clock.clone(),
            until: now.boot.plus(limits::LEASE_MS),
            until_wall: now.wall.plus(limits::LEASE_MS),
            renewals: 0,
        }
    }

    /// The same lease, renewed at `now`.
    #[must_use]
    pub fn renewed(&self, now: Now) -> Lease {
        Lease {
            renewals: self.renewals + 1,
            ..Lease::begin(&self.clock, now)
        }
    }

    /// True when it has ended by its own clock. A lease under another clock cannot be judged by time; see
    /// [`Sighting`].
    pub fn has_lapsed(&self, clock: &ClockId, now: Now) -> bool {
        self.clock == *clock && self.until <= now.boot
    }
}

/// What an observer remembers of a lease that runs under a clock he cannot read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Sighting {
    /// The fence seen.
    pub fence: u64,
    /// The renewals seen.
    pub renewals: u64,
    /// When this pair was seen first, on the observer's clock.
    pub since: BootMillis,
}

impl Sighting {
    /// Looks again: the same pair keeps its first moment.
    #[must_use]
    pub fn look(previous: Option<Sighting>, fence: u64, renewals: u64, now: BootMillis) -> Sighting {
        match previous {
            Some(before) if before.fence == fence && before.renewals == renewals => before,
            Some(_) | None => Sighting {
                fence,
                renewals,
                since: now,
            },
        }
    }

    /// True when the pair has not moved for a whole lease of the observer's own time.
    pub fn has_lapsed(&self, now: BootMillis) -> bool {
        self.since.until(now) >= limits::LEASE_MS
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn now(boot: u64) -> Now {
        Now {
            wall: Millis(1_000_000),
            boot: BootMillis(boot),
        }
    }

    #[test]
    fn a_lease_ends_by_its_own_clock_only() {
        let mine = ClockId("boot:1".to_owned());
        let lease = Lease::begin(&mine, now(10));
        assert!(!lease.has_lapsed(&mine, now(30_009)));
        assert!(lease.has_lapsed(&mine, now(30_010)));
        assert!(!lease.has_lapsed(&ClockId("boot:2".to_owned()), now(99_999_999)));
        let renewed = lease.renewed(now(5_010));
        assert_eq!((renewed.until, renewed.renewals), (BootMillis(35_010), 1));
    }

    #[test]
    fn what_came_with_a_backup_is_seen_from_nowhere() {
        let backup = Place::of_a_backup();
        assert!(backup.is_of_a_backup());
        let here = Place {
            host: "h".to_owned(),
            boot_id: "b".to_owned(),
            pid_namespace: 1,
            clock: ClockId("b:1".to_owned()),
        };
        assert!(!here.is_of_a_backup());
        assert!(!crate::domain::slots::crash::can_see(&backup, &here));
    }

    #[test]
    fn an_unreadable_clock_is_judged_by_what_moves() {
        let first = Sighting::look(None, 7, 1, BootMillis(0));
        let same = Sighting::look(Some(first), 7, 1, BootMillis(29_999));
        assert!(!same.has_lapsed(BootMillis(29_999)));
        assert!(same.has_lapsed(BootMillis(30_000)));
        let moved = Sighting::look(Some(same), 7, 2, BootMillis(29_999));
        assert!(!moved.has_lapsed(BootMillis(30_000)));
    }
}
