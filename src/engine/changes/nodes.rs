//! What a daemon writes about itself, and what an operator tells it.

use crate::store::rows::{NodeDrain, NodeRecord, Present};
use crate::store::tables::{GONE_NODES, NODE_DRAINS, NODES};
use crate::store::{Abort, Rows, StoreError, Tx};
use crate::words::names::NodeName;

/// Writes the daemon's own row.
pub fn introduce(tx: &mut Tx<'_>, name: &NodeName, record: &NodeRecord) -> Result<(), Abort> {
    tx.put(&NODES, &(name.clone(),), record)?;
    tx.remove(&GONE_NODES, &(name.clone(),))?;
    tx.tell("node.changed", name, 0, None);
    Ok(())
}

/// Renews `last seen`.
pub fn still_here(tx: &mut Tx<'_>, name: &NodeName) -> Result<(), Abort> {
    let key = (name.clone(),);
    if let Some(record) = tx.get(&NODES, &key)? {
        let last_seen = tx.now().wall;
        tx.put(&NODES, &key, &NodeRecord { last_seen, ..record })?;
    }
    Ok(())
}

/// The daemons that the store knows; true for one that was noted as gone.
pub fn known(rows: &mut impl Rows) -> Result<Vec<(NodeName, bool)>, StoreError> {
    let mut found = Vec::new();
    for each in rows.scan_each(&NODES, &(), None, usize::MAX)? {
        if let Ok(((name,), _)) = each.row {
            let is_gone = is_gone(rows, &name)?;
            found.push((name, is_gone));
        }
    }
    Ok(found)
}

/// True for a daemon that was noted as gone.
pub fn is_gone(rows: &mut impl Rows, name: &NodeName) -> Result<bool, StoreError> {
    rows.has(&GONE_NODES, &(name.clone(),))
}

/// Notes which daemons are gone and which are not; what is noted already writes nothing.
pub fn note(tx: &mut Tx<'_>, found: &[(NodeName, bool)]) -> Result<(), Abort> {
    for (name, gone) in found {
        let key = (name.clone(),);
        if tx.has(&GONE_NODES, &key)? == *gone {
            continue;
        }
        if *gone {
            tx.put(&GONE_NODES, &key, &Present)?;
            tx.tell("node.gone", name, 0, None);
        } else {
            tx.remove(&GONE_NODES, &key)?;
            tx.tell("node.changed", name, 0, None);
        }
    }
    Ok(())
}

/// Since when, and by whom, a daemon has to begin nothing more; `None` if it may.
pub fn drain_of(rows: &mut impl Rows, name: &NodeName) -> Result<Option<NodeDrain>, StoreError> {
    rows.get(&NODE_DRAINS, &(name.clone(),))
}

/// Tells a daemon to begin nothing more, or that it may again; `false` if there is no daemon of that name. Both are
/// idempotent: the first drain stays as it is.
pub fn set_drain(tx: &mut Tx<'_>, name: &NodeName, wanted: Option<(&str, &str)>) -> Result<bool, Abort> {
    let key = (name.clone(),);
    if !tx.has(&NODES, &key)? {
        return Ok(false);
    }
    let is_drained = tx.has(&NODE_DRAINS, &key)?;
    match wanted {
        Some((by, note)) if !is_drained => {
            let row = NodeDrain {
                since: tx.now().wall,
                by: by.to_owned(),
                note: note.to_owned(),
            };
            tx.put(&NODE_DRAINS, &key, &row)?;
            tx.tell(
                "node.drained",
                name,
                0,
                Some(note).filter(|note| !note.is_empty()),
            );
        }
        None if is_drained => {
            tx.remove(&NODE_DRAINS, &key)?;
            tx.tell("node.undrained", name, 0, None);
        }
        Some(_) | None => {}
    }
    Ok(true)
}
