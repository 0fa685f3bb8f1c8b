//! Traits and claim queues.

use serde_json::{Map, Value};

use super::fields::Fields;
use crate::domain::routing::duration::LONGEST_US;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{Trait, TraitOp, TraitType};
use crate::domain::routing::strategies::options::is_attribute_name;
use crate::words::limits;

/// Hidden fields of a claim queue.
const HIDDEN_MAX: usize = 64;

/// An object that was read, with what was set of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Read<T> {
    /// With every default; of no use while there are faults.
    pub object: T,
    /// What was set, in its one form.
    pub set: Map<String, Value>,
    /// All that is wrong.
    pub faults: Vec<Fault>,
}

/// Reads a trait out of what is set of it. The key stands in the path, and may be repeated.
pub fn declared_trait(key: &str, mut set: Map<String, Value>) -> Read<Trait> {
    let mut faults = Vec::new();
    let known = ["key", "type", "op", "required", "preferred", "relax_after"];
    let mut fields = Fields::new("", &mut set, &mut faults, &known);
    if fields
        .text("key", limits::METADATA_KEY_CHARS_MAX)
        .is_some_and(|said| said != key)
    {
        fields.fault("key", "field.value", format!("is another key than `{key}`"));
    }
    if !is_attribute_name(key) || key.len() > limits::METADATA_KEY_CHARS_MAX {
        let detail = "must be a name of letters, digits and `_`, as attributes have";
        fields.fault("key", "field.value", detail);
    }
    for needed in ["type", "op"] {
        if !fields.has(needed) {
            fields.fault(needed, "field.required", "must be given");
        }
    }
    let kind = fields.word("type", TraitType::of, TraitType::WORDS);
    let op = fields.word("op", TraitOp::of, TraitOp::WORDS);
    if let Some((kind, op)) = kind.zip(op)
        && !fits(kind, op)
    {
        let detail = format!(
            "a trait of type `{}` is not compared by `{}`",
            kind.word(),
            op.word()
        );
        fields.fault("op", "trait.op", detail);
    }
    let (required, preferred) = (fields.flag("required"), fields.flag("preferred"));
    if required.is_some() && required == preferred {
        let detail = "a trait is either required or preferred";
        fields.fault("preferred", "trait.either", detail);
    }
    let relax_after_us = fields.duration("relax_after", 0, LONGEST_US).unwrap_or(0);
    fields.set("key", key);
    let object = Trait {
        key: key.to_owned(),
        kind: kind.unwrap_or(TraitType::String),
        op: op.unwrap_or(TraitOp::Eq),
        required: required.unwrap_or(preferred == Some(false)),
        relax_after_us,
    };
    Read { object, set, faults }
}

fn fits(kind: TraitType, op: TraitOp) -> bool {
    match kind {
        TraitType::Bool => op == TraitOp::Eq,
        TraitType::Int => matches!(op, TraitOp::Eq | TraitOp::In | TraitOp::Gte),
        TraitType::String => matches!(op, TraitOp::Eq | TraitOp::In),
        TraitType::Set => matches!(op, TraitOp::Eq | TraitOp::In | TraitOp::Contains),
        TraitType::Range => matches!(op, TraitOp::Contains | TraitOp::Within),
        TraitType::Geo => op == TraitOp::Within,
    }
}

/// A queue whose items recipients claim.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClaimQueue {
    /// Unique for its tenant.
    pub name: String,
    /// JSON pointers into the work: seen in the assignment alone.
    pub hidden_fields: Vec<String>,
}

/// Reads a claim queue out of what is set of it.
pub fn claim_queue(mut set: Map<String, Value>) -> Read<ClaimQueue> {
    let mut faults = Vec::new();
    let mut fields = Fields::new("", &mut set, &mut faults, &["name", "hidden_fields"]);
    let name = fields.name("name").unwrap_or_default();
    let mut hidden_fields: Vec<String> = Vec::new();
    let at = fields.pointer("hidden_fields");
    for (index, item) in fields
        .list("hidden_fields", HIDDEN_MAX)
        .unwrap_or_default()
        .iter()
        .enumerate()
    {
        match item.as_str() {
            Some(pointer) if pointer.starts_with('/') && !hidden_fields.iter().any(|one| one == pointer) => {
                hidden_fields.push(pointer.to_owned());
            }
            _ => {
                let detail = "must be a JSON pointer into the work, like /attributes/phone, once";
                fields.push(Fault::new(format!("{at}/{index}"), "field.value", detail));
            }
        }
    }
    let object = ClaimQueue { name, hidden_fields };
    Read { object, set, faults }
}
