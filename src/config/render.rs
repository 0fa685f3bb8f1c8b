//! Faults for people: the source line, a caret, what to do. The only user of annotate-snippets.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{Annotation, AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::fault::{Fault, Place, Severity};
use super::source::Sources;
use super::syntax::line_around;

/// A longer line is not shown: its place is named instead.
const LINE_BYTES_MAX: usize = 500;

/// Whether escape sequences may be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Paint {
    Plain,
    Coloured,
}

/// One block per fault with an empty line between; ends with a line break unless it is empty.
pub fn render(faults: &[Fault], sources: &Sources, paint: Paint) -> String {
    let renderer = match paint {
        Paint::Plain => Renderer::plain(),
        Paint::Coloured => Renderer::styled(),
    }
    .decor_style(DecorStyle::Ascii);
    let blocks: Vec<String> = faults
        .iter()
        .map(|fault| renderer.render(&report(fault, sources)) + "\n")
        .collect();
    blocks.join("\n")
}

fn report<'f>(fault: &'f Fault, sources: &'f Sources) -> Vec<Group<'f>> {
    let level = match fault.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
        Severity::Note => Level::NOTE,
    };
    let title = level.primary_title(fault.message.as_str()).id(fault.code);
    let help = fault.help.as_deref();
    let mut groups = if let Some(line) = cut(&fault.at, sources) {
        let caret = AnnotationKind::Primary.span(line.span()).label(help);
        vec![title.element(line.snippet(&fault.at, caret))]
    } else {
        let help = help.map(|help| Level::HELP.message(help));
        vec![title.element(origin(&fault.at)).elements(help)]
    };
    for (at, sentence) in &fault.related {
        let title = Level::NOTE.secondary_title(sentence.as_str());
        groups.push(match cut(at, sources) {
            Some(line) => {
                let mark = AnnotationKind::Context.span(line.span());
                title.element(line.snippet(at, mark))
            }
            None => title.element(origin(at)),
        });
    }
    groups
}

fn origin(at: &Place) -> Origin<'_> {
    let origin = Origin::path(&*at.file);
    if at.line == 0 {
        return origin;
    }
    origin.line(at.line).char_column(at.column)
}

/// The one line of a source that holds a place, and where in the line it is.
struct Line<'s> {
    text: &'s str,
    start: usize,
    end: usize,
}

impl<'s> Line<'s> {
    fn span(&self) -> std::ops::Range<usize> {
        self.start..self.end
    }

    fn snippet(&self, at: &'s Place, annotation: Annotation<'s>) -> Snippet<'s, Annotation<'s>> {
        Snippet::source(self.text)
            .line_start(at.line)
            .path(&*at.file)
            .annotation(annotation)
    }
}

/// Only this line goes to the renderer, so that a long file costs no more than a short one.
fn cut<'s>(at: &Place, sources: &'s Sources) -> Option<Line<'s>> {
    if at.line == 0 {
        return None;
    }
    let source = sources.text_of(&at.file)?;
    let (line_start, text) = line_around(source, at.span.start)?;
    if text.len() > LINE_BYTES_MAX {
        return None;
    }
    // A byte order mark has no width but would be counted as a column.
    let mark = text.len() - text.trim_start_matches('\u{feff}').len();
    let text = &text[mark..];
    let start = (at.span.start - line_start).saturating_sub(mark).min(text.len());
    let end = at.span.end.saturating_sub(line_start + mark).min(text.len());
    let trimmed = text.trim_end().len();
    // A span over several lines is marked on its first; an empty one marks the next character.
    let end = end.min(trimmed.max(start)).max(start);
    Some(Line {
        text,
        start,
        end: if end == start {
            next_boundary(text, start)
        } else {
            end
        },
    })
}

fn next_boundary(text: &str, start: usize) -> usize {
    text[start..]
        .chars()
        .next()
        .map_or(start, |letter| start + letter.len_utf8())
}
