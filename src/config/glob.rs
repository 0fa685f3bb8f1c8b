//! File names with `*`, `?` and `[a-z]`, each inside one part of a path, and the files they stand for.
//! `**` and braces have no meaning here. Whether a path is a glob at all is asked with `is_glob`.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Component, Path, PathBuf};

/// Names of folders that are looked at for one glob; a configuration is not the whole disk.
const NAMES_MAX: usize = 100_000;

/// Characters of one part: the search costs the product of pattern and name.
const PART_CHARS_MAX: usize = 255;

/// Why a glob has no answer.
#[derive(Debug)]
pub(super) enum GlobFault {
    /// A folder that is named without a wildcard cannot be listed.
    Folder(PathBuf, io::Error),
    /// `**`, a `[` without its end, or a part that no file name can match.
    Pattern(&'static str),
    /// More names than are looked at.
    TooMany,
}

pub(super) fn is_glob(text: &str) -> bool {
    text.contains(['*', '?', '['])
}

/// The files that match, in name order. Folders and what is no ordinary file are passed over, and so are names that
/// begin with a dot unless the pattern does.
pub(super) fn expand(pattern: &Path) -> Result<Vec<PathBuf>, GlobFault> {
    let mut found = vec![PathBuf::new()];
    let mut budget = NAMES_MAX;
    let parts: Vec<Component<'_>> = pattern.components().collect();
    for (index, part) in parts.iter().enumerate() {
        let is_last = index + 1 == parts.len();
        let text = part.as_os_str().to_string_lossy();
        if !is_glob(&text) {
            for path in &mut found {
                path.push(part);
            }
            continue;
        }
        check_part(&text)?;
        // A folder that only a wildcard led to may be unreadable or no folder at all.
        let is_named = !parts[..index]
            .iter()
            .any(|before| is_glob(&before.as_os_str().to_string_lossy()));
        let mut deeper = BTreeSet::new();
        for folder in &found {
            match matches_in(folder, &text, is_last, &mut budget) {
                Ok(paths) => deeper.extend(paths),
                Err(GlobFault::Folder(..)) if !is_named => {}
                Err(fault) => return Err(fault),
            }
        }
        found = deeper.into_iter().collect();
    }
    found.retain(|path| path.is_file());
    Ok(found)
}

fn matches_in(
    folder: &Path,
    part: &str,
    is_last: bool,
    budget: &mut usize,
) -> Result<Vec<PathBuf>, GlobFault> {
    let here = if folder.as_os_str().is_empty() {
        Path::new(".")
    } else {
        folder
    };
    let unreadable = |error| GlobFault::Folder(here.to_owned(), error);
    let mut found = Vec::new();
    for entry in fs::read_dir(here).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        *budget = budget.checked_sub(1).ok_or(GlobFault::TooMany)?;
        if matches(part, &name) && (is_last || folder.join(&name).is_dir()) {
            found.push(folder.join(&name));
        }
    }
    Ok(found)
}

fn check_part(part: &str) -> Result<(), GlobFault> {
    if part.contains("**") {
        return Err(GlobFault::Pattern("`**` has no meaning here; name each folder"));
    }
    if part.chars().count() > PART_CHARS_MAX {
        return Err(GlobFault::Pattern(
            "a part of the path is too long for a file name",
        ));
    }
    let mut rest = part;
    while let Some((_, after)) = rest.split_once('[') {
        let Some((_, after)) = class_of(after) else {
            return Err(GlobFault::Pattern("a `[` has no closing `]`"));
        };
        rest = after;
    }
    Ok(())
}

/// The inside of a `[…]` and what follows it; a `]` that comes first belongs to the inside.
fn class_of(after_bracket: &str) -> Option<(&str, &str)> {
    let first = after_bracket.strip_prefix(['!', '^']).unwrap_or(after_bracket);
    let skipped = after_bracket.len() - first.len() + usize::from(first.starts_with(']'));
    let end = skipped + after_bracket.get(skipped..)?.find(']')?;
    Some((&after_bracket[..end], &after_bracket[end + 1..]))
}

fn matches(part: &str, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else {
        return false;
    };
    (!name.starts_with('.') || part.starts_with('.')) && is_match(part, name)
}

/// With one place to return to: the last `*`. So no pattern costs more than its length times the name's.
fn is_match(pattern: &str, name: &str) -> bool {
    let (mut pattern, mut name) = (pattern, name);
    let mut last_star: Option<(&str, &str)> = None;
    loop {
        let Some(letter) = name.chars().next() else {
            return pattern.chars().all(|rest| rest == '*');
        };
        let step = match pattern.chars().next() {
            Some('*') => {
                pattern = &pattern[1..];
                last_star = Some((pattern, name));
                continue;
            }
            Some('?') => Some(&pattern[1..]),
            Some('[') => class_of(&pattern[1..])
                .filter(|(class, _)| is_in_class(class, letter))
                .map(|(_, after)| after),
            Some(same) if same == letter => Some(&pattern[letter.len_utf8()..]),
            Some(_) | None => None,
        };
        match (step, last_star) {
            (Some(after), _) => {
                pattern = after;
                name = &name[letter.len_utf8()..];
            }
            (None, Some((after_star, from))) => {
                let mut rest = from.chars();
                rest.next();
                last_star = Some((after_star, rest.as_str()));
                pattern = after_star;
                name = rest.as_str();
            }
            (None, None) => return false,
        }
    }
}

fn is_in_class(class: &str, letter: char) -> bool {
    let inside = class.strip_prefix(['!', '^']);
    let letters: Vec<char> = inside.unwrap_or(class).chars().collect();
    let mut index = 0;
    let mut is_in = false;
    while let Some(from) = letters.get(index) {
        if let (Some('-'), Some(to)) = (letters.get(index + 1), letters.get(index + 2)) {
            is_in |= (*from..=*to).contains(&letter);
            index += 3;
        } else {
            is_in |= *from == letter;
            index += 1;
        }
    }
    is_in != inside.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_and_names() {
        for (pattern, name, expected) in [
            ("*.yaml", "a.yaml", true),
            ("*.yaml", "a.yaml.old", false),
            ("*.yaml", ".yaml", false),
            (".*", ".x", true),
            ("a?c", "abc", true),
            ("a?c", "aéc", true),
            ("a?c", "ac", false),
            ("[a-c]*", "b1", true),
            ("[!a-c]*", "b1", false),
            ("[^a-c]*", "d", true),
            ("[]x]", "]", true),
            ("[a-]", "-", true),
            ("*a*b*", "xxaxxbxx", true),
            ("*a*b", "xbxa", false),
            ("*", "", true),
            ("", "a", false),
            ("日*", "日本", true),
        ] {
            assert_eq!(matches(pattern, OsStr::new(name)), expected, "{pattern} {name}");
        }
        let (pattern, name) = ("*a".repeat(120), "a".repeat(250) + "b");
        assert!(!is_match(&pattern, &name));
    }

    #[test]
    fn files_are_found_in_name_order_through_folders() {
        let folder = tempfile::tempdir().unwrap();
        for name in [
            "b/2.yaml",
            "b/1.yaml",
            "a/1.yaml",
            "a/.hidden.yaml",
            "c.yaml",
            "a/x.txt",
        ] {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, "").unwrap();
        }
        fs::create_dir(folder.path().join("a/z.yaml")).unwrap();
        let found = |pattern: &str| -> Vec<String> {
            expand(&folder.path().join(pattern))
                .unwrap()
                .iter()
                .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
                .collect()
        };
        assert_eq!(found("*/*.yaml"), ["a/1.yaml", "b/1.yaml", "b/2.yaml"]);
        assert_eq!(found("*.yaml"), ["c.yaml"]);
        assert_eq!(found("[ab]/1.yaml"), ["a/1.yaml", "b/1.yaml"]);
        assert!(found("none*").is_empty());
    }

    #[test]
    fn what_cannot_be_answered() {
        let folder = tempfile::tempdir().unwrap();
        let fault = |pattern: &str| expand(&folder.path().join(pattern)).unwrap_err();
        assert!(matches!(fault("none/*.yaml"), GlobFault::Folder(..)));
        assert!(matches!(fault("**/x"), GlobFault::Pattern(_)));
        assert!(matches!(fault("[a/x"), GlobFault::Pattern(_)));
        assert!(expand(&folder.path().join("*/none/*.yaml")).unwrap().is_empty());
    }
}
