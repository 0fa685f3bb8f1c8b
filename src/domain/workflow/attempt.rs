//! Attempts: one execution of a step each, written once when it has ended; and the judgement of how it ended.

use serde::{Deserialize, Serialize};

use super::definition::FailsWhen;
use crate::words::names::NodeName;
use crate::words::time::Millis;

/// An ended execution. Its key is (run, step, number, fence); nothing overwrites it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Attempt {
    /// How it ended.
    pub outcome: Outcome,
    /// 0..255 of the process, -N for signal N, -100 for a timeout, 127 if it could not start, 125 if its gate closed.
    pub exit_code: Option<i32>,
    /// Why, in a sentence.
    pub reason: Option<String>,
    /// Where it ran.
    pub node: NodeName,
    /// Its process; `None` if there was none.
    pub pid: Option<u32>,
    /// When its gate opened, or when it was claimed if it never did.
    pub started_at: Millis,
    /// When it ended.
    pub ended_at: Millis,
    /// Bytes of its log.
    pub log_bytes: u64,
}

/// How an attempt ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// The command and its `verify` agreed.
    Succeeded,
    /// The command, or its `verify`, failed.
    Failed,
    /// Ended on request.
    Cancelled,
    /// Ended by its own time limit.
    TimedOut,
    /// Its daemon died, stopped, or lost the lease; neither a failure nor a use of the retry budget.
    Lost,
}

impl Outcome {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Succeeded => "succeeded",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
            Outcome::TimedOut => "timed_out",
            Outcome::Lost => "lost",
        }
    }
}

/// The exit code of a timeout.
pub const CODE_TIMEOUT: i32 = -100;
/// The exit code of a command that could not be started.
pub const CODE_NOT_STARTED: i32 = 127;

/// What is known when the command has ended by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CommandEnd {
    /// Its code, -N for signal N.
    pub code: i32,
    /// It wrote to standard output.
    pub wrote_stdout: bool,
    /// It wrote to standard error.
    pub wrote_stderr: bool,
}

/// The sentence of the failure, or `None` for a success. Judged in the order always, code, stdout, stderr.
pub fn failure_of(rules: FailsWhen, end: CommandEnd) -> Option<String> {
    if rules.always {
        return Some("failsWhen.always is set".to_owned());
    }
    if rules.nonzero_return && end.code != 0 {
        return Some(code_sentence(end.code));
    }
    if rules.produces_stdout && end.wrote_stdout {
        return Some("the command wrote to standard output".to_owned());
    }
    if rules.produces_stderr && end.wrote_stderr {
        return Some("the command wrote to standard error".to_owned());
    }
    None
}

/// A code in words.
pub fn code_sentence(code: i32) -> String {
    if code < 0 {
        format!("ended by signal {}", code.unsigned_abs())
    } else {
        format!("exit code {code}")
    }
}

/// How the sentence of a command begins that took too long.
const TIMEOUT_HEAD: &str = "execution timeout of ";

/// The sentence of a command that took longer than `limit`.
pub fn timeout_sentence(limit: impl std::fmt::Display) -> String {
    format!("{TIMEOUT_HEAD}{limit} s")
}

/// True for a reason that [`timeout_sentence`] made, or the bare word of the outcome.
pub fn is_timeout(reason: &str) -> bool {
    reason.starts_with(TIMEOUT_HEAD) || reason == Outcome::TimedOut.word()
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: FailsWhen = FailsWhen {
        nonzero_return: true,
        produces_stdout: false,
        produces_stderr: false,
        always: false,
    };

    #[test]
    fn a_timeout_is_known_by_its_sentence() {
        assert_eq!(timeout_sentence(1.5), "execution timeout of 1.5 s");
        assert!(is_timeout(&timeout_sentence(7)) && !is_timeout("exit code 1"));
    }

    #[test]
    fn stderr_does_not_fail() {
        let end = CommandEnd {
            code: 0,
            wrote_stdout: true,
            wrote_stderr: true,
        };
        assert_eq!(failure_of(DEFAULT, end), None);
        let strict = FailsWhen {
            produces_stderr: true,
            ..DEFAULT
        };
        assert_eq!(
            failure_of(strict, end).unwrap(),
            "the command wrote to standard error"
        );
    }

    #[test]
    fn failures_are_judged_in_order() {
        let end = CommandEnd {
            code: 3,
            wrote_stdout: true,
            wrote_stderr: false,
        };
        assert_eq!(failure_of(DEFAULT, end).unwrap(), "exit code 3");
        assert_eq!(
            failure_of(DEFAULT, CommandEnd { code: -9, ..end }).unwrap(),
            "ended by signal 9"
        );
        let lenient = FailsWhen {
            nonzero_return: false,
            produces_stdout: true,
            ..DEFAULT
        };
        assert_eq!(
            failure_of(lenient, end).unwrap(),
            "the command wrote to standard output"
        );
        let always = FailsWhen {
            always: true,
            ..DEFAULT
        };
        assert!(
            failure_of(
                always,
                CommandEnd {
                    code: 0,
                    wrote_stdout: false,
                    wrote_stderr: false
                }
            )
            .is_some()
        );
    }
}
