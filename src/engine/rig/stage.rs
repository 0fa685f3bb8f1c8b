//! The rig itself: one store, its clock, and daemons that hand it the engine's own changes.

use std::cell::Cell;
use std::future::Future;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tempfile::TempDir;

use super::jobs::{self, JobPlan, book_job};
use crate::domain::report::Tails;
use crate::domain::slots::admission::{self, HeadVerdict};
use crate::domain::slots::claim::{ClockId, Lease, Place, ProcessRef};
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::run::{Run, StepState, Trigger};
use crate::engine::book::{Book, BookSlots};
use crate::engine::changes::claim::{self, Claimed, Look, Pass, Passed};
use crate::engine::changes::complete::{self, Holder, Recorded};
use crate::engine::changes::maintain::Rules;
use crate::engine::changes::renew::{self, Renewal};
use crate::engine::changes::start::{self, Start, Started};
use crate::engine::changes::tasks::Turns;
use crate::engine::changes::{head, publish, settle};
use crate::engine::core::{Engine, EngineParts};
use crate::store::coordination::{HeldLock, StateDirectory};
use crate::store::tables as all;
use crate::store::{
    Abort, ChangeError, FeedItem, ReadTx, Rows, Store, StoreError, StoreOptions, Tx, check, entries, runs,
};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::{NodeName, SlotPoolName, StepRef};
use crate::words::network::EgressRule;
use crate::words::time::{Clock, ManualClock, Millis};

pub(super) const TENANT: TenantId = TenantId::DEFAULT;
/// When every rig begins: 2025-11-29T18:00:00Z.
pub(super) const BEGIN: Millis = Millis(1_764_439_200_000);

/// A store with its first daemon, whose calls it offers as its own.
pub(super) struct Rig {
    first: Daemon,
    damage_planned: Cell<bool>,
    folder: TempDir,
}

impl Rig {
    /// A store in which daemon `n-a` has published this configuration.
    pub(super) fn new(slot_pools: &[(SlotPoolName, BookSlots)], plans: &[JobPlan]) -> Rig {
        Rig::with_times(slot_pools, plans, Duration::from_secs(5), Duration::from_secs(5))
    }

    /// The same, with other time limits of the store's operations.
    pub(super) fn with_times(
        slot_pools: &[(SlotPoolName, BookSlots)],
        plans: &[JobPlan],
        operation: Duration,
        commit_grace: Duration,
    ) -> Rig {
        let folder = tempfile::tempdir().unwrap();
        let clock = ManualClock::at(BEGIN);
        let directory = StateDirectory::prepare(folder.path(), true).unwrap();
        let options = StoreOptions {
            operation,
            commit_grace,
            cache_bytes: 4 << 20,
            ..StoreOptions::in_directory(directory.root())
        };
        let store = Store::open(options, Arc::new(clock.clone())).unwrap();
        let stage = Stage {
            clock,
            numbers: Arc::new(AtomicU64::new(0)),
            runtime: Arc::new(
                tokio::runtime::Builder::new_multi_thread()
                    .worker_threads(1)
                    .enable_all()
                    .build()
                    .unwrap(),
            ),
        };
        let first = Daemon::begin(
            stage,
            store,
            directory,
            jobs::book("n-a", slot_pools, plans),
            place(),
        );
        first.publish(plans);
        Rig {
            first,
            damage_planned: Cell::new(false),
            folder,
        }
    }

    /// The first daemon dies.
    pub(super) fn die_first(&mut self) {
        self.first.die();
    }

    /// Another daemon of that name with the first one's configuration.
    pub(super) fn daemon(&self, node: &str) -> Daemon {
        self.daemon_at(node, place())
    }

    /// Another daemon that lives somewhere else.
    pub(super) fn daemon_at(&self, node: &str, place: Place) -> Daemon {
        let book = Book {
            node: NodeName::new(node).unwrap(),
            ..(*self.engine.book()).clone()
        };
        let directory = StateDirectory::prepare(self.folder.path(), true).unwrap();
        Daemon::begin(
            self.first.stage.clone(),
            self.engine.store.clone(),
            directory,
            book,
            place,
        )
    }

    /// A daemon of that name in a directory that was restored from a backup of this store. It lives on this very machine.
    pub(super) fn restored_into(&self, into: &Path, node: &str) -> Daemon {
        let options = StoreOptions::in_directory(into);
        let store = Store::open(options, Arc::new(self.first.stage.clock.clone())).unwrap();
        let book = Book {
            node: NodeName::new(node).unwrap(),
            ..(*self.engine.book()).clone()
        };
        let directory = StateDirectory::prepare(into, true).unwrap();
        Daemon::begin(self.first.stage.clone(), store, directory, book, place())
    }

    /// The store ends damaged, as the test wants it: no check.
    pub(super) fn plan_damage(&self) {
        self.damage_planned.set(true);
    }

    /// The findings of the check.
    pub(super) fn findings(&self) -> check::Findings {
        self.read(check::check)
    }

    /// Fails if any index differs from its rows.
    pub(super) fn assert_clean(&self) {
        assert_eq!(self.findings(), check::Findings::new(), "{}", self.snapshot());
    }
}

impl Deref for Rig {
    type Target = Daemon;

    fn deref(&self) -> &Daemon {
        &self.first
    }
}

impl Drop for Rig {
    fn drop(&mut self) {
        if !std::thread::panicking() && !self.damage_planned.get() {
            self.assert_clean();
        }
    }
}

#[derive(Clone)]
struct Stage {
    clock: ManualClock,
    numbers: Arc<AtomicU64>,
    runtime: Arc<tokio::runtime::Runtime>,
}

/// A daemon, as far as the store knows: its name's lock, its book, its place.
pub(super) struct Daemon {
    pub(super) engine: Engine,
    stage: Stage,
    lock: Option<HeldLock>,
}

impl Daemon {
    fn begin(stage: Stage, store: Store, directory: StateDirectory, book: Book, place: Place) -> Daemon {
        let lock = directory.try_lock_node(&book.node).unwrap();
        assert!(lock.is_some(), "{} is alive already", book.node);
        let engine = Engine::new(EngineParts {
            store,
            book,
            clock: Arc::new(stage.clock.clone()),
            place,
            directory,
            log_bytes_max: 1 << 20,
            program: PathBuf::from("/bin/true"),
        });
        Daemon { engine, stage, lock }
    }

    /// The lock is given back as if the process had died; what it held stays in the store.
    pub(super) fn die(&mut self) {
        self.lock = None;
    }

    /// Requests of workflows may go to this machine.
    pub(super) fn allow_loopback(&self) {
        let rule: EgressRule = "127.0.0.1".parse().unwrap();
        let book = Book {
            egress: [rule].into(),
            ..(*self.engine.book()).clone()
        };
        self.engine.shelf.replace(book);
    }

    /// The clock of this rig.
    pub(super) fn clock(&self) -> &ManualClock {
        &self.stage.clock
    }

    /// Now, on the wall.
    pub(super) fn wall(&self) -> Millis {
        self.stage.clock.now().wall
    }

    /// Runs a future of an engine to its end.
    pub(super) fn wait<F: Future>(&self, future: F) -> F::Output {
        self.stage.runtime.block_on(future)
    }

    fn number(&self) -> u64 {
        self.stage.numbers.fetch_add(1, Ordering::SeqCst) + 1
    }

    /// Hands a change to the writer.
    pub(super) fn try_change<T, F>(&self, change: F) -> Result<T, ChangeError>
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        self.engine.store.change_blocking("rig", change)
    }

    /// A change that must succeed.
    pub(super) fn change<T, F>(&self, change: F) -> T
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        self.try_change(change).unwrap()
    }

    /// A change with the number of rows that it wrote.
    pub(super) fn counted<T, F>(&self, mut change: F) -> (T, u64)
    where
        T: Send + 'static,
        F: FnMut(&mut Tx<'_>) -> Result<T, Abort> + Send + 'static,
    {
        self.change(move |tx| {
            let before = tx.rows_written();
            let answer = change(tx)?;
            Ok((answer, tx.rows_written() - before))
        })
    }

    /// Reads a snapshot that must be readable.
    pub(super) fn read<T>(&self, read: impl FnMut(&mut ReadTx) -> Result<T, StoreError>) -> T {
        self.engine.store.read(read).unwrap()
    }

    /// Publishes definitions and puts them into this daemon's book.
    pub(super) fn publish(&self, plans: &[JobPlan]) {
        let mut book = (*self.engine.book()).clone();
        let slot_pools = book.slot_pools.clone();
        let definitions: Vec<_> = plans.iter().map(|plan| plan.0.clone()).collect();
        let for_change = definitions.clone();
        let node = book.node.clone();
        let versions = self.change(move |tx| publish::publish(tx, &node, &for_change, &slot_pools));
        book.jobs = definitions
            .iter()
            .map(|definition| {
                (
                    definition.name.clone(),
                    book_job(definition, versions[&definition.name]),
                )
            })
            .collect();
        self.engine.shelf.replace(book);
    }

    /// Publishes the book in force as it is: a load that changes slot pools only.
    pub(super) fn publish_book(&self) {
        let book = self.engine.book();
        let jobs = book.jobs.values();
        let plans: Vec<JobPlan> = jobs.map(|job| JobPlan((*job.definition).clone())).collect();
        self.publish(&plans);
    }

    /// Changes the book in force.
    pub(super) fn edit_book(&self, edit: impl FnOnce(&mut Book)) {
        let mut book = (*self.engine.book()).clone();
        edit(&mut book);
        self.engine.shelf.replace(book);
    }

    /// A wish to start `job`, with fresh ids.
    pub(super) fn wish(&self, job: &str, trigger: Trigger) -> Start {
        let number = self.number();
        let node = match trigger {
            Trigger::Manual { .. }
            | Trigger::Rerun { .. }
            | Trigger::Child { .. }
            | Trigger::RetryFrom { .. } => Some(self.engine.node.clone()),
            Trigger::Schedule { .. } | Trigger::CatchUp { .. } | Trigger::Boot { .. } => None,
        };
        Start {
            name: jobs::name(job),
            job: self.engine.book().jobs[&jobs::name(job)].clone(),
            trigger,
            node,
            run: run_id(number),
            entry: EntryId(u128::from(number).to_be_bytes()),
            retries: false,
            boot: None,
            rules: self.engine.rules(),
        }
    }

    /// Carries out a wish.
    pub(super) fn begin_run(&self, wish: &Start) -> Result<Started, ChangeError> {
        let (book, wish) = (self.engine.book(), wish.clone());
        self.try_change(move |tx| start::start(tx, &book, &wish))
    }

    /// A start by hand, bound to this daemon.
    pub(super) fn start(&self, job: &str) -> Started {
        self.begin_run(&self.wish(job, by_hand())).unwrap()
    }

    /// A start that any daemon may claim.
    pub(super) fn start_unbound(&self, job: &str) -> Started {
        self.begin_run(&Start {
            node: None,
            ..self.wish(job, by_hand())
        })
        .unwrap()
    }

    /// A fire of the schedule at `instant`.
    pub(super) fn fire(&self, job: &str, instant: Millis) -> Started {
        self.begin_run(&self.wish(job, Trigger::Schedule { instant }))
            .unwrap()
    }

    /// What a pass would do.
    pub(super) fn look(&self) -> Look {
        let book = self.engine.book();
        let now = self.wall();
        self.read(|tx| claim::look(tx, &book, now, Rules::plain()))
    }

    /// A pass that brings as many invented processes as the look wants.
    pub(super) fn pass(&self) -> Passed {
        self.pass_with(self.look().claims, Rules::plain())
    }

    /// A pass that brings `count` invented processes.
    pub(super) fn pass_with(&self, count: usize, rules: Rules) -> Passed {
        let processes = (0..count).map(|_| self.process()).collect();
        let pass = Pass {
            place: self.engine.place.clone(),
            processes,
            rules,
            leave_to: 0,
            turns: Turns::default(),
            shelf: crate::engine::graphs::GraphShelf::default(),
        };
        let book = self.engine.book();
        self.change(move |tx| claim::pass(tx, &book, &pass))
    }

    /// The one claim that a pass makes.
    pub(super) fn claim(&self) -> Claimed {
        let mut passed = self.pass();
        assert_eq!(passed.claimed.len(), 1, "{}", self.snapshot());
        passed.claimed.remove(0)
    }

    /// A process that no machine has: its number is beyond the kernel's greatest.
    pub(super) fn process(&self) -> ProcessRef {
        let pid = 100_000_000 + u32::try_from(self.number()).unwrap();
        ProcessRef {
            pid,
            start_ticks: u64::from(pid),
            group: pid,
        }
    }

    /// Ends a claim with this outcome.
    pub(super) fn complete(&self, claimed: &Claimed, outcome: Outcome) -> Recorded {
        let (holder, attempt) = (holder(claimed), self.attempt(claimed, outcome));
        self.change(move |tx| complete::complete(tx, &holder, &attempt, &Tails::default()))
    }

    /// The attempt of a claim that ended so.
    pub(super) fn attempt(&self, claimed: &Claimed, outcome: Outcome) -> Attempt {
        Attempt {
            outcome,
            exit_code: Some(i32::from(outcome != Outcome::Succeeded)),
            reason: None,
            node: claimed.claim.node.clone(),
            pid: claimed.claim.process.map(|process| process.pid),
            started_at: claimed.claim.claimed_at,
            ended_at: self.wall(),
            log_bytes: 0,
        }
    }

    /// Gives a claim back without an attempt.
    pub(super) fn put_back(&self, claimed: &Claimed, why: &'static str) -> Recorded {
        let holder = holder(claimed);
        self.change(move |tx| complete::put_back(tx, &holder, why, false, None))
    }

    /// Settles a claim that somebody lost.
    pub(super) fn settle(&self, claimed: &Claimed, why: &'static str, died: bool) -> Recorded {
        let holder = holder(claimed);
        self.change(move |tx| settle::settle(tx, &holder, why, died))
    }

    /// Renews leases of this daemon.
    pub(super) fn renew(&self, renewals: &[Renewal]) -> Vec<Option<Lease>> {
        let (node, renewals) = (self.engine.node.clone(), renewals.to_vec());
        self.change(move |tx| renew::renew(tx, &node, &renewals))
    }

    /// The entry of an id.
    pub(super) fn entry(&self, id: EntryId) -> SlotEntry {
        self.read(|tx| entries::by_id(tx, id)).unwrap()
    }

    /// The state's word and reason of an entry, as `word: reason`.
    pub(super) fn entry_words(&self, started: &Started) -> String {
        let entry = self.entry(queued(started).0);
        match entry.state.reason() {
            Some(reason) => format!("{}: {reason}", entry.state.word()),
            None => entry.state.word().to_owned(),
        }
    }

    /// The state's word and reason of a run.
    pub(super) fn run_words(&self, id: RunId) -> String {
        let (run, _) = self.run(id);
        match run.state.reason() {
            Some(reason) => format!("{}: {reason}", run.state.word()),
            None => run.state.word().to_owned(),
        }
    }

    /// A run with its step.
    pub(super) fn run(&self, id: RunId) -> (Run, StepState) {
        self.read(|tx| {
            let step = runs::step(tx, id, &StepRef::main())?.unwrap();
            Ok((runs::by_id(tx, id)?.unwrap(), step))
        })
    }

    /// Slots in use.
    pub(super) fn used(&self, slot_pool: &str) -> u32 {
        self.read(|tx| entries::used_slots(tx, &jobs::slot_pool_name(slot_pool)))
    }

    /// Entries that wait.
    pub(super) fn waiting(&self, slot_pool: &str) -> u64 {
        self.read(|tx| entries::waiting_count(tx, &jobs::slot_pool_name(slot_pool)))
    }

    /// Why the head of a queue waits; `None` if it may go.
    pub(super) fn blocked_by(&self, slot_pool: &str) -> Option<&'static str> {
        let (book, now) = (self.engine.book(), self.wall());
        self.read(|tx| {
            let (_, row) = entries::waiting(tx, &jobs::slot_pool_name(slot_pool), 1)?.remove(0);
            let entry = entries::by_seq(tx, row.seq)?.unwrap();
            Ok(
                match admission::head(&head::view(tx, &book, &entry, now, false)?) {
                    HeadVerdict::Wait(why) => Some(why.word()),
                    HeadVerdict::Claim
                    | HeadVerdict::Expire
                    | HeadVerdict::Withdraw
                    | HeadVerdict::Supersede => None,
                },
            )
        })
    }

    /// All items of the feed, oldest first.
    pub(super) fn feed(&self) -> Vec<FeedItem> {
        let rows = self.read(|tx| tx.scan(&all::CHANGES, &(), None, usize::MAX));
        rows.into_iter().flat_map(|(_, row)| row.items).collect()
    }

    /// How often the feed says this.
    pub(super) fn told(&self, topic: &str) -> usize {
        self.feed().iter().filter(|item| item.topic == topic).count()
    }
}

/// The rig's n-th run.
pub(super) fn run_id(number: u64) -> RunId {
    RunId(u128::from(number).to_be_bytes())
}

/// The usual machine.
pub(super) fn place() -> Place {
    place_of("h", "b", 1)
}

/// Some machine.
pub(super) fn place_of(host: &str, boot_id: &str, pid_namespace: u64) -> Place {
    Place {
        host: host.to_owned(),
        boot_id: boot_id.to_owned(),
        pid_namespace,
        clock: ClockId(format!("{boot_id}:1")),
    }
}

/// Nothing is held back.
pub(super) fn plain() -> Rules {
    Rules::plain()
}

/// The trigger of a start by hand.
pub(super) fn by_hand() -> Trigger {
    Trigger::Manual {
        principal: "tester".to_owned(),
    }
}

/// Entry and run of a start that waits.
pub(super) fn queued(started: &Started) -> (EntryId, RunId) {
    let Started::Queued { entry, run } = started else {
        panic!("{started:?} does not wait");
    };
    (*entry, *run)
}

/// The holder of a claim.
pub(super) fn holder(claimed: &Claimed) -> Holder {
    Holder {
        run: claimed.run.id,
        step: claimed.step.clone(),
        fence: claimed.claim.fence,
    }
}

/// What renews the lease of a claim.
pub(super) fn renewal(claimed: &Claimed) -> Renewal {
    let (entry, _) = claimed.slots.as_ref().expect("a pooled claim");
    Renewal {
        slot_pool: entry.slot_pool.clone(),
        seq: entry.seq,
        fence: claimed.claim.fence,
    }
}

/// The jobs of some claims, in order.
pub(super) fn jobs_of(claimed: &[Claimed]) -> Vec<String> {
    claimed
        .iter()
        .map(|claimed| claimed.run.definition.to_string())
        .collect()
}
