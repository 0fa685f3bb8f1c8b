//! The steps of a run by pages, and as bars of its timeline.

use serde_json::{Value, json};

use super::fixture::Face;
use crate::engine::coordinator::Coordinator;

const BRANCHES: usize = 130;

/// A run whose scatter waits in each of its branches.
async fn wide_run(face: &Face) -> String {
    let document = json!({
        "family_slug": "wide", "title": "Wide",
        "steps": [
            {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "title": "Build greeting", "args": {"operation": "project", "project": {"a": "1"}}},
            {"ref": "each", "type": "STEP_TYPE_SCATTER", "args": {"items": "input.items", "body": {"steps": [
                {"ref": "nap", "title": "Nap", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}},
                {"ref": "nap-2", "type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}}]}}},
            {"ref": "bad", "type": "STEP_TYPE_APPROVAL"}],
        "edges": [{"source_ref": "greet", "target_ref": "each"}, {"source_ref": "greet", "target_ref": "bad"}]
    });
    face.post_json("/api/workflows", &document.to_string()).await;
    let published = face.post("/api/workflows/wide:publish").await;
    assert_eq!(published.status, 200, "{}", published.text);
    let items: Vec<usize> = (0..BRANCHES).collect();
    let body = json!({"input": {"items": items}}).to_string();
    let begun = face.post_json("/api/workflows/wide/runs", &body).await;
    begun.json()["data"]["id"].as_str().unwrap().to_owned()
}

async fn refs(face: &Face, path: &str) -> (Vec<String>, Option<String>) {
    let answer = face.get(path).await;
    assert_eq!(answer.status, 200, "{path}: {}", answer.text);
    let answer = answer.json();
    let rows = answer["data"].as_array().unwrap().iter();
    let names = rows.map(|row| row["ref"].as_str().unwrap().to_owned()).collect();
    let next = answer["pagination"]["next_cursor"].as_str().map(str::to_owned);
    (names, next)
}

#[tokio::test(flavor = "multi_thread")]
async fn all_steps_come_by_pages_and_by_their_state() {
    let face = Face::new().await;
    let run = wide_run(&face).await;
    let path = format!("/api/runs/{run}/steps");
    let mut seen = Vec::new();
    let mut asked = format!("{path}?pagination.page_size=100");
    loop {
        let (names, next) = refs(&face, &asked).await;
        assert!(names.len() <= 100);
        seen.extend(names);
        let Some(next) = next else { break };
        asked = format!("{path}?pagination.page_size=100&pagination.cursor={next}");
    }
    let mut sorted = seen.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(
        (seen.len(), seen == sorted),
        (2 * BRANCHES + 3, true),
        "each once, in order"
    );
    let (naps, next) = refs(&face, &format!("{path}?of=nap&pagination.page_size=500")).await;
    assert_eq!((naps.len(), next), (BRANCHES, None));
    assert!(naps.iter().all(|name| name.starts_with("nap#")), "{naps:?}");
    let (back, _) = refs(&face, &format!("{path}?of=nap&order=desc&pagination.page_size=2")).await;
    assert_eq!(back, ["nap#99", "nap#98"]);
    let (done, _) = refs(&face, &format!("{path}?state=succeeded&state=running")).await;
    assert_eq!(done, ["each", "greet"]);
    assert_eq!(face.get(&format!("{path}?state=done")).await.status, 400);
    assert_eq!(
        face.get("/api/runs/run_01kb7v0n3gf5tb2h6m8w9x4yza/steps")
            .await
            .status,
        404
    );
    let whole = face.get(&format!("/api/runs/{run}")).await.json();
    assert_eq!(whole["data"]["more_steps"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_timeline_has_the_steps_outside_of_wide_scatters() {
    let face = Face::new().await;
    let run = wide_run(&face).await;
    face.clock.advance(5_000);
    let path = format!("/api/runs/{run}/timeline");
    let line = face.get(&path).await.json()["data"].clone();
    let told = |line: &Value| -> Vec<Value> {
        let steps = line["steps"].as_array().unwrap().iter();
        let seen = |step: &Value| {
            let last = step["segments"].as_array().unwrap().last().cloned().unwrap();
            json!([step["title"], step["state"], last["kind"], last["to"].is_null()])
        };
        steps.map(seen).collect()
    };
    assert_eq!(
        told(&line),
        [
            json!(["Build greeting", "succeeded", "queued", false]),
            json!(["each", "running", "running", true]),
            json!(["bad", "waiting", "queued", true]),
        ]
    );
    assert_eq!(
        (&line["more_steps"], line["segments"].as_array().unwrap().len()),
        (&json!(0), 1)
    );
    let work = tokio::spawn(Coordinator::new(face.app.engine.clone()).run());
    face.post(&format!("/api/runs/{run}:cancel")).await;
    let mut sequence = face.app.engine.store.watch_sequence();
    let ended = loop {
        sequence.borrow_and_update();
        let line = face.get(&path).await.json()["data"].clone();
        if line["segments"][0]["outcome"] == "cancelled" {
            break line;
        }
        sequence.changed().await.unwrap();
    };
    work.abort();
    assert!(told(&ended).iter().all(|step| step[3] == false), "{ended}");
    let job = face.post_json("/jobs/a/start", "").await.json()["runId"].clone();
    let line = face
        .get(&format!("/api/runs/{}/timeline", job.as_str().unwrap()))
        .await
        .json();
    assert_eq!(
        line["data"]["steps"],
        json!([]),
        "a job has no steps to tell apart"
    );
}
