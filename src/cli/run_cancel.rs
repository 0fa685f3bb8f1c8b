//! `ductor run cancel`: by ids, or everything that a filter matches. What would be ended is shown before it is ended.

use std::io::{BufRead, IsTerminal};

use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::filter::Filter;
use super::run_view::{id_of, state_of};
use super::runs;
use super::session::Session;
use super::show::write_stderr;

/// Runs that one command ends; who wants more repeats it.
const MATCHES_MAX: usize = 1_000;

pub(super) const EXAMPLES: &str = "\
Examples:
  ductor run cancel run_01…
  ductor run cancel --where 'job:backup'          shows which, and asks
  ductor run cancel --where 'state:pending since:1h' --yes

Without a state in the filter it means all that wait and run.";

/// Arguments of `run cancel`.
#[derive(Debug, Clone, Args)]
pub(super) struct CancelArguments {
    /// The runs' ids.
    #[arg(value_name = "ID", required_unless_present = "filter")]
    ids: Vec<String>,
    /// All runs like this instead: 'job:x since:1h'.
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "ids")]
    filter: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Ends them.
pub(super) async fn cancel(session: &Session, arguments: &CancelArguments) -> Result<Exit, Failure> {
    let Some(filter) = &arguments.filter else {
        ask(arguments, arguments.ids.len()).await?;
        return cancel_each(session, &arguments.ids, false).await;
    };
    let show = &session.show;
    let filter = Filter::read(filter, show.face(), show.now()).and_then(Filter::only_unfinished);
    let filter = filter.map_err(|error| Failure::Usage(format!("--where: {error}")))?;
    let (mut found, _) = runs::pages(session, &filter, MATCHES_MAX + 1).await?;
    if found.is_empty() {
        show.nothing("No run that waits or runs is like that.")?;
        return Ok(Exit::Done);
    }
    let more = found.len() > MATCHES_MAX;
    found.truncate(MATCHES_MAX);
    if !arguments.yes {
        preview(session, &found)?;
    }
    ask(arguments, found.len()).await?;
    let ids: Vec<String> = found.iter().map(id_of).collect();
    let exit = cancel_each(session, &ids, true).await?;
    if more {
        show.note(&format!(
            "There are more than {MATCHES_MAX}; repeat it for the rest."
        ));
    }
    Ok(exit)
}

fn preview(session: &Session, found: &[Value]) -> Result<(), Failure> {
    let show = &session.show;
    if show.json {
        return Ok(());
    }
    show.fitting(|fit| runs::runs_table(found, show, fit))
}

async fn cancel_each(session: &Session, ids: &[String], matched: bool) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    let mut count = 0;
    for id in ids {
        let verb = format!("{id}:cancel");
        match session.client.post(&["api", "runs", &verb], None, None).await {
            Ok(answer) => {
                count += 1;
                if session.show.json {
                    session.show.document(&answer.text)?;
                    continue;
                }
                let state = state_of(fields::data(&answer.value));
                let word = if state == "cancelled" {
                    "cancelled"
                } else {
                    "is being cancelled"
                };
                session.show.data(&format!("{id} {word}\n"))?;
            }
            // What ended between the look and the cancel is as wanted.
            Err(Failure::Problem(problem)) if matched && matches!(problem.status, 404 | 409) => {
                session.show.note(&format!("{id} had ended already"));
            }
            // One that cannot be cancelled does not save the others.
            Err(failure @ Failure::Problem(_)) if ids.len() > 1 => {
                session.show.failure(&failure);
                exit = failure.exit();
            }
            Err(failure) => return Err(failure),
        }
    }
    if matched {
        session.show.note(&counted(count, "cancelled"));
    }
    Ok(exit)
}

/// `1 run cancelled`, `3 runs cancelled`.
fn counted(count: usize, done: &str) -> String {
    let noun = if count == 1 { "run" } else { "runs" };
    format!("{count} {noun} {done}")
}

async fn ask(arguments: &CancelArguments, count: usize) -> Result<(), Failure> {
    if arguments.yes {
        return Ok(());
    }
    // Not on the thread that hears Ctrl-C.
    let asked = tokio::task::spawn_blocking(move || confirm(count)).await;
    asked.map_err(|error| Failure::Negative(error.to_string()))?
}

fn confirm(count: usize) -> Result<(), Failure> {
    let what = if count == 1 {
        "this run".to_owned()
    } else {
        format!("these {count} runs")
    };
    if !std::io::stdin().is_terminal() {
        return Err(Failure::Usage(format!(
            "cancelling {what} needs --yes where nobody can be asked"
        )));
    }
    write_stderr(format!("Cancel {what}? [y/N] ").as_bytes());
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).ok();
    if matches!(answer.trim(), "y" | "Y" | "yes") {
        Ok(())
    } else {
        Err(Failure::Negative("nothing was cancelled".to_owned()))
    }
}
