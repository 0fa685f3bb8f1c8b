//! The typed form of dags: every default and inherited value filled in, every range checked, the order of tasks acyclic.

use serde::Serialize;

use super::fault::Place;
use super::model::{DayMatch, LaunchConfig, PolicyConfig, ScheduleText, SlotsConfig};
use super::report_model::{ReportsConfig, SlaConfig};

/// Several tasks, some after others, with one schedule.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DagConfig {
    pub name: String,
    #[serde(skip)]
    pub at: Place,
    /// None: started by hand only.
    pub schedule: Option<ScheduleText>,
    pub seconds: bool,
    /// None: nobody chose, and `Or` holds.
    pub day_match: Option<DayMatch>,
    /// None: UTC.
    pub timezone: Option<String>,
    pub enabled: bool,
    /// When it may begin. Its tasks have retries, the whole has none.
    pub policy: PolicyConfig,
    /// When it is late.
    pub sla: SlaConfig,
    /// Who is told how its runs end, and that they are late.
    pub reports: ReportsConfig,
    /// Ended runs that are kept.
    pub retain_runs: u32,
    /// In the order of the file.
    pub tasks: Vec<TaskConfig>,
}

/// One task of a dag.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TaskConfig {
    pub id: String,
    #[serde(skip)]
    pub at: Place,
    /// Ids of tasks of the same dag, each once.
    pub depends_on: Vec<String>,
    pub trigger_rule: TriggerRule,
    #[serde(flatten)]
    pub kind: TaskKind,
}

/// What a task must hear of those it depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TriggerRule {
    AllSuccess,
    AllDone,
}

/// What a task does.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "type", rename_all = "camelCase")]
pub enum TaskKind {
    /// Runs a command.
    Task(Box<WorkConfig>),
    /// Runs a command again and again until its code is 0.
    #[serde(rename_all = "camelCase")]
    Sensor {
        #[serde(flatten)]
        work: Box<WorkConfig>,
        poke_interval_ms: u64,
        /// From the first poke on.
        poke_timeout_ms: u64,
    },
    /// Waits until somebody decides.
    #[serde(rename_all = "camelCase")]
    Approval { on_reject: OnReject },
}

/// A command with its retries and its place in a slot pool.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkConfig {
    #[serde(flatten)]
    pub launch: LaunchConfig,
    /// Attempts after the first one.
    pub retries: u32,
    /// Before each of them.
    pub retry_delay_ms: u64,
    /// None: dispatched without a claim.
    pub slots: Option<SlotsConfig>,
    /// None: it runs once.
    pub expand: Option<ExpandConfig>,
}

/// A task runs once for each item of a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ExpandConfig {
    /// The task whose output has the list; this one depends on it.
    pub from_task: String,
    /// The key of the list in that output.
    pub key: String,
}

/// What a rejection means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OnReject {
    Fail,
    Skip,
}

impl TaskConfig {
    /// The command of a task or sensor; an approval has none.
    pub fn work(&self) -> Option<&WorkConfig> {
        match &self.kind {
            TaskKind::Task(work) | TaskKind::Sensor { work, .. } => Some(work),
            TaskKind::Approval { .. } => None,
        }
    }
}
