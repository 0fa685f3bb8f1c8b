//! Once more, and many at once, on the real binary: a retry that does not wait, a rerun that names its run, and a bulk
//! cancel that does what was shown or nothing.

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};
use super::ways::{ended, folder, lines, run, run_id, run_state, start};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

fn ask(daemon: &Daemon, verb: &str, body: &Value) -> Value {
    let answer = daemon.post(&format!("/api/runs:{verb}_matching"), body);
    let mut shown = answer.json();
    shown["status"] = Value::from(answer.status);
    shown
}

#[test]
fn a_retry_does_not_wait_for_its_time() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - name: flaky\n    pool: p\n    command: 'echo x >> FOLDER/marks; test -e FOLDER/mended'\n",
        "    onFailure: {retry: {maximumRetries: 3, initialDelay: 3600, maximumDelay: 3600}}\n",
    ));
    let daemon = Builder::at(&place).start();
    let id = run_id(&daemon.post("/jobs/flaky/start", &json!({"retries": true})).json());
    daemon.wait("the back-off", || {
        (run(&daemon, &id)["steps"][0]["state"] == "retrying").then_some(())
    });
    place.write("mended", "");
    let told = daemon.cli(&["run", "retry", &id]).expect_status(0).stdout;
    assert_eq!(told, format!("{id} takes attempt 2 now\n"));
    let whole = ended(&daemon, &id);
    assert_eq!(
        (&whole["state"], &whole["steps"][0]["attempt"]),
        (&json!("succeeded"), &json!(2))
    );
    assert_eq!(lines(&place, "marks").len(), 2);
    let late = daemon.cli(&["run", "retry", &id]).expect_status(5);
    assert!(
        late.stderr.contains("a rerun starts its job as a new run"),
        "{late:?}"
    );
    assert!(
        late.stderr.contains(&format!("ductor run rerun {id}")),
        "{late:?}"
    );
}

#[test]
fn a_failed_run_is_rerun_as_a_new_one() {
    let place = place_with("jobs:\n  - {name: job, command: 'test -e FOLDER/mended'}\n");
    let daemon = Builder::at(&place).start();
    let old = run_id(&start(&daemon, "job"));
    assert_eq!(ended(&daemon, &old)["state"], "failed");
    place.write("mended", "");
    let told = daemon
        .cli(&["--json", "run", "rerun", &old, "--wait"])
        .expect_status(0);
    let new = told.json()["data"].clone();
    assert_eq!(
        (&new["state"], &new["rerun_of"]),
        (&json!("succeeded"), &json!(old))
    );
    let shown = daemon
        .cli(&["run", "show", new["id"].as_str().unwrap()])
        .expect_status(0);
    assert!(
        shown.stdout.contains(&format!("repeats  {old}")),
        "{}",
        shown.stdout
    );
    // The link outlives the daemon.
    let daemon = daemon.restart();
    assert_eq!(run(&daemon, new["id"].as_str().unwrap())["rerun_of"], json!(old));
    assert_eq!(run_state(&daemon, &old), "failed", "the old run stays as it is");
}

#[test]
fn what_was_shown_is_cancelled_and_nothing_else() {
    let place = place_with(concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - {name: long, pool: p, command: sleep 300, killTimeout: 1}\n",
        "  - {name: other, pool: p, command: 'true'}\n",
    ));
    let daemon = Builder::at(&place).start();
    let ids: Vec<String> = (0..4).map(|_| run_id(&start(&daemon, "long"))).collect();
    let other = run_id(&start(&daemon, "other"));
    daemon.wait("the first to run", || {
        (run_state(&daemon, &ids[0]) == "running").then_some(())
    });
    let shown = ask(
        &daemon,
        "cancel",
        &json!({"filter": {"job": "long"}, "preview": true}),
    );
    assert_eq!(
        (&shown["data"]["count"], &shown["data"]["sample"][3]["id"]),
        (&json!(4), &json!(ids[0]))
    );
    let wrong = json!({"filter": {"job": "long"}, "preview": false, "expected_count": 3});
    let refused = ask(&daemon, "cancel", &wrong);
    assert_eq!(
        (&refused["status"], &refused["current_count"]),
        (&json!(409), &json!(4))
    );
    assert!(ids[1..].iter().all(|id| run_state(&daemon, id) == "pending"));
    let told = daemon
        .cli(&["run", "cancel", "--where", "job:long", "--yes"])
        .expect_status(0);
    assert_eq!(told.stdout, "4 runs cancelled, 1 of them still ending\n");
    for id in &ids {
        assert_eq!(ended(&daemon, id)["state"], "cancelled");
    }
    assert_eq!(
        ended(&daemon, &other)["state"],
        "succeeded",
        "it waited behind them"
    );
    let none = daemon.cli(&["run", "cancel", "--where", "job:long", "--yes"]);
    assert!(
        none.expect_status(0)
            .stdout
            .contains("No run that waits or runs is like that.")
    );
    let again = daemon
        .cli(&["run", "retry", "--where", "job:long", "--yes"])
        .expect_status(0);
    assert!(
        again.stdout.starts_with("1 job started anew\nrun_"),
        "{}",
        again.stdout
    );
    let anew = daemon
        .get("/api/runs?job=long&state=pending&state=running")
        .json();
    assert_eq!(
        anew["data"].as_array().unwrap().len(),
        1,
        "four runs, one job, one start"
    );
    daemon.post("/jobs/long/cancel", &json!({})).expect_status(200);
}
