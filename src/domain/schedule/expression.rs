//! The five or six fields of a cron expression, read into a `Pattern`, with remarks for the lints.
//! Not here: nicknames, `@every`, `@reboot` and the zone (`whole`).

use super::day::{DayFields, DayRule, MonthDays, WeekDays};
use super::error::ScheduleError;
use super::field::{FIVE, Field, SIX};
use super::item::{Item, Piece, read_item};
use super::pattern::Pattern;

/// What the lints need to know of the text and the pattern no longer tells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Remarks {
    /// `*/n` (or `H/n`) where n does not divide the field's span.
    pub(super) uneven: Vec<(Field, i64)>,
    /// Each `H` form as written, with the values it stands for.
    pub(super) hashed: Vec<(Field, String, u64)>,
    /// Both day fields are restricted and nobody chose between `or` and `and`.
    pub(super) day_rule_unchosen: bool,
}

/// One field, read.
#[derive(Debug, Default)]
struct Reading {
    mask: u64,
    /// Begins with `*`, or is `?`.
    open: bool,
    /// Has a `*`, `*/n` or `H/n`.
    interval: bool,
    month_days: MonthDays,
    week_days: WeekDays,
}

/// Reads the words of an expression. `choice` is the day rule asked for outside of the text.
pub(super) fn read_expression(
    words: &[Piece<'_>],
    seconds: bool,
    choice: Option<DayRule>,
    job_name: &str,
) -> Result<(Pattern, Remarks), ScheduleError> {
    check_count(words, seconds)?;
    let fields: &[Field] = if words.len() == SIX.len() { &SIX } else { &FIVE };
    let mut remarks = Remarks::default();
    let mut plus = false;
    let mut pattern = Pattern {
        seconds: 1,
        minutes: 0,
        hours: 0,
        days: DayFields {
            months: 0,
            month_days: MonthDays::default(),
            week_days: WeekDays::default(),
            rule: DayRule::And,
        },
        interval: false,
    };
    let mut open = false;
    for (field, word) in fields.iter().zip(words) {
        let mut word = *word;
        if let (Field::DayOfWeek, Some(rest)) = (field, word.text.strip_prefix('+')) {
            plus = true;
            word = Piece {
                text: rest,
                column: word.column + 1,
            };
            if rest.is_empty() {
                return Err(word.refuse(*field, "a day is missing after '+', as in +fri"));
            }
        }
        let reading = read_field(*field, word, job_name, &mut remarks)?;
        open |= field.is_day() && reading.open;
        match field {
            Field::Second => pattern.seconds = reading.mask,
            Field::Minute => pattern.minutes = reading.mask,
            Field::Hour => pattern.hours = reading.mask,
            Field::DayOfMonth => pattern.days.month_days = reading.month_days,
            Field::Month => pattern.days.months = reading.mask,
            Field::DayOfWeek => pattern.days.week_days = reading.week_days,
        }
        pattern.interval |= matches!(field, Field::Second | Field::Minute | Field::Hour) && reading.interval;
    }
    if !open && !plus && choice != Some(DayRule::And) {
        pattern.days.rule = DayRule::Or;
        remarks.day_rule_unchosen = choice.is_none();
    }
    Ok((pattern, remarks))
}

fn check_count(words: &[Piece<'_>], seconds: bool) -> Result<(), ScheduleError> {
    let (Some(first), Some(last)) = (words.first(), words.last()) else {
        return Err(ScheduleError {
            field: None,
            column: 0,
            length: 0,
            message: "the schedule is empty; write five fields, as in 30 2 * * *".to_owned(),
        });
    };
    let end = last.column + last.length();
    match (words.len(), seconds) {
        (5, _) | (6, true) => Ok(()),
        (6, false) => Err(ScheduleError {
            field: Some(Field::Second.word()),
            column: first.column,
            length: end - first.column,
            message: "6 fields need seconds: true (ductor has no year field)".to_owned(),
        }),
        (count @ 0..5, _) => {
            let missing: Vec<&str> = FIVE.iter().skip(count).map(|field| field.word()).collect();
            let fields = if count == 1 {
                "1 field is"
            } else {
                &format!("{count} fields are")
            };
            let wanted = if seconds {
                "five, or six with the second first"
            } else {
                "five"
            };
            Err(ScheduleError {
                field: missing.first().copied(),
                column: end,
                length: 0,
                message: format!("{}: {fields} too few; write {wanted}", missing.join(", ")),
            })
        }
        (count, _) => {
            let extra = words.get(if seconds { 6 } else { 5 }).unwrap_or(last);
            let wanted = if seconds {
                "six"
            } else {
                "five, or six with seconds: true"
            };
            Err(ScheduleError {
                field: None,
                column: extra.column,
                length: end - extra.column,
                message: format!("{count} fields are too many (ductor has no year field); write {wanted}"),
            })
        }
    }
}

fn read_field(
    field: Field,
    word: Piece<'_>,
    job_name: &str,
    remarks: &mut Remarks,
) -> Result<Reading, ScheduleError> {
    let mut reading = Reading::default();
    if field.is_day() && word.text == "?" {
        reading.open = true;
        let star = Piece {
            text: "*",
            column: word.column,
        };
        add_item(
            field,
            read_item(field, star, job_name)?,
            star,
            &mut reading,
            remarks,
        );
        return Ok(reading);
    }
    reading.open = word.text.starts_with('*');
    for piece in word.list() {
        let item = read_item(field, piece, job_name)?;
        add_item(field, item, piece, &mut reading, remarks);
    }
    Ok(reading)
}

fn add_item(field: Field, item: Item, piece: Piece<'_>, reading: &mut Reading, remarks: &mut Remarks) {
    let mut step_seen = None;
    match item {
        Item::Values(mask) => reading.add_mask(field, mask),
        Item::Star { mask, step } => {
            reading.add_mask(field, mask);
            reading.interval = true;
            step_seen = Some(step);
        }
        Item::Hashed { mask, step, whole } => {
            reading.add_mask(field, mask);
            reading.interval |= step.is_some();
            step_seen = step.filter(|_| whole);
            remarks.hashed.push((field, piece.text.to_owned(), mask));
        }
        Item::BeforeLast(days) => reading.month_days.before_last |= 1 << days,
        Item::LastWeekday => reading.month_days.last_weekday = true,
        Item::NearestWeekday(day) => reading.month_days.nearest_weekday |= 1 << day,
        Item::LastOfWeek(day) => reading.week_days.last |= 1 << day,
        Item::NthOfWeek { day, nth } => {
            for (_, mask) in (1..).zip(&mut reading.week_days.nth).filter(|(n, _)| *n == nth) {
                *mask |= 1 << day;
            }
        }
    }
    if let Some(step) = step_seen.filter(|step| field.span() % step != 0) {
        remarks.uneven.push((field, step));
    }
}

impl Reading {
    fn add_mask(&mut self, field: Field, mask: u64) {
        match field {
            Field::DayOfMonth => self.month_days.days |= mask,
            Field::DayOfWeek => self.week_days.days |= mask,
            Field::Second | Field::Minute | Field::Hour | Field::Month => self.mask |= mask,
        }
    }
}
