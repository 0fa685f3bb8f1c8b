//! Time as values: wall-clock milliseconds for people and schedules, boot-time milliseconds for leases.
//!
//! The clocks themselves are read here and nowhere else; everything below the engines takes [`Now`] as an argument.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::os;

/// Milliseconds since the Unix epoch, UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct Millis(pub i64);

impl Millis {
    /// This instant moved by `ms`, held inside the range of the type.
    #[must_use]
    pub fn plus(self, ms: u64) -> Millis {
        Millis(self.0.saturating_add_unsigned(ms))
    }

    /// Milliseconds from `earlier` to here; 0 if `earlier` is later.
    pub fn since(self, earlier: Millis) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }
}

/// RFC 3339 in UTC with milliseconds.
impl fmt::Display for Millis {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_millisecond(self.0) {
            Ok(instant) => write!(out, "{instant:.3}"),
            Err(_) => write!(out, "{} ms", self.0),
        }
    }
}

/// Parses RFC 3339 with a zone or `Z`.
pub fn parse_instant(text: &str) -> Option<Millis> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|instant| Millis(instant.as_millisecond()))
}

/// Milliseconds of `CLOCK_BOOTTIME`: they run through a suspend and nobody can set them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
pub struct BootMillis(pub u64);

impl BootMillis {
    /// This instant moved forward by `ms`.
    #[must_use]
    pub fn plus(self, ms: u64) -> BootMillis {
        BootMillis(self.0.saturating_add(ms))
    }

    /// Milliseconds from here to `later`; 0 if it has passed.
    pub fn until(self, later: BootMillis) -> u64 {
        later.0.saturating_sub(self.0)
    }
}

/// One reading of both clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The wall clock.
    pub wall: Millis,
    /// The boot clock.
    pub boot: BootMillis,
}

/// A source of [`Now`].
pub trait Clock: Send + Sync + fmt::Debug {
    /// Reads both clocks.
    fn now(&self) -> Now;
}

/// The machine's clocks.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Now {
        Now {
            wall: Millis(os::clock::wall_ms()),
            boot: BootMillis(os::clock::boottime_ms()),
        }
    }
}

/// A clock that a test sets by hand. Clones share one time.
#[derive(Debug, Clone)]
pub struct ManualClock {
    wall: Arc<AtomicI64>,
    boot: Arc<AtomicU64>,
}

impl ManualClock {
    /// A clock that stands at `wall`, an hour after its machine booted.
    pub fn at(wall: Millis) -> ManualClock {
        ManualClock {
            wall: Arc::new(AtomicI64::new(wall.0)),
            boot: Arc::new(AtomicU64::new(3_600_000)),
        }
    }

    /// Lets `ms` pass on both clocks.
    pub fn advance(&self, ms: u64) {
        self.wall.fetch_add(ms.cast_signed(), Ordering::SeqCst);
        self.boot.fetch_add(ms, Ordering::SeqCst);
    }

    /// Moves the wall clock alone, as an administrator or NTP would.
    pub fn step_wall(&self, ms: i64) {
        self.wall.fetch_add(ms, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Now {
        Now {
            wall: Millis(self.wall.load(Ordering::SeqCst)),
            boot: BootMillis(self.boot.load(Ordering::SeqCst)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_written_in_utc_with_milliseconds() {
        assert_eq!(Millis(1_764_439_200_123).to_string(), "2025-11-29T18:00:00.123Z");
        assert_eq!(
            parse_instant("2025-11-29T19:00:00.123+01:00"),
            Some(Millis(1_764_439_200_123))
        );
        assert_eq!(parse_instant("2025-11-29 18:00"), None);
    }

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Millis(i64::MAX).plus(5), Millis(i64::MAX));
        assert_eq!(Millis(3).since(Millis(5)), 0);
        assert_eq!(BootMillis(3).until(BootMillis(5)), 2);
        assert_eq!(BootMillis(5).until(BootMillis(3)), 0);
    }
}
