//! Reading an object field by field. A wrong value is a fault with its place and is read as if it were not there, so that
//! what else is wrong is found in the same pass. Lengths of time and instants are put into their one form on the way.

use std::fmt::Display;
use std::str::FromStr;

use serde_json::{Map, Value};

use crate::domain::routing::duration;
use crate::domain::routing::fault::Fault;
use crate::words::limits;
use crate::words::time::Micros;

/// One object that is read, and where it stands.
pub(super) struct Fields<'a> {
    at: String,
    map: &'a mut Map<String, Value>,
    faults: &'a mut Vec<Fault>,
}

/// A name as one part of a pointer (RFC 6901).
pub(super) fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

impl<'a> Fields<'a> {
    /// `at` is the pointer of the object, empty for the whole. What is `null` counts as not there.
    pub(super) fn new(
        at: impl Into<String>,
        map: &'a mut Map<String, Value>,
        faults: &'a mut Vec<Fault>,
        known: &[&str],
    ) -> Fields<'a> {
        map.retain(|_, value| !value.is_null());
        let mut fields = Fields {
            at: at.into(),
            map,
            faults,
        };
        fields.refuse_unknown(known);
        fields
    }

    fn refuse_unknown(&mut self, known: &[&str]) {
        let unknown: Vec<String> = self
            .map
            .keys()
            .filter(|name| !known.contains(&name.as_str()))
            .take(limits::WORK_FAULTS_MAX)
            .cloned()
            .collect();
        for name in unknown {
            // The distance costs the product of both, in memory too; no field has such a name.
            let near = known.iter().filter(|_| name.len() <= limits::HINT_BYTES_MAX);
            let meant = near
                .map(|word| (strsim::damerau_levenshtein(&name, word), *word))
                .min()
                .filter(|(distance, _)| *distance <= 2);
            let hint = meant.map_or_else(String::new, |(_, word)| format!("; did you mean `{word}`?"));
            let shown: String = name.chars().take(limits::PLACE_NAME_CHARS_MAX).collect();
            self.fault(&shown, "field.unknown", format!("unknown field{hint}"));
        }
        self.map.retain(|name, _| known.contains(&name.as_str()));
    }

    /// The pointer of a field.
    pub(super) fn pointer(&self, key: &str) -> String {
        format!("{}/{}", self.at, escaped(key))
    }

    /// A fault of a field.
    pub(super) fn fault(&mut self, key: &str, code: &'static str, detail: impl Into<String>) {
        let pointer = self.pointer(key);
        self.faults.push(Fault::new(pointer, code, detail));
    }

    /// A fault that was found elsewhere.
    pub(super) fn push(&mut self, fault: Fault) {
        self.faults.push(fault);
    }

    pub(super) fn has(&self, key: &str) -> bool {
        self.map.contains_key(key)
    }

    pub(super) fn raw(&self, key: &str) -> Option<&Value> {
        self.map.get(key)
    }

    /// Puts a value into its one form.
    pub(super) fn set(&mut self, key: &str, value: impl Into<Value>) {
        self.map.insert(key.to_owned(), value.into());
    }

    fn wrong_type(&mut self, key: &str, wanted: &str) {
        self.fault(key, "field.type", format!("must be {wanted}"));
    }

    /// A text of at most so many characters.
    pub(super) fn text(&mut self, key: &str, chars_max: usize) -> Option<String> {
        let Some(text) = self.map.get(key)?.as_str().map(str::to_owned) else {
            self.wrong_type(key, "a text");
            return None;
        };
        let count = text.chars().count();
        if count > chars_max {
            let detail = format!("has {count} characters, and {chars_max} are allowed");
            self.fault(key, "field.too_long", detail);
            return None;
        }
        Some(text)
    }

    /// A text that must be there, as names are.
    pub(super) fn name(&mut self, key: &str) -> Option<String> {
        match self.map.get(key) {
            None => self.fault(key, "field.required", "must be given"),
            Some(Value::String(text)) if text.is_empty() => {
                self.fault(key, "field.required", "must not be empty");
            }
            Some(Value::String(text)) if text.chars().any(char::is_control) => {
                self.fault(key, "field.value", "must have no control characters");
            }
            Some(_) => return self.text(key, limits::ROUTING_NAME_CHARS_MAX),
        }
        None
    }

    pub(super) fn flag(&mut self, key: &str) -> Option<bool> {
        let flag = self.map.get(key)?.as_bool();
        if flag.is_none() {
            self.wrong_type(key, "true or false");
        }
        flag
    }

    /// A whole number within the bounds.
    pub(super) fn whole(&mut self, key: &str, min: u64, max: u64) -> Option<u64> {
        let value = self.map.get(key)?;
        let whole = value.as_u64();
        if let Some(number) = whole.filter(|number| (min..=max).contains(number)) {
            return Some(number);
        }
        if whole.is_some() || value.is_i64() {
            self.fault(key, "field.range", format!("must be {min} to {max}"));
        } else {
            self.wrong_type(key, "a whole number");
        }
        None
    }

    /// The same for what fits into 32 bits.
    pub(super) fn whole32(&mut self, key: &str, min: u32, max: u32) -> Option<u32> {
        let number = self.whole(key, min.into(), max.into());
        number.and_then(|number| u32::try_from(number).ok())
    }

    /// A number within the bounds.
    pub(super) fn number(&mut self, key: &str, min: f64, max: f64) -> Option<f64> {
        let Some(number) = self.map.get(key)?.as_f64() else {
            self.wrong_type(key, "a number");
            return None;
        };
        if (min..=max).contains(&number) {
            return Some(number);
        }
        self.fault(key, "field.range", format!("must be {min} to {max}"));
        None
    }

    /// A length of time within the bounds, in microseconds.
    pub(super) fn duration(&mut self, key: &str, min_us: u64, max_us: u64) -> Option<u64> {
        let Some(text) = self.map.get(key)?.as_str() else {
            self.wrong_type(key, "a length of time like \"30s\"");
            return None;
        };
        let Some(us) = duration::read(text) else {
            let detail = "is no length of time; write 30s, 1h30m or 250ms";
            self.fault(key, "field.type", detail);
            return None;
        };
        if !(min_us..=max_us).contains(&us) {
            let (min, max) = (duration::print(min_us), duration::print(max_us));
            self.fault(key, "field.range", format!("must be {min} to {max}"));
            return None;
        }
        self.set(key, duration::print(us));
        Some(us)
    }

    /// An instant in RFC 3339.
    pub(super) fn instant(&mut self, key: &str) -> Option<Micros> {
        let at = self.map.get(key)?.as_str().and_then(Micros::parse);
        match at {
            None => self.wrong_type(key, "an instant in RFC 3339, like 2026-01-31T08:00:00Z"),
            Some(at) => self.set(key, at.to_string()),
        }
        at
    }

    /// One of a closed list of words.
    pub(super) fn word<T>(&mut self, key: &str, of: fn(&str) -> Option<T>, words: &[&str]) -> Option<T> {
        let Some(text) = self.map.get(key)?.as_str().map(str::to_owned) else {
            self.wrong_type(key, "a text");
            return None;
        };
        let found = of(&text);
        if found.is_none() {
            let shown: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
            self.fault(key, "field.value", format!("must be one of {}", shown.join(", ")));
        }
        found
    }

    /// The id of another object; what is no id names nothing.
    pub(super) fn id<T: FromStr<Err: Display>>(&mut self, key: &str, not_found: &'static str) -> Option<T> {
        let Some(text) = self.map.get(key)?.as_str().map(str::to_owned) else {
            self.wrong_type(key, "an id");
            return None;
        };
        match text.parse() {
            Ok(id) => Some(id),
            Err(bad) => {
                self.fault(key, not_found, format!("there is none: {bad}"));
                None
            }
        }
    }

    /// The items of a list.
    pub(super) fn list(&mut self, key: &str, max: usize) -> Option<Vec<Value>> {
        let Some(items) = self.map.get(key)?.as_array().cloned() else {
            self.wrong_type(key, "a list");
            return None;
        };
        if items.len() > max {
            let detail = format!("has {} items, and {max} are allowed", items.len());
            self.fault(key, "field.range", detail);
            return None;
        }
        Some(items)
    }

    /// An object inside.
    pub(super) fn part(&mut self, key: &str, known: &[&str]) -> Option<Fields<'_>> {
        let at = self.pointer(key);
        if !self.map.get(key)?.is_object() {
            self.wrong_type(key, "an object");
            return None;
        }
        let map = self.map.get_mut(key)?.as_object_mut()?;
        Some(Fields::new(at, map, self.faults, known))
    }

    /// A map whose keys are the caller's own.
    pub(super) fn map(&mut self, key: &str) -> Option<Map<String, Value>> {
        let map = self.map.get(key)?.as_object().cloned();
        if map.is_none() {
            self.wrong_type(key, "an object");
        }
        map
    }

    /// `metadata`: texts by the caller's own keys.
    pub(super) fn metadata(&mut self) -> std::collections::BTreeMap<String, String> {
        let mut found = std::collections::BTreeMap::new();
        let Some(map) = self.map("metadata") else {
            return found;
        };
        // `null` removes a key, and is none of a new object.
        let map: Map<String, Value> = map.into_iter().filter(|(_, value)| !value.is_null()).collect();
        if map.len() > limits::METADATA_KEYS_MAX {
            let detail = format!(
                "has {} keys, and {} are allowed",
                map.len(),
                limits::METADATA_KEYS_MAX
            );
            self.fault("metadata", "field.range", detail);
        }
        let at = self.pointer("metadata");
        for (key, value) in &map {
            let pointer = format!("{at}/{}", escaped(key));
            let chars = value.as_str().map(|text| text.chars().count());
            let fault = if key.chars().count() > limits::METADATA_KEY_CHARS_MAX {
                let detail = format!(
                    "its key has more than {} characters",
                    limits::METADATA_KEY_CHARS_MAX
                );
                Some(Fault::new(pointer, "field.too_long", detail))
            } else if chars.is_none() {
                Some(Fault::new(pointer, "field.type", "must be a text"))
            } else if chars > Some(limits::METADATA_VALUE_CHARS_MAX) {
                let detail = format!("has more than {} characters", limits::METADATA_VALUE_CHARS_MAX);
                Some(Fault::new(pointer, "field.too_long", detail))
            } else {
                None
            };
            match fault {
                Some(fault) => self.push(fault),
                None => {
                    found.insert(key.clone(), value.as_str().unwrap_or_default().to_owned());
                }
            }
        }
        self.set("metadata", map);
        found
    }
}
