//! What the pages of the dashboard ask: true after a failure, a wait, a retry, and after a restart.

use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place};
use super::ways::{ended, folder, run_id, start};

fn overview(daemon: &Daemon) -> Value {
    daemon.get("/api/overview").expect_status(200).json()["data"].clone()
}

fn place() -> Place {
    let place = Place::new("jobs: []\n");
    let text = concat!(
        "pools: {p: {slots: 1}}\njobs:\n",
        "  - {name: bad, command: 'exit 3'}\n",
        "  - {name: worse, command: 'exit 3'}\n",
        "  - {name: slow, command: 'sleep 60', executionTimeout: 0.2, killTimeout: 0}\n",
        "  - {name: holds, pool: p, killTimeout: 0, command: 'while [ ! -e FOLDER/go ]; do sleep 0.05; done'}\n",
        "  - name: flaky\n    command: 'exit 7'\n",
        "    onFailure: {retry: {maximumRetries: 2, initialDelay: 600, maximumDelay: 600}}\n",
        "  - {name: nightly, command: 'true', schedule: '30 2 * * *', timezone: Europe/London}\n",
    );
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

/// The hours in which something ended: an hour may have passed between two answers.
fn bars(overview: &Value) -> Vec<Value> {
    let words = ["succeeded", "failed", "timed_out", "cancelled", "skipped"];
    let is_used = |hour: &&Value| words.iter().any(|word| hour[word] != 0);
    overview["hours"]
        .as_array()
        .unwrap()
        .iter()
        .filter(is_used)
        .cloned()
        .collect()
}

/// The group of a cause.
fn group<'o>(overview: &'o Value, cause: &str) -> &'o Value {
    let groups = overview["failing"]["groups"].as_array().unwrap();
    let found = groups.iter().find(|group| group["cause"] == cause);
    found.unwrap_or_else(|| panic!("no group `{cause}`: {overview:#}"))
}

#[test]
fn home_says_what_fails_waits_and_is_tried_again() {
    let place = place();
    let daemon = Builder::at(&place).start();
    let first = overview(&daemon);
    assert_eq!(
        (&first["first_steps"], &first["failing"]["total"]),
        (&json!(true), &json!(0))
    );
    assert_eq!(first["next_fires"][0]["job"], "nightly");
    for job in ["bad", "worse", "slow"] {
        ended(&daemon, &run_id(&start(&daemon, job)));
    }
    start(&daemon, "holds");
    let waits = run_id(&start(&daemon, "holds"));
    let answer = daemon.post("/jobs/flaky/start", &json!({"retries": true}));
    let flaky = run_id(&answer.json());
    daemon.wait("the back-off of flaky", || {
        let groups = overview(&daemon)["waiting"]["groups"].clone();
        let codes = groups.as_array()?.iter().map(|group| group["code"].clone());
        codes
            .collect::<Vec<_>>()
            .contains(&json!("backoff"))
            .then_some(())
    });
    what_fails_and_waits(&overview(&daemon), &waits, &flaky);
    let line = daemon
        .get(&format!("/api/runs/{flaky}/timeline"))
        .expect_status(200)
        .json()["data"]
        .clone();
    let last = line["segments"].as_array().unwrap().last().unwrap().clone();
    assert_eq!(
        (&last["kind"], &last["text"]),
        (&json!("backoff"), &json!("waits 10 min before attempt 2"))
    );
    std::fs::write(place.folder().join("go"), "").unwrap();
    ended(&daemon, &waits);
    the_same_after_a_restart(daemon);
}

fn what_fails_and_waits(seen: &Value, waits: &str, flaky: &str) {
    assert_eq!(
        (&seen["failing"]["total"], &seen["failing"]["causes"]),
        (&json!(4), &json!(3)),
        "{seen:#}"
    );
    let both = group(seen, "exit code 3");
    assert_eq!((&both["count"], &both["retrying"]), (&json!(2), &json!(false)));
    assert_eq!(both["jobs"][0]["name"], "worse", "the newest first");
    group(seen, "execution timeout of # s");
    let again = group(seen, "exit code 7");
    assert_eq!(
        (&again["retrying"], &again["jobs"][0]["run"]),
        (&json!(true), &json!(flaky))
    );
    assert!(again["retry_at"].is_string(), "{again}");
    assert_eq!(seen["running"]["total"], 1, "{seen:#}");
    assert_eq!(
        (
            &seen["running"]["runs"][0]["job"],
            &seen["running"]["runs"][0]["pool"]
        ),
        (&json!("holds"), &json!("p"))
    );
    let queue = &seen["waiting"]["groups"]
        .as_array()
        .unwrap()
        .iter()
        .find(|group| group["pool"] == "p")
        .cloned();
    let queue = queue.as_ref().expect("the queue of p");
    assert_eq!(
        (&queue["code"], &queue["head"]["run_id"]),
        (&json!("slots"), &json!(waits)),
        "{queue}"
    );
    let sum = |word: &str| {
        let hours = seen["hours"].as_array().unwrap().iter();
        hours.map(|hour| hour[word].as_u64().unwrap()).sum::<u64>()
    };
    assert_eq!((sum("failed"), sum("timed_out"), sum("succeeded")), (2, 1, 0));
}

/// Counted anew after a restart, it says the same.
fn the_same_after_a_restart(daemon: Daemon) {
    let before = overview(&daemon);
    let daemon = daemon.restart();
    let after = overview(&daemon);
    for part in ["failing", "waiting", "hours_counted_from"] {
        assert_eq!(before[part], after[part], "{part}");
    }
    assert_eq!(bars(&before), bars(&after));
    assert_eq!(after["running"]["total"], 0);
    let failing = daemon.get("/api/jobs?state=failing&include=recent").json()["data"].clone();
    let names: Vec<_> = failing
        .as_array()
        .unwrap()
        .iter()
        .map(|job| job["name"].clone())
        .collect();
    assert_eq!(names, ["bad", "flaky", "slow", "worse"]);
    assert_eq!(failing[0]["recent"][0]["state"], "failed");
    let nightly = daemon.get("/api/jobs/nightly").json()["data"].clone();
    assert!(
        nightly["policy"]["origin"].as_str().unwrap().ends_with(":10"),
        "{nightly:#}"
    );
    assert!(nightly["lints"].is_array() && nightly["next_fire"].is_string());
}
