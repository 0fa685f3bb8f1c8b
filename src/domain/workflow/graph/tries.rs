//! Attempts that fail, pokes that are not met, and times that are over.

use std::sync::Arc;

use serde_json::{Value, json};

use super::document::RetryDoc;
use super::key::Key;
use super::kinds::StepKind;
use super::moves::Moving;
use super::reach::error_of;
use super::state::WaitsFor;
use super::tick::{StepError, Taken, View};
use crate::domain::workflow::run::{StepPhase, StepState};
use crate::words::ids::{self, WorkId};
use crate::words::names::StepRef;

/// Why the steps of a scatter are ended whose total time is over.
pub(super) const SCATTER_OVER: &str = "the total time of its scatter is over";

impl RetryDoc {
    /// The wait before an attempt of this number (2 is the first retry): `initial * coefficient^(number - 2)`, at most
    /// `max_interval`, longer or shorter by up to the share `jitter`. `chance` is from 0 to 1.
    pub fn delay_before(&self, attempt: u32, chance: f64) -> u64 {
        let exponent = i32::try_from(attempt.saturating_sub(2)).unwrap_or(i32::MAX);
        #[expect(
            clippy::cast_precision_loss,
            reason = "ten years of milliseconds are whole in an f64"
        )]
        let (initial, most) = (self.initial_interval.0 as f64, self.max_interval.0 as f64);
        let grown = (initial * self.coefficient.powi(exponent)).min(most);
        let moved = grown * (1.0 + self.jitter * (2.0 * chance - 1.0));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "not negative, and the cast saturates"
        )]
        let delay = moved.max(0.0).round() as u64;
        delay
    }
}

/// The same for the same attempt, so that a tick can be repeated: from 0 to 1.
fn chance_of(run: &str, step: &StepRef, attempt: u32) -> f64 {
    let digest = ids::digest_of_parts(&[run, step.as_str(), &attempt.to_string()]);
    let number = u32::from_be_bytes([digest[0], digest[1], digest[2], digest[3]]);
    f64::from(number) / f64::from(u32::MAX)
}

impl<V: View> Moving<'_, V> {
    /// An attempt failed: another follows by the step's policy, or the step has failed.
    pub(super) fn attempt_failed(
        &mut self,
        key: &Key,
        mut state: StepState,
        error: &StepError,
    ) -> Result<(), V::Error> {
        if self.ending().is_some() || self.around_is_over(key)? {
            // The run, or the scatter around it, is being ended: nothing new begins.
            return self.fail(key, state, error);
        }
        let graph = self.graph;
        let node = graph.node(key.node);
        // What is being ended is not tried again.
        let goes_on = self.ending().is_none();
        let allowed = |retry: &&RetryDoc| {
            goes_on
                && error.retryable
                && state.attempt < retry.max_attempts
                && !retry.non_retryable.contains(&error.code)
        };
        let Some(retry) = node.doc.retry.as_ref().filter(allowed) else {
            return self.fail(key, state, error);
        };
        if let Some(retry_if) = &node.retry_if {
            let mut scope = self.scope([retry_if], key)?;
            scope.set("error", &error.as_value());
            match retry_if.evaluate_bool(&scope) {
                Ok(true) => {}
                Ok(false) => return self.fail(key, state, error),
                Err(fault) => {
                    let text = format!("{}; and retry_if: {}", error.message, fault.message);
                    return self.fail(key, state, &StepError::new(error_of(&fault).code, text));
                }
            }
        }
        state.attempt += 1;
        state.deaths = 0;
        let chance = chance_of(&self.run.id.to_string(), &state.step, state.attempt);
        let delay = retry.delay_before(state.attempt, chance);
        let delay = delay.max(error.retry_after_ms.unwrap_or(0));
        if delay == 0 {
            return self.make_ready(key, state);
        }
        let phase = StepPhase::Retrying {
            due: self.now.plus(delay),
            reason: error.message.clone(),
            refused: None,
        };
        self.put(key, StepState { phase, ..state })
    }

    /// A poke of a sensor was not met: it is asked again, or its time is over.
    pub(super) fn not_met(&mut self, key: &Key, mut state: StepState) -> Result<(), V::Error> {
        let graph = self.graph;
        let StepKind::Sensor(sensor) = &graph.node(key.node).doc.kind else {
            return self.attempt_failed(key, state, &StepError::new("sensor.not_met", "it was not met"));
        };
        let now = self.now;
        let mut ending = self.ending().map(|ending| ending.reason.clone());
        if ending.is_none() && self.around_is_over(key)? {
            ending = Some(SCATTER_OVER.to_owned());
        }
        if let Some(reason) = ending {
            let ended_at = now;
            return self.end(key, state, StepPhase::Cancelled { ended_at, reason });
        }
        let mut first = now;
        if let Some(graph) = state.graph.as_mut() {
            first = *graph.first_poke.get_or_insert(now);
            graph.pokes += 1;
        }
        let due = now.plus(sensor.poke_interval.0);
        if due > first.plus(sensor.poke_timeout.0) {
            let text = format!("it was not met within {}", sensor.poke_timeout);
            if let Some(graph) = state.graph.as_mut() {
                graph.first_poke = None;
            }
            return self.attempt_failed(key, state, &StepError::new("sensor.timeout", text));
        }
        let phase = StepPhase::Waiting {
            since: now,
            on: WaitsFor::Poke { due },
        };
        self.put(key, StepState { phase, ..state })
    }

    /// Work was routed: the step waits until it is done, unless it is being ended.
    pub(super) fn routed(&mut self, key: &Key, state: StepState, work: WorkId) -> Result<(), V::Error> {
        let mut ending = self.ending().map(|ending| ending.reason.clone());
        if ending.is_none() && self.around_is_over(key)? {
            ending = Some(SCATTER_OVER.to_owned());
        }
        match ending {
            Some(reason) => {
                let ended_at = self.now;
                self.end(key, state, StepPhase::Cancelled { ended_at, reason })
            }
            None => self.wait(key, state, WaitsFor::Work { work }),
        }
    }

    /// The work of an attempt is over. It may be so before its worker has told that it was routed.
    pub(super) fn work_over(
        &mut self,
        step: &StepRef,
        attempt: u32,
        end: &Result<Arc<Value>, StepError>,
    ) -> Result<Taken, V::Error> {
        let Some((key, state)) = self.instance(step)? else {
            return Ok(Taken::Stale);
        };
        let is_running = matches!(state.phase, StepPhase::Running { .. });
        let awaits = matches!(
            state.phase,
            StepPhase::Waiting {
                on: WaitsFor::Work { .. },
                ..
            }
        );
        if state.attempt != attempt || !(is_running || awaits) {
            return Ok(Taken::Stale);
        }
        if is_running {
            self.stop_attempt(step);
        }
        match end {
            Ok(output) => self.succeed(&key, state, Some(Arc::clone(output)))?,
            Err(error) => {
                let phase = StepPhase::Ready { since: self.now };
                self.attempt_failed(&key, StepState { phase, ..state }, error)?;
            }
        }
        Ok(Taken::Yes)
    }

    /// The timer of a step: whatever of its limits has passed.
    pub(super) fn due(&mut self, step: &StepRef) -> Result<Taken, V::Error> {
        let Some(key) = Key::of_name(self.graph, step) else {
            return Ok(Taken::Stale);
        };
        let Some(state) = self.step_of(&key)? else {
            return Ok(Taken::Stale);
        };
        let Some(graph) = state.graph.clone().filter(|_| !state.phase.is_terminal()) else {
            return Ok(Taken::Stale);
        };
        let now = self.now;
        if graph.total_at.is_some_and(|at| at <= now) {
            let why = "its total time is over";
            if matches!(state.phase, StepPhase::Running { .. }) && self.is_process(&key) {
                let mut state = state;
                if let Some(graph) = state.graph.as_mut() {
                    graph.total_at = None;
                    graph.over = Some(why.to_owned());
                }
                self.stop_attempt(step);
                self.put(&key, state)?;
                return Ok(Taken::Yes);
            }
            if matches!(
                state.phase,
                StepPhase::Waiting {
                    on: WaitsFor::Branches(_),
                    ..
                }
            ) {
                self.end_branches(&key, state, why)?;
                return Ok(Taken::Yes);
            }
            let error = StepError::new("timeout.total", why).for_good();
            self.time_out(&key, state, &error)?;
            return Ok(Taken::Yes);
        }
        if let StepPhase::Waiting { on, .. } = state.phase.clone() {
            self.waited(&key, state, &on)?;
        } else if matches!(state.phase, StepPhase::Retrying { due, .. } if due <= now) {
            self.make_ready(&key, state)?;
        } else if matches!(state.phase, StepPhase::Ready { .. } | StepPhase::Queued { .. })
            && super::timers::queue_limit(&state, self.graph.node(key.node)).is_some_and(|at| at <= now)
        {
            let why = graph
                .refused
                .unwrap_or_else(|| "it did not start in time".to_owned());
            self.time_out(&key, state, &StepError::new("timeout.queue", why))?;
        } else if matches!(state.phase, StepPhase::Running { started_at, .. }
            if graph.attempt_ms.is_some_and(|limit| started_at.plus(limit) <= now))
        {
            let error = StepError::new("timeout.attempt", "the attempt took too long");
            self.time_out(&key, state, &error)?;
        } else {
            // It is early, or another limit counts now: the timer is set anew.
            self.put(&key, state)?;
        }
        Ok(Taken::Yes)
    }

    fn waited(&mut self, key: &Key, state: StepState, on: &WaitsFor) -> Result<(), V::Error> {
        let now = self.now;
        match on {
            WaitsFor::Timer { due } if *due <= now => {
                let output = json!({"due": due.to_string()});
                self.succeed(key, state, Some(Arc::new(output)))
            }
            WaitsFor::Poke { due } if *due <= now => self.make_ready(key, state),
            WaitsFor::Checkpoint if self.patience_is_over(key, &state) => {
                let error = StepError::new("checkpoint.timeout", "nobody resumed it in time").for_good();
                self.fail(key, state, &error)
            }
            WaitsFor::Approval if self.patience_is_over(key, &state) => {
                let error = StepError::new("approval.timeout", "nobody decided in time").for_good();
                self.fail(key, state, &error)
            }
            WaitsFor::Work { .. } if self.patience_is_over(key, &state) => {
                let error = StepError::new("route.timeout", "the work was not done in time");
                self.attempt_failed(key, state, &error)
            }
            WaitsFor::Timer { .. }
            | WaitsFor::Work { .. }
            | WaitsFor::Poke { .. }
            | WaitsFor::Checkpoint
            | WaitsFor::Approval
            | WaitsFor::Child { .. }
            | WaitsFor::Branches(_) => self.put(key, state),
        }
    }

    /// True for a step whose execution is a process of a daemon: it is surely ended before the step is.
    fn is_process(&self, key: &Key) -> bool {
        matches!(
            self.graph.node(key.node).doc.kind,
            StepKind::Command(_) | StepKind::Sensor(_)
        )
    }

    fn patience_is_over(&self, key: &Key, state: &StepState) -> bool {
        let patience = super::timers::patience(self.graph.node(key.node));
        match (&state.phase, patience) {
            (StepPhase::Waiting { since, .. }, Some(patience)) => since.plus(patience.0) <= self.now,
            _ => false,
        }
    }

    /// The total time of a scatter is over: what runs in its branches is stopped, all else in them is cancelled, and it fails
    /// when the last of them has ended.
    fn end_branches(&mut self, scatter: &Key, mut state: StepState, why: &str) -> Result<(), V::Error> {
        if let Some(graph) = state.graph.as_mut() {
            graph.total_at = None;
            graph.over = Some(why.to_owned());
        }
        self.put(scatter, state)?;
        for inner in self.open_now()? {
            let key = Key::of_name(self.graph, &inner.step);
            let Some(key) = key.filter(|key| key.is_in(self.graph, scatter)) else {
                continue;
            };
            if matches!(
                &inner.phase,
                StepPhase::Waiting {
                    on: WaitsFor::Branches(branches),
                    ..
                } if branches.open() > 0
            ) {
                // It ends when its own branches have.
                let mut over = inner;
                if let Some(graph) = over.graph.as_mut() {
                    graph.total_at = None;
                    graph.over = Some(SCATTER_OVER.to_owned());
                }
                self.put(&key, over)?;
                continue;
            }
            self.end_open(&key, inner, SCATTER_OVER)?;
        }
        Ok(())
    }

    /// True when a scatter around this step is being ended, or has ended.
    pub(super) fn around_is_over(&mut self, key: &Key) -> Result<bool, V::Error> {
        let mut inner = key.clone();
        while let Some((scatter, _)) = inner.around(self.graph) {
            let state = self.step_of(&scatter)?;
            let is_over = state.is_some_and(|state| {
                state.phase.is_terminal() || state.graph.is_some_and(|graph| graph.over.is_some())
            });
            if is_over {
                return Ok(true);
            }
            inner = scatter;
        }
        Ok(false)
    }

    /// A limit has passed: what runs is ended, what waits in a slot pool is taken back.
    fn time_out(&mut self, key: &Key, state: StepState, error: &StepError) -> Result<(), V::Error> {
        if let StepPhase::Running { .. } = state.phase {
            self.stop_attempt(&state.step);
        } else if let StepPhase::Queued { entry, .. } = state.phase {
            self.take_back(&state.step, entry);
        } else if let StepPhase::Waiting {
            on: WaitsFor::Child { run },
            ..
        } = state.phase
        {
            self.leave_child(run);
        }
        let state = StepState {
            phase: StepPhase::Ready { since: self.now },
            ..state
        };
        self.attempt_failed(key, state, error)
    }
}
