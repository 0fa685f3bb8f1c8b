//! What each client command answers with `--json`, and with which exit code, against one daemon.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::redacted::{redacted, words};
use super::support::{Answered, Builder, Daemon, Place, ductor};

const CONFIG: &str = r#"
pools:
  p: {slots: 1, maxQueued: 1}
jobs:
  - {name: good, command: "echo out"}
  - {name: bad, command: "exit 3"}
  - {name: long, command: "sleep 600", killTimeout: 1, concurrencyPolicy: Forbid}
  - {name: pooled, command: "sleep 600", killTimeout: 1, pool: p}
  - {name: daily, command: "true", schedule: "0 8 * * *", timezone: Europe/Berlin}
  - {name: off, command: "true", enabled: false}
  - {name: again, command: "exit 4", onFailure: {retry: {maximumRetries: 3, initialDelay: 600}}}
"#;

/// The documents of a stream: one, or one on each line.
fn documents(text: &str) -> Vec<Value> {
    let whole = serde_json::from_str(text).map(|value: Value| vec![value]);
    whole.unwrap_or_else(|_| {
        let line = |line: &str| serde_json::from_str(line).unwrap_or_else(|_| json!({"not json": line}));
        text.lines().map(line).collect()
    })
}

/// Command, exit code and documents, as a text for a snapshot; with marks for what differs from run to run, or exactly.
fn shown(arguments: &[&str], answered: &Answered, exactly: bool) -> String {
    let word = |word: &&str| if exactly { (*word).to_owned() } else { words(word) };
    let line: Vec<String> = arguments.iter().map(word).collect();
    let mut text = format!("$ ductor --json {}\nexit {}\n", line.join(" "), answered.status);
    for (name, stream) in [("stdout", &answered.stdout), ("stderr", &answered.stderr)] {
        // Remarks for people are no documents.
        let found = documents(stream);
        let found = found
            .iter()
            .filter(|value| name == "stdout" || value.get("not json").is_none());
        for value in found {
            let value = if exactly { value.clone() } else { redacted(value) };
            let pretty = serde_json::to_string_pretty(&value).expect("JSON");
            let _ = writeln!(text, "{name}:\n{pretty}");
        }
    }
    text
}

struct Talk<'d>(&'d Daemon);

impl Talk<'_> {
    /// Runs a command, and compares what it says with the snapshot of that name.
    #[track_caller]
    fn says(&self, name: &str, status: i32, arguments: &[&str]) -> Answered {
        self.compare(name, status, arguments, false)
    }

    /// The same for an answer that is the same each time.
    #[track_caller]
    fn says_exactly(&self, name: &str, status: i32, arguments: &[&str]) -> Answered {
        self.compare(name, status, arguments, true)
    }

    #[track_caller]
    fn compare(&self, name: &str, status: i32, arguments: &[&str], exactly: bool) -> Answered {
        let all = [&["--json"], arguments].concat();
        let answered = self.0.cli(&all);
        assert_eq!(answered.status, status, "{arguments:?}: {answered:?}");
        insta::assert_snapshot!(format!("json_{name}"), shown(arguments, &answered, exactly));
        answered
    }
}

fn text_of(answered: &Answered, member: &str) -> String {
    let value = answered.json();
    value[member]
        .as_str()
        .unwrap_or_else(|| panic!("{value}"))
        .to_owned()
}

#[test]
fn json_and_exit_codes_of_jobs() {
    let daemon = Daemon::start(CONFIG);
    let talk = Talk(&daemon);
    talk.says("job_ls_idle", 0, &["job", "ls"]);
    let started = talk.says(
        "job_start",
        0,
        &["job", "start", "good", "--idempotency-key", "k"],
    );
    let good = text_of(&started, "runId");
    let again = talk.says(
        "job_start_again",
        0,
        &["job", "start", "good", "--idempotency-key", "k"],
    );
    assert_eq!(text_of(&again, "runId"), good);
    daemon.cli(&["run", "follow", &good]).expect_status(0);
    talk.says("job_start_wait_failed", 1, &["job", "start", "bad", "--wait"]);
    talk.says("job_start_follow", 0, &["job", "start", "good", "--follow"]);
    talk.says("job_start_unknown", 3, &["job", "start", "nobody"]);
    talk.says("job_start_disabled", 5, &["job", "start", "off"]);
    talk.says(
        "job_start_key",
        2,
        &["job", "start", "good", "--idempotency-key", ""],
    );
    let long = text_of(
        &daemon.cli(&["--json", "job", "start", "long"]).expect_status(0),
        "runId",
    );
    talk.says("job_start_forbid", 5, &["job", "start", "long"]);
    let again = text_of(
        &daemon.cli(&["--json", "job", "start", "again", "--retries"]),
        "runId",
    );
    daemon.wait("its first failure", || {
        let shown = daemon.get(&format!("/api/runs/{again}")).json();
        (shown["data"]["steps"][0]["state"] == "retrying").then_some(())
    });
    talk.says("job_show", 0, &["job", "show", "daily"]);
    talk.says("job_show_unknown", 3, &["job", "show", "nobody"]);
    talk.says("job_ls_failing", 0, &["job", "ls", "--failing"]);
    talk.says(
        "job_pause",
        0,
        &["job", "pause", "daily", "--for", "1h", "--reason", "why not"],
    );
    talk.says("job_ls_paused", 0, &["job", "ls", "--paused"]);
    talk.says("job_resume", 0, &["job", "resume", "daily"]);
    talk.says("job_cancel_retries", 0, &["job", "cancel-retries", "again"]);
    talk.says(
        "job_cancel_retries_unknown",
        3,
        &["job", "cancel-retries", "nobody"],
    );
    talk.says("job_pause_unknown", 3, &["job", "pause", "nobody"]);
    talk.says("job_stop", 0, &["job", "stop", "long"]);
    daemon.cli(&["run", "follow", &long]).expect_status(1);
    talk.says("job_stop_idle", 5, &["job", "stop", "long"]);
    talk.says("job_stop_unknown", 3, &["job", "stop", "nobody"]);
}

#[test]
fn json_and_exit_codes_of_runs() {
    let daemon = Daemon::start(CONFIG);
    let talk = Talk(&daemon);
    talk.says("run_ls_empty", 0, &["run", "ls"]);
    let begin = |job: &str| {
        let started = daemon.cli(&["--json", "job", "start", job]).expect_status(0);
        text_of(&started, "runId")
    };
    let (good, long) = (begin("good"), begin("long"));
    daemon.cli(&["run", "follow", &good]).expect_status(0);
    let bad = begin("bad");
    daemon.cli(&["run", "follow", &bad]).expect_status(1);
    talk.says("run_show", 0, &["run", "show", &good]);
    talk.says("run_why_ended", 0, &["run", "why", &good]);
    talk.says("run_show_unknown", 3, &["run", "show", "run_0"]);
    talk.says("run_logs", 0, &["run", "logs", &good]);
    talk.says("run_logs_grep", 0, &["run", "logs", &good, "--grep", "^o"]);
    talk.says("run_logs_step", 3, &["run", "logs", &good, "nowhere"]);
    talk.says("run_follow", 0, &["run", "follow", &good]);
    talk.says(
        "run_ls_where",
        0,
        &["run", "ls", "--where", "state:failed job:bad"],
    );
    daemon.wait("its command", || {
        let shown = daemon.get(&format!("/api/runs/{long}")).json();
        (shown["data"]["state"] == "running").then_some(())
    });
    talk.says("run_ls_where_bad", 2, &["run", "ls", "--where", "color:red"]);
    talk.says("run_retry_ended", 5, &["run", "retry", &good]);
    talk.says("run_retry_running", 5, &["run", "retry", &long]);
    talk.says("run_retry_unknown", 3, &["run", "retry", "run_0"]);
    talk.says("run_rerun_unknown", 3, &["run", "rerun", "run_0"]);
    talk.says("run_rerun", 0, &["run", "rerun", &good]);
    talk.says("run_rerun_wait_failed", 1, &["run", "rerun", &bad, "--wait"]);
    talk.says(
        "run_retry_where_bad",
        2,
        &["run", "retry", "--where", "state:succeeded", "--yes"],
    );
    talk.says(
        "run_retry_where_none",
        0,
        &["run", "retry", "--where", "job:daily", "--yes"],
    );
    talk.says(
        "run_retry_where_unasked",
        2,
        &["run", "retry", "--where", "job:bad"],
    );
    talk.says(
        "run_retry_where",
        0,
        &["run", "retry", "--where", "job:bad state:failed", "--yes"],
    );
    talk.says("run_cancel_ended", 5, &["run", "cancel", &good, "--yes"]);
    talk.says("run_cancel_unasked", 2, &["run", "cancel", &long]);
    talk.says(
        "run_cancel_where_none",
        0,
        &["run", "cancel", "--where", "job:daily", "--yes"],
    );
    talk.says(
        "run_cancel_where",
        0,
        &["run", "cancel", "--where", "job:long", "--yes"],
    );
    daemon.cli(&["run", "follow", &long]).expect_status(1);
}

#[test]
fn json_and_exit_codes_of_slots() {
    let daemon = Daemon::start(CONFIG);
    let talk = Talk(&daemon);
    daemon.cli(&["job", "start", "pooled"]).expect_status(0);
    daemon.wait("the first to run", || {
        (daemon.get("/pools/p").json()["used"] == 1).then_some(())
    });
    let queued = talk.says("job_start_queued", 0, &["job", "start", "pooled"]);
    talk.says("job_start_full", 5, &["job", "start", "pooled"]);
    talk.says("run_why_waiting", 0, &["run", "why", &text_of(&queued, "runId")]);
    talk.says("slots_ls", 0, &["slots", "ls"]);
    talk.says("slots_show", 0, &["slots", "show", "p"]);
    talk.says("slots_show_unknown", 3, &["slots", "show", "nobody"]);
    talk.says("slots_pause", 0, &["slots", "pause", "p", "--note", "n"]);
    talk.says("slots_resume", 0, &["slots", "resume", "p"]);
    talk.says(
        "slots_cancel",
        0,
        &["slots", "cancel", "p", &text_of(&queued, "queueId")],
    );
    talk.says("slots_cancel_unknown", 5, &["slots", "cancel", "p", "00"]);
    daemon.cli(&["job", "stop", "pooled"]).expect_status(0);
}

#[test]
fn json_and_exit_codes_of_schedules() {
    let daemon = Daemon::start(CONFIG);
    let talk = Talk(&daemon);
    talk.says("schedule_ls", 0, &["schedule", "ls"]);
    talk.says("schedule_ls_overdue", 0, &["schedule", "ls", "--overdue"]);
    let from = ["--from", "2026-10-24 12:00"];
    let next = [
        &["schedule", "next", "daily", "-n", "2", "--zone", "UTC"],
        &from[..],
    ]
    .concat();
    talk.says_exactly("schedule_next", 0, &next);
    talk.says("schedule_next_unknown", 3, &["schedule", "next", "nobody"]);
    talk.says("schedule_next_by_hand", 3, &["schedule", "next", "good"]);
    let expression = [
        "schedule",
        "next",
        "30 2 * * 1,7",
        "-n",
        "2",
        "--zone",
        "Europe/Berlin",
        "--utc",
    ];
    talk.says_exactly(
        "schedule_next_expression",
        0,
        &[&expression[..], &from[..]].concat(),
    );
    talk.says("schedule_next_bad", 2, &["schedule", "next", "0 60 * * *"]);
    talk.says("schedule_fires", 0, &["schedule", "fires", "daily"]);
    talk.says("schedule_fires_unknown", 3, &["schedule", "fires", "nobody"]);
    talk.says(
        "schedule_why",
        0,
        &["schedule", "why", "daily", "--at", "2020-01-01 08:00"],
    );
    talk.says(
        "schedule_why_unreadable",
        2,
        &["schedule", "why", "daily", "--at", "soon"],
    );
    talk.says(
        "schedule_why_unknown",
        3,
        &["schedule", "why", "nobody", "--at", "08:00"],
    );
}

#[test]
fn json_and_exit_codes_of_the_daemon() {
    let place = Place::new(CONFIG);
    let faults = place.write("faults", "");
    let daemon = Builder::at(&place)
        .fail_at(&format!("@{}", faults.display()))
        .start();
    let talk = Talk(&daemon);
    talk.says("health", 0, &["health"]);
    daemon.wait("readiness", || {
        (daemon.get("/readyz").status == 200).then_some(())
    });
    daemon.wait("health", || (daemon.cli(&["status"]).status == 0).then_some(()));
    talk.says("status", 0, &["status"]);
    talk.says("health_ready", 0, &["health", "--ready"]);
    talk.says("version", 0, &["version"]);
    talk.says("node_ls", 0, &["node", "ls"]);
    talk.says("not_allowed", 4, &["--tenant", "acme", "job", "ls"]);
    talk.says("no_key_file", 2, &["--key-file", "/nowhere/at/all", "job", "ls"]);
    place.write("faults", "store.read=error\n");
    talk.says("unavailable", 6, &["slots", "ls"]);
    place.write("faults", "");
    let late = daemon
        .cli(&["--json", "--timeout", "1s", "job", "start", "long", "--wait"])
        .expect_status(124);
    assert!(late.stderr.contains("DEADLINE_EXCEEDED"), "{late:?}");
    daemon.cli(&["job", "stop", "long"]).expect_status(0);

    talk.says("config_reload", 0, &["config", "reload"]);
    let folder = place.folder().display().to_string();
    place.write_config(&CONFIG.replace("maxQueued", "maxQeued"));
    let rejected = daemon.cli(&["--json", "config", "reload"]).expect_status(2);
    assert!(
        rejected.stderr.contains("did you mean `maxQueued`?") && !rejected.stderr.contains(&folder),
        "{rejected:?}"
    );
    place.write_config(CONFIG);
    let config = daemon.cli(&["--json", "config", "show"]).expect_status(0).json();
    assert_eq!(config["data"]["jobs"][0]["name"], "good");
    let checks = daemon
        .cli(&["--json", "doctor", "--config", &place.config().to_string_lossy()])
        .expect_status(0)
        .json();
    let names: Vec<&str> = checks
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|check| check["check"].as_str())
        .collect();
    assert!(names.contains(&"config") && names.contains(&"store"), "{names:?}");
}

const HELLO: &str = r#"{"family_slug": "hello", "title": "Hello", "steps": [
  {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"message": "'hello ' + input.name"}}},
  {"ref": "pause", "type": "STEP_TYPE_WAIT", "args": {"duration": "2s"}}],
  "edges": [{"source_ref": "greet", "target_ref": "pause"}]}"#;

#[test]
fn json_and_exit_codes_of_workflows() {
    let place = Place::new(CONFIG);
    let daemon = Builder::at(&place).start();
    let file = |name: &str, text: &str| place.write(name, text).display().to_string();
    let good = file("hello.json", HELLO);
    let bad = file(
        "bad.json",
        &HELLO
            .replace("greet\"}", "greeet\"}")
            .replace("\"pause\"}]", "\"puase\"}]"),
    );
    let other = file("other.json", &HELLO.replace("2s", "3s"));
    let taken = file("taken.json", &HELLO.replace("\"hello\"", "\"daily\""));
    let input = file("input.yaml", "name: Ada\n");
    let says = |name: &str, status: i32, line: &[&str]| {
        let folder = place.folder().display().to_string();
        let all = [&["--json"], line].concat();
        let mut answered = daemon.cli(&all).expect_status(status);
        answered.stdout = answered.stdout.replace(&folder, "FOLDER");
        answered.stderr = answered.stderr.replace(&folder, "FOLDER");
        let line: Vec<String> = line.iter().map(|word| word.replace(&folder, "FOLDER")).collect();
        let line: Vec<&str> = line.iter().map(String::as_str).collect();
        insta::assert_snapshot!(format!("json_workflow_{name}"), shown(&line, &answered, false));
    };
    says("ls_none", 0, &["workflow", "ls"]);
    says("validate", 0, &["workflow", "validate", &good]);
    says("validate_bad", 1, &["workflow", "validate", &bad]);
    says("dry_run", 0, &["workflow", "dry-run", &good, "--input", &input]);
    says("put_bad", 0, &["workflow", "put", &bad]);
    says("publish_bad", 2, &["workflow", "publish", "hello"]);
    says("put", 0, &["workflow", "put", &good]);
    says("publish", 0, &["workflow", "publish", "hello"]);
    says("publish_again", 0, &["workflow", "publish", "hello"]);
    says(
        "put_moved",
        5,
        &["workflow", "put", &other, "--expected-version", "1"],
    );
    says("put_taken", 5, &["workflow", "put", &taken]);
    says("put_other", 0, &["workflow", "put", &other]);
    says("diff", 1, &["workflow", "diff", "hello", "1", "draft"]);
    says("diff_same", 0, &["workflow", "diff", "hello", "1", "1"]);
    says("diff_unknown", 3, &["workflow", "diff", "hello", "1", "9"]);
    says("publish_other", 0, &["workflow", "publish", "hello"]);
    says("deprecate", 0, &["workflow", "deprecate", "hello", "2"]);
    says("versions", 0, &["workflow", "versions", "hello"]);
    says("show", 0, &["workflow", "show", "hello"]);
    says(
        "show_version",
        0,
        &["workflow", "show", "hello", "--version", "1"],
    );
    says("show_unknown", 3, &["workflow", "show", "nobody"]);
    says("graph", 0, &["workflow", "graph", "hello", "--version", "1"]);
    says("graph_unknown", 3, &["workflow", "graph", "nobody"]);
    says("graph_bad", 2, &["workflow", "graph", "hello", "--version", "x"]);
    says(
        "run_graph_unknown",
        3,
        &["run", "graph", "run_01kb7v0n3gf5tb2h6m8w9x4yza"],
    );
    says("start_unknown", 3, &["run", "start", "nobody"]);
    let drawn = daemon.cli(&["workflow", "graph", "hello"]).expect_status(0);
    assert_eq!(drawn.stdout, "○ greet  dataflow\n○ pause  wait\n");
    says("ls", 0, &["workflow", "ls"]);
    says("no_file", 2, &["workflow", "put", "/nothing/here.json"]);
    let document = daemon.cli(&["workflow", "show", "hello", "--version", "1", "--document"]);
    assert_eq!(document.stdout.trim_end(), HELLO, "letter by letter");
}

/// What works on files only.
#[test]
fn json_and_exit_codes_of_files() {
    let place = Place::new(CONFIG);
    let says = |name: &str, status: i32, line: &[&str]| {
        let folder = place.folder().display().to_string();
        let paths: Vec<String> = line.iter().map(|word| word.replace("FOLDER", &folder)).collect();
        let all: Vec<&str> = ["--json"]
            .into_iter()
            .chain(paths.iter().map(String::as_str))
            .collect();
        let mut answered = ductor(&all).expect_status(status);
        answered.stdout = answered.stdout.replace(&folder, "FOLDER");
        answered.stderr = answered.stderr.replace(&folder, "FOLDER");
        insta::assert_snapshot!(format!("json_{name}"), shown(line, &answered, false));
    };
    says("check", 0, &["check", "FOLDER/ductor.yaml"]);
    says("init", 0, &["init", "FOLDER/new"]);
    says("init_again", 5, &["init", "FOLDER/new"]);
    place.write("bad.yaml", "jobs:\n  - {name: a, comand: x}\n");
    says("check_bad", 2, &["check", "FOLDER/bad.yaml"]);
    says("check_nothing", 2, &["check", "FOLDER/nothing.yaml"]);
}

#[test]
fn exit_codes_without_a_daemon() {
    // Nothing listens on a port that has only just been given back.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let server = format!("http://{}", listener.local_addr().expect("an address"));
    drop(listener);
    for line in [
        &["status"][..],
        &["health"],
        &["job", "ls"],
        &["schedule", "ls"],
        &["schedule", "next", "daily"],
        &["schedule", "why", "daily", "--at", "08:00"],
        &["slots", "ls"],
        &["run", "ls"],
        &["node", "ls"],
        &["config", "show"],
        &["workflow", "ls"],
    ] {
        let all = [&["--json", "--server", &server], line].concat();
        let answered = ductor(&all).expect_status(69);
        let problem: Value = serde_json::from_str(&answered.stderr).expect("a problem document");
        assert_eq!(problem["code"], "UNREACHABLE", "{line:?}");
    }
    for (line, status) in [
        (&["version"][..], 0),
        (&["schedule", "next", "@hourly"], 0),
        (&["completions", "fish"], 0),
        (&["job", "start"], 2),
        (&["run", "cancel"], 2),
        (&["run", "cancel", "a", "--where", "job:b"], 2),
        (&["run", "logs", "a", "--grep", "("], 2),
        (&["schedule", "why"], 2),
        (&["schedule", "next", "a", "-n", "501"], 2),
        (&["nothing"], 2),
    ] {
        ductor(&[&["--server", &server], line].concat()).expect_status(status);
    }
}
