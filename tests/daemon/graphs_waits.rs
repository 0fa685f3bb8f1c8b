//! What runs of workflows wait for, on the real binary: others of their key, people, children; and that it is always said.

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show, step_state};
use super::support::{Builder, Daemon, Place};

fn command(name: &str, text: &str) -> Value {
    json!({"ref": name, "type": "STEP_TYPE_COMMAND", "args": {"command": text}})
}

/// Starts a run; the whole answer.
fn start(daemon: &Daemon, slug: &str, input: &Value) -> Value {
    let path = format!("/api/workflows/{slug}/runs");
    let begun = daemon.post(&path, &json!({"input": input}));
    begun.expect_status(201).json()["data"].clone()
}

fn waiting(daemon: &Daemon, run: &str) -> Value {
    let answer = daemon.get(&format!("/api/runs/{run}/waiting"));
    answer.expect_status(200).json()["data"].clone()
}

fn state_is(daemon: &Daemon, run: &str, state: &str) {
    daemon.wait(state, || (show(daemon, run)["state"] == state).then_some(()));
}

fn why(daemon: &Daemon, run: &str) -> String {
    daemon.cli(&["run", "why", run]).expect_status(0).stdout
}

/// Waits until somebody writes the file `KEY`.
fn until_told(folder: &str) -> String {
    format!("while [ ! -e {folder}/go ]; do sleep 0.02; done")
}

#[test]
fn runs_of_a_key_wait_their_turn_through_a_kill() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let document = json!({"family_slug": "w", "concurrency": {"key": "input.k", "limit": 1},
        "steps": [command("a", &until_told(&folder))]});
    publish(&daemon, &document);
    let first = begin(&daemon, "w", &json!({"k": "acme"}));
    let second = start(&daemon, "w", &json!({"k": "acme"}));
    let id = second["id"].as_str().unwrap();
    assert_eq!(second["state"], "pending");
    let said = format!("Only 1 run of key `acme` at once: waits for {first}.");
    assert_eq!(second["waiting_reason"], said);
    let third = begin(&daemon, "w", &json!({"k": "acme"}));
    let elsewhere = start(&daemon, "w", &json!({"k": "other"}));
    assert_eq!(elsewhere["state"], "running");
    let data = waiting(&daemon, &third);
    let reason = &data["waiting_reason"];
    assert_eq!(
        (&data["state"], &reason["code"], &reason["key"], &reason["ahead"]),
        (
            &json!("pending"),
            &json!("concurrency"),
            &json!("acme"),
            &json!(1)
        )
    );
    assert_eq!(reason["holders"], json!([first]));
    assert!(why(&daemon, id).contains(&format!("ductor run why {first}")));
    assert_eq!(
        daemon.post(&format!("/api/runs/{id}:pause"), &json!({})).status,
        409
    );
    let no_key = daemon.post("/api/workflows/w/runs", &json!({"input": {}}));
    assert_eq!(no_key.status, 409, "{no_key:?}");
    assert!(
        no_key
            .text()
            .contains("`concurrency.key` of the workflow has no value")
    );
    daemon.kill9();
    let daemon = Builder::at(&place).start();
    assert_eq!(show(&daemon, id)["state"], "pending");
    place.write("go", "");
    for run in [first.as_str(), id, third.as_str()] {
        assert_eq!(ended(&daemon, run)["state"], "succeeded");
    }
}

#[test]
fn one_run_too_many_is_skipped_or_takes_the_place() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let document = |on_limit: &str| {
        json!({"family_slug": on_limit, "concurrency": {"limit": 1, "on_limit": on_limit},
            "steps": [command("a", "sleep 600")]})
    };
    publish(&daemon, &document("skip"));
    publish(&daemon, &document("replace"));
    let holder = begin(&daemon, "skip", &Value::Null);
    let skipped = start(&daemon, "skip", &Value::Null);
    let reason = format!("only 1 run at once: held by {holder}");
    assert_eq!(
        (&skipped["state"], &skipped["reason"]),
        (&json!("skipped"), &json!(reason))
    );
    let old = begin(&daemon, "replace", &Value::Null);
    state_is(&daemon, &old, "running");
    let new = begin(&daemon, "replace", &Value::Null);
    let end = ended(&daemon, &old);
    let reason = format!("cancelled by {new}, which takes its place");
    assert_eq!(
        (&end["state"], &end["reason"]),
        (&json!("cancelled"), &json!(reason))
    );
    state_is(&daemon, &new, "running");
    for run in [holder, new] {
        daemon
            .post(&format!("/api/runs/{run}:cancel"), &json!({}))
            .expect_status(200);
        ended(&daemon, &run);
    }
}

#[test]
fn a_child_never_waits_for_its_parent() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let call = |slug: &str| json!({"ref": "sub", "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": slug, "input": "input"}});
    let limited = |steps: Value| json!({"family_slug": "outer", "concurrency": {"key": "'all'", "limit": 1}, "steps": steps});
    // It must exist before it can be called, and be called before it can call back.
    publish(&daemon, &limited(json!([command("a", "true")])));
    let mut first = call("outer");
    first["args"]["version"] = json!(1);
    publish(&daemon, &json!({"family_slug": "inner", "steps": [first]}));
    publish(&daemon, &limited(json!([call("inner")])));
    let run = begin(&daemon, "outer", &Value::Null);
    let end = ended(&daemon, &run);
    assert_eq!(end["state"], "failed");
    let reason = end["reason"].as_str().unwrap();
    assert!(
        reason.contains(&format!("it would wait for {run}, which waits for it")),
        "{reason}"
    );
}

#[test]
fn an_answer_is_checked_against_its_schema_before_anything_is_kept() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let schema = json!({"type": "object", "required": ["size"],
        "properties": {"size": {"type": "integer", "minimum": 1}}});
    publish(
        &daemon,
        &json!({"family_slug": "w", "steps": [
            {"ref": "form", "title": "How many", "type": "STEP_TYPE_CHECKPOINT", "args": {"schema": schema, "timeout": "1h"}}]}),
    );
    let run = begin(&daemon, "w", &Value::Null);
    let open = daemon.get("/api/checkpoints").json()["data"][0].clone();
    assert_eq!((&open["schema"], &open["title"]), (&schema, &json!("How many")));
    let path = format!("/api/checkpoints/{run}:form:resume");
    let before = show(&daemon, &run)["record_version"].clone();
    let bad = daemon
        .post(&path, &json!({"value": {"size": 0}}))
        .expect_status(422)
        .json();
    assert_eq!(bad["errors"][0]["pointer"], "/value/size");
    assert_eq!(show(&daemon, &run)["record_version"], before, "nothing is kept");
    let id = format!("{run}:form");
    let told = daemon.cli(&["approval", "answer", &id, "{}"]).expect_status(2);
    assert!(told.stderr.contains("size"), "{}", told.stderr);
    let data = waiting(&daemon, &run);
    let reason = &data["steps"][0]["waiting_reason"];
    assert_eq!(
        (&reason["code"], &reason["checkpoint"]),
        (&json!("checkpoint"), &json!(id))
    );
    assert!(reason["until"].is_string());
    daemon
        .post(&path, &json!({"value": {"size": 3}}))
        .expect_status(202);
    assert_eq!(ended(&daemon, &run)["state"], "succeeded");
}

#[test]
#[expect(
    clippy::too_many_lines,
    reason = "one run for each reason, looked at together"
)]
fn whatever_does_not_run_says_why() {
    let place = Place::new("pools: {p: {slots: 1}}\njobs: []\n");
    let daemon = Builder::at(&place).start();
    let folder = place.folder().display().to_string();
    let pooled = |name: &str| {
        let mut step = command(name, &until_told(&folder));
        step["slots"] = json!({"pool": "p"});
        step
    };
    let mut flaky = command("flaky", "exit 3");
    flaky["retry"] = json!({"max_attempts": 3, "initial_interval": "1h"});
    publish(
        &daemon,
        &json!({"family_slug": "child", "steps": [command("c", &until_told(&folder))]}),
    );
    publish(
        &daemon,
        &json!({"family_slug": "w", "steps": [
            {"ref": "timer", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}},
            {"ref": "ok", "type": "STEP_TYPE_APPROVAL", "args": {"approvers": ["boss"]}},
            {"ref": "sub", "type": "STEP_TYPE_SUBWORKFLOW", "args": {"family_slug": "child"}},
            {"ref": "t1", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}},
            {"ref": "t2", "type": "STEP_TYPE_TASK", "args": {"queue": "q"}},
            flaky, pooled("s1"), pooled("s2"), command("last", "true")],
          "edges": [{"source_ref": "timer", "target_ref": "last"}, {"source_ref": "ok", "target_ref": "last"}]}),
    );
    let run = begin(&daemon, "w", &Value::Null);
    daemon.wait("the back-off", || {
        (step_state(&daemon, &run, "flaky") == "retrying").then_some(())
    });
    let data = waiting(&daemon, &run);
    let of = |name: &str| {
        let steps = data["steps"].as_array().unwrap();
        let found = steps.iter().find(|step| step["ref"] == name);
        found.map_or(Value::Null, |step| step["waiting_reason"].clone())
    };
    assert_eq!(data["waiting_reason"], Value::Null, "something runs");
    assert_eq!(
        (of("timer")["code"].clone(), of("timer")["due"].is_string()),
        (json!("timer"), true)
    );
    assert_eq!(of("ok")["approvers"], json!(["boss"]));
    let child = of("sub")["child"].clone();
    assert_eq!(show(&daemon, child.as_str().unwrap())["job"], "child");
    assert_eq!(
        (of("t1")["code"].clone(), of("t2")["code"].clone()),
        (json!("worker"), json!("fairness"))
    );
    assert_eq!(
        (&of("t2")["ahead"], &of("t2")["partition"]),
        (&json!(1), &json!("w"))
    );
    let flaky = of("flaky");
    assert_eq!(
        (&flaky["code"], &flaky["attempt"], &flaky["max_attempts"]),
        (&json!("retry"), &json!(2), &json!(3))
    );
    assert!(flaky["last_error"].as_str().unwrap().contains('3'));
    let (s1, s2) = (of("s1"), of("s2"));
    let slots = if s1.is_null() { s2 } else { s1 };
    assert_eq!(
        (&slots["code"], &slots["needs"], &slots["free"], &slots["pool"]),
        (&json!("slots"), &json!(1), &json!(0), &json!("p"))
    );
    assert_eq!(of("last")["steps"], json!(["timer", "ok"]));
    let text = why(&daemon, &run);
    assert!(text.contains("Step flaky is retrying: Attempt 2 of 3"), "{text}");
    daemon
        .post(&format!("/api/runs/{run}:pause"), &json!({"reason": "lunch"}))
        .expect_status(202);
    state_is(&daemon, &run, "paused");
    let held = waiting(&daemon, &run)["waiting_reason"].clone();
    assert_eq!(
        (&held["code"], &held["by"], &held["reason"]),
        (&json!("paused"), &json!("local"), &json!("lunch"))
    );
    assert!(why(&daemon, &run).contains(&format!("To go on: ductor run resume {run}")));
    place.write("go", "");
    daemon
        .post(&format!("/api/runs/{run}:cancel"), &json!({}))
        .expect_status(200);
    ended(&daemon, &run);
    let data = waiting(&daemon, &run);
    assert_eq!(
        (&data["waiting_reason"], &data["steps"]),
        (&Value::Null, &json!([]))
    );
}
