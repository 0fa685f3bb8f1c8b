//! The shapes of the answers of routing, for the document of the API. Here: decisions.
//!
//! Objects are answered as what was set of them, so they are JSON inside and no type has them; these say which fields there may
//! be, and the tests of the document compare them with what a real router answers.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::shapes::shapes;

shapes! {
    /// A decision.
    DecisionShape as Decision {
        id: String,
        work_id: String,
        at: String,
        /// False of a dry run.
        committed: bool,
        outcome: String,
        /// The pool where it ended.
        pool: Option<ChosenShape>,
        winners: Vec<WinnerShape>,
        /// One sentence for people.
        summary: String,
        explanation: ExplanationShape,
        randomness: RandomnessShape,
        cost_micros: Value,
        /// The digest of what was read; a replay decides from it.
        snapshot: String,
        config: DigestsShape,
        /// What shadow campaigns said of it.
        shadow: Vec<ShadowSaidShape>,
        duration_micros: u64,
        ;
        /// The pool that was asked first, where it ended in another one.
        first_pool: ChosenShape,
        notes: Vec<ReasonShape>,
        /// The decision of the first, of work that was seen before.
        existing_decision_id: String,
        /// What the other mode would have decided otherwise.
        mode_diff: Value,
    }

    /// A pool as it was then.
    ChosenShape as DecisionPool {
        id: String,
        name: String,
        record_version: u64,
        ;
    }

    /// Who has the work.
    WinnerShape as DecisionWinner {
        recipient_id: String,
        assignment_id: Option<String>,
        deadline_at: Option<String>,
        over_capacity: bool,
        ;
    }

    /// What chance had a part in.
    RandomnessShape as DecisionRandomness {
        used: bool,
        seed: String,
        /// The chance that the winner had.
        propensity: Option<f64>,
        ;
    }

    /// What the objects were that it was decided by.
    DigestsShape as DecisionDigests {
        /// Null where no pool was asked.
        pool: Option<String>,
        rules: String,
        pipeline: Option<String>,
        engine: String,
        ;
    }

    /// What a campaign said.
    ShadowSaidShape as DecisionShadow {
        campaign: String,
        campaign_id: String,
        winner: Option<String>,
        winner_id: Option<String>,
        agrees: Option<bool>,
        ;
    }

    /// Why this one, why not the others.
    ExplanationShape as DecisionExplanation {
        rules: Vec<RuleLineShape>,
        hops: Vec<HopShape>,
        stages: Vec<StageShape>,
        candidates: Vec<VerdictShape>,
        /// Candidates by the code of their reason.
        histogram: BTreeMap<String, u64>,
        ;
        /// Candidates that are counted and not shown.
        left_out: u64,
        nearest_miss: NearestMissShape,
    }

    /// A rule that was looked at.
    RuleLineShape as DecisionRule {
        rule: String,
        priority: u32,
        /// Null where it could not be evaluated.
        result: Option<bool>,
        ;
        /// The values that it saw.
        because: Value,
        error: Value,
        pool: String,
        skipped: String,
    }

    /// A pool that was asked.
    HopShape as DecisionHop {
        pool: String,
        pool_id: String,
        depth: u32,
        considered: u64,
        eligible: u64,
        ;
    }

    /// A stage of the pipeline. Further members name what it went by.
    StageShape as DecisionStage {
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
        n: u32,
        kind: String,
        r#in: u64,
        out: u64,
        ;
        hop: u32,
        how: String,
        micros: u64,
        /// What it remembers, before and after.
        state: Value,
    }

    /// What became of a recipient.
    VerdictShape as DecisionCandidate {
        recipient: String,
        recipient_id: String,
        /// `won`, `lost` or `rejected`.
        verdict: String,
        stage: u32,
        ;
        hop: u32,
        reason: ReasonShape,
        also: Vec<ReasonShape>,
        numbers: Value,
    }

    /// A reason or a note. Further members are parameters of its code.
    ReasonShape as DecisionReason {
        #[serde(flatten)]
        more: BTreeMap<String, Value>,
        code: String,
        ;
    }

    /// Who would have had it, and if what.
    NearestMissShape as DecisionNearestMiss {
        recipient: String,
        recipient_id: String,
        would_win_if: Value,
        ;
    }
}
