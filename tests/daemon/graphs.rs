//! Workflows on the real binary: posted, published, run, through a kill, and what people tell a run.

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};

/// Posts a definition and publishes it; the version.
pub(crate) fn publish(daemon: &Daemon, document: &Value) -> u64 {
    let slug = document["family_slug"].as_str().unwrap();
    let known = daemon.get(&format!("/api/workflows/{slug}")).status == 200;
    let saved = if known {
        daemon.send_json("PUT", &format!("/api/workflows/{slug}"), document)
    } else {
        daemon.post("/api/workflows", document)
    };
    assert!(matches!(saved.status, 200 | 201), "{saved:?}");
    let published = daemon
        .post(&format!("/api/workflows/{slug}:publish"), &json!({}))
        .expect_status(200)
        .json();
    published["data"]["version"].as_u64().unwrap()
}

/// Begins a run; its id.
pub(crate) fn begin(daemon: &Daemon, slug: &str, input: &Value) -> String {
    let begun = daemon
        .post(&format!("/api/workflows/{slug}/runs"), &json!({"input": input}))
        .expect_status(201)
        .json();
    begun["data"]["id"].as_str().unwrap().to_owned()
}

/// The run now.
pub(crate) fn show(daemon: &Daemon, run: &str) -> Value {
    daemon.get(&format!("/api/runs/{run}")).expect_status(200).json()["data"].clone()
}

/// Waits for the end of a run.
pub(crate) fn ended(daemon: &Daemon, run: &str) -> Value {
    daemon.wait("the run's end", || {
        let shown = show(daemon, run);
        shown["ended_at"].is_string().then_some(shown)
    })
}

/// The state of a step; `pending` before it is reached.
pub(crate) fn step_state(daemon: &Daemon, run: &str, step: &str) -> String {
    let answer = daemon.get(&format!("/api/runs/{run}/steps/{step}"));
    if answer.status == 404 {
        return "pending".to_owned();
    }
    answer.json()["data"]["state"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

fn output(daemon: &Daemon, run: &str) -> Value {
    daemon
        .get(&format!("/api/runs/{run}/values"))
        .expect_status(200)
        .json()["data"]["output"]
        .clone()
}

fn step(name: &str, command: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": command}})
}

/// The very document of the specification.
const HELLO: &str = r#"{ "family_slug": "hello-world", "title": "Hello World",
  "input_schema": {"type": "object"},
  "steps": [
    {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
     "args": {"operation": "project", "project": {"message": "\"hello\""}}},
    {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}}],
  "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}] }"#;

#[test]
fn hello_world_survives_a_kill_during_its_wait() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    let document: Value = serde_json::from_str(HELLO).unwrap();
    assert_eq!(publish(&daemon, &document), 1);
    assert_eq!(
        publish(&daemon, &document),
        1,
        "the same content is the same version"
    );
    let run = begin(&daemon, "hello-world", &json!({}));
    assert_eq!(step_state(&daemon, &run, "pause"), "waiting");
    daemon.kill9();
    let daemon = Builder::at(&place).start();
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let greeting = daemon.get(&format!("/api/runs/{run}/steps/greet")).json();
    assert_eq!(greeting["data"]["output"], json!({"message": "hello"}));
    assert!(output(&daemon, &run)["due"].is_string());
    let refused = daemon.post("/api/workflows/hello-world/runs", &json!({"input": 7}));
    assert_eq!(refused.status, 422, "{refused:?}");
    assert_eq!(refused.json()["errors"][0]["pointer"], "/input");
}

#[test]
fn commands_retries_approvals_scatter_and_children_make_one_run() {
    let place = Place::new("pools: {p: {slots: 2}}\njobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    publish(
        &daemon,
        &json!({"family_slug": "child", "steps": [
            {"ref": "twice", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"n": "input.n * 2"}}}]}),
    );
    let flaky = format!("test -e {folder}/flag || {{ touch {folder}/flag; exit 3; }}");
    let mut retried = step("flaky", &flaky);
    retried["retry"] = json!({"max_attempts": 3, "initial_interval": "50ms"});
    let mut one = step("one", "true");
    one["slots"] = json!({"pool": "p", "slots": 1});
    publish(
        &daemon,
        &json!({"family_slug": "whole", "steps": [retried, {"ref": "ok", "type": "STEP_TYPE_APPROVAL"},
            {"ref": "fan", "type": "STEP_TYPE_SCATTER", "args": {"items": "input.list", "max_parallel": 2, "body": one}},
            {"ref": "all", "type": "STEP_TYPE_GATHER", "args": {"from": "fan"}},
            {"ref": "sub", "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": "child", "input": "{'n': size(input.list)}"}}],
          "edges": [{"source_ref": "flaky", "target_ref": "ok"}, {"source_ref": "ok", "target_ref": "fan"},
            {"source_ref": "fan", "target_ref": "all"}, {"source_ref": "all", "target_ref": "sub"}]}),
    );
    let run = begin(&daemon, "whole", &json!({"list": [1, 2, 3, 4, 5]}));
    daemon.wait("the approval", || {
        (step_state(&daemon, &run, "ok") == "waiting").then_some(())
    });
    let open = daemon.get("/api/checkpoints").json();
    assert_eq!(open["data"][0]["id"], format!("{run}:ok"));
    let decide = |verb: &str| {
        daemon.post(
            &format!("/api/checkpoints/{run}:ok:{verb}"),
            &json!({"note": "fine"}),
        )
    };
    assert_eq!(decide("approve").status, 202);
    assert_eq!(decide("reject").status, 409, "it has an answer already");
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    assert_eq!(output(&daemon, &run), json!({"n": 10}));
    let flaky = daemon.get(&format!("/api/runs/{run}/steps/flaky")).json();
    assert_eq!(flaky["data"]["attempts"].as_array().unwrap().len(), 2);
    let slots = daemon.get("/pools/p").json();
    assert_eq!(slots["used"], 0);
}

#[test]
fn a_run_is_paused_goes_on_and_is_cancelled() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let wait = format!("touch {folder}/begun; while [ ! -e {folder}/go ]; do sleep 0.02; done");
    publish(
        &daemon,
        &json!({"family_slug": "two", "steps": [step("a", &wait), step("b", "sleep 600")],
            "edges": [{"source_ref": "a", "target_ref": "b"}]}),
    );
    let run = begin(&daemon, "two", &Value::Null);
    daemon.wait("it runs", || place.read("begun"));
    let tell = |verb: &str| daemon.post(&format!("/api/runs/{run}:{verb}"), &json!({}));
    assert_eq!(tell("pause").status, 202);
    daemon.wait("the pause", || {
        (show(&daemon, &run)["state"] == "paused").then_some(())
    });
    assert_eq!(tell("pause").status, 409);
    place.write("go", "");
    daemon.wait("the end of a", || {
        (step_state(&daemon, &run, "a") == "succeeded").then_some(())
    });
    assert_eq!(step_state(&daemon, &run, "b"), "pending", "nothing new starts");
    assert_eq!(tell("resume").status, 202);
    daemon.wait("b", || {
        (step_state(&daemon, &run, "b") == "running").then_some(())
    });
    assert!(matches!(tell("cancel").status, 200 | 202));
    let shown = ended(&daemon, &run);
    assert_eq!(shown["state"], "cancelled", "{shown}");
    assert_eq!(tell("pause").status, 409);
}

#[test]
fn w1_a_run_keeps_the_version_that_it_began_with() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let wait = format!("while [ ! -e {folder}/go ]; do sleep 0.02; done");
    let edge = |to: &str| json!([{"source_ref": "a", "target_ref": to}]);
    let document = |to: &str| json!({"family_slug": "w", "steps": [step("a", &wait), step(to, "true")], "edges": edge(to)});
    assert_eq!(publish(&daemon, &document("b")), 1);
    let first = begin(&daemon, "w", &Value::Null);
    assert_eq!(publish(&daemon, &document("c")), 2);
    let second = begin(&daemon, "w", &Value::Null);
    place.write("go", "");
    for (run, version, last, never) in [(first, 1, "b", "c"), (second, 2, "c", "b")] {
        let shown = ended(&daemon, &run);
        assert_eq!(
            (&shown["state"], &shown["version"]),
            (&json!("succeeded"), &json!(version))
        );
        assert_eq!(step_state(&daemon, &run, last), "succeeded");
        assert_eq!(step_state(&daemon, &run, never), "pending");
    }
}

#[test]
fn a_failed_run_is_tried_again_where_it_failed() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let count = format!("echo x >> {folder}/a");
    publish(
        &daemon,
        &json!({"family_slug": "again", "steps": [step("a", &count), step("b", &format!("test -e {folder}/good"))],
            "edges": [{"source_ref": "a", "target_ref": "b"}]}),
    );
    let first = begin(&daemon, "again", &Value::Null);
    assert_eq!(ended(&daemon, &first)["state"], "failed");
    place.write("good", "");
    let again = daemon
        .post(&format!("/api/runs/{first}:retry"), &json!({}))
        .expect_status(201)
        .json();
    let second = again["data"]["id"].as_str().unwrap().to_owned();
    let shown = ended(&daemon, &second);
    assert_eq!(
        (&shown["state"], &shown["rerun_of"]),
        (&json!("succeeded"), &json!(first))
    );
    assert_eq!(place.read("a").as_deref(), Some("x\n"), "a was taken over");
    let refused = daemon.post(&format!("/api/runs/{second}:retry"), &json!({}));
    assert_eq!(refused.status, 409, "nothing has failed");
    let whole = daemon
        .post(&format!("/api/runs/{second}:rerun"), &json!({}))
        .expect_status(201);
    let third = whole.json()["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&daemon, &third)["state"], "succeeded");
    assert_eq!(place.read("a").as_deref(), Some("x\nx\n"));
}
