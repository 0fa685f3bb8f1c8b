//! The only writer of shadow campaigns and of what they say: rows of their own, which no decision is made from.

use serde_json::Value;

use super::error::StoreError;
use super::live_rows::{CampaignRow, CampaignRuns, ShadowResult};
use super::routing_objects::sound;
use super::routing_rows::ObjectIdRow;
use super::rows::Present;
use super::table::Rows;
use super::tables::{
    CAMPAIGN_NAMES, CAMPAIGNS, CAMPAIGNS_OF_POOL, SHADOW_PENDING, SHADOW_RESULTS, SHADOW_STATES,
    SHADOW_TALLIES,
};
use super::tx::Tx;
use crate::domain::routing::campaign::{self, Campaign, Status};
use crate::domain::routing::read;
use crate::words::ids::{CampaignId, DecisionId, RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::payload::JsonText;
use crate::words::time::Micros;

impl CampaignRow {
    /// As it is judged by.
    pub fn typed(&self, tenant: TenantId, id: CampaignId) -> Result<Campaign, StoreError> {
        let read = read::campaign(self.object.fields());
        sound(&CAMPAIGNS, &(tenant, id), &read.faults)?;
        Ok(read.object)
    }

    /// The same, ended by itself.
    #[must_use]
    pub fn stopped(&self, reason: &str, at: Micros) -> CampaignRow {
        let mut set = self.object.fields();
        set.insert("status".to_owned(), Value::from(Status::Stopped.word()));
        let mut after = self.clone();
        after.object.set = JsonText::of(&set).expect("what was read is plain JSON");
        after.object.record_version += 1;
        after.object.updated_at = at;
        after.stop_reason = Some(reason.to_owned());
        after
    }
}

/// One campaign.
pub fn campaign(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: CampaignId,
) -> Result<Option<CampaignRow>, StoreError> {
    rows.get(&CAMPAIGNS, &(tenant, id))
}

/// Keeps a campaign with its index rows.
pub fn put(tx: &mut Tx<'_>, tenant: TenantId, id: CampaignId, row: &CampaignRow) -> Result<(), StoreError> {
    unlink(tx, tenant, id)?;
    let typed = row.typed(tenant, id)?;
    tx.put(&CAMPAIGNS, &(tenant, id), row)?;
    tx.put(
        &CAMPAIGN_NAMES,
        &(tenant, row.object.name.clone()),
        &ObjectIdRow(id.0),
    )?;
    if typed.status == Status::Running {
        let runs = CampaignRuns {
            sample_percent: typed.sample_percent,
            starts_at: typed.starts_at,
            ends_at: typed.ends_at,
        };
        tx.put(&CAMPAIGNS_OF_POOL, &(tenant, typed.recipient_pool, id), &runs)?;
    }
    Ok(())
}

/// Removes what a campaign's row brought along.
fn unlink(tx: &mut Tx<'_>, tenant: TenantId, id: CampaignId) -> Result<(), StoreError> {
    let Some(before) = campaign(tx, tenant, id)? else {
        return Ok(());
    };
    let of_pool = before.typed(tenant, id)?.recipient_pool;
    tx.remove(&CAMPAIGN_NAMES, &(tenant, before.object.name))?;
    tx.remove(&CAMPAIGNS_OF_POOL, &(tenant, of_pool, id))?;
    Ok(())
}

/// Removes a campaign with its memory and its numbers. What it said of decisions goes with them.
pub fn remove(tx: &mut Tx<'_>, tenant: TenantId, id: CampaignId) -> Result<(), StoreError> {
    unlink(tx, tenant, id)?;
    begin_anew(tx, tenant, id)?;
    tx.remove(&CAMPAIGNS, &(tenant, id))?;
    Ok(())
}

/// Forgets what a campaign remembers and has counted.
pub fn begin_anew(tx: &mut Tx<'_>, tenant: TenantId, id: CampaignId) -> Result<(), StoreError> {
    for (key, _) in tx.scan(&SHADOW_STATES, &(tenant, id), None, usize::MAX)? {
        tx.remove(&SHADOW_STATES, &key)?;
    }
    tx.remove(&SHADOW_TALLIES, &(tenant, id))?;
    Ok(())
}

/// Campaigns that are declared to run on a recipient pool.
pub fn of_recipient_pool(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Vec<(CampaignId, CampaignRuns)>, StoreError> {
    let max = limits::CAMPAIGNS_MAX;
    let found = rows.scan(&CAMPAIGNS_OF_POOL, &(tenant, id), None, max)?;
    Ok(found.into_iter().map(|((_, _, id), runs)| (id, runs)).collect())
}

/// Has campaigns look at a decision that was written, after this commit.
pub fn pend(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    (decision, at): (DecisionId, Micros),
) -> Result<(), StoreError> {
    for (id, runs) in of_recipient_pool(tx, tenant, recipient_pool)? {
        let is_time = runs.starts_at.is_none_or(|from| from <= at) && runs.ends_at.is_none_or(|to| at < to);
        if is_time && campaign::is_sampled(id, decision, runs.sample_percent) {
            tx.put(&SHADOW_PENDING, &(tenant, decision, id), &Present {})?;
        }
    }
    Ok(())
}

/// What campaigns said of a decision.
pub fn results(
    rows: &mut impl Rows,
    tenant: TenantId,
    decision: DecisionId,
) -> Result<Vec<(CampaignId, ShadowResult)>, StoreError> {
    let found = rows.scan(&SHADOW_RESULTS, &(tenant, decision), None, limits::CAMPAIGNS_MAX)?;
    Ok(found
        .into_iter()
        .map(|((_, _, id), result)| (id, result))
        .collect())
}

/// Has campaigns look at the value of work that is done, if they said something of its decision.
pub fn pend_value(tx: &mut Tx<'_>, tenant: TenantId, decision: DecisionId) -> Result<(), StoreError> {
    for (id, result) in results(tx, tenant, decision)? {
        if !result.valued {
            tx.put(&SHADOW_PENDING, &(tenant, decision, id), &Present {})?;
        }
    }
    Ok(())
}

/// Removes all that belongs to a decision that goes.
pub(super) fn forget(tx: &mut Tx<'_>, tenant: TenantId, decision: DecisionId) -> Result<(), StoreError> {
    for (id, _) in results(tx, tenant, decision)? {
        tx.remove(&SHADOW_RESULTS, &(tenant, decision, id))?;
    }
    for (key, _) in tx.scan(&SHADOW_PENDING, &(tenant, decision), None, limits::CAMPAIGNS_MAX)? {
        tx.remove(&SHADOW_PENDING, &key)?;
    }
    Ok(())
}
