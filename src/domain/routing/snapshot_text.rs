//! The text of a snapshot, written at once. It is the canonical one: members of everything that is written here stand in the
//! order of their names, and what is small goes by way of a value of JSON, which keeps that order too.

use std::collections::BTreeMap;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::candidate::{Bid, Candidate, Learned};
use super::known::Known;
use super::live::Live;
use super::objects::{Location, Rule, Status};
use super::pass::Request;
use super::reads::Reads;
use super::ready::ReadyRule;
use super::route::ENGINE;
use super::snapshot::VERSION;
use super::state::StageState;
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId};
use crate::words::time::Micros;

/// All that is kept, in the order of names.
#[derive(serde::Serialize)]
struct Written<'k> {
    decision: DecisionId,
    default_pool: Option<RecipientPoolId>,
    engine: &'static str,
    flows: Value,
    holders: Value,
    members: BTreeMap<RecipientPoolId, Vec<Member<'k>>>,
    mode: Value,
    names: &'k BTreeMap<String, Option<RecipientPoolId>>,
    now: Micros,
    #[serde(rename = "pools")]
    recipient_pools: Value,
    request: Value,
    rules: Value,
    seen: Value,
    states: Vec<(RecipientPoolId, &'k str, &'k StageState)>,
    tenant: &'k str,
    traits: Value,
    tried: &'k [(RecipientId, DecisionId)],
    version: u32,
}

/// The text of what was read.
pub(super) fn written(
    request: &Request,
    now: Micros,
    decision: DecisionId,
    read: &Known,
) -> Result<String, serde_json::Error> {
    let reads = Reads::of(request, read);
    let members = read.candidates.iter().map(|(id, all)| {
        let all = all.iter().map(|one| Member::of(one, &reads));
        (*id, all.collect())
    });
    let recipient_pools = read.recipient_pools.iter().map(|(id, prepared)| {
        let kept = prepared
            .as_ref()
            .map(|prepared| json!({"pool": prepared.recipient_pool, "rules": declared(&prepared.rules)}));
        (id.to_string(), kept.unwrap_or_default())
    });
    let holders = read.holders.iter();
    let holders: Vec<_> = holders
        .map(|((id, stage, key), holder)| json!([id, stage, key, holder]))
        .collect();
    let seen = read.seen.iter();
    let seen: Vec<_> = seen
        .map(|((id, key), (decision, at))| json!([id, key, decision, at]))
        .collect();
    let states = read.states.iter();
    serde_json::to_string(&Written {
        decision,
        default_pool: read.default_recipient_pool,
        engine: ENGINE,
        flows: json!(read.flows),
        holders: Value::from(holders),
        members: members.collect(),
        mode: json!(read.pipeline_mode),
        names: &read.names,
        now,
        recipient_pools: Value::Object(recipient_pools.collect::<Map<_, _>>()),
        request: json!(request),
        rules: json!(declared(&read.tenant_rules)),
        seen: Value::from(seen),
        states: states
            .map(|((id, stage), state)| (*id, stage.as_str(), &**state))
            .collect(),
        tenant: &read.tenant,
        traits: json!(*read.traits),
        tried: &read.tried,
        version: VERSION,
    })
}

fn declared(ready: &[ReadyRule]) -> Vec<&Rule> {
    ready.iter().map(|ready| &ready.rule).collect()
}

/// A member, as far as anything looked at it; in the order of names.
#[derive(serde::Serialize)]
struct Member<'m> {
    #[serde(skip_serializing_if = "Attributes::is_empty")]
    attributes: Attributes<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bid: Option<BidText<'m>>,
    #[serde(skip_serializing_if = "is_zero")]
    daily: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    external_id: Option<&'m str>,
    id: RecipientId,
    #[serde(skip_serializing_if = "LearnedText::is_nothing")]
    learned: LearnedText<'m>,
    live: LiveText<'m>,
    #[serde(skip_serializing_if = "Option::is_none")]
    location: Option<Location>,
    max: u32,
    name: &'m str,
    #[serde(skip_serializing_if = "Option::is_none")]
    schedule: Option<Value>,
    status: Status,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    tags: &'m [String],
    timezone: &'m str,
    #[serde(rename = "type")]
    kind: &'m str,
    weight: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde asks so")]
fn is_zero(number: &u32) -> bool {
    *number == 0
}

impl<'m> Member<'m> {
    fn of(candidate: &'m Candidate, reads: &'m Reads) -> Member<'m> {
        let recipient = &candidate.recipient;
        Member {
            attributes: Attributes {
                all: &recipient.attributes,
                reads,
            },
            bid: candidate.bid.as_ref().map(BidText),
            daily: recipient.daily_limit,
            external_id: recipient.external_id.as_deref(),
            id: recipient.id,
            learned: LearnedText(&candidate.learned),
            live: LiveText(&candidate.live),
            location: recipient.location.filter(|_| reads.location),
            max: recipient.max_concurrent,
            name: &recipient.name,
            schedule: recipient.schedule.as_ref().map(|hours| json!(hours)),
            status: recipient.status,
            tags: if reads.tags { &recipient.tags } else { &[] },
            timezone: &recipient.timezone,
            kind: &recipient.kind,
            weight: recipient.weight_micro,
        }
    }
}

/// Those attributes that can have been looked at.
struct Attributes<'m> {
    all: &'m Map<String, Value>,
    reads: &'m Reads,
}

impl Attributes<'_> {
    fn kept(&self) -> impl Iterator<Item = (&String, &Value)> {
        self.all.iter().filter(|(key, _)| self.reads.attribute(key))
    }

    fn is_empty(&self) -> bool {
        self.kept().next().is_none()
    }
}

impl Serialize for Attributes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.kept())
    }
}

// The rows of these three are stored as they are declared: their fields have another order there.
struct LiveText<'m>(&'m Live);

impl Serialize for LiveText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let live = self.0;
        let mut map = serializer.serialize_map(Some(10))?;
        map.serialize_entry("capacity_epoch", &live.capacity_epoch)?;
        map.serialize_entry("cooldown_until", &live.cooldown_until)?;
        map.serialize_entry("current", &live.current)?;
        map.serialize_entry("daily_count", &live.daily_count)?;
        map.serialize_entry("daily_reset_at", &live.daily_reset_at)?;
        map.serialize_entry("last_assigned_at", &live.last_assigned_at)?;
        map.serialize_entry("last_finished_at", &live.last_finished_at)?;
        map.serialize_entry("state", &live.state)?;
        map.serialize_entry("state_since", &live.state_since)?;
        map.serialize_entry("units", &live.units)?;
        map.end()
    }
}

struct LearnedText<'m>(&'m Learned);

impl LearnedText<'_> {
    fn is_nothing(&self) -> bool {
        *self.0 == Learned::default()
    }
}

impl Serialize for LearnedText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let learned = self.0;
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("delivered", &learned.delivered)?;
        map.serialize_entry("delivered_since", &learned.delivered_since)?;
        map.serialize_entry("ewma_at", &learned.ewma_at)?;
        map.serialize_entry("ewma_us", &learned.ewma_us)?;
        map.serialize_entry("faded_at", &learned.faded_at)?;
        map.serialize_entry("n", &learned.n)?;
        map.serialize_entry("successes", &learned.successes)?;
        map.end()
    }
}

struct BidText<'m>(&'m Bid);

impl Serialize for BidText<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let bid = self.0;
        let mut map = serializer.serialize_map(Some(7))?;
        map.serialize_entry("amount", &bid.amount)?;
        map.serialize_entry("at", &bid.at)?;
        map.serialize_entry("effective", &bid.effective)?;
        map.serialize_entry("expires_at", &bid.expires_at)?;
        map.serialize_entry("quality_micro", &bid.quality_micro)?;
        map.serialize_entry("sla_micro", &bid.sla_micro)?;
        map.serialize_entry("wallet", &bid.wallet)?;
        map.end()
    }
}
