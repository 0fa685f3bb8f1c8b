//! Where expressions stand in a document, and which names each of them sees.

use serde_json::Value;

use super::levels::{Level, levels};
use crate::domain::workflow::graph::braces::{Part, parts};
use crate::domain::workflow::graph::document::{Document, StepDoc};
use crate::domain::workflow::graph::finding::{Finding, below};
use crate::domain::workflow::graph::kinds::{Dataflow, Gather, Http, Probe, StepKind};

/// An expression in a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place<'d> {
    /// The text that it stands in.
    pub pointer: String,
    /// The expression.
    pub text: &'d str,
    /// The byte of that text at which it begins: not 0 only inside `{{ }}`.
    pub offset: usize,
    /// The names that it sees.
    pub names: &'static [&'static str],
    /// Whose step it is: level and place in it. `None` for what is asked before a run begins.
    pub seat: Option<(usize, usize)>,
    /// It is asked when that step has ended: the condition of an edge.
    pub is_after: bool,
}

const INPUT: &[&str] = &["input"];
const PLAIN: &[&str] = &["input", "steps", "vars", "run"];
const ITEM: &[&str] = &["input", "steps", "vars", "run", "item", "index"];
const ACC: &[&str] = &["input", "steps", "vars", "run", "item", "index", "acc"];
const ERROR: &[&str] = &["input", "steps", "vars", "run", "error"];
const ITEM_ERROR: &[&str] = &["input", "steps", "vars", "run", "item", "index", "error"];

/// All expressions of a document, in its order.
pub fn places(document: &Document) -> Vec<Place<'_>> {
    collect(document).0
}

/// The same, and what is wrong with the texts that they stand in.
pub(super) fn collect(document: &Document) -> (Vec<Place<'_>>, Vec<Finding>) {
    let mut walk = Walk::default();
    let of_runs = [
        (
            "/concurrency/key",
            document
                .concurrency
                .as_ref()
                .and_then(|found| found.key.as_deref()),
        ),
        ("/fairness/key", document.fairness.key.as_deref()),
    ];
    for (at, key) in of_runs {
        walk.add(at.to_owned(), key, INPUT);
    }
    for (number, level) in levels(document).iter().enumerate() {
        walk.is_inside = level.parent.is_some();
        for (index, step) in level.steps.iter().enumerate() {
            walk.seat = Some((number, index));
            walk.step(step, &level.step_at(index));
        }
        walk.edges(number, level);
    }
    (walk.places, walk.findings)
}

#[derive(Default)]
struct Walk<'d> {
    places: Vec<Place<'d>>,
    findings: Vec<Finding>,
    seat: Option<(usize, usize)>,
    /// In the body of a scatter.
    is_inside: bool,
}

impl<'d> Walk<'d> {
    fn add(&mut self, pointer: String, text: Option<&'d str>, names: &'static [&'static str]) {
        if let Some(text) = text {
            self.places.push(Place {
                pointer,
                text,
                offset: 0,
                names,
                seat: self.seat,
                is_after: false,
            });
        }
    }

    /// What every expression of a step sees.
    fn plain(&self) -> &'static [&'static str] {
        if self.is_inside { ITEM } else { PLAIN }
    }

    fn edges(&mut self, number: usize, level: &Level<'d>) {
        for (index, edge) in level.edges.iter().enumerate() {
            let source = level.steps.iter().position(|step| step.name == edge.source_ref);
            self.seat = source.map(|source| (number, source));
            let before = self.places.len();
            let at = format!("{}/condition", level.edge_at(index));
            self.add(at, edge.condition.as_deref(), self.plain());
            for place in &mut self.places[before..] {
                place.is_after = true;
            }
        }
        self.seat = None;
    }

    fn step(&mut self, step: &'d StepDoc, at: &str) {
        let plain = self.plain();
        self.add(format!("{at}/when"), step.when.as_deref(), plain);
        let retry_if = step.retry.as_ref().and_then(|retry| retry.retry_if.as_deref());
        let error = if self.is_inside { ITEM_ERROR } else { ERROR };
        self.add(format!("{at}/retry/retry_if"), retry_if, error);
        self.add(
            format!("{at}/idempotency_key"),
            step.idempotency_key.as_deref(),
            plain,
        );
        let args = format!("{at}/args");
        let mut one = |key: &str, text: Option<&'d str>| self.add(format!("{args}/{key}"), text, plain);
        match &step.kind {
            StepKind::Wait(wait) => one("until", wait.until.as_deref()),
            StepKind::Scatter(scatter) => one("items", Some(&scatter.items)),
            StepKind::Subworkflow(call) => one("input", call.input.as_deref()),
            StepKind::Succeed(succeed) => one("output", succeed.output.as_deref()),
            StepKind::Task(task) => one("input", task.input.as_deref()),
            StepKind::Dataflow(dataflow) => self.dataflow(dataflow, &args),
            StepKind::Switch(switch) => {
                for (index, case) in switch.cases.iter().enumerate() {
                    self.add(format!("{args}/cases/{index}/when"), Some(&case.when), plain);
                }
            }
            StepKind::Gather(gather) => self.gather(gather, &args),
            StepKind::Fail(fail) => self.template(&format!("{args}/message"), &fail.message),
            StepKind::Http(http) => self.http(http, &args),
            StepKind::Route(route) => {
                for (name, text) in &route.work {
                    self.add(below(&format!("{args}/work"), name), Some(text), plain);
                }
            }
            StepKind::Sensor(sensor) => {
                if let Probe::Http(http) = &sensor.probe {
                    self.http(http, &format!("{args}/probe/http"));
                }
            }
            StepKind::Checkpoint(_) | StepKind::Approval(_) | StepKind::Command(_) => {}
        }
    }

    fn dataflow(&mut self, dataflow: &'d Dataflow, args: &str) {
        let plain = self.plain();
        match dataflow {
            Dataflow::Project { project } => {
                for (name, text) in project {
                    self.add(below(&format!("{args}/project"), name), Some(text), plain);
                }
            }
            Dataflow::Filter { filter: each } | Dataflow::Map { map: each } => {
                let key = if matches!(dataflow, Dataflow::Map { .. }) {
                    "map"
                } else {
                    "filter"
                };
                self.add(format!("{args}/{key}/items"), Some(&each.items), plain);
                self.add(format!("{args}/{key}/with"), Some(&each.with), ITEM);
            }
            Dataflow::Merge { merge } => {
                for (index, text) in merge.iter().enumerate() {
                    self.add(format!("{args}/merge/{index}"), Some(text), plain);
                }
            }
            Dataflow::Reduce { reduce } => {
                self.add(format!("{args}/reduce/items"), Some(&reduce.items), plain);
                self.add(format!("{args}/reduce/initial"), reduce.initial.as_deref(), plain);
                self.add(format!("{args}/reduce/with"), Some(&reduce.with), ACC);
            }
            Dataflow::Assert { assert } => {
                for (index, assertion) in assert.iter().enumerate() {
                    self.add(
                        format!("{args}/assert/{index}/that"),
                        Some(&assertion.that),
                        plain,
                    );
                }
            }
            Dataflow::Template { template } => self.templates(&format!("{args}/template"), template),
        }
    }

    fn gather(&mut self, gather: &'d Gather, args: &str) {
        self.add(format!("{args}/key"), gather.key.as_deref(), ITEM);
        self.add(format!("{args}/initial"), gather.initial.as_deref(), self.plain());
        self.add(format!("{args}/with"), gather.with.as_deref(), ACC);
    }

    fn http(&mut self, http: &'d Http, args: &str) {
        self.template(&format!("{args}/url"), &http.url);
        for (key, named) in [("headers", &http.headers), ("query", &http.query)] {
            for (name, text) in named {
                self.template(&below(&format!("{args}/{key}"), name), text);
            }
        }
        if let Some(body) = &http.body {
            self.templates(&format!("{args}/body"), body);
        }
    }

    /// The expressions in all texts of a value.
    fn templates(&mut self, at: &str, value: &'d Value) {
        match value {
            Value::String(text) => self.template(at, text),
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.templates(&format!("{at}/{index}"), item);
                }
            }
            Value::Object(fields) => {
                for (name, field) in fields {
                    self.templates(&below(at, name), field);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }

    fn template(&mut self, at: &str, text: &'d str) {
        let found = match parts(text) {
            Ok(found) => found,
            Err(open) => {
                let message = format!("the `{{{{` at byte {open} has no `}}}}`");
                self.findings.push(Finding::new(at, "workflow.template", message));
                return;
            }
        };
        for part in found {
            if let Part::Expression(expression, offset) = part {
                self.places.push(Place {
                    pointer: at.to_owned(),
                    text: expression,
                    offset,
                    names: self.plain(),
                    seat: self.seat,
                    is_after: false,
                });
            }
        }
    }
}
