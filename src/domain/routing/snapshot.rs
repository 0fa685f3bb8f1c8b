//! The snapshot of a decision: the canonical JSON of exactly what was read, and the replay from it alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::candidate::{Bid, Candidate, Learned};
use super::canonical;
use super::known::Known;
use super::live::Live;
use super::objects::{Hours, Location, PipelineMode, Recipient, RecipientPool, Rule, Status, Trait};
use super::pass::{Flow, Passed, Request, Stopped, route};
use super::reads::Reads;
use super::ready::{Prepared, ReadyRule};
use super::route::ENGINE;
use super::state::{Holder, StageState};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, sha256_hex};
use crate::words::time::Micros;

/// The form of snapshots that this program writes.
const VERSION: u32 = 1;

/// A snapshot: its text, and the digest that it is stored under.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    /// Canonical JSON.
    pub text: String,
    /// SHA-256 over it, in hex digits.
    pub digest: String,
}

/// Why a snapshot cannot be replayed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Unreadable {
    /// It is none.
    #[error("the snapshot cannot be read: {0}")]
    Text(String),
    /// It asks for something that this program refuses.
    #[error("the snapshot is not admitted any more: {0}")]
    Refused(String),
}

/// What is kept; names and order of the fields do not matter, the text is canonical.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Kept {
    version: u32,
    engine: String,
    decision: DecisionId,
    now: Micros,
    request: Request,
    tenant: String,
    default_pool: Option<RecipientPoolId>,
    mode: PipelineMode,
    rules: Vec<Rule>,
    pools: BTreeMap<RecipientPoolId, Option<KeptPool>>,
    names: BTreeMap<String, Option<RecipientPoolId>>,
    members: BTreeMap<RecipientPoolId, Vec<Member>>,
    traits: Vec<Trait>,
    states: Vec<(RecipientPoolId, String, StageState)>,
    holders: Vec<(RecipientPoolId, String, String, Holder)>,
    seen: Vec<(RecipientPoolId, String, DecisionId, Micros)>,
    flows: BTreeMap<RecipientPoolId, Flow>,
    tried: Vec<(RecipientId, DecisionId)>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptPool {
    pool: RecipientPool,
    rules: Vec<Rule>,
}

/// A member, as far as anything looked at it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Member {
    id: RecipientId,
    name: String,
    #[serde(rename = "type")]
    kind: String,
    status: Status,
    weight: u64,
    max: u32,
    #[serde(default, skip_serializing_if = "is_zero")]
    daily: u32,
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    attributes: Map<String, Value>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    tags: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schedule: Option<Hours>,
    timezone: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    external_id: Option<String>,
    live: Live,
    #[serde(default, skip_serializing_if = "is_nothing")]
    learned: Learned,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    bid: Option<Bid>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

fn is_nothing(learned: &Learned) -> bool {
    *learned == Learned::default()
}

impl Member {
    fn of(candidate: &Candidate, reads: &Reads) -> Member {
        let recipient = &candidate.recipient;
        Member {
            id: recipient.id,
            name: recipient.name.clone(),
            kind: recipient.kind.clone(),
            status: recipient.status,
            weight: recipient.weight_micro,
            max: recipient.max_concurrent,
            daily: recipient.daily_limit,
            attributes: reads.attributes(&recipient.attributes),
            tags: if reads.tags {
                recipient.tags.clone()
            } else {
                Vec::new()
            },
            schedule: recipient.schedule.clone(),
            timezone: recipient.timezone.clone(),
            location: recipient.location.filter(|_| reads.location),
            external_id: recipient.external_id.clone(),
            live: candidate.live.clone(),
            learned: candidate.learned.clone(),
            bid: candidate.bid.clone(),
        }
    }

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
            live: self.live,
            learned: self.learned,
            bid: self.bid,
        }
    }
}

/// The snapshot of a pass.
pub fn snapshot(request: &Request, passed: &Passed) -> Snapshot {
    take(request, passed.decision.at, passed.decision.id, &passed.read)
}

/// The snapshot of a pass over what it read.
pub fn take(request: &Request, now: Micros, decision: DecisionId, read: &Known) -> Snapshot {
    let reads = Reads::of(request, read);
    let rules = |ready: &[ReadyRule]| ready.iter().map(|ready| ready.rule.clone()).collect();
    let kept_pool = |prepared: &Option<Arc<Prepared>>| {
        prepared.as_ref().map(|prepared| KeptPool {
            pool: prepared.recipient_pool.clone(),
            rules: rules(&prepared.rules),
        })
    };
    let members = |all: &Vec<Candidate>| all.iter().map(|one| Member::of(one, &reads)).collect();
    let kept = Kept {
        version: VERSION,
        engine: ENGINE.to_owned(),
        decision,
        now,
        request: request.clone(),
        tenant: read.tenant.clone(),
        default_pool: read.default_recipient_pool,
        mode: read.pipeline_mode,
        rules: rules(&read.tenant_rules),
        pools: read
            .recipient_pools
            .iter()
            .map(|(id, one)| (*id, kept_pool(one)))
            .collect(),
        names: read.names.clone(),
        members: read
            .candidates
            .iter()
            .map(|(id, all)| (*id, members(all)))
            .collect(),
        traits: read.traits.to_vec(),
        states: read
            .states
            .iter()
            .map(|((id, stage), state)| (*id, stage.clone(), state.clone()))
            .collect(),
        holders: read
            .holders
            .iter()
            .map(|((id, stage, key), holder)| (*id, stage.clone(), key.clone(), holder.clone()))
            .collect(),
        seen: read
            .seen
            .iter()
            .map(|((id, key), (decision, at))| (*id, key.clone(), *decision, *at))
            .collect(),
        flows: read.flows.clone(),
        tried: read.tried.clone(),
    };
    let text = canonical::text(&json!(kept));
    Snapshot {
        digest: sha256_hex(text.as_bytes()),
        text,
    }
}

/// A snapshot, read again.
#[derive(Debug, Clone, PartialEq)]
pub struct Recalled {
    /// What was asked.
    pub request: Request,
    /// When.
    pub now: Micros,
    /// Its decision.
    pub decision: DecisionId,
    /// The program that decided then.
    pub engine: String,
    /// What was read.
    pub read: Known,
}

/// Reads a snapshot.
pub fn recall(text: &str) -> Result<Recalled, Unreadable> {
    let kept: Kept = serde_json::from_str(text).map_err(|error| Unreadable::Text(error.to_string()))?;
    if kept.version != VERSION {
        return Err(Unreadable::Text(format!("it has the form {}", kept.version)));
    }
    let mut read = Known::new(&kept.tenant);
    read.default_recipient_pool = kept.default_pool;
    read.pipeline_mode = kept.mode;
    read.tenant_rules = Arc::new(ReadyRule::all(kept.rules));
    read.names = kept.names;
    read.traits = Arc::new(kept.traits);
    read.flows = kept.flows;
    read.tried = kept.tried;
    for (id, pool) in kept.pools {
        let prepared = pool.map(|kept| Arc::new(Prepared::new(kept.pool, kept.rules)));
        read.recipient_pools.insert(id, prepared);
    }
    for (id, members) in kept.members {
        read.candidates
            .insert(id, members.into_iter().map(Member::candidate).collect());
    }
    for (id, stage, state) in kept.states {
        read.states.insert((id, stage), state);
    }
    for (id, stage, key, holder) in kept.holders {
        read.holders.insert((id, stage, key), holder);
    }
    for (id, key, decision, at) in kept.seen {
        read.seen.insert((id, key), (decision, at));
    }
    Ok(Recalled {
        request: kept.request,
        now: kept.now,
        decision: kept.decision,
        engine: kept.engine,
        read,
    })
}

impl Recalled {
    /// Decides again; with a changed request it is what would have been.
    pub fn replay(&self) -> Result<Passed, Unreadable> {
        route(&self.request, self.now, self.decision, &self.read).map_err(|stopped: Stopped<Infallible>| {
            Unreadable::Refused(match stopped {
                Stopped::World(never) => match never {},
                Stopped::Invalid(faults) => faults
                    .iter()
                    .map(|fault| fault.detail.as_str())
                    .collect::<Vec<_>>()
                    .join("; "),
                Stopped::Refused(refusal) => format!("{refusal:?}"),
            })
        })
    }
}

/// What a replay may differ in without being another decision: times, and ids that the store gave.
const OF_THE_PASS: &[&str] = &[
    "micros",
    "duration_micros",
    "assignment_id",
    "snapshot",
    "shadow",
    "committed",
    "engine",
];

/// The places where two decisions on the wire differ: pointer, first, second. At most 100 of them.
pub fn differences(first: &Value, second: &Value) -> Vec<(String, Value, Value)> {
    let mut found = Vec::new();
    compare("", first, second, &mut found);
    found
}

fn compare(pointer: &str, first: &Value, second: &Value, found: &mut Vec<(String, Value, Value)>) {
    if first == second || found.len() >= 100 {
        return;
    }
    match (first, second) {
        (Value::Object(left), Value::Object(right)) => {
            let mut names: Vec<&String> = left.keys().chain(right.keys()).collect();
            names.sort_unstable();
            names.dedup();
            for name in names
                .into_iter()
                .filter(|name| !OF_THE_PASS.contains(&name.as_str()))
            {
                let of = |side: &Map<String, Value>| side.get(name).cloned().unwrap_or(Value::Null);
                compare(&format!("{pointer}/{name}"), &of(left), &of(right), found);
            }
        }
        (Value::Array(left), Value::Array(right)) if left.len() == right.len() => {
            for (at, (left, right)) in left.iter().zip(right).enumerate() {
                compare(&format!("{pointer}/{at}"), left, right, found);
            }
        }
        _ => found.push((pointer.to_owned(), first.clone(), second.clone())),
    }
}
