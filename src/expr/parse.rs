//! From a text to a tree, and what the parser says in our own words.

use cel_interpreter::common::ast::{IdedExpr, SourceInfo};
use cel_interpreter::{ParseError, ParseErrors};

use super::fault::{Fault, Kind, Profile, cut, letter_start};
use super::functions::ENVIRONMENT;

/// The text, with the places of its nodes.
#[derive(Debug)]
pub(super) struct Source {
    text: String,
    info: SourceInfo,
}

/// How often the parser may try to go on behind a mistake: one fault is told, more would only take time.
const RECOVERIES_MAX: u32 = 4;

/// Reads `text`; called on a thread with a large stack, and only for what `scan` let through.
pub(super) fn parse(text: &str, profile: Profile) -> Result<(IdedExpr, Source), Fault> {
    let parser = ENVIRONMENT.parser().error_recovery_limit(RECOVERIES_MAX);
    match parser.parse_with_source_info(text) {
        Ok((tree, info)) => Ok((
            tree,
            Source {
                text: text.to_owned(),
                info,
            },
        )),
        Err(errors) => Err(explain(text, &errors, profile)),
    }
}

impl Source {
    /// The byte at which a node begins.
    pub(super) fn position(&self, id: u64) -> Option<usize> {
        let (start, _) = self.info.offset_for(id)?;
        let start = usize::try_from(start).ok()?;
        (start < self.text.len()).then(|| letter_start(&self.text, start))
    }

    /// Whether `name` stands right behind a dash that stands right behind another name.
    pub(super) fn is_behind_dash(&self, name: &str) -> bool {
        let mut from = 0;
        let dashed = format!("-{name}");
        while let Some(found) = self.text[from..].find(&dashed) {
            let at = from + found;
            if self.text[..at].ends_with(|letter: char| letter.is_alphanumeric() || letter == '_') {
                return true;
            }
            from = at + 1;
        }
        false
    }
}

fn explain(text: &str, errors: &ParseErrors, profile: Profile) -> Fault {
    let Some(error) = errors.errors.first() else {
        return Kind::Syntax.fault(profile, "the expression cannot be read", None);
    };
    let position = place(text, error);
    let rest = position.map_or("", |at| &text[at..]);
    let reason = reason(&error.msg, rest);
    let where_ = position.map_or(String::new(), |at| {
        let (line, column) = super::fault::line_and_column(text, at);
        if text.contains('\n') {
            format!(" at line {line}, column {column}")
        } else {
            format!(" at column {column}")
        }
    });
    Kind::Syntax.fault(
        profile,
        format!("the expression cannot be read{where_}: {reason}"),
        position,
    )
}

fn place(text: &str, error: &ParseError) -> Option<usize> {
    let line = usize::try_from(error.pos.0).ok()?.checked_sub(1)?;
    let column = usize::try_from(error.pos.1).ok()?.checked_sub(1)?;
    let line_start = text.split_inclusive('\n').take(line).map(str::len).sum::<usize>();
    let behind = text.get(line_start..)?;
    let byte = behind
        .char_indices()
        .nth(column)
        .map_or(behind.len(), |(at, _)| at);
    Some(line_start + byte)
}

/// Words of other languages, and what is written here instead.
const FOREIGN: &[(&str, &str)] = &[
    ("and", "`&&`"),
    ("or", "`||`"),
    ("not", "`!`"),
    ("if", "condition ? a : b"),
    ("===", "`==`"),
    ("!==", "`!=`"),
    ("<>", "`!=`"),
    ("=", "`==`"),
    ("&", "`&&`"),
    ("|", "`||`"),
    ("${", "the expression without `${` and `}`"),
    ("{{", "the expression without braces"),
];

fn reason(said: &str, rest: &str) -> String {
    if said.contains("Recursion") || said.contains("recursion") {
        return "it is nested too deeply".to_owned();
    }
    if said.contains("Incomplete `") || said.contains("No `") {
        return "a part of it is missing; put a ? b : c in parentheses where it stands inside of another"
            .to_owned();
    }
    let word: String = first_word(rest);
    if word.is_empty() {
        return "it ends too early".to_owned();
    }
    if let Some((_, instead)) = FOREIGN.iter().find(|(foreign, _)| *foreign == word) {
        return format!("`{word}` is written {instead}");
    }
    if let Some(reserved) = said.strip_prefix("reserved identifier: ") {
        return format!(
            "`{reserved}` is a reserved word; write [\"{reserved}\"] to read a field of that name"
        );
    }
    let from_grammar = [
        "mismatched",
        "extraneous",
        "no viable",
        "token recognition",
        "missing",
    ];
    if from_grammar.iter().any(|part| said.contains(part)) {
        let shown = cut(&word, 30);
        return match word.chars().next() {
            Some('"' | '\'') => format!("{shown} does not belong here, or its quote is not closed"),
            _ => format!("`{shown}` does not belong here"),
        };
    }
    cut(
        said.trim_start_matches("Syntax error: ")
            .lines()
            .next()
            .unwrap_or_default(),
        120,
    )
}

/// The word or the run of marks that `rest` begins with.
fn first_word(rest: &str) -> String {
    let rest = rest.trim_start();
    let is_word = |letter: char| letter.is_alphanumeric() || letter == '_';
    match rest.chars().next() {
        None => String::new(),
        Some(first) if is_word(first) => rest.chars().take_while(|letter| is_word(*letter)).collect(),
        Some(quote @ ('"' | '\'')) => {
            let inner: String = rest[1..].chars().take_while(|letter| *letter != quote).collect();
            format!("{quote}{inner}")
        }
        Some(_) => rest
            .chars()
            .take_while(|letter| "=!<>&|${".contains(*letter))
            .take(3)
            .collect::<String>()
            .chars()
            .chain(rest.chars().next().filter(|first| !"=!<>&|${".contains(*first)))
            .collect(),
    }
}
