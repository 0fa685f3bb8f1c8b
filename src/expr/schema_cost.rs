//! What a schema and a check with it will cost, found out before the validator runs: it has no budget of its own.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::fault::cut;
use super::schema::{ISSUES_MAX, Issue, SCHEMA_BYTES_MAX, SCHEMA_DEPTH_MAX};
use super::schema_words::escaped;

/// References in a schema.
const REFERENCES_MAX: usize = 200;
/// Patterns in a schema.
const PATTERNS_MAX: usize = 100;
/// Parts of a schema with each reference replaced by what it names: the validator may unfold it.
const UNFOLDED_MAX: u64 = 20_000;
/// Pairs of a schema and a value that one check may visit: about half a second.
const VISITS_MAX: u64 = 1_000_000;

/// Named places of a schema document, as pointers.
#[derive(Debug, Default)]
pub(super) struct Places {
    anchors: HashMap<String, String>,
}

/// Keywords whose value maps names to schemas.
const NAMED: &[&str] = &[
    "properties",
    "patternProperties",
    "$defs",
    "definitions",
    "dependentSchemas",
    "dependencies",
];
/// Keywords whose value is data.
const DATA: &[&str] = &["const", "enum", "default", "examples", "example"];
/// Keywords with schemas for the same value.
const IN_PLACE: &[&str] = &["allOf", "anyOf", "oneOf", "not", "if", "then", "else"];
const IN_PLACE_NAMED: &[&str] = &["dependentSchemas", "dependencies"];
/// Keywords with schemas for elements of a list.
const OF_ELEMENTS: &[&str] = &[
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "unevaluatedItems",
];
/// Keywords with schemas for fields of a map.
const OF_FIELDS: &[&str] = &["additionalProperties", "unevaluatedProperties"];

fn is_reference(name: &str) -> bool {
    matches!(name, "$ref" | "$dynamicRef" | "$recursiveRef")
}

/// What a value in the document is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Schema,
    Names,
    Data,
}

/// Refuses what is ours to refuse: size, depth, references out of the document.
pub(super) fn inspect(document: &Value) -> Result<Places, Vec<Issue>> {
    if !matches!(document, Value::Object(_) | Value::Bool(_)) {
        return Err(whole("a schema is a map, or true or false"));
    }
    let mut places = Places::default();
    let mut issues = Vec::new();
    let mut references = Vec::new();
    let (mut bytes, mut patterns) = (0, 0);
    let mut open = vec![(document, String::new(), 1, Role::Schema)];
    while let Some((value, pointer, depth, role)) = open.pop() {
        if depth > SCHEMA_DEPTH_MAX {
            let message =
                format!("the schema is nested more than {SCHEMA_DEPTH_MAX} levels deep; use $defs and $ref");
            return Err(vec![Issue { pointer, message }]);
        }
        bytes += written_bytes(value);
        if bytes > SCHEMA_BYTES_MAX {
            return Err(whole(&format!(
                "the schema has more than {SCHEMA_BYTES_MAX} bytes"
            )));
        }
        match value {
            Value::Object(object) => {
                if role == Role::Schema {
                    patterns += patterns_of(object);
                    places.note(object, &pointer);
                    inspect_keywords(object, &pointer, &mut issues, &mut references);
                }
                for (name, inner) in object.iter().rev() {
                    let place = format!("{pointer}/{}", escaped(name));
                    open.push((inner, place, depth + 1, role_of(role, name)));
                }
            }
            Value::Array(elements) => {
                for (index, inner) in elements.iter().enumerate().rev() {
                    open.push((inner, format!("{pointer}/{index}"), depth + 1, role));
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    for (pointer, target) in &references {
        if places.resolve(document, target).is_none() {
            let message = format!("there is no {} in the schema", cut(target, 80));
            issues.push(Issue {
                pointer: pointer.clone(),
                message,
            });
        }
    }
    if references.len() > REFERENCES_MAX {
        let message = format!(
            "the schema has {} references, and {REFERENCES_MAX} are allowed",
            references.len()
        );
        issues.extend(whole(&message));
    }
    if patterns > PATTERNS_MAX {
        let message = format!("the schema has {patterns} patterns, and {PATTERNS_MAX} are allowed");
        issues.extend(whole(&message));
    }
    issues.truncate(ISSUES_MAX);
    if issues.is_empty() {
        Ok(places)
    } else {
        Err(issues)
    }
}

fn whole(message: &str) -> Vec<Issue> {
    vec![Issue {
        pointer: String::new(),
        message: message.to_owned(),
    }]
}

fn role_of(parent: Role, name: &str) -> Role {
    match parent {
        Role::Data => Role::Data,
        Role::Schema if NAMED.contains(&name) => Role::Names,
        Role::Schema if DATA.contains(&name) => Role::Data,
        Role::Names | Role::Schema => Role::Schema,
    }
}

fn inspect_keywords(
    object: &Map<String, Value>,
    pointer: &str,
    issues: &mut Vec<Issue>,
    references: &mut Vec<(String, String)>,
) {
    for (name, value) in object {
        let Value::String(text) = value else { continue };
        let place = format!("{pointer}/{}", escaped(name));
        if is_reference(name) {
            if text.starts_with('#') {
                references.push((place, text.clone()));
            } else {
                let message = format!(
                    "`{}` leads out of the schema; put what it names under $defs and write #/$defs/…",
                    cut(text, 80)
                );
                issues.push(Issue {
                    pointer: place,
                    message,
                });
            }
        } else if name == "$id" && !pointer.is_empty() && !text.starts_with('#') {
            issues.push(Issue {
                pointer: place,
                message: "an $id below the root would change what references mean; leave it out".to_owned(),
            });
        }
    }
}

fn patterns_of(object: &Map<String, Value>) -> usize {
    let named = object.get("patternProperties").and_then(Value::as_object);
    usize::from(object.contains_key("pattern")) + named.map_or(0, Map::len)
}

/// About what a value adds to the written document, its parts not counted.
fn written_bytes(value: &Value) -> usize {
    match value {
        Value::Null | Value::Bool(_) => 5,
        Value::Number(number) => number.to_string().len(),
        Value::String(text) => text.len() + 2,
        Value::Array(elements) => elements.len() + 2,
        Value::Object(object) => object.keys().map(|name| name.len() + 4).sum::<usize>() + 2,
    }
}

impl Places {
    fn note(&mut self, object: &Map<String, Value>, pointer: &str) {
        for keyword in ["$anchor", "$dynamicAnchor", "$id", "id"] {
            let anchor = object.get(keyword).and_then(Value::as_str);
            let anchor = if keyword.ends_with("id") {
                anchor.and_then(|id| id.strip_prefix('#'))
            } else {
                anchor
            };
            if let Some(anchor) = anchor {
                self.anchors.insert(anchor.to_owned(), pointer.to_owned());
            }
        }
    }

    /// What a reference names.
    fn resolve<'d>(&self, document: &'d Value, target: &str) -> Option<&'d Value> {
        let fragment = target.strip_prefix('#')?;
        if fragment.is_empty() || fragment.starts_with('/') {
            return document.pointer(&decoded(fragment));
        }
        document.pointer(self.anchors.get(fragment)?)
    }

    fn referred<'d>(&self, document: &'d Value, object: &Map<String, Value>) -> Vec<&'d Value> {
        object
            .iter()
            .filter(|(name, _)| is_reference(name))
            .filter_map(|(_, target)| self.resolve(document, target.as_str()?))
            .collect()
    }
}

/// A fragment without its percent signs.
fn decoded(fragment: &str) -> String {
    let mut bytes = Vec::with_capacity(fragment.len());
    let mut rest = fragment.as_bytes();
    while let Some((first, behind)) = rest.split_first() {
        let code = rest.get(1..3).and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        match code.filter(|_| *first == b'%') {
            Some(byte) => {
                bytes.push(byte);
                rest = &rest[3..];
            }
            None => {
                bytes.push(*first);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// The schemas below a keyword: one, or a list of them.
fn below<'d>(
    object: &'d Map<String, Value>,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'d Value> {
    keywords
        .iter()
        .filter_map(|keyword| object.get(*keyword))
        .flat_map(|value| {
            value
                .as_array()
                .map_or(std::slice::from_ref(value), Vec::as_slice)
        })
}

fn named<'d>(
    object: &'d Map<String, Value>,
    keywords: &'static [&'static str],
) -> impl Iterator<Item = &'d Value> {
    keywords
        .iter()
        .filter_map(|keyword| object.get(*keyword)?.as_object())
        .flat_map(Map::values)
}

/// Refuses a schema that would be followed without an end, or that is small only as it is written.
pub(super) fn refuse_endless(document: &Value, places: &Places) -> Result<(), Vec<Issue>> {
    let graph = Graph { document, places };
    if graph.is_endless() {
        return Err(whole(
            "the schema refers to itself without going deeper into the data",
        ));
    }
    if graph.unfolded() > UNFOLDED_MAX {
        let message =
            format!("the schema unfolds to more than {UNFOLDED_MAX} parts; refer to fewer of them twice");
        return Err(whole(&message));
    }
    Ok(())
}

/// The schemas of a document and what leads from one to another.
struct Graph<'d> {
    document: &'d Value,
    places: &'d Places,
}

/// A schema on the way from the root: what still follows from it, and what was counted of it.
struct Entered<'d> {
    schema: &'d Value,
    rest: Vec<&'d Value>,
    size: u64,
}

impl<'d> Graph<'d> {
    /// Schemas that hold for the same value.
    fn in_place(&self, schema: &'d Value) -> Vec<&'d Value> {
        let Value::Object(object) = schema else {
            return Vec::new();
        };
        let mut found: Vec<&Value> = below(object, IN_PLACE).collect();
        found.extend(named(object, IN_PLACE_NAMED));
        found.extend(self.places.referred(self.document, object));
        found
    }

    /// Every schema that follows, those for parts of the value and those that only wait to be referred to included.
    fn following(&self, schema: &'d Value) -> Vec<&'d Value> {
        let mut found = self.in_place(schema);
        if let Value::Object(object) = schema {
            found.extend(below(object, OF_ELEMENTS));
            found.extend(below(object, OF_FIELDS));
            found.extend(below(object, &["propertyNames"]));
            found.extend(named(
                object,
                &["properties", "patternProperties", "$defs", "definitions"],
            ));
        }
        found
    }

    /// Parts, with each reference replaced by what it names.
    fn unfolded(&self) -> u64 {
        walk(
            self.document,
            &mut HashMap::new(),
            |schema| self.following(schema),
            || (),
        )
    }

    /// Whether some schema holds for a value only if it holds for that value.
    fn is_endless(&self) -> bool {
        let mut met_again = false;
        let mut done = HashMap::new();
        let mut open = vec![self.document];
        let mut seen = HashSet::new();
        while let Some(schema) = open.pop() {
            if !seen.insert(std::ptr::from_ref(schema)) {
                continue;
            }
            if !done.contains_key(&std::ptr::from_ref(schema)) {
                walk(
                    schema,
                    &mut done,
                    |inner| self.in_place(inner),
                    || met_again = true,
                );
            }
            open.extend(self.following(schema));
        }
        met_again
    }
}

/// Goes through everything that `next` leads to, each schema once, and tells `again` of those that are met while
/// they are still open. Returns the size of `root`, where what is met again counts as it did the first time.
fn walk<'d>(
    root: &'d Value,
    sizes: &mut HashMap<*const Value, u64>,
    next: impl Fn(&'d Value) -> Vec<&'d Value>,
    mut again: impl FnMut(),
) -> u64 {
    let enter = |schema: &'d Value| Entered {
        schema,
        rest: next(schema),
        size: 1,
    };
    let mut path = vec![enter(root)];
    let mut last = 0;
    while let Some(top) = path.last_mut() {
        let Some(inner) = top.rest.pop() else {
            last = top.size;
            sizes.insert(std::ptr::from_ref(top.schema), last);
            path.pop();
            if let Some(outer) = path.last_mut() {
                outer.size = outer.size.saturating_add(last);
            }
            continue;
        };
        if let Some(known) = sizes.get(&std::ptr::from_ref(inner)) {
            top.size = top.size.saturating_add(*known);
        } else if path.iter().any(|entered| std::ptr::eq(entered.schema, inner)) {
            again();
        } else {
            path.push(enter(inner));
        }
    }
    last
}

/// Whether a check of `value` visits few enough pairs of schema and value. It counts every alternative, so it may count
/// more than the validator visits, and never less.
pub(super) fn is_affordable(document: &Value, places: &Places, value: &Value) -> bool {
    let mut visits: u64 = 0;
    let mut open = vec![(document, value)];
    while let Some((schema, value)) = open.pop() {
        visits += 1;
        let Value::Object(object) = schema else { continue };
        visits += own_cost(object, value);
        if visits + open.len() as u64 > VISITS_MAX {
            return false;
        }
        open.extend(below(object, IN_PLACE).map(|inner| (inner, value)));
        open.extend(named(object, IN_PLACE_NAMED).map(|inner| (inner, value)));
        let referred = places.referred(document, object);
        open.extend(referred.into_iter().map(|inner| (inner, value)));
        match value {
            Value::Array(elements) => {
                for inner in below(object, OF_ELEMENTS) {
                    open.extend(elements.iter().map(|element| (inner, element)));
                }
            }
            Value::Object(fields) => visit_fields(object, fields, &mut open),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }
    true
}

fn visit_fields<'d>(
    object: &'d Map<String, Value>,
    fields: &'d Map<String, Value>,
    open: &mut Vec<(&'d Value, &'d Value)>,
) {
    let properties = object.get("properties").and_then(Value::as_object);
    for (name, inner) in properties.into_iter().flatten() {
        open.extend(fields.get(name).map(|field| (inner, field)));
    }
    for inner in named(object, &["patternProperties"]).chain(below(object, OF_FIELDS)) {
        open.extend(fields.values().map(|field| (inner, field)));
    }
    for inner in below(object, &["propertyNames"]) {
        open.extend(fields.values().map(|_| (inner, &Value::Null)));
    }
}

/// What one schema itself costs for a value, in visits.
fn own_cost(object: &Map<String, Value>, value: &Value) -> u64 {
    let length = |keyword: &str| object.get(keyword).and_then(Value::as_array).map_or(0, Vec::len) as u64;
    let lists = length("enum") / 4 + length("required") / 8;
    let patterns = patterns_of(object) as u64;
    let read = match value {
        // A pattern may take a microsecond for a letter.
        Value::String(text) => patterns * (text.len() as u64) / 16,
        Value::Object(fields) => patterns * fields.len() as u64,
        Value::Array(elements) if object.contains_key("uniqueItems") => elements.len() as u64,
        Value::Array(_) | Value::Null | Value::Bool(_) | Value::Number(_) => 0,
    };
    lists + read
}
