//! The one text of JSON for snapshots and digests: keys in order, no white space, numbers as they are. A number with a
//! fraction stays one (`3.0`): expressions tell it from a whole one.

use serde_json::Value;

use crate::words::ids;

/// The text. Objects of JSON keep their members in the order of their names, here and in `serde_json`, unless its feature
/// `preserve_order` is asked for; the test below tells when somebody did.
pub fn text(value: &Value) -> String {
    value.to_string()
}

/// SHA-256 over it, in hex digits.
pub fn sha256(value: &Value) -> String {
    ids::sha256_hex(text(value).as_bytes())
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
