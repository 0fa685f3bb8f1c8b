//! Retries: whether another attempt follows a failed one, its return to the queue when its time has come, and its end
//! when a newer fire, a success or an operator settles its scope.
//!
//! A scope is (job, node or ""). Settling it moves its generation on and ends what waits for another attempt, in the
//! change of its cause; a run of an older generation gets no further attempt.

use crate::domain::slots::entry::{EntryEvent, EntryKind, reason};
use crate::domain::workflow::definition::{ConcurrencyPolicy, Definition, Retry};
use crate::domain::workflow::run::{RetryRight, Run, StepPhase, StepState, Trigger};
use crate::domain::workflow::tick::Fact;
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::start::{self, Entered, Entering};
use crate::engine::changes::{advance, maintain};
use crate::engine::core::Deferred;
use crate::store::rows::{DefinitionRecord, Fire, Number, PublishedJob, ReadyStep};
use crate::store::tables::{
    DEFINITIONS, FIRES, PUBLISHED_JOBS, RETRY_DUE, RETRY_RIGHTS, RETRY_SCOPES, RETRYING, STEPS,
};
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, NodeName, StepRef};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The node part of a scope.
fn scope_of(node: Option<&NodeName>) -> String {
    node.map(ToString::to_string).unwrap_or_default()
}

/// The generation of a scope now.
pub fn generation(rows: &mut impl Rows, job: &JobName, node: &str) -> Result<u64, StoreError> {
    let stored = rows.get(&RETRY_SCOPES, &(TENANT, job.clone(), node.to_owned()))?;
    Ok(stored.map_or(0, |Number(generation)| generation))
}

/// The fact that a failed attempt leads to: another attempt at its time, or the end of the run.
pub fn after_failure(tx: &mut Tx<'_>, run: &Run, step: &StepState, why: String) -> Result<Fact, StoreError> {
    let next = step.attempt.saturating_add(1);
    let delay = match policy_of(tx, run)? {
        Some(retry) if retry.allows(next) => retry.delay_before(next),
        Some(_) | None => return Ok(Fact::Failed(why)),
    };
    Ok(Fact::Retry {
        due: tx.now().wall.plus(delay),
        reason: why,
    })
}

/// The retries of the run's own definition, if it still has the right to any.
fn policy_of(tx: &mut Tx<'_>, run: &Run) -> Result<Option<Retry>, StoreError> {
    let right = tx.get(&RETRY_RIGHTS, &(TENANT, run.id))?;
    if !is_current(tx, run, right)? {
        return Ok(None);
    }
    let key = (TENANT, run.definition.clone(), run.version);
    let record: Option<DefinitionRecord> = tx.get(&DEFINITIONS, &key)?;
    let definition = record.and_then(|record| record.json.read::<Definition>().ok());
    Ok(definition.map(|definition| definition.policy.retry))
}

/// C6: true while the run may have further attempts.
fn is_current(rows: &mut impl Rows, run: &Run, right: Option<RetryRight>) -> Result<bool, StoreError> {
    match right {
        None | Some(RetryRight::No) => Ok(false),
        Some(RetryRight::Own) => Ok(true),
        Some(RetryRight::Scoped { generation: own }) => {
            let scope = scope_of(run.node.as_ref());
            Ok(generation(rows, &run.definition, &scope)? == own)
        }
    }
}

/// C6 for an entry of this kind: only retries can be out of date.
pub fn may_be_claimed(rows: &mut impl Rows, kind: EntryKind, run: RunId) -> Result<bool, StoreError> {
    if kind != EntryKind::Retry {
        return Ok(true);
    }
    let Some(header) = runs::by_id(rows, run)? else {
        return Ok(false);
    };
    let right = rows.get(&RETRY_RIGHTS, &(TENANT, run))?;
    is_current(rows, &header, right)
}

/// Settles a scope: a new generation, and T6 for what waits under it. With `expected`, only while the scope still has that
/// generation. The generation afterwards.
pub fn settle(
    tx: &mut Tx<'_>,
    job: &JobName,
    node: &str,
    expected: Option<u64>,
    why: &'static str,
) -> Result<u64, Abort> {
    let current = generation(tx, job, node)?;
    if expected.is_some_and(|expected| expected != current) {
        return Ok(current);
    }
    let next = current + 1;
    tx.put(
        &RETRY_SCOPES,
        &(TENANT, job.clone(), node.to_owned()),
        &Number(next),
    )?;
    for (run, step) in waiting_of(tx, job)? {
        let (header, _) = advance::load(tx, run, &step)?;
        let right = tx.get(&RETRY_RIGHTS, &(TENANT, run))?;
        let in_scope =
            matches!(right, Some(RetryRight::Scoped { .. })) && scope_of(header.node.as_ref()) == node;
        if in_scope {
            end(tx, run, &step, why)?;
        }
    }
    Ok(next)
}

/// Applies settlements that could not be written when they were due. A scope that has moved on is left alone.
pub fn settle_deferred(tx: &mut Tx<'_>, deferred: &[Deferred]) -> Result<(), Abort> {
    for each in deferred {
        if each.generation.is_none() && has_newer_fire(tx, each)? {
            continue;
        }
        settle(
            tx,
            &each.job,
            &each.node,
            each.generation,
            reason::RETRY_SUPERSEDED,
        )?;
    }
    Ok(())
}

/// True when a moment after the one that could not settle has become a run: it has settled for both.
fn has_newer_fire(rows: &mut impl Rows, deferred: &Deferred) -> Result<bool, StoreError> {
    let prefix = (TENANT, deferred.job.clone());
    let newest = rows.scan_back(&FIRES, &prefix, None, limits::MAINTENANCE_ROWS_MAX)?;
    let mut newer = newest
        .into_iter()
        .take_while(|((_, _, instant, _), _)| *instant > deferred.instant);
    Ok(newer.any(|((_, _, _, node), fire)| node == deferred.node && matches!(fire, Fire::Run(_))))
}

/// What waits for another attempt of a job.
fn waiting_of(rows: &mut impl Rows, job: &JobName) -> Result<Vec<(RunId, StepRef)>, StoreError> {
    let found = rows.scan(&RETRYING, &(TENANT, job.clone()), None, usize::MAX)?;
    Ok(found
        .into_iter()
        .map(|((_, _, run, step), _)| (run, step))
        .collect())
}

/// Ends what waits for another attempt: its run has failed, for this reason.
fn end(tx: &mut Tx<'_>, run: RunId, step: &StepRef, why: &'static str) -> Result<(), Abort> {
    let both = advance::load(tx, run, step)?;
    if let StepPhase::Queued { entry, .. } = both.1.phase
        && let Some(entry) = entries::by_seq(tx, entry)?
    {
        advance::withdraw(tx, &entry, &EntryEvent::Withdraw(why), false)?;
        return Ok(());
    }
    advance::advance(tx, &both, &Fact::Withdrawn(why.to_owned()), None)?;
    Ok(())
}

/// A success settles its own generation; a start by hand has none and settles whatever waits.
pub fn succeeded(tx: &mut Tx<'_>, run: &Run) -> Result<(), Abort> {
    let right = tx.get(&RETRY_RIGHTS, &(TENANT, run.id))?;
    if let Some(RetryRight::Scoped { generation }) = right {
        let scope = scope_of(run.node.as_ref());
        settle(
            tx,
            &run.definition,
            &scope,
            Some(generation),
            reason::RETRY_SUCCEEDED,
        )?;
        return Ok(());
    }
    if waiting_of(tx, &run.definition)?.is_empty() {
        return Ok(());
    }
    settle(tx, &run.definition, "", None, reason::RETRY_SUCCEEDED)?;
    if let Some(node) = &run.node {
        settle(tx, &run.definition, node.as_str(), None, reason::RETRY_SUCCEEDED)?;
    }
    Ok(())
}

/// Ends everything of a job that waits for another attempt, and sees that no running attempt gets another; the number
/// of runs that ended.
pub fn cancel(tx: &mut Tx<'_>, job: &JobName) -> Result<usize, Abort> {
    let waiting = waiting_of(tx, job)?;
    for (run, step) in &waiting {
        end(tx, *run, step, reason::RETRY_CANCELLED)?;
    }
    for ((_, job, node), Number(generation)) in
        tx.scan(&RETRY_SCOPES, &(TENANT, job.clone()), None, usize::MAX)?
    {
        tx.put(&RETRY_SCOPES, &(TENANT, job, node), &Number(generation + 1))?;
    }
    for run in runs::active_of(tx, job, usize::MAX)? {
        if tx.get(&RETRY_RIGHTS, &(TENANT, run))? == Some(RetryRight::Own) {
            tx.put(&RETRY_RIGHTS, &(TENANT, run), &RetryRight::No)?;
        }
    }
    Ok(waiting.len())
}

/// The answer to the wish that a run does not wait for the time of its next attempt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Hastened {
    /// Its time is now.
    Now {
        /// The attempt that follows.
        attempt: u32,
    },
    /// It waits for something else, or runs.
    NotWaiting {
        /// The phase of its step.
        phase: &'static str,
        /// The attempt that runs or is next.
        attempt: u32,
    },
    /// It has ended.
    AlreadyEnded(String),
    /// There is none.
    NotFound,
}

/// The time of a run's next attempt becomes now; everything else of it stays.
pub fn hasten(tx: &mut Tx<'_>, id: RunId) -> Result<Hastened, Abort> {
    let Some(header) = runs::by_id(tx, id)? else {
        return Ok(Hastened::NotFound);
    };
    if header.state.is_terminal() {
        return Ok(Hastened::AlreadyEnded(header.state.word().to_owned()));
    }
    let mut answer = Hastened::NotFound;
    for ((_, _, step), state) in tx.scan(&STEPS, &(TENANT, id), None, limits::PAGE_MAX)? {
        let attempt = state.attempt;
        if let StepPhase::Retrying { .. } = state.phase {
            let both = advance::load(tx, id, &step)?;
            advance::advance(tx, &both, &Fact::Hastened, None)?;
            return Ok(Hastened::Now { attempt });
        }
        let phase = state.phase.word();
        answer = Hastened::NotWaiting { phase, attempt };
    }
    Ok(answer)
}

/// A step in back-off.
pub type Due = (Millis, RunId, StepRef);

/// The steps in back-off, soonest first: those that are due at `now` and this daemon may bring back, as many as `limit`, and
/// then the next one that is not due yet. Those of other daemons are passed over, however many a dead one has left.
pub fn due(rows: &mut impl Rows, book: &Book, now: Millis, limit: usize) -> Result<Vec<Due>, StoreError> {
    let mut found = Vec::new();
    let mut after = None;
    loop {
        let page = rows.scan(&RETRY_DUE, &(TENANT,), after.as_ref(), limit)?;
        let Some((last, _)) = page.last() else {
            return Ok(found);
        };
        after = Some(last.clone());
        for ((_, at, run, step), _) in page {
            if at > now {
                found.push((at, run, step));
                return Ok(found);
            }
            if is_ours(rows, book, run)? {
                found.push((at, run, step));
            }
            if found.len() == limit {
                return Ok(found);
            }
        }
    }
}

/// True unless the run is bound to another daemon, or its job is configured here in another way than was loaded last.
fn is_ours(rows: &mut impl Rows, book: &Book, run: RunId) -> Result<bool, StoreError> {
    let header = match runs::by_id(rows, run) {
        Ok(Some(header)) => header,
        Ok(None) => return Ok(false),
        Err(error) if error.is_row_fault() => return Ok(false),
        Err(error) => return Err(error),
    };
    if let Some(node) = &header.node {
        return Ok(*node == book.node);
    }
    match book.jobs.get(&header.definition) {
        Some(own) => Ok(!start::has_other_slot_pool(rows, book, own)?),
        None => Ok(true),
    }
}

/// What became of a step whose time had come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resumed {
    /// It waits for slots or starts at once.
    Again {
        /// Its job.
        job: JobName,
    },
    /// It could not enter; `first` the first time for this attempt.
    Refused {
        /// Its job.
        job: JobName,
        /// The attempt number less one.
        retry: u32,
        /// Why.
        why: String,
        /// Nobody has been told yet.
        first: bool,
    },
    /// Its run has ended.
    Ended {
        /// Its job.
        job: JobName,
        /// Why.
        why: &'static str,
    },
    /// It is another daemon's, or not due any more.
    NotOurs,
}

/// Brings one step back whose time has come, or ends its run when nothing may follow any more.
pub fn resume(
    tx: &mut Tx<'_>,
    book: &Book,
    (run, step): (RunId, &StepRef),
    rules: maintain::Rules,
) -> Result<Resumed, Abort> {
    let both = advance::load(tx, run, step)?;
    let now = tx.now().wall;
    let is_due = matches!(&both.1.phase, StepPhase::Retrying { due, .. } if *due <= now);
    if !is_due {
        return Ok(Resumed::NotOurs);
    }
    let header = &both.0;
    if header.node.as_ref().is_some_and(|node| *node != book.node) {
        return Ok(Resumed::NotOurs);
    }
    let job = header.definition.clone();
    if let Some(why) = reason_to_end(tx, book, header, now)? {
        advance::advance(tx, &both, &Fact::Withdrawn(why.to_owned()), None)?;
        return Ok(Resumed::Ended { job, why });
    }
    let Some(own) = own_definition(tx, book, &job)? else {
        return Ok(Resumed::NotOurs);
    };
    match enter_again(tx, book, &own, &both, rules)? {
        Ok(()) => Ok(Resumed::Again { job }),
        Err(why) => refused(tx, &own, &both, why),
    }
}

/// The job as this daemon has it, if that is what was published last.
fn own_definition(rows: &mut impl Rows, book: &Book, job: &JobName) -> Result<Option<BookJob>, StoreError> {
    let published: Option<PublishedJob> = rows.get(&PUBLISHED_JOBS, &(TENANT, job.clone()))?;
    let own = book.jobs.get(job);
    Ok(own
        .filter(|own| published.is_some_and(|published| published.digest == own.digest))
        .cloned())
}

/// A changed, disabled or removed job, a settled scope, and a passed deadline end what waits.
fn reason_to_end(
    tx: &mut Tx<'_>,
    book: &Book,
    run: &Run,
    now: Millis,
) -> Result<Option<&'static str>, StoreError> {
    let right = tx.get(&RETRY_RIGHTS, &(TENANT, run.id))?;
    if !is_current(tx, run, right)? {
        return Ok(Some(reason::RETRY_SUPERSEDED));
    }
    let published: Option<PublishedJob> = tx.get(&PUBLISHED_JOBS, &(TENANT, run.definition.clone()))?;
    let key = (TENANT, run.definition.clone(), run.version);
    let pinned: Option<DefinitionRecord> = tx.get(&DEFINITIONS, &key)?;
    let unchanged = match (&published, &pinned) {
        (Some(published), Some(pinned)) => published.enabled && published.digest == pinned.digest,
        (_, _) => false,
    };
    if !unchanged {
        return Ok(Some(reason::DEFINITION_GONE));
    }
    let deadline = book
        .jobs
        .get(&run.definition)
        .and_then(|job| job.definition.policy.starting_deadline_ms);
    let passed = match (deadline, run.trigger.scheduled_at()) {
        (Some(deadline), Some(instant)) => now.since(instant) > deadline,
        (_, _) => false,
    };
    Ok(passed.then_some(reason::DEADLINE_PASSED))
}

/// The id of the slot entry of a retry.
pub fn entry_id(run: RunId, step: &StepRef, attempt: u32) -> EntryId {
    EntryId::of_parts(&["retry", &run.to_string(), step.as_str(), &attempt.to_string()])
}

fn enter_again(
    tx: &mut Tx<'_>,
    book: &Book,
    job: &BookJob,
    both: &(Run, StepState),
    rules: maintain::Rules,
) -> Result<Result<(), String>, Abort> {
    let (run, step) = both;
    let Some(demand) = job.definition.job_demand().cloned() else {
        if job.definition.concurrency == ConcurrencyPolicy::Forbid
            && start::is_another_active(tx, &run.definition, run.id)?
        {
            return Ok(Err("an earlier instance is still running".to_owned()));
        }
        let ready = ReadyStep {
            job: run.definition.clone(),
            node: run.node.clone(),
        };
        advance::advance(tx, both, &Fact::Again { entry: None }, Some(&ready))?;
        return Ok(Ok(()));
    };
    let entering = Entering {
        job: run.definition.clone(),
        run: run.id,
        step: step.step.clone(),
        attempt: step.attempt,
        kind: EntryKind::Retry,
        id: entry_id(run.id, &step.step, step.attempt),
        node: run.node.clone(),
        digest: job.digest.clone(),
    };
    let (entry, is_new) = match start::enter(tx, book, &entering, &demand, &rules)? {
        Entered::Refused(refusal) => return Ok(Err(refusal.to_string())),
        Entered::Existing(entry) => (entry, false),
        Entered::Admitted(entry) => (entry, true),
    };
    let seq = Some(entry.seq);
    advance::advance(tx, both, &Fact::Again { entry: seq }, None)?;
    if is_new {
        entries::insert(tx, &entry)?;
    }
    Ok(Ok(()))
}

/// The attempt number stays; it is looked at again after its own delay, a second at least.
fn refused(tx: &mut Tx<'_>, job: &BookJob, both: &(Run, StepState), why: String) -> Result<Resumed, Abort> {
    let (run, step) = both;
    let delay = job.definition.policy.retry.delay_before(step.attempt);
    let due = tx.now().wall.plus(delay.max(limits::REFUSED_RETRY_MS));
    let first = matches!(step.phase, StepPhase::Retrying { refused: None, .. });
    let fact = Fact::Refused {
        due,
        why: why.clone(),
    };
    advance::advance(tx, both, &fact, None)?;
    Ok(Resumed::Refused {
        job: run.definition.clone(),
        retry: step.attempt - 1,
        why,
        first,
    })
}

/// The right of a run that begins now. A fire settles its scope and begins the next generation.
pub fn right_at_start(
    tx: &mut Tx<'_>,
    job: &BookJob,
    trigger: &Trigger,
    node: Option<&NodeName>,
    asked: bool,
) -> Result<RetryRight, Abort> {
    match trigger {
        Trigger::Manual { .. } | Trigger::Rerun { .. } if asked => Ok(RetryRight::Own),
        Trigger::Manual { .. }
        | Trigger::Rerun { .. }
        | Trigger::CatchUp { .. }
        | Trigger::Child { .. }
        | Trigger::RetryFrom { .. } => Ok(RetryRight::No),
        Trigger::Schedule { .. } | Trigger::Boot { .. } => {
            let name = &job.definition.name;
            let scope = scope_of(node);
            if !job.definition.policy.retry.allows(2) && waiting_of(tx, name)?.is_empty() {
                return Ok(RetryRight::No);
            }
            let generation = settle(tx, name, &scope, None, reason::RETRY_SUPERSEDED)?;
            Ok(RetryRight::Scoped { generation })
        }
    }
}
