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

/// Microseconds since the Unix epoch, UTC: the instants of routing. The wall clock moves them in whole milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Micros(pub i64);

impl Micros {
    /// This instant moved by `us`, held inside the range of the type.
    #[must_use]
    pub fn plus(self, us: u64) -> Micros {
        Micros(self.0.saturating_add_unsigned(us))
    }

    /// Microseconds from `earlier` to here; 0 if `earlier` is later.
    pub fn since(self, earlier: Micros) -> u64 {
        u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0)
    }

    /// The millisecond that it is in.
    pub fn millis(self) -> Millis {
        Millis(self.0.div_euclid(1_000))
    }

    /// Parses RFC 3339 with a zone or `Z`.
    pub fn parse(text: &str) -> Option<Micros> {
        text.parse::<jiff::Timestamp>()
            .ok()
            .map(|instant| Micros(instant.as_microsecond()))
    }
}

impl From<Millis> for Micros {
    fn from(at: Millis) -> Micros {
        Micros(at.0.saturating_mul(1_000))
    }
}

/// RFC 3339 in UTC with microseconds.
impl fmt::Display for Micros {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match jiff::Timestamp::from_microsecond(self.0) {
            Ok(instant) => write!(out, "{instant:.6}"),
            Err(_) => write!(out, "{} us", self.0),
        }
    }
}

/// As text for people (JSON), as a number in records.
impl Serialize for Micros {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if serializer.is_human_readable() {
            serializer.collect_str(self)
        } else {
            self.0.serialize(serializer)
        }
    }
}

impl<'de> Deserialize<'de> for Micros {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Micros, D::Error> {
        if deserializer.is_human_readable() {
            let text = String::deserialize(deserializer)?;
            Micros::parse(&text).ok_or_else(|| serde::de::Error::custom("is no instant in RFC 3339"))
        } else {
            i64::deserialize(deserializer).map(Micros)
        }
    }
}

/// Parses RFC 3339 with a zone or `Z`.
pub fn parse_instant(text: &str) -> Option<Millis> {
    text.parse::<jiff::Timestamp>()
        .ok()
        .map(|instant| Millis(instant.as_millisecond()))
}

/// Parses a date of HTTP: `Sun, 06 Nov 1994 08:49:37 GMT` (RFC 9110, 5.6.7; the two obsolete shapes are not read).
pub fn parse_http_date(text: &str) -> Option<Millis> {
    let zoned = text.trim().strip_suffix("GMT")?;
    let instant = jiff::fmt::rfc2822::parse(&format!("{zoned}+0000")).ok()?;
    Some(Millis(instant.timestamp().as_millisecond()))
}

/// The longest length of time that is read: a year.
const LENGTH_MS_MAX: u64 = 366 * 24 * 3_600_000;

/// Milliseconds of `90` (seconds), `500ms`, `30s`, `5m`, `1h30m`, `2d`. At most a year.
pub fn read_length(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is no length of time; write 30s, 5m, 1h30m or 2d");
    let mut total: u64 = 0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest
            .find(|letter: char| !letter.is_ascii_digit())
            .unwrap_or(rest.len());
        let number: u64 = rest[..digits].parse().map_err(|_| bad())?;
        let after = &rest[digits..];
        let unit_end = after
            .find(|letter: char| letter.is_ascii_digit())
            .unwrap_or(after.len());
        let unit_ms = match after[..unit_end].trim() {
            "ms" => 1,
            "s" => 1_000,
            "" if digits == text.trim().len() => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        total = total.saturating_add(number.saturating_mul(unit_ms));
        rest = after[unit_end..].trim_start();
    }
    if total > LENGTH_MS_MAX {
        return Err(format!("`{text}` is longer than a year"));
    }
    Ok(total)
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
    fn dates_of_http_are_read() {
        let read = |text| parse_http_date(text).map(|at| at.to_string());
        assert_eq!(
            read(" Sun, 06 Nov 1994 08:49:37 GMT").as_deref(),
            Some("1994-11-06T08:49:37.000Z")
        );
        for bad in [
            "",
            "120",
            "Sun, 06 Nov 1994 08:49:37 CET",
            "Mon, 06 Nov 1994 08:49:37 GMT",
            "Sun, 36 Nov 1994 08:49:37 GMT",
        ] {
            assert_eq!(read(bad), None, "{bad}");
        }
    }

    #[test]
    fn lengths_are_read() {
        let good = [
            ("90", 90_000),
            ("500ms", 500),
            ("30s", 30_000),
            ("5m", 300_000),
            ("1h30m", 5_400_000),
            ("1h 30min", 5_400_000),
            ("2d", 172_800_000),
        ];
        for (text, ms) in good {
            assert_eq!(read_length(text), Ok(ms), "{text}");
        }
        for text in ["", "h", "-5s", "1x", "1h30", "9999d", "99999999999999999999s"] {
            assert!(read_length(text).is_err(), "{text}");
        }
    }

    #[test]
    fn arithmetic_stays_in_range() {
        assert_eq!(Millis(i64::MAX).plus(5), Millis(i64::MAX));
        assert_eq!(Millis(3).since(Millis(5)), 0);
        assert_eq!(BootMillis(3).until(BootMillis(5)), 2);
        assert_eq!(BootMillis(5).until(BootMillis(3)), 0);
    }
}
