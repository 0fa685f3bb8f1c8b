//! Planned faults: named points where a debug build can be told to fail, stall or die. A release build knows none.
//!
//! A test in the same process plans them on its own [`Faults`]; a test of the binary sets `DUCTOR_FAIL=@FILE`, and the
//! file holds lines `point=action`, read again at each point. Actions: `error`, `enospc`, `eacces`, `stall:MS`,
//! `kill` (the process ends as by SIGKILL), `once:` in front of any of them for the first hit only.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// What happens at a point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// An I/O error.
    Error,
    /// No space left.
    NoSpace,
    /// Permission denied.
    Denied,
    /// The thread sleeps.
    Stall(Duration),
    /// The process ends at once.
    Kill,
}

/// The faults planned for one store and its daemon. Clones share the plan.
#[derive(Debug, Clone, Default)]
pub struct Faults {
    planned: Arc<Mutex<HashMap<String, (Fault, u32)>>>,
}

impl Faults {
    /// Plans `fault` for the next `times` hits of `point`.
    pub fn plan(&self, point: &str, fault: Fault, times: u32) {
        self.lock().insert(point.to_owned(), (fault, times));
    }

    /// Forgets what was planned for `point`.
    pub fn clear(&self, point: &str) {
        self.lock().remove(point);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, (Fault, u32)>> {
        self.planned.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails if that was planned; does nothing in a release build.
    pub fn check(&self, point: &str) -> io::Result<()> {
        if !cfg!(debug_assertions) {
            return Ok(());
        }
        match self.take_planned(point).or_else(|| from_environment(point)) {
            None => Ok(()),
            Some(fault) => happen(fault),
        }
    }

    fn take_planned(&self, point: &str) -> Option<Fault> {
        let mut planned = self.lock();
        let (fault, times) = planned.get_mut(point)?;
        let fault = *fault;
        *times -= 1;
        if *times == 0 {
            planned.remove(point);
        }
        Some(fault)
    }
}

fn happen(fault: Fault) -> io::Result<()> {
    match fault {
        Fault::Error => Err(io::Error::other("planned fault")),
        Fault::NoSpace => Err(io::Error::from(io::ErrorKind::StorageFull)),
        Fault::Denied => Err(io::Error::from(io::ErrorKind::PermissionDenied)),
        Fault::Stall(time) => {
            #[expect(clippy::disallowed_methods, reason = "stalling is what this fault is for")]
            std::thread::sleep(time);
            Ok(())
        }
        Fault::Kill => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            Err(io::Error::other("this process should have ended"))
        }
    }
}

fn from_environment(point: &str) -> Option<Fault> {
    let source = std::env::var("DUCTOR_FAIL").ok()?;
    let path = source.strip_prefix('@')?;
    let text = std::fs::read_to_string(path).ok()?;
    let line = text
        .lines()
        .find(|line| line.split_once('=').is_some_and(|(name, _)| name.trim() == point))?;
    let action = line.split_once('=')?.1.trim();
    let once = action.strip_prefix("once:");
    if once.is_some() {
        let rest: Vec<&str> = text.lines().filter(|other| *other != line).collect();
        std::fs::write(path, rest.join("\n")).ok()?;
    }
    parse(once.unwrap_or(action))
}

fn parse(action: &str) -> Option<Fault> {
    match action {
        "error" => Some(Fault::Error),
        "enospc" => Some(Fault::NoSpace),
        "eacces" => Some(Fault::Denied),
        "kill" => Some(Fault::Kill),
        other => other
            .strip_prefix("stall:")?
            .parse()
            .ok()
            .map(|ms| Fault::Stall(Duration::from_millis(ms))),
    }
}

#[cfg(all(test, debug_assertions))]
mod tests {
    use super::*;

    #[test]
    fn a_planned_fault_happens_as_often_as_planned() {
        let faults = Faults::default();
        faults.plan("here", Fault::NoSpace, 2);
        for expected in [true, true, false] {
            assert_eq!(faults.check("here").is_err(), expected);
        }
        assert!(faults.check("elsewhere").is_ok());
        assert_eq!(parse("stall:20"), Some(Fault::Stall(Duration::from_millis(20))));
        assert_eq!(parse("nonsense"), None);
    }
}
