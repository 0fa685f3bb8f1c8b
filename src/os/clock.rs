//! Clocks and their identity.
//!
//! Leases are measured on `CLOCK_BOOTTIME` (it goes on during suspend and never jumps). Two readings may be compared only
//! when they come from the same clock: the same boot and the same time namespace, which is what [`ClockId`] says.

use std::fmt;
use std::fs;
use std::io;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId as KernelClock, clock_gettime};
use serde::{Deserialize, Serialize};

/// Milliseconds of `CLOCK_BOOTTIME`.
pub fn boottime_ms() -> u64 {
    let now = clock_gettime(KernelClock::Boottime);
    let seconds = u64::try_from(now.tv_sec).unwrap_or(0);
    let millis = u64::try_from(now.tv_nsec).unwrap_or(0) / 1_000_000;
    seconds.saturating_mul(1_000).saturating_add(millis)
}

/// Milliseconds since the Unix epoch; for people and schedules only. Negative before 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the wall clock"
)]
pub fn wall_ms() -> i64 {
    let read = match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_millis()).unwrap_or(i64::MAX),
        Err(before) => i64::try_from(before.duration().as_millis()).map_or(i64::MIN, |ms| -ms),
    };
    if cfg!(debug_assertions) {
        return read.saturating_add(super::failpoint::clock_offset_ms(boottime_ms()));
    }
    read
}

/// The wall-clock instant at which boottime was zero, in ms since the epoch. Moves when somebody sets the wall clock.
pub fn boot_wall_ms() -> i64 {
    let boottime = i64::try_from(boottime_ms()).unwrap_or(i64::MAX);
    wall_ms().saturating_sub(boottime)
}

/// Random id of this boot of the kernel, without surrounding space.
pub fn boot_id() -> io::Result<String> {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id")?;
    Ok(text.trim().to_owned())
}

/// Inode of this process's time namespace; `0` when the kernel knows none (before 5.6).
pub fn time_namespace() -> u64 {
    super::proc::namespace_inode("time").unwrap_or(0)
}

/// Which clock a boottime reading belongs to: `<boot id>:<time-namespace inode>`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ClockId(String);

impl ClockId {
    /// The clock that [`boottime_ms`] of this process reads.
    pub fn current() -> io::Result<Self> {
        Ok(Self(format!("{}:{}", boot_id()?, time_namespace())))
    }

    /// A clock id as it was stored.
    pub fn from_stored(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The boot id inside, for the "same boot?" question of the crash table.
    pub fn boot_id(&self) -> &str {
        self.0.rsplit_once(':').map_or(self.0.as_str(), |(boot, _)| boot)
    }
}

impl fmt::Display for ClockId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boottime_goes_forward_and_agrees_with_proc_uptime() {
        let before = boottime_ms();
        let uptime = fs::read_to_string("/proc/uptime").unwrap();
        let seconds: f64 = uptime.split(' ').next().unwrap().parse().unwrap();
        let after = boottime_ms();
        assert!(before <= after);
        let difference = std::time::Duration::from_millis(after).as_secs_f64() - seconds;
        assert!(difference.abs() < 5.0, "{difference}");
    }

    #[test]
    fn clock_id_is_stable_and_names_the_boot() {
        let one = ClockId::current().unwrap();
        assert_eq!(one, ClockId::current().unwrap());
        assert_eq!(one.boot_id(), boot_id().unwrap());
        assert_eq!(ClockId::from_stored(one.as_str()), one);
    }

    #[test]
    fn boot_instant_is_in_the_past() {
        assert!(boot_wall_ms() <= wall_ms());
    }
}
