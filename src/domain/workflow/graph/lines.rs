//! Where a step waits for somebody who executes it.

use super::build::Node;
use super::kinds::StepKind;
use super::state::{Line, TaskPlace};
use crate::domain::workflow::run::{Run, StepPhase, StepState};

/// The queue of steps that this program executes itself, without a process. No queue of a definition has this name.
pub const INTERNAL_QUEUE: &str = "!http";

/// The queue of steps that need a process and no slots, and that any daemon may take.
pub const PROCESS_QUEUE: &str = "!command";

/// The line of a ready step that needs no slots; its number in a queue comes from outside.
pub fn line_of<E>(run: &Run, node: &Node, number: impl FnOnce() -> Result<u64, E>) -> Result<Line, E> {
    let is_process = node.doc.kind.command().is_some();
    if is_process && run.node.is_some() {
        // Only one daemon may take it, so nobody's turn is in question.
        return Ok(Line::Processes);
    }
    let header = run.graph.as_deref().cloned().unwrap_or_default();
    let queue = if let StepKind::Task(task) = &node.doc.kind {
        task.queue.clone()
    } else if is_process {
        PROCESS_QUEUE.to_owned()
    } else {
        INTERNAL_QUEUE.to_owned()
    };
    // Runs that name no share of their own share with their definition.
    let share = Some(header.fairness_key).filter(|share| !share.is_empty());
    Ok(Line::Tasks(TaskPlace {
        queue,
        tier: header.tier,
        partition: share.unwrap_or_else(|| run.definition.to_string()),
        number: number()?,
    }))
}

/// The step in that line; given back later, it stands there again.
#[must_use]
pub fn stand_in(step: &StepState, line: Line) -> StepState {
    let mut step = step.clone();
    if let Some(graph) = step.graph.as_mut() {
        graph.line = Some(line.clone());
        graph.home = Some(line);
    }
    step
}

/// A step that is not ready stands in no line.
#[must_use]
pub fn stand_aside(step: &StepState) -> StepState {
    let mut step = step.clone();
    if let Some(graph) = step.graph.as_mut()
        && !matches!(step.phase, StepPhase::Ready { .. })
    {
        graph.line = None;
    }
    step
}
