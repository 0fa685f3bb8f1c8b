//! The verdict: what clients were told, what the steps saw and what the store says, held against each other. Pure.

use std::collections::{BTreeMap, BTreeSet};

use super::evidence::Evidence;
use super::jobs::{CANCELLED, HASTY, SHIFTING};
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
        for executed in executions.iter().filter(|executed| executed.scheduled_at != "-") {
            let node = if executed.job == "each" {
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
        RunState::Pending | RunState::Running { .. } => None,
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
