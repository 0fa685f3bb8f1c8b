//! A step of the type HTTP: one request, its redirects, and what became of it.
//!
//! The answer is judged by its status (`expect`), read to a limit, and becomes the output of the step. Whoever drops the
//! future ends the request. No text shows a value of a header or the URL behind its host: tokens stand there.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use serde::Serialize;
use serde_json::value::RawValue;

use super::mask::{Needles, masked};
use super::outbound::guarded::{Answer, GuardedClient, Passage, Request, SendFailure, check_header};
use super::outbound::needles;
use super::outbound::target::Target;
use crate::domain::workflow::http_args::{HttpMethod, HttpRequestSpec};
use crate::words::limits;
use crate::words::network::EgressRule;
use crate::words::payload::JsonText;
use crate::words::time::{Clock, parse_http_date};

/// Bytes of a refused answer that are looked at, and characters of it that are shown.
const SHOWN_BYTES_MAX: usize = 4 << 10;
const SHOWN_MAX: usize = 160;
/// Headers that belong to the connection and not to the caller.
const NOT_FOR_CALLERS: [&str; 9] = [
    "connection",
    "content-length",
    "expect",
    "host",
    "keep-alive",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
/// Headers that may follow a redirect to another service. All others may carry what is only for the first.
const FOR_ALL_SERVICES: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];

/// Codes of failures that are no status.
pub mod code {
    /// The request cannot be sent as it is.
    pub const INVALID: &str = "http.invalid";
    /// The egress guard.
    pub const DENIED: &str = "http.denied";
    /// The name has no address.
    pub const LOOKUP: &str = "http.lookup";
    /// Nobody answers at the address.
    pub const CONNECT: &str = "http.connect";
    /// No encryption, or a bad certificate.
    pub const TLS: &str = "http.tls";
    /// The connection ended early, or what came is not HTTP.
    pub const BROKEN: &str = "http.broken";
    /// No whole answer in time.
    pub const TIMEOUT: &str = "http.timeout";
    /// A longer answer than was asked for.
    pub const TOO_LARGE: &str = "http.too_large";
    /// A redirect that is not followed.
    pub const REDIRECT: &str = "http.redirect";
}

/// Why there is no output.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpFailure {
    /// `http.status_503`, or one of [`code`].
    pub code: String,
    /// A sentence for people.
    pub message: String,
    /// Another try may end otherwise.
    pub retryable: bool,
    /// How long the other side asks to wait.
    pub retry_after_ms: Option<u64>,
}

/// What became of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpEnd {
    /// The output `{status, headers, body, encoding}`, or why there is none.
    pub result: Result<JsonText, HttpFailure>,
    /// Where it went, hop by hop, and by which rule each was allowed.
    pub passages: Vec<Passage>,
}

/// What is around a request.
pub struct HttpContext<'c> {
    /// Who sends it.
    pub client: &'c GuardedClient,
    /// What the operator allows besides public addresses.
    pub rules: &'c [EgressRule],
    /// Sent as the header `Idempotency-Key`, unless the step has one of its own.
    pub idempotency_key: Option<&'c str>,
    /// For dates in `Retry-After`.
    pub clock: &'c dyn Clock,
}

/// Sends the request and reads its answer.
pub async fn perform(spec: &HttpRequestSpec, context: &HttpContext<'_>) -> HttpEnd {
    let mut passages = Vec::new();
    let result = match Prepared::of(spec, context.idempotency_key) {
        Err(message) => Err(failure(code::INVALID, message, false)),
        Ok(prepared) => {
            let limit = Duration::from_millis(spec.timeout_ms);
            let answered = exchange(spec, prepared, context, &mut passages);
            match tokio::time::timeout(limit, answered).await {
                Ok(result) => result,
                Err(_) => {
                    let message = format!("no whole answer within {} ms", spec.timeout_ms);
                    Err(failure(code::TIMEOUT, message, true))
                }
            }
        }
    };
    HttpEnd { result, passages }
}

fn failure(code: &str, message: String, retryable: bool) -> HttpFailure {
    HttpFailure {
        code: code.to_owned(),
        message,
        retryable,
        retry_after_ms: None,
    }
}

/// A request that can be sent.
struct Prepared {
    method: HttpMethod,
    target: Target,
    headers: Vec<(String, String)>,
    body: Option<Vec<u8>>,
    hidden: Option<Arc<Needles>>,
}

impl Prepared {
    fn of(spec: &HttpRequestSpec, idempotency_key: Option<&str>) -> Result<Prepared, String> {
        let mut target = Target::parse(&spec.url).map_err(|why| format!("url: {why}"))?;
        target.add_query(&spec.query);
        if target.text().len() > limits::HTTP_URL_BYTES_MAX {
            return Err(format!(
                "url: with its query it is longer than {} bytes",
                limits::HTTP_URL_BYTES_MAX
            ));
        }
        let mut headers = headers_of(spec)?;
        let has = |headers: &[(String, String)], name: &str| headers.iter().any(|(other, _)| other == name);
        let mut values: Vec<String> = { headers.iter() }
            .filter(|(name, _)| !FOR_ALL_SERVICES.contains(&name.as_str()))
            .map(|(_, value)| value.clone())
            .collect();
        values.extend(spec.query.iter().map(|(_, value)| value.clone()));
        values.push(target.text().to_owned());
        if let Some(key) = idempotency_key
            && !has(&headers, "idempotency-key")
        {
            let name = "idempotency-key";
            check_header(name, key).map_err(|why| format!("idempotency_key: {why}"))?;
            headers.push((name.to_owned(), key.to_owned()));
        }
        let body = body_of(spec, &headers)?;
        if body.is_some() && !has(&headers, "content-type") {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Ok(Prepared {
            method: spec.method,
            target,
            headers,
            body,
            hidden: needles(&values),
        })
    }

    fn shown(&self, text: &str) -> String {
        match &self.hidden {
            Some(needles) => masked(needles, text),
            None => text.to_owned(),
        }
    }

    /// Goes on at another place, as browsers do: after 303, and after 301 and 302 of a POST, with a GET and no body.
    fn redirect(&mut self, status: u16, to: Target) {
        let becomes_get = match status {
            303 => self.method != HttpMethod::Head,
            301 | 302 => self.method == HttpMethod::Post,
            _ => false,
        };
        if becomes_get {
            self.method = HttpMethod::Get;
            self.body = None;
            self.headers.retain(|(name, _)| name != "content-type");
        }
        if !self.target.is_same_origin(&to) {
            { &mut self.headers }.retain(|(name, _)| FOR_ALL_SERVICES.contains(&name.as_str()));
        }
        self.target = to;
    }
}

/// The headers of the step, in lower case.
fn headers_of(spec: &HttpRequestSpec) -> Result<Vec<(String, String)>, String> {
    if spec.headers.len() > limits::HTTP_HEADERS_MAX {
        return Err(format!("headers: at most {} are sent", limits::HTTP_HEADERS_MAX));
    }
    let mut headers: Vec<(String, String)> = Vec::new();
    let mut bytes = 0;
    for (name, value) in &spec.headers {
        let lower = name.to_ascii_lowercase();
        check_header(&lower, value).map_err(|why| format!("header {name:?}: {why}"))?;
        if NOT_FOR_CALLERS.contains(&lower.as_str()) || lower.starts_with("proxy-") {
            return Err(format!("header {name:?}: it is set by ductor itself"));
        }
        if headers.iter().any(|(other, _)| *other == lower) {
            return Err(format!("header {name:?}: it is there twice"));
        }
        bytes += name.len() + value.len();
        headers.push((lower, value.clone()));
    }
    if bytes > limits::HTTP_HEADERS_BYTES_MAX {
        return Err(format!(
            "headers: together they have {bytes} bytes; at most {} are sent",
            limits::HTTP_HEADERS_BYTES_MAX
        ));
    }
    Ok(headers)
}

/// A string under another type than JSON is sent as its letters.
fn body_of(spec: &HttpRequestSpec, headers: &[(String, String)]) -> Result<Option<Vec<u8>>, String> {
    let Some(body) = &spec.body else { return Ok(None) };
    let content_type = headers.iter().find(|(name, _)| name == "content-type");
    if content_type.is_some_and(|(_, value)| !is_json(value)) {
        return match body.read::<String>() {
            Ok(text) => Ok(Some(text.into_bytes())),
            Err(_) => Err("body: under a `content-type` that is not JSON it must be a string".to_owned()),
        };
    }
    Ok(Some(body.as_str().as_bytes().to_vec()))
}

fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or_default();
    let essence = essence.trim().to_ascii_lowercase();
    essence == "application/json" || essence == "text/json" || essence.ends_with("+json")
}

async fn exchange(
    spec: &HttpRequestSpec,
    mut prepared: Prepared,
    context: &HttpContext<'_>,
    passages: &mut Vec<Passage>,
) -> Result<JsonText, HttpFailure> {
    for followed in 0.. {
        let request = Request {
            method: prepared.method,
            target: &prepared.target,
            headers: &prepared.headers,
            body: prepared.body.clone(),
        };
        let (answer, passage) = context.client.send(request, context.rules).await;
        passages.extend(passage);
        let answer = answer.map_err(|why| not_sent(&prepared, why))?;
        let location = header_of(&answer, "location").filter(|_| spec.follow_redirects > 0);
        let Some(location) = location.filter(|_| matches!(answer.status, 301 | 302 | 303 | 307 | 308)) else {
            return judge(spec, &prepared, answer, context.clock).await;
        };
        if followed >= spec.follow_redirects {
            let message = format!(
                "{} redirects more than `follow_redirects` says",
                prepared.target.shown()
            );
            return Err(failure(code::REDIRECT, message, false));
        }
        let to = next_target(&prepared, location)?;
        prepared.redirect(answer.status, to);
    }
    Err(failure(code::REDIRECT, "it redirects for ever".to_owned(), false))
}

fn next_target(prepared: &Prepared, location: &str) -> Result<Target, HttpFailure> {
    let from = prepared.target.shown();
    let refused = |why: &str| {
        failure(
            code::REDIRECT,
            format!("the redirect of {from} is not followed: {why}"),
            false,
        )
    };
    let to = { prepared.target.redirected(location) }.map_err(|why| refused(&why))?;
    if prepared.target.is_secure() && !to.is_secure() {
        return Err(refused("it leads from https to http"));
    }
    Ok(to)
}

fn not_sent(prepared: &Prepared, why: SendFailure) -> HttpFailure {
    let to = prepared.target.shown();
    match why {
        SendFailure::Denied(what) => {
            let message = format!("{to} is {what}, and not in `egress.allow` of the configuration");
            failure(code::DENIED, message, false)
        }
        SendFailure::Lookup(cause) => {
            failure(code::LOOKUP, format!("{to} cannot be looked up: {cause}"), true)
        }
        SendFailure::Connect(cause) => failure(code::CONNECT, format!("{to} does not answer: {cause}"), true),
        SendFailure::Tls(cause) => failure(code::TLS, format!("TLS with {to} failed: {cause}"), false),
        SendFailure::Broken(cause) => {
            let cause = prepared.shown(&cause);
            failure(
                code::BROKEN,
                format!("the answer of {to} broke off: {cause}"),
                true,
            )
        }
        SendFailure::Client(cause) => failure(code::CONNECT, cause, true),
    }
}

fn header_of<'a>(answer: &'a Answer, name: &str) -> Option<&'a str> {
    let found = answer.headers.iter().find(|(other, _)| other == name);
    found.map(|(_, value)| value.as_str())
}

async fn judge(
    spec: &HttpRequestSpec,
    prepared: &Prepared,
    mut answer: Answer,
    clock: &dyn Clock,
) -> Result<JsonText, HttpFailure> {
    if !spec.expects(answer.status) {
        return Err(refused(prepared, answer, clock).await);
    }
    let max = spec.max_response_bytes.min(limits::HTTP_ANSWER_BYTES_MAX);
    let bytes = body_within(&mut answer, max).await.map_err(|why| match why {
        Unread::TooLarge => too_large(max),
        Unread::Failed(why) => not_sent(prepared, why),
    })?;
    let output = Output {
        status: answer.status,
        headers: kept_headers(&answer.headers),
        body: Body::of(header_of(&answer, "content-type"), bytes),
    };
    // Letters outside of ASCII and base64 make the document longer than the answer.
    match output.written() {
        Some(text) if text.as_str().len() as u64 <= limits::PAYLOAD_BYTES_MAX => Ok(text),
        Some(_) | None => Err(too_large(limits::PAYLOAD_BYTES_MAX)),
    }
}

fn too_large(max: u64) -> HttpFailure {
    failure(
        code::TOO_LARGE,
        format!("the answer is longer than {max} bytes"),
        false,
    )
}

enum Unread {
    TooLarge,
    Failed(SendFailure),
}

async fn body_within(answer: &mut Answer, max: u64) -> Result<Vec<u8>, Unread> {
    if answer.length().is_some_and(|length| length > max) {
        return Err(Unread::TooLarge);
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(Unread::Failed)? {
        if (bytes.len() + chunk.len()) as u64 > max {
            return Err(Unread::TooLarge);
        }
        bytes.extend_from_slice(&chunk);
    }
    Ok(bytes)
}

/// A status that is no success. Those that say "later" or "not my fault for ever" may be tried again.
async fn refused(prepared: &Prepared, mut answer: Answer, clock: &dyn Clock) -> HttpFailure {
    let status = answer.status;
    let retryable = matches!(status, 408 | 425 | 429) || (status >= 500 && status != 501);
    let retry_after_ms = header_of(&answer, "retry-after").and_then(|text| retry_after(text, clock));
    let mut bytes = Vec::new();
    while bytes.len() < SHOWN_BYTES_MAX {
        match answer.chunk().await {
            Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
            Ok(None) | Err(_) => break,
        }
    }
    bytes.truncate(SHOWN_BYTES_MAX);
    let text = prepared.shown(&String::from_utf8_lossy(&bytes));
    let line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown: String = { line.chars() }
        .filter(|letter| !letter.is_control())
        .take(SHOWN_MAX)
        .collect();
    let mut message = format!("{} answered {status} {}", prepared.target.shown(), answer.reason);
    message.truncate(message.trim_end().len());
    if !shown.is_empty() {
        message = format!("{message}: {shown}");
    }
    HttpFailure {
        retry_after_ms,
        ..failure(&format!("http.status_{status}"), message, retryable)
    }
}

/// Seconds, or a date.
fn retry_after(text: &str, clock: &dyn Clock) -> Option<u64> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let ms = if is_number {
        text.parse::<u64>().unwrap_or(u64::MAX).saturating_mul(1_000)
    } else {
        parse_http_date(text)?.since(clock.now().wall)
    };
    Some(ms.min(limits::HTTP_RETRY_AFTER_MS_MAX))
}

/// All but cookies; several values of one name stand behind each other, with commas between.
fn kept_headers(headers: &[(String, String)]) -> BTreeMap<String, String> {
    let mut kept: BTreeMap<String, String> = BTreeMap::new();
    let mut bytes = 0;
    for (name, value) in headers {
        bytes += name.len() + value.len();
        if bytes > limits::HTTP_HEADERS_BYTES_MAX || kept.len() >= limits::HTTP_HEADERS_MAX {
            break;
        }
        if matches!(name.as_str(), "set-cookie" | "set-cookie2") {
            continue;
        }
        match kept.get_mut(name) {
            Some(values) => {
                values.push_str(", ");
                values.push_str(value);
            }
            None => drop(kept.insert(name.clone(), value.clone())),
        }
    }
    kept
}

/// The output of the step.
struct Output {
    status: u16,
    headers: BTreeMap<String, String>,
    body: Body,
}

enum Body {
    None,
    Json(Box<RawValue>),
    Text(String),
    /// Not UTF-8.
    Bytes(Vec<u8>),
}

impl Body {
    /// JSON by its type, or without any type, if it is JSON.
    fn of(content_type: Option<&str>, bytes: Vec<u8>) -> Body {
        if bytes.is_empty() {
            return Body::None;
        }
        let text = match String::from_utf8(bytes) {
            Ok(text) => text,
            Err(error) => return Body::Bytes(error.into_bytes()),
        };
        if content_type.is_none_or(is_json)
            && let Ok(json) = serde_json::from_str::<&RawValue>(&text)
        {
            return Body::Json(json.to_owned());
        }
        Body::Text(text)
    }
}

impl Output {
    fn written(self) -> Option<JsonText> {
        #[derive(Serialize)]
        struct Written<B> {
            status: u16,
            headers: BTreeMap<String, String>,
            body: B,
            encoding: &'static str,
        }
        fn write<B: Serialize>(
            output: (u16, BTreeMap<String, String>),
            body: B,
            encoding: &'static str,
        ) -> Option<JsonText> {
            let (status, headers) = output;
            JsonText::of(&Written {
                status,
                headers,
                body,
                encoding,
            })
            .ok()
        }
        let head = (self.status, self.headers);
        match self.body {
            Body::None => write(head, (), "none"),
            Body::Json(json) => write(head, json, "json"),
            Body::Text(text) => write(head, text, "text"),
            Body::Bytes(bytes) => {
                let text = base64::engine::general_purpose::STANDARD.encode(bytes);
                write(head, text, "base64")
            }
        }
    }
}
