//! What of a document decides what would run: the part that a digest is made of.

use super::document::{Document, StepDoc};
use super::kinds::{Probe, StepKind};
use crate::domain::workflow::definition::CommandStep;

impl Document {
    /// The same without texts for people, labels, and how much is kept of what a run leaves.
    #[must_use]
    pub fn launched(&self) -> Document {
        let mut launched = self.clone();
        launched.title = String::new();
        launched.description = String::new();
        launched.labels.clear();
        launched.retention = None;
        launched.steps.iter_mut().for_each(strip);
        launched
    }
}

fn strip(step: &mut StepDoc) {
    step.title = String::new();
    if let Some(command) = command_of(&mut step.kind) {
        command.save_limit = 0;
    }
    if let StepKind::Scatter(scatter) = &mut step.kind {
        scatter.body.steps.iter_mut().for_each(strip);
    }
}

fn command_of(kind: &mut StepKind) -> Option<&mut CommandStep> {
    match kind {
        StepKind::Command(command) => Some(command),
        StepKind::Sensor(sensor) => match &mut sensor.probe {
            Probe::Command(command) => Some(command),
            Probe::Http(_) => None,
        },
        StepKind::Dataflow(_)
        | StepKind::Switch(_)
        | StepKind::Wait(_)
        | StepKind::Scatter(_)
        | StepKind::Gather(_)
        | StepKind::Subworkflow(_)
        | StepKind::Checkpoint(_)
        | StepKind::Approval(_)
        | StepKind::Fail(_)
        | StepKind::Succeed(_)
        | StepKind::Http(_)
        | StepKind::Task(_)
        | StepKind::Route(_) => None,
    }
}
