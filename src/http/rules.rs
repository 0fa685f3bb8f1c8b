//! `/api/rules`: what leads work to a pool, and what filters, boosts and redirects inside of one.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::{Map, Value};

use super::app::App;
use super::caller::Caller;
use super::declared::{self, Declared, Wanted};
use super::error::Problem;
use super::input;
use super::once::Once;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::routing::{self, EXPECTED, VIEW};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::print::View;
use crate::engine::changes::declared::Wisher;
use crate::engine::changes::rules::{self as changes, shown};
use crate::engine::never_true;
use crate::store::tables::{RULE_ERRORS, RULES};
use crate::store::{Rows, StoreError, Tx};
use crate::words::ids::{RuleId, TenantId};
use crate::words::limits;

const KIND: &str = "rule";

/// Which ones are listed.
pub(super) const FILTERS: [Param; 3] = [
    Param::filter(
        "pool_id",
        Kind::Text,
        "Attached to this pool; empty for the rules of the tenant.",
    ),
    Param::query("enabled", Kind::Flag, "Whether they take part."),
    VIEW,
];
/// How one is deleted.
pub(super) const DELETION: [Param; 1] = [EXPECTED];

/// Rules.
pub(super) struct AllRules;

impl Declared for AllRules {
    type Id = RuleId;
    const KIND: &'static str = KIND;

    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &RuleId) -> Result<Option<u64>, StoreError> {
        let row = tx.get(&RULES, &(tenant, *id))?;
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
        RuleId::fresh(),
    );
    let never = never_true(&app, caller.tenant, None, &sent).await?;
    let change = move |tx: &mut Tx<'_>| {
        let outcome = changes::create(tx, &by, id, sent.clone())?;
        Ok(outcome.warned(never.as_ref()))
    };
    routing::create(&app, once, "create rule", "/api/rules", change).await
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
    let (tenant, id) = (caller.tenant, routing::id_of::<RuleId>(KIND, &text)?);
    let found = app.engine.read(move |tx| {
        let errors = tx.get(&RULE_ERRORS, &(tenant, id))?;
        Ok((tx.get(&RULES, &(tenant, id))?, errors))
    });
    let (row, errors) = found.await?;
    let row = row.ok_or_else(|| routing::missing(KIND, &text))?;
    let warnings: Vec<Fault> = errors.iter().map(changes::error_warning).collect();
    let shown = shown(id, &row, errors.as_ref(), view);
    Ok(routing::show_warned(&headers, &shown, &warnings))
}

/// The rule was true for nothing that was routed lately: looked for before it is written, because the writer has no time.
async fn never_true(
    app: &App,
    tenant: TenantId,
    id: Option<RuleId>,
    sent: &Map<String, Value>,
) -> Result<Option<Fault>, Problem> {
    let sent = sent.clone();
    let draft = app
        .engine
        .read(move |tx| changes::draft(tx, tenant, id, sent.clone()))
        .await?;
    Ok(match draft {
        Some(rule) => never_true::warning(&app.engine, tenant, rule).await?,
        None => None,
    })
}

/// Rules by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let of = paging::values(&pairs, "pool_id");
    let enabled = input::flag(&pairs, "enabled")?;
    let mark = [
        ("tenant", caller.tenant.0.to_string()),
        ("pool_id", format!("{of:?}")),
        ("enabled", format!("{enabled:?}")),
    ];
    let paging = Paging::of(&pairs, "rules", &mark, false)?;
    let tenant = caller.tenant;
    let page = app
        .engine
        .read(move |tx| page(tx, tenant, &paging, (&of, enabled), view));
    Ok(Json(page.await?))
}

fn page(
    rows: &mut impl Rows,
    tenant: TenantId,
    paging: &Paging,
    (of, enabled): (&[String], Option<bool>),
    view: View,
) -> Result<Page<Value>, StoreError> {
    let among = (tenant, paging, limits::RULES_MAX);
    declared::page(rows, &RULES, among, (RuleId, |id| id.0), |rows, id, row| {
        let attached = row.attached_to.map_or_else(String::new, |id| id.to_string());
        let is_enabled = row.object.fields().get("enabled") != Some(&Value::Bool(false));
        let is_wanted =
            (of.is_empty() || of.contains(&attached)) && enabled.is_none_or(|wanted| wanted == is_enabled);
        if !is_wanted {
            return Ok(None);
        }
        let errors = rows.get(&RULE_ERRORS, &(tenant, id))?;
        Ok(Some(shown(id, row, errors.as_ref(), view)))
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
    let one = Wanted::<AllRules>::of(&app, &caller, &text)?;
    let id = routing::id_of::<RuleId>(KIND, &text)?;
    let (_, sent) = routing::guarded_fields(once.clone(), &body)?;
    let never = never_true(&app, caller.tenant, Some(id), &sent).await?;
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id: RuleId, sent: Map<String, Value>| {
        Ok(changes::patch(tx, by, id, sent)?.warned(never.as_ref()))
    };
    one.patch(&app, once, &body, ("change rule", work)).await
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
        Wanted::<AllRules>::of(&app, &caller, &text)?,
        input::query(&uri, &DELETION)?,
    );
    one.delete(&app, once, (&pairs, &body), ("delete rule", changes::delete))
        .await
}
