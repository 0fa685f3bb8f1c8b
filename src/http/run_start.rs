//! `POST /api/workflows/{family_slug}/runs`: a run of a graph begins.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::app::App;
use super::error::{FieldFault, Problem};
use super::once::{self, Once};
use super::param::{Kind, Param};
use super::runs::Data;
use super::{input, run_values};
use crate::domain::payload::Payload;
use crate::domain::workflow::graph::document::Tier;
use crate::domain::workflow::run::{Run, Trigger};
use crate::engine::changes::key_limit;
use crate::engine::changes::remember::{Answer, Asked, Told};
use crate::engine::mailbox::AwaitedEnd;
use crate::engine::runs::{self, BeginError, Begun, NewRun};
use crate::store::runs::by_id;
use crate::words::ids::RunId;
use crate::words::names::{JobName, StepRef};

/// So often whoever waits for a run looks at it without having been told of its end.
const LOOK_AGAIN: Duration = Duration::from_secs(5);

/// The longest `wait`.
const WAIT_SECONDS_MAX: u64 = 300;
/// Characters of a label's name and value.
const LABEL_CHARS_MAX: usize = 128;
/// Labels of one run.
const LABELS_MAX: usize = 32;

/// The fields of a start.
pub(super) const FIELDS: [Param; 5] = [
    Param::query(
        "input",
        Kind::Any,
        "The input of the run: any JSON; unless given, `{}` where the workflow wants an object, else null.",
    ),
    Param::query(
        "version",
        Kind::Integer,
        "The version of the workflow; the newest unless given.",
    ),
    Param::query("labels", Kind::Any, "Names and texts by which runs are filtered."),
    Param::query(
        "tier",
        Kind::Text,
        "`interactive`, `default` or `background`; that of the workflow unless given.",
    ),
    Param::query(
        "wait",
        Kind::Integer,
        "So many seconds the answer waits for the end of the run, at most 300.",
    ),
];

/// The answer to a start.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub(super) struct StartedRun {
    id: String,
    workflow: String,
    version: u32,
    /// Where it stands now: a run of steps that are computed has ended already.
    state: String,
    /// Its output, if it has succeeded while it was waited for.
    #[serde(skip_serializing_if = "Option::is_none")]
    output: Option<Value>,
    /// Why it ended otherwise.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    /// Why it has not begun.
    #[serde(skip_serializing_if = "Option::is_none")]
    waiting_reason: Option<String>,
}

struct Wish {
    run: NewRun,
    wait: u64,
}

/// Begins a run.
pub(super) async fn start(
    State(app): State<App>,
    Path(slug): Path<String>,
    once: Once,
    body: Bytes,
) -> Result<Response, Problem> {
    if app.engine.is_stopping() {
        return Err(Problem::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "ductor is stopping and starts nothing; try again when it is back",
        ));
    }
    let wish = read(&slug, &body, once.principal())?;
    let name = wish.run.definition.to_string();
    let for_answer = name.clone();
    let waits = wish.wait > 0;
    let asked = once.ask(move |_, begun: &Begun| Ok(answer(&for_answer, begun, waits)));
    // Before it begins, so that its end is not missed.
    let awaited = waits.then(|| app.engine.mailboxes.ends.expect(wish.run.id));
    let told = runs::begin(&app.engine, wish.run, asked).await?;
    if let (
        Told::Now(
            Begun::Run {
                version,
                state,
                result,
                ..
            },
            _,
        ),
        Some(awaited),
    ) = (&told, awaited)
        && (!state.is_terminal() || lies_apart(result.as_ref()))
    {
        return waited(&app, awaited, &name, *version, wish.wait).await;
    }
    once::respond(told, |begun| refused(&slug, &begun))
}

impl From<BeginError> for Problem {
    fn from(error: BeginError) -> Problem {
        match error {
            BeginError::Read(error) => error.into(),
            BeginError::Change(error) => error.into(),
        }
    }
}

/// A run of a graph once more: with the same input, or what failed of it.
pub(super) async fn again(
    app: &App,
    of: &Run,
    how: Again,
    asked: impl FnOnce(Name) -> Asked<Begun>,
) -> Result<Response, Problem> {
    let name = of.definition.to_string();
    let asked = asked(name.clone());
    let by = asked.who().to_owned();
    let told = match how {
        Again::Whole => runs::rerun(&app.engine, of.id, by, asked).await?,
        Again::From(step) => runs::retry(&app.engine, of.id, step, by, asked).await?,
    };
    once::respond(told, |begun| refused(&name, &begun))
}

/// What is done again.
#[derive(Debug, Clone)]
pub(super) enum Again {
    /// Everything.
    Whole,
    /// From a step on; without one what failed.
    From(Option<StepRef>),
}

type Name = String;

/// Waits for the end of the run, at most so long, and says where it stands then.
async fn waited(
    app: &App,
    mut awaited: AwaitedEnd,
    name: &str,
    version: u32,
    seconds: u64,
) -> Result<Response, Problem> {
    let id = awaited.run();
    let deadline = tokio::time::Instant::now() + Duration::from_secs(seconds);
    let (state, output, waiting_reason) = loop {
        let next_look = (tokio::time::Instant::now() + LOOK_AGAIN).min(deadline);
        let told = tokio::time::timeout_at(next_look, awaited.told()).await;
        if let Ok(Some(ended)) = told
            && !lies_apart(ended.result.as_ref())
        {
            break (ended.run.state.clone(), at_hand(ended.result.as_ref()), None);
        }
        let looked = app.engine.read(move |tx| {
            let run = by_id(tx, id)?;
            let waits = run.as_ref().map(|run| key_limit::why(tx, run)).transpose()?;
            Ok(run.map(|run| (run, waits.flatten().map(|why| why.sentence))))
        });
        let found = looked.await?;
        let (run, waits) = found.ok_or_else(|| super::runs::not_found(&id.to_string()))?;
        if run.state.is_terminal() || tokio::time::Instant::now() >= deadline {
            break (run.state, run_values::result(app, id).await?, waits);
        }
    };
    let data = StartedRun {
        id: id.to_string(),
        workflow: name.to_owned(),
        version,
        state: state.word().to_owned(),
        output,
        reason: state.reason().map(str::to_owned),
        waiting_reason,
    };
    let location = Some(format!("/api/runs/{id}"));
    let told: Told<()> = Told::Now(
        (),
        Some(once::accepted(StatusCode::CREATED, location, &Data { data })),
    );
    once::respond(told, |()| Problem::unavailable())
}

/// True for a result that lies beside its run and has to be read.
fn lies_apart(result: Option<&Payload>) -> bool {
    result.is_some_and(|payload| payload.inline().is_none())
}

/// A result that is at hand.
fn at_hand(result: Option<&Payload>) -> Option<Value> {
    result?.inline()?.read().ok()
}

pub(super) fn answer(name: &str, begun: &Begun, waits: bool) -> Option<Answer> {
    let Begun::Run {
        id,
        version,
        state,
        result,
        waits: waiting_reason,
    } = begun
    else {
        return None;
    };
    let data = StartedRun {
        id: id.to_string(),
        workflow: name.to_owned(),
        version: *version,
        state: state.word().to_owned(),
        output: at_hand(result.as_ref().filter(|_| waits)),
        reason: state.reason().map(str::to_owned),
        waiting_reason: waiting_reason.clone(),
    };
    let location = Some(format!("/api/runs/{id}"));
    Some(once::accepted(StatusCode::CREATED, location, &Data { data }))
}

fn refused(slug: &str, begun: &Begun) -> Problem {
    match begun {
        Begun::NotFound => {
            let shown: String = slug.chars().take(64).collect();
            Problem::not_found(format!(
                "there is no published workflow '{shown}', or not in that version"
            ))
        }
        Begun::BadInput(issues) => input::against_schema("/input", issues),
        Begun::Refused(why) => Problem::forbidden_by_state(why.clone()),
        Begun::NoRoom => super::start::no_room(),
        Begun::Run { .. } => unreachable!("an accepted start has an answer"),
    }
}

fn read(slug: &str, body: &[u8], principal: String) -> Result<Wish, Problem> {
    let (mut fields, mut faults) = input::object(body, &FIELDS)?;
    let version = whole(&fields, "version", u64::from(u32::MAX), &mut faults);
    let wait = whole(&fields, "wait", WAIT_SECONDS_MAX, &mut faults).unwrap_or(0);
    let labels = labels_of(&fields, &mut faults);
    let tier = tier_of(&fields, &mut faults);
    if !faults.is_empty() {
        return Err(Problem::invalid(faults));
    }
    let definition = JobName::new(slug).map_err(|_| refused(slug, &Begun::NotFound))?;
    Ok(Wish {
        run: NewRun {
            id: RunId::fresh(),
            definition,
            version: version.and_then(|version| u32::try_from(version).ok()),
            input: Arc::new(fields.remove("input").unwrap_or(Value::Null)),
            labels,
            tier,
            trigger: Trigger::Manual { principal },
        },
        wait,
    })
}

fn whole(fields: &Map<String, Value>, name: &str, max: u64, faults: &mut Vec<FieldFault>) -> Option<u64> {
    let value = fields.get(name).filter(|value| !value.is_null())?;
    let number = value.as_u64().filter(|number| *number <= max);
    if number.is_none() {
        let detail = format!("must be a whole number up to {max}");
        faults.push(input::fault(name, "type", &detail));
    }
    number
}

fn labels_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> Vec<(String, String)> {
    let Some(value) = fields.get("labels").filter(|value| !value.is_null()) else {
        return Vec::new();
    };
    let mut labels = Vec::new();
    let object = value.as_object().filter(|object| object.len() <= LABELS_MAX);
    for (name, value) in object.into_iter().flatten() {
        let text = value
            .as_str()
            .filter(|text| text.chars().count() <= LABEL_CHARS_MAX);
        match text {
            Some(text) if !name.is_empty() && name.chars().count() <= LABEL_CHARS_MAX => {
                labels.push((name.clone(), text.to_owned()));
            }
            Some(_) | None => {
                let detail = format!("label `{name}` must be a text of up to {LABEL_CHARS_MAX} characters");
                faults.push(input::fault("labels", "type", &detail));
            }
        }
    }
    if object.is_none() {
        let detail = format!("must be an object of up to {LABELS_MAX} texts");
        faults.push(input::fault("labels", "type", &detail));
    }
    labels
}

fn tier_of(fields: &Map<String, Value>, faults: &mut Vec<FieldFault>) -> Option<Tier> {
    let value = fields.get("tier").filter(|value| !value.is_null())?;
    let tier = serde_json::from_value(value.clone()).ok();
    if tier.is_none() {
        faults.push(input::fault(
            "tier",
            "enum",
            "must be `interactive`, `default` or `background`",
        ));
    }
    tier
}
