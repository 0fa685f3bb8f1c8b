//! JSON Schema for the inputs of workflows and the answers to checkpoints.
//!
//! Nothing is fetched: a reference goes to a place in the same document. Patterns run in linear time. A schema is bounded
//! before it is compiled, and what is checked is told in full, up to a bound.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::fault::cut;

/// Bytes of a schema as it is written.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Levels of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// References in a schema: each is followed where it stands.
const REFERENCES_MAX: usize = 200;
/// Issues of one check.
pub const ISSUES_MAX: usize = 50;
/// Bytes of all compiled patterns of a schema together; the largest text is held against each.
const PATTERN_COMPILED_MAX: usize = 64 << 10;
const PATTERNS_MAX: usize = 100;
const MESSAGE_CHARACTERS_MAX: usize = 300;

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// An RFC 6901 pointer into what was checked; empty for the whole.
    pub pointer: String,
    /// A sentence.
    pub message: String,
}

/// A schema that may be used. Cheap to check with, costly to make.
#[derive(Debug)]
pub struct Schema(Validator);

impl Schema {
    /// Checks the schema itself, against the draft that it names (2020-12 if it names none), and prepares it. The
    /// pointers of the issues lead into the schema.
    pub fn compile(schema: &Value) -> Result<Schema, Vec<Issue>> {
        let issues = inspect(schema);
        if !issues.is_empty() {
            return Err(issues);
        }
        of_the_draft(schema)?;
        jsonschema::options()
            .offline()
            .with_pattern_options(
                PatternOptions::regex()
                    .size_limit(PATTERN_COMPILED_MAX)
                    .dfa_size_limit(4 * PATTERN_COMPILED_MAX),
            )
            .should_validate_formats(true)
            .build(schema)
            .map(Schema)
            .map_err(|error| vec![issue(&error)])
    }

    /// Everything that is wrong with `value`, at most [`ISSUES_MAX`] of them.
    pub fn check(&self, value: &Value) -> Vec<Issue> {
        if self.0.is_valid(value) {
            return Vec::new();
        }
        self.0
            .iter_errors(value)
            .take(ISSUES_MAX)
            .map(|error| issue(&error))
            .collect()
    }
}

fn issue(error: &jsonschema::ValidationError<'_>) -> Issue {
    Issue {
        pointer: error.instance_path().as_str().to_owned(),
        message: cut(
            &error.masked_with("the value").to_string(),
            MESSAGE_CHARACTERS_MAX,
        ),
    }
}

/// What the draft says of the schema.
fn of_the_draft(schema: &Value) -> Result<(), Vec<Issue>> {
    match jsonschema::meta::validate(schema) {
        Ok(()) => Ok(()),
        Err(error) => Err(vec![issue(&error)]),
    }
}

/// What is ours to refuse: size, depth, references out of the document.
fn inspect(schema: &Value) -> Vec<Issue> {
    let refuse = |pointer: &str, message: String| Issue {
        pointer: pointer.to_owned(),
        message,
    };
    if !matches!(schema, Value::Object(_) | Value::Bool(_)) {
        return vec![refuse("", "a schema is a map, or true or false".to_owned())];
    }
    let mut issues = Vec::new();
    let (mut bytes, mut references, mut patterns) = (0, 0, 0);
    let mut open = vec![(schema, String::new(), 1)];
    while let Some((value, pointer, depth)) = open.pop() {
        if depth > SCHEMA_DEPTH_MAX {
            let message =
                format!("the schema is nested more than {SCHEMA_DEPTH_MAX} levels deep; use $defs and $ref");
            return vec![refuse(&pointer, message)];
        }
        bytes += written_bytes(value);
        if bytes > SCHEMA_BYTES_MAX {
            let message = format!("the schema has more than {SCHEMA_BYTES_MAX} bytes");
            return vec![refuse("", message)];
        }
        match value {
            Value::Object(object) => {
                for (name, inner) in object.iter().rev() {
                    let place = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                    patterns += usize::from(name == "pattern");
                    if name == "patternProperties" {
                        patterns += inner.as_object().map_or(0, serde_json::Map::len);
                    }
                    if let Some(message) = wrong_reference(name, inner) {
                        issues.push(refuse(&place, message));
                    }
                    references += usize::from(is_reference(name));
                    open.push((inner, place, depth + 1));
                }
            }
            Value::Array(elements) => {
                for (index, inner) in elements.iter().enumerate().rev() {
                    open.push((inner, format!("{pointer}/{index}"), depth + 1));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    if references > REFERENCES_MAX {
        issues.push(refuse(
            "",
            format!("the schema has {references} references, and {REFERENCES_MAX} are allowed"),
        ));
    }
    if patterns > PATTERNS_MAX {
        issues.push(refuse(
            "",
            format!("the schema has {patterns} patterns, and {PATTERNS_MAX} are allowed"),
        ));
    }
    issues.truncate(ISSUES_MAX);
    issues
}

fn is_reference(name: &str) -> bool {
    matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef")
}

fn wrong_reference(name: &str, value: &Value) -> Option<String> {
    match (name, value) {
        (name, Value::String(target)) if is_reference(name) && !target.starts_with('#') => Some(format!(
            "`{}` leads out of the schema; put what it names under $defs and write #/$defs/…",
            cut(target, 80)
        )),
        // With a base of its own, what looks like a place in this document is one in another.
        ("$id" | "id", Value::String(base)) if base.starts_with("file:") => {
            Some("a schema does not name files".to_owned())
        }
        _ => None,
    }
}

/// About what a value adds to the written document, its parts not counted.
fn written_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => elements.len() + 2,
        Value::Object(object) => object.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
    }
}
