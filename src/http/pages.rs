//! The dashboard over HTTP: one page for `/` and everything under `/ui/`, and its files under `/web/`.
//!
//! The page finds out by its address what to show; whether there is such a thing, the API says. Job and slot pool endpoints
//! have no prefix, so the pages need one.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::error::Problem;
use crate::dashboard::WebFile;

/// Whether a path is a page of the dashboard, to which a link on another site may lead.
pub(super) fn is_page(path: &str) -> bool {
    path == "/" || path == "/ui" || path.starts_with("/ui/")
}

/// `GET /` and `GET /ui/{page}`.
pub(super) async fn page(State(app): State<App>, headers: HeaderMap) -> Response {
    send(&app, "index.html", &headers)
}

/// `GET /web/{file}`.
pub(super) async fn file(State(app): State<App>, Path(path): Path<String>, headers: HeaderMap) -> Response {
    send(&app, &path, &headers)
}

fn send(app: &App, path: &str, headers: &HeaderMap) -> Response {
    let Some(file) = app.web.get(path) else {
        return Problem::not_found("the dashboard has no such file").into_response();
    };
    let WebFile { bytes, media, etag } = file;
    let etag = format!("\"{etag}\"");
    let known = headers
        .get_all(header::IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|list| list.split(','))
        .any(|one| one.trim() == etag || one.trim() == "*");
    let mut response = if known {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        let mut response = Response::new(Body::from(bytes.into_owned()));
        response
            .headers_mut()
            .insert(header::CONTENT_TYPE, HeaderValue::from_static(media));
        response
    };
    let answer = response.headers_mut();
    // Asked about each time: a newer binary must never run with an older page.
    answer.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    answer.extend(HeaderValue::from_str(&etag).map(|etag| (header::ETAG, etag)));
    response
}
