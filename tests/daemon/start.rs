//! Starts over HTTP: every row of the table, idempotency, next fires.

use serde_json::json;

use super::support::{Builder, Daemon, Place};
use super::ways::{ended, run_id, start};

const CONFIG: &str = concat!(
    "shutdown: {drainTimeout: 0.1}\n",
    "pools: {p: {slots: 1, maxQueued: 1}, other: {slots: 1}}\njobs:\n",
    "  - {name: pooled, pool: p, command: 'sleep 30', killTimeout: 1}\n",
    "  - {name: plain, command: 'true'}\n",
    "  - {name: solo, command: 'sleep 30', concurrencyPolicy: Forbid, killTimeout: 1}\n",
    "  - {name: off, command: 'true', enabled: false}\n",
);

#[test]
fn idempotency_key_replay() {
    let daemon = Daemon::start(CONFIG);
    let ask = |key: &str, body: &[u8]| {
        let headers = [("Idempotency-Key", key), ("Content-Type", "application/json")];
        daemon.request("POST", "/jobs/pooled/start", &headers, body)
    };
    let first = ask("k-1", b"{}");
    assert_eq!(
        (first.status, first.header("idempotency-replayed")),
        (202, None),
        "{first:?}"
    );
    let again = ask("k-1", b"{}");
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (202, Some("true")),
        "{again:?}"
    );
    assert_eq!(first.json(), again.json());
    assert_eq!(first.header("location"), again.header("location"));
    let other = daemon.request(
        "POST",
        "/jobs/plain/start",
        &[("Idempotency-Key", "k-1"), ("Content-Type", "application/json")],
        b"{}",
    );
    assert_eq!(other.status, 422, "{other:?}");
    assert_eq!(
        other.json()["error"],
        "Idempotency-Key was used for another request"
    );
    let daemon = daemon.restart();
    let headers = [("Idempotency-Key", "k-1"), ("Content-Type", "application/json")];
    let after = daemon.request("POST", "/jobs/pooled/start", &headers, b"{}");
    assert_eq!(after.json(), first.json(), "also after a restart");
    let runs = daemon.get("/api/runs?job=pooled").expect_status(200).json();
    assert_eq!(runs["data"].as_array().map(Vec::len), Some(1), "one run: {runs}");
    daemon.post("/jobs/pooled/cancel", &json!({})).expect_status(200);
    ended(&daemon, &run_id(&first.json()));
}

#[test]
fn next_fire_strictly_future() {
    let place = Place::new("jobs:\n  - {name: minutely, schedule: '* * * * *', command: 'true'}\n");
    let daemon = Builder::at(&place).start();
    let next = daemon.get("/jobs/minutely").json()["schedule"]["next"][0]
        .as_str()
        .unwrap()
        .to_owned();
    let instant = ductor::words::time::parse_instant(&next).unwrap();
    let now = ductor::words::time::Clock::now(&ductor::words::time::SystemClock).wall;
    assert!(instant > now, "{next}");
    assert_eq!(instant.0 % 60_000, 0);
}

#[test]
fn manual_and_plain_runs_end_and_are_listed() {
    let daemon = Daemon::start(CONFIG);
    let id = run_id(&start(&daemon, "plain"));
    assert_eq!(ended(&daemon, &id)["state"], "succeeded");
    for arguments in [
        &["run", "ls"][..],
        &["run", "show", &id],
        &["job", "ls"],
        &["job", "show", "plain"],
        &["status"],
        &["slots", "ls"],
    ] {
        let shown = daemon.cli(arguments);
        assert_eq!(shown.status, 0, "{arguments:?}: {shown:?}");
        assert!(!shown.stdout.is_empty(), "{arguments:?}");
    }
    assert_eq!(daemon.cli(&["run", "logs", &id, "--attempt", "9"]).status, 3);
    assert_eq!(daemon.cli(&["run", "logs", &id, "nostep"]).status, 3);
    let place = daemon.place();
    let (config, state) = (
        place.config().display().to_string(),
        place.state().display().to_string(),
    );
    let doctor = daemon.cli(&["doctor", "--store", "--config", &config, "--state-dir", &state]);
    assert_eq!(doctor.status, 0, "{doctor:?}");
    assert!(
        doctor.stdout.contains("checked by the running daemon"),
        "{doctor:?}"
    );
    let missing = daemon.cli(&["job", "show", "nobody"]);
    assert_eq!(missing.status, 3, "{missing:?}");
    let started = daemon.cli(&["job", "start", "plain", "--wait"]);
    assert_eq!(started.status, 0, "{started:?}");
    let off = daemon.cli(&["job", "start", "off"]);
    assert_eq!(off.status, 5, "{off:?}");
}
