//! What a daemon writes about itself.

use crate::store::rows::NodeRecord;
use crate::store::tables::NODES;
use crate::store::{Abort, Tx};
use crate::words::names::NodeName;

/// Writes the daemon's own row.
pub fn introduce(tx: &mut Tx<'_>, name: &NodeName, record: &NodeRecord) -> Result<(), Abort> {
    tx.put(&NODES, &(name.clone(),), record)?;
    tx.tell("node.changed", name, 0, None);
    Ok(())
}
