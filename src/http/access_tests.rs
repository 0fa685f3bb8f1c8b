//! What goes with keys: sessions of the dashboard, how often somebody may try, and rows of who did what.

use serde_json::json;

use super::fixture::Answer;
use super::key_tests::{Guarded, JSON};
use crate::config::{Config, RateLimitConfig, ServerConfig};
use crate::store::Rows;
use crate::store::tables::SESSIONS;

#[tokio::test(flavor = "multi_thread")]
async fn ten_failed_keys_close_the_door_of_an_address_for_a_minute() {
    let guarded = Guarded::new().await;
    let wrong = guarded.admin.replacen("dk_", "dk-", 1);
    for _ in 0..10 {
        assert_eq!(guarded.get(&wrong, "/jobs").await.status, 401);
    }
    let closed = guarded.get(&wrong, "/jobs").await;
    assert_eq!((closed.status, closed.header("retry-after")), (429, Some("60")));
    assert_eq!(guarded.get(&guarded.admin, "/jobs").await.status, 429);
    assert_eq!(guarded.face.get("/livez").await.status, 200);
    guarded.face.clock.advance(60_000);
    let metrics = guarded.get(&guarded.admin, "/metrics").await.text;
    for line in [
        "ductor_auth_failures_total{reason=\"malformed\"} 10",
        "ductor_http_rejected_total{reason=\"auth\"} 10",
        "ductor_http_rejected_total{reason=\"rate\"} 2",
    ] {
        assert!(metrics.contains(line), "{line}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_has_its_rate_and_others_have_theirs() {
    let rate_limit = RateLimitConfig {
        per_second: 2,
        burst: 5,
    };
    let server = ServerConfig {
        rate_limit,
        ..ServerConfig::default()
    };
    let guarded = Guarded::with(Config {
        server,
        ..Config::default()
    })
    .await;
    let other = guarded.key(json!({"name": "other", "scopes": ["*:read"]})).await;
    for _ in 0..5 {
        assert_eq!(guarded.get(&other, "/jobs").await.status, 200);
    }
    let over = guarded.get(&other, "/jobs").await;
    assert_eq!((over.status, over.header("retry-after")), (429, Some("1")));
    assert_eq!(over.header("ratelimit-policy"), Some("\"key\";q=5;w=3"));
    assert_eq!(over.header("ratelimit"), Some("\"key\";r=0;t=1"));
    assert_eq!(over.json()["code"], "RESOURCE_EXHAUSTED");
    assert_eq!(guarded.get(&guarded.admin, "/jobs").await.status, 200);
    guarded.face.clock.advance(500);
    assert_eq!(guarded.get(&other, "/jobs").await.status, 200);
    assert_eq!(guarded.get(&other, "/jobs").await.status, 429);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_idempotency_key_belongs_to_its_tenant_and_principal() {
    let guarded = Guarded::new().await;
    let second = guarded.key(json!({"name": "second", "scopes": ["admin"]})).await;
    let make = async |key: &str, name: &str| {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), JSON, ("idempotency-key", "k")];
        let body = json!({"name": name}).to_string();
        guarded.face.send("POST", "/api/tenants", &headers, &body).await
    };
    assert_eq!(make(&guarded.admin, "a").await.status, 201);
    let again = make(&guarded.admin, "a").await;
    assert_eq!(
        (again.status, again.header("idempotency-replayed")),
        (201, Some("true"))
    );
    assert_eq!(make(&guarded.admin, "b").await.status, 422);
    // The same words of another caller are another request.
    assert_eq!(make(&second, "b").await.status, 201);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_stands_for_its_key_and_ends_with_it() {
    let guarded = Guarded::new().await;
    let key = guarded.key(json!({"name": "me", "scopes": ["*:read"]})).await;
    let sign_in = async |key: &str| {
        let body = json!({"key": key}).to_string();
        guarded.face.post_json("/api/session", &body).await
    };
    let answer = sign_in(&key).await;
    assert_eq!(answer.status, 201, "{}", answer.text);
    assert_eq!(answer.json()["data"]["principal"], "key:me");
    let set = answer.header("set-cookie").unwrap().to_owned();
    assert!(
        set.ends_with("; Path=/; Max-Age=43200; HttpOnly; SameSite=Strict"),
        "{set}"
    );
    let cookie = set.split(';').next().unwrap().to_owned();
    let with = async |cookie: &str, method: &str, path: &str| {
        let headers = [("cookie", cookie), JSON];
        guarded.face.send(method, path, &headers, "").await
    };
    assert_eq!(with(&cookie, "GET", "/jobs").await.status, 200);
    assert_eq!(with(&cookie, "POST", "/jobs/a/start").await.status, 403);
    let several = format!("theme=dark; {cookie}");
    assert_eq!(
        with(&several, "GET", "/api/session").await.json()["data"]["principal"],
        "key:me"
    );
    // Its secret is not in the store.
    let secret = cookie.split('=').nth(1).unwrap().to_owned();
    let rows = guarded.read(|tx| Ok(format!("{:?}", tx.scan(&SESSIONS, &(), None, usize::MAX)?)));
    assert!(!rows.contains(&secret));
    let out = with(&cookie, "DELETE", "/api/session").await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
    assert_eq!(with(&cookie, "GET", "/jobs").await.status, 401);
    // Another one ends with its key, and another by itself.
    let cookie_of = |answer: &Answer| {
        answer
            .header("set-cookie")
            .unwrap()
            .split(';')
            .next()
            .unwrap()
            .to_owned()
    };
    let second = cookie_of(&sign_in(&key).await);
    assert_eq!(with(&second, "GET", "/jobs").await.status, 200);
    let id = key.split('_').nth(1).unwrap();
    guarded
        .send(&guarded.admin, "DELETE", &format!("/api/keys/{id}"), "")
        .await;
    assert_eq!(with(&second, "GET", "/jobs").await.status, 401);
    let third = cookie_of(&sign_in(&guarded.admin).await);
    guarded.face.clock.advance(12 * 3_600_000);
    assert_eq!(with(&third, "GET", "/jobs").await.status, 401);
    assert_eq!(sign_in(&key).await.status, 401);
    assert_eq!(sign_in("dk_x").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_of_a_page_behind_https_is_sent_by_https_alone() {
    let server = ServerConfig {
        public_url: Some("https://ops.example.org".to_owned()),
        ..ServerConfig::default()
    };
    let guarded = Guarded::with(Config {
        server,
        ..Config::default()
    })
    .await;
    let body = json!({"key": guarded.admin}).to_string();
    let answer = guarded.face.post_json("/api/session", &body).await;
    assert!(answer.header("set-cookie").unwrap().ends_with("; Secure"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_change_has_a_row_in_the_audit() {
    let guarded = Guarded::new().await;
    let key = guarded
        .key(json!({"name": "ops", "scopes": ["job:write", "audit:read"]}))
        .await;
    let bearer = format!("Bearer {key}");
    let headers = [
        ("authorization", bearer.as_str()),
        JSON,
        ("x-request-id", "my-id"),
    ];
    let pause = guarded.face.send("POST", "/jobs/a/pause", &headers, "{}").await;
    assert_eq!(pause.status, 200, "{}", pause.text);
    assert_eq!(pause.json()["paused"]["by"], "key:ops");
    // What is refused has no row, and what only reads has none.
    assert_eq!(
        guarded
            .send(&key, "POST", "/jobs/nobody/pause", "{}")
            .await
            .status,
        404
    );
    guarded.get(&key, "/api/audit").await;
    let rows = guarded.get(&key, "/api/audit").await.json();
    let row = &rows["data"][0];
    assert_eq!(row["who"], "key:ops");
    assert_eq!(row["key"], key.split('_').nth(1).unwrap());
    assert_eq!(
        (&row["what"], &row["thing"]),
        (&json!("pauseJob"), &json!("/jobs/a/pause"))
    );
    assert_eq!(row["request_id"], "my-id");
    assert!(row["before"].is_string() && row["after"].is_string() && row["before"] != row["after"]);
    let whats: Vec<&str> = rows["data"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["what"].as_str().unwrap())
        .collect();
    assert_eq!(whats, ["pauseJob", "createKey", "createKey"]);
    assert_eq!(rows["data"][2]["who"], "local");
    let count = async |query: &str| {
        let found = guarded.get(&key, &format!("/api/audit?{query}")).await;
        assert_eq!(found.status, 200, "{}", found.text);
        found.json()["data"].as_array().unwrap().len()
    };
    assert_eq!(count("who=local").await, 1);
    assert_eq!(count("what=createKey&what=pauseJob").await, 3);
    assert_eq!(count("what=createKey&who=key:ops").await, 0);
    assert_eq!(count("thing=/jobs/a").await, 1);
    assert_eq!(count("since=1h").await, 3);
    assert_eq!(count("until=1h").await, 0);
    assert_eq!(guarded.get(&key, "/api/audit?since=soon").await.status, 400);
    let first = guarded.get(&key, "/api/audit?page_size=2").await.json();
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
    let rest = guarded
        .get(&key, &format!("/api/audit?page_size=2&cursor={cursor}"))
        .await
        .json();
    assert_eq!(rest["data"].as_array().unwrap().len(), 1);
    assert_eq!(rest["pagination"], json!({}));
}
