//! Retention: ended runs beyond their number or age, old fires, old answers, old feed rows; a slice at a time.

use std::collections::BTreeMap;

use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::document::RetentionDoc;
use crate::domain::workflow::run::Run;
use crate::engine::book::Book;
use crate::engine::changes::deliver;
use crate::store::keys::DigestKey;
use crate::store::tables::{
    ACTIVE_RUNS, CHANGES, DEFINITIONS, FIRES, JOB_RUNS, REMEMBERED, REMEMBERED_KEYS, WORKFLOWS,
};
use crate::store::{Abort, Rows, StoreError, Tx, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::JobName;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// What is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keep {
    /// Ended runs of each job.
    pub runs: u32,
    /// Age of an ended run in milliseconds.
    pub age_ms: u64,
    /// What is kept of the logs of ended runs.
    pub logs: KeepLogs,
}

/// What is kept of the logs of ended runs. Their runs stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepLogs {
    /// Age in milliseconds, from the end of the run.
    pub age_ms: u64,
    /// Bytes of all logs together; the oldest go first. `None`: without a limit.
    pub bytes: Option<u64>,
}

impl KeepLogs {
    /// Logs go with their runs.
    pub const NO_LIMIT: KeepLogs = KeepLogs {
        age_ms: u64::MAX,
        bytes: None,
    };
}

/// Runs that one slice removes: a slice must not hold the writer for more than 50 ms.
pub const SLICE: usize = 50;

/// What definitions say themselves of how long their ended runs are kept.
pub type OwnRules = BTreeMap<JobName, RetentionDoc>;

/// What the definitions of the book say themselves.
pub fn own_rules(book: &Book) -> OwnRules {
    let said = book.jobs.iter().filter_map(|(name, job)| {
        let retention = job.definition.graph.as_ref()?.retention?;
        Some((name.clone(), retention))
    });
    said.collect()
}

/// What the newest versions of workflows say, kept while they are the newest.
#[derive(Debug, Clone, Default)]
pub struct Published {
    known: BTreeMap<JobName, (u32, RetentionDoc)>,
}

impl Published {
    /// What a workflow says; nothing is read anew of a version that is known. A definition that cannot be read says nothing.
    fn of(&mut self, rows: &mut impl Rows, name: &JobName) -> Result<Option<RetentionDoc>, StoreError> {
        let Some(newest) = rows
            .get(&WORKFLOWS, &(TENANT, name.clone()))?
            .map(|record| record.newest)
        else {
            return Ok(None);
        };
        if let Some((_, said)) = self.known.get(name).filter(|(version, _)| *version == newest) {
            return Ok(Some(*said));
        }
        let record = rows.get(&DEFINITIONS, &(TENANT, name.clone(), newest))?;
        let definition = record.and_then(|record| record.json.read::<Definition>().ok());
        let said = definition.and_then(|definition| definition.graph?.retention);
        let said = said.unwrap_or_default();
        if self.known.len() >= limits::FAMILIES_MAX {
            self.known.clear();
        }
        self.known.insert(name.clone(), (newest, said));
        Ok(Some(said))
    }
}

impl Keep {
    /// With what a definition says itself.
    fn with(self, own: Option<RetentionDoc>) -> Keep {
        let own = own.unwrap_or_default();
        Keep {
            runs: own.runs.unwrap_or(self.runs),
            age_ms: own.age.map_or(self.age_ms, |age| age.0),
            ..self
        }
    }
}

/// Ended runs that go, at most a slice of them. Read from a snapshot.
pub fn due(
    rows: &mut impl Rows,
    keep: Keep,
    own: &OwnRules,
    published: &mut Published,
    now: Millis,
) -> Result<Vec<(JobName, RunId)>, StoreError> {
    let mut found = Vec::new();
    let mut after: Option<(TenantId, JobName, RunId)> = None;
    // The rows of one job stand together, oldest first; step from job to job.
    while let Some(((_, job, _), _)) = rows
        .scan(&JOB_RUNS, &(TENANT,), after.as_ref(), 1)?
        .into_iter()
        .next()
    {
        let said = match own.get(&job) {
            Some(said) => Some(*said),
            None => published.of(rows, &job)?,
        };
        found.extend(due_of(rows, &job, keep.with(said), now, SLICE - found.len())?);
        if found.len() >= SLICE {
            return Ok(found);
        }
        after = Some((TENANT, job, RunId([255; 16])));
    }
    Ok(found)
}

fn due_of(
    rows: &mut impl Rows,
    job: &JobName,
    keep: Keep,
    now: Millis,
    limit: usize,
) -> Result<Vec<(JobName, RunId)>, StoreError> {
    let age = i64::try_from(keep.age_ms).unwrap_or(i64::MAX);
    let oldest_kept = Millis(now.0.saturating_sub(age));
    let prefix = (TENANT, job.clone());
    let kept = rows
        .raw_scan(
            JOB_RUNS.index(),
            &encoded(&prefix),
            None,
            true,
            keep.runs as usize,
        )?
        .len();
    let beyond = kept >= keep.runs as usize;
    let newest_dropped = if beyond {
        oldest_of_newest(rows, job, keep.runs)?
    } else {
        None
    };
    let mut found = Vec::new();
    let mut after = None;
    let mut spared = 0;
    loop {
        let page = rows.scan(&JOB_RUNS, &prefix, after.as_ref(), SLICE)?;
        let Some((last, _)) = page.last() else { break };
        after = Some(last.clone());
        for ((_, _, id), _) in page {
            if found.len() >= limit || spared >= limits::RETENTION_SPARED_MAX {
                return Ok(found);
            }
            // What has not ended stands in the way of nothing behind it.
            if rows.has(&ACTIVE_RUNS, &(TENANT, job.clone(), id))? {
                continue;
            }
            let Ok(Some(run)) = runs::by_id(rows, id) else {
                continue;
            };
            let too_many = newest_dropped.is_some_and(|first_kept| id < first_kept);
            if is_ended_before(&run, oldest_kept) || (too_many && run.state.is_terminal()) {
                found.push((job.clone(), id));
            } else {
                spared += 1;
            }
        }
    }
    Ok(found)
}

fn encoded(prefix: &(TenantId, JobName)) -> Vec<u8> {
    use crate::store::keys::Key;
    prefix.encode()
}

fn oldest_of_newest(rows: &mut impl Rows, job: &JobName, count: u32) -> Result<Option<RunId>, StoreError> {
    let newest = rows.scan_back(&JOB_RUNS, &(TENANT, job.clone()), None, count as usize)?;
    Ok(newest.last().map(|((_, _, id), _)| *id))
}

fn is_ended_before(run: &Run, instant: Millis) -> bool {
    run.state.ended_at().is_some_and(|ended| ended < instant)
}

/// Removes these runs; those that really went.
pub fn retire(tx: &mut Tx<'_>, due: &[(JobName, RunId)]) -> Result<Vec<RunId>, Abort> {
    let mut gone = Vec::new();
    for (job, id) in due {
        if runs::forget(tx, job, *id)? {
            gone.push(*id);
        }
    }
    Ok(gone)
}

/// Removes old fires, answers and feed rows, a slice of each; true if there may be more.
pub fn sweep(tx: &mut Tx<'_>, keep: Keep) -> Result<bool, Abort> {
    let now = tx.now().wall;
    let mut more = sweep_answers(tx, now)?;
    more |= sweep_feed(tx, now)?;
    more |= sweep_fires(tx, now, keep)?;
    more |= deliver::sweep(tx, Millis(now.0.saturating_sub_unsigned(keep.age_ms)))?;
    Ok(more)
}

fn sweep_answers(tx: &mut Tx<'_>, now: Millis) -> Result<bool, Abort> {
    let rows = tx.scan(&REMEMBERED, &(TENANT,), None, limits::MAINTENANCE_ROWS_MAX)?;
    let mut removed = 0;
    for (key, row) in rows
        .iter()
        .take_while(|(_, row)| now.since(row.at) > limits::IDEMPOTENCY_AGE_MS)
    {
        tx.remove(&REMEMBERED, key)?;
        tx.remove(&REMEMBERED_KEYS, &(TENANT, DigestKey(row.key)))?;
        removed += 1;
    }
    Ok(removed == limits::MAINTENANCE_ROWS_MAX)
}

fn sweep_feed(tx: &mut Tx<'_>, now: Millis) -> Result<bool, Abort> {
    let newest = tx
        .scan_back(&CHANGES, &(), None, 1)?
        .first()
        .map_or(0, |((sequence,), _)| *sequence);
    let rows = tx.scan(&CHANGES, &(), None, limits::MAINTENANCE_ROWS_MAX * 4)?;
    let old = |sequence: u64, at: Millis| {
        now.since(at) > limits::FEED_AGE_MS || newest.saturating_sub(sequence) > limits::FEED_ROWS_MAX
    };
    let mut removed = 0;
    for (key, row) in rows
        .iter()
        .take_while(|((sequence,), row)| old(*sequence, row.at))
    {
        debug_assert!(row.at <= now || newest > key.0);
        tx.remove(&CHANGES, key)?;
        removed += 1;
    }
    Ok(removed == limits::MAINTENANCE_ROWS_MAX * 4)
}

/// Old fires of each job, but never its newest: that is the mark from which missed moments are counted.
fn sweep_fires(tx: &mut Tx<'_>, now: Millis, keep: Keep) -> Result<bool, Abort> {
    let oldest_kept = Millis(
        now.0
            .saturating_sub(i64::try_from(keep.age_ms).unwrap_or(i64::MAX)),
    );
    let mut after: Option<(TenantId, JobName, Millis, String)> = None;
    let mut more = false;
    while let Some(((_, job, _, _), _)) = tx.scan(&FIRES, &(TENANT,), after.as_ref(), 1)?.into_iter().next() {
        let rows = tx.scan(
            &FIRES,
            &(TENANT, job.clone()),
            None,
            limits::MAINTENANCE_ROWS_MAX + 1,
        )?;
        let old = rows
            .iter()
            .take(rows.len() - 1)
            .take_while(|((_, _, at, _), _)| *at < oldest_kept);
        let keys: Vec<_> = old.map(|(key, _)| key.clone()).collect();
        for key in &keys {
            tx.remove(&FIRES, key)?;
        }
        more |= keys.len() == limits::MAINTENANCE_ROWS_MAX;
        after = Some((TENANT, job, Millis(i64::MAX), String::new()));
    }
    Ok(more)
}
