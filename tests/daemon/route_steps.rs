//! Steps that route, on the real binary: duplicates, ends of every kind, cancels, kills.

use serde_json::{Value, json};

use super::graphs::{begin, ended, publish, show, step_state};
use super::support::{Builder, Daemon, Place};

fn made(daemon: &Daemon, path: &str, body: &Value) -> String {
    let answer = daemon.post(path, body).expect_status(201).json();
    answer["data"]["id"].as_str().unwrap().to_owned()
}

/// A pool of this configuration with one member.
fn desk(daemon: &Daemon, config: &Value, member: &Value) -> (String, String) {
    let of = made(daemon, "/api/pools", &json!({"name": "desk", "config": config}));
    let mut body = member.clone();
    body["name"] = json!("a");
    let agent = made(daemon, &format!("/api/pools/{of}/recipients"), &body);
    (of, agent)
}

/// A workflow of one step that routes to `desk`.
fn workflow(daemon: &Daemon, args: &Value, retry: Option<&Value>) {
    let mut all = json!({"work": {"kind": "'ticket'", "external_id": "input.order"}, "pool": "desk",
        "wait": "completion"});
    for (key, value) in args.as_object().unwrap() {
        all[key] = value.clone();
    }
    let mut step = json!({"ref": "r", "type": "STEP_TYPE_ROUTE", "args": all});
    if let Some(retry) = retry {
        step["retry"] = retry.clone();
    }
    publish(daemon, &json!({"family_slug": "w", "steps": [step]}));
}

fn waiting(daemon: &Daemon, run: &str) {
    daemon.wait("a step that waits", || {
        (step_state(daemon, run, "r") == "waiting").then_some(())
    });
}

fn open(daemon: &Daemon) -> Vec<String> {
    let listed = daemon
        .get("/api/assignments?state=open")
        .expect_status(200)
        .json();
    let all = listed["data"].as_array().unwrap().iter();
    all.map(|one| one["id"].as_str().unwrap().to_owned()).collect()
}

fn held(daemon: &Daemon) -> String {
    daemon.wait("an assignment", || open(daemon).into_iter().next())
}

fn act(daemon: &Daemon, assignment: &str, verb: &str, body: &Value) {
    daemon
        .post(&format!("/api/assignments/{assignment}:{verb}"), body)
        .expect_status(200);
}

fn error_of(daemon: &Daemon, run: &str) -> (String, String) {
    let ended = ended(daemon, run);
    assert_eq!(ended["state"], "failed", "{ended}");
    let step = daemon
        .get(&format!("/api/runs/{run}/steps/r"))
        .expect_status(200)
        .json();
    let error = &step["data"]["error"];
    let text = |name: &str| {
        error[name]
            .as_str()
            .unwrap_or_else(|| panic!("{step}"))
            .to_owned()
    };
    (text("code"), text("message"))
}

fn clean(daemon: &Daemon) {
    let check = daemon.get("/api/store/check").expect_status(200).json();
    assert_eq!(check["data"]["findings"], json!([]), "{check}");
}

fn dedup() -> Value {
    json!({"dedup": {"enabled": true, "key": "work.external_id", "window": "1h"}})
}

/// Two runs with the same order: one piece of work, and both go on when it is done, also through a kill.
#[test]
fn a_duplicate_waits_for_the_work_that_is_there() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    desk(&daemon, &dedup(), &json!({}));
    workflow(&daemon, &json!({}), None);
    let runs = [1, 2, 3].map(|_| begin(&daemon, "w", &json!({"order": "o-7"})));
    for run in &runs {
        waiting(&daemon, run);
    }
    assert_eq!(open(&daemon).len(), 1, "one order is one piece of work");
    clean(&daemon);
    daemon.kill9();
    daemon = daemon.restart();
    for run in &runs {
        waiting(&daemon, run);
    }
    let assignment = held(&daemon);
    act(&daemon, &assignment, "complete", &json!({"value": 1.0}));
    let late = begin(&daemon, "w", &json!({"order": "o-7"}));
    for run in runs.iter().chain([&late]) {
        assert_eq!(ended(&daemon, run)["state"], "succeeded", "{run}");
        let step = daemon.get(&format!("/api/runs/{run}/steps/r")).json();
        assert_eq!(
            step["data"]["output"]["assignment_id"],
            json!(assignment),
            "{step}"
        );
    }
    clean(&daemon);
}

/// A duplicate of what came to nothing says so at once, and one of work in a queue waits like the first.
#[test]
fn a_duplicate_of_what_has_ended_says_how() {
    let daemon = Daemon::start("jobs: []\n");
    let (_, agent) = desk(&daemon, &dedup(), &json!({"state": "RECIPIENT_STATE_OFFLINE"}));
    workflow(&daemon, &json!({}), None);
    let runs = [1, 2].map(|_| begin(&daemon, "w", &json!({"order": "o-8"})));
    for run in &runs {
        waiting(&daemon, run);
    }
    daemon
        .post(&format!("/api/recipients/{agent}/resume"), &json!({}))
        .expect_status(200);
    let assignment = held(&daemon);
    // It comes back to the only one who had it: nobody is left, and it waits.
    act(
        &daemon,
        &assignment,
        "return",
        &json!({"reason": "not mine", "reroute": true}),
    );
    let third = begin(&daemon, "w", &json!({"order": "o-8"}));
    waiting(&daemon, &third);
    daemon
        .post(&format!("/api/recipients/{agent}/pause"), &json!({}))
        .expect_status(200);
    let listed = daemon.get("/api/pools").json();
    let of = listed["data"][0]["id"].as_str().unwrap().to_owned();
    let item = daemon.wait("an item", || {
        let items = daemon.get(&format!("/api/queues/{of}/items")).json();
        items["data"][0]["id"].as_str().map(str::to_owned)
    });
    daemon
        .delete(&format!("/api/queues/{of}/items/{item}"))
        .expect_status(200);
    for run in runs.iter().chain([&third]) {
        let (code, message) = error_of(&daemon, run);
        assert!(code.starts_with("route."), "{code}: {message}");
    }
    let late = begin(&daemon, "w", &json!({"order": "o-8"}));
    let (_, message) = error_of(&daemon, &late);
    assert!(message.contains("a duplicate of work"), "{message}");
    clean(&daemon);
}

/// What the step says of each end of its work.
#[test]
fn each_end_of_the_work_is_told() {
    let daemon = Daemon::start("jobs: []\n");
    let (of, agent) = desk(&daemon, &json!({}), &json!({}));
    workflow(&daemon, &json!({}), None);
    let patch = |config: Value| {
        daemon
            .send_json("PATCH", &format!("/api/pools/{of}"), &json!({"config": config}))
            .expect_status(200);
    };
    let start = || begin(&daemon, "w", &json!({"order": "o"}));
    // Given back for good.
    let run = start();
    act(
        &daemon,
        &held(&daemon),
        "return",
        &json!({"reason": "no parts", "reroute": false}),
    );
    let given_back = error_of(&daemon, &run);
    assert_eq!(given_back.0, "route.returned");
    assert!(
        given_back.1.contains("given back for good: no parts"),
        "{given_back:?}"
    );
    // Rejected, and nobody else is there: dropped.
    patch(json!({"fallback": "drop"}));
    let run = start();
    act(&daemon, &held(&daemon), "reject", &json!({"reason": "not mine"}));
    let (code, message) = error_of(&daemon, &run);
    assert_eq!(code, "route.dropped", "{message}");
    // Not done by its deadline: it routes elsewhere, and nobody is there.
    patch(json!({"default_timeout": "100ms"}));
    let (code, message) = error_of(&daemon, &start());
    assert_eq!(code, "route.dropped", "{message}");
    // It waits in the queue until nobody may take it any more.
    patch(json!({"fallback": "queue", "queue_ttl_seconds": 1, "default_timeout": "0s"}));
    daemon
        .post(&format!("/api/recipients/{agent}/pause"), &json!({}))
        .expect_status(200);
    let (code, message) = error_of(&daemon, &start());
    assert_eq!(code, "route.dropped");
    assert!(message.contains("it waited"), "{message}");
    // There is no such pool.
    workflow(&daemon, &json!({"pool": "nowhere"}), None);
    let (code, message) = error_of(&daemon, &start());
    assert_eq!(code, "pool.not_found", "{message}");
    clean(&daemon);
}

/// A step that does not wait for ever tries again with new work; the old one stays with whoever has it.
#[test]
fn a_step_whose_patience_is_over_tries_again() {
    let daemon = Daemon::start("jobs: []\n");
    desk(&daemon, &json!({}), &json!({}));
    let retry = json!({"max_attempts": 2, "initial_interval": "0s"});
    workflow(&daemon, &json!({"timeout": "200ms"}), Some(&retry));
    let run = begin(&daemon, "w", &json!({"order": "o"}));
    let (code, message) = error_of(&daemon, &run);
    assert_eq!(code, "route.timeout", "{message}");
    assert_eq!(open(&daemon).len(), 2, "each attempt routed its own work");
    for assignment in open(&daemon) {
        act(&daemon, &assignment, "complete", &json!({}));
    }
    assert_eq!(show(&daemon, &run)["state"], "failed", "it comes too late");
    clean(&daemon);
}

/// A run that is cancelled waits for nothing any more; what somebody has stays theirs.
#[test]
fn a_cancelled_run_leaves_the_work_where_it_is() {
    let place = Place::new("jobs: []\n");
    let mut daemon = Builder::at(&place).start();
    desk(&daemon, &json!({}), &json!({}));
    workflow(&daemon, &json!({}), None);
    let run = begin(&daemon, "w", &json!({"order": "o"}));
    waiting(&daemon, &run);
    let assignment = held(&daemon);
    let cancelled = daemon.post(&format!("/api/runs/{run}:cancel"), &json!({}));
    assert!(matches!(cancelled.status, 200 | 202), "{cancelled:?}");
    assert_eq!(ended(&daemon, &run)["state"], "cancelled");
    daemon.kill9();
    daemon = daemon.restart();
    assert_eq!(open(&daemon), std::slice::from_ref(&assignment));
    act(&daemon, &assignment, "complete", &json!({}));
    assert_eq!(show(&daemon, &run)["state"], "cancelled");
    clean(&daemon);
}
