//! What stands in front of the router: the walk over all routes with foreign headers, and problem documents for
//! everything that is refused.

use std::time::Duration;

use super::fixture::{ADDRESS, Face};
use crate::config::{Config, ServerConfig};
use crate::os::failpoint::Fault;

/// The path and method of every route of the router's page.
fn routes() -> Vec<(String, String)> {
    let operations = super::router::page().operations.into_iter();
    operations
        .map(|operation| (operation.path.to_owned(), operation.method.to_ascii_uppercase()))
        .collect()
}

fn filled(pattern: &str) -> String {
    let names = [
        ("{job}", "a"),
        ("{pool}", "p"),
        ("{entry}", "00"),
        ("{run}", "run_0"),
        ("{step}", "main"),
        ("{attempt}", "1"),
    ];
    names.iter().fold(pattern.to_owned(), |path, (name, value)| {
        path.replace(name, value)
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn no_route_answers_a_foreign_page() {
    let face = Face::new().await;
    // Streams end at once.
    face.app.stop.cancel();
    let all = routes();
    assert!(all.len() >= 29, "{all:?}");
    for (pattern, method) in &all {
        let path = filled(pattern);
        let send = async |headers: &[(&str, &str)]| face.send(method, &path, headers, "").await;
        for (headers, status) in [
            (&[("host", "evil.example:8470")][..], 421),
            (&[("host", "127.0.0.1:9")], 421),
            (&[("origin", "https://evil.example")], 403),
            (&[("origin", "null")], 403),
            (&[("sec-fetch-site", "cross-site")], 403),
            (
                &[("sec-fetch-site", "same-site"), ("sec-fetch-mode", "navigate")],
                403,
            ),
        ] {
            let answer = send(headers).await;
            assert_eq!(answer.status, status, "{method} {path} {headers:?}");
            assert_eq!(answer.json()["code"], "PERMISSION_DENIED");
            assert_eq!(answer.header("access-control-allow-origin"), None);
        }
        let own = format!("http://{ADDRESS}");
        for headers in [
            &[("origin", own.as_str())][..],
            &[("sec-fetch-site", "same-origin")],
            &[],
        ] {
            let answer = send(headers).await;
            assert!(
                ![403, 405, 415, 421].contains(&answer.status),
                "{method} {path} {headers:?} {}",
                answer.status
            );
            let csp = answer.header("content-security-policy").unwrap();
            assert!(csp.contains("frame-ancestors 'none'"));
            assert_eq!(answer.header("x-content-type-options"), Some("nosniff"));
            assert_eq!(answer.header("cross-origin-resource-policy"), Some("same-origin"));
            assert_eq!(answer.header("x-request-id").map(str::len), Some(26));
        }
    }
}

/// What `fetch` of one of our own pages sends with a change.
#[tokio::test(flavor = "multi_thread")]
async fn our_own_page_may_change_everything() {
    let own = format!("http://{ADDRESS}");
    let changes = routes().into_iter().filter(|(_, method)| method != "GET");
    let changes: Vec<(String, String)> = changes.collect();
    assert!(changes.len() >= 14, "{changes:?}");
    for (number, (pattern, method)) in changes.iter().enumerate() {
        let face = Face::new().await;
        let key = format!("click-{number}");
        let headers = [
            ("origin", own.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("sec-fetch-mode", "cors"),
            ("sec-fetch-dest", "empty"),
            ("content-type", "application/json"),
            ("idempotency-key", key.as_str()),
        ];
        let path = filled(pattern);
        let answer = face.send(method, &path, &headers, "{}").await;
        assert!(
            ![401, 403, 405, 415, 421].contains(&answer.status),
            "{method} {path}: {}",
            answer.text
        );
        assert_eq!(answer.header("access-control-allow-origin"), None, "{path}");
    }
    let face = Face::new().await;
    let paused = |body: &'static str| {
        let headers = [
            ("origin", own.as_str()),
            ("sec-fetch-site", "same-origin"),
            ("content-type", "application/json"),
            ("idempotency-key", "pause"),
        ];
        let face = &face;
        async move { face.send("POST", "/jobs/a/pause", &headers, body).await }
    };
    let body = "{\"durationSeconds\": 600, \"note\": \"the disk is full\"}";
    let answer = paused(body).await;
    assert_eq!(answer.status, 200, "{}", answer.text);
    assert_eq!(answer.json()["paused"]["note"], "the disk is full");
    assert_eq!(paused(body).await.header("idempotency-replayed"), Some("true"));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_the_router_are_problem_documents() {
    let face = Face::new().await;
    let check = async |method: &str, path: &str, status: u16, code: &str| {
        let answer = face.send(method, path, &[("x-request-id", "my-id")], "").await;
        let document = answer.json();
        assert_eq!(
            (answer.status, document["code"].as_str()),
            (status, Some(code)),
            "{method} {path}"
        );
        assert_eq!(answer.header("content-type"), Some("application/problem+json"));
        assert_eq!(
            (document["request_id"].as_str(), answer.header("x-request-id")),
            (Some("my-id"), Some("my-id"))
        );
        assert_eq!(document["instance"].as_str(), path.split('?').next());
        answer
    };
    check("GET", "/nothing", 404, "NOT_FOUND").await;
    check("GET", "/api/nothing", 404, "NOT_FOUND").await;
    check("POST", "/api/runs/run_0/~cancel", 404, "NOT_FOUND").await;
    check("POST", "/api/runs/run_0:nothing", 404, "NOT_FOUND").await;
    let wrong = check("DELETE", "/pools", 405, "UNIMPLEMENTED").await;
    assert_eq!(wrong.header("allow"), Some("GET,HEAD"));
    check("GET", "/jobs/a/start", 405, "UNIMPLEMENTED").await;
    check("GET", "/api/runs/run_0:cancel", 405, "UNIMPLEMENTED").await;
    check("GET", "/api/runs?cursor=%ff", 400, "INVALID_ARGUMENT").await;
    check("GET", "/jobs/%ff", 400, "INVALID_ARGUMENT").await;
    let head = face.send("HEAD", "/pools", &[], "").await;
    assert_eq!((head.status, head.text.as_str()), (200, ""));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_tenant_that_is_not_configured_is_refused() {
    let face = Face::new().await;
    for (tenant, status) in [("default", 200), ("acme", 403), ("", 403)] {
        let answer = face.send("GET", "/jobs", &[("x-tenant-id", tenant)], "").await;
        assert_eq!(answer.status, status, "{tenant}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_a_limit() {
    let server = ServerConfig {
        max_body_bytes: 100,
        ..ServerConfig::default()
    };
    let face = Face::with(Config {
        server,
        ..Config::default()
    })
    .await;
    let answer = face
        .post_json(
            "/pools/p/pause",
            &format!("{{\"note\": \"{}\"}}", "n".repeat(100)),
        )
        .await;
    assert_eq!(
        (answer.status, answer.json()["code"].as_str()),
        (413, Some("OUT_OF_RANGE"))
    );
    assert_eq!(
        face.post_json("/pools/p/pause", "{\"note\": \"n\"}").await.status,
        200
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_has_a_time_limit() {
    let server = ServerConfig {
        request_timeout_ms: 20,
        ..ServerConfig::default()
    };
    let face = Face::with(Config {
        server,
        ..Config::default()
    })
    .await;
    face.app
        .engine
        .store
        .faults()
        .plan("store.read", Fault::Stall(Duration::from_millis(500)), 1);
    let answer = face.get("/pools").await;
    assert_eq!(
        (answer.status, answer.json()["code"].as_str()),
        (504, Some("DEADLINE_EXCEEDED"))
    );
    assert_eq!(answer.json()["retryable"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn allowed_origins_may_read_and_no_other() {
    let board = "https://board.example.com";
    let server = ServerConfig {
        allowed_origins: vec![board.to_owned()],
        ..ServerConfig::default()
    };
    let face = Face::with(Config {
        server,
        ..Config::default()
    })
    .await;
    let answer = face.send("GET", "/pools", &[("origin", board)], "").await;
    assert_eq!(
        (answer.status, answer.header("access-control-allow-origin")),
        (200, Some(board))
    );
    assert_eq!(answer.header("vary"), Some("origin"));
    let asked = [("origin", board), ("access-control-request-method", "POST")];
    let preflight = face.send("OPTIONS", "/jobs/a/start", &asked, "").await;
    assert_eq!(
        (preflight.status, preflight.header("access-control-allow-origin")),
        (204, Some(board))
    );
    assert_eq!(
        face.send("GET", "/pools", &[("origin", "https://other.example.com")], "")
            .await
            .status,
        403
    );
}
