//! One pass: what it is asked, what it reads, and what must be written afterwards. `route` runs it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::candidate::Members;
use super::crew::{Alone, Crew};
use super::decision::Decision;
use super::fault::Fault;
use super::known::Known;
use super::objects::{Explain, PipelineMode, Trait};
use super::ready::{Prepared, ReadyRule};
use super::reason::Reason;
use super::state::{Holder, StageState};
use super::work::Work;
use crate::words::ids::{ClaimQueueId, DecisionId, RecipientId, RecipientPoolId, RuleId};
use crate::words::time::Micros;

pub use super::route::{Eligibility, eligible_now, route};

/// What a pass reads. Clock and chance are no part of it: they come with the request. Everything belongs to one tenant.
pub trait World {
    /// Why something could not be read.
    type Error;

    /// The name of the tenant.
    fn tenant(&self) -> String;
    /// The tenant's `routing.default_pool_id`.
    fn default_recipient_pool(&self) -> Result<Option<RecipientPoolId>, Self::Error>;
    /// How checks run where a recipient pool says `inherit`: the tenant's word, else the daemon's.
    fn pipeline_mode(&self) -> Result<PipelineMode, Self::Error>;
    /// The rules of the tenant, in the order in which they count.
    fn tenant_rules(&self) -> Result<Arc<Vec<ReadyRule>>, Self::Error>;
    /// A recipient pool with its rules and its pipeline.
    fn recipient_pool(&self, id: RecipientPoolId) -> Result<Option<Arc<Prepared>>, Self::Error>;
    /// The id of a recipient pool by its name.
    fn recipient_pool_named(&self, name: &str) -> Result<Option<RecipientPoolId>, Self::Error>;
    /// The members of a recipient pool, in any order.
    fn candidates(&self, id: RecipientPoolId) -> Result<Members, Self::Error>;
    /// The traits of the tenant.
    fn traits(&self) -> Result<Arc<Vec<Trait>>, Self::Error>;
    /// What a stage of a recipient pool remembers.
    fn stage_state(&self, id: RecipientPoolId, stage: &str) -> Result<Option<Arc<StageState>>, Self::Error>;
    /// Who holds a key in a sticky stage of a recipient pool.
    fn holder(&self, id: RecipientPoolId, stage: &str, key: &str) -> Result<Option<Holder>, Self::Error>;
    /// The newest decision on work with this key in a recipient pool, and when it was made.
    fn seen(&self, id: RecipientPoolId, dedup_key: &str)
    -> Result<Option<(DecisionId, Micros)>, Self::Error>;
    /// What flowed through a recipient pool: open assignments, and those made after `since`.
    fn flow(&self, id: RecipientPoolId, since: Micros) -> Result<Flow, Self::Error>;
    /// Who had this work before, and by which decision: those who rejected it, returned it, or let it expire.
    fn tried_before(&self, work: &Work) -> Result<Vec<(RecipientId, DecisionId)>, Self::Error>;
    /// Who works on large checks; nothing is decided by it.
    fn crew(&self) -> &dyn Crew {
        &Alone
    }
    /// Microseconds of a clock that only measures how long stages take; nothing is decided by it.
    fn stopwatch(&self) -> u64 {
        0
    }
}

/// What flowed through a recipient pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Flow {
    /// Open and accepted assignments.
    pub open: u64,
    /// Assignments since the time asked for.
    pub recent: u64,
    /// The oldest of these.
    pub oldest: Option<Micros>,
}

/// Why a pass is made.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// Somebody asks, or work that waits is tried again.
    #[default]
    Asked,
    /// The catchall is due.
    Catchall,
    /// A clock ran out, and the work is escalated.
    Escalation,
}

/// What is asked.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// What is routed.
    pub work: Work,
    /// Skips the rules of the tenant.
    pub recipient_pool: Option<RecipientPoolId>,
    /// In place of the recipient pool's strategy.
    pub strategy: Option<String>,
    /// Over those of the recipient pool.
    pub strategy_options: BTreeMap<String, Map<String, Value>>,
    /// A pipeline in place of it, as one would write it: what would have been, and campaigns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pipeline: Option<Value>,
    /// Turns move on as if this one had won: the memory of a campaign that mirrors production.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub forced: Option<RecipientId>,
    /// Those who may not have it.
    pub exclude: BTreeSet<RecipientId>,
    /// Manual assignment: nobody else may have it.
    pub recipient: Option<RecipientId>,
    /// Manual assignment beyond capacity.
    pub force: bool,
    /// Nothing is written.
    pub dry_run: bool,
    /// How much is explained; none for what the recipient pool says.
    pub explain: Option<Explain>,
    /// Why.
    pub cause: Cause,
    /// Since when the work waits; none for new work.
    pub waiting_since: Option<Micros>,
    /// Since when it is in the recipient pool; none for from now on.
    pub hop_since: Option<Micros>,
    /// Which try this is, from 1.
    pub attempt: u32,
    /// The recipient pools that earlier passes of the same work went through, the first one first.
    pub trail: Vec<RecipientPoolId>,
}

impl Request {
    /// New work, and nothing else said.
    pub fn new(work: Work) -> Request {
        Request {
            work,
            recipient_pool: None,
            strategy: None,
            strategy_options: BTreeMap::new(),
            pipeline: None,
            forced: None,
            exclude: BTreeSet::new(),
            recipient: None,
            force: false,
            dry_run: false,
            explain: None,
            cause: Cause::Asked,
            waiting_since: None,
            hop_since: None,
            attempt: 1,
            trail: Vec::new(),
        }
    }
}

/// What a pass decided, and what must be written with it.
#[derive(Debug, Clone)]
pub struct Passed {
    /// The decision, with its explanation.
    pub decision: Decision,
    /// What happens to the work.
    pub ends: Ends,
    /// What stages remember from now on: recipient pool, stage, state. Rows are replaced.
    pub states: Vec<(RecipientPoolId, String, StageState)>,
    /// Keys of sticky stages that have a holder from now on: recipient pool, stage, key, holder.
    pub bound: Vec<(RecipientPoolId, String, String, Holder)>,
    /// The key under which the recipient pool remembers the work, and for how long (microseconds).
    pub remember: Option<(RecipientPoolId, String, u64)>,
    /// The one code that rejected every member of a recipient pool: event and counter `routing.zero_match`.
    pub zero_match: Vec<(RecipientPoolId, &'static str)>,
    /// Rules that could not be evaluated, each once, with the first reason.
    pub rule_errors: Vec<(RuleId, String)>,
    /// The recipient pools that the work went through, the first one first: the trail of the next pass.
    pub trail: Vec<RecipientPoolId>,
    /// How likely each eligible candidate was to be chosen, where that is known.
    pub chances: Vec<(RecipientId, f64)>,
    /// Exactly what was read.
    pub read: Known,
}

impl Passed {
    /// How likely a recipient was to be chosen: 0 for those who were not eligible; none where nobody can say.
    pub fn chance_of(&self, recipient: RecipientId) -> Option<f64> {
        if self.chances.is_empty() && self.decision.randomness.propensity.is_none() {
            return None;
        }
        let known = self.chances.iter().find(|(id, _)| *id == recipient);
        Some(known.map_or(0.0, |(_, chance)| *chance))
    }
}

/// What happens to the work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ends {
    /// The winners of the decision get an assignment each, in this recipient pool.
    Assigned(RecipientPoolId),
    /// It waits in a recipient pool.
    Waits(Waits),
    /// It is offered.
    Offered(Offered),
    /// It is over: dropped, a duplicate, or nowhere to go.
    Over,
}

/// Work that waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Waits {
    /// Where.
    pub recipient_pool: RecipientPoolId,
    /// When it is dropped.
    pub expires_at: Micros,
    /// When it hops on, and where to.
    pub catchall: Option<(Micros, RecipientPoolId)>,
    /// When a trait stops being required, or a tier is over: the pass is worth another try then.
    pub retry_at: Option<Micros>,
}

/// Work that may be claimed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offered {
    /// Where.
    pub recipient_pool: RecipientPoolId,
    /// The claim queue; none for `shark_tank`.
    pub claim_queue: Option<ClaimQueueId>,
    /// Only these may; none for every member that is eligible when it claims.
    pub to: Option<Vec<RecipientId>>,
    /// Until when; then the fallback runs.
    pub expires_at: Micros,
}

/// Why there is no decision.
#[derive(Debug, Clone, PartialEq)]
pub enum Stopped<E> {
    /// Something could not be read.
    World(E),
    /// The input cannot be used (422).
    Invalid(Vec<Fault>),
    /// The manual assignment is refused (409).
    Refused(Refusal),
}

/// Why a manual assignment is refused.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// It has no room (`recipient.at_capacity`); `force` goes beyond it.
    AtCapacity(Reason),
    /// Another check (`recipient.not_eligible`).
    NotEligible(Reason),
    /// It is no member of the recipient pool (`recipient.not_member`).
    NotMember,
}

impl<E> From<E> for Stopped<E> {
    fn from(error: E) -> Stopped<E> {
        Stopped::World(error)
    }
}
