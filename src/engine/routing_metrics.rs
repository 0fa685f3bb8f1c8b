//! What is counted of routing.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};

use crate::words::limits;

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

fn seconds() -> Histogram {
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
            decision_seconds: Family::new_with_constructor(seconds),
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
