//! `ductor approval …`: what waits for a person, and the answers.

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show};
use super::table::{Kind, Table};
use super::workflows::told;

/// What can be done with approvals and checkpoints.
#[derive(Debug, Subcommand)]
pub(super) enum ApprovalCommand {
    /// Steps that wait for somebody, with their ids.
    Ls,
    /// Say yes; the run goes on.
    Approve(DecideArguments),
    /// Say no; the step fails or is skipped, as its workflow says.
    Reject(DecideArguments),
    /// Give a checkpoint the value that it waits for.
    #[command(after_help = "\
Example:
  ductor approval answer run_01…:form '{\"size\": 3}'")]
    Answer(AnswerArguments),
}

/// Arguments of a decision.
#[derive(Debug, Clone, Args)]
pub(super) struct DecideArguments {
    /// The id that `approval ls` shows: RUN:STEP.
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for people.
    #[arg(long, value_name = "TEXT", visible_alias = "reason")]
    note: Option<String>,
}

/// A step of a run, and why.
#[derive(Debug, Clone, Args)]
pub(super) struct StepArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
    /// The step that waits.
    #[arg(value_name = "STEP")]
    step: String,
    /// Why, for people.
    #[arg(long, value_name = "TEXT", visible_alias = "note")]
    reason: Option<String>,
}

/// The same decision, by the run and its step.
pub(super) async fn decide_step(
    session: &Session,
    arguments: &StepArguments,
    verb: &str,
    word: &str,
) -> Result<Exit, Failure> {
    let decision = DecideArguments {
        id: format!("{}:{}", arguments.id, arguments.step),
        note: arguments.reason.clone(),
    };
    decide(session, &decision, verb, word).await
}

/// Arguments of an answer.
#[derive(Debug, Clone, Args)]
pub(super) struct AnswerArguments {
    /// The id that `approval ls` shows: RUN:STEP.
    #[arg(value_name = "ID")]
    id: String,
    /// The value: JSON, or a text; null unless given.
    #[arg(value_name = "JSON")]
    value: Option<String>,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: ApprovalCommand) -> Result<Exit, Failure> {
    match command {
        ApprovalCommand::Ls => list(session).await,
        ApprovalCommand::Approve(arguments) => decide(session, &arguments, "approve", "approved").await,
        ApprovalCommand::Reject(arguments) => decide(session, &arguments, "reject", "rejected").await,
        ApprovalCommand::Answer(arguments) => {
            let text = arguments.value.unwrap_or_else(|| "null".to_owned());
            let value = serde_json::from_str(&text).unwrap_or_else(|_| Value::from(text));
            let body = json!({"value": value});
            say(session, &arguments.id, "resume", Some(&body), "answered").await
        }
    }
}

async fn decide(
    session: &Session,
    arguments: &DecideArguments,
    verb: &str,
    word: &str,
) -> Result<Exit, Failure> {
    let body = arguments.note.as_ref().map(|note| json!({"note": note}));
    say(session, &arguments.id, verb, body.as_ref(), word).await
}

async fn say(
    session: &Session,
    id: &str,
    verb: &str,
    body: Option<&Value>,
    word: &str,
) -> Result<Exit, Failure> {
    let last = format!("{id}:{verb}");
    let answer = session
        .client
        .post(&["api", "checkpoints", &last], body, None)
        .await?;
    told(session, &answer, &format!("{id} is {word}"))
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.get(&["api", "checkpoints"], &[]).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let open = fields::items(&body.value);
    if open.is_empty() {
        show.nothing("Nothing waits for you.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| open_table(open, show, fit))?;
    Ok(Exit::Done)
}

fn open_table(open: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("ID", Kind::Whole),
        ("WORKFLOW", Kind::Whole),
        ("KIND", Kind::Whole),
        ("SINCE", Kind::Whole),
    ]);
    for each in open {
        let text = |name: &str| fields::text(each, &[name]).unwrap_or_default();
        let since = show.moment(fields::instant(each, &["since"]), fit);
        table.row(&[text("id"), text("workflow"), text("kind"), since]);
    }
    table
}
