//! JSON that is kept byte for byte: checked once to be JSON, stored as text.

use serde::{Deserialize, Serialize};

/// A JSON document as text. Only [`JsonText::of`] and [`JsonText::parse`] make one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct JsonText(String);

/// `null`.
impl Default for JsonText {
    fn default() -> JsonText {
        JsonText("null".to_owned())
    }
}

impl JsonText {
    /// The JSON of `value`.
    pub fn of<T: Serialize>(value: &T) -> Result<JsonText, serde_json::Error> {
        serde_json::to_string(value).map(JsonText)
    }

    /// The same, where about so many bytes are expected: a long text is not moved again and again while it grows.
    pub fn sized<T: Serialize>(value: &T, about: usize) -> Result<JsonText, serde_json::Error> {
        let mut bytes = Vec::with_capacity(about);
        serde_json::to_writer(&mut bytes, value)?;
        Ok(JsonText(String::from_utf8(bytes).expect("JSON is UTF-8")))
    }

    /// Checks that `text` is one JSON document.
    pub fn parse(text: &str) -> Result<JsonText, serde_json::Error> {
        serde_json::from_str::<&serde_json::value::RawValue>(text)?;
        Ok(JsonText(text.to_owned()))
    }

    /// Reads a typed value out of it.
    pub fn read<'a, T: Deserialize<'a>>(&'a self) -> Result<T, serde_json::Error> {
        serde_json::from_str(&self.0)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_kept_as_written() {
        let text = "{\"b\": 1.0,  \"a\": [1e3]}";
        assert_eq!(JsonText::parse(text).unwrap().as_str(), text);
        assert!(JsonText::parse("{").is_err());
        assert!(JsonText::parse("1 2").is_err());
    }
}
