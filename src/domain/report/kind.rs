//! Which reports there are.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// What is reported.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportKind {
    /// An attempt failed, also when another one follows.
    Failure,
    /// The run failed and nothing follows.
    PermanentFailure,
    /// The run succeeded.
    Success,
    /// One of the job's `sla` limits was passed.
    Late,
    /// A clock of routing has run out. No configuration asks for it: the recipient pool names an address.
    Alert,
}

impl ReportKind {
    /// Those that a job can ask for.
    pub const ALL: [ReportKind; 4] = [
        ReportKind::Failure,
        ReportKind::PermanentFailure,
        ReportKind::Success,
        ReportKind::Late,
    ];

    /// The key of the configuration file.
    pub fn key(self) -> &'static str {
        match self {
            ReportKind::Failure => "onFailure",
            ReportKind::PermanentFailure => "onPermanentFailure",
            ReportKind::Success => "onSuccess",
            ReportKind::Late => "onLate",
            ReportKind::Alert => "alert_webhook_url",
        }
    }

    /// The `type` of its document.
    pub fn type_word(self) -> &'static str {
        match self {
            ReportKind::Failure => "job.attempt.failed",
            ReportKind::PermanentFailure => "job.failed",
            ReportKind::Success => "job.succeeded",
            ReportKind::Late => "job.late",
            ReportKind::Alert => "routing.sla_breached",
        }
    }
}

/// How a report is delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ReportTarget {
    /// A POST to an address.
    Webhook,
    /// A command on this machine.
    Shell,
}

impl ReportTarget {
    /// All of them.
    pub const ALL: [ReportTarget; 2] = [ReportTarget::Webhook, ReportTarget::Shell];

    /// The word of the configuration, of labels and of answers.
    pub fn word(self) -> &'static str {
        match self {
            ReportTarget::Webhook => "webhook",
            ReportTarget::Shell => "shell",
        }
    }
}

/// Which reports a job asks for: all that the store needs to know of them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReportWishes(BTreeMap<ReportKind, BTreeSet<ReportTarget>>);

impl ReportWishes {
    /// Asks for one more.
    pub fn add(&mut self, kind: ReportKind, target: ReportTarget) {
        self.0.entry(kind).or_default().insert(target);
    }

    /// True when nothing is asked for.
    pub fn is_empty(&self) -> bool {
        self.0.values().all(BTreeSet::is_empty)
    }

    /// The kinds of which something is asked for.
    pub fn kinds(&self) -> impl Iterator<Item = ReportKind> {
        let asked = self.0.iter().filter(|(_, targets)| !targets.is_empty());
        asked.map(|(kind, _)| *kind)
    }

    /// What is asked for of this kind.
    pub fn of(&self, kind: ReportKind) -> impl Iterator<Item = ReportTarget> {
        self.0.get(&kind).into_iter().flatten().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wishes_are_readable_json() {
        let mut wishes = ReportWishes::default();
        assert!(wishes.is_empty());
        wishes.add(ReportKind::PermanentFailure, ReportTarget::Shell);
        wishes.add(ReportKind::Failure, ReportTarget::Webhook);
        wishes.add(ReportKind::Failure, ReportTarget::Webhook);
        assert!(!wishes.is_empty());
        assert_eq!(wishes.kinds().count(), 2);
        assert_eq!(
            serde_json::to_string(&wishes).unwrap(),
            r#"{"failure":["webhook"],"permanent_failure":["shell"]}"#
        );
        assert_eq!(
            wishes.of(ReportKind::Failure).collect::<Vec<_>>(),
            [ReportTarget::Webhook]
        );
        assert_eq!(wishes.of(ReportKind::Late).count(), 0);
    }
}
