//! Schedules: sleeps until the next due moment, fires it, and records every moment that did not become a run.
//!
//! No leader is needed: a fire's key is (job, instant), and whoever writes it first has fired it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::changes::maintain::Rules;
use super::changes::start::{self, Start, Started};
use super::core::{Engine, is_surely_undone};
use super::metrics::{JobOutcome, in_seconds};
use crate::domain::workflow::run::Trigger;
use crate::engine::book::{Book, BookJob};
use crate::store::tables::FIRES;
use crate::store::{ChangeError, Rows};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::{Millis, Now};

/// Missed moments of one job that get a row each; beyond that the newest are kept and the rest is counted in the log.
const MISSED_ROWS_MAX: usize = 1_000;

/// A fire that the store could not record yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Unrecorded {
    job: JobName,
    instant: Millis,
    word: String,
}

/// The loop.
#[derive(Debug)]
pub struct Scheduler {
    engine: Engine,
    next: BTreeMap<JobName, Millis>,
    unrecorded: Vec<Unrecorded>,
    beyond: BTreeMap<(JobName, String), u64>,
}

impl Scheduler {
    /// A scheduler that begins now: the next fire of each job is strictly in the future.
    pub fn new(engine: Engine) -> Scheduler {
        let now = engine.now().wall;
        let next = first_fires(&engine.book(), now);
        Scheduler {
            engine,
            next,
            unrecorded: Vec::new(),
            beyond: BTreeMap::new(),
        }
    }

    /// Fires until the daemon stops.
    pub async fn run(mut self) {
        self.record_missed_at_start().await;
        while !self.engine.is_stopping() {
            let now = self.engine.now();
            self.tick(now).await;
            let wait = self.sleep_time(self.engine.now());
            tokio::select! {
                () = tokio::time::sleep(wait) => {}
                () = self.engine.until_stopping() => {}
            }
        }
        self.give_up_unrecorded();
    }

    /// Until the next due moment, a second at most, so that a stepped clock is noticed.
    fn sleep_time(&self, now: Now) -> Duration {
        let soonest = self.next.values().min().copied();
        let ms = soonest.map_or(limits::PASS_PERIOD_MS, |next| next.since(now.wall));
        Duration::from_millis(ms.clamp(1, limits::PASS_PERIOD_MS))
    }

    /// Fires everything that is due at `now`.
    pub async fn tick(&mut self, now: Now) {
        let book = self.engine.book();
        let mut due: Vec<(JobName, BookJob, Millis)> = Vec::new();
        let mut missed: Vec<(JobName, Millis)> = Vec::new();
        for (name, next) in &mut self.next {
            if *next > now.wall {
                continue;
            }
            let Some(job) = book.jobs.get(name) else { continue };
            let Some(schedule) = &job.schedule else { continue };
            for instant in schedule.instants(next.0 - 1, now.wall.0, MISSED_ROWS_MAX) {
                if now.wall.since(Millis(instant)) <= limits::FIRE_LATE_MS {
                    due.push((name.clone(), job.clone(), Millis(instant)));
                } else {
                    missed.push((name.clone(), Millis(instant)));
                }
            }
            let after = schedule.next_after(now.wall.0);
            *next = after.map_or(Millis(i64::MAX), Millis);
        }
        for (job, instant) in missed {
            self.unrecorded_push(Unrecorded {
                job,
                instant,
                word: "missed".to_owned(),
            });
        }
        self.fire_all(&book, due).await;
        self.write_unrecorded().await;
    }

    /// All fires of one moment at once: they share commits.
    async fn fire_all(&mut self, book: &Arc<Book>, due: Vec<(JobName, BookJob, Millis)>) {
        let mut tasks = Vec::with_capacity(due.len());
        for (name, job, instant) in due {
            let engine = self.engine.clone();
            let book = Arc::clone(book);
            tasks.push(tokio::spawn(async move {
                let outcome = fire(&engine, &book, &name, &job, instant).await;
                (name, job, instant, outcome)
            }));
        }
        for task in tasks {
            match task.await {
                Ok((name, job, instant, outcome)) => self.fired(&name, &job, instant, outcome),
                Err(error) => tracing::error!(cause = %error, "a fire ended in a defect"),
            }
        }
    }

    fn fired(
        &mut self,
        name: &JobName,
        job: &BookJob,
        instant: Millis,
        outcome: Result<Started, ChangeError>,
    ) {
        let slot_pool = job
            .definition
            .main_step()
            .slots
            .as_ref()
            .map(|demand| demand.slot_pool.to_string());
        let lag = self.engine.now().wall.since(instant);
        self.engine.metrics.fire_lag_seconds.observe(in_seconds(lag));
        let outcome = match outcome {
            Ok(started) => started,
            Err(error) => {
                Self::could_not_enter(name, slot_pool.as_deref(), "pool state is unavailable");
                tracing::debug!(job = %name, cause = %error, "the fire's change failed");
                if is_surely_undone(&error) {
                    let word = "pool_unavailable".to_owned();
                    self.unrecorded_push(Unrecorded {
                        job: name.clone(),
                        instant,
                        word,
                    });
                }
                self.count(name, "refused");
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
                self.engine
                    .metrics
                    .count_refusal(slot_pool.as_deref().unwrap_or_default(), refusal.skip_word());
                self.count(name, "refused");
            }
            Started::StillRunning => {
                tracing::debug!(job = %name, "fire skipped: still running");
                self.count(name, "skipped");
            }
            Started::Paused => {
                tracing::debug!(job = %name, "fire skipped: job paused");
                self.count(name, "skipped");
            }
            Started::AlreadyFired => {}
        }
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
        let label = JobOutcome {
            job: self.engine.metrics.job_name(name.as_str()),
            outcome: outcome.to_owned(),
        };
        self.engine.metrics.fires.get_or_create(&label).inc();
    }

    fn unrecorded_push(&mut self, row: Unrecorded) {
        if self.unrecorded.len() < limits::SKIPPED_IN_MEMORY_MAX {
            self.unrecorded.push(row);
        } else {
            *self.beyond.entry((row.job, row.word)).or_default() += 1;
        }
    }

    /// Writes rows of fires that could not be recorded; a late row never replaces a run.
    async fn write_unrecorded(&mut self) {
        if self.unrecorded.is_empty() {
            return;
        }
        let rows: Vec<Unrecorded> = self
            .unrecorded
            .iter()
            .take(limits::MAINTENANCE_ROWS_MAX)
            .cloned()
            .collect();
        let count = rows.len();
        let missed: Vec<JobName> = rows
            .iter()
            .filter(|row| row.word == "missed")
            .map(|row| row.job.clone())
            .collect();
        let written = self
            .engine
            .store
            .change("skipped fires", move |tx| {
                for row in &rows {
                    start::skip(tx, &row.job, row.instant, &row.word)?;
                }
                Ok(())
            })
            .await;
        if written.is_ok() {
            self.unrecorded.drain(..count);
            for job in missed {
                self.count(&job, "skipped");
            }
        }
    }

    /// Moments since the newest fire row of each job, while no daemon was there.
    async fn record_missed_at_start(&mut self) {
        let book = self.engine.book();
        let now = self.engine.now().wall;
        let names: Vec<JobName> = self.next.keys().cloned().collect();
        let marks = self.engine.read(move |tx| {
            let mut marks = Vec::new();
            for name in &names {
                let newest = tx.scan_back(&FIRES, &(TenantId::DEFAULT, name.clone()), None, 1)?;
                marks.extend(
                    newest
                        .into_iter()
                        .map(|((_, name, instant, _), _)| (name, instant)),
                );
            }
            Ok(marks)
        });
        let Ok(marks) = marks.await else { return };
        for (name, mark) in marks {
            let Some(schedule) = book.jobs.get(&name).and_then(|job| job.schedule.as_ref()) else {
                continue;
            };
            let missed = schedule.missed(mark.0, now.0, MISSED_ROWS_MAX);
            if missed.older > 0 {
                tracing::warn!(job = %name, "Job {name}: {} older missed fires are not listed one by one", missed.older);
            }
            for instant in missed.newest {
                let word = "missed".to_owned();
                self.unrecorded_push(Unrecorded {
                    job: name.clone(),
                    instant: Millis(instant),
                    word,
                });
            }
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

fn first_fires(book: &Book, now: Millis) -> BTreeMap<JobName, Millis> {
    let mut next = BTreeMap::new();
    for (name, job) in &book.jobs {
        if !job.definition.enabled {
            continue;
        }
        if let Some(instant) = job
            .schedule
            .as_ref()
            .and_then(|schedule| schedule.next_after(now.0))
        {
            next.insert(name.clone(), Millis(instant));
        }
    }
    next
}

/// Fires one due moment.
pub async fn fire(
    engine: &Engine,
    book: &Arc<Book>,
    name: &JobName,
    job: &BookJob,
    instant: Millis,
) -> Result<Started, ChangeError> {
    let wish = Start {
        name: name.clone(),
        job: job.clone(),
        trigger: Trigger::Schedule { instant },
        node: None,
        run: RunId::fresh(),
        entry: EntryId::of_parts(&["fire", name.as_str(), &instant.to_string(), ""]),
        rules: Rules {
            expiry_held: engine.clock_watch.holds_expiry(engine.now()),
        },
    };
    let book = Arc::clone(book);
    engine
        .store
        .change("fire", move |tx| start::start(tx, &book, &wish))
        .await
}
