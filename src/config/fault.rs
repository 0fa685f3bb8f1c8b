//! What is wrong with a configuration, and where. Collecting, not showing: `render.rs` draws carets.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// Faults shown of one load; the rest is counted. A person mends a page of them at a time.
pub(super) const FAULTS_MAX: usize = 100;

/// Longest piece of the user's own text repeated inside a message.
const SHOWN_CHARS_MAX: usize = 60;
const SENTENCE_CHARS_MAX: usize = 300;

/// A place in a file, or a whole file or variable when `line` is 0.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Place {
    /// The file's name as it was given, or the flag or variable that carried the value.
    #[serde(serialize_with = "as_text")]
    pub file: Arc<str>,
    /// Counted from 1; 0 means the file as a whole.
    pub line: usize,
    /// In characters, counted from 1.
    pub column: usize,
    /// Bytes of the file's text.
    #[serde(skip)]
    pub span: Range<usize>,
}

fn as_text<S: Serializer>(file: &Arc<str>, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(file)
}

impl Place {
    /// A file, flag or variable without a position in it.
    pub fn whole(name: &str) -> Self {
        Self {
            file: Arc::from(name),
            line: 0,
            column: 0,
            span: 0..0,
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line == 0 {
            return out.write_str(&self.file);
        }
        write!(out, "{}:{}:{}", self.file, self.line, self.column)
    }
}

/// Whether a fault keeps the configuration from being used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Severity {
    Error,
    Warning,
    /// Worth knowing, never a reason to fail.
    Note,
}

/// One finding about a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// Stable, for machines: `config/unknown-key`, `lint/shell-variable`.
    pub code: &'static str,
    pub severity: Severity,
    pub message: String,
    #[serde(flatten)]
    pub at: Place,
    /// What to do about it, shown beside the caret.
    pub help: Option<String>,
    /// Other places that belong to the finding, each with a sentence.
    pub related: Vec<(Place, String)>,
}

impl Fault {
    pub fn error(code: &'static str, at: &Place, message: impl Into<String>) -> Self {
        Self {
            code,
            severity: Severity::Error,
            message: message.into(),
            at: at.clone(),
            help: None,
            related: Vec::new(),
        }
    }

    pub fn warning(code: &'static str, at: &Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Warning,
            ..Self::error(code, at, message)
        }
    }

    pub fn note(code: &'static str, at: &Place, message: impl Into<String>) -> Self {
        Self {
            severity: Severity::Note,
            ..Self::error(code, at, message)
        }
    }

    #[must_use]
    pub fn with_help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }

    /// Keeps a help that is already there.
    #[must_use]
    pub fn with_help_if(mut self, help: Option<String>) -> Self {
        self.help = self.help.or(help);
        self
    }

    #[must_use]
    pub fn with_related(mut self, at: &Place, sentence: impl Into<String>) -> Self {
        self.related.push((at.clone(), sentence.into()));
        self
    }

    pub fn is_error(&self) -> bool {
        self.severity == Severity::Error
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
            Severity::Note => "note",
        };
        write!(out, "{}: {word}[{}]: {}", self.at, self.code, self.message)?;
        if let Some(help) = &self.help {
            write!(out, " ({help})")?;
        }
        Ok(())
    }
}

impl std::error::Error for Fault {}

/// A load's findings, ordered by file (in reading order) and position, and cut at a page.
pub(super) fn ordered(mut faults: Vec<Fault>, files: &[Arc<str>]) -> Vec<Fault> {
    let rank = |place: &Place| {
        files
            .iter()
            .position(|file| *file == place.file)
            .unwrap_or(files.len())
    };
    faults.sort_by_key(|fault| (rank(&fault.at), fault.at.line, fault.at.column));
    let left_out = faults.len().saturating_sub(FAULTS_MAX);
    let Some(last) = faults.get(FAULTS_MAX).map(|fault| fault.at.clone()) else {
        return faults;
    };
    // An error must not be cut away behind warnings, nor those behind notes.
    faults.sort_by_key(|fault| fault.severity);
    // As grave as the gravest: many warnings are no error.
    let severity = faults.first().map_or(Severity::Note, |fault| fault.severity);
    faults.truncate(FAULTS_MAX);
    let at = Place::whole(&last.file);
    let message = format!("{left_out} more findings are not shown; mend these first");
    faults.push(Fault {
        severity,
        ..Fault::error("config/too-many-faults", &at, message)
    });
    faults
}

/// The user's words inside a message: short, on one line, without control characters.
pub(super) fn shown(text: &str) -> String {
    tamed(text, SHOWN_CHARS_MAX)
}

/// As `shown`, for a sentence that the user or the parser wrote.
pub(super) fn shown_sentence(text: &str) -> String {
    tamed(text, SENTENCE_CHARS_MAX)
}

fn tamed(text: &str, chars_max: usize) -> String {
    let mut short = String::new();
    for (count, letter) in text.chars().enumerate() {
        if count == chars_max {
            short.push('…');
            break;
        }
        if letter.is_control() || is_invisible(letter) {
            short.extend(letter.escape_default());
        } else {
            short.push(letter);
        }
    }
    short
}

/// Characters that would reorder or hide the rest of a line on a terminal.
fn is_invisible(letter: char) -> bool {
    matches!(letter, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_is_short_and_tame() {
        for (text, expected) in [
            ("plain", "plain".to_owned()),
            ("a\nb\u{1b}[31m", "a\\nb\\u{1b}[31m".to_owned()),
            ("x\u{202e}y", "x\\u{202e}y".to_owned()),
            (&"é".repeat(100), format!("{}…", "é".repeat(60))),
        ] {
            assert_eq!(shown(text), expected);
        }
    }

    #[test]
    fn too_many_faults_are_cut_and_counted_and_errors_stay() {
        let mut faults: Vec<Fault> = (0..150)
            .map(|line| {
                let at = Place {
                    line: line + 1,
                    ..Place::whole("a.yaml")
                };
                Fault::warning("lint/x", &at, "w")
            })
            .collect();
        let at = Place {
            line: 900,
            ..Place::whole("a.yaml")
        };
        faults.push(Fault::error("config/x", &at, "e"));
        let cut = ordered(faults, &[Arc::from("a.yaml")]);
        assert_eq!(cut.len(), FAULTS_MAX + 1);
        assert!(cut.iter().any(|fault| fault.code == "config/x"));
        assert!(cut[FAULTS_MAX].message.starts_with("51 more"));
        assert!(cut[FAULTS_MAX].is_error());
        let warnings: Vec<Fault> = cut.into_iter().filter(|fault| !fault.is_error()).collect();
        let many = [warnings.clone(), warnings].concat();
        let cut = ordered(many, &[Arc::from("a.yaml")]);
        assert!(
            cut.iter().all(|fault| !fault.is_error()),
            "warnings stay warnings"
        );
    }

    #[test]
    fn a_fault_is_flat_json() {
        let at = Place {
            line: 3,
            column: 5,
            ..Place::whole("a.yaml")
        };
        let json = serde_json::to_value(Fault::error("config/x", &at, "m").with_help("h")).unwrap();
        assert_eq!(json["file"], "a.yaml");
        assert_eq!(json["line"], 3);
        assert_eq!(json["severity"], "error");
        assert_eq!(json["help"], "h");
    }
}
