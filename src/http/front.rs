//! What every request passes before it is routed, in this order: its id, the catch of a panic, security headers, the Host,
//! the origin, who calls, the body's type and size, the time limit, its idempotency key, and `{id}:{verb}`, which the router cannot
//! match by itself.
//!
//! The order is the behaviour, so it is one function. Refusals of all of them leave as problem documents, and so does
//! whatever the router or a library answers with a status of 400 or more.

use std::panic::AssertUnwindSafe;
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

use axum::body::{Body, HttpBody, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::uri::PathAndQuery;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::caller;
use super::error::Problem;
use super::once::{self, Gate};
use super::origin::Foreign;
use super::{bridge, bundles};
use crate::engine::metrics::in_seconds;
use crate::words::{ids, limits};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
const REQUEST_ID_BYTES_MAX: usize = 64;

const SECURITY: [(HeaderName, HeaderValue); 5] = [
    (
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(
            "default-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
        ),
    ),
    (
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    ),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (
        HeaderName::from_static("cross-origin-opener-policy"),
        HeaderValue::from_static("same-origin"),
    ),
    (
        HeaderName::from_static("cross-origin-resource-policy"),
        HeaderValue::from_static("same-origin"),
    ),
];

/// The id of a request, for its handler.
#[derive(Debug, Clone)]
pub(super) struct RequestId(pub(super) String);

/// The route that answered, as the metrics call it.
#[derive(Debug, Clone)]
struct Route(String);

/// Everything in front of the router.
pub(super) async fn front(State(app): State<App>, mut request: Request, next: Next) -> Response {
    let id = request_id(request.headers());
    request.extensions_mut().insert(RequestId(id.clone()));
    let (method, instance) = (request.method().clone(), request.uri().path().to_owned());
    let began = app.engine.now().boot;
    let mut readable_by = None;
    let response = match caught(guarded(&app, request, next, &mut readable_by)).await {
        Ok(response) => response,
        Err(()) => {
            tracing::error!(request_id = %id, path = %instance, "a request ended in a defect");
            Problem::new(
                StatusCode::INTERNAL_SERVER_ERROR,
                "internal defect; the log has it under the request id",
            )
            .into_response()
        }
    };
    let took = began.until(app.engine.now().boot);
    if response
        .extensions()
        .get::<Problem>()
        .is_some_and(Problem::is_of_the_caller)
    {
        app.engine.metrics.count_rejected("auth");
    }
    count(&app, &method, &response, took);
    tracing::debug!(request_id = %id, %method, path = %instance, status = response.status().as_u16(), ms = took, "answered");
    let mut response = as_document(response, &instance, &id);
    let headers = response.headers_mut();
    headers.extend(SECURITY);
    headers.extend(HeaderValue::from_str(&id).map(|id| (REQUEST_ID, id)));
    allow_reader(headers, readable_by.as_deref());
    response
}

async fn guarded(app: &App, request: Request, next: Next, readable_by: &mut Option<String>) -> Response {
    *readable_by = match app
        .origins()
        .judge(request.method(), request.uri(), request.headers())
    {
        Ok(origin) => origin,
        Err(Foreign::Host) => {
            app.engine.metrics.count_rejected("host");
            let status = StatusCode::MISDIRECTED_REQUEST;
            return Problem::new(status, "this host is not on the list of server.allowedHosts")
                .into_response();
        }
        Err(Foreign::Origin) => {
            app.engine.metrics.count_rejected("origin");
            let detail = "requests from this origin are not allowed; see server.allowedOrigins";
            return Problem::new(StatusCode::FORBIDDEN, detail).into_response();
        }
    };
    if readable_by.is_some() && request.method() == Method::OPTIONS {
        return preflight();
    }
    let limit = Duration::from_millis(app.config().server.request_timeout_ms);
    // A stream answers at once and goes on after that, outside of this limit.
    match tokio::time::timeout(limit, admitted(app, request, next)).await {
        Ok(response) => response,
        Err(_) => {
            let detail = format!("not answered within {} s", limit.as_secs());
            Problem::new(StatusCode::GATEWAY_TIMEOUT, detail).into_response()
        }
    }
}

/// Nothing of a body is read for somebody who may not call.
async fn admitted(app: &App, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    match caller::identify(app, &parts).await {
        Ok(Some(caller)) => drop(parts.extensions.insert(caller)),
        Ok(None) => {}
        Err(problem) if is_plain(parts.uri.path()) => return problem.with_sentence().into_response(),
        Err(problem) => return problem.into_response(),
    }
    let request = Request::from_parts(parts, body);
    if let Err(problem) = check_content_type(&request) {
        app.engine.metrics.count_rejected("body");
        return problem.into_response();
    }
    routed(app, request, next).await
}

async fn routed(app: &App, request: Request, next: Next) -> Response {
    let (mut parts, body) = request.into_parts();
    let mut max = app.config().server.max_body_bytes;
    if parts.uri.path().starts_with(bridge::HEAD) {
        // What a worker has made is a payload, and may be as large as any.
        max = max.max(bridge::body_bytes_max());
    }
    if parts.uri.path().starts_with(bundles::HEAD) {
        max = max.max(limits::BUNDLE_BODY_BYTES_MAX);
    }
    let max = usize::try_from(max).unwrap_or(usize::MAX);
    let announced = body.size_hint().lower();
    let too_large = || {
        app.engine.metrics.count_rejected("body");
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!("the body may have {max} bytes"),
        )
        .into_response()
    };
    if announced > max as u64 {
        return too_large();
    }
    let bytes = match to_bytes(body, max).await {
        Ok(bytes) => bytes,
        Err(error) if is_length_limit(&error) => return too_large(),
        Err(_) => return Problem::unreadable("the body ended early").into_response(),
    };
    if parts.uri.path().contains("/~") {
        return Problem::not_found("there is nothing at this path").into_response();
    }
    let passage = match once::look_up(app, &mut parts, &bytes).await {
        Ok(Gate::Open(passage)) => Some(passage),
        Ok(Gate::Guarded) => None,
        Ok(Gate::Closed(response)) => return response,
        Err(problem) if is_plain(parts.uri.path()) => return problem.with_sentence().into_response(),
        Err(problem) => return problem.into_response(),
    };
    if let Some(inner) = inner_path(&parts.uri) {
        parts.uri = inner;
    }
    let response = next.run(Request::from_parts(parts, Body::from(bytes))).await;
    match passage {
        Some(passage) => once::keep(app, passage, response).await,
        None => response,
    }
}

/// Endpoints without a prefix, whose refusals have the member `error`.
pub(super) fn is_plain(path: &str) -> bool {
    ["/jobs", "/pools"].iter().any(|head| path.starts_with(head))
}

fn is_length_limit(error: &axum::Error) -> bool {
    let mut cause: Option<&dyn std::error::Error> = Some(error);
    while let Some(here) = cause {
        if here.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = here.source();
    }
    false
}

/// Runs `work` to its end; a panic in it is an error.
async fn caught<F: Future<Output = Response>>(work: F) -> Result<Response, ()> {
    let mut work = pin!(work);
    std::future::poll_fn(move |context| {
        match std::panic::catch_unwind(AssertUnwindSafe(|| work.as_mut().poll(context))) {
            Ok(Poll::Pending) => Poll::Pending,
            Ok(Poll::Ready(response)) => Poll::Ready(Ok(response)),
            Err(_) => Poll::Ready(Err(())),
        }
    })
    .await
}

/// Taken from the request when it is one, else made.
fn request_id(headers: &HeaderMap) -> String {
    let given = headers.get(REQUEST_ID).and_then(|value| value.to_str().ok());
    let is_id = |text: &&str| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
        (1..=REQUEST_ID_BYTES_MAX).contains(&text.len()) && text.bytes().all(letter)
    };
    given
        .filter(is_id)
        .map_or_else(ids::fresh_request_id, str::to_owned)
}

/// Where there is a body, it is JSON: a form of another site can send no such type.
fn check_content_type(request: &Request) -> Result<(), Problem> {
    if request.body().is_end_stream() || request.body().size_hint().exact() == Some(0) {
        return Ok(());
    }
    let given = request
        .headers()
        .get(header::CONTENT_TYPE)
        .and_then(|value| value.to_str().ok())
        .unwrap_or("");
    let essence = given.split(';').next().unwrap_or("").trim();
    if essence.eq_ignore_ascii_case("application/json") {
        return Ok(());
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "a body needs `Content-Type: application/json`",
    ))
}

/// `/api/runs/ID:cancel` as `/api/runs/ID/~cancel`; `None` if there is no verb.
fn inner_path(uri: &Uri) -> Option<Uri> {
    let path = uri.path().strip_prefix("/api/")?;
    let (head, last) = path.rsplit_once('/').unwrap_or(("", path));
    let (id, verb) = last.rsplit_once(':')?;
    let is_verb = !verb.is_empty() && verb.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    if !is_verb || id.is_empty() {
        return None;
    }
    let slash = if head.is_empty() { "" } else { "/" };
    let query = uri.query().map_or_else(String::new, |query| format!("?{query}"));
    let inner: PathAndQuery = format!("/api/{head}{slash}{id}/~{verb}{query}").parse().ok()?;
    let mut parts = uri.clone().into_parts();
    parts.path_and_query = Some(inner);
    Uri::from_parts(parts).ok()
}

/// Writes out a problem, and makes one of every other answer that is none.
fn as_document(mut response: Response, instance: &str, id: &str) -> Response {
    let status = response.status();
    let problem = match response.extensions_mut().remove::<Problem>() {
        Some(problem) => problem,
        None if status.is_client_error() || status.is_server_error() => Problem::new(
            status,
            status.canonical_reason().unwrap_or("refused").to_lowercase(),
        ),
        None => return response,
    };
    let document = problem.document(instance, id).to_string();
    let headers = response.headers_mut();
    headers.remove(header::CONTENT_LENGTH);
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static("application/problem+json"),
    );
    *response.body_mut() = Body::from(document);
    response
}

/// Tells the front which route it was: only the router knows.
pub(super) async fn note_route(request: Request, next: Next) -> Response {
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map(|path| path.as_str().replace("/~", ":"));
    let mut response = next.run(request).await;
    if let Some(route) = route {
        response.extensions_mut().insert(Route(route));
    }
    response
}

fn count(app: &App, method: &Method, response: &Response, took_ms: u64) {
    let route = response
        .extensions()
        .get::<Route>()
        .map_or("other", |route| route.0.as_str());
    let known = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
    ];
    let method = if known.contains(method) {
        method.as_str()
    } else {
        "other"
    };
    let is_stream = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind == "text/event-stream");
    let seconds = (!is_stream).then(|| in_seconds(took_ms));
    app.engine
        .metrics
        .count_request(route, method, response.status().as_u16(), seconds);
}

fn preflight() -> Response {
    let headers = [
        (
            header::ACCESS_CONTROL_ALLOW_METHODS,
            "GET, HEAD, POST, PUT, PATCH, DELETE",
        ),
        (
            header::ACCESS_CONTROL_ALLOW_HEADERS,
            "authorization, content-type, idempotency-key, if-match, x-request-id",
        ),
        (header::ACCESS_CONTROL_MAX_AGE, "600"),
    ];
    (StatusCode::NO_CONTENT, headers).into_response()
}

fn allow_reader(headers: &mut HeaderMap, origin: Option<&str>) {
    let Some(Ok(origin)) = origin.map(HeaderValue::from_str) else {
        return;
    };
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    headers.append(header::VARY, HeaderValue::from_static("origin"));
    let exposed = HeaderValue::from_static(
        "x-request-id, location, idempotency-replayed, x-log-start, x-log-size, x-log-done",
    );
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, exposed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_verb_becomes_a_segment_of_its_own() {
        let check = |outer: &str, inner: Option<&str>| {
            let found = inner_path(&outer.parse().unwrap()).map(|uri| uri.to_string());
            assert_eq!(found.as_deref(), inner, "{outer}");
        };
        check("/api/runs/run_1:cancel", Some("/api/runs/run_1/~cancel"));
        check(
            "/api/runs/run_1:cancel?a=b:c",
            Some("/api/runs/run_1/~cancel?a=b:c"),
        );
        check("/api/runs:cancel_matching", Some("/api/runs/~cancel_matching"));
        check("/api/runs/a:b:cancel", Some("/api/runs/a:b/~cancel"));
        for plain in [
            "/jobs/a:start",
            "/api/runs/run_1",
            "/api/runs/a:",
            "/api/runs/:cancel",
            "/api/runs/a:B1",
        ] {
            check(plain, None);
        }
    }

    #[tokio::test]
    async fn a_panic_is_an_error() {
        let fine = caught(async { StatusCode::OK.into_response() }).await;
        assert_eq!(fine.map(|response| response.status()), Ok(StatusCode::OK));
        assert!(caught(async { panic!("planned") }).await.is_err());
    }

    #[test]
    fn a_request_id_is_taken_when_it_is_one() {
        let check = |given: &str, taken: bool| {
            let mut headers = HeaderMap::new();
            headers.insert(REQUEST_ID, HeaderValue::from_str(given).unwrap());
            assert_eq!(request_id(&headers) == given, taken, "{given}");
        };
        check("abc-1.2_X", true);
        check(&"a".repeat(64), true);
        check(&"a".repeat(65), false);
        check("a b", false);
        check("", false);
        assert_eq!(request_id(&HeaderMap::new()).len(), 26);
    }
}
