//! Reading the API's answers by name, without insisting on more than what is shown.
//!
//! A newer or older daemon may say more or less: what is absent is shown as absent. Names are given in `snake_case`; the
//! seed's routes use `camelCase`, which is tried too.

use serde_json::Value;

use crate::words::time::{Millis, parse_instant};

fn camel(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    let mut upper = false;
    for letter in name.chars() {
        if letter == '_' {
            upper = true;
        } else if upper {
            text.push(letter.to_ascii_uppercase());
            upper = false;
        } else {
            text.push(letter);
        }
    }
    text
}

/// The first of these members that is there and not null. A dot leads into an object: `trigger.type`.
pub(super) fn member<'a>(value: &'a Value, names: &[&str]) -> Option<&'a Value> {
    names
        .iter()
        .filter_map(|name| {
            name.split('.').try_fold(value, |inside, part| {
                inside.get(part).or_else(|| inside.get(camel(part)))
            })
        })
        .find(|found| !found.is_null())
}

/// A text, number or truth as text.
pub(super) fn text(value: &Value, names: &[&str]) -> Option<String> {
    let plain = |name: &&str| match member(value, &[name])? {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        Value::Bool(truth) => Some(truth.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    };
    names.iter().find_map(plain)
}

/// A whole number, also written as text.
pub(super) fn number(value: &Value, names: &[&str]) -> Option<i64> {
    let found = member(value, names)?;
    found.as_i64().or_else(|| found.as_str()?.parse().ok())
}

/// True only when it says so.
pub(super) fn truth(value: &Value, names: &[&str]) -> bool {
    member(value, names).and_then(Value::as_bool) == Some(true)
}

/// An instant: RFC 3339, or milliseconds since the epoch.
pub(super) fn instant(value: &Value, names: &[&str]) -> Option<Millis> {
    let found = member(value, names)?;
    found
        .as_i64()
        .map(Millis)
        .or_else(|| parse_instant(found.as_str()?))
}

/// The items of an array; nothing when it is absent.
pub(super) fn list<'a>(value: &'a Value, names: &[&str]) -> &'a [Value] {
    member(value, names)
        .and_then(Value::as_array)
        .map_or(&[], Vec::as_slice)
}

/// What stands in the envelope `{"data": …}`, or the body itself.
pub(super) fn data(body: &Value) -> &Value {
    body.get("data").unwrap_or(body)
}

/// The items of a list answer, enveloped or plain.
pub(super) fn items(body: &Value) -> &[Value] {
    data(body).as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn both_spellings_are_found() {
        let value = json!({"waitingReason": "full", "queue_id": 7, "trigger": {"type": "manual"}, "a": null, "b": true});
        assert_eq!(text(&value, &["waiting_reason"]), Some("full".to_owned()));
        assert_eq!(text(&value, &["queue_id"]), Some("7".to_owned()));
        assert_eq!(
            text(&value, &["trigger", "trigger.type"]),
            Some("manual".to_owned())
        );
        assert_eq!(text(&value, &["a", "b"]), Some("true".to_owned()));
        assert_eq!(text(&value, &["a", "c.d"]), None);
        assert!(truth(&value, &["b"]) && !truth(&value, &["a"]));
    }

    #[test]
    fn instants_come_as_text_or_number() {
        let value = json!({"at": "1970-01-01T00:00:01Z", "ended_at": 5});
        assert_eq!(instant(&value, &["at"]), Some(Millis(1_000)));
        assert_eq!(instant(&value, &["ended_at"]), Some(Millis(5)));
    }

    #[test]
    fn envelopes_are_opened() {
        assert_eq!(items(&json!({"data": [1, 2]})).len(), 2);
        assert_eq!(items(&json!([1])).len(), 1);
        assert_eq!(items(&json!({"data": {}})).len(), 0);
    }
}
