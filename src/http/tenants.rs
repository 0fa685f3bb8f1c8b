//! `/api/tenants`: who shares this state directory. A tenant sees itself alone; the tenant `default` looks after all.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::{FieldFault, Problem};
use super::input;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::access::naming;
use crate::domain::routing::objects::PipelineMode;
use crate::engine::access::Ring;
use crate::engine::changes::tenants::{self, Created, Said, Wanted};
use crate::store::access::{TenantRow, TenantSettings};
use crate::store::tables::{TENANT_SETTINGS, TENANTS};
use crate::store::{ReadTx, Rows};
use crate::words::ids::TenantId;
use crate::words::limits;

/// The fields of a new tenant.
pub(super) const FIELDS: [Param; 1] = [Param::query(
    "name",
    Kind::Text,
    "1 to 63 of a to z, 0 to 9, `.`, `_`, `-`; no other tenant has it.",
)
.needed()];

/// What can be changed of a tenant.
pub(super) const SETTINGS: [Param; 1] = [Param::query(
    "routing",
    Kind::Any,
    "`default_pool_id`: the pool, by id or name, of work that no rule takes, null for none; \
     `pipeline_mode`: `linear`, `dag`, `shadow`, or `inherit` for what the daemon has.",
)
.needed()];

/// What a tenant says of its routing.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TenantRouting)]
pub(super) struct RoutingView {
    /// Where work goes that no rule takes.
    default_pool_id: Option<String>,
    /// `linear`, `dag`, `shadow`, or `inherit` for what the daemon has.
    pipeline_mode: &'static str,
    /// The configuration file says so, and nobody else may.
    from_file: bool,
}

impl RoutingView {
    fn of(settings: &TenantSettings) -> RoutingView {
        RoutingView {
            default_pool_id: settings.default_recipient_pool.clone(),
            pipeline_mode: settings.pipeline_mode.word(),
            from_file: settings.from_file,
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Tenant)]
pub(super) struct TenantView {
    name: String,
    /// Keys that open something now.
    keys: usize,
    /// Absent for `default`, which is always there.
    created_at: Option<String>,
    created_by: Option<String>,
    routing: RoutingView,
}

async fn view(app: &App, ring: &Ring, id: TenantId, name: &str) -> Result<TenantView, Problem> {
    let read = move |tx: &mut ReadTx| Ok((tx.get(&TENANTS, &(id,))?, tx.get(&TENANT_SETTINGS, &(id,))?));
    let (row, settings) = app.engine.read(read).await?;
    Ok(TenantView {
        name: name.to_owned(),
        keys: ring.valid_keys(id, app.engine.now().wall),
        created_at: row.as_ref().map(|row| row.created_at.to_string()),
        created_by: row.map(|row| row.by),
        routing: RoutingView::of(&settings.unwrap_or_default()),
    })
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
    let mut data = Vec::with_capacity(names.len());
    for name in &names {
        let Some(id) = ring.tenant(name) else { continue };
        data.push(view(&app, &ring, id, name).await?);
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
            routing: RoutingView::of(&TenantSettings::default()),
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

/// The tenant of a name, as far as the caller sees it.
fn named(ring: &Ring, caller: &Caller, name: &str) -> Result<TenantId, Problem> {
    let sees = |id: &TenantId| *id == caller.tenant || caller.oversees().is_ok();
    ring.tenant(name).filter(sees).ok_or_else(|| {
        let shown: String = name.chars().take(64).collect();
        Problem::not_found(format!("tenant '{shown}' not found"))
    })
}

/// One of them.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
) -> Result<Json<Data<TenantView>>, Problem> {
    let ring = app.keyring.current(&app.engine).await?;
    let id = named(&ring, &caller, &name)?;
    let data = view(&app, &ring, id, &name).await?;
    Ok(Json(Data { data }))
}

/// Changes what one says of its routing.
pub(super) async fn set(
    State(app): State<App>,
    caller: Caller,
    Path(name): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let wanted = wanted(&body)?;
    let ring = app.keyring.current(&app.engine).await?;
    let id = named(&ring, &caller, &name)?;
    let mut asked = once.ask(move |_, said: &Said| {
        Ok(match said {
            Said::Done(settings) => {
                let data = RoutingView::of(settings);
                Some(once::accepted(StatusCode::OK, None, &Data { data }))
            }
            Said::NoSuchPool(_) | Said::OfTheFile => None,
        })
    });
    let change = app.engine.store.change("tenant settings", move |tx| {
        asked.once(tx, |tx| tenants::say(tx, id, &wanted))
    });
    once::respond(change.await?, |said| match said {
        Said::NoSuchPool(text) => {
            let shown: String = text.chars().take(64).collect();
            Problem::invalid(vec![FieldFault {
                pointer: DEFAULT_POOL.to_owned(),
                code: "pool.not_found",
                detail: format!("there is no pool `{shown}`"),
            }])
        }
        Said::OfTheFile => Problem::forbidden_by_state(format!(
            "the configuration file says how the work of tenant '{name}' is routed; change it there"
        )),
        Said::Done(_) => unreachable!("settings that hold have an answer"),
    })
}

const DEFAULT_POOL: &str = "/routing/default_pool_id";

fn wanted(body: &[u8]) -> Result<Wanted, Problem> {
    let (fields, mut faults) = input::object(body, &SETTINGS)?;
    let mut fault = |pointer: &str, code: &'static str, detail: &str| {
        faults.push(FieldFault {
            pointer: pointer.to_owned(),
            code,
            detail: detail.to_owned(),
        });
    };
    let mut wanted = Wanted::default();
    match fields.get("routing") {
        Some(Value::Object(routing)) => {
            for (key, value) in routing {
                match (key.as_str(), value) {
                    ("default_pool_id", Value::Null) => wanted.default_recipient_pool = Some(None),
                    ("default_pool_id", Value::String(text)) if text.is_empty() => {
                        wanted.default_recipient_pool = Some(None);
                    }
                    ("default_pool_id", Value::String(text)) => {
                        wanted.default_recipient_pool = Some(Some(text.clone()));
                    }
                    ("default_pool_id", _) => fault(
                        DEFAULT_POOL,
                        "type",
                        "must be the id or the name of a pool, or null",
                    ),
                    ("pipeline_mode", Value::String(text)) if text.is_empty() => {
                        wanted.pipeline_mode = Some(PipelineMode::Inherit);
                    }
                    ("pipeline_mode", value) => match value.as_str().and_then(PipelineMode::of) {
                        Some(mode) => wanted.pipeline_mode = Some(mode),
                        None => fault(
                            "/routing/pipeline_mode",
                            "invalid",
                            "must be `inherit`, `linear`, `dag` or `shadow`",
                        ),
                    },
                    (other, _) => {
                        let known = "unknown field; there are `default_pool_id` and `pipeline_mode`";
                        let shown: String = other.chars().take(64).collect();
                        fault(
                            &format!("/routing/{}", shown.replace('~', "~0").replace('/', "~1")),
                            "unknown_field",
                            known,
                        );
                    }
                }
            }
        }
        Some(_) | None => fault("/routing", "required", "must be an object"),
    }
    if faults.is_empty() {
        Ok(wanted)
    } else {
        Err(Problem::invalid(faults))
    }
}
