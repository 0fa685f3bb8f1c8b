//! The sections about who may call: `auth` with its issuers, and `server.rateLimit`.

use std::path::PathBuf;
use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::fault::{Fault, Place};
use super::keys::Section;
use super::reading::{Field, Fields, Reading};
use super::sections::{open, set};
use super::tree::Node;
use crate::domain::access::jwt::{Issuer, TenantOf};
use crate::domain::access::naming;
use crate::domain::access::public_key::{Algorithm, PublicKey};
use crate::words::limits;

/// Keys and sessions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthConfig {
    /// The file that holds the first admin key.
    pub bootstrap_key_file: Option<PathBuf>,
    pub session_ttl_ms: u64,
    /// The 32 bytes under which keys are hashed; None is a file of the state directory.
    pub hash_key_file: Option<PathBuf>,
    /// Whose tokens are taken, as the file has it.
    pub issuers: Vec<IssuerConfig>,
    /// The same with their keys: none until the files of all keys were read.
    #[serde(skip)]
    pub trusted: Vec<Issuer>,
}

/// A key of an issuer of tokens.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IssuerConfig {
    pub issuer: String,
    pub audience: String,
    #[serde(serialize_with = "shown_algorithm")]
    pub algorithm: Algorithm,
    pub key_id: Option<String>,
    /// None until its file was read.
    #[serde(serialize_with = "shown_key")]
    pub key: Option<PublicKey>,
    #[serde(skip)]
    pub key_file: Option<PathBuf>,
    /// None: a claim says it.
    pub tenant: Option<String>,
    pub tenant_claim: String,
    pub scopes_claim: String,
    #[serde(skip)]
    pub at: Place,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference to the field"
)]
fn shown_algorithm<S: Serializer>(algorithm: &Algorithm, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(algorithm.name())
}

#[expect(clippy::ref_option, reason = "serde hands over a reference to the field")]
fn shown_key<S: Serializer>(key: &Option<PublicKey>, serializer: S) -> Result<S::Ok, S::Error> {
    key.as_ref().map(PublicKey::digits).serialize(serializer)
}

impl IssuerConfig {
    /// With its key, once that is known.
    pub fn trusted(&self) -> Option<Issuer> {
        let tenant = match &self.tenant {
            Some(name) => TenantOf::Always(name.clone()),
            None => TenantOf::Claim(self.tenant_claim.clone()),
        };
        Some(Issuer {
            name: self.issuer.clone(),
            audience: self.audience.clone(),
            key_id: self.key_id.clone(),
            key: self.key.clone()?,
            tenant,
            scopes_claim: self.scopes_claim.clone(),
        })
    }
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            bootstrap_key_file: None,
            session_ttl_ms: 12 * 3_600_000,
            hash_key_file: None,
            issuers: Vec::new(),
            trusted: Vec::new(),
        }
    }
}

/// Requests of one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RateLimitConfig {
    pub per_second: u32,
    pub burst: u32,
}

impl Default for RateLimitConfig {
    fn default() -> Self {
        Self {
            per_second: 1_000,
            burst: 2_000,
        }
    }
}

pub(super) fn auth(reading: &mut Reading<'_>, field: &Field, auth: &mut AuthConfig) {
    let Some(fields) = open(reading, field, Section::Auth, "auth.") else {
        return;
    };
    if let Some(field) = fields.get("bootstrapKeyFile") {
        auth.bootstrap_key_file = reading.path(&field);
    }
    if let Some(field) = fields.get("hashKeyFile") {
        auth.hash_key_file = reading.path(&field);
    }
    if let Some(field) = fields.get("sessionTtl") {
        let text = "auth.sessionTtl must be between 1m and 30d";
        set(
            &mut auth.session_ttl_ms,
            reading.duration(&field, 60_000..=30 * 86_400_000, text),
        );
    }
    if let Some(field) = fields.get("issuers") {
        auth.issuers = issuers(reading, &field);
    }
}

fn issuers(reading: &mut Reading<'_>, field: &Field) -> Vec<IssuerConfig> {
    let items = reading.list(field).unwrap_or_default();
    if items.len() > limits::ISSUERS_MAX {
        let message = format!("{} may have at most {} items", field.label, limits::ISSUERS_MAX);
        reading.error("config/too-large", field.at(), message);
        return Vec::new();
    }
    items.iter().filter_map(|item| issuer(reading, item)).collect()
}

fn issuer(reading: &mut Reading<'_>, item: &Rc<Node>) -> Option<IssuerConfig> {
    let fields = reading.fields(item, Section::Issuer)?.with_path("auth.issuers.");
    let name = named(reading, &fields, "issuer")?;
    if name.len() > limits::SUBJECT_BYTES_MAX
        || name.contains(|letter: char| letter == '#' || letter.is_control())
    {
        let message = "`auth.issuers.issuer` must be at most 200 bytes, without `#`";
        reading.error("config/bad-value", &fields.at, message);
        return None;
    }
    let audience = named(reading, &fields, "audience")?;
    let algorithm = fields.get("algorithm").or_else(|| {
        reading.error(
            "config/missing",
            &fields.at,
            "an item of `auth.issuers` needs an `algorithm`",
        );
        None
    })?;
    let text = "auth.issuers.algorithm must be EdDSA, ES256 or RS256";
    let algorithm = reading.choice(&algorithm, &Algorithm::ALL, text)?;
    let (key, key_file) = key_of(reading, &fields, algorithm)?;
    let tenant = match fields.get("tenant") {
        Some(field) => Some(tenant_name(reading, &field)?),
        None => None,
    };
    let key_id = match fields.get("keyId") {
        Some(field) => Some(reading.substituted(&field)?),
        None => None,
    };
    let mut claim = |word: &str, unset: &str| match fields.get(word) {
        Some(field) => reading.text(&field),
        None => Some(unset.to_owned()),
    };
    Some(IssuerConfig {
        issuer: name,
        audience,
        algorithm,
        key_id,
        key,
        key_file,
        tenant,
        tenant_claim: claim("tenantClaim", "tenant")?,
        scopes_claim: claim("scopesClaim", "scope")?,
        at: fields.at.clone(),
    })
}

/// A text that must be there and must not be empty.
fn named(reading: &mut Reading<'_>, fields: &Fields, word: &str) -> Option<String> {
    let Some(field) = fields.get(word) else {
        let message = format!("an item of `auth.issuers` needs `{word}`");
        reading.error("config/missing", &fields.at, message);
        return None;
    };
    let text = reading.substituted(&field)?;
    if text.is_empty() {
        reading.error(
            "config/bad-value",
            field.at(),
            format!("{} is empty", field.label),
        );
        return None;
    }
    Some(text)
}

type KeyOrFile = (Option<PublicKey>, Option<PathBuf>);

fn key_of(reading: &mut Reading<'_>, fields: &Fields, algorithm: Algorithm) -> Option<KeyOrFile> {
    match (fields.get("key"), fields.get("keyFile")) {
        (Some(field), None) => {
            let text = reading.text(&field)?;
            match PublicKey::read(algorithm, &text) {
                Ok(key) => Some((Some(key), None)),
                Err(why) => {
                    reading.error("config/bad-value", field.at(), format!("{}: {why}", field.label));
                    None
                }
            }
        }
        (None, Some(field)) => Some((None, Some(reading.path(&field)?))),
        (Some(_), Some(_)) | (None, None) => {
            let message = "an item of `auth.issuers` needs `key` or `keyFile`, and not both";
            reading.error("config/missing", &fields.at, message);
            None
        }
    }
}

/// The name of a tenant.
pub(super) fn tenant_name(reading: &mut Reading<'_>, field: &Field) -> Option<String> {
    let name = reading.substituted(field)?;
    if naming::is_tenant(&name) {
        return Some(name);
    }
    reading.report(Fault::error("config/bad-value", field.at(), naming::TENANT_RULE));
    None
}

pub(super) fn rate_limit(reading: &mut Reading<'_>, field: &Field, limit: &mut RateLimitConfig) {
    let Some(fields) = open(reading, field, Section::RateLimit, "server.rateLimit.") else {
        return;
    };
    if let Some(field) = fields.get("perSecond") {
        let text = "server.rateLimit.perSecond must be between 1 and 1000000";
        set(&mut limit.per_second, reading.count(&field, 1..=1_000_000, text));
    }
    if let Some(field) = fields.get("burst") {
        let text = "server.rateLimit.burst must be between 1 and 1000000";
        set(&mut limit.burst, reading.count(&field, 1..=1_000_000, text));
    }
}
