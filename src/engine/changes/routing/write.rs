//! Everything that a decision leaves behind, in one transaction: assignments and the numbers of their recipients, what stages
//! remember, an item or an offer, the decision itself with its snapshot, and what others are told.

use std::collections::BTreeSet;

use serde_json::Value;

use super::route::Wish;
use super::world::Tenancy;
use super::{shadows, steps};
use crate::domain::routing::assignment::{Assignment, AssignmentState, Lineage};
use crate::domain::routing::decision::{Decision, Wire};
use crate::domain::routing::objects::{Explain, RecipientPoolConfig};
use crate::domain::routing::offer::{Offer, OfferState};
use crate::domain::routing::pass::{Ends, Offered, Passed, Waits};
use crate::domain::routing::pipeline::Pipeline;
use crate::domain::routing::reason::Reason;
use crate::domain::routing::sla;
use crate::domain::routing::snapshot;
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::store::live_rows::{DecisionRow, SeenRow};
use crate::store::tables::{LEARNED, STRATEGY_STATES};
use crate::store::{
    Rows, StoreError, Tx, decisions, memory, offers, routing_live, routing_objects, waiting_work,
};
use crate::words::ids::{AssignmentId, ClaimQueueId, RecipientPoolId, WaitingId};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// A decision that is written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The decision, with its assignments.
    pub decision: Decision,
    /// Recipient pools of which every member was rejected by one code.
    pub zero_match: Vec<(RecipientPoolId, &'static str)>,
    /// Rules that could not be evaluated.
    pub rule_errors: usize,
    /// What waits or is offered because of it.
    pub item: Option<WaitingId>,
    /// How much of it is explained where the request does not say.
    pub explain: Explain,
    /// What it goes on from.
    pub lineage: Lineage,
}

impl Written {
    /// The decision on the wire.
    pub fn document(&self, asked: Option<Explain>) -> Wire<'_> {
        document(
            &self.decision,
            asked.unwrap_or(self.explain),
            &self.lineage,
            self.item,
        )
    }
}

/// How much the recipient pool of a decision explains.
pub fn explain_of(passed: &Passed) -> Explain {
    let chosen = passed.decision.recipient_pool.as_ref();
    let config = chosen.and_then(|chosen| config_of(passed, chosen.id));
    config.map_or(Explain::First, |config| config.explain)
}

/// Writes a decision and all that follows from it.
pub(super) fn decision(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    wish: &Wish,
    passed: &Passed,
) -> Result<Written, StoreError> {
    let mut decision = passed.decision.clone();
    decision.committed = true;
    let tenant = tenancy.tenant;
    if let Some(item) = &wish.item {
        waiting_work::leave(tx, tenant, item)?;
    }
    remember(tx, tenancy, passed)?;
    let item = match &passed.ends {
        Ends::Assigned(id) => {
            assign(tx, tenancy, wish, passed, *id, &mut decision)?;
            None
        }
        Ends::Waits(waits) => Some(wait(tx, tenancy, wish, passed, waits)?),
        Ends::Offered(offered) => Some(offer(tx, tenancy, wish, passed, offered)?),
        Ends::Over => None,
    };
    let work = JsonText::of(&wish.request.work).expect("work is plain data");
    decisions::keep_work(tx, tenant, decision.work, &work)?;
    keep(tx, tenancy, wish, passed, &mut decision, item)?;
    tell(tx, passed, &decision);
    for (rule, error) in &passed.rule_errors {
        routing_objects::note_rule_error(tx, tenant, *rule, error, (decision.id, decision.at))?;
        // Whoever looks at a rule sees when it begins to fail.
        tx.tell("routing.rule_error", rule, 0, None);
    }
    // The step that has routed new work hears of its decision itself.
    if passed.ends == Ends::Over && wish.item.is_some() {
        steps::over(tx, tenant, decision.work)?;
    }
    Ok(Written {
        zero_match: passed.zero_match.clone(),
        rule_errors: passed.rule_errors.len(),
        explain: explain_of(passed),
        lineage: wish.lineage.clone(),
        decision,
        item,
    })
}

fn config_of(passed: &Passed, id: RecipientPoolId) -> Option<&RecipientPoolConfig> {
    let prepared = passed.read.recipient_pools.get(&id)?.as_ref()?;
    Some(&prepared.recipient_pool.config)
}

fn remember(tx: &mut Tx<'_>, tenancy: &Tenancy, passed: &Passed) -> Result<(), StoreError> {
    let (tenant, at) = (tenancy.tenant, passed.decision.at);
    for (id, stage, state) in &passed.states {
        tx.put(&STRATEGY_STATES, &(tenant, *id, stage.clone()), state)?;
    }
    for (id, stage, key, holder) in &passed.bound {
        let place = (*id, memory::holder_key(*id, stage, key));
        memory::put_holder(tx, tenant, place, Some(holder))?;
    }
    if let Some((id, key, window_us)) = &passed.remember {
        let row = SeenRow {
            decision: passed.decision.id,
            seen_at: at,
            expires_at: at.plus(*window_us),
        };
        memory::put_seen(tx, tenant, (*id, memory::seen_key(*id, key)), Some(&row))?;
    }
    Ok(())
}

fn assign(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    wish: &Wish,
    passed: &Passed,
    id: RecipientPoolId,
    decision: &mut Decision,
) -> Result<(), StoreError> {
    let at = decision.at;
    let config = config_of(passed, id);
    let prepared = passed.read.recipient_pools.get(&id).and_then(Option::as_ref);
    let pipeline = prepared.and_then(|prepared| prepared.pipeline.as_ref().ok());
    let forgetting = pipeline.map(Pipeline::forgetting).unwrap_or_default();
    for winner in &mut decision.winners {
        let assignment = Assignment {
            id: AssignmentId::fresh(),
            seq: 0,
            decision: decision.id,
            work: decision.work,
            recipient_pool: id,
            recipient: winner.recipient,
            state: AssignmentState::Open,
            units: wish.request.work.units,
            priority: wish.request.work.priority,
            over_capacity: winner.over_capacity,
            created_at: at,
            accepted_at: None,
            responded_at: None,
            timeout_us: winner.deadline_at.map_or(0, |deadline| deadline.since(at)),
            deadline_at: winner.deadline_at,
            response_due_at: sla::response_due(config.and_then(|config| config.sla.as_ref()), at),
            claimed: None,
            trail: entered(passed, id),
            lineage: wish.lineage.clone(),
            end: None,
            value_micro: None,
            result: None,
        };
        let assignment = routing_live::assign(tx, tenancy.tenant, assignment)?;
        winner.assignment = Some(assignment.id);
        let key = (tenancy.tenant, id, winner.recipient);
        let mut learned = tx.get(&LEARNED, &key)?.unwrap_or_default();
        learned.assigned(at, forgetting);
        tx.put(&LEARNED, &key, &learned)?;
        tx.tell("routing.assignment", assignment.id, 0, Some("open"));
    }
    Ok(())
}

/// The recipient pools that a later hop may not enter again.
fn entered(passed: &Passed, last: RecipientPoolId) -> Vec<RecipientPoolId> {
    let mut trail = passed.trail.clone();
    if trail.last() != Some(&last) {
        trail.push(last);
    }
    trail
}

/// When time alone may change the outcome: a window opens, a limit is over, a rest ends.
fn wakes_at(passed: &Passed, waits: &Waits) -> Option<Micros> {
    let now = passed.decision.at;
    let verdicts = passed.decision.explanation.candidates.iter();
    let reasons = verdicts.flat_map(|verdict| verdict.reason.iter().chain(&verdict.also));
    let instants = reasons.filter_map(instant_of).chain(waits.retry_at);
    instants.filter(|at| *at > now).min()
}

#[expect(clippy::wildcard_enum_match_arm, reason = "no other reason passes with time")]
fn instant_of(reason: &Reason) -> Option<Micros> {
    match reason {
        Reason::Cooldown { until } => Some(*until),
        Reason::ScheduleClosed { opens_at, .. } => *opens_at,
        Reason::CapacityDaily { resets_at, .. } | Reason::ClaimBudget { resets_at, .. } => *resets_at,
        Reason::FlowLimited { retry_at, .. } => *retry_at,
        _ => None,
    }
}

/// Reasons of a pass, and how many each has rejected.
pub(super) fn histogram(passed: &Passed) -> Vec<(String, u32)> {
    let counted = passed.decision.explanation.histogram().into_iter();
    counted
        .map(|(code, count)| (code.to_owned(), u32::try_from(count).unwrap_or(u32::MAX)))
        .collect()
}

/// The item of work that waits: the same one, if it has waited before.
pub(super) fn waiting(wish: &Wish, passed: &Passed, waits: &Waits) -> Waiting {
    let at = passed.decision.at;
    let before = wish.item.as_ref();
    let enqueued_at = wish.request.waiting_since.unwrap_or(at);
    let stays = before.filter(|item| item.recipient_pool == waits.recipient_pool);
    let sla = config_of(passed, waits.recipient_pool).and_then(|config| config.sla.as_ref());
    Waiting {
        id: before.map_or_else(WaitingId::fresh, |item| item.id),
        work: passed.decision.work,
        recipient_pool: waits.recipient_pool,
        priority: wish.request.work.priority,
        enqueued_at,
        expires_at: waits.expires_at,
        kind: match waits.catchall {
            Some((due_at, to)) => WaitKind::Catchall { due_at, to },
            None => WaitKind::Queued,
        },
        decision: passed.decision.id,
        hop_since: stays.map_or(at, |item| item.hop_since),
        trail: passed.trail.clone(),
        wake_at: wakes_at(passed, waits),
        sla_due_at: match before {
            Some(item) => item.sla_due_at,
            None => sla::queue_due(sla, enqueued_at),
        },
        histogram: histogram(passed),
        lineage: wish.lineage.clone(),
        record_version: before.map_or(0, |item| item.record_version + 1),
    }
}

fn wait(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    wish: &Wish,
    passed: &Passed,
    waits: &Waits,
) -> Result<WaitingId, StoreError> {
    let item = waiting(wish, passed, waits);
    waiting_work::enqueue(tx, tenancy.tenant, &item)?;
    tx.tell("routing.waiting", item.id, item.record_version, Some("queued"));
    Ok(item.id)
}

fn offer(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    wish: &Wish,
    passed: &Passed,
    offered: &Offered,
) -> Result<WaitingId, StoreError> {
    let at = passed.decision.at;
    let id = offered.recipient_pool;
    let sla = config_of(passed, id).and_then(|config| config.sla.as_ref());
    let since = wish.request.waiting_since.unwrap_or(at);
    let offer = Offer {
        id: WaitingId::fresh(),
        claim_queue: offered.claim_queue.unwrap_or(ClaimQueueId(id.0)),
        recipient_pool: id,
        work: passed.decision.work,
        priority: wish.request.work.priority,
        offered_at: since,
        ends_at: offered.expires_at,
        decision: passed.decision.id,
        to: offered.to.clone().unwrap_or_default(),
        neglect_count: 0,
        sla_due_at: match &wish.item {
            Some(item) => item.sla_due_at,
            None => sla::queue_due(sla, since),
        },
        trail: entered(passed, id),
        lineage: wish.lineage.clone(),
        state: OfferState::Open,
        record_version: 0,
    };
    offers::put(tx, tenancy.tenant, None, &offer)?;
    tx.tell("routing.offer", offer.id, 0, Some("open"));
    Ok(offer.id)
}

/// The text of a decision, with what only its lineage knows.
pub fn document<'d>(
    decision: &'d Decision,
    explain: Explain,
    lineage: &Lineage,
    item: Option<WaitingId>,
) -> Wire<'d> {
    let members = [
        (
            "parent_decision_id",
            lineage.parent.map(|parent| parent.to_string()),
        ),
        (
            "parent_assignment_id",
            lineage.parent_assignment.map(|assignment| assignment.to_string()),
        ),
        ("item_id", item.map(|item| item.to_string())),
    ];
    let known = members
        .into_iter()
        .filter_map(|(name, id)| Some((name.to_owned(), Value::from(id?))));
    decision.wire(explain, known.collect())
}

fn keep(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    wish: &Wish,
    passed: &Passed,
    decision: &mut Decision,
    item: Option<WaitingId>,
) -> Result<(), StoreError> {
    let taken = snapshot::snapshot(&wish.request, passed);
    decision.snapshot.clone_from(&taken.digest);
    let text = JsonText::parse(&taken.text).expect("a snapshot is JSON");
    let mut reasons: BTreeSet<String> = decision
        .explanation
        .histogram()
        .into_keys()
        .map(str::to_owned)
        .collect();
    reasons.extend(decision.notes.iter().map(|note| note.code().to_owned()));
    let row = DecisionRow {
        at: decision.at,
        work: decision.work,
        recipient_pool: decision.recipient_pool.as_ref().map(|chosen| chosen.id),
        outcome: decision.outcome.word().to_owned(),
        winners: decision.winners.iter().map(|winner| winner.recipient).collect(),
        reasons: reasons.into_iter().collect(),
        item,
        snapshot: Some(taken.digest),
        text: JsonText::of(&document(decision, Explain::First, &wish.lineage, item))
            .expect("a decision is plain data"),
    };
    decisions::keep(tx, tenancy.tenant, decision.id, &row, Some(&text))?;
    shadows::pend(tx, tenancy.tenant, wish, passed)
}

fn tell(tx: &mut Tx<'_>, passed: &Passed, decision: &Decision) {
    tx.tell("routing.decision", decision.id, 0, Some(decision.outcome.word()));
    for (id, code) in &passed.zero_match {
        tx.tell("routing.zero_match", id, 0, Some(code));
    }
}
