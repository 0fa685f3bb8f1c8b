//! The only writer of decisions: each brings its index rows along, shares its snapshot, and takes all of it with it when it
//! goes.

use super::error::StoreError;
use super::keys::DigestKey;
use super::live_rows::{DecisionRow, DeclaredRow, SnapshotRow, SourceRow, WorkRow};
use super::offers;
use super::routing_live::{self, Lookup};
use super::rows::{Number, Present};
use super::scribe::MadeRow;
use super::shadows;
use super::table::Rows;
use super::tables::{
    DECISION_INDEX, DECISIONS, DECLARED, DECLARED_USES, ROUTED_WORK, ROUTING_WAITING, SNAPSHOTS, SOURCES,
    WORK_WAITERS,
};
use super::tx::Tx;
use crate::domain::routing::snapshot::{self, Declared, Recalled, Unreadable};
use crate::words::ids::{DecisionId, TenantId, WorkId, digest_of_parts};
use crate::words::payload::JsonText;

/// What decisions are filtered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// The recipient pool that it ended in.
    RecipientPool,
    /// A winner.
    Recipient,
    /// The work.
    Work,
    /// The word of its outcome.
    Outcome,
    /// The code of one of its reasons.
    Reason,
}

/// How a word stands in the index.
pub fn of_word(word: &str) -> DigestKey {
    DigestKey(digest_of_parts(&["decision", word]))
}

/// Where a decision stands in the index.
pub fn index_of(row: &DecisionRow) -> Vec<(u8, DigestKey)> {
    let mut places = vec![
        (Filter::Work as u8, DigestKey(row.work.0)),
        (Filter::Outcome as u8, of_word(&row.outcome)),
    ];
    let of_pool = row.recipient_pool.map(|id| DigestKey(id.0));
    places.extend(of_pool.map(|key| (Filter::RecipientPool as u8, key)));
    places.extend(
        row.winners
            .iter()
            .map(|id| (Filter::Recipient as u8, DigestKey(id.0))),
    );
    places.extend(
        row.reasons
            .iter()
            .map(|code| (Filter::Reason as u8, of_word(code))),
    );
    places
}

/// One decision.
pub fn decision(
    rows: &mut impl Rows,
    tenant: TenantId,
    id: DecisionId,
) -> Result<Option<DecisionRow>, StoreError> {
    rows.get(&DECISIONS, &(tenant, id))
}

/// Keeps a decision that was made from nothing.
pub fn keep(tx: &mut Tx<'_>, tenant: TenantId, id: DecisionId, row: &DecisionRow) -> Result<(), StoreError> {
    tx.put(&DECISIONS, &(tenant, id), row)?;
    list(tx, tenant, id, row)
}

/// A decision and what it was made from.
#[derive(Debug)]
pub struct Texts {
    /// The decision.
    pub row: DecisionRow,
    /// What it was made from.
    pub source: SourceRow,
}

/// Keeps a decision: its index rows now, its texts at once or, where they are made beside this turn, late.
pub fn keep_with(
    tx: &mut Tx<'_>,
    (tenant, id): (TenantId, DecisionId),
    row: &DecisionRow,
    declared: &Declared,
    texts: MadeTexts<'_>,
) -> Result<(), StoreError> {
    list(tx, tenant, id, row)?;
    use_declared(tx, tenant, declared)?;
    match texts {
        MadeTexts::Now(Texts { row, source }) => {
            tx.put(&DECISIONS, &(tenant, id), row)?;
            tx.put(&SOURCES, &(tenant, id), source)
        }
        MadeTexts::Late(about, make) => {
            tx.put_late(&[DECISIONS.index(), SOURCES.index()], about, move || {
                let Texts { row, source } = make();
                vec![
                    MadeRow::of(&DECISIONS, &(tenant, id), &row),
                    MadeRow::of(&SOURCES, &(tenant, id), &source),
                ]
            })
        }
    }
}

/// When the texts of a decision are made.
pub enum MadeTexts<'t> {
    /// They are.
    Now(&'t Texts),
    /// Beside the writer's turn: about so many bytes.
    Late(usize, Box<dyn FnOnce() -> Texts + Send>),
}

fn list(tx: &mut Tx<'_>, tenant: TenantId, id: DecisionId, row: &DecisionRow) -> Result<(), StoreError> {
    for (filter, key) in index_of(row) {
        tx.put(&DECISION_INDEX, &(tenant, filter, key, id), &Present {})?;
    }
    Ok(())
}

/// One more source names it.
fn use_declared(tx: &mut Tx<'_>, tenant: TenantId, declared: &Declared) -> Result<(), StoreError> {
    let key = (tenant, declared.digest.clone());
    let uses = tx.get(&DECLARED_USES, &key)?.map_or(0, |Number(uses)| uses);
    if uses == 0 {
        let text = declared.text.clone();
        tx.put(&DECLARED, &key, &DeclaredRow { text })?;
    }
    tx.put(&DECLARED_USES, &key, &Number(uses + 1))
}

/// One source less names it; with the last one it goes.
fn leave_declared(tx: &mut Tx<'_>, key: &(TenantId, String)) -> Result<(), StoreError> {
    match tx.get(&DECLARED_USES, key)? {
        Some(Number(uses)) if uses > 1 => tx.put(&DECLARED_USES, key, &Number(uses - 1)),
        Some(_) | None => {
            tx.remove(&DECLARED, key)?;
            tx.remove(&DECLARED_USES, key)?;
            Ok(())
        }
    }
}

/// Keeps the work itself, as it was read last.
pub fn keep_work(tx: &mut Tx<'_>, tenant: TenantId, id: WorkId, work: &JsonText) -> Result<(), StoreError> {
    tx.put(&ROUTED_WORK, &(tenant, id), &WorkRow { work: work.clone() })
}

/// The work itself.
pub fn work(rows: &mut impl Rows, tenant: TenantId, id: WorkId) -> Result<Option<JsonText>, StoreError> {
    let row = rows.get(&ROUTED_WORK, &(tenant, id))?;
    Ok(row.map(|row: WorkRow| row.work))
}

/// Both texts that a decision was made from: its snapshot, and the declared half of it, which those of the first form lack.
#[derive(Debug, Clone)]
pub struct Kept {
    text: JsonText,
    declared: Option<JsonText>,
}

impl Kept {
    /// What was read then.
    pub fn recall(&self) -> Result<Recalled, Unreadable> {
        snapshot::recall(self.text.as_str(), self.declared.as_ref().map(JsonText::as_str))
    }
}

/// What a decision was made from, if it is kept.
pub fn source(
    rows: &mut impl Rows,
    tenant: TenantId,
    (id, decision): (DecisionId, &DecisionRow),
) -> Result<Option<Kept>, StoreError> {
    if let Some(SourceRow { text, declared }) = rows.get(&SOURCES, &(tenant, id))? {
        let declared = rows.get(&DECLARED, &(tenant, declared))?;
        return Ok(Some(Kept {
            text,
            declared: declared.map(|row: DeclaredRow| row.text),
        }));
    }
    let Some(digest) = &decision.snapshot else {
        return Ok(None);
    };
    let row = rows.get(&SNAPSHOTS, &(tenant, digest.clone()))?;
    Ok(row.map(|row: SnapshotRow| Kept {
        text: row.text,
        declared: None,
    }))
}

/// Removes a decision with its assignments, its offer, its snapshot and its work, where nothing else needs them. False if
/// something of it is still under way: then it stays.
pub fn forget(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    id: DecisionId,
    row: &DecisionRow,
) -> Result<bool, StoreError> {
    let of_decision = routing_live::by(tx, tenant, (Lookup::Decision, id.0), usize::MAX)?;
    let mut assignments = Vec::new();
    for assignment in of_decision {
        let Some(assignment) = routing_live::assignment(tx, tenant, assignment)? else {
            continue;
        };
        if assignment.state.is_live() {
            return Ok(false);
        }
        assignments.push(assignment);
    }
    let mut gone = None;
    if let Some(item) = row.item {
        if tx.has(&ROUTING_WAITING, &(tenant, item))? {
            return Ok(false);
        }
        gone = offers::offer(tx, tenant, item)?;
        if gone.as_ref().is_some_and(offers::is_open) {
            return Ok(false);
        }
    }
    for assignment in &assignments {
        routing_live::forget_assignment(tx, tenant, assignment)?;
    }
    if let Some(offer) = gone.filter(|offer| offer.decision == id) {
        offers::forget(tx, tenant, &offer)?;
    }
    for (filter, key) in index_of(row) {
        tx.remove(&DECISION_INDEX, &(tenant, filter, key, id))?;
    }
    tx.remove(&DECISIONS, &(tenant, id))?;
    shadows::forget(tx, tenant, id)?;
    forget_source(tx, tenant, (id, row))?;
    let prefix = (tenant, Filter::Work as u8, DigestKey(row.work.0));
    if tx.scan(&DECISION_INDEX, &prefix, None, 1)?.is_empty() {
        tx.remove(&ROUTED_WORK, &(tenant, row.work))?;
        for (key, _) in tx.scan(&WORK_WAITERS, &(tenant, row.work), None, usize::MAX)? {
            tx.remove(&WORK_WAITERS, &key)?;
        }
    }
    Ok(true)
}

fn forget_source(
    tx: &mut Tx<'_>,
    tenant: TenantId,
    (id, decision): (DecisionId, &DecisionRow),
) -> Result<(), StoreError> {
    if let Some(row) = tx.get(&SOURCES, &(tenant, id))? {
        tx.remove(&SOURCES, &(tenant, id))?;
        return leave_declared(tx, &(tenant, row.declared));
    }
    let Some(digest) = &decision.snapshot else {
        return Ok(());
    };
    let key = (tenant, digest.clone());
    match tx.get(&SNAPSHOTS, &key)? {
        Some(SnapshotRow { uses, text }) if uses > 1 => {
            tx.put(&SNAPSHOTS, &key, &SnapshotRow { uses: uses - 1, text })
        }
        Some(_) => tx.remove(&SNAPSHOTS, &key).map(drop),
        None => Ok(()),
    }
}
