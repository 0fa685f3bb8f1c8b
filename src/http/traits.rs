//! `/api/traits` and `/api/claim-queues`: small declared objects.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::Value;

use super::app::App;
use super::caller::Caller;
use super::declared::{self, Declared, Wanted};
use super::error::Problem;
use super::input;
use super::once::Once;
use super::paging::{self, Page, Paging};
use super::param::Param;
use super::routing::{self, EXPECTED, VIEW};
use crate::engine::changes::declared::Wisher;
use crate::engine::changes::traits::{self as changes, shown, shown_queue};
use crate::store::tables::{CLAIM_QUEUES, TRAITS};
use crate::store::{Rows, StoreError, Tx};
use crate::words::ids::{ClaimQueueId, TenantId};
use crate::words::limits;

/// How they are listed.
pub(super) const FILTERS: [Param; 1] = [VIEW];
/// How one is deleted.
pub(super) const DELETION: [Param; 1] = [EXPECTED];

/// Traits, by key.
pub(super) struct Traits;

impl Declared for Traits {
    type Id = String;
    const KIND: &'static str = "trait";

    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &String) -> Result<Option<u64>, StoreError> {
        let row = tx.get(&TRAITS, &(tenant, id.clone()))?;
        Ok(row.map(|row| row.record_version))
    }
}

/// Traits by pages, by key.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let mark = [("tenant", caller.tenant.0.to_string())];
    let paging = Paging::of(&pairs, "traits", &mark, true)?;
    let tenant = caller.tenant;
    let page = app.engine.read(move |tx| {
        let place = paging
            .after
            .clone()
            .and_then(|bytes| Some((tenant, String::from_utf8(bytes).ok()?)));
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let mut found = scan(tx, &TRAITS, &(tenant,), place.as_ref(), paging.size + 1)?;
        let more = found.len() > paging.size;
        found.truncate(paging.size);
        let last = found
            .last()
            .filter(|_| more)
            .map(|((_, key), _)| key.clone().into_bytes());
        let views = found.iter().map(|(_, row)| shown(row, view)).collect();
        Ok(paging.page(views, last.as_deref()))
    });
    Ok(Json(page.await?))
}

/// Declares a trait.
pub(super) async fn put(
    State(app): State<App>,
    caller: Caller,
    Path(key): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Traits>::of(&app, &caller, &key)?;
    let work = |tx: &mut Tx<'_>, by: &Wisher, key: String, sent| changes::put(tx, by, &key, sent);
    one.patch(&app, once, &body, ("declare trait", work)).await
}

/// Removes a trait.
pub(super) async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(key): Path<String>,
    once: Once,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let (one, pairs) = (
        Wanted::<Traits>::of(&app, &caller, &key)?,
        input::query(&uri, &DELETION)?,
    );
    let work = |tx: &mut Tx<'_>, by: &Wisher, key: String| changes::delete(tx, by, &key);
    one.delete(&app, once, (&pairs, &body), ("delete trait", work))
        .await
}

/// Creates a claim queue.
pub(super) async fn create_queue(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let (sent, by, id) = (
        routing::fields(&body)?,
        routing::wisher(&app, &caller),
        ClaimQueueId::fresh(),
    );
    let change = move |tx: &mut Tx<'_>| changes::create_queue(tx, &by, id, sent.clone());
    routing::create(&app, once, "create claim queue", "/api/claim-queues", change).await
}

/// One claim queue.
pub(super) async fn show_queue(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, Problem> {
    let view = routing::view_of(&input::query(&uri, &[VIEW])?)?;
    let (tenant, id) = (
        caller.tenant,
        routing::id_of::<ClaimQueueId>("claim_queue", &text)?,
    );
    let found = app.engine.read(move |tx| tx.get(&CLAIM_QUEUES, &(tenant, id)));
    let row = found
        .await?
        .ok_or_else(|| routing::missing("claim_queue", &text))?;
    Ok(routing::show(&headers, shown_queue(id, &row, view)))
}

/// Claim queues by pages, newest first.
pub(super) async fn list_queues(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let mark = [("tenant", caller.tenant.0.to_string())];
    let paging = Paging::of(&pairs, "claim queues", &mark, false)?;
    let tenant = caller.tenant;
    let page = app.engine.read(move |tx| {
        let among = (tenant, &paging, limits::CLAIM_QUEUES_MAX);
        declared::page(
            tx,
            &CLAIM_QUEUES,
            among,
            (ClaimQueueId, |id| id.0),
            |_, id, row| Ok(Some(shown_queue(id, row, view))),
        )
    });
    Ok(Json(page.await?))
}
