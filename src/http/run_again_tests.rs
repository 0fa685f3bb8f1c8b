//! Once more: the next attempt of a run at once, and a run of the same job anew.

use serde_json::json;

use super::fixture::Face;
use crate::domain::workflow::attempt::Outcome;

async fn start(face: &Face, job: &str, body: &str) -> String {
    let answer = face.post_json(&format!("/jobs/{job}/start"), body).await;
    answer.json()["runId"].as_str().unwrap().to_owned()
}

/// A run of `c` whose first attempt has failed and whose second has a time.
async fn in_back_off(face: &Face) -> String {
    let run = start(face, "c", "{\"retries\": true}").await;
    let claimed = face.pass(1).await.remove(0);
    assert_eq!(claimed.run.id.to_string(), run);
    face.complete(&claimed, Outcome::Failed).await;
    run
}

#[tokio::test(flavor = "multi_thread")]
async fn a_retry_takes_the_next_attempt_now() {
    let face = Face::new().await;
    let run = in_back_off(&face).await;
    let path = format!("/api/runs/{run}");
    let before = face.get(&path).await.json();
    assert_eq!(before["data"]["steps"][0]["retry_at"], "2025-11-29T18:00:01.000Z");
    let moved = face
        .send("POST", &format!("{path}:retry"), &[("if-match", "\"1\"")], "")
        .await;
    assert_eq!((moved.status, &moved.json()["current_version"]), (412, &json!(3)));
    let keyed = [("idempotency-key", "now"), ("if-match", "\"3\"")];
    let answer = face.send("POST", &format!("{path}:retry"), &keyed, "").await;
    let expected = json!({"data": {"id": run, "state": "retrying", "attempt": 2}});
    assert_eq!((answer.status, answer.json()), (200, expected.clone()));
    let after = face.get(&path).await.json();
    assert_eq!(after["data"]["steps"][0]["retry_at"], "2025-11-29T18:00:00.000Z");
    let repeated = face.send("POST", &format!("{path}:retry"), &keyed, "").await;
    assert_eq!(repeated.header("idempotency-replayed"), Some("true"));
    assert_eq!(repeated.json(), expected);
}

#[tokio::test(flavor = "multi_thread")]
async fn only_a_run_between_attempts_is_retried() {
    let face = Face::new().await;
    let (running, waiting) = (start(&face, "c", "").await, start(&face, "c", "").await);
    let claimed = face.pass(1).await.remove(0);
    let refused = async |run: &str| {
        let answer = face.post(&format!("/api/runs/{run}:retry")).await;
        let document = answer.json();
        (answer.status, document["detail"].as_str().unwrap().to_owned())
    };
    assert_eq!(
        refused(&running).await,
        (409, "attempt 1 runs already".to_owned())
    );
    let for_slots = "attempt 1 waits for its slots already".to_owned();
    assert_eq!(refused(&waiting).await, (409, for_slots));
    face.complete(&claimed, Outcome::Failed).await;
    let ended = "the run has ended: failed; a rerun starts its job as a new run".to_owned();
    assert_eq!(refused(&running).await, (409, ended));
    let unknown = "run_00000000000000000000000001";
    assert_eq!(
        refused(unknown).await,
        (404, format!("run '{unknown}' not found"))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_is_a_new_run_that_names_the_old_one() {
    let face = Face::new().await;
    let old = start(&face, "a", "").await;
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Failed).await;
    let answer = face.post(&format!("/api/runs/{old}:rerun")).await;
    let data = answer.json()["data"].clone();
    assert_eq!(answer.status, 202, "{}", answer.text);
    let new = data["id"].as_str().unwrap().to_owned();
    assert_eq!(
        answer.header("location"),
        Some(format!("/api/runs/{new}").as_str())
    );
    assert_eq!(
        (&data["job"], &data["rerun_of"], &data["pool"]),
        (&json!("a"), &json!(old), &json!("p"))
    );
    assert!(data["queue_id"].is_string() && new != old);
    let run = face.get(&format!("/api/runs/{new}")).await.json();
    assert_eq!(
        (&run["data"]["rerun_of"], &run["data"]["trigger"]["kind"]),
        (&json!(old), &json!("manual"))
    );
    let listed = face.get("/api/runs?trigger=manual").await.json();
    assert_eq!(listed["data"][0]["rerun_of"], json!(old));
    assert_eq!(listed["data"][1]["rerun_of"], json!(null));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rerun_is_refused_as_a_start_is() {
    let face = Face::new().await;
    let free = start(&face, "free", "").await;
    let again = face.post(&format!("/api/runs/{free}:rerun")).await;
    let sentence = "job 'free' is still running and its concurrencyPolicy is Forbid";
    assert_eq!((again.status, &again.json()["detail"]), (409, &json!(sentence)));
    for claimed in face.pass(1).await {
        face.complete(&claimed, Outcome::Succeeded).await;
    }
    let stale = face
        .post_json(&format!("/api/runs/{free}:rerun"), "{\"expected_version\": 1}")
        .await;
    assert_eq!(stale.status, 412);
    let fields = face
        .post_json(&format!("/api/runs/{free}:rerun"), "{\"retries\": 1}")
        .await;
    assert_eq!(fields.status, 422);
    let created = face.post(&format!("/api/runs/{free}:rerun")).await;
    assert_eq!(
        (created.status, &created.json()["data"]["queue_id"]),
        (201, &json!(null))
    );
    face.edit_book(|book| {
        book.jobs.retain(|name, _| name.as_str() != "free");
    });
    let gone = face.post(&format!("/api/runs/{free}:rerun")).await;
    assert_eq!(
        (gone.status, &gone.json()["detail"]),
        (409, &json!("job 'free' is not configured any more"))
    );
}
