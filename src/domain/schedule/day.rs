//! Which days of a month a pair of day fields means. The answer is a mask of 31 bits, so that a search
//! looks at whole months.

use super::calendar::{Month, weekday};

/// Whether a day has to satisfy one of the two day fields or both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DayRule {
    /// Both fields are restricted and nobody asked for both: either is enough (standard cron).
    Or,
    /// Both must match. Also the rule whenever one of the fields begins with `*` or is `?`.
    And,
}

/// Days of the month as written: a day mask (bit 1 = the first) and the forms that depend on the month.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MonthDays {
    pub(super) days: u64,
    /// Bit n: n days before the last day (`L` is bit 0).
    pub(super) before_last: u64,
    pub(super) last_weekday: bool,
    /// Bit n: the weekday (Monday to Friday) nearest to day n, in the same month.
    pub(super) nearest_weekday: u64,
}

/// Days of the week as written: bit 0 = Sunday.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct WeekDays {
    pub(super) days: u64,
    /// Bit w: the last such day of the month.
    pub(super) last: u64,
    /// `nth[k]`, bit w: the (k+1)-th such day of the month.
    pub(super) nth: [u64; 5],
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DayFields {
    /// Bits 1-12.
    pub(super) months: u64,
    pub(super) month_days: MonthDays,
    pub(super) week_days: WeekDays,
    pub(super) rule: DayRule,
}

/// Bits 0, 7, 14, 21, 28: one weekday through a month.
const WEEKLY: u64 = 1 | 1 << 7 | 1 << 14 | 1 << 21 | 1 << 28;

impl DayFields {
    /// The days of this month that match, bit 1 = the first.
    pub(super) fn matching(&self, month: Month) -> u64 {
        if self.months >> month.number & 1 == 0 {
            return 0;
        }
        let by_date = self.month_days.matching(month);
        let by_week = self.week_days.matching(month);
        match self.rule {
            DayRule::And => by_date & by_week,
            DayRule::Or => by_date | by_week,
        }
    }
}

/// Bits 1 to `length`.
fn whole_month(length: i64) -> u64 {
    ((1 << length) - 1) << 1
}

impl MonthDays {
    pub(super) fn matching(&self, month: Month) -> u64 {
        let length = month.length();
        let mut found = self.days;
        if self.before_last != 0 {
            let before = (0..length).filter(|n| self.before_last >> n & 1 == 1);
            found |= before.map(|n| 1_u64 << (length - n)).sum::<u64>();
        }
        if self.last_weekday {
            found |= 1 << nearest_weekday(month, length);
        }
        if self.nearest_weekday != 0 {
            for day in (1..=length).filter(|day| self.nearest_weekday >> day & 1 == 1) {
                found |= 1 << nearest_weekday(month, day);
            }
        }
        found & whole_month(length)
    }
}

/// The weekday nearest to a day that exists, never outside its month.
fn nearest_weekday(month: Month, day: i64) -> i64 {
    match weekday(month.first_day + day - 1) {
        6 if day == 1 => 3,
        6 => day - 1,
        0 if day == month.length() => day - 2,
        0 => day + 1,
        _ => day,
    }
}

impl WeekDays {
    fn matching(&self, month: Month) -> u64 {
        if self.days == 0b111_1111 {
            return whole_month(month.length());
        }
        let length = month.length();
        let starts_on = weekday(month.first_day);
        let mut found = 0;
        for day in 0..7 {
            let first = 1 + (day - starts_on).rem_euclid(7);
            if self.days >> day & 1 == 1 {
                found |= WEEKLY << first;
            }
            if self.last >> day & 1 == 1 {
                found |= 1
                    << if first + 28 <= length {
                        first + 28
                    } else {
                        first + 21
                    };
            }
            for (weeks, which) in (0_i64..).zip(self.nth) {
                if which >> day & 1 == 1 {
                    found |= 1 << (first + 7 * weeks);
                }
            }
        }
        found & whole_month(length)
    }
}
