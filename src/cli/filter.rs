//! `--where 'state:failed job:backup since:1h'`: what the daemon is asked for, and what is left out here.

use serde_json::Value;

use super::fields;
use super::times::{self, Clockface};
use crate::words::time::Millis;

/// The words that stand for a state of a run.
const STATES: &[&str] = &[
    "pending",
    "running",
    "succeeded",
    "failed",
    "cancelled",
    "skipped",
];

/// Which runs are wanted. Terms of one key mean "or", terms of different keys "and".
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Filter {
    /// Query parameters: the daemon looks through its rows faster than we through its answers.
    pub(super) query: Vec<(&'static str, String)>,
    triggers: Vec<String>,
    since: Option<Millis>,
    until: Option<Millis>,
}

impl Filter {
    /// Reads the filter; a value with spaces stands in quotes.
    pub(super) fn read(text: &str, face: &Clockface, now: Millis) -> Result<Filter, String> {
        let mut filter = Filter::default();
        for term in terms(text)? {
            let Some((key, value)) = term.split_once(':').filter(|(_, value)| !value.is_empty()) else {
                return Err(format!(
                    "`{term}` is no filter; write key:value, as in state:failed"
                ));
            };
            filter.add(key, value, face, now)?;
        }
        Ok(filter)
    }

    fn add(&mut self, key: &str, value: &str, face: &Clockface, now: Millis) -> Result<(), String> {
        match key {
            "state" if STATES.contains(&value) => self.query.push(("state", value.to_owned())),
            "state" => return Err(format!("`{value}` is no state; there are {}", STATES.join(", "))),
            "job" if self.query.iter().any(|(known, _)| *known == "job") => {
                return Err("only one job can be asked for".to_owned());
            }
            "job" => self.query.push(("job", value.to_owned())),
            "trigger" => self.triggers.push(value.to_owned()),
            "since" => self.since = Some(past(value, face, now)?),
            "until" => self.until = Some(past(value, face, now)?),
            _ => {
                return Err(format!(
                    "unknown filter `{key}`; there are state, job, trigger, since and until"
                ));
            }
        }
        Ok(())
    }

    /// Adds what cannot be asked for twice: only runs that can still be ended.
    pub(super) fn only_unfinished(mut self) -> Result<Filter, String> {
        let mut states = self.query.iter().filter(|(key, _)| *key == "state").peekable();
        if states.peek().is_none() {
            self.query
                .extend(["pending", "running"].map(|state| ("state", state.to_owned())));
            return Ok(self);
        }
        let ended = states.find(|(_, state)| !matches!(state.as_str(), "pending" | "running"));
        match ended {
            Some((_, state)) => Err(format!(
                "a run that has {state} cannot be cancelled; say pending or running"
            )),
            None => Ok(self),
        }
    }

    /// True when everything is wanted.
    pub(super) fn is_empty(&self) -> bool {
        *self == Filter::default()
    }

    /// True when the daemon's answer is the whole answer.
    pub(super) fn is_the_daemons(&self) -> bool {
        self.triggers.is_empty() && self.since.is_none() && self.until.is_none()
    }

    /// What the daemon was not asked about.
    pub(super) fn keeps(&self, run: &Value) -> bool {
        let created = fields::instant(run, &["created_at"]);
        let trigger = fields::text(run, &["trigger.kind"]);
        let in_time = created.is_none_or(|at| {
            self.since.is_none_or(|since| at >= since) && self.until.is_none_or(|until| at < until)
        });
        in_time && (self.triggers.is_empty() || trigger.is_some_and(|word| self.triggers.contains(&word)))
    }

    /// True when this run, and so all older ones, are before what is wanted.
    pub(super) fn is_before(&self, run: &Value) -> bool {
        let created = fields::instant(run, &["created_at"]);
        created.zip(self.since).is_some_and(|(at, since)| at < since)
    }
}

/// A length before now, or an instant.
pub(super) fn past(value: &str, face: &Clockface, now: Millis) -> Result<Millis, String> {
    match times::read_length(value) {
        Ok(ms) => Ok(Millis(now.0.saturating_sub_unsigned(ms))),
        Err(_) => face.read(value, now),
    }
}

/// Splits at spaces outside quotes.
fn terms(text: &str) -> Result<Vec<String>, String> {
    let mut terms = Vec::new();
    let mut term = String::new();
    let mut quote = None;
    for letter in text.chars() {
        match quote {
            Some(mark) if letter == mark => quote = None,
            None if matches!(letter, '"' | '\'') => quote = Some(letter),
            None if letter.is_whitespace() => terms.push(std::mem::take(&mut term)),
            Some(_) | None => term.push(letter),
        }
    }
    if quote.is_some() {
        return Err(format!("a quote is not closed in `{text}`"));
    }
    terms.push(term);
    terms.retain(|term| !term.is_empty());
    Ok(terms)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const NOW: Millis = Millis(7_200_000);

    fn read(text: &str) -> Result<Filter, String> {
        Filter::read(text, &Clockface::utc(), NOW)
    }

    #[test]
    fn filters_become_parameters() {
        let check = |text: &str, expected: &[(&str, &str)]| {
            let filter = read(text).unwrap();
            let seen: Vec<(&str, &str)> = filter
                .query
                .iter()
                .map(|(key, value)| (*key, value.as_str()))
                .collect();
            assert_eq!(seen, expected, "{text}");
        };
        check("", &[]);
        check(
            "state:failed state:skipped job:\"stock sync\"",
            &[("state", "failed"), ("state", "skipped"), ("job", "stock sync")],
        );
        check("job:a:b", &[("job", "a:b")]);
    }

    #[test]
    fn times_and_triggers_are_looked_at_here() {
        let filter = read("since:1h until:10m trigger:manual").unwrap();
        assert!(!filter.is_the_daemons() && !filter.is_empty());
        let run = |at: &str, kind: &str| json!({"created_at": at, "trigger": {"kind": kind}});
        assert!(filter.keeps(&run("1970-01-01T01:30:00Z", "manual")));
        assert!(!filter.keeps(&run("1970-01-01T01:30:00Z", "schedule")));
        assert!(!filter.keeps(&run("1970-01-01T01:55:00Z", "manual")));
        let old = run("1970-01-01T00:59:59Z", "manual");
        assert!(!filter.keeps(&old) && filter.is_before(&old));
        assert!(read("").unwrap().is_empty() && read("").unwrap().keeps(&old));
        assert!(read("since:1970-01-01T00:30:00Z").unwrap().keeps(&old));
    }

    #[test]
    fn only_runs_that_have_not_ended_can_be_cancelled() {
        let states = |text: &str| {
            let filter = read(text).unwrap().only_unfinished()?;
            Ok(filter
                .query
                .into_iter()
                .map(|(_, value)| value)
                .collect::<Vec<_>>())
        };
        assert_eq!(
            states("job:a"),
            Ok(vec!["a".to_owned(), "pending".to_owned(), "running".to_owned()])
        );
        assert_eq!(states("state:pending"), Ok(vec!["pending".to_owned()]));
        let refused: Result<Vec<String>, String> = states("state:pending state:failed");
        assert!(refused.unwrap_err().contains("has failed cannot be cancelled"));
    }

    #[test]
    fn what_is_no_filter_is_told() {
        let table = [
            ("failed", "is no filter"),
            ("state:", "is no filter"),
            ("state:broken", "is no state; there are pending"),
            ("job:a job:b", "only one job"),
            ("color:red", "unknown filter `color`"),
            ("since:soon", "is no time"),
            ("job:\"x", "a quote is not closed"),
        ];
        for (text, part) in table {
            let error = read(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
