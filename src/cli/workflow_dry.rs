//! `ductor workflow dry-run`: how a run would go.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::dash;
use super::table::{Kind, Table};
use super::times;
use super::workflow_files::File;
use crate::config;

/// Arguments of `workflow dry-run`.
#[derive(Debug, Clone, Args)]
pub(super) struct DryRunArguments {
    /// The definition, in JSON or YAML.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// The input of the run: a file of JSON or YAML.
    #[arg(long, value_name = "FILE")]
    input: Option<PathBuf>,
    /// What somebody else would give: the output of a step, or of one branch (fetch#3=...).
    #[arg(long, value_name = "STEP=JSON", value_parser = read_output)]
    assume: Vec<(String, Value)>,
    /// A step that fails.
    #[arg(long, value_name = "STEP")]
    fail: Vec<String>,
}

/// `fetch={"rows": 3}`; what is no JSON is a text.
fn read_output(text: &str) -> Result<(String, Value), String> {
    let Some((step, output)) = text.split_once('=').filter(|(step, _)| !step.is_empty()) else {
        return Err("write it as STEP=JSON, like fetch='{\"rows\": 3}'".to_owned());
    };
    let output = serde_json::from_str(output).unwrap_or_else(|_| Value::from(output));
    Ok((step.to_owned(), output))
}

/// Asks how it would go.
pub(super) async fn dry_run(session: &Session, arguments: &DryRunArguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    if !session.show.json && file.say_what_is_wrong(session).await? {
        return Ok(Exit::Negative);
    }
    let input = arguments
        .input
        .as_deref()
        .map(read_input)
        .transpose()?
        .unwrap_or_default();
    let assume: Map<String, Value> = arguments.assume.iter().cloned().collect();
    let body =
        json!({"document": file.document.value, "input": input, "assume": assume, "fail": arguments.fail});
    let path = ["api", "workflows:dry_run"];
    let answer = session.client.post(&path, Some(&body), None).await?;
    let show = &session.show;
    if show.json {
        show.document(&answer.text)?;
        return Ok(Exit::Done);
    }
    let data = fields::data(&answer.value);
    let mut table = Table::new(&[
        ("STEP", Kind::Whole),
        ("TYPE", Kind::Whole),
        ("STATE", Kind::State),
        ("OUTPUT", Kind::Sentence),
    ]);
    for step in fields::list(data, &["steps"]) {
        let text = |name: &str| fields::text(step, &[name]).unwrap_or_default();
        let output = step
            .get("output")
            .filter(|output| !output.is_null())
            .map(ToString::to_string);
        let shown = match (output, fields::text(step, &["reason"])) {
            (_, Some(reason)) => reason,
            (Some(output), None) if fields::truth(step, &["assumed"]) => format!("{output} (assumed)"),
            (Some(output), None) => output,
            (None, None) if fields::truth(step, &["assumed"]) => "null (assumed)".to_owned(),
            (None, None) => dash(),
        };
        let kind = text("type").trim_start_matches("STEP_TYPE_").to_ascii_lowercase();
        table.row(&[text("ref"), kind, text("state"), shown]);
    }
    show.table(&table)?;
    show.data(&format!("{}\n", sentence(data)))?;
    Ok(Exit::Done)
}

fn sentence(data: &Value) -> String {
    let state = fields::text(data, &["state"]).unwrap_or_default();
    if fields::truth(data, &["cut"]) {
        return "There would be more steps; the rest is left out.".to_owned();
    }
    let waited = fields::number(data, &["waited_ms"]).and_then(|ms| u64::try_from(ms).ok());
    let after = match waited.filter(|ms| *ms > 0) {
        Some(ms) => format!(" after {} of waiting", times::length(ms)),
        None => String::new(),
    };
    let why = fields::text(data, &["reason"])
        .map(|why| format!(": {why}"))
        .unwrap_or_default();
    match state.as_str() {
        "running" | "pending" => format!("The run would wait for ever{after}."),
        _ => format!("The run would end as {state}{after}{why}."),
    }
}

/// Why a file cannot be read, in words for people.
pub(super) fn unreadable(error: &std::io::Error) -> String {
    let kind = error.kind();
    if kind == std::io::ErrorKind::NotFound {
        "it does not exist".to_owned()
    } else if kind == std::io::ErrorKind::InvalidData {
        "it is not UTF-8 text".to_owned()
    } else {
        kind.to_string()
    }
}

pub(super) fn read_input(path: &Path) -> Result<Value, Failure> {
    let name = path.display().to_string();
    let mut text = String::new();
    let most = config::FILE_BYTES_MAX as u64 + 1;
    let read = std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text));
    read.map_err(|error| Failure::Usage(format!("{name} cannot be read: {}", unreadable(&error))))?;
    let document = config::read_plain(&name, &text);
    let document = document.map_err(|fault| Failure::Usage(format!("{}: {}", fault.at, fault.message)))?;
    Ok(document.value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_assumed_output_is_json_or_a_text() {
        assert_eq!(read_output("a={\"n\": 1}"), Ok(("a".to_owned(), json!({"n": 1}))));
        assert_eq!(read_output("a#1=b=c"), Ok(("a#1".to_owned(), json!("b=c"))));
        assert!(read_output("a").is_err() && read_output("=1").is_err());
    }

    #[test]
    fn the_end_is_a_sentence() {
        let of = |state: &str, ms: u64, reason: Value| {
            sentence(&json!({"state": state, "waited_ms": ms, "reason": reason, "cut": false}))
        };
        assert_eq!(
            of("succeeded", 2_000, Value::Null),
            "The run would end as succeeded after 2 s of waiting."
        );
        assert_eq!(
            of("failed", 0, json!("step a failed")),
            "The run would end as failed: step a failed."
        );
        assert_eq!(of("running", 0, Value::Null), "The run would wait for ever.");
    }
}
