//! What work wants of its recipient: traits, and how both sides are compared.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use serde_json::Value;

use super::objects::{Recipient, Trait, TraitOp};
use super::reason::{Note, Reason};
use super::work::Work;

/// One wish of the work.
#[derive(Debug, Clone, PartialEq)]
pub struct Want {
    /// The attribute of both sides.
    pub key: String,
    /// How they are compared.
    pub op: TraitOp,
    /// What the work wants.
    pub value: Value,
}

impl Want {
    /// Why a recipient does not have it.
    pub fn refusal(&self, recipient: &Recipient) -> Option<Reason> {
        let Some(have) = recipient.attributes.get(&self.key) else {
            return Some(Reason::TraitMissing {
                key: self.key.clone(),
                want: Box::new(self.value.clone()),
            });
        };
        (!fits(self.op, have, &self.value)).then(|| Reason::TraitMismatch {
            key: self.key.clone(),
            want: Box::new(self.value.clone()),
            have: Box::new(have.clone()),
        })
    }
}

/// What the work wants of everybody after it has waited so long (microseconds), and which wishes it gave up.
pub fn required(traits: &[Trait], work: &Work, waited_us: u64) -> (Vec<Want>, Vec<Note>) {
    let (mut wants, mut notes) = (Vec::new(), Vec::new());
    for one in traits.iter().filter(|one| one.required) {
        let Some(value) = work.attributes.get(&one.key).filter(|value| !value.is_null()) else {
            continue;
        };
        if one.relax_after_us > 0 && waited_us >= one.relax_after_us {
            notes.push(Note::TraitRelaxed {
                key: one.key.clone(),
                after_us: one.relax_after_us,
            });
            continue;
        }
        wants.push(Want {
            key: one.key.clone(),
            op: one.op,
            value: value.clone(),
        });
    }
    (wants, notes)
}

/// Whether what a recipient has is what is wanted.
pub fn fits(op: TraitOp, have: &Value, want: &Value) -> bool {
    match op {
        TraitOp::Eq => same(have, want),
        TraitOp::In => match want {
            Value::Array(wanted) => wanted.iter().any(|one| same(have, one)),
            one => same(have, one),
        },
        TraitOp::Gte => match (have.as_f64(), want.as_f64()) {
            (Some(have), Some(want)) => have >= want,
            _ => false,
        },
        TraitOp::Contains => {
            let has = |one: &Value| match have {
                Value::Array(list) => list.iter().any(|known| same(known, one)),
                single => same(single, one),
            };
            match want {
                Value::Array(wanted) => wanted.iter().all(has),
                one => has(one),
            }
        }
        TraitOp::Within => within(have, want),
    }
}

/// Numbers by value, everything else as it is.
fn same(left: &Value, right: &Value) -> bool {
    match (left.as_f64(), right.as_f64()) {
        (Some(left), Some(right)) => left.total_cmp(&right).is_eq() || (left - right).abs() == 0.0,
        _ => left == right,
    }
}

/// A number or a range within a range; a place within the radius of a place.
fn within(have: &Value, want: &Value) -> bool {
    if let (Some([low, high]), Some([from, to])) = (range(have), range(want)) {
        return low <= from && to <= high;
    }
    let place = |value: &Value| {
        let field = |name: &str| value.get(name).and_then(Value::as_f64);
        Some((field("latitude")?, field("longitude")?))
    };
    match (place(have), place(want)) {
        (Some(centre), Some(wanted)) => {
            let radius = have.get("radius_m").and_then(Value::as_f64).unwrap_or(0.0);
            super::distance::meters(centre, wanted) <= radius
        }
        _ => false,
    }
}

fn range(value: &Value) -> Option<[f64; 2]> {
    if let Some(number) = value.as_f64() {
        return Some([number, number]);
    }
    match value.as_array()?.as_slice() {
        [low, high] => Some([low.as_f64()?, high.as_f64()?]),
        _ => None,
    }
}
