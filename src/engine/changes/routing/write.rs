//! Everything that a decision leaves behind, in one transaction: assignments and the numbers of their recipients, what stages
//! remember, an item or an offer, the decision itself with its snapshot, and what others are told. `draft` has made all of it
//! that can be made before.

use std::sync::Arc;

use serde_json::Value;

use super::draft::{Draft, Left};

use super::route::Wish;
use super::world::Tenancy;
use super::{shadows, steps};
use crate::domain::routing::assignment::{Assignment, AssignmentState, Lineage};
use crate::domain::routing::decision::{Decision, Wire};
use crate::domain::routing::objects::{Explain, RecipientPoolConfig};
use crate::domain::routing::pass::{Ends, Passed};
use crate::domain::routing::pipeline::Pipeline;
use crate::domain::routing::sla;
use crate::store::decisions::{MadeTexts, Texts};
use crate::store::live_rows::SeenRow;
use crate::store::tables::{LEARNED, STRATEGY_STATES};
use crate::store::{
    Rows, StoreError, Tx, decisions, memory, offers, routing_live, routing_objects, waiting_work,
};
use crate::words::ids::{RecipientPoolId, WaitingId};

/// A decision that is written.
#[derive(Debug, Clone)]
pub struct Written {
    /// The decision, with its assignments.
    pub decision: Arc<Decision>,
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

/// A decision that is drawn up, and its long texts, where they are made already.
#[derive(Debug, Clone)]
pub(super) struct Drawn {
    pub(super) draft: Arc<Draft>,
    pub(super) texts: Option<Arc<Texts>>,
}

/// Writes a decision and all that follows from it.
pub(super) fn decision(
    tx: &mut Tx<'_>,
    tenancy: &Tenancy,
    (wish, passed): (&Wish, &Arc<Passed>),
    drawn: &Drawn,
) -> Result<Written, StoreError> {
    let (tenant, draft) = (tenancy.tenant, &drawn.draft);
    let decision = &draft.decision;
    if let Some(item) = &wish.item {
        waiting_work::leave(tx, tenant, item)?;
    }
    remember(tx, tenancy, passed)?;
    match (&passed.ends, &draft.left) {
        (_, Some(Left::Waits(item))) => {
            waiting_work::enqueue(tx, tenant, item)?;
            tx.tell("routing.waiting", item.id, item.record_version, Some("queued"));
        }
        (_, Some(Left::Offered(offer))) => {
            offers::put(tx, tenant, None, offer)?;
            tx.tell("routing.offer", offer.id, 0, Some("open"));
        }
        (Ends::Assigned(id), None) => assign(tx, tenancy, (wish, passed), *id, decision)?,
        (Ends::Waits(_) | Ends::Offered(_) | Ends::Over, None) => {}
    }
    decisions::keep_work(tx, tenant, decision.work, &draft.work)?;
    let texts = match &drawn.texts {
        Some(texts) => MadeTexts::Now(texts),
        None => {
            let (draft, wish, passed) = (Arc::clone(draft), wish.clone(), Arc::clone(passed));
            let (told, taken) = draft.about(&passed);
            MadeTexts::Late(told + taken, Box::new(move || draft.texts(&wish, &passed)))
        }
    };
    decisions::keep_with(tx, (tenant, decision.id), &draft.row, &draft.declared, texts)?;
    shadows::pend(tx, tenant, wish, passed)?;
    tell(tx, passed, decision);
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
        decision: Arc::clone(decision),
        item: draft.row.item,
    })
}

pub(super) fn config_of(passed: &Passed, id: RecipientPoolId) -> Option<&RecipientPoolConfig> {
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
    (wish, passed): (&Wish, &Passed),
    id: RecipientPoolId,
    decision: &Decision,
) -> Result<(), StoreError> {
    let at = decision.at;
    let config = config_of(passed, id);
    let prepared = passed.read.recipient_pools.get(&id).and_then(Option::as_ref);
    let pipeline = prepared.and_then(|prepared| prepared.pipeline.as_ref().ok());
    let forgetting = pipeline.map(Pipeline::forgetting).unwrap_or_default();
    for winner in &decision.winners {
        let assignment = Assignment {
            id: winner.assignment.expect("a draft has named it"),
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
        let key = (tenancy.tenant, id, winner.recipient);
        let mut learned = tx.get(&LEARNED, &key)?.unwrap_or_default();
        learned.assigned(at, forgetting);
        tx.put(&LEARNED, &key, &learned)?;
        tx.tell("routing.assignment", assignment.id, 0, Some("open"));
    }
    Ok(())
}

/// The recipient pools that a later hop may not enter again.
pub(super) fn entered(passed: &Passed, last: RecipientPoolId) -> Vec<RecipientPoolId> {
    let mut trail = passed.trail.clone();
    if trail.last() != Some(&last) {
        trail.push(last);
    }
    trail
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

fn tell(tx: &mut Tx<'_>, passed: &Passed, decision: &Decision) {
    tx.tell("routing.decision", decision.id, 0, Some(decision.outcome.word()));
    for (id, code) in &passed.zero_match {
        tx.tell("routing.zero_match", id, 0, Some(code));
    }
}
