//! The one error of this module: where in the text, and a sentence that says what to write instead.

use std::fmt;

/// Why a schedule was refused. `column` and `length` count characters of the text given to
/// `Schedule::parse`, from 0; `length` is 0 when something is missing at that place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleError {
    /// `second`, `minute`, `hour`, `day-of-month`, `month`, `day-of-week`, or `timezone` when the zone is
    /// at fault and not the text; `None` when no single field is.
    pub field: Option<&'static str>,
    pub column: usize,
    pub length: usize,
    /// A sentence of its own, with the field's name in front where there is one.
    pub message: String,
}

impl fmt::Display for ScheduleError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ScheduleError {}
