//! What all steps have: name, type, when, join, retry, timeouts, slots.

use std::collections::BTreeMap;

use super::document::short;
use super::fields::{Fields, Out, Spot};
use super::{command, coordinator, worker};
use crate::domain::workflow::definition::SlotDemand;
use crate::domain::workflow::graph::document::{Join, OnError, RetryDoc, StepDoc, TimeoutsDoc};
use crate::domain::workflow::graph::finding::{did_you_mean, shown};
use crate::domain::workflow::graph::kinds::{Dataflow, StepKind};
use crate::domain::workflow::graph::span::Span;
use crate::words::limits;
use crate::words::names::SlotPoolName;

const KEYS: [&str; 11] = [
    "ref",
    "type",
    "title",
    "args",
    "when",
    "join",
    "retry",
    "timeouts",
    "slots",
    "on_error",
    "idempotency_key",
];

/// What a type needs to be read: its arguments, and the defaults for the steps inside it.
type ReadArgs = fn(&Spot<'_>, &Defaults, &mut Out) -> Option<StepKind>;

/// The types, each with the reader of its arguments.
const TYPES: [(&str, ReadArgs); 15] = [
    ("STEP_TYPE_DATAFLOW", coordinator::dataflow),
    ("STEP_TYPE_SWITCH", coordinator::switch),
    ("STEP_TYPE_WAIT", coordinator::wait),
    ("STEP_TYPE_SCATTER", coordinator::scatter),
    ("STEP_TYPE_GATHER", coordinator::gather),
    ("STEP_TYPE_SUBWORKFLOW", coordinator::subworkflow),
    ("STEP_TYPE_CHECKPOINT", coordinator::checkpoint),
    ("STEP_TYPE_APPROVAL", coordinator::approval),
    ("STEP_TYPE_FAIL", coordinator::fail),
    ("STEP_TYPE_SUCCEED", coordinator::succeed),
    ("STEP_TYPE_COMMAND", command::command),
    ("STEP_TYPE_SENSOR", worker::sensor),
    ("STEP_TYPE_HTTP", worker::http),
    ("STEP_TYPE_TASK", worker::task),
    ("STEP_TYPE_ROUTE", worker::route),
];

/// Types whose meaning comes with a later release.
const LATER: [&str; 6] = [
    "STEP_TYPE_EVENT_SET",
    "STEP_TYPE_EMIT",
    "STEP_TYPE_CONTINUE_AS_NEW",
    "STEP_TYPE_ACTION",
    "STEP_TYPE_AI_ACTION",
    "STEP_TYPE_AI_AGENT",
];

const JOINS: [(&str, Join); 4] = [
    ("all_success", Join::AllSuccess),
    ("all_done", Join::AllDone),
    ("any_success", Join::AnySuccess),
    ("none_failed", Join::NoneFailed),
];

const ON_ERROR: [(&str, OnError); 2] = [("fail", OnError::Fail), ("continue", OnError::Continue)];

/// Before the second attempt, unless something else is said.
const INITIAL_INTERVAL: Span = Span(1_000);

/// What steps have unless they say otherwise.
#[derive(Debug, Default)]
pub(super) struct Defaults {
    retry: RetryFields,
    timeouts: TimeoutsDoc,
}

impl Defaults {
    pub(super) fn read(spot: &Spot<'_>, out: &mut Out) -> Defaults {
        let Some(fields) = spot.object(&["retry", "timeouts"], &[], out) else {
            return Defaults::default();
        };
        let found = Defaults {
            retry: fields
                .get("retry")
                .map(|spot| RetryFields::read(&spot, out))
                .unwrap_or_default(),
            timeouts: fields
                .get("timeouts")
                .map(|spot| timeouts(&spot, out))
                .unwrap_or_default(),
        };
        if let Some(spot) = fields.get("retry") {
            let initial = found.retry.initial_interval.unwrap_or(INITIAL_INTERVAL);
            refuse_shorter(initial, found.retry.max_interval, &spot.at, out);
        }
        found
    }
}

/// The fields of a retry as far as they were given.
#[derive(Debug, Default)]
struct RetryFields {
    max_attempts: Option<u32>,
    initial_interval: Option<Span>,
    coefficient: Option<f64>,
    max_interval: Option<Span>,
    jitter: Option<f64>,
    non_retryable: Option<Vec<String>>,
    retry_if: Option<String>,
}

impl RetryFields {
    fn read(spot: &Spot<'_>, out: &mut Out) -> RetryFields {
        const KEYS: [&str; 7] = [
            "max_attempts",
            "initial_interval",
            "coefficient",
            "max_interval",
            "jitter",
            "non_retryable",
            "retry_if",
        ];
        let Some(fields) = spot.object(&KEYS, &[], out) else {
            return RetryFields::default();
        };
        let codes =
            |spot: Spot<'_>, out: &mut Out| spot.texts(limits::RETRY_CODES_MAX, limits::LABEL_CHARS_MAX, out);
        RetryFields {
            max_attempts: fields.count("max_attempts", (1, limits::STEP_ATTEMPTS_MAX), out),
            initial_interval: fields.span("initial_interval", out),
            coefficient: fields
                .get("coefficient")
                .and_then(|spot| spot.number(1.0, 100.0, out)),
            max_interval: fields.span("max_interval", out),
            jitter: fields.get("jitter").and_then(|spot| spot.number(0.0, 1.0, out)),
            non_retryable: fields.get("non_retryable").map(|spot| codes(spot, out)),
            retry_if: fields.cel("retry_if", out),
        }
    }

    /// These over those of the document over those of the type.
    fn over(self, defaults: &RetryFields, kind: &StepKind, at: &str, out: &mut Out) -> RetryDoc {
        let of_type = if matches!(kind, StepKind::Http(_) | StepKind::Task(_)) {
            3
        } else {
            1
        };
        let initial = self
            .initial_interval
            .or(defaults.initial_interval)
            .unwrap_or(INITIAL_INTERVAL);
        let usual_max = Span(initial.0.saturating_mul(100).min(Span::LONGEST.0));
        let given_max = self.max_interval.or(defaults.max_interval);
        // What the defaults say alone is told there.
        if self.initial_interval.is_some() || self.max_interval.is_some() {
            refuse_shorter(initial, given_max, at, out);
        }
        RetryDoc {
            max_attempts: self.max_attempts.or(defaults.max_attempts).unwrap_or(of_type),
            initial_interval: initial,
            coefficient: self.coefficient.or(defaults.coefficient).unwrap_or(2.0),
            max_interval: given_max.unwrap_or(usual_max),
            jitter: self.jitter.or(defaults.jitter).unwrap_or(0.1),
            non_retryable: self
                .non_retryable
                .or_else(|| defaults.non_retryable.clone())
                .unwrap_or_default(),
            retry_if: self.retry_if.or_else(|| defaults.retry_if.clone()),
        }
    }
}

fn refuse_shorter(initial: Span, max: Option<Span>, at: &str, out: &mut Out) {
    if let Some(max) = max.filter(|max| *max < initial) {
        let message = format!("`max_interval` ({max}) is shorter than `initial_interval` ({initial})");
        out.say(at, "workflow.conflict", message);
    }
}

fn timeouts(spot: &Spot<'_>, out: &mut Out) -> TimeoutsDoc {
    let Some(fields) = spot.object(&["queue", "attempt", "total", "heartbeat"], &[], out) else {
        return TimeoutsDoc::default();
    };
    let mut span = |name: &str| {
        let found = fields.span(name, out);
        if found == Some(Span(0)) {
            let at = format!("{}/{name}", fields.at);
            out.say(&at, "workflow.out_of_range", "must be longer than nothing");
        }
        found
    };
    TimeoutsDoc {
        queue: span("queue"),
        attempt: span("attempt"),
        total: span("total"),
        heartbeat: span("heartbeat"),
    }
}

/// Reads one step; `None` if it has no name.
pub(super) fn read(spot: &Spot<'_>, defaults: &Defaults, out: &mut Out) -> Option<StepDoc> {
    let fields = spot.object(&KEYS, &[], out)?;
    let name = fields.need("ref", out).and_then(|spot| spot.step_ref(out));
    let kind = kind(&fields, defaults, out);
    if let (Some(name), None) = (&name, &kind) {
        out.doubtful.insert(name.to_string());
    }
    // Nothing can be said of what a step of an unknown type may have.
    let is_executed = kind.as_ref().is_none_or(StepKind::has_attempts);
    let mut kind = kind.unwrap_or(StepKind::Dataflow(Dataflow::Merge { merge: Vec::new() }));
    let own = fields.get("retry").map(|spot| RetryFields::read(&spot, out));
    let retry_at = fields
        .get("retry")
        .map_or_else(|| fields.at.clone(), |spot| spot.at);
    let limits_of_time = fields
        .get("timeouts")
        .map(|spot| timeouts(&spot, out))
        .unwrap_or_default();
    let slots = fields.get("slots").and_then(|spot| slots(&spot, out));
    if !is_executed {
        refuse_for_coordinator(&fields, limits_of_time, kind.word(), out);
    }
    let has_attempts = kind.has_attempts();
    let is_process = kind.command().is_some();
    if has_attempts && !is_process {
        refuse_slots(&fields, kind.word(), out);
    }
    let retry = has_attempts.then(|| {
        own.unwrap_or_default()
            .over(&defaults.retry, &kind, &retry_at, out)
    });
    let timeouts = if has_attempts {
        command::with_execution_time(&mut kind, timeouts_over(limits_of_time, defaults.timeouts))
    } else {
        limits_of_time
    };
    Some(StepDoc {
        name: name?,
        title: short(&fields, "title", limits::TITLE_CHARS_MAX, out),
        kind,
        when: fields.cel("when", out),
        join: fields.word("join", &JOINS, Join::default(), out),
        retry,
        timeouts,
        slots: slots.filter(|_| is_process),
        on_error: fields.word("on_error", &ON_ERROR, OnError::default(), out),
        idempotency_key: fields.cel("idempotency_key", out),
    })
}

fn kind(fields: &Fields<'_>, defaults: &Defaults, out: &mut Out) -> Option<StepKind> {
    let spot = fields.need("type", out)?;
    let word = spot.text(out)?;
    let Some((_, read)) = TYPES.iter().find(|(known, _)| *known == word) else {
        if LATER.contains(&word) {
            out.say(
                &spot.at,
                "workflow.unsupported",
                format!("'{word}' is not supported yet"),
            );
            return None;
        }
        let known = TYPES.iter().map(|(known, _)| *known);
        // Most people leave the first part out, or write it small.
        let meant = format!("STEP_TYPE_{}", word.to_ascii_uppercase());
        let near = match known
            .clone()
            .find(|known| *known == meant || known.eq_ignore_ascii_case(word))
        {
            Some(known) => format!("; did you mean `{known}`?"),
            None => did_you_mean(word, known),
        };
        let message = format!("unknown step type `{}`{near}", shown(word));
        out.say(&spot.at, "workflow.unknown_step_type", message);
        return None;
    };
    let nothing = serde_json::Value::Object(serde_json::Map::new());
    let args = fields.get("args").unwrap_or(Spot {
        value: &nothing,
        at: fields.at.clone(),
    });
    read(&args, defaults, out)
}

/// Slots are held by processes: what is executed elsewhere, or without a process, has other limits.
fn refuse_slots(fields: &Fields<'_>, word: &str, out: &mut Out) {
    let Some(spot) = fields.get("slots") else { return };
    let message = format!(
        "slots of a slot pool are held by processes, and {word} is none here; `max_parallel` of a scatter and \
         `concurrency` of the workflow limit how much of it is under way"
    );
    out.say(&spot.at, "workflow.not_for_this_type", message);
}

/// What only means something where a worker executes the step.
fn refuse_for_coordinator(fields: &Fields<'_>, given: TimeoutsDoc, word: &str, out: &mut Out) {
    let mut refuse = |at: String, what: &str| {
        let message = format!("{word} has no attempts, so `{what}` means nothing here");
        out.say(&at, "workflow.not_for_this_type", message);
    };
    for name in ["retry", "slots", "idempotency_key"] {
        if let Some(spot) = fields.get(name) {
            refuse(spot.at, name);
        }
    }
    let parts = [
        ("queue", given.queue),
        ("attempt", given.attempt),
        ("heartbeat", given.heartbeat),
    ];
    for (name, _) in parts.iter().filter(|(_, span)| span.is_some()) {
        refuse(
            format!("{}/timeouts/{name}", fields.at),
            &format!("timeouts.{name}"),
        );
    }
}

fn timeouts_over(own: TimeoutsDoc, defaults: TimeoutsDoc) -> TimeoutsDoc {
    TimeoutsDoc {
        queue: own.queue.or(defaults.queue),
        attempt: own.attempt.or(defaults.attempt),
        total: own.total.or(defaults.total),
        heartbeat: own.heartbeat.or(defaults.heartbeat),
    }
}

fn slots(spot: &Spot<'_>, out: &mut Out) -> Option<SlotDemand> {
    const KEYS: [&str; 5] = ["pool", "slots", "priority", "queue_timeout", "queue_timeout_ms"];
    let fields = spot.object(&KEYS, &[], out)?;
    let named = fields.need("pool", out)?;
    let name = named.text(out)?;
    let slot_pool = SlotPoolName::new(name);
    if let Err(error) = &slot_pool {
        out.say(&named.at, "workflow.bad_value", error.to_string());
    }
    Some(SlotDemand {
        slot_pool: slot_pool.ok()?,
        slots: fields.count("slots", (1, limits::SLOTS_MAX), out).unwrap_or(1),
        priority: fields
            .get("priority")
            .and_then(|spot| priority(&spot, out))
            .unwrap_or(0),
        queue_timeout_ms: fields
            .span_or_ms("queue_timeout", out)
            .map_or(limits::QUEUE_TIMEOUT_MS, |span| span.0),
    })
}

fn priority(spot: &Spot<'_>, out: &mut Out) -> Option<i32> {
    let number = spot.value.as_i64().and_then(|number| i32::try_from(number).ok());
    if number.is_none() {
        let message = format!("must be a whole number from {} to {}", i32::MIN, i32::MAX);
        out.say(&spot.at, "workflow.out_of_range", message);
    }
    number
}

/// Texts by name, a number or a flag as its text.
pub(super) fn texts_by_name(spot: &Spot<'_>, out: &mut Out) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let Some(fields) = spot.map(out) else { return found };
    for (name, spot) in fields.each() {
        if let Some(text) = scalar(&spot, out) {
            found.insert(name.to_owned(), text);
        }
    }
    found
}

/// A text, or a number or flag as its text.
pub(super) fn scalar(spot: &Spot<'_>, out: &mut Out) -> Option<String> {
    use serde_json::Value;
    match spot.value {
        Value::String(text) => Some(text.clone()),
        Value::Number(_) | Value::Bool(_) => Some(spot.value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => {
            spot.wrong("must be a text", out);
            None
        }
    }
}
