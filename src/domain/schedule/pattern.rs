//! A cron pattern on the wall clock of one unchanging offset: which local seconds match, the next one,
//! and how many there are. Not here: zones, gaps and folds (`instants`).

use super::calendar::{DAY_S, HOUR_S, MINUTE_S, Month};
use super::day::DayFields;

/// Masks of the three time fields and the day fields. Each time mask has at least one bit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Pattern {
    pub(super) seconds: u64,
    pub(super) minutes: u64,
    pub(super) hours: u64,
    pub(super) days: DayFields,
    /// A `*`, `*/n` or `H/n` in second, minute or hour; decides what a gap and a fold mean.
    pub(super) interval: bool,
}

/// The lowest bit at or above `from`.
fn next_bit(mask: u64, from: i64) -> Option<i64> {
    let above = if from < 64 { mask >> from } else { 0 };
    (above != 0).then(|| from + i64::from(above.trailing_zeros()))
}

fn bits(mask: u64) -> i64 {
    i64::from(mask.count_ones())
}

fn bits_below(mask: u64, end: i64) -> i64 {
    bits(mask & ((1 << end) - 1))
}

fn has(mask: u64, bit: i64) -> bool {
    mask >> bit & 1 == 1
}

impl Pattern {
    /// The first matching local second in `from..=until`.
    pub(super) fn next_local(&self, from: i64, until: i64) -> Option<i64> {
        let day = from.div_euclid(DAY_S);
        let (mut month, place) = Month::of(day);
        let mut left = self.days.matching(month);
        if has(left, place)
            && let Some(second) = self.time_from(from.rem_euclid(DAY_S))
        {
            let found = day * DAY_S + second;
            return (found <= until).then_some(found);
        }
        left = left >> (place + 1) << (place + 1);
        loop {
            if let Some(place) = next_bit(left, 1) {
                let found = (month.first_day + place - 1) * DAY_S + self.time_from(0)?;
                return (found <= until).then_some(found);
            }
            month = month.next();
            if month.first_day * DAY_S > until {
                return None;
            }
            left = self.days.matching(month);
        }
    }

    /// The first matching second of a day at or after `from`, whatever the day.
    fn time_from(&self, from: i64) -> Option<i64> {
        let (hour, minute, second) = (from / HOUR_S, from % HOUR_S / MINUTE_S, from % MINUTE_S);
        let first_second = next_bit(self.seconds, 0)?;
        if has(self.hours, hour) {
            if has(self.minutes, minute)
                && let Some(second) = next_bit(self.seconds, second)
            {
                return Some(hour * HOUR_S + minute * MINUTE_S + second);
            }
            if let Some(minute) = next_bit(self.minutes, minute + 1) {
                return Some(hour * HOUR_S + minute * MINUTE_S + first_second);
            }
        }
        let hour = next_bit(self.hours, hour + 1)?;
        Some(hour * HOUR_S + next_bit(self.minutes, 0)? * MINUTE_S + first_second)
    }

    /// How many local seconds in `from..end` match.
    pub(super) fn count_local(&self, from: i64, end: i64) -> i64 {
        if from >= end {
            return 0;
        }
        let (first_day, last_day) = (from.div_euclid(DAY_S), end.div_euclid(DAY_S));
        let days = self.count_days(first_day, last_day);
        days * self.times_before(DAY_S) - self.count_on(first_day, from) + self.count_on(last_day, end)
    }

    /// Matches of `day` before the local second `end` of the same day.
    fn count_on(&self, day: i64, end: i64) -> i64 {
        let (month, place) = Month::of(day);
        if has(self.days.matching(month), place) {
            self.times_before(end.rem_euclid(DAY_S))
        } else {
            0
        }
    }

    /// Matching days in `from..end`.
    fn count_days(&self, from: i64, end: i64) -> i64 {
        let (mut month, place) = Month::of(from);
        let mut count = -bits_below(self.days.matching(month), place);
        while month.first_day + month.length() <= end {
            count += bits(self.days.matching(month));
            month = month.next();
        }
        count + bits_below(self.days.matching(month), end - month.first_day + 1)
    }

    /// Matching seconds of a matching day before `end` (0 to a whole day).
    fn times_before(&self, end: i64) -> i64 {
        let (hour, minute, second) = (end / HOUR_S, end % HOUR_S / MINUTE_S, end % MINUTE_S);
        let mut count = bits_below(self.hours, hour) * bits(self.minutes) * bits(self.seconds);
        if has(self.hours, hour) {
            count += bits_below(self.minutes, minute) * bits(self.seconds);
            if has(self.minutes, minute) {
                count += bits_below(self.seconds, second);
            }
        }
        count
    }
}
