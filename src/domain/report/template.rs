//! The body of a webhook in the receiver's own words: `${field}` stands for a field of the document.
//!
//! In a JSON body a value is escaped as the inside of a JSON text, so that a quote in what a command has printed breaks
//! nothing; a number or nothing is written plainly.

use std::ops::Range;

use serde_json::Value;

use super::document::Document;

/// What `${…}` can name.
pub const FIELDS: [&str; 15] = [
    "type",
    "job",
    "run_id",
    "attempt",
    "outcome",
    "reason",
    "exit_code",
    "started_at",
    "ended_at",
    "scheduled_at",
    "node",
    "url",
    "text",
    "stdout_tail",
    "stderr_tail",
];

/// Those that are numbers: absent, they are `null`.
const NUMBERS: [&str; 2] = ["attempt", "exit_code"];

/// A checked body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Template {
    parts: Vec<Part>,
    is_json: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum Part {
    Text(String),
    Field(&'static str),
}

/// What is wrong with a body; `span` is in bytes of its text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TemplateFault {
    /// The sentence.
    pub message: String,
    /// The unknown field, if that is it.
    pub unknown: Option<String>,
    /// Where.
    pub span: Range<usize>,
}

impl Template {
    /// Reads and checks a body. A JSON body must be JSON whatever its fields are.
    pub fn parse(text: &str, is_json: bool) -> Result<Template, TemplateFault> {
        let template = Template {
            parts: parts_of(text)?,
            is_json,
        };
        if is_json {
            let sample_of = |field| if NUMBERS.contains(&field) { "1" } else { "x" };
            let sample = template.fill(|field| sample_of(field).to_owned());
            if let Err(error) = serde_json::from_str::<serde::de::IgnoredAny>(&sample) {
                return Err(TemplateFault {
                    message: format!("body is not JSON when its fields are filled in: {error}"),
                    unknown: None,
                    span: 0..text.len(),
                });
            }
        }
        Ok(template)
    }

    /// Bytes that the template takes.
    pub fn text_bytes(&self) -> usize {
        let text = |part: &Part| match part {
            Part::Text(text) => text.len(),
            Part::Field(_) => 0,
        };
        self.parts.iter().map(|part| text(part) + size_of::<Part>()).sum()
    }

    fn fill(&self, value: impl Fn(&'static str) -> String) -> String {
        let mut text = String::new();
        for part in &self.parts {
            match part {
                Part::Text(plain) => text.push_str(plain),
                Part::Field(field) => text.push_str(&value(field)),
            }
        }
        text
    }

    /// The body of one report.
    pub fn render(&self, document: &Document) -> String {
        let fields = serde_json::to_value(document).unwrap_or_default();
        self.fill(|field| match &fields[field] {
            Value::String(text) if self.is_json => escaped(text),
            Value::String(text) => text.clone(),
            Value::Null if NUMBERS.contains(&field) && self.is_json => "null".to_owned(),
            Value::Null => String::new(),
            other @ (Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
                other.to_string()
            }
        })
    }
}

/// The inside of the JSON text.
fn escaped(text: &str) -> String {
    let quoted = Value::from(text).to_string();
    quoted[1..quoted.len() - 1].to_owned()
}

fn parts_of(text: &str) -> Result<Vec<Part>, TemplateFault> {
    let mut parts = Vec::new();
    let mut plain = String::new();
    let mut done = 0;
    while let Some(found) = text[done..].find("${") {
        let start = done + found;
        if text[done..start].ends_with('$') {
            plain.push_str(&text[done..start - 1]);
            plain.push_str("${");
            done = start + 2;
            continue;
        }
        plain.push_str(&text[done..start]);
        let Some(length) = text[start..].find('}') else {
            return Err(TemplateFault {
                message: "`${` has no closing `}`".to_owned(),
                unknown: None,
                span: start..text.len(),
            });
        };
        let name = &text[start + 2..start + length];
        let Some(field) = FIELDS.iter().find(|field| **field == name) else {
            return Err(TemplateFault {
                message: "`${…}` in a body must name a field of the report".to_owned(),
                unknown: Some(name.to_owned()),
                span: start..start + length + 1,
            });
        };
        parts.push(Part::Text(std::mem::take(&mut plain)));
        parts.push(Part::Field(field));
        done = start + length + 1;
    }
    plain.push_str(&text[done..]);
    parts.push(Part::Text(plain));
    Ok(parts)
}

#[cfg(test)]
mod tests {
    use super::super::document::{Context, document};
    use super::super::effect::tests::effect;
    use super::*;

    fn rendered(text: &str, is_json: bool, reason: Option<&str>) -> String {
        let mut effect = effect(1);
        effect.facts.reason = reason.map(str::to_owned);
        effect.facts.exit_code = reason.map(|_| 3);
        let template = Template::parse(text, is_json).unwrap();
        template.render(&document(&effect, &Context::default()))
    }

    #[test]
    fn fields_are_filled_in() {
        let json = r#"{"content": "${job}: ${reason}", "code": ${exit_code}}"#;
        assert_eq!(
            rendered(json, true, Some("say \"hi\"\n")),
            r#"{"content": "nightly: say \"hi\"\n", "code": 3}"#
        );
        assert_eq!(
            rendered(json, true, None),
            r#"{"content": "nightly: ", "code": null}"#
        );
        assert_eq!(
            rendered("$${job} ${job} \"${reason}\" $x", false, Some("\"")),
            "${job} nightly \"\"\" $x"
        );
        assert_eq!(rendered("", false, None), "");
    }

    #[test]
    fn what_cannot_be_a_body_is_refused_with_its_place() {
        let check = |text: &str, is_json: bool, part: &str, message: &str| {
            let fault = Template::parse(text, is_json).unwrap_err();
            assert_eq!(&text[fault.span.clone()], part, "{text}");
            assert!(fault.message.contains(message), "{fault:?}");
            fault.unknown
        };
        let unknown = check("{\"a\": \"${jobb}\"}", true, "${jobb}", "must name a field");
        assert_eq!(unknown.as_deref(), Some("jobb"));
        check("a ${job", false, "${job", "no closing");
        check("{\"a\": ${reason}}", true, "{\"a\": ${reason}}", "is not JSON");
        check("{", true, "{", "is not JSON");
        check("", true, "", "is not JSON");
    }
}
