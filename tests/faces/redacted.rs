//! JSON documents with what differs from run to run put out of sight.

use serde_json::Value;

/// Members whose numbers tell of this run, this process or this machine.
const NUMBERS: &[&str] = &[
    "pid",
    "fence",
    "uptime_seconds",
    "log_bytes",
    "commits",
    "changes",
    "commit_ms",
    "file_bytes",
    "faults",
    "rows",
    "waiting",
    "record_version",
    "duration_ms",
    "free_bytes",
    "total_bytes",
    "logs_bytes",
];

/// Of these also `null`: they are absent until somebody has counted.
const COUNTED_LATER: &[&str] = &["free_bytes", "total_bytes", "logs_bytes"];

/// Members whose texts do.
const TEXTS: &[&str] = &["node", "host", "request_id", "commit", "state_directory"];

/// The document with marks in place of ids, times and changing numbers.
pub(crate) fn redacted(value: &Value) -> Value {
    match value {
        Value::Object(members) => Value::Object(
            members
                .iter()
                .map(|(name, inner)| (name.clone(), member(name, inner)))
                .collect(),
        ),
        Value::Array(items) => Value::Array(items.iter().map(redacted).collect()),
        Value::String(text) => Value::String(words(text)),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

fn member(name: &str, inner: &Value) -> Value {
    let is_number = inner.is_number() || (inner.is_null() && COUNTED_LATER.contains(&name));
    if is_number && NUMBERS.contains(&name) {
        Value::String("[number]".to_owned())
    } else if inner.is_string() && TEXTS.contains(&name) {
        Value::String(format!("[{name}]"))
    } else {
        redacted(inner)
    }
}

/// A text, word by word.
pub(crate) fn words(text: &str) -> String {
    const BETWEEN: [char; 8] = [' ', '\n', '/', '(', ')', ',', ';', '='];
    let mut out = String::new();
    for part in text.split_inclusive(BETWEEN) {
        let word = part.trim_end_matches(BETWEEN).trim_end_matches([':', '.']);
        // A verb may follow the id of a run: `run_…:cancel`.
        let end = if word.starts_with("run_") {
            30.min(word.len())
        } else {
            word.len()
        };
        out.push_str(mark(&word[..end]).unwrap_or(&word[..end]));
        out.push_str(&part[end..]);
    }
    out
}

fn mark(word: &str) -> Option<&'static str> {
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let hex = |text: &str| text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let date = |text: &str| text.len() == 10 && text.split('-').all(digits) && text.split('-').count() == 3;
    let clock = |text: &str| matches!(text.len(), 5 | 8) && text.split(':').all(digits) && text.contains(':');
    if word.starts_with("run_") && word.len() == 30 {
        Some("[run]")
    } else if word.len() == 32 && hex(word) {
        Some("[entry]")
    } else if word.starts_with("n-") && word.len() == 14 && hex(&word[2..]) {
        Some("[node]")
    } else if word.len() >= 20 && word.get(..10).is_some_and(date) && word.as_bytes()[10] == b'T' {
        Some("[time]")
    } else if date(word) {
        Some("[date]")
    } else if clock(word) {
        Some("[clock]")
    } else if word.len() == 26 && word.starts_with("01") {
        Some("[request]")
    } else {
        None
    }
}

#[test]
fn what_differs_from_run_to_run_is_out_of_sight() {
    let value = serde_json::json!({"pid": 7, "slots": 2, "node": "x", "at": "2026-11-29T08:00:00.123Z",
        "text": "run run_01m8mmmddve86vegf1fn426g6z:cancel, at 2026-11-29 08:00 UTC (request 01m8mmmc3qezw8cn73h3f91dvp)"});
    assert_eq!(
        redacted(&value),
        serde_json::json!({"pid": "[number]", "slots": 2, "node": "[node]", "at": "[time]",
            "text": "run [run]:cancel, at [date] [clock] UTC (request [request])"})
    );
}
