//! Hostile input of routing: wrong kinds, huge, empty, twice, out of order. Each is answered with a refusal that is short and
//! quick; nothing is written and nothing falls over.

use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::time::Instant;

use super::declared_tests::{created, data, send};
use super::fixture::{Answer, Face};

/// A refusal may take this long on a busy machine in a debug build.
const PATIENCE: Duration = Duration::from_secs(20);
/// No refusal is longer.
const ANSWER_BYTES_MAX: usize = 600_000;

async fn refused(face: &Face, path: &str, body: &Value) -> Answer {
    let began = Instant::now();
    let answer = send(face, "POST", path, body).await;
    let start: String = body.to_string().chars().take(120).collect();
    assert!(
        began.elapsed() < PATIENCE,
        "{path} {start}: {:?}",
        began.elapsed()
    );
    assert!(
        answer.text.len() < ANSWER_BYTES_MAX,
        "{path} {start}: {} bytes",
        answer.text.len()
    );
    assert!(
        [400, 404, 409, 413, 422].contains(&answer.status),
        "{path} {start}: {} {}",
        answer.status,
        answer.text.chars().take(300).collect::<String>()
    );
    answer
}

/// Values of every kind of JSON.
fn kinds() -> Vec<Value> {
    vec![
        json!(true),
        json!(-1),
        json!(1.5),
        json!(1e300),
        json!(u64::MAX),
        json!(""),
        json!("\u{0}"),
        json!("x"),
        json!([]),
        json!([[]]),
        json!([1]),
        json!({}),
        json!({"a": 1}),
        json!("𝒳".repeat(5_000)),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_of_the_wrong_kind_is_a_fault_or_means_what_it_says() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    created(
        &face,
        &format!("/api/pools/{desk}/recipients"),
        json!({"name": "Kim"}),
    )
    .await;
    let of_body = [
        "work",
        "pool_id",
        "strategy",
        "strategy_options",
        "exclude_recipient_ids",
        "recipient_id",
        "force",
        "dry_run",
        "explain",
        "idempotency",
        "",
    ];
    let of_work = [
        "id",
        "external_id",
        "kind",
        "source",
        "priority",
        "attributes",
        "tags",
        "units",
        "location",
        "timezone",
        "deadline_at",
        "parent_decision_id",
        "consent",
        "ask",
        "a/b~c",
    ];
    for value in kinds() {
        for name in of_body {
            let mut body = json!({"work": {"kind": "t"}, "pool_id": desk});
            body[name] = value.clone();
            let answer = send(&face, "POST", "/api/route", &body).await;
            assert!(
                [200, 404, 409, 422].contains(&answer.status),
                "{name} {value}: {}",
                answer.text
            );
        }
        for name in of_work {
            let mut work = json!({"kind": "t"});
            work[name] = value.clone();
            let answer = send(
                &face,
                "POST",
                "/api/route",
                &json!({"work": work, "pool_id": desk}),
            )
            .await;
            assert!(
                [200, 422].contains(&answer.status),
                "{name} {value}: {}",
                answer.text
            );
        }
        let answer = send(&face, "POST", "/api/route", &value).await;
        assert!([400, 422].contains(&answer.status), "{value}: {}", answer.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fault_in_a_list_has_the_place_of_its_element() {
    let face = Face::new().await;
    let body = json!({"work": {"kind": "t"}, "exclude_recipient_ids": [5, "no id"]});
    let answer = refused(&face, "/api/route", &body).await.json();
    let pointers: Vec<&str> = answer["errors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|error| error["pointer"].as_str().unwrap())
        .collect();
    assert_eq!(pointers, ["/exclude_recipient_ids/0", "/exclude_recipient_ids/1"]);
}

/// Names and numbers of fields that make a refusal expensive: its cost is bounded, and what it says too.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_huge_is_refused_shortly() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let long = "k".repeat(1_500_000);
    let many: Map<String, Value> = (0..100_000)
        .map(|number| (number.to_string(), json!(1)))
        .collect();
    let mut deep = json!(1);
    for _ in 0..60 {
        deep = json!({ "d".repeat(1_000): deep });
    }
    let deep_lists: Map<String, Value> = (0..2_000)
        .map(|number| (number.to_string(), json!(vec![0; 300])))
        .collect();
    let works = [
        json!({"kind": "t", long.clone(): 1}),
        json!({"kind": "t", "attributes": {long.clone(): many.clone()}}),
        json!({"kind": "t", "attributes": {"a": deep}}),
        json!({"kind": "t", "attributes": deep_lists}),
        json!({"kind": long}),
        json!({"kind": "t", "tags": vec!["x"; 100_000]}),
        json!({"kind": "t", "timezone": long}),
        json!(many),
    ];
    for work in &works {
        refused(&face, "/api/route", &json!({"work": work, "pool_id": desk})).await;
        let tried = json!({"expression": "true", "cases": [{"work": work}]});
        refused(&face, "/api/rules:test", &tried).await;
    }
    let named = json!({"work": {"kind": "t"}, "pool_id": desk, "strategy_options": {long.clone(): 1}});
    refused(&face, "/api/route", &named).await;
    let named = json!({"work": {"kind": "t"}, "pool_id": desk, "strategy": "random", "strategy_options": {"random": many}});
    refused(&face, "/api/route", &named).await;
    for path in [
        "/api/pools",
        "/api/rules",
        "/api/claim-queues",
        "/api/shadow-campaigns",
    ] {
        refused(&face, path, &json!({"name": "x", long.clone(): 1})).await;
        refused(&face, path, &json!(many)).await;
        refused(&face, path, &json!({ "name": long })).await;
    }
    let recipients = format!("/api/pools/{desk}/recipients");
    refused(
        &face,
        &recipients,
        &json!({"name": "x", "attributes": {long.clone(): many}}),
    )
    .await;
    refused(
        &face,
        &recipients,
        &json!({"name": "x", "attributes": {"a": {long.clone(): 1}}}),
    )
    .await;
    refused(
        &face,
        &recipients,
        &json!({"name": "x", "tags": vec!["x"; 100_000]}),
    )
    .await;
}

/// Verbs on assignments with every kind of value, twice, and after their end.
#[tokio::test(flavor = "multi_thread")]
async fn assignments_take_only_what_they_know() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let member = json!({"name": "Kim", "capacity": {"max_concurrent": 1000}});
    created(&face, &format!("/api/pools/{desk}/recipients"), member).await;
    let held = || async {
        let body = json!({"work": {"kind": "t"}, "pool_id": desk});
        let answer = send(&face, "POST", "/api/route", &body).await.json();
        answer["data"]["winners"][0]["assignment_id"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    let id = held().await;
    for value in kinds() {
        for (verb, name) in [
            ("complete", "value"),
            ("complete", "results"),
            ("return", "reroute"),
            ("return", "reason"),
            ("reject", "reason"),
            ("accept", "x"),
            ("renew", "x"),
        ] {
            if name == "reroute" && value.is_boolean() || name == "reason" && value.is_string() {
                continue;
            }
            let path = format!("/api/assignments/{id}:{verb}");
            let mut body = Map::new();
            body.insert(name.to_owned(), value.clone());
            refused(&face, &path, &Value::Object(body)).await;
        }
    }
    assert_eq!(
        data(&face, &format!("/api/assignments/{id}")).await["state"],
        "open"
    );
    let huge = json!({"result": "x".repeat(2_000_000)});
    refused(&face, &format!("/api/assignments/{id}:complete"), &huge).await;
    let long = json!({"reason": "x".repeat(5_000)});
    refused(&face, &format!("/api/assignments/{id}:reject"), &long).await;
    // Whatever was done last stands; nothing is done twice.
    for end in ["complete", "return", "reject"] {
        let id = held().await;
        let path = |verb: &str| format!("/api/assignments/{id}:{verb}");
        assert_eq!(send(&face, "POST", &path(end), &json!({})).await.status, 200);
        for verb in ["accept", "renew", "reject"] {
            let answer = send(&face, "POST", &path(verb), &json!({})).await;
            assert_eq!(answer.status, 409, "{verb} after {end}: {}", answer.text);
        }
    }
    for nobody in ["x", "019ad0f2-7c11-7a3e-9b52-3c1e5a7d0a01", "%00", "019AD0F2"] {
        let path = format!("/api/assignments/{nobody}:accept");
        assert_eq!(refused(&face, &path, &json!({})).await.status, 404);
    }
    let counted = send(&face, "POST", "/api/routing:reconcile", &json!({}))
        .await
        .json();
    assert_eq!(counted["data"]["differences"], json!([]), "{counted}");
}

/// 43: a refusal of a claim tells what the recipient is, and nothing of what the work hides.
#[tokio::test(flavor = "multi_thread")]
async fn test_43_a_refused_claim_does_not_tell_what_is_hidden() {
    let face = Face::new().await;
    let pond = json!({"name": "pond", "hidden_fields": ["/attributes/phone"]});
    let pond = created(&face, "/api/claim-queues", pond).await;
    let config = json!({"routing_mode": "claim", "claim_queue_id": pond});
    let desk = created(&face, "/api/pools", json!({"name": "desk", "config": config})).await;
    let member = json!({"name": "Kim", "attributes": {"area": {"string_value": "0555"}}});
    let kim = created(&face, &format!("/api/pools/{desk}/recipients"), member).await;
    for (name, expression) in [
        (
            "false",
            "work.attributes.phone.startsWith(recipient.attributes.area)",
        ),
        ("broken", "work.attributes.phone == recipient.attributes.gone"),
    ] {
        let rule =
            json!({"name": name, "pool_id": desk, "action": {"type": "filter"}, "expression": expression});
        let rule = created(&face, "/api/rules", rule).await;
        let body = json!({"work": {"kind": "lead", "attributes": {"phone": "0444-7777"}}, "pool_id": desk});
        let decision = send(&face, "POST", "/api/route", &body).await.json();
        let outcome = &decision["data"]["outcome"];
        let items = face.get(&format!("/api/claim-queues/{pond}/items")).await;
        assert!(!items.text.contains("7777"), "{}", items.text);
        if let Some(item) = items.json()["data"][0]["id"].as_str() {
            let path = format!("/api/claim-queues/{pond}/items/{item}:claim");
            let answer = send(&face, "POST", &path, &json!({"recipient_id": kim})).await;
            assert_eq!(answer.status, 422, "{}", answer.text);
            assert!(!answer.text.contains("7777"), "{}", answer.text);
            let next = format!("/api/claim-queues/{pond}:next");
            let next = send(&face, "POST", &next, &json!({"recipient_id": kim})).await;
            assert!(!next.text.contains("7777"), "{}", next.text);
        } else {
            assert_eq!(outcome, "queued", "{decision}");
        }
        assert_eq!(
            send(&face, "DELETE", &format!("/api/rules/{rule}"), &json!({}))
                .await
                .status,
            200
        );
    }
}

/// Claims of every kind of value, of what is no queue, and twice.
#[tokio::test(flavor = "multi_thread")]
async fn claims_take_only_what_they_know() {
    let face = Face::new().await;
    let pond = created(&face, "/api/claim-queues", json!({"name": "pond"})).await;
    let config = json!({"routing_mode": "claim", "claim_queue_id": pond});
    let desk = created(&face, "/api/pools", json!({"name": "desk", "config": config})).await;
    let kim = created(
        &face,
        &format!("/api/pools/{desk}/recipients"),
        json!({"name": "Kim"}),
    )
    .await;
    let body = json!({"work": {"kind": "lead"}, "pool_id": desk});
    let item = send(&face, "POST", "/api/route", &body).await.json()["data"]["item_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let claim = format!("/api/claim-queues/{pond}/items/{item}:claim");
    let next = format!("/api/claim-queues/{pond}:next");
    for value in kinds() {
        for path in [&claim, &next] {
            refused(&face, path, &json!({"recipient_id": value})).await;
            refused(&face, path, &json!({"recipient_id": kim, "x": value})).await;
        }
    }
    let nobody = "019ad0f2-7c11-7a3e-9b52-3c1e5a7d0a01";
    let other = format!("/api/claim-queues/{nobody}/items/{item}:claim");
    assert_eq!(
        refused(&face, &other, &json!({"recipient_id": kim})).await.status,
        404
    );
    let stranger = refused(&face, &claim, &json!({"recipient_id": nobody})).await;
    assert_eq!(stranger.status, 422, "{}", stranger.text);
    let mine = json!({"recipient_id": kim});
    assert_eq!(send(&face, "POST", &claim, &mine).await.status, 201);
    let again = refused(&face, &claim, &mine).await;
    assert_eq!(again.json()["errors"][0]["code"], "claim.lost", "{}", again.text);
}

/// Queries and paths that nobody means: answered, never with a 500.
#[tokio::test(flavor = "multi_thread")]
async fn queries_are_read_or_refused() {
    let face = Face::new().await;
    let pond = created(&face, "/api/claim-queues", json!({"name": "pond"})).await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let paths = [
        "/api/decisions".to_owned(),
        "/api/assignments".to_owned(),
        "/api/shadow-campaigns".to_owned(),
        "/api/rules".to_owned(),
        "/api/pools".to_owned(),
        format!("/api/pools/{desk}/recipients"),
        format!("/api/queues/{desk}/items"),
        format!("/api/claim-queues/{pond}/items"),
        format!("/api/pools/{desk}/stats"),
    ];
    let queries = [
        "pagination.cursor=zz",
        "pagination.cursor=%00%ff",
        "pagination.cursor=00000000000000000000000000000000",
        "pagination.page_size=0",
        "pagination.page_size=99999999999999999999",
        "pagination.page_size=-1",
        "order=sideways",
        "from=yesterday",
        "to=9999999999999",
        "pool_id=x&pool_id=y",
        "recipient_id=%F0%9D%92%B3",
        "work_id=",
        "status=none",
        "state=open,accepted,none",
        "limit=1e9",
        "enabled=perhaps",
        "view=all",
        "reason=%25%0a",
        "nobody=1",
        "=",
        "&&&",
        "a%5Bb%5D=1",
    ];
    for path in &paths {
        for query in queries {
            let answer = face.get(&format!("{path}?{query}")).await;
            assert!(
                [200, 400, 404, 422].contains(&answer.status),
                "{path}?{query}: {} {}",
                answer.status,
                answer.text
            );
        }
    }
}

/// Replays and campaigns with every kind of value.
#[tokio::test(flavor = "multi_thread")]
async fn what_looks_on_takes_only_what_it_knows() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    let body = json!({"work": {"kind": "t"}, "pool_id": desk});
    let decision = send(&face, "POST", "/api/route", &body).await.json()["data"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    for value in kinds() {
        for name in ["pipeline", "strategy_options", "x"] {
            let mut body = Map::new();
            body.insert(name.to_owned(), value.clone());
            let path = format!("/api/decisions/{decision}:replay");
            let answer = send(&face, "POST", &path, &Value::Object(body)).await;
            assert!(
                [200, 400, 409, 422].contains(&answer.status),
                "{name} {value}: {} {}",
                answer.status,
                answer.text
            );
        }
        for name in [
            "name",
            "pool_id",
            "candidate",
            "state_mode",
            "sample_percent",
            "starts_at",
            "status",
        ] {
            let mut body = json!({"name": "trial", "pool_id": desk, "candidate": {"strategy": "random"}});
            body[name] = value.clone();
            let answer = send(&face, "POST", "/api/shadow-campaigns", &body).await;
            assert!(
                [201, 409, 422].contains(&answer.status),
                "{name} {value}: {} {}",
                answer.status,
                answer.text
            );
        }
    }
}

/// Options of a request are checked where they stand, also those of strategies that are not asked.
#[tokio::test(flavor = "multi_thread")]
async fn options_of_a_request_are_not_ignored() {
    let face = Face::new().await;
    let desk = created(&face, "/api/pools", json!({"name": "desk"})).await;
    for (options, pointer, code) in [
        (
            json!({"random": {"x": 1}}),
            "/strategy_options/random/x",
            "option.unknown",
        ),
        (
            json!({"nobody": {}}),
            "/strategy_options/nobody",
            "strategy.unknown",
        ),
        (
            json!({"power_of_two_choices": {"choices": "a"}}),
            "/strategy_options/power_of_two_choices/choices",
            "option.type",
        ),
    ] {
        let body = json!({"work": {"kind": "t"}, "pool_id": desk, "strategy_options": options});
        let answer = refused(&face, "/api/route", &body).await.json();
        assert_eq!(
            (&answer["errors"][0]["pointer"], &answer["errors"][0]["code"]),
            (&json!(pointer), &json!(code)),
            "{answer}"
        );
    }
}
