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
    let healthy = fields::member(status, &["healthy", "ok", "ready"]).and_then(Value::as_bool) != Some(false);
    let exit = if healthy { Exit::Done } else { Exit::Negative };
    if show.json {
        show.document(&body.text)?;
        return Ok(exit);
    }
    let verdict = fields::text(status, &["verdict", "verdict.sentence", "sentence"]).unwrap_or_else(|| {
        if healthy {
            "All is well.".to_owned()
        } else {
            "Something is wrong.".to_owned()
        }
    });
    show.data(&format!("{}\n", show.strong(&one_line(&verdict))))?;
    let mut pairs: Vec<(&str, String)> = Vec::new();
    let mut pair = |name: &'static str, names: &[&str]| {
        pairs.extend(fields::text(status, names).map(|text| (name, text)));
    };
    pair("node", &["node", "node.name"]);
    pair("version", &["version"]);
    pair("jobs", &["jobs", "counts.jobs"]);
    pair("running", &["running", "counts.running", "runs.running"]);
    pair(
        "waiting",
        &["waiting", "queued", "counts.waiting", "counts.queued"],
    );
    pair(
        "failed",
        &["failing", "failed", "counts.failing", "counts.failed"],
    );
    if let Some(ms) = uptime(status, session) {
        pairs.push(("up", times::length(ms)));
    }
    show.pairs(&pairs)?;
    fires(session, status)?;
    Ok(exit)
}

fn uptime(status: &Value, session: &Session) -> Option<u64> {
    let said = fields::number(status, &["uptime_ms"]).and_then(|ms| u64::try_from(ms).ok());
    said.or_else(|| {
        Some(
            session
                .show
                .now()
                .since(fields::instant(status, &["started_at"])?),
        )
    })
}

fn fires(session: &Session, status: &Value) -> Result<(), Failure> {
    let fires = fields::list(status, &["next_fires", "next"]);
    if fires.is_empty() {
        return Ok(());
    }
    let mut table = Table::new(&[("NEXT", Kind::Whole), ("IN", Kind::Whole), ("JOB", Kind::Whole)]);
    let now = session.show.now();
    for fire in fires {
        let at = fields::instant(fire, &["at", "instant", "fires_at", "scheduled_at"]);
        table.row(vec![
            session.show.instant(at),
            at.map_or_else(String::new, |at| times::relative(at, now)),
            fields::text(fire, &["job", "name"]).unwrap_or_default(),
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
