//! Exit codes, one meaning each.

use std::process::ExitCode;

/// How a command ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Exit {
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
    /// Ctrl-C.
    Interrupted,
    /// The command's own code.
    Own(u8),
}

impl Exit {
    /// The number that the shell sees.
    pub(super) fn code(self) -> u8 {
        match self {
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
            Exit::Interrupted => 130,
            Exit::Own(code) => code,
        }
    }

    /// What a refusal with this HTTP status means to a script.
    pub(super) fn of_status(status: u16) -> Exit {
        match status {
            401 | 403 | 421 => Exit::NotAllowed,
            404 => Exit::NotFound,
            409 | 412 => Exit::Conflict,
            429 | 503 | 504 => Exit::Later,
            501 => Exit::Usage,
            500.. => Exit::Defect,
            _ => Exit::Usage,
        }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> ExitCode {
        ExitCode::from(exit.code())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_has_one_exit_code() {
        let table = [
            (400, 2),
            (401, 4),
            (403, 4),
            (404, 3),
            (405, 2),
            (409, 5),
            (412, 5),
            (413, 2),
            (415, 2),
            (421, 4),
            (422, 2),
            (429, 6),
            (500, 70),
            (501, 2),
            (502, 70),
            (503, 6),
            (504, 6),
        ];
        for (status, code) in table {
            assert_eq!(Exit::of_status(status).code(), code, "{status}");
        }
    }
}
