//! `ductor status`, `ductor health`, `ductor version`.

use clap::Args;
use serde_json::{Value, json};

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::table::{Kind, Table, one_line};
use super::times;

/// Arguments of `health`.
#[derive(Debug, Clone, Args)]
#[command(after_help = "Example, in a container file:\n  HEALTHCHECK CMD [\"ductor\", \"health\"]")]
pub(super) struct HealthArguments {
    /// Ask whether work is accepted, not only whether the daemon lives.
    #[arg(long)]
    ready: bool,
}

/// Findings about the configuration in one status.
const WARNINGS_SHOWN: usize = 5;

/// Prints the verdict and the numbers; 1 when something is wrong.
pub(super) async fn status(session: &Session) -> Result<Exit, Failure> {
    let show = &session.show;
    let body = session.client.get(&["api", "status"], &[]).await?;
    let status = fields::data(&body.value);
    let exit = if is_healthy(status) {
        Exit::Done
    } else {
        Exit::Negative
    };
    if show.json {
        show.document(&body.text)?;
        return Ok(exit);
    }
    let verdict =
        fields::text(status, &["verdict"]).unwrap_or_else(|| "The daemon gives no verdict.".to_owned());
    show.paragraph(&show.strong(&one_line(&verdict)))?;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let text = |names: &[&str]| fields::text(status, names);
    pairs.extend(text(&["counts.running"]).map(|text| ("running", text)));
    pairs.extend(text(&["counts.waiting"]).map(|text| ("waiting", text)));
    let more = if fields::truth(status, &["counts.failed_is_lower_bound"]) {
        " or more"
    } else {
        ""
    };
    pairs.extend(text(&["counts.failed_last_24h"]).map(|text| ("failed, 24 h", format!("{text}{more}"))));
    pairs.extend(pools_line(status).map(|text| ("slots", text)));
    pairs.push(("nodes", nodes_line(status)));
    pairs.extend(uptime(status).map(|text| ("up", text)));
    pairs.extend(text(&["version"]).map(|text| ("version", text)));
    for run in fields::list(status, &["poisoned_runs"]) {
        let text = |name: &str| fields::text(run, &[name]).unwrap_or_default();
        pairs.push(("given up", format!("{} of job {}", text("run_id"), text("job"))));
    }
    pairs.extend(warnings(status).into_iter().map(|text| ("warning", text)));
    pairs.extend(drift(status).into_iter().map(|text| ("warning", text)));
    for job in fields::list(status, &["late_jobs"]) {
        let text = |name: &str| fields::text(job, &[name]).unwrap_or_default();
        pairs.push(("late", format!("{}: {}", text("job"), text("reason"))));
    }
    let dead = fields::number(status, &["dead_letters"]).unwrap_or(0);
    if dead > 0 {
        pairs.push(("dead letters", format!("{dead}, see `ductor dlq ls`")));
    }
    show.pairs(&pairs)?;
    fires(session, status)?;
    Ok(exit)
}

/// What is not as it should be in the files, a screen of it.
fn warnings(status: &Value) -> Vec<String> {
    let found = fields::list(status, &["configuration.warnings"]);
    let is_warning = |warning: &&Value| fields::text(warning, &["severity"]).as_deref() == Some("warning");
    let all: Vec<&Value> = found.iter().filter(is_warning).collect();
    let line = |warning: &&Value| {
        let text = |name: &str| fields::text(warning, &[name]).unwrap_or_default();
        one_line(&format!("{}: {}", text("pointer"), text("detail")))
    };
    let mut lines: Vec<String> = all.iter().take(WARNINGS_SHOWN).map(line).collect();
    if all.len() > WARNINGS_SHOWN {
        lines.push(format!("and {} more: ductor check", all.len() - WARNINGS_SHOWN));
    }
    lines
}

/// Where another daemon has loaded another configuration, a line for each of its kinds.
fn drift(status: &Value) -> Vec<String> {
    let mut lines = Vec::new();
    for pool in fields::list(status, &["drift.pools"]) {
        let text = |name: &str| fields::text(pool, &[name]).unwrap_or_default();
        lines.push(format!(
            "pool {}: configuration differs from node {}",
            text("name"),
            text("node")
        ));
    }
    let jobs = fields::list(status, &["drift.jobs"]);
    if let Some(first) = jobs.first() {
        let node = fields::text(first, &["node"]).unwrap_or_default();
        let names = jobs.iter().filter_map(|job| fields::text(job, &["name"]));
        let names: Vec<String> = names.take(WARNINGS_SHOWN).collect();
        let rest = jobs.len().saturating_sub(WARNINGS_SHOWN);
        let more = if rest > 0 {
            format!(" and {rest} more")
        } else {
            String::new()
        };
        lines.push(format!(
            "jobs that node {node} has loaded in another way: {}{more}",
            names.join(", ")
        ));
    }
    lines
}

fn uptime(status: &Value) -> Option<String> {
    let seconds = u64::try_from(fields::number(status, &["uptime_seconds"])?).ok()?;
    Some(times::length(seconds * 1_000))
}

/// `n-1 live (this one), n-2 gone`; the dead ones are counted when there are many.
fn nodes_line(status: &Value) -> String {
    let own = fields::text(status, &["node"]).unwrap_or_default();
    let nodes = fields::list(status, &["nodes"]);
    let mut live: Vec<String> = Vec::new();
    let mut gone = 0;
    for node in nodes {
        let name = fields::text(node, &["name"]).unwrap_or_default();
        match fields::text(node, &["state"]).as_deref() {
            Some("gone") | None => gone += 1,
            Some(state) if name == own => live.insert(0, format!("{name} {state} (answers here)")),
            Some(state) => live.push(format!("{name} {state}")),
        }
    }
    if nodes.is_empty() {
        return own;
    }
    if gone > 0 {
        live.push(format!("{gone} gone"));
    }
    live.join(", ")
}

/// `warehouse 2/4, 3 waiting; mail 0/1`.
fn pools_line(status: &Value) -> Option<String> {
    let pools = fields::list(status, &["pools"]);
    let one = |pool: &Value| {
        let name = fields::text(pool, &["name"]).unwrap_or_default();
        let number = |name: &str| fields::number(pool, &[name]);
        let Some((used, slots)) = number("used").zip(number("slots")) else {
            return format!("{name} cannot be read");
        };
        let mut text = format!("{name} {used}/{slots}");
        let waiting = number("queued").filter(|queued| *queued > 0);
        text.extend(waiting.map(|queued| format!(", {queued} waiting")));
        for state in ["paused", "draining"] {
            if fields::truth(pool, &[state]) {
                text = format!("{text}, {state}");
            }
        }
        text
    };
    (!pools.is_empty()).then(|| pools.iter().map(one).collect::<Vec<_>>().join("; "))
}

/// Ready, and every slot pool can be read. Failed runs are the business of their jobs.
fn is_healthy(status: &Value) -> bool {
    let unreadable =
        |pool: &Value| fields::member(pool, &["readable"]).and_then(Value::as_bool) == Some(false);
    let not_ready = fields::member(status, &["ready"]).and_then(Value::as_bool) == Some(false);
    !not_ready && !fields::list(status, &["pools"]).iter().any(unreadable)
}

fn fires(session: &Session, status: &Value) -> Result<(), Failure> {
    let fires = fields::list(status, &["next_fires"]);
    if fires.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("NEXT", Kind::Whole), ("", Kind::Whole), ("JOB", Kind::Name)]);
    let now = session.show.now();
    for fire in fires {
        let at = fields::instant(fire, &["at"]);
        table.row(&[
            session.show.instant(at),
            at.map_or_else(String::new, |at| times::relative(at, now)),
            fields::text(fire, &["job"]).unwrap_or_default(),
        ]);
    }
    session.show.data("\n")?;
    session.show.table(&table)
}

/// One word, and 0 or 1.
pub(super) async fn health(session: &Session, arguments: &HealthArguments) -> Result<Exit, Failure> {
    let page = if arguments.ready { "readyz" } else { "livez" };
    let (status, text) = session.client.probe(&[page], &[]).await?;
    let good = (200..300).contains(&status);
    let word = match (good, arguments.ready) {
        (true, true) => "ready",
        (true, false) => "alive",
        (false, true) => "not ready",
        (false, false) => "unhealthy",
    };
    if session.show.json {
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        session.show.json_line(&json!({"status": word, "answer": body}))?;
    } else {
        session.show.data(&format!("{word}\n"))?;
    }
    Ok(if good { Exit::Done } else { Exit::Negative })
}

/// Both versions; the daemon may be away.
pub(super) async fn version(session: &Session) -> Result<Exit, Failure> {
    let ours = env!("CARGO_PKG_VERSION");
    let asked = session.client.get(&["version"], &[]).await;
    let show = &session.show;
    let (theirs, document) = match &asked {
        Ok(body) => (
            fields::text(fields::data(&body.value), &["version"]),
            body.value.clone(),
        ),
        Err(_) => (None, Value::Null),
    };
    if show.json {
        show.json_line(&json!({"client": {"version": ours}, "daemon": document}))?;
        return Ok(Exit::Done);
    }
    let daemon = match (&asked, theirs) {
        (Ok(_), theirs) => theirs.unwrap_or_else(|| "unknown".to_owned()),
        (Err(Failure::Unreachable { .. }), _) => format!("not reachable at {}", session.client.server()),
        (Err(failure), _) => failure.text().trim_end().to_owned(),
    };
    show.pairs(&[("client", ours.to_owned()), ("daemon", daemon)])?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_slots_are_told_in_a_line() {
        let status = json!({"node": "n-1", "nodes": [{"name": "n-0", "state": "live"},
            {"name": "n-1", "state": "live"}, {"name": "n-2", "state": "gone"}],
            "pools": [{"name": "a", "readable": true, "slots": 4, "used": 2, "queued": 3, "paused": true},
            {"name": "b", "readable": true, "slots": 1, "used": 0, "queued": 0}, {"name": "c", "readable": false}]});
        assert_eq!(nodes_line(&status), "n-1 live (answers here), n-0 live, 1 gone");
        assert_eq!(nodes_line(&json!({"node": "n-1"})), "n-1");
        assert_eq!(
            pools_line(&status).unwrap(),
            "a 2/4, 3 waiting, paused; b 0/1; c cannot be read"
        );
        assert_eq!(pools_line(&json!({})), None);
    }

    #[test]
    fn a_daemon_that_is_not_ready_is_unhealthy() {
        let check = |status: Value, healthy: bool| assert_eq!(is_healthy(&status), healthy, "{status}");
        check(json!({"ready": true, "pools": [{"readable": true}]}), true);
        check(json!({"ready": false}), false);
        check(json!({"ready": true, "pools": [{"readable": false}]}), false);
        check(json!({}), true);
    }
}
