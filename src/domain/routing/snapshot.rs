//! The snapshot of a decision: the canonical JSON of exactly what was read, and the replay from it alone.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::candidate::{Bid, Candidate, Learned};
use super::known::Known;
use super::live::Live;
use super::objects::{Hours, Location, PipelineMode, Recipient, RecipientPool, Rule, Status, Trait};
use super::pass::{Flow, Passed, Request, Stopped, route};
use super::ready::{Prepared, ReadyRule};
use super::snapshot_text::written;
use super::state::{Holder, StageState};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, sha256_hex};
use crate::words::time::Micros;

/// The form of snapshots that this program writes.
pub(super) const VERSION: u32 = 1;

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

/// What is kept, as it is read.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    #[serde(rename = "pools")]
    recipient_pools: BTreeMap<RecipientPoolId, Option<KeptPool>>,
    names: BTreeMap<String, Option<RecipientPoolId>>,
    members: BTreeMap<RecipientPoolId, Vec<Member>>,
    traits: Vec<Trait>,
    states: Vec<(RecipientPoolId, String, StageState)>,
    holders: Vec<(RecipientPoolId, String, String, Holder)>,
    seen: Vec<(RecipientPoolId, String, DecisionId, Micros)>,
    flows: BTreeMap<RecipientPoolId, Flow>,
    tried: Vec<(RecipientId, DecisionId)>,
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct KeptPool {
    #[serde(rename = "pool")]
    recipient_pool: RecipientPool,
    rules: Vec<Rule>,
}

/// A member, as far as anything looked at it.
#[derive(Debug, Clone, PartialEq, Deserialize)]
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
    live: Live,
    #[serde(default)]
    learned: Learned,
    #[serde(default)]
    bid: Option<Bid>,
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
    let text = written(request, now, decision, read).expect("a snapshot is plain data");
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
    for (id, found) in kept.recipient_pools {
        let prepared = found.map(|kept| Arc::new(Prepared::new(kept.recipient_pool, kept.rules)));
        read.recipient_pools.insert(id, prepared);
    }
    for (id, members) in kept.members {
        read.candidates
            .insert(id, members.into_iter().map(Member::candidate).collect());
    }
    for (id, stage, state) in kept.states {
        read.states.insert((id, stage), Arc::new(state));
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
