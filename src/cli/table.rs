//! Tables: aligned columns that fit the terminal. Ids are never cut; long sentences are.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A sentence is not cut below this.
const SENTENCE_WIDTH_MIN: usize = 12;
const GAP: &str = "  ";

/// How a column behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// Left, never cut.
    Whole,
    /// Right, never cut.
    Number,
    /// Left, cut with `…` when the terminal is narrow.
    Sentence,
    /// A state's word: coloured on a terminal.
    State,
}

/// What is coloured in a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Paint {
    Nothing,
    Titles,
    States,
}

/// The colour of a state's word. The word alone says it already.
pub(super) fn state_style(word: &str) -> Style {
    let colour = match word.split([' ', ',']).next().unwrap_or_default() {
        "succeeded" | "live" | "ok" => AnsiColor::Green,
        "failed" | "timed_out" | "lost" | "upstream_failed" | "expired" | "unreadable" => AnsiColor::Red,
        "running" => AnsiColor::Blue,
        "queued" | "pending" | "ready" | "waiting" | "retrying" | "paused" => AnsiColor::Yellow,
        "cancelled" | "skipped" | "disabled" | "gone" => AnsiColor::BrightBlack,
        _ => return Style::new(),
    };
    Style::new().fg_color(Some(colour.into()))
}

/// Rows under titles.
#[derive(Debug)]
pub(super) struct Table {
    columns: Vec<(&'static str, Kind)>,
    rows: Vec<Vec<String>>,
}

/// Where a table goes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    /// Columns of the terminal; `None` = no limit.
    pub(super) width: Option<usize>,
    /// Colours may be used.
    pub(super) colour: bool,
    /// Titles are wanted.
    pub(super) titles: bool,
}

impl Table {
    /// An empty table.
    pub(super) fn new(columns: &[(&'static str, Kind)]) -> Table {
        Table {
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// One more row; line ends and control characters in it are made harmless.
    pub(super) fn row(&mut self, cells: &[String]) {
        debug_assert_eq!(cells.len(), self.columns.len());
        self.rows.push(cells.iter().map(|cell| one_line(cell)).collect());
    }

    /// The whole text.
    pub(super) fn render(&self, place: Place) -> String {
        let widths = self.widths(place);
        let mut text = String::new();
        if place.titles {
            let titles: Vec<String> = self
                .columns
                .iter()
                .map(|(title, _)| (*title).to_owned())
                .collect();
            let paint = if place.colour {
                Paint::Titles
            } else {
                Paint::Nothing
            };
            self.line(&titles, &widths, paint, &mut text);
        }
        let paint = if place.colour {
            Paint::States
        } else {
            Paint::Nothing
        };
        for row in &self.rows {
            self.line(row, &widths, paint, &mut text);
        }
        text
    }

    fn widths(&self, place: Place) -> Vec<usize> {
        let natural = |(at, (title, _)): (usize, &(&'static str, Kind))| {
            let title_width = if place.titles { title.width() } else { 0 };
            let cells = self.rows.iter().map(|row| row[at].width());
            cells.max().unwrap_or(0).max(title_width)
        };
        let mut widths: Vec<usize> = self.columns.iter().enumerate().map(natural).collect();
        let Some(limit) = place.width else { return widths };
        let total = widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1);
        let mut excess = total.saturating_sub(limit);
        for at in (0..widths.len()).rev() {
            if self.columns[at].1 == Kind::Sentence {
                let given = excess.min(widths[at].saturating_sub(SENTENCE_WIDTH_MIN));
                widths[at] -= given;
                excess -= given;
            }
        }
        widths
    }

    fn line(&self, cells: &[String], widths: &[usize], paint: Paint, text: &mut String) {
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            let kind = self.columns[at].1;
            let shown = match kind {
                Kind::Sentence => cut(cell, widths[at]),
                Kind::Whole | Kind::Number | Kind::State => cell.clone(),
            };
            let padding = " ".repeat(widths[at].saturating_sub(shown.width()));
            let style = match (paint, kind) {
                (Paint::Titles, _) => Style::new().dimmed(),
                (Paint::States, Kind::State) => state_style(&shown),
                (Paint::States | Paint::Nothing, _) => Style::new(),
            };
            let painted = format!("{style}{shown}{style:#}");
            if at > 0 {
                line.push_str(GAP);
            }
            if kind == Kind::Number {
                line.push_str(&padding);
                line.push_str(&painted);
            } else {
                line.push_str(&painted);
                line.push_str(&padding);
            }
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

/// Control characters would move the cursor of whoever reads it.
pub(super) fn one_line(text: &str) -> String {
    text.trim_end()
        .chars()
        .map(|letter| match letter {
            '\n' | '\r' | '\t' => ' ',
            letter if letter.is_control() => '\u{fffd}',
            letter => letter,
        })
        .collect()
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 1;
    let kept: String = text
        .chars()
        .take_while(|letter| {
            used += letter.width().unwrap_or(0);
            used <= width
        })
        .collect();
    format!("{}…", kept.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new(&[
            ("RUN", Kind::Whole),
            ("STATE", Kind::State),
            ("N", Kind::Number),
            ("REASON", Kind::Sentence),
        ]);
        let row = |cells: [&str; 4]| cells.map(str::to_owned).to_vec();
        table.row(&row(["run_1", "failed", "1", "the command ended with code 3"]));
        table.row(&row(["run_12", "running", "20", "\u{1b}[2Jx\ny"]));
        table
    }

    #[test]
    fn columns_are_aligned_and_nothing_is_coloured_off_a_terminal() {
        let place = Place {
            width: None,
            colour: false,
            titles: true,
        };
        assert_eq!(
            table().render(place),
            "RUN     STATE     N  REASON\n\
             run_1   failed    1  the command ended with code 3\n\
             run_12  running  20  \u{fffd}[2Jx y\n"
        );
    }

    #[test]
    fn a_narrow_terminal_cuts_sentences_and_never_ids() {
        let place = Place {
            width: Some(36),
            colour: false,
            titles: false,
        };
        assert_eq!(
            table().render(place),
            "run_1   failed    1  the command en…\nrun_12  running  20  \u{fffd}[2Jx y\n"
        );
        let narrow = Place {
            width: Some(5),
            colour: false,
            titles: false,
        };
        assert!(table().render(narrow).contains("run_12  running  20"));
    }

    #[test]
    fn states_have_a_colour_on_a_terminal() {
        let place = Place {
            width: None,
            colour: true,
            titles: false,
        };
        assert!(table().render(place).contains("\u{1b}[31mfailed\u{1b}[0m"));
    }

    #[test]
    fn wide_letters_count_twice() {
        assert_eq!(cut("日本語", 5), "日本…");
        assert_eq!(cut("日本語", 6), "日本語");
    }
}
