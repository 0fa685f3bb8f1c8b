//! Instants and lengths of time for people: read from arguments, and written with their zone.

use jiff::civil;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ZonedDateTime};

pub(super) use crate::words::time::read_length;
use crate::words::time::{Millis, parse_instant};

/// The zone in which times are shown and read.
#[derive(Debug, Clone)]
pub(super) struct Clockface {
    zone: TimeZone,
}

impl Clockface {
    /// UTC.
    pub(super) fn utc() -> Clockface {
        Clockface { zone: TimeZone::UTC }
    }

    /// The zone of this machine; UTC if it has none.
    pub(super) fn local() -> Clockface {
        Clockface {
            zone: TimeZone::try_system().unwrap_or(TimeZone::UTC),
        }
    }

    /// The IANA name of the zone; `UTC` where the machine does not tell it.
    pub(super) fn zone_name(&self) -> String {
        match self.zone.iana_name() {
            None | Some("Etc/UTC" | "Etc/UCT" | "Etc/Zulu") => "UTC".to_owned(),
            Some(name) => name.to_owned(),
        }
    }

    fn zoned(&self, at: Millis) -> Option<ZonedDateTime> {
        Some(
            Timestamp::from_millisecond(at.0)
                .ok()?
                .to_zoned_datetime(self.zone.clone()),
        )
    }

    /// `2025-11-29 19:12:03 CET`.
    pub(super) fn instant(&self, at: Millis) -> String {
        self.zoned(at).map_or_else(
            || at.to_string(),
            |zoned| zoned.strftime("%Y-%m-%d %H:%M:%S %Z").to_string(),
        )
    }

    /// `19:12 CET` today, `11-29 19:12 CET` this year, `2025-11-29 CET` else.
    pub(super) fn short(&self, at: Millis, now: Millis) -> String {
        let (Some(zoned), Some(today)) = (self.zoned(at), self.zoned(now)) else {
            return at.to_string();
        };
        let form = if zoned.date() == today.date() {
            "%H:%M %Z"
        } else if zoned.year() == today.year() {
            "%m-%d %H:%M %Z"
        } else {
            "%Y-%m-%d %Z"
        };
        zoned.strftime(form).to_string()
    }

    /// `19:12:03 CET`.
    pub(super) fn time_of_day(&self, at: Millis) -> String {
        self.zoned(at).map_or_else(
            || at.to_string(),
            |zoned| zoned.strftime("%H:%M:%S %Z").to_string(),
        )
    }

    /// Reads `2025-11-29T18:00:00Z`, `2025-11-29 19:00` (in this zone) or `19:00` (the next one in this zone).
    pub(super) fn read(&self, text: &str, now: Millis) -> Result<Millis, String> {
        if let Some(at) = parse_instant(text) {
            return Ok(at);
        }
        let here = |local: civil::DateTime| {
            let zoned = local
                .to_zoned_datetime(self.zone.clone())
                .map_err(|error| error.to_string())?;
            Ok(Millis(zoned.timestamp().as_millisecond()))
        };
        if let Ok(local) = text.parse::<civil::DateTime>() {
            return here(local);
        }
        let Ok(time) = text.parse::<civil::Time>() else {
            return Err(format!(
                "`{text}` is no time; write 2025-11-30T18:00:00Z, \"2025-11-30 19:00\" or 19:00"
            ));
        };
        let today = self
            .zoned(now)
            .ok_or("the clock of this machine is out of range")?;
        let at = here(today.date().to_datetime(time))?;
        if at > now {
            return Ok(at);
        }
        let tomorrow = today.date().tomorrow().map_err(|error| error.to_string())?;
        here(tomorrow.to_datetime(time))
    }
}

/// The day of the week of `2026-10-25T01:15:00`: `Sun`.
pub(super) fn weekday(date_time: &str) -> Option<String> {
    let local: civil::DateTime = date_time.parse().ok()?;
    Some(local.strftime("%a").to_string())
}

/// `320 ms`, `1.2 s`, `3 min 4 s`, `2 h 5 min`, `3 d 4 h`.
pub(super) fn length(ms: u64) -> String {
    let two = |large: u64, large_unit: &str, small: u64, small_unit: &str| {
        if small == 0 {
            format!("{large} {large_unit}")
        } else {
            format!("{large} {large_unit} {small} {small_unit}")
        }
    };
    let seconds = ms / 1_000;
    match ms {
        0..1_000 => format!("{ms} ms"),
        1_000..60_000 if ms % 1_000 < 100 => format!("{seconds} s"),
        1_000..60_000 => format!("{seconds}.{} s", ms % 1_000 / 100),
        60_000..3_600_000 => two(seconds / 60, "min", seconds % 60, "s"),
        3_600_000..86_400_000 => two(seconds / 3_600, "h", seconds % 3_600 / 60, "min"),
        _ => two(seconds / 86_400, "d", seconds % 86_400 / 3_600, "h"),
    }
}

/// `320ms`, `1.2s`, `3m4s`, `2h5m`: for a narrow terminal.
pub(super) fn short_length(ms: u64) -> String {
    length(ms).replace("min", "m").replace(' ', "")
}

/// `in 5 s`, `3 min ago`.
pub(super) fn relative(at: Millis, now: Millis) -> String {
    if at > now {
        format!("in {}", length(at.since(now)))
    } else {
        format!("{} ago", length(now.since(at)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_written_for_people() {
        let table = [
            (0, "0 ms"),
            (999, "999 ms"),
            (1_000, "1 s"),
            (1_250, "1.2 s"),
            (59_999, "59.9 s"),
            (60_000, "1 min"),
            (184_000, "3 min 4 s"),
            (7_500_000, "2 h 5 min"),
            (273_600_000, "3 d 4 h"),
        ];
        for (ms, text) in table {
            assert_eq!(length(ms), text);
        }
    }

    fn berlin() -> Clockface {
        Clockface {
            zone: TimeZone::get("Europe/Berlin").unwrap(),
        }
    }

    #[test]
    fn a_time_always_has_its_zone() {
        let at = Millis(1_764_439_200_123);
        assert_eq!(Clockface::utc().instant(at), "2025-11-29 18:00:00 UTC");
        assert_eq!(berlin().instant(at), "2025-11-29 19:00:00 CET");
        assert_eq!(berlin().time_of_day(at), "19:00:00 CET");
    }

    #[test]
    fn short_forms_keep_the_zone() {
        let now = Millis(1_764_439_200_123);
        let short = |hours: i64| berlin().short(Millis(now.0 - hours * 3_600_000), now);
        assert_eq!(short(1), "18:00 CET");
        assert_eq!(short(24), "11-28 19:00 CET");
        assert_eq!(short(366 * 24), "2024-11-28 CET");
        assert_eq!(
            (short_length(184_000), short_length(250)),
            ("3m4s".to_owned(), "250ms".to_owned())
        );
    }

    #[test]
    fn times_are_read_in_the_zone_they_are_shown_in() {
        let now = Millis(1_764_439_200_000);
        let read = |text: &str| berlin().read(text, now).map(|at| at.to_string());
        assert_eq!(read("2025-11-30T06:00:00Z").unwrap(), "2025-11-30T06:00:00.000Z");
        assert_eq!(read("2025-11-30 06:00").unwrap(), "2025-11-30T05:00:00.000Z");
        assert_eq!(read("20:30").unwrap(), "2025-11-29T19:30:00.000Z");
        assert_eq!(read("18:30").unwrap(), "2025-11-30T17:30:00.000Z");
        assert!(read("soon").unwrap_err().contains("is no time"));
    }

    #[test]
    fn past_and_future_are_told_apart() {
        assert_eq!(relative(Millis(5_000), Millis(0)), "in 5 s");
        assert_eq!(relative(Millis(0), Millis(60_000)), "1 min ago");
    }
}
