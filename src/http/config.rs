//! `GET /api/config`: the configuration in force, without the values of variables.

use axum::Json;
use axum::extract::State;
use serde_json::Value;

use super::app::App;
use super::error::Problem;
use super::runs::Data;

/// What stands in place of a value.
const HIDDEN: &str = "(hidden)";

/// The configuration.
pub(super) async fn show(State(app): State<App>) -> Result<Json<Data<Value>>, Problem> {
    let plain = serde_json::to_value(app.config.as_ref());
    let mut data = plain.map_err(|error| {
        tracing::error!(cause = %error, "the configuration has no JSON");
        Problem::new(
            axum::http::StatusCode::INTERNAL_SERVER_ERROR,
            "the configuration cannot be shown",
        )
    })?;
    hide_values(&mut data);
    Ok(Json(Data { data }))
}

/// Variables carry secrets; their names do not.
pub(super) fn hide_values(config: &mut Value) {
    for job in config
        .get_mut("jobs")
        .and_then(Value::as_array_mut)
        .into_iter()
        .flatten()
    {
        for entry in job
            .get_mut("environment")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
        {
            if let Some(value) = entry.get_mut("value") {
                *value = Value::from(HIDDEN);
            }
        }
    }
}
