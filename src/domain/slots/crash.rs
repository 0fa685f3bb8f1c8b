//! What the claim of a dead daemon means, judged by where it lived and what is left of its process (section 7.2).

use super::claim::Place;
use crate::words::limits;

/// What an observer can see of a claim's process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Seen {
    /// No process was stored: the gate never opened.
    NoneStored,
    /// The leader, or members of its group that carry the claim's marks, live.
    Alive,
    /// Nothing is left, or the number belongs to a younger process now.
    Gone,
}

/// What to do with the claim.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashVerdict {
    /// End the process group, then put the entry back.
    EndThenPutBack,
    /// Put the entry back at once.
    PutBack,
    /// The process cannot be seen from here: wait for the end of the lease.
    WaitForLease,
}

/// True when a process of `claim` could be seen from `observer`.
pub fn can_see(claim: &Place, observer: &Place) -> bool {
    claim.host == observer.host
        && claim.boot_id == observer.boot_id
        && claim.pid_namespace == observer.pid_namespace
}

/// The verdict. `seen` is asked for only when the process can be seen.
pub fn judge(claim: &Place, observer: &Place, seen: impl FnOnce() -> Seen) -> CrashVerdict {
    if claim.host != observer.host {
        return CrashVerdict::WaitForLease;
    }
    if claim.boot_id != observer.boot_id {
        return CrashVerdict::PutBack;
    }
    if claim.pid_namespace != observer.pid_namespace {
        return CrashVerdict::WaitForLease;
    }
    match seen() {
        Seen::NoneStored | Seen::Gone => CrashVerdict::PutBack,
        Seen::Alive => CrashVerdict::EndThenPutBack,
    }
}

/// True when a claim whose daemon has now died for the `deaths`-th time must not run again.
pub fn is_poisoned(deaths: u32) -> bool {
    deaths >= limits::DAEMON_DEATHS_MAX
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::slots::claim::ClockId;

    fn place(host: &str, boot: &str, pid_namespace: u64) -> Place {
        Place {
            host: host.to_owned(),
            boot_id: boot.to_owned(),
            pid_namespace,
            clock: ClockId(format!("{boot}:1")),
        }
    }

    #[test]
    fn the_table_of_the_dead() {
        let me = place("h", "b", 1);
        let check = |claim: Place, seen: Seen, verdict: CrashVerdict| {
            assert_eq!(judge(&claim, &me, || seen), verdict, "{claim:?} {seen:?}");
        };
        check(place("h", "b", 1), Seen::Alive, CrashVerdict::EndThenPutBack);
        check(place("h", "b", 1), Seen::Gone, CrashVerdict::PutBack);
        check(place("h", "b", 1), Seen::NoneStored, CrashVerdict::PutBack);
        check(place("h", "older", 9), Seen::Alive, CrashVerdict::PutBack);
        check(place("h", "b", 2), Seen::Alive, CrashVerdict::WaitForLease);
        check(place("other", "b", 1), Seen::Gone, CrashVerdict::WaitForLease);
        check(
            place("other", "older", 1),
            Seen::NoneStored,
            CrashVerdict::WaitForLease,
        );
    }

    #[test]
    fn the_sixth_death_is_not_tried() {
        assert!(!is_poisoned(4));
        assert!(is_poisoned(5));
    }
}
