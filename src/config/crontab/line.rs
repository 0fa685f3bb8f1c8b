//! One line of a crontab, cut into its parts. What the parts mean is not known here.

use std::ops::Range;

/// A line, without its end. Ranges are bytes of the line.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line {
    Blank,
    Comment,
    /// `# name: x`: the name of the job below.
    Name(Range<usize>),
    Variable {
        name: Range<usize>,
        value: Range<usize>,
    },
    Entry(Entry),
}

/// A schedule with its command.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The nickname or the five fields with what is between them; fewer when the line is too short.
    pub(super) schedule: Range<usize>,
    /// The words of the schedule.
    pub(super) fields: usize,
    /// None without a column for it, or when the line ends before it.
    pub(super) user: Option<Range<usize>>,
    /// As written; empty when nothing is left.
    pub(super) command: Range<usize>,
}

/// What is wrong with a line, and where in it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LineFault {
    pub(super) code: &'static str,
    pub(super) at: Range<usize>,
    pub(super) message: String,
    pub(super) help: Option<&'static str>,
}

const FIELDS: usize = 5;

/// The lines of a text with the byte where each begins; without a byte order mark, and without CR at their ends.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = text.len() - text.trim_start_matches('\u{feff}').len();
    text[start..].split('\n').map(move |line| {
        let begin = start;
        start += line.len() + 1;
        (begin, line.trim_end_matches('\r'))
    })
}

pub(super) fn read_line(line: &str, has_user_column: bool) -> Result<Line, LineFault> {
    let start = line.len() - line.trim_start().len();
    let Some(first) = line[start..].chars().next() else {
        return Ok(Line::Blank);
    };
    if first == '#' {
        return Ok(name_of(line, start + 1).map_or(Line::Comment, Line::Name));
    }
    if let Some(variable) = variable(line, start) {
        return variable;
    }
    if let Some(rest) = line[start..].strip_prefix("export")
        && rest.starts_with(char::is_whitespace)
        && rest.contains('=')
    {
        return Err(LineFault {
            code: "crontab/variable",
            at: start..start + "export".len(),
            message: "minute: `export` is no number".to_owned(),
            help: Some("remove `export`: a variable is set with NAME=value alone"),
        });
    }
    Ok(Line::Entry(entry(line, start, has_user_column)))
}

/// The name in ` name: x`, unless there is nothing in it.
fn name_of(line: &str, from: usize) -> Option<Range<usize>> {
    let rest = line[from..].trim_start().strip_prefix("name:")?.trim();
    let start = rest.as_ptr() as usize - line.as_ptr() as usize;
    (!rest.is_empty()).then(|| start..start + rest.len())
}

/// `NAME = value` with quotes around either, as cron takes it. None is a line of another kind.
fn variable(line: &str, start: usize) -> Option<Result<Line, LineFault>> {
    let (name, after) = match quoted(line, start) {
        Quoted::Closed(name, after) => (name, after),
        Quoted::Open => return None,
        Quoted::No => {
            let length = line[start..].find(|letter: char| letter == '=' || letter.is_whitespace())?;
            (start..start + length, start + length)
        }
    };
    let equals = skip_blanks(line, after);
    if name.is_empty() || !line[equals..].starts_with('=') {
        return None;
    }
    let begin = skip_blanks(line, equals + 1);
    let fault = |at: Range<usize>, message: &str| LineFault {
        code: "crontab/variable",
        at,
        message: message.to_owned(),
        help: None,
    };
    let value = match quoted(line, begin) {
        Quoted::No => begin..begin + line[begin..].trim_end().len(),
        Quoted::Open => {
            let message = "the quote that opens here is never closed";
            return Some(Err(fault(begin..line.len(), message)));
        }
        Quoted::Closed(value, after) => {
            let rest = skip_blanks(line, after);
            if rest < line.len() {
                let message = "text stands after the closing quote";
                return Some(Err(fault(rest..line.len(), message)));
            }
            value
        }
    };
    Some(Ok(Line::Variable { name, value }))
}

/// What a place holds when a quote may open there.
enum Quoted {
    No,
    /// It is never closed.
    Open,
    /// What is inside, and where the line goes on.
    Closed(Range<usize>, usize),
}

fn quoted(line: &str, start: usize) -> Quoted {
    let first = line[start..].chars().next();
    let Some(quote) = first.filter(|letter| ['"', '\''].contains(letter)) else {
        return Quoted::No;
    };
    let inside = start + 1;
    match line[inside..].find(quote) {
        Some(length) => Quoted::Closed(inside..inside + length, inside + length + 1),
        None => Quoted::Open,
    }
}

fn skip_blanks(line: &str, from: usize) -> usize {
    line.len() - line[from..].trim_start().len()
}

fn entry(line: &str, start: usize, has_user_column: bool) -> Entry {
    let wanted = if line[start..].starts_with('@') { 1 } else { FIELDS };
    let mut schedule = start..start;
    let mut fields = 0;
    while fields < wanted
        && let Some(word) = word(line, schedule.end)
    {
        schedule.end = word.end;
        fields += 1;
    }
    let user = word(line, schedule.end).filter(|_| has_user_column);
    let after = user.as_ref().map_or(schedule.end, |user| user.end);
    Entry {
        schedule,
        fields,
        user,
        command: skip_blanks(line, after)..line.len(),
    }
}

/// The next word at or after a place.
pub(super) fn word(line: &str, from: usize) -> Option<Range<usize>> {
    let start = skip_blanks(line, from);
    let length = line[start..]
        .find(char::is_whitespace)
        .unwrap_or(line.len() - start);
    (length > 0).then(|| start..start + length)
}

/// The command that the shell gets: `\%` is a percent sign. The error is where one stands without a backslash, for in
/// cron it ends the command and begins its standard input. A backslash before another one escapes nothing after it.
pub(super) fn unescaped(command: &str) -> Result<String, usize> {
    let mut text = String::with_capacity(command.len());
    let mut is_escaped = false;
    for (index, letter) in command.char_indices() {
        if letter == '%' {
            if !is_escaped {
                return Err(index);
            }
            text.pop();
        }
        text.push(letter);
        is_escaped = letter == '\\' && !is_escaped;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str, has_user_column: bool) -> String {
        match read_line(line, has_user_column) {
            Ok(Line::Blank) => "blank".to_owned(),
            Ok(Line::Comment) => "comment".to_owned(),
            Ok(Line::Name(name)) => format!("name {}", &line[name]),
            Ok(Line::Variable { name, value }) => format!("{}=<{}>", &line[name], &line[value]),
            Ok(Line::Entry(entry)) => {
                let user = entry.user.map(|user| format!("{}:", &line[user]));
                format!(
                    "{}[{}] {}<{}>",
                    entry.fields,
                    &line[entry.schedule],
                    user.unwrap_or_default(),
                    &line[entry.command]
                )
            }
            Err(fault) => format!("{} at {}", fault.message, fault.at.start),
        }
    }

    #[test]
    fn lines_of_every_kind() {
        for (line, expected) in [
            ("", "blank"),
            (" \t ", "blank"),
            ("# x", "comment"),
            ("  #name: a b ", "name a b"),
            ("#  name:   x", "name x"),
            ("# name:", "comment"),
            ("# names: x", "comment"),
            ("A=b", "A=<b>"),
            (" A = b c  ", "A=<b c>"),
            ("A=", "A=<>"),
            ("A='b ' ", "A=<b >"),
            ("\"A\" = \"b # c\"", "A=<b # c>"),
            ("A=b \"c\"", "A=<b \"c\">"),
            ("A='b' c", "text stands after the closing quote at 6"),
            ("A=\"b", "the quote that opens here is never closed at 2"),
            ("export A=b", "minute: `export` is no number at 0"),
            ("0 5 * * * A=1 x", "5[0 5 * * *] <A=1 x>"),
            ("@daily A=1 x", "1[@daily] <A=1 x>"),
            ("@reboot", "1[@reboot] <>"),
            ("\t* *  * *\t*\tx  y ", "5[* *  * *\t*] <x  y >"),
            ("0 22 * * 1-5", "5[0 22 * * 1-5] <>"),
            ("*/5 * x", "3[*/5 * x] <>"),
            ("=x", "1[=x] <>"),
        ] {
            assert_eq!(parts(line, false), expected, "{line:?}");
        }
        for (line, expected) in [
            ("1 * * * * root x y", "5[1 * * * *] root:<x y>"),
            ("@reboot\tann\tx", "1[@reboot] ann:<x>"),
            ("1 * * * * root", "5[1 * * * *] root:<>"),
            ("1 * * * *", "5[1 * * * *] <>"),
        ] {
            assert_eq!(parts(line, true), expected, "{line:?}");
        }
    }

    #[test]
    fn percent_signs() {
        for (command, expected) in [
            ("date +\\%F", Ok("date +%F")),
            ("a\\%b\\%\\%", Ok("a%b%%")),
            ("a \\n \\\\ b", Ok("a \\n \\\\ b")),
            ("date +%F", Err(6)),
            ("a\\\\%b", Err(3)),
            ("a\\\\\\%b", Ok("a\\\\%b")),
            ("x%", Err(1)),
        ] {
            assert_eq!(unescaped(command), expected.map(str::to_owned), "{command}");
        }
    }

    #[test]
    fn line_ends() {
        let all: Vec<(usize, &str)> = lines("\u{feff}a\r\nb\r\r\n\r\nc").collect();
        assert_eq!(all, [(3, "a"), (6, "b"), (10, ""), (12, "c")]);
        assert_eq!(lines("").collect::<Vec<_>>(), [(0, "")]);
    }
}
