//! The help of every command, found by walking the tree of commands as a person would.

use super::support::command;

/// The help of one command, 80 columns wide.
fn help(path: &[String]) -> String {
    let mut asked = command();
    asked.args(path).arg("--help").env("COLUMNS", "80");
    let output = asked.output().expect("start the binary");
    let text = String::from_utf8(output.stdout).expect("help is text");
    assert!(
        output.status.success() && output.stderr.is_empty(),
        "{path:?}: {}\n{text}",
        output.status
    );
    text
}

/// The names under `Commands:`.
fn commands_of(help: &str) -> Vec<String> {
    let behind = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = behind.take_while(|line| !line.is_empty());
    // A text that goes on in the next line stands further in.
    let names = listed.filter_map(|line| line.strip_prefix("  ").filter(|rest| !rest.starts_with(' ')));
    names
        .filter_map(|rest| rest.split_whitespace().next())
        .map(str::to_owned)
        .collect()
}

fn walk(path: &[String], seen: &mut Vec<String>) {
    let text = help(path);
    let name = std::iter::once("ductor")
        .chain(path.iter().map(String::as_str))
        .collect::<Vec<_>>();
    for line in text.lines() {
        assert!(line.chars().count() <= 80, "{name:?}: {line}");
    }
    let inner = commands_of(&text);
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    insta::assert_snapshot!(format!("help_{}", name.join("_")), lines.join("\n"));
    seen.push(name[1..].join(" "));
    for command in inner {
        walk(&[path, &[command]].concat(), seen);
    }
}

#[test]
fn every_command_has_its_help() {
    let mut seen = Vec::new();
    walk(&[], &mut seen);
    // The commands of the table that this release has: none of them may go.
    for command in [
        "serve",
        "check",
        "doctor",
        "torture",
        "init",
        "completions",
        "status",
        "health",
        "version",
        "job ls",
        "job show",
        "job start",
        "job stop",
        "job cancel-retries",
        "job pause",
        "job resume",
        "job run",
        "schedule ls",
        "schedule next",
        "schedule fires",
        "schedule why",
        "slots ls",
        "slots show",
        "slots cancel",
        "slots pause",
        "slots resume",
        "run ls",
        "run start",
        "run show",
        "run graph",
        "run why",
        "run approve",
        "run reject",
        "run logs",
        "run cancel",
        "run retry",
        "run rerun",
        "run follow",
        "config show",
        "config reload",
        "node ls",
        "workflow ls",
        "workflow show",
        "workflow graph",
        "workflow validate",
        "workflow dry-run",
        "workflow put",
        "workflow publish",
        "workflow versions",
        "workflow diff",
        "workflow deprecate",
    ] {
        assert!(
            seen.iter().any(|path| path == command),
            "`{command}` is gone: {seen:?}"
        );
    }
}

#[test]
fn completions_are_scripts() {
    for (shell, part) in [
        ("bash", "complete -F _ductor"),
        ("zsh", "#compdef ductor"),
        ("fish", "complete -c ductor"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = super::support::ductor(&["completions", shell])
            .expect_status(0)
            .stdout;
        assert!(script.contains(part) && script.contains("schedule"), "{shell}");
    }
    super::support::ductor(&["completions", "tcsh"]).expect_status(2);
    let script = super::support::ductor(&["completions", "bash"]).stdout;
    let place = super::support::Place::new("jobs: []\n");
    let path = place.write("ductor.bash", &script);
    let read = std::process::Command::new("bash").arg("-n").arg(path).status();
    assert!(read.expect("bash").success());
}
