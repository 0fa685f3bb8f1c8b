//! The check (fsck): recomputes every index from the rows it points to, and says what differs.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::catch_unwind;
use std::path::Path;

use redb::ReadableDatabase;

use super::backup::Source;
use super::blob_names;
use super::blobs::Blobs;
use super::check_history;
use super::check_keys;
use super::check_objects;
use super::check_routing;
use super::check_steps::{Headers, check_steps};
use super::check_workflows;
use super::codec::Record;
use super::coordination::STORE_NAME;
use super::effects::{self, EffectIndex};
use super::entries::{self, EntryIndex};
use super::error::StoreError;
use super::graph_rows::StoredFact;
use super::graphs;
use super::keys::Key;
use super::migrate::{self, FORMAT};
use super::rows::Number;
use super::table::{Rows, Table};
use super::tables as all;
use super::tx::ReadTx;
use crate::domain::slots::entry::SlotEntry;
use crate::domain::workflow::run::StepPhase;
use crate::os::failpoint::Faults;
use crate::words::ids::RunId;
use crate::words::limits;
use crate::words::names::{JobName, SlotPoolName};

/// What a check found: one sentence each. Empty = clean.
pub type Findings = Vec<String>;

/// What a check of the files of a stopped daemon found.
#[derive(Debug, Clone)]
pub struct Checked {
    /// What differs.
    pub findings: Findings,
    /// Rows of all tables.
    pub rows: u64,
    /// Blobs that no row names: no damage, a sweep takes them.
    pub unnamed_blobs: u64,
    /// Blobs whose bytes were not compared with their names, only their sizes with the rows.
    pub unread_blobs: u64,
}

/// Rows read at once.
const PAGE: usize = 1_000;

/// Checks the whole store on one snapshot.
pub fn check(tx: &mut ReadTx) -> Result<Findings, StoreError> {
    let mut findings = Findings::new();
    readable(tx, &mut findings)?;
    check_entries(tx, &mut findings)?;
    check_runs(tx, &mut findings)?;
    check_live(tx, &mut findings)?;
    check_remembered(tx, &mut findings)?;
    check_effects(tx, &mut findings)?;
    check_workflows::check(tx, &mut findings)?;
    check_history::check(tx, &mut findings)?;
    check_keys::check(tx, &mut findings)?;
    check_objects::check(tx, &mut findings)?;
    check_routing::check(tx, &mut findings)?;
    Ok(findings)
}

/// Checks the store of a working daemon and its blobs: the bytes of so many of them as can be read while somebody waits.
pub fn check_working(tx: &mut ReadTx, blobs: &Blobs) -> Result<Checked, StoreError> {
    let mut findings = check(tx)?;
    let named = blob_names::all(tx)?;
    let mut of_blobs = blobs.check(&named, limits::BLOBS_READ_BY_CHECK_MAX)?;
    findings.append(&mut of_blobs.findings);
    Ok(Checked {
        findings,
        rows: tx.count_rows()?,
        unnamed_blobs: of_blobs.unnamed,
        unread_blobs: of_blobs.unread,
    })
}

/// Opens the file of a stopped daemon and checks it, every checksum too. It makes no file and migrates nothing; what a kill
/// left is repaired as any open would. A store of another format is an error and is left as it is.
pub fn check_files(directory: &Path) -> Result<Checked, StoreError> {
    let file = directory.join(STORE_NAME);
    // The comparison of checksums writes, so what is not ours is refused before it. A plain open of a damaged file may end in
    // a panic of redb; the comparison says what it is.
    let format = catch_unwind(|| current(Source::open(&file)?.snapshot()?).map(drop));
    format.unwrap_or(Ok(()))?;
    let (_database, mut tx) = open_stopped(directory)?;
    let mut findings = check(&mut tx)?;
    let named = blob_names::all(&mut tx)?;
    let mut of_blobs = Blobs::of_state(directory, Faults::default()).check(&named, u64::MAX)?;
    findings.append(&mut of_blobs.findings);
    Ok(Checked {
        findings,
        rows: tx.count_rows()?,
        unnamed_blobs: of_blobs.unnamed,
        unread_blobs: of_blobs.unread,
    })
}

/// A snapshot of the files of a stopped daemon, after every checksum of the file has been compared: what somebody else
/// wrote into it is an error here, and could be a wrong answer or a panic in a plain open.
/// The snapshot can be read as long as the file is open.
pub(super) fn open_stopped(directory: &Path) -> Result<(redb::Database, ReadTx), StoreError> {
    let mut builder = redb::Database::builder();
    builder.set_check_integrity_on_open(true);
    let database = builder.open(directory.join(STORE_NAME))?;
    let tx = current(database.begin_read()?)?;
    Ok((database, tx))
}

/// The snapshot, if its format is the one that this binary writes.
fn current(snapshot: redb::ReadTransaction) -> Result<ReadTx, StoreError> {
    let found = migrate::format_of(&snapshot)?.unwrap_or(0);
    match found.cmp(&FORMAT) {
        Ordering::Greater => Err(StoreError::TooNew { found, known: FORMAT }),
        Ordering::Less => Err(StoreError::io(&format!(
            "it has format {found} and is brought to {FORMAT} by a start"
        ))),
        Ordering::Equal => Ok(ReadTx::new(snapshot)),
    }
}

pub(super) fn every<K: Key, R: Record>(
    tx: &mut ReadTx,
    table: &Table<K, R>,
    mut visit: impl FnMut(K, R),
) -> Result<Vec<String>, StoreError> {
    let mut bad = Vec::new();
    let mut after: Option<Vec<u8>> = None;
    loop {
        let page = tx.scan_each(table, &(), after.as_deref(), PAGE)?;
        let Some(last) = page.last() else { return Ok(bad) };
        after = Some(last.key.clone());
        for row in page {
            match row.row {
                Ok((key, record)) => visit(key, record),
                Err(error) => bad.push(error.to_string()),
            }
        }
    }
}

#[rustfmt::skip]
fn readable(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    macro_rules! tables {
        ($($table:ident),*) => { $(findings.extend(every(tx, &all::$table, |_, _| ())?);)* };
    }
    tables!(
        META, NODES, DEFINITIONS, PUBLISHED_JOBS, PUBLISHED_SLOT_POOLS, JOB_PAUSES, RUNS, STEPS, ATTEMPTS, LIVE_ATTEMPTS, READY_STEPS, ACTIVE_RUNS, JOB_RUNS, FIRES, SLOT_POOLS, SLOT_ENTRIES, SLOT_ENTRY_IDS, SLOT_WAITING, SLOT_WAITING_COUNT, SLOT_RUNNING, SLOT_DUE, SLOT_CLOSED, POISONED_RUNS, REMEMBERED, REMEMBERED_KEYS, CHANGES, RETRY_SCOPES, RETRYING, RETRY_DUE, RETRY_RIGHTS, SCHEDULE_MARKS, OWED, BOOTS, PUBLISHED_REPORTS, JOB_MARKS, EFFECTS, EFFECT_DUE, EFFECT_DECIDED, RUN_EFFECTS, EFFECT_COUNTS, DELIVERING, NODE_DRAINS, PUBLISHED_BY, BLOCKED_HEADS, GONE_NODES, SLOT_UNSEEN, BREACHES, BACKUPS, VALUES, TIMERS, FACTS, HISTORY, CHECKPOINTS, TASKS, TASK_CLAIMS, KEY_COUNTS, KEY_HOLDERS, KEY_WAITERS, WORKFLOWS, WORKFLOW_DRAFTS, WORKFLOW_VERSIONS, REMOVALS, PINS, DEAD_STEPS, RECIPIENT_LIVE, ASSIGNMENTS, ASSIGNMENT_INDEX, DECISIONS, DECISION_INDEX, SNAPSHOTS, ROUTED_WORK, STRATEGY_STATES, STICKY_HOLDERS, ROUTING_WAITING, WAITING_ORDER, OFFERS, OFFER_ORDER, OFFERS_OF_POOL, CLAIMS, SEEN_WORK, ROUTING_TIMERS, DRAINS, POOL_COUNTS, ROUTING_ALERTS, LEARNED, CAMPAIGNS, CAMPAIGN_NAMES, CAMPAIGNS_OF_POOL, SHADOW_PENDING, SHADOW_STATES, SHADOW_TALLIES, SHADOW_RESULTS, WORK_WAITERS, BUNDLE_LOADS, TENANTS, TENANT_SETTINGS, API_KEYS, KEY_USES, SESSIONS, AUDIT, WORK_ITEMS, RULE_ERRORS, DECLARED, DECLARED_USES, SOURCES, RECIPIENT_POOLS, RECIPIENT_POOL_NAMES, RECIPIENTS, RECIPIENT_NAMES, RECIPIENT_EXTERNAL_IDS, MEMBERS, RULES, RULE_NAMES, RULES_OF, TRAITS, CLAIM_QUEUES, CLAIM_QUEUE_NAMES
    );
    Ok(())
}

/// The key bytes that a table has beyond, or short of, those expected.
pub(super) fn compare<K: Key, R: Record>(
    tx: &mut ReadTx,
    table: &Table<K, R>,
    mut expected: BTreeSet<Vec<u8>>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    every(tx, table, |key, _| {
        if !expected.remove(&key.encode()) {
            findings.push(format!("{}: a row points to nothing", table.name()));
        }
    })?;
    for _ in expected {
        findings.push(format!("{}: a row is missing", table.name()));
    }
    Ok(())
}

#[derive(Default)]
struct EntryIndexes {
    ids: BTreeSet<Vec<u8>>,
    waiting: BTreeSet<Vec<u8>>,
    due: BTreeSet<Vec<u8>>,
    running: BTreeSet<Vec<u8>>,
    closed: BTreeSet<Vec<u8>>,
    unseen: BTreeSet<Vec<u8>>,
    counts: BTreeMap<SlotPoolName, u64>,
    fences: BTreeMap<(SlotPoolName, u64), (u64, u32)>,
    newest: u64,
}

impl EntryIndexes {
    fn add(&mut self, entry: &SlotEntry) {
        let tenant = entries::TENANT;
        self.newest = self.newest.max(entry.seq);
        self.ids.insert((tenant, entry.id).encode());
        match entries::index_of(entry) {
            EntryIndex::Waiting => {
                self.waiting.insert(entries::waiting_key(entry).encode());
                self.due.insert((tenant, entry.expires_at, entry.id).encode());
                *self.counts.entry(entry.slot_pool.clone()).or_default() += 1;
            }
            EntryIndex::Running => {
                self.running
                    .insert((tenant, entry.slot_pool.clone(), entry.seq).encode());
                let fence = entry.state.claim().map_or(0, |claim| claim.fence);
                self.fences
                    .insert((entry.slot_pool.clone(), entry.seq), (fence, entry.slots));
            }
            EntryIndex::Closed(at) => {
                self.closed
                    .insert((tenant, entry.slot_pool.clone(), at, entry.id).encode());
                if entry.awaits_sight() {
                    self.unseen.insert(entries::unseen_key(entry).encode());
                }
            }
        }
    }
}

fn check_entries(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut indexes = EntryIndexes::default();
    let unreadable = every(tx, &all::SLOT_ENTRIES, |_, entry| indexes.add(&entry))?;
    if !unreadable.is_empty() {
        // Their index rows cannot be recomputed; the unreadable rows themselves are reported already.
        return Ok(());
    }
    let EntryIndexes {
        ids,
        waiting,
        due,
        running,
        closed,
        unseen,
        mut counts,
        mut fences,
        newest,
    } = indexes;
    compare(tx, &all::SLOT_ENTRY_IDS, ids, findings)?;
    compare(tx, &all::SLOT_WAITING, waiting, findings)?;
    compare(tx, &all::SLOT_DUE, due, findings)?;
    compare(tx, &all::SLOT_RUNNING, running, findings)?;
    compare(tx, &all::SLOT_CLOSED, closed, findings)?;
    // Whether one was looked at is a fact of its own: those that are left must be of entries that wait for that.
    every(tx, &all::SLOT_UNSEEN, |key, _| {
        if !unseen.contains(&key.encode()) {
            findings.push(format!("{}: a row points to nothing", all::SLOT_UNSEEN.name()));
        }
    })?;
    every(tx, &all::SLOT_WAITING_COUNT, |(_, slot_pool), Number(count)| {
        let real = counts.remove(&slot_pool).unwrap_or(0);
        if real != count {
            findings.push(format!(
                "slot_waiting_count: pool {slot_pool} says {count}, {real} wait"
            ));
        }
    })?;
    findings.extend(
        counts
            .into_keys()
            .map(|slot_pool| format!("slot_waiting_count: pool {slot_pool} has no row")),
    );
    every(tx, &all::SLOT_RUNNING, |(_, slot_pool, seq), row| {
        if fences.remove(&(slot_pool, seq)) != Some((row.fence, row.slots)) {
            findings.push(format!("slot_running: entry {seq} has another fence or width"));
        }
    })?;
    let counter = tx
        .get(&all::META, &("next_entry".to_owned(),))?
        .map_or(0, |number| number.0);
    if newest > counter {
        findings.push(format!("meta: next_entry is {counter}, an entry has {newest}"));
    }
    Ok(())
}

fn check_runs(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut active = BTreeSet::new();
    let mut of_jobs = BTreeSet::new();
    let mut known: BTreeMap<RunId, JobName> = BTreeMap::new();
    let mut alive = BTreeSet::new();
    let mut alive_jobs = BTreeSet::new();
    let mut timers = BTreeSet::new();
    let unreadable = every(tx, &all::RUNS, |(tenant, id), run| {
        known.insert(id, run.definition.clone());
        of_jobs.insert((tenant, run.definition.clone(), id).encode());
        if !run.state.is_terminal() {
            alive.insert(id);
            if run.graph.is_none() {
                alive_jobs.insert(id);
            }
            timers.extend(graphs::deadline_of(&run).map(|at| (tenant, at, id, String::new()).encode()));
            active.insert((tenant, run.definition.clone(), id).encode());
        }
    })?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    compare(tx, &all::ACTIVE_RUNS, active, findings)?;
    compare(tx, &all::JOB_RUNS, of_jobs, findings)?;
    let mut removed = BTreeSet::new();
    every(tx, &all::REMOVALS, |(_, id), _| {
        removed.insert(id);
    })?;
    let headers = Headers {
        known: known.clone(),
        removed: removed.clone(),
        alive_jobs,
        timers,
    };
    check_steps(tx, headers, findings)?;
    for id in &removed {
        if known.contains_key(id) {
            findings.push(format!("removals: {id} is a run all the same"));
        }
    }
    belongings(
        tx,
        |id| known.contains_key(&id),
        |id| removed.contains(&id),
        findings,
    )?;
    every(tx, &all::RETRY_RIGHTS, |(_, id), _| {
        if !alive.contains(&id) {
            findings.push(format!("retry_rights: {id} has ended, or there is no such run"));
        }
    })?;
    Ok(())
}

/// What belongs to a run goes with it.
fn belongings(
    tx: &mut ReadTx,
    is_known: impl Fn(RunId) -> bool,
    is_removed: impl Fn(RunId) -> bool,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut orphans: BTreeSet<(&str, &str, RunId)> = BTreeSet::new();
    every(tx, &all::PINS, |(_, id), _| {
        if !is_known(id) {
            orphans.insert(("pins", "a pin", id));
        }
    })?;
    let mut note = |table, what, id| {
        if !is_known(id) && !is_removed(id) {
            orphans.insert((table, what, id));
        }
    };
    every(tx, &all::ATTEMPTS, |(_, id, _, _, _), _| {
        note("attempts", "an attempt", id);
    })?;
    every(tx, &all::VALUES, |(_, id, _), _| note("values", "a value", id))?;
    every(tx, &all::HISTORY, |(_, id, _), _| {
        note("history", "a history", id);
    })?;
    every(tx, &all::FACTS, |(_, id, _), _| note("facts", "a fact", id))?;
    every(tx, &all::DEAD_STEPS, |(_, id, _), _| {
        note("dead_steps", "a dead letter", id);
    })?;
    for (table, what, id) in orphans {
        findings.push(format!("{table}: {id} has {what} and no run"));
    }
    Ok(())
}

fn check_live(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut fences = BTreeSet::new();
    let mut running_steps: BTreeMap<Vec<u8>, u64> = BTreeMap::new();
    every(tx, &all::STEPS, |(tenant, id, step), state| {
        if let StepPhase::Running { fence, .. } = state.phase {
            running_steps.insert((tenant, id, step).encode(), fence);
        }
    })?;
    // The attempt of a graph's step may have ended while its run has not folded that in yet.
    every(tx, &all::FACTS, |(tenant, id, _), fact| {
        if let StoredFact::AttemptEnded { step, fence, .. } = fact {
            let key = (tenant, id, step).encode();
            if running_steps.get(&key) == Some(&fence) {
                running_steps.remove(&key);
            }
        }
    })?;
    let mut held = BTreeSet::new();
    every(tx, &all::LIVE_ATTEMPTS, |(tenant, id, step), row| {
        if !fences.insert(row.claim.fence) {
            findings.push(format!("live_attempts: fence {} stands twice", row.claim.fence));
        }
        if running_steps.remove(&(tenant, id, step).encode()) != Some(row.claim.fence) {
            findings.push(format!(
                "live_attempts: {id} runs under another fence than its step says"
            ));
        }
        if let Some(entry) = row.entry {
            held.insert((tenant, entry.slot_pool, entry.seq).encode());
        }
    })?;
    findings.extend(
        running_steps
            .into_values()
            .map(|fence| format!("steps: fence {fence} has no live attempt")),
    );
    compare(tx, &all::SLOT_RUNNING, held, findings)?;
    every(tx, &all::TASK_CLAIMS, |(_, fence), claim| {
        if !fences.contains(&fence) {
            findings.push(format!(
                "task_claims: fence {fence} of {} has no live attempt",
                claim.run
            ));
        }
    })?;
    let counter = tx
        .get(&all::META, &("next_fence".to_owned(),))?
        .map_or(0, |number| number.0);
    if let Some(newest) = fences.last().filter(|newest| **newest > counter) {
        findings.push(format!("meta: next_fence is {counter}, a claim has {newest}"));
    }
    Ok(())
}

fn check_remembered(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut keys = BTreeSet::new();
    every(tx, &all::REMEMBERED, |(tenant, _), row| {
        keys.insert((tenant, super::keys::DigestKey(row.key)).encode());
    })?;
    compare(tx, &all::REMEMBERED_KEYS, keys, findings)
}

fn check_effects(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let tenant = effects::TENANT;
    let (mut due, mut decided, mut of_runs) = (BTreeSet::new(), BTreeSet::new(), BTreeSet::new());
    let mut counts: BTreeMap<(String, String), u64> = BTreeMap::new();
    let mut waiting = BTreeSet::new();
    let mut newest = 0;
    let unreadable = every(tx, &all::EFFECTS, |(_, seq), effect| {
        newest = newest.max(seq);
        match effects::index_of(&effect) {
            EffectIndex::Due(at) => {
                waiting.insert(seq);
                due.insert((tenant, at, seq).encode())
            }
            EffectIndex::Decided(at) => decided.insert((tenant, at, seq).encode()),
        };
        of_runs.extend(effect.run.map(|run| (tenant, run, seq).encode()));
        for job in ["", effect.job.as_str()] {
            if let Some(word) = effects::counted_as(&effect) {
                *counts.entry((word, job.to_owned())).or_default() += 1;
            }
        }
    })?;
    if !unreadable.is_empty() {
        return Ok(());
    }
    every(tx, &all::DELIVERING, |(_, seq), _| {
        if !waiting.contains(&seq) {
            findings.push(format!("delivering: report {seq} does not wait"));
        }
    })?;
    compare(tx, &all::EFFECT_DUE, due, findings)?;
    compare(tx, &all::EFFECT_DECIDED, decided, findings)?;
    compare(tx, &all::RUN_EFFECTS, of_runs, findings)?;
    every(tx, &all::EFFECT_COUNTS, |(_, word, job), Number(count)| {
        let real = counts.remove(&(word.clone(), job)).unwrap_or(0);
        if real != count {
            findings.push(format!("effect_counts: {word} says {count}, there are {real}"));
        }
    })?;
    findings.extend(
        counts
            .into_keys()
            .map(|(word, _)| format!("effect_counts: {word} has no row")),
    );
    let counter = tx
        .get(&all::META, &("next_effect".to_owned(),))?
        .map_or(0, |number| number.0);
    if newest > counter {
        findings.push(format!("meta: next_effect is {counter}, an effect has {newest}"));
    }
    Ok(())
}
