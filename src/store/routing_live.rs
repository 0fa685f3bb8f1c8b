//! The only writer of what recipients do now and of their assignments: each write brings index rows, timers, the live numbers
//! and the counts of the recipient pool along.

use super::error::StoreError;
use super::keys::DigestKey;
use super::live_rows::{DrainRow, PoolCounts, TimerKind, TimerRow};
use super::rows::{Number, Present};
use super::table::Rows;
use super::tables::{
    ASSIGNMENT_INDEX, ASSIGNMENTS, CLAIMS, DRAINS, LEARNED, META, POOL_COUNTS, RECIPIENT_LIVE,
    ROUTING_TIMERS, STRATEGY_STATES,
};
use super::tx::Tx;
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::live::Live;
use crate::domain::routing::objects::RecipientState;
use crate::words::ids::{AssignmentId, RecipientId, RecipientPoolId, TenantId};
use crate::words::time::Micros;

/// The counter of assignments.
const COUNTER: &str = "next_assignment";

/// What an assignment is looked up by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// All of a recipient.
    Recipient,
    /// All of a recipient pool.
    RecipientPool,
    /// Those of a recipient that take a place.
    LiveOfRecipient,
    /// Those of a recipient pool that take a place.
    LiveOfRecipientPool,
    /// Those of a decision.
    Decision,
}

/// Where an assignment stands in the index.
pub fn index_of(assignment: &Assignment) -> Vec<(u8, DigestKey)> {
    let mut places = vec![
        (Lookup::Recipient as u8, DigestKey(assignment.recipient.0)),
        (
            Lookup::RecipientPool as u8,
            DigestKey(assignment.recipient_pool.0),
        ),
        (Lookup::Decision as u8, DigestKey(assignment.decision.0)),
    ];
    if assignment.state.is_live() {
        places.push((Lookup::LiveOfRecipient as u8, DigestKey(assignment.recipient.0)));
        places.push((
            Lookup::LiveOfRecipientPool as u8,
            DigestKey(assignment.recipient_pool.0),
        ));
    }
    places
}

/// The instants that an assignment waits for.
pub fn timers_of(assignment: &Assignment) -> Vec<(Micros, TimerKind)> {
    let neglected_at = assignment.claimed.and_then(|claimed| claimed.neglected_at);
    [
        (assignment.deadline_at, TimerKind::Deadline),
        (assignment.response_due_at, TimerKind::Response),
        (neglected_at, TimerKind::Neglect),
    ]
    .into_iter()
    .filter_map(|(at, kind)| Some((at?, kind)))
    .collect()
}

/// Brings the timers of one thing along.
pub(super) fn move_timers(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    whose: ([u8; 16], RecipientPoolId),
    before: &[(Micros, TimerKind)],
    after: &[(Micros, TimerKind)],
) -> Result<(), StoreError> {
    let key = |(at, kind): (Micros, TimerKind)| (tenant, at, kind.number(), DigestKey(whose.0));
    for timer in before.iter().filter(|timer| !after.contains(timer)) {
        tx.remove(&ROUTING_TIMERS, &key(*timer))?;
    }
    let row = TimerRow {
        recipient_pool: whose.1,
    };
    for timer in after.iter().filter(|timer| !before.contains(timer)) {
        tx.put(&ROUTING_TIMERS, &key(*timer), &row)?;
    }
    Ok(())
}

/// What a recipient does now; none for one that is not there.
pub fn live(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient: RecipientId,
) -> Result<Option<Live>, StoreError> {
    rows.get(&RECIPIENT_LIVE, &(tenant, recipient))
}

/// Writes what a recipient does now.
pub fn put_live(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient: RecipientId,
    live: &Live,
) -> Result<(), StoreError> {
    tx.put(&RECIPIENT_LIVE, &(tenant, recipient), live)
}

/// A recipient is there or not; true if that is news. The first word about it makes its row.
pub fn set_state(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient: RecipientId,
    state: RecipientState,
) -> Result<bool, StoreError> {
    let now = Micros::from(tx.now().wall);
    let before = live(tx, tenant, recipient)?;
    let after = match &before {
        Some(before) if before.state == state => return Ok(false),
        Some(before) => Live {
            state,
            state_since: now,
            ..before.clone()
        },
        None => Live::new(state, now),
    };
    put_live(tx, tenant, recipient, &after)?;
    Ok(true)
}

/// Nothing that a recipient has up to now counts any more.
pub fn reset_capacity(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId) -> Result<(), StoreError> {
    let newest = tx
        .get(&META, &(COUNTER.to_owned(),))?
        .map_or(0, |number: Number| number.0);
    let Some(before) = live(tx, tenant, recipient)? else {
        return Ok(());
    };
    put_live(tx, tenant, recipient, &before.reset(newest))
}

/// A recipient is gone: so is what it did. Its assignments must have ended before.
pub fn forget(tx: &mut Tx<'_>, tenant: TenantId, recipient: RecipientId) -> Result<(), StoreError> {
    tx.remove(&RECIPIENT_LIVE, &(tenant, recipient))?;
    Ok(())
}

/// One assignment.
pub fn assignment(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: AssignmentId,
) -> Result<Option<Assignment>, StoreError> {
    rows.get(&ASSIGNMENTS, &(tenant, id))
}

/// Ids of assignments by one of their lookups, oldest first.
pub fn by(
    rows: &mut impl Rows,
    tenant: TenantId,
    (lookup, id): (Lookup, [u8; 16]),
    limit: usize,
) -> Result<Vec<AssignmentId>, StoreError> {
    let prefix = (tenant, lookup as u8, DigestKey(id));
    let found = rows.scan(&ASSIGNMENT_INDEX, &prefix, None, limit)?;
    Ok(found.into_iter().map(|((_, _, _, id), Present {})| id).collect())
}

/// The newest assignments by one of their lookups that are older than `behind`, newest first.
pub fn page_back(
    rows: &mut impl Rows,
    tenant: TenantId,
    (lookup, id): (Lookup, [u8; 16]),
    behind: Option<AssignmentId>,
    limit: usize,
) -> Result<Vec<AssignmentId>, StoreError> {
    let prefix = (tenant, lookup as u8, DigestKey(id));
    let before = behind.map(|behind| (tenant, lookup as u8, DigestKey(id), behind));
    let found = rows.scan_back(&ASSIGNMENT_INDEX, &prefix, before.as_ref(), limit)?;
    Ok(found.into_iter().map(|((_, _, _, id), Present {})| id).collect())
}

/// A new assignment: numbered, charged, counted. The instant of its creation never lies before the daily window that it counts
/// in, whatever the clock does.
pub fn assign(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    mut assignment: Assignment,
) -> Result<Assignment, StoreError> {
    let now = assignment.created_at;
    let before =
        live(tx, tenant, assignment.recipient)?.unwrap_or_else(|| Live::new(RecipientState::Available, now));
    let after = before.charged(now, assignment.units);
    let window_start = after.daily_reset_at.map_or(now, |reset| {
        Micros(reset.0 - crate::domain::routing::charge::DAY_US.cast_signed())
    });
    assignment.created_at = now.max(window_start);
    assignment.seq = tx.next_number(COUNTER)?;
    put_live(tx, tenant, assignment.recipient, &after)?;
    write(tx, tenant, None, &assignment)?;
    Ok(assignment)
}

/// An assignment as it is after an event; what ends gives its place back.
pub fn replace(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: &Assignment,
    after: &Assignment,
) -> Result<(), StoreError> {
    if before.state.is_live() && !after.state.is_live() {
        let ended_at = after.end.as_ref().map_or(after.created_at, |end| end.at);
        if let Some(live) = live(tx, tenant, after.recipient)? {
            put_live(tx, tenant, after.recipient, &live.released(ended_at, after))?;
        }
    }
    write(tx, tenant, Some(before), after)
}

fn write(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    before: Option<&Assignment>,
    after: &Assignment,
) -> Result<(), StoreError> {
    tx.put(&ASSIGNMENTS, &(tenant, after.id), after)?;
    let (old, new) = (before.map(index_of).unwrap_or_default(), index_of(after));
    move_index(tx, tenant, after.id, &old, &new)?;
    let (old, new) = (before.map(timers_of).unwrap_or_default(), timers_of(after));
    move_timers(tx, tenant, (after.id.0, after.recipient_pool), &old, &new)?;
    let was_live = before.is_some_and(|before| before.state.is_live());
    if was_live != after.state.is_live() {
        count(tx, tenant, after.recipient_pool, |counts| {
            let open = &mut counts.open;
            *open = if was_live {
                open.saturating_sub(1)
            } else {
                *open + 1
            };
        })?;
    }
    Ok(())
}

fn move_index(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: AssignmentId,
    before: &[(u8, DigestKey)],
    after: &[(u8, DigestKey)],
) -> Result<(), StoreError> {
    for (lookup, key) in before.iter().filter(|place| !after.contains(place)) {
        tx.remove(&ASSIGNMENT_INDEX, &(tenant, *lookup, *key, id))?;
    }
    for (lookup, key) in after.iter().filter(|place| !before.contains(place)) {
        tx.put(&ASSIGNMENT_INDEX, &(tenant, *lookup, *key, id), &Present {})?;
    }
    Ok(())
}

/// Removes an assignment that has ended.
pub(super) fn forget_assignment(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    assignment: &Assignment,
) -> Result<(), StoreError> {
    let holder = (tenant, assignment.recipient);
    if let Some(live) = tx.get(&RECIPIENT_LIVE, &holder)? {
        let forgotten = live.forgotten(assignment);
        if forgotten != live {
            tx.put(&RECIPIENT_LIVE, &holder, &forgotten)?;
        }
    }
    tx.remove(&ASSIGNMENTS, &(tenant, assignment.id))?;
    move_index(tx, tenant, assignment.id, &index_of(assignment), &[])
}

/// How much a recipient pool has.
pub fn counts(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
) -> Result<PoolCounts, StoreError> {
    Ok(rows
        .get(&POOL_COUNTS, &(tenant, recipient_pool))?
        .unwrap_or_default())
}

pub(super) fn count(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    change: impl FnOnce(&mut PoolCounts),
) -> Result<(), StoreError> {
    let mut counts = counts(tx, tenant, recipient_pool)?;
    change(&mut counts);
    if counts == PoolCounts::default() {
        tx.remove(&POOL_COUNTS, &(tenant, recipient_pool))?;
        return Ok(());
    }
    tx.put(&POOL_COUNTS, &(tenant, recipient_pool), &counts)
}

/// Something has changed for what waits in the queue of a recipient pool: it is gone through, by whoever comes first. True if
/// anything waits there.
pub fn stir(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    why: &str,
) -> Result<bool, StoreError> {
    let mut counts = counts(tx, tenant, recipient_pool)?;
    counts.events = counts.events.wrapping_add(1);
    tx.put(&POOL_COUNTS, &(tenant, recipient_pool), &counts)?;
    if counts.waiting == 0 {
        return Ok(false);
    }
    let before = tx.get(&DRAINS, &(tenant, recipient_pool))?;
    let row = DrainRow {
        generation: before.as_ref().map_or(1, |row| row.generation + 1),
        since: before
            .as_ref()
            .map_or(Micros::from(tx.now().wall), |row| row.since),
        why: why.to_owned(),
        passed: Vec::new(),
    };
    tx.put(&DRAINS, &(tenant, recipient_pool), &row)?;
    Ok(true)
}

/// A recipient that leaves a recipient pool loses what was learned of it there.
pub fn forget_member(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
    recipient: RecipientId,
) -> Result<(), StoreError> {
    tx.remove(&LEARNED, &(tenant, recipient_pool, recipient))?;
    Ok(())
}

/// A recipient pool goes: so does what its stages remember, what was learned there, and the ledger of its claims.
pub fn forget_pool(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    recipient_pool: RecipientPoolId,
) -> Result<(), StoreError> {
    let prefix = (tenant, recipient_pool);
    for (key, _) in tx.scan(&STRATEGY_STATES, &prefix, None, usize::MAX)? {
        tx.remove(&STRATEGY_STATES, &key)?;
    }
    for (key, _) in tx.scan(&LEARNED, &prefix, None, usize::MAX)? {
        tx.remove(&LEARNED, &key)?;
    }
    for (key, _) in tx.scan(&CLAIMS, &prefix, None, usize::MAX)? {
        tx.remove(&CLAIMS, &key)?;
    }
    Ok(())
}

/// The number of the newest change to the declared objects of a tenant: what was compiled of them is good as long as it stays.
pub fn revision(rows: &mut impl Rows, tenant: TenantId) -> Result<u64, StoreError> {
    let number = rows.get(&META, &(revision_name(tenant),))?;
    Ok(number.map_or(0, |number: Number| number.0))
}

/// A declared object of a tenant has changed.
pub fn revise(tx: &mut Tx<'_>, tenant: TenantId) -> Result<(), StoreError> {
    tx.next_number(&revision_name(tenant)).map(drop)
}

/// True when this transaction itself has changed a declared object of the tenant.
pub fn is_revised_here(rows: &impl Rows, tenant: TenantId) -> bool {
    rows.has_moved(&revision_name(tenant))
}

fn revision_name(tenant: TenantId) -> String {
    format!("routing {}", tenant.0)
}
