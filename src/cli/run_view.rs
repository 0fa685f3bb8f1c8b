//! What an answer about a run says: its state, its attempts, what it waits for, what would help. Pure functions.

use serde_json::Value;

use super::exit::Exit;
use super::fields;
use super::table::one_line;
use super::times::{self, Clockface};
use crate::words::time::Millis;

/// True when nothing more happens to a run.
pub(super) fn has_ended(state: &str) -> bool {
    matches!(
        state,
        "succeeded" | "failed" | "cancelled" | "skipped" | "timed_out" | "continued"
    )
}

/// What the end of a run means to a script.
pub(super) fn exit_of(run: &Value) -> Exit {
    match state_of(run).as_str() {
        "succeeded" | "continued" => Exit::Done,
        _ => Exit::Negative,
    }
}

/// The state's word.
pub(super) fn state_of(value: &Value) -> String {
    fields::text(value, &["state"]).unwrap_or_else(|| "unknown".to_owned())
}

/// The id.
pub(super) fn id_of(run: &Value) -> String {
    fields::text(run, &["id", "run_id"]).unwrap_or_default()
}

/// The job.
pub(super) fn job_of(run: &Value) -> String {
    fields::text(run, &["job", "family_slug"]).unwrap_or_default()
}

/// Why it ended, or waits again.
pub(super) fn reason_of(value: &Value) -> Option<String> {
    let reason = fields::text(value, &["reason"]).map(|reason| one_line(&reason));
    reason.filter(|reason| !reason.is_empty())
}

/// How long it took, or has taken so far; `None` before it started.
pub(super) fn took_ms(value: &Value, now: Millis) -> Option<u64> {
    let started = fields::instant(value, &["started_at", "claimed_at"])?;
    let ended = fields::instant(value, &["ended_at"]).unwrap_or(now);
    Some(ended.since(started))
}

/// `run_… succeeded in 1.2 s` or `run_… failed after 1.2 s: the reason`.
pub(super) fn outcome(run: &Value) -> String {
    let state = state_of(run);
    let ended = fields::instant(run, &["ended_at"]);
    let time = ended
        .and_then(|ended| took_ms(run, ended))
        .map(times::length)
        .map_or_else(String::new, |time| {
            let word = if state == "succeeded" { "in" } else { "after" };
            format!(" {word} {time}")
        });
    let reason = reason_of(run).map_or_else(String::new, |reason| format!(": {reason}"));
    format!("{} {state}{time}{reason}", id_of(run))
}

/// One execution of a step, which has a log. One number may have several: a daemon died, and it was begun again.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct AttemptRef {
    /// The step.
    pub(super) step: String,
    /// The attempt.
    pub(super) number: i64,
    /// Its claim.
    pub(super) fence: Option<i64>,
}

/// The attempts of a run in the order of its steps, running ones too.
pub(super) fn attempts_of(run: &Value) -> Vec<AttemptRef> {
    let mut found = Vec::new();
    for step in fields::list(run, &["steps"]) {
        let ended = fields::list(step, &["attempts"]);
        let mut of_step: Vec<AttemptRef> = ended
            .iter()
            .chain(fields::member(step, &["live"]))
            .filter_map(|attempt| {
                Some(AttemptRef {
                    step: step_name(step),
                    number: fields::number(attempt, &["number"])?,
                    fence: fields::number(attempt, &["fence"]),
                })
            })
            .collect();
        of_step.sort();
        of_step.dedup();
        found.extend(of_step);
    }
    found
}

/// When an attempt ended; `None` while it runs.
pub(super) fn ended_at(run: &Value, attempt: &AttemptRef) -> Option<Millis> {
    let steps = fields::list(run, &["steps"]).iter();
    let of_step = steps.filter(|step| step_name(step) == attempt.step);
    of_step
        .flat_map(|step| fields::list(step, &["attempts"]))
        .filter(|row| {
            fields::number(row, &["number"]) == Some(attempt.number)
                && fields::number(row, &["fence"]) == attempt.fence
        })
        .find_map(|row| fields::instant(row, &["ended_at"]))
}

/// True while this attempt is being executed.
pub(super) fn is_live(run: &Value, attempt: &AttemptRef) -> bool {
    let steps = fields::list(run, &["steps"]);
    let live = steps
        .iter()
        .filter(|step| step_name(step) == attempt.step)
        .filter_map(|step| fields::member(step, &["live"]));
    live.into_iter().any(|live| {
        fields::number(live, &["number"]) == Some(attempt.number)
            && fields::number(live, &["fence"]) == attempt.fence
    })
}

/// The name of a step.
pub(super) fn step_name(step: &Value) -> String {
    fields::text(step, &["ref", "step"]).unwrap_or_else(|| "main".to_owned())
}

/// Why something waits, as the daemon says it.
pub(super) fn waiting_reason(value: &Value) -> Option<String> {
    let reason = fields::text(value, &["waiting_reason.text", "waiting_reason"])?;
    Some(one_line(&reason)).filter(|reason| !reason.is_empty())
}

/// One sentence for each thing that waits; one about the run if nothing does.
pub(super) fn reasons(run: &Value, face: &Clockface) -> Vec<String> {
    let state = state_of(run);
    if has_ended(&state) {
        let mut sentences = vec![format!(
            "It waits for nothing: {}.",
            outcome(run).trim_end_matches('.')
        )];
        let anew = || format!("To start its job anew: ductor run rerun {}", id_of(run));
        sentences.extend((state != "succeeded").then(anew));
        return sentences;
    }
    let mut sentences = Vec::new();
    sentences.extend(of_whole_run(run, &state));
    for step in fields::list(run, &["steps"]) {
        match state_of(step).as_str() {
            "running" => {
                let branches = branches_sentence(step);
                sentences.push(branches.unwrap_or_else(|| running_sentence(run, step, face)));
            }
            "succeeded" | "failed" | "cancelled" | "skipped" | "upstream_failed" => {}
            // Said of the run already.
            "ready" if state == "paused" => {}
            waiting => sentences.push(waiting_sentence(run, step, waiting)),
        }
    }
    if sentences.is_empty() {
        sentences.push(format!("The run is {state}; it goes on at any moment."));
    }
    sentences
}

/// What is said of a run as a whole: it has not begun, or somebody holds it.
fn of_whole_run(run: &Value, state: &str) -> Option<String> {
    let code = fields::text(run, &["waiting_reason.code"])?;
    let reason = waiting_reason(run)?;
    let reason = reason.trim_end_matches('.');
    let id = id_of(run);
    match (code.as_str(), state) {
        ("concurrency", _) => {
            let holders = fields::list(run, &["waiting_reason.holders"]);
            let first = holders.first().and_then(Value::as_str).unwrap_or("ID");
            Some(format!(
                "The run is {state}: {reason}. What keeps that one: ductor run why {first}"
            ))
        }
        ("paused", "paused") => Some(format!("{reason}. To go on: ductor run resume {id}")),
        _ => None,
    }
}

/// A scatter runs no command of its own.
fn branches_sentence(step: &Value) -> Option<String> {
    let code = fields::text(step, &["waiting_reason.code"])?;
    let said = waiting_reason(step).filter(|_| code == "branches")?;
    let name = step_name(step);
    let name = name.strip_suffix("[]").unwrap_or(&name);
    Some(format!(
        "Step {name} goes through its list: {}.",
        said.trim_end_matches('.')
    ))
}

fn running_sentence(run: &Value, step: &Value, face: &Clockface) -> String {
    let name = step_name(step);
    let since = fields::instant(step, &["live.claimed_at", "started_at"]);
    let since = since.map_or_else(String::new, |at| format!(" since {}", face.instant(at)));
    let node = fields::text(step, &["live.node"]).map_or_else(String::new, |node| format!(" on {node}"));
    if let Some(by) = fields::text(step, &["live.ending.by"]) {
        let cause = fields::text(step, &["live.ending.cause"]).unwrap_or_else(|| "ended".to_owned());
        return format!("Step {name} was {cause} by {by}; it waits until its processes have ended.");
    }
    let id = id_of(run);
    format!(
        "Step {name} runs{since}{node}; it waits for its command to end. See what it prints: ductor run logs {id} -f"
    )
}

fn waiting_sentence(run: &Value, step: &Value, state: &str) -> String {
    let name = step_name(step);
    let said = waiting_reason(step)
        .or_else(|| waiting_reason(run))
        .or_else(|| reason_of(step));
    let reason = said.unwrap_or_else(|| "it starts at any moment".to_owned());
    // An older daemon says it of the run only.
    let of = fields::member(step, &["waiting_reason"]).map_or(run, |_| step);
    let place = fields::number(of, &["waiting_reason.position"]);
    let place = place.map_or_else(String::new, |place| format!(", place {place} in the queue"));
    let pool = fields::text(of, &["waiting_reason.pool"]);
    let of_pool = pool
        .as_ref()
        .map_or_else(String::new, |pool| format!(" of pool {pool}"));
    let place = if place.is_empty() {
        place
    } else {
        format!("{place}{of_pool}")
    };
    let help = what_helps(run, of, &reason, pool.as_deref());
    format!(
        "Step {name} is {state}{place}: {}.{help}",
        reason.trim_end_matches('.')
    )
}

/// What would help, as a command.
fn what_helps(run: &Value, of: &Value, reason: &str, pool: Option<&str>) -> String {
    let job = quoted(&job_of(run));
    let code = fields::text(of, &["waiting_reason.code"]).unwrap_or_default();
    let told = |name: &str| fields::text(of, &[name]);
    let pool = pool.map(quoted);
    match (code.as_str(), pool) {
        ("paused", Some(pool)) if reason.starts_with("Pool") => {
            format!(" To go on: ductor slots resume {pool}")
        }
        ("paused", _) => format!(" To go on: ductor job resume {job}"),
        ("slots", Some(pool)) => {
            format!(" Who holds the slots, and who is before it: ductor slots show {pool}")
        }
        ("forbid", _) => format!(" Another instance of the job is live; to end it: ductor job stop {job}"),
        // A step of a workflow has its own patience.
        ("retry", _) if told("waiting_reason.max_attempts").is_some() => String::new(),
        ("retry", _) => format!(" To take it now: ductor run retry {}", id_of(run)),
        ("checkpoint", _) => " To answer it: ductor approval ls".to_owned(),
        ("child", _) => told("waiting_reason.child")
            .map(|child| format!(" What keeps that one: ductor run why {child}"))
            .unwrap_or_default(),
        ("node", _) => " Which daemons live: ductor node ls".to_owned(),
        (_, _) => String::new(),
    }
}

/// As a shell needs it.
pub(super) fn quoted(name: &str) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_.,:/@".contains(letter);
    if !name.is_empty() && name.chars().all(plain) {
        name.to_owned()
    } else {
        format!("'{}'", name.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn attempts_are_found_in_ended_and_running_steps() {
        let run = json!({"steps": [
            {"ref": "main", "state": "succeeded", "attempts": [{"number": 1, "fence": 5}, {"number": 1, "fence": 8}]},
            {"ref": "b", "state": "running", "attempts": [], "live": {"number": 2, "fence": 9}},
            {"ref": "c", "state": "queued", "attempts": [], "live": null},
        ]});
        let found = attempts_of(&run);
        let seen: Vec<(&str, i64, Option<i64>)> = found
            .iter()
            .map(|attempt| (attempt.step.as_str(), attempt.number, attempt.fence))
            .collect();
        assert_eq!(
            seen,
            [("main", 1, Some(5)), ("main", 1, Some(8)), ("b", 2, Some(9))]
        );
        assert!(is_live(&run, &found[2]) && !is_live(&run, &found[1]));
    }

    #[test]
    fn an_outcome_is_one_line() {
        let run = json!({"id": "run_1", "state": "failed", "started_at": "1970-01-01T00:00:01Z",
            "ended_at": "1970-01-01T00:00:03.5Z", "reason": "exit code 3\n"});
        assert_eq!(outcome(&run), "run_1 failed after 2.5 s: exit code 3");
        assert_eq!(exit_of(&run), Exit::Negative);
        let run = json!({"id": "run_1", "state": "succeeded"});
        assert_eq!(
            (outcome(&run).as_str(), exit_of(&run)),
            ("run_1 succeeded", Exit::Done)
        );
    }

    fn sentences(run: &Value) -> Vec<String> {
        reasons(run, &Clockface::utc())
    }

    #[test]
    fn what_waits_says_why_and_what_helps() {
        let waiting = |code: &str, text: &str| {
            json!({"id": "run_1", "job": "stock sync", "state": "pending",
                "waiting_reason": {"code": code, "text": text, "pool": "p", "position": 2},
                "steps": [{"ref": "main", "state": "queued"}]})
        };
        assert_eq!(
            sentences(&waiting("slots", "Needs 2 slot(s); 1 available")),
            [
                "Step main is queued, place 2 in the queue of pool p: Needs 2 slot(s); 1 available. \
                Who holds the slots, and who is before it: ductor slots show p"
            ]
        );
        assert!(
            sentences(&waiting("paused", "Pool is paused"))[0].ends_with("To go on: ductor slots resume p")
        );
        assert!(
            sentences(&waiting("paused", "Job is paused"))[0].ends_with("ductor job resume 'stock sync'")
        );
        assert!(sentences(&waiting("forbid", "x"))[0].ends_with("ductor job stop 'stock sync'"));
    }

    #[test]
    fn what_runs_and_what_has_ended_say_so() {
        let run = json!({"id": "run_1", "state": "running", "steps": [{"ref": "main", "state": "running",
            "live": {"node": "n-1", "claimed_at": "1970-01-01T00:00:00Z"}}]});
        assert!(sentences(&run)[0].starts_with("Step main runs since 1970-01-01 00:00:00 UTC on n-1;"));
        let run = json!({"id": "run_1", "state": "running", "steps": [{"ref": "load[]", "state": "running",
            "waiting_reason": {"code": "branches", "text": "1 of 3 branches have ended."}}]});
        assert_eq!(
            sentences(&run),
            ["Step load goes through its list: 1 of 3 branches have ended."]
        );
        let run = json!({"id": "run_1", "state": "cancelled", "reason": "by local"});
        assert_eq!(
            sentences(&run),
            [
                "It waits for nothing: run_1 cancelled: by local.",
                "To start its job anew: ductor run rerun run_1"
            ]
        );
        let run = json!({"id": "run_1", "state": "pending", "steps": []});
        assert_eq!(sentences(&run).len(), 1);
    }

    #[test]
    fn names_are_quoted_for_a_shell() {
        assert_eq!(quoted("a-b"), "a-b");
        assert_eq!(quoted("it's"), "'it'\\''s'");
    }
}
