//! Looking for runs: a walk along the keys in the order of time that begins and ends where a filter's times say, and never
//! looks at more rows than it was given.
//!
//! Ids are made in the order of time, so that times are found in the keys by halving; no index is needed for that.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use super::error::StoreError;
use super::keys::Key;
use super::rows::DefinitionRecord;
use super::table::Rows;
use super::tables::{ACTIVE_RUNS, DEFINITIONS, JOB_RUNS, RUNS};
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::filter::RunFilter;
use crate::domain::workflow::run::Run;
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// With more jobs than this the table of all runs is walked.
const JOBS_MERGED_MAX: usize = 16;
/// Rows read at a time.
const CHUNK: usize = 256;
/// Bits of an id below its milliseconds.
const MS_SHIFT: u32 = 80;

/// The slot pools of definitions, each read once.
#[derive(Debug, Default)]
pub struct SlotPoolsOf {
    known: BTreeMap<(JobName, u32), Option<SlotPoolName>>,
}

impl SlotPoolsOf {
    /// Where a run takes its slots; `None` for an unpooled job, and for a definition that cannot be read.
    pub fn of(&mut self, rows: &mut impl Rows, run: &Run) -> Result<Option<SlotPoolName>, StoreError> {
        let key = (run.definition.clone(), run.version);
        let vacant = match self.known.entry(key) {
            Entry::Occupied(known) => return Ok(known.get().clone()),
            Entry::Vacant(vacant) => vacant,
        };
        let stored: Result<Option<DefinitionRecord>, StoreError> =
            rows.get(&DEFINITIONS, &(TENANT, run.definition.clone(), run.version));
        let record = match stored {
            Ok(record) => record,
            Err(error) if error.is_row_fault() => None,
            Err(error) => return Err(error),
        };
        let definition = record.and_then(|record| record.json.read::<Definition>().ok());
        let demand = definition.as_ref().and_then(Definition::job_demand);
        Ok(vacant
            .insert(demand.map(|demand| demand.slot_pool.clone()))
            .clone())
    }
}

/// A row that was met.
#[derive(Debug, Clone, PartialEq)]
pub enum Met {
    /// A run that the filter wants.
    Wanted(Box<Run>),
    /// One that it does not want.
    Other {
        /// Its time.
        at: Millis,
        /// The run that it repeats.
        repeats: Option<RunId>,
    },
    /// One that cannot be read.
    Unreadable,
}

/// A walk: where it is, and what it goes along.
#[derive(Debug)]
pub struct RunWalk {
    filter: RunFilter,
    ids: Option<(RunId, RunId)>,
    ascending: bool,
    after: Option<RunId>,
    along: Along,
    slot_pools: SlotPoolsOf,
    waiting: std::vec::IntoIter<(RunId, Option<Run>)>,
    ended: bool,
}

#[derive(Debug)]
enum Along {
    /// All runs.
    All,
    /// The runs of these jobs, merged.
    Jobs(Vec<JobName>),
    /// These.
    Ids(std::vec::IntoIter<RunId>),
}

impl RunWalk {
    /// Begins behind `after`, or where the filter's times begin.
    pub fn begin(
        rows: &mut impl Rows,
        filter: &RunFilter,
        ascending: bool,
        after: Option<RunId>,
    ) -> Result<RunWalk, StoreError> {
        let along = match unfinished(rows, filter, ascending, after)? {
            Some(ids) => Along::Ids(ids.into_iter()),
            None if (1..=JOBS_MERGED_MAX).contains(&filter.jobs.len()) => {
                Along::Jobs(filter.jobs.iter().cloned().collect())
            }
            None => Along::All,
        };
        let after = match (&along, after) {
            (Along::Ids(_), _) => None,
            (Along::All | Along::Jobs(_), Some(after)) => Some(after),
            (Along::All | Along::Jobs(_), None) => first_place(rows, filter, ascending)?,
        };
        Ok(RunWalk {
            filter: filter.clone(),
            ids: filter.id_range(),
            ascending,
            after,
            along,
            slot_pools: SlotPoolsOf::default(),
            waiting: Vec::new().into_iter(),
            ended: false,
        })
    }

    /// The next row; `None` at the end.
    pub fn next(&mut self, rows: &mut impl Rows) -> Result<Option<(RunId, Met)>, StoreError> {
        let found = match self.waiting.next() {
            Some(found) => Some(found),
            None if self.ended => None,
            None => {
                self.fill(rows)?;
                self.waiting.next()
            }
        };
        let Some((id, run)) = found else { return Ok(None) };
        if self.is_behind_ids(id) {
            return Ok(self.end());
        }
        let Some(run) = run else {
            return Ok(Some((id, Met::Unreadable)));
        };
        if self.is_behind_times(&run) {
            return Ok(self.end());
        }
        let wanted = if self.filter.slot_pools.is_empty() || !self.filter.matches_header(&run) {
            self.filter.matches(&run, None)
        } else {
            let slot_pool = self.slot_pools.of(rows, &run)?;
            self.filter.matches(&run, slot_pool.as_ref())
        };
        Ok(Some(if wanted {
            (id, Met::Wanted(Box::new(run)))
        } else {
            let (at, repeats) = (run.created_at, run.trigger.rerun_of());
            (id, Met::Other { at, repeats })
        }))
    }

    /// Where a run takes its slots.
    pub fn slot_pool_of(
        &mut self,
        rows: &mut impl Rows,
        run: &Run,
    ) -> Result<Option<SlotPoolName>, StoreError> {
        self.slot_pools.of(rows, run)
    }

    fn end<T>(&mut self) -> Option<T> {
        self.ended = true;
        self.waiting = Vec::new().into_iter();
        None
    }

    /// True when this id and all behind it are none that are wanted.
    fn is_behind_ids(&self, id: RunId) -> bool {
        self.ids
            .is_some_and(|(first, last)| if self.ascending { id > last } else { id < first })
    }

    /// True when this run and all behind it are too old, or too new.
    fn is_behind_times(&self, run: &Run) -> bool {
        let slack = limits::ID_ORDER_SLACK_MS;
        if self.ascending {
            self.filter
                .until
                .is_some_and(|until| run.created_at > until.plus(slack))
        } else {
            self.filter
                .since
                .is_some_and(|since| run.created_at.plus(slack) < since)
        }
    }

    fn fill(&mut self, rows: &mut impl Rows) -> Result<(), StoreError> {
        let ids = match &mut self.along {
            Along::All => {
                let after = self.after.map(|id| (TENANT, id).encode());
                let found = if self.ascending {
                    rows.scan_each(&RUNS, &(TENANT,), after.as_deref(), CHUNK)?
                } else {
                    rows.scan_each_back(&RUNS, &(TENANT,), after.as_deref(), CHUNK)?
                };
                self.ended = found.len() < CHUNK;
                let read = found.into_iter().filter_map(|each| match each.row {
                    Ok(((_, id), run)) => Some((id, Some(run))),
                    Err(_) => <(TenantId, RunId)>::decode(&each.key).map(|(_, id)| (id, None)),
                });
                let read: Vec<_> = read.collect();
                self.after = read.last().map(|(id, _)| *id).or(self.after);
                self.waiting = read.into_iter();
                return Ok(());
            }
            Along::Jobs(names) => {
                let ids = merged(rows, names, self.ascending, self.after)?;
                self.ended = ids.len() < CHUNK;
                ids
            }
            Along::Ids(ids) => {
                let ids: Vec<RunId> = ids.by_ref().take(CHUNK).collect();
                self.ended = ids.len() < CHUNK;
                ids
            }
        };
        self.after = ids.last().copied().or(self.after);
        let mut read = Vec::with_capacity(ids.len());
        for id in ids {
            match rows.get(&RUNS, &(TENANT, id)) {
                Ok(run) => read.push((id, run)),
                Err(error) if error.is_row_fault() => read.push((id, None)),
                Err(error) => return Err(error),
            }
        }
        self.waiting = read.into_iter();
        Ok(())
    }
}

/// The ids of all runs that have not ended, in order, when only such are wanted and they are not too many.
fn unfinished(
    rows: &mut impl Rows,
    filter: &RunFilter,
    ascending: bool,
    after: Option<RunId>,
) -> Result<Option<Vec<RunId>>, StoreError> {
    if !filter.wants_only_unfinished() {
        return Ok(None);
    }
    let max = limits::UNFINISHED_SORTED_MAX;
    let mut found = Vec::new();
    if filter.jobs.is_empty() {
        found = rows.scan(&ACTIVE_RUNS, &(TENANT,), None, max + 1)?;
    }
    for name in &filter.jobs {
        let left = (max + 1).saturating_sub(found.len());
        found.extend(rows.scan(&ACTIVE_RUNS, &(TENANT, name.clone()), None, left)?);
    }
    if found.len() > max {
        return Ok(None);
    }
    let ids = found.into_iter().map(|((_, _, id), _)| id);
    let mut ids: Vec<RunId> = if ascending {
        ids.filter(|id| after.is_none_or(|after| *id > after)).collect()
    } else {
        ids.filter(|id| after.is_none_or(|after| *id < after)).collect()
    };
    ids.sort_unstable();
    if !ascending {
        ids.reverse();
    }
    Ok(Some(ids))
}

/// The next ids of several jobs, in the order of time.
fn merged(
    rows: &mut impl Rows,
    names: &[JobName],
    ascending: bool,
    after: Option<RunId>,
) -> Result<Vec<RunId>, StoreError> {
    let mut ids = Vec::new();
    for name in names {
        let prefix = (TENANT, name.clone());
        let after = after.map(|id| (TENANT, name.clone(), id));
        let found = if ascending {
            rows.scan(&JOB_RUNS, &prefix, after.as_ref(), CHUNK)?
        } else {
            rows.scan_back(&JOB_RUNS, &prefix, after.as_ref(), CHUNK)?
        };
        ids.extend(found.into_iter().map(|((_, _, id), _)| id));
    }
    ids.sort_unstable();
    if !ascending {
        ids.reverse();
    }
    ids.truncate(CHUNK);
    Ok(ids)
}

fn ms_of(id: RunId) -> u64 {
    u64::try_from(u128::from_be_bytes(id.0) >> MS_SHIFT).unwrap_or(u64::MAX)
}

/// The id before all that were made in this millisecond.
fn before_ms(ms: u64) -> RunId {
    let first = u128::from(ms) << MS_SHIFT;
    RunId(first.saturating_sub(1).to_be_bytes())
}

/// Behind which id a walk begins that has not begun yet: no run that is wanted is passed over.
fn first_place(
    rows: &mut impl Rows,
    filter: &RunFilter,
    ascending: bool,
) -> Result<Option<RunId>, StoreError> {
    let of_ids = filter.id_range().map(|(first, last)| {
        let (first, last) = (u128::from_be_bytes(first.0), u128::from_be_bytes(last.0));
        let place = if ascending {
            first.saturating_sub(1)
        } else {
            last.saturating_add(1)
        };
        RunId(place.to_be_bytes())
    });
    let slack = limits::ID_ORDER_SLACK_MS;
    let of_times = match (ascending, filter.since, filter.until) {
        (true, Some(since), _) => first_created(rows, &|at| at.plus(slack) >= since, true)?.map(before_ms),
        (false, _, Some(until)) => first_created(rows, &|at| at > until.plus(slack), false)?.map(before_ms),
        (true, None, _) | (false, _, None) => None,
    };
    Ok(match (of_ids, of_times) {
        (Some(one), Some(other)) if ascending => Some(one.max(other)),
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    })
}

/// The first millisecond of ids at or behind which runs are `late`; `None` if the whole table must be walked.
fn first_created(
    rows: &mut impl Rows,
    late: &dyn Fn(Millis) -> bool,
    unreadable_is_late: bool,
) -> Result<Option<u64>, StoreError> {
    let oldest = rows.scan_each(&RUNS, &(TENANT,), None, 1)?;
    let newest = rows.scan_each_back(&RUNS, &(TENANT,), None, 1)?;
    let ends = oldest.first().zip(newest.first());
    let ms = |key: &[u8]| <(TenantId, RunId)>::decode(key).map(|(_, id)| ms_of(id));
    let Some((mut low, high)) = ends.and_then(|(oldest, newest)| ms(&oldest.key).zip(ms(&newest.key))) else {
        return Ok(None);
    };
    let mut high = high.saturating_add(1);
    let end = high;
    while low < high {
        let middle = low + (high - low) / 2;
        let after = (TENANT, before_ms(middle)).encode();
        let found = rows.scan_each(&RUNS, &(TENANT,), Some(&after), 1)?;
        let is_late = match found.first() {
            None => true,
            Some(each) => match &each.row {
                Ok((_, run)) => late(run.created_at),
                Err(_) => unreadable_is_late,
            },
        };
        if is_late {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    // Nothing is late: whoever walks back begins at the end.
    Ok((low < end || unreadable_is_late).then_some(low))
}
