//! A document as YAML in one form: keys in order, blocks, texts in quotes wherever they could be anything else.

use std::fmt::Write as _;

use serde_json::Value;

/// The text.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, 0, &mut out);
    out
}

fn write(value: &Value, indent: usize, out: &mut String) {
    match value {
        Value::Object(map) if !map.is_empty() => {
            for (key, value) in map {
                out.push_str(&" ".repeat(indent));
                out.push_str(&scalar(&Value::from(key.as_str())));
                out.push(':');
                below(value, indent + 2, out);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            for item in items {
                out.push_str(&" ".repeat(indent));
                out.push('-');
                if is_block(item) {
                    let mut inner = String::new();
                    write(item, indent + 2, &mut inner);
                    out.push(' ');
                    out.push_str(inner.trim_start_matches(' '));
                } else {
                    below(item, indent + 2, out);
                }
            }
        }
        Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_) => {
            out.push_str(&scalar(value));
            out.push('\n');
        }
    }
}

fn is_block(value: &Value) -> bool {
    value.as_object().is_some_and(|map| !map.is_empty())
        || value.as_array().is_some_and(|list| !list.is_empty())
}

fn below(value: &Value, indent: usize, out: &mut String) {
    if is_block(value) {
        out.push('\n');
        write(value, indent, out);
    } else {
        out.push(' ');
        write(value, indent, out);
    }
}

fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) if is_plain(text) => text.clone(),
        Value::String(text) => quoted(text),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            value.to_string()
        }
    }
}

/// In double quotes, as JSON writes it; what JSON leaves as it is but YAML does not call printable is escaped also.
fn quoted(text: &str) -> String {
    let json = Value::from(text).to_string();
    let mut out = String::with_capacity(json.len());
    for letter in json.chars() {
        match letter {
            '\u{7f}'..='\u{9f}' | '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}' => {
                write!(out, "\\u{:04x}", u32::from(letter)).expect("a string takes all");
            }
            other => out.push(other),
        }
    }
    out
}

/// A text that no reader takes for something else.
fn is_plain(text: &str) -> bool {
    let mut letters = text.chars();
    let first = letters.next().is_some_and(|letter| letter.is_ascii_alphabetic());
    let rest = letters.all(|letter| letter.is_ascii_alphanumeric() || "-_./@".contains(letter));
    let words = ["true", "false", "null", "yes", "no", "on", "off", "y", "n"];
    first && rest && !words.contains(&text.to_ascii_lowercase().as_str())
}
