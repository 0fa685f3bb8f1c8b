//! A time zone as a row of stretches with one offset each, in whole UTC seconds. The data comes from the
//! binary, never from the machine, so that daemons agree.

use jiff::Timestamp;
use jiff::tz::{TimeZone, TimeZoneDatabase};

/// A named zone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Zone {
    data: TimeZone,
    name: String,
}

/// The time from some instant to the next change of the offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stretch {
    /// Local minus UTC, in seconds.
    pub(super) offset: i64,
    pub(super) change: Option<Change>,
}

/// The end of a stretch: at UTC second `at` the offset becomes `offset`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Change {
    pub(super) at: i64,
    pub(super) offset: i64,
}

impl Zone {
    pub(super) fn utc() -> Zone {
        Zone {
            data: TimeZone::UTC,
            name: "UTC".to_owned(),
        }
    }

    /// `None` when the name is not in the zone data. No name is UTC.
    pub(super) fn named(name: Option<&str>) -> Option<Zone> {
        let Some(name) = name else {
            return Some(Zone::utc());
        };
        let data = TimeZoneDatabase::bundled().get(name).ok()?;
        let name = data.iana_name().map_or_else(|| name.to_owned(), str::to_owned);
        (!data.is_unknown()).then_some(Zone { data, name })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn data(&self) -> &TimeZone {
        &self.data
    }

    /// The offset in force at a UTC second; `None` beyond the years that zones are known for.
    pub(super) fn offset(&self, utc: i64) -> Option<i64> {
        let instant = Timestamp::from_second(utc).ok()?;
        Some(i64::from(self.data.to_offset(instant).seconds()))
    }

    pub(super) fn stretch(&self, utc: i64) -> Option<Stretch> {
        let offset = self.offset(utc)?;
        let from = Timestamp::from_second(utc).ok()?;
        let change = self
            .data
            .following(from)
            .map(|next| Change {
                at: next.timestamp().as_second(),
                offset: i64::from(next.offset().seconds()),
            })
            .find(|change| change.offset != offset);
        Some(Stretch { offset, change })
    }

    /// The end of the local times that the stretch of `utc` repeats from the one before it (the second
    /// pass of a fold): no local second before it is new. `i64::MIN` when it repeats nothing.
    pub(super) fn repeated_until(&self, utc: i64) -> Option<i64> {
        let offset = self.offset(utc)?;
        // `preceding` is strict, and a change at `utc` itself has begun this stretch.
        let mut before = Timestamp::from_second(utc.checked_add(1)?).ok()?;
        while let Some(last) = self.data.preceding(before).next() {
            before = last.timestamp();
            let began = before.as_second();
            let earlier = self.offset(began - 1)?;
            if earlier != offset {
                return Some(if earlier > offset {
                    began + earlier
                } else {
                    i64::MIN
                });
            }
        }
        Some(i64::MIN)
    }

    /// The offset in force before the stretch of `utc`; `None` when there was no other.
    pub(super) fn earlier_offset(&self, utc: i64) -> Option<i64> {
        let offset = self.offset(utc)?;
        let before = Timestamp::from_second(utc.checked_add(1)?).ok()?;
        self.data
            .preceding(before)
            .filter_map(|last| self.offset(last.timestamp().as_second() - 1))
            .find(|earlier| *earlier != offset)
    }
}
