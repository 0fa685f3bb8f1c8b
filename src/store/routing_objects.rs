//! Declared objects of routing: typed readers, and the only writers of the rows that have index rows.

use serde_json::{Map, Value};

use super::error::StoreError;
use super::keys::Key;
use super::live_rows::RuleErrors;
use super::routing_live;
use super::routing_rows::{NameRow, ObjectIdRow, ObjectRow, RecipientPoolRow, RecipientRow, RuleRow};
use super::table::{Rows, Table};
use super::tables::{
    MEMBERS, RECIPIENT_EXTERNAL_IDS, RECIPIENT_NAMES, RECIPIENT_POOL_NAMES, RECIPIENT_POOLS, RECIPIENTS,
    RULE_ERRORS, RULE_NAMES, RULES, RULES_OF, TRAITS,
};
use super::tx::Tx;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::{KillSwitch, Recipient, RecipientPool, Rule, Trait};
use crate::domain::routing::read::{self, Stamp};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId, TenantId, hex};
use crate::words::limits;
use crate::words::time::Micros;

/// Rules of the tenant stand in the index under this id.
pub const OF_TENANT: RecipientPoolId = RecipientPoolId([0; 16]);

impl ObjectRow {
    /// When it was stored, and how often.
    pub fn stamp(&self) -> Stamp {
        Stamp {
            record_version: self.record_version,
            created_at: self.created_at,
            updated_at: self.updated_at,
        }
    }

    /// What was set.
    pub fn fields(&self) -> Map<String, Value> {
        self.set.read().unwrap_or_default()
    }
}

impl RecipientPoolRow {
    /// The switch, if it is on.
    pub fn kill_switch(&self) -> Option<KillSwitch> {
        let switched = self.switched.as_ref().filter(|switched| switched.engaged)?;
        Some(KillSwitch {
            reason: switched.reason.clone(),
            at: switched.at,
            by: switched.by.clone(),
        })
    }

    /// As it routes.
    pub fn typed(&self, tenant: TenantId, id: RecipientPoolId) -> Result<RecipientPool, StoreError> {
        let read = read::recipient_pool(id, self.object.stamp(), self.kill_switch(), self.object.fields());
        sound(&RECIPIENT_POOLS, &(tenant, id), &read.faults)?;
        Ok(read.object)
    }
}

impl RecipientRow {
    /// As it is routed to.
    pub fn typed(&self, tenant: TenantId, id: RecipientId) -> Result<Recipient, StoreError> {
        let members_of = self.members_of.clone();
        let read = read::recipient(id, self.object.stamp(), members_of, self.object.fields());
        sound(&RECIPIENTS, &(tenant, id), &read.faults)?;
        Ok(read.object)
    }
}

impl RuleRow {
    /// As it counts.
    pub fn typed(&self, tenant: TenantId, id: RuleId) -> Result<Rule, StoreError> {
        let read = read::rule(id, self.object.stamp(), self.object.fields());
        // An expression that a later version of the program refuses is an error of the rule where it counts.
        let others = read
            .faults
            .into_iter()
            .filter(|fault| fault.pointer != "/expression");
        sound(&RULES, &(tenant, id), &others.collect::<Vec<_>>())?;
        Ok(read.object)
    }
}

/// What was stored has been checked; what the reader refuses now is damage.
pub(super) fn sound<K: Key, R>(table: &Table<K, R>, key: &K, faults: &[Fault]) -> Result<(), StoreError> {
    match faults.first() {
        None => Ok(()),
        Some(fault) => Err(StoreError::Unreadable {
            table: table.name(),
            key: hex(&key.encode()),
            cause: format!("{}: {}", fault.pointer, fault.detail),
        }),
    }
}

/// One recipient pool.
pub fn recipient_pool(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Option<RecipientPool>, StoreError> {
    let row = rows.get(&RECIPIENT_POOLS, &(tenant, id))?;
    row.map(|row| row.typed(tenant, id)).transpose()
}

/// The recipient pool of a name.
pub fn recipient_pool_named(
    rows: &mut impl Rows,
    tenant: TenantId,
    name: &str,
) -> Result<Option<RecipientPoolId>, StoreError> {
    let row = rows.get(&RECIPIENT_POOL_NAMES, &(tenant, name.to_owned()))?;
    Ok(row.map(|ObjectIdRow(id)| RecipientPoolId(id)))
}

/// One recipient.
pub fn recipient(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientId,
) -> Result<Option<Recipient>, StoreError> {
    let row = rows.get(&RECIPIENTS, &(tenant, id))?;
    row.map(|row| row.typed(tenant, id)).transpose()
}

/// The members of a recipient pool, by their ids.
pub fn members(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Vec<RecipientId>, StoreError> {
    let found = rows.scan(&MEMBERS, &(tenant, id), None, limits::MEMBERS_MAX)?;
    Ok(found.into_iter().map(|((_, _, member), _)| member).collect())
}

/// The members of a recipient pool with their names, by name and then id.
pub fn members_by_name(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Vec<(String, RecipientId)>, StoreError> {
    let found = rows.scan(&MEMBERS, &(tenant, id), None, limits::MEMBERS_MAX)?;
    let mut named: Vec<(String, RecipientId)> = found
        .into_iter()
        .map(|((_, _, member), NameRow(name))| (name, member))
        .collect();
    named.sort_unstable();
    Ok(named)
}

/// The rules of a recipient pool, or of the tenant, with their names, by name and then id.
pub fn rules_by_name(
    rows: &mut impl Rows,
    tenant: TenantId,
    of: Option<RecipientPoolId>,
) -> Result<Vec<(String, RuleId)>, StoreError> {
    let prefix = (tenant, of.unwrap_or(OF_TENANT));
    let found = rows.scan(&RULES_OF, &prefix, None, limits::RULES_MAX)?;
    let mut named: Vec<(String, RuleId)> = found
        .into_iter()
        .map(|((_, _, rule), NameRow(name))| (name, rule))
        .collect();
    named.sort_unstable();
    Ok(named)
}

/// The rules without a recipient pool.
pub fn rules_of_tenant(rows: &mut impl Rows, tenant: TenantId) -> Result<Vec<Rule>, StoreError> {
    rules_of(rows, tenant, OF_TENANT)
}

/// The rules of a recipient pool.
pub fn rules_of(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Vec<Rule>, StoreError> {
    let found = rows.scan(&RULES_OF, &(tenant, id), None, limits::RULES_MAX)?;
    let mut rules = Vec::with_capacity(found.len());
    for ((_, _, rule), _) in found {
        let row = rows.get(&RULES, &(tenant, rule))?;
        rules.extend(row.map(|row| row.typed(tenant, rule)).transpose()?);
    }
    Ok(rules)
}

/// The traits of a tenant, by key.
pub fn traits(rows: &mut impl Rows, tenant: TenantId) -> Result<Vec<Trait>, StoreError> {
    let found = rows.scan(&TRAITS, &(tenant,), None, limits::TRAITS_MAX)?;
    let one = |((_, key), row): ((TenantId, String), ObjectRow)| {
        let read = read::declared_trait(&key, row.fields());
        sound(&TRAITS, &(tenant, key), &read.faults)?;
        Ok(read.object)
    };
    found.into_iter().map(one).collect()
}

/// What was compiled of the objects of a tenant is outdated, and what waits in a recipient pool may find somebody now.
fn changed(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: Option<RecipientPoolId>,
    why: &str,
) -> Result<(), StoreError> {
    routing_live::revise(tx, tenant)?;
    if let Some(recipient_pool) = recipient_pool {
        routing_live::stir(tx, tenant, recipient_pool, why)?;
    }
    Ok(())
}

/// Writes a recipient pool with its name.
pub fn put_recipient_pool(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientPoolId,
    row: &RecipientPoolRow,
) -> Result<(), StoreError> {
    let before = tx.get(&RECIPIENT_POOLS, &(tenant, id))?;
    let name = &row.object.name;
    if let Some(before) = before.filter(|before| before.object.name != *name) {
        tx.remove(&RECIPIENT_POOL_NAMES, &(tenant, before.object.name))?;
    }
    tx.put(&RECIPIENT_POOL_NAMES, &(tenant, name.clone()), &ObjectIdRow(id.0))?;
    tx.put(&RECIPIENT_POOLS, &(tenant, id), row)?;
    changed(tx, tenant, Some(id), "the pool has changed")
}

/// Removes a recipient pool; its members and rules go before.
pub fn remove_recipient_pool(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<(), StoreError> {
    if let Some(row) = tx.get(&RECIPIENT_POOLS, &(tenant, id))? {
        tx.remove(&RECIPIENT_POOL_NAMES, &(tenant, row.object.name))?;
        tx.remove(&RECIPIENT_POOLS, &(tenant, id))?;
    }
    routing_live::forget_pool(tx, tenant, id)?;
    changed(tx, tenant, None, "")?;
    for ((_, id), _) in tx.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        routing_live::stir(tx, tenant, id, "a trait has changed")?;
    }
    Ok(())
}

/// Writes a recipient with its memberships, its name and its owner's id.
pub fn put_recipient(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientId,
    row: &RecipientRow,
) -> Result<(), StoreError> {
    let before = tx.get(&RECIPIENTS, &(tenant, id))?;
    remove_indexes(tx, tenant, id)?;
    let name = &row.object.name;
    for member_of in &row.members_of {
        tx.put(&MEMBERS, &(tenant, *member_of, id), &NameRow(name.clone()))?;
        tx.put(
            &RECIPIENT_NAMES,
            &(tenant, *member_of, name.clone()),
            &ObjectIdRow(id.0),
        )?;
    }
    if let Some(external) = &row.external_id {
        tx.put(
            &RECIPIENT_EXTERNAL_IDS,
            &(tenant, external.clone()),
            &ObjectIdRow(id.0),
        )?;
    }
    tx.put(&RECIPIENTS, &(tenant, id), row)?;
    let left = before.into_iter().flat_map(|before| before.members_of);
    for recipient_pool in left.filter(|left| !row.members_of.contains(left)) {
        routing_live::forget_member(tx, tenant, recipient_pool, id)?;
        changed(tx, tenant, Some(recipient_pool), "a member has left")?;
    }
    for recipient_pool in &row.members_of {
        changed(tx, tenant, Some(*recipient_pool), "a member has changed")?;
    }
    Ok(())
}

/// Removes a recipient.
pub fn remove_recipient(tx: &mut Tx<'_>, tenant: TenantId, id: RecipientId) -> Result<(), StoreError> {
    let before = tx.get(&RECIPIENTS, &(tenant, id))?;
    for recipient_pool in before.into_iter().flat_map(|before| before.members_of) {
        routing_live::forget_member(tx, tenant, recipient_pool, id)?;
        changed(tx, tenant, Some(recipient_pool), "a member has left")?;
    }
    remove_indexes(tx, tenant, id)?;
    tx.remove(&RECIPIENTS, &(tenant, id))?;
    Ok(())
}

fn remove_indexes(tx: &mut Tx<'_>, tenant: TenantId, id: RecipientId) -> Result<(), StoreError> {
    let Some(before) = tx.get(&RECIPIENTS, &(tenant, id))? else {
        return Ok(());
    };
    // Two may have exchanged their names in one change: then a name is the other's by now.
    for member_of in &before.members_of {
        tx.remove(&MEMBERS, &(tenant, *member_of, id))?;
        let at = (tenant, *member_of, before.object.name.clone());
        if tx.get(&RECIPIENT_NAMES, &at)? == Some(ObjectIdRow(id.0)) {
            tx.remove(&RECIPIENT_NAMES, &at)?;
        }
    }
    if let Some(external) = before.external_id {
        let at = (tenant, external);
        if tx.get(&RECIPIENT_EXTERNAL_IDS, &at)? == Some(ObjectIdRow(id.0)) {
            tx.remove(&RECIPIENT_EXTERNAL_IDS, &at)?;
        }
    }
    Ok(())
}

/// Writes a rule with its name and where it belongs.
pub fn put_rule(tx: &mut Tx<'_>, tenant: TenantId, id: RuleId, row: &RuleRow) -> Result<(), StoreError> {
    remove_rule(tx, tenant, id)?;
    let name = &row.object.name;
    let of = row.attached_to.unwrap_or(OF_TENANT);
    tx.put(&RULE_NAMES, &(tenant, name.clone()), &ObjectIdRow(id.0))?;
    tx.put(&RULES_OF, &(tenant, of, id), &NameRow(name.clone()))?;
    tx.put(&RULES, &(tenant, id), row)?;
    changed(tx, tenant, row.attached_to, "a rule has changed")
}

/// Removes a rule.
pub fn remove_rule(tx: &mut Tx<'_>, tenant: TenantId, id: RuleId) -> Result<(), StoreError> {
    if let Some(before) = tx.get(&RULES, &(tenant, id))? {
        tx.remove(&RULE_NAMES, &(tenant, before.object.name))?;
        tx.remove(&RULES_OF, &(tenant, before.attached_to.unwrap_or(OF_TENANT), id))?;
        tx.remove(&RULES, &(tenant, id))?;
        tx.remove(&RULE_ERRORS, &(tenant, id))?;
        changed(tx, tenant, before.attached_to, "a rule has gone")?;
    }
    Ok(())
}

/// A rule could not be evaluated in a decision that is written.
pub fn note_rule_error(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RuleId,
    error: &str,
    (decision, at): (DecisionId, Micros),
) -> Result<(), StoreError> {
    let before = tx.get(&RULE_ERRORS, &(tenant, id))?;
    let after = RuleErrors {
        count: before.as_ref().map_or(1, |before| before.count + 1),
        since: before.map_or(at, |before| before.since),
        last_at: at,
        last_error: error.chars().take(limits::RULE_ERROR_CHARS_MAX).collect(),
        last_decision: decision,
    };
    tx.put(&RULE_ERRORS, &(tenant, id), &after)
}

/// Writes a trait; a row of the wish `None` removes it.
pub fn put_trait(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    key: &str,
    row: Option<&ObjectRow>,
) -> Result<(), StoreError> {
    let at = (tenant, key.to_owned());
    match row {
        Some(row) => tx.put(&TRAITS, &at, row)?,
        None => {
            tx.remove(&TRAITS, &at)?;
        }
    }
    changed(tx, tenant, None, "")?;
    for ((_, id), _) in tx.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        routing_live::stir(tx, tenant, id, "a trait has changed")?;
    }
    Ok(())
}
