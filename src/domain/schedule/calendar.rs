//! The proleptic Gregorian calendar in whole numbers. A *day number* counts days from 1970-01-01; a
//! *local second* counts seconds from 1970-01-01T00:00:00 on the wall clock of some zone.
//! Not here: zones and offsets.

pub(super) const DAY_S: i64 = 86_400;
pub(super) const HOUR_S: i64 = 3_600;
pub(super) const MINUTE_S: i64 = 60;

/// Days from 0001-01-01 to 1970-01-01.
const DAYS_TO_1970: i64 = 719_162;

/// A date of the civil calendar; `month` and `day` count from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Date {
    pub(super) year: i64,
    pub(super) month: i64,
    pub(super) day: i64,
}

fn is_leap(year: i64) -> bool {
    year.rem_euclid(4) == 0 && (year.rem_euclid(100) != 0 || year.rem_euclid(400) == 0)
}

pub(super) fn month_length(year: i64, month: i64) -> i64 {
    match month {
        2 => 28 + i64::from(is_leap(year)),
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// The day number of 1 January.
fn new_year(year: i64) -> i64 {
    let past = year - 1;
    365 * past + past.div_euclid(4) - past.div_euclid(100) + past.div_euclid(400) - DAYS_TO_1970
}

#[cfg(test)]
pub(super) fn day_number(year: i64, month: i64, day: i64) -> i64 {
    new_year(year) + (1..month).map(|m| month_length(year, m)).sum::<i64>() + day - 1
}

pub(super) fn date_of(day_number: i64) -> Date {
    // 146,097 days are 400 years exactly; the guess is off by at most one year.
    let mut year = 1970 + (day_number * 400).div_euclid(146_097);
    while new_year(year) > day_number {
        year -= 1;
    }
    while new_year(year + 1) <= day_number {
        year += 1;
    }
    let mut left = day_number - new_year(year);
    let mut month = 1;
    while left >= month_length(year, month) {
        left -= month_length(year, month);
        month += 1;
    }
    Date {
        year,
        month,
        day: left + 1,
    }
}

/// 0 = Sunday, as in cron; day number 0 was a Thursday.
pub(super) fn weekday(day_number: i64) -> i64 {
    (day_number + 4).rem_euclid(7)
}

/// A month and the day number of its first day; steps forward without further division.
#[derive(Clone, Copy, Debug)]
pub(super) struct Month {
    pub(super) year: i64,
    pub(super) number: i64,
    pub(super) first_day: i64,
}

impl Month {
    /// The month of a day, and that day's place in it (from 1).
    pub(super) fn of(day_number: i64) -> (Month, i64) {
        let date = date_of(day_number);
        let month = Month {
            year: date.year,
            number: date.month,
            first_day: day_number - (date.day - 1),
        };
        (month, date.day)
    }

    pub(super) fn length(self) -> i64 {
        month_length(self.year, self.number)
    }

    pub(super) fn next(self) -> Month {
        let first_day = self.first_day + self.length();
        if self.number == 12 {
            Month {
                year: self.year + 1,
                number: 1,
                first_day,
            }
        } else {
            Month {
                year: self.year,
                number: self.number + 1,
                first_day,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_and_day_numbers_agree_with_known_days() {
        for (date, number) in [
            ((1970, 1, 1), 0),
            ((1969, 12, 31), -1),
            ((2000, 2, 29), 11_016),
            ((2026, 3, 8), 20_520),
            ((2100, 3, 1), 47_541),
        ] {
            assert_eq!(day_number(date.0, date.1, date.2), number, "{date:?}");
        }
        let mut expected = date_of(-200_000);
        for number in -200_000..200_000 {
            assert_eq!(date_of(number), expected, "day {number}");
            expected.day += 1;
            if expected.day > month_length(expected.year, expected.month) {
                expected.day = 1;
                expected.month += 1;
            }
            if expected.month > 12 {
                expected.month = 1;
                expected.year += 1;
            }
        }
    }

    #[test]
    fn weekdays_are_cron_numbers() {
        assert_eq!(weekday(day_number(2026, 3, 8)), 0);
        assert_eq!(weekday(day_number(2026, 2, 13)), 5);
        assert_eq!(weekday(-1), 3);
    }

    #[test]
    fn months_step_without_holes() {
        let (mut month, place) = Month::of(day_number(2099, 12, 31));
        assert_eq!((month.number, place), (12, 31));
        for _ in 0..30 {
            month = month.next();
            assert_eq!(month.first_day, day_number(month.year, month.number, 1));
        }
    }
}
