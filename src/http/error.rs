//! Problem documents (RFC 9457): the one shape of every answer with a status of 400 or more.
//!
//! A handler returns a [`Problem`]; the front writes it out, because only there the request's id and path are known. No
//! path and no text of the operating system goes into one: those are for the log.

use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::domain::routing::fault::Fault;
use crate::store::{ChangeError, StoreError};
use crate::words::limits;

/// The sentence of every trouble with the store.
pub(super) const UNAVAILABLE: &str = "pool state is unavailable";

/// The code of a scope that a caller lacks.
pub(super) const SCOPE_MISSING: &str = "scope.missing";
/// The code of a tenant that is not the caller's, or is none.
pub(super) const TENANT_FOREIGN: &str = "tenant.foreign";

/// One field that breaks a rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub(super) struct FieldFault {
    pub(super) pointer: String,
    pub(super) code: &'static str,
    pub(super) detail: String,
}

impl FieldFault {
    fn short(&self) -> FieldFault {
        FieldFault {
            pointer: short(&self.pointer),
            code: self.code,
            detail: short(&self.detail),
        }
    }
}

/// A text of a refusal, cut where it is longer than anybody reads.
fn short(text: &str) -> String {
    match text.char_indices().nth(limits::PROBLEM_CHARS_MAX) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Why a request is not answered with what it asked for.
#[derive(Debug, Clone)]
pub(super) struct Problem {
    pub(super) status: StatusCode,
    code: &'static str,
    detail: String,
    errors: Vec<FieldFault>,
    /// The parameters of each of them, in the same order; fewer where they have none.
    parameters: Vec<Map<String, Value>>,
    members: Map<String, Value>,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl Problem {
    /// A problem with the code that its status usually has.
    pub(super) fn new(status: StatusCode, detail: impl Into<String>) -> Problem {
        Problem {
            status,
            code: code_of(status),
            detail: detail.into(),
            errors: Vec::new(),
            parameters: Vec::new(),
            members: Map::new(),
            headers: Vec::new(),
        }
    }

    /// Another code than the usual one.
    #[must_use]
    pub(super) fn code(mut self, code: &'static str) -> Problem {
        self.code = code;
        self
    }

    /// The request cannot be read.
    pub(super) fn unreadable(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::BAD_REQUEST, detail)
    }

    /// It can be read and breaks rules.
    pub(super) fn invalid(errors: Vec<FieldFault>) -> Problem {
        let detail = match errors.as_slice() {
            [one] => sentence_of(&one.pointer, &one.detail),
            many => format!("{} fields are invalid", many.len()),
        };
        Problem {
            errors,
            ..Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail)
        }
    }

    /// The same for faults of routing, which may have parameters beside them.
    pub(super) fn faulty(faults: Vec<Fault>) -> Problem {
        let count = faults.len();
        let detail = match faults.as_slice() {
            [one] => sentence_of(&one.pointer, &one.detail),
            _ => format!("{count} fields are invalid"),
        };
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, detail).with_faults(faults)
    }

    /// What is wrong, field by field, beside the sentence.
    #[must_use]
    pub(super) fn with_faults(mut self, faults: Vec<Fault>) -> Problem {
        for fault in faults {
            self.errors.push(FieldFault {
                pointer: fault.pointer,
                code: fault.code,
                detail: fault.detail,
            });
            self.parameters.push(fault.members);
        }
        self
    }

    /// A reason that can be told by its code.
    #[must_use]
    pub(super) fn because(mut self, fault: FieldFault) -> Problem {
        self.errors.push(fault);
        self
    }

    /// A further header of the answer.
    #[must_use]
    pub(super) fn header(mut self, name: HeaderName, value: &str) -> Problem {
        self.headers
            .extend(HeaderValue::from_str(value).map(|value| (name, value)));
        self
    }

    /// True where it is about who calls: no valid key, or not the scope, or not the tenant.
    pub(super) fn is_of_the_caller(&self) -> bool {
        let codes = [SCOPE_MISSING, TENANT_FOREIGN];
        self.status == StatusCode::UNAUTHORIZED || self.errors.iter().any(|fault| codes.contains(&fault.code))
    }

    /// Another sentence.
    #[must_use]
    pub(super) fn saying(mut self, detail: impl Into<String>) -> Problem {
        self.detail = detail.into();
        self
    }

    /// Nothing has that name.
    pub(super) fn not_found(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::NOT_FOUND, detail)
    }

    /// The state of a thing forbids it.
    pub(super) fn forbidden_by_state(detail: impl Into<String>) -> Problem {
        Problem::new(StatusCode::CONFLICT, detail)
    }

    /// The store cannot answer.
    pub(super) fn unavailable() -> Problem {
        Problem::new(StatusCode::SERVICE_UNAVAILABLE, UNAVAILABLE)
    }

    /// A further member of the document.
    #[must_use]
    pub(super) fn member(mut self, name: &str, value: impl Into<Value>) -> Problem {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The member `error` of slot pool and job endpoints: the exact sentence.
    #[must_use]
    pub(super) fn with_sentence(self) -> Problem {
        let sentence = match self.errors.as_slice() {
            [] => self.detail.clone(),
            errors => errors
                .iter()
                .take(limits::PROBLEM_FAULTS_MAX)
                .map(|fault| sentence_of(&fault.pointer, &fault.detail))
                .collect::<Vec<_>>()
                .join("; "),
        };
        self.member("error", short(&sentence))
    }

    /// The code in words. A version that has moved has the title that was published for it.
    fn title(&self) -> String {
        if self.status == StatusCode::PRECONDITION_FAILED {
            return "Failed Precondition".to_owned();
        }
        title_of(self.code)
    }

    /// The document for a request.
    pub(super) fn document(&self, instance: &str, request_id: &str) -> Value {
        let retryable = matches!(self.status.as_u16(), 429 | 503 | 504);
        // What was sent is echoed, and it may have been large.
        let named = self.errors.iter().take(limits::PROBLEM_FAULTS_MAX);
        let errors: Vec<FieldFault> = named.map(FieldFault::short).collect();
        let left_out = self.errors.len() - errors.len();
        let mut document = serde_json::json!({
            "type": format!("urn:ductor:problem:{}", self.code.to_ascii_lowercase().replace('_', "-")),
            "title": self.title(),
            "status": self.status.as_u16(),
            "detail": short(&self.detail),
            "instance": instance,
            "code": self.code,
            "request_id": request_id,
            "errors": errors,
            "retryable": retryable,
        });
        if left_out > 0 {
            document["errors_left_out"] = Value::from(left_out);
        }
        for (index, parameters) in self.parameters.iter().enumerate() {
            if let Some(Value::Object(error)) = document["errors"].get_mut(index) {
                error.extend(parameters.clone());
            }
        }
        if let Value::Object(members) = &mut document {
            members.extend(self.members.clone());
        }
        document
    }
}

/// What is wrong, behind its place; without one where it is about all of it.
fn sentence_of(pointer: &str, detail: &str) -> String {
    match pointer.trim_start_matches('/') {
        "" => detail.to_owned(),
        place => format!("{place}: {detail}"),
    }
}

/// `INVALID_ARGUMENT` as `Invalid argument`.
fn title_of(code: &str) -> String {
    let words = code.to_ascii_lowercase().replace('_', " ");
    let mut letters = words.chars();
    letters.next().map_or_else(String::new, |first| {
        first.to_ascii_uppercase().to_string() + letters.as_str()
    })
}

fn code_of(status: StatusCode) -> &'static str {
    match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 | 421 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        405 | 501 => "UNIMPLEMENTED",
        409 | 412 => "FAILED_PRECONDITION",
        413 => "OUT_OF_RANGE",
        429 => "RESOURCE_EXHAUSTED",
        503 => "UNAVAILABLE",
        504 => "DEADLINE_EXCEEDED",
        500.. => "INTERNAL",
        _ => "INVALID_ARGUMENT",
    }
}

/// An answer without a body yet; the front writes the document.
impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = self.status.into_response();
        if self.status == StatusCode::SERVICE_UNAVAILABLE || self.status == StatusCode::TOO_MANY_REQUESTS {
            response
                .headers_mut()
                .insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response
                .headers_mut()
                .insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        for (name, value) in &self.headers {
            response.headers_mut().insert(name, value.clone());
        }
        response.extensions_mut().insert(self);
        response
    }
}

/// The cause goes to the log, the fixed sentence to the caller.
impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Problem {
        tracing::warn!(cause = %error, "a request could not read the store");
        Problem::unavailable()
    }
}

/// Whether the change was applied is known in all cases but one.
impl From<ChangeError> for Problem {
    fn from(error: ChangeError) -> Problem {
        tracing::warn!(cause = %error, "a request could not change the store");
        match error {
            ChangeError::Withdrawn | ChangeError::Failed(_) | ChangeError::Panicked(_) => {
                Problem::unavailable()
            }
            ChangeError::Unknown => Problem::unavailable().member("outcome", "unknown"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_document_has_the_shape_that_was_promised() {
        let fault = FieldFault {
            pointer: "/retries".to_owned(),
            code: "unknown",
            detail: "is not known".to_owned(),
        };
        let document = Problem::invalid(vec![fault])
            .with_sentence()
            .document("/jobs/a/start", "01J");
        let expected = serde_json::json!({
            "type": "urn:ductor:problem:invalid-argument", "title": "Invalid argument", "status": 422,
            "detail": "retries: is not known", "instance": "/jobs/a/start", "code": "INVALID_ARGUMENT",
            "request_id": "01J", "retryable": false, "error": "retries: is not known",
            "errors": [{"pointer": "/retries", "code": "unknown", "detail": "is not known"}],
        });
        assert_eq!(document, expected);
    }

    #[test]
    fn a_refusal_of_much_is_short() {
        let fault = |number: usize| FieldFault {
            pointer: format!("/{number}{}", "a".repeat(10_000)),
            code: "unknown",
            detail: "b".repeat(10_000),
        };
        let all: Vec<FieldFault> = (0..250).map(fault).collect();
        let document = Problem::invalid(all)
            .with_sentence()
            .document("/jobs/a/start", "01J");
        assert_eq!(
            (&document["detail"], &document["errors_left_out"]),
            (
                &serde_json::json!("250 fields are invalid"),
                &serde_json::json!(150)
            )
        );
        assert!(document.to_string().len() < 500_000);
    }

    #[test]
    fn only_an_unknown_outcome_says_so() {
        let known = Problem::from(ChangeError::Withdrawn).document("/", "");
        let unknown = Problem::from(ChangeError::Unknown).document("/", "");
        assert_eq!(
            (known["status"].as_u64(), known.get("outcome")),
            (Some(503), None)
        );
        assert_eq!(unknown["outcome"], "unknown");
        assert_eq!(unknown["retryable"], true);
    }
}
