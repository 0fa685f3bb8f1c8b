//! Shadow campaigns, purely: another strategy looks at what a decision read, and what it says is counted. It writes nothing
//! but its own state.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::decision::Decision;
use super::known::Known;
use super::numbers;
use super::pass::{Passed, Request, Stopped, route};
use super::state::StageState;
use crate::words::ids::{RecipientId, RecipientPoolId};

/// What is compared with what is in force.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Contender {
    /// A strategy or a recipe; none with a pipeline.
    pub strategy: Option<String>,
    /// Options by strategy.
    #[serde(default)]
    pub strategy_options: BTreeMap<String, Map<String, Value>>,
    /// A pipeline, as one would write it.
    pub pipeline: Option<Value>,
}

/// What it said of one decision.
#[derive(Debug, Clone, PartialEq)]
pub struct Opinion {
    /// Whom it chooses; none when it finds nobody.
    pub winner: Option<RecipientId>,
    /// Whether production chose the same.
    pub agrees: bool,
    /// Where it puts the winner of production: 1 is first; none when it has no place.
    pub rank_of_production_winner: Option<u32>,
    /// How likely it was to choose the winner of production.
    pub chance: Option<f64>,
    /// How likely production was to choose it.
    pub production_chance: Option<f64>,
    /// Whether production drew.
    pub production_drew: bool,
    /// Why it chose another one: the code that the winner of production has here.
    pub reason: Option<&'static str>,
    /// What its stages remember from now on.
    pub states: Vec<(RecipientPoolId, String, StageState)>,
}

/// What a contender says of a decision, over what the decision read. `states` is its own memory: that of production is not
/// looked at. With `mirrored` its memory moves as if it had chosen the winner of production.
pub fn opinion(
    contender: &Contender,
    request: &Request,
    read: &Known,
    states: &BTreeMap<(RecipientPoolId, String), StageState>,
    production: &Decision,
    mirrored: bool,
) -> Result<Opinion, String> {
    let mut asked = request.clone();
    asked.recipient_pool = production.recipient_pool.as_ref().map(|chosen| chosen.id);
    asked.strategy.clone_from(&contender.strategy);
    asked.strategy_options.clone_from(&contender.strategy_options);
    asked.pipeline.clone_from(&contender.pipeline);
    let mut seen = read.clone();
    seen.states = states
        .iter()
        .map(|(place, state)| (place.clone(), Arc::new(state.clone())))
        .collect();
    let passed = decide(&asked, production, &seen)?;
    let winner = passed.decision.winners.first().map(|winner| winner.recipient);
    let produced = production.winners.first().map(|winner| winner.recipient);
    let verdict = produced.and_then(|id| passed.decision.explanation.verdict(id));
    let states = match produced.filter(|_| mirrored && winner != produced) {
        None => passed.states.clone(),
        Some(forced) => {
            asked.forced = Some(forced);
            decide(&asked, production, &seen)?.states
        }
    };
    Ok(Opinion {
        winner,
        agrees: winner == produced,
        rank_of_production_winner: verdict.and_then(|verdict| match (&verdict.reason, verdict.place) {
            (None, _) => Some(1),
            (Some(_), 0) => None,
            (Some(_), place) => Some(place + 1),
        }),
        chance: produced.and_then(|id| passed.chance_of(id)),
        production_chance: production.randomness.propensity,
        production_drew: production.randomness.used,
        reason: verdict
            .and_then(|verdict| verdict.reason.as_ref())
            .map(super::reason::Reason::code),
        states,
    })
}

fn decide(asked: &Request, production: &Decision, seen: &Known) -> Result<Passed, String> {
    route(asked, production.at, production.id, seen).map_err(|stopped: Stopped<Infallible>| match stopped {
        Stopped::World(never) => match never {},
        Stopped::Invalid(faults) => faults.first().map_or(String::new(), |fault| fault.detail.clone()),
        Stopped::Refused(refusal) => format!("{refusal:?}"),
    })
}

/// What is counted of a campaign: one row for it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Tally {
    /// Opinions.
    pub n: u64,
    /// Those that agree.
    pub agreed: u64,
    /// Those that found nobody.
    pub nobody: u64,
    /// Evaluations that failed.
    pub errors: u64,
    /// By place of production's winner: 1, 2, …; 0 is no place.
    pub ranks: BTreeMap<u32, u64>,
    /// Wins in production and here.
    pub wins: BTreeMap<RecipientId, (u64, u64)>,
    /// Why it chose another one.
    pub reasons: BTreeMap<String, u64>,
    /// How long evaluations took, by the power of two of their microseconds.
    pub micros: BTreeMap<u8, u64>,
    /// Whether production ever drew.
    pub drew: bool,
    /// Decisions with a value and both chances.
    pub valued: u64,
    /// Sums over these: of weights, their squares, and weight x value.
    pub weights: f64,
    /// The squares.
    pub squares: f64,
    /// Weight x value.
    pub weighted_value: f64,
    /// Decisions that agreed and have a value, and the sum of their values.
    pub direct: (u64, f64),
}

impl Tally {
    /// An opinion, and how long it took.
    pub fn add(&mut self, opinion: &Opinion, production: Option<RecipientId>, micros: u64) {
        self.n += 1;
        self.agreed += u64::from(opinion.agrees);
        self.nobody += u64::from(opinion.winner.is_none());
        self.drew |= opinion.production_drew;
        *self
            .ranks
            .entry(opinion.rank_of_production_winner.unwrap_or(0))
            .or_insert(0) += 1;
        if let Some(id) = production {
            self.wins.entry(id).or_default().0 += 1;
        }
        if let Some(id) = opinion.winner {
            self.wins.entry(id).or_default().1 += 1;
        }
        if !opinion.agrees {
            let reason = opinion.reason.unwrap_or("nobody");
            *self.reasons.entry(reason.to_owned()).or_insert(0) += 1;
        }
        self.timed(micros);
    }

    /// An evaluation that failed.
    pub fn failed(&mut self, micros: u64) {
        self.errors += 1;
        self.timed(micros);
    }

    fn timed(&mut self, micros: u64) {
        let power = u8::try_from(u64::BITS - micros.leading_zeros()).unwrap_or(u8::MAX);
        *self.micros.entry(power).or_insert(0) += 1;
    }

    /// What the work was worth (0 to 1), once that is known.
    pub fn valued(
        &mut self,
        opinion_agreed: bool,
        chance: Option<f64>,
        production_chance: Option<f64>,
        value: f64,
    ) {
        if opinion_agreed {
            self.direct = (self.direct.0 + 1, self.direct.1 + value);
        }
        let (Some(chance), Some(production)) = (chance, production_chance.filter(|chance| *chance > 0.0))
        else {
            return;
        };
        let weight = chance / production;
        self.valued += 1;
        self.weights += weight;
        self.squares += weight * weight;
        self.weighted_value += weight * value;
    }

    /// Whether it stops itself: 1 % errors over 1,000 evaluations, or too slow (the slowest hundredth above the limit).
    pub fn stop_reason(&self, max_micros: u64) -> Option<String> {
        let all = self.n + self.errors;
        if all >= 1_000 && self.errors * 100 >= all {
            return Some(format!("{} of {all} evaluations failed", self.errors));
        }
        let p99 = self.quantile(0.99);
        (all >= 1_000 && p99 > max_micros).then(|| {
            format!("the slowest hundredth takes up to {p99} microseconds, {max_micros} are allowed")
        })
    }

    /// An upper bound of the time of this share of the evaluations.
    pub fn quantile(&self, share: f64) -> u64 {
        let total: u64 = self.micros.values().sum();
        let wanted = share * numbers::real(total);
        let mut sum = 0;
        for (power, count) in &self.micros {
            sum += count;
            if numbers::real(sum) >= wanted {
                return 1_u64.checked_shl(u32::from(*power)).unwrap_or(u64::MAX) - 1;
            }
        }
        0
    }

    /// The report, as it stands on the wire; `names` are those of the recipients.
    pub fn report(&self, names: &BTreeMap<RecipientId, String>, mirrored: bool) -> Value {
        let (n, agreed) = (self.n, self.agreed);
        let wilson = wilson95(agreed, n).map_or(Value::Null, |(low, high)| json!([low, high]));
        let rate = |count: u64| {
            if n == 0 {
                0.0
            } else {
                numbers::real(count) / numbers::real(n)
            }
        };
        let (produced, contended) = self
            .wins
            .values()
            .fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
        let part = |count: u64, of: u64| {
            if of == 0 {
                0.0
            } else {
                numbers::real(count) / numbers::real(of)
            }
        };
        let shares: Vec<(RecipientId, f64, f64)> = self
            .wins
            .iter()
            .map(|(id, (one, other))| (*id, part(*one, produced), part(*other, contended)))
            .collect();
        // The sum of nothing is -0.0.
        let variation = shares
            .iter()
            .map(|(_, one, other)| (one - other).abs())
            .fold(0.0, |sum, one| sum + one)
            / 2.0;
        let (value, why) = self.value();
        json!({
            "n": n, "agreement": {"k": agreed, "n": n, "rate": rate(agreed), "wilson95": wilson},
            "rank_of_production_winner": self.ranks.iter().map(|(rank, count)| (rank.to_string(), json!(count))).collect::<Map<_, _>>(),
            "share": shares.iter().map(|(id, one, other)| json!({
                "recipient": names.get(id), "recipient_id": id, "production": one, "candidate": other,
            })).collect::<Vec<_>>(),
            "total_variation": variation, "no_candidate_rate": rate(self.nobody), "errors": self.errors,
            "micros": {"p50": self.quantile(0.5), "p99": self.quantile(0.99)},
            "disagreements": self.reasons.iter().map(|(reason, count)| json!({"reason": reason, "count": count})).collect::<Vec<_>>(),
            "value": value, "value_reason": why, "state_mode": if mirrored { "mirrored" } else { "independent" },
        })
    }

    /// Estimates of the value under the contender: only where production drew, and enough was comparable.
    fn value(&self) -> (Value, Value) {
        // Before anything was looked at nobody knows whether production draws.
        if !self.drew && self.n > 0 {
            return (Value::Null, json!("no_overlap"));
        }
        let ess = if self.squares > 0.0 {
            self.weights * self.weights / self.squares
        } else {
            0.0
        };
        if ess < ESS_MIN {
            return (Value::Null, json!("low_ess"));
        }
        let direct = match self.direct {
            (0, _) => Value::Null,
            (count, sum) => {
                json!({"mean": sum / numbers::real(count), "n": count, "label": "selection_biased"})
            }
        };
        let value = json!({
            "direct": direct, "ips": self.weighted_value / numbers::real(self.valued),
            "snips": self.weighted_value / self.weights, "ess": ess,
        });
        (value, Value::Null)
    }
}

/// Below this effective sample size no value is told.
const ESS_MIN: f64 = 100.0;
/// The 97.5th percentile of the normal distribution.
const Z: f64 = 1.959_963_984_540_054;

/// Wilson's interval at 95 % for `k` of `n`; none of nothing.
pub fn wilson95(k: u64, n: u64) -> Option<(f64, f64)> {
    if n == 0 {
        return None;
    }
    let (k, n) = (numbers::real(k), numbers::real(n));
    let (rate, square) = (k / n, Z * Z);
    let middle = rate + square / (2.0 * n);
    let spread = Z * (rate * (1.0 - rate) / n + square / (4.0 * n * n)).sqrt();
    let whole = 1.0 + square / n;
    Some((
        ((middle - spread) / whole).max(0.0),
        ((middle + spread) / whole).min(1.0),
    ))
}
