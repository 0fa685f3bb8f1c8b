//! The rows of who may do what: tenants, API keys, sessions of the dashboard; and of what was done, the audit.
//!
//! A key's secret stands nowhere: its row has the hash that `hash_key` makes of its text.

use serde::{Deserialize, Serialize};

use super::codec::Record;
use super::error::StoreError;
use super::rows::Number;
use super::table::Rows;
use super::tables::{META, TENANTS};
use super::tx::Tx;
use crate::domain::access::scopes::Scopes;
use crate::domain::routing::objects::PipelineMode;
use crate::words::ids::{KeyId, TenantId};
use crate::words::time::Millis;

/// The name of the tenant of everything that comes from the configuration file. It has no row of its own.
pub const DEFAULT_TENANT: &str = "default";

/// The number in `meta` that moves with each change of keys, sessions or tenants.
const CHANGED: &str = "access_changed";

/// A tenant.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantRow {
    /// Its name; no other tenant has it.
    pub name: String,
    /// When it was made.
    pub created_at: Millis,
    /// By whom.
    pub by: String,
}

/// What a tenant says of its routing. The tenant `default` may have it too.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TenantSettings {
    /// Where work goes that no rule takes: the id of a recipient pool or, of the configuration file, its name too.
    pub default_recipient_pool: Option<String>,
    /// How checks run where a recipient pool says nothing.
    pub pipeline_mode: PipelineMode,
    /// The configuration file says so.
    pub from_file: bool,
}

impl Default for TenantSettings {
    fn default() -> TenantSettings {
        TenantSettings {
            default_recipient_pool: None,
            pipeline_mode: PipelineMode::Inherit,
            from_file: false,
        }
    }
}

/// An API key, without what makes it one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApiKey {
    /// For people.
    pub name: String,
    /// What it may do.
    pub scopes: Scopes,
    /// The keyed hash of its text.
    pub hash: [u8; 32],
    /// When it was made.
    pub created_at: Millis,
    /// By whom.
    pub by: String,
    /// When it ends by itself.
    pub expires_at: Option<Millis>,
    /// Who ended it, and when.
    pub revoked: Option<Revoked>,
}

/// The end of a key.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revoked {
    /// When.
    pub at: Millis,
    /// By whom.
    pub by: String,
}

impl ApiKey {
    /// True if it opens anything at this time.
    pub fn is_valid(&self, now: Millis) -> bool {
        self.revoked.is_none() && self.expires_at.is_none_or(|end| now < end)
    }
}

/// When a key was used last, to the minute. A row of its own: it moves without the key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyUse {
    /// When.
    pub at: Millis,
}

/// A session of the dashboard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Session {
    /// The key that it was begun with; it ends with it.
    pub key: KeyId,
    /// The keyed hash of its secret; the row's own key is the half of it.
    pub hash: [u8; 32],
    /// When it began.
    pub begun_at: Millis,
    /// When it ends by itself.
    pub ends_at: Millis,
}

/// Something that was done. Never changed; goes with retention.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AuditRow {
    /// When.
    pub at: Millis,
    /// The principal.
    pub who: String,
    /// Its key, if it was one.
    pub key: Option<KeyId>,
    /// The request, as the log knows it.
    pub request: String,
    /// The operation, as the API's document calls it.
    pub what: String,
    /// The path of the thing.
    pub thing: String,
    /// Its version before.
    pub before: Option<String>,
    /// And after.
    pub after: Option<String>,
}

macro_rules! records {
    ($($type:ty, $name:literal;)*) => {
        $(impl Record for $type {
            const NAME: &'static str = $name;
            const VERSION: u8 = 1;
        })*
    };
}

records! {
    TenantRow, "tenant";
    TenantSettings, "tenant settings";
    ApiKey, "api key";
    KeyUse, "key use";
    Session, "session";
    AuditRow, "audit row";
}

/// How often keys, sessions or tenants were changed: what was read of them holds while this number does.
pub fn changes(rows: &mut impl Rows) -> Result<u64, StoreError> {
    let number = rows.get(&META, &(CHANGED.to_owned(),))?;
    Ok(number.map_or(0, |Number(number)| number))
}

/// Keys, sessions or tenants were changed.
pub fn changed(tx: &mut Tx<'_>) -> Result<(), StoreError> {
    tx.next_number(CHANGED).map(drop)
}

/// All tenants with their names, `default` first.
pub fn tenants(rows: &mut impl Rows) -> Result<Vec<(TenantId, String)>, StoreError> {
    let mut all = vec![(TenantId::DEFAULT, DEFAULT_TENANT.to_owned())];
    let others = rows.scan(&TENANTS, &(), None, usize::MAX)?;
    all.extend(others.into_iter().map(|((tenant,), row)| (tenant, row.name)));
    Ok(all)
}
