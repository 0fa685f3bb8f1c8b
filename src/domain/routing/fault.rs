//! What is wrong with an object or a request, with the place.

use serde_json::{Map, Value};

/// One fault. Codes are those of the registry (`field.required`, `pool.not_found`, …) and never change.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// JSON pointer into what was sent; empty without a field concerned.
    pub pointer: String,
    /// The dotted code.
    pub code: &'static str,
    /// A sentence that names the fix.
    pub detail: String,
    /// Parameters of the code, beside it.
    pub members: Map<String, Value>,
}

impl Fault {
    /// A fault without parameters.
    pub fn new(pointer: impl Into<String>, code: &'static str, detail: impl Into<String>) -> Fault {
        Fault {
            pointer: pointer.into(),
            code,
            detail: detail.into(),
            members: Map::new(),
        }
    }

    /// Adds a parameter.
    #[must_use]
    pub fn member(mut self, name: &str, value: impl Into<Value>) -> Fault {
        self.members.insert(name.to_owned(), value.into());
        self
    }
}
