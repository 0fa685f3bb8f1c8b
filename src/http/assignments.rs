//! `/api/assignments`: work that went to recipients, and what they do with it.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use super::{input, live_routing, routing};
use crate::domain::routing::assignment::{Assignment, AssignmentState};
use crate::domain::routing::fault::Fault;
use crate::engine::changes::routing::assignments::{Act, Acted};
use crate::engine::router;
use crate::store::keys::DigestKey;
use crate::store::routing_live::{self, Lookup};
use crate::store::tables::{ASSIGNMENT_INDEX, ASSIGNMENTS};
use crate::store::{Rows, StoreError};
use crate::words::ids::{AssignmentId, RecipientId, RecipientPoolId, TenantId};
use crate::words::limits;

const KIND: &str = "assignment";

/// Which ones are listed.
pub(super) const FILTERS: [Param; 3] = [
    Param::query("recipient_id", Kind::Id, "Of this recipient."),
    Param::query("pool_id", Kind::Id, "Through this pool."),
    Param::filter("state", Kind::OneOf(AssignmentState::WORDS), "In this state."),
];
/// What a completion says.
pub(super) const COMPLETE: [Param; 2] = [
    Param::query("result", Kind::Any, "What came of it; any JSON."),
    Param::query(
        "value",
        Kind::Any,
        "What it was worth, 0 to 1: strategies learn from it.",
    ),
];
/// What a return says.
pub(super) const RETURN: [Param; 2] = [
    Param::query("reason", Kind::Text, "Why, for people."),
    Param::query("reroute", Kind::Flag, "Somebody else is to have it (true)."),
];
/// What a rejection says.
pub(super) const REJECT: [Param; 1] = [Param::query("reason", Kind::Text, "Why, for people.")];

/// An assignment on the wire.
#[derive(Debug, Clone, Serialize, ToSchema)]
#[schema(as = Assignment)]
pub(super) struct AssignmentView {
    id: String,
    decision_id: String,
    work_id: String,
    pool_id: String,
    recipient_id: String,
    state: &'static str,
    units: u32,
    over_capacity: bool,
    created_at: String,
    accepted_at: Option<String>,
    /// When its recipient was first heard of.
    responded_at: Option<String>,
    deadline_at: Option<String>,
    ended_at: Option<String>,
    /// How it ended.
    end: Option<EndView>,
    /// The assignment that the work came back from.
    parent_assignment_id: Option<String>,
    /// What a completion has said.
    #[serde(skip_serializing_if = "Option::is_none")]
    result: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<f64>,
}

/// How an assignment ended.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct EndView {
    by: String,
    reason: String,
    /// `completed`, `rejected`, `given_back`, `warranty`, `deadline`, `neglected`, `released` or `escalated`.
    kind: &'static str,
}

impl AssignmentView {
    pub(super) fn of(one: &Assignment) -> AssignmentView {
        AssignmentView {
            id: one.id.to_string(),
            decision_id: one.decision.to_string(),
            work_id: one.work.to_string(),
            pool_id: one.recipient_pool.to_string(),
            recipient_id: one.recipient.to_string(),
            state: one.state.word(),
            units: one.units,
            over_capacity: one.over_capacity,
            created_at: one.created_at.to_string(),
            accepted_at: one.accepted_at.map(|at| at.to_string()),
            responded_at: one.responded_at.map(|at| at.to_string()),
            deadline_at: one.deadline_at.map(|at| at.to_string()),
            ended_at: one.end.as_ref().map(|end| end.at.to_string()),
            end: one.end.as_ref().map(|end| EndView {
                by: end.by.clone(),
                reason: end.reason.clone(),
                kind: end.kind.word(),
            }),
            parent_assignment_id: one.lineage.parent_assignment.map(|id| id.to_string()),
            result: one
                .result
                .as_deref()
                .and_then(|text| serde_json::from_str(text).ok()),
            value: one.value_micro.map(|value| f64::from(value) / 1_000_000.0),
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone)]
struct Asked {
    tenant: TenantId,
    recipient: Option<RecipientId>,
    recipient_pool: Option<RecipientPoolId>,
    states: Vec<String>,
    paging: Paging,
}

impl Asked {
    fn matches(&self, one: &Assignment) -> bool {
        self.recipient.is_none_or(|id| one.recipient == id)
            && self.recipient_pool.is_none_or(|id| one.recipient_pool == id)
            && (self.states.is_empty() || self.states.iter().any(|state| state == one.state.word()))
    }

    fn lookup(&self) -> Option<(Lookup, [u8; 16])> {
        let of_recipient = self.recipient.map(|id| (Lookup::Recipient, id.0));
        of_recipient.or(self.recipient_pool.map(|id| (Lookup::RecipientPool, id.0)))
    }
}

/// An id of the query.
pub(super) fn id_in<T: std::str::FromStr>(
    pairs: &[(String, String)],
    name: &str,
) -> Result<Option<T>, Problem> {
    let Some(text) = input::last(pairs, name) else {
        return Ok(None);
    };
    text.parse()
        .map(Some)
        .map_err(|_| Problem::unreadable(format!("`{name}` must be an id like those of answers")))
}

/// Assignments by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<AssignmentView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let states = paging::values(&pairs, "state");
    if let Some(unknown) = states
        .iter()
        .find(|state| !AssignmentState::WORDS.contains(&state.as_str()))
    {
        let words = AssignmentState::WORDS.join(", ");
        return Err(Problem::unreadable(format!(
            "`state` is `{unknown}`; it is one of {words}"
        )));
    }
    let (recipient, recipient_pool) = (id_in(&pairs, "recipient_id")?, id_in(&pairs, "pool_id")?);
    let marks = [
        ("tenant", caller.tenant.0.to_string()),
        (
            "recipient",
            recipient.map_or_else(String::new, |id: RecipientId| id.to_string()),
        ),
        (
            "pool",
            recipient_pool.map_or_else(String::new, |id: RecipientPoolId| id.to_string()),
        ),
        ("state", states.join(",")),
    ];
    let paging = Paging::of(&pairs, "assignments", &marks, false)?;
    let asked = Asked {
        tenant: caller.tenant,
        recipient,
        recipient_pool,
        states,
        paging: paging.clone(),
    };
    let (found, more) = app.engine.read(move |tx| find(tx, &asked)).await?;
    let last = more.map(|id| id.0);
    let views = found.iter().map(AssignmentView::of).collect();
    Ok(Json(paging.page(views, last.as_ref().map(<[u8; 16]>::as_slice))))
}

/// The assignments of a page, and the last one that was looked at if there are more behind it.
fn find(rows: &mut impl Rows, asked: &Asked) -> Result<(Vec<Assignment>, Option<AssignmentId>), StoreError> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut behind = place(&asked.paging);
    loop {
        let ids = page_of_ids(rows, asked, behind)?;
        let is_last = ids.len() < limits::PAGE_DEFAULT;
        for id in ids {
            if found.len() == asked.paging.size || looked_at == limits::PAGE_SCAN_MAX {
                return Ok((found, behind));
            }
            looked_at += 1;
            behind = Some(id);
            let one = routing_live::assignment(rows, asked.tenant, id)?;
            found.extend(one.filter(|one| asked.matches(one)));
        }
        if is_last {
            return Ok((found, None));
        }
    }
}

/// The place of a cursor.
fn place(paging: &Paging) -> Option<AssignmentId> {
    let bytes: [u8; 16] = paging.after.as_deref()?.try_into().ok()?;
    Some(AssignmentId(bytes))
}

fn page_of_ids(
    rows: &mut impl Rows,
    asked: &Asked,
    behind: Option<AssignmentId>,
) -> Result<Vec<AssignmentId>, StoreError> {
    let (tenant, limit) = (asked.tenant, limits::PAGE_DEFAULT);
    match asked.lookup() {
        Some((lookup, id)) => {
            let prefix = (tenant, lookup as u8, DigestKey(id));
            let place = behind.map(|behind| (prefix.0, prefix.1, prefix.2, behind));
            let found = if asked.paging.ascending {
                rows.scan(&ASSIGNMENT_INDEX, &prefix, place.as_ref(), limit)?
            } else {
                rows.scan_back(&ASSIGNMENT_INDEX, &prefix, place.as_ref(), limit)?
            };
            Ok(found.into_iter().map(|((_, _, _, id), _)| id).collect())
        }
        None => {
            let place = behind.map(|behind| (tenant, behind));
            let found = if asked.paging.ascending {
                rows.scan(&ASSIGNMENTS, &(tenant,), place.as_ref(), limit)?
            } else {
                rows.scan_back(&ASSIGNMENTS, &(tenant,), place.as_ref(), limit)?
            };
            Ok(found.into_iter().map(|((_, id), _)| id).collect())
        }
    }
}

/// One.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    let id: AssignmentId = live_routing::id_of(KIND, &text)?;
    let found = app
        .engine
        .read(move |tx| routing_live::assignment(tx, caller.tenant, id))
        .await?;
    let found = found.ok_or_else(|| live_routing::missing(KIND, &text))?;
    Ok(Json(Data {
        data: AssignmentView::of(&found),
    })
    .into_response())
}

/// Its recipient works on it.
pub(super) async fn accept(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    act(&app, &caller, &text, Act::Accept, once).await
}

/// Its recipient is alive.
pub(super) async fn renew(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    act(&app, &caller, &text, Act::Renew, once).await
}

/// It is done.
pub(super) async fn complete(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let fields = known(&body, &COMPLETE)?;
    let value_micro = match fields.get("value").filter(|value| !value.is_null()) {
        None => None,
        Some(value) => {
            let number = value.as_f64().filter(|number| (0.0..=1.0).contains(number));
            Some(micros_of(number.ok_or_else(|| {
                fault("/value", "field.range", "must be a number from 0 to 1")
            })?))
        }
    };
    let result = fields
        .get("result")
        .filter(|value| !value.is_null())
        .map(Value::to_string);
    if result
        .as_ref()
        .is_some_and(|text| text.len() > limits::ASSIGNMENT_RESULT_BYTES_MAX)
    {
        let detail = format!("has more than {} bytes", limits::ASSIGNMENT_RESULT_BYTES_MAX);
        return Err(fault("/result", "field.too_long", &detail));
    }
    act(&app, &caller, &text, Act::Complete { value_micro, result }, once).await
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a number from 0 to 1 is at most a million millionths"
)]
fn micros_of(number: f64) -> u32 {
    (number * 1_000_000.0).round() as u32
}

/// Its recipient gives it back.
pub(super) async fn give_back(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let fields = known(&body, &RETURN)?;
    let reroute = match fields.get("reroute").filter(|value| !value.is_null()) {
        None => true,
        Some(Value::Bool(reroute)) => *reroute,
        Some(_) => return Err(fault("/reroute", "field.type", "must be true or false")),
    };
    let reason = reason_of(&fields)?;
    act(&app, &caller, &text, Act::Return { reason, reroute }, once).await
}

/// Its recipient refuses it.
pub(super) async fn reject(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let fields = known(&body, &REJECT)?;
    let reason = reason_of(&fields)?;
    act(&app, &caller, &text, Act::Reject { reason }, once).await
}

fn fault(pointer: &str, code: &'static str, detail: &str) -> Problem {
    Problem::faulty(vec![Fault::new(pointer, code, detail)])
}

/// The fields of a body, each known.
pub(super) fn known(body: &[u8], params: &[Param]) -> Result<Map<String, Value>, Problem> {
    let fields = routing::fields(body)?;
    let names: Vec<&str> = params.iter().map(|param| param.name).collect();
    let unknown = |name: &&String| !names.contains(&name.as_str());
    let faults: Vec<Fault> = fields
        .keys()
        .filter(unknown)
        .take(limits::PROBLEM_FAULTS_MAX)
        .map(|name| {
            let shown: String = name.chars().take(64).collect();
            let detail = format!("unknown field; those are {}", names.join(", "));
            Fault::new(format!("/{}", input::escaped(&shown)), "field.unknown", detail)
        })
        .collect();
    if faults.is_empty() {
        Ok(fields)
    } else {
        Err(Problem::faulty(faults))
    }
}

fn reason_of(fields: &Map<String, Value>) -> Result<String, Problem> {
    match fields.get("reason").filter(|value| !value.is_null()) {
        None => Ok(String::new()),
        Some(Value::String(text)) if text.chars().count() <= limits::ROUTING_TEXT_CHARS_MAX => {
            Ok(text.clone())
        }
        Some(Value::String(_)) => {
            let detail = format!("has more than {} characters", limits::ROUTING_TEXT_CHARS_MAX);
            Err(fault("/reason", "field.too_long", &detail))
        }
        Some(_) => Err(fault("/reason", "field.type", "must be a text")),
    }
}

async fn act(app: &App, caller: &Caller, text: &str, act: Act, once: Once) -> Result<Response, Problem> {
    let id: AssignmentId = live_routing::id_of(KIND, text)?;
    let by = once.principal();
    let asked = once.ask(|_, outcome: &Acted| {
        Ok(match outcome {
            Acted::Done(done) => Some(once::ok(&Data {
                data: AssignmentView::of(done),
            })),
            Acted::NotFound | Acted::Refused(_) => None,
        })
    });
    let told = router::act(&app.engine, caller.tenant, id, (act, by), asked).await?;
    once::respond(told, |outcome| match outcome {
        Acted::NotFound => live_routing::missing(KIND, text),
        Acted::Refused(refusal) => {
            live_routing::refused(StatusCode::CONFLICT, refusal.code(), refusal.sentence())
        }
        Acted::Done(_) => unreachable!("what is done has an answer"),
    })
}
