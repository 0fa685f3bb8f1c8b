//! Jobs for the table of a page: filters, newest runs, and what the configuration says of one.

use serde_json::{Value, json};

use super::fixture::Face;
use crate::domain::workflow::attempt::Outcome;
use crate::words::names::JobName;

async fn names(face: &Face, query: &str) -> Vec<String> {
    let answer = face.get(&format!("/api/jobs?{query}")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let data = answer.json()["data"].clone();
    let each = data.as_array().unwrap().iter();
    each.map(|job| job["name"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn jobs_are_found_by_state_and_name() {
    let face = Face::new().await;
    face.post("/jobs/a/start").await;
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Failed).await;
    face.post("/jobs/b/start").await;
    face.pass(1).await;
    face.post("/jobs/timed/pause").await;
    assert_eq!(names(&face, "state=failing").await, ["a"]);
    assert_eq!(names(&face, "state=running").await, ["b"]);
    assert_eq!(names(&face, "state=paused").await, ["timed"]);
    assert_eq!(names(&face, "state=disabled&state=failing").await, ["a", "off"]);
    assert!(names(&face, "state=late").await.is_empty());
    assert_eq!(names(&face, "q=OF").await, ["off"]);
    assert!(names(&face, "q=of&state=running").await.is_empty());
    assert_eq!(names(&face, "pool=p&page_size=1").await, ["a"]);
    assert_eq!(face.get("/api/jobs?state=great").await.status, 400);
    assert_eq!(face.get("/api/jobs?include=all").await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_of_jobs_carries_their_newest_runs() {
    let face = Face::new().await;
    let mut ids = Vec::new();
    for outcome in [
        Outcome::Succeeded,
        Outcome::Failed,
        Outcome::Cancelled,
        Outcome::Succeeded,
    ] {
        ids.push(face.post("/jobs/a/start").await.json()["runId"].clone());
        let claimed = face.pass(1).await.remove(0);
        face.clock.advance(250);
        face.complete(&claimed, outcome).await;
    }
    face.post("/jobs/a/start").await;
    let data = face.get("/api/jobs?include=recent&q=a").await.json()["data"].clone();
    let job = &data[0];
    let recent = job["recent"].as_array().unwrap();
    let seen: Vec<&Value> = recent.iter().map(|run| &run["id"]).collect();
    assert_eq!(seen, ids.iter().rev().collect::<Vec<_>>());
    assert_eq!(
        (&recent[0]["state"], &recent[0]["duration_ms"]),
        (&json!("succeeded"), &json!(250))
    );
    assert!((job["success_rate"].as_f64().unwrap() - 2.0 / 3.0).abs() < 1e-9);
    let plain = face.get("/api/jobs?q=a").await.json()["data"][0].clone();
    assert!(plain.get("recent").is_none() && plain["success_rate"].is_null());
    let timed = face.get("/api/jobs?q=timed&include=recent").await.json()["data"][0].clone();
    assert_eq!(timed["next_fire"], "2025-11-29T19:00:00.000Z");
    assert_eq!(
        (&timed["last_fire"], &timed["recent"], &timed["success_rate"]),
        (&Value::Null, &json!([]), &Value::Null)
    );
    face.post_json("/jobs/timed/pause", r#"{"durationSeconds": 8100}"#)
        .await;
    let timed = face.get("/api/jobs/timed").await.json()["data"].clone();
    assert!(timed["paused"].is_object(), "{timed:#}");
    assert_eq!(timed["next_fire"], "2025-11-29T21:00:00.000Z");
    let next = face.get("/api/overview").await.json()["data"]["next_fires"][0]["at"].clone();
    assert_eq!(next, "2025-11-29T21:00:00.000Z");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_shows_its_policy_without_values() {
    let face = Face::new().await;
    face.edit_book(|book| {
        let job = book.jobs.get_mut(&JobName::new("a").unwrap()).unwrap();
        let mut definition = (*job.definition).clone();
        definition.steps[0].command.environment = vec![("TOKEN".to_owned(), "s3cret".to_owned())];
        definition.policy.retry.retries_max = None;
        job.definition = std::sync::Arc::new(definition);
    });
    let answer = face.get("/api/jobs/a").await;
    assert!(!answer.text.contains("s3cret"));
    let data = answer.json()["data"].clone();
    assert_eq!(data["policy"]["environment"], json!(["TOKEN"]));
    assert_eq!(data["policy"]["retries"]["max"], Value::Null);
    assert_eq!(
        (
            &data["policy"]["fails_when"],
            &data["policy"]["kill_timeout_ms"],
            &data["lints"]
        ),
        (&json!(["nonzeroReturn"]), &json!(30_000), &json!([]))
    );
}
