//! What a run is told that makes no sense: too much, of the wrong kind, twice at once, too late, about steps that are not
//! there. Each gets an answer that says so, and nothing else happens.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show};
use super::support::{Builder, Daemon, Place, Response};

fn project(value: &str) -> Value {
    json!({"ref": "p", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"v": value}}})
}

fn runs_of(daemon: &Daemon, slug: &str) -> Vec<Value> {
    let found = daemon
        .get(&format!("/api/runs?job={slug}&page_size=200"))
        .expect_status(200);
    found.json()["data"].as_array().unwrap().clone()
}

/// A problem document that says something.
#[track_caller]
fn refused(answer: &Response, status: u16, what: &str) {
    assert_eq!(answer.status, status, "{what}: {}", answer.text());
    let problem = answer.json();
    let says = problem["detail"].as_str().or(problem["title"].as_str());
    assert!(says.is_some_and(|text| !text.is_empty()), "{what}: {problem}");
}

#[test]
#[expect(clippy::too_many_lines, reason = "one table of inputs")]
fn inputs_that_are_too_large_or_of_the_wrong_kind_begin_nothing() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let schema = json!({"type": "object", "required": ["n"], "properties": {"n": {"type": "integer", "maximum": 9}}, "additionalProperties": false});
    publish(
        &daemon,
        &json!({"family_slug": "strict", "input_schema": schema, "steps": [project("input.n")]}),
    );
    publish(&daemon, &json!({"family_slug": "free", "steps": [project("1")]}));
    let raw = |slug: &str, body: &[u8]| {
        let headers = [("content-type", "application/json")];
        daemon.request("POST", &format!("/api/workflows/{slug}/runs"), &headers, body)
    };
    let post = |slug: &str, body: &Value| raw(slug, body.to_string().as_bytes());
    for (body, pointer) in [
        (json!({"input": {}}), "/input"),
        (json!({"input": {"n": "1"}}), "/input/n"),
        (json!({"input": {"n": 10}}), "/input/n"),
        (json!({"input": {"n": 1.5}}), "/input/n"),
        (json!({"input": {"n": 1, "m": 2}}), "/input"),
        (json!({"input": [1]}), "/input"),
        (json!({}), "/input"),
        (json!({"input": {"n": 1}, "version": "1"}), "/version"),
        (json!({"input": {"n": 1}, "version": -1}), "/version"),
        (json!({"input": {"n": 1}, "wait": 301}), "/wait"),
        (json!({"input": {"n": 1}, "labels": ["a"]}), "/labels"),
        (json!({"input": {"n": 1}, "labels": {"a": 1}}), "/labels"),
        (json!({"input": {"n": 1}, "tier": "first"}), "/tier"),
    ] {
        let answer = post("strict", &body);
        refused(&answer, 422, &body.to_string());
        let errors = answer.json()["errors"].as_array().unwrap().clone();
        let named = errors
            .iter()
            .any(|error| error["pointer"].as_str().unwrap().starts_with(pointer));
        assert!(named, "{body}: {errors:?}");
    }
    for body in [
        "",
        "[]",
        "7",
        "{",
        "{\"input\": 1",
        "null",
        "{\"inptu\": 1}",
        "\u{0}",
    ] {
        let answer = raw("strict", body.as_bytes());
        assert!(
            matches!(answer.status, 400 | 422),
            "{body:?}: {} {}",
            answer.status,
            answer.text()
        );
        refused(&answer, answer.status, body);
    }
    let deep = format!("{{\"input\": {}{}}}", "[".repeat(100_000), "]".repeat(100_000));
    let answer = raw("free", deep.as_bytes());
    assert!(matches!(answer.status, 400 | 422), "{}", answer.text());
    let large = json!({"input": "x".repeat(40 << 20)});
    let answer = post("free", &large);
    assert!(matches!(answer.status, 413 | 422), "{}", answer.text());
    refused(
        &post("free", &json!({"version": 2})),
        404,
        "a version that is not there",
    );
    refused(&post("nothing", &json!({})), 404, "a workflow that is not there");
    refused(&post("Not%20A%20Slug", &json!({})), 404, "no slug");
    assert_eq!(runs_of(&daemon, "strict"), Vec::<Value>::new());
    assert_eq!(runs_of(&daemon, "free"), Vec::<Value>::new());
    // What is large and allowed is taken.
    let answer = post("free", &json!({"input": "x".repeat(1 << 20), "wait": 10})).expect_status(201);
    assert_eq!(answer.json()["data"]["state"], "succeeded");
}

#[test]
fn the_same_key_many_times_at_once_begins_one_run() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    publish(
        &daemon,
        &json!({"family_slug": "once", "steps": [project("input")]}),
    );
    let client = daemon.client();
    let ask = |key: &str, input: u64| {
        let headers = [("content-type", "application/json"), ("idempotency-key", key)];
        let body = json!({"input": input}).to_string();
        client
            .request("POST", "/api/workflows/once/runs", &headers, body.as_bytes())
            .unwrap()
    };
    for round in 0..5 {
        let key = format!("k-{round}");
        let answers: Vec<Response> = std::thread::scope(|all| {
            let each: Vec<_> = (0..8).map(|_| all.spawn(|| ask(&key, round))).collect();
            each.into_iter().map(|one| one.join().unwrap()).collect()
        });
        let mut ids = BTreeSet::new();
        for answer in answers {
            match answer.status {
                201 => drop(ids.insert(answer.json()["data"]["id"].as_str().unwrap().to_owned())),
                _ => refused(&answer, 409, "it is being answered"),
            }
        }
        assert_eq!(ids.len(), 1, "{ids:?}");
        let again = ask(&key, round).expect_status(201).json();
        assert!(ids.contains(again["data"]["id"].as_str().unwrap()));
        let other = ask(&key, round + 100);
        assert!(matches!(other.status, 409 | 422), "{}", other.text());
    }
    assert_eq!(runs_of(&daemon, "once").len(), 5);
}

/// Each run has the version that its answer names, whole, whatever is published at the same moment.
#[test]
fn starts_at_once_with_publish_have_one_version_each() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let document = |version: u64| {
        let last = json!({"ref": "q", "type": "STEP_TYPE_DATAFLOW",
            "args": {"operation": "project", "project": {"first": "steps.p.output.v", "last": version.to_string()}}});
        json!({"family_slug": "w", "steps": [project(&version.to_string()), {"ref": "nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "20ms"}}, last],
            "edges": [{"source_ref": "p", "target_ref": "nap"}, {"source_ref": "nap", "target_ref": "q"}]})
    };
    assert_eq!(publish(&daemon, &document(1)), 1);
    let client = daemon.client();
    let begun: Vec<(String, u64)> = std::thread::scope(|all| {
        let start = || {
            let one = || {
                let headers = [("content-type", "application/json")];
                let answer = client
                    .request("POST", "/api/workflows/w/runs", &headers, b"{}")
                    .unwrap();
                let data = answer.expect_status(201).json()["data"].clone();
                (
                    data["id"].as_str().unwrap().to_owned(),
                    data["version"].as_u64().unwrap(),
                )
            };
            (0..20).map(|_| one()).collect::<Vec<_>>()
        };
        let starters: Vec<_> = (0..3).map(|_| all.spawn(start)).collect();
        for version in 2..=12 {
            assert_eq!(publish(&daemon, &document(version)), version);
        }
        starters.into_iter().flat_map(|one| one.join().unwrap()).collect()
    });
    for (run, version) in begun {
        let shown = ended(&daemon, &run);
        assert_eq!(
            (&shown["state"], &shown["version"]),
            (&json!("succeeded"), &json!(version))
        );
        let values = daemon.get(&format!("/api/runs/{run}/values")).json();
        assert_eq!(
            values["data"]["output"],
            json!({"first": version, "last": version})
        );
    }
}

#[test]
fn what_is_said_to_ended_runs_and_unknown_steps_changes_nothing() {
    let place = Place::new("jobs: []\n");
    let daemon = Builder::at(&place).start();
    let approval = json!({"ref": "ok", "type": "STEP_TYPE_APPROVAL"});
    let wait = json!({"ref": "w", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}});
    publish(&daemon, &json!({"family_slug": "done", "steps": [project("1")]}));
    publish(
        &daemon,
        &json!({"family_slug": "open", "steps": [approval, wait]}),
    );
    let done = begin(&daemon, "done", &Value::Null);
    ended(&daemon, &done);
    let before = (
        show(&daemon, &done),
        daemon.get(&format!("/api/runs/{done}/history")).json(),
    );
    let say = |path: &str, body: &Value| daemon.post(path, body);
    for verb in ["pause", "resume", "cancel", "retry"] {
        refused(&say(&format!("/api/runs/{done}:{verb}"), &json!({})), 409, verb);
    }
    for verb in ["approve", "reject", "resume"] {
        let answer = say(&format!("/api/checkpoints/{done}:p:{verb}"), &json!({}));
        assert!(matches!(answer.status, 404 | 409), "{verb}: {}", answer.text());
        refused(&answer, answer.status, verb);
    }
    assert_eq!(before.0, show(&daemon, &done));
    assert_eq!(before.1, daemon.get(&format!("/api/runs/{done}/history")).json());

    let open = begin(&daemon, "open", &Value::Null);
    for (path, statuses) in [
        (
            format!("/api/checkpoints/{open}:nothing:approve"),
            &[404, 409][..],
        ),
        (format!("/api/checkpoints/{open}:w:approve"), &[404, 409]),
        (format!("/api/checkpoints/{open}:ok%237:approve"), &[404, 409]),
        (format!("/api/checkpoints/{open}:ok:resume"), &[409, 422]),
        ("/api/checkpoints/no-run:ok:approve".to_owned(), &[400, 404]),
        (format!("/api/checkpoints/{open}:approve"), &[400, 404]),
        (format!("/api/runs/{open}0:cancel"), &[400, 404]),
        (
            "/api/runs/run_00000000000000000000000000:pause".to_owned(),
            &[400, 404],
        ),
        (format!("/api/runs/{open}:retry"), &[409]),
    ] {
        let answer = say(&path, &json!({}));
        assert!(
            statuses.contains(&answer.status),
            "{path}: {} {}",
            answer.status,
            answer.text()
        );
        refused(&answer, answer.status, &path);
    }
    let cancelled = say(&format!("/api/runs/{open}:cancel"), &json!({}));
    assert!(matches!(cancelled.status, 200 | 202), "{cancelled:?}");
    assert_eq!(ended(&daemon, &open)["state"], "cancelled");
    let answer = say(&format!("/api/checkpoints/{open}:ok:approve"), &json!({}));
    assert!(matches!(answer.status, 404 | 409), "{}", answer.text());
    let unknown = say(&format!("/api/runs/{done}:retry"), &json!({"step": "nothing"}));
    assert!(matches!(unknown.status, 404 | 409 | 422), "{}", unknown.text());
    assert_eq!(daemon.get(&format!("/api/runs/{done}/steps/nothing")).status, 404);
}
