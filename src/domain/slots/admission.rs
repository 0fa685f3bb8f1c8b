//! Admission: who may enter a slot pool's queue (E1 to E9), and what becomes of its head (C1 to C11).

use serde::{Deserialize, Serialize};

use crate::words::time::Millis;

/// A slot pool's own row. Used slots are never stored: they are the sum of the running rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotPoolState {
    /// The number that admission uses; differs from the configured one during a drain.
    pub stored_slots: u32,
    /// No claims while it holds.
    pub paused: Option<Pause>,
    /// The number that a drain leads to.
    pub draining_to: Option<u32>,
}

/// A pause of a slot pool or of a job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pause {
    /// When it ends by itself; `None` = open end.
    pub until: Option<Millis>,
    /// Who.
    pub by: String,
    /// Why.
    pub note: String,
}

impl Pause {
    /// True while it holds.
    pub fn holds_at(&self, now: Millis) -> bool {
        self.until.is_none_or(|until| now < until)
    }
}

/// Why a slot pool refuses a request, in the product's words.
#[derive(Debug, Clone, PartialEq, Eq, Hash, thiserror::Error)]
pub enum SlotRefusal {
    /// E1.
    #[error("unknown pool '{0}'")]
    Unknown(String),
    /// E4.
    #[error("pool state requires reliable exclusive locks")]
    Locks,
    /// E7.
    #[error("pool is draining before a capacity change")]
    Draining,
    /// E8.
    #[error("pool queue is full")]
    Full,
    /// The daemon that was asked has other numbers for the slot pool than those that were loaded last.
    #[error("pool {slot_pool}: configuration differs from node {node}")]
    Differs {
        /// The slot pool.
        slot_pool: String,
        /// Whose load it was.
        node: String,
    },
    /// The daemon that was asked would run something else than what was loaded last: its entry would be cancelled at once.
    #[error("job '{job}': configuration differs from node {node}")]
    JobDiffers {
        /// The job.
        job: String,
        /// Whose load it was.
        node: String,
    },
}

impl SlotRefusal {
    /// The skip reason of a fire.
    pub fn skip_word(&self) -> &'static str {
        match self {
            SlotRefusal::Unknown(_) => "pool_unknown",
            SlotRefusal::Locks => "pool_locks",
            SlotRefusal::Draining => "pool_draining",
            SlotRefusal::Full => "pool_full",
            SlotRefusal::Differs { .. } | SlotRefusal::JobDiffers { .. } => "configuration_differs",
        }
    }
}

/// What is known when something wants to enter.
#[derive(Debug, Clone, Copy)]
pub struct EnqueueView {
    /// The lock self-test passed.
    pub locks_trusted: bool,
    /// The number in force.
    pub stored_slots: u32,
    /// The number configured.
    pub configured_slots: u32,
    /// Something waits or runs.
    pub busy: bool,
    /// Entries that wait.
    pub waiting: u64,
    /// Closed task entries that nobody has looked at.
    pub unseen: u64,
    /// The longest queue.
    pub max_queued: u32,
}

/// E4 to E9, without E6, which the caller has answered from the stored entry. `Ok` says which number is in force.
pub fn enqueue(view: &EnqueueView) -> Result<u32, SlotRefusal> {
    if !view.locks_trusted {
        return Err(SlotRefusal::Locks);
    }
    if view.stored_slots != view.configured_slots && view.busy {
        return Err(SlotRefusal::Draining);
    }
    if view.waiting + view.unseen >= u64::from(view.max_queued) {
        return Err(SlotRefusal::Full);
    }
    Ok(view.configured_slots)
}

/// What to do when the stored and the configured number differ (section 8.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CapacityStep {
    /// They agree, or the drain goes on and is already noted.
    Keep,
    /// Note the drain's goal.
    Drain,
    /// Take the configured number now.
    Adopt,
    /// They agree again: forget the drain.
    Forget,
}

/// The step from `state` towards `configured`.
pub fn capacity_step(
    state: &SlotPoolState,
    configured: u32,
    busy: bool,
    raise_immediately: bool,
) -> CapacityStep {
    if state.stored_slots == configured {
        return if state.draining_to.is_some() {
            CapacityStep::Forget
        } else {
            CapacityStep::Keep
        };
    }
    if !busy || (raise_immediately && configured > state.stored_slots) {
        return CapacityStep::Adopt;
    }
    if state.draining_to == Some(configured) {
        CapacityStep::Keep
    } else {
        CapacityStep::Drain
    }
}

/// What is known about the head of a queue.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "each is one row of the claim table")]
pub struct HeadView {
    /// C2.
    pub pool_paused: bool,
    /// C4.
    pub overdue: bool,
    /// C5: the published definition is the entry's, enabled, and still in this slot pool.
    pub definition_current: bool,
    /// C6: the entry is no retry, or nothing has settled it.
    pub retry_current: bool,
    /// C7: bound to nobody or to this daemon.
    pub node_fits: bool,
    /// C7: this daemon's own definition is the published one.
    pub own_definition_published: bool,
    /// C8: the job is paused and this is no manual start.
    pub job_paused: bool,
    /// C9: the policy is not Allow and another run of the job is live.
    pub live_instance: bool,
    /// C10.
    pub slots: u32,
    /// C10: stored slots less used ones.
    pub free: u32,
}

/// What becomes of the head.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HeadVerdict {
    /// C11.
    Claim,
    /// T3, then look at the next.
    Expire,
    /// T5, then look at the next.
    Withdraw,
    /// T6, then look at the next.
    Supersede,
    /// It waits, and so does everything behind it.
    Wait(BlockedBy),
}

/// Why a head waits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BlockedBy {
    /// Too few free slots.
    Slots,
    /// Bound to another daemon.
    Node,
    /// Its job is paused.
    JobPaused,
    /// The slot pool is paused.
    PoolPaused,
    /// An earlier instance is live.
    Forbid,
    /// This daemon's configuration is not the published one.
    Drift,
}

impl BlockedBy {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            BlockedBy::Slots => "slots",
            BlockedBy::Node => "node",
            BlockedBy::JobPaused => "job_paused",
            BlockedBy::PoolPaused => "pool_paused",
            BlockedBy::Forbid => "forbid",
            BlockedBy::Drift => "drift",
        }
    }

    /// The sentence that people read.
    pub fn sentence(self, head: &HeadView) -> String {
        match self {
            BlockedBy::Slots => format!("Needs {} slot(s); {} available", head.slots, head.free),
            BlockedBy::Node => "Waiting for its node".to_owned(),
            BlockedBy::JobPaused => "Job is paused".to_owned(),
            BlockedBy::PoolPaused => "Pool is paused".to_owned(),
            BlockedBy::Forbid => "waiting for concurrency admission".to_owned(),
            BlockedBy::Drift => "Configuration of this node differs from the published one".to_owned(),
        }
    }
}

/// What an entry behind the head waits for.
pub const BEHIND: &str = "Waiting behind higher-priority or earlier work";
/// What a head waits for when nothing blocks it.
pub const ANY_MOMENT: &str = "Waiting for admission";

/// C2 to C10, in this order.
pub fn head(view: &HeadView) -> HeadVerdict {
    if view.pool_paused {
        return HeadVerdict::Wait(BlockedBy::PoolPaused);
    }
    if view.overdue {
        return HeadVerdict::Expire;
    }
    if !view.definition_current {
        return HeadVerdict::Withdraw;
    }
    if !view.retry_current {
        return HeadVerdict::Supersede;
    }
    if !view.node_fits {
        return HeadVerdict::Wait(BlockedBy::Node);
    }
    if !view.own_definition_published {
        return HeadVerdict::Wait(BlockedBy::Drift);
    }
    if view.job_paused {
        return HeadVerdict::Wait(BlockedBy::JobPaused);
    }
    if view.live_instance {
        return HeadVerdict::Wait(BlockedBy::Forbid);
    }
    if view.slots > view.free {
        return HeadVerdict::Wait(BlockedBy::Slots);
    }
    HeadVerdict::Claim
}

#[cfg(test)]
mod tests {
    use super::*;

    const ENTER: EnqueueView = EnqueueView {
        locks_trusted: true,
        stored_slots: 4,
        configured_slots: 4,
        busy: true,
        waiting: 0,
        unseen: 0,
        max_queued: 2,
    };

    #[test]
    fn enqueue_answers_in_the_order_of_its_table() {
        assert_eq!(enqueue(&ENTER), Ok(4));
        assert_eq!(enqueue(&EnqueueView { waiting: 1, ..ENTER }), Ok(4));
        assert_eq!(
            enqueue(&EnqueueView { waiting: 2, ..ENTER }),
            Err(SlotRefusal::Full)
        );
        assert_eq!(
            enqueue(&EnqueueView {
                waiting: 1,
                unseen: 1,
                ..ENTER
            }),
            Err(SlotRefusal::Full)
        );
        assert_eq!(
            enqueue(&EnqueueView {
                stored_slots: 3,
                waiting: 9,
                ..ENTER
            }),
            Err(SlotRefusal::Draining)
        );
        assert_eq!(
            enqueue(&EnqueueView {
                stored_slots: 3,
                busy: false,
                ..ENTER
            }),
            Ok(4)
        );
        assert_eq!(
            enqueue(&EnqueueView {
                locks_trusted: false,
                stored_slots: 3,
                ..ENTER
            }),
            Err(SlotRefusal::Locks)
        );
    }

    #[test]
    fn capacity_moves_when_nothing_is_left_or_at_once_for_a_raise() {
        let state = |stored, to| SlotPoolState {
            stored_slots: stored,
            paused: None,
            draining_to: to,
        };
        assert_eq!(capacity_step(&state(4, None), 4, true, false), CapacityStep::Keep);
        assert_eq!(
            capacity_step(&state(4, Some(2)), 4, true, false),
            CapacityStep::Forget
        );
        assert_eq!(capacity_step(&state(4, None), 2, true, true), CapacityStep::Drain);
        assert_eq!(
            capacity_step(&state(4, Some(2)), 2, true, true),
            CapacityStep::Keep
        );
        assert_eq!(
            capacity_step(&state(4, Some(2)), 2, false, false),
            CapacityStep::Adopt
        );
        assert_eq!(
            capacity_step(&state(3, None), 4, true, false),
            CapacityStep::Drain
        );
        assert_eq!(capacity_step(&state(3, None), 4, true, true), CapacityStep::Adopt);
    }

    #[test]
    fn the_head_is_judged_in_the_order_of_its_table() {
        let good = HeadView {
            pool_paused: false,
            overdue: false,
            definition_current: true,
            retry_current: true,
            node_fits: true,
            own_definition_published: true,
            job_paused: false,
            live_instance: false,
            slots: 2,
            free: 2,
        };
        let check = |view: HeadView, verdict: HeadVerdict| assert_eq!(head(&view), verdict, "{view:?}");
        check(good, HeadVerdict::Claim);
        let mut worse = HeadView { free: 1, ..good };
        check(worse, HeadVerdict::Wait(BlockedBy::Slots));
        worse.live_instance = true;
        check(worse, HeadVerdict::Wait(BlockedBy::Forbid));
        worse.job_paused = true;
        check(worse, HeadVerdict::Wait(BlockedBy::JobPaused));
        worse.own_definition_published = false;
        check(worse, HeadVerdict::Wait(BlockedBy::Drift));
        worse.node_fits = false;
        check(worse, HeadVerdict::Wait(BlockedBy::Node));
        worse.retry_current = false;
        check(worse, HeadVerdict::Supersede);
        worse.definition_current = false;
        check(worse, HeadVerdict::Withdraw);
        worse.overdue = true;
        check(worse, HeadVerdict::Expire);
        worse.pool_paused = true;
        check(worse, HeadVerdict::Wait(BlockedBy::PoolPaused));
        assert_eq!(
            BlockedBy::Slots.sentence(&HeadView { free: 1, ..good }),
            "Needs 2 slot(s); 1 available"
        );
    }
}
