//! `/api/shadow-campaigns`: another strategy looks at what a pool decides, and what it would have done is counted.

use std::collections::BTreeMap;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::{IntoResponse, Response};
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
use crate::domain::routing::campaign::{StateMode, Status};
use crate::domain::routing::canonical;
use crate::domain::routing::print::View;
use crate::engine::changes::campaigns::{self as changes, shown};
use crate::store::tables::{CAMPAIGNS, SHADOW_TALLIES};
use crate::store::{Rows, StoreError, Tx, routing_objects, shadows};
use crate::words::ids::{CampaignId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "shadow_campaign";

/// Which ones are listed.
pub(super) const FILTERS: [Param; 3] = [
    Param::filter("pool_id", Kind::Id, "That look at this pool."),
    Param::query(
        "status",
        Kind::OneOf(Status::WORDS),
        "`draft`, `running` or `stopped`.",
    ),
    VIEW,
];
/// How one is deleted.
pub(super) const DELETION: [Param; 1] = [EXPECTED];

/// Shadow campaigns.
pub(super) struct Campaigns;

impl Declared for Campaigns {
    type Id = CampaignId;
    const KIND: &'static str = KIND;

    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &CampaignId) -> Result<Option<u64>, StoreError> {
        let row = shadows::campaign(tx, tenant, *id)?;
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
        CampaignId::fresh(),
    );
    let change = move |tx: &mut Tx<'_>| changes::create(tx, &by, id, sent.clone());
    routing::create(&app, once, "create campaign", "/api/shadow-campaigns", change).await
}

/// One.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let view = routing::view_of(&input::query(&uri, &[VIEW])?)?;
    let (tenant, id) = (caller.tenant, routing::id_of::<CampaignId>(KIND, &text)?);
    let found = app
        .engine
        .read(move |tx| shadows::campaign(tx, tenant, id))
        .await?;
    let row = found.ok_or_else(|| routing::missing(KIND, &text))?;
    let now = Micros::from(app.engine.now().wall);
    Ok(routing::show(&headers, shown(id, &row, now, view)))
}

/// Campaigns by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let of = paging::values(&pairs, "pool_id");
    let status = input::last(&pairs, "status").map(str::to_owned);
    if status.as_deref().is_some_and(|word| Status::of(word).is_none()) {
        let words = Status::WORDS.join("`, `");
        return Err(Problem::unreadable(format!("`status` is one of `{words}`")));
    }
    let mark = [
        ("tenant", caller.tenant.0.to_string()),
        ("pool_id", format!("{of:?}")),
        ("status", format!("{status:?}")),
    ];
    let paging = Paging::of(&pairs, "shadow_campaigns", &mark, false)?;
    let (tenant, now) = (caller.tenant, Micros::from(app.engine.now().wall));
    let page = app
        .engine
        .read(move |tx| page(tx, tenant, &paging, (&of, status.as_deref()), (now, view)));
    Ok(Json(page.await?))
}

fn page(
    rows: &mut impl Rows,
    tenant: TenantId,
    paging: &Paging,
    (of, status): (&[String], Option<&str>),
    (now, view): (Micros, View),
) -> Result<Page<Value>, StoreError> {
    let among = (tenant, paging, limits::CAMPAIGNS_MAX);
    declared::page(rows, &CAMPAIGNS, among, (CampaignId, |id| id.0), |_, id, row| {
        let one = shown(id, row, now, view);
        let is_of = |wanted: &String| one["pool_id"] == wanted.as_str();
        let is_wanted =
            (of.is_empty() || of.iter().any(is_of)) && status.is_none_or(|word| one["status"] == word);
        Ok(is_wanted.then_some(one))
    })
}

/// Changes what is sent of one.
pub(super) async fn patch(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Campaigns>::of(&app, &caller, &text)?;
    one.patch(&app, once, &body, ("change campaign", changes::patch))
        .await
}

/// Removes one.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let (one, pairs) = (
        Wanted::<Campaigns>::of(&app, &caller, &text)?,
        input::query(&uri, &DELETION)?,
    );
    one.delete(&app, once, (&pairs, &body), ("delete campaign", changes::delete))
        .await
}

/// What one has found until now.
pub(super) async fn report(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let (tenant, id) = (caller.tenant, routing::id_of::<CampaignId>(KIND, &text)?);
    let found = app.engine.read(move |tx| report_of(tx, tenant, id)).await?;
    let mut data = found.ok_or_else(|| routing::missing(KIND, &text))?;
    // Whoever puts the candidate into force names what it rests on.
    data["digest"] = Value::from(format!("sha256:{}", canonical::sha256(&data)));
    Ok(Json(json!({"data": data})).into_response())
}

fn report_of(rows: &mut impl Rows, tenant: TenantId, id: CampaignId) -> Result<Option<Value>, StoreError> {
    let Some(row) = shadows::campaign(rows, tenant, id)? else {
        return Ok(None);
    };
    let campaign = row.typed(tenant, id)?;
    let tally = rows.get(&SHADOW_TALLIES, &(tenant, id))?.unwrap_or_default();
    let mut names = BTreeMap::new();
    for recipient in tally.wins.keys() {
        if let Some(found) = routing_objects::recipient(rows, tenant, *recipient)? {
            names.insert(*recipient, found.name);
        }
    }
    Ok(Some(
        tally.report(&names, campaign.state_mode == StateMode::Mirrored),
    ))
}
