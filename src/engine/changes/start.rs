//! A start or a fire: the run, its fire row and its slot entry begin to exist together, or not at all.

use crate::domain::disk;
use crate::domain::slots::admission::{self, CapacityStep, EnqueueView, SlotPoolState, SlotRefusal};
use crate::domain::slots::entry::{EntryKind, EntryState, SlotEntry, reason};
use crate::domain::workflow::definition::{ConcurrencyPolicy, SlotDemand};
use crate::domain::workflow::run::{RetryRight, Run, RunState, StepPhase, StepState, Trigger};
use crate::engine::book::{Book, BookJob};
use crate::engine::changes::{begin_dag, drift, head, maintain, nodes, retry};
use crate::store::keys::HighFirst;
use crate::store::rows::{Boot, Fire, ReadyStep};
use crate::store::tables::{BOOTS, FIRES, RETRY_RIGHTS, SLOT_POOLS, SLOT_WAITING, STEPS};
use crate::store::{Abort, Rows, StoreError, Tx, entries, runs};
use crate::words::ids::{EntryId, RunId, TenantId};
use crate::words::limits;
use crate::words::names::{JobName, NodeName, SlotPoolName, StepRef};
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
    /// Its failed attempts are followed by others, by the job's own rules. Only asked of a start by hand.
    pub retries: bool,
    /// The boot that a start by [`Trigger::Boot`] stands for.
    pub boot: Option<Boot>,
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
    /// The job's newest run has failed; the due moment was skipped.
    LastFailed,
    /// The starting deadline has passed; the due moment was skipped.
    TooLate,
    /// The slot pool refuses.
    Refused(SlotRefusal),
    /// An unpooled job with Forbid is still running.
    StillRunning,
    /// Another daemon fires it: this one has another configuration of the job or of its slot pool than the published one.
    LeftToOthers,
    /// It could run on this daemon only, which is drained.
    NodeDrained(NodeName),
    /// The disk has too little room for a new run.
    NoRoom,
}

impl Started {
    /// Why there is no run, in a sentence; `None` if there is one, and for what only a due moment can meet.
    pub fn refusal(&self, job: &JobName) -> Option<String> {
        match self {
            Started::Refused(refusal) => Some(refusal.to_string()),
            Started::StillRunning => Some(format!(
                "job '{job}' is still running and its concurrencyPolicy is Forbid"
            )),
            Started::NodeDrained(node) => Some(format!(
                "node {node} is drained; `ductor node undrain {node}` lets it begin work again"
            )),
            Started::NoRoom => Some(disk::NO_ROOM.to_owned()),
            Started::Queued { .. }
            | Started::Ready { .. }
            | Started::AlreadyFired
            | Started::Paused
            | Started::LastFailed
            | Started::LeftToOthers
            | Started::TooLate => None,
        }
    }
}

/// Starts, or records why not. A refused fire leaves a skipped row; a refused manual start leaves nothing.
pub fn start(tx: &mut Tx<'_>, book: &Book, wish: &Start) -> Result<Started, Abort> {
    let fire_key = fire_key(wish);
    if let Some(key) = &fire_key {
        if tx.has(&FIRES, key)? || boot_was_served(tx, wish)? {
            return Ok(Started::AlreadyFired);
        }
        if is_left_to_others(tx, book, wish)? {
            return Ok(Started::LeftToOthers);
        }
        if let Some((answer, word)) = kept_from_firing(tx, wish, key.2)? {
            skip(tx, &wish.name, key.2, &key.3, word)?;
            return Ok(answer);
        }
    }
    let answer = begin(tx, book, wish)?;
    let skip_word = match &answer {
        Started::Refused(refusal) => Some(refusal.skip_word()),
        Started::StillRunning => Some("still_running"),
        Started::NodeDrained(_) => Some("node_drained"),
        Started::NoRoom => Some("no_room"),
        Started::Queued { run, .. } | Started::Ready { run } => {
            if let Some(key) = &fire_key {
                tx.put(&FIRES, key, &Fire::Run(*run))?;
            }
            None
        }
        Started::AlreadyFired
        | Started::Paused
        | Started::LastFailed
        | Started::TooLate
        | Started::LeftToOthers => None,
    };
    if let (Some(key), Some(word)) = (fire_key, skip_word) {
        skip(tx, &wish.name, key.2, &key.3, word)?;
    }
    Ok(answer)
}

/// True for a moment that any daemon may fire, and that this one would fire in another way than the configuration says
/// that was loaded last.
fn is_left_to_others(rows: &mut impl Rows, book: &Book, wish: &Start) -> Result<bool, StoreError> {
    if wish.node.is_some() {
        return Ok(false);
    }
    if !drift::may_fire(rows, book, &wish.job)? {
        return Ok(true);
    }
    has_other_slot_pool(rows, book, &wish.job)
}

/// True when the slot pool of the job has other numbers in this daemon than those that were loaded last.
pub fn has_other_slot_pool(rows: &mut impl Rows, book: &Book, job: &BookJob) -> Result<bool, StoreError> {
    match job.definition.job_demand() {
        Some(demand) => Ok(drift::slot_pool(rows, book, &demand.slot_pool)?.is_some()),
        None => Ok(false),
    }
}

/// The key of a fire; a start by hand has none.
fn fire_key(wish: &Start) -> Option<FireKey> {
    let node = wish.node.as_ref().map(ToString::to_string).unwrap_or_default();
    wish.trigger
        .scheduled_at()
        .map(|instant| (TENANT, wish.name.clone(), instant, node))
}

/// What keeps a fire from becoming a run before any slot pool is asked, and its word (9.7).
fn kept_from_firing(
    tx: &mut Tx<'_>,
    wish: &Start,
    instant: Millis,
) -> Result<Option<(Started, &'static str)>, StoreError> {
    let now = tx.now().wall;
    if head::job_pause(tx, &wish.name, now)?.is_some() {
        return Ok(Some((Started::Paused, "job_paused")));
    }
    let policy = &wish.job.definition.policy;
    if policy.only_if_last_succeeded && runs::last_outcome(tx, &wish.name)? == Some(false) {
        return Ok(Some((Started::LastFailed, "last_not_successful")));
    }
    let is_late = policy
        .starting_deadline_ms
        .is_some_and(|deadline| now.since(instant) > deadline);
    Ok((is_late && wish.boot.is_none()).then_some((Started::TooLate, "missed")))
}

/// True when the job has run for this boot of this machine already; a job whose commands have changed runs once more.
fn boot_was_served(tx: &mut Tx<'_>, wish: &Start) -> Result<bool, StoreError> {
    let Some(boot) = &wish.boot else { return Ok(false) };
    let node = wish.node.as_ref().map(ToString::to_string).unwrap_or_default();
    let key = (TENANT, wish.name.clone(), node);
    if tx.get(&BOOTS, &key)?.as_ref() == Some(boot) {
        return Ok(true);
    }
    tx.put(&BOOTS, &key, boot)?;
    Ok(false)
}

/// The run and its entry, without a fire row. Asked by [`start`] and by the catch-up.
pub fn begin(tx: &mut Tx<'_>, book: &Book, wish: &Start) -> Result<Started, Abort> {
    if let Some(node) = &wish.node
        && nodes::drain_of(tx, node)?.is_some()
    {
        return Ok(Started::NodeDrained(node.clone()));
    }
    if wish.rules.no_room {
        return Ok(Started::NoRoom);
    }
    if wish.job.definition.is_graph() {
        return begin_dag::begin(tx, book, wish);
    }
    let demand = wish.job.definition.job_demand().cloned();
    let forbids = wish.job.definition.concurrency == ConcurrencyPolicy::Forbid;
    if demand.is_none() && forbids && is_another_active(tx, &wish.name, wish.run)? {
        return Ok(Started::StillRunning);
    }
    // A fire settles the retries of its scope also when it cannot enter: the newer moment is what counts.
    let right = retry::right_at_start(tx, &wish.job, &wish.trigger, wish.node.as_ref(), wish.retries)?;
    let answer = match demand {
        Some(demand) => enqueue(tx, book, wish, &demand)?,
        None => make_ready(tx, wish)?,
    };
    if let (Started::Queued { run, .. } | Started::Ready { run }, true) = (&answer, right != RetryRight::No) {
        tx.put(&RETRY_RIGHTS, &(TENANT, *run), &right)?;
    }
    Ok(answer)
}

/// True when a run of the job other than `except` waits or runs; one in back-off does neither.
pub fn is_another_active(rows: &mut impl Rows, job: &JobName, except: RunId) -> Result<bool, StoreError> {
    for run in runs::active_of(rows, job, usize::MAX)? {
        if run == except {
            continue;
        }
        let steps = rows.scan(&STEPS, &(TENANT, run), None, limits::PAGE_MAX)?;
        let rests = |phase: &StepPhase| matches!(phase, StepPhase::Retrying { .. });
        if !steps.iter().all(|(_, step)| rests(&step.phase)) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A due moment: the node is empty unless every node fires.
pub type FireKey = (TenantId, JobName, Millis, String);

/// Records that a due moment did not become a run. A row that is there already stays.
pub fn skip(
    tx: &mut Tx<'_>,
    job: &JobName,
    instant: Millis,
    node: &str,
    word: &str,
) -> Result<bool, StoreError> {
    let key = (TENANT, job.clone(), instant, node.to_owned());
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

/// Records that the run of a due moment ended before anything started.
pub fn withdrawn(tx: &mut Tx<'_>, key: &FireKey, run: RunId, why: &str) -> Result<(), StoreError> {
    let word = if why == reason::QUEUE_TIMEOUT {
        "queue_timeout"
    } else {
        "cancelled"
    };
    let row = Fire::Withdrawn {
        reason: word.to_owned(),
        at: tx.now().wall,
        run,
    };
    tx.put(&FIRES, key, &row)?;
    tx.tell("job.fire.skipped", &key.1, 0, Some(word));
    Ok(())
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
        graph: None,
    };
    let step = wish.job.definition.main_step().name.clone();
    (
        run,
        StepState {
            step,
            attempt: 1,
            deaths: 0,
            phase,
            graph: None,
        },
    )
}

fn make_ready(tx: &mut Tx<'_>, wish: &Start) -> Result<Started, StoreError> {
    let since = tx.now().wall;
    let (run, step) = new_run(tx, wish, StepPhase::Ready { since });
    let ready = ReadyStep {
        job: wish.name.clone(),
        node: wish.node.clone(),
    };
    runs::insert(tx, &run, &step, Some(&ready))?;
    Ok(Started::Ready { run: wish.run })
}

/// A wish to enter the queue of a slot pool, for a new run or for a further attempt of one.
#[derive(Debug, Clone)]
pub struct Entering {
    /// The job.
    pub job: JobName,
    /// The run.
    pub run: RunId,
    /// The step.
    pub step: StepRef,
    /// The attempt number it will become.
    pub attempt: u32,
    /// What asks.
    pub kind: EntryKind,
    /// The id that makes a repeat the same wish.
    pub id: EntryId,
    /// The only daemon that may claim it.
    pub node: Option<NodeName>,
    /// Of the definition.
    pub digest: String,
}

/// The answer of a slot pool.
#[derive(Debug, Clone, PartialEq)]
pub enum Entered {
    /// It may enter: this entry is to be inserted after its run.
    Admitted(Box<SlotEntry>),
    /// It has entered before.
    Existing(Box<SlotEntry>),
    /// It may not.
    Refused(SlotRefusal),
}

/// E1 to E9 of 5.1. The entry is not written yet.
pub fn enter(
    tx: &mut Tx<'_>,
    book: &Book,
    wish: &Entering,
    demand: &SlotDemand,
    rules: &maintain::Rules,
) -> Result<Entered, Abort> {
    let name = &demand.slot_pool;
    let Some(configured) = book.slot_pools.get(name).copied() else {
        return Ok(Entered::Refused(SlotRefusal::Unknown(name.to_string())));
    };
    maintain::maintain(tx, rules)?;
    if !book.locks_trusted {
        return Ok(Entered::Refused(SlotRefusal::Locks));
    }
    let stored_slots = switch(tx, book, name, configured.slots)?;
    if let Some(entry) = entries::by_id(tx, wish.id)? {
        let resumes = wish.kind == EntryKind::CatchUp
            && matches!(
                entry.state,
                EntryState::Expired { .. } | EntryState::Cancelled { .. }
            );
        if !resumes {
            return Ok(Entered::Existing(Box::new(entry)));
        }
        // T17: a resumed catch-up takes the place of its closed entry.
        entries::forget(tx, &entry)?;
    }
    if book.locks_trusted
        && let Some(refusal) = differs(tx, book, wish, name)?
    {
        return Ok(Entered::Refused(refusal));
    }
    let view = EnqueueView {
        locks_trusted: book.locks_trusted,
        stored_slots,
        configured_slots: configured.slots,
        busy: head::is_busy(tx, name)?,
        waiting: entries::waiting_count(tx, name)?,
        unseen: entries::unseen_count(tx, name, configured.max_queued as usize)?,
        max_queued: configured.max_queued,
    };
    if let Err(refusal) = admission::enqueue(&view) {
        return Ok(Entered::Refused(refusal));
    }
    let state = head::slot_pool(tx, name)?;
    adopt(tx, name, state, configured.slots)?;
    let queued_at = queued_at(tx, demand)?;
    Ok(Entered::Admitted(Box::new(SlotEntry {
        seq: tx.next_number("next_entry")?,
        id: wish.id,
        slot_pool: demand.slot_pool.clone(),
        job: wish.job.clone(),
        run: wish.run,
        step: wish.step.clone(),
        attempt: wish.attempt,
        kind: wish.kind,
        slots: demand.slots,
        priority: demand.priority,
        queued_at,
        expires_at: queued_at.plus(demand.queue_timeout_ms),
        node: wish.node.clone(),
        digest: wish.digest.clone(),
        readmitted: 0,
        state: EntryState::Queued { reason: None },
    })))
}

/// The refusal of a daemon whose own configuration is not the one that was loaded last (3.3.6).
fn differs(
    tx: &mut Tx<'_>,
    book: &Book,
    wish: &Entering,
    name: &SlotPoolName,
) -> Result<Option<SlotRefusal>, StoreError> {
    if let Some(other) = drift::slot_pool(tx, book, name)? {
        return Ok(Some(SlotRefusal::Differs {
            slot_pool: name.to_string(),
            node: other.node,
        }));
    }
    if wish.kind.is_of_graph() {
        // Its run has pinned its version, whatever was loaded since.
        return Ok(None);
    }
    let Some(own) = book.jobs.get(&wish.job).filter(|own| own.digest == wish.digest) else {
        return Ok(None);
    };
    Ok(drift::job(tx, book, own)?.map(|other| SlotRefusal::JobDiffers {
        job: wish.job.to_string(),
        node: other.node,
    }))
}

fn enqueue(tx: &mut Tx<'_>, book: &Book, wish: &Start, demand: &SlotDemand) -> Result<Started, Abort> {
    let entering = Entering {
        job: wish.name.clone(),
        run: wish.run,
        step: wish.job.definition.main_step().name.clone(),
        attempt: 1,
        kind: match wish.trigger {
            Trigger::Schedule { .. } => EntryKind::Scheduled,
            Trigger::Manual { .. }
            | Trigger::Rerun { .. }
            | Trigger::Child { .. }
            | Trigger::RetryFrom { .. } => EntryKind::Manual,
            Trigger::CatchUp { .. } => EntryKind::CatchUp,
            Trigger::Boot { .. } => EntryKind::Boot,
        },
        id: wish.entry,
        node: wish.node.clone(),
        digest: wish.job.digest.clone(),
    };
    let entry = match enter(tx, book, &entering, demand, &wish.rules)? {
        Entered::Refused(refusal) => return Ok(Started::Refused(refusal)),
        Entered::Existing(entry) => {
            return Ok(Started::Queued {
                entry: entry.id,
                run: entry.run,
            });
        }
        Entered::Admitted(entry) => entry,
    };
    let phase = StepPhase::Queued {
        entry: entry.seq,
        since: entry.queued_at,
    };
    let (run, step) = new_run(tx, wish, phase);
    runs::insert(tx, &run, &step, None)?;
    entries::insert(tx, &entry)?;
    Ok(Started::Queued {
        entry: wish.entry,
        run: wish.run,
    })
}

/// E5, and 8.1 for a raise that does not wait: the number in force afterwards. A slot pool that nothing ever entered has no
/// row yet, and gets none from a refusal.
fn switch(tx: &mut Tx<'_>, book: &Book, name: &SlotPoolName, configured: u32) -> Result<u32, StoreError> {
    let Some(state) = head::slot_pool(tx, name)? else {
        return Ok(configured);
    };
    let busy = head::is_busy(tx, name)?;
    match admission::capacity_step(&state, configured, busy, book.raise_immediately) {
        // A daemon with other numbers than those that were loaded last switches nothing.
        CapacityStep::Adopt if step_capacity(tx, book, name)? == CapacityStep::Keep => Ok(state.stored_slots),
        CapacityStep::Adopt => Ok(configured),
        CapacityStep::Keep | CapacityStep::Drain | CapacityStep::Forget => Ok(state.stored_slots),
    }
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
    if step != CapacityStep::Keep && drift::slot_pool(tx, book, name)?.is_some() {
        return Ok(CapacityStep::Keep);
    }
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

/// Now, but never before the newest entry of the same slot pool and priority that waits or may come to wait again: a clock
/// that steps back lets nobody overtake.
fn queued_at(tx: &mut Tx<'_>, demand: &SlotDemand) -> Result<Millis, StoreError> {
    let prefix = (TENANT, demand.slot_pool.clone(), HighFirst(demand.priority));
    let waiting = tx.scan_back(&SLOT_WAITING, &prefix, None, 1)?;
    let mut newest = waiting.first().map(|((_, _, _, at, _), _)| *at);
    // By this very rule the times rise with the numbers, so the newest of this priority is the last one.
    for (seq, _) in entries::running(tx, &demand.slot_pool)?.into_iter().rev() {
        let entry = entries::by_seq(tx, seq)?;
        if let Some(entry) = entry.filter(|entry| entry.priority == demand.priority) {
            newest = newest.max(Some(entry.queued_at));
            break;
        }
    }
    let now = tx.now().wall;
    Ok(newest.map_or(now, |at| now.max(at)))
}
