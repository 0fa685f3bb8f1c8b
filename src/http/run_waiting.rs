//! `GET /api/runs/{run}/waiting`: why a run and each of its steps does not go on, those that were not reached yet too.

use axum::extract::{Path, State};
use axum::response::{IntoResponse, Json, Response};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::runs::{self as run_views, Data};
use super::waiting::{self, Asked, Waiting, held, of_run, of_step};
use crate::domain::slots::admission::ANY_MOMENT;
use crate::domain::workflow::run::{RunState, StepPhase};
use crate::store::tables::STEPS;
use crate::store::{Rows, StoreError, runs};
use crate::words::ids::TenantId;
use crate::words::limits;
use crate::words::names::StepRef;

const TENANT: TenantId = TenantId::DEFAULT;

/// Everything in a run that waits.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = RunWaiting)]
pub(super) struct WaitingView {
    id: String,
    state: &'static str,
    /// Why the run as a whole does not go on: it has not begun, is held, or none of its steps runs. Null while something runs,
    /// and when it has ended.
    waiting_reason: Option<Waiting>,
    /// Its steps that wait, at most 500.
    steps: Vec<WaitingStep>,
    /// There are more.
    more: bool,
}

/// A step that waits.
#[derive(Debug, Serialize, ToSchema)]
struct WaitingStep {
    #[serde(rename = "ref")]
    step: String,
    state: &'static str,
    waiting_reason: Waiting,
}

/// Why a run and its steps wait.
pub(super) async fn show(State(app): State<App>, Path(text): Path<String>) -> Result<Response, Problem> {
    let id = run_views::id_of(&text)?;
    let (book, now, of) = (app.engine.book(), app.engine.now().wall, app.clone());
    let found = app.engine.read(move |tx| {
        let Some(run) = runs::by_id(tx, id)? else {
            return Ok(None);
        };
        let asked = waiting::asked(tx, &of, &book, &run, now)?;
        everything(tx, &asked).map(Some)
    });
    let data = found.await?.ok_or_else(|| run_views::not_found(&text))?;
    Ok(Json(Data { data }).into_response())
}

fn everything(rows: &mut impl Rows, asked: &Asked<'_>) -> Result<WaitingView, StoreError> {
    let run = asked.run;
    let mut view = WaitingView {
        id: run.id.to_string(),
        state: run.state.word(),
        waiting_reason: of_run(rows, asked)?,
        steps: Vec::new(),
        more: false,
    };
    if run.state.is_terminal() {
        return Ok(view);
    }
    let mut runs_now = false;
    let mut reached: Vec<(StepRef, bool)> = Vec::new();
    for ((_, _, name), state) in rows.scan(&STEPS, &(TENANT, run.id), None, usize::MAX)? {
        runs_now |= matches!(state.phase, StepPhase::Running { .. });
        if asked.graph.is_some() && !name.as_str().contains('#') {
            reached.push((name.clone(), state.phase.is_terminal()));
        }
        if view.steps.len() >= limits::PAGE_MAX {
            view.more |= !state.phase.is_terminal();
            continue;
        }
        if let Some(waiting_reason) = of_step(rows, asked, &state)? {
            view.steps.push(WaitingStep {
                step: name.to_string(),
                state: state.phase.word(),
                waiting_reason,
            });
        }
    }
    if view.waiting_reason.is_none() && !runs_now {
        let first = view
            .steps
            .first()
            .map(|step| &step.step)
            .and_then(|name| StepRef::new(name));
        if let Some(state) = first
            .and_then(|name| runs::step(rows, run.id, &name).transpose())
            .transpose()?
        {
            view.waiting_reason = of_step(rows, asked, &state)?;
        }
    }
    if run.state != RunState::Pending {
        add_unreached(asked, &reached, &mut view);
    }
    Ok(view)
}

/// Steps outside of scatters that were not reached yet wait for those before them.
fn add_unreached(asked: &Asked<'_>, reached: &[(StepRef, bool)], view: &mut WaitingView) {
    let Some(graph) = asked.graph.as_deref() else {
        return;
    };
    let has_ended = |name: &StepRef| reached.iter().any(|(known, ended)| known == name && *ended);
    for node in graph.nodes() {
        let name = &node.doc.name;
        if node.scatter.is_some() || reached.iter().any(|(known, _)| known == name) {
            continue;
        }
        if view.steps.len() >= limits::PAGE_MAX {
            view.more = true;
            return;
        }
        let before = node.incoming.iter().map(|edge| &graph.node(edge.from).doc.name);
        let before: Vec<String> = before
            .filter(|name| !has_ended(name))
            .map(ToString::to_string)
            .collect();
        let hold = asked.run.graph.as_deref().and_then(|header| header.hold.as_ref());
        let waiting_reason = match (hold, before.is_empty()) {
            (Some(hold), true) => held(hold),
            (None, true) => Waiting::plain("ready", ANY_MOMENT),
            (_, false) => Waiting::upstream(before),
        };
        view.steps.push(WaitingStep {
            step: name.to_string(),
            state: "pending",
            waiting_reason,
        });
    }
}
