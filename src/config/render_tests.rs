//! What people see: the line, the caret under the right letter, the hint.

use super::load_tests::loaded;
use super::{Fault, Paint, Place, Severity, Sources, render};

fn drawn(text: &str, paint: Paint) -> String {
    let faults = loaded(&[("ductor.yaml", text)]).expect_err("a faulty configuration");
    render(&faults, &Sources::in_memory(&[("ductor.yaml", text)]), paint)
}

#[test]
fn line_caret_and_hint() {
    let text = "pools:\n  w:\n    slots: 1\n    maxQeued: 100\n";
    let expected = "\
error[config/unknown-key]: unknown key `maxQeued` in a slot pool
 --> ductor.yaml:4:5
  |
4 |     maxQeued: 100
  |     ^^^^^^^^ did you mean `maxQueued`?
";
    assert_eq!(drawn(text, Paint::Plain), expected);
    let coloured = drawn(text, Paint::Coloured);
    assert!(coloured.contains("\u{1b}[") && coloured.contains("maxQeued"));
}

#[test]
fn both_places_of_a_clash() {
    let expected = "\
error[config/duplicate-key]: duplicate pool 'w'
 --> ductor.yaml:3:3
  |
3 |   w: {slots: 1}
  |   ^
  |
note: it stands here already
 --> ductor.yaml:2:3
  |
2 |   w: {slots: 1}
  |   -
";
    assert_eq!(
        drawn("pools:\n  w: {slots: 1}\n  w: {slots: 1}\n", Paint::Plain),
        expected
    );
}

/// Columns of a terminal before the mark `^` and before the letter it should stand under.
fn columns(drawn: &str, letter: &str) -> (usize, usize) {
    let wide = |text: &str| {
        text.chars()
            .map(|letter| if letter > '\u{2e80}' { 2 } else { 1 })
            .sum()
    };
    let line = drawn.lines().nth(3).unwrap();
    let caret = drawn.lines().nth(4).unwrap();
    (
        wide(&caret[..caret.find('^').unwrap()]),
        wide(&line[..line.find(letter).unwrap()]),
    )
}

#[test]
fn tabs_and_wide_letters_do_not_shift_the_caret() {
    for schedule in [
        "schedule: \"0 x * * *\"",
        "schedule: \"\t0 x * * *\"",
        "schedule:\t\"0 x * * *\"",
        "schedule: \"0 日本 x * * *\"",
        "schedule: \"0 é x * * *\"",
        "timezone: Europe/Madrid\r\n    schedule: 0 x * * *\r",
    ] {
        let text = format!("jobs:\n  - name: j\n    command: c\n    {schedule}\n");
        let drawn = drawn(&text, Paint::Plain);
        let (caret, letter) = columns(&drawn, "x *");
        assert_eq!(caret, letter, "{drawn}");
    }
}

#[test]
fn the_header_has_the_column_of_the_fault() {
    for text in [
        "\u{feff}jbs: 1\r\n",
        "jobs: [{name: 日本, nme: 1}]",
        "jobs: [{name: a,\tnme: 1}]",
    ] {
        let faults = loaded(&[("a.yaml", text)]).expect_err("a faulty configuration");
        let drawn = render(
            &faults[..1],
            &Sources::in_memory(&[("a.yaml", text)]),
            Paint::Plain,
        );
        assert!(
            drawn.contains(&format!("--> {}\n", faults[0].at)),
            "{} {drawn}",
            faults[0].at
        );
    }
}

#[test]
fn without_a_line_to_show() {
    let long = format!("jobs: [{{name: j, command: {}, nme: 1}}]", "c".repeat(1000));
    let at_long = drawn(&long, Paint::Plain);
    assert!(
        at_long.contains("--> ductor.yaml:1:1029") && at_long.contains("did you mean `name`?"),
        "{at_long}"
    );
    assert!(at_long.len() < 300);

    let fault = Fault::error("config/bad-value", &Place::whole("--listen"), "no").with_help("so");
    let drawn = render(&[fault], &Sources::default(), Paint::Plain);
    assert_eq!(drawn, "error[config/bad-value]: no\n--> --listen\n = help: so\n");
}

#[test]
fn warnings_say_so_and_nothing_is_nothing() {
    let sources = Sources::in_memory(&[("a.yaml", "jobs: [{name: j, command: [echo, '${X}']}]")]);
    let (_, warnings) = loaded(&[("a.yaml", &sources.files[0].text)]).unwrap();
    assert_eq!(warnings[0].severity, Severity::Warning);
    assert!(render(&warnings, &sources, Paint::Plain).starts_with("warning[lint/shell-variable]"));
    assert_eq!(render(&[], &sources, Paint::Plain), "");
}
