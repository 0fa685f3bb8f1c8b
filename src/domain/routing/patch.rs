//! PATCH: only what is sent changes. Objects merge key by key, lists and wrapped values are replaced, `null` restores the
//! default. And what is written by ductor alone: it may be given only as it is.

use serde_json::{Map, Value};

use super::fault::Fault;

/// Which fields of an object are merged, by the place in it; all others are replaced whole.
pub type Merging = &'static [&'static str];

/// Of a recipient pool.
pub const OF_RECIPIENT_POOL: Merging = &[
    "/config",
    "/config/strategy_options",
    "/config/strategy_options/*",
    "/config/strategy_pipelines",
    "/config/sharding",
    "/config/dedup",
    "/config/flow_control",
    "/config/flow_control/rate",
    "/config/sla",
    "/config/claim_budget",
    "/metadata",
];
/// Of a recipient.
pub const OF_RECIPIENT: Merging = &["/capacity", "/attributes", "/metadata", "/location", "/schedule"];
/// Of a rule.
pub const OF_RULE: Merging = &["/action"];

/// Puts what is sent over what is set.
pub fn merge(set: &mut Map<String, Value>, given: Map<String, Value>, merging: Merging) {
    merge_at(set, given, merging, &mut Vec::new());
}

fn merge_at(set: &mut Map<String, Value>, given: Map<String, Value>, merging: Merging, at: &mut Vec<String>) {
    for (key, value) in given {
        at.push(key.clone());
        match (value, set.get_mut(&key)) {
            (Value::Null, _) => {
                set.remove(&key);
            }
            (Value::Object(inside), Some(Value::Object(own))) if is_merged(at, merging) => {
                merge_at(own, inside, merging, at);
            }
            (value, _) => {
                set.insert(key, value);
            }
        }
        at.pop();
    }
}

fn is_merged(at: &[String], merging: Merging) -> bool {
    merging.iter().any(|place| {
        let mut parts = place.split('/').skip(1);
        let fits = at
            .iter()
            .all(|key| parts.next().is_some_and(|part| part == "*" || part == key));
        fits && parts.next().is_none()
    })
}

/// Takes fields that only ductor writes out of a request. One that differs from what is stored (`shown`, as it is answered with
/// its defaults) is a fault.
pub fn take_output_only(given: &mut Map<String, Value>, shown: &Value, places: &[&str]) -> Vec<Fault> {
    let mut faults = Vec::new();
    for place in places {
        let mut keys: Vec<&str> = place.split('/').skip(1).collect();
        let Some(last) = keys.pop() else {
            continue;
        };
        let mut inside = Some(&mut *given);
        for key in keys {
            inside = inside
                .and_then(|map| map.get_mut(key))
                .and_then(Value::as_object_mut);
        }
        let Some(value) = inside.and_then(|map| map.remove(last)) else {
            continue;
        };
        let stored = shown.pointer(place).unwrap_or(&Value::Null);
        if !same(&value, stored) {
            faults.push(Fault::new(
                *place,
                "field.output_only",
                "is written by ductor alone",
            ));
        }
    }
    faults
}

/// Equal, where `2` and `2.0` are.
pub fn same(one: &Value, other: &Value) -> bool {
    match (one, other) {
        (Value::Number(one), Value::Number(other)) => one == other || one.as_f64() == other.as_f64(),
        (Value::Array(one), Value::Array(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| same(one, other))
        }
        (Value::Object(one), Value::Object(other)) => same_objects(one, other),
        (one, other) => one == other,
    }
}

/// The same of objects.
pub fn same_objects(one: &Map<String, Value>, other: &Map<String, Value>) -> bool {
    one.len() == other.len()
        && one
            .iter()
            .all(|(key, value)| other.get(key).is_some_and(|other| same(value, other)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn merged(set: Value, given: Value, merging: Merging) -> Value {
        let (Value::Object(mut set), Value::Object(given)) = (set, given) else {
            panic!("objects")
        };
        merge(&mut set, given, merging);
        Value::from(set)
    }

    #[test]
    fn objects_merge_and_everything_else_is_replaced() {
        let set = json!({"name": "a", "config": {"fallback": "drop", "sla": {"enabled": true},
            "strategy_options": {"sticky": {"ttl": "1h", "key": "k"}},
            "strategy_pipelines": {"p": {"stages": [1], "fallback": []}}}});
        let given = json!({"config": {"default_timeout": "45s", "sla": {"max_queue_time": "5m"},
            "strategy_options": {"sticky": {"ttl": null}, "ucb1": {"c": 1}},
            "strategy_pipelines": {"p": {"stages": [2]}}}});
        let expected = json!({"name": "a", "config": {"fallback": "drop", "default_timeout": "45s",
            "sla": {"enabled": true, "max_queue_time": "5m"},
            "strategy_options": {"sticky": {"key": "k"}, "ucb1": {"c": 1}},
            "strategy_pipelines": {"p": {"stages": [2]}}}});
        assert_eq!(merged(set, given, OF_RECIPIENT_POOL), expected);
        let set =
            json!({"attributes": {"a": {"string_value": "x"}, "b": {"bool_value": true}}, "tags": ["x"]});
        let given = json!({"attributes": {"a": {"number_value": 1}, "b": null}, "tags": ["y"]});
        let expected = json!({"attributes": {"a": {"number_value": 1}}, "tags": ["y"]});
        assert_eq!(merged(set, given, OF_RECIPIENT), expected);
    }

    #[test]
    fn what_ductor_writes_may_be_sent_as_it_is() {
        let shown = json!({"record_version": 4, "config": {"kill_switch": false}});
        let check = |given: Value, pointers: &[&str]| {
            let Value::Object(mut given) = given else {
                panic!("an object")
            };
            let places = ["/id", "/record_version", "/config/kill_switch"];
            let faults = take_output_only(&mut given, &shown, &places);
            let found: Vec<&str> = faults.iter().map(|fault| fault.pointer.as_str()).collect();
            assert_eq!(found, pointers);
            assert!(faults.iter().all(|fault| fault.code == "field.output_only"));
            assert!(!given.contains_key("record_version"));
        };
        check(
            json!({"record_version": 4, "config": {"kill_switch": false}}),
            &[],
        );
        check(json!({"record_version": 4.0, "name": "n"}), &[]);
        check(
            json!({"id": "x", "record_version": 3, "config": {"kill_switch": true}}),
            &["/id", "/record_version", "/config/kill_switch"],
        );
    }
}
