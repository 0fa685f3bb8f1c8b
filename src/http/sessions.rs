//! `/api/session`: signing in to the dashboard. A key is traded for a cookie that no script can read and no other site can
//! send; an event stream, which cannot send headers, is opened with it.

use axum::Json;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Request, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::app::App;
use super::caller::Caller;
use super::credentials::{self, COOKIE};
use super::error::Problem;
use super::input;
use super::param::{Kind, Param};
use super::runs::Data;
use crate::engine::changes::{audit, keys};
use crate::store::access::Session;
use crate::words::ids::{hex, secret_bytes};

/// The fields of a sign-in.
pub(super) const FIELDS: [Param; 1] = [Param::query("key", Kind::Text, "An API key.").needed()];

/// Who calls, and what they may do.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct SessionView {
    /// `local`, `key:NAME`, or the user that a token names.
    principal: String,
    tenant: String,
    scopes: Vec<String>,
    /// There are no keys: everybody who reaches the daemon may do everything.
    open: bool,
    /// When the session ends by itself; null without one.
    ends_at: Option<String>,
}

impl SessionView {
    fn of(caller: &Caller, open: bool, ends_at: Option<String>) -> SessionView {
        SessionView {
            principal: caller.principal.to_string(),
            tenant: caller.tenant_name.to_string(),
            scopes: caller.scopes.iter().map(str::to_owned).collect(),
            open,
            ends_at,
        }
    }
}

/// Who calls.
pub(super) async fn show(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
) -> Result<Json<Data<SessionView>>, Problem> {
    let ring = app.keyring.current(&app.engine).await?;
    let by_cookie = !headers.contains_key(header::AUTHORIZATION);
    let secret = credentials::session_of(&headers).filter(|_| by_cookie && !app.is_open(&ring));
    let session =
        secret.and_then(|secret| credentials::resume(&app, &ring, secret, app.engine.now().wall).ok());
    let ends_at = session.map(|(_, session)| session.ends_at.to_string());
    let data = SessionView::of(&caller, app.is_open(&ring), ends_at);
    Ok(Json(Data { data }))
}

/// Begins a session.
pub(super) async fn begin(State(app): State<App>, request: Request<Body>) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, KEY_BODY_MAX)
        .await
        .map_err(|_| Problem::unreadable("the body is too long for a key"))?;
    let text = key_of(&body)?;
    let ring = app.keyring.current(&app.engine).await?;
    if app.is_open(&ring) {
        return Err(Problem::forbidden_by_state(
            "there are no keys yet, and nobody needs to sign in",
        ));
    }
    let peer = credentials::peer_of(&parts);
    credentials::may_try(&app, peer)?;
    let now = app.engine.now().wall;
    let opened =
        credentials::open(&app, &ring, &text, now).map_err(|wrong| credentials::refuse(&app, peer, wrong))?;
    let caller = opened.caller(&ring).ok_or_else(super::caller::unknown)?;
    let secret = hex(&secret_bytes());
    let ttl_ms = app.config().auth.session_ttl_ms;
    let latest = now.plus(ttl_ms);
    let session = Session {
        key: opened.id,
        hash: app.hash_key.hash(&secret).ok_or_else(Problem::unavailable)?,
        begun_at: now,
        ends_at: opened.key.expires_at.map_or(latest, |end| end.min(latest)),
    };
    let (tenant, ends_at) = (opened.tenant, session.ends_at);
    let by = caller.by(&parts, "beginSession");
    app.engine
        .store
        .change("begin session", move |tx| {
            keys::begin_session(tx, tenant, &session)?;
            Ok(audit::write(tx, &by, None, None, None)?)
        })
        .await?;
    let data = SessionView::of(&caller, false, Some(ends_at.to_string()));
    let seconds = ends_at.since(now) / 1_000;
    let cookie = cookie(&app, &secret, seconds);
    Ok((
        StatusCode::CREATED,
        [(header::SET_COOKIE, cookie)],
        Json(Data { data }),
    )
        .into_response())
}

/// Ends it, and tells the browser to forget the cookie.
pub(super) async fn end(
    State(app): State<App>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    if let Some(secret) = credentials::session_of(&headers) {
        let hash = app.hash_key.hash(secret);
        if let Some(hash) = hash {
            let tenant = caller.tenant;
            app.engine
                .store
                .change("end session", move |tx| keys::end_session(tx, tenant, &hash))
                .await?;
        }
    }
    let data = Value::Object(serde_json::Map::new());
    let cookie = cookie(&app, "", 0);
    Ok(([(header::SET_COOKIE, cookie)], Json(Data { data })).into_response())
}

const KEY_BODY_MAX: usize = 1_024;

fn key_of(body: &[u8]) -> Result<String, Problem> {
    let (fields, mut faults) = input::object(body, &FIELDS)?;
    let key = fields
        .get("key")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .trim()
        .to_owned();
    if key.is_empty() {
        faults.push(input::fault(
            "key",
            "required",
            "must be an API key, dk_<id>_<secret>",
        ));
    }
    if faults.is_empty() {
        Ok(key)
    } else {
        Err(Problem::invalid(faults))
    }
}

/// `Secure` where people come by https: a browser would not send it by http then.
fn cookie(app: &App, secret: &str, seconds: u64) -> HeaderValue {
    let is_https = app
        .config()
        .server
        .public_url
        .as_ref()
        .is_some_and(|url| url.starts_with("https://"));
    let secure = if is_https { "; Secure" } else { "" };
    let text = format!("{COOKIE}={secret}; Path=/; Max-Age={seconds}; HttpOnly; SameSite=Strict{secure}");
    HeaderValue::from_str(&text).expect("hex digits and names")
}
