//! One recipient pool of a pass: from those who passed the gate to a winner, and the verdicts.
#![expect(
    clippy::wildcard_enum_match_arm,
    reason = "values and reasons are asked for the few kinds that matter; every other one is answered alike"
)]

use std::sync::Arc;

use serde_json::json;

use super::candidate::Candidate;
use super::decision::{Outcome, Randomness, Winner};
use super::explanation::{HopLine, Numbers, StageLine, Verdict};
use super::gate::Gated;
use super::hop::{Hop, Step, soonest};
use super::numbers;
use super::objects::{ActionKind, PipelineMode, RoutingMode};
use super::pass::{Ends, Offered, Refusal, Stopped, World};
use super::pipeline::Pipeline;
use super::reason::{Note, Reason};
use super::seed;
use super::select::{self, Ran, Running};
use super::sight;
use super::strategies::Kind;
use super::strategies::contract::{Chances, Eligible, Fate, Held, Memory, Round, Selection, Use};
use crate::words::ids::RecipientId;

/// The most that a weight with boosts counts, in millionths: so large that sums over a recipient pool stay exact.
const WEIGHT_MAX: i128 = 100_000_000_000_000;

impl<W: World> Hop<'_, '_, W> {
    /// Gate and pipeline. Sets `ended` when somebody gets the work or may claim it.
    pub(super) fn through(&mut self, pipeline: &Pipeline) -> Step<W, ()> {
        let members = self.members.clone();
        let started = self.pass.world.stopwatch();
        let gated = self.gate(Some(pipeline));
        self.compare_modes(pipeline, &gated);
        let stage = u16::try_from(self.lines.len()).unwrap_or(u16::MAX);
        let mut eligible = Vec::new();
        let mut verdicts = Vec::with_capacity(members.len());
        for (at, (member, gated)) in members.iter().zip(gated).enumerate() {
            verdicts.push(match gated {
                Gated::Eligible { over } => {
                    let boost = self.boost(member);
                    eligible.push(Eligible {
                        candidate: member,
                        index: at,
                        weight: weight(member, boost),
                        score: 0.0,
                        boost,
                        over,
                    });
                    None
                }
                Gated::Out(reason, also) => Some(self.verdict(at, stage, Some(reason), also)),
            });
        }
        self.verdicts = verdicts;
        self.eligible = eligible.len();
        self.lines.push(StageLine {
            hop: self.number,
            n: stage,
            kind: "gate",
            with: None,
            how: None,
            entered: members.len(),
            left: eligible.len(),
            micros: self.pass.world.stopwatch().saturating_sub(started),
            moved: Vec::new(),
        });
        if self.prepared.recipient_pool.config.routing_mode == RoutingMode::Claim {
            if self.closed.is_none() {
                self.offer_to_claim(&eligible, stage);
            }
            return Ok(());
        }
        if eligible.is_empty() {
            return Ok(());
        }
        self.run(pipeline, &members, eligible, stage + 1)
    }

    /// The pipeline over those who passed the gate.
    fn run(
        &mut self,
        pipeline: &Pipeline,
        members: &[Candidate],
        eligible: Vec<Eligible>,
        first_stage: u16,
    ) -> Step<W, ()> {
        let memory = self.memory(&pipeline.pick.used)?;
        let traits = Arc::clone(&self.pass.read.traits);
        let stopwatch = || self.pass.world.stopwatch();
        let hop_since = self.hop_since();
        let running = Running {
            round: Round {
                work: &self.pass.request.work,
                now: self.pass.now,
                hop_since,
                decision: self.pass.id,
                sight: &self.sight,
                traits: &traits,
                members,
                memory: &memory,
                forced: self.pass.request.forced,
            },
            first_stage,
            hop: self.number,
            epsilon: self.prepared.recipient_pool.config.exploration_epsilon,
            waited_us: (
                self.pass.now.since(self.pass.since()),
                self.pass.now.since(hop_since),
            ),
            stopwatch: &stopwatch,
        };
        let ran = select::run(pipeline, eligible, &running);
        self.settle(pipeline, ran);
        Ok(())
    }

    /// The sum of the boosts that are true for it.
    fn boost(&mut self, member: &Candidate) -> f64 {
        let mut sum = 0.0;
        for ready in &self.prepared.rules {
            if ready.rule.action.kind != ActionKind::Boost || !ready.rule.counts_at(self.pass.now) {
                continue;
            }
            let given = match &ready.program {
                Ok(program) => self.sight.truth(program, Some(member)),
                Err(error) => Err(error.clone()),
            };
            match given {
                Ok(true) => sum += ready.rule.action.boost,
                Ok(false) => {}
                Err(error) => self.pass.rule_failed(ready.rule.id, &error),
            }
        }
        sum
    }

    /// In the mode `shadow` the other way through the gate is compared; it decides nothing.
    fn compare_modes(&mut self, pipeline: &Pipeline, gated: &[Gated]) {
        if self.mode() != PipelineMode::Shadow {
            return;
        }
        let other = self.gate_by(PipelineMode::Dag, Some(pipeline));
        let differ = gated
            .iter()
            .zip(&other)
            .zip(self.members.iter())
            .filter(|((one, other), _)| one != other);
        let ids: Vec<_> = differ.map(|(_, member)| member.recipient.id).collect();
        if !ids.is_empty() {
            self.pass.mode_diff =
                Some(json!({"pool": self.prepared.recipient_pool.name, "recipient_ids": ids}));
        }
    }

    fn verdict(&self, at: usize, stage: u16, reason: Option<Reason>, also: Vec<Reason>) -> Verdict {
        Verdict {
            recipient: self.members.member(at),
            hop: self.number,
            stage,
            reason,
            also,
            numbers: None,
            place: 0,
        }
    }

    /// The work lies in the claim queue; whoever is eligible when it claims may have it.
    fn offer_to_claim(&mut self, eligible: &[Eligible], stage: u16) {
        for one in eligible {
            let reason = Reason::LostClaim {
                claimed_by: None,
                at: None,
            };
            self.verdicts[one.index] = Some(self.verdict(one.index, stage, Some(reason), Vec::new()));
        }
        let config = &self.prepared.recipient_pool.config;
        self.ended = Some((
            Outcome::QueuedForClaim,
            Ends::Offered(Offered {
                recipient_pool: self.id(),
                claim_queue: config.claim_queue,
                to: None,
                expires_at: self.pass.since().plus(config.queue_ttl_us),
            }),
        ));
    }

    /// What the pick and those inside of it remember.
    fn memory(&mut self, used: &Use) -> Step<W, Memory> {
        let id = self.id();
        let mut memory = Memory::default();
        let mut at = Some(used);
        while let Some(used) = at {
            if !used.info.state.is_empty()
                && let Some(state) = self.pass.world.stage_state(id, &used.stage)?
            {
                self.pass
                    .read
                    .states
                    .insert((id, used.stage.clone()), state.clone());
                memory.states.insert(used.stage.clone(), state);
            }
            if used.info.kind == Kind::Sticky
                && let Some(Ok(key)) = used.params.program("key").map(|program| self.sight.key(program))
            {
                let holder = self.pass.world.holder(id, &used.stage, &key)?;
                if let Some(holder) = &holder {
                    let place = (id, used.stage.clone(), key.clone());
                    self.pass.read.holders.insert(place, holder.clone());
                }
                memory.holders.insert(used.stage.clone(), Held { key, holder });
            }
            at = used.inner.as_deref();
        }
        Ok(memory)
    }

    /// Verdicts, winners and what is remembered from now on.
    fn settle(&mut self, pipeline: &Pipeline, ran: Ran) {
        self.retry_at = soonest(self.retry_at, ran.retry_at);
        self.pass.notes.extend(ran.notes);
        self.lines.extend(ran.lines);
        for (one, stage, reason) in ran.out {
            let lost = reason.is_lost();
            let mut verdict = self.verdict(one.index, stage, Some(reason), Vec::new());
            verdict.numbers = lost.then(|| self.numbers(&one, Some(one.score), None));
            self.verdicts[one.index] = Some(verdict);
        }
        let Some(mut selection) = ran.selection else {
            return;
        };
        let winners: Vec<usize> = selection.winners().collect();
        let (chances, propensity) = odds(&ran.eligible, &selection, &winners);
        let fates = std::mem::take(&mut selection.fates);
        for (at, (one, fate)) in ran.eligible.iter().zip(fates).enumerate() {
            let reason = match fate {
                Fate::Won => None,
                Fate::Not(reason) => Some(reason),
            };
            let eligible = reason.as_ref().is_none_or(Reason::is_lost);
            let mut verdict = self.verdict(one.index, ran.stage, reason, Vec::new());
            let scored = (!pipeline.stages.is_empty()).then_some(one.score);
            let score = selection.scores.get(at).copied().or(scored);
            verdict.numbers = eligible.then(|| self.numbers(one, score, selection.turns.get(at).copied()));
            let place = selection.runners_up.iter().position(|known| *known == at);
            verdict.place = place.map_or(0, |place| u32::try_from(place + 1).unwrap_or(0));
            self.verdicts[one.index] = Some(verdict);
        }
        self.note(&selection.notes);
        let id = self.id();
        if let Some(fan) = &selection.fan {
            self.ended = Some((
                Outcome::Offered,
                Ends::Offered(Offered {
                    recipient_pool: id,
                    claim_queue: None,
                    to: Some(fan.to.clone()),
                    expires_at: self.pass.now.plus(fan.window_us),
                }),
            ));
        } else if winners.is_empty() {
            return;
        }
        self.pass.chances = chances;
        self.pass.cost_micros = selection.price.unwrap_or(0);
        self.pass.randomness = Randomness {
            used: selection.drew,
            seed: seed::seed(self.pass.id, pipeline.pick.used.info.key),
            propensity,
        };
        let bound = selection.bound.into_iter();
        self.pass
            .bound
            .extend(bound.map(|(stage, key, holder)| (id, stage, key, holder)));
        self.pass.states.extend(
            selection
                .states
                .into_iter()
                .map(|(stage, state)| (id, stage, state)),
        );
        self.assign(
            &winners.iter().map(|at| ran.eligible[*at]).collect::<Vec<_>>(),
            pipeline,
        );
    }

    /// A note about a holder says why it could not have the work.
    fn note(&mut self, notes: &[Note]) {
        for note in notes {
            let mut note = note.clone();
            if let Note::StickyHolderIneligible { holder, reason } = &mut note
                && reason.is_empty()
                && let Some(at) = self
                    .members
                    .iter()
                    .position(|member| member.recipient.id == *holder)
                && let Some(code) = self.verdicts[at]
                    .as_ref()
                    .and_then(|verdict| verdict.reason.as_ref())
            {
                code.code().clone_into(reason);
            }
            self.pass.notes.push(note);
        }
    }

    fn assign(&mut self, winners: &[Eligible], pipeline: &Pipeline) {
        if winners.is_empty() {
            return;
        }
        let timeout = self.prepared.recipient_pool.config.default_timeout_us;
        self.pass.winners = winners
            .iter()
            .map(|one| Winner {
                recipient: one.id(),
                assignment: None,
                deadline_at: (timeout > 0).then(|| self.pass.now.plus(timeout)),
                over_capacity: one.over,
            })
            .collect();
        let outcome = match pipeline.pick.used.info.kind {
            Kind::Broadcast => Outcome::Broadcast,
            _ if winners.iter().any(|one| one.over) => Outcome::AssignedOverCapacity,
            _ => Outcome::Assigned,
        };
        self.ended = Some((outcome, Ends::Assigned(self.id())));
    }

    fn numbers(&self, one: &Eligible, score: Option<f64>, cur: Option<i64>) -> Numbers {
        let candidate = one.candidate;
        Numbers {
            w_micro: one.weight,
            cur,
            utilization: numbers::utilization(&candidate.recipient, &candidate.live),
            idle_ms: sight::idle_us(candidate, self.pass.now).map(|us| us / 1_000),
            score: score.filter(|score| score.is_finite()),
        }
    }

    /// A manual assignment that cannot be made is refused; it falls back to nobody.
    pub(super) fn refuse_manual(&self) -> Step<W, ()> {
        let Some(only) = self.pass.request.recipient else {
            return Ok(());
        };
        let place = self.members.iter().position(|member| member.recipient.id == only);
        let verdict = place.and_then(|at| self.verdicts[at].as_ref());
        let reason = verdict.and_then(|verdict| verdict.reason.clone());
        Err(Stopped::Refused(match reason {
            Some(
                reason @ (Reason::CapacityConcurrent { .. }
                | Reason::CapacityDaily { .. }
                | Reason::CapacityOverBudget { .. }),
            ) => Refusal::AtCapacity(reason),
            Some(reason) => Refusal::NotEligible(reason),
            None => Refusal::NotMember,
        }))
    }

    /// What happened here becomes part of the explanation.
    pub(super) fn tell(self, depth: u32) {
        let Hop {
            pass,
            prepared,
            verdicts,
            lines,
            eligible,
            ..
        } = self;
        let explanation = &mut pass.explanation;
        explanation.hops.push(HopLine {
            id: prepared.recipient_pool.id,
            recipient_pool: prepared.recipient_pool.name.clone(),
            depth,
            considered: verdicts.iter().flatten().count(),
            eligible,
        });
        explanation.stages.extend(lines);
        let before = explanation.candidates.len();
        if before == 0 {
            explanation.candidates = verdicts.into_iter().flatten().collect();
        } else {
            explanation.candidates.extend(verdicts.into_iter().flatten());
        }
        let here = &pass.explanation.candidates[before..];
        let zero = super::explanation::zero_match(here);
        let failed: Vec<(String, String)> = here
            .iter()
            .flat_map(|verdict| verdict.reason.iter().chain(&verdict.also))
            .filter_map(|reason| match reason {
                Reason::RuleError { rule, error } => Some((rule.clone(), error.clone())),
                _ => None,
            })
            .collect();
        if let Some(code) = zero {
            pass.zero_match.push((prepared.recipient_pool.id, code));
        }
        for ready in &prepared.rules {
            if let Some((_, error)) = failed.iter().find(|(name, _)| *name == ready.rule.name) {
                pass.rule_failed(ready.rule.id, error);
            }
        }
    }
}

/// How likely each was to be chosen, where that is known, and the one winner. Who is not named was never to be chosen.
fn odds(
    eligible: &[Eligible],
    selection: &Selection,
    winners: &[usize],
) -> (Vec<(RecipientId, f64)>, Option<f64>) {
    let of = |at: usize| Some((eligible[at].id(), selection.chance_of(at)?));
    let chances = match selection.chances {
        Chances::Certain => winners.iter().filter_map(|at| of(*at)).collect(),
        Chances::Known(_) | Chances::Unknown => (0..eligible.len()).filter_map(of).collect(),
    };
    let propensity = match winners {
        [winner] => selection.chance_of(*winner),
        _ => Some(1.0),
    };
    (chances, propensity)
}

/// The weight with boosts, in whole numbers: weight x (1 + boosts), not below 0.
fn weight(member: &Candidate, boost: f64) -> i64 {
    let factor = i128::from(numbers::micro(boost)) + 1_000_000;
    let weight = i128::from(member.recipient.weight_micro) * factor / 1_000_000;
    i64::try_from(weight.clamp(0, WEIGHT_MAX)).unwrap_or(i64::MAX)
}
