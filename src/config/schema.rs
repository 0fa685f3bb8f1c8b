//! The JSON Schema and the reference page of the file, both made from the table of keys.
//!
//! An editor with the schema completes and checks while one writes; the reader says more (names, zones, paths).

use std::collections::BTreeMap;
use std::fmt::Write;

use serde_json::{Map, Value, json};

use super::keys::{Key, Section, Unset};

/// The schema as it stands in `config/ductor.schema.json`.
pub fn schema() -> String {
    let mut definitions = BTreeMap::new();
    collect(Section::Document, &mut definitions);
    let mut whole = map_schema(Section::Document);
    let head = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "Configuration of ductor",
        "description": "Durations are seconds or text like 30s, 5m, 1h30m; sizes are bytes or text like 64KiB.",
    });
    for (word, value) in head.as_object().into_iter().flatten() {
        whole[word.as_str()] = value.clone();
    }
    definitions.remove(Section::Document.definition());
    whole["definitions"] = json!(definitions);
    format!("{whole:#}\n")
}

fn collect(section: Section, definitions: &mut BTreeMap<&'static str, Value>) {
    if definitions
        .insert(section.definition(), map_schema(section))
        .is_some()
    {
        return;
    }
    for inner in section.known().filter_map(|key| key.shape.section()) {
        collect(inner, definitions);
    }
}

fn map_schema(section: Section) -> Value {
    let mut properties = Map::new();
    let mut required = Vec::new();
    for key in section.known() {
        properties.insert(key.word.to_owned(), key_schema(key));
        if key.unset == Unset::Required {
            required.push(key.word);
        }
    }
    let mut schema = json!({
        // A map whose keys are all commented out is nothing, and as good as empty.
        "type": if required.is_empty() { json!(["object", "null"]) } else { json!("object") },
        "additionalProperties": false,
        "properties": properties,
    });
    if !required.is_empty() {
        schema["required"] = json!(required);
    }
    schema
}

fn key_schema(key: &Key) -> Value {
    let mut schema = key.shape.schema();
    let mut about = format!("{}.", key.about);
    if let Unset::Is(value) = key.unset {
        let _ = write!(about, " Default: {value}.");
    }
    // Beside a reference nothing else counts in this draft.
    if schema.get("$ref").is_some() {
        schema = json!({"allOf": [schema]});
    }
    schema["description"] = Value::from(about);
    schema
}

/// The reference page as it stands in `docs/configuration.md`.
pub fn reference() -> String {
    let mut page = String::from(
        "# Every key of the configuration\n\n\
         This page is made from the table that reads the file: `ductor check --print-reference`.\n\n\
         Durations are seconds (`1800`) or text (`30s`, `5m`, `1h30m`); sizes are bytes or text (`64KiB`, `1.5GiB`).\n\
         A relative path starts at the folder of its file. `ductor check` says what is wrong with a file and where;\n\
         `ductor check --show-origin` says where each value in force comes from.\n",
    );
    let mut sections = vec![("", Section::Document)];
    let mut told: Vec<Section> = Vec::new();
    while let Some((_, section)) = sections.pop() {
        if told.contains(&section) {
            continue;
        }
        told.push(section);
        page.push_str(&section_page(section));
        let inner = section
            .known()
            .filter_map(|key| Some((key.word, key.shape.section()?)));
        let inner: Vec<_> = inner.collect();
        sections.extend(inner.into_iter().rev());
    }
    page
}

fn section_page(section: Section) -> String {
    let title = section.title();
    let mut letters = title.chars();
    let first = letters
        .next()
        .map(|first| first.to_uppercase().to_string())
        .unwrap_or_default();
    let mut page = format!("\n## {first}{}\n\n", letters.as_str());
    if section == Section::Defaults {
        page.push_str(
            "All keys of a job but its `name`, `command` and `schedule`. A dag inherits those that it has itself, a task\n\
             those of its command and of slot pools, an approval none.\n",
        );
        return page;
    }
    page.push_str("| key | value | default | what |\n|---|---|---|---|\n");
    for key in section.known() {
        let unset = match key.unset {
            Unset::Required => "required".to_owned(),
            Unset::Nothing => String::new(),
            Unset::Is(value) => format!("`{value}`"),
        };
        let _ = writeln!(
            page,
            "| `{}` | {} | {unset} | {} |",
            key.word,
            key.shape.words(),
            key.about
        );
    }
    page
}

impl Section {
    /// The keys that are read in a map of this kind.
    pub(super) fn known(self) -> impl Iterator<Item = &'static Key> {
        self.keys()
            .iter()
            .filter(move |key| !self.is_own_of_a_job(key.word))
    }
}
