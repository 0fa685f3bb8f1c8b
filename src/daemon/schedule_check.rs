//! Lets the configuration judge schedules without knowing them.

use crate::config::{ScheduleCheck, ScheduleFault};
use crate::domain::schedule::{ParseOptions, Schedule};
use crate::os::zone::HostZone;

/// The product's schedules, as the configuration sees them.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Schedules;

impl ScheduleCheck for Schedules {
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
        let options = ParseOptions {
            seconds: false,
            day_match: None,
            timezone: Some(timezone),
            job_name: "",
        };
        Schedule::parse("@daily", options).is_ok()
    }

    fn host_zone(&self) -> Result<HostZone, String> {
        crate::os::zone::host_zone()
    }

    fn looks_like_field(&self, word: &str) -> bool {
        crate::domain::schedule::looks_like_field(word)
    }
}
