//! Who calls, and whether they may: the caller of a request, and the one check that stands before each route.
//!
//! The front finds out who it is (`identify`) before it reads a body; `guard` stands at each route, knows what is said of it on
//! the router's page, and lets in whom its scope and tenant allow. Handlers take the [`Caller`] and decide nothing of this.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::{FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::app::App;
use super::credentials;
use super::error::{FieldFault, Problem, SCOPE_MISSING, TENANT_FOREIGN};
use super::front::RequestId;
use super::input;
use super::once::Replay;
use crate::domain::access::jwt::Issuer;
use crate::domain::access::scopes::{ADMIN, OPEN, Scopes};
use crate::engine::access::Ring;
use crate::engine::changes::audit::By;
use crate::words::ids::{KeyId, TenantId};
use crate::words::time::Millis;

/// The header that names the tenant.
pub(super) const TENANT_ID: HeaderName = HeaderName::from_static("x-tenant-id");

/// How often it is looked whether somebody who waits is still let in.
const LOOK: Duration = Duration::from_secs(1);

/// Who calls while there are no keys.
const LOCAL: &str = "local";

/// Who calls.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    /// Whose things they see.
    pub(super) tenant: TenantId,
    /// Its name.
    pub(super) tenant_name: Arc<str>,
    /// As people and the audit call them.
    pub(super) principal: Arc<str>,
    /// What they may do.
    pub(super) scopes: Arc<Scopes>,
    /// Their key, if they have one.
    pub(super) key: Option<KeyId>,
    /// The session that they came in with, if it was one.
    pub(super) session: Option<[u8; 16]>,
    /// The token that speaks for them, if it is one.
    pub(super) token: Option<Token>,
}

/// What is kept of a token for as long as something goes on after its answer.
#[derive(Debug, Clone)]
pub(super) struct Token {
    /// Who made it, and with which key.
    pub(super) issuer: Arc<Issuer>,
    /// When it ends.
    pub(super) ends_at: Millis,
}

impl Caller {
    /// Whoever reaches the daemon while there are no keys.
    pub(super) fn local(tenant: TenantId, tenant_name: Arc<str>) -> Caller {
        Caller {
            tenant,
            tenant_name,
            principal: Arc::from(LOCAL),
            scopes: Arc::new(Scopes::admin()),
            key: None,
            session: None,
            token: None,
        }
    }

    /// What the requests of this caller are remembered under: no other caller ever has it.
    pub(super) fn mark(&self) -> String {
        self.key.map_or_else(|| self.principal.to_string(), KeyId::digits)
    }

    /// False when what they came in with opens nothing any more: for what goes on after the answer.
    pub(super) async fn is_still_known(&self, app: &App) -> bool {
        let Ok(ring) = app.keyring.current(&app.engine).await else {
            return true;
        };
        let now = app.engine.now().wall;
        match (self.key, &self.token) {
            (Some(id), _) => {
                let is_on =
                    |digest: [u8; 16]| ring.session(digest).is_some_and(|session| now < session.ends_at);
                ring.key(id).is_some_and(|(_, key)| key.is_valid(now)) && self.session.is_none_or(is_on)
            }
            (None, Some(token)) => now < token.ends_at && app.config().auth.trusted.contains(&token.issuer),
            (None, None) => app.is_open(&ring),
        }
    }

    /// True when what they came in with ends by itself: no commit tells of that.
    pub(super) async fn has_an_end(&self, app: &App) -> bool {
        let Ok(ring) = app.keyring.current(&app.engine).await else {
            return true;
        };
        let key = self.key.and_then(|id| ring.key(id));
        self.token.is_some() || self.session.is_some() || key.is_some_and(|(_, key)| key.expires_at.is_some())
    }

    /// Comes back when what they came in with opens nothing any more, give or take a second: for those who wait for something. It
    /// asks by the clock and not at each commit, for there may be very many of them.
    pub(super) async fn until_gone(&self, app: &App) {
        loop {
            tokio::time::sleep(LOOK).await;
            if !self.is_still_known(app).await {
                return;
            }
        }
    }

    /// What the audit says of a request of this caller.
    pub(super) fn by(&self, parts: &Parts, what: &str) -> By {
        let path = parts.uri.path();
        let request = parts.extensions.get::<RequestId>();
        By {
            tenant: self.tenant,
            who: self.principal.to_string(),
            key: self.key,
            request: request.map(|id| id.0.clone()).unwrap_or_default(),
            what: what.to_owned(),
            thing: path.split("/~").next().unwrap_or(path).to_owned(),
        }
    }

    /// Whoever looks after all tenants: an admin of the tenant `default`.
    pub(super) fn oversees(&self) -> Result<(), Problem> {
        self.needs(ADMIN)?;
        if self.tenant == TenantId::DEFAULT {
            return Ok(());
        }
        Err(foreign_tenant("this is for keys of the tenant `default`"))
    }

    /// Says that a further scope is missing, which the route alone does not ask for.
    pub(super) fn needs(&self, scope: &str) -> Result<(), Problem> {
        if self.scopes.allow(scope) {
            return Ok(());
        }
        Err(missing(scope))
    }
}

/// The front has put it there for every route that is not open; open routes have no use for one.
impl<S: Sync> FromRequestParts<S> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Caller, Problem> {
        parts.extensions.get::<Caller>().cloned().ok_or_else(unknown)
    }
}

/// Nothing is said about what was wrong.
pub(super) fn unknown() -> Problem {
    Problem::new(StatusCode::UNAUTHORIZED, "a valid key is needed")
}

fn missing(scope: &str) -> Problem {
    Problem::new(
        StatusCode::FORBIDDEN,
        format!("this key may not do that; it has not the scope `{scope}`"),
    )
    .because(FieldFault {
        pointer: String::new(),
        code: SCOPE_MISSING,
        detail: format!("`{scope}` is missing"),
    })
}

/// The tenant that `X-Tenant-ID` names is not one for this caller.
pub(super) fn foreign_tenant(detail: &str) -> Problem {
    Problem::new(StatusCode::FORBIDDEN, detail).because(FieldFault {
        pointer: String::new(),
        code: TENANT_FOREIGN,
        detail: detail.to_owned(),
    })
}

/// Finds out who calls; `None` where nobody has to say so and nobody did.
pub(super) async fn identify(app: &App, parts: &Parts) -> Result<Option<Caller>, Problem> {
    if is_open(&parts.method, parts.uri.path()) {
        return Ok(None);
    }
    let ring = app.keyring.current(&app.engine).await?;
    if app.is_open(&ring) {
        return in_open_mode(&ring, &parts.headers).map(Some);
    }
    credentials::identify(app, &ring, parts).map(Some)
}

/// Whoever can reach the loopback address may do everything, for each tenant that there is.
fn in_open_mode(ring: &Ring, headers: &HeaderMap) -> Result<Caller, Problem> {
    let named = match input::the_one(headers, &TENANT_ID)? {
        None => ring
            .tenant_name(TenantId::DEFAULT)
            .map(|name| (TenantId::DEFAULT, name)),
        Some(name) => name.to_str().ok().and_then(|name| {
            let id = ring.tenant(name)?;
            Some((id, ring.tenant_name(id)?))
        }),
    };
    let (id, name) = named.ok_or_else(|| {
        foreign_tenant("there is no such tenant; `ductor tenant ls` shows those that there are")
    })?;
    Ok(Caller::local(id, name))
}

/// Routes that need no caller, beside the pages of the dashboard. The router's page says the same of them; a test compares.
const OPEN_ROUTES: [(&str, &str); 5] = [
    ("post", "/api/session"),
    ("get", "/livez"),
    ("get", "/readyz"),
    ("get", "/healthz"),
    ("get", "/version"),
];

/// True for what is answered to anybody.
pub(super) fn is_open(method: &Method, path: &str) -> bool {
    let is_page = path == "/" || path == "/ui" || path.starts_with("/ui/") || path.starts_with("/web/");
    let is_read = method.is_safe();
    (is_page && is_read)
        || OPEN_ROUTES.iter().any(|(of, open)| {
            *open == path && (method.as_str().eq_ignore_ascii_case(of) || is_read && *of == "get")
        })
}

/// What a tenant that is not `default` is answered where all things are those of `default`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Elsewhere {
    /// The route is for all tenants: each sees its own.
    Own,
    /// There is nothing of that name.
    Nothing,
    /// An empty page of a list.
    EmptyPage,
    /// An empty list.
    EmptyList,
}

/// What is said of a route on the router's page and is checked before it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Duty {
    /// The operation.
    pub(super) id: &'static str,
    /// What a caller must be allowed.
    pub(super) scope: &'static str,
    /// What other tenants get.
    pub(super) elsewhere: Elsewhere,
    /// False where the audit has no row of it.
    pub(super) audited: bool,
}

/// Stands before each route.
pub(super) async fn guard(duty: Duty, request: Request, next: Next) -> Response {
    if duty.scope == OPEN {
        return next.run(request).await;
    }
    let Some(caller) = request.extensions().get::<Caller>().cloned() else {
        return unknown().into_response();
    };
    if let Err(problem) = caller.needs(duty.scope) {
        return problem.into_response();
    }
    if caller.tenant != TenantId::DEFAULT
        && let Some(response) = elsewhere(duty.elsewhere, &caller)
    {
        return response;
    }
    // An answer that was given before is for who may ask: a token may say less than the one that it was given to.
    if let Some(before) = request.extensions().get::<Replay>().and_then(Replay::take) {
        return before;
    }
    let (mut parts, body) = request.into_parts();
    let by = (duty.audited && !parts.method.is_safe()).then(|| caller.by(&parts, duty.id));
    if let Some(by) = &by {
        parts.extensions.insert(by.clone());
    }
    let request = Request::from_parts(parts, body);
    let mut response = next.run(request).await;
    // For what is kept after the fact.
    if let Some(by) = by {
        response.extensions_mut().insert(by);
    }
    response
}

fn elsewhere(what: Elsewhere, caller: &Caller) -> Option<Response> {
    let json = |text: &'static str| {
        let kind = (header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        Some(([kind], text).into_response())
    };
    match what {
        Elsewhere::Own => None,
        Elsewhere::EmptyPage => json("{\"data\":[],\"pagination\":{}}"),
        Elsewhere::EmptyList => json("[]"),
        Elsewhere::Nothing => {
            let detail = format!(
                "there is no such thing of the tenant `{}`; jobs, slot pools, workflows and runs are those of `default`",
                caller.tenant_name
            );
            Some(Problem::not_found(detail).into_response())
        }
    }
}
