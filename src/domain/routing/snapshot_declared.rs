//! The declared half of what a pass has read: rules, traits, recipient pools and their members. It is the same for many
//! decisions, so that its text is written once, kept under its digest, and named by their snapshots.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::candidate::{Candidate, Learned};
use super::known::Known;
use super::live::Live;
use super::objects::{Hours, Location, Recipient, RecipientPool, Rule, Status, Trait};
use super::ready::{Prepared, ReadyRule};
use crate::words::ids::{RecipientId, RecipientPoolId, sha256_hex};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// The declared half: its text, and the digest that it is kept under.
#[derive(Debug, Clone)]
pub struct Declared {
    objects: Objects,
    /// Canonical JSON.
    pub text: JsonText,
    /// SHA-256 over it, in hex digits.
    pub digest: String,
}

/// The objects themselves. They never change: who changes one makes another.
#[derive(Debug, Clone)]
struct Objects {
    rules: Arc<Vec<ReadyRule>>,
    traits: Arc<Vec<Trait>>,
    recipient_pools: BTreeMap<RecipientPoolId, Option<Arc<Prepared>>>,
    members: BTreeMap<RecipientPoolId, Vec<Arc<Recipient>>>,
}

impl Declared {
    /// That of what was read.
    pub fn of(read: &Known) -> Declared {
        let objects = Objects::of(read);
        let text = objects.text().expect("declared objects are plain data");
        Declared {
            digest: sha256_hex(text.as_str().as_bytes()),
            objects,
            text,
        }
    }

    /// True when the very same objects were read again; then nothing needs to be written anew.
    pub fn is_of(&self, read: &Known) -> bool {
        let own = &self.objects;
        let mut prepared = own.recipient_pools.iter().zip(&read.recipient_pools);
        let mut members = own.members.iter().zip(&read.candidates);
        same_list(&own.rules, &read.tenant_rules)
            && same_list(&own.traits, &read.traits)
            && own.recipient_pools.len() == read.recipient_pools.len()
            && own.members.len() == read.candidates.len()
            && prepared
                .all(|((own_id, own), (id, read))| own_id == id && same_pool(own.as_ref(), read.as_ref()))
            && members.all(|((own_id, own), (id, read))| {
                let mut pairs = own.iter().zip(read);
                own_id == id
                    && own.len() == read.len()
                    && pairs.all(|(own, read)| Arc::ptr_eq(own, &read.recipient))
            })
    }
}

/// The same list; all that are empty are.
fn same_list<T>(own: &Arc<Vec<T>>, read: &Arc<Vec<T>>) -> bool {
    Arc::ptr_eq(own, read) || own.is_empty() && read.is_empty()
}

fn same_pool(own: Option<&Arc<Prepared>>, read: Option<&Arc<Prepared>>) -> bool {
    match (own, read) {
        (Some(own), Some(read)) => Arc::ptr_eq(own, read),
        (None, None) => true,
        (Some(_), None) | (None, Some(_)) => false,
    }
}

impl Objects {
    fn of(read: &Known) -> Objects {
        let members = read.candidates.iter().map(|(id, members)| {
            let all = members.iter().map(|member| Arc::clone(&member.recipient));
            (*id, all.collect())
        });
        Objects {
            rules: Arc::clone(&read.tenant_rules),
            traits: Arc::clone(&read.traits),
            recipient_pools: read.recipient_pools.clone(),
            members: members.collect(),
        }
    }

    fn text(&self) -> Result<JsonText, serde_json::Error> {
        let recipient_pools = self.recipient_pools.iter().map(|(id, prepared)| {
            let kept = prepared
                .as_ref()
                .map(|prepared| json!({"pool": prepared.recipient_pool, "rules": declared(&prepared.rules)}));
            (id.to_string(), kept.unwrap_or_default())
        });
        let members = self.members.iter();
        JsonText::of(&Written {
            members: members
                .map(|(id, all)| (*id, all.iter().map(|one| Told::of(one)).collect()))
                .collect(),
            recipient_pools: Value::Object(recipient_pools.collect::<Map<_, _>>()),
            rules: json!(declared(&self.rules)),
            traits: json!(*self.traits),
        })
    }
}

fn declared(ready: &[ReadyRule]) -> Vec<&Rule> {
    ready.iter().map(|ready| &ready.rule).collect()
}

/// All of it, in the order of names.
#[derive(Serialize)]
struct Written<'o> {
    members: BTreeMap<RecipientPoolId, Vec<Told<'o>>>,
    #[serde(rename = "pools")]
    recipient_pools: Value,
    rules: Value,
    traits: Value,
}

/// A recipient, in the order of names.
#[derive(Serialize)]
struct Told<'o> {
    #[serde(skip_serializing_if = "Map::is_empty")]
    attributes: &'o Map<String, Value>,
    #[serde(skip_serializing_if = "is_zero")]
    daily: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'o str>,
    id: RecipientId,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    max: u32,
    name: &'o str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<Value>,
    status: Status,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'o [String],
    timezone: &'o str,
    #[serde(rename = "type")]
    kind: &'o str,
    weight: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'o> Told<'o> {
    fn of(recipient: &'o Recipient) -> Told<'o> {
        Told {
            attributes: &recipient.attributes,
            daily: recipient.daily_limit,
            external_id: recipient.external_id.as_deref(),
            id: recipient.id,
            location: recipient.location,
            max: recipient.max_concurrent,
            name: &recipient.name,
            schedule: recipient.schedule.as_ref().map(|hours| json!(hours)),
            status: recipient.status,
            tags: &recipient.tags,
            timezone: &recipient.timezone,
            kind: &recipient.kind,
            weight: recipient.weight_micro,
        }
    }
}

/// The text, as it is read again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    members: BTreeMap<RecipientPoolId, Vec<Member>>,
    #[serde(rename = "pools")]
    recipient_pools: BTreeMap<RecipientPoolId, Option<KeptPool>>,
    rules: Vec<Rule>,
    traits: Vec<Trait>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptPool {
    #[serde(rename = "pool")]
    recipient_pool: RecipientPool,
    rules: Vec<Rule>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    id: RecipientId,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    status: Status,
    weight: u64,
    max: u32,
    #[serde(default)]
    daily: u32,
    #[serde(default)]
    attributes: Map<String, Value>,
    #[serde(default)]
    tags: Vec<String>,
    #[serde(default)]
    schedule: Option<Hours>,
    timezone: String,
    #[serde(default)]
    location: Option<Location>,
    #[serde(default)]
    external_id: Option<String>,
}

impl Kept {
    /// Puts it where a pass reads it, members with nothing to do.
    pub(super) fn lay_out(self, read: &mut Known) {
        read.tenant_rules = Arc::new(ReadyRule::all(self.rules));
        read.traits = Arc::new(self.traits);
        for (id, found) in self.recipient_pools {
            let prepared = found.map(|kept| Arc::new(Prepared::new(kept.recipient_pool, kept.rules)));
            read.recipient_pools.insert(id, prepared);
        }
        for (id, members) in self.members {
            read.candidates
                .insert(id, members.into_iter().map(Member::candidate).collect());
        }
    }
}

impl Member {
    fn candidate(self) -> Candidate {
        let nowhere = Micros(0);
        Candidate {
            recipient: Arc::new(Recipient {
                id: self.id,
                name: self.name,
                kind: self.kind,
                members_of: Vec::new(),
                status: self.status,
                weight_micro: self.weight,
                max_concurrent: self.max,
                daily_limit: self.daily,
                attributes: self.attributes,
                tags: self.tags,
                schedule: self.schedule,
                timezone: self.timezone,
                location: self.location,
                external_id: self.external_id,
                metadata: BTreeMap::new(),
                record_version: 0,
                created_at: nowhere,
                updated_at: nowhere,
            }),
            live: Live::new(super::objects::RecipientState::Available, nowhere),
            learned: Learned::default(),
            bid: None,
        }
    }
}
