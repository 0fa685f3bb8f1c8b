//! Schedules: sleeps until the next due moment, fires it, and records every moment that did not become a run.
//!
//! No leader is needed: a fire's key is (job, instant), and whoever writes it first has fired it. What was due while
//! nobody could fire is found in the store, from the job's mark, and handed to the catch-up.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::changes::catch_up::{self, Until, fire_node};
use super::changes::retry;
use super::changes::start::{self, Start, Started};
use super::core::{Deferred, Engine, is_surely_undone};
use super::metrics::{JobOutcome, in_seconds};
use crate::domain::workflow::definition::ScheduleText;
use crate::domain::workflow::run::Trigger;
use crate::engine::book::{Book, BookJob};
use crate::store::rows::Boot;
use crate::store::{Abort, ChangeError};
use crate::words::ids::{EntryId, RunId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::{Millis, Now};

/// The ten seconds in which a fire is late and not missed hold at most that many moments.
const LATE_MOMENTS_MAX: usize = 12;
/// Jobs whose missed moments are looked for in one change.
const DETECTED_PER_CHANGE: usize = 100;

/// A fire that the store could not record yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unrecorded {
    job: JobName,
    instant: Millis,
    node: String,
    word: String,
}

/// The next fire of a job, and of which schedule that was said.
#[derive(Debug, Clone)]
struct Next {
    at: Millis,
    text: Option<ScheduleText>,
}

/// A fire that is due.
#[derive(Debug, Clone)]
struct Due {
    name: JobName,
    job: BookJob,
    instant: Millis,
    node: String,
    boot: Option<Boot>,
}

/// The loop.
#[derive(Debug)]
pub struct Scheduler {
    engine: Engine,
    /// The book that `next` was made from.
    book: Arc<Book>,
    next: BTreeMap<JobName, Next>,
    /// Jobs that may have missed moments up to here, until the store has said so.
    undetected: BTreeMap<JobName, Until>,
    /// The same for the last seconds before a book was taken over: another daemon may still be firing them.
    undetected_later: BTreeMap<JobName, Millis>,
    /// Fires that were left to daemons with another configuration.
    left: Vec<(JobName, Millis)>,
    unrecorded: Vec<Unrecorded>,
    beyond: BTreeMap<(JobName, String), u64>,
    boots_fired: bool,
}

impl Scheduler {
    /// A scheduler that begins now: the next fire of each job is strictly in the future, and what was due before is missed.
    pub fn new(engine: Engine) -> Scheduler {
        let mut scheduler = Scheduler {
            book: engine.book(),
            engine,
            next: BTreeMap::new(),
            undetected: BTreeMap::new(),
            undetected_later: BTreeMap::new(),
            left: Vec::new(),
            unrecorded: Vec::new(),
            beyond: BTreeMap::new(),
            boots_fired: false,
        };
        let book = Arc::clone(&scheduler.book);
        scheduler.adopt(book, scheduler.engine.now().wall);
        scheduler
    }

    /// Fires until the daemon stops.
    pub async fn run(mut self) {
        while !self.engine.is_stopping() {
            let now = self.engine.now();
            self.tick(now).await;
            self.engine.pulse.scheduler_turns(now);
            let wait = self.sleep_time(self.engine.now());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.engine.until_stopping() => {}
            }
        }
        self.give_up_unrecorded();
    }

    /// Until the next due moment, a second at most, so that a stepped clock and another book are noticed.
    fn sleep_time(&self, now: Now) -> Duration {
        let soonest = self.next.values().map(|next| next.at).min();
        let ms = soonest.map_or(limits::PASS_PERIOD_MS, |next| next.since(now.wall));
        Duration::from_millis(ms.clamp(1, limits::PASS_PERIOD_MS))
    }

    /// Takes a book over. A schedule that is the same keeps its next fire; any other one begins strictly after `now`.
    fn adopt(&mut self, book: Arc<Book>, now: Millis) {
        let mut next = BTreeMap::new();
        // Whoever starts after this look fires later moments than `now`.
        let others_live = self.engine.others_live();
        let recent = Millis(now.0.saturating_sub_unsigned(limits::FIRE_LATE_MS + 1));
        for (name, job) in &book.jobs {
            let Some(schedule) = job.schedule.as_ref().filter(|_| job.definition.enabled) else {
                continue;
            };
            let text = job.definition.schedule.clone();
            let kept = self.next.remove(name).filter(|kept| kept.text == text);
            let Some(kept) = kept else {
                if others_live && fire_node(&book, job).is_empty() {
                    let part = Until {
                        at: recent,
                        known_from: now,
                    };
                    self.undetected.insert(name.clone(), part);
                    self.undetected_later.insert(name.clone(), now);
                } else {
                    self.undetected.insert(name.clone(), Until::now(now));
                }
                if let Some(instant) = schedule.next_after(now.0) {
                    let at = Millis(instant);
                    next.insert(name.clone(), Next { at, text });
                }
                continue;
            };
            next.insert(name.clone(), kept);
        }
        self.undetected.retain(|name, _| book.jobs.contains_key(name));
        self.undetected_later
            .retain(|name, _| book.jobs.contains_key(name));
        self.next = next;
        self.book = book;
    }

    /// The next fire of a job, for tests.
    #[cfg(test)]
    pub(super) fn next_of(&self, name: &JobName) -> Option<Millis> {
        self.next.get(name).map(|next| next.at)
    }

    /// Fires everything that is due at `now`.
    pub async fn tick(&mut self, now: Now) {
        let book = self.engine.book();
        if !Arc::ptr_eq(&book, &self.book) {
            self.adopt(Arc::clone(&book), now.wall);
        }
        let due = self.due(&book, now.wall);
        self.note_later(now.wall);
        self.detect(&book).await;
        self.judge_left(&book, now.wall).await;
        if !self.boots_fired {
            self.boots_fired = true;
            let boots = self.boots(&book, now);
            self.fire_all(&book, boots).await;
        }
        self.fire_all(&book, due).await;
        self.write_unrecorded().await;
    }

    /// The moments up to `now` that are not too late; what is, is left to the detection.
    fn due(&mut self, book: &Arc<Book>, now: Millis) -> Vec<Due> {
        let mut due = Vec::new();
        let too_late = Millis(now.0.saturating_sub_unsigned(limits::FIRE_LATE_MS + 1));
        for (name, next) in &mut self.next {
            if next.at > now {
                continue;
            }
            let Some(job) = book.jobs.get(name) else { continue };
            let Some(schedule) = &job.schedule else { continue };
            if next.at <= too_late {
                self.undetected.insert(name.clone(), Until::now(too_late));
            }
            let from = (next.at.0 - 1).max(too_late.0);
            let node = fire_node(book, job);
            for instant in schedule.instants(from, now.0, LATE_MOMENTS_MAX) {
                due.push(Due {
                    name: name.clone(),
                    job: job.clone(),
                    instant: Millis(instant),
                    node: node.clone(),
                    boot: None,
                });
            }
            next.at = schedule.next_after(now.0).map_or(Millis(i64::MAX), Millis);
        }
        due
    }

    /// Jobs that run once for each boot of the machine.
    fn boots(&self, book: &Arc<Book>, now: Now) -> Vec<Due> {
        let instant = Millis(now.wall.0.saturating_sub_unsigned(now.boot.0));
        let jobs = book.jobs.iter().filter(|(_, job)| {
            job.definition.enabled && job.schedule.as_ref().is_some_and(|schedule| schedule.is_reboot())
        });
        jobs.map(|(name, job)| Due {
            name: name.clone(),
            job: job.clone(),
            instant,
            node: fire_node(book, job),
            boot: Some(Boot {
                host: self.engine.place.host.clone(),
                boot_id: self.engine.place.boot_id.clone(),
                digest: job.digest.clone(),
            }),
        })
        .collect()
    }

    /// What another daemon could have fired until now, it fires no more.
    fn note_later(&mut self, now: Millis) {
        let over = |until: &Millis| now.since(*until) > limits::FIRE_LATE_MS;
        let undetected = &mut self.undetected;
        self.undetected_later.retain(|name, until| {
            if over(until) {
                let part = undetected.entry(name.clone()).or_insert(Until::now(*until));
                if part.at < *until {
                    *part = Until::now(*until);
                }
            }
            !over(until)
        });
    }

    /// Has the store find what was missed. What it cannot say now is asked again, before anything newer is fired.
    async fn detect(&mut self, book: &Arc<Book>) {
        while !self.undetected.is_empty() {
            let part: Vec<(JobName, Until)> = self
                .undetected
                .iter()
                .take(DETECTED_PER_CHANGE)
                .map(|(name, until)| (name.clone(), *until))
                .collect();
            let (asked, for_change) = (part.clone(), Arc::clone(book));
            let found = self.engine.store.change("missed fires", move |tx| {
                let mut found = Vec::with_capacity(part.len());
                for (name, until) in &part {
                    found.push(catch_up::detect(tx, &for_change, name, *until)?);
                }
                Ok(found)
            });
            let Ok(found) = found.await else { return };
            for ((name, _), found) in asked.iter().zip(found) {
                self.undetected.remove(name);
                self.missed(name, found);
            }
        }
    }

    fn missed(&self, name: &JobName, found: catch_up::Found) {
        let catch_up::Found {
            owed,
            skipped,
            unlisted,
        } = found;
        if owed > 0 {
            tracing::info!(job = %name, "Job {name}: {} will run now, one after the other", counted(owed as u64, "missed fire"));
            self.engine.wake_follow_ups.notify_one();
        }
        if skipped > 0 {
            tracing::warn!(job = %name, "Job {name}: {} skipped (onMissed)", counted(skipped as u64, "missed fire"));
            self.count_many(name, "skipped", skipped as u64);
        }
        if unlisted > 0 {
            tracing::warn!(job = %name, "Job {name}: {} not listed one by one", counted(unlisted, "older missed fire"));
            self.count_many(name, "skipped", unlisted);
        }
    }

    /// All fires of one moment at once: they share commits.
    async fn fire_all(&mut self, book: &Arc<Book>, due: Vec<Due>) {
        let mut tasks = Vec::with_capacity(due.len());
        for each in due {
            let engine = self.engine.clone();
            let book = Arc::clone(book);
            tasks.push(tokio::spawn(async move {
                let outcome = fire(&engine, &book, &each).await;
                (each, outcome)
            }));
        }
        for task in tasks {
            match task.await {
                Ok((due, outcome)) => self.fired(&due, outcome).await,
                Err(error) => tracing::error!(cause = %error, "a fire ended in a defect"),
            }
        }
    }

    async fn fired(&mut self, due: &Due, outcome: Result<Started, ChangeError>) {
        let name = &due.name;
        let demand = due.job.definition.job_demand();
        let slot_pool = demand.map(|demand| demand.slot_pool.to_string());
        if due.boot.is_none() {
            let lag = self.engine.now().wall.since(due.instant);
            self.engine.metrics.fire_lag_seconds.observe(in_seconds(lag));
        }
        let outcome = match outcome {
            Ok(started) => started,
            Err(error) => {
                self.not_fired(due, slot_pool.as_deref(), &error).await;
                return;
            }
        };
        match outcome {
            Started::Queued { .. } | Started::Ready { .. } => {
                self.count(name, "run");
                self.engine.metrics.count_started(name.as_str(), "schedule");
                self.engine.wake.notify_one();
            }
            Started::Refused(refusal) => {
                Self::could_not_enter(name, slot_pool.as_deref(), &refusal.to_string());
                let label = slot_pool.as_deref().unwrap_or_default();
                self.engine.metrics.count_refusal(label, refusal.skip_word());
                self.count(name, "refused");
            }
            Started::StillRunning => self.skipped(name, "still running"),
            Started::Paused => self.skipped(name, "job paused"),
            Started::LastFailed => self.skipped(name, "the last run did not succeed"),
            Started::TooLate => self.skipped(name, "its starting deadline has passed"),
            Started::NodeDrained(_) => self.skipped(name, "its node is drained"),
            Started::NoRoom => self.skipped(name, "the disk has too little room"),
            Started::LeftToOthers => self.left_to_others(due),
            Started::AlreadyFired => {}
        }
    }

    /// Others have the configuration that was loaded last. A moment that none of them fires is missed.
    fn left_to_others(&mut self, due: &Due) {
        tracing::debug!(job = %due.name, "this fire is left to daemons with the configuration that was loaded last");
        if due.boot.is_none() && self.left.len() < limits::SKIPPED_IN_MEMORY_MAX {
            self.left.push((due.name.clone(), due.instant));
        }
    }

    /// Looks whether somebody has fired what was left to others; what nobody can fire any more is judged as missed.
    async fn judge_left(&mut self, book: &Arc<Book>, now: Millis) {
        let too_late = |instant: &Millis| now.since(*instant) > limits::FIRE_LATE_MS;
        let (over, left) = std::mem::take(&mut self.left)
            .into_iter()
            .partition(|(_, instant)| too_late(instant));
        self.left = left;
        let over: Vec<(JobName, Millis)> = over;
        for part in over.chunks(DETECTED_PER_CHANGE) {
            let (part, for_change) = (part.to_vec(), Arc::clone(book));
            let asked = part.clone();
            let found = self.engine.store.change("left fires", move |tx| {
                let mut found = Vec::with_capacity(part.len());
                for (name, instant) in &part {
                    found.push(catch_up::nobody_fired(tx, &for_change, name, *instant)?);
                }
                Ok(found)
            });
            match found.await {
                Ok(found) => {
                    for ((name, _), found) in asked.iter().zip(found) {
                        self.missed(name, found);
                    }
                }
                Err(error) => {
                    tracing::debug!(cause = %error, "missed fires could not be recorded yet");
                    self.left.extend(asked);
                }
            }
        }
    }

    fn skipped(&self, name: &JobName, why: &str) {
        tracing::debug!(job = %name, "fire skipped: {why}");
        self.count(name, "skipped");
    }

    /// The store did not take the fire: it is dropped, and its row follows when the store answers again.
    async fn not_fired(&mut self, due: &Due, slot_pool: Option<&str>, error: &ChangeError) {
        Self::could_not_enter(&due.name, slot_pool, "pool state is unavailable");
        tracing::debug!(job = %due.name, cause = %error, "the fire's change failed");
        self.count(&due.name, "refused");
        if !is_surely_undone(error) {
            return;
        }
        if due.job.definition.policy.retry.allows(2) {
            self.defer_settlement(due, slot_pool).await;
        }
        self.unrecorded_push(Unrecorded {
            job: due.name.clone(),
            instant: due.instant,
            node: due.node.clone(),
            word: "pool_unavailable".to_owned(),
        });
    }

    async fn defer_settlement(&self, due: &Due, slot_pool: Option<&str>) {
        if let Some(slot_pool) = slot_pool {
            tracing::warn!(slot_pool, "pool {slot_pool}: retry settlement deferred");
        }
        let (job, node, instant) = (due.name.clone(), due.node.clone(), due.instant);
        let generation = self.engine.read({
            let (job, node) = (job.clone(), node.clone());
            move |tx| retry::generation(tx, &job, &node)
        });
        self.engine.deferred.push(Deferred {
            job,
            node,
            instant,
            generation: generation.await.ok(),
        });
    }

    fn could_not_enter(name: &JobName, slot_pool: Option<&str>, why: &str) {
        match slot_pool {
            Some(slot_pool) => {
                tracing::warn!(job = %name, slot_pool, "Job {name} could not enter pool {slot_pool}: {why}");
            }
            None => tracing::warn!(job = %name, "Job {name} could not start: {why}"),
        }
    }

    fn count(&self, name: &JobName, outcome: &str) {
        self.count_many(name, outcome, 1);
    }

    fn count_many(&self, name: &JobName, outcome: &str, number: u64) {
        let label = JobOutcome {
            job: self.engine.metrics.job_name(name.as_str()),
            outcome: outcome.to_owned(),
        };
        self.engine.metrics.fires.get_or_create(&label).inc_by(number);
    }

    fn unrecorded_push(&mut self, row: Unrecorded) {
        if self.unrecorded.len() < limits::SKIPPED_IN_MEMORY_MAX {
            self.unrecorded.push(row);
        } else {
            *self.beyond.entry((row.job, row.word)).or_default() += 1;
        }
    }

    /// Writes rows of fires that could not be recorded, and settlements that came with them. A late row never replaces a
    /// run.
    async fn write_unrecorded(&mut self) {
        let deferred = self.engine.deferred.waiting();
        if self.unrecorded.is_empty() && deferred.is_empty() {
            return;
        }
        let batch = self.unrecorded.iter().take(limits::MAINTENANCE_ROWS_MAX);
        let rows: Vec<Unrecorded> = batch.cloned().collect();
        let (count, settled) = (rows.len(), deferred.clone());
        let written = self.engine.store.change("skipped fires", move |tx| {
            retry::settle_deferred(tx, &deferred)?;
            for row in &rows {
                start::skip(tx, &row.job, row.instant, &row.node, &row.word).map_err(Abort)?;
            }
            Ok(())
        });
        if written.await.is_ok() {
            self.unrecorded.drain(..count);
            self.engine.deferred.applied(&settled);
        }
    }

    fn give_up_unrecorded(&mut self) {
        let mut left = std::mem::take(&mut self.beyond);
        for row in self.unrecorded.drain(..) {
            *left.entry((row.job, row.word)).or_default() += 1;
        }
        for ((job, word), count) in left {
            tracing::warn!(job = %job, "Job {job}: {count} skipped fires ({word}) could not be recorded");
        }
    }
}

/// `1 thing`, `2 things`.
fn counted(number: u64, thing: &str) -> String {
    let ending = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{ending}")
}

/// Fires one moment of a job as the loop does, for tests of what shows it.
#[cfg(test)]
pub(crate) async fn fire_now(
    engine: &Engine,
    book: &Arc<Book>,
    name: &JobName,
    instant: Millis,
) -> Result<Started, ChangeError> {
    let job = book.jobs[name].clone();
    let due = Due {
        name: name.clone(),
        node: fire_node(book, &job),
        job,
        instant,
        boot: None,
    };
    fire(engine, book, &due).await
}

/// Fires one due moment.
async fn fire(engine: &Engine, book: &Arc<Book>, due: &Due) -> Result<Started, ChangeError> {
    let name = due.name.as_str();
    let instant = due.instant;
    let wish = Start {
        name: due.name.clone(),
        job: due.job.clone(),
        trigger: match due.boot {
            Some(_) => Trigger::Boot { instant },
            None => Trigger::Schedule { instant },
        },
        node: (!due.node.is_empty()).then(|| book.node.clone()),
        run: RunId::fresh(),
        entry: EntryId::of_parts(&["fire", name, &instant.to_string(), &due.node]),
        retries: false,
        boot: due.boot.clone(),
        rules: engine.rules(),
    };
    let book = Arc::clone(book);
    let change = engine
        .store
        .change("fire", move |tx| start::start(tx, &book, &wish));
    change.await
}
