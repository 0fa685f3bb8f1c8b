//! Runs a pipeline over those who passed the gate: filters, scores, order, pick.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::explanation::StageLine;
use super::measure;
use super::objects::{Recipient, TraitOp};
use super::pipeline::{Pick, Pipeline, Score, SortKey, Stage, TraitFilter};
use super::reason::{Note, Reason};
use super::seed;
use super::strategies::contract::{Chances, Eligible, Fate, Round, Selection};
use super::strategies::{dispatch, ladder};
use super::wants::Want;
use crate::words::chance::Chance;
use crate::words::time::Micros;

/// What a pipeline did.
pub(super) struct Ran<'c> {
    /// What each stage did.
    pub(super) lines: Vec<StageLine>,
    /// Who left, in which stage, and why.
    pub(super) out: Vec<(Eligible<'c>, u16, Reason)>,
    /// Those among whom the pick was made.
    pub(super) eligible: Vec<Eligible<'c>>,
    /// What the pick says of them; none when nobody was left for it.
    pub(super) selection: Option<Selection>,
    /// The number of the pick.
    pub(super) stage: u16,
    /// What else is worth knowing.
    pub(super) notes: Vec<Note>,
    /// When another try may go otherwise.
    pub(super) retry_at: Option<Micros>,
    scored: f64,
    order: Option<Vec<SortKey>>,
}

/// How a pipeline is run.
pub(super) struct Running<'r> {
    pub(super) round: Round<'r>,
    /// Number of its first stage.
    pub(super) first_stage: u16,
    pub(super) hop: u16,
    /// Chance that the decision explores.
    pub(super) epsilon: f64,
    /// How long the work waits, in all and in this hop.
    pub(super) waited_us: (u64, u64),
    pub(super) stopwatch: &'r dyn Fn() -> u64,
}

/// Runs `pipeline` over `eligible`.
pub(super) fn run<'c>(pipeline: &Pipeline, eligible: Vec<Eligible<'c>>, running: &Running) -> Ran<'c> {
    let mut ran = Ran {
        lines: Vec::new(),
        out: Vec::new(),
        eligible,
        selection: None,
        stage: running.first_stage,
        notes: Vec::new(),
        retry_at: None,
        scored: 0.0,
        order: None,
    };
    for stage in &pipeline.stages {
        let (entered, started) = (ran.eligible.len(), (running.stopwatch)());
        let (kind, with) = ran.stage(stage, running);
        ran.line(kind, with, entered, started, running);
        ran.stage += 1;
    }
    ran.pick(&pipeline.pick, running);
    ran
}

impl<'c> Ran<'c> {
    fn line(
        &mut self,
        kind: &'static str,
        with: (&'static str, String),
        entered: usize,
        started: u64,
        running: &Running,
    ) {
        self.lines.push(StageLine {
            hop: running.hop,
            n: self.stage,
            kind,
            with: Some(with),
            how: None,
            entered,
            left: self.eligible.len(),
            micros: (running.stopwatch)().saturating_sub(started),
            moved: Vec::new(),
        });
    }

    /// Those for whom there is a reason leave.
    fn leave(&mut self, reason: impl Fn(&Eligible<'c>) -> Option<Reason>) {
        let stage = self.stage;
        let mut kept = Vec::with_capacity(self.eligible.len());
        for one in self.eligible.drain(..) {
            match reason(&one) {
                Some(reason) => self.out.push((one, stage, reason)),
                None => kept.push(one),
            }
        }
        self.eligible = kept;
    }

    fn stage(&mut self, stage: &Stage, running: &Running) -> (&'static str, (&'static str, String)) {
        match stage {
            Stage::Trait(filter) => {
                self.filter_by_trait(filter, running);
                ("filter", ("trait", filter.key.clone()))
            }
            Stage::Filter(program) => {
                let name = format!("stage {}", self.stage);
                self.leave(
                    |one| match running.round.sight.truth(program, Some(one.candidate)) {
                        Ok(true) => None,
                        Ok(false) => Some(Reason::RuleFalse {
                            rule: name.clone(),
                            because: running.round.sight.because(program, Some(one.candidate)),
                        }),
                        Err(error) => Some(Reason::RuleError {
                            rule: name.clone(),
                            error,
                        }),
                    },
                );
                ("filter", ("cel", program.text().to_owned()))
            }
            Stage::Score(score) => {
                self.score(score, running);
                ("score", ("by", score.by.word()))
            }
            Stage::Sort(keys) => {
                self.order = Some(keys.clone());
                let words = keys.iter().map(|key| {
                    let order = if key.descending { "desc" } else { "asc" };
                    format!("{} {order}", key.by.word())
                });
                ("sort", ("by", words.collect::<Vec<_>>().join(", ")))
            }
        }
    }

    fn filter_by_trait(&mut self, filter: &TraitFilter, running: &Running) {
        let waited = if filter.since_work {
            running.waited_us.0
        } else {
            running.waited_us.1
        };
        let round = &running.round;
        let value = match &filter.has {
            None => round.work.attributes.get(&filter.key).cloned(),
            Some(program) => round.sight.json(program, None).ok(),
        };
        let Some(value) = value.filter(|value| !value.is_null()) else {
            return;
        };
        if let Some(after_us) = filter.relax_after_us {
            if waited >= after_us {
                self.notes.push(Note::TraitRelaxed {
                    key: filter.key.clone(),
                    after_us,
                });
                return;
            }
            let at = round.now.plus(after_us - waited);
            self.retry_at = Some(self.retry_at.map_or(at, |known| known.min(at)));
        }
        let declared = round.traits.iter().find(|one| one.key == filter.key);
        let want = Want {
            key: filter.key.clone(),
            op: declared.map_or(TraitOp::Contains, |one| one.op),
            value,
        };
        self.leave(|one| want.refusal(&one.candidate.recipient));
    }

    /// Each gets a number from 0 to 1; a set of equals gets 1. Who has none gets 0.
    fn score(&mut self, score: &Score, running: &Running) {
        let name = format!("stage {}", self.stage);
        let raw: Vec<Result<Option<f64>, String>> = self
            .eligible
            .iter()
            .map(|one| measure::measure(&score.by, one, &running.round))
            .collect();
        let known = || raw.iter().filter_map(|one| one.as_ref().ok().copied().flatten());
        let (low, high) = known().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), one| {
            (low.min(one), high.max(one))
        });
        for (one, raw) in self.eligible.iter_mut().zip(&raw) {
            let Ok(Some(raw)) = raw else { continue };
            let part = if high > low {
                (raw - low) / (high - low)
            } else {
                1.0
            };
            let part = if score.ascending && high > low {
                1.0 - part
            } else {
                part
            };
            one.score += part * score.weight;
        }
        self.scored += score.weight;
        let failed: Vec<Option<String>> = raw.into_iter().map(Result::err).collect();
        if failed.iter().all(Option::is_none) {
            return;
        }
        let ids = self.eligible.iter().map(Eligible::id);
        let reasons: BTreeMap<_, String> = ids
            .zip(failed)
            .filter_map(|(id, error)| Some((id, error?)))
            .collect();
        self.leave(|one| {
            reasons.get(&one.id()).map(|error| Reason::RuleError {
                rule: name.clone(),
                error: error.clone(),
            })
        });
    }

    /// Scores become averages, and boosts are added.
    fn settle_scores(&mut self) {
        if self.scored <= 0.0 {
            return;
        }
        for one in &mut self.eligible {
            one.score = one.score / self.scored + one.boost;
        }
    }

    /// Only the best go on to the pick.
    fn band(&mut self, pick: &Pick, running: &Running) {
        if !pick.among_top {
            return;
        }
        if self.scored > 0.0 {
            let best = self
                .eligible
                .iter()
                .map(|one| one.score)
                .fold(f64::NEG_INFINITY, f64::max);
            let floor = best - pick.within;
            self.leave(|one| (one.score < floor).then(|| ladder::lost_by_score(one.score, best)));
        } else if let Some(keys) = self.order.take() {
            let key = |one: &Eligible| -> Vec<f64> {
                let value = |key: &SortKey| {
                    let value = measure::measure(&key.by, one, &running.round).ok().flatten();
                    let value = value.unwrap_or(f64::NEG_INFINITY);
                    if key.descending { value } else { -value }
                };
                keys.iter().map(value).collect()
            };
            let compare = |left: &[f64], right: &[f64]| {
                let parts = left.iter().zip(right).map(|(left, right)| left.total_cmp(right));
                parts.fold(Ordering::Equal, Ordering::then)
            };
            let all: Vec<Vec<f64>> = self.eligible.iter().map(key).collect();
            let Some(best) = all.into_iter().max_by(|left, right| compare(left, right)) else {
                return;
            };
            self.leave(|one| {
                let own = key(one);
                let apart = own
                    .iter()
                    .zip(&best)
                    .find(|(own, best)| own.total_cmp(best).is_ne())?;
                Some(ladder::lost_by_score(*apart.0, *apart.1))
            });
        }
    }

    fn pick(&mut self, pick: &Pick, running: &Running) {
        let (entered, started) = (self.eligible.len(), (running.stopwatch)());
        self.settle_scores();
        self.band(pick, running);
        let strategy = ("strategy", pick.used.info.name());
        if self.eligible.is_empty() {
            self.line("pick", strategy, entered, started, running);
            return;
        }
        let mut selection = dispatch::select(&pick.used, &self.eligible, &running.round);
        if running.epsilon > 0.0 {
            explore(&mut selection, &running.round, running.epsilon);
        }
        let won = selection.winners().count();
        self.line("pick", strategy, entered, started, running);
        let moved = self.moved(&selection, &running.round);
        if let Some(line) = self.lines.last_mut() {
            line.left = won;
            line.moved = moved;
            line.how = selection.how;
        }
        self.selection = Some(selection);
    }

    /// Where those moved whose turn is counted.
    fn moved(&self, selection: &Selection, round: &Round) -> Vec<(Arc<Recipient>, i64, i64)> {
        let Some((stage, after)) = selection.states.first().filter(|_| !selection.turns.is_empty()) else {
            return Vec::new();
        };
        let before = round.memory.states.get(stage);
        let shown = self.eligible.iter().take(super::explanation::WHOLE_MAX);
        let line = |one: &Eligible| {
            let id = one.id();
            let was = before.map_or(0, |state| state.of(id));
            (Arc::clone(&one.candidate.recipient), was, after.of(id))
        };
        shown.map(line).collect()
    }
}

/// Now and then anybody gets it, so that what others would give is learned. The turn of an explored pick is nobody's.
fn explore(selection: &mut Selection, round: &Round, epsilon: f64) {
    let mut winners = selection.winners();
    let (Some(chosen), None) = (winners.next(), winners.next()) else {
        return;
    };
    drop(winners);
    if selection.fan.is_some() {
        return;
    }
    let count = selection.fates.len();
    let uniform = epsilon / super::numbers::real(count as u64);
    let chances = (0..count).map(|at| {
        selection
            .chance_of(at)
            .map(|chance| uniform + (1.0 - epsilon) * chance)
    });
    let chances: Option<Vec<f64>> = chances.collect();
    let mut chance = Chance::new(seed::seed(round.decision, "explore"));
    selection.drew = true;
    if seed::next_unit(&mut chance) < epsilon {
        let at = usize::try_from(seed::below(&mut chance, count as u64)).unwrap_or(0);
        if at != chosen {
            selection.fates[chosen] = Fate::Not(Reason::LostSample);
            selection.fates[at] = Fate::Won;
            selection.states.clear();
            selection.turns.clear();
            selection.runners_up.retain(|one| *one != at);
        }
    }
    selection.chances = chances.map_or(Chances::Unknown, Chances::Known);
}
