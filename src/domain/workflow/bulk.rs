//! What is done with all runs that a filter matches: which may be, what happens to each, and what is too much at once.

use std::collections::BTreeSet;

use super::filter::{BadFilter, RunFilter, UNFINISHED};
use super::run::{Run, RunState};
use crate::words::ids::RunId;
use crate::words::names::JobName;

/// What is wished for all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BulkWish {
    /// They end.
    Cancel,
    /// They are tried again, or their jobs are.
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
    /// A new run takes over what it has done and tries the rest: that of a graph.
    Again,
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
            Deed::Again => "retry_failed",
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
const RETRYABLE: [&str; 4] = ["running", "failed", "timed_out", "cancelled"];

impl BulkWish {
    /// The filter of what can be wished for: without a state all states in which it is possible.
    pub fn narrowed(self, mut filter: RunFilter) -> Result<RunFilter, BadFilter> {
        let (possible, why): (&[&'static str], &str) = match self {
            BulkWish::Cancel => (&UNFINISHED, "cannot be cancelled; say pending, running or paused"),
            BulkWish::Retry => (
                &RETRYABLE,
                "is not tried again; say failed, timed_out, cancelled, or running for those between two attempts",
            ),
        };
        if let Some(state) = filter.states.iter().find(|state| !possible.contains(state)) {
            let verb = match *state {
                "pending" | "paused" => "is",
                _ => "has",
            };
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
    pub fn deed(self, run: &Run, rests: bool) -> Option<Deed> {
        match (self, &run.state, &run.graph) {
            (BulkWish::Cancel, state, _) => (!state.is_terminal()).then_some(Deed::Cancel),
            (BulkWish::Retry, RunState::Running { .. }, None) if rests => Some(Deed::Retry),
            (BulkWish::Retry, RunState::Failed { .. } | RunState::Cancelled { .. }, None) => {
                Some(Deed::Rerun)
            }
            (
                BulkWish::Retry,
                RunState::Failed { .. } | RunState::Cancelled { .. } | RunState::TimedOut { .. },
                Some(header),
            ) => Some(match header.parent {
                // The run that began it does it anew when it is tried again itself.
                Some(_) => Deed::Collapsed,
                None => Deed::Again,
            }),
            (BulkWish::Retry, _, _) => None,
        }
    }
}

/// Leaves one start for each job: that of a run which waits for its next attempt, or else of its newest run that has ended.
/// Twenty failures of one job do not start it twenty times. Runs of workflows have an input of their own each and are all tried
/// again; those of a dag have none (`is_dag`), and the newest stands for them. `matched` comes newest first.
pub fn collapse(matched: &mut [Matched], is_dag: impl Fn(&JobName) -> bool) {
    let retried = matched.iter().filter(|run| run.deed == Deed::Retry);
    let mut begun: BTreeSet<JobName> = retried.map(|run| run.job.clone()).collect();
    for run in matched {
        let once = match run.deed {
            Deed::Rerun => true,
            Deed::Again => is_dag(&run.job),
            Deed::Cancel | Deed::Retry | Deed::Collapsed => false,
        };
        if once && !begun.insert(run.job.clone()) {
            run.deed = Deed::Collapsed;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::workflow::graph::state::GraphHeader;
    use crate::domain::workflow::run::Trigger;
    use crate::words::names::StepRef;
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
        assert_eq!(
            states(BulkWish::Cancel, all()).unwrap(),
            ["paused", "pending", "running"]
        );
        assert_eq!(states(BulkWish::Cancel, filter("running")).unwrap(), ["running"]);
        assert_eq!(
            states(BulkWish::Retry, all()).unwrap(),
            ["cancelled", "failed", "running", "timed_out"]
        );
        let refused = |wish, state| states(wish, filter(state)).unwrap_err();
        assert!(refused(BulkWish::Cancel, "failed").starts_with("a run that has failed cannot be cancelled"));
        assert!(refused(BulkWish::Cancel, "skipped").starts_with("a run that has been skipped cannot"));
        assert!(refused(BulkWish::Retry, "paused").starts_with("a run that is paused is not"));
        assert!(refused(BulkWish::Retry, "pending").starts_with("a run that is pending is not tried again"));
        assert!(refused(BulkWish::Retry, "succeeded").starts_with("a run that has succeeded is not"));
    }

    fn run(state: &RunState, graph: Option<GraphHeader>) -> Run {
        Run {
            id: RunId([1; 16]),
            definition: JobName::new("a").unwrap(),
            version: 1,
            trigger: Trigger::Manual {
                principal: "me".to_owned(),
            },
            node: None,
            created_at: Millis(0),
            record_version: 1,
            state: state.clone(),
            graph: graph.map(Box::new),
        }
    }

    #[test]
    fn each_state_has_its_deed() {
        let (started_at, ended_at, reason) = (Millis(1), Millis(2), String::new());
        let (started, because) = (Some(started_at), || reason.clone());
        let child = || GraphHeader {
            parent: Some((RunId([2; 16]), StepRef::main())),
            ..GraphHeader::default()
        };
        let failed = RunState::Failed {
            started_at: started,
            ended_at,
            reason: because(),
        };
        let cancelled = RunState::Cancelled {
            started_at: None,
            ended_at,
            reason: because(),
        };
        let timed_out = RunState::TimedOut {
            started_at,
            ended_at,
            reason: because(),
        };
        let skipped = RunState::Skipped {
            ended_at,
            reason: because(),
        };
        let running = RunState::Running { started_at };
        let paused = RunState::Paused { started_at };
        let succeeded = RunState::Succeeded { started_at, ended_at };
        let (cancel, rerun, again) = (Some(Deed::Cancel), Some(Deed::Rerun), Some(Deed::Again));
        // What is cancelled; what a job's run is retried as; and that of a graph.
        for (state, cancelled, of_job, of_graph) in [
            (&RunState::Pending, cancel, None, None),
            (&running, cancel, None, None),
            (&paused, cancel, None, None),
            (&failed, None, rerun, again),
            (&cancelled, None, rerun, again),
            (&timed_out, None, None, again),
            (&skipped, None, None, None),
            (&succeeded, None, None, None),
        ] {
            let (job, graph) = (run(state, None), run(state, Some(GraphHeader::default())));
            assert_eq!(BulkWish::Cancel.deed(&job, false), cancelled, "{state:?}");
            assert_eq!(BulkWish::Cancel.deed(&graph, false), cancelled, "{state:?}");
            assert_eq!(BulkWish::Retry.deed(&job, false), of_job, "{state:?}");
            assert_eq!(BulkWish::Retry.deed(&graph, false), of_graph, "{state:?}");
            let of_child = of_graph.map(|_| Deed::Collapsed);
            assert_eq!(BulkWish::Retry.deed(&run(state, Some(child())), false), of_child);
        }
        assert_eq!(
            BulkWish::Retry.deed(&run(&running, None), true),
            Some(Deed::Retry)
        );
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
            run(3, "dag", Deed::Again),
            run(2, "dag", Deed::Again),
            run(1, "flow", Deed::Again),
            run(0, "flow", Deed::Again),
        ];
        collapse(&mut matched, |name| name.as_str() == "dag");
        let deeds: Vec<_> = matched.iter().map(|run| run.deed.word()).collect();
        assert_eq!(
            deeds,
            [
                "rerun",
                "collapsed",
                "collapsed",
                "retry",
                "retry",
                "rerun",
                "retry_failed",
                "collapsed",
                "retry_failed",
                "retry_failed"
            ]
        );
    }
}
