//! What a receiver gets: one JSON document, and the same as variables of a command.

use serde::Serialize;

use super::effect::{Effect, Facts, LateFacts};
use super::kind::ReportKind;
use crate::domain::workflow::attempt::Outcome;
use crate::words::limits;
use crate::words::time::Millis;

/// What only the daemon that delivers knows.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Context {
    /// Where the run can be looked at.
    pub url: Option<String>,
    /// The job's command, in one text.
    pub command: String,
    /// The job's schedule as written.
    pub schedule: String,
}

/// The document.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    r#type: &'static str,
    job: String,
    run_id: Option<String>,
    attempt: Option<u32>,
    outcome: &'static str,
    reason: Option<String>,
    exit_code: Option<i32>,
    started_at: Option<String>,
    ended_at: Option<String>,
    scheduled_at: Option<String>,
    node: Option<String>,
    url: Option<String>,
    /// One sentence for people; receivers of chat messages show it.
    text: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    late: Option<LateView>,
    stdout_tail: String,
    stderr_tail: String,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct LateView {
    check: &'static str,
    limit_seconds: u64,
    observed_seconds: u64,
    last_success_at: Option<String>,
}

impl LateView {
    fn of(late: &LateFacts) -> LateView {
        LateView {
            check: late.check.word(),
            limit_seconds: late.limit_ms / 1_000,
            observed_seconds: late.observed_ms / 1_000,
            last_success_at: instant(late.last_success),
        }
    }
}

fn instant(at: Option<Millis>) -> Option<String> {
    at.map(|at| at.to_string())
}

/// The document of a report.
pub fn document(effect: &Effect, context: &Context) -> Document {
    let facts = &effect.facts;
    Document {
        r#type: effect.kind.type_word(),
        job: effect.job.to_string(),
        run_id: effect.run.map(|run| run.to_string()),
        attempt: facts.attempt,
        outcome: outcome_word(effect.kind, facts),
        reason: facts.reason.clone(),
        exit_code: facts.exit_code,
        started_at: instant(facts.started_at),
        ended_at: instant(facts.ended_at),
        scheduled_at: instant(facts.scheduled_at),
        node: facts.node.as_ref().map(ToString::to_string),
        url: context.url.clone(),
        text: sentence(effect),
        late: facts.late.as_ref().map(LateView::of),
        stdout_tail: facts.tails.stdout.clone(),
        stderr_tail: facts.tails.stderr.clone(),
    }
}

fn outcome_word(kind: ReportKind, facts: &Facts) -> &'static str {
    match kind {
        ReportKind::Late => "late",
        ReportKind::Alert => "breached",
        ReportKind::Success => Outcome::Succeeded.word(),
        ReportKind::Failure | ReportKind::PermanentFailure => facts.outcome.unwrap_or(Outcome::Failed).word(),
    }
}

fn sentence(effect: &Effect) -> String {
    let job = &effect.job;
    let reason = match &effect.facts.reason {
        Some(reason) => format!(": {}", reason.lines().next().unwrap_or_default()),
        None => String::new(),
    };
    let run = match (effect.kind, effect.facts.attempt, effect.run) {
        (ReportKind::Failure, Some(attempt), Some(run)) => format!(" (attempt {attempt} of {run})"),
        (_, _, Some(run)) => format!(" ({run})"),
        (_, _, None) => String::new(),
    };
    match effect.kind {
        ReportKind::Failure => format!("Job {job} failed{reason}{run}"),
        ReportKind::PermanentFailure => format!("Job {job} failed for good{reason}{run}"),
        ReportKind::Success => format!("Job {job} succeeded{run}"),
        ReportKind::Late => format!("Job {job} is late{reason}"),
        ReportKind::Alert => format!("Pool {job} is late{reason}"),
    }
}

/// The variables of a report's command: ours, and those that scripts written for yacron and cronstable expect.
pub fn variables(effect: &Effect, context: &Context) -> Vec<(String, String)> {
    let document = document(effect, context);
    let mut found = prefixed("DUCTOR_REPORT_", own(effect, &document));
    let known = known(effect, context, &document);
    found.extend(prefixed("YACRON_", known.clone()));
    found.extend(prefixed("CRONSTABLE_", known));
    found.extend(prefixed("CRONSTABLE_", newer(&document)));
    found
}

type Pairs = Vec<(&'static str, String)>;

/// A variable cannot hold a NUL, and what a command prints can.
fn prefixed(prefix: &str, pairs: Pairs) -> Vec<(String, String)> {
    pairs
        .into_iter()
        .map(|(key, value)| (format!("{prefix}{key}"), value.replace('\0', "\u{fffd}")))
        .collect()
}

/// Nothing is the empty text.
fn text<T: ToString>(value: Option<T>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn own(effect: &Effect, document: &Document) -> Pairs {
    let late = document.late.as_ref();
    vec![
        ("TYPE", document.r#type.to_owned()),
        ("ID", effect.id.to_string()),
        ("JOB", document.job.clone()),
        ("RUN_ID", text(document.run_id.as_ref())),
        ("ATTEMPT", text(document.attempt)),
        ("OUTCOME", document.outcome.to_owned()),
        ("REASON", text(document.reason.as_ref())),
        ("EXIT_CODE", text(document.exit_code)),
        ("STARTED_AT", text(document.started_at.as_ref())),
        ("ENDED_AT", text(document.ended_at.as_ref())),
        ("SCHEDULED_AT", text(document.scheduled_at.as_ref())),
        ("NODE", text(document.node.as_ref())),
        ("URL", text(document.url.as_ref())),
        ("TEXT", document.text.clone()),
        ("STDOUT_TAIL", document.stdout_tail.clone()),
        ("STDERR_TAIL", document.stderr_tail.clone()),
        ("LATE_CHECK", text(late.map(|late| late.check))),
        ("LATE_LIMIT_SECONDS", text(late.map(|late| late.limit_seconds))),
        (
            "LATE_OBSERVED_SECONDS",
            text(late.map(|late| late.observed_seconds)),
        ),
        (
            "LAST_SUCCESS_AT",
            text(late.and_then(|late| late.last_success_at.as_ref())),
        ),
    ]
}

fn known(effect: &Effect, context: &Context, document: &Document) -> Pairs {
    let has_failed = effect.kind != ReportKind::Success;
    // A tail is cut at a character, which has at most four bytes.
    let is_cut = |tail: &str| u8::from(tail.len() + 4 > limits::REPORT_TAIL_BYTES_MAX).to_string();
    vec![
        ("FAIL_REASON", text(document.reason.as_ref())),
        ("FAILED", u8::from(has_failed).to_string()),
        ("JOB_NAME", document.job.clone()),
        ("JOB_COMMAND", context.command.clone()),
        ("JOB_SCHEDULE", context.schedule.clone()),
        ("RETCODE", text(document.exit_code)),
        ("STDERR", document.stderr_tail.clone()),
        ("STDOUT", document.stdout_tail.clone()),
        ("STDERR_TRUNCATED", is_cut(&document.stderr_tail)),
        ("STDOUT_TRUNCATED", is_cut(&document.stdout_tail)),
    ]
}

fn newer(document: &Document) -> Pairs {
    let late = document.late.as_ref();
    vec![
        ("HOST", text(document.node.as_ref())),
        ("RUN_ID", text(document.run_id.as_ref())),
        ("STARTED_AT", text(document.started_at.as_ref())),
        ("SLA_CHECK", text(late.map(|late| late.check))),
        ("SLA_THRESHOLD_SECONDS", text(late.map(|late| late.limit_seconds))),
        (
            "SLA_OBSERVED_SECONDS",
            text(late.map(|late| late.observed_seconds)),
        ),
        (
            "LAST_SUCCESS_AT",
            text(late.and_then(|late| late.last_success_at.as_ref())),
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::super::effect::tests::effect;
    use super::*;
    use crate::domain::lateness::SlaCheck;
    use crate::words::names::NodeName;

    fn failed() -> Effect {
        let mut effect = effect(1);
        effect.facts = Facts {
            attempt: Some(2),
            outcome: Some(Outcome::TimedOut),
            reason: Some("execution timeout of 1 s".to_owned()),
            exit_code: Some(-100),
            started_at: Some(Millis(1_000)),
            ended_at: Some(Millis(2_000)),
            scheduled_at: Some(Millis(0)),
            node: NodeName::new("n-1").ok(),
            ..effect.facts
        };
        effect
    }

    #[test]
    fn the_document_has_the_fields_of_the_specification() {
        let context = Context {
            url: Some("http://127.0.0.1:8470/ui/runs/run_1".to_owned()),
            ..Context::default()
        };
        let document = serde_json::to_value(document(&failed(), &context)).unwrap();
        assert_eq!(
            document,
            serde_json::json!({
                "type": "job.attempt.failed", "job": "nightly", "run_id": "run_01040g2081040g2081040g2081",
                "attempt": 2, "outcome": "timed_out", "reason": "execution timeout of 1 s", "exit_code": -100,
                "started_at": "1970-01-01T00:00:01.000Z", "ended_at": "1970-01-01T00:00:02.000Z",
                "scheduled_at": "1970-01-01T00:00:00.000Z", "node": "n-1",
                "url": "http://127.0.0.1:8470/ui/runs/run_1",
                "text": "Job nightly failed: execution timeout of 1 s (attempt 2 of run_01040g2081040g2081040g2081)",
                "stdout_tail": "out\n", "stderr_tail": "",
            })
        );
    }

    #[test]
    fn a_late_job_names_the_limit() {
        let mut late = effect(1);
        late.kind = ReportKind::Late;
        late.run = None;
        late.facts = Facts {
            reason: Some("no success since then".to_owned()),
            late: Some(LateFacts {
                check: SlaCheck::MaxTimeSinceSuccess,
                limit_ms: 60_000,
                observed_ms: 61_500,
                last_success: None,
            }),
            ..Facts::default()
        };
        let document = serde_json::to_value(document(&late, &Context::default())).unwrap();
        assert_eq!(document["outcome"], "late");
        assert_eq!(document["text"], "Job nightly is late: no success since then");
        assert_eq!(
            document["late"],
            serde_json::json!({"check": "maxTimeSinceSuccess", "limit_seconds": 60, "observed_seconds": 61,
                "last_success_at": null})
        );
    }

    #[test]
    fn variables_are_those_of_yacron_too() {
        let mut effect = failed();
        effect.facts.tails.stderr = "a\0b".to_owned();
        let context = Context {
            command: "true".to_owned(),
            ..Context::default()
        };
        let variables = variables(&effect, &context);
        let value = |name: &str| {
            let found: Vec<&str> = variables
                .iter()
                .filter(|(key, _)| key == name)
                .map(|(_, value)| value.as_str())
                .collect();
            assert_eq!(found.len(), 1, "{name}");
            found[0].to_owned()
        };
        assert_eq!(value("DUCTOR_REPORT_ATTEMPT"), "2");
        assert_eq!(value("YACRON_FAIL_REASON"), "execution timeout of 1 s");
        assert_eq!(value("YACRON_FAILED"), "1");
        assert_eq!(value("YACRON_JOB_COMMAND"), "true");
        assert_eq!(value("CRONSTABLE_RETCODE"), "-100");
        assert_eq!(value("YACRON_STDERR"), "a\u{fffd}b");
        assert_eq!(value("YACRON_STDOUT_TRUNCATED"), "0");
        assert_eq!(value("CRONSTABLE_SLA_CHECK"), "");
    }
}
