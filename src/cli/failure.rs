//! Why a command could not do what was asked: a refusal of the daemon, no daemon, or our own words.

use serde_json::{Value, json};

use super::exit::Exit;
use super::fields;

/// A command's failure.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Failure {
    /// The daemon refused.
    Problem(Box<Problem>),
    /// Nothing answers, or something else does.
    Unreachable {
        /// What to say.
        sentence: String,
        /// The request may have reached the daemon.
        sent: bool,
    },
    /// The arguments cannot be meant.
    Usage(String),
    /// Nothing here has that name.
    NotFound(String),
    /// What is there already stands in the way.
    Conflict(String),
    /// It was done and the answer is no.
    Negative(String),
    /// The time given by `--timeout` is over.
    TimedOut(String),
    /// Nobody reads our output any more; nothing is wrong.
    OutputClosed,
}

impl From<Problem> for Failure {
    fn from(problem: Problem) -> Failure {
        Failure::Problem(Box::new(problem))
    }
}

impl Failure {
    /// The exit code.
    pub(super) fn exit(&self) -> Exit {
        match self {
            Failure::Problem(problem) => Exit::of_status(problem.status),
            Failure::Unreachable { .. } => Exit::Unreachable,
            Failure::Usage(_) => Exit::Usage,
            Failure::NotFound(_) => Exit::NotFound,
            Failure::Conflict(_) => Exit::Conflict,
            Failure::Negative(_) => Exit::Negative,
            Failure::TimedOut(_) => Exit::TimedOut,
            Failure::OutputClosed => Exit::Done,
        }
    }

    /// For a person: a line, and one more for each bad field. Empty when there is nothing to say.
    pub(super) fn text(&self) -> String {
        match self {
            Failure::Problem(problem) => problem.text(),
            Failure::Unreachable { sentence, .. }
            | Failure::Usage(sentence)
            | Failure::NotFound(sentence)
            | Failure::Conflict(sentence)
            | Failure::Negative(sentence)
            | Failure::TimedOut(sentence) => format!("error: {sentence}\n"),
            Failure::OutputClosed => String::new(),
        }
    }

    /// For a program: the problem document, or one in its form.
    pub(super) fn json(&self) -> Option<String> {
        let (code, detail) = match self {
            Failure::Problem(problem) => return Some(problem.document()),
            Failure::Unreachable { sentence, .. } => ("UNREACHABLE", sentence),
            Failure::Usage(sentence) => ("INVALID_ARGUMENT", sentence),
            Failure::NotFound(sentence) => ("NOT_FOUND", sentence),
            Failure::Conflict(sentence) => ("FAILED_PRECONDITION", sentence),
            Failure::Negative(sentence) => ("NEGATIVE", sentence),
            Failure::TimedOut(sentence) => ("DEADLINE_EXCEEDED", sentence),
            Failure::OutputClosed => return None,
        };
        let slug = code.to_ascii_lowercase().replace('_', "-");
        let document = json!({
            "type": format!("urn:ductor:problem:{slug}"), "code": code, "detail": detail,
            "retryable": matches!(self, Failure::Unreachable { .. }),
        });
        Some(document.to_string())
    }
}

/// A problem document (RFC 9457), or what stood in its place.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Problem {
    /// The HTTP status.
    pub(super) status: u16,
    /// The stable code; empty when the answer was no problem document.
    pub(super) code: String,
    sentence: String,
    request_id: Option<String>,
    fields: Vec<String>,
    document: Option<Value>,
}

impl Problem {
    /// Reads a refusal; the id of the request may also stand in a header.
    pub(super) fn read(status: u16, body: &str, request_id: Option<&str>) -> Problem {
        let document = serde_json::from_str::<Value>(body).ok().filter(Value::is_object);
        let whole = document.clone().unwrap_or(Value::Null);
        let sentence = fields::text(&whole, &["error", "detail", "title"])
            .unwrap_or_else(|| format!("the server answered with status {status}"));
        Problem {
            status,
            code: fields::text(&whole, &["code"]).unwrap_or_default(),
            sentence,
            request_id: fields::text(&whole, &["request_id"]).or_else(|| request_id.map(str::to_owned)),
            fields: fields::list(&whole, &["errors"]).iter().map(field_line).collect(),
            document,
        }
    }

    /// A text member of the document.
    pub(super) fn member(&self, name: &str) -> Option<String> {
        fields::text(self.document.as_ref()?, &[name])
    }

    /// All bad fields: pointer, code and sentence of each.
    pub(super) fn faults(&self) -> Vec<(String, String, String)> {
        let errors = self
            .document
            .as_ref()
            .map_or(&[][..], |document| fields::list(document, &["errors"]));
        let text = |error: &Value, name: &str| fields::text(error, &[name]).unwrap_or_default();
        let one = |error: &Value| (text(error, "pointer"), text(error, "code"), text(error, "detail"));
        errors.iter().map(one).collect()
    }

    /// Where in the text of a field something is wrong: line and column, both from 1.
    pub(super) fn place_in(&self, pointer: &str) -> Option<(usize, usize)> {
        let errors = fields::list(self.document.as_ref()?, &["errors"]);
        let of_field = |error: &&Value| fields::text(error, &["pointer"]).as_deref() == Some(pointer);
        let error = errors.iter().find(of_field)?;
        let number = |name: &str| usize::try_from(fields::number(error, &[name])?).ok();
        Some((number("line")?, number("column")?))
    }

    fn text(&self) -> String {
        let mut text = format!("error: {}", self.sentence);
        if self.status == 500 {
            text.push_str("; this is a defect in ductor, please report it");
        }
        if self.status == 401 {
            text.push_str("; give one with --key-file or DUCTOR_API_KEY");
        }
        if let Some(id) = &self.request_id {
            text = format!("{text} (request {id})");
        }
        text.push('\n');
        // One bad field often stands in the sentence already.
        let fields = self.fields.iter().filter(|line| {
            let detail = line.split_once(": ").map_or(line.as_str(), |(_, detail)| detail);
            // Of a conflict the sentence is the whole fault.
            let is_said = self.status == 409 && self.sentence == detail;
            !is_said && !self.sentence.contains(line.as_str())
        });
        text.extend(fields.map(|line| format!("  {line}\n")));
        text
    }

    fn document(&self) -> String {
        match &self.document {
            Some(document) => document.to_string(),
            None => json!({"status": self.status, "detail": self.sentence, "request_id": self.request_id})
                .to_string(),
        }
    }
}

fn field_line(error: &Value) -> String {
    let detail = fields::text(error, &["detail", "code"]).unwrap_or_default();
    match fields::text(error, &["pointer", "parameter"]) {
        Some(pointer) if !pointer.is_empty() => format!("{}: {detail}", pointer.trim_start_matches('/')),
        Some(_) | None => detail,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_conflict_is_said_once() {
        let body = r#"{"status":409,"detail":"pool x has the name `a`","errors":[{"pointer":"/name","detail":"pool x has the name `a`"}]}"#;
        assert_eq!(
            Problem::read(409, body, None).text(),
            "error: pool x has the name `a`\n"
        );
        let body = r#"{"status":422,"detail":"must be given","errors":[{"pointer":"/name","detail":"must be given"}]}"#;
        assert_eq!(
            Problem::read(422, body, None).text(),
            "error: must be given\n  name: must be given\n"
        );
    }

    #[test]
    fn a_refusal_is_one_line_with_its_sentence_and_request() {
        let body = r#"{"type":"urn:ductor:problem:not-found","title":"Not found","status":404,"detail":"d",
            "error":"job 'x' not found","code":"NOT_FOUND","request_id":"01J"}"#;
        let failure = Failure::from(Problem::read(404, body, None));
        assert_eq!(failure.text(), "error: job 'x' not found (request 01J)\n");
        assert_eq!(failure.exit(), Exit::NotFound);
        let json: Value = serde_json::from_str(&failure.json().unwrap()).unwrap();
        assert_eq!(json["code"], "NOT_FOUND");
    }

    #[test]
    fn bad_fields_follow_the_line() {
        let body = r#"{"detail":"1 field is invalid","errors":[{"pointer":"/retries","code":"unknown","detail":"unknown field"}]}"#;
        let failure = Failure::from(Problem::read(422, body, Some("abc")));
        assert_eq!(
            failure.text(),
            "error: 1 field is invalid (request abc)\n  retries: unknown field\n"
        );
        assert_eq!(failure.exit(), Exit::Usage);
    }

    #[test]
    fn an_answer_of_something_else_is_told_by_its_status() {
        let failure = Failure::from(Problem::read(503, "<html>", None));
        assert_eq!(failure.text(), "error: the server answered with status 503\n");
        assert_eq!(failure.exit(), Exit::Later);
        assert!(failure.json().unwrap().contains("\"status\":503"));
    }

    #[test]
    fn our_own_words_have_the_form_of_a_problem() {
        let failure = Failure::Usage("no".to_owned());
        let json: Value = serde_json::from_str(&failure.json().unwrap()).unwrap();
        assert_eq!(json["type"], "urn:ductor:problem:invalid-argument");
        assert_eq!(Failure::OutputClosed.json(), None);
    }
}
