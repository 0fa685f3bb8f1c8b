//! `ductor node ls`.

use clap::Subcommand;
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table};

/// What can be asked about daemons.
#[derive(Debug, Subcommand)]
pub(super) enum NodeCommand {
    /// All daemons that have used this state directory.
    Ls,
}

/// Lists the daemons.
pub(super) async fn nodes(session: &Session, command: &NodeCommand) -> Result<Exit, Failure> {
    let NodeCommand::Ls = command;
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
    Ok(Exit::Done)
}

fn nodes_table(nodes: &[Value], show: &Show, fit: Fit) -> Table {
    let mut table = Table::new(&[
        ("NODE", Kind::Whole),
        ("STATE", Kind::State),
        ("PID", Kind::Number),
        ("STARTED", Kind::Whole),
        ("LAST SEEN", Kind::Whole),
    ]);
    for node in nodes {
        table.row(&[
            fields::text(node, &["name"]).unwrap_or_default(),
            fields::text(node, &["state"]).unwrap_or_else(dash),
            fields::text(node, &["pid"]).unwrap_or_else(dash),
            show.moment(fields::instant(node, &["started_at"]), fit),
            show.moment(fields::instant(node, &["last_seen"]), fit),
        ]);
    }
    table
}
