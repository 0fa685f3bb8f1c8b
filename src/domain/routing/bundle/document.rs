//! The document of a bundle, taken apart.

use serde_json::{Map, Value};

use crate::domain::routing::ask::WORK_FIELD;
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::fault::Fault;
use crate::words::limits;
use crate::words::time::Micros;

pub(super) const API_VERSION: &str = "ductor.io/v1";
pub(super) const KIND: &str = "RoutingBundle";
const KNOWN: [&str; 10] = [
    "apiVersion",
    "kind",
    "metadata",
    "pools",
    "recipients",
    "rules",
    "traits",
    "claim_queues",
    "workflows",
    "tests",
];

/// A bundle: lists of objects as they are written.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Document {
    /// `metadata.name`: whose objects these are.
    pub name: String,
    /// Recipient pools.
    pub recipient_pools: Vec<Map<String, Value>>,
    /// Recipients.
    pub recipients: Vec<Map<String, Value>>,
    /// Rules.
    pub rules: Vec<Map<String, Value>>,
    /// Traits.
    pub traits: Vec<Map<String, Value>>,
    /// Claim queues.
    pub claim_queues: Vec<Map<String, Value>>,
    /// Workflows that must be published: name, and the version if one is named.
    pub workflows: Vec<(String, Option<u32>)>,
    /// Decisions that must come out so.
    pub tests: Vec<Test>,
}

/// Work that must be decided in a certain way.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Test {
    /// What it is about.
    pub name: String,
    /// As `POST /api/route` takes it.
    pub work: Map<String, Value>,
    /// When it is decided, for windows of schedules; now unless it is given.
    pub at: Option<Micros>,
    /// What must come out.
    pub expect: Expectation,
}

/// What must come out of a test; what is not said may be anything.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The name of the recipient pool where it ends.
    pub recipient_pool: Option<String>,
    /// The outcome.
    pub outcome: Option<String>,
    /// The name of a recipient that has it.
    pub winner: Option<String>,
}

impl Document {
    /// Reads the shape; what the objects say is read when it is planned.
    pub fn read(value: &Value) -> Result<Document, Vec<Fault>> {
        let Some(map) = value.as_object() else {
            return Err(vec![Fault::new("", "field.type", "a bundle is an object")]);
        };
        let mut faults = Vec::new();
        known("", map, &KNOWN, &mut faults);
        for (key, wanted) in [("apiVersion", API_VERSION), ("kind", KIND)] {
            if map.get(key).and_then(Value::as_str) != Some(wanted) {
                let detail = format!("must be `{wanted}`");
                faults.push(Fault::new(format!("/{key}"), "bundle.kind", detail));
            }
        }
        let mut document = Document {
            name: read_name(map, &mut faults),
            ..Document::default()
        };
        for (key, list) in [
            ("pools", &mut document.recipient_pools),
            ("recipients", &mut document.recipients),
            ("rules", &mut document.rules),
            ("traits", &mut document.traits),
            ("claim_queues", &mut document.claim_queues),
        ] {
            *list = objects(map, key, &mut faults);
        }
        document.workflows = workflows(map, &mut faults);
        document.tests = tests(map, &mut faults);
        if faults.is_empty() {
            Ok(document)
        } else {
            Err(faults)
        }
    }
}

fn known(at: &str, map: &Map<String, Value>, fields: &[&str], faults: &mut Vec<Fault>) {
    for key in map.keys().filter(|key| !fields.contains(&key.as_str())) {
        let shown: String = key.chars().take(64).collect();
        let detail = format!("unknown field; there are {}", fields.join(", "));
        let pointer = format!("{at}/{}", shown.replace('~', "~0").replace('/', "~1"));
        faults.push(Fault::new(pointer, "field.unknown", detail));
    }
}

fn read_name(map: &Map<String, Value>, faults: &mut Vec<Fault>) -> String {
    let Some(metadata) = map.get("metadata").and_then(Value::as_object) else {
        let detail = "must be an object with the `name` of the bundle";
        faults.push(Fault::new("/metadata", "field.required", detail));
        return String::new();
    };
    known("/metadata", metadata, &["name", "labels"], faults);
    let labels = metadata.get("labels").filter(|labels| !labels.is_null());
    let is_fit = |labels: &Value| {
        labels.as_object().is_some_and(|labels| {
            labels.len() <= limits::METADATA_KEYS_MAX && labels.values().all(Value::is_string)
        })
    };
    if labels.is_some_and(|labels| !is_fit(labels)) {
        let detail = format!("must be at most {} texts by name", limits::METADATA_KEYS_MAX);
        faults.push(Fault::new("/metadata/labels", "field.type", detail));
    }
    let name = metadata.get("name").and_then(Value::as_str).unwrap_or_default();
    let is_bad = name.is_empty()
        || name.chars().count() > limits::ROUTING_NAME_CHARS_MAX
        || name.chars().any(char::is_control);
    if is_bad {
        let detail = "must be a name of 1 to 200 characters: whose objects these are";
        faults.push(Fault::new("/metadata/name", "field.required", detail));
    }
    name.to_owned()
}

fn objects(map: &Map<String, Value>, key: &str, faults: &mut Vec<Fault>) -> Vec<Map<String, Value>> {
    let Some(value) = map.get(key).filter(|value| !value.is_null()) else {
        return Vec::new();
    };
    let Some(items) = value.as_array() else {
        faults.push(Fault::new(format!("/{key}"), "field.type", "must be a list"));
        return Vec::new();
    };
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.as_object() {
            Some(object) => found.push(object.clone()),
            None => faults.push(Fault::new(
                format!("/{key}/{index}"),
                "field.type",
                "must be an object",
            )),
        }
    }
    found
}

fn workflows(map: &Map<String, Value>, faults: &mut Vec<Fault>) -> Vec<(String, Option<u32>)> {
    let mut found = Vec::new();
    for (index, item) in objects(map, "workflows", faults).iter().enumerate() {
        let at = format!("/workflows/{index}");
        known(&at, item, &["family_slug", "version"], faults);
        let slug = item.get("family_slug").and_then(Value::as_str);
        let version = match item.get("version") {
            None | Some(Value::Null) => Some(None),
            Some(Value::String(word)) if word == "latest" => Some(None),
            Some(value) => value
                .as_u64()
                .and_then(|number| u32::try_from(number).ok())
                .map(Some),
        };
        match (slug, version) {
            (Some(slug), Some(version)) => found.push((slug.to_owned(), version)),
            (None, _) => {
                let pointer = format!("{at}/family_slug");
                faults.push(Fault::new(pointer, "field.required", "must be given"));
            }
            (_, None) => {
                let detail = "must be the number of a version, or `latest`";
                faults.push(Fault::new(format!("{at}/version"), "field.type", detail));
            }
        }
    }
    found
}

fn tests(map: &Map<String, Value>, faults: &mut Vec<Fault>) -> Vec<Test> {
    let list = objects(map, "tests", faults);
    if list.len() > limits::BUNDLE_TESTS_MAX {
        let detail = format!(
            "has {} tests; {} are the most",
            list.len(),
            limits::BUNDLE_TESTS_MAX
        );
        faults.push(Fault::new("/tests", "field.range", detail));
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, item) in list.iter().enumerate() {
        let at = format!("/tests/{index}");
        known(&at, item, &["name", WORK_FIELD, "at", "expect"], faults);
        let name = item.get("name").and_then(Value::as_str).unwrap_or_default();
        if name.is_empty() {
            faults.push(Fault::new(
                format!("{at}/name"),
                "field.required",
                "must be given",
            ));
        }
        let instant = item.get("at").filter(|at| !at.is_null());
        let decided_at = instant.and_then(Value::as_str).and_then(Micros::parse);
        if instant.is_some() && decided_at.is_none() {
            let detail = "must be an instant like 2026-12-01T15:00:00Z";
            faults.push(Fault::new(format!("{at}/at"), "field.type", detail));
        }
        let mut part = |key: &str| {
            let part = item.get(key).and_then(Value::as_object).cloned();
            if part.is_none() {
                let pointer = format!("{at}/{key}");
                faults.push(Fault::new(pointer, "field.required", "must be an object"));
            }
            part
        };
        if let (Some(work), Some(expect)) = (part(WORK_FIELD), part("expect")) {
            found.push(Test {
                name: name.to_owned(),
                work,
                at: decided_at,
                expect: expectation(&format!("{at}/expect"), &expect, faults),
            });
        }
    }
    found
}

fn expectation(at: &str, expect: &Map<String, Value>, faults: &mut Vec<Fault>) -> Expectation {
    known(at, expect, &["pool", "outcome", "winner"], faults);
    if expect.is_empty() {
        let detail = "must say `pool`, `outcome` or `winner`";
        faults.push(Fault::new(at, "field.required", detail));
    }
    let mut text = |key: &str| match expect.get(key) {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(_) => {
            faults.push(Fault::new(format!("{at}/{key}"), "field.type", "must be a text"));
            None
        }
    };
    let (recipient_pool, outcome, winner) = (text("pool"), text("outcome"), text("winner"));
    let words = Outcome::ALL.map(Outcome::word);
    if outcome
        .as_deref()
        .is_some_and(|outcome| !words.contains(&outcome))
    {
        let detail = format!("must be one of {}", words.join(", "));
        faults.push(Fault::new(format!("{at}/outcome"), "field.value", detail));
    }
    Expectation {
        recipient_pool,
        outcome,
        winner,
    }
}
