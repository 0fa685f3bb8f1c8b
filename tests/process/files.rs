//! A command leaves its output in a file, and finds its input in one.

use std::path::{Path, PathBuf};

use ductor::domain::workflow::attempt::Outcome;
use ductor::domain::workflow::definition::{CommandLine, CommandStep, FailsWhen, SecretFrom, SecretRef};
use ductor::os::user::own_uid;
use ductor::words::payload::JsonText;
use ductor::worker::command::{Ended, Plan, execute};
use ductor::worker::process::Shim;
use ductor::worker::step_files::StepFiles;
use tokio::sync::watch;

use crate::workshop::{bounded, exe};

fn step(script: &str) -> CommandStep {
    CommandStep {
        command: CommandLine::Shell(script.to_owned()),
        shell: "/bin/sh".to_owned(),
        environment: Vec::new(),
        env_file: None,
        working_directory: None,
        user: None,
        group: None,
        resource_limits: std::collections::BTreeMap::new(),
        execution_timeout_ms: None,
        kill_timeout_ms: 1_000,
        capture_stdout: true,
        capture_stderr: true,
        save_limit: 10,
        fails_when: FailsWhen {
            nonzero_return: true,
            produces_stdout: false,
            produces_stderr: false,
            always: false,
        },
        verify: None,
        secrets: Vec::new(),
    }
}

/// Runs it with files in `folder`, which is empty afterwards but for the log.
async fn ended(folder: &Path, step: CommandStep, input: Option<&str>) -> Ended {
    let files = StepFiles {
        folder: folder.join("main-1-7.files"),
        input: input.map(|text| JsonText::parse(text).unwrap()),
    };
    let plan = Plan {
        step,
        marks: Vec::new(),
        log: folder.join("main-1-7.log"),
        log_bytes_max: 1 << 20,
        files: Some(files.clone()),
    };
    let (_stop, stops) = watch::channel(None);
    let ended = bounded(execute(
        Shim::spawn(exe()).unwrap(),
        plan,
        stops,
        watch::Sender::new(0),
    ))
    .await;
    assert!(!files.folder.exists(), "nothing is left of the files");
    ended
}

async fn with(script: &str) -> (Outcome, Option<String>, Option<String>) {
    let folder = tempfile::tempdir().unwrap();
    let ended = ended(folder.path(), step(script), None).await;
    let output = ended.output.map(|text| text.as_str().to_owned());
    (ended.outcome, ended.reason, output)
}

fn good(output: Option<&str>) -> (Outcome, Option<String>, Option<String>) {
    (Outcome::Succeeded, None, output.map(str::to_owned))
}

#[tokio::test]
async fn what_a_command_writes_to_its_output_is_the_output_of_the_step() {
    assert_eq!(
        with("echo '{\"n\": 1.0}' > \"$DUCTOR_OUTPUT\"").await,
        good(Some("{\"n\": 1.0}"))
    );
    let renamed = "echo 7 > \"$DUCTOR_OUTPUT.new\" && mv \"$DUCTOR_OUTPUT.new\" \"$DUCTOR_OUTPUT\"";
    assert_eq!(with(renamed).await, good(Some("7")));
    for nothing in ["true", "rm \"$DUCTOR_OUTPUT\"", "echo > \"$DUCTOR_OUTPUT\""] {
        assert_eq!(with(nothing).await, good(None), "{nothing}");
    }
    let failing = with("echo 7 > \"$DUCTOR_OUTPUT\"; exit 3").await;
    assert_eq!(
        (failing.0, failing.2),
        (Outcome::Failed, None),
        "a failure has no output"
    );
}

#[tokio::test]
async fn what_is_no_output_makes_the_attempt_fail_with_a_reason() {
    let failed = async |script: &str| match with(script).await {
        (Outcome::Failed, Some(reason), None) => reason,
        other => panic!("{other:?}"),
    };
    let reason = failed("echo '{oops' > \"$DUCTOR_OUTPUT\"").await;
    assert!(reason.starts_with("output: it is not JSON: "), "{reason}");
    assert_eq!(
        failed("truncate -s 33554433 \"$DUCTOR_OUTPUT\"").await,
        "output: the payload has 33554433 bytes; at most 33554432 (32 MiB) are kept"
    );
    let reason = failed("ln -sf /etc/passwd \"$DUCTOR_OUTPUT\"").await;
    assert!(
        reason.starts_with("output: DUCTOR_OUTPUT cannot be read: "),
        "{reason}"
    );
    let reason = failed("rm \"$DUCTOR_OUTPUT\"; mkfifo \"$DUCTOR_OUTPUT\"").await;
    assert_eq!(
        reason,
        "output: DUCTOR_OUTPUT is no plain file of the command's own any more"
    );
}

#[tokio::test]
async fn a_command_finds_the_input_of_its_step() {
    let folder = tempfile::tempdir().unwrap();
    let copies = step("cat \"$DUCTOR_INPUT\" > \"$DUCTOR_OUTPUT\"");
    let input = "{\"a\": \"\u{fc}\", \"n\": [1.50]}";
    let copied = ended(folder.path(), copies, Some(input)).await;
    assert_eq!(copied.output.unwrap().as_str(), input);
    let (outcome, reason, _) = with("test -z \"$DUCTOR_INPUT\"").await;
    assert_eq!(
        (outcome, reason),
        (Outcome::Succeeded, None),
        "without an input there is no such file"
    );
}

#[tokio::test]
async fn a_command_without_a_step_that_asks_sees_no_such_variable() {
    let folder = tempfile::tempdir().unwrap();
    let plan = Plan {
        step: step("test -z \"$DUCTOR_OUTPUT$DUCTOR_INPUT\""),
        marks: Vec::new(),
        log: folder.path().join("log"),
        log_bytes_max: 1 << 20,
        files: None,
    };
    let (_stop, stops) = watch::channel(None);
    let ended = bounded(execute(
        Shim::spawn(exe()).unwrap(),
        plan,
        stops,
        watch::Sender::new(0),
    ))
    .await;
    assert_eq!((ended.outcome, ended.output), (Outcome::Succeeded, None));
}

#[tokio::test]
async fn a_secret_is_hidden_in_the_output() {
    let folder = tempfile::tempdir().unwrap();
    let secret: PathBuf = folder.path().join("token");
    std::fs::write(&secret, "hush-hush-hush").unwrap();
    let mut telling = step("printf '{\"t\": \"%s\"}' \"$TOKEN\" > \"$DUCTOR_OUTPUT\"");
    telling.secrets = vec![SecretRef {
        name: "TOKEN".to_owned(),
        from: SecretFrom::File(secret.display().to_string()),
    }];
    let told = ended(folder.path(), telling, None).await;
    assert_eq!(told.output.unwrap().as_str(), "{\"t\": \"***\"}");
}

/// Only root can start a command as somebody else.
#[tokio::test]
async fn a_command_of_another_user_can_write_its_output() {
    if own_uid() != 0 {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mode = <std::fs::Permissions as std::os::unix::fs::PermissionsExt>::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let mut step = step("id -u > \"$DUCTOR_OUTPUT\" && cat \"$DUCTOR_INPUT\"");
    step.user = Some("65534".to_owned());
    step.group = Some("65534".to_owned());
    let ended = ended(folder.path(), step, Some("[1]")).await;
    assert_eq!(ended.reason, None);
    assert_eq!(ended.output.unwrap().as_str(), "65534");
    assert_eq!(ended.tails.stdout.trim_end(), "[1]");
}
