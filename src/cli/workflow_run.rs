//! `ductor run start`, also called `workflow run`: a run of a workflow begins; `ductor run pause` and `resume` hold it and let it go on.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::jobs;
use super::session::Session;
use super::workflow_dry::read_input;
use super::workflows::told;

pub(super) const EXAMPLES: &str = "\
Examples:
  ductor run start hello-world
  ductor run start hello-world --input input.json --wait
  ductor run start hello-world -p name=Ada -p size=3 --label team=blue

With --wait: exit 0 if the run succeeds, 1 if not.";

/// Arguments of `workflow run`.
#[derive(Debug, Clone, Args)]
pub(super) struct RunArguments {
    /// The workflow's name (`family_slug`).
    #[arg(value_name = "SLUG")]
    slug: String,
    /// The input: a file of JSON or YAML; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with = "set")]
    input: Option<PathBuf>,
    /// One field of the input; what is no JSON is a text.
    #[arg(long, short = 'p', value_name = "NAME=JSON", value_parser = read_pair)]
    set: Vec<(String, Value)>,
    /// The version; the newest unless given.
    #[arg(long, value_name = "N")]
    version: Option<u32>,
    /// A label of the run, for filters.
    #[arg(long, value_name = "NAME=TEXT", value_parser = read_label)]
    label: Vec<(String, String)>,
    /// Wait until the run ends; exit 1 if it does not succeed.
    #[arg(long)]
    wait: bool,
    /// Show what it prints, and wait.
    #[arg(long, short)]
    follow: bool,
}

fn read_pair(text: &str) -> Result<(String, Value), String> {
    let (name, value) = read_label(text)?;
    let value = serde_json::from_str(&value).unwrap_or_else(|_| Value::from(value));
    Ok((name, value))
}

fn read_label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=').filter(|(name, _)| !name.is_empty()) {
        Some((name, value)) => Ok((name.to_owned(), value.to_owned())),
        None => Err("write it as NAME=VALUE".to_owned()),
    }
}

/// Begins a run.
pub(super) async fn run(session: &Session, arguments: &RunArguments) -> Result<Exit, Failure> {
    let input = match &arguments.input {
        Some(file) => read_input(file)?,
        None if arguments.set.is_empty() => json!({}),
        None => Value::Object(arguments.set.iter().cloned().collect()),
    };
    let mut body = Map::from_iter([("input".to_owned(), input)]);
    if let Some(version) = arguments.version {
        body.insert("version".to_owned(), json!(version));
    }
    if !arguments.label.is_empty() {
        let labels: Map<String, Value> = arguments
            .label
            .iter()
            .map(|(name, value)| (name.clone(), json!(value)))
            .collect();
        body.insert("labels".to_owned(), Value::Object(labels));
    }
    let answer = session
        .client
        .post(
            &["api", "workflows", &arguments.slug, "runs"],
            Some(&Value::Object(body)),
            None,
        )
        .await?;
    let begun = fields::data(&answer.value);
    let text = |name: &str| fields::text(begun, &[name]).unwrap_or_default();
    let run = text("id");
    let version = fields::number(begun, &["version"]).unwrap_or(0);
    let what = format!("{} version {version}", arguments.slug);
    let sentence = begun_sentence(&what, &run, begun);
    if arguments.wait || arguments.follow {
        session.show.note(&sentence);
        return jobs::watch(session, &run, arguments.follow).await;
    }
    told(session, &answer, &sentence)
}

/// What became of a start: it runs, waits for its turn, or never begins.
fn begun_sentence(what: &str, run: &str, begun: &Value) -> String {
    let text = |name: &str| fields::text(begun, &[name]);
    let waits = text("waiting_reason").filter(|why| !why.is_empty());
    match (text("state").as_deref(), waits, text("reason")) {
        (Some("pending"), Some(why), _) => {
            format!("{what} waits as {run}: {}", why.trim_end_matches('.'))
        }
        (Some("skipped"), _, Some(why)) => format!("{what} was skipped as {run}: {why}"),
        _ => format!("{what} started as {run}"),
    }
}

/// Arguments of `run pause`.
#[derive(Debug, Clone, Args)]
pub(super) struct PauseArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for people.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

/// Holds a run.
pub(super) async fn pause(session: &Session, arguments: &PauseArguments) -> Result<Exit, Failure> {
    let body = arguments.reason.as_ref().map(|reason| json!({"reason": reason}));
    let sentence = format!(
        "{} is paused: what runs goes on, nothing else begins",
        arguments.id
    );
    tell(session, &arguments.id, "pause", body.as_ref(), &sentence).await
}

/// Lets a run go on.
pub(super) async fn resume(session: &Session, id: &str) -> Result<Exit, Failure> {
    tell(session, id, "resume", None, &format!("{id} goes on")).await
}

async fn tell(
    session: &Session,
    id: &str,
    verb: &str,
    body: Option<&Value>,
    sentence: &str,
) -> Result<Exit, Failure> {
    let last = format!("{id}:{verb}");
    let answer = session.client.post(&["api", "runs", &last], body, None).await?;
    told(session, &answer, sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_start_says_what_became_of_it() {
        let said = |begun: Value| begun_sentence("w version 1", "run_1", &begun);
        assert_eq!(said(json!({"state": "running"})), "w version 1 started as run_1");
        assert_eq!(
            said(json!({"state": "pending", "waiting_reason": "Only 1 run at once: waits for run_0."})),
            "w version 1 waits as run_1: Only 1 run at once: waits for run_0"
        );
        assert_eq!(
            said(json!({"state": "skipped", "reason": "only 1 run at once: held by run_0"})),
            "w version 1 was skipped as run_1: only 1 run at once: held by run_0"
        );
    }
}
