//! Keys, scopes and tenants on every route: who comes in, and what they find.

use std::collections::BTreeSet;

use axum::http::Method;
use serde_json::{Value, json};

use super::caller::is_open;
use super::fixture::{Answer, Face};
use super::operation::Operation;
use super::router::page;
use crate::config::Config;
use crate::domain::access::scopes::{self, NOUNS, VERBS};
use crate::store::tables::{API_KEYS, AUDIT, REMEMBERED};
use crate::store::{ReadTx, Rows};

pub(super) const JSON: (&str, &str) = ("content-type", "application/json");

/// A face with its first key.
pub(super) struct Guarded {
    pub(super) face: Face,
    pub(super) admin: String,
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
    path.replace(['{', '}'], "")
}

impl Guarded {
    pub(super) async fn new() -> Guarded {
        Guarded::with(Config::default()).await
    }

    pub(super) async fn with(config: Config) -> Guarded {
        let face = Face::with(config).await;
        let answer = face
            .post_json("/api/keys", "{\"name\": \"admin\", \"scopes\": [\"admin\"]}")
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        let admin = answer.json()["data"]["key"].as_str().unwrap().to_owned();
        Guarded { face, admin }
    }

    pub(super) async fn send(&self, key: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {key}");
        let headers = [("authorization", bearer.as_str()), JSON];
        self.face.send(method, path, &headers, body).await
    }

    pub(super) async fn get(&self, key: &str, path: &str) -> Answer {
        self.send(key, "GET", path, "").await
    }

    /// Makes a key.
    pub(super) async fn key(&self, wish: Value) -> String {
        let answer = self
            .send(&self.admin, "POST", "/api/keys", &wish.to_string())
            .await;
        assert_eq!(answer.status, 201, "{}", answer.text);
        answer.json()["data"]["key"].as_str().unwrap().to_owned()
    }

    pub(super) async fn tenant(&self, name: &str) -> String {
        let body = json!({"name": name}).to_string();
        let made = self.send(&self.admin, "POST", "/api/tenants", &body).await;
        assert_eq!(made.status, 201, "{}", made.text);
        self.key(json!({"name": "boss", "tenant": name, "scopes": ["admin"]}))
            .await
    }

    pub(super) fn read<T>(&self, read: impl FnMut(&mut ReadTx) -> Result<T, crate::store::StoreError>) -> T {
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
    let asking = async |tenant: &str| {
        let bearer = format!("Bearer {boss}");
        let headers = [("authorization", bearer.as_str()), ("x-tenant-id", tenant)];
        guarded.face.send("GET", "/api/keys", &headers, "").await
    };
    assert_eq!(asking("acme").await.status, 200);
    for foreign in ["globex", "default", "nobody", ""] {
        let answer = asking(foreign).await;
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
