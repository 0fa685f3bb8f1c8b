//! Shadow campaigns.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::fields::{Fields, escaped};
use super::others::Read;
use crate::domain::routing::campaign::{Campaign, StateMode, Status};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::shadow::Contender;
use crate::words::ids::RecipientPoolId;
use crate::words::limits;

const FIELDS: [&str; 9] = [
    "name",
    "pool_id",
    "candidate",
    "state_mode",
    "sample_percent",
    "max_micros_per_decision",
    "starts_at",
    "ends_at",
    "status",
];

/// Reads a campaign out of what is set of it.
pub fn campaign(mut set: Map<String, Value>) -> Read<Campaign> {
    let mut faults = Vec::new();
    let mut fields = Fields::new("", &mut set, &mut faults, &FIELDS);
    let name = fields.name("name").unwrap_or_default();
    for needed in ["pool_id", "candidate"] {
        if !fields.has(needed) {
            fields.fault(needed, "field.required", "must be given");
        }
    }
    let recipient_pool: Option<RecipientPoolId> = fields.id("pool_id", "pool.not_found");
    let contender = contender(&mut fields);
    let state_mode = fields.word("state_mode", StateMode::of, StateMode::WORDS);
    let sample_percent = fields.whole32("sample_percent", 1, 100);
    let max_micros = fields.whole("max_micros_per_decision", 1, limits::CAMPAIGN_MICROS_MAX);
    let (starts_at, ends_at) = (fields.instant("starts_at"), fields.instant("ends_at"));
    if starts_at.is_some() && starts_at >= ends_at && ends_at.is_some() {
        fields.fault("ends_at", "field.range", "must be after `starts_at`");
    }
    let status = fields.word("status", Status::of, Status::WORDS);
    let object = Campaign {
        name,
        recipient_pool: recipient_pool.unwrap_or(RecipientPoolId([0; 16])),
        contender,
        state_mode: state_mode.unwrap_or(StateMode::Mirrored),
        sample_percent: sample_percent.unwrap_or(100),
        max_micros: max_micros.unwrap_or(1_000),
        starts_at,
        ends_at,
        status: status.unwrap_or(Status::Draft),
    };
    Read { object, set, faults }
}

/// Either a strategy with its options, or a pipeline.
fn contender(fields: &mut Fields<'_>) -> Contender {
    let mut found = Contender {
        strategy: None,
        strategy_options: BTreeMap::new(),
        pipeline: None,
    };
    let Some(mut part) = fields.part("candidate", &["strategy", "strategy_options", "pipeline"]) else {
        return found;
    };
    found.strategy = part.text("strategy", limits::ROUTING_WORD_CHARS_MAX);
    let at = part.pointer("strategy_options");
    for (strategy, options) in part.map("strategy_options").unwrap_or_default() {
        match options {
            Value::Object(map) => {
                found.strategy_options.insert(strategy, map);
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
                let pointer = format!("{at}/{}", escaped(&strategy));
                part.push(Fault::new(pointer, "field.type", "must be an object"));
            }
        }
    }
    found.pipeline = part.raw("pipeline").cloned();
    match (
        part.has("pipeline"),
        part.has("strategy"),
        part.has("strategy_options"),
    ) {
        (true, true, _) | (true, _, true) => {
            let detail = "a candidate is either a strategy with its options, or a pipeline";
            part.fault("pipeline", "shadow_campaign.either", detail);
        }
        (false, false, _) => {
            part.fault(
                "strategy",
                "field.required",
                "must be given, or `pipeline` instead",
            );
        }
        (true, false, false) | (false, true, _) => {}
    }
    found
}
