//! What becomes of a wish to change a declared object of routing, and what all such changes share.

use std::sync::Arc;

use serde_json::{Map, Value};

use crate::domain::routing::fault::Fault;
use crate::domain::routing::read::Target;
use crate::store::routing_objects::recipient_pool_named;
use crate::store::routing_rows::ObjectRow;
use crate::store::tables::{CLAIM_QUEUES, RECIPIENT_POOLS, RULES};
use crate::store::{Rows, StoreError, Tx};
use crate::words::ids::{RecipientPoolId, TenantId};
use crate::words::limits;
use crate::words::network::EgressRule;
use crate::words::payload::JsonText;
use crate::words::time::Micros;
use crate::worker::outbound::{BadAddress, judge_alert_address};

/// What became of it.
#[derive(Debug, Clone, PartialEq)]
pub enum Outcome {
    /// It is so now, also if it was so before.
    Done(Done),
    /// Nothing was written.
    Refused(Refusal),
}

/// An accepted wish.
#[derive(Debug, Clone, PartialEq)]
pub struct Done {
    /// The id of the object.
    pub id: String,
    /// The object as it is answered.
    pub shown: Value,
    /// What may be meant otherwise.
    pub warnings: Vec<Fault>,
}

/// Why nothing was written.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// All that is wrong with what was sent.
    Invalid(Vec<Fault>),
    /// There is no such object: its kind as codes call it, and the id.
    Missing(&'static str, String),
    /// Another object, or the state of this one, forbids it.
    Conflict(Fault),
    /// There are as many of these as there may be.
    Full(String),
}

impl Outcome {
    /// The same with one more warning, where it is accepted.
    #[must_use]
    pub fn warned(mut self, warning: Option<&Fault>) -> Outcome {
        if let Outcome::Done(done) = &mut self {
            done.warnings.extend(warning.cloned());
        }
        self
    }

    /// An accepted wish without warnings.
    pub fn done(id: &impl ToString, shown: Value) -> Outcome {
        Outcome::Done(Done {
            id: id.to_string(),
            shown,
            warnings: Vec::new(),
        })
    }

    /// There is no such object.
    pub fn missing(kind: &'static str, id: &impl ToString) -> Outcome {
        Outcome::Refused(Refusal::Missing(kind, id.to_string()))
    }

    /// The name belongs to another object.
    pub fn taken(code: &'static str, pointer: &str, detail: String) -> Outcome {
        Outcome::Refused(Refusal::Conflict(Fault::new(pointer, code, detail)))
    }
}

/// Who wants something, and of which tenant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wisher {
    /// Whose objects.
    pub tenant: TenantId,
    /// As the kill-switch names them.
    pub principal: String,
    /// What requests may go to besides public addresses.
    pub egress: Arc<[EgressRule]>,
}

/// The instant of the transaction.
pub fn now(tx: &Tx<'_>) -> Micros {
    Micros::from(tx.now().wall)
}

/// The text of what was set.
pub fn text_of(set: &Map<String, Value>) -> JsonText {
    JsonText::of(set).expect("what was read is plain JSON")
}

/// A new row.
pub fn first_row(name: &str, set: &Map<String, Value>, at: Micros) -> ObjectRow {
    ObjectRow {
        name: name.to_owned(),
        set: text_of(set),
        record_version: 0,
        created_at: at,
        updated_at: at,
        bundle: None,
    }
}

/// The row after a change.
pub fn next_row(before: &ObjectRow, name: &str, set: &Map<String, Value>, at: Micros) -> ObjectRow {
    ObjectRow {
        name: name.to_owned(),
        set: text_of(set),
        record_version: before.record_version + 1,
        updated_at: at,
        ..before.clone()
    }
}

/// Looks whether what an object names is there. What it named before is not judged again: targets may go.
pub fn check_targets(
    rows: &mut impl Rows,
    tenant: TenantId,
    own: Option<RecipientPoolId>,
    targets: &[Target],
    before: &[Target],
) -> Result<Vec<Fault>, StoreError> {
    let mut faults = Vec::new();
    for target in targets.iter().filter(|target| !before.contains(target)) {
        faults.extend(match target {
            Target::Other(pointer, id) if own == Some(*id) => Some(Fault::new(
                pointer,
                "pool.self_target",
                "is the pool itself; name another",
            )),
            Target::Other(pointer, id) | Target::RecipientPool(pointer, id) => {
                let is_there = rows.has(&RECIPIENT_POOLS, &(tenant, *id))?;
                (!is_there).then(|| Fault::new(pointer, "pool.not_found", format!("there is no pool {id}")))
            }
            Target::Named(pointer, name) => {
                let is_there = recipient_pool_named(rows, tenant, name)?.is_some();
                let detail = format!("there is no pool `{name}`");
                (!is_there).then(|| Fault::new(pointer, "pipeline.target_missing", detail))
            }
            Target::ClaimQueue(pointer, id) => {
                let is_there = rows.has(&CLAIM_QUEUES, &(tenant, *id))?;
                let detail = format!("there is no claim queue {id}");
                (!is_there).then(|| Fault::new(pointer, "claim_queue.not_found", detail))
            }
            Target::Parent(id) => check_parent(rows, tenant, own, *id)?,
        });
    }
    Ok(faults)
}

/// A parent must exist, not lie below, and not make the tree too deep.
fn check_parent(
    rows: &mut impl Rows,
    tenant: TenantId,
    own: Option<RecipientPoolId>,
    parent: RecipientPoolId,
) -> Result<Option<Fault>, StoreError> {
    let fault = |code: &'static str, detail: String| Ok(Some(Fault::new("/parent_pool_id", code, detail)));
    let below = own.map_or(Ok(0), |own| height(rows, tenant, own))?;
    let (mut above, mut next) = (0, Some(parent));
    while let Some(id) = next {
        if own == Some(id) {
            return fault("pool.cycle", "the pool would be above itself".to_owned());
        }
        let Some(row) = rows.get(&RECIPIENT_POOLS, &(tenant, id))? else {
            if above == 0 {
                return fault("pool.not_found", format!("there is no pool {id}"));
            }
            break;
        };
        above += 1;
        if above + 1 + below > limits::PARENTS_MAX {
            let detail = format!(
                "more than {} levels of pools would stand above one another",
                limits::PARENTS_MAX
            );
            return fault("pool.too_deep", detail);
        }
        next = named(&row.object.fields(), "/parent_pool_id");
    }
    Ok(None)
}

/// The levels below a recipient pool; more than there may be are not counted.
fn height(rows: &mut impl Rows, tenant: TenantId, own: RecipientPoolId) -> Result<usize, StoreError> {
    let all = rows.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)?;
    let parents: Vec<(RecipientPoolId, RecipientPoolId)> = all
        .iter()
        .filter_map(|((_, id), row)| Some((*id, named(&row.object.fields(), "/parent_pool_id")?)))
        .collect();
    let (mut level, mut levels) = (vec![own], 0);
    loop {
        let next: Vec<RecipientPoolId> = parents
            .iter()
            .filter(|(_, parent)| level.contains(parent))
            .map(|(id, _)| *id)
            .collect();
        if next.is_empty() || levels > limits::PARENTS_MAX {
            return Ok(levels);
        }
        levels += 1;
        level = next;
    }
}

/// The id that stands at a place of what was set.
pub fn named(set: &Map<String, Value>, pointer: &str) -> Option<RecipientPoolId> {
    let mut parts = pointer.split('/').skip(1);
    let mut value = set.get(parts.next()?)?;
    for part in parts {
        value = value.get(part)?;
    }
    value.as_str()?.parse().ok()
}

/// Who names a recipient pool: a sentence with the kind, the name and the place of each.
pub fn referrers(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: RecipientPoolId,
) -> Result<Vec<Fault>, StoreError> {
    let text = id.to_string();
    let mut found = Vec::new();
    let mut look = |kind: &str, object: &ObjectRow| {
        if !object.set.as_str().contains(&text) {
            return;
        }
        let mut places = Vec::new();
        places_of(&Value::from(object.fields()), &text, "", &mut places);
        for place in places {
            let detail = format!("{kind} `{}` names it at {place}", object.name);
            found.push(Fault::new("", "pool.referenced", detail).member("name", object.name.as_str()));
        }
    };
    for ((_, other), row) in rows.scan(&RECIPIENT_POOLS, &(tenant,), None, limits::RECIPIENT_POOLS_MAX)? {
        if other != id {
            look("pool", &row.object);
        }
    }
    for (_, row) in rows.scan(&RULES, &(tenant,), None, limits::RULES_MAX)? {
        // Its own rules go with it.
        if row.attached_to != Some(id) {
            look("rule", &row.object);
        }
    }
    Ok(found)
}

fn places_of(value: &Value, text: &str, at: &str, places: &mut Vec<String>) {
    match value {
        Value::String(found) if found == text => places.push(at.to_owned()),
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                places_of(item, text, &format!("{at}/{index}"), places);
            }
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                places_of(value, text, &format!("{at}/{key}"), places);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

const ALERT_ADDRESS: &str = "/config/sla/alert_webhook_url";

/// The address of alerts in the fields of a recipient pool.
fn alert_address(set: &Map<String, Value>) -> Option<&str> {
    set.get("config")?
        .get("sla")?
        .get("alert_webhook_url")?
        .as_str()
        .filter(|text| !text.is_empty())
}

/// What is wrong with the address of alerts. One that was there before is not judged again: the list of the configuration may
/// have become shorter, and the guard judges each alert.
pub fn check_alert_address(
    set: &Map<String, Value>,
    before: Option<&Map<String, Value>>,
    rules: &[EgressRule],
) -> Option<Fault> {
    let text = alert_address(set)?;
    if before.and_then(alert_address) == Some(text) {
        return None;
    }
    let (code, why) = match judge_alert_address(text, rules) {
        Ok(()) => return None,
        Err(BadAddress::Invalid(why)) => ("url.invalid", why),
        Err(BadAddress::Forbidden(why)) => ("url.forbidden", why),
    };
    Some(Fault::new(ALERT_ADDRESS, code, why))
}
