//! The work that is going on when the power goes: the product's own changes, chosen by chance over what the store holds.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ductor::domain::report::Tails;
use ductor::domain::routing::objects::PipelineMode;
use ductor::domain::slots::admission::Pause;
use ductor::domain::slots::claim::{ClockId, Place, ProcessRef};
use ductor::domain::slots::entry::reason;
use ductor::domain::workflow::attempt::{Attempt, Outcome};
use ductor::domain::workflow::definition::Definition;
use ductor::domain::workflow::run::Trigger;
use ductor::engine::book::{Book, BookJob, BookSlots, Notify};
use ductor::engine::changes::claim::{self, Pass};
use ductor::engine::changes::complete::{self, Holder};
use ductor::engine::changes::maintain::Rules;
use ductor::engine::changes::renew::{self, Renewal};
use ductor::engine::changes::retire::{self, Keep, KeepLogs};
use ductor::engine::changes::start::{self, Start, Started};
use ductor::engine::changes::{cancel, pause, publish, settle};
use ductor::store::rows::LiveAttempt;
use ductor::store::{Abort, Store, Tx, runs};
use ductor::words::ids::{EntryId, RunId};
use ductor::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use ductor::words::time::{Clock, ManualClock, Millis};
use serde_json::json;
use tempfile::TempDir;

use super::chance::Chance;
use super::{graphs, routing};

/// A run, and its entry if it has one, that a caller was told of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Told {
    pub(crate) run: RunId,
    pub(crate) entry: Option<EntryId>,
}

/// A change with what its caller is told.
pub(crate) type Change = Box<dyn FnMut(&mut Tx<'_>) -> Result<Option<Told>, Abort> + Send>;

const BEGIN: Millis = Millis(1_764_439_200_000);
const JOBS: [&str; 5] = ["plain", "wide", "forbid", "replace", "bare"];

/// What outlives the stores: the clock, the daemons' books, the ids that were given.
pub(crate) struct Work {
    pub(crate) clock: ManualClock,
    /// Where the locks of the daemons lie; the file does not.
    pub(crate) folder: TempDir,
    books: Vec<Book>,
    numbers: AtomicU64,
}

fn definition(name: &str, slot_pool: Option<(&str, u32)>, policy: &str, command: &str) -> Definition {
    let slots = slot_pool.map(|(slot_pool, slots)| {
        json!({"pool": slot_pool, "slots": slots, "priority": slots, "queue_timeout_ms": 60_000})
    });
    let command = json!({
        "command": command, "shell": "/bin/sh", "kill_timeout_ms": 30_000, "capture_stdout": true,
        "capture_stderr": true, "save_limit": 4096, "fails_when": {
            "nonzero_return": true, "produces_stdout": false, "produces_stderr": false, "always": false,
        },
    });
    let retry =
        json!({"retries_max": 2, "initial_delay_ms": 1_000, "maximum_delay_ms": 9_000, "multiplier": 2.0});
    let document = json!({
        "name": name, "enabled": true, "concurrency": policy,
        "policy": {"on_missed": "skip", "retry": retry},
        "steps": [{"ref": StepRef::main(), "command": command, "slots": slots}],
    });
    serde_json::from_value(document).expect("a definition")
}

fn definitions(command: &str) -> Vec<Definition> {
    vec![
        definition("plain", Some(("p", 1)), "allow", command),
        definition("wide", Some(("p", 2)), "allow", "true"),
        definition("forbid", Some(("p", 1)), "forbid", "true"),
        definition("replace", Some(("q", 1)), "replace", command),
        definition("bare", None, "forbid", "true"),
    ]
}

fn slot_pools() -> BTreeMap<SlotPoolName, BookSlots> {
    let named = |name, slots| {
        let configured = BookSlots {
            slots,
            max_queued: 30,
        };
        (SlotPoolName::new(name).expect("a name"), configured)
    };
    BTreeMap::from([named("p", 3), named("q", 1)])
}

pub(crate) fn place() -> Place {
    Place {
        host: "h".to_owned(),
        boot_id: "b".to_owned(),
        pid_namespace: 1,
        clock: ClockId("b:1".to_owned()),
    }
}

impl Work {
    /// Two daemons that know the same jobs. The ids of different seeds differ.
    pub(crate) fn new(chance: &mut Chance) -> Work {
        let book = |node: &str| Book {
            node: NodeName::new(node).expect("a name"),
            jobs: BTreeMap::new(),
            slot_pools: slot_pools(),
            raise_immediately: false,
            locks_trusted: true,
            notify: Notify::default(),
            egress: [].into(),
            pipeline_mode: PipelineMode::Linear,
            alert_secret: None,
        };
        let folder = tempfile::tempdir().expect("a temporary folder");
        std::fs::create_dir(folder.path().join("nodes")).expect("a folder for the sockets");
        Work {
            clock: ManualClock::at(BEGIN),
            folder,
            books: vec![book("n-a"), book("n-b")],
            numbers: AtomicU64::new(chance.number() >> 24),
        }
    }

    fn number(&self) -> u64 {
        self.numbers.fetch_add(1, Ordering::Relaxed)
    }

    /// Publishes the jobs, one of them with a command of some length.
    pub(crate) fn publish(&mut self, chance: &mut Chance) -> Change {
        let length = chance.one_of(&[4, 4, 300, 3_000, 20_000]);
        let definitions = definitions(&"x".repeat(length));
        for book in &mut self.books {
            book.jobs = definitions.iter().map(as_in_a_book).collect();
        }
        let node = self.books[0].node.clone();
        Box::new(move |tx| {
            publish::publish(tx, &node, &definitions, &slot_pools())?;
            graphs::publish(tx)?;
            routing::publish(tx)?;
            Ok(None)
        })
    }

    /// Something that happens next. Time passes too.
    pub(crate) fn next(&mut self, store: &Store, chance: &mut Chance) -> Change {
        self.clock.advance(chance.number() % 3_000);
        let live = store.read(runs::live).expect("a readable store");
        let wide = self.books[chance.below(2)].clone();
        let stage = graphs::Stage {
            store,
            book: &wide,
            now: self.clock.now().wall,
        };
        let desk = routing::Stage {
            store,
            now: self.clock.now().wall,
        };
        match chance.below(64) {
            44..=63 => desk.next(chance),
            20..=23 => stage.begin(RunId((u128::from(self.number()) | 1 << 96).to_be_bytes()), chance),
            24..=27 => stage.fold_one(chance),
            28..=30 => stage.say(chance),
            31..=35 => stage.poll(),
            36..=43 if !live.is_empty() => {
                let of_graphs: Vec<_> = live
                    .iter()
                    .filter(|claim| claim.2.job.as_str() == "graph")
                    .collect();
                match of_graphs.get(chance.below(of_graphs.len().max(1))) {
                    Some(claim) => stage.end(claim, chance),
                    None => self.pass(chance),
                }
            }
            0..=5 => self.start(chance),
            9..=14 if !live.is_empty() => {
                let claim = &live[chance.below(live.len())];
                if claim.2.job.as_str() == "graph" && !chance.once_in(4) {
                    return stage.end(claim, chance);
                }
                self.about_a_claim(claim, chance)
            }
            15 => stop(chance),
            16 => set_pause(&self.books[0], chance),
            17 if chance.once_in(3) => self.publish(chance),
            18 => self.retire(store),
            _ => self.pass(chance),
        }
    }

    fn start(&self, chance: &mut Chance) -> Change {
        let book = self.books[chance.below(2)].clone();
        let name = JobName::new(chance.one_of(&JOBS)).expect("a name");
        let fires = chance.once_in(3);
        let wall = self.clock.now().wall;
        let trigger = if fires {
            Trigger::Schedule { instant: wall }
        } else {
            Trigger::Manual {
                principal: "tester".to_owned(),
            }
        };
        let number = u128::from(self.number());
        let wish = Start {
            job: book.jobs[&name].clone(),
            name,
            trigger,
            node: (!fires && chance.once_in(2)).then(|| book.node.clone()),
            run: RunId((number | 1 << 96).to_be_bytes()),
            entry: EntryId(number.to_be_bytes()),
            retries: !fires && chance.once_in(2),
            boot: None,
            rules: Rules::plain(),
        };
        Box::new(move |tx| {
            Ok(match start::start(tx, &book, &wish)? {
                Started::Queued { entry, run } => Some(Told {
                    run,
                    entry: Some(entry),
                }),
                Started::Ready { run } => Some(Told { run, entry: None }),
                Started::AlreadyFired
                | Started::Paused
                | Started::LastFailed
                | Started::TooLate
                | Started::Refused(_)
                | Started::LeftToOthers
                | Started::NodeDrained(_)
                | Started::NoRoom
                | Started::StillRunning => None,
            })
        })
    }

    fn pass(&self, chance: &mut Chance) -> Change {
        let book = self.books[chance.below(2)].clone();
        let process = || {
            let pid = 100_000_000 + u32::try_from(self.number() % 1_000_000).expect("small");
            ProcessRef {
                pid,
                start_ticks: u64::from(pid),
                group: pid,
            }
        };
        let pass = Pass {
            place: place(),
            processes: (0..4).map(|_| process()).collect(),
            rules: Rules::plain(),
            leave_to: 0,
            turns: ductor::engine::changes::tasks::Turns::default(),
            shelf: ductor::engine::graphs::GraphShelf::default(),
        };
        Box::new(move |tx| {
            claim::pass(tx, &book, &pass)?;
            Ok(None)
        })
    }

    fn about_a_claim(&self, claim: &(RunId, StepRef, LiveAttempt), chance: &mut Chance) -> Change {
        let (run, step, live) = claim.clone();
        let holder = Holder {
            run,
            step,
            fence: live.claim.fence,
        };
        let outcome = chance.one_of(&[Outcome::Succeeded, Outcome::Succeeded, Outcome::Failed]);
        let attempt = Attempt {
            outcome,
            exit_code: Some(i32::from(outcome != Outcome::Succeeded)),
            reason: (outcome == Outcome::Failed).then(|| "it failed ".repeat(chance.below(60))),
            node: live.claim.node.clone(),
            pid: None,
            started_at: live.claim.claimed_at,
            ended_at: self.clock.now().wall,
            log_bytes: 0,
        };
        let entry = live.entry.clone();
        let what = chance.below(10);
        Box::new(move |tx| {
            match (what, &entry) {
                (0, _) => {
                    settle::settle(tx, &holder, reason::DAEMON_DIED, true)?;
                }
                (1, _) => {
                    complete::put_back(tx, &holder, reason::LAUNCH_INTERRUPTED, false, None)?;
                }
                (2, _) => {
                    cancel::run(tx, holder.run, "tester")?;
                }
                (3 | 4, Some(entry)) => {
                    let renewal = Renewal {
                        slot_pool: entry.slot_pool.clone(),
                        seq: entry.seq,
                        fence: holder.fence,
                    };
                    renew::renew(tx, &live.claim.node, &[renewal])?;
                }
                _ if live.job.as_str() == "graph" => {}
                _ => {
                    complete::complete(tx, &holder, &attempt, &Tails::default())?;
                }
            }
            Ok(None)
        })
    }

    /// Old runs go: their pages are used again by what comes next.
    fn retire(&self, store: &Store) -> Change {
        let keep = Keep {
            runs: 4,
            age_ms: 3_600_000,
            logs: KeepLogs::NO_LIMIT,
            audit: retire::KeepAudit::NO_LIMIT,
        };
        let now = self.clock.now().wall;
        let (due, fires) = store
            .read(|tx| {
                let due = retire::due(
                    tx,
                    keep,
                    &std::collections::BTreeMap::new(),
                    &mut retire::Published::default(),
                    now,
                    &mut None,
                )?;
                Ok((due, retire::old_fires(tx, keep, now)?))
            })
            .expect("a readable store");
        Box::new(move |tx| {
            retire::retire(tx, &due)?;
            retire::sweep(tx, keep, &fires)?;
            Ok(None)
        })
    }
}

fn as_in_a_book(definition: &Definition) -> (JobName, BookJob) {
    let job = BookJob {
        definition: Arc::new(definition.clone()),
        version: 1,
        digest: definition.digest(),
        graph: None,
        content: definition.stored().1,
        schedule: None,
        reports: Arc::default(),
    };
    (definition.name.clone(), job)
}

fn stop(chance: &mut Chance) -> Change {
    let name = JobName::new(chance.one_of(&JOBS)).expect("a name");
    Box::new(move |tx| {
        cancel::job(tx, &name, "tester")?;
        Ok(None)
    })
}

fn set_pause(book: &Book, chance: &mut Chance) -> Change {
    let (book, holds) = (book.clone(), chance.once_in(3));
    let slot_pool = SlotPoolName::new(chance.one_of(&["p", "q"])).expect("a name");
    Box::new(move |tx| {
        let wanted = holds.then(|| Pause {
            until: None,
            by: "tester".to_owned(),
            note: String::new(),
        });
        pause::slot_pool(tx, &book, &slot_pool, wanted.as_ref())?;
        Ok(None)
    })
}
