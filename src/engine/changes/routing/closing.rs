//! How work ends that nobody took in time: it is dropped, or goes where its recipient pool sends what it cannot place.

use std::sync::Arc;

use super::write;
use super::{steps, waiting};
use crate::domain::routing::assignment::Lineage;
use crate::domain::routing::decision::{Chosen, Decision, Digests, Outcome, Randomness};
use crate::domain::routing::explanation::Explanation;
use crate::domain::routing::objects::{Explain, FallbackKind, RecipientPool};
use crate::domain::routing::offer::Offer;
use crate::domain::routing::pass::Cause;
use crate::domain::routing::reason::Note;
use crate::domain::routing::waiting::{WaitKind, Waiting};
use crate::domain::routing::{duration, sla};
use crate::store::live_rows::DecisionRow;
use crate::store::{StoreError, Tx, decisions, routing_objects, waiting_work};
use crate::words::ids::{DecisionId, TenantId, WorkId};
use crate::words::payload::JsonText;
use crate::words::time::Micros;

/// What ends without a pass.
struct Ended<'e> {
    work: WorkId,
    recipient_pool: Option<RecipientPool>,
    since: Micros,
    ttl_us: u64,
    lineage: &'e Lineage,
    before: DecisionId,
}

/// Work has waited as long as it may: it is dropped, and a decision says so.
pub(super) fn expired(tx: &mut Tx<'_>, tenant: TenantId, item: &Waiting) -> Result<(), StoreError> {
    let recipient_pool = routing_objects::recipient_pool(tx, tenant, item.recipient_pool)?;
    drop_it(
        tx,
        tenant,
        &Ended {
            work: item.work,
            recipient_pool,
            since: item.enqueued_at,
            ttl_us: item.expires_at.since(item.enqueued_at),
            lineage: &item.lineage,
            before: item.decision,
        },
    )
}

/// Nobody has claimed an offer in its time: the fallback of its recipient pool.
pub(super) fn offer_over(tx: &mut Tx<'_>, tenant: TenantId, offer: &Offer) -> Result<(), StoreError> {
    let now = Micros::from(tx.now().wall);
    let recipient_pool = routing_objects::recipient_pool(tx, tenant, offer.recipient_pool)?;
    let config = recipient_pool.as_ref().map(|found| &found.config);
    let target = config.and_then(|config| match config.fallback {
        FallbackKind::Overflow => config.overflow.map(|to| (to, 0)),
        FallbackKind::Catchall => config.catchall.map(|to| (to, config.catchall_delay_us)),
        FallbackKind::Queue | FallbackKind::Drop => None,
    });
    let waits_on = config.filter(|config| {
        config.fallback == FallbackKind::Queue && now < offer.offered_at.plus(config.queue_ttl_us)
    });
    if let Some((to, delay_us)) = target {
        let lineage = Lineage {
            entry: Some(to),
            cause: Cause::Catchall,
            trail: offer.trail.clone(),
            ..offer.lineage.clone()
        };
        let mut item = waiting::of_offer(offer, lineage, now);
        item.recipient_pool = offer.recipient_pool;
        if delay_us > 0 {
            item.kind = WaitKind::Catchall {
                due_at: now.plus(delay_us),
                to,
            };
        }
        return waiting::anew(tx, tenant, item, "its offer is over");
    }
    if let Some(config) = waits_on {
        let mut item = waiting::of_offer(offer, offer.lineage.clone(), now);
        item.kind = WaitKind::Queued;
        item.recipient_pool = offer.recipient_pool;
        item.expires_at = offer.offered_at.plus(config.queue_ttl_us);
        item.sla_due_at = sla::queue_due(config.sla.as_ref(), now);
        waiting_work::enqueue(tx, tenant, &item)?;
        tx.tell("routing.waiting", item.id, 0, Some("its offer is over"));
        return Ok(());
    }
    drop_it(
        tx,
        tenant,
        &Ended {
            work: offer.work,
            recipient_pool,
            since: offer.offered_at,
            ttl_us: offer.ends_at.since(offer.offered_at),
            lineage: &offer.lineage,
            before: offer.decision,
        },
    )
}

fn drop_it(tx: &mut Tx<'_>, tenant: TenantId, ended: &Ended<'_>) -> Result<(), StoreError> {
    let now = Micros::from(tx.now().wall);
    let note = Note::QueueExpired {
        waited_us: now.since(ended.since),
        ttl_us: ended.ttl_us,
    };
    let chosen = ended.recipient_pool.as_ref().map(|found| Chosen {
        id: found.id,
        name: found.name.clone(),
        record_version: found.record_version,
    });
    let place = chosen
        .as_ref()
        .map_or("a pool that is gone", |chosen| &chosen.name);
    let decision = Decision {
        id: DecisionId::fresh(),
        work: ended.work,
        at: now,
        committed: true,
        outcome: Outcome::Dropped,
        summary: format!(
            "Dropped: it waited {} in {place}, and nobody could take it.",
            duration::print(now.since(ended.since))
        ),
        recipient_pool: chosen,
        first_pool: None,
        winners: Vec::new(),
        explanation: Explanation::default(),
        notes: vec![note],
        randomness: Randomness {
            used: false,
            seed: 0,
            propensity: None,
        },
        snapshot: Arc::default(),
        digests: Digests::default(),
        existing: None,
        mode_diff: None,
        cost_micros: 0,
        duration_micros: 0,
    };
    let lineage = Lineage {
        parent: Some(ended.before),
        ..ended.lineage.clone()
    };
    let row = DecisionRow {
        at: now,
        work: ended.work,
        recipient_pool: decision.recipient_pool.as_ref().map(|chosen| chosen.id),
        outcome: decision.outcome.word().to_owned(),
        winners: Vec::new(),
        reasons: decision.notes.iter().map(|note| note.code().to_owned()).collect(),
        item: None,
        snapshot: None,
        text: JsonText::of(&write::document(&decision, Explain::First, &lineage, None))
            .expect("a decision is plain data"),
    };
    decisions::keep(tx, tenant, decision.id, &row)?;
    tx.tell("routing.decision", decision.id, 0, Some(decision.outcome.word()));
    steps::over(tx, tenant, ended.work)
}
