//! Backups over HTTP.

use serde_json::{Value, json};

use super::fixture::{Answer, BEGIN, Face};
use crate::engine::backups;
use crate::words::limits;

async fn ask(face: &Face, path: &Value) -> Answer {
    face.post_json("/api/backups", &json!({ "path": path }).to_string())
        .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_backup_is_made_and_remembered() {
    let face = Face::new().await;
    assert_eq!(face.get("/api/backups").await.json(), json!({"data": []}));
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("b");
    let answer = ask(&face, &json!(file)).await;
    assert_eq!(
        (answer.status, answer.header("location")),
        (201, Some("/api/backups"))
    );
    let made = answer.json()["data"].clone();
    assert_eq!(made["state"], "done");
    assert_eq!(
        made["bytes"].as_u64(),
        Some(std::fs::metadata(&file).unwrap().len())
    );
    assert_eq!(made["blake3"].as_str().unwrap().len(), 64);
    assert_eq!(
        (&made["path"], &made["by"], &made["reason"]),
        (&json!(file), &json!("local"), &Value::Null)
    );
    assert_eq!(made["began_at"], BEGIN.to_string());
    assert_eq!(face.get("/api/backups").await.json()["data"], json!([made]));
    let metrics = face.get("/metrics").await.text;
    let line = "ductor_backup_last_success_timestamp_seconds 1764439200.0";
    assert!(metrics.contains(line), "{metrics}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_made_says_why() {
    let face = Face::new().await;
    let refused = |answer: &Answer| {
        let body = answer.json();
        let code = body["code"].as_str().unwrap().to_owned();
        (answer.status, code, body["detail"].as_str().unwrap().to_owned())
    };
    let (status, _, detail) = refused(&ask(&face, &json!("b")).await);
    assert_eq!(
        (status, detail.contains("absolute path")),
        (422, true),
        "{detail}"
    );
    assert_eq!(ask(&face, &json!(7)).await.status, 422);
    assert_eq!(face.post_json("/api/backups", "{}").await.status, 422);
    let inside = face.app.engine.store.directory().join("b");
    let (status, code, detail) = refused(&ask(&face, &json!(inside)).await);
    assert_eq!((status, code.as_str()), (409, "FAILED_PRECONDITION"));
    assert!(detail.contains("inside the state directory"), "{detail}");
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("b"), "precious").unwrap();
    let (status, code, _) = refused(&ask(&face, &json!(folder.path().join("b"))).await);
    assert_eq!((status, code.as_str()), (409, "FAILED_PRECONDITION"));
    let (status, code, detail) = refused(&ask(&face, &json!(folder.path().join("no/b"))).await);
    assert_eq!((status, code.as_str()), (409, "BACKUP_FAILED"), "{detail}");
    // One that began and failed has a row too.
    let (status, code, _) = refused(&ask(&face, &json!("/proc/b")).await);
    assert_eq!((status, code.as_str()), (409, "BACKUP_FAILED"));
    let known = face.get("/api/backups").await.json()["data"].clone();
    assert_eq!(known.as_array().unwrap().len(), 1, "{known}");
    assert_eq!(
        (&known[0]["state"], &known[0]["path"]),
        (&json!("failed"), &json!("/proc/b"))
    );
    assert!(
        known[0]["reason"].as_str().unwrap().contains("cannot be written"),
        "{known}"
    );
    assert!(
        !face
            .get("/metrics")
            .await
            .text
            .contains("ductor_backup_last_success")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_one_backup() {
    let face = Face::new().await;
    let folder = tempfile::tempdir().unwrap();
    let body = json!({"path": folder.path().join("b")}).to_string();
    let headers = [("content-type", "application/json"), ("idempotency-key", "k")];
    let first = face.send("POST", "/api/backups", &headers, &body).await;
    let again = face.send("POST", "/api/backups", &headers, &body).await;
    assert_eq!((first.status, again.status), (201, 201));
    assert_eq!(again.header("idempotency-replayed"), Some("true"));
    assert_eq!(first.text, again.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_oldest_backups_are_forgotten() {
    let face = Face::new().await;
    for _ in 0..limits::BACKUPS_KEPT_MAX + 2 {
        assert_eq!(face.backup().await.status, 201);
        face.clock.advance(1_000);
    }
    let known = face.app.backups.clone();
    let found = face
        .app
        .engine
        .read(move |tx| backups::all(tx, &known))
        .await
        .unwrap();
    assert_eq!(found.len(), limits::BACKUPS_KEPT_MAX);
    assert_eq!(found.last().unwrap().began_at, BEGIN.plus(2_000));
}
