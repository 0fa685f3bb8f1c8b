//! The table of keys against the reader, both ways; the generated files against the table.

use serde_json::{Map, Value, json};

use super::keys::{Section, Unset};
use super::load_tests::{Schedules, environment, loaded};
use super::shape::Shape;
use super::source::Source;
use super::tree::{self, Node, Value as Tree};
use super::{Fault, Form, Overrides, Sources, load, reference, schema};

/// Where a key stands: the text of a document around its map, with `HOLE` in the place of the map's pairs.
#[derive(Clone)]
struct Home {
    section: Section,
    around: String,
}

const HOLE: &str = "HOLE";

/// What stands beside a key, because it needs that; besides the keys that its map must have.
fn companions(section: Section, word: &str, value: &str) -> &'static [(&'static str, &'static str)] {
    match (section, word) {
        (Section::Task, "type") if value == "approval" => &[],
        (Section::Task, "onReject") => &[("type", "approval")],
        (Section::Task, "pokeIntervalSeconds" | "pokeTimeoutSeconds") => {
            &[("type", "sensor"), ("command", "'true'")]
        }
        (Section::Task, "poolSlots" | "queuePriority" | "queueTimeout") => {
            &[("pool", "warehouse"), ("command", "'true'")]
        }
        (Section::Task, "expand") => &[("dependsOn", "[first]"), ("command", "'true'")],
        (Section::Task, field) if field != "command" => &[("command", "'true'")],
        (Section::Job | Section::Defaults, "poolSlots" | "queuePriority" | "queueTimeout") => {
            &[("pool", "warehouse")]
        }
        (Section::Secret, "name") | (Section::HiddenText | Section::HiddenSecret, "nonsense") => {
            &[("fromEnvVar", "X")]
        }
        (Section::Issuer, field) if !field.starts_with("key") || field == "keyId" => {
            &[("keyFile", "issuer.pem")]
        }
        (Section::RoutingBundle, "drainTo") => &[("prune", "true")],
        (Section::Verify, "timeout") => &[("command", "'true'")],
        _ => &[],
    }
}

fn required(section: Section, except: &str) -> Vec<(String, String)> {
    let keys = section
        .known()
        .filter(|key| key.unset == Unset::Required && key.word != except);
    keys.map(|key| (key.word.to_owned(), key.shape.samples()[0].clone()))
        .collect()
}

/// The pairs of a map with one key set.
fn pairs(section: Section, word: &str, value: &str) -> String {
    let mut pairs = required(section, word);
    let beside = companions(section, word, value).iter();
    pairs.extend(beside.map(|(key, value)| ((*key).to_owned(), (*value).to_owned())));
    pairs.push((word.to_owned(), value.to_owned()));
    let written: Vec<String> = pairs
        .iter()
        .map(|(key, value)| format!("{key}: {value}"))
        .collect();
    written.join(", ")
}

/// All maps of the file, each with one way to it.
fn homes() -> Vec<Home> {
    let mut homes = vec![Home {
        section: Section::Document,
        around: format!("{{{HOLE}}}"),
    }];
    let mut done = 0;
    while let Some(home) = homes.get(done).cloned() {
        done += 1;
        for key in home.section.known() {
            let Some(section) = key.shape.section() else {
                continue;
            };
            if homes.iter().any(|known| known.section == section) {
                continue;
            }
            let value = if matches!(key.shape, Shape::Named(_)) {
                format!("{{warehouse: {{{HOLE}}}}}")
            } else if key.shape == Shape::ListOf(Section::Task) {
                format!("[{{id: first, command: 'true'}}, {{{HOLE}}}]")
            } else if matches!(
                key.shape,
                Shape::ListOf(_) | Shape::Environment | Shape::FilesOr(_)
            ) {
                format!("[{{{HOLE}}}]")
            } else if key.shape == Shape::HiddenMap {
                format!("{{X-Key: {{{HOLE}}}}}")
            } else {
                format!("{{{HOLE}}}")
            };
            let inside = pairs(home.section, key.word, &value);
            homes.push(Home {
                section,
                around: home.around.replace(HOLE, &inside),
            });
        }
    }
    homes
}

/// A document in which one key has this value. Slot pools are there for jobs that name one.
fn document(home: &Home, word: &str, value: &str) -> String {
    let text = home.around.replace(HOLE, &pairs(home.section, word, value));
    let seconds = home.section == Section::Schedule && word == "second";
    let text = if seconds {
        text.replace("{name:", "{seconds: true, name:")
    } else {
        text
    };
    if text.contains("pool:") {
        return text.replacen('{', "{pools: {warehouse: {slots: 10000}}, ", 1);
    }
    text
}

/// Files that are named by others are found on a disk only.
fn on_disk(text: &str) -> Option<Vec<Fault>> {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    file("a.yaml", text);
    file("more.yaml", "");
    file("old.crontab", "0 3 * * * root true\n");
    match Sources::read(&folder.path().join("a.yaml"), &environment) {
        Ok(sources) => load(&sources, &environment, &Overrides::default(), &Schedules).err(),
        Err(faults) => Some(faults),
    }
}

/// What the reader complains about.
fn complaint(text: &str) -> Option<String> {
    let errors = if text.contains("include:") || text.contains("crontabs:") {
        on_disk(text)
    } else {
        loaded(&[("a.yaml", text)]).err()
    };
    let errors = errors?;
    let errors: Vec<String> = errors.iter().map(ToString::to_string).collect();
    Some(errors.join("\n"))
}

fn json_of(text: &str) -> Value {
    let sources = Sources::in_memory(&[("a.yaml", text)]);
    let source: &Source = &sources.files[0];
    value_of(&tree::parse(source).unwrap())
}

/// A tree as the JSON that an editor sees.
fn value_of(node: &Node) -> Value {
    match &node.value {
        Tree::Mapping(pairs) => {
            let mut map = Map::new();
            for (key, value) in pairs {
                let (word, _) = key.scalar().unwrap();
                map.insert(word.to_owned(), value_of(value));
            }
            Value::Object(map)
        }
        Tree::Sequence(items) => items.iter().map(|item| value_of(item)).collect(),
        Tree::Scalar { .. } if node.is_null() => Value::Null,
        Tree::Scalar { .. } => match node.scalar().unwrap() {
            ("true", true) => json!(true),
            ("false", true) => json!(false),
            (text, true) => serde_json::from_str::<Value>(text)
                .ok()
                .filter(Value::is_number)
                .unwrap_or_else(|| json!(text)),
            (text, false) => json!(text),
        },
    }
}

/// Why a value does not fit a schema, as far as our schemas go. Patterns are tested beside them.
fn misfit(whole: &Value, schema: &Value, value: &Value) -> Option<String> {
    let no = |why: &str| Some(format!("{value}: {why}"));
    if let Some(name) = schema["$ref"].as_str() {
        let name = name.strip_prefix("#/definitions/").unwrap();
        return misfit(whole, &whole["definitions"][name], value);
    }
    if let Some(all) = schema["allOf"].as_array() {
        return all.iter().find_map(|one| misfit(whole, one, value));
    }
    if let Some(any) = schema["anyOf"].as_array() {
        let misfits: Vec<_> = any.iter().filter_map(|one| misfit(whole, one, value)).collect();
        return (misfits.len() == any.len()).then(|| misfits.join("; "));
    }
    if let Some(words) = schema["enum"].as_array()
        && !words.contains(value)
    {
        return no("not one of the words");
    }
    if !schema["type"].is_null() && !types(&schema["type"]).contains(&kind(value)) {
        let is_whole = types(&schema["type"]).contains(&"number") && kind(value) == "integer";
        if !is_whole {
            return no("wrong type");
        }
    }
    if let Some(number) = value.as_f64() {
        let beyond = |bound: &str, is_bad: fn(f64, f64) -> bool| {
            schema[bound].as_f64().is_some_and(|bound| is_bad(number, bound))
        };
        if beyond("minimum", |number, bound| number < bound)
            || beyond("maximum", |number, bound| number > bound)
        {
            return no("out of range");
        }
    }
    if let (Some(text), Some(pattern)) = (value.as_str(), schema["pattern"].as_str()) {
        // The only two patterns: a quantity begins with a digit, and a word that is none does not.
        assert!(pattern.contains("[0-9]+"), "{pattern}");
        if !text.starts_with(|letter: char| letter.is_ascii_digit()) {
            return no("no quantity");
        }
    }
    misfit_inside(whole, schema, value)
}

fn misfit_inside(whole: &Value, schema: &Value, value: &Value) -> Option<String> {
    if let Some(items) = value.as_array() {
        if schema["minItems"]
            .as_u64()
            .is_some_and(|least| (items.len() as u64) < least)
        {
            return Some("too few items".to_owned());
        }
        return items
            .iter()
            .find_map(|item| misfit(whole, &schema["items"], item));
    }
    let map = value.as_object()?;
    let required = schema["required"].as_array().into_iter().flatten();
    for word in required.filter_map(Value::as_str) {
        if !map.contains_key(word) {
            return Some(format!("{word} is missing"));
        }
    }
    map.iter()
        .find_map(|(word, value)| match schema["properties"].get(word) {
            Some(inner) => misfit(whole, inner, value),
            None if schema["additionalProperties"] == json!(false) => Some(format!("unknown key {word}")),
            None => misfit(whole, &schema["additionalProperties"], value),
        })
}

fn types(schema: &Value) -> Vec<&str> {
    let many = schema.as_array().into_iter().flatten();
    many.chain([schema]).filter_map(Value::as_str).collect()
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(number) if number.is_f64() => "number",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

#[test]
fn the_reader_and_the_schema_take_the_same_values() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    let mut wrong = Vec::new();
    let mut say = |text: &str, what: String| wrong.push(format!("{what}\n  in {text}"));
    for home in homes() {
        for key in home.section.known() {
            for sample in key.shape.samples() {
                let text = document(&home, key.word, &sample);
                if let Some(complaint) = complaint(&text) {
                    say(&text, format!("the reader refuses a good value: {complaint}"));
                }
                if let Some(misfit) = misfit(&schema, &schema, &json_of(&text)) {
                    say(&text, format!("the schema refuses a good value: {misfit}"));
                }
            }
            for refused in key.shape.refused() {
                let text = document(&home, key.word, &refused);
                // What is too much for every slot pool is told where it meets one.
                let is_later = home.section == Section::Defaults && refused == "10001";
                if !is_later && complaint(&text).is_none() {
                    say(
                        &text,
                        "the reader takes a bad value, or does not read it".to_owned(),
                    );
                }
                if misfit(&schema, &schema, &json_of(&text)).is_none() {
                    say(&text, "the schema takes a bad value".to_owned());
                }
            }
            for refused in key.shape.wrong() {
                let text = document(&home, key.word, &refused);
                if complaint(&text).is_none() {
                    say(&text, "the reader takes a bad value".to_owned());
                }
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} findings:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn what_is_required_is_missed_by_both() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for home in homes() {
        for key in home.section.known().filter(|key| key.unset == Unset::Required) {
            let others = required(home.section, key.word);
            let beside = companions(home.section, "nonsense", "").iter();
            let beside = beside.map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
            let pairs: Vec<String> = others
                .into_iter()
                .chain(beside)
                .map(|(key, value)| format!("{key}: {value}"))
                .collect();
            let text = home.around.replace(HOLE, &pairs.join(", "));
            assert!(complaint(&text).is_some(), "{text}");
            assert!(misfit(&schema, &schema, &json_of(&text)).is_some(), "{text}");
        }
    }
}

#[test]
fn unknown_keys_are_unknown_to_both() {
    let schema: Value = serde_json::from_str(&schema()).unwrap();
    for home in homes() {
        let text = document(&home, "nonsense", "1");
        assert!(
            complaint(&text).is_some_and(|text| text.contains("nonsense")),
            "{text}"
        );
        assert!(misfit(&schema, &schema, &json_of(&text)).is_some(), "{text}");
    }
}

/// Every file that is shipped fits the schema, too.
#[test]
fn shipped_files_fit_the_schema() {
    let whole: Value = serde_json::from_str(&schema()).unwrap();
    let mut folders = vec![std::path::PathBuf::from("config")];
    let mut count = 0;
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "yaml")
                && Form::of(&path) == Form::Yaml
            {
                let text = std::fs::read_to_string(&path).unwrap();
                // A bundle is a document of its own, which the tests of examples check.
                if text.contains("\nkind: RoutingBundle\n") {
                    continue;
                }
                count += 1;
                let misfit = misfit(&whole, &whole, &json_of(&text));
                assert_eq!(misfit, None, "{}", path.display());
                let line = text.lines().next().unwrap_or_default();
                assert!(
                    line.starts_with("# yaml-language-server: $schema=")
                        && line.ends_with("ductor.schema.json"),
                    "{}: its first line tells editors where the schema is",
                    path.display()
                );
            }
        }
    }
    assert!(count >= 2, "{count} files");
}

#[test]
fn the_generated_files_are_fresh() {
    for (path, fresh, command) in [
        (
            "config/ductor.schema.json",
            schema(),
            "ductor check --print-schema > config/ductor.schema.json",
        ),
        (
            "docs/configuration.md",
            reference(),
            "ductor check --print-reference > docs/configuration.md",
        ),
    ] {
        let stored = std::fs::read_to_string(path).unwrap_or_default();
        assert!(stored == fresh, "{path} is stale; write it anew: {command}");
    }
}
