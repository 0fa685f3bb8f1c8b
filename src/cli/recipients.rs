//! `ductor recipient …`: who or what gets work.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Body;
use super::declared::{
    IdArguments, ShowArguments, UpdateArguments, confirm, is_id, plain_word, pool_id, read_fields, sentence,
    show_object, told, wire_word,
};
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::dash;
use super::table::{Kind, Table, one_line};

/// What can be done with recipients.
#[derive(Debug, Subcommand)]
pub(super) enum RecipientCommand {
    /// The recipients of a pool, newest first.
    #[command(after_help = "\
Examples:
  ductor recipient ls --pool billing-desk
  ductor recipient ls --pool billing-desk --eligible")]
    Ls(ListArguments),
    /// One recipient: all that is set of it, and what it does now.
    Show(ShowArguments),
    /// Make a recipient of a file, in a pool.
    #[command(after_help = "\
The file is JSON or YAML with the fields of a recipient; `-` is standard input.

Example:
  echo '{\"name\": \"Kim\", \"capacity\": {\"max_concurrent\": 4}}' |
    ductor recipient create - --pool billing-desk")]
    Create(CreateArguments),
    /// Change what a file says of a recipient; everything else stays.
    Update(UpdateArguments),
    /// Take a recipient out of rotation; its numbers and pools stay.
    Pause(IdArguments),
    /// Put a recipient back into rotation.
    Resume(IdArguments),
    /// Remove a recipient.
    Rm(RemoveArguments),
}

/// Arguments of `recipient ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Of this pool: its id, or its name.
    #[arg(long, value_name = "POOL")]
    pool: String,
    /// Only of this status: active, paused, disabled.
    #[arg(long, value_name = "STATUS")]
    status: Vec<String>,
    /// Only in this state: available, busy, offline, paused.
    #[arg(long, value_name = "STATE")]
    state: Vec<String>,
    /// Only with this tag.
    #[arg(long, value_name = "TAG")]
    tag: Vec<String>,
    /// Only who could get work now.
    #[arg(long)]
    eligible: bool,
}

/// Arguments of `recipient create`.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArguments {
    /// Its fields.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Its primary pool: the id, or the name.
    #[arg(long, value_name = "POOL")]
    pool: String,
}

/// Arguments of `recipient rm`.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoveArguments {
    /// Its id.
    #[arg(value_name = "ID")]
    id: String,
    /// Its open assignments expire, and go elsewhere.
    #[arg(long)]
    release: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: RecipientCommand) -> Result<Exit, Failure> {
    match command {
        RecipientCommand::Ls(arguments) => list(session, &arguments).await,
        RecipientCommand::Show(arguments) => {
            let path = ["api", "recipients", known(&arguments.id)?];
            let body = session.client.get(&path, &arguments.query()).await?;
            show_object(session, &body)
        }
        RecipientCommand::Create(arguments) => {
            let given = read_fields(&arguments.file)?;
            let pool = pool_id(session, &arguments.pool).await?;
            let path = ["api", "pools", &pool, "recipients"];
            let answer = session.client.post(&path, Some(&given), None).await?;
            told(session, &answer, &sentence("recipient", &answer, "is there"))
        }
        RecipientCommand::Update(arguments) => {
            let given = read_fields(&arguments.file)?;
            let path = ["api", "recipients", known(&arguments.id)?];
            let changed = session.client.patch(&path, &given, arguments.expected_version);
            let answer = changed.await?;
            told(session, &answer, &sentence("recipient", &answer, "is so now"))
        }
        RecipientCommand::Pause(arguments) => {
            let answer = act(session, &arguments.id, "pause").await?;
            told(session, &answer, &sentence("recipient", &answer, "gets nothing"))
        }
        RecipientCommand::Resume(arguments) => {
            let answer = act(session, &arguments.id, "resume").await?;
            told(session, &answer, &sentence("recipient", &answer, "is available"))
        }
        RecipientCommand::Rm(arguments) => remove(session, &arguments).await,
    }
}

/// Recipients are named by their ids: a name is one only within a pool.
fn known(given: &str) -> Result<&str, Failure> {
    if is_id(given) {
        return Ok(given);
    }
    Err(Failure::Usage(format!(
        "'{given}' is no id of a recipient; `ductor recipient ls --pool POOL` shows them"
    )))
}

async fn act(session: &Session, id: &str, verb: &str) -> Result<Body, Failure> {
    let path = ["api", "recipients", known(id)?, verb];
    session.client.post(&path, None, None).await
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let pool = pool_id(session, &arguments.pool).await?;
    let mut query: Vec<(&str, String)> = Vec::new();
    let statuses = arguments.status.iter();
    query.extend(statuses.map(|word| ("status", wire_word("STATUS_", word))));
    let states = arguments.state.iter();
    query.extend(states.map(|word| ("state", wire_word("RECIPIENT_STATE_", word))));
    query.extend(arguments.tag.iter().map(|tag| ("tag", tag.clone())));
    if arguments.eligible {
        query.push(("eligible", "true".to_owned()));
    }
    let path = ["api", "pools", &pool, "recipients"];
    let body = session.client.list(&path, &query, usize::MAX).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let recipients = fields::items(&body.value);
    if recipients.is_empty() {
        show.nothing("There are no such recipients in this pool.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|_| recipients_table(recipients))?;
    Ok(Exit::Done)
}

fn recipients_table(recipients: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("RECIPIENT", Kind::Whole),
        ("NAME", Kind::Name),
        ("STATE", Kind::State),
        ("LOAD", Kind::Number),
        ("WEIGHT", Kind::Number),
        ("", Kind::Below),
    ]);
    for recipient in recipients {
        let text = |name: &str| fields::text(recipient, &[name]);
        let tags: Vec<&str> = fields::list(recipient, &["tags"])
            .iter()
            .filter_map(Value::as_str)
            .collect();
        table.row(&[
            text("id").unwrap_or_default(),
            text("name").map_or_else(dash, |name| one_line(&name)),
            state_of(recipient),
            load_of(recipient),
            text("weight").unwrap_or_else(|| "1".to_owned()),
            tags.join(" "),
        ]);
    }
    table
}

/// What keeps work away counts first.
fn state_of(recipient: &Value) -> String {
    let status = plain_word(&fields::text(recipient, &["status"]).unwrap_or_default());
    if !status.is_empty() && status != "active" {
        return status;
    }
    plain_word(&fields::text(recipient, &["state"]).unwrap_or_default())
}

fn load_of(recipient: &Value) -> String {
    let current = fields::number(recipient, &["capacity.current"]).unwrap_or(0);
    let max = fields::number(recipient, &["capacity.max_concurrent"]).unwrap_or(10);
    format!("{current}/{max}")
}

async fn remove(session: &Session, arguments: &RemoveArguments) -> Result<Exit, Failure> {
    let id = known(&arguments.id)?;
    let question = format!("Remove the recipient {id} for good?");
    confirm(arguments.yes, question, format!("removing {id}")).await?;
    let query: Vec<(&str, String)> = arguments
        .release
        .then(|| ("release", "true".to_owned()))
        .into_iter()
        .collect();
    let path = ["api", "recipients", id];
    let answer = session.client.delete_asked(&path, &query).await?;
    told(session, &answer, &format!("recipient {id} is gone"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::cli::table::assert_80;

    #[test]
    fn a_table_of_recipients_fits_eighty_columns() {
        let one = json!({"id": "019ad0e0-0011-7000-8000-00000000000a", "name": "somebody with a rather long name",
            "state": "RECIPIENT_STATE_AVAILABLE", "weight": 1000.5, "capacity": {"current": 12, "max_concurrent": 400},
            "tags": ["billing", "spanish", "a-rather-long-tag", "another-tag-that-is-rather-long", "and-one-more"]});
        assert_80(&recipients_table(std::slice::from_ref(&one)));
        assert_eq!(
            (state_of(&one), load_of(&one)),
            ("available".to_owned(), "12/400".to_owned())
        );
        let paused = json!({"status": "STATUS_PAUSED", "state": "RECIPIENT_STATE_AVAILABLE"});
        assert_eq!(
            (state_of(&paused), load_of(&paused)),
            ("paused".to_owned(), "0/10".to_owned())
        );
        assert!(known("Kim").is_err());
    }
}
