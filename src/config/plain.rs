//! A JSON or YAML file that is no configuration, as a JSON value in which every part knows its place.
//!
//! JSON is read as JSON, so that what a file says here is what it says everywhere; its places come from the YAML reader,
//! which reads most of it. YAML scalars are what the core schema says: `null`, `true`, whole and other numbers, else text.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Number, Value as Json};

use super::fault::{Fault, Place, shown};
use super::quantity;
use super::source::{Form, Source, check_length};
use super::strict_json::{NotStrict, strict_json};
use super::tree::{self, Budget, Node, Value};
use crate::words::limits;

/// Of a bundle, which comes from anybody who may write one.
const BUNDLE: Budget = Budget {
    bytes: limits::BUNDLE_BYTES_MAX,
    nodes: limits::BUNDLE_NODES_MAX,
    by_aliases: limits::BUNDLE_ALIASED_NODES_MAX,
};

/// A value with the places of its parts.
#[derive(Clone, Debug)]
pub struct PlainDocument {
    pub value: Json,
    /// The file was JSON.
    pub is_json: bool,
    places: BTreeMap<String, Place>,
}

impl PlainDocument {
    /// The place of the part that a JSON pointer leads to, or of what is nearest around it.
    pub fn place(&self, pointer: &str) -> Option<&Place> {
        let mut pointer = pointer;
        loop {
            match self.places.get(pointer) {
                Some(place) => return Some(place),
                None => pointer = &pointer[..pointer.rfind('/')?],
            }
        }
    }
}

/// Reads a file's text; the name is what faults call it.
pub fn read_plain(name: &str, text: &str) -> Result<PlainDocument, Box<Fault>> {
    read_within(name, text, tree::CONFIGURATION)
}

/// The same for the document of a bundle, which may be larger and has fewer aliases.
pub fn read_bundle(name: &str, text: &str) -> Result<PlainDocument, Box<Fault>> {
    read_within(name, text, BUNDLE)
}

fn read_within(name: &str, text: &str, budget: Budget) -> Result<PlainDocument, Box<Fault>> {
    let source = Source::in_memory(name, text, Form::Yaml);
    check_length(&Place::whole(name), text.len(), budget.bytes)?;
    let tree = tree::parse_within(&source, budget);
    let mut places = BTreeMap::new();
    match strict_json(text) {
        Ok(value) => {
            if let Ok(root) = &tree {
                note(root, String::new(), &mut places);
            }
            return Ok(PlainDocument {
                value,
                is_json: true,
                places,
            });
        }
        Err(error) if error.is_twice || is_called_json(name) => return Err(not_json(&source.name, &error)),
        Err(_) => {}
    }
    let root = tree?;
    let value = value_of(&root)?;
    note(&root, String::new(), &mut places);
    Ok(PlainDocument {
        value,
        is_json: false,
        places,
    })
}

fn is_called_json(name: &str) -> bool {
    let extension = Path::new(name).extension();
    extension.is_some_and(|extension| extension.eq_ignore_ascii_case("json"))
}

fn not_json(name: &Arc<str>, error: &NotStrict) -> Box<Fault> {
    let at = Place {
        line: error.line,
        column: error.column,
        ..Place::whole(name)
    };
    if error.is_twice {
        return Fault::error("config/duplicate-key", &at, error.why.clone()).into();
    }
    let why = &error.why;
    Fault::error("config/syntax", &at, format!("the file is not JSON: {why}")).into()
}

/// Keys are pointed at where they stand, items at their value.
fn note(node: &Node, pointer: String, places: &mut BTreeMap<String, Place>) {
    match &node.value {
        Value::Scalar { .. } => {}
        Value::Sequence(items) => {
            for (index, item) in items.iter().enumerate() {
                let inner = format!("{pointer}/{index}");
                places.insert(inner.clone(), item.at.clone());
                note(item, inner, places);
            }
        }
        Value::Mapping(pairs) => {
            for (key, value) in pairs {
                let Some((word, _)) = key.scalar() else { continue };
                let inner = format!("{pointer}/{}", word.replace('~', "~0").replace('/', "~1"));
                places.insert(inner.clone(), key.at.clone());
                note(value, inner, places);
            }
        }
    }
    if pointer.is_empty() {
        places.insert(pointer, node.at.clone());
    }
}

fn value_of(node: &Node) -> Result<Json, Box<Fault>> {
    match &node.value {
        Value::Scalar { .. } if node.is_null() => Ok(Json::Null),
        Value::Scalar { text, plain: false } => Ok(Json::String(text.clone())),
        Value::Scalar { text, plain: true } => Ok(scalar(text)),
        Value::Sequence(items) => items.iter().map(|item| value_of(item)).collect(),
        Value::Mapping(pairs) => {
            let mut fields = Map::new();
            for (key, value) in pairs {
                let Some((word, plain)) = key.scalar() else {
                    return Err(Fault::error("config/syntax", &key.at, "a key must be a text").into());
                };
                if plain && word == "<<" {
                    let message =
                        "`<<` has no meaning here; write the keys out, or use an alias for the whole value";
                    return Err(Fault::error("config/syntax", &key.at, message).into());
                }
                if fields.insert(word.to_owned(), value_of(value)?).is_some() {
                    let message = format!("the key `{}` is given twice", shown(word));
                    return Err(Fault::error("config/duplicate-key", &key.at, message).into());
                }
            }
            Ok(Json::Object(fields))
        }
    }
}

/// What an unquoted word is.
fn scalar(text: &str) -> Json {
    match text {
        "true" | "True" | "TRUE" => return Json::Bool(true),
        "false" | "False" | "FALSE" => return Json::Bool(false),
        _ => {}
    }
    if let Ok(whole) = text.parse::<i64>()
        && !text.starts_with('+')
    {
        return Json::from(whole);
    }
    if let Ok(whole) = text.parse::<u64>()
        && !text.starts_with('+')
    {
        return Json::from(whole);
    }
    let number = quantity::number(text).and_then(Number::from_f64);
    number.map_or_else(|| Json::String(text.to_owned()), Json::Number)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn yaml_and_json_give_the_same_value() {
        let yaml = "\
family_slug: hello
steps:
  - ref: greet   # a comment
    args: {duration: 2s, n: 3, big: 1e3, off: no, quoted: \"7\", nothing: , yes: true}
  - &again [a, 0x1f, -1, 1.5]
more: *again
";
        let expected = json!({"family_slug": "hello", "more": ["a", "0x1f", -1, 1.5], "steps": [
            {"ref": "greet", "args": {"duration": "2s", "n": 3, "big": 1000.0, "off": "no", "quoted": "7",
                "nothing": null, "yes": true}},
            ["a", "0x1f", -1, 1.5]]});
        let read = read_plain("a.yaml", yaml).unwrap();
        assert_eq!(read.value, expected);
        let text = serde_json::to_string_pretty(&expected).unwrap();
        let json = read_plain("a.json", &text).unwrap();
        assert_eq!(
            (json.value.clone(), json.is_json, read.is_json),
            (expected, true, false)
        );
        let place = |document: &PlainDocument, pointer: &str| document.place(pointer).unwrap().to_string();
        assert_eq!(place(&read, "/steps/0/args/n"), "a.yaml:4:26");
        assert_eq!(place(&read, "/steps/0/args/missing/x"), "a.yaml:4:5");
        assert_eq!(place(&read, "/steps/1/3"), "a.yaml:5:26");
        let line = text.lines().position(|line| line.contains("\"ref\"")).unwrap() + 1;
        assert_eq!(place(&json, "/steps/0/ref"), format!("a.json:{line}:7"));
        assert_eq!(place(&json, ""), "a.json:1:1");
    }

    #[test]
    fn what_cannot_be_read_has_a_place() {
        let fault = |name: &str, text: &str| read_plain(name, text).unwrap_err().to_string();
        assert_eq!(
            fault("a.json", "{\"a\": 1,\n }"),
            "a.json:2:2: error[config/syntax]: the file is not JSON: trailing comma"
        );
        assert_eq!(
            fault("a.yaml", "a: 1\na: 2\n"),
            "a.yaml:2:1: error[config/duplicate-key]: the key `a` is given twice"
        );
        assert!(fault("a.yaml", "<<: {a: 1}\n").contains("`<<` has no meaning here"));
        assert!(fault("a.yaml", "[a: {b: 1}: 2\n").contains("config/syntax"));
        assert!(fault("a.yaml", "a: *b\n").contains("config/"));
        // JSON says what it says once, whatever its file is called.
        for name in ["a.json", "a.yaml"] {
            assert_eq!(
                fault(name, "{\"b\": [{\n \"a\": 1, \"a\": 2}]}"),
                format!("{name}:2:12: error[config/duplicate-key]: the key `a` is given twice")
            );
        }
    }

    #[test]
    fn a_bundle_has_limits_of_its_own() {
        let aliases = |count: usize| format!("a: &a [1, 2, 3]\nb: [{}]\n", vec!["*a"; count].join(", "));
        read_bundle("b.yaml", &aliases(250)).unwrap();
        let fault = read_bundle("b.yaml", &aliases(251)).unwrap_err().to_string();
        let column = 5 + 250 * 4;
        assert_eq!(
            fault,
            format!(
                "b.yaml:2:{column}: error[config/too-large]: values that stand here by aliases are more than 1000"
            )
        );
        let bomb = "a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b, *b, *b, *b, *b, *b, *b, *b, *b]\nd: [*c, *c, *c, *c, *c, *c, *c, *c, *c, *c, *c, *c, *c, *c]\n";
        let fault = read_bundle("b.yaml", bomb).unwrap_err();
        assert_eq!((fault.code, fault.at.line), ("config/too-large", 4));
        let long = |bytes: usize| format!("a: '{}'\n", "x".repeat(bytes - 6));
        read_bundle("b.yaml", &long(limits::BUNDLE_BYTES_MAX)).unwrap();
        let fault = read_bundle("b.yaml", &long(limits::BUNDLE_BYTES_MAX + 1)).unwrap_err();
        assert_eq!(
            fault.to_string(),
            "b.yaml: error[config/too-large]: a document may have at most 16777216 bytes (16 MiB)"
        );
        let json = serde_json::to_string(&"x".repeat(limits::BUNDLE_BYTES_MAX)).unwrap();
        assert_eq!(read_bundle("b.json", &json).unwrap_err().code, "config/too-large");
        let fault = |text: &str| read_bundle("b.yaml", text).unwrap_err().to_string();
        assert!(fault("a:\n  b: 1\n  c: 2\n  b: 3\n").starts_with("b.yaml:4:3: error[config/duplicate-key]"));
    }
}
