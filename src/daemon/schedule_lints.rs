//! Schedules that are well formed and may still not do what their author expects, as findings about the configuration.

use super::book::{self, Scheduled};
use crate::config::{Config, Fault, Severity};
use crate::domain::schedule::{LintCode, LintLevel, lints};
use crate::words::time::Millis;

/// All findings, with the levels that `ductor check` gives them.
pub(super) fn in_check(config: &Config, now: Millis) -> Vec<Fault> {
    let enabled = book::scheduled(config).filter(|one| one.enabled());
    enabled.flat_map(|one| of_one(one, now)).collect()
}

/// What a start or a reload says: only that a schedule never fires, and that as a warning.
pub(super) fn at_load(config: &Config, now: Millis) -> Vec<Fault> {
    let silent = book::scheduled(config).filter(|one| one.enabled() && never_fires(*one, now));
    silent
        .flat_map(|one| of_one(one, now))
        .filter(|fault| fault.code == code_of(LintCode::NeverFires))
        .map(|fault| Fault {
            severity: Severity::Warning,
            ..fault
        })
        .collect()
}

/// The dear findings are not looked for where the cheap question is answered.
fn never_fires(one: Scheduled<'_>, now: Millis) -> bool {
    one.schedule()
        .is_some_and(|schedule| !schedule.is_reboot() && schedule.next_after(now.0).is_none())
}

fn of_one(one: Scheduled<'_>, now: Millis) -> Vec<Fault> {
    let (Some(text), Some(schedule)) = (one.text(), one.schedule()) else {
        return Vec::new();
    };
    let found = lints(&schedule, now.0, None).into_iter();
    found
        .map(|lint| {
            let message = format!("{} '{}': schedule: {}", one.word(), one.name(), lint.message);
            let fault = Fault::warning(code_of(lint.code), &text.at, message);
            Fault {
                severity: match lint.level {
                    LintLevel::Note => Severity::Note,
                    LintLevel::Warning => Severity::Warning,
                    LintLevel::Error => Severity::Error,
                },
                ..fault
            }
        })
        .collect()
}

fn code_of(code: LintCode) -> &'static str {
    match code {
        LintCode::NeverFires => "lint/never-fires",
        LintCode::DstSkipped => "lint/dst-skipped",
        LintCode::DstDoubled => "lint/dst-doubled",
        LintCode::UnevenStep => "lint/uneven-step",
        LintCode::SkippedMonths => "lint/skipped-months",
        LintCode::LeapDayOnly => "lint/leap-day-only",
        LintCode::DayOr => "lint/day-or",
        LintCode::HashedSlot => "lint/hashed-slot",
        LintCode::OverlapLikely => "lint/overlap-likely",
    }
}
