//! `ductor config show` and `ductor config reload`.

use clap::Subcommand;
use serde_json::Value;

use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::write_stderr;
use super::table::one_line;

const RELOAD_HELP: &str = "\
Files are read and judged whole: with any error in them nothing changes, and
the exit code is 2. The same as `kill -HUP` and POST /api/config:reload. Lines
of the answer:

  + job nightly            new
  ~ job demo: command      changed, and in what
  - pool old               gone
  ! server.listen          waits for a restart";

/// What can be asked about the configuration.
#[derive(Debug, Subcommand)]
pub(super) enum ConfigCommand {
    /// What the daemon works with, every default filled in, secrets hidden.
    Show,
    /// Read the files again and put them in force.
    #[command(after_help = RELOAD_HELP)]
    Reload,
}

/// Does it.
pub(super) async fn perform(session: &Session, command: &ConfigCommand) -> Result<Exit, Failure> {
    match command {
        ConfigCommand::Show => show(session).await,
        ConfigCommand::Reload => reload(session).await,
    }
}

async fn show(session: &Session) -> Result<Exit, Failure> {
    let body = session.client.get(&["api", "config"], &[]).await?;
    if session.show.json {
        session.show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let text = serde_json::to_string_pretty(fields::data(&body.value))
        .map_err(|error| Failure::Negative(error.to_string()))?;
    session.show.document(&text)?;
    Ok(Exit::Done)
}

async fn reload(session: &Session) -> Result<Exit, Failure> {
    let answer = session.client.post(&["api", "config:reload"], None, None).await;
    let body = match answer {
        Ok(body) => body,
        Err(failure) => {
            if let (Failure::Problem(problem), false) = (&failure, session.show.json)
                && let Some(rendered) = problem.member("rendered")
            {
                let sentence = "the configuration is not good; the running one stays in force";
                write_stderr(format!("{rendered}\nerror: {sentence}\n").as_bytes());
                return Ok(Exit::Usage);
            }
            return Err(failure);
        }
    };
    if session.show.json {
        session.show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let reloaded = fields::data(&body.value);
    let lines = lines_of(reloaded);
    if lines.is_empty() {
        session.show.nothing("Nothing changed.")?;
    } else {
        session.show.data(&lines)?;
    }
    match fields::number(reloaded, &["cancelled_entries"]) {
        None | Some(0) => {}
        Some(1) => session
            .show
            .note("1 waiting entry of a changed job was cancelled."),
        Some(count) => session.show.note(&format!(
            "{count} waiting entries of changed jobs were cancelled."
        )),
    }
    for warning in fields::list(reloaded, &["warnings"]) {
        let text = |name: &str| fields::text(warning, &[name]).unwrap_or_default();
        session.show.note(&format!(
            "{}[{}]: {}: {}",
            text("severity"),
            text("code"),
            text("pointer"),
            text("detail")
        ));
    }
    Ok(Exit::Done)
}

/// One line for each difference.
fn lines_of(reloaded: &Value) -> String {
    let mut lines = String::new();
    for (kind, member) in [("job", "jobs"), ("dag", "dags"), ("pool", "pools")] {
        let Some(changes) = fields::member(reloaded, &[member]) else {
            continue;
        };
        let plain = |value: &Value| value.as_str().map(one_line).unwrap_or_default();
        for name in fields::list(changes, &["added"]) {
            lines.push_str(&format!("+ {kind} {}\n", plain(name)));
        }
        for changed in fields::list(changes, &["changed"]) {
            let name = fields::text(changed, &["name"]).unwrap_or_default();
            let keys: Vec<String> = fields::list(changed, &["keys"]).iter().map(plain).collect();
            lines.push_str(&format!("~ {kind} {}: {}\n", one_line(&name), keys.join(", ")));
        }
        for name in fields::list(changes, &["removed"]) {
            lines.push_str(&format!("- {kind} {}\n", plain(name)));
        }
    }
    for setting in fields::list(reloaded, &["settings"]) {
        lines.push_str(&format!("~ {}{}\n", key_of(setting), values_of(setting)));
    }
    for setting in fields::list(reloaded, &["needs_restart"]) {
        let (key, values) = (key_of(setting), values_of(setting));
        lines.push_str(&format!(
            "! {key}{values} (needs a restart; the first stays in force)\n"
        ));
    }
    lines
}

fn key_of(setting: &Value) -> String {
    fields::text(setting, &["key"]).unwrap_or_default()
}

/// `: 500 -> 100`; nothing when the daemon does not tell the values.
fn values_of(setting: &Value) -> String {
    let shown = |name: &str| match setting.get(name) {
        None | Some(Value::Null) => "none".to_owned(),
        Some(Value::String(text)) => one_line(text),
        Some(value) => value.to_string(),
    };
    match (shown("from"), shown("to")) {
        (from, to) if from == to => String::new(),
        (from, to) => format!(": {from} -> {to}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_reload_is_told_in_lines() {
        let reloaded = json!({
            "jobs": {"added": ["n"], "changed": [{"name": "d", "keys": ["command", "schedule"]}], "removed": ["o"]},
            "dags": {"added": ["n"], "changed": [{"name": "m", "keys": ["tasks.load"]}], "removed": []},
            "pools": {"added": [], "changed": [{"name": "p", "keys": ["slots"]}], "removed": []},
            "settings": [{"key": "retention.runs", "from": 500, "to": 100}],
            "needs_restart": [
                {"key": "server.listen", "from": "127.0.0.1:1", "to": "127.0.0.1:2"},
                {"key": "state.path", "from": null, "to": null},
            ],
        });
        let expected = "\
+ job n
~ job d: command, schedule
- job o
+ dag n
~ dag m: tasks.load
~ pool p: slots
~ retention.runs: 500 -> 100
! server.listen: 127.0.0.1:1 -> 127.0.0.1:2 (needs a restart; the first stays in force)
! state.path (needs a restart; the first stays in force)
";
        assert_eq!(lines_of(&reloaded), expected);
        assert_eq!(lines_of(&json!({})), "");
    }
}
