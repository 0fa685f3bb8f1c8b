//! Runs a pass: from the work to a recipient pool, from one to the next, to an end. `hop` is one recipient pool of it.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::decision::{Chosen, Decision, Digests, Outcome, Randomness, Winner};
use super::explanation::{Explanation, RuleLine};
use super::hop::{self, Entered, Hopped};
use super::known::Known;
use super::objects::{ActionKind, Explain};
use super::pass::{Cause, Ends, Passed, Request, Stopped, Waits, World};
use super::ready::{self, Prepared, ReadyRule};
use super::reason::{Note, Reason};
use super::sight::{Sight, Times};
use super::state::{Holder, StageState};
use super::{canonical, summary, work_limits};
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, RuleId};
use crate::words::time::Micros;

/// The program that decided, for the digests.
pub(super) const ENGINE: &str = concat!("ductor ", env!("CARGO_PKG_VERSION"));

/// What a pass gathers on its way.
pub(super) struct Pass<'p, W> {
    pub(super) request: &'p Request,
    pub(super) now: Micros,
    pub(super) id: DecisionId,
    pub(super) world: &'p W,
    pub(super) read: Known,
    pub(super) sight: Arc<Sight>,
    pub(super) tried: BTreeMap<RecipientId, DecisionId>,
    pub(super) explanation: Explanation,
    pub(super) notes: Vec<Note>,
    pub(super) rule_errors: Vec<(RuleId, String)>,
    pub(super) states: Vec<(RecipientPoolId, String, StageState)>,
    pub(super) bound: Vec<(RecipientPoolId, String, String, Holder)>,
    pub(super) remember: Option<(RecipientPoolId, String, u64)>,
    pub(super) zero_match: Vec<(RecipientPoolId, &'static str)>,
    pub(super) winners: Vec<Winner>,
    pub(super) randomness: Randomness,
    pub(super) existing: Option<DecisionId>,
    pub(super) cost_micros: i64,
    pub(super) chances: Vec<(RecipientId, f64)>,
    pub(super) digests: Digests,
    pub(super) mode_diff: Option<serde_json::Value>,
    /// Recipient pools of this pass and of earlier ones of the same work.
    pub(super) visited: Vec<RecipientPoolId>,
    pub(super) explain: Option<Explain>,
}

/// How it ended, and where.
struct End {
    outcome: Outcome,
    ends: Ends,
    at: Option<Arc<Prepared>>,
}

/// Decides. The same request, time, decision and world give the same answer.
pub fn route<W: World>(
    request: &Request,
    now: Micros,
    decision: DecisionId,
    world: &W,
) -> Result<Passed, Stopped<W::Error>> {
    let faults = work_limits::check(&request.work);
    if !faults.is_empty() {
        return Err(Stopped::Invalid(faults));
    }
    let mut pass = Pass::new(request, now, decision, world)?;
    let end = pass.run()?;
    Ok(pass.passed(end))
}

/// A member, and why it may not have the work; none when it may.
pub type Eligibility = (RecipientId, Option<Reason>);

/// Whether each member of a recipient pool may have this work now: what the gate says. Empty when the recipient pool does
/// not route.
pub fn eligible_now<W: World>(
    request: &Request,
    now: Micros,
    recipient_pool: RecipientPoolId,
    world: &W,
) -> Result<Vec<Eligibility>, Stopped<W::Error>> {
    let mut pass = Pass::new(request, now, DecisionId([0; 16]), world)?;
    match pass
        .prepared(recipient_pool)?
        .filter(|prepared| prepared.recipient_pool.can_route())
    {
        None => Ok(Vec::new()),
        Some(prepared) => hop::gate_alone(&mut pass, &prepared),
    }
}

impl<'p, W: World> Pass<'p, W> {
    fn new(
        request: &'p Request,
        now: Micros,
        id: DecisionId,
        world: &'p W,
    ) -> Result<Pass<'p, W>, Stopped<W::Error>> {
        let times = Times {
            now,
            waited_us: request.waiting_since.map_or(0, |since| now.since(since)),
            attempt: request.attempt,
        };
        let tenant = world.tenant();
        let mut read = Known::new(&tenant);
        read.traits = world.traits()?;
        read.pipeline_mode = world.pipeline_mode()?;
        read.tried = world.tried_before(&request.work)?;
        Ok(Pass {
            sight: Arc::new(Sight::of_work(&request.work, times, &tenant)),
            tried: read.tried.iter().copied().collect(),
            request,
            now,
            id,
            world,
            read,
            explanation: Explanation::default(),
            notes: Vec::new(),
            rule_errors: Vec::new(),
            states: Vec::new(),
            bound: Vec::new(),
            remember: None,
            zero_match: Vec::new(),
            winners: Vec::new(),
            randomness: Randomness {
                used: false,
                seed: 0,
                propensity: Some(1.0),
            },
            existing: None,
            cost_micros: 0,
            chances: Vec::new(),
            digests: Digests {
                engine: ENGINE.to_owned(),
                ..Digests::default()
            },
            mode_diff: None,
            visited: request.trail.clone(),
            explain: request.explain,
        })
    }

    /// A recipient pool, remembered as read.
    pub(super) fn prepared(
        &mut self,
        id: RecipientPoolId,
    ) -> Result<Option<Arc<Prepared>>, Stopped<W::Error>> {
        let found = self.world.recipient_pool(id)?;
        self.read.recipient_pools.insert(id, found.clone());
        Ok(found)
    }

    fn run(&mut self) -> Result<End, Stopped<W::Error>> {
        let start = match self.request.recipient_pool {
            Some(id) => id,
            None => match self.choose()? {
                Ok(id) => id,
                Err(outcome) => return Ok(over(outcome, None)),
            },
        };
        let first = self.request.trail.first().copied().unwrap_or(start);
        let mut at = start;
        let mut depth = u32::try_from(self.request.trail.len()).unwrap_or(u32::MAX);
        let mut from: Option<String> = None;
        let mut shard = None;
        loop {
            let prepared = self
                .prepared(at)?
                .filter(|found| found.recipient_pool.can_route());
            let Some(prepared) = prepared else {
                if at == start {
                    let gone = self.world.recipient_pool(at)?;
                    return Ok(over(Outcome::PoolUnroutable, gone));
                }
                self.skip(at)?;
                return self.back_to(first, Outcome::PoolUnroutable);
            };
            self.visited.push(at);
            let entered = Entered {
                depth,
                from: from.as_deref(),
                shard: shard.take(),
            };
            match hop::enter(self, &prepared, &entered)? {
                Hopped::Ended(outcome, ends) => {
                    return Ok(End {
                        outcome: self.named(outcome, depth),
                        ends,
                        at: Some(prepared),
                    });
                }
                Hopped::On { to, shard: members } => {
                    depth += 1;
                    let most = match self.prepared(first)? {
                        Some(first) => first.recipient_pool.config.max_routing_depth,
                        None => prepared.recipient_pool.config.max_routing_depth,
                    };
                    if depth > most {
                        self.skip(to)?;
                        return self.back_to(first, Outcome::DepthExceeded);
                    }
                    if self.visited.contains(&to) {
                        self.skip(to)?;
                        return self.back_to(first, Outcome::Queued);
                    }
                    from = Some(prepared.recipient_pool.name.clone());
                    (at, shard) = (to, members);
                }
            }
        }
    }

    /// A pass whose last step was a hop says so, when it found nobody there.
    fn named(&self, outcome: Outcome, depth: u32) -> Outcome {
        let found_nobody = matches!(
            outcome,
            Outcome::Queued | Outcome::Offered | Outcome::QueuedForClaim
        );
        if depth == 0 || !found_nobody {
            return outcome;
        }
        let is_first = self.visited.len() == self.request.trail.len() + 1;
        if self.request.cause == Cause::Escalation && is_first {
            Outcome::Escalated
        } else {
            Outcome::Overflowed
        }
    }

    fn skip(&mut self, id: RecipientPoolId) -> Result<(), Stopped<W::Error>> {
        let name = self
            .prepared(id)?
            .map_or_else(|| id.to_string(), |found| found.recipient_pool.name.clone());
        self.notes.push(Note::Skipped { recipient_pool: name });
        Ok(())
    }

    /// The way ends: the work waits where it began, if anything is routed there.
    fn back_to(&mut self, first: RecipientPoolId, outcome: Outcome) -> Result<End, Stopped<W::Error>> {
        self.visited = vec![first];
        match self
            .prepared(first)?
            .filter(|found| found.recipient_pool.can_route())
        {
            Some(prepared) => Ok(End {
                ends: Ends::Waits(Waits {
                    recipient_pool: first,
                    expires_at: self.since().plus(prepared.recipient_pool.config.queue_ttl_us),
                    catchall: None,
                    retry_at: None,
                }),
                outcome,
                at: Some(prepared),
            }),
            None if outcome == Outcome::Queued => Ok(over(Outcome::Dropped, None)),
            None => Ok(over(outcome, None)),
        }
    }

    /// Since when the work waits.
    pub(super) fn since(&self) -> Micros {
        self.request.waiting_since.unwrap_or(self.now)
    }

    /// The recipient pool of the first rule that is true, else the default.
    fn choose(&mut self) -> Result<Result<RecipientPoolId, Outcome>, Stopped<W::Error>> {
        let rules = self.world.tenant_rules()?;
        self.read.tenant_rules = Arc::clone(&rules);
        self.digests.rules = ready::rules_digest(&rules);
        let mut skipped = false;
        let now = self.now;
        let sight = Arc::clone(&self.sight);
        for ready in rules.iter().filter(|ready| ready.rule.counts_at(now)) {
            let mut line = self.judge(ready, &sight);
            if !line.result {
                self.explanation.rules.push(line);
                continue;
            }
            if ready.rule.action.kind == ActionKind::Drop {
                self.explanation.rules.push(line);
                return Ok(Err(Outcome::Dropped));
            }
            let Some(target) = ready.rule.action.target else {
                self.explanation.rules.push(line);
                continue;
            };
            let found = self.prepared(target)?;
            line.target = Some(
                found
                    .as_ref()
                    .map_or_else(|| target.to_string(), |found| found.recipient_pool.name.clone()),
            );
            if found.is_some_and(|found| found.recipient_pool.can_route()) {
                self.explanation.rules.push(line);
                return Ok(Ok(target));
            }
            skipped = true;
            line.skipped = true;
            let name = line.target.clone().unwrap_or_default();
            self.notes.push(Note::Skipped { recipient_pool: name });
            self.explanation.rules.push(line);
        }
        let default = self.world.default_recipient_pool()?;
        self.read.default_recipient_pool = default;
        Ok(match default {
            _ if skipped => Err(Outcome::PoolUnroutable),
            Some(default) => Ok(default),
            None => Err(Outcome::NoRuleMatched),
        })
    }

    /// What a rule about the work says.
    pub(super) fn judge(&mut self, ready: &ReadyRule, sight: &Sight) -> RuleLine {
        let given = match &ready.program {
            Ok(program) => sight.truth(program, None).map(|result| (result, program)),
            Err(error) => Err(error.clone()),
        };
        let (result, because, error) = match given {
            Ok((true, _)) => (true, String::new(), None),
            Ok((false, program)) => (false, sight.because(program, None), None),
            Err(error) => {
                self.rule_failed(ready.rule.id, &error);
                (false, String::new(), Some(error))
            }
        };
        RuleLine {
            rule: ready.rule.name.clone(),
            priority: ready.rule.priority,
            result,
            because,
            error,
            target: None,
            skipped: false,
        }
    }

    pub(super) fn rule_failed(&mut self, id: RuleId, error: &str) {
        if !self.rule_errors.iter().any(|(known, _)| *known == id) {
            self.rule_errors.push((id, error.to_owned()));
        }
    }

    fn passed(mut self, end: End) -> Passed {
        let (recipient_pool, name) = match &end.at {
            Some(prepared) => (Some(chosen(prepared)), prepared.recipient_pool.name.clone()),
            None => (None, String::new()),
        };
        let first = self
            .request
            .trail
            .first()
            .or(self.explanation.hops.first().map(|hop| &hop.id))
            .copied();
        let first_pool = first
            .filter(|first| recipient_pool.as_ref().is_none_or(|chosen| chosen.id != *first))
            .and_then(|first| self.read.recipient_pools.get(&first).cloned().flatten())
            .map(|prepared| chosen(&prepared));
        if let Some(prepared) = &end.at {
            self.digests.recipient_pool.clone_from(&prepared.digest);
            let both = format!("{}{}", self.digests.rules, prepared.rules_digest);
            self.digests.rules = canonical::sha256(&serde_json::Value::from(both));
        }
        self.explanation.nearest_miss = summary::nearest_miss(&self.explanation);
        let summary = summary::sentence(end.outcome, &name, &self.explanation, &self.notes);
        let trail = match self.visited.split_last() {
            Some((_, before)) => before.to_vec(),
            None => Vec::new(),
        };
        let decision = Decision {
            id: self.id,
            work: self.request.work.id,
            at: self.now,
            committed: !self.request.dry_run,
            outcome: end.outcome,
            recipient_pool,
            first_pool,
            winners: self.winners,
            summary,
            explanation: self.explanation,
            notes: self.notes,
            randomness: self.randomness,
            snapshot: Arc::default(),
            digests: self.digests,
            existing: self.existing,
            mode_diff: self.mode_diff,
            cost_micros: self.cost_micros,
            duration_micros: 0,
        };
        Passed {
            decision,
            ends: end.ends,
            states: self.states,
            bound: self.bound,
            remember: self.remember,
            zero_match: self.zero_match,
            rule_errors: self.rule_errors,
            trail,
            chances: self.chances,
            read: self.read,
        }
    }
}

fn chosen(prepared: &Prepared) -> Chosen {
    Chosen {
        id: prepared.recipient_pool.id,
        name: prepared.recipient_pool.name.clone(),
        record_version: prepared.recipient_pool.record_version,
    }
}

fn over(outcome: Outcome, at: Option<Arc<Prepared>>) -> End {
    End {
        outcome,
        ends: Ends::Over,
        at,
    }
}
