//! Declared objects over HTTP: lists by pages, and requests that are sent twice.

use serde_json::{Value, json};

use super::declared_tests::{JSON, created, data, send};
use super::fixture::Face;

#[tokio::test(flavor = "multi_thread")]
async fn test_57_a_request_that_is_sent_twice_happens_once() {
    let face = Face::new().await;
    let keyed = [JSON, ("idempotency-key", "k1")];
    let first = face.send("POST", "/api/pools", &keyed, "{\"name\": \"a\"}").await;
    let second = face.send("POST", "/api/pools", &keyed, "{ \"name\":\"a\"}").await;
    assert_eq!((first.status, second.status), (201, 201));
    assert_eq!(
        (first.json(), second.header("idempotency-replayed")),
        (second.json(), Some("true"))
    );
    let other = face.send("POST", "/api/pools", &keyed, "{\"name\": \"b\"}").await;
    assert_eq!(other.status, 422);
    assert_eq!(data(&face, "/api/pools").await.as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn pools_are_listed_by_pages_and_filters() {
    let face = Face::new().await;
    for number in 0..5 {
        let status = if number % 2 == 0 {
            "STATUS_ACTIVE"
        } else {
            "STATUS_PAUSED"
        };
        created(
            &face,
            "/api/pools",
            json!({"name": number.to_string(), "status": status}),
        )
        .await;
    }
    let names = |page: &Value| -> Vec<String> {
        let data = page["data"].as_array().unwrap().iter();
        data.map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    let first = face.get("/api/pools?pagination.page_size=2").await.json();
    assert_eq!(names(&first), ["4", "3"]);
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
    let next = face
        .get(&format!(
            "/api/pools?pagination.page_size=2&pagination.cursor={cursor}"
        ))
        .await
        .json();
    assert_eq!(names(&next), ["2", "1"]);
    let foreign = face
        .get(&format!(
            "/api/pools?status=STATUS_ACTIVE&pagination.cursor={cursor}"
        ))
        .await;
    assert_eq!(foreign.status, 400);
    let active = face.get("/api/pools?status=STATUS_ACTIVE&order=asc").await.json();
    assert_eq!(names(&active), ["0", "2", "4"]);
    assert_eq!(names(&face.get("/api/pools?name=3").await.json()), ["3"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn stats_count_what_waits_and_what_nobody_ends() {
    let face = Face::new().await;
    let id = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let member = json!({"name": "one", "capacity": {"max_concurrent": 1}});
    created(&face, &format!("/api/pools/{id}/recipients"), member).await;
    let wish = json!({"pool_id": id, "work": {"kind": "t"}});
    for outcome in ["assigned", "queued", "queued"] {
        let decided = send(&face, "POST", "/api/route", &wish).await.json();
        assert_eq!(decided["data"]["outcome"], outcome, "{decided}");
    }
    let stats = async || data(&face, &format!("/api/pools/{id}/stats")).await;
    face.clock.advance(5_000);
    let now = stats().await;
    let numbers = |stats: &Value| {
        [
            "used_capacity",
            "queue_depth",
            "oldest_queued_seconds",
            "stale_assignments",
        ]
        .map(|field| stats[field].as_u64().unwrap())
    };
    assert_eq!(numbers(&now), [1, 2, 5, 0]);
    assert_eq!(now["utilization"], 1.0);
    face.clock.advance(86_400_000);
    assert_eq!(numbers(&stats().await)[3], 1);
}
