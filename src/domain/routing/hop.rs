//! One recipient pool of a pass: its rules, its gate, its pipeline, and its fallback.

use std::sync::Arc;

use super::candidate::Members;
use super::decision::Outcome;
use super::explanation::{StageLine, Verdict};
use super::gate::{Gate, Gated};
use super::objects::{ActionKind, BusyPolicy, Explain, OnDuplicate, PipelineMode, ShardBy, Sharding, Trait};
use super::pass::{Eligibility, Ends, Flow, Stopped, World};
use super::pipeline::{self, Pipeline};
use super::ready::Prepared;
use super::reason::{Note, Reason};
use super::route::Pass;
use super::seed;
use super::sight::Sight;
use super::strategies::Kind;
use super::strategies::contract::Use;
use super::wants::{self, Want};
use crate::words::ids::RecipientPoolId;
use crate::words::time::Micros;

/// How a recipient pool is entered.
pub(super) struct Entered<'e> {
    /// Hops before.
    pub(super) depth: u32,
    /// The recipient pool before.
    pub(super) from: Option<&'e str>,
    /// Its members are a part of those of another.
    pub(super) shard: Option<Shard>,
}

/// A part of the members of a recipient pool.
pub(super) struct Shard {
    members_of: RecipientPoolId,
    shards: Vec<RecipientPoolId>,
}

/// How it is left.
pub(super) enum Hopped {
    /// The pass ends here.
    Ended(Outcome, Ends),
    /// It goes on.
    On {
        to: RecipientPoolId,
        shard: Option<Shard>,
    },
}

/// What is looked at in one recipient pool.
pub(super) struct Hop<'h, 'p, W> {
    pub(super) pass: &'h mut Pass<'p, W>,
    pub(super) prepared: &'h Prepared,
    pub(super) sight: Sight,
    pub(super) number: u16,
    pub(super) members: Members,
    wants: Vec<Want>,
    /// Nobody gets it, and why.
    pub(super) closed: Option<Reason>,
    /// It was here before.
    duplicate: bool,
    all: bool,
    pub(super) verdicts: Vec<Option<Verdict>>,
    pub(super) lines: Vec<StageLine>,
    pub(super) eligible: usize,
    /// How the work ended here, once it did.
    pub(super) ended: Option<(Outcome, Ends)>,
    pub(super) retry_at: Option<Micros>,
}

pub(super) type Step<W, T> = Result<T, Stopped<<W as World>::Error>>;

/// Goes through a recipient pool.
pub(super) fn enter<W: World>(
    pass: &mut Pass<'_, W>,
    prepared: &Prepared,
    entered: &Entered,
) -> Step<W, Hopped> {
    let sight = pass
        .sight
        .in_pool(&prepared.recipient_pool, entered.depth, entered.from);
    if let Some(hopped) = rules(pass, prepared, &sight) {
        return Ok(hopped);
    }
    if let Some(sharding) = &prepared.recipient_pool.config.sharding
        && entered.shard.is_none()
    {
        return shard(pass, prepared, sharding, &sight);
    }
    let mut hop = Hop::new(pass, prepared, sight, entered.shard.as_ref())?;
    let hopped = hop.decide()?;
    hop.tell(entered.depth);
    Ok(hopped)
}

/// The gate without a pick: who could have it now.
pub(super) fn gate_alone<W: World>(pass: &mut Pass<'_, W>, prepared: &Prepared) -> Step<W, Vec<Eligibility>> {
    let sight = pass.sight.in_pool(&prepared.recipient_pool, 0, None);
    let hop = Hop::new(pass, prepared, sight, None)?;
    let gated = hop.gate(prepared.pipeline.as_ref().ok());
    let ids = hop.members.iter().map(|member| member.recipient.id);
    Ok(ids
        .zip(gated)
        .map(|(id, gated)| match gated {
            Gated::Eligible { .. } => (id, None),
            Gated::Out(reason, _) => (id, Some(reason)),
        })
        .collect())
}

/// Redirects and drops of the recipient pool.
fn rules<W: World>(pass: &mut Pass<'_, W>, prepared: &Prepared, sight: &Sight) -> Option<Hopped> {
    for ready in &prepared.rules {
        let kind = ready.rule.action.kind;
        if !matches!(kind, ActionKind::Redirect | ActionKind::Drop) || !ready.rule.counts_at(pass.now) {
            continue;
        }
        let line = pass.judge(ready, sight);
        let result = line.result;
        pass.explanation.rules.push(line);
        if !result {
            continue;
        }
        match (kind, ready.rule.action.target) {
            (ActionKind::Redirect, Some(to)) => return Some(Hopped::On { to, shard: None }),
            (ActionKind::Drop, _) => return Some(Hopped::Ended(Outcome::Dropped, Ends::Over)),
            _ => {}
        }
    }
    None
}

/// The sub-pool that the key of the work falls to.
fn shard<W: World>(
    pass: &mut Pass<'_, W>,
    prepared: &Prepared,
    sharding: &Sharding,
    sight: &Sight,
) -> Step<W, Hopped> {
    let own = pass.request.work.id.to_string();
    let key = match &prepared.shard_key {
        Some(program) => sight.key(program).unwrap_or(own),
        None => own,
    };
    let Some(to) = highest(&sharding.shards, &key) else {
        return Ok(Hopped::Ended(Outcome::Error, Ends::Over));
    };
    let name = pass
        .prepared(to)?
        .map_or_else(|| to.to_string(), |found| found.recipient_pool.name.clone());
    pass.notes.push(Note::ShardChosen { recipient_pool: name });
    let shard = (sharding.by == ShardBy::Recipient).then(|| Shard {
        members_of: prepared.recipient_pool.id,
        shards: sharding.shards.clone(),
    });
    Ok(Hopped::On { to, shard })
}

fn highest(shards: &[RecipientPoolId], key: &str) -> Option<RecipientPoolId> {
    let standing = |id: &RecipientPoolId| seed::standing(id, key, 1.0);
    let best = shards
        .iter()
        .max_by(|left, right| standing(left).total_cmp(&standing(right)).then(right.cmp(left)));
    best.copied()
}

impl<'h, 'p, W: World> Hop<'h, 'p, W> {
    fn new(
        pass: &'h mut Pass<'p, W>,
        prepared: &'h Prepared,
        sight: Sight,
        shard: Option<&Shard>,
    ) -> Step<W, Hop<'h, 'p, W>> {
        let id = prepared.recipient_pool.id;
        let source = shard.map_or(id, |shard| shard.members_of);
        let mut members = pass.world.candidates(source)?.sorted();
        pass.read.candidates.insert(source, members.clone());
        if let Some(shard) = shard {
            members.retain(|member| highest(&shard.shards, &member.recipient.id.to_string()) == Some(id));
        }
        let waited_us = pass.now.since(pass.since());
        let traits = Arc::clone(&pass.read.traits);
        let (wants, notes) = wants::required(&traits, &pass.request.work, waited_us);
        pass.notes.extend(notes);
        let explain = pass.explain.unwrap_or(prepared.recipient_pool.config.explain);
        let number = u16::try_from(pass.explanation.hops.len()).unwrap_or(u16::MAX);
        let mut hop = Hop {
            verdicts: Vec::new(),
            retry_at: relax_at(&traits, pass, waited_us),
            pass,
            prepared,
            sight,
            number,
            members,
            wants,
            closed: None,
            duplicate: false,
            all: explain == Explain::All,
            lines: Vec::new(),
            eligible: 0,
            ended: None,
        };
        hop.look_at_flow()?;
        hop.look_for_duplicate()?;
        Ok(hop)
    }

    pub(super) fn id(&self) -> RecipientPoolId {
        self.prepared.recipient_pool.id
    }

    pub(super) fn hop_since(&self) -> Micros {
        let first = self.pass.visited.len() == self.pass.request.trail.len() + 1;
        self.pass
            .request
            .hop_since
            .filter(|_| first)
            .unwrap_or(self.pass.now)
    }

    /// Whether the same work was here lately. Work that waits is not its own duplicate.
    fn look_for_duplicate(&mut self) -> Step<W, ()> {
        let config = &self.prepared.recipient_pool.config;
        let (Some(dedup), Some(program)) = (&config.dedup, &self.prepared.dedup_key) else {
            return Ok(());
        };
        let Ok(key) = self.sight.key(program) else {
            return Ok(());
        };
        if self.pass.request.waiting_since.is_some() || self.pass.request.attempt > 1 {
            return Ok(());
        }
        let id = self.id();
        if let Some((decision, seen_at)) = self.pass.world.seen(id, &key)? {
            self.pass.read.seen.insert((id, key.clone()), (decision, seen_at));
            if self.pass.now.since(seen_at) < dedup.window_us {
                self.closed = Some(Reason::DedupRecent { key, seen_at });
                self.duplicate = true;
                let answers_first = dedup.on_duplicate == OnDuplicate::ReturnExisting;
                self.pass.existing = answers_first.then_some(decision);
                return Ok(());
            }
        }
        self.pass.remember = Some((id, key, dedup.window_us));
        Ok(())
    }

    fn look_at_flow(&mut self) -> Step<W, ()> {
        let Some(flow_control) = &self.prepared.recipient_pool.config.flow_control else {
            return Ok(());
        };
        let id = self.id();
        let (count, per_us) = flow_control.rate.unwrap_or((0, 0));
        let past = i64::try_from(per_us).unwrap_or(i64::MAX);
        let since = Micros(self.pass.now.0.saturating_sub(past));
        let flow: Flow = self.pass.world.flow(id, since)?;
        self.pass.read.flows.insert(id, flow);
        if per_us > 0 && flow.recent >= u64::from(count) {
            let retry_at = flow.oldest.map(|oldest| oldest.plus(per_us));
            self.retry_at = soonest(self.retry_at, retry_at);
            self.closed = Some(Reason::FlowLimited {
                rate: u64::from(count),
                per_us,
                retry_at,
            });
        } else if flow_control.concurrency > 0 && flow.open >= u64::from(flow_control.concurrency) {
            self.closed = Some(Reason::FlowLimited {
                rate: u64::from(flow_control.concurrency),
                per_us: 0,
                retry_at: None,
            });
        }
        Ok(())
    }

    pub(super) fn gate(&self, pipeline: Option<&Pipeline>) -> Vec<Gated> {
        self.gate_by(self.mode(), pipeline)
    }

    pub(super) fn gate_by(&self, mode: PipelineMode, pipeline: Option<&Pipeline>) -> Vec<Gated> {
        let config = &self.prepared.recipient_pool.config;
        let used = pipeline.map(|pipeline| &pipeline.pick.used);
        let ladder = used.filter(|used| used.info.kind == Kind::AvailabilityFallback);
        let step = |word: &str| ladder.map(|used| used.params.has_word("steps", word));
        let gate = Gate {
            request: self.pass.request,
            now: self.pass.now,
            prepared: self.prepared,
            members: &self.members,
            sight: &self.sight,
            tried: &self.pass.tried,
            wants: &self.wants,
            closed: self.closed.as_ref(),
            needs_bids: used.is_some_and(needs_bids),
            busy: match step("busy") {
                None => config.busy_policy,
                Some(true) => BusyPolicy::LastResort,
                Some(false) => BusyPolicy::Exclude,
            },
            over_capacity: step("over_capacity").unwrap_or(config.allow_over_capacity),
            all: self.all,
        };
        match mode {
            PipelineMode::Dag => gate.set_at_a_time(self.pass.world.crew()),
            PipelineMode::Inherit | PipelineMode::Linear | PipelineMode::Shadow => gate.linear(),
        }
    }

    pub(super) fn mode(&self) -> PipelineMode {
        let own = self.prepared.recipient_pool.config.pipeline_mode;
        if own == PipelineMode::Inherit {
            self.pass.read.pipeline_mode
        } else {
            own
        }
    }

    fn decide(&mut self) -> Step<W, Hopped> {
        let prepared = self.prepared;
        let asked = pipeline::of_request(&prepared.recipient_pool, self.pass.request);
        let asked = asked.transpose().map_err(Stopped::Invalid)?;
        let pipeline = match (&asked, &prepared.pipeline) {
            (Some(asked), _) => {
                self.pass.digests.pipeline = super::canonical::sha256(&asked.source);
                asked
            }
            (None, Ok(own)) => {
                self.pass.digests.pipeline.clone_from(&prepared.pipeline_digest);
                own
            }
            (None, Err(faults)) => {
                let first = faults.first().map(|fault| Note::Unusable {
                    pointer: fault.pointer.clone(),
                    detail: fault.detail.clone(),
                });
                self.pass.notes.extend(first);
                return Ok(Hopped::Ended(Outcome::Error, Ends::Over));
            }
        };
        self.through(pipeline)?;
        if self.duplicate {
            return Ok(Hopped::Ended(Outcome::Duplicate, Ends::Over));
        }
        if let Some((outcome, ends)) = self.ended.take() {
            return Ok(Hopped::Ended(outcome, ends));
        }
        self.refuse_manual()?;
        self.fall_back(pipeline)
    }
}

/// Whether candidates must have bid, for it or for what stands inside of it.
fn needs_bids(used: &Use) -> bool {
    used.info.needs_bids || used.inner.as_deref().is_some_and(needs_bids)
}

/// When the next required trait stops being required.
fn relax_at<W>(traits: &[Trait], pass: &Pass<'_, W>, waited_us: u64) -> Option<Micros> {
    let work = &pass.request.work;
    let due = traits.iter().filter(|one| {
        one.required && one.relax_after_us > waited_us && work.attributes.contains_key(&one.key)
    });
    due.map(|one| pass.now.plus(one.relax_after_us - waited_us)).min()
}

pub(super) fn soonest(left: Option<Micros>, right: Option<Micros>) -> Option<Micros> {
    match (left, right) {
        (Some(left), Some(right)) => Some(left.min(right)),
        (left, right) => left.or(right),
    }
}
