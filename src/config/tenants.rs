//! The section `tenants`: who shares the daemon, and how their work is routed.

use std::rc::Rc;

use serde::{Serialize, Serializer};

use super::access::tenant_name;
use super::fault::{Fault, shown};
use super::keys::Section;
use super::reading::{Field, Fields, Reading};
use super::sections::{open, set};
use super::tree::Node;
use crate::domain::routing::objects::PipelineMode;
use crate::words::limits;

const MODES: [(&str, PipelineMode); 4] = [
    ("inherit", PipelineMode::Inherit),
    ("linear", PipelineMode::Linear),
    ("dag", PipelineMode::Dag),
    ("shadow", PipelineMode::Shadow),
];

/// A tenant that is there from the start on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantConfig {
    pub name: String,
    /// None: the file says nothing of it, and the API may.
    pub routing: Option<TenantRoutingConfig>,
}

/// How the work of a tenant is routed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TenantRoutingConfig {
    /// The id or the name of a recipient pool.
    pub default_pool: Option<String>,
    #[serde(serialize_with = "shown_mode")]
    pub pipeline_mode: PipelineMode,
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde hands over a reference to the field"
)]
pub(super) fn shown_mode<S: Serializer>(mode: &PipelineMode, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(mode.word())
}

pub(super) fn tenants(reading: &mut Reading<'_>, field: &Field) -> Vec<TenantConfig> {
    let items = reading.list(field).unwrap_or_default();
    if items.len() > limits::TENANTS_MAX {
        let message = format!("{} may have at most {} items", field.label, limits::TENANTS_MAX);
        reading.error("config/too-large", field.at(), message);
        return Vec::new();
    }
    let mut found: Vec<TenantConfig> = Vec::new();
    for item in &items {
        let Some(tenant) = tenant(reading, item) else {
            continue;
        };
        if found.iter().any(|other| other.name == tenant.name) {
            let message = format!("tenant '{}' is given twice", shown(&tenant.name));
            reading.report(Fault::error("config/duplicate-key", &item.at, message));
        } else {
            found.push(tenant);
        }
    }
    found
}

fn tenant(reading: &mut Reading<'_>, item: &Rc<Node>) -> Option<TenantConfig> {
    let fields = reading.fields(item, Section::Tenant)?.with_path("tenants.");
    let Some(field) = fields.get("name") else {
        reading.error("config/missing", &fields.at, "a tenant needs a `name`");
        return None;
    };
    let name = tenant_name(reading, &field)?;
    let routing = match fields.get("routing") {
        Some(field) => Some(tenant_routing(reading, &field)?),
        None => None,
    };
    Some(TenantConfig { name, routing })
}

fn tenant_routing(reading: &mut Reading<'_>, field: &Field) -> Option<TenantRoutingConfig> {
    let fields = open(reading, field, Section::TenantRouting, "tenants.routing.")?;
    let default_pool = match fields.get("defaultPool") {
        Some(field) => Some(reading.substituted(&field)?),
        None => None,
    };
    let mut pipeline_mode = PipelineMode::Inherit;
    set(&mut pipeline_mode, mode(reading, &fields));
    Some(TenantRoutingConfig {
        default_pool,
        pipeline_mode,
    })
}

pub(super) fn mode(reading: &mut Reading<'_>, fields: &Fields) -> Option<PipelineMode> {
    let field = fields.get("pipelineMode")?;
    let text = format!("{} must be inherit, linear, dag or shadow", field.label);
    reading.choice(&field, &MODES, &text)
}
