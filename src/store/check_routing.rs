//! The check of live routing: indexes, timers, counts and the numbers of recipients, computed anew from assignments, items,
//! offers and decisions.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Findings, compare, every};
use super::error::StoreError;
use super::keys::{DigestKey, Key};
use super::live_rows::{PoolCounts, TimerKind};
use super::routing_live::{self, index_of};
use super::rows::Number;
use super::table::Rows;
use super::tables as all;
use super::tx::ReadTx;
use super::{decisions, offers, waiting_work};
use crate::domain::routing::assignment::Assignment;
use crate::domain::routing::charge::Counted;
use crate::domain::routing::live::Live;
use crate::domain::routing::waiting::WaitKind;
use crate::words::ids::{DecisionId, RecipientId, RecipientPoolId, TenantId, sha256_hex};
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
    snapshots: BTreeMap<(TenantId, DecisionId), String>,
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
            expected.snapshots.insert((tenant, id), digest);
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
    check_sources(tx, expected.snapshots, findings)?;
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

/// What decisions were made from is there: each a source of its own, or a snapshot of an older format.
fn check_sources(
    tx: &mut ReadTx,
    mut of_decisions: BTreeMap<(TenantId, DecisionId), String>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut declared: BTreeMap<(TenantId, String), u64> = BTreeMap::new();
    every(tx, &all::SOURCES, |key, row| {
        let digest = sha256_hex(row.text.as_str().as_bytes());
        if of_decisions.remove(&key).is_none_or(|said| said != digest) {
            findings.push(format!(
                "sources: {} has the digest {digest}, which its decision does not name",
                key.1
            ));
        }
        *declared.entry((key.0, row.declared)).or_default() += 1;
    })?;
    let mut older: BTreeMap<(TenantId, String), Vec<DecisionId>> = BTreeMap::new();
    for ((tenant, id), digest) in of_decisions {
        older.entry((tenant, digest)).or_default().push(id);
    }
    every(tx, &all::SNAPSHOTS, |(tenant, digest), row| {
        let real = older.remove(&(tenant, digest.clone())).unwrap_or_default().len();
        if real != row.uses as usize {
            findings.push(format!(
                "snapshots: {digest} says {} decisions, {real} name it",
                row.uses
            ));
        }
    })?;
    for id in older.into_values().flatten() {
        findings.push(format!("sources: what {id} was made from is missing"));
    }
    check_declared(tx, declared, findings)
}

/// Each declared half that sources name is there, and counted; no other is.
fn check_declared(
    tx: &mut ReadTx,
    mut uses: BTreeMap<(TenantId, String), u64>,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut texts = BTreeSet::new();
    every(tx, &all::DECLARED, |key, row| {
        let digest = sha256_hex(row.text.as_str().as_bytes());
        if digest != key.1 {
            findings.push(format!("declared: the text of {} has the digest {digest}", key.1));
        }
        texts.insert(key);
    })?;
    every(tx, &all::DECLARED_USES, |key, Number(said)| {
        let real = uses.remove(&key).unwrap_or(0);
        if real != said {
            findings.push(format!(
                "declared_uses: {} says {said} sources, {real} name it",
                key.1
            ));
        }
        if !texts.remove(&key) {
            findings.push(format!("declared: a source names {}, which is missing", key.1));
        }
    })?;
    for (_, digest) in uses.into_keys() {
        findings.push(format!("declared_uses: {digest} has no row, and sources name it"));
    }
    for (_, digest) in texts {
        findings.push(format!("declared: no source names {digest}"));
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
