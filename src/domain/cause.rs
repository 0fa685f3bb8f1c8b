//! The cause of a failure as a sentence in which everything is folded that differs between two occurrences of the same
//! fault, so that failures can be grouped by it. Numbers and ids become `#`, the changing parts of a path `*`.
//!
//! Numbers that say which fault it is stay: those of an exit code, a signal, a status.

/// Characters of a cause; what is longer is cut before it is folded.
pub const CAUSE_CHARS_MAX: usize = 200;
/// A number behind one of these words is part of the fault.
const NUMBERED: [&str; 7] = ["code", "signal", "status", "http", "errno", "error", "exit"];
/// Digits of such a number; a longer one is an id.
const KEPT_DIGITS_MAX: usize = 3;
/// Hex digits in one word from which on it is an id.
const HEX_DIGITS_MIN: usize = 8;
/// Letters and digits in one word from which on it is an id, if there are digits among them.
const ID_CHARS_MIN: usize = 16;

/// The cause of a failure whose reason is `text`. Folding it again changes nothing.
pub fn cause_of(text: &str) -> String {
    let mut out = String::with_capacity(text.len().min(CAUSE_CHARS_MAX * 4));
    let mut before = "";
    let line = one_line(text);
    for word in line.split(' ') {
        if !out.is_empty() {
            out.push(' ');
        }
        fold_word(&mut out, word, NUMBERED.contains(&bare(before).as_str()));
        before = word;
    }
    out
}

/// All on one line, spaces single, not too long.
fn one_line(text: &str) -> String {
    let words: Vec<&str> = text.split_whitespace().collect();
    let line: String = words.join(" ").chars().take(CAUSE_CHARS_MAX).collect();
    line.trim_end().to_owned()
}

/// A word without what stands around it, in small letters.
fn bare(word: &str) -> String {
    word.trim_matches(|letter: char| !letter.is_alphanumeric())
        .to_lowercase()
}

/// Appends a word; `is_numbered` if the word before says that a number here is part of the fault.
fn fold_word(out: &mut String, word: &str, is_numbered: bool) {
    let inner = word.trim_matches(|letter: char| !letter.is_ascii_alphanumeric() && letter != '/');
    let Some((head, tail)) = word.split_once(inner).filter(|_| !inner.is_empty()) else {
        out.push_str(word);
        return;
    };
    out.push_str(head);
    if is_numbered && inner.len() <= KEPT_DIGITS_MAX && inner.bytes().all(|byte| byte.is_ascii_digit()) {
        out.push_str(inner);
    } else if inner.contains('/') {
        fold_path(out, inner);
    } else if is_date(inner) {
        out.push('#');
    } else {
        fold_pieces(out, inner);
    }
    out.push_str(tail);
}

/// Segments with a digit, and what is temporary, change from one occurrence to the next.
fn fold_path(out: &mut String, path: &str) {
    let mut before = "";
    for (at, segment) in path.split('/').enumerate() {
        if at > 0 {
            out.push('/');
        }
        let changes = segment.bytes().any(|byte| byte.is_ascii_digit());
        if changes || (before == "tmp" && !segment.is_empty()) {
            out.push('*');
        } else {
            out.push_str(segment);
        }
        before = segment;
    }
}

/// `2026-03-08` and everything that begins like it.
fn is_date(word: &str) -> bool {
    let bytes = word.as_bytes();
    let digits = |from: usize, to: usize| {
        bytes
            .get(from..to)
            .is_some_and(|part| part.iter().all(u8::is_ascii_digit))
    };
    digits(0, 4)
        && bytes.get(4) == Some(&b'-')
        && digits(5, 7)
        && bytes.get(7) == Some(&b'-')
        && digits(8, 10)
}

/// A word in pieces of letters and digits; what stands between them stays.
fn fold_pieces(out: &mut String, word: &str) {
    if is_id(word) {
        out.push('#');
        return;
    }
    let mut folded = String::with_capacity(word.len());
    for piece in word.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric()) {
        let piece_end = piece
            .trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric())
            .len();
        let (own, mark) = piece.split_at(piece_end);
        if is_id(own) {
            folded.push('#');
        } else {
            fold_digits(&mut folded, own);
        }
        folded.push_str(mark);
    }
    // A number with a fraction, a version, an address.
    while folded.contains("#.#") {
        folded = folded.replace("#.#", "#");
    }
    out.push_str(&folded);
}

/// Long, and with digits: hex, base 32, a UUID.
fn is_id(word: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_';
    if !word.bytes().all(is_part) || !word.bytes().any(|byte| byte.is_ascii_digit()) {
        return false;
    }
    let signs = word.bytes().filter(u8::is_ascii_alphanumeric);
    let hex = word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    let most = if hex { HEX_DIGITS_MIN } else { ID_CHARS_MIN };
    signs.count() >= most
}

/// Each run of digits as one `#`.
fn fold_digits(out: &mut String, word: &str) {
    let mut in_digits = false;
    for letter in word.chars() {
        let is_digit = letter.is_ascii_digit();
        if !is_digit {
            out.push(letter);
        } else if !in_digits {
            out.push('#');
        }
        in_digits = is_digit;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_same_fault_has_the_same_cause() {
        for (text, cause) in [
            ("exit code 3", "exit code 3"),
            ("ended by signal 9", "ended by signal 9"),
            ("execution timeout of 5 s", "execution timeout of # s"),
            ("execution timeout of 0.25 s", "execution timeout of # s"),
            ("HTTP 503 from db-7:5432", "HTTP 503 from db-#:#"),
            ("no route to 10.0.0.7:443", "no route to #:#"),
            ("exit code 100200", "exit code #"),
            ("status: 404, try 3", "status: 404, try #"),
            ("run run_01m8mkpq69exbrk7xf3n14zqhg failed", "run # failed"),
            (
                "order 3f2504e0-4f89-11d3-9a0c-0305e82c3301: no such row",
                "order #: no such row",
            ),
            ("commit deadbeef12 is gone", "commit # is gone"),
            ("a decade of facades", "a decade of facades"),
            (
                "cannot open '/tmp/tmp.XaQkd/out.csv': No such file",
                "cannot open '/tmp/*/out.csv': No such file",
            ),
            (
                "cannot open /data/2026/03/08/export-17.csv",
                "cannot open /data/*/*/*/*",
            ),
            ("cannot open /var/lib/app/state", "cannot open /var/lib/app/state"),
            ("late since 2026-03-08T07:00:00.000Z.", "late since #."),
            ("verify: 3 rows\n  missing\tof 12", "verify: # rows missing of #"),
            ("", ""),
            (" \n ", ""),
        ] {
            assert_eq!(cause_of(text), cause, "{text}");
        }
    }

    #[test]
    fn a_long_reason_has_a_short_cause() {
        let text = "no space left on device ".repeat(100);
        assert!(cause_of(&text).chars().count() <= CAUSE_CHARS_MAX);
        assert_eq!(cause_of(&text), cause_of(&format!("{text} 7")));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn a_cause_is_its_own_cause(text in "(\\PC|[a-z0-9/ :.'#*-]){0,260}") {
            let cause = cause_of(&text);
            prop_assert_eq!(cause_of(&cause), cause.clone());
            prop_assert!(cause.chars().count() <= CAUSE_CHARS_MAX);
            prop_assert!(!cause.contains('\n'));
        }

        #[test]
        fn numbers_do_not_part_what_is_the_same(
            words in proptest::collection::vec("[g-z]{1,9}", 1..8), first in 0_u64..1_000_000, second in 0_u64..1_000_000
        ) {
            let with = |number: u64| {
                let text: Vec<String> = words.iter().map(|word| format!("{word} {number}")).collect();
                cause_of(&text.join(", "))
            };
            let is_numbered = words.iter().any(|word| NUMBERED.contains(&word.as_str()));
            prop_assert!(is_numbered || with(first) == with(second));
        }
    }
}
