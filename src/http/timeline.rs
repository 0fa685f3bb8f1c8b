//! `GET /api/runs/{run}/timeline`: the life of a run as `domain/workflow/timeline.rs` tells it from what rows say.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use serde::Serialize;
use utoipa::ToSchema;

use super::app::App;
use super::error::Problem;
use super::runs::{self as run_views, Data};
use super::step_lines::{self, Lives};
use super::waiting::{self, Asked};
use crate::domain::slots::admission::ANY_MOMENT;
use crate::domain::workflow::attempt::Outcome;
use crate::domain::workflow::definition::Definition;
use crate::domain::workflow::run::{Run, StepPhase, StepState};
use crate::domain::workflow::step_lines::StepLine;
use crate::domain::workflow::timeline::{History, Mark, Past, Segment, Standing, timeline};
use crate::engine::book::Book;
use crate::engine::changes::retry;
use crate::store::tables::{ATTEMPTS, DEFINITIONS, STEPS};
use crate::store::{Rows, StoreError, entries, runs};
use crate::words::ids::{RunId, TenantId};
use crate::words::limits;
use crate::words::names::StepRef;
use crate::words::time::Millis;

const TENANT: TenantId = TenantId::DEFAULT;

/// The life of a run.
#[derive(Debug, Serialize, ToSchema)]
pub(super) struct TimelineView {
    /// The clock of the daemon.
    now: String,
    /// When the run began to exist.
    from: String,
    /// Its end, or now.
    to: String,
    /// In order and without a gap.
    segments: Vec<SegmentView>,
    /// In order; some may lie outside `from` and `to`.
    marks: Vec<MarkView>,
    /// Of a workflow or dag: its steps in the order in which they were reached, at most 100; none of a job.
    steps: Vec<StepLineView>,
    /// Steps that are left out: what goes on, failed or took longest is told first. Branches of scatters are not counted where
    /// there are many.
    more_steps: usize,
}

/// The life of a step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineStep)]
struct StepLineView {
    #[serde(rename = "ref")]
    step: String,
    title: String,
    state: &'static str,
    /// When it was reached.
    from: String,
    /// Its end, or now.
    to: String,
    /// As those of a run.
    segments: Vec<SegmentView>,
}

impl StepLineView {
    fn of((line, title): (StepLine, String)) -> StepLineView {
        StepLineView {
            step: line.step,
            title,
            state: line.state,
            from: line.line.from.to_string(),
            to: line.line.to.to_string(),
            segments: line.line.segments.iter().map(SegmentView::of).collect(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineSegment)]
struct SegmentView {
    /// `queued`, `running`, `backoff`, or `omitted` for older attempts that are not shown one by one.
    kind: &'static str,
    /// The attempt that ran, or was waited for.
    attempt: u32,
    from: String,
    /// Absent while it goes on.
    to: Option<String>,
    /// How an attempt ended.
    outcome: Option<&'static str>,
    node: Option<String>,
    text: String,
}

impl SegmentView {
    fn of(segment: &Segment) -> SegmentView {
        SegmentView {
            kind: segment.kind.word(),
            attempt: segment.attempt,
            from: segment.from.to_string(),
            to: segment.to.map(|to| to.to_string()),
            outcome: segment.outcome.map(Outcome::word),
            node: segment.node.as_ref().map(ToString::to_string),
            text: segment.text.clone(),
        }
    }
}

#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineMark)]
struct MarkView {
    at: String,
    /// `created`, `scheduled`, `deadline`, `retry_due` or `ended`.
    kind: &'static str,
    text: String,
}

impl MarkView {
    fn of(mark: &Mark) -> MarkView {
        MarkView {
            at: mark.at.to_string(),
            kind: mark.kind.word(),
            text: mark.text.clone(),
        }
    }
}

/// The life of one run.
pub(super) async fn show(
    State(app): State<App>,
    Path(text): Path<String>,
) -> Result<Json<Data<TimelineView>>, Problem> {
    let id = run_views::id_of(&text)?;
    let (book, now) = (app.engine.book(), app.engine.now().wall);
    let found = app.engine.read(move |tx| look(tx, &book, id, now)).await?;
    let lives = found.ok_or_else(|| run_views::not_found(&text))?;
    let line = lives.run;
    let data = TimelineView {
        now: now.to_string(),
        from: line.from.to_string(),
        to: line.to.to_string(),
        segments: line.segments.iter().map(SegmentView::of).collect(),
        marks: line.marks.iter().map(MarkView::of).collect(),
        steps: lives.steps.into_iter().map(StepLineView::of).collect(),
        more_steps: lives.more,
    };
    Ok(Json(Data { data }))
}

fn look(rows: &mut impl Rows, book: &Book, id: RunId, now: Millis) -> Result<Option<Lives>, StoreError> {
    let Some(run) = runs::by_id(rows, id)? else {
        return Ok(None);
    };
    if run.graph.is_some() {
        let definition = definition_of(rows, &run)?;
        return step_lines::of_run(rows, book, (&run, definition.as_ref()), now).map(Some);
    }
    // A job has one step.
    let steps = rows.scan(&STEPS, &(TENANT, id), None, 1)?;
    let Some((_, step)) = steps.into_iter().next() else {
        return Ok(None);
    };
    let run = timeline(&history(rows, book, &run, &step, now)?, now);
    Ok(Some(Lives {
        run,
        steps: Vec::new(),
        more: 0,
    }))
}

fn history(
    rows: &mut impl Rows,
    book: &Book,
    run: &Run,
    step: &StepState,
    now: Millis,
) -> Result<History, StoreError> {
    let definition = definition_of(rows, run)?;
    let demand = definition.as_ref().and_then(Definition::job_demand);
    let slot_pool = demand.map(|demand| demand.slot_pool.clone());
    let (past, omitted) = past(rows, run.id, &step.step, limits::TIMELINE_ATTEMPTS_MAX)?;
    let first = past.first().map_or(step.attempt, |past| past.number);
    let queued_at = match slot_pool {
        Some(_) => queued_at(rows, run.id, &step.step, first..=step.attempt)?,
        None => BTreeMap::new(),
    };
    let limit_ms = definition
        .as_ref()
        .and_then(Definition::job_step)
        .and_then(|step| step.command.execution_timeout_ms);
    Ok(History {
        created_at: run.created_at,
        trigger: run.trigger.clone(),
        slot_pool,
        attempt: step.attempt,
        past,
        omitted,
        queued_at,
        retry: definition.map(|definition| definition.policy.retry),
        standing: standing(rows, (book, now), run, step, limit_ms)?,
    })
}

/// The version that the run has pinned, if it is still kept.
fn definition_of(rows: &mut impl Rows, run: &Run) -> Result<Option<Definition>, StoreError> {
    let record = match rows.get(&DEFINITIONS, &(TENANT, run.definition.clone(), run.version)) {
        Err(error) if error.is_row_fault() => None,
        other => other?,
    };
    Ok(record.and_then(|record| record.json.read().ok()))
}

/// The newest ended attempts, oldest first, and how many older ones there are.
pub(super) fn past(
    rows: &mut impl Rows,
    run: RunId,
    step: &StepRef,
    most: usize,
) -> Result<(Vec<Past>, u32), StoreError> {
    let prefix = (TENANT, run, step.clone());
    let found = rows.scan_each_back(&ATTEMPTS, &prefix, None, most + 1)?;
    let readable = found.into_iter().filter_map(|each| each.row.ok());
    let mut past: Vec<Past> = readable
        .map(|((_, _, _, number, _), attempt)| Past { number, attempt })
        .collect();
    past.reverse();
    if past.len() <= most {
        return Ok((past, 0));
    }
    let kept = past.split_off(1);
    // Lost attempts share their number with the next one, so this is how many failed.
    let omitted = past.first().map_or(0, |last| last.number);
    Ok((kept, omitted))
}

/// When the slot entries of further attempts began to wait; closed entries are kept for a while only.
fn queued_at(
    rows: &mut impl Rows,
    run: RunId,
    step: &StepRef,
    attempts: std::ops::RangeInclusive<u32>,
) -> Result<BTreeMap<u32, Millis>, StoreError> {
    let mut found = BTreeMap::new();
    for attempt in attempts.filter(|attempt| *attempt > 1) {
        match entries::by_id(rows, retry::entry_id(run, step, attempt)) {
            Ok(entry) => found.extend(entry.map(|entry| (attempt, entry.queued_at))),
            Err(error) if error.is_row_fault() => {}
            Err(error) => return Err(error),
        }
    }
    Ok(found)
}

fn standing(
    rows: &mut impl Rows,
    (book, now): (&Book, Millis),
    run: &Run,
    step: &StepState,
    limit_ms: Option<u64>,
) -> Result<Standing, StoreError> {
    if let Some(at) = run.state.ended_at() {
        let word = run.state.word();
        let text = run
            .state
            .reason()
            .map_or_else(|| word.to_owned(), |why| format!("{word}: {why}"));
        return Ok(Standing::Ended { at, text });
    }
    Ok(match &step.phase {
        StepPhase::Ready { since } | StepPhase::Waiting { since, .. } | StepPhase::Held { since } => {
            let text = waits_for(rows, (book, now), run, step)?;
            Standing::Queued {
                since: *since,
                text,
                until: None,
            }
        }
        StepPhase::Queued { since, entry } => {
            let until = entries::by_seq(rows, *entry)?.map(|entry| entry.expires_at);
            let text = waits_for(rows, (book, now), run, step)?;
            Standing::Queued {
                since: *since,
                text,
                until,
            }
        }
        StepPhase::Retrying { due, refused, .. } => Standing::BackOff {
            due: *due,
            refused: refused.clone(),
        },
        StepPhase::Running { started_at, .. } => {
            let live = rows.get(
                &crate::store::tables::LIVE_ATTEMPTS,
                &(TENANT, run.id, step.step.clone()),
            )?;
            Standing::Running {
                since: *started_at,
                node: live.map_or_else(|| book.node.clone(), |live| live.claim.node),
                limit_ms,
            }
        }
        StepPhase::Succeeded { ended_at }
        | StepPhase::Failed { ended_at, .. }
        | StepPhase::Skipped { ended_at, .. }
        | StepPhase::UpstreamFailed { ended_at, .. }
        | StepPhase::Cancelled { ended_at, .. } => Standing::Ended {
            at: *ended_at,
            text: step.phase.word().to_owned(),
        },
    })
}

/// For what a step waits now, in words.
pub(super) fn waits_for(
    rows: &mut impl Rows,
    (book, now): (&Book, Millis),
    run: &Run,
    step: &StepState,
) -> Result<String, StoreError> {
    let asked = Asked {
        book,
        run,
        graph: None,
        now,
        placed: false,
    };
    let waits = waiting::of_step(rows, &asked, step)?;
    Ok(waits.map_or_else(|| ANY_MOMENT.to_owned(), |waits| waits.text))
}
