//! The config of a recipient pool: how it routes.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fields::{Fields, escaped};
use super::recipient_pool::Target;
use crate::domain::routing::duration::LONGEST_US;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{
    BusyPolicy, ClaimBudget, Dedup, Explain, FallbackKind, FlowControl, OnDuplicate, OnLimit, PipelineMode,
    RecipientPoolConfig, RoutingMode, ShardBy, Sharding, Sla,
};
use crate::domain::routing::pipeline::{self, Fallback, Options, Pipeline};
use crate::domain::routing::strategies::{self, check_options, info};
use crate::domain::routing::{recipes, sight};
use crate::words::ids::{ClaimQueueId, RecipientPoolId};
use crate::words::limits;

const SECOND_US: u64 = 1_000_000;
const HOUR_US: u64 = 3_600 * SECOND_US;

const KNOWN: [&str; 26] = [
    "default_strategy",
    "default_strategy_pipeline",
    "default_recipe",
    "strategy_pipelines",
    "strategy_options",
    "routing_mode",
    "pipeline_mode",
    "default_timeout",
    "max_routing_depth",
    "queue_ttl_seconds",
    "sharding",
    "dedup",
    "flow_control",
    "fallback",
    "overflow_pool_id",
    "catchall_pool_id",
    "catchall_delay",
    "allow_over_capacity",
    "over_capacity_budget",
    "sla",
    "claim_queue_id",
    "busy_policy",
    "claim_budget",
    "exploration_epsilon",
    "age_step",
    "explain",
];

impl RecipientPoolConfig {
    /// Nothing is set.
    pub fn plain() -> RecipientPoolConfig {
        RecipientPoolConfig {
            default_strategy: None,
            default_strategy_pipeline: None,
            default_recipe: None,
            strategy_pipelines: BTreeMap::new(),
            strategy_options: BTreeMap::new(),
            routing_mode: RoutingMode::Auto,
            pipeline_mode: PipelineMode::Inherit,
            default_timeout_us: 0,
            max_routing_depth: 3,
            queue_ttl_us: HOUR_US,
            sharding: None,
            dedup: None,
            flow_control: None,
            fallback: FallbackKind::Queue,
            overflow: None,
            catchall: None,
            catchall_delay_us: 0,
            allow_over_capacity: false,
            over_capacity_budget_micro: 0,
            sla: None,
            claim_queue: None,
            kill_switch: None,
            busy_policy: BusyPolicy::Exclude,
            claim_budget: None,
            exploration_epsilon: 0.0,
            age_step_us: 0,
            explain: Explain::First,
        }
    }
}

/// Reads `config`.
pub(super) fn read(
    object: &mut Fields<'_>,
    targets: &mut Vec<Target>,
    warnings: &mut Vec<Fault>,
) -> RecipientPoolConfig {
    let mut config = RecipientPoolConfig::plain();
    let Some(mut fields) = object.part("config", &KNOWN) else {
        return config;
    };
    let fields = &mut fields;
    read_strategies(fields, &mut config, targets);
    read_routing(fields, &mut config);
    read_fallback(fields, &mut config, targets);
    read_capacity(fields, &mut config, warnings);
    read_claims(fields, &mut config, targets);
    config.sharding = sharding(fields, targets);
    config.dedup = dedup(fields);
    config.flow_control = flow_control(fields);
    config.sla = sla(fields, targets);
    config
}

fn read_strategies(fields: &mut Fields<'_>, config: &mut RecipientPoolConfig, targets: &mut Vec<Target>) {
    config.strategy_options = options(fields);
    config.strategy_pipelines = pipelines(fields, &config.strategy_options, targets);
    let three = ["default_strategy", "default_strategy_pipeline", "default_recipe"];
    let given: Vec<&str> = three.into_iter().filter(|key| fields.has(key)).collect();
    if let [first, second, ..] = given[..] {
        let detail = format!("`{first}` is set too: at most one of the three `default_*` fields may be");
        fields.fault(second, "config.exclusive", detail);
    }
    config.default_strategy = fields.text("default_strategy", limits::ROUTING_NAME_CHARS_MAX);
    if let Some(text) = config
        .default_strategy
        .as_deref()
        .filter(|text| info(text).is_none())
    {
        let fault = strategies::options::unknown(&fields.pointer("default_strategy"), text);
        fields.push(fault);
    }
    config.default_strategy_pipeline =
        fields.text("default_strategy_pipeline", limits::ROUTING_NAME_CHARS_MAX);
    if let Some(name) = config.default_strategy_pipeline.clone()
        && !config.strategy_pipelines.contains_key(&name)
    {
        let detail = format!("`{name}` is no entry of strategy_pipelines");
        fields.fault("default_strategy_pipeline", "pipeline.unknown", detail);
    }
    if let Some(text) = fields.text("default_recipe", limits::ROUTING_NAME_CHARS_MAX) {
        match recipes::find(&text) {
            Some(recipe) => {
                let pinned = recipe.pinned();
                fields.set("default_recipe", pinned.as_str());
                config.default_recipe = Some(pinned);
            }
            None => fields.fault(
                "default_recipe",
                "recipe.unknown",
                format!("there is no recipe `{text}`"),
            ),
        }
    }
}

/// Named pipelines.
fn pipelines(
    fields: &mut Fields<'_>,
    options: &Options,
    targets: &mut Vec<Target>,
) -> BTreeMap<String, Value> {
    let map = fields.map("strategy_pipelines").unwrap_or_default();
    if map.len() > limits::PIPELINES_MAX {
        let detail = format!(
            "has {} entries, and {} are allowed",
            map.len(),
            limits::PIPELINES_MAX
        );
        fields.fault("strategy_pipelines", "field.range", detail);
    }
    let at = fields.pointer("strategy_pipelines");
    for (name, value) in map.iter().filter(|(_, value)| !value.is_null()) {
        let pointer = format!("{at}/{}", escaped(name));
        match pipeline::read(&pointer, name, value, options, &Options::new()) {
            Ok(read) => targets_of(&read, &pointer, targets),
            Err(faults) => {
                for fault in faults {
                    fields.push(fault);
                }
            }
        }
    }
    map.into_iter().collect()
}

/// The recipient pools to which the fallbacks of a pipeline lead.
fn targets_of(pipeline: &Pipeline, pointer: &str, targets: &mut Vec<Target>) {
    for (index, fallback) in pipeline.fallback.iter().enumerate() {
        let place = format!("{pointer}/fallback/{index}");
        match fallback {
            Fallback::Overflow(pipeline::Target::Name(name)) => {
                targets.push(Target::Named(format!("{place}/overflow"), name.clone()));
            }
            Fallback::Overflow(pipeline::Target::Id(id)) => {
                targets.push(Target::RecipientPool(format!("{place}/overflow"), *id));
            }
            Fallback::Pipeline(inner) => targets_of(inner, &place, targets),
            Fallback::Queue(_) | Fallback::Drop => {}
        }
    }
}

/// Options by strategy.
fn options(fields: &mut Fields<'_>) -> Options {
    let map = fields.map("strategy_options").unwrap_or_default();
    let at = fields.pointer("strategy_options");
    let mut found = Options::new();
    for (strategy, value) in map {
        let pointer = format!("{at}/{}", escaped(&strategy));
        match value {
            Value::Object(options) => {
                for fault in check_options(&pointer, &strategy, &options) {
                    fields.push(fault);
                }
                found.insert(strategy, options);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                fields.push(Fault::new(pointer, "field.type", "must be an object of options"));
            }
        }
    }
    found
}

fn read_routing(fields: &mut Fields<'_>, config: &mut RecipientPoolConfig) {
    let mode = fields.word("routing_mode", RoutingMode::of, RoutingMode::WORDS);
    config.routing_mode = mode.unwrap_or(config.routing_mode);
    let is_empty = fields.raw("pipeline_mode").and_then(Value::as_str) == Some("");
    if !is_empty {
        let mode = fields.word("pipeline_mode", PipelineMode::of, PipelineMode::WORDS);
        config.pipeline_mode = mode.unwrap_or(config.pipeline_mode);
    }
    config.default_timeout_us = fields.duration("default_timeout", 0, LONGEST_US).unwrap_or(0);
    let depth = fields.whole32("max_routing_depth", 0, 16);
    config.max_routing_depth = depth.unwrap_or(config.max_routing_depth);
    let ttl = fields.whole("queue_ttl_seconds", 1, 31_536_000);
    config.queue_ttl_us = ttl.map_or(config.queue_ttl_us, |seconds| seconds * SECOND_US);
    let busy = fields.word("busy_policy", BusyPolicy::of, BusyPolicy::WORDS);
    config.busy_policy = busy.unwrap_or(config.busy_policy);
    let epsilon = fields.number("exploration_epsilon", 0.0, 0.5);
    config.exploration_epsilon = epsilon.unwrap_or(0.0);
    config.age_step_us = fields.duration("age_step", 0, LONGEST_US).unwrap_or(0);
    let explain = fields.word("explain", explain_of, &["first", "all"]);
    config.explain = explain.unwrap_or(Explain::First);
}

/// Winners alone are for a single request, not for a recipient pool.
fn explain_of(text: &str) -> Option<Explain> {
    Explain::of(text).filter(|explain| *explain != Explain::Winners)
}

fn read_fallback(fields: &mut Fields<'_>, config: &mut RecipientPoolConfig, targets: &mut Vec<Target>) {
    let fallback = fields.word("fallback", FallbackKind::of, FallbackKind::WORDS);
    config.fallback = fallback.unwrap_or(config.fallback);
    for (key, kind) in [
        ("overflow_pool_id", FallbackKind::Overflow),
        ("catchall_pool_id", FallbackKind::Catchall),
    ] {
        if !fields.has(key) && config.fallback == kind {
            let detail = format!("fallback `{}` needs a target", kind.word());
            fields.fault(key, "config.target_required", detail);
        }
        let id = fields.id::<RecipientPoolId>(key, "pool.not_found");
        targets.extend(id.map(|id| Target::Other(fields.pointer(key), id)));
        match kind {
            FallbackKind::Overflow => config.overflow = id,
            FallbackKind::Catchall | FallbackKind::Queue | FallbackKind::Drop => config.catchall = id,
        }
    }
    config.catchall_delay_us = fields.duration("catchall_delay", 0, LONGEST_US).unwrap_or(0);
}

fn read_capacity(fields: &mut Fields<'_>, config: &mut RecipientPoolConfig, warnings: &mut Vec<Fault>) {
    config.allow_over_capacity = fields.flag("allow_over_capacity").unwrap_or(false);
    let percent = fields.number("over_capacity_budget", 0.0, 1_000.0).unwrap_or(0.0);
    config.over_capacity_budget_micro = micro(percent);
    if config.allow_over_capacity && config.over_capacity_budget_micro == 0 {
        let detail =
            "without over_capacity_budget a recipient may go one above each of its limits, and no further";
        let pointer = fields.pointer("allow_over_capacity");
        warnings.push(Fault::new(pointer, "config.over_capacity_without_budget", detail));
    }
}

/// Millionths of a number that is not negative, and small.
pub(super) fn micro(number: f64) -> u64 {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "it was checked to be 0 to 1,000,000"
    )]
    let micro = (number * 1e6).round() as u64;
    micro
}

fn read_claims(fields: &mut Fields<'_>, config: &mut RecipientPoolConfig, targets: &mut Vec<Target>) {
    let is_claim = config.routing_mode == RoutingMode::Claim;
    if is_claim != fields.has("claim_queue_id") {
        let detail = if is_claim {
            "routing_mode `claim` needs the claim queue that work is offered in"
        } else {
            "is only for routing_mode `claim`"
        };
        fields.fault("claim_queue_id", "config.claim_pair", detail);
    }
    config.claim_queue = fields.id::<ClaimQueueId>("claim_queue_id", "claim_queue.not_found");
    let queue = config.claim_queue;
    targets.extend(queue.map(|id| Target::ClaimQueue(fields.pointer("claim_queue_id"), id)));
    let Some(mut budget) = fields.part("claim_budget", &["limit", "per", "max_open"]) else {
        return;
    };
    let limit = required(&mut budget, "limit", |budget, key| {
        budget.whole32(key, 1, u32::MAX)
    });
    let per = required(&mut budget, "per", |budget, key| {
        budget.duration(key, 1_000, LONGEST_US)
    });
    let max_open = budget.whole32("max_open", 0, u32::MAX).unwrap_or(0);
    config.claim_budget = limit.zip(per).map(|(limit, per_us)| ClaimBudget {
        limit,
        per_us,
        max_open,
    });
}

/// A field without a default.
fn required<T>(
    fields: &mut Fields<'_>,
    key: &str,
    read: impl FnOnce(&mut Fields<'_>, &str) -> Option<T>,
) -> Option<T> {
    if !fields.has(key) {
        fields.fault(key, "field.required", "must be given");
    }
    read(fields, key)
}

/// An expression over work: its faults stand at the field, with line and column.
fn expression(fields: &mut Fields<'_>, key: &str) -> Option<String> {
    let text = fields.raw(key)?.as_str().map(str::to_owned);
    let Some(text) = text else {
        fields.fault(key, "field.type", "must be a text");
        return None;
    };
    match sight::compile(&text, false) {
        Ok(_) => Some(text),
        Err(fault) => {
            let pointer = fields.pointer(key);
            fields.push(sight::fault_at(&pointer, &text, &fault));
            None
        }
    }
}

fn sharding(fields: &mut Fields<'_>, targets: &mut Vec<Target>) -> Option<Sharding> {
    let mut part = fields.part("sharding", &["enabled", "by", "key", "pool_ids"])?;
    let enabled = part.flag("enabled").unwrap_or(true);
    let by = part
        .word("by", ShardBy::of, ShardBy::WORDS)
        .unwrap_or(ShardBy::Recipient);
    let key = expression(&mut part, "key");
    if key.is_none() && !part.has("key") {
        part.fault("key", "field.required", "says by what of the work it is spread");
    }
    let items = part.list("pool_ids", limits::SHARDS_MAX).unwrap_or_default();
    if items.len() < 2 {
        let detail = format!("must be 2 to {} pools", limits::SHARDS_MAX);
        part.fault("pool_ids", "field.range", detail);
    }
    let at = part.pointer("pool_ids");
    let mut shards = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let pointer = format!("{at}/{index}");
        match item
            .as_str()
            .and_then(|text| text.parse::<RecipientPoolId>().ok())
        {
            None => part.push(Fault::new(pointer, "pool.not_found", "is no id of a pool")),
            Some(id) if shards.contains(&id) => {
                part.push(Fault::new(pointer, "field.value", "stands in the list before"));
            }
            Some(id) => {
                targets.push(Target::Other(pointer, id));
                shards.push(id);
            }
        }
    }
    enabled.then_some(Sharding { by, key, shards })
}

fn dedup(fields: &mut Fields<'_>) -> Option<Dedup> {
    let mut part = fields.part("dedup", &["enabled", "key", "window", "on_duplicate"])?;
    let enabled = part.flag("enabled").unwrap_or(true);
    let key = required(&mut part, "key", expression);
    let window = part.duration("window", SECOND_US, 720 * HOUR_US);
    let on = part.word("on_duplicate", OnDuplicate::of, OnDuplicate::WORDS);
    enabled.then_some(Dedup {
        key: key?,
        window_us: window.unwrap_or(24 * HOUR_US),
        on_duplicate: on.unwrap_or(OnDuplicate::ReturnExisting),
    })
}

fn flow_control(fields: &mut Fields<'_>) -> Option<FlowControl> {
    let mut part = fields.part("flow_control", &["rate", "concurrency", "on_limit"])?;
    let rate = part.part("rate", &["count", "per"]).and_then(|mut rate| {
        let count = required(&mut rate, "count", |rate, key| rate.whole32(key, 1, u32::MAX));
        let per = required(&mut rate, "per", |rate, key| {
            rate.duration(key, 1_000, LONGEST_US)
        });
        count.zip(per)
    });
    let concurrency = part.whole32("concurrency", 0, u32::MAX).unwrap_or(0);
    let on = part.word("on_limit", OnLimit::of, OnLimit::WORDS);
    let is_limit = rate.is_some() || concurrency > 0;
    is_limit.then_some(FlowControl {
        rate,
        concurrency,
        on_limit: on.unwrap_or(OnLimit::Queue),
    })
}

fn sla(fields: &mut Fields<'_>, targets: &mut Vec<Target>) -> Option<Sla> {
    const PARTS: [&str; 5] = [
        "enabled",
        "max_queue_time",
        "max_response_time",
        "escalation_pool_id",
        "alert_webhook_url",
    ];
    let mut part = fields.part("sla", &PARTS)?;
    let enabled = part.flag("enabled").unwrap_or(false);
    let max_queue_us = part.duration("max_queue_time", 0, LONGEST_US).unwrap_or(0);
    let max_response_us = part.duration("max_response_time", 0, LONGEST_US).unwrap_or(0);
    let escalation = part.id::<RecipientPoolId>("escalation_pool_id", "pool.not_found");
    targets.extend(escalation.map(|id| Target::Other(part.pointer("escalation_pool_id"), id)));
    let url = part.text("alert_webhook_url", limits::HTTP_URL_BYTES_MAX);
    enabled.then_some(Sla {
        max_queue_us,
        max_response_us,
        escalation,
        alert_webhook_url: url,
    })
}
