//! A run that is kept in maps: of a dry run, and of tests.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;

use serde_json::Value;

use super::build::Graph;
use super::key::ValueName;
use super::tick::{Changes, Fact, FreshRun, View, tick};
use crate::domain::workflow::run::{Run, StepState};
use crate::words::names::StepRef;
use crate::words::time::Millis;

/// The rows of a run.
#[derive(Debug, Clone, PartialEq)]
pub struct Memory {
    /// The header.
    pub run: Run,
    /// The steps that were reached.
    pub steps: BTreeMap<StepRef, StepState>,
    /// The values.
    pub values: BTreeMap<ValueName, Arc<Value>>,
}

impl View for &Memory {
    type Error = Infallible;

    fn step(&mut self, name: &StepRef) -> Result<Option<StepState>, Infallible> {
        Ok(self.steps.get(name).cloned())
    }

    fn value(&mut self, name: &ValueName) -> Result<Option<Arc<Value>>, Infallible> {
        Ok(self.values.get(name).cloned())
    }

    fn open_steps(&mut self) -> Result<Vec<StepState>, Infallible> {
        let open = self.steps.values().filter(|step| step.is_open());
        Ok(open.cloned().collect())
    }
}

impl Memory {
    /// A run that has not begun, with this input.
    pub fn new(run: Run, input: Value) -> Memory {
        Memory {
            run,
            steps: BTreeMap::new(),
            values: BTreeMap::from([(ValueName::Input, Arc::new(input))]),
        }
    }

    /// What these facts change.
    pub fn tick(&self, graph: &Graph, facts: &[Fact], now: Millis, fresh: FreshRun<'_>) -> Changes {
        match tick(graph, &self.run, facts, now, &mut &*self, fresh) {
            Ok(changes) => changes,
            Err(never) => match never {},
        }
    }

    /// Writes it.
    pub fn apply(&mut self, changes: &Changes) {
        self.run = changes.run.clone();
        for (_, step) in &changes.steps {
            self.steps.insert(step.step.clone(), step.clone());
        }
        let values = changes.values.iter();
        self.values
            .extend(values.map(|(name, value)| (name.clone(), Arc::clone(value))));
    }
}
