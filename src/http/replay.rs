//! `POST /api/decisions/{id}:replay`: the same decision from what was read then, or what another strategy would have decided.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};

use super::app::App;
use super::assignments::known;
use super::caller::Caller;
use super::error::Problem;
use super::live_routing;
use super::once::Harmless;
use super::param::{Kind, Param};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::Explain;
use crate::domain::routing::pass::Passed;
use crate::domain::routing::snapshot::{self, Recalled};
use crate::store::decisions;
use crate::words::ids::DecisionId;

/// The fields of the body.
pub(super) const FIELDS: [Param; 2] = [
    Param::query(
        "pipeline",
        Kind::Text,
        "Another strategy, recipe or `pipeline:NAME` of the pool.",
    ),
    Param::query(
        "strategy_options",
        Kind::Any,
        "Over those of the pool, by strategy.",
    ),
];

/// What the store knows only, and no pass decides.
const OF_THE_STORE: [&str; 3] = ["parent_decision_id", "parent_assignment_id", "item_id"];

/// Another way to decide.
#[derive(Debug, Clone, Default)]
struct Otherwise {
    strategy: Option<String>,
    options: Map<String, Value>,
}

impl Otherwise {
    fn read(body: &[u8]) -> Result<Otherwise, Problem> {
        let fields = known(body, &FIELDS)?;
        let fault =
            |pointer: &str, detail: &str| Problem::faulty(vec![Fault::new(pointer, "field.type", detail)]);
        let strategy = match fields.get("pipeline").filter(|value| !value.is_null()) {
            None => None,
            Some(Value::String(text)) => Some(text.clone()),
            Some(_) => {
                return Err(fault(
                    "/pipeline",
                    "must be the name of a strategy, a recipe or a pipeline",
                ));
            }
        };
        let options = match fields.get("strategy_options").filter(|value| !value.is_null()) {
            None => Map::new(),
            Some(Value::Object(options)) if options.values().all(Value::is_object) => options.clone(),
            Some(_) => return Err(fault("/strategy_options", "must be an object of objects")),
        };
        Ok(Otherwise { strategy, options })
    }

    fn is_none(&self) -> bool {
        self.strategy.is_none() && self.options.is_empty()
    }

    fn apply(&self, recalled: &mut Recalled) {
        if let Some(strategy) = &self.strategy {
            recalled.request.strategy = Some(strategy.clone());
        }
        for (strategy, options) in &self.options {
            if let Value::Object(options) = options {
                let of_strategy = recalled
                    .request
                    .strategy_options
                    .entry(strategy.clone())
                    .or_default();
                of_strategy.extend(options.clone());
            }
        }
    }
}

/// Decides again.
pub(super) async fn replay(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let id: DecisionId = live_routing::id_of("decision", &text)?;
    let otherwise = Otherwise::read(&body)?;
    let tenant = caller.tenant;
    let found = app
        .engine
        .read(move |tx| {
            let Some(row) = decisions::decision(tx, tenant, id)? else {
                return Ok(None);
            };
            let kept = decisions::source(tx, tenant, (id, &row))?;
            Ok(Some((row.text, kept)))
        })
        .await?;
    let (decided, kept) = found.ok_or_else(|| live_routing::missing("decision", &text))?;
    let expired = |detail: String| live_routing::refused(StatusCode::CONFLICT, "snapshot.expired", detail);
    let Some(kept) = kept else {
        return Err(expired("what this decision was made from is not kept".to_owned()));
    };
    let worked = tokio::task::spawn_blocking(move || {
        let mut recalled = kept.recall()?;
        otherwise.apply(&mut recalled);
        let passed = recalled.replay()?;
        let decided: Value = decided.read().unwrap_or_default();
        Ok::<Value, snapshot::Unreadable>(answer(&decided, &passed, otherwise.is_none()))
    });
    let data = match worked.await {
        Ok(Ok(data)) => data,
        Ok(Err(error)) => return Err(expired(error.to_string())),
        Err(panic) => std::panic::resume_unwind(panic.into_panic()),
    };
    let mut response = Json(json!({"data": data})).into_response();
    response.extensions_mut().insert(Harmless);
    Ok(response)
}

fn answer(decided: &Value, passed: &Passed, same_way: bool) -> Value {
    let mut before = decided.clone();
    if let Value::Object(fields) = &mut before {
        for name in OF_THE_STORE {
            fields.remove(name);
        }
    }
    let after = passed.decision.to_json(Explain::First);
    let differences = snapshot::differences(&before, &after);
    let diff: Vec<Value> = differences
        .iter()
        .map(|(pointer, from, to)| json!({"pointer": pointer, "from": from, "to": to}))
        .collect();
    json!({
        "identical": if same_way { Value::Bool(diff.is_empty()) } else { Value::Null },
        "outcome": after["outcome"], "winners": after["winners"], "diff": diff,
        "explanation": after["explanation"],
    })
}
