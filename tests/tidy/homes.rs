//! One home per crate, a pure domain, and the crates that stay out of the tree.

use crate::lexer::{self, Path};
use crate::sources::{Source, Violation, lines_of};

/// A crate and the places whose code may name it.
const HOMES: &[(&str, &[&str])] = &[
    ("annotate_snippets", &["src/config/"]),
    ("anyhow", &["src/main.rs", "src/cli/"]),
    ("aws_lc_rs", &["src/domain/access/"]),
    ("axum", &["src/http/"]),
    (
        "base64",
        &[
            "src/domain/access/",
            "src/worker/outbound/",
            "src/worker/http.rs",
            "src/expr/",
        ],
    ),
    ("bincode", &["src/store/"]),
    ("blake3", &["src/store/"]),
    ("cel_interpreter", &["src/expr/"]),
    ("clap", &["src/main.rs", "src/cli/"]),
    ("clap_complete", &["src/cli/"]),
    ("croner", &["src/domain/schedule"]),
    ("fs4", &["src/store/"]),
    ("getrandom", &["src/words/"]),
    ("hmac", &["src/worker/outbound/"]),
    (
        "jiff",
        &[
            "src/domain/routing/hours.rs",
            "src/domain/routing/read/",
            "src/domain/schedule",
            "src/words/",
            "src/cli/",
            "src/http/",
        ],
    ),
    ("prometheus_client", &["src/http/", "src/engine/metrics.rs"]),
    ("redb", &["src/store/"]),
    ("granit_parser", &["src/config/"]),
    ("hyper", &["src/http/"]),
    ("hyper_util", &["src/http/"]),
    ("jsonschema", &["src/expr/"]),
    ("regex", &["src/cli/", "src/expr/"]),
    ("rust_embed", &["src/dashboard.rs"]),
    ("reqwest", &["src/cli/", "src/worker/outbound/"]),
    ("rustix", &["src/os/"]),
    ("sd_notify", &["src/os/"]),
    ("serde_saphyr", &["src/config/"]),
    (
        "strsim",
        &[
            "src/config/",
            "src/domain/routing/read/",
            "src/domain/schedule/",
            "src/domain/workflow/",
            "src/expr/",
            "src/http/",
        ],
    ),
    ("tower", &["src/http/"]),
    ("tower_http", &["src/http/"]),
    ("utoipa", &["src/http/"]),
    ("uuid", &["src/words/"]),
];

pub(crate) fn check_homes(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for path in lexer::paths(&lexer::tokens(&source.text)) {
        let named = path
            .segments
            .first()
            .and_then(|first| HOMES.iter().find(|(name, _)| name == first));
        let Some((name, places)) = named.filter(|(_, places)| !source.is_in(places)) else {
            continue;
        };
        let why = format!(
            "`{name}` has its home in {}; use what that module offers",
            places.join(", ")
        );
        found.push(Violation::new(source, path.line, why));
    }
    found
}

/// What makes domain code impure, by the path that brings it in.
const IMPURE: &[(&[&str], &str)] = &[
    (&["tokio"], "no async"),
    (&["tracing"], "no logging"),
    (&["std", "env"], "no environment"),
    (&["std", "fs"], "no files"),
    (&["std", "io"], "no I/O"),
    (&["std", "net"], "no network"),
    (&["std", "process"], "no processes"),
    (&["std", "thread"], "no threads"),
    (
        &["std", "time", "SystemTime"],
        "no clock: `now` comes in as an argument",
    ),
    (
        &["std", "time", "Instant"],
        "no clock: `now` comes in as an argument",
    ),
    (&["std", "time", "*"], "no clock: name `Duration`"),
    (&["std", "time", "self"], "no clock: name `Duration`"),
    (
        &["std", "collections", "hash_map", "RandomState"],
        "no chance: it comes in as an argument",
    ),
];

const IMPURE_MACROS: &[&str] = &["print", "println", "eprint", "eprintln"];

pub(crate) fn check_domain(source: &Source) -> Vec<Violation> {
    if !source.is_in(&["src/domain"]) {
        return Vec::new();
    }
    let tokens = lexer::tokens(&source.text);
    let mut found = Vec::new();
    for path in lexer::paths(&tokens) {
        if let Some(why) = impurity(&path) {
            let name = path.segments.join("::");
            found.push(Violation::new(
                source,
                path.line,
                format!("`{name}` in domain code: {why}"),
            ));
        }
    }
    for pair in tokens.windows(2) {
        let Some(word) = pair[0].word() else { continue };
        if IMPURE_MACROS.contains(&word) && pair[1].is_mark('!') {
            found.push(Violation::new(
                source,
                pair[0].line,
                format!("`{word}!` in domain code: no output"),
            ));
        } else if matches!(word, "async" | "await") {
            found.push(Violation::new(
                source,
                pair[0].line,
                format!("`{word}` in domain code: no async"),
            ));
        }
    }
    found
}

fn impurity(path: &Path) -> Option<&'static str> {
    if path.segments == ["std", "time"] {
        return Some("no clock: name `Duration`");
    }
    IMPURE
        .iter()
        .find(|(prefix, _)| path.begins_with(prefix))
        .map(|(_, why)| *why)
}

/// Crates that may not be in `Cargo.lock` at all.
const BANNED: &[(&str, &str)] = &[
    ("native-tls", "no C library of the host; rustls"),
    ("openssl", "no C library of the host; rustls"),
    ("openssl-sys", "no C library of the host; rustls"),
    ("rsa", "its timing advisory has no fix"),
    ("serde_yaml", "deprecated and without positions; serde-saphyr"),
    ("serde_yml", "unsound and unmaintained; serde-saphyr"),
];

/// Crates that others may bring and ductor does not name.
const BANNED_DIRECTLY: &[(&str, &str)] = &[("chrono", "one time library, jiff; chrono only inside cel")];

/// Crates of which there is one version.
const SINGLE: &[&str] = &["bincode"];

/// Over the text of `Cargo.lock`.
pub(crate) fn check_lock(source: &Source) -> Vec<Violation> {
    let packages = packages(&source.text);
    let mut found = Vec::new();
    for package in &packages {
        if let Some((name, why)) = BANNED.iter().find(|(name, _)| *name == package.name) {
            found.push(Violation::new(
                source,
                package.line,
                format!("crate `{name}` is banned: {why}"),
            ));
        }
        if package.name == "ductor" {
            let direct = BANNED_DIRECTLY
                .iter()
                .filter(|(name, _)| package.needs.iter().any(|need| need == name));
            found.extend(direct.map(|(name, why)| {
                Violation::new(
                    source,
                    package.line,
                    format!("`{name}` is a direct dependency: {why}"),
                )
            }));
        }
    }
    for name in SINGLE {
        let mut versions = packages.iter().filter(|package| package.name == *name);
        let second = versions.nth(1);
        found.extend(second.map(|package| {
            Violation::new(
                source,
                package.line,
                format!("a second `{name}`: records are decoded by one version"),
            )
        }));
    }
    found
}

struct Package {
    name: String,
    line: usize,
    needs: Vec<String>,
}

/// The `[[package]]` tables of a lock file, which cargo writes one key a line.
fn packages(text: &str) -> Vec<Package> {
    let mut packages: Vec<Package> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        if line == "[[package]]" {
            packages.push(Package {
                name: String::new(),
                line: index + 1,
                needs: Vec::new(),
            });
        }
        let Some(package) = packages.last_mut() else {
            continue;
        };
        let quoted = line.split('"').nth(1).unwrap_or_default();
        if line.starts_with("name = ") {
            quoted.clone_into(&mut package.name);
        } else if line.starts_with(" \"") {
            package.needs.extend(quoted.split(' ').next().map(str::to_owned));
        }
    }
    packages
}

#[test]
fn a_crate_outside_its_home_is_found() {
    let code = "use redb::Database;";
    assert_eq!(lines_of(check_homes, "src/store/table.rs", code), []);
    assert_eq!(lines_of(check_homes, "src/engine/router.rs", code), [1]);
    assert_eq!(
        lines_of(
            check_homes,
            "src/engine/router.rs",
            "// redb::X\nlet redb = \"redb::X\"; redb.open();"
        ),
        []
    );
    assert_eq!(
        lines_of(check_homes, "src/store/mod.rs", "fn f() -> anyhow::Result<()> {}"),
        [1]
    );
    assert_eq!(
        lines_of(check_homes, "src/words/ids.rs", "use {clap::Parser, uuid::Uuid};"),
        [1]
    );
    assert_eq!(
        lines_of(check_homes, "src/domain/schedule.rs", "use jiff::Timestamp;"),
        []
    );
    assert_eq!(
        lines_of(check_homes, "src/domain/run.rs", "use ::jiff::Timestamp;"),
        [1]
    );
    assert_eq!(
        lines_of(
            check_homes,
            "src/engine/metrics.rs",
            "use prometheus_client as metrics;"
        ),
        []
    );
    assert_eq!(
        lines_of(
            check_homes,
            "src/engine/feed.rs",
            "use prometheus_client as metrics;"
        ),
        [1]
    );
}

#[test]
fn impure_domain_code_is_found() {
    let check = |code: &str| lines_of(check_domain, "src/domain/run.rs", code);
    assert_eq!(check("use std::time::Duration;"), []);
    assert_eq!(check("use std::time::{Duration, Instant};"), [1]);
    assert_eq!(check("use std::{fmt, fs};"), [1]);
    assert_eq!(check("use std::time;"), [1]);
    assert_eq!(check("fn f() { std::time::SystemTime::now(); }"), [1]);
    assert_eq!(check("fn f() { tracing::info!(\"x\"); }"), [1]);
    assert_eq!(check("fn f() {\n println!(\"x\"); }"), [2]);
    assert_eq!(check("async fn f() {}"), [1]);
    assert_eq!(lines_of(check_domain, "src/engine/router.rs", "use std::fs;"), []);
}

#[test]
fn banned_crates_are_found() {
    let package = |name: &str, needs: &str| {
        format!("[[package]]\nname = \"{name}\"\nversion = \"1.0.0\"\ndependencies = [\n{needs}]\n\n")
    };
    let check = |text: &str| lines_of(check_lock, "Cargo.lock", text);
    assert_eq!(check(&package("cel", " \"chrono\",\n")), []);
    assert_eq!(check(&package("ductor", " \"chrono 0.4.1\",\n")), [1]);
    assert_eq!(check(&package("ductor", " \"chrono-tz\",\n")), []);
    assert_eq!(check(&package("rsa", "")), [1]);
    assert_eq!(
        check(&format!("{}{}", package("bincode", ""), package("bincode", ""))),
        [7]
    );
}
