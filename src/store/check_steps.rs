//! The indexes that follow from the steps of all runs, computed anew.

use std::collections::{BTreeMap, BTreeSet};

use super::check::{Findings, compare, every};
use super::error::StoreError;
use super::keys::Key;
use super::tables as all;
use super::tx::ReadTx;
use super::{graphs, runs};
use crate::domain::workflow::graph::state::Line;
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::ids::{RunId, TenantId};
use crate::words::names::{JobName, StepRef};

type Keys = BTreeSet<Vec<u8>>;

/// The keys that the indexes of steps must have.
#[derive(Default)]
struct StepIndexes {
    ready: Keys,
    retrying: Keys,
    due: Keys,
    timers: Keys,
    tasks: Keys,
    checkpoints: Keys,
    /// Runs of jobs whose step has not ended.
    moving: BTreeSet<RunId>,
}

/// What the check of the headers of runs has found.
pub(super) struct Headers {
    /// All runs, with their definitions.
    pub(super) known: BTreeMap<RunId, JobName>,
    /// Runs that went and whose rows follow.
    pub(super) removed: BTreeSet<RunId>,
    /// Runs of jobs that have not ended.
    pub(super) alive_jobs: BTreeSet<RunId>,
    /// Timers of runs themselves.
    pub(super) timers: Keys,
}

/// Compares the steps with the headers of their runs, and with their indexes.
pub(super) fn check_steps(
    tx: &mut ReadTx,
    headers: Headers,
    findings: &mut Findings,
) -> Result<(), StoreError> {
    let mut indexes = StepIndexes {
        timers: headers.timers,
        ..StepIndexes::default()
    };
    every(tx, &all::STEPS, |(tenant, id, step), state| {
        let Some(job) = headers.known.get(&id) else {
            if headers.removed.contains(&id) {
                return;
            }
            findings.push(format!("steps: {id} has a step and no run"));
            return;
        };
        indexes.note((tenant, id, step), job, &state);
    })?;
    for id in headers.alive_jobs.symmetric_difference(&indexes.moving) {
        findings.push(format!(
            "runs: {id} and its steps disagree about whether it has ended"
        ));
    }
    compare(tx, &all::READY_STEPS, indexes.ready, findings)?;
    compare(tx, &all::TIMERS, indexes.timers, findings)?;
    compare(tx, &all::TASKS, indexes.tasks, findings)?;
    compare(tx, &all::CHECKPOINTS, indexes.checkpoints, findings)?;
    compare(tx, &all::RETRYING, indexes.retrying, findings)?;
    compare(tx, &all::RETRY_DUE, indexes.due, findings)
}

impl StepIndexes {
    fn note(&mut self, (tenant, id, step): (TenantId, RunId, StepRef), job: &JobName, state: &StepState) {
        if state.graph.is_some() {
            self.note_of_graph((tenant, id, step), state);
            return;
        }
        let (again, at) = runs::retry_index_of(state);
        if again {
            self.retrying
                .insert((tenant, job.clone(), id, step.clone()).encode());
        }
        self.due
            .extend(at.map(|at| (tenant, at, id, step.clone()).encode()));
        if matches!(state.phase, StepPhase::Ready { .. }) {
            self.ready.insert((tenant, id, step).encode());
        }
        if matches!(
            state.phase,
            StepPhase::Ready { .. }
                | StepPhase::Queued { .. }
                | StepPhase::Running { .. }
                | StepPhase::Retrying { .. }
        ) {
            self.moving.insert(id);
        }
    }

    fn note_of_graph(&mut self, (tenant, id, step): (TenantId, RunId, StepRef), state: &StepState) {
        let Some(graph) = &state.graph else { return };
        let timer = graph.timer.map(|at| (tenant, at, id, step.to_string()).encode());
        self.timers.extend(timer);
        if graph.line == Some(Line::Processes) {
            self.ready.insert((tenant, id, step.clone()).encode());
        }
        if let Some(Line::Tasks(place)) = &graph.line {
            self.tasks.insert(graphs::task_key(place).encode());
        }
        if graphs::is_open_checkpoint(state) {
            self.checkpoints.insert((tenant, id, step).encode());
        }
    }
}
