//! `POST /api/rules:test` over HTTP.

use serde_json::{Value, json};

use super::declared_tests::{created, send};
use super::fixture::Face;

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_is_tried_on_invented_work() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let member = json!({"name": "Kim", "attributes": {"level": {"number_value": 3}}});
    let kim = created(&face, &format!("/api/pools/{desk}/recipients"), member).await;
    let rule = json!({"name": "seniors", "pool_id": desk, "action": {"type": "filter"},
        "expression": "pool.name == \"desk\" && recipient.attributes.level >= 3.0"});
    let rule = created(&face, "/api/rules", rule).await;
    let path = "/api/rules:test";
    let junior = json!({"attributes": {"level": {"number_value": 1}}});
    let work = json!({"kind": "t"});
    let cases = json!([{"work": work, "recipient": kim, "expect": true},
        {"work": work, "recipient": junior, "expect": true}]);
    let answer = send(&face, "POST", path, &json!({"rule_id": rule, "cases": cases})).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    let found = answer.json()["data"]["cases"].clone();
    assert_eq!(
        (&found[0]["result"], &found[0]["ok"]),
        (&json!(true), &json!(true))
    );
    assert_eq!(
        (&found[1]["result"], &found[1]["ok"]),
        (&json!(false), &json!(false))
    );
    assert!(found[1]["because"].as_str().unwrap().contains("level"), "{found}");
    assert!(
        found[0]["steps"].is_u64() && found[0]["micros"].is_u64(),
        "{found}"
    );
    let failing = json!({"expression": "work.attributes.gone == 1", "cases": [{"work": work}]});
    let failing = send(&face, "POST", path, &failing).await.json()["data"]["cases"][0].clone();
    assert_eq!(
        (&failing["result"], &failing["error"]["code"]),
        (&json!(false), &json!("rule.error"))
    );
    assert_eq!(failing.get("ok"), None);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_tried_is_refused_with_its_place() {
    let face = Face::new().await;
    let nobody = "019ad0e0-0001-7000-8000-00000000ffff";
    let work = json!({"kind": "t"});
    for (body, pointer, code) in [
        (
            json!({"expression": "nobody == 1", "cases": []}),
            "/expression",
            "rule.unknown_reference",
        ),
        (
            json!({"expression": "work.", "cases": []}),
            "/expression",
            "rule.syntax",
        ),
        (
            json!({"rule_id": nobody, "cases": []}),
            "/rule_id",
            "rule.not_found",
        ),
        (
            json!({"expression": "recipient.weight > 1.0", "cases": [{"work": work}]}),
            "/cases/0/recipient",
            "field.required",
        ),
        (
            json!({"expression": "true", "cases": [{"work": work, "recipient": {}}]}),
            "/cases/0/recipient",
            "field.value",
        ),
        (
            json!({"expression": "recipient.weight > 1.0", "cases": [{"work": work, "recipient": nobody}]}),
            "/cases/0/recipient",
            "recipient.not_found",
        ),
    ] {
        let answer = send(&face, "POST", "/api/rules:test", &body).await;
        let error: Value = answer.json()["errors"][0].clone();
        let told = (answer.status, error["pointer"].as_str(), error["code"].as_str());
        assert_eq!(told, (422, Some(pointer), Some(code)), "{}", answer.text);
    }
}
