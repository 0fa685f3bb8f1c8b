//! What work may look like, whatever way it came in.

use serde_json::Value;

use super::fault::Fault;
use super::strategies::options::escape;
use super::work::Work;
use crate::words::limits;

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
    let mut walk = Walk {
        bytes: 0,
        faults: Vec::new(),
    };
    let attributes = Spot::Begin;
    for (name, value) in &work.attributes {
        walk.bytes += name.len() + 4;
        walk.value(&Spot::Field(&attributes, name), value, 2);
    }
    let Walk { bytes, faults: found } = walk;
    for (pointer, code, detail) in found {
        fault(pointer, code, detail);
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

/// A place inside of attributes. It is put into words only where something is wrong: what is sent may have many values under
/// long names.
enum Spot<'s> {
    Begin,
    Field(&'s Spot<'s>, &'s str),
    Element(&'s Spot<'s>, usize),
}

impl Spot<'_> {
    fn pointer(&self) -> String {
        match self {
            Spot::Begin => place("attributes"),
            Spot::Field(above, name) => {
                let shown: String = name.chars().take(limits::PLACE_NAME_CHARS_MAX).collect();
                format!("{}/{}", above.pointer(), escape(&shown))
            }
            Spot::Element(above, at) => format!("{}/{at}", above.pointer()),
        }
    }
}

struct Walk {
    bytes: usize,
    faults: Vec<(String, &'static str, String)>,
}

impl Walk {
    fn fault(&mut self, spot: &Spot<'_>, code: &'static str, detail: String) {
        if self.faults.len() < limits::WORK_FAULTS_MAX {
            self.faults.push((spot.pointer(), code, detail));
        }
    }

    fn value(&mut self, spot: &Spot<'_>, value: &Value, depth: usize) {
        if depth > NESTING_MAX {
            let detail = format!("nested more than {NESTING_MAX} levels deep");
            return self.fault(spot, "value.too_deep", detail);
        }
        match value {
            Value::Null | Value::Bool(_) => self.bytes += 5,
            Value::Number(_) => self.bytes += 8,
            Value::String(text) => self.bytes += text.len() + 3,
            Value::Array(list) => {
                if list.len() > LIST_MAX {
                    let detail = format!("{} elements, at most {LIST_MAX}", list.len());
                    return self.fault(spot, "work.list_too_long", detail);
                }
                for (at, element) in list.iter().enumerate() {
                    self.value(&Spot::Element(spot, at), element, depth + 1);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.bytes += name.len() + 4;
                    self.value(&Spot::Field(spot, name), field, depth + 1);
                }
            }
        }
    }
}
