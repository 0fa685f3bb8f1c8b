//! Rules: created, changed, deleted; and what may be meant otherwise in them.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use super::declared::{Done, Outcome, Refusal, Wisher, check_targets, first_row, next_row, now};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{ActionKind, Rule};
use crate::domain::routing::patch::{OF_RULE, merge, same_objects, take_output_only};
use crate::domain::routing::pipeline::{self, Options};
use crate::domain::routing::print::{self, View};
use crate::domain::routing::read::{RuleRead, Stamp, rule};
use crate::domain::routing::sight;
use crate::store::live_rows::RuleErrors;
use crate::store::routing_objects::{
    members, put_rule, recipient, recipient_pool, remove_rule, rules_of, rules_of_tenant,
};
use crate::store::routing_rows::{ObjectIdRow, RuleRow};
use crate::store::tables::{RULE_ERRORS, RULE_NAMES, RULES};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::{RecipientPoolId, RuleId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "rule";
/// What went wrong with it.
const ERRORS: &str = "evaluation_errors";
/// What ductor writes of it.
const OUTPUT: [&str; 5] = [
    "/id",
    "/record_version",
    "/created_at",
    "/updated_at",
    "/evaluation_errors",
];
/// Members whose attributes are looked at when a rule is checked.
const MEMBERS_LOOKED_AT_MAX: usize = 200;

/// A rule as it is answered; with what went wrong with it in decisions.
pub fn shown(id: RuleId, row: &RuleRow, errors: Option<&RuleErrors>, view: View) -> Value {
    let mut shown = print::other(
        &id.to_string(),
        row.object.stamp(),
        &row.object.fields(),
        print::rule_defaults(),
        view,
    );
    if let Some(errors) = errors {
        shown[ERRORS] = json!({
            "count": errors.count, "since": errors.since, "last_at": errors.last_at,
            "last_error": errors.last_error, "last_decision_id": errors.last_decision,
        });
    }
    shown
}

/// The warning of a rule that could not be evaluated in decisions.
pub fn error_warning(errors: &RuleErrors) -> Fault {
    let decisions = match errors.count {
        1 => "one decision".to_owned(),
        many => format!("{many} decisions"),
    };
    let detail = format!(
        "it could not be evaluated in {decisions} since it was changed last, and counted as not matched: {}",
        errors.last_error
    );
    Fault::new("/expression", "rule.error", detail)
        .member("count", errors.count)
        .member("last_at", errors.last_at.to_string())
}

/// The rule that a body makes, or makes of a stored one, if nothing is wrong with it.
pub fn draft(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: Option<RuleId>,
    mut given: Map<String, Value>,
) -> Result<Option<Rule>, StoreError> {
    let before = match id {
        Some(id) => rows.get(&RULES, &(tenant, id))?,
        None => None,
    };
    for answered in OUTPUT {
        given.remove(answered.trim_start_matches('/'));
    }
    let (id, stamp, set) = match (id, before) {
        (Some(id), Some(before)) => (id, before.object.stamp(), merged(&before, given)),
        (Some(_), None) => return Ok(None),
        (None, _) => {
            let stamp = Stamp {
                record_version: 0,
                created_at: Micros(0),
                updated_at: Micros(0),
            };
            (RuleId([0; 16]), stamp, given)
        }
    };
    let read = rule(id, stamp, set);
    Ok(read.faults.is_empty().then_some(read.object))
}

/// The fields of a rule with those that are sent of it.
fn merged(before: &RuleRow, given: Map<String, Value>) -> Map<String, Value> {
    let mut set = before.object.fields();
    // Another kind of action has other fields: then it is replaced whole.
    if given
        .get("action")
        .is_some_and(|action| action.get("type").is_some())
    {
        set.remove("action");
    }
    merge(&mut set, given, OF_RULE);
    set
}

/// Creates one.
pub fn create(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RuleId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let mut faults = take_output_only(&mut given, &json!({"record_version": 0}), &OUTPUT);
    let at = now(tx);
    let stamp = Stamp {
        record_version: 0,
        created_at: at,
        updated_at: at,
    };
    let mut read = rule(id, stamp, given);
    faults.append(&mut read.faults);
    faults.extend(check_targets(
        tx,
        by.tenant,
        read.object.attached_to,
        &read.targets,
        &[],
    )?);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(taken) = name_taken(tx, by.tenant, id, &read.object.name)? {
        return Ok(taken);
    }
    let max = limits::RULES_MAX;
    if tx.scan(&RULES, &(by.tenant,), None, max)?.len() >= max {
        let detail = format!("there are {max} rules, and more are not kept");
        return Ok(Outcome::Refused(Refusal::Full(detail)));
    }
    let row = RuleRow {
        object: first_row(&read.object.name, &read.set, at),
        attached_to: read.object.attached_to,
    };
    store(tx, by.tenant, id, &row, &read)
}

/// Changes what is sent of it.
pub fn patch(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RuleId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let Some(before) = tx.get(&RULES, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let errors = tx.get(&RULE_ERRORS, &(by.tenant, id))?;
    let as_shown = shown(id, &before, errors.as_ref(), View::Effective);
    let mut faults = take_output_only(&mut given, &as_shown, &OUTPUT);
    let old = rule(id, before.object.stamp(), before.object.fields());
    let mut read = rule(id, before.object.stamp(), merged(&before, given));
    faults.append(&mut read.faults);
    faults.extend(check_targets(
        tx,
        by.tenant,
        read.object.attached_to,
        &read.targets,
        &old.targets,
    )?);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(taken) = name_taken(tx, by.tenant, id, &read.object.name)? {
        return Ok(taken);
    }
    if same_objects(&read.set, &before.object.fields()) {
        return answer(tx, by.tenant, id, &before, &read);
    }
    let row = RuleRow {
        object: next_row(&before.object, &read.object.name, &read.set, now(tx)),
        attached_to: read.object.attached_to,
    };
    store(tx, by.tenant, id, &row, &read)
}

/// Removes one.
pub fn delete(tx: &mut Tx<'_>, by: &Wisher, id: RuleId) -> Result<Outcome, Abort> {
    let Some(row) = tx.get(&RULES, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    remove_rule(tx, by.tenant, id)?;
    tell(tx, id, &row, Some("deleted"));
    Ok(Outcome::done(&id, json!({"id": id.to_string()})))
}

fn tell(tx: &mut Tx<'_>, id: RuleId, row: &RuleRow, detail: Option<&str>) {
    tx.tell("routing.rule", id, row.object.record_version, detail);
}

fn name_taken(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RuleId,
    name: &str,
) -> Result<Option<Outcome>, StoreError> {
    let holder = rows.get(&RULE_NAMES, &(tenant, name.to_owned()))?;
    Ok(holder
        .filter(|holder| holder.0 != id.0)
        .map(|ObjectIdRow(holder)| {
            let detail = format!("rule {} has the name `{name}`", RuleId(holder));
            Outcome::taken("rule.name_taken", "/name", detail)
        }))
}

fn store(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RuleId,
    row: &RuleRow,
    read: &RuleRead,
) -> Result<Outcome, Abort> {
    put_rule(tx, tenant, id, row)?;
    tell(tx, id, row, None);
    answer(tx, tenant, id, row, read)
}

fn answer(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RuleId,
    row: &RuleRow,
    read: &RuleRead,
) -> Result<Outcome, Abort> {
    let errors = rows.get(&RULE_ERRORS, &(tenant, id))?;
    Ok(Outcome::Done(Done {
        id: id.to_string(),
        shown: shown(id, row, errors.as_ref(), View::Set),
        warnings: lint(rows, tenant, &read.object)?,
    }))
}

/// What may be meant otherwise in a rule.
pub fn lint(rows: &mut impl Rows, tenant: TenantId, rule: &Rule) -> Result<Vec<Fault>, StoreError> {
    let mut warnings = Vec::new();
    warnings.extend(unreachable(rows, tenant, rule)?);
    if let Some(id) = rule.attached_to {
        if rule.action.kind == ActionKind::Boost {
            warnings.extend(without_effect(rows, tenant, id)?);
        }
        warnings.extend(unknown_attributes(rows, tenant, id, rule)?);
    }
    Ok(warnings)
}

/// The same expression ends the search before this rule is asked.
fn unreachable(rows: &mut impl Rows, tenant: TenantId, own: &Rule) -> Result<Option<Fault>, StoreError> {
    let ends = |kind: ActionKind| !matches!(kind, ActionKind::Filter | ActionKind::Boost);
    if !ends(own.action.kind) {
        return Ok(None);
    }
    let others = match own.attached_to {
        None => rules_of_tenant(rows, tenant)?,
        Some(id) => rules_of(rows, tenant, id)?,
    };
    let is_always = |rule: &Rule| rule.enabled && rule.valid_from.is_none() && rule.valid_until.is_none();
    let first = others.into_iter().find(|other| {
        other.id != own.id
            && is_always(other)
            && ends(other.action.kind)
            && other.expression.trim() == own.expression.trim()
            && (other.priority, &other.name) < (own.priority, &own.name)
    });
    Ok(first.map(|first| {
        let detail = format!("rule `{}` has the same expression and comes first", first.name);
        Fault::new("/expression", "rule.unreachable", detail)
    }))
}

/// A boost moves weights and scores: where the recipient pool uses neither, it moves nothing.
fn without_effect(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Option<Fault>, StoreError> {
    let Some(found) = recipient_pool(rows, tenant, id)? else {
        return Ok(None);
    };
    let effective = pipeline::effective(&found.config, found.strategy.as_deref(), None, &Options::new());
    let is_used = effective.is_ok_and(|pipeline| pipeline.uses_boosts());
    let detail = format!("pool `{}` picks neither by weight nor by score", found.name);
    Ok((!is_used).then(|| Fault::new("/action/boost", "rule.boost_no_effect", detail)))
}

/// Attributes that no member has.
fn unknown_attributes(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    rule: &Rule,
) -> Result<Vec<Fault>, StoreError> {
    let Ok(program) = sight::compile(&rule.expression, true) else {
        return Ok(Vec::new());
    };
    let mut wanted: BTreeSet<&str> = program
        .references()
        .iter()
        .filter_map(|path| match path.as_slice() {
            [variable, field, key, ..] if variable == "recipient" && field == "attributes" => {
                Some(key.as_str())
            }
            _ => None,
        })
        .collect();
    let members = members(rows, tenant, id)?;
    if members.is_empty() || members.len() > MEMBERS_LOOKED_AT_MAX {
        return Ok(Vec::new());
    }
    for member in members {
        if let Some(member) = recipient(rows, tenant, member)? {
            wanted.retain(|key| !member.attributes.contains_key(*key));
        }
    }
    let warn = |key: &str| {
        let detail = format!("no recipient of the pool has the attribute `{key}`");
        Fault::new("/expression", "rule.unknown_attribute", detail).member("attribute", key)
    };
    Ok(wanted.into_iter().map(warn).collect())
}
