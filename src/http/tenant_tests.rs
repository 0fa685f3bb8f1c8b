//! What tenants say of their routing, and what follows from it.

use serde_json::{Value, json};

use super::fixture::{Answer, Face};
use super::key_tests::Guarded;
use crate::domain::routing::objects::PipelineMode;
use crate::domain::routing::turns::Served;
use crate::engine::changes::routing::drain;
use crate::engine::changes::tenants::{Declared, ensure};
use crate::store::live_rows::DrainRow;
use crate::store::tables::DRAINS;
use crate::words::ids::{RecipientPoolId, TenantId};
use crate::words::time::Micros;

const PLACE: &str = "/api/tenants/default";

async fn patch(face: &Face, path: &str, body: Value) -> Answer {
    let headers = [("content-type", "application/json")];
    face.send("PATCH", path, &headers, &body.to_string()).await
}

async fn routed(face: &Face) -> Value {
    let body = json!({"work": {"kind": "t"}}).to_string();
    let answer = face.post_json("/api/route", &body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    answer.json()["data"].clone()
}

async fn pool(face: &Face, name: &str) -> String {
    let made = face
        .post_json("/api/pools", &json!({"name": name}).to_string())
        .await;
    let id = made.json()["data"]["id"]
        .as_str()
        .unwrap_or_else(|| panic!("{}", made.text))
        .to_owned();
    let path = format!("/api/pools/{id}/recipients");
    assert_eq!(face.post_json(&path, "{\"name\": \"ann\"}").await.status, 201);
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn work_that_no_rule_takes_goes_to_the_default_pool_of_its_tenant() {
    let face = Face::new().await;
    let id = pool(&face, "support").await;
    assert_eq!(routed(&face).await["outcome"], "no_rule_matched");
    // By name or by id: the id is kept, and outlives another name.
    for given in ["support", id.as_str()] {
        let said = patch(&face, PLACE, json!({"routing": {"default_pool_id": given}})).await;
        assert_eq!(said.status, 200, "{}", said.text);
        assert_eq!(said.json()["data"]["default_pool_id"], id.as_str());
    }
    let decision = routed(&face).await;
    assert_eq!(
        (&decision["outcome"], &decision["pool"]["id"]),
        (&json!("assigned"), &json!(id))
    );
    // A rule that takes it comes first.
    let other = pool(&face, "sales").await;
    let rule =
        json!({"name": "all", "expression": "true", "action": {"type": "select_pool", "pool_id": other}});
    let made = face.post_json("/api/rules", &rule.to_string()).await;
    assert_eq!(made.status, 201, "{}", made.text);
    assert_eq!(routed(&face).await["pool"]["id"], other.as_str());
    let rule = made.json()["data"]["id"].as_str().unwrap().to_owned();
    assert_eq!(
        face.send("DELETE", &format!("/api/rules/{rule}"), &[], "")
            .await
            .status,
        200
    );
    assert_eq!(routed(&face).await["pool"]["id"], id.as_str());
    let none = patch(&face, PLACE, json!({"routing": {"default_pool_id": null}})).await;
    assert_eq!(none.json()["data"]["default_pool_id"], Value::Null);
    assert_eq!(routed(&face).await["outcome"], "no_rule_matched");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_mode_of_a_tenant_stands_between_its_pools_and_the_daemon() {
    let face = Face::new().await;
    let mode = async || {
        face.app
            .engine
            .tenancy(TenantId::DEFAULT)
            .await
            .unwrap()
            .pipeline_mode
    };
    let set = async |word: &str| {
        let said = patch(&face, PLACE, json!({"routing": {"pipeline_mode": word}})).await;
        assert_eq!(said.status, 200, "{}", said.text);
    };
    assert_eq!(mode().await, PipelineMode::Linear);
    let mut book = (*face.app.engine.book()).clone();
    book.pipeline_mode = PipelineMode::Dag;
    face.app.engine.shelf.replace(book);
    assert_eq!(mode().await, PipelineMode::Dag);
    set("shadow").await;
    assert_eq!(mode().await, PipelineMode::Shadow);
    set("linear").await;
    assert_eq!(mode().await, PipelineMode::Linear);
    set("").await;
    assert_eq!(mode().await, PipelineMode::Dag);
    let shown = face.get(PLACE).await.json();
    assert_eq!(shown["data"]["routing"]["pipeline_mode"], "inherit");
}

#[tokio::test(flavor = "multi_thread")]
async fn settings_that_are_wrong_are_told_with_their_places() {
    let face = Face::new().await;
    for (body, pointer, code) in [
        (json!({}), "/routing", "required"),
        (json!({"routing": 1}), "/routing", "required"),
        (json!({"routing": {}, "name": "x"}), "/name", "unknown_field"),
        (
            json!({"routing": {"mode": "dag"}}),
            "/routing/mode",
            "unknown_field",
        ),
        (
            json!({"routing": {"default_pool_id": 7}}),
            "/routing/default_pool_id",
            "type",
        ),
        (
            json!({"routing": {"default_pool_id": "nobody"}}),
            "/routing/default_pool_id",
            "pool.not_found",
        ),
        (
            json!({"routing": {"pipeline_mode": "fast"}}),
            "/routing/pipeline_mode",
            "invalid",
        ),
        (
            json!({"routing": {"pipeline_mode": null}}),
            "/routing/pipeline_mode",
            "invalid",
        ),
    ] {
        let answer = patch(&face, PLACE, body.clone()).await;
        assert_eq!(answer.status, 422, "{body} {}", answer.text);
        let fault = answer.json()["errors"][0].clone();
        assert_eq!(
            (&fault["pointer"], &fault["code"]),
            (&json!(pointer), &json!(code)),
            "{body}"
        );
    }
    assert_eq!(
        patch(&face, "/api/tenants/nobody", json!({"routing": {}}))
            .await
            .status,
        404
    );
    assert_eq!(face.get("/api/tenants/nobody").await.status, 404);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_changes_its_own_settings_and_sees_no_others() {
    let guarded = Guarded::new().await;
    let boss = guarded.tenant("acme").await;
    guarded.tenant("globex").await;
    let body = json!({"routing": {"pipeline_mode": "dag"}}).to_string();
    for (key, name, status) in [
        (&boss, "acme", 200),
        (&boss, "globex", 404),
        (&boss, "default", 404),
        (&guarded.admin, "globex", 200),
    ] {
        let path = format!("/api/tenants/{name}");
        assert_eq!(guarded.get(key, &path).await.status, status, "{name}");
        assert_eq!(
            guarded.send(key, "PATCH", &path, &body).await.status,
            status,
            "{name}"
        );
    }
    let rows = guarded.get(&boss, "/api/audit?what=changeTenant").await.json();
    assert_eq!(rows["data"].as_array().unwrap().len(), 1, "{rows}");
    // A pool of another tenant is none.
    let made = guarded
        .send(&guarded.admin, "POST", "/api/pools", "{\"name\": \"theirs\"}")
        .await
        .json();
    for given in [made["data"]["id"].as_str().unwrap(), "theirs"] {
        let body = json!({"routing": {"default_pool_id": given}}).to_string();
        let refused = guarded.send(&boss, "PATCH", "/api/tenants/acme", &body).await;
        assert_eq!(refused.json()["errors"][0]["code"], "pool.not_found");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn tenants_of_the_configuration_are_made_once_and_their_settings_are_its_own() {
    let face = Face::new().await;
    let of = |name: &str, routing: Option<(Option<&str>, PipelineMode)>| Declared {
        name: name.to_owned(),
        routing: routing.map(|(named, mode)| (named.map(str::to_owned), mode)),
    };
    let apply = async |declared: Vec<Declared>| {
        face.change(move |tx| ensure(tx, &declared, "configuration"))
            .await
    };
    let said = Some((Some("support"), PipelineMode::Dag));
    for _ in 0..2 {
        assert!(apply(vec![of("acme", None), of("default", said)]).await);
    }
    let names = face.get("/api/tenants").await.json();
    let names: Vec<&str> = names["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["acme", "default"]);
    // The pool may come later: its name is looked up when something is routed.
    assert_eq!(routed(&face).await["outcome"], "no_rule_matched");
    let id = pool(&face, "support").await;
    assert_eq!(routed(&face).await["pool"]["id"], id.as_str());
    let refused = patch(&face, PLACE, json!({"routing": {"pipeline_mode": "linear"}})).await;
    assert_eq!(refused.status, 409, "{}", refused.text);
    assert!(
        refused.json()["detail"]
            .as_str()
            .unwrap()
            .contains("the configuration file")
    );
    // Once the file says nothing of it, what it said stays until somebody changes it.
    assert!(apply(Vec::new()).await);
    let shown = face.get(PLACE).await.json()["data"]["routing"].clone();
    assert_eq!(
        shown,
        json!({"default_pool_id": "support", "pipeline_mode": "dag", "from_file": false})
    );
    assert_eq!(
        patch(&face, PLACE, json!({"routing": {"pipeline_mode": "linear"}}))
            .await
            .status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn an_address_of_alerts_that_would_be_refused_is_not_taken() {
    let face = Face::new().await;
    let with = |url: &str| json!({"enabled": true, "max_queue_time": "5m", "alert_webhook_url": url});
    let create = async |url: &str| {
        let body = json!({"name": "p", "config": {"sla": with(url)}}).to_string();
        face.post_json("/api/pools", &body).await
    };
    for (url, code) in [
        ("ftp://alerts.example.org/", "url.invalid"),
        ("https://me@alerts.example.org/", "url.invalid"),
        ("http://alerts.example.org/", "url.invalid"),
        ("https://127.0.0.1:9/", "url.forbidden"),
        ("https://169.254.169.254/latest", "url.forbidden"),
    ] {
        let refused = create(url).await;
        assert_eq!(refused.status, 422, "{url} {}", refused.text);
        let fault = refused.json()["errors"][0].clone();
        assert_eq!(fault["code"], code, "{url}");
        assert_eq!(fault["pointer"], "/config/sla/alert_webhook_url", "{url}");
        let bundle = json!({
            "apiVersion": "ductor.io/v1", "kind": "RoutingBundle", "metadata": {"name": "b"},
            "pools": [{"name": "first"}, {"name": "p", "config": {"sla": with(url)}}],
        });
        let body = json!({"bundle": bundle}).to_string();
        let refused = face.post_json("/api/routing/bundle:diff", &body).await;
        let fault = refused.json()["errors"][0].clone();
        assert_eq!(fault["code"], code, "{url} {}", refused.text);
        assert_eq!(
            fault["pointer"], "/bundle/pools/1/config/sla/alert_webhook_url",
            "{url}"
        );
    }
    let made = create("https://alerts.example.org/x").await;
    assert_eq!(made.status, 201, "{}", made.text);
    let path = format!("/api/pools/{}", made.json()["data"]["id"].as_str().unwrap());
    let refused = patch(
        &face,
        &path,
        json!({"config": {"sla": with("https://10.0.0.1/")}}),
    )
    .await;
    assert_eq!(
        refused.json()["errors"][0]["code"],
        "url.forbidden",
        "{}",
        refused.text
    );
    let same = json!({"config": {"sla": with("https://alerts.example.org/x"), "default_timeout": "40s"}});
    assert_eq!(patch(&face, &path, same).await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_with_very_many_stirred_queues_delays_no_other() {
    let face = Face::new().await;
    for name in ["busy", "calm"] {
        let body = json!({"name": name}).to_string();
        assert_eq!(face.post_json("/api/tenants", &body).await.status, 201);
    }
    let ring = face.app.keyring.current(&face.app.engine).await.unwrap();
    let [busy, calm] = ["busy", "calm"].map(|name| ring.tenant(name).unwrap());
    face.change(move |tx| {
        let row = DrainRow {
            generation: 1,
            since: Micros(0),
            why: "a test".to_owned(),
            passed: Vec::new(),
        };
        for number in 0..100 {
            tx.put(&DRAINS, &(busy, RecipientPoolId([number; 16])), &row)?;
        }
        tx.put(&DRAINS, &(calm, RecipientPoolId([7; 16])), &row)?;
        Ok(())
    })
    .await;
    // All of the busy one come, one turn after the other, and the calm one is in each turn.
    let (mut served, mut seen) = (Served::default(), std::collections::BTreeSet::new());
    for _ in 0..15 {
        let mut turn = served.clone();
        let (walks, after) = face
            .app
            .engine
            .store
            .read(|tx| {
                turn = served.clone();
                Ok((drain::walks(tx, &mut turn, 8)?, turn.clone()))
            })
            .unwrap();
        served = after;
        assert_eq!(walks.len(), 8);
        assert!(walks.iter().any(|walk| walk.tenant == calm));
        let of_busy = walks.iter().filter(|walk| walk.tenant == busy);
        seen.extend(of_busy.map(|walk| walk.recipient_pool));
    }
    assert_eq!(seen.len(), 100);
}
