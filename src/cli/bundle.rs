//! `ductor bundle …`: all that is declared for routing as one document.

use std::io::Read;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::bundle_status;
use super::client::Body;
use super::declared::confirm;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::Show;
use super::workflow_dry::unreadable;
use crate::config::{self, PlainDocument};
use crate::words::limits;

/// What can be done with bundles.
#[derive(Debug, Subcommand)]
pub(super) enum BundleCommand {
    /// What a document would change.
    #[command(after_help = "\
`+` is new, `~` changes, `-` goes.

Exit codes: 0 nothing changes, 1 something does, 2 the document is wrong.")]
    Diff(DiffArguments),
    /// Make what is declared what a document says: all of it, or nothing.
    #[command(after_help = "\
Objects that the document does not have stay, unless --prune: then those go
that a bundle of the same name once applied.

Examples:
  ductor bundle apply -f desk.yaml
  ductor bundle apply -f desk.yaml --prune --drain-to general-desk --yes")]
    Apply(ApplyArguments),
    /// What is declared, as a document.
    Export,
    /// The files that the daemon keeps in force: synced, drifted or failed.
    #[command(after_help = "\
`routing.bundles` of the configuration names them.

Exit codes: 0 all are in force, 1 one is not.")]
    Status,
}

/// Arguments of `bundle diff`.
#[derive(Debug, Clone, Args)]
pub(super) struct DiffArguments {
    /// The document: YAML or JSON; `-` is standard input.
    #[arg(short, long = "file", value_name = "FILE")]
    file: PathBuf,
    /// As if it were applied with --prune.
    #[arg(long)]
    prune: bool,
}

/// Arguments of `bundle apply`.
#[derive(Debug, Clone, Args)]
pub(super) struct ApplyArguments {
    /// The document: YAML or JSON; `-` is standard input.
    #[arg(short, long = "file", value_name = "FILE")]
    file: PathBuf,
    /// Objects that this bundle once applied and no longer has go.
    #[arg(long)]
    prune: bool,
    /// The pool where the waiting work of pools that go waits then.
    #[arg(long, value_name = "POOL")]
    drain_to: Option<String>,
    /// Only if what is declared still has this digest, which `bundle diff --json` tells.
    #[arg(long, value_name = "DIGEST")]
    expect_digest: Option<String>,
    /// Say what would change, and change nothing.
    #[arg(long)]
    dry_run: bool,
    /// Do not ask before objects go.
    #[arg(long, short)]
    yes: bool,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: BundleCommand) -> Result<Exit, Failure> {
    match command {
        BundleCommand::Diff(arguments) => diff(session, &arguments).await,
        BundleCommand::Apply(arguments) => apply(session, &arguments).await,
        BundleCommand::Status => bundle_status::status(session).await,
        BundleCommand::Export => {
            let body = session.client.get(&["api", "routing", "bundle"], &[]).await?;
            if session.show.json {
                session.show.document(&body.text)?;
            } else {
                let yaml = fields::text(fields::data(&body.value), &["yaml"]).unwrap_or_default();
                session.show.data(&yaml)?;
            }
            Ok(Exit::Done)
        }
    }
}

/// A document as it lies in a file.
struct File {
    name: String,
    document: PlainDocument,
}

impl File {
    fn read(path: &Path) -> Result<File, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "stdin".to_owned()
        } else {
            path.display().to_string()
        };
        let most = limits::BUNDLE_BYTES_MAX as u64 + 1;
        let mut text = String::new();
        let read = if is_stdin {
            std::io::stdin().lock().take(most).read_to_string(&mut text)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
        };
        read.map_err(|error| Failure::Usage(format!("{name} cannot be read: {}", unreadable(&error))))?;
        let document = config::read_bundle(&name, &text)
            .map_err(|fault| Failure::Usage(format!("{}: {}", fault.at, fault.message)))?;
        Ok(File { name, document })
    }

    /// A refusal of the document, with the places in the file.
    fn placed(&self, show: &Show, failure: Failure) -> Failure {
        let Failure::Problem(problem) = &failure else {
            return failure;
        };
        let faults = problem.faults();
        if show.json || problem.status != 422 || faults.is_empty() {
            return failure;
        }
        let lines = faults.iter().map(|(pointer, code, detail)| {
            let inside = pointer.strip_prefix("/bundle").unwrap_or(pointer);
            let place = self.document.place(inside);
            let place = place.map_or_else(|| self.name.clone(), ToString::to_string);
            let inside = if inside.is_empty() {
                String::new()
            } else {
                format!(" ({inside})")
            };
            format!("\n  {place}: {code}: {detail}{inside}")
        });
        let count = match faults.len() {
            1 => "one thing is wrong".to_owned(),
            many => format!("{many} things are wrong"),
        };
        Failure::Usage(format!("{}: {count}{}", self.name, lines.collect::<String>()))
    }
}

async fn ask(session: &Session, file: &File, verb: &str, body: &Value) -> Result<Body, Failure> {
    let last = format!("bundle:{verb}");
    let answer = session
        .client
        .post(&["api", "routing", &last], Some(body), None)
        .await;
    answer.map_err(|failure| file.placed(&session.show, failure))
}

async fn diff(session: &Session, arguments: &DiffArguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    let body = json!({"bundle": file.document.value, "prune": arguments.prune});
    let answer = ask(session, &file, "diff", &body).await?;
    let data = fields::data(&answer.value);
    if session.show.json {
        session.show.document(&answer.text)?;
    } else {
        say(&session.show, data)?;
        if fields::list(data, &["changes"]).is_empty() {
            session.show.nothing("Nothing would change.")?;
        }
    }
    Ok(if fields::list(data, &["changes"]).is_empty() {
        Exit::Done
    } else {
        Exit::Negative
    })
}

async fn apply(session: &Session, arguments: &ApplyArguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    let mut body = json!({
        "bundle": file.document.value, "prune": arguments.prune, "dry_run": arguments.dry_run,
    });
    for (name, value) in [
        ("drain_to", &arguments.drain_to),
        ("expect_digest", &arguments.expect_digest),
    ] {
        if let Some(value) = value {
            body[name] = Value::from(value.as_str());
        }
    }
    if arguments.prune && !arguments.dry_run && !arguments.yes {
        let preview = json!({"bundle": file.document.value, "prune": true});
        let looked = ask(session, &file, "diff", &preview).await?;
        let going = fields::number(fields::data(&looked.value), &["counts.delete"]).unwrap_or(0);
        if going > 0 {
            say(&session.show, fields::data(&looked.value))?;
            let question = format!("{going} objects go for good. Apply?");
            confirm(false, question, format!("removing {going} objects")).await?;
        }
    }
    let answer = ask(session, &file, "apply", &body).await?;
    let data = fields::data(&answer.value);
    if session.show.json {
        session.show.document(&answer.text)?;
        return Ok(Exit::Done);
    }
    say(&session.show, data)?;
    let number = |name: &str| fields::number(data, &[name]).unwrap_or(0);
    let (made, changed, gone) = (
        number("counts.create"),
        number("counts.update"),
        number("counts.delete"),
    );
    let verb = if arguments.dry_run { "would be" } else { "are" };
    let same = number("counts.noop");
    let digest = fields::text(data, &["digest"]).unwrap_or_default();
    session.show.paragraph(&format!(
        "{made} objects {verb} new, {changed} changed, {gone} gone, {same} as before; {digest}"
    ))?;
    Ok(Exit::Done)
}

fn say(show: &Show, data: &Value) -> Result<(), Failure> {
    for change in fields::list(data, &["changes"]) {
        show.data(&lines_of(change))?;
    }
    for test in fields::list(data, &["tests"]) {
        if !fields::truth(test, &["ok"]) {
            let text = |name: &str| fields::text(test, &[name]).unwrap_or_default();
            show.paragraph(&format!("test `{}` fails: {}", text("name"), text("detail")))?;
        }
    }
    for warning in fields::list(data, &["warnings"]) {
        let detail = fields::text(warning, &["detail"]).unwrap_or_default();
        show.note(&format!("warning: {detail}"));
    }
    Ok(())
}

/// A change in lines: the object, and below it what differs.
pub(super) fn lines_of(change: &Value) -> String {
    let text = |value: &Value, name: &str| fields::text(value, &[name]).unwrap_or_default();
    let mark = match text(change, "action").as_str() {
        "create" => "+",
        "delete" => "-",
        _ => "~",
    };
    let mut lines = format!("{mark} {} {}\n", text(change, "kind"), text(change, "name"));
    for field in fields::list(change, &["fields"]) {
        let side = |name: &str| match field.get(name) {
            None | Some(Value::Null) => "unset".to_owned(),
            Some(value) => value.to_string(),
        };
        let pointer = text(field, "pointer");
        lines += &format!("    {pointer}: {} -> {}\n", side("from"), side("to"));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_names_the_object_and_what_differs() {
        let change = json!({"kind": "pool", "name": "tier3", "action": "update",
            "fields": [{"pointer": "/config/queue_ttl_seconds", "from": null, "to": 7200}]});
        assert_eq!(
            lines_of(&change),
            "~ pool tier3\n    /config/queue_ttl_seconds: unset -> 7200\n"
        );
        let gone = json!({"kind": "rule", "name": "old", "action": "delete", "fields": []});
        assert_eq!(lines_of(&gone), "- rule old\n");
    }
}
