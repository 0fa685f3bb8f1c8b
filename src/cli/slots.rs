//! `ductor slots …`: slot pools, who holds slots and who waits.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::pauses::{self, PauseArguments};
use super::session::Session;
use super::show::{Fit, Show, dash};
use super::table::{Kind, Table};
use crate::words::time::Millis;

/// Cells of a bar.
const BAR_MAX: usize = 20;
/// Closed entries shown of a slot pool.
const CLOSED_SHOWN: usize = 5;

/// What can be done with slot pools.
#[derive(Debug, Subcommand)]
pub(super) enum SlotsCommand {
    /// All slot pools with what is used and what waits.
    Ls,
    /// One slot pool: its entries with place, reason, priority and deadline.
    Show(PoolArguments),
    /// Cancel an entry that waits.
    #[command(
        after_help = "Example:\n  ductor slots cancel nightly 0f3a…\n\nThe key stands in `ductor slots show nightly`."
    )]
    Cancel(CancelArguments),
    /// Admit nothing more; what runs goes on, what comes is queued.
    #[command(
        after_help = "Examples:\n  ductor slots pause nightly --for 1h --note 'database upgrade'\n  ductor slots pause nightly"
    )]
    Pause(PausePoolArguments),
    /// End a pause.
    Resume(PoolArguments),
}

/// A slot pool by its name.
#[derive(Debug, Clone, Args)]
pub(super) struct PoolArguments {
    /// The slot pool's name.
    #[arg(value_name = "NAME")]
    name: String,
}

/// Arguments of `slots cancel`.
#[derive(Debug, Clone, Args)]
pub(super) struct CancelArguments {
    /// The slot pool's name.
    #[arg(value_name = "NAME")]
    name: String,
    /// The entry's key.
    #[arg(value_name = "KEY")]
    key: String,
}

/// Arguments of `slots pause`.
#[derive(Debug, Clone, Args)]
pub(super) struct PausePoolArguments {
    /// The slot pool's name.
    #[arg(value_name = "NAME")]
    name: String,
    #[command(flatten)]
    pause: PauseArguments,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: SlotsCommand) -> Result<Exit, Failure> {
    let client = &session.client;
    match command {
        SlotsCommand::Ls => list(session).await,
        SlotsCommand::Show(arguments) => {
            let body = client.get(&["pools", &arguments.name], &[]).await?;
            show_pool(session, &body)?;
            Ok(Exit::Done)
        }
        SlotsCommand::Cancel(arguments) => {
            let path = ["pools", &arguments.name, "queue", &arguments.key, "cancel"];
            let answer = client.post(&path, None, None).await?;
            told(session, &answer, &format!("entry {}: cancelled", arguments.key))
        }
        SlotsCommand::Pause(arguments) => {
            let body = arguments.pause.body(&session.show)?;
            let answer = client
                .post(&["pools", &arguments.name, "pause"], Some(&body), None)
                .await?;
            let paused = fields::member(&answer.value, &["paused"]);
            let sentence = pauses::sentence(paused, &session.show).unwrap_or_else(|| "paused".to_owned());
            told(session, &answer, &format!("pool {}: {sentence}", arguments.name))
        }
        SlotsCommand::Resume(arguments) => {
            let answer = client
                .post(&["pools", &arguments.name, "resume"], None, None)
                .await?;
            told(session, &answer, &format!("pool {}: active", arguments.name))
        }
    }
}

fn told(session: &Session, answer: &Body, sentence: &str) -> Result<Exit, Failure> {
    if session.show.json {
        session.show.document(&answer.text)?;
    } else {
        session.show.data(&format!("{sentence}\n"))?;
    }
    Ok(Exit::Done)
}

async fn list(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let query: &[(&str, String)] = if show.json {
        &[]
    } else {
        &[("entries", "none".to_owned())]
    };
    let body = session.client.get(&["pools"], query).await?;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let pools = fields::items(&body.value);
    if pools.is_empty() {
        show.nothing(
            "There are no slot pools. Write one under `pools:` in the configuration, and `pool:` at a job.",
        )?;
        return Ok(Exit::Done);
    }
    let mut table = Table::new(&[
        ("POOL", Kind::Whole),
        ("USED", Kind::Whole),
        ("", Kind::Whole),
        ("WAITING", Kind::Number),
        ("STATE", Kind::Sentence),
    ]);
    for pool in pools {
        let (used, slots) = capacity(pool);
        table.row(&[
            name_of(pool),
            bar(used, slots),
            format!("{used}/{slots}"),
            waiting(pool),
            state_of(pool, show),
        ]);
    }
    show.table(&table)?;
    Ok(Exit::Done)
}

fn name_of(pool: &Value) -> String {
    fields::text(pool, &["name"]).unwrap_or_default()
}

fn capacity(pool: &Value) -> (u64, u64) {
    let count = |name: &str| {
        fields::number(pool, &[name])
            .and_then(|number| u64::try_from(number).ok())
            .unwrap_or(0)
    };
    (count("used"), count("slots"))
}

fn waiting(pool: &Value) -> String {
    let queued = fields::number(pool, &["queued"]).unwrap_or(0);
    match fields::number(pool, &["max_queued"]) {
        Some(max) => format!("{queued}/{max}"),
        None => queued.to_string(),
    }
}

/// `[####......]`: one cell for each slot, or a share of 20.
fn bar(used: u64, slots: u64) -> String {
    let cells = usize::try_from(slots).unwrap_or(BAR_MAX).clamp(1, BAR_MAX);
    let wide = u64::try_from(cells).unwrap_or(1);
    let full = if slots == 0 {
        0
    } else {
        (used * wide).div_ceil(slots).min(wide)
    };
    let full = usize::try_from(full).unwrap_or(cells);
    format!("[{}{}]", "#".repeat(full), ".".repeat(cells - full))
}

fn state_of(pool: &Value, show: &Show) -> String {
    let mut parts = Vec::new();
    parts.extend(pauses::sentence(fields::member(pool, &["paused"]), show));
    if let Some(node) = fields::text(pool, &["differs_from"]) {
        parts.push(format!("configuration differs from node {node}"));
    } else if fields::truth(pool, &["draining"]) {
        let to = fields::number(pool, &["configured_slots"]).unwrap_or(0);
        parts.push(format!("draining to {to} slots"));
    }
    let why = fields::text(pool, &["blocked_by.kind"]).and_then(|kind| blocked_sentence(&kind));
    if let Some(why) = why {
        let since = fields::instant(pool, &["blocked_by.since"]);
        let since = since.map_or_else(String::new, |at| {
            format!(" since {}", show.face().time_of_day(at))
        });
        parts.push(format!("{why}{since}"));
    }
    if parts.is_empty() {
        "ok".to_owned()
    } else {
        parts.join("; ")
    }
}

/// What the first of the queue waits for; a pause of the pool is told already.
fn blocked_sentence(kind: &str) -> Option<String> {
    let what = match kind {
        "slots" => "the first waits for slots",
        "node" => "the first waits for its node",
        "job_paused" => "the job of the first is paused",
        "pool_paused" => return None,
        "forbid" => "the first waits for the end of another instance",
        "drift" => "the configurations of the daemons differ",
        other => return Some(format!("the first waits: {}", other.replace('_', " "))),
    };
    Some(what.to_owned())
}

fn show_pool(session: &Session, body: &Body) -> Result<(), Failure> {
    let show = &session.show;
    if show.json {
        return show.document(&body.text);
    }
    let pool = fields::data(&body.value);
    let (used, slots) = capacity(pool);
    show.pairs(&[
        ("pool", show.strong(&name_of(pool))),
        ("used", format!("{} {used} of {slots} slots", bar(used, slots))),
        ("waiting", waiting(pool)),
        ("state", state_of(pool, show)),
    ])?;
    let entries = fields::list(pool, &["entries"]);
    if entries.is_empty() {
        return show.nothing("\nNothing runs and nothing waits. `ductor job ls` shows what could.");
    }
    show.data("\n")?;
    let is_open = |entry: &&Value| matches!(word(entry).as_str(), "running" | "queued");
    let open: Vec<&Value> = entries.iter().filter(is_open).collect();
    let closed = entries.iter().filter(|entry| !is_open(entry));
    let closed: Vec<&Value> = closed.take(CLOSED_SHOWN).collect();
    if open.is_empty() {
        show.nothing("Nothing runs and nothing waits.")?;
    } else {
        show.fitting(|fit| entries_table(&open, show, fit))?;
    }
    if !closed.is_empty() {
        show.data(&format!("\n{}\n", show.strong("Ended last")))?;
        show.fitting(|fit| entries_table(&closed, show, fit))?;
    }
    if fields::truth(pool, &["truncated"]) {
        show.note("More entries wait than are shown.");
    }
    Ok(())
}

fn word(entry: &Value) -> String {
    fields::text(entry, &["state"]).unwrap_or_default()
}

fn entries_table(entries: &[&Value], show: &Show, fit: Fit) -> Table {
    let number = |entry: &Value, name: &str| fields::text(entry, &[name]).unwrap_or_else(dash);
    let key = |entry: &Value| fields::text(entry, &["id"]).unwrap_or_default();
    let job = |entry: &Value| fields::text(entry, &["job"]).unwrap_or_default();
    if fit == Fit::Wide {
        let mut table = Table::new(&[
            ("KEY", Kind::Whole),
            ("STATE", Kind::State),
            ("JOB", Kind::Whole),
            ("SLOTS", Kind::Number),
            ("PRIORITY", Kind::Number),
            ("DEADLINE", Kind::Whole),
            ("WHY", Kind::Sentence),
        ]);
        for entry in entries {
            let (slots, priority) = (number(entry, "slots"), number(entry, "priority"));
            let (deadline, why) = (show.instant(deadline(entry)), why(entry, show));
            table.row(&[
                key(entry),
                place(entry),
                job(entry),
                slots,
                priority,
                deadline,
                why,
            ]);
        }
        return table;
    }
    let mut table = Table::new(&[
        ("KEY", Kind::Whole),
        ("STATE", Kind::State),
        ("JOB", Kind::Name),
        ("SLOTS", Kind::Number),
        ("PRIO", Kind::Number),
        ("", Kind::Below),
    ]);
    for entry in entries {
        let (slots, priority) = (number(entry, "slots"), number(entry, "priority"));
        let mut below = why(entry, show);
        if let Some(at) = deadline(entry) {
            below = format!("until {}: {below}", show.moment(Some(at), fit));
        }
        table.row(&[key(entry), place(entry), job(entry), slots, priority, below]);
    }
    table
}

/// The state, and the place in the queue.
fn place(entry: &Value) -> String {
    let state = word(entry);
    match fields::number(entry, &["position"]) {
        Some(place) => format!("{state} #{place}"),
        None => state,
    }
}

/// Until when it waits.
fn deadline(entry: &Value) -> Option<Millis> {
    let expires = fields::instant(entry, &["expires_at"]);
    expires.filter(|_| word(entry) == "queued")
}

fn why(entry: &Value, show: &Show) -> String {
    if let Some(reason) = fields::text(entry, &["waiting_reason", "reason"]) {
        return reason;
    }
    if let Some(ended) = fields::instant(entry, &["finished_at"]) {
        return format!("ended {}", show.face().instant(ended));
    }
    match (
        fields::text(entry, &["claim.node"]),
        fields::instant(entry, &["claim.claimed_at"]),
    ) {
        (Some(node), Some(at)) => format!("on {node} since {}", show.face().instant(at)),
        (_, _) => dash(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::table::assert_80;
    use super::*;

    #[test]
    fn entries_fit_a_narrow_terminal() {
        let entry = json!({"id": "0123456789abcdef0123456789abcdef", "state": "queued", "position": 120, "slots": 2,
            "priority": -100, "job": "nightly-backup-of-all-shops", "expires_at": "1970-01-02T10:00:00Z",
            "waiting_reason": "Needs 2 slot(s); 1 available, and others are before it in the queue of the pool"});
        let table = entries_table(&[&entry], &Show::plain(), Fit::Narrow);
        assert_80(&table);
    }

    #[test]
    fn bars_show_what_is_used() {
        let table = [
            (0, 2, "[..]"),
            (1, 2, "[#.]"),
            (2, 2, "[##]"),
            (1, 100, "[#...................]"),
            (99, 100, "[####################]"),
            (3, 2, "[##]"),
            (0, 0, "[.]"),
        ];
        for (used, slots, text) in table {
            assert_eq!(bar(used, slots), text, "{used} of {slots}");
        }
    }
}
