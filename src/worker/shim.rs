//! `ductor __exec`: the process that waits for a launch message and becomes the command.
//!
//! Dispatched in `main` before anything else: one thread, no runtime, no configuration, no allocation worth a word, because
//! some of these wait idle. Its pid and start time survive the `exec`, which is the point of it. It makes no decisions; the
//! other end is `process::Shim`.

use std::convert::Infallible;
use std::fs::File;
use std::hint::black_box;
use std::io::{self, Write};
use std::os::unix::process::CommandExt;
use std::process::{Command, ExitCode};

use super::process::{LaunchSpec, Program, Refused, read_message};
use crate::os::rlimits::{self, Limit};
use crate::os::{fd, user};

/// Exit code of a shim that got no message: the gate was closed, nothing has run.
const GATE_CLOSED: u8 = 125;
/// Exit code when the command could not be started.
const NOT_STARTED: u8 = 127;

/// Whole life of a shim. Standard input must be one end of a socket pair.
pub fn run() -> ExitCode {
    // Closed by the exec: end of stream tells the daemon that the command runs.
    let Ok(socket) = fd::duplicate_above_stdio(io::stdin()) else {
        return ExitCode::from(GATE_CLOSED);
    };
    let mut socket = File::from(socket);
    let error = match read_message(&mut socket) {
        Ok(Some(spec)) => {
            let Err(error) = become_command(&spec);
            error
        }
        Ok(None) => return ExitCode::from(GATE_CLOSED),
        Err(error) => format!("cannot read the launch message: {error}"),
    };
    let refused = Refused {
        error,
        code: i32::from(NOT_STARTED),
    };
    if let Ok(text) = serde_json::to_vec(&refused) {
        // Without a reader the exit code says it too.
        let _unread = socket.write_all(&text);
    }
    ExitCode::from(NOT_STARTED)
}

/// Returns only the sentence why not.
fn become_command(spec: &LaunchSpec) -> Result<Infallible, String> {
    let (mut command, name) = prepare(spec)?;
    match &spec.input {
        None => fd::null_to_stdin(),
        Some(text) => fd::text_to_stdin(text),
    }
    .map_err(|error| format!("cannot prepare standard input: {error}"))?;
    if spec.limits.iter().any(|(limit, _)| *limit == Limit::Memory) {
        reserve_heap(spec);
    }
    for &(limit, value) in &spec.limits {
        rlimits::set(limit, value)
            .map_err(|error| format!("cannot set resource limit {limit} to {value}: {error}"))?;
    }
    if let Some(folder) = &spec.cwd {
        #[expect(
            clippy::disallowed_methods,
            reason = "this process has one thread and is about to become the command"
        )]
        let entered = std::env::set_current_dir(folder);
        entered.map_err(|error| format!("cannot enter working directory '{}': {error}", folder.display()))?;
    }
    user::become_user(&spec.credentials).map_err(|error| {
        let wanted = &spec.credentials;
        format!(
            "cannot become user {} group {}: {error}",
            or_same(wanted.uid),
            or_same(wanted.gid)
        )
    })?;
    let error = command.exec();
    Err(format!("cannot execute '{name}': {error}"))
}

/// The command with its exact environment, and its name for messages.
fn prepare(spec: &LaunchSpec) -> Result<(Command, String), String> {
    let (mut command, name) = match &spec.program {
        Program::Shell { shell, script } => {
            let mut command = Command::new(shell);
            command.arg("-c").arg(script);
            (command, shell.display().to_string())
        }
        Program::List(words) => {
            let Some((program, arguments)) = words.split_first().filter(|(program, _)| !program.is_empty())
            else {
                return Err("command is empty".to_owned());
            };
            let mut command = Command::new(program);
            command.args(arguments);
            (command, program.clone())
        }
    };
    command.env_clear();
    for (key, value) in &spec.env {
        if key.is_empty() || key.contains(['=', '\0']) || value.contains('\0') {
            return Err(format!("environment key '{}' is invalid", key.escape_default()));
        }
        command.env(key, value);
    }
    Ok((command, name))
}

fn or_same(id: Option<u32>) -> String {
    id.map_or_else(|| "as before".to_owned(), |id| id.to_string())
}

/// A limit on memory applies from the moment it is set, and the exec still has to copy the environment. This leaves
/// enough free room inside the heap: blocks below the size that is mapped apart, then one that keeps the heap's end up.
fn reserve_heap(spec: &LaunchSpec) {
    const BLOCK: usize = 64 * 1024;
    let environment: usize = spec
        .env
        .iter()
        .map(|(key, value)| key.len() + value.len() + 128)
        .sum();
    let blocks = (3 * environment) / BLOCK + 4;
    let reserve: Vec<Vec<u8>> = (0..blocks)
        .map(|_| black_box(Vec::with_capacity(BLOCK)))
        .collect();
    std::mem::forget(black_box(Box::new([0_u8; 64])));
    drop(black_box(reserve));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: Program, env: &[(&str, &str)], expected: &str) {
        let env = env
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        let error = prepare(&LaunchSpec::new(program, env)).map(|_| ()).unwrap_err();
        assert_eq!(error, expected);
    }

    #[test]
    fn what_cannot_be_executed_is_said_before_trying() {
        let list = |words: &[&str]| Program::List(words.iter().map(|word| (*word).to_owned()).collect());
        check(list(&[]), &[], "command is empty");
        check(list(&["", "x"]), &[], "command is empty");
        check(list(&["x"]), &[("", "1")], "environment key '' is invalid");
        check(list(&["x"]), &[("A=B", "1")], "environment key 'A=B' is invalid");
        check(
            list(&["x"]),
            &[("A\0", "1")],
            "environment key 'A\\u{0}' is invalid",
        );
    }
}
