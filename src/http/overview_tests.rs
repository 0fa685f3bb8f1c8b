//! The home page: what it says of failures, waits, retries, the last day, and that it says so again after each change.

use serde_json::{Value, json};

use super::fixture::{BEGIN, Face};
use crate::domain::workflow::attempt::Outcome;

async fn overview(face: &Face) -> Value {
    let answer = face.get("/api/overview").await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_new_place_shows_first_steps() {
    let face = Face::new().await;
    let data = overview(&face).await;
    assert_eq!(data["first_steps"], true);
    assert_eq!(
        (&data["failing"], &data["running"], &data["waiting"]),
        (
            &json!({"total": 0, "causes": 0, "groups": []}),
            &json!({"total": 0, "runs": []}),
            &json!({"total": 0, "groups": []})
        )
    );
    assert_eq!(
        data["next_fires"],
        json!([{"job": "timed", "at": "2025-11-29T19:00:00.000Z", "description": "every hour", "timezone": "UTC"}])
    );
    let hours = data["hours"].as_array().unwrap();
    assert_eq!((hours.len(), &data["hours_counted_from"]), (24, &Value::Null));
    assert_eq!(hours[23]["from"], "2025-11-29T18:00:00.000Z");
    face.post("/jobs/a/start").await;
    assert_eq!(overview(&face).await["first_steps"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_failed_is_grouped_and_gone_after_a_success() {
    let face = Face::new().await;
    for job in ["a", "free"] {
        face.post(&format!("/jobs/{job}/start")).await;
    }
    let mut both = face.pass(2).await;
    both.sort_by_key(|claimed| claimed.run.definition.clone());
    for claimed in both {
        face.clock.advance(1_000);
        face.complete(&claimed, Outcome::Failed).await;
    }
    let data = overview(&face).await;
    let group = &data["failing"]["groups"][0];
    assert_eq!(
        (&data["failing"]["total"], &data["failing"]["causes"]),
        (&json!(2), &json!(1))
    );
    assert_eq!(
        (
            &group["cause"],
            &group["count"],
            &group["retrying"],
            &group["retry_at"]
        ),
        (&json!("failed"), &json!(2), &json!(false), &Value::Null)
    );
    assert_eq!(group["since"], BEGIN.plus(1_000).to_string());
    assert_eq!(group["last_at"], BEGIN.plus(2_000).to_string());
    assert_eq!(data["hours"][23]["failed"], 2);
    face.post("/jobs/a/start").await;
    let claimed = face.pass(1).await.remove(0);
    face.clock.advance(1_000);
    face.complete(&claimed, Outcome::TimedOut).await;
    let data = overview(&face).await;
    assert_eq!(data["failing"]["causes"], 2, "{data:#}");
    assert_eq!(
        data["failing"]["groups"][0]["since"],
        BEGIN.plus(1_000).to_string()
    );
    assert_eq!(
        (&data["hours"][23]["failed"], &data["hours"][23]["timed_out"]),
        (&json!(2), &json!(1))
    );
    face.post("/jobs/a/start").await;
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Succeeded).await;
    let data = overview(&face).await;
    assert_eq!(data["failing"]["total"], 1, "{data:#}");
    assert_eq!(data["hours"][23]["succeeded"], 1);
    face.clock.advance(24 * 3_600_000);
    let data = overview(&face).await;
    assert!(
        data["hours"]
            .as_array()
            .unwrap()
            .iter()
            .all(|hour| hour["failed"] == 0)
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn what_runs_and_what_waits() {
    let face = Face::new().await;
    for _ in 0..3 {
        face.post("/jobs/a/start").await;
        face.clock.advance(500);
    }
    let held = face.pass(1).await.remove(0);
    let waiting = face.post("/jobs/free/start").await.json()["runId"].clone();
    let data = overview(&face).await;
    assert_eq!(data["running"]["total"], 1);
    let running = &data["running"]["runs"][0];
    assert_eq!(
        (
            &running["job"],
            &running["pool"],
            &running["attempt"],
            &running["typical_ms"]
        ),
        (&json!("a"), &json!("p"), &json!(1), &Value::Null)
    );
    assert_eq!(running["started_at"], BEGIN.plus(1_500).to_string());
    assert_eq!(data["waiting"]["total"], 3);
    let queue = &data["waiting"]["groups"][0];
    assert_eq!(
        (&queue["code"], &queue["text"], &queue["pool"], &queue["count"]),
        (
            &json!("slots"),
            &json!("Needs 1 slot(s); 0 available"),
            &json!("p"),
            &json!(2)
        )
    );
    assert_eq!(queue["oldest_since"], BEGIN.plus(500).to_string());
    assert_eq!(queue["head"]["position"], 1);
    let ready = &data["waiting"]["groups"][1];
    assert_eq!(
        (&ready["code"], &ready["head"]["run_id"]),
        (&json!("ready"), &waiting)
    );
    face.post("/pools/p/pause").await;
    face.complete(&held, Outcome::Succeeded).await;
    let data = overview(&face).await;
    assert_eq!(data["waiting"]["groups"][0]["code"], "paused");
    assert_eq!(data["running"], json!({"total": 0, "runs": []}));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_timeline_of_a_run() {
    let face = Face::new().await;
    face.post("/jobs/a/start").await;
    // Of two that come at the same moment chance says which one is first.
    face.clock.advance(1);
    let id = face.post("/jobs/a/start").await.json()["runId"]
        .as_str()
        .unwrap()
        .to_owned();
    let path = format!("/api/runs/{id}/timeline");
    let first = face.pass(1).await.remove(0);
    face.clock.advance(2_000);
    let data = face.get(&path).await.json()["data"].clone();
    assert_eq!(
        data["segments"],
        json!([{
            "kind": "queued", "attempt": 1, "from": BEGIN.plus(1).to_string(), "to": null, "outcome": null, "node": null,
            "text": "Needs 1 slot(s); 0 available"
        }])
    );
    assert_eq!(
        data["marks"][0],
        json!({"at": BEGIN.plus(1).to_string(), "kind": "created", "text": "started by local"})
    );
    assert_eq!(data["marks"][1]["kind"], "deadline");
    face.complete(&first, Outcome::Succeeded).await;
    let second = face.pass(1).await.remove(0);
    face.clock.advance(3_000);
    face.complete(&second, Outcome::Failed).await;
    let data = face.get(&path).await.json()["data"].clone();
    let told: Vec<_> = data["segments"]
        .as_array()
        .unwrap()
        .iter()
        .map(|segment| segment["text"].clone())
        .collect();
    assert_eq!(told, ["waited in slot pool p", "attempt 1 failed"]);
    assert_eq!(data["segments"][1]["to"], BEGIN.plus(5_001).to_string());
    assert_eq!(data["to"], data["segments"][1]["to"]);
    assert_eq!(
        face.get("/api/runs/run_01m8mkpq69exbrk7xf3n14zqhg/timeline")
            .await
            .status,
        404
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn the_calendar_counts_by_hours() {
    let face = Face::new().await;
    let data = face.get("/api/calendar?days=1").await.json()["data"].clone();
    let hours = data["hours"].as_array().unwrap();
    assert_eq!(
        (hours.len(), &data["from"]),
        (24, &json!("2025-11-29T00:00:00.000Z"))
    );
    assert_eq!(
        hours[18],
        json!({
            "day": "2025-11-29", "hour": 18, "from": "2025-11-29T18:00:00.000Z", "total": 1, "jobs": 1,
            "fires": [{"job": "timed", "at": "2025-11-29T18:00:00.000Z", "count": 1}]
        })
    );
    let kolkata = face
        .get("/api/calendar?days=2&timezone=Asia/Kolkata&from=2025-11-30T00:10:00Z")
        .await;
    let data = kolkata.json()["data"].clone();
    assert_eq!(
        (&data["hours"][0]["hour"], &data["hours"][0]["from"]),
        (&json!(5), &json!("2025-11-30T00:00:00.000Z"))
    );
    assert_eq!(data["to"], "2025-12-01T18:30:00.000Z");
    face.post_json("/jobs/timed/pause", r#"{"durationSeconds": 8100}"#)
        .await;
    let data = face
        .get("/api/calendar?days=1&from=2025-11-29T18:00:00Z")
        .await
        .json()["data"]
        .clone();
    assert_eq!(
        data["hours"][0]["hour"], 21,
        "what is due in a pause does not fire"
    );
    for query in ["days=0", "days=32", "timezone=Mars/Base", "from=soon"] {
        assert_eq!(
            face.get(&format!("/api/calendar?{query}")).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_tells_room_and_what_is_kept() {
    let face = Face::new().await;
    let data = face.get("/api/status").await.json()["data"].clone();
    assert_eq!(data["disk"]["total_bytes"], Value::Null, "not looked at yet");
    super::health::check(&face.app).await;
    let data = face.get("/api/status").await.json()["data"].clone();
    let disk = &data["disk"];
    assert!(disk["free_bytes"].as_u64().unwrap() <= disk["total_bytes"].as_u64().unwrap());
    assert_eq!(disk["logs_bytes"], Value::Null);
    assert_eq!(
        data["retention"],
        json!({"runs": 500, "age_ms": 1_209_600_000_u64, "logs_age_ms": 1_209_600_000_u64, "logs_bytes_max": null})
    );
}
