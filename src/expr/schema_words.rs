//! What the validator finds, in our words.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "what users meet daily has words of ours; the rest keeps the validator's"
)]

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind};
use serde_json::Value;

use super::fault::cut;
use super::reasons::describe;
use super::schema::Issue;

const MESSAGE_CHARACTERS_MAX: usize = 300;
const NAMES_MAX: usize = 10;

/// One error. The value itself is never repeated.
pub(super) fn issue(error: &ValidationError<'_>) -> Issue {
    let mut pointer = error.instance_path().as_str().to_owned();
    if let ValidationErrorKind::Required { property } = error.kind()
        && let Some(name) = property.as_str()
    {
        pointer.push('/');
        pointer.push_str(&escaped(name));
    }
    Issue {
        pointer,
        message: cut(&sentence(error), MESSAGE_CHARACTERS_MAX),
    }
}

/// A name as a part of a pointer.
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        ValidationErrorKind::Required { .. } => "is missing".to_owned(),
        ValidationErrorKind::Type { kind } => {
            let types: Vec<String> = match kind {
                TypeKind::Single(single) => vec![single.to_string()],
                TypeKind::Multiple(set) => set.iter().map(|one| one.to_string()).collect(),
            };
            let got = describe(error.instance());
            format!("must be of type {}, and is {got}", types.join(" or "))
        }
        ValidationErrorKind::AdditionalProperties { unexpected }
        | ValidationErrorKind::UnevaluatedProperties { unexpected } => {
            let names: Vec<String> = unexpected
                .iter()
                .take(NAMES_MAX)
                .map(|name| format!("`{}`", cut(name, 60)))
                .collect();
            format!("does not take {}", names.join(", "))
        }
        ValidationErrorKind::Enum { options } => format!("must be one of {}", written(options)),
        ValidationErrorKind::Constant { expected_value } => format!("must be {}", written(expected_value)),
        ValidationErrorKind::Minimum { limit } => format!("must be at least {limit}"),
        ValidationErrorKind::Maximum { limit } => format!("must be at most {limit}"),
        ValidationErrorKind::ExclusiveMinimum { limit } => format!("must be more than {limit}"),
        ValidationErrorKind::ExclusiveMaximum { limit } => format!("must be less than {limit}"),
        ValidationErrorKind::MinLength { limit } => format!("must have at least {limit} letters"),
        ValidationErrorKind::MaxLength { limit } => format!("must have at most {limit} letters"),
        ValidationErrorKind::MinItems { limit } => format!("must have at least {limit} elements"),
        ValidationErrorKind::MaxItems { limit } => format!("must have at most {limit} elements"),
        ValidationErrorKind::MinProperties { limit } => format!("must have at least {limit} fields"),
        ValidationErrorKind::MaxProperties { limit } => format!("must have at most {limit} fields"),
        ValidationErrorKind::Pattern { pattern } => format!("must match the pattern {pattern}"),
        ValidationErrorKind::Format { format } => format!("must be a valid {format}"),
        ValidationErrorKind::UniqueItems => "must not have the same element twice".to_owned(),
        ValidationErrorKind::FalseSchema => "is not taken here".to_owned(),
        ValidationErrorKind::AnyOf { .. } => "fits none of the alternatives (anyOf)".to_owned(),
        ValidationErrorKind::OneOfNotValid { .. } => "fits none of the alternatives (oneOf)".to_owned(),
        ValidationErrorKind::OneOfMultipleValid { .. } => {
            "fits more than one of the alternatives (oneOf)".to_owned()
        }
        _ => error.masked_with("the value").to_string(),
    }
}

fn written(value: &Value) -> String {
    cut(&value.to_string(), 200)
}
