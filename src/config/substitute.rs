//! `${NAME}`, `${NAME:-default}`, `${NAME:?message}` and the literal `$${` inside one scalar.
//! The result is text and stays one scalar; which fields may hold it is decided by the readers.

use std::ops::Range;

/// Bytes of a text with something to replace, and of the result: a path, an address or a value, and
/// not a file.
const TEXT_BYTES_MAX: usize = 64 * 1024;
const RESULT_BYTES_MAX: usize = 1024 * 1024;

/// Faults of one text; the positions of more would cost more than they tell.
const FAULTS_MAX: usize = 20;

/// Looks up an environment variable.
pub type Environment<'e> = dyn Fn(&str) -> Option<String> + 'e;

/// What is wrong with one `${…}`; `span` is in bytes of the scalar's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct SubstituteFault {
    pub(super) code: &'static str,
    pub(super) message: String,
    pub(super) span: Range<usize>,
}

/// The text with every `${…}` replaced, or everything that is wrong with it.
pub(super) fn substitute(text: &str, environment: &Environment<'_>) -> Result<String, Vec<SubstituteFault>> {
    if !text.contains("${") {
        return Ok(text.to_owned());
    }
    if text.len() > TEXT_BYTES_MAX {
        return Err(vec![too_long(text)]);
    }
    let mut result = String::with_capacity(text.len());
    let mut faults = Vec::new();
    let mut done = 0;
    while let Some(found) = text[done..].find("${") {
        let start = done + found;
        if text[done..start].ends_with('$') {
            result.push_str(&text[done..start - 1]);
            result.push_str("${");
            done = start + 2;
            continue;
        }
        result.push_str(&text[done..start]);
        let Some(length) = text[start..].find('}') else {
            faults.push(malformed(start..text.len(), "`${` has no closing `}`"));
            done = text.len();
            break;
        };
        done = start + length + 1;
        match replacement(&text[start + 2..done - 1], environment) {
            Ok(value) if result.len() + value.len() > RESULT_BYTES_MAX => {
                return Err(vec![too_long(text)]);
            }
            Ok(value) => result.push_str(&value),
            Err(fault) => faults.push(SubstituteFault {
                span: start..done,
                ..fault
            }),
        }
        if faults.len() == FAULTS_MAX {
            break;
        }
    }
    result.push_str(&text[done..]);
    if faults.is_empty() {
        Ok(result)
    } else {
        Err(faults)
    }
}

/// `inner` is what stands between the braces. As in the shell, `:-` and `:?` also catch a variable
/// that is set but empty.
fn replacement(inner: &str, environment: &Environment<'_>) -> Result<String, SubstituteFault> {
    let length = inner
        .find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '_')
        .unwrap_or(inner.len());
    let (name, operator) = inner.split_at(length);
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) {
        return Err(malformed(
            0..0,
            "`${…}` needs a variable name; `$${` stands for a literal `${`",
        ));
    }
    let value = environment(name);
    if operator.is_empty() {
        return value.ok_or_else(|| unset(format!("variable `{name}` is not set")));
    }
    let value = value.filter(|value| !value.is_empty());
    if operator.contains("${") {
        return Err(malformed(0..0, "a default or message cannot hold another `${`"));
    }
    if let Some(default) = operator.strip_prefix(":-") {
        return Ok(value.unwrap_or_else(|| default.to_owned()));
    }
    if let Some(message) = operator.strip_prefix(":?") {
        return value.ok_or_else(|| unset(format!("variable `{name}` is not set: {message}")));
    }
    Err(malformed(
        0..0,
        "after the name only `:-default` or `:?message` may stand",
    ))
}

fn too_long(text: &str) -> SubstituteFault {
    malformed(
        0..text.len(),
        "a text with `${…}` may have 64 KiB, and 1 MiB when it is replaced",
    )
}

fn malformed(span: Range<usize>, message: &str) -> SubstituteFault {
    SubstituteFault {
        code: "config/bad-substitution",
        message: message.to_owned(),
        span,
    }
}

fn unset(message: String) -> SubstituteFault {
    SubstituteFault {
        code: "config/unset-variable",
        message,
        span: 0..0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn environment(name: &str) -> Option<String> {
        match name {
            "HOME" => Some("/var/home/ann".to_owned()),
            "EMPTY" => Some(String::new()),
            "TRICK" => Some("${HOME}: [x]".to_owned()),
            _ => None,
        }
    }

    #[test]
    fn replaced() {
        for (text, expected) in [
            ("plain $HOME $", "plain $HOME $"),
            ("${HOME}/x", "/var/home/ann/x"),
            ("${HOME}${HOME}", "/var/home/ann/var/home/ann"),
            ("${NONE:-d}", "d"),
            ("${NONE:-}", ""),
            ("${EMPTY:-d}", "d"),
            ("${EMPTY}", ""),
            ("${HOME:?why}", "/var/home/ann"),
            ("$${HOME}", "${HOME}"),
            ("a$${b}c${HOME}", "a${b}c/var/home/ann"),
            ("${TRICK}", "${HOME}: [x]"),
            ("日本${HOME}", "日本/var/home/ann"),
        ] {
            assert_eq!(substitute(text, &environment).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn refused_with_all_places() {
        for (text, parts) in [
            ("x ${NONE}", &["${NONE}"][..]),
            ("${NONE} ${NONE:?set it}", &["${NONE}", "${NONE:?set it}"]),
            ("${EMPTY:?why}", &["${EMPTY:?why}"]),
            ("é${HOME", &["${HOME"]),
            ("${}", &["${}"]),
            ("${1A}", &["${1A}"]),
            ("${HOME+x}", &["${HOME+x}"]),
            ("${NONE:-${HOME}}", &["${NONE:-${HOME}"]),
        ] {
            let faults = substitute(text, &environment).unwrap_err();
            let found: Vec<&str> = faults.into_iter().map(|fault| &text[fault.span]).collect();
            assert_eq!(found, parts, "{text}");
        }
    }
}
