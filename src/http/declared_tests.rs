//! Declared objects over HTTP: what is merged, guarded, refused, moved and remembered.

use serde_json::{Value, json};

use super::fixture::{Answer, Face};

pub(super) const JSON: (&str, &str) = ("content-type", "application/json");

pub(super) async fn send(face: &Face, method: &str, path: &str, body: &Value) -> Answer {
    face.send(method, path, &[JSON], &body.to_string()).await
}

pub(super) async fn created(face: &Face, path: &str, body: Value) -> String {
    let answer = send(face, "POST", path, &body).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    answer.json()["data"]["id"].as_str().unwrap().to_owned()
}

pub(super) async fn data(face: &Face, path: &str) -> Value {
    let answer = face.get(path).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

/// The codes of a refusal with their places.
fn told(answer: &Answer) -> Vec<(String, String)> {
    let errors = answer.json()["errors"].as_array().unwrap().clone();
    let text = |error: &Value, field: &str| error[field].as_str().unwrap().to_owned();
    let mut told: Vec<_> = errors
        .iter()
        .map(|error| (text(error, "pointer"), text(error, "code")))
        .collect();
    told.sort_unstable();
    told
}

#[track_caller]
fn refused(answer: &Answer, status: u16, expected: &[(&str, &str)]) {
    let expected: Vec<_> = expected
        .iter()
        .map(|(at, code)| ((*at).to_owned(), (*code).to_owned()))
        .collect();
    assert_eq!(
        (answer.status, told(answer)),
        (status, expected),
        "{}",
        answer.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_03_a_patch_leaves_every_other_key_unchanged() {
    let face = Face::new().await;
    let config = json!({"routing_mode": "auto", "default_timeout": "30s", "fallback": "drop",
        "sla": {"enabled": true, "max_queue_time": "5m"}, "strategy_options": {"nearest": {"max_radius": 5}}});
    let id = created(
        &face,
        "/api/pools",
        json!({"name": "a", "config": config, "metadata": {"k": "v"}}),
    )
    .await;
    let path = format!("/api/pools/{id}");
    let patched = send(
        &face,
        "PATCH",
        &path,
        &json!({"config": {"default_timeout": "45s"}}),
    )
    .await;
    let mut expected = config.clone();
    expected["default_timeout"] = json!("45s");
    let after = patched.json()["data"].clone();
    assert_eq!(
        (&after["config"], &after["metadata"]),
        (&expected, &json!({"k": "v"}))
    );
    assert_eq!(after["record_version"], 1);
    // The same again is no change; null restores the default.
    let again = send(
        &face,
        "PATCH",
        &path,
        &json!({"config": {"default_timeout": "45s"}}),
    )
    .await;
    assert_eq!(again.json()["data"]["record_version"], 1);
    let cleared = send(
        &face,
        "PATCH",
        &path,
        &json!({"config": {"sla": null}, "metadata": {"k": null}}),
    )
    .await;
    let cleared = cleared.json()["data"].clone();
    assert!(cleared["config"].get("sla").is_none() && cleared["metadata"] == json!({}));
    let whole = data(&face, &format!("{path}?view=effective")).await;
    assert_eq!(
        (
            &whole["config"]["queue_ttl_seconds"],
            &whole["config"]["busy_policy"]
        ),
        (&json!(3600), &json!("exclude"))
    );
    assert!(cleared["config"].get("queue_ttl_seconds").is_none());
}

#[tokio::test(flavor = "multi_thread")]
async fn test_02_what_names_other_objects_is_looked_up() {
    let face = Face::new().await;
    let id = created(&face, "/api/pools", json!({"name": "a"})).await;
    let path = format!("/api/pools/{id}");
    let nobody = "019ad0e0-0001-7000-8000-00000000ffff";
    let sent = json!({"parent_pool_id": id, "config": {"overflow_pool_id": id, "catchall_pool_id": nobody,
        "sla": {"escalation_pool_id": id}, "routing_mode": "claim", "claim_queue_id": nobody,
        "strategy_options": {"sticky": {"ttll": "1h"}},
        "strategy_pipelines": {"p": {"stages": [{"pick": {"strategy": "random"}}], "fallback": [{"overflow": "pool:none"}]}}}});
    let expected = [
        ("/config/catchall_pool_id", "pool.not_found"),
        ("/config/claim_queue_id", "claim_queue.not_found"),
        ("/config/overflow_pool_id", "pool.self_target"),
        ("/config/sla/escalation_pool_id", "pool.self_target"),
        ("/config/strategy_options/sticky/ttll", "option.unknown"),
        (
            "/config/strategy_pipelines/p/fallback/0/overflow",
            "pipeline.target_missing",
        ),
        ("/parent_pool_id", "pool.cycle"),
    ];
    refused(&send(&face, "PATCH", &path, &sent).await, 422, &expected);
    refused(
        &send(&face, "POST", "/api/pools", &json!({"name": "a"})).await,
        409,
        &[("/name", "pool.name_taken")],
    );
    // Eight levels are allowed, and no circle.
    let mut above = id.clone();
    for level in 2..=8 {
        above = created(
            &face,
            "/api/pools",
            json!({"name": level.to_string(), "parent_pool_id": above}),
        )
        .await;
    }
    let deeper = send(
        &face,
        "POST",
        "/api/pools",
        &json!({"name": "9", "parent_pool_id": above}),
    )
    .await;
    refused(&deeper, 422, &[("/parent_pool_id", "pool.too_deep")]);
    let circle = send(&face, "PATCH", &path, &json!({"parent_pool_id": above})).await;
    assert_eq!(circle.status, 422, "{}", circle.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn circles_of_overflow_and_open_budgets_are_warned_of() {
    let face = Face::new().await;
    let a = created(&face, "/api/pools", json!({"name": "a"})).await;
    let config = json!({"fallback": "overflow", "overflow_pool_id": a});
    let b = created(&face, "/api/pools", json!({"name": "b", "config": config})).await;
    let config = json!({"overflow_pool_id": b, "fallback": "overflow", "allow_over_capacity": true});
    let answer = send(
        &face,
        "PATCH",
        &format!("/api/pools/{a}"),
        &json!({"config": config}),
    )
    .await;
    let codes: Vec<Value> = answer.json()["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].clone())
        .collect();
    assert_eq!(
        codes,
        ["config.over_capacity_without_budget", "config.pool_cycle"]
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_04_the_switch_is_guarded_and_of_two_operators_one_wins() {
    let face = Face::new().await;
    let id = created(&face, "/api/pools", json!({"name": "a"})).await;
    let (path, one) = (format!("/api/pools/{id}:set_enabled"), format!("/api/pools/{id}"));
    let switch = |enabled: bool, version: u64| json!({"enabled": enabled, "expected_version": version});
    assert_eq!(
        send(&face, "POST", &path, &switch(false, 0)).await.json()["data"]["record_version"],
        1
    );
    let stale = send(&face, "POST", &path, &switch(true, 7)).await;
    assert_eq!((stale.status, &stale.json()["current_version"]), (412, &json!(1)));
    assert_eq!(data(&face, &one).await["config"]["kill_switch"], true);
    let (off, on) = (switch(false, 1), switch(true, 1));
    let (first, second) = tokio::join!(send(&face, "POST", &path, &off), send(&face, "POST", &path, &on));
    let mut statuses = [first.status, second.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 412]);
    assert_eq!(data(&face, &one).await["record_version"], 2);
    // Version 0 is guarded by `If-Match` alone.
    let header = [JSON, ("if-match", "\"0\"")];
    let guarded = face
        .send("PATCH", &one, &header, "{\"description\": \"d\"}")
        .await;
    assert_eq!(guarded.status, 412);
}

#[tokio::test(flavor = "multi_thread")]
async fn test_05_reasons_have_a_length_and_the_switch_is_no_field() {
    let face = Face::new().await;
    let id = created(&face, "/api/pools", json!({"name": "a"})).await;
    let (path, one) = (format!("/api/pools/{id}:set_enabled"), format!("/api/pools/{id}"));
    let with = |length: usize| json!({"enabled": false, "reason": "\u{e9}".repeat(length)});
    refused(
        &send(&face, "POST", &path, &with(4_097)).await,
        422,
        &[("/reason", "field.too_long")],
    );
    assert_eq!(send(&face, "POST", &path, &with(4_096)).await.status, 200);
    refused(
        &send(&face, "POST", &path, &json!({})).await,
        422,
        &[("/enabled", "field.required")],
    );
    let switched = |on: bool| json!({"config": {"kill_switch": on}});
    refused(
        &send(&face, "PATCH", &one, &switched(false)).await,
        422,
        &[("/config/kill_switch", "field.output_only")],
    );
    // What is so already may be said.
    assert_eq!(send(&face, "PATCH", &one, &switched(true)).await.status, 200);
    let new = json!({"name": "b", "config": {"kill_switch": true}});
    refused(
        &send(&face, "POST", "/api/pools", &new).await,
        422,
        &[("/config/kill_switch", "field.output_only")],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_06_a_deleted_pool_leaves_its_recipients_and_those_who_name_it_are_told() {
    let face = Face::new().await;
    let id = created(&face, "/api/pools", json!({"name": "a"})).await;
    let other = created(
        &face,
        "/api/pools",
        json!({"name": "b", "config": {"overflow_pool_id": id}}),
    )
    .await;
    let only = created(
        &face,
        &format!("/api/pools/{id}/recipients"),
        json!({"name": "only"}),
    )
    .await;
    let both = json!({"name": "both", "pool_ids": [other]});
    let both = created(&face, &format!("/api/pools/{id}/recipients"), both).await;
    let rule = json!({"name": "own", "pool_id": id, "expression": "true", "action": {"type": "filter"}});
    let rule = created(&face, "/api/rules", rule).await;
    let select =
        json!({"name": "to", "expression": "true", "action": {"type": "select_pool", "pool_id": id}});
    created(&face, "/api/rules", select).await;
    let shown = data(&face, &format!("/api/pools/{id}")).await;
    assert_eq!(
        (&shown["recipient_ids"], &shown["rule_ids"]),
        (&json!([both, only]), &json!([rule]))
    );
    let kept = send(
        &face,
        "DELETE",
        &format!("/api/pools/{id}?if_unreferenced=true"),
        &json!({}),
    )
    .await;
    refused(&kept, 409, &[("", "pool.referenced")]);
    let gone = send(&face, "DELETE", &format!("/api/pools/{id}"), &json!({}))
        .await
        .json();
    assert_eq!(gone["data"]["detached_recipients"], 2);
    assert_eq!(
        (
            &gone["data"]["removed_rules"],
            gone["warnings"].as_array().unwrap().len()
        ),
        (&json!(1), 2)
    );
    let left = data(&face, &format!("/api/recipients/{only}")).await;
    assert_eq!((&left["pool_id"], &left["pool_ids"]), (&Value::Null, &json!([])));
    let left = data(&face, &format!("/api/recipients/{both}")).await;
    assert_eq!(
        (&left["pool_id"], &left["record_version"]),
        (&json!(other), &json!(1))
    );
    assert_eq!(face.get(&format!("/api/rules/{rule}")).await.status, 404);
    // Who names what went may still be changed in another way.
    let described = send(
        &face,
        "PATCH",
        &format!("/api/pools/{other}"),
        &json!({"description": "d"}),
    )
    .await;
    assert_eq!(described.status, 200, "{}", described.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn test_07_the_primary_membership_moves_and_the_others_stay() {
    let face = Face::new().await;
    let mut pools = Vec::new();
    for name in ["a", "b", "c"] {
        pools.push(created(&face, "/api/pools", json!({"name": name})).await);
    }
    let [a, b, c] = [&pools[0], &pools[1], &pools[2]];
    let id = created(
        &face,
        &format!("/api/pools/{a}/recipients"),
        json!({"name": "r", "pool_ids": [b]}),
    )
    .await;
    let path = format!("/api/recipients/{id}");
    let moved = send(&face, "PATCH", &path, &json!({"pool_id": c})).await.json();
    assert_eq!(
        (&moved["data"]["pool_id"], &moved["data"]["pool_ids"]),
        (&json!(c), &json!([c, b]))
    );
    assert_eq!(
        data(&face, &format!("/api/pools/{a}")).await["recipient_ids"],
        json!([])
    );
    let joined = send(
        &face,
        "PUT",
        &format!("/api/pools/{a}/recipients/{id}"),
        &json!({}),
    )
    .await
    .json();
    assert_eq!(joined["data"]["pool_ids"], json!([c, b, a]));
    for (gone, left) in [(c, json!([b, a])), (b, json!([a])), (a, json!([]))] {
        let path = format!("/api/pools/{gone}/recipients/{id}");
        assert_eq!(
            send(&face, "DELETE", &path, &json!({})).await.json()["data"]["pool_ids"],
            left
        );
    }
    assert_eq!(data(&face, &path).await["pool_id"], Value::Null);
    // Names are unique in each pool.
    created(
        &face,
        &format!("/api/pools/{a}/recipients"),
        json!({"name": "r", "external_id": "e"}),
    )
    .await;
    let taken = send(
        &face,
        "PUT",
        &format!("/api/pools/{a}/recipients/{id}"),
        &json!({}),
    )
    .await;
    refused(&taken, 409, &[("/name", "recipient.name_taken")]);
    let taken = send(&face, "PATCH", &path, &json!({"external_id": "e"})).await;
    refused(&taken, 409, &[("/external_id", "recipient.external_id_taken")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn test_09_pause_keeps_memberships_and_numbers() {
    let face = Face::new().await;
    let a = created(&face, "/api/pools", json!({"name": "a"})).await;
    let id = created(&face, &format!("/api/pools/{a}/recipients"), json!({"name": "r"})).await;
    let pause = format!("/api/recipients/{id}/pause");
    let paused = send(&face, "POST", &pause, &json!({})).await.json()["data"].clone();
    assert_eq!(
        (&paused["state"], &paused["pool_ids"]),
        (&json!("RECIPIENT_STATE_PAUSED"), &json!([a]))
    );
    assert_eq!(
        (&paused["record_version"], &paused["capacity"]["current"]),
        (&json!(1), &json!(0))
    );
    let again = send(&face, "POST", &pause, &json!({})).await.json();
    assert_eq!(again["data"]["record_version"], 1);
    let listed = |filter: &str| format!("/api/pools/{a}/recipients?{filter}");
    assert_eq!(data(&face, &listed("eligible=true")).await, json!([]));
    assert_eq!(
        data(&face, &listed("state=RECIPIENT_STATE_PAUSED")).await,
        json!([again["data"]])
    );
    assert_eq!(face.get(&listed("state=PAUSED")).await.status, 400);
    send(&face, "POST", &format!("/api/recipients/{id}/resume"), &json!({})).await;
    assert_eq!(
        data(&face, &listed("eligible=true"))
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_51_texts_of_rules_are_refused_where_they_stand() {
    let face = Face::new().await;
    let a = created(&face, "/api/pools", json!({"name": "a"})).await;
    let rule = |expression: &str, kind: &str, of: Option<&str>| json!({"name": "r", "expression": expression, "pool_id": of, "action": {"type": kind}});
    let unknown = send(
        &face,
        "POST",
        "/api/rules",
        &rule("work.kind == \"a\"\n && nobody.x", "drop", None),
    )
    .await;
    refused(&unknown, 422, &[("/expression", "rule.unknown_reference")]);
    let error = unknown.json()["errors"][0].clone();
    assert_eq!(error["line"], 2);
    assert!(error["detail"].as_str().unwrap().contains("nobody"), "{error}");
    let alone = send(
        &face,
        "POST",
        "/api/rules",
        &rule("recipient.weight > 1.0", "drop", None),
    )
    .await;
    refused(&alone, 422, &[("/expression", "rule.unknown_reference")]);
    let sum = format!("1{} == 1", "+1".repeat(1_386));
    assert_eq!(
        send(&face, "POST", "/api/rules", &rule(&sum, "drop", None))
            .await
            .status,
        422
    );
    let wrong = send(&face, "POST", "/api/rules", &rule("true", "filter", None)).await;
    refused(&wrong, 422, &[("/action/type", "rule.action")]);
    let wrong = send(&face, "POST", "/api/rules", &rule("true", "redirect", Some(&a))).await;
    refused(&wrong, 422, &[("/action/pool_id", "field.required")]);
    let window = json!({"name": "r", "expression": "true", "action": {"type": "drop"}, "continue": true,
        "valid_from": "2026-01-02T00:00:00Z", "valid_until": "2026-01-01T00:00:00Z"});
    let window = send(&face, "POST", "/api/rules", &window).await;
    refused(
        &window,
        422,
        &[("/continue", "rule.action"), ("/valid_until", "rule.window")],
    );
}

#[tokio::test(flavor = "multi_thread")]
#[expect(
    clippy::too_many_lines,
    reason = "the life of some rules, one after the other"
)]
async fn rules_are_listed_changed_and_warned_of() {
    let face = Face::new().await;
    let a = created(
        &face,
        "/api/pools",
        json!({"name": "a", "strategy": "longest_idle"}),
    )
    .await;
    created(&face, &format!("/api/pools/{a}/recipients"), json!({"name": "r"})).await;
    let boost = json!({"name": "b", "pool_id": a, "expression": "recipient.attributes.level > 1.0",
        "action": {"type": "boost", "boost": 2}});
    let answer = send(&face, "POST", "/api/rules", &boost).await.json();
    let codes: Vec<Value> = answer["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["code"].clone())
        .collect();
    assert_eq!(codes, ["rule.boost_no_effect", "rule.unknown_attribute"]);
    let drop = |name: &str, priority: u32| json!({"name": name, "priority": priority, "expression": "true", "action": {"type": "drop"}});
    created(&face, "/api/rules", drop("first", 1)).await;
    let second = send(&face, "POST", "/api/rules", &drop("second", 2)).await.json();
    assert_eq!(second["warnings"][0]["code"], "rule.unreachable");
    let id = second["data"]["id"].as_str().unwrap();
    let off = send(
        &face,
        "PATCH",
        &format!("/api/rules/{id}"),
        &json!({"enabled": false}),
    )
    .await
    .json();
    assert_eq!(
        (&off["data"]["enabled"], &off["data"]["record_version"]),
        (&json!(false), &json!(1))
    );
    let to = json!({"action": {"type": "select_pool", "pool_id": a}});
    let to = send(&face, "PATCH", &format!("/api/rules/{id}"), &to)
        .await
        .json();
    assert_eq!(to["data"]["action"], json!({"type": "select_pool", "pool_id": a}));
    assert_eq!(
        data(&face, "/api/rules?enabled=false")
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        data(&face, &format!("/api/rules?pool_id={a}"))
            .await
            .as_array()
            .unwrap()
            .len(),
        1
    );
    assert_eq!(
        data(&face, "/api/rules?pool_id=").await.as_array().unwrap().len(),
        2
    );
    assert_eq!(
        data(&face, "/api/strategies?kind=recipe")
            .await
            .as_array()
            .unwrap()
            .len(),
        7
    );
    assert_eq!(data(&face, "/api/strategies/sticky").await["key"], "sticky");
    refused(
        &face.get("/api/strategies/stiky").await,
        404,
        &[("", "strategy.not_found")],
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_trait_in_use_stays() {
    let face = Face::new().await;
    let declared = json!({"type": "set", "op": "contains", "required": true});
    let first = send(&face, "PUT", "/api/traits/language", &declared).await;
    assert_eq!(
        (first.status, &first.json()["data"]["record_version"]),
        (200, &json!(0))
    );
    let pipeline = json!({"stages": [{"filter": {"trait": "language"}}, {"pick": {"strategy": "random"}}]});
    let config = json!({"strategy_pipelines": {"p": pipeline}});
    let id = created(
        &face,
        "/api/pools",
        json!({"name": "a", "strategy": "pipeline:p", "config": config}),
    )
    .await;
    refused(
        &send(&face, "DELETE", "/api/traits/language", &json!({})).await,
        409,
        &[("", "trait.in_use")],
    );
    send(&face, "DELETE", &format!("/api/pools/{id}"), &json!({})).await;
    assert_eq!(
        send(&face, "DELETE", "/api/traits/language", &json!({}))
            .await
            .status,
        200
    );
    let wrong = json!({"type": "bool", "op": "gte", "required": true, "preferred": true});
    refused(
        &send(&face, "PUT", "/api/traits/x", &wrong).await,
        422,
        &[("/op", "trait.op"), ("/preferred", "trait.either")],
    );
}
