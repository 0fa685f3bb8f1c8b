//! Recipient pools: created, changed, switched, reset, deleted.

use serde_json::{Map, Value, json};

use super::campaigns;
use super::declared::{
    Done, Outcome, Refusal, Wisher, check_alert_address, check_targets, first_row, named, next_row, now,
    referrers,
};
use super::recipients;
use super::routing::{assignments, waiting};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::patch::{OF_RECIPIENT_POOL, merge, same_objects, take_output_only};
use crate::domain::routing::print::{self, OUTPUT_OF_RECIPIENT_POOL, Switched, View};
use crate::domain::routing::read::{RecipientPoolRead, Stamp, recipient_pool};
use crate::store::routing_objects::{
    members, members_by_name, put_recipient_pool, recipient_pool_named, remove_recipient_pool, remove_rule,
    rules_by_name,
};
use crate::store::routing_rows::RecipientPoolRow;
use crate::store::tables::RECIPIENT_POOLS;
use crate::store::{Abort, Rows, StoreError, Tx, routing_live};
use crate::words::ids::{RecipientPoolId, TenantId};
use crate::words::limits;

const KIND: &str = "pool";
/// Recipient pools that are followed from one to the next when a circle is looked for.
const FOLLOWED_MAX: usize = 256;

/// A recipient pool as it is answered.
pub fn shown(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    row: &RecipientPoolRow,
    view: View,
) -> Result<Value, StoreError> {
    let typed = row.typed(tenant, id)?;
    let members = members_by_name(rows, tenant, id)?;
    let members: Vec<String> = members.iter().map(|(_, id)| id.to_string()).collect();
    let rules = rules_by_name(rows, tenant, Some(id))?;
    let rules: Vec<String> = rules.iter().map(|(_, id)| id.to_string()).collect();
    let set = row.object.fields();
    Ok(print::recipient_pool(
        &typed,
        &set,
        row.switched.as_ref(),
        &members,
        &rules,
        view,
    ))
}

/// Creates one.
pub fn create(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientPoolId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let fresh =
        json!({"recipient_ids": [], "rule_ids": [], "record_version": 0, "config": {"kill_switch": false}});
    let mut faults = take_output_only(&mut given, &fresh, &OUTPUT_OF_RECIPIENT_POOL);
    let at = now(tx);
    let stamp = Stamp {
        record_version: 0,
        created_at: at,
        updated_at: at,
    };
    let mut read = recipient_pool(id, stamp, None, given);
    faults.append(&mut read.faults);
    faults.extend(check_targets(tx, by.tenant, Some(id), &read.targets, &[])?);
    faults.extend(check_alert_address(&read.set, None, &by.egress));
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(taken) = name_taken(tx, by.tenant, id, &read.object.name)? {
        return Ok(taken);
    }
    let max = limits::RECIPIENT_POOLS_MAX;
    if tx.scan(&RECIPIENT_POOLS, &(by.tenant,), None, max)?.len() >= max {
        return Ok(Outcome::Refused(Refusal::Full(format!(
            "there are {max} pools, and more are not kept"
        ))));
    }
    let row = RecipientPoolRow {
        object: first_row(&read.object.name, &read.set, at),
        switched: None,
    };
    store(tx, by.tenant, id, &row, read)
}

/// Changes what is sent of it.
pub fn patch(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientPoolId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let Some(before) = tx.get(&RECIPIENT_POOLS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let as_shown = shown(tx, by.tenant, id, &before, View::Effective)?;
    let mut faults = take_output_only(&mut given, &as_shown, &OUTPUT_OF_RECIPIENT_POOL);
    let old = recipient_pool(id, before.object.stamp(), None, before.object.fields());
    let mut set = before.object.fields();
    merge(&mut set, given, OF_RECIPIENT_POOL);
    let mut read = recipient_pool(id, before.object.stamp(), before.kill_switch(), set);
    faults.append(&mut read.faults);
    faults.extend(check_targets(
        tx,
        by.tenant,
        Some(id),
        &read.targets,
        &old.targets,
    )?);
    faults.extend(check_alert_address(
        &read.set,
        Some(&before.object.fields()),
        &by.egress,
    ));
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(taken) = name_taken(tx, by.tenant, id, &read.object.name)? {
        return Ok(taken);
    }
    if same_objects(&read.set, &before.object.fields()) {
        return answer(tx, by.tenant, id, &before, read);
    }
    let row = RecipientPoolRow {
        object: next_row(&before.object, &read.object.name, &read.set, now(tx)),
        switched: before.switched,
    };
    store(tx, by.tenant, id, &row, read)
}

fn name_taken(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    name: &str,
) -> Result<Option<Outcome>, StoreError> {
    let holder = recipient_pool_named(rows, tenant, name)?.filter(|holder| *holder != id);
    Ok(holder.map(|holder| {
        let detail = format!("pool {holder} has the name `{name}`");
        Outcome::taken("pool.name_taken", "/name", detail)
    }))
}

fn store(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientPoolId,
    row: &RecipientPoolRow,
    read: RecipientPoolRead,
) -> Result<Outcome, Abort> {
    put_recipient_pool(tx, tenant, id, row)?;
    tx.tell("routing.pool", id, row.object.record_version, None);
    answer(tx, tenant, id, row, read)
}

fn answer(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
    row: &RecipientPoolRow,
    read: RecipientPoolRead,
) -> Result<Outcome, Abort> {
    let mut warnings = read.warnings;
    warnings.extend(circle(rows, tenant, id)?);
    Ok(Outcome::Done(Done {
        id: id.to_string(),
        shown: shown(rows, tenant, id, row, View::Set)?,
        warnings,
    }))
}

/// A warning where overflow and catchall lead back: legal, for depth stops it, and surely not meant to.
fn circle(rows: &mut impl Rows, tenant: TenantId, own: RecipientPoolId) -> Result<Option<Fault>, StoreError> {
    for first in ["/config/overflow_pool_id", "/config/catchall_pool_id"] {
        let targets = |set: &Map<String, Value>| {
            ["/config/overflow_pool_id", "/config/catchall_pool_id"].map(|place| named(set, place))
        };
        let row = rows.get(&RECIPIENT_POOLS, &(tenant, own))?;
        let mut ahead: Vec<RecipientPoolId> = row
            .and_then(|row| named(&row.object.fields(), first))
            .into_iter()
            .collect();
        let mut seen = Vec::new();
        while let Some(id) = ahead.pop() {
            if id == own {
                let detail = "overflow and catchall lead back to this pool; a pass visits each pool once";
                return Ok(Some(Fault::new(first, "config.pool_cycle", detail)));
            }
            if seen.contains(&id) || seen.len() >= FOLLOWED_MAX {
                continue;
            }
            seen.push(id);
            if let Some(row) = rows.get(&RECIPIENT_POOLS, &(tenant, id))? {
                ahead.extend(targets(&row.object.fields()).into_iter().flatten());
            }
        }
    }
    Ok(None)
}

/// Turns routing off, or on again. Also what is so already is stamped anew and counts.
pub fn set_enabled(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientPoolId,
    enabled: bool,
    reason: &str,
) -> Result<Outcome, Abort> {
    let Some(before) = tx.get(&RECIPIENT_POOLS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let at = now(tx);
    let row = RecipientPoolRow {
        object: next_row(&before.object, &before.object.name, &before.object.fields(), at),
        switched: Some(Switched {
            engaged: !enabled,
            reason: reason.to_owned(),
            at,
            by: by.principal.clone(),
        }),
    };
    put_recipient_pool(tx, by.tenant, id, &row)?;
    let word = if enabled { "enabled" } else { "disabled" };
    tx.tell("routing.pool", id, row.object.record_version, Some(word));
    let view = shown(tx, by.tenant, id, &row, View::Set)?;
    Ok(Outcome::done(&id, view))
}

/// Has nothing of its members count any more.
pub fn reset_capacity(tx: &mut Tx<'_>, by: &Wisher, id: RecipientPoolId) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENT_POOLS, &(by.tenant, id))? {
        return Ok(Outcome::missing(KIND, &id));
    }
    let members = members(tx, by.tenant, id)?;
    for member in &members {
        routing_live::reset_capacity(tx, by.tenant, *member)?;
        assignments::freed(tx, by.tenant, *member, "capacity was reset")?;
    }
    tx.tell("routing.pool", id, 0, Some("capacity reset"));
    Ok(Outcome::done(
        &id,
        json!({"pool_id": id.to_string(), "affected": members.len()}),
    ))
}

/// Removes it with its own rules; its recipients stay, without this membership.
pub fn delete(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientPoolId,
    if_unreferenced: bool,
) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENT_POOLS, &(by.tenant, id))? {
        return Ok(Outcome::missing(KIND, &id));
    }
    let warnings = referrers(tx, by.tenant, id)?;
    if if_unreferenced && let Some(first) = warnings.first() {
        let detail = match warnings.len() {
            1 => first.detail.clone(),
            many => format!("{}, and {} more", first.detail, many - 1),
        };
        return Ok(Outcome::taken("pool.referenced", "", detail));
    }
    let members = members(tx, by.tenant, id)?;
    for member in &members {
        recipients::leave(tx, by.tenant, *member, id)?;
    }
    let rules = rules_by_name(tx, by.tenant, Some(id))?;
    for (_, rule) in &rules {
        remove_rule(tx, by.tenant, *rule)?;
    }
    remove_recipient_pool(tx, by.tenant, id)?;
    campaigns::stop_all(tx, by.tenant, id, "its pool was deleted")?;
    let rerouted = waiting::reroute_all(tx, by.tenant, id)?;
    tx.tell("routing.pool", id, 0, Some("deleted"));
    Ok(Outcome::Done(Done {
        id: id.to_string(),
        shown: json!({
            "id": id.to_string(), "detached_recipients": members.len(), "removed_rules": rules.len(),
            "rerouted": rerouted,
        }),
        warnings,
    }))
}
