//! Recipients: created, changed, moved between recipient pools, paused, deleted.

use serde_json::{Map, Value, json};

use super::declared::{Outcome, Refusal, Wisher, check_targets, first_row, next_row, now};
use super::routing::assignments;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::patch::{OF_RECIPIENT, merge, same_objects, take_output_only};
use crate::domain::routing::print::{self, OUTPUT_OF_RECIPIENT, View};
use crate::domain::routing::read::{Memberships, RecipientRead, Stamp, Target, recipient};
use crate::store::routing_objects::{put_recipient, remove_recipient};
use crate::store::routing_rows::{ObjectIdRow, RecipientRow};
use crate::store::tables::{MEMBERS, RECIPIENT_EXTERNAL_IDS, RECIPIENT_NAMES, RECIPIENT_POOLS, RECIPIENTS};
use crate::store::{Abort, Rows, StoreError, Tx, routing_live};
use crate::words::ids::{RecipientId, RecipientPoolId, TenantId};
use crate::words::limits;

const KIND: &str = "recipient";

/// A recipient as it is answered.
pub fn shown(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientId,
    row: &RecipientRow,
    view: View,
) -> Result<Value, StoreError> {
    let live = routing_live::live(rows, tenant, id)?;
    let live = live.unwrap_or_else(|| Live::new(RecipientState::Available, row.object.created_at));
    Ok(print::recipient(
        &row.typed(tenant, id)?,
        &row.object.fields(),
        &live,
        view,
    ))
}

/// Creates one as a member of a recipient pool.
pub fn create(
    tx: &mut Tx<'_>,
    by: &Wisher,
    primary: RecipientPoolId,
    id: RecipientId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENT_POOLS, &(by.tenant, primary))? {
        return Ok(Outcome::missing("pool", &primary));
    }
    let fresh = json!({"record_version": 0, "capacity": {"current": 0, "daily_count": 0}});
    let mut faults = take_output_only(&mut given, &fresh, &OUTPUT_OF_RECIPIENT);
    let said = Memberships::take(&mut given, &mut faults);
    if said.primary.is_some_and(|said| said != primary) {
        let detail = "is another pool than the path names";
        faults.push(Fault::new("/pool_id", "field.value", detail));
    }
    let members_of = said.after(&[primary]);
    let at = now(tx);
    let stamp = Stamp {
        record_version: 0,
        created_at: at,
        updated_at: at,
    };
    let mut read = recipient(id, stamp, members_of, given);
    faults.append(&mut read.faults);
    faults.extend(check_memberships(tx, by.tenant, &said, &read, &[])?);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(refused) = conflict(tx, by.tenant, id, &read, &[])? {
        return Ok(refused);
    }
    let row = RecipientRow {
        object: first_row(&read.object.name, &read.set, at),
        members_of: read.object.members_of.clone(),
        external_id: read.object.external_id.clone(),
    };
    put_recipient(tx, by.tenant, id, &row)?;
    routing_live::set_state(tx, by.tenant, id, said.state.unwrap_or(RecipientState::Available))?;
    answer(tx, by.tenant, id, &row)
}

/// Changes what is sent of it.
pub fn patch(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let Some(before) = tx.get(&RECIPIENTS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let as_shown = shown(tx, by.tenant, id, &before, View::Effective)?;
    let mut faults = take_output_only(&mut given, &as_shown, &OUTPUT_OF_RECIPIENT);
    let said = Memberships::take(&mut given, &mut faults);
    let mut set = before.object.fields();
    merge(&mut set, given, OF_RECIPIENT);
    let members_of = said.after(&before.members_of);
    let mut read = recipient(id, before.object.stamp(), members_of, set);
    faults.append(&mut read.faults);
    faults.extend(check_memberships(
        tx,
        by.tenant,
        &said,
        &read,
        &before.members_of,
    )?);
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(refused) = conflict(tx, by.tenant, id, &read, &before.members_of)? {
        return Ok(refused);
    }
    let is_news = match said.state {
        None => false,
        Some(state) => routing_live::set_state(tx, by.tenant, id, state)?,
    };
    let same =
        same_objects(&read.set, &before.object.fields()) && read.object.members_of == before.members_of;
    if same && !is_news {
        let view = shown(tx, by.tenant, id, &before, View::Set)?;
        return Ok(Outcome::done(&id, view));
    }
    let row = RecipientRow {
        object: next_row(&before.object, &read.object.name, &read.set, now(tx)),
        members_of: read.object.members_of.clone(),
        external_id: read.object.external_id.clone(),
    };
    put_recipient(tx, by.tenant, id, &row)?;
    answer(tx, by.tenant, id, &row)
}

fn answer(tx: &mut Tx<'_>, tenant: TenantId, id: RecipientId, row: &RecipientRow) -> Result<Outcome, Abort> {
    tx.tell("routing.recipient", id, row.object.record_version, None);
    let view = shown(tx, tenant, id, row, View::Set)?;
    Ok(Outcome::done(&id, view))
}

/// The recipient pools that a request names must be there.
fn check_memberships(
    rows: &mut impl Rows,
    tenant: TenantId,
    said: &Memberships,
    read: &RecipientRead,
    before: &[RecipientPoolId],
) -> Result<Vec<Fault>, StoreError> {
    let mut targets: Vec<Target> = Vec::new();
    targets.extend(
        said.primary
            .map(|id| Target::RecipientPool("/pool_id".to_owned(), id)),
    );
    for (index, id) in said.all.iter().flatten().enumerate() {
        targets.push(Target::RecipientPool(format!("/pool_ids/{index}"), *id));
    }
    targets.retain(|target| !matches!(target, Target::RecipientPool(_, id) if before.contains(id)));
    let mut faults = check_targets(rows, tenant, None, &targets, &[])?;
    if read.object.members_of.len() > limits::MEMBERSHIPS_MAX {
        let detail = format!(
            "a recipient is a member of at most {} pools",
            limits::MEMBERSHIPS_MAX
        );
        faults.push(Fault::new("/pool_ids", "field.range", detail));
    }
    Ok(faults)
}

/// Names are unique in each recipient pool, ids of the owner in the tenant; and a recipient pool has an end.
fn conflict(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientId,
    read: &RecipientRead,
    before: &[RecipientPoolId],
) -> Result<Option<Outcome>, StoreError> {
    let name = &read.object.name;
    for member_of in &read.object.members_of {
        let holder = rows.get(&RECIPIENT_NAMES, &(tenant, *member_of, name.clone()))?;
        if let Some(ObjectIdRow(holder)) = holder.filter(|holder| holder.0 != id.0) {
            let detail = format!(
                "recipient {} of pool {member_of} has the name `{name}`",
                RecipientId(holder)
            );
            return Ok(Some(Outcome::taken("recipient.name_taken", "/name", detail)));
        }
        if !before.contains(member_of) {
            let last = limits::MEMBERS_MAX;
            if rows.scan(&MEMBERS, &(tenant, *member_of), None, last)?.len() >= last {
                let detail = format!("pool {member_of} has {last} members, and more are not kept");
                return Ok(Some(Outcome::Refused(Refusal::Full(detail))));
            }
        }
    }
    let Some(external) = &read.object.external_id else {
        return Ok(None);
    };
    let holder = rows.get(&RECIPIENT_EXTERNAL_IDS, &(tenant, external.clone()))?;
    Ok(holder
        .filter(|holder| holder.0 != id.0)
        .map(|ObjectIdRow(holder)| {
            let detail = format!(
                "recipient {} has the external_id `{external}`",
                RecipientId(holder)
            );
            Outcome::taken("recipient.external_id_taken", "/external_id", detail)
        }))
}

/// Takes a recipient out of rotation, or puts it back. Memberships and numbers stay.
pub fn set_state(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientId,
    state: RecipientState,
) -> Result<Outcome, Abort> {
    let Some(before) = tx.get(&RECIPIENTS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    if !routing_live::set_state(tx, by.tenant, id, state)? {
        let view = shown(tx, by.tenant, id, &before, View::Set)?;
        return Ok(Outcome::done(&id, view));
    }
    let row = RecipientRow {
        object: next_row(
            &before.object,
            &before.object.name,
            &before.object.fields(),
            now(tx),
        ),
        ..before
    };
    put_recipient(tx, by.tenant, id, &row)?;
    answer(tx, by.tenant, id, &row)
}

/// Makes a recipient a member of one more recipient pool; the first is its primary one.
pub fn join(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientId,
    membership: RecipientPoolId,
) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENT_POOLS, &(by.tenant, membership))? {
        return Ok(Outcome::missing("pool", &membership));
    }
    let Some(before) = tx.get(&RECIPIENTS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    if before.members_of.contains(&membership) {
        let view = shown(tx, by.tenant, id, &before, View::Set)?;
        return Ok(Outcome::done(&id, view));
    }
    let members_of: Vec<RecipientPoolId> = before.members_of.iter().copied().chain([membership]).collect();
    let read = recipient(
        id,
        before.object.stamp(),
        members_of.clone(),
        before.object.fields(),
    );
    let faults = check_memberships(tx, by.tenant, &Memberships::default(), &read, &before.members_of)?;
    if !faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(faults)));
    }
    if let Some(refused) = conflict(tx, by.tenant, id, &read, &before.members_of)? {
        return Ok(refused);
    }
    let row = RecipientRow {
        object: next_row(
            &before.object,
            &before.object.name,
            &before.object.fields(),
            now(tx),
        ),
        members_of,
        ..before
    };
    put_recipient(tx, by.tenant, id, &row)?;
    answer(tx, by.tenant, id, &row)
}

/// Drops a membership that a caller names.
pub fn drop_membership(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: RecipientId,
    membership: RecipientPoolId,
) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENT_POOLS, &(by.tenant, membership))? {
        return Ok(Outcome::missing("pool", &membership));
    }
    if !tx.has(&MEMBERS, &(by.tenant, membership, id))? {
        return Ok(Outcome::missing(KIND, &id));
    }
    leave(tx, by.tenant, id, membership)?;
    let Some(row) = tx.get(&RECIPIENTS, &(by.tenant, id))? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let view = shown(tx, by.tenant, id, &row, View::Set)?;
    Ok(Outcome::done(&id, view))
}

/// Drops a membership; the next one becomes the primary one.
pub fn leave(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientId,
    membership: RecipientPoolId,
) -> Result<(), StoreError> {
    let Some(before) = tx.get(&RECIPIENTS, &(tenant, id))? else {
        return Ok(());
    };
    let mut members_of = before.members_of.clone();
    members_of.retain(|id| *id != membership);
    let row = RecipientRow {
        object: next_row(
            &before.object,
            &before.object.name,
            &before.object.fields(),
            now(tx),
        ),
        members_of,
        ..before
    };
    put_recipient(tx, tenant, id, &row)?;
    tx.tell("routing.recipient", id, row.object.record_version, None);
    Ok(())
}

/// Removes a recipient.
pub fn delete(tx: &mut Tx<'_>, by: &Wisher, id: RecipientId, release: bool) -> Result<Outcome, Abort> {
    if !tx.has(&RECIPIENTS, &(by.tenant, id))? {
        return Ok(Outcome::missing(KIND, &id));
    }
    if assignments::has_open(tx, by.tenant, id)? && !release {
        let detail = "it has open assignments; `?release=true` has them expire and go elsewhere";
        return Ok(Outcome::taken(
            "recipient.has_open_assignments",
            "",
            detail.to_owned(),
        ));
    }
    assignments::release(tx, by.tenant, id)?;
    routing_live::forget(tx, by.tenant, id)?;
    remove_recipient(tx, by.tenant, id)?;
    tx.tell("routing.recipient", id, 0, Some("deleted"));
    Ok(Outcome::done(&id, json!({"id": id.to_string()})))
}
