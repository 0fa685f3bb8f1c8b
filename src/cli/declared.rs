//! What the commands on declared objects of routing share: files, names in place of ids, questions, sentences.

use std::io::{BufRead, IsTerminal};
use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::show::write_stderr;
use super::workflow_files::File;

/// An object by its id or name, and what changes of it.
#[derive(Debug, Clone, Args)]
pub(super) struct UpdateArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// The fields that change, in JSON or YAML; `null` restores a default.
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,
    /// Only if it still has this record version.
    #[arg(long, value_name = "N")]
    pub(super) expected_version: Option<u64>,
}

/// An object by its id or name.
#[derive(Debug, Clone, Args)]
pub(super) struct IdArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    pub(super) id: String,
}

/// An object that is shown.
#[derive(Debug, Clone, Args)]
pub(super) struct ShowArguments {
    /// Its id, or its name.
    #[arg(value_name = "ID")]
    pub(super) id: String,
    /// With the defaults of all that is not set.
    #[arg(long)]
    pub(super) effective: bool,
}

impl ShowArguments {
    /// As the API is asked.
    pub(super) fn query(&self) -> Vec<(&'static str, String)> {
        let view = if self.effective { "effective" } else { "set" };
        vec![("view", view.to_owned())]
    }
}

/// The fields of a file, of which `-` is standard input.
pub(super) fn read_fields(path: &Path) -> Result<Value, Failure> {
    let file = File::read(path)?;
    if file.document.value.is_object() {
        return Ok(file.document.value);
    }
    Err(Failure::Usage(format!(
        "{} must be an object: fields and their values",
        path.display()
    )))
}

/// Whether a text is an id.
pub(super) fn is_id(text: &str) -> bool {
    let dashes = [8, 13, 18, 23];
    text.len() == 36
        && text.bytes().enumerate().all(|(at, byte)| {
            if dashes.contains(&at) {
                byte == b'-'
            } else {
                byte.is_ascii_hexdigit()
            }
        })
}

/// The id of a pool that is named by its id or its name.
pub(super) async fn pool_id(session: &Session, given: &str) -> Result<String, Failure> {
    if is_id(given) {
        return Ok(given.to_owned());
    }
    let query = [("name", given.to_owned())];
    let body = session.client.list(&["api", "pools"], &query, 1).await?;
    let found = fields::items(&body.value).first();
    found
        .and_then(|pool| fields::text(pool, &["id"]))
        .ok_or_else(|| Failure::NotFound(format!("there is no pool '{given}'; `ductor pool ls` shows all")))
}

/// Asks before something is done that cannot be taken back.
pub(super) async fn confirm(yes: bool, question: String, needs: String) -> Result<(), Failure> {
    if yes {
        return Ok(());
    }
    let asked = tokio::task::spawn_blocking(move || {
        if !std::io::stdin().is_terminal() {
            return Err(Failure::Usage(format!(
                "{needs} needs --yes where nobody can be asked"
            )));
        }
        write_stderr(format!("{question} [y/N] ").as_bytes());
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer).ok();
        if matches!(answer.trim(), "y" | "Y" | "yes") {
            Ok(())
        } else {
            Err(Failure::Negative("nothing was done".to_owned()))
        }
    });
    asked
        .await
        .map_err(|error| Failure::Negative(error.to_string()))?
}

/// One sentence, or the API's answer; what may be meant otherwise is told beside it.
pub(super) fn told(session: &Session, answer: &Body, sentence: &str) -> Result<Exit, Failure> {
    if session.show.json {
        session.show.document(&answer.text)?;
        return Ok(Exit::Done);
    }
    session.show.data(&format!("{sentence}\n"))?;
    for warning in fields::list(&answer.value, &["warnings"]) {
        let pointer = fields::text(warning, &["pointer"]).unwrap_or_default();
        let detail = fields::text(warning, &["detail"]).unwrap_or_default();
        let place = pointer.trim_start_matches('/');
        session.show.note(&if place.is_empty() {
            format!("warning: {detail}")
        } else {
            format!("warning: {place}: {detail}")
        });
    }
    Ok(Exit::Done)
}

/// `pool 'agents' (019a…)`, then what is said of it.
pub(super) fn sentence(kind: &str, answer: &Body, said: &str) -> String {
    let data = fields::data(&answer.value);
    let text = |name: &str| fields::text(data, &[name]).unwrap_or_default();
    let version = fields::number(data, &["record_version"]).unwrap_or(0);
    format!(
        "{kind} '{}' {said}: {} (version {version})",
        text("name"),
        text("id")
    )
}

/// `STATUS_ACTIVE` as `active`.
pub(super) fn plain_word(word: &str) -> String {
    let bare = word
        .strip_prefix("RECIPIENT_STATE_")
        .or_else(|| word.strip_prefix("STATUS_"))
        .unwrap_or(word);
    bare.to_ascii_lowercase()
}

/// `active` as the API writes it.
pub(super) fn wire_word(prefix: &str, word: &str) -> String {
    let upper = word.to_ascii_uppercase();
    if upper.starts_with(prefix) {
        upper
    } else {
        format!("{prefix}{upper}")
    }
}

/// Lines of `name  value` of an object, the objects inside of it as `name.inside`.
pub(super) fn flat(value: &Value) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    if let Value::Object(map) = value {
        flatten("", map, &mut lines);
    }
    lines
}

fn flatten(before: &str, map: &Map<String, Value>, lines: &mut Vec<(String, String)>) {
    for (name, value) in map {
        let name = if before.is_empty() {
            name.clone()
        } else {
            format!("{before}.{name}")
        };
        match value {
            // Values of attributes are short enough as they are.
            Value::Object(inside) if !inside.is_empty() && !name.contains("attributes.") => {
                flatten(&name, inside, lines);
            }
            Value::String(text) => lines.push((name, text.clone())),
            // Words stand behind each other, so that a line ends between them.
            Value::Array(list) if !list.is_empty() && list.iter().all(Value::is_string) => {
                let words: Vec<&str> = list.iter().filter_map(Value::as_str).collect();
                lines.push((name, words.join(", ")));
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                lines.push((name, value.to_string()));
            }
        }
    }
}

/// Shows an object whole.
pub(super) fn show_object(session: &Session, body: &Body) -> Result<Exit, Failure> {
    let show = &session.show;
    if show.json {
        show.document(&body.text)?;
        return Ok(Exit::Done);
    }
    let lines = flat(fields::data(&body.value));
    let (first, rest): (Vec<_>, Vec<_>) = lines
        .into_iter()
        .partition(|(name, _)| ["id", "name"].contains(&name.as_str()));
    let all = first.iter().rev().chain(&rest);
    let pairs: Vec<(&str, String)> = all.map(|(name, value)| (name.as_str(), value.clone())).collect();
    show.pairs(&pairs)?;
    Ok(Exit::Done)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_object_is_flat_and_its_words_are_plain() {
        let value = json!({"id": "1", "config": {"sla": {"enabled": true}, "fallback": "queue"},
            "attributes": {"level": {"number_value": 3}}, "tags": []});
        let names: Vec<String> = flat(&value).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            [
                "attributes.level",
                "config.fallback",
                "config.sla.enabled",
                "id",
                "tags"
            ]
        );
        let lists = json!({"tags": ["a", "b"], "empty": [], "numbers": [1, 2]});
        let lists: Vec<String> = flat(&lists).into_iter().map(|(_, value)| value).collect();
        assert_eq!(lists, ["[]", "[1,2]", "a, b"]);
        assert_eq!(plain_word("RECIPIENT_STATE_BUSY"), "busy");
        assert_eq!(wire_word("STATUS_", "active"), "STATUS_ACTIVE");
        assert_eq!(wire_word("STATUS_", "STATUS_PAUSED"), "STATUS_PAUSED");
    }

    #[test]
    fn ids_are_known_by_their_form() {
        assert!(is_id("019ad0e0-0001-7000-8000-00000000ffff"));
        assert!(!is_id("agents") && !is_id("019ad0e000017000800000000000ffff0000"));
    }
}
