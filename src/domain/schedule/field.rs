//! The six fields: their words, ranges and names, and how one value is read.

/// A field of a cron expression, in the order in which they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Field {
    Second,
    Minute,
    Hour,
    DayOfMonth,
    Month,
    DayOfWeek,
}

pub(super) const FIVE: [Field; 5] = [
    Field::Minute,
    Field::Hour,
    Field::DayOfMonth,
    Field::Month,
    Field::DayOfWeek,
];

pub(super) const SIX: [Field; 6] = [
    Field::Second,
    Field::Minute,
    Field::Hour,
    Field::DayOfMonth,
    Field::Month,
    Field::DayOfWeek,
];

pub(super) const MONTH_NAMES: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
pub(super) const DAY_NAMES: [&str; 7] = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];

impl Field {
    /// The word in messages, and the word that `H` hashes.
    pub(super) fn word(self) -> &'static str {
        match self {
            Field::Second => "second",
            Field::Minute => "minute",
            Field::Hour => "hour",
            Field::DayOfMonth => "day-of-month",
            Field::Month => "month",
            Field::DayOfWeek => "day-of-week",
        }
    }

    pub(super) fn lowest(self) -> i64 {
        match self {
            Field::Second | Field::Minute | Field::Hour | Field::DayOfWeek => 0,
            Field::DayOfMonth | Field::Month => 1,
        }
    }

    /// The last value of a `*`. A day-of-week may also be written 7, which is Sunday again.
    pub(super) fn highest(self) -> i64 {
        match self {
            Field::Second | Field::Minute => 59,
            Field::Hour => 23,
            Field::DayOfMonth => 31,
            Field::Month => 12,
            Field::DayOfWeek => 6,
        }
    }

    pub(super) fn highest_written(self) -> i64 {
        if self == Field::DayOfWeek {
            7
        } else {
            self.highest()
        }
    }

    pub(super) fn span(self) -> i64 {
        self.highest() - self.lowest() + 1
    }

    pub(super) fn is_day(self) -> bool {
        matches!(self, Field::DayOfMonth | Field::DayOfWeek)
    }

    fn names(self) -> &'static [&'static str] {
        match self {
            Field::Month => &MONTH_NAMES,
            Field::DayOfWeek => &DAY_NAMES,
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth => &[],
        }
    }

    /// What may be written, for error sentences.
    pub(super) fn range_text(self) -> String {
        let numbers = format!("{}-{}", self.lowest(), self.highest_written());
        match self {
            Field::Month => format!("{numbers} or jan-dec"),
            Field::DayOfWeek => format!("{numbers} (0 and 7 are Sunday) or sun-sat"),
            Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth => numbers,
        }
    }

    /// One number or name. The error is the end of a sentence that begins with the field's word.
    pub(super) fn value(self, text: &str) -> Result<i64, String> {
        if text.is_empty() {
            return Err(format!("a value is missing; write {}", self.range_text()));
        }
        if text.bytes().all(|b| b.is_ascii_digit()) {
            let number = text.parse::<i64>().unwrap_or(i64::MAX);
            if (self.lowest()..=self.highest_written()).contains(&number) {
                return Ok(number);
            }
            return Err(self.out_of_range(text));
        }
        let by_name = self
            .names()
            .iter()
            .position(|name| name.eq_ignore_ascii_case(text));
        match by_name.and_then(|place| i64::try_from(place).ok()) {
            Some(place) => Ok(place + self.lowest()),
            None => Err(format!("'{text}' is not understood; write {}", self.range_text())),
        }
    }

    fn out_of_range(self, text: &str) -> String {
        let hint = match (self, text) {
            (Field::Hour, "24") => "; midnight is 0",
            (Field::Second | Field::Minute, "60") => "; the full one is 0",
            (Field::DayOfMonth, "0") => "; the first day is 1, the last is L",
            _ => "",
        };
        format!("{text} is out of range {}{hint}", self.range_text())
    }
}
