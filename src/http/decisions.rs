//! `/api/decisions`: what was decided, and why.

use axum::Json;
use axum::extract::{Path, State};
use axum::http::Uri;
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::app::App;
use super::assignments::id_in;
use super::caller::Caller;
use super::error::Problem;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::{input, live_routing};
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::objects::Explain;
use crate::store::decisions::{self, Filter};
use crate::store::keys::DigestKey;
use crate::store::live_rows::DecisionRow;
use crate::store::tables::{DECISION_INDEX, DECISIONS};
use crate::store::{Rows, StoreError, routing_objects, shadows};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RunId, TenantId, WorkId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "decision";

/// Which ones are listed.
pub(super) const FILTERS: [Param; 7] = [
    Param::query("pool_id", Kind::Id, "That ended in this pool."),
    Param::query("recipient_id", Kind::Id, "That gave work to this recipient."),
    Param::query("work_id", Kind::Id, "Over this work."),
    Param::query("outcome", Kind::Text, "That ended like this."),
    Param::query(
        "reason",
        Kind::Text,
        "In which this code of a reason or note stands.",
    ),
    Param::query("from", Kind::Instant, "Made then or later: an instant."),
    Param::query("to", Kind::Instant, "Made before: an instant."),
];
/// How much of one is shown.
pub(super) const SHOWN: [Param; 1] = [Param::query(
    "explain",
    Kind::OneOf(Explain::WORDS),
    "`winners`, `first` (unless given) or `all`.",
)];

/// A decision in a list.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct DecisionSummary {
    id: String,
    work_id: String,
    at: String,
    outcome: String,
    pool_id: Option<String>,
    recipient_ids: Vec<String>,
    summary: String,
}

impl DecisionSummary {
    fn of(id: DecisionId, row: &DecisionRow) -> DecisionSummary {
        #[derive(serde::Deserialize)]
        struct Said {
            summary: String,
        }
        DecisionSummary {
            id: id.to_string(),
            work_id: row.work.to_string(),
            at: row.at.to_string(),
            outcome: row.outcome.clone(),
            pool_id: row.recipient_pool.map(|id| id.to_string()),
            recipient_ids: row.winners.iter().map(ToString::to_string).collect(),
            summary: row
                .text
                .read::<Said>()
                .map_or_else(|_| String::new(), |said| said.summary),
        }
    }
}

/// What is looked for.
#[derive(Debug, Clone)]
struct Asked {
    tenant: TenantId,
    filters: Vec<(u8, DigestKey)>,
    from: Option<Micros>,
    to: Option<Micros>,
    paging: Paging,
}

impl Asked {
    fn matches(&self, row: &DecisionRow) -> bool {
        let places = decisions::index_of(row);
        self.filters.iter().all(|filter| places.contains(filter))
            && self.from.is_none_or(|from| from <= row.at)
            && self.to.is_none_or(|to| row.at < to)
    }

    /// Nothing behind a decision of this time can match.
    fn is_past(&self, row: &DecisionRow) -> bool {
        // Ids are made some milliseconds before their decisions, so that neighbours may stand the other way about.
        const SLACK_US: u64 = 60_000_000;
        if self.paging.ascending {
            self.to.is_some_and(|to| to.plus(SLACK_US) < row.at)
        } else {
            self.from.is_some_and(|from| row.at.plus(SLACK_US) < from)
        }
    }
}

fn instant_in(pairs: &[(String, String)], name: &str) -> Result<Option<Micros>, Problem> {
    let Some(text) = input::last(pairs, name) else {
        return Ok(None);
    };
    let instant = Micros::parse(text);
    instant
        .map(Some)
        .ok_or_else(|| Problem::unreadable(format!("`{name}` must be an instant like 2026-11-29T15:44:17Z")))
}

fn asked(tenant: TenantId, uri: &Uri) -> Result<Asked, Problem> {
    let pairs = paging::query(uri, &FILTERS)?;
    let mut filters = Vec::new();
    let pool: Option<RecipientPoolId> = id_in(&pairs, "pool_id")?;
    let recipient: Option<RecipientId> = id_in(&pairs, "recipient_id")?;
    let work: Option<WorkId> = id_in(&pairs, "work_id")?;
    filters.extend(work.map(|id| (Filter::Work as u8, DigestKey(id.0))));
    filters.extend(recipient.map(|id| (Filter::Recipient as u8, DigestKey(id.0))));
    if let Some(code) = input::last(&pairs, "reason") {
        filters.push((Filter::Reason as u8, decisions::of_word(code)));
    }
    filters.extend(pool.map(|id| (Filter::RecipientPool as u8, DigestKey(id.0))));
    if let Some(word) = input::last(&pairs, "outcome") {
        if Outcome::of(word).is_none() {
            let words = Outcome::ALL.map(Outcome::word).join(", ");
            return Err(Problem::unreadable(format!("`outcome` is one of {words}")));
        }
        filters.push((Filter::Outcome as u8, decisions::of_word(word)));
    }
    let (from, to) = (instant_in(&pairs, "from")?, instant_in(&pairs, "to")?);
    let mut marks = vec![("tenant", tenant.0.to_string())];
    for name in [
        "pool_id",
        "recipient_id",
        "work_id",
        "outcome",
        "reason",
        "from",
        "to",
    ] {
        marks.push((name, input::last(&pairs, name).unwrap_or_default().to_owned()));
    }
    Ok(Asked {
        tenant,
        filters,
        from,
        to,
        paging: Paging::of(&pairs, "decisions", &marks, false)?,
    })
}

/// Decisions by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<DecisionSummary>>, Problem> {
    let asked = asked(caller.tenant, &uri)?;
    let paging = asked.paging.clone();
    let (found, more) = app.engine.read(move |tx| find(tx, &asked)).await?;
    let last = more.map(|id| id.0);
    let views = found
        .iter()
        .map(|(id, row)| DecisionSummary::of(*id, row))
        .collect();
    Ok(Json(paging.page(views, last.as_ref().map(<[u8; 16]>::as_slice))))
}

type Found = (Vec<(DecisionId, DecisionRow)>, Option<DecisionId>);

fn find(rows: &mut impl Rows, asked: &Asked) -> Result<Found, StoreError> {
    let mut found = Vec::new();
    let mut looked_at = 0;
    let mut behind = begin(asked);
    loop {
        let ids = page_of_ids(rows, asked, behind)?;
        let is_last = ids.len() < limits::PAGE_DEFAULT;
        for id in ids {
            if found.len() == asked.paging.size || looked_at == limits::PAGE_SCAN_MAX {
                return Ok((found, behind));
            }
            looked_at += 1;
            let Some(row) = decisions::decision(rows, asked.tenant, id)? else {
                continue;
            };
            if asked.is_past(&row) {
                return Ok((found, None));
            }
            behind = Some(id);
            if asked.matches(&row) {
                found.push((id, row));
            }
        }
        if is_last {
            return Ok((found, None));
        }
    }
}

/// Where the list begins: behind the cursor, else at the bound of time.
fn begin(asked: &Asked) -> Option<DecisionId> {
    if let Some(after) = asked.paging.after.as_deref() {
        return after.try_into().ok().map(DecisionId);
    }
    let at = |instant: Micros, slack_us: i64| {
        let millis = Micros(instant.0.saturating_add(slack_us)).millis();
        DecisionId(RunId::first_at(millis).0)
    };
    if asked.paging.ascending {
        asked.from.map(|from| at(from, -60_000_000))
    } else {
        asked.to.map(|to| at(to, 60_000_000))
    }
}

fn page_of_ids(
    rows: &mut impl Rows,
    asked: &Asked,
    behind: Option<DecisionId>,
) -> Result<Vec<DecisionId>, StoreError> {
    let (tenant, limit) = (asked.tenant, limits::PAGE_DEFAULT);
    match asked.filters.first() {
        Some((filter, key)) => {
            let prefix = (tenant, *filter, *key);
            let place = behind.map(|behind| (tenant, *filter, *key, behind));
            let found = if asked.paging.ascending {
                rows.scan(&DECISION_INDEX, &prefix, place.as_ref(), limit)?
            } else {
                rows.scan_back(&DECISION_INDEX, &prefix, place.as_ref(), limit)?
            };
            Ok(found.into_iter().map(|((_, _, _, id), _)| id).collect())
        }
        None => {
            let place = behind.map(|behind| (tenant, behind));
            let found = if asked.paging.ascending {
                rows.scan(&DECISIONS, &(tenant,), place.as_ref(), limit)?
            } else {
                rows.scan_back(&DECISIONS, &(tenant,), place.as_ref(), limit)?
            };
            Ok(found.into_iter().map(|((_, id), _)| id).collect())
        }
    }
}

/// One, with as much of its explanation as is asked for.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    let id: DecisionId = live_routing::id_of(KIND, &text)?;
    let pairs = input::query(&uri, &SHOWN)?;
    let explain = match input::last(&pairs, "explain") {
        None => Explain::First,
        Some(word) => Explain::of(word).ok_or_else(|| {
            let words = Explain::WORDS.join("`, `");
            Problem::unreadable(format!("`explain` is one of `{words}`"))
        })?,
    };
    let tenant = caller.tenant;
    let found = app
        .engine
        .read(move |tx| {
            let Some(row) = decisions::decision(tx, tenant, id)? else {
                return Ok(None);
            };
            let mut data = whole(tx, tenant, (id, &row), explain)?;
            data["shadow"] = said_of(tx, tenant, id)?;
            Ok(Some(data))
        })
        .await?;
    let mut data = found.ok_or_else(|| live_routing::missing(KIND, &text))?;
    if explain == Explain::Winners
        && let Some(Value::Array(candidates)) = data.pointer_mut("/explanation/candidates")
    {
        candidates.retain(|candidate| candidate["verdict"] == "won");
    }
    Ok(Json(json!({"data": data})).into_response())
}

/// What shadow campaigns said of a decision. That of a campaign that is gone is not told.
fn said_of(rows: &mut impl Rows, tenant: TenantId, id: DecisionId) -> Result<Value, StoreError> {
    let mut said = Vec::new();
    for (campaign, result) in shadows::results(rows, tenant, id)? {
        let Some(row) = shadows::campaign(rows, tenant, campaign)? else {
            continue;
        };
        let winner = match result.winner {
            Some(winner) => routing_objects::recipient(rows, tenant, winner)?,
            None => None,
        };
        said.push(json!({
            "campaign": row.object.name, "campaign_id": campaign,
            "winner": winner.map(|winner| winner.name), "winner_id": result.winner, "agrees": result.agrees,
        }));
    }
    Ok(Value::from(said))
}

/// A decision as it was kept; where its explanation was cut and all of it is asked for, the rest is worked out again.
fn whole(
    rows: &mut impl Rows,
    tenant: TenantId,
    (id, row): (DecisionId, &DecisionRow),
    explain: Explain,
) -> Result<Value, StoreError> {
    let mut data: Value = row.text.read().unwrap_or_default();
    let is_cut = data.pointer("/explanation/left_out").is_some();
    if explain != Explain::All || !is_cut {
        return Ok(data);
    }
    let Some(kept) = decisions::source(rows, tenant, (id, row))? else {
        return Ok(data);
    };
    let replayed = kept.recall().and_then(|recalled| recalled.replay());
    if let Ok(passed) = replayed {
        data["explanation"] = passed.decision.explanation.to_json(Explain::All, false);
    }
    Ok(data)
}
