//! Versions on the wire (RFC 9110): `ETag` on reads, `If-None-Match` that spares a body, `If-Match` that guards a change.
//!
//! A tag is the version of a thing, and behind a dash a digest of what else is shown of it: positions and counts move
//! without a new version. A guard looks at the version alone.

use axum::Json;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::words::ids::{digest_of_parts, hex};

/// A version made of everything that a change of the thing changes. The letter keeps it from being a number.
pub(super) fn of_parts(parts: &[&str]) -> String {
    format!("v{}", hex(&digest_of_parts(parts)[..4]))
}

/// The view of a thing with its tag, or 304 if the caller has just that.
pub(super) fn tagged<T: Serialize>(headers: &HeaderMap, version: &str, view: T) -> Response {
    let text = serde_json::to_string(&view).expect("a view is plain data");
    let tag = format!("\"{version}-{}\"", hex(&digest_of_parts(&[&text])[..6]));
    with_tag(headers, &tag, Json(view))
}

/// The same for a thing that its version describes whole.
pub(super) fn with_version<T: Serialize>(headers: &HeaderMap, version: u64, view: T) -> Response {
    with_tag(headers, &format!("\"{version}\""), Json(view))
}

/// A text that is its own version.
pub(super) fn with_tag_of(headers: &HeaderMap, text: String) -> Response {
    let tag = format!("\"{}\"", hex(&digest_of_parts(&[&text])[..6]));
    with_tag(headers, &tag, text)
}

/// The view of a thing at a version that may show more than the version says: it is never spared.
pub(super) fn moving<T: Serialize>(version: u64, view: T) -> Response {
    with_tag(&HeaderMap::new(), &format!("\"{version}\""), Json(view))
}

fn with_tag(headers: &HeaderMap, tag: &str, body: impl IntoResponse) -> Response {
    let known = headers.get(header::IF_NONE_MATCH);
    let known = known.and_then(|value| value.to_str().ok()).unwrap_or_default();
    let weak = |one: &str| one.trim().trim_start_matches("W/") == tag;
    let mut response = if known.trim() == "*" || known.split(',').any(weak) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        body.into_response()
    };
    let headers = response.headers_mut();
    headers.extend(HeaderValue::from_str(tag).map(|tag| (header::ETAG, tag)));
    response
}

/// The versions that a caller of a change believes in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Expected(Vec<String>);

impl Expected {
    /// What `If-Match` says, if it is there.
    pub(super) fn of(headers: &HeaderMap) -> Option<Expected> {
        let given = headers.get(header::IF_MATCH)?.to_str().unwrap_or_default();
        let versions = given
            .split(',')
            .map(|one| one.trim().trim_matches('"').to_owned());
        Some(Expected(versions.collect()))
    }

    /// Just this one.
    pub(super) fn version(version: &str) -> Expected {
        Expected(vec![version.to_owned()])
    }

    /// True if one of them is in force.
    pub(super) fn is_met_by(&self, current: &str) -> bool {
        self.0.iter().any(|one| {
            let version = one.split_once('-').map_or(one.as_str(), |(version, _)| version);
            version == "*" || version == current
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(name: header::HeaderName, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(name, HeaderValue::from_str(value).unwrap())])
    }

    #[test]
    fn a_known_tag_spares_the_body() {
        let check = |given: &str, status: u16| {
            let answer = with_version(&sent(header::IF_NONE_MATCH, given), 7, "view");
            assert_eq!(answer.status().as_u16(), status, "{given}");
            assert_eq!(answer.headers()[header::ETAG], "\"7\"");
        };
        for known in ["\"7\"", "W/\"7\"", "\"6\", \"7\"", "*"] {
            check(known, 304);
        }
        for other in ["\"6\"", "7", "\"77\"", ""] {
            check(other, 200);
        }
        assert_eq!(moving(7, "view").status(), StatusCode::OK);
    }

    #[test]
    fn a_guard_looks_at_the_version_alone() {
        let check = |given: &str, met: bool| {
            let expected = Expected::of(&sent(header::IF_MATCH, given)).unwrap();
            assert_eq!(expected.is_met_by("ab12"), met, "{given}");
        };
        for good in ["\"ab12\"", "\"ab12-77\"", "\"x\", \"ab12-1\"", "*"] {
            check(good, true);
        }
        for bad in ["\"ab1\"", "\"77-ab12\"", ""] {
            check(bad, false);
        }
        assert_eq!(Expected::of(&HeaderMap::new()), None);
    }
}
