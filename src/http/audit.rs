//! `/api/audit`: what was done, by whom, newest first. Each tenant sees its own.

use axum::Json;
use axum::extract::State;
use axum::http::Uri;
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::Problem;
use super::input;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use crate::domain::workflow::filter::time_before;
use crate::store::Rows;
use crate::store::access::AuditRow;
use crate::store::tables::AUDIT;
use crate::words::limits;
use crate::words::time::Millis;

/// The filters of the list.
pub(super) const FILTERS: [Param; 5] = [
    Param::filter(
        "who",
        Kind::Text,
        "Only what this principal did, like `key:ci` or `local`.",
    ),
    Param::filter("what", Kind::Text, "Only this operation, like `pauseJob`."),
    Param::query(
        "thing",
        Kind::Text,
        "Only things whose path begins like this, like `/jobs/backup`.",
    ),
    Param::query(
        "since",
        Kind::Moment,
        "Only what was done from then on: an instant, or a length like `24h`.",
    ),
    Param::query("until", Kind::Moment, "Only what was done before."),
];

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = AuditEntry)]
pub(super) struct AuditView {
    /// Rises with time.
    number: u64,
    at: String,
    /// The principal: `local`, `key:NAME`, or the user that a token names.
    who: String,
    /// The id of its key.
    key: Option<String>,
    /// The operation, as this document calls it.
    what: String,
    /// The path of the thing.
    thing: String,
    /// Its version before, where it has one.
    before: Option<String>,
    /// And after.
    after: Option<String>,
    request_id: String,
}

impl AuditView {
    fn of(number: u64, row: AuditRow) -> AuditView {
        AuditView {
            number,
            at: row.at.to_string(),
            who: row.who,
            key: row.key.map(crate::words::ids::KeyId::digits),
            what: row.what,
            thing: row.thing,
            before: row.before,
            after: row.after,
            request_id: row.request,
        }
    }
}

/// What is looked for.
struct Filter {
    who: Vec<String>,
    what: Vec<String>,
    thing: Option<String>,
    since: Option<Millis>,
    until: Option<Millis>,
}

impl Filter {
    fn matches(&self, row: &AuditRow) -> bool {
        (self.who.is_empty() || self.who.contains(&row.who))
            && (self.what.is_empty() || self.what.contains(&row.what))
            && self
                .thing
                .as_ref()
                .is_none_or(|thing| row.thing.starts_with(thing))
            && self.since.is_none_or(|since| row.at >= since)
            && self.until.is_none_or(|until| row.at < until)
    }
}

/// An instant, or a length of time before now.
fn moment(pairs: &[(String, String)], name: &str, now: Millis) -> Result<Option<Millis>, Problem> {
    let Some(text) = input::last(pairs, name) else {
        return Ok(None);
    };
    time_before(text, now)
        .map(Some)
        .map_err(|why| Problem::unreadable(format!("`{name}`: {why}")))
}

/// Rows by pages.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<AuditView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let now = app.engine.now().wall;
    let text = |name: &str| input::last(&pairs, name).map(str::to_owned);
    let filter = Filter {
        who: paging::values(&pairs, "who"),
        what: paging::values(&pairs, "what"),
        thing: text("thing"),
        since: moment(&pairs, "since", now)?,
        until: moment(&pairs, "until", now)?,
    };
    let marks = [
        ("who", filter.who.join(",")),
        ("what", filter.what.join(",")),
        ("thing", text("thing").unwrap_or_default()),
        ("since", text("since").unwrap_or_default()),
        ("until", text("until").unwrap_or_default()),
    ];
    let tenant = caller.tenant;
    let paging = Paging::of_tenant(&pairs, "audit", &marks, false, tenant)?;
    let page = app.engine.read(move |tx| {
        let mut after = paging.after.clone();
        let (mut data, mut looked_at) = (Vec::new(), 0);
        loop {
            let left = paging.size + 1 - data.len();
            let found = if paging.ascending {
                tx.scan_each(&AUDIT, &(tenant,), after.as_deref(), left)?
            } else {
                tx.scan_each_back(&AUDIT, &(tenant,), after.as_deref(), left)?
            };
            let is_end = found.len() < left;
            for each in found {
                let ((_, number), row) = each.row?;
                looked_at += 1;
                if filter.matches(&row) {
                    if data.len() == paging.size {
                        return Ok(paging.page(data, after.as_deref()));
                    }
                    data.push(AuditView::of(number, row));
                }
                after = Some(each.key);
            }
            if is_end {
                return Ok(paging.page(data, None));
            }
            if looked_at >= limits::PAGE_SCAN_MAX {
                return Ok(paging.page(data, after.as_deref()));
            }
        }
    });
    Ok(Json(page.await?))
}
