//! What a schedule will do, for people: words, the next fires on two clocks, and findings. The shape of the answer of
//! the API, so that the command line can give the same one without a daemon.

use serde::Serialize;

use super::lints::{LintLevel, lints};
use super::wall::ZoneClock;
use super::whole::Schedule;
use crate::words::time::Millis;

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Preview {
    /// As it was written.
    pub expression: String,
    /// In words, without the zone.
    pub description: String,
    /// Its own zone.
    pub timezone: String,
    /// What chose the zone, where a crontab did not name it itself; the caller knows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone_from: Option<String>,
    /// The zone of `second`.
    pub second_timezone: String,
    /// The next fires.
    pub next: Vec<PreviewFire>,
    /// What may surprise.
    pub lints: Vec<PreviewLint>,
}

/// One fire on three clocks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewFire {
    /// UTC, RFC 3339.
    pub instant: String,
    /// In the schedule's zone, with the offset.
    pub local: String,
    /// In the other zone, with the offset.
    pub second: String,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PreviewLint {
    /// The stable word.
    pub code: &'static str,
    /// `note`, `warning` or `error`.
    pub level: &'static str,
    /// A sentence.
    pub message: String,
}

/// The next `count` fires after `from_ms`, with everything that is to be said about the schedule at that time.
pub fn preview(
    schedule: &Schedule,
    second: &ZoneClock,
    from_ms: i64,
    count: usize,
    p90_ms: Option<u64>,
) -> Preview {
    let clock = schedule.clock();
    let fire = |instant: i64| {
        Some(PreviewFire {
            instant: Millis(instant).to_string(),
            local: clock.local_time(instant)?,
            second: second.local_time(instant)?,
        })
    };
    let found = lints(schedule, from_ms, p90_ms).into_iter();
    Preview {
        timezone_from: None,
        expression: schedule.text().to_owned(),
        description: schedule.describe(),
        timezone: schedule.timezone().to_owned(),
        second_timezone: second.name().to_owned(),
        next: schedule
            .instants(from_ms, i64::MAX, count)
            .into_iter()
            .filter_map(fire)
            .collect(),
        lints: found
            .map(|lint| PreviewLint {
                code: lint.code.as_str(),
                level: match lint.level {
                    LintLevel::Note => "note",
                    LintLevel::Warning => "warning",
                    LintLevel::Error => "error",
                },
                message: lint.message,
            })
            .collect(),
    }
}
