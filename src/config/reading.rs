//! Reading values out of the tree: one method per kind of value, each of which reports what is
//! wrong and goes on. Ranges and meanings belong to the readers of the sections.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::ops::RangeInclusive;
use std::path::{Component, Path, PathBuf};
use std::rc::Rc;

use super::fault::{FAULTS_MAX, Fault, Place, shown, shown_sentence};
use super::keys::{Section, nearest};
use super::quantity::{QuantityFault, duration_ms, size_bytes};
use super::source::Source;
use super::substitute::{Environment, substitute};
use super::syntax::CHECK_INDENTATION;
use super::tree::{Node, Value};

/// Errors kept of one load. More than the warnings, so that warnings cannot crowd out every error.
const ERRORS_KEPT_MAX: usize = 10_000;
const WARNINGS_KEPT_MAX: usize = 1_000;

/// The pairs of a map: word, key, value.
pub(super) type Pairs = Vec<(String, Rc<Node>, Rc<Node>)>;

/// One file being read, and everything found wrong so far.
pub(super) struct Reading<'a> {
    pub(super) source: &'a Source,
    pub(super) environment: &'a Environment<'a>,
    pub(super) faults: &'a mut Vec<Fault>,
}

/// A key that is there, with its value.
#[derive(Clone)]
pub(super) struct Field {
    /// As a message names it: `` job 'J': `shell` ``.
    pub(super) label: String,
    pub(super) key_at: Place,
    pub(super) node: Rc<Node>,
}

impl Field {
    pub(super) fn at(&self) -> &Place {
        &self.node.at
    }
}

/// A map whose keys have been checked.
pub(super) struct Fields {
    subject: String,
    path: String,
    pub(super) at: Place,
    entries: Pairs,
}

impl Fields {
    fn empty(at: &Place) -> Self {
        Self {
            subject: String::new(),
            path: String::new(),
            at: at.clone(),
            entries: Vec::new(),
        }
    }

    /// Messages about these keys begin with it: `job 'J': `.
    pub(super) fn with_subject(mut self, subject: &str) -> Self {
        subject.clone_into(&mut self.subject);
        self
    }

    /// Keys are named below it: `verify.`.
    pub(super) fn with_path(mut self, path: &str) -> Self {
        path.clone_into(&mut self.path);
        self
    }

    pub(super) fn has(&self, word: &str) -> bool {
        self.entries.iter().any(|(key, _, _)| key == word)
    }

    pub(super) fn get(&self, word: &str) -> Option<Field> {
        let (_, key, node) = self.entries.iter().find(|(key, _, _)| key == word)?;
        Some(Field {
            label: format!("{}`{}{word}`", self.subject, self.path),
            key_at: key.at.clone(),
            node: node.clone(),
        })
    }
}

impl Reading<'_> {
    /// Far more faults than are shown are not even kept; an error always leaves one behind.
    pub(super) fn report(&mut self, fault: Fault) {
        let max = if fault.is_error() {
            ERRORS_KEPT_MAX
        } else {
            WARNINGS_KEPT_MAX
        };
        if self.faults.len() < max {
            self.faults.push(fault);
        }
    }

    /// Looking for the nearest word is dear; the faults past the first page need none.
    pub(super) fn has_room_for_hints(&self) -> bool {
        self.faults.len() < FAULTS_MAX
    }

    pub(super) fn error(&mut self, code: &'static str, at: &Place, message: impl Into<String>) {
        self.report(Fault::error(code, at, message));
    }

    /// A map with the words of a section; `null` is a map without keys.
    pub(super) fn fields(&mut self, node: &Node, section: Section) -> Option<Fields> {
        if node.is_null() {
            return Some(Fields::empty(&node.at));
        }
        let pairs = self.pairs(node, section.title())?;
        let mut entries: Pairs = Vec::new();
        for (word, key, value) in pairs {
            if let Some(name) = section.later(&word) {
                self.error(
                    "config/not-supported",
                    &key.at,
                    format!("'{name}' is not supported yet"),
                );
            } else if section.knows(&word) {
                entries.push((word, key, value));
            } else {
                let message = format!("unknown key `{}` in {}", shown(&word), section.title());
                let help = self.has_room_for_hints().then(|| section.help(&word)).flatten();
                self.report(Fault::error("config/unknown-key", &key.at, message).with_help_if(help));
            }
        }
        Some(Fields {
            entries,
            ..Fields::empty(&node.at)
        })
    }

    /// The pairs of a map, with `<<` merged in and without the second of two equal keys.
    pub(super) fn pairs(&mut self, node: &Node, title: &str) -> Option<Pairs> {
        let duplicate = |word: &str| format!("duplicate key `{}`", shown(word));
        self.pairs_named(node, title, &duplicate)
    }

    pub(super) fn pairs_named(
        &mut self,
        node: &Node,
        title: &str,
        duplicate: &dyn Fn(&str) -> String,
    ) -> Option<Pairs> {
        let Value::Mapping(written) = &node.value else {
            self.wrong_type(&format!("{title} must be a map"), node);
            return None;
        };
        let mut pairs: Pairs = Vec::new();
        let mut seen: HashMap<String, Place> = HashMap::new();
        let mut merged = Vec::new();
        for (key, value) in written {
            let Some((word, plain)) = key.scalar() else {
                self.wrong_type("a key must be a word", key);
                continue;
            };
            if plain && word == "<<" {
                merged.push(value.clone());
            } else if let Some(first) = seen.get(word) {
                let fault = Fault::error("config/duplicate-key", &key.at, duplicate(word))
                    .with_related(first, "it stands here already");
                self.report(fault);
            } else {
                seen.insert(word.to_owned(), key.at.clone());
                pairs.push((word.to_owned(), key.clone(), value.clone()));
            }
        }
        for (word, key, value) in self.merged(&merged, 0) {
            if let Entry::Vacant(place) = seen.entry(word.clone()) {
                place.insert(key.at.clone());
                pairs.push((word, key, value));
            }
        }
        Some(pairs)
    }

    /// What `<<` brings: keys count where the map itself does not have them, and the first map
    /// that has a key wins.
    fn merged(&mut self, values: &[Rc<Node>], depth: usize) -> Pairs {
        let mut pairs = Pairs::new();
        for value in values {
            match &value.value {
                Value::Sequence(items) if depth == 0 => pairs.extend(self.merged(items, 1)),
                Value::Mapping(_) => {
                    pairs.extend(self.pairs(value, "a merged map").unwrap_or_default());
                }
                Value::Scalar { .. } | Value::Sequence(_) => {
                    self.wrong_type("`<<` takes a map or a list of maps", value);
                }
            }
        }
        pairs
    }

    /// The items of a list; `null` is an empty list.
    pub(super) fn list(&mut self, field: &Field) -> Option<Vec<Rc<Node>>> {
        match &field.node.value {
            Value::Sequence(items) => Some(items.clone()),
            Value::Scalar { .. } if field.node.is_null() => Some(Vec::new()),
            Value::Scalar { .. } | Value::Mapping(_) => {
                self.wrong_type(&format!("{} must be a list", field.label), &field.node);
                None
            }
        }
    }

    pub(super) fn boolean(&mut self, field: &Field) -> Option<bool> {
        match field.node.scalar() {
            Some(("true" | "True" | "TRUE", true)) => Some(true),
            Some(("false" | "False" | "FALSE", true)) => Some(false),
            Some(_) | None => {
                self.wrong_type(&format!("{} must be true or false", field.label), &field.node);
                None
            }
        }
    }

    /// A whole number in a range; outside of it the fault has the given text.
    pub(super) fn integer(
        &mut self,
        field: &Field,
        range: RangeInclusive<i64>,
        out_of_range: &str,
    ) -> Option<i64> {
        let number = field
            .node
            .scalar()
            .filter(|(_, plain)| *plain)
            .and_then(|(text, _)| integer(text));
        let Some(number) = number else {
            self.wrong_type(&format!("{} must be a whole number", field.label), &field.node);
            return None;
        };
        if range.contains(&number) {
            return Some(number);
        }
        let help =
            (*range.end() < i64::MAX).then(|| format!("allowed are {} to {}", range.start(), range.end()));
        self.report(Fault::error("config/out-of-range", field.at(), out_of_range).with_help_if(help));
        None
    }

    /// As `integer`, for ranges that fit.
    pub(super) fn count(
        &mut self,
        field: &Field,
        range: RangeInclusive<u32>,
        out_of_range: &str,
    ) -> Option<u32> {
        let range = i64::from(*range.start())..=i64::from(*range.end());
        let number = self.integer(field, range, out_of_range)?;
        u32::try_from(number).ok()
    }

    /// Milliseconds in a range; outside of it the fault has the given text.
    pub(super) fn duration(
        &mut self,
        field: &Field,
        range: RangeInclusive<u64>,
        out_of_range: &str,
    ) -> Option<u64> {
        let result = self.quantity(
            field,
            duration_ms,
            "must be a duration: seconds, or text like 30s, 5m, 1h30m",
        )?;
        self.within(field, result, &range, out_of_range)
    }

    /// Bytes in a range; outside of it the fault has the given text.
    pub(super) fn size(
        &mut self,
        field: &Field,
        range: RangeInclusive<u64>,
        out_of_range: &str,
    ) -> Option<u64> {
        let result = self.quantity(
            field,
            size_bytes,
            "must be a size: bytes, or text like 64KiB, 512M, 1.5GiB",
        )?;
        self.within(field, result, &range, out_of_range)
    }

    fn quantity(
        &mut self,
        field: &Field,
        parse: fn(&str) -> Result<u64, QuantityFault>,
        expected: &str,
    ) -> Option<Result<u64, QuantityFault>> {
        let parsed = field.node.scalar().map(|(text, _)| parse(text));
        match parsed {
            None | Some(Err(QuantityFault::Shape)) => {
                self.wrong_type(&format!("{} {expected}", field.label), &field.node);
                None
            }
            Some(result) => Some(result),
        }
    }

    fn within(
        &mut self,
        field: &Field,
        result: Result<u64, QuantityFault>,
        range: &RangeInclusive<u64>,
        out_of_range: &str,
    ) -> Option<u64> {
        match result {
            Ok(amount) if range.contains(&amount) => Some(amount),
            Ok(_) => {
                self.error("config/out-of-range", field.at(), out_of_range);
                None
            }
            Err(fault) => {
                let help = format!("the value {fault}");
                self.report(Fault::error("config/out-of-range", field.at(), out_of_range).with_help(help));
                None
            }
        }
    }

    /// Text as written; numbers and booleans count as their letters.
    pub(super) fn text(&mut self, field: &Field) -> Option<String> {
        self.text_of(&field.node, &field.label)
    }

    pub(super) fn text_of(&mut self, node: &Node, label: &str) -> Option<String> {
        let Some((text, _)) = node.scalar() else {
            self.wrong_type(&format!("{label} must be text"), node);
            return None;
        };
        if text.contains('\0') {
            self.error(
                "config/bad-value",
                &node.at,
                format!("{label} contains a NUL character"),
            );
            return None;
        }
        Some(text.to_owned())
    }

    /// Text that is not empty.
    pub(super) fn word(&mut self, field: &Field) -> Option<String> {
        let text = self.text(field)?;
        if text.trim().is_empty() {
            self.error(
                "config/bad-value",
                field.at(),
                format!("{} is empty", field.label),
            );
            return None;
        }
        Some(text)
    }

    /// Text in which `${…}` is replaced.
    pub(super) fn substituted(&mut self, field: &Field) -> Option<String> {
        self.substituted_of(&field.node, &field.label)
    }

    pub(super) fn substituted_of(&mut self, node: &Node, label: &str) -> Option<String> {
        let text = self.text_of(node, label)?;
        match substitute(&text, self.environment) {
            // A variable cannot hold NUL on Unix, but a caller's map can.
            Ok(result) if result.contains('\0') => {
                self.error(
                    "config/bad-value",
                    &node.at,
                    format!("{label} contains a NUL character"),
                );
                None
            }
            Ok(result) => Some(result),
            Err(faults) => {
                for fault in faults {
                    let at = self.inside(node, fault.span.start, fault.span.end);
                    self.error(
                        fault.code,
                        &at,
                        format!("{label}: {}", shown_sentence(&fault.message)),
                    );
                }
                None
            }
        }
    }

    /// A path after substitution; relative ones start at the file's folder, `~` is left as it is.
    pub(super) fn path(&mut self, field: &Field) -> Option<PathBuf> {
        let text = self.substituted(field)?;
        if text.is_empty() {
            self.error(
                "config/bad-value",
                field.at(),
                format!("{} is empty", field.label),
            );
            return None;
        }
        Some(resolved(&self.source.directory, &text))
    }

    /// One of some words; anything else gets the given text.
    pub(super) fn choice<T: Copy>(&mut self, field: &Field, words: &[(&str, T)], other: &str) -> Option<T> {
        let written = field.node.scalar().map_or("", |(text, _)| text);
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == written) {
            return Some(*value);
        }
        let help = nearest(written, words.iter().map(|(word, _)| *word))
            .map(|word| format!("did you mean `{word}`?"))
            .or_else(|| self.indentation_help(&field.node));
        self.report(Fault::error("config/bad-value", field.at(), other).with_help_if(help));
        None
    }

    /// `expectation` is a sentence without its end: `` `slots` must be a whole number``.
    pub(super) fn wrong_type(&mut self, expectation: &str, node: &Node) {
        let message = format!("{expectation}, not {}", node.described());
        let help = self.indentation_help(node).or_else(|| match node.scalar() {
            Some((text, false)) if integer(text).is_some() || matches!(text, "true" | "false") => {
                Some("remove the quotes".to_owned())
            }
            Some(_) | None => None,
        });
        self.report(Fault::error("config/wrong-type", &node.at, message).with_help_if(help));
    }

    /// A plain value that runs over several lines has usually swallowed a line that was meant as a key.
    fn indentation_help(&self, node: &Node) -> Option<String> {
        let (_, plain) = node.scalar()?;
        let raw = self.source.text.get(node.at.span.clone())?;
        (plain && raw.trim_end().contains(['\n', '\r'])).then(|| CHECK_INDENTATION.to_owned())
    }

    /// A part of a scalar, when the file shows it letter by letter; else the whole scalar.
    /// `start` and `end` are bytes of the scalar's text.
    pub(super) fn inside(&self, node: &Node, start: usize, end: usize) -> Place {
        self.part(node, start, end).unwrap_or_else(|| node.at.clone())
    }

    fn part(&self, node: &Node, start: usize, end: usize) -> Option<Place> {
        let (text, plain) = node.scalar()?;
        let opening = usize::from(!plain);
        let raw = self.source.text.get(node.at.span.clone())?;
        let is_on_one_line = plain || raw.starts_with(['"', '\'']);
        let written = raw.get(opening..opening + end)?;
        if !is_on_one_line || written != text.get(..end)? || written.contains('\n') {
            return None;
        }
        let begin = node.at.span.start + opening;
        Some(Place {
            column: node.at.column + opening + written.get(..start)?.chars().count(),
            span: begin + start..begin + end,
            ..node.at.clone()
        })
    }
}

/// A decimal whole number; one that does not fit is the nearest that does, hence out of any range.
fn integer(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    let far = if text.starts_with('-') { i64::MIN } else { i64::MAX };
    Some(text.parse().unwrap_or(far))
}

/// Without the `.` parts that joining leaves; `..` stays, because folders may be links.
pub(super) fn resolved(directory: &Path, text: &str) -> PathBuf {
    if text.starts_with('~') {
        return PathBuf::from(text);
    }
    directory
        .join(text)
        .components()
        .filter(|part| *part != Component::CurDir)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers() {
        for (text, expected) in [
            ("0", Some(0)),
            ("-5", Some(-5)),
            ("+5", Some(5)),
            ("99999999999999999999", Some(i64::MAX)),
            ("-99999999999999999999", Some(i64::MIN)),
            ("", None),
            ("-", None),
            ("1.0", None),
            ("1e3", None),
            ("0x10", None),
            ("1_000", None),
        ] {
            assert_eq!(integer(text), expected, "{text}");
        }
    }

    #[test]
    fn paths() {
        for (text, expected) in [
            ("./state", "/etc/d/state"),
            ("../state", "/etc/d/../state"),
            ("/abs", "/abs"),
            ("~/x", "~/x"),
            (".", "/etc/d"),
        ] {
            assert_eq!(resolved(Path::new("/etc/d"), text), PathBuf::from(expected));
        }
    }
}
