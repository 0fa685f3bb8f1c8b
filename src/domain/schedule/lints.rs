//! Findings about a schedule that is well formed and still may not do what its author expects (the table
//! at the end of section 11). Pure: "the next 400 days" begin at the `now_ms` given.

use std::fmt;

use super::calendar::{DAY_S, HOUR_S, MINUTE_S, Month, date_of};
use super::day::DayRule;
use super::describe::ranges;
use super::duration::words;
use super::field::Field;
use super::instants::CronTimes;
use super::whole::Schedule;
use super::zone::{Change, Stretch};

/// How far ahead gaps and folds are looked for.
const DST_AHEAD_S: i64 = 400 * DAY_S;
/// A schedule without an instant for so long has none worth waiting for.
const NEVER_AFTER_MS: i64 = (30 * 365 + 8) * DAY_S * 1_000;
/// Fires looked at to find the shortest distance between two.
const PERIOD_SAMPLE: usize = 200;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LintLevel {
    Note,
    Warning,
    Error,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum LintCode {
    NeverFires,
    DstSkipped,
    DstDoubled,
    UnevenStep,
    SkippedMonths,
    LeapDayOnly,
    DayOr,
    HashedSlot,
    OverlapLikely,
}

impl LintCode {
    pub fn as_str(self) -> &'static str {
        match self {
            LintCode::NeverFires => "never-fires",
            LintCode::DstSkipped => "dst-skipped",
            LintCode::DstDoubled => "dst-doubled",
            LintCode::UnevenStep => "uneven-step",
            LintCode::SkippedMonths => "skipped-months",
            LintCode::LeapDayOnly => "leap-day-only",
            LintCode::DayOr => "day-or",
            LintCode::HashedSlot => "hashed-slot",
            LintCode::OverlapLikely => "overlap-likely",
        }
    }

    /// The level in `ductor check`. A load shows `never-fires` as a warning instead.
    pub fn level(self) -> LintLevel {
        match self {
            LintCode::NeverFires => LintLevel::Error,
            LintCode::DstDoubled | LintCode::HashedSlot => LintLevel::Note,
            LintCode::DstSkipped
            | LintCode::UnevenStep
            | LintCode::SkippedMonths
            | LintCode::LeapDayOnly
            | LintCode::DayOr
            | LintCode::OverlapLikely => LintLevel::Warning,
        }
    }
}

impl fmt::Display for LintCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lint {
    pub code: LintCode,
    pub level: LintLevel,
    pub message: String,
}

fn lint(code: LintCode, message: String) -> Lint {
    Lint {
        code,
        level: code.level(),
        message,
    }
}

/// All findings, in the order of the table. `p90_ms` is the p90 of the last 50 runs, given only for a job
/// with `concurrencyPolicy: Allow`.
pub fn lints(schedule: &Schedule, now_ms: i64, p90_ms: Option<u64>) -> Vec<Lint> {
    let mut found = Vec::new();
    if let Some(times) = schedule.cron() {
        let never = never_fires(schedule, now_ms);
        let fires = never.is_none();
        found.extend(never);
        if fires {
            found.extend(dst_lints(times, now_ms.div_euclid(1_000)));
        }
        found.extend(uneven_steps(schedule));
        if fires {
            found.extend(missing_months(times, now_ms.div_euclid(1_000)));
        }
        if schedule.remarks().day_rule_unchosen {
            found.push(lint(
                LintCode::DayOr,
                "day-of-month and day-of-week are both set, so either is enough; say dayMatch: or, or \
                 dayMatch: and (a + before day-of-week) for both"
                    .to_owned(),
            ));
        }
        found.extend(hashed_slots(schedule));
    }
    found.extend(p90_ms.and_then(|p90_ms| overlap_likely(schedule, now_ms, p90_ms)));
    found
}

fn date_text(local: i64) -> String {
    let date = date_of(local.div_euclid(DAY_S));
    format!("{:04}-{:02}-{:02}", date.year, date.month, date.day)
}

fn time_text(local: i64) -> String {
    let second = local.rem_euclid(DAY_S);
    let text = format!("{:02}:{:02}", second / HOUR_S, second % HOUR_S / MINUTE_S);
    if second % MINUTE_S == 0 {
        text
    } else {
        format!("{text}:{:02}", second % MINUTE_S)
    }
}

fn never_fires(schedule: &Schedule, now_ms: i64) -> Option<Lint> {
    let next = schedule.next_after(now_ms);
    if next.is_some_and(|next| next <= now_ms.saturating_add(NEVER_AFTER_MS)) {
        return None;
    }
    let local = |next: i64| {
        let utc = next.div_euclid(1_000);
        utc + schedule
            .cron()
            .and_then(|times| times.zone.offset(utc))
            .unwrap_or(0)
    };
    let then = next.map_or(String::new(), |next| {
        format!("; the first is {}", date_text(local(next)))
    });
    Some(lint(
        LintCode::NeverFires,
        format!(
            "'{}' names no instant in the next 30 years{then}",
            schedule.text()
        ),
    ))
}

fn dst_lints(times: &CronTimes, now_s: i64) -> Vec<Lint> {
    let mut found = Vec::new();
    let mut at = now_s;
    while let Some(stretch) = times.zone.stretch(at) {
        let Some(change) = stretch.change.filter(|change| change.at <= now_s + DST_AHEAD_S) else {
            break;
        };
        let (before, after) = (change.at + stretch.offset, change.at + change.offset);
        if before < after {
            found.extend(gap_lint(times, stretch, change));
        } else if times.pattern.interval {
            let doubled = times.pattern.count_local(after, before);
            if doubled > 0 {
                found.push(lint(
                    LintCode::DstDoubled,
                    format!(
                        "{} in {}: the time from {} to {} comes twice, and {doubled} local {} with it",
                        date_text(after),
                        times.zone.name(),
                        time_text(after),
                        time_text(before),
                        if doubled == 1 { "fire" } else { "fires" },
                    ),
                ));
            }
        }
        at = change.at;
    }
    found
}

fn gap_lint(times: &CronTimes, stretch: Stretch, change: Change) -> Option<Lint> {
    let (before, after) = (change.at + stretch.offset, change.at + change.offset);
    let first = times.pattern.next_local(before, after - 1)?;
    if times.pattern.interval && keeps_its_pace(times, after - before) {
        return None;
    }
    let count = times.pattern.count_local(before, after);
    let more = if count > 1 {
        format!(" and {} more", count - 1)
    } else {
        String::new()
    };
    let outcome = if times.pattern.interval {
        "not run".to_owned()
    } else if date_text(first) == date_text(after) {
        format!("moved to {}", time_text(after))
    } else {
        format!("moved to {} on {}", time_text(after), date_text(after))
    };
    let (verb, zone) = (if count > 1 { "do" } else { "does" }, times.zone.name());
    Some(lint(
        LintCode::DstSkipped,
        format!(
            "{} in {zone}: {}{more} {verb} not exist, {outcome}",
            date_text(first),
            time_text(first)
        ),
    ))
}

/// A schedule that is the same in each hour loses nothing when whole hours are left out.
fn keeps_its_pace(times: &CronTimes, gap_s: i64) -> bool {
    gap_s % HOUR_S == 0 && gap_s < DAY_S && i64::from(times.pattern.hours.count_ones()) == Field::Hour.span()
}

fn uneven_steps(schedule: &Schedule) -> Vec<Lint> {
    let uneven = schedule.remarks().uneven.iter();
    uneven
        .map(|(field, step)| {
            let why = if *step > field.span() {
                "leaves one value of the field".to_owned()
            } else {
                format!("does not divide {}, so the last step is shorter", field.span())
            };
            lint(
                LintCode::UnevenStep,
                format!("{}: a step of {step} {why}", field.word()),
            )
        })
        .collect()
}

/// Months of the schedule that have none of its days, in some or all of the next eight years (a leap
/// year is always among them).
fn missing_months(times: &CronTimes, now_s: i64) -> Option<Lint> {
    let days = &times.pattern.days;
    if days.rule == DayRule::Or {
        return None;
    }
    let mut left_out = 0_u64;
    let mut leap_days = 0;
    let mut other_days = 0;
    let (mut month, _) = Month::of(now_s.div_euclid(DAY_S));
    for _ in 0..=12 * 8 {
        if days.months >> month.number & 1 == 1 {
            let found = days.month_days.matching(month);
            let leap = month.number == 2 && found == 1 << 29;
            leap_days += i64::from(leap);
            other_days += i64::from(found != 0 && !leap);
            left_out |= u64::from(found == 0) << month.number;
        }
        month = month.next();
    }
    if leap_days > 0 && other_days == 0 {
        let message = "29 February comes in leap years only".to_owned();
        return Some(lint(LintCode::LeapDayOnly, message));
    }
    if left_out == 0 {
        return None;
    }
    let always = if left_out == 1 << 2 && leap_days > 0 {
        " (but for leap years)"
    } else {
        ""
    };
    let months = ranges(Field::Month, left_out);
    let message = format!("no such day-of-month in {months}{always}; L is the last day of each month");
    Some(lint(LintCode::SkippedMonths, message))
}

fn hashed_slots(schedule: &Schedule) -> Vec<Lint> {
    let hashed = schedule.remarks().hashed.iter();
    hashed
        .map(|(field, written, mask)| {
            let values = ranges(*field, *mask);
            lint(
                LintCode::HashedSlot,
                format!("{}: {written} stands for {values}", field.word()),
            )
        })
        .collect()
}

fn overlap_likely(schedule: &Schedule, now_ms: i64, p90_ms: u64) -> Option<Lint> {
    let fires = schedule.instants(now_ms, i64::MAX, PERIOD_SAMPLE);
    let shortest = fires.windows(2).map(|pair| pair[1] - pair[0]).min()?;
    if u64::try_from(shortest).is_ok_and(|shortest| shortest >= p90_ms) {
        return None;
    }
    let period = words(shortest / 1_000);
    let message = format!(
        "fires come {period} apart, and one run in ten takes longer than {}.{} s; runs will overlap \
         (concurrencyPolicy: Allow)",
        p90_ms / 1_000,
        p90_ms % 1_000 / 100,
    );
    Some(lint(LintCode::OverlapLikely, message))
}
