//! Steps that need a process and no slots: each share in its turn, jobs and graphs alike. A job is a share of the usual tier.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use super::claim::{self, Pass, Passed};
use super::head;
use super::tasks::QueueLines;
use crate::domain::fair::{self, Lines};
use crate::domain::slots::claim::ProcessRef;
use crate::domain::workflow::definition::ConcurrencyPolicy;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::lines::PROCESS_QUEUE;
use crate::engine::book::Book;
use crate::store::keys::Key;
use crate::store::rows::ReadyStep;
use crate::store::tables::{READY_STEPS, TASKS};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// How the share of a job begins, so that it is none of a graph's.
const JOB: char = '\u{1}';

type Ready = (RunId, StepRef, ReadyStep);

/// Steps of jobs, by their share.
type OfJobs = BTreeMap<String, VecDeque<Ready>>;

/// Steps that this daemon may claim, oldest first. Those of other daemons are passed over, however many a dead one has left.
fn of_jobs(rows: &mut impl Rows, book: &Book, most: usize) -> Result<Vec<Ready>, StoreError> {
    let mut found = Vec::new();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = rows.scan_each(
            &READY_STEPS,
            &(TENANT,),
            after.as_deref(),
            limits::MAINTENANCE_ROWS_MAX,
        )?;
        let Some(last) = page.last() else { return Ok(found) };
        after = Some(last.key.clone());
        for ((_, run, step), row) in page.into_iter().filter_map(|each| each.row.ok()) {
            if row.node.as_ref().is_none_or(|node| *node == book.node) {
                found.push((run, step, row));
            }
            if found.len() == most {
                return Ok(found);
            }
        }
    }
}

/// How many processes could be put to work, at most so many.
pub fn count(rows: &mut impl Rows, book: &Book, most: usize) -> Result<usize, StoreError> {
    let of_jobs = of_jobs(rows, book, most)?.len();
    let prefix = (TENANT, PROCESS_QUEUE.to_owned()).encode();
    let of_graphs = rows.raw_scan(TASKS.index(), &prefix, None, false, most)?.len();
    Ok(most.min(of_jobs + of_graphs))
}

/// What waits, of jobs and of graphs.
struct Both<'r, R: Rows> {
    jobs: &'r OfJobs,
    graphs: QueueLines<'r, R>,
}

impl<R: Rows> Lines for Both<'_, R> {
    type Error = StoreError;

    fn next_share(&mut self, tier: Tier, after: Option<&str>) -> Result<Option<String>, StoreError> {
        let mut of_job = None;
        if tier == Tier::Default {
            let behind = |share: &&String| after.is_none_or(|after| share.as_str() > after);
            of_job = self.jobs.keys().find(behind).cloned();
        }
        let of_graph = self.graphs.next_share(tier, after)?;
        Ok(of_job.into_iter().chain(of_graph).min())
    }
}

/// Claims what there are processes for.
pub fn claim(
    tx: &mut Tx<'_>,
    book: &Book,
    pass: &Pass,
    free: &mut Vec<ProcessRef>,
    done: &mut Passed,
) -> Result<(), Abort> {
    let mut jobs = OfJobs::new();
    for ready in of_jobs(tx, book, limits::MAINTENANCE_ROWS_MAX)? {
        jobs.entry(format!("{JOB}{}", ready.2.job))
            .or_default()
            .push_back(ready);
    }
    let mut cursor = pass.turns.of(PROCESS_QUEUE);
    let mut broken = BTreeSet::new();
    loop {
        let before = cursor.clone();
        let mut lines = Both {
            jobs: &jobs,
            graphs: QueueLines::of(tx, PROCESS_QUEUE),
        };
        let Some((tier, share)) = fair::choose(&mut cursor, &mut lines, &broken)? else {
            break;
        };
        let Some((run, step, row)) = next_of(tx, &mut jobs, tier, &share)? else {
            broken.insert((tier, share));
            continue;
        };
        if claim::policy_of(book, &row.job) == ConcurrencyPolicy::Replace
            && head::has_live_instance(tx, &row.job, run)?
        {
            done.replaced.extend(claim::replace_earlier(tx, &row.job, run)?);
            if !share.starts_with(JOB) {
                broken.insert((tier, share));
            }
            continue;
        }
        let Some(process) = free.pop() else {
            done.more = true;
            cursor = before;
            break;
        };
        match claim::claim_ready_step(tx, book, pass, run, &step, &row, process) {
            Ok(claimed) => done.claimed.push(claimed),
            Err(Abort(error)) if error.is_row_fault() => {
                free.push(process);
                tracing::error!(run_id = %run, cause = %error, "this run cannot be read; it does not start");
                if !share.starts_with(JOB) {
                    broken.insert((tier, share));
                }
            }
            Err(abort) => return Err(abort),
        }
    }
    pass.turns.keep(PROCESS_QUEUE, cursor);
    Ok(())
}

/// The first step of a share; of a job it is taken off.
fn next_of(tx: &mut Tx<'_>, jobs: &mut OfJobs, tier: Tier, share: &str) -> Result<Option<Ready>, StoreError> {
    if let Some(waiting) = jobs.get_mut(share) {
        let first = waiting.pop_front();
        if waiting.is_empty() {
            jobs.remove(share);
        }
        return Ok(first);
    }
    let prefix = (TENANT, PROCESS_QUEUE.to_owned(), tier as u8, share.to_owned());
    let row = tx.scan_each(&TASKS, &prefix, None, 1)?.into_iter().next();
    let Some(Ok((_, task))) = row.map(|each| each.row) else {
        return Ok(None);
    };
    let Some(run) = crate::store::runs::by_id(tx, task.run)? else {
        return Ok(None);
    };
    let row = ReadyStep {
        job: run.definition,
        node: None,
    };
    Ok(Some((task.run, task.step, row)))
}
