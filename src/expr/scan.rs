//! What is looked at before the parser runs: length, and how many names and literals there are.
//!
//! Each of them becomes at least one node, so a text with more of them than nodes are allowed is refused without being
//! parsed: the parser goes one stack frame deeper for each term of a chain. This is no lexer of the language; what is
//! wrong in other ways is for the parser to say.

use super::fault::{Fault, Kind, Profile};
use super::limits::{NODES_MAX, SOURCE_BYTES_MAX};

/// Refuses what need not be parsed.
pub(super) fn check(text: &str, profile: Profile) -> Result<(), Fault> {
    if text.len() > SOURCE_BYTES_MAX {
        let message = format!(
            "the expression has {} bytes, and {SOURCE_BYTES_MAX} are allowed; compute this in a step",
            text.len()
        );
        return Err(Kind::TooLong.fault(profile, message, None));
    }
    if text.trim().is_empty() {
        return Err(Kind::Syntax.fault(profile, "the expression is empty", Some(0)));
    }
    if let Some(at) = text.find(|letter: char| letter.is_control() && !"\n\r\t".contains(letter)) {
        let message = "the expression contains a control character; write it as \\u00.. inside a text";
        return Err(Kind::Syntax.fault(profile, message, Some(at)));
    }
    match nth_term(text, NODES_MAX + 1) {
        None => Ok(()),
        Some(at) => Err(too_large(profile, Some(at))),
    }
}

pub(super) fn too_large(profile: Profile, position: Option<usize>) -> Fault {
    let message =
        format!("the expression has more than {NODES_MAX} parts; split it, or compute this in a step");
    Kind::TooLarge.fault(profile, message, position)
}

/// Where the `wanted`-th name or literal begins, counted from 1.
fn nth_term(text: &str, wanted: usize) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut terms) = (0, 0);
    while at < bytes.len() {
        let start = at;
        let is_term = match bytes[at] {
            b'/' if bytes.get(at + 1) == Some(&b'/') => {
                at = line_end(bytes, at);
                false
            }
            b'"' | b'\'' => {
                at = behind_quoted(bytes, at);
                true
            }
            byte if is_word(byte) => {
                while at < bytes.len() && is_word(bytes[at]) {
                    at += 1;
                }
                // A prefix (`r`, `b`) belongs to the text that follows it.
                if matches!(bytes.get(at), Some(b'"' | b'\'')) && at - start <= 2 {
                    at = behind_quoted(bytes, at);
                }
                true
            }
            _ => {
                at += 1;
                false
            }
        };
        terms += usize::from(is_term);
        if terms == wanted {
            return Some(start);
        }
    }
    None
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

fn line_end(bytes: &[u8], from: usize) -> usize {
    bytes[from..]
        .iter()
        .position(|byte| *byte == b'\n')
        .map_or(bytes.len(), |length| from + length)
}

/// Behind the closing quote; texts with three quotes are read as an empty one, a text and an empty one, which counts
/// more terms than there are by two.
fn behind_quoted(bytes: &[u8], open: usize) -> usize {
    let mut at = open + 1;
    while at < bytes.len() && bytes[at] != bytes[open] {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    (at + 1).min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_are_names_and_literals() {
        let count = |text: &str| {
            (1..=text.len())
                .take_while(|wanted| nth_term(text, *wanted).is_some())
                .count()
        };
        assert_eq!(count("a+b . c"), 3);
        assert_eq!(count("!!!!((a))"), 1);
        assert_eq!(count("'a b \\' c' + r\"x y\" + b'z'"), 3);
        assert_eq!(count("a // b c d\n + e"), 2);
        assert_eq!(
            count("1.5 + 0x1F"),
            3,
            "a number with a point counts twice, which only errs"
        );
        assert_eq!(count("'open"), 1);
        assert_eq!(count("'\\"), 1);
    }

    #[test]
    fn what_is_empty_or_long_is_not_parsed() {
        let code = |text: &str| check(text, Profile::Workflow).unwrap_err().code;
        assert_eq!(code("  \n"), "expr.syntax");
        assert_eq!(code("a\u{0}b"), "expr.syntax");
        assert_eq!(code(&"a".repeat(4_097)), "expr.too_long");
        assert_eq!(code(&vec!["a"; 1_390].join("+")), "expr.too_large");
        assert_eq!(check(&vec!["a"; 1_000].join("+"), Profile::Rule), Ok(()));
    }
}
