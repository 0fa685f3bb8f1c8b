//! The document of a graph: what a user posts or a `dags:` section compiles to, every default filled in.
//!
//! It is stored as JSON in the shape of the API, so that an export can be posted again.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::kinds::StepKind;
use super::span::Span;
use crate::domain::workflow::definition::SlotDemand;
use crate::words::names::StepRef;

/// A graph of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Document {
    /// The name under which its versions are kept.
    pub family_slug: String,
    /// For people.
    #[serde(default)]
    pub title: String,
    /// For people.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub description: String,
    /// JSON Schema of a run's input.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_schema: Option<Value>,
    /// The steps.
    pub steps: Vec<StepDoc>,
    /// What follows what.
    #[serde(default)]
    pub edges: Vec<EdgeDoc>,
    /// How many runs at once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<ConcurrencyDoc>,
    /// The longest run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run_timeout: Option<Span>,
    /// How many ended runs are kept, and how long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retention: Option<RetentionDoc>,
    /// For filters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, String>,
    /// Who is served first when work waits.
    #[serde(default, skip_serializing_if = "FairnessDoc::is_default")]
    pub fairness: FairnessDoc,
}

impl Document {
    /// The step of that name, in a body too.
    pub fn find(&self, name: &StepRef) -> Option<&StepDoc> {
        find_in(&self.steps, name)
    }

    /// A graph without steps.
    pub fn empty(family_slug: &str) -> Document {
        Document {
            family_slug: family_slug.to_owned(),
            title: String::new(),
            description: String::new(),
            input_schema: None,
            steps: Vec::new(),
            edges: Vec::new(),
            concurrency: None,
            run_timeout: None,
            retention: None,
            labels: BTreeMap::new(),
            fairness: FairnessDoc::default(),
        }
    }
}

fn find_in<'d>(steps: &'d [StepDoc], name: &StepRef) -> Option<&'d StepDoc> {
    for step in steps {
        if step.name == *name {
            return Some(step);
        }
        if let StepKind::Scatter(scatter) = &step.kind
            && let Some(found) = find_in(&scatter.body.steps, name)
        {
            return Some(found);
        }
    }
    None
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StepDoc {
    /// Its name, unique in the whole definition, bodies of scatters included.
    #[serde(rename = "ref")]
    pub name: StepRef,
    /// For people; the name unless given.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub title: String,
    /// What it does.
    #[serde(flatten)]
    pub kind: StepKind,
    /// CEL: false and it is skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
    /// What its incoming edges must say.
    #[serde(default)]
    pub join: Join,
    /// Attempts after a failed one. Always present for steps that workers execute.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryDoc>,
    /// Limits of time.
    #[serde(default, skip_serializing_if = "TimeoutsDoc::is_default")]
    pub timeouts: TimeoutsDoc,
    /// Slots that each attempt needs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotDemand>,
    /// What its failure means for the run.
    #[serde(default)]
    pub on_error: OnError,
    /// CEL: the key that connectors and remote workers get.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub idempotency_key: Option<String>,
}

/// What the incoming edges of a step must say. A step without any begins at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Join {
    /// All are taken.
    #[default]
    AllSuccess,
    /// All sources have ended, however.
    AllDone,
    /// One is taken; the others are not waited for.
    AnySuccess,
    /// All sources have ended and none failed.
    NoneFailed,
}

/// What the failure of a step means for its run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The run fails when everything that can still run has ended.
    #[default]
    Fail,
    /// The run goes on as if the step had succeeded; the step stays failed.
    Continue,
}

/// An edge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EdgeDoc {
    /// From.
    pub source_ref: StepRef,
    /// To.
    pub target_ref: StepRef,
    /// When it is taken.
    #[serde(rename = "type", default)]
    pub kind: EdgeKind,
    /// CEL, for conditions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condition: Option<String>,
}

/// When an edge is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum EdgeKind {
    /// Its source succeeded.
    #[default]
    #[serde(rename = "EDGE_TYPE_SUCCESS")]
    Success,
    /// Its source failed.
    #[serde(rename = "EDGE_TYPE_FAILURE")]
    Failure,
    /// Its source has ended.
    #[serde(rename = "EDGE_TYPE_ALWAYS")]
    Always,
    /// Its source succeeded and its condition is true.
    #[serde(rename = "EDGE_TYPE_CONDITION")]
    Condition,
}

impl EdgeKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            EdgeKind::Success => "EDGE_TYPE_SUCCESS",
            EdgeKind::Failure => "EDGE_TYPE_FAILURE",
            EdgeKind::Always => "EDGE_TYPE_ALWAYS",
            EdgeKind::Condition => "EDGE_TYPE_CONDITION",
        }
    }
}

/// Attempts after a failed one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RetryDoc {
    /// All attempts together.
    pub max_attempts: u32,
    /// Before the second.
    pub initial_interval: Span,
    /// Each interval is the one before times this.
    pub coefficient: f64,
    /// No interval is longer.
    pub max_interval: Span,
    /// Each interval is up to this share longer or shorter.
    pub jitter: f64,
    /// Codes of errors after which there is no other attempt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub non_retryable: Vec<String>,
    /// CEL over `error`: false and there is no other attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_if: Option<String>,
}

/// Limits of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TimeoutsDoc {
    /// From ready to the start of an attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queue: Option<Span>,
    /// One attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Span>,
    /// From ready to the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total: Option<Span>,
    /// Between two signs of life of a remote worker.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heartbeat: Option<Span>,
}

impl TimeoutsDoc {
    fn is_default(&self) -> bool {
        *self == TimeoutsDoc::default()
    }
}

/// How many runs of a key at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConcurrencyDoc {
    /// CEL over `input`: runs with the same value count together; all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// So many.
    pub limit: u32,
    /// What happens to one more.
    #[serde(default)]
    pub on_limit: OnLimit,
}

/// What happens to a run beyond the limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnLimit {
    /// It waits.
    #[default]
    Queue,
    /// It is skipped.
    Skip,
    /// The oldest is cancelled.
    Replace,
}

/// How long ended runs are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RetentionDoc {
    /// So many.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<u32>,
    /// So long.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub age: Option<Span>,
}

/// Who is served first when work waits.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct FairnessDoc {
    /// Its tier.
    #[serde(default)]
    pub tier: Tier,
    /// CEL over `input`: inside a tier each value has its own share; one for all unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
}

impl FairnessDoc {
    fn is_default(&self) -> bool {
        *self == FairnessDoc::default()
    }
}

/// One of three tiers, served 16 to 4 to 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tier {
    /// Somebody waits for it.
    Interactive,
    /// The usual.
    #[default]
    Default,
    /// Whenever there is time.
    Background,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_is_read_and_written_in_the_shape_of_the_wire() {
        let text = serde_json::json!({
            "family_slug": "hello-world", "title": "Hello World",
            "steps": [
                {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
                 "args": {"operation": "project", "project": {"message": "\"hello\""}}},
                {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "90s"}},
                {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {
                    "items": "input.list", "tolerated_failures": "5%",
                    "body": {"steps": [{"ref": "one", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}}]}}}],
            "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}]
        });
        let document: Document = serde_json::from_value(text).unwrap();
        assert_eq!(document.steps[0].kind.word(), "STEP_TYPE_DATAFLOW");
        assert!(!document.steps[1].kind.has_attempts());
        let written = serde_json::to_value(&document).unwrap();
        assert_eq!(written["steps"][1]["args"]["duration"], "1m30s");
        assert_eq!(written["steps"][2]["args"]["tolerated_failures"], "5%");
        assert_eq!(serde_json::from_value::<Document>(written).unwrap(), document);
    }
}
