//! What may happen in the histories that are told to the product and to the model, and the jobs of which they tell.

use proptest::prelude::*;

use super::admission_model::{ModelJob, Overlap, Variant};
use crate::domain::workflow::attempt::Outcome;

/// One thing that happens.
#[derive(Debug, Clone)]
pub(super) enum Event {
    Start {
        daemon: usize,
        job: usize,
        bound: bool,
    },
    Fire {
        daemon: usize,
        job: usize,
        minute: i64,
    },
    Again {
        daemon: usize,
        which: usize,
    },
    Pass {
        daemon: usize,
    },
    Claim(ClaimEvent),
    /// All leases end that are over.
    Lapse,
    Crash {
        daemon: usize,
    },
    CancelEntry {
        which: usize,
    },
    CancelRun {
        which: usize,
    },
    PauseSlots {
        which: usize,
        on: bool,
    },
    PauseJob {
        job: usize,
        on: bool,
    },
    Configure(ConfigureEvent),
    Wait {
        ms: u64,
    },
    StepBack {
        ms: i64,
    },
}

/// A word of the holder of a claim, or of one who was.
#[derive(Debug, Clone)]
pub(super) enum ClaimEvent {
    Complete { which: usize, outcome: Outcome },
    PutBack { which: usize },
    Renew { daemon: usize },
}

#[derive(Debug, Clone)]
pub(super) enum ConfigureEvent {
    Capacity {
        which: usize,
        slots: u32,
    },
    Load {
        daemon: usize,
        job: usize,
        variant: Variant,
    },
    Reload {
        daemon: usize,
    },
    Locks {
        daemon: usize,
        trusted: bool,
    },
}

pub(super) fn events() -> impl Strategy<Value = Vec<Event>> {
    let outcome = prop_oneof![
        4 => Just(Outcome::Succeeded),
        2 => Just(Outcome::Failed),
        1 => Just(Outcome::TimedOut),
        1 => Just(Outcome::Cancelled)
    ];
    let variant = prop_oneof![
        4 => Just(Variant::Plain),
        2 => Just(Variant::Changed),
        1 => Just(Variant::Disabled),
        1 => Just(Variant::Moved),
        1 => Just(Variant::Removed)
    ];
    let (daemon, some) = (0..3usize, 0..6usize);
    let event = prop_oneof![
        14 => (daemon.clone(), 0..JOBS.len(), any::<bool>())
            .prop_map(|(daemon, job, bound)| Event::Start { daemon, job, bound }),
        6 => (daemon.clone(), 0..JOBS.len(), 0..6i64)
            .prop_map(|(daemon, job, minute)| Event::Fire { daemon, job, minute }),
        2 => (daemon.clone(), some.clone()).prop_map(|(daemon, which)| Event::Again { daemon, which }),
        14 => daemon.clone().prop_map(|daemon| Event::Pass { daemon }),
        8 => (some.clone(), outcome).prop_map(|(which, outcome)| Event::Claim(ClaimEvent::Complete { which, outcome })),
        2 => some.clone().prop_map(|which| Event::Claim(ClaimEvent::PutBack { which })),
        2 => daemon.clone().prop_map(|daemon| Event::Claim(ClaimEvent::Renew { daemon })),
        3 => Just(Event::Lapse),
        3 => daemon.clone().prop_map(|daemon| Event::Crash { daemon }),
        2 => some.clone().prop_map(|which| Event::CancelEntry { which }),
        2 => some.clone().prop_map(|which| Event::CancelRun { which }),
        2 => (0..3usize, prop::bool::weighted(0.4)).prop_map(|(which, on)| Event::PauseSlots { which, on }),
        2 => (0..JOBS.len(), prop::bool::weighted(0.4)).prop_map(|(job, on)| Event::PauseJob { job, on }),
        3 => (0..3usize, 2..6u32).prop_map(|(which, slots)| Event::Configure(ConfigureEvent::Capacity { which, slots })),
        2 => (daemon.clone(), 0..JOBS.len(), variant)
            .prop_map(|(daemon, job, variant)| Event::Configure(ConfigureEvent::Load { daemon, job, variant })),
        1 => daemon.clone().prop_map(|daemon| Event::Configure(ConfigureEvent::Reload { daemon })),
        2 => (daemon, prop::bool::weighted(0.7)).prop_map(|(daemon, trusted)| Event::Configure(ConfigureEvent::Locks { daemon, trusted })),
        4 => (1..40_000u64).prop_map(|ms| Event::Wait { ms }),
        1 => (1..60_000i64).prop_map(|ms| Event::StepBack { ms }),
    ];
    proptest::collection::vec(event, 1..60)
}

pub(super) const SLOT_POOLS: [&str; 3] = ["p", "q", "r"];
pub(super) const JOBS: [ModelJob; 7] = [
    of("plain", "p", 1, 0, 3_600_000, Overlap::Allow),
    of("hasty", "p", 1, 0, 20_000, Overlap::Allow),
    of("wide", "p", 2, 1, 60_000, Overlap::Allow),
    of("forbid", "p", 1, 0, 90_000, Overlap::Forbid),
    of("replace", "q", 1, 0, 90_000, Overlap::Replace),
    of("other", "q", 2, -1, 3_600_000, Overlap::Allow),
    of("lost", "gone", 1, 0, 3_600_000, Overlap::Allow),
];

const fn of(
    name: &'static str,
    slot_pool: &'static str,
    slots: u32,
    priority: i32,
    timeout_ms: i64,
    overlap: Overlap,
) -> ModelJob {
    ModelJob {
        name,
        slot_pool,
        slots,
        priority,
        timeout_ms,
        overlap,
    }
}
