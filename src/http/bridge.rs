//! `/api/bridge`: code in any language asks for tasks, says that it is alive, and says how a task ended.

use std::sync::Arc;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::caller::{self, Caller};
use super::error::{FieldFault, Problem};
use super::input;
use super::param::{Kind, Param};
use super::runs::Data;
use crate::domain::workflow::graph::span::Span;
use crate::domain::workflow::graph::tick::StepError;
use crate::engine::bridge::{self, BridgeError, Offer, Poll, Said, TaskEnd};
use crate::engine::changes::tasks::Heard;
use crate::words::limits;

/// How the path of every request of a worker begins.
pub(super) const HEAD: &str = "/api/bridge/";

/// The fields of a poll.
pub(super) const POLL: [Param; 4] = [
    Param::query("queue", Kind::Text, "The queue.").needed(),
    Param::query(
        "worker",
        Kind::Text,
        "What the worker calls itself; it is shown to people.",
    )
    .needed(),
    Param::query(
        "max",
        Kind::Integer,
        "So many tasks at most, 1 to 256; 1 unless given.",
    ),
    Param::query(
        "wait_ms",
        Kind::Integer,
        "So long the answer waits for the first task, at most 60000; no wait unless given.",
    ),
];

/// The fields of a completion.
pub(super) const COMPLETE: [Param; 1] = [Param::query(
    "output",
    Kind::Any,
    "What the step has made: any JSON of up to 32 MiB; null unless given.",
)];

/// The fields of a failure.
pub(super) const FAIL: [Param; 4] = [
    Param::query(
        "code",
        Kind::Text,
        "Stable, for programs: up to 64 letters, digits, `.`, `_` and `-`.",
    )
    .needed(),
    Param::query("message", Kind::Text, "A sentence for people."),
    Param::query(
        "retryable",
        Kind::Flag,
        "False: no other attempt, whatever the step's policy says.",
    ),
    Param::query(
        "retry_after",
        Kind::Any,
        "The next attempt does not come before this: seconds, or a text like `90s`.",
    ),
];

/// The fields of a batch.
pub(super) const BATCH: [Param; 2] = [
    Param::query(
        "items",
        Kind::Any,
        "Up to 256 of `{token, output}` or `{token, error: {code, message, retryable, retry_after}}`.",
    )
    .needed(),
    Param::query(
        "poll",
        Kind::Any,
        "What the worker asks for with it, as for a poll; it is claimed in the same commit.",
    ),
];

/// A claimed task.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskView {
    /// With which the worker speaks of it. Nobody else can.
    token: String,
    run: String,
    workflow: String,
    step: String,
    /// From 1; the same again when a worker before was not heard of.
    attempt: u32,
    /// Rises with each claim.
    fence: u64,
    /// What is to be done, by the definition's own word.
    task: String,
    #[schema(value_type = Value)]
    input: Box<RawValue>,
    /// The worker must be heard of before this.
    deadline: String,
    /// The attempt is ended then, whatever is heard.
    attempt_deadline: Option<String>,
    /// The same for all attempts of the step.
    idempotency_key: String,
}

/// What a poll has claimed.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ClaimedTasks {
    tasks: Vec<TaskView>,
}

/// The answer to a sign of life.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct HeartbeatView {
    /// Somebody wants it ended: stop, and say `:fail` or `:complete`.
    cancel: bool,
    /// Why.
    reason: Option<String>,
    /// The worker must be heard of again before this; none when the claim has ended.
    deadline: Option<String>,
}

/// The answer to the end of a task.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TaskSaid {
    /// `done`, or `already` when the same was said before.
    result: &'static str,
}

/// The answer to one item of a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct ItemSaid {
    token: String,
    /// `done`, `already`, `stale` (the claim has ended otherwise: nothing was written), `unknown` (the token is none), or
    /// `unclear` (say it again).
    result: &'static str,
}

/// The answer to a batch.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct BatchSaid {
    /// In the order of the items.
    results: Vec<ItemSaid>,
    /// What was claimed.
    tasks: Vec<TaskView>,
}

impl TaskView {
    fn of(offer: Offer) -> TaskView {
        let task = offer.task;
        let until = task.until.unwrap_or(task.claim.claimed_at);
        TaskView {
            token: offer.token,
            run: task.run.id.to_string(),
            workflow: task.run.definition.to_string(),
            step: task.step.step.to_string(),
            attempt: task.step.attempt,
            fence: task.claim.fence,
            task: offer.name,
            input: RawValue::from_string(offer.input.as_str().to_owned()).expect("it is JSON"),
            deadline: until.to_string(),
            attempt_deadline: offer.attempt_until.map(|until| until.to_string()),
            idempotency_key: offer.idempotency_key,
        }
    }
}

impl From<BridgeError> for Problem {
    fn from(error: BridgeError) -> Problem {
        match error {
            BridgeError::Read(error) => error.into(),
            BridgeError::Change(error) => error.into(),
        }
    }
}

/// The bytes that the body of a worker's request may have.
pub(super) fn body_bytes_max() -> u64 {
    limits::PAYLOAD_BYTES_MAX + limits::TASK_BODY_SLACK_BYTES
}

fn name(fields: &Map<String, Value>, at: &str, field: &str, faults: &mut Vec<FieldFault>) -> String {
    let text = fields.get(field).and_then(Value::as_str).unwrap_or_default();
    let count = text.chars().count();
    // Names that begin so are this program's own queues.
    let is_good = (1..=limits::WORKER_CHARS_MAX).contains(&count) && !text.starts_with('!');
    if !is_good || text.chars().any(char::is_control) {
        faults.push(FieldFault {
            pointer: format!("{at}/{field}"),
            code: "type",
            detail: format!("must be a text of 1 to {} characters", limits::WORKER_CHARS_MAX),
        });
    }
    text.to_owned()
}

fn whole(
    fields: &Map<String, Value>,
    (at, field): (&str, &str),
    (min, max): (u64, u64),
    faults: &mut Vec<FieldFault>,
) -> Option<u64> {
    let value = fields.get(field).filter(|value| !value.is_null())?;
    let number = value.as_u64().filter(|number| (min..=max).contains(number));
    if number.is_none() {
        faults.push(FieldFault {
            pointer: format!("{at}/{field}"),
            code: "type",
            detail: format!("must be a whole number from {min} to {max}"),
        });
    }
    number
}

fn poll_of(app: &App, fields: &Map<String, Value>, at: &str, faults: &mut Vec<FieldFault>) -> Poll {
    let queue = name(fields, at, "queue", faults);
    let worker = name(fields, at, "worker", faults);
    let max = whole(
        fields,
        (at, "max"),
        (1, limits::TASKS_PER_POLL_MAX as u64),
        faults,
    );
    let wait = whole(fields, (at, "wait_ms"), (0, limits::POLL_WAIT_MS_MAX), faults);
    // The answer must be out before the request is over.
    let limit = app.config().server.request_timeout_ms;
    let most = limit - limit / 10;
    Poll {
        queue,
        worker,
        max: max.and_then(|max| usize::try_from(max).ok()).unwrap_or(1),
        wait_ms: wait.unwrap_or(0).min(most),
    }
}

fn stopping(app: &App) -> Result<(), Problem> {
    if app.engine.is_stopping() {
        let detail = "ductor is stopping and gives out nothing; try again when it is back";
        return Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, detail));
    }
    Ok(())
}

/// Claims tasks.
pub(super) async fn poll(State(app): State<App>, caller: Caller, body: Bytes) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &POLL)?;
    let poll = poll_of(&app, &fields, "", &mut faults);
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    stopping(&app)?;
    let offers = tokio::select! {
        biased;
        offers = bridge::poll(&app.engine, &poll) => offers?,
        () = caller.until_gone(&app) => return Err(caller::unknown()),
    };
    let tasks = offers.into_iter().map(TaskView::of).collect();
    let data = ClaimedTasks { tasks };
    Ok(Json(Data { data }).into_response())
}

fn unknown() -> Problem {
    Problem::not_found("this token is not one of this daemon's; tokens come from `/api/bridge/poll`")
}

fn stale() -> Problem {
    let detail = "the claim of this token has ended: its task was given to another worker, or is over";
    Problem::forbidden_by_state(detail).code("STALE")
}

/// A sign of life.
pub(super) async fn heartbeat(
    State(app): State<App>,
    Path(token): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    input::no_fields(&body)?;
    let data = match bridge::heartbeat(&app.engine, &token).await? {
        None => return Err(unknown()),
        Some(Heard::Gone(false)) => return Err(stale()),
        Some(Heard::Gone(true)) => HeartbeatView {
            cancel: true,
            reason: Some("the run has ended".to_owned()),
            deadline: None,
        },
        Some(Heard::Holds(until, why)) => HeartbeatView {
            cancel: why.is_some(),
            reason: why,
            deadline: Some(until.to_string()),
        },
    };
    Ok(Json(Data { data }).into_response())
}

/// A task ended well.
pub(super) async fn complete(
    State(app): State<App>,
    Path(token): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let (mut fields, faults) = input::object(&body, &COMPLETE)?;
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let output = fields.remove("output").unwrap_or_default();
    check_size(&output)?;
    say(&app, token, TaskEnd::Completed(Arc::new(output))).await
}

/// A task ended otherwise.
pub(super) async fn fail(
    State(app): State<App>,
    Path(token): Path<String>,
    body: Bytes,
) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &FAIL)?;
    let error = error_of(&fields, "", &mut faults);
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    say(&app, token, TaskEnd::Failed(error)).await
}

/// An output is a payload: it is measured as it will be stored.
fn check_size(output: &Value) -> Result<(), Problem> {
    struct Count(u64);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len() as u64;
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, output).expect("counting does not fail");
    if count.0 <= limits::PAYLOAD_BYTES_MAX {
        return Ok(());
    }
    let detail = format!(
        "the output has {} bytes; a payload may have {}",
        count.0,
        limits::PAYLOAD_BYTES_MAX
    );
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, detail).code("payload.too_large"))
}

async fn say(app: &App, token: String, end: TaskEnd) -> Result<Response, Problem> {
    let (said, _) = bridge::say(&app.engine, vec![(token, end)], None).await?;
    let result = match said.first() {
        Some(Said::Done) => "done",
        Some(Said::Already) => "already",
        Some(Said::Stale) => return Err(stale()),
        Some(Said::Unknown) => return Err(unknown()),
        Some(Said::Unclear) | None => return Err(Problem::unavailable().member("outcome", "unknown")),
    };
    let data = TaskSaid { result };
    Ok(Json(Data { data }).into_response())
}

fn error_of(fields: &Map<String, Value>, at: &str, faults: &mut Vec<FieldFault>) -> StepError {
    let mut fault = |field: &str, detail: &str| {
        faults.push(FieldFault {
            pointer: format!("{at}/{field}"),
            code: "type",
            detail: detail.to_owned(),
        });
    };
    let given = |field: &str| fields.get(field).filter(|value| !value.is_null());
    let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let code = given("code").and_then(Value::as_str).unwrap_or_default();
    if !(1..=64).contains(&code.len()) || !code.bytes().all(letter) {
        fault(
            "code",
            "must be a text of 1 to 64 letters, digits, `.`, `_` and `-`",
        );
    }
    let message = match given("message") {
        None => code.to_owned(),
        Some(Value::String(text)) => text.chars().take(limits::TASK_MESSAGE_CHARS_MAX).collect(),
        Some(_) => {
            fault("message", "must be a text");
            String::new()
        }
    };
    let retryable = match given("retryable") {
        None => true,
        Some(Value::Bool(yes)) => *yes,
        Some(_) => {
            fault("retryable", "must be true or false");
            true
        }
    };
    let retry_after_ms = given("retry_after").and_then(|value| {
        let after = patience_of(value);
        if after.is_none() {
            fault("retry_after", "must be seconds up to a day, or a text like `90s`");
        }
        after
    });
    StepError {
        code: code.to_owned(),
        message,
        retryable,
        retry_after_ms,
    }
}

fn patience_of(value: &Value) -> Option<u64> {
    let ms = if let Value::String(text) = value {
        text.parse::<Span>().ok()?.0
    } else {
        value.as_u64()?.checked_mul(1_000)?
    };
    (ms <= limits::HTTP_RETRY_AFTER_MS_MAX).then_some(ms)
}

fn item_of(number: usize, item: &Value, faults: &mut Vec<FieldFault>) -> Option<(String, TaskEnd)> {
    let at = format!("/items/{number}");
    let mut fault = |pointer: String, detail: &str| {
        faults.push(FieldFault {
            pointer,
            code: "type",
            detail: detail.to_owned(),
        });
        None
    };
    let Some(fields) = item.as_object() else {
        return fault(at, "must be an object with a `token`");
    };
    if let Some(name) = { fields.keys() }.find(|name| !["token", "output", "error"].contains(&name.as_str()))
    {
        let pointer = format!("{at}/{}", input::escaped(name));
        return fault(
            pointer,
            "unknown field; an item has `token`, and `output` or `error`",
        );
    }
    let Some(token) = fields.get("token").and_then(Value::as_str) else {
        return fault(format!("{at}/token"), "must be the token of a task");
    };
    let end = match fields.get("error").filter(|error| !error.is_null()) {
        None => TaskEnd::Completed(Arc::new(fields.get("output").cloned().unwrap_or_default())),
        Some(_) if fields.contains_key("output") => {
            return fault(at, "`output` and `error` exclude each other");
        }
        Some(Value::Object(error)) => TaskEnd::Failed(error_of(error, &format!("{at}/error"), faults)),
        Some(_) => return fault(format!("{at}/error"), "must be an object with a `code`"),
    };
    Some((token.to_owned(), end))
}

/// Many at once, in one commit, and new tasks with it.
pub(super) async fn batch(State(app): State<App>, body: Bytes) -> Result<Response, Problem> {
    let (fields, mut faults) = input::object(&body, &BATCH)?;
    let list = fields.get("items").and_then(Value::as_array);
    if list.is_none_or(|list| list.len() > limits::COMPLETIONS_MAX) {
        let detail = format!("must be a list of up to {} items", limits::COMPLETIONS_MAX);
        faults.push(input::fault("items", "type", &detail));
    }
    let list = list.map(Vec::as_slice).unwrap_or_default();
    let items = list.iter().enumerate();
    let items: Vec<(String, TaskEnd)> = items
        .filter_map(|(number, item)| item_of(number, item, &mut faults))
        .collect();
    let ask = match fields.get("poll").filter(|poll| !poll.is_null()) {
        None => None,
        Some(Value::Object(poll)) => Some(poll_of(&app, poll, "/poll", &mut faults)),
        Some(_) => {
            faults.push(input::fault(
                "poll",
                "type",
                "must be an object like that of a poll",
            ));
            None
        }
    };
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    for (_, end) in &items {
        if let TaskEnd::Completed(output) = end {
            check_size(output)?;
        }
    }
    let tokens: Vec<String> = items.iter().map(|(token, _)| token.clone()).collect();
    let (said, offers) = bridge::say(&app.engine, items, ask.as_ref()).await?;
    let results = tokens.into_iter().zip(said).map(|(token, said)| ItemSaid {
        token,
        result: match said {
            Said::Done => "done",
            Said::Already => "already",
            Said::Stale => "stale",
            Said::Unknown => "unknown",
            Said::Unclear => "unclear",
        },
    });
    let data = BatchSaid {
        results: results.collect(),
        tasks: offers.into_iter().map(TaskView::of).collect(),
    };
    Ok(Json(Data { data }).into_response())
}
