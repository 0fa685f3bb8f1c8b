//! `POST /api/route`: who gets a unit of work, and why.

use axum::Json;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::once::{self, Harmless, Once};
use super::param::{Kind, Param};
use super::{live_routing, routing};
use crate::domain::routing::ask;
use crate::domain::routing::objects::Explain;
use crate::domain::routing::pass::Refusal;
use crate::domain::routing::reason::Reason;
use crate::engine::changes::remember::{Answer, Told};
use crate::engine::changes::routing::route::{No, Routed, Wish};
use crate::engine::changes::routing::write;
use crate::engine::router::{self, RouterError};
use crate::words::ids::{DecisionId, WorkId};
use crate::words::time::Micros;

/// The fields of the body.
pub(super) const FIELDS: [Param; 9] = [
    Param::query(
        "work",
        Kind::Any,
        "What is routed: `kind`, and what rules ask for.",
    )
    .needed(),
    Param::query("pool_id", Kind::Text, "Skips the rules of the tenant."),
    Param::query("strategy", Kind::Text, "In place of the pool's."),
    Param::query(
        "strategy_options",
        Kind::Any,
        "Over those of the pool, by strategy.",
    ),
    Param::query("exclude_recipient_ids", Kind::Any, "Those who may not have it."),
    Param::query(
        "recipient_id",
        Kind::Text,
        "Manual assignment: this one, if the checks allow it.",
    ),
    Param::query(
        "force",
        Kind::Flag,
        "Manual assignment beyond capacity; needs `recipient:write`.",
    ),
    Param::query("dry_run", Kind::Flag, "Decides and writes nothing."),
    Param::query("explain", Kind::OneOf(Explain::WORDS), "How much is explained."),
];

impl From<RouterError> for Problem {
    fn from(error: RouterError) -> Problem {
        match error {
            RouterError::Read(error) => error.into(),
            RouterError::Change(error) => error.into(),
        }
    }
}

/// Routes work.
pub(super) async fn route(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let fields = routing::fields(&body)?;
    let now = Micros::from(app.engine.now().wall);
    let request = ask::read(&fields, now, WorkId::fresh()).map_err(Problem::faulty)?;
    if request.force {
        caller.needs("recipient:write")?;
    }
    let tenancy = app.engine.tenancy(caller.tenant).await?;
    let explain = request.explain;
    if request.dry_run {
        let wish = Wish::fresh(request, DecisionId::fresh());
        let lineage = wish.lineage.clone();
        let judged = router::judge(&app.engine, tenancy.into(), wish).await?;
        let passed = judged.outcome.map_err(refuse)?;
        let asked = explain.unwrap_or(write::explain_of(&passed));
        let data = write::document(&passed.decision, asked, &lineage, None);
        let mut response = Json(json!({"data": data})).into_response();
        response.extensions_mut().insert(Harmless);
        return Ok(response);
    }
    let asked = once
        .ask(move |_, routed: &Routed| Ok(reply(routed, explain)))
        .answered_after(|routed| !matches!(routed, Routed::Not(_)));
    let told = match router::route(&app.engine, tenancy, request, asked).await? {
        Told::Now(routed, None) => {
            let answer = reply(&routed, explain);
            Told::Now(routed, answer)
        }
        told @ (Told::Now(..) | Told::Before(_) | Told::KeyReused | Told::Moved(_)) => told,
    };
    once::respond(told, |routed| match routed {
        Routed::Not(no) => refuse(no),
        Routed::Decided(_) | Routed::Existing(..) => unreachable!("a decision has an answer"),
    })
}

fn reply(routed: &Routed, explain: Option<Explain>) -> Option<Answer> {
    #[derive(serde::Serialize)]
    struct Body<T> {
        data: T,
    }
    match routed {
        Routed::Decided(written) => Some(once::ok(&Body {
            data: written.document(explain),
        })),
        Routed::Existing(_, text) => Some(once::ok(&Body {
            data: text.read::<Value>().ok()?,
        })),
        Routed::Not(_) => None,
    }
}

fn refuse(no: No) -> Problem {
    let refusal = match no {
        No::Invalid(faults) => return Problem::faulty(faults),
        No::Refused(refusal) => refusal,
    };
    let said = |code, detail: String, reason: Option<&Reason>| {
        let problem = live_routing::refused(StatusCode::CONFLICT, code, detail);
        match reason {
            Some(reason) => problem.member("reason", reason.to_json()),
            None => problem,
        }
    };
    match &refusal {
        Refusal::AtCapacity(reason) => {
            let detail = "the recipient has no room; `force: true` goes beyond its capacity";
            said("recipient.at_capacity", detail.to_owned(), Some(reason))
        }
        Refusal::NotEligible(reason) => {
            let detail = format!("the recipient may not have this work now: {}", reason.code());
            said("recipient.not_eligible", detail, Some(reason))
        }
        Refusal::NotMember => {
            let detail =
                "the recipient is no member of the pool that the work goes to; name another `pool_id`";
            said("recipient.not_member", detail.to_owned(), None)
        }
    }
}
