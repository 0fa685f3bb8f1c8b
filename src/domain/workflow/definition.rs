//! A definition: what a run of it does. Stored as JSON, so that people can read an export.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::domain::lateness::Sla;
use crate::domain::report::ReportWishes;
use crate::domain::workflow::graph::document::{Document, StepDoc};
use crate::domain::workflow::graph::kinds::StepKind;
use crate::words::ids;
use crate::words::names::{JobName, SlotPoolName, StepRef};
use crate::words::payload::JsonText;

/// A job, or a graph of several steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Definition {
    /// The name under which its versions are kept.
    pub name: JobName,
    /// False: no fires and no starts.
    pub enabled: bool,
    /// When it fires by itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleText>,
    /// What happens when an instance is still live.
    pub concurrency: ConcurrencyPolicy,
    /// When it may begin, and begin again.
    #[serde(default, skip_serializing_if = "Policy::is_default")]
    pub policy: Policy,
    /// When it is late.
    #[serde(default, skip_serializing_if = "Sla::is_empty")]
    pub sla: Sla,
    /// Which reports it asks for. Their addresses are not kept: they may be secrets.
    #[serde(default, skip_serializing_if = "ReportWishes::is_empty")]
    pub reports: ReportWishes,
    /// The step of a job; none for a graph.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub steps: Vec<Step>,
    /// The graph, for what is no job.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub graph: Option<Box<Document>>,
}

/// The schedule as it was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScheduleText {
    /// The expression.
    pub text: String,
    /// True when the first of six fields is the second.
    #[serde(default)]
    pub seconds: bool,
    /// How day of month and day of week go together; `None` = the standard's "either".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub day_match: Option<DayMatch>,
    /// An IANA zone name; `None` = UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
}

/// Both day fields restricted: must one match, or both?
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DayMatch {
    /// Either.
    Or,
    /// Both.
    And,
}

/// What a start does while an earlier instance of the same job is live.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ConcurrencyPolicy {
    /// Runs beside it.
    Allow,
    /// Waits for it (pooled) or is refused (not pooled).
    Forbid,
    /// Ends it first.
    Replace,
}

/// When a job may begin, and begin again.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Policy {
    /// What becomes of fires that nobody could fire when they were due.
    pub on_missed: OnMissed,
    /// A start later than this after its due moment does not happen any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub starting_deadline_ms: Option<u64>,
    /// A fire is skipped while the newest ended run of the job is a failure.
    #[serde(default)]
    pub only_if_last_succeeded: bool,
    /// Every live daemon fires by itself.
    #[serde(default)]
    pub every_node: bool,
    /// Attempts after a failed one.
    #[serde(default)]
    pub retry: Retry,
}

impl Policy {
    fn is_default(&self) -> bool {
        *self == Policy::default()
    }
}

impl Default for Policy {
    fn default() -> Policy {
        Policy {
            on_missed: OnMissed::Skip,
            starting_deadline_ms: None,
            only_if_last_succeeded: false,
            every_node: false,
            retry: Retry::default(),
        }
    }
}

/// What becomes of fires that nobody could fire when they were due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnMissed {
    /// Each gets a row that says so.
    Skip,
    /// The newest one runs.
    RunOnce,
    /// All run, oldest first, one after the other.
    RunAll,
}

impl OnMissed {
    /// The word of the configuration.
    pub fn word(self) -> &'static str {
        match self {
            OnMissed::Skip => "skip",
            OnMissed::RunOnce => "run-once",
            OnMissed::RunAll => "run-all",
        }
    }
}

/// Attempts after a failed one.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Retry {
    /// How many; `None` = without end.
    pub retries_max: Option<u32>,
    /// Before the first of them, in milliseconds.
    pub initial_delay_ms: u64,
    /// No delay is longer.
    pub maximum_delay_ms: u64,
    /// Each delay is the one before times this; at least 1.
    pub multiplier: f64,
}

impl Default for Retry {
    fn default() -> Retry {
        Retry {
            retries_max: Some(0),
            initial_delay_ms: 1_000,
            maximum_delay_ms: 300_000,
            multiplier: 2.0,
        }
    }
}

impl Retry {
    /// True when an attempt of this number (1 is the first) may follow.
    pub fn allows(&self, attempt: u32) -> bool {
        self.retries_max
            .is_none_or(|most| attempt.saturating_sub(1) <= most)
    }

    /// The wait before an attempt of this number (2 is the first retry): `min(initial * multiplier^(number - 2), maximum)`.
    pub fn delay_before(&self, attempt: u32) -> u64 {
        let exponent = i32::try_from(attempt.saturating_sub(2)).unwrap_or(i32::MAX);
        // Milliseconds up to a year are whole numbers in an f64, and infinity saturates.
        #[expect(clippy::cast_precision_loss, reason = "at most a year of milliseconds")]
        let grown = self.initial_delay_ms as f64 * self.multiplier.powi(exponent);
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and the cast saturates"
        )]
        let grown = grown.round() as u64;
        grown.min(self.maximum_delay_ms)
    }
}

/// One step of a definition.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Its name.
    #[serde(rename = "ref")]
    pub name: StepRef,
    /// What it does.
    pub command: CommandStep,
    /// The slots it needs before it may start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<SlotDemand>,
}

/// The slots that each attempt of a step needs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotDemand {
    /// Where they come from.
    #[serde(rename = "pool")]
    pub slot_pool: SlotPoolName,
    /// How many.
    pub slots: u32,
    /// Higher goes first.
    pub priority: i32,
    /// How long it may wait, in milliseconds.
    pub queue_timeout_ms: u64,
}

/// A process to run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CommandStep {
    /// What is executed.
    pub command: CommandLine,
    /// The shell of a command string, and of `verify`.
    pub shell: String,
    /// Variables in the order of the file; a later one wins.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub environment: Vec<(String, String)>,
    /// A file of KEY=VALUE lines, read at each launch.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub env_file: Option<String>,
    /// The folder of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<String>,
    /// The user's name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// The group's name or number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Resource limits by their configuration key: `cpuSeconds`, `memory`, `processes`, `openFiles`, `fileSize`, `core`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub resource_limits: BTreeMap<String, u64>,
    /// The longest run of the command, in milliseconds, from the opening of its gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execution_timeout_ms: Option<u64>,
    /// From SIGTERM to SIGKILL.
    pub kill_timeout_ms: u64,
    /// False: standard output goes to the daemon's own.
    pub capture_stdout: bool,
    /// False: standard error goes to the daemon's own.
    pub capture_stderr: bool,
    /// Lines of each stream kept for reports.
    pub save_limit: u32,
    /// What counts as a failure.
    pub fails_when: FailsWhen,
    /// A second command that must agree before the step is a success.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verify: Option<Verify>,
    /// Variables whose values are read at each launch. Only the references are stored, never a value.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<SecretRef>,
}

/// A secret by reference.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecretRef {
    /// The variable that the command gets.
    pub name: String,
    /// Where its value is read.
    pub from: SecretFrom,
}

/// Where the value of a secret is read at each launch.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SecretFrom {
    /// A file; its last newline is not part of the value.
    File(String),
    /// A variable of the daemon.
    Variable(String),
}

/// A string for the shell, or a list that is executed as it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum CommandLine {
    /// For `shell -c`.
    Shell(String),
    /// Program and arguments.
    List(Vec<String>),
}

/// What makes an attempt a failure; judged in the order always, code, stdout, stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "these are the four switches of the configuration file"
)]
pub struct FailsWhen {
    /// An exit code other than 0.
    pub nonzero_return: bool,
    /// Anything on standard output.
    pub produces_stdout: bool,
    /// Anything on standard error.
    pub produces_stderr: bool,
    /// Always.
    pub always: bool,
}

/// The command that checks the result.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verify {
    /// A string for the same shell, or a list.
    pub command: CommandLine,
    /// Its time in milliseconds.
    pub timeout_ms: u64,
}

impl Definition {
    /// The whole definition as it is stored, and the SHA-256 of that.
    pub fn stored(&self) -> (JsonText, String) {
        let json = JsonText::of(self).expect("a definition is plain data");
        let content = ids::sha256_hex(json.as_str().as_bytes());
        (json, content)
    }

    /// A graph that begins only when it is asked for: one of the API.
    pub fn of_graph(name: JobName, document: Document) -> Definition {
        Definition {
            name,
            enabled: true,
            schedule: None,
            concurrency: ConcurrencyPolicy::Allow,
            policy: Policy::default(),
            sla: Sla::default(),
            reports: ReportWishes::default(),
            steps: Vec::new(),
            graph: Some(Box::new(document)),
        }
    }

    /// The one step of a job; `None` for a graph.
    pub fn job_step(&self) -> Option<&Step> {
        self.steps.first()
    }

    /// True for several steps with edges between them.
    pub fn is_graph(&self) -> bool {
        self.graph.is_some()
    }

    /// The slots that every run of a job needs. The steps of a graph ask for their own, one by one.
    pub fn job_demand(&self) -> Option<&SlotDemand> {
        self.job_step().and_then(|step| step.slots.as_ref())
    }

    /// The slot pools of all its steps, each once.
    pub fn slot_pools(&self) -> Vec<&SlotPoolName> {
        let mut found: Vec<&SlotPoolName> = self
            .job_demand()
            .map(|demand| &demand.slot_pool)
            .into_iter()
            .collect();
        if let Some(document) = &self.graph {
            collect_slot_pools(&document.steps, &mut found);
        }
        found.sort_unstable();
        found.dedup();
        found
    }

    /// The one step of what is known to be a job.
    pub fn main_step(&self) -> &Step {
        self.steps
            .first()
            .expect("a definition has a step: checked where it is made")
    }

    /// The 32 hex digits that change when what would run changes: everything but `sla`, reports and `save_limit`.
    ///
    /// What decides when runs begin by themselves is outside too (the schedule, what happens to missed fires), and so is
    /// `enabled`: a disabled job is looked at by itself.
    pub fn digest(&self) -> String {
        let mut launched = self.clone();
        launched.schedule = None;
        launched.enabled = true;
        launched.policy = Policy {
            every_node: self.policy.every_node,
            retry: self.policy.retry,
            ..Policy::default()
        };
        launched.sla = Sla::default();
        launched.reports = ReportWishes::default();
        for step in &mut launched.steps {
            step.command.save_limit = 0;
        }
        launched.graph = self.graph.as_ref().map(|document| Box::new(document.launched()));
        let text = serde_json::to_string(&launched).expect("a definition is plain data");
        ids::sha256_hex(text.as_bytes())[..32].to_owned()
    }
}

fn collect_slot_pools<'d>(steps: &'d [StepDoc], found: &mut Vec<&'d SlotPoolName>) {
    for step in steps {
        found.extend(step.slots.as_ref().map(|demand| &demand.slot_pool));
        if let StepKind::Scatter(scatter) = &step.kind {
            collect_slot_pools(&scatter.body.steps, found);
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::report::{ReportKind, ReportTarget};

    pub(crate) fn sample(name: &str, slot_pool: Option<&str>) -> Definition {
        Definition {
            name: JobName::new(name).unwrap(),
            enabled: true,
            schedule: None,
            concurrency: ConcurrencyPolicy::Allow,
            policy: Policy::default(),
            sla: Sla::default(),
            reports: ReportWishes::default(),
            graph: None,
            steps: vec![Step {
                name: StepRef::main(),
                command: CommandStep {
                    command: CommandLine::Shell("true".to_owned()),
                    shell: "/bin/sh".to_owned(),
                    environment: Vec::new(),
                    env_file: None,
                    working_directory: None,
                    user: None,
                    group: None,
                    resource_limits: BTreeMap::new(),
                    execution_timeout_ms: None,
                    kill_timeout_ms: 30_000,
                    capture_stdout: true,
                    capture_stderr: true,
                    save_limit: 4096,
                    fails_when: FailsWhen {
                        nonzero_return: true,
                        produces_stdout: false,
                        produces_stderr: false,
                        always: false,
                    },
                    verify: None,
                    secrets: Vec::new(),
                },
                slots: slot_pool.map(|slot_pool| SlotDemand {
                    slot_pool: SlotPoolName::new(slot_pool).unwrap(),
                    slots: 1,
                    priority: 0,
                    queue_timeout_ms: 3_600_000,
                }),
            }],
        }
    }

    #[test]
    fn retries_wait_longer_each_time_up_to_the_maximum() {
        let retry = Retry {
            retries_max: Some(3),
            initial_delay_ms: 500,
            maximum_delay_ms: 3_000,
            multiplier: 3.0,
        };
        let delays: Vec<u64> = (2..6).map(|attempt| retry.delay_before(attempt)).collect();
        assert_eq!(delays, [500, 1_500, 3_000, 3_000]);
        assert_eq!(retry.delay_before(u32::MAX), 3_000);
        assert!(retry.allows(4) && !retry.allows(5));
        assert!(!Retry::default().allows(2), "no retries unless asked for");
        let endless = Retry {
            retries_max: None,
            ..retry
        };
        assert!(endless.allows(u32::MAX));
    }

    #[test]
    fn the_digest_follows_what_would_run() {
        let base = sample("a", Some("p"));
        let mut texts = base.clone();
        texts.steps[0].command.save_limit = 1;
        texts.sla.late_after_ms = Some(60_000);
        texts.reports.add(ReportKind::Failure, ReportTarget::Webhook);
        texts.schedule = Some(ScheduleText {
            text: "@hourly".to_owned(),
            seconds: false,
            day_match: None,
            timezone: None,
        });
        assert_eq!(base.digest(), texts.digest());
        let mut other = base.clone();
        other.steps[0].command.command = CommandLine::Shell("false".to_owned());
        assert_ne!(base.digest(), other.digest());
        let mut moved = base.clone();
        moved.steps[0].slots = None;
        assert_ne!(base.digest(), moved.digest());
        let mut secret = base.clone();
        secret.steps[0].command.secrets = vec![SecretRef {
            name: "TOKEN".to_owned(),
            from: SecretFrom::File("/run/token".to_owned()),
        }];
        assert_ne!(base.digest(), secret.digest());
        let text = serde_json::to_string(&secret).unwrap();
        assert!(
            text.contains(r#""secrets":[{"name":"TOKEN","from":{"file":"/run/token"}}]"#),
            "{text}"
        );
        assert_eq!(serde_json::from_str::<Definition>(&text).unwrap(), secret);
    }

    #[test]
    fn a_definition_is_readable_json() {
        let text = serde_json::to_string(&sample("a", Some("p"))).unwrap();
        assert!(
            text.starts_with(r#"{"name":"a","enabled":true,"concurrency":"allow","steps":[{"ref":"main""#),
            "{text}"
        );
        assert_eq!(
            serde_json::from_str::<Definition>(&text).unwrap(),
            sample("a", Some("p"))
        );
    }
}
