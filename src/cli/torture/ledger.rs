//! What the clients were told: the other side of the books.

use std::collections::{BTreeMap, BTreeSet};

use crate::words::ids::RunId;

/// A start that a client was told of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Acknowledged {
    pub(super) job: String,
    /// The idempotency key of the request.
    pub(super) key: String,
    /// Its slot entry, for a pooled job.
    pub(super) entry: Option<String>,
}

/// All of it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Ledger {
    /// By run.
    pub(super) starts: BTreeMap<RunId, Acknowledged>,
    /// Runs by key: a repeated request must find its first answer.
    by_key: BTreeMap<String, RunId>,
    /// Requests without an answer: key and job. The work may or may not be there.
    unanswered: BTreeMap<String, String>,
    /// Runs that somebody wanted cancelled, told so or not.
    pub(super) cancelled: BTreeSet<RunId>,
    /// Requests that were refused: full queue, no store, bad locks.
    pub(super) refused: u64,
    /// What a daemon answered that it must not, one sentence each.
    pub(super) findings: Vec<String>,
}

impl Ledger {
    /// A request goes out.
    pub(super) fn sent(&mut self, key: &str, job: &str) {
        if !self.by_key.contains_key(key) {
            self.unanswered.insert(key.to_owned(), job.to_owned());
        }
    }

    /// It was accepted.
    pub(super) fn accepted(&mut self, key: &str, job: &str, run: RunId, entry: Option<String>) {
        self.unanswered.remove(key);
        if let Some(first) = self.by_key.get(key).filter(|first| **first != run) {
            let text = format!("one key, two runs: {key} of job {job} was {first} and is {run}");
            self.findings.push(text);
        }
        self.by_key.entry(key.to_owned()).or_insert(run);
        let told = Acknowledged {
            job: job.to_owned(),
            key: key.to_owned(),
            entry,
        };
        let first = self.starts.entry(run).or_insert_with(|| told.clone());
        if first.job != job || first.key != key {
            let text = format!("one run, two starts: {run} is of {} and of {job}", first.job);
            self.findings.push(text);
        }
    }

    /// It was surely not applied. `by_rule` is a refusal of state, not of a store that cannot be asked.
    pub(super) fn refused(&mut self, key: &str, job: &str, by_rule: bool) {
        self.refused += 1;
        self.unanswered.remove(key);
        if let Some(run) = self.by_key.get(key).filter(|_| by_rule) {
            let text = format!("the start {key} of job {job} was accepted as {run} and then refused");
            self.findings.push(text);
        }
    }

    /// Requests to be repeated.
    pub(super) fn unanswered(&self) -> impl Iterator<Item = (&String, &String)> {
        self.unanswered.iter()
    }

    /// An accepted start, the `at`-th from the newest.
    pub(super) fn newest(&self, at: usize) -> Option<(RunId, &Acknowledged)> {
        let (run, told) = self.starts.iter().rev().nth(at)?;
        Some((*run, told))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_one_run() {
        let mut ledger = Ledger::default();
        let (one, two) = (RunId([1; 16]), RunId([2; 16]));
        ledger.sent("k", "small");
        assert_eq!(ledger.unanswered().count(), 1);
        ledger.accepted("k", "small", one, None);
        ledger.sent("k", "small");
        assert_eq!(ledger.unanswered().count(), 0);
        ledger.accepted("k", "small", one, None);
        assert_eq!(ledger.findings, Vec::<String>::new());
        ledger.accepted("k", "small", two, None);
        assert!(ledger.findings[0].starts_with("one key, two runs: k of job small"));
        ledger.refused("k", "small", false);
        assert_eq!(
            ledger.findings.len(),
            1,
            "a store that is away can say nothing of it"
        );
        ledger.refused("k", "small", true);
        assert!(ledger.findings[1].contains("was accepted as"));
        assert_eq!(ledger.newest(0).map(|(run, _)| run), Some(two));
    }

    #[test]
    fn a_run_is_one_start() {
        let mut ledger = Ledger::default();
        ledger.accepted("k", "small", RunId([1; 16]), None);
        ledger.accepted("l", "broad", RunId([1; 16]), None);
        assert!(ledger.findings[0].starts_with("one run, two starts"));
    }
}
