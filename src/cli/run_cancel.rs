//! `ductor run cancel`: by ids, or everything that a filter matches. What would be ended is shown before it is ended.

use clap::Args;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::run_bulk;
use super::run_view::state_of;
use super::session::Session;
use crate::domain::workflow::bulk::BulkWish;

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
    if let Some(filter) = &arguments.filter {
        return run_bulk::perform(session, BulkWish::Cancel, filter, arguments.yes).await;
    }
    if !arguments.yes {
        let count = i64::try_from(arguments.ids.len()).unwrap_or(i64::MAX);
        run_bulk::ask(&run_bulk::CANCEL, count).await?;
    }
    cancel_each(session, &arguments.ids).await
}

async fn cancel_each(session: &Session, ids: &[String]) -> Result<Exit, Failure> {
    let mut exit = Exit::Done;
    for id in ids {
        let verb = format!("{id}:cancel");
        match session.client.post(&["api", "runs", &verb], None, None).await {
            Ok(answer) => {
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
            // One that cannot be cancelled does not save the others.
            Err(failure @ Failure::Problem(_)) if ids.len() > 1 => {
                session.show.failure(&failure);
                exit = failure.exit();
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit)
}
