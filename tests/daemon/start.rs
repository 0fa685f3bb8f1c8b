//! Starts over HTTP: every row of the table, idempotency, next fires.

use serde_json::json;

use super::support::{Builder, Daemon, Place, Response};
use super::ways::{ended, entries, run_id, start};

const CONFIG: &str = concat!(
    "shutdown: {drainTimeout: 0.1}\n",
    "pools: {p: {slots: 1, maxQueued: 1}, other: {slots: 1}}\njobs:\n",
    "  - {name: pooled, pool: p, command: 'sleep 30', killTimeout: 1}\n",
    "  - {name: plain, command: 'true'}\n",
    "  - {name: solo, command: 'sleep 30', concurrencyPolicy: Forbid, killTimeout: 1}\n",
    "  - {name: off, command: 'true', enabled: false}\n",
);

fn expect(answer: &Response, status: u16, sentence: &str) {
    assert_eq!(answer.status, status, "{answer:?}");
    let body = answer.json();
    assert_eq!(body["error"], sentence, "{body}");
    assert_eq!(body["status"], status, "{body}");
    assert!(
        answer
            .header("content-type")
            .unwrap_or_default()
            .starts_with("application/problem+json"),
        "{answer:?}"
    );
}

fn empty(daemon: &Daemon, path: &str) -> Response {
    daemon.post(path, &json!({}))
}

#[test]
fn http_matrix() {
    let daemon = Daemon::start(CONFIG);
    starts(&daemon);
    cancels_and_queues(&daemon);
    pauses(&daemon);
}

fn starts(daemon: &Daemon) {
    expect(
        &empty(daemon, "/jobs/nobody/start"),
        404,
        "job 'nobody' not found",
    );
    expect(&empty(daemon, "/jobs/off/start"), 409, "job 'off' is disabled");
    let first = empty(daemon, "/jobs/pooled/start");
    assert_eq!(first.status, 202, "{first:?}");
    let body = first.json();
    assert_eq!(
        (body["queued"].as_str(), body["pool"].as_str()),
        (Some("pooled"), Some("p")),
        "{body}"
    );
    let place = format!("/pools/p/queue/{}", body["queueId"].as_str().unwrap());
    assert_eq!(first.header("location"), Some(place.as_str()));
    daemon.wait("it runs", || {
        (entries(daemon, "p", "running").len() == 1).then_some(())
    });
    assert_eq!(empty(daemon, "/jobs/pooled/start").status, 202, "one may wait");
    expect(&empty(daemon, "/jobs/pooled/start"), 409, "pool queue is full");
    let plain = empty(daemon, "/jobs/plain/start").expect_status(200).json();
    assert_eq!(plain["started"], "plain");
    assert!(plain["runId"].is_string());
    assert_eq!(empty(daemon, "/jobs/solo/start").status, 200);
    let still = "job 'solo' is still running and its concurrencyPolicy is Forbid";
    expect(&empty(daemon, "/jobs/solo/start"), 409, still);
    assert_eq!(
        daemon.post("/jobs/plain/start", &json!({"nonsense": 1})).status,
        422
    );
    assert_eq!(
        daemon
            .request(
                "POST",
                "/jobs/plain/start",
                &[("Content-Type", "text/plain")],
                b"x"
            )
            .status,
        415
    );
    assert_eq!(
        daemon.request("POST", "/jobs/plain/start", &[], b"").status,
        200,
        "an empty body is fine"
    );
}

fn cancels_and_queues(daemon: &Daemon) {
    let waiting = entries(daemon, "p", "queued")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let running = entries(daemon, "p", "running")[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for _ in 0..2 {
        let cancelled = empty(daemon, &format!("/pools/p/queue/{waiting}/cancel"))
            .expect_status(200)
            .json();
        assert_eq!(cancelled, json!({"id": waiting, "state": "cancelled"}));
    }
    expect(
        &empty(daemon, &format!("/pools/p/queue/{running}/cancel")),
        409,
        "only waiting entries can be cancelled",
    );
    expect(
        &empty(daemon, &format!("/pools/p/queue/{}/cancel", "0".repeat(32))),
        409,
        "queue entry not found",
    );
    expect(
        &empty(daemon, &format!("/pools/nowhere/queue/{waiting}/cancel")),
        409,
        "queue entry not found",
    );
    expect(&daemon.get("/pools/nowhere"), 404, "pool 'nowhere' not found");
    expect(&daemon.get("/pools/p/queue/zzz"), 404, "queue entry not found");
    expect(
        &daemon.get(&format!("/pools/nowhere/queue/{waiting}")),
        404,
        "pool 'nowhere' not found",
    );
    assert_eq!(
        daemon
            .get(&format!("/pools/p/queue/{waiting}"))
            .expect_status(200)
            .json()["state"],
        "cancelled"
    );
    let list = daemon.get("/pools").expect_status(200).json();
    assert_eq!(list.as_array().map(Vec::len), Some(2), "{list}");
    for (job, count) in [("pooled", 1), ("solo", 1)] {
        let stopped = empty(daemon, &format!("/jobs/{job}/cancel"))
            .expect_status(200)
            .json();
        assert_eq!(stopped, json!({"cancelled": job, "instances": count}));
    }
    daemon.wait("both ended", || {
        (daemon.get("/jobs/solo").json()["running"] == 0).then_some(())
    });
    expect(
        &empty(daemon, "/jobs/solo/cancel"),
        409,
        "job 'solo' is not running",
    );
    expect(
        &empty(daemon, "/jobs/nobody/cancel"),
        404,
        "job 'nobody' not found",
    );
}

fn pauses(daemon: &Daemon) {
    for path in ["/jobs/plain/pause", "/jobs/plain/resume", "/jobs/plain/resume"] {
        assert_eq!(empty(daemon, path).status, 200, "{path}");
    }
    expect(
        &empty(daemon, "/jobs/nobody/pause"),
        404,
        "job 'nobody' not found",
    );
    expect(
        &empty(daemon, "/pools/nowhere/pause"),
        404,
        "pool 'nowhere' not found",
    );
    assert_eq!(
        daemon
            .post("/pools/p/pause", &json!({"durationSeconds": 0}))
            .status,
        422
    );
    let paused = daemon
        .post("/pools/p/pause", &json!({"durationSeconds": 60, "note": "n"}))
        .expect_status(200)
        .json();
    assert_eq!(paused["paused"]["note"], "n", "{paused}");
    assert!(empty(daemon, "/pools/p/resume").expect_status(200).json()["paused"].is_null());
}

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
