//! Random histories of three daemons, told to the product and to a slow, obvious model of the same rules.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::admission_events::{ClaimEvent, ConfigureEvent, Event, JOBS, SLOT_POOLS, events};
use super::admission_model::{Head, Model, ModelDaemon, ModelJob, ModelSlots, Overlap, State, Variant, Wish};
use super::jobs::{JobPlan, job, name, slot_pool_name, slot_pool_of};
use super::stage::{BEGIN, Daemon, Rig, by_hand, renewal, run_id};
use crate::domain::slots::admission::{self, HeadVerdict, Pause};
use crate::domain::slots::entry::{EntryState, SlotEntry, reason};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::domain::workflow::run::Trigger;
use crate::engine::changes::cancel::{self, EntryCancelled};
use crate::engine::changes::claim::Claimed;
use crate::engine::changes::complete::Recorded;
use crate::engine::changes::maintain::Rules;
use crate::engine::changes::start::{Start, Started};
use crate::engine::changes::{head, pause};
use crate::store::tables::SLOT_ENTRIES;
use crate::store::{Rows, entries};
use crate::words::ids::EntryId;

fn plan(model: &ModelJob, variant: Variant) -> JobPlan {
    let policy = match model.overlap {
        Overlap::Allow => ConcurrencyPolicy::Allow,
        Overlap::Forbid => ConcurrencyPolicy::Forbid,
        Overlap::Replace => ConcurrencyPolicy::Replace,
    };
    let mut plan = job(model.name)
        .on(model.slot_pool_in(variant))
        .slots(model.slots)
        .priority(model.priority)
        .queue_timeout_ms(model.timeout_ms.unsigned_abs())
        .policy(policy);
    if variant == Variant::Changed {
        plan = plan.command("changed");
    }
    plan.0.enabled = variant != Variant::Disabled;
    plan
}

/// The product and the model, told the same.
struct Both<'r> {
    rig: &'r Rig,
    others: [Daemon; 2],
    model: Model,
    /// Every claim that was ever made, ended or not: late words come too.
    claims: Vec<Claimed>,
    numbers: u64,
}

impl Both<'_> {
    fn daemon(&self, which: usize) -> &Daemon {
        if which == 0 {
            self.rig
        } else {
            &self.others[which - 1]
        }
    }

    fn claim(&self, which: usize) -> Option<Claimed> {
        let newest = self.claims.len().checked_sub(1)?;
        self.claims.get(newest.saturating_sub(which)).cloned()
    }

    /// An entry, the newest first.
    fn entry(&self, which: usize) -> Option<usize> {
        self.model.entries.len().checked_sub(1 + which)
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Start { daemon, job, bound } => {
                let node = bound.then_some(*daemon);
                self.numbers += 1;
                self.start(self.fresh(*daemon, JOBS[*job].name, node, None));
            }
            Event::Fire { daemon, job, minute } => {
                let instant = Some(BEGIN.0 + minute * 60_000);
                self.numbers += 1;
                self.start(self.fresh(*daemon, JOBS[*job].name, None, instant));
            }
            Event::Again { daemon, which } => {
                let Some(at) = self.entry(*which) else { return };
                let entry = &self.model.entries[at];
                let wish = Wish {
                    id: entry.id,
                    ..self.fresh(*daemon, entry.job, entry.node, None)
                };
                if entry.manual {
                    self.start(wish);
                }
            }
            Event::Pass { daemon } => self.pass(*daemon),
            Event::Claim(event) => self.about_a_claim(event),
            Event::Lapse => self.lose(None),
            Event::Crash { daemon } => self.lose(Some(*daemon)),
            Event::CancelEntry { which } => self.cancel_entry(*which),
            Event::CancelRun { which } => self.cancel_run(*which),
            Event::PauseSlots { which, on } => self.pause_slots(SLOT_POOLS[*which], *on),
            Event::PauseJob { job, on } => self.pause_job(JOBS[*job].name, *on),
            Event::Configure(event) => self.configure(event),
            Event::Wait { ms } => {
                self.rig.clock().advance(*ms);
                self.model.wall += ms.cast_signed();
                self.model.boot += ms;
            }
            Event::StepBack { ms } => {
                self.rig.clock().step_wall(-ms);
                self.model.wall -= ms;
            }
        }
    }

    /// Ids are in no order: who came later may have the smaller one.
    fn fresh(&self, daemon: usize, job: &'static str, node: Option<usize>, instant: Option<i64>) -> Wish {
        let id = u128::from(self.numbers.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        Wish {
            daemon,
            job,
            id,
            run: self.numbers,
            node,
            instant,
        }
    }

    fn start(&mut self, wish: Wish) {
        let repeats = self.model.entries.iter().any(|entry| entry.id == wish.id);
        if !self.model.daemons[wish.daemon].jobs[wish.job].starts() {
            return;
        }
        // What a daemon with an old file may start is the matter of other tests.
        if !repeats && self.model.may_start_otherwise(wish.daemon, wish.job) {
            return;
        }
        let daemon = self.daemon(wish.daemon);
        let trigger = match wish.instant {
            Some(instant) => Trigger::Schedule {
                instant: crate::words::time::Millis(instant),
            },
            None => by_hand(),
        };
        let start = Start {
            node: wish.node.map(|node| self.daemon(node).engine.node.clone()),
            run: run_id(wish.run),
            entry: EntryId(wish.id.to_be_bytes()),
            rules: Rules::plain(),
            ..daemon.wish(wish.job, trigger)
        };
        let answer = daemon.begin_run(&start).unwrap();
        let said = if let Started::Queued { entry, .. } = &answer {
            assert_eq!(*entry, start.entry);
            "queued".to_owned()
        } else if answer == Started::AlreadyFired {
            "already fired".to_owned()
        } else if answer == Started::Paused {
            "paused".to_owned()
        } else {
            answer.refusal(&start.name).expect("a refusal in words")
        };
        assert_eq!(said, self.model.start(wish), "{wish:?}");
    }

    fn pass(&mut self, daemon: usize) {
        let claimed = self.daemon(daemon).pass_with(16, Rules::plain()).claimed;
        let said: Vec<(u128, u64)> = claimed
            .iter()
            .map(|claimed| (id_of(&claimed.slots.as_ref().unwrap().0), claimed.claim.fence))
            .collect();
        assert_eq!(said, self.model.pass(daemon), "claims of daemon {daemon}");
        self.claims.extend(claimed);
    }

    fn about_a_claim(&mut self, event: &ClaimEvent) {
        match event {
            ClaimEvent::Complete { which, outcome } => {
                let Some(claimed) = self.claim(*which) else { return };
                let done = is_done(&self.rig.complete(&claimed, *outcome));
                let cancelled = *outcome == Outcome::Cancelled;
                assert_eq!(done, self.model.complete(claimed.claim.fence, cancelled));
            }
            ClaimEvent::PutBack { which } => {
                let Some(claimed) = self.claim(*which) else { return };
                let done = is_done(&self.rig.put_back(&claimed, reason::LAUNCH_INTERRUPTED));
                let fence = claimed.claim.fence;
                assert_eq!(done, self.model.give_back(fence, "launch interrupted", false));
            }
            ClaimEvent::Renew { daemon } => {
                let owner = self.daemon(*daemon);
                let held = self.model.held(*daemon);
                let own = |claimed: &&Claimed| claimed.claim.node == owner.engine.node;
                let all: Vec<&Claimed> = self.claims.iter().filter(own).collect();
                let renewals: Vec<_> = all.iter().map(|claimed| renewal(claimed)).collect();
                let leases = owner.renew(&renewals);
                for (claimed, lease) in all.iter().zip(leases) {
                    let fence = claimed.claim.fence;
                    assert_eq!(lease.is_some(), held.contains(&fence), "renewal of {fence}");
                }
                self.model.renew(*daemon);
            }
        }
    }

    /// T13 of all that this daemon held; without one, T12 of every lease that is over.
    fn lose(&mut self, dead: Option<usize>) {
        let mut lost = BTreeSet::new();
        let now = self.rig.engine.now();
        for slot_pool in SLOT_POOLS {
            for (_, row) in self
                .rig
                .read(|tx| entries::running(tx, &slot_pool_name(slot_pool)))
            {
                let gone = match dead {
                    Some(dead) => row.node == self.daemon(dead).engine.node,
                    None => row.lease.has_lapsed(&self.rig.engine.place.clock, now),
                };
                lost.extend(gone.then_some(row.fence));
            }
        }
        let (why, expected) = match dead {
            Some(dead) => (reason::DAEMON_DIED, self.model.held(dead)),
            None => (reason::LEASE_LAPSED, self.model.lapsed()),
        };
        assert_eq!(lost, expected);
        for fence in lost {
            let claimed = self.claims.iter().find(|claimed| claimed.claim.fence == fence);
            let settled = self.rig.settle(claimed.unwrap(), why, dead.is_some());
            assert_eq!(
                is_done(&settled),
                self.model.give_back(fence, why, dead.is_some())
            );
        }
    }

    fn cancel_entry(&mut self, which: usize) {
        let Some(at) = self.entry(which) else { return };
        let entry = &self.model.entries[at];
        let (slot_pool, id) = (slot_pool_name(entry.slot_pool), EntryId(entry.id.to_be_bytes()));
        let said = self.rig.change(move |tx| cancel::entry(tx, &slot_pool, id));
        let said = match said {
            EntryCancelled::Cancelled => "cancelled",
            EntryCancelled::NotWaiting => "not waiting",
            EntryCancelled::NotFound => "not found",
        };
        assert_eq!(said, self.model.cancel_entry(at));
    }

    fn cancel_run(&mut self, which: usize) {
        let Some(at) = self.entry(which) else { return };
        let run = run_id(self.model.entries[at].run);
        self.rig.change(move |tx| cancel::run(tx, run, "me"));
        self.model.cancel_run(at);
    }

    fn pause_slots(&mut self, slot_pool: &'static str, on: bool) {
        let (book, wanted) = (self.rig.engine.book(), pause_if(on));
        self.rig
            .change(move |tx| pause::slot_pool(tx, &book, &slot_pool_name(slot_pool), wanted.as_ref()));
        let stored = self.model.stored(slot_pool);
        let row = self.model.slot_pools.get_mut(slot_pool).unwrap();
        if row.paused != on {
            (row.paused, row.stored) = (on, Some(stored));
        }
    }

    fn pause_job(&mut self, job: &'static str, on: bool) {
        let wanted = pause_if(on);
        self.rig
            .change(move |tx| pause::job(tx, &name(job), wanted.as_ref()));
        if on {
            self.model.paused_jobs.insert(job);
        } else {
            self.model.paused_jobs.remove(job);
        }
    }

    fn configure(&mut self, event: &ConfigureEvent) {
        match event {
            // All daemons of a state directory have the same numbers.
            ConfigureEvent::Capacity { which, slots } => {
                let slot_pool = SLOT_POOLS[*which];
                for daemon in 0..3 {
                    self.daemon(daemon).edit_book(|book| {
                        book.slot_pools.get_mut(&slot_pool_name(slot_pool)).unwrap().slots = *slots;
                    });
                }
                self.model.slot_pools.get_mut(slot_pool).unwrap().configured = *slots;
                self.load(0);
            }
            ConfigureEvent::Load { daemon, job, variant } => {
                self.model.daemons[*daemon].jobs.insert(JOBS[*job].name, *variant);
                self.load(*daemon);
            }
            // What is published is what this daemon reads, too.
            ConfigureEvent::Reload { daemon } => {
                self.model.daemons[*daemon].jobs = self.model.published.clone();
                self.load(*daemon);
            }
            ConfigureEvent::Locks { daemon, trusted } => {
                self.daemon(*daemon)
                    .edit_book(|book| book.locks_trusted = *trusted);
                self.model.daemons[*daemon].locks_trusted = *trusted;
            }
        }
    }

    fn load(&mut self, daemon: usize) {
        let own = self.model.daemons[daemon].jobs.clone();
        let plans: Vec<JobPlan> = JOBS
            .iter()
            .filter(|job| own[job.name] != Variant::Removed)
            .map(|job| plan(job, own[job.name]))
            .collect();
        self.daemon(daemon).publish(&plans);
        self.model.published = own;
    }

    /// Product and model say the same.
    fn compare(&self) {
        let stored: Vec<SlotEntry> = self
            .rig
            .read(|tx| tx.scan(&SLOT_ENTRIES, &(), None, usize::MAX))
            .into_iter()
            .map(|(_, entry)| entry)
            .collect();
        assert_eq!(stored.len(), self.model.entries.len());
        for (entry, model) in stored.iter().zip(&self.model.entries) {
            assert_eq!(id_of(entry), model.id, "entries come in the order of their seq");
            assert_eq!(
                self.said_of(entry),
                said_of_model(model),
                "{}",
                self.rig.snapshot()
            );
        }
        for slot_pool in SLOT_POOLS {
            self.compare_queue(slot_pool);
        }
    }

    fn said_of(&self, entry: &SlotEntry) -> String {
        let owner = |claim: &crate::domain::slots::claim::Claim| {
            let is_it = |daemon: &usize| self.daemon(*daemon).engine.node == claim.node;
            (0..3).find(is_it).unwrap()
        };
        let held = match &entry.state {
            EntryState::Running { claim } => format!(" by {} under {}", owner(claim), claim.fence),
            EntryState::Queued { .. }
            | EntryState::Finished { .. }
            | EntryState::Expired { .. }
            | EntryState::Cancelled { .. } => String::new(),
        };
        format!(
            "{} in {}: {}{held} ({:?}), since {} to {}, {} deaths",
            entry.job,
            entry.slot_pool,
            entry.state.word(),
            entry.state.reason(),
            entry.queued_at.0,
            entry.expires_at.0,
            entry.readmitted
        )
    }

    fn compare_queue(&self, slot_pool: &str) {
        let pool_name = slot_pool_name(slot_pool);
        let waiting = self.rig.read(|tx| entries::waiting(tx, &pool_name, usize::MAX));
        let order: Vec<u128> = waiting
            .iter()
            .map(|((_, _, _, _, id), _)| u128::from_be_bytes(id.0))
            .collect();
        let queue = self.model.queue(slot_pool);
        let expected: Vec<u128> = queue.iter().map(|at| self.model.entries[*at].id).collect();
        assert_eq!(
            order,
            expected,
            "the order in {slot_pool}\n{}",
            self.rig.snapshot()
        );
        let used = self.rig.used(slot_pool);
        let (book, name) = (self.rig.engine.book(), slot_pool_name(slot_pool));
        let stored = self.rig.read(|tx| {
            let state = head::slot_pool(tx, &name)?;
            Ok(head::stored_slots(state.as_ref(), &book, &name))
        });
        assert!(
            used <= stored,
            "{used} of {stored} in {slot_pool}\n{}",
            self.rig.snapshot()
        );
        let expected = (self.model.used(slot_pool), self.model.stored(slot_pool));
        assert_eq!((used, stored), expected, "{slot_pool}\n{}", self.rig.snapshot());
        let Some(first) = queue.first() else { return };
        for daemon in 0..3 {
            let (word, sentence) = self.blocked(daemon, slot_pool);
            match self.model.judge(daemon, *first) {
                Head::Blocked { by, why } => {
                    assert_eq!(word, Some(by), "for daemon {daemon}\n{}", self.rig.snapshot());
                    assert!(why.is_none() || why == sentence, "{why:?}, not {sentence:?}");
                }
                Head::Claim | Head::Expire | Head::Withdraw => assert_eq!(word, None),
            }
        }
    }

    /// Why the head waits, as this daemon tells it.
    fn blocked(&self, daemon: usize, slot_pool: &str) -> (Option<&'static str>, Option<String>) {
        let (book, now) = (self.daemon(daemon).engine.book(), self.rig.wall());
        self.rig.read(|tx| {
            let (_, row) = entries::waiting(tx, &slot_pool_name(slot_pool), 1)?.remove(0);
            let entry = entries::by_seq(tx, row.seq)?.unwrap();
            let view = head::view(tx, &book, &entry, now, false)?;
            Ok(match admission::head(&view) {
                HeadVerdict::Wait(why) => (Some(why.word()), Some(why.sentence(&view))),
                HeadVerdict::Claim | HeadVerdict::Expire | HeadVerdict::Withdraw | HeadVerdict::Supersede => {
                    (None, None)
                }
            })
        })
    }
}

fn pause_if(on: bool) -> Option<Pause> {
    on.then(|| Pause {
        until: None,
        by: "me".to_owned(),
        note: String::new(),
    })
}

fn is_done(recorded: &Recorded) -> bool {
    matches!(recorded, Recorded::Done(_))
}

fn id_of(entry: &SlotEntry) -> u128 {
    u128::from_be_bytes(entry.id.0)
}

fn said_of_model(entry: &super::admission_model::ModelEntry) -> String {
    let (word, held) = match entry.state {
        State::Queued => ("queued", String::new()),
        State::Running { fence, daemon, .. } => ("running", format!(" by {daemon} under {fence}")),
        State::Finished => ("finished", String::new()),
        State::Expired => ("expired", String::new()),
        State::Cancelled => ("cancelled", String::new()),
    };
    format!(
        "{} in {}: {word}{held} ({:?}), since {} to {}, {} deaths",
        entry.job, entry.slot_pool, entry.reason, entry.queued_at, entry.expires_at, entry.deaths
    )
}

fn model_of(raise_immediately: bool) -> Model {
    let all: std::collections::BTreeMap<_, _> = JOBS.iter().map(|job| (job.name, Variant::Plain)).collect();
    let row = |configured, max_queued| ModelSlots {
        stored: None,
        configured,
        max_queued,
        paused: false,
    };
    let daemon = ModelDaemon {
        jobs: all.clone(),
        locks_trusted: true,
    };
    Model {
        wall: BEGIN.0,
        boot: 3_600_000,
        jobs: JOBS.to_vec(),
        slot_pools: [("p", row(3, 5)), ("q", row(2, 3)), ("r", row(2, 2))].into(),
        entries: Vec::new(),
        daemons: vec![daemon; 3],
        published: all,
        paused_jobs: BTreeSet::new(),
        fired: BTreeSet::new(),
        fences: 0,
        raise_immediately,
    }
}

/// A bounded share; `PROPTEST_CASES` asks for more.
fn cases() -> u32 {
    std::env::var("PROPTEST_CASES").map_or(40, |text| text.parse().expect("a number"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(), ..ProptestConfig::default() })]

    #[test]
    fn used_never_exceeds_slots(events in events(), raise_immediately: bool) {
        let plans: Vec<JobPlan> = JOBS.iter().map(|job| plan(job, Variant::Plain)).collect();
        let rig = Rig::new(&[slot_pool_of("p", 3, 5), slot_pool_of("q", 2, 3), slot_pool_of("r", 2, 2)], &plans);
        rig.edit_book(|book| book.raise_immediately = raise_immediately);
        let others = [rig.daemon("n-b"), rig.daemon("n-c")];
        let model = model_of(raise_immediately);
        let mut both = Both { rig: &rig, others, model, claims: Vec::new(), numbers: 0 };
        for event in &events {
            both.happen(event);
            both.compare();
        }
        rig.assert_clean();
    }
}
