//! The two streams: data to standard output, everything else to standard error.

use std::io::{ErrorKind, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use serde_json::Value;

use super::args::Global;
use super::failure::Failure;
use super::paragraph::wrapped;
use super::table::{Place, Table};
use super::times::{self, Clockface};
use crate::os::terminal;
use crate::words::time::{Clock, Millis, SystemClock};

/// How much of a table is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fit {
    /// Everything.
    Wide,
    /// Times are short, sentences stand below their rows.
    Narrow,
    /// Only what cannot be left out.
    Least,
}

/// How this command shows what it has.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(super) struct Show {
    /// Print the API's bodies.
    pub(super) json: bool,
    quiet: bool,
    colour: bool,
    colour_on_stderr: bool,
    width: Option<usize>,
    width_of_stderr: Option<usize>,
    face: Clockface,
}

/// Colours are for a terminal that wants them.
fn wants_colour(no_color: bool, terminal: bool) -> bool {
    let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    terminal && !no_color && !unwanted && !dumb
}

impl Show {
    /// Without colours, in UTC.
    #[cfg(test)]
    pub(super) fn plain() -> Show {
        Show {
            json: false,
            quiet: false,
            colour: false,
            colour_on_stderr: false,
            width: Some(80),
            width_of_stderr: None,
            face: Clockface::utc(),
        }
    }

    /// As the flags and the terminal say.
    pub(super) fn new(global: &Global) -> Show {
        let on_terminal = std::io::stdout().is_terminal();
        Show {
            json: global.json,
            quiet: global.quiet,
            colour: wants_colour(global.no_color, on_terminal),
            colour_on_stderr: wants_colour(global.no_color, std::io::stderr().is_terminal()),
            width: on_terminal.then(terminal::columns).flatten(),
            width_of_stderr: std::io::stderr()
                .is_terminal()
                .then(terminal::columns_of_stderr)
                .flatten(),
            face: if global.utc {
                Clockface::utc()
            } else {
                Clockface::local()
            },
        }
    }

    /// The wall clock.
    #[expect(
        clippy::unused_self,
        reason = "a command asks its session for the time, as for everything else"
    )]
    pub(super) fn now(&self) -> Millis {
        SystemClock.now().wall
    }

    /// Colours are wanted on standard output.
    pub(super) fn paints(&self) -> bool {
        self.colour
    }

    /// Columns of the terminal; `None` where there is none.
    pub(super) fn width(&self) -> Option<usize> {
        self.width
    }

    /// The zone.
    pub(super) fn face(&self) -> &Clockface {
        &self.face
    }

    /// An instant in the zone, or a dash.
    pub(super) fn instant(&self, at: Option<Millis>) -> String {
        at.map_or_else(dash, |at| self.face.instant(at))
    }

    /// An instant for a table, or a dash; short where the terminal is narrow.
    pub(super) fn moment(&self, at: Option<Millis>, fit: Fit) -> String {
        match fit {
            Fit::Wide => self.instant(at),
            Fit::Narrow | Fit::Least => at.map_or_else(dash, |at| self.face.short(at, self.now())),
        }
    }

    /// An instant with its distance from now, or a dash.
    pub(super) fn instant_and_distance(&self, at: Option<Millis>) -> String {
        at.map_or_else(dash, |at| {
            format!("{} ({})", self.face.instant(at), times::relative(at, self.now()))
        })
    }

    /// Writes to standard output.
    #[expect(
        clippy::unused_self,
        reason = "a command shows what it has through its session"
    )]
    pub(super) fn data(&self, text: &str) -> Result<(), Failure> {
        write_data(text.as_bytes())
    }

    /// One JSON document on a line of its own, or indented for a person at a terminal.
    pub(super) fn document(&self, text: &str) -> Result<(), Failure> {
        self.data(&format!("{}\n", text.trim_end()))
    }

    /// One line of NDJSON.
    pub(super) fn json_line(&self, value: &Value) -> Result<(), Failure> {
        self.data(&format!("{value}\n"))
    }

    /// The widest form of a table that fits the terminal.
    pub(super) fn fitting(&self, make: impl Fn(Fit) -> Table) -> Result<(), Failure> {
        let wider = [Fit::Wide, Fit::Narrow].into_iter().map(&make);
        let fitting = { wider }.find(|table| table.fits(self.place()));
        self.table(&fitting.unwrap_or_else(|| make(Fit::Least)))
    }

    /// A table.
    pub(super) fn table(&self, table: &Table) -> Result<(), Failure> {
        self.data(&table.render(self.place()))
    }

    fn place(&self) -> Place {
        Place {
            width: self.width,
            colour: self.colour,
            titles: !self.quiet,
        }
    }

    /// Says on standard output that there is nothing, and what could be done about it.
    pub(super) fn nothing(&self, sentence: &str) -> Result<(), Failure> {
        if self.quiet {
            return Ok(());
        }
        self.data(&format!("{sentence}\n"))
    }

    /// Something beside the data; a closed standard error is no reason to fail.
    pub(super) fn note(&self, text: &str) {
        if !self.quiet {
            write_stderr(format!("{text}\n").as_bytes());
        }
    }

    /// A word in the colour of the state that it begins with.
    pub(super) fn state(&self, word: &str) -> String {
        self.painted(word, super::table::state_style(word))
    }

    /// Dimmed, for what is beside the point.
    pub(super) fn dim(&self, text: &str) -> String {
        self.painted(text, Style::new().dimmed())
    }

    /// Bold, for a heading.
    pub(super) fn strong(&self, text: &str) -> String {
        self.painted(text, Style::new().bold())
    }

    /// In a style, where colours are wanted.
    pub(super) fn painted(&self, text: &str, style: Style) -> String {
        if self.colour {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Tells a failure: a sentence, or a problem document with `--json`.
    pub(super) fn failure(&self, failure: &Failure) {
        if self.json {
            if let Some(document) = failure.json() {
                write_stderr(format!("{document}\n").as_bytes());
            }
            return;
        }
        let width = self.width_of_stderr;
        let text = format!("{}\n", wrapped(failure.text().trim_end(), width, 0));
        if text.trim().is_empty() {
            return;
        }
        if self.colour_on_stderr
            && let Some(rest) = text.strip_prefix("error:")
        {
            let style = Style::new().bold().fg_color(Some(AnsiColor::Red.into()));
            write_stderr(format!("{style}error:{style:#}{rest}").as_bytes());
        } else {
            write_stderr(text.as_bytes());
        }
    }

    /// Sentences, each broken where the terminal ends.
    pub(super) fn paragraph(&self, text: &str) -> Result<(), Failure> {
        self.data(&format!("{}\n", wrapped(text, self.width, 0)))
    }

    /// `name  value` lines under each other.
    pub(super) fn pairs(&self, pairs: &[(&str, String)]) -> Result<(), Failure> {
        let width = pairs.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
        let line = |(name, value): &(&str, String)| {
            let value = wrapped(value, self.width, width + 2);
            format!("{}  {value}\n", self.dim(&format!("{name:width$}")))
        };
        self.data(&pairs.iter().map(line).collect::<String>())
    }
}

/// What stands for nothing.
pub(super) fn dash() -> String {
    "-".to_owned()
}

/// Writes to standard output.
pub(super) fn write_data(bytes: &[u8]) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    let written = out.write_all(bytes).and_then(|()| out.flush());
    written.map_err(|error| {
        if error.kind() == ErrorKind::BrokenPipe {
            Failure::OutputClosed
        } else {
            Failure::Negative(format!("standard output cannot be written: {error}"))
        }
    })
}

/// Writes to standard error; that nobody reads it is no reason to fail.
pub(super) fn write_stderr(bytes: &[u8]) {
    let mut out = std::io::stderr().lock();
    out.write_all(bytes).and_then(|()| out.flush()).ok();
}
