//! A start or a fire: the run, its fire row and its slot entry begin to exist together, or not at all.

use crate::domain::slots::admission::{self, CapacityStep, EnqueueView, SlotPoolState, SlotRefusal};
use crate::domain::slots::entry::{EntryKind, EntryState, SlotEntry};
use crate::domain::workflow::definition::{ConcurrencyPolicy, SlotDemand};
use crate::domain::workflow::run::{Run, RunState, StepPhase, StepState, Trigger};
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::{head, maintain};
use crate::store::keys::HighFirst;
use crate::store::rows::{Fire, ReadyStep};
use crate::store::tables::{FIRES, SLOT_POOLS, SLOT_WAITING};
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::names::{JobName, NodeName, SlotPoolName};
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// A wish to start a job. Ids come from outside, so that running it twice is the same start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The job as the caller's book has it.
    pub name: JobName,
    /// The same.
    pub job: BookJob,
    /// What began it.
    pub trigger: Trigger,
    /// The only daemon that may run it; `None` = any.
    pub node: Option<NodeName>,
    /// The run that would begin to exist.
    pub run: RunId,
    /// The entry that would begin to exist, for a pooled job.
    pub entry: EntryId,
    /// Whether what is overdue in the slot pools may expire with it.
    pub rules: maintain::Rules,
}

/// The answer to a wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Started {
    /// It waits for slots.
    Queued {
        /// Its entry.
        entry: EntryId,
        /// Its run.
        run: RunId,
    },
    /// It starts at once.
    Ready {
        /// Its run.
        run: RunId,
    },
    /// The due moment has a row already.
    AlreadyFired,
    /// The job is paused; the due moment was skipped.
    Paused,
    /// The slot pool refuses.
    Refused(SlotRefusal),
    /// An unpooled job with Forbid is still running.
    StillRunning,
}

/// Starts, or records why not. A refused fire leaves a skipped row; a refused manual start leaves nothing.
pub fn start(tx: &mut Tx<'_>, book: &Book, wish: &Start) -> Result<Started, Abort> {
    let fire_key = wish
        .trigger
        .scheduled_at()
        .map(|instant| (TENANT, wish.name.clone(), instant, String::new()));
    if let Some(key) = &fire_key {
        if tx.has(&FIRES, key)? {
            return Ok(Started::AlreadyFired);
        }
        if head::job_pause(tx, &wish.name, tx.now().wall)?.is_some() {
            skip(tx, &wish.name, key.2, "job_paused")?;
            return Ok(Started::Paused);
        }
    }
    let answer = match wish.job.definition.main_step().slots.clone() {
        Some(demand) => enqueue(tx, book, wish, &demand)?,
        None => make_ready(tx, wish)?,
    };
    let skip_word = match &answer {
        Started::Refused(refusal) => Some(refusal.skip_word()),
        Started::StillRunning => Some("still_running"),
        Started::Queued { run, .. } | Started::Ready { run } => {
            if let Some(key) = &fire_key {
                tx.put(&FIRES, key, &Fire::Run(*run))?;
            }
            None
        }
        Started::AlreadyFired | Started::Paused => None,
    };
    if let (Some(key), Some(word)) = (fire_key, skip_word) {
        skip(tx, &wish.name, key.2, word)?;
    }
    Ok(answer)
}

/// Records that a due moment did not become a run. A row that is there already stays.
pub fn skip(tx: &mut Tx<'_>, job: &JobName, instant: Millis, word: &str) -> Result<bool, StoreError> {
    let key = (TENANT, job.clone(), instant, String::new());
    if tx.has(&FIRES, &key)? {
        return Ok(false);
    }
    let at = tx.now().wall;
    tx.put(
        &FIRES,
        &key,
        &Fire::Skipped {
            reason: word.to_owned(),
            at,
        },
    )?;
    tx.tell("job.fire.skipped", job, 0, Some(word));
    Ok(true)
}

fn new_run(tx: &Tx<'_>, wish: &Start, phase: StepPhase) -> (Run, StepState) {
    let run = Run {
        id: wish.run,
        definition: wish.name.clone(),
        version: wish.job.version,
        trigger: wish.trigger.clone(),
        node: wish.node.clone(),
        created_at: tx.now().wall,
        record_version: 1,
        state: RunState::Pending,
    };
    let step = wish.job.definition.main_step().name.clone();
    (
        run,
        StepState {
            step,
            attempt: 1,
            deaths: 0,
            phase,
        },
    )
}

fn make_ready(tx: &mut Tx<'_>, wish: &Start) -> Result<Started, StoreError> {
    if wish.job.definition.concurrency == ConcurrencyPolicy::Forbid
        && !runs::active_of(tx, &wish.name, 1)?.is_empty()
    {
        return Ok(Started::StillRunning);
    }
    let since = tx.now().wall;
    let (run, step) = new_run(tx, wish, StepPhase::Ready { since });
    let ready = ReadyStep {
        job: wish.name.clone(),
        node: wish.node.clone(),
    };
    runs::insert(tx, &run, &step, Some(&ready))?;
    Ok(Started::Ready { run: wish.run })
}

fn enqueue(tx: &mut Tx<'_>, book: &Book, wish: &Start, demand: &SlotDemand) -> Result<Started, StoreError> {
    let name = &demand.slot_pool;
    let Some(configured) = book.slot_pools.get(name).copied() else {
        return Ok(Started::Refused(SlotRefusal::Unknown(name.to_string())));
    };
    maintain::maintain(tx, &wish.rules).map_err(|Abort(error)| error)?;
    if let Some(entry) = entries::by_id(tx, wish.entry)? {
        return Ok(Started::Queued {
            entry: entry.id,
            run: entry.run,
        });
    }
    let state = head::slot_pool(tx, name)?;
    let stored_slots = head::stored_slots(state.as_ref(), book, name);
    let view = EnqueueView {
        locks_trusted: book.locks_trusted,
        stored_slots: if raises_now(book, stored_slots, configured.slots) {
            configured.slots
        } else {
            stored_slots
        },
        configured_slots: configured.slots,
        busy: head::is_busy(tx, name)?,
        waiting: entries::waiting_count(tx, name)?,
        unseen: 0,
        max_queued: configured.max_queued,
    };
    if let Err(refusal) = admission::enqueue(&view) {
        return Ok(Started::Refused(refusal));
    }
    adopt(tx, name, state, configured.slots)?;
    insert_entry(tx, wish, demand)
}

fn raises_now(book: &Book, stored: u32, configured: u32) -> bool {
    book.raise_immediately && configured > stored
}

/// Writes the number in force, if it is another one or none was stored.
fn adopt(
    tx: &mut Tx<'_>,
    name: &SlotPoolName,
    state: Option<SlotPoolState>,
    configured: u32,
) -> Result<(), StoreError> {
    let current = state.unwrap_or(SlotPoolState {
        stored_slots: 0,
        paused: None,
        draining_to: None,
    });
    if current.stored_slots == configured && current.draining_to.is_none() {
        return Ok(());
    }
    let adopted = SlotPoolState {
        stored_slots: configured,
        draining_to: None,
        ..current
    };
    tx.put(&SLOT_POOLS, &(TENANT, name.clone()), &adopted)
}

/// Brings the stored capacity of a slot pool one step towards the configured one; says what it did.
pub fn step_capacity(tx: &mut Tx<'_>, book: &Book, name: &SlotPoolName) -> Result<CapacityStep, StoreError> {
    let Some(configured) = book.slot_pools.get(name) else {
        return Ok(CapacityStep::Keep);
    };
    let Some(state) = head::slot_pool(tx, name)? else {
        return Ok(CapacityStep::Keep);
    };
    let busy = head::is_busy(tx, name)?;
    let step = admission::capacity_step(&state, configured.slots, busy, book.raise_immediately);
    let goal = match step {
        CapacityStep::Keep => return Ok(step),
        CapacityStep::Drain => {
            tx.tell(
                "pool.drain.started",
                name,
                0,
                Some(&format!("{} to {}", state.stored_slots, configured.slots)),
            );
            SlotPoolState {
                draining_to: Some(configured.slots),
                ..state
            }
        }
        CapacityStep::Adopt | CapacityStep::Forget => {
            tx.tell("pool.drain.ended", name, 0, Some(&configured.slots.to_string()));
            SlotPoolState {
                stored_slots: configured.slots,
                draining_to: None,
                ..state
            }
        }
    };
    tx.put(&SLOT_POOLS, &(TENANT, name.clone()), &goal)?;
    Ok(step)
}

fn insert_entry(tx: &mut Tx<'_>, wish: &Start, demand: &SlotDemand) -> Result<Started, StoreError> {
    let queued_at = queued_at(tx, demand)?;
    let seq = tx.next_number("next_entry")?;
    let (run, step) = new_run(
        tx,
        wish,
        StepPhase::Queued {
            entry: seq,
            since: queued_at,
        },
    );
    let entry = SlotEntry {
        seq,
        id: wish.entry,
        slot_pool: demand.slot_pool.clone(),
        job: wish.name.clone(),
        run: wish.run,
        step: step.step.clone(),
        attempt: step.attempt,
        kind: match wish.trigger {
            Trigger::Schedule { .. } => EntryKind::Scheduled,
            Trigger::Manual { .. } => EntryKind::Manual,
        },
        slots: demand.slots,
        priority: demand.priority,
        queued_at,
        expires_at: queued_at.plus(demand.queue_timeout_ms),
        node: wish.node.clone(),
        digest: wish.job.digest.clone(),
        readmitted: 0,
        state: EntryState::Queued { reason: None },
    };
    runs::insert(tx, &run, &step, None)?;
    entries::insert(tx, &entry)?;
    Ok(Started::Queued {
        entry: wish.entry,
        run: wish.run,
    })
}

/// Now, but never before the newest entry of the same slot pool and priority: a clock that steps back lets nobody
/// overtake.
fn queued_at(tx: &mut Tx<'_>, demand: &SlotDemand) -> Result<Millis, StoreError> {
    let prefix = (TENANT, demand.slot_pool.clone(), HighFirst(demand.priority));
    let newest = tx.scan_back(&SLOT_WAITING, &prefix, None, 1)?;
    let now = tx.now().wall;
    Ok(newest.first().map_or(now, |((_, _, _, at, _), _)| now.max(*at)))
}
