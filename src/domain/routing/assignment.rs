//! Work that went to a recipient, from its assignment to its end. Pure: each event takes an assignment to another or says
//! why it cannot.

use serde::{Deserialize, Serialize};

use super::pass::Cause;
use crate::words::ids::{AssignmentId, DecisionId, RecipientId, RecipientPoolId, WaitingId, WorkId};
use crate::words::limits;
use crate::words::time::Micros;

/// A recipient that had the work before, and by which decision.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tried {
    /// Who.
    pub recipient: RecipientId,
    /// The decision that gave it to them.
    pub decision: DecisionId,
}

/// What later passes over the same work must know of the earlier ones.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Lineage {
    /// Passes before this one that have assigned it.
    pub attempt: u32,
    /// Who had it and is not asked again, oldest first.
    pub tried: Vec<Tried>,
    /// The newest decision before this one.
    pub parent: Option<DecisionId>,
    /// The assignment that it comes back from.
    pub parent_assignment: Option<AssignmentId>,
    /// Whom the request has excluded, for all passes.
    pub excluded: Vec<RecipientId>,
    /// The recipient pool where passes over it begin; none for the rules of the tenant.
    pub entry: Option<RecipientPoolId>,
    /// Why the next pass is made.
    pub cause: Cause,
    /// The recipient pools that passes went through before a catchall or an escalation, the first one first.
    pub trail: Vec<RecipientPoolId>,
    /// The strategy that the request has named.
    pub strategy: Option<String>,
    /// Options that the request has named: JSON text of strategy to options.
    pub strategy_options: Option<String>,
}

impl Lineage {
    /// After this assignment did not work out. The oldest of too many is asked again.
    #[must_use]
    pub fn after(&self, assignment: &Assignment) -> Lineage {
        let mut next = self.clone();
        next.attempt = next.attempt.saturating_add(1);
        next.parent = Some(assignment.decision);
        next.parent_assignment = Some(assignment.id);
        next.cause = Cause::Asked;
        next.trail.clear();
        next.add_tried(Tried {
            recipient: assignment.recipient,
            decision: assignment.decision,
        });
        next
    }

    fn add_tried(&mut self, tried: Tried) {
        self.tried.retain(|other| other.recipient != tried.recipient);
        self.tried.push(tried);
        if self.tried.len() > limits::ROUTING_TRIED_MAX {
            self.tried.remove(0);
        }
    }
}

/// Where an assignment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum AssignmentState {
    /// Assigned and not answered. Exits: all others.
    Open,
    /// The recipient works on it. Exits: completed, returned, expired.
    Accepted,
    /// Done. Exit: returned, under a warranty.
    Completed,
    /// Given back. No exit.
    Returned,
    /// Its time has passed, or its recipient went. No exit.
    Expired,
}

impl AssignmentState {
    /// All words of the wire.
    pub const WORDS: &[&str] = &["open", "accepted", "completed", "returned", "expired"];

    /// The word of the wire.
    pub fn word(self) -> &'static str {
        match self {
            AssignmentState::Open => "open",
            AssignmentState::Accepted => "accepted",
            AssignmentState::Completed => "completed",
            AssignmentState::Returned => "returned",
            AssignmentState::Expired => "expired",
        }
    }

    /// True while it takes a place of its recipient.
    pub fn is_live(self) -> bool {
        match self {
            AssignmentState::Open | AssignmentState::Accepted => true,
            AssignmentState::Completed | AssignmentState::Returned | AssignmentState::Expired => false,
        }
    }
}

/// Why an assignment ended the way it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum EndKind {
    /// It was done.
    Completed,
    /// Refused before it was accepted.
    Rejected,
    /// Given back before it was done.
    GivenBack,
    /// Given back after it was done.
    Warranty,
    /// Its deadline has passed.
    Deadline,
    /// Claimed, and no answer in time.
    Neglected,
    /// Its recipient was removed.
    Released,
    /// No response in time, and somebody else is asked.
    Escalated,
}

impl EndKind {
    /// The word of the wire.
    pub fn word(self) -> &'static str {
        match self {
            EndKind::Completed => "completed",
            EndKind::Rejected => "rejected",
            EndKind::GivenBack => "given_back",
            EndKind::Warranty => "warranty",
            EndKind::Deadline => "deadline",
            EndKind::Neglected => "neglected",
            EndKind::Released => "released",
            EndKind::Escalated => "escalated",
        }
    }

    /// The state that it leads to.
    pub fn state(self) -> AssignmentState {
        match self {
            EndKind::Completed => AssignmentState::Completed,
            EndKind::Rejected | EndKind::GivenBack | EndKind::Warranty => AssignmentState::Returned,
            EndKind::Deadline | EndKind::Neglected | EndKind::Released | EndKind::Escalated => {
                AssignmentState::Expired
            }
        }
    }
}

/// How an assignment ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// When.
    pub at: Micros,
    /// Who said so; `ductor` for a clock.
    pub by: String,
    /// Why, for people.
    pub reason: String,
    /// Which way.
    pub kind: EndKind,
}

/// Work that went to a recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Assignment {
    /// Its id.
    pub id: AssignmentId,
    /// Its number among all: those up to a recipient's epoch no longer count.
    pub seq: u64,
    /// The decision that made it.
    pub decision: DecisionId,
    /// The work.
    pub work: WorkId,
    /// Through which recipient pool.
    pub recipient_pool: RecipientPoolId,
    /// To whom.
    pub recipient: RecipientId,
    /// Where it stands.
    pub state: AssignmentState,
    /// Of the work.
    pub units: u32,
    /// Of the work: 0 to 9.
    pub priority: u8,
    /// Beyond the limits of the recipient.
    pub over_capacity: bool,
    /// When it was made.
    pub created_at: Micros,
    /// When it was accepted first.
    pub accepted_at: Option<Micros>,
    /// When its recipient was first heard of: accepted, renewed or completed.
    pub responded_at: Option<Micros>,
    /// Each answer moves the deadline by this; 0 for none.
    pub timeout_us: u64,
    /// It expires then.
    pub deadline_at: Option<Micros>,
    /// The first response is due then (SLA).
    pub response_due_at: Option<Micros>,
    /// Claimed from this offer, which opens again if there is no response until then.
    pub claimed: Option<ClaimedFrom>,
    /// The recipient pools that the pass went through, the first one first.
    pub trail: Vec<RecipientPoolId>,
    /// What later passes must know.
    pub lineage: Lineage,
    /// How it ended.
    pub end: Option<End>,
    /// What the recipient has made of it: 0 to 1, in millionths.
    pub value_micro: Option<u32>,
    /// The result of a completion: JSON text.
    pub result: Option<String>,
}

/// The offer that an assignment was claimed from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClaimedFrom {
    /// The offer.
    pub offer: WaitingId,
    /// Without a response it goes back then.
    pub neglected_at: Option<Micros>,
}

/// Why an event does not apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// It has ended.
    Ended(AssignmentState),
    /// It was accepted, and is given back rather than rejected.
    AlreadyAccepted,
    /// What was done is returned under a warranty only, and there is none here.
    NoWarranty,
}

impl Refusal {
    /// The dotted code.
    pub fn code(self) -> &'static str {
        match self {
            Refusal::Ended(_) => "assignment.ended",
            Refusal::AlreadyAccepted => "assignment.already_accepted",
            Refusal::NoWarranty => "assignment.no_warranty",
        }
    }

    /// A sentence.
    pub fn sentence(self) -> String {
        match self {
            Refusal::Ended(state) => format!("the assignment has ended: it is {}", state.word()),
            Refusal::AlreadyAccepted => {
                "the assignment is accepted already; give it back with `:return`".to_owned()
            }
            Refusal::NoWarranty => {
                "the assignment is completed, and its pool has no return policy".to_owned()
            }
        }
    }
}

impl Assignment {
    fn heard(&self, now: Micros) -> Assignment {
        let mut next = self.clone();
        next.responded_at = next.responded_at.or(Some(now));
        next.response_due_at = None;
        if let Some(claimed) = &mut next.claimed {
            claimed.neglected_at = None;
        }
        if next.timeout_us > 0 {
            next.deadline_at = Some(now.plus(next.timeout_us));
        }
        next
    }

    fn live(&self) -> Result<(), Refusal> {
        if self.state.is_live() {
            Ok(())
        } else {
            Err(Refusal::Ended(self.state))
        }
    }

    /// The recipient works on it; the clock goes on. Once more moves the deadline only.
    pub fn accept(&self, now: Micros) -> Result<Assignment, Refusal> {
        self.live()?;
        let mut next = self.heard(now);
        next.state = AssignmentState::Accepted;
        next.accepted_at = next.accepted_at.or(Some(now));
        Ok(next)
    }

    /// The recipient is alive.
    pub fn renew(&self, now: Micros) -> Result<Assignment, Refusal> {
        self.live()?;
        Ok(self.heard(now))
    }

    /// It is done.
    pub fn complete(
        &self,
        now: Micros,
        by: &str,
        value_micro: Option<u32>,
        result: Option<String>,
    ) -> Result<Assignment, Refusal> {
        self.live()?;
        let mut next = self.heard(now).ended(now, by, "", EndKind::Completed);
        next.value_micro = value_micro;
        next.result = result;
        Ok(next)
    }

    /// Refused before it was accepted.
    pub fn reject(&self, now: Micros, by: &str, reason: &str) -> Result<Assignment, Refusal> {
        self.live()?;
        if self.state == AssignmentState::Accepted {
            return Err(Refusal::AlreadyAccepted);
        }
        Ok(self.ended(now, by, reason, EndKind::Rejected))
    }

    /// Given back.
    pub fn give_back(&self, now: Micros, by: &str, reason: &str) -> Result<Assignment, Refusal> {
        if self.state == AssignmentState::Completed {
            return Err(Refusal::NoWarranty);
        }
        self.live()?;
        Ok(self.ended(now, by, reason, EndKind::GivenBack))
    }

    /// A clock, or the removal of its recipient, has ended it.
    pub fn expire(&self, now: Micros, kind: EndKind, by: &str, reason: &str) -> Result<Assignment, Refusal> {
        self.live()?;
        Ok(self.ended(now, by, reason, kind))
    }

    fn ended(&self, now: Micros, by: &str, reason: &str, kind: EndKind) -> Assignment {
        let mut next = self.clone();
        next.state = kind.state();
        next.deadline_at = None;
        next.response_due_at = None;
        if let Some(claimed) = &mut next.claimed {
            claimed.neglected_at = None;
        }
        next.end = Some(End {
            at: now,
            by: by.to_owned(),
            reason: reason.to_owned(),
            kind,
        });
        next
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn assignment(seq: u64) -> Assignment {
        Assignment {
            id: AssignmentId([1; 16]),
            seq,
            decision: DecisionId([2; 16]),
            work: WorkId([3; 16]),
            recipient_pool: RecipientPoolId([4; 16]),
            recipient: RecipientId([5; 16]),
            state: AssignmentState::Open,
            units: 1,
            priority: 5,
            over_capacity: false,
            created_at: Micros(1_000_000),
            accepted_at: None,
            responded_at: None,
            timeout_us: 30_000_000,
            deadline_at: Some(Micros(31_000_000)),
            response_due_at: Some(Micros(11_000_000)),
            claimed: None,
            trail: vec![RecipientPoolId([4; 16])],
            lineage: Lineage::default(),
            end: None,
            value_micro: None,
            result: None,
        }
    }

    #[test]
    fn accept_does_not_stop_the_clock_and_stamps_the_first_response_once() {
        let accepted = assignment(1).accept(Micros(5_000_000)).unwrap();
        assert_eq!(accepted.deadline_at, Some(Micros(35_000_000)));
        assert_eq!(accepted.response_due_at, None);
        let again = accepted.accept(Micros(9_000_000)).unwrap();
        assert_eq!(again.accepted_at, Some(Micros(5_000_000)));
        assert_eq!(again.responded_at, Some(Micros(5_000_000)));
        assert_eq!(again.deadline_at, Some(Micros(39_000_000)));
        let expired = again
            .expire(Micros(39_000_000), EndKind::Deadline, "ductor", "")
            .unwrap();
        assert_eq!(
            (expired.state, expired.deadline_at),
            (AssignmentState::Expired, None)
        );
    }

    #[test]
    fn each_event_applies_where_it_may() {
        let open = assignment(1);
        let accepted = open.accept(Micros(2_000_000)).unwrap();
        let done = accepted
            .complete(Micros(3_000_000), "me", Some(900_000), None)
            .unwrap();
        assert_eq!(
            accepted.reject(Micros(3), "me", ""),
            Err(Refusal::AlreadyAccepted)
        );
        assert_eq!(
            open.reject(Micros(3), "me", "no").unwrap().state,
            AssignmentState::Returned
        );
        assert_eq!(
            accepted.give_back(Micros(3), "me", "").unwrap().state.word(),
            "returned"
        );
        assert_eq!(done.give_back(Micros(3), "me", ""), Err(Refusal::NoWarranty));
        let ended = Refusal::Ended(AssignmentState::Completed);
        assert_eq!(done.accept(Micros(4)), Err(ended));
        assert_eq!(done.complete(Micros(4), "me", None, None), Err(ended));
        assert_eq!(done.renew(Micros(4)), Err(ended));
        assert_eq!(
            done.expire(Micros(4), EndKind::Deadline, "ductor", ""),
            Err(ended)
        );
        assert_eq!(ended.code(), "assignment.ended");
    }

    #[test]
    fn a_lineage_knows_who_had_the_work_and_stays_small() {
        let mut lineage = Lineage::default();
        for number in 0..300_u64 {
            let mut one = assignment(number);
            one.recipient = RecipientId([0; 16]);
            one.recipient.0[..8].copy_from_slice(&(number % 200).to_be_bytes());
            lineage = lineage.after(&one);
        }
        assert_eq!(lineage.attempt, 300);
        assert_eq!(lineage.tried.len(), limits::ROUTING_TRIED_MAX.min(200));
        assert_eq!(lineage.parent, Some(DecisionId([2; 16])));
    }
}
