//! What the steps of a graph do: one argument shape for each type.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::document::{EdgeDoc, StepDoc};
use super::span::Span;
use crate::domain::workflow::definition::CommandStep;
use crate::words::names::StepRef;

/// What a step does, with its arguments.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", content = "args")]
pub enum StepKind {
    /// Computes a value.
    #[serde(rename = "STEP_TYPE_DATAFLOW")]
    Dataflow(Dataflow),
    /// Chooses one of the steps that follow.
    #[serde(rename = "STEP_TYPE_SWITCH")]
    Switch(Switch),
    /// Waits for a time.
    #[serde(rename = "STEP_TYPE_WAIT")]
    Wait(Wait),
    /// Does its body once for each item.
    #[serde(rename = "STEP_TYPE_SCATTER")]
    Scatter(Scatter),
    /// Collects what the branches of a scatter have made.
    #[serde(rename = "STEP_TYPE_GATHER")]
    Gather(Gather),
    /// A run of another definition.
    #[serde(rename = "STEP_TYPE_SUBWORKFLOW")]
    Subworkflow(Subworkflow),
    /// Waits until somebody resumes it.
    #[serde(rename = "STEP_TYPE_CHECKPOINT")]
    Checkpoint(Checkpoint),
    /// Waits until somebody decides.
    #[serde(rename = "STEP_TYPE_APPROVAL")]
    Approval(Approval),
    /// Ends the run as failed.
    #[serde(rename = "STEP_TYPE_FAIL")]
    Fail(Fail),
    /// Ends the run as succeeded.
    #[serde(rename = "STEP_TYPE_SUCCEED")]
    Succeed(Succeed),
    /// A process.
    #[serde(rename = "STEP_TYPE_COMMAND")]
    Command(Box<CommandStep>),
    /// A command or request that is repeated until it is met.
    #[serde(rename = "STEP_TYPE_SENSOR")]
    Sensor(Box<Sensor>),
    /// One request to another host.
    #[serde(rename = "STEP_TYPE_HTTP")]
    Http(Http),
    /// Remote code, claimed by a worker over the bridge.
    #[serde(rename = "STEP_TYPE_TASK")]
    Task(Task),
    /// A decision about who gets work.
    #[serde(rename = "STEP_TYPE_ROUTE")]
    Route(Route),
}

impl StepKind {
    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            StepKind::Dataflow(_) => "STEP_TYPE_DATAFLOW",
            StepKind::Switch(_) => "STEP_TYPE_SWITCH",
            StepKind::Wait(_) => "STEP_TYPE_WAIT",
            StepKind::Scatter(_) => "STEP_TYPE_SCATTER",
            StepKind::Gather(_) => "STEP_TYPE_GATHER",
            StepKind::Subworkflow(_) => "STEP_TYPE_SUBWORKFLOW",
            StepKind::Checkpoint(_) => "STEP_TYPE_CHECKPOINT",
            StepKind::Approval(_) => "STEP_TYPE_APPROVAL",
            StepKind::Fail(_) => "STEP_TYPE_FAIL",
            StepKind::Succeed(_) => "STEP_TYPE_SUCCEED",
            StepKind::Command(_) => "STEP_TYPE_COMMAND",
            StepKind::Sensor(_) => "STEP_TYPE_SENSOR",
            StepKind::Http(_) => "STEP_TYPE_HTTP",
            StepKind::Task(_) => "STEP_TYPE_TASK",
            StepKind::Route(_) => "STEP_TYPE_ROUTE",
        }
    }

    /// The process that it starts, of a command or a sensor.
    pub fn command(&self) -> Option<&CommandStep> {
        if let StepKind::Command(command) = self {
            return Some(command);
        }
        if let StepKind::Sensor(sensor) = self
            && let Probe::Command(command) = &sensor.probe
        {
            return Some(command);
        }
        None
    }

    /// True for steps whose output somebody else makes: a worker, another run, a person.
    pub fn is_by_others(&self) -> bool {
        self.has_attempts()
            || matches!(
                self,
                StepKind::Subworkflow(_) | StepKind::Checkpoint(_) | StepKind::Approval(_)
            )
    }

    /// True for steps that a worker executes, each execution an attempt.
    pub fn has_attempts(&self) -> bool {
        matches!(
            self,
            StepKind::Command(_)
                | StepKind::Sensor(_)
                | StepKind::Http(_)
                | StepKind::Task(_)
                | StepKind::Route(_)
        )
    }
}

/// Computes a value inside the coordinator. All texts are CEL.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "operation", rename_all = "snake_case")]
pub enum Dataflow {
    /// An object: each name with the value of its expression.
    Project {
        /// Name to expression.
        project: BTreeMap<String, String>,
    },
    /// The items for which an expression is true.
    Filter {
        /// Over what, and which; sees `item` and `index`.
        filter: Each,
    },
    /// A list with the value of an expression for each item.
    Map {
        /// Over what, and into what; sees `item` and `index`.
        map: Each,
    },
    /// One object of several; a later one wins.
    Merge {
        /// Expressions that are objects.
        merge: Vec<String>,
    },
    /// One value of a list.
    Reduce {
        /// Over what, and how.
        reduce: Reduce,
    },
    /// The step fails unless all are true; its value is `true`.
    Assert {
        /// What must be true.
        assert: Vec<Assertion>,
    },
    /// A JSON value in whose texts each `{{ expression }}` is replaced by its value.
    Template {
        /// The value.
        template: Value,
    },
}

/// An expression for each item of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Each {
    /// CEL: the list.
    pub items: String,
    /// CEL for one item.
    #[serde(rename = "with")]
    pub with: String,
}

/// One value of a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reduce {
    /// CEL: the list.
    pub items: String,
    /// CEL: the first `acc`; null unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// CEL: the next `acc`, of `acc`, `item` and `index`.
    pub with: String,
}

/// Something that must be true.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assertion {
    /// CEL.
    pub that: String,
    /// What is said when it is not.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Chooses one of the steps that follow.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switch {
    /// The first whose condition is true is chosen.
    pub cases: Vec<Case>,
    /// Chosen when none is; without it the step fails then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<StepRef>,
}

/// One case of a switch.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Case {
    /// CEL.
    pub when: String,
    /// A step to which the switch has an edge.
    #[serde(rename = "ref")]
    pub target: StepRef,
}

/// Waits for a time: exactly one of the two.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wait {
    /// From when the step is reached.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Span>,
    /// CEL: an instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub until: Option<String>,
}

/// Does its body once for each item.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Scatter {
    /// CEL: the list.
    pub items: String,
    /// What is done for each.
    pub body: Body,
    /// Branches at once; without it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_parallel: Option<u32>,
    /// A longer list is a failure; without it the engine's own limit holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_items: Option<u32>,
    /// A list that is longer as JSON is a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_bytes: Option<u32>,
    /// Branches that may fail without the scatter failing.
    #[serde(default, skip_serializing_if = "Tolerance::is_none")]
    pub tolerated_failures: Tolerance,
}

/// The steps of one branch.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Body {
    /// The steps.
    pub steps: Vec<StepDoc>,
    /// What follows what inside the branch.
    #[serde(default)]
    pub edges: Vec<EdgeDoc>,
}

/// How many branches may fail: a count, or a share of all as `"n%"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Value", into = "Value")]
pub enum Tolerance {
    /// So many.
    Count(u32),
    /// So many of a hundred.
    Percent(u8),
}

impl Default for Tolerance {
    fn default() -> Tolerance {
        Tolerance::Count(0)
    }
}

impl Tolerance {
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
    fn is_none(&self) -> bool {
        *self == Tolerance::Count(0)
    }

    /// True when so many failed branches of `total` are too many.
    pub fn is_exceeded(self, failed: u32, total: u32) -> bool {
        match self {
            Tolerance::Count(count) => failed > count,
            Tolerance::Percent(percent) => u64::from(failed) * 100 > u64::from(percent) * u64::from(total),
        }
    }
}

impl TryFrom<Value> for Tolerance {
    type Error = String;

    fn try_from(value: Value) -> Result<Tolerance, String> {
        let percent = |text: &str| {
            let number = text.strip_suffix('%')?.parse::<u8>().ok()?;
            (number <= 100).then_some(Tolerance::Percent(number))
        };
        let count = |number: u64| u32::try_from(number).ok().map(Tolerance::Count);
        let read = match &value {
            Value::String(text) => percent(text),
            Value::Number(number) => number.as_u64().and_then(count),
            Value::Null | Value::Bool(_) | Value::Array(_) | Value::Object(_) => None,
        };
        read.ok_or_else(|| format!("{value} is neither a count nor a share like \"5%\""))
    }
}

impl From<Tolerance> for Value {
    fn from(tolerance: Tolerance) -> Value {
        match tolerance {
            Tolerance::Count(count) => Value::from(count),
            Tolerance::Percent(percent) => Value::from(format!("{percent}%")),
        }
    }
}

/// Collects what the branches of a scatter have made: `{results, failed: [{index, error}]}`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gather {
    /// The scatter.
    pub from: StepRef,
    /// The step of its body whose outputs are collected; needed when the body has several last steps.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<StepRef>,
    /// In which shape.
    #[serde(default)]
    pub mode: GatherMode,
    /// CEL over `item` (the branch's output) and `index`: the key of a map; the index unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// CEL: the first `acc` of a reduce.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub initial: Option<String>,
    /// CEL: the next `acc` of a reduce, of `acc`, `item` and `index`.
    #[serde(default, rename = "with", skip_serializing_if = "Option::is_none")]
    pub with: Option<String>,
}

/// In which shape results are collected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GatherMode {
    /// A list in the order of the items, without the failed ones.
    #[default]
    List,
    /// An object.
    Map,
    /// One value.
    Reduce,
}

/// A run of another definition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Subworkflow {
    /// Its name.
    pub family_slug: String,
    /// Its version; the newest at that moment unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// CEL: the input; null unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
    /// False: the step succeeds when the other run begins.
    #[serde(default = "yes")]
    pub wait: bool,
}

fn yes() -> bool {
    true
}

/// Waits until somebody resumes it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Checkpoint {
    /// It fails after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
    /// JSON Schema of what is posted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
}

/// Waits until somebody decides.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    /// Scopes that may decide; anybody with the right to approve unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub approvers: Vec<String>,
    /// What a rejection means.
    #[serde(default)]
    pub on_reject: OnReject,
    /// It fails after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// What a rejection means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnReject {
    /// The step fails.
    #[default]
    Fail,
    /// The step is skipped.
    Skip,
}

/// Ends the run as failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fail {
    /// The code of the failure.
    pub code: String,
    /// Its sentence; `{{ expression }}` is replaced by its value.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub message: String,
}

/// Ends the run as succeeded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Succeed {
    /// CEL: the output of the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<String>,
}

/// A command or request that is repeated until it is met.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Sensor {
    /// What is asked each time: exit code 0, or an expected status, is met.
    pub probe: Probe,
    /// Between two pokes.
    pub poke_interval: Span,
    /// From the first poke on; then the step fails.
    pub poke_timeout: Span,
}

/// What a sensor asks.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Probe {
    /// A process.
    Command(Box<CommandStep>),
    /// A request.
    Http(Http),
}

/// One request to another host. `url`, values of `headers` and `query`, and texts in `body` may hold `{{ expression }}`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Http {
    /// GET, HEAD, POST, PUT, PATCH or DELETE.
    #[serde(default = "get")]
    pub method: String,
    /// Where to.
    pub url: String,
    /// Request headers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// Query parameters.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// JSON that is sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub body: Option<Value>,
    /// Statuses that are a success, like `200` or `2xx`; `2xx` unless given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub expect: Vec<String>,
    /// Redirects that are followed.
    #[serde(default)]
    pub follow_redirects: u8,
    /// A longer answer is a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_response_bytes: Option<u64>,
}

fn get() -> String {
    "GET".to_owned()
}

/// Remote code, claimed by a worker over the bridge.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Task {
    /// The queue that workers poll.
    pub queue: String,
    /// The name of what is to be done, for workers that do several things.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub task: String,
    /// CEL: its input; null unless given.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input: Option<String>,
}

/// A decision about who gets work.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// The work: each field with the CEL of its value.
    pub work: BTreeMap<String, String>,
    /// The id or the name of a recipient pool; by the rules of the tenant unless given.
    #[serde(default, rename = "pool", skip_serializing_if = "Option::is_none")]
    pub recipient_pool: Option<String>,
    /// In place of the recipient pool's strategy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub strategy: Option<String>,
    /// Until when the step goes on.
    #[serde(default)]
    pub wait: RouteWait,
    /// It fails when the work is not done after this time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeout: Option<Span>,
}

/// Until when a step that routes goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RouteWait {
    /// Until it is decided.
    #[default]
    Decision,
    /// Until the work is done.
    Completion,
}
