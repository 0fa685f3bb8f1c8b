//! Health, status, configuration, nodes, metrics; and the end of the server.

use std::time::Duration;

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

use super::fixture::Face;
use super::health;
use crate::config::{Config, EnvironmentEntry, StateConfig};
use crate::domain::workflow::attempt::Outcome;
use crate::os::failpoint::Fault;
use crate::store::tables::NODES;
use crate::words::names::NodeName;

fn small_disk() -> Config {
    Config {
        state: StateConfig {
            low_disk_bytes: 1,
            ..StateConfig::default()
        },
        ..Config::default()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn readiness_is_the_last_result_of_the_check() {
    let face = Face::with(small_disk()).await;
    assert_eq!(face.get("/livez").await.status, 200);
    assert_eq!(
        face.get("/readyz").await.json()["detail"],
        "not ready: store, disk"
    );
    health::check(&face.app).await;
    assert_eq!(face.get("/readyz").await.json(), json!({"status": "ready"}));
    assert_eq!(face.get("/healthz").await.status, 200);
    let verbose = face.get("/readyz?verbose").await.json();
    let names: Vec<_> = verbose["checks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|check| check["name"].clone())
        .collect();
    assert_eq!(
        names,
        ["store", "disk", "locks", "scheduler", "configuration", "drain"]
    );
    face.app
        .engine
        .store
        .faults()
        .plan("store.read", Fault::Error, u32::MAX);
    health::check(&face.app).await;
    let bad = face.get("/readyz?verbose").await;
    assert_eq!(
        (bad.status, &bad.json()["checks"][0]["detail"]),
        (503, &json!("cannot be read"))
    );
    face.app.engine.store.faults().clear("store.read");
    health::check(&face.app).await;
    assert_eq!(face.get("/readyz").await.status, 200);
    face.clock.advance(6_000);
    assert_eq!(face.get("/readyz").await.json()["detail"], "not ready: store");
    health::check(&face.app).await;
    face.app.engine.begin_stopping();
    assert_eq!(face.get("/readyz").await.json()["detail"], "not ready: drain");
    assert_eq!(face.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn loops_that_do_not_turn_are_seen() {
    let face = Face::with(small_disk()).await;
    health::check(&face.app).await;
    face.clock.advance(31_000);
    health::check(&face.app).await;
    assert_eq!(face.get("/livez").await.status, 503);
    face.app.engine.metrics.passed();
    health::check(&face.app).await;
    assert_eq!(face.get("/livez").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_status_counts_and_says_a_sentence() {
    let face = Face::with(small_disk()).await;
    health::check(&face.app).await;
    face.post("/jobs/a/start").await;
    face.post("/jobs/a/start").await;
    face.post("/jobs/timed/start").await;
    let data = face.get("/api/status").await.json()["data"].clone();
    assert_eq!(
        data["verdict"],
        "All is well: 0 running, 3 waiting, no failed run in 24 hours."
    );
    let claimed = face.pass(2).await;
    face.complete(&claimed[0], Outcome::Failed).await;
    let data = face.get("/api/status").await.json()["data"].clone();
    assert_eq!(data["counts"]["failed_last_24h"], 1);
    assert_eq!(
        data["verdict"],
        "1 run failed in the last 24 hours; 1 running, 1 waiting."
    );
    assert_eq!(
        data["next_fires"],
        json!([{"job": "timed", "at": "2025-11-29T19:00:00.000Z"}])
    );
    assert_eq!(
        (&data["node"], &data["ready"], &data["draining"]),
        (&json!("n-a"), &json!(true), &json!(false))
    );
    assert!(!data["state_directory"].as_str().unwrap().contains('/'));
    face.app.engine.begin_stopping();
    let data = face.get("/api/status").await.json()["data"].clone();
    assert_eq!(data["verdict"], "Draining: 1 still running, nothing new starts.");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_store_is_checked_while_it_is_open() {
    let face = Face::new().await;
    face.post("/jobs/a/start").await;
    let data = face.get("/api/store/check").await.json()["data"].clone();
    assert_eq!(
        (&data["clean"], &data["findings"]),
        (&json!(true), &json!([])),
        "{data}"
    );
    assert!(data["rows"].as_u64().unwrap() > 1, "{data}");
    face.damage(&NODES, (NodeName::new("n-b").unwrap(),)).await;
    let data = face.get("/api/store/check").await.json()["data"].clone();
    assert_eq!(data["clean"], false);
    assert_eq!(data["findings"].as_array().map(Vec::len), Some(1), "{data}");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_configuration_is_shown_without_values_of_variables() {
    let face = Face::new().await;
    let mut data = face.get("/api/config").await.json();
    assert_eq!(data["data"]["server"]["listen"], "127.0.0.1:8470");
    let entry = EnvironmentEntry {
        key: "K".to_owned(),
        value: "secret".to_owned(),
    };
    let job = json!({"environment": [entry]});
    data["data"]["jobs"] = json!([job]);
    super::config::hide_values(&mut data["data"]);
    assert_eq!(
        data["data"]["jobs"][0]["environment"][0],
        json!({"key": "K", "value": "(hidden)"})
    );
    let version = face.get("/version").await.json();
    assert_eq!(
        (&version["name"], &version["schema"]),
        (&json!("ductor"), &json!(crate::store::migrate::FORMAT))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_openmetrics_without_doubled_suffixes() {
    let face = Face::new().await;
    health::check(&face.app).await;
    face.post("/jobs/a/start").await;
    face.post("/jobs/a/start").await;
    let claimed = face.pass(1).await;
    face.clock.advance(2_000);
    face.post_json("/pools/q/pause", "{}").await;
    face.send("GET", "/pools", &[("host", "evil")], "").await;
    let answer = face.get("/metrics").await;
    assert_eq!(
        answer
            .header("content-type")
            .map(|kind| kind.starts_with("application/openmetrics-text")),
        Some(true)
    );
    assert!(answer.text.ends_with("# EOF\n"));
    let mut types = std::collections::BTreeMap::new();
    for line in answer.text.lines() {
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            assert!(types.insert(name, kind).is_none(), "{name} stands twice");
            assert!(!name.ends_with("_total"), "{name}");
            assert!(
                !name.contains("_seconds_seconds") && !name.contains("_bytes_bytes"),
                "{name}"
            );
        } else if !line.starts_with('#') {
            let (_, value) = line.rsplit_once(' ').unwrap();
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(!line.contains("_total_total"), "{line}");
        }
    }
    let has = |line: &str| {
        assert!(
            answer.text.lines().any(|found| found == line),
            "{line}\n{}",
            answer.text
        );
    };
    has("ductor_slots_configured{slot_pool=\"p\"} 1");
    has("ductor_slots_used{slot_pool=\"p\"} 1");
    has("ductor_slot_entries_queued{slot_pool=\"p\"} 1");
    has("ductor_slot_oldest_wait_seconds{slot_pool=\"p\"} 2.0");
    has("ductor_slot_paused{slot_pool=\"q\"} 1");
    has("ductor_slot_renewal_failures_total 0");
    has("ductor_runs_started_total{workflow=\"a\",trigger=\"manual\"} 2");
    has("ductor_runs_active{state=\"running\"} 1");
    has("ductor_runs_active{state=\"pending\"} 1");
    has("ductor_jobs_running{job=\"a\"} 1");
    has("ductor_http_rejected_total{reason=\"host\"} 1");
    has("ductor_http_requests_total{route=\"/jobs/{job}/start\",method=\"POST\",status=\"202\"} 2");
    assert_eq!(types["ductor_store_commit_seconds"], "histogram");
    face.complete(&claimed[0], Outcome::Succeeded).await;
    assert!(
        face.get("/metrics")
            .await
            .text
            .contains("ductor_slots_used{slot_pool=\"p\"} 0\n")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idle_connection_does_not_hold_the_end() {
    let face = Face::new().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let app = super::App::new(
        &face.app.engine,
        face.app.unreadable.clone(),
        &face.app.reloader,
        address,
    );
    let stop = CancellationToken::new();
    let server = tokio::spawn(super::serve(listener, app, stop.clone()));
    let mut kept = TcpStream::connect(address).await.unwrap();
    kept.write_all(format!("GET /version HTTP/1.1\r\nHost: {address}\r\n\r\n").as_bytes())
        .await
        .unwrap();
    let mut first = [0; 12];
    kept.read_exact(&mut first).await.unwrap();
    assert_eq!(&first, b"HTTP/1.1 200");
    let mut half = TcpStream::connect(address).await.unwrap();
    half.write_all(b"GET /version HT").await.unwrap();
    stop.cancel();
    tokio::time::timeout(Duration::from_secs(4), server)
        .await
        .expect("the server ends")
        .unwrap();
}
