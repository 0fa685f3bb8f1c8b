//! The check of what is declared for routing: names, owners' ids, members, whose rules, and the rows of shadow campaigns,
//! computed anew from the objects.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Findings, every};
use super::codec::Record;
use super::error::StoreError;
use super::keys::Key;
use super::live_rows::CampaignRuns;
use super::routing_objects::OF_TENANT;
use super::routing_rows::{NameRow, ObjectIdRow};
use super::table::{Rows, Table};
use super::tables as all;
use super::tx::ReadTx;
use crate::domain::routing::campaign::Status;
use crate::words::ids::{CampaignId, DecisionId, RecipientPoolId, TenantId, hex};

pub(super) fn check(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let recipient_pools = check_recipient_pools(tx, findings)?;
    check_recipients(tx, &recipient_pools, findings)?;
    check_rules(tx, &recipient_pools, findings)?;
    check_claim_queues(tx, findings)?;
    let campaigns = check_campaigns(tx, findings)?;
    check_shadows(tx, &campaigns, findings)?;
    check_waiters(tx, findings)
}

/// What an index has to say, by its keys.
struct Index<R>(BTreeMap<Vec<u8>, R>);

impl<R: Record + PartialEq> Index<R> {
    fn new() -> Index<R> {
        Index(BTreeMap::new())
    }

    fn row(&mut self, key: &impl Key, row: R) {
        self.0.insert(key.encode(), row);
    }

    /// Says what the table has beyond it, short of it, or otherwise.
    fn compare<K: Key>(
        mut self,
        tx: &mut ReadTx,
        table: &Table<K, R>,
        findings: &mut Findings,
    ) -> Result<(), StoreError> {
        let name = table.name();
        every(tx, table, |key, row| {
            let key = key.encode();
            match self.0.remove(&key) {
                Some(real) if real == row => {}
                Some(_) => findings.push(format!("{name}: {} points to another one", hex(&key))),
                None => findings.push(format!("{name}: {} points to nothing", hex(&key))),
            }
        })?;
        let missing = self.0.into_keys();
        findings.extend(missing.map(|key| format!("{name}: {} is missing", hex(&key))));
        Ok(())
    }
}

type Places = BTreeSet<(TenantId, RecipientPoolId)>;

fn check_recipient_pools(tx: &mut ReadTx, findings: &mut Findings) -> Result<Places, StoreError> {
    let (mut names, mut places) = (Index::new(), Places::new());
    let unreadable = every(tx, &all::RECIPIENT_POOLS, |(tenant, id), row| {
        places.insert((tenant, id));
        names.row(&(tenant, row.object.name.clone()), ObjectIdRow(id.0));
        findings.extend(row.typed(tenant, id).err().map(|error| error.to_string()));
    })?;
    if unreadable.is_empty() {
        names.compare(tx, &all::RECIPIENT_POOL_NAMES, findings)?;
    }
    Ok(places)
}

fn check_recipients(
    tx: &mut ReadTx,
    recipient_pools: &Places,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let (mut names, mut members, mut external) = (Index::new(), Index::new(), Index::new());
    let unreadable = every(tx, &all::RECIPIENTS, |(tenant, id), row| {
        let name = &row.object.name;
        for member_of in &row.members_of {
            names.row(&(tenant, *member_of, name.clone()), ObjectIdRow(id.0));
            members.row(&(tenant, *member_of, id), NameRow(name.clone()));
            if !recipient_pools.contains(&(tenant, *member_of)) {
                findings.push(format!(
                    "recipients: {id} is a member of {member_of}, which is missing"
                ));
            }
        }
        if let Some(own) = &row.external_id {
            external.row(&(tenant, own.clone()), ObjectIdRow(id.0));
        }
        findings.extend(row.typed(tenant, id).err().map(|error| error.to_string()));
    })?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    names.compare(tx, &all::RECIPIENT_NAMES, findings)?;
    members.compare(tx, &all::MEMBERS, findings)?;
    external.compare(tx, &all::RECIPIENT_EXTERNAL_IDS, findings)
}

fn check_rules(tx: &mut ReadTx, recipient_pools: &Places, findings: &mut Findings) -> Result<(), StoreError> {
    let (mut names, mut rules_of, mut known) = (Index::new(), Index::new(), BTreeSet::new());
    let unreadable = every(tx, &all::RULES, |(tenant, id), row| {
        known.insert((tenant, id));
        let name = &row.object.name;
        names.row(&(tenant, name.clone()), ObjectIdRow(id.0));
        let of = row.attached_to.unwrap_or(OF_TENANT);
        rules_of.row(&(tenant, of, id), NameRow(name.clone()));
        if row
            .attached_to
            .is_some_and(|of| !recipient_pools.contains(&(tenant, of)))
        {
            findings.push(format!("rules: {id} is a rule of {of}, which is missing"));
        }
        findings.extend(row.typed(tenant, id).err().map(|error| error.to_string()));
    })?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    every(tx, &all::RULE_ERRORS, |key, _| {
        if !known.contains(&key) {
            findings.push(format!("rule_errors: a row of rule {}, which is missing", key.1));
        }
    })?;
    names.compare(tx, &all::RULE_NAMES, findings)?;
    rules_of.compare(tx, &all::RULES_OF, findings)
}

fn check_claim_queues(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut names = Index::new();
    let unreadable = every(tx, &all::CLAIM_QUEUES, |(tenant, id), row| {
        names.row(&(tenant, row.name), ObjectIdRow(id.0));
    })?;
    if unreadable.is_empty() {
        names.compare(tx, &all::CLAIM_QUEUE_NAMES, findings)?;
    }
    Ok(())
}

fn check_campaigns(
    tx: &mut ReadTx,
    findings: &mut Findings,
) -> Result<BTreeSet<(TenantId, CampaignId)>, StoreError> {
    let (mut names, mut running, mut known) = (Index::new(), Index::new(), BTreeSet::new());
    let unreadable = every(tx, &all::CAMPAIGNS, |(tenant, id), row| {
        known.insert((tenant, id));
        names.row(&(tenant, row.object.name.clone()), ObjectIdRow(id.0));
        match row.typed(tenant, id) {
            Ok(campaign) if campaign.status == Status::Running => {
                let runs = CampaignRuns {
                    sample_percent: campaign.sample_percent,
                    starts_at: campaign.starts_at,
                    ends_at: campaign.ends_at,
                };
                running.row(&(tenant, campaign.recipient_pool, id), runs);
            }
            Ok(_) => {}
            Err(error) => findings.push(error.to_string()),
        }
    })?;
    if unreadable.is_empty() {
        names.compare(tx, &all::CAMPAIGN_NAMES, findings)?;
        running.compare(tx, &all::CAMPAIGNS_OF_POOL, findings)?;
    }
    Ok(known)
}

/// What campaigns remember goes with them; what they said of decisions, and have yet to say, goes with the decisions.
fn check_shadows(
    tx: &mut ReadTx,
    campaigns: &BTreeSet<(TenantId, CampaignId)>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    every(tx, &all::SHADOW_STATES, |(tenant, id, ..), _| {
        if !campaigns.contains(&(tenant, id)) {
            findings.push(format!("shadow_states: a row of campaign {id}, which is missing"));
        }
    })?;
    every(tx, &all::SHADOW_TALLIES, |(tenant, id), _| {
        if !campaigns.contains(&(tenant, id)) {
            findings.push(format!(
                "shadow_tallies: a row of campaign {id}, which is missing"
            ));
        }
    })?;
    let mut decided: BTreeMap<(TenantId, DecisionId), &str> = BTreeMap::new();
    every(tx, &all::SHADOW_PENDING, |(tenant, decision, _), _| {
        decided.insert((tenant, decision), all::SHADOW_PENDING.name());
    })?;
    every(tx, &all::SHADOW_RESULTS, |(tenant, decision, _), _| {
        decided.insert((tenant, decision), all::SHADOW_RESULTS.name());
    })?;
    for (key, table) in decided {
        if !tx.has(&all::DECISIONS, &key)? {
            findings.push(format!("{table}: a row of decision {}, which is missing", key.1));
        }
    }
    Ok(())
}

fn check_waiters(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut awaited = BTreeSet::new();
    every(tx, &all::WORK_WAITERS, |(tenant, work, _), _| {
        awaited.insert((tenant, work));
    })?;
    for key in awaited {
        if !tx.has(&all::ROUTED_WORK, &key)? {
            findings.push(format!(
                "work_waiters: a step waits for work {}, which is missing",
                key.1
            ));
        }
    }
    Ok(())
}
