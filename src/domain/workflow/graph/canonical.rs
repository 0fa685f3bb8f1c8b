//! The one text of a JSON value: keys in order, no white space, whole numbers without a fraction. What is the same document
//! for a reader has the same digest.

use std::fmt::Write;

use serde_json::{Number, Value};

use crate::words::ids;

/// Whole numbers up to here are exact as a floating-point number too.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;

/// The text.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write(value, &mut out);
    out
}

/// SHA-256 over it, in hex digits.
pub fn sha256(value: &Value) -> String {
    ids::sha256_hex(canonical(value).as_bytes())
}

fn write(value: &Value, out: &mut String) {
    match value {
        Value::Number(number) => write_number(number, out),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out);
            }
            out.push(']');
        }
        Value::Object(fields) => {
            let mut names: Vec<&String> = fields.keys().collect();
            names.sort_unstable();
            out.push('{');
            for (index, name) in names.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write_plain(&Value::from(name.as_str()), out);
                out.push(':');
                write(&fields[name], out);
            }
            out.push('}');
        }
        Value::Null | Value::Bool(_) | Value::String(_) => write_plain(value, out),
    }
}

fn write_plain(value: &Value, out: &mut String) {
    write!(out, "{value}").expect("a text takes what is written");
}

fn write_number(number: &Number, out: &mut String) {
    let whole = number
        .as_f64()
        .filter(|whole| whole.fract() == 0.0 && whole.abs() < EXACT_MAX);
    match whole {
        Some(whole) if number.is_f64() => {
            #[expect(clippy::cast_possible_truncation, reason = "whole, and exact up to 2^53")]
            let whole = whole as i64;
            write_plain(&Value::from(whole), out);
        }
        Some(_) | None => write_plain(&Value::Number(number.clone()), out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_document_has_the_same_digest() {
        let read = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let one = read(r#"{"b": [1.0, -0.0, 2.5, "é\n"], "a": {"y": null, "x": true}}"#);
        let other = read(r#"{ "a":{"x":true,"y":null},"b":[1,0,2.50,"\u00e9\n"]}"#);
        assert_eq!(
            canonical(&one),
            r#"{"a":{"x":true,"y":null},"b":[1,0,2.5,"é\n"]}"#
        );
        assert_eq!(sha256(&one), sha256(&other));
        assert_ne!(sha256(&one), sha256(&read("{}")));
        assert_eq!(
            canonical(&read("[18446744073709551615, 1e300]")),
            "[18446744073709551615,1e+300]"
        );
    }
}
