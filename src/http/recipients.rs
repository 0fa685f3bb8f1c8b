//! `/api/recipients`, and the members of a recipient pool.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use serde_json::Value;

use super::app::App;
use super::caller::Caller;
use super::declared::{Declared, Wanted, place_of};
use super::error::Problem;
use super::input;
use super::once::Once;
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::recipient_pools::words;
use super::routing::{self, EXPECTED, VIEW};
use crate::domain::routing::hours::is_open;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::{Recipient, RecipientState, Status};
use crate::domain::routing::print::View;
use crate::engine::changes::declared::Wisher;
use crate::engine::changes::recipients::{self as changes, shown};
use crate::store::routing_live::live;
use crate::store::tables::{MEMBERS, RECIPIENT_POOLS, RECIPIENTS};
use crate::store::{Rows, StoreError, Tx};
use crate::words::ids::{RecipientId, RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "recipient";

/// Which members are listed.
pub(super) const FILTERS: [Param; 5] = [
    Param::filter("status", Kind::OneOf(Status::WORDS), "Of this status."),
    Param::filter("state", Kind::OneOf(RecipientState::WORDS), "In this state."),
    Param::filter("tag", Kind::Text, "With this tag."),
    Param::query(
        "eligible",
        Kind::Flag,
        "`true`: active, available, with room, and open by its schedule now; `false`: all others.",
    ),
    VIEW,
];
/// How one is deleted.
pub(super) const DELETION: [Param; 2] = [
    Param::query(
        "release",
        Kind::Flag,
        "`true`: its open assignments expire and are routed again.",
    ),
    EXPECTED,
];
/// How a membership is dropped.
pub(super) const DROPPING: [Param; 1] = [EXPECTED];

/// Recipients.
pub(super) struct Recipients;

impl Declared for Recipients {
    type Id = RecipientId;
    const KIND: &'static str = KIND;

    fn version(tx: &mut Tx<'_>, tenant: TenantId, id: &RecipientId) -> Result<Option<u64>, StoreError> {
        let row = tx.get(&RECIPIENTS, &(tenant, *id))?;
        Ok(row.map(|row| row.object.record_version))
    }
}

/// Creates one as a member of a recipient pool.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let member_of = routing::id_of::<RecipientPoolId>("pool", &text)?;
    let (sent, by, id) = (
        routing::fields(&body)?,
        routing::wisher(&app, &caller),
        RecipientId::fresh(),
    );
    let change = move |tx: &mut Tx<'_>| changes::create(tx, &by, member_of, id, sent.clone());
    routing::create(&app, once, "create recipient", "/api/recipients", change).await
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
    let (tenant, id) = (caller.tenant, routing::id_of::<RecipientId>(KIND, &text)?);
    let found = app.engine.read(move |tx| {
        let row = tx.get(&RECIPIENTS, &(tenant, id))?;
        row.map(|row| shown(tx, tenant, id, &row, view)).transpose()
    });
    let found = found.await?.ok_or_else(|| routing::missing(KIND, &text))?;
    Ok(routing::show(&headers, found))
}

/// Which members are asked for.
struct Filter {
    statuses: Vec<String>,
    states: Vec<String>,
    tags: Vec<String>,
    eligible: Option<bool>,
    now: Micros,
}

impl Filter {
    fn passes(&self, recipient: &Recipient, live: &Live) -> bool {
        let one_of =
            |wanted: &[String], word: &str| wanted.is_empty() || wanted.iter().any(|wanted| wanted == word);
        let is_tagged = self.tags.is_empty() || recipient.tags.iter().any(|tag| self.tags.contains(tag));
        is_tagged
            && one_of(&self.statuses, recipient.status.word())
            && one_of(&self.states, live.state.word())
            && self
                .eligible
                .is_none_or(|wanted| wanted == is_eligible(recipient, live, self.now))
    }
}

/// What the gate asks of a recipient alone, without any work.
fn is_eligible(recipient: &Recipient, live: &Live, now: Micros) -> bool {
    let is_over = live.daily_reset_at.is_some_and(|at| at <= now);
    let daily_count = if is_over { 0 } else { live.daily_count };
    recipient.status == Status::Active
        && live.state == RecipientState::Available
        && live.cooldown_until.is_none_or(|until| until <= now)
        && live.current < recipient.max_concurrent
        && (recipient.daily_limit == 0 || daily_count < recipient.daily_limit)
        && is_open(recipient.schedule.as_ref(), &recipient.timezone, now)
}

/// Members of a recipient pool by pages, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    uri: Uri,
) -> Result<Json<Page<Value>>, Problem> {
    let (tenant, id) = (caller.tenant, routing::id_of::<RecipientPoolId>("pool", &text)?);
    let pairs = paging::query(&uri, &FILTERS)?;
    let view = routing::view_of(&pairs)?;
    let eligible = input::flag(&pairs, "eligible")?;
    let filter = Filter {
        statuses: words(&pairs, "status", Status::WORDS)?,
        states: words(&pairs, "state", RecipientState::WORDS)?,
        tags: paging::values(&pairs, "tag"),
        eligible,
        now: Micros::from(app.engine.now().wall),
    };
    let mark = [
        ("tenant", caller.tenant.0.to_string()),
        ("pool", text.clone()),
        ("status", filter.statuses.join("\0")),
        ("state", filter.states.join("\0")),
        ("tag", filter.tags.join("\0")),
        ("eligible", format!("{eligible:?}")),
    ];
    let paging = Paging::of(&pairs, "recipients", &mark, false)?;
    let page = app.engine.read(move |tx| {
        if !tx.has(&RECIPIENT_POOLS, &(tenant, id))? {
            return Ok(None);
        }
        page(tx, (tenant, id), &paging, &filter, view).map(Some)
    });
    let page = page.await?.ok_or_else(|| routing::missing("pool", &text))?;
    Ok(Json(page))
}

fn page(
    rows: &mut impl Rows,
    of: (TenantId, RecipientPoolId),
    paging: &Paging,
    filter: &Filter,
    view: View,
) -> Result<Page<Value>, StoreError> {
    let tenant = of.0;
    let mut place = place_of(paging).map(|id| (of.0, of.1, RecipientId(id)));
    let (mut found, mut last, mut more, mut looked) = (Vec::new(), None, false, 0);
    'walk: while looked < limits::ROUTING_SCAN_MAX {
        let scan = if paging.ascending {
            Rows::scan
        } else {
            Rows::scan_back
        };
        let batch = scan(rows, &MEMBERS, &of, place.as_ref(), limits::PAGE_MAX)?;
        if batch.is_empty() {
            break;
        }
        for (key, _) in batch {
            if found.len() == paging.size {
                more = true;
                break 'walk;
            }
            looked += 1;
            place = Some(key);
            let Some(row) = rows.get(&RECIPIENTS, &(tenant, key.2))? else {
                continue;
            };
            let live = live(rows, tenant, key.2)?;
            let live = live.unwrap_or_else(|| Live::new(RecipientState::Available, row.object.created_at));
            if filter.passes(&row.typed(tenant, key.2)?, &live) {
                found.push(shown(rows, tenant, key.2, &row, view)?);
            }
            last = Some(key.2.0);
        }
        // So much was looked through that the page ends early; there may be more.
        more = looked >= limits::ROUTING_SCAN_MAX;
    }
    let last = last.filter(|_| more);
    Ok(paging.page(found, last.as_ref().map(<[u8; 16]>::as_slice)))
}

/// Changes what is sent of one.
pub(super) async fn patch(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let one = Wanted::<Recipients>::of(&app, &caller, &text)?;
    one.patch(&app, once, &body, ("change recipient", changes::patch))
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
        Wanted::<Recipients>::of(&app, &caller, &text)?,
        input::query(&uri, &DELETION)?,
    );
    let release = input::flag(&pairs, "release")?.unwrap_or(false);
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::delete(tx, by, id, release);
    one.delete(&app, once, (&pairs, &body), ("delete recipient", work))
        .await
}

/// Takes one out of rotation.
pub(super) async fn pause(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    set_state(&app, &caller, &text, once, &body, RecipientState::Paused).await
}

/// Puts one back.
pub(super) async fn resume(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    set_state(&app, &caller, &text, once, &body, RecipientState::Available).await
}

async fn set_state(
    app: &App,
    caller: &Caller,
    text: &str,
    once: Once,
    body: &[u8],
    state: RecipientState,
) -> Result<Response, Problem> {
    let one = Wanted::<Recipients>::of(app, caller, text)?;
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::set_state(tx, by, id, state);
    one.change(app, once.expecting(body)?, "recipient state", work)
        .await
}

/// Makes one a member of one more recipient pool.
pub(super) async fn join(
    State(app): State<App>,
    caller: Caller,
    Path((member_of, text)): Path<(String, String)>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let member_of = routing::id_of::<RecipientPoolId>("pool", &member_of)?;
    let one = Wanted::<Recipients>::of(&app, &caller, &text)?;
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::join(tx, by, id, member_of);
    one.change(&app, once.expecting(&body)?, "add member", work).await
}

/// Drops a membership.
pub(super) async fn leave(
    State(app): State<App>,
    caller: Caller,
    Path((member_of, text)): Path<(String, String)>,
    once: Once,
    uri: Uri,
    body: Bytes,
) -> Result<Response, Problem> {
    let member_of = routing::id_of::<RecipientPoolId>("pool", &member_of)?;
    let one = Wanted::<Recipients>::of(&app, &caller, &text)?;
    let pairs = input::query(&uri, &DROPPING)?;
    let work = move |tx: &mut Tx<'_>, by: &Wisher, id| changes::drop_membership(tx, by, id, member_of);
    one.delete(&app, once, (&pairs, &body), ("drop member", work))
        .await
}
