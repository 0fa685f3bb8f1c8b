//! Sending signals to process groups and by pidfd.
//!
//! `kill(-1)` means "everybody I may signal", so group numbers below 2 and our own group are refused here, once for all.

use std::io;

use rustix::io::Errno;
use rustix::process::{Pid, kill_process, kill_process_group, test_kill_process_group};

use super::proc::{identity_of, own_pid};

/// The signals ductor sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signal {
    Term,
    Kill,
    Cont,
    Stop,
    Interrupt,
    Hangup,
}

impl Signal {
    pub(super) fn raw(self) -> rustix::process::Signal {
        match self {
            Self::Term => rustix::process::Signal::TERM,
            Self::Kill => rustix::process::Signal::KILL,
            Self::Cont => rustix::process::Signal::CONT,
            Self::Stop => rustix::process::Signal::STOP,
            Self::Interrupt => rustix::process::Signal::INT,
            Self::Hangup => rustix::process::Signal::HUP,
        }
    }
}

/// What became of a signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Signalled {
    /// At least one process has got it (a zombie counts).
    Sent,
    /// There is no such process or group (ESRCH).
    Nobody,
    /// They exist, and none of them may be signalled by us (EPERM).
    NotPermitted,
}

/// Signals every member of a group. Errors: only for a group number that must never be signalled (0, 1, our own).
pub fn signal_group(group: u32, signal: Signal) -> io::Result<Signalled> {
    let group = checked_group(group)?;
    Ok(judge(kill_process_group(group, signal.raw())))
}

/// Signals a child of ours that has not been reaped: until then its number cannot come to mean another process. For
/// everybody else there is [`super::pidfd`].
pub fn signal_child(child: &std::process::Child, signal: Signal) -> Signalled {
    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    pid.map_or(Signalled::Nobody, |pid| judge(kill_process(pid, signal.raw())))
}

/// Whether a group has any member, zombies included (a leader that is not reaped yet is one).
pub fn group_exists(group: u32) -> io::Result<bool> {
    let group = checked_group(group)?;
    Ok(judge(test_kill_process_group(group)) != Signalled::Nobody)
}

pub(super) fn judge(result: Result<(), Errno>) -> Signalled {
    match result {
        Ok(()) => Signalled::Sent,
        Err(Errno::PERM) => Signalled::NotPermitted,
        // EINVAL cannot happen with the signals above: what is left is ESRCH.
        Err(_) => Signalled::Nobody,
    }
}

fn checked_group(group: u32) -> io::Result<Pid> {
    let pid = i32::try_from(group)
        .ok()
        .filter(|&number| number > 1)
        .and_then(Pid::from_raw);
    pid.filter(|_| own_group() != Some(group)).ok_or_else(|| {
        io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("process group {group} is never signalled"),
        )
    })
}

/// Read from /proc: our group may lie outside our pid namespace, which `getpgrp` of rustix cannot say.
fn own_group() -> Option<u32> {
    identity_of(own_pid()).map(|own| own.group)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everybody_and_ourselves_are_never_signalled() {
        let own = own_group().unwrap();
        for group in [0, 1, own, u32::MAX] {
            assert!(signal_group(group, Signal::Cont).is_err(), "{group}");
        }
    }

    #[test]
    fn an_empty_group_is_nobody() {
        // Above the largest pid the kernel can be told to use (2^22).
        assert_eq!(signal_group(5_000_000, Signal::Cont).unwrap(), Signalled::Nobody);
        assert!(!group_exists(5_000_000).unwrap());
    }
}
