//! Shadow campaigns: created, changed, started, stopped, deleted.

use serde_json::{Map, Value, json};

use super::declared::{Outcome, Refusal, Wisher, first_row, next_row, now};
use crate::domain::routing::campaign::{Campaign, Status};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::patch::{merge, same_objects, take_output_only};
use crate::domain::routing::print::{self, View};
use crate::domain::routing::read::{self, Read};
use crate::store::live_rows::CampaignRow;
use crate::store::routing_rows::ObjectIdRow;
use crate::store::tables::{CAMPAIGN_NAMES, CAMPAIGNS};
use crate::store::{Abort, Rows, StoreError, Tx, routing_objects, shadows};
use crate::words::ids::{CampaignId, RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::time::Micros;

const KIND: &str = "shadow_campaign";
/// What ductor writes of it.
const OUTPUT: [&str; 5] = [
    "/id",
    "/stop_reason",
    "/record_version",
    "/created_at",
    "/updated_at",
];

/// A campaign as it is answered.
pub fn shown(id: CampaignId, row: &CampaignRow, at: Micros, view: View) -> Value {
    let set = row.object.fields();
    let defaults = json!({"state_mode": "mirrored", "sample_percent": 100, "max_micros_per_decision": 1000});
    let mut shown = print::other(&id.to_string(), row.object.stamp(), &set, defaults, view);
    let typed = read::campaign(set).object;
    let status = typed.status_at(at);
    shown["status"] = Value::from(status.word());
    let reason = match (&row.stop_reason, typed.ends_at) {
        (Some(reason), _) => Some(reason.clone()),
        (None, Some(end)) if status != typed.status => Some(format!("it ended at {end}")),
        (None, _) => None,
    };
    shown["stop_reason"] = reason.map_or(Value::Null, Value::from);
    shown
}

/// Creates one.
pub fn create(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: CampaignId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let mut faults = take_output_only(&mut given, &json!({"record_version": 0}), &OUTPUT);
    let mut read = read::campaign(given);
    faults.append(&mut read.faults);
    if read.object.status == Status::Stopped {
        let detail = "a new campaign is a draft, or runs";
        faults.push(Fault::new("/status", "field.value", detail));
    }
    if let Some(refused) = judge(tx, by.tenant, id, &read, faults)? {
        return Ok(refused);
    }
    let max = limits::CAMPAIGNS_MAX;
    if tx.scan(&CAMPAIGNS, &(by.tenant,), None, max)?.len() >= max {
        let detail = format!("there are {max} shadow campaigns, and more are not kept");
        return Ok(Outcome::Refused(Refusal::Full(detail)));
    }
    let row = CampaignRow {
        object: first_row(&read.object.name, &read.set, now(tx)),
        stop_reason: None,
        began: 0,
    };
    store(tx, by.tenant, id, &row)
}

/// Changes what is sent of it. What it compares stays while it runs; whoever starts it begins to count anew.
pub fn patch(
    tx: &mut Tx<'_>,
    by: &Wisher,
    id: CampaignId,
    mut given: Map<String, Value>,
) -> Result<Outcome, Abort> {
    let Some(before) = shadows::campaign(tx, by.tenant, id)? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    let at = now(tx);
    let as_shown = shown(id, &before, at, View::Effective);
    let mut faults = take_output_only(&mut given, &as_shown, &OUTPUT);
    let old = before.typed(by.tenant, id)?;
    let mut set = before.object.fields();
    // A campaign is told to run again by its status, also where only its time was over.
    let is_told_to_run = given.get("status").and_then(Value::as_str) == Some(Status::Running.word());
    merge(&mut set, given, &[]);
    let mut read = read::campaign(set);
    faults.append(&mut read.faults);
    if faults.is_empty() && old.status_at(at) == Status::Running && !read.object.asks_as(&old) {
        let detail = "it runs: stop it before it compares anything else";
        return Ok(Outcome::taken(
            "shadow_campaign.running",
            "/status",
            detail.to_owned(),
        ));
    }
    if read.object.status == Status::Draft && old.status != Status::Draft {
        faults.push(Fault::new(
            "/status",
            "field.value",
            "it has run: `running` or `stopped`",
        ));
    }
    if let Some(refused) = judge(tx, by.tenant, id, &read, faults)? {
        return Ok(refused);
    }
    let begins = read.object.status_at(at) == Status::Running && old.status_at(at) != Status::Running;
    if same_objects(&read.set, &before.object.fields()) && !(begins && is_told_to_run) {
        return Ok(Outcome::done(&id, shown(id, &before, at, View::Set)));
    }
    let object = next_row(&before.object, &read.object.name, &read.set, at);
    if begins || !read.object.asks_as(&old) {
        shadows::begin_anew(tx, by.tenant, id)?;
    }
    let row = CampaignRow {
        stop_reason: before
            .stop_reason
            .filter(|_| read.object.status == Status::Stopped),
        began: if begins {
            object.record_version
        } else {
            before.began
        },
        object,
    };
    store(tx, by.tenant, id, &row)
}

/// What stands against it, besides its form: its recipient pool, its name, others that run.
fn judge(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: CampaignId,
    read: &Read<Campaign>,
    mut faults: Vec<Fault>,
) -> Result<Option<Outcome>, StoreError> {
    let campaign = &read.object;
    let is_known = |fault: &Fault| fault.pointer == "/pool_id";
    if !faults.iter().any(is_known) {
        match routing_objects::recipient_pool(tx, tenant, campaign.recipient_pool)? {
            Some(recipient_pool) => {
                let has_candidate = !faults.iter().any(|fault| fault.pointer.starts_with("/candidate"));
                faults.extend(
                    has_candidate
                        .then(|| campaign.check(&recipient_pool))
                        .into_iter()
                        .flatten(),
                );
            }
            // One that was stopped because its recipient pool went may still be read, renamed and deleted.
            None if campaign.status == Status::Stopped => {}
            None => {
                let detail = format!("there is no pool {}", campaign.recipient_pool);
                faults.push(Fault::new("/pool_id", "pool.not_found", detail));
            }
        }
    }
    if !faults.is_empty() {
        return Ok(Some(Outcome::Refused(Refusal::Invalid(faults))));
    }
    let holder = tx.get(&CAMPAIGN_NAMES, &(tenant, campaign.name.clone()))?;
    if let Some(ObjectIdRow(holder)) = holder.filter(|holder| holder.0 != id.0) {
        let detail = format!(
            "shadow campaign {} has the name `{}`",
            CampaignId(holder),
            campaign.name
        );
        return Ok(Some(Outcome::taken(
            "shadow_campaign.name_taken",
            "/name",
            detail,
        )));
    }
    let at = now(tx);
    if campaign.status_at(at) != Status::Running {
        return Ok(None);
    }
    let others = shadows::of_recipient_pool(tx, tenant, campaign.recipient_pool)?;
    let running = others
        .iter()
        .filter(|(other, runs)| *other != id && runs.ends_at.is_none_or(|end| at < end));
    let max = limits::CAMPAIGNS_PER_POOL_MAX;
    let is_full = running.count() >= max;
    Ok(is_full.then(|| {
        let detail = format!("{max} shadow campaigns run on this pool; stop one first");
        Outcome::taken("shadow_campaign.too_many", "/status", detail)
    }))
}

fn store(tx: &mut Tx<'_>, tenant: TenantId, id: CampaignId, row: &CampaignRow) -> Result<Outcome, Abort> {
    shadows::put(tx, tenant, id, row)?;
    tell(tx, id, row, None);
    let at = now(tx);
    Ok(Outcome::done(&id, shown(id, row, at, View::Set)))
}

fn tell(tx: &mut Tx<'_>, id: CampaignId, row: &CampaignRow, detail: Option<&str>) {
    tx.tell("routing.shadow_campaign", id, row.object.record_version, detail);
}

/// Removes one.
pub fn delete(tx: &mut Tx<'_>, by: &Wisher, id: CampaignId) -> Result<Outcome, Abort> {
    let Some(row) = shadows::campaign(tx, by.tenant, id)? else {
        return Ok(Outcome::missing(KIND, &id));
    };
    shadows::remove(tx, by.tenant, id)?;
    tell(tx, id, &row, Some("deleted"));
    Ok(Outcome::done(&id, json!({"id": id.to_string()})))
}

/// Ends one that stops itself.
pub(super) fn stop(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: CampaignId,
    row: &CampaignRow,
    reason: &str,
) -> Result<CampaignRow, StoreError> {
    let after = row.stopped(reason, now(tx));
    shadows::put(tx, tenant, id, &after)?;
    tell(tx, id, &after, Some("stopped"));
    Ok(after)
}

/// Ends all that run on a recipient pool.
pub(super) fn stop_all(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    of: RecipientPoolId,
    reason: &str,
) -> Result<(), StoreError> {
    for (id, _) in shadows::of_recipient_pool(tx, tenant, of)? {
        if let Some(row) = shadows::campaign(tx, tenant, id)? {
            stop(tx, tenant, id, &row, reason)?;
        }
    }
    Ok(())
}
