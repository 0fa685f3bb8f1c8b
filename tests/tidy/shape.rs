//! What a source file looks like: its head, its length, its functions, its names, and what it leaves out.

use crate::lexer::{self, Token};
use crate::sources::{Source, Violation, is_at, lines_of};

const FILE_LINES_MAX: usize = 600;
const FUNCTION_LINES_MAX: usize = 70;
/// A test may tell a long story.
const TEST_FUNCTION_LINES_MAX: usize = 120;

/// Names that say nothing; whatever lands there has a better home.
const DRAWERS: &[&str] = &[
    "util", "utils", "common", "helper", "helpers", "types", "manager", "misc",
];

/// Where "pool" is a word of the wire (`vocabulary.md`): in code it is `SlotPool` or `RecipientPool`.
const POOL_BORDER: &[&str] = &["src/http/", "src/cli/", "src/config/"];

/// Files of `tests/` that may sleep: the polling helper.
const SLEEPERS: &[&str] = &["tests/support/wait.rs", "tests/process/workshop.rs"];

pub(crate) fn check_file(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    if !source.text.starts_with("//!") {
        found.push(Violation::new(
            source,
            1,
            "a file begins with `//!`: what it is for and what it is not",
        ));
    }
    let lines = source.text.lines().count();
    if lines > FILE_LINES_MAX {
        let why = format!("{lines} lines, at most {FILE_LINES_MAX}: split by noun");
        found.push(Violation::new(source, FILE_LINES_MAX + 1, why));
    }
    found
}

pub(crate) fn check_names(source: &Source) -> Vec<Violation> {
    let parts = source.path.trim_end_matches(".rs").split('/');
    let drawers = parts.filter(|part| DRAWERS.contains(part));
    drawers
        .map(|part| Violation::new(source, 1, format!("`{part}` is a drawer; name what is in it")))
        .collect()
}

pub(crate) fn check_functions(source: &Source) -> Vec<Violation> {
    let tokens = lexer::tokens(&source.text);
    let in_tests = test_code(source, &tokens);
    let mut found = Vec::new();
    for (at, pair) in tokens.windows(2).enumerate() {
        let Some(name) = pair[1].word().filter(|_| pair[0].is_word("fn")) else {
            continue;
        };
        let Some(open) = lexer::body_of(&tokens, at) else {
            continue;
        };
        let lines = code_lines(&tokens[open + 1..lexer::behind_block(&tokens, open).saturating_sub(1)]);
        let max = if in_tests[at] {
            TEST_FUNCTION_LINES_MAX
        } else {
            FUNCTION_LINES_MAX
        };
        if lines > max {
            let why = format!(
                "`{name}` has {lines} lines of code, at most {max}: keep the branching, move calculation to leaves"
            );
            found.push(Violation::new(source, pair[0].line, why));
        }
    }
    found
}

/// Lines that hold code; blank lines and comments do not count, the lines of a long string do.
fn code_lines(body: &[Token]) -> usize {
    let mut last = 0;
    let mut count = 0;
    for token in body {
        let first = token.line.max(last + 1);
        count += (token.last_line + 1).saturating_sub(first);
        last = last.max(token.last_line);
    }
    count
}

/// For each token, whether it is test code: under `#[cfg(test)]` or `#[test]`, or in a file of tests.
fn test_code(source: &Source, tokens: &[Token]) -> Vec<bool> {
    let in_file = source.path.starts_with("tests/")
        || source.path.ends_with("/tests.rs")
        || source.path.contains("/tests/")
        || source.path.ends_with("_tests.rs");
    let mut marks = vec![in_file; tokens.len()];
    for at in 0..tokens.len() {
        let attribute = tokens[at].is_mark('#') && tokens.get(at + 1).is_some_and(|token| token.is_mark('['));
        let words: Vec<&str> = tokens
            .iter()
            .skip(at + 2)
            .take(3)
            .filter_map(Token::word)
            .collect();
        let is_test = matches!(words.as_slice(), ["test", ..] | ["cfg" | "tokio", "test", ..]);
        if let Some(open) = lexer::body_of(tokens, at).filter(|_| attribute && is_test) {
            marks[at..lexer::behind_block(tokens, open)].fill(true);
        }
    }
    marks
}

pub(crate) fn check_left_over(source: &Source) -> Vec<Violation> {
    let tokens = lexer::tokens(&source.text);
    let mut found = Vec::new();
    for three in tokens.windows(3) {
        let Some(word) = three[0].word().filter(|_| three[1].is_mark('!')) else {
            let ignored = three[0].is_mark('#') && three[1].is_mark('[') && three[2].is_word("ignore");
            if ignored {
                found.push(Violation::new(
                    source,
                    three[0].line,
                    "a test that does not run is deleted or mended",
                ));
            }
            continue;
        };
        if matches!(word, "todo" | "unimplemented" | "dbg") && !three[2].is_mark('=') {
            found.push(Violation::new(
                source,
                three[0].line,
                format!("`{word}!` is not committed"),
            ));
        }
    }
    found
}

/// A `mod.rs` is a table of contents.
pub(crate) fn check_mod_file(source: &Source) -> Vec<Violation> {
    if !source.path.ends_with("/mod.rs") {
        return Vec::new();
    }
    let tokens = lexer::tokens(&source.text);
    let mut found = Vec::new();
    for pair in tokens.windows(2) {
        let is_function = pair[0].is_word("fn") && pair[1].word().is_some();
        let is_rules = pair[0].is_word("macro_rules") && pair[1].is_mark('!');
        if is_function || is_rules || pair[0].is_word("impl") {
            let why =
                "a mod.rs holds declarations, re-exports and the design text; logic has a file of its own";
            found.push(Violation::new(source, pair[0].line, why));
        }
    }
    found
}

pub(crate) fn check_pool_word(source: &Source) -> Vec<Violation> {
    if source.is_in(POOL_BORDER) {
        return Vec::new();
    }
    let tokens = lexer::tokens(&source.text);
    let bare = tokens
        .iter()
        .filter(|token| matches!(token.word(), Some("pool" | "pools" | "Pool" | "Pools")));
    let why =
        "a bare `pool` means two things: say slot pool or recipient pool (`slot_pool`, `RecipientPool`)";
    bare.map(|token| Violation::new(source, token.line, why))
        .collect()
}

pub(crate) fn check_no_sleep(source: &Source) -> Vec<Violation> {
    if SLEEPERS.iter().any(|place| is_at(&source.path, place)) {
        return Vec::new();
    }
    let sleeps = |segments: &[String]| match segments {
        [.., module, call] => {
            matches!(module.as_str(), "thread" | "time")
                && matches!(
                    call.as_str(),
                    "sleep" | "sleep_ms" | "sleep_until" | "park_timeout"
                )
        }
        _ => false,
    };
    let paths = lexer::paths(&lexer::tokens(&source.text));
    let why = "a sleep orders nothing: use support::wait_until, wait_log, or an event";
    let found = paths.iter().filter(|path| sleeps(&path.segments));
    found.map(|path| Violation::new(source, path.line, why)).collect()
}

#[test]
fn head_length_and_name_of_a_file() {
    assert_eq!(lines_of(check_file, "src/a.rs", "//! Ids.\n"), []);
    assert_eq!(lines_of(check_file, "src/a.rs", "use std::fmt;\n"), [1]);
    assert_eq!(
        lines_of(check_file, "src/a.rs", &format!("//! A.{}", "\n//".repeat(599))),
        []
    );
    assert_eq!(
        lines_of(check_file, "src/a.rs", &format!("//! A.{}", "\n//".repeat(600))),
        [601]
    );
    assert_eq!(lines_of(check_names, "src/store/utils.rs", ""), [1]);
    assert_eq!(lines_of(check_names, "src/common/ids.rs", ""), [1]);
    assert_eq!(lines_of(check_names, "src/words/ids.rs", ""), []);
}

#[test]
fn long_functions_are_found() {
    let function = |lines: usize| {
        format!(
            "fn a<'x>() -> [u8; 2] {{\n{}}}\n",
            "  b(\"}\"); // }\n\n".repeat(lines)
        )
    };
    assert_eq!(lines_of(check_functions, "src/a.rs", &function(70)), []);
    assert_eq!(lines_of(check_functions, "src/a.rs", &function(71)), [1]);
    let tested = |lines: usize| format!("#[cfg(test)]\nmod tests {{\n#[test]\n{}}}\n", function(lines));
    assert_eq!(lines_of(check_functions, "src/a.rs", &tested(120)), []);
    assert_eq!(lines_of(check_functions, "src/a.rs", &tested(121)), [4]);
    let after = format!("{}{}", tested(1), function(71));
    assert_eq!(lines_of(check_functions, "src/a.rs", &after), [9]);
    let text = format!("fn a() {{\nb(\"{}\");\n}}", "x\n".repeat(70));
    assert_eq!(lines_of(check_functions, "src/a.rs", &text), [1]);
    assert_eq!(
        lines_of(
            check_functions,
            "src/a.rs",
            "trait A { fn b(&self); }\ntype C = fn(u8);"
        ),
        []
    );
}

#[test]
fn what_is_left_over_is_found() {
    let check = |code: &str| lines_of(check_left_over, "src/a.rs", code);
    assert_eq!(check("fn a() { todo!() }"), [1]);
    assert_eq!(check("fn a() {\n unimplemented!(\"x\") }"), [2]);
    assert_eq!(check("fn a() { dbg!(1); }"), [1]);
    assert_eq!(check("#[ignore = \"slow\"]\nfn a() {}"), [1]);
    assert_eq!(check("#[test]\n#[ignore]\nfn a() {}"), [2]);
    assert_eq!(check("// todo!()\nfn todo() { b(\"dbg!(\"); c(todo != 1) }"), []);
}

#[test]
fn logic_in_a_mod_file_is_found() {
    let check = |code: &str| lines_of(check_mod_file, "src/a/mod.rs", code);
    assert_eq!(
        check("//! A: `impl` and fn in text.\nmod b;\npub use b::{C, D};\npub type E = fn(u8);"),
        []
    );
    assert_eq!(check("mod b;\nfn c() {}"), [2]);
    assert_eq!(check("impl A {}"), [1]);
    assert_eq!(lines_of(check_mod_file, "src/a/b.rs", "impl A {}"), []);
}

#[test]
fn the_bare_word_is_found() {
    let code = "// the pool\nfn a(slot_pool: SlotPool) { b(\"pool\"); c(\"{pool}\") }\nfn d(pool: u8) {}";
    assert_eq!(lines_of(check_pool_word, "src/engine/a.rs", code), [3]);
    assert_eq!(lines_of(check_pool_word, "src/http/a.rs", code), []);
    assert_eq!(
        lines_of(
            check_pool_word,
            "src/engine/a.rs",
            "struct Pool;\nlet r#pools = 1;"
        ),
        [1, 2]
    );
}

#[test]
fn sleeps_are_found() {
    let check = |code: &str| lines_of(check_no_sleep, "tests/runs.rs", code);
    assert_eq!(check("fn a() { std::thread::sleep(d); }"), [1]);
    assert_eq!(check("use std::thread::{self, sleep};"), [1]);
    assert_eq!(check("use std::thread;\nfn a() { thread::sleep(d) }"), [2]);
    assert_eq!(check("async fn a() { tokio::time::sleep(d).await }"), [1]);
    assert_eq!(check("const A: &str = \"sleep 5; thread::sleep(\";"), []);
    assert_eq!(
        lines_of(check_no_sleep, "tests/support/wait.rs", "use std::thread::sleep;"),
        []
    );
}
