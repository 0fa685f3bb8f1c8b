//! `/api/queues/{pool}/items`: work that waits.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::runs::Data;
use super::{input, live_routing};
use crate::domain::routing::charge::Counted;
use crate::domain::routing::waiting::{WaitKind, Waiting, effective_priority};
use crate::engine::changes::routing::reconcile::Looked;
use crate::engine::changes::routing::waiting;
use crate::engine::router;
use crate::store::keys::Key;
use crate::store::routing_objects;
use crate::words::ids::{RecipientPoolId, WaitingId};
use crate::words::time::Micros;

/// Work that waits, on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WaitingItem)]
pub(super) struct ItemView {
    id: String,
    work_id: String,
    pool_id: String,
    decision_id: String,
    priority: u8,
    /// With what it has gained by its age; lower is first.
    effective_priority: i64,
    enqueued_at: String,
    expires_at: String,
    /// `queued`; `catchall`: it goes to another pool at `hops_at`; `again`: it came back and is routed anew at once.
    kind: &'static str,
    hops_at: Option<String>,
    /// Time alone may change the outcome then.
    wakes_at: Option<String>,
    attempt: u32,
    /// Reasons of the newest pass, and how many recipients each has rejected.
    #[schema(value_type = Value)]
    histogram: Map<String, Value>,
    record_version: u64,
}

impl ItemView {
    fn of(item: &Waiting, now: Micros, age_step_us: u64) -> ItemView {
        let (kind, hops_at) = match item.kind {
            WaitKind::Again => ("again", None),
            WaitKind::Queued => ("queued", None),
            WaitKind::Catchall { due_at, .. } => ("catchall", Some(due_at.to_string())),
        };
        let counted = item.histogram.iter();
        ItemView {
            id: item.id.to_string(),
            work_id: item.work.to_string(),
            pool_id: item.recipient_pool.to_string(),
            decision_id: item.decision.to_string(),
            priority: item.priority,
            effective_priority: effective_priority(item.priority, item.enqueued_at, now, age_step_us),
            enqueued_at: item.enqueued_at.to_string(),
            expires_at: item.expires_at.to_string(),
            kind,
            hops_at,
            wakes_at: item.wake_at.map(|at| at.to_string()),
            attempt: item.lineage.attempt + 1,
            histogram: counted
                .map(|(code, count)| (code.clone(), Value::from(*count)))
                .collect(),
            record_version: item.record_version,
        }
    }
}

type PlaceKey = (u8, Micros, WaitingId);

/// Work that waits in a recipient pool, by priority and then oldest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Json<Page<ItemView>>, Problem> {
    let id: RecipientPoolId = live_routing::id_of("pool", &text)?;
    let pairs = paging::query(&uri, &[])?;
    let marks = [("tenant", caller.tenant.0.to_string()), ("pool", id.to_string())];
    let paging = Paging::of(&pairs, "waiting items", &marks, true)?;
    if !paging.ascending {
        return Err(Problem::unreadable("a queue is shown in its order only"));
    }
    let behind = paging.after.as_deref().and_then(PlaceKey::decode);
    let (tenant, limit) = (caller.tenant, paging.size + 1);
    let found = app
        .engine
        .read(move |tx| {
            let Some(pool) = routing_objects::recipient_pool(tx, tenant, id)? else {
                return Ok(None);
            };
            let items = waiting::items(tx, tenant, id, behind, limit)?;
            Ok(Some((pool.config.age_step_us, items)))
        })
        .await?;
    let (age_step_us, mut items) = found.ok_or_else(|| live_routing::missing("pool", &text))?;
    let more = items.len() > paging.size;
    items.truncate(paging.size);
    let last = items
        .last()
        .filter(|_| more)
        .map(|item| (item.priority, item.enqueued_at, item.id).encode());
    let now = Micros::from(app.engine.now().wall);
    let views = items
        .iter()
        .map(|item| ItemView::of(item, now, age_step_us))
        .collect();
    Ok(Json(paging.page(views, last.as_deref())))
}

/// What was taken out.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CancelledItem {
    id: String,
    work_id: String,
    state: &'static str,
}

/// Takes work out of its queue.
pub(super) async fn cancel(
    State(app): State<App>,
    caller: Caller,
    Path((pool, text)): Path<(String, String)>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let recipient_pool: RecipientPoolId = live_routing::id_of("pool", &pool)?;
    let item: WaitingId = live_routing::id_of("item", &text)?;
    let asked = once.ask(|_, cancelled: &Option<Waiting>| {
        Ok(cancelled.as_ref().map(|item| {
            once::ok(&Data {
                data: CancelledItem {
                    id: item.id.to_string(),
                    work_id: item.work.to_string(),
                    state: "cancelled",
                },
            })
        }))
    });
    let told = router::cancel(&app.engine, caller.tenant, (recipient_pool, item), asked).await?;
    once::respond(told, |_| live_routing::missing("item", &text))
}

/// What a count of all recipients has found.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ReconciledView {
    /// Recipients whose numbers were computed.
    recipients: usize,
    /// Those whose numbers were put right.
    differences: Vec<DifferenceView>,
}

/// A recipient whose numbers were not those of its assignments.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DifferenceView {
    recipient_id: String,
    stored: CountedView,
    real: CountedView,
}

/// Numbers that follow from assignments.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct CountedView {
    current: u32,
    units: u64,
    daily_count: u32,
}

impl CountedView {
    fn of(counted: Counted) -> CountedView {
        CountedView {
            current: counted.current,
            units: counted.units,
            daily_count: counted.daily_count,
        }
    }
}

/// Computes the numbers of all recipients anew, and puts right what differs.
pub(super) async fn reconcile(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let asked = once.ask(|_, looked: &Looked| {
        let differences = looked.differing.iter().map(|one| DifferenceView {
            recipient_id: one.recipient.to_string(),
            stored: CountedView::of(one.stored),
            real: CountedView::of(one.real),
        });
        Ok(Some(once::ok(&Data {
            data: ReconciledView {
                recipients: looked.recipients,
                differences: differences.collect(),
            },
        })))
    });
    let told = router::reconcile(&app.engine, caller.tenant, asked).await?;
    once::respond(told, |_| Problem::unavailable())
}
