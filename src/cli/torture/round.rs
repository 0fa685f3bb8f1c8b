//! One round: daemons start, clients ask, deeds are done at their moments, all ends, and the books are compared.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::Child;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use tokio::task::JoinSet;

use super::args::Plant;
use super::evidence::Evidence;
use super::fleet::{self, Fleet};
use super::jobs;
use super::load::{Books, Customer};
use super::plan::{Act, End, Round, name_of};
use super::site::{BROKEN, Site};
use super::step::{self, Asked, Execution};
use super::verdict::{self, Past};
use crate::os::clock::boottime_ms;
use crate::store::audit::{self, Audited};
use crate::words::ids::RunId;

/// How often the daemons are looked at.
const LOOK: Duration = Duration::from_millis(20);
/// After SIGTERM a daemon has this long: more than its drain.
const STOP_MS: u64 = 20_000;
/// All daemons have said their address after this time, faults aside.
const READY_MS: u64 = 25_000;
/// Processes of a daemon that was stopped in order are gone after this time.
const GONE_MS: u64 = 5_000;
/// A second daemon of one name is refused within this time.
const TWIN_MS: u64 = 15_000;

/// What a torture works with from its first round to its last.
#[derive(Debug)]
pub(super) struct Stage {
    pub(super) site: Site,
    pub(super) program: PathBuf,
    pub(super) fleet: Fleet,
    pub(super) books: Books,
    pub(super) past: Past,
    pub(super) seed: u64,
    pub(super) daemons: usize,
    /// What a reload changes.
    pub(super) version: u64,
}

/// What came of a round.
#[derive(Debug, Clone, Default)]
pub(super) struct Outcome {
    pub(super) acknowledged: usize,
    pub(super) ended: usize,
    pub(super) executed: usize,
    pub(super) again: usize,
    /// Deeds that could not be done: their daemon was not there.
    pub(super) idle: usize,
    pub(super) took_ms: u64,
    /// What was wrong, one sentence each.
    pub(super) findings: Vec<String>,
}

/// What the books say so far.
#[derive(Debug, Clone, Copy, Default)]
struct Standing {
    acknowledged: usize,
    ended: usize,
    executed: usize,
    again: usize,
}

impl Stage {
    /// Does the round.
    pub(super) async fn round(&mut self, round: &Round) -> Outcome {
        let began = boottime_ms();
        let before = self.standing();
        let mut outcome = Outcome::default();
        self.fleet.start_all();
        let mut clients = self.open(round.number);
        for deed in &round.deeds {
            self.attend_until(began + deed.at_ms).await;
            if !self.perform(&deed.act).await {
                outcome.idle += 1;
            }
        }
        self.attend_until(began + round.length_ms).await;
        clients.abort_all();
        while clients.join_next().await.is_some() {}
        self.close(round.end).await;
        outcome.findings = self.compare(None);
        if let Some(fraction) = round.damage {
            let audited = audit::audit_files(&self.site.state()).ok();
            if let Some(audited) = audited {
                let told = super::damage::trial(self, fraction, &audited).await;
                outcome.findings.extend(told);
            }
        }
        let after = self.standing();
        outcome.acknowledged = after.acknowledged - before.acknowledged;
        outcome.ended = after.ended - before.ended;
        outcome.executed = after.executed - before.executed;
        outcome.again = after.again - before.again;
        outcome.took_ms = boottime_ms() - began;
        outcome
    }

    fn standing(&self) -> Standing {
        let evidence = Evidence::of_folder(&self.site.evidence()).unwrap_or_default();
        let (executed, again) = evidence.counts();
        Standing {
            acknowledged: self
                .books
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .starts
                .len(),
            ended: self.past.ended(),
            executed,
            again,
        }
    }

    /// As many clients as daemons, and one more.
    fn open(&self, round: u64) -> JoinSet<()> {
        let mut clients = JoinSet::new();
        for number in 0..=self.daemons {
            let name = format!("r{round}c{number}");
            let client = Customer::new(&self.fleet.doors(), &self.books, self.seed, name);
            clients.spawn(client.run());
        }
        clients
    }

    /// Looks after the daemons until that moment.
    pub(super) async fn attend_until(&mut self, boot_ms: u64) {
        loop {
            self.fleet.look();
            let left = boot_ms.saturating_sub(boottime_ms());
            if left == 0 {
                return;
            }
            tokio::time::sleep(LOOK.min(Duration::from_millis(left))).await;
        }
    }

    /// Looks after the daemons until it is so; false if it is not in time.
    pub(super) async fn attend_while(&mut self, for_ms: u64, mut so: impl FnMut(&mut Stage) -> bool) -> bool {
        let end = boottime_ms() + for_ms;
        loop {
            self.fleet.look();
            if so(self) {
                return true;
            }
            if boottime_ms() >= end {
                return false;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// False if it could not be done.
    async fn perform(&mut self, act: &Act) -> bool {
        match *act {
            Act::Kill { daemon, down_ms } => self.fleet.kill(daemon, Some(down_ms)),
            Act::KillAll { down_ms } => {
                for daemon in 0..self.daemons {
                    self.fleet.kill(daemon, Some(down_ms));
                }
            }
            Act::Freeze { daemon, for_ms } => self.fleet.freeze(daemon, for_ms),
            Act::Restart { daemon, down_ms } => self.fleet.stop(daemon, Some(down_ms)),
            // On a full disk nobody can change the file, and a refusal cannot be written down.
            Act::Reload | Act::BrokenReload | Act::Twin { .. } if self.fleet.is_full() => return false,
            Act::Twin { daemon } => return self.twin(daemon).await,
            Act::Reload => {
                self.version += 1;
                self.write_config();
                self.fleet.reload();
            }
            Act::BrokenReload => return self.broken_reload().await,
            Act::Fault {
                daemon,
                point,
                action,
                for_ms,
            } => self.fleet.plan(daemon, &format!("{point}={action}\n"), for_ms),
            Act::KillAt { daemon, point } => {
                self.fleet.plan(daemon, &format!("{point}=once:kill\n"), 3_000);
            }
            Act::Clock {
                daemon,
                offset_ms,
                for_ms,
            } => {
                let line = format!("clock.offset={offset_ms:+}\n");
                self.fleet.plan(daemon, &line, for_ms);
            }
            Act::LocksLie { daemon } => self.fleet.mistrust_locks(daemon),
            Act::Fill { for_ms } => self.fleet.fill(for_ms),
        }
        true
    }

    pub(super) fn write_config(&mut self) {
        let program = self.program.display().to_string();
        let text = jobs::configuration(&self.site, &program, self.version);
        if let Err(error) = self.site.write_config(&text) {
            self.fleet
                .findings
                .push(format!("the configuration cannot be written: {error}"));
        }
    }

    /// A file that no daemon takes: all go on with what they have.
    async fn broken_reload(&mut self) -> bool {
        // One that is just reading it would rightly refuse to start.
        if self.fleet.any_starting() {
            return false;
        }
        if self.site.write_config(BROKEN).is_ok() {
            self.fleet.reload();
            tokio::time::sleep(Duration::from_millis(300)).await;
        }
        self.write_config();
        self.fleet.reload();
        true
    }

    /// A second daemon of that name must be refused with its sentence.
    async fn twin(&mut self, daemon: usize) -> bool {
        if !self.fleet.is_ready(daemon) {
            return false;
        }
        let name = name_of(daemon);
        let log = self.site.log("second", "log");
        std::fs::remove_file(&log).ok();
        let spawned = fleet::spawn_as(&self.site, &self.program, &name, "second", None);
        let Ok((mut child, _)) = spawned else { return false };
        let status = ended_within(&mut child, TWIN_MS).await;
        let said = std::fs::read_to_string(&log).unwrap_or_default();
        let sentence = format!("node name '{name}' is in use by a running daemon");
        let refused = status.and_then(|status| status.code()) == Some(5) && said.contains(&sentence);
        if !refused {
            let how = status.map_or_else(|| "it ran".to_owned(), |status| status.to_string());
            self.fleet.findings.push(format!(
                "a second daemon {name} was not refused with its sentence: {how}; see logs/second.log"
            ));
        }
        true
    }

    /// Ends all daemons in that way.
    pub(super) async fn close(&mut self, end: End) {
        self.fleet.relent();
        match end {
            End::Kill => {
                for daemon in 0..self.daemons {
                    self.fleet.kill(daemon, None);
                }
            }
            End::Stop => {
                for daemon in 0..self.daemons {
                    self.fleet.stop(daemon, None);
                }
                let ended = self.attend_while(STOP_MS, |stage| stage.fleet.all_gone()).await;
                if !ended {
                    self.fleet.findings.push(format!(
                        "a daemon did not end within {} s of SIGTERM",
                        STOP_MS / 1_000
                    ));
                    for daemon in 0..self.daemons {
                        self.fleet.kill(daemon, None);
                    }
                }
                self.expect_nobody(ended).await;
            }
        }
        self.fleet.expect_health();
    }

    /// After an orderly end no process may be left.
    async fn expect_nobody(&mut self, orderly: bool) {
        let site = self.site.clone();
        let gone = self.attend_while(GONE_MS, |_| site.processes().is_empty()).await;
        if orderly && !gone {
            let left: Vec<String> = site
                .processes()
                .iter()
                .map(|process| process.pid.to_string())
                .collect();
            self.fleet.findings.push(format!(
                "processes outlived the daemons that were stopped: {}",
                left.join(", ")
            ));
        }
    }

    /// Waits until every daemon has said its address.
    pub(super) async fn ready(&mut self) -> bool {
        self.fleet.start_all();
        self.attend_while(READY_MS, |stage| stage.fleet.all_ready()).await
    }

    /// Holds the books against each other; all daemons are gone. What is `due` must have ended.
    pub(super) fn compare(&mut self, due: Option<&BTreeSet<RunId>>) -> Vec<String> {
        let mut findings = std::mem::take(&mut self.fleet.findings);
        let audited = match audit::audit_files(&self.site.state()) {
            Ok(audited) => audited,
            Err(error) => {
                findings.push(format!("the store cannot be read: {error}"));
                return findings;
            }
        };
        findings.extend(self.compare_with(&audited, due));
        findings
    }

    fn compare_with(&mut self, audited: &Audited, due: Option<&BTreeSet<RunId>>) -> Vec<String> {
        // After the audit: what has begun since then may run, and what had ended may not.
        let evidence = match Evidence::of_folder(&self.site.evidence()) {
            Ok(evidence) => evidence,
            Err(error) => return vec![format!("the evidence cannot be read: {error}")],
        };
        let books = Arc::clone(&self.books);
        let books = books.lock().unwrap_or_else(PoisonError::into_inner);
        verdict::judge(&mut self.past, &books, &evidence, audited, due)
    }
}

/// What `--plant` does: each must be found, or this test is worth nothing.
impl Stage {
    /// Does something wrong on purpose, behind the back of the daemons.
    pub(super) fn plant(&mut self, plant: Plant) {
        let asked = |slots: u32, width: u32| Asked {
            folder: self.site.evidence(),
            slots: Some(("planted".to_owned(), slots, width)),
            alone: false,
            flaky: false,
        };
        let run = RunId::fresh();
        let execution = |run: RunId, fence: u64| Execution {
            run: run.to_string(),
            job: "planted".to_owned(),
            node: "nobody".to_owned(),
            fence,
            attempt: 1,
            scheduled_at: "-".to_owned(),
        };
        let mut work: Vec<(Asked, Execution)> = Vec::new();
        match plant {
            Plant::LostStart => {
                let mut books = self.books.lock().unwrap_or_else(PoisonError::into_inner);
                books.accepted("planted", "small", run, None);
            }
            Plant::Overlap => work.extend([1, 2].map(|fence| (asked(9, 1), execution(run, fence)))),
            Plant::SlotOverrun => {
                work.extend([1, 2].map(|fence| (asked(3, 2), execution(RunId::fresh(), fence))));
            }
            Plant::OldFence => {
                let twice = (asked(9, 1), execution(run, 7));
                step::execute(&twice.0, &twice.1, Duration::ZERO).ok();
                work.push(twice);
            }
        }
        std::thread::scope(|scope| {
            for (asked, execution) in &work {
                scope.spawn(|| step::execute(asked, execution, Duration::from_millis(500)));
            }
        });
    }
}

/// The status of a child that ends in time; one that does not is killed.
pub(super) async fn ended_within(child: &mut Child, for_ms: u64) -> Option<std::process::ExitStatus> {
    let end = boottime_ms() + for_ms;
    loop {
        match child.try_wait() {
            Ok(Some(status)) => return Some(status),
            Ok(None) if boottime_ms() < end => tokio::time::sleep(LOOK).await,
            Ok(None) | Err(_) => {
                child.kill().ok();
                child.wait().ok();
                return None;
            }
        }
    }
}
