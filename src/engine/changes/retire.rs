//! Retention: ended runs beyond their number or age, old fires, old answers, old feed rows; a slice at a time.

use std::collections::BTreeMap;

use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::graph::document::RetentionDoc;
use crate::domain::workflow::run::Run;
use crate::engine::book::Book;
use crate::engine::changes::{audit, deliver};
use crate::store::keys::DigestKey;
use crate::store::tables::{
    CHANGES, DEFINITIONS, FIRES, JOB_RUNS, PINS, REMEMBERED, REMEMBERED_KEYS, WORKFLOWS,
};
use crate::store::{Abort, Rows, StoreError, Tx, access, removal, runs};
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
    /// What is kept of the audit.
    pub audit: KeepAudit,
}

/// How long it is kept who did what.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeepAudit {
    /// Age in milliseconds.
    pub age_ms: u64,
    /// Rows of each tenant.
    pub count: u32,
}

impl KeepAudit {
    /// All of it.
    pub const NO_LIMIT: KeepAudit = KeepAudit {
        age_ms: u64::MAX,
        count: u32::MAX,
    };
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

/// Where a search for runs that go has come to; `None`: to the end, or it has not begun.
pub type Place = Option<(TenantId, JobName, RunId)>;

/// Ended runs that go, at most a slice of them. Read from a snapshot. The search goes on from `place`, and leaves there where
/// it has come to: runs that live for long, or are pinned, are passed once and not each time.
pub fn due(
    rows: &mut impl Rows,
    keep: Keep,
    own: &OwnRules,
    published: &mut Published,
    now: Millis,
    place: &mut Place,
) -> Result<Vec<(JobName, RunId)>, StoreError> {
    let mut search = Search {
        oldest_kept: before(now, keep.age_ms),
        found: Vec::new(),
        looked_at: 0,
    };
    // The rows of one job stand together, oldest first; step from job to job.
    while let Some(((_, job, _), _)) = rows
        .scan(&JOB_RUNS, &(TENANT,), place.as_ref(), 1)?
        .into_iter()
        .next()
    {
        let said = match own.get(&job) {
            Some(said) => Some(*said),
            None => published.of(rows, &job)?,
        };
        let keep = keep.with(said);
        search.oldest_kept = before(now, keep.age_ms);
        if !search.job(rows, &job, keep.runs, place)? {
            return Ok(search.found);
        }
        *place = Some((TENANT, job, RunId([255; 16])));
    }
    *place = None;
    Ok(search.found)
}

fn before(now: Millis, age_ms: u64) -> Millis {
    Millis(now.0.saturating_sub(i64::try_from(age_ms).unwrap_or(i64::MAX)))
}

struct Search {
    oldest_kept: Millis,
    found: Vec<(JobName, RunId)>,
    looked_at: usize,
}

impl Search {
    /// Looks at the runs of one job from `place` on; false when the slice is full.
    fn job(
        &mut self,
        rows: &mut impl Rows,
        job: &JobName,
        kept: u32,
        place: &mut Place,
    ) -> Result<bool, StoreError> {
        let prefix = (TENANT, job.clone());
        let kept = kept as usize;
        let newest = rows.scan_back(&JOB_RUNS, &prefix, None, kept)?;
        let is_full = newest.len() >= kept;
        let first_kept = newest.last().filter(|_| is_full).map(|((_, _, id), _)| *id);
        loop {
            let after = place.as_ref().filter(|(_, of, _)| of == job);
            let page = rows.scan(&JOB_RUNS, &prefix, after, SLICE)?;
            if page.is_empty() {
                return Ok(true);
            }
            for (key, _) in page {
                let id = key.2;
                let too_many = first_kept.is_some_and(|first_kept| id < first_kept);
                self.looked_at += 1;
                if let Ok(Some(run)) = runs::by_id(rows, id) {
                    // Ids rise with time, and no run ends before it begins.
                    let is_young = run.created_at > self.oldest_kept.plus(limits::ID_ORDER_SLACK_MS);
                    if is_young && !too_many {
                        return Ok(true);
                    }
                    let is_old = is_ended_before(&run, self.oldest_kept);
                    let goes = is_old || (too_many && run.state.is_terminal());
                    if goes && !rows.has(&PINS, &(TENANT, id))? {
                        self.found.push((job.clone(), id));
                    }
                }
                *place = Some(key);
                if self.found.len() >= SLICE || self.looked_at >= limits::RETIRE_SCAN_MAX {
                    return Ok(false);
                }
            }
        }
    }
}

fn is_ended_before(run: &Run, instant: Millis) -> bool {
    run.state.ended_at().is_some_and(|ended| ended < instant)
}

/// What a slice has removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Retired {
    /// Runs that are gone from now on.
    pub gone: Vec<RunId>,
    /// Runs, or rows of them, are left for the next slice.
    pub more: bool,
}

/// Removes what earlier slices have left, and these runs, as far as one change may go.
pub fn retire(tx: &mut Tx<'_>, due: &[(JobName, RunId)]) -> Result<Retired, Abort> {
    let mut budget = limits::RETIRED_ROWS_MAX;
    let mut retired = Retired::default();
    if removal::go_on(tx, &mut budget)? {
        for (job, id) in due {
            if budget == 0 {
                break;
            }
            if removal::begin(tx, job, *id, &mut budget)? {
                retired.gone.push(*id);
            }
        }
    }
    retired.more = budget == 0;
    Ok(retired)
}

/// A due moment.
type FireKey = (TenantId, JobName, Millis, String);

/// Old fires of each job, at most a slice of them, but never its newest: that is the mark from which missed moments are
/// counted. Read from a snapshot.
pub fn old_fires(rows: &mut impl Rows, keep: Keep, now: Millis) -> Result<Vec<FireKey>, StoreError> {
    let oldest_kept = before(now, keep.age_ms);
    let mut found = Vec::new();
    let mut after: Option<FireKey> = None;
    while let Some(((_, job, first, _), _)) = rows
        .scan(&FIRES, &(TENANT,), after.as_ref(), 1)?
        .into_iter()
        .next()
    {
        if first < oldest_kept {
            let left = limits::MAINTENANCE_ROWS_MAX - found.len();
            let all = rows.scan(&FIRES, &(TENANT, job.clone()), None, left + 1)?;
            let older = all.iter().take(all.len() - 1);
            let old = older.take_while(|((_, _, at, _), _)| *at < oldest_kept);
            found.extend(old.map(|(key, _)| key.clone()));
            if found.len() >= limits::MAINTENANCE_ROWS_MAX {
                break;
            }
        }
        after = Some((TENANT, job, Millis(i64::MAX), String::new()));
    }
    Ok(found)
}

/// Removes these fires, and a slice each of old answers, feed rows and reports; true if there may be more.
pub fn sweep(tx: &mut Tx<'_>, keep: Keep, fires: &[FireKey]) -> Result<bool, Abort> {
    let now = tx.now().wall;
    for key in fires {
        tx.remove(&FIRES, key)?;
    }
    let mut more = fires.len() >= limits::MAINTENANCE_ROWS_MAX;
    more |= sweep_answers(tx, now)?;
    more |= sweep_feed(tx, now)?;
    more |= audit::sweep(tx, before(now, keep.audit.age_ms), u64::from(keep.audit.count))?;
    more |= deliver::sweep(tx, before(now, keep.age_ms))?;
    Ok(more)
}

fn sweep_answers(tx: &mut Tx<'_>, now: Millis) -> Result<bool, Abort> {
    let mut more = false;
    for (tenant, _) in access::tenants(tx)? {
        let rows = tx.scan(&REMEMBERED, &(tenant,), None, limits::MAINTENANCE_ROWS_MAX)?;
        let mut removed = 0;
        for (key, row) in rows
            .iter()
            .take_while(|(_, row)| now.since(row.at) > limits::IDEMPOTENCY_AGE_MS)
        {
            tx.remove(&REMEMBERED, key)?;
            tx.remove(&REMEMBERED_KEYS, &(tenant, DigestKey(row.key)))?;
            removed += 1;
        }
        more |= removed == limits::MAINTENANCE_ROWS_MAX;
    }
    Ok(more)
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
