//! Remote workers over the bridge: a small one of this test, and those of `config/examples/`.

#![allow(
    clippy::disallowed_methods,
    reason = "how long another process takes is measured from outside"
)]

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};

fn place() -> Place {
    Place::new("jobs: []\n")
}

/// A workflow of one task, or whatever `steps` says, in the queue `q`.
fn publish(daemon: &Daemon, steps: &Value, edges: &Value) {
    let document = json!({"family_slug": "w", "steps": steps, "edges": edges});
    daemon.post("/api/workflows", &document).expect_status(201);
    let published = daemon.post("/api/workflows/w:publish", &json!({}));
    published.expect_status(200);
}

fn task(name: &str, more: &Value) -> Value {
    let mut step = json!({"ref": name, "type": "STEP_TYPE_TASK",
        "args": {"queue": "q", "task": name, "input": "{'got': input}"}});
    if let (Some(step), Some(more)) = (step.as_object_mut(), more.as_object()) {
        step.extend(more.clone());
    }
    step
}

fn begin(daemon: &Daemon, input: &Value) -> String {
    let begun = daemon.post("/api/workflows/w/runs", &json!({"input": input}));
    let begun = begun.expect_status(201).json();
    begun["data"]["id"].as_str().unwrap().to_owned()
}

fn poll(daemon: &Daemon, max: u32) -> Vec<Value> {
    let ask = json!({"queue": "q", "worker": "tester", "max": max, "wait_ms": 10_000});
    let polled = daemon.post("/api/bridge/poll", &ask).expect_status(200).json();
    polled["data"]["tasks"].as_array().unwrap().clone()
}

fn one(daemon: &Daemon) -> Value {
    let mut tasks = poll(daemon, 1);
    assert_eq!(tasks.len(), 1);
    tasks.remove(0)
}

fn verb(task: &Value, verb: &str) -> String {
    format!("/api/bridge/tasks/{}:{verb}", task["token"].as_str().unwrap())
}

fn ended(daemon: &Daemon, run: &str) -> Value {
    daemon.wait("the run to end", || {
        let shown = daemon.get(&format!("/api/runs/{run}")).expect_status(200).json();
        let state = shown["data"]["state"].as_str().unwrap_or_default().to_owned();
        let over = !["pending", "running", "paused"].contains(&state.as_str());
        over.then(|| shown["data"].clone())
    })
}

fn output(daemon: &Daemon, run: &str) -> Value {
    let shown = daemon.get(&format!("/api/runs/{run}/values"));
    shown.expect_status(200).json()["data"]["output"].clone()
}

#[test]
fn a_task_is_polled_and_completed_and_the_run_goes_on() {
    let place = place();
    let daemon = Builder::at(&place).start();
    publish(
        &daemon,
        &json!([
            task("a", &json!({})),
            task("b", &json!({"idempotency_key": "'k-' + input"}))
        ]),
        &json!([{"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_SUCCESS"}]),
    );
    let run = begin(&daemon, &json!("x"));
    let first = one(&daemon);
    assert_eq!(
        (
            &first["run"],
            &first["step"],
            &first["task"],
            &first["attempt"],
            &first["input"]
        ),
        (
            &json!(run),
            &json!("a"),
            &json!("a"),
            &json!(1),
            &json!({"got": "x"})
        )
    );
    assert_eq!(first["idempotency_key"], json!(format!("{run}/a")));
    let beat = daemon
        .post(&verb(&first, "heartbeat"), &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(beat["data"]["cancel"], false);
    let done = daemon.post(&verb(&first, "complete"), &json!({"output": {"n": 1}}));
    assert_eq!(done.expect_status(200).json()["data"]["result"], "done");
    let again = daemon.post(&verb(&first, "complete"), &json!({"output": {"n": 2}}));
    assert_eq!(again.expect_status(200).json()["data"]["result"], "already");
    let other = daemon.post(&verb(&first, "fail"), &json!({"code": "late"}));
    assert_eq!(other.expect_status(409).json()["code"], "STALE");
    let second = one(&daemon);
    assert_eq!(second["idempotency_key"], "k-x");
    daemon
        .post(&verb(&second, "complete"), &json!({"output": [2]}))
        .expect_status(200);
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    assert_eq!(output(&daemon, &run), json!([2]));
    let forged = format!("/api/bridge/tasks/{}0:complete", first["token"].as_str().unwrap());
    daemon.post(&forged, &json!({})).expect_status(404);
    daemon
        .post("/api/bridge/tasks/tk_00:heartbeat", &json!({}))
        .expect_status(404);
}

#[test]
fn a_batch_completes_many_and_claims_the_next() {
    let place = place();
    let daemon = Builder::at(&place).start();
    publish(&daemon, &json!([task("a", &json!({}))]), &json!([]));
    let runs: Vec<String> = (0..20).map(|number| begin(&daemon, &json!(number))).collect();
    let tasks = poll(&daemon, 10);
    assert_eq!(tasks.len(), 10);
    let mut items: Vec<Value> = tasks
        .iter()
        .map(|task| json!({"token": task["token"], "output": task["input"]["got"]}))
        .collect();
    items[9] = json!({"token": tasks[9]["token"], "error": {"code": "no", "retryable": false}});
    items.push(items[0].clone());
    items.push(json!({"token": "tk_00", "output": 1}));
    let ask = json!({"items": items, "poll": {"queue": "q", "worker": "w", "max": 20}});
    let said = daemon
        .post("/api/bridge/complete-batch", &ask)
        .expect_status(200)
        .json();
    let results: Vec<&str> = said["data"]["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|item| item["result"].as_str().unwrap())
        .collect();
    let mut expected = ["done"; 12];
    (expected[10], expected[11]) = ("stale", "unknown");
    assert_eq!(results, expected);
    let next = said["data"]["tasks"].as_array().unwrap();
    assert_eq!(next.len(), 10, "the rest came with the same request");
    for (number, run) in runs.iter().enumerate().take(10) {
        let state = if number == 9 { "failed" } else { "succeeded" };
        assert_eq!(ended(&daemon, run)["state"], state, "{number}");
    }
}

#[test]
fn a_cancelled_run_is_heard_of_with_the_next_heartbeat() {
    let place = place();
    let daemon = Builder::at(&place).start();
    publish(&daemon, &json!([task("a", &json!({}))]), &json!([]));
    let run = begin(&daemon, &json!(1));
    let task = one(&daemon);
    daemon
        .post(&format!("/api/runs/{run}:cancel"), &json!({}))
        .expect_status(200);
    daemon.wait("the worker to hear of it", || {
        let beat = daemon
            .post(&verb(&task, "heartbeat"), &json!({}))
            .expect_status(200)
            .json();
        (beat["data"]["cancel"] == true).then_some(())
    });
    daemon
        .post(&verb(&task, "fail"), &json!({"code": "stopped"}))
        .expect_status(200);
    assert_eq!(ended(&daemon, &run)["state"], "cancelled");
    let beat = daemon.post(&verb(&task, "heartbeat"), &json!({}));
    assert_eq!(beat.expect_status(409).json()["code"], "STALE");
}

#[test]
fn a_completion_is_accepted_after_kill_nine_and_applied_once() {
    let place = place();
    let mut daemon = Builder::at(&place).start();
    publish(&daemon, &json!([task("a", &json!({}))]), &json!([]));
    let run = begin(&daemon, &json!(1));
    let task = one(&daemon);
    daemon.kill9();
    let daemon = daemon.restart();
    let beat = daemon
        .post(&verb(&task, "heartbeat"), &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(beat["data"]["cancel"], false, "its claim is not put back");
    let done = daemon.post(&verb(&task, "complete"), &json!({"output": "kept"}));
    assert_eq!(done.expect_status(200).json()["data"]["result"], "done");
    let again = daemon.post(&verb(&task, "complete"), &json!({"output": "twice"}));
    assert_eq!(again.expect_status(200).json()["data"]["result"], "already");
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    assert_eq!(output(&daemon, &run), "kept");
    let attempts = daemon
        .get(&format!("/api/runs/{run}/steps/a"))
        .expect_status(200)
        .text();
    assert!(attempts.contains("kept") && !attempts.contains("twice"));
}

#[test]
fn a_worker_that_never_answers_loses_its_task_and_its_word() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let beat =
        json!({"timeouts": {"heartbeat": "1s"}, "retry": {"max_attempts": 2, "initial_interval": "10ms"}});
    publish(&daemon, &json!([task("a", &beat)]), &json!([]));
    let run = begin(&daemon, &json!(1));
    let silent = one(&daemon);
    let second = one(&daemon);
    assert_eq!((&silent["attempt"], &second["attempt"]), (&json!(1), &json!(2)));
    let late = daemon.post(&verb(&silent, "complete"), &json!({"output": "late"}));
    assert_eq!(late.expect_status(409).json()["code"], "STALE");
    daemon
        .post(&verb(&second, "complete"), &json!({"output": "good"}))
        .expect_status(200);
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    assert_eq!(output(&daemon, &run), "good");
    let run = begin(&daemon, &json!(2));
    let (_, _) = (one(&daemon), one(&daemon));
    assert_eq!(ended(&daemon, &run)["state"], "failed");
    let step = daemon
        .get(&format!("/api/runs/{run}/steps/a"))
        .expect_status(200)
        .text();
    assert!(step.contains("timeout.heartbeat"), "{step}");
}

#[test]
fn a_failed_task_is_tried_again_not_before_it_asks_for() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let retry = json!({"retry": {"max_attempts": 3, "initial_interval": "10ms"}});
    publish(&daemon, &json!([task("a", &retry)]), &json!([]));
    let run = begin(&daemon, &json!(1));
    let first = one(&daemon);
    let began = Instant::now();
    let fail = json!({"code": "busy", "message": "come again", "retry_after": 1});
    daemon.post(&verb(&first, "fail"), &fail).expect_status(200);
    let second = one(&daemon);
    assert!(began.elapsed().as_millis() >= 1_000, "it had asked for a second");
    assert_eq!(second["attempt"], 2);
    assert_eq!(second["idempotency_key"], first["idempotency_key"]);
    let fail = json!({"code": "broken", "message": "for good", "retryable": false});
    daemon.post(&verb(&second, "fail"), &fail).expect_status(200);
    let run = ended(&daemon, &run);
    assert_eq!(run["state"], "failed");
    assert!(run["reason"].as_str().unwrap().contains("for good"), "{run}");
}

#[test]
fn a_payload_may_have_32_mib_and_not_one_byte_more() {
    const MOST: usize = 32 << 20;
    let place = place();
    let daemon = Builder::at(&place).start();
    publish(&daemon, &json!([task("a", &json!({}))]), &json!([]));
    let run = begin(&daemon, &json!(1));
    let task = one(&daemon);
    // With its two quotes.
    let text = "x".repeat(MOST - 1);
    let refused = daemon.post(&verb(&task, "complete"), &json!({"output": text}));
    assert_eq!(refused.expect_status(413).json()["code"], "payload.too_large");
    let text = "x".repeat(MOST - 2);
    daemon
        .post(&verb(&task, "complete"), &json!({"output": text}))
        .expect_status(200);
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    assert_eq!(output(&daemon, &run).as_str().map(str::len), Some(MOST - 2));
}

#[test]
fn a_step_of_type_http_is_executed_by_the_daemon() {
    let place = Place::new("jobs: []\negress: {allow: ['127.0.0.0/8']}\n");
    let daemon = Builder::at(&place).start();
    let url = format!("{}{{{{ input.path }}}}", daemon.url());
    let step =
        json!({"ref": "a", "type": "STEP_TYPE_HTTP", "args": {"url": url}, "retry": {"max_attempts": 1}});
    publish(&daemon, &json!([step]), &json!([]));
    let run = begin(&daemon, &json!({"path": "/version"}));
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
    let made = output(&daemon, &run);
    assert_eq!(
        (&made["status"], &made["body"]["name"]),
        (&json!(200), &json!("ductor")),
        "{made}"
    );
    let run = begin(&daemon, &json!({"path": "/nothing"}));
    let run = ended(&daemon, &run);
    assert_eq!(run["state"], "failed");
    assert!(run["reason"].as_str().unwrap().contains("404"), "{run}");
}

/// A worker of `config/examples/`, ended by its own process id.
struct Worker(Child);

impl Drop for Worker {
    fn drop(&mut self) {
        let pid = self.0.id().to_string();
        Command::new("kill").arg(pid).status().ok();
        self.0.wait().ok();
    }
}

fn is_there(program: &str) -> bool {
    let found = Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    let there = found.is_ok_and(|status| status.success());
    if !there {
        println!("{program} is not on this machine: its worker was not tried");
    }
    there
}

fn example(name: &str) -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/config/examples")).join(name)
}

fn started(place: &Place, program: &str, arguments: &[&str]) -> Worker {
    let child = Command::new(program)
        .args(arguments)
        .current_dir(place.folder())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .spawn();
    Worker(child.expect("a worker"))
}

#[test]
fn the_worker_in_shell_works() {
    if !is_there("curl") {
        return;
    }
    let place = place();
    let daemon = Builder::at(&place).start();
    let once = json!({"retry": {"max_attempts": 1}});
    publish(&daemon, &json!([task("a", &once)]), &json!([]));
    let script = example("worker.sh");
    // It answers with what it was given; without a number it fails.
    let command = r#"sed -n 's/.*"got":\([0-9]*\)}.*/{"n":\1}/p' > out; [ -s out ] && cat out || { echo "no number" >&2; exit 3; }"#;
    let arguments = [script.to_str().unwrap(), daemon.url(), "q", "sh", "-c", command];
    let _worker = started(&place, "sh", &arguments);
    let (good, bad) = (begin(&daemon, &json!(41)), begin(&daemon, &json!("none")));
    assert_eq!(ended(&daemon, &good)["state"], "succeeded");
    assert_eq!(output(&daemon, &good), json!({"n": 41}));
    let bad = ended(&daemon, &bad);
    assert_eq!(bad["state"], "failed");
    assert!(
        bad["reason"].as_str().unwrap().contains("exit code 3: no number"),
        "{bad}"
    );
}

#[test]
fn the_worker_in_python_works() {
    if !is_there("python3") {
        return;
    }
    let place = place();
    let daemon = Builder::at(&place).start();
    let args = |name: &str| json!({"args": {"queue": "q", "task": name, "input": "{'number': input}"}, "retry": {"max_attempts": 1}});
    publish(
        &daemon,
        &json!([task("a", &args("double")), task("b", &args("fail"))]),
        &json!([{"source_ref": "a", "target_ref": "b", "type": "EDGE_TYPE_SUCCESS"}]),
    );
    let script = example("worker.py");
    let _worker = started(&place, "python3", &[script.to_str().unwrap(), daemon.url(), "q"]);
    let runs: Vec<String> = (0..15).map(|number| begin(&daemon, &json!(number))).collect();
    for (number, run) in runs.iter().enumerate() {
        let shown = ended(&daemon, run);
        assert_eq!(shown["state"], "failed", "its second step always does");
        assert!(
            shown["reason"].as_str().unwrap().contains("division by zero"),
            "{shown}"
        );
        let step = daemon
            .get(&format!("/api/runs/{run}/steps/a"))
            .expect_status(200)
            .json();
        assert_eq!(step["data"]["output"], json!({"doubled": 2 * number}), "{step}");
    }
    let lines = std::fs::read_to_string(example("worker.py"))
        .unwrap()
        .lines()
        .count();
    assert!(lines < 60, "{lines}");
}
