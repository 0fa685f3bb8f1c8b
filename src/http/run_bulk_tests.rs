//! All that match: shown before it is done, done only as it was shown, and no job twice.

use serde_json::{Value, json};

use super::fixture::{Answer, Face};
use crate::domain::workflow::attempt::Outcome;
use crate::engine::coordinator::Coordinator;
use crate::store::tables::{RUNS, STEPS};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::StepRef;

async fn start(face: &Face, job: &str, body: &str) -> String {
    face.clock.advance(1);
    let answer = face.post_json(&format!("/jobs/{job}/start"), body).await;
    answer.json()["runId"].as_str().unwrap().to_owned()
}

async fn fail_next(face: &Face) -> String {
    let claimed = face.pass(1).await.remove(0);
    face.complete(&claimed, Outcome::Failed).await;
    claimed.run.id.to_string()
}

async fn ask(face: &Face, verb: &str, body: &Value) -> Answer {
    face.post_json(&format!("/api/runs:{verb}_matching"), &body.to_string())
        .await
}

async fn preview(face: &Face, verb: &str, filter: Value) -> Value {
    let answer = ask(face, verb, &json!({"filter": filter, "preview": true})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

async fn act(face: &Face, verb: &str, filter: Value, expected: u64) -> Answer {
    ask(
        face,
        verb,
        &json!({"filter": filter, "preview": false, "expected_count": expected}),
    )
    .await
}

async fn state(face: &Face, run: &str) -> Value {
    face.get(&format!("/api/runs/{run}")).await.json()["data"]["state"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_matches_is_shown_and_then_cancelled() {
    let face = Face::new().await;
    let running = start(&face, "a", "").await;
    face.pass(1).await;
    let (waiting, other) = (start(&face, "b", "").await, start(&face, "c", "").await);
    let shown = preview(&face, "cancel", json!({"job": ["a", "b"]})).await;
    let sample = json!([
        {"id": waiting, "job": "b", "state": "pending", "action": "cancel"},
        {"id": running, "job": "a", "state": "running", "action": "cancel"},
    ]);
    assert_eq!(
        shown,
        json!({"count": 2, "truncated": false, "sample": sample, "cancel": 2, "retry": 0, "rerun": 0,
            "retry_failed": 0, "collapsed": 0})
    );
    assert_eq!(
        state(&face, &waiting).await,
        "pending",
        "a preview changes nothing"
    );
    let moved = act(&face, "cancel", json!({"job": ["a", "b"]}), 3).await;
    assert_eq!((moved.status, &moved.json()["current_count"]), (409, &json!(2)));
    let detail = "2 runs match now, not 3; nothing was done, look at the preview again";
    assert_eq!(moved.json()["detail"], detail);
    assert_eq!(state(&face, &waiting).await, "pending");
    let done = act(&face, "cancel", json!({"job": ["a", "b"]}), 2).await.json();
    let data = &done["data"];
    assert_eq!(
        json!([
            data["matched"],
            data["cancelled"],
            data["ending"],
            data["refused_count"]
        ]),
        json!([2, 2, 1, 0])
    );
    assert_eq!(state(&face, &waiting).await, "cancelled");
    assert_eq!(state(&face, &other).await, "pending");
    let live = face.get(&format!("/api/runs/{running}")).await.json();
    assert_eq!(live["data"]["steps"][0]["live"]["ending"]["cause"], "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_job_that_failed_often_begins_once() {
    let face = Face::new().await;
    let mut failed = Vec::new();
    for _ in 0..3 {
        start(&face, "a", "").await;
        failed.push(fail_next(&face).await);
    }
    start(&face, "b", "").await;
    fail_next(&face).await;
    let between = start(&face, "c", "{\"retries\": true}").await;
    fail_next(&face).await;
    let shown = preview(&face, "retry", json!("since:1h")).await;
    assert_eq!(
        json!([shown["count"], shown["retry"], shown["rerun"], shown["collapsed"]]),
        json!([5, 1, 2, 2])
    );
    let keyed = [("content-type", "application/json"), ("idempotency-key", "again")];
    let body = json!({"filter": "since:1h", "preview": false, "expected_count": 5}).to_string();
    let done = face.send("POST", "/api/runs:retry_matching", &keyed, &body).await;
    let data = done.json()["data"].clone();
    assert_eq!(
        json!([
            data["matched"],
            data["retried"],
            data["rerun"],
            data["collapsed"],
            data["refused"]
        ]),
        json!([5, 1, 2, 2, []])
    );
    let begun = data["begun"].as_array().unwrap();
    let of_a = begun.iter().find(|one| one["job"] == "a").unwrap();
    assert_eq!(
        of_a["rerun_of"],
        json!(failed[2]),
        "the newest stands for the job"
    );
    let run = face
        .get(&format!("/api/runs/{}", of_a["id"].as_str().unwrap()))
        .await
        .json();
    assert_eq!(
        (&run["data"]["rerun_of"], &run["data"]["state"]),
        (&json!(failed[2]), &json!("pending"))
    );
    let step = &face.get(&format!("/api/runs/{between}")).await.json()["data"]["steps"][0];
    assert_eq!(step["retry_at"], "2025-11-29T18:00:00.005Z");
    let replayed = face.send("POST", "/api/runs:retry_matching", &keyed, &body).await;
    assert_eq!(replayed.header("idempotency-replayed"), Some("true"));
    assert_eq!(replayed.json()["data"], data);
    let waiting = face.get("/api/runs?state=pending").await.json();
    assert_eq!(waiting["data"].as_array().unwrap().len(), 2, "no job began twice");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_start_is_told_and_holds_up_nothing() {
    let face = Face::new().await;
    for job in ["free", "a", "b"] {
        start(&face, job, "").await;
        fail_next(&face).await;
    }
    face.edit_book(|book| {
        book.jobs.retain(|name, _| name.as_str() != "b");
    });
    start(&face, "free", "").await;
    let done = act(&face, "retry", json!({"state": "failed"}), 3).await.json()["data"].clone();
    assert_eq!(
        json!([done["matched"], done["rerun"], done["refused_count"]]),
        json!([3, 1, 2])
    );
    let reasons: Vec<&str> = done["refused"]
        .as_array()
        .unwrap()
        .iter()
        .map(|refused| refused["reason"].as_str().unwrap())
        .collect();
    assert_eq!(
        reasons,
        [
            "job 'b' is not configured any more",
            "job 'free' is still running and its concurrencyPolicy is Forbid"
        ]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_damaged_run_keeps_no_other_from_its_end() {
    let face = Face::new().await;
    let (unread, broken, good) = (
        start(&face, "c", "").await,
        start(&face, "c", "").await,
        start(&face, "c", "").await,
    );
    let id = |text: &str| text.parse::<RunId>().unwrap();
    face.damage(&RUNS, (TenantId::DEFAULT, id(&unread))).await;
    face.damage(&STEPS, (TenantId::DEFAULT, id(&broken), StepRef::main()))
        .await;
    let shown = preview(&face, "cancel", json!({"job": "c"})).await;
    assert_eq!(shown["count"], 2, "{shown}");
    let done = act(&face, "cancel", json!({"job": "c"}), 2).await.json()["data"].clone();
    assert_eq!(done["cancelled"], 1, "{done}");
    assert_eq!(
        done["refused"],
        json!([{"id": broken, "reason": "its rows cannot be read"}])
    );
    assert_eq!(state(&face, &good).await, "cancelled");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wish_that_is_not_whole_is_refused_with_every_fault() {
    let face = Face::new().await;
    let check = async |verb: &str, body: Value, faults: Value| {
        let answer = ask(&face, verb, &body).await;
        let document = answer.json();
        let found = document["errors"].as_array().unwrap().iter();
        let found: Vec<Value> = found
            .map(|fault| json!([fault["pointer"], fault["detail"]]))
            .collect();
        assert_eq!((answer.status, Value::from(found)), (422, faults), "{body}");
    };
    let needed = "is needed to act: the `count` that a preview has shown";
    check(
        "cancel",
        json!({}),
        json!([["/filter", "is needed"], ["/preview", "is needed"]]),
    )
    .await;
    check(
        "cancel",
        json!({"filter": {}, "preview": false}),
        json!([["/expected_count", needed]]),
    )
    .await;
    check(
        "cancel",
        json!({"filter": {"stat": "failed", "since": "soon"}, "preview": 1, "expected_count": -1}),
        json!([
            [
                "/filter/since",
                "`soon` is no time; write a length like 30s, 5m or 1h, or an instant like 2025-11-30T18:00:00Z"
            ],
            ["/filter/stat", "unknown filter `stat`; did you mean `state`?"],
            ["/preview", "must be true or false"],
            ["/expected_count", "must be a whole number"]
        ]),
    )
    .await;
    let ended = "a run that has failed cannot be cancelled; say pending, running or paused";
    check(
        "cancel",
        json!({"filter": {"state": ["failed", "pending"]}, "preview": true}),
        json!([["/filter/state", ended]]),
    )
    .await;
    check(
        "retry",
        json!({"filter": "state:faild", "preview": true}),
        json!([["/filter", "`faild` is no state; did you mean `failed`?"]]),
    )
    .await;
    check(
        "retry",
        json!({"filter": [], "preview": true}),
        json!([["/filter", "must be an object or a text"]]),
    )
    .await;
}

fn workflow(slug: &str, last: &Value) -> String {
    let mut last = last.clone();
    last["ref"] = json!("last");
    json!({
        "family_slug": slug, "title": slug,
        "steps": [
            {"ref": "greet", "type": "STEP_TYPE_DATAFLOW", "args": {"operation": "project", "project": {"at": "input.at"}}},
            last],
        "edges": [{"source_ref": "greet", "target_ref": "last", "type": "EDGE_TYPE_SUCCESS"}]
    })
    .to_string()
}

async fn published(face: &Face, slug: &str, last: &Value) {
    let saved = face.post_json("/api/workflows", &workflow(slug, last)).await;
    assert_eq!(saved.status, 201, "{}", saved.text);
    let answer = face.post(&format!("/api/workflows/{slug}:publish")).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
}

async fn begin(face: &Face, slug: &str, at: u32) -> String {
    face.clock.advance(1);
    let body = json!({"input": {"at": at}}).to_string();
    let answer = face
        .post_json(&format!("/api/workflows/{slug}/runs"), &body)
        .await;
    answer.json()["data"]["id"].as_str().unwrap().to_owned()
}

/// Waits until the run stands so.
async fn until(face: &Face, run: &str, wanted: &str) {
    let mut sequence = face.app.engine.store.watch_sequence();
    loop {
        sequence.borrow_and_update();
        if state(face, run).await == wanted {
            return;
        }
        sequence.changed().await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn runs_of_workflows_are_tried_again_where_they_failed_each_once() {
    let face = Face::new().await;
    let fails = json!({"type": "STEP_TYPE_FAIL", "args": {"code": "no.luck", "message": "no luck"}});
    published(&face, "flow", &fails).await;
    let mut failed = Vec::new();
    for at in 0..3 {
        failed.push(begin(&face, "flow", at).await);
    }
    start(&face, "a", "").await;
    fail_next(&face).await;
    let shown = preview(&face, "retry", json!({"state": ["failed"]})).await;
    assert_eq!(
        json!([
            shown["count"],
            shown["rerun"],
            shown["retry_failed"],
            shown["collapsed"]
        ]),
        json!([4, 1, 3, 0]),
        "each has an input of its own"
    );
    assert_eq!(shown["sample"][1]["action"], "retry_failed");
    face.clock.advance(1);
    let done = act(&face, "retry", json!({"state": ["failed"]}), 4).await.json()["data"].clone();
    assert_eq!(
        json!([done["rerun"], done["retried_failed"], done["refused"]]),
        json!([1, 3, []])
    );
    let begun = done["begun"].as_array().unwrap();
    for of in &failed {
        let new = begun.iter().find(|one| one["rerun_of"] == json!(of)).unwrap();
        let run = face
            .get(&format!("/api/runs/{}", new["id"].as_str().unwrap()))
            .await;
        let run = run.json()["data"].clone();
        assert_eq!(json!([run["state"], run["rerun_of"]]), json!(["failed", of]));
        let greet = run["steps"]
            .as_array()
            .unwrap()
            .iter()
            .find(|step| step["ref"] == "greet");
        assert_eq!(greet.unwrap()["state"], "succeeded", "taken over");
    }
    let again = preview(&face, "retry", json!("job:flow")).await;
    assert_eq!(
        json!([again["count"], again["retry_failed"], again["collapsed"]]),
        json!([6, 3, 3]),
        "what was tried again is not tried twice"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn all_that_match_are_cancelled_also_what_is_held() {
    let face = Face::new().await;
    let work = tokio::spawn(Coordinator::new(face.app.engine.clone()).run());
    let waits = json!({"type": "STEP_TYPE_WAIT", "args": {"duration": "1h"}});
    published(&face, "flow", &waits).await;
    let (held, waiting) = (begin(&face, "flow", 1).await, begin(&face, "flow", 2).await);
    let paused = face.post(&format!("/api/runs/{held}:pause")).await;
    assert_eq!(paused.status, 202, "{}", paused.text);
    until(&face, &held, "paused").await;
    start(&face, "a", "").await;
    let shown = preview(&face, "cancel", json!({})).await;
    assert_eq!(json!([shown["count"], shown["cancel"]]), json!([3, 3]));
    let done = act(&face, "cancel", json!({}), 3).await.json()["data"].clone();
    assert_eq!(json!([done["cancelled"], done["refused_count"]]), json!([3, 0]));
    for run in [&held, &waiting] {
        until(&face, run, "cancelled").await;
    }
    let listed = face.get("/api/runs?state=paused&state=timed_out").await;
    assert_eq!((listed.status, listed.json()["data"].clone()), (200, json!([])));
    work.abort();
}
