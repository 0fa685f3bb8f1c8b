//! A decision as data, and as it stands on the wire (section 11 of the specification of routing).

use std::sync::{Arc, OnceLock};

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::{Map, Value, json};

use super::explanation::Explanation;
use super::numbers;
use super::objects::Explain;
use super::reason::Note;
use super::told::Told;
use crate::words::ids::{AssignmentId, DecisionId, RecipientId, RecipientPoolId, WorkId};
use crate::words::time::Micros;

/// How a pass ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Outcome {
    /// One recipient has it.
    Assigned,
    /// One recipient has it, beyond its capacity.
    AssignedOverCapacity,
    /// Several have it.
    Broadcast,
    /// Several may claim it.
    Offered,
    /// It waits.
    Queued,
    /// It waits in a claim queue.
    QueuedForClaim,
    /// It waits, or is offered, where the last hop led.
    Overflowed,
    /// It waits for its catchall.
    DeferredCatchall,
    /// It was escalated, and waits there.
    Escalated,
    /// It is over.
    Dropped,
    /// No rule chose a recipient pool, and there is no default.
    NoRuleMatched,
    /// What was chosen does not route.
    PoolUnroutable,
    /// It hopped too often.
    DepthExceeded,
    /// It was here before.
    Duplicate,
    /// The input cannot be used.
    Invalid,
    /// The configuration cannot be used.
    Error,
}

impl Outcome {
    /// Every outcome, in the order of the specification.
    pub const ALL: [Outcome; 16] = [
        Outcome::Assigned,
        Outcome::AssignedOverCapacity,
        Outcome::Broadcast,
        Outcome::Offered,
        Outcome::Queued,
        Outcome::QueuedForClaim,
        Outcome::Overflowed,
        Outcome::DeferredCatchall,
        Outcome::Escalated,
        Outcome::Dropped,
        Outcome::NoRuleMatched,
        Outcome::PoolUnroutable,
        Outcome::DepthExceeded,
        Outcome::Duplicate,
        Outcome::Invalid,
        Outcome::Error,
    ];

    /// The word of the wire.
    pub fn word(self) -> &'static str {
        match self {
            Outcome::Assigned => "assigned",
            Outcome::AssignedOverCapacity => "assigned_over_capacity",
            Outcome::Broadcast => "broadcast",
            Outcome::Offered => "offered",
            Outcome::Queued => "queued",
            Outcome::QueuedForClaim => "queued_for_claim",
            Outcome::Overflowed => "overflowed",
            Outcome::DeferredCatchall => "deferred_catchall",
            Outcome::Escalated => "escalated",
            Outcome::Dropped => "dropped",
            Outcome::NoRuleMatched => "no_rule_matched",
            Outcome::PoolUnroutable => "pool_unroutable",
            Outcome::DepthExceeded => "depth_exceeded",
            Outcome::Duplicate => "duplicate",
            Outcome::Invalid => "invalid",
            Outcome::Error => "error",
        }
    }

    /// The outcome of a word.
    pub fn of(word: &str) -> Option<Outcome> {
        Outcome::ALL.into_iter().find(|outcome| outcome.word() == word)
    }
}

/// The recipient pool that a pass ended in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chosen {
    /// Its id.
    pub id: RecipientPoolId,
    /// Its name then.
    pub name: String,
    /// Its version then.
    pub record_version: u64,
}

/// Who got the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Winner {
    /// Who.
    pub recipient: RecipientId,
    /// The assignment, once it is written.
    pub assignment: Option<AssignmentId>,
    /// When it must be done; none without a timeout.
    pub deadline_at: Option<Micros>,
    /// It is beyond its capacity.
    pub over_capacity: bool,
}

/// What chance did.
#[derive(Debug, Clone, PartialEq)]
pub struct Randomness {
    /// Whether anything was drawn.
    pub used: bool,
    /// What it was drawn with.
    pub seed: u64,
    /// How likely the winner was; none where that is not known.
    pub propensity: Option<f64>,
}

/// Digests of what decided, without `sha256:`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Digests {
    /// Of the recipient pool; empty without one.
    pub recipient_pool: String,
    /// Of its rules and those of the tenant.
    pub rules: String,
    /// Of the pipeline.
    pub pipeline: String,
    /// Name and version of the program.
    pub engine: String,
}

/// The outcome of one pass.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// Its id.
    pub id: DecisionId,
    /// What was routed.
    pub work: WorkId,
    /// When.
    pub at: Micros,
    /// Whether it was written, or is a dry run.
    pub committed: bool,
    /// How it ended.
    pub outcome: Outcome,
    /// Where; none when no recipient pool was chosen.
    pub recipient_pool: Option<Chosen>,
    /// Where the pass began, when it ended elsewhere.
    pub first_pool: Option<Chosen>,
    /// Who got it.
    pub winners: Vec<Winner>,
    /// One sentence.
    pub summary: String,
    /// Why.
    pub explanation: Explanation,
    /// What else is worth knowing.
    pub notes: Vec<Note>,
    /// What chance did.
    pub randomness: Randomness,
    /// Digest of the snapshot, without `sha256:`. It is said once, when that is taken, which may be after the decision is made.
    pub snapshot: Arc<OnceLock<String>>,
    /// Digests of what decided.
    pub digests: Digests,
    /// The decision of the same work before, for a duplicate.
    pub existing: Option<DecisionId>,
    /// What `dag` would have decided otherwise, in the pipeline mode `shadow`; none when it agrees or was not asked.
    pub mode_diff: Option<Value>,
    /// What the winner pays, or is paid, in micros of its currency.
    pub cost_micros: i64,
    /// How long it took.
    pub duration_micros: u64,
}

fn sha256(digest: &str) -> Value {
    if digest.is_empty() {
        Value::Null
    } else {
        Value::from(format!("sha256:{digest}"))
    }
}

impl Chosen {
    fn to_json(&self) -> Value {
        json!({"id": self.id, "name": self.name, "record_version": self.record_version})
    }
}

impl Winner {
    fn to_json(&self) -> Value {
        json!({
            "recipient_id": self.recipient, "assignment_id": self.assignment,
            "deadline_at": self.deadline_at, "over_capacity": self.over_capacity,
        })
    }
}

/// The member that is larger than all the others together.
const EXPLANATION: &str = "explanation";

/// A decision as it stands on the wire; members in the order of their names.
pub struct Wire<'d> {
    members: Map<String, Value>,
    explanation: Told<'d>,
}

impl Serialize for Wire<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(self.members.len() + 1))?;
        let (before, behind): (Vec<_>, Vec<_>) = self
            .members
            .iter()
            .partition(|(name, _)| name.as_str() < EXPLANATION);
        for (name, value) in before {
            map.serialize_entry(name, value)?;
        }
        map.serialize_entry(EXPLANATION, &self.explanation)?;
        for (name, value) in behind {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

impl Decision {
    /// As it stands on the wire and in the store. Shadow results are joined by whoever reads.
    pub fn to_json(&self, explain: Explain) -> Value {
        serde_json::to_value(self.wire(explain, Map::new())).expect("a decision is plain data")
    }

    /// The same as something that can be written as text at once, with more members than the decision itself knows.
    pub fn wire(&self, explain: Explain, more: Map<String, Value>) -> Wire<'_> {
        let mut object = self.head();
        object.extend(more);
        let mut put = |name: &str, value: Value| {
            object.insert(name.to_owned(), value);
        };
        put("id", json!(self.id));
        put("work_id", json!(self.work));
        put("at", json!(self.at));
        put("committed", json!(self.committed));
        put("winners", self.winners.iter().map(Winner::to_json).collect());
        put("snapshot", sha256(self.snapshot.get().map_or("", String::as_str)));
        put(
            "config",
            json!({
                "pool": sha256(&self.digests.recipient_pool), "rules": sha256(&self.digests.rules),
                "pipeline": sha256(&self.digests.pipeline), "engine": self.digests.engine,
            }),
        );
        put("shadow", json!([]));
        put("duration_micros", json!(self.duration_micros));
        Wire {
            members: object,
            explanation: Told::new(&self.explanation, explain, true),
        }
    }

    /// What a replay must give again: everything that was decided, without times and ids of this one pass.
    pub fn essence(&self, explain: Explain, with_times: bool) -> Map<String, Value> {
        let mut object = self.head();
        let explanation = self.explanation.to_json(explain, with_times);
        object.insert(EXPLANATION.to_owned(), explanation);
        object
    }

    /// All of it but the explanation.
    fn head(&self) -> Map<String, Value> {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| {
            object.insert(name.to_owned(), value);
        };
        put("outcome", json!(self.outcome.word()));
        put(
            "pool",
            self.recipient_pool.as_ref().map_or(Value::Null, Chosen::to_json),
        );
        if let Some(first) = &self.first_pool {
            put("first_pool", first.to_json());
        }
        let winners = self.winners.iter().map(|winner| {
            json!({
                "recipient_id": winner.recipient, "deadline_at": winner.deadline_at,
                "over_capacity": winner.over_capacity,
            })
        });
        put("winners", winners.collect());
        put("summary", json!(self.summary));
        if !self.notes.is_empty() {
            put("notes", self.notes.iter().map(Note::to_json).collect());
        }
        put(
            "randomness",
            json!({
                "used": self.randomness.used, "seed": format!("{:016x}", self.randomness.seed),
                "propensity": self.randomness.propensity.map_or(Value::Null, numbers::exact),
            }),
        );
        put("cost_micros", numbers::money(self.cost_micros));
        if let Some(existing) = self.existing {
            put("existing_decision_id", json!(existing));
        }
        if let Some(difference) = &self.mode_diff {
            put("mode_diff", difference.clone());
        }
        object
    }
}
