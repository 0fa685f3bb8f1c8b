//! Bundles over HTTP: all or nothing, twice the same, pruned, owned, guarded; and the examples, whose own tests must pass.

use serde_json::{Value, json};

use super::declared_tests::{created, data, send};
use super::fixture::{Answer, Face};
use crate::config;
use crate::domain::routing::bundle::yaml;

const DIFF: &str = "/api/routing/bundle:diff";
const APPLY: &str = "/api/routing/bundle:apply";
const EXPORT: &str = "/api/routing/bundle";

/// The examples of the handbook.
const EXAMPLES: [&str; 4] = [
    include_str!("../../config/examples/support-desk/desk.yaml"),
    include_str!("../../config/examples/lead-distribution/leads.yaml"),
    include_str!("../../config/examples/model-routing/models.yaml"),
    include_str!("../../config/examples/on-call/offices.yaml"),
];

fn bundle(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "desk"},
        "pools": [{"name": "front", "config": {"fallback": "overflow", "overflow_pool": "back"}}, {"name": "back"}],
        "recipients": [{"name": "Kim", "pools": ["front"], "external_id": "k"}, {"name": "Lee", "pools": ["back"]}],
        "rules": [{"name": "all", "expression": "true", "action": {"type": "select_pool", "pool": "front"}}]});
    change(&mut value);
    value
}

async fn apply(face: &Face, body: Value) -> Value {
    let answer = send(face, "POST", APPLY, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

fn code(answer: &Answer) -> (u16, String) {
    let code = answer.json()["errors"][0]["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned();
    (answer.status, code)
}

/// All objects with their versions.
async fn everything(face: &Face) -> Value {
    let mut all = json!({"rules": data(face, "/api/rules").await, "traits": data(face, "/api/traits").await});
    let pools = data(face, "/api/pools").await;
    for pool in pools.as_array().unwrap() {
        let id = pool["id"].as_str().unwrap();
        all[id] = data(face, &format!("/api/pools/{id}/recipients")).await;
    }
    all["pools"] = pools;
    all
}

#[tokio::test(flavor = "multi_thread")]
async fn the_examples_pass_their_own_tests_and_are_noop_the_second_time() {
    for yaml in EXAMPLES {
        let face = Face::new().await;
        let looked = send(&face, "POST", DIFF, &json!({"bundle": yaml})).await;
        assert_eq!(looked.status, 200, "{}", looked.text);
        let looked = looked.json()["data"].clone();
        for test in looked["tests"].as_array().unwrap() {
            assert_eq!(test["ok"], true, "{test}");
        }
        let first = apply(&face, json!({"bundle": yaml})).await;
        assert_eq!(first["counts"], looked["counts"]);
        assert_eq!(first["counts"]["noop"], 0);
        let before = everything(&face).await;
        let second = apply(&face, json!({"bundle": yaml, "prune": true})).await;
        assert_eq!(
            (&second["changes"], &second["digest"]),
            (&json!([]), &first["digest"])
        );
        let exported = data(&face, EXPORT).await;
        assert_eq!(exported["digest"], first["digest"]);
        for again in [&exported["yaml"], &exported["bundle"]] {
            let third = apply(&face, json!({"bundle": again, "prune": true})).await;
            assert_eq!(third["changes"], json!([]));
        }
        assert_eq!(everything(&face).await, before);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_desk_routes_as_its_bundle_says() {
    let face = Face::new().await;
    apply(&face, json!({"bundle": EXAMPLES[0]})).await;
    let ticket = json!({"work": {"kind": "ticket", "attributes": {"skill": "billing", "language": "es"}, "tags": ["refund"]}});
    // It is a Saturday: no shift of the billing desk; two days later there is.
    for (days, pool, name) in [
        (0, "general-desk", "Lee Park"),
        (2, "billing-desk", "Jordan Reyes"),
    ] {
        face.clock.advance(days * 86_400_000);
        let routed = send(&face, "POST", "/api/route", &ticket).await.json()["data"].clone();
        assert_eq!(
            (&routed["outcome"], &routed["pool"]["name"]),
            (&json!("assigned"), &json!(pool))
        );
        let winner = routed["winners"][0]["recipient_id"].as_str().unwrap();
        let winner = data(&face, &format!("/api/recipients/{winner}")).await;
        assert_eq!(winner["name"], name);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn test_47_a_failure_in_the_last_object_leaves_nothing() {
    let face = Face::new().await;
    let bad = bundle(|value| value["rules"][0]["expression"] = json!("work."));
    let refused = send(&face, "POST", APPLY, &json!({"bundle": bad})).await;
    assert_eq!(
        refused.json()["errors"][0]["pointer"],
        "/bundle/rules/0/expression"
    );
    let failing = bundle(|value| {
        value["tests"] = json!([{"name": "no", "work": {"kind": "t"}, "expect": {"winner": "Lee"}}]);
    });
    let failing = send(&face, "POST", APPLY, &json!({"bundle": failing})).await;
    assert_eq!(code(&failing), (422, "bundle.test_failed".to_owned()));
    assert_eq!(data(&face, "/api/pools").await, json!([]));
    let dry = apply(&face, json!({"bundle": bundle(|_| {}), "dry_run": true})).await;
    assert_eq!(
        (&dry["counts"]["create"], data(&face, "/api/pools").await),
        (&json!(5), json!([]))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_48_digests_owners_and_duplicate_keys_are_guarded() {
    let face = Face::new().await;
    let first = apply(&face, json!({"bundle": bundle(|_| {})})).await;
    let other = bundle(|value| value["pools"][1]["description"] = json!("changed"));
    let stale = json!({"bundle": other, "expect_digest": first["digest_current"]});
    let stale = send(&face, "POST", APPLY, &stale).await;
    assert_eq!(code(&stale), (412, "bundle.digest_conflict".to_owned()));
    assert_eq!(stale.json()["digest_current"], first["digest"]);
    let foreign = bundle(|value| {
        value["metadata"]["name"] = json!("other");
        value["pools"][1]["description"] = json!("changed");
    });
    let foreign = send(&face, "POST", APPLY, &json!({"bundle": foreign})).await;
    assert_eq!(code(&foreign), (409, "bundle.owned".to_owned()));
    let twice = "apiVersion: ductor.io/v1\nkind: RoutingBundle\nkind: RoutingBundle\n";
    let twice = send(&face, "POST", DIFF, &json!({"bundle": twice})).await;
    assert_eq!(code(&twice), (422, "bundle.syntax".to_owned()));
    assert_eq!(twice.json()["errors"][0]["line"], 3, "{}", twice.text);
    let good = json!({"bundle": other, "expect_digest": first["digest"]});
    let done = apply(&face, good).await;
    let fields = json!([{"pointer": "/description", "from": null, "to": "changed"}]);
    assert_eq!(
        done["changes"],
        json!([{"kind": "pool", "name": "back", "action": "update", "fields": fields}])
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn test_48_what_waits_and_works_is_not_pruned_away() {
    let face = Face::new().await;
    apply(&face, json!({"bundle": bundle(|_| {})})).await;
    let pools = data(&face, "/api/pools?name=back").await;
    let back = pools[0]["id"].as_str().unwrap().to_owned();
    let lee = data(&face, &format!("/api/pools/{back}/recipients")).await[0].clone();
    let pause = format!("/api/recipients/{}/pause", lee["id"].as_str().unwrap());
    send(&face, "POST", &pause, &json!({})).await;
    let asked = json!({"work": {"kind": "t"}, "pool_id": back});
    let queued = send(&face, "POST", "/api/route", &asked).await;
    assert_eq!(queued.json()["data"]["outcome"], "queued", "{}", queued.text);
    let fewer = bundle(|value| {
        value["pools"] = json!([{"name": "front"}]);
        value["recipients"] = json!([{"name": "Kim Osei", "pools": ["front"], "external_id": "k"}]);
    });
    let body = |drain_to: Option<&str>| json!({"bundle": fewer, "prune": true, "drain_to": drain_to});
    let refused = send(&face, "POST", APPLY, &body(None)).await;
    assert_eq!(code(&refused), (409, "pool.has_queued_work".to_owned()));
    let nowhere = send(&face, "POST", APPLY, &body(Some("back"))).await;
    assert_eq!(code(&nowhere), (422, "pool.not_found".to_owned()));
    let done = apply(&face, body(Some("front"))).await;
    assert_eq!(
        (&done["counts"]["delete"], &done["counts"]["update"]),
        (&json!(2), &json!(2))
    );
    assert_eq!(data(&face, EXPORT).await["digest"], done["digest"]);
    let front = data(&face, "/api/pools").await[0]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let waiting = data(&face, &format!("/api/queues/{front}/items")).await;
    assert_eq!(waiting.as_array().unwrap().len(), 1, "{waiting}");
}

#[tokio::test(flavor = "multi_thread")]
async fn test_49_hand_made_objects_are_taken_over_and_live_values_stay() {
    let face = Face::new().await;
    let front = created(&face, "/api/pools", json!({"name": "front"})).await;
    let kim = json!({"name": "Kim", "external_id": "k", "state": "RECIPIENT_STATE_BUSY"});
    let kim = created(&face, &format!("/api/pools/{front}/recipients"), kim).await;
    let off = json!({"enabled": false, "reason": "quiet"});
    send(&face, "POST", &format!("/api/pools/{front}:set_enabled"), &off).await;
    let done = apply(&face, json!({"bundle": bundle(|_| {})})).await;
    assert_eq!(
        (&done["counts"]["update"], &done["counts"]["noop"]),
        (&json!(1), &json!(1))
    );
    let after = data(&face, &format!("/api/recipients/{kim}")).await;
    assert_eq!(
        (&after["state"], &after["record_version"]),
        (&json!("RECIPIENT_STATE_BUSY"), &json!(0))
    );
    let pool = data(&face, &format!("/api/pools/{front}")).await;
    assert_eq!(pool["config"]["kill_switch"], true);
    // Two exchange their names: both are found by them afterwards.
    let both = |first: &str, second: &str| {
        bundle(|value| {
            value["recipients"] = json!([{"name": first, "pools": ["front"], "external_id": "k"},
                {"name": second, "pools": ["front"], "external_id": "l"}]);
        })
    };
    apply(&face, json!({"bundle": both("Kim", "Lee")})).await;
    let swapped = apply(&face, json!({"bundle": both("Lee", "Kim")})).await;
    assert_eq!(swapped["counts"]["update"], 2);
    let path = format!("/api/pools/{front}/recipients");
    let taken = send(&face, "POST", &path, &json!({"name": "Kim"})).await;
    assert_eq!(code(&taken), (409, "recipient.name_taken".to_owned()));
    let taken = send(&face, "POST", &path, &json!({"name": "Lee"})).await;
    assert_eq!(code(&taken), (409, "recipient.name_taken".to_owned()));
}

#[test]
fn yaml_is_read_as_what_was_written() {
    let value = json!({"a": [{"b": "true", "c": []}, "x: y", 1.5, null, ["z", [1]]], "d": {}, "e-f": {"g": "multi\nline",
        "h": "", "i": "0x10", "j": "~", "k": "- no", "l": "2026-12-25", "m": "é \u{7f}\u{85}\u{9f}\u{2028}\u{feff}\u{ffff}\u{10fffe} \"q\" \\ \u{1}\u{1b}", "0": "null"}});
    let text = yaml(&value);
    let read = config::read_plain("b.yaml", &text).unwrap_or_else(|fault| panic!("{text}\n{fault:?}"));
    assert_eq!(read.value, value, "{text}");
}

/// A pool that offers into a queue, beside another one.
fn pond(change: impl FnOnce(&mut Value)) -> Value {
    let mut value = json!({"apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "leads"},
        "claim_queues": [{"name": "pond"}],
        "pools": [{"name": "offering", "config": {"routing_mode": "claim", "claim_queue": "pond", "queue_ttl_seconds": 600}},
            {"name": "waiting", "config": {"fallback": "queue"}}],
        "recipients": [{"name": "Kim", "pools": ["offering"], "external_id": "k"}],
        "rules": [{"name": "all", "expression": "true", "action": {"type": "select_pool", "pool": "offering"}}]});
    change(&mut value);
    value
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_queue_that_goes_keeps_no_work() {
    let face = Face::new().await;
    apply(&face, json!({"bundle": pond(|_| ())})).await;
    let routed = send(&face, "POST", "/api/route", &json!({"work": {"kind": "lead"}})).await;
    assert_eq!(
        routed.json()["data"]["outcome"],
        "queued_for_claim",
        "{}",
        routed.text
    );
    // A pool that stays needs it.
    let named = pond(|value| {
        value["claim_queues"] = json!([]);
    });
    let refused = send(&face, "POST", APPLY, &json!({"bundle": named, "prune": true})).await;
    assert_eq!(code(&refused), (409, "claim_queue.in_use".to_owned()));
    let without = pond(|value| {
        value["claim_queues"] = json!([]);
        value["pools"][0]["config"] = json!({"fallback": "queue"});
    });
    let refused = send(&face, "POST", APPLY, &json!({"bundle": without, "prune": true})).await;
    assert_eq!(code(&refused), (409, "claim_queue.has_open_offers".to_owned()));
    let done = apply(
        &face,
        json!({"bundle": without, "prune": true, "drain_to": "waiting"}),
    )
    .await;
    assert_eq!(done["counts"]["delete"], 1);
    assert_eq!(data(&face, "/api/claim-queues").await, json!([]));
    let pools = data(&face, "/api/pools").await;
    let named = |name: &str| {
        let all = pools.as_array().unwrap();
        let found = all.iter().find(|pool| pool["name"] == name).unwrap();
        found["id"].as_str().unwrap().to_owned()
    };
    let items = data(&face, &format!("/api/queues/{}/items", named("waiting"))).await;
    assert_eq!(items.as_array().map(Vec::len), Some(1), "{items}");
    let second = apply(&face, json!({"bundle": without, "prune": true})).await;
    assert_eq!(second["changes"], json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_of_a_text_has_line_and_column() {
    let face = Face::new().await;
    let head = "apiVersion: ductor.io/v1\nkind: RoutingBundle\nmetadata: { name: desk }\n";
    let aliases = format!("{head}x: &x [1, 2, 3]\ny: [{}]\n", vec!["*x"; 251].join(", "));
    let long = format!("{head}# {}\n", "x".repeat(16 << 20));
    for (text, code, place) in [
        (
            format!("{head}pools:\n  - name: a\n    name: b\n"),
            "bundle.syntax",
            json!([6, 5]),
        ),
        (aliases, "bundle.syntax", json!([5, 1005])),
        (
            format!("{head}pools:\n  - name: a\n    colour: red\n"),
            "field.unknown",
            json!([6, 5]),
        ),
        (format!("{head}colour: red\n"), "field.unknown", json!([4, 1])),
        (
            format!("{head}rules:\n  - {{ name: a, expression: 'work.', action: {{ type: drop }} }}\n"),
            "rule.syntax",
            json!([5, 16]),
        ),
        (
            format!(
                "{head}tests:\n  - {{ name: a, at: noon, work: {{}}, expect: {{ outcome: dropped }} }}\n"
            ),
            "field.type",
            json!([5, 16]),
        ),
        (long, "bundle.too_large", json!([null, null])),
    ] {
        let refused = send(&face, "POST", APPLY, &json!({"bundle": text})).await;
        let error = refused.json()["errors"][0].clone();
        assert_eq!(
            (refused.status, &error["code"]),
            (422, &json!(code)),
            "{}",
            refused.text
        );
        assert_eq!(json!([error["line"], error["column"]]), place, "{error}");
    }
    let twice = r#"{"bundle": {"apiVersion": "ductor.io/v1",
        "kind": "RoutingBundle", "kind": "RoutingBundle", "metadata": {"name": "desk"}}}"#;
    let refused = face.post_json(APPLY, twice).await;
    let error = refused.json()["errors"][0].clone();
    assert_eq!(
        (&error["code"], &error["line"]),
        (&json!("bundle.syntax"), &json!(2)),
        "{}",
        refused.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_of_many_megabytes_is_taken() {
    let face = Face::new().await;
    let comment = "# a line that says nothing, and ends\n".repeat(200_000);
    let text = format!("{comment}{}", yaml(&bundle(|_| ())));
    assert!(text.len() > 7 << 20);
    let looked = send(&face, "POST", DIFF, &json!({"bundle": text})).await;
    assert_eq!(looked.status, 200, "{}", looked.text);
}
