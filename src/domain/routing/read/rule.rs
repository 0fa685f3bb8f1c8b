//! A rule, of a tenant or of a recipient pool.

use serde_json::{Map, Value};

use super::fields::Fields;
use super::recipient_pool::{Stamp, Target};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{Action, ActionKind, Rule};
use crate::domain::routing::sight;
use crate::words::ids::{RecipientPoolId, RuleId};
use crate::words::limits;

const KNOWN: [&str; 10] = [
    "name",
    "description",
    "pool_id",
    "priority",
    "expression",
    "action",
    "enabled",
    "valid_from",
    "valid_until",
    "continue",
];
const PRIORITY: u32 = 100;
const PRIORITY_MAX: u32 = 1_000_000;

/// A rule that was read.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleRead {
    /// With every default; of no use while there are faults.
    pub object: Rule,
    /// What was set, in its one form.
    pub set: Map<String, Value>,
    /// What other objects it names.
    pub targets: Vec<Target>,
    /// All that is wrong.
    pub faults: Vec<Fault>,
}

/// Reads a rule out of what is set of it.
pub fn rule(id: RuleId, stamp: Stamp, mut set: Map<String, Value>) -> RuleRead {
    let (mut faults, mut targets) = (Vec::new(), Vec::new());
    let mut fields = Fields::new("", &mut set, &mut faults, &KNOWN);
    let name = fields.name("name").unwrap_or_default();
    let description = fields.text("description", limits::ROUTING_TEXT_CHARS_MAX);
    let attached_to = fields.id::<RecipientPoolId>("pool_id", "pool.not_found");
    targets.extend(attached_to.map(|id| Target::RecipientPool("/pool_id".to_owned(), id)));
    let is_attached = fields.has("pool_id");
    let priority = fields.whole32("priority", 0, PRIORITY_MAX);
    let enabled = fields.flag("enabled");
    let valid_from = fields.instant("valid_from");
    let valid_until = fields.instant("valid_until");
    if valid_from
        .zip(valid_until)
        .is_some_and(|(from, until)| until <= from)
    {
        fields.fault("valid_until", "rule.window", "must be later than valid_from");
    }
    let action = read_action(&mut fields, is_attached, &mut targets);
    let goes_on = fields.flag("continue");
    let is_per_recipient = matches!(action.kind, ActionKind::Filter | ActionKind::Boost);
    if goes_on == Some(true) && !is_per_recipient && fields.has("action") {
        let detail = format!("a rule that is a `{}` ends the search", action.kind.word());
        fields.fault("continue", "rule.action", detail);
    }
    let expression = read_expression(&mut fields, is_per_recipient);
    let object = Rule {
        id,
        name,
        description: description.unwrap_or_default(),
        attached_to,
        priority: priority.unwrap_or(PRIORITY),
        expression,
        action,
        enabled: enabled.unwrap_or(true),
        valid_from,
        valid_until,
        record_version: stamp.record_version,
        created_at: stamp.created_at,
        updated_at: stamp.updated_at,
    };
    RuleRead {
        object,
        set,
        targets,
        faults,
    }
}

fn read_expression(fields: &mut Fields<'_>, sees_recipient: bool) -> String {
    let Some(value) = fields.raw("expression") else {
        fields.fault("expression", "field.required", "must be given");
        return String::new();
    };
    let Some(text) = value.as_str().map(str::to_owned) else {
        fields.fault("expression", "field.type", "must be a text");
        return String::new();
    };
    if let Err(fault) = sight::compile_rule(&text, sees_recipient) {
        fields.push(sight::fault_at("/expression", &text, &fault));
    }
    text
}

fn read_action(fields: &mut Fields<'_>, is_attached: bool, targets: &mut Vec<Target>) -> Action {
    let mut action = Action {
        kind: ActionKind::Drop,
        target: None,
        boost: 0.0,
        reason: None,
    };
    if !fields.has("action") {
        fields.fault("action", "field.required", "must be given");
        return action;
    }
    let Some(mut part) = fields.part("action", &["type", "pool_id", "boost", "reason"]) else {
        return action;
    };
    if !part.has("type") {
        part.fault("type", "field.required", "must be given");
    }
    let Some(kind) = part.word("type", ActionKind::of, ActionKind::WORDS) else {
        return action;
    };
    action.kind = kind;
    let allowed = match (is_attached, kind) {
        (false, ActionKind::SelectPool | ActionKind::Drop)
        | (true, ActionKind::Filter | ActionKind::Boost | ActionKind::Redirect | ActionKind::Drop) => true,
        (false, ActionKind::Filter | ActionKind::Boost | ActionKind::Redirect)
        | (true, ActionKind::SelectPool) => false,
    };
    if !allowed {
        let detail = if is_attached {
            "a rule of a pool is a `filter`, `boost`, `redirect` or `drop`"
        } else {
            "a rule without a pool is a `select_pool` or `drop`"
        };
        part.fault("type", "rule.action", detail);
    }
    let leads = matches!(kind, ActionKind::SelectPool | ActionKind::Redirect);
    match (leads, part.has("pool_id")) {
        (true, false) => part.fault("pool_id", "field.required", "says where the work goes"),
        (false, true) => {
            let detail = format!("a `{}` leads nowhere", kind.word());
            part.fault("pool_id", "rule.action", detail);
        }
        (true, true) | (false, false) => {}
    }
    action.target = part.id::<RecipientPoolId>("pool_id", "pool.not_found");
    targets.extend(action.target.map(|id| Target::Other(part.pointer("pool_id"), id)));
    match (kind == ActionKind::Boost, part.has("boost")) {
        (true, false) => part.fault("boost", "field.required", "says by how much"),
        (false, true) => {
            let detail = format!("a `{}` has no boost", kind.word());
            part.fault("boost", "rule.action", detail);
        }
        (true, true) | (false, false) => {}
    }
    action.boost = part.number("boost", -1.0, 100.0).unwrap_or(0.0);
    action.reason = part.text("reason", limits::ROUTING_TEXT_CHARS_MAX);
    action
}
