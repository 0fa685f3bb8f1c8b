//! What a run that tries another one again begins with: read and computed on a snapshot, before the change that begins it.

use std::sync::Arc;

use super::fold::{self, Desk, Wish};
use super::graph::Begin;
use crate::domain::workflow::graph::key_limit::{KeyPlace, KeyStand};
use crate::domain::workflow::graph::state::GraphHeader;
use crate::domain::workflow::run::Trigger;
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::RunId;
use crate::words::names::StepRef;

/// Why there is nothing to begin.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NotTried {
    /// There is no such run of a graph.
    NotFound,
    /// It cannot be, and why.
    Refused(String),
}

/// From a step on, or what failed.
pub fn prepare(
    rows: &mut impl Rows,
    desk: &Desk<'_>,
    of: RunId,
    from: Option<&StepRef>,
    principal: &str,
) -> Result<Result<Begin, NotTried>, StoreError> {
    let Some(run) = runs::by_id(rows, of)?.filter(|run| run.graph.is_some()) else {
        return Ok(Err(NotTried::NotFound));
    };
    if !run.state.is_terminal() {
        let why = format!(
            "the run is {}; only one that has ended is tried again",
            run.state.word()
        );
        return Ok(Err(NotTried::Refused(why)));
    }
    let header = run.graph.as_deref().cloned().unwrap_or_default();
    let wish = Wish {
        id: RunId::fresh(),
        definition: run.definition.clone(),
        version: run.version,
        trigger: Trigger::RetryFrom {
            principal: principal.to_owned(),
            of,
            step: from.cloned(),
        },
        input: Arc::default(),
        header: GraphHeader {
            tier: header.tier,
            fairness_key: header.fairness_key,
            labels: header.labels,
            // It counts with the runs of the same version and input.
            key_place: header.key_place.map(|place| KeyPlace {
                stand: KeyStand::Holds,
                ..place
            }),
            ..GraphHeader::default()
        },
        node: run.node.clone(),
    };
    let begun = fold::begin_again(rows, desk, &run, from, wish)?;
    Ok(begun.map_err(|refusal| NotTried::Refused(refusal.to_string())))
}
