//! Work that waits in the queue of a recipient pool, and in which order it is tried again. Pure.

use serde::{Deserialize, Serialize};

use super::assignment::Lineage;
use crate::words::ids::{DecisionId, RecipientPoolId, WaitingId, WorkId};
use crate::words::time::Micros;

/// What ends the wait besides a recipient.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitKind {
    /// It came back and is routed anew at once: whatever that gives is its outcome.
    Again,
    /// Only its time to live.
    Queued,
    /// It goes to another recipient pool then.
    Catchall {
        /// When.
        due_at: Micros,
        /// Where to.
        to: RecipientPoolId,
    },
}

/// Work that waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Waiting {
    /// Its place.
    pub id: WaitingId,
    /// The work.
    pub work: WorkId,
    /// In whose queue.
    pub recipient_pool: RecipientPoolId,
    /// Of the work: 0 to 9, lower first.
    pub priority: u8,
    /// Since when: what waited of this work before counts in.
    pub enqueued_at: Micros,
    /// It is dropped then.
    pub expires_at: Micros,
    /// What else ends the wait.
    pub kind: WaitKind,
    /// The newest decision over it.
    pub decision: DecisionId,
    /// When it came to the recipient pool where it waits: relaxations count from there.
    pub hop_since: Micros,
    /// The recipient pools that the pass which queued it went through, the first one first.
    pub trail: Vec<RecipientPoolId>,
    /// Time alone may change the outcome then: a window opens, a trait is relaxed, a limit is over.
    pub wake_at: Option<Micros>,
    /// Its queue time is over then (SLA).
    pub sla_due_at: Option<Micros>,
    /// Reasons of the newest pass and how many recipients each has rejected.
    pub histogram: Vec<(String, u32)>,
    /// What later passes must know.
    pub lineage: Lineage,
    /// Grows with each stored change.
    pub record_version: u64,
}

/// How old work passes newer work of a better priority: one step for each `age_step_us` waited, 0 for never. Lower is first.
pub fn effective_priority(priority: u8, enqueued_at: Micros, now: Micros, age_step_us: u64) -> i64 {
    let steps = now.since(enqueued_at).checked_div(age_step_us).unwrap_or(0);
    i64::from(priority).saturating_sub_unsigned(steps)
}

/// One place of a queue: (priority, enqueued, id).
pub type Place = (u8, Micros, WaitingId);

/// Which lane's head is next: each lane has one priority and stands in the order of time, so that its head is its oldest.
pub fn next_lane(heads: &[Option<Place>], now: Micros, age_step_us: u64) -> Option<usize> {
    let of = |(priority, at, id): Place| (effective_priority(priority, at, now, age_step_us), at, id);
    heads
        .iter()
        .enumerate()
        .filter_map(|(lane, head)| head.map(|head| (of(head), lane)))
        .min()
        .map(|(_, lane)| lane)
}

/// True when nobody of the recipient pool could take any other work either, so that what stands behind need not be tried:
/// every candidate was rejected for a reason that no work can change.
pub fn is_hopeless(histogram: &[(String, u32)]) -> bool {
    const OF_THE_RECIPIENT: [&str; 8] = [
        "status.paused",
        "status.disabled",
        "state.offline",
        "state.paused",
        "state.busy",
        "capacity.concurrent",
        "capacity.daily",
        "schedule.closed",
    ];
    histogram
        .iter()
        .all(|(code, _)| OF_THE_RECIPIENT.contains(&code.as_str()))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn waiting() -> Waiting {
        Waiting {
            id: WaitingId([7; 16]),
            work: WorkId([3; 16]),
            recipient_pool: RecipientPoolId([4; 16]),
            priority: 5,
            enqueued_at: Micros(1_000_000),
            expires_at: Micros(3_601_000_000),
            kind: WaitKind::Queued,
            decision: DecisionId([2; 16]),
            hop_since: Micros(1_000_000),
            trail: vec![RecipientPoolId([4; 16])],
            wake_at: Some(Micros(46_000_000)),
            sla_due_at: None,
            histogram: vec![("state.offline".to_owned(), 3)],
            lineage: Lineage::default(),
            record_version: 0,
        }
    }

    fn place(priority: u8, at: i64) -> Place {
        (priority, Micros(at), WaitingId([priority; 16]))
    }

    #[test]
    fn without_ageing_the_best_priority_is_next_and_then_the_oldest() {
        let heads = [None, Some(place(1, 90)), Some(place(2, 10))];
        assert_eq!(next_lane(&heads, Micros(1_000), 0), Some(1));
        assert_eq!(next_lane(&[None, None], Micros(1), 0), None);
    }

    /// 36: against a steady stream of new work of a better priority, work waits at most its steps.
    #[test]
    fn aged_work_waits_at_most_its_steps_behind_a_steady_stream() {
        let step = 1_000;
        let old = place(7, 0);
        let mut first_won = None;
        for now in (0..20_000).step_by(100) {
            let fresh = place(2, now);
            if next_lane(&[Some(fresh), Some(old)], Micros(now), step) == Some(1) {
                first_won = Some(now);
                break;
            }
        }
        assert_eq!(
            first_won,
            Some(5_000),
            "five steps of priority, one for each 1,000"
        );
    }

    #[test]
    fn what_only_recipients_lack_is_hopeless_for_all_work() {
        let of = |codes: &[&str]| -> Vec<(String, u32)> {
            codes.iter().map(|code| ((*code).to_owned(), 1)).collect()
        };
        assert!(is_hopeless(&of(&[
            "state.offline",
            "capacity.concurrent",
            "schedule.closed"
        ])));
        assert!(!is_hopeless(&of(&["state.offline", "trait.mismatch"])));
        assert!(!is_hopeless(&of(&["tried.before"])));
        assert!(is_hopeless(&[]));
    }
}
