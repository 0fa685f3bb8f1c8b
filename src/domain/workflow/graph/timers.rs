//! When a step is looked at again if nothing happens before.

use super::build::Node;
use super::kinds::StepKind;
use super::span::Span;
use super::state::WaitsFor;
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::time::Millis;

fn after(since: Millis, span: Option<Span>) -> Option<Millis> {
    span.map(|span| since.plus(span.0))
}

/// How long a step of this type waits for somebody.
pub(super) fn patience(node: &Node) -> Option<Span> {
    if let StepKind::Checkpoint(checkpoint) = &node.doc.kind {
        return checkpoint.timeout;
    }
    if let StepKind::Approval(approval) = &node.doc.kind {
        return approval.timeout;
    }
    if let StepKind::Route(route) = &node.doc.kind {
        return route.timeout;
    }
    None
}

/// Until when a step that is ready or queued may wait for a start of its attempt. In a queue its entry keeps the limit of
/// the slot pool; while it is not let in, that limit counts from the first refusal, which is when it became ready.
pub(super) fn queue_limit(state: &StepState, node: &Node) -> Option<Millis> {
    let graph = state.graph.as_ref()?;
    let since = graph.queued_since.unwrap_or(graph.reached_at);
    let refused = graph
        .refused
        .as_ref()
        .filter(|_| matches!(state.phase, StepPhase::Ready { .. }));
    let patience = refused.and(node.doc.slots.as_ref());
    let of_slots = patience.map(|demand| since.plus(demand.queue_timeout_ms));
    [after(since, node.doc.timeouts.queue), of_slots]
        .into_iter()
        .flatten()
        .min()
}

/// Sets the timer of a graph's step by its phase: the earliest of its limits.
pub fn set(state: &mut StepState, node: &Node) {
    let timer = due(state, node);
    if let Some(graph) = state.graph.as_mut() {
        graph.timer = timer;
    }
}

fn due(state: &StepState, node: &Node) -> Option<Millis> {
    let graph = state.graph.as_ref()?;
    if state.phase.is_terminal() {
        return None;
    }
    let of_phase = match &state.phase {
        StepPhase::Waiting { since, on } => match on {
            WaitsFor::Timer { due } | WaitsFor::Poke { due } => Some(*due),
            WaitsFor::Checkpoint | WaitsFor::Approval | WaitsFor::Work { .. } => {
                after(*since, patience(node))
            }
            WaitsFor::Child { .. } | WaitsFor::Branches(_) => None,
        },
        StepPhase::Retrying { due, .. } => Some(*due),
        StepPhase::Ready { .. } | StepPhase::Queued { .. } => queue_limit(state, node),
        StepPhase::Running { started_at, .. } => graph.attempt_ms.map(|limit| started_at.plus(limit)),
        StepPhase::Held { .. }
        | StepPhase::Succeeded { .. }
        | StepPhase::Failed { .. }
        | StepPhase::Skipped { .. }
        | StepPhase::Cancelled { .. }
        | StepPhase::UpstreamFailed { .. } => None,
    };
    [of_phase, graph.total_at].into_iter().flatten().min()
}
