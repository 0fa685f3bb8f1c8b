//! Pauses: rows in the store, so that they hold for every daemon at once and over restarts.

use crate::domain::slots::admission::{Pause, SlotPoolState};
use crate::engine::book::Book;
use crate::engine::changes::head;
use crate::store::tables::{JOB_PAUSES, SLOT_POOLS};
use crate::store::{Abort, Rows, Tx};
use crate::words::ids::TenantId;
use crate::words::names::{JobName, SlotPoolName};

const TENANT: TenantId = TenantId::DEFAULT;

/// Sets or lifts the pause of a slot pool. Both are idempotent.
pub fn slot_pool(
    tx: &mut Tx<'_>,
    book: &Book,
    name: &SlotPoolName,
    pause: Option<&Pause>,
) -> Result<(), Abort> {
    let stored = head::slot_pool(tx, name)?;
    let state = stored.clone().unwrap_or(SlotPoolState {
        stored_slots: head::stored_slots(None, book, name),
        paused: None,
        draining_to: None,
    });
    if state.paused.as_ref() == pause {
        return Ok(());
    }
    let topic = if pause.is_some() {
        "pool.paused"
    } else {
        "pool.resumed"
    };
    tx.put(
        &SLOT_POOLS,
        &(TENANT, name.clone()),
        &SlotPoolState {
            paused: pause.cloned(),
            ..state
        },
    )?;
    tx.tell(topic, name, 0, pause.map(|pause| pause.note.as_str()));
    Ok(())
}

/// Sets or lifts the pause of a job.
pub fn job(tx: &mut Tx<'_>, name: &JobName, pause: Option<&Pause>) -> Result<(), Abort> {
    let key = (TENANT, name.clone());
    let stored = tx.get(&JOB_PAUSES, &key)?;
    if stored.as_ref() == pause {
        return Ok(());
    }
    match pause {
        Some(pause) => {
            tx.put(&JOB_PAUSES, &key, pause)?;
            tx.tell("job.paused", name, 0, Some(&pause.note));
        }
        None => {
            tx.remove(&JOB_PAUSES, &key)?;
            tx.tell("job.resumed", name, 0, None);
        }
    }
    Ok(())
}
