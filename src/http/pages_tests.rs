//! The dashboard's page and files as they are sent.

use super::fixture::Face;

#[tokio::test(flavor = "multi_thread")]
async fn every_page_address_is_the_page_and_carries_its_policy() {
    let face = Face::new().await;
    for path in [
        "/",
        "/ui",
        "/ui/runs",
        "/ui/runs/run_1",
        "/ui/jobs/a.b",
        "/ui/no/such/page",
    ] {
        let answer = face.send("GET", path, &[], "").await;
        assert_eq!(answer.status, 200, "{path}");
        assert_eq!(answer.header("content-type"), Some("text/html; charset=utf-8"));
        assert_eq!(answer.header("cache-control"), Some("no-cache"));
        let policy = answer.header("content-security-policy").expect("a policy");
        assert!(policy.starts_with("default-src 'self'"), "{policy}");
        // A link on another site may lead here; nothing else of it may look.
        let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
        assert_eq!(face.send("GET", path, &link, "").await.status, 200, "{path}");
        let peek = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "no-cors")];
        assert_eq!(face.send("GET", path, &peek, "").await.status, 403, "{path}");
        assert_eq!(
            face.send("GET", path, &[("host", "evil.example")], "")
                .await
                .status,
            421,
            "{path}"
        );
        assert_eq!(face.send("POST", path, &[], "").await.status, 405, "{path}");
    }
    let link = [("sec-fetch-site", "cross-site"), ("sec-fetch-mode", "navigate")];
    assert_eq!(face.send("GET", "/web/app/main.js", &link, "").await.status, 403);
    assert_eq!(face.send("GET", "/api/status", &link, "").await.status, 403);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_file_is_asked_about_again_and_sent_once() {
    let face = Face::new().await;
    let first = face.send("GET", "/web/app/main.js", &[], "").await;
    assert_eq!(
        (first.status, first.header("content-type")),
        (200, Some("text/javascript; charset=utf-8"))
    );
    let etag = first.header("etag").expect("an ETag").to_owned();
    assert!(etag.starts_with('"') && etag.len() == 34, "{etag} is not strong");
    let again = face
        .send("GET", "/web/app/main.js", &[("if-none-match", &etag)], "")
        .await;
    assert_eq!((again.status, again.text.len()), (304, 0));
    assert_eq!(again.header("etag"), Some(etag.as_str()));
    let other = face
        .send("GET", "/web/app/main.js", &[("if-none-match", "\"0\"")], "")
        .await;
    assert_eq!(other.status, 200);
    let style = face.send("GET", "/web/style/tokens.css", &[], "").await;
    assert_eq!(style.header("content-type"), Some("text/css; charset=utf-8"));
    for path in [
        "/web/../Cargo.toml",
        "/web/app",
        "/web/none.js",
        "/web/vendor/VENDOR.md",
        "/web/%2e%2e/src/lib.rs",
        "/web/",
    ] {
        let answer = face.send("GET", path, &[], "").await;
        assert_eq!(
            (answer.status, answer.json()["code"].clone()),
            (404, "NOT_FOUND".into()),
            "{path}"
        );
    }
}
