//! `ductor node …`: the daemons of a state directory.

use std::time::Duration;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table, one_line};

/// Between two looks at a node that is draining.
const LOOK: Duration = Duration::from_millis(250);

/// What can be done with daemons.
#[derive(Debug, Subcommand)]
pub(super) enum NodeCommand {
    /// All daemons that have used this state directory.
    Ls,
    /// Let a daemon begin nothing more; what it runs goes on, others take over.
    #[command(after_help = "\
Waits until its last command has ended; --timeout bounds that, and with
--no-wait it does not wait. It holds over restarts, until `node undrain`.

Examples:
  ductor node drain web-1 --reason 'new disk'
  ductor node drain web-1 --timeout 10m    exit 124 if it takes longer")]
    Drain(DrainArguments),
    /// Let a daemon begin work again.
    Undrain(NodeArguments),
}

/// A daemon by its name.
#[derive(Debug, Clone, Args)]
pub(super) struct NodeArguments {
    /// The node's name, as `ductor node ls` shows it.
    #[arg(value_name = "NAME")]
    name: String,
}

/// Arguments of `node drain`.
#[derive(Debug, Clone, Args)]
pub(super) struct DrainArguments {
    /// The node's name, as `ductor node ls` shows it.
    #[arg(value_name = "NAME")]
    name: String,
    /// Why, for whoever finds it drained.
    #[arg(long, visible_alias = "note", value_name = "TEXT")]
    reason: Option<String>,
    /// Do not wait for what it runs.
    #[arg(long)]
    no_wait: bool,
}

/// Does it.
pub(super) async fn nodes(session: &Session, command: &NodeCommand) -> Result<Exit, Failure> {
    match command {
        NodeCommand::Ls => list(session).await,
        NodeCommand::Drain(arguments) => drain(session, arguments).await,
        NodeCommand::Undrain(arguments) => {
            let body = ask(session, &arguments.name, "undrain", None).await?;
            let name = &arguments.name;
            let sentence = format!("node {name} begins work again");
            say(&session.show, &body, &sentence)?;
            Ok(Exit::Done)
        }
    }
}

async fn ask(session: &Session, name: &str, verb: &str, body: Option<&Value>) -> Result<Body, Failure> {
    let last = format!("{name}:{verb}");
    session.client.post(&["api", "nodes", &last], body, None).await
}

fn say(show: &Show, body: &Body, sentence: &str) -> Result<(), Failure> {
    if show.json {
        show.document(&body.text)
    } else {
        show.data(&format!("{sentence}\n"))
    }
}

async fn drain(session: &Session, arguments: &DrainArguments) -> Result<Exit, Failure> {
    let name = &arguments.name;
    let body = arguments.reason.as_ref().map(|reason| json!({"note": reason}));
    let mut answer = ask(session, name, "drain", body.as_ref()).await?;
    session.say_when_left(format!(
        "node {name} stays drained; `ductor node undrain {name}` lets it begin work again"
    ));
    let mut told = None;
    loop {
        let running = running_of(&answer);
        if running == 0 || arguments.no_wait {
            let sentence = match running {
                0 => format!("node {name} is drained"),
                1 => format!("node {name} begins nothing more; 1 command still runs"),
                _ => format!("node {name} begins nothing more; {running} commands still run"),
            };
            say(&session.show, &answer, &sentence)?;
            return Ok(Exit::Done);
        }
        if told != Some(running) {
            let commands = if running == 1 { "command" } else { "commands" };
            session
                .show
                .note(&format!("waiting for {running} {commands} of node {name}"));
            told = Some(running);
        }
        tokio::time::sleep(LOOK).await;
        // The same wish again changes nothing and shows where it stands.
        answer = ask(session, name, "drain", None).await?;
    }
}

fn running_of(body: &Body) -> u64 {
    let node = fields::data(&body.value);
    let is_gone = fields::text(node, &["state"]).as_deref() == Some("gone");
    let running = fields::number(node, &["running"]).filter(|_| !is_gone);
    running.and_then(|number| u64::try_from(number).ok()).unwrap_or(0)
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.list(&["api", "nodes"], &[], usize::MAX).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let nodes = fields::items(&body.value);
    if nodes.is_empty() {
        show.nothing("No daemon has used this state directory yet. Start one with `ductor serve`.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|fit| nodes_table(nodes, show, fit))?;
    for node in nodes {
        for sentence in sentences(node, show) {
            show.note(&sentence);
        }
    }
    Ok(Exit::Done)
}

/// What the table has no room for: what waits for a daemon that does not work, and why it does not.
fn sentences(node: &Value, show: &Show) -> Vec<String> {
    let text = |name: &str| fields::text(node, &[name]).unwrap_or_default();
    let (name, state) = (text("name"), text("state"));
    let mut found = Vec::new();
    if let Some(drain) = node.get("drain").filter(|drain| !drain.is_null()) {
        let since = show.instant(fields::instant(drain, &["since"]));
        let given = fields::text(drain, &["note"]).filter(|text| !text.is_empty());
        let reason = given
            .map(|text| format!(": {}", one_line(&text)))
            .unwrap_or_default();
        found.push(format!("{name} is drained since {since}{reason}"));
    }
    let waiting = fields::number(node, &["waiting"]).unwrap_or(0);
    if waiting > 0 && state != "live" {
        let what = if waiting == 1 {
            "1 start waits"
        } else {
            &format!("{waiting} starts wait")
        };
        let until = if state == "gone" {
            "to come back"
        } else {
            "to be undrained"
        };
        found.push(format!("{what} for {name} {until}: no other node may run them"));
    }
    found
}

fn nodes_table(nodes: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("NODE", Kind::Whole),
        ("STATE", Kind::State),
        ("RUNS", Kind::Number),
        ("PID", Kind::Number),
        ("STARTED", Kind::Whole),
        ("LAST SEEN", Kind::Whole),
    ]);
    for node in nodes {
        let is_gone = fields::text(node, &["state"]).as_deref() == Some("gone");
        let pid = fields::text(node, &["pid"]).filter(|_| !is_gone);
        table.row(&[
            fields::text(node, &["name"]).unwrap_or_default(),
            fields::text(node, &["state"]).unwrap_or_else(dash),
            fields::text(node, &["running"]).unwrap_or_else(dash),
            pid.unwrap_or_else(dash),
            show.moment(fields::instant(node, &["started_at"]), fit),
            show.moment(fields::instant(node, &["last_seen"]), fit),
        ]);
    }
    table
}
