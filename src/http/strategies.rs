//! `GET /api/strategies`: what a pool can pick by, as data.

use axum::Json;
use axum::extract::Path;
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::recipes::{RECIPES, Recipe};
use crate::domain::routing::strategies::{CATALOGUE, Info, info, nearest};

/// Which are listed.
pub(super) const FILTERS: [Param; 1] = [Param::query(
    "kind",
    Kind::OneOf(&["strategy", "recipe"]),
    "`strategy` unless given; `recipe`: named pipelines.",
)];

fn view_of(info: &Info) -> Value {
    let parameters = info.parameters.iter().map(|parameter| {
        let default = serde_json::from_str(parameter.default).unwrap_or_else(|_| Value::from(parameter.default));
        json!({
            "name": parameter.name, "type": parameter.kind.to_string(), "default": default, "min": parameter.min,
            "max": parameter.max,
        })
    });
    json!({
        "key": info.key, "version": info.version, "summary": info.summary,
        "parameters": parameters.collect::<Vec<_>>(), "state": info.state, "uses_weight": info.uses_weight,
        "uses_score": info.uses_score, "seeded": info.seeded, "cost": info.cost,
        "min_candidates": info.min_candidates,
    })
}

fn recipe_view(recipe: &Recipe) -> Value {
    json!({
        "key": recipe.name, "version": recipe.version, "summary": recipe.summary, "pipeline": recipe.document(),
    })
}

/// All strategies, or all recipes.
pub(super) async fn list(uri: Uri) -> Result<Response, Problem> {
    let pairs = input::query(&uri, &FILTERS)?;
    let data: Vec<Value> = match input::last(&pairs, "kind") {
        None | Some("strategy") => CATALOGUE.iter().map(view_of).collect(),
        Some("recipe") => RECIPES.iter().map(recipe_view).collect(),
        Some(_) => return Err(Problem::unreadable("`kind` must be `strategy` or `recipe`")),
    };
    Ok(Json(Data { data }).into_response())
}

/// One strategy.
pub(super) async fn show(Path(key): Path<String>) -> Result<Response, Problem> {
    let found = info(&key).ok_or_else(|| {
        let near = nearest(&key).join(", ");
        let shown: String = key.chars().take(64).collect();
        let detail = format!("there is no strategy `{shown}`; the nearest are {near}");
        let fault = Fault::new("", "strategy.not_found", detail.clone());
        Problem::not_found(detail).with_faults(vec![fault])
    })?;
    Ok(Json(Data { data: view_of(found) }).into_response())
}
