//! Imports go strictly down the page of floors; files of `engine/` do not call each other.

use crate::lexer::{self, Path, Token};
use crate::sources::{Source, Violation, is_at, lines_of};

/// Top to bottom. A module may name those below it, and no other.
const FLOORS: &[&str] = &[
    "cli",
    "http",
    "mcp",
    "dashboard",
    "daemon",
    "engine",
    "worker",
    "store",
    "config",
    "domain",
    "expr",
    "words",
    "os",
];

/// Down the page, and refused all the same.
const REFUSED: &[(&str, &str, &str)] = &[
    (
        "words",
        "os",
        "words and os share the lowest floor; only the clock in words/time reads os",
    ),
    (
        "domain",
        "os",
        "domain code is pure: what the system says comes in as an argument",
    ),
    (
        "expr",
        "os",
        "expressions are pure: what the system says comes in as an argument",
    ),
];

/// Files that may do what `REFUSED` refuses.
const EXCEPTIONS: &[(&str, &str)] = &[("src/words/time", "os")];

/// What files of `engine/` share; the rest of an engine is reached through the store and the feed.
const ENGINE_SEAMS: &[&str] = &[
    "feed", "book", "core", "disk", "live", "metrics", "changes", "runner", "warm", "graphs", "mailbox",
    "moving", "deciding",
];

/// Macros with `#[macro_export]`, which live at the crate's root and on no floor.
const ROOT_MACROS: &[&str] = &["failpoint"];

pub(crate) fn check(source: &Source) -> Vec<Violation> {
    let Some(home) = module_of(&source.path) else {
        return Vec::new();
    };
    let tokens = lexer::tokens(&source.text);
    let inline = inline_modules(&tokens);
    let mut found = Vec::new();
    for path in lexer::paths(&tokens) {
        let mut here = home.clone();
        here.extend(inline[path.start].iter().cloned());
        if is_visibility(&tokens, &path) {
            continue;
        }
        if let Some(target) = resolve(&path, here)
            && let Some(why) = refuse(source, &home, &target, path.is_macro)
        {
            found.push(Violation::new(source, path.line, why));
        }
    }
    found
}

/// Where a file sits in the crate; `None` for the roots, which may name everything.
fn module_of(path: &str) -> Option<Vec<String>> {
    let inner = path.strip_prefix("src/")?.strip_suffix(".rs")?;
    if matches!(inner, "main" | "lib") {
        return None;
    }
    let inner = inner.strip_suffix("/mod").unwrap_or(inner);
    Some(inner.split('/').map(str::to_owned).collect())
}

/// For each token, the inline modules around it.
fn inline_modules(tokens: &[Token]) -> Vec<Vec<String>> {
    let mut around = vec![Vec::new(); tokens.len()];
    for at in 0..tokens.len() {
        let opens = tokens[at].is_word("mod") && tokens.get(at + 2).is_some_and(|token| token.is_mark('{'));
        let Some(name) = tokens.get(at + 1).and_then(Token::word).filter(|_| opens) else {
            continue;
        };
        for modules in &mut around[at + 2..lexer::behind_block(tokens, at + 2)] {
            modules.push(name.to_owned());
        }
    }
    around
}

/// `pub(in crate::x)` opens something to a floor above; it imports nothing.
fn is_visibility(tokens: &[Token], path: &Path) -> bool {
    path.start >= 2 && tokens[path.start - 1].is_word("in") && tokens[path.start - 2].is_mark('(')
}

/// The path from the crate's root, if it is one of ours.
fn resolve(path: &Path, here: Vec<String>) -> Option<Vec<String>> {
    let mut target = match path.segments.first()?.as_str() {
        "crate" => Vec::new(),
        "super" | "self" => here,
        _ => return None,
    };
    for segment in &path.segments {
        match segment.as_str() {
            "crate" | "self" => {}
            "super" => drop(target.pop()),
            other => target.push(other.to_owned()),
        }
    }
    Some(target)
}

fn refuse(source: &Source, home: &[String], target: &[String], is_macro: bool) -> Option<String> {
    let (from, to) = (home.first()?.as_str(), target.first()?.as_str());
    if from == to {
        return refuse_in_engine(home, target);
    }
    if is_macro && ROOT_MACROS.contains(&to) {
        return None;
    }
    let rank = |name: &str| FLOORS.iter().position(|floor| *floor == name);
    let Some(home_rank) = rank(from) else {
        return Some(format!(
            "module `{from}` is on no floor; add it to FLOORS in tests/tidy/floors.rs"
        ));
    };
    let Some(target_rank) = rank(to) else {
        return Some(format!(
            "`crate::{to}` is on no floor: name the module itself, or add it to FLOORS"
        ));
    };
    if target_rank < home_rank {
        return Some(format!(
            "`{from}` names `{to}`, which is above it; imports go strictly down the floors"
        ));
    }
    let excepted = EXCEPTIONS
        .iter()
        .any(|(place, floor)| *floor == to && is_at(&source.path, place));
    let refused = REFUSED
        .iter()
        .find(|(above, below, _)| *above == from && *below == to);
    refused
        .filter(|_| !excepted)
        .map(|(_, _, why)| format!("`{from}` names `{to}`: {why}"))
}

fn refuse_in_engine(home: &[String], target: &[String]) -> Option<String> {
    let (mine, other) = (home.get(1)?, target.get(1)?);
    // The rig is the engine's test bed: it drives every engine, and no engine names it.
    let apart =
        home[0] == "engine" && mine != other && mine != "rig" && !ENGINE_SEAMS.contains(&other.as_str());
    apart.then(|| {
        format!("engine `{mine}` names engine `{other}`; engines talk through the store and the feed (ENGINE_SEAMS)")
    })
}

#[test]
fn down_is_allowed_and_up_is_not() {
    assert_eq!(
        lines_of(check, "src/store/mod.rs", "use crate::domain::run::Run;"),
        []
    );
    assert_eq!(
        lines_of(check, "src/domain/run.rs", "\nuse crate::store::Store;"),
        [2]
    );
    assert_eq!(
        lines_of(check, "src/config/mod.rs", "use crate::{words::ids, engine};"),
        [1]
    );
    assert_eq!(
        lines_of(check, "src/config/jobs.rs", "use crate::domain::schedule;"),
        []
    );
    assert_eq!(
        lines_of(check, "src/domain/run.rs", "use crate::config::Jobs;"),
        [1]
    );
    assert_eq!(
        lines_of(check, "src/daemon.rs", "fn f() { crate::http::serve() }"),
        [1]
    );
    assert_eq!(lines_of(check, "src/main.rs", "use ductor::cli;"), []);
}

#[test]
fn super_is_followed_through_files_and_inline_modules() {
    assert_eq!(
        lines_of(check, "src/words/ids.rs", "use super::super::store::Store;"),
        [1]
    );
    assert_eq!(
        lines_of(check, "src/words/ids.rs", "use super::{limits, super::store};"),
        [1]
    );
    assert_eq!(
        lines_of(
            check,
            "src/words/ids.rs",
            "mod tests { use super::*; use super::super::limits; }"
        ),
        []
    );
    assert_eq!(
        lines_of(
            check,
            "src/words/ids.rs",
            "mod tests { use super::super::super::store::X; }"
        ),
        [1]
    );
    assert_eq!(
        lines_of(check, "src/dashboard.rs", "use super::http::Router;"),
        [1]
    );
}

#[test]
fn the_lowest_floor_is_split() {
    assert_eq!(lines_of(check, "src/words/names.rs", "use crate::os;"), [1]);
    assert_eq!(lines_of(check, "src/words/time.rs", "use crate::os;"), []);
    assert_eq!(lines_of(check, "src/os/proc.rs", "use crate::words::ids;"), [1]);
    assert_eq!(
        lines_of(check, "src/domain/run.rs", "use crate::os::boottime;"),
        [1]
    );
}

#[test]
fn engines_share_only_the_seams() {
    assert_eq!(
        lines_of(check, "src/engine/router.rs", "use super::timers::Timer;"),
        [1]
    );
    assert_eq!(
        lines_of(
            check,
            "src/engine/router.rs",
            "use crate::engine::{feed::Feed, slots};"
        ),
        [1]
    );
    assert_eq!(
        lines_of(check, "src/engine/router.rs", "use super::feed::Feed;"),
        []
    );
    assert_eq!(
        lines_of(
            check,
            "src/engine/slots/admit.rs",
            "use crate::engine::slots::renew;"
        ),
        []
    );
    assert_eq!(lines_of(check, "src/engine/router.rs", "use super::*;"), [1]);
    assert_eq!(
        lines_of(check, "src/engine/mod.rs", "pub use self::router::Router;"),
        []
    );
    assert_eq!(
        lines_of(
            check,
            "src/engine/rig/stage.rs",
            "use crate::engine::router::Router;"
        ),
        []
    );
    assert_eq!(
        lines_of(check, "src/engine/router.rs", "use super::rig::Rig;"),
        [1]
    );
}

#[test]
fn what_is_on_no_floor_is_named() {
    assert_eq!(
        lines_of(check, "src/store/mod.rs", "use crate::utilities::x;"),
        [1]
    );
    assert_eq!(lines_of(check, "src/misc.rs", "use crate::words::ids;"), [1]);
    assert_eq!(
        lines_of(check, "src/store/mod.rs", "fn f() { crate::failpoint!(\"a\"); }"),
        []
    );
    assert_eq!(
        lines_of(check, "src/store/mod.rs", "pub(in crate::engine) fn f() {}"),
        []
    );
    assert_eq!(
        lines_of(
            check,
            "src/store/mod.rs",
            "// crate::engine\nconst X: &str = \"crate::engine\";"
        ),
        []
    );
}
