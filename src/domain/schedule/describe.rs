//! Plain words for a pattern. Short and right for the common shapes; otherwise a list of the fields.

use std::fmt::Write as _;

use super::day::{DayFields, DayRule, MonthDays, WeekDays};
use super::field::{DAY_NAMES, Field, MONTH_NAMES};
use super::pattern::Pattern;

/// More times of day than this are told by fields instead of one by one.
const TIMES_MAX: usize = 6;

pub(super) fn describe_pattern(pattern: &Pattern) -> String {
    let mut text = describe_time(pattern);
    let days = describe_days(&pattern.days);
    if !days.is_empty() {
        let _ = write!(text, " on {days}");
    }
    if pattern.days.months.count_ones() < 12 {
        let _ = write!(text, " in {}", ranges(Field::Month, pattern.days.months));
    }
    text
}

fn values(mask: u64) -> Vec<i64> {
    (0..64).filter(|bit| mask >> bit & 1 == 1).collect()
}

fn is_full(field: Field, mask: u64) -> bool {
    i64::from(mask.count_ones()) == field.span()
}

/// n when the mask is 0, n, 2n, ... over the whole span and n divides it.
fn even_step(field: Field, mask: u64) -> Option<i64> {
    let all = values(mask);
    let (first, second) = (all.first()?, all.get(1)?);
    let step = second - first;
    let even = field.span() % step == 0
        && *first < step
        && all.windows(2).all(|pair| pair[1] - pair[0] == step)
        && i64::try_from(all.len()).ok()? == field.span() / step;
    even.then_some(step)
}

fn describe_time(pattern: &Pattern) -> String {
    let (seconds, minutes, hours) = (
        values(pattern.seconds),
        values(pattern.minutes),
        values(pattern.hours),
    );
    let plain = seconds == [0];
    if seconds.len() * minutes.len() * hours.len() <= TIMES_MAX {
        let mut times = Vec::new();
        for hour in &hours {
            for minute in &minutes {
                for second in &seconds {
                    let tail = if plain {
                        String::new()
                    } else {
                        format!(":{second:02}")
                    };
                    times.push(format!("{hour:02}:{minute:02}{tail}"));
                }
            }
        }
        return format!("at {}", and_list(&times));
    }
    let every_hour = is_full(Field::Hour, pattern.hours);
    let mut text = match (plain, seconds.len()) {
        (true, _) => describe_minutes(pattern.minutes, every_hour),
        (false, 1) => {
            format!(
                "{} at second {}",
                describe_minutes(pattern.minutes, every_hour),
                seconds[0]
            )
        }
        (false, _) => {
            let each = describe_cycle(Field::Second, pattern.seconds, "of each minute");
            if is_full(Field::Minute, pattern.minutes) {
                each
            } else {
                format!("{each} in minutes {}", ranges(Field::Minute, pattern.minutes))
            }
        }
    };
    if !every_hour {
        let _ = match even_step(Field::Hour, pattern.hours) {
            Some(step) if hours[0] == 0 => write!(text, " of every {step} hours"),
            _ => write!(text, " in hours {}", ranges(Field::Hour, pattern.hours)),
        };
    }
    text
}

fn describe_minutes(minutes: u64, every_hour: bool) -> String {
    let all = values(minutes);
    match (all.as_slice(), every_hour) {
        ([0], true) => "every hour".to_owned(),
        ([minute], true) => format!("every hour at minute {minute}"),
        ([minute], false) => format!("at minute {minute}"),
        _ if every_hour => describe_cycle(Field::Minute, minutes, "of each hour"),
        _ => describe_cycle(Field::Minute, minutes, ""),
    }
}

/// `every minute`, `every 15 minutes from 7`, or `at minutes 0-30 of each hour`.
fn describe_cycle(field: Field, mask: u64, whole: &str) -> String {
    let word = field.word();
    if is_full(field, mask) {
        return format!("every {word}");
    }
    if let Some(step) = even_step(field, mask) {
        let first = mask.trailing_zeros();
        let from = if first == 0 {
            String::new()
        } else {
            format!(" from {word} {first}")
        };
        return format!("every {step} {word}s{from}");
    }
    let tail = if whole.is_empty() {
        String::new()
    } else {
        format!(" {whole}")
    };
    format!("at {word}s {}{tail}", ranges(field, mask))
}

fn and_list(parts: &[String]) -> String {
    match parts {
        [] => String::new(),
        [one] => one.clone(),
        [head @ .., last] => format!("{} and {last}", head.join(", ")),
    }
}

/// `1-5, 8` or `Mon-Fri, Sun`; runs of three and more are joined, a week from Monday on.
pub(super) fn ranges(field: Field, mask: u64) -> String {
    let mut all = values(mask);
    if field == Field::DayOfWeek && all.first() == Some(&0) {
        all.remove(0);
        all.push(7);
    }
    let name = |value: i64| match field {
        Field::DayOfWeek => named(&DAY_NAMES, value % 7),
        Field::Month => named(&MONTH_NAMES, value - 1),
        Field::Second | Field::Minute | Field::Hour | Field::DayOfMonth => value.to_string(),
    };
    let mut parts = Vec::new();
    for run in all.chunk_by(|left, right| left + 1 == *right) {
        match run {
            [first, _, .., last] => parts.push(format!("{}-{}", name(*first), name(*last))),
            short => parts.extend(short.iter().map(|value| name(*value))),
        }
    }
    parts.join(", ")
}

fn named(names: &[&str], place: i64) -> String {
    let place = usize::try_from(place).unwrap_or_default();
    names.get(place).copied().unwrap_or_default().to_owned()
}

fn ordinal(number: i64) -> String {
    let tail = match (number % 10, number % 100) {
        (1, hundred) if hundred != 11 => "st",
        (2, hundred) if hundred != 12 => "nd",
        (3, hundred) if hundred != 13 => "rd",
        _ => "th",
    };
    format!("{number}{tail}")
}

fn describe_days(days: &DayFields) -> String {
    let (by_date, by_week) = (month_days(&days.month_days), week_days(&days.week_days));
    match (by_date.is_empty(), by_week.is_empty(), days.rule) {
        // Either is enough: a field that names every day leaves nothing to say.
        (true, true, _) | (_, true, DayRule::Or) | (true, _, DayRule::Or) => String::new(),
        (true, false, DayRule::And) => by_week,
        (false, true, DayRule::And) => by_date,
        (false, false, DayRule::And) => format!("{by_date} if it is {by_week}"),
        (false, false, DayRule::Or) => format!("{by_date} or {by_week}"),
    }
}

/// Empty when every day of a month is meant.
fn month_days(days: &MonthDays) -> String {
    if is_full(Field::DayOfMonth, days.days) {
        return String::new();
    }
    let mut parts = Vec::new();
    match days.days.count_ones() {
        0 => {}
        1 => parts.push(format!("day {}", ranges(Field::DayOfMonth, days.days))),
        _ => parts.push(format!("days {}", ranges(Field::DayOfMonth, days.days))),
    }
    for before in values(days.before_last) {
        parts.push(match before {
            0 => "the last day".to_owned(),
            1 => "the day before the last".to_owned(),
            _ => format!("{before} days before the last"),
        });
    }
    if days.last_weekday {
        parts.push("the last weekday".to_owned());
    }
    for day in values(days.nearest_weekday) {
        parts.push(format!("the weekday nearest to the {}", ordinal(day)));
    }
    and_list(&parts)
}

/// Empty when every day of a week is meant.
fn week_days(days: &WeekDays) -> String {
    if is_full(Field::DayOfWeek, days.days) {
        return String::new();
    }
    let mut parts = Vec::new();
    if days.days != 0 {
        parts.push(ranges(Field::DayOfWeek, days.days));
    }
    for day in values(days.last) {
        parts.push(format!("the last {}", named(&DAY_NAMES, day)));
    }
    for (nth, mask) in (1..).zip(days.nth) {
        for day in values(mask) {
            parts.push(format!("the {} {}", ordinal(nth), named(&DAY_NAMES, day)));
        }
    }
    and_list(&parts)
}
