//! `ductor pool …`: pools of recipients. Slot pools are `ductor slots`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::declared::{
    IdArguments, ShowArguments, UpdateArguments, confirm, plain_word, pool_id, read_fields, sentence,
    show_object, told, wire_word,
};
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::dash;
use super::table::{Kind, Table, one_line};

/// What can be done with pools of recipients.
#[derive(Debug, Subcommand)]
pub(super) enum PoolCommand {
    /// All pools, newest first.
    Ls(ListArguments),
    /// One pool: all that is set of it.
    Show(ShowArguments),
    /// Numbers over its recipients, and how much waits.
    Stats(IdArguments),
    /// Make a pool of a file.
    #[command(after_help = "\
The file is JSON or YAML with the fields of a pool; `-` is standard input.

Example:
  echo '{\"name\": \"desk\", \"strategy\": \"longest_idle\"}' | ductor pool create -")]
    Create(CreateArguments),
    /// Change what a file says of a pool; everything else stays.
    Update(UpdateArguments),
    /// Let routing into a pool go on.
    Enable(SwitchArguments),
    /// Stop routing into a pool at once.
    #[command(after_help = "What it has waits; `ductor pool enable` lets it go on.")]
    Disable(SwitchArguments),
    /// Count the work of its recipients from here on: all have room again.
    Reset(SureArguments),
    /// Remove a pool and its rules; its recipients stay.
    Rm(RemoveArguments),
}

/// Arguments of `pool ls`.
#[derive(Debug, Clone, Args)]
pub(super) struct ListArguments {
    /// Only of this status: active, paused, disabled.
    #[arg(long, value_name = "STATUS")]
    status: Vec<String>,
}

/// Arguments of `pool create`.
#[derive(Debug, Clone, Args)]
pub(super) struct CreateArguments {
    /// Its fields.
    #[arg(value_name = "FILE")]
    file: PathBuf,
}

/// Arguments of `pool enable` and `pool disable`.
#[derive(Debug, Clone, Args)]
pub(super) struct SwitchArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    id: String,
    /// Why; others read it.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Only if it still has this record version.
    #[arg(long, value_name = "N")]
    expected_version: Option<u64>,
}

/// Arguments of `pool reset`.
#[derive(Debug, Clone, Args)]
pub(super) struct SureArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    id: String,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Arguments of `pool rm`.
#[derive(Debug, Clone, Args)]
pub(super) struct RemoveArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    id: String,
    /// Not while rules or other pools name it.
    #[arg(long)]
    if_unreferenced: bool,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: PoolCommand) -> Result<Exit, Failure> {
    match command {
        PoolCommand::Ls(arguments) => list(session, &arguments).await,
        PoolCommand::Show(arguments) => {
            let id = pool_id(session, &arguments.id).await?;
            let path = ["api", "pools", &id];
            let body = session.client.get(&path, &arguments.query()).await?;
            show_object(session, &body)
        }
        PoolCommand::Stats(arguments) => stats(session, &arguments.id).await,
        PoolCommand::Create(arguments) => {
            let given = read_fields(&arguments.file)?;
            let answer = session.client.post(&["api", "pools"], Some(&given), None).await?;
            told(session, &answer, &sentence("pool", &answer, "is there"))
        }
        PoolCommand::Update(arguments) => {
            let given = read_fields(&arguments.file)?;
            let id = pool_id(session, &arguments.id).await?;
            let path = ["api", "pools", &id];
            let changed = session.client.patch(&path, &given, arguments.expected_version);
            let answer = changed.await?;
            told(session, &answer, &sentence("pool", &answer, "is so now"))
        }
        PoolCommand::Enable(arguments) => switch(session, &arguments, true).await,
        PoolCommand::Disable(arguments) => switch(session, &arguments, false).await,
        PoolCommand::Reset(arguments) => reset(session, &arguments).await,
        PoolCommand::Rm(arguments) => remove(session, &arguments).await,
    }
}

async fn list(session: &Session, arguments: &ListArguments) -> Result<Exit, Failure> {
    let show = &session.show;
    let statuses = arguments.status.iter();
    let query: Vec<(&str, String)> = statuses
        .map(|word| ("status", wire_word("STATUS_", word)))
        .collect();
    let body = session.client.list(&["api", "pools"], &query, usize::MAX).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let pools = fields::items(&body.value);
    if pools.is_empty() {
        show.nothing("There are no such pools. `ductor pool create FILE` makes one.")?;
        return Ok(Exit::Done);
    }
    show.fitting(|_| pools_table(pools))?;
    Ok(Exit::Done)
}

fn pools_table(pools: &[Value]) -> Table {
    let mut table = Table::new(&[
        ("POOL", Kind::Whole),
        ("NAME", Kind::Name),
        ("STATUS", Kind::State),
        ("STRATEGY", Kind::Sentence),
        ("IN", Kind::Number),
    ]);
    for pool in pools {
        let text = |name: &str| fields::text(pool, &[name]);
        table.row(&[
            text("id").unwrap_or_default(),
            text("name").map_or_else(dash, |name| one_line(&name)),
            status_of(pool),
            strategy_of(pool),
            fields::list(pool, &["recipient_ids"]).len().to_string(),
        ]);
    }
    table
}

fn status_of(pool: &Value) -> String {
    if fields::truth(pool, &["config.kill_switch"]) {
        return "disabled".to_owned();
    }
    let word = fields::text(pool, &["status"]).unwrap_or_else(|| "STATUS_ACTIVE".to_owned());
    plain_word(&word)
}

fn strategy_of(pool: &Value) -> String {
    let named = fields::text(
        pool,
        &[
            "strategy",
            "config.default_strategy",
            "config.default_recipe",
            "config.default_strategy_pipeline",
        ],
    );
    named.unwrap_or_else(|| match fields::text(pool, &["config.routing_mode"]) {
        Some(mode) if mode == "claim" => "claimed".to_owned(),
        Some(_) | None => dash(),
    })
}

async fn stats(session: &Session, given: &str) -> Result<Exit, Failure> {
    let show = &session.show;
    let id = pool_id(session, given).await?;
    let body = session.client.get(&["api", "pools", &id, "stats"], &[]).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let data = fields::data(&body.value);
    let number = |name: &str| fields::number(data, &[name]).unwrap_or(0);
    let share = data.get("utilization").and_then(Value::as_f64).unwrap_or(0.0);
    let waits = match (number("queue_depth"), number("oldest_queued_seconds")) {
        (0, _) => "nothing".to_owned(),
        (depth, seconds) => format!("{depth}, the oldest for {seconds} s"),
    };
    show.pairs(&[
        (
            "recipients",
            format!(
                "{} of {} active",
                number("active_recipients"),
                number("total_recipients")
            ),
        ),
        (
            "capacity",
            format!(
                "{} of {} taken ({:.0} %)",
                number("used_capacity"),
                number("total_capacity"),
                share * 100.0
            ),
        ),
        ("waits", waits),
        ("stale", format!("{} assignments", number("stale_assignments"))),
    ])?;
    Ok(Exit::Done)
}

async fn switch(session: &Session, arguments: &SwitchArguments, enabled: bool) -> Result<Exit, Failure> {
    let id = pool_id(session, &arguments.id).await?;
    let mut body = json!({"enabled": enabled});
    if let Some(reason) = &arguments.reason {
        body["reason"] = Value::from(reason.as_str());
    }
    if let Some(version) = arguments.expected_version {
        body["expected_version"] = Value::from(version);
    }
    let last = format!("{id}:set_enabled");
    let answer = session
        .client
        .post(&["api", "pools", &last], Some(&body), None)
        .await?;
    let said = if enabled { "routes again" } else { "routes nothing" };
    told(session, &answer, &sentence("pool", &answer, said))
}

async fn reset(session: &Session, arguments: &SureArguments) -> Result<Exit, Failure> {
    let given = &arguments.id;
    let id = pool_id(session, given).await?;
    let question = format!("Forget what the recipients of '{given}' work on? All of them have room then.");
    confirm(arguments.yes, question, format!("resetting '{given}'")).await?;
    let path = ["api", "pools", &id, "capacity", "reset"];
    let answer = session.client.post(&path, None, None).await?;
    let affected = fields::number(fields::data(&answer.value), &["affected"]).unwrap_or(0);
    told(
        session,
        &answer,
        &format!("pool {given}: {affected} recipients count from here on"),
    )
}

async fn remove(session: &Session, arguments: &RemoveArguments) -> Result<Exit, Failure> {
    let given = &arguments.id;
    let id = pool_id(session, given).await?;
    let question = format!("Remove the pool '{given}' and its rules? Its recipients stay.");
    confirm(arguments.yes, question, format!("removing '{given}'")).await?;
    let query: Vec<(&str, String)> = arguments
        .if_unreferenced
        .then(|| ("if_unreferenced", "true".to_owned()))
        .into_iter()
        .collect();
    let answer = session
        .client
        .delete_asked(&["api", "pools", &id], &query)
        .await?;
    let data = fields::data(&answer.value);
    let number = |name: &str| fields::number(data, &[name]).unwrap_or(0);
    told(
        session,
        &answer,
        &format!(
            "pool {given} is gone with {} rules; {} recipients have left it, {} units of work are routed again",
            number("removed_rules"),
            number("detached_recipients"),
            number("rerouted")
        ),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cli::table::assert_80;

    #[test]
    fn a_table_of_pools_fits_eighty_columns() {
        let pool = json!({"id": "019ad0e0-0001-7000-8000-000000000001", "name": "a name that is rather long for a pool",
            "strategy": "smooth_weighted_round_robin", "recipient_ids": ["1", "2"], "config": {"kill_switch": true}});
        assert_80(&pools_table(std::slice::from_ref(&pool)));
        assert_eq!(status_of(&pool), "disabled");
        assert_eq!(status_of(&json!({})), "active");
        assert_eq!(
            strategy_of(&json!({"config": {"routing_mode": "claim"}})),
            "claimed"
        );
    }
}
