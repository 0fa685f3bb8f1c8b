//! Ending the group of a command that a dead daemon left behind: not our children, so numbers prove nothing.
//!
//! A group is the claim's own when (1) its leader still exists with the stored start time, or (2) a member carries the
//! claim's marks in its environment, or (3) a process that was seen in it when (1) or (2) held is still in it: a group
//! number is not given away while the group has a member. Otherwise nothing is signalled. That boot id and pid namespace
//! are the same is for the caller to know.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::group::{KILL_PATIENCE, Looks, grace_end};
use crate::os::pidfd::PidFd;
use crate::os::proc::{self, ProcessIdentity, ProcessStat};
use crate::os::signal::{Signal, Signalled, signal_group};

/// What became of a stranger's group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StrangerEnd {
    /// It was there, was signalled, and is gone.
    Gone,
    /// Nothing of it was left; nothing was signalled.
    WasGone,
    /// The pid now belongs to another process, and nothing of the group was left; nothing was signalled.
    PidReused,
    /// Still there after SIGKILL, or it may not be signalled, or it cannot be judged: `pids` are not known to be gone.
    WillNotEnd { pids: Vec<u32> },
}

/// Ends the group of `identity`. `marks` are environment entries that only this claim has (entry id and fence).
///
/// SIGTERM, up to `kill_timeout`, SIGKILL, up to 5 s until it is gone.
pub async fn end_stranger(
    identity: &ProcessIdentity,
    marks: &[(String, String)],
    kill_timeout: Duration,
) -> StrangerEnd {
    if identity.pid < 2 || identity.group < 2 || identity.pid == proc::own_pid() {
        // A claim never has such a process: the row is damaged, or speaks of another namespace. Nobody is signalled.
        return StrangerEnd::WillNotEnd {
            pids: vec![identity.pid],
        };
    }
    let mut hunt = Hunt {
        identity: *identity,
        marks: marks.to_vec(),
        known: Vec::new(),
    };
    match hunt.look().await {
        Look::Empty { reused: true } => return StrangerEnd::PidReused,
        Look::Empty { reused: false } => return StrangerEnd::WasGone,
        Look::Unclear(pids) => return StrangerEnd::WillNotEnd { pids },
        Look::Ours => {}
    }
    if hunt.signal(Signal::Term) == Signalled::NotPermitted {
        return StrangerEnd::WillNotEnd { pids: hunt.pids() };
    }
    hunt.signal(Signal::Cont);
    match hunt
        .until_gone(grace_end(Instant::now(), kill_timeout), None)
        .await
    {
        Some(end) => end,
        None => match hunt
            .until_gone(Instant::now() + KILL_PATIENCE, Some(Signal::Kill))
            .await
        {
            Some(end) => end,
            None => StrangerEnd::WillNotEnd { pids: hunt.pids() },
        },
    }
}

/// What one look found.
enum Look {
    /// The group is the claim's and `known` holds its living members.
    Ours,
    /// Nothing that is the claim's. `reused`: the pid is somebody else's now.
    Empty { reused: bool },
    /// Members that we may not examine, or /proc could not be read.
    Unclear(Vec<u32>),
}

#[derive(Clone)]
struct Hunt {
    identity: ProcessIdentity,
    marks: Vec<(String, String)>,
    /// Living members at the last look that said `Ours`.
    known: Vec<ProcessIdentity>,
}

impl Hunt {
    /// `None`: the deadline passed. `signal` is sent after each look that says the group is ours.
    async fn until_gone(&mut self, deadline: Instant, signal: Option<Signal>) -> Option<StrangerEnd> {
        let mut looks = Looks::until(deadline);
        loop {
            match self.look().await {
                Look::Ours => {}
                Look::Empty { .. } => return Some(StrangerEnd::Gone),
                Look::Unclear(pids) => return Some(StrangerEnd::WillNotEnd { pids }),
            }
            if let Some(signal) = signal {
                self.signal(signal);
            }
            if !looks.again().await {
                return None;
            }
        }
    }

    async fn look(&mut self) -> Look {
        let mut hunt = self.clone();
        let looked = tokio::task::spawn_blocking(move || {
            let look = hunt.look_blocking();
            (hunt.known, look)
        });
        match looked.await {
            Ok((known, Ok(look))) => {
                self.known = known;
                look
            }
            Ok((_, Err(_))) | Err(_) => Look::Unclear(self.pids()),
        }
    }

    fn look_blocking(&mut self) -> io::Result<Look> {
        let leader = proc::stat_of(self.identity.pid)?;
        let same = leader.filter(|leader| leader.identity.start_ticks == self.identity.start_ticks);
        let mut members = proc::group_members(self.identity.group)?;
        // A leader that has moved to another group is still the claim's.
        if let Some(stat) = same.filter(|stat| !stat.is_dead() && !members.contains(&stat.identity)) {
            members.push(stat.identity);
        }
        if members.is_empty() {
            return Ok(Look::Empty {
                reused: leader.is_some() && same.is_none(),
            });
        }
        if same.is_some() || members.iter().any(|member| self.known.contains(member)) {
            self.known = members;
            return Ok(Look::Ours);
        }
        self.judge_by_marks(members, leader)
    }

    fn judge_by_marks(
        &mut self,
        members: Vec<ProcessIdentity>,
        leader: Option<ProcessStat>,
    ) -> io::Result<Look> {
        let mut hidden = Vec::new();
        for member in &members {
            match proc::environ_has(member.pid, &self.marks) {
                Ok(true) => {
                    self.known = members;
                    return Ok(Look::Ours);
                }
                Ok(false) => {}
                Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                    hidden.push(member.pid);
                }
                Err(error) => return Err(error),
            }
        }
        // A group led by a process that is younger than the claim cannot be the claim's, hidden or not.
        if hidden.is_empty() || leader.is_some() {
            return Ok(Look::Empty {
                reused: leader.is_some(),
            });
        }
        Ok(Look::Unclear(hidden))
    }

    /// Only after a look that said `Ours`.
    fn signal(&self, signal: Signal) -> Signalled {
        let sent = signal_group(self.identity.group, signal).unwrap_or(Signalled::NotPermitted);
        let moved = self
            .known
            .iter()
            .find(|member| member.group != self.identity.group);
        if let Some(moved) = moved
            && let Ok(pidfd) = PidFd::open(moved.pid)
            && proc::is_same_process(moved)
        {
            return pidfd.signal(signal);
        }
        sent
    }

    fn pids(&self) -> Vec<u32> {
        self.known.iter().map(|member| member.pid).collect()
    }
}
