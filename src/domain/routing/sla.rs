//! The clock on waiting and answering: when each is due, and what a breach tells. Pure.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::objects::Sla;
use crate::words::ids::{DecisionId, RecipientPoolId, WorkId};
use crate::words::time::Micros;

/// Which of the two clocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum SlaKind {
    /// From enqueued to assigned or claimed.
    Queue,
    /// From assigned to the first response.
    Response,
}

impl SlaKind {
    /// The word of the wire.
    pub fn word(self) -> &'static str {
        match self {
            SlaKind::Queue => "queue",
            SlaKind::Response => "response",
        }
    }
}

/// A time that has passed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Breached {
    /// Which clock.
    pub kind: SlaKind,
    /// When it was due.
    pub due_at: Micros,
    /// When that was noticed: later than due after a stop.
    pub seen_at: Micros,
    /// The work.
    pub work: WorkId,
    /// Where it was.
    pub recipient_pool: RecipientPoolId,
    /// The decision that put it there.
    pub decision: DecisionId,
}

impl Breached {
    /// The event on the wire.
    pub fn document(&self) -> Value {
        json!({
            "kind": self.kind.word(),
            "due_at": self.due_at.to_string(),
            "seen_at": self.seen_at.to_string(),
            "work_id": self.work.to_string(),
            "pool_id": self.recipient_pool.to_string(),
            "decision_id": self.decision.to_string(),
        })
    }
}

/// When work that waits since `enqueued_at` breaches the queue time.
pub fn queue_due(sla: Option<&Sla>, enqueued_at: Micros) -> Option<Micros> {
    let limit = sla.map(|sla| sla.max_queue_us).filter(|limit| *limit > 0)?;
    Some(enqueued_at.plus(limit))
}

/// When work that was assigned at `assigned_at` breaches the response time.
pub fn response_due(sla: Option<&Sla>, assigned_at: Micros) -> Option<Micros> {
    let limit = sla.map(|sla| sla.max_response_us).filter(|limit| *limit > 0)?;
    Some(assigned_at.plus(limit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_runs_only_where_it_is_set() {
        let sla = |max_queue_us, max_response_us| Sla {
            max_queue_us,
            max_response_us,
            escalation: None,
            alert_webhook_url: None,
        };
        assert_eq!(queue_due(None, Micros(5)), None);
        assert_eq!(queue_due(Some(&sla(0, 7)), Micros(5)), None);
        assert_eq!(queue_due(Some(&sla(9, 0)), Micros(5)), Some(Micros(14)));
        assert_eq!(response_due(Some(&sla(9, 0)), Micros(5)), None);
        assert_eq!(response_due(Some(&sla(0, 7)), Micros(5)), Some(Micros(12)));
    }

    #[test]
    fn a_late_breach_has_both_times() {
        let breach = Breached {
            kind: SlaKind::Queue,
            due_at: Micros(1_000_000),
            seen_at: Micros(9_000_000),
            work: WorkId([3; 16]),
            recipient_pool: RecipientPoolId([4; 16]),
            decision: DecisionId([2; 16]),
        };
        let document = breach.document();
        assert_eq!(document["kind"], "queue");
        assert_eq!(document["due_at"], "1970-01-01T00:00:01.000000Z");
        assert_eq!(document["seen_at"], "1970-01-01T00:00:09.000000Z");
        assert_eq!(document["pool_id"], "04040404-0404-0404-0404-040404040404");
    }
}
