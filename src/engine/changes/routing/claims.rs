//! Recipients take offered work themselves: offer open → recipient eligible now → budget → assignment, in one transaction. Of
//! several who want the same, the first in the order of commits has it.

use super::shelf::Shelf;
use super::world::{StoreWorld, Tenancy};
use crate::domain::routing::assignment::{Assignment, AssignmentState, ClaimedFrom};
use crate::domain::routing::budget::{self, Exhausted};
use crate::domain::routing::objects::RecipientPoolConfig;
use crate::domain::routing::offer::{NoClaim, Offer};
use crate::domain::routing::pass::{self, Request, Stopped};
use crate::domain::routing::reason::Reason;
use crate::domain::routing::sla;
use crate::domain::routing::work::Work;
use crate::store::routing_live::{self, Lookup};
use crate::store::{Abort, Rows, StoreError, Tx, decisions, offers};
use crate::words::ids::{AssignmentId, ClaimQueueId, RecipientId, TenantId, WaitingId};
use crate::words::limits;
use crate::words::time::Micros;

/// What became of a claim.
#[derive(Debug, Clone)]
pub enum Claimed {
    /// They have it: the assignment, and the work with all its fields.
    Got(Box<(Assignment, Work)>),
    /// There is no such offer in that queue.
    NotFound,
    /// Somebody was faster, or it has ended.
    No(NoClaim),
    /// Who asks may not have it now.
    NotEligible(Reason),
    /// Who asks is no member of the recipient pool, or it does not route.
    NotMember,
    /// Who asks has had as much as they may.
    Budget(Exhausted),
    /// Nothing there for who asks.
    Nothing,
}

/// Claims one offer.
pub fn claim(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    (queue, id): (ClaimQueueId, WaitingId),
    recipient: RecipientId,
) -> Result<Claimed, Abort> {
    let now = Micros::from(tx.now().wall);
    let offer = offers::offer(tx, tenancy.tenant, id)?.filter(|offer| offer.claim_queue == queue);
    let Some(offer) = offer else {
        return Ok(Claimed::NotFound);
    };
    let judged = judge(tx, shelf, tenancy, &offer, recipient, now)?;
    match judged {
        Ok(ready) => Ok(take(tx, tenancy.tenant, &offer, recipient, ready)?),
        Err(no) => Ok(no),
    }
}

/// Claims the oldest offer of the best priority for which who asks is eligible.
pub fn next(
    tx: &mut Tx<'_>,
    shelf: &Shelf,
    tenancy: &Tenancy,
    queue: ClaimQueueId,
    recipient: RecipientId,
) -> Result<Claimed, Abort> {
    let now = Micros::from(tx.now().wall);
    let mut behind = None;
    let mut exhausted = None;
    let mut looked_at = 0;
    while looked_at < limits::OFFERS_LOOKED_AT_MAX {
        let page = offers::in_order(tx, tenancy.tenant, queue, behind, limits::PAGE_DEFAULT)?;
        let Some(last) = page.last().copied() else { break };
        behind = Some(last);
        looked_at += page.len();
        for (_, _, id) in page {
            let Some(offer) = offers::offer(tx, tenancy.tenant, id)? else {
                continue;
            };
            match judge(tx, shelf, tenancy, &offer, recipient, now)? {
                Ok(ready) => return Ok(take(tx, tenancy.tenant, &offer, recipient, ready)?),
                Err(Claimed::Budget(of)) => exhausted = Some(of),
                Err(_) => {}
            }
        }
    }
    Ok(exhausted.map_or(Claimed::Nothing, Claimed::Budget))
}

/// What a claim needs to know once it may be made.
struct Ready {
    work: Work,
    config: RecipientPoolConfig,
}

fn judge<R: Rows>(
    rows: &mut R,
    shelf: &Shelf,
    tenancy: &Tenancy,
    offer: &Offer,
    recipient: RecipientId,
    now: Micros,
) -> Result<Result<Ready, Claimed>, StoreError> {
    if let Err(no) = offer.admits(recipient, now) {
        return Ok(Err(Claimed::No(no)));
    }
    let work: Option<Work> =
        decisions::work(rows, tenancy.tenant, offer.work)?.and_then(|text| text.read().ok());
    let Some(work) = work else {
        return Ok(Err(Claimed::No(NoClaim::Closed)));
    };
    let config = match eligible(rows, shelf, tenancy, offer, &work, (recipient, now))? {
        Ok(config) => config,
        Err(no) => return Ok(Err(no)),
    };
    if let Some(budget) = &config.claim_budget {
        let claims = offers::claims(rows, tenancy.tenant, offer.recipient_pool, recipient)?;
        let open = open_claims(rows, tenancy.tenant, offer, recipient)?;
        if let Err(exhausted) = budget::admit(budget, &claims, open, now) {
            return Ok(Err(Claimed::Budget(exhausted)));
        }
    }
    Ok(Ok(Ready { work, config }))
}

/// Whether the gate lets who asks have this work now.
fn eligible<R: Rows>(
    rows: &mut R,
    shelf: &Shelf,
    tenancy: &Tenancy,
    offer: &Offer,
    work: &Work,
    (recipient, now): (RecipientId, Micros),
) -> Result<Result<RecipientPoolConfig, Claimed>, StoreError> {
    let world = StoreWorld::new(rows, shelf, tenancy)?;
    let tried = &offer.lineage.tried;
    world.set_tried(tried.iter().map(|one| (one.recipient, one.decision)).collect());
    let mut request = Request::new(work.clone());
    request.recipient = Some(recipient);
    request.exclude = offer.lineage.excluded.iter().copied().collect();
    request.waiting_since = Some(offer.offered_at);
    request.hop_since = Some(offer.offered_at);
    let gated = match pass::eligible_now(&request, now, offer.recipient_pool, &world) {
        Ok(gated) => gated,
        Err(Stopped::World(error)) => return Err(error),
        Err(Stopped::Invalid(_) | Stopped::Refused(_)) => Vec::new(),
    };
    match gated.into_iter().find(|(id, _)| *id == recipient) {
        None => Ok(Err(Claimed::NotMember)),
        Some((_, Some(reason))) => Ok(Err(Claimed::NotEligible(reason))),
        Some((_, None)) => {
            let found = world.prepared(offer.recipient_pool)?;
            Ok(found
                .map(|found| found.recipient_pool.config.clone())
                .ok_or(Claimed::NotMember))
        }
    }
}

/// Claimed and unfinished work of a recipient in the recipient pool of an offer.
fn open_claims(
    rows: &mut impl Rows,
    tenant: TenantId,
    offer: &Offer,
    recipient: RecipientId,
) -> Result<u32, StoreError> {
    let mut open = 0;
    for id in routing_live::by(rows, tenant, (Lookup::LiveOfRecipient, recipient.0), usize::MAX)? {
        let found = routing_live::assignment(rows, tenant, id)?;
        let is_claim = |one: &Assignment| one.claimed.is_some() && one.recipient_pool == offer.recipient_pool;
        open += u32::from(found.is_some_and(|one| is_claim(&one)));
    }
    Ok(open)
}

fn take(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    offer: &Offer,
    recipient: RecipientId,
    ready: Ready,
) -> Result<Claimed, StoreError> {
    let now = Micros::from(tx.now().wall);
    let Ready { work, config } = ready;
    let sla = config.sla.as_ref();
    let response_due_at = sla::response_due(sla, now);
    let assignment = Assignment {
        id: AssignmentId::fresh(),
        seq: 0,
        decision: offer.decision,
        work: offer.work,
        recipient_pool: offer.recipient_pool,
        recipient,
        state: AssignmentState::Open,
        units: work.units,
        priority: work.priority,
        over_capacity: false,
        created_at: now,
        accepted_at: None,
        responded_at: None,
        timeout_us: config.default_timeout_us,
        deadline_at: (config.default_timeout_us > 0).then(|| now.plus(config.default_timeout_us)),
        // Without an answer it goes back to the queue, which is more than a breach would do.
        response_due_at: None,
        claimed: Some(ClaimedFrom {
            offer: offer.id,
            neglected_at: response_due_at,
        }),
        trail: offer.trail.clone(),
        lineage: offer.lineage.clone(),
        end: None,
        value_micro: None,
        result: None,
    };
    let assignment = routing_live::assign(tx, tenant, assignment)?;
    let after = offer.claimed(recipient, now, assignment.id);
    offers::put(tx, tenant, Some(offer), &after)?;
    if let Some(budget) = &config.claim_budget {
        let counted_from = budget::period_start(budget, now);
        let whose = (offer.recipient_pool, recipient);
        offers::note_claim(tx, tenant, whose, (now, assignment.id), counted_from)?;
    }
    tx.tell("routing.offer", offer.id, after.record_version, Some("claimed"));
    tx.tell("routing.assignment", assignment.id, 0, Some("open"));
    Ok(Claimed::Got(Box::new((assignment, work))))
}

/// Whose offers are listed, and for whom.
#[derive(Debug, Clone, Copy)]
pub struct Asking {
    /// The queue.
    pub queue: ClaimQueueId,
    /// Only what this recipient may claim.
    pub recipient: Option<RecipientId>,
}

/// Open offers of a queue that who asks may claim now, in the order of the queue, with their work.
pub fn open_to<R: Rows>(
    rows: &mut R,
    shelf: &Shelf,
    tenancy: &Tenancy,
    Asking { queue, recipient }: Asking,
    now: Micros,
    limit: usize,
) -> Result<Vec<(Offer, Work)>, StoreError> {
    let mut found = Vec::new();
    let mut behind = None;
    let mut looked_at = 0;
    while found.len() < limit && looked_at < limits::OFFERS_LOOKED_AT_MAX {
        let page = offers::in_order(rows, tenancy.tenant, queue, behind, limits::PAGE_DEFAULT)?;
        let Some(last) = page.last().copied() else { break };
        behind = Some(last);
        looked_at += page.len();
        for (_, _, id) in page {
            let Some(offer) = offers::offer(rows, tenancy.tenant, id)? else {
                continue;
            };
            let text = decisions::work(rows, tenancy.tenant, offer.work)?;
            let Some(work) = text.and_then(|text| text.read::<Work>().ok()) else {
                continue;
            };
            let may = match recipient {
                None => true,
                Some(recipient) => {
                    offer.admits(recipient, now).is_ok()
                        && eligible(rows, shelf, tenancy, &offer, &work, (recipient, now))?.is_ok()
                }
            };
            if may && found.len() < limit {
                found.push((offer, work));
            }
        }
    }
    Ok(found)
}
