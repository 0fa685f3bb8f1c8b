//! Why a candidate does not get the work, and notes on a decision: a closed registry. A code is never renamed or reused.

use super::duration;
use serde_json::{Value, json};

use super::numbers;
use crate::words::ids::{DecisionId, RecipientId};
use crate::words::time::Micros;

/// Why a candidate does not get the work.
#[derive(Debug, Clone, PartialEq)]
pub enum Reason {
    /// Its administrative status is paused.
    StatusPaused,
    /// Its administrative status is disabled.
    StatusDisabled,
    /// It is not online.
    StateOffline {
        /// Since when.
        since: Micros,
    },
    /// It was taken out of rotation.
    StatePaused {
        /// Since when.
        since: Micros,
    },
    /// It works, and BUSY does not count here.
    StateBusy {
        /// Since when.
        since: Micros,
    },
    /// It had this work before.
    TriedBefore {
        /// By which decision.
        decision: DecisionId,
    },
    /// The caller ruled it out.
    Excluded,
    /// It rests.
    Cooldown {
        /// Until when.
        until: Micros,
    },
    /// It has as many assignments as it takes.
    CapacityConcurrent {
        /// Open ones.
        current: u32,
        /// The limit.
        max: u32,
    },
    /// It has had as many as it takes in its window.
    CapacityDaily {
        /// In this window.
        count: u32,
        /// The limit.
        limit: u32,
        /// When the window ends.
        resets_at: Option<Micros>,
    },
    /// Even the budget beyond capacity is used up.
    CapacityOverBudget {
        /// Assignments above the limits after this one.
        over: u64,
        /// How many may be.
        budget: u64,
    },
    /// Its windows are closed.
    ScheduleClosed {
        /// The zone of its windows.
        zone: String,
        /// Its wall time, like `Sun 09:44`.
        local: String,
        /// When they open.
        opens_at: Option<Micros>,
    },
    /// It does not have what the work wants.
    TraitMissing {
        /// The trait.
        key: String,
        /// What the work wants.
        want: Box<Value>,
    },
    /// It has something else than what the work wants.
    TraitMismatch {
        /// The trait.
        key: String,
        /// What the work wants.
        want: Box<Value>,
        /// What it has.
        have: Box<Value>,
    },
    /// A filter is false for it.
    RuleFalse {
        /// The rule, or the stage.
        rule: String,
        /// What decided.
        because: String,
    },
    /// A filter could not be evaluated for it.
    RuleError {
        /// The rule, or the stage.
        rule: String,
        /// Why.
        error: String,
    },
    /// The same work was here lately.
    DedupRecent {
        /// The key of the work.
        key: String,
        /// When.
        seen_at: Micros,
    },
    /// The recipient pool takes no more now.
    FlowLimited {
        /// How many.
        rate: u64,
        /// In which time; 0 for at once.
        per_us: u64,
        /// When it takes more, where that is known.
        retry_at: Option<Micros>,
    },
    /// It has had more than its pace.
    PacingAhead {
        /// What it had.
        delivered: u64,
        /// What it should have had.
        target: f64,
    },
    /// It is too far away.
    DistanceOutside {
        /// How far.
        meters: f64,
        /// How far it may be.
        max_meters: f64,
    },
    /// One of the two places is not known.
    DistanceUnknown,
    /// It has not bid.
    BidNone,
    /// Its bid is over.
    BidExpired,
    /// Its bid is too low.
    BidBelowReserve {
        /// In micros of the currency.
        bid: i64,
        /// The same.
        reserve: i64,
    },
    /// Its wallet does not cover its bid.
    WalletInsufficient {
        /// In micros of the currency.
        need: i64,
        /// The same.
        have: i64,
    },
    /// It has claimed as much as it may.
    ClaimBudget {
        /// Claims of the period.
        used: u64,
        /// How many may be.
        limit: u64,
        /// When the next may be.
        resets_at: Option<Micros>,
    },
    /// It would be late.
    SlaCannotMeet {
        /// By how much; negative.
        headroom_ms: i64,
    },
    /// Its weight is 0 where weights count.
    WeightZero,
    /// It was not its turn.
    LostTurn {
        /// Where it stands.
        current: i64,
        /// Where the winner stood.
        winner_current: i64,
    },
    /// The draw fell on another.
    LostSample,
    /// Equal, up to this rung of the ladder.
    LostTie {
        /// Which rung decided.
        on: Rung,
    },
    /// Another one claimed it, or may.
    LostClaim {
        /// Who did.
        claimed_by: Option<RecipientId>,
        /// When.
        at: Option<Micros>,
    },
    /// Another one's number was better.
    LostScore {
        /// Its own.
        score: f64,
        /// The winner's.
        winner: f64,
        /// How far they are apart.
        margin: f64,
    },
    /// Its score is too low.
    ScoreBelowMin {
        /// Its own.
        score: f64,
        /// The least that counts.
        min: f64,
    },
}

/// What told two equals apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rung {
    /// The strategy's own tie rule.
    Own,
    /// The lower utilization.
    Utilization,
    /// The longer idle time.
    Idle,
    /// The smaller id.
    Id,
}

impl Rung {
    /// Its word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Rung::Own => "own",
            Rung::Utilization => "utilization",
            Rung::Idle => "idle",
            Rung::Id => "id",
        }
    }
}

/// Every code of a reason.
pub const CODES: &[&str] = &[
    "status.paused",
    "status.disabled",
    "state.offline",
    "state.paused",
    "state.busy",
    "tried.before",
    "excluded",
    "cooldown",
    "capacity.concurrent",
    "capacity.daily",
    "capacity.over_budget",
    "schedule.closed",
    "trait.missing",
    "trait.mismatch",
    "rule.false",
    "rule.error",
    "dedup.recent",
    "flow.limited",
    "pacing.ahead",
    "distance.outside",
    "distance.unknown",
    "bid.none",
    "bid.expired",
    "bid.below_reserve",
    "wallet.insufficient",
    "claim.budget",
    "sla.cannot_meet",
    "weight.zero",
    "lost.turn",
    "lost.sample",
    "lost.tie",
    "lost.claim",
    "lost.score",
    "score.below_min",
];

impl Reason {
    /// The code.
    pub fn code(&self) -> &'static str {
        match self {
            Reason::StatusPaused => "status.paused",
            Reason::StatusDisabled => "status.disabled",
            Reason::StateOffline { .. } => "state.offline",
            Reason::StatePaused { .. } => "state.paused",
            Reason::StateBusy { .. } => "state.busy",
            Reason::TriedBefore { .. } => "tried.before",
            Reason::Excluded => "excluded",
            Reason::Cooldown { .. } => "cooldown",
            Reason::CapacityConcurrent { .. } => "capacity.concurrent",
            Reason::CapacityDaily { .. } => "capacity.daily",
            Reason::CapacityOverBudget { .. } => "capacity.over_budget",
            Reason::ScheduleClosed { .. } => "schedule.closed",
            Reason::TraitMissing { .. } => "trait.missing",
            Reason::TraitMismatch { .. } => "trait.mismatch",
            Reason::RuleFalse { .. } => "rule.false",
            Reason::RuleError { .. } => "rule.error",
            Reason::DedupRecent { .. } => "dedup.recent",
            Reason::FlowLimited { .. } => "flow.limited",
            Reason::PacingAhead { .. } => "pacing.ahead",
            Reason::DistanceOutside { .. } => "distance.outside",
            Reason::DistanceUnknown => "distance.unknown",
            Reason::BidNone => "bid.none",
            Reason::BidExpired => "bid.expired",
            Reason::BidBelowReserve { .. } => "bid.below_reserve",
            Reason::WalletInsufficient { .. } => "wallet.insufficient",
            Reason::ClaimBudget { .. } => "claim.budget",
            Reason::SlaCannotMeet { .. } => "sla.cannot_meet",
            Reason::WeightZero => "weight.zero",
            Reason::LostTurn { .. } => "lost.turn",
            Reason::LostSample => "lost.sample",
            Reason::LostTie { .. } => "lost.tie",
            Reason::LostClaim { .. } => "lost.claim",
            Reason::LostScore { .. } => "lost.score",
            Reason::ScoreBelowMin { .. } => "score.below_min",
        }
    }

    /// Whether it could have had the work and another one got it.
    pub fn is_lost(&self) -> bool {
        matches!(
            self,
            Reason::LostTurn { .. }
                | Reason::LostSample
                | Reason::LostTie { .. }
                | Reason::LostClaim { .. }
                | Reason::LostScore { .. }
        )
    }

    /// Code and parameters, as they stand in a decision.
    pub fn to_json(&self) -> Value {
        let mut object = self.parameters().as_object().cloned().unwrap_or_default();
        object.insert("code".to_owned(), Value::from(self.code()));
        Value::Object(object)
    }

    fn parameters(&self) -> Value {
        match self {
            Reason::StatusPaused
            | Reason::StatusDisabled
            | Reason::Excluded
            | Reason::DistanceUnknown
            | Reason::BidNone
            | Reason::BidExpired
            | Reason::WeightZero
            | Reason::LostSample => Value::Null,
            Reason::StateOffline { since } | Reason::StatePaused { since } | Reason::StateBusy { since } => {
                json!({"since": since})
            }
            Reason::TriedBefore { decision } => json!({"decision": decision}),
            Reason::Cooldown { until } => json!({"until": until}),
            Reason::CapacityConcurrent { current, max } => json!({"current": current, "max": max}),
            Reason::CapacityDaily {
                count,
                limit,
                resets_at,
            } => json!({"count": count, "limit": limit, "resets_at": resets_at}),
            Reason::CapacityOverBudget { over, budget } => json!({"over": over, "budget": budget}),
            Reason::ScheduleClosed {
                zone,
                local,
                opens_at,
            } => json!({"zone": zone, "local": local, "opens_at": opens_at}),
            Reason::TraitMissing { key, want } => json!({"trait": key, "want": want}),
            Reason::TraitMismatch { key, want, have } => json!({"trait": key, "want": want, "have": have}),
            Reason::RuleFalse { rule, because } => json!({"rule": rule, "because": because}),
            Reason::RuleError { rule, error } => json!({"rule": rule, "error": error}),
            Reason::DedupRecent { key, seen_at } => json!({"key": key, "seen_at": seen_at}),
            Reason::FlowLimited {
                rate,
                per_us,
                retry_at,
            } => json!({"rate": rate, "per": duration::print(*per_us), "retry_at": retry_at}),
            Reason::LostTie { on } => json!({"on": on.word()}),
            Reason::LostClaim { claimed_by, at } => json!({"claimed_by": claimed_by, "at": at}),
            Reason::PacingAhead { .. }
            | Reason::DistanceOutside { .. }
            | Reason::BidBelowReserve { .. }
            | Reason::WalletInsufficient { .. }
            | Reason::ClaimBudget { .. }
            | Reason::SlaCannotMeet { .. }
            | Reason::LostTurn { .. }
            | Reason::LostScore { .. }
            | Reason::ScoreBelowMin { .. } => self.numbers(),
        }
    }

    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "the other half of the reasons is printed by `parameters`"
    )]
    fn numbers(&self) -> Value {
        match self {
            Reason::PacingAhead { delivered, target } => {
                json!({"delivered": delivered, "target": numbers::rounded(*target)})
            }
            Reason::DistanceOutside { meters, max_meters } => {
                json!({"meters": numbers::rounded(*meters), "max_meters": numbers::rounded(*max_meters)})
            }
            Reason::BidBelowReserve { bid, reserve } => {
                json!({"bid": numbers::money(*bid), "reserve": numbers::money(*reserve)})
            }
            Reason::WalletInsufficient { need, have } => {
                json!({"need": numbers::money(*need), "have": numbers::money(*have)})
            }
            Reason::ClaimBudget {
                used,
                limit,
                resets_at,
            } => json!({"used": used, "limit": limit, "resets_at": resets_at}),
            Reason::SlaCannotMeet { headroom_ms } => json!({"headroom_ms": headroom_ms}),
            Reason::LostTurn {
                current,
                winner_current,
            } => json!({"current": current, "winner_current": winner_current}),
            Reason::LostScore {
                score,
                winner,
                margin,
            } => json!({
                "score": numbers::rounded(*score),
                "winner": numbers::rounded(*winner),
                "margin": numbers::rounded(*margin),
            }),
            Reason::ScoreBelowMin { score, min } => {
                json!({"score": numbers::rounded(*score), "min": numbers::rounded(*min)})
            }
            _ => Value::Null,
        }
    }
}

/// What is worth knowing of a decision and is no verdict on a candidate.
#[derive(Debug, Clone, PartialEq)]
pub enum Note {
    /// The holder of the key could not get the work.
    StickyHolderIneligible {
        /// Who holds it.
        holder: RecipientId,
        /// Why not; `gone` when it is no member any more.
        reason: String,
    },
    /// A required trait was no longer required.
    TraitRelaxed {
        /// The trait.
        key: String,
        /// After so long a wait.
        after_us: u64,
    },
    /// The work waited too long.
    QueueExpired {
        /// How long it did.
        waited_us: u64,
        /// How long it might have.
        ttl_us: u64,
    },
    /// The hash of the key chose this sub-pool.
    ShardChosen {
        /// Its name.
        recipient_pool: String,
    },
    /// What it picks by lacks something.
    Unusable {
        /// Where, in the recipient pool.
        pointer: String,
        /// What.
        detail: String,
    },
    /// It could not be entered: it does not route, is gone, or was visited.
    Skipped {
        /// Its name, or its id when it is gone.
        recipient_pool: String,
    },
}

impl Note {
    /// The code.
    pub fn code(&self) -> &'static str {
        match self {
            Note::StickyHolderIneligible { .. } => "sticky.holder_ineligible",
            Note::TraitRelaxed { .. } => "trait.relaxed",
            Note::QueueExpired { .. } => "queue.expired",
            Note::ShardChosen { .. } => "shard.chosen",
            Note::Skipped { .. } => "pool.skipped",
            Note::Unusable { .. } => "strategy.unusable",
        }
    }

    /// Code and parameters, as they stand in a decision.
    pub fn to_json(&self) -> Value {
        match self {
            Note::StickyHolderIneligible { holder, reason } => {
                json!({"code": self.code(), "holder": holder, "reason": reason})
            }
            Note::TraitRelaxed { key, after_us } => {
                json!({"code": self.code(), "trait": key, "after": duration::print(*after_us)})
            }
            Note::QueueExpired { waited_us, ttl_us } => json!({
                "code": self.code(), "waited": duration::print(*waited_us), "ttl": duration::print(*ttl_us),
            }),
            Note::ShardChosen { recipient_pool } | Note::Skipped { recipient_pool } => {
                json!({"code": self.code(), "pool": recipient_pool})
            }
            Note::Unusable { pointer, detail } => {
                json!({"code": self.code(), "pointer": pointer, "detail": detail})
            }
        }
    }
}
