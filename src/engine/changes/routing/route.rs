//! A decision, made outside of the writer and written inside: what it rests on is compared again, and where that has moved the
//! pass is made once more, by whoever holds the only right to write.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::draft::Draft;
use super::rivalry::Entrance;
use super::shelf::Shelf;
use super::world::{StoreWorld, Tenancy, live_of};
use super::write::{self, Drawn, Written};
use crate::domain::routing::assignment::Lineage;
use crate::domain::routing::decision::Outcome;
use crate::domain::routing::fault::Fault;
use crate::domain::routing::pass::{self, Cause, Ends, Passed, Refusal, Request, Stopped};
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::domain::routing::work::Work;
use crate::store::tables::STRATEGY_STATES;
use crate::store::{Abort, Rows, StoreError, Tx, decisions, memory, routing_live, waiting_work};
use crate::words::ids::{DecisionId, RecipientPoolId, TenantId, WorkId};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// What is to be decided.
#[derive(Debug, Clone)]
pub struct Wish {
    /// What is asked.
    pub request: Request,
    /// Under which id.
    pub decision: DecisionId,
    /// What earlier passes over the work have left.
    pub lineage: Lineage,
    /// The item that waits for it.
    pub item: Option<Waiting>,
    /// It is decided no earlier than this, also in a turn of the writer that began before.
    pub asked_at: Micros,
}

impl Wish {
    /// Where it enters.
    pub fn entrance(&self, tenant: TenantId) -> Entrance {
        (tenant, self.request.recipient_pool)
    }

    /// New work.
    pub fn fresh(request: Request, decision: DecisionId) -> Wish {
        let options = &request.strategy_options;
        let lineage = Lineage {
            excluded: request.exclude.iter().copied().collect(),
            entry: request.recipient_pool,
            parent: request.work.parent_decision_id,
            strategy: request.strategy.clone(),
            strategy_options: (!options.is_empty())
                .then(|| serde_json::to_string(options).expect("options are plain data")),
            ..Lineage::default()
        };
        Wish {
            request,
            decision,
            lineage,
            item: None,
            asked_at: Micros(0),
        }
    }

    /// Work that waits is tried again.
    pub fn again(item: &Waiting, work: Work, decision: DecisionId) -> Wish {
        let lineage = item.lineage.clone();
        let mut request = Request::new(work);
        let is_anew = item.kind == WaitKind::Again;
        request.recipient_pool = if is_anew {
            lineage.entry
        } else {
            Some(item.recipient_pool)
        };
        request.cause = if is_anew { lineage.cause } else { Cause::Asked };
        request.trail = if is_anew {
            lineage.trail.clone()
        } else {
            item.trail.clone()
        };
        request.waiting_since = Some(item.enqueued_at);
        request.hop_since = Some(item.hop_since);
        request.attempt = lineage.attempt.saturating_add(1);
        request.exclude = lineage.excluded.iter().copied().collect();
        request.strategy.clone_from(&lineage.strategy);
        let options = lineage.strategy_options.as_deref().unwrap_or("{}");
        request.strategy_options = serde_json::from_str(options).unwrap_or_default();
        Wish {
            request,
            decision,
            lineage,
            item: Some(item.clone()),
            asked_at: Micros(0),
        }
    }
}

/// A decision that is not written yet, and what it rests on.
#[derive(Debug, Clone)]
pub struct Judged {
    /// What was decided, or why nothing was.
    pub outcome: Result<Arc<Passed>, No>,
    revision: u64,
    events: BTreeMap<RecipientPoolId, u64>,
    drawn: Option<Drawn>,
}

impl Judged {
    /// The same with all that can be made of it before it is written.
    #[must_use]
    pub fn drawn_up<R: Rows>(mut self, world: &StoreWorld<'_, R>, wish: &Wish) -> Judged {
        if let Ok(passed) = &self.outcome
            && passed.decision.existing.is_none()
        {
            let draft = Draft::of(wish, passed, world.declared(&passed.read));
            self.drawn = Some(Drawn {
                texts: Some(Arc::new(draft.texts(wish, passed))),
                draft: Arc::new(draft),
            });
        }
        self
    }
}

/// Why there is no decision.
#[derive(Debug, Clone, PartialEq)]
pub enum No {
    /// The input cannot be used.
    Invalid(Vec<Fault>),
    /// The manual assignment is refused.
    Refused(Refusal),
}

/// What became of a wish.
#[derive(Debug, Clone)]
pub enum Routed {
    /// Decided, and written.
    Decided(Box<Written>),
    /// The same work was decided before: which, and that decision as it was kept.
    Existing(WorkId, JsonText),
    /// Not decided.
    Not(No),
}

/// Decides over one world; writes nothing.
pub fn judge<R: Rows>(world: &StoreWorld<'_, R>, wish: &Wish, now: Micros) -> Result<Judged, StoreError> {
    let tried = &wish.lineage.tried;
    world.set_tried(tried.iter().map(|one| (one.recipient, one.decision)).collect());
    let (outcome, revision) = (
        pass::route(&wish.request, now, wish.decision, world),
        world.revision(),
    );
    let outcome = match outcome {
        Ok(passed) => Ok(Arc::new(passed)),
        Err(Stopped::World(error)) => return Err(error),
        Err(Stopped::Invalid(faults)) => Err(No::Invalid(faults)),
        Err(Stopped::Refused(refusal)) => Err(No::Refused(refusal)),
    };
    let mut events = BTreeMap::new();
    if let Ok(passed) = &outcome {
        for id in passed.read.candidates.keys() {
            let counts = world.read(|rows| routing_live::counts(rows, world.tenant_id(), *id))?;
            events.insert(*id, counts.events);
        }
    }
    Ok(Judged {
        outcome,
        revision,
        events,
        drawn: None,
    })
}

/// Writes a decision that was made before, or makes it anew where what it rests on has moved. None was made before where a look
/// ahead was not worth its while.
pub fn commit(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    wish: &Wish,
    judged: Option<&Judged>,
) -> Result<Routed, Abort> {
    let held = match judged {
        Some(judged) if holds(tx, tenancy.tenant, judged)? => Some(judged),
        Some(_) | None => None,
    };
    if judged.is_some() {
        shelf.rivalry.note(wish.entrance(tenancy.tenant), held.is_some());
    }
    let anew;
    let judged = match held {
        Some(judged) => judged,
        None => {
            anew = judge_now(tx, shelf, tenancy, wish)?;
            &anew
        }
    };
    let passed = match &judged.outcome {
        Ok(passed) => passed,
        Err(no) => return Ok(Routed::Not(no.clone())),
    };
    if let Some(existing) = passed.decision.existing
        && let Some(row) = decisions::decision(tx, tenancy.tenant, existing)?
    {
        return Ok(Routed::Existing(row.work, row.text));
    }
    let written = write(tx, shelf, tenancy, (wish, passed), judged.drawn.as_ref())?;
    Ok(Routed::Decided(Box::new(written)))
}

/// The same for work that waits: where the second look finds that it waits on, it does. A decision over it that cannot be made
/// any more leaves it where it is.
pub fn commit_item(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    wish: &Wish,
    judged: &Judged,
) -> Result<Option<Written>, Abort> {
    let anew;
    let judged = if holds(tx, tenancy.tenant, judged)? {
        judged
    } else {
        anew = judge_now(tx, shelf, tenancy, wish)?;
        &anew
    };
    let Ok(passed) = &judged.outcome else {
        return Ok(None);
    };
    if let Some(item) = &wish.item {
        if item.kind != WaitKind::Again && still_waits(item, passed) {
            return Ok(None);
        }
        // What came back to a recipient pool that does not route now waits until it does.
        if wish.request.recipient_pool.is_some() && passed.decision.outcome == Outcome::PoolUnroutable {
            let after = Waiting {
                kind: WaitKind::Queued,
                record_version: item.record_version + 1,
                ..item.clone()
            };
            waiting_work::replace(tx, tenancy.tenant, item, &after)?;
            return Ok(None);
        }
    }
    let written = write(tx, shelf, tenancy, (wish, passed), judged.drawn.as_ref())?;
    Ok(Some(written))
}

/// The pass in the writer's turn, over what is there now.
fn judge_now(tx: &mut Tx<'_>, shelf: &Shelf, tenancy: &Tenancy, wish: &Wish) -> Result<Judged, Abort> {
    let now = Micros::from(tx.now().wall).max(wish.asked_at);
    let world = StoreWorld::new(tx, shelf, tenancy)?;
    Ok(judge(&world, wish, now)?)
}

/// Writes what was drawn up, or draws it up now; then its long texts are made beside the writer's turn.
fn write(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    (wish, passed): (&Wish, &Arc<Passed>),
    drawn: Option<&Drawn>,
) -> Result<Written, Abort> {
    let made;
    let drawn = match drawn {
        Some(drawn) => drawn,
        None => {
            let declared = shelf.of(tx, tenancy.tenant)?.declared(&passed.read);
            made = Drawn {
                draft: Arc::new(Draft::of(wish, passed, declared)),
                texts: None,
            };
            &made
        }
    };
    Ok(write::decision(tx, tenancy, (wish, passed), drawn)?)
}

/// Whether what a decision rests on is as it was.
fn holds(tx: &mut Tx<'_>, tenant: TenantId, judged: &Judged) -> Result<bool, StoreError> {
    if routing_live::revision(tx, tenant)? != judged.revision {
        return Ok(false);
    }
    let Ok(passed) = &judged.outcome else {
        return Ok(false);
    };
    if let Some((id, key, _)) = &passed.remember {
        let seen = memory::seen(tx, tenant, *id, key)?.map(|row| (row.decision, row.seen_at));
        if seen != passed.read.seen.get(&(*id, key.clone())).copied() {
            return Ok(false);
        }
    }
    match &passed.ends {
        Ends::Assigned(id) => Ok(winners_hold(tx, tenant, *id, passed)? && memory_holds(tx, tenant, passed)?),
        Ends::Waits(_) | Ends::Offered(_) | Ends::Over => {
            for (id, events) in &judged.events {
                if routing_live::counts(tx, tenant, *id)?.events != *events {
                    return Ok(false);
                }
            }
            memory_holds(tx, tenant, passed)
        }
    }
}

/// The winners have not moved; beyond capacity, nobody has, because all of them share one budget.
fn winners_hold(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: RecipientPoolId,
    passed: &Passed,
) -> Result<bool, StoreError> {
    let winners = &passed.decision.winners;
    let all = winners.iter().any(|winner| winner.over_capacity);
    for candidate in passed.read.candidates.get(&id).into_iter().flatten() {
        let recipient = candidate.recipient.id;
        if !all && !winners.iter().any(|winner| winner.recipient == recipient) {
            continue;
        }
        if live_of(tx, tenant, &candidate.recipient)? != candidate.live {
            return Ok(false);
        }
    }
    match passed.read.flows.get(&id) {
        Some(flow) => Ok(routing_live::counts(tx, tenant, id)?.open == flow.open),
        None => Ok(true),
    }
}

/// What stages remember, and who holds keys, is as it was read.
fn memory_holds(tx: &mut Tx<'_>, tenant: TenantId, passed: &Passed) -> Result<bool, StoreError> {
    for (id, stage, _) in &passed.states {
        let state = tx.get(&STRATEGY_STATES, &(tenant, *id, stage.clone()))?;
        let read = passed.read.states.get(&(*id, stage.clone()));
        if state.as_ref() != read.map(AsRef::as_ref) {
            return Ok(false);
        }
    }
    for (id, stage, key, _) in &passed.bound {
        let holder = memory::holder(tx, tenant, *id, (stage, key))?;
        if holder.as_ref() != passed.read.holders.get(&(*id, stage.clone(), key.clone())) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The work of an item, as it was read last.
pub fn work_of(rows: &mut impl Rows, tenant: TenantId, item: &Waiting) -> Result<Option<Work>, StoreError> {
    let text = decisions::work(rows, tenant, item.work)?;
    Ok(text.and_then(|text| text.read().ok()))
}

/// True when a pass over work that waits has changed nothing: it still waits where it did.
pub fn still_waits(item: &Waiting, passed: &Passed) -> bool {
    let same_place =
        matches!(&passed.ends, Ends::Waits(waits) if waits.recipient_pool == item.recipient_pool);
    let nowhere = matches!(
        passed.decision.outcome,
        Outcome::PoolUnroutable | Outcome::Duplicate | Outcome::Error
    );
    same_place || nowhere
}
