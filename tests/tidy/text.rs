//! What may stand in any tracked text file.

use crate::sources::{Source, Violation, lines_of};

/// Folders of one person's or one builder's machine.
const MACHINE_FOLDERS: &[&str] = &["home", "work", "root", "Users"];

/// Files that may name such a folder, each for a reason that stands beside it.
const EXCEPTED: &[&str] = &[];

pub(crate) fn check_machine_paths(source: &Source) -> Vec<Violation> {
    if EXCEPTED.contains(&source.path.as_str()) {
        return Vec::new();
    }
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        if let Some(folder) = MACHINE_FOLDERS.iter().find(|folder| names_folder(line, folder)) {
            let why = format!(
                "a path under /{folder} exists on one machine only; use a relative path, /etc or /var"
            );
            found.push(Violation::new(source, index + 1, why));
        }
    }
    found
}

/// True if `/folder/` begins a path in `line`; `a/folder/b` and `https://host/folder/` do not.
fn names_folder(line: &str, folder: &str) -> bool {
    let wanted = format!("/{folder}/");
    line.match_indices(&wanted).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        before.is_none_or(|mark| !(mark.is_alphanumeric() || "_-./~*}>)]:".contains(mark)))
            || line[..at].ends_with("file://")
    })
}

#[test]
fn paths_of_one_machine_are_found() {
    let check = |folder: &str, line: &str| {
        let text = format!("first\n{}", line.replace("FOLDER", folder));
        lines_of(check_machine_paths, "README.md", &text)
    };
    for folder in MACHINE_FOLDERS {
        assert_eq!(check(folder, "cd /FOLDER/main"), [2], "{folder}");
        assert_eq!(check(folder, "path = \"/FOLDER/x\""), [2], "{folder}");
        assert_eq!(check(folder, "/FOLDER/x"), [2], "{folder}");
        assert_eq!(check(folder, "see file:///FOLDER/x"), [2], "{folder}");
        assert_eq!(check(folder, "https://example.org/FOLDER/x"), [], "{folder}");
        assert_eq!(
            check(folder, "src/FOLDER/x and ./FOLDER/x and /var/FOLDER/"),
            [],
            "{folder}"
        );
        assert_eq!(
            check(folder, "/etc/ductor, /proc/self/fd, /var/lib/ductor"),
            [],
            "{folder}"
        );
    }
}
