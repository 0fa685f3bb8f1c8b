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
    show.data(&format!("{}\n", show.strong(&one_line(&verdict))))?;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let mut pair = |name: &'static str, names: &[&str]| {
        pairs.extend(fields::text(status, names).map(|text| (name, text)));
    };
    pair("node", &["node"]);
    pair("version", &["version"]);
    pair("running", &["counts.running"]);
    pair("waiting", &["counts.waiting"]);
    pair("failed, 24 h", &["counts.failed_last_24h"]);
    let up = fields::number(status, &["uptime_seconds"]).and_then(|seconds| u64::try_from(seconds).ok());
    pairs.extend(up.map(|seconds| ("up", times::length(seconds * 1_000))));
    for run in fields::list(status, &["poisoned_runs"]) {
        let text = |name: &str| fields::text(run, &[name]).unwrap_or_default();
        pairs.push(("given up", format!("{} of job {}", text("run_id"), text("job"))));
    }
    for job in fields::list(status, &["late_jobs"]) {
        let text = |name: &str| fields::text(job, &[name]).unwrap_or_default();
        pairs.push(("late", format!("{}: {}", text("job"), text("reason"))));
    }
    let dead = fields::number(status, &["dead_letters"]).unwrap_or(0);
    if dead > 0 {
        pairs.push(("dead letters", format!("{dead} reports were given up")));
    }
    show.pairs(&pairs)?;
    fires(session, status)?;
    Ok(exit)
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
    let mut table = Table::new(&[("NEXT", Kind::Whole), ("IN", Kind::Whole), ("JOB", Kind::Whole)]);
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
    fn a_daemon_that_is_not_ready_is_unhealthy() {
        let check = |status: Value, healthy: bool| assert_eq!(is_healthy(&status), healthy, "{status}");
        check(json!({"ready": true, "pools": [{"readable": true}]}), true);
        check(json!({"ready": false}), false);
        check(json!({"ready": true, "pools": [{"readable": false}]}), false);
        check(json!({}), true);
    }
}
