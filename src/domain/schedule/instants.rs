//! From a pattern and a zone to instants: the walk over stretches, and the rules of DST gap and fold
//! (11.3, 11.4). Works in whole UTC seconds.

use super::calendar::DAY_S;
use super::pattern::Pattern;
use super::zone::{Change, Stretch, Zone};

/// How far a search looks before it says "never". The rarest pair of day fields (29 February on a given
/// weekday, across a year like 2100) comes back within 40 years.
pub(super) const HORIZON_S: i64 = 60 * 366 * DAY_S;

/// No two changes of a zone are closer than this with any effect on each other; offsets never move by
/// more than a day, so a search may land two days before a local match without missing a stretch of it.
const LANDING_S: i64 = 2 * DAY_S;

/// A pattern in a zone.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct CronTimes {
    pub(super) pattern: Pattern,
    pub(super) zone: Zone,
}

impl CronTimes {
    /// The first fire at or after the UTC second `from`.
    pub(super) fn first_from(&self, from: i64) -> Option<i64> {
        let last = from.checked_add(HORIZON_S)?;
        let mut from = from;
        // The stretch before `from`: a change at `from` itself may be a fire (the end of a gap).
        let mut stretch_at = from - 1;
        loop {
            let stretch = self.zone.stretch(stretch_at)?;
            let local = self.new_local(stretch_at, from + stretch.offset)?;
            let found = self.pattern.next_local(local, last + stretch.offset)?;
            let Some(change) = stretch.change else {
                return Some(found - stretch.offset);
            };
            if found - stretch.offset < change.at {
                return Some(found - stretch.offset);
            }
            if !self.pattern.interval && found < change.at + change.offset {
                return Some(change.at);
            }
            from = change.at;
            let rewinds_before = change.at + change.offset < local;
            if !rewinds_before {
                from = from.max(found - stretch.offset - LANDING_S);
            }
            stretch_at = from;
        }
    }

    /// How many fires there are in the UTC seconds `from..end`.
    pub(super) fn count(&self, from: i64, end: i64) -> i64 {
        let mut total = 0;
        let mut from = from;
        let mut stretch_at = from - 1;
        while let Some(stretch) = self.zone.stretch(stretch_at) {
            let stop = stretch.change.map_or(end, |change| change.at.min(end));
            if let Some(local) = self.new_local(stretch_at, from + stretch.offset) {
                total += self.pattern.count_local(local, stop + stretch.offset);
            }
            let Some(change) = stretch.change.filter(|change| change.at < end) else {
                break;
            };
            total += i64::from(self.fires_for_gap(stretch, change));
            from = change.at;
            stretch_at = change.at;
        }
        total
    }

    /// Whether the change is a fire only because of times in its gap. When a time of the schedule is the
    /// instant of the change itself, that one fire is counted with the next stretch.
    fn fires_for_gap(&self, stretch: Stretch, change: Change) -> bool {
        let after = change.at + change.offset;
        !self.pattern.interval
            && self.pattern.count_local(change.at + stretch.offset, after) > 0
            && self.pattern.count_local(after, after + 1) == 0
    }

    /// `local`, or the end of a fold's second pass where a fixed-time pattern has nothing new before it.
    fn new_local(&self, stretch_at: i64, local: i64) -> Option<i64> {
        if self.pattern.interval {
            return Some(local);
        }
        Some(local.max(self.zone.repeated_until(stretch_at)?))
    }
}
