//! The records of live routing that are no domain objects: decisions with their snapshots, strategy state, index rows.

use serde::{Deserialize, Serialize};

use super::codec::Record;
use super::routing_rows::ObjectRow;
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::candidate::Learned;
use crate::domain::routing::offer::Offer;
use crate::domain::routing::shadow::Tally;
use crate::domain::routing::sla::Breached;
use crate::domain::routing::state::{Holder, StageState};
use crate::domain::routing::waiting::{Place, Waiting};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RunId, TenantId, WaitingId, WorkId};
use crate::words::names::StepRef;
use crate::words::payload::JsonText;
use crate::words::time::Micros;

macro_rules! record {
    ($($type:ty, $name:literal, $version:literal;)*) => {
        $(impl Record for $type {
            const NAME: &'static str = $name;
            const VERSION: u8 = $version;
        })*

        /// The names, for the test that each has golden bytes.
        #[cfg(test)]
        pub(super) const NAMES: &[&str] = &[$($name),*];
    };
}

record! {
    Assignment, "assignment", 1;
    Waiting, "waiting work", 1;
    Offer, "offer", 1;
    WorkRow, "work", 1;
    DecisionRow, "decision", 1;
    SnapshotRow, "snapshot", 1;
    SourceRow, "source", 1;
    DeclaredRow, "declared half", 1;
    StageState, "strategy state", 1;
    Learned, "learned", 1;
    Holder, "sticky holder", 1;
    SeenRow, "seen work", 1;
    TimerRow, "routing timer", 1;
    DrainRow, "drain", 1;
    PoolCounts, "recipient pool counts", 1;
    AlertRow, "routing alert", 1;
    CampaignRow, "shadow campaign", 1;
    CampaignRuns, "shadow campaign of a pool", 1;
    ShadowResult, "shadow result", 1;
    Tally, "shadow tally", 1;
    WorkWaiter, "work waiter", 1;
    RuleErrors, "rule errors", 1;
}

/// The work itself, as it was read last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkRow {
    /// JSON of `domain::routing::work::Work`.
    pub work: JsonText,
}

/// A decision. It never changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecisionRow {
    /// When.
    pub at: Micros,
    /// Over which work.
    pub work: WorkId,
    /// The recipient pool that it ended in.
    pub recipient_pool: Option<RecipientPoolId>,
    /// The word of its outcome.
    pub outcome: String,
    /// Who got it.
    pub winners: Vec<RecipientId>,
    /// Codes of its reasons, each once.
    pub reasons: Vec<String>,
    /// What it left behind that waits or is offered.
    pub item: Option<WaitingId>,
    /// SHA-256 of the snapshot, in hex.
    pub snapshot: Option<String>,
    /// The decision on the wire.
    pub text: JsonText,
}

/// What decisions were made from, in one text, as formats before 7 kept it. It is read, and goes with its decisions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SnapshotRow {
    /// Decisions that name it.
    pub uses: u32,
    /// The canonical JSON.
    pub text: JsonText,
}

/// What one decision was made from: the moving half, and the name of the declared one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SourceRow {
    /// The canonical JSON.
    pub text: JsonText,
    /// SHA-256 of the declared half, in hex.
    pub declared: String,
}

/// What is declared of what decisions were made from. Snapshots of many of them name it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DeclaredRow {
    /// The canonical JSON.
    pub text: JsonText,
}

/// Work that was seen under a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SeenRow {
    /// The decision over the first.
    pub decision: DecisionId,
    /// When.
    pub seen_at: Micros,
    /// Forgotten then.
    pub expires_at: Micros,
}

/// What a timer is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TimerKind {
    /// An assignment expires.
    Deadline,
    /// The first response to an assignment is due.
    Response,
    /// A claim was not answered.
    Neglect,
    /// The wait of an item ends.
    WaitEnds,
    /// Time alone may have changed the outcome for an item.
    Wake,
    /// The queue time of an item is over.
    QueueSla,
    /// An offer ends.
    OfferEnds,
    /// The queue time of an offer is over.
    OfferSla,
    /// Work seen under a key is forgotten.
    Forget,
    /// The holder of a key is forgotten.
    ForgetHolder,
}

impl TimerKind {
    /// All of them, in the order of their numbers.
    pub const ALL: [TimerKind; 10] = [
        TimerKind::Deadline,
        TimerKind::Response,
        TimerKind::Neglect,
        TimerKind::WaitEnds,
        TimerKind::Wake,
        TimerKind::QueueSla,
        TimerKind::OfferEnds,
        TimerKind::OfferSla,
        TimerKind::Forget,
        TimerKind::ForgetHolder,
    ];

    /// Its part of a key.
    pub fn number(self) -> u8 {
        self as u8
    }

    /// The kind of a part of a key.
    pub fn of(number: u8) -> Option<TimerKind> {
        TimerKind::ALL.get(usize::from(number)).copied()
    }
}

/// A timer. Its key says when, what and whose.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct TimerRow {
    /// Of which recipient pool.
    pub recipient_pool: RecipientPoolId,
}

/// The queue of a recipient pool is to be gone through, because something has changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DrainRow {
    /// Grows with each event, so that one during a walk begins another.
    pub generation: u64,
    /// Since when.
    pub since: Micros,
    /// What has changed, for people.
    pub why: String,
    /// Items of the walk under way that were tried and match nobody, by lane: the newest tried.
    pub passed: Vec<Place>,
}

/// How much a recipient pool has, so that nobody counts rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PoolCounts {
    /// Assignments that are open or accepted.
    pub open: u64,
    /// Items that wait.
    pub waiting: u64,
    /// Those of them that came back and are routed anew.
    pub again: u64,
    /// Offers that are open.
    pub offered: u64,
    /// Grows with everything that may change an outcome here, so that who decides that work has to wait sees what it missed.
    pub events: u64,
}

/// A breach that somebody is told of: what an effect of that number delivers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AlertRow {
    /// Whose.
    pub tenant: TenantId,
    /// What.
    pub breached: Breached,
    /// Where.
    pub url: String,
}

/// A shadow campaign.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignRow {
    /// What was declared; its status too.
    pub object: ObjectRow,
    /// Why it stopped itself.
    pub stop_reason: Option<String>,
    /// The version with which it began to run last: what was said before is not counted with what is said since.
    pub began: u64,
}

/// Which decisions of a recipient pool a campaign that runs looks at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CampaignRuns {
    /// Of one hundred.
    pub sample_percent: u32,
    /// Not before.
    pub starts_at: Option<Micros>,
    /// Not from then on.
    pub ends_at: Option<Micros>,
}

/// What a campaign said of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ShadowResult {
    /// As of this beginning of the campaign.
    pub began: u64,
    /// Whom it would have chosen.
    pub winner: Option<RecipientId>,
    /// Production chose the same.
    pub agrees: bool,
    /// How likely it was to choose the winner of production.
    pub chance: Option<f64>,
    /// How likely production was to.
    pub production_chance: Option<f64>,
    /// The value of the work was counted.
    pub valued: bool,
}

/// A step of a run that waits until work is done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WorkWaiter {
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The attempt that has routed it.
    pub attempt: u32,
}

/// What went wrong with a rule in decisions since it was changed last.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RuleErrors {
    /// Decisions in which it could not be evaluated.
    pub count: u64,
    /// The first time.
    pub since: Micros,
    /// The last time.
    pub last_at: Micros,
    /// What was wrong then.
    pub last_error: String,
    /// The decision.
    pub last_decision: DecisionId,
}
