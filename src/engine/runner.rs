//! One claim from its gate to its record: look at the lease, run the command, write the completion until it is written.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;

use super::book::Book;
use super::changes::claim::{self, Claimed, Pass, Passed};
use super::changes::complete::{self, Holder, Recorded};
use super::changes::graph::EndedClaim;
use super::changes::maintain::Rules;
use super::changes::renew::Renewal;
use super::changes::task_marks;
use super::core::Engine;
use super::live::{HeldLease, LiveHandle, marks_of};
use super::metrics::{SlotPoolJob, SlotPoolLabel, TypeOutcome, WorkflowLabel, in_seconds};
use super::warm::process_of;
use crate::domain::report::Tails;
use crate::domain::slots::entry::reason;
use crate::domain::workflow::attempt::{Attempt, Outcome};
use crate::domain::workflow::definition::{CommandStep, Definition};
use crate::domain::workflow::graph::kinds::StepKind;
use crate::domain::workflow::graph::tick::{AttemptEnd, Fact, StepError, Taken};
use crate::domain::workflow::run::Run;
use crate::store::{Abort, Tx, logs};
use crate::words::limits;
use crate::words::names::{SlotPoolName, StepRef};
use crate::words::time::Millis;
use crate::worker::command::{self, Ended, Plan, Stop};
use crate::worker::process::{Shim, Usage};
use crate::worker::step_files::StepFiles;

/// A claim inside another change: what that change makes possible starts in the same commit.
#[derive(Debug, Clone)]
pub struct Quick {
    book: Arc<Book>,
    pass: Pass,
    slot_pool: Option<SlotPoolName>,
}

impl Quick {
    /// With so many processes at most as wait already. If the change fails, the processes must be dropped.
    pub fn prepare(engine: &Engine, slot_pool: Option<SlotPoolName>, most: usize) -> (Vec<Shim>, Quick) {
        let count = if engine.is_stopping() { 0 } else { most };
        let shims = engine.warm.take_waiting(count);
        let rules = engine.rules();
        let pass = Pass {
            place: engine.place.clone(),
            processes: shims.iter().map(process_of).collect(),
            rules,
            leave_to: engine.peers.working(),
            turns: engine.turns.clone(),
            shelf: engine.graphs.clone(),
        };
        let book = engine.book();
        (
            shims,
            Quick {
                book,
                pass,
                slot_pool,
            },
        )
    }

    /// Without any: nothing is claimed.
    pub fn nothing(engine: &Engine) -> (Vec<Shim>, Quick) {
        let pass = Pass {
            place: engine.place.clone(),
            processes: Vec::new(),
            rules: Rules {
                expiry_held: true,
                no_room: false,
            },
            leave_to: 0,
            turns: engine.turns.clone(),
            shelf: engine.graphs.clone(),
        };
        let book = engine.book();
        (
            Vec::new(),
            Quick {
                book,
                pass,
                slot_pool: None,
            },
        )
    }

    /// Claims what the processes allow, in one slot pool or among ready steps.
    pub fn claim(&self, tx: &mut Tx<'_>) -> Result<Passed, Abort> {
        if self.pass.processes.is_empty() {
            return Ok(Passed::default());
        }
        claim::quick_pass(tx, &self.book, &self.pass, self.slot_pool.as_ref())
    }
}

/// Acts on what a pass has written: instances make way, claims get their processes.
pub fn act(engine: &Engine, passed: Passed, shims: &mut Vec<Shim>) {
    for fence in passed.replaced {
        let stop = Stop::Requested("replaced by a newer instance".to_owned());
        engine.live.stop(fence, &stop);
    }
    for claimed in passed.claimed {
        let process = claimed.claim.process;
        let place = shims.iter().position(|shim| Some(process_of(shim)) == process);
        // A claim without its process would be found and put back by the hunt.
        let Some(place) = place else { continue };
        let shim = shims.swap_remove(place);
        let waited = claimed.claim.claimed_at.since(claimed.since);
        let what_for = if claimed.slots.is_some() { "slots" } else { "ready" };
        engine.metrics.count_wait(what_for, in_seconds(waited));
        if let Some((entry, _)) = &claimed.slots {
            let label = SlotPoolLabel {
                slot_pool: engine.metrics.slot_pool_name(entry.slot_pool.as_str()),
            };
            engine
                .metrics
                .slot_wait_seconds
                .get_or_create(&label)
                .observe(in_seconds(waited));
        }
        spawn(engine, claimed, shim);
    }
}

/// Takes over a claim and its waiting process; returns at once.
pub fn spawn(engine: &Engine, claimed: Claimed, shim: Shim) {
    let (stop, stops) = watch::channel(None);
    let (sizes, log_size) = watch::channel(0);
    let lease = claimed.slots.as_ref().map(|(entry, lease)| HeldLease {
        renewal: Renewal {
            slot_pool: entry.slot_pool.clone(),
            seq: entry.seq,
            fence: claimed.claim.fence,
        },
        entry: entry.id,
        until: lease.until,
        renewing: true,
        lost: false,
    });
    let handle = LiveHandle {
        run: claimed.run.id,
        step: claimed.step.clone(),
        job: claimed.run.definition.clone(),
        number: claimed.number,
        claimed_at: claimed.claim.claimed_at,
        stop,
        log_size,
        lease,
    };
    engine.live.add(claimed.claim.fence, handle);
    let engine = engine.clone();
    tokio::spawn(async move {
        let fence = claimed.claim.fence;
        Runner {
            engine: engine.clone(),
            claimed,
        }
        .run(shim, stops, sizes)
        .await;
        engine.live.remove(fence);
        engine.wake.notify_one();
    });
}

struct Runner {
    engine: Engine,
    claimed: Claimed,
}

impl Runner {
    fn holder(&self) -> Holder {
        Holder {
            run: self.claimed.run.id,
            step: self.claimed.step.clone(),
            fence: self.claimed.claim.fence,
        }
    }

    async fn run(self, shim: Shim, stops: watch::Receiver<Option<Stop>>, sizes: watch::Sender<u64>) {
        if self.engine.store.faults().check("gate.before").is_err() || !self.lease_is_long_enough() {
            drop(shim);
            self.put_back(reason::LAUNCH_INTERRUPTED, None).await;
            return;
        }
        let definition: Definition = match self.claimed.definition.read() {
            Ok(definition) => definition,
            Err(error) => {
                drop(shim);
                let started_at = self.engine.now().wall;
                let ended = failed(format!(
                    "{}: the definition cannot be read: {error}",
                    reason::LAUNCH_FAILED
                ));
                self.record(&ended, started_at).await;
                return;
            }
        };
        let Some(step) = command_of(&definition, &self.claimed.step) else {
            drop(shim);
            let started_at = self.engine.now().wall;
            let why = format!("{}: the definition has no such command", reason::LAUNCH_FAILED);
            self.record(&failed(why), started_at).await;
            return;
        };
        let marks = match self.task_marks(definition).await {
            Ok(marks) => marks,
            Err(why) => {
                drop(shim);
                let started_at = self.engine.now().wall;
                let why = format!("{}: {why}", reason::LAUNCH_FAILED);
                self.record(&failed(why), started_at).await;
                return;
            }
        };
        let mut plan = self.plan(step);
        plan.marks.extend(marks);
        let started_at = self.engine.now().wall;
        let ended = command::execute(shim, plan, stops, sizes).await;
        for pid in &ended.stuck {
            tracing::error!(job = %self.claimed.run.definition, run_id = %self.claimed.run.id, "process {pid} does not end");
        }
        self.stop_renewing();
        self.record(&ended, started_at).await;
    }

    /// What the command of a graph's step is told about its place.
    async fn task_marks(&self, definition: Definition) -> Result<Vec<(String, String)>, String> {
        if !definition.is_graph() {
            return Ok(Vec::new());
        }
        let blobs = self.engine.store.blobs();
        let (run, step) = (self.claimed.run.clone(), self.claimed.step.clone());
        let read = self.engine.read(move |tx| {
            let place = (&run, &step);
            Ok(task_marks::marks(tx, &blobs, &definition, place))
        });
        read.await.map_err(|error| error.to_string())?
    }

    /// The claim may have waited long for its commit: less than the margin left is too little to begin.
    fn lease_is_long_enough(&self) -> bool {
        let Some((entry, lease)) = &self.claimed.slots else {
            return true;
        };
        let left = self.engine.now().boot.until(lease.until);
        if left >= limits::LEASE_MARGIN_MS {
            return true;
        }
        tracing::warn!(entry_id = %entry.id, fence = self.claimed.claim.fence, "pool lease was lost before launch");
        false
    }

    fn plan(&self, step: CommandStep) -> Plan {
        let run = &self.claimed.run;
        let mut marks = vec![
            ("DUCTOR_RUN_ID".to_owned(), run.id.to_string()),
            ("DUCTOR_JOB_NAME".to_owned(), run.definition.to_string()),
            ("DUCTOR_ATTEMPT".to_owned(), self.claimed.number.to_string()),
            ("DUCTOR_NODE".to_owned(), self.engine.node.to_string()),
        ];
        let scheduled_at = run.trigger.scheduled_at().unwrap_or(run.created_at);
        marks.push(("DUCTOR_SCHEDULED_AT".to_owned(), scheduled_at.to_string()));
        marks.extend(marks_of(
            self.claimed.slots.as_ref().map(|(entry, _)| entry.id),
            self.claimed.claim.fence,
        ));
        Plan {
            step,
            marks,
            log: logs::path_of(
                &self.engine.directory.logs(),
                run.id,
                &self.claimed.step,
                self.claimed.number,
                self.claimed.claim.fence,
            ),
            log_bytes_max: self.engine.log_bytes_max,
            files: run.graph.is_some().then(|| StepFiles {
                folder: logs::files_of(
                    &self.engine.directory.logs(),
                    run.id,
                    &self.claimed.step,
                    self.claimed.number,
                    self.claimed.claim.fence,
                ),
                input: None,
            }),
        }
    }

    /// The process is gone: from here the lease is only as good as the next try of the completion.
    fn stop_renewing(&self) {
        self.engine
            .live
            .update_lease(self.claimed.claim.fence, |lease| lease.renewing = false);
    }

    async fn record(&self, ended: &Ended, started_at: Millis) {
        let attempt = Attempt {
            outcome: ended.outcome,
            exit_code: ended.exit_code,
            reason: ended.reason.clone(),
            node: self.engine.node.clone(),
            pid: self.claimed.claim.process.map(|process| process.pid),
            started_at,
            ended_at: self.engine.now().wall,
            log_bytes: ended.log_bytes,
        };
        if attempt.outcome == Outcome::Lost {
            let why = match attempt.reason.as_deref() {
                Some(reason::LEASE_LOST) => reason::LEASE_LAPSED,
                Some(_) | None => reason::DAEMON_STOPPED,
            };
            self.put_back(why, Some(attempt)).await;
            return;
        }
        if self.claimed.run.graph.is_some() {
            self.tell_run(ended, attempt).await;
            return;
        }
        let holder = self.holder();
        let (to_write, tails) = (attempt.clone(), ended.tails.clone());
        let recorded = self
            .until_written(move |tx| complete::complete(tx, &holder, &to_write, &tails))
            .await;
        self.engine.report_wake.notify_one();
        if let Some(run) = recorded {
            self.count(&attempt, &run, ended.usage);
            // A retry may be due soon, and a caught-up run gives way to the next one.
            self.engine.wake_follow_ups.notify_one();
        }
    }

    /// The coordinator decides what the end means for the run, and writes both in one change.
    async fn tell_run(&self, ended: &Ended, attempt: Attempt) {
        let definition: Option<Definition> = self.claimed.definition.read().ok();
        let is_sensor = definition.is_some_and(|definition| is_sensor(&definition, &self.claimed.step));
        let reason = || {
            attempt
                .reason
                .clone()
                .unwrap_or_else(|| attempt.outcome.word().to_owned())
        };
        let end = match attempt.outcome {
            Outcome::Succeeded => {
                // It was parsed when it was taken.
                let output = ended.output.as_ref().and_then(|text| text.read().ok());
                AttemptEnd::Succeeded(output.map(Arc::new))
            }
            Outcome::Cancelled | Outcome::Lost => AttemptEnd::Cancelled(reason()),
            Outcome::TimedOut => AttemptEnd::Failed(StepError::new("timeout.attempt", reason())),
            Outcome::Failed if is_sensor => AttemptEnd::NotMet,
            Outcome::Failed => {
                let code = attempt.exit_code.unwrap_or_default();
                AttemptEnd::Failed(StepError::new(format!("command.exit_{code}"), reason()))
            }
        };
        let fact = Fact::Attempt {
            step: self.claimed.step.clone(),
            fence: self.claimed.claim.fence,
            end,
        };
        let run = self.claimed.run.id;
        let met = !matches!(
            fact,
            Fact::Attempt {
                end: AttemptEnd::NotMet,
                ..
            }
        );
        let claim = EndedClaim {
            holder: self.holder(),
            attempt: met.then(|| attempt.clone()),
        };
        let told = self.engine.mailboxes.tell(run, fact, Some(claim));
        if told.await == Ok(Taken::Stale) {
            tracing::warn!(run_id = %run, fence = self.claimed.claim.fence, "a completion came too late: the claim has ended");
        }
        self.count(&attempt, &self.claimed.run, ended.usage);
    }

    /// After a lost lease the row has another owner already, and this changes nothing.
    async fn put_back(&self, why: &'static str, lost: Option<Attempt>) {
        let holder = self.holder();
        self.until_written(move |tx| complete::put_back(tx, &holder, why, false, lost.as_ref()))
            .await;
    }

    /// Writes a word about the claim until it is written or the claim has another owner. What can start with the slots that
    /// it frees is claimed in the same commit.
    async fn until_written<F>(&self, change: F) -> Option<Run>
    where
        F: Fn(&mut Tx<'_>) -> Result<Recorded, Abort> + Send + Sync + 'static,
    {
        let change = Arc::new(change);
        let entry = self.claimed.slots.as_ref().map(|(entry, _)| entry.id);
        let name = entry.map_or_else(|| self.claimed.run.id.to_string(), |id| id.to_string());
        let mut pause = Duration::from_millis(100);
        let mut told = false;
        loop {
            match self.write(&change).await {
                Ok(Recorded::Done(run)) => return Some(*run),
                Ok(Recorded::Stale) => {
                    tracing::warn!(
                        fence = self.claimed.claim.fence,
                        "pool completion could not be recorded for {name}: claim has ended"
                    );
                    return None;
                }
                Err(error) => {
                    self.stop_renewing();
                    if !told {
                        tracing::warn!(cause = %error, "pool completion could not be recorded for {name}; retrying");
                        told = true;
                    }
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(Duration::from_secs(1));
        }
    }

    async fn write<F>(&self, change: &Arc<F>) -> Result<Recorded, String>
    where
        F: Fn(&mut Tx<'_>) -> Result<Recorded, Abort> + Send + Sync + 'static,
    {
        let engine = &self.engine;
        let point = engine.store.faults().check("complete.before");
        point.map_err(|error| error.to_string())?;
        let slot_pool = self
            .claimed
            .slots
            .as_ref()
            .map(|(entry, _)| entry.slot_pool.clone());
        let (mut shims, quick) = Quick::prepare(engine, slot_pool, 1);
        let change = Arc::clone(change);
        let written = engine.store.change("complete", move |tx| {
            let recorded = change(tx)?;
            let passed = match &recorded {
                Recorded::Done(_) => quick.claim(tx)?,
                Recorded::Stale => Passed::default(),
            };
            Ok((recorded, passed))
        });
        let (recorded, passed) = written.await.map_err(|error| error.to_string())?;
        act(engine, passed, &mut shims);
        engine.warm.give_back(shims);
        Ok(recorded)
    }

    fn count(&self, attempt: &Attempt, run: &Run, usage: Usage) {
        let metrics = &self.engine.metrics;
        let workflow = metrics.job_name(run.definition.as_str());
        let outcome = TypeOutcome {
            r#type: "command".to_owned(),
            outcome: attempt.outcome.word().to_owned(),
        };
        metrics.attempts.get_or_create(&outcome).inc();
        metrics.count_usage(run.definition.as_str(), usage.cpu_ms, usage.memory_peak_bytes);
        if run.state.is_terminal() {
            let took = attempt
                .ended_at
                .since(run.state.started_at().unwrap_or(attempt.started_at));
            metrics
                .run_seconds
                .get_or_create(&WorkflowLabel {
                    workflow: workflow.clone(),
                })
                .observe(in_seconds(took));
        }
        if let Some((entry, _)) = &self.claimed.slots {
            let slot_pool = metrics.slot_pool_name(entry.slot_pool.as_str());
            let held = attempt.ended_at.since(self.claimed.claim.claimed_at);
            let label = SlotPoolJob {
                slot_pool: slot_pool.clone(),
                job: workflow,
            };
            metrics
                .slot_held_seconds
                .get_or_create(&label)
                .inc_by(in_seconds(held) * f64::from(entry.slots));
        }
    }
}

/// The command of a step: of a job its only one.
fn command_of(definition: &Definition, step: &StepRef) -> Option<CommandStep> {
    let Some(document) = &definition.graph else {
        return definition.job_step().map(|step| step.command.clone());
    };
    let (name, _) = step.split_instance()?;
    document.find(&name)?.kind.command().cloned()
}

fn is_sensor(definition: &Definition, step: &StepRef) -> bool {
    let document = definition.graph.as_ref();
    let name = step.split_instance().map(|(name, _)| name);
    let found = document
        .zip(name)
        .and_then(|(document, name)| document.find(&name));
    found.is_some_and(|step| matches!(step.kind, StepKind::Sensor(_)))
}

fn failed(reason: String) -> Ended {
    Ended {
        outcome: Outcome::Failed,
        exit_code: Some(127),
        reason: Some(reason),
        log_bytes: 0,
        stuck: Vec::new(),
        tails: Tails::default(),
        usage: Usage::default(),
        output: None,
    }
}
