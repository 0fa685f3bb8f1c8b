//! The typed configuration: plain data, every default and inherited value filled in, every range
//! checked. Engines get values of these types and never a file.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;

use super::access::{AuthConfig, RateLimitConfig};
use super::dag_model::DagConfig;
use super::fault::Place;
use super::report_model::{NotifyConfig, ReportsConfig, SlaConfig};
use super::routing::RoutingConfig;
use super::tenants::TenantConfig;
use crate::words::network::EgressRule;

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const DAY_MS: u64 = 24 * 3600 * 1000;

/// One whole document. Its JSON has the words of the file; durations end in `Ms`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Config {
    pub server: ServerConfig,
    pub state: StateConfig,
    pub node: NodeConfig,
    /// In the order of the files.
    #[serde(rename = "pools")]
    pub slot_pools: Vec<SlotPoolConfig>,
    /// In the order of the files.
    pub jobs: Vec<JobConfig>,
    /// In the order of the files.
    pub dags: Vec<DagConfig>,
    pub retention: RetentionConfig,
    pub shutdown: ShutdownConfig,
    pub logging: LoggingConfig,
    /// Crontabs that are part of it.
    pub crontabs: Vec<CrontabConfig>,
    pub notify: NotifyConfig,
    pub egress: EgressConfig,
    pub auth: AuthConfig,
    /// In the order of the file.
    pub tenants: Vec<TenantConfig>,
    pub routing: RoutingConfig,
}

/// What the steps of workflows may reach besides public addresses.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EgressConfig {
    pub allow: Vec<EgressRule>,
}

/// A table of cron that is read as it is.
#[derive(Clone, Debug, Serialize)]
pub struct CrontabConfig {
    /// As a place names it.
    pub path: String,
    /// It has a column for the user.
    pub user: bool,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ServerConfig {
    pub listen: SocketAddr,
    pub public_url: Option<String>,
    pub allowed_hosts: Vec<String>,
    pub allowed_origins: Vec<String>,
    pub max_body_bytes: u64,
    pub request_timeout_ms: u64,
    pub rate_limit: RateLimitConfig,
}

impl Default for ServerConfig {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 8470)),
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            max_body_bytes: 4 * MIB,
            request_timeout_ms: 30_000,
            rate_limit: RateLimitConfig::default(),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StateConfig {
    pub path: PathBuf,
    pub mode: StateMode,
    pub capacity_raise: CapacityRaise,
    pub cache_bytes: u64,
    /// The state directory is said to stand on a network file system.
    pub network: bool,
    /// Free bytes below which nothing new is accepted.
    pub low_disk_bytes: u64,
}

impl Default for StateConfig {
    fn default() -> Self {
        Self {
            path: PathBuf::from("state"),
            mode: StateMode::Auto,
            capacity_raise: CapacityRaise::Drain,
            cache_bytes: 16 * MIB,
            network: false,
            low_disk_bytes: 512 * MIB,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum StateMode {
    Auto,
    Exclusive,
    Shared,
}

/// When a changed number of slots takes effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CapacityRaise {
    Drain,
    Immediate,
}

#[derive(Clone, Debug, Default, Serialize)]
pub struct NodeConfig {
    /// None: generated once and kept in the state directory.
    pub name: Option<String>,
}

/// Counted capacity that jobs share.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotPoolConfig {
    pub name: String,
    pub slots: u32,
    pub max_queued: u32,
    #[serde(skip)]
    pub at: Place,
}

/// How long what has ended is kept.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetentionConfig {
    /// Ended runs kept of each job.
    pub runs: u32,
    pub age_ms: u64,
    pub logs: LogRetentionConfig,
    pub audit: AuditRetentionConfig,
}

/// How long it is kept who did what.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuditRetentionConfig {
    pub age_ms: u64,
    /// Rows of each tenant.
    pub count: u32,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogRetentionConfig {
    /// The age of runs where the file does not say otherwise.
    pub age_ms: u64,
    /// Of all logs together; None is without a limit.
    pub bytes: Option<u64>,
}

impl Default for RetentionConfig {
    fn default() -> Self {
        Self {
            runs: 500,
            age_ms: 14 * DAY_MS,
            logs: LogRetentionConfig {
                age_ms: 14 * DAY_MS,
                bytes: None,
            },
            audit: AuditRetentionConfig {
                age_ms: 365 * DAY_MS,
                count: 1_000_000,
            },
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ShutdownConfig {
    pub drain_timeout_ms: u64,
}

impl Default for ShutdownConfig {
    fn default() -> Self {
        Self {
            drain_timeout_ms: 300_000,
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LoggingConfig {
    /// A level, or a list of filters: `info,ductor::fire=debug`.
    pub level: String,
    pub format: LogFormat,
}

impl Default for LoggingConfig {
    fn default() -> Self {
        Self {
            level: "info".to_owned(),
            format: LogFormat::Auto,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum LogFormat {
    /// Pretty on a terminal, else JSON.
    Auto,
    Pretty,
    Json,
}

/// A job with everything it inherits from the `defaults` of its file.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct JobConfig {
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
    /// Where a crontab has its zone from: `CRON_TZ`, `TZ`, or a file of the host.
    pub timezone_from: Option<String>,
    /// What is kept for people and means nothing here.
    pub labels: Vec<Label>,
    pub enabled: bool,
    /// What is executed, and how.
    #[serde(flatten)]
    pub launch: LaunchConfig,
    pub concurrency_policy: ConcurrencyPolicy,
    /// None: dispatched without a claim.
    pub slots: Option<SlotsConfig>,
    /// When it may begin, and begin again.
    pub policy: PolicyConfig,
    /// When it is late.
    pub sla: SlaConfig,
    /// Who is told, and when.
    pub reports: ReportsConfig,
}

/// A process of a job or of a task: what is executed, as whom, where, and what counts as a failure.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LaunchConfig {
    pub command: CommandConfig,
    pub shell: PathBuf,
    /// In order, each key once.
    pub environment: Vec<EnvironmentEntry>,
    /// May begin with `~`, which is resolved at each launch.
    pub env_file: Option<PathBuf>,
    /// May begin with `~`. None: the daemon's.
    pub working_directory: Option<PathBuf>,
    /// A name or an id; whether it exists is not asked here.
    pub user: Option<String>,
    pub group: Option<String>,
    pub resource_limits: ResourceLimitsConfig,
    pub execution_timeout_ms: Option<u64>,
    pub kill_timeout_ms: u64,
    pub capture_stdout: bool,
    pub capture_stderr: bool,
    /// Lines kept of each stream.
    pub save_limit: u32,
    pub fails_when: FailsWhenConfig,
    pub verify: Option<VerifyConfig>,
    /// In order, each name once. Only names are ever shown.
    pub secrets: Vec<SecretConfig>,
}

/// When a job may begin, and begin again.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PolicyConfig {
    pub on_missed: OnMissed,
    pub starting_deadline_ms: Option<u64>,
    pub only_if_last_succeeded: bool,
    pub cluster_policy: ClusterPolicy,
    pub retry: RetryConfig,
}

/// What becomes of fires that were due while nobody could fire them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnMissed {
    Skip,
    RunOnce,
    RunAll,
}

/// Which daemons fire a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ClusterPolicy {
    Leader,
    PreferLeader,
    EveryNode,
}

/// Attempts after a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RetryConfig {
    /// None: without end.
    pub maximum_retries: Option<u32>,
    pub initial_delay_ms: u64,
    pub maximum_delay_ms: u64,
    pub backoff_multiplier: f64,
}

impl RetryConfig {
    /// No attempt after the first.
    pub(super) fn none() -> Self {
        Self {
            maximum_retries: Some(0),
            initial_delay_ms: 1_000,
            maximum_delay_ms: 300_000,
            backoff_multiplier: 2.0,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Label {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum CommandConfig {
    /// For the job's shell.
    Shell(String),
    /// Program and arguments, at least the program.
    List(Vec<String>),
}

/// A schedule as five or six fields or a nickname; its meaning was checked by the caller.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ScheduleText {
    pub text: String,
    #[serde(skip)]
    pub at: Place,
}

/// How day of month and day of week go together when both are restricted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DayMatch {
    Or,
    And,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EnvironmentEntry {
    pub key: String,
    pub value: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceLimitsConfig {
    pub cpu_seconds: Option<u64>,
    pub memory_bytes: Option<u64>,
    pub processes: Option<u64>,
    pub open_files: Option<u64>,
    pub file_size_bytes: Option<u64>,
    pub core_bytes: Option<u64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum ConcurrencyPolicy {
    Allow,
    Forbid,
    Replace,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a key of the file; they are judged in a fixed order"
)]
pub struct FailsWhenConfig {
    pub nonzero_return: bool,
    pub produces_stdout: bool,
    pub produces_stderr: bool,
    pub always: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VerifyConfig {
    pub command: CommandConfig,
    pub timeout_ms: u64,
}

/// A variable of the command whose value is read at each launch and never kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SecretConfig {
    pub name: String,
    #[serde(skip)]
    pub from: SecretSource,
    #[serde(skip)]
    pub at: Place,
}

/// Where the value of a secret is read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// May begin with `~`.
    File(PathBuf),
    /// A variable of the daemon.
    Variable(String),
}

/// What a job asks of a slot pool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlotsConfig {
    /// Names one of `Config::pools`.
    #[serde(rename = "pool")]
    pub slot_pool: String,
    pub slots: u32,
    /// Higher goes first.
    pub priority: i32,
    pub queue_timeout_ms: u64,
}
