//! Ids of other objects as names, and back: `overflow_pool_id` is `overflow_pool` in a bundle. What has no such name stays as it
//! is written.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::words::ids::RecipientPoolId;

/// Texts in place of others: names by ids, or ids by names.
pub(super) type Dictionary = BTreeMap<String, String>;

/// Fields of a recipient pool: where, the key of the object, the key in a bundle.
const OF_RECIPIENT_POOL: [(&[&str], &str, &str); 5] = [
    (&[], "parent_pool_id", "parent_pool"),
    (&["config"], "overflow_pool_id", "overflow_pool"),
    (&["config"], "catchall_pool_id", "catchall_pool"),
    (&["config"], CLAIM_QUEUE_ID, "claim_queue"),
    (&["config", "sla"], "escalation_pool_id", "escalation_pool"),
];
const CLAIM_QUEUE_ID: &str = "claim_queue_id";
const OF_RULE: [(&[&str], &str, &str); 2] = [(&[], "pool_id", "pool"), (&["action"], "pool_id", "pool")];
const SHARDS: (&[&str], &str, &str) = (&["config", "sharding"], "pool_ids", "pools");

fn inside<'m>(map: &'m mut Map<String, Value>, path: &[&str]) -> Option<&'m mut Map<String, Value>> {
    path.iter()
        .try_fold(map, |map, key| map.get_mut(*key)?.as_object_mut())
}

/// Renames a key and translates its value, which may be a list. Where both keys are written the one of the bundle stays, and is
/// refused by the reader of the object.
fn translate(map: &mut Map<String, Value>, path: &[&str], (from, to): (&str, &str), table: &Dictionary) {
    let Some(map) = inside(map, path).filter(|map| !map.contains_key(to)) else {
        return;
    };
    if let Some(value) = map.remove(from) {
        map.insert(to.to_owned(), translated(value, table));
    }
}

fn translated(value: Value, table: &Dictionary) -> Value {
    match value {
        Value::String(text) => Value::from(table.get(&text).cloned().unwrap_or(text)),
        Value::Array(items) => items.into_iter().map(|item| translated(item, table)).collect(),
        other @ (Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_)) => other,
    }
}

/// A recipient pool with names.
pub(super) fn of_recipient_pool(set: &Map<String, Value>, names: &Dictionary) -> Value {
    let mut shown = set.clone();
    for (path, id, name) in OF_RECIPIENT_POOL.into_iter().chain([SHARDS]) {
        translate(&mut shown, path, (id, name), names);
    }
    Value::from(shown)
}

/// A rule with names.
pub(super) fn of_rule(set: &Map<String, Value>, names: &Dictionary) -> Value {
    let mut shown = set.clone();
    for (path, id, name) in OF_RULE {
        translate(&mut shown, path, (id, name), names);
    }
    Value::from(shown)
}

/// A recipient with the names of where it is a member.
pub(super) fn of_recipient(
    set: &Map<String, Value>,
    members_of: &[RecipientPoolId],
    names: &Dictionary,
) -> Value {
    let mut shown = set.clone();
    let called = |id: &RecipientPoolId| {
        let id = id.to_string();
        names.get(&id).cloned().unwrap_or(id)
    };
    let all: Vec<String> = members_of.iter().map(called).collect();
    shown.insert("pools".to_owned(), Value::from(all));
    Value::from(shown)
}

/// A recipient pool with ids.
pub(super) fn to_recipient_pool(
    written: &Map<String, Value>,
    recipient_pools: &Dictionary,
    queues: &Dictionary,
) -> Map<String, Value> {
    let mut set = written.clone();
    for (path, id, name) in OF_RECIPIENT_POOL.into_iter().chain([SHARDS]) {
        let table = if id == CLAIM_QUEUE_ID {
            queues
        } else {
            recipient_pools
        };
        translate(&mut set, path, (name, id), table);
    }
    set
}

/// A rule with ids.
pub(super) fn to_rule(written: &Map<String, Value>, recipient_pools: &Dictionary) -> Map<String, Value> {
    let mut set = written.clone();
    for (path, id, name) in OF_RULE {
        translate(&mut set, path, (name, id), recipient_pools);
    }
    set
}

/// The place of a fault as the bundle writes it.
pub(super) fn pointer(pointer: &str) -> String {
    let mut shown = pointer.to_owned();
    for (_, id, name) in [SHARDS].into_iter().chain(OF_RECIPIENT_POOL).chain(OF_RULE) {
        shown = shown.replace(&format!("/{id}"), &format!("/{name}"));
    }
    shown
}

/// Whether pipelines or options of a recipient pool name a trait.
pub fn names_trait(value: &Value, key: &str) -> bool {
    match value {
        Value::Array(items) => items.iter().any(|item| names_trait(item, key)),
        Value::Object(fields) => {
            let named = fields.get("trait").and_then(Value::as_str) == Some(key);
            let listed = fields.get("traits").is_some_and(|traits| match traits {
                Value::Object(map) => map.contains_key(key),
                Value::Array(list) => list.iter().any(|one| one.as_str() == Some(key)),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
            });
            named || listed || fields.values().any(|value| names_trait(value, key))
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => false,
    }
}
