//! The HTTP client: one request, one answer or a failure that says why not.
//!
//! Every change carries an `Idempotency-Key`; when the connection breaks it is sent again with the same one, so that a
//! lost answer is never a second run.

use std::time::Duration;

use reqwest::header::{ACCEPT, CONTENT_TYPE, IF_MATCH};
use reqwest::{Method, RequestBuilder, Response, StatusCode, Url};
use serde_json::{Value, json};

use super::caller::Caller;
use super::failure::{Failure, Problem};
use super::fields;
use crate::words::ids::EntryId;
use crate::words::limits;

/// How long a connection may take to be made.
const CONNECT: Duration = Duration::from_secs(5);
/// How long an answer may take: more than the server's own limit.
const ANSWER: Duration = Duration::from_secs(40);
/// Pauses before a change is sent again after its connection broke.
const PAUSES: [Duration; 3] = [
    Duration::from_millis(100),
    Duration::from_millis(300),
    Duration::from_secs(1),
];

/// A client of one daemon.
#[derive(Debug, Clone)]
pub(super) struct Client {
    http: reqwest::Client,
    server: Url,
}

/// A body as it came, and read.
#[derive(Debug, Clone)]
pub(super) struct Body {
    /// As it came.
    pub(super) text: String,
    /// Read.
    pub(super) value: Value,
}

/// Part of a log.
#[derive(Debug)]
pub(super) struct LogPart {
    /// Where it begins.
    pub(super) start: Option<u64>,
    /// The bytes.
    pub(super) bytes: Vec<u8>,
    /// Bytes of the log so far.
    pub(super) size: Option<u64>,
}

/// The address of a daemon, checked.
pub(super) fn server_url(text: &str) -> Result<Url, Failure> {
    // Everybody writes `127.0.0.1:8470` first; what follows the colon of a scheme is no number.
    let bare = !text.contains("://")
        && text
            .rsplit_once(':')
            .is_some_and(|(_, port)| port.trim_end_matches('/').parse::<u16>().is_ok());
    let whole = if bare {
        format!("http://{text}")
    } else {
        text.to_owned()
    };
    let url = Url::parse(&whole).map_err(|error| {
        Failure::Usage(format!(
            "--server `{text}` is no URL ({error}); write http://127.0.0.1:8470"
        ))
    })?;
    match url.scheme() {
        "http" if url.has_host() => Ok(url),
        "https" => Err(Failure::Usage(format!(
            "--server {text}: this build does not speak https; use an http address, or a tunnel such as \
             `ssh -L 8470:127.0.0.1:8470 HOST`"
        ))),
        _ => Err(Failure::Usage(format!(
            "--server `{text}` is no http address; write http://127.0.0.1:8470"
        ))),
    }
}

impl Client {
    /// A client of the daemon at that address.
    pub(super) fn new(server: &str, caller: &Caller) -> Result<Client, Failure> {
        let server = server_url(server)?;
        // A proxy is for the way out; what we ask is at hand. Certificates are for https: reading those of the machine
        // would take time, and fail where there are none.
        let http = reqwest::Client::builder()
            .no_proxy()
            .tls_certs_only([])
            .redirect(reqwest::redirect::Policy::none())
            .connect_timeout(CONNECT)
            .default_headers(caller.headers()?)
            .user_agent(concat!("ductor/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|error| Failure::Negative(format!("the HTTP client cannot start: {error}")))?;
        Ok(Client { http, server })
    }

    /// The address as given.
    pub(super) fn server(&self) -> String {
        self.server.as_str().trim_end_matches('/').to_owned()
    }

    /// A URL of these path segments, each encoded.
    pub(super) fn url(&self, segments: &[&str], query: &[(&str, String)]) -> Url {
        let mut url = self.server.clone();
        if let Ok(mut path) = url.path_segments_mut() {
            path.pop_if_empty().extend(segments);
        }
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Asks for a JSON document.
    pub(super) async fn get(&self, segments: &[&str], query: &[(&str, String)]) -> Result<Body, Failure> {
        let request = self.http.get(self.url(segments, query)).timeout(ANSWER);
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        self.read_json(answer).await
    }

    /// Asks for a list, page by page, up to `limit` items; one document with all of them.
    pub(super) async fn list(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
        limit: usize,
    ) -> Result<Body, Failure> {
        let mut items: Vec<Value> = Vec::new();
        let mut cursor: Option<String> = None;
        loop {
            let mut asked = query.to_vec();
            let size = (limit - items.len()).min(limits::PAGE_MAX);
            asked.push(("pagination.page_size", size.to_string()));
            let is_first = cursor.is_none();
            asked.extend(cursor.take().map(|cursor| ("pagination.cursor", cursor)));
            let body = self.get(segments, &asked).await?;
            items.extend_from_slice(fields::items(&body.value));
            cursor = fields::text(&body.value, &["pagination.next_cursor"]);
            if is_first && cursor.is_none() {
                return Ok(body);
            }
            if cursor.is_none() || items.len() >= limit {
                let value = json!({"data": items});
                let text = value.to_string();
                return Ok(Body { text, value });
            }
        }
    }

    /// Asks whatever the status is: for health pages.
    pub(super) async fn probe(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<(u16, String), Failure> {
        let request = self.http.get(self.url(segments, query)).timeout(ANSWER);
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        let status = answer.status().as_u16();
        let text = answer.text().await.map_err(|error| self.broken(&error))?;
        Ok((status, text))
    }

    /// Asks for a change, with a key of our own unless one is given.
    pub(super) async fn post(
        &self,
        segments: &[&str],
        body: Option<&Value>,
        key: Option<&str>,
    ) -> Result<Body, Failure> {
        let body = body.map(ToString::to_string);
        self.change(
            Method::POST,
            self.url(segments, &[]),
            body.as_deref(),
            (key, None),
        )
        .await
    }

    /// Puts a document, letter by letter, in the place of another, if that still has the version that is expected.
    pub(super) async fn put(
        &self,
        segments: &[&str],
        text: &str,
        expected: Option<u64>,
    ) -> Result<Body, Failure> {
        self.change(Method::PUT, self.url(segments, &[]), Some(text), (None, expected))
            .await
    }

    /// Posts a document, letter by letter.
    pub(super) async fn post_text(&self, segments: &[&str], text: &str) -> Result<Body, Failure> {
        self.change(Method::POST, self.url(segments, &[]), Some(text), (None, None))
            .await
    }

    /// Removes a thing.
    pub(super) async fn delete(&self, segments: &[&str]) -> Result<Body, Failure> {
        self.delete_asked(segments, &[]).await
    }

    /// Removes a thing in some way.
    pub(super) async fn delete_asked(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<Body, Failure> {
        let url = self.url(segments, query);
        self.change(Method::DELETE, url, None, (None, None)).await
    }

    /// Changes some fields of a thing, if it still has the version that is expected.
    pub(super) async fn patch(
        &self,
        segments: &[&str],
        fields: &Value,
        expected: Option<u64>,
    ) -> Result<Body, Failure> {
        let (url, text) = (self.url(segments, &[]), fields.to_string());
        self.change(Method::PATCH, url, Some(&text), (None, expected))
            .await
    }

    async fn change(
        &self,
        method: Method,
        url: Url,
        body: Option<&str>,
        (key, expected): (Option<&str>, Option<u64>),
    ) -> Result<Body, Failure> {
        let fresh = EntryId::random().to_string();
        let mut request = self
            .http
            .request(method, url)
            .timeout(ANSWER)
            .header("Idempotency-Key", key.unwrap_or(&fresh));
        if let Some(body) = body {
            request = request
                .header(CONTENT_TYPE, "application/json")
                .body(body.to_owned());
        }
        if let Some(version) = expected {
            request = request.header(IF_MATCH, format!("\"{version}\""));
        }
        let mut pauses = PAUSES.iter();
        loop {
            let once = request.try_clone().expect("a body of text can be sent again");
            let failure = match self.send_once(once).await {
                Ok(answer) => return Ok(answer),
                Err(failure) => failure,
            };
            let Some(pause) = pauses.next().filter(|_| may_be_sent_again(&failure)) else {
                return Err(failure);
            };
            tokio::time::sleep(*pause).await;
        }
    }

    async fn send_once(&self, request: RequestBuilder) -> Result<Body, Failure> {
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        self.read_json(answer).await
    }

    /// Asks for part of a log.
    pub(super) async fn log_part(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<LogPart, Failure> {
        let request = self.http.get(self.url(segments, query)).timeout(ANSWER);
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        let answer = self.refused(answer).await?;
        let number = |name: &str| answer.headers().get(name)?.to_str().ok()?.parse::<u64>().ok();
        let (start, size) = (number("x-log-start"), number("x-log-size"));
        let bytes = answer
            .bytes()
            .await
            .map_err(|error| self.broken(&error))?
            .to_vec();
        Ok(LogPart { start, bytes, size })
    }

    /// Opens an event stream.
    pub(super) async fn stream(
        &self,
        segments: &[&str],
        query: &[(&str, String)],
    ) -> Result<Response, Failure> {
        let request = self
            .http
            .get(self.url(segments, query))
            .header(ACCEPT, "text/event-stream");
        let answer = request.send().await.map_err(|error| self.broken(&error))?;
        self.refused(answer).await
    }

    /// The next bytes of a stream; `None` at its end, however it came.
    pub(super) async fn next_chunk(&self, stream: &mut Response) -> Option<Vec<u8>> {
        stream.chunk().await.ok().flatten().map(|chunk| chunk.to_vec())
    }

    /// A refusal becomes a failure.
    async fn refused(&self, answer: Response) -> Result<Response, Failure> {
        let status = answer.status();
        if status.is_success() {
            return Ok(answer);
        }
        let request_id = answer
            .headers()
            .get("x-request-id")
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned);
        let body = answer.text().await.unwrap_or_default();
        Err(Failure::from(Problem::read(
            status.as_u16(),
            &body,
            request_id.as_deref(),
        )))
    }

    async fn read_json(&self, answer: Response) -> Result<Body, Failure> {
        let answer = self.refused(answer).await?;
        let status = answer.status();
        let text = answer.text().await.map_err(|error| self.broken(&error))?;
        if text.is_empty() && status != StatusCode::OK {
            return Ok(Body {
                text: "{}".to_owned(),
                value: Value::Object(serde_json::Map::new()),
            });
        }
        match serde_json::from_str(&text) {
            Ok(value) => Ok(Body { text, value }),
            Err(_) => Err(Failure::Unreachable {
                sentence: format!("what answers at {} is not ductor", self.server()),
                sent: true,
            }),
        }
    }

    /// What a broken exchange says to a person.
    fn broken(&self, error: &reqwest::Error) -> Failure {
        let server = self.server();
        let sentence = if error.is_timeout() && !error.is_connect() {
            format!(
                "the daemon at {server} did not answer within {} s",
                ANSWER.as_secs()
            )
        } else if error.is_connect() {
            format!(
                "no daemon is reachable at {server} ({}); start one with `ductor serve`, or name another with --server",
                root_cause(error)
            )
        } else {
            format!("the connection to {server} broke: {}", root_cause(error))
        };
        Failure::Unreachable {
            sentence,
            sent: !error.is_connect(),
        }
    }
}

/// A broken connection, and a first try that is still being worked on.
fn may_be_sent_again(failure: &Failure) -> bool {
    match failure {
        Failure::Unreachable { .. } => true,
        Failure::Problem(problem) => problem.status == 409 && problem.code == "ABORTED",
        Failure::Usage(_)
        | Failure::NotFound(_)
        | Failure::Conflict(_)
        | Failure::Negative(_)
        | Failure::TimedOut(_)
        | Failure::OutputClosed => false,
    }
}

/// The innermost error says it best.
fn root_cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(next) = inner.source() {
        inner = next;
    }
    let text = inner.to_string();
    let end = text.find(" (os error").unwrap_or(text.len());
    text[..end].to_lowercase()
}
