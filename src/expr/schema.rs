//! JSON Schema for the inputs of workflows and the answers to checkpoints.
//!
//! Nothing is fetched: a reference goes to a place in the same document. Patterns run in linear time. The validator has no
//! budget, so a schema is bounded before it is compiled, and what a check will visit is counted before it begins. What is
//! wrong is told in full, up to a bound, and without the values themselves: they may be secret.

use jsonschema::{PatternOptions, Validator};
use serde_json::Value;

use super::schema_cost::{self, Places};
use super::schema_words::issue;

/// Bytes of a schema as it is written.
pub const SCHEMA_BYTES_MAX: usize = 64 << 10;
/// Levels of a schema.
pub const SCHEMA_DEPTH_MAX: usize = 32;
/// Issues of one check.
pub const ISSUES_MAX: usize = 50;
/// Bytes of a compiled pattern.
const PATTERN_COMPILED_MAX: usize = 32 << 10;

/// Something that is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issue {
    /// An RFC 6901 pointer into what was checked; empty for the whole.
    pub pointer: String,
    /// A sentence.
    pub message: String,
}

/// A schema that may be used. Costly to make.
#[derive(Debug)]
pub struct Schema {
    document: Value,
    places: Places,
    validator: Validator,
}

impl Schema {
    /// Checks the schema itself, by the draft that it names (2020-12 if it names none), and prepares it. The pointers of
    /// the issues lead into the schema.
    pub fn compile(schema: &Value) -> Result<Schema, Vec<Issue>> {
        let places = schema_cost::inspect(schema)?;
        of_the_draft(schema)?;
        schema_cost::refuse_endless(schema, &places)?;
        let patterns = PatternOptions::regex()
            .size_limit(PATTERN_COMPILED_MAX)
            .dfa_size_limit(4 * PATTERN_COMPILED_MAX);
        let validator = jsonschema::options()
            .offline()
            .with_pattern_options(patterns)
            .should_validate_formats(true)
            .build(schema)
            .map_err(|error| vec![issue(&error)])?;
        Ok(Schema {
            document: schema.clone(),
            places,
            validator,
        })
    }

    /// Everything that is wrong with `value`, at most [`ISSUES_MAX`] of it.
    pub fn check(&self, value: &Value) -> Vec<Issue> {
        if !schema_cost::is_affordable(&self.document, &self.places, value) {
            return vec![Issue {
                pointer: String::new(),
                message: "this is too large to be checked against its schema; pass large data as a file"
                    .to_owned(),
            }];
        }
        if self.validator.is_valid(value) {
            return Vec::new();
        }
        let errors = self.validator.iter_errors(value).take(ISSUES_MAX);
        errors.map(|error| issue(&error)).collect()
    }
}

/// What the draft says of the schema.
fn of_the_draft(schema: &Value) -> Result<(), Vec<Issue>> {
    let draft = schema.get("$schema");
    let known = draft.is_none_or(|draft| draft.as_str().is_some_and(is_known_draft));
    if !known {
        return Err(vec![Issue {
            pointer: "/$schema".to_owned(),
            message: "this draft is not known; write https://json-schema.org/draft/2020-12/schema".to_owned(),
        }]);
    }
    let validator = jsonschema::meta::validator_for(schema).map_err(|error| vec![issue(&error)])?;
    let issues: Vec<Issue> = validator
        .iter_errors(schema)
        .take(ISSUES_MAX)
        .map(|error| issue(&error))
        .collect();
    if issues.is_empty() { Ok(()) } else { Err(issues) }
}

fn is_known_draft(uri: &str) -> bool {
    let uri = uri.trim_end_matches('#');
    let name = uri
        .strip_prefix("https://json-schema.org/")
        .or_else(|| uri.strip_prefix("http://json-schema.org/"));
    matches!(
        name,
        Some(
            "draft/2020-12/schema"
                | "draft/2019-09/schema"
                | "draft-07/schema"
                | "draft-06/schema"
                | "draft-04/schema"
        )
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn check(schema: &Value, value: &Value) -> Vec<String> {
        let schema = Schema::compile(schema).unwrap_or_else(|issues| panic!("{issues:?}"));
        told(&schema.check(value))
    }

    fn told(issues: &[Issue]) -> Vec<String> {
        issues
            .iter()
            .map(|issue| format!("{}: {}", issue.pointer, issue.message))
            .collect()
    }

    fn refused(schema: &Value) -> Vec<String> {
        told(
            &Schema::compile(schema)
                .map(|_| ())
                .expect_err("the schema is refused"),
        )
    }

    fn order() -> Value {
        json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "required": ["id", "lines"],
            "additionalProperties": false,
            "properties": {
                "id": {"type": "string", "pattern": "^o-[0-9]+$"},
                "state": {"enum": ["new", "paid"]},
                "mail": {"type": "string", "format": "email"},
                "lines": {"type": "array", "minItems": 1, "items": {"$ref": "#/$defs/line"}},
            },
            "$defs": {
                "line": {"type": "object", "required": ["price"], "properties": {"price": {"type": "number", "minimum": 0}}},
            },
        })
    }

    #[test]
    fn everything_that_is_wrong_is_told_with_its_place() {
        assert_eq!(
            check(&order(), &json!({"id": "o-1", "lines": [{"price": 1.5}]})),
            [""; 0]
        );
        let value = json!({
            "id": "x", "state": "old", "mail": "nobody", "lines": [{"price": -1}, {}, {"price": "1"}], "extra": 1,
        });
        assert_eq!(
            check(&order(), &value),
            [
                "/id: must match the pattern ^o-[0-9]+$",
                "/lines/0/price: must be at least 0",
                "/lines/1/price: is missing",
                "/lines/2/price: must be of type number, and is a text",
                "/mail: must be a valid email",
                "/state: must be one of [\"new\",\"paid\"]",
                ": does not take `extra`",
            ]
        );
        assert_eq!(
            check(&order(), &json!([])),
            [": must be of type object, and is a list"]
        );
        assert_eq!(check(&json!(true), &json!(7)), [""; 0]);
        assert_eq!(
            check(&json!({"type": ["null", "string"]}), &json!(7)),
            [": must be of type null or string, and is a number"]
        );
    }

    #[test]
    fn values_are_not_repeated() {
        let schema = json!({"properties": {"token": {"minLength": 50, "not": {"const": "hunter2"}, "anyOf": [{"type": "null"}]}}});
        let told = check(&schema, &json!({"token": "hunter2"}));
        assert_eq!(told.len(), 3, "{told:?}");
        assert!(
            told.iter()
                .all(|line| !line.replace("const\":\"hunter2", "").contains("hunter2")),
            "{told:?}"
        );
    }

    #[test]
    fn issues_are_bounded() {
        let schema = json!({"items": {"type": "string"}});
        assert_eq!(check(&schema, &json!(vec![1; 500])).len(), ISSUES_MAX);
    }

    #[test]
    fn a_schema_that_is_wrong_is_told_with_its_place() {
        assert_eq!(refused(&json!(3)), [": a schema is a map, or true or false"]);
        assert_eq!(refused(&json!({"properties": {"a": {"type": "strng"}}})).len(), 1);
        assert_eq!(
            refused(&json!({"properties": {"a": {"pattern": "(unclosed"}}})),
            ["/properties/a/pattern: must be a valid regex"]
        );
        assert_eq!(
            refused(&json!({"$ref": "#/$defs/nobody", "$defs": {"somebody": {}}})),
            ["/$ref: there is no #/$defs/nobody in the schema"]
        );
        assert_eq!(
            refused(&json!({"$schema": "https://example.com/own"})),
            ["/$schema: this draft is not known; write https://json-schema.org/draft/2020-12/schema"]
        );
        for draft in ["draft-04", "draft-07"] {
            let schema = json!({"$schema": format!("http://json-schema.org/{draft}/schema#"), "definitions": {"t": {"type": "string"}}, "$ref": "#/definitions/t"});
            assert_eq!(check(&schema, &json!(1)).len(), 1, "{draft}");
        }
        assert_eq!(
            refused(&json!({"pattern": "(?=ahead)"})).len(),
            1,
            "no look-around: it is not linear"
        );
    }

    #[test]
    fn nothing_outside_of_the_schema_is_named() {
        for target in [
            "https://example.com/s.json",
            "file:///etc/passwd",
            "other.json",
            "/abs",
            "urn:x",
        ] {
            let told = refused(&json!({"properties": {"a": {"$ref": target}}}));
            assert_eq!(
                told,
                [format!(
                    "/properties/a/$ref: `{target}` leads out of the schema; put what it names under $defs and write #/$defs/…"
                )]
            );
        }
        let told = refused(&json!({"$defs": {"x": {"$id": "https://example.com/x", "$ref": "#/y"}}}));
        assert_eq!(
            told[0],
            "/$defs/x/$id: an $id below the root would change what references mean; leave it out"
        );
        // A property may have any name, and data is not a schema.
        let schema = json!({
            "properties": {"$ref": {"type": "string"}, "$id": {}, "default": {"type": "string"}},
            "default": {"$ref": "other.json"}, "const": {"$ref": "other.json"},
        });
        assert_eq!(check(&schema, &json!({"$ref": "other.json"})), [""; 0]);
    }

    #[test]
    fn hostile_schemas() {
        let mut deep = json!({});
        for _ in 0..40 {
            deep = json!({"items": deep});
        }
        assert_eq!(refused(&deep).len(), 1);
        assert_eq!(
            refused(&json!({"description": "x".repeat(70_000)})),
            [": the schema has more than 65536 bytes"]
        );
        for endless in [
            json!({"$ref": "#"}),
            json!({"allOf": [{"$ref": "#"}, {"$ref": "#"}]}),
            json!({"$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
            json!({"properties": {"a": {"$ref": "#/properties/a"}}}),
            // The way round is found although part of it also leads deeper.
            json!({
                "$defs": {"m": {"$ref": "#"}},
                "allOf": [{"$ref": "#/$defs/m"}, {"properties": {"a": {"$ref": "#/$defs/m"}}}],
            }),
        ] {
            assert_eq!(
                refused(&endless),
                [": the schema refers to itself without going deeper into the data"],
                "{endless}"
            );
        }
        assert!(refused(&json!({"pattern": "(((a{100}){100}){100}){100}"}))[0].contains("pattern"));
        let fan = |inner: &dyn Fn(Value) -> Value| {
            let mut defs = serde_json::Map::new();
            for level in 0..30 {
                let next = json!({"$ref": format!("#/$defs/d{}", level + 1)});
                defs.insert(format!("d{level}"), inner(next));
            }
            defs.insert("d30".to_owned(), json!({"type": "string"}));
            json!({"$ref": "#/$defs/d0", "$defs": defs})
        };
        let twice = fan(&|next| json!({"allOf": [next, next]}));
        assert_eq!(
            refused(&twice),
            [": the schema unfolds to more than 20000 parts; refer to fewer of them twice"]
        );
        let twice_below = fan(&|next| json!({"properties": {"a": {"allOf": [next, next]}}}));
        assert_eq!(refused(&twice_below).len(), 1);
        // Twice as much at each level of the data.
        let node = json!({"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}});
        let mut value = json!({});
        for _ in 0..60 {
            value = json!({"a": value});
        }
        assert_eq!(
            check(&node, &value),
            [": this is too large to be checked against its schema; pass large data as a file"]
        );
    }

    #[test]
    fn a_tree_of_trees_is_honest() {
        let tree = json!({
            "type": "object", "properties": {"value": {}, "children": {"type": "array", "items": {"$ref": "#"}}},
            "required": ["value"],
        });
        let value =
            json!({"value": 1, "children": [{"value": 2}, {"value": 3, "children": [{"children": []}]}]});
        assert_eq!(check(&tree, &value), ["/children/1/children/0/value: is missing"]);
        let any = json!({
            "$defs": {"json": {"anyOf": [
                {"type": ["string", "number", "null", "boolean"]},
                {"type": "array", "items": {"$ref": "#/$defs/json"}},
                {"type": "object", "additionalProperties": {"$ref": "#/$defs/json"}},
            ]}},
            "$ref": "#/$defs/json",
        });
        assert_eq!(
            check(&any, &json!({"a": [1, {"b": null}], "c": vec![0; 10_000]})),
            [""; 0]
        );
    }
}
