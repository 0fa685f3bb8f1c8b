//! Counters and histograms of the engine. Gauges that can be read from the store are not kept here: they are asked for
//! when somebody scrapes, so they cannot drift from the rows.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::domain::slots::entry::reason;
use crate::words::limits;

/// A job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct JobLabel {
    /// Its name.
    pub job: String,
}

/// A job and what became of something.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct JobOutcome {
    /// The job.
    pub job: String,
    /// The outcome.
    pub outcome: String,
}

/// A workflow (here a job) and its trigger.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WorkflowTrigger {
    /// The definition.
    pub workflow: String,
    /// What began the run.
    pub trigger: String,
}

/// A workflow (here a job) and its outcome.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WorkflowOutcome {
    /// The definition.
    pub workflow: String,
    /// How the run ended.
    pub outcome: String,
}

/// A workflow.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct WorkflowLabel {
    /// The definition.
    pub workflow: String,
}

/// A step type and an outcome.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct TypeOutcome {
    /// The step type; `type` on the wire.
    pub r#type: String,
    /// The outcome.
    pub outcome: String,
}

/// A slot pool.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SlotPoolLabel {
    /// Its name.
    pub slot_pool: String,
}

/// A slot pool and a word.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SlotPoolReason {
    /// The slot pool.
    pub slot_pool: String,
    /// Why.
    pub reason: String,
}

/// A slot pool and a state.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SlotPoolStateLabel {
    /// The slot pool.
    pub slot_pool: String,
    /// The state.
    pub state: String,
}

/// A slot pool and a job.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct SlotPoolJob {
    /// The slot pool.
    pub slot_pool: String,
    /// The job.
    pub job: String,
}

/// A result.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ResultLabel {
    /// `ok`, `failed` or `lost` of renewals; `applied`, `rejected` or `failed` of reloads.
    pub result: String,
}

/// A route, a method and a status.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteStatus {
    /// The pattern, not the path.
    pub route: String,
    /// The method.
    pub method: String,
    /// The status.
    pub status: u16,
}

/// A route and a method.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct RouteMethod {
    /// The pattern, not the path.
    pub route: String,
    /// The method.
    pub method: String,
}

/// A reason.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct ReasonLabel {
    /// Why.
    pub reason: String,
}

/// A cause.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CauseLabel {
    /// Why.
    pub cause: String,
}

/// How something is told to the outside, and what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct KindResult {
    /// `webhook`, `shell` or `heartbeat`.
    pub kind: String,
    /// `delivered`, `failed` or `refused`.
    pub result: String,
}

/// Milliseconds as seconds, for histograms.
#[expect(
    clippy::cast_precision_loss,
    reason = "a histogram needs no more than 52 bits of milliseconds"
)]
pub fn in_seconds(ms: u64) -> f64 {
    ms as f64 / 1_000.0
}

fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 4.0, 10))
}

/// Names that have become values of one label.
#[derive(Debug, Default)]
struct Names {
    seen: Mutex<BTreeSet<String>>,
}

impl Names {
    /// The name itself, or `other` once the label has as many values as it may.
    fn value_of(&self, name: &str) -> String {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.contains(name) {
            return name.to_owned();
        }
        if seen.len() >= limits::LABEL_VALUES_MAX {
            return "other".to_owned();
        }
        seen.insert(name.to_owned());
        name.to_owned()
    }
}

/// What the engine counts.
#[derive(Debug)]
pub struct Metrics {
    /// Runs that began to exist.
    pub runs_started: Family<WorkflowTrigger, Counter>,
    /// From start to end.
    pub run_seconds: Family<WorkflowLabel, Histogram, fn() -> Histogram>,
    /// Attempts that ended.
    pub attempts: Family<TypeOutcome, Counter>,
    /// From runnable to started, by what was waited for.
    pub step_wait_seconds: Family<ReasonLabel, Histogram, fn() -> Histogram>,
    /// CPU of ended commands.
    pub job_cpu_seconds: Family<JobLabel, Counter<f64, AtomicU64>>,
    /// The most memory of a process of the last run.
    pub job_memory_peak_bytes: Family<JobLabel, Gauge>,
    /// Fires and what became of them.
    pub fires: Family<JobOutcome, Counter>,
    /// Due to recorded.
    pub fire_lag_seconds: Histogram,
    /// Enqueue to admission.
    pub slot_wait_seconds: Family<SlotPoolLabel, Histogram, fn() -> Histogram>,
    /// Slots times seconds.
    pub slot_held_seconds: Family<SlotPoolJob, Counter<f64, AtomicU64>>,
    /// Refused enqueues.
    pub slot_refusals: Family<SlotPoolReason, Counter>,
    /// Leases lost.
    pub claims_lapsed: Family<SlotPoolLabel, Counter>,
    /// Renewals.
    pub lease_renewals: Family<ResultLabel, Counter>,
    /// Entries put back after a death or a lost lease.
    pub slot_readmitted: Family<CauseLabel, Counter>,
    /// Renewals that failed.
    pub slot_renewal_failures: Counter,
    /// Tries to deliver reports, and heartbeats.
    pub deliveries: Family<KindResult, Counter>,
    /// Requests that were answered.
    pub http_requests: Family<RouteStatus, Counter>,
    /// From the head of a request to the head of its answer; without streams.
    pub http_request_seconds: Family<RouteMethod, Histogram, fn() -> Histogram>,
    /// Requests that were turned away before they were routed.
    pub http_rejected: Family<ReasonLabel, Counter>,
    /// Keys and sessions that did not fit.
    pub auth_failures: Family<ReasonLabel, Counter>,
    /// Bytes of large values that no run had any more.
    pub blob_bytes_swept: Counter,
    /// Reloads of the configuration: `applied`, `rejected` or `failed`.
    pub config_reloads: Family<ResultLabel, Counter>,
    /// What is counted of routing.
    pub routing: RoutingMetrics,
    job_names: Names,
    slot_pool_names: Names,
    passes: AtomicU64,
    /// `u64::MAX`: not counted.
    logs_bytes: AtomicU64,
}

impl Metrics {
    /// All at zero.
    pub fn new() -> Metrics {
        Metrics {
            runs_started: Family::default(),
            run_seconds: Family::new_with_constructor(seconds),
            attempts: Family::default(),
            step_wait_seconds: Family::new_with_constructor(seconds),
            job_cpu_seconds: Family::default(),
            job_memory_peak_bytes: Family::default(),
            fires: Family::default(),
            fire_lag_seconds: seconds(),
            slot_wait_seconds: Family::new_with_constructor(seconds),
            slot_held_seconds: Family::default(),
            slot_refusals: Family::default(),
            claims_lapsed: Family::default(),
            lease_renewals: Family::default(),
            slot_readmitted: Family::default(),
            slot_renewal_failures: Counter::default(),
            deliveries: Family::default(),
            http_requests: Family::default(),
            http_request_seconds: Family::new_with_constructor(seconds),
            http_rejected: Family::default(),
            auth_failures: Family::default(),
            blob_bytes_swept: Counter::default(),
            config_reloads: Family::default(),
            routing: RoutingMetrics::default(),
            job_names: Names::default(),
            slot_pool_names: Names::default(),
            passes: AtomicU64::new(0),
            logs_bytes: AtomicU64::new(u64::MAX),
        }
    }

    /// The label value of a job.
    pub fn job_name(&self, name: &str) -> String {
        self.job_names.value_of(name)
    }

    /// The label value of a slot pool.
    pub fn slot_pool_name(&self, name: &str) -> String {
        self.slot_pool_names.value_of(name)
    }

    /// Counts a run that began to exist.
    pub fn count_started(&self, workflow: &str, trigger: &str) {
        let label = WorkflowTrigger {
            workflow: self.job_name(workflow),
            trigger: trigger.to_owned(),
        };
        self.runs_started.get_or_create(&label).inc();
    }

    /// Counts how long a step waited before it was claimed: for `slots`, or only for a daemon (`ready`).
    pub fn count_wait(&self, what_for: &str, seconds: f64) {
        let reason = what_for.to_owned();
        self.step_wait_seconds
            .get_or_create(&ReasonLabel { reason })
            .observe(seconds);
    }

    /// Counts what an ended command has used.
    pub fn count_usage(&self, job: &str, cpu_ms: u64, memory_peak_bytes: Option<u64>) {
        let job = JobLabel {
            job: self.job_name(job),
        };
        self.job_cpu_seconds
            .get_or_create(&job)
            .inc_by(in_seconds(cpu_ms));
        if let Some(bytes) = memory_peak_bytes {
            let bytes = i64::try_from(bytes).unwrap_or(i64::MAX);
            self.job_memory_peak_bytes.get_or_create(&job).set(bytes);
        }
    }

    /// Counts a refused enqueue by the word of its reason, like `pool_full`.
    pub fn count_refusal(&self, slot_pool: &str, word: &str) {
        let reason = word.trim_start_matches("pool_").to_owned();
        let label = SlotPoolReason {
            slot_pool: self.slot_pool_name(slot_pool),
            reason,
        };
        self.slot_refusals.get_or_create(&label).inc();
    }

    /// Counts an entry that was put back because its daemon died or its lease lapsed.
    pub fn count_readmitted(&self, slot_pool: &str, cause: &str) {
        self.slot_readmitted
            .get_or_create(&CauseLabel {
                cause: cause.to_owned(),
            })
            .inc();
        if cause == reason::LEASE_LAPSED {
            self.claims_lapsed
                .get_or_create(&SlotPoolLabel {
                    slot_pool: self.slot_pool_name(slot_pool),
                })
                .inc();
        }
    }

    /// Counts a try to tell the outside something.
    pub fn count_delivery(&self, kind: &str, result: &str) {
        let label = KindResult {
            kind: kind.to_owned(),
            result: result.to_owned(),
        };
        self.deliveries.get_or_create(&label).inc();
    }

    /// Counts an answered request; `seconds` is `None` for a stream.
    pub fn count_request(&self, route: &str, method: &str, status: u16, seconds: Option<f64>) {
        let (route, method) = (route.to_owned(), method.to_owned());
        let label = RouteStatus {
            route: route.clone(),
            method: method.clone(),
            status,
        };
        self.http_requests.get_or_create(&label).inc();
        if let Some(seconds) = seconds {
            self.http_request_seconds
                .get_or_create(&RouteMethod { route, method })
                .observe(seconds);
        }
    }

    /// Counts a key or session that did not fit, and why.
    pub fn count_auth_failure(&self, reason: &str) {
        self.auth_failures
            .get_or_create(&ReasonLabel {
                reason: reason.to_owned(),
            })
            .inc();
    }

    /// Counts a request that was turned away: `host`, `origin`, `auth`, `rate` or `body`.
    pub fn count_rejected(&self, reason: &str) {
        self.http_rejected
            .get_or_create(&ReasonLabel {
                reason: reason.to_owned(),
            })
            .inc();
    }

    /// The bytes of all logs were counted, or are too many to count.
    pub fn note_logs_bytes(&self, bytes: Option<u64>) {
        self.logs_bytes
            .store(bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Bytes of all logs when they were counted last.
    pub fn logs_bytes(&self) -> Option<u64> {
        let bytes = self.logs_bytes.load(Ordering::Relaxed);
        (bytes != u64::MAX).then_some(bytes)
    }

    /// A pass was done: the sign of life that health looks at.
    pub fn passed(&self) {
        self.passes.fetch_add(1, Ordering::Relaxed);
    }

    /// Passes so far.
    pub fn passes(&self) -> u64 {
        self.passes.load(Ordering::Relaxed)
    }
}

impl Default for Metrics {
    fn default() -> Metrics {
        Metrics::new()
    }
}

impl Metrics {
    /// Counts an ended execution of a step.
    pub fn count_attempt(&self, kind: &str, outcome: &str) {
        let label = TypeOutcome {
            r#type: kind.to_owned(),
            outcome: outcome.to_owned(),
        };
        self.attempts.get_or_create(&label).inc();
    }
}

/// A recipient pool and how a decision ended.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PoolOutcome {
    /// Its name; empty where none was chosen.
    pub recipient_pool: String,
    /// The outcome.
    pub outcome: String,
}

/// A recipient pool and a kind of error.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct PoolKind {
    /// Its name.
    pub recipient_pool: String,
    /// What kind.
    pub kind: String,
}

/// A part of the way to a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct StageLabel {
    /// `judge` or `commit`.
    pub stage: String,
}

/// A code.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct CodeLabel {
    /// Of the registry of reasons.
    pub code: String,
}

fn fine_seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.000_05, 4.0, 10))
}

/// What is counted of routing.
#[derive(Debug)]
pub struct RoutingMetrics {
    /// Decisions that were written.
    pub decisions: Family<PoolOutcome, Counter>,
    /// How long a part of one took.
    pub decision_seconds: Family<StageLabel, Histogram, fn() -> Histogram>,
    /// Rules that could not be evaluated.
    pub rule_error_counts: Family<PoolKind, Counter>,
    /// Passes in which every candidate of a recipient pool was rejected by one code.
    pub zero_matches: Family<CodeLabel, Counter>,
    names: Mutex<BTreeSet<String>>,
}

impl Default for RoutingMetrics {
    fn default() -> RoutingMetrics {
        RoutingMetrics {
            decisions: Family::default(),
            decision_seconds: Family::new_with_constructor(fine_seconds),
            rule_error_counts: Family::default(),
            zero_matches: Family::default(),
            names: Mutex::default(),
        }
    }
}

impl RoutingMetrics {
    /// The name itself, or `other` once the label has as many values as it may.
    pub fn name(&self, name: &str) -> String {
        let mut names = self.names.lock().unwrap_or_else(PoisonError::into_inner);
        if !names.contains(name) {
            if names.len() >= limits::LABEL_VALUES_MAX {
                return "other".to_owned();
            }
            names.insert(name.to_owned());
        }
        name.to_owned()
    }

    /// A decision was written.
    pub fn decided(&self, recipient_pool: &str, outcome: &str) {
        let label = PoolOutcome {
            recipient_pool: self.name(recipient_pool),
            outcome: outcome.to_owned(),
        };
        self.decisions.get_or_create(&label).inc();
    }

    /// A part of a decision took so long.
    pub fn observe(&self, stage: &str, took: Duration) {
        let stage = stage.to_owned();
        self.decision_seconds
            .get_or_create(&StageLabel { stage })
            .observe(took.as_secs_f64());
    }

    /// So many rules could not be evaluated.
    pub fn rule_errors(&self, recipient_pool: &str, count: usize) {
        if count > 0 {
            let label = PoolKind {
                recipient_pool: self.name(recipient_pool),
                kind: "evaluation".to_owned(),
            };
            self.rule_error_counts.get_or_create(&label).inc_by(count as u64);
        }
    }

    /// Every candidate of a recipient pool was rejected by one code.
    pub fn zero_match(&self, code: &str) {
        let code = code.to_owned();
        self.zero_matches.get_or_create(&CodeLabel { code }).inc();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_has_no_more_values_than_it_may() {
        let metrics = Metrics::new();
        for number in 0..limits::LABEL_VALUES_MAX {
            assert_eq!(
                metrics.job_name(&format!("job-{number}")),
                format!("job-{number}")
            );
        }
        assert_eq!(metrics.job_name("one more"), "other");
        assert_eq!(metrics.job_name("job-3"), "job-3");
        assert_eq!(metrics.slot_pool_name("one more"), "one more");
    }
}
