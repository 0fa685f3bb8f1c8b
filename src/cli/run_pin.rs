//! `ductor run pin` and `ductor run unpin`: runs that retention leaves alone.

use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::failure::Failure;
use super::session::Session;
use super::workflows::told;

/// Arguments of `run pin`.
#[derive(Debug, Clone, Args)]
pub(super) struct PinArguments {
    /// The run's id.
    #[arg(value_name = "ID")]
    id: String,
    /// Why, for whoever finds it pinned.
    #[arg(long, visible_alias = "note", value_name = "TEXT")]
    reason: Option<String>,
}

/// Keeps a run.
pub(super) async fn pin(session: &Session, arguments: &PinArguments) -> Result<Exit, Failure> {
    let (id, verb) = (&arguments.id, format!("{}:pin", arguments.id));
    let body = arguments.reason.as_ref().map(|reason| json!({"reason": reason}));
    let client = &session.client;
    let answer = client.post(&["api", "runs", &verb], body.as_ref(), None).await?;
    let sentence = format!("{id} is kept with its logs; `ductor run unpin {id}` ends that");
    told(session, &answer, &sentence)
}

/// Keeps it no longer than others.
pub(super) async fn unpin(session: &Session, id: &str) -> Result<Exit, Failure> {
    let verb = format!("{id}:unpin");
    let answer = session.client.post(&["api", "runs", &verb], None, None).await?;
    told(session, &answer, &format!("{id} is kept no longer than others"))
}
