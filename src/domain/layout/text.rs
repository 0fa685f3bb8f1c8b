//! A picture as text: one line for each step, rails for its edges, and what is said of it in columns.
//!
//! Words say everything; marks and, where a terminal has it, colour only repeat them. Which colour is not known here.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use unicode_width::UnicodeWidthChar;

use super::drawing::{Drawing, Placed};
use super::rails::{reading_order, rows};

/// A title keeps at least this much room.
const TITLE_MIN: usize = 16;
/// What is noted beside a step gets at least this much where titles are long.
const NOTE_MIN: usize = 24;
/// Before the lines of a body.
const BODY: &str = "┆ ";

/// What is said of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Label {
    /// One character in the rails.
    pub mark: char,
    /// Its title.
    pub title: String,
    /// Its state, or its type where there is no run.
    pub word: String,
    /// More, such as the counts of its branches.
    pub note: String,
}

/// The mark of a state, one column wide; words that are no states have that of what has not begun.
pub fn mark_of(word: &str) -> char {
    match word {
        "succeeded" | "continued" => '✓',
        "failed" | "upstream_failed" | "timed_out" | "lost" => '✗',
        "running" => '●',
        "waiting" | "queued" => '◷',
        "retrying" => '↻',
        "paused" => '‖',
        "skipped" => '»',
        "cancelled" => '■',
        _ => '○',
    }
}

/// One line in its parts, so that a terminal may colour them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextLine {
    /// The key of the step; `None` for a line that only joins rails.
    pub key: Option<String>,
    /// Rails left of the mark.
    pub before: String,
    /// The mark.
    pub mark: Option<char>,
    /// Rails right of the mark, filled up to the title.
    pub after: String,
    /// The title, cut and filled up to the word.
    pub title: String,
    /// The state or type.
    pub word: String,
    /// What else is said, after the gap that it needs.
    pub note: String,
}

/// The picture in lines of at most `width` columns. Steps without a label are called by their keys.
pub fn text(drawing: &Drawing, labels: &BTreeMap<String, Label>, width: usize) -> Vec<TextLine> {
    let mut drawn = level(drawing, None, true);
    let mut rails = drawn.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    let is_listed = rails > width / 2;
    if is_listed {
        drawn = level(drawing, None, false);
        rails = drawn.iter().map(|row| row.cells.len()).max().unwrap_or(0);
    }
    let noted = Notes::of(drawing);
    let said: Vec<Option<Label>> = drawn
        .iter()
        .map(|row| {
            row.node
                .map(|node| label(node, labels, &noted, is_listed || row.is_listed))
        })
        .collect();
    let columns = Columns::of(said.iter().flatten(), width.saturating_sub(rails));
    let lines = drawn.iter().zip(&said);
    lines
        .map(|(row, said)| line(row, said.as_ref(), rails, &columns))
        .collect()
}

/// The lines as text, without spaces at their ends.
pub fn plain(lines: &[TextLine]) -> String {
    let mut text = String::new();
    for line in lines {
        let mut whole = line.before.clone();
        whole.extend(line.mark);
        let _ = write!(whole, "{}{}{}{}", line.after, line.title, line.word, line.note);
        text.push_str(whole.trim_end());
        text.push('\n');
    }
    text
}

/// A row of the picture: its characters, the place of the mark, the step.
struct Drawn<'a> {
    cells: Vec<char>,
    at: usize,
    node: Option<&'a Placed>,
    /// Without rails: its predecessors are named.
    is_listed: bool,
}

/// The rows of one graph, with those of the bodies in it.
fn level<'a>(drawing: &'a Drawing, parent: Option<&str>, with_rails: bool) -> Vec<Drawn<'a>> {
    let mut nodes: Vec<&Placed> = drawing
        .nodes
        .iter()
        .filter(|node| node.parent.as_deref() == parent)
        .collect();
    nodes.sort_by_key(|node| (node.x, node.y));
    let places: BTreeMap<&str, usize> = (0..)
        .zip(&nodes)
        .map(|(at, node)| (node.key.as_str(), at))
        .collect();
    let mut after = vec![BTreeSet::new(); nodes.len()];
    for line in &drawing.lines {
        if let (Some(&from), Some(&to)) = (places.get(line.from.as_str()), places.get(line.to.as_str())) {
            after[from].insert(to);
        }
    }
    let Some(rows) = with_rails.then(|| rows(&after)).flatten() else {
        let listed = reading_order(&after).into_iter().flat_map(|at| {
            let own = Drawn {
                cells: vec![' '],
                at: 0,
                node: Some(nodes[at]),
                is_listed: true,
            };
            let body = body(drawing, nodes[at], &[' ', ' '], with_rails);
            [own].into_iter().chain(body)
        });
        return listed.collect();
    };
    let mut drawn = Vec::new();
    for row in &rows {
        let node = row.node.map(|at| nodes[at]);
        drawn.push(Drawn {
            cells: row.cells().flatten().collect(),
            at: 2 * row.at,
            node,
            is_listed: false,
        });
        if let Some(node) = node {
            let rails: Vec<char> = row.below().flatten().collect();
            drawn.extend(body(drawing, node, &rails, with_rails));
        }
    }
    drawn
}

/// What stands inside of a box, beside the rails around it.
fn body<'a>(drawing: &'a Drawing, node: &Placed, rails: &[char], with_rails: bool) -> Vec<Drawn<'a>> {
    if drawing
        .nodes
        .iter()
        .all(|inner| inner.parent.as_ref() != Some(&node.key))
    {
        return Vec::new();
    }
    let mut inner = level(drawing, Some(&node.key), with_rails);
    for row in &mut inner {
        let cells: Vec<char> = rails
            .iter()
            .copied()
            .chain(BODY.chars())
            .chain(row.cells.drain(..))
            .collect();
        row.cells = cells;
        row.at += rails.len() + BODY.chars().count();
    }
    inner
}

/// What edges say beside their steps, by the key of their target.
struct Notes<'a> {
    conditions: BTreeMap<&'a str, Vec<String>>,
    before: BTreeMap<&'a str, Vec<&'a str>>,
}

impl<'a> Notes<'a> {
    fn of(drawing: &'a Drawing) -> Notes<'a> {
        let mut notes = Notes {
            conditions: BTreeMap::new(),
            before: BTreeMap::new(),
        };
        for line in &drawing.lines {
            let from = &line.from;
            let said = match line.kind.as_str() {
                "EDGE_TYPE_FAILURE" => Some(format!("if {from} fails")),
                "EDGE_TYPE_ALWAYS" => Some(format!("however {from} ends")),
                "EDGE_TYPE_CONDITION" => Some(format!("if {from} meets a condition")),
                _ => None,
            };
            notes.conditions.entry(&line.to).or_default().extend(said);
            let before = notes.before.entry(&line.to).or_default();
            if !before.contains(&from.as_str()) {
                before.push(from);
            }
        }
        notes
    }
}

fn label(node: &Placed, labels: &BTreeMap<String, Label>, notes: &Notes<'_>, is_listed: bool) -> Label {
    let mut label = labels.get(&node.key).cloned().unwrap_or_else(|| Label {
        mark: '○',
        title: node.key.clone(),
        ..Label::default()
    });
    let key = node.key.as_str();
    let mut said: Vec<String> = Vec::new();
    said.extend((!label.note.is_empty()).then(|| label.note.clone()));
    if node.folded > 0 {
        let steps = if node.folded == 1 { "step" } else { "steps" };
        said.push(format!("{} {steps} inside", node.folded));
    }
    said.extend(notes.conditions.get(key).into_iter().flatten().cloned());
    if let Some(before) = notes.before.get(key).filter(|_| is_listed) {
        said.push(format!("after {}", before.join(", ")));
    }
    label.note = said.join("; ");
    for text in [&mut label.title, &mut label.word, &mut label.note] {
        *text = printable(text);
    }
    label
}

/// How wide the columns are.
struct Columns {
    title: usize,
    word: usize,
    note: usize,
}

impl Columns {
    fn of<'a>(labels: impl Iterator<Item = &'a Label>, width: usize) -> Columns {
        let (mut title, mut word, mut note) = (0, 0, 0);
        for label in labels {
            title = title.max(wide(&label.title));
            word = word.max(wide(&label.word));
            note = note.max(wide(&label.note));
        }
        let gap = |width: usize| if width == 0 { 0 } else { width + 2 };
        let room = width.saturating_sub(gap(word));
        let title = title.min(
            room.saturating_sub(gap(note.min(NOTE_MIN)))
                .max(TITLE_MIN.min(room)),
        );
        let note = note.min(room.saturating_sub(title + 2));
        Columns { title, word, note }
    }
}

fn line(row: &Drawn<'_>, said: Option<&Label>, rails: usize, columns: &Columns) -> TextLine {
    let at = row.at.min(row.cells.len());
    let Some(label) = said else {
        return TextLine {
            before: row.cells.iter().collect(),
            ..TextLine::default()
        };
    };
    let mut after: String = row.cells.iter().skip(at + 1).collect();
    after.extend(std::iter::repeat_n(' ', rails - row.cells.len()));
    let has_more = !label.word.is_empty() || !label.note.is_empty();
    let title = cut(&label.title, columns.title);
    let word = cut(&label.word, columns.word);
    TextLine {
        key: row.node.map(|node| node.key.clone()),
        before: row.cells[..at].iter().collect(),
        mark: Some(label.mark),
        after,
        title: if has_more {
            filled(title, columns.title + 2)
        } else {
            title
        },
        word: if label.note.is_empty() {
            word
        } else {
            filled(word, columns.word)
        },
        note: match cut(&label.note, columns.note) {
            note if note.is_empty() => note,
            note if columns.word == 0 => note,
            note => format!("  {note}"),
        },
    }
}

/// What a terminal would take for a command, or would not show, becomes a visible mark.
fn printable(text: &str) -> String {
    let shown = |mark: char| match mark {
        '\n' | '\t' | '\r' => ' ',
        mark if mark.is_control() || mark.width() == Some(0) => '\u{fffd}',
        mark => mark,
    };
    text.chars().map(shown).collect()
}

fn wide(text: &str) -> usize {
    text.chars().filter_map(UnicodeWidthChar::width).sum()
}

/// At most so many columns, with an ellipsis where something is missing.
fn cut(text: &str, most: usize) -> String {
    if wide(text) <= most {
        return text.to_owned();
    }
    let mut kept = String::new();
    let mut used = 1;
    for mark in text.chars() {
        used += mark.width().unwrap_or(0);
        if used > most {
            break;
        }
        kept.push(mark);
    }
    if most > 0 {
        kept.push('…');
    }
    kept
}

fn filled(mut text: String, to: usize) -> String {
    let used = wide(&text);
    text.extend(std::iter::repeat_n(' ', to.saturating_sub(used)));
    text
}
