//! What rules say of themselves once work is routed: those that cannot be evaluated, and those that are never true.

use serde_json::{Value, json};

use super::declared_tests::{created, data, send};
use super::fixture::Face;

async fn route(face: &Face, attributes: Value) -> Value {
    let body = json!({"work": {"kind": "ticket", "attributes": attributes}});
    let answer = send(face, "POST", "/api/route", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

fn rule(name: &str, pool: &str, expression: &str, priority: u32) -> Value {
    json!({"name": name, "expression": expression, "priority": priority,
        "action": {"type": "select_pool", "pool_id": pool}})
}

/// 50 over the API: the rule that fails says so wherever it is shown, and begins anew when it is changed.
#[tokio::test(flavor = "multi_thread")]
async fn test_50_a_rule_that_fails_in_production_says_so() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    created(
        &face,
        &format!("/api/pools/{desk}/recipients"),
        json!({"name": "Kim"}),
    )
    .await;
    let broken = created(
        &face,
        "/api/rules",
        rule("broken", &desk, "work.attributes.tier == \"vip\"", 1),
    )
    .await;
    let all = created(&face, "/api/rules", rule("all", &desk, "true", 2)).await;
    let path = format!("/api/rules/{broken}");
    assert_eq!(data(&face, &path).await.get("evaluation_errors"), None);
    // A trial counts nothing.
    let dry = json!({"work": {"kind": "t"}, "dry_run": true});
    send(&face, "POST", "/api/route", &dry).await;
    assert_eq!(data(&face, &path).await.get("evaluation_errors"), None);
    let first = route(&face, json!({})).await;
    assert_eq!(first["outcome"], "assigned", "other rules still run: {first}");
    let second = route(&face, json!({})).await;
    let answer = face.get(&path).await.json();
    let errors = &answer["data"]["evaluation_errors"];
    assert_eq!(
        (&errors["count"], &errors["last_decision_id"]),
        (&json!(2), &second["id"])
    );
    assert!(
        errors["last_error"].as_str().unwrap().contains("tier"),
        "{errors}"
    );
    assert_eq!(
        (&answer["warnings"][0]["code"], &answer["warnings"][0]["pointer"]),
        (&json!("rule.error"), &json!("/expression"))
    );
    let listed = data(&face, "/api/rules").await;
    let counts: Vec<&Value> = listed
        .as_array()
        .unwrap()
        .iter()
        .map(|one| &one["evaluation_errors"]["count"])
        .collect();
    assert!(
        counts.contains(&&json!(2)) && counts.contains(&&Value::Null),
        "{listed}"
    );
    assert_eq!(
        face.get(&format!("/api/rules/{all}"))
            .await
            .json()
            .get("warnings"),
        None
    );
    // It may be sent back as it was shown, and not otherwise.
    let echo = json!({"evaluation_errors": errors});
    assert_eq!(send(&face, "PATCH", &path, &echo).await.status, 200);
    let other = json!({"evaluation_errors": {"count": 0}});
    let refused = send(&face, "PATCH", &path, &other).await;
    assert_eq!(
        (refused.status, &refused.json()["errors"][0]["code"]),
        (422, &json!("field.output_only"))
    );
    let mended = json!({"expression": "work.attributes.?tier.orValue(\"\") == \"vip\""});
    assert_eq!(send(&face, "PATCH", &path, &mended).await.status, 200);
    route(&face, json!({})).await;
    assert_eq!(data(&face, &path).await.get("evaluation_errors"), None);
}

/// A filter that fails for each of several members fails once in that decision.
#[tokio::test(flavor = "multi_thread")]
async fn a_filter_that_fails_is_counted_once_a_decision() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    for name in ["Kim", "Lee", "Mo"] {
        created(
            &face,
            &format!("/api/pools/{desk}/recipients"),
            json!({"name": name}),
        )
        .await;
    }
    let filter = json!({"name": "seniors", "pool_id": desk, "action": {"type": "filter"},
        "expression": "recipient.attributes.level >= 3.0"});
    let filter = created(&face, "/api/rules", filter).await;
    let body = json!({"work": {"kind": "t"}, "pool_id": desk});
    send(&face, "POST", "/api/route", &body).await;
    let shown = data(&face, &format!("/api/rules/{filter}")).await;
    assert_eq!(shown["evaluation_errors"]["count"], 1, "{shown}");
}

fn codes(answer: &Value) -> Vec<&str> {
    let warnings = answer["warnings"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    warnings.iter().map(|one| one["code"].as_str().unwrap()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_rule_that_was_never_true_is_warned_of() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let member = json!({"name": "Kim", "attributes": {"level": {"number_value": 3}}});
    created(&face, &format!("/api/pools/{desk}/recipients"), member).await;
    let vip = |name: &str| rule(name, &desk, "work.attributes.tier == \"vip\"", 5);
    // Too little was routed to say anything.
    for _ in 0..9 {
        let body = json!({"work": {"kind": "t", "attributes": {"tier": "std"}}, "pool_id": desk});
        send(&face, "POST", "/api/route", &body).await;
    }
    let early = send(&face, "POST", "/api/rules", &vip("early")).await.json();
    assert_eq!(codes(&early), [""; 0], "{early}");
    let body = json!({"work": {"kind": "t", "attributes": {"tier": "std"}}, "pool_id": desk});
    send(&face, "POST", "/api/route", &body).await;
    let never = send(
        &face,
        "POST",
        "/api/rules",
        &rule("never", &desk, "work.attributes.tier == \"gold\"", 5),
    )
    .await;
    assert_eq!(never.status, 201, "a warning refuses nothing");
    let never = never.json();
    assert_eq!(codes(&never), ["rule.never_true"], "{never}");
    assert_eq!(
        (
            &never["warnings"][0]["pointer"],
            &never["warnings"][0]["looked_at"]
        ),
        (&json!("/expression"), &json!(10))
    );
    // A change that makes it true takes the warning away; one that is off is not asked.
    let path = format!("/api/rules/{}", never["data"]["id"].as_str().unwrap());
    let mended = json!({"expression": "work.attributes.tier == \"std\""});
    let mended = send(&face, "PATCH", &path, &mended).await.json();
    assert_eq!(codes(&mended), [""; 0], "{mended}");
    let off = json!({"expression": "work.attributes.tier == \"none\"", "enabled": false});
    let off = send(&face, "PATCH", &path, &off).await.json();
    assert_eq!(codes(&off), [""; 0], "{off}");
    // Rules about recipients are asked of the members.
    for (level, warned) in [("3.0", false), ("4.0", true)] {
        let filter = json!({"name": format!("level {level}"), "pool_id": desk, "action": {"type": "filter"},
            "expression": format!("recipient.attributes.level >= {level}")});
        let answer = send(&face, "POST", "/api/rules", &filter).await.json();
        assert_eq!(codes(&answer).contains(&"rule.never_true"), warned, "{answer}");
    }
}
