//! Runs: pages and cursors, one run in full, its cancel, its log.

use serde_json::{Value, json};

use super::fixture::Face;
use crate::domain::workflow::attempt::Outcome;
use crate::store::tables::RUNS;
use crate::words::ids::{RunId, TenantId};

/// A start a moment after the last one, so that the order of the queue is the order of the calls.
async fn start(face: &Face, job: &str) -> String {
    face.clock.advance(1);
    face.post(&format!("/jobs/{job}/start")).await.json()["runId"]
        .as_str()
        .unwrap()
        .to_owned()
}

fn ids(page: &Value) -> Vec<String> {
    page["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| run["id"].as_str().unwrap().to_owned())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_go_on_where_they_ended() {
    let face = Face::new().await;
    let mut all = Vec::new();
    for job in ["c", "timed", "c", "timed", "c", "c", "timed"] {
        all.insert(0, (start(&face, job).await, job));
    }
    for (filter, job) in [("", None), ("&job=c", Some("c"))] {
        let mut seen = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = face
                .get(&format!("/api/runs?page_size=2{filter}{cursor}"))
                .await
                .json();
            seen.extend(ids(&page));
            let Some(next) = page["pagination"]["next_cursor"].as_str() else {
                break;
            };
            cursor = format!("&cursor={next}");
        }
        let wanted = all.iter().filter(|(_, of)| job.is_none_or(|job| job == *of));
        assert_eq!(seen, wanted.map(|(id, _)| id.clone()).collect::<Vec<_>>());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cursor_belongs_to_its_filter() {
    let face = Face::new().await;
    for _ in 0..3 {
        start(&face, "c").await;
    }
    let page = face.get("/api/runs?job=c&page_size=1").await.json();
    let cursor = page["pagination"]["next_cursor"].as_str().unwrap();
    assert_eq!(
        face.get(&format!("/api/runs?job=c&page_size=2&cursor={cursor}"))
            .await
            .status,
        200
    );
    for path in ["job=timed", "job=c&state=failed", "state=pending"] {
        let answer = face.get(&format!("/api/runs?{path}&cursor={cursor}")).await;
        assert_eq!(
            (answer.status, &answer.json()["code"]),
            (400, &json!("INVALID_ARGUMENT")),
            "{path}"
        );
    }
    for query in [
        "cursor=x",
        "state=odd",
        "page_size=0",
        "page_size=501",
        "jobs=a",
        "job=a%2Fb",
    ] {
        assert_eq!(
            face.get(&format!("/api/runs?{query}")).await.status,
            400,
            "{query}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_filtered_by_state() {
    let face = Face::new().await;
    let (first, second) = (start(&face, "timed").await, start(&face, "timed").await);
    let third = start(&face, "c").await;
    let claimed = face.pass(2).await;
    assert_eq!(claimed.len(), 2);
    let of = |id: &str| claimed.iter().find(|one| one.run.id.to_string() == id);
    let done = of(&first).or_else(|| of(&third)).unwrap();
    face.complete(done, Outcome::Failed).await;
    assert_eq!(
        ids(&face.get("/api/runs?state=failed").await.json()),
        [done.run.id.to_string()]
    );
    let mut open = ids(&face.get("/api/runs?state=running&state=pending").await.json());
    open.push(done.run.id.to_string());
    open.sort();
    assert_eq!(open, [first, second, third]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_unreadable_run_hides_no_other() {
    let face = Face::new().await;
    let (first, second) = (start(&face, "c").await, start(&face, "c").await);
    let id: RunId = first.parse().unwrap();
    face.damage(&RUNS, (TenantId::DEFAULT, id)).await;
    for path in ["/api/runs", "/api/runs?job=c"] {
        let page = face.get(path).await.json();
        assert_eq!(ids(&page), [second.clone(), first.clone()]);
        assert_eq!(page["data"][1], json!({"id": first, "state": "unreadable"}));
    }
    assert_eq!(face.get(&format!("/api/runs/{first}")).await.status, 503);
    assert_eq!(face.get("/jobs/c").await.json()["lastRun"]["id"], second);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_run_says_why_it_waits_and_how_it_went() {
    let face = Face::new().await;
    let (first, second, third) = (
        start(&face, "a").await,
        start(&face, "b").await,
        start(&face, "a").await,
    );
    let show = async |id: &str| face.get(&format!("/api/runs/{id}")).await.json()["data"].clone();
    assert_eq!(show(&first).await["waiting_reason"]["code"], "ready");
    let claimed = face.pass(1).await;
    let running = show(&first).await;
    assert_eq!(
        (&running["state"], &running["waiting_reason"]),
        (&json!("running"), &Value::Null)
    );
    let live = &running["steps"][0]["live"];
    assert_eq!(
        (&live["fence"], &live["lease_until"]),
        (&json!(1), &json!("2025-11-29T18:00:30.003Z"))
    );
    let waiting = show(&second).await["waiting_reason"].clone();
    assert_eq!(
        (&waiting["code"], &waiting["text"]),
        (&json!("slots"), &json!("Needs 1 slot(s); 0 available"))
    );
    assert_eq!((&waiting["position"], &waiting["pool"]), (&json!(1), &json!("p")));
    assert_eq!(show(&third).await["waiting_reason"]["position"], 2);
    face.post("/pools/p/pause").await;
    assert_eq!(show(&second).await["waiting_reason"]["code"], "paused");
    face.complete(&claimed[0], Outcome::Failed).await;
    let ended = show(&first).await;
    assert_eq!(
        (&ended["state"], &ended["reason"], &ended["poisoned"]),
        (&json!("failed"), &json!("failed"), &json!(false))
    );
    assert_eq!(ended["trigger"], json!({"kind": "manual", "principal": "local"}));
    assert_eq!(ended["steps"][0]["attempts"][0]["exit_code"], 1);
    assert_eq!(ended["steps"][0]["live"], Value::Null);
    let unpooled = start(&face, "timed").await;
    assert_eq!(show(&unpooled).await["waiting_reason"]["code"], "ready");
    for id in ["run_0", "x", "run_00000000000000000000000000"] {
        assert_eq!(face.get(&format!("/api/runs/{id}")).await.status, 404, "{id}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_are_cancelled_once() {
    let face = Face::new().await;
    let (live, waiting) = (start(&face, "a").await, start(&face, "a").await);
    face.pass(1).await;
    let cancel = async |id: &str| face.post(&format!("/api/runs/{id}:cancel")).await;
    assert_eq!(
        cancel(&waiting).await.json(),
        json!({"data": {"id": waiting, "state": "cancelled"}})
    );
    let again = cancel(&waiting).await;
    assert_eq!((again.status, &again.json()["state"]), (409, &json!("cancelled")));
    assert_eq!(cancel(&live).await.json()["data"]["state"], "ending");
    let shown = face.get(&format!("/api/runs/{live}")).await.json();
    assert_eq!(shown["data"]["steps"][0]["live"]["ending"]["cause"], "cancelled");
    assert_eq!(cancel("run_0").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn logs_are_read_by_range() {
    let face = Face::new().await;
    let run = start(&face, "a").await;
    let claimed = face.pass(1).await;
    face.write_log(&claimed[0], "o one\no two\n");
    let log = format!("/api/runs/{run}/steps/main/attempts/1/log");
    let check = async |query: &str, text: &str, start: &str, done: &str| {
        let answer = face.get(&format!("{log}{query}")).await;
        assert_eq!((answer.status, answer.text.as_str()), (200, text), "{query}");
        assert_eq!(answer.header("content-type"), Some("text/plain; charset=utf-8"));
        assert!(
            answer
                .header("content-disposition")
                .unwrap()
                .starts_with("attachment")
        );
        let found = ["x-log-start", "x-log-size", "x-log-done"].map(|name| answer.header(name).unwrap());
        assert_eq!(found, [start, "12", done], "{query}");
    };
    check("", "o one\no two\n", "0", "false").await;
    check("?offset=6&limit=5", "o two", "6", "false").await;
    check("?offset=-4", "two\n", "8", "false").await;
    check("?offset=99", "", "12", "false").await;
    face.complete(&claimed[0], Outcome::Succeeded).await;
    check("?fence=1", "o one\no two\n", "0", "true").await;
    for path in [
        format!("{log}?fence=2"),
        format!("/api/runs/{run}/steps/main/attempts/2/log"),
        format!("/api/runs/{run}/steps/other/attempts/1/log"),
        "/api/runs/run_00000000000000000000000001/steps/main/attempts/1/log".to_owned(),
    ] {
        assert_eq!(face.get(&path).await.status, 404, "{path}");
    }
    assert_eq!(face.get(&format!("{log}?offset=x")).await.status, 400);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tail_sends_everything_and_ends() {
    let face = Face::new().await;
    let run = start(&face, "a").await;
    let claimed = face.pass(1).await;
    face.write_log(&claimed[0], "o one\no tw\u{e9}\n");
    let path = format!("/api/runs/{run}/steps/main/attempts/1/log/tail");
    let following = face.get(&path);
    let ending = async {
        // The follower sees the first bytes while the attempt is live; its end is another event.
        tokio::task::yield_now().await;
        face.complete(&claimed[0], Outcome::Succeeded).await;
    };
    let (whole, ()) = tokio::join!(following, ending);
    assert_eq!(whole.header("content-type"), Some("text/event-stream"));
    let expected =
        "id: 13\ndata: {\"offset\":0,\"text\":\"o one\\no tw\u{e9}\\n\"}\n\nevent: end\ndata: {}\n\n";
    assert!(whole.text.ends_with(expected), "{}", whole.text);
    let resumed = face.send("GET", &path, &[("last-event-id", "6")], "").await;
    assert!(
        resumed
            .text
            .contains("data: {\"offset\":6,\"text\":\"o tw\u{e9}\\n\"}"),
        "{}",
        resumed.text
    );
    assert!(!resumed.text.contains("one"));
    assert_eq!(
        face.send("GET", &path, &[("last-event-id", "x")], "")
            .await
            .status,
        400
    );
    assert_eq!(
        face.app.streams.load(std::sync::atomic::Ordering::SeqCst),
        0,
        "a seat is given back"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_say_bye() {
    let face = Face::new().await;
    let run = start(&face, "a").await;
    face.pass(1).await;
    face.app.stop.cancel();
    let answer = face
        .get(&format!("/api/runs/{run}/steps/main/attempts/1/log/tail"))
        .await;
    assert!(
        answer.text.ends_with("event: bye\ndata: {}\n\n"),
        "{}",
        answer.text
    );
}
