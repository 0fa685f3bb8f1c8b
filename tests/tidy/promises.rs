//! The table of promises names tests: each of them must be there.

use std::collections::BTreeSet;

use super::sources::{Source, Violation};

/// Names of test functions: what follows `#[test]`, or a test attribute of a runtime, over all sources.
pub(crate) fn tests_of(sources: &[Source]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for source in sources {
        let mut is_test = false;
        for line in source.text.lines().map(str::trim) {
            if line.starts_with("#[test]") || line.starts_with("#[tokio::test") {
                is_test = true;
            } else if let Some(rest) = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ") {
                if is_test {
                    found.extend(rest.split('(').next().map(str::to_owned));
                }
                is_test = false;
            } else if !line.starts_with('#') && !line.starts_with("//") {
                is_test = false;
            }
        }
    }
    found
}

/// Rows whose tests do not exist, or that name none.
pub(crate) fn check(page: &Source, tests: &BTreeSet<String>) -> Vec<Violation> {
    let mut found = Vec::new();
    for (index, line) in page.text.lines().enumerate() {
        let Some(cells) = line.strip_prefix("| ").and_then(|line| line.strip_suffix(" |")) else {
            continue;
        };
        let Some((promise, names)) = cells.rsplit_once(" | ") else {
            continue;
        };
        if promise == "promise" || promise.starts_with("---") {
            continue;
        }
        let held_by: Vec<&str> = names.split('`').skip(1).step_by(2).collect();
        if held_by.is_empty() {
            found.push(Violation::new(page, index + 1, "this promise names no test"));
        }
        let missing = held_by.into_iter().filter(|name| !tests.contains(*name));
        found.extend(
            missing.map(|name| Violation::new(page, index + 1, format!("there is no test `{name}`"))),
        );
    }
    found
}

#[test]
fn a_promise_without_its_test_is_found() {
    let source = Source::new(
        "a.rs",
        "#[test]\n#[ignore]\nfn held() {}\n#[tokio::test]\nasync fn waited() {}\nfn helper() {}\n",
    );
    let tests = tests_of(&[source]);
    let expected: BTreeSet<String> = ["held", "waited"].map(str::to_owned).into();
    assert_eq!(tests, expected);
    let good = Source::new(
        "p.md",
        "| promise | tests |\n| --- | --- |\n| one | `held`, `waited` |\n",
    );
    assert!(check(&good, &tests).is_empty());
    let bad = Source::new("p.md", "| one | `held`, `helper` |\n| two | none |\n");
    assert_eq!(check(&bad, &tests).len(), 2);
}
