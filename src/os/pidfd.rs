//! A handle on one process that cannot come to mean another: wait for its end, peek at its exit, reap it, signal it.

use std::io;
use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;
use rustix::process::{
    Pid, PidfdFlags, WaitId, WaitIdOptions, WaitIdStatus, pidfd_open, pidfd_send_signal, waitid,
};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;

use super::signal::{Signal, Signalled, judge};

/// How a process ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    Exited(i32),
    Killed(i32),
}

/// A pidfd registered with the runtime.
#[derive(Debug)]
pub struct PidFd {
    fd: AsyncFd<OwnedFd>,
}

impl PidFd {
    /// Needs a tokio runtime with I/O. `NotFound` when there is no such process.
    ///
    /// For a process that is not our own child the number may have been reused before this call: compare its start time
    /// *after* opening.
    pub fn open(pid: u32) -> io::Result<Self> {
        let pid = i32::try_from(pid)
            .ok()
            .and_then(Pid::from_raw)
            .ok_or(io::ErrorKind::InvalidInput)?;
        let fd = pidfd_open(pid, PidfdFlags::empty()).map_err(|errno| match errno {
            Errno::SRCH => io::Error::from(io::ErrorKind::NotFound),
            other => io::Error::from(other),
        })?;
        Ok(Self { fd: register(fd)? })
    }

    /// Waits until our child has ended (all its threads); does not reap it. Cancel-safe.
    pub async fn exited(&self) -> io::Result<Ended> {
        loop {
            let mut guard = self.fd.readable().await?;
            if let Some(ended) = self.peek()? {
                guard.retain_ready();
                return Ok(ended);
            }
            // Kernels before 6.15 can say "ended" too early, when a thread other than the first one calls exec.
            guard.clear_ready();
        }
    }

    /// Exit of our child without reaping it; `None` while it runs.
    pub fn peek(&self) -> io::Result<Option<Ended>> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT)
    }

    /// Reaps our child if it has ended; from then on its number may be reused.
    pub fn reap(&self) -> io::Result<Option<Ended>> {
        self.wait(WaitIdOptions::EXITED | WaitIdOptions::NOHANG)
    }

    pub fn signal(&self, signal: Signal) -> Signalled {
        judge(pidfd_send_signal(self.fd.get_ref(), signal.raw()))
    }

    fn wait(&self, options: WaitIdOptions) -> io::Result<Option<Ended>> {
        wait_for(&WaitId::PidFd(self.fd.get_ref().as_fd()), options)
    }
}

/// Waits, blocking, for a child and reaps it. For places without a runtime.
pub fn reap_blocking(pid: u32) -> io::Result<Option<Ended>> {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .ok_or(io::ErrorKind::InvalidInput)?;
    wait_for(&WaitId::Pid(pid), WaitIdOptions::EXITED)
}

/// tokio deprecates its safe constructors in favour of unsafe ones, because a type may swap the descriptor it reports behind
/// the registration (tokio pull request 8587). An `OwnedFd` that nobody can reach mutably cannot, and this crate forbids
/// unsafe code.
#[expect(
    deprecated,
    reason = "sound for an OwnedFd; the replacement is an unsafe function"
)]
fn register(fd: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(fd, Interest::READABLE)
}

fn wait_for(id: &WaitId<'_>, options: WaitIdOptions) -> io::Result<Option<Ended>> {
    loop {
        match waitid(id.clone(), options) {
            Ok(status) => return Ok(status.as_ref().and_then(ended)),
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno.into()),
        }
    }
}

fn ended(status: &WaitIdStatus) -> Option<Ended> {
    match (status.exit_status(), status.terminating_signal()) {
        (Some(code), _) => Some(Ended::Exited(code)),
        (None, Some(signal)) => Some(Ended::Killed(signal)),
        (None, None) => None,
    }
}
