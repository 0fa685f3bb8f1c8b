//! What is wrong with a posted document: where, which rule, and a sentence.

use serde::Serialize;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Where, as a JSON pointer (RFC 6901) into the posted document; empty for the document as a whole.
    pub pointer: String,
    /// Stable: `workflow.…`, or the code of an expression.
    pub code: &'static str,
    /// For whoever wrote it.
    pub message: String,
}

impl Finding {
    /// A finding at a place.
    pub fn new(pointer: impl Into<String>, code: &'static str, message: impl Into<String>) -> Finding {
        Finding {
            pointer: pointer.into(),
            code,
            message: message.into(),
        }
    }
}

/// A name as one part of a pointer.
pub fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

/// A pointer to a member of what `at` points to.
pub fn below(at: &str, name: &str) -> String {
    format!("{at}/{}", escaped(name))
}

/// The user's own words inside a sentence: short, on one line, visible.
pub fn shown(text: &str) -> String {
    let mut out: String = { text.chars().take(60) }
        .map(|letter| if letter.is_control() { '\u{fffd}' } else { letter })
        .collect();
    if text.chars().nth(60).is_some() {
        out.push('…');
    }
    out
}

/// The known word that was probably meant: at most two letters or a third of the word away.
pub fn nearest<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> Option<&'w str> {
    if word.len() > 128 {
        return None;
    }
    let far = (word.chars().count() / 3).max(2);
    { known.into_iter() }
        .map(|known| (strsim::damerau_levenshtein(word, known), known))
        .min()
        .filter(|(distance, _)| *distance <= far)
        .map(|(_, known)| known)
}

/// `; did you mean …?`, or nothing.
pub fn did_you_mean<'w>(word: &str, known: impl IntoIterator<Item = &'w str>) -> String {
    nearest(word, known).map_or_else(String::new, |known| format!("; did you mean `{known}`?"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pointers_and_words() {
        assert_eq!(below("/steps/0", "a/b~c"), "/steps/0/a~1b~0c");
        assert_eq!(
            did_you_mean("stpes", ["steps", "edges"]),
            "; did you mean `steps`?"
        );
        assert_eq!(did_you_mean("colour", ["steps", "edges"]), "");
        assert_eq!(shown("a\nb"), "a\u{fffd}b");
    }
}
