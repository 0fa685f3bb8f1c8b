//! Every request of the table of endpoints, row by row: status and body exact.
//!
//! A row is one line of a test below: the request, the status, what comes back. `*entry*`, `*run*` and `*time*` in an
//! expected body stand for any value of that form. Two rows cannot be reached from outside: a job of an unknown slot pool is
//! refused with its configuration, and a damaged row needs a damaged file (`pool_unreadable_fails_closed`).

use ductor::words::ids::{EntryId, RunId};
use ductor::words::time::parse_instant;
use serde_json::{Value, json};

use super::support::{Builder, Daemon, Place, Response};
use super::ways::entries;

const CONFIG: &str = concat!(
    "shutdown: {drainTimeout: 0.1}\n",
    "pools: {p: {slots: 1, maxQueued: 1}, wide: {slots: 2}}\njobs:\n",
    "  - {name: pooled, pool: p, command: 'sleep 30', killTimeout: 1}\n",
    "  - {name: broad, pool: wide, command: 'sleep 30', killTimeout: 1}\n",
    "  - {name: plain, command: 'true'}\n",
    "  - {name: solo, command: 'sleep 30', concurrencyPolicy: Forbid, killTimeout: 1}\n",
    "  - {name: off, command: 'true', enabled: false}\n",
    "  - {name: nightly, command: 'true', schedule: '30 2 * * *', timezone: Europe/London}\n",
);

const UNAVAILABLE: &str = "pool state is unavailable";

/// What a row expects beside its status.
enum Expected {
    /// The whole body.
    Exactly(Value),
    /// A problem document with this sentence.
    Says(String),
    /// These members of the body.
    Has(Value),
}
use Expected::{Exactly, Has, Says};

fn says(sentence: &str) -> Expected {
    Says(sentence.to_owned())
}

/// One row without a body.
fn row(daemon: &Daemon, request: &str, status: u16, expected: &Expected) -> Response {
    sent(daemon, request, &[], None, status, expected)
}

/// One row with a body.
fn row_of(daemon: &Daemon, request: &str, body: &Value, status: u16, expected: &Expected) -> Response {
    sent(daemon, request, &[], Some(body), status, expected)
}

fn sent(
    daemon: &Daemon,
    request: &str,
    headers: &[(&str, &str)],
    body: Option<&Value>,
    status: u16,
    expected: &Expected,
) -> Response {
    let (method, path) = request.split_once(' ').expect("METHOD /path");
    let mut headers = headers.to_vec();
    headers.extend(body.map(|_| ("Content-Type", "application/json")));
    let text = body.map(Value::to_string).unwrap_or_default();
    let answer = daemon.request(method, path, &headers, text.as_bytes());
    assert_eq!(answer.status, status, "{request}: {answer:?}");
    let (body, media) = (answer.json(), answer.header("content-type").unwrap_or_default());
    match expected {
        Exactly(wanted) => assert!(is_like(wanted, &body), "{request}: {body}\nwanted: {wanted}"),
        Has(wanted) => {
            for (name, value) in wanted.as_object().expect("members") {
                assert!(
                    is_like(value, &body[name]),
                    "{request}: {name}: {body}\nwanted: {value}"
                );
            }
        }
        Says(sentence) => {
            assert_eq!(body["error"], sentence.as_str(), "{request}: {body}");
            assert_eq!(body["status"], status, "{request}: {body}");
            assert_eq!(body["instance"], path.split('?').next().unwrap_or_default());
            assert!(
                media.starts_with("application/problem+json"),
                "{request}: {media}"
            );
        }
    }
    answer
}

/// `found` is `wanted`, with any value of its form where `wanted` has a mark.
fn is_like(wanted: &Value, found: &Value) -> bool {
    match (wanted, found) {
        (Value::String(mark), Value::String(text)) => match mark.as_str() {
            "*entry*" => text.parse::<EntryId>().is_ok(),
            "*run*" => text.parse::<RunId>().is_ok(),
            "*time*" => parse_instant(text).is_some(),
            _ => mark == text,
        },
        (Value::Array(wanted), Value::Array(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .zip(found)
                    .all(|(wanted, found)| is_like(wanted, found))
        }
        (Value::Object(wanted), Value::Object(found)) => {
            wanted.len() == found.len()
                && wanted
                    .iter()
                    .all(|(name, wanted)| found.get(name).is_some_and(|found| is_like(wanted, found)))
        }
        (_, _) => wanted == found,
    }
}

#[test]
fn http_matrix() {
    let place = Place::new(CONFIG);
    let daemon = Builder::at(&place).start();
    starts(&daemon);
    idempotent_starts(&daemon);
    pools_and_entries(&daemon);
    cancels(&daemon);
    pauses(&daemon);
    fires_and_why(&daemon);
    draining(&place, &daemon);
}

fn starts(daemon: &Daemon) {
    row(
        daemon,
        "POST /jobs/nobody/start",
        404,
        &says("job 'nobody' not found"),
    );
    row(
        daemon,
        "POST /jobs/off/start",
        409,
        &says("job 'off' is disabled"),
    );
    let queued = Exactly(json!({"queued": "pooled", "queueId": "*entry*", "pool": "p", "runId": "*run*"}));
    let first = row(daemon, "POST /jobs/pooled/start", 202, &queued);
    let location = format!("/pools/p/queue/{}", first.json()["queueId"].as_str().unwrap());
    assert_eq!(first.header("location"), Some(location.as_str()));
    daemon.wait("it runs", || {
        (entries(daemon, "p", "running").len() == 1).then_some(())
    });
    row_of(daemon, "POST /jobs/pooled/start", &json!({}), 202, &queued);
    row(
        daemon,
        "POST /jobs/pooled/start",
        409,
        &says("pool queue is full"),
    );
    let started = |job: &str| Exactly(json!({"started": job, "runId": "*run*"}));
    row(daemon, "POST /jobs/plain/start", 200, &started("plain"));
    row_of(
        daemon,
        "POST /jobs/plain/start",
        &json!({"retries": true}),
        200,
        &started("plain"),
    );
    row(daemon, "POST /jobs/solo/start", 200, &started("solo"));
    let still = "job 'solo' is still running and its concurrencyPolicy is Forbid";
    row(daemon, "POST /jobs/solo/start", 409, &says(still));
    let field = |body: Value, sentence: &str| {
        row_of(daemon, "POST /jobs/plain/start", &body, 422, &says(sentence));
    };
    field(json!({"retries": 1}), "retries: must be true or false");
    field(json!({"nonsense": 1}), "nonsense: unknown field");
    field(
        json!({"retrys": true}),
        "retrys: unknown field; did you mean `retries`?",
    );
    field(json!([]), "the body must be an object");
}

fn idempotent_starts(daemon: &Daemon) {
    let ask = |request: &str, key: &str, body: &Value, status: u16, expected: &Expected| {
        sent(
            daemon,
            request,
            &[("Idempotency-Key", key)],
            Some(body),
            status,
            expected,
        )
    };
    let start = "POST /jobs/plain/start";
    let started = Exactly(json!({"started": "plain", "runId": "*run*"}));
    let first = ask(start, "m-1", &json!({}), 200, &started);
    let again = ask(start, "m-1", &json!({}), 200, &started);
    assert_eq!(first.header("idempotency-replayed"), None);
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.json(), again.json(), "one run");
    let reused = says("Idempotency-Key was used for another request");
    ask(start, "m-1", &json!({"retries": true}), 422, &reused);
    ask("POST /jobs/plain/pause", "m-1", &json!({}), 422, &reused);
    // A refusal is judged anew: the key is still free.
    ask(
        "POST /jobs/off/start",
        "m-2",
        &json!({}),
        409,
        &says("job 'off' is disabled"),
    );
    ask(start, "m-2", &json!({}), 200, &started);
    let long = "k".repeat(129);
    let sentence = "Idempotency-Key must have 1 to 128 printable ASCII characters";
    ask(start, &long, &json!({}), 400, &says(sentence));
}

fn pools(daemon: &Daemon) {
    let pool = |name: &str, slots: u32, max_queued: u32, used: u32, queued: u32| {
        json!({
            "name": name, "slots": slots, "configuredSlots": slots, "maxQueued": max_queued, "used": used,
            "queued": queued, "truncated": queued > 0, "paused": null, "draining": false, "differsFrom": null,
            "blockedBy": if queued > 0 { json!({"kind": "slots", "since": "*time*"}) } else { Value::Null },
        })
    };
    let both = json!([pool("p", 1, 1, 1, 1), pool("wide", 2, 1_000, 0, 0)]);
    row(daemon, "GET /pools?entries=none", 200, &Exactly(both));
    let list = daemon.get("/pools").expect_status(200).json();
    let states: Vec<_> = list[0]["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["state"].clone())
        .collect();
    assert_eq!(states, [json!("running"), json!("queued")]);
    row(
        daemon,
        "GET /pools/p?entries=none",
        200,
        &Exactly(pool("p", 1, 1, 1, 1)),
    );
    row(
        daemon,
        "GET /pools/nowhere",
        404,
        &says("pool 'nowhere' not found"),
    );
}

fn pools_and_entries(daemon: &Daemon) {
    let (running, waiting) = (
        &entries(daemon, "p", "running")[0],
        &entries(daemon, "p", "queued")[0],
    );
    let id = |entry: &Value| entry["id"].as_str().unwrap().to_owned();
    let node = running["node"].clone();
    let (running, waiting) = (id(running), id(waiting));
    let entry = |state: &str| {
        json!({
            "id": "*entry*", "job": "pooled", "runId": "*run*", "attempt": 1, "kind": "manual", "state": state,
            "slots": 1, "priority": 0, "queuedAt": "*time*", "expiresAt": "*time*", "finishedAt": null,
            "reason": null, "node": node, "readmitted": 0, "claim": null,
        })
    };
    let mut shown = entry("queued");
    shown["position"] = json!(1);
    shown["waitingReason"] = json!("Needs 1 slot(s); 0 available");
    row(
        daemon,
        &format!("GET /pools/p/queue/{waiting}"),
        200,
        &Exactly(shown),
    );
    pools(daemon);
    row(
        daemon,
        "GET /pools/p/queue/zzz",
        404,
        &says("queue entry not found"),
    );
    let elsewhere = format!("GET /pools/nowhere/queue/{waiting}");
    row(daemon, &elsewhere, 404, &says("pool 'nowhere' not found"));
    let cancel = |pool: &str, id: &str| format!("POST /pools/{pool}/queue/{id}/cancel");
    let cancelled = Exactly(json!({"id": waiting, "state": "cancelled"}));
    for _ in 0..2 {
        row(daemon, &cancel("p", &waiting), 200, &cancelled);
    }
    let only = says("only waiting entries can be cancelled");
    row(daemon, &cancel("p", &running), 409, &only);
    let unknown = says("queue entry not found");
    row(daemon, &cancel("p", &"0".repeat(32)), 409, &unknown);
    row(daemon, &cancel("nowhere", &waiting), 409, &unknown);
    row(daemon, &cancel("wide", &waiting), 409, &unknown);
    let mut shown = entry("cancelled");
    shown["finishedAt"] = json!("*time*");
    shown["reason"] = json!("cancelled by operator");
    row(
        daemon,
        &format!("GET /pools/p/queue/{waiting}"),
        200,
        &Exactly(shown),
    );
}

fn cancels(daemon: &Daemon) {
    // One that runs and one that waits: both are instances.
    daemon.post("/jobs/pooled/start", &json!({})).expect_status(202);
    for (job, count) in [("pooled", 2), ("solo", 1)] {
        let stopped = Exactly(json!({"cancelled": job, "instances": count}));
        row(daemon, &format!("POST /jobs/{job}/cancel"), 200, &stopped);
        daemon.wait("it ended", || {
            (daemon.get(&format!("/jobs/{job}")).json()["running"] == 0).then_some(())
        });
        let nothing = format!("job '{job}' is not running");
        row(daemon, &format!("POST /jobs/{job}/cancel"), 409, &Says(nothing));
    }
    row(
        daemon,
        "POST /jobs/nobody/cancel",
        404,
        &says("job 'nobody' not found"),
    );
    let finished = entries(daemon, "p", "finished");
    let id = finished[0]["id"].as_str().unwrap();
    let only = says("only waiting entries can be cancelled");
    row(daemon, &format!("POST /pools/p/queue/{id}/cancel"), 409, &only);
    for _ in 0..2 {
        let none = Exactly(json!({"job": "plain", "runs": 0}));
        row(daemon, "POST /jobs/plain/retries/cancel", 200, &none);
    }
    row(
        daemon,
        "POST /jobs/nobody/retries/cancel",
        404,
        &says("job 'nobody' not found"),
    );
}

fn pauses(daemon: &Daemon) {
    let paused = |note: &str| Has(json!({"paused": {"until": "*time*", "note": note, "by": "local"}}));
    let held = row(daemon, "POST /jobs/plain/pause", 200, &paused("")).json();
    let until = parse_instant(held["paused"]["until"].as_str().unwrap()).unwrap();
    let now = ductor::words::time::Clock::now(&ductor::words::time::SystemClock).wall;
    let left = until.since(now);
    assert!(
        (3_500_000..=3_600_000).contains(&left),
        "3600 s by default: {left}"
    );
    let plain = json!({
        "name": "plain", "enabled": true, "command": "true", "concurrencyPolicy": "Allow", "schedule": null,
        "paused": null, "running": 0,
    });
    for _ in 0..2 {
        row(daemon, "POST /jobs/plain/resume", 200, &Has(plain.clone()));
    }
    let body = json!({"durationSeconds": 60, "note": "n"});
    row_of(daemon, "POST /pools/p/pause", &body, 200, &paused("n"));
    for _ in 0..2 {
        row(
            daemon,
            "POST /pools/p/resume",
            200,
            &Has(json!({"name": "p", "paused": null})),
        );
    }
    let endless = Has(json!({"paused": {"until": null, "note": "", "by": "local"}}));
    row(daemon, "POST /pools/wide/pause", 200, &endless);
    row(
        daemon,
        "POST /pools/wide/resume",
        200,
        &Has(json!({"paused": null})),
    );
    for verb in ["pause", "resume"] {
        let job = format!("POST /jobs/nobody/{verb}");
        row(daemon, &job, 404, &says("job 'nobody' not found"));
        let pool = format!("POST /pools/nowhere/{verb}");
        row(daemon, &pool, 404, &says("pool 'nowhere' not found"));
        for thing in ["jobs/plain", "pools/p"] {
            let bad = format!("POST /{thing}/{verb}");
            row_of(
                daemon,
                &bad,
                &json!({"nonsense": 1}),
                422,
                &says("nonsense: unknown field"),
            );
        }
    }
    for thing in ["jobs/plain", "pools/p"] {
        let range = says("durationSeconds: must be a whole number from 1 to 2592000");
        let bad = format!("POST /{thing}/pause");
        row_of(daemon, &bad, &json!({"durationSeconds": 0}), 422, &range);
        let past = says("until: must be an RFC 3339 instant in the future");
        row_of(
            daemon,
            &bad,
            &json!({"until": "2020-01-01T00:00:00Z"}),
            422,
            &past,
        );
    }
}

fn fires_and_why(daemon: &Daemon) {
    row(daemon, "GET /jobs/nightly/fires", 200, &Exactly(json!([])));
    row(
        daemon,
        "GET /jobs/nightly/fires?limit=1&outcome=run&outcome=skipped",
        200,
        &Exactly(json!([])),
    );
    row(
        daemon,
        "GET /jobs/nobody/fires",
        404,
        &says("job 'nobody' not found"),
    );
    for limit in ["0", "501"] {
        let request = format!("GET /jobs/nightly/fires?limit={limit}");
        row(
            daemon,
            &request,
            400,
            &says("`limit` must be a number from 1 to 500"),
        );
    }
    let words = "`outcome` must be one of run, caught_up, owed, skipped";
    row(daemon, "GET /jobs/nightly/fires?outcome=lost", 400, &says(words));
    let why = "GET /jobs/nightly/why?at=2020-01-02T02:30:00Z";
    let before = Has(json!({
        "job": "nightly", "asked": "2020-01-02T02:30:00Z", "instant": "2020-01-02T02:30:00.000Z",
        "timezone": "Europe/London", "code": "before_known", "run": null,
    }));
    row(daemon, why, 200, &before);
    row(
        daemon,
        "GET /jobs/nobody/why?at=2020-01-02T02:30:00Z",
        404,
        &says("job 'nobody' not found"),
    );
    for bad in ["", "?at=soon"] {
        let answer = daemon.get(&format!("/jobs/nightly/why{bad}")).expect_status(400);
        assert!(
            answer.json()["error"].as_str().unwrap().starts_with("`at`"),
            "{answer:?}"
        );
    }
}

/// A slot pool that is to have fewer slots takes nothing until it is empty.
fn draining(place: &Place, daemon: &Daemon) {
    daemon.post("/jobs/broad/start", &json!({})).expect_status(202);
    daemon.wait("it runs", || {
        (entries(daemon, "wide", "running").len() == 1).then_some(())
    });
    place.write_config(&CONFIG.replace("wide: {slots: 2}", "wide: {slots: 1}"));
    daemon.post("/api/config:reload", &json!({})).expect_status(200);
    let sentence = says("pool is draining before a capacity change");
    row(daemon, "POST /jobs/broad/start", 409, &sentence);
    row(
        daemon,
        "GET /pools/wide?entries=none",
        200,
        &Has(json!({"slots": 2, "configuredSlots": 1, "used": 1, "draining": true})),
    );
    daemon.post("/jobs/broad/cancel", &json!({})).expect_status(200);
}

/// The rows of a store that cannot answer, and of one that takes too long.
#[test]
fn http_matrix_without_a_store() {
    let place = Place::new(CONFIG);
    let fail = place.write("fail", "");
    let daemon = Builder::at(&place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    let id = daemon
        .post("/jobs/pooled/start", &json!({}))
        .expect_status(202)
        .json()["queueId"]
        .clone();
    let id = id.as_str().unwrap();
    daemon.wait("it runs", || {
        (entries(&daemon, "p", "running").len() == 1).then_some(())
    });
    let entry = format!("GET /pools/p/queue/{id}");
    let rows: [(&str, &[&str]); 2] = [
        ("store.read=error\n", &["GET /pools", "GET /pools/p", &entry]),
        (
            "store.commit=error\n",
            &["POST /jobs/pooled/start", "POST /pools/p/pause"],
        ),
    ];
    for (fault, requests) in rows {
        std::fs::write(&fail, fault).unwrap();
        for request in requests {
            let answer = row(&daemon, request, 503, &says(UNAVAILABLE));
            assert_eq!(answer.json()["retryable"], true, "{request}");
            assert_eq!(answer.header("retry-after"), Some("1"), "{request}");
            assert!(answer.json().get("outcome").is_none(), "{request}: surely undone");
        }
    }
    std::fs::write(&fail, "store.commit=stall:9000\n").unwrap();
    std::thread::scope(|scope| {
        // A batch takes all that waits: what goes on waiting waits behind a commit that stands.
        let mut slow = Vec::new();
        let mut looks = 0;
        daemon.wait("a commit stands", || {
            if slow.len() < 20 {
                slow.push(scope.spawn(|| daemon.post("/jobs/plain/start", &json!({}))));
            }
            let waiting = daemon.get("/api/status").json()["data"]["store"]["waiting"].as_u64();
            looks = if waiting > Some(0) { looks + 1 } else { 0 };
            (looks > 5).then_some(())
        });
        // What waits longer than its 5 seconds is withdrawn, and surely did not happen.
        let late = row(&daemon, "POST /jobs/pooled/start", 503, &says(UNAVAILABLE));
        assert!(late.json().get("outcome").is_none(), "{late:?}");
        std::fs::write(&fail, "").unwrap();
        for one in slow {
            one.join().unwrap();
        }
    });
    let nobody = entries(&daemon, "p", "queued").is_empty();
    assert!(nobody, "nothing was started late");
    daemon.post("/jobs/pooled/cancel", &json!({}));
}

/// The row of a state directory whose locks do not exclude.
#[test]
fn http_matrix_without_locks() {
    let place = Place::new(CONFIG);
    let fail = place.write("fail", "lock.probe=error\n");
    let daemon = Builder::at(&place)
        .env("DUCTOR_FAIL", format!("@{}", fail.display()))
        .start();
    let sentence = says("pool state requires reliable exclusive locks");
    row(&daemon, "POST /jobs/pooled/start", 409, &sentence);
    let started = Exactly(json!({"started": "plain", "runId": "*run*"}));
    row(&daemon, "POST /jobs/plain/start", 200, &started);
}
