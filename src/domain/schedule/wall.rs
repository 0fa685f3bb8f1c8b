//! Times as people say them: read on the wall clock of a schedule's zone, where a time may come once, twice (a fold) or
//! never (a gap), and written back with their offset.
//!
//! Not here: what a schedule does about gaps and folds (`instants`).

use jiff::Timestamp;
use jiff::civil::{DateTime, Time};
use jiff::tz::AmbiguousOffset;

use super::calendar::{DAY_S, HOUR_S, MINUTE_S, date_of};
use super::whole::Schedule;
use super::zone::Zone;

/// Where a text puts one on the time line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Moment {
    /// The instant, on a whole second: the first of two in a fold, the end of the gap in a gap.
    pub at_ms: i64,
    /// What the clocks did there, when the text was a wall-clock time.
    pub turn: Turn,
    /// The text was a time of day: its newest occurrence was taken.
    pub day_supplied: bool,
}

/// What the clocks of a zone do at a wall-clock time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// Nothing: the time comes once.
    Plain,
    /// The time does not exist: the clocks go from `from` to `to`, past it.
    Gap {
        /// The time that was asked for, as `2026-03-08 02:30`.
        wall: String,
        /// The last time before the gap, as `02:00`.
        from: String,
        /// The first after it, as `03:00`.
        to: String,
        /// The wall-clock second that was asked for.
        local_s: i64,
    },
    /// The time comes twice.
    Fold {
        /// The second time.
        second_ms: i64,
    },
}

/// What a text must look like to be a moment.
pub const MOMENT_FORMS: &str =
    "write 08:00, \"2026-03-08 02:30\" (both in the zone of the schedule) or 2026-03-08T02:30:00-05:00";

/// A time zone of the data in the binary, for writing instants.
#[derive(Clone, Debug, PartialEq)]
pub struct ZoneClock(Zone);

impl ZoneClock {
    /// `None` if the zone data knows no such zone.
    pub fn named(name: &str) -> Option<ZoneClock> {
        Zone::named(Some(name)).map(ZoneClock)
    }

    /// UTC.
    pub fn utc() -> ZoneClock {
        ZoneClock(Zone::utc())
    }

    /// The zone's name as the zone data spells it.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// An instant with the offset: `2026-03-08T03:00:00-04:00`; `None` outside of the years 1 to 9998.
    pub fn local_time(&self, instant_ms: i64) -> Option<String> {
        local_time(&self.0, instant_ms)
    }

    /// An instant for a sentence: `2026-03-08 03:00 -04:00`, or `2026-03-08 08:00 UTC`.
    pub fn shown(&self, instant_ms: i64) -> String {
        match self.local_time(instant_ms) {
            Some(local) => shown(&local, self.name() == "UTC"),
            None => format!("{instant_ms} ms"),
        }
    }

    /// Reads an instant, a wall-clock time, or a time of day. A time of day is the newest one that is not in the future:
    /// who asks why something did not run asks about the past.
    pub fn read(&self, text: &str, now_ms: i64) -> Option<Moment> {
        let text = text.trim();
        let (local, day_supplied) = match (text.parse::<Timestamp>(), text.parse::<DateTime>()) {
            (Ok(instant), _) => {
                return Some(Moment {
                    at_ms: instant.as_second().checked_mul(1_000)?,
                    turn: Turn::Plain,
                    day_supplied: false,
                });
            }
            (Err(_), Ok(local)) => (local, false),
            (Err(_), Err(_)) => (self.newest(text.parse().ok()?, now_ms)?, true),
        };
        let place = self.place(local)?;
        Some(Moment {
            day_supplied,
            ..place
        })
    }

    /// The day of the newest such time of day that is not in the future.
    fn newest(&self, time: Time, now_ms: i64) -> Option<DateTime> {
        let now = Timestamp::from_millisecond(now_ms).ok()?;
        let today = self.0.data().to_datetime(now).date();
        let here = today.to_datetime(time);
        if self.place(here)?.at_ms <= now_ms {
            return Some(here);
        }
        Some(today.yesterday().ok()?.to_datetime(time))
    }

    fn place(&self, local: DateTime) -> Option<Moment> {
        let local_s = local
            .to_zoned_datetime(jiff::tz::TimeZone::UTC)
            .ok()?
            .timestamp()
            .as_second();
        let instant = |offset: jiff::tz::Offset| local_s - i64::from(offset.seconds());
        let (at_s, turn) = match self.0.data().to_ambiguous_timestamp(local).offset() {
            AmbiguousOffset::Unambiguous { offset } => (instant(offset), Turn::Plain),
            AmbiguousOffset::Fold { before, after } => {
                let second_ms = instant(after).checked_mul(1_000)?;
                (instant(before), Turn::Fold { second_ms })
            }
            AmbiguousOffset::Gap { before, after } => {
                // Read with the later offset, a time in the gap is an instant before the change.
                let change = self.0.stretch(instant(after))?.change?;
                let turn = Turn::Gap {
                    wall: local.strftime("%Y-%m-%d %H:%M").to_string(),
                    from: clock_face(change.at + i64::from(before.seconds())),
                    to: clock_face(change.at + i64::from(after.seconds())),
                    local_s,
                };
                (change.at, turn)
            }
        };
        Some(Moment {
            at_ms: at_s.checked_mul(1_000)?,
            turn,
            day_supplied: false,
        })
    }
}

impl Schedule {
    /// The clock of its zone.
    pub fn clock(&self) -> ZoneClock {
        ZoneClock(self.zone().clone())
    }

    /// True when the instant is one of its fires.
    pub fn is_due(&self, instant_ms: i64) -> bool {
        self.next_after(instant_ms.saturating_sub(1_000)) == Some(instant_ms)
    }

    /// The newest fire before an instant, within 60 years.
    pub fn last_before(&self, instant_ms: i64) -> Option<i64> {
        let end_ms = instant_ms.saturating_sub(1);
        // The window that holds one grows; then it is halved down to the second of the last.
        let mut low = [HOUR_S, DAY_S, 32 * DAY_S, 366 * DAY_S, 60 * 366 * DAY_S]
            .into_iter()
            .map(|window| end_ms.saturating_sub(window * 1_000))
            .find(|from| self.count(*from, end_ms) > 0)?;
        let mut high = end_ms;
        while high - low > 1_000 {
            let middle = low + (high - low) / 2;
            if self.count(middle, end_ms) > 0 {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.next_after(low).filter(|found| *found <= end_ms)
    }

    /// True when its fields name that second of the wall clock, whatever becomes of it in a gap or a fold.
    pub(crate) fn names_wall(&self, local_s: i64) -> bool {
        self.cron()
            .is_some_and(|times| times.pattern.next_local(local_s, local_s).is_some())
    }

    /// For an instant of a fold's second pass whose wall-clock time it names: the same time in the first pass.
    pub fn first_pass_of(&self, instant_ms: i64) -> Option<i64> {
        let second = instant_ms.div_euclid(1_000);
        let local = second + self.zone().offset(second)?;
        let earlier = self.zone().earlier_offset(second)?;
        let repeated = self.zone().repeated_until(second)? > local;
        (repeated && self.names_wall(local)).then_some((local - earlier) * 1_000)
    }
}

/// `02:30`, with seconds where there are some.
fn clock_face(local_s: i64) -> String {
    let second = local_s.rem_euclid(DAY_S);
    let (hour, minute, second) = (second / HOUR_S, second % HOUR_S / MINUTE_S, second % MINUTE_S);
    if second == 0 {
        format!("{hour:02}:{minute:02}")
    } else {
        format!("{hour:02}:{minute:02}:{second:02}")
    }
}

/// `2026-03-08T03:00:00-04:00`.
pub(super) fn local_time(zone: &Zone, instant_ms: i64) -> Option<String> {
    let utc = super::whole::whole_second(instant_ms);
    if utc != instant_ms.div_euclid(1_000) {
        return None;
    }
    let offset = zone.offset(utc)?;
    let local = utc + offset;
    let (date, second) = (date_of(local.div_euclid(DAY_S)), local.rem_euclid(DAY_S));
    let (hour, minute) = (second / HOUR_S, second % HOUR_S / MINUTE_S);
    let (sign, away) = (if offset < 0 { '-' } else { '+' }, offset.abs());
    Some(format!(
        "{:04}-{:02}-{:02}T{hour:02}:{minute:02}:{:02}{sign}{:02}:{:02}",
        date.year,
        date.month,
        date.day,
        second % MINUTE_S,
        away / HOUR_S,
        away % HOUR_S / MINUTE_S,
    ))
}

/// `2026-03-08T03:00:00-04:00` as `2026-03-08 03:00 -04:00`.
fn shown(local: &str, utc: bool) -> String {
    let (date_time, offset) = local.split_at(19);
    let date_time = date_time
        .strip_suffix(":00")
        .unwrap_or(date_time)
        .replace('T', " ");
    if utc {
        format!("{date_time} UTC")
    } else {
        format!("{date_time} {offset}")
    }
}
