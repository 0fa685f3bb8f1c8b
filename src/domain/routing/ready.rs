//! Recipient pools and rules, ready to decide by: compiled once for each stored version.

use serde_json::{Value, json};

use super::canonical;
use super::fault::Fault;
use super::objects::{ActionKind, RecipientPool, Rule};
use super::pipeline::{self, Options, Pipeline};
use super::sight;
use crate::expr::Program;

/// A rule with its compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadyRule {
    /// As declared.
    pub rule: Rule,
    /// Compiled; in words why not, for a text that a later version of the program no longer admits.
    pub program: Result<Program, String>,
}

impl ReadyRule {
    /// Compiles a rule. Filters and boosts see the recipient.
    pub fn new(rule: Rule) -> ReadyRule {
        let sees_recipient = matches!(rule.action.kind, ActionKind::Filter | ActionKind::Boost);
        ReadyRule {
            program: sight::compile(&rule.expression, sees_recipient).map_err(|fault| fault.message),
            rule,
        }
    }

    /// Compiles several and puts them in the order in which they count.
    pub fn all(rules: impl IntoIterator<Item = Rule>) -> Vec<ReadyRule> {
        let mut ready: Vec<ReadyRule> = rules.into_iter().map(ReadyRule::new).collect();
        ready.sort_by(|left, right| {
            let key = |one: &ReadyRule| (one.rule.priority, one.rule.name.clone());
            key(left).cmp(&key(right))
        });
        ready
    }
}

/// A recipient pool with its rules and its pipeline.
#[derive(Debug, Clone, PartialEq)]
pub struct Prepared {
    /// As declared.
    pub recipient_pool: RecipientPool,
    /// Those attached to it, in the order in which they count.
    pub rules: Vec<ReadyRule>,
    /// What it routes by when a request names nothing else; the faults of a configuration that a later version of the
    /// program no longer admits.
    pub pipeline: Result<Pipeline, Vec<Fault>>,
    /// Digest of the pipeline; empty without one.
    pub pipeline_digest: String,
    /// Digest of the recipient pool.
    pub digest: String,
    /// Digest of its rules.
    pub rules_digest: String,
    /// The key of the work for its sub-pools; none without, and for the id of the work.
    pub shard_key: Option<Program>,
    /// The key under which the same work is known again.
    pub dedup_key: Option<Program>,
}

impl Prepared {
    /// Compiles all of it.
    pub fn new(recipient_pool: RecipientPool, rules: impl IntoIterator<Item = Rule>) -> Prepared {
        let rules = ReadyRule::all(rules);
        let config = &recipient_pool.config;
        let key = |text: Option<&String>| text.and_then(|text| sight::compile(text, false).ok());
        let pipeline = pipeline::effective(config, recipient_pool.strategy.as_deref(), None, &Options::new());
        Prepared {
            pipeline_digest: pipeline
                .as_ref()
                .map_or_else(|_| String::new(), |pipeline| canonical::sha256(&pipeline.source)),
            pipeline,
            digest: canonical::sha256(&json!(recipient_pool)),
            rules_digest: rules_digest(&rules),
            shard_key: key(config
                .sharding
                .as_ref()
                .and_then(|sharding| sharding.key.as_ref())),
            dedup_key: key(config.dedup.as_ref().map(|dedup| &dedup.key)),
            recipient_pool,
            rules,
        }
    }
}

/// Digest of rules in their order.
pub fn rules_digest(rules: &[ReadyRule]) -> String {
    let list: Vec<Value> = rules.iter().map(|ready| json!(ready.rule)).collect();
    canonical::sha256(&Value::Array(list))
}
