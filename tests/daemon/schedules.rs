//! Due moments over real time: what was missed is caught up on, and what waits for its time survives.

use std::time::Duration;

use ductor::words::time::{Clock, Millis, SystemClock, parse_instant};
use serde_json::Value;

use super::support::{Builder, Daemon, Place, wait_until};
use super::ways::{ended, folder, run};

fn place_with(text: &str) -> Place {
    let place = Place::new("jobs: []\n");
    place.write_config(&text.replace("FOLDER", &folder(&place)));
    place
}

/// The runs of a job that a trigger began, oldest moment first.
fn runs_of(daemon: &Daemon, job: &str, trigger: &str) -> Vec<Value> {
    let path = format!("/api/runs?job={job}&pagination.page_size=500");
    let page = daemon.get(&path).expect_status(200).json();
    let mut runs: Vec<Value> = page["data"]
        .as_array()
        .expect("a list")
        .iter()
        .filter(|run| run["trigger"]["kind"] == trigger)
        .cloned()
        .collect();
    runs.sort_by_key(|run| {
        run["trigger"]["scheduled_at"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    });
    runs
}

fn moment_of(run: &Value) -> String {
    run["trigger"]["scheduled_at"]
        .as_str()
        .expect("a moment")
        .to_owned()
}

/// `2026-03-02T10:00:00.000Z` some seconds later.
fn later(moment: &str, seconds: i64) -> String {
    let at = parse_instant(moment).expect("an instant");
    Millis(at.0 + seconds * 1_000).to_string()
}

fn wall_ms() -> i64 {
    SystemClock.now().wall.0
}

/// Waits until the wall clock has passed a moment.
fn wait_past(moment: &str) {
    let at = parse_instant(moment).expect("an instant");
    wait_until(Duration::from_secs(30), || (wall_ms() > at.0).then_some(())).expect("time goes on");
}

#[test]
fn catchup_serial_and_resumable() {
    let place = place_with(concat!(
        "jobs:\n  - name: all\n    schedule: '@every 1s'\n    onMissed: run-all\n    killTimeout: 1\n",
        "    command: 'test \"$DUCTOR_SCHEDULED_AT\" != \"$(cat FOLDER/block)\" || sleep 60'\n",
    ));
    place.write("block", "none");
    let mut daemon = Builder::at(&place).start();
    let last = daemon.wait("a fire", || runs_of(&daemon, "all", "schedule").pop());
    daemon.kill9();
    let last = moment_of(&last);
    // The daemon may have fired once more before it died; the third after that is still missed.
    let third = later(&last, 4);
    place.write("block", &third);
    wait_past(&later(&last, 6));

    let mut daemon = daemon.restart();
    let blocked = daemon.wait("the blocked run", || {
        let caught_up = runs_of(&daemon, "all", "catchup");
        caught_up
            .into_iter()
            .find(|run| moment_of(run) == third && run["state"] == "running")
    });
    let caught_up = runs_of(&daemon, "all", "catchup");
    assert_eq!(moment_of(caught_up.last().unwrap()), third, "one after the other");
    for before in &caught_up[..caught_up.len() - 1] {
        assert_eq!(before["state"], "succeeded", "{before}");
    }
    daemon.kill9();
    place.write("block", "none");

    let daemon = daemon.restart();
    let id = blocked["id"].as_str().expect("an id");
    let shown = ended(&daemon, id);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let outcomes: Vec<&str> = shown["attempts"]
        .as_array()
        .expect("attempts")
        .iter()
        .filter_map(|attempt| attempt["outcome"].as_str())
        .collect();
    assert_eq!(
        outcomes,
        ["lost", "succeeded"],
        "it resumed with the third: {shown}"
    );
    daemon.wait("the rest", || {
        let caught_up = runs_of(&daemon, "all", "catchup");
        let after = caught_up.iter().filter(|run| moment_of(run) > third).count();
        (after >= 2).then_some(())
    });
    let caught_up = runs_of(&daemon, "all", "catchup");
    let mut moments: Vec<String> = caught_up.iter().map(moment_of).collect();
    moments.dedup();
    assert_eq!(moments.len(), caught_up.len(), "no moment ran twice: {moments:?}");
}

#[test]
fn retry_survives_restart() {
    let place = place_with(concat!(
        "jobs:\n  - name: flaky\n    schedule: '@every 1h'\n    command: 'test \"$DUCTOR_ATTEMPT\" = 2'\n",
        "    onFailure: {retry: {maximumRetries: 1, initialDelay: 4}}\n",
    ));
    let mut daemon = Builder::at(&place).start();
    let started = daemon
        .post("/jobs/flaky/start", &serde_json::json!({"retries": true}))
        .expect_status(200)
        .json();
    let id = started["runId"].as_str().expect("a run").to_owned();
    let step = daemon.wait("the back-off", || {
        let shown = run(&daemon, &id);
        (shown["steps"][0]["state"] == "retrying").then_some(shown["steps"][0].clone())
    });
    let due = step["retry_at"].as_str().expect("its time").to_owned();
    daemon.kill9();
    let daemon = daemon.restart();
    let waits = run(&daemon, &id);
    assert_eq!(waits["steps"][0]["retry_at"], due.as_str(), "{waits}");
    let shown = ended(&daemon, &id);
    assert_eq!(shown["state"], "succeeded", "{shown}");
    let attempts = shown["attempts"].as_array().expect("attempts");
    assert_eq!(attempts.len(), 2, "{shown}");
    let began = attempts[1]["started_at"].as_str().expect("a time");
    assert!(began >= due.as_str(), "{began} is before {due}");
    assert!(began < later(&due, 5).as_str(), "{began} is long after {due}");
}

/// While the store takes nothing the fires are dropped with the warning; their rows follow, and none of them runs late.
#[test]
fn unavailable_fire_recorded_later() {
    let place = place_with(concat!(
        "pools: {p: {slots: 4}}\n",
        "jobs:\n  - name: each\n    schedule: '@every 1s'\n    pool: p\n",
        "    command: 'echo \"$DUCTOR_SCHEDULED_AT\" >> FOLDER/ran'\n",
        "    onFailure: {retry: {maximumRetries: 1}}\n",
    ));
    let fail = place.write("fail", "");
    let daemon = Builder::at(&place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    daemon.wait("a fire", || runs_of(&daemon, "each", "schedule").pop());
    place.write("fail", "store.begin=enospc\n");
    daemon.wait_log("Job each could not enter pool p: pool state is unavailable");
    daemon.wait_log("pool p: retry settlement deferred");
    place.write("fail", "");
    let skipped = daemon.wait("the rows", || {
        let path = "/jobs/each/fires?outcome=skipped&limit=500";
        let answer = daemon.get(path);
        // The store may still be on its way back.
        let fires = (answer.status == 200).then(|| answer.json())?.as_array()?.clone();
        (!fires.is_empty()).then_some(fires)
    });
    let ran = super::ways::lines(&place, "ran");
    for fire in &skipped {
        let code = fire["skipped"]["code"].as_str().expect("a reason");
        assert!(matches!(code, "pool_unavailable" | "missed"), "{fire}");
        let moment = fire["instant"].as_str().expect("a moment");
        assert!(
            !ran.iter().any(|line| line == moment),
            "{moment} ran all the same"
        );
    }
    assert!(
        skipped
            .iter()
            .any(|fire| fire["skipped"]["code"] == "pool_unavailable")
    );
}

/// Down for some fires, with each `onMissed`: `schedule why` says for one of them what became of it.
#[test]
fn missed_fires_are_explained_for_each_policy() {
    let place = place_with(concat!(
        "defaults: {timezone: Europe/Madrid}\njobs:\n",
        "  - {name: skip, schedule: '@every 1s', command: 'true'}\n",
        "  - {name: once, schedule: '@every 1s', command: 'true', onMissed: run-once}\n",
        "  - {name: all, schedule: '@every 1s', command: 'true', onMissed: run-all}\n",
    ));
    let mut daemon = Builder::at(&place).start();
    let last = daemon.wait("a fire", || runs_of(&daemon, "all", "schedule").pop());
    daemon.kill9();
    let missed = later(&moment_of(&last), 3);
    wait_past(&later(&missed, 2));
    let daemon = daemon.restart();
    daemon.wait("the catch-up", || {
        runs_of(&daemon, "all", "catchup")
            .into_iter()
            .find(|run| moment_of(run) == missed && run["state"] == "succeeded")
    });
    for (job, code, part) in [
        ("skip", "missed", "nothing makes up for it"),
        ("once", "missed", "only the newest of those missed together runs"),
        ("all", "caught_up", "was missed and made up for later"),
    ] {
        let answered = daemon
            .cli(&["schedule", "why", job, "--at", &missed])
            .expect_status(0);
        let words: Vec<&str> = answered.stdout.split_whitespace().collect();
        assert!(words.join(" ").contains(part), "{job}: {}", answered.stdout);
        let path = format!("/jobs/{job}/why?at={missed}");
        assert_eq!(daemon.get(&path).expect_status(200).json()["code"], code);
    }
    assert_eq!(runs_of(&daemon, "once", "catchup").len(), 1);
    assert!(runs_of(&daemon, "skip", "catchup").is_empty());
}
