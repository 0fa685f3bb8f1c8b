//! Broken YAML in words that help: where it is, and what usually lies behind it.

use granit_parser::{ErrorKind, ScanError};

use super::fault::{Fault, Place, shown, shown_sentence};
use super::source::Source;

/// Characters that cannot begin a plain value but often begin a schedule or a pattern.
const NEEDS_QUOTES: [char; 4] = ['*', '@', '%', '`'];

pub(super) const CHECK_INDENTATION: &str = "check the indentation of the next line";

const NO_TABS: &str = "indent with spaces; YAML takes no tabs there";
const SAME_COLUMN: &str = "check the indentation of this line: keys of one map begin in the same column";

/// What usually lies behind an error of the parser.
const HELPS: [(ErrorKind, &str); 10] = [
    (ErrorKind::RecursionLimitExceeded, "the nesting is too deep here"),
    (ErrorKind::TabNotAllowed, NO_TABS),
    (ErrorKind::TabInBlockIndentation, NO_TABS),
    (ErrorKind::TabInIndentation, NO_TABS),
    (ErrorKind::ExpectedBlockSequenceEntry, SAME_COLUMN),
    (ErrorKind::ExpectedBlockMappingKey, SAME_COLUMN),
    (ErrorKind::InvalidIndentation, SAME_COLUMN),
    (ErrorKind::SimpleKeyExpected, SAME_COLUMN),
    (
        ErrorKind::UnclosedQuotedScalar,
        "the quote that opens here is never closed",
    ),
    (
        ErrorKind::UnknownQuotedScalarEscape,
        "in double quotes `\\` begins an escape; use single quotes to keep it",
    ),
];

/// The fault for an error of the parser.
pub(super) fn fault(source: &Source, error: &ScanError) -> Fault {
    let marker = error.marker();
    let offset = marker.byte_offset().unwrap_or(0);
    let at = Place {
        file: source.name.clone(),
        line: marker.line(),
        column: marker.col() + 1,
        span: offset..offset,
    };
    if let Some(fault) = unquoted(source, &at) {
        return fault;
    }
    Fault::error(
        "config/syntax",
        &at,
        format!("this is not valid YAML: {}", shown_sentence(&error.info())),
    )
    .with_help_if(help(source, error.kind(), offset))
}

/// `*name` without `&name`: nearly always a schedule without quotes.
pub(super) fn unknown_alias(source: &Source, at: &Place, name: &str) -> Fault {
    unquoted(source, at).unwrap_or_else(|| {
        Fault::error(
            "config/syntax",
            at,
            format!(
                "`*{}` refers to an anchor that is not defined before it",
                shown(name)
            ),
        )
        .with_help("a value that begins with `*` must stand in quotes")
    })
}

/// A value that begins with a character of YAML's own. The place becomes the whole value.
fn unquoted(source: &Source, at: &Place) -> Option<Fault> {
    let text = &source.text;
    let (line_start, line) = line_around(text, at.span.start)?;
    let value_start = value_start(line)?;
    let value = line[value_start..].trim_end();
    let first = value.chars().next()?;
    let is_at_fault = line_start + value_start <= at.span.start;
    if !NEEDS_QUOTES.contains(&first) || !is_at_fault {
        return None;
    }
    let start = line_start + value_start;
    let place = Place {
        file: at.file.clone(),
        line: at.line,
        column: line[..value_start].chars().count() + 1,
        span: start..start + value.len(),
    };
    let written = shown(value);
    let help = if value.contains(['"', '\\']) {
        format!("put it in quotes: '{}'", written.replace('\'', "''"))
    } else {
        format!("put it in quotes: \"{written}\"")
    };
    Some(
        Fault::error(
            "config/syntax",
            &place,
            format!("a value cannot begin with `{first}` unless it stands in quotes"),
        )
        .with_help(help),
    )
}

/// Where the value of `key: value`, `- value` or `- key: value` begins in its line.
fn value_start(line: &str) -> Option<usize> {
    let indented = line.trim_start_matches([' ', '-']);
    let content = line.len() - indented.len();
    let after_key = match indented.find(": ") {
        Some(colon) if is_bare_key(&indented[..colon]) => content + colon + 2,
        Some(_) | None => content,
    };
    let value = line[after_key..].trim_start();
    (!value.is_empty()).then(|| line.len() - value.len())
}

fn is_bare_key(text: &str) -> bool {
    !text.is_empty()
        && text
            .chars()
            .all(|letter| letter.is_alphanumeric() || matches!(letter, '_' | '-' | '.'))
}

fn help(source: &Source, kind: &ErrorKind, offset: usize) -> Option<String> {
    if matches!(kind, ErrorKind::MappingValueNotAllowed) {
        return Some(if goes_deeper(&source.text, offset) {
            CHECK_INDENTATION.to_owned()
        } else {
            "a text that contains `: ` must stand in quotes".to_owned()
        });
    }
    HELPS
        .iter()
        .find(|(known, _)| known == kind)
        .map(|(_, words)| (*words).to_owned())
}

/// The line of the fault stands deeper than the line before it that holds something.
fn goes_deeper(text: &str, offset: usize) -> bool {
    let Some((start, line)) = line_around(text, offset) else {
        return false;
    };
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '-']).len();
    text[..start]
        .lines()
        .rev()
        .take(100)
        .find(|before| !before.trim().is_empty())
        .is_some_and(|before| indent(line) > indent(before))
}

/// The line that holds a byte: where it begins, and its text without the line break.
pub(super) fn line_around(text: &str, offset: usize) -> Option<(usize, &str)> {
    let before = text.get(..offset)?;
    let start = before.rfind(['\n', '\r']).map_or(0, |found| found + 1);
    let rest = &text[start..];
    let end = rest.find(['\n', '\r']).unwrap_or(rest.len());
    Some((start, &rest[..end]))
}
