//! What work may look like, whatever way it came in.

use serde_json::Value;

use super::fault::Fault;
use super::strategies::options::escape;
use super::work::Work;

/// Bytes of its attributes as JSON.
pub const BYTES_MAX: usize = 256 << 10;
/// Labels.
pub const TAGS_MAX: usize = 64;
/// Elements of a list.
pub const LIST_MAX: usize = 256;
/// Levels of its attributes.
pub const NESTING_MAX: usize = 16;
/// How much of a recipient it takes.
pub const UNITS_MAX: u32 = 1_000;
/// The last priority.
pub const PRIORITY_MAX: u8 = 9;

/// The member of a request that the work stands in.
const OBJECT: &str = "work";

/// The pointer of one of its fields.
fn place(field: &str) -> String {
    format!("/{OBJECT}/{field}")
}

/// Everything that is wrong with it.
pub fn check(work: &Work) -> Vec<Fault> {
    let mut faults = Vec::new();
    let mut fault = |pointer: String, code, detail: String| faults.push(Fault::new(pointer, code, detail));
    if work.kind.is_empty() || work.kind.chars().count() > 200 {
        fault(
            place("kind"),
            "field.range",
            "a kind has 1 to 200 characters".to_owned(),
        );
    }
    if work.priority > PRIORITY_MAX {
        fault(
            place("priority"),
            "field.range",
            format!("a priority is 0 to {PRIORITY_MAX}, lower first"),
        );
    }
    if work.units == 0 || work.units > UNITS_MAX {
        fault(
            place("units"),
            "field.range",
            format!("units are 1 to {UNITS_MAX}"),
        );
    }
    if work.tags.len() > TAGS_MAX {
        fault(
            place("tags"),
            "work.list_too_long",
            format!("{} tags, at most {TAGS_MAX}", work.tags.len()),
        );
    }
    let mut bytes = 0;
    for (name, value) in &work.attributes {
        bytes += name.len() + 4;
        walk(
            &format!("{}/{}", place("attributes"), escape(name)),
            value,
            2,
            &mut bytes,
            &mut fault,
        );
    }
    if bytes > BYTES_MAX {
        fault(
            place("attributes"),
            "value.too_large",
            format!("{bytes} bytes, at most {BYTES_MAX}"),
        );
    }
    faults
}

fn walk(
    pointer: &str,
    value: &Value,
    depth: usize,
    bytes: &mut usize,
    fault: &mut impl FnMut(String, &'static str, String),
) {
    if depth > NESTING_MAX {
        let detail = format!("nested more than {NESTING_MAX} levels deep");
        fault(pointer.to_owned(), "value.too_deep", detail);
        return;
    }
    match value {
        Value::Null | Value::Bool(_) => *bytes += 5,
        Value::Number(_) => *bytes += 8,
        Value::String(text) => *bytes += text.len() + 3,
        Value::Array(list) => {
            if list.len() > LIST_MAX {
                let detail = format!("{} elements, at most {LIST_MAX}", list.len());
                fault(pointer.to_owned(), "work.list_too_long", detail);
                return;
            }
            for (at, element) in list.iter().enumerate() {
                let inner = matches!(element, Value::Array(_) | Value::Object(_));
                let place = if inner {
                    format!("{pointer}/{at}")
                } else {
                    String::new()
                };
                walk(&place, element, depth + 1, bytes, fault);
            }
        }
        Value::Object(fields) => {
            for (name, field) in fields {
                *bytes += name.len() + 4;
                walk(
                    &format!("{pointer}/{}", escape(name)),
                    field,
                    depth + 1,
                    bytes,
                    fault,
                );
            }
        }
    }
}
