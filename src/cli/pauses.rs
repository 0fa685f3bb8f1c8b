//! What pauses of jobs and of slot pools have in common: for how long, until when, and why.

use clap::Args;
use serde_json::{Map, Value, json};

use super::failure::Failure;
use super::fields;
use super::show::Show;
use super::times;

/// How long a pause lasts.
#[derive(Debug, Clone, Default, Args)]
pub(super) struct PauseArguments {
    /// For this long (30m, 2h, 7d).
    #[arg(long = "for", value_name = "TIME", value_parser = times::read_length, conflicts_with = "until")]
    pub(super) length: Option<u64>,
    /// Until then: 18:00, "2025-11-30 06:00" or 2025-11-30T06:00:00Z.
    #[arg(long, value_name = "TIME")]
    pub(super) until: Option<String>,
    /// Why, for whoever finds it paused.
    #[arg(long, visible_alias = "note", value_name = "TEXT")]
    pub(super) reason: Option<String>,
}

impl PauseArguments {
    /// The body of the request.
    pub(super) fn body(&self, show: &Show) -> Result<Value, Failure> {
        let mut body = Map::new();
        if let Some(ms) = self.length {
            body.insert("durationSeconds".to_owned(), json!(ms.div_ceil(1_000)));
        }
        if let Some(text) = &self.until {
            let now = show.now();
            let until = show
                .face()
                .read(text, now)
                .map_err(|error| Failure::Usage(format!("--until: {error}")))?;
            if until <= now {
                let shown = show.face().instant(until);
                return Err(Failure::Usage(format!("--until: {shown} has passed")));
            }
            body.insert("until".to_owned(), json!(until.to_string()));
        }
        if let Some(reason) = &self.reason {
            body.insert("note".to_owned(), json!(reason));
        }
        Ok(Value::Object(body))
    }
}

/// `paused until 18:00 CET (release)`; `None` when it is not.
pub(super) fn sentence(paused: Option<&Value>, show: &Show) -> Option<String> {
    let paused = paused.filter(|value| value.as_bool() != Some(false))?;
    let mut text = match fields::instant(paused, &["until"]) {
        Some(until) => format!("paused until {}", show.face().instant(until)),
        None => "paused".to_owned(),
    };
    let note = fields::text(paused, &["note", "reason"]).filter(|note| !note.is_empty());
    if let Some(note) = note {
        text = format!("{text} ({})", super::table::one_line(&note));
    }
    Some(text)
}
