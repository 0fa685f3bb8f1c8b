//! `POST /api/rules:test`: an expression, or a rule that is stored, on invented work.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::Harmless;
use super::param::{Kind, Param};
use super::routing;
use crate::domain::routing::trial;
use crate::engine::rule_trials::{self, Outcome};
use crate::words::ids::WorkId;
use crate::words::time::Micros;

/// The fields of the body.
pub(super) const FIELDS: [Param; 3] = [
    Param::query("expression", Kind::Text, "What is tried, as it would be written."),
    Param::query("rule_id", Kind::Text, "What is tried: a rule that is stored."),
    Param::query(
        "cases",
        Kind::Any,
        "At most 100 of `{work, recipient?, expect?}`; the recipient is an id, or an invented one.",
    )
    .needed(),
];

/// Tries a rule.
pub(super) async fn test(State(app): State<App>, caller: Caller, body: Bytes) -> Result<Response, Problem> {
    let fields = routing::fields(&body)?;
    let now = Micros::from(app.engine.now().wall);
    let trial = trial::read(&fields, now, WorkId::fresh()).map_err(Problem::faulty)?;
    let tenancy = app.engine.tenancy(caller.tenant).await?;
    let tried = rule_trials::test(&app.engine, tenancy, trial).await?;
    let results = tried.map_err(Problem::faulty)?;
    let shown: Vec<Value> = results.iter().map(view).collect();
    let mut response = Json(json!({"data": {"cases": shown}})).into_response();
    response.extensions_mut().insert(Harmless);
    Ok(response)
}

fn view((verdict, micros, ok): &Outcome) -> Value {
    let mut view = json!({
        "result": verdict.result, "because": verdict.because, "steps": verdict.steps, "micros": micros,
    });
    if let Some(error) = &verdict.error {
        view["error"] = json!({"code": "rule.error", "detail": error});
    }
    if let Some(ok) = ok {
        view["ok"] = Value::from(*ok);
    }
    view
}
