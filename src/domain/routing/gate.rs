//! The gate: nine checks in a fixed order, cheap ones first. The first that fails is the reason.

use std::collections::BTreeMap;

use super::candidate::Candidate;
use super::capacity::{self, Budget};
use super::crew::{Crew, Part};
use super::objects::{ActionKind, BusyPolicy, RecipientState, Status};
use super::opening;
use super::pass::Request;
use super::ready::Prepared;
use super::reason::Reason;
use super::sight::Sight;
use super::wants::Want;
use crate::words::ids::{DecisionId, RecipientId};
use crate::words::time::Micros;

/// The checks, in their order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Check {
    Status,
    State,
    Tried,
    Capacity,
    Schedule,
    Traits,
    Rules,
    Flow,
    Bids,
}

/// Candidates from which on the checks of the mode `dag` are cut into parts.
const PARTS_FROM: usize = 1_024;

const ORDER: [Check; 9] = [
    Check::Status,
    Check::State,
    Check::Tried,
    Check::Capacity,
    Check::Schedule,
    Check::Traits,
    Check::Rules,
    Check::Flow,
    Check::Bids,
];

/// What the checks look at.
pub(super) struct Gate<'g> {
    pub(super) request: &'g Request,
    pub(super) now: Micros,
    pub(super) prepared: &'g Prepared,
    pub(super) members: &'g [Candidate],
    pub(super) sight: &'g Sight,
    pub(super) tried: &'g BTreeMap<RecipientId, DecisionId>,
    /// What the work wants of everybody.
    pub(super) wants: &'g [Want],
    /// Why nobody gets it: it was here before, or too much flows.
    pub(super) closed: Option<&'g Reason>,
    pub(super) needs_bids: bool,
    pub(super) busy: BusyPolicy,
    pub(super) over_capacity: bool,
    /// Every failing check is told.
    pub(super) all: bool,
}

/// What the gate says of a candidate.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Gated {
    /// It may have the work; perhaps beyond its capacity.
    Eligible { over: bool },
    /// Why not, and what else.
    Out(Reason, Vec<Reason>),
}

/// One candidate on its way through the checks.
#[derive(Debug, Clone, Default)]
struct Way {
    failed: Option<(Check, Reason)>,
    also: Vec<Reason>,
}

impl Way {
    fn note(&mut self, check: Check, reason: Option<Reason>) {
        match (reason, &self.failed) {
            (None, _) => {}
            (Some(reason), None) => self.failed = Some((check, reason)),
            (Some(reason), Some(_)) => self.also.push(reason),
        }
    }

    fn gated(self) -> Gated {
        match self.failed {
            None => Gated::Eligible { over: false },
            Some((_, reason)) => Gated::Out(reason, self.also),
        }
    }
}

impl Gate<'_> {
    /// Candidate by candidate.
    pub(super) fn linear(&self) -> Vec<Gated> {
        let ways = self.members.iter().map(|member| self.way(member));
        if self.is_plain() && !self.over_capacity {
            return ways.map(Way::gated).collect();
        }
        self.ladder(ways.collect())
    }

    fn way(&self, member: &Candidate) -> Way {
        let mut way = Way::default();
        for check in ORDER {
            way.note(check, self.check(check, member));
            if way.failed.is_some() && !self.all {
                break;
            }
        }
        way
    }

    /// The checks alone say who may have it, as long as somebody may.
    fn is_plain(&self) -> bool {
        self.busy != BusyPolicy::LastResort && !self.request.force
    }

    /// Check by check, a large recipient pool in several parts at the same time; what it decides is the same.
    pub(super) fn set_at_a_time(&self, crew: &dyn Crew) -> Vec<Gated> {
        let count = self.members.len();
        let mut ways = vec![Way::default(); count];
        let hands = if count < PARTS_FROM || !self.is_dear() {
            1
        } else {
            crew.hands().max(1)
        };
        let part = count.div_ceil(hands).max(1);
        let parts = ways.chunks_mut(part).zip(self.members.chunks(part));
        let run = |(ways, members): (&mut [Way], &[Candidate])| self.checks(members, ways);
        if hands == 1 {
            parts.for_each(run);
        } else {
            crew.run(
                parts
                    .map(|part| Box::new(move || run(part)) as Part<'_>)
                    .collect(),
            );
        }
        self.ladder(ways)
    }

    /// Whether the checks take longer than other hands do to begin: rules that must be interpreted do, for each candidate.
    fn is_dear(&self) -> bool {
        let mut filters =
            self.prepared.rules.iter().filter(|ready| {
                ready.rule.action.kind == ActionKind::Filter && ready.rule.counts_at(self.now)
            });
        filters.any(|ready| ready.program.as_ref().is_ok_and(|program| !program.is_lowered()))
    }

    /// The checks one after the other, each over all who passed those before.
    fn checks(&self, members: &[Candidate], ways: &mut [Way]) {
        let mut alive: Vec<usize> = (0..members.len()).collect();
        for check in ORDER {
            for at in &alive {
                ways[*at].note(check, self.check(check, &members[*at]));
            }
            if !self.all {
                alive.retain(|at| ways[*at].failed.is_none());
            }
        }
    }

    /// Who may have it: those with room; else those who are busy, where they are the last resort; else beyond capacity.
    fn ladder(&self, ways: Vec<Way>) -> Vec<Gated> {
        let is_busy = |at: usize| {
            self.busy == BusyPolicy::LastResort && self.members[at].live.state == RecipientState::Busy
        };
        let nobody = || ways.iter().all(|way| way.failed.is_some());
        if self.is_plain() && (!self.over_capacity || !nobody()) {
            return ways.into_iter().map(Way::gated).collect();
        }
        let mut eligible: Vec<usize> = (0..ways.len()).filter(|at| ways[*at].failed.is_none()).collect();
        let mut over = false;
        let mut refused: BTreeMap<usize, Reason> = BTreeMap::new();
        if eligible.is_empty() && self.over_capacity {
            let budget = Budget::of(&self.prepared.recipient_pool.config, self.members, self.now);
            for (at, way) in ways.iter().enumerate() {
                if !self.fails_by_capacity_alone(way, &self.members[at]) {
                    continue;
                }
                match budget.refusal(&self.members[at], self.now) {
                    Some(reason) => drop(refused.insert(at, reason)),
                    None => eligible.push(at),
                }
            }
            over = true;
        }
        if self.request.force {
            over = false;
            eligible = (0..ways.len())
                .filter(|at| {
                    ways[*at].failed.is_none() || self.fails_by_capacity_alone(&ways[*at], &self.members[*at])
                })
                .collect();
        }
        let somebody_free = eligible.iter().any(|at| !is_busy(*at));
        let mut gated: Vec<Option<Gated>> = vec![None; ways.len()];
        for at in eligible {
            let over = over || ways[at].failed.is_some();
            gated[at] = Some(if somebody_free && is_busy(at) {
                let since = self.members[at].live.state_since;
                Gated::Out(Reason::StateBusy { since }, Vec::new())
            } else {
                Gated::Eligible { over }
            });
        }
        let finish = |(at, (way, made)): (usize, (Way, Option<Gated>))| match (made, way.failed) {
            (Some(made), _) => made,
            (None, Some((_, reason))) => Gated::Out(refused.remove(&at).unwrap_or(reason), way.also),
            (None, None) => Gated::Eligible { over: false },
        };
        ways.into_iter().zip(gated).enumerate().map(finish).collect()
    }

    /// It has no room, and every other check lets it through.
    fn fails_by_capacity_alone(&self, way: &Way, member: &Candidate) -> bool {
        let Some((Check::Capacity, _)) = way.failed else {
            return false;
        };
        if self.all {
            return way.also.is_empty();
        }
        let later = ORDER.into_iter().filter(|check| *check > Check::Capacity);
        later
            .map(|check| self.check(check, member))
            .all(|reason| reason.is_none())
    }

    fn check(&self, check: Check, member: &Candidate) -> Option<Reason> {
        match check {
            Check::Status => match member.recipient.status {
                Status::Active => None,
                Status::Paused => Some(Reason::StatusPaused),
                Status::Disabled => Some(Reason::StatusDisabled),
            },
            Check::State => self.state(member),
            Check::Tried => self.tried(member),
            Check::Capacity => capacity::refusal(member, self.now),
            Check::Schedule => opening::closed(&member.recipient, self.now),
            Check::Traits => self.wants.iter().find_map(|want| want.refusal(&member.recipient)),
            Check::Rules => self.rules(member),
            Check::Flow => self.closed.cloned(),
            Check::Bids => self.bids(member),
        }
    }

    fn state(&self, member: &Candidate) -> Option<Reason> {
        let since = member.live.state_since;
        match member.live.state {
            RecipientState::Available => None,
            RecipientState::Busy => (self.busy == BusyPolicy::Exclude).then_some(Reason::StateBusy { since }),
            RecipientState::Offline => Some(Reason::StateOffline { since }),
            RecipientState::Paused => Some(Reason::StatePaused { since }),
        }
    }

    fn tried(&self, member: &Candidate) -> Option<Reason> {
        let id = member.recipient.id;
        if let Some(decision) = self.tried.get(&id) {
            return Some(Reason::TriedBefore { decision: *decision });
        }
        if self.request.exclude.contains(&id) || self.request.recipient.is_some_and(|only| only != id) {
            return Some(Reason::Excluded);
        }
        let until = member.live.cooldown_until.filter(|until| self.now < *until);
        until.map(|until| Reason::Cooldown { until })
    }

    fn rules(&self, member: &Candidate) -> Option<Reason> {
        for ready in &self.prepared.rules {
            if ready.rule.action.kind != ActionKind::Filter || !ready.rule.counts_at(self.now) {
                continue;
            }
            let rule = || ready.rule.name.clone();
            let program = match &ready.program {
                Ok(program) => program,
                Err(error) => {
                    return Some(Reason::RuleError {
                        rule: rule(),
                        error: error.clone(),
                    });
                }
            };
            match self.sight.truth(program, Some(member)) {
                Ok(true) => {}
                Ok(false) => {
                    return Some(Reason::RuleFalse {
                        rule: rule(),
                        because: self.sight.because(program, Some(member)),
                    });
                }
                Err(error) => return Some(Reason::RuleError { rule: rule(), error }),
            }
        }
        None
    }

    fn bids(&self, member: &Candidate) -> Option<Reason> {
        if !self.needs_bids {
            return None;
        }
        let Some(bid) = &member.bid else {
            return Some(Reason::BidNone);
        };
        if bid.expires_at.is_some_and(|expires| expires <= self.now) {
            return Some(Reason::BidExpired);
        }
        let have = bid.wallet.filter(|have| *have < bid.amount)?;
        Some(Reason::WalletInsufficient {
            need: bid.amount,
            have,
        })
    }
}
