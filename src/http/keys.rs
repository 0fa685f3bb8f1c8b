//! `/api/keys`: the API keys of a tenant. A key is shown once, when it is made; then nobody can read it any more.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{StatusCode, Uri};
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::error::{FieldFault, Problem};
use super::input;
use super::once::{self, Once};
use super::paging::{self, Page, Paging};
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::access::scopes::{ADMIN, Scopes};
use crate::domain::access::{naming, token};
use crate::engine::access::Ring;
use crate::engine::changes::keys::{self, Created, Ended};
use crate::store::Rows;
use crate::store::access::ApiKey;
use crate::store::tables::API_KEYS;
use crate::words::ids::{KeyId, TenantId, secret_bytes};
use crate::words::limits;
use crate::words::time::{Millis, parse_instant};

/// The filter of the list.
pub(super) const FILTERS: [Param; 1] = [TENANT];
const TENANT: Param = Param::query(
    "tenant",
    Kind::Text,
    "Whose keys; other tenants than one's own are for `admin` of the tenant `default`.",
);

/// The fields of a new key.
pub(super) const FIELDS: [Param; 4] = [
    Param::query("name", Kind::Text, "For people, 1 to 100 characters; no other valid key of the tenant has it.").needed(),
    Param::query(
        "scopes",
        Kind::Any,
        "What it may do: a list of `<noun>:<read|write|delete>`, `*:read` or `admin`; nothing that the caller may not.",
    )
    .needed(),
    Param::query("expires_at", Kind::Instant, "When it ends by itself; never unless it is given."),
    TENANT,
];

/// A key, without its secret.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(super) struct KeyView {
    /// Public; the second part of the key.
    id: String,
    name: String,
    tenant: String,
    scopes: Vec<String>,
    /// `valid`, `expired` or `revoked`.
    state: &'static str,
    created_at: String,
    created_by: String,
    expires_at: Option<String>,
    /// To the minute.
    last_used_at: Option<String>,
    revoked_at: Option<String>,
    revoked_by: Option<String>,
}

/// A key that was just made.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct NewKey {
    #[serde(flatten)]
    view: KeyView,
    /// The whole key. It is shown here and nowhere else.
    key: String,
}

impl KeyView {
    fn of(id: KeyId, key: &ApiKey, tenant: &str, used: Option<Millis>, now: Millis) -> KeyView {
        KeyView {
            id: id.digits(),
            name: key.name.clone(),
            tenant: tenant.to_owned(),
            scopes: key.scopes.iter().map(str::to_owned).collect(),
            state: match (&key.revoked, key.is_valid(now)) {
                (Some(_), _) => "revoked",
                (None, false) => "expired",
                (None, true) => "valid",
            },
            created_at: key.created_at.to_string(),
            created_by: key.by.clone(),
            expires_at: key.expires_at.map(|at| at.to_string()),
            last_used_at: used.map(|at| at.to_string()),
            revoked_at: key.revoked.as_ref().map(|revoked| revoked.at.to_string()),
            revoked_by: key.revoked.as_ref().map(|revoked| revoked.by.clone()),
        }
    }
}

/// The tenant that is asked for: one's own, unless one looks after all of them.
fn tenant_of(ring: &Ring, caller: &Caller, named: Option<&str>) -> Result<(TenantId, Arc<str>), Problem> {
    let Some(named) = named.filter(|named| **named != *caller.tenant_name) else {
        return Ok((caller.tenant, Arc::clone(&caller.tenant_name)));
    };
    caller.oversees()?;
    let found = ring
        .tenant(named)
        .and_then(|id| Some((id, ring.tenant_name(id)?)));
    found.ok_or_else(|| {
        let shown: String = named.chars().take(64).collect();
        Problem::not_found(format!("tenant '{shown}' not found"))
    })
}

/// Keys, newest first.
pub(super) async fn list(
    State(app): State<App>,
    caller: Caller,
    uri: Uri,
) -> Result<Json<Page<KeyView>>, Problem> {
    let pairs = paging::query(&uri, &FILTERS)?;
    let ring = app.keyring.current(&app.engine).await?;
    let (tenant, name) = tenant_of(&ring, &caller, input::last(&pairs, "tenant"))?;
    let paging = Paging::of_tenant(&pairs, "keys", &[], false, tenant)?;
    let now = app.engine.now().wall;
    let page = app.engine.read(move |tx| {
        let after = paging.after.as_deref();
        let mut found = if paging.ascending {
            tx.scan_each(&API_KEYS, &(tenant,), after, paging.size + 1)?
        } else {
            tx.scan_each_back(&API_KEYS, &(tenant,), after, paging.size + 1)?
        };
        let more = found.len() > paging.size;
        found.truncate(paging.size);
        let last = found.last().filter(|_| more).map(|each| each.key.clone());
        let uses = keys::uses(tx, tenant)?;
        let mut data = Vec::with_capacity(found.len());
        for each in found {
            let ((_, id), key) = each.row?;
            let newest = uses.iter().find(|(of, _)| *of == id).map(|(_, at)| *at);
            data.push(KeyView::of(id, &key, &name, newest, now));
        }
        Ok(paging.page(data, last.as_deref()))
    });
    Ok(Json(page.await?))
}

/// What is wished for.
struct Wish {
    name: String,
    scopes: Scopes,
    expires_at: Option<Millis>,
    tenant: Option<String>,
}

impl Wish {
    fn read(body: &[u8], now: Millis) -> Result<Wish, Problem> {
        let (fields, mut faults) = input::object(body, &FIELDS)?;
        let name = name_of(&fields, &mut faults);
        let scopes = scopes_of(&fields, &mut faults);
        let expires_at = end_of(&fields, now, &mut faults);
        let tenant = match fields.get("tenant") {
            None | Some(Value::Null) => None,
            Some(Value::String(tenant)) => Some(tenant.clone()),
            Some(_) => {
                faults.push(input::fault("tenant", "type", "must be the name of a tenant"));
                None
            }
        };
        if !faults.is_empty() {
            return Err(Problem::invalid(faults));
        }
        Ok(Wish {
            name,
            scopes,
            expires_at,
            tenant,
        })
    }
}

fn name_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> String {
    match fields.get("name") {
        Some(Value::String(name)) if naming::is_key(name) => name.clone(),
        None | Some(Value::Null) => {
            faults.push(input::fault(
                "name",
                "required",
                "give it a name, so that people know what it is for",
            ));
            String::new()
        }
        Some(_) => {
            let max = limits::KEY_NAME_CHARS_MAX;
            let rule = format!(
                "must be a text of 1 to {max} characters, without control characters and spaces at its ends"
            );
            faults.push(input::fault("name", "invalid", &rule));
            String::new()
        }
    }
}

fn scopes_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> Scopes {
    let texts: Option<Vec<&str>> = match fields.get("scopes") {
        Some(Value::Array(items)) if !items.is_empty() => items.iter().map(Value::as_str).collect(),
        Some(_) | None => None,
    };
    let Some(texts) = texts else {
        let rule = "must be a list of scopes, like [\"job:write\", \"*:read\"] or [\"admin\"]";
        faults.push(input::fault("scopes", "required", rule));
        return Scopes::default();
    };
    match Scopes::of(texts) {
        Ok(scopes) => scopes,
        Err(unknown) => {
            for scope in unknown {
                let shown: String = scope.chars().take(64).collect();
                let rule = format!("`{shown}` is no scope: <noun>:<read|write|delete>, `*:read` or `admin`");
                faults.push(input::fault("scopes", "unknown", &rule));
            }
            Scopes::default()
        }
    }
}

fn end_of(fields: &Map<String, Value>, now: Millis, faults: &mut Vec<FieldFault>) -> Option<Millis> {
    let value = fields.get("expires_at").filter(|value| !value.is_null())?;
    let end = value.as_str().and_then(parse_instant);
    match end {
        Some(end) if end > now => Some(end),
        Some(_) => {
            faults.push(input::fault(
                "expires_at",
                "out_of_range",
                "must lie in the future",
            ));
            None
        }
        None => {
            faults.push(input::fault(
                "expires_at",
                "type",
                "must be an instant like 2026-01-31T12:00:00Z",
            ));
            None
        }
    }
}

/// Makes one. Its answer is kept nowhere, because the key stands in it: the same request again finds the name taken.
pub(super) async fn create(
    State(app): State<App>,
    caller: Caller,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    let now = app.engine.now().wall;
    let wish = Wish::read(&body, now)?;
    let ring = app.keyring.current(&app.engine).await?;
    let (tenant, tenant_name) = tenant_of(&ring, &caller, wish.tenant.as_deref())?;
    if let Some(scope) = caller.scopes.lacks(&wish.scopes) {
        caller.needs(scope)?;
    }
    app.hash_key.load_or_make().map_err(|error| {
        tracing::error!(cause = %error, "a key could not be made");
        Problem::unavailable()
    })?;
    let id = KeyId::fresh();
    let text = token::text_of(id, secret_bytes());
    let key = ApiKey {
        name: wish.name,
        scopes: wish.scopes,
        hash: app.hash_key.hash(&text).unwrap_or_default(),
        created_at: now,
        by: caller.principal.to_string(),
        expires_at: wish.expires_at,
        revoked: None,
    };
    let shown = key.clone();
    let mut asked =
        once.unkept().ask(move |_, created: &Created| {
            let data = NewKey {
                view: KeyView::of(id, &shown, &tenant_name, None, now),
                key: text.clone(),
            };
            let location = Some(format!("/api/keys/{}", id.digits()));
            Ok((*created == Created::Done)
                .then(|| once::accepted(StatusCode::CREATED, location, &Data { data })))
        });
    let name = key.name.clone();
    let told = app
        .engine
        .store
        .change("create key", move |tx| {
            asked.once(tx, |tx| keys::create(tx, tenant, id, &key))
        })
        .await?;
    once::respond(told, |created| {
        match created {
        Created::NameTaken => Problem::forbidden_by_state(format!("there is a valid key '{name}' already")).code("ALREADY_EXISTS"),
        Created::FirstIsNoAdmin => Problem::forbidden_by_state(
            "the first key must be one of the tenant `default` with the scope `admin` and without an end: with it every \
             request needs a key, and somebody must be able to make the next one",
        )
        .code("FAILED_PRECONDITION"),
        Created::Full => Problem::forbidden_by_state(format!(
            "the tenant has {} keys, and revoked ones count too",
            limits::KEYS_MAX
        ))
        .code("RESOURCE_EXHAUSTED"),
        Created::Done => unreachable!("a new key has an answer"),
    }
    })
}

/// Ends one; with it end the sessions that it began.
pub(super) async fn revoke(
    State(app): State<App>,
    caller: Caller,
    Path(text): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let shown: String = text.chars().take(64).collect();
    let missing = || Problem::not_found(format!("key '{shown}' not found"));
    let id = KeyId::of_digits(&text)
        .or_else(|| text.parse().ok())
        .ok_or_else(missing)?;
    let ring = app.keyring.current(&app.engine).await?;
    let (tenant, key) = ring.key(id).ok_or_else(missing)?;
    let is_overseer = caller.oversees().is_ok();
    if tenant != caller.tenant && !is_overseer {
        return Err(missing());
    }
    // A key that may more than its caller is not the caller's to end.
    if let Some(scope) = caller.scopes.lacks(&key.scopes) {
        caller.needs(scope)?;
    }
    let tenant_name = ring.tenant_name(tenant).unwrap_or_default();
    let (by, now) = (once.principal(), app.engine.now().wall);
    let mut asked = once.ask(move |tx, ended: &Ended| {
        let Ended::Done(key) = ended else { return Ok(None) };
        let uses = keys::uses(tx, tenant)?;
        let newest = uses.iter().find(|(of, _)| *of == id).map(|(_, at)| *at);
        let data = KeyView::of(id, key, &tenant_name, newest, now);
        Ok(Some(once::ok(&Data { data })))
    });
    let told = app
        .engine
        .store
        .change("revoke key", move |tx| {
            asked.once(tx, |tx| keys::revoke(tx, tenant, id, &by))
        })
        .await?;
    once::respond(told, |ended| match ended {
        Ended::NotFound => missing(),
        Ended::LastAdmin => Problem::forbidden_by_state(format!(
            "it is the last key with the scope `{ADMIN}` and without an end; make another one first"
        ))
        .code("FAILED_PRECONDITION"),
        Ended::Done(_) => unreachable!("the end of a key has an answer"),
    })
}
