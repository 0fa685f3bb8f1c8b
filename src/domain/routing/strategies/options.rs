//! Parameters of strategies: checked when an object is written, resolved when a pipeline is made.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use crate::domain::routing::duration;
use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::catalogue::{Info, Parameter, ParameterType, info, nearest};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::{numbers, sight};
use crate::expr::Program;

/// The faults of the options of one strategy; `pointer` is where `options` stands.
pub fn check_options(pointer: &str, key: &str, options: &Map<String, Value>) -> Vec<Fault> {
    let Some(info) = info(key) else {
        return vec![unknown(pointer, key)];
    };
    let mut faults = Vec::new();
    for (name, value) in options {
        let at = format!("{pointer}/{}", escape(name));
        match info.parameter(name) {
            Some(parameter) => faults.extend(check_one(&at, info, parameter, value)),
            None => {
                let known: Vec<&str> = info.parameters.iter().map(|parameter| parameter.name).collect();
                let detail = match known.as_slice() {
                    [] => format!("`{}` has no options", info.key),
                    known => format!("`{}` has the options {}", info.key, known.join(", ")),
                };
                faults.push(Fault::new(at, "option.unknown", detail));
            }
        }
    }
    faults
}

/// The fault of a strategy that does not exist.
pub fn unknown(pointer: &str, key: &str) -> Fault {
    let near = nearest(key);
    Fault::new(
        pointer,
        "strategy.unknown",
        format!(
            "there is no strategy `{key}`; the nearest are {}",
            near.join(", ")
        ),
    )
    .member("nearest", near)
}

/// A name as part of a JSON pointer.
pub fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn wrong_type(at: &str, info: &Info, parameter: &Parameter, wanted: &str) -> Fault {
    let detail = format!("`{}` of `{}` must be {wanted}", parameter.name, info.key);
    Fault::new(at, "option.type", detail).member("expected", parameter.kind.to_string())
}

fn check_one(at: &str, info: &Info, parameter: &Parameter, value: &Value) -> Option<Fault> {
    let wrong = |wanted: &str| Some(wrong_type(at, info, parameter, wanted));
    match parameter.kind {
        ParameterType::Number => match value.as_f64() {
            Some(number) => out_of_range(at, parameter, number, ""),
            None => wrong("a number"),
        },
        ParameterType::Int => match value.as_i64() {
            Some(number) => out_of_range(at, parameter, numbers::real_signed(number), ""),
            None => wrong("a whole number"),
        },
        ParameterType::Bool => match value {
            Value::Bool(_) => None,
            _ => wrong("true or false"),
        },
        ParameterType::Length => match value.as_str().and_then(duration::read) {
            Some(us) => out_of_range(at, parameter, numbers::real(us) / 1e6, "s"),
            None => wrong("a length of time, like \"30s\""),
        },
        ParameterType::Word(words) => match value.as_str() {
            Some(word) if words.contains(&word) => None,
            Some(_) => Some(not_among(at, words)),
            None => wrong("a text"),
        },
        ParameterType::Words(words) => match value.as_array() {
            Some(list) if list.is_empty() => Some(not_among(at, words)),
            Some(list) => {
                let fits = |word: &Value| word.as_str().is_some_and(|word| words.contains(&word));
                if list.iter().all(fits) {
                    None
                } else {
                    Some(not_among(at, words))
                }
            }
            None => wrong("a list of texts"),
        },
        ParameterType::WorkExpression => check_expression(at, info, parameter, value, false),
        ParameterType::RecipientExpression => check_expression(at, info, parameter, value, true),
        ParameterType::Strategy => match value.as_str() {
            Some(key) => check_inner(at, info, key),
            None => wrong("the key of a strategy"),
        },
        ParameterType::Numbers => check_numbers(at, info, parameter, value),
    }
}

fn check_inner(at: &str, outer: &Info, key: &str) -> Option<Fault> {
    let Some(inner) = info(key) else {
        return Some(unknown(at, key));
    };
    if inner.parameter("inner").is_some() && inner.kind == outer.kind {
        let detail = format!("`{}` cannot stand inside of itself", outer.key);
        return Some(Fault::new(at, "option.range", detail));
    }
    None
}

fn check_expression(
    at: &str,
    info: &Info,
    parameter: &Parameter,
    value: &Value,
    sees_recipient: bool,
) -> Option<Fault> {
    let Some(text) = value.as_str() else {
        return Some(wrong_type(at, info, parameter, "an expression, as text"));
    };
    if sees_recipient && is_attribute_name(text) {
        return None;
    }
    sight::compile(text, sees_recipient)
        .err()
        .map(|fault| sight::fault_at(at, text, &fault))
}

fn check_numbers(at: &str, info: &Info, parameter: &Parameter, value: &Value) -> Option<Fault> {
    let Some(map) = value.as_object() else {
        return Some(wrong_type(at, info, parameter, "a map of names to numbers"));
    };
    if let Some((name, _)) = map
        .iter()
        .find(|(_, value)| !value.as_f64().is_some_and(|number| number >= 0.0))
    {
        let detail = format!("`{name}` must be a number from 0 up");
        return Some(Fault::new(
            format!("{at}/{}", escape(name)),
            "option.type",
            detail,
        ));
    }
    if parameter.name == "shares" {
        let total: u64 = map
            .values()
            .filter_map(Value::as_u64)
            .fold(0, u64::saturating_add);
        if total != 10_000 || !map.values().all(Value::is_u64) {
            let detail =
                format!("shares are whole basis points and sum up to 10000; these sum up to {total}");
            return Some(Fault::new(at, "option.range", detail).member("sum", total));
        }
    }
    None
}

fn not_among(at: &str, words: &[&str]) -> Fault {
    let detail = format!("must be one of {}", words.join(", "));
    Fault::new(at, "option.range", detail).member("allowed", words.to_vec())
}

fn out_of_range(at: &str, parameter: &Parameter, number: f64, unit: &str) -> Option<Fault> {
    let (min, max) = (
        parameter.min.unwrap_or(f64::MIN),
        parameter.max.unwrap_or(f64::MAX),
    );
    if (min..=max).contains(&number) {
        return None;
    }
    let detail = format!("`{}` must be from {min}{unit} to {max}{unit}", parameter.name);
    Some(
        Fault::new(at, "option.range", detail)
            .member("min", min)
            .member("max", max),
    )
}

/// A plain name: the attribute of the recipient, not an expression.
pub fn is_attribute_name(text: &str) -> bool {
    let mut letters = text.chars();
    letters
        .next()
        .is_some_and(|first| first.is_ascii_alphabetic() || first == '_')
        && letters.all(|letter| letter.is_ascii_alphanumeric() || matches!(letter, '_' | '-'))
        && !sight::NAMES.contains(&text)
}

/// The parameters of one use of a strategy, every default filled in and every expression compiled.
#[derive(Debug, Clone, PartialEq)]
pub struct Params {
    values: Map<String, Value>,
    programs: BTreeMap<&'static str, Program>,
}

impl Params {
    /// Each parameter from the deepest level that has it: `levels` begins with the lowest (the recipient pool's). Faults
    /// are told of expressions that do not compile and of parameters that must be given.
    pub fn resolve(
        pointer: &str,
        info: &'static Info,
        levels: &[Option<&Map<String, Value>>],
    ) -> Result<Params, Vec<Fault>> {
        let mut faults = Vec::new();
        let mut params = Params {
            values: Map::new(),
            programs: BTreeMap::new(),
        };
        for parameter in info.parameters {
            let given = levels
                .iter()
                .rev()
                .flatten()
                .find_map(|level| level.get(parameter.name));
            let default = || serde_json::from_str(parameter.default).unwrap_or(Value::Null);
            let value = given.cloned().unwrap_or_else(default);
            let at = format!("{pointer}/{}", parameter.name);
            if value.is_null() {
                let detail = format!("`{}` needs the option `{}`", info.key, parameter.name);
                faults.push(Fault::new(at, "option.type", detail));
                continue;
            }
            if let Some(fault) = given.and_then(|given| check_one(&at, info, parameter, given)) {
                faults.push(fault);
                continue;
            }
            if let Some(program) = program_of(parameter, &value) {
                params.programs.insert(parameter.name, program);
            }
            params.values.insert(parameter.name.to_owned(), value);
        }
        if faults.is_empty() {
            Ok(params)
        } else {
            Err(faults)
        }
    }

    /// A number.
    pub fn number(&self, name: &str) -> f64 {
        self.values.get(name).and_then(Value::as_f64).unwrap_or(0.0)
    }

    /// A whole number from 0 up.
    pub fn count(&self, name: &str) -> u64 {
        self.values.get(name).and_then(Value::as_u64).unwrap_or(0)
    }

    /// A whole number.
    pub fn whole(&self, name: &str) -> i64 {
        self.values.get(name).and_then(Value::as_i64).unwrap_or(0)
    }

    /// true or false.
    pub fn truth(&self, name: &str) -> bool {
        self.values.get(name).and_then(Value::as_bool).unwrap_or(false)
    }

    /// A word or a text.
    pub fn text(&self, name: &str) -> &str {
        self.values.get(name).and_then(Value::as_str).unwrap_or("")
    }

    /// A length of time in microseconds.
    pub fn length_us(&self, name: &str) -> u64 {
        duration::read(self.text(name)).unwrap_or(0)
    }

    /// A map of names to numbers.
    pub fn numbers(&self, name: &str) -> impl Iterator<Item = (&str, f64)> {
        let map = self.values.get(name).and_then(Value::as_object);
        map.into_iter()
            .flatten()
            .map(|(name, value)| (name.as_str(), value.as_f64().unwrap_or(0.0)))
    }

    /// Whether a list of words has this one.
    pub fn has_word(&self, name: &str, word: &str) -> bool {
        let list = self.values.get(name).and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|known| known.as_str() == Some(word)))
    }

    /// The compiled expression.
    pub fn program(&self, name: &str) -> Option<&Program> {
        self.programs.get(name)
    }

    /// Every compiled expression: what they read is part of the snapshot.
    pub fn programs(&self) -> impl Iterator<Item = &Program> {
        self.programs.values()
    }

    /// As JSON, for digests.
    pub fn values(&self) -> &Map<String, Value> {
        &self.values
    }
}

fn program_of(parameter: &Parameter, value: &Value) -> Option<Program> {
    let text = value.as_str()?;
    match parameter.kind {
        ParameterType::WorkExpression => sight::compile(text, false).ok(),
        ParameterType::RecipientExpression if is_attribute_name(text) => None,
        ParameterType::RecipientExpression => sight::compile(text, true).ok(),
        _ => None,
    }
}
