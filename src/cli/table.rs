//! Tables: aligned columns that fit the terminal. Ids are never cut; long sentences are.

use anstyle::{AnsiColor, Style};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// A sentence is not cut below this.
const SENTENCE_WIDTH_MIN: usize = 12;
/// A name that stands beside an id is not cut below this.
const NAME_WIDTH_MIN: usize = 8;
/// Before a cell that stands below its row.
const INDENT: &str = "    ";
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
    /// Left, cut when the sentences are cut and it is still too much.
    Name,
    /// On a line of its own below its row, without a title; no line when empty.
    Below,
    /// A state's word: coloured on a terminal.
    State,
}

impl Kind {
    /// What it may be cut to.
    fn least(self, natural: usize) -> usize {
        match self {
            Kind::Sentence => natural.min(SENTENCE_WIDTH_MIN),
            Kind::Name => natural.min(NAME_WIDTH_MIN),
            Kind::Whole | Kind::Number | Kind::State => natural,
            Kind::Below => 0,
        }
    }
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
        "failed" | "timed_out" | "lost" | "upstream_failed" | "expired" | "unreadable" | "late" | "dead" => {
            AnsiColor::Red
        }
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
    columns: Vec<(String, Kind)>,
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
    pub(super) fn new(columns: &[(&str, Kind)]) -> Table {
        let owned = columns.iter().map(|(title, kind)| ((*title).to_owned(), *kind));
        Table {
            columns: owned.collect(),
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
            let titles: Vec<String> = self.columns.iter().map(|(title, _)| title.clone()).collect();
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
            let below = row.iter().zip(&self.columns);
            for (cell, _) in below.filter(|(cell, (_, kind))| *kind == Kind::Below && !cell.is_empty()) {
                let room = place.width.map(|limit| limit.saturating_sub(INDENT.len()));
                let shown = room.map_or_else(|| cell.clone(), |room| cut(cell, room.max(SENTENCE_WIDTH_MIN)));
                text.extend([INDENT, &shown, "\n"]);
            }
        }
        text
    }

    /// True when the terminal is wide enough, with everything cut that may be.
    pub(super) fn fits(&self, place: Place) -> bool {
        let natural = self.natural(place);
        let least = natural.iter().zip(&self.columns);
        let least: Vec<usize> = least.map(|(width, (_, kind))| kind.least(*width)).collect();
        place.width.is_none_or(|limit| self.total(&least) <= limit)
    }

    fn total(&self, widths: &[usize]) -> usize {
        let beside = self.columns.iter().filter(|(_, kind)| *kind != Kind::Below);
        widths.iter().sum::<usize>() + GAP.len() * beside.count().saturating_sub(1)
    }

    fn natural(&self, place: Place) -> Vec<usize> {
        let natural = |(at, (title, kind)): (usize, &(String, Kind))| {
            if *kind == Kind::Below {
                return 0;
            }
            let title_width = if place.titles { title.width() } else { 0 };
            let cells = self.rows.iter().map(|row| row[at].width());
            cells.max().unwrap_or(0).max(title_width)
        };
        self.columns.iter().enumerate().map(natural).collect()
    }

    fn widths(&self, place: Place) -> Vec<usize> {
        let mut widths = self.natural(place);
        let Some(limit) = place.width else { return widths };
        let mut excess = self.total(&widths).saturating_sub(limit);
        for kind in [Kind::Sentence, Kind::Name] {
            for at in (0..widths.len()).rev().filter(|at| self.columns[*at].1 == kind) {
                let given = excess.min(widths[at] - kind.least(widths[at]));
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
                Kind::Below => continue,
                Kind::Sentence | Kind::Name => cut(cell, widths[at]),
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

/// Asserts that a table fits 80 columns.
#[cfg(test)]
pub(super) fn assert_80(table: &Table) {
    let place = Place {
        width: Some(80),
        colour: false,
        titles: true,
    };
    let text = table.render(place);
    assert!(text.lines().all(|line| line.width() <= 80), "{text}");
    assert!(table.fits(place), "{text}");
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
    fn what_stands_below_takes_no_column() {
        let mut table = Table::new(&[("RUN", Kind::Whole), ("WHY", Kind::Below), ("JOB", Kind::Name)]);
        let row = |cells: [&str; 3]| cells.map(str::to_owned);
        table.row(&row(["run_1", "it waits for a slot", "nightly-backup"]));
        table.row(&row(["run_2", "", "b"]));
        let place = |width| Place {
            width: Some(width),
            colour: false,
            titles: true,
        };
        assert_eq!(
            table.render(place(18)),
            "RUN    JOB\nrun_1  nightly-ba…\n    it waits for…\nrun_2  b\n"
        );
        assert!(table.fits(place(15)) && !table.fits(place(14)));
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
