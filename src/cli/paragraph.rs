//! Sentences that fit a terminal: broken at blanks, never inside a word, so that ids and commands stay whole.

use unicode_width::UnicodeWidthStr;

/// A line is not made shorter than this, however deep it stands.
const WIDTH_MIN: usize = 24;

/// The text in lines of at most `width` columns; each but the first begins with `indent` blanks. The first one has that
/// much less room too: something stands before it. Line ends of the text stay.
pub(super) fn wrapped(text: &str, width: Option<usize>, indent: usize) -> String {
    let Some(width) = width else {
        return text.to_owned();
    };
    let room = width.saturating_sub(indent).max(WIDTH_MIN);
    let mut lines: Vec<String> = Vec::new();
    for line in text.split('\n') {
        let mut current = String::new();
        let mut used = 0;
        for word in line.split(' ') {
            let columns = visible(word);
            if used > 0 && used + 1 + columns > room {
                lines.push(std::mem::take(&mut current));
                used = 0;
            } else if !current.is_empty() {
                current.push(' ');
                used += 1;
            }
            current.push_str(word);
            used += columns;
        }
        lines.push(current);
    }
    lines.join(&format!("\n{}", " ".repeat(indent)))
}

/// Columns of a word without the codes of its colours.
fn visible(word: &str) -> usize {
    anstream::adapter::strip_str(word).to_string().width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_broken_at_blanks() {
        let text = "one two three four five six seven eight nine";
        assert_eq!(
            wrapped(text, Some(30), 4),
            "one two three four five\n    six seven eight nine"
        );
        assert_eq!(wrapped(text, None, 4), text);
        let id = "run_01kb7v0n3gf5tb2h6m8w9x4yza";
        assert_eq!(
            wrapped(&format!("see {id} now"), Some(24), 0),
            format!("see\n{id}\nnow")
        );
        assert_eq!(wrapped("a\nb", Some(80), 2), "a\n  b");
    }

    #[test]
    fn colours_take_no_room() {
        let painted = format!("{} b", "\u{1b}[31maaaaaaaaaaaaaaaaaaaaaa\u{1b}[0m");
        assert_eq!(wrapped(&painted, Some(24), 0), painted);
    }
}
