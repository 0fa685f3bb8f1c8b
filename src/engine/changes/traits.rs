//! Traits and claim queues: declared, changed, deleted.

use serde_json::{Map, Value, json};

use super::declared::{Outcome, Refusal, Wisher, first_row, next_row, now};
use crate::domain::routing::bundle::names_trait;
use crate::domain::routing::patch::{same_objects, take_output_only};
use crate::domain::routing::print::{self, OUTPUT_OF_OTHERS, View};
use crate::domain::routing::read::{claim_queue, declared_trait};
use crate::store::routing_objects::put_trait;
use crate::store::routing_rows::{ObjectIdRow, ObjectRow};
use crate::store::tables::{CLAIM_QUEUE_NAMES, CLAIM_QUEUES, RECIPIENT_POOLS, TRAITS};
use crate::store::{Abort, Rows, StoreError, Tx, routing_live};
use crate::words::ids::{ClaimQueueId, TenantId};
use crate::words::limits;

/// A trait as it is answered.
pub fn shown(row: &ObjectRow, view: View) -> Value {
    print::other(
        "",
        row.stamp(),
        &row.fields(),
        json!({"required": false, "relax_after": "0s"}),
        view,
    )
}

/// A claim queue as it is answered.
pub fn shown_queue(id: ClaimQueueId, row: &ObjectRow, view: View) -> Value {
    print::other(
        &id.to_string(),
        row.stamp(),
        &row.fields(),
        json!({"hidden_fields": []}),
        view,
    )
}

/// Declares a trait, in place of one of the same key.
pub fn put(tx: &mut Tx<'_>, by: &Wisher, key: &str, mut given: Map<String, Value>) -> Result<Outcome, Abort> {
    let at = (by.tenant, key.to_owned());
    let before = tx.get(&TRAITS, &at)?;
    let as_shown = before
        .as_ref()
        .map_or(json!({"record_version": 0}), |row| shown(row, View::Effective));
    let mut faults = take_output_only(&mut given, &as_shown, &OUTPUT_OF_OTHERS);
    let mut read = declared_trait(key, given);
    faults.append(&mut read.faults);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    let row = match before {
        Some(before) if same_objects(&before.fields(), &read.set) => {
            return Ok(Outcome::done(&key, shown(&before, View::Set)));
        }
        Some(before) => next_row(&before, key, &read.set, now(tx)),
        None => {
            let max = limits::TRAITS_MAX;
            if tx.scan(&TRAITS, &(by.tenant,), None, max)?.len() >= max {
                let detail = format!("there are {max} traits, and more are not kept");
                return Ok(Outcome::Refused(Refusal::Full(detail)));
            }
            first_row(key, &read.set, now(tx))
        }
    };
    put_trait(tx, by.tenant, key, Some(&row))?;
    tx.tell("routing.trait", key, row.record_version, None);
    Ok(Outcome::done(&key, shown(&row, View::Set)))
}

/// Removes a trait that nothing filters by.
pub fn delete(tx: &mut Tx<'_>, by: &Wisher, key: &str) -> Result<Outcome, Abort> {
    let at = (by.tenant, key.to_owned());
    if !tx.has(&TRAITS, &at)? {
        return Ok(Outcome::missing("trait", &key));
    }
    if let Some(user) = user_of(tx, by.tenant, key)? {
        let detail = format!("pool `{user}` filters by the trait `{key}`");
        return Ok(Outcome::taken("trait.in_use", "", detail));
    }
    put_trait(tx, by.tenant, key, None)?;
    tx.tell("routing.trait", key, 0, Some("deleted"));
    Ok(Outcome::done(&key, json!({"key": key})))
}

/// The name of a recipient pool whose pipelines or options name a trait.
fn user_of(rows: &mut impl Rows, tenant: TenantId, key: &str) -> Result<Option<String>, StoreError> {
    for (_, row) in rows.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        let set = row.object.fields();
        if set.get("config").is_some_and(|config| names_trait(config, key)) {
            return Ok(Some(row.object.name));
        }
    }
    Ok(None)
}

/// Creates a claim queue.
pub fn create_queue(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: ClaimQueueId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let mut faults = take_output_only(&mut given, &json!({"record_version": 0}), &OUTPUT_OF_OTHERS);
    let mut read = claim_queue(given);
    faults.append(&mut read.faults);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    let name = read.object.name;
    if let Some(ObjectIdRow(holder)) = tx.get(&CLAIM_QUEUE_NAMES, &(by.tenant, name.clone()))? {
        let detail = format!("claim queue {} has the name `{name}`", ClaimQueueId(holder));
        return Ok(Outcome::taken("claim_queue.name_taken", "/name", detail));
    }
    let max = limits::CLAIM_QUEUES_MAX;
    if tx.scan(&CLAIM_QUEUES, &(by.tenant,), None, max)?.len() >= max {
        let detail = format!("there are {max} claim queues, and more are not kept");
        return Ok(Outcome::Refused(Refusal::Full(detail)));
    }
    let row = first_row(&name, &read.set, now(tx));
    tx.put(&CLAIM_QUEUES, &(by.tenant, id), &row)?;
    tx.put(&CLAIM_QUEUE_NAMES, &(by.tenant, name), &ObjectIdRow(id.0))?;
    routing_live::revise(tx, by.tenant)?;
    tx.tell("routing.claim_queue", id, 0, None);
    Ok(Outcome::done(&id, shown_queue(id, &row, View::Set)))
}
