//! The tenants of the configuration, made at a start and at a reload.

use crate::config::Config;
use crate::engine::changes::tenants::{Declared, ensure};
use crate::engine::core::Engine;
use crate::words::limits;

/// Who makes them.
const BY: &str = "configuration";

/// Makes those that are not there yet; says why it could not.
pub(super) async fn make(engine: &Engine, config: &Config) -> Result<(), String> {
    let tenants = config.tenants.iter().map(|tenant| Declared {
        name: tenant.name.clone(),
        routing: tenant
            .routing
            .as_ref()
            .map(|routing| (routing.default_pool.clone(), routing.pipeline_mode)),
    });
    let declared: Vec<Declared> = tenants.collect();
    let made = engine.store.change("tenants of the configuration", move |tx| {
        ensure(tx, &declared, BY)
    });
    match made.await {
        Ok(true) => Ok(()),
        Ok(false) => Err(format!(
            "there would be more than {} tenants, and no more may be",
            limits::TENANTS_MAX
        )),
        Err(error) => Err(error.to_string()),
    }
}
