//! What the binary does without a daemon: `job run`, `doctor`, help, and the exit codes of a missing daemon.

mod support;

use std::process::{Command, Stdio};

use support::{Answered, Output, PATIENCE, Place, ductor, wait_until};

const JOBS: &str = r#"
jobs:
  - name: good
    command: echo "to stdout $DUCTOR_JOB_NAME $DUCTOR_ATTEMPT"; echo "to stderr" >&2
  - name: bad
    command: exit 3
  - name: killed
    command: kill -9 $$
  - name: missing
    command: [/nowhere/at/all]
  - name: checked
    command: echo made
    verify: {command: echo wrong; exit 1}
  - name: slow
    command: sleep 60 & wait
    executionTimeout: 1
    killTimeout: 1
  - name: patient
    command: trap 'echo asked; exit 7' TERM; echo begun; while true; do sleep 0.1; done
"#;

fn job_run(place: &Place, name: &str) -> Answered {
    let config = place.config();
    ductor(&["job", "run", name, "--config", &config.to_string_lossy()])
}

#[test]
fn a_job_in_the_foreground_prints_and_ends_as_its_command() {
    let place = Place::new(JOBS);
    let good = job_run(&place, "good").expect_status(0);
    assert_eq!(good.stdout, "to stdout good 1\n");
    assert!(
        good.stderr.contains("takes no slots") && good.stderr.ends_with("to stderr\n"),
        "{good:?}"
    );
    let table = [
        ("bad", 3, "exit code 3"),
        ("killed", 137, ""),
        ("missing", 127, "launch failed"),
        ("checked", 1, "verify: exit code 1: wrong"),
        ("slow", 124, "execution timeout of 1 s"),
        ("nobody", 3, "job 'nobody' is not in"),
    ];
    for (name, status, part) in table {
        let answered = job_run(&place, name).expect_status(status);
        assert!(answered.stderr.contains(part), "{answered:?}");
    }
    let left: Vec<_> = std::fs::read_dir(place.state())
        .expect("the state directory")
        .collect();
    assert!(left.is_empty(), "nothing is recorded: {left:?}");
}

#[test]
fn ctrl_c_ends_the_group_of_a_foreground_job() {
    let place = Place::new(JOBS);
    let mut child = Command::new(env!("CARGO_BIN_EXE_ductor"))
        .args(["job", "run", "patient", "--config"])
        .arg(place.config())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("start the binary");
    let streams = (child.stdout.take(), child.stderr.take());
    let output = Output::collect(streams.0.expect("piped"), streams.1.expect("piped"));
    assert!(output.wait_for("begun", PATIENCE).is_some(), "{output}");
    let sent = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(sent.expect("run kill").success());
    let ended = wait_until(PATIENCE, || child.try_wait().expect("its status"));
    assert_eq!(ended.and_then(|status| status.code()), Some(130), "{output}");
    assert!(output.wait_for("asked", PATIENCE).is_some(), "{output}");
}

#[test]
fn doctor_makes_nothing_where_there_is_no_store() {
    let place = Place::new(JOBS);
    let (config, state) = (place.config(), place.state());
    let words = [
        "doctor",
        "--store",
        "--config",
        &config.to_string_lossy(),
        "--state-dir",
    ];
    let mut line: Vec<String> = words.map(str::to_owned).to_vec();
    line.push(state.to_string_lossy().into_owned());
    let answered = ductor(&line).expect_status(0);
    assert!(
        answered.stdout.contains("store: there is none yet"),
        "{answered:?}"
    );
    assert!(answered.stdout.lines().count() >= 6, "{answered:?}");
    assert_eq!(std::fs::read_dir(&state).expect("the state directory").count(), 0);
    line.push("--json".to_owned());
    let checks = ductor(&line).expect_status(0).json();
    assert!(
        checks
            .as_array()
            .is_some_and(|checks| checks.iter().any(|check| check["check"] == "disk"))
    );
}

#[test]
fn a_bad_configuration_is_wrong_usage() {
    let place = Place::new("jobs:\n  - name: a\n    comand: x\n");
    let answered = job_run(&place, "a").expect_status(2);
    assert!(answered.stderr.contains("comand"), "{answered:?}");
    let config = place.config();
    ductor(&["doctor", "--config", &config.to_string_lossy()]).expect_status(2);
}

#[test]
fn a_missing_daemon_is_told_to_people_and_programs() {
    // Nothing listens on a port that has only just been given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    let answered = ductor(&["status", "--server", &server]).expect_status(69);
    assert!(answered.stderr.contains("no daemon is reachable"), "{answered:?}");
    let answered = ductor(&["--json", "job", "ls", "--server", &server]).expect_status(69);
    let problem: serde_json::Value = serde_json::from_str(&answered.stderr).expect("a problem document");
    assert_eq!(problem["code"], "UNREACHABLE");
    let answered = ductor(&["version", "--server", &server]).expect_status(0);
    assert!(answered.stdout.contains("not reachable"), "{answered:?}");
}

#[test]
fn help_has_examples() {
    for words in [
        &["--help"][..],
        &["job", "start", "--help"],
        &["run", "ls", "--help"],
    ] {
        let answered = ductor(words).expect_status(0);
        assert!(answered.stdout.contains("Examples:"), "{answered:?}");
    }
    let none: [&str; 0] = [];
    assert!(ductor(&none).expect_status(2).stderr.contains("ductor job start"));
}
