//! What a daemon writes about itself.

use crate::store::rows::NodeRecord;
use crate::store::tables::NODES;
use crate::store::{Abort, Rows, Tx};
use crate::words::names::NodeName;

/// Writes the daemon's own row.
pub fn introduce(tx: &mut Tx<'_>, name: &NodeName, record: &NodeRecord) -> Result<(), Abort> {
    tx.put(&NODES, &(name.clone(),), record)?;
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
