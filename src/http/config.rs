//! `GET /api/config`: the configuration in force, without the values of variables. `POST /api/config:reload`: another one.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::input;
use super::runs::Data;
use crate::config::Fault;
use crate::daemon::{NameChanges, Rejected, ReloadError, SettingChange};

/// What stands in place of a value.
const HIDDEN: &str = "(hidden)";

/// The configuration.
pub(super) async fn show(State(app): State<App>) -> Result<Json<Data<Value>>, Problem> {
    let plain = serde_json::to_value(app.config().as_ref());
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

/// A reload that is in force.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReloadedView {
    jobs: NamesView,
    dags: NamesView,
    pools: NamesView,
    /// Settings that are in force now.
    settings: Vec<SettingView>,
    /// Settings that keep their running values until the next start.
    needs_restart: Vec<SettingView>,
    /// Waiting entries that were cancelled, because their job was changed, disabled or removed.
    cancelled_entries: usize,
    /// Findings that do not keep the configuration from being used.
    warnings: Vec<Value>,
}

/// What became of things with names.
#[derive(Debug, Serialize, ToSchema)]
struct NamesView {
    added: Vec<String>,
    changed: Vec<ChangedView>,
    removed: Vec<String>,
}

/// A thing that differs, and in what.
#[derive(Debug, Serialize, ToSchema)]
struct ChangedView {
    name: String,
    keys: Vec<String>,
}

/// A setting with another value.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SettingView {
    /// As in the file: `server.listen`.
    key: String,
    /// The value in force before, and with `needs_restart` still.
    from: Value,
    /// The value that the file has.
    to: Value,
}

impl From<NameChanges> for NamesView {
    fn from(changes: NameChanges) -> NamesView {
        let differing = changes.changed.into_iter().map(|one| ChangedView {
            name: one.name,
            keys: one.keys,
        });
        NamesView {
            added: changes.added,
            changed: differing.collect(),
            removed: changes.removed,
        }
    }
}

impl From<SettingChange> for SettingView {
    fn from(change: SettingChange) -> SettingView {
        SettingView {
            key: change.key,
            from: change.from,
            to: change.to,
        }
    }
}

fn settings(changes: Vec<SettingChange>) -> Vec<SettingView> {
    changes.into_iter().map(SettingView::from).collect()
}

/// Reads all files and puts them in force, or changes nothing and says why.
pub(super) async fn reload(State(app): State<App>, body: Bytes) -> Result<Json<Data<ReloadedView>>, Problem> {
    input::no_fields(&body)?;
    match app.reloader.reload().await {
        Ok(reloaded) => Ok(Json(Data {
            data: ReloadedView {
                jobs: reloaded.difference.jobs.into(),
                dags: reloaded.difference.dags.into(),
                pools: reloaded.difference.slot_pools.into(),
                settings: settings(reloaded.difference.settings),
                needs_restart: settings(reloaded.difference.needs_restart),
                cancelled_entries: reloaded.cancelled_entries,
                warnings: reloaded.warnings.iter().map(fault_view).collect(),
            },
        })),
        Err(error) => Err(refusal(&error)),
    }
}

fn refusal(error: &ReloadError) -> Problem {
    match error {
        ReloadError::Rejected(rejected) => {
            let errors: Vec<Value> = rejected.faults.iter().map(fault_view).collect();
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, error.to_string())
                .member("errors", errors)
                .member("rendered", rejected.rendered.clone())
        }
        ReloadError::Store | ReloadError::Draining => {
            Problem::new(StatusCode::SERVICE_UNAVAILABLE, error.to_string())
        }
    }
}

/// A fault in the form of all errors; its pointer is a place in a file.
fn fault_view(fault: &Fault) -> Value {
    json!({
        "pointer": fault.at.to_string(), "code": fault.code, "detail": fault.message, "help": fault.help,
        "severity": fault.severity, "file": &*fault.at.file, "line": fault.at.line, "column": fault.at.column,
    })
}

/// What `/api/status` says about the configuration; the dashboard makes a banner of `rejected`.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ConfigurationView {
    since: String,
    warnings: Vec<Value>,
    needs_restart: Vec<SettingView>,
    rejected: Option<RejectedView>,
}

/// A reload that changed nothing.
#[derive(Debug, Serialize, ToSchema)]
struct RejectedView {
    since: String,
    at: String,
    errors: Vec<Value>,
    rendered: String,
}

impl ConfigurationView {
    pub(super) fn of(app: &App) -> ConfigurationView {
        let standing = app.reloader.standing();
        let rejected = |rejected: Rejected| RejectedView {
            since: rejected.since.to_string(),
            at: rejected.at.to_string(),
            errors: rejected.faults.iter().map(fault_view).collect(),
            rendered: rejected.rendered,
        };
        ConfigurationView {
            since: standing.since.to_string(),
            warnings: standing.warnings.iter().map(fault_view).collect(),
            needs_restart: settings(standing.needs_restart),
            rejected: standing.rejected.map(rejected),
        }
    }

    /// A sentence for the verdict, if the last reload changed nothing, or if the start left lines of a crontab out.
    pub(super) fn complaint(&self) -> Option<String> {
        let Some(rejected) = self.rejected.as_ref() else {
            return self.faulty_lines();
        };
        let count = match rejected.errors.len() {
            1 => "1 fault".to_owned(),
            many => format!("{many} faults"),
        };
        Some(format!(
            "The last reload was rejected ({count}); the configuration before it stays in force."
        ))
    }

    fn faulty_lines(&self) -> Option<String> {
        let is_faulty = |warning: &&Value| {
            let code = warning["code"].as_str().unwrap_or_default();
            code.starts_with("crontab/") && warning["severity"] == "warning"
        };
        match self.warnings.iter().filter(is_faulty).count() {
            0 => None,
            1 => Some("1 faulty line of a crontab does not run.".to_owned()),
            many => Some(format!("{many} faulty lines of crontabs do not run.")),
        }
    }
}

/// Variables carry secrets; their names do not.
pub(super) fn hide_values(config: &mut Value) {
    items(config, "jobs").for_each(hide_environment);
    for dag in items(config, "dags") {
        items(dag, "tasks").for_each(hide_environment);
    }
}

fn hide_environment(launch: &mut Value) {
    for entry in items(launch, "environment") {
        if let Some(value) = entry.get_mut("value") {
            *value = Value::from(HIDDEN);
        }
    }
}

fn items<'v>(map: &'v mut Value, member: &str) -> impl Iterator<Item = &'v mut Value> {
    let list = map.get_mut(member).and_then(Value::as_array_mut);
    list.into_iter().flatten()
}
