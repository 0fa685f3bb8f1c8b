//! Where `{{ expression }}` stands in a text.

/// A part of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part<'t> {
    /// As it stands.
    Text(&'t str),
    /// An expression, and the byte of the text at which it begins.
    Expression(&'t str, usize),
}

/// The parts of a text in order, or the byte at which an expression begins that has no end.
///
/// Inside an expression, `}}` in quotes or of a map in a map does not end it.
pub(super) fn parts(text: &str) -> Result<Vec<Part<'_>>, usize> {
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find("{{").map(|offset| at + offset) {
        if open > at {
            found.push(Part::Text(&text[at..open]));
        }
        let begin = open + 2;
        let end = end_of(&text[begin..]).map(|offset| begin + offset).ok_or(open)?;
        let inner = &text[begin..end];
        let trimmed = inner.trim_start();
        found.push(Part::Expression(
            trimmed.trim_end(),
            begin + inner.len() - trimmed.len(),
        ));
        at = end + 2;
    }
    if at < text.len() {
        found.push(Part::Text(&text[at..]));
    }
    Ok(found)
}

/// Where the `}}` of an expression stands that begins with this text.
pub(super) fn end_of(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let (mut at, mut depth) = (0, 0_usize);
    while at < bytes.len() {
        match bytes[at] {
            quote @ (b'"' | b'\'') => at = behind_quoted(bytes, at, quote),
            b'{' => {
                depth += 1;
                at += 1;
            }
            b'}' if depth > 0 => {
                depth -= 1;
                at += 1;
            }
            b'}' if bytes.get(at + 1) == Some(&b'}') => return Some(at),
            _ => at += 1,
        }
    }
    None
}

fn behind_quoted(bytes: &[u8], start: usize, quote: u8) -> usize {
    let mut at = start + 1;
    while at < bytes.len() {
        match bytes[at] {
            b'\\' => at += 2,
            byte if byte == quote => return at + 1,
            _ => at += 1,
        }
    }
    bytes.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_found_in_texts() {
        let check = |text: &str, expected: &[Part<'_>]| assert_eq!(parts(text).unwrap(), expected, "{text}");
        check("", &[]);
        check("plain } { text", &[Part::Text("plain } { text")]);
        check(
            "a {{ input.b }} c",
            &[Part::Text("a "), Part::Expression("input.b", 5), Part::Text(" c")],
        );
        check(
            "{{x}}{{ {'a': {'b': 1}}.a }}",
            &[Part::Expression("x", 2), Part::Expression("{'a': {'b': 1}}.a", 8)],
        );
        check(
            "{{ '}}' + \"\\\"}}\" }}",
            &[Part::Expression("'}}' + \"\\\"}}\"", 3)],
        );
        assert_eq!(parts("ab {{ input"), Err(3));
        assert_eq!(parts("{{ 'x }}"), Err(0));
    }

    proptest::proptest! {
        #[test]
        fn any_text_is_cut_without_loss(text in "[a{}'\" \\\\é]{0,40}") {
            if let Ok(parts) = parts(&text) {
                for part in parts {
                    if let Part::Expression(inner, at) = part {
                        proptest::prop_assert_eq!(&text[at..at + inner.len()], inner);
                    }
                }
            }
        }
    }
}
