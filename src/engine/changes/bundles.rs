//! Bundles: everything that a tenant has declared is read, what a document makes of it is planned, and all of it is written in
//! one transaction or nothing.

use serde_json::{Value, json};

use super::declared::{Outcome, Refusal, Wisher, first_row, next_row, now};
use super::{recipient_pools, recipients, rules, traits};
use crate::domain::routing::bundle::{Action, Change, Declared, Document, Plan, Topology, Write, plan};
use crate::domain::routing::fault::Fault;
use crate::domain::routing::objects::RecipientState;
use crate::domain::routing::patch::same_objects;
use crate::store::routing_objects::{put_recipient, put_recipient_pool, put_rule, put_trait};
use crate::store::routing_rows::{ObjectIdRow, ObjectRow, RecipientPoolRow, RecipientRow, RuleRow};
use crate::store::tables::{
    CLAIM_QUEUE_NAMES, CLAIM_QUEUES, RECIPIENT_POOLS, RECIPIENTS, RULES, TRAITS, WORKFLOW_VERSIONS, WORKFLOWS,
};
use crate::store::{Abort, Rows, StoreError, Tx, routing_live};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::JobName;

/// What is asked for beside the document.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// The digest that the caller believes to be current.
    pub expect_digest: Option<String>,
    /// What the bundle no longer has goes.
    pub prune: bool,
    /// Where the waiting work of recipient pools that go goes.
    pub drain_to: Option<String>,
    /// Nothing is written.
    pub dry_run: bool,
}

/// Everything that a tenant has declared.
pub fn topology(rows: &mut impl Rows, tenant: TenantId) -> Result<Topology, StoreError> {
    let mut found = Topology::default();
    for ((_, id), row) in rows.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        found.recipient_pools.push(declared(id, &row.object, Vec::new()));
    }
    for ((_, id), row) in rows.scan(&RECIPIENTS, &(tenant,), None, limits::BUNDLE_RECIPIENTS_MAX)? {
        found.recipients.push(declared(id, &row.object, row.members_of));
    }
    for ((_, id), row) in rows.scan(&RULES, &(tenant,), None, limits::RULES_MAX)? {
        found.rules.push(declared(id, &row.object, Vec::new()));
    }
    for (_, row) in rows.scan(&TRAITS, &(tenant,), None, limits::TRAITS_MAX)? {
        found.traits.push(declared((), &row, Vec::new()));
    }
    for ((_, id), row) in rows.scan(&CLAIM_QUEUES, &(tenant,), None, limits::CLAIM_QUEUES_MAX)? {
        found.claim_queues.push(declared(id, &row, Vec::new()));
    }
    Ok(found)
}

fn declared<I>(id: I, row: &ObjectRow, members_of: Vec<crate::words::ids::RecipientPoolId>) -> Declared<I> {
    Declared {
        id,
        name: row.name.clone(),
        set: row.fields(),
        bundle: row.bundle.clone(),
        members_of,
    }
}

/// What a document would change, with what is wrong in it.
pub fn look(rows: &mut impl Rows, tenant: TenantId, document: &Document, prune: bool) -> Result<Plan, StoreError> {
    let mut planned = plan(&topology(rows, tenant)?, document, prune);
    for (index, (slug, version)) in document.workflows.iter().enumerate() {
        if !is_published(rows, slug, *version)? {
            let detail = format!("there is no published workflow `{slug}` of that version");
            let pointer = format!("/workflows/{index}");
            planned.faults.push(Fault::new(pointer, "workflow.not_published", detail));
        }
    }
    Ok(planned)
}

fn is_published(rows: &mut impl Rows, slug: &str, version: Option<u32>) -> Result<bool, StoreError> {
    let Ok(name) = JobName::new(slug) else {
        return Ok(false);
    };
    match version {
        Some(version) => rows.has(&WORKFLOW_VERSIONS, &(TenantId::DEFAULT, name, version)),
        None => {
            let row = rows.get(&WORKFLOWS, &(TenantId::DEFAULT, name))?;
            Ok(row.is_some_and(|row| row.current > 0))
        }
    }
}

/// The diff as it is answered.
pub fn shown(plan: &Plan) -> Value {
    let count = |action: Action| plan.changes.iter().filter(|one| one.action == action).count();
    let change = |one: &Change| {
        let fields: Vec<Value> = one
            .fields
            .iter()
            .map(|(pointer, from, to)| json!({"pointer": pointer, "from": from, "to": to}))
            .collect();
        json!({"kind": one.kind, "name": one.name, "action": one.action.word(), "fields": fields})
    };
    let changes: Vec<Value> =
        plan.changes.iter().filter(|one| one.action != Action::Noop).map(change).collect();
    json!({
        "digest_current": plan.digest_current, "digest_after": plan.digest_after,
        "counts": {"create": count(Action::Create), "update": count(Action::Update),
            "delete": count(Action::Delete), "noop": count(Action::Noop)},
        "changes": changes, "warnings": [], "tests": [],
    })
}

/// Applies a document: all of it or nothing.
pub fn apply(tx: &mut Tx<'_>, by: &Wisher, document: &Document, wish: &Wish) -> Result<Outcome, Abort> {
    let planned = look(tx, by.tenant, document, wish.prune)?;
    if let Some(expected) = wish.expect_digest.as_ref().filter(|digest| **digest != planned.digest_current) {
        let detail = format!("the digest is {}, not {expected}", planned.digest_current);
        let fault = Fault::new("", "bundle.digest_conflict", detail);
        return Ok(Outcome::Refused(Refusal::Moved(fault, planned.digest_current)));
    }
    if !planned.faults.is_empty() {
        return Ok(Outcome::Refused(Refusal::Invalid(planned.faults)));
    }
    if let Some(owned) = planned.owned.first() {
        return Ok(Outcome::Refused(Refusal::Conflict(owned.clone())));
    }
    if let Some(waiting) = waiting(tx, by.tenant, &planned)? {
        return Ok(Outcome::Refused(Refusal::Conflict(waiting)));
    }
    let mut answer = shown(&planned);
    answer["digest"] = Value::from(planned.digest_after.as_str());
    if !wish.dry_run {
        for write in &planned.writes {
            put(tx, by, &document.name, write)?;
        }
    }
    Ok(Outcome::done(&document.name, answer))
}

/// A recipient pool that would go has waiting work.
fn waiting(rows: &mut impl Rows, tenant: TenantId, planned: &Plan) -> Result<Option<Fault>, StoreError> {
    for write in &planned.writes {
        if let Write::RemoveRecipientPool(id) = write
            && routing_live::counts(rows, tenant, *id)?.waiting > 0
        {
            let detail = format!("work waits in pool {id}; delete it with DELETE /api/pools/{id}, which routes that work again");
            return Ok(Some(Fault::new("", "pool.has_queued_work", detail)));
        }
    }
    Ok(None)
}
