//! What waits now and for what: one group for each queue, for steps without a slot pool, and for the time of a retry.

use std::collections::BTreeMap;

use serde::Serialize;
use utoipa::ToSchema;

use super::{head, waiting};
use crate::domain::slots::admission::ANY_MOMENT;
use crate::domain::workflow::run::StepPhase;
use crate::engine::book::Book;
use crate::store::keys::{HighFirst, Key};
use crate::store::tables::{ATTEMPTS, KEY_COUNTS, READY_STEPS, RETRY_DUE, SLOT_WAITING, STEPS, TASKS};
use crate::store::{Rows, StoreError, entries, key_limits};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;
/// Groups that are shown.
const GROUPS_MAX: usize = 20;
/// Priorities of one queue that are looked at for its oldest entry.
const PRIORITIES_MAX: usize = 64;
/// Steps that are looked at for the oldest of them.
const STEPS_MAX: usize = 200;

/// What waits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = WaitingNow)]
pub(super) struct WaitsView {
    /// Runs, in all groups.
    total: u64,
    /// The largest 20.
    groups: Vec<WaitGroup>,
}

/// Runs that wait for the same.
#[derive(Debug, Serialize, ToSchema)]
struct WaitGroup {
    /// `slots`, `paused`, `forbid`, `node`, `drift`, `worker` or `ready` of the head of a queue, `backoff`, or
    /// `concurrency`.
    code: &'static str,
    text: String,
    pool: Option<String>,
    count: u64,
    /// Since when the oldest of them waits; of a long list, as far as it was looked at.
    oldest_since: Option<String>,
    /// When the next one of a back-off is due.
    retry_at: Option<String>,
    head: Option<WaitHead>,
}

/// The run that goes first.
#[derive(Debug, Serialize, ToSchema)]
struct WaitHead {
    run_id: String,
    job: Option<String>,
    /// In its queue; absent where there is none.
    position: Option<usize>,
}

/// What waits, in the largest groups first.
pub(super) fn look(rows: &mut impl Rows, book: &Book, now: Millis) -> Result<WaitsView, StoreError> {
    let mut groups = Vec::new();
    for name in book.slot_pools.keys() {
        match of_queue(rows, book, name, now) {
            Ok(group) => groups.extend(group),
            // A slot pool that cannot be read is told by the status, and hides no other.
            Err(error) if error.is_row_fault() => {}
            Err(error) => return Err(error),
        }
    }
    groups.extend(of_ready_steps(rows, book)?);
    groups.extend(of_tasks(rows)?);
    groups.extend(of_retries(rows)?);
    groups.extend(of_keys(rows)?);
    let total = groups.iter().map(|group| group.count).sum();
    groups.sort_by_key(|group| std::cmp::Reverse(group.count));
    groups.truncate(GROUPS_MAX);
    Ok(WaitsView { total, groups })
}

fn of_queue(
    rows: &mut impl Rows,
    book: &Book,
    name: &SlotPoolName,
    now: Millis,
) -> Result<Option<WaitGroup>, StoreError> {
    let count = entries::waiting_count(rows, name)?;
    let first = entries::waiting(rows, name, 1)?.into_iter().next();
    let (Some((_, first)), Some(head)) = (first, head::of(rows, book, name, now)?) else {
        return Ok(None);
    };
    let entry = entries::by_seq(rows, first.seq)?;
    Ok(Some(WaitGroup {
        code: head.blocked.map_or("ready", waiting::code_of),
        text: head.sentence,
        pool: Some(name.to_string()),
        count,
        oldest_since: oldest_of(rows, name)?.map(|at| at.to_string()),
        retry_at: None,
        head: entry.map(|entry| WaitHead {
            run_id: entry.run.to_string(),
            job: Some(entry.job.to_string()),
            position: Some(1),
        }),
    }))
}

/// The queue is in the order of priority, then time: the first of each priority is looked at.
fn oldest_of(rows: &mut impl Rows, name: &SlotPoolName) -> Result<Option<Millis>, StoreError> {
    let prefix = (TENANT, name.clone());
    let mut oldest: Option<Millis> = None;
    let mut after = None;
    for _ in 0..PRIORITIES_MAX {
        let found = rows.scan(&SLOT_WAITING, &prefix, after.as_ref(), 1)?;
        let Some(((_, _, HighFirst(priority), at, _), _)) = found.into_iter().next() else {
            break;
        };
        oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
        let last = (Millis(i64::MAX), EntryId([u8::MAX; 16]));
        after = Some((TENANT, name.clone(), HighFirst(priority), last.0, last.1));
    }
    Ok(oldest)
}

/// Steps without a slot pool: for a process, or for the daemon that they are bound to.
fn of_ready_steps(rows: &mut impl Rows, book: &Book) -> Result<Vec<WaitGroup>, StoreError> {
    let mut groups: BTreeMap<Option<NodeName>, (u64, Option<Millis>, Option<WaitHead>)> = BTreeMap::new();
    for (at, each) in rows
        .scan_each(&READY_STEPS, &(TENANT,), None, usize::MAX)?
        .into_iter()
        .enumerate()
    {
        let Ok(((_, run, step), ready)) = each.row else {
            continue;
        };
        let elsewhere = ready.node.filter(|node| *node != book.node);
        let (count, oldest, first) = groups.entry(elsewhere).or_default();
        *count += 1;
        if at < STEPS_MAX
            && let Some(StepPhase::Ready { since }) = phase_of(rows, run, &step)?
        {
            *oldest = Some(oldest.map_or(since, |oldest| oldest.min(since)));
        }
        first.get_or_insert_with(|| head_of(run, Some(ready.job)));
    }
    let mut views = Vec::with_capacity(groups.len());
    for (node, (count, oldest, first)) in groups {
        let text = match &node {
            Some(node) => head::for_node(rows, node)?,
            None => ANY_MOMENT.to_owned(),
        };
        views.push(WaitGroup {
            code: if node.is_some() { "node" } else { "ready" },
            text,
            pool: None,
            count,
            oldest_since: oldest.map(|at| at.to_string()),
            retry_at: None,
            head: first,
        });
    }
    Ok(views)
}

/// True for the queues of this program itself: no queue of a definition begins so.
pub(super) fn is_own_queue(queue: &str) -> bool {
    queue.starts_with('!')
}

/// Why a task waits.
pub(super) fn for_worker(queue: &str) -> String {
    format!("Waits for a worker of queue `{queue}`")
}

/// Steps of graphs that need no slots: tasks wait for a remote worker, the others may start at any moment.
fn of_tasks(rows: &mut impl Rows) -> Result<Vec<WaitGroup>, StoreError> {
    let mut groups: BTreeMap<String, (u64, RunId)> = BTreeMap::new();
    for each in rows.scan_each(&TASKS, &(TENANT,), None, usize::MAX)? {
        if let Ok(((_, queue, ..), task)) = each.row {
            groups.entry(queue).or_insert((0, task.run)).0 += 1;
        }
    }
    let group = |(queue, (count, run)): (String, (u64, RunId))| {
        let is_own = is_own_queue(&queue);
        WaitGroup {
            code: if is_own { "ready" } else { "worker" },
            text: if is_own {
                ANY_MOMENT.to_owned()
            } else {
                for_worker(&queue)
            },
            pool: None,
            count,
            oldest_since: None,
            retry_at: None,
            head: Some(head_of(run, None)),
        }
    };
    Ok(groups.into_iter().map(group).collect())
}

/// Steps whose next attempt waits for its time.
fn of_retries(rows: &mut impl Rows) -> Result<Option<WaitGroup>, StoreError> {
    let count = rows
        .raw_scan(RETRY_DUE.index(), &(TENANT,).encode(), None, false, usize::MAX)?
        .len();
    let found = rows.scan_each(&RETRY_DUE, &(TENANT,), None, STEPS_MAX)?;
    let due: Vec<(Millis, RunId, StepRef)> = found
        .into_iter()
        .filter_map(|each| each.row.ok())
        .map(|((_, at, run, step), _)| (at, run, step))
        .collect();
    let Some((next, run, _)) = due.first() else {
        return Ok(None);
    };
    let mut oldest: Option<Millis> = None;
    for (_, run, step) in &due {
        let attempts = rows.scan_each_back(&ATTEMPTS, &(TENANT, *run, step.clone()), None, 1)?;
        let ended = attempts.into_iter().filter_map(|each| each.row.ok());
        for (_, attempt) in ended {
            oldest = Some(oldest.map_or(attempt.ended_at, |oldest| oldest.min(attempt.ended_at)));
        }
    }
    let job = super::endings::readable(rows, *run)?.map(|run| run.definition);
    let text = match count {
        1 => format!("The next attempt is due at {next}"),
        _ => format!("The next of {count} attempts is due at {next}"),
    };
    Ok(Some(WaitGroup {
        code: "backoff",
        text,
        pool: None,
        count: count as u64,
        oldest_since: oldest.map(|at| at.to_string()),
        retry_at: Some(next.to_string()),
        head: Some(head_of(*run, job)),
    }))
}

/// Runs that have not begun because others of their definition and key have not ended.
fn of_keys(rows: &mut impl Rows) -> Result<Option<WaitGroup>, StoreError> {
    let (mut count, mut oldest, mut first) = (0, None, None);
    for each in rows.scan_each(&KEY_COUNTS, &(TENANT,), None, usize::MAX)? {
        let Ok(((_, job, key), of_key)) = each.row else {
            continue;
        };
        if of_key.waiting == 0 {
            continue;
        }
        count += u64::from(of_key.waiting);
        let next = key_limits::waiters(rows, &job, &key, 1)?;
        let Some((_, next)) = next.into_iter().next() else {
            continue;
        };
        let run = super::endings::readable(rows, next.run)?;
        let since = run.as_ref().map(|run| run.created_at);
        if let Some(since) = since.filter(|since| oldest.is_none_or(|oldest| *since < oldest)) {
            oldest = Some(since);
            first = Some((next.run, job));
        }
    }
    if count == 0 {
        return Ok(None);
    }
    let text = match count {
        1 => "Waits for the end of another run of its key".to_owned(),
        _ => "Wait for the end of other runs of their keys".to_owned(),
    };
    Ok(Some(WaitGroup {
        code: "concurrency",
        text,
        pool: None,
        count,
        oldest_since: oldest.map(|at| at.to_string()),
        retry_at: None,
        head: first.map(|(run, job)| head_of(run, Some(job))),
    }))
}

fn head_of(run: RunId, job: Option<JobName>) -> WaitHead {
    WaitHead {
        run_id: run.to_string(),
        job: job.map(|job| job.to_string()),
        position: None,
    }
}

/// Where a step stands, unless its row cannot be read.
fn phase_of(rows: &mut impl Rows, run: RunId, step: &StepRef) -> Result<Option<StepPhase>, StoreError> {
    match rows.get(&STEPS, &(TENANT, run, step.clone())) {
        Err(error) if error.is_row_fault() => Ok(None),
        other => Ok(other?.map(|state| state.phase)),
    }
}
