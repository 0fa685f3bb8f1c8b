//! A clock of an SLA has run out: an event on the feed, and where the recipient pool names an address, an effect that tells it.

use crate::domain::report::{Effect, EffectState, Facts, ReportKind, ReportTarget};
use crate::domain::routing::objects::Sla;
use crate::domain::routing::sla::Breached;
use crate::store::live_rows::AlertRow;
use crate::store::tables::ROUTING_ALERTS;
use crate::store::{StoreError, Tx, effects};
use crate::words::ids::{EffectId, TenantId};
use crate::words::names::JobName;

/// Tells of a breach. What follows from it is up to the caller.
pub(super) fn breached(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    breached: &Breached,
    sla: Option<&Sla>,
) -> Result<(), StoreError> {
    let document = breached.document().to_string();
    tx.tell("routing.sla_breached", breached.work, 0, Some(&document));
    let Some(url) = sla.and_then(|sla| sla.alert_webhook_url.as_ref()) else {
        return Ok(());
    };
    let recipient_pool = breached.recipient_pool.to_string();
    let created_at = tx.now().wall;
    let effect = Effect {
        seq: 0,
        id: EffectId::of_parts(&[
            "routing alert",
            &tenant.0.to_string(),
            breached.kind.word(),
            &breached.decision.to_string(),
            &breached.due_at.to_string(),
        ]),
        kind: ReportKind::Alert,
        target: ReportTarget::Webhook,
        job: JobName::new(&recipient_pool).expect("a UUID is a name"),
        run: None,
        created_at,
        facts: Facts {
            reason: Some(format!("{} time of work {}", breached.kind.word(), breached.work)),
            ..Facts::default()
        },
        state: EffectState::Waiting {
            due_at: created_at,
            tries: 0,
            last_error: None,
        },
    };
    let effect = effects::insert(tx, effect)?;
    let row = AlertRow {
        tenant,
        breached: *breached,
        url: url.clone(),
    };
    tx.put(&ROUTING_ALERTS, &(effects::TENANT, effect.seq), &row)?;
    if let EffectState::Dead { reason, .. } = &effect.state {
        tx.tell("report.dead", &effect.job, 0, Some(reason));
    }
    Ok(())
}
