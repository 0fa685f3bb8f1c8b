//! Tokens of issuers that the operator trusts (JWT): whether one opens anything now, and for whom.
//!
//! The issuer that a token names chooses among the keys of the configuration, and nothing else of it does: each key has its one
//! algorithm, and no key is ever tried for the tokens of another issuer. Nothing is believed before the signature fits.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value};

use super::naming;
use super::public_key::PublicKey;
use super::scopes::{Scopes, is_known};
use crate::words::limits;
use crate::words::time::Millis;

/// How far the clocks of an issuer may be from ours.
const LEEWAY_MS: i64 = 60_000;
/// No instant of a token lies beyond it: the year 9999 and a while.
const SECONDS_MAX: f64 = 1e12;

/// One key of an issuer, and what its tokens say where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Issuer {
    /// The `iss` of its tokens.
    pub name: String,
    /// What `aud` must be, or hold.
    pub audience: String,
    /// The `kid` of tokens of this key; without one, a token may have any.
    pub key_id: Option<String>,
    /// The key.
    pub key: PublicKey,
    /// Whose things its tokens open.
    pub tenant: TenantOf,
    /// The claim with the scopes.
    pub scopes_claim: String,
}

/// Where the tenant of a token comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TenantOf {
    /// It is always this one.
    Always(String),
    /// A claim has its name.
    Claim(String),
}

/// Whom a token speaks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bearer {
    /// Who made the token, and with which key.
    pub issuer: Issuer,
    /// `jwt:<iss>#<sub>`: no name of an issuer has a `#`, so no two are alike.
    pub principal: String,
    /// The name of the tenant.
    pub tenant: String,
    /// What they may do: those of the token's scopes that there are.
    pub scopes: Scopes,
    /// When the token ends, the leeway included.
    pub ends_at: Millis,
}

/// Why a token opens nothing. Only the metrics hear of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// It is no token in three parts, or its claims have not the form that they must have.
    Malformed,
    /// Nobody trusts its issuer.
    Issuer,
    /// It is signed in another way than its issuer signs.
    Algorithm,
    /// Its issuer has no key of that name.
    KeyId,
    /// The key has not signed it.
    Signature,
    /// It was made for others.
    Audience,
    /// Its time is over.
    Expired,
    /// Its time has not come.
    Early,
    /// It names no tenant.
    Tenant,
}

impl Refused {
    /// For the metrics.
    pub fn word(self) -> &'static str {
        match self {
            Refused::Malformed => "token_malformed",
            Refused::Issuer => "token_issuer",
            Refused::Algorithm => "token_algorithm",
            Refused::KeyId => "token_key",
            Refused::Signature => "token_signature",
            Refused::Audience => "token_audience",
            Refused::Expired => "token_expired",
            Refused::Early => "token_early",
            Refused::Tenant => "token_tenant",
        }
    }
}

/// True for a text that may be a token: three parts, of which no API key has two.
pub fn is_token(text: &str) -> bool {
    text.len() <= limits::TOKEN_BYTES_MAX && text.bytes().filter(|byte| *byte == b'.').count() == 2
}

/// Whom a token speaks for at this time.
pub fn check(text: &str, issuers: &[Issuer], now: Millis) -> Result<Bearer, Refused> {
    if !is_token(text) {
        return Err(Refused::Malformed);
    }
    let (message, signature) = text.rsplit_once('.').ok_or(Refused::Malformed)?;
    let (head, claims) = message.split_once('.').ok_or(Refused::Malformed)?;
    let (head, claims) = (object(head)?, object(claims)?);
    let signature = bytes(signature)?;
    let issuer = issuer_of(&head, &claims, issuers)?;
    if !issuer.key.has_signed(message.as_bytes(), &signature) {
        return Err(Refused::Signature);
    }
    bearer(&claims, issuer, now)
}

fn bytes(part: &str) -> Result<Vec<u8>, Refused> {
    URL_SAFE_NO_PAD.decode(part).map_err(|_| Refused::Malformed)
}

fn object(part: &str) -> Result<Map<String, Value>, Refused> {
    serde_json::from_slice(&bytes(part)?).map_err(|_| Refused::Malformed)
}

/// The key that must have signed: one of the issuer that the token names, of that name, for that algorithm.
fn issuer_of<'i>(
    head: &Map<String, Value>,
    claims: &Map<String, Value>,
    issuers: &'i [Issuer],
) -> Result<&'i Issuer, Refused> {
    // What must be understood (`crit`) is not.
    if head.contains_key("crit") {
        return Err(Refused::Malformed);
    }
    let text = |value: Option<&Value>| match value {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.clone())),
        Some(_) => Err(Refused::Malformed),
    };
    let algorithm = text(head.get("alg"))?.ok_or(Refused::Malformed)?;
    let key_id = text(head.get("kid"))?;
    let name = text(claims.get("iss"))?.ok_or(Refused::Issuer)?;
    let mut keys = issuers.iter().filter(|issuer| issuer.name == name).peekable();
    keys.peek().ok_or(Refused::Issuer)?;
    let mut keys = keys
        .filter(|issuer| issuer.key_id.is_none() || issuer.key_id == key_id)
        .peekable();
    keys.peek().ok_or(Refused::KeyId)?;
    // A key that is named is meant before one that is for all.
    let mut fitting: Vec<&Issuer> = keys
        .filter(|issuer| issuer.key.algorithm().name() == algorithm)
        .collect();
    fitting.sort_by_key(|issuer| issuer.key_id.is_none());
    fitting.first().copied().ok_or(Refused::Algorithm)
}

fn bearer(claims: &Map<String, Value>, issuer: &Issuer, now: Millis) -> Result<Bearer, Refused> {
    let is_ours = match claims.get("aud") {
        Some(Value::String(audience)) => *audience == issuer.audience,
        Some(Value::Array(all)) => all.iter().any(|one| one.as_str() == Some(&issuer.audience)),
        Some(_) | None => false,
    };
    if !is_ours {
        return Err(Refused::Audience);
    }
    let ends_at = instant(claims, "exp")?.ok_or(Refused::Malformed)?;
    let ends_at = Millis(ends_at.saturating_add(LEEWAY_MS));
    if ends_at <= now {
        return Err(Refused::Expired);
    }
    let begins_at = instant(claims, "nbf")?.unwrap_or(0);
    if begins_at.saturating_sub(LEEWAY_MS) > now.0 {
        return Err(Refused::Early);
    }
    let subject = claims
        .get("sub")
        .and_then(Value::as_str)
        .ok_or(Refused::Malformed)?;
    let is_plain = |text: &str| !text.chars().any(char::is_control);
    if subject.is_empty() || subject.len() > limits::SUBJECT_BYTES_MAX || !is_plain(subject) {
        return Err(Refused::Malformed);
    }
    let tenant = match &issuer.tenant {
        TenantOf::Always(name) => name.clone(),
        TenantOf::Claim(claim) => {
            let name = claims.get(claim).and_then(Value::as_str);
            let name = name.filter(|name| naming::is_tenant(name));
            name.ok_or(Refused::Tenant)?.to_owned()
        }
    };
    Ok(Bearer {
        issuer: issuer.clone(),
        principal: format!("jwt:{}#{subject}", issuer.name),
        tenant,
        scopes: scopes(claims.get(&issuer.scopes_claim))?,
        ends_at,
    })
}

/// Milliseconds of a claim that counts in seconds, whole or not.
fn instant(claims: &Map<String, Value>, claim: &str) -> Result<Option<i64>, Refused> {
    let Some(value) = claims.get(claim) else {
        return Ok(None);
    };
    let seconds = value.as_f64().ok_or(Refused::Malformed)?;
    if !(0.0..=SECONDS_MAX).contains(&seconds) {
        return Err(Refused::Malformed);
    }
    #[allow(
        clippy::cast_possible_truncation,
        reason = "within the bounds above, and a part of a millisecond is nothing"
    )]
    let ms = (seconds * 1_000.0) as i64;
    Ok(Some(ms))
}

/// Issuers have scopes of their own for others; those that we do not know give nothing.
fn scopes(claim: Option<&Value>) -> Result<Scopes, Refused> {
    let texts: Vec<&str> = match claim {
        None => Vec::new(),
        Some(Value::String(text)) => text.split_ascii_whitespace().collect(),
        Some(Value::Array(all)) => all
            .iter()
            .map(Value::as_str)
            .collect::<Option<_>>()
            .ok_or(Refused::Malformed)?,
        Some(_) => return Err(Refused::Malformed),
    };
    let known = texts.into_iter().filter(|text| is_known(text));
    Scopes::of(known).map_err(|_| Refused::Malformed)
}
