//! What is done with all runs that a filter matches: which may be, what happens to each, and what is too much at once.

use std::collections::BTreeSet;

use super::filter::{BadFilter, RunFilter, UNFINISHED};
use super::run::RunState;
use crate::words::ids::RunId;
use crate::words::names::JobName;

/// What is wished for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkWish {
    /// They end.
    Cancel,
    /// Their jobs are tried again.
    Retry,
}

/// What happens to one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// It ends.
    Cancel,
    /// Its next attempt begins now.
    Retry,
    /// Its job starts as a new run.
    Rerun,
    /// Nothing: another run of its job stands for it.
    Collapsed,
}

impl Deed {
    /// The word on the wire.
    pub fn word(self) -> &'static str {
        match self {
            Deed::Cancel => "cancel",
            Deed::Retry => "retry",
            Deed::Rerun => "rerun",
            Deed::Collapsed => "collapsed",
        }
    }
}

/// A run that matches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Matched {
    /// The run.
    pub id: RunId,
    /// Its job.
    pub job: JobName,
    /// Its state.
    pub state: &'static str,
    /// What happens to it.
    pub deed: Deed,
}

/// States in which a run, or its job, can be tried again: a running one only between two attempts.
const RETRYABLE: [&str; 3] = ["running", "failed", "cancelled"];

impl BulkWish {
    /// The filter of what can be wished for: without a state all states in which it is possible.
    pub fn narrowed(self, mut filter: RunFilter) -> Result<RunFilter, BadFilter> {
        let (possible, why): (&[&'static str], &str) = match self {
            BulkWish::Cancel => (&UNFINISHED, "cannot be cancelled; say pending or running"),
            BulkWish::Retry => (
                &RETRYABLE,
                "is not tried again; say failed, cancelled, or running for those between two attempts",
            ),
        };
        if let Some(state) = filter.states.iter().find(|state| !possible.contains(state)) {
            let verb = if *state == "pending" { "is" } else { "has" };
            let done = if *state == "skipped" {
                "been skipped"
            } else {
                state
            };
            return Err(BadFilter(format!("a run that {verb} {done} {why}")));
        }
        if filter.states.is_empty() {
            filter.states.extend(possible);
        }
        Ok(filter)
    }

    /// What happens to a run in this state; `None` if it does not match. `rests`: it waits for its next attempt.
    pub fn deed(self, state: &RunState, rests: bool) -> Option<Deed> {
        match (self, state) {
            (BulkWish::Cancel, RunState::Pending | RunState::Running { .. }) => Some(Deed::Cancel),
            (BulkWish::Retry, RunState::Running { .. }) if rests => Some(Deed::Retry),
            (BulkWish::Retry, RunState::Failed { .. } | RunState::Cancelled { .. }) => Some(Deed::Rerun),
            (BulkWish::Cancel | BulkWish::Retry, _) => None,
        }
    }
}

/// Leaves one start for each job: that of a run which waits for its next attempt, or else of its newest run that has ended.
/// Twenty failures of one job do not start it twenty times. `matched` comes newest first.
pub fn collapse(matched: &mut [Matched]) {
    let retried = matched.iter().filter(|run| run.deed == Deed::Retry);
    let mut begun: BTreeSet<JobName> = retried.map(|run| run.job.clone()).collect();
    for run in matched {
        if run.deed == Deed::Rerun && !begun.insert(run.job.clone()) {
            run.deed = Deed::Collapsed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::words::time::Millis;

    fn filter(state: &'static str) -> RunFilter {
        RunFilter {
            states: BTreeSet::from([state]),
            ..RunFilter::default()
        }
    }

    #[test]
    fn only_what_is_possible_is_asked_for() {
        let states = |wish: BulkWish, given: RunFilter| {
            let narrowed = wish.narrowed(given).map_err(|error| error.to_string())?;
            Ok::<_, String>(narrowed.states.into_iter().collect::<Vec<_>>())
        };
        let all = RunFilter::default;
        assert_eq!(states(BulkWish::Cancel, all()).unwrap(), ["pending", "running"]);
        assert_eq!(states(BulkWish::Cancel, filter("running")).unwrap(), ["running"]);
        assert_eq!(
            states(BulkWish::Retry, all()).unwrap(),
            ["cancelled", "failed", "running"]
        );
        let refused = |wish, state| states(wish, filter(state)).unwrap_err();
        assert!(refused(BulkWish::Cancel, "failed").starts_with("a run that has failed cannot be cancelled"));
        assert!(refused(BulkWish::Cancel, "skipped").starts_with("a run that has been skipped cannot"));
        assert!(refused(BulkWish::Retry, "pending").starts_with("a run that is pending is not tried again"));
        assert!(refused(BulkWish::Retry, "succeeded").starts_with("a run that has succeeded is not"));
    }

    #[test]
    fn each_state_has_its_deed() {
        let (started_at, ended_at, reason) = (Millis(1), Millis(2), String::new());
        let running = RunState::Running { started_at };
        let failed = RunState::Failed {
            started_at: None,
            ended_at,
            reason: reason.clone(),
        };
        let cancelled = RunState::Cancelled {
            started_at: None,
            ended_at,
            reason: reason.clone(),
        };
        let skipped = RunState::Skipped { ended_at, reason };
        let succeeded = RunState::Succeeded { started_at, ended_at };
        let check = |state: &RunState, rests: bool, cancel: Option<Deed>, retry: Option<Deed>| {
            assert_eq!(BulkWish::Cancel.deed(state, rests), cancel, "{state:?}");
            assert_eq!(BulkWish::Retry.deed(state, rests), retry, "{state:?}");
        };
        check(&RunState::Pending, false, Some(Deed::Cancel), None);
        check(&running, false, Some(Deed::Cancel), None);
        check(&running, true, Some(Deed::Cancel), Some(Deed::Retry));
        check(&failed, false, None, Some(Deed::Rerun));
        check(&cancelled, false, None, Some(Deed::Rerun));
        check(&skipped, false, None, None);
        check(&succeeded, false, None, None);
    }

    #[test]
    fn a_job_begins_once_however_often_it_failed() {
        let run = |number: u8, job: &str, deed: Deed| Matched {
            id: RunId([number; 16]),
            job: JobName::new(job).unwrap(),
            state: "failed",
            deed,
        };
        let mut matched = [
            run(9, "a", Deed::Rerun),
            run(8, "b", Deed::Rerun),
            run(7, "a", Deed::Rerun),
            run(6, "b", Deed::Retry),
            run(5, "b", Deed::Retry),
            run(4, "c", Deed::Rerun),
        ];
        collapse(&mut matched);
        let deeds: Vec<_> = matched.iter().map(|run| run.deed.word()).collect();
        assert_eq!(
            deeds,
            ["rerun", "collapsed", "collapsed", "retry", "retry", "rerun"]
        );
    }
}
