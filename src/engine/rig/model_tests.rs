//! Random work against the rules that must hold at every moment, and the number of rows that each phase may write.

use proptest::prelude::*;

use super::jobs::{JobPlan, job, name, slot_pool_name, slot_pool_of};
use super::stage::{Daemon, Rig, TENANT, by_hand, holder};
use crate::domain::report::Tails;
use crate::domain::slots::admission::Pause;
use crate::domain::slots::entry::{EntryState, reason};
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::engine::changes::claim::{self, Claimed, Pass};
use crate::engine::changes::tasks::Turns;
use crate::engine::changes::{cancel, complete, pause, retire, start};
use crate::store::Rows;
use crate::store::tables::{META, RUNS, SLOT_ENTRIES, SLOT_POOLS};

/// One thing that happens.
#[derive(Debug, Clone)]
enum Event {
    Start { job: usize, unbound: bool },
    Fire { job: usize, minute: u64 },
    Pass { daemon: usize },
    Complete { which: usize, outcome: Outcome },
    PutBack { which: usize },
    Lapse { which: usize },
    Died { which: usize },
    CancelRun { number: u64 },
    StopJob { job: usize },
    PauseSlotPool { on: bool },
    Slots { slots: u32 },
    Publish { command: usize, jobs: usize },
    Wait { ms: u64 },
    Retire,
}

fn events() -> impl Strategy<Value = Vec<Event>> {
    let outcome = prop_oneof![
        Just(Outcome::Succeeded),
        Just(Outcome::Failed),
        Just(Outcome::Cancelled),
        Just(Outcome::TimedOut)
    ];
    let event = prop_oneof![
        8 => (0..5usize, any::<bool>()).prop_map(|(job, unbound)| Event::Start { job, unbound }),
        4 => (0..5usize, 0..4u64).prop_map(|(job, minute)| Event::Fire { job, minute }),
        8 => (0..3usize).prop_map(|daemon| Event::Pass { daemon }),
        5 => (0..8usize, outcome).prop_map(|(which, outcome)| Event::Complete { which, outcome }),
        2 => (0..8usize).prop_map(|which| Event::PutBack { which }),
        2 => (0..8usize).prop_map(|which| Event::Lapse { which }),
        3 => (0..8usize).prop_map(|which| Event::Died { which }),
        2 => (1..40u64).prop_map(|number| Event::CancelRun { number }),
        1 => (0..5usize).prop_map(|job| Event::StopJob { job }),
        1 => any::<bool>().prop_map(|on| Event::PauseSlotPool { on }),
        1 => (2..5u32).prop_map(|slots| Event::Slots { slots }),
        1 => (0..2usize, 3..6usize).prop_map(|(command, jobs)| Event::Publish { command, jobs }),
        2 => (1..40_000u64).prop_map(|ms| Event::Wait { ms }),
        1 => Just(Event::Retire),
    ];
    proptest::collection::vec(event, 1..40)
}

const JOBS: [&str; 5] = ["plain", "wide", "forbid", "replace", "bare"];

fn plans(command: usize) -> Vec<JobPlan> {
    let text = ["true", "false"][command];
    vec![
        job("plain").on("p").priority(1).command(text),
        job("wide").on("p").slots(2).queue_timeout_ms(30_000),
        job("forbid").on("p").policy(ConcurrencyPolicy::Forbid),
        job("replace")
            .on("q")
            .policy(ConcurrencyPolicy::Replace)
            .command(text),
        job("bare").policy(ConcurrencyPolicy::Forbid),
    ]
}

/// The daemons of a history, and every claim that was ever made, ended or not: late words come too.
struct World<'r> {
    rig: &'r Rig,
    others: [Daemon; 2],
    claims: Vec<Claimed>,
}

impl World<'_> {
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

    fn knows(&self, job: usize) -> bool {
        self.rig.engine.book().jobs.contains_key(&name(JOBS[job]))
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Start { job, unbound } if self.knows(*job) => {
                let started = if *unbound {
                    Daemon::start_unbound
                } else {
                    Daemon::start
                };
                started(self.rig, JOBS[*job]);
            }
            Event::Fire { job, minute } if self.knows(*job) => {
                self.rig
                    .fire(JOBS[*job], super::stage::BEGIN.plus(minute * 60_000));
            }
            Event::Pass { daemon } => {
                let claimed = self.daemon(*daemon).pass().claimed;
                self.claims.extend(claimed);
            }
            Event::Complete { which, outcome } => {
                if let Some(claimed) = self.claim(*which) {
                    self.rig.complete(&claimed, *outcome);
                }
            }
            Event::PutBack { which } => {
                if let Some(claimed) = self.claim(*which) {
                    self.rig.put_back(&claimed, reason::LAUNCH_INTERRUPTED);
                }
            }
            Event::Lapse { which } => {
                if let Some(claimed) = self.claim(*which) {
                    self.rig.settle(&claimed, reason::LEASE_LAPSED, false);
                }
            }
            Event::Died { which } => {
                if let Some(claimed) = self.claim(*which) {
                    self.rig.settle(&claimed, reason::DAEMON_DIED, true);
                }
            }
            // A job that is not in the book has no start and no fire.
            Event::Start { .. } | Event::Fire { .. } => {}
            Event::CancelRun { .. }
            | Event::StopJob { .. }
            | Event::PauseSlotPool { .. }
            | Event::Slots { .. }
            | Event::Publish { .. }
            | Event::Wait { .. }
            | Event::Retire => self.happen_outside(event),
        }
    }

    fn happen_outside(&mut self, event: &Event) {
        match event {
            Event::CancelRun { number } => {
                let id = super::stage::run_id(*number);
                self.rig.change(move |tx| cancel::run(tx, id, "me"));
            }
            Event::StopJob { job } => {
                let job = name(JOBS[*job]);
                self.rig.change(move |tx| cancel::job(tx, &job, "me"));
            }
            Event::PauseSlotPool { on } => {
                let pause = on.then(|| Pause {
                    until: None,
                    by: "me".to_owned(),
                    note: String::new(),
                });
                let book = self.rig.engine.book();
                self.rig
                    .change(move |tx| pause::slot_pool(tx, &book, &slot_pool_name("p"), pause.as_ref()));
            }
            Event::Slots { slots } => {
                for daemon in [0, 1, 2] {
                    self.daemon(daemon).edit_book(|book| {
                        book.slot_pools.get_mut(&slot_pool_name("p")).unwrap().slots = *slots;
                    });
                }
                self.rig.publish_book();
            }
            Event::Publish { command, jobs } => self.rig.publish(&plans(*command)[..*jobs]),
            Event::Wait { ms } => self.rig.clock().advance(*ms),
            Event::Retire => {
                let keep = retire::Keep {
                    runs: 3,
                    age_ms: 3_600_000,
                    logs: retire::KeepLogs::NO_LIMIT,
                    audit: retire::KeepAudit::NO_LIMIT,
                };
                let now = self.rig.wall();
                let due = self.rig.read(|tx| {
                    let mut published = retire::Published::default();
                    retire::due(tx, keep, &retire::OwnRules::new(), &mut published, now, &mut None)
                });
                self.rig.change(move |tx| retire::retire(tx, &due));
                let fires = self.rig.read(|tx| retire::old_fires(tx, keep, now));
                self.rig.change(move |tx| retire::sweep(tx, keep, &fires));
            }
            Event::Start { .. }
            | Event::Fire { .. }
            | Event::Pass { .. }
            | Event::Complete { .. }
            | Event::PutBack { .. }
            | Event::Lapse { .. }
            | Event::Died { .. } => {}
        }
    }

    /// What a slow and obvious look at the entries says.
    fn invariants(&self) {
        let rig = self.rig;
        rig.assert_clean();
        let entries = rig.read(|tx| tx.scan(&SLOT_ENTRIES, &(), None, usize::MAX));
        for ((_, slot_pool), state) in rig.read(|tx| tx.scan(&SLOT_POOLS, &(), None, 10)) {
            let running = entries.iter().filter(|(_, entry)| {
                entry.slot_pool == slot_pool && matches!(entry.state, EntryState::Running { .. })
            });
            let used: u32 = running.map(|(_, entry)| entry.slots).sum();
            assert_eq!(used, rig.used(slot_pool.as_str()));
            assert!(
                used <= state.stored_slots,
                "{used} of {}\n{}",
                state.stored_slots,
                rig.snapshot()
            );
        }
        // Forbid and Replace: one live instance of a job at most.
        let live = rig.read(crate::store::runs::live);
        for alone in ["forbid", "replace", "bare"] {
            let count = live.iter().filter(|(_, _, row)| row.job == name(alone)).count();
            assert!(
                count <= 1,
                "{count} live instances of {alone}\n{}",
                rig.snapshot()
            );
        }
        // An entry and its run agree about whether they have ended.
        for (_, entry) in entries {
            let Some(run) = rig.read(|tx| tx.get(&RUNS, &(TENANT, entry.run))) else {
                continue;
            };
            assert_eq!(
                run.state.is_terminal(),
                entry.state.closed_at().is_some(),
                "{}",
                rig.snapshot()
            );
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    #[test]
    fn index_equals_rows(events in events()) {
        let rig = Rig::new(&[slot_pool_of("p", 3, 6), slot_pool_of("q", 1, 4)], &plans(0));
        let others = [rig.daemon("n-b"), rig.daemon("n-c")];
        let mut world = World { rig: &rig, others, claims: Vec::new() };
        for event in &events {
            world.happen(event);
            world.invariants();
        }
    }
}

fn counter(rig: &Rig, counter: &str) -> u64 {
    rig.read(|tx| tx.get(&META, &(counter.to_owned(),)))
        .map_or(0, |number| number.0)
}

#[test]
fn row_budget() {
    let rig = Rig::new(
        &[slot_pool_of("p", 4, 100)],
        &[job("pooled").on("p"), job("bare")],
    );
    // The first entry ever also writes the slot pool's own row, and the first success of a job in a second its mark.
    for which in ["pooled", "bare"] {
        rig.start(which);
        let first = rig.claim();
        rig.complete(&first, Outcome::Succeeded);
    }
    for (which, accepted, claimed, completed) in [("pooled", 10, 8, 8), ("bare", 6, 4, 5)] {
        let book = rig.engine.book();
        let trigger = crate::domain::workflow::run::Trigger::Schedule { instant: rig.wall() };
        let wish = rig.wish(which, trigger);
        let (_, rows) = rig.counted(move |tx| start::start(tx, &book, &wish));
        assert_eq!(
            rows, accepted,
            "{which}: a fire with its run (at most 12), and its entry (at most 8)"
        );
        let book = rig.engine.book();
        let rules = super::stage::plain();
        let given = Pass {
            place: rig.engine.place.clone(),
            processes: vec![rig.process()],
            rules,
            leave_to: 0,
            turns: Turns::default(),
            shelf: crate::engine::graphs::GraphShelf::default(),
        };
        let (mut passed, rows) = rig.counted(move |tx| claim::pass(tx, &book, &given));
        assert_eq!(rows, claimed, "{which}: claim, at most 8");
        let claim = passed.claimed.remove(0);
        let (holder, attempt) = (holder(&claim), rig.attempt(&claim, Outcome::Succeeded));
        let (_, rows) = rig.counted(move |tx| complete::complete(tx, &holder, &attempt, &Tails::default()));
        assert_eq!(
            rows, completed,
            "{which}: complete, at most 9: the newest success outlives its run"
        );
    }
    assert_eq!((counter(&rig, "next_entry"), counter(&rig, "next_fence")), (2, 4));
}

#[test]
fn a_claim_writes_the_same_with_a_thousand_waiting() {
    let mut rows = Vec::new();
    for waiting in [1, 1_000] {
        let rig = Rig::new(&[slot_pool_of("p", 1, 2_000)], &[job("a").on("p")]);
        let wishes: Vec<_> = (0..waiting).map(|_| rig.wish("a", by_hand())).collect();
        let book = rig.engine.book();
        rig.change(move |tx| {
            for wish in &wishes {
                start::start(tx, &book, wish)?;
            }
            Ok(())
        });
        let (book, rules) = (rig.engine.book(), super::stage::plain());
        let given = Pass {
            place: rig.engine.place.clone(),
            processes: vec![rig.process()],
            rules,
            leave_to: 0,
            turns: Turns::default(),
            shelf: crate::engine::graphs::GraphShelf::default(),
        };
        rows.push(rig.counted(move |tx| claim::pass(tx, &book, &given)).1);
    }
    assert_eq!(rows[0], rows[1]);
}
