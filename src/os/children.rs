//! Whose child is whose, so that PID 1 can reap orphans without stealing an exit status.
//!
//! As the first process of a container ductor inherits every orphan. `waitid` for "any child" cannot be used to reap them:
//! it would also take children whose exit somebody here waits for. So every child is spawned through [`own`], which
//! registers its pid for as long as its [`OwnedChild`] lives, and [`reap_orphans`] reaps a zombie child only if its pid is
//! not registered. Spawning holds a lock for reading, reaping holds it for writing: a child that dies between its spawn
//! and its registration is not mistaken for an orphan.

use std::collections::BTreeSet;
use std::io;
use std::sync::{Mutex, PoisonError, RwLock};

use rustix::io::Errno;
use rustix::process::{Pid, WaitId, WaitIdOptions, WaitOptions, waitid, waitpid};

use super::proc;

static SPAWNING: RwLock<()> = RwLock::new(());
static OWNED: Mutex<BTreeSet<u32>> = Mutex::new(BTreeSet::new());

/// Registration of a child that somebody waits for. Drop it *after* the child is reaped.
#[derive(Debug)]
pub struct OwnedChild {
    pid: u32,
}

impl OwnedChild {
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Drop for OwnedChild {
    fn drop(&mut self) {
        OWNED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .remove(&self.pid);
    }
}

/// Runs `spawn`, which starts a child and returns its pid with whatever else it made, and registers the child.
pub fn own<T>(spawn: impl FnOnce() -> io::Result<(u32, T)>) -> io::Result<(OwnedChild, T)> {
    let _spawning = SPAWNING.read().unwrap_or_else(PoisonError::into_inner);
    let (pid, made) = spawn()?;
    OWNED.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
    Ok((OwnedChild { pid }, made))
}

/// Reaps all zombie children that nobody here owns and returns how many. For PID 1 (or a subreaper), on SIGCHLD and with
/// a slow timer. Costs one system call while no child at all is a zombie, else one pass over /proc.
///
/// A child started by other means than [`own`] (tokio's `Command`, say) is an orphan to this function: do not mix.
pub fn reap_orphans() -> io::Result<usize> {
    let _no_spawn = SPAWNING.write().unwrap_or_else(PoisonError::into_inner);
    match waitid(
        WaitId::All,
        WaitIdOptions::EXITED | WaitIdOptions::NOHANG | WaitIdOptions::NOWAIT,
    ) {
        Ok(None) | Err(Errno::CHILD) => return Ok(0),
        Ok(Some(_)) => {}
        Err(errno) => return Err(errno.into()),
    }
    let mut reaped = 0;
    for pid in proc::zombie_children(proc::own_pid())? {
        if OWNED
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .contains(&pid)
        {
            continue;
        }
        let Some(raw) = i32::try_from(pid).ok().and_then(Pid::from_raw) else {
            continue;
        };
        if matches!(waitpid(Some(raw), WaitOptions::NOHANG), Ok(Some(_))) {
            reaped += 1;
        }
    }
    Ok(reaped)
}

/// SIGCHLD is ignored (inherited from whoever started us): the kernel then reaps our children at once and every exit
/// status is lost. Cure: listen to SIGCHLD with tokio's `signal` at start.
pub fn sigchld_is_ignored() -> io::Result<bool> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let mask = proc::status_field(&status, "SigIgn").and_then(|text| u64::from_str_radix(text, 16).ok());
    let bit = rustix::process::Signal::CHILD.as_raw() - 1;
    Ok(mask.is_some_and(|mask| mask >> bit & 1 == 1))
}
