//! Definitions in files: JSON or YAML, sent as JSON, and what is said of them with file, line and column.

use std::io::Read;
use std::path::Path;

use serde_json::Value;

use super::client::Body;
use super::exit::Exit;
use super::failure::Failure;
use super::fields;
use super::session::Session;
use super::workflows::{FileArguments, PutArguments, told};
use crate::config::{self, PlainDocument};
use crate::words::limits;

/// A definition as it lies in a file.
pub(super) struct File {
    name: String,
    /// What is sent: of JSON the very text.
    text: String,
    pub(super) document: PlainDocument,
}

impl File {
    pub(super) fn read(path: &Path) -> Result<File, Failure> {
        let is_stdin = path.as_os_str() == "-";
        let name = if is_stdin {
            "stdin".to_owned()
        } else {
            path.display().to_string()
        };
        let unreadable = |error: &std::io::Error| {
            let why = if error.kind() == std::io::ErrorKind::NotFound {
                "it does not exist".to_owned()
            } else {
                error.kind().to_string()
            };
            Failure::Usage(format!("{name} cannot be read: {why}"))
        };
        let most = config::FILE_BYTES_MAX as u64 + 1;
        let mut text = String::new();
        let read = if is_stdin {
            std::io::stdin().lock().take(most).read_to_string(&mut text)
        } else {
            std::fs::File::open(path).and_then(|file| file.take(most).read_to_string(&mut text))
        };
        read.map_err(|error| unreadable(&error))?;
        let document = config::read_plain(&name, &text)
            .map_err(|fault| Failure::Usage(format!("{}: {}", fault.at, fault.message)))?;
        let text = if document.is_json {
            text
        } else {
            document.value.to_string()
        };
        if text.len() > limits::DEFINITION_BYTES_MAX * 2 {
            let most = limits::DEFINITION_BYTES_MAX;
            return Err(Failure::Usage(format!(
                "{name} has more than the {most} bytes that a definition may have"
            )));
        }
        Ok(File { name, text, document })
    }

    fn slug(&self) -> Result<&str, Failure> {
        let slug = self.document.value.get("family_slug").and_then(Value::as_str);
        slug.filter(|slug| !slug.is_empty()).ok_or_else(|| {
            Failure::Usage(format!(
                "{} has no `family_slug`: the name of its workflow",
                self.name
            ))
        })
    }

    /// Says all that is wrong with it; true if anything is.
    pub(super) async fn say_what_is_wrong(&self, session: &Session) -> Result<bool, Failure> {
        let answer = session
            .client
            .post_text(&["api", "workflows:validate"], &self.text)
            .await?;
        self.say(session, &answer)
    }

    fn say(&self, session: &Session, answer: &Body) -> Result<bool, Failure> {
        let findings = fields::list(fields::data(&answer.value), &["findings"]);
        for finding in findings {
            session.show.paragraph(&self.line(finding))?;
        }
        Ok(!findings.is_empty())
    }

    /// A finding with its place in the file.
    fn line(&self, finding: &Value) -> String {
        let text = |name: &str| fields::text(finding, &[name]).unwrap_or_default();
        let pointer = text("pointer");
        let place = match self.document.place(&pointer) {
            Some(place) => place.to_string(),
            None => self.name.clone(),
        };
        // The place is near, and the pointer says what is meant where nothing is written.
        let pointer = if pointer.is_empty() {
            String::new()
        } else {
            format!(" ({pointer})")
        };
        format!("{place}: {}: {}{pointer}", text("code"), text("message"))
    }
}

/// Says what is wrong with a file.
pub(super) async fn validate(session: &Session, arguments: &FileArguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    let answer = session
        .client
        .post_text(&["api", "workflows:validate"], &file.text)
        .await?;
    let is_good = fields::truth(fields::data(&answer.value), &["valid"]);
    if session.show.json {
        session.show.document(&answer.text)?;
    } else if !file.say(session, &answer)? {
        session.show.data(&format!("{} is good\n", file.name))?;
    }
    Ok(if is_good { Exit::Done } else { Exit::Negative })
}

/// Saves a file as a draft.
pub(super) async fn put(session: &Session, arguments: &PutArguments) -> Result<Exit, Failure> {
    let file = File::read(&arguments.file)?;
    let slug = file.slug()?;
    let path = ["api", "workflows", slug];
    let answer = session
        .client
        .put(&path, &file.text, arguments.expected_version)
        .await?;
    told(session, &answer, &saved(slug, &answer))?;
    let findings = fields::list(fields::data(&answer.value), &["findings"]);
    for finding in findings {
        session.show.note(&file.line(finding));
    }
    Ok(Exit::Done)
}

fn saved(slug: &str, answer: &Body) -> String {
    let data = fields::data(&answer.value);
    if !fields::truth(data, &["draft"]) {
        let version = fields::number(data, &["newest_version"]).unwrap_or(0);
        return format!("workflow {slug}: version {version} has this content already");
    }
    match fields::list(data, &["findings"]).len() {
        0 => format!("workflow {slug}: draft saved; `ductor workflow publish {slug}` makes it a version"),
        1 => format!("workflow {slug}: draft saved; it cannot be published yet, 1 thing is wrong:"),
        wrong => {
            format!("workflow {slug}: draft saved; it cannot be published yet, {wrong} things are wrong:")
        }
    }
}
