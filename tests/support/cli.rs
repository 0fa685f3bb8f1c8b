//! One run of the binary as a person at a terminal would start it.

use std::ffi::OsStr;
use std::io::Write;
use std::process::{Command, Stdio};

use serde_json::Value;

/// What a finished command said.
#[derive(Debug, Clone)]
pub(crate) struct Answered {
    /// The exit code; -1 if a signal ended it.
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Answered {
    /// Standard output as one JSON document (`--json`).
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("not JSON: {error}: {self:?}"))
    }

    /// Itself, after a check of the exit code that shows both streams when it fails.
    #[track_caller]
    pub(crate) fn expect_status(self, status: i32) -> Answered {
        assert_eq!(
            self.status, status,
            "stdout:\n{}\nstderr:\n{}",
            self.stdout, self.stderr
        );
        self
    }
}

/// The binary under test with every `DUCTOR_*` variable of the test's own environment taken away.
pub(crate) fn command() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_ductor"));
    let inherited = std::env::vars_os().map(|(name, _)| name);
    for name in inherited.filter(|name| name.to_string_lossy().starts_with("DUCTOR_")) {
        command.env_remove(name);
    }
    command.env("NO_COLOR", "1");
    command
}

/// Runs the binary to its end without standard input.
pub(crate) fn ductor(arguments: &[impl AsRef<OsStr>]) -> Answered {
    ductor_with_input(arguments, "")
}

/// Runs the binary to its end; `input` should fit in a pipe if the command reads it late.
pub(crate) fn ductor_with_input(arguments: &[impl AsRef<OsStr>], input: &str) -> Answered {
    let mut command = command();
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = command.spawn().expect("start the binary");
    if let Some(mut stdin) = child.stdin.take() {
        // A command that does not read its input closes the pipe: no fault.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child.wait_with_output().expect("wait for the binary");
    Answered {
        status: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}
