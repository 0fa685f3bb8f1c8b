//! Why an evaluation failed, in words for the author of the expression.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "a tree is asked for the few shapes that matter; every other one is answered alike"
)]

use cel_interpreter::{ExecutionError, Value};

use super::fault::cut;

const VALUE_CHARACTERS_MAX: usize = 60;

pub(super) fn explain(error: &ExecutionError) -> String {
    match error {
        ExecutionError::NoSuchKey(key) => {
            let key = cut(key, VALUE_CHARACTERS_MAX);
            format!(
                "there is no field `{key}`; where one may be missing, ask with has(…), or read it as .?field.orValue(…)"
            )
        }
        ExecutionError::NoSuchOverload(overload) => {
            let types: Vec<&str> = overload
                .argument_types()
                .iter()
                .map(|name| kind_name(name))
                .collect();
            format!(
                "`{}` does not work with ({})",
                shown(overload.function()),
                types.join(", ")
            )
        }
        ExecutionError::UndeclaredReference(name) => format!("there is no `{}` here yet", shown(name)),
        ExecutionError::UnexpectedType { got, want } => {
            format!("got a {} where a {} is needed", kind_name(got), kind_name(want))
        }
        ExecutionError::UnsupportedBinaryOperator(operator, left, right) => format!(
            "`{}` does not work with ({}, {})",
            shown(operator),
            value_kind(left),
            value_kind(right)
        ),
        ExecutionError::ValuesNotComparable(left, right) => {
            format!(
                "a {} and a {} cannot be compared",
                value_kind(left),
                value_kind(right)
            )
        }
        ExecutionError::DivisionByZero(_) | ExecutionError::RemainderByZero(_) => {
            "division by zero".to_owned()
        }
        ExecutionError::Overflow(operator, ..) => {
            format!("the result of `{}` is too large for its type", shown(operator))
        }
        ExecutionError::IndexOutOfBounds(index) => {
            format!("the list has no element {}", value_text(index))
        }
        ExecutionError::DuplicateKey(key) => format!("the key {} stands twice in a map", value_text(key)),
        ExecutionError::UnsupportedKeyType(key) => format!("a {} cannot be a key", value_kind(key)),
        ExecutionError::InvalidArgumentCount { expected, actual } => {
            format!("a function takes {expected} arguments and got {actual}")
        }
        ExecutionError::FunctionError { function, message } => {
            let message = message.lines().next().unwrap_or_default();
            match shown(function) {
                "" => message.to_owned(),
                function => format!("{function}: {message}"),
            }
        }
        _ => "the expression cannot be evaluated with this data".to_owned(),
    }
}

/// `null`, `a text`, …: what a result is.
pub(super) fn describe(value: &serde_json::Value) -> &'static str {
    match value {
        serde_json::Value::Null => "null",
        serde_json::Value::Bool(_) => "true or false",
        serde_json::Value::Number(_) => "a number",
        serde_json::Value::String(_) => "a text",
        serde_json::Value::Array(_) => "a list",
        serde_json::Value::Object(_) => "a map",
    }
}

/// The way an author writes an operator or a function.
fn shown(name: &str) -> &str {
    match name {
        "add" => "+",
        "sub" | "neg" => "-",
        "mul" => "*",
        "div" => "/",
        "rem" => "%",
        "_[_]" | "_[?_]" => "[]",
        "_._" | "_?._" => ".",
        "math.@max" => "math.greatest",
        "math.@min" => "math.least",
        "@sortByAssociatedKeys" => "sortBy",
        other => other.trim_matches(['_', '@']),
    }
}

fn kind_name(name: &str) -> &str {
    match name {
        "null_type" => "null",
        "google.protobuf.Timestamp" => "timestamp",
        "google.protobuf.Duration" => "duration",
        other => other,
    }
}

fn value_kind(value: &Value) -> &'static str {
    match value {
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Int(_) => "int",
        Value::UInt(_) => "uint",
        Value::Float(_) => "double",
        Value::String(_) => "string",
        Value::Bytes(_) => "bytes",
        Value::Bool(_) => "bool",
        Value::Duration(_) => "duration",
        Value::Timestamp(_) => "timestamp",
        Value::Null => "null",
        _ => "value of this type",
    }
}

fn value_text(value: &Value) -> String {
    match value {
        Value::Int(number) => number.to_string(),
        Value::UInt(number) => number.to_string(),
        Value::Float(number) => number.to_string(),
        Value::Bool(truth) => truth.to_string(),
        Value::String(text) => format!("\"{}\"", cut(text, VALUE_CHARACTERS_MAX)),
        other => format!("of type {}", value_kind(other)),
    }
}
