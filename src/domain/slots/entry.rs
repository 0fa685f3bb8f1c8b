//! A slot entry: one request of one step for slots, and its state machine.

use serde::{Deserialize, Serialize};

use super::claim::Claim;
use crate::words::ids::{EntryId, RunId};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::time::Millis;

/// One request for slots.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlotEntry {
    /// Its place in the table: ascending, never used again.
    pub seq: u64,
    /// Its id on the wire.
    pub id: EntryId,
    /// Where it waits.
    pub slot_pool: SlotPoolName,
    /// The job it belongs to.
    pub job: JobName,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The attempt number it will become.
    pub attempt: u32,
    /// What asked for it.
    pub kind: EntryKind,
    /// How many slots it takes.
    pub slots: u32,
    /// Higher goes first.
    pub priority: i32,
    /// When it entered; orders the queue.
    pub queued_at: Millis,
    /// The end of its waiting, and of every waiting again.
    pub expires_at: Millis,
    /// The only daemon that may claim it; `None` = any.
    pub node: Option<NodeName>,
    /// Of the definition when it entered.
    pub digest: String,
    /// How often its claim ended with a dead daemon.
    pub readmitted: u32,
    /// Where it stands.
    pub state: EntryState,
}

/// What asked for slots.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EntryKind {
    /// A fire of a schedule.
    Scheduled,
    /// A start by hand.
    Manual,
    /// A further attempt after a failed one.
    Retry,
    /// A due moment that nobody could fire in time.
    #[serde(rename = "catchup")]
    CatchUp,
    /// A boot of the machine.
    Boot,
    /// A step of a graph.
    Task,
    /// A poke of a sensor.
    Poke,
}

impl EntryKind {
    /// True for an entry of a step of a graph: its run decides what its end means.
    pub fn is_of_graph(self) -> bool {
        matches!(self, EntryKind::Task | EntryKind::Poke)
    }
}

impl EntryKind {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            EntryKind::Scheduled => "scheduled",
            EntryKind::Manual => "manual",
            EntryKind::Retry => "retry",
            EntryKind::CatchUp => "catchup",
            EntryKind::Boot => "boot",
            EntryKind::Task => "task",
            EntryKind::Poke => "poke",
        }
    }
}

/// Where an entry stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EntryState {
    /// It waits. Exits: running, expired, cancelled.
    Queued {
        /// Why it waits *again*; `None` the first time.
        reason: Option<String>,
    },
    /// A daemon holds it. Exits: finished, cancelled; queued when its attempt was lost.
    Running {
        /// By which right.
        claim: Claim,
    },
    /// Its attempt has ended. Exit: removal.
    Finished {
        /// When.
        at: Millis,
        /// `None` when the attempt decided.
        reason: Option<String>,
        /// The claim, as history.
        claim: Claim,
    },
    /// It waited too long. Exit: removal.
    Expired {
        /// When.
        at: Millis,
        /// Why.
        reason: String,
    },
    /// Somebody or something ended it. Exit: removal.
    Cancelled {
        /// When.
        at: Millis,
        /// Why.
        reason: String,
    },
}

/// The reasons that are stored and shown.
pub mod reason {
    /// T3.
    pub const QUEUE_TIMEOUT: &str = "queue timeout";
    /// T4.
    pub const BY_OPERATOR: &str = "cancelled by operator";
    /// T5.
    pub const DEFINITION_GONE: &str = "job removed, disabled, or configuration changed";
    /// T6, by a newer fire.
    pub const RETRY_SUPERSEDED: &str = "retry superseded";
    /// T6, by a success.
    pub const RETRY_SUCCEEDED: &str = "retry succeeded";
    /// T6, by an operator.
    pub const RETRY_CANCELLED: &str = "retry cancelled";
    /// T7.
    pub const NOT_WAITING: &str = "task is no longer waiting";
    /// A retry whose start would be too late.
    pub const DEADLINE_PASSED: &str = "starting deadline passed";
    /// T9.
    pub const CONCURRENCY: &str = "waiting for concurrency admission";
    /// T10, before the command began.
    pub const LAUNCH_INTERRUPTED: &str = "launch interrupted";
    /// T10, after the drain time.
    pub const DAEMON_STOPPED: &str = "daemon stopped";
    /// T11.
    pub const LAUNCH_FAILED: &str = "launch failed";
    /// T12.
    pub const LEASE_LAPSED: &str = "lease lapsed";
    /// Why the attempt of a claim ended that could not be kept.
    pub const LEASE_LOST: &str = "pool lease lost";
    /// T13.
    pub const DAEMON_DIED: &str = "daemon died";
    /// A remote worker was not heard of in time.
    pub const WORKER_SILENT: &str = "worker silent";
    /// T14.
    pub const CRASH_LIMIT: &str = "crash limit reached";
    /// T15.
    pub const RUN_CANCELLED: &str = "run cancelled";
}

/// What happens to an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryEvent {
    /// T2.
    Claim(Claim),
    /// T3.
    Expire,
    /// T4 to T7: it ends while it waits.
    Withdraw(&'static str),
    /// T8, T11, T15: its attempt has ended.
    Finish(Option<&'static str>),
    /// T9, T10, T12, T13: it waits again at its old place.
    PutBack {
        /// Why.
        why: &'static str,
        /// Its daemon has died.
        died: bool,
    },
    /// T14.
    Poison,
}

/// A pair of state and event that the state machine does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("a slot entry that is {state} cannot take {event}")]
pub struct EntryRefusal {
    /// The state's word.
    pub state: &'static str,
    /// The event.
    pub event: String,
}

impl EntryState {
    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            EntryState::Queued { .. } => "queued",
            EntryState::Running { .. } => "running",
            EntryState::Finished { .. } => "finished",
            EntryState::Expired { .. } => "expired",
            EntryState::Cancelled { .. } => "cancelled",
        }
    }

    /// When it closed.
    pub fn closed_at(&self) -> Option<Millis> {
        match self {
            EntryState::Queued { .. } | EntryState::Running { .. } => None,
            EntryState::Finished { at, .. }
            | EntryState::Expired { at, .. }
            | EntryState::Cancelled { at, .. } => Some(*at),
        }
    }

    /// Why it closed, or why it waits again.
    pub fn reason(&self) -> Option<&str> {
        match self {
            EntryState::Running { .. } => None,
            EntryState::Queued { reason } | EntryState::Finished { reason, .. } => reason.as_deref(),
            EntryState::Expired { reason, .. } | EntryState::Cancelled { reason, .. } => Some(reason),
        }
    }

    /// The claim that holds or held it.
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            EntryState::Running { claim } | EntryState::Finished { claim, .. } => Some(claim),
            EntryState::Queued { .. } | EntryState::Expired { .. } | EntryState::Cancelled { .. } => None,
        }
    }
}

impl SlotEntry {
    /// True for an entry of a graph's step that was closed before it began, and not by its coordinator: the coordinator has
    /// to look at it, and until then it counts as if it waited.
    pub fn awaits_sight(&self) -> bool {
        let closed = match &self.state {
            EntryState::Expired { .. } => true,
            EntryState::Cancelled { reason, .. } => {
                ![reason::NOT_WAITING, reason::CRASH_LIMIT].contains(&reason.as_str())
            }
            EntryState::Queued { .. } | EntryState::Running { .. } | EntryState::Finished { .. } => false,
        };
        closed && self.kind.is_of_graph()
    }

    /// True when `fence` holds it now.
    pub fn is_held_by(&self, fence: u64) -> bool {
        matches!(&self.state, EntryState::Running { claim } if claim.fence == fence)
    }

    /// The entry after `event`, or the refusal of a pair that must not happen.
    pub fn next(&self, event: &EntryEvent, now: Millis) -> Result<SlotEntry, EntryRefusal> {
        let refuse = || EntryRefusal {
            state: self.state.word(),
            event: format!("{event:?}"),
        };
        let mut readmitted = self.readmitted;
        let state = match &self.state {
            EntryState::Queued { .. } => match event {
                EntryEvent::Claim(claim) => EntryState::Running { claim: claim.clone() },
                EntryEvent::Expire => EntryState::Expired {
                    at: now,
                    reason: reason::QUEUE_TIMEOUT.to_owned(),
                },
                EntryEvent::Withdraw(why) => EntryState::Cancelled {
                    at: now,
                    reason: (*why).to_owned(),
                },
                EntryEvent::Finish(_) | EntryEvent::PutBack { .. } | EntryEvent::Poison => {
                    return Err(refuse());
                }
            },
            EntryState::Running { claim } => match event {
                EntryEvent::Finish(why) => EntryState::Finished {
                    at: now,
                    reason: why.map(str::to_owned),
                    claim: claim.clone(),
                },
                EntryEvent::PutBack { why, died } => {
                    readmitted += u32::from(*died);
                    EntryState::Queued {
                        reason: Some((*why).to_owned()),
                    }
                }
                EntryEvent::Poison => EntryState::Cancelled {
                    at: now,
                    reason: reason::CRASH_LIMIT.to_owned(),
                },
                EntryEvent::Claim(_) | EntryEvent::Expire | EntryEvent::Withdraw(_) => return Err(refuse()),
            },
            EntryState::Finished { .. } | EntryState::Expired { .. } | EntryState::Cancelled { .. } => {
                return Err(refuse());
            }
        };
        Ok(SlotEntry {
            readmitted,
            state,
            ..self.clone()
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::domain::slots::claim::{ClockId, Place, ProcessRef};

    pub(crate) fn claim(fence: u64) -> Claim {
        Claim {
            node: NodeName::new("n-1").unwrap(),
            fence,
            place: Place {
                host: "h".to_owned(),
                boot_id: "b".to_owned(),
                pid_namespace: 1,
                clock: ClockId("b:1".to_owned()),
            },
            process: Some(ProcessRef {
                pid: 10,
                start_ticks: 5,
                group: 10,
            }),
            claimed_at: Millis(5),
        }
    }

    pub(crate) fn entry(seq: u64) -> SlotEntry {
        SlotEntry {
            seq,
            id: EntryId([seq.to_le_bytes()[0]; 16]),
            slot_pool: SlotPoolName::new("p").unwrap(),
            job: JobName::new("j").unwrap(),
            run: RunId([seq.to_le_bytes()[0]; 16]),
            step: StepRef::main(),
            attempt: 1,
            kind: EntryKind::Manual,
            slots: 1,
            priority: 0,
            queued_at: Millis(1),
            expires_at: Millis(100),
            node: None,
            digest: "d".to_owned(),
            readmitted: 0,
            state: EntryState::Queued { reason: None },
        }
    }

    #[test]
    fn every_pair_of_state_and_event_is_decided() {
        let queued = entry(1);
        let running = queued.next(&EntryEvent::Claim(claim(3)), Millis(5)).unwrap();
        let finished = running.next(&EntryEvent::Finish(None), Millis(6)).unwrap();
        let expired = queued.next(&EntryEvent::Expire, Millis(6)).unwrap();
        let cancelled = queued
            .next(&EntryEvent::Withdraw(reason::BY_OPERATOR), Millis(6))
            .unwrap();
        let events = [
            EntryEvent::Claim(claim(4)),
            EntryEvent::Expire,
            EntryEvent::Withdraw(reason::BY_OPERATOR),
            EntryEvent::Finish(None),
            EntryEvent::PutBack {
                why: reason::DAEMON_DIED,
                died: true,
            },
            EntryEvent::Poison,
        ];
        let check = |from: &SlotEntry, words: [&str; 6]| {
            for (event, word) in events.iter().zip(words) {
                let next = from.next(event, Millis(7));
                assert_eq!(
                    next.as_ref().map_or("-", |entry| entry.state.word()),
                    word,
                    "{event:?}"
                );
            }
        };
        check(&queued, ["running", "expired", "cancelled", "-", "-", "-"]);
        check(&running, ["-", "-", "-", "finished", "queued", "cancelled"]);
        for closed in [&finished, &expired, &cancelled] {
            check(closed, ["-"; 6]);
        }
    }

    #[test]
    fn only_a_decision_of_others_about_a_task_awaits_sight() {
        let task = SlotEntry {
            kind: EntryKind::Task,
            ..entry(1)
        };
        let after = |entry: &SlotEntry, event| entry.next(&event, Millis(6)).unwrap().awaits_sight();
        let by_operator = || EntryEvent::Withdraw(reason::BY_OPERATOR);
        assert!(after(&task, EntryEvent::Expire) && after(&task, by_operator()));
        assert!(!after(&task, EntryEvent::Withdraw(reason::NOT_WAITING)));
        assert!(!after(&task, EntryEvent::Claim(claim(3))) && !task.awaits_sight());
        let running = task.next(&EntryEvent::Claim(claim(3)), Millis(5)).unwrap();
        assert!(!after(&running, EntryEvent::Finish(None)) && !after(&running, EntryEvent::Poison));
        assert!(
            !after(&entry(1), EntryEvent::Expire),
            "a job's run ends with its entry"
        );
    }

    #[test]
    fn an_entry_put_back_keeps_its_place_and_counts_deaths_only() {
        let running = entry(1).next(&EntryEvent::Claim(claim(3)), Millis(5)).unwrap();
        let stopped = running
            .next(
                &EntryEvent::PutBack {
                    why: reason::DAEMON_STOPPED,
                    died: false,
                },
                Millis(9),
            )
            .unwrap();
        let died = running
            .next(
                &EntryEvent::PutBack {
                    why: reason::DAEMON_DIED,
                    died: true,
                },
                Millis(9),
            )
            .unwrap();
        assert_eq!((stopped.readmitted, died.readmitted), (0, 1));
        assert_eq!(
            (died.queued_at, died.priority, died.attempt, died.id),
            (Millis(1), 0, 1, entry(1).id)
        );
        assert_eq!(died.state.reason(), Some("daemon died"));
    }
}
