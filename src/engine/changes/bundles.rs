//! Bundles: everything that a tenant has declared is read, what a document makes of it is planned, and all of it is written in
//! one transaction or nothing. The plan is made before, over a snapshot: tests and expressions are too much for the writer.
//! It is good as long as no declared object has changed since.

use std::collections::BTreeMap;

use super::declared::{Outcome, Wisher, check_alert_address, first_row, next_row, now};
use super::routing::{assignments, waiting};
use super::{recipient_pools, recipients};
use crate::domain::routing::bundle::{Declared, Document, Plan, Tested, Topology, Write, plan, run};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::patch::same_objects;
use crate::engine::changes::routing::world::Tenancy;
use crate::store::routing_objects::{put_recipient, put_recipient_pool, put_rule, put_trait, remove_rule};
use crate::store::routing_rows::{ObjectIdRow, ObjectRow, RecipientPoolRow, RecipientRow, RuleRow};
use crate::store::tables::{
    CLAIM_QUEUE_NAMES, CLAIM_QUEUES, RECIPIENT_POOLS, RECIPIENTS, RULES, TRAITS, WORKFLOW_VERSIONS, WORKFLOWS,
};
use crate::store::{Abort, Rows, StoreError, Tx, offers, routing_live};
use crate::words::ids::{RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::network::EgressRule;
use crate::words::time::Micros;

/// What is asked for beside the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// The digest that the caller believes to be current.
    pub expect_digest: Option<String>,
    /// What the bundle no longer has goes.
    pub prune: bool,
    /// The name of the recipient pool where the waiting work of those that go waits from then on.
    pub drain_to: Option<String>,
    /// Nothing is written.
    pub dry_run: bool,
}

/// What a document would change, and what its tests say.
#[derive(Debug, Clone, PartialEq)]
pub struct Planned {
    /// The plan.
    pub plan: Plan,
    /// The tests.
    pub tests: Vec<Tested>,
    /// The number of the newest change that it knows.
    pub revision: u64,
    /// Where waiting work goes.
    pub drain_to: Option<RecipientPoolId>,
    /// What stands in its way now: foreign owners, waiting work, open assignments.
    pub conflicts: Vec<Fault>,
}

/// Why nothing is planned or written.
#[derive(Debug, Clone, PartialEq)]
pub enum No {
    /// All that is wrong with the document.
    Invalid(Vec<Fault>),
    /// What there is forbids it.
    Conflict(Fault),
    /// The digest is another one: this.
    Moved(String),
    /// The tenant has more than a bundle can be about.
    Full(String),
    /// Something was declared in between: it must be planned anew.
    Stale,
}

/// Everything that a tenant has declared.
pub fn topology(rows: &mut impl Rows, tenant: TenantId) -> Result<Result<Topology, No>, StoreError> {
    let mut found = Topology::default();
    for ((_, id), row) in rows.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        found
            .recipient_pools
            .insert(id, declared(&row.object, Vec::new()));
    }
    let most = limits::BUNDLE_RECIPIENTS_MAX;
    let recipients = rows.scan(&RECIPIENTS, &(tenant,), None, most + 1)?;
    if recipients.len() > most {
        let detail = format!("there are more than {most} recipients, and a bundle is about all of them");
        return Ok(Err(No::Full(detail)));
    }
    for ((_, id), row) in recipients {
        found.recipients.insert(id, declared(&row.object, row.members_of));
    }
    for ((_, id), row) in rows.scan(&RULES, &(tenant,), None, limits::RULES_MAX)? {
        found.rules.insert(id, declared(&row.object, Vec::new()));
    }
    for ((_, key), row) in rows.scan(&TRAITS, &(tenant,), None, limits::TRAITS_MAX)? {
        found.traits.insert(key, declared(&row, Vec::new()));
    }
    for ((_, id), row) in rows.scan(&CLAIM_QUEUES, &(tenant,), None, limits::CLAIM_QUEUES_MAX)? {
        found.claim_queues.insert(id, declared(&row, Vec::new()));
    }
    Ok(Ok(found))
}

fn declared(row: &ObjectRow, members_of: Vec<RecipientPoolId>) -> Declared {
    Declared {
        name: row.name.clone(),
        set: row.fields(),
        bundle: row.bundle.clone(),
        members_of,
    }
}

/// What a document would change.
pub fn look(
    rows: &mut impl Rows,
    tenancy: &Tenancy,
    document: &Document,
    wish: &Wish,
    egress: &[EgressRule],
    (at, fresh): (Micros, &mut dyn FnMut() -> [u8; 16]),
) -> Result<Result<Planned, No>, StoreError> {
    let tenant = tenancy.tenant;
    let revision = routing_live::revision(rows, tenant)?;
    let before = match topology(rows, tenant)? {
        Ok(before) => before,
        Err(no) => return Ok(Err(no)),
    };
    let mut plan = plan(&before, document, wish.prune, fresh);
    let expected = wish.expect_digest.as_ref();
    if expected.is_some_and(|expected| *expected != plan.digest_current) {
        return Ok(Err(No::Moved(plan.digest_current)));
    }
    let mut faults = std::mem::take(&mut plan.faults);
    faults.extend(alert_addresses(&before, document, egress));
    for (index, (slug, version)) in document.workflows.iter().enumerate() {
        if !is_published(rows, tenant, slug, *version)? {
            let detail = format!("there is no such published version of a workflow `{slug}`");
            let pointer = format!("/workflows/{index}");
            faults.push(Fault::new(pointer, "workflow.not_published", detail));
        }
    }
    let drain_to = match &wish.drain_to {
        None => None,
        Some(name) => {
            let mut all = plan.after.recipient_pools.iter();
            let found = all.find(|(_, one)| one.name == *name).map(|(id, _)| *id);
            if found.is_none() {
                let detail = format!("there would be no pool `{name}`");
                faults.push(Fault::new("/drain_to", "pool.not_found", detail));
            }
            found
        }
    };
    let mut tests = Vec::new();
    if faults.is_empty() {
        match run(&plan.after, &document.tests, &tenancy.name, at) {
            Ok(tested) => tests = tested,
            Err(wrong) => faults.extend(wrong),
        }
    }
    if !faults.is_empty() {
        return Ok(Err(No::Invalid(faults)));
    }
    let mut conflicts = plan.conflicts.clone();
    conflicts.extend(in_the_way(rows, tenant, &plan.writes, drain_to)?);
    Ok(Ok(Planned {
        plan,
        tests,
        revision,
        drain_to,
        conflicts,
    }))
}

/// What is wrong with the addresses of alerts of a document.
fn alert_addresses(before: &Topology, document: &Document, egress: &[EgressRule]) -> Vec<Fault> {
    let each = document.recipient_pools.iter().enumerate();
    let faults = each.filter_map(|(index, set)| {
        let name = set.get("name").and_then(serde_json::Value::as_str);
        let mut known = before.recipient_pools.values();
        let old = known
            .find(|one| Some(one.name.as_str()) == name)
            .map(|one| &one.set);
        let fault = check_alert_address(set, old, egress)?;
        let pointer = format!("/pools/{index}{}", fault.pointer);
        Some(Fault { pointer, ..fault })
    });
    faults.collect()
}

fn is_published(
    rows: &mut impl Rows,
    tenant: TenantId,
    slug: &str,
    version: Option<u32>,
) -> Result<bool, StoreError> {
    let Ok(name) = JobName::new(slug) else {
        return Ok(false);
    };
    match version {
        Some(version) => rows.has(&WORKFLOW_VERSIONS, &(tenant, name, version)),
        None => {
            let row = rows.get(&WORKFLOWS, &(tenant, name))?;
            Ok(row.is_some_and(|row| row.current > 0))
        }
    }
}

/// Recipient pools and claim queues that would go while work waits in them, and recipients that would go while they work.
fn in_the_way(
    rows: &mut impl Rows,
    tenant: TenantId,
    writes: &[Write],
    drain_to: Option<RecipientPoolId>,
) -> Result<Vec<Fault>, StoreError> {
    let mut found = Vec::new();
    for write in writes {
        match write {
            Write::RemoveRecipientPool(id, name) if drain_to.is_none() => {
                let waiting = routing_live::counts(rows, tenant, *id)?.waiting;
                if waiting > 0 {
                    let detail = format!("{waiting} units of work wait in the pool `{name}`; say `drain_to`");
                    let fault = Fault::new("", "pool.has_queued_work", detail);
                    found.push(fault.member("pool", name.as_str()));
                }
            }
            Write::RemoveClaimQueue(id, name) if drain_to.is_none() => {
                let open = offers::in_order(rows, tenant, *id, None, 1)?;
                if !open.is_empty() {
                    let detail = format!("work is offered in the claim queue `{name}`; say `drain_to`");
                    let fault = Fault::new("", "claim_queue.has_open_offers", detail);
                    found.push(fault.member("claim_queue", name.as_str()));
                }
            }
            Write::RemoveRecipient(id, name) if assignments::has_open(rows, tenant, *id)? => {
                let detail = format!("the recipient `{name}` has open assignments");
                let fault = Fault::new("", "recipient.has_open_assignments", detail);
                found.push(fault.member("recipient", name.as_str()));
            }
            Write::RemoveRecipientPool(..)
            | Write::RemoveRecipient(..)
            | Write::RecipientPool(..)
            | Write::Recipient(..)
            | Write::Rule(..)
            | Write::Trait(..)
            | Write::ClaimQueue(..)
            | Write::RemoveClaimQueue(..)
            | Write::RemoveRule(_)
            | Write::RemoveTrait(_) => {}
        }
    }
    Ok(found)
}

/// Writes what was planned: all of it, or nothing and why not.
pub fn apply(tx: &mut Tx<'_>, by: &Wisher, bundle: &str, planned: &Planned) -> Result<Result<(), No>, Abort> {
    if routing_live::revision(tx, by.tenant)? != planned.revision {
        return Ok(Err(No::Stale));
    }
    let drain_to = planned.drain_to;
    if let Some(first) = in_the_way(tx, by.tenant, &planned.plan.writes, drain_to)?
        .into_iter()
        .next()
    {
        return Ok(Err(No::Conflict(first)));
    }
    for write in &planned.plan.writes {
        put(tx, by, bundle, write, drain_to)?;
    }
    Ok(Ok(()))
}

/// The row of an object: new, of the next version, or with an owner only. True if it is news.
fn row_of(
    tx: &Tx<'_>,
    bundle: &str,
    before: Option<&ObjectRow>,
    name: &str,
    set: &serde_json::Map<String, serde_json::Value>,
    is_same_otherwise: bool,
) -> (ObjectRow, bool) {
    let (row, is_news) = match before {
        None => (first_row(name, set, now(tx)), true),
        Some(before) if is_same_otherwise && before.name == name && same_objects(&before.fields(), set) => {
            (before.clone(), false)
        }
        Some(before) => (next_row(before, name, set, now(tx)), true),
    };
    let bundle = Some(row.bundle.clone().unwrap_or_else(|| bundle.to_owned()));
    (ObjectRow { bundle, ..row }, is_news)
}

fn put(
    tx: &mut Tx<'_>,
    by: &Wisher,
    bundle: &str,
    write: &Write,
    drain_to: Option<RecipientPoolId>,
) -> Result<(), Abort> {
    let tenant = by.tenant;
    match write {
        Write::RecipientPool(id, name, set) => {
            let before = tx.get(&RECIPIENT_POOLS, &(tenant, *id))?;
            let known = before.as_ref().map(|before| &before.object);
            let (object, is_news) = row_of(tx, bundle, known, name, set, true);
            let version = object.record_version;
            let switched = before.and_then(|before| before.switched);
            put_recipient_pool(tx, tenant, *id, &RecipientPoolRow { object, switched })?;
            tell(tx, "routing.pool", id, (version, is_news));
        }
        Write::Recipient(id, name, set, members_of) => {
            let before = tx.get(&RECIPIENTS, &(tenant, *id))?;
            let known = before.as_ref().map(|before| &before.object);
            let is_same = before
                .as_ref()
                .is_some_and(|before| before.members_of == *members_of);
            let (object, is_news) = row_of(tx, bundle, known, name, set, is_same);
            let version = object.record_version;
            let external = set.get("external_id").and_then(serde_json::Value::as_str);
            let row = RecipientRow {
                object,
                members_of: members_of.clone(),
                external_id: external.map(str::to_owned),
            };
            put_recipient(tx, tenant, *id, &row)?;
            if before.is_none() {
                routing_live::set_state(tx, tenant, *id, RecipientState::Available)?;
            }
            tell(tx, "routing.recipient", id, (version, is_news));
        }
        Write::Rule(id, name, set, attached_to) => {
            let before = tx.get(&RULES, &(tenant, *id))?;
            let known = before.as_ref().map(|before| &before.object);
            let (object, is_news) = row_of(tx, bundle, known, name, set, true);
            let version = object.record_version;
            let row = RuleRow {
                object,
                attached_to: *attached_to,
            };
            put_rule(tx, tenant, *id, &row)?;
            tell(tx, "routing.rule", id, (version, is_news));
        }
        Write::Trait(key, set) => {
            let before = tx.get(&TRAITS, &(tenant, key.clone()))?;
            let (row, is_news) = row_of(tx, bundle, before.as_ref(), key, set, true);
            put_trait(tx, tenant, key, Some(&row))?;
            tell(tx, "routing.trait", key, (row.record_version, is_news));
        }
        Write::ClaimQueue(id, name, set) => {
            let before = tx.get(&CLAIM_QUEUES, &(tenant, *id))?;
            let (row, is_news) = row_of(tx, bundle, before.as_ref(), name, set, true);
            tx.put(&CLAIM_QUEUES, &(tenant, *id), &row)?;
            tx.put(&CLAIM_QUEUE_NAMES, &(tenant, name.clone()), &ObjectIdRow(id.0))?;
            routing_live::revise(tx, tenant)?;
            tell(tx, "routing.claim_queue", id, (row.record_version, is_news));
        }
        Write::RemoveRecipientPool(..)
        | Write::RemoveRecipient(..)
        | Write::RemoveRule(_)
        | Write::RemoveTrait(_)
        | Write::RemoveClaimQueue(..) => remove(tx, by, write, drain_to)?,
    }
    Ok(())
}

fn remove(
    tx: &mut Tx<'_>,
    by: &Wisher,
    write: &Write,
    drain_to: Option<RecipientPoolId>,
) -> Result<(), Abort> {
    let tenant = by.tenant;
    let done = match write {
        Write::RemoveRecipientPool(id, _) => {
            if let Some(to) = drain_to {
                waiting::drain_to(tx, tenant, *id, to)?;
            }
            Some(recipient_pools::delete(tx, by, *id, false)?)
        }
        Write::RemoveRecipient(id, _) => Some(recipients::delete(tx, by, *id, false)?),
        Write::RemoveRule(id) => {
            // It may have gone with its recipient pool.
            if tx.has(&RULES, &(tenant, *id))? {
                remove_rule(tx, tenant, *id)?;
                tx.tell("routing.rule", id, 0, Some("deleted"));
            }
            None
        }
        Write::RemoveTrait(key) => {
            put_trait(tx, tenant, key, None)?;
            tx.tell("routing.trait", key, 0, Some("deleted"));
            None
        }
        Write::RemoveClaimQueue(id, name) => {
            if let Some(to) = drain_to {
                waiting::drain_offers_to(tx, tenant, *id, to)?;
            }
            tx.remove(&CLAIM_QUEUES, &(tenant, *id))?;
            tx.remove(&CLAIM_QUEUE_NAMES, &(tenant, name.clone()))?;
            routing_live::revise(tx, tenant)?;
            tx.tell("routing.claim_queue", id, 0, Some("deleted"));
            None
        }
        Write::RecipientPool(..)
        | Write::Recipient(..)
        | Write::Rule(..)
        | Write::Trait(..)
        | Write::ClaimQueue(..) => None,
    };
    assert!(
        done.is_none_or(|outcome| matches!(outcome, Outcome::Done(_))),
        "what a bundle removes was looked at before"
    );
    Ok(())
}

fn tell(tx: &mut Tx<'_>, topic: &str, id: impl ToString, (version, is_news): (u64, bool)) {
    if is_news {
        tx.tell(topic, id, version, None);
    }
}

/// How many objects of each action there are.
pub fn counts(plan: &Plan) -> BTreeMap<&'static str, usize> {
    let mut counts = BTreeMap::from(["create", "update", "delete", "noop"].map(|word| (word, 0)));
    for change in &plan.changes {
        *counts.entry(change.action.word()).or_insert(0) += 1;
    }
    counts
}
