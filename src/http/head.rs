//! Why work waits: the judgement of a queue's head as admission itself makes it, in words for people.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use serde::Serialize;
use utoipa::ToSchema;

use crate::domain::slots::admission::{self, ANY_MOMENT, BlockedBy, HeadVerdict};
use crate::domain::slots::entry::SlotEntry;
use crate::engine::book::Book;
use crate::engine::changes::{head, nodes};
use crate::store::{Rows, StoreError, entries};
use crate::words::ids::EntryId;
use crate::words::names::{NodeName, SlotPoolName};
use crate::words::time::Millis;

/// The first entry of a queue.
#[derive(Debug, Clone)]
pub(super) struct Head {
    pub(super) id: EntryId,
    /// `None`: it starts, or ends, with the next pass.
    pub(super) blocked: Option<BlockedBy>,
    pub(super) sentence: String,
}

/// What the head of a slot pool waits for; `None` if nothing waits.
pub(super) fn of(
    rows: &mut impl Rows,
    book: &Book,
    pool: &SlotPoolName,
    now: Millis,
) -> Result<Option<Head>, StoreError> {
    let first = entries::waiting(rows, pool, 1)?.into_iter().next();
    let Some((_, row)) = first else { return Ok(None) };
    match entries::by_seq(rows, row.seq)? {
        Some(entry) => judge(rows, book, &entry, now).map(Some),
        None => Ok(None),
    }
}

fn judge(rows: &mut impl Rows, book: &Book, entry: &SlotEntry, now: Millis) -> Result<Head, StoreError> {
    let view = head::view(rows, book, entry, now, false)?;
    let blocked = match admission::head(&view) {
        HeadVerdict::Wait(blocked) => Some(blocked),
        HeadVerdict::Claim | HeadVerdict::Expire | HeadVerdict::Withdraw | HeadVerdict::Supersede => None,
    };
    let sentence = match (blocked, &entry.node) {
        (None, _) => ANY_MOMENT.to_owned(),
        (Some(BlockedBy::Node), Some(node)) => for_node(rows, node)?,
        (Some(blocked), _) => blocked.sentence(&view),
    };
    Ok(Head {
        id: entry.id,
        blocked,
        sentence,
    })
}

/// What waits for a daemon that it is bound to.
pub(super) fn for_node(rows: &mut impl Rows, node: &NodeName) -> Result<String, StoreError> {
    let why = if nodes::is_gone(rows, node)? {
        ", which is gone, to come back"
    } else if nodes::drain_of(rows, node)?.is_some() {
        ", which is drained"
    } else {
        ""
    };
    Ok(format!("Waiting for node {node}{why}"))
}

/// `blockedBy` on the wire.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct Blocked {
    kind: &'static str,
    since: String,
}

type Blocks = BTreeMap<SlotPoolName, (EntryId, BlockedBy, Millis)>;

/// Since when each head is blocked by what it is blocked by, as far as this daemon has seen it.
#[derive(Debug, Clone, Default)]
pub(super) struct HeadMemory {
    seen: Arc<Mutex<Blocks>>,
}

impl HeadMemory {
    /// Notes what a head is blocked by; the answer for the wire.
    pub(super) fn note(&self, pool: &SlotPoolName, head: Option<&Head>, now: Millis) -> Option<Blocked> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((id, kind)) = head.and_then(|head| Some((head.id, head.blocked?))) else {
            seen.remove(pool);
            return None;
        };
        let since = match seen.get(pool) {
            Some((entry, before, since)) if *entry == id && *before == kind => *since,
            Some(_) | None => now,
        };
        seen.insert(pool.clone(), (id, kind, since));
        Some(Blocked {
            kind: kind.word(),
            since: since.to_string(),
        })
    }
}
