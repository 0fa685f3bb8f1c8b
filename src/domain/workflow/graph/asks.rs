//! What people ask of a run: to resume or decide a step, to hold the run, to end it; and its deadline.

use std::sync::Arc;

use serde_json::{Value, json};

use super::key::{Key, ValueName};
use super::kinds::{OnReject, StepKind};
use super::moves::Moving;
use super::state::{EarlyEnd, EarlyEndKind, Hold, WaitsFor};
use super::tick::{StepError, Taken, View};
use crate::domain::workflow::run::{RunEvent, StepPhase, StepState};
use crate::words::names::StepRef;

impl<V: View> Moving<'_, V> {
    pub(super) fn resume(&mut self, step: &StepRef, value: &Arc<Value>, by: &str) -> Result<Taken, V::Error> {
        match self.instance(step)? {
            Some((key, state))
                if matches!(
                    state.phase,
                    StepPhase::Waiting {
                        on: WaitsFor::Checkpoint,
                        ..
                    }
                ) =>
            {
                self.note(Some(step), "resumed", by);
                self.succeed(&key, state, Some(Arc::clone(value)))?;
                Ok(Taken::Yes)
            }
            found => Ok(not_waiting(found.map(|(_, state)| state), "checkpoint")),
        }
    }

    pub(super) fn decide(
        &mut self,
        step: &StepRef,
        approve: bool,
        note: &str,
        by: &str,
    ) -> Result<Taken, V::Error> {
        let found = self.instance(step)?;
        let Some((key, state)) = found.clone().filter(|(_, state)| {
            matches!(
                state.phase,
                StepPhase::Waiting {
                    on: WaitsFor::Approval,
                    ..
                }
            )
        }) else {
            return Ok(not_waiting(found.map(|(_, state)| state), "approval"));
        };
        let decision = if approve { "approved" } else { "rejected" };
        self.note(Some(step), decision, by);
        let output = json!({"decision": decision, "by": by, "note": note, "at": self.now.to_string()});
        if approve {
            self.succeed(&key, state, Some(Arc::new(output)))?;
            return Ok(Taken::Yes);
        }
        self.keep(ValueName::Output(step.clone()), Arc::new(output));
        let reason = if note.is_empty() {
            format!("rejected by {by}")
        } else {
            format!("rejected by {by}: {note}")
        };
        let on_reject = if let StepKind::Approval(approval) = &self.graph.node(key.node).doc.kind {
            approval.on_reject
        } else {
            OnReject::Fail
        };
        match on_reject {
            OnReject::Fail => self.fail(&key, state, &StepError::new("approval.rejected", reason))?,
            OnReject::Skip => {
                let ended_at = self.now;
                self.end(&key, state, StepPhase::Skipped { ended_at, reason })?;
            }
        }
        Ok(Taken::Yes)
    }

    pub(super) fn deadline(&mut self) -> Result<Taken, V::Error> {
        let due = self.run.graph.as_ref().and_then(|header| header.deadline);
        if due.is_none_or(|due| due > self.now) || self.ending().is_some() {
            return Ok(Taken::Stale);
        }
        self.end_early(EarlyEndKind::TimedOut, "the run timeout has passed")?;
        Ok(Taken::Yes)
    }

    pub(super) fn cancel(&mut self, by: &str) -> Result<Taken, V::Error> {
        if self.ending().is_none() {
            self.note(None, "cancelling", by);
            self.end_early(EarlyEndKind::Cancelled, &format!("cancelled by {by}"))?;
        }
        Ok(Taken::Yes)
    }

    /// Ends everything that has not ended: what runs is asked to, the rest ends now.
    pub(super) fn end_early(&mut self, how: EarlyEndKind, reason: &str) -> Result<(), V::Error> {
        self.header().ending = Some(EarlyEnd {
            how,
            reason: reason.to_owned(),
        });
        for state in self.open_now()? {
            let Some(key) = Key::of_name(self.graph, &state.step) else {
                continue;
            };
            self.end_open(&key, state, reason)?;
        }
        self.dispatch.clear();
        Ok(())
    }

    /// Ends a step that has not ended: what runs is asked to, all else ends now.
    pub(super) fn end_open(&mut self, key: &Key, state: StepState, reason: &str) -> Result<(), V::Error> {
        if matches!(state.phase, StepPhase::Running { .. }) {
            self.stop.push(state.step);
            return Ok(());
        }
        if let StepPhase::Waiting {
            on: WaitsFor::Child { run },
            ..
        } = &state.phase
        {
            self.orphans.push(*run);
        }
        let phase = StepPhase::Cancelled {
            ended_at: self.now,
            reason: reason.to_owned(),
        };
        self.end(key, state, phase)
    }

    pub(super) fn pause(&mut self, by: &str, reason: &str) -> Result<Taken, V::Error> {
        if self.ending().is_some() {
            return Ok(Taken::Refused("the run is being ended".to_owned()));
        }
        if self.hold().is_some() {
            return Ok(Taken::Yes);
        }
        let Ok(state) = self.run.state.next(&RunEvent::Paused, self.now) else {
            return Ok(Taken::Refused(format!("the run is {}", self.run.state.word())));
        };
        self.run.state = state;
        self.note(None, "paused", by);
        let since = self.now;
        self.header().hold = Some(Hold {
            by: by.to_owned(),
            reason: reason.to_owned(),
            since,
            unfollowed: 0,
        });
        for state in self.open_now()? {
            let Some(key) = Key::of_name(self.graph, &state.step) else {
                continue;
            };
            if let StepPhase::Queued { entry, .. } = state.phase {
                self.retire.push((state.step.clone(), entry));
            }
            if matches!(state.phase, StepPhase::Ready { .. } | StepPhase::Queued { .. }) {
                let phase = StepPhase::Held { since };
                self.put(&key, StepState { phase, ..state })?;
            }
        }
        self.dispatch.clear();
        Ok(Taken::Yes)
    }

    pub(super) fn unpause(&mut self, by: &str) -> Result<Taken, V::Error> {
        if self.header().hold.take().is_none() {
            return Ok(Taken::Refused("the run is not paused".to_owned()));
        }
        if let Ok(state) = self.run.state.next(&RunEvent::Resumed, self.now) {
            self.run.state = state;
        }
        self.note(None, "resumed", by);
        for state in self.open_now()? {
            let Some(key) = Key::of_name(self.graph, &state.step) else {
                continue;
            };
            let due = matches!(
                state.phase,
                StepPhase::Retrying { due, .. }
                    | StepPhase::Waiting {
                        on: WaitsFor::Poke { due },
                        ..
                    } if due <= self.now
            );
            if due || matches!(state.phase, StepPhase::Held { .. }) {
                self.make_ready(&key, state)?;
            }
        }
        let unfollowed = self.take_unfollowed()?;
        self.ended.extend(unfollowed);
        Ok(Taken::Yes)
    }
}

fn not_waiting(state: Option<StepState>, what: &str) -> Taken {
    Taken::Refused(match state {
        Some(state) => format!(
            "step {} is {} and waits for no {what}",
            state.step,
            state.phase.word()
        ),
        None => "the run has not reached that step".to_owned(),
    })
}
