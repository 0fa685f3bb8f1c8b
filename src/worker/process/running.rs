//! A command that runs, or has ended and is not cleared away yet.

use std::io;
use std::time::Duration;

use tokio::time::Instant;

use super::group::{GroupEnd, KILL_PATIENCE, Looks, grace_end, members, pids};
use super::leader::Leader;
use super::pump::Output;
use super::usage::cpu_ms_of;
use crate::os::pidfd::Ended;
use crate::os::proc::ProcessIdentity;
use crate::os::signal::Signal;

/// How a command ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exit {
    /// Exit code; `-N` when signal N ended it.
    pub code: i32,
}

impl From<Ended> for Exit {
    fn from(ended: Ended) -> Self {
        let code = match ended {
            Ended::Exited(code) => code,
            Ended::Killed(signal) => -signal,
        };
        Self { code }
    }
}

/// A command and its process group. Dropped before [`Running::end_group`] said `Gone`, the group gets SIGKILL and the
/// leader is reaped in the background: a command never outlives the task that looks after it.
#[derive(Debug)]
pub struct Running {
    leader: Leader,
    output: Option<Output>,
    term_sent: Option<Instant>,
    cpu_ms: u64,
    gone: bool,
}

impl Running {
    pub(super) fn new(leader: Leader, output: Output) -> Self {
        Self {
            leader,
            output: Some(output),
            term_sent: None,
            cpu_ms: 0,
            gone: false,
        }
    }

    pub fn identity(&self) -> ProcessIdentity {
        self.leader.identity()
    }

    /// The read ends of both streams, once; usually handed to a task that runs `pump`.
    pub fn take_output(&mut self) -> Option<Output> {
        self.output.take()
    }

    /// Waits until the leader has ended, and does not reap it. Cancel-safe, may be called again. An error means that
    /// the exit status is lost (SIGCHLD ignored, or somebody else reaped): treat the attempt as lost.
    pub async fn wait_exit(&self) -> io::Result<Exit> {
        self.leader.wait().await
    }

    /// CPU time of a command that has ended, once its group is gone.
    pub fn cpu_ms(&self) -> u64 {
        self.cpu_ms
    }

    /// The exit if the leader has ended.
    pub fn exit(&self) -> Option<Exit> {
        self.leader.exit().ok().flatten()
    }

    /// Ends what is left of the group, then reaps the leader. For a command that runs (timeout, cancel, lost lease) and
    /// for one that has exited; in the latter case without other members it costs one look at /proc and no wait.
    ///
    /// SIGTERM (and SIGCONT, or a stopped process would not get it), up to `kill_timeout`, SIGKILL, up to 5 s until all
    /// are gone. Cancel-safe: called again, it sends no second SIGTERM and counts `kill_timeout` from the first, so a
    /// shorter time can be put in its place at any moment. After `WillNotEnd` it may be tried again.
    pub async fn end_group(&mut self, kill_timeout: Duration) -> GroupEnd {
        if self.gone {
            return GroupEnd::Gone;
        }
        if self.exit().is_some() && self.is_empty().await {
            return self.clear();
        }
        let term_sent = *self.term_sent.get_or_insert_with(|| {
            self.leader.signal(Signal::Term);
            self.leader.signal(Signal::Cont);
            Instant::now()
        });
        if self
            .is_gone_by(grace_end(term_sent, kill_timeout), None)
            .await
            .is_ok()
        {
            return self.clear();
        }
        match self
            .is_gone_by(Instant::now() + KILL_PATIENCE, Some(Signal::Kill))
            .await
        {
            Ok(()) => self.clear(),
            Err(pids) => GroupEnd::WillNotEnd { pids },
        }
    }

    /// Looks until the group is gone; at the deadline, who is left. `signal` is repeated before each look.
    async fn is_gone_by(&self, deadline: Instant, signal: Option<Signal>) -> Result<(), Vec<u32>> {
        let mut looks = Looks::until(deadline);
        loop {
            if let Some(signal) = signal {
                self.leader.signal(signal);
            }
            let ended = self.leader.ends_within(looks.left()).await;
            let left = members(self.identity().group).await;
            if ended && left.as_ref().is_some_and(Vec::is_empty) {
                return Ok(());
            }
            if !looks.again().await {
                let mut pids = pids(left.as_ref());
                if !ended && !pids.contains(&self.identity().pid) {
                    pids.insert(0, self.identity().pid);
                }
                return Err(pids);
            }
        }
    }

    async fn is_empty(&self) -> bool {
        members(self.identity().group)
            .await
            .is_some_and(|left| left.is_empty())
    }

    /// The group is gone. A member that a look has missed because it forked just then gets its SIGKILL here, while the
    /// leader still holds the number.
    fn clear(&mut self) -> GroupEnd {
        self.leader.signal(Signal::Kill);
        // Asked while the number is still its own.
        self.cpu_ms = cpu_ms_of(self.identity().pid);
        self.leader.reap();
        self.gone = true;
        GroupEnd::Gone
    }
}
