//! The verdict: what clients were told, what the steps saw and what the store says, held against each other. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Evidence;
use super::jobs::{self, CANCELLED, EACH, HASTY, SHIFTING};
use super::ledger::Ledger;
use super::step::ON_PURPOSE;
use crate::domain::workflow::run::RunState;
use crate::store::audit::{Audited, AuditedRun};
use crate::words::ids::RunId;

/// Sentences of one kind that are told; of a store that has lost everything nobody reads a thousand.
const SENTENCES_MAX: usize = 20;

/// What earlier looks have found: what has ended stays so.
#[derive(Debug, Default)]
pub(super) struct Past {
    /// Runs that had ended, with the number of evidence lines at that time.
    ended: BTreeMap<RunId, (&'static str, usize)>,
    /// All runs of the last look.
    known: BTreeSet<RunId>,
    /// Violations that were told already.
    violations: usize,
    /// Findings of the clients that were told already.
    answers: usize,
}

impl Past {
    /// How many runs have ended.
    pub(super) fn ended(&self) -> usize {
        self.ended.len()
    }

    /// All runs of the last look.
    pub(super) fn known(&self) -> &BTreeSet<RunId> {
        &self.known
    }
}

/// Every sentence that should not be. What is `due` had time enough and nothing in its way: it must
/// have ended.
pub(super) fn judge(
    past: &mut Past,
    ledger: &Ledger,
    evidence: &Evidence,
    audited: &Audited,
    due: Option<&BTreeSet<RunId>>,
) -> Vec<String> {
    let mut findings: Vec<String> = Vec::new();
    let store = audited.checked.findings.iter();
    findings.extend(store.take(SENTENCES_MAX).map(|text| format!("store: {text}")));
    findings.extend(evidence.violations.iter().skip(past.violations).cloned());
    past.violations = evidence.violations.len();
    findings.extend(ledger.findings.iter().skip(past.answers).cloned());
    past.answers = ledger.findings.len();
    let mut add = |found: Vec<String>| findings.extend(found.into_iter().take(SENTENCES_MAX));
    add(lost(ledger, audited));
    add(unknown(evidence, audited));
    add(fired_twice(evidence));
    add(one_fence_twice(evidence));
    add(changed_ends(past, evidence, audited));
    add(wrong_ends(ledger, evidence, audited));
    if let Some(due) = due {
        add(unended(audited, due));
    }
    past.known = audited.runs.keys().copied().collect();
    for (run, audited) in &audited.runs {
        if audited.state.is_terminal() {
            let first = (audited.state.word(), evidence.lines);
            past.ended.entry(*run).or_insert(first);
        }
    }
    findings
}

fn lost(ledger: &Ledger, audited: &Audited) -> Vec<String> {
    let starts = ledger.starts.iter();
    starts
        .filter_map(|(run, told)| match audited.runs.get(run) {
            None => Some(format!(
                "lost: {run} of job {} was acknowledged (key {}) and is not in the store",
                told.job, told.key
            )),
            Some(found) if found.job != told.job => Some(format!(
                "{run} was acknowledged as a run of {} and is one of {}",
                told.job, found.job
            )),
            Some(_) => None,
        })
        .collect()
}

fn unknown(evidence: &Evidence, audited: &Audited) -> Vec<String> {
    let runs = evidence.runs.keys();
    runs.filter(|run| !audited.runs.contains_key(run))
        .map(|run| format!("{run} was executed and is not in the store"))
        .collect()
}

/// One due moment, one run; of a job for every node, one for each.
fn fired_twice(evidence: &Evidence) -> Vec<String> {
    let mut moments: BTreeMap<(&str, &str, &str), BTreeSet<RunId>> = BTreeMap::new();
    for (run, executions) in &evidence.runs {
        // A start by hand has a moment too, and that is nobody's.
        for executed in executions.iter().filter(|executed| jobs::fires(&executed.job)) {
            let node = if executed.job == EACH {
                executed.node.as_str()
            } else {
                ""
            };
            let moment = (executed.job.as_str(), executed.scheduled_at.as_str(), node);
            moments.entry(moment).or_default().insert(*run);
        }
    }
    let twice = moments.into_iter().filter(|(_, runs)| runs.len() > 1);
    twice
        .map(|((job, at, _), runs)| format!("job {job} fired {} times for {at}", runs.len()))
        .collect()
}

fn one_fence_twice(evidence: &Evidence) -> Vec<String> {
    let mut fences: BTreeMap<u64, RunId> = BTreeMap::new();
    let mut found = Vec::new();
    for (run, executions) in &evidence.runs {
        for executed in executions {
            if let Some(other) = fences.insert(executed.fence, *run) {
                found.push(format!(
                    "fence {} was given to {other} and to {run}",
                    executed.fence
                ));
            }
        }
    }
    found
}

fn changed_ends(past: &Past, evidence: &Evidence, audited: &Audited) -> Vec<String> {
    let mut found = Vec::new();
    for (run, (word, lines)) in &past.ended {
        let now = audited.runs.get(run).map(|run| run.state.word());
        if now != Some(*word) {
            let now = now.unwrap_or("gone");
            found.push(format!("{run} had ended as {word} and is {now} now"));
        }
        let later = |executed: &super::evidence::Executed| executed.line > *lines;
        if evidence
            .runs
            .get(run)
            .is_some_and(|executions| executions.iter().any(later))
        {
            found.push(format!("{run} had ended as {word} and was executed again"));
        }
    }
    found
}

fn wrong_ends(ledger: &Ledger, evidence: &Evidence, audited: &Audited) -> Vec<String> {
    let runs = audited.runs.iter();
    runs.filter_map(|(run, found)| {
        let why = why_wrong(*run, found, ledger, evidence)?;
        Some(format!("{run} of job {}: {why}", found.job))
    })
    .collect()
}

/// Why a run cannot have ended like that.
fn why_wrong(run: RunId, found: &AuditedRun, ledger: &Ledger, evidence: &Evidence) -> Option<String> {
    let executions = evidence.runs.get(&run).map_or(&[][..], Vec::as_slice);
    let ended_with = |code: i32| executions.iter().any(|executed| executed.code == Some(code));
    let was_cancelled = ledger.cancelled.contains(&run) || found.job == CANCELLED;
    match &found.state {
        RunState::Pending | RunState::Running { .. } | RunState::Paused { .. } => None,
        RunState::TimedOut { .. } => Some("it timed out, and no run has a time limit".to_owned()),
        RunState::Succeeded { .. } if ended_with(0) => None,
        RunState::Succeeded { .. } if executions.is_empty() => Some("it succeeded and never ran".to_owned()),
        RunState::Succeeded { .. } => Some("it succeeded and no execution came to its end".to_owned()),
        RunState::Failed { reason, .. } => {
            let by_command = reason.starts_with("exit code") && !ended_with(0)
                || reason == &format!("exit code {ON_PURPOSE}");
            // A disk that is full keeps evidence from being written, and processes from being started.
            let by_disk =
                evidence.cut > 0 || reason.contains("exit code 75") || reason.contains("launch failed");
            let gave_up = reason.contains("crash limit reached") && found.lost > 0;
            let superseded = reason.starts_with("retry ");
            let withdrawn = found.lost > 0 && (was_cancelled || found.job == HASTY || found.job == SHIFTING);
            let known = by_command || by_disk || gave_up || superseded || withdrawn;
            (!known).then(|| format!("it failed without cause: {reason}"))
        }
        RunState::Cancelled { reason, .. } if reason.is_empty() => {
            Some("it was cancelled without a reason".to_owned())
        }
        RunState::Cancelled { reason, .. } => {
            (!was_cancelled).then(|| format!("it was cancelled and nobody asked: {reason}"))
        }
        RunState::Skipped { reason, .. } => {
            let fits = match reason.as_str() {
                "queue timeout" => found.job == HASTY,
                "job removed, disabled, or configuration changed" => found.job == SHIFTING,
                "cancelled by operator" | "run cancelled" => was_cancelled,
                other => other.starts_with("retry "),
            };
            (!fits).then(|| format!("it was skipped without cause: {reason}"))
        }
    }
}

fn unended(audited: &Audited, due: &BTreeSet<RunId>) -> Vec<String> {
    let runs = audited.runs.iter();
    runs.filter(|(id, run)| !run.state.is_terminal() && due.contains(id))
        .map(|(id, run)| {
            format!(
                "{id} of job {} is {} although nothing hinders it any more",
                run.job,
                run.state.word()
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::evidence::Executed;
    use super::*;
    use crate::store::check::Checked;
    use crate::words::time::Millis;

    const ONE: RunId = RunId([1; 16]);
    const TWO: RunId = RunId([2; 16]);

    fn succeeded() -> RunState {
        RunState::Succeeded {
            started_at: Millis(1),
            ended_at: Millis(2),
        }
    }

    fn audited(runs: &[(RunId, &str, RunState)]) -> Audited {
        let runs = runs.iter().map(|(id, job, state)| {
            let run = AuditedRun {
                job: (*job).to_owned(),
                state: state.clone(),
                executions: 1,
                lost: 0,
            };
            (*id, run)
        });
        Audited {
            checked: Checked {
                findings: Vec::new(),
                rows: 1,
                unnamed_blobs: 0,
                unread_blobs: 0,
            },
            runs: runs.collect(),
            content: 0,
        }
    }

    fn executed(job: &str, fence: u64, at: &str, code: Option<i32>) -> Executed {
        Executed {
            line: usize::try_from(fence).unwrap(),
            fence,
            job: job.to_owned(),
            node: "a".to_owned(),
            scheduled_at: at.to_owned(),
            code,
        }
    }

    fn evidence(runs: &[(RunId, Executed)]) -> Evidence {
        let mut evidence = Evidence {
            lines: runs.len(),
            ..Evidence::default()
        };
        for (run, executed) in runs {
            evidence.runs.entry(*run).or_default().push(executed.clone());
        }
        evidence
    }

    fn told(run: RunId, job: &str) -> Ledger {
        let mut ledger = Ledger::default();
        ledger.accepted("k", job, run, None);
        ledger
    }

    /// The only sentence, or none.
    #[track_caller]
    fn check(ledger: &Ledger, evidence: &Evidence, audited: &Audited, expected: &str) {
        let due = BTreeSet::from([ONE]);
        let found = judge(&mut Past::default(), ledger, evidence, audited, Some(&due));
        match expected {
            "" => assert_eq!(found, Vec::<String>::new()),
            words => assert!(found.len() == 1 && found[0].contains(words), "{words}: {found:?}"),
        }
    }

    #[test]
    fn what_fits_together_is_no_finding() {
        let ran = evidence(&[(ONE, executed("small", 1, "-", Some(0)))]);
        check(
            &told(ONE, "small"),
            &ran,
            &audited(&[(ONE, "small", succeeded())]),
            "",
        );
        // Unfinished work that nobody waited for.
        let both = audited(&[(ONE, "small", succeeded()), (TWO, "tick", RunState::Pending)]);
        check(&told(ONE, "small"), &ran, &both, "");
    }

    #[test]
    fn a_lost_start_is_found() {
        check(
            &told(ONE, "small"),
            &Evidence::default(),
            &audited(&[]),
            "is not in the store",
        );
        let other = audited(&[(ONE, "broad", succeeded())]);
        let ran = evidence(&[(ONE, executed("broad", 1, "-", Some(0)))]);
        check(
            &told(ONE, "small"),
            &ran,
            &other,
            "was acknowledged as a run of small and is one of broad",
        );
    }

    #[test]
    fn work_that_the_store_does_not_know_is_found() {
        let ran = evidence(&[(ONE, executed("small", 1, "-", Some(0)))]);
        check(
            &Ledger::default(),
            &ran,
            &audited(&[]),
            "was executed and is not in the store",
        );
    }

    #[test]
    fn an_end_without_a_cause_is_found() {
        let nothing = Evidence::default();
        let ends = |state: RunState| audited(&[(ONE, "small", state)]);
        let skipped = |reason: &str| RunState::Skipped {
            ended_at: Millis(2),
            reason: reason.to_owned(),
        };
        let cancelled = RunState::Cancelled {
            started_at: None,
            ended_at: Millis(2),
            reason: "cancelled by operator".to_owned(),
        };
        let failed = |reason: &str| RunState::Failed {
            started_at: None,
            ended_at: Millis(2),
            reason: reason.to_owned(),
        };
        let ledger = told(ONE, "small");
        check(&ledger, &nothing, &ends(succeeded()), "succeeded and never ran");
        let cut_short = evidence(&[(ONE, executed("small", 1, "-", None))]);
        check(
            &ledger,
            &cut_short,
            &ends(succeeded()),
            "no execution came to its end",
        );
        check(
            &ledger,
            &nothing,
            &ends(skipped("queue timeout")),
            "skipped without cause",
        );
        check(&ledger, &nothing, &ends(cancelled.clone()), "nobody asked");
        check(
            &ledger,
            &nothing,
            &ends(failed("defect")),
            "failed without cause: defect",
        );
        check(
            &ledger,
            &nothing,
            &ends(RunState::Pending),
            "is pending although nothing hinders it",
        );
        let mut asked = told(ONE, "small");
        asked.cancelled.insert(ONE);
        check(&asked, &nothing, &ends(cancelled), "");
        check(&asked, &nothing, &ends(skipped("cancelled by operator")), "");
        let hasty = audited(&[(ONE, HASTY, skipped("queue timeout"))]);
        check(&told(ONE, HASTY), &nothing, &hasty, "");
    }

    #[test]
    fn a_moment_that_fires_twice_is_found() {
        let at = "2026-01-01T00:00:00.000Z";
        let both = |job: &str| {
            let runs = evidence(&[
                (ONE, executed(job, 1, at, Some(0))),
                (TWO, executed(job, 2, at, Some(0))),
            ]);
            (runs, audited(&[(ONE, job, succeeded()), (TWO, job, succeeded())]))
        };
        let (ran, store) = both("tick");
        check(
            &Ledger::default(),
            &ran,
            &store,
            "job tick fired 2 times for 2026",
        );
        let (ran, store) = both("small");
        check(&Ledger::default(), &ran, &store, "");
    }

    #[test]
    fn a_fence_that_is_given_twice_is_found() {
        let ran = evidence(&[
            (ONE, executed("small", 1, "-", Some(0))),
            (TWO, executed("small", 1, "-", Some(0))),
        ]);
        let store = audited(&[(ONE, "small", succeeded()), (TWO, "small", succeeded())]);
        check(&Ledger::default(), &ran, &store, "fence 1 was given to");
    }

    #[test]
    fn what_has_ended_stays_so() {
        let mut past = Past::default();
        let ledger = Ledger::default();
        let store = audited(&[(ONE, "small", succeeded())]);
        let mut ran = evidence(&[(ONE, executed("small", 1, "-", Some(0)))]);
        assert_eq!(
            judge(&mut past, &ledger, &ran, &store, None),
            Vec::<String>::new()
        );
        assert_eq!((past.ended(), past.known().len()), (1, 1));
        ran.runs
            .entry(ONE)
            .or_default()
            .push(executed("small", 5, "-", Some(0)));
        let found = judge(&mut past, &ledger, &ran, &store, None);
        assert!(
            found.len() == 1 && found[0].contains("was executed again"),
            "{found:?}"
        );
        let found = judge(&mut past, &ledger, &Evidence::default(), &audited(&[]), None);
        assert!(found.len() == 1 && found[0].contains("is gone now"), "{found:?}");
    }

    #[test]
    fn what_others_found_is_told_once() {
        let mut past = Past::default();
        let mut seen = Evidence::default();
        seen.violations.push("two live copies".to_owned());
        let mut ledger = Ledger::default();
        ledger.findings.push("one key, two runs".to_owned());
        let mut store = audited(&[]);
        store.checked.findings.push("runs: a row is missing".to_owned());
        let found = judge(&mut past, &ledger, &seen, &store, None);
        assert_eq!(
            found,
            [
                "store: runs: a row is missing",
                "two live copies",
                "one key, two runs"
            ]
        );
        assert_eq!(
            judge(&mut past, &ledger, &seen, &audited(&[]), None),
            Vec::<String>::new()
        );
    }
}
