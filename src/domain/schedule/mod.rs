//! Schedules: the dialect (cron fields, nicknames, `@every`, `@reboot`), the instants it names in a
//! time zone, words for people, and lints. Section 11 of `slot-pools-and-jobs.md` is the law here.
//!
//! Everything is a pure function of its arguments: no clock, no chance, no files. The zone data is the
//! copy inside the binary, so two daemons with one binary agree on every instant.
//!
//! How a fire is found. The time line of a zone is a row of *stretches*, each with one offset. Inside a
//! stretch local time is plain arithmetic, so `pattern` searches local seconds by months, days, hours,
//! and never by stepping. `instants` walks the stretches and is the only place that knows what happens
//! between two of them (gap and fold). `@every` needs no zone at all.
//!
//! Not here: which job owns a schedule, whether a fire becomes a run, pauses, deadlines.

mod calendar;
mod day;
mod describe;
mod duration;
mod error;
mod expression;
mod field;
mod hash;
mod instants;
mod item;
mod lints;
mod pattern;
mod preview;
mod wall;
mod whole;
mod zone;

#[cfg(test)]
mod tests;

pub use day::DayRule;
pub use error::ScheduleError;
pub use lints::{Lint, LintCode, LintLevel, lints};
pub use preview::{Preview, PreviewFire, PreviewLint, preview};
pub use wall::{MOMENT_FORMS, Moment, Turn, ZoneClock};
pub use whole::{DayMatch, Missed, ParseOptions, Schedule, looks_like_field};
