//! The one text of JSON for snapshots and digests: keys in order, no white space, numbers as they are. A number with a
//! fraction stays one (`3.0`): expressions tell it from a whole one.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use serde_json::Value;

use crate::words::ids;

/// The text.
pub fn text(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// SHA-256 over it, in hex digits.
pub fn sha256(value: &Value) -> String {
    ids::sha256_hex(text(value).as_bytes())
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Array(items) => {
            out.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut sorted: Vec<(&String, &Value)> = fields.iter().collect();
            sorted.sort_unstable_by_key(|(name, _)| *name);
            out.push('{');
            for (at, (name, field)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    out.push(',');
                }
                out.push_str(&Value::from(name.as_str()).to_string());
                out.push(':');
                write(field, out);
            }
            out.push('}');
        }
        scalar => out.push_str(&scalar.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_in_order_and_fractions_stay() {
        let value = serde_json::json!({"b": [1, 1.0, null], "a": {"y": "\"", "x": -0.5}});
        assert_eq!(text(&value), r#"{"a":{"x":-0.5,"y":"\""},"b":[1,1.0,null]}"#);
    }
}
