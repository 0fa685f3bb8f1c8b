//! The body of `POST /api/route`, read: every fault of its shape at once. How large work may be is judged by the pass.

#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "where one kind of JSON is right, every other is wrong"
)]

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value};

use super::fault::Fault;
use super::objects::{Explain, Location};
use super::pass::Request;
use super::strategies::check_options;
use super::work::Work;
use crate::words::ids::WorkId;
use crate::words::limits;
use crate::words::time::Micros;

/// The member of a body that the work stands in.
pub const WORK_FIELD: &str = "work";
/// Where the work stands in the body.
const WORK: &str = concat!("/", "work");
/// Fields of the body.
const FIELDS: [&str; 9] = [
    "work",
    "pool_id",
    "strategy",
    "strategy_options",
    "exclude_recipient_ids",
    "recipient_id",
    "force",
    "dry_run",
    "explain",
];
/// Fields of the work.
const WORK_FIELDS: [&str; 13] = [
    "id",
    "external_id",
    "kind",
    "source",
    "priority",
    "attributes",
    "tags",
    "units",
    "location",
    "timezone",
    "deadline_at",
    "parent_decision_id",
    "consent",
];

/// Reads the body. `fresh` is the id of work that brings none.
pub fn read(body: &Map<String, Value>, now: Micros, fresh: WorkId) -> Result<Request, Vec<Fault>> {
    let mut reader = Reader::default();
    reader.known("", body, &FIELDS);
    let work = match body.get("work") {
        Some(Value::Object(work)) => reader.work(work, now, fresh),
        Some(other) => {
            reader.wrong(WORK, "an object", other);
            empty(now, fresh)
        }
        None => {
            reader.fault(
                WORK,
                "field.required",
                "say what is to be routed: `work` is missing",
            );
            empty(now, fresh)
        }
    };
    let mut request = Request::new(work);
    request.recipient_pool = reader.parsed(body, "", "pool_id", "the id of a pool");
    request.recipient = reader.parsed(body, "", "recipient_id", "the id of a recipient");
    request.strategy = reader.text(body, "", "strategy", limits::ROUTING_WORD_CHARS_MAX);
    request.force = reader.truth(body, "force");
    request.dry_run = reader.truth(body, "dry_run");
    request.exclude = reader.excluded(body);
    request.strategy_options = reader.options(body);
    if let Some(word) = reader.text(body, "", "explain", limits::ROUTING_WORD_CHARS_MAX) {
        request.explain = Explain::of(&word);
        if request.explain.is_none() {
            let words = Explain::WORDS.join("`, `");
            reader.fault(
                "/explain",
                "field.enum",
                &format!("`explain` is one of `{words}`"),
            );
        }
    }
    if request.force && request.recipient.is_none() {
        reader.fault("/force", "field.range", "`force` goes with `recipient_id` only");
    }
    if reader.faults.is_empty() {
        Ok(request)
    } else {
        Err(reader.faults)
    }
}

/// The work alone, as `rules:test` and stored requests have it.
pub fn read_work(work: &Map<String, Value>, now: Micros, fresh: WorkId) -> Result<Work, Vec<Fault>> {
    let mut reader = Reader::default();
    let work = reader.work(work, now, fresh);
    if reader.faults.is_empty() {
        Ok(work)
    } else {
        Err(reader.faults)
    }
}

/// The pointer of a field of the work.
fn place_of(name: &str) -> String {
    format!("{WORK}/{name}")
}

/// Texts without their places.
fn words(texts: Vec<(usize, String)>) -> Vec<String> {
    texts.into_iter().map(|(_, text)| text).collect()
}

fn empty(now: Micros, id: WorkId) -> Work {
    Work {
        id,
        external_id: None,
        kind: String::new(),
        source: None,
        priority: 5,
        attributes: Map::new(),
        tags: Vec::new(),
        units: 1,
        location: None,
        timezone: None,
        deadline_at: None,
        parent_decision_id: None,
        consent: Vec::new(),
        created_at: now,
    }
}

#[derive(Default)]
struct Reader {
    faults: Vec<Fault>,
}

impl Reader {
    fn fault(&mut self, pointer: &str, code: &'static str, detail: &str) {
        self.faults.push(Fault::new(pointer, code, detail));
    }

    fn wrong(&mut self, pointer: &str, want: &str, got: &Value) {
        let kind = match got {
            Value::Null => "null",
            Value::Bool(_) => "a boolean",
            Value::Number(_) => "a number",
            Value::String(_) => "a text",
            Value::Array(_) => "a list",
            Value::Object(_) => "an object",
        };
        let name = pointer.rsplit('/').next().unwrap_or_default();
        self.fault(
            pointer,
            "field.type",
            &format!("`{name}` must be {want}, not {kind}"),
        );
    }

    fn known(&mut self, at: &str, object: &Map<String, Value>, fields: &[&str]) {
        let unknown = object.keys().filter(|name| !fields.contains(&name.as_str()));
        for name in unknown.take(limits::WORK_FAULTS_MAX) {
            let shown: String = name.chars().take(64).collect();
            let pointer = format!("{at}/{}", shown.replace('~', "~0").replace('/', "~1"));
            let detail = format!("`{shown}` is no field here; those are {}", fields.join(", "));
            self.fault(&pointer, "field.unknown", &detail);
        }
    }

    fn value<'v>(object: &'v Map<String, Value>, name: &str) -> Option<&'v Value> {
        object.get(name).filter(|value| !value.is_null())
    }

    fn text(
        &mut self,
        object: &Map<String, Value>,
        at: &str,
        name: &str,
        chars_max: usize,
    ) -> Option<String> {
        let value = Reader::value(object, name)?;
        let pointer = format!("{at}/{name}");
        match value {
            Value::String(text) if text.chars().count() > chars_max => {
                let detail = format!("`{name}` has more than {chars_max} characters");
                self.fault(&pointer, "field.too_long", &detail);
                None
            }
            Value::String(text) if text.chars().any(char::is_control) => {
                let detail = format!("`{name}` has a control character");
                self.fault(&pointer, "field.characters", &detail);
                None
            }
            Value::String(text) => Some(text.clone()),
            other => {
                self.wrong(&pointer, "a text", other);
                None
            }
        }
    }

    fn parsed<T: std::str::FromStr>(
        &mut self,
        object: &Map<String, Value>,
        at: &str,
        name: &str,
        what: &str,
    ) -> Option<T> {
        let text = self.text(object, at, name, limits::ROUTING_WORD_CHARS_MAX)?;
        let parsed = text.parse().ok();
        if parsed.is_none() {
            let shown: String = text.chars().take(64).collect();
            let detail = format!("`{shown}` is not {what}");
            self.fault(&format!("{at}/{name}"), "field.format", &detail);
        }
        parsed
    }

    fn truth(&mut self, object: &Map<String, Value>, name: &str) -> bool {
        match Reader::value(object, name) {
            None => false,
            Some(Value::Bool(truth)) => *truth,
            Some(other) => {
                self.wrong(&format!("/{name}"), "true or false", other);
                false
            }
        }
    }

    fn whole(
        &mut self,
        object: &Map<String, Value>,
        (at, name): (&str, &str),
        (least, most): (u64, u64),
        default: u64,
    ) -> u64 {
        let Some(value) = Reader::value(object, name) else {
            return default;
        };
        let pointer = format!("{at}/{name}");
        match value.as_u64() {
            Some(number) if (least..=most).contains(&number) => return number,
            None if !value.is_number() => self.wrong(&pointer, "a whole number", value),
            Some(_) | None => {
                let detail = format!("`{name}` is {value}; it must be a whole number from {least} to {most}");
                self.fault(&pointer, "field.range", &detail);
            }
        }
        default
    }

    /// A list of texts, each with its place.
    fn texts(
        &mut self,
        object: &Map<String, Value>,
        (at, name): (&str, &str),
        (most, chars_max): (usize, usize),
        once: bool,
    ) -> Vec<(usize, String)> {
        let pointer = format!("{at}/{name}");
        let list = match Reader::value(object, name) {
            None => return Vec::new(),
            Some(Value::Array(list)) => list,
            Some(other) => {
                self.wrong(&pointer, "a list of texts", other);
                return Vec::new();
            }
        };
        if list.len() > most {
            let detail = format!("`{name}` has {} items; {most} are the most", list.len());
            self.fault(&pointer, "work.list_too_long", &detail);
            return Vec::new();
        }
        let (mut texts, mut seen) = (Vec::new(), BTreeSet::new());
        for (place, item) in list.iter().enumerate() {
            let pointer = format!("{pointer}/{place}");
            match item {
                Value::String(text) if text.chars().count() > chars_max => {
                    let detail = format!("it has more than {chars_max} characters");
                    self.fault(&pointer, "field.too_long", &detail);
                }
                Value::String(text) if once && !seen.insert(text.clone()) => {
                    self.fault(&pointer, "tag.duplicate", &format!("`{text}` stands here twice"));
                }
                Value::String(text) => texts.push((place, text.clone())),
                other => self.wrong(&pointer, "a text", other),
            }
        }
        texts
    }

    fn excluded(&mut self, body: &Map<String, Value>) -> BTreeSet<crate::words::ids::RecipientId> {
        let name = "exclude_recipient_ids";
        let limits = (limits::ROUTING_EXCLUDED_MAX, limits::ROUTING_WORD_CHARS_MAX);
        let texts = self.texts(body, ("", name), limits, false);
        let mut ids = BTreeSet::new();
        for (place, text) in texts {
            match text.parse() {
                Ok(id) => {
                    ids.insert(id);
                }
                Err(_) => {
                    let shown: String = text.chars().take(64).collect();
                    let detail = format!("`{shown}` is not the id of a recipient");
                    self.fault(&format!("/{name}/{place}"), "field.format", &detail);
                }
            }
        }
        ids
    }

    fn options(&mut self, body: &Map<String, Value>) -> BTreeMap<String, Map<String, Value>> {
        let mut options = BTreeMap::new();
        match Reader::value(body, "strategy_options") {
            None => {}
            Some(Value::Object(of_strategies)) => {
                for (strategy, of_strategy) in of_strategies {
                    let shown: String = strategy.chars().take(limits::PLACE_NAME_CHARS_MAX).collect();
                    let key = shown.replace('~', "~0").replace('/', "~1");
                    let at = format!("/strategy_options/{key}");
                    match of_strategy {
                        Value::Object(map) => {
                            // Also those of a strategy that is not asked in the end: nothing is ignored silently.
                            let faults = check_options(&at, strategy, map);
                            self.faults
                                .extend(faults.into_iter().take(limits::WORK_FAULTS_MAX));
                            options.insert(strategy.clone(), map.clone());
                        }
                        other => self.wrong(&at, "an object", other),
                    }
                }
            }
            Some(other) => self.wrong("/strategy_options", "an object of strategies", other),
        }
        options
    }

    fn work(&mut self, object: &Map<String, Value>, now: Micros, fresh: WorkId) -> Work {
        let at = WORK;
        self.known(at, object, &WORK_FIELDS);
        let kind = self.text(object, at, "kind", limits::ROUTING_WORD_CHARS_MAX);
        if Reader::value(object, "kind").is_none() || kind.as_deref() == Some("") {
            let detail = "say what kind of work it is: `kind` is missing";
            self.fault(&place_of("kind"), "field.required", detail);
        }
        let number = |number: u64| u32::try_from(number).unwrap_or(u32::MAX);
        Work {
            id: self.parsed(object, at, "id", "a UUID").unwrap_or(fresh),
            external_id: self.text(object, at, "external_id", limits::ROUTING_WORD_CHARS_MAX),
            kind: kind.unwrap_or_default(),
            source: self.text(object, at, "source", limits::ROUTING_WORD_CHARS_MAX),
            priority: u8::try_from(self.whole(object, (at, "priority"), (0, 9), 5)).unwrap_or(9),
            attributes: self.attributes(object),
            tags: words(self.texts(object, (at, "tags"), (64, 64), true)),
            units: number(self.whole(object, (at, "units"), (1, 1_000), 1)),
            location: self.location(object),
            timezone: self.timezone(object),
            deadline_at: self.instant(object, "deadline_at"),
            parent_decision_id: self.parsed(object, at, "parent_decision_id", "the id of a decision"),
            consent: words(self.texts(
                object,
                (at, "consent"),
                (64, limits::ROUTING_WORD_CHARS_MAX),
                false,
            )),
            created_at: now,
        }
    }

    fn attributes(&mut self, work: &Map<String, Value>) -> Map<String, Value> {
        let attributes = match Reader::value(work, "attributes") {
            None => return Map::new(),
            Some(Value::Object(attributes)) => attributes,
            Some(other) => {
                self.wrong(&place_of("attributes"), "an object", other);
                return Map::new();
            }
        };
        attributes.clone()
    }

    fn location(&mut self, work: &Map<String, Value>) -> Option<Location> {
        let at = &place_of("location");
        let object = match Reader::value(work, "location")? {
            Value::Object(object) => object,
            other => {
                self.wrong(at, "an object", other);
                return None;
            }
        };
        self.known(at, object, &["latitude", "longitude"]);
        let mut side = |name: &str, most: f64| {
            let pointer = format!("{at}/{name}");
            match Reader::value(object, name) {
                None => {
                    self.fault(&pointer, "field.required", &format!("`{name}` is missing"));
                    None
                }
                Some(value) => {
                    let number = value.as_f64().filter(|number| number.abs() <= most);
                    if number.is_none() {
                        let detail = format!("`{name}` must be a number from -{most} to {most}");
                        self.fault(&pointer, "field.range", &detail);
                    }
                    number
                }
            }
        };
        let (latitude, longitude) = (side("latitude", 90.0), side("longitude", 180.0));
        Some(Location {
            latitude: latitude?,
            longitude: longitude?,
        })
    }

    fn timezone(&mut self, work: &Map<String, Value>) -> Option<String> {
        let name = self.text(work, WORK, "timezone", limits::ROUTING_WORD_CHARS_MAX)?;
        if !super::hours::is_zone(&name) {
            let detail = format!("`{name}` is no time zone; write an IANA name like Europe/Zurich");
            self.fault(&place_of("timezone"), "timezone.unknown", &detail);
            return None;
        }
        Some(name)
    }

    fn instant(&mut self, work: &Map<String, Value>, name: &str) -> Option<Micros> {
        let text = self.text(work, WORK, name, limits::ROUTING_WORD_CHARS_MAX)?;
        let instant = Micros::parse(&text);
        if instant.is_none() {
            let detail = format!("`{name}` must be an instant like 2026-11-29T15:44:17Z");
            self.fault(&place_of(name), "field.format", &detail);
        }
        instant
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_json(body: &Value) -> Result<Request, Vec<(String, &'static str)>> {
        let read = read(body.as_object().unwrap(), Micros(7), WorkId([9; 16]));
        read.map_err(|faults| {
            let shown = |fault: Fault| (fault.pointer.replace(WORK, "@"), fault.code);
            faults.into_iter().map(shown).collect()
        })
    }

    #[test]
    fn a_body_is_read_with_its_defaults() {
        let request = read_json(&json!({"work": {"kind": "ticket"}})).unwrap();
        assert_eq!((request.work.priority, request.work.units), (5, 1));
        assert_eq!(request.work.id, WorkId([9; 16]));
        assert_eq!(request.work.created_at, Micros(7));
        assert!(!request.dry_run && request.explain.is_none());
        let whole = json!({
            "work": {
                "id": "019ad0f2-7c10-7d02-8a11-1f0c2b3d4e5f", "external_id": "T-1", "kind": "ticket",
                "source": "mail", "priority": 0, "attributes": {"language": ["es"], "deep": {"a": 1}},
                "tags": ["vip"], "units": 3, "location": {"latitude": 47.4, "longitude": 8.5},
                "timezone": "Europe/Zurich", "deadline_at": "2026-11-29T15:44:17Z",
                "parent_decision_id": "019ad0f2-7c11-7a3e-9b52-3c1e5a7d0a01", "consent": ["call"],
            },
            "pool_id": "019ad0e0-0001-7000-8000-000000000001", "strategy": "random",
            "strategy_options": {"random": {}}, "exclude_recipient_ids": [],
            "recipient_id": "019ad0e0-0011-7000-8000-00000000000a", "force": true, "dry_run": true,
            "explain": "all",
        });
        let request = read_json(&whole).unwrap();
        assert_eq!(request.explain, Some(Explain::All));
        assert_eq!(request.work.units, 3);
        assert!(request.force && request.dry_run);
    }

    #[test]
    fn every_fault_is_told_with_its_place() {
        let faults = read_json(&json!({
            "work": {
                "kind": 7, "priority": 10, "units": 0, "tags": ["a", "a"], "ask": {},
                "location": {"latitude": 91}, "timezone": "Mars/Base", "deadline_at": "soon",
            },
            "pool_id": "billing", "explain": "everything", "force": true, "extra/x": 1,
        }))
        .unwrap_err();
        for expected in [
            ("/extra~1x", "field.unknown"),
            ("@/ask", "field.unknown"),
            ("@/kind", "field.type"),
            ("@/priority", "field.range"),
            ("@/units", "field.range"),
            ("@/tags/1", "tag.duplicate"),
            ("@/location/latitude", "field.range"),
            ("@/location/longitude", "field.required"),
            ("@/timezone", "timezone.unknown"),
            ("@/deadline_at", "field.format"),
            ("/pool_id", "field.format"),
            ("/explain", "field.enum"),
            ("/force", "field.range"),
        ] {
            assert!(
                faults
                    .iter()
                    .any(|(pointer, code)| (pointer.as_str(), *code) == expected),
                "{expected:?} in {faults:?}"
            );
        }
        assert_eq!(
            read_json(&json!({})).unwrap_err(),
            [("@".to_owned(), "field.required")]
        );
    }

    #[test]
    fn lists_are_bounded() {
        let tags: Vec<String> = (0..65).map(|number| number.to_string()).collect();
        let faults = read_json(&json!({"work": {"kind": "t", "tags": tags}})).unwrap_err();
        assert_eq!(faults, [("@/tags".to_owned(), "work.list_too_long")]);
    }
}
