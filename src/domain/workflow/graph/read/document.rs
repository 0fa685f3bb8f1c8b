//! The top of a document: its name, its policies, its steps and edges.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::fields::{Fields, Out, Spot, is_slug};
use super::step::{self, Defaults};
use crate::domain::workflow::graph::document::{
    ConcurrencyDoc, Document, EdgeDoc, EdgeKind, FairnessDoc, OnLimit, RetentionDoc, StepDoc, Tier,
};
use crate::domain::workflow::graph::finding::{Finding, shown};
use crate::words::limits;

const KEYS: [&str; 13] = [
    "family_slug",
    "title",
    "description",
    "input_schema",
    "steps",
    "edges",
    "defaults",
    "concurrency",
    "run_timeout",
    "retention",
    "labels",
    "fairness",
    "triggers",
];

/// Known words whose meaning comes with a later release.
const LATER: [&str; 1] = ["triggers"];

/// What was made of a posted document.
#[derive(Debug)]
pub struct Reading {
    /// As far as it could be read; whole if there are no findings. `None` for what is no object.
    pub document: Option<Document>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// Pointers of scatter bodies that were posted as one step.
    single_bodies: BTreeSet<String>,
    /// Steps of which so much is wrong that nothing can be said of what stands around them.
    pub doubtful: BTreeSet<String>,
}

impl Reading {
    /// The document, if nothing is wrong with it by itself.
    pub fn good(self) -> Result<Document, Vec<Finding>> {
        match self.document {
            Some(document) if self.findings.is_empty() => Ok(document),
            Some(_) | None => Err(self.findings),
        }
    }

    /// A pointer into the document as it is held, as one into what was posted: a body that was one step has no `steps` there,
    /// and what came from the defaults stands there.
    pub fn posted_pointer(&self, pointer: &str, posted: &Value) -> String {
        let mut out = pointer.to_owned();
        // A pointer sorts before those that it begins, so bodies come from the outside in.
        for body in &self.single_bodies {
            let inside = out
                .strip_prefix(body.as_str())
                .and_then(|after| after.strip_prefix("/steps/0"));
            let inside = inside.filter(|after| after.is_empty() || after.starts_with('/'));
            if let Some(whole) = inside.map(|after| format!("{body}{after}")) {
                out = whole;
            }
        }
        let is_there = |place: &String| posted.pointer(place).is_some();
        let elsewhere = [
            Some(out.clone()),
            Some(out.replace("/args/probe/", "/args/")),
            out.find("/retry/").map(|at| format!("/defaults{}", &out[at..])),
        ];
        if let Some(place) = elsewhere.into_iter().flatten().find(is_there) {
            return place;
        }
        // What was not written is missing in what was.
        while !is_there(&out) {
            out.truncate(out.rfind('/').unwrap_or(0));
        }
        out
    }
}

/// Reads a posted document.
pub fn read(posted: &Value) -> Reading {
    let mut out = Out::default();
    let root = Spot {
        value: posted,
        at: String::new(),
    };
    let document = match root.value {
        Value::Object(_) => root
            .object(&KEYS, &[], &mut out)
            .map(|fields| whole(&fields, &mut out)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            root.wrong("a definition is an object", &mut out);
            None
        }
    };
    let (findings, single_bodies, doubtful) = out.finished();
    Reading {
        document,
        findings,
        single_bodies,
        doubtful,
    }
}

/// The name in a posted document, if it has a good one.
pub fn slug_of(posted: &Value) -> Option<&str> {
    posted.get("family_slug")?.as_str().filter(|text| is_slug(text))
}

fn whole(fields: &Fields<'_>, out: &mut Out) -> Document {
    for name in LATER {
        // A list of none asks for nothing.
        if fields
            .get(name)
            .is_some_and(|spot| spot.value.as_array().is_none_or(|list| !list.is_empty()))
        {
            let at = format!("{}/{name}", fields.at);
            out.say(
                &at,
                "workflow.unsupported",
                format!("'{name}' is not supported yet"),
            );
        }
    }
    let slug = fields.need("family_slug", out).and_then(|spot| spot.slug(out));
    let defaults = fields
        .get("defaults")
        .map(|spot| Defaults::read(&spot, out))
        .unwrap_or_default();
    let steps = fields
        .need("steps", out)
        .map(|spot| steps(&spot, &defaults, out))
        .unwrap_or_default();
    if fields
        .get("steps")
        .is_some_and(|spot| spot.value.as_array().is_some_and(Vec::is_empty))
    {
        out.say("/steps", "workflow.missing", "a definition has at least one step");
    }
    Document {
        family_slug: slug.unwrap_or_default(),
        title: short(fields, "title", limits::TITLE_CHARS_MAX, out),
        description: short(fields, "description", limits::DESCRIPTION_CHARS_MAX, out),
        input_schema: fields.get("input_schema").map(|spot| spot.value.clone()),
        steps,
        edges: fields
            .get("edges")
            .map(|spot| edges(&spot, out))
            .unwrap_or_default(),
        concurrency: fields.get("concurrency").and_then(|spot| concurrency(&spot, out)),
        run_timeout: fields.span("run_timeout", out),
        retention: fields.get("retention").and_then(|spot| retention(&spot, out)),
        labels: fields
            .get("labels")
            .map(|spot| labels(&spot, out))
            .unwrap_or_default(),
        fairness: fields
            .get("fairness")
            .and_then(|spot| fairness(&spot, out))
            .unwrap_or_default(),
    }
}

pub(super) fn short(fields: &Fields<'_>, name: &str, chars_max: usize, out: &mut Out) -> String {
    let found = fields.get(name).and_then(|spot| spot.short(chars_max, out));
    found.unwrap_or_default().to_owned()
}

/// The steps of one level.
pub(super) fn steps(spot: &Spot<'_>, defaults: &Defaults, out: &mut Out) -> Vec<StepDoc> {
    let items = spot.list(out);
    items
        .iter()
        .filter_map(|item| step::read(item, defaults, out))
        .collect()
}

const EDGE_KINDS: [(&str, EdgeKind); 4] = [
    ("EDGE_TYPE_SUCCESS", EdgeKind::Success),
    ("EDGE_TYPE_FAILURE", EdgeKind::Failure),
    ("EDGE_TYPE_ALWAYS", EdgeKind::Always),
    ("EDGE_TYPE_CONDITION", EdgeKind::Condition),
];

/// The edges of one level.
pub(super) fn edges(spot: &Spot<'_>, out: &mut Out) -> Vec<EdgeDoc> {
    let items = spot.list(out);
    items.iter().filter_map(|item| edge(item, out)).collect()
}

fn edge(spot: &Spot<'_>, out: &mut Out) -> Option<EdgeDoc> {
    let fields = spot.object(&["source_ref", "target_ref", "type", "condition"], &[], out)?;
    let source = fields.need("source_ref", out).and_then(|spot| spot.step_ref(out));
    let target = fields.need("target_ref", out).and_then(|spot| spot.step_ref(out));
    let has_condition = fields.get("condition").is_some();
    let usual = if has_condition && !fields.has("type") {
        EdgeKind::Condition
    } else {
        EdgeKind::Success
    };
    let kind = fields.word("type", &EDGE_KINDS, usual, out);
    let condition = match kind {
        EdgeKind::Condition => Some(fields.need_cel("condition", out)),
        EdgeKind::Success | EdgeKind::Failure | EdgeKind::Always => {
            if let Some(spot) = fields.get("condition") {
                let message = format!(
                    "only an edge of type EDGE_TYPE_CONDITION has a condition, not {}",
                    kind.word()
                );
                out.say(&spot.at, "workflow.conflict", message);
            }
            None
        }
    };
    Some(EdgeDoc {
        source_ref: source?,
        target_ref: target?,
        kind,
        condition,
    })
}

const ON_LIMIT: [(&str, OnLimit); 3] = [
    ("queue", OnLimit::Queue),
    ("skip", OnLimit::Skip),
    ("replace", OnLimit::Replace),
];

fn concurrency(spot: &Spot<'_>, out: &mut Out) -> Option<ConcurrencyDoc> {
    let fields = spot.object(&["key", "limit", "on_limit"], &[], out)?;
    let limit = fields.need("limit", out);
    let limit = limit.and_then(|spot| spot.integer(1, u64::from(limits::CONCURRENCY_MAX), out));
    Some(ConcurrencyDoc {
        key: fields.cel("key", out),
        limit: limit.and_then(|limit| u32::try_from(limit).ok()).unwrap_or(1),
        on_limit: fields.word("on_limit", &ON_LIMIT, OnLimit::Queue, out),
    })
}

fn retention(spot: &Spot<'_>, out: &mut Out) -> Option<RetentionDoc> {
    let fields = spot.object(&["runs", "age"], &[], out)?;
    Some(RetentionDoc {
        runs: fields.count("runs", (1, limits::RETAINED_RUNS_MAX), out),
        age: fields.span("age", out),
    })
}

const TIERS: [(&str, Tier); 3] = [
    ("interactive", Tier::Interactive),
    ("default", Tier::Default),
    ("background", Tier::Background),
];

fn fairness(spot: &Spot<'_>, out: &mut Out) -> Option<FairnessDoc> {
    let fields = spot.object(&["tier", "key"], &[], out)?;
    Some(FairnessDoc {
        tier: fields.word("tier", &TIERS, Tier::Default, out),
        key: fields.cel("key", out),
    })
}

fn labels(spot: &Spot<'_>, out: &mut Out) -> BTreeMap<String, String> {
    let Some(fields) = spot.map(out) else {
        return BTreeMap::new();
    };
    if fields.len() > limits::LABELS_MAX {
        let message = format!(
            "has {} labels, and {} are allowed",
            fields.len(),
            limits::LABELS_MAX
        );
        out.say(&fields.at, "workflow.limit", message);
    }
    let mut found = BTreeMap::new();
    for (name, spot) in fields.each() {
        let is_name = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b'/');
        if name.is_empty() || name.len() > limits::LABEL_NAME_BYTES_MAX || !name.bytes().all(is_name) {
            let message = format!(
                "`{}` is no name for a label: 1 to {} letters, digits or `._-/`",
                shown(name),
                limits::LABEL_NAME_BYTES_MAX
            );
            out.say(&spot.at, "workflow.bad_value", message);
        }
        if let Some(text) = spot.short(limits::LABEL_CHARS_MAX, out) {
            found.insert(name.to_owned(), text.to_owned());
        }
    }
    found
}
