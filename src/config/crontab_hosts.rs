//! What tests of whole files need of the rest of the product: its schedules, and a host in a zone that they choose.

use super::{JobConfig, ScheduleCheck, ScheduleFault};
use crate::domain::schedule::{DayMatch, ParseOptions, Schedule, looks_like_field};
use crate::os::zone::HostZone;

/// The product's own schedules, on a host in one zone.
pub(super) struct Host(pub(super) &'static str);

impl ScheduleCheck for Host {
    fn check(
        &self,
        job_name: &str,
        text: &str,
        seconds: bool,
        timezone: Option<&str>,
    ) -> Result<(), ScheduleFault> {
        let options = ParseOptions {
            seconds,
            day_match: None,
            timezone,
            job_name,
        };
        match Schedule::parse(text, options) {
            Ok(_) => Ok(()),
            Err(error) => Err(ScheduleFault {
                message: error.message,
                column: Some(error.column),
                length: error.length,
            }),
        }
    }

    fn knows_zone(&self, timezone: &str) -> bool {
        self.check("", "@daily", false, Some(timezone)).is_ok()
    }

    fn host_zone(&self) -> Result<HostZone, String> {
        if self.0.is_empty() {
            return Err("it has none".to_owned());
        }
        Ok(HostZone {
            name: self.0.to_owned(),
            from: "TZ",
        })
    }

    fn looks_like_field(&self, word: &str) -> bool {
        looks_like_field(word)
    }
}

/// As the daemon reads it.
pub(super) fn schedule_of(job: &JobConfig) -> Schedule {
    let options = ParseOptions {
        day_match: job.day_match.map(|choice| match choice {
            super::DayMatch::Or => DayMatch::Or,
            super::DayMatch::And => DayMatch::And,
        }),
        timezone: job.timezone.as_deref(),
        job_name: &job.name,
        seconds: job.seconds,
    };
    Schedule::parse(&job.schedule.as_ref().unwrap().text, options).unwrap()
}
