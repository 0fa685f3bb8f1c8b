//! `ductor dlq …`: what was given up, and what to do about it.

use std::io::{BufRead, IsTerminal};

use clap::{Args, Subcommand};
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash, write_stderr};
use super::table::{Kind, Table, one_line};
use super::workflows::told;

/// What can be done with dead letters.
#[derive(Debug, Subcommand)]
pub(super) enum DeadLetterCommand {
    /// Steps with which daemons died, and reports that could not be delivered.
    #[command(after_help = "\
Examples:
  ductor dlq ls
  ductor dlq ls --where 'kind:report job:backup'")]
    Ls(ListArguments),
    /// One of them, with its reason.
    Show(IdArguments),
    /// Deliver a report anew, or try a step again by a new run.
    Retry(IdArguments),
    /// Put one away: nobody will look after it.
    Discard(DiscardArguments),
}

/// Arguments of `dlq ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only letters like this: 'kind:step', 'kind:report', 'job:x'.
    #[arg(
        long = "where",
        value_name = "FILTER",
        default_value = "",
        hide_default_value = true
    )]
    filter: String,
}

/// A dead letter by its id.
#[derive(Debug, Clone, Args)]
pub(super) struct IdArguments {
    /// The id that `dlq ls` shows: report-N, or step-RUN-STEP.
    #[arg(value_name = "ID")]
    id: String,
}

/// Arguments of `dlq discard`.
#[derive(Debug, Clone, Args)]
pub(super) struct DiscardArguments {
    /// The id that `dlq ls` shows: report-N, or step-RUN-STEP.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: DeadLetterCommand) -> Result<Exit, Failure> {
    match command {
        DeadLetterCommand::Ls(arguments) => list(session, &arguments.filter).await,
        DeadLetterCommand::Show(arguments) => show(session, &arguments.id).await,
        DeadLetterCommand::Retry(arguments) => {
            let id = &arguments.id;
            let answer = act(session, id, "retry").await?;
            let run = fields::text(fields::data(&answer.value), &["run"]);
            let sentence = match run {
                Some(run) => format!("{id} is tried again as {run}"),
                None => format!("{id} is delivered anew"),
            };
            told(session, &answer, &sentence)
        }
        DeadLetterCommand::Discard(arguments) => {
            if !arguments.yes {
                let id = arguments.id.clone();
                let asked = tokio::task::spawn_blocking(move || confirm(&id)).await;
                asked.map_err(|error| Failure::Negative(error.to_string()))??;
            }
            let answer = act(session, &arguments.id, "discard").await?;
            told(session, &answer, &format!("{} is put away", arguments.id))
        }
    }
}

fn confirm(id: &str) -> Result<(), Failure> {
    if !std::io::stdin().is_terminal() {
        let text = format!("discarding {id} needs --yes where nobody can be asked");
        return Err(Failure::Usage(text));
    }
    write_stderr(format!("Put {id} away for good? [y/N] ").as_bytes());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Negative("nothing was done".to_owned()))
    }
}

async fn act(session: &Session, id: &str, verb: &str) -> Result<super::client::Body, Failure> {
    let last = format!("{id}:{verb}");
    session
        .client
        .post(&["api", "dead_letters", &last], None, None)
        .await
}

/// The parameters of a filter.
fn query_of(filter: &str) -> Result<Vec<(&'static str, String)>, Failure> {
    let mut query = Vec::new();
    for term in filter.split_whitespace() {
        match term.split_once(':') {
            Some(("kind", value)) => query.push(("kind", value.to_owned())),
            Some(("job", value)) => query.push(("job", value.trim_matches('"').to_owned())),
            Some(_) | None => {
                let text =
                    format!("--where: `{term}` is no filter; there are kind:step, kind:report and job:NAME");
                return Err(Failure::Usage(text));
            }
        }
    }
    Ok(query)
}

async fn list(session: &Session, filter: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let query = query_of(filter)?;
    let body = session
        .client
        .list(&["api", "dead_letters"], &query, usize::MAX)
        .await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let letters = fields::items(&body.value);
    if letters.is_empty() {
        let sentence = if query.is_empty() {
            "Nothing was given up."
        } else {
            "No dead letter is like that. `ductor dlq ls` shows all."
        };
        show.nothing(sentence)?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| letters_table(letters, show, fit))?;
    Ok(Exit::Done)
}

fn letters_table(letters: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("ID", Kind::Whole),
        ("KIND", Kind::Whole),
        ("JOB", Kind::Name),
        ("WHEN", Kind::Whole),
        ("WHY", Kind::Below),
    ]);
    for letter in letters {
        let text = |name: &str| fields::text(letter, &[name]).unwrap_or_else(dash);
        table.row(&[
            text("id"),
            text("kind"),
            text("job"),
            show.moment(fields::instant(letter, &["at"]), fit),
            one_line(&text("reason")),
        ]);
    }
    table
}

async fn show(session: &Session, id: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.get(&["api", "dead_letters", id], &[]).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let letter = fields::data(&body.value);
    let text = |name: &str| fields::text(letter, &[name]);
    let mut pairs = vec![("letter", show.strong(&text("id").unwrap_or_default()))];
    for (title, name) in [
        ("kind", "kind"),
        ("job", "job"),
        ("run", "run"),
        ("step", "step"),
        ("on", "on"),
        ("by", "target"),
    ] {
        pairs.extend(text(name).map(|text| (title, text)));
    }
    let at = fields::instant(letter, &["at"]);
    pairs.push(("given up", show.instant_and_distance(at)));
    let is_step = text("kind").as_deref() == Some("step");
    let tries = if is_step { "daemons died" } else { "tries" };
    pairs.extend(text("tries").map(|text| (tries, text)));
    pairs.extend(text("reason").map(|text| ("why", one_line(&text))));
    show.pairs(&pairs)?;
    show.note(&format!("\nTo try it again: ductor dlq retry {id}"));
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_filter_has_kinds_and_jobs() {
        assert_eq!(query_of("").unwrap(), []);
        let both = query_of("kind:step job:\"nightly\"").unwrap();
        assert_eq!(both, [("kind", "step".to_owned()), ("job", "nightly".to_owned())]);
        for wrong in ["step", "state:failed", "kind:step what"] {
            assert!(query_of(wrong).is_err(), "{wrong}");
        }
    }
}
