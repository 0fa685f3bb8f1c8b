//! Offered work: what a recipient may claim, and the claims. Hidden fields of a queue are seen in the assignment only.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::assignments::{AssignmentView, id_in, known};
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::{input, live_routing};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::offer::{NoClaim, Offer};
use crate::domain::routing::work::Work;
use crate::engine::changes::remember::Answer;
use crate::engine::changes::routing::claims::{self, Claimed};
use crate::engine::router;
use crate::store::tables::{CLAIM_QUEUES, RECIPIENT_POOLS};
use crate::store::{Rows, StoreError};
use crate::words::ids::{ClaimQueueId, RecipientId, RecipientPoolId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// For whom offers are listed.
pub(super) const QUERY: [Param; 2] = [
    Param::query(
        "recipient_id",
        Kind::Id,
        "Only what this recipient may claim now.",
    ),
    Param::query("limit", Kind::Integer, "How many, 1 to 500 (50)."),
];
/// Who claims.
pub(super) const CLAIM: [Param; 1] = [Param::query("recipient_id", Kind::Id, "Who claims it.").needed()];

/// How a pointer into a body of `POST /api/route` begins.
const WORK: &str = concat!("/", "work");

/// An offer on the wire.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = OfferItem)]
pub(super) struct OfferView {
    id: String,
    pool_id: String,
    decision_id: String,
    priority: u8,
    offered_at: String,
    ends_at: String,
    /// How often it was claimed and not answered.
    neglect_count: u32,
    /// The work, without the hidden fields of the queue.
    work: Value,
}

impl OfferView {
    fn of(offer: &Offer, work: &Work, hidden: &[String]) -> OfferView {
        OfferView {
            id: offer.id.to_string(),
            pool_id: offer.recipient_pool.to_string(),
            decision_id: offer.decision.to_string(),
            priority: offer.priority,
            offered_at: offer.offered_at.to_string(),
            ends_at: offer.ends_at.to_string(),
            neglect_count: offer.neglect_count,
            work: without(work, hidden),
        }
    }
}

/// Work without what these pointers name: `/attributes/phone`, with or without the name of the work before it.
fn without(work: &Work, hidden: &[String]) -> Value {
    let mut value = serde_json::to_value(work).unwrap_or_default();
    for pointer in hidden {
        let inner = pointer.strip_prefix(WORK).filter(|rest| rest.starts_with('/'));
        let pointer = inner.unwrap_or(pointer);
        let Some((parent, name)) = pointer.rsplit_once('/') else {
            continue;
        };
        let name = name.replace("~1", "/").replace("~0", "~");
        match value.pointer_mut(parent) {
            Some(Value::Object(fields)) => {
                fields.remove(&name);
            }
            Some(Value::Array(list)) => {
                if let Some(place) = name.parse::<usize>().ok().filter(|place| *place < list.len()) {
                    list[place] = Value::Null;
                }
            }
            Some(Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_)) | None => {}
        }
    }
    value
}

/// The hidden fields of a queue; none where there is no such queue. The offers of a recipient pool without one stand in a queue
/// of its own id, which hides nothing.
fn hidden_fields(
    rows: &mut impl Rows,
    tenant: TenantId,
    queue: ClaimQueueId,
) -> Result<Option<Vec<String>>, StoreError> {
    if let Some(row) = rows.get(&CLAIM_QUEUES, &(tenant, queue))? {
        let fields = row.fields();
        let list = fields.get("hidden_fields").and_then(Value::as_array);
        let texts = list.into_iter().flatten().filter_map(Value::as_str);
        return Ok(Some(texts.map(str::to_owned).collect()));
    }
    let own = rows.has(&RECIPIENT_POOLS, &(tenant, RecipientPoolId(queue.0)))?;
    Ok(own.then(Vec::new))
}

/// Open offers of a claim queue, by priority and then oldest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let queue: ClaimQueueId = live_routing::id_of("claim_queue", &text)?;
    let pairs = input::query(&uri, &QUERY)?;
    let recipient: Option<RecipientId> = id_in(&pairs, "recipient_id")?;
    let limit = input::number(&pairs, "limit", 1, limits::PAGE_MAX)?.unwrap_or(limits::PAGE_DEFAULT);
    let tenancy = app.engine.tenancy(caller.tenant).await?;
    let (shelf, now) = (app.engine.routing.clone(), Micros::from(app.engine.now().wall));
    let found = app
        .engine
        .read(move |tx| {
            let Some(hidden) = hidden_fields(tx, tenancy.tenant, queue)? else {
                return Ok(None);
            };
            let whose = claims::Asking { queue, recipient };
            let open = claims::open_to(tx, &shelf, &tenancy, whose, now, limit)?;
            let views = open
                .iter()
                .map(|(offer, work)| OfferView::of(offer, work, &hidden));
            Ok(Some(views.collect::<Vec<OfferView>>()))
        })
        .await?;
    let views = found.ok_or_else(|| live_routing::missing("claim_queue", &text))?;
    Ok(Json(json!({"data": views, "pagination": {}})).into_response())
}

/// Claims one offer.
pub(super) async fn claim(
    State(app): State<App>,
    caller: Caller,
    Path((queue, item)): Path<(String, String)>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let item: WaitingId = live_routing::id_of("item", &item)?;
    take(&app, &caller, &queue, Some(item), once, &body).await
}

/// Claims the next offer.
pub(super) async fn next(
    State(app): State<App>,
    caller: Caller,
    Path(queue): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    take(&app, &caller, &queue, None, once, &body).await
}

async fn take(
    app: &App,
    caller: &Caller,
    text: &str,
    item: Option<WaitingId>,
    once: Once,
    body: &[u8],
) -> Result<Response, Problem> {
    let queue: ClaimQueueId = live_routing::id_of("claim_queue", text)?;
    let recipient = recipient_of(body)?;
    let tenant = caller.tenant;
    let known = app
        .engine
        .read(move |tx| hidden_fields(tx, tenant, queue))
        .await?;
    let hidden = known.ok_or_else(|| live_routing::missing("claim_queue", text))?;
    let tenancy = app.engine.tenancy(tenant).await?;
    let status = if item.is_some() {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    let asked = once.ask(move |_, claimed: &Claimed| Ok(reply(claimed, status)));
    let told = router::claim(&app.engine, tenancy, (queue, item), recipient, asked).await?;
    once::respond(told, |claimed| refuse(&claimed, !hidden.is_empty()))
}

fn recipient_of(body: &[u8]) -> Result<RecipientId, Problem> {
    let fields = known(body, &CLAIM)?;
    let fault = |code, detail: &str| Problem::faulty(vec![Fault::new("/recipient_id", code, detail)]);
    match fields.get("recipient_id").filter(|value| !value.is_null()) {
        None => Err(fault("field.required", "say who claims")),
        Some(value) => {
            let id = value.as_str().and_then(|text| text.parse().ok());
            id.ok_or_else(|| fault("field.format", "must be the id of a recipient"))
        }
    }
}

fn reply(claimed: &Claimed, status: StatusCode) -> Option<Answer> {
    match claimed {
        Claimed::Got(got) => {
            let (assignment, work) = got.as_ref();
            let mut data = serde_json::to_value(AssignmentView::of(assignment)).unwrap_or_default();
            data["work"] = serde_json::to_value(work).unwrap_or_default();
            let place = format!("/api/assignments/{}", assignment.id);
            let location = (status == StatusCode::CREATED).then_some(place);
            Some(once::accepted(status, location, &json!({"data": data})))
        }
        Claimed::Nothing => Some(once::ok(&json!({"data": null}))),
        Claimed::NotFound
        | Claimed::No(_)
        | Claimed::NotEligible(_)
        | Claimed::NotMember
        | Claimed::Budget(_) => None,
    }
}

/// Parameters of reasons that tell what the work says: whoever may not see it does not learn it from a refusal.
const OF_WORK: [&str; 6] = ["want", "because", "error", "key", "meters", "headroom_ms"];

/// `hides`: the queue hides something of its work.
fn refuse(claimed: &Claimed, hides: bool) -> Problem {
    let not_eligible = |detail: &str, reason: Value| {
        live_routing::refused(StatusCode::UNPROCESSABLE_ENTITY, "claim.not_eligible", detail)
            .member("reason", reason)
    };
    match claimed {
        Claimed::NotFound => live_routing::refused(
            StatusCode::NOT_FOUND,
            "item.not_found",
            "there is no such offer in this queue",
        ),
        Claimed::No(NoClaim::Lost { by, at }) => {
            let detail = "somebody else has claimed it";
            live_routing::refused(StatusCode::CONFLICT, "claim.lost", detail)
                .member("claimed_by", by.to_string())
                .member("at", at.to_string())
        }
        Claimed::No(NoClaim::Closed) => {
            let detail = "the offer has ended";
            live_routing::refused(StatusCode::CONFLICT, "claim.closed", detail)
        }
        Claimed::No(NoClaim::NotOffered) => {
            not_eligible("it is offered to others", json!({"code": "excluded"}))
        }
        Claimed::No(NoClaim::Tried(decision)) => {
            let reason = json!({"code": "tried.before", "decision": decision});
            not_eligible("this recipient had the work before", reason)
        }
        Claimed::NotEligible(reason) => {
            let detail = format!("the recipient may not have this work now: {}", reason.code());
            let mut told = reason.to_json();
            if let (true, Value::Object(told)) = (hides, &mut told) {
                told.retain(|name, _| !OF_WORK.contains(&name.as_str()));
            }
            not_eligible(&detail, told)
        }
        Claimed::NotMember => {
            let detail = "the recipient is no member of the pool that offers it, or the pool does not route";
            not_eligible(detail, json!({"code": "excluded"}))
        }
        Claimed::Budget(of) => {
            let detail = format!("{} of {} claims are used", of.used, of.limit);
            live_routing::refused(StatusCode::TOO_MANY_REQUESTS, "claim.budget", detail)
                .member("used", of.used)
                .member("limit", of.limit)
                .member("resets_at", of.resets_at.map(|at| at.to_string()))
        }
        Claimed::Got(_) | Claimed::Nothing => unreachable!("what was claimed has an answer"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// 43, pure: what is hidden is not in the work of an item, wherever it stands.
    #[test]
    fn hidden_fields_are_taken_out() {
        let work: Work = serde_json::from_value(json!({
            "id": "019ad0f2-7c10-7d02-8a11-1f0c2b3d4e5f", "external_id": null, "kind": "lead", "source": null,
            "priority": 5, "attributes": {"phone": "1", "deep": {"mail": "2", "a/b": "3"}, "list": ["4"]},
            "tags": [], "units": 1, "location": null, "timezone": null, "deadline_at": null,
            "parent_decision_id": null, "consent": [], "created_at": "2026-11-29T15:44:17Z",
        }))
        .unwrap();
        let hidden = [
            "/attributes/phone",
            &format!("{WORK}/attributes/deep/mail"),
            "/attributes/deep/a~1b",
            "/attributes/list/0",
            "/tags/7",
            "/none/x",
        ];
        let shown = without(&work, &hidden.map(str::to_owned));
        assert_eq!(shown["attributes"], json!({"deep": {}, "list": [null]}));
        assert_eq!(shown["kind"], "lead");
    }
}
