//! The stored row of one report that is owed: what happened, and where its delivery stands.

use serde::{Deserialize, Serialize};

use super::kind::{ReportKind, ReportTarget};
use crate::domain::lateness::SlaCheck;
use crate::domain::workflow::attempt::Outcome;
use crate::words::ids::{EffectId, RunId};
use crate::words::limits;
use crate::words::names::{JobName, NodeName};
use crate::words::time::Millis;

/// One report to one target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Effect {
    /// Its row.
    pub seq: u64,
    /// What the receiver tells repeated deliveries by: the same cause has the same id.
    pub id: EffectId,
    /// What is reported.
    pub kind: ReportKind,
    /// How.
    pub target: ReportTarget,
    /// The job; the configuration in force says where its reports go.
    pub job: JobName,
    /// The run, if there is one.
    pub run: Option<RunId>,
    /// When its cause was written.
    pub created_at: Millis,
    /// What happened. Outputs are dropped when the delivery is decided.
    pub facts: Facts,
    /// Where the delivery stands.
    pub state: EffectState,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Facts {
    /// The attempt, if one is at issue.
    pub attempt: Option<u32>,
    /// How it ended.
    pub outcome: Option<Outcome>,
    /// Why.
    pub reason: Option<String>,
    /// Its code.
    pub exit_code: Option<i32>,
    /// When it started.
    pub started_at: Option<Millis>,
    /// When it ended.
    pub ended_at: Option<Millis>,
    /// The due moment that its run stands for.
    pub scheduled_at: Option<Millis>,
    /// Where it ran.
    pub node: Option<NodeName>,
    /// The end of what it printed.
    pub tails: Tails,
    /// The limit that was passed, for a late job.
    pub late: Option<LateFacts>,
}

/// The end of what a command printed: captured streams only, secrets masked.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Tails {
    /// Of standard output.
    pub stdout: String,
    /// Of standard error.
    pub stderr: String,
}

/// A passed limit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LateFacts {
    /// Which.
    pub check: SlaCheck,
    /// The limit in milliseconds.
    pub limit_ms: u64,
    /// What was seen, in milliseconds.
    pub observed_ms: u64,
    /// The newest success of the job.
    pub last_success: Option<Millis>,
}

/// Where a delivery stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum EffectState {
    /// It is owed. Exits: itself, delivered, dead.
    Waiting {
        /// When it is tried (again).
        due_at: Millis,
        /// Tries so far.
        tries: u32,
        /// Why the last one failed.
        last_error: Option<String>,
    },
    /// The receiver has it. No exit.
    Delivered {
        /// When.
        at: Millis,
        /// Tries it took.
        tries: u32,
    },
    /// A dead letter: given up. No exit.
    Dead {
        /// When.
        at: Millis,
        /// Tries before.
        tries: u32,
        /// Why.
        reason: String,
    },
}

impl EffectState {
    /// The word on the wire.
    pub fn word(&self) -> &'static str {
        match self {
            EffectState::Waiting { .. } => "waiting",
            EffectState::Delivered { .. } => "delivered",
            EffectState::Dead { .. } => "dead",
        }
    }
}

/// What became of one try.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Delivery {
    /// The receiver has it.
    Done,
    /// Not now: it is tried again.
    Failed(String),
    /// Never: no further try can help.
    Refused(String),
}

/// The wait after so many failed tries, at most 5 minutes: for a webhook 1 s, doubling; for a command, which has few tries
/// and may have done half of its work, 1 s, eight times as long each time.
pub fn backoff_ms(target: ReportTarget, tries: u32) -> u64 {
    let failed = tries.saturating_sub(1);
    let doublings = match target {
        ReportTarget::Webhook => failed,
        ReportTarget::Shell => failed.saturating_mul(3),
    };
    (limits::EFFECT_BACKOFF_MIN_MS << doublings.min(20)).min(limits::EFFECT_BACKOFF_MAX_MS)
}

/// Why no further try follows, if none does.
fn given_up(kind: ReportKind, target: ReportTarget, tries: u32, age_ms: u64) -> Option<String> {
    if kind == ReportKind::Alert {
        return (tries >= limits::ALERT_TRIES_MAX).then(|| format!("given up after {tries} tries"));
    }
    match target {
        ReportTarget::Webhook if age_ms > limits::EFFECT_AGE_MAX_MS => {
            Some(format!("given up after {tries} tries in 24 hours"))
        }
        ReportTarget::Shell if tries >= limits::SHELL_TRIES_MAX => {
            Some(format!("given up after {tries} tries"))
        }
        ReportTarget::Webhook | ReportTarget::Shell => None,
    }
}

impl Effect {
    /// The effect after a try at `now`; itself when it had been decided before.
    #[must_use]
    pub fn after(&self, delivery: &Delivery, now: Millis) -> Effect {
        let EffectState::Waiting { tries, .. } = &self.state else {
            return self.clone();
        };
        let tries = tries.saturating_add(1);
        let state = match delivery {
            Delivery::Done => EffectState::Delivered { at: now, tries },
            Delivery::Refused(reason) => EffectState::Dead {
                at: now,
                tries,
                reason: reason.clone(),
            },
            Delivery::Failed(reason) => {
                let due_at = now.plus(backoff_ms(self.target, tries));
                match given_up(self.kind, self.target, tries, due_at.since(self.created_at)) {
                    Some(why) => EffectState::Dead {
                        at: now,
                        tries,
                        reason: format!("{why}: {reason}"),
                    },
                    None => EffectState::Waiting {
                        due_at,
                        tries,
                        last_error: Some(reason.clone()),
                    },
                }
            }
        };
        let mut after = self.clone();
        if !matches!(state, EffectState::Waiting { .. }) {
            after.facts.tails = Tails::default();
        }
        after.state = state;
        after
    }

    /// The same, given up before any try.
    #[must_use]
    pub fn dead_at_birth(mut self, reason: String) -> Effect {
        self.state = EffectState::Dead {
            at: self.created_at,
            tries: 0,
            reason,
        };
        self.facts.tails = Tails::default();
        self
    }

    /// When the delivery was decided.
    pub fn decided_at(&self) -> Option<Millis> {
        match &self.state {
            EffectState::Waiting { .. } => None,
            EffectState::Delivered { at, .. } | EffectState::Dead { at, .. } => Some(*at),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub(crate) fn effect(seq: u64) -> Effect {
        Effect {
            seq,
            id: EffectId([9; 16]),
            kind: ReportKind::Failure,
            target: ReportTarget::Webhook,
            job: JobName::new("nightly").unwrap(),
            run: Some(RunId([1; 16])),
            created_at: Millis(1_000),
            facts: Facts {
                tails: Tails {
                    stdout: "out\n".to_owned(),
                    stderr: String::new(),
                },
                ..Facts::default()
            },
            state: EffectState::Waiting {
                due_at: Millis(1_000),
                tries: 0,
                last_error: None,
            },
        }
    }

    #[test]
    fn waits_grow_up_to_five_minutes() {
        let tries = [1, 2, 3, 9, 10, 1_000];
        let waits = tries.map(|tries| backoff_ms(ReportTarget::Webhook, tries));
        assert_eq!(waits, [1_000, 2_000, 4_000, 256_000, 300_000, 300_000]);
        let waits = tries.map(|tries| backoff_ms(ReportTarget::Shell, tries));
        assert_eq!(waits, [1_000, 8_000, 64_000, 300_000, 300_000, 300_000]);
    }

    #[test]
    fn a_command_has_few_tries() {
        let mut effect = Effect {
            target: ReportTarget::Shell,
            ..effect(1)
        };
        for _ in 0..limits::SHELL_TRIES_MAX {
            assert_eq!(effect.state.word(), "waiting");
            effect = effect.after(&Delivery::Failed("exit code 1".to_owned()), Millis(2_000));
        }
        let EffectState::Dead { reason, .. } = &effect.state else {
            panic!("{effect:?}");
        };
        assert_eq!(reason, "given up after 5 tries: exit code 1");
    }

    #[test]
    fn an_alert_of_routing_has_eight_tries() {
        let mut effect = Effect {
            kind: ReportKind::Alert,
            ..effect(1)
        };
        for _ in 0..8 {
            assert_eq!(effect.state.word(), "waiting");
            effect = effect.after(&Delivery::Failed("no".to_owned()), Millis(2_000));
        }
        assert_eq!(effect.state.word(), "dead");
    }

    #[test]
    fn a_failed_try_is_repeated_until_a_day_has_passed() {
        let failed = Delivery::Failed("no".to_owned());
        let mut effect = effect(1);
        let mut now = Millis(1_000);
        let mut tries = 0;
        while let EffectState::Waiting { due_at, .. } = &effect.state {
            assert!(*due_at >= now);
            now = *due_at;
            effect = effect.after(&failed, now);
            tries += 1;
        }
        assert!((285..300).contains(&tries), "{tries}");
        assert!(now.since(Millis(1_000)) <= limits::EFFECT_AGE_MAX_MS);
        let EffectState::Dead { reason, .. } = &effect.state else {
            panic!("{effect:?}");
        };
        assert_eq!(reason, &format!("given up after {tries} tries in 24 hours: no"));
        assert_eq!(effect.facts.tails, Tails::default());
        assert_eq!(
            effect.after(&Delivery::Done, now),
            effect,
            "what is decided stays"
        );
    }

    #[test]
    fn a_delivery_and_a_refusal_decide_at_once() {
        let done = effect(1).after(&Delivery::Done, Millis(2_000));
        assert_eq!(
            done.state,
            EffectState::Delivered {
                at: Millis(2_000),
                tries: 1
            }
        );
        let refused = effect(1).after(&Delivery::Refused("gone".to_owned()), Millis(2_000));
        assert_eq!(refused.state.word(), "dead");
        assert_eq!(refused.decided_at(), Some(Millis(2_000)));
        let late = effect(1).after(&Delivery::Failed("no".to_owned()), Millis(2_000));
        assert_eq!(
            late.state,
            EffectState::Waiting {
                due_at: Millis(3_000),
                tries: 1,
                last_error: Some("no".to_owned())
            }
        );
    }
}
