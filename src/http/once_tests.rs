//! Changes that are sent twice, and changes that rest on an old version.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use axum::{Json, Router};
use serde_json::{Value, json};
use tower::ServiceExt;

use super::error::Problem;
use super::fixture::{ADDRESS, Answer, Face};
use super::front;
use crate::domain::workflow::attempt::Outcome;
use crate::engine::changes::retire::{self, Keep, KeepLogs};
use crate::os::failpoint::Fault;
use crate::store::Rows;
use crate::store::tables::REMEMBERED;
use crate::words::limits;

const REUSED: &str = "Idempotency-Key was used for another request";

async fn keyed(face: &Face, path: &str, key: &str, body: &str) -> Answer {
    let headers = [("idempotency-key", key), ("content-type", "application/json")];
    face.send("POST", path, &headers, body).await
}

fn kept(face: &Face) -> usize {
    let read = face
        .app
        .engine
        .store
        .read(|tx| Ok(tx.scan(&REMEMBERED, &(), None, usize::MAX)?.len()));
    read.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_happens_once() {
    let face = Face::new().await;
    let queue_id = |answer: &Answer| answer.json()["queueId"].as_str().unwrap().to_owned();
    let waiting = queue_id(&face.post("/jobs/a/start").await);
    let run = face.post("/jobs/b/start").await.json()["runId"].clone();
    face.post("/jobs/c/start").await;
    let changes = [
        ("/jobs/free/start".to_owned(), "{}"),
        (
            "/jobs/a/pause".to_owned(),
            "{\"note\": \"why\", \"durationSeconds\": 5}",
        ),
        ("/jobs/a/resume".to_owned(), ""),
        ("/pools/p/pause".to_owned(), "{}"),
        ("/pools/p/resume".to_owned(), ""),
        (format!("/pools/p/queue/{waiting}/cancel"), ""),
        (format!("/api/runs/{}:cancel", run.as_str().unwrap()), ""),
        ("/jobs/c/cancel".to_owned(), ""),
    ];
    for (number, (path, body)) in changes.iter().enumerate() {
        let key = format!("k-{number}");
        let first = keyed(&face, path, &key, body).await;
        assert!(first.status < 300, "{path}: {}", first.text);
        assert_eq!(first.header("idempotency-replayed"), None, "{path}");
        assert_eq!(kept(&face), number + 1, "{path}");
        face.clock.advance(3_000);
        let again = keyed(&face, path, &key, body).await;
        assert_eq!(
            (again.status, again.header("idempotency-replayed")),
            (first.status, Some("true")),
            "{path}"
        );
        assert_eq!(again.text, first.text, "{path}");
        assert_eq!(again.header("location"), first.header("location"));
        assert_eq!(again.header("content-type"), Some("application/json"));
        let other = keyed(&face, path, &key, "{\"other\": 1}").await;
        assert_eq!((other.status, &other.json()["detail"]), (422, &json!(REUSED)));
    }
    let elsewhere = keyed(&face, "/jobs/b/pause", "k-0", "{}").await;
    assert_eq!((elsewhere.status, elsewhere.sentence().as_str()), (422, REUSED));
    // The order of fields, and white space, are no other request.
    let turned = "{ \"durationSeconds\":5,\"note\":\"why\" }";
    let again = keyed(&face, "/jobs/a/pause", "k-1", turned).await;
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    // A pause from before is answered as it was then, and is no second pause.
    assert_eq!(face.get("/jobs/a").await.json()["paused"], Value::Null);
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_are_judged_anew() {
    let face = Face::new().await;
    assert_eq!(keyed(&face, "/jobs/a/cancel", "k", "").await.status, 409);
    assert_eq!(keyed(&face, "/jobs/none/pause", "k", "").await.status, 404);
    assert_eq!(keyed(&face, "/jobs/a/pause", "k", "{\"x\": 1}").await.status, 422);
    assert_eq!(keyed(&face, "/nowhere", "k", "").await.status, 404);
    assert_eq!(kept(&face), 0);
    face.post("/jobs/a/start").await;
    assert_eq!(keyed(&face, "/jobs/a/cancel", "k", "").await.status, 200);
    // A read has no effect to remember.
    let read = face.send("GET", "/pools", &[("idempotency-key", "k")], "").await;
    assert_eq!(read.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_request_does_not_overtake_the_first() {
    let face = Face::new().await;
    let stall = Fault::Stall(Duration::from_millis(300));
    face.app.engine.store.faults().plan("store.commit", stall, 1);
    let (first, second) = tokio::join!(
        keyed(&face, "/jobs/a/start", "k", ""),
        keyed(&face, "/jobs/a/start", "k", "")
    );
    let mut seen = [first.status, second.status];
    seen.sort_unstable();
    assert_eq!(seen, [202, 409]);
    let refused = if first.status == 409 { first } else { second };
    assert_eq!(refused.json()["code"], "ABORTED");
    assert_eq!(refused.header("retry-after"), Some("1"));
    let later = keyed(&face, "/jobs/a/start", "k", "").await;
    assert_eq!(later.header("idempotency-replayed"), Some("true"));
    assert_eq!(face.get("/pools/p").await.json()["queued"], 1);
}

/// A handler that knows nothing of keys, behind the real front.
fn stranger(face: &Face, called: &Arc<AtomicU32>) -> Router {
    let called = Arc::clone(called);
    let handler = move |body: String| {
        let called = Arc::clone(&called);
        async move {
            let number = called.fetch_add(1, Ordering::SeqCst);
            if body.contains("no") {
                return Err(Problem::forbidden_by_state("no"));
            }
            Ok((StatusCode::CREATED, [("location", "/there")], Json(number)))
        }
    };
    let front = from_fn_with_state(face.app.clone(), front::front);
    let routes = Router::new().route("/api/thing/~make", post(handler));
    Router::new().fallback_service(routes).layer(front)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_effect_that_is_no_transaction_is_remembered_after_it() {
    let face = Face::new().await;
    let called = Arc::new(AtomicU32::new(0));
    let router = stranger(&face, &called);
    let send = async |key: &str, body: &'static str| {
        let request = Request::post("/api/thing:make")
            .header("host", ADDRESS)
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Body::from(body))
            .unwrap();
        let response = router.clone().oneshot(request).await.unwrap();
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let bytes = axum::body::to_bytes(response.into_body(), usize::MAX)
            .await
            .unwrap();
        (status, headers, String::from_utf8(bytes.to_vec()).unwrap())
    };
    let (first, again) = (send("k", "{}").await, send("k", "{}").await);
    assert_eq!((first.0, first.2.as_str()), (201, "0"));
    assert_eq!((again.0, again.2.as_str()), (201, "0"));
    assert_eq!(again.1["location"], "/there");
    assert_eq!(again.1["idempotency-replayed"], "true");
    assert_eq!(called.load(Ordering::SeqCst), 1);
    assert_eq!(send("n", "{\"no\": 1}").await.0, 409);
    assert_eq!(send("n", "{\"no\": 1}").await.0, 409);
    assert_eq!(called.load(Ordering::SeqCst), 3, "a refusal is judged anew");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_forgotten_after_a_day() {
    let face = Face::new().await;
    keyed(&face, "/pools/p/pause", "k", "").await;
    let keep = Keep {
        runs: 10,
        age_ms: limits::IDEMPOTENCY_AGE_MS,
        logs: KeepLogs::NO_LIMIT,
        audit: retire::KeepAudit::NO_LIMIT,
    };
    let sweep = async || face.change(move |tx| retire::sweep(tx, keep, &[])).await;
    face.clock.advance(limits::IDEMPOTENCY_AGE_MS - 1_000);
    sweep().await;
    assert_eq!(kept(&face), 1);
    face.clock.advance(2_000);
    sweep().await;
    let anew = keyed(&face, "/pools/q/pause", "k", "").await;
    assert_eq!((anew.status, anew.header("idempotency-replayed")), (200, None));
}

fn tag(answer: &Answer) -> String {
    answer.header("etag").unwrap().to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_caller_has_is_not_sent_again() {
    let face = Face::new().await;
    let known = async |path: &str, tag: &str| {
        let answer = face.send("GET", path, &[("if-none-match", tag)], "").await;
        assert_eq!(answer.text.is_empty(), answer.status == 304);
        assert!(answer.header("etag").is_some());
        answer.status
    };
    for path in ["/jobs/a", "/pools/p"] {
        let before = tag(&face.get(path).await);
        assert_eq!(known(path, &before).await, 304, "{path}");
        face.post("/jobs/a/start").await;
        assert_eq!(known(path, &before).await, 200, "{path} shows a queued run");
    }
    let claimed = face.pass(1).await.remove(0);
    let path = format!("/api/runs/{}", claimed.run.id);
    let live = face.get(&path).await;
    let version = live.json()["data"]["record_version"].clone();
    assert_eq!(tag(&live), format!("\"{version}\""));
    assert_eq!(
        known(&path, &tag(&live)).await,
        200,
        "a lease moves without a version"
    );
    face.complete(&claimed, Outcome::Succeeded).await;
    assert_eq!(known(&path, &tag(&live)).await, 200);
    assert_eq!(known(&path, &tag(&face.get(&path).await)).await, 304);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_may_be_bound_to_a_version() {
    let face = Face::new().await;
    let at = async |path: &str, tag: &str, body: &str| {
        let headers = [("if-match", tag), ("content-type", "application/json")];
        face.send("POST", path, &headers, body).await
    };
    for thing in ["/jobs/a", "/pools/p"] {
        let pause = format!("{thing}/pause");
        let before = tag(&face.get(thing).await);
        assert_eq!(at(&pause, &before, "{}").await.status, 200, "{thing}");
        let moved = at(&pause, &before, "{}").await;
        assert_eq!(
            (moved.status, &moved.json()["code"]),
            (412, &json!("FAILED_PRECONDITION"))
        );
        let after = tag(&face.get(thing).await);
        let current = moved.json()["current_version"].as_str().unwrap().to_owned();
        assert!(after.starts_with(&format!("\"{current}-")), "{after} {current}");
        assert_eq!(at(&format!("{thing}/resume"), "*", "").await.status, 200);
        // Work that comes and goes is no change of the thing itself.
        let before = tag(&face.get(thing).await);
        face.post("/jobs/a/start").await;
        assert_eq!(at(&pause, &before, "{}").await.status, 200, "{thing}");
        assert_eq!(at(&format!("{thing}/resume"), "*", "").await.status, 200);
    }
    let run = face.post("/jobs/free/start").await.json()["runId"].clone();
    let path = format!("/api/runs/{}:cancel", run.as_str().unwrap());
    let moved = at(&path, "\"7\"", "").await;
    assert_eq!((moved.status, &moved.json()["current_version"]), (412, &json!(1)));
    let moved = face.post_json(&path, "{\"expected_version\": 3}").await;
    assert_eq!((moved.status, &moved.json()["current_version"]), (412, &json!(1)));
    assert_eq!(at(&path, "\"1\"", "{\"expected_version\": 2}").await.status, 400);
    assert_eq!(
        face.post_json(&path, "{\"expected_version\": -1}").await.status,
        422
    );
    assert_eq!(at(&path, "\"1\"", "{\"expected_version\": 0}").await.status, 200);
}
