//! `/api/pools`: recipient pools.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::{Value, json};

use super::app::App;
use super::caller::Caller;
use super::declared::{self, Declared, Wanted};
use super::error::Problem;
use super::input;
use super::once::Once;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::routing::{self, EXPECTED, VIEW};
use super::runs::Data;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{RecipientState, Status};
use crate::domain::routing::print::View;
use crate::engine::changes::declared::Wisher;
use crate::engine::changes::recipient_pools::{self as changes, shown};
use crate::store::routing_live::{self, Lookup, live};
use crate::store::routing_objects::{members, recipient};
use crate::store::tables::RECIPIENT_POOLS;
use crate::store::{Rows, StoreError, Tx, waiting_work};
use crate::words::ids::{RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "pool";

/// Which ones are listed.
pub(super) const FILTERS: [Param; 4] = [
    Param::filter("status", Kind::OneOf(Status::WORDS), "Of this status."),
    Param::filter("name", Kind::Text, "Of this name."),
    Param::filter("parent_pool_id", Kind::Text, "Below this pool."),
    VIEW,
];
/// How one is shown.
pub(super) const SHOWN: [Param; 1] = [VIEW];
/// How one is deleted.
pub(super) const DELETION: [Param; 2] = [
    Param::query(
        "if_unreferenced",
        Kind::Flag,
        "`true`: refused while rules or other pools name it.",
    ),
    EXPECTED,
];
/// The kill-switch.
pub(super) const SWITCH: [Param; 3] = [
    Param::query(
        "enabled",
        Kind::Flag,
        "`false` stops routing at once, `true` lets it go on.",
    )
    .needed(),
    EXPECTED,
    Param::query("reason", Kind::Text, "Why, at most 4096 characters."),
];

/// Recipient pools.
pub(super) struct Pools;

impl Declared for Pools {
    type Id = RecipientPoolId;
    const KIND: &'static str = KIND;

    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &RecipientPoolId) -> Result<Option<u64>, StoreError> {
        let row = tx.get(&RECIPIENT_POOLS, &(tenant, *id))?;
        Ok(row.map(|row| row.object.record_version))
    }
}

/// Creates one.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (sent, by, id) = (
        routing::fields(&body)?,
        routing::wisher(&app, &caller),
        RecipientPoolId::fresh(),
    );
    let change = move |tx: &mut Tx<'_>| changes::create(tx, &by, id, sent.clone());
    routing::create(&app, once, "create pool", "/api/pools", change).await
}

/// One with its members and rules.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let view = routing::view_of(&input::query(&uri, &SHOWN)?)?;
    let (tenant, id) = (caller.tenant, routing::id_of::<RecipientPoolId>(KIND, &text)?);
    let found = app.engine.read(move |tx| {
        let row = tx.get(&RECIPIENT_POOLS, &(tenant, id))?;
        row.map(|row| shown(tx, tenant, id, &row, view)).transpose()
    });
    let found = found.await?.ok_or_else(|| routing::missing(KIND, &text))?;
    Ok(routing::show(&headers, found))
}

/// Which recipient pools are asked for.
struct Filter {
    statuses: Vec<String>,
    names: Vec<String>,
    parents: Vec<String>,
}

impl Filter {
    fn passes(&self, shown: &Value) -> bool {
        let one_of = |wanted: &[String], field: &str, default: &str| {
            let value = shown[field].as_str().unwrap_or(default);
            wanted.is_empty() || wanted.iter().any(|wanted| wanted == value)
        };
        one_of(&self.statuses, "status", Status::Active.word())
            && one_of(&self.names, "name", "")
            && one_of(&self.parents, "parent_pool_id", "")
    }
}

/// Recipient pools by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let filter = Filter {
        statuses: words(&pairs, "status", Status::WORDS)?,
        names: paging::values(&pairs, "name"),
        parents: paging::values(&pairs, "parent_pool_id"),
    };
    let mark = [
        ("tenant", caller.tenant.0.to_string()),
        ("status", filter.statuses.join("\0")),
        ("name", filter.names.join("\0")),
        ("parent_pool_id", filter.parents.join("\0")),
    ];
    let paging = Paging::of(&pairs, "recipient pools", &mark, false)?;
    let tenant = caller.tenant;
    let page = app
        .engine
        .read(move |tx| page(tx, tenant, &paging, &filter, view));
    Ok(Json(page.await?))
}

/// The values of a filter that must be among some words.
pub(super) fn words(pairs: &[(String, String)], name: &str, known: &[&str]) -> Result<Vec<String>, Problem> {
    let values = paging::values(pairs, name);
    match values.iter().find(|value| !known.contains(&value.as_str())) {
        None => Ok(values),
        Some(_) => Err(Problem::unreadable(format!(
            "`{name}` must be one of {}",
            known.join(", ")
        ))),
    }
}

fn page(
    rows: &mut impl Rows,
    tenant: TenantId,
    paging: &Paging,
    filter: &Filter,
    view: View,
) -> Result<Page<Value>, StoreError> {
    let among = (tenant, paging, limits::RECIPIENT_POOLS_MAX);
    declared::page(
        rows,
        &RECIPIENT_POOLS,
        among,
        (RecipientPoolId, |id| id.0),
        |rows, id, row| {
            if !filter.passes(&Value::from(row.object.fields())) {
                return Ok(None);
            }
            shown(rows, tenant, id, row, view).map(Some)
        },
    )
}

/// Changes what is sent of one.
pub(super) async fn patch(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Pools>::of(&app, &caller, &text)?;
    one.patch(&app, once, &body, ("change pool", changes::patch))
        .await
}

/// Removes one; its recipients stay.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let (one, pairs) = (
        Wanted::<Pools>::of(&app, &caller, &text)?,
        input::query(&uri, &DELETION)?,
    );
    let if_unreferenced = input::flag(&pairs, "if_unreferenced")?.unwrap_or(false);
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::delete(tx, by, id, if_unreferenced);
    one.delete(&app, once, (&pairs, &body), ("delete pool", work))
        .await
}

/// The kill-switch.
pub(super) async fn set_enabled(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Pools>::of(&app, &caller, &text)?;
    let (once, sent) = routing::guarded_fields(once, &body)?;
    let mut faults: Vec<Fault> = sent
        .keys()
        .filter(|key| !["enabled", "reason"].contains(&key.as_str()))
        .map(|key| {
            Fault::new(
                format!("/{}", input::escaped(key)),
                "field.unknown",
                "unknown field",
            )
        })
        .collect();
    let enabled = match sent.get("enabled") {
        Some(Value::Bool(enabled)) => Some(*enabled),
        Some(_) => {
            faults.push(Fault::new("/enabled", "field.type", "must be true or false"));
            None
        }
        None => {
            faults.push(Fault::new("/enabled", "field.required", "must be given"));
            None
        }
    };
    let reason = match sent.get("reason") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(reason)) if reason.chars().count() <= limits::ROUTING_TEXT_CHARS_MAX => {
            reason.clone()
        }
        Some(Value::String(_)) => {
            let detail = format!("has more than {} characters", limits::ROUTING_TEXT_CHARS_MAX);
            faults.push(Fault::new("/reason", "field.too_long", detail));
            String::new()
        }
        Some(_) => {
            faults.push(Fault::new("/reason", "field.type", "must be a text"));
            String::new()
        }
    };
    let (Some(enabled), true) = (enabled, faults.is_empty()) else {
        return Err(Problem::faulty(faults));
    };
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::set_enabled(tx, by, id, enabled, &reason);
    one.change(&app, once, "switch pool", work).await
}

/// Numbers over all its recipients.
pub(super) async fn stats(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let (tenant, id) = (caller.tenant, routing::id_of::<RecipientPoolId>(KIND, &text)?);
    let now = Micros::from(app.engine.now().wall);
    let found = app.engine.read(move |tx| stats_of(tx, tenant, id, now)).await?;
    let data = found.ok_or_else(|| routing::missing(KIND, &text))?;
    Ok(axum::response::IntoResponse::into_response(Json(Data { data })))
}

/// An assignment without a deadline is stale after a day.
const STALE_AFTER_US: u64 = 86_400_000_000;

fn stats_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    now: Micros,
) -> Result<Option<Value>, StoreError> {
    if !rows.has(&RECIPIENT_POOLS, &(tenant, id))? {
        return Ok(None);
    }
    let (mut total, mut active, mut capacity, mut used) = (0_u64, 0_u64, 0_u64, 0_u64);
    for member in members(rows, tenant, id)? {
        let Some(recipient) = recipient(rows, tenant, member)? else {
            continue;
        };
        let live = live(rows, tenant, member)?;
        let state = live.as_ref().map_or(RecipientState::Available, |live| live.state);
        let is_active = recipient.status == Status::Active
            && matches!(state, RecipientState::Available | RecipientState::Busy);
        total += 1;
        active += u64::from(is_active);
        capacity += u64::from(recipient.max_concurrent);
        used += live.map_or(0, |live| u64::from(live.current));
    }
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    let utilization = if capacity > 0 {
        used as f64 / capacity as f64
    } else {
        0.0
    };
    let depth = routing_live::counts(rows, tenant, id)?.waiting;
    let oldest = waiting_work::oldest(rows, tenant, id)?.map_or(0, |since| now.since(since) / 1_000_000);
    let stale = stale(rows, tenant, id, now)?;
    Ok(Some(json!({
        "pool_id": id.to_string(), "total_recipients": total, "active_recipients": active,
        "total_capacity": capacity, "used_capacity": used, "utilization": utilization, "queue_depth": depth,
        "oldest_queued_seconds": oldest, "stale_assignments": stale, "updated_at": now.to_string(),
    })))
}

/// Assignments that have no deadline and are open for over a day: nobody will ever take their place away.
fn stale(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    now: Micros,
) -> Result<u64, StoreError> {
    let mut stale = 0;
    let lookup = (Lookup::LiveOfRecipientPool, id.0);
    for assignment in routing_live::by(rows, tenant, lookup, limits::STALE_LOOKED_AT_MAX)? {
        let Some(row) = routing_live::assignment(rows, tenant, assignment)? else {
            continue;
        };
        // They come oldest first.
        if now.since(row.created_at) < STALE_AFTER_US {
            break;
        }
        stale += u64::from(row.deadline_at.is_none());
    }
    Ok(stale)
}

/// Has nothing of its recipients count any more.
pub(super) async fn reset(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Pools>::of(&app, &caller, &text)?;
    one.change(
        &app,
        once.expecting(&body)?,
        "reset capacity",
        changes::reset_capacity,
    )
    .await
}
