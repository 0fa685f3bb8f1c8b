//! Why a decision is what it is: rules, hops, stages, and a verdict for each candidate.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::objects::{Explain, Recipient};
use super::reason::Reason;
use super::told::Told;
use crate::words::ids::{RecipientId, RecipientPoolId};

/// Candidates up to here are all kept in what is stored; of more, the winners, runners-up and samples.
pub const WHOLE_MAX: usize = 200;
/// Runners-up that are kept of more.
pub const RUNNERS_UP_MAX: usize = 5;
/// Candidates that are kept for each reason of more.
pub const SAMPLES_MAX: usize = 20;

/// Everything that is known of why.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Explanation {
    /// Rules that were evaluated, in order.
    pub rules: Vec<RuleLine>,
    /// The recipient pools that were entered.
    pub hops: Vec<HopLine>,
    /// What each stage did.
    pub stages: Vec<StageLine>,
    /// A verdict for each member of each recipient pool that was entered.
    pub candidates: Vec<Verdict>,
    /// Who was closest to getting it, and what was missing.
    pub nearest_miss: Option<NearestMiss>,
}

/// A rule that was evaluated.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleLine {
    /// Its name.
    pub rule: String,
    /// Its priority.
    pub priority: u32,
    /// What it gave; an error counts as false.
    pub result: bool,
    /// What decided; empty when it was true.
    pub because: String,
    /// Why it could not be evaluated.
    pub error: Option<String>,
    /// Where it leads, by name.
    pub target: Option<String>,
    /// It leads where nothing is routed now.
    pub skipped: bool,
}

/// A recipient pool that was entered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HopLine {
    /// Which.
    pub id: RecipientPoolId,
    /// Its name.
    pub recipient_pool: String,
    /// Hops before it.
    pub depth: u32,
    /// Its members.
    pub considered: usize,
    /// Those that passed the gate.
    pub eligible: usize,
}

/// What a stage did.
#[derive(Debug, Clone, PartialEq)]
pub struct StageLine {
    /// The hop, from 0.
    pub hop: u16,
    /// The number of the stage; 0 is the gate.
    pub n: u16,
    /// `gate`, `filter`, `score`, `sort`, `pick`.
    pub kind: &'static str,
    /// What it works with: a member of the line, and its value.
    pub with: Option<(&'static str, String)>,
    /// Why the winner won, where the strategy has more than one way.
    pub how: Option<&'static str>,
    /// Candidates before.
    pub entered: usize,
    /// Candidates after.
    pub left: usize,
    /// How long it took.
    pub micros: u64,
    /// Where members stood before and after, by name and id.
    pub moved: Vec<(Arc<Recipient>, i64, i64)>,
}

/// What became of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Who.
    pub recipient: Arc<Recipient>,
    /// The hop, from 0.
    pub hop: u16,
    /// The stage that decided.
    pub stage: u16,
    /// None for a winner.
    pub reason: Option<Reason>,
    /// Further checks that it fails.
    pub also: Vec<Reason>,
    /// What it was compared by; only for those who were eligible.
    pub numbers: Option<Numbers>,
    /// Among those who lost, who was next: 1 is the first runner-up; 0 is no place.
    pub place: u32,
}

/// What a candidate was compared by.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Numbers {
    /// Its weight with boosts, in millionths.
    pub w_micro: i64,
    /// Where it stood in the turn when the pick was made.
    pub cur: Option<i64>,
    /// Used and limit.
    pub utilization: (u64, u64),
    /// Since its newest assignment; none before the first.
    pub idle_ms: Option<u64>,
    /// Its score, where the strategy or the pipeline has one.
    pub score: Option<f64>,
}

/// Who was closest.
#[derive(Debug, Clone, PartialEq)]
pub struct NearestMiss {
    /// Who.
    pub recipient: Arc<Recipient>,
    /// What was missing, in words.
    pub would_win_if: String,
}

/// The one code by which all of these were rejected, where there is one.
pub(super) fn zero_match(candidates: &[Verdict]) -> Option<&'static str> {
    let mut codes = candidates.iter().map(|verdict| match &verdict.reason {
        Some(reason) if !reason.is_lost() => Some(reason.code()),
        _ => None,
    });
    let first = codes.next()??;
    codes.all(|code| code == Some(first)).then_some(first)
}

impl Verdict {
    /// `won`, `lost` or `rejected`.
    pub fn word(&self) -> &'static str {
        match &self.reason {
            None => "won",
            Some(reason) if reason.is_lost() => "lost",
            Some(_) => "rejected",
        }
    }
}

impl RuleLine {
    pub(super) fn to_json(&self) -> Value {
        let mut object = Map::new();
        let mut put = |name: &str, value: Value| {
            object.insert(name.to_owned(), value);
        };
        put("rule", json!(self.rule));
        put("priority", json!(self.priority));
        put("result", json!(self.result));
        if !self.because.is_empty() {
            put("because", json!(self.because));
        }
        if let Some(error) = &self.error {
            put("error", json!({"code": "rule.error", "detail": error}));
        }
        if let Some(target) = &self.target {
            put("pool", json!(target));
        }
        if self.skipped {
            put("skipped", json!("pool_unroutable"));
        }
        Value::Object(object)
    }
}

impl Explanation {
    /// How many candidates each reason took, winners not counted.
    pub fn histogram(&self) -> BTreeMap<&'static str, usize> {
        let mut histogram = BTreeMap::new();
        for reason in self
            .candidates
            .iter()
            .filter_map(|verdict| verdict.reason.as_ref())
        {
            *histogram.entry(reason.code()).or_insert(0) += 1;
        }
        histogram
    }

    /// All that were considered.
    pub fn considered(&self) -> usize {
        self.hops.iter().map(|hop| hop.considered).sum()
    }

    /// What is kept: all candidates of a small recipient pool, else the winners, runners-up and samples of each reason.
    pub(super) fn kept(&self, explain: Explain) -> Vec<&Verdict> {
        let winners_only = explain == Explain::Winners;
        if !winners_only && (explain == Explain::All || self.candidates.len() <= WHOLE_MAX) {
            return self.candidates.iter().collect();
        }
        let mut samples: BTreeMap<&'static str, usize> = BTreeMap::new();
        let keep = |verdict: &&Verdict| match &verdict.reason {
            None => true,
            Some(_) if winners_only => false,
            Some(_) if verdict.place > 0 && verdict.place as usize <= RUNNERS_UP_MAX => true,
            Some(reason) => {
                let count = samples.entry(reason.code()).or_insert(0);
                *count += 1;
                *count <= SAMPLES_MAX
            }
        };
        self.candidates.iter().filter(keep).collect()
    }

    /// As it stands on the wire.
    pub fn to_json(&self, explain: Explain, with_times: bool) -> Value {
        serde_json::to_value(Told::new(self, explain, with_times)).expect("an explanation is plain data")
    }

    /// The verdict on a recipient in the last recipient pool that has it.
    pub fn verdict(&self, recipient: RecipientId) -> Option<&Verdict> {
        self.candidates
            .iter()
            .rev()
            .find(|verdict| verdict.recipient.id == recipient)
    }
}
