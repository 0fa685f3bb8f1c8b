//! Tokens of issuers at the door: whom they let in, what is kept of that, and when it ends.

use serde_json::{Value, json};

use super::fixture::{Answer, BEGIN, Face};
use super::key_tests::{Guarded, JSON};
use crate::config::{AuthConfig, Config, IssuerConfig, RateLimitConfig, ServerConfig};
use crate::daemon::doors;
use crate::domain::access::jwt_tests::Signer;
use crate::domain::access::public_key::{Algorithm, PublicKey};
use crate::engine::metrics::ReasonLabel;
use crate::store::Rows;
use crate::store::tables::AUDIT;

const ISSUER: &str = "https://login.example.com";

/// A face that takes the tokens of one issuer.
struct Issued {
    face: Face,
    signer: Signer,
}

fn config_of(signer: &Signer) -> Config {
    let algorithm = signer.algorithm();
    let issuer = IssuerConfig {
        issuer: ISSUER.to_owned(),
        audience: "ductor".to_owned(),
        algorithm,
        key_id: None,
        key: Some(PublicKey::read(algorithm, &signer.pem()).unwrap()),
        key_file: None,
        tenant: None,
        tenant_claim: "tenant".to_owned(),
        scopes_claim: "scope".to_owned(),
        at: crate::config::Place::default(),
    };
    let trusted = vec![issuer.trusted().unwrap()];
    Config {
        auth: AuthConfig {
            issuers: vec![issuer],
            trusted,
            ..AuthConfig::default()
        },
        ..Config::default()
    }
}

impl Issued {
    async fn new() -> Issued {
        let signer = Signer::new(Algorithm::EdDsa);
        let face = Face::with(config_of(&signer)).await;
        Issued { face, signer }
    }

    /// A token for `sub` in a tenant, for five minutes.
    fn token(&self, sub: &str, tenant: &str, scope: &str) -> String {
        self.signer.token(&json!({
            "iss": ISSUER, "aud": "ductor", "sub": sub, "tenant": tenant, "scope": scope,
            "exp": BEGIN.0 / 1_000 + 300,
        }))
    }

    async fn send(&self, token: &str, method: &str, path: &str, body: &str) -> Answer {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), JSON];
        self.face.send(method, path, &headers, body).await
    }

    async fn get(&self, token: &str, path: &str) -> Answer {
        self.send(token, "GET", path, "").await
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn with_an_issuer_and_no_keys_nobody_comes_in_unnamed() {
    let issued = Issued::new().await;
    for path in ["/jobs", "/api/session", "/api/keys", "/metrics"] {
        let answer = issued.face.get(path).await;
        assert_eq!(answer.status, 401, "{path}");
        assert_eq!(answer.json()["detail"], "a valid key is needed");
    }
    let token = issued.token("ann", "default", "job:read");
    assert_eq!(issued.get(&token, "/jobs").await.status, 200);
    let refused = issued.send(&token, "POST", "/jobs/a/start", "{}").await;
    assert_eq!(refused.status, 403);
    assert_eq!(refused.json()["errors"][0]["code"], "scope.missing");
    let session = issued.get(&token, "/api/session").await.json();
    assert_eq!(session["data"]["principal"], format!("jwt:{ISSUER}#ann"));
    assert_eq!(session["data"]["open"], false);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_opens_nothing_is_answered_like_no_token() {
    let issued = Issued::new().await;
    let stranger = Signer::new(Algorithm::EdDsa);
    let good = json!({
        "iss": ISSUER, "aud": "ductor", "sub": "ann", "tenant": "default", "scope": "admin",
        "exp": BEGIN.0 / 1_000 + 300,
    });
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        issued.signer.token(&claims)
    };
    let none = issued.face.get("/jobs").await;
    for (bad, reason) in [
        (stranger.token(&good), "token_signature"),
        (
            issued.signer.token_with(&json!({"alg": "none"}), &good),
            "token_algorithm",
        ),
        (
            issued.signer.token_with(&json!({"alg": "HS256"}), &good),
            "token_algorithm",
        ),
        (with("iss", json!("https://evil.example")), "token_issuer"),
        (with("aud", json!("others")), "token_audience"),
        (with("exp", json!(BEGIN.0 / 1_000 - 61)), "token_expired"),
        (with("nbf", json!(BEGIN.0 / 1_000 + 61)), "token_early"),
        (with("tenant", json!(7)), "token_tenant"),
        (with("sub", json!("")), "token_malformed"),
    ] {
        let answer = issued.get(&bad, "/jobs").await;
        assert_eq!(answer.status, 401, "{reason}");
        assert_eq!(answer.header("www-authenticate"), none.header("www-authenticate"));
        assert_eq!(answer.json()["detail"], none.json()["detail"], "{reason}");
        assert_eq!(answer.json()["errors"], json!([]));
        let label = ReasonLabel {
            reason: reason.to_owned(),
        };
        let counted = &issued.face.app.engine.metrics.auth_failures;
        assert!(counted.get_or_create(&label).get() > 0, "{reason}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_for_a_tenant_that_is_not_here_is_told_so() {
    let issued = Issued::new().await;
    let admin = issued.token("root", "default", "admin");
    let acme = issued.token("ann", "acme", "admin");
    let unknown = issued.get(&acme, "/jobs").await;
    assert_eq!(unknown.status, 403, "{}", unknown.text);
    assert_eq!(unknown.json()["errors"][0]["code"], "tenant.foreign");
    assert_eq!(
        issued
            .send(&admin, "POST", "/api/tenants", "{\"name\": \"acme\"}")
            .await
            .status,
        201
    );
    assert_eq!(issued.get(&acme, "/jobs").await.text, "[]");
    assert_eq!(issued.get(&acme, "/jobs/a").await.status, 404);
    // An admin of a tenant is none of all tenants.
    assert_eq!(
        issued
            .send(&acme, "POST", "/api/tenants", "{\"name\": \"x\"}")
            .await
            .status,
        403
    );
    let bearer = format!("Bearer {acme}");
    for (tenant, status) in [("acme", 200), ("default", 403), ("globex", 403)] {
        let headers = [("authorization", bearer.as_str()), ("x-tenant-id", tenant)];
        assert_eq!(
            issued.face.send("GET", "/jobs", &headers, "").await.status,
            status,
            "{tenant}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_token_does_stands_in_the_audit_and_is_remembered_as_its_own() {
    let issued = Issued::new().await;
    let [ann, ben] = ["ann", "ben"].map(|sub| issued.token(sub, "default", "admin"));
    let make = async |token: &str, name: &str| {
        let bearer = format!("Bearer {token}");
        let headers = [("authorization", bearer.as_str()), JSON, ("idempotency-key", "k")];
        let body = json!({"name": name}).to_string();
        issued.face.send("POST", "/api/tenants", &headers, &body).await
    };
    assert_eq!(make(&ann, "a").await.status, 201);
    // A later token of the same subject is the same caller; another subject is another.
    let later = issued.token("ann", "default", "tenant:write admin");
    assert_eq!(
        make(&later, "a").await.header("idempotency-replayed"),
        Some("true")
    );
    assert_eq!(make(&ann, "b").await.status, 422);
    // What it was answered before is not for a token of the same subject that may do less.
    let less = issued.token("ann", "default", "tenant:read");
    assert_eq!(make(&less, "a").await.status, 403);
    assert_eq!(make(&ben, "b").await.status, 201);
    let rows = issued
        .face
        .app
        .engine
        .store
        .read(|tx| tx.scan(&AUDIT, &(), None, 10))
        .unwrap();
    let who: Vec<(&str, bool)> = rows
        .iter()
        .map(|(_, row)| (row.who.as_str(), row.key.is_some()))
        .collect();
    let [ann, ben] = ["ann", "ben"].map(|sub| format!("jwt:{ISSUER}#{sub}"));
    assert_eq!(who, [(ann.as_str(), false), (ben.as_str(), false)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_subject_has_a_rate_of_its_own() {
    let signer = Signer::new(Algorithm::Es256);
    let rate_limit = RateLimitConfig {
        per_second: 1,
        burst: 2,
    };
    let server = ServerConfig {
        rate_limit,
        ..ServerConfig::default()
    };
    let face = Face::with(Config {
        server,
        ..config_of(&signer)
    })
    .await;
    let issued = Issued { face, signer };
    let [ann, ben] = ["ann", "ben"].map(|sub| issued.token(sub, "default", "job:read"));
    for _ in 0..2 {
        assert_eq!(issued.get(&ann, "/jobs").await.status, 200);
    }
    assert_eq!(issued.get(&ann, "/jobs").await.status, 429);
    // A fresh token of the same subject has no fresh rate.
    let fresh = issued.token("ann", "default", "job:read run:read");
    assert_eq!(issued.get(&fresh, "/jobs").await.status, 429);
    assert_eq!(issued.get(&ben, "/jobs").await.status, 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_token_of_an_admin_makes_the_first_key_and_both_go_on() {
    let issued = Issued::new().await;
    let admin = issued.token("root", "default", "admin");
    let made = issued
        .send(
            &admin,
            "POST",
            "/api/keys",
            "{\"name\": \"first\", \"scopes\": [\"admin\"]}",
        )
        .await;
    assert_eq!(made.status, 201, "{}", made.text);
    let guarded = Guarded {
        face: issued.face,
        admin: made.json()["data"]["key"].as_str().unwrap().to_owned(),
    };
    assert_eq!(guarded.get(&guarded.admin, "/jobs").await.status, 200);
    assert_eq!(guarded.get(&admin, "/jobs").await.status, 200);
    // A token is no key: it is not traded for a session.
    let body = json!({"key": admin}).to_string();
    assert_eq!(guarded.face.post_json("/api/session", &body).await.status, 401);
    guarded.face.clock.advance(361_000);
    assert_eq!(guarded.get(&admin, "/jobs").await.status, 401);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_header_that_says_two_things_says_nothing() {
    let guarded = Guarded::new().await;
    let (good, bad) = (format!("Bearer {}", guarded.admin), "Bearer dk_x".to_owned());
    for (first, second) in [(&good, &bad), (&bad, &good), (&good, &good)] {
        let headers = [
            ("authorization", first.as_str()),
            ("authorization", second.as_str()),
        ];
        assert_eq!(guarded.face.send("GET", "/jobs", &headers, "").await.status, 400);
    }
    let headers = [
        ("authorization", good.as_str()),
        ("x-tenant-id", "default"),
        ("x-tenant-id", "acme"),
    ];
    assert_eq!(guarded.face.send("GET", "/jobs", &headers, "").await.status, 400);
    let headers = [
        ("authorization", good.as_str()),
        JSON,
        ("idempotency-key", "a"),
        ("idempotency-key", "b"),
    ];
    let twice = guarded
        .face
        .send("POST", "/api/tenants", &headers, "{\"name\": \"x\"}")
        .await;
    assert_eq!(twice.status, 400, "{}", twice.text);
    for form in [
        format!("bearer {}", guarded.admin),
        format!("BEARER   {}  ", guarded.admin),
    ] {
        let headers = [("authorization", form.as_str())];
        assert_eq!(
            guarded.face.send("GET", "/jobs", &headers, "").await.status,
            200,
            "{form}"
        );
    }
    for form in [
        guarded.admin.clone(),
        format!("Basic {}", guarded.admin),
        format!("Bearer{}", guarded.admin),
        format!("Bearer {}, Bearer {}", guarded.admin, guarded.admin),
        format!("Bearer {}\u{0}", &guarded.admin[..20]).replace('\u{0}', ""),
    ] {
        let headers = [("authorization", form.as_str())];
        assert_eq!(
            guarded.face.send("GET", "/jobs", &headers, "").await.status,
            401,
            "{form}"
        );
    }
    // A key in the address would stand in logs.
    for path in [
        "/jobs?key=K",
        "/jobs?access_token=K",
        "/jobs?authorization=Bearer%20K",
    ] {
        let path = path.replace('K', &guarded.admin);
        guarded.face.clock.advance(60_000);
        assert_eq!(guarded.face.get(&path).await.status, 401);
    }
}

/// All that a stream sends until it ends by itself, which it must once `work` is done.
async fn ended(face: &Face, path: &str, key: &str, work: impl Future<Output = ()>) -> String {
    let bearer = format!("Bearer {key}");
    let headers = [("authorization", bearer.as_str())];
    let seats = || face.app.streams.load(std::sync::atomic::Ordering::SeqCst);
    let working = async {
        while seats() == 0 {
            tokio::task::yield_now().await;
        }
        work.await;
    };
    let (answer, ()) = tokio::join!(face.send("GET", path, &headers, ""), working);
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert!(!face.app.stop.is_cancelled());
    answer.text
}

#[tokio::test(flavor = "multi_thread")]
async fn streams_and_tails_end_with_the_key_that_opened_them() {
    let guarded = Guarded::new().await;
    let face = &guarded.face;
    guarded.send(&guarded.admin, "POST", "/jobs/a/start", "{}").await;
    let claimed = face.pass(1).await.remove(0);
    face.write_log(&claimed, "o said\n");
    let tail = format!("/api/runs/{}/steps/main/attempts/1/log/tail", claimed.run.id);
    for path in ["/api/stream", tail.as_str()] {
        let wish = json!({"name": path, "scopes": ["*:read"]});
        let key = guarded.key(wish.clone()).await;
        let text = ended(face, path, &key, async {
            let id = key.split('_').nth(1).unwrap();
            let gone = guarded
                .send(&guarded.admin, "DELETE", &format!("/api/keys/{id}"), "{}")
                .await;
            assert_eq!(gone.status, 200, "{}", gone.text);
        })
        .await;
        assert!(text.contains("event: bye"), "{path}: {text}");
        // The same where the key ends by itself, which no commit tells.
        let mut wish = wish;
        wish["expires_at"] = json!(face.app.engine.now().wall.plus(60_000).to_string());
        let key = guarded.key(wish).await;
        let text = ended(face, path, &key, async { face.clock.advance(60_000) }).await;
        assert!(text.contains("event: bye"), "{path}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stream_ends_with_its_token_and_with_its_session() {
    let issued = Issued::new().await;
    let token = issued.token("ann", "default", "*:read");
    let text = ended(&issued.face, "/api/stream", &token, async {
        issued.face.clock.advance(360_000);
    })
    .await;
    assert!(text.contains("event: bye"), "{text}");

    let guarded = Guarded::new().await;
    let face = &guarded.face;
    let signed_in = face
        .post_json("/api/session", &json!({"key": guarded.admin}).to_string())
        .await;
    let cookie = signed_in
        .header("set-cookie")
        .unwrap()
        .split(';')
        .next()
        .unwrap()
        .to_owned();
    let out = async {
        while face.app.streams.load(std::sync::atomic::Ordering::SeqCst) == 0 {
            tokio::task::yield_now().await;
        }
        let headers = [("cookie", cookie.as_str()), JSON];
        assert_eq!(
            face.send("DELETE", "/api/session", &headers, "").await.status,
            200
        );
    };
    let headers = [("cookie", cookie.as_str())];
    let (answer, ()) = tokio::join!(face.send("GET", "/api/stream", &headers, ""), out);
    assert!(answer.text.contains("event: bye"), "{}", answer.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_issuer_is_a_lock_for_other_machines_and_its_end_opens_nothing_to_them() {
    let signer = Signer::new(Algorithm::EdDsa);
    let face = Face::new().await;
    let beyond: std::net::SocketAddr = "192.0.2.1:8470".parse().unwrap();
    let open = async |config: &Config| doors::open(&face.app.engine, config, beyond).await;
    assert!(open(&Config::default()).await.is_err());
    assert!(open(&config_of(&signer)).await.is_ok());
    let ring = face.app.keyring.current(&face.app.engine).await.unwrap();
    assert!(face.app.is_open(&ring));
    let reached = crate::http::App {
        address: beyond,
        ..face.app.clone()
    };
    assert!(!reached.is_open(&ring));
}

#[tokio::test(flavor = "multi_thread")]
async fn who_waits_for_tasks_is_sent_away_when_the_key_is_revoked() {
    let guarded = Guarded::new().await;
    let key = guarded
        .key(json!({"name": "worker", "scopes": ["bridge:write"]}))
        .await;
    let body = json!({"queue": "q", "worker": "w", "wait_ms": 20_000}).to_string();
    let revoking = async {
        let id = key.split('_').nth(1).unwrap();
        let gone = guarded
            .send(&guarded.admin, "DELETE", &format!("/api/keys/{id}"), "{}")
            .await;
        assert_eq!(gone.status, 200, "{}", gone.text);
    };
    let (answer, ()) = tokio::join!(guarded.send(&key, "POST", "/api/bridge/poll", &body), revoking);
    assert_eq!(answer.status, 401, "{}", answer.text);
}
