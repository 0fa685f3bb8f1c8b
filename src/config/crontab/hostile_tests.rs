//! Whatever stands in a table: an answer, no panic, in bounded time and memory; and what is imported comes back.

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::crontab_hosts::Host;
use super::super::{
    Config, Fault, Form, JOBS_MAX, Overrides, Paint, Source, Sources, crontab_as_yaml, load, load_at_start,
    render,
};
use super::import::scalar;

const HOST: Host = Host("Europe/Madrid");

fn table(text: &str, user_column: bool) -> Sources {
    let mut sources = Sources::in_memory(&[]);
    sources.files.push(Source::in_memory(
        "x.crontab",
        text,
        Form::Crontab { user_column },
    ));
    sources
}

fn start(sources: &Sources) -> Result<(Config, Vec<Fault>), Vec<Fault>> {
    load_at_start(sources, &|_| None, &Overrides::default(), &HOST)
}

/// Reads and draws whatever comes of it, as both forms; the jobs and the drawn faults.
fn survive(text: &str) -> (usize, String) {
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound against hours, not a measurement"
    )]
    let started = Instant::now();
    let mut answer = (0, String::new());
    for user_column in [true, false] {
        let sources = table(text, user_column);
        answer = match start(&sources) {
            Ok((config, faults)) => {
                serde_json::to_string(&config).unwrap();
                (config.jobs.len(), render(&faults, &sources, Paint::Plain))
            }
            Err(faults) => (0, render(&faults, &sources, Paint::Plain)),
        };
    }
    #[expect(
        clippy::disallowed_methods,
        reason = "a bound against hours, not a measurement"
    )]
    let taken = started.elapsed();
    assert!(taken < Duration::from_secs(60));
    answer
}

#[test]
fn long_lines_and_many_lines() {
    let long = "x".repeat(1 << 20);
    for line in [
        format!("* * * * * {long}"),
        long.clone(),
        format!("A={long}"),
        format!("# name: {long}"),
        format!("{long}=1"),
        format!("CRON_TZ={long}"),
        "*,".repeat(1 << 19),
        " ".repeat(1 << 20),
        "%".repeat(1 << 20),
        "\0".repeat(1 << 20),
        format!("@{long} x"),
    ] {
        let (jobs, _) = survive(&format!("{line}\n0 5 * * * good\n"));
        assert!(jobs <= 1, "{line:.40}");
    }
    let (jobs, drawn) = survive(&format!("* * * * * {long}\n0 5 * * * good\n"));
    assert_eq!(jobs, 1);
    assert!(drawn.contains("longer than 128 KiB"));
    let (_, drawn) = survive(&"60 * * * * x\n".repeat(100_000));
    assert!(drawn.contains("more findings are not shown"));
    let (_, drawn) = survive(&"0 5 * * * x\n".repeat(100_000));
    assert!(drawn.contains("at most 10000 jobs"));
    let (jobs, _) = survive(&"\n".repeat(1 << 20));
    assert_eq!(jobs, 0);
}

#[test]
fn many_variables_in_many_lines_are_bounded() {
    let mut text = String::new();
    for index in 0..JOBS_MAX {
        writeln!(text, "A{index}={}\n0 5 * * * x", "v".repeat(100)).unwrap();
    }
    let (_, drawn) = survive(&text);
    assert!(drawn.contains("at most 250 variables") || drawn.contains("more than 64 MiB"));
    let one = format!("A={}\n{}", "x".repeat(100_000), "0 5 * * * x\n".repeat(JOBS_MAX));
    assert!(survive(&one).1.contains("more than 64 MiB"));
}

#[test]
fn bytes_that_are_no_text_cost_their_line_only() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("old.crontab");
    std::fs::write(
        &path,
        b"# caf\xe9\n0 5 * * * echo caf\xe9\n0 6 * * * echo \xef\xbf\xbd\n0 7 * * * ok\n",
    )
    .unwrap();
    let sources = Sources::read(&path, &|_| None).unwrap();
    let (config, faults) = start(&sources).unwrap();
    let names: Vec<&str> = config.jobs.iter().map(|job| job.name.as_str()).collect();
    assert_eq!(names, ["old-4"]);
    let lines: Vec<usize> = faults
        .iter()
        .filter(|fault| fault.code == "crontab/text")
        .map(|fault| fault.at.line)
        .collect();
    assert_eq!(lines, [2, 3]);
}

/// Loads what an import of a table writes, and compares.
fn round(text: &str) {
    let sources = table(text, false);
    let Ok((config, _)) = load(&sources, &|_| None, &Overrides::default(), &HOST) else {
        return;
    };
    let yaml = crontab_as_yaml(&config, &sources);
    let again = Sources::in_memory(&[("a.yaml", &yaml)]);
    let (imported, _) = load(&again, &|_| None, &Overrides::default(), &HOST)
        .unwrap_or_else(|faults| panic!("{}\n{yaml}", render(&faults, &again, Paint::Plain)));
    let shown = |config: &Config| {
        let mut value = serde_json::to_value(&config.jobs).unwrap();
        for job in value.as_array_mut().unwrap() {
            for word in ["timezoneFrom", "labels"] {
                job.as_object_mut().unwrap().remove(word);
            }
        }
        value
    };
    assert_eq!(shown(&imported), shown(&config), "{yaml}");
}

#[test]
fn odd_texts_are_imported_as_they_are() {
    for value in [
        "${HOME}",
        "$${X}",
        "a: b",
        "- x",
        "~",
        "null",
        "'",
        "\"",
        "\\",
        "a #b",
        "é 日",
        "\u{85}\u{2028}",
        "\u{1b}[0m",
        "<<",
        "@x",
        "a:",
    ] {
        round(&format!(
            "A=\"{value}\"\nB={value}\n# {value}\n0 5 * * * {value}\nHOME=/a{value}\n1 5 1 * 5 b{value}  \n"
        ));
    }
    round("");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn random_text(text in "\\PC{0,100}|[ \\n\\t\\r=*/,0-9@%\\\\\"'#a-e?LH~-]{0,200}") {
        survive(&text);
        round(&text);
    }

    #[test]
    fn random_commands(command in "[ -~é\\t]{1,60}", variable in "[ -~\\t]{0,40}") {
        round(&format!("V={variable}\n@daily c{command}\n"));
    }

    #[test]
    fn a_scalar_comes_back(text in "\\PC{0,40}|[ -~\\t\\x1b\\u{85}\\u{feff}]{0,40}") {
        let yaml = format!("jobs: [{{name: j, command: c}}]\ndefaults:\n  environment:\n    A: {}\n", scalar(&text));
        let again = Sources::in_memory(&[("a.yaml", &yaml)]);
        let loaded = load(&again, &|_| Some("v".to_owned()), &Overrides::default(), &HOST);
        if text.contains("${") {
            return Ok(());
        }
        let (config, _) = loaded.unwrap_or_else(|faults| panic!("{}\n{yaml}", render(&faults, &again, Paint::Plain)));
        prop_assert_eq!(&config.jobs[0].launch.environment[0].value, &text);
    }
}
