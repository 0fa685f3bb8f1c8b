//! Live routing over HTTP: shapes, codes, keys, hidden fields.

use serde_json::{Value, json};

use super::fixture::{Answer, Face};

async fn made(face: &Face, path: &str, body: Value) -> String {
    let answer = face.post_json(path, &body.to_string()).await;
    let id = answer.json()["data"]["id"].as_str().map(str::to_owned);
    id.unwrap_or_else(|| panic!("{}", answer.text))
}

async fn pool(face: &Face, name: &str, config: Value) -> String {
    made(face, "/api/pools", json!({"name": name, "config": config})).await
}

async fn member(face: &Face, pool: &str, name: &str) -> String {
    made(
        face,
        &format!("/api/pools/{pool}/recipients"),
        json!({"name": name}),
    )
    .await
}

async fn route(face: &Face, body: Value) -> Answer {
    face.post_json("/api/route", &body.to_string()).await
}

async fn queue(face: &Face, hidden: &[&str]) -> String {
    let body = json!({"name": "pond", "hidden_fields": hidden});
    made(face, "/api/claim-queues", body).await
}

fn code(answer: &Answer) -> String {
    answer.json()["errors"][0]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_decision_is_answered_kept_listed_and_replayed() {
    let face = Face::new().await;
    let of = pool(&face, "agents", json!({"default_timeout": "30s"})).await;
    let agent = member(&face, &of, "Jordan").await;
    let answer = route(&face, json!({"work": {"kind": "t"}, "pool_id": of})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let decision = answer.json()["data"].clone();
    assert_eq!(decision["outcome"], "assigned");
    assert_eq!(decision["winners"][0]["recipient_id"], agent.as_str());
    let id = decision["id"].as_str().unwrap();
    let shown = face.get(&format!("/api/decisions/{id}")).await.json();
    assert_eq!(shown["data"], decision);
    let only = face
        .get(&format!("/api/decisions/{id}?explain=winners"))
        .await
        .json();
    assert_eq!(
        only["data"]["explanation"]["candidates"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    for filter in [
        format!("pool_id={of}"),
        format!("recipient_id={agent}"),
        "outcome=assigned".to_owned(),
    ] {
        let list = face.get(&format!("/api/decisions?{filter}")).await.json();
        assert_eq!(list["data"][0]["id"], id, "{filter}: {list}");
    }
    for filter in [
        "outcome=dropped",
        "reason=tried.before",
        "to=2000-01-01T00:00:00Z",
    ] {
        let list = face.get(&format!("/api/decisions?{filter}")).await.json();
        assert_eq!(list["data"], json!([]), "{filter}");
    }
    let replayed = face
        .post_json(&format!("/api/decisions/{id}:replay"), "{}")
        .await
        .json();
    assert_eq!(replayed["data"]["identical"], true, "{replayed}");
    let other = json!({"pipeline": "least_utilized"}).to_string();
    let other = face
        .post_json(&format!("/api/decisions/{id}:replay"), &other)
        .await
        .json();
    assert_eq!(other["data"]["identical"], Value::Null, "{other}");
    assert_eq!(face.get("/api/decisions?outcome=won").await.status, 400);
    let missing = face.get("/api/decisions/7").await;
    assert_eq!(
        (missing.status, code(&missing)),
        (404, "decision.not_found".to_owned())
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_assignment_goes_its_way_and_refuses_what_does_not_apply() {
    let face = Face::new().await;
    let of = pool(&face, "agents", json!({})).await;
    member(&face, &of, "Jordan").await;
    let decision = route(&face, json!({"work": {"kind": "t"}, "pool_id": of}))
        .await
        .json();
    let id = decision["data"]["winners"][0]["assignment_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let verb = async |verb: &str, body: &str| {
        face.post_json(&format!("/api/assignments/{id}:{verb}"), body)
            .await
    };
    assert_eq!(verb("accept", "").await.json()["data"]["state"], "accepted");
    let refused = verb("reject", "{}").await;
    assert_eq!(
        (refused.status, code(&refused)),
        (409, "assignment.already_accepted".to_owned())
    );
    for bad in ["{\"value\": 2}", "{\"value\": \"x\"}", "{\"worth\": 1}"] {
        assert_eq!(verb("complete", bad).await.status, 422, "{bad}");
    }
    let done = verb("complete", "{\"value\": 0.25, \"result\": {\"a\": 1}}")
        .await
        .json();
    assert_eq!(
        (&done["data"]["state"], &done["data"]["value"]),
        (&json!("completed"), &json!(0.25))
    );
    assert_eq!(done["data"]["end"]["kind"], "completed");
    let again = verb("complete", "{}").await;
    assert_eq!((again.status, code(&again)), (409, "assignment.ended".to_owned()));
    let list = face.get("/api/assignments?state=completed").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
    assert_eq!(face.get("/api/assignments?state=done").await.status, 400);
}

/// 57, first half: the same key and body have the same answer, another body is refused.
#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_one_decision() {
    let face = Face::new().await;
    let of = pool(&face, "agents", json!({})).await;
    member(&face, &of, "Jordan").await;
    let headers = [("idempotency-key", "k"), ("content-type", "application/json")];
    let send = async |kind: &str| {
        let body = json!({"work": {"kind": kind}, "pool_id": of}).to_string();
        face.send("POST", "/api/route", &headers, &body).await
    };
    let first = send("t").await;
    let second = send("t").await;
    assert_eq!(first.text, second.text);
    assert_eq!(second.header("idempotency-replayed"), Some("true"));
    assert_eq!(send("other").await.status, 422);
    let list = face.get("/api/decisions").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn unusable_input_is_no_decision() {
    let face = Face::new().await;
    let answer = route(&face, json!({"work": {"kind": "t", "priority": 11}, "extra": 1})).await;
    assert_eq!(answer.status, 422);
    let pointers: Vec<Value> = answer.json()["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].clone())
        .collect();
    assert_eq!(pointers.len(), 2, "{pointers:?}");
    assert!(
        pointers[1].as_str().unwrap().ends_with("/priority"),
        "{pointers:?}"
    );
    let none = route(&face, json!({"work": {"kind": "t"}})).await.json();
    assert_eq!(none["data"]["outcome"], "no_rule_matched");
    let dry = route(&face, json!({"work": {"kind": "t"}, "dry_run": true}))
        .await
        .json();
    assert_eq!(dry["data"]["committed"], false);
    let list = face.get("/api/decisions").await.json();
    assert_eq!(list["data"].as_array().unwrap().len(), 1);
}

/// 43: hidden fields never appear in items, events, decisions of the queue, or problem details; the assignment has them.
#[tokio::test(flavor = "multi_thread")]
async fn hidden_fields_are_seen_by_who_has_claimed() {
    const SECRET: &str = "+41 44 668 18 00";
    let face = Face::new().await;
    let pond = queue(&face, &["/attributes/phone"]).await;
    let of = pool(
        &face,
        "pond",
        json!({"routing_mode": "claim", "claim_queue_id": pond}),
    )
    .await;
    let (me, you) = (member(&face, &of, "me").await, member(&face, &of, "you").await);
    let work = json!({"kind": "lead", "attributes": {"phone": SECRET, "city": "Zurich"}});
    let decided = route(&face, json!({"work": work, "pool_id": of})).await;
    assert_eq!(
        decided.json()["data"]["outcome"],
        "queued_for_claim",
        "{}",
        decided.text
    );
    assert!(!decided.text.contains(SECRET));
    let items = face
        .get(&format!("/api/claim-queues/{pond}/items?recipient_id={me}"))
        .await;
    assert!(
        !items.text.contains(SECRET) && items.text.contains("Zurich"),
        "{}",
        items.text
    );
    let item = items.json()["data"][0]["id"].as_str().unwrap().to_owned();
    let path = format!("/api/claim-queues/{pond}/items/{item}:claim");
    let claimed = face
        .post_json(&path, &json!({"recipient_id": me}).to_string())
        .await;
    assert_eq!(claimed.status, 201, "{}", claimed.text);
    assert_eq!(claimed.json()["data"]["work"]["attributes"]["phone"], SECRET);
    let lost = face
        .post_json(&path, &json!({"recipient_id": you}).to_string())
        .await;
    assert_eq!((lost.status, code(&lost)), (409, "claim.lost".to_owned()));
    assert_eq!(lost.json()["claimed_by"], me.as_str());
    assert!(!lost.text.contains(SECRET));
    let next = format!("/api/claim-queues/{pond}:next");
    let nothing = face
        .post_json(&next, &json!({"recipient_id": you}).to_string())
        .await;
    assert_eq!((nothing.status, nothing.json()), (200, json!({"data": null})));
    let rows = face.app.engine.store.read(|tx| {
        use crate::store::Rows;
        tx.scan(&crate::store::tables::CHANGES, &(), None, usize::MAX)
    });
    assert!(
        !format!("{:?}", rows.unwrap()).contains(SECRET),
        "events never carry work"
    );
}
