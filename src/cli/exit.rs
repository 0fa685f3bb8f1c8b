//! Exit codes, one meaning each.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// Done.
    Done,
    /// Negative outcome: a run failed, a check found something, it could not start.
    Negative,
    /// Wrong usage or invalid configuration.
    Usage,
    /// Not found.
    NotFound,
    /// Not authenticated or not allowed.
    NotAllowed,
    /// Refused by state.
    Conflict,
    /// Try again later.
    Later,
    /// No daemon at that address.
    Unreachable,
    /// A defect in ductor.
    Defect,
    /// `--wait` timed out.
    TimedOut,
    /// The command's own code.
    Own(u8),
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(match exit {
            Exit::Done => 0,
            Exit::Negative => 1,
            Exit::Usage => 2,
            Exit::NotFound => 3,
            Exit::NotAllowed => 4,
            Exit::Conflict => 5,
            Exit::Later => 6,
            Exit::Unreachable => 69,
            Exit::Defect => 70,
            Exit::TimedOut => 124,
            Exit::Own(code) => code,
        })
    }
}
