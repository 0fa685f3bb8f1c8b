//! What the routes of live routing share: refusals that are known by a code, ids of the path.

use std::str::FromStr;

use axum::http::StatusCode;

use super::error::Problem;
use crate::domain::routing::fault::Fault;

/// A refusal that is known by its code: no field is concerned.
pub(super) fn refused(status: StatusCode, code: &'static str, detail: impl Into<String>) -> Problem {
    let detail = detail.into();
    Problem::new(status, detail.clone()).with_faults(vec![Fault::new("", code, detail)])
}

/// There is no such thing.
pub(super) fn missing(kind: &'static str, id: &str) -> Problem {
    let shown: String = id.chars().take(64).collect();
    let (code, word) = match kind {
        "decision" => ("decision.not_found", "decision"),
        "assignment" => ("assignment.not_found", "assignment"),
        "item" => ("item.not_found", "item"),
        "pool" => ("pool.not_found", "pool"),
        _ => ("claim_queue.not_found", "claim queue"),
    };
    refused(
        StatusCode::NOT_FOUND,
        code,
        format!("there is no {word} `{shown}`"),
    )
}

/// An id of the path: what is no id names nothing.
pub(super) fn id_of<T: FromStr>(kind: &'static str, text: &str) -> Result<T, Problem> {
    text.parse().map_err(|_| missing(kind, text))
}
