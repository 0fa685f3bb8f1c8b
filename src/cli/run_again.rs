//! `ductor run retry` and `ductor run rerun`: the next attempt of a run now, or its job once more as a new run.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::jobs;
use super::run_bulk;
use super::session::Session;
use crate::domain::workflow::bulk::BulkWish;

pub(super) const RETRY_EXAMPLES: &str = "\
Examples:
  ductor run retry run_01…
  ductor run retry run_01… --from review                of a workflow
  ductor run retry --where 'state:failed since:1h'      shows which, and asks
  ductor run retry --where 'job:backup' --yes

By its id, a run that waits for its next attempt takes it now. The ended run
of a workflow is tried again as a new run: what was done before the step, or
what has not failed, is taken over.

With a filter, runs that failed or were cancelled are meant too: their
jobs start anew, each once however many of its runs match, and each run of a
workflow is tried again where it failed, unless that was done already.";

pub(super) const RERUN_EXAMPLES: &str = "\
Examples:
  ductor run rerun run_01…
  ductor run rerun run_01… --follow

The job starts as it is configured now, by hand; the new run names the old one.";

/// Arguments of `run retry`.
#[derive(Debug, Clone, Args)]
pub(super) struct RetryArguments {
    /// The runs' ids.
    #[arg(value_name = "ID", required_unless_present = "filter")]
    ids: Vec<String>,
    /// All runs like this instead: 'job:x since:1h'.
    #[arg(long = "where", value_name = "FILTER", conflicts_with = "ids")]
    filter: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// The step of a workflow's run from which it is tried again; what failed unless given.
    #[arg(long, value_name = "STEP", conflicts_with = "filter")]
    from: Option<String>,
}

/// Arguments of `run rerun`.
#[derive(Debug, Clone, Args)]
pub(super) struct RerunArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Wait until the new run ends; exit 1 if it does not succeed.
    #[arg(long)]
    wait: bool,
    /// Show its output, and wait.
    #[arg(long, short)]
    follow: bool,
    /// Failed attempts are repeated, as those of a fire are.
    #[arg(long)]
    retries: bool,
}

/// Takes the next attempt now.
pub(super) async fn retry(session: &Session, arguments: &RetryArguments) -> Result<Exit, Failure> {
    if let Some(filter) = &arguments.filter {
        return run_bulk::perform(session, BulkWish::Retry, filter, arguments.yes).await;
    }
    let mut exit = Exit::Done;
    for id in &arguments.ids {
        match retry_one(session, id, arguments.from.as_deref()).await {
            Ok(()) => {}
            // One that cannot be retried does not save the others.
            Err(failure @ Failure::Problem(_)) if arguments.ids.len() > 1 => {
                session.show.failure(&failure);
                exit = failure.exit();
            }
            Err(failure) => return Err(failure),
        }
    }
    Ok(exit)
}

async fn retry_one(session: &Session, id: &str, from: Option<&str>) -> Result<(), Failure> {
    let show = &session.show;
    let verb = format!("{id}:retry");
    let body = from.map(|from| json!({"from": from}));
    let answer = session
        .client
        .post(&["api", "runs", &verb], body.as_ref(), None)
        .await;
    let answer = answer.inspect_err(|failure| {
        let ended = if let Failure::Problem(problem) = failure {
            problem.member("state")
        } else {
            None
        };
        let can_be_rerun =
            |state: &String| matches!(state.as_str(), "failed" | "cancelled" | "succeeded" | "skipped");
        if ended.as_ref().is_some_and(can_be_rerun) && !show.json {
            show.note(&format!("To start its job anew: ductor run rerun {id}"));
        }
    })?;
    if show.json {
        return show.document(&answer.text);
    }
    let data = fields::data(&answer.value);
    if let Some(run) = fields::text(data, &["id"]).filter(|run| run != id) {
        return show.data(&format!("{id} is tried again as {run}\n"));
    }
    let attempt = fields::text(data, &["attempt"]).unwrap_or_default();
    show.data(&format!("{id} takes attempt {attempt} now\n"))
}

/// Starts the job anew.
pub(super) async fn rerun(session: &Session, arguments: &RerunArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let verb = format!("{}:rerun", arguments.id);
    let body = arguments.retries.then(|| json!({"retries": true}));
    let answer = session
        .client
        .post(&["api", "runs", &verb], body.as_ref(), None)
        .await?;
    let begun = fields::data(&answer.value);
    let text = |name: &str| fields::text(begun, &[name]).unwrap_or_default();
    let (run, job) = (text("id"), text("job"));
    let sentence = match fields::text(begun, &["pool"]) {
        Some(pool) => format!(
            "{job} queued anew as {run} in pool {pool} (entry {})",
            text("queue_id")
        ),
        None => format!("{job} started anew as {run}"),
    };
    if arguments.wait || arguments.follow {
        show.note(&sentence);
        return jobs::watch(session, &run, arguments.follow).await;
    }
    if show.json {
        show.document(&answer.text)?;
    } else {
        show.data(&format!("{sentence}\n"))?;
    }
    Ok(Exit::Done)
}
