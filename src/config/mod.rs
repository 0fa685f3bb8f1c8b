//! The configuration: finding it, reading it, checking it, and saying what is wrong with it.
//!
//! The way of a document: `find` picks a place, `include` finds its files (`glob` those that are named by a pattern),
//! `source` reads each, `tree` makes positioned trees of them (pass one, structure), the readers walk the trees and
//! collect all faults (pass two, meaning), `overrides` lays variables and flags on top, `render` shows faults with carets.
//!
//! - `key_table` is the table of all keys, `shape` what their values look like; `keys` knows also the words that are
//!   refused for now. `schema` makes the JSON Schema and the reference page of them.
//! - `reading` knows kinds of values, `sections`, `slot_pools` and `jobs` know what they mean;
//!   `job_layer` is what a job and `defaults` have in common, `secrets` one list of it, `reports` who is told
//!   (`report_model` is its result), `routing` names bundles, `schedule_text` the text of a schedule, `launch` a process and its slots put together.
//! - `dags` and `tasks` read dags, `task_order` judges what depends on what; `dag_model` is their result. Jobs and dags
//!   share `names`.
//! - `crontab` reads tables of cron, line by line; `cronstable` makes a document of ours from one of cronstable\'s.
//! - `quantity` and `substitute` are pure functions on text.
//! - `model` is the result: plain data that knows nothing of YAML.
//!
//! This module asks no clock, reads no variable and knows no schedule: the environment and the
//! meaning of schedules and time zones come in as arguments. Only `source`, `include` and `glob` touch the disk.
//! Everything in a file is taken as hostile: each length, depth and number has a limit, and no input
//! makes it panic.

mod access;
mod cronstable;
mod crontab;
mod dag_model;
mod dags;
mod fault;
mod find;
mod glob;
mod include;
mod job_layer;
mod job_policy;
mod jobs;
mod key_table;
mod key_table_access;
mod key_table_dags;
mod key_table_reports;
mod keys;
mod launch;
mod load;
mod model;
mod names;
mod origins;
mod overrides;
mod plain;
mod quantity;
mod reading;
mod render;
mod report_model;
mod reports;
mod routing;
mod schedule_text;
mod schema;
mod secrets;
mod sections;
mod shape;
mod slot_pools;
mod source;
mod strict_json;
mod substitute;
mod syntax;
mod task_order;
mod tasks;
mod tenants;
mod tree;

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod cronstable_tests;
#[cfg(test)]
mod crontab_hosts;
#[cfg(test)]
mod dag_tests;
#[cfg(test)]
mod hostile_tests;
#[cfg(test)]
mod include_tests;
#[cfg(test)]
mod job_tests;
#[cfg(test)]
mod load_tests;
#[cfg(test)]
mod render_tests;
#[cfg(test)]
mod report_tests;
#[cfg(test)]
mod schema_tests;
#[cfg(test)]
mod slot_pool_tests;

pub use access::{AuthConfig, IssuerConfig, RateLimitConfig};
pub use crontab::crontab_as_yaml;
pub use dag_model::{DagConfig, ExpandConfig, OnReject, TaskConfig, TaskKind, TriggerRule, WorkConfig};
pub use dags::{DAGS_MAX, TASKS_MAX};
pub use fault::{Fault, Place, Severity};
pub use find::Search;
pub use jobs::JOBS_MAX;
pub use load::{load, load_at_start};
pub use model::{
    CapacityRaise, ClusterPolicy, CommandConfig, ConcurrencyPolicy, Config, DayMatch, EnvironmentEntry,
    FailsWhenConfig, JobConfig, LaunchConfig, LogFormat, LogRetentionConfig, LoggingConfig, NodeConfig,
    OnMissed, PolicyConfig, ResourceLimitsConfig, RetentionConfig, RetryConfig, ScheduleText, SecretConfig,
    SecretSource, ServerConfig, ShutdownConfig, SlotPoolConfig, SlotsConfig, StateConfig, StateMode,
    VerifyConfig,
};
pub use model::{CrontabConfig, EgressConfig, Label};
pub use origins::{Origin, origins};
pub use overrides::{Override, Overrides};
pub use plain::{PlainDocument, read_bundle, read_plain};
pub use render::{Paint, render};
pub use report_model::{
    Address, HeaderConfig, HeartbeatConfig, HiddenText, NotifyConfig, ReportConfig, ReportsConfig,
    ShellReportConfig, SlaConfig, WebhookConfig,
};
pub use routing::{BundleConfig, RoutingConfig};
pub use schedule_text::{ScheduleCheck, ScheduleFault};
pub use schema::{reference, schema};
pub use slot_pools::SLOT_POOLS_MAX;
pub use source::{FILE_BYTES_MAX, FILES_MAX, Form, Source, Sources};
pub use strict_json::{NotStrict, strict_json};
pub use substitute::Environment;
pub use tenants::{TenantConfig, TenantRoutingConfig};
