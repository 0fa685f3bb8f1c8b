//! The leader of a command's group: our child, held by a pidfd until it is reaped.

use std::io;
use std::sync::OnceLock;
use std::time::Duration;

use tokio::runtime::Handle;

use super::running::Exit;
use crate::os::children::OwnedChild;
use crate::os::pidfd::{PidFd, reap_blocking};
use crate::os::proc::{self, ProcessIdentity};
use crate::os::signal::{Signal, signal_group};

/// Never leaves a zombie: dropped before it is reaped, it is reaped in the background.
#[derive(Debug)]
pub(super) struct Leader {
    identity: ProcessIdentity,
    /// `None` once reaped; from then on the number may mean somebody else.
    held: Option<Held>,
    exit: OnceLock<Exit>,
    /// It may have become a command, so whoever drops it means to end its group.
    command: bool,
}

#[derive(Debug)]
struct Held {
    // Order matters: the registration goes last.
    pidfd: PidFd,
    _child: OwnedChild,
}

impl Leader {
    /// `child` is a child of ours that has not been reaped.
    pub(super) fn hold(child: OwnedChild) -> io::Result<Self> {
        let pidfd = PidFd::open(child.pid())?;
        let identity = proc::stat_of(child.pid())?
            .ok_or(io::ErrorKind::NotFound)?
            .identity;
        Ok(Self {
            identity,
            held: Some(Held { pidfd, _child: child }),
            exit: OnceLock::new(),
            command: false,
        })
    }

    pub(super) fn identity(&self) -> ProcessIdentity {
        self.identity
    }

    /// From here on dropping it kills its group.
    pub(super) fn may_be_command(&mut self) {
        self.command = true;
    }

    /// The exit, when there is one; never reaps.
    pub(super) fn exit(&self) -> io::Result<Option<Exit>> {
        if let (None, Some(held)) = (self.exit.get(), &self.held)
            && let Some(ended) = held.pidfd.peek()?
        {
            return Ok(Some(*self.exit.get_or_init(|| Exit::from(ended))));
        }
        Ok(self.exit.get().copied())
    }

    /// Waits for the exit; does not reap. Cancel-safe.
    pub(super) async fn wait(&self) -> io::Result<Exit> {
        match (self.exit()?, &self.held) {
            (Some(exit), _) => Ok(exit),
            (None, Some(held)) => {
                let exit = Exit::from(held.pidfd.exited().await?);
                Ok(*self.exit.get_or_init(|| exit))
            }
            (None, None) => Err(io::Error::other("the exit status was lost")),
        }
    }

    /// As [`Leader::wait`], bounded; whether it has ended.
    pub(super) async fn ends_within(&self, time: Duration) -> bool {
        tokio::time::timeout(time, self.wait()).await.is_ok()
    }

    /// A signal to the group, and to the leader itself if it has moved to another group.
    pub(super) fn signal(&self, signal: Signal) {
        let Some(held) = &self.held else { return };
        if held.pidfd.peek().is_err() {
            // Not our child any more (somebody else has reaped it): the number of the group proves nothing.
            return;
        }
        // An error means a number that is never signalled, which a child of ours cannot have.
        let _sent = signal_group(self.identity.group, signal);
        let moved = proc::identity_of(self.identity.pid).is_some_and(|now| now.group != self.identity.group);
        if moved {
            held.pidfd.signal(signal);
        }
    }

    /// Reaps a leader that has ended; to be called when its group is gone.
    pub(super) fn reap(&mut self) {
        if let Some(held) = self
            .held
            .take_if(|held| held.pidfd.reap().is_ok_and(|ended| ended.is_some()))
        {
            drop(held);
        }
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        if self.command {
            self.signal(Signal::Kill);
        }
        self.reap();
        let Some(held) = self.held.take() else { return };
        let pid = self.identity.pid;
        match Handle::try_current() {
            Ok(runtime) => drop(runtime.spawn(async move {
                if held.pidfd.exited().await.is_ok() {
                    let _reaped = held.pidfd.reap();
                }
            })),
            Err(_no_runtime) => drop(std::thread::spawn(move || {
                let _reaped = reap_blocking(pid);
                drop(held);
            })),
        }
    }
}
