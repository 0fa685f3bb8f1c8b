//! A fire or start of a dag: its run begins in the same change as the fire's row.

use std::sync::Arc;

use super::start::{Start, Started};
use super::{fold, graph};
use crate::domain::workflow::graph::state::GraphHeader;
use crate::engine::book::Book;
use crate::store::{Abort, StoreError, Tx, runs};

/// The run of a dag: its tasks ask for their slots one by one. It has no input, and its first steps compute nothing, so that
/// its first tick is made here.
pub(super) fn begin(tx: &mut Tx<'_>, book: &Book, wish: &Start) -> Result<Started, Abort> {
    let Some(compiled) = wish.job.graph.clone() else {
        return Err(Abort(StoreError::Unreadable {
            table: "definitions",
            key: wish.name.to_string(),
            cause: "it was not compiled".to_owned(),
        }));
    };
    if let Some(known) = runs::by_id(tx, wish.run)? {
        return Ok(Started::Ready { run: known.id });
    }
    let first = fold::Wish {
        id: wish.run,
        definition: wish.name.clone(),
        version: wish.job.version,
        trigger: wish.trigger.clone(),
        input: Arc::default(),
        header: GraphHeader {
            tier: compiled.document.fairness.tier,
            ..GraphHeader::default()
        },
        node: wish.node.clone(),
    };
    let begun = fold::begin_without_input(compiled, &first, tx.now().wall, wish.rules);
    graph::begin(tx, book, &begun)?;
    Ok(Started::Ready { run: wish.run })
}
