//! Work that recipients claim themselves: an offer in a claim queue, and who may have it. Pure.

use serde::{Deserialize, Serialize};

use super::assignment::Lineage;
use crate::words::ids::{
    AssignmentId, ClaimQueueId, DecisionId, RecipientId, RecipientPoolId, WaitingId, WorkId,
};
use crate::words::time::Micros;

/// Where an offer stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum OfferState {
    /// Anybody eligible may claim it. Exits: claimed, closed.
    Open,
    /// Somebody has it. Exit: open, when they neglect it.
    Claimed {
        /// Who.
        by: RecipientId,
        /// When.
        at: Micros,
        /// What they hold.
        assignment: AssignmentId,
    },
    /// Its time has passed, or it was cancelled. No exit.
    Closed {
        /// When.
        at: Micros,
        /// Why.
        reason: String,
    },
}

/// Work that is offered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Offer {
    /// Its place.
    pub id: WaitingId,
    /// The queue. What a recipient pool without one offers (`shark_tank`) stands in a queue that has the pool's own id.
    pub claim_queue: ClaimQueueId,
    /// The recipient pool that offers it.
    pub recipient_pool: RecipientPoolId,
    /// The work.
    pub work: WorkId,
    /// Of the work: 0 to 9, lower first.
    pub priority: u8,
    /// Since when.
    pub offered_at: Micros,
    /// The offer ends then, and the recipient pool's fallback runs.
    pub ends_at: Micros,
    /// The decision that offered it.
    pub decision: DecisionId,
    /// To whom; empty for all that are eligible when they claim.
    pub to: Vec<RecipientId>,
    /// How often it was claimed and not answered.
    pub neglect_count: u32,
    /// Its queue time is over then (SLA).
    pub sla_due_at: Option<Micros>,
    /// The recipient pools that the pass went through, the first one first.
    pub trail: Vec<RecipientPoolId>,
    /// What later passes must know; who neglected it is among those tried.
    pub lineage: Lineage,
    /// Where it stands.
    pub state: OfferState,
    /// Grows with each stored change.
    pub record_version: u64,
}

/// Why a claim gets nothing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NoClaim {
    /// Somebody was faster.
    Lost {
        /// Who.
        by: RecipientId,
        /// When.
        at: Micros,
    },
    /// The offer has ended.
    Closed,
    /// It is offered to others.
    NotOffered,
    /// They had it before.
    Tried(DecisionId),
}

impl Offer {
    /// Whether `recipient` may have it, as far as the offer itself says.
    pub fn admits(&self, recipient: RecipientId, now: Micros) -> Result<(), NoClaim> {
        match &self.state {
            OfferState::Claimed { by, at, .. } => return Err(NoClaim::Lost { by: *by, at: *at }),
            OfferState::Closed { .. } => return Err(NoClaim::Closed),
            OfferState::Open if now >= self.ends_at => return Err(NoClaim::Closed),
            OfferState::Open => {}
        }
        if let Some(tried) = self
            .lineage
            .tried
            .iter()
            .find(|tried| tried.recipient == recipient)
        {
            return Err(NoClaim::Tried(tried.decision));
        }
        if !self.to.is_empty() && !self.to.contains(&recipient) {
            return Err(NoClaim::NotOffered);
        }
        Ok(())
    }

    /// Somebody has it.
    #[must_use]
    pub fn claimed(&self, by: RecipientId, at: Micros, assignment: AssignmentId) -> Offer {
        self.with(OfferState::Claimed { by, at, assignment })
    }

    /// Who had it did not answer: it is open again, without them.
    #[must_use]
    pub fn neglected(&self, lineage: Lineage) -> Offer {
        let mut next = self.with(OfferState::Open);
        next.neglect_count = next.neglect_count.saturating_add(1);
        next.lineage = lineage;
        next
    }

    /// It is not offered any more.
    #[must_use]
    pub fn closed(&self, at: Micros, reason: &str) -> Offer {
        self.with(OfferState::Closed {
            at,
            reason: reason.to_owned(),
        })
    }

    fn with(&self, state: OfferState) -> Offer {
        let mut next = self.clone();
        if !matches!(state, OfferState::Open) {
            next.sla_due_at = None;
        }
        next.state = state;
        next.record_version += 1;
        next
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::super::assignment::Tried;
    use super::*;

    pub(crate) fn offer() -> Offer {
        Offer {
            id: WaitingId([7; 16]),
            claim_queue: ClaimQueueId([6; 16]),
            recipient_pool: RecipientPoolId([4; 16]),
            work: WorkId([3; 16]),
            priority: 5,
            offered_at: Micros(1_000_000),
            ends_at: Micros(61_000_000),
            decision: DecisionId([2; 16]),
            to: Vec::new(),
            neglect_count: 0,
            sla_due_at: None,
            trail: vec![RecipientPoolId([4; 16])],
            lineage: Lineage::default(),
            state: OfferState::Open,
            record_version: 0,
        }
    }

    #[test]
    fn the_first_claim_has_it_and_the_others_hear_who() {
        let (me, you, now) = (RecipientId([1; 16]), RecipientId([2; 16]), Micros(2_000_000));
        let open = offer();
        assert_eq!(open.admits(me, now), Ok(()));
        let claimed = open.claimed(me, now, AssignmentId([1; 16]));
        assert_eq!(claimed.admits(you, now), Err(NoClaim::Lost { by: me, at: now }));
        assert_eq!(open.admits(me, open.ends_at), Err(NoClaim::Closed));
        let closed = open.closed(now, "over");
        assert_eq!(closed.admits(me, now), Err(NoClaim::Closed));
    }

    /// 44, pure: a neglected offer opens again without its holder.
    #[test]
    fn who_neglected_it_is_not_asked_again() {
        let (me, you, now) = (RecipientId([1; 16]), RecipientId([2; 16]), Micros(2_000_000));
        let mut lineage = Lineage::default();
        lineage.tried.push(Tried {
            recipient: me,
            decision: DecisionId([2; 16]),
        });
        let again = offer().claimed(me, now, AssignmentId([1; 16])).neglected(lineage);
        assert_eq!(again.neglect_count, 1);
        assert_eq!(again.admits(me, now), Err(NoClaim::Tried(DecisionId([2; 16]))));
        assert_eq!(again.admits(you, now), Ok(()));
    }

    #[test]
    fn an_offer_to_some_is_not_for_others() {
        let some = Offer {
            to: vec![RecipientId([1; 16])],
            ..offer()
        };
        assert_eq!(
            some.admits(RecipientId([2; 16]), Micros(2)),
            Err(NoClaim::NotOffered)
        );
    }
}
