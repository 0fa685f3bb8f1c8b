//! A decision as it will be written: texts, digests and ids, made before the writer's turn, so that beside others only rows are
//! written in it.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::route::Wish;
use super::write::{config_of, document, entered};
use crate::domain::routing::decision::Decision;
use crate::domain::routing::explanation::WHOLE_MAX;
use crate::domain::routing::objects::Explain;
use crate::domain::routing::offer::{Offer, OfferState};
use crate::domain::routing::pass::{Ends, Offered, Passed, Waits};
use crate::domain::routing::reason::{Note, Reason};
use crate::domain::routing::sla;
use crate::domain::routing::snapshot::{self, Declared};
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::store::decisions::Texts;
use crate::store::live_rows::{DecisionRow, SourceRow};
use crate::words::ids::{AssignmentId, ClaimQueueId, WaitingId};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// What a decision leaves behind, as far as it is known before it is written.
#[derive(Debug)]
pub(super) struct Draft {
    /// With the ids of its assignments.
    pub(super) decision: Arc<Decision>,
    /// Work that is not assigned yet.
    pub(super) left: Option<Left>,
    /// The work itself.
    pub(super) work: JsonText,
    /// Without its text and the digest of its source.
    pub(super) row: DecisionRow,
    /// The declared half of what it was made from.
    pub(super) declared: Arc<Declared>,
}

/// Work that somebody gets later.
#[derive(Debug)]
pub(super) enum Left {
    Waits(Box<Waiting>),
    Offered(Box<Offer>),
}

impl Draft {
    /// Draws a decision up; its long texts come later. `declared` is the declared half of what was read.
    pub(super) fn of(wish: &Wish, passed: &Passed, declared: Arc<Declared>) -> Draft {
        let mut decision = passed.decision.clone();
        decision.committed = true;
        decision.snapshot = Arc::default();
        let left = match &passed.ends {
            Ends::Assigned(_) => {
                for winner in &mut decision.winners {
                    winner.assignment = Some(AssignmentId::fresh());
                }
                None
            }
            Ends::Waits(waits) => Some(Left::Waits(Box::new(waiting(wish, passed, waits)))),
            Ends::Offered(offered) => Some(Left::Offered(Box::new(offer(wish, passed, offered)))),
            Ends::Over => None,
        };
        let item = left.as_ref().map(|left| match left {
            Left::Waits(item) => item.id,
            Left::Offered(offer) => offer.id,
        });
        Draft {
            row: row(&decision, item),
            work: JsonText::of(&wish.request.work).expect("work is plain data"),
            decision: Arc::new(decision),
            left,
            declared,
        }
    }

    /// About how many bytes its long texts have: the decision, for each candidate that is told of, and its snapshot.
    pub(super) fn about(&self, passed: &Passed) -> (usize, usize) {
        let candidates = self.decision.explanation.candidates.len().min(WHOLE_MAX);
        (2_000 + 300 * candidates, snapshot::about(&passed.read))
    }

    /// The long texts: the decision as it is kept, and what it was made from, whose digest the decision says from now on.
    pub(super) fn texts(&self, wish: &Wish, passed: &Passed) -> Texts {
        let (decision, declared) = (&self.decision, Arc::clone(&self.declared));
        let taken = snapshot::take(
            &wish.request,
            decision.at,
            decision.id,
            &passed.read,
            Some(declared),
        );
        let digest = decision.snapshot.get_or_init(|| taken.digest);
        let (about, _) = self.about(passed);
        let document = document(decision, Explain::First, &wish.lineage, self.row.item);
        Texts {
            row: DecisionRow {
                snapshot: Some(digest.clone()),
                text: JsonText::sized(&document, about).expect("a decision is plain data"),
                ..self.row.clone()
            },
            source: SourceRow {
                text: taken.text,
                declared: taken.declared.digest.clone(),
            },
        }
    }
}

fn row(decision: &Decision, item: Option<WaitingId>) -> DecisionRow {
    let reasons = decision.explanation.histogram().into_keys();
    let notes = decision.notes.iter().map(Note::code);
    let codes: BTreeSet<&str> = reasons.chain(notes).collect();
    DecisionRow {
        at: decision.at,
        work: decision.work,
        recipient_pool: decision.recipient_pool.as_ref().map(|chosen| chosen.id),
        outcome: decision.outcome.word().to_owned(),
        winners: decision.winners.iter().map(|winner| winner.recipient).collect(),
        reasons: codes.into_iter().map(str::to_owned).collect(),
        item,
        snapshot: None,
        text: JsonText::default(),
    }
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

/// The offer to those who may claim it.
fn offer(wish: &Wish, passed: &Passed, offered: &Offered) -> Offer {
    let at = passed.decision.at;
    let id = offered.recipient_pool;
    let sla = config_of(passed, id).and_then(|config| config.sla.as_ref());
    let since = wish.request.waiting_since.unwrap_or(at);
    Offer {
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
    }
}
