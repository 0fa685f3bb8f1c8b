//! Catch-up: moments that were due while nobody could fire them. They are found from a mark, judged once, and those that
//! run are owed: one row each, worked off one after the other, oldest first, over restarts.

use crate::domain::catch_up::{self, Verdict};
use crate::domain::disk;
use crate::domain::schedule::Schedule;
use crate::domain::workflow::definition::ScheduleText;
use crate::domain::workflow::run::{Run, RunState, Trigger};
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::start::{self, Start, Started};
use crate::engine::changes::{drift, head, maintain};
use crate::store::rows::{Fire, Owed, ScheduleMark};
use crate::store::tables::{FIRES, OWED, SCHEDULE_MARKS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What was found out about the missed moments of a job.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Found {
    /// Moments that will run.
    pub owed: usize,
    /// Moments that got a skipped row.
    pub skipped: usize,
    /// Moments that were too many to get a row each.
    pub unlisted: u64,
}

/// How far a look for missed moments goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Until {
    /// Up to and including this one.
    pub at: Millis,
    /// From where a job that was never seen before can miss something.
    pub known_from: Millis,
}

impl Until {
    /// Up to this moment, from which on a new job is known.
    pub fn now(at: Millis) -> Until {
        Until { at, known_from: at }
    }
}

/// The node part of the job's fires in this daemon.
pub fn fire_node(book: &Book, job: &BookJob) -> String {
    if job.definition.policy.every_node {
        book.node.to_string()
    } else {
        String::new()
    }
}

/// What a mark is about: another expression, zone or reading of it has missed nothing yet.
fn fingerprint(text: &ScheduleText) -> String {
    format!(
        "{} | {} | {} | {:?}",
        text.text,
        text.timezone.as_deref().unwrap_or("UTC"),
        text.seconds,
        text.day_match
    )
}

/// Finds and judges what was due up to and including `until` and has neither a row nor a debt, and moves the mark there.
/// A job that was never seen before, or whose schedule is another one, has missed nothing.
pub fn detect(tx: &mut Tx<'_>, book: &Book, name: &JobName, part: Until) -> Result<Found, Abort> {
    let until = part.at;
    let Some(job) = book.jobs.get(name) else {
        return Ok(Found::default());
    };
    let (Some(text), Some(schedule)) = (&job.definition.schedule, &job.schedule) else {
        return Ok(Found::default());
    };
    let node = fire_node(book, job);
    if is_anothers(tx, book, job, &node)? {
        return Ok(Found::default());
    }
    let key = (TENANT, name.clone(), node.clone());
    let mark = ScheduleMark {
        at: until,
        schedule: fingerprint(text),
    };
    let stored = tx.get(&SCHEDULE_MARKS, &key)?;
    let Some(stored) = stored.filter(|stored| stored.schedule == mark.schedule) else {
        let begun = ScheduleMark {
            at: part.known_from,
            ..mark
        };
        tx.put(&SCHEDULE_MARKS, &key, &begun)?;
        return Ok(Found::default());
    };
    let after = newest_known(tx, name, &node)?.map_or(stored.at, |newest| newest.max(stored.at));
    if after >= until {
        return Ok(Found::default());
    }
    let found = judge_and_write(tx, job, schedule, &node, (after, until))?;
    if found != Found::default() {
        tx.put(&SCHEDULE_MARKS, &key, &mark)?;
    }
    Ok(found)
}

/// True for a job that any daemon may fire and this one would fire in another way than was loaded last: what was missed is
/// for those who have that configuration.
fn is_anothers(rows: &mut impl Rows, book: &Book, job: &BookJob, node: &str) -> Result<bool, StoreError> {
    if !node.is_empty() {
        return Ok(false);
    }
    Ok(!drift::may_fire(rows, book, job)? || start::has_other_slot_pool(rows, book, job)?)
}

/// A moment that this daemon left to others: if nobody fired it, it is missed, and judged as such.
pub fn nobody_fired(tx: &mut Tx<'_>, book: &Book, name: &JobName, instant: Millis) -> Result<Found, Abort> {
    let Some(job) = book.jobs.get(name) else {
        return Ok(Found::default());
    };
    let rules = rules_of(tx, job)?;
    write(tx, job, "", catch_up::judge(rules, &[instant.0], tx.now().wall.0))
}

/// The newest moment of a job and node that has a fire row or is owed.
fn newest_known(rows: &mut impl Rows, job: &JobName, node: &str) -> Result<Option<Millis>, StoreError> {
    let prefix = (TENANT, job.clone());
    let owed = rows.scan_back(&OWED, &prefix, None, limits::MAINTENANCE_ROWS_MAX)?;
    let owed = owed.iter().find(|((_, _, _, of), _)| of == node);
    // Rows of other nodes stand between those of this one.
    let recorded = rows.scan_back(&FIRES, &prefix, None, limits::MAINTENANCE_ROWS_MAX)?;
    let fired = recorded.iter().find(|((_, _, _, of), _)| of == node);
    Ok(owed
        .map(|((_, _, at, _), _)| *at)
        .max(fired.map(|((_, _, at, _), _)| *at)))
}

fn judge_and_write(
    tx: &mut Tx<'_>,
    job: &BookJob,
    schedule: &Schedule,
    node: &str,
    (after, until): (Millis, Millis),
) -> Result<Found, Abort> {
    let missed = schedule.missed(after.0, until.0, limits::MISSED_ROWS_MAX);
    let rules = rules_of(tx, job)?;
    let found = write(
        tx,
        job,
        node,
        catch_up::judge(rules, &missed.newest, tx.now().wall.0),
    )?;
    Ok(Found {
        unlisted: missed.older,
        ..found
    })
}

fn rules_of(rows: &mut impl Rows, job: &BookJob) -> Result<catch_up::Rules, StoreError> {
    let pause = head::job_pause_row(rows, &job.definition.name)?;
    Ok(catch_up::Rules {
        on_missed: job.definition.policy.on_missed,
        deadline_ms: job.definition.policy.starting_deadline_ms,
        paused_until: pause.map(|pause| pause.until.map_or(i64::MAX, |until| until.0)),
    })
}

fn write(tx: &mut Tx<'_>, job: &BookJob, node: &str, judged: Vec<(i64, Verdict)>) -> Result<Found, Abort> {
    let (name, now) = (&job.definition.name, tx.now().wall);
    let mut found = Found::default();
    for (instant, verdict) in judged {
        let instant = Millis(instant);
        match verdict {
            Verdict::Skip(word) => {
                found.skipped += usize::from(start::skip(tx, name, instant, node, word)?);
            }
            Verdict::Owe => {
                found.owed += usize::from(owe(tx, name, instant, node, now)?);
            }
        }
    }
    Ok(found)
}

fn owe(
    tx: &mut Tx<'_>,
    name: &JobName,
    instant: Millis,
    node: &str,
    now: Millis,
) -> Result<bool, StoreError> {
    let key = (TENANT, name.clone(), instant, node.to_owned());
    if tx.has(&FIRES, &key)? || tx.has(&OWED, &key)? {
        return Ok(false);
    }
    let owed = Owed {
        run: None,
        not_before: now,
        refused: None,
    };
    tx.put(&OWED, &key, &owed)?;
    tx.tell("job.fire.owed", name, 0, Some(&instant.to_string()));
    Ok(true)
}

/// The key of a debt.
pub type OwedKey = (TenantId, JobName, Millis, String);

/// The oldest debt of each job that this daemon could work off, one for each (job, node).
pub fn oldest(rows: &mut impl Rows, book: &Book) -> Result<Vec<(OwedKey, Owed)>, StoreError> {
    let mut found = Vec::new();
    let mut after: Option<OwedKey> = None;
    while let Some((key, _)) = rows
        .scan(&OWED, &(TENANT,), after.as_ref(), 1)?
        .into_iter()
        .next()
    {
        let name = key.1.clone();
        if let Some(job) = book.jobs.get(&name) {
            let node = fire_node(book, job);
            // Debts are bounded for each node; those of others stand between those of this one.
            let of_job = rows.scan(&OWED, &(TENANT, name.clone()), None, usize::MAX)?;
            found.extend(of_job.into_iter().find(|((_, _, _, of), _)| *of == node));
        }
        after = Some((TENANT, name, Millis(i64::MAX), "\u{10ffff}".to_owned()));
    }
    Ok(found)
}

/// What became of the turn of a debt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Turn {
    /// Its run begins.
    Begun(Started),
    /// It cannot begin now.
    Refused(String),
    /// Its deadline has passed: it was skipped.
    TooLate,
    /// It has its run already, its turn has not come, or it is gone.
    NotNow,
}

/// Begins the run of a debt whose turn has come.
pub fn begin(
    tx: &mut Tx<'_>,
    book: &Book,
    key: &OwedKey,
    run: RunId,
    rules: &maintain::Rules,
) -> Result<Turn, Abort> {
    let (_, name, instant, node) = key;
    let now = tx.now().wall;
    let (Some(owed), Some(job)) = (tx.get(&OWED, key)?, book.jobs.get(name)) else {
        return Ok(Turn::NotNow);
    };
    let waits = owed.run.is_some() || owed.not_before > now || !job.definition.enabled;
    if waits || head::job_pause(tx, name, now)?.is_some() || is_anothers(tx, book, job, node)? {
        return Ok(Turn::NotNow);
    }
    let deadline = job.definition.policy.starting_deadline_ms;
    if deadline.is_some_and(|deadline| now.since(*instant) > deadline) {
        tx.remove(&OWED, key)?;
        start::skip(tx, name, *instant, node, "missed")?;
        return Ok(Turn::TooLate);
    }
    let wish = Start {
        name: name.clone(),
        job: job.clone(),
        trigger: Trigger::CatchUp { instant: *instant },
        node: (!node.is_empty()).then(|| book.node.clone()),
        run,
        entry: EntryId::of_parts(&["catchup", name.as_str(), &instant.to_string(), node]),
        retries: false,
        boot: None,
        rules: *rules,
    };
    let (refused, pause) = match start::begin(tx, book, &wish)? {
        begun @ (Started::Queued { run, .. } | Started::Ready { run }) => {
            let begun_row = Owed {
                run: Some(run),
                ..owed
            };
            tx.put(&OWED, key, &begun_row)?;
            tx.put(&FIRES, key, &Fire::CaughtUp(run))?;
            return Ok(Turn::Begun(begun));
        }
        Started::Refused(refusal) => (refusal.to_string(), limits::RESUME_MS),
        Started::StillRunning => (
            "an earlier instance is still running".to_owned(),
            limits::PASS_PERIOD_MS,
        ),
        Started::NoRoom => (disk::NO_ROOM.to_owned(), limits::RESUME_MS),
        Started::NodeDrained(node) => (format!("node {node} is drained"), limits::RESUME_MS),
        other @ (Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::LeftToOthers
        | Started::TooLate) => {
            unreachable!("a catch-up is not answered by {other:?}")
        }
    };
    let later = Owed {
        not_before: now.plus(pause),
        refused: Some(refused.clone()),
        ..owed
    };
    tx.put(&OWED, key, &later)?;
    Ok(Turn::Refused(refused))
}

/// A run has ended. A debt whose run has started is paid; one whose run never started is tried again after 30 s.
pub fn run_ended(tx: &mut Tx<'_>, run: &Run) -> Result<(), StoreError> {
    let Some(instant) = run.trigger.scheduled_at() else {
        return Ok(());
    };
    let node = run.node.as_ref().map(ToString::to_string).unwrap_or_default();
    let key = (TENANT, run.definition.clone(), instant, node);
    let never_started = match &run.state {
        RunState::Skipped { reason, .. }
        | RunState::Cancelled {
            started_at: None,
            reason,
            ..
        } => Some(reason.as_str()),
        RunState::Pending
        | RunState::Running { .. }
        | RunState::Paused { .. }
        | RunState::Succeeded { .. }
        | RunState::Failed { .. }
        | RunState::TimedOut { .. }
        | RunState::Cancelled { .. } => None,
    };
    if let Some(reason) = never_started {
        start::withdrawn(tx, &key, run.id, reason)?;
    }
    if tx.get(&OWED, &key)?.and_then(|owed| owed.run) != Some(run.id) {
        return Ok(());
    }
    match never_started {
        None => {
            tx.remove(&OWED, &key)?;
        }
        Some(reason) => {
            let later = Owed {
                run: None,
                not_before: tx.now().wall.plus(limits::RESUME_MS),
                refused: Some(reason.to_owned()),
            };
            tx.put(&OWED, &key, &later)?;
        }
    }
    Ok(())
}

/// The job has left the configuration, or fires no more: what it owed is skipped, and a job of that name begins anew.
pub fn forget(tx: &mut Tx<'_>, job: &JobName) -> Result<(), StoreError> {
    for (key, owed) in tx.scan(&OWED, &(TENANT, job.clone()), None, usize::MAX)? {
        tx.remove(&OWED, &key)?;
        if owed.run.is_none() {
            start::skip(tx, job, key.2, &key.3, "missed")?;
        }
    }
    for (key, _) in tx.scan(&SCHEDULE_MARKS, &(TENANT, job.clone()), None, usize::MAX)? {
        tx.remove(&SCHEDULE_MARKS, &key)?;
    }
    Ok(())
}
