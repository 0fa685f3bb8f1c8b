//! Keys, scopes and tenants on every route: who comes in, and what they find.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use super::caller::is_open;
use super::fixture::{Answer, Face};
use super::operation::Operation;
use super::router::page;
use crate::config::{Config, RateLimitConfig, ServerConfig};
use crate::domain::access::scopes::{self, NOUNS, VERBS};
use crate::store::tables::{API_KEYS, AUDIT, REMEMBERED, SESSIONS};
use crate::store::{ReadTx, Rows};

const JSON: (&str, &str) = ("content-type", "application/json");

/// A face with its first key.
struct Guarded {
    face: Face,
    admin: String,
}

fn filled(pattern: &str) -> String {
    let names = [
        ("{job}", "a"),
        ("{pool}", "p"),
        ("{run}", "run_00000000000000000000000000"),
        ("{step}", "main"),
        ("{attempt}", "1"),
        ("{node}", "n-a"),
        ("{family_slug}", "flow"),
        ("{version}", "1"),
    ];
    let path = names.iter().fold(pattern.to_owned(), |path, (name, value)| {
        path.replace(name, value)
    });
    // Whatever else there is: nothing has that name.
    path.replace('{', "").replace('}', "")
}

impl Guarded {
    async fn new() -> Guarded {
        Guarded::with(Config::default()).await
    }

    async fn with(config: Config) -> Guarded {
        let face = Face::with(config).await;
        let answer = face
            .post_json("/api/keys", "{\"name\": \"admin\", \"scopes\": [\"admin\"]}")
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let admin = answer.json()["data"]["key"].as_str().unwrap().to_owned();
        Guarded { face, admin }
    }

    async fn send(&self, key: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), JSON];
        self.face.send(method, path, &headers, body).await
    }

    async fn get(&self, key: &str, path: &str) -> Answer {
        self.send(key, "GET", path, "").await
    }

    /// Makes a key.
    async fn key(&self, wish: Value) -> String {
        let answer = self
            .send(&self.admin, "POST", "/api/keys", &wish.to_string())
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["data"]["key"].as_str().unwrap().to_owned()
    }

    async fn tenant(&self, name: &str) -> String {
        let body = json!({"name": name}).to_string();
        let made = self.send(&self.admin, "POST", "/api/tenants", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        self.key(json!({"name": "boss", "tenant": name, "scopes": ["admin"]}))
            .await
    }

    fn read<T>(&self, read: impl FnMut(&mut ReadTx) -> Result<T, crate::store::StoreError>) -> T {
        self.face.app.engine.store.read(read).unwrap()
    }
}

fn guarded_operations() -> Vec<Operation> {
    let all = page().operations.into_iter();
    let found: Vec<Operation> = all.filter(|operation| operation.scope != scopes::OPEN).collect();
    assert!(found.len() >= 80, "{}", found.len());
    found
}

#[test]
fn the_list_of_open_routes_is_that_of_the_page() {
    let open = page().operations;
    let open = open.iter().filter(|operation| operation.scope == scopes::OPEN);
    let open: BTreeSet<(&str, &str)> = open.map(|operation| (operation.method, operation.path)).collect();
    for (method, path) in &open {
        let method: Method = method.to_ascii_uppercase().parse().unwrap();
        assert!(is_open(&method, path), "{method} {path}");
    }
    for operation in guarded_operations() {
        let method: Method = operation.method.to_ascii_uppercase().parse().unwrap();
        assert!(!is_open(&method, operation.path), "{method} {}", operation.path);
    }
    assert!(is_open(&Method::GET, "/ui/jobs") && is_open(&Method::HEAD, "/livez"));
    assert!(!is_open(&Method::POST, "/ui/jobs") && !is_open(&Method::GET, "/api/nothing"));
}

#[test]
fn every_scope_of_the_page_can_be_granted() {
    for operation in guarded_operations() {
        let scope = operation.scope;
        assert!(
            scopes::is_known(scope) || scope == scopes::ANY_CALLER,
            "{}: {scope}",
            operation.id
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_without_a_key_is_401_and_says_nothing() {
    let guarded = Guarded::new().await;
    for operation in guarded_operations() {
        let (path, method) = (filled(operation.path), operation.method.to_ascii_uppercase());
        let face = &guarded.face;
        let wrong = "Bearer dk_00000000000000000000000000000000_x";
        for headers in [&[JSON][..], &[JSON, ("authorization", wrong)]] {
            // An address may fail ten times a minute.
            face.clock.advance(10_000);
            let answer = face.send(&method, &path, headers, "{}").await;
            assert_eq!(answer.status, 401, "{method} {path} {}", answer.text);
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"));
            let document = answer.json();
            assert_eq!(document["code"], "UNAUTHENTICATED");
            assert_eq!(document["detail"], "a valid key is needed");
            assert_eq!(document["errors"], json!([]));
        }
    }
    assert_eq!(guarded.face.get("/api/nothing").await.status, 401);
    for open in ["/livez", "/version", "/", "/ui/jobs"] {
        assert_ne!(guarded.face.get(open).await.status, 401, "{open}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_with_a_wrong_scope_is_403_and_names_it() {
    let guarded = Guarded::new().await;
    for operation in guarded_operations() {
        if operation.scope == scopes::ANY_CALLER {
            continue;
        }
        // Everything but the one that is needed, and what covers it.
        let others = NOUNS
            .iter()
            .flat_map(|noun| VERBS.iter().map(move |verb| format!("{noun}:{verb}")))
            .filter(|scope| scope != operation.scope);
        let key = guarded
            .key(json!({"name": operation.id, "scopes": others.collect::<Vec<_>>()}))
            .await;
        let (path, method) = (filled(operation.path), operation.method.to_ascii_uppercase());
        let answer = guarded.send(&key, &method, &path, "{}").await;
        assert_eq!(answer.status, 403, "{method} {path} {}", answer.text);
        let document = answer.json();
        assert_eq!(document["errors"][0]["code"], "scope.missing", "{}", answer.text);
        let detail = document["detail"].as_str().unwrap();
        assert!(detail.contains(operation.scope), "{method} {path}: {detail}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_route_with_its_scope_lets_in() {
    let guarded = Guarded::new().await;
    guarded.face.app.stop.cancel();
    for operation in guarded_operations() {
        let scope = match operation.scope {
            scopes::ANY_CALLER => "job:read",
            scope => scope,
        };
        let key = guarded
            .key(json!({"name": operation.id, "scopes": [scope]}))
            .await;
        let (path, method) = (filled(operation.path), operation.method.to_ascii_uppercase());
        let answer = guarded.send(&key, &method, &path, "{\"nonsense\": 1}").await;
        assert!(
            ![401, 403].contains(&answer.status),
            "{method} {path} {}",
            answer.text
        );
        let reader = guarded
            .key(json!({"name": format!("r {}", operation.id), "scopes": ["*:read"]}))
            .await;
        let read = guarded
            .send(&reader, &method, &path, "{\"nonsense\": 1}")
            .await
            .status;
        assert_eq!(read == 403, !scope.ends_with(":read"), "{method} {path}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_tenant_finds_nothing_of_the_tenant_default() {
    let guarded = Guarded::new().await;
    let boss = guarded.tenant("acme").await;
    guarded.face.app.stop.cancel();
    guarded.send(&guarded.admin, "POST", "/jobs/a/start", "").await;
    let (mut empty, mut missing) = (0, 0);
    for operation in guarded_operations() {
        let noun = operation.scope.split(':').next().unwrap();
        if [
            "any",
            "audit",
            "key",
            "tenant",
            "pool",
            "recipient",
            "rule",
            "bundle",
            "decision",
            "assignment",
            "claim",
            "shadow",
            "trait",
        ]
        .contains(&noun)
        {
            continue;
        }
        let (path, method) = (filled(operation.path), operation.method.to_ascii_uppercase());
        let answer = guarded.send(&boss, &method, &path, "{}").await;
        match answer.status {
            404 => missing += 1,
            200 if method == "GET" => {
                let found = answer.json();
                let items = found.get("data").unwrap_or(&found);
                assert_eq!(*items, json!([]), "{path}");
                empty += 1;
            }
            other => panic!("{method} {path}: {other} {}", answer.text),
        }
    }
    assert!(empty >= 8 && missing >= 50, "{empty} {missing}");
    // Nor does the audit of one show what the other did.
    let own = guarded.get(&boss, "/api/audit").await.json();
    assert_eq!(own["data"], json!([]), "{own}");
    let keys = guarded.get(&boss, "/api/keys").await.json();
    assert_eq!(keys["data"].as_array().unwrap().len(), 1, "{keys}");
    let tenants = guarded.get(&boss, "/api/tenants").await.json();
    assert_eq!(tenants["data"].as_array().unwrap().len(), 1, "{tenants}");
    assert_eq!(tenants["data"][0]["name"], "acme");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_has_its_own_keys_and_touches_no_others() {
    let guarded = Guarded::new().await;
    let boss = guarded.tenant("acme").await;
    let other = guarded.tenant("globex").await;
    let id_of = |key: &str| key.split('_').nth(1).unwrap().to_owned();
    for foreign in [&guarded.admin, &other] {
        let answer = guarded
            .send(&boss, "DELETE", &format!("/api/keys/{}", id_of(foreign)), "")
            .await;
        assert_eq!(answer.status, 404, "{}", answer.text);
    }
    let body = json!({"name": "spy", "tenant": "globex", "scopes": ["admin"]}).to_string();
    assert_eq!(guarded.send(&boss, "POST", "/api/keys", &body).await.status, 403);
    assert_eq!(
        guarded
            .send(&boss, "POST", "/api/tenants", "{\"name\": \"x\"}")
            .await
            .status,
        403
    );
    assert_eq!(guarded.get(&boss, "/api/keys?tenant=default").await.status, 403);
    // The same name twice is no matter between tenants.
    let names = guarded
        .get(&guarded.admin, "/api/keys?tenant=globex")
        .await
        .json();
    assert_eq!(names["data"][0]["name"], "boss");
    // A cursor belongs to its tenant.
    guarded
        .key(json!({"name": "second", "tenant": "acme", "scopes": ["*:read"]}))
        .await;
    let first = guarded.get(&boss, "/api/keys?page_size=1").await.json();
    let cursor = first["pagination"]["next_cursor"].as_str().unwrap();
    let path = format!("/api/keys?page_size=1&cursor={cursor}");
    assert_eq!(guarded.get(&boss, &path).await.status, 200);
    assert_eq!(guarded.get(&other, &path).await.status, 400);
    // X-Tenant-ID may say the same and nothing else.
    let named = async |tenant: &str| {
        let bearer = format!("Bearer {boss}");
        let headers = [("authorization", bearer.as_str()), ("x-tenant-id", tenant)];
        guarded.face.send("GET", "/api/keys", &headers, "").await
    };
    assert_eq!(named("acme").await.status, 200);
    for foreign in ["globex", "default", "nobody", ""] {
        let answer = named(foreign).await;
        assert_eq!(answer.status, 403, "{foreign}");
        assert_eq!(answer.json()["errors"][0]["code"], "tenant.foreign");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn in_open_mode_the_header_names_a_known_tenant() {
    let face = Face::new().await;
    let named = async |tenant: &str, path: &str| face.send("GET", path, &[("x-tenant-id", tenant)], "").await;
    assert_eq!(named("default", "/jobs").await.status, 200);
    assert_eq!(named("acme", "/jobs").await.status, 403);
    assert_eq!(
        face.post_json("/api/tenants", "{\"name\": \"acme\"}")
            .await
            .status,
        201
    );
    assert_eq!(named("acme", "/jobs").await.text, "[]");
    assert_eq!(named("acme", "/jobs/a").await.status, 404);
    let session = named("acme", "/api/session").await.json();
    assert_eq!(session["data"]["tenant"], "acme");
    assert_eq!(session["data"]["open"], true);
    let twice = face.post_json("/api/tenants", "{\"name\": \"acme\"}").await;
    assert_eq!(
        (twice.status, twice.json()["code"].as_str()),
        (409, Some("ALREADY_EXISTS"))
    );
    assert_eq!(
        face.post_json("/api/tenants", "{\"name\": \"Acme\"}")
            .await
            .status,
        422
    );
    // An Authorization header is not looked at.
    let headers = [("authorization", "Bearer nonsense")];
    assert_eq!(face.send("GET", "/jobs", &headers, "").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_first_key_holds_admin_and_the_last_one_stays() {
    let face = Face::new().await;
    for first in [
        json!({"name": "ci", "scopes": ["job:write"]}),
        json!({"name": "ci", "scopes": ["admin"], "expires_at": "2026-01-01T00:00:00Z"}),
    ] {
        let answer = face.post_json("/api/keys", &first.to_string()).await;
        assert_eq!(answer.status, 409, "{}", answer.text);
    }
    assert_eq!(face.get("/jobs").await.status, 200);
    let guarded = Guarded::new().await;
    assert_eq!(guarded.face.get("/jobs").await.status, 401, "open mode has ended");
    assert_eq!(guarded.get(&guarded.admin, "/jobs").await.status, 200);
    let revoke = async |key: &str| {
        let id = key.split('_').nth(1).unwrap();
        guarded
            .send(&guarded.admin, "DELETE", &format!("/api/keys/{id}"), "")
            .await
    };
    guarded
        .key(json!({"name": "late", "scopes": ["admin"], "expires_at": "2026-01-01T00:00:00Z"}))
        .await;
    let kept = revoke(&guarded.admin).await;
    assert_eq!(
        (kept.status, kept.json()["code"].as_str()),
        (409, Some("FAILED_PRECONDITION"))
    );
    let second = guarded.key(json!({"name": "second", "scopes": ["admin"]})).await;
    assert_eq!(revoke(&second).await.json()["data"]["state"], "revoked");
    assert_eq!(guarded.get(&second, "/jobs").await.status, 401);
    assert_eq!(revoke(&second).await.status, 200, "twice is once");
    let third = guarded.key(json!({"name": "second", "scopes": ["admin"]})).await;
    assert_eq!(revoke(&guarded.admin).await.status, 200, "another one is left");
    assert_eq!(guarded.get(&guarded.admin, "/jobs").await.status, 401);
    assert_eq!(guarded.get(&third, "/jobs").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_hands_on_no_more_than_it_has() {
    let guarded = Guarded::new().await;
    let maker = guarded
        .key(json!({"name": "maker", "scopes": ["key:write", "key:delete", "job:read"]}))
        .await;
    let make = async |scopes: Value| {
        let body = json!({"name": format!("{scopes}").replace('"', ""), "scopes": scopes}).to_string();
        guarded.send(&maker, "POST", "/api/keys", &body).await
    };
    assert_eq!(make(json!(["job:read"])).await.status, 201);
    for more in [
        json!(["admin"]),
        json!(["*:read"]),
        json!(["job:read", "job:write"]),
    ] {
        let answer = make(more.clone()).await;
        assert_eq!(answer.status, 403, "{more}");
        assert_eq!(answer.json()["errors"][0]["code"], "scope.missing");
    }
    let id = guarded.admin.split('_').nth(1).unwrap();
    let answer = guarded
        .send(&maker, "DELETE", &format!("/api/keys/{id}"), "")
        .await;
    assert_eq!(answer.status, 403, "{}", answer.text);
    for (wish, pointer) in [
        (json!({"scopes": ["admin"]}), "/name"),
        (json!({"name": "x"}), "/scopes"),
        (json!({"name": "x", "scopes": ["jobs:read"]}), "/scopes"),
        (json!({"name": "x", "scopes": []}), "/scopes"),
        (
            json!({"name": "x", "scopes": ["admin"], "expires_at": "soon"}),
            "/expires_at",
        ),
        (
            json!({"name": "x", "scopes": ["admin"], "expires_at": "2020-01-01T00:00:00Z"}),
            "/expires_at",
        ),
    ] {
        let answer = guarded
            .send(&guarded.admin, "POST", "/api/keys", &wish.to_string())
            .await;
        assert_eq!(answer.status, 422, "{wish}");
        assert_eq!(answer.json()["errors"][0]["pointer"], pointer, "{wish}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_is_shown_once_and_its_secret_is_stored_nowhere() {
    let guarded = Guarded::new().await;
    let wish = json!({"name": "ci", "scopes": ["job:read"]}).to_string();
    let bearer = format!("Bearer {}", guarded.admin);
    let headers = [
        ("authorization", bearer.as_str()),
        JSON,
        ("idempotency-key", "once"),
    ];
    let made = guarded.face.send("POST", "/api/keys", &headers, &wish).await;
    let key = made.json()["data"]["key"].as_str().unwrap().to_owned();
    assert_eq!(
        made.header("location"),
        Some(&*format!("/api/keys/{}", key.split('_').nth(1).unwrap()))
    );
    // The same request again cannot show it again, and makes no second one.
    let again = guarded.face.send("POST", "/api/keys", &headers, &wish).await;
    assert_eq!(
        (again.status, again.json()["code"].as_str()),
        (409, Some("ALREADY_EXISTS"))
    );
    let list = guarded.get(&guarded.admin, "/api/keys").await.text;
    let secret = key.rsplit('_').next().unwrap();
    assert!(!list.contains(secret) && list.contains("\"ci\""));
    let rows = guarded.read(|tx| {
        let kept = tx.scan(&REMEMBERED, &(), None, usize::MAX)?;
        let keys = tx.scan(&API_KEYS, &(), None, usize::MAX)?;
        let audit = tx.scan(&AUDIT, &(), None, usize::MAX)?;
        Ok(format!("{kept:?} {keys:?} {audit:?}"))
    });
    assert!(!rows.contains(secret));
    let mut stored = Vec::new();
    for entry in std::fs::read_dir(guarded.face.app.engine.directory.root()).unwrap() {
        stored.extend(std::fs::read(entry.unwrap().path()).unwrap_or_default());
    }
    assert!(!stored.windows(secret.len()).any(|part| part == secret.as_bytes()));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_ends_by_itself_and_its_last_use_is_known_to_the_minute() {
    let guarded = Guarded::new().await;
    let begin = super::fixture::BEGIN;
    let end = begin.plus(90_000).to_string();
    let key = guarded
        .key(json!({"name": "short", "scopes": ["*:read"], "expires_at": end}))
        .await;
    let row = async || {
        let list = guarded.get(&guarded.admin, "/api/keys").await.json();
        let rows = list["data"].as_array().unwrap().clone();
        rows.into_iter().find(|row| row["name"] == "short").unwrap()
    };
    assert_eq!(row().await["last_used_at"], Value::Null);
    assert_eq!(guarded.get(&key, "/jobs").await.status, 200);
    for _ in 0..200 {
        if row().await["last_used_at"] != Value::Null {
            break;
        }
        tokio::task::yield_now().await;
    }
    assert_eq!(row().await["last_used_at"], begin.to_string());
    guarded.face.clock.advance(59_000);
    assert_eq!(guarded.get(&key, "/jobs").await.status, 200);
    assert_eq!(
        row().await["last_used_at"],
        begin.to_string(),
        "not within a minute"
    );
    guarded.face.clock.advance(31_000);
    assert_eq!(guarded.get(&key, "/jobs").await.status, 401);
    assert_eq!(row().await["state"], "expired");
}

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
    let text = guarded.face.app.engine.metrics.auth_failures.clone();
    drop(text);
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

/// Everything exists for the tenant `default`; another one, whose admin asks for all of it by name, finds nothing and changes
/// nothing.
#[tokio::test(flavor = "multi_thread")]
async fn a_walk_over_every_route_finds_nothing_of_another_tenant() {
    let stage = super::openapi_tests::stage().await;
    let face = &stage.face;
    face.app.stop.cancel();
    let made = face.post_json("/api/tenants", "{\"name\": \"acme\"}").await;
    assert_eq!(made.status, 201, "{}", made.text);
    let headers = [("x-tenant-id", "acme"), JSON];
    // Uuids of things of the tenant `default`, as its own lists show them.
    let mut known = BTreeSet::new();
    for operation in guarded_operations() {
        // The document has examples, which are nobody's.
        let is_list = operation.method == "get" && !operation.path.contains('{');
        if is_list && operation.path.starts_with("/api/") && operation.id != "showApi" {
            let listed = face.get(operation.path).await.text;
            known.extend(uuids_of(&listed));
        }
    }
    assert!(known.len() >= 5, "{known:?}");
    let mut walked = 0;
    for operation in guarded_operations() {
        let (path, method) = (stage.filled(&operation), operation.method.to_ascii_uppercase());
        let names_a_thing = operation.path.contains('{') && operation.id != "showStrategy";
        let body = if method == "GET" { "" } else { "{}" };
        let answer = face.send(&method, &path, &headers, body).await;
        if names_a_thing && method == "GET" {
            assert_eq!(answer.status, 404, "{method} {path}: {}", answer.text);
        } else if names_a_thing {
            assert!(
                (400..500).contains(&answer.status),
                "{method} {path}: {} {}",
                answer.status,
                answer.text
            );
            assert_ne!(answer.status, 403, "{method} {path}");
        }
        for id in uuids_of(&answer.text) {
            let is_asked = path.contains(&id);
            assert!(
                is_asked || !known.contains(&id),
                "{method} {path} tells of {id}: {}",
                answer.text
            );
        }
        walked += 1;
    }
    assert!(walked >= 100, "{walked}");
}

/// The ids of routing in a text.
fn uuids_of(text: &str) -> BTreeSet<String> {
    let words = text.split(|mark: char| !mark.is_ascii_hexdigit() && mark != '-');
    words
        .filter(|word| word.len() == 36 && word.matches('-').count() == 4)
        .map(str::to_owned)
        .collect()
}
