//! Single values of a posted document, each with its place. What is wrong goes to [`Out`].

use std::collections::BTreeSet;
use std::fmt::Display;

use serde_json::{Map, Value};

use crate::domain::workflow::graph::finding::{Finding, below, did_you_mean, shown};
use crate::domain::workflow::graph::span::Span;
use crate::words::limits;
use crate::words::names::StepRef;

/// What has been found so far, and what is known of the document besides its content.
#[derive(Debug, Default)]
pub(super) struct Out {
    pub(super) findings: Vec<Finding>,
    unsaid: usize,
    /// Pointers of bodies that were posted as one step.
    pub(super) single_bodies: BTreeSet<String>,
    /// Steps of which so much is wrong that nothing can be said of what stands around them.
    pub(super) doubtful: BTreeSet<String>,
    /// Levels of scatters around the step that is read.
    pub(super) depth: usize,
}

impl Out {
    pub(super) fn say(&mut self, at: &str, code: &'static str, message: impl Into<String>) {
        if self.findings.len() < limits::FINDINGS_MAX {
            self.findings.push(Finding::new(at, code, message));
        } else {
            self.unsaid += 1;
        }
    }

    /// All findings, with a last one if there were more.
    pub(super) fn finished(mut self) -> (Vec<Finding>, BTreeSet<String>, BTreeSet<String>) {
        if self.unsaid > 0 {
            let message = format!("{} more findings are not shown; mend these first", self.unsaid);
            self.findings
                .push(Finding::new("", "workflow.too_many_findings", message));
        }
        (self.findings, self.single_bodies, self.doubtful)
    }
}

/// A value and its place.
#[derive(Debug, Clone)]
pub(super) struct Spot<'v> {
    pub(super) value: &'v Value,
    pub(super) at: String,
}

/// An object whose keys are all known.
#[derive(Debug)]
pub(super) struct Fields<'v> {
    map: &'v Map<String, Value>,
    pub(super) at: String,
}

/// For a message: what this is.
pub(super) fn described(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(_) | Value::Number(_) => format!("`{}`", shown(&value.to_string())),
        Value::String(text) => format!("the text \"{}\"", shown(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

impl<'v> Fields<'v> {
    /// The value under a key; null is the same as nothing.
    pub(super) fn get(&self, name: &str) -> Option<Spot<'v>> {
        let value = self.map.get(name).filter(|value| !value.is_null())?;
        Some(Spot {
            value,
            at: below(&self.at, name),
        })
    }

    /// True if the key is there, even with null.
    pub(super) fn has(&self, name: &str) -> bool {
        self.map.contains_key(name)
    }

    /// The value under a key that must be there.
    pub(super) fn need(&self, name: &str, out: &mut Out) -> Option<Spot<'v>> {
        let found = self.get(name);
        if found.is_none() {
            out.say(&self.at, "workflow.missing", format!("`{name}` is missing"));
        }
        found
    }

    /// A text that may be absent.
    pub(super) fn text(&self, name: &str, out: &mut Out) -> Option<String> {
        self.get(name).and_then(|spot| spot.text(out)).map(str::to_owned)
    }

    /// An expression that may be absent. It is compiled later.
    pub(super) fn cel(&self, name: &str, out: &mut Out) -> Option<String> {
        self.get(name).and_then(|spot| spot.cel(out))
    }

    /// An expression that must be there; harmless if it is not.
    pub(super) fn need_cel(&self, name: &str, out: &mut Out) -> String {
        let found = self.need(name, out).and_then(|spot| spot.cel(out));
        found.unwrap_or_else(|| "null".to_owned())
    }

    /// A length of time that may be absent.
    pub(super) fn span(&self, name: &str, out: &mut Out) -> Option<Span> {
        self.get(name).and_then(|spot| spot.span(out))
    }

    /// A length of time under `name`, or in milliseconds under `name_ms`, as it is written in an export.
    pub(super) fn span_or_ms(&self, name: &str, out: &mut Out) -> Option<Span> {
        let in_ms = format!("{name}_ms");
        let spot = self.get(&in_ms);
        if let (Some(spot), true) = (&spot, self.get(name).is_some()) {
            let message = format!("give either `{name}` or `{in_ms}`");
            out.say(&spot.at, "workflow.conflict", message);
        }
        let ms = spot
            .and_then(|spot| spot.integer(0, Span::LONGEST.0, out))
            .map(Span);
        self.span(name, out).or(ms)
    }

    /// `true` or `false`, or what it is without.
    pub(super) fn flag(&self, name: &str, usual: bool, out: &mut Out) -> bool {
        let Some(spot) = self.get(name) else { return usual };
        let Value::Bool(flag) = spot.value else {
            spot.wrong("must be true or false", out);
            return usual;
        };
        *flag
    }

    /// A whole number that may be absent.
    pub(super) fn count(&self, name: &str, range: (u32, u32), out: &mut Out) -> Option<u32> {
        let spot = self.get(name)?;
        let found = spot.integer(u64::from(range.0), u64::from(range.1), out)?;
        u32::try_from(found).ok()
    }

    /// A word of a list, or the usual one.
    pub(super) fn word<T: Copy>(&self, name: &str, words: &[(&str, T)], usual: T, out: &mut Out) -> T {
        self.get(name)
            .and_then(|spot| spot.word(words, out))
            .unwrap_or(usual)
    }

    /// All keys with their values.
    pub(super) fn each(&self) -> impl Iterator<Item = (&'v str, Spot<'v>)> {
        self.map.iter().map(|(name, value)| {
            let at = below(&self.at, name);
            (name.as_str(), Spot { value, at })
        })
    }

    /// How many keys there are.
    pub(super) fn len(&self) -> usize {
        self.map.len()
    }
}

impl<'v> Spot<'v> {
    pub(super) fn wrong(&self, rule: &str, out: &mut Out) {
        let message = format!("{rule}, not {}", described(self.value));
        out.say(&self.at, "workflow.type", message);
    }

    fn outside(&self, rule: impl Display, out: &mut Out) {
        let message = format!("must be {rule}, not {}", described(self.value));
        out.say(&self.at, "workflow.out_of_range", message);
    }

    /// An object with any keys.
    pub(super) fn map(&self, out: &mut Out) -> Option<Fields<'v>> {
        let Value::Object(map) = self.value else {
            self.wrong("must be an object", out);
            return None;
        };
        Some(Fields {
            map,
            at: self.at.clone(),
        })
    }

    /// An object with these keys; those of `later` have a meaning one day.
    pub(super) fn object(&self, known: &[&str], later: &[&str], out: &mut Out) -> Option<Fields<'v>> {
        let fields = self.map(out)?;
        for (name, spot) in fields.each() {
            if later.contains(&name) {
                let message = format!("'{name}' is not supported yet");
                out.say(&spot.at, "workflow.unsupported", message);
            } else if !known.contains(&name) {
                let near = did_you_mean(name, known.iter().copied());
                let message = format!("unknown key `{}`{near}", shown(name));
                out.say(&spot.at, "workflow.unknown_key", message);
            }
        }
        Some(fields)
    }

    pub(super) fn text(&self, out: &mut Out) -> Option<&'v str> {
        let Value::String(text) = self.value else {
            self.wrong("must be a text", out);
            return None;
        };
        Some(text)
    }

    /// A text of at most so many characters.
    pub(super) fn short(&self, chars_max: usize, out: &mut Out) -> Option<&'v str> {
        let text = self.text(out)?;
        if text.chars().nth(chars_max).is_some() {
            let message = format!("must have at most {chars_max} characters");
            out.say(&self.at, "workflow.too_long", message);
        }
        Some(text)
    }

    /// The same, and not empty.
    pub(super) fn filled(&self, chars_max: usize, out: &mut Out) -> Option<&'v str> {
        let text = self.short(chars_max, out)?;
        if text.is_empty() {
            out.say(&self.at, "workflow.missing", "must not be empty");
        }
        Some(text)
    }

    pub(super) fn cel(&self, out: &mut Out) -> Option<String> {
        match self.value {
            Value::String(text) => Some(text.clone()),
            Value::Bool(_) | Value::Number(_) => {
                let rule = format!("an expression is a text: write \"{}\"", self.value);
                out.say(&self.at, "workflow.type", rule);
                None
            }
            Value::Null | Value::Array(_) | Value::Object(_) => {
                self.wrong("must be an expression as text", out);
                None
            }
        }
    }

    pub(super) fn integer(&self, min: u64, max: u64, out: &mut Out) -> Option<u64> {
        let whole = |number: &serde_json::Number| {
            let fraction = number
                .as_f64()
                .filter(|number| number.fract() == 0.0 && *number >= 0.0);
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "whole and not negative; the cast saturates, and the range is looked at below"
            )]
            number.as_u64().or(fraction.map(|number| number as u64))
        };
        let Value::Number(number) = self.value else {
            self.wrong("must be a whole number", out);
            return None;
        };
        let found = whole(number).filter(|found| (min..=max).contains(found));
        if found.is_none() {
            self.outside(format_args!("a whole number from {min} to {max}"), out);
        }
        found
    }

    pub(super) fn number(&self, min: f64, max: f64, out: &mut Out) -> Option<f64> {
        let Value::Number(number) = self.value else {
            self.wrong("must be a number", out);
            return None;
        };
        let found = number.as_f64().filter(|found| (min..=max).contains(found));
        if found.is_none() {
            self.outside(format_args!("from {min} to {max}"), out);
        }
        found
    }

    pub(super) fn span(&self, out: &mut Out) -> Option<Span> {
        let Value::String(text) = self.value else {
            self.wrong("must be a duration as text, like \"90s\" or \"1h30m\"", out);
            return None;
        };
        let read = text.parse::<Span>();
        if let Err(error) = &read {
            out.say(&self.at, "workflow.bad_duration", error.to_string());
        }
        read.ok()
    }

    /// The items of a list.
    pub(super) fn list(&self, out: &mut Out) -> Vec<Spot<'v>> {
        let Value::Array(items) = self.value else {
            self.wrong("must be a list", out);
            return Vec::new();
        };
        let spot = |(index, value): (usize, &'v Value)| Spot {
            value,
            at: format!("{}/{index}", self.at),
        };
        items.iter().enumerate().map(spot).collect()
    }

    /// A list of at most so many items.
    pub(super) fn list_up_to(&self, most: usize, out: &mut Out) -> Vec<Spot<'v>> {
        let items = self.list(out);
        if items.len() > most {
            let message = format!("has {} items, and {most} are allowed", items.len());
            out.say(&self.at, "workflow.limit", message);
        }
        items
    }

    /// A list of texts that are not empty.
    pub(super) fn texts(&self, most: usize, chars_max: usize, out: &mut Out) -> Vec<String> {
        let items = self.list_up_to(most, out);
        let read = |item: &Spot<'v>, out: &mut Out| item.filled(chars_max, out).map(str::to_owned);
        items.iter().filter_map(|item| read(item, out)).collect()
    }

    pub(super) fn word<T: Copy>(&self, words: &[(&str, T)], out: &mut Out) -> Option<T> {
        let text = self.text(out)?;
        let found = words
            .iter()
            .find(|(word, _)| *word == text)
            .map(|(_, found)| *found);
        if found.is_none() {
            let all: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
            let near = did_you_mean(text, all.iter().copied());
            let message = format!("must be one of {}, not `{}`{near}", all.join(", "), shown(text));
            out.say(&self.at, "workflow.bad_value", message);
        }
        found
    }

    /// The name of a step: `[A-Za-z_][A-Za-z0-9_-]{0,62}`.
    pub(super) fn step_ref(&self, out: &mut Out) -> Option<StepRef> {
        let text = self.text(out)?;
        let fits = text.len() <= limits::STEP_REF_BYTES_MAX
            && text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
            && { text.bytes() }.all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
        if !fits {
            let message = format!("`{}` is no step name; it must match {REF_PATTERN}", shown(text));
            out.say(&self.at, "workflow.bad_ref", message);
            return None;
        }
        StepRef::new(text)
    }

    /// The name of a definition: `[a-z0-9][a-z0-9-]{0,62}`.
    pub(super) fn slug(&self, out: &mut Out) -> Option<String> {
        let text = self.text(out)?;
        if is_slug(text) {
            return Some(text.to_owned());
        }
        let message = format!(
            "`{}` is no name for a workflow; it must match {SLUG_PATTERN}",
            shown(text)
        );
        out.say(&self.at, "workflow.bad_slug", message);
        None
    }
}

const REF_PATTERN: &str = "[A-Za-z_][A-Za-z0-9_-]{0,62}";
const SLUG_PATTERN: &str = "[a-z0-9][a-z0-9-]{0,62}";

/// True for the name of a definition of the API.
pub(super) fn is_slug(text: &str) -> bool {
    let letter = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    text.len() <= limits::FAMILY_SLUG_BYTES_MAX
        && text.bytes().next().is_some_and(letter)
        && text.bytes().all(|byte| letter(byte) || byte == b'-')
}
