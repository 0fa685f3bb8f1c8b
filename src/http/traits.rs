//! `/api/traits` and `/api/claim-queues`: small declared objects.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::Value;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::input;
use super::once::Once;
use super::paging::{self, Page, Paging};
use super::param::Param;
use super::recipient_pools::place_of;
use super::routing::{self, EXPECTED, VIEW};
use crate::engine::changes::traits::{self as changes, shown, shown_queue};
use crate::store::tables::{CLAIM_QUEUES, TRAITS};
use crate::store::{Rows, StoreError, Tx};
use crate::words::ids::{ClaimQueueId, TenantId};

/// How they are listed.
pub(super) const FILTERS: [Param; 1] = [VIEW];
/// How one is deleted.
pub(super) const DELETION: [Param; 1] = [EXPECTED];

fn version_of(
    tenant: TenantId,
    key: &str,
) -> impl FnMut(&mut Tx<'_>) -> Result<Option<u64>, StoreError> + Send + 'static {
    let key = (tenant, key.to_owned());
    move |tx| Ok(tx.get(&TRAITS, &key)?.map(|row| row.record_version))
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
    let by = routing::wisher(&app, &caller);
    let (once, sent) = routing::guarded_fields(once, &body)?;
    let version = version_of(caller.tenant, &key);
    let change = move |tx: &mut Tx<'_>| changes::put(tx, &by, &key, sent.clone());
    routing::change(&app, once, "declare trait", version, change).await
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
    let by = routing::wisher(&app, &caller);
    let once = routing::guarded_query(once.expecting(&body)?, &input::query(&uri, &DELETION)?)?;
    let version = version_of(caller.tenant, &key);
    let change = move |tx: &mut Tx<'_>| changes::delete(tx, &by, &key);
    routing::change(&app, once, "delete trait", version, change).await
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
        let place = place_of(&paging).map(|id| (tenant, ClaimQueueId(id)));
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let mut found = scan(tx, &CLAIM_QUEUES, &(tenant,), place.as_ref(), paging.size + 1)?;
        let more = found.len() > paging.size;
        found.truncate(paging.size);
        let last = found.last().filter(|_| more).map(|((_, id), _)| id.0);
        let views = found
            .iter()
            .map(|((_, id), row)| shown_queue(*id, row, view))
            .collect();
        Ok(paging.page(views, last.as_ref().map(<[u8; 16]>::as_slice)))
    });
    Ok(Json(page.await?))
}
