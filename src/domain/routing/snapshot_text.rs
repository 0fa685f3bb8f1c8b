//! The text of a snapshot: what moves from decision to decision, and the digest of what is declared. It is the canonical one:
//! members of everything that is written here stand in the order of their names, and what is small goes by way of a value of
//! JSON, which keeps that order too. What recipients do now stands in lines without names, in the order of the members: there
//! are many of them in every decision.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::candidate::{Bid, Candidate, Learned};
use super::known::Known;
use super::live::Live;
use super::objects::{PipelineMode, RecipientState};
use super::pass::{Flow, Request};
use super::route::ENGINE;
use super::snapshot::VERSION;
use super::state::{Holder, StageState};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// An instant as a number: microseconds since 1970.
type At = i64;

/// State, since when, current, units, count of the day, its end, epoch, newest assignment, newest end, rest.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LiveLine(
    RecipientState,
    At,
    u32,
    u64,
    u32,
    Option<At>,
    u64,
    Option<At>,
    Option<At>,
    Option<At>,
);

fn number(at: Micros) -> At {
    at.0
}

impl LiveLine {
    fn of(live: &Live) -> LiveLine {
        LiveLine(
            live.state,
            live.state_since.0,
            live.current,
            live.units,
            live.daily_count,
            live.daily_reset_at.map(number),
            live.capacity_epoch,
            live.last_assigned_at.map(number),
            live.last_finished_at.map(number),
            live.cooldown_until.map(number),
        )
    }

    fn live(&self) -> Live {
        Live {
            state: self.0,
            state_since: Micros(self.1),
            current: self.2,
            units: self.3,
            daily_count: self.4,
            daily_reset_at: self.5.map(Micros),
            capacity_epoch: self.6,
            last_assigned_at: self.7.map(Micros),
            last_finished_at: self.8.map(Micros),
            cooldown_until: self.9.map(Micros),
        }
    }
}

/// Ends with a value, their sum, when these faded last, how long work takes, when that was seen, assignments of the window, its
/// start.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LearnedLine(f64, f64, Option<At>, Option<f64>, Option<At>, u64, Option<At>);

impl LearnedLine {
    fn of(learned: &Learned) -> Option<LearnedLine> {
        (*learned != Learned::default()).then_some(LearnedLine(
            learned.n,
            learned.successes,
            learned.faded_at.map(number),
            learned.ewma_us,
            learned.ewma_at.map(number),
            learned.delivered,
            learned.delivered_since.map(number),
        ))
    }

    fn learned(&self) -> Learned {
        Learned {
            n: self.0,
            successes: self.1,
            faded_at: self.2.map(Micros),
            ewma_us: self.3,
            ewma_at: self.4.map(Micros),
            delivered: self.5,
            delivered_since: self.6.map(Micros),
        }
    }
}

/// Amount, effective amount, when, until when, quality, promises kept, what the wallet holds.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct BidLine(i64, i64, At, Option<At>, i64, i64, Option<i64>);

impl BidLine {
    fn of(bid: &Bid) -> BidLine {
        BidLine(
            bid.amount,
            bid.effective,
            bid.at.0,
            bid.expires_at.map(number),
            bid.quality_micro,
            bid.sla_micro,
            bid.wallet,
        )
    }

    fn bid(&self) -> Bid {
        Bid {
            amount: self.0,
            effective: self.1,
            at: Micros(self.2),
            expires_at: self.3.map(Micros),
            quality_micro: self.4,
            sla_micro: self.5,
            wallet: self.6,
        }
    }
}

/// The moving half of the members of a recipient pool, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Lines {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    bids: Vec<Option<BidLine>>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    learned: Vec<Option<LearnedLine>>,
    live: Vec<LiveLine>,
}

impl Lines {
    fn of(members: &[Candidate]) -> Lines {
        let mut bids: Vec<_> = members
            .iter()
            .map(|one| one.bid.as_ref().map(BidLine::of))
            .collect();
        if bids.iter().all(Option::is_none) {
            bids.clear();
        }
        let mut learned: Vec<_> = members.iter().map(|one| LearnedLine::of(&one.learned)).collect();
        if learned.iter().all(Option::is_none) {
            learned.clear();
        }
        Lines {
            bids,
            learned,
            live: members.iter().map(|one| LiveLine::of(&one.live)).collect(),
        }
    }

    /// Gives them to their members; false where there are not as many.
    pub(super) fn lay_over(&self, members: &mut [Candidate]) -> bool {
        let fits = |lines: usize| lines == 0 || lines == members.len();
        if self.live.len() != members.len() || !fits(self.learned.len()) || !fits(self.bids.len()) {
            return false;
        }
        for (member, line) in members.iter_mut().zip(&self.live) {
            member.live = line.live();
        }
        for (member, line) in members.iter_mut().zip(&self.learned) {
            member.learned = line.as_ref().map(LearnedLine::learned).unwrap_or_default();
        }
        for (member, line) in members.iter_mut().zip(&self.bids) {
            member.bid = line.as_ref().map(BidLine::bid);
        }
        true
    }
}

/// All that is kept, in the order of names.
#[derive(Serialize)]
struct Written<'k> {
    decision: DecisionId,
    declared: &'k str,
    default_pool: Option<RecipientPoolId>,
    engine: &'static str,
    flows: Value,
    holders: Value,
    members: BTreeMap<RecipientPoolId, Lines>,
    mode: Value,
    names: &'k BTreeMap<String, Option<RecipientPoolId>>,
    now: Micros,
    request: Value,
    seen: Value,
    states: Vec<(RecipientPoolId, &'k str, &'k StageState)>,
    tenant: &'k str,
    tried: &'k [(RecipientId, DecisionId)],
    version: u32,
}

/// The same, as it is read again.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Kept {
    pub(super) decision: DecisionId,
    #[serde(rename = "declared")]
    _declared: String,
    pub(super) default_pool: Option<RecipientPoolId>,
    pub(super) engine: String,
    pub(super) flows: BTreeMap<RecipientPoolId, Flow>,
    pub(super) holders: Vec<(RecipientPoolId, String, String, Holder)>,
    pub(super) members: BTreeMap<RecipientPoolId, Lines>,
    pub(super) mode: PipelineMode,
    pub(super) names: BTreeMap<String, Option<RecipientPoolId>>,
    pub(super) now: Micros,
    pub(super) request: Request,
    pub(super) seen: Vec<(RecipientPoolId, String, DecisionId, Micros)>,
    pub(super) states: Vec<(RecipientPoolId, String, StageState)>,
    pub(super) tenant: String,
    pub(super) tried: Vec<(RecipientId, DecisionId)>,
    #[serde(rename = "version")]
    _version: u32,
}

/// About how many bytes the text of a snapshot has: some for each line.
pub fn about(read: &Known) -> usize {
    2_000 + 160 * read.candidates.values().map(|all| all.len()).sum::<usize>()
}

/// The text of what was read; `declared` is the digest of its declared half.
pub(super) fn written(
    request: &Request,
    now: Micros,
    decision: DecisionId,
    read: &Known,
    declared: &str,
) -> Result<JsonText, serde_json::Error> {
    let members = read.candidates.iter();
    let holders = read.holders.iter();
    let holders: Vec<_> = holders
        .map(|((id, stage, key), holder)| json!([id, stage, key, holder]))
        .collect();
    let seen = read.seen.iter();
    let seen: Vec<_> = seen
        .map(|((id, key), (decision, at))| json!([id, key, decision, at]))
        .collect();
    let states = read.states.iter();
    JsonText::sized(
        &Written {
            decision,
            declared,
            default_pool: read.default_recipient_pool,
            engine: ENGINE,
            flows: json!(read.flows),
            holders: Value::from(holders),
            members: members.map(|(id, all)| (*id, Lines::of(all))).collect(),
            mode: json!(read.pipeline_mode),
            names: &read.names,
            now,
            request: json!(request),
            seen: Value::from(seen),
            states: states
                .map(|((id, stage), state)| (*id, stage.as_str(), &**state))
                .collect(),
            tenant: &read.tenant,
            tried: &read.tried,
            version: VERSION,
        },
        about(read),
    )
}
