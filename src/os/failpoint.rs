//! Planned faults: named points where a debug build can be told to fail, stall or die. A release build knows none.
//!
//! A test in the same process plans them on its own [`Faults`]; a test of the binary sets `DUCTOR_FAIL=@FILE`, and the
//! file holds lines `point=action`, read again at each point. Actions: `error`, `enospc`, `eacces`, `erofs`, `stall:MS`,
//! `kill` (the process ends as by SIGKILL), `once:` in front of any of them for the first hit only. A line
//! `clock.offset=+3600000` moves the wall clock of the process by so many milliseconds, for as long as it stands there; a line
//! `disk.free=1000` lets the disk of the state directory have so many bytes free.

use std::collections::HashMap;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
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
    /// The file system is read-only.
    ReadOnly,
    /// The thread sleeps.
    Stall(Duration),
    /// The thread panics.
    Panic,
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
        Fault::ReadOnly => Err(io::Error::from(io::ErrorKind::ReadOnlyFilesystem)),
        Fault::Stall(time) => {
            #[expect(clippy::disallowed_methods, reason = "stalling is what this fault is for")]
            std::thread::sleep(time);
            Ok(())
        }
        Fault::Panic => panic!("planned fault"),
        Fault::Kill => {
            rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL).ok();
            Err(io::Error::other("this process should have ended"))
        }
    }
}

/// The file that `DUCTOR_FAIL` names. It is asked at each reading of the clock, so the variable is read once.
fn plan_file() -> Option<&'static PathBuf> {
    static FILE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let read = || {
        Some(PathBuf::from(
            std::env::var("DUCTOR_FAIL").ok()?.strip_prefix('@')?,
        ))
    };
    FILE.get_or_init(read).as_ref()
}

/// How often the clock's offset is read again, in ms of the boot clock.
const OFFSET_PERIOD_MS: u64 = 100;

/// By how many ms the plan moves the wall clock; `boot_ms` is now on the boot clock. 0 in a release build.
pub(super) fn clock_offset_ms(boot_ms: u64) -> i64 {
    static LOOKED_AT: AtomicU64 = AtomicU64::new(0);
    static OFFSET_MS: AtomicI64 = AtomicI64::new(0);
    if !cfg!(debug_assertions) {
        return 0;
    }
    let Some(path) = plan_file() else { return 0 };
    let looked_at = LOOKED_AT.load(Ordering::Relaxed);
    if looked_at == 0 || boot_ms.saturating_sub(looked_at) >= OFFSET_PERIOD_MS {
        LOOKED_AT.store(boot_ms.max(1), Ordering::Relaxed);
        let text = std::fs::read_to_string(path).unwrap_or_default();
        OFFSET_MS.store(offset_in(&text), Ordering::Relaxed);
    }
    OFFSET_MS.load(Ordering::Relaxed)
}

fn offset_in(plan: &str) -> i64 {
    let value = plan
        .lines()
        .find_map(|line| line.trim().strip_prefix("clock.offset="));
    value.and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The free bytes of the disk that the plan pretends, by a line `disk.free=BYTES`. `None` in a release build.
pub fn planned_free_bytes() -> Option<u64> {
    if !cfg!(debug_assertions) {
        return None;
    }
    free_in(&std::fs::read_to_string(plan_file()?).ok()?)
}

fn free_in(plan: &str) -> Option<u64> {
    let value = plan
        .lines()
        .find_map(|line| line.trim().strip_prefix("disk.free="));
    value.and_then(|text| text.trim().parse().ok())
}

fn from_environment(point: &str) -> Option<Fault> {
    let path = plan_file()?;
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
        "erofs" => Some(Fault::ReadOnly),
        "panic" => Some(Fault::Panic),
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
        assert_eq!(parse("erofs"), Some(Fault::ReadOnly));
        assert_eq!(parse("nonsense"), None);
    }

    #[test]
    fn the_offset_of_the_clock_is_a_line_of_the_plan() {
        assert_eq!(
            offset_in("store.commit=error\nclock.offset=+3600000\n"),
            3_600_000
        );
        assert_eq!(offset_in("clock.offset=-250"), -250);
        assert_eq!(offset_in("clock.offset=soon\n"), 0);
        assert_eq!(offset_in(""), 0);
        assert_eq!(clock_offset_ms(5), 0, "no plan in this process");
        assert_eq!(free_in("x=error\ndisk.free=1000\n"), Some(1_000));
        assert_eq!((free_in("disk.free=some"), planned_free_bytes()), (None, None));
    }
}
