//! Whatever the bytes are: an answer, no panic, in bounded time and memory.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::load_tests::loaded;
use super::{FILE_BYTES_MAX, JOBS_MAX, Paint, Sources, render};

const GOOD: &str = "\
server: {listen: '${UNSET:-127.0.0.1:1}', allowedHosts: [a, b]}
state: {path: ./s, cacheBytes: 16MiB}
pools:
  warehouse: {slots: 4, maxQueued: 10}
defaults: &d
  environment: [{key: A, value: \"b\\n${X}\"}]
  pool: warehouse
jobs:
  - name: a 日本
    command: |
      set -e
      echo ${X}
    schedule: \"*/5 * * * *\"
    executionTimeout: 1h30m
  - {<<: *d, name: b, command: [x, y], schedule: {minute: 5}, pool: , verify: {command: v}}
logging: {level: info}
";

/// Loads and draws whatever comes of it.
fn survive(text: &str) -> usize {
    match loaded(&[("a.yaml", text)]) {
        Ok((config, warnings)) => {
            serde_json::to_string(&config).unwrap();
            warnings.len()
        }
        Err(faults) => {
            assert!(faults.iter().any(super::Fault::is_error));
            let sources = Sources::in_memory(&[("a.yaml", text)]);
            assert!(!render(&faults, &sources, Paint::Plain).is_empty());
            assert!(!render(&faults, &sources, Paint::Coloured).is_empty());
            faults.len()
        }
    }
}

fn many(range: std::ops::Range<usize>, line: impl Fn(usize) -> String) -> String {
    range.map(line).collect::<Vec<String>>().concat()
}

fn refusal(text: &str) -> String {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound against hours, not a measurement"
    )]
    let started = Instant::now();
    let faults = loaded(&[("a.yaml", text)]).expect_err("a refusal");
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound against hours, not a measurement"
    )]
    let taken = started.elapsed();
    assert!(taken < Duration::from_secs(20));
    let sources = Sources::in_memory(&[("a.yaml", text)]);
    render(&faults, &sources, Paint::Plain)
}

#[test]
fn the_good_file_is_good() {
    loaded(&[("a.yaml", GOOD)]).unwrap();
}

#[test]
fn bombs_are_refused() {
    let mut doubled = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 10].join(", ");
        writeln!(doubled, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    let long_text = format!(
        "a: &a {}\nb: [{}]\n",
        "x".repeat(1 << 20),
        vec!["*a"; 1000].join(", ")
    );
    let mut stairs = "a0: &a0 [x]\n".to_owned();
    for level in 1..100 {
        writeln!(stairs, "a{level}: &a{level} [*a{}]", level - 1).unwrap();
    }
    for (text, expected) in [
        (doubled, "aliases written out"),
        (long_text, "bytes of text"),
        (stairs, "nesting is deeper than 64"),
        ("[".repeat(100_000), "nesting"),
        ("- ".repeat(100_000), "nesting"),
        ("{a: ".repeat(100_000), "nesting"),
        ("a:\n".to_owned() + &"? ".repeat(5000), "error"),
        ("x".repeat(FILE_BYTES_MAX + 1), "4 MiB"),
        ("[".to_owned() + &"a,".repeat(1_000_000) + "]", "values are more"),
    ] {
        let drawn = refusal(&text);
        assert!(drawn.contains(expected), "{drawn}");
    }
}

#[test]
fn what_is_inherited_by_many_is_bounded() {
    let jobs = many(0..JOBS_MAX, |job| format!("- {{name: j{job}, command: c}}\n"));
    let text = format!(
        "defaults: {{environment: {{A: {}}}}}\njobs:\n{jobs}",
        "x".repeat(1 << 20)
    );
    assert!(refusal(&text).contains("more than 64 MiB"));
    let text = format!("jobs:\n{jobs}- {{name: one more, command: c}}\n");
    assert!(refusal(&text).contains("at most 10000 jobs"));
    assert_eq!(survive(&format!("jobs:\n{jobs}")), 0);
}

#[test]
fn many_faults_are_a_page() {
    let unknown = many(0..100_000, |key| format!("unknown{key}: 1\n"));
    let duplicates = "a: 1\n".repeat(100_000);
    for text in [unknown, duplicates] {
        assert!(refusal(&text).contains("more findings are not shown"));
    }
}

#[test]
fn dear_searches_are_bounded() {
    let pools = many(0..900, |index| format!("p{index}: {{slots: 1}}, "));
    let jobs = many(0..9_000, |job| {
        format!("- {{name: j{job}, command: c, pool: q{job}}}\n")
    });
    let unknown = format!("pools: {{{pools}}}\njobs:\n{jobs}");
    assert!(refusal(&unknown).contains("more findings are not shown"));
    let many = format!("pools: {{{pools}{}}}", pools.replace('p', "r"));
    assert!(refusal(&many).contains("at most 1000 pools"));
    for part in ["${A}", "${A", "$${"] {
        let text = format!("node: {{name: '{}'}}", part.repeat(500_000));
        assert!(refusal(&text).contains("64 KiB"));
    }
}

#[test]
fn odd_bytes() {
    for text in [
        "\0",
        "\u{feff}\u{feff}a: 1",
        "a\rb\r\nc",
        "\u{85}",
        "%YAML 9.9\n---\n",
        "%TAG ! tag:x\n---\n!a b",
        "? ? ? a",
        "!!binary x",
        "? |\n  a\n: b",
        "jobs: [{name: \"\\ud800\"}]",
        "jobs: {? {a: b} : c}",
        "*",
        "&",
        "&a",
        "*a",
        "- - - -",
        "\u{202e}: 1",
        "jobs: [{name: \"\u{1b}[31m\"}]",
        "<<: <<",
        "<<: [[[]]]",
        "node: {name: !!str 5}",
        "server: {listen: \"${\"}",
        "pools: {~: {slots: 1}}",
        "---\n...\n---\n",
        "'",
        "\"\\",
    ] {
        survive(text);
    }
}

#[test]
fn every_beginning_and_every_gap_of_a_good_file() {
    for (index, letter) in GOOD.char_indices() {
        survive(&GOOD[..index]);
        survive(&format!(
            "{}{}",
            &GOOD[..index],
            &GOOD[index + letter.len_utf8()..]
        ));
        for odd in ["\t", "\0", "*", "\"", ": ", "\n", "${", "日"] {
            survive(&format!("{}{odd}{}", &GOOD[..index], &GOOD[index..]));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,200}|[ \\n\\t:{}\\[\\],*&!|>'\"%@`#?<a-c$-]{0,200}") {
        survive(&text);
    }

    #[test]
    fn random_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        survive(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn a_good_file_with_lines_moved(from in 0usize..18, to in 0usize..18, indent in 0usize..6) {
        let mut lines: Vec<String> = GOOD.lines().map(str::to_owned).collect();
        let line = lines.remove(from.min(lines.len() - 1));
        lines.insert(to.min(lines.len()), format!("{}{}", " ".repeat(indent), line.trim_start()));
        survive(&lines.join("\n"));
    }

    #[test]
    fn a_value_of_any_key(value in "[-+.0-9a-zA-Z${}:*~ ]{0,12}", key in 0usize..12) {
        let keys = ["killTimeout", "schedule", "pool", "poolSlots", "queueTimeout", "queuePriority",
            "saveLimit", "shell", "envFile", "environment", "resourceLimits", "failsWhen"];
        survive(&format!("pools: {{w: {{slots: 1}}}}\njobs:\n- name: j\n  command: c\n  {}: {value}\n", keys[key]));
    }
}
