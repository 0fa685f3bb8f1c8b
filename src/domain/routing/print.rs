//! Objects as they are answered: what was set of them, and what ductor writes. With the defaults where they are asked for.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::live::Live;
use super::objects::{Recipient, RecipientPool};
use crate::domain::routing::read::Stamp;
use crate::words::time::Micros;

/// What is shown of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    /// The fields that were set.
    Set,
    /// With the defaults of all others.
    Effective,
}

/// What ductor writes of a recipient pool.
pub const OUTPUT_OF_RECIPIENT_POOL: [&str; 10] = [
    "/id",
    "/recipient_ids",
    "/rule_ids",
    "/record_version",
    "/created_at",
    "/updated_at",
    "/config/kill_switch",
    "/config/kill_switch_reason",
    "/config/kill_switch_at",
    "/config/kill_switch_by",
];
/// What ductor writes of a recipient.
pub const OUTPUT_OF_RECIPIENT: [&str; 7] = [
    "/id",
    "/record_version",
    "/created_at",
    "/updated_at",
    "/capacity/current",
    "/capacity/daily_count",
    "/capacity/daily_reset_at",
];
/// What ductor writes of every other object.
pub const OUTPUT_OF_OTHERS: [&str; 4] = ["/id", "/record_version", "/created_at", "/updated_at"];

/// The newest word about a kill-switch, also when it is off again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switched {
    /// It is on: nothing is routed.
    pub engaged: bool,
    /// Why.
    pub reason: String,
    /// When.
    pub at: Micros,
    /// By whom.
    pub by: String,
}

/// A recipient pool.
pub fn recipient_pool(
    declared: &RecipientPool,
    set: &Map<String, Value>,
    switched: Option<&Switched>,
    recipient_ids: &[String],
    rule_ids: &[String],
    view: View,
) -> Value {
    let mut shown = match view {
        View::Set => Map::new(),
        View::Effective => defaults_of_recipient_pool(set),
    };
    overlay(&mut shown, set);
    if let Some(switched) = switched {
        let config = shown.entry("config").or_insert_with(|| json!({}));
        config["kill_switch"] = Value::from(switched.engaged);
        config["kill_switch_reason"] = Value::from(switched.reason.as_str());
        config["kill_switch_at"] = Value::from(switched.at.to_string());
        config["kill_switch_by"] = Value::from(switched.by.as_str());
    }
    shown.insert("id".to_owned(), Value::from(declared.id.to_string()));
    shown.insert("recipient_ids".to_owned(), Value::from(recipient_ids));
    shown.insert("rule_ids".to_owned(), Value::from(rule_ids));
    stamp(
        &mut shown,
        Stamp {
            record_version: declared.record_version,
            created_at: declared.created_at,
            updated_at: declared.updated_at,
        },
    );
    Value::from(shown)
}

/// A recipient.
pub fn recipient(recipient: &Recipient, set: &Map<String, Value>, live: &Live, view: View) -> Value {
    let mut shown = match view {
        View::Set => Map::new(),
        View::Effective => object(json!({
            "type": "", "status": "STATUS_ACTIVE", "weight": 1.0, "attributes": {}, "tags": [], "timezone": "UTC",
            "metadata": {}, "capacity": {"max_concurrent": 10, "daily_limit": 0},
        })),
    };
    overlay(&mut shown, set);
    let capacity = shown.entry("capacity").or_insert_with(|| json!({}));
    capacity["current"] = Value::from(live.current);
    capacity["daily_count"] = Value::from(live.daily_count);
    if let Some(at) = live.daily_reset_at {
        capacity["daily_reset_at"] = Value::from(at.to_string());
    }
    let ids: Vec<String> = recipient.members_of.iter().map(ToString::to_string).collect();
    shown.insert("id".to_owned(), Value::from(recipient.id.to_string()));
    shown.insert(
        "pool_id".to_owned(),
        ids.first().cloned().map_or(Value::Null, Value::from),
    );
    shown.insert("pool_ids".to_owned(), Value::from(ids));
    shown.insert("state".to_owned(), Value::from(live.state.word()));
    stamp(
        &mut shown,
        Stamp {
            record_version: recipient.record_version,
            created_at: recipient.created_at,
            updated_at: recipient.updated_at,
        },
    );
    Value::from(shown)
}

/// Any other object; what has no id has its key among its fields.
pub fn other(id: &str, stored: Stamp, set: &Map<String, Value>, defaults: Value, view: View) -> Value {
    let mut shown = match view {
        View::Set => Map::new(),
        View::Effective => object(defaults),
    };
    overlay(&mut shown, set);
    if !id.is_empty() {
        shown.insert("id".to_owned(), Value::from(id));
    }
    stamp(&mut shown, stored);
    Value::from(shown)
}

/// The defaults of a rule.
pub fn rule_defaults() -> Value {
    json!({"description": "", "priority": 100, "enabled": true, "continue": false})
}

fn stamp(shown: &mut Map<String, Value>, stamp: Stamp) {
    shown.insert("record_version".to_owned(), Value::from(stamp.record_version));
    shown.insert("created_at".to_owned(), Value::from(stamp.created_at.to_string()));
    shown.insert("updated_at".to_owned(), Value::from(stamp.updated_at.to_string()));
}

fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// The defaults of what is not set; parts without a default of their own have theirs only where they are set.
fn defaults_of_recipient_pool(set: &Map<String, Value>) -> Map<String, Value> {
    let mut defaults = json!({
        "description": "", "status": "STATUS_ACTIVE", "metadata": {},
        "config": {
            "strategy_pipelines": {}, "strategy_options": {}, "routing_mode": "auto", "pipeline_mode": "",
            "default_timeout": "0s", "max_routing_depth": 3, "queue_ttl_seconds": 3600, "fallback": "queue",
            "catchall_delay": "0s", "allow_over_capacity": false, "over_capacity_budget": 0.0,
            "kill_switch": false, "busy_policy": "exclude", "exploration_epsilon": 0.0, "age_step": "0s",
            "explain": "first",
        },
    });
    let parts = json!({
        "sharding": {"enabled": true, "by": "recipient"},
        "dedup": {"enabled": true, "window": "24h", "on_duplicate": "return_existing"},
        "flow_control": {"concurrency": 0, "on_limit": "queue"},
        "sla": {"enabled": false, "max_queue_time": "0s", "max_response_time": "0s"},
        "claim_budget": {"max_open": 0},
    });
    let config = set.get("config").and_then(Value::as_object);
    for (key, value) in object(parts) {
        if config.is_some_and(|config| config.contains_key(&key)) {
            defaults["config"][&key] = value;
        }
    }
    object(defaults)
}

/// Puts what is set over defaults, objects key by key.
fn overlay(shown: &mut Map<String, Value>, set: &Map<String, Value>) {
    for (key, value) in set {
        match (shown.get_mut(key), value) {
            (Some(Value::Object(inside)), Value::Object(own)) => overlay(inside, own),
            _ => {
                shown.insert(key.clone(), value.clone());
            }
        }
    }
}
