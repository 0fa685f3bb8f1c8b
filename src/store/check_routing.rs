//! The check of live routing: indexes, timers, counts and the numbers of recipients, computed anew from assignments, items,
//! offers and decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Findings, compare, every};
use super::error::StoreError;
use super::keys::{DigestKey, Key};
use super::live_rows::{PoolCounts, TimerKind};
use super::routing_live::{self, index_of};
use super::table::Rows;
use super::tables as all;
use super::tx::ReadTx;
use super::{decisions, offers, waiting_work};
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::charge::Counted;
use crate::domain::routing::live::Live;
use crate::domain::routing::waiting::WaitKind;
use crate::words::ids::{RecipientId, RecipientPoolId, TenantId};
use crate::words::time::Micros;

/// A recipient whose materialised numbers are not those of its assignments.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// Whose recipient.
    pub tenant: TenantId,
    /// Which.
    pub recipient: RecipientId,
    /// What its row says.
    pub stored: Counted,
    /// What its assignments say.
    pub real: Counted,
}

/// Compares the numbers of one recipient with its assignments.
pub fn recount(
    rows: &mut impl Rows,
    tenant: TenantId,
    recipient: RecipientId,
    live: &Live,
) -> Result<Option<Differing>, StoreError> {
    let lookup = (routing_live::Lookup::Recipient, recipient.0);
    let mut own = Vec::new();
    for id in routing_live::by(rows, tenant, lookup, usize::MAX)? {
        own.extend(routing_live::assignment(rows, tenant, id)?);
    }
    let real = live.recounted(own.iter());
    let stored = live.counted();
    Ok((real != stored).then_some(Differing {
        tenant,
        recipient,
        stored,
        real,
    }))
}

#[derive(Default)]
struct Expected {
    assignments: BTreeSet<Vec<u8>>,
    order: BTreeSet<Vec<u8>>,
    offers: BTreeSet<Vec<u8>>,
    offers_of_pool: BTreeSet<Vec<u8>>,
    work_items: BTreeSet<Vec<u8>>,
    timers: BTreeSet<Vec<u8>>,
    decisions: BTreeSet<Vec<u8>>,
    counts: BTreeMap<(TenantId, RecipientPoolId), PoolCounts>,
    uses: BTreeMap<(TenantId, String), u32>,
    of_recipient: BTreeMap<(TenantId, RecipientId), Vec<Assignment>>,
}

impl Expected {
    fn timers(&mut self, tenant: TenantId, whose: [u8; 16], timers: Vec<(Micros, TimerKind)>) {
        for (at, kind) in timers {
            self.timers
                .insert((tenant, at, kind.number(), DigestKey(whose)).encode());
        }
    }

    fn counts(&mut self, tenant: TenantId, recipient_pool: RecipientPoolId) -> &mut PoolCounts {
        self.counts.entry((tenant, recipient_pool)).or_default()
    }

    fn assignment(&mut self, tenant: TenantId, one: Assignment) {
        for (lookup, key) in index_of(&one) {
            self.assignments.insert((tenant, lookup, key, one.id).encode());
        }
        self.timers(tenant, one.id.0, routing_live::timers_of(&one));
        if one.state.is_live() {
            self.counts(tenant, one.recipient_pool).open += 1;
        }
        let own = self.of_recipient.entry((tenant, one.recipient)).or_default();
        own.push(one);
    }
}

pub(super) fn check(tx: &mut ReadTx, findings: &mut Findings) -> Result<(), StoreError> {
    let mut expected = Expected::default();
    let mut unreadable = every(tx, &all::ASSIGNMENTS, |(tenant, _), one| {
        expected.assignment(tenant, one);
    })?;
    unreadable.extend(every(tx, &all::ROUTING_WAITING, |(tenant, id), item| {
        expected
            .order
            .insert(waiting_work::order_key(tenant, &item).encode());
        expected.work_items.insert((tenant, item.work, id).encode());
        expected.timers(tenant, id.0, waiting_work::timers_of(&item));
        let counts = expected.counts(tenant, item.recipient_pool);
        counts.waiting += 1;
        counts.again += u64::from(item.kind == WaitKind::Again);
    })?);
    unreadable.extend(every(tx, &all::OFFERS, |(tenant, id), offer| {
        expected.timers(tenant, id.0, offers::timers_of(&offer));
        if offers::is_open(&offer) {
            expected.offers.insert(offers::order_key(tenant, &offer).encode());
            expected.work_items.insert((tenant, offer.work, id).encode());
            expected
                .offers_of_pool
                .insert((tenant, offer.recipient_pool, id).encode());
            expected.counts(tenant, offer.recipient_pool).offered += 1;
        }
    })?);
    unreadable.extend(every(tx, &all::SEEN_WORK, |(tenant, _, key), row| {
        expected.timers(tenant, key.0, vec![(row.expires_at, TimerKind::Forget)]);
    })?);
    unreadable.extend(every(tx, &all::STICKY_HOLDERS, |(tenant, _, key), row| {
        expected.timers(tenant, key.0, vec![(row.expires_at, TimerKind::ForgetHolder)]);
    })?);
    unreadable.extend(every(tx, &all::DECISIONS, |(tenant, id), row| {
        for (filter, key) in decisions::index_of(&row) {
            expected.decisions.insert((tenant, filter, key, id).encode());
        }
        if let Some(digest) = row.snapshot {
            *expected.uses.entry((tenant, digest)).or_default() += 1;
        }
    })?);
    if !unreadable.is_empty() {
        // What they belong to cannot be recomputed; they are reported already.
        return Ok(());
    }
    compare(tx, &all::ASSIGNMENT_INDEX, expected.assignments, findings)?;
    compare(tx, &all::WAITING_ORDER, expected.order, findings)?;
    compare(tx, &all::OFFER_ORDER, expected.offers, findings)?;
    compare(tx, &all::OFFERS_OF_POOL, expected.offers_of_pool, findings)?;
    compare(tx, &all::WORK_ITEMS, expected.work_items, findings)?;
    compare(tx, &all::ROUTING_TIMERS, expected.timers, findings)?;
    compare(tx, &all::DECISION_INDEX, expected.decisions, findings)?;
    check_counts(tx, expected.counts, findings)?;
    check_snapshots(tx, expected.uses, findings)?;
    check_live(tx, &expected.of_recipient, findings)
}

fn check_counts(
    tx: &mut ReadTx,
    mut counts: BTreeMap<(TenantId, RecipientPoolId), PoolCounts>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    every(tx, &all::POOL_COUNTS, |key, row| {
        let real = PoolCounts {
            // A count of what happened, which no row tells.
            events: row.events,
            ..counts.remove(&key).unwrap_or_default()
        };
        if real != row {
            findings.push(format!(
                "recipient_pool_counts: pool {} says {row:?}, there are {real:?}",
                key.1
            ));
        }
    })?;
    for ((_, id), real) in counts
        .into_iter()
        .filter(|(_, real)| *real != PoolCounts::default())
    {
        findings.push(format!(
            "recipient_pool_counts: pool {id} has no row, there are {real:?}"
        ));
    }
    Ok(())
}

fn check_snapshots(
    tx: &mut ReadTx,
    mut uses: BTreeMap<(TenantId, String), u32>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    every(tx, &all::SNAPSHOTS, |(tenant, digest), row| {
        let real = uses.remove(&(tenant, digest.clone())).unwrap_or(0);
        if real != row.uses {
            findings.push(format!(
                "snapshots: {digest} says {} decisions, {real} name it",
                row.uses
            ));
        }
    })?;
    for ((_, digest), _) in uses {
        findings.push(format!("snapshots: a decision names {digest}, which is missing"));
    }
    Ok(())
}

fn check_live(
    tx: &mut ReadTx,
    of_recipient: &BTreeMap<(TenantId, RecipientId), Vec<Assignment>>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    every(tx, &all::RECIPIENT_LIVE, |key, live| {
        let own = of_recipient.get(&key).map(Vec::as_slice).unwrap_or_default();
        let (stored, real) = (live.counted(), live.recounted(own.iter()));
        if stored != real {
            findings.push(format!(
                "recipient_live: {} says {stored:?}, its assignments are {real:?}",
                key.1
            ));
        }
    })?;
    Ok(())
}
