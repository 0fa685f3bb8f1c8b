//! The shapes that values of the file have: what the schema and the reference page say of them. Their readers are in
//! `reading` and in the files of the sections; a test holds both to the same ranges.

use serde_json::{Value, json};

use super::keys::Section;
#[cfg(test)]
use super::keys::Unset;

/// A duration as text; a number is seconds.
const DURATION: &str = r"^([0-9]+(\.[0-9]+)?(ms|s|m|h|d))+$";
/// A size as text; a number is bytes.
const SIZE: &str = r"^[0-9]+(\.[0-9]+)? ?([kKmMgGtT]([iI]?[bB])?|[bB])$";

/// What a value looks like.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    Boolean,
    /// A whole number.
    Integer(i64, i64),
    /// A number with or without a fraction.
    Number(f64, f64),
    /// Milliseconds; `u64::MAX` is without an end.
    Duration(u64, u64),
    /// Bytes; `u64::MAX` is without an end.
    Size(u64, u64),
    OneOf(&'static [&'static str]),
    Text(Text),
    /// A list of texts.
    Texts(Text),
    /// The shape, or nothing, which drops what would be inherited.
    Optional(&'static Shape),
    /// A text that may be secret, or a map that says where it is read.
    Hidden(Text),
    /// Names of the user's choice, each with a text that may be secret.
    HiddenMap,
    /// Names of files, or one.
    Files,
    /// Names of files, or maps about them.
    FilesOr(Section),
    /// A text for the shell, or a list of program and arguments.
    Command,
    /// Five or six fields or a nickname, or a map of fields.
    Schedule,
    /// A map of variables, or a list of `key` and `value`.
    Environment,
    Map(Section),
    /// Names of the user's choice, each with a map.
    Named(Section),
    ListOf(Section),
}

/// A public key of Ed25519, as one would write it in a flow map: that of RFC 8410.
#[cfg(test)]
const PEM: &str = "\"-----BEGIN PUBLIC KEY-----\\nMCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\\n-----END PUBLIC KEY-----\"";

/// What a text means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Text {
    Address,
    EgressRule,
    Field,
    FilePath,
    Host,
    JobName,
    LogLevel,
    NodeName,
    Origin,
    Path,
    PublicKey,
    Replaced,
    Shell,
    SlotPoolName,
    TaskId,
    TaskRef,
    Template,
    TimeZone,
    User,
    Value,
    Variable,
    WebAddress,
}

impl Text {
    /// Whether `${NAME}` is replaced in it.
    pub(super) fn is_substituted(self) -> bool {
        match self {
            Self::Address
            | Self::EgressRule
            | Self::Host
            | Self::NodeName
            | Self::Origin
            | Self::Path
            | Self::Replaced
            | Self::WebAddress => true,
            Self::Field
            | Self::FilePath
            | Self::JobName
            | Self::LogLevel
            | Self::PublicKey
            | Self::Shell
            | Self::SlotPoolName
            | Self::TaskId
            | Self::TaskRef
            | Self::Template
            | Self::TimeZone
            | Self::User
            | Self::Value
            | Self::Variable => false,
        }
    }

    /// For the reference page.
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Address => "address and port",
            Self::EgressRule => "network or host, `:` and a port behind it if only that is meant",
            Self::Field => "one field of a schedule",
            Self::Host => "host",
            Self::JobName | Self::TaskId => "name",
            Self::LogLevel => "level, or `module=level` list",
            Self::NodeName => "name of lower-case letters, digits, `.`, `_`, `-`",
            Self::Origin => "origin",
            Self::Path | Self::FilePath => "path",
            Self::PublicKey => "public key in PEM",
            Self::Shell => "absolute path",
            Self::SlotPoolName => "name of a slot pool",
            Self::TaskRef => "name of a task of the same dag",
            Self::Template => "text with fields",
            Self::TimeZone => "time zone",
            Self::User => "name or number",
            Self::Replaced | Self::Value => "text",
            Self::Variable => "name of a variable",
            Self::WebAddress => "web address",
        }
    }

    /// Values that are good.
    #[cfg(test)]
    pub(super) fn samples(self) -> &'static [&'static str] {
        match self {
            Self::Address => &["127.0.0.1:9000", "'[::1]:0'", "'${HOME_PORT:-127.0.0.1:1}'"],
            Self::EgressRule => &[
                "10.0.0.0/8",
                "127.0.0.1:8080",
                "api.internal",
                "'${HERE:-fd00::/8}'",
            ],
            Self::Field => &["5", "'*/2'"],
            Self::FilePath => &["old.crontab"],
            Self::Host => &["ductor.example.org", "10.0.0.5:8470"],
            Self::JobName | Self::SlotPoolName => &["warehouse"],
            Self::LogLevel => &["debug", "'info,ductor::fire=debug'"],
            Self::NodeName => &["node-1"],
            Self::Origin => &["https://ops.example.org"],
            Self::Path => &["here/there", "/srv/x", "'${HERE:-a}'"],
            Self::Replaced => &["https://ops.example.org", "'https://ops.example.org/${HERE:-a}'"],
            Self::PublicKey => &[PEM],
            Self::Shell => &["/bin/bash"],
            Self::TaskId => &["second", "2", "'a b'"],
            Self::TaskRef => &["first"],
            Self::Template => &["'{\"text\": \"${reason}\"}'"],
            Self::TimeZone => &["Europe/Madrid"],
            Self::User => &["backup", "1000"],
            Self::Value => &["text", "1", "true", "''"],
            Self::Variable => &["API_TOKEN"],
            Self::WebAddress => &["https://ops.example.org/ductor"],
        }
    }

    /// Values that only the reader knows to be wrong.
    #[cfg(test)]
    pub(super) fn wrong(self) -> &'static [&'static str] {
        match self {
            Self::Address => &["nowhere", "''"],
            Self::EgressRule => &["10.0.0.1/8", "'*'", "http://api.internal", "''"],
            Self::Field => &["'1 2'", "''"],
            Self::FilePath => &["nowhere.crontab", "''"],
            Self::Host => &["'a b'", "''"],
            Self::JobName => &["a/b", "''"],
            Self::LogLevel => &["loud", "''"],
            Self::NodeName => &["A", "''"],
            Self::Origin => &["ops.example.org", "https://a/b"],
            Self::Path | Self::User | Self::Variable => &["''"],
            Self::PublicKey => &["text", "''"],
            Self::Shell => &["bash", "''"],
            Self::SlotPoolName | Self::TaskRef => &["nowhere"],
            Self::TaskId => &["a/b", "a#0", "''"],
            Self::Replaced => &["'${nobody}'"],
            Self::Template => &["'${nonsense}'"],
            Self::TimeZone => &["Nowhere/Town", "''"],
            Self::Value => &[],
            Self::WebAddress => &["ops", "ftp://x"],
        }
    }
}

/// A scalar that is read by its letters: `user: 1000` is fine.
fn letters() -> Value {
    json!({"type": ["string", "number", "boolean"]})
}

fn reference(section: Section) -> Value {
    json!({"$ref": format!("#/definitions/{}", section.definition())})
}

impl Shape {
    /// The schema of a value.
    pub(super) fn schema(self) -> Value {
        match self {
            Self::Boolean => json!({"type": "boolean"}),
            Self::Integer(min, max) => json!({"type": "integer", "minimum": min, "maximum": max}),
            Self::Number(min, max) => json!({"type": "number", "minimum": min, "maximum": max}),
            Self::Duration(min, max) => {
                let max = (max != u64::MAX).then(|| seconds(max));
                quantity(&seconds(min), max.as_ref(), DURATION)
            }
            Self::Size(min, max) => {
                let max = (max != u64::MAX).then(|| Value::from(max));
                quantity(&min.into(), max.as_ref(), SIZE)
            }
            Self::OneOf(words) => json!({"enum": words}),
            Self::Text(_) => letters(),
            Self::Texts(_) => json!({"type": ["array", "null"], "items": letters()}),
            Self::Optional(shape) => json!({"anyOf": [shape.schema(), {"type": "null"}]}),
            Self::Hidden(_) => json!({"anyOf": [letters(), reference(Section::HiddenText)]}),
            Self::HiddenMap => json!({
                "type": "object",
                "additionalProperties": Self::Hidden(Text::Replaced).schema(),
            }),
            Self::Files => json!({"anyOf": [
                {"type": ["string", "null"]},
                {"type": "array", "items": {"type": "string"}},
            ]}),
            Self::FilesOr(section) => json!({"anyOf": [
                {"type": ["string", "null"]},
                {"type": "array", "items": {"anyOf": [{"type": "string"}, reference(section)]}},
            ]}),
            Self::Command => json!({"anyOf": [
                letters(),
                {"type": "array", "items": letters(), "minItems": 1},
            ]}),
            Self::Schedule => json!({"anyOf": [letters(), reference(Section::Schedule)]}),
            Self::Environment => json!({"anyOf": [
                {"type": ["object", "null"], "additionalProperties": letters()},
                {"type": "array", "items": reference(Section::EnvironmentItem)},
            ]}),
            Self::Map(section) => reference(section),
            Self::Named(section) => {
                json!({"type": ["object", "null"], "additionalProperties": reference(section)})
            }
            Self::ListOf(section) => json!({"type": ["array", "null"], "items": reference(section)}),
        }
    }

    /// What its text, or each of its texts, means.
    pub(super) fn text(self) -> Option<Text> {
        if let Self::Text(kind) | Self::Texts(kind) = self {
            return Some(kind);
        }
        if let Self::Optional(shape) = self {
            return shape.text();
        }
        (self == Self::Files).then_some(Text::Replaced)
    }

    /// The map inside, if there is one.
    pub(super) fn section(self) -> Option<Section> {
        match self {
            Self::Map(section) | Self::Named(section) | Self::ListOf(section) | Self::FilesOr(section) => {
                Some(section)
            }
            Self::Schedule => Some(Section::Schedule),
            Self::Environment => Some(Section::EnvironmentItem),
            Self::Hidden(_) | Self::HiddenMap => Some(Section::HiddenText),
            Self::Optional(shape) => shape.section(),
            Self::Boolean
            | Self::Integer(..)
            | Self::Number(..)
            | Self::Duration(..)
            | Self::Size(..)
            | Self::OneOf(_)
            | Self::Text(_)
            | Self::Texts(_)
            | Self::Files
            | Self::Command => None,
        }
    }

    /// For the reference page: the kind and its range.
    pub(super) fn words(self) -> String {
        match self {
            Self::Boolean => "true or false".to_owned(),
            Self::Integer(min, max) => format!("whole number, {min} to {max}"),
            Self::Number(min, max) => format!("number, {min} to {max}"),
            Self::Duration(min, u64::MAX) => format!("duration, at least {}", duration_words(min)),
            Self::Duration(min, max) => {
                format!("duration, {} to {}", duration_words(min), duration_words(max))
            }
            Self::Size(0, u64::MAX) => "size".to_owned(),
            Self::Size(min, u64::MAX) => format!("size, at least {}", size_words(min)),
            Self::Size(min, max) => format!("size, {} to {}", size_words(min), size_words(max)),
            Self::OneOf(words) => {
                let quoted: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                quoted.join(", ")
            }
            Self::Text(text) => text.name().to_owned(),
            Self::Texts(text) => format!("list of {}", text.name()),
            Self::Optional(shape) => format!("{}, or nothing", shape.words()),
            Self::Hidden(text) => format!("{}, or map that says where it is read", text.name()),
            Self::HiddenMap => "map of texts".to_owned(),
            Self::Files => "path or pattern, or list of them".to_owned(),
            Self::FilesOr(Section::Crontab) => "path or pattern, or list of them and of maps".to_owned(),
            Self::FilesOr(_) => "path, or list of them and of maps".to_owned(),
            Self::Command => "text for the shell, or list of program and arguments".to_owned(),
            Self::Schedule => "text, or map of fields".to_owned(),
            Self::Environment => "map, or list of `key` and `value`".to_owned(),
            Self::Map(_) => "map".to_owned(),
            Self::Named(_) => "map of names".to_owned(),
            Self::ListOf(_) => "list of maps".to_owned(),
        }
    }

    /// Values that are good, as one would write them in a flow map.
    #[cfg(test)]
    pub(super) fn samples(self) -> Vec<String> {
        let owned = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        match self {
            Self::Boolean => owned(&["true", "false"]),
            Self::Integer(min, max) => vec![min.to_string(), max.to_string()],
            Self::Number(min, max) => vec![min.to_string(), max.to_string()],
            Self::Duration(min, max) => {
                let most = max.min(86_400_000 * 365);
                vec![format!("{min}ms"), format!("{most}ms"), seconds(most).to_string()]
            }
            Self::Size(min, max) => {
                let most = max.min(1 << 50);
                vec![min.to_string(), most.to_string(), format!("{}KiB", most >> 10)]
            }
            Self::OneOf(words) => owned(words),
            Self::Text(text) | Self::Hidden(text) => owned(text.samples()),
            Self::Texts(text) => {
                let mut samples = owned(&["null", "[]"]);
                samples.extend(text.samples().iter().map(|sample| format!("[{sample}]")));
                samples
            }
            Self::Optional(shape) => {
                let mut samples = shape.samples();
                samples.push("null".to_owned());
                samples
            }
            Self::HiddenMap => owned(&["{X-Team: night}", "{X-Key: {fromEnvVar: KEY}}"]),
            Self::Files => owned(&["more.yaml", "'*.more.yaml'", "[more.yaml]", "null"]),
            Self::FilesOr(_) => owned(&["old.crontab", "[old.crontab]", "[{path: old.crontab}]", "null"]),
            Self::Command => owned(&["echo one", "[echo, one, 2]"]),
            Self::Schedule => owned(&["'0 3 * * *'", "'@daily'", "{hour: 3}", "{dayOfWeek: mon}"]),
            Self::Environment => owned(&["null", "{A: b, N: 1}", "[{key: A, value: b}]", "[]"]),
            // A map of which something is required is not left empty.
            Self::Map(section) if section.known().any(|key| key.unset == Unset::Required) => Vec::new(),
            // Which of two is given is up to the user, but one is.
            Self::Map(Section::Verify) => owned(&["{command: check}"]),
            Self::Map(Section::HiddenSecret) => owned(&["{fromEnvVar: KEY}"]),
            Self::ListOf(Section::Task) => owned(&["[{id: first, command: 'true'}]"]),
            Self::Map(_) | Self::Named(_) | Self::ListOf(_) => owned(&["null"]),
        }
    }

    /// Values that both the reader and the schema refuse.
    #[cfg(test)]
    pub(super) fn refused(self) -> Vec<String> {
        let mut refused = vec!["[[1]]".to_owned()];
        match self {
            Self::Boolean => refused.push("'true'".to_owned()),
            Self::Integer(min, max) => {
                refused.extend([
                    (i128::from(min) - 1).to_string(),
                    (i128::from(max) + 1).to_string(),
                ]);
                refused.extend(["1.5".to_owned(), "'1'".to_owned()]);
            }
            Self::Number(min, max) => refused.extend([(min - 0.5).to_string(), (max + 0.5).to_string()]),
            Self::Duration(min, max) => {
                refused.push("later".to_owned());
                refused.push("-1".to_owned());
                refused.extend((min > 1).then(|| seconds(min - 1).to_string()));
                refused.extend((max != u64::MAX).then(|| seconds(max + 1_000).to_string()));
            }
            Self::Size(min, max) => {
                refused.push("much".to_owned());
                refused.extend((min > 0).then(|| (min - 1).to_string()));
                refused.extend((max != u64::MAX).then(|| (max + 1).to_string()));
            }
            Self::OneOf(_) => refused.push("nonsense".to_owned()),
            Self::Command => refused.extend(["[]".to_owned(), "{}".to_owned()]),
            Self::Optional(shape) => refused = shape.refused(),
            Self::Text(_)
            | Self::Texts(_)
            | Self::Hidden(_)
            | Self::HiddenMap
            | Self::Files
            | Self::FilesOr(_)
            | Self::Schedule
            | Self::Environment
            | Self::Map(_)
            | Self::Named(_)
            | Self::ListOf(_) => {}
        }
        refused
    }

    /// Values that only the reader knows to be wrong.
    #[cfg(test)]
    pub(super) fn wrong(self) -> Vec<String> {
        let plain = |text: Text| text.wrong().iter().map(|word| (*word).to_owned());
        match self {
            Self::Text(text) | Self::Hidden(text) => plain(text).collect(),
            Self::Optional(shape) => shape.wrong(),
            Self::HiddenMap => vec!["{'a b': c}".to_owned()],
            Self::Files | Self::FilesOr(Section::Crontab) => vec!["nowhere.yaml".to_owned()],
            Self::Texts(text) => plain(text).map(|word| format!("[{word}]")).collect(),
            Self::Duration(min, max) => {
                let below = (min > 0).then(|| format!("{}ms", min - 1));
                let above = (max != u64::MAX).then(|| format!("{}ms", max + 1));
                below.into_iter().chain(above).collect()
            }
            Self::FilesOr(_) | Self::Command => vec!["''".to_owned()],
            Self::Schedule => vec!["'* * *'".to_owned(), "''".to_owned()],
            Self::Environment => vec!["{'A B': c}".to_owned()],
            Self::Boolean
            | Self::Integer(..)
            | Self::Number(..)
            | Self::Size(..)
            | Self::OneOf(_)
            | Self::Map(_)
            | Self::Named(_)
            | Self::ListOf(_) => Vec::new(),
        }
    }
}

/// A number in a range, or text of a pattern; the range of a text is the reader's.
fn quantity(min: &Value, max: Option<&Value>, pattern: &str) -> Value {
    let mut number = json!({"type": "number", "minimum": min});
    if let Some(max) = max {
        number["maximum"] = max.clone();
    }
    json!({"anyOf": [number, {"type": "string", "pattern": pattern}]})
}

/// Milliseconds as the number that the file has; without a fraction where there is none.
#[expect(
    clippy::cast_precision_loss,
    reason = "ranges of durations are far below 2^52"
)]
fn seconds(ms: u64) -> Value {
    if ms.is_multiple_of(1_000) {
        json!(ms / 1_000)
    } else {
        json!(ms as f64 / 1_000.0)
    }
}

/// The largest unit that leaves no rest.
fn duration_words(ms: u64) -> String {
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fitting = units.iter().find(|(size, _)| ms > 0 && ms.is_multiple_of(*size));
    match fitting {
        Some((size, unit)) => format!("{}{unit}", ms / size),
        None if ms == 0 => "0".to_owned(),
        None => format!("{ms}ms"),
    }
}

fn size_words(bytes: u64) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let fitting = units
        .iter()
        .find(|(size, _)| bytes > 0 && bytes.is_multiple_of(*size));
    match fitting {
        Some((size, unit)) => format!("{}{unit}", bytes / size),
        None => bytes.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::string::string_regex;

    use super::super::quantity::{QuantityFault, duration_ms, size_bytes};
    use super::*;

    proptest! {
        /// What an editor lets pass is at least a quantity; `1h1h` is for the reader to refuse.
        #[test]
        fn the_patterns_are_those_of_the_reader(
            duration in string_regex(r"[0-9]{1,3}(\.[0-9]{1,3})?(ms|s|m|h|d)").unwrap(),
            size in string_regex(r"[0-9]{1,3}(\.[0-9]{1,3})? ?([kKmMgGtT]([iI]?[bB])?|[bB])").unwrap(),
        ) {
            prop_assert!(!matches!(duration_ms(&duration), Err(QuantityFault::Shape)), "{duration}");
            prop_assert!(!matches!(size_bytes(&size), Err(QuantityFault::Shape)), "{size}");
        }
    }

    #[test]
    fn quantities_for_people() {
        for (ms, words) in [
            (0, "0"),
            (1, "1ms"),
            (100, "100ms"),
            (90_000, "90s"),
            (3_600_000, "1h"),
        ] {
            assert_eq!(duration_words(ms), words);
        }
        for (bytes, words) in [(0, "0"), (1, "1"), (1 << 20, "1MiB"), (3 << 30, "3GiB")] {
            assert_eq!(size_words(bytes), words);
        }
    }
}
