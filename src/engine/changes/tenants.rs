//! Tenants, and what each says of its routing.

use super::routing::world::recipient_pool_of;
use crate::domain::routing::objects::PipelineMode;
use crate::store::access::{self, TenantRow, TenantSettings};
use crate::store::tables::{TENANT_SETTINGS, TENANTS};
use crate::store::{Abort, Rows, Tx};
use crate::words::ids::TenantId;
use crate::words::limits;

/// What became of a new tenant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is there, under this number.
    Done(TenantId),
    /// Another one has the name.
    NameTaken,
    /// There are as many as there may be.
    Full,
}

/// Makes a tenant. Its number is never given again.
pub fn create(tx: &mut Tx<'_>, row: &TenantRow) -> Result<Created, Abort> {
    let known = access::tenants(tx)?;
    if known.iter().any(|(_, name)| *name == row.name) {
        return Ok(Created::NameTaken);
    }
    if known.len() >= limits::TENANTS_MAX {
        return Ok(Created::Full);
    }
    let number = tx.next_number("next_tenant")?;
    let id = TenantId(u32::try_from(number).unwrap_or(u32::MAX));
    tx.put(&TENANTS, &(id,), row)?;
    access::changed(tx)?;
    Ok(Created::Done(id))
}

/// What somebody wants a tenant to say of its routing; what is not named stays.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Wanted {
    /// The id or the name of a recipient pool; `Some(None)` is none.
    pub default_recipient_pool: Option<Option<String>>,
    /// How checks run.
    pub pipeline_mode: Option<PipelineMode>,
}

/// What became of that.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Said {
    /// It holds; as it is now.
    Done(TenantSettings),
    /// There is no such recipient pool.
    NoSuchPool(String),
    /// The configuration file has the say.
    OfTheFile,
}

/// Changes what a tenant says of its routing.
pub fn say(tx: &mut Tx<'_>, tenant: TenantId, wanted: &Wanted) -> Result<Said, Abort> {
    let mut settings = tx.get(&TENANT_SETTINGS, &(tenant,))?.unwrap_or_default();
    if settings.from_file {
        return Ok(Said::OfTheFile);
    }
    if let Some(named) = &wanted.default_recipient_pool {
        settings.default_recipient_pool = match named {
            None => None,
            Some(text) => match recipient_pool_of(tx, tenant, text)? {
                // The id: it outlives another name.
                Some(id) => Some(id.to_string()),
                None => return Ok(Said::NoSuchPool(text.clone())),
            },
        };
    }
    if let Some(mode) = wanted.pipeline_mode {
        settings.pipeline_mode = mode;
    }
    tx.put(&TENANT_SETTINGS, &(tenant,), &settings)?;
    Ok(Said::Done(settings))
}

/// A tenant of the configuration file: its name, and what the file says of its routing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Declared {
    /// Its name.
    pub name: String,
    /// A recipient pool by id or name, and how checks run; `None` leaves it to the API.
    pub routing: Option<(Option<String>, PipelineMode)>,
}

/// Makes the tenants of a configuration that are not there yet, and has them say what it says; false if there are too many.
/// What an older one has said stays, and is the API's to change from then on.
pub fn ensure(tx: &mut Tx<'_>, declared: &[Declared], by: &str) -> Result<bool, Abort> {
    let created_at = tx.now().wall;
    for tenant in declared {
        let row = TenantRow {
            name: tenant.name.clone(),
            created_at,
            by: by.to_owned(),
        };
        if create(tx, &row)? == Created::Full {
            return Ok(false);
        }
    }
    for (id, name) in access::tenants(tx)? {
        let named = declared.iter().find(|tenant| tenant.name == name);
        let before = tx.get(&TENANT_SETTINGS, &(id,))?;
        let after = match named.and_then(|tenant| tenant.routing.clone()) {
            Some((default_recipient_pool, pipeline_mode)) => Some(TenantSettings {
                default_recipient_pool,
                pipeline_mode,
                from_file: true,
            }),
            None => before.clone().map(|settings| TenantSettings {
                from_file: false,
                ..settings
            }),
        };
        if let Some(settings) = after.filter(|after| before.as_ref() != Some(after)) {
            tx.put(&TENANT_SETTINGS, &(id,), &settings)?;
        }
    }
    Ok(true)
}
