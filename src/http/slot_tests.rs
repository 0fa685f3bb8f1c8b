//! The table of section 14, row by row: starts, cancels, pauses, and what `/pools` and `/jobs` show.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::fixture::{Answer, Face, pool};
use crate::domain::workflow::attempt::Outcome;
use crate::os::failpoint::Fault;
use crate::store::tables::{SLOT_POOLS, SLOT_WAITING_COUNT};
use crate::words::ids::TenantId;
use crate::words::names::JobName;

const TENANT: TenantId = TenantId::DEFAULT;

fn check(answer: &Answer, status: u16, sentence: &str) {
    assert_eq!(
        (answer.status, answer.sentence().as_str()),
        (status, sentence),
        "{}",
        answer.text
    );
    assert_eq!(answer.header("content-type"), Some("application/problem+json"));
    assert_eq!(answer.json()["status"], status);
}

/// Starts a pooled job a moment after the last one, so that the order of the queue is the order of the calls.
async fn queue_id(face: &Face, job: &str) -> String {
    face.clock.advance(1);
    let answer = face.post(&format!("/jobs/{job}/start")).await;
    assert_eq!(answer.status, 202, "{}", answer.text);
    answer.json()["queueId"].as_str().unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_answer_as_the_table_says() {
    let face = Face::new().await;
    check(&face.post("/jobs/none/start").await, 404, "job 'none' not found");
    check(&face.post("/jobs/a%2Fb/start").await, 404, "job 'a/b' not found");
    check(&face.post("/jobs/off/start").await, 409, "job 'off' is disabled");
    check(
        &face.post("/jobs/lost/start").await,
        409,
        "unknown pool 'nowhere'",
    );
    let queued = face.post("/jobs/a/start").await;
    assert_eq!(queued.status, 202);
    let body = queued.json();
    let id = body["queueId"].as_str().unwrap();
    assert_eq!((&body["queued"], &body["pool"]), (&json!("a"), &json!("p")));
    assert!(body["runId"].as_str().unwrap().starts_with("run_"));
    assert_eq!(
        queued.header("location"),
        Some(format!("/pools/p/queue/{id}").as_str())
    );
    for _ in 0..2 {
        assert_eq!(
            face.post_json("/jobs/b/start", "{\"retries\": false}")
                .await
                .status,
            202
        );
    }
    check(&face.post("/jobs/a/start").await, 409, "pool queue is full");
    assert_eq!(
        face.post("/jobs/a/start").await.json()["code"],
        "RESOURCE_EXHAUSTED"
    );
    face.configure_slots("p", 2).await;
    check(
        &face.post("/jobs/a/start").await,
        409,
        "pool is draining before a capacity change",
    );
    face.edit_book(|book| book.locks_trusted = false);
    check(
        &face.post("/jobs/a/start").await,
        409,
        "pool state requires reliable exclusive locks",
    );
    let started = face.post("/jobs/free/start").await;
    assert_eq!(started.status, 200, "{}", started.text);
    assert_eq!(started.json()["started"], "free");
    let sentence = "job 'free' is still running and its concurrencyPolicy is Forbid";
    check(&face.post("/jobs/free/start").await, 409, sentence);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_body_has_only_the_fields_it_may_have() {
    let face = Face::new().await;
    let post = async |body: &str| face.post_json("/jobs/a/start", body).await;
    assert_eq!(post("{\"retries\": true}").await.status, 202);
    check(
        &post("{\"retries\": 3}").await,
        422,
        "retries: must be true or false",
    );
    check(&post("{\"retry\": true}").await, 422, "retry: unknown field");
    check(
        &post("{\"retires\": 1}").await,
        422,
        "retires: unknown field; did you mean `retries`?",
    );
    assert_eq!(
        post("{\"x\": 1, \"retries\": 7}").await.json()["errors"]
            .as_array()
            .unwrap()
            .len(),
        2
    );
    assert_eq!(post("[]").await.status, 422);
    assert_eq!(post("{").await.status, 400);
    let form = [("content-type", "application/x-www-form-urlencoded")];
    assert_eq!(face.send("POST", "/jobs/a/start", &form, "{}").await.status, 415);
    assert_eq!(face.send("POST", "/jobs/a/start", &[], "{}").await.status, 415);
    assert_eq!(face.get("/pools/p").await.json()["queued"], 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_starts_once() {
    let face = Face::new().await;
    let with_key = async |path: &str, key: &str, body: &str| {
        face.send(
            "POST",
            path,
            &[("idempotency-key", key), ("content-type", "application/json")],
            body,
        )
        .await
    };
    let first = with_key("/jobs/a/start", "k1", "").await;
    let again = with_key("/jobs/a/start", "k1", "{}").await;
    assert_eq!((first.status, again.status), (202, 202));
    assert_eq!(
        (
            first.header("idempotency-replayed"),
            again.header("idempotency-replayed")
        ),
        (None, Some("true"))
    );
    assert_eq!(
        (&first.text, first.header("location")),
        (&again.text, again.header("location"))
    );
    assert_eq!(face.get("/pools/p").await.json()["queued"], 1);
    let reused = "Idempotency-Key was used for another request";
    check(
        &with_key("/jobs/a/start", "k1", "{\"retries\": false}").await,
        422,
        reused,
    );
    check(&with_key("/jobs/b/start", "k1", "").await, 422, reused);
    let free = with_key("/jobs/free/start", "k2", "").await;
    let claimed = face.pass(2).await;
    assert_eq!(claimed.len(), 2);
    assert_eq!(with_key("/jobs/free/start", "k2", "").await.text, free.text);
    // A refusal is judged anew.
    check(
        &with_key("/jobs/free/start", "k3", "").await,
        409,
        "job 'free' is still running and its concurrencyPolicy is Forbid",
    );
    for one in &claimed {
        face.complete(one, Outcome::Succeeded).await;
    }
    assert_eq!(with_key("/jobs/free/start", "k3", "").await.status, 200);
    // Disabled since: the first answer is still the answer, a new start is none.
    face.edit_book(|book| {
        let job = book.jobs.get_mut(&JobName::new("a").unwrap()).unwrap();
        Arc::make_mut(&mut job.definition).enabled = false;
    });
    assert_eq!(with_key("/jobs/a/start", "k1", "").await.text, first.text);
    check(
        &with_key("/jobs/a/start", "k9", "").await,
        409,
        "job 'a' is disabled",
    );
    assert_eq!(with_key("/jobs/a/start", &"k".repeat(129), "").await.status, 400);
    assert_eq!(with_key("/jobs/a/start", "", "").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn entries_are_cancelled_while_they_wait() {
    let face = Face::new().await;
    let (first, second) = (queue_id(&face, "a").await, queue_id(&face, "b").await);
    let claimed = face.pass(1).await;
    let cancel = async |pool: &str, id: &str| face.post(&format!("/pools/{pool}/queue/{id}/cancel")).await;
    for _ in 0..2 {
        let cancelled = cancel("p", &second).await;
        assert_eq!(
            (cancelled.status, cancelled.json()),
            (200, json!({"id": second, "state": "cancelled"}))
        );
    }
    check(
        &cancel("p", &first).await,
        409,
        "only waiting entries can be cancelled",
    );
    face.complete(&claimed[0], Outcome::Succeeded).await;
    check(
        &cancel("p", &first).await,
        409,
        "only waiting entries can be cancelled",
    );
    let unknown = "0".repeat(32);
    for (pool, id) in [
        ("p", unknown.as_str()),
        ("p", "xyz"),
        ("q", &first),
        ("none", &first),
    ] {
        check(&cancel(pool, id).await, 409, "queue entry not found");
    }
    let shown = face.get(&format!("/pools/p/queue/{second}")).await.json();
    assert_eq!(
        (&shown["state"], &shown["reason"]),
        (&json!("cancelled"), &json!("cancelled by operator"))
    );
    let run = shown["runId"].as_str().unwrap();
    assert_eq!(
        face.get(&format!("/api/runs/{run}")).await.json()["data"]["state"],
        "skipped"
    );
    check(
        &face.get("/pools/p/queue/xyz").await,
        404,
        "queue entry not found",
    );
    check(
        &face.get(&format!("/pools/none/queue/{first}")).await,
        404,
        "pool 'none' not found",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_stopped_with_all_their_instances() {
    let face = Face::new().await;
    check(&face.post("/jobs/a/cancel").await, 409, "job 'a' is not running");
    check(&face.post("/jobs/none/cancel").await, 404, "job 'none' not found");
    check(
        &face.post("/jobs/none/retries/cancel").await,
        404,
        "job 'none' not found",
    );
    assert_eq!(
        face.post("/jobs/a/retries/cancel").await.json(),
        json!({"job": "a", "runs": 0})
    );
    for _ in 0..3 {
        queue_id(&face, "a").await;
    }
    face.pass(1).await;
    assert_eq!(face.get("/jobs/a").await.json()["running"], 1);
    assert_eq!(
        face.post("/jobs/a/cancel").await.json(),
        json!({"cancelled": "a", "instances": 3})
    );
    let after = face.get("/pools/p").await.json();
    assert_eq!(
        (&after["queued"], &after["used"]),
        (&json!(0), &json!(1)),
        "its daemon ends the live one"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_show_their_entries_in_order() {
    let face = Face::new().await;
    let first = queue_id(&face, "a").await;
    face.pass(1).await;
    face.clock.advance(1_000);
    let second = queue_id(&face, "b").await;
    let third = queue_id(&face, "a").await;
    let all = face.get("/pools").await;
    assert_eq!(all.status, 200);
    let shown = &all.json()[0];
    let head = json!({
        "name": "p", "slots": 1, "configuredSlots": 1, "maxQueued": 3, "used": 1, "queued": 2, "truncated": false,
        "paused": null, "draining": false,
        "blockedBy": {"kind": "slots", "since": "2025-11-29T18:00:01.003Z"},
    });
    for (name, value) in head.as_object().unwrap() {
        assert_eq!(&shown[name], value, "{name}");
    }
    let entries = shown["entries"].as_array().unwrap();
    let words: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry["id"].as_str().unwrap(),
                entry["state"].as_str().unwrap(),
                entry["position"].as_u64(),
            )
        })
        .collect();
    assert_eq!(
        words,
        [
            (&*first, "running", None),
            (&*second, "queued", Some(1)),
            (&*third, "queued", Some(2))
        ]
    );
    assert_eq!(entries[0]["claim"]["leaseUntil"], "2025-11-29T18:00:30.001Z");
    assert_eq!(entries[1]["waitingReason"], "Needs 1 slot(s); 0 available");
    assert_eq!(
        entries[2]["waitingReason"],
        "Waiting behind higher-priority or earlier work"
    );
    assert_eq!(
        face.get(&format!("/pools/p/queue/{third}")).await.json(),
        entries[2]
    );
    let one = face.get("/pools/p?limit=1").await.json();
    assert_eq!(
        (&one["truncated"], one["entries"].as_array().unwrap().len()),
        (&json!(true), 2)
    );
    assert_eq!(
        face.get("/pools?entries=none").await.json()[0].get("entries"),
        None
    );
    face.clock.advance(5_000);
    assert_eq!(
        face.get("/pools/p").await.json()["blockedBy"]["since"],
        "2025-11-29T18:00:01.003Z"
    );
    check(&face.get("/pools/none").await, 404, "pool 'none' not found");
    for query in ["limit=0", "limit=10001", "limit=x", "entries=some", "lmit=1"] {
        assert_eq!(face.get(&format!("/pools?{query}")).await.status, 400, "{query}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_waiting_entries_are_shown_in_part() {
    let face = Arc::new(Face::new().await);
    let mut starts = JoinSet::new();
    for _ in 0..1_000 {
        let face = Arc::clone(&face);
        starts.spawn(async move { face.post("/jobs/c/start").await.status });
    }
    assert!(starts.join_all().await.iter().all(|status| *status == 202));
    let shown = face.get("/pools/q").await.json();
    assert_eq!(
        (&shown["queued"], &shown["truncated"]),
        (&json!(1000), &json!(true))
    );
    assert_eq!(shown["entries"].as_array().unwrap().len(), 200);
    assert_eq!(shown["entries"][199]["position"], 200);
    let all = face.get("/pools/q?limit=10000").await.json();
    assert_eq!(
        (&all["truncated"], all["entries"].as_array().unwrap().len()),
        (&json!(false), 1000)
    );
    let last = all["entries"][999]["id"].as_str().unwrap();
    assert_eq!(
        face.get(&format!("/pools/q/queue/{last}")).await.json()["position"],
        1000
    );
    check(&face.post("/jobs/c/start").await, 409, "pool queue is full");
    let job = face.get("/jobs/c").await.json();
    assert_eq!(
        job["pool"],
        json!({"name": "q", "slots": 1, "priority": 0, "queued": 1000})
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn pauses_are_set_and_lifted() {
    let face = Face::new().await;
    let paused = face.post_json("/pools/p/pause", "{\"note\": \"why\"}").await;
    assert_eq!(paused.status, 200, "{}", paused.text);
    assert_eq!(
        paused.json()["paused"],
        json!({"until": null, "note": "why", "by": "local"})
    );
    let id = queue_id(&face, "a").await;
    assert_eq!(
        face.get(&format!("/pools/p/queue/{id}")).await.json()["waitingReason"],
        "Pool is paused"
    );
    assert_eq!(
        face.get("/pools/p").await.json()["blockedBy"]["kind"],
        "pool_paused"
    );
    for _ in 0..2 {
        assert_eq!(face.post("/pools/p/resume").await.json()["paused"], Value::Null);
    }
    assert_eq!(
        face.get(&format!("/pools/p/queue/{id}")).await.json()["waitingReason"],
        "Waiting for admission"
    );
    let bounded = face
        .post_json("/pools/p/pause", "{\"durationSeconds\": 60}")
        .await
        .json();
    assert_eq!(bounded["paused"]["until"], "2025-11-29T18:01:00.001Z");
    face.clock.advance(60_000);
    assert_eq!(face.get("/pools/p").await.json()["paused"], Value::Null);
    let job = face.post("/jobs/a/pause").await.json();
    assert_eq!(job["paused"]["until"], "2025-11-29T19:01:00.001Z");
    let until = face
        .post_json("/jobs/a/pause", "{\"until\": \"2025-12-01T00:00:00+01:00\"}")
        .await
        .json();
    assert_eq!(until["paused"]["until"], "2025-11-30T23:00:00.000Z");
    assert_eq!(face.post("/jobs/a/resume").await.json()["paused"], Value::Null);
    check(
        &face.post("/pools/none/pause").await,
        404,
        "pool 'none' not found",
    );
    check(&face.post("/jobs/none/resume").await, 404, "job 'none' not found");
    let long = format!("{{\"note\": \"{}\"}}", "n".repeat(501));
    let bad = [
        "{\"durationSeconds\": 0}",
        "{\"durationSeconds\": 2592001}",
        "{\"durationSeconds\": 1.5}",
        "{\"until\": \"2020-01-01T00:00:00Z\"}",
        "{\"until\": \"tomorrow\"}",
        "{\"until\": \"2027-01-01T00:00:00Z\", \"durationSeconds\": 5}",
        "{\"duration\": 5}",
        &long,
    ];
    for body in bad {
        assert_eq!(face.post_json("/pools/p/pause", body).await.status, 422, "{body}");
        assert_eq!(face.post_json("/jobs/a/pause", body).await.status, 422, "{body}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_pool_hides_no_other() {
    let face = Face::new().await;
    let id = queue_id(&face, "a").await;
    face.damage(&SLOT_POOLS, (TENANT, pool("p"))).await;
    let unavailable = "pool state is unavailable";
    for path in ["/pools", "/pools/p", &format!("/pools/p/queue/{id}")] {
        check(&face.get(path).await, 503, unavailable);
    }
    for path in [
        "/jobs/a/start",
        "/pools/p/pause",
        "/pools/p/resume",
        &format!("/pools/p/queue/{id}/cancel"),
    ] {
        let answer = face.post(path).await;
        check(&answer, 503, unavailable);
        assert_eq!(answer.header("retry-after"), Some("1"));
        assert_eq!(answer.json()["retryable"], true);
    }
    assert_eq!(face.get("/pools/q").await.status, 200);
    assert_eq!(face.post("/jobs/c/start").await.status, 202);
    assert_eq!(face.post("/jobs/free/start").await.status, 200);
    let jobs = face.get("/jobs").await.json();
    let of = |name: &str| {
        jobs.as_array()
            .unwrap()
            .iter()
            .find(|job| job["name"] == name)
            .unwrap()
            .clone()
    };
    assert_eq!(
        (&of("a")["queueUnavailable"], of("a").get("pool")),
        (&json!(true), None)
    );
    assert_eq!(
        (of("c").get("queueUnavailable"), &of("c")["pool"]["queued"]),
        (None, &json!(1))
    );
    let status = face.get("/api/status").await.json();
    assert_eq!(
        status["data"]["pools"][0],
        json!({"name": "p", "readable": false})
    );
    assert_eq!(face.get("/metrics").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_count_is_an_unreadable_pool() {
    let face = Face::new().await;
    queue_id(&face, "a").await;
    face.damage(&SLOT_WAITING_COUNT, (TENANT, pool("p"))).await;
    check(&face.get("/pools").await, 503, "pool state is unavailable");
    check(
        &face.post("/jobs/a/start").await,
        503,
        "pool state is unavailable",
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn store_trouble_is_told_without_its_cause() {
    let face = Face::new().await;
    let faults = face.app.engine.store.faults().clone();
    faults.plan("store.read", Fault::NoSpace, u32::MAX);
    for path in [
        "/pools",
        "/pools/p",
        "/jobs",
        "/jobs/a",
        "/api/runs",
        "/api/status",
        "/api/nodes",
    ] {
        let answer = face.get(path).await;
        assert_eq!(
            (answer.status, answer.header("retry-after")),
            (503, Some("1")),
            "{path}"
        );
        assert_eq!(answer.json()["detail"], "pool state is unavailable");
        assert!(!answer.text.contains("space"), "{}", answer.text);
    }
    for path in ["/livez", "/version", "/metrics", "/api/config"] {
        assert_eq!(face.get(path).await.status, 200, "{path}");
    }
    faults.clear("store.read");
    faults.plan("store.begin", Fault::Denied, u32::MAX);
    check(
        &face.post("/jobs/a/start").await,
        503,
        "pool state is unavailable",
    );
    faults.clear("store.begin");
    assert_eq!(face.post("/jobs/a/start").await.status, 202);
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_say_what_they_are() {
    let face = Face::new().await;
    let timed = face.get("/jobs/timed").await.json();
    let next = ["19", "20", "21", "22", "23"].map(|hour| format!("2025-11-29T{hour}:00:00.000Z"));
    let expected = json!({
        "name": "timed", "enabled": true, "command": "true", "concurrencyPolicy": "Allow", "paused": null, "running": 0,
        "schedule": {"text": "0 * * * *", "timezone": "UTC", "description": "every hour", "next": next},
        "lastRun": null, "late": [],
    });
    assert_eq!(timed, expected);
    assert_eq!(face.get("/jobs").await.json().as_array().unwrap().len(), 7);
    let run = face.post("/jobs/free/start").await.json()["runId"].clone();
    let claimed = face.pass(1).await;
    face.complete(&claimed[0], Outcome::Failed).await;
    let last = face.get("/jobs/free").await.json()["lastRun"].clone();
    let at = "2025-11-29T18:00:00.000Z";
    let expected = json!({"id": run, "state": "failed", "startedAt": at, "endedAt": at, "reason": "failed"});
    assert_eq!(last, expected);
    check(&face.get("/jobs/none").await, 404, "job 'none' not found");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_newest_ended_entries_stand_behind_the_queue() {
    let face = Face::new().await;
    let first = queue_id(&face, "a").await;
    let second = queue_id(&face, "b").await;
    let waits = queue_id(&face, "a").await;
    for _ in 0..2 {
        let claimed = face.pass(1).await.remove(0);
        face.clock.advance(1_000);
        face.complete(&claimed, Outcome::Succeeded).await;
    }
    let shown = face.get("/pools/p").await.json();
    let entries = shown["entries"].as_array().unwrap();
    let ids: Vec<_> = entries
        .iter()
        .map(|entry| entry["id"].as_str().unwrap())
        .collect();
    assert_eq!(ids, [&*waits, &*second, &*first]);
    assert_eq!(
        (&entries[1]["state"], &entries[1]["position"]),
        (&json!("finished"), &Value::Null)
    );
    assert!(entries[1]["finishedAt"].is_string() && entries[1]["claim"]["node"] == "n-a");
}
