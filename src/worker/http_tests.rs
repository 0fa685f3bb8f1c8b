//! Requests of HTTP steps against receivers on loopback: honest, slow, endless and malicious ones.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::http::{HttpContext, HttpEnd, HttpFailure, perform};
use super::outbound::guarded::GuardedClient;
use crate::domain::workflow::http_args::{HttpMethod, HttpRequestSpec, StatusWanted};
use crate::words::limits;
use crate::words::network::EgressRule;
use crate::words::payload::JsonText;
use crate::words::time::{ManualClock, Millis};

/// A receiver and everything that it was asked.
struct Receiver {
    port: u16,
    asked: Arc<Mutex<Vec<String>>>,
}

/// What a receiver says to a request.
type Answering = Arc<dyn Fn(&str) -> Vec<u8> + Send + Sync>;

impl Receiver {
    /// Answers each request with what `answer` makes of it, and closes.
    async fn new(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Receiver {
        Receiver::serving(Arc::new(answer), "").await
    }

    /// Sends `endless` again and again behind the answer.
    async fn serving(answer: Answering, endless: &'static str) -> Receiver {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let known = Arc::clone(&asked);
        tokio::spawn(async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let (answer, known) = (Arc::clone(&answer), Arc::clone(&known));
                tokio::spawn(async move {
                    let request = read_request(&mut stream).await;
                    let bytes = answer(&request);
                    known.lock().unwrap().push(request);
                    let mut alive = stream.write_all(&bytes).await.is_ok();
                    while !endless.is_empty() && alive {
                        alive = stream.write_all(endless.as_bytes()).await.is_ok();
                    }
                    if bytes.is_empty() {
                        // It says nothing until the other end has had enough.
                        let mut rest = [0; 64];
                        while stream.read(&mut rest).await.is_ok_and(|count| count > 0) {}
                    }
                });
            }
        });
        Receiver { port, asked }
    }

    fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    fn asked(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        let count = stream.read(&mut piece).await.unwrap_or(0);
        bytes.extend_from_slice(&piece[..count]);
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            if count == 0 {
                return text;
            }
            continue;
        };
        let length = { head.lines() }.find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if count == 0 || body.len() >= length.unwrap_or(0) {
            return text;
        }
    }
}

fn answer(status: &str, headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let head = format!(
        "HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

async fn done_with(spec: &HttpRequestSpec, rules: &[&str]) -> HttpEnd {
    let rules: Vec<EgressRule> = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    let clock = ManualClock::at(Millis(784_111_777_000));
    let context = HttpContext {
        client: &GuardedClient::new(),
        rules: &rules,
        idempotency_key: Some("run-1/step"),
        clock: &clock,
    };
    perform(spec, &context).await
}

/// With loopback on the operator's list.
async fn done(spec: &HttpRequestSpec) -> Result<Value, HttpFailure> {
    let end = done_with(spec, &["127.0.0.1"]).await;
    end.result.map(|text| text.read().unwrap())
}

async fn failed(spec: &HttpRequestSpec) -> HttpFailure {
    done(spec).await.unwrap_err()
}

fn get(url: &str) -> HttpRequestSpec {
    HttpRequestSpec::new(HttpMethod::Get, url)
}

#[tokio::test]
async fn a_request_is_sent_as_it_was_meant_and_its_answer_is_the_output() {
    let headers = "content-type: application/json; charset=utf-8\r\nETag: \"7\"\r\nset-cookie: a=b\r\nx-a: 1\r\nx-a: 2\r\n";
    let receiver = Receiver::new(move |_| answer("201 Created", headers, "{\"id\": 1.0}")).await;
    let mut spec = HttpRequestSpec::new(HttpMethod::Post, &receiver.url("/things?a=1"));
    spec.query.push(("q".to_owned(), "x y".to_owned()));
    spec.headers
        .insert("X-Token".to_owned(), "s3cret-token".to_owned());
    spec.body = Some(JsonText::parse("{\"b\": [1,2]}").unwrap());
    let output = done(&spec).await.unwrap();
    assert_eq!(output["status"], 201);
    assert_eq!(output["body"], json!({"id": 1.0}));
    assert_eq!(output["encoding"], "json");
    let kept = json!({"content-type": "application/json; charset=utf-8", "etag": "\"7\"", "x-a": "1, 2",
        "content-length": "11"});
    assert_eq!(output["headers"], kept);

    let asked = receiver.asked().remove(0);
    assert!(
        asked.starts_with("POST /things?a=1&q=x+y HTTP/1.1\r\n"),
        "{asked}"
    );
    let version = env!("CARGO_PKG_VERSION");
    for line in [
        "x-token: s3cret-token",
        "idempotency-key: run-1/step",
        "content-type: application/json",
        &format!("user-agent: ductor/{version}"),
    ] {
        assert!(asked.contains(&format!("{line}\r\n")), "{line}: {asked}");
    }
    assert!(asked.ends_with("\r\n\r\n{\"b\": [1,2]}"), "{asked}");
}

#[tokio::test]
async fn an_answer_is_json_text_or_bytes() {
    let check = async |headers: &'static str, body: &'static [u8], expected: Value, encoding: &str| {
        let receiver = Receiver::new(move |_| answer("200 OK", headers, body)).await;
        let output = done(&get(&receiver.url("/"))).await.unwrap();
        assert_eq!(
            (&output["body"], &output["encoding"]),
            (&expected, &json!(encoding))
        );
    };
    check("", b"[1]", json!([1]), "json").await;
    check(
        "content-type: application/problem+json\r\n",
        b"{}",
        json!({}),
        "json",
    )
    .await;
    check(
        "content-type: application/json\r\n",
        b"{oops",
        json!("{oops"),
        "text",
    )
    .await;
    check("content-type: text/plain\r\n", b"7", json!("7"), "text").await;
    check(
        "content-type: image/png\r\n",
        b"\xff\x00",
        json!("/wA="),
        "base64",
    )
    .await;
    check("", b"", Value::Null, "none").await;
}

#[tokio::test]
async fn a_status_that_is_not_expected_is_a_failure_with_its_code() {
    let receiver = Receiver::new(|request| {
        let path = request.split(' ').nth(1).unwrap_or_default();
        match path {
            "/busy" => answer(
                "503 Service Unavailable",
                "retry-after: 7\r\n",
                "later,\n  s3cret-token says",
            ),
            "/date" => answer(
                "429 Too Many Requests",
                "retry-after: Sun, 06 Nov 1994 08:50:37 GMT\r\n",
                "",
            ),
            "/past" => answer("503 X", "retry-after: Sun, 06 Nov 1994 08:00:00 GMT\r\n", ""),
            "/ages" => answer("503 X", "retry-after: 99999999999999999999\r\n", ""),
            "/vague" => answer("503 X", "retry-after: soon\r\n", ""),
            "/never" => answer("501 Not Implemented", "", ""),
            _ => answer("404 Not Found", "", "no /a-secret-path here"),
        }
    })
    .await;
    let mut busy = get(&receiver.url("/busy"));
    busy.headers
        .insert("authorization".to_owned(), "s3cret-token".to_owned());
    let failure = failed(&busy).await;
    let expected = HttpFailure {
        code: "http.status_503".to_owned(),
        message: format!(
            "127.0.0.1:{} answered 503 Service Unavailable: later, *** says",
            receiver.port
        ),
        retryable: true,
        retry_after_ms: Some(7_000),
    };
    assert_eq!(failure, expected);
    let of = async |path: &str| {
        let failure = failed(&get(&receiver.url(path))).await;
        (failure.code, failure.retryable, failure.retry_after_ms)
    };
    assert_eq!(
        of("/date").await,
        ("http.status_429".to_owned(), true, Some(60_000))
    );
    assert_eq!(of("/past").await.2, Some(0));
    assert_eq!(of("/ages").await.2, Some(limits::HTTP_RETRY_AFTER_MS_MAX));
    assert_eq!(of("/vague").await.2, None);
    assert_eq!(of("/never").await, ("http.status_501".to_owned(), false, None));
    let failure = failed(&get(&receiver.url("/a-secret-path"))).await;
    assert!(
        failure.message.ends_with(" 404 Not Found: no /*** here"),
        "{}",
        failure.message
    );
    assert!(!failure.retryable);

    let mut wanted = get(&receiver.url("/gone"));
    wanted.expect = vec![StatusWanted::Code(404), StatusWanted::Class(2)];
    assert_eq!(done(&wanted).await.unwrap()["status"], 404);
}

#[tokio::test]
async fn what_is_inside_is_denied_unless_it_is_listed() {
    let receiver = Receiver::new(|_| answer("200 OK", "", "1")).await;
    let port = receiver.port;
    for url in [
        format!("http://127.0.0.1:{port}/"),
        format!("http://localhost:{port}/"),
        format!("http://2130706433:{port}/"),
        format!("http://0x7f.1:{port}/"),
        format!("http://[::ffff:127.0.0.1]:{port}/"),
        format!("http://0.0.0.0:{port}/"),
    ] {
        let end = done_with(&get(&url), &["10.0.0.0/8"]).await;
        let failure = end.result.unwrap_err();
        assert_eq!(
            (failure.code.as_str(), failure.retryable),
            ("http.denied", false),
            "{url}"
        );
        assert!(
            failure
                .message
                .contains("and not in `egress.allow` of the configuration"),
            "{}",
            failure.message
        );
        assert!(end.passages.is_empty());
    }
    assert!(receiver.asked().is_empty(), "nobody was asked");
    let by_name = format!("localhost:{port}");
    let end = done_with(&get(&format!("http://localhost:{port}/")), &[&by_name]).await;
    assert!(end.result.is_ok(), "{:?}", end.result);
    let [passage] = end.passages.as_slice() else {
        panic!("{:?}", end.passages)
    };
    assert_eq!(passage.to, by_name);
    assert_eq!(passage.reason.to_string(), format!("egress.allow {by_name}"));
}

#[tokio::test]
async fn a_redirect_is_followed_when_asked_for_and_judged_at_each_hop() {
    let other = Receiver::new(|_| answer("200 OK", "", "\"there\"")).await;
    let there = other.url("/there");
    let receiver = Receiver::new(move |request| {
        let to = |status: &str, location: &str| answer(status, &format!("location: {location}\r\n"), "");
        match request.split(' ').nth(1).unwrap_or_default() {
            "/metadata" => to("302 Found", "http://169.254.169.254/latest/"),
            "/private" => to("307 Temporary Redirect", "http://10.0.0.1/"),
            "/file" => to("302 Found", "file:///etc/passwd"),
            "/loop" => to("302 Found", "/loop"),
            "/other" => to("303 See Other", &there),
            "/same" => to("308 Permanent Redirect", "/end"),
            _ => answer("200 OK", "", "\"here\""),
        }
    })
    .await;
    let asked = |path: &str, follow| {
        let mut spec = HttpRequestSpec::new(HttpMethod::Post, &receiver.url(path));
        spec.follow_redirects = follow;
        spec.body = Some(JsonText::parse("[7]").unwrap());
        spec.headers
            .insert("authorization".to_owned(), "s3cret-token".to_owned());
        spec
    };
    assert_eq!(failed(&asked("/other", 0)).await.code, "http.status_303");
    for (path, code) in [
        ("/metadata", "http.denied"),
        ("/private", "http.denied"),
        ("/file", "http.redirect"),
        ("/loop", "http.redirect"),
    ] {
        assert_eq!(failed(&asked(path, 5)).await.code, code, "{path}");
    }
    assert_eq!(done(&asked("/same", 1)).await.unwrap()["body"], "here");
    let last = receiver.asked().pop().unwrap();
    assert!(
        last.starts_with("POST /end ") && last.contains("s3cret-token") && last.ends_with("[7]"),
        "{last}"
    );

    assert_eq!(done(&asked("/other", 1)).await.unwrap()["body"], "there");
    let there = other.asked().remove(0);
    assert!(there.starts_with("GET /there "), "{there}");
    for gone in ["s3cret-token", "[7]", "idempotency-key", "content-type"] {
        assert!(!there.contains(gone), "{gone}: {there}");
    }
    let ports = [receiver.port, other.port].map(|port| format!("127.0.0.1:{port}"));
    let end = done_with(&asked("/other", 1), &[&ports[0], &ports[1]]).await;
    assert_eq!(
        end.passages.iter().map(|hop| hop.to.clone()).collect::<Vec<_>>(),
        ports
    );
    let end = done_with(&asked("/other", 1), &[&ports[0]]).await;
    assert_eq!(
        end.result.unwrap_err().code,
        "http.denied",
        "another port of the same address"
    );
    assert_eq!(end.passages.len(), 1);
}

#[tokio::test]
async fn an_answer_that_is_too_long_or_too_slow_ends_in_time() {
    let said = Receiver::new(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\nx".to_vec()).await;
    let head = || Arc::new(|_: &str| b"HTTP/1.1 200 OK\r\n\r\n".to_vec());
    let endless = Receiver::serving(head(), "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx").await;
    let endless_head = Receiver::serving(
        Arc::new(|_: &str| b"HTTP/1.1 200 OK\r\nx: ".to_vec()),
        "xxxxxxxxxxxx",
    )
    .await;
    for receiver in [&said, &endless] {
        let failure = failed(&get(&receiver.url("/"))).await;
        assert_eq!(failure.code, "http.too_large");
        assert_eq!(failure.message, "the answer is longer than 1048576 bytes");
    }
    assert_eq!(failed(&get(&endless_head.url("/"))).await.code, "http.broken");

    let silent = Receiver::new(|_| Vec::new()).await;
    let half = Receiver::new(|_| b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhalf".to_vec()).await;
    let mut spec = get(&silent.url("/"));
    spec.timeout_ms = 200;
    let failure = failed(&spec).await;
    assert_eq!((failure.code.as_str(), failure.retryable), ("http.timeout", true));
    assert_eq!(failure.message, "no whole answer within 200 ms");
    assert_eq!(failed(&get(&half.url("/"))).await.code, "http.broken");

    let exact = Receiver::new(|_| answer("200 OK", "content-type: text/plain\r\n", "12345")).await;
    let mut spec = get(&exact.url("/"));
    spec.max_response_bytes = 5;
    assert!(done(&spec).await.is_ok());
    spec.max_response_bytes = 4;
    assert_eq!(failed(&spec).await.code, "http.too_large");
}

#[tokio::test]
async fn who_does_not_answer_or_speaks_no_tls_has_a_code_of_its_own() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let failure = failed(&get(&format!("http://127.0.0.1:{port}/secret-path"))).await;
    assert_eq!(
        failure.message,
        format!("127.0.0.1:{port} does not answer: Connection refused (os error 111)")
    );
    assert_eq!((failure.code.as_str(), failure.retryable), ("http.connect", true));
    // No label is that long, so nobody is asked for it.
    let failure = failed(&get(&format!("http://{}.invalid/", "a".repeat(64)))).await;
    assert_eq!((failure.code.as_str(), failure.retryable), ("http.lookup", true));
    for said in ["HTTP/1.1 400 Bad Request\r\n\r\n", ""] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        tokio::spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let read = stream.read(&mut [0; 4096]).await.unwrap();
            assert!(read > 0, "it says something first");
            stream.write_all(said.as_bytes()).await.unwrap();
        });
        let failure = failed(&get(&format!("https://127.0.0.1:{port}/"))).await;
        assert_eq!(
            (failure.code.as_str(), failure.retryable),
            ("http.tls", false),
            "{failure:?}"
        );
    }
}

#[tokio::test]
async fn a_request_that_cannot_be_sent_says_what_is_wrong_and_shows_no_value() {
    let with_header = |name: &str, value: &str| {
        let mut spec = get("http://127.0.0.1:1/");
        spec.headers.insert(name.to_owned(), value.to_owned());
        spec
    };
    let mut text_body = with_header("content-type", "text/plain");
    text_body.body = Some(JsonText::parse("{}").unwrap());
    let mut many = get("http://127.0.0.1:1/");
    many.headers = { 0..65 }
        .map(|index| (format!("x-{index}"), String::new()))
        .collect();
    let mut twice = with_header("X-A", "1");
    twice.headers.insert("x-a".to_owned(), "2".to_owned());
    let mut long_query = get("http://127.0.0.1:1/");
    long_query.query.push(("q".to_owned(), "x".repeat(9_000)));
    for (spec, expected) in [
        (get("ftp://x/"), "url: it must begin with http:// or https://"),
        (
            get("http://me:s3cret@x/"),
            "url: it has a user name in it; send the header `authorization` instead",
        ),
        (
            with_header("x a", "s3cret"),
            "header \"x a\": its name is no name of a header",
        ),
        (
            with_header("x-a", "s3cret\r\nx-b: 1"),
            "header \"x-a\": its value has a control character or more than one line",
        ),
        (
            with_header("Host", "s3cret"),
            "header \"Host\": it is set by ductor itself",
        ),
        (
            with_header("Proxy-Authorization", "s3cret"),
            "header \"Proxy-Authorization\": it is set by ductor itself",
        ),
        (
            with_header("x-a", &"s".repeat(40_000)),
            "headers: together they have 40003 bytes; at most 32768 are sent",
        ),
        (
            text_body,
            "body: under a `content-type` that is not JSON it must be a string",
        ),
        (many, "headers: at most 64 are sent"),
        (twice, "header \"x-a\": it is there twice"),
        (long_query, "url: with its query it is longer than 8192 bytes"),
    ] {
        let failure = failed(&spec).await;
        assert_eq!(
            (failure.code.as_str(), failure.retryable),
            ("http.invalid", false)
        );
        assert_eq!(failure.message, expected);
    }
}

#[tokio::test]
async fn a_string_under_another_type_is_sent_as_its_letters() {
    let receiver = Receiver::new(|_| answer("204 No Content", "", "")).await;
    let mut spec = HttpRequestSpec::new(HttpMethod::Put, &receiver.url("/"));
    spec.headers
        .insert("Content-Type".to_owned(), "text/csv".to_owned());
    spec.body = Some(JsonText::parse("\"a,b\\n1,2\"").unwrap());
    spec.headers
        .insert("Idempotency-Key".to_owned(), "mine".to_owned());
    let output = done(&spec).await.unwrap();
    assert_eq!(
        (&output["body"], &output["encoding"]),
        (&Value::Null, &json!("none"))
    );
    let asked = receiver.asked().remove(0);
    assert!(
        asked.contains("content-type: text/csv\r\n") && asked.ends_with("a,b\n1,2"),
        "{asked}"
    );
    assert!(
        asked.contains("idempotency-key: mine\r\n") && !asked.contains("run-1/step"),
        "{asked}"
    );
}

#[tokio::test]
async fn who_drops_the_request_closes_its_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let spec = get(&format!("http://127.0.0.1:{port}/"));
    let asking = tokio::spawn(async move { done(&spec).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    read_request(&mut stream).await;
    asking.abort();
    assert!(asking.await.unwrap_err().is_cancelled());
    let rest = tokio::time::timeout(Duration::from_secs(10), stream.read(&mut [0; 8])).await;
    assert_eq!(rest.unwrap().unwrap(), 0, "the other end hung up");
}
