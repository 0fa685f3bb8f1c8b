//! Definitions of the API on the real binary: what was published survives a kill, two daemons agree, and a name
//! of the configuration is not taken.

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};

/// The document of the specification.
fn hello() -> Value {
    json!({ "family_slug": "hello-world", "title": "Hello World",
      "input_schema": {"type": "object"},
      "steps": [
        {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting",
         "args": {"operation": "project", "project": {"message": "\"hello\""}}},
        {"ref": "pause", "type": "STEP_TYPE_WAIT", "title": "Short delay", "args": {"duration": "2s"}}],
      "edges": [{"source_ref": "greet", "target_ref": "pause", "type": "EDGE_TYPE_SUCCESS"}] })
}

fn data(daemon: &Daemon, path: &str) -> Value {
    daemon.get(path).expect_status(200).json()["data"].clone()
}

#[test]
fn what_was_published_survives_a_kill() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    daemon.post("/api/workflows", &hello()).expect_status(201);
    let published = daemon
        .post("/api/workflows/hello-world:publish", &json!({}))
        .expect_status(200);
    let sha256 = published.json()["data"]["sha256"].clone();
    let mut next = hello();
    next["steps"][1]["args"]["duration"] = json!("3s");
    daemon.put("/api/workflows/hello-world", &next).expect_status(200);
    daemon.kill9();
    let daemon = daemon.restart();
    let kept = data(&daemon, "/api/workflows/hello-world");
    assert_eq!(
        (&kept["newest_version"], &kept["draft"]),
        (&json!(1), &json!(true))
    );
    assert_eq!(kept["document"], next);
    let one = data(&daemon, "/api/workflows/hello-world/versions/1");
    assert_eq!((&one["sha256"], &one["document"]), (&sha256, &hello()));
    let two = daemon
        .post("/api/workflows/hello-world:publish", &json!({}))
        .expect_status(200);
    assert_eq!(two.json()["data"]["version"], 2);
}

#[test]
fn a_name_belongs_to_the_configuration_or_to_the_api() {
    let place = Place::new("jobs: [{name: nightly, command: 'true'}]\n");
    let daemon = Builder::at(&place).start();
    let mut taken = hello();
    taken["family_slug"] = json!("nightly");
    let refused = daemon.post("/api/workflows", &taken).expect_status(409).json();
    let sentence = "the configuration has a job of the name 'nightly'; give the workflow another family_slug";
    assert_eq!(refused["detail"], sentence);
    daemon.post("/api/workflows", &hello()).expect_status(201);
    place.write_config("jobs: [{name: hello-world, command: 'true'}]\n");
    daemon.post("/api/config:reload", &json!({})).expect_status(200);
    let refused = daemon
        .post("/api/workflows/hello-world:publish", &json!({}))
        .expect_status(409)
        .json();
    assert!(
        refused["detail"].as_str().unwrap().contains("'hello-world'"),
        "{refused}"
    );
}

#[test]
fn two_daemons_know_the_same_definitions() {
    let place = Place::new("jobs: []\n");
    let one = Builder::at(&place).node("one").start();
    let two = Builder::at(&place).node("two").leave_store_unchecked().start();
    one.post("/api/workflows", &hello()).expect_status(201);
    two.post("/api/workflows/hello-world:publish", &json!({}))
        .expect_status(200);
    assert_eq!(data(&one, "/api/workflows/hello-world")["newest_version"], 1);
    let again = one
        .post("/api/workflows/hello-world:publish", &json!({}))
        .expect_status(200)
        .json();
    assert_eq!(again["data"]["already"], true);
}
