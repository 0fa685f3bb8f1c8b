//! What a request brings along to say who calls: a key in its header, or the session of the dashboard in its cookie.
//!
//! Whoever brings something wrong hears nothing of what was wrong; the metrics know.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};

use super::app::App;
use super::bridge;
use super::caller::{self, Caller, TENANT_ID, Token};
use super::error::Problem;
use super::input;
use crate::config::RateLimitConfig;
use crate::domain::access::jwt::{self, Bearer, Refused};
use crate::domain::access::token;
use crate::engine::access::Ring;
use crate::engine::changes::keys;
use crate::store::access::{ApiKey, Session};
use crate::words::ids::{KeyId, TenantId};
use crate::words::limits;
use crate::words::time::Millis;

/// The cookie of a session.
pub(super) const COOKIE: &str = "ductor_session";

/// From where a request comes; the server puts it there.
#[derive(Debug, Clone, Copy)]
pub(super) struct Peer(pub(super) IpAddr);

/// Why somebody is not let in; for the metrics alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Wrong {
    /// Nothing was brought along.
    Nothing,
    /// It has not the form of a key.
    Malformed,
    /// There is no such key, or its secret is another one.
    Unknown,
    /// Its time is over.
    Expired,
    /// Somebody ended it.
    Revoked,
    /// No such session, or its time is over.
    Session,
    /// A token of an issuer that opens nothing.
    Token(Refused),
}

impl Wrong {
    fn word(self) -> &'static str {
        match self {
            Wrong::Nothing => "missing",
            Wrong::Malformed => "malformed",
            Wrong::Unknown => "unknown",
            Wrong::Expired => "expired",
            Wrong::Revoked => "revoked",
            Wrong::Session => "session",
            Wrong::Token(refused) => refused.word(),
        }
    }
}

/// A key that fits.
#[derive(Debug, Clone)]
pub(super) struct Opened {
    pub(super) tenant: TenantId,
    pub(super) id: KeyId,
    pub(super) key: ApiKey,
}

impl Opened {
    pub(super) fn caller(&self, ring: &Ring) -> Option<Caller> {
        Some(Caller {
            tenant: self.tenant,
            tenant_name: ring.tenant_name(self.tenant)?,
            principal: Arc::from(format!("key:{}", self.key.name)),
            scopes: Arc::new(self.key.scopes.clone()),
            key: Some(self.id),
            session: None,
            token: None,
        })
    }
}

/// Finds out who calls while there are keys.
pub(super) fn identify(app: &App, ring: &Ring, parts: &Parts) -> Result<Caller, Problem> {
    let now = app.engine.now();
    let brought = brought(&parts.headers)?;
    let peer = peer_of(parts);
    if brought != Brought::Nothing {
        may_try(app, peer)?;
    }
    let known = |opened: Opened| opened.caller(ring).ok_or(Wrong::Unknown);
    let caller = match brought {
        Brought::Nothing => Err(Wrong::Nothing),
        Brought::Garbage => Err(Wrong::Malformed),
        Brought::Key(text) if jwt::is_token(text) => {
            let config = app.config();
            match jwt::check(text, &config.auth.trusted, now.wall) {
                Ok(bearer) => Ok(caller_of(ring, bearer)?),
                Err(refused) => Err(Wrong::Token(refused)),
            }
        }
        Brought::Key(text) => open(app, ring, text, now.wall).and_then(known),
        Brought::Session(text) => resume(app, ring, text, now.wall).and_then(|(opened, session)| {
            let session = Some(keys::session_key(&session.hash).0);
            known(opened).map(|caller| Caller { session, ..caller })
        }),
    };
    let caller = caller.map_err(|wrong| refuse(app, peer, wrong))?;
    let named = input::the_one(&parts.headers, &TENANT_ID)?;
    if named.is_some_and(|named| named.as_bytes() != caller.tenant_name.as_bytes()) {
        return Err(caller::foreign_tenant("this key is one of another tenant"));
    }
    let path = parts.uri.path();
    if !path.starts_with(bridge::HEAD) && path != "/api/stream" {
        let limit = app.config().server.rate_limit;
        app.rates
            .take(&caller.mark(), limit, now.boot)
            .map_err(|wait| too_often(app, limit, wait))?;
    }
    if let Some(key) = caller.key {
        app.note_use(caller.tenant, key, now.wall);
    }
    Ok(caller)
}

/// Whom a token speaks for. Its issuer is trusted: that it names a tenant that is not here may be said.
fn caller_of(ring: &Ring, bearer: Bearer) -> Result<Caller, Problem> {
    let tenant = ring
        .tenant(&bearer.tenant)
        .and_then(|id| Some((id, ring.tenant_name(id)?)));
    let (tenant, tenant_name) = tenant.ok_or_else(|| {
        caller::foreign_tenant(&format!(
            "this token is for the tenant `{}`, and there is none",
            bearer.tenant
        ))
    })?;
    Ok(Caller {
        tenant,
        tenant_name,
        principal: Arc::from(bearer.principal),
        scopes: Arc::new(bearer.scopes),
        key: None,
        session: None,
        token: Some(Token {
            issuer: Arc::new(bearer.issuer),
            ends_at: bearer.ends_at,
        }),
    })
}

/// From where a request comes. Only tests have no peer.
pub(super) fn peer_of(parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>();
    peer.map_or(IpAddr::V4(Ipv4Addr::LOCALHOST), |Peer(address)| *address)
}

/// Who has failed too often has to wait, whatever it brings.
pub(super) fn may_try(app: &App, peer: IpAddr) -> Result<(), Problem> {
    let Some(wait) = app.failures.wait(peer, app.engine.now().boot) else {
        return Ok(());
    };
    app.engine.metrics.count_rejected("rate");
    let detail = format!("too many wrong keys came from this address; try again in {wait} s");
    Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, detail).header(header::RETRY_AFTER, &wait.to_string()))
}

/// Counts a failure; what is brought along, and wrong, counts for its address too.
pub(super) fn refuse(app: &App, peer: IpAddr, wrong: Wrong) -> Problem {
    app.engine.metrics.count_auth_failure(wrong.word());
    // A session that has run out is nobody's guess.
    let is_over = matches!(wrong, Wrong::Token(Refused::Expired | Refused::Early));
    if !is_over && !matches!(wrong, Wrong::Nothing | Wrong::Session | Wrong::Expired) {
        app.failures.note(peer, app.engine.now().boot);
    }
    caller::unknown()
}

fn too_often(app: &App, limit: RateLimitConfig, wait: u64) -> Problem {
    app.engine.metrics.count_rejected("rate");
    let (rate, burst) = (limit.per_second, limit.burst);
    let window = u64::from(burst).div_ceil(u64::from(rate)).max(1);
    let detail = format!("this key may ask {rate} times a second, and {burst} times at once");
    Problem::new(StatusCode::TOO_MANY_REQUESTS, detail)
        .header(header::RETRY_AFTER, &wait.to_string())
        .header(
            HeaderName::from_static("ratelimit-policy"),
            &format!("\"key\";q={burst};w={window}"),
        )
        .header(
            HeaderName::from_static("ratelimit"),
            &format!("\"key\";r=0;t={wait}"),
        )
}

/// What a request brings along.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Brought<'h> {
    Nothing,
    Garbage,
    Key(&'h str),
    Session(&'h str),
}

/// The header wins over the cookie: a program that is told a key uses no other.
fn brought(headers: &HeaderMap) -> Result<Brought<'_>, Problem> {
    Ok(match input::the_one(headers, &header::AUTHORIZATION)? {
        Some(value) => bearer(value).map_or(Brought::Garbage, Brought::Key),
        None => session_of(headers).map_or(Brought::Nothing, Brought::Session),
    })
}

fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then(|| token.trim())
}

/// The secret of the session that a request brings along.
pub(super) fn session_of(headers: &HeaderMap) -> Option<&str> {
    let cookies = headers.get_all(header::COOKIE).iter();
    let mut pairs = cookies
        .filter_map(|value| value.to_str().ok())
        .flat_map(|text| text.split(';'))
        .filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == COOKIE).map(|(_, value)| value)
}

/// The key of a text.
pub(super) fn open(app: &App, ring: &Ring, text: &str, now: Millis) -> Result<Opened, Wrong> {
    let id = token::id_of(text).ok_or(Wrong::Malformed)?;
    let (tenant, key) = ring.key(id).ok_or(Wrong::Unknown)?;
    load(app)?;
    if !app.hash_key.is_hash(&key.hash, text) {
        return Err(Wrong::Unknown);
    }
    valid(key, now)?;
    Ok(Opened {
        tenant,
        id,
        key: key.clone(),
    })
}

/// The session of a secret, with the key that it was begun with.
pub(super) fn resume(app: &App, ring: &Ring, secret: &str, now: Millis) -> Result<(Opened, Session), Wrong> {
    load(app).map_err(|_| Wrong::Session)?;
    let hash = app.hash_key.hash(secret).ok_or(Wrong::Session)?;
    let session = ring.session(keys::session_key(&hash).0).ok_or(Wrong::Session)?;
    if !app.hash_key.is_hash(&session.hash, secret) || session.ends_at <= now {
        return Err(Wrong::Session);
    }
    let (tenant, key) = ring.key(session.key).ok_or(Wrong::Session)?;
    valid(key, now).map_err(|_| Wrong::Session)?;
    let opened = Opened {
        tenant,
        id: session.key,
        key: key.clone(),
    };
    Ok((opened, session.clone()))
}

/// Another daemon may have made the file since this one has begun.
fn load(app: &App) -> Result<(), Wrong> {
    app.hash_key.load().map_err(|error| {
        tracing::error!(cause = %error, "keys cannot be told from each other");
        Wrong::Unknown
    })
}

fn valid(key: &ApiKey, now: Millis) -> Result<(), Wrong> {
    match (&key.revoked, key.is_valid(now)) {
        (Some(_), _) => Err(Wrong::Revoked),
        (None, false) => Err(Wrong::Expired),
        (None, true) => Ok(()),
    }
}

impl App {
    /// Remembers that a key was used; written at most once a minute.
    fn note_use(&self, tenant: TenantId, key: KeyId, now: Millis) {
        {
            let mut uses = self
                .uses
                .lock()
                .unwrap_or_else(std::sync::PoisonError::into_inner);
            let last = uses.entry(key).or_insert(Millis(i64::MIN));
            if now.since(*last) < limits::KEY_USE_PERIOD_MS {
                return;
            }
            *last = now;
        }
        let store = self.engine.store.clone();
        tokio::spawn(async move {
            let written = store
                .change("key use", move |tx| keys::note_uses(tx, &[(tenant, key, now)]))
                .await;
            if let Err(error) = written {
                tracing::debug!(cause = %error, "the use of a key could not be noted");
            }
        });
    }
}
