//! Arguments of a command: the launch keys of a job in snake case.
//!
//! Durations stand as text (`kill_timeout: "10s"`). What an export has instead (`kill_timeout_ms`, pairs of names and
//! values) is read too, so that a stored definition can be posted again.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Fields, Out, Spot};
use super::step::{Defaults, scalar};
use crate::domain::workflow::definition::{
    CommandLine, CommandStep, FailsWhen, SecretFrom, SecretRef, Verify,
};
use crate::domain::workflow::graph::document::TimeoutsDoc;
use crate::domain::workflow::graph::finding::shown;
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::span::Span;
use crate::words::limits;

const KEYS: [&str; 18] = [
    "command",
    "shell",
    "environment",
    "env_file",
    "working_directory",
    "user",
    "group",
    "resource_limits",
    "execution_timeout",
    "execution_timeout_ms",
    "kill_timeout",
    "kill_timeout_ms",
    "capture_stdout",
    "capture_stderr",
    "save_limit",
    "fails_when",
    "verify",
    "secrets",
];

pub(super) fn command(spot: &Spot<'_>, _: &Defaults, out: &mut Out) -> Option<StepKind> {
    Some(StepKind::Command(Box::new(launch(spot, out)?)))
}

/// The limit of one attempt is the limit of its process, however it was said.
pub(super) fn with_execution_time(kind: &mut StepKind, mut timeouts: TimeoutsDoc) -> TimeoutsDoc {
    if let StepKind::Command(step) = kind {
        timeouts.attempt = timeouts.attempt.or(step.execution_timeout_ms.map(Span));
        step.execution_timeout_ms = timeouts.attempt.map(|span| span.0);
    }
    timeouts
}

/// A process to run.
pub(super) fn launch(spot: &Spot<'_>, out: &mut Out) -> Option<CommandStep> {
    let fields = spot.object(&KEYS, &[], out)?;
    let command = fields.need("command", out).and_then(|spot| line(&spot, out));
    let shell = fields.get("shell").and_then(|spot| path(&spot, out));
    let kill_timeout = fields.span_or_ms("kill_timeout", out);
    if let Some(span) = kill_timeout.filter(|span| span.0 > limits::KILL_TIMEOUT_MAX_MS) {
        let at = format!("{}/kill_timeout", fields.at);
        out.say(
            &at,
            "workflow.out_of_range",
            format!("`kill_timeout` may be 1h, not {span}"),
        );
    }
    let listed = fields
        .get("secrets")
        .map(|spot| spot.list_up_to(limits::STEP_SECRETS_MAX, out));
    let listed = listed.unwrap_or_default();
    Some(CommandStep {
        command: command.unwrap_or_else(|| CommandLine::Shell(String::new())),
        shell: shell.unwrap_or_else(|| "/bin/sh".to_owned()),
        environment: fields
            .get("environment")
            .map(|spot| environment(&spot, out))
            .unwrap_or_default(),
        env_file: fields.get("env_file").and_then(|spot| path(&spot, out)),
        working_directory: fields.get("working_directory").and_then(|spot| path(&spot, out)),
        user: fields.get("user").and_then(|spot| scalar(&spot, out)),
        group: fields.get("group").and_then(|spot| scalar(&spot, out)),
        resource_limits: fields
            .get("resource_limits")
            .map(|spot| resources(&spot, out))
            .unwrap_or_default(),
        execution_timeout_ms: fields.span_or_ms("execution_timeout", out).map(|span| span.0),
        kill_timeout_ms: kill_timeout.map_or(30_000, |span| span.0),
        capture_stdout: fields.flag("capture_stdout", true, out),
        capture_stderr: fields.flag("capture_stderr", true, out),
        save_limit: fields.count("save_limit", (0, 1_000_000), out).unwrap_or(4096),
        fails_when: fails_when(&fields, out),
        verify: fields.get("verify").and_then(|spot| verify(&spot, out)),
        secrets: listed.iter().filter_map(|spot| secret(spot, out)).collect(),
    })
}

/// A text for the shell, or a program with its arguments.
pub(super) fn line(spot: &Spot<'_>, out: &mut Out) -> Option<CommandLine> {
    match spot.value {
        Value::String(text) if text.trim().is_empty() => {
            out.say(&spot.at, "workflow.missing", "the command is empty");
            None
        }
        Value::String(text) => Some(CommandLine::Shell(text.clone())),
        Value::Array(items) if items.is_empty() => {
            out.say(&spot.at, "workflow.missing", "the command is empty");
            None
        }
        Value::Array(_) => {
            let items = spot.list_up_to(limits::COMMAND_ENTRIES_MAX, out);
            let words: Vec<String> = items.iter().filter_map(|item| scalar(item, out)).collect();
            if words.first().is_some_and(String::is_empty) {
                out.say(&items[0].at, "workflow.missing", "the program has no name");
            }
            Some(CommandLine::List(words))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            spot.wrong(
                "a command is a text for the shell, or a list of program and arguments",
                out,
            );
            None
        }
    }
}

/// A definition lies nowhere, so a path in it must not depend on where it lies.
fn path(spot: &Spot<'_>, out: &mut Out) -> Option<String> {
    let text = spot.text(out)?;
    if !text.starts_with('/') {
        let message = format!("`{}` must be an absolute path", shown(text));
        out.say(&spot.at, "workflow.relative_path", message);
        return None;
    }
    Some(text.to_owned())
}

fn environment(spot: &Spot<'_>, out: &mut Out) -> Vec<(String, String)> {
    let pairs = match spot.value {
        // The form of an export: a list of pairs.
        Value::Array(_) => {
            let items = spot.list(out);
            let pair = |item: &Spot<'_>, out: &mut Out| {
                let parts = item.list(out);
                let [name, value] = parts.as_slice() else {
                    item.wrong("must be a pair of name and value", out);
                    return None;
                };
                Some((name.text(out)?.to_owned(), scalar(value, out)?))
            };
            items.iter().filter_map(|item| pair(item, out)).collect()
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Object(_) => {
            let Some(fields) = spot.map(out) else {
                return Vec::new();
            };
            let named = fields
                .each()
                .filter_map(|(name, spot)| Some((name.to_owned(), scalar(&spot, out)?)));
            named.collect::<Vec<_>>()
        }
    };
    if pairs.len() > limits::COMMAND_ENTRIES_MAX {
        let message = format!(
            "has {} variables, and {} are allowed",
            pairs.len(),
            limits::COMMAND_ENTRIES_MAX
        );
        out.say(&spot.at, "workflow.limit", message);
    }
    for (name, value) in &pairs {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            let message = format!("`{}` can be no variable of a process", shown(name));
            out.say(&spot.at, "workflow.bad_value", message);
        }
    }
    pairs
}

/// Key of a definition, key of the configuration, whether it is a size.
const RESOURCES: [(&str, &str, bool); 6] = [
    ("cpu_seconds", "cpuSeconds", false),
    ("memory", "memory", true),
    ("processes", "processes", false),
    ("open_files", "openFiles", false),
    ("file_size", "fileSize", true),
    ("core", "core", true),
];

fn resources(spot: &Spot<'_>, out: &mut Out) -> BTreeMap<String, u64> {
    let known: Vec<&str> = RESOURCES
        .iter()
        .flat_map(|(own, other, _)| [*own, *other])
        .collect();
    let Some(fields) = spot.object(&known, &[], out) else {
        return BTreeMap::new();
    };
    let mut found = BTreeMap::new();
    for (own, configured, is_size) in RESOURCES {
        let Some(spot) = fields.get(own).or_else(|| fields.get(configured)) else {
            continue;
        };
        let amount = if is_size {
            size(&spot, out)
        } else {
            spot.integer(1, u64::from(u32::MAX), out)
        };
        if configured == "memory" && amount.is_some_and(|bytes| bytes < 1 << 20) {
            out.say(&spot.at, "workflow.out_of_range", "must be at least 1MiB");
        }
        found.extend(amount.map(|amount| (configured.to_owned(), amount)));
    }
    found
}

/// Bytes, or a text like `64MiB`.
fn size(spot: &Spot<'_>, out: &mut Out) -> Option<u64> {
    const UNITS: [(&str, u64); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("K", 1 << 10),
        ("M", 1 << 20),
        ("G", 1 << 30),
        ("T", 1 << 40),
        ("B", 1),
        ("", 1),
    ];
    let Value::String(text) = spot.value else {
        return spot.integer(0, 1 << 53, out);
    };
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit = text[digits.len()..].trim();
    let factor = UNITS.iter().find(|(word, _)| word.eq_ignore_ascii_case(unit));
    let amount = digits.trim().parse::<u64>().ok();
    let bytes = amount
        .zip(factor)
        .and_then(|(amount, (_, factor))| amount.checked_mul(*factor));
    let bytes = bytes.filter(|bytes| *bytes <= 1 << 53);
    if bytes.is_none() {
        let message = format!(
            "`{}` is no size; write it like \"64MiB\", or as a number of bytes",
            shown(text)
        );
        out.say(&spot.at, "workflow.bad_value", message);
    }
    bytes
}

fn fails_when(fields: &Fields<'_>, out: &mut Out) -> FailsWhen {
    const KEYS: [&str; 4] = ["nonzero_return", "produces_stdout", "produces_stderr", "always"];
    let given = fields
        .get("fails_when")
        .and_then(|spot| spot.object(&KEYS, &[], out));
    let mut flag =
        |name: &str, usual: bool| given.as_ref().map_or(usual, |given| given.flag(name, usual, out));
    FailsWhen {
        nonzero_return: flag("nonzero_return", true),
        produces_stdout: flag("produces_stdout", false),
        produces_stderr: flag("produces_stderr", false),
        always: flag("always", false),
    }
}

/// `{command, timeout}`, or the command alone.
fn verify(spot: &Spot<'_>, out: &mut Out) -> Option<Verify> {
    if spot.value.is_string() || spot.value.is_array() {
        return Some(Verify {
            command: line(spot, out)?,
            timeout_ms: 60_000,
        });
    }
    let fields = spot.object(&["command", "timeout", "timeout_ms"], &[], out)?;
    let command = fields.need("command", out).and_then(|spot| line(&spot, out));
    Some(Verify {
        timeout_ms: fields.span_or_ms("timeout", out).map_or(60_000, |span| span.0),
        command: command?,
    })
}

/// `{name, from_file}` or `{name, from_env_var}`; in an export `{name, from: {file}}` or `{name, from: {variable}}`.
fn secret(spot: &Spot<'_>, out: &mut Out) -> Option<SecretRef> {
    let fields = spot.object(&["name", "from_file", "from_env_var", "from"], &[], out)?;
    let name = fields.need("name", out)?;
    let word = name.text(out)?;
    let is_variable = word.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && word
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !is_variable {
        let message = format!(
            "`{}` must be a variable name: letters, digits and `_`, and no digit first",
            shown(word)
        );
        out.say(&name.at, "workflow.bad_value", message);
    }
    let from = fields
        .get("from")
        .and_then(|spot| spot.object(&["file", "variable"], &[], out));
    let inner = |name: &str| from.as_ref().and_then(|from| from.get(name));
    let file = fields.get("from_file").or_else(|| inner("file"));
    let variable = fields.get("from_env_var").or_else(|| inner("variable"));
    let from = match (file, variable) {
        (Some(file), None) => SecretFrom::File(path(&file, out)?),
        (None, Some(variable)) => {
            SecretFrom::Variable(variable.filled(limits::LABEL_CHARS_MAX, out)?.to_owned())
        }
        (Some(_), Some(_)) | (None, None) => {
            let message = format!(
                "secret '{}': give either `from_file` or `from_env_var`",
                shown(word)
            );
            out.say(&fields.at, "workflow.missing", message);
            return None;
        }
    };
    Some(SecretRef {
        name: word.to_owned(),
        from,
    })
}
