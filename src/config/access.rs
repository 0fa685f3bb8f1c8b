//! The sections about who may call: `auth`, and `server.rateLimit`.

use std::path::PathBuf;

use serde::Serialize;

use super::keys::Section;
use super::reading::{Field, Reading};
use super::sections::{open, set};

/// Keys and sessions.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthConfig {
    /// The file that holds the first admin key.
    pub bootstrap_key_file: Option<PathBuf>,
    pub session_ttl_ms: u64,
    /// The 32 bytes under which keys are hashed; None is a file of the state directory.
    pub hash_key_file: Option<PathBuf>,
}

impl Default for AuthConfig {
    fn default() -> Self {
        Self {
            bootstrap_key_file: None,
            session_ttl_ms: 12 * 3_600_000,
            hash_key_file: None,
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
