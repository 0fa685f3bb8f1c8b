//! The files of the repository and how a violation is said.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// One file: its path from the root with `/`, and its text.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl Source {
    pub(crate) fn new(path: &str, text: &str) -> Source {
        Source {
            path: path.to_owned(),
            text: text.to_owned(),
        }
    }

    pub(crate) fn is_in(&self, places: &[&str]) -> bool {
        places.iter().any(|place| is_at(&self.path, place))
    }
}

/// A place is a folder (`src/store/`), a file (`src/main.rs`), or a module as either (`src/dashboard`).
pub(crate) fn is_at(path: &str, place: &str) -> bool {
    if place.ends_with('/') {
        return path.starts_with(place);
    }
    path.strip_prefix(place)
        .is_some_and(|rest| rest.is_empty() || rest == ".rs" || rest.starts_with('/'))
}

/// What is wrong, where, and why it matters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Violation {
    pub(crate) path: String,
    pub(crate) line: usize,
    pub(crate) why: String,
}

impl Violation {
    pub(crate) fn new(source: &Source, line: usize, why: impl Into<String>) -> Violation {
        Violation {
            path: source.path.clone(),
            line,
            why: why.into(),
        }
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}:{}: {}", self.path, self.line, self.why)
    }
}

/// Runs a checker over files and fails with every violation, not only the first.
pub(crate) fn hold(sources: &[Source], check: impl Fn(&Source) -> Vec<Violation>) {
    let lines: Vec<String> = sources
        .iter()
        .flat_map(check)
        .map(|violation| violation.to_string())
        .collect();
    assert!(
        lines.is_empty(),
        "{} violations:\n{}",
        lines.len(),
        lines.join("\n")
    );
}

/// For self-tests: the lines on which the checker complains about `text` as the file `path`.
pub(crate) fn lines_of(check: impl Fn(&Source) -> Vec<Violation>, path: &str, text: &str) -> Vec<usize> {
    check(&Source::new(path, text))
        .iter()
        .map(|violation| violation.line)
        .collect()
}

pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// The `.rs` files under a folder of the repository.
pub(crate) fn rust_files(folder: &str) -> Vec<Source> {
    let mut files = Vec::new();
    walk(&root().join(folder), &mut files);
    files.retain(|file| file.extension().is_some_and(|extension| extension == "rs"));
    read_all(files)
}

/// The text files that git tracks or would add; without git, all that a clean checkout holds.
pub(crate) fn tracked_files() -> Vec<Source> {
    let listed = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let files = match listed {
        Ok(output) if output.status.success() && !output.stdout.is_empty() => {
            String::from_utf8_lossy(&output.stdout)
                .split_terminator('\0')
                .map(|path| root().join(path))
                .collect()
        }
        Ok(_) | Err(_) => {
            let mut files = Vec::new();
            walk(&root(), &mut files);
            files
        }
    };
    read_all(files)
}

fn read_all(mut files: Vec<PathBuf>) -> Vec<Source> {
    files.sort();
    let relative = |file: &Path| {
        file.strip_prefix(root())
            .map_or_else(|_| file.to_path_buf(), Path::to_path_buf)
            .display()
            .to_string()
    };
    // Unreadable here means: binary, or deleted and not yet committed.
    files
        .iter()
        .filter_map(|file| Some(Source::new(&relative(file), &fs::read_to_string(file).ok()?)))
        .collect()
}

fn walk(folder: &Path, files: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let (path, name) = (entry.path(), entry.file_name());
        if !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            files.push(path);
        } else if name != "target" && name != ".git" && name != "node_modules" && !is_state(&path) {
            walk(&path, files);
        }
    }
}

fn is_state(path: &Path) -> bool {
    path == root().join("state")
}

#[test]
fn a_place_is_a_folder_a_file_or_a_module() {
    assert!(is_at("src/store/codec.rs", "src/store/"));
    assert!(is_at("src/dashboard.rs", "src/dashboard"));
    assert!(is_at("src/main.rs", "src/main.rs"));
    assert!(!is_at("src/storehouse/mod.rs", "src/store/"));
    assert!(!is_at("src/dashboards.rs", "src/dashboard"));
}
