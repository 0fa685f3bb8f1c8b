//! Steps of graphs that the queue of their slot pool did not let in. They stand in a line of their own, by priority and then by
//! time, and enter in the very change that finds room: nobody asks again and again.

use super::{advance, drift, graph, head, maintain};
use crate::domain::slots::admission::{self, EnqueueView};
use crate::domain::workflow::definition::SlotDemand;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::graph::key::Key as StepKey;
use crate::domain::workflow::graph::state::{Line, TaskPlace};
use crate::domain::workflow::run::StepPhase;
use crate::engine::book::Book;
use crate::engine::graphs::GraphShelf;
use crate::store::keys::Key;
use crate::store::tables::TASKS;
use crate::store::{Abort, Rows, StoreError, Tx, entries, graphs, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::SlotPoolName;

const TENANT: TenantId = TenantId::DEFAULT;

/// The line before a slot pool. No queue of a definition has such a name.
fn queue_of(name: &SlotPoolName) -> String {
    format!("!refused {name}")
}

/// The place of a step that was refused now.
pub(super) fn line_of(tx: &mut Tx<'_>, demand: &SlotDemand) -> Result<Line, StoreError> {
    let behind = i64::from(i32::MAX) - i64::from(demand.priority);
    Ok(Line::Tasks(TaskPlace {
        queue: queue_of(&demand.slot_pool),
        tier: Tier::Default,
        // The higher the priority, the nearer.
        partition: format!("{behind:010}"),
        number: tx.next_number("next_task")?,
    }))
}

fn is_anyone(rows: &mut impl Rows, name: &SlotPoolName) -> Result<bool, StoreError> {
    let prefix = (TENANT, queue_of(name)).encode();
    Ok(!rows.raw_scan(TASKS.index(), &prefix, None, false, 1)?.is_empty())
}

/// True when somebody stands before the slot pool and this daemon could let him in.
pub fn has_room(rows: &mut impl Rows, book: &Book, name: &SlotPoolName) -> Result<bool, StoreError> {
    let Some(configured) = book.slot_pools.get(name).filter(|_| book.locks_trusted) else {
        return Ok(false);
    };
    if !is_anyone(rows, name)? || drift::slot_pool(rows, book, name)?.is_some() {
        return Ok(false);
    }
    let state = head::slot_pool(rows, name)?;
    let view = EnqueueView {
        locks_trusted: book.locks_trusted,
        stored_slots: head::stored_slots(state.as_ref(), book, name),
        configured_slots: configured.slots,
        busy: head::is_busy(rows, name)?,
        waiting: entries::waiting_count(rows, name)?,
        unseen: entries::unseen_count(rows, name, configured.max_queued as usize)?,
        max_queued: configured.max_queued,
    };
    Ok(admission::enqueue(&view).is_ok())
}

/// Lets in who stands before the slot pool, as long as there is room.
pub fn let_in(
    tx: &mut Tx<'_>,
    book: &Book,
    shelf: &GraphShelf,
    rules: maintain::Rules,
    name: &SlotPoolName,
) -> Result<(), Abort> {
    if !has_room(tx, book, name)? {
        return Ok(());
    }
    let line = (TENANT, queue_of(name));
    for each in tx.scan_each(&TASKS, &line, None, limits::MAINTENANCE_ROWS_MAX)? {
        // A row that cannot be read stays where it is; the check of the store tells of it.
        let Ok((_, row)) = each.row else { continue };
        let Ok((run, step)) = advance::load(tx, row.run, &row.step) else {
            continue;
        };
        let Ok(Some(graph)) = shelf.get(tx, &run.definition, run.version) else {
            continue;
        };
        let Some(key) = StepKey::of_name(&graph, &step.step) else {
            continue;
        };
        let mut run = run;
        run.record_version += 1;
        let (node, before) = (graph.node(key.node), step);
        let next = graph::enqueue(tx, book, (&run, &before), node, rules)?;
        if !matches!(next.phase, StepPhase::Queued { .. }) {
            break;
        }
        graphs::put_step(tx, &run, Some(&before), &next)?;
        let known = runs::by_id(tx, run.id)?;
        if let Some(known) = known {
            runs::replace(tx, &known, &run)?;
        }
    }
    Ok(())
}

/// The same before all slot pools of this daemon's configuration.
pub fn let_in_all(
    tx: &mut Tx<'_>,
    book: &Book,
    shelf: &GraphShelf,
    rules: maintain::Rules,
) -> Result<(), Abort> {
    for name in book.slot_pools.keys() {
        match let_in(tx, book, shelf, rules, name) {
            Err(Abort(error)) if !error.is_row_fault() => return Err(Abort(error)),
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}
