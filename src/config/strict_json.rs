//! JSON in which no key stands twice: the usual reader takes the last one and says nothing.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};

use super::fault::shown;

/// Begins what is said of a key that stands twice, and nothing that the parser says.
const TWICE: &str = "the key `";

/// Why and where a text is not such JSON.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotStrict {
    /// A sentence without a place.
    pub why: String,
    /// Counted from 1.
    pub line: usize,
    /// Counted from 1.
    pub column: usize,
    /// It is JSON, and a key stands twice in it.
    pub is_twice: bool,
}

/// Reads a text.
pub fn strict_json(text: &str) -> Result<Value, NotStrict> {
    let read: Result<Strict, serde_json::Error> = serde_json::from_str(text);
    read.map(|strict| strict.0).map_err(|error| {
        let text = error.to_string();
        let why = text
            .rsplit_once(" at line ")
            .map_or(text.as_str(), |(why, _)| why);
        NotStrict {
            is_twice: error.is_data() && why.starts_with(TWICE),
            why: why.to_owned(),
            line: error.line(),
            column: error.column().max(1),
        }
    })
}

struct Strict(Value);

impl<'de> Deserialize<'de> for Strict {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Strict, D::Error> {
        deserializer.deserialize_any(Reader).map(Strict)
    }
}

struct Reader;

impl<'de> Visitor<'de> for Reader {
    type Value = Value;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        while let Some(Strict(item)) = items.next_element()? {
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut pairs: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(key) = pairs.next_key::<String>()? {
            if map.contains_key(&key) {
                return Err(A::Error::custom(format!(
                    "{TWICE}{}` is given twice",
                    shown(&key)
                )));
            }
            let Strict(value) = pairs.next_value()?;
            map.insert(key, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stands_once_is_read_as_it_always_is() {
        let text = r#" {"a": [1, -2, 1.5, 18446744073709551615, null, true, "x\u00e9\ud83d\ude00", {"b": {}}], "c": []} "#;
        let usual: Value = serde_json::from_str(text).unwrap();
        assert_eq!(strict_json(text).unwrap(), usual);
    }

    #[test]
    fn a_key_that_stands_twice_has_a_place() {
        let found = strict_json("{\"a\": {\"b\": 1,\n  \"b\": 2}}").unwrap_err();
        assert!(found.is_twice);
        assert_eq!(
            (found.why.as_str(), found.line, found.column),
            ("the key `b` is given twice", 2, 5)
        );
        let found = strict_json("[1, 2").unwrap_err();
        assert!(!found.is_twice);
        assert_eq!((found.line, found.column), (1, 5));
        assert!(strict_json(&"[".repeat(100_000)).is_err(), "depth is bounded");
    }
}
