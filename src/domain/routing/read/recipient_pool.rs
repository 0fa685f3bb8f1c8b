//! A recipient pool (wire: pool).

use serde_json::{Map, Value};

use super::config;
use super::fields::Fields;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{KillSwitch, RecipientPool, Status};
use crate::domain::routing::pipeline::{self, Options};
use crate::domain::routing::{recipes, strategies};
use crate::words::ids::{ClaimQueueId, RecipientPoolId};
use crate::words::limits;
use crate::words::time::Micros;

const KNOWN: [&str; 7] = [
    "name",
    "description",
    "status",
    "strategy",
    "config",
    "parent_pool_id",
    "metadata",
];

/// What another object is named as, and where: the change that stores the object looks whether it is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Target {
    /// It must exist and be another one.
    Other(String, RecipientPoolId),
    /// It must exist.
    RecipientPool(String, RecipientPoolId),
    /// It must exist, without a circle and not too deep.
    Parent(RecipientPoolId),
    /// One of this name must exist: where a pipeline falls back to.
    Named(String, String),
    /// It must exist.
    ClaimQueue(String, ClaimQueueId),
}

/// When an object was stored, and how often.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stamp {
    /// Grows by 1 with each stored change.
    pub record_version: u64,
    /// When it was created.
    pub created_at: Micros,
    /// When it was changed last.
    pub updated_at: Micros,
}

/// A recipient pool that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct RecipientPoolRead {
    /// With every default; of no use while there are faults.
    pub object: RecipientPool,
    /// What was set, in its one form.
    pub set: Map<String, Value>,
    /// What other objects it names.
    pub targets: Vec<Target>,
    /// All that is wrong.
    pub faults: Vec<Fault>,
    /// What may be meant otherwise.
    pub warnings: Vec<Fault>,
}

/// Reads a recipient pool out of what is set of it.
pub fn recipient_pool(
    id: RecipientPoolId,
    stamp: Stamp,
    kill_switch: Option<KillSwitch>,
    mut set: Map<String, Value>,
) -> RecipientPoolRead {
    let (mut faults, mut warnings, mut targets) = (Vec::new(), Vec::new(), Vec::new());
    let mut fields = Fields::new("", &mut set, &mut faults, &KNOWN);
    let name = fields.name("name").unwrap_or_default();
    let description = fields.text("description", limits::ROUTING_TEXT_CHARS_MAX);
    let status = fields.word("status", Status::of, Status::WORDS);
    let strategy = fields.text("strategy", limits::ROUTING_NAME_CHARS_MAX);
    let metadata = fields.metadata();
    let parent = fields.id::<RecipientPoolId>("parent_pool_id", "pool.not_found");
    targets.extend(parent.map(Target::Parent));
    let mut config = config::read(&mut fields, &mut targets, &mut warnings);
    config.kill_switch = kill_switch;
    if let Some(strategy) = &strategy {
        check_strategy(&mut fields, strategy, &config.strategy_pipelines);
    }
    let object = RecipientPool {
        id,
        name,
        description: description.unwrap_or_default(),
        status: status.unwrap_or(Status::Active),
        strategy,
        config,
        parent,
        metadata,
        record_version: stamp.record_version,
        created_at: stamp.created_at,
        updated_at: stamp.updated_at,
    };
    // A request may bring what is missing, so it is no fault.
    if faults.is_empty()
        && let Err(lacks) =
            pipeline::effective(&object.config, object.strategy.as_deref(), None, &Options::new())
    {
        warnings.extend(lacks);
    }
    RecipientPoolRead {
        object,
        set,
        targets,
        faults,
        warnings,
    }
}

/// A key of the catalogue, a recipe with its version, or a pipeline of this recipient pool.
fn check_strategy<V>(
    fields: &mut Fields<'_>,
    strategy: &str,
    pipelines: &std::collections::BTreeMap<String, V>,
) {
    if let Some(name) = strategy.strip_prefix("pipeline:") {
        if !pipelines.contains_key(name) {
            let detail = format!("`{name}` is no entry of config.strategy_pipelines");
            fields.fault("strategy", "pipeline.unknown", detail);
        }
        return;
    }
    let is_recipe = strategy.contains('@') && recipes::find(strategy).is_some();
    if !is_recipe && strategies::info(strategy).is_none() {
        fields.push(strategies::options::unknown("/strategy", strategy));
    }
}
