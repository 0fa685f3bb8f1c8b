//! `/api/tenants`: who shares this state directory. A tenant sees itself alone; the tenant `default` looks after all.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::input;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::access::naming;
use crate::engine::changes::tenants::{self, Created};
use crate::store::Rows;
use crate::store::access::TenantRow;
use crate::store::tables::TENANTS;
use crate::words::limits;

/// The fields of a new tenant.
pub(super) const FIELDS: [Param; 1] = [Param::query(
    "name",
    Kind::Text,
    "1 to 63 of a to z, 0 to 9, `.`, `_`, `-`; no other tenant has it.",
)
.needed()];

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(super) struct TenantView {
    name: String,
    /// Keys that open something now.
    keys: usize,
    /// Absent for `default`, which is always there.
    created_at: Option<String>,
    created_by: Option<String>,
}

/// Tenants by name.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<TenantView>>, Problem> {
    let pairs = paging::query(&uri, &[])?;
    let paging = Paging::of_tenant(&pairs, "tenants", &[], true, caller.tenant)?;
    let ring = app.keyring.current(&app.engine).await?;
    let sees_all = caller.oversees().is_ok();
    let mut names: Vec<&str> = ring
        .tenants()
        .filter(|(id, _)| sees_all || *id == caller.tenant)
        .map(|(_, name)| name)
        .collect();
    names.sort_unstable();
    let (names, more) = paging::of_names(names.iter(), &paging);
    let now = app.engine.now().wall;
    let mut data = Vec::with_capacity(names.len());
    for name in &names {
        let Some(id) = ring.tenant(name) else { continue };
        let row = app.engine.read(move |tx| tx.get(&TENANTS, &(id,))).await?;
        data.push(TenantView {
            name: (**name).to_owned(),
            keys: ring.valid_keys(id, now),
            created_at: row.as_ref().map(|row| row.created_at.to_string()),
            created_by: row.map(|row| row.by),
        });
    }
    let last = names.last().filter(|_| more).map(|name| name.as_bytes());
    Ok(Json(paging.page(data, last)))
}

/// Makes one.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &FIELDS)?;
    let name = match fields.get("name") {
        Some(Value::String(name)) if naming::is_tenant(name) => name.clone(),
        None => {
            faults.push(input::fault("name", "required", "give it a name"));
            String::new()
        }
        Some(_) => {
            faults.push(input::fault("name", "invalid", naming::TENANT_RULE));
            String::new()
        }
    };
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    caller.oversees()?;
    let row = TenantRow {
        name: name.clone(),
        created_at: app.engine.now().wall,
        by: caller.principal.to_string(),
    };
    let shown = row.clone();
    let mut asked = once.ask(move |_, created: &Created| {
        let data = TenantView {
            name: shown.name.clone(),
            keys: 0,
            created_at: Some(shown.created_at.to_string()),
            created_by: Some(shown.by.clone()),
        };
        let is_done = matches!(created, Created::Done(_));
        let location = Some(format!("/api/tenants/{}", shown.name));
        Ok(is_done.then(|| once::accepted(StatusCode::CREATED, location, &Data { data })))
    });
    let told = app
        .engine
        .store
        .change("create tenant", move |tx| {
            asked.once(tx, |tx| tenants::create(tx, &row))
        })
        .await?;
    once::respond(told, |created| match created {
        Created::NameTaken => {
            Problem::forbidden_by_state(format!("there is a tenant '{name}' already")).code("ALREADY_EXISTS")
        }
        Created::Full => Problem::forbidden_by_state(format!(
            "there are {} tenants, and no more may be",
            limits::TENANTS_MAX
        ))
        .code("RESOURCE_EXHAUSTED"),
        Created::Done(_) => unreachable!("a new tenant has an answer"),
    })
}
