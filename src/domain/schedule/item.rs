//! One item of a field's list, as `5`, `mon-fri`, `*/15`, `H(0-29)/10`, `L-2` or `5#3`, and the pieces of
//! text it is cut into. A piece knows its column, so each error points at the smallest wrong part.

use super::error::ScheduleError;
use super::field::Field;
use super::hash::hashed_number;

/// A part of the schedule's text; `column` counts characters from 0.
#[derive(Clone, Copy, Debug)]
pub(super) struct Piece<'a> {
    pub(super) text: &'a str,
    pub(super) column: usize,
}

/// What an item means. Masks have a bit for each value of the field (Sunday is bit 0 only).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Item {
    Values(u64),
    /// `*` (step 1) or `*/n`.
    Star {
        mask: u64,
        step: i64,
    },
    /// `H`; `step` is set for `H/n` and `H(a-b)/n`, `whole` when no range was written.
    Hashed {
        mask: u64,
        step: Option<i64>,
        whole: bool,
    },
    BeforeLast(i64),
    LastWeekday,
    NearestWeekday(i64),
    LastOfWeek(i64),
    NthOfWeek {
        day: i64,
        nth: i64,
    },
}

impl<'a> Piece<'a> {
    /// The words of a text, cut at blanks.
    pub(super) fn words(text: &'a str) -> Vec<Piece<'a>> {
        let mut words = Vec::new();
        let mut begun: Option<(usize, usize)> = None;
        for (column, (byte, letter)) in text.char_indices().enumerate() {
            match (letter.is_ascii_whitespace(), begun) {
                (true, Some((start, column))) => {
                    words.push(Piece {
                        text: &text[start..byte],
                        column,
                    });
                    begun = None;
                }
                (false, None) => begun = Some((byte, column)),
                (true, None) | (false, Some(_)) => {}
            }
        }
        if let Some((start, column)) = begun {
            words.push(Piece {
                text: &text[start..],
                column,
            });
        }
        words
    }

    pub(super) fn length(self) -> usize {
        self.text.chars().count()
    }

    /// What follows a prefix that the caller has seen.
    fn after(self, prefix: &str) -> Piece<'a> {
        let text = self.text.get(prefix.len()..).unwrap_or_default();
        Piece {
            text,
            column: self.column + prefix.chars().count(),
        }
    }

    fn cut(self, at: char) -> Option<(Piece<'a>, Piece<'a>)> {
        let (head, tail) = self.text.split_once(at)?;
        let head = Piece {
            text: head,
            column: self.column,
        };
        Some((
            head,
            Piece {
                text: tail,
                column: head.column + head.length() + 1,
            },
        ))
    }

    pub(super) fn list(self) -> Vec<Piece<'a>> {
        let mut items = Vec::new();
        let mut rest = self;
        while let Some((head, tail)) = rest.cut(',') {
            items.push(head);
            rest = tail;
        }
        items.push(rest);
        items
    }

    pub(super) fn refuse(self, field: Field, why: &str) -> ScheduleError {
        ScheduleError {
            field: Some(field.word()),
            column: self.column,
            length: self.length(),
            message: format!("{}: {why}", field.word()),
        }
    }

    fn value(self, field: Field) -> Result<i64, ScheduleError> {
        field.value(self.text).map_err(|why| self.refuse(field, &why))
    }

    fn step(self, field: Field) -> Result<i64, ScheduleError> {
        if self.text.is_empty() {
            return Err(self.refuse(field, "a number is missing after '/', as in */5"));
        }
        if !self.text.bytes().all(|b| b.is_ascii_digit()) {
            let why = format!("the step '{}' is not a number; write it as in */5", self.text);
            return Err(self.refuse(field, &why));
        }
        match self.text.parse::<i64>() {
            Ok(0) => Err(self.refuse(field, "the step 0 stands still; the smallest is 1")),
            Ok(step) => Ok(step),
            Err(_) => Err(self.refuse(field, "the step is too large a number")),
        }
    }
}

/// Bits of every `step`-th value from `from` to `to`; a day-of-week counts modulo 7.
fn mask_of(field: Field, from: i64, to: i64, step: i64) -> u64 {
    let step = usize::try_from(step).unwrap_or(usize::MAX);
    let fold = |value: i64| {
        if field == Field::DayOfWeek {
            value % 7
        } else {
            value
        }
    };
    (from..=to)
        .step_by(step)
        .fold(0, |mask, value| mask | 1 << fold(value))
}

/// Reads one item. `job_name` is what `H` hashes.
pub(super) fn read_item(field: Field, item: Piece<'_>, job_name: &str) -> Result<Item, ScheduleError> {
    refuse_habits(field, item)?;
    if item.text.starts_with('*') {
        return read_star(field, item);
    }
    if item.text.starts_with(['H', 'h']) {
        return read_hashed(field, item, job_name);
    }
    let special = match field {
        Field::DayOfMonth => read_month_day_form(item)?,
        Field::DayOfWeek => read_week_day_form(item)?,
        Field::Second | Field::Minute | Field::Hour | Field::Month => None,
    };
    match special {
        Some(found) => Ok(found),
        None => read_values(field, item),
    }
}

/// Shapes that people bring along from elsewhere and that would otherwise get a puzzling answer.
fn refuse_habits(field: Field, item: Piece<'_>) -> Result<(), ScheduleError> {
    let text = item.text;
    if text.is_empty() {
        return Err(item.refuse(field, "an item of the list is empty; remove the extra comma"));
    }
    if text.starts_with('-') {
        return Err(item.refuse(field, "a leading '-' has no meaning here; remove it"));
    }
    if text.starts_with('+') {
        return Err(item.refuse(field, "a '+' may only stand before the whole day-of-week field"));
    }
    if let Some((from, to)) = text.split_once('~') {
        let why = format!("'~' is not supported; H({from}-{to}) gives the job its own fixed number");
        return Err(item.refuse(field, &why));
    }
    if text.starts_with('?') {
        let why = if field.is_day() {
            "'?' stands alone; use * in lists and before a step"
        } else {
            "'?' is only for the day fields; write *"
        };
        return Err(item.refuse(field, why));
    }
    Ok(())
}

fn read_star(field: Field, item: Piece<'_>) -> Result<Item, ScheduleError> {
    let rest = item.after("*");
    let step = if rest.text.is_empty() {
        1
    } else if rest.text.starts_with('/') {
        rest.after("/").step(field)?
    } else if rest.text.bytes().all(|b| b.is_ascii_digit()) {
        let why = format!("'{}' lacks a slash; write */{}", item.text, rest.text);
        return Err(item.refuse(field, &why));
    } else {
        let why = format!("'{}' is not understood; after * only /n may follow", item.text);
        return Err(item.refuse(field, &why));
    };
    Ok(Item::Star {
        mask: mask_of(field, field.lowest(), field.highest(), step),
        step,
    })
}

/// `a`, `a-b`, `a/n`, `a-b/n`.
fn read_values(field: Field, item: Piece<'_>) -> Result<Item, ScheduleError> {
    let (range, step) = match item.cut('/') {
        Some((range, step)) => (range, Some(step)),
        None => (item, None),
    };
    let (from, to) = match (range.cut('-'), step) {
        (Some((from, to)), _) => read_range(field, range, from, to)?,
        (None, None) => {
            let value = range.value(field)?;
            (value, value)
        }
        (None, Some(_)) => {
            let value = range.value(field)?;
            (value, value.max(field.highest()))
        }
    };
    let step = step.map_or(Ok(1), |step| step.step(field))?;
    Ok(Item::Values(mask_of(field, from, to, step)))
}

/// The ends of `a-b`; only days of the week may wrap, then the end is counted on past Saturday.
fn read_range(
    field: Field,
    range: Piece<'_>,
    from: Piece<'_>,
    to: Piece<'_>,
) -> Result<(i64, i64), ScheduleError> {
    let (mut from, to) = (from.value(field)?, to.value(field)?);
    if field == Field::DayOfWeek && from == 7 && to != 7 {
        from = 0;
    }
    if from <= to {
        return Ok((from, to));
    }
    if field == Field::DayOfWeek {
        return Ok((from, to + 7));
    }
    let (low, high) = (field.lowest(), field.highest());
    let why = format!(
        "the range {} runs backwards; write {from}-{high},{low}-{to} to wrap",
        range.text
    );
    Err(range.refuse(field, &why))
}

/// `H`, `H(a-b)`, `H/n`, `H(a-b)/n`. With a step the hashed number is where in the first step it begins.
fn read_hashed(field: Field, item: Piece<'_>, job_name: &str) -> Result<Item, ScheduleError> {
    let rest = item.after("H");
    let (span, step) = match rest.cut('/') {
        Some((span, step)) => (span, Some(step.step(field)?)),
        None => (rest, None),
    };
    let inside = span
        .text
        .strip_prefix('(')
        .and_then(|text| text.strip_suffix(')'));
    let (from, to) = match inside {
        None if span.text.is_empty() => (field.lowest(), field.highest()),
        None => {
            let why = format!(
                "'{}' is not understood; write H, H(a-b), H/n or H(a-b)/n",
                item.text
            );
            return Err(item.refuse(field, &why));
        }
        Some(text) => {
            let range = Piece {
                text,
                column: span.column + 1,
            };
            let Some((from, to)) = range.cut('-') else {
                return Err(range.refuse(field, "H( ) needs a range, as in H(0-29)"));
            };
            read_range(field, range, from, to)?
        }
    };
    let width = to - from + 1;
    let first = from + hashed_number(job_name, field, step.map_or(width, |step| step.min(width)));
    let last = if step.is_some() { to } else { first };
    let mask = mask_of(field, first, last, step.unwrap_or(1));
    Ok(Item::Hashed {
        mask,
        step,
        whole: inside.is_none(),
    })
}

/// `L`, `L-n`, `LW`, `nW`.
fn read_month_day_form(item: Piece<'_>) -> Result<Option<Item>, ScheduleError> {
    let field = Field::DayOfMonth;
    let upper = item.text.to_ascii_uppercase();
    if let Some(rest) = upper.strip_prefix('L') {
        let before = rest.strip_prefix('-').and_then(|n| n.parse::<i64>().ok());
        return match (rest, before) {
            ("", _) => Ok(Some(Item::BeforeLast(0))),
            ("W", _) => Ok(Some(Item::LastWeekday)),
            (_, Some(before @ 0..=30)) => Ok(Some(Item::BeforeLast(before))),
            _ => {
                let why = format!("'{}' is not understood; write L, L-1 to L-30, or LW", item.text);
                Err(item.refuse(field, &why))
            }
        };
    }
    let Some(day) = upper.strip_suffix('W') else {
        return Ok(None);
    };
    if day.is_empty() {
        return Err(item.refuse(
            field,
            "a day is missing before W, as in 15W; LW is the last weekday",
        ));
    }
    let day = Piece {
        text: item.text.get(..day.len()).unwrap_or_default(),
        column: item.column,
    };
    Ok(Some(Item::NearestWeekday(day.value(field)?)))
}

/// `5L`, `5#3`, also with names.
fn read_week_day_form(item: Piece<'_>) -> Result<Option<Item>, ScheduleError> {
    let field = Field::DayOfWeek;
    if let Some((day, nth)) = item.cut('#') {
        let day = day.value(field)? % 7;
        if let Ok(nth @ 1..=5) = nth.text.parse::<i64>() {
            return Ok(Some(Item::NthOfWeek { day, nth }));
        }
        let why = format!("'#{}' is not understood; write #1 to #5, as in 5#3", nth.text);
        return Err(nth.refuse(field, &why));
    }
    let Some(day) = item.text.strip_suffix(['L', 'l']) else {
        return Ok(None);
    };
    if day.is_empty() {
        let why = "L alone is for day-of-month; write 5L for the last Friday, 6 for Saturdays";
        return Err(item.refuse(field, why));
    }
    let day = Piece {
        text: day,
        column: item.column,
    };
    Ok(Some(Item::LastOfWeek(day.value(field)? % 7)))
}
